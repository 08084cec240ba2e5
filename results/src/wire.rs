//! The published records: the only types here that are written to files and streams.
//!
//! Inner types may change freely. A field may be added here; none is removed or renamed without a new version in
//! [`CHECK_SCHEMA`], [`RUN_SCHEMA`],
//! [`COMPARE_SCHEMA`] or [`PLAN_SCHEMA`]. The JSON schemas in `results/schema/` are generated from these types.

mod codegen;
mod diff;
mod environments;
mod finding;
mod lists;
mod models;
mod patterns;
mod plan;
mod progress;
mod race;
mod report;
mod shader;

pub use codegen::*;
pub use diff::*;
pub use environments::*;
pub use finding::{FindingPlace, FindingRecord, MendRecord};
pub use lists::*;
pub use models::*;
pub use patterns::*;
pub use plan::*;
pub use progress::*;
pub use race::*;
pub use report::*;
pub use shader::*;

use litmus::{Prediction, QuestionKind, Race, Test, Undefinedness};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::answer::answer;
use crate::judge::{Judgement, Verdict};
use crate::portability::Beside;
use crate::state::{State, state};

/// Version of [`CheckLine`].
pub const CHECK_SCHEMA: &str = "vk-litmus/check/1";
/// Version of [`RunLine`].
pub const RUN_SCHEMA: &str = "vk-litmus/run/1";
/// Version of [`PlanRecord`].
pub const PLAN_SCHEMA: &str = "vk-litmus/plan/2";
/// The version of plans whose journals have no checksums.
pub const PLAN_SCHEMA_WITHOUT_SUMS: &str = "vk-litmus/plan/1";
/// Version of [`DiffRecord`].
pub const DIFF_SCHEMA: &str = "vk-litmus/diff/1";
/// Version of [`ReportRecord`].
pub const REPORT_SCHEMA: &str = "vk-litmus/report/1";
/// Version of a [baseline's header](BaselineRecord).
pub const BASELINE_SCHEMA: &str = "vk-litmus/baseline/1";

/// A line of `check --format json`: what a model says of a test.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CheckLine {
    /// [`CHECK_SCHEMA`].
    pub schema: String,
    /// Test id: path in its suite or folder without extension, then `@variant`.
    pub id: String,
    /// The file that it was read from.
    pub file: String,
    /// The name in the test's header.
    pub name: String,
    /// The model.
    pub model: String,
    /// Whether the program races.
    pub race: RaceWord,
    /// Present where it races only in executions with values out of thin air, which no implementation is known to show.
    #[serde(default, skip_serializing_if = "is_false")]
    pub race_thin_air: bool,
    /// Present where it races outside the test's filter alone: a device knows no filter, so that `run` calls it undefined.
    #[serde(default, skip_serializing_if = "is_false")]
    pub race_outside_filter: bool,
    /// Present where the test has undefined initial values and it is known: whether one is read, or observed at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uninitialised_read: Option<bool>,
    /// What is unlike what the test expects of races, uninitialised reads and termination, each in words; the questions
    /// say it of themselves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unlike: Vec<String>,
    /// HSA's level of undefinedness.
    pub level: Option<LevelWord>,
    /// The questions of the file, in order.
    pub queries: Vec<Query>,
    /// Every outcome of a candidate execution before the axioms.
    pub outcomes: Vec<CheckOutcome>,
    /// How many executions were considered.
    pub executions: Executions,
    /// How often a loop body was run at most.
    #[schemars(range(min = 1))]
    pub bound: u32,
    /// How many runs, combinations of the threads' paths, were cut off at the bound.
    pub cut: u64,
    /// How many runs there are, those cut off included.
    pub runs: u64,
    /// Microseconds from parsed test to answer.
    pub micros: u64,
    /// Whether every run ends, where that was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<ProgressAnswer>,
    /// Present where outcomes are not listed, as those of users' kernels and those that are too many: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcomes_listed: Option<bool>,
    /// Present for kernels of users: what is wrong with them, with the places.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub findings: Option<Vec<FindingRecord>>,
    /// Present for shaders that are sources: the compiler, with its version and flags.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compiler: Option<String>,
    /// Of a shader of whose grid nothing was said: what is wrong with two workgroups, in words; absent where nothing is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wider: Option<String>,
}

