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
    /// Workgroups; null where the kernel was refused.
    pub grid: Option<[u32; 3]>,
    /// Invocations of a workgroup; null where the kernel was refused.
    pub local_size: Option<[u32; 3]>,
    /// Invocations of a subgroup; null where the kernel was refused.
    pub subgroup_size: Option<u32>,
    /// What is said.
    pub verdict: RaceVerdict,
    /// Why it was refused, or is undecided, with the line.
    pub why: Option<String>,
    /// What is wrong.
    pub findings: Vec<FindingRecord>,
    /// What `clean` covers, in words.
    pub coverage: String,
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
