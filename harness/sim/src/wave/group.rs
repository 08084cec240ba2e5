//! Subgroup operations: the lanes of a subgroup are in several waves, so that a wave stands at an operation until all lanes of
//! the subgroup are there or will not come. They hand over values; nothing of their memory operations is waited for.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::{Wave, join};
use crate::program::{Group, GroupKind, GroupSpan, LANES, Op, Program, Register};
use crate::random::{Random, lanes};

/// What a lane of a subgroup brings to an operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Brought {
    /// Its number in the subgroup.
    pub lane: u32,
    /// Its value.
    pub value: u64,
}

/// How a lane stands to an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It may still come.
    Before,
    /// It is there.
    There,
    /// It is past it, or has ended.
    Past,
}

impl Wave {
    /// The operation that the front end stands at.
    pub fn group(&self, program: &Program) -> Option<Group> {
        match program.ops.get(self.at as usize) {
            Some(Op::Group(group)) if !self.ended => Some(*group),
            _ => None,
        }
    }

    /// How a lane stands to the operation that another wave stands at. Blocks stand in the order in which they are executed,
    /// but for the rounds.
    pub fn standing(&self, lane: usize, other: &Wave, program: &Program) -> Standing {
        let bit = 1u64 << lane;
        let place = if self.ended {
            None
        } else if self.mask & bit != 0 {
            Some(self.at)
        } else {
            let parked = self.parked.iter().find(|(_, mask)| mask & bit != 0);
            parked.map(|(block, _)| program.blocks.get(*block as usize).copied().unwrap_or(0))
        };
        match place {
            None => Standing::Past,
            Some(at) if program.alone => self.standing_alone(at, other, program),
            Some(_) if self.rounds != other.rounds => {
                if self.rounds > other.rounds {
                    Standing::Past
                } else {
                    Standing::Before
                }
            }
            Some(at) if at > other.at => Standing::Past,
            Some(at) if at == other.at && self.mask & bit != 0 => Standing::There,
            Some(_) => Standing::Before,
        }
    }

    /// How the one invocation of a wave, which is at `at`, stands to that of another: by the iterations of the loops that both are
    /// in, from the outermost on, and then by the order of blocks.
    fn standing_alone(&self, at: u32, other: &Wave, program: &Program) -> Standing {
        let start = |block: u32| program.blocks.get(block as usize).copied().unwrap_or(u32::MAX);
        for (number, (first, last)) in program.loops.iter().enumerate() {
            let inside = |at: u32| start(*first) <= at && at < start(last + 1);
            if inside(at) && inside(other.at) {
                match self.iterations.get(number).cmp(&other.iterations.get(number)) {
                    std::cmp::Ordering::Less => return Standing::Before,
                    std::cmp::Ordering::Greater => return Standing::Past,
                    std::cmp::Ordering::Equal => {}
                }
            }
        }
        match at.cmp(&other.at) {
            std::cmp::Ordering::Less => Standing::Before,
            std::cmp::Ordering::Equal => Standing::There,
            std::cmp::Ordering::Greater => Standing::Past,
        }
    }

    /// The lanes that are there, and all lanes.
    pub fn lanes_there(&self) -> impl Iterator<Item = usize> + use<> {
        lanes(self.mask)
    }

    /// Notes that lanes go on at a block: by a branch they part from others inside selections, and where none is around the
    /// block, control flow is uniform.
    pub(super) fn part(&mut self, program: &Program, to: u32, mask: u64, branches: bool) {
        if self.ways.is_empty() {
            return;
        }
        let nested = program.nested.get(to as usize).copied().unwrap_or(false);
        for lane in lanes(mask) {
            let Some(way) = self.ways.get_mut(lane) else { continue };
            if !nested {
                *way = 0;
            } else if branches {
                let mut hasher = DefaultHasher::new();
                (*way, to).hash(&mut hasher);
                *way = hasher.finish();
            }
        }
    }

    /// The branches that a lane has taken since control flow was uniform.
    pub fn way(&self, lane: usize) -> u64 {
        self.ways.get(lane).copied().unwrap_or(0)
    }

    /// Lets a lane go on together with those of a way.
    pub fn join(&mut self, lane: usize, with: u64) {
        if let Some(way) = self.ways.get_mut(lane) {
            *way = with;
        }
    }

    /// What a lane brings to an operation.
    pub fn brings(&self, group: &Group, lane: usize) -> u64 {
        let low = self.held(group.value, lane);
        if group.is_wide() { join(low, self.held(group.value + 1, lane)) } else { low.into() }
    }

    /// What a lane holds in a register.
    pub fn held(&self, register: Register, lane: usize) -> u32 {
        self.registers.get(register as usize).map_or(0, |values| values[lane])
    }

    /// Gives a lane what came of an operation, and lets the front end go on.
    pub fn give(&mut self, register: Register, lane: usize, words: &[u32]) {
        for (word, to) in words.iter().zip(register..) {
            if let Some(values) = self.registers.get_mut(to as usize) {
                values[lane % LANES] = *word;
            }
        }
    }

    /// The meeting that a lane's half of a barrier is of.
    pub fn meeting(&self, slot: u8, lane: usize) -> u32 {
        self.operands(slot, lane).2
    }

    /// Goes past the operation.
    pub fn pass(&mut self) {
        self.at += 1;
    }
}

/// What comes of an operation for a lane: a word, two of a number of 64 bits, or four of a ballot. What is undefined is something else each time.
pub(crate) fn result(
    group: &Group,
    lane: u32,
    argument: u32,
    tangle: &[Brought],
    random: &mut Random,
) -> [u32; 4] {
    let from = |source: Option<u32>, random: &mut Random| {
        let found = source.and_then(|source| tangle.iter().find(|brought| brought.lane == source));
        found.map_or_else(|| random.word() as u32, |brought| brought.value as u32)
    };
    let first = tangle.first().map_or(0, |brought| brought.value);
    let all = |holds: &dyn Fn(u64) -> bool| u32::from(tangle.iter().all(|brought| holds(brought.value)));
    let word = match group.kind {
        // The machine numbers meetings.
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
            let within = cluster.wrapping_sub(1);
            from(Some((lane & !within) | (lane.wrapping_add(argument) & within)), random)
        }
        GroupKind::QuadBroadcast => from(Some((lane & !3) | (argument & 3)), random),
        GroupKind::QuadSwap => from(Some(lane ^ (argument + 1)), random),
        GroupKind::Scan(span, operation) => {
            let counts = |other: u32| match span {
                GroupSpan::Reduce => true,
                GroupSpan::Inclusive => other <= lane,
                GroupSpan::Exclusive => other < lane,
                GroupSpan::Clustered(size) => other / size.max(1) == lane / size.max(1),
            };
            let counted = tangle.iter().filter(|brought| counts(brought.lane));
            let all = counted.fold(operation.neutral(), |all, brought| operation.apply(all, brought.value));
            return [all as u32, (all >> 32) as u32, 0, 0];
        }
    };
    [word, 0, 0, 0]
}
