//! Subgroup operations in SPIR-V: their instructions and requirements.

use litmus::{ArithmeticOperation, QuadDirection, SubgroupKind, SubgroupSpan};
use rspirv::spirv::{Capability, GroupOperation, Op};
use vocabulary::Feature;

/// Returns the capability of an operation, the property (a bit of `VkSubgroupFeatureFlagBits`) or feature of
/// devices that support it, and its extension.
pub(crate) fn requirements(kind: SubgroupKind) -> (Capability, Feature, Option<&'static str>) {
    match kind {
        SubgroupKind::Elect => (Capability::GroupNonUniform, Feature::SubgroupBasic, None),
        SubgroupKind::All | SubgroupKind::Any | SubgroupKind::AllEqual => {
            (Capability::GroupNonUniformVote, Feature::SubgroupVote, None)
        }
        SubgroupKind::Ballot | SubgroupKind::Broadcast(_) | SubgroupKind::BroadcastFirst => {
            (Capability::GroupNonUniformBallot, Feature::SubgroupBallot, None)
        }
        SubgroupKind::Shuffle(_) | SubgroupKind::ShuffleXor(_) => {
            (Capability::GroupNonUniformShuffle, Feature::SubgroupShuffle, None)
        }
        SubgroupKind::ShuffleUp(_) | SubgroupKind::ShuffleDown(_) => {
            (Capability::GroupNonUniformShuffleRelative, Feature::SubgroupShuffleRelative, None)
        }
        SubgroupKind::Rotate { .. } => (
            Capability::GroupNonUniformRotateKHR,
            Feature::ShaderSubgroupRotateClustered,
            Some("SPV_KHR_subgroup_rotate"),
        ),
        SubgroupKind::QuadBroadcast(_) | SubgroupKind::QuadSwap(_) => {
            (Capability::GroupNonUniformQuad, Feature::SubgroupQuad, None)
        }
        SubgroupKind::Arithmetic(..) => {
            (Capability::GroupNonUniformArithmetic, Feature::SubgroupArithmetic, None)
        }
    }
}

/// Returns the instruction, or `None` for an operation that no reduction or scan computes.
pub(crate) fn opcode(kind: SubgroupKind) -> Option<Op> {
    Some(match kind {
        SubgroupKind::Elect => Op::GroupNonUniformElect,
        SubgroupKind::All => Op::GroupNonUniformAll,
        SubgroupKind::Any => Op::GroupNonUniformAny,
        SubgroupKind::AllEqual => Op::GroupNonUniformAllEqual,
        SubgroupKind::Ballot => Op::GroupNonUniformBallot,
        SubgroupKind::Broadcast(_) => Op::GroupNonUniformBroadcast,
        SubgroupKind::BroadcastFirst => Op::GroupNonUniformBroadcastFirst,
        SubgroupKind::Shuffle(_) => Op::GroupNonUniformShuffle,
        SubgroupKind::ShuffleXor(_) => Op::GroupNonUniformShuffleXor,
        SubgroupKind::ShuffleUp(_) => Op::GroupNonUniformShuffleUp,
        SubgroupKind::ShuffleDown(_) => Op::GroupNonUniformShuffleDown,
        SubgroupKind::Rotate { .. } => Op::GroupNonUniformRotateKHR,
        SubgroupKind::QuadBroadcast(_) => Op::GroupNonUniformQuadBroadcast,
        SubgroupKind::QuadSwap(_) => Op::GroupNonUniformQuadSwap,
        SubgroupKind::Arithmetic(_, ArithmeticOperation::Add) => Op::GroupNonUniformIAdd,
        SubgroupKind::Arithmetic(_, ArithmeticOperation::Minimum) => Op::GroupNonUniformUMin,
        SubgroupKind::Arithmetic(_, ArithmeticOperation::Maximum) => Op::GroupNonUniformUMax,
        SubgroupKind::Arithmetic(_, ArithmeticOperation::And) => Op::GroupNonUniformBitwiseAnd,
        SubgroupKind::Arithmetic(_, ArithmeticOperation::Or) => Op::GroupNonUniformBitwiseOr,
        SubgroupKind::Arithmetic(_, ArithmeticOperation::Xor) => Op::GroupNonUniformBitwiseXor,
        SubgroupKind::Arithmetic(
            _,
            ArithmeticOperation::Subtract | ArithmeticOperation::Multiply | ArithmeticOperation::Divide,
        ) => return None,
    })
}

/// Returns the SPIR-V group operation of a reduction or a scan.
pub(crate) fn group_operation(span: SubgroupSpan) -> GroupOperation {
    match span {
        SubgroupSpan::Reduce => GroupOperation::Reduce,
        SubgroupSpan::Inclusive => GroupOperation::InclusiveScan,
        SubgroupSpan::Exclusive => GroupOperation::ExclusiveScan,
    }
}

/// Returns the number of a direction in a quad.
pub(crate) fn quad_direction(direction: QuadDirection) -> u32 {
    match direction {
        QuadDirection::Horizontal => 0,
        QuadDirection::Vertical => 1,
        QuadDirection::Diagonal => 2,
    }
}
