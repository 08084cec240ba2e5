//! Extended instructions: GLSL.std.450.

use arithmetic::{Instruction, bits_of, float_of};
use rspirv::spirv::GlslStd450Op as Extended;

use crate::error::unsupported;

use super::compute::{flattened, name_of};
use crate::order::MemoryOperands;

use super::machine::{Here, Machine, Step};
use super::program::Inst;
use super::value::{Taint, Value};

/// A value with each number changed.
fn each(value: &Value, change: &impl Fn(u64) -> u64) -> Value {
    match value {
        Value::Bits(number, taint) => Value::Bits(change(*number), *taint),
        Value::Many(parts) => Value::many(parts.iter().map(|part| each(part, change)).collect()),
        other => other.clone(),
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
        let arguments =
            (2..operands.len()).map(|at| self.operand(here, inst, at)).collect::<Step<Vec<_>>>()?;
        // What is before the point goes where a pointer leads, and what is behind it is the result.
        if let (Extended::Modf, [value, Value::Pointer(to)]) = (op, &arguments[..]) {
            let shape = program.shapes(program.type_of(module.operand(&inst.raw, 2)?));
            let bits = shape.first().map_or(32, |shape| shape.bits);
            self.store(
                here,
                to,
                &each(value, &|number| bits_of(float_of(number, bits).trunc(), bits)),
                MemoryOperands::default(),
            )?;
            return Ok(each(value, &|number| bits_of(float_of(number, bits).fract(), bits)));
        }
        let instruction = Instruction::Extended(op);
        let of = operands.get(2).map_or(0, |id| program.type_of(*id));
        let componentwise = instruction.is_componentwise();
        let numbers = program.numbers(of).zip(program.numbers(inst.raw.ty));
        let Some(((kind, from, _), (_, bits, count))) = numbers.filter(|_| componentwise) else {
            return self.whole(inst, instruction, operands.get(2..).unwrap_or_default(), &arguments);
        };
        let one = |row: &[(u64, Taint)]| {
            let taint = row.iter().fold(0, |all, one| all | one.1);
            let numbers: Vec<u64> = row.iter().map(|one| one.0).collect();
            let found = instruction.scalar(&numbers, kind.number(), from, bits);
            found.map(|bits| Value::Bits(bits, taint)).ok_or_else(|| unsupported(name_of(instruction)))
        };
        let rows: Vec<Vec<(u64, Taint)>> = arguments
            .iter()
            .map(|argument| {
                let mut all = Vec::new();
                flattened(argument, &mut all);
                all
            })
            .collect();
        let row = |index: usize| -> Vec<(u64, Taint)> {
            rows.iter().filter_map(|all| all.get(index.min(all.len().saturating_sub(1))).copied()).collect()
        };
        match count {
            None => Ok(one(&row(0))?),
            Some(count) => {
                let parts: Result<Vec<_>, _> = (0..count as usize).map(|index| one(&row(index))).collect();
                Ok(Value::many(parts?))
            }
        }
    }
}
