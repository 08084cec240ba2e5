//! Decodes instructions for the fast path.
//!
//! Decoding runs once per module and walk. An instruction that does not fit a [`DecodedOp`] stays undecoded,
//! which costs speed but changes no result.

use arithmetic::{Instruction, MAX_OPERANDS, computation, sign_extend};
use rspirv::spirv::{GlslStd450Op, Op, StorageClass};
use rustc_hash::FxHashMap;
use spirv_reader::{CompositeOperation, MemoryOperands, SpirvOperation, SpirvType};

use super::access::plain_access_kind;
use super::bytecode::{
    AccessChainOp, AccessKinds, ArithmeticOp, BlockEdge, ConstructOp, DecodedOp, DynamicIndex, ExtractOp,
    ReduceOp,
};
use super::execute::MAX_FUNCTION_VARIABLE;
use super::happens_before::CLASSES;
use super::program::{DecodedFunction, DecodedInstruction, DecodedProgram};
use super::scalar_kind::ScalarKind;
use super::slots::Slots;

impl DecodedFunction<'_> {
    /// Builds the edges of the control-flow graph, given the types of the function's results.
    pub fn find_edges(&mut self, program: &DecodedProgram<'_>, types: &FxHashMap<u32, u32>) {
        let (mut block, mut found) = (0, FxHashMap::default());
        let mut edges = Vec::new();
        for inst in &self.code {
            if inst.operation == SpirvOperation::Label {
                block = inst.raw.result;
            }
            for target in program.module.successors(types, &inst.raw) {
                found.entry((block, target)).or_insert_with(|| {
                    edges.push(self.build_edge(program, block, target));
                    (edges.len() - 1) as u32
                });
            }
        }
        (self.edges, self.edge_by_blocks) = (edges, found);
    }

    fn build_edge(&self, program: &DecodedProgram<'_>, from: u32, target: u32) -> BlockEdge {
        let position = self.labels.get(&target).copied().unwrap_or(0);
        let inside = |header: &u32| {
            let start = self.labels.get(header).copied().unwrap_or(0);
            let (merge, end) = self.loops.get(header).copied().unwrap_or((0, 0));
            target != merge && position >= start && position <= end
        };
        let enclosing_loops = self.loops.keys().copied().filter(inside).collect();
        let mut moves = Some(Vec::new());
        let mut after = position + 1;
        while let Some(inst) = self.code.get(after)
            && let SpirvOperation::Phi { sources } = inst.operation
        {
            let source = sources.iter().find(|[_, predecessor]| *predecessor == from);
            let from = source.map(|[value, _]| program.slots_of(*value)).filter(|from| from.has_value());
            let from = from.filter(|from| from.count == inst.result.count);
            moves = moves.zip(from).map(|(mut moves, from)| {
                moves.extend(inst.result.as_slice().iter().copied().zip(from.as_slice().iter().copied()));
                moves
            });
            after += 1;
        }
        BlockEdge {
            target,
            position,
            first_non_phi: after,
            is_loop_header: self.loops.contains_key(&target),
            enclosing_loops,
            phi_moves: moves,
        }
    }

    /// Decodes all instructions of the function.
    pub fn decode_instructions(&mut self, program: &DecodedProgram<'_>) {
        let mut block = 0;
        for at in 0..self.code.len() {
            let inst = self.code[at];
            if inst.operation == SpirvOperation::Label {
                block = inst.raw.result;
            }
            let jump = self.decode_jump(&inst, program, block);
            let decoded_op = jump.or_else(|| Decoder { program, function: self }.decode_op(&inst));
            self.decoded.push(decoded_op.unwrap_or_default());
        }
        self.following_nops = vec![0; self.decoded.len()];
        for at in (1..self.decoded.len()).rev() {
            if let DecodedOp::Nop = self.decoded[at] {
                self.following_nops[at - 1] = self.following_nops[at].saturating_add(1);
            }
        }
    }

    fn decode_jump(
        &self,
        inst: &DecodedInstruction<'_>,
        program: &DecodedProgram<'_>,
        block: u32,
    ) -> Option<DecodedOp> {
        let edge = |target: u32| self.edge_by_blocks.get(&(block, target)).copied();
        match inst.operation {
            SpirvOperation::Branch { target } => Some(DecodedOp::Jump(edge(target)?)),
            SpirvOperation::BranchConditional { condition, yes, no } => {
                let condition = program.slots_of(condition).single_slot()?;
                Some(DecodedOp::Branch { condition, yes: edge(yes)?, no: edge(no)? })
            }
            _ => None,
        }
    }
}

