//! Split barriers: the sets of threads that synchronize, and the arrival count of each thread.

use litmus::{Scope, SplitBarrier, SplitHalf, Test, ThreadId};

/// Execution scopes with separate rounds.
const SCOPES: [Scope; 2] = [Scope::Workgroup, Scope::Subgroup];

/// A half of a split barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BarrierHalf {
    pub(super) half: SplitHalf,
    /// Index of the execution scope in [`SCOPES`].
    pub(super) scope_index: usize,
}

impl BarrierHalf {
    pub(super) fn from_barrier(barrier: &SplitBarrier) -> BarrierHalf {
        let series = usize::from(barrier.execution_scope == Scope::Subgroup);
        BarrierHalf { half: barrier.half, scope_index: series }
    }
}

/// Synchronization sets of split barriers.
pub(super) struct SplitBarrierRounds {
    /// By thread and execution scope, the threads whose arrivals it waits for, including itself. Bit t is
    /// thread t.
    awaited_threads: Vec<[u32; 2]>,
    /// The transitive closure of that relation.
    linked_threads: Vec<[u32; 2]>,
}

/// Arrivals by thread and execution scope, minus the rounds that every linked thread has completed.
pub(super) type ArrivalCounts = Vec<[u8; 2]>;

impl SplitBarrierRounds {
    pub(super) fn from_test(test: &Test) -> SplitBarrierRounds {
        let count = test.threads.len();
        let id = |thread: usize| ThreadId(thread as u16);
        let members: Vec<[u32; 2]> = (0..count)
            .map(|thread| {
                SCOPES.map(|scope| {
                    let others = (0..count).filter(|other| {
                        *other == thread || test.wait_for_each_other(id(thread), id(*other), scope)
                    });
                    others.fold(0, |all, other| all | 1 << other)
                })
            })
            .collect();
        // Transitive closure by repeated joining: after `count` rounds every chain of waits is
        // included.
        let mut linked = members.clone();
        for _ in 0..count {
            let previous = linked.clone();
            for scopes in &mut linked {
                for (series, own) in scopes.iter_mut().enumerate() {
                    *own = iter_bits(*own).fold(*own, |all, other| all | previous[other][series]);
                }
            }
        }
        SplitBarrierRounds { awaited_threads: members, linked_threads: linked }
    }

    /// Returns the threads whose arrivals a thread waits for.
    pub(super) fn members(&self, thread: usize, half: BarrierHalf) -> impl Iterator<Item = usize> + use<> {
        iter_bits(self.awaited_threads[thread][half.scope_index])
    }

    /// Returns true if all have arrived as often as the thread.
    pub(super) fn have_all_arrived(
        &self,
        arrivals: &ArrivalCounts,
        thread: usize,
        half: BarrierHalf,
    ) -> bool {
        let own = arrivals[thread][half.scope_index];
        self.members(thread, half).all(|other| arrivals[other][half.scope_index] >= own)
    }

    /// Counts an arrival. Only the differences between threads matter, so an unlimited number of rounds is one state.
    pub(super) fn record_arrival(&self, arrivals: &mut ArrivalCounts, thread: usize, half: BarrierHalf) {
        arrivals[thread][half.scope_index] += 1;
        let linked = self.linked_threads[thread][half.scope_index];
        // Completed rounds are subtracted from all linked threads, so the counts stay bounded.
        let completed_rounds =
            iter_bits(linked).map(|other| arrivals[other][half.scope_index]).min().unwrap_or(0);
        for other in iter_bits(linked) {
            arrivals[other][half.scope_index] -= completed_rounds;
        }
    }
}

fn iter_bits(set: u32) -> impl Iterator<Item = usize> + use<> {
    (0..32).filter(move |bit| set & 1 << bit != 0)
}
