//! Lowers subgroup operations.

use rspirv::spirv::GroupOperation;
use spirv_reader::{BallotQuery, SubgroupFunction, SubgroupInstruction};

use super::Lowering;
use crate::instruction::{LoadError, malformed_module};
use crate::limits::SUBGROUP_SIZE;
use crate::program::{
    BallotKind, Binary, NONE, Op, Reduction, ReductionSpan, Register, SUBGROUP, SubgroupOp, SubgroupOpKind,
};

impl Lowering<'_> {
    /// Emits the reconvergence at a barrier in divergent control flow; returns the register with the id of
    /// the lanes that meet.
    pub(super) fn emit_reconvergence(&mut self) -> Register {
        let to = self.new_register();
        self.program.ops.push(Op::Group(SubgroupOp {
            kind: SubgroupOpKind::Reconverge,
            to,
            value: NONE,
            argument: NONE,
        }));
        to
    }

    /// Lowers a subgroup operation on words.
    pub(super) fn lower_group(&mut self, operation: SubgroupInstruction) -> Result<(), LoadError> {
        let Some(scope) = operation.scope else { return Err(self.current.unsupported_error("")) };
        self.check_subgroup_scope(scope)?;
        let to = self.pending_register(self.current.result_id()?)?;
        let kind = match operation.function {
            SubgroupFunction::Elect => SubgroupOpKind::Elect,
            SubgroupFunction::All => SubgroupOpKind::All,
            SubgroupFunction::Any => SubgroupOpKind::Any,
            SubgroupFunction::AllEqual => SubgroupOpKind::AllEqual,
            SubgroupFunction::Ballot => SubgroupOpKind::Ballot,
            SubgroupFunction::Broadcast => SubgroupOpKind::Broadcast,
            SubgroupFunction::BroadcastFirst => SubgroupOpKind::BroadcastFirst,
            SubgroupFunction::Shuffle => SubgroupOpKind::Shuffle,
            SubgroupFunction::ShuffleXor => SubgroupOpKind::ShuffleXor,
            SubgroupFunction::ShuffleUp => SubgroupOpKind::ShuffleUp,
            SubgroupFunction::ShuffleDown => SubgroupOpKind::ShuffleDown,
            SubgroupFunction::Rotate { cluster: None } => SubgroupOpKind::Rotate { cluster: SUBGROUP_SIZE },
            SubgroupFunction::Rotate { cluster: Some(size) } => {
                SubgroupOpKind::Rotate { cluster: self.constant_operand(size)? }
            }
            SubgroupFunction::QuadBroadcast => SubgroupOpKind::QuadBroadcast,
            SubgroupFunction::QuadSwap => SubgroupOpKind::QuadSwap,
            SubgroupFunction::Reduce { instruction, operation: group_operation } => {
                let span = match (group_operation, operation.argument) {
                    (GroupOperation::Reduce, _) => ReductionSpan::Reduce,
                    (GroupOperation::InclusiveScan, _) => ReductionSpan::Inclusive,
                    (GroupOperation::ExclusiveScan, _) => ReductionSpan::Exclusive,
                    (GroupOperation::ClusteredReduce, Some(size)) => {
                        ReductionSpan::Clustered(self.constant_operand(size)?)
                    }
                    _ => return Err(self.current.unsupported_error(" over partitions")),
                };
                let ty = operation.value.and_then(|value| self.types.get(&value));
                let shape = ty.and_then(|ty| self.module.number_shapes(*ty).first().copied());
                let shape = shape
                    .ok_or_else(|| self.current.unsupported_error(" of an operand that is not a number"))?;
                SubgroupOpKind::Scan(span, Reduction { instruction, shape })
            }
            SubgroupFunction::QuadAll | SubgroupFunction::QuadAny | SubgroupFunction::Partition => {
                return Err(self.current.unsupported_error(""));
            }
        };
        let argument = match operation.argument {
            Some(id) if !matches!(kind, SubgroupOpKind::Scan(..)) => {
                if self.width_of(id) != 1 {
                    return Err(self.current.unsupported_error(" with such an argument"));
                }
                self.awaited_register(id)?
            }
            _ => NONE,
        };
        let Some(id) = operation.value else {
            self.program.ops.push(Op::Group(SubgroupOp { kind, to, value: NONE, argument }));
            return Ok(());
        };
        let (first, width) = (self.awaited_register(id)?, self.width_of(id));
        if kind != SubgroupOpKind::AllEqual {
            // Reductions combine whole numbers; other operations move each word separately.
            let word_operation = |word| SubgroupOp { kind, to: to + word, value: first + word, argument };
            let step = if word_operation(0).is_wide() { 2 } else { 1 };
            self.program.ops.extend((0..width).step_by(step).map(|word| Op::Group(word_operation(word))));
            return Ok(());
        }
        let mut all = self.fixed.one;
        for word in 0..width {
            let alike = self.new_register();
            self.program.ops.push(Op::Group(SubgroupOp { kind, to: alike, value: first + word, argument }));
            let both = self.new_register();
            self.program.ops.push(Op::Binary { op: Binary::And, to: both, left: all, right: alike });
            all = both;
        }
        self.emit_copies(to, all, 1);
        Ok(())
    }

    fn check_subgroup_scope(&self, scope: u32) -> Result<(), LoadError> {
        match self.scope_level(scope)? == SUBGROUP {
            true => Ok(()),
            false => Err(self.current.unsupported_error(" with a scope other than Subgroup")),
        }
    }

    /// Lowers a ballot query.
    pub(super) fn lower_ballot(
        &mut self,
        query: BallotQuery,
        scope: u32,
        ballot: u32,
    ) -> Result<(), LoadError> {
        self.check_subgroup_scope(scope)?;
        let to = self.pending_register(self.current.result_id()?)?;
        let ballot = self.awaited_register(ballot)?;
        let mut argument = NONE;
        let kind = match query {
            BallotQuery::Inverse => BallotKind::Inverse,
            BallotQuery::BitExtract { index } => {
                argument = self.awaited_register(index)?;
                BallotKind::Bit
            }
            BallotQuery::FindLsb => BallotKind::Lowest,
            BallotQuery::FindMsb => BallotKind::Highest,
            BallotQuery::BitCount { operation: GroupOperation::Reduce } => BallotKind::Count,
            BallotQuery::BitCount { operation: GroupOperation::InclusiveScan } => BallotKind::CountUpTo,
            BallotQuery::BitCount { operation: GroupOperation::ExclusiveScan } => BallotKind::CountBefore,
            BallotQuery::BitCount { .. } => {
                return Err(malformed_module(self.current.word, "a count of another kind"));
            }
        };
        self.program.ops.push(Op::Ballot { kind, to, ballot, argument });
        Ok(())
    }
}
