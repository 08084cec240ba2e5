//! Records of `refine --format json`.

use litmus::closed_enum;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::FindingPlace;

/// Version of [`RefineLine`].
pub const REFINE_SCHEMA: &str = "vk-litmus/refine/1";

/// A line of `refine --format json`: the comparison of an entry point before and after a compiler.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct RefineLine {
    /// [`REFINE_SCHEMA`].
    pub schema: String,
    /// The file of the module before the compiler.
    pub before: String,
    /// The file of the module after the compiler, or the command line that makes it.
    pub after: String,
    /// The entry point of the module before the compiler; empty if the comparison did not reach it.
    pub entry: String,
    /// The name of the model.
    pub model: String,
    /// The descriptors that others may access, as `SET.BINDING`, or `all`; empty in a closed world.
    pub open: Vec<String>,
    /// The verdict.
    pub verdict: RefineVerdict,
    /// The reason, as one sentence.
    pub reason: String,
    /// Why the verdict is `unknown` or `failed`, to count equal causes; null otherwise.
    #[serde(default)]
    pub cause: Option<String>,
    /// The behaviour that only the module after the compiler has.
    pub difference: Option<RefineDifference>,
    /// The shortest command line that still breaks, if a shorter one was found.
    pub reduced: Option<String>,
    /// The smallest litmus test that `reduced`, or `after`, still breaks; only if the shader is a test.
    pub smallest: Option<String>,
    /// Time in microseconds.
    pub micros: u64,
}

closed_enum! {
    /// The verdict of a comparison.
    #[derive(Default, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum RefineVerdict {
        /// Every behaviour after the compiler is one before it.
        Refines = "refines",
        /// It refines the first, and orders more.
        Stronger = "stronger",
        /// Some behaviour after the compiler is none before it.
        Breaks = "breaks",
        /// Not decided, for the reason given.
        #[default]
        Unknown = "unknown",
        /// The compiler failed, or wrote no valid module.
        Failed = "failed",
    }
}

/// A behaviour that only the module after the compiler has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RefineDifference {
    /// `outcome`, `volatile`, or the kind of a finding.
    pub kind: String,
    /// The description, as one sentence.
    pub message: String,
    /// The position in the module before the compiler.
    pub before: Option<FindingPlace>,
    /// The position in the module after the compiler.
    pub after: Option<FindingPlace>,
    /// The steps of other threads; empty in a closed world.
    pub environment: Vec<String>,
}
