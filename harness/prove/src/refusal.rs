//! Reasons why there is no proof, with the place of each.

use std::fmt;

use spirv_reader::SourcePosition;

/// A reason why a kernel is not proved.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UnprovedReason {
    /// The stage has no model here.
    Stage,
    /// A function without a body.
    MissingFunction,
    /// More nodes, accesses or calls than the bounds.
    TooLarge,
    /// A jump into the middle of a loop.
    IrreducibleControlFlow,
    /// An instruction without a model of its effect.
    Instruction(String),
    /// A pointer whose variable is not known.
    UnknownPointer,
    /// A barrier that some invocations may not reach.
    DivergentBarrier,
    /// Two accesses that may conflict; the name of the variable. Atomics of the entry point may order them.
    Conflict { name: String, has_atomics: bool },
    /// The solver's budget ended.
    Budget,
    /// A given condition that cannot be read; the column counts from 1.
    Condition { text: String, column: usize, expected: String },
    /// The module is malformed.
    Malformed(String),
}

/// A reason why a kernel is not proved, and where.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Unproved {
    pub reason: UnprovedReason,
    /// The index of a source line in the module; 0 if unknown.
    pub line: u32,
    pub place: SourcePosition,
}

impl Unproved {
    pub fn new(reason: UnprovedReason) -> Unproved {
        Unproved { reason, line: 0, place: SourcePosition::Module }
    }
}

impl fmt::Display for UnprovedReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UnprovedReason::Stage => f.write_str("a stage other than compute, which may write shared memory"),
            UnprovedReason::MissingFunction => f.write_str("a function without a body"),
            UnprovedReason::TooLarge => f.write_str("the shader is too large"),
            UnprovedReason::IrreducibleControlFlow => f.write_str("irreducible control flow"),
            UnprovedReason::Instruction(name) => write!(f, "{name} has no model"),
            UnprovedReason::UnknownPointer => f.write_str("a pointer whose variable is not known"),
            UnprovedReason::DivergentBarrier => f.write_str("some invocations may not reach this barrier"),
            UnprovedReason::Conflict { name, has_atomics } => {
                let unless = if *has_atomics { ", unless atomics order them" } else { "" };
                write!(f, "two invocations may conflict on `{name}`{unless}")
            }
            UnprovedReason::Budget => f.write_str("the step budget ended"),
            UnprovedReason::Condition { text, column, expected } => {
                write!(f, "column {column} of the condition `{text}`: {expected}")
            }
            UnprovedReason::Malformed(what) => f.write_str(what),
        }
    }
}
