//! The state of one path of the symbolic execution.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use litmus::ArithmeticOperation;

use crate::value::{NumberDomain, SymbolicNumber, SymbolicTruth, SymbolicValue};
use entry_point::interlock::InterlockState;
use entry_point::layout::{MemoryCell, ObjectId};

/// Private memory: size and value of each cell.
pub(crate) type PrivateMemory = BTreeMap<(ObjectId, u64), (u32, SymbolicValue)>;

/// Upper bound on the definitions that are followed to narrow a register.
const MAX_DEFINITION_DEPTH: u32 = 8;

/// The computation that defined a register.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RegisterDefinition {
    pub operation: ArithmeticOperation,
    pub left: SymbolicNumber,
    pub right: SymbolicNumber,
}

/// A performed read-modify-write: the register of its old value, and the update.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PerformedRmw {
    pub register: u16,
    /// `None` for an exchange.
    pub operation: Option<ArithmeticOperation>,
    pub value: SymbolicNumber,
    pub scalar: litmus::ScalarType,
}

/// A loop that the path is in.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ActiveLoop {
    /// The label of its header.
    pub header: u32,
    /// Its merge block; 0 if it declares none.
    pub merge: u32,
    /// The position of its last back edge.
    pub end: usize,
    /// Back edges taken so far.
    pub iteration: u32,
    /// Number of writes and barriers at the start of this iteration.
    pub effects: u32,
    /// Length of [`PathState::performed_rmws`] at the start of this iteration.
    pub rmw_count: usize,
    /// Values of the header's phis and private memory at the start of this iteration.
    pub phis: Vec<SymbolicValue>,
    pub memory: Rc<PrivateMemory>,
    /// Position in the segment's code where this iteration starts.
    pub start: usize,
    /// Number of forks of the path at loop entry. If it stays the same, the loop depends on no read value.
    pub forks: u32,
}

/// An active call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SymbolicFrame {
    pub function: u32,
    /// Index into its code.
    pub instruction_index: usize,
    /// Labels of the current and the previous block.
    pub block: u32,
    pub previous: u32,
    pub values: Rc<HashMap<u32, SymbolicValue>>,
    pub loops: Vec<ActiveLoop>,
    /// The id of the call in the caller.
    pub result: u32,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct PathState {
    pub frames: Vec<SymbolicFrame>,
    pub memory: Rc<PrivateMemory>,
    /// The possible values of each register.
    pub ranges: Rc<BTreeMap<u16, NumberDomain>>,
    pub definitions: Rc<BTreeMap<u16, RegisterDefinition>>,
    pub decided_comparisons: Rc<Vec<(SymbolicTruth, bool)>>,
    pub next_register: u16,
    pub next_object: u64,
    /// Number of writes and barriers.
    pub effects: u32,
    pub writes: u32,
    /// Number of read-modify-writes by cell.
    pub updates: Rc<BTreeMap<MemoryCell, u32>>,
    /// Read-modify-writes since the last control barrier.
    pub performed_rmws: Rc<Vec<PerformedRmw>>,
    pub forks: u32,
    /// True after a suspected defect.
    pub is_suspected: bool,
    /// The state of the interlocked section.
    pub interlock: InterlockState,
}

impl PathState {
    /// Returns register and value of a read-modify-write that is known to store what it read.
    pub fn unchanged_rmw(&self, performed: &PerformedRmw) -> Option<(u16, u64)> {
        let old = self.domain_of(SymbolicNumber::Register(performed.register)).single_value()?;
        let value = self.domain_of(performed.value).single_value()?;
        let new = match performed.operation {
            Some(operation) => operation.apply(litmus::Value(old), litmus::Value(value), performed.scalar).0,
            None => value,
        };
        (new == old).then_some((performed.register, old))
    }

    /// Returns the possible values of a number.
    pub fn domain_of(&self, number: SymbolicNumber) -> NumberDomain {
        self.domain_within(number, 0)
    }

    fn domain_within(&self, number: SymbolicNumber, depth: u32) -> NumberDomain {
        let register = match number {
            SymbolicNumber::Known(value) => return NumberDomain::from_value(value),
            SymbolicNumber::Register(register) => register,
        };
        let own = self.ranges.get(&register).cloned().unwrap_or(NumberDomain::Any);
        let Some(definition) = self.definitions.get(&register).filter(|_| depth < MAX_DEFINITION_DEPTH)
        else {
            return own;
        };
        let left = self.domain_within(definition.left, depth + 1);
        let right = self.domain_within(definition.right, depth + 1);
        let ty = litmus::ScalarType::U32;
        let computed = left
            .map_values(&right, |l, r| definition.operation.apply(litmus::Value(l), litmus::Value(r), ty).0);
        // Both bounds hold: the values recorded for the register and those that its definition can
        // produce.
        match (&own, &computed) {
            (NumberDomain::Any, _) => computed,
            (_, NumberDomain::Any) => own,
            (_, NumberDomain::Values(possible)) => own.filter_values(|value| possible.contains(value)),
        }
    }

