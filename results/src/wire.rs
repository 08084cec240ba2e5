//! Published records: the only types of this crate that are serialized to files and streams.
//!
//! A field may be added; none is removed or renamed without a new version in [`CHECK_SCHEMA`],
//! [`RUN_SCHEMA`], [`COMPARE_SCHEMA`] or [`PLAN_SCHEMA`]. The JSON schemas in `results/schema/` are generated
//! from these types.

mod change;
mod codegen;
mod diff;
mod environments;
mod finding;
mod line_builders;
mod lists;
mod models;
mod mutant;
mod patterns;
mod plan;
mod playground;
mod progress;
mod race;
mod recording;
mod refine;
mod report;
mod shader;
mod trace;

pub use change::*;
pub use codegen::*;
pub use diff::*;
pub use environments::*;
pub use finding::{FindingPlace, FindingRecord, LOST_ORDER};
pub use line_builders::{CheckContext, LineVerdict, RunContext};
pub use lists::*;
pub use models::*;
pub use mutant::MutantSeen;
pub use patterns::*;
pub use plan::*;
pub use playground::*;
pub use progress::*;
pub use race::*;
pub use recording::*;
pub use refine::*;
pub use report::*;
pub use shader::*;
pub use trace::*;

use litmus::{Race, Undefinedness, closed_enum};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::state::State;

/// Version of [`CheckLine`].
pub const CHECK_SCHEMA: &str = "vk-litmus/check/1";
/// Version of [`RunLine`].
pub const RUN_SCHEMA: &str = "vk-litmus/run/1";
/// Version of [`PlanRecord`].
pub const PLAN_SCHEMA: &str = "vk-litmus/plan/2";
/// The plan version whose journals have no checksums.
pub const PLAN_SCHEMA_WITHOUT_CHECKSUMS: &str = "vk-litmus/plan/1";
/// Version of [`DiffRecord`].
pub const DIFF_SCHEMA: &str = "vk-litmus/diff/1";
/// Version of [`ReportRecord`].
pub const REPORT_SCHEMA: &str = "vk-litmus/report/3";
/// Version of a [baseline's header](BaselineRecord).
pub const BASELINE_SCHEMA: &str = "vk-litmus/baseline/1";

/// A line of `check --format json`: the prediction of a model for one test.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CheckLine {
    /// [`CHECK_SCHEMA`].
    pub schema: String,
    /// Test id: path in its suite or folder without extension, then `@variant`.
    pub id: String,
    /// The source file.
    pub file: String,
    /// The name in the test's header.
    pub name: String,
    /// Name of the model.
    pub model: String,
    /// Whether the program races.
    pub race: RaceWord,
    /// Present if the program races only in executions with out-of-thin-air values, which no known
    /// implementation produces.
    #[serde(default, skip_serializing_if = "is_false")]
    pub race_thin_air: bool,
    /// Present if the program races only outside the test's filter. `run` calls it undefined, as a device
    /// applies no filter.
    #[serde(default, skip_serializing_if = "is_false")]
    pub race_outside_filter: bool,
    /// Whether an undefined initial value is read or observed; present if the test has such values and the
    /// answer is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uninitialised_read: Option<bool>,
    /// Differences from the test's expectations on races, uninitialised reads and termination, each in words.
    /// Questions report their own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<String>,
    /// HSA's level of undefinedness.
    pub level: Option<LevelWord>,
    /// The questions of the file, in order.
    pub queries: Vec<Query>,
    /// Every outcome of a candidate execution before the axioms are applied.
    pub outcomes: Vec<CheckOutcome>,
    /// Numbers of executions.
    pub executions: Executions,
    /// Present if no execution is consistent although every run of the program ends: a fault of the model or of the input.
    #[serde(default, skip_serializing_if = "is_false")]
    pub no_execution: bool,
    /// Largest number of iterations of a loop.
    #[schemars(range(min = 1))]
    pub bound: u32,
    /// Number of runs (combinations of the threads' paths) cut off at that bound.
    pub cut: u64,
    /// Number of runs, including those cut off.
    pub runs: u64,
    /// Microseconds from parsed test to answer.
    pub micros: u64,
    /// Whether every run ends, if progress was checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<ProgressAnswer>,
    /// Present and false if outcomes are not listed: the input is a user's shader, or there are too many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcomes_listed: Option<bool>,
    /// Present for shaders: the findings with their positions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub findings: Option<Vec<FindingRecord>>,
    /// Present for shaders compiled from source: the compiler, with its version and flags.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compiler: Option<String>,
    /// Present for a shader without `--grid`: the finding that appears with two workgroups, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub two_workgroup_finding: Option<String>,
    /// Present for a shader whose answer depends on inputs that no option supplies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<NeededRecord>,
}

