//! Subgroup operations.

use rspirv::dr::Operand;
use rspirv::spirv::{GroupOperation, Op as SpirvOp, Scope};

use super::Lowering;
use crate::module::{LoadError, Placed, malformed};
use crate::program::{BallotKind, Binary, Group, GroupKind, GroupSpan, NONE, Op, Reduction, Register};

/// Whether an instruction is a subgroup operation that the machine has.
pub(super) fn is_group(op: SpirvOp) -> bool {
    simple(op).is_some() || reduction(op).is_some() || ballot(op)
}

/// What an operation without a scan is.
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

/// Whether a lane does it by itself with the ballot of its subgroup.
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

fn reduction(op: SpirvOp) -> Option<Reduction> {
    Some(match op {
        SpirvOp::GroupNonUniformIAdd => Reduction::Add,
        SpirvOp::GroupNonUniformIMul => Reduction::Multiply,
        SpirvOp::GroupNonUniformSMin => Reduction::SignedMinimum,
        SpirvOp::GroupNonUniformSMax => Reduction::SignedMaximum,
        SpirvOp::GroupNonUniformFAdd => Reduction::FloatAdd,
        SpirvOp::GroupNonUniformFMul => Reduction::FloatMultiply,
        SpirvOp::GroupNonUniformFMin => Reduction::FloatMinimum,
        SpirvOp::GroupNonUniformFMax => Reduction::FloatMaximum,
        SpirvOp::GroupNonUniformLogicalAnd => Reduction::Both,
        SpirvOp::GroupNonUniformLogicalOr => Reduction::Or,
        SpirvOp::GroupNonUniformLogicalXor => Reduction::Xor,
        SpirvOp::GroupNonUniformUMin => Reduction::Minimum,
        SpirvOp::GroupNonUniformUMax => Reduction::Maximum,
        SpirvOp::GroupNonUniformBitwiseAnd => Reduction::And,
        SpirvOp::GroupNonUniformBitwiseOr => Reduction::Or,
        SpirvOp::GroupNonUniformBitwiseXor => Reduction::Xor,
        _ => return None,
    })
}

impl Lowering<'_> {
    /// A subgroup operation on words.
    pub(super) fn group(&mut self, placed: &Placed) -> Result<(), LoadError> {
        let lacks = |what: &str| LoadError::Lacks(format!("Op{:?} {what}", placed.op()));
        if self.constant(placed, placed.id(0)?)? != Scope::Subgroup as u32 {
            return Err(lacks("of another scope than the subgroup's"));
        }
        let to = self.late(placed, placed.result()?)?;
        if ballot(placed.op()) {
            return self.ballot(placed, to);
        }
        let operands = placed.instruction.operands.len();
        let (kind, first) = match reduction(placed.op()) {
            Some(reduction) => {
                let span = match placed.instruction.operands.get(1) {
                    Some(Operand::GroupOperation(GroupOperation::Reduce)) => GroupSpan::Reduce,
                    Some(Operand::GroupOperation(GroupOperation::InclusiveScan)) => GroupSpan::Inclusive,
                    Some(Operand::GroupOperation(GroupOperation::ExclusiveScan)) => GroupSpan::Exclusive,
                    _ => return Err(lacks("over clusters or partitions")),
                };
                (GroupKind::Scan(span, reduction), 2)
            }
            None => (simple(placed.op()).ok_or_else(|| malformed(placed.word, "no subgroup operation"))?, 1),
        };
        let value = if operands > first { Some(placed.id(first)?) } else { None };
        let mut argument = NONE;
        if operands > first + 1 {
            let id = placed.id(first + 1)?;
            if self.width_of(id) != 1 {
                return Err(lacks("with such an argument"));
            }
            argument = self.value(placed, id)?;
        }
        let kind = match kind {
            GroupKind::Rotate { .. } if operands > 3 => {
                GroupKind::Rotate { cluster: self.constant(placed, placed.id(3)?)? }
            }
            GroupKind::Rotate { .. } => return Err(lacks("without clusters")),
            kind => kind,
        };
        let Some(id) = value else {
            self.program.ops.push(Op::Group(Group { kind, to, value: NONE, argument }));
            return Ok(());
        };
        let ty = self.types.get(&id).copied().unwrap_or(0);
        let shapes = self.module.shapes(ty);
        let whole = shapes.iter().all(|shape| shape.bits == 32);
        // Of floats of a word, and of numbers of a word: whatever is handed on whole may be larger.
        if matches!(kind, GroupKind::Scan(..)) && !whole || shapes.is_empty() {
            return Err(lacks("of numbers that are no words"));
        }
        let (first, width) = (self.value(placed, id)?, self.width_of(id));
        if kind != GroupKind::AllEqual {
            for word in 0..width {
                self.program.ops.push(Op::Group(Group {
                    kind,
                    to: to + word,
                    value: first + word,
                    argument,
                }));
            }
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

    /// What a lane does with a ballot.
    fn ballot(&mut self, placed: &Placed, to: Register) -> Result<(), LoadError> {
        let counts = placed.op() == SpirvOp::GroupNonUniformBallotBitCount;
        let kind = match (placed.op(), placed.instruction.operands.get(1)) {
            (SpirvOp::GroupNonUniformInverseBallot, _) => BallotKind::Inverse,
            (SpirvOp::GroupNonUniformBallotBitExtract, _) => BallotKind::Bit,
            (SpirvOp::GroupNonUniformBallotFindLSB, _) => BallotKind::Lowest,
            (SpirvOp::GroupNonUniformBallotFindMSB, _) => BallotKind::Highest,
            (_, Some(Operand::GroupOperation(GroupOperation::Reduce))) => BallotKind::Count,
            (_, Some(Operand::GroupOperation(GroupOperation::InclusiveScan))) => BallotKind::CountUpTo,
            (_, Some(Operand::GroupOperation(GroupOperation::ExclusiveScan))) => BallotKind::CountBefore,
            _ => return Err(malformed(placed.word, "a count of another kind")),
        };
        let at = if counts { 2 } else { 1 };
        let ballot = self.value(placed, placed.id(at)?)?;
        let argument = if kind == BallotKind::Bit { self.value(placed, placed.id(at + 1)?)? } else { NONE };
        self.program.ops.push(Op::Ballot { kind, to, ballot, argument });
        Ok(())
    }
}
