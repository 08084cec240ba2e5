//! The values of undefined initial reads.

use std::cell::{Cell, RefCell};

use crate::budget::BudgetTracker;

/// The values of undefined initial reads, enumerated like an odometer.
#[derive(Debug, Default)]
pub(super) struct Choices {
    /// The chosen index and the number of choices.
    taken: RefCell<Vec<(usize, usize)>>,
    /// Number of choices requested in this run.
    asked: Cell<usize>,
}

impl Choices {
    /// Runs `act` once for every sequence of choices; returns true if all sequences were tried.
    pub(super) fn each(&self, purse: &BudgetTracker<'_>, mut act: impl FnMut()) -> bool {
        self.taken.borrow_mut().clear();
        loop {
            self.asked.set(0);
            act();
            let mut taken = self.taken.borrow_mut();
            // The last increment may have led to a run with fewer choices.
            taken.truncate(self.asked.get());
            while taken.last().is_some_and(|(chosen, count)| chosen + 1 >= *count) {
                taken.pop();
            }
            match taken.last_mut() {
                None => return true,
                Some((chosen, _)) => *chosen += 1,
            }
            if purse.spend(1) {
                return false;
            }
        }
    }

    /// Chooses an index below `count`.
    pub(super) fn one_of(&self, count: usize) -> usize {
        let mut taken = self.taken.borrow_mut();
        let at = self.asked.replace(self.asked.get() + 1);
        if at == taken.len() {
            taken.push((0, count));
        }
        taken.get(at).map_or(0, |(chosen, _)| *chosen)
    }
}
