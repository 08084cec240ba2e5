//! Lowers arithmetic. Composites are consecutive registers. Word arithmetic runs lane by lane in one
//! operation; all other instructions run once per number.

use arithmetic::{Instruction, NumberKind, NumberShape};
use rspirv::spirv::Op as SpirvOp;
use spirv_reader::SpirvType;
use vocabulary::StorageClass;

use super::{LoweredValue, Lowering};
use crate::instruction::{LoadError, LocatedInstruction, malformed_module};
use crate::module::LoadedModule;
use crate::program::{Binary, NumberInstruction, Op, ReferencePlace, Register};

impl Lowering<'_> {
    pub(super) fn lower_composite_extract(&mut self, composite: u32, path: &[u32]) -> Result<(), LoadError> {
        let to = self.pending_register(self.current.result_id()?)?;
        let first = self.awaited_register(composite)?;
        let ty = self.types.get(&composite).copied().unwrap_or(0);
        let (part, before) = self.type_at_path(ty, path)?;
        self.emit_copies(to, first + before, self.module.registers_of(part).unwrap_or(1));
        Ok(())
    }

    pub(super) fn lower_composite_insert(
        &mut self,
        [value, composite]: [u32; 2],
        path: &[u32],
    ) -> Result<(), LoadError> {
        let (ty, to) = (self.current.result_type_id()?, self.pending_register(self.current.result_id()?)?);
        let from = self.awaited_register(value)?;
        let whole = self.awaited_register(composite)?;
        let (part, before) = self.type_at_path(ty, path)?;
        self.emit_copies(to, whole, self.width_of(self.current.result_id()?));
        self.emit_copies(to + before, from, self.module.registers_of(part).unwrap_or(1));
        Ok(())
    }

    pub(super) fn lower_composite_construct(&mut self, parts: &[u32]) -> Result<(), LoadError> {
        let to = self.pending_register(self.current.result_id()?)?;
        let mut next = 0;
        for id in parts {
            let from = self.awaited_register(*id)?;
            let count = self.width_of(*id);
            if next + count > self.width_of(self.current.result_id()?) {
                return Err(malformed_module(self.current.word, "more members than the composite has"));
            }
            self.emit_copies(to + next, from, count);
            next += count;
        }
        Ok(())
    }

    pub(super) fn lower_vector_shuffle(
        &mut self,
        [left, right]: [u32; 2],
        components: &[u32],
    ) -> Result<(), LoadError> {
        let to = self.pending_register(self.current.result_id()?)?;
        let (first, second) = (self.awaited_register(left)?, self.awaited_register(right)?);
        let (_, of_left) = self.component_layout(left)?;
        let (_, of_right) = self.component_layout(right)?;
        let each = (self.width_of(left) / of_left.max(1)).max(1);
        for (component, index) in (0..).zip(components) {
            let from = match *index {
                index if index < of_left => first + index * each,
                index if index - of_left < of_right => second + (index - of_left) * each,
                // A selected component that does not exist is undefined.
                _ => first,
            };
            self.emit_copies(to + component * each, from, each);
        }
        Ok(())
    }

    pub(super) fn lower_vector_extract(&mut self, vector: u32, index: u32) -> Result<(), LoadError> {
        let (from, to) = (self.awaited_register(vector)?, self.pending_register(self.current.result_id()?)?);
        let (each, words) = (self.width_of(self.current.result_id()?), self.width_of(vector));
        let index = self.emit_word_index(index, each)?;
        for offset in 0..each {
            self.program.ops.push(Op::ReadIndexed { to: to + offset, from, offset, index, words });
        }
        Ok(())
    }

    pub(super) fn lower_vector_insert(
        &mut self,
        [vector, component, index]: [u32; 3],
    ) -> Result<(), LoadError> {
        let to = self.pending_register(self.current.result_id()?)?;
        let (all, from) = (self.awaited_register(vector)?, self.awaited_register(component)?);
        let (each, words) = (self.width_of(component), self.width_of(vector));
        let index = self.emit_word_index(index, each)?;
        self.emit_copies(to, all, words);
        for offset in 0..each {
            self.program.ops.push(Op::WriteIndexed { to, offset, index, from: from + offset, words });
        }
        Ok(())
    }

    /// Lowers the length of the last member of a block.
    pub(super) fn lower_array_length(&mut self, block: u32, member: u32) -> Result<(), LoadError> {
        let LoweredValue::MemoryVariable { reference, ty } = self.lowered_value(block)? else {
            return Err(self.current.unsupported_error(" of this type"));
        };
        let array = match self.module.type_of(ty) {
            Some(SpirvType::Struct { members }) => members.get(member as usize).copied(),
            _ => {
                return Err(malformed_module(
                    self.current.word,
                    "a member of a type that is not a structure",
                ));
            }
        };
        let array = array.ok_or_else(|| malformed_module(self.current.word, "no such member"))?;
        let Some(SpirvType::RuntimeArray { element } | SpirvType::Array { element, .. }) =
            self.module.type_of(array)
        else {
            return Err(malformed_module(self.current.word, "the length of an operand that is not an array"));
        };
        let stride = self.module.stride_of(array, *element).max(1);
        let (to, offset) =
            (self.pending_register(self.current.result_id()?)?, self.module.offset_of(ty, member));
        self.program.ops.push(Op::ArrayLength { to, reference, offset, stride });
        Ok(())
    }

    /// Lowers a computation on numbers.
    pub(super) fn lower_arithmetic(
        &mut self,
        instruction: Instruction,
        operands: &[u32],
    ) -> Result<(), LoadError> {
        match (instruction, operands) {
            (Instruction::Core(SpirvOp::UConvert), [id])
                if self.width_of(*id) == self.width_of(self.current.result_id()?) =>
            {
                self.lower_size_conversion(*id)
            }
            (Instruction::Core(op), [first, second]) if word_operation(op).is_some() => {
                self.lower_binary([*first, *second])
            }
            _ => self.lower_per_number(instruction, operands),
        }
    }

    /// Returns the register of a computed index, in words.
    fn emit_word_index(&mut self, index: u32, each: u32) -> Result<Register, LoadError> {
        let index = self.awaited_register(index)?;
        if each == 1 {
            return Ok(index);
        }
        let (right, to) = (self.constant_register(each), self.new_register());
        self.program.ops.push(Op::Binary { op: Binary::Multiply, to, left: index, right });
        Ok(to)
    }

    /// Returns the component width in bits and the number of components; 32 bits for a boolean.
    fn component_layout(&self, id: u32) -> Result<(u32, u32), LoadError> {
        let shapes = self.types.get(&id).map(|ty| self.module.number_shapes(*ty)).unwrap_or_default();
        match shapes[..] {
            [NumberShape { bits, rows, columns: 1, .. }] => Ok((bits, rows)),
            _ => Err(self.current.unsupported_error(" of this type")),
        }
    }

    pub(super) fn lower_bitcast(&mut self, id: u32) -> Result<(), LoadError> {
        let result = self.current.result_id()?;
        if let Some(SpirvType::Pointer { pointee: to, .. }) =
            self.module.type_of(self.current.result_type_id()?)
        {
            let word = self.addresses.get(&id).copied();
            let word = word.ok_or_else(|| {
                LoadError::Unsupported(
                    "OpBitcast to a pointer from a value that is not an address in the push constants".into(),
                )
            })?;
            let reference = self.add_reference(result, ReferencePlace::Address(word), StorageClass::Buffer);
            self.lowered_values.insert(result, LoweredValue::MemoryVariable { reference, ty: *to });
            return Ok(());
        }
        let ((before, _), (after, _)) = (self.component_layout(id)?, self.component_layout(result)?);
        let width = self.width_of(result);
        if before.min(after) < 32 && before != after || width != self.width_of(id) {
            return self.lower_per_number(Instruction::Core(SpirvOp::Bitcast), &[id]);
        }
        let from = self.awaited_register(id)?;
        let to = self.pending_register(result)?;
        self.emit_copies(to, from, width);
        Ok(())
    }

    /// Lowers a size conversion of integers.
    fn lower_size_conversion(&mut self, id: u32) -> Result<(), LoadError> {
        let result = self.current.result_id()?;
        let ((before, _), (after, _)) = (self.component_layout(id)?, self.component_layout(result)?);
        let from = self.awaited_register(id)?;
        let to = self.pending_register(result)?;
        for word in 0..self.width_of(result) {
            let (to, left) = (to + word, from + word);
            match after {
                8 | 16 if after < before => {
                    let right = if after == 8 { self.fixed.byte } else { self.fixed.half };
                    self.program.ops.push(Op::Binary { op: Binary::And, to, left, right });
                }
                _ => self.emit_copies(to, left, 1),
            }
        }
        Ok(())
    }

    fn lower_binary(&mut self, operands: [u32; 2]) -> Result<(), LoadError> {
        if let Some(from) = self.load_independent_constant(self.current) {
            let to = self.pending_register(self.current.result_id()?)?;
            self.emit_copies(to, from, 1);
            return Ok(());
        }
        let instruction = Instruction::Core(self.current.op);
        let Some((op, swapped)) = word_operation(self.current.op) else {
            return self.lower_per_number(instruction, &operands);
        };
        let [first, second] = if swapped { [operands[1], operands[0]] } else { operands };
        let (bits, count) = self.component_layout(first)?;
        let shift = matches!(op, Binary::ShiftLeft | Binary::ShiftRight);
        let (other, of_second) = self.component_layout(second)?;
        if of_second != count || !shift && other != bits {
            return Err(malformed_module(self.current.word, "operands of different sizes"));
        }
        if self.width_of(self.current.result_id()?) < count {
            return Err(self.current.unsupported_error(" of this type"));
        }
        let by_bits = matches!(op, Binary::And | Binary::Or | Binary::Xor);
        if bits != 32 && !by_bits || shift && other != 32 {
            return self.lower_per_number(instruction, &operands);
        }
        let (left, right) = (self.awaited_register(first)?, self.awaited_register(second)?);
        let to = self.pending_register(self.current.result_id()?)?;
        for word in 0..self.width_of(self.current.result_id()?) {
            let (to, left, right) = (to + word, left + word, right + word);
            self.program.ops.push(Op::Binary { op, to, left, right });
        }
        Ok(())
    }

    /// Lowers an instruction that runs once per number.
    fn lower_per_number(&mut self, instruction: Instruction, ids: &[u32]) -> Result<(), LoadError> {
        let mut operands = Vec::new();
        for id in ids {
            let shapes = self.types.get(id).map(|ty| self.module.number_shapes(*ty)).unwrap_or_default();
            let [shape] = shapes[..] else { return Err(unsupported_instruction(self.current, instruction)) };
            operands.push((self.awaited_register(*id)?, shape));
        }
        let result = self.module.number_shapes(self.current.result_type_id()?);
        let shapes: Vec<NumberShape> = operands.iter().map(|(_, shape)| *shape).collect();
        if !instruction.is_known(&shapes, &result) {
            return Err(unsupported_instruction(self.current, instruction));
        }
        let to = self.pending_register(self.current.result_id()?)?;
        let number = self.program.number_instructions.len() as u32;
        self.program.number_instructions.push(NumberInstruction { instruction, to, result, operands });
        self.program.ops.push(Op::Apply { number });
        Ok(())
    }
}

