//! What `patterns --format json` and `lint --format json` print.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::FindingRecord;

/// Version of [`PatternsRecord`].
pub const PATTERNS_SCHEMA: &str = "vk-litmus/patterns/1";

/// Version of [`LintLine`].
pub const LINT_SCHEMA: &str = "vk-litmus/lint/1";

/// A line of `lint --format json`: what is said of a shader.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LintLine {
    /// [`LINT_SCHEMA`].
    pub schema: String,
    /// The shader.
    pub file: String,
    /// What is found, each of a kind `lint:` and the name of a rule.
    pub findings: Vec<FindingRecord>,
}

/// Patterns of shaders, right and commonly wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PatternsRecord {
    /// [`PATTERNS_SCHEMA`].
    pub schema: String,
    /// In the order of their names.
    pub patterns: Vec<PatternRecord>,
}

/// A pattern.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PatternRecord {
    /// Its name.
    pub name: String,
    /// In a few words.
    pub title: String,
    /// What it does, and what makes it right.
    pub about: String,
    /// Workgroups of the dispatch that it is asked about.
    pub grid: [u32; 3],
    /// Bodies of a loop at most, as for `--unroll`, where the usual is too few.
    pub unroll: Option<u32>,
    /// What is to hold of every final state, as for `--assert`.
    pub assertion: String,
    /// Under which progress models it ends.
    pub ends: String,
    /// The clauses that make it right.
    pub clauses: Vec<String>,
    /// The right form first.
    pub forms: Vec<PatternForm>,
}

/// A form of a pattern.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PatternForm {
    /// Its name, unique in its pattern.
    pub name: String,
    /// `right`, `racy`, `divergent` (a control barrier that not all reach), or `wrong`: no race, and the assertion does not hold.
    pub verdict: String,
    /// Why.
    pub why: String,
    /// The lines that mend it, each in place of another or, where that is empty, added; none of a right form.
    pub mend: Vec<PatternChange>,
    /// The shader.
    pub glsl: String,
    /// The same as a litmus test.
    pub litmus: String,
}

/// A line that is changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PatternChange {
    /// What stands there.
    pub from: String,
    /// What should.
    pub to: String,
}
