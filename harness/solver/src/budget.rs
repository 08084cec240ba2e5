//! Budgets: a step limit and a stop callback for one query. No search reads a clock.

use std::cell::Cell;
use std::fmt;

/// The limit of one query; a query that exceeds it returns a partial answer.
///
/// A step is one search choice, one visited candidate execution, one state of the sequential machine, or one
/// SAT variable or decision. A step takes about a microsecond in a small test and a hundred in the largest.
/// Step limits are deterministic; a stop callback may depend on anything, such as a clock.
#[derive(Clone, Copy)]
pub struct Budget<'b> {
    steps: u64,
    stop: Option<&'b (dyn Fn() -> bool + Sync)>,
}

impl<'b> Budget<'b> {
    /// A budget without limit.
    pub const UNLIMITED: Budget<'static> = Budget::from_steps(u64::MAX);

    /// A budget of at most `steps` steps.
    pub const fn from_steps(steps: u64) -> Budget<'static> {
        Budget { steps, stop: None }
    }

    /// A budget that ends when `stop` returns true. The engine polls it before the first step and then every
    /// few dozen steps.
    pub const fn until(stop: &'b (dyn Fn() -> bool + Sync)) -> Budget<'b> {
        Budget { steps: u64::MAX, stop: Some(stop) }
    }

    /// Returns this budget with steps of which each old one has this number.
    pub fn divided(self, parts: u64) -> Budget<'b> {
        Budget { steps: self.steps.saturating_mul(parts), ..self }
    }

    /// Returns this budget with a lower limit of at most `steps` steps.
    pub fn with_step_limit(self, steps: u64) -> Budget<'b> {
        Budget { steps: self.steps.min(steps), ..self }
    }
}

impl Default for Budget<'_> {
    /// Sufficient for hand-written tests: a few seconds at most.
    fn default() -> Self {
        Budget::from_steps(500_000)
    }
}

impl fmt::Debug for Budget<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Budget");
        debug.field("steps", &self.steps).field("stop", &self.stop.is_some()).finish()
    }
}

/// Steps between two polls of the stop callback.
pub const STOP_POLL_INTERVAL: u64 = 32;

/// Mutable step counter of one query, shared by all of its sub-searches.
#[derive(Debug)]
pub struct BudgetTracker<'b> {
    budget: Budget<'b>,
    /// `u64::MAX` once the stop callback has returned true.
    spent: Cell<u64>,
}

impl<'b> BudgetTracker<'b> {
    /// Starts with the whole budget.
    pub fn new(budget: Budget<'b>) -> BudgetTracker<'b> {
        let tracker = BudgetTracker { budget, spent: Cell::new(0) };
        tracker.poll_stop();
        tracker
    }

    /// Spends steps; returns true if the budget is exhausted.
    pub fn spend(&self, steps: u64) -> bool {
        let before = self.spent.get();
        let after = before.saturating_add(steps);
        self.spent.set(after);
        if before / STOP_POLL_INTERVAL != after / STOP_POLL_INTERVAL {
            self.poll_stop();
        }
        self.is_exhausted()
    }

    /// Returns true if no step is left, or the caller stopped the computation.
    pub fn is_exhausted(&self) -> bool {
        self.spent.get() >= self.budget.steps
    }

    /// Returns the number of steps spent so far.
    pub fn spent_steps(&self) -> u64 {
        self.spent.get()
    }

    /// Returns true if fewer than this number of steps is left.
    pub fn has_less_than(&self, steps: u64) -> bool {
        self.remaining().steps < steps
    }

    /// Runs a search with at most `steps` of the remaining budget, and subtracts the steps that it used.
    pub fn attempt<T>(&self, steps: u64, search: impl FnOnce(&BudgetTracker<'b>) -> T) -> T {
        let attempt = BudgetTracker::new(self.remaining().with_step_limit(steps));
        let result = search(&attempt);
        self.spend(attempt.spent.get());
        result
    }

    /// Returns the part of the budget that is left.
    pub fn remaining(&self) -> Budget<'b> {
        self.budget.with_step_limit(self.budget.steps.saturating_sub(self.spent.get()))
    }

    /// Ends the budget if the caller stopped the computation.
    pub fn poll_stop(&self) {
        if self.budget.stop.is_some_and(|stop| stop()) {
            self.spent.set(u64::MAX);
        }
    }
}
