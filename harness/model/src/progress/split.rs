//! Split barriers: the sets of threads that synchronize, and the arrival count of each thread.

use litmus::{Scope, SplitBarrier, SplitHalf, Test, ThreadId};

/// Execution scopes with separate rounds.
const SCOPES: [Scope; 2] = [Scope::Workgroup, Scope::Subgroup];

/// A half of a split barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BarrierHalf {
    pub(super) half: SplitHalf,
    /// Index of the execution scope in [`SCOPES`].
    pub(super) series: usize,
}

impl BarrierHalf {
    pub(super) fn from_barrier(barrier: &SplitBarrier) -> BarrierHalf {
        let series = usize::from(barrier.execution_scope == Scope::Subgroup);
        BarrierHalf { half: barrier.half, series }
    }
}

/// Synchronization sets of split barriers.
pub(super) struct SplitBarrierRounds {
    /// By thread and execution scope, the threads whose arrivals it waits for, including itself. Bit t is
    /// thread t.
    half_members: Vec<[u32; 2]>,
    /// The transitive closure of that relation.
    linked: Vec<[u32; 2]>,
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
            let known = linked.clone();
            for scopes in &mut linked {
                for (series, own) in scopes.iter_mut().enumerate() {
                    *own = iter_bits(*own).fold(*own, |all, other| all | known[other][series]);
                }
            }
        }
        SplitBarrierRounds { half_members: members, linked }
    }

    /// Returns the threads whose arrivals a thread waits for.
    pub(super) fn members(&self, thread: usize, half: BarrierHalf) -> impl Iterator<Item = usize> + use<> {
        iter_bits(self.half_members[thread][half.series])
    }

    /// Returns true if all have arrived as often as the thread.
    pub(super) fn is_full(&self, arrivals: &ArrivalCounts, thread: usize, half: BarrierHalf) -> bool {
        let own = arrivals[thread][half.series];
        self.members(thread, half).all(|other| arrivals[other][half.series] >= own)
    }

    /// Counts an arrival. Only the differences between threads matter, so an unlimited number of rounds is one state.
    pub(super) fn record_arrival(&self, arrivals: &mut ArrivalCounts, thread: usize, half: BarrierHalf) {
        arrivals[thread][half.series] += 1;
        let linked = self.linked[thread][half.series];
        // Completed rounds are subtracted from all linked threads, so the counts stay bounded.
        let behind_all = iter_bits(linked).map(|other| arrivals[other][half.series]).min().unwrap_or(0);
        for other in iter_bits(linked) {
            arrivals[other][half.series] -= behind_all;
        }
    }
}

fn iter_bits(set: u32) -> impl Iterator<Item = usize> + use<> {
    (0..32).filter(move |bit| set & 1 << bit != 0)
}
