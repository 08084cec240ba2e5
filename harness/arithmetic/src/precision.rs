//! Results of float instructions that every device computes (Vulkan, "Precision and Operation of SPIR-V Instructions").
//!
//! A correctly rounded result has no fixed rounding mode, a product and a sum may be contracted, denormal numbers may be
//! flushed, and infinities, NaN and the sign of zero need not be preserved. So a result is fixed if no step rounds and all
//! numbers are normal or zero. Sound for "fixed": composed instructions and functions with an error bound never are.

use rspirv::spirv::{GlslStd450Op as Extended, Op};

use crate::composite::to_floats;
use crate::float::{float_from_bits, float_to_bits};
use crate::{Instruction, NumberKind, NumberShape, Operand, sign_extend};

/// Returns true if devices preserve a number.
fn is_preserved(number: u64, bits: u32) -> bool {
    let value = float_from_bits(number, bits);
    let smallest = match bits {
        16 => 2.0_f64.powi(-14),
        64 => f64::MIN_POSITIVE,
        _ => f32::MIN_POSITIVE.into(),
    };
    value.is_finite() && (number == 0 || value.abs() >= smallest)
}

/// Returns true if `sum` is the sum of `a` and `b` without an error (Knuth's TwoSum).
fn is_exact_sum(a: f64, b: f64, sum: f64) -> bool {
    let rest = sum - a;
    sum == a + b && (a - (sum - rest)) + (b - rest) == 0.0
}

/// Returns true if `product` is the product of `a` and `b` without an error.
fn is_exact_product(a: f64, b: f64, product: f64) -> bool {
    a.mul_add(b, -product) == 0.0
}

impl Instruction {
    /// Returns true if every device computes the same component.
    pub fn is_fixed_component(
        self,
        arguments: &[u64],
        kind: NumberKind,
        from: u32,
        bits: u32,
        result: u64,
    ) -> bool {
        let value = |number: &u64| float_from_bits(*number, from);
        let first = arguments.first().copied().unwrap_or(0);
        let [a, b, c] = [0, 1, 2].map(|index| arguments.get(index).map_or(0.0, value));
        let to = float_from_bits(result, bits);
        let product = float_from_bits(float_to_bits(a * b, bits), bits);
        let is_copy = match self {
            Instruction::Core(op) => match op {
                Op::ConvertSToF => return to as i128 == i128::from(sign_extend(first, from)),
                Op::ConvertUToF => return to as i128 == i128::from(first),
                Op::FAdd if !is_exact_sum(a, b, to) => return false,
                Op::FSub if !is_exact_sum(a, -b, to) => return false,
                Op::FMul if !is_exact_product(a, b, to) => return false,
                Op::FConvert | Op::QuantizeToF16 if to != a => return false,
                Op::FDiv | Op::FRem | Op::FMod => return false,
                Op::FAdd | Op::FSub | Op::FMul | Op::FConvert | Op::QuantizeToF16 | Op::FNegate => false,
                // Copies, and results that are no floats.
                _ => true,
            },
            Instruction::Extended(_) if kind != NumberKind::Float => return true,
            Instruction::Extended(op) => match op {
                Extended::Round if a.fract().abs() == 0.5 => return false,
                Extended::Fract if !is_exact_sum(a, -a.floor(), to) => return false,
                Extended::Fma if !is_exact_product(a, b, product) || !is_exact_sum(product, c, to) => {
                    return false;
                }
                Extended::Round | Extended::Fract | Extended::Fma => false,
                Extended::RoundEven | Extended::Trunc | Extended::Floor | Extended::Ceil => false,
                Extended::FAbs | Extended::FSign | Extended::Step | Extended::Ldexp => false,
                Extended::FMin | Extended::FMax | Extended::FClamp => false,
                Extended::NMin | Extended::NMax | Extended::NClamp => false,
                _ => return false,
            },
            Instruction::Unpack(_) | Instruction::Pack(_) => return false,
        };
        let is_moved =
            matches!(self, Instruction::Core(Op::Bitcast | Op::CopyObject | Op::CopyLogical | Op::Select));
        // The power of `Ldexp` is an integer.
        let floats = if matches!(self, Instruction::Extended(Extended::Ldexp)) { 1 } else { arguments.len() };
        let has_floats = kind == NumberKind::Float && !is_moved;
        !has_floats
            || (arguments.iter().take(floats).all(|number| is_preserved(*number, from))
                && (is_copy || is_preserved(result, bits)))
    }

