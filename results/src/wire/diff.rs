//! The record of a comparison of two runs.

use litmus::closed_enum;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::VerdictWord;

/// `diff --format json`: changes between two runs, with their statistical significance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DiffRecord {
    /// [`DIFF_SCHEMA`](super::DIFF_SCHEMA).
    pub schema: String,
    /// The earlier run.
    pub old: DiffSide,
    /// The later run.
    pub new: DiffSide,
    /// Number of tests and devices with a verdict in both runs.
    pub compared: usize,
    /// Number of compared rates; p-values are corrected for it.
    pub rates: usize,
    /// Number of rates that are not comparable, because a side has neither repeated runs nor batches.
    #[serde(default)]
    pub not_comparable: usize,
    /// Spread of rates caused by scheduling; null if there are too few comparisons.
    pub scatter: Option<ScatterRecord>,
    /// The changes, most important first.
    pub changes: Vec<Change>,
    /// Tests that only the earlier run has.
    pub only_old: Vec<String>,
    /// Tests that only the later run has.
    pub only_new: Vec<String>,
}

/// Spread of rates between both runs that is common to all tests.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScatterRecord {
    /// Inflation factor of the rate statistics; 1 for none.
    pub scale: f64,
    /// Degrees of freedom of the Student distribution of the deflated statistics; null for the normal
    /// distribution.
    pub freedom: Option<f64>,
}

/// One of the runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DiffSide {
    /// Path that was read.
    pub source: String,
    /// The compared devices, with their drivers.
    pub devices: Vec<String>,
}

/// A change of one test on one device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// The kind of change.
    pub kind: ChangeKind,
    /// Test id.
    pub id: String,
    /// Name of the device in the later run.
    pub device: String,
    /// The model that judged the later run.
    pub model: String,
    /// The earlier verdict; null if the test did not run.
    pub old_verdict: Option<VerdictWord>,
    /// The later verdict.
    pub new_verdict: VerdictWord,
    /// The outcome that changed, on one line; null if the verdict changed.
    pub outcome: Option<String>,
    /// Instances of the earlier run with the outcome.
    pub old_count: u64,
    /// Resolved instances of the earlier run.
    pub old_instances: u64,
    /// Instances of the later run with the outcome.
    pub new_count: u64,
    /// Resolved instances of the later run.
    pub new_instances: u64,
    /// The deflated test statistic of the rates: the square of a normal or Student variable.
    pub statistic: Option<f64>,
    /// Its p-value, corrected for the number of comparisons (Holm).
    pub p: Option<f64>,
    /// Whether it is more than chance: always for a forbidden outcome, at 95 % for rates.
    pub significant: bool,
    /// Explanation of the later verdict.
    pub detail: Option<String>,
    /// The rules of the model that a forbidden outcome breaks.
    pub rules: Vec<String>,
}

closed_enum! {
    /// Kinds of changes, most important first.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum ChangeKind {
        /// The later run shows a forbidden outcome that the earlier one did not.
        NewViolation = "new violations",
        /// The test ended without a verdict: crash, hang, or lost device.
        NewFailure = "new failures",
        /// Any other change of the verdict.
        Verdict = "changed verdicts",
        /// The later run shows no forbidden outcome any more.
        GoneViolation = "fixed violations",
        /// The later run ended before the test, or had no time for it.
        LostTime = "without time in the new run",
        /// Only the later run shows the outcome.
        NewOutcome = "new outcomes",
        /// Only the earlier run shows the outcome.
        VanishedOutcome = "vanished outcomes",
        /// The rate of the outcome changed.
        RateShift = "shifted rates",
        /// The test's text differs: nothing is compared.
        OtherTest = "tests with a changed text",
        /// The model differs.
        OtherModel = "judged by a different model",
    }
}