/// Whether every run of a program ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProgressAnswer {
    /// The progress model: one for all levels, or one a level as in `qf=obe,wg=fair,sg=hsa`.
    pub model: String,
    /// `weak` or `strong`.
    pub fairness: String,
    /// The memory that decided: `sc`, `relaxed` or `axioms`.
    pub memory: String,
    /// Whether every run ends; null where that is not known.
    pub terminates: Option<bool>,
    /// What the file expects; null where it says nothing.
    pub expected: Option<bool>,
    /// How it may hang, why nothing is known, or within which bound of weak memory it ends.
    pub why: Option<String>,
    /// A run that hangs, step by step.
    pub schedule: Vec<ScheduleStep>,
}

/// A step of a run that hangs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ScheduleStep {
    /// The thread, as in `P0`.
    pub thread: String,
    /// The line of the instruction.
    pub line: u32,
    /// The instruction as the text has it.
    pub instruction: String,
    /// The value read.
    pub read: Option<u64>,
    /// The value written.
    pub written: Option<u64>,
    /// True for the steps that repeat for ever.
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
    /// Not known within the time given.
    #[default]
    Unknown,
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
    /// The execution as a whole is undefined.
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
    /// The question as the test writes it.
    pub text: String,
    /// Whether it holds; null when the search was cut short.
    pub holds: Option<bool>,
    /// Whether the file expects it to hold; null where it says nothing.
    pub expected: Option<bool>,
}

/// An outcome and what the model says of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckOutcome {
    /// Final values by name.
    #[schemars(with = "std::collections::BTreeMap<String, i64>")]
    pub state: State,
    /// Some consistent execution shows it.
    pub allowed: bool,
    /// Sequential consistency cannot produce it.
    pub weak: bool,
    /// The test's filter excludes it.
    pub filtered: bool,
    /// Present where only executions with values out of thin air show it: no rule excludes them (VK-AC-06), and no
    /// implementation is known to show them.
    #[serde(default, skip_serializing_if = "is_false")]
    pub thin_air: bool,
    /// Whether it meets the condition of the question; absent where the test asks nothing, or several things.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub witness: Option<bool>,
}

/// Numbers of executions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Executions {
    /// Candidate executions.
    pub candidate: u64,
    /// Those that pass every axiom.
    pub consistent: u64,
}

/// A line of `check --format json` for a file that is not a test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RejectedLine {
    /// The file.
    pub file: String,
    /// What is wrong with it.
    pub error: String,
    /// Line, from 1.
    #[schemars(range(min = 1))]
    pub line: u32,
    /// Column in characters, from 1.
    #[schemars(range(min = 1))]
    pub column: u32,
}

