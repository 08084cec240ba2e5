//! Trials with other values of the inputs that findings depend on.

use std::collections::BTreeSet;

use super::conventions::has_degenerate_number;
use super::search::{Candidate, InputSearch};
use crate::finding::FindingKind;
use crate::input_place::InputKind;

/// Upper bound on the integers with which findings are compared.
const MAX_USUAL: u64 = 1 << 20;

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
            let untried = suspicious.into_iter().filter(|input| !tried.contains(&(primary, *input)));
            let next = untried.min_by_key(|input| !self.is_contents(*input));
            let Some(input) = next.filter(|_| !self.is_budget_spent()) else { return primary };
            tried.insert((primary, input));
            let numbers = self.trials[primary].1.compared.get(&input).cloned().unwrap_or_default();
            // A number that wraps around, such as a size of -1, has other findings.
            let is_usual = |candidate: &Candidate| match candidate {
                Candidate::Bits(bits) => *bits <= MAX_USUAL || !self.is_integer(input),
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

    /// Returns true if a trial lacks races of another one because an input is 0 or 1, or because fewer than two
    /// invocations reach their code.
    fn hides_race(&self, base: usize, input: usize, trial: usize) -> bool {
        let (options, found) = &self.trials[base];
        let (other_options, other) = &self.trials[trial];
        let races = found.findings.iter().filter(|(key, _)| key.0 == FindingKind::Race);
        let mut of_input = races.filter(|(_, race)| race.inputs.contains(&input)).peekable();
        of_input.peek().is_some() && has_degenerate_number(&[input], options, other_options)
            || of_input.any(|(key, race)| !other.has_finding_like(key) && !other.covers(key.0, &race.blocks))
    }

    fn is_integer(&self, input: usize) -> bool {
        let assumed = self.trials.first().and_then(|(options, _)| options.assumed.get(input));
        assumed.is_some_and(|input| input.kind == InputKind::Integer)
    }
}
