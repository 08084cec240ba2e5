//! Subgroup operations.
//!
//! The lanes of a subgroup are in several waves. So a wave waits at an operation until each lane of the
//! subgroup has arrived or can no longer arrive. Lanes exchange values without waiting for memory operations.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::{Wave, join_halves};
use crate::program::{LANES, Op, Program, ReductionSpan, Register, SubgroupOp, SubgroupOpKind};
use crate::random::{Random, lanes_in_mask};

/// The operand of a lane in a subgroup operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LaneOperand {
    /// The lane number in the subgroup.
    pub lane: u32,
    pub value: u64,
}

/// The position of a lane relative to an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LaneStatus {
    /// The lane may still arrive.
    MayArrive,
    /// The lane has arrived.
    Arrived,
    /// It has passed the operation, or has ended.
    Passed,
}

impl Wave {
    /// Returns the subgroup operation at the program counter.
    pub fn current_group_op(&self, program: &Program) -> Option<SubgroupOp> {
        match program.ops.get(self.program_counter as usize) {
            Some(Op::Group(group)) if !self.ended => Some(*group),
            _ => None,
        }
    }

    /// Returns the position of a lane relative to the operation that another wave waits at. Within a round,
    /// blocks execute in numeric order.
    pub fn lane_status(&self, lane: usize, other: &Wave, program: &Program) -> LaneStatus {
        let bit = 1u64 << lane;
        let place = if self.ended {
            None
        } else if self.execution_mask & bit != 0 {
            Some(self.program_counter)
        } else {
            let parked = self.divergent_lanes.iter().find(|(_, mask)| mask & bit != 0);
            parked.map(|(block, _)| program.blocks.get(*block as usize).copied().unwrap_or(0))
        };
        match place {
            None => LaneStatus::Passed,
            Some(at) if program.independent_invocations => {
                self.lane_status_unsynchronized(at, other, program)
            }
            // Rounds count loop back edges of the whole wave, so they order positions before block
            // numbers do.
            Some(_) if self.rounds != other.rounds => {
                if self.rounds > other.rounds {
                    LaneStatus::Passed
                } else {
                    LaneStatus::MayArrive
                }
            }
            Some(at) if at > other.program_counter => LaneStatus::Passed,
            Some(at) if at == other.program_counter && self.execution_mask & bit != 0 => LaneStatus::Arrived,
            Some(_) => LaneStatus::MayArrive,
        }
    }

    /// Compares waves of one invocation each: by the iterations of their common loops, outermost first, then
    /// by block order.
    fn lane_status_unsynchronized(&self, at: u32, other: &Wave, program: &Program) -> LaneStatus {
        let start = |block: u32| program.blocks.get(block as usize).copied().unwrap_or(u32::MAX);
        for (number, (first, last)) in program.loops.iter().enumerate() {
            let inside = |at: u32| start(*first) <= at && at < start(last + 1);
            if inside(at) && inside(other.program_counter) {
                // In a common loop, the iteration decides before the position does.
                match self.iterations.get(number).cmp(&other.iterations.get(number)) {
                    std::cmp::Ordering::Less => return LaneStatus::MayArrive,
                    std::cmp::Ordering::Greater => return LaneStatus::Passed,
                    std::cmp::Ordering::Equal => {}
                }
            }
        }
        match at.cmp(&other.program_counter) {
            std::cmp::Ordering::Less => LaneStatus::MayArrive,
            std::cmp::Ordering::Equal => LaneStatus::Arrived,
            std::cmp::Ordering::Greater => LaneStatus::Passed,
        }
    }

    /// Iterates over the lanes that have arrived.
    pub fn arrived_lanes(&self) -> impl Iterator<Item = usize> + use<> {
        lanes_in_mask(self.execution_mask)
    }

    /// Records that lanes enter a block. A branch diverges lanes inside a selection; outside of all
    /// selections control flow is uniform again.
    pub(super) fn diverge_lanes(&mut self, program: &Program, to: u32, mask: u64, branches: bool) {
        if self.branch_histories.is_empty() {
            return;
        }
        let nested = program.nested_blocks.get(to as usize).copied().unwrap_or(false);
        for lane in lanes_in_mask(mask) {
            let Some(history) = self.branch_histories.get_mut(lane) else { continue };
            if !nested {
                *history = 0;
            } else if branches {
                let mut hasher = DefaultHasher::new();
                (*history, to).hash(&mut hasher);
                *history = hasher.finish();
            }
        }
    }

    /// Returns the hash of the branches that a lane took since control flow was uniform.
    pub fn branch_history(&self, lane: usize) -> u64 {
        self.branch_histories.get(lane).copied().unwrap_or(0)
    }

