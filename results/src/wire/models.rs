//! Records about models: the coverage matrix of clauses, and differences between two models.

use litmus::closed_enum;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::RaceWord;
use crate::state::State;

/// Version of [`CompareRecord`].
pub const COMPARE_SCHEMA: &str = "vk-litmus/compare/1";

/// The record of `clauses --format json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClausesRecord {
    /// Every clause of the specifications.
    pub clauses: Vec<ClauseRow>,
    /// Every mutation of a statement that was tried.
    pub mutants: Vec<MutantRow>,
}

/// A clause and how the model treats it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClauseRow {
    /// Its id.
    pub id: String,
    /// The specification of the clause: `vulkan` or `hsa`.
    pub model: String,
    /// An anchor of the Vulkan specification, or a section of HSA's; null if the source is another.
    pub anchor: Option<String>,
    /// The clause in short.
    pub statement: String,
    /// The treatment of the clause by the model.
    pub disposition: DispositionWord,
    /// The cat statements that encode it, as `file:line name`, and the built-in sets and relations that do.
    pub statements: Vec<String>,
    /// Ids of the tests that claim to discriminate it.
    pub tests: Vec<String>,
    /// Why no statement encodes it; null if one does.
    pub why: Option<String>,
}

closed_enum! {
    /// The treatment of a clause by a model.
    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum DispositionWord {
        /// A statement of the model encodes it.
        Encoded = "encoded",
        /// The parser or the compiler enforces it.
        Static = "static",
        /// It concerns devices.
        Device = "device",
        /// No program in this language can observe it.
        NotApplicable = "not applicable",
    }
}

/// A mutation of one model statement, and whether a test detects it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MutantRow {
    /// Name of the model.
    pub model: String,
    /// The statement, as `file:line name`.
    pub statement: String,
    /// The mutation.
    pub change: String,
    /// Whether a test detects it.
    pub status: MutantStatus,
    /// Id of the test that detects it; null if none does.
    pub by: Option<String>,
    /// How it detects it; null if none does.
    pub difference: Option<DifferenceWord>,
    /// The bound of an unsuccessful search; null if a difference was found or an argument excludes one.
    pub bound: Option<String>,
    /// Why no program can detect it; only for equivalent mutants.
    pub argument: Option<Argument>,
}

/// Why no program distinguishes a mutant from its model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Argument {
    /// The kind of argument.
    pub reason: ReasonWord,
    /// The argument.
    pub text: String,
}

/// Kinds of arguments that no program distinguishes a mutant from its model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ReasonWord {
    /// The other operands of the condition relate no further pairs.
    Implied,
    /// Other alternatives contain the same pairs.
    Contained,
    /// The changed pairs have no effect at any use of the statement.
    Discarded,
    /// No program has such operations.
    Absent,
    /// Consistency and races do not use the statement; only questions do.
    Counted,
}

/// Whether a test distinguishes a mutant from its model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MutantStatus {
    /// An embedded test distinguishes them.
    Killed,
    /// No program distinguishes them, as an argument shows.
    Equivalent,
    /// No program within the bound distinguishes them.
    Unkilled,
    /// No embedded test distinguishes them; a program that does was found, or the search has not been made.
    Alive,
}

/// How a test distinguishes two models.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DifferenceWord {
    /// Race-free under both; one allows an outcome that the other forbids.
    Outcome,
    /// Race-free under the first, racy under the second.
    RacyUnderSecond,
    /// Racy under the first, race-free under the second.
    RacyUnderFirst,
    /// Racy under both, and the consistent executions differ.
    Executions,
}

/// The record of `compare --format json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
pub struct CompareRecord {
    /// [`COMPARE_SCHEMA`].
    pub schema: String,
    /// Names of the two models.
    pub models: [String; 2],
    /// Number of tests that both models answered.
    pub compared: usize,
    /// The tests on which the answers differ.
    pub differences: Vec<CompareRow>,
    /// Tests that one model cannot answer, with the reason.
    pub rejected: Vec<super::RejectedLine>,
    /// Result of the search over synthesized tests; null if none was requested.
    pub synthesized: Option<SynthesizedRecord>,
}

/// A test on which two models differ.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CompareRow {
    /// Test id.
    pub id: String,
    /// The source file.
    pub file: String,
    /// How they differ.
    pub difference: DifferenceWord,
    /// Whether the test races under each.
    pub race: [RaceWord; 2],
    /// Whether the test's question holds under each; null without a question.
    pub holds: Option<[bool; 2]>,
    /// The outcomes that only the first allows.
    #[schemars(with = "Vec<std::collections::BTreeMap<String, i64>>")]
    pub only_first: Vec<State>,
    /// The outcomes that only the second allows.
    #[schemars(with = "Vec<std::collections::BTreeMap<String, i64>>")]
    pub only_second: Vec<State>,
}

/// The smallest synthesized test that distinguishes two models.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SynthesizedRecord {
    /// Largest number of operations in a synthesized test.
    pub events: usize,
    /// How the models differ on the test; null if none was found.
    pub difference: Option<DifferenceWord>,
    /// Number of operations of the test; null if none was found.
    pub operations: Option<usize>,
    /// The test in the native syntax; null if none was found.
    pub test: Option<String>,
    /// The next smallest tests, if requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub next: Vec<NextTest>,
}

/// A further test that distinguishes two models.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NextTest {
    /// How the models differ on it.
    pub difference: DifferenceWord,
    /// Number of operations of the test.
    pub operations: usize,
    /// The test in the native syntax.
    pub test: String,
}
