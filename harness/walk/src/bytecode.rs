//! Pre-decoded instructions of the fast path.

use arithmetic::{Computation, Instruction, MAX_OPERANDS, NumberShape};
use rspirv::spirv::Op;

use super::happens_before::ClassMap;
use super::race_check::MemoryAccessKind;
use super::scalar_kind::ScalarKind;
use super::slots::Slots;

/// A pre-decoded instruction.
#[derive(Clone, Copy, Debug, Default)]
// With an own tag, which is faster to branch on than one in unused values of a field.
#[repr(u8)]
pub(super) enum DecodedOp {
    /// Not decoded: the general path executes it.
    #[default]
    Undecoded,
    /// Its result aliases the slots of its operands.
    Nop,
    /// One operation for each component of a vector.
    PerComponent { first: u32, count: u32 },
    /// A binary operation on scalars, or a unary one with both operands the same.
    Binary { left: u32, right: u32, to: u32, op: Op, compute: Computation },
    /// Other scalar arithmetic, by index into [`DecodedFunction::arithmetic`](super::program::DecodedFunction::arithmetic).
    Arithmetic(u32),
    /// A selection between two scalars.
    Select { condition: u32, yes: u32, no: u32, to: u32 },
    /// A jump, by the number of the edge.
    Jump(u32),
    /// A jump to one of two edges.
    Branch { condition: u32, yes: u32, no: u32 },
    /// A scalar load, with the index of its access kinds.
    Load { pointer: u32, to: u32, offset: u32, access: u32, bytes: u8, is_bool: bool },
    /// A scalar store, with the index of its access kinds.
    Store { pointer: u32, value: u32, offset: u32, access: u32, bytes: u8 },
    /// An access chain, by index into [`DecodedFunction::chains`](super::program::DecodedFunction::chains).
    AccessChain { pointer: u32, to: u32, chain: u32 },
    /// A part of a composite, by index into [`DecodedFunction::extracts`](super::program::DecodedFunction::extracts).
    Extract(u32),
    /// Construction of a composite, by index into [`DecodedFunction::constructs`](super::program::DecodedFunction::constructs).
    Construct(u32),
    /// A reduction of all components, by index into [`DecodedFunction::reductions`](super::program::DecodedFunction::reductions).
    Reduce(u32),
    /// A function variable without an initializer.
    Variable { to: u32, id: u32, ty: u32, bytes: u32 },
    /// A load or store of a variable in slots.
    Move { from: u32, to: u32 },
    /// The start of the life of a variable in slots.
    Undefine { to: u32 },
    /// The start of a block that is entered by fallthrough.
    Label(u32),
}

/// The access kinds of a load or store by class, for memory that is not coherent and that is; `None` for an invalid one.
pub(super) type AccessKinds = ClassMap<[Option<MemoryAccessKind>; 2]>;

/// An edge of the control-flow graph.
#[derive(Clone, Debug, Default)]
pub(super) struct BlockEdge {
    /// The target block and the position of its label.
    pub target: u32,
    pub position: usize,
    /// The position after the target's phis.
    pub first_non_phi: usize,
    pub is_loop_header: bool,
    /// Headers of the loops that contain the target.
    pub enclosing_loops: Vec<u32>,
    /// The target's phis as moves (to, from); `None` if the target lists no such predecessor.
    pub phi_moves: Option<Vec<(u32, u32)>>,
}

/// Scalar arithmetic with any number of operands.
#[derive(Clone, Debug)]
pub(super) struct ArithmeticOp {
    pub instruction: Instruction,
    pub operands: [u32; MAX_OPERANDS],
    pub count: usize,
    pub to: u32,
    pub kind: ScalarKind,
    pub from: u32,
    pub bits: u32,
}

/// Construction of a composite other than a vector.
#[derive(Clone, Debug)]
pub(super) struct ConstructOp {
    pub parts: Vec<Slots>,
    pub to: u32,
}

/// A reduction over all components (dot product, matrix multiplication, packing).
#[derive(Clone, Debug)]
pub(super) struct ReduceOp {
    pub instruction: Instruction,
    pub operands: Vec<(Slots, NumberShape)>,
    pub result: NumberShape,
    pub to: Slots,
}

/// Extraction of a part of a composite.
#[derive(Clone, Debug)]
pub(super) struct ExtractOp {
    pub composite: u32,
    pub path: Vec<u32>,
    pub to: Slots,
}

/// An access chain with constant offset and dynamic indices.
#[derive(Clone, Debug, Default)]
pub(super) struct AccessChainOp {
    /// The pointee types before and after the chain.
    pub base: u32,
    pub ty: u32,
    pub offset: u64,
    pub coherent: bool,
    pub is_out_of_bounds: bool,
    pub stride: u64,
    pub indices: Vec<DynamicIndex>,
}

/// A dynamic index.
#[derive(Clone, Debug)]
pub(super) struct DynamicIndex {
    pub slot: u32,
    pub bits: u32,
    pub stride: u64,
    pub length: Option<u64>,
}
