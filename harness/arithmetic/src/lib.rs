//! The arithmetic of SPIR-V instructions: numbers in, numbers out.
//!
//! The grid walk and the simulated GPU share this crate, so they support the same instructions and compute
//! the same results. It has no notion of memory or invocations.
//!
//! A number is a `u64` with its bits at the low end and zeros above; booleans are 0 and 1. Floats are
//! computed in 64 bits and rounded once to their own size, to the nearest. For sums, differences, products,
//! quotients and roots of 16 and 32 bits the result is correctly rounded. Where Vulkan allows a range
//! ("Precision and Operation of SPIR-V Instructions"), the result lies in it. Composed instructions (`OpDot`,
//! matrix products) round after each step, as the specification derives them.

mod composite;
mod float;
mod instruction;
mod integer;
mod precision;
mod table;
mod texel;

use rspirv::spirv::{GlslStd450Op, Op};

pub use float::{float_from_bits, float_to_bits, format_float, split_fraction};
pub use instruction::{Instruction, NumberKind, NumberShape, Operand};
pub use integer::{can_fold, fold, fold_extended, is_absorbing_operand, mask, sign_extend};
pub use table::{Computation, computation};
pub use texel::{TexelFormat, TexelKind};

impl Instruction {
    /// Returns true if each component depends only on the same components of the operands, or on scalars.
    pub fn is_componentwise(self) -> bool {
        !composite::is_composite(self)
    }

    /// Computes one component; `None` if the instruction is unknown or its result undefined.
    ///
    /// The first operand has `kind` and `from` bits, the result `bits`.
    pub fn compute_component(self, arguments: &[u64], kind: NumberKind, from: u32, bits: u32) -> Option<u64> {
        let at = |index: usize| arguments.get(index).map_or(0.0, |bits| float_from_bits(*bits, from));
        match self {
            Instruction::Core(op) => scalar(op, arguments, kind, from, bits),
            Instruction::Extended(GlslStd450Op::Ldexp) => {
                let power = sign_extend(*arguments.get(1)?, 32) as i32;
                let is_undefined = float::is_ldexp_undefined(at(0), power, from);
                (!is_undefined).then(|| float_to_bits(float::ldexp(at(0), power), bits))
            }
            Instruction::Extended(op) if kind == NumberKind::Float => {
                let [a, b, c] = [at(0), at(1), at(2)];
                let value =
                    float::compute_extended(op, a, b, c).filter(|_| !float::is_undefined(op, a, b, c));
                value.map(|value| float_to_bits(value, bits))
            }
            Instruction::Extended(op) => fold_extended(op, arguments, from, bits),
            Instruction::Unpack(_) | Instruction::Pack(_) => None,
        }
    }

    /// Computes one component as Direct3D does where SPIR-V leaves the result of floats undefined (D3D11.3, 22): conversions
    /// saturate, and functions follow IEEE 754.
    pub fn compute_by_direct3d(self, arguments: &[u64], from: u32, bits: u32) -> Option<u64> {
        let at = |index: usize| arguments.get(index).map_or(0.0, |bits| float_from_bits(*bits, from));
        let max_signed = (mask(bits) >> 1) as i64;
        match self {
            Instruction::Core(Op::ConvertFToU) => Some((at(0) as u64).min(mask(bits))),
            Instruction::Core(Op::ConvertFToS) => {
                Some((at(0) as i64).clamp(-max_signed - 1, max_signed) as u64 & mask(bits))
            }
            Instruction::Core(Op::FRem | Op::FMod) => Some(float_to_bits(f64::NAN, bits)),
            Instruction::Extended(op) => {
                float::compute_extended(op, at(0), at(1), at(2)).map(|value| float_to_bits(value, bits))
            }
            Instruction::Core(_) | Instruction::Unpack(_) | Instruction::Pack(_) => None,
        }
    }

    /// Extends the power of `Ldexp`, an integer of `bits` bits, to the 32 bits that [`Instruction::compute_component`] takes.
    pub fn extend_power(self, arguments: &mut [u64], bits: u32) {
        if let (Instruction::Extended(GlslStd450Op::Ldexp), [_, power, ..]) = (self, arguments) {
            let extended = sign_extend(*power, bits).clamp(i32::MIN.into(), i32::MAX.into());
            *power = u64::from(extended as i32 as u32);
        }
    }

