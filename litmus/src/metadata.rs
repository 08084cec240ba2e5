//! The metadata of a test: the header lines between its name and the first `{`.

use crate::outcome::Race;
use crate::span::Span;

/// The header of a test after its name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    /// `expect:` lines, in order.
    pub expectations: Vec<Expectation>,
    /// `terminates:` lines, in order.
    pub terminations: Vec<TerminationExpectation>,
    /// `clause:` identifiers of the clause inventory that the test discriminates (such as `VK-SW-01`).
    pub clauses: Vec<String>,
    /// `needs:` device features beyond those that the program itself implies.
    pub needs: Vec<String>,
    /// `reconvergence: maximal`: the shader declares `MaximallyReconvergesKHR`, so that lanes that diverged
    /// at a branch reconverge after it.
    pub maximal_reconvergence: bool,
    /// `origin:` the source of the shape (paper, suite, bug report).
    pub origin: Option<String>,
    /// `why:` lines: the reason for the verdict, in prose.
    pub why: Vec<String>,
    /// Every other line of the header, unchanged (quoted comments of other tools).
    pub comments: Vec<String>,
    /// Lines of the form `key: value` with an unknown key, as `(key, position)`. An error in our own corpus,
    /// a warning elsewhere.
    pub unknown_keys: Vec<(String, Span)>,
}

/// One `expect: MODEL allowed|forbidden [free|racy [uninitialised]]` line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expectation {
    /// Name of the model (such as `vulkan`, `sc`).
    pub model: String,
    /// States whether the condition of the question is reachable.
    ///
    /// For `exists`: whether some allowed outcome meets the condition. For `forall`: whether some allowed
    /// outcome misses it. So `forbidden` always is the stronger claim.
    pub reachability: Reachability,
    /// The expected race freedom, if the line states it.
    pub race: Option<Race>,
    /// True if some read is uninitialised. Only set on lines that also state race freedom.
    pub uninitialised: bool,
    /// The source position.
    pub span: Span,
}

/// The expectation of an `expect:` line about the outcome in question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reachability {
    /// Some consistent execution shows it.
    Allowed,
    /// No consistent execution shows it.
    Forbidden,
}

/// One `terminates: weak|strong MODEL… | none` line: the progress models under which every run ends.
///
/// Under all other models it may hang. If only `weak` is given, the same holds under strong fairness.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TerminationExpectation {
    /// True for strong fairness, false for weak.
    pub strong: bool,
    /// Names of progress models (such as `fair`, `hsa-obe`); empty if the test may hang under all.
    pub models: Vec<String>,
    /// The source position.
    pub span: Span,
}

impl Metadata {
    /// Returns the progress models under which every run ends, if the header states them.
    pub fn terminating_models(&self, strong: bool) -> Option<&[String]> {
        let line = |strong| self.terminations.iter().find(|line| line.strong == strong);
        line(strong).or_else(|| line(false)).map(|line| line.models.as_slice())
    }
}