/// Decodes instructions and adds their operands to the tables of their function.
struct Decoder<'d, 'm> {
    program: &'d DecodedProgram<'d>,
    function: &'d mut DecodedFunction<'m>,
}

/// Adds a row to a table and returns its index.
fn add_row<T>(table: &mut Vec<T>, row: T) -> u32 {
    table.push(row);
    (table.len() - 1) as u32
}

/// An arithmetic instruction, with the kind and size of its operands and the size of its result.
#[derive(Clone, Copy)]
struct ArithmeticShape {
    instruction: Instruction,
    kind: ScalarKind,
    from: u32,
    bits: u32,
}

impl Decoder<'_, '_> {
    fn decode_op(&mut self, inst: &DecodedInstruction<'_>) -> Option<DecodedOp> {
        let program = self.program;
        // The result aliases the operands' slots, so nothing remains to do.
        if inst.raw.ty != 0 && !inst.result.has_value() && program.slots_of(inst.raw.result).has_value() {
            return Some(DecodedOp::Nop);
        }
        let one = |id: u32| program.slots_of(id).single_slot();
        let register = |id: u32| program.register_variables.get(&id).copied();
        Some(match inst.operation {
            SpirvOperation::AccessChain { .. } if register(inst.raw.result).is_some() => DecodedOp::Nop,
            SpirvOperation::Variable { .. } if let Some(slots) = register(inst.raw.result) => {
                self.decode_per_component(slots, |_, _, to| Some(DecodedOp::Undefine { to }))?
            }
            SpirvOperation::Load { pointer, .. } if let Some(slots) = register(pointer) => self
                .decode_per_component(inst.result, |_, index, to| {
                    Some(DecodedOp::Move { from: slots.component_slot(index)?, to })
                })?,
            SpirvOperation::Store { pointer, value, .. } if let Some(slots) = register(pointer) => self
                .decode_per_component(program.slots_of(value), |_, index, from| {
                    Some(DecodedOp::Move { from, to: slots.component_slot(index)? })
                })?,
            SpirvOperation::SelectionMerge { .. }
            | SpirvOperation::LoopMerge { .. }
            | SpirvOperation::Nop
            | SpirvOperation::Phi { .. } => DecodedOp::Nop,
            SpirvOperation::Load { pointer, memory } => self.decode_load(inst, pointer, memory)?,
            SpirvOperation::Store { pointer, value, memory } => self.decode_store(pointer, value, memory)?,
            SpirvOperation::Composite(CompositeOperation::Extract { composite, path }) => {
                let (composite, path) = (one(composite)?, path.to_vec());
                let extract = ExtractOp { composite, path, to: inst.result };
                DecodedOp::Extract(add_row(&mut self.function.extracts, extract))
            }
            SpirvOperation::AccessChain { base, element: None, indices } => {
                let chain = decode_chain(program, base, indices)?;
                let (pointer, to) = (one(base)?, inst.result.single_slot()?);
                DecodedOp::AccessChain { pointer, to, chain: add_row(&mut self.function.chains, chain) }
            }
            SpirvOperation::Select { condition, yes, no } => {
                let [condition, yes, no] = [condition, yes, no].map(|id| program.slots_of(id));
                if yes.count != inst.result.count || no.count != inst.result.count {
                    return None;
                }
                self.decode_per_component(inst.result, |_, index, to| {
                    let of = |slots: Slots| slots.component_slot(index);
                    Some(DecodedOp::Select { condition: of(condition)?, yes: of(yes)?, no: of(no)?, to })
                })?
            }
            SpirvOperation::Bitcast { value } => {
                self.decode_arithmetic(inst, Instruction::Core(Op::Bitcast), &[value])?
            }
            SpirvOperation::Compute { operands, .. }
                if program.has_exact_floats
                    && [inst.raw.ty]
                        .into_iter()
                        .chain(operands.first().map(|id| program.type_of(*id)))
                        .any(|ty| {
                            program.number_layout(ty).is_none_or(|(kind, ..)| kind == ScalarKind::Float)
                        }) =>
            {
                return None;
            }
            SpirvOperation::Compute { instruction: Instruction::Core(Op::VectorTimesScalar), operands } => {
                self.decode_arithmetic(inst, Instruction::Core(Op::FMul), operands)?
            }
            SpirvOperation::Compute { instruction, operands }
                if program.is_weak_success(instruction, operands) =>
            {
                return None;
            }
            SpirvOperation::Compute { instruction, operands } => match instruction.is_componentwise() {
                true => self.decode_arithmetic(inst, instruction, operands)?,
                false => self.decode_reduction(inst, instruction, operands)?,
            },
            SpirvOperation::Label => DecodedOp::Label(inst.raw.result),
            SpirvOperation::Variable { initializer: None } => {
                let (class, ty) = program.pointee_of(inst.raw.ty)?;
                let bytes = u32::try_from(program.type_size(ty))
                    .ok()
                    .filter(|bytes| *bytes as usize <= MAX_FUNCTION_VARIABLE)?;
                let to = inst.result.single_slot().filter(|_| class == StorageClass::Function)?;
                DecodedOp::Variable { to, id: inst.raw.result, ty, bytes }
            }
            SpirvOperation::Composite(CompositeOperation::Construct { parts }) => {
                self.decode_construct(inst, parts)?
            }
            _ => return None,
        })
    }

