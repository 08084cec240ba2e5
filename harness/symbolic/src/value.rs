//! Symbolic values: known numbers, registers of the emitted thread, comparisons, and unspecified values.

use std::rc::Rc;

use entry_point::layout::{MemoryCell, ObjectId};
use entry_point::open_memory::OpenMemory;

/// A pointer into an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SymbolicPointer {
    pub object: ObjectId,
    pub offset: u64,
    /// A register with the part of the offset that depends on read values.
    pub variable_offset: Option<u16>,
    pub ty: u32,
    /// For an array element, the bytes from one element to the next.
    pub stride: Option<u64>,
    /// True if the path from the variable is `Coherent` or `Volatile`.
    pub coherent: bool,
}

/// The origin of an unspecified value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum UndefOrigin {
    /// Initial memory; for private memory, that of one invocation.
    Memory(ObjectId, u64, Option<u16>),
    /// The result of an instruction (by its line or word) in one invocation.
    Instruction(u32, u16),
    /// The undefined result of an instruction for its operands ([`entry_point`]).
    UndefinedResult(u32, u16),
}

impl UndefOrigin {
    /// Returns the origin of a cell's initial content.
    pub fn from_cell(cell: MemoryCell) -> UndefOrigin {
        UndefOrigin::Memory(cell.object, cell.offset, None)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SymbolicValue {
    /// Known bits, zero-extended; a boolean is 0 or 1.
    Known(u64),
    Register(u16),
    /// A boolean that depends on registers.
    Truth(Rc<SymbolicTruth>),
    /// A float, a value computed from one, or another value without a representation.
    Opaque,
    /// An unspecified value.
    Undefined(UndefOrigin),
    /// Zero of any type.
    Null,
    Pointer(SymbolicPointer),
    Composite(Rc<Vec<SymbolicValue>>),
}

impl SymbolicValue {
    /// Returns true for the undefined result of an instruction.
    pub fn is_undefined_result(&self) -> bool {
        matches!(self, SymbolicValue::Undefined(UndefOrigin::UndefinedResult(..)))
    }
}

/// An order relation of two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OrderRelation {
    Equal,
    UnsignedLess,
    UnsignedLessOrEqual,
    SignedLess,
    SignedLessOrEqual,
}

impl OrderRelation {
    pub fn is_satisfied(self, left: u64, right: u64, bits: u32) -> bool {
        let signed = |value: u64| {
            let shift = 64 - bits.clamp(1, 64);
            ((value << shift) as i64) >> shift
        };
        match self {
            OrderRelation::Equal => left == right,
            OrderRelation::UnsignedLess => left < right,
            OrderRelation::UnsignedLessOrEqual => left <= right,
            OrderRelation::SignedLess => signed(left) < signed(right),
            OrderRelation::SignedLessOrEqual => signed(left) <= signed(right),
        }
    }
}

/// A number that is known or in a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SymbolicNumber {
    Known(u64),
    Register(u16),
}

impl SymbolicNumber {
    pub(crate) fn to_value(self) -> SymbolicValue {
        match self {
            SymbolicNumber::Known(number) => SymbolicValue::Known(number),
            SymbolicNumber::Register(register) => SymbolicValue::Register(register),
        }
    }
}

/// A boolean expression over registers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SymbolicTruth {
    Known(bool),
    Compare {
        relation: OrderRelation,
        left: SymbolicNumber,
        right: SymbolicNumber,
        bits: u32,
    },
    Not(Rc<SymbolicTruth>),
    And(Rc<SymbolicTruth>, Rc<SymbolicTruth>),
    /// True if both are equal.
    Equal(Rc<SymbolicTruth>, Rc<SymbolicTruth>),
}

/// A set of numbers, in ascending order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueSet(Vec<u64>);

impl ValueSet {
    pub fn iter(&self) -> std::slice::Iter<'_, u64> {
        self.0.iter()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn contains(&self, value: u64) -> bool {
        self.0.binary_search(&value).is_ok()
    }
}

impl FromIterator<u64> for ValueSet {
    fn from_iter<I: IntoIterator<Item = u64>>(values: I) -> ValueSet {
        let mut values: Vec<u64> = values.into_iter().collect();
        values.sort_unstable();
        values.dedup();
        ValueSet(values)
    }
}

/// The set of values that a register may hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NumberDomain {
    Values(Rc<ValueSet>),
    Any,
}

/// Upper bound on the values of a finite domain; larger sets become `Any`.
pub(crate) const MAX_VALUES: usize = 128;

impl NumberDomain {
    pub fn from_value(value: u64) -> NumberDomain {
        NumberDomain::Values(Rc::new(ValueSet(vec![value])))
    }

    pub fn empty() -> NumberDomain {
        NumberDomain::Values(Rc::new(ValueSet(Vec::new())))
    }

    pub fn finite_values(&self) -> Option<&ValueSet> {
        match self {
            NumberDomain::Values(values) => Some(values),
            NumberDomain::Any => None,
        }
    }

    pub fn single_value(&self) -> Option<u64> {
        let values = self.finite_values()?;
        if let [value] = values.0[..] { Some(value) } else { None }
    }

    /// Adds the values of another domain; returns true if any was new.
    pub fn union_with(&mut self, other: &NumberDomain) -> bool {
        match (&mut *self, other) {
            (NumberDomain::Any, _) => false,
            (_, NumberDomain::Any) => {
                *self = NumberDomain::Any;
                true
            }
            (NumberDomain::Values(mine), NumberDomain::Values(theirs)) => {
                if theirs.iter().all(|value| mine.contains(*value)) {
                    return false;
                }
                *mine = Rc::new(mine.iter().chain(theirs.iter()).copied().collect());
                if mine.len() > MAX_VALUES {
                    *self = NumberDomain::Any;
                }
                true
            }
        }
    }

    /// Adds the values that others write to a cell.
    pub fn union_with_open(&mut self, open: Option<&OpenMemory>, cell: MemoryCell) {
        let Some(open) = open else { return };
        let Some(values) = &open.values else {
            *self = NumberDomain::Any;
            return;
        };
        let narrow = arithmetic::mask(cell.bytes.saturating_mul(8));
        for value in values {
            self.union_with(&NumberDomain::from_value(*value & narrow));
        }
    }

    /// Returns the values that satisfy `keep`.
    pub fn filter_values(&self, keep: impl Fn(u64) -> bool) -> NumberDomain {
        match self {
            NumberDomain::Any => NumberDomain::Any,
            NumberDomain::Values(values) => {
                NumberDomain::Values(Rc::new(values.iter().copied().filter(|value| keep(*value)).collect()))
            }
        }
    }

    /// Applies a function to all pairs of values.
    pub fn map_values(&self, other: &NumberDomain, function: impl Fn(u64, u64) -> u64) -> NumberDomain {
        let (NumberDomain::Values(left), NumberDomain::Values(right)) = (self, other) else {
            return NumberDomain::Any;
        };
        if left.len() * right.len() > MAX_VALUES * MAX_VALUES {
            return NumberDomain::Any;
        }
        let values: ValueSet = left.iter().flat_map(|l| right.iter().map(|r| function(*l, *r))).collect();
        if values.len() > MAX_VALUES { NumberDomain::Any } else { NumberDomain::Values(Rc::new(values)) }
    }
}
