//! Where a path forks: what registers hold becomes known, or a truth decided, on each of the ways that go on.

use std::rc::Rc;

use litmus::{ArithmeticOperation, BranchRelation};

use crate::emit;
use crate::error::{Problem, malformed, unsupported};
use crate::layout::known;
use crate::lift::FindingKind;
use crate::state::{Definition, State};
use crate::value::{Domain, Number, Origin, Relation, Truth, Value};
use crate::walk::{Pending, Step, Stop, Walk};

impl Walk<'_> {
    /// A number that is known; the path forks over what it may be.
    pub(crate) fn known(&mut self, state: &mut State, value: &Value, what: &str) -> Step<u64> {
        match state.resolved(value) {
            Value::Known(number) => Ok(number),
            Value::Truth(truth) => Ok(u64::from(self.decide(state, &truth)?)),
            Value::Register(register) => self.fork_over(state, register, what),
            Value::Undefined(Origin::Lacking(id, _)) => {
                self.without_result(state, id)?;
                Ok(0)
            }
            Value::Undefined(origin) => Ok(self.demand(origin, what)),
            Value::Opaque => Err(Problem::Opaque { what: what.to_owned() }.into()),
            other => known(&other).ok_or_else(|| unsupported(format!("{what} that is no number")).into()),
        }
    }

    /// A truth that is known; the path forks over what it may be.
    pub(crate) fn truth(&mut self, state: &mut State, value: &Value, what: &str) -> Step<bool> {
        Ok(self.known(state, value, what)? != 0)
    }

    /// A number, in a register where it is not known.
    pub(crate) fn number(&mut self, state: &mut State, value: &Value, what: &str) -> Step<Number> {
        match state.resolved(value) {
            Value::Register(register) => Ok(Number::Register(register)),
            other => Ok(Number::Known(self.known(state, &other, what)?)),
        }
    }

    /// A value that nobody gave and something depends on.
    pub(crate) fn demand(&mut self, origin: Origin, what: &str) -> u64 {
        self.round.undefined.insert(origin);
        if let Origin::Instruction(..) | Origin::Memory(_, _, Some(_)) = origin {
            self.finding(FindingKind::UninitialisedRead, format!("{what} depends on an undefined value"));
        }
        self.setting.assigned(origin)
    }

    fn fork_over<T>(&mut self, state: &mut State, register: u16, what: &str) -> Step<T> {
        let domain = state.domain(Number::Register(register));
        let Some(values) = domain.values() else {
            return Err(Problem::Unbounded { what: what.to_owned() }.into());
        };
        let mut values: Vec<u64> = values.iter().copied().collect();
        let Some(last) = values.pop() else {
            self.block()?;
            return Err(Stop::Over);
        };
        state.forks += 1;
        for value in values {
            let label = self.label();
            let (left, right) = (Number::Register(register), Number::Known(value));
            self.emit(emit::branch(BranchRelation::Equal, left, right, label))?;
            let mut taken = state.clone();
            taken.narrow(register, &|held| held == value, 0);
            self.pending.push(Pending { segment: self.segment, label, state: taken });
        }
        state.narrow(register, &|held| held == last, 0);
        Err(Stop::Again)
    }

    /// Whether a truth holds; the path forks where that is not known.
    fn decide(&mut self, state: &mut State, truth: &Truth) -> Step<bool> {
        if let Some(known) = state.evaluate(truth) {
            return Ok(known);
        }
        let Some(comparison) = state.open_comparison(truth) else {
            return Err(malformed("a truth that nothing decides").into());
        };
        let mut taken = state.clone();
        taken.forks += 1;
        taken.assume(&comparison, true);
        let label = self.branch_on(state, &comparison)?;
        taken.next_register = taken.next_register.max(state.next_register);
        self.pending.push(Pending { segment: self.segment, label, state: taken });
        state.forks += 1;
        state.assume(&comparison, false);
        Err(Stop::Again)
    }

    /// Emits the branch that is taken where a comparison holds; gives back its label.
    fn branch_on(&mut self, state: &mut State, comparison: &Truth) -> Step<u16> {
        let Truth::Compare { relation, left, right, bits } = comparison else {
            return Err(malformed("no comparison").into());
        };
        let (mut left, mut right, bits) = (*left, *right, *bits);
        let small = |state: &State, number| {
            let limit = 1_u64 << (bits.clamp(1, 64) - 1);
            state.domain(number).values().is_some_and(|values| values.iter().all(|value| *value < limit))
        };
        let both_small = small(state, left) && small(state, right);
        let one_of = |left: Number, right: Number| match (left, right) {
            (Number::Register(register), _) | (_, Number::Register(register)) => Some(register),
            _ => None,
        };
        let (relation, flip) = match relation {
            Relation::Equal => (BranchRelation::Equal, false),
            Relation::SignedLess | Relation::UnsignedLess => {
                (BranchRelation::Less, matches!(relation, Relation::UnsignedLess))
            }
            Relation::SignedLessOrEqual | Relation::UnsignedLessOrEqual => {
                (BranchRelation::LessOrEqual, matches!(relation, Relation::UnsignedLessOrEqual))
            }
        };
        if relation != BranchRelation::Equal && !both_small {
            // Registers hold 32 bits, and comparisons are signed.
            match (bits, flip) {
                (32, true) => {
                    for side in [&mut left, &mut right] {
                        *side = match *side {
                            Number::Known(value) => Number::Known(value ^ 0x8000_0000),
                            register => {
                                let flipped = self.register(state, Domain::Any)?;
                                let bit = Number::Known(0x8000_0000);
                                self.emit(emit::arithmetic(
                                    flipped,
                                    ArithmeticOperation::Xor,
                                    register,
                                    bit,
                                ))?;
                                Number::Register(flipped)
                            }
                        };
                    }
                }
                (32, false) | (0..=31, true) => {}
                _ => {
                    if let Some(register) = one_of(left, right) {
                        return self.fork_over(state, register, "a comparison");
                    }
                }
            }
        }
        let label = self.label();
        self.emit(emit::branch(relation, left, right, label))?;
        Ok(label)
    }

    /// Computes in registers.
    pub(crate) fn compute(
        &mut self,
        state: &mut State,
        operation: ArithmeticOperation,
        left: Number,
        right: Number,
    ) -> Step<Value> {
        let register = self.register(state, Domain::Any)?;
        self.emit(emit::arithmetic(register, operation, left, right))?;
        let definition = Definition { operation, left, right };
        Rc::make_mut(&mut state.definitions).insert(register, definition);
        Ok(Value::Register(register))
    }

    /// A compare-exchange has put the old value into a register: the path forks where it may have succeeded or failed.
    pub(crate) fn fork_success(&mut self, state: &mut State, old: u16, compare: Number) -> Step<bool> {
        let comparison = Truth::Compare {
            relation: Relation::Equal,
            left: Number::Register(old),
            right: compare,
            bits: 32,
        };
        if let Some(known) = state.evaluate(&comparison) {
            return Ok(known);
        }
        let label = self.branch_on(state, &comparison)?;
        let mut taken = state.clone();
        taken.forks += 1;
        taken.assume(&comparison, true);
        taken.effects += 1;
        taken.writes += 1;
        // The copy goes on behind the instruction.
        let result = self.setting.instruction_result(&taken);
        if let Some(frame) = taken.frames.last_mut() {
            if result != 0 {
                let value = taken.ranges.get(&old).and_then(Domain::single);
                let value = value.map_or(Value::Register(old), Value::Known);
                Rc::make_mut(&mut frame.values).insert(result, value);
            }
            frame.at += 1;
        }
        self.pending.push(Pending { segment: self.segment, label, state: taken });
        state.forks += 1;
        state.assume(&comparison, false);
        Ok(false)
    }
}