/// Whether every run of a program ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct ProgressAnswer {
    /// The progress model: one for all levels, or one per level as in `qf=obe,wg=fair,sg=hsa`.
    pub model: String,
    /// `weak` or `strong`.
    pub fairness: String,
    /// The memory model that decided: `sc`, `relaxed` or `axioms`.
    pub memory: String,
    /// Whether every run ends; null if unknown.
    pub terminates: Option<bool>,
    /// The expectation of the file; null if it states none.
    pub expected: Option<bool>,
    /// How it may hang, why the answer is unknown, or the bound of weak memory within which it ends.
    pub why: Option<String>,
    /// A run that hangs, step by step.
    pub schedule: Vec<ScheduleStep>,
}

/// A step of a run that hangs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ScheduleStep {
    /// The thread, as in `P0`.
    pub thread: String,
    /// Line of the instruction.
    pub line: u32,
    /// The instruction as in the source.
    pub instruction: String,
    /// The value read.
    pub read: Option<u64>,
    /// The value written.
    pub written: Option<u64>,
    /// True for the steps that repeat forever.
    pub repeats: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
fn is_false(flag: &bool) -> bool {
    !flag
}

/// Whether a program races.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RaceWord {
    /// No consistent execution races.
    Free,
    /// Some consistent execution races.
    Racy,
    /// Not decided within the time limit.
    #[default]
    Unknown,
    /// The answer depends on inputs that no option supplies.
    #[serde(rename = "needs-inputs")]
    NeedsInputs,
    /// The model has no race condition. In JSON this is null.
    #[serde(untagged)]
    NotDefined,
}

impl From<Race> for RaceWord {
    fn from(race: Race) -> RaceWord {
        match race {
            Race::Free => RaceWord::Free,
            Race::Racy => RaceWord::Racy,
            Race::Unknown => RaceWord::Unknown,
        }
    }
}

/// HSA's level of undefinedness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LevelWord {
    /// Values are undefined.
    Value,
    /// The whole execution is undefined.
    Program,
}

impl From<Undefinedness> for LevelWord {
    fn from(level: Undefinedness) -> LevelWord {
        match level {
            Undefinedness::Value => LevelWord::Value,
            Undefinedness::Program => LevelWord::Program,
        }
    }
}

/// A question with its answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Query {
    /// The question as written in the test.
    pub text: String,
    /// Whether it holds; null if the search was incomplete.
    pub holds: Option<bool>,
    /// Whether the file expects it to hold; null if it states nothing.
    pub expected: Option<bool>,
}

/// An outcome and its classification by the model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckOutcome {
    /// Final values by name.
    #[schemars(with = "std::collections::BTreeMap<String, i64>")]
    pub state: State,
    /// Some consistent execution produces it.
    pub allowed: bool,
    /// Sequential consistency cannot produce it.
    pub weak: bool,
    /// The test's filter excludes it.
    pub filtered: bool,
    /// Present if only executions with out-of-thin-air values produce it. No rule excludes these (VK-AC-06),
    /// and no known implementation produces them.
    #[serde(default, skip_serializing_if = "is_false")]
    pub thin_air: bool,
    /// Whether it satisfies the condition of the question; absent if the test has no or several questions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub witness: Option<bool>,
}

/// Numbers of executions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Executions {
    /// Candidate executions.
    pub candidate: u64,
    /// Executions that satisfy every axiom.
    pub consistent: u64,
}

/// A line of `check --format json` for a file that is not a valid test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RejectedLine {
    /// The file.
    pub file: String,
    /// The mistake.
    pub error: String,
    /// Line, from 1.
    #[schemars(range(min = 1))]
    pub line: u32,
    /// Column in characters, from 1.
    #[schemars(range(min = 1))]
    pub column: u32,
}

