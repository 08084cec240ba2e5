//! Arithmetic on values: integers, truths, floats, vectors and matrices.

use rspirv::spirv::Op;

use crate::arithmetic::{fold, signed};
use crate::error::{malformed, unsupported};
use crate::module::mask;

use super::machine::{Here, Machine, Step};
use super::program::{Inst, Kind};
use super::value::{OPAQUE, Taint, UNDEFINED, Value};

/// Operands of an instruction on numbers at most.
const MOST: usize = 4;

/// A float of 16 bits as one of 64.
fn half_value(bits: u16) -> f64 {
    let sign = if bits & 0x8000 != 0 { -1.0 } else { 1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 0x1f), f64::from(bits & 0x3ff));
    sign * match exponent {
        0 => fraction * 2.0_f64.powi(-24),
        31 if fraction > 0.0 => f64::NAN,
        31 => f64::INFINITY,
        exponent => (1.0 + fraction / 1024.0) * 2.0_f64.powi(exponent - 15),
    }
}

/// A number as a float of 16 bits, rounded to the nearest.
fn half_bits(value: f64) -> u16 {
    let sign = if value.is_sign_negative() { 0x8000 } else { 0 };
    let size = value.abs();
    if value.is_nan() {
        return 0x7e00;
    }
    if size >= 65520.0 {
        return sign | 0x7c00;
    }
    let exponent = if size < 2.0_f64.powi(-14) { -14 } else { size.log2().floor() as i32 };
    let unit = 2.0_f64.powi(exponent - 10);
    let steps = (size / unit).round_ties_even() as u32;
    // Steps of the smallest exponent begin at zero, others at 1024; a carry goes to the exponent.
    sign | (((exponent + 14) as u32 * 1024) + steps) as u16
}

/// The number that some bits are as a float.
pub(super) fn float_of(bits: u64, width: u32) -> f64 {
    match width {
        16 => half_value(bits as u16),
        64 => f64::from_bits(bits),
        _ => f64::from(f32::from_bits(bits as u32)),
    }
}

/// The bits of a float.
pub(super) fn bits_of(value: f64, width: u32) -> u64 {
    match width {
        16 => u64::from(half_bits(value)),
        64 => value.to_bits(),
        _ => u64::from((value as f32).to_bits()),
    }
}

/// An instruction on floats; sums and products of 32 bits are the same when they are computed with 64 and rounded.
fn float(op: Op, arguments: &[u64], from: u32, bits: u32) -> Option<u64> {
    let a = float_of(*arguments.first()?, from);
    let b = arguments.get(1).map_or(0.0, |bits| float_of(*bits, from));
    let unordered = a.is_nan() || b.is_nan();
    let number = |value: f64| Some(bits_of(value, bits));
    let truth = |holds: bool| Some(u64::from(holds));
    match op {
        Op::FAdd => number(a + b),
        Op::FSub => number(a - b),
        Op::FMul => number(a * b),
        Op::FDiv => number(a / b),
        Op::FRem => number(a % b),
        Op::FMod => number(a - b * (a / b).floor()),
        Op::FNegate => number(-a),
        Op::FConvert => number(a),
        Op::QuantizeToF16 => number(half_value(half_bits(a))),
        Op::ConvertFToU => Some((a as u64).min(mask(bits)) & mask(bits)),
        Op::ConvertFToS => {
            let most = (mask(bits) >> 1) as i64;
            Some((a as i64).clamp(-most - 1, most) as u64 & mask(bits))
        }
        Op::IsNan => truth(a.is_nan()),
        Op::IsInf => truth(a.is_infinite()),
        Op::FOrdEqual => truth(!unordered && a == b),
        Op::FUnordEqual => truth(unordered || a == b),
        Op::FOrdNotEqual => truth(!unordered && a != b),
        Op::FUnordNotEqual => truth(unordered || a != b),
        Op::FOrdLessThan => truth(!unordered && a < b),
        Op::FUnordLessThan => truth(unordered || a < b),
        Op::FOrdGreaterThan => truth(!unordered && a > b),
        Op::FUnordGreaterThan => truth(unordered || a > b),
        Op::FOrdLessThanEqual => truth(!unordered && a <= b),
        Op::FUnordLessThanEqual => truth(unordered || a <= b),
        Op::FOrdGreaterThanEqual => truth(!unordered && a >= b),
        Op::FUnordGreaterThanEqual => truth(unordered || a >= b),
        _ => None,
    }
}

