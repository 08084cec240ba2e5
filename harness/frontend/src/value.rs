//! Values of the walk: known, read from shared memory, or beyond it.

use std::collections::BTreeSet;
use std::rc::Rc;

/// A variable as one invocation sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Object {
    /// The id of the variable; of those that share a binding the first.
    pub variable: u32,
    /// Which element of an array of descriptors, which workgroup's copy, or which activation of the function.
    pub instance: u64,
}

/// A pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pointer {
    pub object: Object,
    /// In bytes.
    pub offset: u64,
    /// The type that it points to.
    pub ty: u32,
    /// Where it points to an element of an array, the bytes from one to the next.
    pub stride: Option<u64>,
    /// `Coherent` or `Volatile` on the way from the variable.
    pub coherent: bool,
}

/// A value that is never looked at before it was given one: which.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Origin {
    /// What this memory holds at first; of memory that each invocation has for itself, in this one.
    Memory(Object, u64, Option<u16>),
    /// What this instruction of the text gives in this invocation.
    Instruction(u32, u16),
    /// The same of one that has no defined result for its operands ([`crate::lacking`]).
    Lacking(u32, u16),
}

impl Origin {
    /// What this memory holds at first.
    pub fn of(cell: Cell) -> Origin {
        Origin::Memory(cell.object, cell.offset, None)
    }
}

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    /// Bits, zero-extended; a truth is 0 or 1.
    Known(u64),
    /// What a register of the thread holds.
    Register(u16),
    /// A truth that depends on registers.
    Truth(Rc<Truth>),
    /// A float, or what was computed of one, or what is not followed.
    Opaque,
    /// A value that nobody gave.
    Undefined(Origin),
    /// Zero of whatever type.
    Null,
    Pointer(Pointer),
    Composite(Rc<Vec<Value>>),
}

impl Value {
    /// Whether it comes of an instruction without a defined result.
    pub fn is_lacking(&self) -> bool {
        matches!(self, Value::Undefined(Origin::Lacking(..)))
    }
}

/// A relation of two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relation {
    Equal,
    UnsignedLess,
    UnsignedLessOrEqual,
    SignedLess,
    SignedLessOrEqual,
}

impl Relation {
    pub fn holds(self, left: u64, right: u64, bits: u32) -> bool {
        let signed = |value: u64| {
            let shift = 64 - bits.clamp(1, 64);
            ((value << shift) as i64) >> shift
        };
        match self {
            Relation::Equal => left == right,
            Relation::UnsignedLess => left < right,
            Relation::UnsignedLessOrEqual => left <= right,
            Relation::SignedLess => signed(left) < signed(right),
            Relation::SignedLessOrEqual => signed(left) <= signed(right),
        }
    }
}

/// A number that is known or in a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Number {
    Known(u64),
    Register(u16),
}

/// A truth that depends on registers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Truth {
    Known(bool),
    Compare {
        relation: Relation,
        left: Number,
        right: Number,
        bits: u32,
    },
    Not(Rc<Truth>),
    And(Rc<Truth>, Rc<Truth>),
    /// Both or neither.
    Same(Rc<Truth>, Rc<Truth>),
}

/// What a register may hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Domain {
    Values(Rc<BTreeSet<u64>>),
    Any,
}

/// Values of a domain at most that is no `Any`.
pub(crate) const MAX_VALUES: usize = 128;

impl Domain {
    pub fn one(value: u64) -> Domain {
        Domain::Values(Rc::new(BTreeSet::from([value])))
    }

    pub fn none() -> Domain {
        Domain::Values(Rc::new(BTreeSet::new()))
    }

    pub fn values(&self) -> Option<&BTreeSet<u64>> {
        match self {
            Domain::Values(values) => Some(values),
            Domain::Any => None,
        }
    }

    pub fn single(&self) -> Option<u64> {
        let values = self.values()?;
        if values.len() == 1 { values.first().copied() } else { None }
    }

    /// Adds what another holds; whether that was new.
    pub fn add(&mut self, other: &Domain) -> bool {
        match (&mut *self, other) {
            (Domain::Any, _) => false,
            (_, Domain::Any) => {
                *self = Domain::Any;
                true
            }
            (Domain::Values(mine), Domain::Values(theirs)) => {
                if theirs.is_subset(mine) {
                    return false;
                }
                Rc::make_mut(mine).extend(theirs.iter());
                if mine.len() > MAX_VALUES {
                    *self = Domain::Any;
                }
                true
            }
        }
    }

    /// Only what `keep` keeps.
    pub fn filtered(&self, keep: impl Fn(u64) -> bool) -> Domain {
        match self {
            Domain::Any => Domain::Any,
            Domain::Values(values) => {
                Domain::Values(Rc::new(values.iter().copied().filter(|value| keep(*value)).collect()))
            }
        }
    }

    /// What a function makes of it.
    pub fn mapped(&self, other: &Domain, function: impl Fn(u64, u64) -> u64) -> Domain {
        let (Domain::Values(left), Domain::Values(right)) = (self, other) else { return Domain::Any };
        if left.len() * right.len() > MAX_VALUES * MAX_VALUES {
            return Domain::Any;
        }
        let values: BTreeSet<u64> =
            left.iter().flat_map(|l| right.iter().map(|r| function(*l, *r))).collect();
        if values.len() > MAX_VALUES { Domain::Any } else { Domain::Values(Rc::new(values)) }
    }
}

/// A place in shared memory that accesses name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Cell {
    pub object: Object,
    pub offset: u64,
    pub bytes: u32,
}
