//! Control barriers: the executed prefix of each thread, and the barriers that synchronize.

use litmus::{ControlBarrier, InstructionKind, Scope, SplitBarrier, SplitHalf, TangledLane, Test, ThreadId};

use super::tangles::Tangles;
use super::{ExecutionSemantics, Skeleton};
use crate::path::{StepKind, ThreadPath, ThreadStep};

/// Limit of barriers with a quorum in a test, which bounds the choices of the members that meet.
pub(crate) const MAX_QUORUM_BARRIERS: usize = 20;

/// A control barrier that a thread has reached.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival<'t> {
    /// Its event.
    pub(super) event: u16,
    pub(super) thread: ThreadId,
    /// Index of the instruction in the thread.
    pub(super) instruction: u16,
    pub(super) barrier: &'t ControlBarrier,
    /// Number of earlier executions of the instruction by the thread.
    pub(super) occurrence: u16,
}

/// Returns the control barrier at an instruction index, if there is one.
pub(super) fn control_barrier_at(test: &Test, thread: ThreadId, instruction: u16) -> Option<&ControlBarrier> {
    match test.thread(thread).instructions.get(usize::from(instruction)).map(|i| &i.kind) {
        Some(InstructionKind::ControlBarrier(barrier)) => Some(barrier),
        _ => None,
    }
}

/// Returns the half of a split barrier at an instruction index, if there is one.
pub(super) fn split_barrier_at(test: &Test, thread: ThreadId, instruction: u16) -> Option<&SplitBarrier> {
    match test.thread(thread).instructions.get(usize::from(instruction)).map(|i| &i.kind) {
        Some(InstructionKind::SplitBarrier(barrier)) => Some(barrier),
        _ => None,
    }
}

/// The threads of a test on their paths.
#[derive(Clone, Copy)]
pub(super) struct PathAssignment<'t> {
    pub(super) test: &'t Test,
    pub(super) paths: &'t [&'t ThreadPath],
    pub(super) semantic: ExecutionSemantics,
    pub(super) tangles: &'t Tangles,
}

impl<'t> PathAssignment<'t> {
    /// Returns the executed length of each path.
    ///
    /// A thread stops at a control barrier that blocks it for ever. It executes nothing if it depends on a
    /// thread that does not end (`#synchronization-dependencies`).
    pub(super) fn executed_lengths(&self) -> Vec<usize> {
        let PathAssignment { test, paths, .. } = *self;
        let mut begun = vec![true; paths.len()];
        // The greatest fixpoint over begun threads: a thread that cannot start may stop others,
        // which may in turn stop more.
        loop {
            let executed = self.lengths_up_to_barriers(&begun);
            let ends = |thread: ThreadId| {
                let index = usize::from(thread.0);
                paths[index].terminated && begun[index] && executed[index] == paths[index].steps.len()
            };
            let covers_thread = |point: &litmus::SyncPoint| point.instruction.is_none();
            let waiting = test.system_sync.iter().find(|sync| {
                let other = sync.from.thread != sync.to.thread;
                let begun = begun[usize::from(sync.to.thread.0)];
                other
                    && begun
                    && covers_thread(&sync.from)
                    && covers_thread(&sync.to)
                    && !ends(sync.from.thread)
            });
            match waiting {
                Some(sync) => begun[usize::from(sync.to.thread.0)] = false,
                None => return executed,
            }
        }
    }

    /// Returns the path lengths up to blocking barriers and waits, as a least fixpoint. Threads that have not
    /// begun execute nothing.
    fn lengths_up_to_barriers(&self, begun: &[bool]) -> Vec<usize> {
        let PathAssignment { test, paths, .. } = *self;
        let path_length = |thread: usize| if begun[thread] { paths[thread].steps.len() } else { 0 };
        let stop_after = |thread: usize, from: usize| {
            paths[thread].steps[from..]
                .iter()
                .position(|step| self.may_block(ThreadId(thread as u16), step))
                .map_or(paths[thread].steps.len(), |offset| from + offset)
        };
        // Position of the next barrier of each thread, or the end of its path.
        let mut positions: Vec<usize> =
            (0..paths.len()).map(|thread| stop_after(thread, 0).min(path_length(thread))).collect();
        loop {
            let reached = |thread: usize, instruction: usize, occurrence: u16| {
                let path = paths[thread];
                if !begun[thread] {
                    return false;
                }
                path.steps.iter().take(positions[thread] + 1).any(|step| {
                    usize::from(step.instruction) == instruction
                        && step.occurrence == occurrence
                        && matches!(step.kind, StepKind::ControlBarrier | StepKind::Subgroup(_))
                })
            };
            let may_pass = |thread: usize| {
                if !begun[thread] {
                    return None;
                }
                let path = paths[thread];
                let step = path.steps.get(positions[thread])?;
                let id = ThreadId(thread as u16);
                // Only waits block: `stop_after` passes arrivals.
                if let Some(wait) = split_barrier_at(test, id, step.instruction) {
                    return Some(self.have_all_arrived(id, wait.execution_scope, &positions));
                }
                let tangle = self.tangles.lanes_with(id, step.instruction);
                if !tangle.is_empty() {
                    let is_reached =
                        |lane: &TangledLane| reached(usize::from(lane.thread.0), lane.instruction, 0);
                    return Some(tangle.iter().all(is_reached));
                }
                let barrier = control_barrier_at(test, id, step.instruction)?;
                let mut arrived = 0;
                let mut missing = false;
                for other in 0..paths.len() {
                    let other_id = ThreadId(other as u16);
                    for index in 0..test.thread(other_id).instructions.len() {
                        let Some(candidate) = control_barrier_at(test, other_id, index as u16) else {
                            continue;
                        };
                        if self.are_same_barrier(id, barrier, other_id, candidate) {
                            if reached(other, index, step.occurrence) {
                                arrived += 1;
                            } else {
                                missing = true;
                            }
                        }
                    }
                }
                Some(match barrier.quorum {
                    Some(quorum) => arrived >= quorum,
                    None => !missing,
                })
            };
            // The conditions are monotone in the positions, so all threads that may pass can move
            // in one round.
            let passing: Vec<usize> = (0..paths.len()).filter(|t| may_pass(*t) == Some(true)).collect();
            if passing.is_empty() {
                return positions;
            }
            for thread in passing {
                positions[thread] = stop_after(thread, positions[thread] + 1);
            }
        }
    }

