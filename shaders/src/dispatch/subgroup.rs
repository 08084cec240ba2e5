//! Subgroup operations: executed between segments, where all lanes have come together, by the lanes of the tangle alone.

use litmus::{SubgroupKind, ThreadId};
use rspirv::dr::Operand;
use rspirv::spirv::{self, Op, Word};

use super::place::Place;
use super::{Between, Code, Emitter};
use crate::rules::Rule;
use crate::subgroup;

/// The variables through which lanes hand what they bring to the instruction, and take what it gives them.
#[derive(Clone, Copy)]
pub(crate) struct Exchange {
    /// What the lane brings.
    pub value: Word,
    /// The lane that it shuffles from.
    pub source: Word,
    /// What it is given.
    pub result: Word,
}

impl Emitter<'_> {
    /// Declares the variables of subgroup operations, in the first block.
    pub(super) fn declare_exchange(&mut self, codes: &[Between]) {
        if codes.iter().any(|between| between.operation.is_some()) {
            let mut word = |what: &str| {
                let ty = self.module.u32;
                self.module.local(ty, &format!("subgroup {what}"))
            };
            let (value, source, result) = (word("value"), word("source"), word("result"));
            self.exchange = Some(Exchange { value, source, result });
        }
    }

    /// The operation behind a segment: a branch that the lanes of its tangle take together.
    pub(super) fn subgroup_operation(
        &mut self,
        parts: &[Code],
        (thread, instruction): (usize, usize),
        place: &Place,
    ) -> Result<(), Rule> {
        let found = self.test.thread(ThreadId(thread as u16)).instructions.get(instruction);
        let (Some(operation), Some(exchange)) =
            (found.and_then(|found| found.kind.subgroup_operation()), self.exchange)
        else {
            return Err(Rule::Internal("no subgroup operation"));
        };
        let mut member = None;
        for code in parts.iter().filter(|code| code.part.brings.is_some()) {
            let number = self.module.constant(code.part.thread as u32);
            let plays = self.module.truth(Op::IEqual, &[place.role, number]);
            member = Some(member.map_or(plays, |member| self.module.truth(Op::LogicalOr, &[member, plays])));
        }
        let Some(member) = member else { return Ok(()) };
        let [together, merge] = std::array::from_fn(|_| self.module.id());
        self.module.selection_merge(merge);
        self.module.branch_if(member, together, merge);
        self.module.begin(together);
        let result = self.exchanged(operation.kind, exchange)?;
        self.module.effect(Op::Store, [exchange.result, result].map(Operand::IdRef));
        self.module.branch(merge);
        self.module.begin(merge);
        Ok(())
    }

    fn exchanged(&mut self, kind: SubgroupKind, exchange: Exchange) -> Result<Word, Rule> {
        let op = subgroup::instruction(kind).ok_or(Rule::Internal("no such scan"))?;
        let (zero, one) = (self.module.constant(0), self.module.constant(1));
        let scope = Operand::IdScope(self.module.constant(spirv::Scope::Subgroup as u32));
        let (word, truth) = (self.module.u32, self.module.bool);
        let value = match kind {
            SubgroupKind::Elect => zero,
            _ => self.module.word(Op::Load, &[exchange.value]),
        };
        let result = match kind {
            SubgroupKind::Elect => self.module.value(op, truth, [scope]),
            SubgroupKind::AllEqual => self.module.value(op, truth, [scope, Operand::IdRef(value)]),
            SubgroupKind::All | SubgroupKind::Any => {
                let predicate = self.module.truth(Op::INotEqual, &[value, zero]);
                self.module.value(op, truth, [scope, Operand::IdRef(predicate)])
            }
            SubgroupKind::Ballot => {
                let predicate = self.module.truth(Op::INotEqual, &[value, zero]);
                let words = self.module.vector(word, 4);
                let ballot = self.module.value(op, words, [scope, Operand::IdRef(predicate)]);
                // A test has less than 32 lanes.
                let first = [Operand::IdRef(ballot), Operand::LiteralBit32(0)];
                return Ok(self.module.value(Op::CompositeExtract, word, first));
            }
            SubgroupKind::BroadcastFirst => {
                return Ok(self.module.value(op, word, [scope, Operand::IdRef(value)]));
            }
            SubgroupKind::Shuffle(_) => {
                let source = self.module.word(Op::Load, &[exchange.source]);
                let operands = [scope, Operand::IdRef(value), Operand::IdRef(source)];
                return Ok(self.module.value(op, word, operands));
            }
            SubgroupKind::Arithmetic(span, _) => {
                let over = Operand::GroupOperation(subgroup::group_operation(span));
                return Ok(self.module.value(op, word, [scope, over, Operand::IdRef(value)]));
            }
            SubgroupKind::Broadcast(_)
            | SubgroupKind::ShuffleXor(_)
            | SubgroupKind::ShuffleUp(_)
            | SubgroupKind::ShuffleDown(_)
            | SubgroupKind::Rotate { .. }
            | SubgroupKind::QuadBroadcast(_)
            | SubgroupKind::QuadSwap(_) => {
                let numbers = match kind {
                    SubgroupKind::QuadSwap(direction) => vec![subgroup::direction(direction)],
                    _ => kind.numbers(),
                };
                let mut operands = vec![scope, Operand::IdRef(value)];
                for number in numbers {
                    operands.push(Operand::IdRef(self.module.constant(number)));
                }
                return Ok(self.module.value(op, word, operands));
            }
        };
        Ok(self.module.word(Op::Select, &[result, one, zero]))
    }
}
