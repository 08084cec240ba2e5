//! Accesses to memory.

use super::instruction::{ArithmeticOperation, Operand};
use super::strength::{Scope, Semantics};

/// How a load or store accesses memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// Plain and private ([private vs. non-private]: `#memory-model-non-private`).
    Private,
    /// `.nonpriv`: plain and non-private, without an availability or visibility operation.
    NonPrivate,
    /// `.av` on a store, `.vis` on a load: plain, non-private, with a per-instruction availability or visibility
    /// operation at `scope` (`#memory-model-instruction-av-vis`).
    Coherent {
        /// Scope whose domain the operation targets or reads from.
        scope: Scope,
    },
    /// `.atom`: atomic, which implies non-private and an availability or visibility operation at its own scope.
    Atomic {
        /// Memory scope.
        scope: Scope,
        /// Memory semantics.
        semantics: Semantics,
    },
}

/// What a read-modify-write computes from the old value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RmwOperation {
    /// Writes the operand.
    Exchange(Operand),
    /// Writes old `operation` operand.
    Fetch(ArithmeticOperation, Operand),
    /// `.cas`: writes `value` if the old value equals `compare`; otherwise it is an atomic read with `unequal` semantics.
    CompareExchange {
        /// What the old value is compared with.
        compare: Operand,
        /// What is written when they are equal.
        value: Operand,
        /// Semantics of the failing case.
        unequal: Semantics,
    },
}