/// A line of `run --format json` and of the journal: the verdict on one test and device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunLine {
    /// [`RUN_SCHEMA`].
    pub schema: String,
    /// Test id.
    pub id: String,
    /// The name in the test's header.
    pub name: String,
    /// Name of the device.
    pub device: String,
    /// Name of the model.
    pub model: String,
    /// The verdict.
    pub verdict: VerdictWord,
    /// Whether the judged program races, ignoring races that need out-of-thin-air values. `unknown` if the
    /// prediction is incomplete; then no outcome is called forbidden. Absent without a prediction and in
    /// older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub race: Option<RaceWord>,
    /// The published reason of `inconclusive`, or the missing feature, limit or rule of `skipped`; null
    /// otherwise.
    pub reason: Option<String>,
    /// An explanation in words; for `skipped` the same as the reason.
    pub detail: Option<String>,
    /// Whether enough instances overlapped for the forbidden outcome to be observable.
    pub exercised: bool,
    /// Sum of all counts, including unexpected values and unresolved instances.
    pub instances: u64,
    /// Instances whose outcome no serial order of whole threads produces.
    pub interleaved: u64,
    /// Instances without a result. The counts of their dispatches are discarded.
    pub not_executed: u64,
    /// Instances that reached the iteration limit of a spin loop, or whose outcome did not fit the histogram.
    pub unresolved: u64,
    /// Repeated invocations, in stages that may run an invocation more than once; absent if there were none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub repeated: u64,
    /// Wall-clock seconds of all dispatches.
    pub seconds: f64,
    /// Independent batches, the unit of confidence figures; absent if single instances are independent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batches: Option<u64>,
    /// Repeated parts of the run, the unit of confidence figures; absent if there are batches, in short runs
    /// and in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parts: Option<RunParts>,
    /// Every outcome of the prediction, with its count.
    pub outcomes: Vec<RunOutcome>,
    /// Observed values that match no outcome of the prediction.
    pub unexpected: Vec<UnexpectedValues>,
    /// Seed of all random choices.
    pub seed: u64,
    /// Name of the stress.
    pub stress: String,
    /// A command that repeats the run.
    pub replay: String,
    /// Memory type of the locations, by the names of its properties; absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<String>,
    /// Why the host counted all outcomes although the stress requests counting on the device; absent
    /// otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted_by_host: Option<String>,
    /// The part of the run under another layout, after a part without a weak outcome that the device is known
    /// to show; absent if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<SpreadRun>,
    /// The outcome whose rate changed most significantly during the run; absent if the run was too short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift: Option<DriftRecord>,
    /// Result of a test of forward progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<ProgressRun>,
    /// Result of a run of a user's shader.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shader: Option<ShaderRun>,
    /// Hashes of the inputs.
    #[serde(default)]
    pub hashes: Hashes,
    /// The question of the test, as conditions are written; absent if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// Version of the tool; empty in older records.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tool: String,
    /// The driver; absent in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<DriverRecord>,
    /// HSA's prediction for the test whose lowered program was judged; absent for other tests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hsa: Option<HsaRun>,
    /// Ids of the test's mutants in the same run: tests with weaker synchronization that allow the outcome
    /// this one forbids. Their counts measure if the run could have shown a fault of this test.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mutants: Vec<String>,
}

/// Repeated parts of a run. Their outcomes vary more than those of independent instances.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunParts {
    /// The unit of a part.
    pub unit: PartUnit,
    /// The instances with a complete outcome of each part.
    pub instances: Vec<u64>,
}

/// A repeated part of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PartUnit {
    /// A part of one run, with its own seed and memory. Such parts share a process and the state of the machine.
    #[default]
    Part,
    /// A whole run in its own process, by `run --repeat`.
    Run,
}

/// The part of a run under another layout.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SpreadRun {
    /// Instances of the part before it, none of which showed a weak outcome that the device is known to show.
    pub first: u64,
    /// Its instances.
    pub second: u64,
    /// Those of its instances that showed one of these outcomes.
    pub weak: u64,
    /// Its stress, in the format of its TOML file.
    pub stress: String,
}

