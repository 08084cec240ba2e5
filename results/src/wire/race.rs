//! The record of `race`.

use litmus::closed_enum;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{FindingPlace, FindingRecord, RejectedLine, TraceRecord};

/// Version of [`RaceLine`].
pub const RACE_SCHEMA: &str = "vk-litmus/race/2";

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
    /// `why` with its position; absent if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rejected: Option<RejectedLine>,
    /// The cause of a refusal in a few words, to count them; absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// The source language; null if unknown.
    #[serde(default)]
    pub language: Option<String>,
    /// The compiler with its version and flags; null for SPIR-V.
    #[serde(default)]
    pub compiler: Option<String>,
    /// The inputs that the verdict is about.
    #[serde(default)]
    pub inputs: CoveredInputs,
    /// The proof that the verdict holds for every input; null without one.
    #[serde(default)]
    pub proof: Option<RaceProof>,
    /// The places that a proof leaves open.
    #[serde(default)]
    pub unproved: Vec<UnprovedPlace>,
    /// Inputs of the attempted proof for which a walk finds a race or a divergent barrier; absent if the verdict is not
    /// `clean`, or none is known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counterexample: Vec<String>,
    /// The verdict about the source by the rules of its language; null if it is not known.
    #[serde(default)]
    pub language_verdict: Option<RaceVerdict>,
    /// The execution models of HLSL (`--hlsl-execution`) by which a racy source has no race with these inputs
    /// and any likely subgroup size; absent if none has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub race_free_executions: Vec<String>,
    /// The verdict about the module of the compiler; null in records of earlier versions.
    #[serde(default)]
    pub module_verdict: Option<RaceVerdict>,
    /// The findings.
    pub findings: Vec<FindingRecord>,
    /// The scope of the verdict.
    pub coverage: RaceCoverage,
    /// The inputs that the answer depends on and that no option supplies, if the verdict is `needs-inputs`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<NeededRecord>,
    /// The first element that schedules leave different contents in, though nothing races. It is not a finding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order_dependent: Option<String>,
    /// The final contents of buffers after the first schedule, if requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contents: Vec<BufferContents>,
    /// The steps up to one of the findings, if requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceRecord>,
    /// The findings of `lint`, if requested. They do not change the verdict.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lints: Vec<FindingRecord>,
}

/// The final contents of a buffer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BufferContents {
    /// The descriptor set.
    pub set: u32,
    /// The binding.
    pub binding: u32,
    /// The element of an array of buffers.
    pub element: u32,
    /// The name of the variable, or of its block.
    pub name: String,
    /// The types of its numbers, such as `u32` or `f32 u32`, or the format of an image, such as `rgba8`; null if unknown.
    #[serde(default)]
    pub scalar: Option<String>,
    /// The bytes, in hexadecimal.
    pub bytes: String,
    /// The first byte that is not computed: it is undefined or unspecified. Null if there is none.
    #[serde(default)]
    pub unknown: Option<usize>,
    /// The bytes that one dispatch leaves on the device, if one was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
}

impl BufferContents {
    /// Returns two digits for each byte.
    pub fn to_hexadecimal(bytes: &[u8]) -> String {
        let digit = |half: u8| char::from_digit(u32::from(half), 16).unwrap_or_default();
        bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
    }
}

/// The inputs that a verdict is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CoveredInputs {
    /// Every input, by a proof.
    Every,
    /// The inputs that options supply.
    #[default]
    Given,
    /// Inputs of which the tool chose some.
    Chosen,
}

/// A proof that a verdict holds for every input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RaceProof {
    /// The number of workgroups of each dimension; null for any.
    #[serde(default)]
    pub grid: [Option<u32>; 3],
    /// The conditions under which it holds.
    pub conditions: Vec<String>,
    /// Inputs without the conditions for which a walk finds a race or a divergent barrier; empty if none is known.
    #[serde(default)]
    pub counterexample: Vec<String>,
    /// The assumptions that it rests on.
    pub assumptions: Vec<String>,
    /// The solver.
    pub solver: String,
}

/// A place that a proof leaves open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnprovedPlace {
    /// The source file; null if unknown.
    pub file: Option<String>,
    /// Line, from 1; null if unknown.
    pub line: Option<u32>,
    /// The reason.
    pub reason: String,
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
    /// The finding that depends on it.
    #[serde(default)]
    pub finding: Option<FindingRecord>,
    /// The first of the lines that were not reached.
    #[serde(default)]
    pub at: Option<FindingPlace>,
}

/// The scope of a verdict.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RaceCoverage {
    /// The inputs that the tool chose: all of the first choice, then what differs in each further one. Empty if all
    /// were given.
    pub inputs: Vec<Vec<String>>,
    /// The invocations; null if the kernel was refused.
    pub grid: Option<CoveredGrid>,
    /// The schedules; null if the kernel was refused.
    pub schedules: Option<CoveredSchedules>,
    /// The method; null if the kernel was refused.
    pub engine: Option<RaceWitness>,
    /// The limits of the verdict.
    pub limits: Vec<CoverageLimit>,
}

/// The invocations that a verdict covers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CoveredGrid {
    /// Number of invocations.
    pub invocations: u64,
    /// Number of workgroups.
    pub workgroups: u64,
    /// Number of the workgroups that ran; null if all did.
    pub running: Option<u64>,
    /// Invocations per workgroup.
    pub workgroup_size: u64,
    /// The invocations of a graphics stage, in words; null for stages with workgroups.
    pub invocations_of_stage: Option<String>,
}

/// The schedules that a verdict covers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CoveredSchedules {
    /// True if the verdict holds for every schedule of the invocations.
    pub every: bool,
    /// Number of explored schedules.
    pub explored: u64,
    /// Number, from 0, of the first explored schedule with a finding; null if none has one.
    #[serde(default)]
    pub finding: Option<u64>,
    /// Number of executed steps over all invocations and schedules.
    pub steps: u64,
    /// Why the explored schedules are not all; null if they are.
    pub reason: Option<ScheduleReason>,
    /// The model that allows the covered executions; null if a walk explored schedules.
    pub model: Option<String>,
    /// Number of the executions that the model allows; null if they were not counted.
    #[serde(default)]
    pub executions: Option<u64>,
}

/// Why schedules differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ScheduleReason {
    /// Atomics affect control flow or ordering.
    Atomics,
    /// Interlocked sections may execute in any order.
    Interlock,
    /// Lanes of a subgroup may come together in different ways.
    PartialSubgroups,
    /// A limit ended the walk.
    Limit,
}

/// A limit of a verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum CoverageLimit {
    /// An assumption or restriction.
    Note {
        /// The assumption.
        text: String,
    },
    /// Source lines that no invocation reached.
    Unreached {
        /// The lines, as ranges.
        lines: String,
    },
    /// A finding with another grid than the assumed one.
    WiderGrid {
        /// The grid.
        grid: String,
        /// The finding.
        message: String,
    },
    /// Every workgroup does the same, and the grid is not given.
    OneWorkgroup,
    /// The search for grids in which positions coincide was cut off.
    GridSearchCutOff,
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

closed_enum! {
    /// The verdict of `race`.
    #[derive(Default, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum RaceVerdict {
        /// At least one finding.
        Racy = "racy",
        /// No finding, within the stated scope.
        #[default]
        Clean = "clean",
        /// The kernel is not supported.
        Refused = "refused",
        /// The limit of time or steps was reached.
        Undecided = "undecided",
        /// The answer depends on inputs that no option supplies.
        NeedsInputs = "needs-inputs",
    }
}
