//! Float arithmetic on single numbers.

use std::fmt::{Display, LowerExp};

use rspirv::spirv::{GlslStd450Op as Extended, Op};

use crate::mask;

/// Converts a 16-bit float.
fn half_to_f64(bits: u16) -> f64 {
    let sign = if bits & 0x8000 != 0 { -1.0 } else { 1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 0x1f), f64::from(bits & 0x3ff));
    sign * match exponent {
        0 => fraction * 2.0_f64.powi(-24),
        31 if fraction > 0.0 => f64::NAN,
        31 => f64::INFINITY,
        exponent => (1.0 + fraction / 1024.0) * 2.0_f64.powi(exponent - 15),
    }
}

/// Rounds to a 16-bit float, to the nearest.
fn half_from_f64(value: f64) -> u16 {
    let sign = if value.is_sign_negative() { 0x8000 } else { 0 };
    let magnitude = value.abs();
    if value.is_nan() {
        return 0x7e00;
    }
    if magnitude >= 65520.0 {
        return sign | 0x7c00;
    }
    let exponent = if magnitude < 2.0_f64.powi(-14) { -14 } else { magnitude.log2().floor() as i32 };
    let unit = 2.0_f64.powi(exponent - 10);
    let steps = (magnitude / unit).round_ties_even() as u32;
    // Subnormal steps start at zero, others at 1024; a carry increments the exponent.
    sign | (((exponent + 14) as u32 * 1024) + steps) as u16
}

/// Returns the value of a float with `width` bits.
#[inline]
pub fn float_from_bits(bits: u64, width: u32) -> f64 {
    match width {
        16 => half_to_f64(bits as u16),
        64 => f64::from_bits(bits),
        _ => f64::from(f32::from_bits(bits as u32)),
    }
}

/// Rounds to a float of `width` bits, to the nearest.
#[inline]
pub fn float_to_bits(value: f64, width: u32) -> u64 {
    match width {
        16 => u64::from(half_from_f64(value)),
        64 => value.to_bits(),
        _ => u64::from((value as f32).to_bits()),
    }
}

/// Formats a float of 32 or 64 bits, with an exponent in place of many zeros.
pub fn format_float(bits: u64, width: u32) -> String {
    fn format<T: Display + LowerExp>(number: T, size: f64) -> String {
        let is_short = size == 0.0 || (1e-4..1e9).contains(&size.abs());
        if is_short { number.to_string() } else { format!("{number:e}") }
    }
    match width {
        32 => format(f32::from_bits(bits as u32), f64::from(f32::from_bits(bits as u32))),
        _ => format(f64::from_bits(bits), f64::from_bits(bits)),
    }
}

/// Splits a number into its fraction and its whole part; both have its sign, also if they are zero.
pub fn split_fraction(value: f64) -> (f64, f64) {
    let fraction = if value.is_infinite() { 0.0 } else { value.fract() };
    (if fraction == 0.0 { fraction.copysign(value) } else { fraction }, value.trunc())
}

