//! What a Khronos `.test` file says besides its program: forced values and queries.

use std::fmt;

use crate::span::Span;

/// The part of a `.test` file that no other syntax has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Khronos {
    /// The SATISFIABLE and NOSOLUTION lines, in order.
    pub queries: Vec<Query>,
    /// By thread and instruction the value that a read must return, where the line gives one.
    ///
    /// Values constrain reads-from and nothing else: a read reads from every write *through the same name* whose value
    /// is the same, and from the initial state where the value is 0. What is left open on both sides
    /// ([`NO_VALUE`]) is the same value too. A read that would need two sources makes the test contradictory; a value
    /// that nobody stores leaves its read free.
    pub read_values: Vec<Vec<Option<i64>>>,
}

/// The value of an access whose line gives none.
pub const NO_VALUE: i64 = -1;

impl Khronos {
    /// The value that the read of an instruction must return, [`NO_VALUE`] where the line gives none.
    pub fn read_value(&self, thread: usize, instruction: usize) -> i64 {
        let values = self.read_values.get(thread);
        values.and_then(|values| values.get(instruction).copied().flatten()).unwrap_or(NO_VALUE)
    }
}

/// A SATISFIABLE or NOSOLUTION line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// Which of the two.
    pub kind: QueryKind,
    /// Whether NOCHAINS follows: availability and visibility chains have a single element then.
    pub without_chains: bool,
    /// What an execution must meet: all of these.
    pub terms: Vec<QueryTerm>,
    /// The line as it stands, without the blanks around it.
    pub text: String,
    /// Where it stands.
    pub span: Span,
}

/// What a query claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueryKind {
    /// `SATISFIABLE`: some execution meets the terms.
    Satisfiable,
    /// `NOSOLUTION`: none does.
    NoSolution,
}

/// A demand on one execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueryTerm {
    /// `consistent[X]`: it keeps the axioms of the model.
    Consistent,
    /// `#dr=0` and the like: so many ordered pairs of accesses race.
    Races(SizeComparison, u32),
    /// `#rs>1` and the like: so many pairs are in a release sequence, each releasing write with itself included.
    ReleaseSequences(SizeComparison, u32),
}

/// How a size is compared with a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SizeComparison {
    /// `=`.
    Equal,
    /// `!=`.
    NotEqual,
    /// `<`.
    Less,
    /// `=<` or `<=`.
    LessOrEqual,
    /// `>`.
    Greater,
    /// `>=`.
    GreaterOrEqual,
}

impl SizeComparison {
    /// Whether the relation holds between a size and a number.
    pub fn holds(self, size: usize, number: u32) -> bool {
        let number = number as usize;
        match self {
            SizeComparison::Equal => size == number,
            SizeComparison::NotEqual => size != number,
            SizeComparison::Less => size < number,
            SizeComparison::LessOrEqual => size <= number,
            SizeComparison::Greater => size > number,
            SizeComparison::GreaterOrEqual => size >= number,
        }
    }
}

impl Query {
    /// A query in its canonical text.
    pub fn new(kind: QueryKind, without_chains: bool, terms: Vec<QueryTerm>) -> Query {
        let keyword = match kind {
            QueryKind::Satisfiable => "SATISFIABLE",
            QueryKind::NoSolution => "NOSOLUTION",
        };
        let chains = if without_chains { " NOCHAINS" } else { "" };
        let predicate: Vec<String> = terms.iter().map(QueryTerm::to_string).collect();
        let text = format!("{keyword}{chains} {}", predicate.join(" && "));
        Query { kind, without_chains, terms, text, span: Span::default() }
    }

    /// Whether the line is right, given whether some execution meets its terms.
    pub fn holds(&self, exists: bool) -> bool {
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
            QueryTerm::Races(comparison, number) => write!(f, "#dr{comparison}{number}"),
            QueryTerm::ReleaseSequences(comparison, number) => write!(f, "#rs{comparison}{number}"),
        }
    }
}

impl fmt::Display for SizeComparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SizeComparison::Equal => "=",
            SizeComparison::NotEqual => "!=",
            SizeComparison::Less => "<",
            SizeComparison::LessOrEqual => "=<",
            SizeComparison::Greater => ">",
            SizeComparison::GreaterOrEqual => ">=",
        })
    }
}