/// A line of `run --format json` and of the journal: the verdict on a test and a device.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunLine {
    /// [`RUN_SCHEMA`].
    pub schema: String,
    /// Test id.
    pub id: String,
    /// The name in the test's header.
    pub name: String,
    /// The device.
    pub device: String,
    /// The model that judged.
    pub model: String,
    /// The verdict.
    pub verdict: VerdictWord,
    /// Whether the judged program races, but by values out of thin air; `unknown` where the prediction was cut short, so that
    /// nothing is called forbidden. Absent where nothing was predicted, and in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub race: Option<RaceWord>,
    /// Why: the published reason of `inconclusive`, the missing feature, limit or rule of `skipped`; null otherwise.
    pub reason: Option<String>,
    /// Particulars for people; of `skipped` the same as the reason.
    pub detail: Option<String>,
    /// Whether the run could have shown what it looked for.
    pub exercised: bool,
    /// All counts, unexpected ones included, and unresolved instances.
    pub instances: u64,
    /// Instances whose outcome no serial order of whole threads produces.
    pub interleaved: u64,
    /// Instances that left no trace; their dispatches count nowhere else.
    pub not_executed: u64,
    /// Instances that ran into the bound of a spin loop, or whose outcome was past those that are told apart.
    pub unresolved: u64,
    /// Invocations that ran once more than they had to, in stages that may repeat them; absent where there were none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub repeated: u64,
    /// Wall-clock seconds of all dispatches.
    pub seconds: f64,
    /// Independent batches, which confidence figures count; absent where single instances are independent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batches: Option<u64>,
    /// Every outcome of the prediction, with its count.
    pub outcomes: Vec<RunOutcome>,
    /// What was seen and is none of them.
    pub unexpected: Vec<UnexpectedValues>,
    /// The seed that everything random was drawn from.
    pub seed: u64,
    /// The stress, by name.
    pub stress: String,
    /// A command that runs this again.
    pub replay: String,
    /// The memory type that the locations lay in, by the names of its properties; absent where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<String>,
    /// Why the host counted all outcomes although the stress says that the device does; absent where nothing stood in the
    /// way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted_by_host: Option<String>,
    /// The outcome whose rate changed most surely in the course of the run; absent where the run was too short to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift: Option<DriftRecord>,
    /// What became of a test of forward progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<ProgressRun>,
    /// What became of a user's shader.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shader: Option<ShaderRun>,
    /// Hashes of what was run.
    #[serde(default)]
    pub hashes: Hashes,
    /// The question of the test, as conditions are written; absent where it asks nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// Version of the tool; empty in records that do not say.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tool: String,
    /// The driver; absent in records that do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<DriverRecord>,
    /// What HSA says of the test whose lowered program was judged; absent for other tests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hsa: Option<HsaRun>,
    /// The ids of the test's mutants in the same run: tests that differ from it in synchronization alone and allow what it
    /// forbids. What the device showed of them says what it could have shown of this one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mutants: Vec<String>,
}

/// What HSA says of a test, beside the verdict on its lowered program. It judges no device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HsaRun {
    /// HSA's model.
    pub model: String,
    /// Whether the HSA test races.
    pub race: RaceWord,
    /// HSA's level of undefinedness.
    pub level: Option<LevelWord>,
    /// How the two answers compare: `portable`, `model-only`, `vulkan-race` or `both-race`; null where one is not known.
    pub class: Option<String>,
    /// Whether HSA allows what the question asks for (for `forall`, what it rules out); null where that is not known or
    /// nothing is asked.
    pub allowed: Option<bool>,
    /// Instances in which every `await` read what it waits for; the others are no executions of the HSA test.
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
    /// The probability of so large a change by chance, corrected for the number of outcomes and not for that of tests: a
    /// two-sample Kolmogorov–Smirnov test of the rates in short stretches of the run.
    pub p: f64,
}

/// The driver of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DriverRecord {
    /// Driver name.
    pub name: String,
    /// Driver information.
    pub info: String,
    /// `VkDriverId`; 0 for none.
    pub id: i32,
    /// Driver version, as the driver encodes it.
    pub version: u32,
}

/// The verdict on a test and a device.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum VerdictWord {
    /// Exercised, and nothing forbidden was seen.
    Conforms,
    /// Something forbidden was seen.
    Violates,
    /// The program races.
    Undefined,
    /// Nothing can be said.
    #[default]
    Inconclusive,
    /// Not run.
    Skipped,
}

impl VerdictWord {
    /// The word as it is written.
    pub fn text(self) -> &'static str {
        match self {
            VerdictWord::Conforms => "conforms",
            VerdictWord::Violates => "violates",
            VerdictWord::Undefined => "undefined",
            VerdictWord::Inconclusive => "inconclusive",
            VerdictWord::Skipped => "skipped",
        }
    }
}

