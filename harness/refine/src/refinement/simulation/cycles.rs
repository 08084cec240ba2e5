//! Endless loops of AFTER that BEFORE does not have: cycles of states with silent steps only.
//!
//! A silent step has no matched event, or postpones an atomic access.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::Hash;

/// The steps between the states of a proof.
pub(super) struct CycleCheck<Key> {
    numbers: HashMap<Key, usize>,
    /// The silent steps from each state.
    silent: BTreeMap<usize, BTreeSet<usize>>,
    /// The states of the current path: number of matched events, and true if an atomic access is postponed.
    path: Vec<(usize, usize, bool)>,
}

impl<Key> Default for CycleCheck<Key> {
    fn default() -> CycleCheck<Key> {
        CycleCheck { numbers: HashMap::new(), silent: BTreeMap::new(), path: Vec::new() }
    }
}

impl<Key: Clone + Eq + Hash> CycleCheck<Key> {
    /// Notes the step from the last state of the path to this one.
    pub fn enter(&mut self, key: &Key, matched: usize, postpones: bool) {
        let next = self.numbers.len();
        let number = *self.numbers.entry(key.clone()).or_insert(next);
        if let Some((last, before, postponed)) = self.path.last()
            && (*before == matched || *postponed && postpones)
        {
            self.silent.entry(*last).or_default().insert(number);
        }
        self.path.push((number, matched, postpones));
    }

    /// Removes the last state of the path.
    pub fn leave(&mut self) {
        self.path.pop();
    }

    /// Returns true if some cycle has only silent steps.
    pub fn has_silent_cycle(&mut self) -> bool {
        // A state without silent steps to the remaining states is on no such cycle.
        loop {
            let known: BTreeSet<usize> = self.silent.keys().copied().collect();
            self.silent.values_mut().for_each(|next| next.retain(|state| known.contains(state)));
            let count = self.silent.len();
            self.silent.retain(|_, next| !next.is_empty());
            if self.silent.len() == count {
                return count > 0;
            }
        }
    }
}
