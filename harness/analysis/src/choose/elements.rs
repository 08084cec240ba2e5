//! Trials with other elements of buffers than the search has chosen.

use std::collections::BTreeSet;

use super::search::{Candidate, InputSearch, scalar_bits, set_contents};
use entry_point::AnalysisOptions;
use entry_point::input_place::{AssumedInput, InputKind, InputPlace};
use walk::FindingKey;

/// Fill words whose elements differ, for floats and for other numbers, and scalars as a share of the invocations.
const DISTINCT_VALUES: [(&str, &str, u64); 2] = [("floats", "random", 2), ("iota", "iota", 5)];

impl InputSearch<'_> {
    /// Tries contents in which elements of integer contents are equal, as keys and indices may be; returns the first trial
    /// with a race of keyed atomics that no other trial has.
    ///
    /// Adjacent elements are in order, as offsets are. But invocations that take the minimum of a place one after the other
    /// pass only if their numbers fall.
    pub(super) fn try_coinciding_contents(&mut self, base: usize, others: &[usize]) -> Option<usize> {
        let words =
            ["pairs", "small"].into_iter().take(if self.conventions.minima.is_empty() { 1 } else { 2 });
        let mut shown = None;
        for word in words {
            let options = self.with_integer_contents(base, word)?;
            let Some(at) = self.try_inputs(options) else { break };
            let trial = &self.trials[at].1;
            let is_known =
                |key: &FindingKey| others.iter().any(|at| self.trials[*at].1.has_finding_like(key));
            let has_new_race = trial.findings.iter().any(|(key, found)| found.is_keyed && !is_known(key));
            if has_new_race && trial.is_complete && self.is_conventional(at) {
                shown = shown.or(Some(at));
            }
        }
        shown
    }

    fn with_integer_contents(&self, base: usize, word: &str) -> Option<AnalysisOptions> {
        let mut options = self.trials[base].0.clone();
        let is_integer = |input: &&AssumedInput| input.kind == InputKind::Integer;
        let mut changed = false;
        for input in options.assumed.clone().iter().filter(is_integer) {
            if let InputPlace::Contents(at) = input.place
                && !self.atomics.contains(&at)
            {
                set_contents(&mut options, at, word);
                changed = true;
            }
        }
        changed.then_some(options)
    }

    /// Returns a trial in which the elements that decide branches differ, if invocations race only then.
    ///
    /// Equal elements let a sorting network reach all code without an exchange. A race at places that inputs decide
    /// does not count, nor do writes alone, as the elements may be a permutation or mark one invocation.
    pub(super) fn try_distinct_elements(&mut self, others: &[usize]) -> Option<usize> {
        let base = *others.first()?;
        let (options, trial) = &self.trials[base];
        let branch_inputs: BTreeSet<usize> = trial.branches.values().flatten().copied().collect();
        let decides_branch = |at: &usize| branch_inputs.contains(at) && !self.conventions.inputs.contains(at);
        // Where the language defines the collision of equal stores, equal elements hide a race.
        let counts_stores = self.module.defines_collisions();
        let is_element = |input: &AssumedInput| match input.place {
            InputPlace::Contents(at) => !self.atomics.contains(&at),
            InputPlace::Image(_) => true,
            InputPlace::Push(..) | InputPlace::Scalar(..) if counts_stores && input.is_number() => true,
            _ => input.kind == InputKind::Address,
        };
        let assumed = options.assumed.iter().enumerate();
        let changed: Vec<AssumedInput> = assumed
            .filter(|(at, input)| (counts_stores || decides_branch(at)) && is_element(input))
            .map(|(_, input)| input.clone())
            .collect();
        if changed.is_empty() {
            return None;
        }
        let (options, suspicious) = (options.clone(), trial.suspicious_findings().count());
        let invocations = self.invocation_counts.iter().copied().max().unwrap_or(1);
        for (floats, numbers, share) in DISTINCT_VALUES {
            let mut options = options.clone();
            for input in &changed {
                let is_float =
                    matches!(input.kind, InputKind::Float(_)) || matches!(input.place, InputPlace::Image(_));
                let number = invocations / share;
                let candidate = match input.place {
                    InputPlace::Push(..) | InputPlace::Scalar(..) if input.is_number() => {
                        Candidate::Bits(scalar_bits(input.kind, (number, number as f32)))
                    }
                    _ => Candidate::Fill(if is_float { floats } else { numbers }.to_owned()),
                };
                self.set_input(&mut options, input, &candidate);
            }
            let Some(at) = self.try_inputs(options) else { continue };
            let trial = &self.trials[at].1;
            let is_known =
                |key: &FindingKey| others.iter().any(|at| self.trials[*at].1.has_finding_like(key));
            let has_new_race = trial.findings.iter().any(|(key, found)| {
                let is_certain = found.inputs.is_empty() && found.control.is_empty();
                key.0.is_race() && (found.has_read || counts_stores) && is_certain && !is_known(key)
            });
            let is_regular = trial.is_complete && self.is_conventional(at);
            if has_new_race && is_regular && trial.suspicious_findings().count() <= suspicious {
                return Some(at);
            }
        }
        None
    }
}
