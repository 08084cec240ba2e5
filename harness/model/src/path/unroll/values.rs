//! Values as bit-vectors, with the meaning of [`Value`] and of the arithmetic of tests.

use litmus::{ArithmeticOperation, BranchRelation, ScalarType, Value};
use solver::{Bit, BitVector, Circuit};

/// Width of the values: that of [`Value`].
const VALUE_BITS: usize = 64;

/// Returns the value of a read of this number of bits, of which those outside of `mask` are zero.
pub(crate) fn new_read_value(circuit: &mut Circuit, mask: Option<u64>, bits: u32) -> BitVector {
    let mask = mask.unwrap_or(u64::MAX);
    (0..VALUE_BITS)
        .map(
            |place| {
                if (place as u32) < bits && mask >> place & 1 == 1 { circuit.input() } else { Bit::FALSE }
            },
        )
        .collect()
}

/// Returns a bit-vector of a value.
pub(crate) fn to_constant(value: Value) -> BitVector {
    BitVector::constant(VALUE_BITS, value.0.into())
}

/// Returns the low bits that fit into a type.
pub(super) fn low_bits(value: &BitVector, scalar: ScalarType) -> BitVector {
    value.resize(scalar.bits() as usize).resize(VALUE_BITS)
}

/// As [`Value::extend`].
pub(super) fn extend(value: &BitVector, from: ScalarType, to: ScalarType) -> BitVector {
    if !from.is_signed() || from.bits() >= to.bits() {
        return value.clone();
    }
    value.resize(from.bits() as usize).resize_signed(to.bits() as usize).resize(VALUE_BITS)
}

/// Returns a bit that holds if the relation holds between two numbers of a type, as
/// [`BranchRelation::holds`] of [`Value::to_signed`].
pub(crate) fn compare(
    circuit: &mut Circuit,
    relation: BranchRelation,
    left: &BitVector,
    right: &BitVector,
    scalar: ScalarType,
) -> Bit {
    let [left, right] = [left, right].map(|side| side.resize(scalar.bits() as usize));
    match relation {
        BranchRelation::Equal => circuit.equals(&left, &right),
        BranchRelation::NotEqual => !circuit.equals(&left, &right),
        BranchRelation::Less => circuit.less_than_signed(&left, &right),
        BranchRelation::LessOrEqual => circuit.less_or_equal_signed(&left, &right),
        BranchRelation::Greater => circuit.less_than_signed(&right, &left),
        BranchRelation::GreaterOrEqual => circuit.less_or_equal_signed(&right, &left),
    }
}

/// As [`ArithmeticOperation::apply`].
pub(super) fn apply_operation(
    circuit: &mut Circuit,
    operation: ArithmeticOperation,
    left: &BitVector,
    right: &BitVector,
    scalar: ScalarType,
) -> BitVector {
    let [l, r] = [left, right].map(|side| side.resize(scalar.bits() as usize));
    let result = match operation {
        ArithmeticOperation::Add => circuit.add(&l, &r),
        ArithmeticOperation::Subtract => circuit.sub(&l, &r),
        ArithmeticOperation::Multiply => circuit.mul(&l, &r),
        ArithmeticOperation::Divide => {
            let quotient = circuit.sdiv(&l, &r);
            let zero = BitVector::constant(l.width(), 0);
            let is_zero = circuit.equals(right, &BitVector::constant(VALUE_BITS, 0));
            circuit.select(is_zero, &zero, &quotient)
        }
        ArithmeticOperation::And => circuit.bit_and(&l, &r),
        ArithmeticOperation::Or => circuit.bit_or(&l, &r),
        ArithmeticOperation::Xor => circuit.bit_xor(&l, &r),
        ArithmeticOperation::Minimum | ArithmeticOperation::Maximum => {
            let is_less = match scalar.is_signed() {
                true => circuit.less_than_signed(&l, &r),
                false => circuit.less_than(left, right),
            };
            if operation == ArithmeticOperation::Minimum {
                circuit.select(is_less, &l, &r)
            } else {
                circuit.select(is_less, &r, &l)
            }
        }
    };
    result.resize(VALUE_BITS)
}
