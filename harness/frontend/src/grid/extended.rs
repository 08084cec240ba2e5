//! Extended instructions of `GLSL.std.450`.

use arithmetic::{Instruction, MOST, bits_of, float_of};
use rspirv::spirv::GlslStd450Op as Extended;

use crate::error::unsupported;

use super::compute::instruction_name;
use crate::order::MemoryOperands;

use super::machine::{Interpreter, InvocationCtx, Step};
use super::program::Inst;
use super::value::{ConcreteValue, Taint, UNDEFINED};

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

/// Returns a component of a vector, or a scalar itself.
fn component_at(value: &ConcreteValue, index: usize) -> (u64, Taint) {
    match value {
        ConcreteValue::Bits(bits, taint) => (*bits, *taint),
        ConcreteValue::Composite(parts) => {
            parts.get(index).map_or((0, UNDEFINED), |part| component_at(part, index))
        }
        other => (0, other.combined_taint()),
    }
}

impl Interpreter<'_> {
    pub(super) fn execute_extended(
        &mut self,
        here: &mut InvocationCtx<'_>,
        inst: &Inst,
    ) -> Step<ConcreteValue> {
        let program = self.program;
        let module = program.module;
        let operands = module.operands_of(&inst.raw);
        let set = operands.first().and_then(|set| module.extended.get(set)).map_or("", String::as_str);
        if set.starts_with("NonSemantic.") || set.ends_with("DebugInfo.100") {
            return Ok(ConcreteValue::NoBits(0));
        }
        let number = module.operand_at(&inst.raw, 1)?;
        let op = Extended::from_u32(number).filter(|_| set == "GLSL.std.450");
        let op = op.ok_or_else(|| unsupported(format!("instruction {number} of `{set}`")))?;
        // `Modf` stores the whole part through a pointer and returns the fraction.
        if op == Extended::Modf {
            let (value, to) = (self.operand_value(here, inst, 2)?, self.operand_pointer(here, inst, 3)?);
            let shape = program.number_shapes(program.type_of(module.operand_at(&inst.raw, 2)?));
            let bits = shape.first().map_or(32, |shape| shape.bits);
            self.store_value(
                here,
                &to,
                &map_components(&value, &|number| bits_of(float_of(number, bits).trunc(), bits)),
                MemoryOperands::default(),
            )?;
            return Ok(map_components(&value, &|number| bits_of(float_of(number, bits).fract(), bits)));
        }
        let operands = operands.get(2..).unwrap_or_default();
        if operands.len() > MOST {
            return Err(unsupported(format!("{op:?} with this number of operands")).into());
        }
        let mut arguments = [const { ConcreteValue::NoBits(0) }; MOST];
        for (argument, id) in arguments.iter_mut().zip(operands) {
            *argument = self.value_of_id(here, *id)?;
        }
        let arguments = &arguments[..operands.len()];
        let instruction = Instruction::Extended(op);
        let of = operands.first().map_or(0, |id| program.type_of(*id));
        let componentwise = instruction.is_componentwise();
        let numbers = program.number_layout(of).zip(program.number_layout(inst.raw.ty));
        let Some(((kind, from, _), (_, bits, count))) = numbers.filter(|_| componentwise) else {
            let all = self.compute_reduction(inst, instruction, operands, arguments)?;
            return all.ok_or_else(|| unsupported(instruction_name(instruction) + " of this type").into());
        };
        let one = |index: usize| {
            let (mut row, mut taint) = ([0; MOST], 0);
            for (number, argument) in row.iter_mut().zip(arguments) {
                let (bits, more) = component_at(argument, index);
                (*number, taint) = (bits, taint | more);
            }
            let found = instruction.scalar(&row[..arguments.len()], kind.to_arithmetic(), from, bits);
            found
                .map(|bits| ConcreteValue::Bits(bits, taint))
                .ok_or_else(|| unsupported(instruction_name(instruction)))
        };
        match count {
            None => Ok(one(0)?),
            Some(count) => Ok(ConcreteValue::from_components(
                (0..count as usize).map(one).collect::<Result<Vec<_>, _>>()?,
            )),
        }
    }
}
