//! Arithmetic on values: integers, truths, floats, vectors and matrices.

use arithmetic::{Instruction, MOST, NumberShape, Operand, values_of};
use rspirv::spirv::Op;

use crate::error::{malformed, unsupported};

use super::machine::{Here, Machine, Step};
use super::program::{Inst, Kind, Layout, Program};
use super::value::{OPAQUE, Taint, Value, of_result};

/// The numbers of a value one after the other.
pub(super) fn flattened(value: &Value, out: &mut Vec<(u64, Taint)>) {
    match value {
        Value::Bits(bits, taint) => out.push((*bits, *taint)),
        Value::Many(parts) => parts.iter().for_each(|part| flattened(part, out)),
        other => out.push((0, other.taint())),
    }
}

impl Machine<'_> {
    /// An instruction on numbers, or on the elements of vectors one by one.
    pub(super) fn elementwise(&mut self, here: &Here<'_>, inst: &Inst) -> Step<Value> {
        let program = self.program;
        let op = inst.raw.op;
        let operands = program.module.operands(&inst.raw);
        let operands = &operands[..values_of(op, operands.len())];
        if operands.len() > MOST {
            let name = format!("Op{op:?}");
            let ray = if name.starts_with("OpRayQuery") { ", as ray queries are not followed" } else { "" };
            return Err(unsupported(name + ray).into());
        }
        let mut arguments = [const { Value::Nothing(0) }; MOST];
        for (argument, id) in arguments.iter_mut().zip(operands) {
            *argument = self.value(here, *id)?;
        }
        let arguments = &arguments[..operands.len()];
        let taint = arguments.iter().fold(0, |all, argument| all | argument.taint());
        if !Instruction::Core(op).is_componentwise() && op != Op::Bitcast {
            return match self.whole(inst, Instruction::Core(op), operands, arguments)? {
                Some(value) => Ok(value),
                None => Ok(program.filled(inst.raw.ty, taint | self.lacks_result(here, op)?)?),
            };
        }
        let Some((_, bits, count)) = program.numbers(inst.raw.ty) else {
            // What has no result does something else.
            if inst.raw.ty == 0 {
                return match op {
                    Op::Nop | Op::AssumeTrueKHR | Op::LifetimeStart | Op::LifetimeStop => {
                        Ok(Value::Nothing(0))
                    }
                    op => Err(unsupported(format!("Op{op:?}")).into()),
                };
            }
            // Cooperative matrices.
            return Ok(Value::Nothing(taint | OPAQUE));
        };
        let of = operands.first().map_or(0, |id| program.type_of(*id));
        let Some((kind, from, _)) = program.numbers(of) else {
            return match arguments.iter().any(|argument| matches!(argument, Value::Nothing(_))) {
                true => Ok(Value::Nothing(taint | OPAQUE)),
                false => Err(unsupported(format!("Op{op:?} of such operands")).into()),
            };
        };
        let one = |arguments: &[(u64, Taint)]| {
            let mut numbers = [0; MOST];
            numbers.iter_mut().zip(arguments).for_each(|(number, argument)| *number = argument.0);
            let taint = of_result(op, arguments, bits);
            let result = computed(op, &numbers[..arguments.len()], kind, from, bits);
            (Value::Bits(result.unwrap_or(0), taint), result.is_none())
        };
        let single = |value: &Value| match value {
            Value::Bits(bits, taint) => (*bits, *taint),
            Value::Pointer(pointer) => (self.address_of(pointer), pointer.taint),
            other => (0, other.taint()),
        };
        let Some(count) = count else {
            if let [Value::Many(_), ..] = arguments {
                return Err(malformed(format!("Op{op:?} of a vector to a number")).into());
            }
            let mut row = [(0, 0); MOST];
            row.iter_mut().zip(arguments).for_each(|(place, argument)| *place = single(argument));
            let (value, lacks) = one(&row[..arguments.len()]);
            return Ok(if lacks { value.tainted(self.lacks_result(here, op)?) } else { value });
        };
        let mut parts = Vec::with_capacity(count as usize);
        for index in 0..count as usize {
            let mut row = [(0, 0); MOST];
            for (place, argument) in row.iter_mut().zip(arguments) {
                *place = match argument {
                    Value::Many(parts) => {
                        single(parts.get(index).ok_or_else(|| malformed("vectors of different length"))?)
                    }
                    other => single(other),
                };
            }
            parts.push(one(&row[..arguments.len()]));
        }
        let lacks = match parts.iter().any(|(_, lacks)| *lacks) {
            true => self.lacks_result(here, op)?,
            false => 0,
        };
        let part = |(value, lacking): (Value, bool)| value.tainted(if lacking { lacks } else { 0 });
        Ok(Value::many(parts.into_iter().map(part)))
    }

    /// The same bits as another type.
    pub(super) fn bitcast(&mut self, here: &Here<'_>, inst: &Inst) -> Step<Value> {
        let program = self.program;
        let value = self.operand(here, inst, 0)?;
        let from = program.type_of(program.module.operand(&inst.raw, 0)?);
        let to = inst.raw.ty;
        if let (Value::Pointer(pointer), Some((_, ty))) = (&value, program.pointee(to)) {
            return Ok(Value::Pointer(super::value::Pointer { ty, ..*pointer }));
        }
        let taint = value.taint();
        let (Some((_, from_bits, _)), Some((kind, bits, count))) =
            (program.numbers(from), program.numbers(to))
        else {
            return Ok(Value::Nothing(taint | OPAQUE));
        };
        let mut numbers = Vec::new();
        match &value {
            Value::Pointer(pointer) => numbers.push((self.address_of(pointer), pointer.taint)),
            other => flattened(other, &mut numbers),
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
        for chunk in bytes.chunks(width) {
            let bits = chunk.iter().rev().fold(0, |all, (byte, _)| all << 8 | u64::from(*byte));
            parts.push((bits, chunk.iter().fold(0, |all, (_, taint)| all | taint)));
        }
        match (kind, count, &parts[..]) {
            (Kind::Address, None, [(address, taint)]) => {
                let ty = program.pointee(to).map_or(0, |to| to.1);
                Ok(Value::Pointer(self.pointer_at(*address, ty, *taint)))
            }
            (_, None, [(bits, taint)]) => Ok(Value::Bits(*bits, *taint)),
            (_, Some(count), parts) if parts.len() == count as usize => {
                Ok(Value::many(parts.iter().map(|(bits, taint)| Value::Bits(*bits, *taint))))
            }
            _ => Err(malformed("a bitcast between types of different sizes").into()),
        }
    }

    /// What comes of all numbers of its operands together; `None` where it has no result for these.
    pub(super) fn whole(
        &self,
        inst: &Inst,
        instruction: Instruction,
        operands: &[u32],
        arguments: &[Value],
    ) -> Step<Option<Value>> {
        let program = self.program;
        let taint = arguments.iter().fold(0, |all, argument| all | argument.taint());
        if arguments.iter().any(|argument| matches!(argument, Value::Nothing(_))) {
            return Ok(Some(Value::Nothing(taint | OPAQUE)));
        }
        let mut rows = Vec::with_capacity(arguments.len());
        for (id, argument) in operands.iter().zip(arguments) {
            let mut all = Vec::new();
            flattened(argument, &mut all);
            let numbers: Vec<u64> = all.into_iter().map(|(number, _)| number).collect();
            let shape = program.shapes(program.type_of(*id));
            rows.push((numbers, shape.first().copied()));
        }
        let given: Option<Vec<Operand<'_>>> =
            rows.iter().map(|(numbers, shape)| Some(Operand { numbers, shape: (*shape)? })).collect();
        let result = program.shapes(inst.raw.ty);
        let given = given.ok_or_else(|| unsupported(format!("{} of this type", name_of(instruction))))?;
        let Some(all) = instruction.compute(&given, &result) else { return Ok(None) };
        program.rebuilt(inst.raw.ty, &mut all.into_iter(), taint).map(Some)
    }
}