    /// Returns true if Vulkan allows different results for these numbers, apart from rounding.
    ///
    /// It leaves remainders of negative integers undefined, and need not preserve NaN. Infinities vary as little as
    /// finite numbers here: shaders start minima with them. Sines are bounded as Direct3D bounds them, up to 100 π.
    #[inline]
    pub fn may_vary_component(
        self,
        arguments: &[u64],
        kind: NumberKind,
        from: u32,
        bits: u32,
        result: u64,
    ) -> bool {
        let value = |index: usize| arguments.get(index).map_or(0.0, |number| float_from_bits(*number, from));
        let is_nan_result = || float_from_bits(result, bits).is_nan();
        match self {
            Instruction::Core(Op::SRem | Op::SMod) => {
                arguments.iter().any(|number| sign_extend(*number, from) < 0)
            }
            _ if kind != NumberKind::Float => false,
            Instruction::Core(op) => match op {
                // The zero has any sign.
                Op::QuantizeToF16 => !(value(0) == 0.0 || value(0).abs() >= 2.0_f64.powi(-14)),
                Op::FAdd | Op::FSub | Op::FMul | Op::FDiv => is_nan_result(),
                // Computed from the quotient, which has no fraction above this bound.
                Op::FRem | Op::FMod => {
                    let significand_bits = match from {
                        16 => 10,
                        64 => 52,
                        _ => 23,
                    };
                    let is_split = (value(0) / value(1)).abs() < 2.0_f64.powi(significand_bits);
                    !is_split || is_nan_result()
                }
                _ => false,
            },
            Instruction::Extended(op) => match op {
                Extended::NMin | Extended::NMax | Extended::NClamp => false,
                Extended::Sin | Extended::Cos | Extended::Tan => {
                    value(0).is_nan() || value(0).abs() > 100.0 * std::f64::consts::PI
                }
                Extended::Ldexp => value(0).is_nan(),
                // A step is the square of the operand.
                Extended::Asinh | Extended::Acosh => {
                    let square = float_to_bits(value(0) * value(0), bits);
                    !float_from_bits(square, bits).is_finite()
                }
                _ => is_nan_result() || (0..arguments.len()).any(|index| value(index).is_nan()),
            },
            Instruction::Unpack(_) | Instruction::Pack(_) => false,
        }
    }

