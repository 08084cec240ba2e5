//! Lowers subgroup operations.

use arithmetic::Instruction;
use rspirv::spirv::{GlslStd450Op, GroupOperation, Op as SpirvOp, Scope};

use super::Lowering;
use crate::instruction::{LoadError, LocatedInstruction, malformed_module};
use crate::limits::SUBGROUP_SIZE;
use crate::program::{BallotKind, Binary, Group, GroupKind, GroupSpan, NONE, Op, Reduction, Register};

/// Returns true if an instruction is a supported subgroup operation.
pub(super) fn is_group(op: SpirvOp) -> bool {
    simple(op).is_some() || reduction(op).is_some() || ballot(op)
}

/// Returns the kind of an operation that is not a scan or reduction.
fn simple(op: SpirvOp) -> Option<GroupKind> {
    Some(match op {
        SpirvOp::GroupNonUniformElect => GroupKind::Elect,
        SpirvOp::GroupNonUniformAll => GroupKind::All,
        SpirvOp::GroupNonUniformAny => GroupKind::Any,
        SpirvOp::GroupNonUniformAllEqual => GroupKind::AllEqual,
        SpirvOp::GroupNonUniformBallot => GroupKind::Ballot,
        SpirvOp::GroupNonUniformBroadcast => GroupKind::Broadcast,
        SpirvOp::GroupNonUniformBroadcastFirst => GroupKind::BroadcastFirst,
        SpirvOp::GroupNonUniformShuffle => GroupKind::Shuffle,
        SpirvOp::GroupNonUniformShuffleXor => GroupKind::ShuffleXor,
        SpirvOp::GroupNonUniformShuffleUp => GroupKind::ShuffleUp,
        SpirvOp::GroupNonUniformShuffleDown => GroupKind::ShuffleDown,
        SpirvOp::GroupNonUniformRotateKHR => GroupKind::Rotate { cluster: 0 },
        SpirvOp::GroupNonUniformQuadBroadcast => GroupKind::QuadBroadcast,
        SpirvOp::GroupNonUniformQuadSwap => GroupKind::QuadSwap,
        _ => return None,
    })
}

/// Returns true if a lane computes it alone from the ballot of its subgroup.
fn ballot(op: SpirvOp) -> bool {
    matches!(
        op,
        SpirvOp::GroupNonUniformInverseBallot
            | SpirvOp::GroupNonUniformBallotBitExtract
            | SpirvOp::GroupNonUniformBallotBitCount
            | SpirvOp::GroupNonUniformBallotFindLSB
            | SpirvOp::GroupNonUniformBallotFindMSB
    )
}

/// Returns the binary instruction that a reduction or scan repeats.
fn reduction(op: SpirvOp) -> Option<Instruction> {
    let (core, extended) = (Instruction::Core, Instruction::Extended);
    Some(match op {
        SpirvOp::GroupNonUniformIAdd => core(SpirvOp::IAdd),
        SpirvOp::GroupNonUniformIMul => core(SpirvOp::IMul),
        SpirvOp::GroupNonUniformFAdd => core(SpirvOp::FAdd),
        SpirvOp::GroupNonUniformFMul => core(SpirvOp::FMul),
        SpirvOp::GroupNonUniformSMin => extended(GlslStd450Op::SMin),
        SpirvOp::GroupNonUniformSMax => extended(GlslStd450Op::SMax),
        SpirvOp::GroupNonUniformUMin => extended(GlslStd450Op::UMin),
        SpirvOp::GroupNonUniformUMax => extended(GlslStd450Op::UMax),
        SpirvOp::GroupNonUniformFMin => extended(GlslStd450Op::FMin),
        SpirvOp::GroupNonUniformFMax => extended(GlslStd450Op::FMax),
        SpirvOp::GroupNonUniformLogicalAnd => core(SpirvOp::LogicalAnd),
        SpirvOp::GroupNonUniformLogicalOr => core(SpirvOp::LogicalOr),
        SpirvOp::GroupNonUniformLogicalXor => core(SpirvOp::LogicalNotEqual),
        SpirvOp::GroupNonUniformBitwiseAnd => core(SpirvOp::BitwiseAnd),
        SpirvOp::GroupNonUniformBitwiseOr => core(SpirvOp::BitwiseOr),
        SpirvOp::GroupNonUniformBitwiseXor => core(SpirvOp::BitwiseXor),
        _ => return None,
    })
}

