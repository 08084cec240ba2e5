//! Waiting: barriers, calls, interlocks and the order of the system.

#![deny(clippy::wildcard_enum_match_arm)]

use litmus::{
    ControlBarrier, InstructionKind, InterlockEnd, InterlockOrder, Scope, SystemOperation, SystemSync,
    ThreadId,
};

use super::state::PackedState;
use super::{SequentialMachine, Turns};

impl SequentialMachine<'_> {
    /// Returns true if every predecessor of the thread's next instruction is done, or may still be skipped.
    pub(super) fn may_start(&self, state: &PackedState, thread: usize) -> bool {
        self.is_started(state, thread)
            && self.test.system_sync.iter().all(|sync| {
                !self.orders_next(state, thread, sync)
                    || self.is_over(state, sync)
                    || self.skippable.iter().any(|(skippable, _)| *skippable == sync)
                        && !self.stands_at_first(state, sync)
            })
    }

    /// Marks the pairs that order the thread's next instruction and whose first side is not done: the run
    /// skips that side.
    pub(super) fn commit_to_skips(&self, state: &mut PackedState, thread: usize) {
        for (sync, word) in &self.skippable {
            if self.orders_next(state, thread, sync) && !self.is_over(state, sync) {
                state.0[*word] = 1;
            }
        }
    }

    /// Returns true if the pair orders the thread's next instruction after another thread's.
    pub(super) fn orders_next(&self, state: &PackedState, thread: usize, sync: &SystemSync) -> bool {
        usize::from(sync.to.thread.0) == thread
            && sync.from.thread != sync.to.thread
            && self.test.orders_events(sync)
            && sync
                .to
                .instruction
                .is_none_or(|i| usize::from(i) == self.at(state, thread) || self.turns == Turns::Serial)
    }

    /// Returns true if the first side of the pair is done or skipped. A finished thread is past every
    /// instruction.
    pub(super) fn is_over(&self, state: &PackedState, sync: &SystemSync) -> bool {
        let other = usize::from(sync.from.thread.0);
        self.is_done(state, other)
            || sync.from.instruction.is_some_and(|i| self.at(state, other) > usize::from(i))
    }

    pub(super) fn stands_at_first(&self, state: &PackedState, sync: &SystemSync) -> bool {
        sync.from
            .instruction
            .is_some_and(|i| self.at(state, usize::from(sync.from.thread.0)) == usize::from(i))
    }

    /// Returns true if the thread needs no submission or shader call, or has received it.
    pub(super) fn is_started(&self, state: &PackedState, thread: usize) -> bool {
        if !self.calls {
            return true;
        }
        let names = |threads: &[ThreadId]| threads.iter().any(|other| usize::from(other.0) == thread);
        self.test.threads.iter().enumerate().all(|(number, other)| {
            let at = self.at(state, number);
            other.instructions.iter().enumerate().all(|(index, instruction)| match &instruction.kind {
                // A submission is complete when its threads start. A caller stays at its call while
                // the callees run.
                InstructionKind::System(SystemOperation::Submit(threads)) if names(threads) => at > index,
                InstructionKind::ShaderCall(threads) if names(threads) => at >= index,
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

    pub(super) fn gated(&self, thread: usize, at: usize) -> bool {
        self.test
            .system_sync
            .iter()
            .filter(|sync| self.test.orders_events(sync))
            .any(|sync| usize::from(sync.to.thread.0) == thread && sync.to.instruction == Some(at as u16))
    }

    /// Returns true if all partners of the thread's wait have arrived as often as it has.
    pub(super) fn all_arrived(&self, state: &PackedState, thread: usize, scope: Scope) -> bool {
        let own = self.arrivals(thread, scope).map_or(0, |word| state.0[word]);
        (0..self.test.threads.len()).all(|other| {
            !self.test.wait_for_each_other(ThreadId(thread as u16), ThreadId(other as u16), scope)
                || self.arrivals(other, scope).is_some_and(|word| state.0[word] >= own)
        })
    }

    /// Passes a control barrier if every thread that it waits for has arrived; returns false otherwise.
    pub(super) fn pass(&self, state: &mut PackedState, thread: usize, barrier: &ControlBarrier) -> bool {
        let mut arrived = 0;
        let mut missing = false;
        // Members at the barrier that are not in its order yet.
        let mut present = Vec::new();
        for (other, other_thread) in self.test.threads.iter().enumerate() {
            for (index, instruction) in other_thread.instructions.iter().enumerate() {
                let InstructionKind::ControlBarrier(candidate) = &instruction.kind else { continue };
                if barrier.is_same_barrier(candidate)
                    && self.test.threads[thread]
                        .place
                        .shares_scope(other_thread.place, barrier.execution_scope)
                {
                    let is_at = self.at(state, other) == index;
                    // A thread at the barrier that must first wait for another thread has not arrived.
                    if self.has_reached(state, other, index) && (!is_at || self.may_start(state, other)) {
                        arrived += 1;
                        if is_at {
                            present.push(other);
                        }
                    } else {
                        missing = true;
                    }
                }
            }
        }
        let passes = match barrier.quorum {
            Some(quorum) => arrived >= quorum,
            None => !missing,
        };
        if passes {
            for other in present {
                self.commit_to_skips(state, other);
            }
        }
        passes
    }

    /// Returns true if a wait, a shader call or an interlocked section must wait for other threads.
    pub(super) fn waits(&self, state: &PackedState, thread: usize, at: usize) -> bool {
        let done = |other: &ThreadId| self.is_done(state, usize::from(other.0));
        match &self.test.threads[thread].instructions[at].kind {
            InstructionKind::System(SystemOperation::Wait(threads))
            | InstructionKind::ShaderCall(threads) => !threads.iter().all(done),
            InstructionKind::Interlock(interlock) if interlock.end == InterlockEnd::Begin => {
                let at = |number: usize, wanted: InterlockEnd| {
                    self.test.threads[number].instructions.iter().rposition(|instruction| {
                        matches!(&instruction.kind, InstructionKind::Interlock(end)
                            if end.end == wanted && end.section == interlock.section)
                    })
                };
                let not_behind_end = |number: usize| {
                    at(number, InterlockEnd::End).is_some_and(|last| self.at(state, number) <= last)
                };
                match interlock.order {
                    // Sections of earlier columns come first.
                    InterlockOrder::Ordered => (0..thread).any(not_behind_end),
                    // No other thread is inside; under serial execution none can be.
                    InterlockOrder::Unordered => {
                        let inside = |number: usize| {
                            let begin = at(number, InterlockEnd::Begin);
                            begin.is_some_and(|begin| self.at(state, number) > begin)
                                && not_behind_end(number)
                        };
                        self.turns == Turns::Interleaved
                            && (0..self.test.threads.len()).any(|number| number != thread && inside(number))
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
