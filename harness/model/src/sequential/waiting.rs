//! Waiting: barriers, calls, interlocks and the order of the system.

#![deny(clippy::wildcard_enum_match_arm)]

use litmus::{
    ControlBarrier, InstructionKind, InterlockEnd, InterlockOrder, Scope, SystemOperation, SystemSync,
    ThreadId,
};

use super::state::PackedState;
use super::{SchedulingMode, SequentialMachine};

impl SequentialMachine<'_> {
    /// Returns true if every predecessor of the thread's next instruction is done, or may still be skipped.
    pub(super) fn may_start(&self, state: &PackedState, thread: usize) -> bool {
        self.is_started(state, thread)
            && self.test.system_sync.iter().all(|sync| {
                !self.orders_next(state, thread, sync)
                    || self.is_first_done(state, sync)
                    || self.skippable.iter().any(|(skippable, _)| *skippable == sync)
                        && !self.is_at_first(state, sync)
            })
    }

    /// Marks the pairs that order the thread's next instruction and whose first side is not done: the run
    /// skips that side.
    pub(super) fn commit_to_skips(&self, state: &mut PackedState, thread: usize) {
        for (sync, word) in &self.skippable {
            if self.orders_next(state, thread, sync) && !self.is_first_done(state, sync) {
                state.0[*word] = 1;
            }
        }
    }

    /// Returns true if the thread's next instruction may only start if the run skips another thread's instruction.
    fn relies_on_skips(&self, state: &PackedState, thread: usize) -> bool {
        self.skippable.iter().any(|(sync, word)| {
            state.0[*word] == 0 && self.orders_next(state, thread, sync) && !self.is_first_done(state, sync)
        })
    }

    /// Returns true if the pair orders the thread's next instruction after another thread's.
    pub(super) fn orders_next(&self, state: &PackedState, thread: usize, sync: &SystemSync) -> bool {
        usize::from(sync.to.thread.0) == thread
            && sync.from.thread != sync.to.thread
            && self.test.orders_events(sync)
            && sync.to.instruction.is_none_or(|i| {
                usize::from(i) == self.position(state, thread) || self.mode == SchedulingMode::Serial
            })
    }

    /// Returns true if the first side of the pair is done or skipped. A finished thread is past every
    /// instruction.
    pub(super) fn is_first_done(&self, state: &PackedState, sync: &SystemSync) -> bool {
        let other = usize::from(sync.from.thread.0);
        self.is_done(state, other)
            || sync.from.instruction.is_some_and(|i| self.position(state, other) > usize::from(i))
    }

    pub(super) fn is_at_first(&self, state: &PackedState, sync: &SystemSync) -> bool {
        sync.from
            .instruction
            .is_some_and(|i| self.position(state, usize::from(sync.from.thread.0)) == usize::from(i))
    }

    /// Returns true if the thread needs no submission or shader call, or has received it.
    pub(super) fn is_started(&self, state: &PackedState, thread: usize) -> bool {
        if !self.has_calls {
            return true;
        }
        let contains_thread =
            |threads: &[ThreadId]| threads.iter().any(|other| usize::from(other.0) == thread);
        self.test.threads.iter().enumerate().all(|(number, other)| {
            let position = self.position(state, number);
            other.instructions.iter().enumerate().all(|(index, instruction)| match &instruction.kind {
                // A submission is complete when its threads start. A caller stays at its call while
                // the callees run.
                InstructionKind::System(SystemOperation::Submit(threads)) if contains_thread(threads) => {
                    position > index
                }
                InstructionKind::ShaderCall(threads) if contains_thread(threads) => position >= index,
                InstructionKind::Access(_)
                | InstructionKind::Fence { .. }
                | InstructionKind::ControlBarrier(_)
                | InstructionKind::SplitBarrier(_)
                | InstructionKind::System(_)
                | InstructionKind::ShaderCall(_)
                | InstructionKind::Interlock(_)
                | InstructionKind::Subgroup(_)
                | InstructionKind::Compute(_)
                | InstructionKind::Flow(_) => true,
            })
        })
    }

    pub(super) fn is_gated(&self, thread: usize, position: usize) -> bool {
        self.test.system_sync.iter().filter(|sync| self.test.orders_events(sync)).any(|sync| {
            usize::from(sync.to.thread.0) == thread && sync.to.instruction == Some(position as u16)
        })
    }

    /// Returns true if all partners of the thread's wait have arrived as often as it has.
    pub(super) fn have_all_arrived(&self, state: &PackedState, thread: usize, scope: Scope) -> bool {
        let arrival_count = self.arrival_word(thread, scope).map_or(0, |word| state.0[word]);
        (0..self.test.threads.len()).all(|other| {
            !self.test.wait_for_each_other(ThreadId(thread as u16), ThreadId(other as u16), scope)
                || self.arrival_word(other, scope).is_some_and(|word| state.0[word] >= arrival_count)
        })
    }

    /// Passes a control barrier if every thread that it waits for has arrived; returns false otherwise.
    pub(super) fn try_pass_barrier(
        &self,
        state: &mut PackedState,
        thread: usize,
        barrier: &ControlBarrier,
    ) -> bool {
        let mut arrived = 0;
        let mut missing = false;
        // Members at the barrier that have arrived only if the run skips another thread's instruction.
        let mut conditional = Vec::new();
        for (other, other_thread) in self.test.threads.iter().enumerate() {
            for (index, instruction) in other_thread.instructions.iter().enumerate() {
                let InstructionKind::ControlBarrier(candidate) = &instruction.kind else { continue };
                if barrier.is_same_barrier(candidate)
                    && self.test.threads[thread]
                        .place
                        .shares_scope(other_thread.place, barrier.execution_scope)
                {
                    let is_at = self.position(state, other) == index;
                    // A thread at the barrier that must first wait for another thread has not arrived.
                    if !self.has_reached(state, other, index) || is_at && !self.may_start(state, other) {
                        missing = true;
                    } else if is_at && self.relies_on_skips(state, other) {
                        conditional.push(other);
                    } else {
                        arrived += 1;
                    }
                }
            }
        }
        let mut needed = match barrier.quorum {
            Some(quorum) => quorum.saturating_sub(arrived) as usize,
            None if missing => return false,
            None => conditional.len(),
        };
        if needed > conditional.len() {
            return false;
        }
        // A run that passes without a member may still execute what that member waits for. So no more members
        // count than needed, and each choice of them is tried.
        for (index, other) in conditional.iter().enumerate() {
            let is_indispensable = needed == conditional.len() - index;
            if needed > 0 && (is_indispensable || self.choices.choose_index(2) == 0) {
                self.commit_to_skips(state, *other);
                needed -= 1;
            }
        }
        true
    }

    /// Returns true if a wait, a shader call or an interlocked section must wait for other threads.
    pub(super) fn must_wait(&self, state: &PackedState, thread: usize, position: usize) -> bool {
        let has_ended = |other: &ThreadId| self.is_done(state, usize::from(other.0));
        match &self.test.threads[thread].instructions[position].kind {
            InstructionKind::System(SystemOperation::Wait(threads))
            | InstructionKind::ShaderCall(threads) => !threads.iter().all(has_ended),
            InstructionKind::Interlock(interlock) if interlock.end == InterlockEnd::Begin => {
                let last_position = |number: usize, wanted: InterlockEnd| {
                    self.test.threads[number].instructions.iter().rposition(|instruction| {
                        matches!(&instruction.kind, InstructionKind::Interlock(end)
                            if end.end == wanted && end.section == interlock.section)
                    })
                };
                let is_before_end = |number: usize| {
                    last_position(number, InterlockEnd::End)
                        .is_some_and(|last| self.position(state, number) <= last)
                };
                match interlock.order {
                    // Sections of earlier columns come first.
                    InterlockOrder::Ordered => (0..thread).any(is_before_end),
                    // No other thread is inside; under serial execution none can be.
                    InterlockOrder::Unordered => {
                        let is_inside = |number: usize| {
                            let begin = last_position(number, InterlockEnd::Begin);
                            begin.is_some_and(|begin| self.position(state, number) > begin)
                                && is_before_end(number)
                        };
                        self.mode == SchedulingMode::Interleaved
                            && (0..self.test.threads.len())
                                .any(|number| number != thread && is_inside(number))
                    }
                }
            }
            InstructionKind::Access(_)
            | InstructionKind::Fence { .. }
            | InstructionKind::ControlBarrier(_)
            | InstructionKind::SplitBarrier(_)
            | InstructionKind::System(_)
            | InstructionKind::Interlock(_)
            | InstructionKind::Subgroup(_)
            | InstructionKind::Compute(_)
            | InstructionKind::Flow(_) => false,
        }
    }
}
