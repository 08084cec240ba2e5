//! Arithmetic on concrete values: integers, booleans, floats, vectors and matrices.

use arithmetic::{
    Instruction, MAX_OPERANDS, NumberKind, NumberShape, Operand, float_from_bits, float_to_bits,
    split_fraction,
};
use rspirv::spirv::Op;
use spirv_reader::{MemoryOperands, SpirvType};

use entry_point::{malformed, unsupported};

use super::program::{DecodedInstruction, DecodedProgram};
use super::scalar_kind::ScalarKind;
use super::state::{Interpreter, InvocationCtx};
use super::step::Step;
use super::value::{ConcreteValue, FAILED_WEAKLY, INPUT_MASK, OPAQUE, Taint, result_taint};

/// Collects the components of a value in order.
pub(super) fn flatten_components(value: &ConcreteValue, out: &mut Vec<(u64, Taint)>) {
    match value {
        ConcreteValue::Bits(bits, taint) => out.push((*bits, *taint)),
        ConcreteValue::Composite(parts) => parts.iter().for_each(|part| flatten_components(part, out)),
        other => out.push((0, other.combined_taint())),
    }
}

/// Applies a function to every component.
fn map_components(value: &ConcreteValue, change: &impl Fn(u64) -> u64) -> ConcreteValue {
    match value {
        ConcreteValue::Bits(number, taint) => ConcreteValue::Bits(change(*number), *taint),
        ConcreteValue::Composite(parts) => {
            ConcreteValue::from_components(parts.iter().map(|part| map_components(part, change)))
        }
        other => other.clone(),
    }
}