/// An instruction on scalars; `None` where it has no defined result or is not known.
pub(super) fn scalar(op: Op, arguments: &[u64], kind: Kind, from: u32, bits: u32) -> Option<u64> {
    let first = *arguments.first()?;
    match op {
        Op::ConvertSToF => Some(bits_of(signed(first, from) as f64, bits)),
        Op::ConvertUToF => Some(bits_of(first as f64, bits)),
        Op::Bitcast | Op::CopyObject | Op::CopyLogical => Some(first),
        _ if kind == Kind::Float => float(op, arguments, from, bits),
        _ => fold(op, arguments, from, bits),
    }
}

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
        let arguments = operands.iter().map(|id| self.value(here, *id)).collect::<Step<Vec<_>>>()?;
        if arguments.len() > MOST {
            return Err(unsupported(format!("Op{op:?} of so many operands")).into());
        }
        let taint = arguments.iter().fold(0, |all, argument| all | argument.taint());
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
            let taint = arguments.iter().fold(0, |all, argument| all | argument.1);
            match (scalar(op, &numbers[..arguments.len()], kind, from, bits), op) {
                (Some(result), _) => Ok(Value::Bits(result, taint)),
                // Division by zero and the like.
                (None, Op::UDiv | Op::UMod | Op::SDiv | Op::SRem | Op::SMod | Op::ShiftLeftLogical)
                | (None, Op::ShiftRightLogical | Op::ShiftRightArithmetic)
                | (None, Op::BitFieldInsert | Op::BitFieldSExtract | Op::BitFieldUExtract) => {
                    Ok(Value::Bits(0, taint | UNDEFINED))
                }
                (None, _) => Err(unsupported(format!("Op{op:?}"))),
            }
        };
        let single = |value: &Value| match value {
            Value::Bits(bits, taint) => (*bits, *taint),
            Value::Pointer(pointer) => (self.address_of(pointer), pointer.taint),
            other => (0, other.taint()),
        };
        let Some(count) = count else {
            if let [Value::Many(_), ..] = &arguments[..] {
                return Err(malformed(format!("Op{op:?} of a vector to a number")).into());
            }
            return Ok(one(&arguments.iter().map(single).collect::<Vec<_>>())?);
        };
        let mut parts = Vec::with_capacity(count as usize);
        for index in 0..count as usize {
            let mut row = [(0, 0); MOST];
            for (place, argument) in row.iter_mut().zip(&arguments) {
                *place = match argument {
                    Value::Many(parts) => {
                        single(parts.get(index).ok_or_else(|| malformed("vectors of different length"))?)
                    }
                    other => single(other),
                };
            }
            parts.push(one(&row[..arguments.len()])?);
        }
        Ok(Value::many(parts))
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
                Ok(Value::many(parts.iter().map(|(bits, taint)| Value::Bits(*bits, *taint)).collect()))
            }
            _ => Err(malformed("a bitcast between types of different sizes").into()),
        }
    }

    /// Products of vectors and matrices.
    pub(super) fn product(&mut self, here: &Here<'_>, inst: &Inst) -> Step<Value> {
        let program = self.program;
        let op = inst.raw.op;
        let left = self.operand(here, inst, 0)?;
        let right = match op {
            Op::Transpose => Value::Nothing(0),
            _ => self.operand(here, inst, 1)?,
        };
        let of = program.type_of(program.module.operand(&inst.raw, 0)?);
        let bits = self.float_bits(of);
        if matches!(left, Value::Nothing(_)) {
            return Ok(Value::Nothing(left.taint() | right.taint() | OPAQUE));
        }
        let number = |value: f64, taint: Taint| Value::Bits(bits_of(value, bits), taint);
        let row = |value: &Value| -> Vec<(f64, Taint)> {
            let mut all = Vec::new();
            flattened(value, &mut all);
            all.into_iter().map(|(number, taint)| (float_of(number, bits), taint)).collect()
        };
        let columns = |value: &Value| -> Vec<Vec<(f64, Taint)>> {
            match value {
                Value::Many(parts) => parts.iter().map(row).collect(),
                _ => Vec::new(),
            }
        };
        let rounded = |value: f64| float_of(bits_of(value, bits), bits);
        let dot = |a: &[(f64, Taint)], b: &[(f64, Taint)]| {
            a.iter()
                .zip(b)
                .fold((0.0, 0), |sum, (a, b)| (rounded(sum.0 + rounded(a.0 * b.0)), sum.1 | a.1 | b.1))
        };
        let transposed = |matrix: &[Vec<(f64, Taint)>]| -> Vec<Vec<(f64, Taint)>> {
            let rows = matrix.first().map_or(0, Vec::len);
            (0..rows)
                .map(|row| matrix.iter().filter_map(|column| column.get(row).copied()).collect())
                .collect()
        };
        let vector = |all: Vec<(f64, Taint)>| {
            Value::many(all.into_iter().map(|(value, taint)| number(value, taint)).collect())
        };
        let scaled = |all: Vec<(f64, Taint)>, by: (f64, Taint)| {
            all.into_iter().map(|(value, taint)| (value * by.0, taint | by.1)).collect::<Vec<_>>()
        };
        let single = |value: &Value| row(value).first().copied().unwrap_or((0.0, 0));
        Ok(match op {
            Op::Dot => {
                let (sum, taint) = dot(&row(&left), &row(&right));
                number(sum, taint)
            }
            Op::VectorTimesScalar => vector(scaled(row(&left), single(&right))),
            Op::MatrixTimesScalar => Value::many(
                columns(&left).into_iter().map(|column| vector(scaled(column, single(&right)))).collect(),
            ),
            Op::MatrixTimesVector => {
                let by = row(&right);
                vector(transposed(&columns(&left)).iter().map(|row| dot(row, &by)).collect())
            }
            Op::VectorTimesMatrix => {
                let by = row(&left);
                vector(columns(&right).iter().map(|column| dot(&by, column)).collect())
            }
            Op::MatrixTimesMatrix => {
                let rows = transposed(&columns(&left));
                let column =
                    |column: &Vec<(f64, Taint)>| vector(rows.iter().map(|row| dot(row, column)).collect());
                Value::many(columns(&right).iter().map(column).collect())
            }
            Op::Transpose => Value::many(transposed(&columns(&left)).into_iter().map(vector).collect()),
            Op::OuterProduct => {
                let (left, right) = (row(&left), row(&right));
                Value::many(right.iter().map(|by| vector(scaled(left.clone(), *by))).collect())
            }
            _ => return Err(unsupported(format!("Op{op:?}")).into()),
        })
    }

    /// Bits of the floats of a scalar, vector or matrix.
    fn float_bits(&self, ty: u32) -> u32 {
        let program = self.program;
        match program.numbers(ty) {
            Some((_, bits, _)) => bits,
            None => program
                .part_type(ty, 0)
                .ok()
                .and_then(|column| program.numbers(column))
                .map_or(32, |(_, bits, _)| bits),
        }
    }

    /// Additions and products with a second half.
    pub(super) fn wide(&mut self, here: &Here<'_>, inst: &Inst) -> Step<Value> {
        let program = self.program;
        let op = inst.raw.op;
        let (left, right) = (self.operand(here, inst, 0)?, self.operand(here, inst, 1)?);
        let bits =
            program.numbers(program.type_of(program.module.operand(&inst.raw, 0)?)).map_or(32, |of| of.1);
        let one = |a: (u64, Taint), b: (u64, Taint)| {
            let (x, y) = (u128::from(a.0), u128::from(b.0));
            let (low, high) = match op {
                Op::IAddCarry => (x + y, (x + y) >> bits),
                Op::ISubBorrow => (x.wrapping_sub(y), u128::from(x < y)),
                Op::UMulExtended => (x * y, (x * y) >> bits),
                _ => {
                    let product = i128::from(signed(a.0, bits)) * i128::from(signed(b.0, bits));
                    (product as u128, (product >> bits) as u128)
                }
            };
            let taint = a.1 | b.1;
            (Value::Bits(low as u64 & mask(bits), taint), Value::Bits(high as u64 & mask(bits), taint))
        };
        let (mut a, mut b) = (Vec::new(), Vec::new());
        flattened(&left, &mut a);
        flattened(&right, &mut b);
        let (low, high): (Vec<_>, Vec<_>) = a.into_iter().zip(b).map(|(a, b)| one(a, b)).unzip();
        Ok(match left {
            Value::Many(_) => Value::many(vec![Value::many(low), Value::many(high)]),
            _ => Value::many(low.into_iter().chain(high).collect()),
        })
    }
}
