//! Taint of built-in inputs that depend on the number of workgroups or on their size.
//!
//! Only a probe of the launch marks them ([`super::trial::probe_launch`]). Other walks stay on the fast path.

use arithmetic::Instruction;
use rspirv::spirv::{BuiltIn, GlslStd450Op, Op};

use super::value::{Taint, input_taint};
use entry_point::input_place::LaunchPart;

/// Returns true for computations with one result for positions that differ by more than an operand: a modulus, a
/// mask, an upper bound, a shift, which ends a hash, and a narrower result.
pub(super) fn reduces_positions(instruction: Instruction) -> bool {
    matches!(
        instruction,
        Instruction::Core(Op::UMod | Op::SMod | Op::SRem | Op::BitwiseAnd | Op::ShiftRightLogical)
            | Instruction::Core(
                Op::UConvert | Op::SConvert | Op::ConvertUToF | Op::ConvertSToF | Op::ShiftLeftLogical
            )
            | Instruction::Core(Op::BitFieldUExtract | Op::BitFieldSExtract)
            | Instruction::Extended(
                GlslStd450Op::UMin | GlslStd450Op::SMin | GlslStd450Op::UClamp | GlslStd450Op::SClamp,
            )
    )
}

/// The taint of positions, by axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LaunchTaint {
    workgroups: [Taint; 3],
    invocations: [Taint; 3],
    local: [Taint; 3],
}

impl LaunchTaint {
    /// Returns the taint that marks those inputs that are parts of the launch.
    pub fn from_inputs(inputs: impl Iterator<Item = Option<LaunchPart>>) -> LaunchTaint {
        let mut all = LaunchTaint::default();
        for (index, part) in inputs.enumerate() {
            let taint = input_taint(index);
            match part {
                Some(LaunchPart::Workgroups(axis)) => all.workgroups[axis] |= taint,
                Some(LaunchPart::Invocations(axis)) => all.invocations[axis] |= taint,
                Some(LaunchPart::LocalSize(_, axes)) => {
                    let chosen_axes = all.local.iter_mut().zip(axes).filter(|(_, own)| *own);
                    chosen_axes.for_each(|(local, _)| *local |= taint);
                }
                None => {}
            }
        }
        all
    }

    /// Returns true in a probe of the launch.
    pub fn is_tracked(&self) -> bool {
        *self != LaunchTaint::default()
    }

    /// Returns the taint of each component of a built-in input.
    pub fn built_in_taint(&self, built_in: BuiltIn) -> [Taint; 3] {
        let local_taint = [self.local.iter().fold(0, |all, one| all | one); 3];
        match built_in {
            BuiltIn::WorkgroupId | BuiltIn::NumWorkgroups => self.workgroups,
            BuiltIn::GlobalInvocationId => [0, 1, 2].map(|axis| self.invocations[axis] | self.local[axis]),
            BuiltIn::LocalInvocationId | BuiltIn::WorkgroupSize => self.local,
            BuiltIn::LocalInvocationIndex | BuiltIn::SubgroupId | BuiltIn::NumSubgroups => local_taint,
            _ => [0; 3],
        }
    }
}