/// The name of an instruction.
pub(super) fn name_of(instruction: Instruction) -> String {
    match instruction {
        Instruction::Core(op) => format!("Op{op:?}"),
        Instruction::Extended(op) => format!("{op:?}"),
        Instruction::Unpack(_) | Instruction::Pack(_) => "a format of texels".to_owned(),
    }
}

/// A number of the result of an instruction.
pub(super) fn computed(op: Op, arguments: &[u64], kind: Kind, from: u32, bits: u32) -> Option<u64> {
    arithmetic::scalar(op, arguments, kind.number(), from, bits)
}

impl Program<'_> {
    /// What a type of numbers is made of: one shape, or one for each member of a structure.
    pub fn shapes(&self, ty: u32) -> Vec<NumberShape> {
        let one =
            |kind: Kind, bits, rows, columns| vec![NumberShape { kind: kind.number(), bits, rows, columns }];
        match self.layout(ty) {
            Ok(Layout::Scalar { kind, bits }) => one(*kind, *bits, 1, 1),
            Ok(Layout::Vector { kind, bits, count, .. }) => one(*kind, *bits, *count, 1),
            Ok(Layout::Matrix { rows, count, bytes, .. }) => one(Kind::Float, bytes * 8, *rows, *count),
            Ok(Layout::Struct { members }) => {
                members.iter().flat_map(|member| self.shapes(member.ty)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// A value of a type of the numbers that it is made of.
    fn rebuilt(&self, ty: u32, numbers: &mut impl Iterator<Item = u64>, taint: Taint) -> Step<Value> {
        let parts: Vec<u32> = match self.layout(ty)? {
            Layout::Scalar { .. } => {
                let number = numbers.next().ok_or_else(|| malformed("a result of fewer numbers"))?;
                return Ok(Value::Bits(number, taint));
            }
            Layout::Vector { element, count, .. } => vec![*element; *count as usize],
            Layout::Matrix { column, count, .. } => vec![*column; *count as usize],
            Layout::Struct { members } => members.iter().map(|member| member.ty).collect(),
            _ => return Err(malformed("a result that is no number").into()),
        };
        let parts = parts.into_iter().map(|part| self.rebuilt(part, numbers, taint));
        Ok(Value::many(parts.collect::<Step<Vec<_>>>()?))
    }
}
