//! Trials with other values of the inputs that findings depend on.

use std::collections::{BTreeMap, BTreeSet};

use super::conventions::{has_degenerate_number, is_beyond_positions};
use super::search::{
    Candidate, FIXED_POINT_ONE, InputSearch, MAX_TRIAL_STEPS, reaches_new_block, set_scalar,
};
use super::{is_declared, saturating_product};
use crate::sizes::with_larger_sizes;
use entry_point::input_place::InputKind;
use entry_point::{AnalysisOptions, FindingKind};
use walk::FindingKey;

/// Upper bound on the integers with which findings are compared.
const MAX_USUAL: u64 = 1 << 20;
/// Upper bound on the times that sizes grow with strides: what is read of them may lead to further accesses.
const MAX_SIZE_ROUNDS: usize = 2;

impl InputSearch<'_> {
    /// Varies the inputs of suspicious findings until fewer are left.
    pub(super) fn settle_findings(&mut self, mut primary: usize) -> usize {
        let mut tried = BTreeSet::new();
        loop {
            let suspicious: Vec<usize> = {
                let trial = &self.trials[primary].1;
                let direct = trial.suspicious_findings().flat_map(|found| found.inputs.iter().copied());
                let has_control = trial.findings.values().any(|found| !found.control.is_empty());
                // A finding that depends on control flow may depend on each compared input.
                let by_branches = trial.compared.keys().copied().filter(|_| has_control);
                direct.chain(by_branches).collect()
            };
            // A race with the declared specialization constants is one of the shader as written.
            let is_declared = |input: &usize| is_declared(&self.trials[primary].0, *input);
            let untried = suspicious.into_iter().filter(|input| !tried.contains(&(primary, *input)));
            let untried = untried.filter(|input| !is_declared(input));
            let next = untried.min_by_key(|input| !self.is_contents(*input));
            let Some(input) = next.filter(|_| !self.is_budget_spent()) else { return primary };
            tried.insert((primary, input));
            let numbers = self.trials[primary].1.compared.get(&input).cloned().unwrap_or_default();
            // A number that wraps around, such as a size of -1, has other findings.
            let is_usual = |candidate: &Candidate| match candidate {
                Candidate::Bits(bits) => {
                    *bits <= MAX_USUAL || *bits == FIXED_POINT_ONE || !self.is_integer(input)
                }
                Candidate::Fill(_) => true,
            };
            let candidates = self.candidates(primary, input, &numbers);
            let usual: Vec<Candidate> = candidates.into_iter().filter(is_usual).collect();
            for candidate in usual {
                let options = self.with_candidate(primary, input, &candidate);
                let Some(trial) = self.try_inputs(options) else { break };
                if self.rank(trial) > self.rank(primary) && !self.hides_race(primary, input, trial) {
                    primary = trial;
                    break;
                }
            }
        }
    }

    /// Tries numbers that differ where the addresses of races depend on numbers that bound nothing.
    ///
    /// An application gives strides of elements, rows and planes with which these do not overlap. Equal ones, or ones that
    /// are changed one at a time, leave a race.
    pub(super) fn try_growing_strides(&mut self, base: usize) {
        let (mut options, mut trial) = self.trials[base].clone();
        // Accesses beyond a buffer race with none: the walk of the choice grows the buffers.
        if trial.drops_accesses() {
            let Some(at) = self.try_with_sizes(options) else { return };
            (options, trial) = self.trials[at].clone();
        }
        let trial_inputs = options.assumed.clone();
        let races = trial.findings.iter().filter(|(key, _)| key.0 == FindingKind::Race);
        let mut races: BTreeMap<FindingKey, BTreeSet<usize>> =
            races.map(|(key, found)| (key.clone(), found.inputs.iter().copied().collect())).collect();
        for inputs in races.values_mut() {
            inputs.retain(|input| {
                self.is_integer(*input)
                    && !trial.compared.contains_key(input)
                    && !is_declared(&options, *input)
            });
        }
        races.retain(|_, inputs| !inputs.is_empty());
        let count = self.invocation_counts.iter().copied().max().unwrap_or(1);
        // From bytes of elements to rows, from elements of rows to planes, and for positions in any order. Strides follow
        // offsets and extents. Masks keep all positions.
        let (rows, elements, positions) = ((4 * count, 4), (16, 4), (4, count));
        let masks = (count.next_power_of_two() - 1, 1);
        let of_last = [4, 3].into_iter().flat_map(|most| [(rows, most, false), (elements, most, false)]);
        let of_all = [
            (rows, false),
            (elements, false),
            (positions, false),
            (masks, false),
            (rows, true),
            (elements, true),
            (positions, true),
        ];
        let of_all = of_all.into_iter().map(|(growth, is_falling)| (growth, usize::MAX, is_falling));
        for ((first, factor), most, is_falling) in of_all.chain(of_last) {
            let mut strides: Vec<usize> = races.values().flatten().copied().collect();
            strides.sort_unstable();
            strides.dedup();
            if strides.is_empty() || most != usize::MAX && strides.len() <= most {
                continue;
            }
            strides.drain(..strides.len().saturating_sub(most));
            if is_falling {
                strides.reverse();
            }
            let mut options = options.clone();
            let mut stride: u64 = first;
            for input in strides.into_iter().filter_map(|input| trial_inputs.get(input)) {
                set_scalar(&mut options, input, stride);
                stride = stride.saturating_mul(factor);
            }
            let Some(at) = self.try_with_sizes(options) else { return };
            let other = &self.trials[at].1;
            races
                .retain(|key, _| other.has_finding_like(key) || other.drops_accesses() || !other.is_complete);
        }
    }

    /// Walks with inputs, and with sizes of buffers and images that hold all accesses; returns the index of the trial.
    fn try_with_sizes(&mut self, mut options: AnalysisOptions) -> Option<usize> {
        let mut rounds = 0..MAX_SIZE_ROUNDS;
        loop {
            if self.is_past_deadline() {
                return None;
            }
            let at = self.try_with_steps(options, MAX_TRIAL_STEPS)?;
            let (known, trial) = &self.trials[at];
            match rounds.next().and_then(|_| with_larger_sizes(known, &trial.exceeded)) {
                Some(larger) => options = larger,
                None => return Some(at),
            }
        }
    }

    /// Sets a number that is compared with a counter to the number of workgroups, or of invocations, if that reaches as
    /// much.
    ///
    /// The last workgroup knows by such a number that it is the last one.
    pub(super) fn match_counts_to_grid(&mut self, mut primary: usize) -> usize {
        let mut synchronizing = self.trials[primary].1.synchronizing.clone();
        synchronizing.retain(|input| self.is_integer(*input) && !self.conventions.inputs.contains(input));
        for input in synchronizing {
            let grid = self.trials[primary].0.grid.unwrap_or([1; 3]);
            let workgroups = saturating_product(grid.map(u64::from));
            for count in [workgroups, workgroups.saturating_mul(self.workgroup_size)] {
                let options = self.with_candidate(primary, input, &Candidate::Bits(count));
                let Some(trial) = self.try_inputs(options) else { break };
                let (found, known) = (&self.trials[trial].1, &self.trials[primary].1);
                if found.is_complete && !reaches_new_block(&known.reached, &found.reached) {
                    primary = trial;
                    break;
                }
            }
        }
        primary
    }

    /// Returns true if a trial lacks races of another one because an input is 0 or 1, or because fewer than two
    /// invocations reach their code.
    fn hides_race(&self, base: usize, input: usize, trial: usize) -> bool {
        let (options, found) = &self.trials[base];
        let (other_options, other) = &self.trials[trial];
        let races = found.findings.iter().filter(|(key, _)| key.0 == FindingKind::Race);
        let mut of_input = races.filter(|(_, race)| race.inputs.contains(&input)).peekable();
        of_input.peek().is_some()
            && (has_degenerate_number(&[input], options, other_options)
                || is_beyond_positions(&[input], other_options, other))
            || of_input.any(|(key, race)| {
                // A count that lets fewer invocations pass refutes nothing.
                let is_smaller = other.fewest_entries(&race.blocks) < found.fewest_entries(&race.blocks);
                !other.has_finding_like(key) && (is_smaller || !other.covers(key.0, &race.blocks))
            })
    }

    fn is_integer(&self, input: usize) -> bool {
        let assumed = self.trials.first().and_then(|(options, _)| options.assumed.get(input));
        assumed.is_some_and(|input| input.kind == InputKind::Integer)
    }
}
