//! Mistakes in subgroup operations, and in subgroup barriers under branches.

use miette::Diagnostic;
use thiserror::Error;

use crate::span::Span;

/// The kind of a tangled instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TangledKind {
    /// A subgroup operation.
    Operation,
    /// A control barrier of the subgroup.
    Barrier,
}

impl std::fmt::Display for TangledKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            TangledKind::Operation => "operation",
            TangledKind::Barrier => "barrier",
        })
    }
}

/// An error in a subgroup operation, or in a subgroup barrier under a branch.
///
/// Its label states what was expected at that position.
#[derive(Clone, Debug, PartialEq, Eq, Error, Diagnostic)]
#[expect(missing_docs, reason = "the fields are the words of the messages")]
pub enum SubgroupError {
    #[error("unknown subgroup operation `{word}`")]
    #[diagnostic(code(litmus::subgroup::unknown_operation))]
    UnknownOperation {
        word: String,
        #[label(
            "expected elect, all, any, all_equal, ballot, broadcast, broadcast_first, shuffle, shuffle_xor, \
             shuffle_up, shuffle_down, rotate, quad_broadcast, quad_swap_horizontal, quad_swap_vertical, \
             quad_swap_diagonal, or reduce, inclusive or exclusive with an operation"
        )]
        span: Span,
    },
    #[error("`sg.{word}` without an operation that subgroups have")]
    #[diagnostic(code(litmus::subgroup::missing_arithmetic))]
    MissingArithmetic {
        word: String,
        #[label("expected `.add`, `.min`, `.max`, `.and`, `.or` or `.xor`")]
        span: Span,
    },
    #[error("clusters of {cluster} lanes")]
    #[diagnostic(code(litmus::subgroup::cluster))]
    ClusterSize {
        cluster: u32,
        #[label("expected a power of two, 64 at most")]
        span: Span,
    },
    #[error("instance `{id}` is executed in two subgroups, but an operation reaches the lanes of one")]
    #[diagnostic(
        code(litmus::subgroup::two_subgroups),
        help("an operation of another subgroup is a separate instance: give it another name")
    )]
    InstanceInTwoSubgroups {
        id: String,
        other: u32,
        #[label("expected in a thread of the subgroup of `P{other}`, which has this instance too")]
        span: Span,
    },
    #[error("instance `{id}` is another operation in `P{other}`")]
    #[diagnostic(
        code(litmus::subgroup::two_operations),
        help("lanes may differ only in their values and in the lane that they shuffle from")
    )]
    DifferentOperations {
        id: String,
        other: u32,
        #[label("expected the same operation with the same numbers in every lane")]
        span: Span,
    },
    #[error("barrier `{id}` has another scope or other semantics in `P{other}`")]
    #[diagnostic(
        code(litmus::subgroup::two_barriers),
        help("under a branch a barrier of the subgroup is one instruction for all lanes")
    )]
    DifferentBarriers {
        id: String,
        other: u32,
        #[label("expected the same scope and semantics in every lane")]
        span: Span,
    },
    #[error("a second {what} with instance `{id}` in one thread")]
    #[diagnostic(code(litmus::subgroup::repeated))]
    RepeatedInstance {
        what: TangledKind,
        id: String,
        #[label("expected an instance that the thread has not executed yet")]
        span: Span,
    },
    #[error(
        "a subgroup {what} in a loop: the specification does not define which lanes execute an \
         iteration together"
    )]
    #[diagnostic(code(litmus::subgroup::repeats), help("write each iteration with a separate instance"))]
    InstanceInLoop {
        what: TangledKind,
        #[label("expected outside loops")]
        span: Span,
    },
    #[error("a subgroup {what} skipped by a jump that does not form a block")]
    #[diagnostic(
        code(litmus::subgroup::no_block),
        help("`bne r0, 1, L` and `L:` enclose a block; blocks nest, and each has a separate label")
    )]
    SkippedOutsideBlock {
        what: TangledKind,
        #[label("expected only in blocks, that is between conditional branches and their labels")]
        span: Span,
    },
    #[error("block `{label}` has other operations and barriers than in `P{other}`")]
    #[diagnostic(
        code(litmus::subgroup::two_blocks),
        help(
            "a block is one part of the shader: lanes may differ only in instructions between its \
             operations"
        )
    )]
    DifferentBlocks {
        label: String,
        other: u32,
        #[label(
            "expected the same operations, barriers and blocks, in the same order and in the same blocks"
        )]
        span: Span,
    },
    /// The source lane may be skipped by a branch.
    #[error(
        "the result may be undefined: a branch may prevent lane {source_lane} from executing instance \
         `{id}`"
    )]
    #[diagnostic(code(litmus::subgroup::skipped_source), help("`broadcast_first` reads an active lane"))]
    SkippedSource {
        source_lane: u32,
        id: String,
        #[label("expected the lane itself, or `unused` for the register")]
        span: Span,
    },
    #[error("the result is undefined: lane {source_lane} does not execute instance `{id}`")]
    #[diagnostic(
        code(litmus::subgroup::undefined_result),
        help("if the lane does not use the result, write `unused` for its register")
    )]
    UndefinedResult {
        source_lane: String,
        id: String,
        lanes: String,
        #[label("expected a lane that executes it: {lanes}")]
        span: Span,
    },
    /// A value of another width than 32 bits.
    #[error("a value of {bits} bits in a subgroup operation")]
    #[diagnostic(code(litmus::subgroup::width))]
    ValueWidth {
        bits: u32,
        #[label("expected registers of 32 bits")]
        span: Span,
    },
}