    fn decode_load(
        &mut self,
        inst: &DecodedInstruction<'_>,
        pointer: u32,
        memory: MemoryOperands,
    ) -> Option<DecodedOp> {
        let (kind, bytes) = self.memory_layout(inst.raw.ty)?;
        let (pointer, is_bool) = (self.program.slots_of(pointer).single_slot()?, kind == ScalarKind::Bool);
        let access = self.add_access_kinds(false, memory);
        self.decode_per_component(inst.result, |_, index, to| {
            let (offset, bytes) = (index as u32 * bytes, bytes as u8);
            Some(DecodedOp::Load { pointer, to, offset, access, bytes, is_bool })
        })
    }

    fn decode_store(&mut self, pointer: u32, value: u32, memory: MemoryOperands) -> Option<DecodedOp> {
        let program = self.program;
        let (_, bytes) = self.memory_layout(program.type_of(value))?;
        let pointer = program.slots_of(pointer).single_slot()?;
        let access = self.add_access_kinds(true, memory);
        self.decode_per_component(program.slots_of(value), |_, index, value| {
            let (offset, bytes) = (index as u32 * bytes, bytes as u8);
            Some(DecodedOp::Store { pointer, value, offset, access, bytes })
        })
    }

    /// Returns the kind and the bytes of each number of a value that is not a pointer.
    fn memory_layout(&self, ty: u32) -> Option<(ScalarKind, u32)> {
        let (kind, bits, _) = self.program.number_layout(ty)?;
        (kind != ScalarKind::Address).then(|| (kind, bits.div_ceil(8)))
    }

    fn decode_construct(&mut self, inst: &DecodedInstruction<'_>, parts: &[u32]) -> Option<DecodedOp> {
        match self.program.module.types.get(&inst.raw.ty)? {
            SpirvType::Struct { .. } | SpirvType::Array { .. } | SpirvType::Matrix { .. } => {}
            _ => return None,
        }
        let parts = parts.iter().map(|id| self.program.slots_of(*id)).collect();
        let construct = ConstructOp { parts, to: inst.result.single_slot()? };
        Some(DecodedOp::Construct(add_row(&mut self.function.constructs, construct)))
    }

    /// Adds the access kinds of a load or store and returns their index.
    fn add_access_kinds(&mut self, writes: bool, memory: MemoryOperands) -> u32 {
        let mut kinds = AccessKinds::default();
        for class in CLASSES.iter() {
            kinds[class] = [false, true]
                .map(|coherent| plain_access_kind(self.program, class, coherent, writes, memory).ok());
        }
        add_row(&mut self.function.access_kinds, kinds)
    }

    /// Decodes an operation for each component of a vector, or for a scalar.
    fn decode_per_component(
        &mut self,
        slots: Slots,
        mut one: impl FnMut(&mut Self, usize, u32) -> Option<DecodedOp>,
    ) -> Option<DecodedOp> {
        if slots.count == 0 {
            return one(self, 0, slots.single_slot()?);
        }
        let all = slots.as_slice().iter().enumerate().map(|(index, slot)| one(self, index, *slot));
        let all = all.collect::<Option<Vec<_>>>()?;
        let first = self.function.component_ops.len() as u32;
        self.function.component_ops.extend(all);
        Some(DecodedOp::PerComponent { first, count: slots.count.into() })
    }

