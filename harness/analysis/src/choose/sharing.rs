//! Trials in which several invocations enter a block that one enters alone in the others, or not all of a workgroup.

use std::collections::BTreeSet;

use super::search::{InputSearch, MAX_TRIAL_STEPS, set_scalar};
use super::{InputChoice, saturating_product};
use entry_point::input_place::{AssumedInput, InputKind, InputPlace};
use entry_point::{AnalysisOptions, FindingKind};
use walk::{Blocked, FindingKey};

/// Upper bound on the numbers that are changed.
const MAX_BOUNDS: usize = 4;
/// A number of elements for each invocation that leaves some for the next one.
const SMALL_SHARE: u64 = 2;
/// A factor of a count: odd, so that the product fills no workgroup unless another factor does.
const SMALL_FACTOR: u64 = 3;

impl InputChoice {
    /// Returns the code that one invocation alone reaches in every choice, because numbers bound the others.
    pub(crate) fn reached_by_one(&self) -> Vec<Blocked> {
        let alone = self.chosen.first().into_iter().flat_map(|trial| &trial.alone);
        // Counters start as zeros, so another value lets no more invocations pass.
        let mut all = self.never_shared(alone.filter(|alone| !self.decides_by_counters(alone)));
        for alone in &mut all {
            alone.inputs.retain(|input| !self.conventions.inputs.contains(input));
        }
        all
    }

    /// Returns true if counters, flags and locks alone decide whether code is reached.
    pub(crate) fn decides_by_counters(&self, blocked: &Blocked) -> bool {
        blocked.inputs.iter().all(|input| self.conventions.inputs.contains(input))
    }

    /// Returns true if counters, flags and locks start as usual.
    pub(crate) fn has_ordinary_counters(&self, options: &AnalysisOptions) -> bool {
        self.conventions.is_satisfied_by(options)
    }

    /// Returns the code that one invocation alone reaches in every choice, because contents equal a number that no counter
    /// decides.
    pub(crate) fn reached_by_equality(&self) -> Vec<Blocked> {
        let is_counted =
            |alone: &&Blocked| alone.inputs.iter().any(|at| self.conventions.inputs.contains(at));
        let alone = self.chosen.iter().flat_map(|trial| &trial.alone_by_equality);
        self.never_shared(alone.filter(|alone| !is_counted(alone)))
    }

    fn never_shared<'b>(&self, alone: impl Iterator<Item = &'b Blocked>) -> Vec<Blocked> {
        let mut shared: Vec<bool> = Vec::new();
        for trial in &self.chosen {
            shared.resize(trial.is_shared.len(), false);
            shared.iter_mut().zip(&trial.is_shared).for_each(|(known, now)| *known |= now);
        }
        alone.filter(|alone| !alone.is_covered(&shared)).cloned().collect()
    }
}