    /// Returns true if a step may block its thread.
    fn may_block(&self, thread: ThreadId, step: &ThreadStep) -> bool {
        match step.kind {
            StepKind::Subgroup(_) => true,
            _ if self.semantic.has_global_barriers => false,
            StepKind::ControlBarrier => true,
            StepKind::SplitBarrier => split_barrier_at(self.test, thread, step.instruction)
                .is_some_and(|half| half.half == SplitHalf::Wait),
            _ => false,
        }
    }

    /// Returns true if all awaited threads have arrived as often as `thread`, given the executed steps.
    fn have_all_arrived(&self, thread: ThreadId, scope: Scope, positions: &[usize]) -> bool {
        let PathAssignment { test, paths, .. } = *self;
        let arrivals = |thread: usize| {
            let id = ThreadId(thread as u16);
            let before = paths[thread].steps.iter().take(positions[thread]);
            let halves = before.filter_map(|step| split_barrier_at(test, id, step.instruction));
            halves.filter(|half| half.half == SplitHalf::Arrive && half.execution_scope == scope).count()
        };
        let required = arrivals(usize::from(thread.0));
        (0..paths.len()).all(|other| {
            let id = ThreadId(other as u16);
            !test.wait_for_each_other(thread, id, scope) || arrivals(other) >= required
        })
    }

    /// Returns true if two control barriers are one barrier, in one instance of their execution scope.
    fn are_same_barrier(
        &self,
        left_thread: ThreadId,
        left: &ControlBarrier,
        right_thread: ThreadId,
        right: &ControlBarrier,
    ) -> bool {
        if self.semantic.has_global_barriers {
            return left.id == right.id && left.resource == right.resource;
        }
        let place = self.test.thread(left_thread).place;
        left.is_same_barrier(right)
            && place.shares_scope(self.test.thread(right_thread).place, left.execution_scope)
    }

    /// Returns true if two lanes reached a barrier in one dynamic instance (SPIR-V, "Dynamic Instance"),
    /// although a branch may skip it.
    fn share_tangle(&self, left: &Arrival<'_>, right: &Arrival<'_>) -> bool {
        let tangle = self.tangles.lanes_with(left.thread, left.instruction);
        let is_right = |lane: &TangledLane| lane.thread == right.thread;
        self.semantic.has_global_barriers || tangle.is_empty() || tangle.iter().any(is_right)
    }

    /// Adds the pairs of barriers that synchronize. With a quorum, each large enough subset of the arrivals
    /// gives a separate event structure.
    pub(super) fn add_barrier_sync(&self, mut skeleton: Skeleton, barriers: &[Arrival<'t>]) -> Vec<Skeleton> {
        let are_same = |left: &Arrival<'_>, right: &Arrival<'_>| {
            self.are_same_barrier(left.thread, left.barrier, right.thread, right.barrier)
        };
        let can_synchronize = |left: &Arrival<'_>, right: &Arrival<'_>| {
            left.occurrence == right.occurrence && are_same(left, right) && self.share_tangle(left, right)
        };
        let mut choices: Vec<Vec<Vec<u16>>> = Vec::new();
        let mut grouped: Vec<u16> = Vec::new();
        for barrier in barriers {
            // Without a quorum every arrival waits for every other, so there is no choice.
            let Some(quorum) = barrier.barrier.quorum else {
                for other in barriers {
                    if other.barrier.quorum.is_none() && can_synchronize(barrier, other) {
                        skeleton.barrier_sync.push((barrier.event, other.event));
                    }
                }
                continue;
            };
            // All arrivals at one named barrier make one choice together.
            if grouped.contains(&barrier.event) {
                continue;
            }
            let members: Vec<u16> = barriers
                .iter()
                .filter(|other| {
                    other.barrier.quorum.is_some()
                        && other.occurrence == barrier.occurrence
                        && are_same(barrier, other)
                })
                .map(|other| other.event)
                .collect();
            grouped.extend(&members);
            // The bits of the number are the members that the others wait for.
            let subsets = (0u32..1 << members.len().min(MAX_QUORUM_BARRIERS))
                .filter(|mask| mask.count_ones() >= quorum)
                .map(|mask| {
                    members
                        .iter()
                        .enumerate()
                        .filter(|(i, _)| mask & (1 << i) != 0)
                        .map(|(_, m)| *m)
                        .collect()
                })
                .collect();
            choices.push(subsets);
        }
        // Different barriers choose independently.
        let mut skeletons = vec![skeleton];
        for subsets in choices {
            skeletons = skeletons
                .iter()
                .flat_map(|skeleton| {
                    subsets.iter().map(|subset| {
                        let mut chosen = skeleton.clone();
                        for first in barriers.iter().filter(|b| subset.contains(&b.event)) {
                            for second in barriers.iter().filter(|b| can_synchronize(first, b)) {
                                chosen.barrier_sync.push((first.event, second.event));
                            }
                        }
                        chosen
                    })
                })
                .collect();
        }
        skeletons
    }
}