    /// Does the same for a composed instruction with the components `computed`.
    ///
    /// Lengths vary if the sum of squares overflows or is denormal.
    pub fn may_vary(self, operands: &[Operand<'_>], result: &[NumberShape], computed: &[u64]) -> bool {
        let has_float = |numbers: &[u64], shape: NumberShape, test: fn(f64) -> bool| {
            let mut numbers = numbers.iter().take(shape.count());
            shape.kind == NumberKind::Float
                && numbers.any(|number| test(float_from_bits(*number, shape.bits)))
        };
        let has_result = |test| result.first().is_some_and(|shape| has_float(computed, *shape, test));
        let has_operand =
            |test| operands.iter().any(|operand| has_float(operand.numbers, operand.shape, test));
        let is_length = match self {
            Instruction::Core(op) => {
                return !matches!(op, Op::Transpose | Op::Bitcast) && has_result(f64::is_nan);
            }
            Instruction::Extended(Extended::ModfStruct) => return has_operand(f64::is_nan),
            Instruction::Extended(Extended::FrexpStruct) => return has_operand(|number| !number.is_finite()),
            Instruction::Extended(op) => {
                matches!(op, Extended::Length | Extended::Distance | Extended::Normalize)
            }
            Instruction::Unpack(_) | Instruction::Pack(_) => return false,
        };
        let (Some(first), true) = (operands.first(), is_length) else {
            return has_operand(f64::is_nan) || has_result(|number| !number.is_finite());
        };
        let (a, b) = (to_floats(first), operands.get(1).map(to_floats));
        let square =
            |(index, a): (usize, &f64)| (a - b.as_ref().and_then(|b| b.get(index)).unwrap_or(&0.0)).powi(2);
        let sum: f64 = a.iter().enumerate().map(square).sum();
        !is_preserved(float_to_bits(sum, first.shape.bits), first.shape.bits) || has_result(f64::is_nan)
    }

    /// Returns true if every device computes the same components of a composed instruction: floats are only moved, or there are none.
    pub fn is_fixed(self, operands: &[Operand<'_>], result: &[NumberShape]) -> bool {
        let mut shapes = operands.iter().map(|operand| &operand.shape).chain(result);
        matches!(self, Instruction::Core(Op::Transpose | Op::Bitcast))
            || shapes.all(|shape| shape.kind != NumberKind::Float)
    }
}

#[cfg(test)]
mod tests {
    use super::{Instruction, NumberKind};
    use crate::float_to_bits;
    use rspirv::spirv::{GlslStd450Op as Extended, Op};

    fn is_fixed(instruction: Instruction, numbers: &[f64]) -> bool {
        let arguments: Vec<u64> = numbers.iter().map(|number| float_to_bits(*number, 32)).collect();
        let result = instruction.compute_component(&arguments, NumberKind::Float, 32, 32).unwrap();
        instruction.is_fixed_component(&arguments, NumberKind::Float, 32, 32, result)
    }

    #[test]
    fn results_that_need_no_rounding_are_fixed() {
        let tiny = f64::from(f32::from_bits(1));
        for (instruction, numbers, expected) in [
            (Instruction::Core(Op::FAdd), &[0.5, 0.25][..], true),
            (Instruction::Core(Op::FAdd), &[16_777_216.0, 1.0], false),
            (Instruction::Core(Op::FAdd), &[1e30, 1e-30], false),
            (Instruction::Core(Op::FSub), &[3.0, 3.0], true),
            (Instruction::Core(Op::FMul), &[4097.0, 4095.0], true),
            (Instruction::Core(Op::FMul), &[4097.0, 4097.0], false),
            (Instruction::Core(Op::FMul), &[-1.0, 0.0], false),
            (Instruction::Core(Op::FMul), &[3e38, 2.0], false),
            (Instruction::Core(Op::FDiv), &[6.0, 3.0], false),
            (Instruction::Core(Op::FOrdLessThan), &[1.0, 2.0], true),
            (Instruction::Core(Op::FOrdLessThan), &[0.0, tiny], false),
            (Instruction::Extended(Extended::Floor), &[2.5], true),
            (Instruction::Extended(Extended::Round), &[2.5], false),
            (Instruction::Extended(Extended::Round), &[2.25], true),
            (Instruction::Extended(Extended::Fma), &[3.0, 5.0, 1.0], true),
            (Instruction::Extended(Extended::Fma), &[4097.0, 4097.0, 1.0], false),
            (Instruction::Extended(Extended::Sqrt), &[4.0], false),
            (Instruction::Extended(Extended::FMax), &[4.0, 5.0], true),
        ] {
            assert_eq!(is_fixed(instruction, numbers), expected, "{instruction:?} {numbers:?}");
        }
        let number = |value: i64| [value as u64 & 0xffff_ffff];
        for (value, expected) in [(-7, true), (16_777_217, false)] {
            let instruction = Instruction::Core(Op::ConvertSToF);
            let result = instruction.compute_component(&number(value), NumberKind::Integer, 32, 32).unwrap();
            let is_fixed =
                instruction.is_fixed_component(&number(value), NumberKind::Integer, 32, 32, result);
            assert_eq!(is_fixed, expected, "{value}");
        }
    }
}
