//! Mistakes in subgroup operations, and in subgroup barriers under branches.

use miette::Diagnostic;
use thiserror::Error;
use vocabulary::closed_enum;

use crate::span::Span;

closed_enum! {
    /// The kind of a tangled instruction.
    pub enum TangledKind {
        /// A subgroup operation.
        Operation = "operation",
        /// A control barrier of the subgroup.
        Barrier = "barrier",
    }
}

mistakes! {
/// An error in a subgroup operation, or in a subgroup barrier under a branch.
///
/// Its label states what was expected at that position.
pub enum SubgroupError of subgroup {
    UnknownOperation unknown_operation { word: String }
        => "unknown subgroup operation `{word}`",
        "expected elect, all, any, all_equal, ballot, broadcast, broadcast_first, shuffle, shuffle_xor, \
         shuffle_up, shuffle_down, rotate, quad_broadcast, quad_swap_horizontal, quad_swap_vertical, \
         quad_swap_diagonal, or reduce, inclusive or exclusive with an operation";
    MissingArithmetic missing_arithmetic { word: String }
        => "`sg.{word}` without an operation that subgroups have",
        "expected `.add`, `.min`, `.max`, `.and`, `.or` or `.xor`";
    ClusterSize cluster { cluster: u32 }
        => "clusters of {cluster} lanes", "expected a power of two, 64 at most";
    InstanceInTwoSubgroups two_subgroups { id: String, other: u32 }
        => "instance `{id}` is executed in two subgroups, but an operation reaches the lanes of one",
        "expected in a thread of the subgroup of `P{other}`, which has this instance too",
        help "an operation of another subgroup is a separate instance: give it another name";
    DifferentOperations two_operations { id: String, other: u32 }
        => "instance `{id}` is another operation in `P{other}`",
        "expected the same operation with the same numbers in every lane",
        help "lanes may differ only in their values and in the lane that they shuffle from";
    DifferentBarriers two_barriers { id: String, other: u32 }
        => "barrier `{id}` has another scope or other semantics in `P{other}`",
        "expected the same scope and semantics in every lane",
        help "under a branch a barrier of the subgroup is one instruction for all lanes";
    RepeatedInstance repeated { what: TangledKind, id: String }
        => "a second {what} with instance `{id}` in one thread",
        "expected an instance that the thread has not executed yet";
    InstanceInLoop repeats { what: TangledKind }
        => "a subgroup {what} in a loop: the specification does not define which lanes execute an iteration together",
        "expected outside loops",
        help "write each iteration with a separate instance";
    SkippedOutsideBlock no_block { what: TangledKind }
        => "a subgroup {what} skipped by a jump that does not form a block",
        "expected only in blocks, that is between conditional branches and their labels",
        help "`bne r0, 1, L` and `L:` enclose a block; blocks nest, and each has a separate label";
    DifferentBlocks two_blocks { label: String, other: u32 }
        => "block `{label}` has other operations and barriers than in `P{other}`",
        "expected the same operations, barriers and blocks, in the same order and in the same blocks",
        help "a block is one part of the shader: lanes may differ only in instructions between its operations";
    /// The source lane may be skipped by a branch.
    SkippedSource skipped_source { source_lane: u32, id: String }
        => "the result may be undefined: a branch may prevent lane {source_lane} from executing instance `{id}`",
        "expected the lane itself, or `unused` for the register",
        help "`broadcast_first` reads an active lane";
    UndefinedResult undefined_result { source_lane: String, id: String, lanes: String }
        => "the result is undefined: lane {source_lane} does not execute instance `{id}`",
        "expected a lane that executes it: {lanes}",
        help "if the lane does not use the result, write `unused` for its register";
    /// A value of another width than 32 bits.
    ValueWidth width { bits: u32 }
        => "a value of {bits} bits in a subgroup operation", "expected registers of 32 bits";
}
}