/// An outcome with its count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunOutcome {
    /// Final values by name.
    #[schemars(with = "std::collections::BTreeMap<String, i64>")]
    pub state: State,
    /// How often it was seen.
    pub count: u64,
    /// How many independent batches showed it; absent where single instances are independent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batches: Option<u64>,
    /// Some consistent execution shows it.
    pub allowed: bool,
    /// Sequential consistency cannot produce it.
    pub weak: bool,
    /// The test's filter excludes it.
    pub filtered: bool,
    /// Present where only executions with values out of thin air show it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub thin_air: bool,
    /// Whether it meets the condition of the question; absent where the test asks nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub witness: Option<bool>,
    /// Whether HSA allows it of the test whose lowered program was judged; absent for other tests, and where it is no
    /// outcome of the HSA test.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hsa: Option<bool>,
}

/// Values that no candidate execution produces.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnexpectedValues {
    /// The values as they were read.
    pub raw: Vec<u64>,
    /// How often they were seen.
    pub count: u64,
}

/// BLAKE3 hashes, in hexadecimal digits; empty where there is no such thing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Hashes {
    /// Of the test's text.
    pub test: String,
    /// Of the model's text.
    pub model: String,
    /// Of the kernel's SPIR-V words in little-endian order.
    pub kernel: String,
}

/// What a prediction line is made of besides the prediction.
#[derive(Clone, Copy, Debug)]
pub struct CheckContext<'a> {
    /// Test id.
    pub id: &'a str,
    /// The file.
    pub file: &'a str,
    /// The question as the test writes it; empty without one.
    pub question: &'a str,
    /// Microseconds from parsed test to answer.
    pub micros: u64,
}

impl CheckLine {
    /// The line of a test and a prediction.
    pub fn new(test: &Test, prediction: &Prediction, context: CheckContext<'_>) -> CheckLine {
        CheckLine {
            schema: CHECK_SCHEMA.to_owned(),
            id: context.id.to_owned(),
            file: context.file.to_owned(),
            name: test.name.clone(),
            model: prediction.model.clone(),
            race: prediction.race.into(),
            race_thin_air: prediction.race_thin_air,
            race_outside_filter: false,
            uninitialised_read: prediction.uninitialised_read.filter(|_| test.has_undefined()),
            unlike: Vec::new(),
            level: prediction.level.map(LevelWord::from),
            queries: answer(test, prediction)
                .map(|answer| Query {
                    text: context.question.to_owned(),
                    // A search that ran out of time may have found a witness; the answer is for those that did not. What was
                    // found within a bound of loops stays found.
                    holds: answer.holds.filter(|_| prediction.race != Race::Unknown || prediction.cut > 0),
                    expected: answer.expected,
                })
                .into_iter()
                .collect(),
            outcomes: prediction
                .outcomes
                .iter()
                .map(|(outcome, says)| CheckOutcome {
                    state: state(test, &prediction.observables, outcome),
                    allowed: says.allowed,
                    weak: says.weak,
                    filtered: says.filtered,
                    thin_air: says.thin_air,
                    witness: test
                        .question
                        .as_ref()
                        .map(|question| outcome.meets(test, &prediction.observables, &question.condition)),
                })
                .collect(),
            executions: Executions {
                candidate: prediction.candidate_executions,
                consistent: prediction.consistent_executions,
            },
            bound: prediction.bound,
            cut: prediction.cut,
            runs: prediction.runs,
            micros: context.micros,
            progress: None,
            outcomes_listed: (!prediction.complete && prediction.outcomes.is_empty()).then_some(false),
            findings: None,
            compiler: None,
            wider: None,
        }
    }
}

/// What a run line is made of besides the judgement.
#[derive(Clone, Debug)]
pub struct RunContext {
    /// Test id.
    pub id: String,
    /// The device.
    pub device: String,
    /// The model.
    pub model: String,
    /// The seed.
    pub seed: u64,
    /// The stress, by name.
    pub stress: String,
    /// A command that runs this again.
    pub replay: String,
    /// The memory type that the locations lay in, where that is known.
    pub memory: Option<String>,
    /// Why the host counted although the device was to.
    pub counted_by_host: Option<String>,
    /// Hashes of what was run.
    pub hashes: Hashes,
    /// Version of the tool.
    pub tool: String,
    /// The driver, where there is one.
    pub driver: Option<DriverRecord>,
    /// What HSA says, where the test was lowered from one of its.
    pub beside: Option<Beside>,
    /// The ids of the test's mutants in the same run.
    pub mutants: Vec<String>,
}