impl Interpreter<'_> {
    /// Executes a computation on numbers.
    pub(super) fn compute(
        &mut self,
        ctx: &InvocationCtx<'_>,
        inst: &DecodedInstruction<'_>,
        instruction: Instruction,
        operands: &[u32],
    ) -> Step<ConcreteValue> {
        let program = self.program;
        if operands.len() > MAX_OPERANDS {
            return Err(unsupported(instruction_name(instruction)).into());
        }
        let mut arguments = [const { ConcreteValue::NoBits(0) }; MAX_OPERANDS];
        for (argument, id) in arguments.iter_mut().zip(operands) {
            *argument = self.value_of_id(ctx, *id)?;
        }
        let arguments = &arguments[..operands.len()];
        let taint = arguments.iter().fold(0, |all, argument| all | argument.combined_taint());
        if program.is_weak_success(instruction, operands)
            && arguments[0].combined_taint() & FAILED_WEAKLY != 0
        {
            return Ok(ConcreteValue::from_bool(false, taint & !FAILED_WEAKLY));
        }
        if taint & INPUT_MASK != 0 && self.setup.launch_taint.is_tracked() {
            let from = operands.first().map_or(32, |id| program.number_bits(*id));
            let bits = program.number_layout(inst.raw.ty).map_or(32, |of| of.1);
            self.note_reduction(instruction, arguments, [from, bits]);
        }
        if !instruction.is_componentwise() {
            return match self.compute_reduction(inst, instruction, operands, arguments)? {
                Some(value) => Ok(value),
                None => {
                    let undefined_taint = self.undefined_instruction_result(ctx, instruction, taint)?;
                    Ok(program.filled_value(inst.raw.ty, taint | undefined_taint)?)
                }
            };
        }
        let Some((_, bits, count)) = program.number_layout(inst.raw.ty) else {
            // Cooperative matrices are not computed.
            return Ok(ConcreteValue::NoBits(taint | OPAQUE));
        };
        let operand_type = operands.first().map_or(0, |id| program.type_of(*id));
        let Some((kind, from, _)) = program.number_layout(operand_type) else {
            return match arguments.iter().any(|argument| matches!(argument, ConcreteValue::NoBits(_))) {
                true => Ok(ConcreteValue::NoBits(taint | OPAQUE)),
                false => Err(unsupported(instruction_name(instruction) + " with these operands").into()),
            };
        };
        let second_bits = operands.get(1).map_or(32, |id| program.number_bits(*id));
        // True in the second place: the result is undefined for these operands.
        let one = |arguments: &[(u64, Taint)]| {
            let mut numbers = [0; MAX_OPERANDS];
            numbers.iter_mut().zip(arguments).for_each(|(number, argument)| *number = argument.0);
            instruction.extend_power(&mut numbers, second_bits);
            let mut taint = result_taint(instruction, arguments, bits);
            let (numbers, kind) = (&numbers[..arguments.len()], kind.to_arithmetic());
            // Numbers that no option gives may leave a domain that real ones stay in.
            let is_given = taint & INPUT_MASK == 0;
            let defined = instruction.compute_component(numbers, kind, from, bits);
            let defines = kind == NumberKind::Float && (!is_given || program.module.defines_float_results());
            let result = defined
                .or_else(|| defines.then(|| instruction.compute_by_direct3d(numbers, from, bits)).flatten());
            let is_fixed = |result| instruction.is_fixed_component(numbers, kind, from, bits, result);
            let is_remainder = matches!(instruction, Instruction::Core(Op::SRem | Op::SMod));
            let may_vary = |result| {
                instruction.may_vary_component(numbers, kind, from, bits, result)
                    && !(is_remainder && program.module.defines_signed_remainder(numbers, from))
            };
            if self.setup.has_exact_floats && !result.is_none_or(is_fixed)
                // Vulkan leaves undefined what Direct3D defines.
                || is_given && result.is_some_and(|result| defined.is_none() || may_vary(result))
            {
                taint |= OPAQUE;
            }
            (ConcreteValue::Bits(result.unwrap_or(0), taint), result.is_none())
        };
        // A pointer counts as its address.
        let single = |value: &ConcreteValue| match value {
            ConcreteValue::Bits(bits, taint) => (*bits, *taint),
            ConcreteValue::Pointer(pointer) => (self.address_of(pointer), pointer.taint),
            other => (0, other.combined_taint()),
        };
        let Some(count) = count else {
            if let [ConcreteValue::Composite(_), ..] = arguments {
                let name = instruction_name(instruction);
                return Err(malformed(name + " of a vector to a number").into());
            }
            let mut row = [(0, 0); MAX_OPERANDS];
            row.iter_mut().zip(arguments).for_each(|(place, argument)| *place = single(argument));
            let (value, lacks) = one(&row[..arguments.len()]);
            return Ok(match lacks {
                true => value.with_taint(self.undefined_instruction_result(ctx, instruction, taint)?),
                false => value,
            });
        };
        let mut parts = Vec::with_capacity(count as usize);
        for index in 0..count as usize {
            let mut row = [(0, 0); MAX_OPERANDS];
            for (place, argument) in row.iter_mut().zip(arguments) {
                *place = match argument {
                    ConcreteValue::Composite(parts) => {
                        single(parts.get(index).ok_or_else(|| malformed("vectors of different length"))?)
                    }
                    other => single(other),
                };
            }
            parts.push(one(&row[..arguments.len()]));
        }
        let undefined_taint = match parts.iter().any(|(_, lacks)| *lacks) {
            true => self.undefined_instruction_result(ctx, instruction, taint)?,
            false => 0,
        };
        let part = |(value, is_undefined): (ConcreteValue, bool)| {
            value.with_taint(if is_undefined { undefined_taint } else { 0 })
        };
        Ok(ConcreteValue::from_components(parts.into_iter().map(part)))
    }

    /// Executes `Modf`, which stores the whole part through a pointer and returns the fraction.
    pub(super) fn split_float(
        &mut self,
        ctx: &mut InvocationCtx<'_>,
        value: u32,
        pointer: u32,
    ) -> Step<ConcreteValue> {
        let (number, to) = (self.value_of_id(ctx, value)?, self.pointer_of_id(ctx, pointer)?);
        let shape = self.program.number_shapes(self.program.type_of(value));
        let bits = shape.first().map_or(32, |shape| shape.bits);
        let split = |number| split_fraction(float_from_bits(number, bits));
        let whole = map_components(&number, &|number| float_to_bits(split(number).1, bits));
        self.store_value(ctx, &to, &whole, MemoryOperands::default())?;
        Ok(map_components(&number, &|number| float_to_bits(split(number).0, bits)))
    }

    /// Reinterprets bits as another type.
    pub(super) fn compute_bitcast(
        &mut self,
        ctx: &InvocationCtx<'_>,
        inst: &DecodedInstruction<'_>,
        id: u32,
    ) -> Step<ConcreteValue> {
        let program = self.program;
        let value = self.value_of_id(ctx, id)?;
        let from = program.type_of(id);
        let to = inst.raw.ty;
        if let (ConcreteValue::Pointer(pointer), Some((_, ty))) = (&value, program.pointee_of(to)) {
            return Ok(ConcreteValue::Pointer(super::value::ConcretePointer { ty, ..*pointer }));
        }
        let taint = value.combined_taint();
        let (Some((_, from_bits, _)), Some((kind, bits, count))) =
            (program.number_layout(from), program.number_layout(to))
        else {
            return Ok(ConcreteValue::NoBits(taint | OPAQUE));
        };
        let mut numbers = Vec::new();
        match &value {
            ConcreteValue::Pointer(pointer) => numbers.push((self.address_of(pointer), pointer.taint)),
            other => flatten_components(other, &mut numbers),
        }
        if taint & INPUT_MASK != 0 && self.setup.launch_taint.is_tracked() && bits < from_bits {
            self.influence.add_reductions(taint & INPUT_MASK, &[1 << bits]);
        }
        let mut bytes: Vec<(u8, Taint)> = Vec::new();
        for (number, taint) in numbers {
            bytes.extend(
                number.to_le_bytes()[..from_bits.div_ceil(8).min(8) as usize]
                    .iter()
                    .map(|byte| (*byte, taint)),
            );
        }
        let width = bits.div_ceil(8).clamp(1, 8) as usize;
        let mut parts = Vec::new();
        // Little-endian: the first component has the lowest bytes.
        for chunk in bytes.chunks(width) {
            let bits = chunk.iter().rev().fold(0, |all, (byte, _)| all << 8 | u64::from(*byte));
            parts.push((bits, chunk.iter().fold(0, |all, (_, taint)| all | taint)));
        }
        match (kind, count, &parts[..]) {
            (ScalarKind::Address, None, [(address, taint)]) => {
                let ty = program.pointee_of(to).map_or(0, |to| to.1);
                Ok(ConcreteValue::Pointer(self.pointer_from_address(*address, ty, *taint)))
            }
            (_, None, [(bits, taint)]) => Ok(ConcreteValue::Bits(*bits, *taint)),
            (_, Some(count), parts) if parts.len() == count as usize => Ok(ConcreteValue::from_components(
                parts.iter().map(|(bits, taint)| ConcreteValue::Bits(*bits, *taint)),
            )),
            _ => Err(malformed("a bitcast between types of different sizes").into()),
        }
    }

    /// Executes an instruction on all components together; `None` if it is undefined for these operands.
    fn compute_reduction(
        &self,
        inst: &DecodedInstruction<'_>,
        instruction: Instruction,
        operands: &[u32],
        arguments: &[ConcreteValue],
    ) -> Step<Option<ConcreteValue>> {
        let program = self.program;
        let taint = arguments.iter().fold(0, |all, argument| all | argument.combined_taint());
        if arguments.iter().any(|argument| matches!(argument, ConcreteValue::NoBits(_))) {
            return Ok(Some(ConcreteValue::NoBits(taint | OPAQUE)));
        }
        let mut rows = Vec::with_capacity(arguments.len());
        for (id, argument) in operands.iter().zip(arguments) {
            let mut all = Vec::new();
            flatten_components(argument, &mut all);
            let numbers: Vec<u64> = all.into_iter().map(|(number, _)| number).collect();
            let shape = program.number_shapes(program.type_of(*id));
            rows.push((numbers, shape.first().copied()));
        }
        let given: Option<Vec<Operand<'_>>> =
            rows.iter().map(|(numbers, shape)| Some(Operand { numbers, shape: (*shape)? })).collect();
        let result = program.number_shapes(inst.raw.ty);
        let given =
            given.ok_or_else(|| unsupported(format!("{} of this type", instruction_name(instruction))))?;
        let Some(all) = instruction.compute(&given, &result) else { return Ok(None) };
        let is_open = self.setup.has_exact_floats && !instruction.is_fixed(&given, &result)
            || taint & INPUT_MASK == 0 && instruction.may_vary(&given, &result, &all);
        let taint = taint | if is_open { OPAQUE } else { 0 };
        program.rebuild_value(inst.raw.ty, &mut all.into_iter(), taint).map(Some)
    }
}