/// HSA's prediction for a test, next to the verdict on its lowered program. It judges no device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HsaRun {
    /// Name of HSA's model.
    pub model: String,
    /// Whether the HSA test races.
    pub race: RaceWord,
    /// HSA's level of undefinedness.
    pub level: Option<LevelWord>,
    /// The comparison of the two answers: `portable`, `model-only`, `vulkan-race` or `both-race`; null if one is
    /// unknown.
    pub class: Option<String>,
    /// Whether HSA allows an outcome that satisfies the question's condition (for `forall`, that violates
    /// it); null if unknown or without a question.
    pub allowed: Option<bool>,
    /// Instances in which every `await` read its value; the others are not executions of the HSA test.
    pub passed: u64,
}

/// An outcome's rate in the two halves of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DriftRecord {
    /// Final values by name.
    #[schemars(with = "std::collections::BTreeMap<String, i64>")]
    pub state: State,
    /// Its rate in the first half.
    pub earlier: f64,
    /// Its rate in the second half.
    pub later: f64,
    /// The p-value of a two-sample Kolmogorov–Smirnov test of the rates in short stretches of the run. It is
    /// corrected for the number of outcomes, but not for the number of tests.
    pub p: f64,
}

/// The driver of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DriverRecord {
    /// Driver name.
    pub name: String,
    /// Driver information.
    pub info: String,
    /// `VkDriverId`; 0 if unknown.
    pub id: i32,
    /// Driver version, as the driver encodes it.
    pub version: u32,
}

closed_enum! {
    /// The verdict on one test and device.
    #[derive(Default, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    pub enum VerdictWord {
        /// Exercised, and no forbidden outcome was observed.
        Conforms = "conforms",
        /// A forbidden outcome was observed.
        Violates = "violates",
        /// The program races.
        Undefined = "undefined",
        /// No verdict is possible.
        #[default]
        Inconclusive = "inconclusive",
        /// The test did not run.
        Skipped = "skipped",
    }
}

impl RunLine {
    /// Returns true if the model judged the outcomes: of all tests, and of shaders unless their contents are unknown.
    pub fn has_judged_outcomes(&self) -> bool {
        self.shader.as_ref().is_none_or(|shader| shader.judged)
    }

    /// Returns the word that a table shows: that of the verdict, or a failed assertion about a shader on a device
    /// of which nothing else is wrong.
    pub fn shown_word(&self) -> &'static str {
        match self.verdict {
            VerdictWord::Conforms | VerdictWord::Inconclusive if self.broken_claim().is_some() => {
                "assertion fails"
            }
            verdict => verdict.name(),
        }
    }

    /// Returns the assertion about a shader's contents that failed.
    pub fn broken_claim(&self) -> Option<&ClaimRecord> {
        self.shader.as_ref()?.claim.as_ref().filter(|claim| claim.broken > 0)
    }
}

/// An outcome with its count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct RunOutcome {
    /// Final values by name.
    #[schemars(with = "std::collections::BTreeMap<String, i64>")]
    pub state: State,
    /// Number of instances with it.
    pub count: u64,
    /// Number of independent batches with it; absent if single instances are independent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batches: Option<u64>,
    /// Number of instances with it in each of the [parts](RunLine::parts).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<u64>,
    /// Some consistent execution produces it.
    pub allowed: bool,
    /// Sequential consistency cannot produce it.
    pub weak: bool,
    /// The test's filter excludes it.
    pub filtered: bool,
    /// Present if only executions with out-of-thin-air values produce it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub thin_air: bool,
    /// Whether it satisfies the condition of the question; absent without a question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub witness: Option<bool>,
    /// Whether HSA allows it; absent for other tests, and if it is not an outcome of the HSA test.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hsa: Option<bool>,
}

/// Values that no candidate execution produces.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnexpectedValues {
    /// The values as read back: an outcome that the prediction lacks, in the order of the observables, or the result words
    /// of an instance with a wrong end mark.
    pub raw: Vec<u64>,
    /// Number of instances with them.
    pub count: u64,
}

/// BLAKE3 hashes in hexadecimal digits; empty if there is no such input.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Hashes {
    /// Hash of the test's text.
    pub test: String,
    /// Hash of the model's text.
    pub model: String,
    /// Hash of the kernel's SPIR-V words in little-endian order.
    pub kernel: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}
