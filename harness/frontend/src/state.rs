//! Where the walk of one invocation stands.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use litmus::ArithmeticOperation;

use crate::section::Side;
use crate::value::{Cell, Domain, Number, Object, Truth, Value};

/// Parts of private memory: bytes and value by place.
pub(crate) type Memory = BTreeMap<(Object, u64), (u32, Value)>;

/// Computations behind one another that are looked through for what a register may hold, at most.
const DEPTH: u32 = 8;

/// What a register was computed from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Definition {
    pub operation: ArithmeticOperation,
    pub left: Number,
    pub right: Number,
}

/// A read-modify-write that was performed: where its old value is, and what it made of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Performed {
    pub register: u16,
    /// None of an exchange.
    pub operation: Option<ArithmeticOperation>,
    pub value: Number,
    pub scalar: litmus::ScalarType,
}

/// A loop that the walk is in.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Loop {
    /// The label of its header.
    pub header: u32,
    /// Where control leaves it for; 0 for loops without a declared merge block.
    pub merge: u32,
    /// Where the last jump back to the header stands.
    pub end: usize,
    /// Jumps back so far.
    pub iteration: u32,
    /// Writes and barriers when this iteration began.
    pub effects: u32,
    /// Read-modify-writes in [`State::performed`] then.
    pub performed: usize,
    /// The values of the header's phis and private memory when this iteration began.
    pub phis: Vec<Value>,
    pub memory: Rc<Memory>,
    /// Where in the segment's code this iteration began.
    pub start: usize,
    /// The path's forks when the loop was entered: a loop that none was added in depends on nothing that is read.
    pub forks: u32,
}

/// An activation of a function.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Frame {
    pub function: u32,
    /// Index into its code.
    pub at: usize,
    /// Labels of the block that control is in and of the one before.
    pub block: u32,
    pub previous: u32,
    pub values: Rc<HashMap<u32, Value>>,
    pub loops: Vec<Loop>,
    /// The id of the call in the caller.
    pub result: u32,
}

/// Where the walk stands.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct State {
    pub frames: Vec<Frame>,
    pub memory: Rc<Memory>,
    /// What registers may hold on this path.
    pub ranges: Rc<BTreeMap<u16, Domain>>,
    pub definitions: Rc<BTreeMap<u16, Definition>>,
    /// Comparisons that were decided on this path.
    pub assumed: Rc<Vec<(Truth, bool)>>,
    pub next_register: u16,
    pub next_object: u64,
    /// Writes and barriers so far.
    pub effects: u32,
    /// Writes so far.
    pub writes: u32,
    /// Read-modify-writes so far.
    pub updates: Rc<BTreeMap<Cell, u32>>,
    /// Those since the last control barrier.
    pub performed: Rc<Vec<Performed>>,
    /// Forks so far.
    pub forks: u32,
    /// Whether something without a defined result is behind on this path.
    pub suspected: bool,
    /// Where the path stands to the interlocked section.
    pub section: Side,
}

impl State {
    /// The register and the value that a read-modify-write has put back as it was, where that is known of it.
    pub fn kept(&self, performed: &Performed) -> Option<(u16, u64)> {
        let old = self.domain(Number::Register(performed.register)).single()?;
        let value = self.domain(performed.value).single()?;
        let new = match performed.operation {
            Some(operation) => operation.apply(litmus::Value(old), litmus::Value(value), performed.scalar).0,
            None => value,
        };
        (new == old).then_some((performed.register, old))
    }

    /// What a number may be.
    pub fn domain(&self, number: Number) -> Domain {
        self.domain_within(number, 0)
    }

    fn domain_within(&self, number: Number, depth: u32) -> Domain {
        let register = match number {
            Number::Known(value) => return Domain::one(value),
            Number::Register(register) => register,
        };
        let own = self.ranges.get(&register).cloned().unwrap_or(Domain::Any);
        let Some(definition) = self.definitions.get(&register).filter(|_| depth < DEPTH) else { return own };
        let left = self.domain_within(definition.left, depth + 1);
        let right = self.domain_within(definition.right, depth + 1);
        let ty = litmus::ScalarType::U32;
        let computed =
            left.mapped(&right, |l, r| definition.operation.apply(litmus::Value(l), litmus::Value(r), ty).0);
        match (&own, &computed) {
            (Domain::Any, _) => computed,
            (_, Domain::Any) => own,
            (_, Domain::Values(possible)) => own.filtered(|value| possible.contains(&value)),
        }
    }

