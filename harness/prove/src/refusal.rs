//! Reasons why there is no proof, with the place of each.

use spirv_reader::{SourcePosition, SpirvInstruction};
use thiserror::Error;

/// A reason why a kernel is not proved.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Error)]
pub enum UnprovedReason {
    /// The stage has no model here.
    #[error("a stage other than compute, which may write shared memory")]
    Stage,
    /// A function without a body.
    #[error("a function without a body")]
    MissingFunction,
    /// More nodes, accesses or calls than the bounds.
    #[error("the shader is too large")]
    TooLarge,
    /// A jump into the middle of a loop.
    #[error("irreducible control flow")]
    IrreducibleControlFlow,
    /// An instruction without a model of its effect.
    #[error("{0} has no model")]
    Instruction(String),
    /// A pointer whose variable is not known.
    #[error("a pointer whose variable is not known")]
    UnknownPointer,
    /// A barrier that some invocations may not reach.
    #[error("some invocations may not reach this barrier")]
    DivergentBarrier,
    /// Two accesses that may conflict; the name of the variable. Atomics of the entry point may order them.
    #[error("two invocations may conflict on `{name}`{}", if *has_atomics { ", unless atomics order them" } else { "" })]
    Conflict { name: String, has_atomics: bool },
    /// The solver's budget ended.
    #[error("the step budget ended")]
    Budget,
    /// An installed solver that gave no answer.
    #[error("{solver} failed: {why}")]
    Solver { solver: String, why: String },
    /// A given condition that cannot be read; the column counts from 1.
    #[error("column {column} of the condition `{text}`: {expected}")]
    Condition { text: String, column: usize, expected: String },
    /// The module is malformed.
    #[error("{0}")]
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

    /// Returns a reason at an instruction, if it is known.
    pub(crate) fn at(reason: UnprovedReason, instruction: Option<&SpirvInstruction>) -> Unproved {
        let (line, place) = instruction.map_or((0, SourcePosition::Module), |one| (one.line, one.place));
        Unproved { reason, line, place }
    }
}