impl Lowering<'_> {
    /// Emits the reconvergence at a barrier in divergent control flow; returns the register with the id of
    /// the lanes that meet.
    pub(super) fn comes_together(&mut self) -> Register {
        let to = self.register();
        self.program.ops.push(Op::Group(Group { kind: GroupKind::Meet, to, value: NONE, argument: NONE }));
        to
    }

    /// Lowers a subgroup operation on words.
    pub(super) fn group(&mut self, placed: &LocatedInstruction) -> Result<(), LoadError> {
        let lacks = |what: &str| LoadError::Lacks(format!("Op{:?} {what}", placed.op));
        if self.constant(placed, placed.operand(0)?)? != Scope::Subgroup as u32 {
            return Err(lacks("with a scope other than Subgroup"));
        }
        let to = self.late(placed, placed.result_id()?)?;
        if ballot(placed.op) {
            return self.ballot(placed, to);
        }
        let operands = placed.operands.len();
        let (kind, first) = match reduction(placed.op) {
            Some(of) => {
                let span = match group_operation(placed) {
                    Some(GroupOperation::Reduce) => GroupSpan::Reduce,
                    Some(GroupOperation::InclusiveScan) => GroupSpan::Inclusive,
                    Some(GroupOperation::ExclusiveScan) => GroupSpan::Exclusive,
                    Some(GroupOperation::ClusteredReduce) => {
                        GroupSpan::Clustered(self.constant(placed, placed.operand(3)?)?)
                    }
                    _ => return Err(lacks("over partitions")),
                };
                let shape = self
                    .types
                    .get(&placed.operand(2)?)
                    .and_then(|ty| self.module.shapes(*ty).first().copied());
                let shape = shape.ok_or_else(|| lacks("of an operand that is not a number"))?;
                (GroupKind::Scan(span, Reduction { of, shape }), 2)
            }
            None => (
                simple(placed.op).ok_or_else(|| malformed_module(placed.word, "not a subgroup operation"))?,
                1,
            ),
        };
        let value = if operands > first { Some(placed.operand(first)?) } else { None };
        let mut argument = NONE;
        if operands > first + 1 && !matches!(kind, GroupKind::Scan(..)) {
            let id = placed.operand(first + 1)?;
            if self.width_of(id) != 1 {
                return Err(lacks("with such an argument"));
            }
            argument = self.value(placed, id)?;
        }
        let kind = match kind {
            GroupKind::Rotate { .. } if operands > 3 => {
                GroupKind::Rotate { cluster: self.constant(placed, placed.operand(3)?)? }
            }
            GroupKind::Rotate { .. } => GroupKind::Rotate { cluster: SUBGROUP_SIZE },
            kind => kind,
        };
        let Some(id) = value else {
            self.program.ops.push(Op::Group(Group { kind, to, value: NONE, argument }));
            return Ok(());
        };
        let (first, width) = (self.value(placed, id)?, self.width_of(id));
        if kind != GroupKind::AllEqual {
            // Reductions combine whole numbers; other operations move each word on its own.
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

    /// Lowers a ballot query.
    fn ballot(&mut self, placed: &LocatedInstruction, to: Register) -> Result<(), LoadError> {
        let counts = placed.op == SpirvOp::GroupNonUniformBallotBitCount;
        let kind = match (placed.op, group_operation(placed)) {
            (SpirvOp::GroupNonUniformInverseBallot, _) => BallotKind::Inverse,
            (SpirvOp::GroupNonUniformBallotBitExtract, _) => BallotKind::Bit,
            (SpirvOp::GroupNonUniformBallotFindLSB, _) => BallotKind::Lowest,
            (SpirvOp::GroupNonUniformBallotFindMSB, _) => BallotKind::Highest,
            (_, Some(GroupOperation::Reduce)) => BallotKind::Count,
            (_, Some(GroupOperation::InclusiveScan)) => BallotKind::CountUpTo,
            (_, Some(GroupOperation::ExclusiveScan)) => BallotKind::CountBefore,
            _ => return Err(malformed_module(placed.word, "a count of another kind")),
        };
        let at = if counts { 2 } else { 1 };
        let ballot = self.value(placed, placed.operand(at)?)?;
        let argument =
            if kind == BallotKind::Bit { self.value(placed, placed.operand(at + 1)?)? } else { NONE };
        self.program.ops.push(Op::Ballot { kind, to, ballot, argument });
        Ok(())
    }
}

/// Returns the operation over the lanes of a group.
fn group_operation(placed: &LocatedInstruction) -> Option<GroupOperation> {
    placed.operands.get(1).copied().and_then(GroupOperation::from_u32)
}
