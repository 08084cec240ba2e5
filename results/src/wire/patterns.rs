//! Records of `patterns --format json` and `lint --format json`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::FindingRecord;

/// Version of [`PatternsRecord`].
pub const PATTERNS_SCHEMA: &str = "vk-litmus/patterns/1";

/// Version of [`LintLine`].
pub const LINT_SCHEMA: &str = "vk-litmus/lint/1";

/// A line of `lint --format json`: the findings in one shader.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LintLine {
    /// [`LINT_SCHEMA`].
    pub schema: String,
    /// The shader.
    pub file: String,
    /// The findings; each kind is `lint:` and the name of a rule.
    pub findings: Vec<FindingRecord>,
}

/// Patterns of shaders, in correct and in commonly wrong forms.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PatternsRecord {
    /// [`PATTERNS_SCHEMA`].
    pub schema: String,
    /// The patterns, sorted by name.
    pub patterns: Vec<PatternRecord>,
}

/// A pattern.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PatternRecord {
    /// Name of the pattern.
    pub name: String,
    /// The title.
    pub title: String,
    /// Its purpose, and why it is correct.
    pub about: String,
    /// Number of workgroups of the dispatch that is checked.
    pub grid: [u32; 3],
    /// Loop bound, as for `--unroll`, if the default is too small.
    pub unroll: Option<u32>,
    /// The assertion on every final state, as for `--assert`.
    pub assertion: String,
    /// The progress models under which it terminates.
    pub ends: String,
    /// The clauses that make it correct.
    pub clauses: Vec<String>,
    /// The forms; the correct one first.
    pub forms: Vec<PatternForm>,
}

/// A form of a pattern.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PatternForm {
    /// Name of the form, unique in its pattern.
    pub name: String,
    /// `right`, `racy`, `divergent` (a control barrier that not all invocations reach), or `wrong`:
    /// race-free, but the assertion fails.
    pub verdict: String,
    /// The reason.
    pub why: String,
    /// The line changes that fix it; a change with an empty `from` adds a line. Empty for a correct form.
    pub mend: Vec<PatternChange>,
    /// The shader in GLSL.
    pub glsl: String,
    /// The same as a litmus test.
    pub litmus: String,
}

/// A changed line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PatternChange {
    /// The line before the change.
    pub from: String,
    /// The line after the change.
    pub to: String,
}
