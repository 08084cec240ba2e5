//! A thread's side of a subgroup operation: what it brings, and what it takes.

use litmus::{SubgroupKind, SubgroupOperation};
use rspirv::spirv::Op;

use super::ThreadCode;
use crate::dispatch::Exchange;
use crate::rules::Rule;

impl ThreadCode<'_> {
    fn subgroup_operation(&self, position: usize) -> Result<SubgroupOperation, Rule> {
        let found = self.instruction_at(position).and_then(|found| found.kind.subgroup_operation());
        found.cloned().ok_or(Rule::Internal("no subgroup operation"))
    }

    /// Puts down what the lane brings to the operation at `position`.
    pub fn bring(&mut self, position: usize, exchange: Exchange) -> Result<(), Rule> {
        let operation = self.subgroup_operation(position)?;
        if let Some(value) = operation.value {
            let value = self.operand(value, 32)?;
            self.set(exchange.value, value);
        }
        if let SubgroupKind::Shuffle(source) = operation.kind {
            let source = self.module.constant(source);
            self.set(exchange.source, source);
        }
        Ok(())
    }

    /// Takes what the operation at `position` has given the lane.
    pub fn take(&mut self, position: usize, exchange: Exchange) -> Result<(), Rule> {
        if let Some(destination) = self.subgroup_operation(position)?.destination {
            let result = self.module.word(Op::Load, &[exchange.result]);
            self.assign(destination, result)?;
        }
        Ok(())
    }
}
