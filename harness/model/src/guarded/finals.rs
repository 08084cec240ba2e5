//! Final values, and conditions on them.

use litmus::{Condition, ConditionSide, ResolvedCondition, ScalarType, Value};
use solver::{Bit, BitVector};

use super::encoding::GuardedEncoding;
use crate::matrix::Matrix;
use crate::path::unroll::{compare, to_constant};
use crate::skeleton::FinalValueSource;

impl<M: Matrix> GuardedEncoding<'_, M> {
    /// Encodes the final values of storages by their last writes.
    pub(super) fn encode_last_writes(&mut self) {
        let program = self.program.clone();
        for index in 0..self.finals.len() {
            let Some(FinalValueSource::LastWrite(storage)) = program.skeleton.final_values.get(index) else {
                continue;
            };
            if self.finals[index].is_some() {
                continue;
            }
            let writes = self.writes_of(Some(*storage));
            let (mut lasts, mut cases) = (Vec::new(), Some(Vec::new()));
            for &write in &writes {
                let mut later = vec![!program.executes[write]];
                for &other in writes.iter().filter(|other| **other != write) {
                    let follows = self.co_bit(write, other);
                    later.push(self.solver.circuit.and(program.executes[other], follows));
                }
                let is_last = !self.solver.circuit.any(&later);
                lasts.push(is_last);
                let written = program.written[write].as_ref().and_then(BitVector::cases);
                cases = cases.zip(written).map(|(mut cases, written)| {
                    let and = |(value, bit): &(u64, Bit)| (*value, self.solver.circuit.and(is_last, *bit));
                    cases.extend(written.iter().map(and));
                    cases
                });
            }
            let width = u64::BITS as usize;
            self.finals[index] = cases.and_then(|cases| self.solver.circuit.from_cases(width, cases));
            if self.finals[index].is_none() {
                let value = Some(self.solver.circuit.variable(width));
                for (write, is_last) in writes.iter().zip(&lasts) {
                    self.require_equal(*is_last, &value, &program.written[*write]);
                }
                self.finals[index] = value;
            }
            // Redundant: some write is the last one.
            self.solver.require_any(&lasts);
        }
    }

    /// Returns the final value of each observable.
    pub(super) fn final_values(&self) -> impl Iterator<Item = BitVector> {
        self.finals.iter().map(|value| value.clone().unwrap_or_else(|| to_constant(Value::default())))
    }

    /// Returns a bit that holds if the final values satisfy a condition.
    pub(super) fn condition_bit(&mut self, condition: &ResolvedCondition) -> Bit {
        match condition {
            Condition::True => Bit::from(true),
            Condition::Not(inner) => !self.condition_bit(inner),
            Condition::And(one, other) => {
                let (one, other) = (self.condition_bit(one), self.condition_bit(other));
                self.solver.circuit.and(one, other)
            }
            Condition::Or(one, other) => {
                let (one, other) = (self.condition_bit(one), self.condition_bit(other));
                self.solver.circuit.or(one, other)
            }
            Condition::Compare { left, comparison, right } => {
                let (left, right) = (self.side_value(*left), self.side_value(*right));
                compare(&mut self.solver.circuit, *comparison, &left, &right, ScalarType::U64)
            }
        }
    }

    /// Returns a side of a comparison as a signed number of 64 bits.
    pub(super) fn side_value(&self, side: ConditionSide) -> BitVector {
        match side {
            ConditionSide::Number(number) => BitVector::single_case(64, number as u64),
            ConditionSide::Observed(index, scalar) => match self.finals.get(index) {
                Some(Some(value)) => value.resize(scalar.bits() as usize).resize_signed(64),
                _ => BitVector::single_case(64, 0),
            },
        }
    }
}
