//! Built-in variables of an invocation, and its role (the thread of the test that it executes).

use spirv_reader::Stage;

use super::{Wave, WaveContext};
use crate::limits::SUBGROUP_SIZE;
use crate::program::{BallotKind, BuiltIn, LaneMask, Op, Register};

/// The maximal number of blocks that a look-ahead runs.
const MAX_LOOKAHEAD_BLOCKS: u32 = 64;

impl Wave {
    /// Returns the role selectors of each lane after the first block, which accesses no memory.
    pub fn collect_role_keys(&mut self, context: &mut WaveContext<'_>) -> Vec<Vec<u32>> {
        let program = context.program;
        match program.stage {
            Stage::Compute | Stage::Mesh | Stage::Task => self.run_first_block(context),
            Stage::Vertex | Stage::Fragment => self.run_without_memory(context),
        }
        let value = |register: &Register, lane: usize| {
            self.registers.get(*register as usize).map_or(0, |values| values[lane])
        };
        (0..self.places.len())
            .map(|lane| program.role_selectors.iter().map(|register| value(register, lane)).collect())
            .collect()
    }

    fn run_first_block(&mut self, context: &mut WaveContext<'_>) {
        let program = context.program;
        let end = program.blocks.get(1).copied().unwrap_or(0);
        while self.program_counter < end {
            match program.ops.get(self.program_counter as usize) {
                Some(Op::Memory(_) | Op::Await { .. } | Op::Jump { .. } | Op::Branch { .. })
                | Some(Op::Switch { .. } | Op::Group(_) | Op::Return)
                | None => break,
                Some(op) => self.execute_op(*op, context),
            }
            self.program_counter += 1;
        }
    }

    /// Runs until every lane has ended or reaches a memory operation, which is not issued.
    pub fn run_without_memory(&mut self, context: &mut WaveContext<'_>) {
        let program = context.program;
        for _ in 0..MAX_LOOKAHEAD_BLOCKS {
            while !self.ended {
                match program.ops.get(self.program_counter as usize).copied() {
                    Some(Op::Jump { edge }) => {
                        self.branch_to(&[(edge, self.execution_mask)], false, context);
                        break;
                    }
                    Some(Op::Branch { condition, yes, no }) => {
                        let taken = self.true_lanes(condition) & self.execution_mask;
                        self.branch_to(&[(yes, taken), (no, self.execution_mask & !taken)], true, context);
                        break;
                    }
                    Some(Op::Switch(switch)) => {
                        self.issue_switch(switch, context);
                        break;
                    }
                    // The lanes stop here; the other lanes continue until they stop as well.
                    Some(Op::Memory(_) | Op::Await { .. } | Op::Group(_) | Op::Return) | None => {
                        self.execution_mask = 0;
                        self.select_parked_lanes(context);
                        break;
                    }
                    Some(op) => self.execute_op(op, context),
                }
                self.program_counter += 1;
            }
        }
    }

    /// Loads a built-in variable in each lane.
    pub(super) fn load_built_in(&mut self, to: Register, built_in: BuiltIn, context: &WaveContext<'_>) {
        let (own, layers) = (context.program.local_size, context.program.layers);
        let workgroup_counts = [context.dispatch.workgroups, layers[0], layers[1]];
        let grid = [workgroup_counts[0], workgroup_counts[1]];
        let workgroup = |place: &[u32; 4], axis| coordinate_on_axis(place[0], grid, axis);
        let local = |place: &[u32; 4], axis| coordinate_on_axis(place[1], own, axis);
        let size = |axis: u8| match axis {
            0 | 1 => own[usize::from(axis)],
            _ => context.program.workgroup_size / (own[0] * own[1]).max(1),
        };
        let Some(to) = self.registers.get_mut(to as usize) else { return };
        for (to, place) in to.iter_mut().zip(&self.places) {
            *to = match built_in {
                BuiltIn::Workgroup(axis) => workgroup(place, axis),
                BuiltIn::Workgroups(axis) => workgroup_counts.get(usize::from(axis)).copied().unwrap_or(1),
                BuiltIn::LocalIndex => place[1],
                BuiltIn::Local(axis) => local(place, axis),
                BuiltIn::Subgroup => place[2],
                BuiltIn::Lane => place[3],
                BuiltIn::Global(axis) => {
                    let before = workgroup(place, axis).wrapping_mul(size(axis));
                    before.wrapping_add(local(place, axis))
                }
                // In graphics stages, a place begins with the vertex, or with pixel x, pixel y and
                // the helper flag.
                BuiltIn::Vertex => place[0],
                // The center of the pixel.
                BuiltIn::Fragment(axis) => (place[usize::from(axis & 1)] as f32 + 0.5).to_bits(),
                BuiltIn::Helper => place[2],
                BuiltIn::VertexWord => place[3],
                BuiltIn::SubgroupSize => SUBGROUP_SIZE,
                BuiltIn::Subgroups => context.program.workgroup_size.div_ceil(SUBGROUP_SIZE),
                BuiltIn::Size(axis) => size(axis),
                BuiltIn::Mask(lanes) => {
                    let lane = place[3];
                    let bits = match lanes {
                        LaneMask::Equal => 1 << lane,
                        LaneMask::GreaterOrEqual => u32::MAX << lane,
                        // Two shifts, because a shift by all bits of the word would overflow.
                        LaneMask::Greater => u32::MAX << lane << 1,
                        LaneMask::LessOrEqual => (2 << lane) - 1,
                        LaneMask::Less => (1 << lane) - 1,
                    };
                    bits & BallotKind::SUBGROUP_MASK
                }
                BuiltIn::Zero => 0,
                BuiltIn::One => 1f32.to_bits(),
            };
        }
    }
}

/// Returns a coordinate of a linear index in a box with this size in x and y.
fn coordinate_on_axis(number: u32, [x, y]: [u32; 2], axis: u8) -> u32 {
    let (x, y) = (x.max(1), y.max(1));
    match axis {
        0 => number % x,
        1 => number / x % y,
        _ => number / x / y,
    }
}