impl LoadedModule<'_> {
    /// Returns the shapes of a type: one, or one for each member of a structure.
    pub fn number_shapes(&self, ty: u32) -> Vec<NumberShape> {
        let (mut shape, element) = match self.type_of(ty) {
            Some(SpirvType::Bool) => {
                (NumberShape { kind: NumberKind::Bool, bits: 32, rows: 1, columns: 1 }, None)
            }
            Some(SpirvType::Integer { bits, .. }) => {
                (NumberShape { kind: NumberKind::Integer, bits: *bits, rows: 1, columns: 1 }, None)
            }
            Some(SpirvType::Float { bits }) => {
                (NumberShape { kind: NumberKind::Float, bits: *bits, rows: 1, columns: 1 }, None)
            }
            Some(SpirvType::Vector { element, count }) => {
                (NumberShape { kind: NumberKind::Bool, bits: 0, rows: *count, columns: 1 }, Some(*element))
            }
            Some(SpirvType::Matrix { column, count }) => {
                (NumberShape { kind: NumberKind::Bool, bits: 0, rows: 1, columns: *count }, Some(*column))
            }
            Some(SpirvType::Struct { members }) => {
                return members.iter().flat_map(|member| self.number_shapes(*member)).collect();
            }
            _ => return Vec::new(),
        };
        if let Some(element) = element {
            let [inner] = self.number_shapes(element)[..] else { return Vec::new() };
            (shape.kind, shape.bits, shape.rows) = (inner.kind, inner.bits, shape.rows * inner.rows);
        }
        vec![shape]
    }
}