    /// Makes a lane reconverge with the lanes of a branch history.
    pub fn reconverge_lane(&mut self, lane: usize, history: u64) {
        if let Some(own_history) = self.branch_histories.get_mut(lane) {
            *own_history = history;
        }
    }

    pub fn lane_operand(&self, group: &SubgroupOp, lane: usize) -> u64 {
        let low = self.register_value(group.value, lane);
        if group.is_wide() {
            join_halves(low, self.register_value(group.value + 1, lane))
        } else {
            low.into()
        }
    }

    /// Returns the value of a lane's register.
    pub fn register_value(&self, register: Register, lane: usize) -> u32 {
        self.registers.get(register as usize).map_or(0, |values| values[lane])
    }

    /// Writes a lane's result and lets the front end continue.
    pub fn write_result(&mut self, register: Register, lane: usize, words: &[u32]) {
        for (word, to) in words.iter().zip(register..) {
            if let Some(values) = self.registers.get_mut(to as usize) {
                values[lane % LANES] = *word;
            }
        }
    }

    pub fn barrier_group_id(&self, slot: u8, lane: usize) -> u32 {
        self.word_operands(slot, lane).2
    }

    /// Advances past the operation.
    pub fn finish_group_op(&mut self) {
        self.program_counter += 1;
    }
}

/// Returns the result for a lane: one word, two for a 64-bit number, or four for a ballot. Undefined results
/// vary randomly.
pub(crate) fn compute_group_result(
    group: &SubgroupOp,
    lane: u32,
    argument: u32,
    tangle: &[LaneOperand],
    random: &mut Random,
) -> [u32; 4] {
    let from = |source: Option<u32>, random: &mut Random| {
        let found = source.and_then(|source| tangle.iter().find(|operand| operand.lane == source));
        found.map_or_else(|| random.next_word() as u32, |operand| operand.value as u32)
    };
    let first = tangle.first().map_or(0, |operand| operand.value);
    let all = |holds: &dyn Fn(u64) -> bool| u32::from(tangle.iter().all(|brought| holds(brought.value)));
    let word = match group.kind {
        // The machine numbers barrier groups itself.
        SubgroupOpKind::Reconverge => 0,
        SubgroupOpKind::Elect => u32::from(tangle.first().is_some_and(|lowest| lowest.lane == lane)),
        SubgroupOpKind::All => all(&|value| value != 0),
        SubgroupOpKind::Any => 1 - all(&|value| value == 0),
        SubgroupOpKind::AllEqual => all(&|value| value == first),
        SubgroupOpKind::Ballot => {
            let mut words = [0; 4];
            for brought in tangle.iter().filter(|brought| brought.value != 0) {
                if let Some(word) = words.get_mut(brought.lane as usize / 32) {
                    *word |= 1 << (brought.lane % 32);
                }
            }
            return words;
        }
        SubgroupOpKind::BroadcastFirst => first as u32,
        SubgroupOpKind::Broadcast | SubgroupOpKind::Shuffle => from(Some(argument), random),
        SubgroupOpKind::ShuffleXor => from(Some(lane ^ argument), random),
        SubgroupOpKind::ShuffleUp => from(lane.checked_sub(argument), random),
        SubgroupOpKind::ShuffleDown => from(lane.checked_add(argument), random),
        SubgroupOpKind::Rotate { cluster } => {
            // The size of a cluster is a power of two.
            let within = cluster.wrapping_sub(1);
            from(Some((lane & !within) | (lane.wrapping_add(argument) & within)), random)
        }
        SubgroupOpKind::QuadBroadcast => from(Some((lane & !3) | (argument & 3)), random),
        // Directions 0, 1, 2 swap horizontally, vertically and diagonally: they flip bit 0, bit 1
        // or both.
        SubgroupOpKind::QuadSwap => from(Some(lane ^ (argument + 1)), random),
        SubgroupOpKind::Scan(span, operation) => {
            let counts = |other: u32| match span {
                ReductionSpan::Reduce => true,
                ReductionSpan::Inclusive => other <= lane,
                ReductionSpan::Exclusive => other < lane,
                ReductionSpan::Clustered(size) => other / size.max(1) == lane / size.max(1),
            };
            let counted = tangle.iter().filter(|brought| counts(brought.lane));
            let values = counted.map(|operand| operand.value);
            // Only the first lane of an exclusive scan combines nothing.
            let all = values.reduce(|all, value| operation.apply(all, value));
            let all = all.unwrap_or_else(|| operation.identity_element());
            return [all as u32, (all >> 32) as u32, 0, 0];
        }
    };
    [word, 0, 0, 0]
}
