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
pub use texel::TexelFormat;

impl Instruction {
    /// Returns true if each component depends only on the same components of the operands, or on scalars.
    pub fn is_componentwise(self) -> bool {
        !composite::is_composite(self)
    }

    /// Computes one component; `None` if the instruction is unknown or its result undefined.
    ///
    /// The first operand has `kind` and `from` bits, the result `bits`.
    pub fn compute_component(self, arguments: &[u64], kind: NumberKind, from: u32, bits: u32) -> Option<u64> {
        match self {
            Instruction::Core(op) => scalar(op, arguments, kind, from, bits),
            Instruction::Extended(GlslStd450Op::Ldexp) => {
                let power = sign_extend(*arguments.get(1)?, 32) as i32;
                Some(float_to_bits(float::ldexp(float_from_bits(*arguments.first()?, from), power), bits))
            }
            Instruction::Extended(op) if kind == NumberKind::Float => {
                let at = |index: usize| arguments.get(index).map_or(0.0, |bits| float_from_bits(*bits, from));
                float::compute_extended(op, at(0), at(1), at(2)).map(|value| float_to_bits(value, bits))
            }
            Instruction::Extended(op) => fold_extended(op, arguments, from, bits),
            Instruction::Unpack(_) | Instruction::Pack(_) => None,
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
            let arguments = arguments.get(..operands.len())?;
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
            let ones: Vec<u64> = operands.iter().map(unit_value).collect();
            return match (operands, result) {
                ([first, ..], [to]) if ones.len() <= MAX_OPERANDS => {
                    self.compute_component(&ones, first.kind, first.bits, to.bits).is_some()
                }
                _ => false,
            };
        }
        let ones: Vec<Vec<u64>> =
            operands.iter().map(|shape| vec![unit_value(shape); shape.count()]).collect();
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

    /// A matrix, its inverse, and other known results.
    #[test]
    fn matrix_operations_are_computed() {
        let matrix = bits(&[2.0, 0.0, 0.0, 0.0, 4.0, 0.0, 1.0, 0.0, 0.5]);
        let compute = |op, to| {
            let operands = [Operand { numbers: &matrix, shape: float(3, 3) }];
            Instruction::Extended(op).compute(&operands, &[to]).unwrap()
        };
        assert_eq!(compute(GlslStd450Op::Determinant, float(1, 1)), bits(&[4.0]));
        let inverse = bits(&[0.5, 0.0, 0.0, 0.0, 0.25, 0.0, -1.0, 0.0, 2.0]);
        let inverted = compute(GlslStd450Op::MatrixInverse, float(3, 3));
        let without_signs = |all: &[u64]| all.iter().map(|bits| bits & 0x7fff_ffff).collect::<Vec<_>>();
        assert_eq!(without_signs(&inverted), without_signs(&inverse));
        let other = bits(&[1.0, 2.0, 3.0]);
        let product = |op, operands: [(&[u64], u32); 2], columns| {
            let operands = operands.map(|(numbers, columns)| Operand { numbers, shape: float(3, columns) });
            Instruction::Core(op).compute(&operands, &[float(3, columns)]).unwrap()
        };
        assert_eq!(product(Op::Dot, [(&other, 1), (&other, 1)], 1), bits(&[14.0]));
        assert_eq!(product(Op::MatrixTimesVector, [(&matrix, 3), (&other, 1)], 1), bits(&[5.0, 8.0, 1.5]));
        assert_eq!(product(Op::VectorTimesMatrix, [(&other, 1), (&matrix, 3)], 1), bits(&[2.0, 8.0, 2.5]));
        let square = bits(&[4.0, 0.0, 0.0, 0.0, 16.0, 0.0, 2.5, 0.0, 0.25]);
        assert_eq!(product(Op::MatrixTimesMatrix, [(&matrix, 3), (&matrix, 3)], 3), square);
        let word = NumberShape { kind: NumberKind::Integer, bits: 32, rows: 1, columns: 1 };
        let numbers = [[0xffff_ffff], [0xffff_fffe]];
        let operands = [0, 1].map(|at| Operand { numbers: &numbers[at], shape: word });
        let compute_wide = |op: Op| Instruction::Core(op).compute(&operands, &[word, word]).unwrap();
        assert_eq!(compute_wide(Op::UMulExtended), [2, 0xffff_fffd]);
        assert_eq!(compute_wide(Op::SMulExtended), [2, 0]);
        assert_eq!(compute_wide(Op::IAddCarry), [0xffff_fffd, 1]);
        assert_eq!(compute_wide(Op::ISubBorrow), [1, 0]);
    }

    /// Widening, wrapping, saturating and undefined sums.
    #[test]
    fn products_of_integers_add_up() {
        let integer_shape = |bits, rows| NumberShape { kind: NumberKind::Integer, bits, rows, columns: 1 };
        let dot = |op, all: &[(&[u64], u32)], to| {
            let operands = all.iter().map(|(numbers, bits)| {
                let shape = integer_shape(*bits, numbers.len() as u32);
                Operand { numbers, shape }
            });
            Instruction::Core(op).compute(&operands.collect::<Vec<_>>(), &[integer_shape(to, 1)])
        };
        let low = (&[0x80, 0x80, 0x80, 0x80][..], 8);
        let (ones, packed) = ((&[0xff, 0xff, 0xff, 0xff][..], 8), (&[0x8080_8080][..], 32));
        for bytes in [low, packed] {
            assert_eq!(dot(Op::SDot, &[bytes, bytes], 32), Some(vec![65_536]));
            assert_eq!(dot(Op::SDot, &[bytes, bytes], 16), Some(vec![0]));
            assert_eq!(dot(Op::UDot, &[bytes, ones], 32), Some(vec![4 * 128 * 255]));
            assert_eq!(dot(Op::SUDot, &[bytes, ones], 32), Some(vec![0x1_0000_0000 - 4 * 128 * 255]));
        }
        let with_accumulator = |number: u64| {
            [(&[1, 1][..], 32), (&[2, 3][..], 32), (&[number][..], 32)].map(|one| (one.0.to_vec(), one.1))
        };
        let saturated = |op, number| {
            let all = with_accumulator(number);
            dot(op, &all.each_ref().map(|(numbers, bits)| (&numbers[..], *bits)), 32)
        };
        assert_eq!(saturated(Op::SDotAccSat, 0x7fff_fffd), Some(vec![0x7fff_ffff]));
        assert_eq!(saturated(Op::SDotAccSat, 0xffff_ffff), Some(vec![4]));
        assert_eq!(saturated(Op::UDotAccSat, 0xffff_ffff), Some(vec![0xffff_ffff]));
        let large = (&[0x4000_0000, 0x4000_0000][..], 32);
        assert_eq!(dot(Op::SDotAccSat, &[large, large, (&[0], 32)], 32), None);
        assert_eq!(dot(Op::SDot, &[large, large], 32), Some(vec![0]));
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
