//! Forks of a path: a register gets a known value, or a condition is decided, on each continuation.

use std::rc::Rc;

use litmus::{ArithmeticOperation, Comparison};

use crate::constants::known_number;
use crate::emit;
use crate::executor::{Executor, PathInterrupt, PendingPath, Step};
use crate::state::{PathState, RegisterDefinition};
use crate::value::{NumberDomain, OrderRelation, SymbolicNumber, SymbolicTruth, SymbolicValue, UndefOrigin};
use entry_point::{FindingCause, Problem, malformed, unsupported};

impl Executor<'_> {
    /// Returns a known number, forking over the possible values.
    pub(crate) fn fork_to_known(
        &mut self,
        state: &mut PathState,
        value: &SymbolicValue,
        what: &str,
    ) -> Step<u64> {
        match state.resolve_value(value) {
            SymbolicValue::Known(number) => Ok(number),
            SymbolicValue::Truth(truth) => Ok(u64::from(self.decide_truth(state, &truth)?)),
            SymbolicValue::Register(register) => self.fork_over(state, register, what),
            SymbolicValue::Undefined(UndefOrigin::UndefinedResult(id, _)) => {
                self.report_undefined_result(state, id)?;
                Ok(0)
            }
            SymbolicValue::Undefined(origin) => Ok(self.use_undefined(origin, what)),
            SymbolicValue::Opaque => Err(Problem::Opaque { what: what.to_owned() }.into()),
            other => {
                known_number(&other).ok_or_else(|| unsupported(format!("{what} that is not a number")).into())
            }
        }
    }

    /// Returns a known boolean, forking over the possible values.
    pub(crate) fn fork_on_truth(
        &mut self,
        state: &mut PathState,
        value: &SymbolicValue,
        what: &str,
    ) -> Step<bool> {
        Ok(self.fork_to_known(state, value, what)? != 0)
    }

    /// Returns a number, in a register if it is unknown.
    pub(crate) fn resolve_number(
        &mut self,
        state: &mut PathState,
        value: &SymbolicValue,
        what: &str,
    ) -> Step<SymbolicNumber> {
        match state.resolve_value(value) {
            SymbolicValue::Register(register) => Ok(SymbolicNumber::Register(register)),
            other => Ok(SymbolicNumber::Known(self.fork_to_known(state, &other, what)?)),
        }
    }

    /// Returns the chosen value of an unspecified one, and records the dependence.
    pub(crate) fn use_undefined(&mut self, origin: UndefOrigin, what: &str) -> u64 {
        self.round.undefined.insert(origin);
        if let UndefOrigin::Instruction(..) | UndefOrigin::Memory(_, _, Some(_)) = origin {
            self.report_finding(
                FindingCause::UndefinedValue,
                format!("{what} depends on an undefined value"),
            );
        }
        self.context.assigned_value(origin)
    }

    fn fork_over<T>(&mut self, state: &mut PathState, register: u16, what: &str) -> Step<T> {
        let domain = state.domain_of(SymbolicNumber::Register(register));
        let Some(values) = domain.finite_values() else {
            return Err(Problem::Unbounded { what: what.to_owned() }.into());
        };
        let mut values: Vec<u64> = values.iter().copied().collect();
        let Some(last) = values.pop() else {
            // An empty domain: no execution reaches this point with any value.
            self.block_forever()?;
            return Err(PathInterrupt::Ended);
        };
        state.forks += 1;
        for value in values {
            let label = self.new_label();
            let (left, right) = (SymbolicNumber::Register(register), SymbolicNumber::Known(value));
            self.emit_instruction(emit::branch(Comparison::Equal, left, right, label))?;
            let mut fork = state.clone();
            fork.narrow_register(register, &|candidate| candidate == value, 0);
            self.pending.push(PendingPath { segment: self.segment, label, state: fork });
        }
        state.narrow_register(register, &|candidate| candidate == last, 0);
        // The instruction is executed again with the narrowed register, here and on each pending
        // path.
        Err(PathInterrupt::Retry)
    }

    /// Decides a boolean, forking if it is open.
    fn decide_truth(&mut self, state: &mut PathState, truth: &SymbolicTruth) -> Step<bool> {
        if let Some(known) = state.evaluate_truth(truth) {
            return Ok(known);
        }
        let Some(comparison) = state.open_comparison(truth) else {
            return Err(malformed("an undetermined condition").into());
        };
        let mut fork = state.clone();
        fork.forks += 1;
        fork.assume_truth(&comparison, true);
        let label = self.branch_on(state, &comparison)?;
        // The branch may have needed further registers. Both continuations must number theirs after
        // them.
        fork.next_register = fork.next_register.max(state.next_register);
        self.pending.push(PendingPath { segment: self.segment, label, state: fork });
        state.forks += 1;
        state.assume_truth(&comparison, false);
        Err(PathInterrupt::Retry)
    }

    /// Emits the branch for a true comparison; returns its label.
    fn branch_on(&mut self, state: &mut PathState, comparison: &SymbolicTruth) -> Step<u16> {
        let SymbolicTruth::Compare { relation, left, right, bits } = comparison else {
            return Err(malformed("not a comparison").into());
        };
        let (mut left, mut right, bits) = (*left, *right, *bits);
        // Below the sign bit, signed and unsigned numbers compare alike.
        let small = |state: &PathState, number| {
            let limit = 1_u64 << (bits.clamp(1, 64) - 1);
            state
                .domain_of(number)
                .finite_values()
                .is_some_and(|values| values.iter().all(|value| *value < limit))
        };
        let both_small = small(state, left) && small(state, right);
        let one_of = |left: SymbolicNumber, right: SymbolicNumber| match (left, right) {
            (SymbolicNumber::Register(register), _) | (_, SymbolicNumber::Register(register)) => {
                Some(register)
            }
            _ => None,
        };
        let (relation, flip) = match relation {
            OrderRelation::Equal => (Comparison::Equal, false),
            OrderRelation::SignedLess | OrderRelation::UnsignedLess => {
                (Comparison::Less, matches!(relation, OrderRelation::UnsignedLess))
            }
            OrderRelation::SignedLessOrEqual | OrderRelation::UnsignedLessOrEqual => {
                (Comparison::LessOrEqual, matches!(relation, OrderRelation::UnsignedLessOrEqual))
            }
        };
        if relation != Comparison::Equal && !both_small {
            // Registers have 32 bits and compare signed.
            match (bits, flip) {
                // Flipping the sign bit of both sides maps unsigned to signed order.
                (32, true) => {
                    for side in [&mut left, &mut right] {
                        *side = match *side {
                            SymbolicNumber::Known(value) => SymbolicNumber::Known(value ^ 0x8000_0000),
                            register => {
                                let flipped = self.new_register(state, NumberDomain::Any)?;
                                let bit = SymbolicNumber::Known(0x8000_0000);
                                self.emit_instruction(emit::arithmetic(
                                    flipped,
                                    ArithmeticOperation::Xor,
                                    register,
                                    bit,
                                ))?;
                                SymbolicNumber::Register(flipped)
                            }
                        };
                    }
                }
                // Signed 32-bit numbers compare directly, and shorter unsigned ones are never
                // negative.
                (32, false) | (0..=31, true) => {}
                _ => {
                    // Short signed numbers would have to be sign-extended, and longer ones exceed a
                    // register: each value becomes a path.
                    if let Some(register) = one_of(left, right) {
                        return self.fork_over(state, register, "a comparison");
                    }
                }
            }
        }
        let label = self.new_label();
        self.emit_instruction(emit::branch(relation, left, right, label))?;
        Ok(label)
    }

    /// Emits an arithmetic instruction.
    pub(crate) fn compute_number(
        &mut self,
        state: &mut PathState,
        operation: ArithmeticOperation,
        left: SymbolicNumber,
        right: SymbolicNumber,
    ) -> Step<SymbolicValue> {
        let register = self.new_register(state, NumberDomain::Any)?;
        self.emit_instruction(emit::arithmetic(register, operation, left, right))?;
        let definition = RegisterDefinition { operation, left, right };
        Rc::make_mut(&mut state.definitions).insert(register, definition);
        Ok(SymbolicValue::Register(register))
    }

    /// Forks on the success of a compare-exchange.
    pub(crate) fn fork_success(
        &mut self,
        state: &mut PathState,
        old: u16,
        compare: SymbolicNumber,
    ) -> Step<bool> {
        let comparison = SymbolicTruth::Compare {
            relation: OrderRelation::Equal,
            left: SymbolicNumber::Register(old),
            right: compare,
            bits: 32,
        };
        if let Some(known) = state.evaluate_truth(&comparison) {
            return Ok(known);
        }
        let label = self.branch_on(state, &comparison)?;
        let mut fork = state.clone();
        fork.forks += 1;
        fork.assume_truth(&comparison, true);
        // Only success writes.
        fork.effects += 1;
        fork.writes += 1;
        // The copy resumes after the instruction.
        let result = self.context.instruction_result(&fork);
        if let Some(frame) = fork.frames.last_mut() {
            if result != 0 {
                let value = fork.ranges.get(&old).and_then(NumberDomain::single_value);
                let value = value.map_or(SymbolicValue::Register(old), SymbolicValue::Known);
                Rc::make_mut(&mut frame.values).insert(result, value);
            }
            frame.instruction_index += 1;
        }
        self.pending.push(PendingPath { segment: self.segment, label, state: fork });
        state.forks += 1;
        state.assume_truth(&comparison, false);
        Ok(false)
    }
}
