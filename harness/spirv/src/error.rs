//! Why a module was not read, with the position.

use std::fmt;

/// A position in the file of a module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SourcePosition {
    /// No particular position.
    #[default]
    Module,
    /// A line of text, counted from 1.
    Line(u32),
    /// A word of a binary, counted from 0.
    Word(u32),
}

impl fmt::Display for SourcePosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SourcePosition::Module => Ok(()),
            SourcePosition::Line(line) => write!(f, "{line}: "),
            SourcePosition::Word(word) => write!(f, "word {word}: "),
        }
    }
}

/// Why a module was not read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}{what}")]
pub struct SpirvError {
    /// The position: a line of text, or a word.
    pub place: SourcePosition,
    pub what: SpirvProblem,
}

/// The reason of an error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpirvProblem {
    /// The text is not assembly.
    #[error("{0}")]
    Syntax(String),
    /// The words are not a module, or its instructions contradict each other.
    #[error("malformed module: {0}")]
    Malformed(String),
    #[error("not supported: {0}")]
    Unsupported(String),
    /// No such entry point, or none was named and several exist.
    #[error("{0}")]
    EntryPoint(String),
    #[error("more than {bound} {what}")]
    Budget {
        /// The limited quantity.
        what: &'static str,
        bound: usize,
    },
    #[error("annotation: {0}")]
    Annotation(String),
}

impl SpirvProblem {
    pub fn located_at(self, place: SourcePosition) -> SpirvError {
        SpirvError { place, what: self }
    }
}

pub(crate) fn malformed(what: impl Into<String>) -> SpirvProblem {
    SpirvProblem::Malformed(what.into())
}

pub(crate) fn unsupported(what: impl Into<String>) -> SpirvProblem {
    SpirvProblem::Unsupported(what.into())
}