    /// Decodes componentwise arithmetic.
    fn decode_arithmetic(
        &mut self,
        inst: &DecodedInstruction<'_>,
        instruction: Instruction,
        operands: &[u32],
    ) -> Option<DecodedOp> {
        let program = self.program;
        let (kind, from, _) = program.number_layout(program.type_of(*operands.first()?))?;
        let (to, bits, _) = program.number_layout(inst.raw.ty)?;
        let changes_width = match instruction {
            Instruction::Core(Op::Bitcast) => from != bits,
            Instruction::Extended(GlslStd450Op::Ldexp) => program.number_bits(*operands.get(1)?) != 32,
            _ => false,
        };
        let vectors = inst.result.count == 0 && operands.iter().any(|id| program.slots_of(*id).count > 0);
        if kind == ScalarKind::Address
            || to == ScalarKind::Address
            || changes_width
            || vectors
            || operands.len() > MAX_OPERANDS
        {
            return None;
        }
        let shape = ArithmeticShape { instruction, kind, from, bits };
        self.decode_per_component(inst.result, |found, index, to| {
            found.decode_scalar_arithmetic(shape, operands, index, to)
        })
    }

    /// Decodes arithmetic on all components together.
    fn decode_reduction(
        &mut self,
        inst: &DecodedInstruction<'_>,
        instruction: Instruction,
        operands: &[u32],
    ) -> Option<DecodedOp> {
        let program = self.program;
        let shape = |ty: u32| match program.number_shapes(ty)[..] {
            [shape] => Some(shape),
            _ => None,
        };
        let numbers = |id: &u32| Some((program.slots_of(*id), shape(program.type_of(*id))?));
        let all = operands.iter().map(numbers).collect::<Option<Vec<_>>>()?;
        let result = shape(inst.raw.ty)?;
        if result.columns > 1 || all.len() > MAX_OPERANDS || result.count() != inst.result.as_slice().len() {
            return None;
        }
        let reduce = ReduceOp { instruction, operands: all, result, to: inst.result };
        Some(DecodedOp::Reduce(add_row(&mut self.function.reductions, reduce)))
    }

    fn decode_scalar_arithmetic(
        &mut self,
        shape: ArithmeticShape,
        operands: &[u32],
        index: usize,
        to: u32,
    ) -> Option<DecodedOp> {
        let mut slots = [0; MAX_OPERANDS];
        for (slot, id) in slots.iter_mut().zip(operands) {
            *slot = self.program.slots_of(*id).component_slot(index)?;
        }
        let ArithmeticShape { instruction, kind, from, bits } = shape;
        if let (Instruction::Core(op), 1 | 2) = (instruction, operands.len())
            && let Some(compute) = computation(op, kind.to_arithmetic(), from, bits)
        {
            let (left, right) = (slots[0], slots[operands.len() - 1]);
            return Some(DecodedOp::Binary { left, right, to, op, compute });
        }
        let count = operands.len();
        let arithmetic = ArithmeticOp { instruction, operands: slots, count, to, kind, from, bits };
        Some(DecodedOp::Arithmetic(add_row(&mut self.function.arithmetic, arithmetic)))
    }
}

/// Decodes a chain of constant offsets and array indices; returns `None` for others.
fn decode_chain(program: &DecodedProgram<'_>, base: u32, indices: &[u32]) -> Option<AccessChainOp> {
    let (_, base) = program.pointee_of(program.type_of(base))?;
    let mut all = AccessChainOp { base, ty: base, ..AccessChainOp::default() };
    for id in indices {
        let known = program.specialized.constant_number(*id);
        let ty = std::mem::take(&mut all.ty);
        all.stride = 0;
        let part = match program.module.types.get(&ty)? {
            SpirvType::Struct { .. } => {
                let part = program.specialized.part_of(ty, known?).ok()?;
                let decorations = program.module.member_decorations.get(&(ty, known? as u32));
                if decorations.is_some_and(|known| known.matrix_stride.is_some_and(|stride| stride > 0)) {
                    return None;
                }
                all.offset = all.offset.wrapping_add(part.offset);
                all.coherent |= decorations.is_some_and(|known| known.coherent || known.volatile);
                all.ty = part.ty;
                continue;
            }
            SpirvType::Array { .. } | SpirvType::RuntimeArray { .. } => {
                let part = program.specialized.part_of(ty, 0).ok()?;
                all.stride = part.stride?;
                part
            }
            SpirvType::Vector { .. } => program.specialized.part_of(ty, 0).ok()?,
            _ => return None,
        };
        let (stride, length) = (part.stride?, part.length);
        all.ty = part.ty;
        let (_, bits, None) = program.number_layout(program.type_of(*id))? else { return None };
        match known {
            Some(index) => {
                let index = sign_extend(index, bits) as u64;
                all.offset = all.offset.wrapping_add(stride.wrapping_mul(index));
                all.is_out_of_bounds |= length.is_some_and(|length| index >= length);
            }
            None => {
                let slot = program.slots_of(*id).single_slot()?;
                all.indices.push(DynamicIndex { slot, bits, stride, length });
            }
        }
    }
    Some(all)
}
