//! The kinds of scalars.

/// The kind of a scalar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScalarKind {
    Bool,
    Integer,
    Float,
    Address,
}

impl ScalarKind {
    /// Converts to the kind for arithmetic, which treats addresses as integers.
    pub fn to_arithmetic(self) -> arithmetic::NumberKind {
        match self {
            ScalarKind::Bool => arithmetic::NumberKind::Bool,
            ScalarKind::Integer | ScalarKind::Address => arithmetic::NumberKind::Integer,
            ScalarKind::Float => arithmetic::NumberKind::Float,
        }
    }
}
