//! Choices of a step: the values of undefined initial reads, and the members that complete a quorum.

use std::cell::{Cell, RefCell};

use solver::BudgetTracker;

/// The choices of a step, enumerated like an odometer.
#[derive(Debug, Default)]
pub(super) struct StepChoices {
    /// The chosen index and the number of choices.
    chosen: RefCell<Vec<(usize, usize)>>,
    /// Number of choices requested in this run.
    requested: Cell<usize>,
}

impl StepChoices {
    /// Runs `act` once for every sequence of choices; returns true if all sequences were tried.
    pub(super) fn for_each_choice(&self, tracker: &BudgetTracker<'_>, mut act: impl FnMut()) -> bool {
        self.chosen.borrow_mut().clear();
        loop {
            self.requested.set(0);
            act();
            let mut taken = self.chosen.borrow_mut();
            // The last increment may have led to a run with fewer choices.
            taken.truncate(self.requested.get());
            while taken.last().is_some_and(|(chosen, count)| chosen + 1 >= *count) {
                taken.pop();
            }
            match taken.last_mut() {
                None => return true,
                Some((chosen, _)) => *chosen += 1,
            }
            if tracker.spend(1) {
                return false;
            }
        }
    }

    /// Chooses an index below `count`.
    pub(super) fn choose_index(&self, count: usize) -> usize {
        let mut taken = self.chosen.borrow_mut();
        let position = self.requested.replace(self.requested.get() + 1);
        if position == taken.len() {
            taken.push((0, count));
        }
        taken.get(position).map_or(0, |(chosen, _)| *chosen)
    }
}
