//! Kernels for reading: one fixed dispatch, and where its results go.

use crate::contract::Parameters;

/// The only dispatch of a kernel: constants instead of push constants, so that a compiler folds everything
/// that depends on them, such as rounds, permutations and rendezvous. No slot is claimed. Such kernels are
/// for reading and for exploring machine code.
#[derive(Clone, Copy, Debug)]
pub struct FixedDispatch {
    pub parameters: Parameters,
    /// Where results are written.
    pub result_placement: ResultPlacement,
}

impl FixedDispatch {
    pub const SINGLE: FixedDispatch =
        FixedDispatch { parameters: Parameters::SINGLE, result_placement: ResultPlacement::Words };
}

/// Where kernels for reading write their results: a compiler optimizes by the uses of loaded values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ResultPlacement {
    /// Each in its own word of the result buffer, as in every kernel that is dispatched.
    #[default]
    Words,
    /// All results of a thread in one expression, in one word.
    Expression,
    /// As an output of the stage: a fragment's color, or a vertex position. No memory is written for them or
    /// for threads without results. Compute has no outputs, so its results are lost.
    Output,
}
