//! The record of `race`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::FindingRecord;

/// Version of [`RaceLine`].
pub const RACE_SCHEMA: &str = "vk-litmus/race/1";

/// A line of `race --format json`: the findings in one kernel over a whole grid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RaceLine {
    /// [`RACE_SCHEMA`].
    pub schema: String,
    /// The file.
    pub file: String,
    /// The entry point; empty if the file could not be read.
    pub entry: String,
    /// Number of workgroups.
    pub grid: [u32; 3],
    /// The workgroups that ran, by their position in the grid; absent if all did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workgroups: Vec<[u32; 3]>,
    /// Invocations per workgroup; null if the kernel was refused.
    pub local_size: Option<[u32; 3]>,
    /// Invocations per subgroup; 0 if the kernel was refused and none were requested.
    pub subgroup_size: u32,
    /// The verdict.
    pub verdict: RaceVerdict,
    /// Why it was refused or is undecided, with the line.
    pub why: Option<String>,
    /// The cause of a refusal in a few words, to count them; absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// The compiler with its version and flags; absent for SPIR-V.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compiler: Option<String>,
    /// The findings.
    pub findings: Vec<FindingRecord>,
    /// The scope of the verdict.
    pub coverage: RaceCoverage,
    /// The inputs that the answer depends on and that no option supplies, if the verdict is `needs-inputs`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<NeededRecord>,
    /// The first element that schedules leave different contents in, though nothing races. This is no finding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order_dependent: Option<String>,
    /// The findings of `lint`, if requested. They do not change the verdict.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lints: Vec<FindingRecord>,
}

impl RaceLine {
    /// Returns the verdict; without a race, the kinds of the findings.
    pub fn headline(&self) -> String {
        let races = ["race", "lockstep", "unpublished-read"];
        if self.verdict != RaceVerdict::Racy
            || self.findings.iter().any(|found| races.contains(&&*found.kind))
        {
            return self.verdict.to_string();
        }
        let mut kinds: Vec<String> = Vec::new();
        for found in &self.findings {
            let kind = match found.message.contains("divides by zero") {
                true => "division by zero".to_owned(),
                false => found.kind.replace('-', " "),
            };
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        if kinds.is_empty() { self.verdict.to_string() } else { kinds.join(", ") }
    }
}

/// An input that no option supplies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NeededRecord {
    /// The source name.
    pub name: String,
    /// The assumed value.
    pub value: String,
    /// The option that supplies it.
    pub option: String,
    /// The lines that were not reached because of it; empty if it decides a finding.
    pub lines: String,
}

impl NeededRecord {
    /// Formats the input as a sentence.
    pub fn to_sentence(&self) -> String {
        let NeededRecord { name, value, option, lines } = self;
        let what = match lines.as_str() {
            "" => "a finding depends on it".to_owned(),
            lines => format!("{lines} not reached"),
        };
        format!("`{name}` is not given; assumed {value}, {what}: supply it with {option}")
    }
}

/// The scope of a verdict.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RaceCoverage {
    /// The scope in one sentence; empty if the kernel was refused.
    pub words: String,
    /// The method; null if the kernel was refused.
    pub by: Option<RaceWitness>,
    /// Number of invocations of the grid.
    pub invocations: u64,
    /// Whether the verdict holds for every schedule of the invocations.
    pub every_order: bool,
    /// Number of explored schedules.
    pub orders: u64,
    /// Number of executed steps over all invocations and schedules.
    pub steps: u64,
}

/// The method of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RaceWitness {
    /// Execution of schedules, one instruction at a time.
    Walk,
    /// The axiomatic model, over every execution.
    Model,
}

/// The verdict of `race`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RaceVerdict {
    /// At least one finding.
    Racy,
    /// No finding, within the stated scope.
    Clean,
    /// The kernel is not supported.
    Refused,
    /// The limit of time or steps was reached.
    Undecided,
    /// The answer depends on inputs that no option supplies.
    NeedsInputs,
}

impl std::fmt::Display for RaceVerdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            RaceVerdict::Racy => "racy",
            RaceVerdict::Clean => "clean",
            RaceVerdict::Refused => "refused",
            RaceVerdict::Undecided => "undecided",
            RaceVerdict::NeedsInputs => "needs-inputs",
        })
    }
}
