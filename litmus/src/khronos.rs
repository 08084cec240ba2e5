//! The parts of a Khronos `.test` file other than its program: forced values and queries.

use std::fmt;

use crate::comparison::Comparison;
use crate::span::Span;

/// The part of a `.test` file that no other syntax has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Khronos {
    /// The SATISFIABLE and NOSOLUTION lines, in order.
    pub queries: Vec<SatisfiabilityLine>,
    /// The value that a read must return, by thread and instruction; `None` if the line gives none.
    ///
    /// Values constrain reads-from only. A read reads from every write *through the same name* that has the
    /// same value, and from the initial state if the value is 0. [`NO_VALUE`] on both sides counts as the
    /// same value. A read that would need two sources makes the test contradictory. A value that no write
    /// stores leaves its read free.
    pub read_values: Vec<Vec<Option<i64>>>,
}

/// The value of an access whose line gives none.
pub const NO_VALUE: i64 = -1;

impl Khronos {
    /// Returns the value that the read must return; [`NO_VALUE`] if the line gives none.
    pub fn read_value(&self, thread: usize, instruction: usize) -> i64 {
        let values = self.read_values.get(thread);
        values.and_then(|values| values.get(instruction).copied().flatten()).unwrap_or(NO_VALUE)
    }
}

/// A SATISFIABLE or NOSOLUTION line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SatisfiabilityLine {
    /// The claim.
    pub kind: QueryKind,
    /// True if NOCHAINS follows: availability and visibility chains have a single element.
    pub without_chains: bool,
    /// The conjunction of terms that an execution must meet.
    pub terms: Vec<QueryTerm>,
    /// The line without surrounding blanks.
    pub text: String,
    /// The source position.
    pub span: Span,
}

/// The claim of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueryKind {
    /// `SATISFIABLE`: some execution meets the terms.
    Satisfiable,
    /// `NOSOLUTION`: none does.
    NoSolution,
}

/// A requirement on one execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueryTerm {
    /// `consistent[X]`: it keeps the axioms of the model.
    Consistent,
    /// `#dr=0` and similar: the number of ordered pairs of accesses that race.
    Races(Comparison, u32),
    /// `#rs>1` and similar: the number of pairs in release sequences; each releasing write forms a pair with
    /// itself.
    ReleaseSequences(Comparison, u32),
}

impl SatisfiabilityLine {
    /// Returns a query with its canonical text.
    pub fn new(kind: QueryKind, without_chains: bool, terms: Vec<QueryTerm>) -> SatisfiabilityLine {
        let keyword = match kind {
            QueryKind::Satisfiable => "SATISFIABLE",
            QueryKind::NoSolution => "NOSOLUTION",
        };
        let chains = if without_chains { " NOCHAINS" } else { "" };
        let predicate: Vec<String> = terms.iter().map(QueryTerm::to_string).collect();
        let text = format!("{keyword}{chains} {}", predicate.join(" && "));
        SatisfiabilityLine { kind, without_chains, terms, text, span: Span::default() }
    }

    /// Returns true if the claim is right, given the existence of an execution that meets the terms.
    pub fn is_correct(&self, exists: bool) -> bool {
        match self.kind {
            QueryKind::Satisfiable => exists,
            QueryKind::NoSolution => !exists,
        }
    }
}

impl fmt::Display for QueryTerm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QueryTerm::Consistent => f.write_str("consistent[X]"),
            QueryTerm::Races(comparison, number) => write!(f, "#dr{}{number}", size_sign(*comparison)),
            QueryTerm::ReleaseSequences(comparison, number) => {
                write!(f, "#rs{}{number}", size_sign(*comparison))
            }
        }
    }
}

/// Returns the sign of a comparison of a size.
fn size_sign(comparison: Comparison) -> &'static str {
    match comparison {
        Comparison::Equal => "=",
        Comparison::LessOrEqual => "=<",
        other => other.sign(),
    }
}
