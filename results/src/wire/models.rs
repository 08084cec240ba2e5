//! What is published about models: the matrix of clauses, and how two models differ.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::RaceWord;
use crate::state::State;

/// Version of [`CompareRecord`].
pub const COMPARE_SCHEMA: &str = "vk-litmus/compare/1";

/// What `clauses --format json` prints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClausesRecord {
    /// Every clause of the specifications.
    pub clauses: Vec<ClauseRow>,
    /// Every change of a statement that was tried.
    pub mutants: Vec<MutantRow>,
}

/// A clause and what becomes of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClauseRow {
    /// Its id.
    pub id: String,
    /// Whose clause it is: `vulkan` or `hsa`.
    pub model: String,
    /// Where it is said: an anchor of the Vulkan specification, or a section of HSA's; null where it stands elsewhere.
    pub anchor: Option<String>,
    /// What it says, in short.
    pub statement: String,
    /// What becomes of it.
    pub disposition: DispositionWord,
    /// The statements of cat files that encode it, as `file:line name`, and the sets and relations of the engine that do.
    pub statements: Vec<String>,
    /// The ids of the tests that say they discriminate it.
    pub tests: Vec<String>,
    /// Why no statement encodes it; null where one does.
    pub why: Option<String>,
}

/// What becomes of a clause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DispositionWord {
    /// The model says it.
    Encoded,
    /// The parser or the compiler sees to it.
    Static,
    /// It is about devices.
    Device,
    /// Nothing here can show it.
    NotApplicable,
}

/// A change of one statement of a model, and whether some test notices.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MutantRow {
    /// The model.
    pub model: String,
    /// The statement, as `file:line name`.
    pub statement: String,
    /// The change.
    pub change: String,
    /// Whether some test notices.
    pub status: MutantStatus,
    /// The test that notices, by its id; null where none does.
    pub by: Option<String>,
    /// How it notices; null where none does.
    pub difference: Option<DifferenceWord>,
    /// How far a difference was looked for in vain; null where one was found, and where an argument says that there is none.
    pub bound: Option<String>,
    /// Why no program can notice; null but for equivalent ones.
    pub argument: Option<Argument>,
}

/// Why no program tells a mutant from its model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Argument {
    /// Its kind.
    pub reason: ReasonWord,
    /// The argument.
    pub text: String,
}

/// Of what kind an argument is that no program tells a mutant from its model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ReasonWord {
    /// What stands beside the condition relates nothing else.
    Implied,
    /// Other cases hold the same pairs.
    Contained,
    /// What the change adds or takes away makes no difference wherever the statement is used.
    Discarded,
    /// No program has such operations.
    Absent,
    /// Consistency and races do not use the statement; queries count it.
    Counted,
}

/// Whether a mutant is told from its model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MutantStatus {
    /// An embedded test tells it apart.
    Killed,
    /// No program tells it apart, and an argument says why.
    Equivalent,
    /// No program within the bound tells it apart.
    Unkilled,
    /// No embedded test tells it apart, and a program that was found does, or nobody has searched for one.
    Alive,
}

/// How a test tells two models apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DifferenceWord {
    /// Race-free under both, and one allows what the other forbids.
    Outcome,
    /// Race-free under the first, racy under the second.
    RacyUnderSecond,
    /// Racy under the first, race-free under the second.
    RacyUnderFirst,
    /// Racy under both, and the consistent executions differ.
    Executions,
}

/// What `compare --format json` prints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CompareRecord {
    /// [`COMPARE_SCHEMA`].
    pub schema: String,
    /// The two models.
    pub models: [String; 2],
    /// Tests on which both gave an answer.
    pub compared: usize,
    /// Those of them on which they differ.
    pub differences: Vec<CompareRow>,
    /// Tests that one of them cannot answer, and why.
    pub rejected: Vec<super::RejectedLine>,
    /// What was looked for among synthesized tests; null where none was asked for.
    pub synthesized: Option<SynthesizedRecord>,
}

/// A test on which two models differ.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CompareRow {
    /// Test id.
    pub id: String,
    /// The file that it was read from.
    pub file: String,
    /// How they differ.
    pub difference: DifferenceWord,
    /// Whether the test races under each.
    pub race: [RaceWord; 2],
    /// Whether the test's question holds under each; null where it asks nothing.
    pub holds: Option<[bool; 2]>,
    /// The outcomes that only the first allows.
    #[schemars(with = "Vec<std::collections::BTreeMap<String, i64>>")]
    pub only_first: Vec<State>,
    /// The outcomes that only the second allows.
    #[schemars(with = "Vec<std::collections::BTreeMap<String, i64>>")]
    pub only_second: Vec<State>,
}

/// The smallest synthesized test that tells two models apart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SynthesizedRecord {
    /// The most operations that a test might have.
    pub events: usize,
    /// How the models differ on the test; null where none was found.
    pub difference: Option<DifferenceWord>,
    /// Operations of the test; null where none was found.
    pub operations: Option<usize>,
    /// The test in the native syntax; null where none was found.
    pub test: Option<String>,
    /// The next tests, where some were asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub next: Vec<NextTest>,
}

/// A test that tells two models apart, after the smallest one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NextTest {
    /// How the models differ on it.
    pub difference: DifferenceWord,
    /// Operations of the test.
    pub operations: usize,
    /// The test in the native syntax.
    pub test: String,
}
