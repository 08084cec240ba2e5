//! Subgroup operations.
//!
//! The lanes of a subgroup are in several waves. So a wave waits at an operation until each lane of the
//! subgroup has arrived or can no longer arrive. Lanes exchange values without waiting for memory operations.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::{Wave, join_halves};
use crate::program::{Group, GroupKind, GroupSpan, LANES, Op, Program, Register};
use crate::random::{Random, lanes};

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
    /// It may still arrive.
    Before,
    /// It has arrived.
    There,
    /// It has passed the operation, or has ended.
    Past,
}

impl Wave {
    /// Returns the subgroup operation at the program counter.
    pub fn current_group_op(&self, program: &Program) -> Option<Group> {
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
            None => LaneStatus::Past,
            Some(at) if program.alone => self.lane_status_unsynchronized(at, other, program),
            // Rounds count loop back edges of the whole wave, so they order positions before block
            // numbers do.
            Some(_) if self.rounds != other.rounds => {
                if self.rounds > other.rounds {
                    LaneStatus::Past
                } else {
                    LaneStatus::Before
                }
            }
            Some(at) if at > other.program_counter => LaneStatus::Past,
            Some(at) if at == other.program_counter && self.execution_mask & bit != 0 => LaneStatus::There,
            Some(_) => LaneStatus::Before,
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
                    std::cmp::Ordering::Less => return LaneStatus::Before,
                    std::cmp::Ordering::Greater => return LaneStatus::Past,
                    std::cmp::Ordering::Equal => {}
                }
            }
        }
        match at.cmp(&other.program_counter) {
            std::cmp::Ordering::Less => LaneStatus::Before,
            std::cmp::Ordering::Equal => LaneStatus::There,
            std::cmp::Ordering::Greater => LaneStatus::Past,
        }
    }

    /// Iterates over the lanes that have arrived.
    pub fn arrived_lanes(&self) -> impl Iterator<Item = usize> + use<> {
        lanes(self.execution_mask)
    }

    /// Records that lanes enter a block. A branch diverges lanes inside a selection; outside of all
    /// selections control flow is uniform again.
    pub(super) fn diverge_lanes(&mut self, program: &Program, to: u32, mask: u64, branches: bool) {
        if self.branch_histories.is_empty() {
            return;
        }
        let nested = program.nested.get(to as usize).copied().unwrap_or(false);
        for lane in lanes(mask) {
            let Some(way) = self.branch_histories.get_mut(lane) else { continue };
            if !nested {
                *way = 0;
            } else if branches {
                let mut hasher = DefaultHasher::new();
                (*way, to).hash(&mut hasher);
                *way = hasher.finish();
            }
        }
    }

    /// Returns the hash of the branches that a lane took since control flow was uniform.
    pub fn branch_history(&self, lane: usize) -> u64 {
        self.branch_histories.get(lane).copied().unwrap_or(0)
    }

    /// Makes a lane reconverge with the lanes of a branch history.
    pub fn reconverge_lane(&mut self, lane: usize, with: u64) {
        if let Some(way) = self.branch_histories.get_mut(lane) {
            *way = with;
        }
    }

    /// Returns the operand of a lane.
    pub fn lane_operand(&self, group: &Group, lane: usize) -> u64 {
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

    /// Returns the id of the barrier group of a lane.
    pub fn participant_mask(&self, slot: u8, lane: usize) -> u32 {
        self.word_operands(slot, lane).2
    }

    /// Advances past the operation.
    pub fn finish_group_op(&mut self) {
        self.program_counter += 1;
    }
}

/// Returns the result for a lane: one word, two for a 64-bit number, or four for a ballot. Undefined results
/// vary randomly.
pub(crate) fn group_result(
    group: &Group,
    lane: u32,
    argument: u32,
    tangle: &[LaneOperand],
    random: &mut Random,
) -> [u32; 4] {
    let from = |source: Option<u32>, random: &mut Random| {
        let found = source.and_then(|source| tangle.iter().find(|brought| brought.lane == source));
        found.map_or_else(|| random.word() as u32, |brought| brought.value as u32)
    };
    let first = tangle.first().map_or(0, |brought| brought.value);
    let all = |holds: &dyn Fn(u64) -> bool| u32::from(tangle.iter().all(|brought| holds(brought.value)));
    let word = match group.kind {
        // The machine numbers barrier groups itself.
        GroupKind::Meet => 0,
        GroupKind::Elect => u32::from(tangle.first().is_some_and(|lowest| lowest.lane == lane)),
        GroupKind::All => all(&|value| value != 0),
        GroupKind::Any => 1 - all(&|value| value == 0),
        GroupKind::AllEqual => all(&|value| value == first),
        GroupKind::Ballot => {
            let mut words = [0; 4];
            for brought in tangle.iter().filter(|brought| brought.value != 0) {
                if let Some(word) = words.get_mut(brought.lane as usize / 32) {
                    *word |= 1 << (brought.lane % 32);
                }
            }
            return words;
        }
        GroupKind::BroadcastFirst => first as u32,
        GroupKind::Broadcast | GroupKind::Shuffle => from(Some(argument), random),
        GroupKind::ShuffleXor => from(Some(lane ^ argument), random),
        GroupKind::ShuffleUp => from(lane.checked_sub(argument), random),
        GroupKind::ShuffleDown => from(lane.checked_add(argument), random),
        GroupKind::Rotate { cluster } => {
            // The size of a cluster is a power of two.
            let within = cluster.wrapping_sub(1);
            from(Some((lane & !within) | (lane.wrapping_add(argument) & within)), random)
        }
        GroupKind::QuadBroadcast => from(Some((lane & !3) | (argument & 3)), random),
        // Directions 0, 1, 2 swap horizontally, vertically and diagonally: they flip bit 0, bit 1
        // or both.
        GroupKind::QuadSwap => from(Some(lane ^ (argument + 1)), random),
        GroupKind::Scan(span, operation) => {
            let counts = |other: u32| match span {
                GroupSpan::Reduce => true,
                GroupSpan::Inclusive => other <= lane,
                GroupSpan::Exclusive => other < lane,
                GroupSpan::Clustered(size) => other / size.max(1) == lane / size.max(1),
            };
            let counted = tangle.iter().filter(|brought| counts(brought.lane));
            let values = counted.map(|brought| brought.value);
            // Only the first lane of an exclusive scan combines nothing.
            let all = values.reduce(|all, value| operation.apply(all, value));
            let all = all.unwrap_or_else(|| operation.neutral());
            return [all as u32, (all >> 32) as u32, 0, 0];
        }
    };
    [word, 0, 0, 0]
}
