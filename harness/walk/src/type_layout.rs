//! Memory layouts of types.

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

/// The memory layout of a type.
#[derive(Clone, Debug)]
pub(super) enum TypeLayout {
    Scalar {
        kind: ScalarKind,
        bits: u32,
    },
    Vector {
        element: u32,
        count: u32,
        kind: ScalarKind,
        bits: u32,
    },
    Matrix {
        column: u32,
        count: u32,
        rows: u32,
        bytes: u32,
    },
    Array {
        element: u32,
        stride: u64,
        length: Option<u64>,
    },
    Struct {
        members: Vec<MemberLayout>,
    },
    Image,
    /// A type without bytes: samplers and cooperative matrices.
    Handle,
    Void,
}

/// A member of a structure.
#[derive(Clone, Copy, Debug)]
pub(super) struct MemberLayout {
    pub offset: u64,
    pub ty: u32,
    pub coherent: bool,
    /// Bytes between columns or rows of a matrix member; 0 for other members.
    pub matrix_stride: u32,
    pub row_major: bool,
}
