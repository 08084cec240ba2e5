//! Extended instructions: GLSL.std.450.

use rspirv::spirv::GlslStd450Op as Extended;

use crate::arithmetic::{fold_extended, signed};
use crate::error::unsupported;
use crate::module::mask;

use super::compute::{bits_of, flattened, float_of};
use super::machine::{Here, Machine, Step};
use super::program::{Inst, Kind};
use super::value::{OPAQUE, Taint, Value};

/// A function of floats, component by component.
fn float(op: Extended, a: f64, b: f64, c: f64) -> Option<f64> {
    Some(match op {
        Extended::Round | Extended::RoundEven => a.round_ties_even(),
        Extended::Trunc => a.trunc(),
        Extended::FAbs => a.abs(),
        Extended::FSign if a == 0.0 => 0.0,
        Extended::FSign => a.signum(),
        Extended::Floor => a.floor(),
        Extended::Ceil => a.ceil(),
        Extended::Fract => a - a.floor(),
        Extended::Radians => a.to_radians(),
        Extended::Degrees => a.to_degrees(),
        Extended::Sin => a.sin(),
        Extended::Cos => a.cos(),
        Extended::Tan => a.tan(),
        Extended::Asin => a.asin(),
        Extended::Acos => a.acos(),
        Extended::Atan => a.atan(),
        Extended::Sinh => a.sinh(),
        Extended::Cosh => a.cosh(),
        Extended::Tanh => a.tanh(),
        Extended::Asinh => a.asinh(),
        Extended::Acosh => a.acosh(),
        Extended::Atanh => a.atanh(),
        Extended::Atan2 => a.atan2(b),
        Extended::Pow => a.powf(b),
        Extended::Exp => a.exp(),
        Extended::Log => a.ln(),
        Extended::Exp2 => a.exp2(),
        Extended::Log2 => a.log2(),
        Extended::Sqrt => a.sqrt(),
        Extended::InverseSqrt => 1.0 / a.sqrt(),
        Extended::FMin | Extended::NMin => a.min(b),
        Extended::FMax | Extended::NMax => a.max(b),
        Extended::FClamp | Extended::NClamp => a.max(b).min(c),
        Extended::FMix => a * (1.0 - c) + b * c,
        Extended::Step => f64::from(u8::from(b >= a)),
        Extended::SmoothStep => {
            let t = ((c - a) / (b - a)).clamp(0.0, 1.0);
            t * t * (3.0 - 2.0 * t)
        }
        Extended::Fma => a.mul_add(b, c),
        _ => return None,
    })
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
        let taint = arguments.iter().fold(0, |all, argument| all | argument.taint());
        let of = operands.get(2).map_or(0, |id| program.type_of(*id));
        let Some((kind, bits, count)) = program.numbers(inst.raw.ty) else {
            return self.composed(here, inst, op, &arguments);
        };
        let from = program.numbers(of).map_or(bits, |of| of.1);
        if kind == Kind::Float
            && let Some(value) = geometric(op, &arguments, from, taint)
        {
            return Ok(value);
        }
        if let Some(value) = packed(op, &arguments, taint) {
            return Ok(value);
        }
        let one = |row: &[(u64, Taint)]| {
            let taint = row.iter().fold(0, |all, one| all | one.1);
            let numbers: Vec<u64> = row.iter().map(|one| one.0).collect();
            let found = match kind {
                Kind::Float => {
                    let at = |index: usize| numbers.get(index).map_or(0.0, |bits| float_of(*bits, from));
                    float(op, at(0), at(1), at(2)).map(|value| bits_of(value, bits))
                }
                _ => fold_extended(op, &numbers, from),
            };
            found.map(|bits| Value::Bits(bits, taint)).ok_or_else(|| unsupported(format!("{op:?}")))
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

    /// What gives structures or matrices, or takes pointers.
    fn composed(
        &mut self,
        here: &mut Here<'_>,
        inst: &Inst,
        op: Extended,
        arguments: &[Value],
    ) -> Step<Value> {
        let taint = arguments.iter().fold(0, |all, argument| all | argument.taint());
        if arguments.iter().any(|argument| matches!(argument, Value::Nothing(_))) {
            return Ok(Value::Nothing(taint | OPAQUE));
        }
        let bits = 32;
        let halves = |value: f64| match op {
            Extended::ModfStruct => (bits_of(value.fract(), bits), bits_of(value.trunc(), bits)),
            _ => {
                let exponent = if value == 0.0 { 0 } else { value.abs().log2().floor() as i32 + 1 };
                (bits_of(value * 2.0_f64.powi(-exponent), bits), u64::from(exponent as u32))
            }
        };
        match (op, arguments) {
            (Extended::ModfStruct | Extended::FrexpStruct, [value]) => {
                let mut all = Vec::new();
                flattened(value, &mut all);
                let split = all.iter().map(|(bits, taint)| {
                    let (a, b) = halves(float_of(*bits, 32));
                    (Value::Bits(a, *taint), Value::Bits(b, *taint))
                });
                let (a, b): (Vec<_>, Vec<_>) = split.unzip();
                Ok(match value {
                    Value::Many(_) => Value::many(vec![Value::many(a), Value::many(b)]),
                    _ => Value::many(a.into_iter().chain(b).collect()),
                })
            }
            _ => {
                let _ = here;
                let mut filled = self.program.filled(inst.raw.ty, taint | OPAQUE)?;
                filled = filled.tainted(OPAQUE);
                Ok(filled)
            }
        }
    }
}

/// Lengths, distances and directions.
fn geometric(op: Extended, arguments: &[Value], bits: u32, taint: Taint) -> Option<Value> {
    let row = |index: usize| -> Vec<f64> {
        let mut all = Vec::new();
        if let Some(argument) = arguments.get(index) {
            flattened(argument, &mut all);
        }
        all.into_iter().map(|(number, _)| float_of(number, bits)).collect()
    };
    let (a, b) = (row(0), row(1));
    let length = |of: &[f64]| of.iter().map(|x| x * x).sum::<f64>().sqrt();
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let number = |value: f64| Value::Bits(bits_of(value, bits), taint);
    let vector = |all: Vec<f64>| Value::many(all.into_iter().map(number).collect());
    Some(match op {
        Extended::Length => number(length(&a)),
        Extended::Distance => number(length(&a.iter().zip(&b).map(|(a, b)| a - b).collect::<Vec<_>>())),
        Extended::Normalize if a.len() > 1 => vector(a.iter().map(|x| x / length(&a)).collect()),
        Extended::Normalize => number(a.first()?.signum()),
        Extended::Cross if a.len() == 3 && b.len() == 3 => {
            vector(vec![a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])
        }
        Extended::Reflect => {
            let twice = 2.0 * dot(&b, &a);
            let all: Vec<f64> = a.iter().zip(&b).map(|(i, n)| i - twice * n).collect();
            if all.len() > 1 { vector(all) } else { number(*all.first()?) }
        }
        Extended::FaceForward if a.len() > 1 => {
            let side = dot(&row(2), &b) < 0.0;
            vector(a.iter().map(|x| if side { *x } else { -x }).collect())
        }
        Extended::Determinant | Extended::MatrixInverse | Extended::Refract => Value::Bits(0, taint | OPAQUE),
        _ => return None,
    })
}

/// Packing and unpacking.
fn packed(op: Extended, arguments: &[Value], taint: Taint) -> Option<Value> {
    let mut all = Vec::new();
    flattened(arguments.first()?, &mut all);
    let first = all.first()?.0;
    let at = |index: usize| all.get(index).map_or(0.0, |(bits, _)| float_of(*bits, 32));
    let number = |bits: u64| Value::Bits(bits, taint);
    let floats =
        |all: Vec<f64>| Value::many(all.into_iter().map(|value| number(bits_of(value, 32))).collect());
    let fixed = |index: usize, bits: u32, signs: bool| {
        let most = (mask(bits) >> u32::from(signs)) as f64;
        let value = at(index).clamp(if signs { -1.0 } else { 0.0 }, 1.0);
        (value * most).round_ties_even() as i64 as u64 & mask(bits)
    };
    let loose = |index: u32, bits: u32, signs: bool| {
        let field = first >> (index * bits) & mask(bits);
        let most = (mask(bits) >> u32::from(signs)) as f64;
        if signs { (signed(field, bits) as f64 / most).clamp(-1.0, 1.0) } else { field as f64 / most }
    };
    Some(match op {
        Extended::PackHalf2x16 => number(bits_of(at(0), 16) | bits_of(at(1), 16) << 16),
        Extended::UnpackHalf2x16 => {
            floats(vec![float_of(first & 0xffff, 16), float_of(first >> 16 & 0xffff, 16)])
        }
        Extended::PackUnorm2x16 => number(fixed(0, 16, false) | fixed(1, 16, false) << 16),
        Extended::PackSnorm2x16 => number(fixed(0, 16, true) | fixed(1, 16, true) << 16),
        Extended::PackUnorm4x8 => number((0..4).fold(0, |all, at| all | fixed(at, 8, false) << (8 * at))),
        Extended::PackSnorm4x8 => number((0..4).fold(0, |all, at| all | fixed(at, 8, true) << (8 * at))),
        Extended::UnpackUnorm2x16 => floats((0..2).map(|at| loose(at, 16, false)).collect()),
        Extended::UnpackSnorm2x16 => floats((0..2).map(|at| loose(at, 16, true)).collect()),
        Extended::UnpackUnorm4x8 => floats((0..4).map(|at| loose(at, 8, false)).collect()),
        Extended::UnpackSnorm4x8 => floats((0..4).map(|at| loose(at, 8, true)).collect()),
        Extended::PackDouble2x32 => number(first & mask(32) | all.get(1)?.0 << 32),
        Extended::UnpackDouble2x32 => Value::many(vec![number(first & mask(32)), number(first >> 32)]),
        _ => return None,
    })
}