impl HsaRun {
    /// What HSA says beside the verdict on the lowered program `test`.
    fn new(test: &Test, beside: &Beside, judgement: &Judgement) -> HsaRun {
        let hsa = &beside.hsa;
        let asked = test.question.as_ref().map(|question| question.kind);
        HsaRun {
            model: hsa.model.clone(),
            race: hsa.race.into(),
            level: hsa.level.map(LevelWord::from),
            class: beside.class.map(|class| class.word().to_owned()),
            allowed: match asked {
                None => None,
                Some(QuestionKind::Forall) => hsa.misses,
                Some(_) => hsa.meets,
            },
            passed: judgement.rows.iter().filter(|row| !row.says.filtered).map(|row| row.count).sum(),
        }
    }
}

impl RunLine {
    /// The line of a judgement on `test`, whose rows list `observables`.
    pub fn new(
        test: &Test,
        observables: &[litmus::Observable],
        judgement: &Judgement,
        context: RunContext,
    ) -> RunLine {
        let (reason, detail) = match judgement.verdict {
            Verdict::Skipped => (judgement.detail.clone(), judgement.detail.clone()),
            Verdict::Inconclusive(reason) => (Some(reason.word().to_owned()), judgement.detail.clone()),
            Verdict::Conforms | Verdict::Violates | Verdict::Undefined => (None, judgement.detail.clone()),
        };
        RunLine {
            schema: RUN_SCHEMA.to_owned(),
            id: context.id,
            name: test.name.clone(),
            device: context.device,
            model: context.model,
            verdict: match judgement.verdict {
                Verdict::Conforms => VerdictWord::Conforms,
                Verdict::Violates => VerdictWord::Violates,
                Verdict::Undefined => VerdictWord::Undefined,
                Verdict::Inconclusive(_) => VerdictWord::Inconclusive,
                Verdict::Skipped => VerdictWord::Skipped,
            },
            race: judgement.race.map(RaceWord::from),
            reason,
            detail,
            exercised: judgement.exercised,
            instances: judgement.instances,
            interleaved: judgement.interleaved,
            not_executed: judgement.not_executed,
            unresolved: judgement.unresolved,
            repeated: judgement.repeated,
            seconds: judgement.seconds,
            batches: judgement.batches,
            outcomes: judgement
                .rows
                .iter()
                .map(|row| RunOutcome {
                    state: state(test, observables, &row.outcome),
                    count: row.count,
                    batches: row.batches,
                    allowed: row.says.allowed,
                    weak: row.says.weak,
                    filtered: row.says.filtered,
                    thin_air: row.says.thin_air,
                    witness: test
                        .question
                        .as_ref()
                        .map(|question| row.outcome.meets(test, observables, &question.condition)),
                    hsa: context.beside.as_ref().and_then(|beside| beside.allows.get(&row.outcome).copied()),
                })
                .collect(),
            unexpected: judgement
                .unexpected
                .iter()
                .map(|u| UnexpectedValues { raw: u.raw.clone(), count: u.count })
                .collect(),
            seed: context.seed,
            stress: context.stress,
            replay: context.replay,
            memory: context.memory,
            counted_by_host: context.counted_by_host,
            drift: judgement.drift.as_ref().map(|drift| DriftRecord {
                state: state(test, observables, &drift.outcome),
                earlier: drift.earlier,
                later: drift.later,
                p: drift.p,
            }),
            progress: None,
            shader: None,
            hashes: context.hashes,
            question: test.question.as_ref().map(|question| question.text(test)),
            tool: context.tool,
            driver: context.driver,
            hsa: context.beside.as_ref().map(|beside| HsaRun::new(test, beside, judgement)),
            mutants: context.mutants,
        }
    }
}
#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}
