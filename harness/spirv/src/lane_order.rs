//! Execution models of HLSL, as subgroup barriers in the module.
//!
//! Ecma TC57 (proposal 0007) has three candidates. All of them presuppose maximal reconvergence.
//!
//! 1. *Full lockstep*: the lanes of a wave execute each instruction together, one arm of a branch after the other.
//! 2. *Lockstep in a tangle*: a branch splits a tangle, and its lanes join again at the merge block.
//! 3. *Independent* lanes, as an option with synchronization at branches or at atomics.
//!
//! Lockstep in a tangle is a subgroup barrier after each access of shared memory, before each branch, and at the start of
//! each block: lanes of different arms do not meet at a barrier. Full lockstep also orders these, which
//! [`SpirvModule::orders_lanes`] tells the walk. The proposal leaves open if lanes that execute in order also access memory
//! in order; here they do, so the barriers have acquire and release semantics.

use rspirv::spirv::{ExecutionMode, Op};

use crate::language::HlslExecution;
use crate::module::{SpirvConstant, SpirvFunction, SpirvInstruction, SpirvModule, SpirvType};
use crate::operation::MemoryEffect;

/// Semantics of the barriers: acquire and release of buffers, workgroup memory and images.
const ORDER_ALL: u64 = 0x8 | 0x40 | 0x100 | 0x800;
/// Availability and visibility operations, which only the Vulkan model has.
const MAKE_AVAILABLE_AND_VISIBLE: u64 = 0x2000 | 0x4000;
/// The number of the scope `Subgroup`.
const SUBGROUP: u64 = 3;

impl SpirvModule {
    /// Returns true if full lockstep orders different instructions of the lanes of a subgroup.
    pub fn orders_lanes(&self) -> bool {
        self.is_by_language && self.hlsl.execution == HlslExecution::Lockstep
    }

    /// Returns true if lanes that a branch separated join immediately after it.
    pub fn reconverges_maximally(&self, function: u32) -> bool {
        self.is_by_language && self.hlsl.execution != HlslExecution::Independent
            || self.execution_modes(function).contains(&ExecutionMode::MaximallyReconvergesKHR)
    }

    /// Adds the barriers of an execution model.
    pub(crate) fn add_lane_barriers(&mut self) {
        let execution = self.hlsl.execution;
        if execution == HlslExecution::Independent {
            return;
        }
        let more = if self.uses_vulkan_model { MAKE_AVAILABLE_AND_VISIBLE } else { 0 };
        let (scope, semantics) = (self.new_number(SUBGROUP), self.new_number(ORDER_ALL | more));
        let start = self.words.len() as u32 + 1;
        self.words.extend([4 << 16 | Op::ControlBarrier as u32, scope, scope, semantics]);
        let mut functions = std::mem::take(&mut self.functions);
        for function in functions.values_mut() {
            self.add_barriers_to(function, execution, (start, start + 3));
        }
        self.functions = functions;
    }

    fn add_barriers_to(&self, function: &mut SpirvFunction, execution: HlslExecution, operands: (u32, u32)) {
        let is_merge = |op: Op| matches!(op, Op::SelectionMerge | Op::LoopMerge);
        let is_branch = |op: Op| matches!(op, Op::BranchConditional | Op::Switch);
        let old = std::mem::take(&mut function.code);
        let mut code: Vec<SpirvInstruction> = Vec::with_capacity(2 * old.len());
        // True after the label of a block, unless it is the first one.
        let mut starts_block = false;
        for instruction in &old {
            let barrier =
                SpirvInstruction { op: Op::ControlBarrier, ty: 0, result: 0, operands, ..*instruction };
            let effect = self.operation(instruction).memory_effect();
            let is_atomic = matches!(effect, MemoryEffect::Atomic(_));
            let before = code.last().map(|instruction| instruction.op);
            let is_split =
                is_merge(instruction.op) || is_branch(instruction.op) && !before.is_some_and(is_merge);
            let is_start = starts_block && instruction.op != Op::Phi;
            let (is_before, is_after) = match execution {
                HlslExecution::Independent => (false, false),
                HlslExecution::Branches => (is_split || is_start, false),
                HlslExecution::Atomics => (is_atomic, is_atomic),
                HlslExecution::Tangle | HlslExecution::Lockstep => {
                    (is_split || is_start, self.accesses_shared_memory(function, instruction))
                }
            };
            if is_before && before != Some(Op::ControlBarrier) {
                code.push(barrier);
            }
            code.push(*instruction);
            if is_after {
                code.push(barrier);
            }
            starts_block = match instruction.op {
                Op::Label => code.len() > 1,
                Op::Phi => starts_block,
                _ => false,
            };
        }
        let labels = code.iter().enumerate().filter(|(_, instruction)| instruction.op == Op::Label);
        function.labels = labels.map(|(at, label)| (label.result, at)).collect();
        function.code = code;
    }

    /// Returns the id of a new constant of 32 bits.
    pub(crate) fn new_number(&mut self, number: u64) -> u32 {
        let wanted = SpirvType::Integer { bits: 32, signed: false };
        let known = self.types.iter().find(|(_, ty)| **ty == wanted).map(|(id, _)| *id);
        let ty = known.unwrap_or_else(|| {
            let id = self.new_id();
            self.types.insert(id, wanted);
            id
        });
        let id = self.new_id();
        self.constants.insert(id, (ty, SpirvConstant::Scalar(number)));
        id
    }
}
