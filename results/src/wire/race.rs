//! What `race` says of a kernel.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::FindingRecord;

/// Version of [`RaceLine`].
pub const RACE_SCHEMA: &str = "vk-litmus/race/1";

/// A line of `race --format json`: what is wrong with a kernel over a whole grid.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RaceLine {
    /// [`RACE_SCHEMA`].
    pub schema: String,
    /// The file.
    pub file: String,
    /// The entry point; empty where the file could not be read.
    pub entry: String,
    /// Workgroups.
    pub grid: [u32; 3],
    /// Invocations of a workgroup; null where the kernel was refused.
    pub local_size: Option<[u32; 3]>,
    /// Invocations of a subgroup; 0 where the kernel was refused and none were asked for.
    pub subgroup_size: u32,
    /// What is said.
    pub verdict: RaceVerdict,
    /// Why it was refused, or is undecided, with the line.
    pub why: Option<String>,
    /// What is wrong.
    pub findings: Vec<FindingRecord>,
    /// What `clean` covers.
    pub coverage: RaceCoverage,
}

/// What was looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RaceCoverage {
    /// All of it in a sentence; empty where the kernel was refused.
    pub words: String,
    /// Who looked; null where the kernel was refused.
    pub by: Option<RaceWitness>,
    /// Invocations of the grid.
    pub invocations: u64,
    /// Whether the answer is for every order of the invocations.
    pub every_order: bool,
    /// Orders in which the invocations were walked.
    pub orders: u64,
    /// Steps of all invocations in all orders.
    pub steps: u64,
}

/// Who looked at a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RaceWitness {
    /// A walk, one instruction of one invocation after the other.
    Walk,
    /// The model, over every execution.
    Model,
}

/// The verdict of `race`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RaceVerdict {
    /// There is a finding.
    Racy,
    /// There is none, as far as the coverage says.
    Clean,
    /// It is beyond what can be looked at.
    Refused,
    /// Time or steps did not suffice.
    Undecided,
}

impl std::fmt::Display for RaceVerdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            RaceVerdict::Racy => "racy",
            RaceVerdict::Clean => "clean",
            RaceVerdict::Refused => "refused",
            RaceVerdict::Undecided => "undecided",
        })
    }
}
