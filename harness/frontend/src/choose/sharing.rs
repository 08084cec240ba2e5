//! Trials in which several invocations enter a block that one enters alone in the others.

use std::collections::BTreeSet;

use super::search::{InputSearch, set_scalar};
use crate::input_place::{AssumedInput, InputKind, InputPlace};

/// Upper bound on the numbers that are changed.
const MAX_BOUNDS: usize = 4;
/// A number of elements for each invocation that leaves some for the next one.
const SMALL_SHARE: u64 = 2;

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
