//! Lowers subgroup operations.

use rspirv::spirv::GroupOperation;
use spirv_reader::{BallotQuery, SubgroupFunction, SubgroupInstruction};

use super::Lowering;
use crate::instruction::{LoadError, LocatedInstruction, malformed_module};
use crate::limits::SUBGROUP_SIZE;
use crate::program::{
    BallotKind, Binary, Group, GroupKind, GroupSpan, NONE, Op, Reduction, Register, SUBGROUP,
};

impl Lowering<'_> {
    /// Emits the reconvergence at a barrier in divergent control flow; returns the register with the id of
    /// the lanes that meet.
    pub(super) fn comes_together(&mut self) -> Register {
        let to = self.register();
        self.program.ops.push(Op::Group(Group { kind: GroupKind::Meet, to, value: NONE, argument: NONE }));
        to
    }

    /// Lowers a subgroup operation on words.
    pub(super) fn group(
        &mut self,
        placed: &LocatedInstruction,
        operation: SubgroupInstruction,
    ) -> Result<(), LoadError> {
        let Some(scope) = operation.scope else { return Err(placed.refuse("")) };
        self.check_subgroup_scope(placed, scope)?;
        let to = self.late(placed, placed.result_id()?)?;
        let kind = match operation.function {
            SubgroupFunction::Elect => GroupKind::Elect,
            SubgroupFunction::All => GroupKind::All,
            SubgroupFunction::Any => GroupKind::Any,
            SubgroupFunction::AllEqual => GroupKind::AllEqual,
            SubgroupFunction::Ballot => GroupKind::Ballot,
            SubgroupFunction::Broadcast => GroupKind::Broadcast,
            SubgroupFunction::BroadcastFirst => GroupKind::BroadcastFirst,
            SubgroupFunction::Shuffle => GroupKind::Shuffle,
            SubgroupFunction::ShuffleXor => GroupKind::ShuffleXor,
            SubgroupFunction::ShuffleUp => GroupKind::ShuffleUp,
            SubgroupFunction::ShuffleDown => GroupKind::ShuffleDown,
            SubgroupFunction::Rotate { cluster: None } => GroupKind::Rotate { cluster: SUBGROUP_SIZE },
            SubgroupFunction::Rotate { cluster: Some(size) } => {
                GroupKind::Rotate { cluster: self.constant(placed, size)? }
            }
            SubgroupFunction::QuadBroadcast => GroupKind::QuadBroadcast,
            SubgroupFunction::QuadSwap => GroupKind::QuadSwap,
            SubgroupFunction::Reduce { instruction, operation: by } => {
                let span = match (by, operation.argument) {
                    (GroupOperation::Reduce, _) => GroupSpan::Reduce,
                    (GroupOperation::InclusiveScan, _) => GroupSpan::Inclusive,
                    (GroupOperation::ExclusiveScan, _) => GroupSpan::Exclusive,
                    (GroupOperation::ClusteredReduce, Some(size)) => {
                        GroupSpan::Clustered(self.constant(placed, size)?)
                    }
                    _ => return Err(placed.refuse(" over partitions")),
                };
                let ty = operation.value.and_then(|value| self.types.get(&value));
                let shape = ty.and_then(|ty| self.module.shapes(*ty).first().copied());
                let shape = shape.ok_or_else(|| placed.refuse(" of an operand that is not a number"))?;
                GroupKind::Scan(span, Reduction { of: instruction, shape })
            }
            SubgroupFunction::QuadAll | SubgroupFunction::QuadAny | SubgroupFunction::Partition => {
                return Err(placed.refuse(""));
            }
        };
        let argument = match operation.argument {
            Some(id) if !matches!(kind, GroupKind::Scan(..)) => {
                if self.width_of(id) != 1 {
                    return Err(placed.refuse(" with such an argument"));
                }
                self.value(placed, id)?
            }
            _ => NONE,
        };
        let Some(id) = operation.value else {
            self.program.ops.push(Op::Group(Group { kind, to, value: NONE, argument }));
            return Ok(());
        };
        let (first, width) = (self.value(placed, id)?, self.width_of(id));
        if kind != GroupKind::AllEqual {
            // Reductions combine whole numbers; other operations move each word separately.
            let one = |word| Group { kind, to: to + word, value: first + word, argument };
            let step = if one(0).is_wide() { 2 } else { 1 };
            self.program.ops.extend((0..width).step_by(step).map(|word| Op::Group(one(word))));
            return Ok(());
        }
        let mut all = self.fixed.one;
        for word in 0..width {
            let alike = self.register();
            self.program.ops.push(Op::Group(Group { kind, to: alike, value: first + word, argument }));
            let both = self.register();
            self.program.ops.push(Op::Binary { op: Binary::And, to: both, left: all, right: alike });
            all = both;
        }
        self.copy(to, all, 1);
        Ok(())
    }

    fn check_subgroup_scope(&self, placed: &LocatedInstruction, scope: u32) -> Result<(), LoadError> {
        match self.scope(placed, scope)? == SUBGROUP {
            true => Ok(()),
            false => Err(placed.refuse(" with a scope other than Subgroup")),
        }
    }

    /// Lowers a ballot query.
    pub(super) fn ballot(
        &mut self,
        placed: &LocatedInstruction,
        query: BallotQuery,
        scope: u32,
        ballot: u32,
    ) -> Result<(), LoadError> {
        self.check_subgroup_scope(placed, scope)?;
        let to = self.late(placed, placed.result_id()?)?;
        let ballot = self.value(placed, ballot)?;
        let mut argument = NONE;
        let kind = match query {
            BallotQuery::Inverse => BallotKind::Inverse,
            BallotQuery::BitExtract { index } => {
                argument = self.value(placed, index)?;
                BallotKind::Bit
            }
            BallotQuery::FindLsb => BallotKind::Lowest,
            BallotQuery::FindMsb => BallotKind::Highest,
            BallotQuery::BitCount { operation: GroupOperation::Reduce } => BallotKind::Count,
            BallotQuery::BitCount { operation: GroupOperation::InclusiveScan } => BallotKind::CountUpTo,
            BallotQuery::BitCount { operation: GroupOperation::ExclusiveScan } => BallotKind::CountBefore,
            BallotQuery::BitCount { .. } => {
                return Err(malformed_module(placed.word, "a count of another kind"));
            }
        };
        self.program.ops.push(Op::Ballot { kind, to, ballot, argument });
        Ok(())
    }
}
