//! Trials with other numbers: loops have a second round, and extents differ.

use std::collections::BTreeSet;

use super::search::{InputSearch, set_scalar};
use crate::finding::FindingKind;
use crate::grid::{FindingKey, TrialFinding};
use crate::input_place::{AssumedInput, InputKind, InputPlace};

/// Upper bound on the numbers that are changed one at a time.
const MAX_BOUNDS: usize = 4;
/// Extents above this number stay larger than 1.
const MIN_EXTENT: u64 = MAX_BOUNDS as u64;

impl InputSearch<'_> {
    /// Returns a trial with a race that needs two rounds of a loop, if no other trial has it.
    ///
    /// A bound of 1 reaches all code of a loop over tiles, but a tile that is reused too early races with the next one.
    /// Larger bounds may exceed the steps of a trial. A race that an input has part in does not count: a width of 2
    /// makes rows overlap.
    pub(super) fn try_second_rounds(&mut self, others: &[usize]) -> Option<usize> {
        let base = *others.first()?;
        let bounds = self.deciding_numbers(base, &|number| number == 1);
        let options = self.trials[base].0.clone();
        for bound in bounds {
            let mut options = options.clone();
            let Some(input) = options.assumed.get(bound).cloned() else { continue };
            set_scalar(&mut options, &input, 2);
            let Some(index) = self.try_inputs(options) else { continue };
            let trial = &self.trials[index].1;
            let has_new_race = trial.findings.iter().any(|(key, found)| {
                let is_certain = found.inputs.is_empty() && found.control.is_empty();
                let is_known = others.iter().any(|other| self.trials[*other].1.has_finding_like(key));
                key.0 == FindingKind::Race && is_certain && !is_known
            });
            if has_new_race && trial.is_complete && self.is_conventional(index) {
                return Some(index);
            }
        }
        None
    }

    /// Returns a race of the elements of extents that differ, and the inputs that it depends on, if no other trial has it.
    ///
    /// Equal extents hide an index that multiplies by the wrong one. A number that the code does not compare may be a
    /// stride, with which rows overlap unless it is large enough.
    pub(super) fn race_of_unequal_extents(&mut self, others: &[usize]) -> Option<(Vec<usize>, String)> {
        let extents_of = |at: &usize| {
            let extents = self.deciding_numbers(*at, &|number| number > MIN_EXTENT);
            (extents.len() > 1).then_some((*at, extents))
        };
        let (base, mut extents) = others.iter().find_map(extents_of)?;
        for _ in 0..2 {
            let mut options = self.trials[base].0.clone();
            for (decrement, extent) in extents.iter().enumerate() {
                let Some(input) = options.assumed.get(*extent).cloned() else { continue };
                let number = input.describe_value(&options).parse::<u64>().unwrap_or_default();
                set_scalar(&mut options, &input, number.saturating_sub(decrement as u64));
            }
            let trial = self.try_inputs(options)?;
            let (is_conventional, trial) = (self.is_conventional(trial), &self.trials[trial].1);
            let is_known =
                |key: &FindingKey| others.iter().any(|at| self.trials[*at].1.has_finding_like(key));
            let is_of_extents = |found: &TrialFinding| {
                !found.inputs.is_empty() && found.inputs.iter().all(|input| extents.contains(input))
            };
            let mut races = trial
                .findings
                .iter()
                .filter(|(key, found)| key.0 == FindingKind::Race && is_of_extents(found) && !is_known(key));
            if let Some((_, race)) = races.next().filter(|_| trial.is_complete && is_conventional) {
                return Some((race.inputs.clone(), race.message.clone()));
            }
            extents.reverse();
        }
        None
    }

    /// Returns the first integers of a trial that decide branches and that `keep` accepts.
    fn deciding_numbers(&self, base: usize, keep: &dyn Fn(u64) -> bool) -> Vec<usize> {
        let (options, trial) = &self.trials[base];
        let deciding: BTreeSet<usize> = trial.branches.values().flatten().copied().collect();
        let is_kept = |input: &AssumedInput| {
            let is_number = matches!(input.place, InputPlace::Push(..) | InputPlace::Scalar(..));
            let number = input.describe_value(options).parse::<u64>();
            is_number && input.kind == InputKind::Integer && number.is_ok_and(keep)
        };
        deciding
            .into_iter()
            .filter(|at| !self.conventions.inputs.contains(at))
            .filter(|at| options.assumed.get(*at).is_some_and(is_kept))
            .take(MAX_BOUNDS)
            .collect()
    }
}