/// Computes a core instruction. Sums and products of 32 bits are exact in 64 bits before the rounding.
#[inline]
pub(crate) fn compute_core(op: Op, arguments: &[u64], from: u32, bits: u32) -> Option<u64> {
    let a = float_from_bits(*arguments.first()?, from);
    let b = arguments.get(1).map_or(0.0, |bits| float_from_bits(*bits, from));
    let unordered = a.is_nan() || b.is_nan();
    let float_result = |value: f64| Some(float_to_bits(value, bits));
    let bool_result = |holds: bool| Some(u64::from(holds));
    match op {
        Op::FAdd => float_result(a + b),
        Op::FSub => float_result(a - b),
        Op::FMul => float_result(a * b),
        Op::FDiv => float_result(a / b),
        Op::FRem | Op::FMod if b == 0.0 => None,
        Op::FRem => float_result(a % b),
        Op::FMod => float_result(a - b * (a / b).floor()),
        Op::FNegate => float_result(-a),
        Op::FConvert => float_result(a),
        Op::QuantizeToF16 if a.abs() < 2.0_f64.powi(-14) => float_result(0.0_f64.copysign(a)),
        Op::QuantizeToF16 => float_result(half_to_f64(half_from_f64(a))),
        // NaN is in no range.
        Op::ConvertFToU => (0.0..2.0_f64.powi(bits as i32)).contains(&a.trunc()).then_some(a as u64),
        Op::ConvertFToS => {
            let limit = 2.0_f64.powi(bits as i32 - 1);
            (-limit..limit).contains(&a.trunc()).then_some(a as i64 as u64 & mask(bits))
        }
        Op::IsNan => bool_result(a.is_nan()),
        Op::IsInf => bool_result(a.is_infinite()),
        Op::FOrdEqual => bool_result(!unordered && a == b),
        Op::FUnordEqual => bool_result(unordered || a == b),
        Op::FOrdNotEqual => bool_result(!unordered && a != b),
        Op::FUnordNotEqual => bool_result(unordered || a != b),
        Op::FOrdLessThan => bool_result(!unordered && a < b),
        Op::FUnordLessThan => bool_result(unordered || a < b),
        Op::FOrdGreaterThan => bool_result(!unordered && a > b),
        Op::FUnordGreaterThan => bool_result(unordered || a > b),
        Op::FOrdLessThanEqual => bool_result(!unordered && a <= b),
        Op::FUnordLessThanEqual => bool_result(unordered || a <= b),
        Op::FOrdGreaterThanEqual => bool_result(!unordered && a >= b),
        Op::FUnordGreaterThanEqual => bool_result(unordered || a >= b),
        _ => None,
    }
}

/// Returns true if `GLSL.std.450` leaves the result of an extended instruction undefined.
pub(crate) fn is_undefined(op: Extended, a: f64, b: f64, c: f64) -> bool {
    match op {
        Extended::Asin | Extended::Acos => a.abs() > 1.0,
        Extended::Acosh => a < 1.0,
        Extended::Atanh => a.abs() >= 1.0,
        Extended::Atan2 => a == 0.0 && b == 0.0,
        Extended::Pow => a < 0.0 || a == 0.0 && b <= 0.0,
        Extended::Log | Extended::Log2 | Extended::InverseSqrt => a <= 0.0,
        Extended::Sqrt => a < 0.0,
        Extended::FClamp | Extended::NClamp => b > c,
        Extended::SmoothStep => a >= b,
        _ => false,
    }
}

/// Computes an extended instruction on components.
pub(crate) fn compute_extended(op: Extended, a: f64, b: f64, c: f64) -> Option<f64> {
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
        Extended::Step if b < a => 0.0,
        Extended::Step => 1.0,
        Extended::SmoothStep => {
            let t = (c - a) / (b - a);
            // As the operands of `FMax`, of which one is NaN.
            let t = if t.is_nan() { 0.0 } else { t.clamp(0.0, 1.0) };
            t * t * (3.0 - 2.0 * t)
        }
        Extended::Fma => a.mul_add(b, c),
        _ => return None,
    })
}

/// Returns true if `GLSL.std.450` leaves the product of a float of `width` bits and a power of 2 undefined.
pub(crate) fn is_ldexp_undefined(value: f64, power: i32, width: u32) -> bool {
    let product = float_from_bits(float_to_bits(ldexp(value, power), width), width);
    power > if width == 64 { 1024 } else { 128 } || value.is_finite() && product.is_infinite()
}

/// Multiplies by 2 to the power of `power`, rounding once.
pub(crate) fn ldexp(value: f64, power: i32) -> f64 {
    // In steps, because the power may overflow although the product does not.
    let step = power.clamp(-1000, 1000);
    let rest = power.saturating_sub(step).clamp(-1000, 1000);
    value * 2.0_f64.powi(step) * 2.0_f64.powi(rest)
}