    /// Replaces registers by their values if these are known.
    pub fn resolve_value(&self, value: &SymbolicValue) -> SymbolicValue {
        match value {
            SymbolicValue::Register(register) => {
                match self.domain_of(SymbolicNumber::Register(*register)).single_value() {
                    Some(known) => SymbolicValue::Known(known),
                    None => value.clone(),
                }
            }
            SymbolicValue::Truth(truth) => match self.evaluate_truth(truth) {
                Some(known) => SymbolicValue::Known(u64::from(known)),
                None => value.clone(),
            },
            other => other.clone(),
        }
    }

    /// Evaluates a boolean as far as its registers are known.
    pub fn evaluate_truth(&self, truth: &SymbolicTruth) -> Option<bool> {
        match truth {
            SymbolicTruth::Known(known) => Some(*known),
            SymbolicTruth::Not(inner) => self.evaluate_truth(inner).map(|holds| !holds),
            SymbolicTruth::And(left, right) => {
                match (self.evaluate_truth(left), self.evaluate_truth(right)) {
                    (Some(false), _) | (_, Some(false)) => Some(false),
                    (Some(true), Some(true)) => Some(true),
                    _ => None,
                }
            }
            SymbolicTruth::Equal(left, right) => {
                Some(self.evaluate_truth(left)? == self.evaluate_truth(right)?)
            }
            SymbolicTruth::Compare { relation, left, right, bits } => {
                // The path has branched on the same comparison before.
                if let Some((_, decided)) = self.decided_comparisons.iter().find(|(known, _)| known == truth)
                {
                    return Some(*decided);
                }
                // The same register on both sides: any value decides the comparison.
                if left == right {
                    return Some(relation.is_satisfied(0, 0, *bits));
                }
                let (left, right) = (self.domain_of(*left), self.domain_of(*right));
                let (left, right) = (left.finite_values()?, right.finite_values()?);
                if left.len() * right.len() > 1 << 12 {
                    return None;
                }
                // Decided if every combination of possible values has the same result.
                let mut results =
                    left.iter().flat_map(|l| right.iter().map(|r| relation.is_satisfied(*l, *r, *bits)));
                let first = results.next()?;
                results.all(|other| other == first).then_some(first)
            }
        }
    }

    /// Returns the first undecided comparison of a boolean.
    pub fn open_comparison(&self, truth: &SymbolicTruth) -> Option<SymbolicTruth> {
        match truth {
            SymbolicTruth::Known(_) => None,
            SymbolicTruth::Not(inner) => self.open_comparison(inner),
            SymbolicTruth::And(left, right) | SymbolicTruth::Equal(left, right) => {
                self.open_comparison(left).or_else(|| self.open_comparison(right))
            }
            SymbolicTruth::Compare { .. } => self.evaluate_truth(truth).is_none().then(|| truth.clone()),
        }
    }

    /// Records the result of a comparison.
    pub fn assume_truth(&mut self, comparison: &SymbolicTruth, holds: bool) {
        Rc::make_mut(&mut self.decided_comparisons).push((comparison.clone(), holds));
        let SymbolicTruth::Compare { relation, left, right, bits } = comparison else { return };
        let (relation, bits) = (*relation, *bits);
        match (*left, *right) {
            (SymbolicNumber::Register(register), SymbolicNumber::Known(other)) => {
                self.narrow_register(
                    register,
                    &|value| relation.is_satisfied(value, other, bits) == holds,
                    0,
                );
                // Equality fixes the register even if its domain was unbounded.
                if relation == crate::value::OrderRelation::Equal && holds {
                    Rc::make_mut(&mut self.ranges).insert(register, NumberDomain::from_value(other));
                }
            }
            (SymbolicNumber::Known(other), SymbolicNumber::Register(register)) => {
                self.narrow_register(
                    register,
                    &|value| relation.is_satisfied(other, value, bits) == holds,
                    0,
                );
                if relation == crate::value::OrderRelation::Equal && holds {
                    Rc::make_mut(&mut self.ranges).insert(register, NumberDomain::from_value(other));
                }
            }
            _ => {}
        }
    }

    /// Restricts a register to values that satisfy `keep`, and its operands accordingly.
    pub fn narrow_register(&mut self, register: u16, keep: &dyn Fn(u64) -> bool, depth: u32) {
        let narrowed = self.domain_of(SymbolicNumber::Register(register)).filter_values(keep);
        let definition = self.definitions.get(&register).filter(|_| depth < MAX_DEFINITION_DEPTH).copied();
        // Narrowing runs backward through the definition: operand values that cannot produce a
        // remaining result are excluded.
        if let (Some(RegisterDefinition { operation, left, right }), Some(results)) =
            (definition, narrowed.finite_values())
        {
            let result = |left: u64, right: u64| {
                operation.apply(litmus::Value(left), litmus::Value(right), litmus::ScalarType::U32).0
            };
            if let (SymbolicNumber::Register(from), Some(right)) =
                (left, self.domain_of(right).single_value())
            {
                self.narrow_register(from, &|value| results.contains(result(value, right)), depth + 1);
            }
            if let (SymbolicNumber::Register(from), Some(left)) = (right, self.domain_of(left).single_value())
            {
                self.narrow_register(from, &|value| results.contains(result(left, value)), depth + 1);
            }
        }
        Rc::make_mut(&mut self.ranges).insert(register, narrowed);
    }
}
