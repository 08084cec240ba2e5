//! What a test says about itself besides the program: the metadata lines between its name and the first `{`.

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
    /// `reconvergence: maximal`: the shader declares `MaximallyReconvergesKHR`, so that lanes which a branch has parted are
    /// together again behind it.
    pub maximal_reconvergence: bool,
    /// `origin:` where the shape comes from (paper, suite, bug report).
    pub origin: Option<String>,
    /// `why:` lines: the reason for the verdict, in prose.
    pub why: Vec<String>,
    /// Every other line of the header, as it stands (quoted comments of other tools).
    pub comments: Vec<String>,
    /// Lines of the form `key: value` whose key is not known: `(key, place)`. An error in our own corpus, a warning elsewhere.
    pub unknown_keys: Vec<(String, Span)>,
}

/// One `expect: MODEL allowed|forbidden [free|racy [uninitialised]]` line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expectation {
    /// Name of the model (such as `vulkan`, `sc`).
    pub model: String,
    /// Whether some allowed outcome meets the condition of the question. For `forall`, whether some allowed outcome
    /// misses the condition: `forbidden` always means that the question holds the stronger promise.
    pub reachability: Reachability,
    /// Whether the program is race-free, where the line says so.
    pub race: Option<Race>,
    /// Whether some read is uninitialised; said only where the line says something of races.
    pub uninitialised: bool,
    /// Where the line stands.
    pub span: Span,
}

/// What an `expect:` line says about the outcome asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reachability {
    /// Some consistent execution shows it.
    Allowed,
    /// No consistent execution shows it.
    Forbidden,
}

/// One `terminates: weak|strong MODEL… | none` line: the progress models under which every run ends. Under others it may
/// hang. Where only `weak` is given, the same holds under strong fairness.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TerminationExpectation {
    /// Strong fairness instead of weak.
    pub strong: bool,
    /// Progress models by name (such as `fair`, `hsa-obe`); none where it may hang under all.
    pub models: Vec<String>,
    /// Where the line stands.
    pub span: Span,
}

impl Metadata {
    /// The progress models under which every run ends, as far as the header says.
    pub fn terminates_under(&self, strong: bool) -> Option<&[String]> {
        let line = |strong| self.terminations.iter().find(|line| line.strong == strong);
        line(strong).or_else(|| line(false)).map(|line| line.models.as_slice())
    }
}
