//! The record of what changed between two runs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::VerdictWord;

/// `diff --format json`: what changed between two runs, and whether by more than chance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DiffRecord {
    /// [`DIFF_SCHEMA`](super::DIFF_SCHEMA).
    pub schema: String,
    /// The earlier run.
    pub old: DiffSide,
    /// The later run.
    pub new: DiffSide,
    /// Verdicts on a test and a device that both runs have.
    pub compared: usize,
    /// Rates of outcomes that were compared; p-values are corrected for as many.
    pub rates: usize,
    /// How far scheduling scatters rates; null where too few can be compared to say.
    pub scatter: Option<ScatterRecord>,
    /// The changes, what weighs most first.
    pub changes: Vec<Change>,
    /// Tests that only the earlier run has.
    pub only_old: Vec<String>,
    /// Tests that only the later run has.
    pub only_new: Vec<String>,
}

/// How far scheduling scatters rates.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScatterRecord {
    /// By how much it inflates the statistics of rates; 1 where instances are independent.
    pub scale: f64,
    /// Degrees of freedom of the law of Student that what is left follows; null for the normal law.
    pub freedom: Option<f64>,
}

/// One of the runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DiffSide {
    /// Where it was read from.
    pub source: String,
    /// The devices that are compared, with their drivers.
    pub devices: Vec<String>,
}

/// A change of one test on one device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// What changed.
    pub kind: ChangeKind,
    /// Test id.
    pub id: String,
    /// The device in the later run.
    pub device: String,
    /// The model that judged the later run.
    pub model: String,
    /// The earlier verdict; null where the test was not there.
    pub old_verdict: Option<VerdictWord>,
    /// The later verdict.
    pub new_verdict: VerdictWord,
    /// The outcome that is spoken of, on one line; null where it is the verdict.
    pub outcome: Option<String>,
    /// How often the earlier run showed the outcome.
    pub old_count: u64,
    /// Resolved instances of the earlier run.
    pub old_instances: u64,
    /// How often the later run showed the outcome.
    pub new_count: u64,
    /// Resolved instances of the later run.
    pub new_instances: u64,
    /// The test statistic of the rates with the scatter taken off: the square of a normal variable, or of Student's.
    pub statistic: Option<f64>,
    /// Its p-value, corrected for the number of comparisons (Holm).
    pub p: Option<f64>,
    /// Whether it is more than chance: certain for what a rule forbids, at 95 % for rates.
    pub significant: bool,
    /// Particulars of the later verdict.
    pub detail: Option<String>,
    /// The rules that a forbidden outcome breaks, by the text of the model.
    pub rules: Vec<String>,
}

/// What changed; what weighs most comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ChangeKind {
    /// The later run breaks a rule that the earlier one kept, or by another outcome.
    NewViolation,
    /// The test ended without a verdict: by a crash, a hang, a lost device.
    NewFailure,
    /// The verdict changed otherwise.
    Verdict,
    /// The later run breaks no rule any more.
    GoneViolation,
    /// An outcome is seen that was not.
    NewOutcome,
    /// An outcome is not seen that was.
    VanishedOutcome,
    /// An outcome is seen at another rate.
    RateShift,
    /// The test's text is another one: nothing is compared.
    OtherTest,
    /// The model that judges is another one.
    OtherModel,
}

impl ChangeKind {
    /// Every kind.
    pub const ALL: [ChangeKind; 9] = [
        ChangeKind::NewViolation,
        ChangeKind::NewFailure,
        ChangeKind::Verdict,
        ChangeKind::GoneViolation,
        ChangeKind::NewOutcome,
        ChangeKind::VanishedOutcome,
        ChangeKind::RateShift,
        ChangeKind::OtherTest,
        ChangeKind::OtherModel,
    ];

    /// The words for several of them.
    pub fn heading(self) -> &'static str {
        match self {
            ChangeKind::NewViolation => "new violations",
            ChangeKind::NewFailure => "new failures",
            ChangeKind::Verdict => "changed verdicts",
            ChangeKind::GoneViolation => "violations that are gone",
            ChangeKind::NewOutcome => "new outcomes",
            ChangeKind::VanishedOutcome => "vanished outcomes",
            ChangeKind::RateShift => "shifted rates",
            ChangeKind::OtherTest => "tests with another text",
            ChangeKind::OtherModel => "judged by another model",
        }
    }
}