    /// A value with what its registers are known to hold.
    pub fn resolved(&self, value: &Value) -> Value {
        match value {
            Value::Register(register) => match self.domain(Number::Register(*register)).single() {
                Some(known) => Value::Known(known),
                None => value.clone(),
            },
            Value::Truth(truth) => match self.evaluate(truth) {
                Some(known) => Value::Known(u64::from(known)),
                None => value.clone(),
            },
            other => other.clone(),
        }
    }

    /// Whether a truth holds, as far as it is known.
    pub fn evaluate(&self, truth: &Truth) -> Option<bool> {
        match truth {
            Truth::Known(known) => Some(*known),
            Truth::Not(inner) => self.evaluate(inner).map(|holds| !holds),
            Truth::And(left, right) => match (self.evaluate(left), self.evaluate(right)) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                _ => None,
            },
            Truth::Same(left, right) => Some(self.evaluate(left)? == self.evaluate(right)?),
            Truth::Compare { relation, left, right, bits } => {
                if let Some((_, decided)) = self.assumed.iter().find(|(known, _)| known == truth) {
                    return Some(*decided);
                }
                if left == right {
                    return Some(relation.holds(0, 0, *bits));
                }
                let (left, right) = (self.domain(*left), self.domain(*right));
                let (left, right) = (left.values()?, right.values()?);
                if left.len() * right.len() > 1 << 12 {
                    return None;
                }
                let mut results =
                    left.iter().flat_map(|l| right.iter().map(|r| relation.holds(*l, *r, *bits)));
                let first = results.next()?;
                results.all(|other| other == first).then_some(first)
            }
        }
    }

    /// The first comparison of a truth that is not decided.
    pub fn open_comparison(&self, truth: &Truth) -> Option<Truth> {
        match truth {
            Truth::Known(_) => None,
            Truth::Not(inner) => self.open_comparison(inner),
            Truth::And(left, right) | Truth::Same(left, right) => {
                self.open_comparison(left).or_else(|| self.open_comparison(right))
            }
            Truth::Compare { .. } => self.evaluate(truth).is_none().then(|| truth.clone()),
        }
    }

    /// Takes a comparison for decided.
    pub fn assume(&mut self, comparison: &Truth, holds: bool) {
        Rc::make_mut(&mut self.assumed).push((comparison.clone(), holds));
        let Truth::Compare { relation, left, right, bits } = comparison else { return };
        let (relation, bits) = (*relation, *bits);
        match (*left, *right) {
            (Number::Register(register), Number::Known(other)) => {
                self.narrow(register, &|value| relation.holds(value, other, bits) == holds, 0);
                if relation == crate::value::Relation::Equal && holds {
                    Rc::make_mut(&mut self.ranges).insert(register, Domain::one(other));
                }
            }
            (Number::Known(other), Number::Register(register)) => {
                self.narrow(register, &|value| relation.holds(other, value, bits) == holds, 0);
                if relation == crate::value::Relation::Equal && holds {
                    Rc::make_mut(&mut self.ranges).insert(register, Domain::one(other));
                }
            }
            _ => {}
        }
    }

    /// Leaves a register only the values that are kept, and what it was computed from only those that lead there.
    pub fn narrow(&mut self, register: u16, keep: &dyn Fn(u64) -> bool, depth: u32) {
        let narrowed = self.domain(Number::Register(register)).filtered(keep);
        let definition = self.definitions.get(&register).filter(|_| depth < DEPTH).copied();
        if let (Some(Definition { operation, left, right }), Some(results)) = (definition, narrowed.values())
        {
            let result = |left: u64, right: u64| {
                operation.apply(litmus::Value(left), litmus::Value(right), litmus::ScalarType::U32).0
            };
            if let (Number::Register(from), Some(right)) = (left, self.domain(right).single()) {
                self.narrow(from, &|value| results.contains(&result(value, right)), depth + 1);
            }
            if let (Number::Register(from), Some(left)) = (right, self.domain(left).single()) {
                self.narrow(from, &|value| results.contains(&result(left, value)), depth + 1);
            }
        }
        Rc::make_mut(&mut self.ranges).insert(register, narrowed);
    }
}