/// Returns the name of an instruction for messages.
pub(super) fn instruction_name(instruction: Instruction) -> String {
    match instruction {
        Instruction::Core(op) => format!("Op{op:?}"),
        Instruction::Extended(op) => format!("{op:?}"),
        Instruction::Unpack(_) | Instruction::Pack(_) => "a format of texels".to_owned(),
    }
}

impl DecodedProgram<'_> {
    /// Returns the shape of a numeric type; for a structure one shape per member.
    pub fn number_shapes(&self, ty: u32) -> Vec<NumberShape> {
        let one = |kind: ScalarKind, bits, rows, columns| {
            vec![NumberShape { kind: kind.to_arithmetic(), bits, rows, columns }]
        };
        if let Some((kind, bits, count)) = self.number_layout(ty) {
            return one(kind, bits, count.unwrap_or(1), 1);
        }
        match self.module.types.get(&ty) {
            Some(SpirvType::Matrix { column, count }) => match self.number_layout(*column) {
                Some((kind, bits, Some(rows))) => one(kind, bits, rows, *count),
                _ => Vec::new(),
            },
            Some(SpirvType::Struct { members }) => {
                members.iter().flat_map(|member| self.number_shapes(*member)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Builds a value of a type from its components.
    fn rebuild_value(
        &self,
        ty: u32,
        numbers: &mut impl Iterator<Item = u64>,
        taint: Taint,
    ) -> Step<ConcreteValue> {
        if let Some((_, _, None)) = self.number_layout(ty) {
            let number = numbers.next().ok_or_else(|| malformed("a result with fewer components"))?;
            return Ok(ConcreteValue::Bits(number, taint));
        }
        let parts = (0..self.specialized.part_count(ty)?).map(|index| {
            let part = self.specialized.part_of(ty, index as u64)?;
            self.rebuild_value(part.ty, numbers, taint)
        });
        Ok(ConcreteValue::from_components(parts.collect::<Step<Vec<_>>>()?))
    }
}