fn unsupported_instruction(placed: &LocatedInstruction, instruction: Instruction) -> LoadError {
    match instruction {
        Instruction::Extended(op) => LoadError::Unsupported(format!("OpExtInst {op:?} of this type")),
        Instruction::Core(_) | Instruction::Unpack(_) | Instruction::Pack(_) => {
            placed.unsupported_error(" of this type")
        }
    }
}

/// Returns true if the instruction is an operation on two numbers.
pub(super) fn is_arithmetic(op: SpirvOp) -> bool {
    word_operation(op).is_some()
}

/// Returns the operation, and true if its operands are swapped.
fn word_operation(op: SpirvOp) -> Option<(Binary, bool)> {
    use Binary as B;
    Some(match op {
        SpirvOp::IAdd => (B::Add, false),
        SpirvOp::ISub => (B::Subtract, false),
        SpirvOp::IMul => (B::Multiply, false),
        SpirvOp::UDiv => (B::Divide, false),
        SpirvOp::UMod => (B::Modulo, false),
        SpirvOp::BitwiseAnd | SpirvOp::LogicalAnd => (B::And, false),
        SpirvOp::BitwiseOr | SpirvOp::LogicalOr => (B::Or, false),
        SpirvOp::BitwiseXor | SpirvOp::LogicalNotEqual => (B::Xor, false),
        SpirvOp::ShiftLeftLogical => (B::ShiftLeft, false),
        SpirvOp::ShiftRightLogical => (B::ShiftRight, false),
        SpirvOp::IEqual | SpirvOp::LogicalEqual => (B::Equal, false),
        SpirvOp::INotEqual => (B::NotEqual, false),
        SpirvOp::SLessThan => (B::SignedLess, false),
        SpirvOp::SGreaterThan => (B::SignedLess, true),
        SpirvOp::SLessThanEqual => (B::SignedLessEqual, false),
        SpirvOp::SGreaterThanEqual => (B::SignedLessEqual, true),
        SpirvOp::ULessThan => (B::Less, false),
        SpirvOp::UGreaterThan => (B::Less, true),
        SpirvOp::ULessThanEqual => (B::LessEqual, false),
        SpirvOp::UGreaterThanEqual => (B::LessEqual, true),
        SpirvOp::FAdd => (B::FloatAdd, false),
        SpirvOp::FMul => (B::FloatMultiply, false),
        _ => return None,
    })
}
