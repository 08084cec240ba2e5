//! Subgroup operations.

use rspirv::dr::Operand;
use rspirv::spirv::{GroupOperation, Op as SpirvOp, Scope};

use super::Lowering;
use crate::module::{LoadError, Placed, malformed};
use crate::program::{Group, GroupKind, GroupSpan, NONE, Op, Reduction};

/// Whether an instruction is a subgroup operation that the machine has.
pub(super) fn is_group(op: SpirvOp) -> bool {
    simple(op).is_some() || reduction(op).is_some()
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

fn reduction(op: SpirvOp) -> Option<Reduction> {
    Some(match op {
        SpirvOp::GroupNonUniformIAdd => Reduction::Add,
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
        let mut registers = [NONE; 2];
        for (register, position) in registers.iter_mut().zip(first..operands) {
            let id = placed.id(position)?;
            if self.width_of(id) != 1 {
                return Err(lacks("of numbers that are no words"));
            }
            *register = self.value(placed, id)?;
        }
        let [value, argument] = registers;
        let kind = match kind {
            GroupKind::Rotate { .. } if operands > 3 => {
                GroupKind::Rotate { cluster: self.constant(placed, placed.id(3)?)? }
            }
            GroupKind::Rotate { .. } => return Err(lacks("without clusters")),
            kind => kind,
        };
        self.program.ops.push(Op::Group(Group { kind, to, value, argument }));
        Ok(())
    }
}
