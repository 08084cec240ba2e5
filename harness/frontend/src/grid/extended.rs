//! Extended instructions: GLSL.std.450.

use arithmetic::{Instruction, MOST, bits_of, float_of};
use rspirv::spirv::GlslStd450Op as Extended;

use crate::error::unsupported;

use super::compute::name_of;
use crate::order::MemoryOperands;

use super::machine::{Here, Machine, Step};
use super::program::Inst;
use super::value::{Taint, UNDEFINED, Value};

/// A value with each number changed.
fn each(value: &Value, change: &impl Fn(u64) -> u64) -> Value {
    match value {
        Value::Bits(number, taint) => Value::Bits(change(*number), *taint),
        Value::Many(parts) => Value::many(parts.iter().map(|part| each(part, change))),
        other => other.clone(),
    }
}

/// A number of a vector; of a number itself.
fn component(value: &Value, index: usize) -> (u64, Taint) {
    match value {
        Value::Bits(bits, taint) => (*bits, *taint),
        Value::Many(parts) => parts.get(index).map_or((0, UNDEFINED), |part| component(part, index)),
        other => (0, other.taint()),
    }
}

impl Machine<'_> {
    pub(super) fn extended(&mut self, here: &mut Here<'_>, inst: &Inst) -> Step<Value> {
        let program = self.program;
        let module = program.module;
        let operands = module.operands(&inst.raw);
        let set = operands.first().and_then(|set| module.extended.get(set)).map_or("", String::as_str);
        if set.starts_with("NonSemantic.") || set.ends_with("DebugInfo.100") {
            return Ok(Value::Nothing(0));
        }
        let number = module.operand(&inst.raw, 1)?;
        let op = Extended::from_u32(number).filter(|_| set == "GLSL.std.450");
        let op = op.ok_or_else(|| unsupported(format!("instruction {number} of `{set}`")))?;
        // What is before the point goes where a pointer leads, and what is behind it is the result.
        if op == Extended::Modf {
            let (value, to) = (self.operand(here, inst, 2)?, self.pointer(here, inst, 3)?);
            let shape = program.shapes(program.type_of(module.operand(&inst.raw, 2)?));
            let bits = shape.first().map_or(32, |shape| shape.bits);
            self.store(
                here,
                &to,
                &each(&value, &|number| bits_of(float_of(number, bits).trunc(), bits)),
                MemoryOperands::default(),
            )?;
            return Ok(each(&value, &|number| bits_of(float_of(number, bits).fract(), bits)));
        }
        let operands = operands.get(2..).unwrap_or_default();
        if operands.len() > MOST {
            return Err(unsupported(format!("{op:?} of so many operands")).into());
        }
        let mut arguments = [const { Value::Nothing(0) }; MOST];
        for (argument, id) in arguments.iter_mut().zip(operands) {
            *argument = self.value(here, *id)?;
        }
        let arguments = &arguments[..operands.len()];
        let instruction = Instruction::Extended(op);
        let of = operands.first().map_or(0, |id| program.type_of(*id));
        let componentwise = instruction.is_componentwise();
        let numbers = program.numbers(of).zip(program.numbers(inst.raw.ty));
        let Some(((kind, from, _), (_, bits, count))) = numbers.filter(|_| componentwise) else {
            let all = self.whole(inst, instruction, operands, arguments)?;
            return all.ok_or_else(|| unsupported(name_of(instruction) + " of this type").into());
        };
        let one = |index: usize| {
            let (mut row, mut taint) = ([0; MOST], 0);
            for (number, argument) in row.iter_mut().zip(arguments) {
                let (bits, more) = component(argument, index);
                (*number, taint) = (bits, taint | more);
            }
            let found = instruction.scalar(&row[..arguments.len()], kind.number(), from, bits);
            found.map(|bits| Value::Bits(bits, taint)).ok_or_else(|| unsupported(name_of(instruction)))
        };
        match count {
            None => Ok(one(0)?),
            Some(count) => Ok(Value::many((0..count as usize).map(one).collect::<Result<Vec<_>, _>>()?)),
        }
    }
}
