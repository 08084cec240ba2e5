//! What an answer may cost: a number of steps, and a closure that may say stop. The engine itself has no clock.

use std::cell::Cell;
use std::fmt;

/// What an answer may cost. Past it the answer is given as far as it goes.
///
/// A step is one choice of a search, one candidate execution that is looked at, one state of the sequential machine, one
/// variable or choice of a refutation. In a small test it takes about a microsecond, in the largest a hundred. The same budget
/// of steps gives the same answer everywhere; what a closure says may depend on anything, such as a clock.
#[derive(Clone, Copy)]
pub struct Budget<'b> {
    steps: u64,
    stop: Option<&'b (dyn Fn() -> bool + Sync)>,
}

impl<'b> Budget<'b> {
    /// Whatever it costs.
    pub const UNLIMITED: Budget<'static> = Budget::steps(u64::MAX);

    /// So many steps.
    pub const fn steps(steps: u64) -> Budget<'static> {
        Budget { steps, stop: None }
    }

    /// Until the closure says stop. It is asked before the first step and then every few dozen.
    pub const fn until(stop: &'b (dyn Fn() -> bool + Sync)) -> Budget<'b> {
        Budget { steps: u64::MAX, stop: Some(stop) }
    }

    /// The same with at most so many steps.
    pub fn at_most(self, steps: u64) -> Budget<'b> {
        Budget { steps: self.steps.min(steps), ..self }
    }
}

impl Default for Budget<'_> {
    /// Enough for what people write: seconds at most.
    fn default() -> Self {
        Budget::steps(500_000)
    }
}

impl fmt::Debug for Budget<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Budget");
        shown.field("steps", &self.steps).field("stop", &self.stop.is_some()).finish()
    }
}

/// Steps between two questions to the closure.
const PERIOD: u64 = 32;

/// What is spent of a budget, for everything that belongs to one answer.
#[derive(Debug)]
pub(crate) struct Purse<'b> {
    budget: Budget<'b>,
    /// All steps once the closure has said stop.
    spent: Cell<u64>,
}

impl<'b> Purse<'b> {
    pub(crate) fn new(budget: Budget<'b>) -> Purse<'b> {
        let purse = Purse { budget, spent: Cell::new(0) };
        purse.ask();
        purse
    }

    /// Spends steps. Whether the budget is used up.
    pub(crate) fn spend(&self, steps: u64) -> bool {
        let before = self.spent.get();
        let after = before.saturating_add(steps);
        self.spent.set(after);
        if before / PERIOD != after / PERIOD {
            self.ask();
        }
        self.is_empty()
    }

    /// Whether the budget is used up.
    pub(crate) fn is_empty(&self) -> bool {
        self.spent.get() >= self.budget.steps
    }

    /// What is left of it.
    pub(crate) fn rest(&self) -> Budget<'b> {
        self.budget.at_most(self.budget.steps.saturating_sub(self.spent.get()))
    }

    fn ask(&self) {
        if self.budget.stop.is_some_and(|stop| stop()) {
            self.spent.set(u64::MAX);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::{Budget, PERIOD, Purse};

    #[test]
    fn steps_are_spent_and_the_rest_is_what_is_left() {
        let purse = Purse::new(Budget::steps(10));
        assert!(!purse.spend(9) && !purse.is_empty());
        assert!(!Purse::new(purse.rest()).is_empty());
        assert!(purse.spend(1) && purse.is_empty());
        assert!(Purse::new(purse.rest()).is_empty());
        assert!(!Purse::new(Budget::UNLIMITED).spend(1 << 40));
    }

    #[test]
    fn a_closure_is_asked_before_the_first_step_and_now_and_then() {
        let asked = AtomicU32::new(0);
        let stop = || asked.fetch_add(1, Ordering::Relaxed) == 2;
        let purse = Purse::new(Budget::until(&stop));
        assert_eq!(asked.load(Ordering::Relaxed), 1);
        let taken = (1..).find(|_| purse.spend(1)).unwrap();
        assert_eq!((taken, asked.load(Ordering::Relaxed)), (2 * PERIOD, 3));
        // What was said stands.
        assert!(purse.is_empty() && Purse::new(purse.rest()).is_empty());
    }
}
