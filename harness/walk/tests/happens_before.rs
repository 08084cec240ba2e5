//! Clocks of barriers.

use walk::happens_before::{Epoch, HappensBeforeClock, JoinCache};

/// Regression: equal barrier epochs of two workgroups were treated as one clock.
#[test]
fn barrier_epochs_are_compared_only_within_one_workgroup() {
    let mut after_one = HappensBeforeClock::default();
    after_one.barrier_epoch = 1;
    let mut mine = after_one.clone();
    JoinCache::default().join_cached(&mut mine, 0, &after_one, 1);
    let theirs = Epoch { invocation: 9, workgroup: 1, time: 1, barrier_epoch: 0, subgroup_start: 8 };
    assert!(mine.includes_epoch(0, &theirs) && !after_one.includes_epoch(0, &theirs));
}
