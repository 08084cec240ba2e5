//! Budgets are spent, divided and stopped.

use std::sync::atomic::{AtomicU32, Ordering};

use model::Budget;
use model::internals::{BudgetTracker, STOP_POLL_INTERVAL};

#[test]
fn remaining_budget_excludes_spent_steps() {
    let purse = BudgetTracker::new(Budget::from_steps(10));
    assert!(!purse.spend(9) && !purse.is_exhausted());
    assert!(!BudgetTracker::new(purse.remaining()).is_exhausted());
    assert!(purse.spend(1) && purse.is_exhausted());
    assert!(BudgetTracker::new(purse.remaining()).is_exhausted());
    assert!(!BudgetTracker::new(Budget::UNLIMITED).spend(1 << 40));
}

#[test]
fn attempt_spends_what_its_search_spent() {
    let purse = BudgetTracker::new(Budget::from_steps(100));
    assert!(!purse.attempt(10, |attempt| attempt.spend(9)));
    assert!(purse.attempt(10, |attempt| attempt.spend(10)));
    assert!(!purse.is_exhausted());
    assert!(purse.attempt(1_000, |attempt| attempt.spend(81)));
    assert!(purse.is_exhausted());
}

#[test]
fn stop_closure_is_polled_first_and_periodically() {
    let polls = AtomicU32::new(0);
    let stop = || polls.fetch_add(1, Ordering::Relaxed) == 2;
    let purse = BudgetTracker::new(Budget::until(&stop));
    assert_eq!(polls.load(Ordering::Relaxed), 1);
    let taken = (1..).find(|_| purse.spend(1)).unwrap();
    assert_eq!((taken, polls.load(Ordering::Relaxed)), (2 * STOP_POLL_INTERVAL, 3));
    // A stop is permanent, even though the callback would now return false.
    assert!(purse.is_exhausted() && BudgetTracker::new(purse.remaining()).is_exhausted());
}
