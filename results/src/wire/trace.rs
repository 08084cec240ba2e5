//! The steps of two invocations up to a finding.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The steps of the invocations of a finding, in the order of the schedule that shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TraceRecord {
    /// The invocations, one or two.
    pub invocations: Vec<String>,
    /// The steps; the last one shows the finding.
    pub steps: Vec<TraceStepRecord>,
    /// True if steps are missing at the end.
    #[serde(rename = "cut_off")]
    pub is_cut_off: bool,
}

/// Consecutive instructions of one invocation on one line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TraceStepRecord {
    /// The index of the invocation in `invocations`.
    pub invocation: usize,
    /// The file of the line.
    pub file: String,
    /// The line; null if it is unknown.
    pub line: Option<u32>,
    /// The changes and reads of values, in order.
    pub effects: Vec<TraceEffectRecord>,
    /// The index of the last step of the other invocation that happens before this one; null if none does.
    pub seen: Option<usize>,
}

/// A change or a read of a value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum TraceEffectRecord {
    /// A variable of the invocation gets a value.
    Variable {
        /// Its name.
        name: String,
        /// The value.
        value: String,
    },
    /// A read of shared memory.
    Read {
        /// The element.
        element: String,
        /// Its value.
        value: String,
    },
    /// A write or an atomic update of shared memory.
    Write {
        /// The element.
        element: String,
        /// Its value before.
        before: String,
        /// Its value after.
        after: String,
    },
    /// The invocation waits at a barrier or a subgroup operation.
    Wait,
    /// The invocation ends.
    End,
}
