//! Instructions and the shapes of their operands.

use rspirv::spirv::{GlslStd450Op, Op};

use crate::texel::TexelFormat;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberKind {
    Bool,
    /// An integer of either signedness.
    Integer,
    Float,
}

/// The shape of an operand: a number, a vector, or a matrix by columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumberShape {
    pub kind: NumberKind,
    /// The width of each number; 32 for booleans.
    pub bits: u32,
    /// Components of a vector or column; 1 for a number.
    pub rows: u32,
    /// Columns of a matrix; 1 otherwise.
    pub columns: u32,
}

impl NumberShape {
    /// Returns the number of components.
    pub fn count(self) -> usize {
        self.rows as usize * self.columns as usize
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Operand<'a> {
    /// Its components.
    pub numbers: &'a [u64],
    /// Their shape.
    pub shape: NumberShape,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instruction {
    /// An instruction of core SPIR-V.
    Core(Op),
    /// An instruction of `GLSL.std.450`.
    Extended(GlslStd450Op),
    /// Unpacks a 32-bit texel to four components.
    Unpack(TexelFormat),
    /// Packs components to a 32-bit texel.
    Pack(TexelFormat),
}
