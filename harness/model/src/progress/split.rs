//! Split barriers: who waits for whose arrivals, and how far each thread has come.

use litmus::{Scope, SplitBarrier, SplitHalf, Test, ThreadId};

/// The execution scopes that have rounds of their own.
const SCOPES: [Scope; 2] = [Scope::Workgroup, Scope::Subgroup];

/// A half of a split barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Half {
    pub(super) half: SplitHalf,
    /// Which execution scope, as a number.
    pub(super) series: usize,
}

impl Half {
    pub(super) fn of(barrier: &SplitBarrier) -> Half {
        let series = usize::from(barrier.execution_scope == Scope::Subgroup);
        Half { half: barrier.half, series }
    }
}

/// Who waits for whom.
pub(super) struct Rounds {
    /// By thread and execution scope those whose arrivals it waits for, itself included: bit t for thread t.
    members: Vec<[u32; 2]>,
    /// The same with those that they wait for in turn, and so on.
    linked: Vec<[u32; 2]>,
}

/// By thread and execution scope the arrivals so far, less those that all who wait for each other have behind them.
pub(super) type Arrivals = Vec<[u8; 2]>;

impl Rounds {
    pub(super) fn of(test: &Test) -> Rounds {
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
        let mut linked = members.clone();
        for _ in 0..count {
            let known = linked.clone();
            for scopes in &mut linked {
                for (series, own) in scopes.iter_mut().enumerate() {
                    *own = bits(*own).fold(*own, |all, other| all | known[other][series]);
                }
            }
        }
        Rounds { members, linked }
    }

    /// Those whose arrivals a thread waits for.
    pub(super) fn members(&self, thread: usize, half: Half) -> impl Iterator<Item = usize> + use<> {
        bits(self.members[thread][half.series])
    }

    /// Whether all have arrived as often as the thread.
    pub(super) fn is_full(&self, arrivals: &Arrivals, thread: usize, half: Half) -> bool {
        let own = arrivals[thread][half.series];
        self.members(thread, half).all(|other| arrivals[other][half.series] >= own)
    }

    /// Counts an arrival. Only how far threads are ahead of each other matters, so that rounds without end are one state.
    pub(super) fn arrive(&self, arrivals: &mut Arrivals, thread: usize, half: Half) {
        arrivals[thread][half.series] += 1;
        let linked = self.linked[thread][half.series];
        let behind_all = bits(linked).map(|other| arrivals[other][half.series]).min().unwrap_or(0);
        for other in bits(linked) {
            arrivals[other][half.series] -= behind_all;
        }
    }
}

fn bits(set: u32) -> impl Iterator<Item = usize> + use<> {
    (0..32).filter(move |bit| set & 1 << bit != 0)
}
