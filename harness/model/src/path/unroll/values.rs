//! Values as bit-vectors, with the meaning of [`Value`] and of the arithmetic of tests.

use std::collections::BTreeSet;

use litmus::{ArithmeticOperation, Comparison, LocationId, ScalarType, Value};
use solver::{Bit, BitVector, Circuit, MAX_CASES};

use super::Requirements;

/// Width of the values: that of [`Value`].
pub(crate) const VALUE_BITS: usize = 64;

/// The values that the reads of a storage may return.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ValueSet {
    Few(BTreeSet<u64>),
    /// Those in which bits outside of the mask are zero.
    Masked(u64),
}

/// The values that reads may return.
pub(crate) struct PossibleValues {
    /// Those of the reads of each storage.
    pub(crate) sets: Vec<ValueSet>,
    /// True while the sets are computed: branches on values that are read may go either way, since a read of a larger
    /// set may justify the branch that leads to it.
    pub(crate) ignores_branches: bool,
}

impl PossibleValues {
    /// Returns the values of reads of a storage, if known.
    pub(crate) fn of_storage(&self, storage: LocationId) -> Option<&ValueSet> {
        self.sets.get(usize::from(storage.0))
    }
}

impl ValueSet {
    pub(crate) const ANY: ValueSet = ValueSet::Masked(u64::MAX);

    /// Adds the possible values of a number; returns true if the set grows, then by all values if `widens`.
    pub(crate) fn include(&mut self, value: &BitVector, widens: bool) -> bool {
        let mask_of = |values: &BTreeSet<u64>| values.iter().fold(0, |mask, value| mask | value);
        let bits = value.bits().iter().enumerate().filter(|(_, bit)| **bit != Bit::FALSE);
        let mask = bits.fold(0, |mask, (place, _)| mask | 1_u64 << place);
        let grown = match (&*self, value.cases()) {
            (ValueSet::Few(known), Some(cases)) => {
                let all: BTreeSet<u64> =
                    known.iter().copied().chain(cases.iter().map(|(value, _)| *value)).collect();
                if all.len() > MAX_CASES { ValueSet::Masked(mask_of(&all)) } else { ValueSet::Few(all) }
            }
            (ValueSet::Few(known), None) => ValueSet::Masked(mask_of(known) | mask),
            (ValueSet::Masked(known), _) => ValueSet::Masked(known | mask),
        };
        let grows = *self != grown;
        if grows {
            *self = if widens { ValueSet::ANY } else { grown };
        }
        grows
    }
}

/// Returns the value of a read of this number of bits, one of `possible`.
pub(crate) fn new_read_value(
    circuit: &mut Circuit,
    requirements: &mut Requirements,
    possible: Option<&ValueSet>,
    bits: u32,
) -> BitVector {
    let mut mask = u64::MAX.checked_shl(bits).map_or(u64::MAX, |high| !high);
    if let Some(ValueSet::Few(values)) = possible {
        let values: BTreeSet<u64> = values.iter().map(|value| value & mask).collect();
        let bits: Vec<Bit> = match values.len() {
            2 => {
                let first = circuit.input();
                vec![first, !first]
            }
            count => (0..count).map(|_| circuit.input()).collect(),
        };
        if values.len() > 2 {
            requirements.push(bits.clone());
            for (index, one) in bits.iter().enumerate() {
                requirements.extend(bits[..index].iter().map(|other| vec![!*one, !*other]));
            }
        }
        if let Some(value) = circuit.from_cases(VALUE_BITS, values.into_iter().zip(bits)) {
            return value;
        }
    } else if let Some(ValueSet::Masked(possible)) = possible {
        mask &= possible;
    }
    (0..VALUE_BITS).map(|place| if mask >> place & 1 == 1 { circuit.input() } else { Bit::FALSE }).collect()
}

/// Returns a bit-vector of a value.
pub(crate) fn to_constant(value: Value) -> BitVector {
    BitVector::single_case(VALUE_BITS, value.0)
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
/// [`Comparison::holds`] of [`Value::to_signed`].
pub(crate) fn compare(
    circuit: &mut Circuit,
    relation: Comparison,
    left: &BitVector,
    right: &BitVector,
    scalar: ScalarType,
) -> Bit {
    let holds = |x, y| relation.holds(Value(x).to_signed(scalar), Value(y).to_signed(scalar));
    if let Some(decided) = circuit.decide(left, right, holds) {
        return decided;
    }
    let [left, right] = [left, right].map(|side| side.resize(scalar.bits() as usize));
    match relation {
        Comparison::Equal => circuit.equals(&left, &right),
        Comparison::NotEqual => !circuit.equals(&left, &right),
        Comparison::Less => circuit.less_than_signed(&left, &right),
        Comparison::LessOrEqual => circuit.less_or_equal_signed(&left, &right),
        Comparison::Greater => circuit.less_than_signed(&right, &left),
        Comparison::GreaterOrEqual => circuit.less_or_equal_signed(&right, &left),
    }
}

/// As [`ArithmeticOperation::apply`].
pub(crate) fn apply_operation(
    circuit: &mut Circuit,
    operation: ArithmeticOperation,
    left: &BitVector,
    right: &BitVector,
    scalar: ScalarType,
) -> BitVector {
    let result = |x, y| operation.apply(Value(x), Value(y), scalar).0;
    if let Some(table) = circuit.tabulate(left, right, result) {
        return table;
    }
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