impl InputSearch<'_> {
    /// Returns the trial in which several invocations enter the most blocks that at most one enters in all the others.
    ///
    /// A count of 1 reaches all code of `if (i >= count) return;`, but lets no two invocations interact. Nor do a count
    /// and a share of each invocation that are equal.
    pub(super) fn find_shared_trial(&mut self, others: &[usize]) -> Option<usize> {
        self.try_small_shares(others);
        let is_shared = |trial_index: usize, block: usize| {
            self.trials[trial_index].1.is_shared.get(block).copied().unwrap_or_default()
        };
        let newly_shared_blocks = |trial_index: usize| {
            let blocks = 0..self.trials[trial_index].1.is_shared.len();
            let more = blocks.filter(|block| {
                is_shared(trial_index, *block) && !others.iter().any(|at| is_shared(*at, *block))
            });
            more.count()
        };
        let is_regular = |at: &usize| self.trials[*at].1.is_complete && self.is_conventional(*at);
        let regular = (0..self.trials.len()).filter(is_regular);
        regular
            .max_by_key(|at| (newly_shared_blocks(*at), self.rank(*at)))
            .filter(|at| newly_shared_blocks(*at) > 0)
    }

    /// Returns a trial with a barrier that some invocations of a workgroup miss, if no other trial has it.
    ///
    /// A count of all invocations lets each pass `if (i >= count) return;`. Here workgroups are filled in part: counts
    /// are one less, or the last position that they are compared with, and buffers end before the last invocation. The
    /// factors of a count are small. One number is changed at a time as well: an offset that shrinks with the count lets
    /// each invocation pass again.
    pub(super) fn try_partial_workgroups(&mut self, base: usize, others: &[usize]) -> Option<usize> {
        let invocations = saturating_product(self.invocation_counts);
        let bytes = (invocations - 1).saturating_mul(4);
        let (options, trial) = self.trials[base].clone();
        let [mut less, mut by_positions, mut lengths, mut factors] = [const { Vec::new() }; 4];
        let mut alone = Vec::new();
        for (index, input) in options.assumed.iter().enumerate() {
            let compared = trial.compared.get(&index);
            let below = |most: u64| compared.and_then(|all| all.range(1..most).next_back().copied());
            let text = input.describe_value(&options);
            match (&input.place, input.kind) {
                (InputPlace::Push(..) | InputPlace::Scalar(..), InputKind::Integer) => {
                    let Ok(number) = text.parse::<u64>() else { continue };
                    // Later turns of a loop compare it with larger numbers than positions.
                    let position = below(invocations);
                    if number > 1 {
                        less.push((index, number - 1));
                        by_positions.push((index, position.unwrap_or(number)));
                    }
                    let is_factor = compared.is_some() && number > SMALL_FACTOR;
                    factors.extend(Some((index, SMALL_FACTOR)).filter(|_| is_factor));
                    // A count that is the distance of two numbers is zero if both are.
                    let last = if number > 1 { below(number - 1) } else { position };
                    let fewer = [Some(number.saturating_sub(1)).filter(|fewer| *fewer > 0), last];
                    let fewer = fewer.into_iter().flatten().filter(|_| compared.is_some());
                    alone.extend(fewer.map(|fewer| vec![(index, fewer)]));
                }
                (InputPlace::Push(..) | InputPlace::Scalar(..), InputKind::Float(32)) => {
                    let number =
                        text.parse::<f32>().ok().filter(|number| *number > 1.0 && compared.is_some());
                    let fewer = number.map(|number| (index, u64::from((number - 1.0).to_bits())));
                    less.extend(fewer);
                    by_positions.extend(fewer);
                }
                (InputPlace::Length(at), _) if bytes > 0 => {
                    let length = options.buffers.get(at).map_or(0, |contents| contents.len() as u64);
                    lengths.extend(Some((index, bytes)).filter(|_| bytes < length));
                }
                _ => {}
            }
        }
        lengths.extend(&less);
        alone.truncate(if self.synchronizes { 2 * MAX_BOUNDS } else { 0 });
        for numbers in [less, by_positions, lengths, factors].into_iter().chain(alone) {
            let trial = self.try_numbers(base, numbers, MAX_TRIAL_STEPS)?;
            let is_new = |key: &FindingKey| {
                key.0 == FindingKind::DivergentBarrier
                    && !others.iter().any(|other| self.trials[*other].1.findings.contains_key(key))
            };
            if self.trials[trial].1.findings.keys().any(is_new) {
                return Some(trial);
            }
        }
        None
    }

    /// Tries small numbers where numbers decide branches, if one invocation alone enters a block in all trials.
    fn try_small_shares(&mut self, others: &[usize]) {
        let Some(base) = others.first().copied() else { return };
        let trial = &self.trials[base].1;
        let is_alone = |block: &usize| {
            trial.reached[*block] && !self.trials.iter().any(|(_, trial)| trial.is_shared[*block])
        };
        if !trial.is_complete || !(0..trial.reached.len()).any(|block| is_alone(&block)) {
            return;
        }
        let deciding: BTreeSet<usize> = trial.branches.values().flatten().copied().collect();
        let options = self.trials[base].0.clone();
        let is_large = |input: &&AssumedInput| {
            let is_number = matches!(input.place, InputPlace::Push(..) | InputPlace::Scalar(..));
            let number = input.describe_value(&options).parse::<u64>();
            is_number && input.kind == InputKind::Integer && number.is_ok_and(|number| number > SMALL_SHARE)
        };
        let inputs = deciding.iter().filter_map(|at| options.assumed.get(*at)).filter(is_large);
        for input in inputs.take(MAX_BOUNDS) {
            let mut options = options.clone();
            set_scalar(&mut options, input, SMALL_SHARE);
            self.try_inputs(options);
        }
    }
}