    /// Computes all components, for structures member by member; undefined ones are 0.
    ///
    /// Returns `None` if the instruction is unknown for these operands.
    pub fn compute(self, operands: &[Operand<'_>], result: &[NumberShape]) -> Option<Vec<u64>> {
        if composite::is_composite(self) {
            return composite::compute(self, operands, result);
        }
        let (first, to) = (operands.first()?, result.first()?);
        let mut arguments = [0; MAX_OPERANDS];
        if operands.len() > MAX_OPERANDS {
            return None;
        }
        let mut all = Vec::with_capacity(to.count());
        for index in 0..to.count() {
            for (argument, operand) in arguments.iter_mut().zip(operands) {
                let last = operand.numbers.len().checked_sub(1)?;
                *argument = *operand.numbers.get(index.min(last))?;
            }
            let arguments = arguments.get_mut(..operands.len())?;
            self.extend_power(arguments, operands.get(1).map_or(32, |power| power.shape.bits));
            all.push(
                self.compute_component(arguments, first.shape.kind, first.shape.bits, to.bits).unwrap_or(0),
            );
        }
        Some(all)
    }

    /// Returns true if the instruction is known for such operands.
    pub fn is_known(self, operands: &[NumberShape], result: &[NumberShape]) -> bool {
        let unit_value = |shape: &NumberShape| match shape.kind {
            NumberKind::Float => float_to_bits(1.0, shape.bits),
            NumberKind::Bool | NumberKind::Integer => 1,
        };
        if !composite::is_composite(self) {
            let mut ones: Vec<u64> = operands.iter().map(unit_value).collect();
            // Undefined for ones.
            if let (Instruction::Extended(GlslStd450Op::Atanh | GlslStd450Op::SmoothStep), [first, ..]) =
                (self, &mut ones[..])
            {
                *first = 0;
            }
            return match (operands, result) {
                ([first, ..], [to]) if ones.len() <= MAX_OPERANDS => {
                    self.compute_component(&ones, first.kind, first.bits, to.bits).is_some()
                }
                _ => false,
            };
        }
        // A matrix of ones has no inverse.
        let number = |shape: &NumberShape, at: u32| {
            let is_unit = shape.columns == 1 || at / shape.rows == at % shape.rows;
            if is_unit { unit_value(shape) } else { 0 }
        };
        let numbers = |shape: &NumberShape| (0..shape.count() as u32).map(|at| number(shape, at)).collect();
        let ones: Vec<Vec<u64>> = operands.iter().map(numbers).collect();
        let operands: Vec<Operand<'_>> =
            ones.iter().zip(operands).map(|(numbers, shape)| Operand { numbers, shape: *shape }).collect();
        let count: usize = result.iter().map(|shape| shape.count()).sum();
        composite::compute(self, &operands, result).is_some_and(|all| all.len() == count)
    }
}

/// Upper bound on the operands of a scalar instruction.
pub const MAX_OPERANDS: usize = 4;

/// Returns the number of value operands; a literal packing format may follow them.
pub fn count_value_operands(op: Op, operands: usize) -> usize {
    match op {
        Op::SDot | Op::UDot | Op::SUDot => operands.min(2),
        Op::SDotAccSat | Op::UDotAccSat | Op::SUDotAccSat => operands.min(3),
        _ => operands,
    }
}

/// Computes a scalar instruction; `None` if it is unknown or its result undefined.
#[inline]
pub fn scalar(op: Op, arguments: &[u64], kind: NumberKind, from: u32, bits: u32) -> Option<u64> {
    let first = *arguments.first()?;
    match op {
        Op::ConvertSToF if bits == 32 => Some((sign_extend(first, from) as f32).to_bits().into()),
        Op::ConvertUToF if bits == 32 => Some((first as f32).to_bits().into()),
        Op::ConvertSToF => Some(float_to_bits(sign_extend(first, from) as f64, bits)),
        Op::ConvertUToF => Some(float_to_bits(first as f64, bits)),
        Op::Bitcast | Op::CopyObject | Op::CopyLogical => Some(first),
        _ if kind == NumberKind::Float => float::compute_core(op, arguments, from, bits),
        _ => fold(op, arguments, from, bits),
    }
}

#[cfg(test)]
mod tests {
    use super::{Instruction, NumberKind, NumberShape, Operand, float_to_bits};
    use rspirv::spirv::{GlslStd450Op, Op};

    fn float(rows: u32, columns: u32) -> NumberShape {
        NumberShape { kind: NumberKind::Float, bits: 32, rows, columns }
    }

    fn bits(numbers: &[f64]) -> Vec<u64> {
        numbers.iter().map(|number| float_to_bits(*number, 32)).collect()
    }

    /// Negative zeros: the fraction of a negative number, and a sum of them.
    #[test]
    fn zeros_have_the_sign_of_their_operands() {
        let operand = |numbers: &[f64]| bits(numbers);
        let split = Instruction::Extended(GlslStd450Op::ModfStruct);
        for (number, expected) in [
            (-2.0, [-0.0, -2.0]),
            (2.0, [0.0, 2.0]),
            (-1.5, [-0.5, -1.0]),
            (-f64::INFINITY, [-0.0, -f64::INFINITY]),
        ] {
            let operands = [Operand { numbers: &operand(&[number]), shape: float(1, 1) }];
            assert_eq!(split.compute(&operands, &[float(1, 1); 2]).unwrap(), bits(&expected), "{number}");
        }
        let (zeros, ones) = (operand(&[0.0, 0.0]), operand(&[-1.0, -1.0]));
        let operands = [&zeros, &ones].map(|numbers| Operand { numbers, shape: float(2, 1) });
        assert_eq!(Instruction::Core(Op::Dot).compute(&operands, &[float(1, 1)]).unwrap(), bits(&[-0.0]));
    }

    #[test]
    fn unsupported_operations_are_unknown() {
        let (one, word) =
            (float(1, 1), NumberShape { kind: NumberKind::Integer, bits: 32, rows: 1, columns: 1 });
        assert!(Instruction::Core(Op::FAdd).is_known(&[one, one], &[one]));
        assert!(!Instruction::Core(Op::FAdd).is_known(&[word, word], &[word]));
        assert!(!Instruction::Core(Op::DPdx).is_known(&[one], &[one]));
        assert!(!Instruction::Extended(GlslStd450Op::InterpolateAtCentroid).is_known(&[one], &[one]));
    }
}
