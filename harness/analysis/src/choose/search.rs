//! The search for inputs: trials with one number for all scalars, then with one input changed at a time.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rspirv::spirv::{Op, StorageClass};
use spirv_reader::{SpirvModule, SpirvType};

use super::conventions::Conventions;
use super::{InputChoice, saturating_product};
use crate::counters::CounterUse;
use entry_point::assumed::separate_scalars;
use entry_point::input_place::{AssumedInput, InputKind, InputPlace, SetBinding};
use entry_point::inputs::{AddressInput, DEFAULT_BYTES, ImageInput, TexelInput, default_image, fill_bytes};
use entry_point::{AnalysisOptions, FindingCause, FindingKind};
use walk::{FindingKey, GridFinding, Trial, run_trial};

/// Upper bounds on the trials, on the steps of one trial and of all.
const MAX_TRIALS: usize = 120;
pub(super) const MAX_TRIAL_STEPS: u64 = 3_000_000;
const MAX_STEPS: u64 = 100_000_000;
/// Upper bound on the choices, each of which reaches further blocks.
const MAX_CHOICES: usize = 6;
/// Trials in which accesses through integers show that these are addresses.
const MAX_ADDRESS_TRIALS: usize = 4;
/// The bytes of buffers where longer ones exceed the steps of a trial.
const SHORT_BUFFER_BYTES: usize = 2048;
/// Trials in which floats differ from each other in value and sign.
const FLOAT_TRIALS: u64 = 3;
/// Their values.
const FLOAT_VALUES: [f32; 8] = [1.0, -1.0, 0.5, -0.5, 10.0, -10.0, 1000.0, -1000.0];
/// One as a number of 64 bits, half of them after the point.
pub(super) const FIXED_POINT_ONE: u64 = 1 << 32;
/// Upper bound on the candidates for one input.
const MAX_CANDIDATES: usize = 14;

/// A search for one entry point.
pub(super) struct InputSearch<'m> {
    pub(super) module: &'m SpirvModule,
    /// Buffers with counters, flags or locks, which start as zeros.
    pub(super) atomics: BTreeSet<SetBinding>,
    /// True if the code accesses memory at an address atomically: all such memory starts as zeros.
    pub(super) has_atomic_pointees: bool,
    /// The inputs that start as zeros.
    pub(super) conventions: Conventions,
    /// Invocations by axis.
    pub(super) invocation_counts: [u64; 3],
    /// Invocations per workgroup.
    pub(super) workgroup_size: u64,
    /// True if the code has control barriers or subgroup operations.
    pub(super) synchronizes: bool,
    /// True for stages without workgroups: a trial has one invocation, a draw several.
    pub(super) is_single: bool,
    pub(super) trials: Vec<(AnalysisOptions, Trial)>,
    pub(super) steps: u64,
}

fn is_settled(trial: &Trial) -> bool {
    let is_clear = trial.blocked.is_empty() && trial.alone.is_empty();
    trial.is_complete && is_clear && trial.suspicious_findings().next().is_none()
}

impl InputSearch<'_> {
    /// Returns the trials that reach the most, the primary one first, or none if the first has an error.
    pub(super) fn run(&mut self, mut start: AnalysisOptions) -> Option<Vec<usize>> {
        self.find_integer_addresses(&mut start);
        let mut best: Option<usize> = None;
        let count = self.invocation_counts.iter().copied().max().unwrap_or(1);
        let total_invocations = saturating_product(self.invocation_counts);
        // One number for all scalars, then contents of buffers as well.
        for (number, float, contents) in [
            (0, 0.0, false),
            (count, 1.0, false),
            (count, 1.0, true),
            // Sizes may be floats.
            (count, count as f32, true),
            (1, 1.0, true),
            (self.workgroup_size, 1.0, true),
            (total_invocations, 1.0, true),
            (4, 1.0, true),
            (count, -1.0, true),
        ] {
            let options = self.uniform_choice(&start, (number, float), contents);
            let Some(trial) = self.try_inputs(options) else { continue };
            if !self.trials[trial].1.is_complete {
                shorten_buffers(&mut start);
            }
            if self.has_floats(trial)
                && float != 1.0
                && best.is_some_and(|best| self.reaches_as_many(best, trial))
            {
                continue;
            }
            // Ones hide races between elements at a distance, and a count of one lets few invocations pass.
            let reaches_more_code = |best: usize| self.trials[trial].1.effects > self.trials[best].1.effects;
            let is_better =
                |best: usize| self.rank(trial) > self.rank(best) && (number != 1 || reaches_more_code(best));
            if best.is_none_or(is_better) {
                best = Some(trial);
            }
            // A distance or a count of zero lets no invocations meet.
            let is_zero = |best: usize| number == 0 && self.has_influential_number(best);
            if best.is_some_and(|best| is_settled(&self.trials[best].1) && !is_zero(best)) {
                break;
            }
        }
        // Comparisons of floats, such as those of a frustum test, are rarely met by one number for all.
        for seed in 1..=FLOAT_TRIALS {
            let Some(base) = best.filter(|best| !is_settled(&self.trials[*best].1)) else { break };
            let Some(options) = self.with_mixed_floats(base, seed) else { break };
            let Some(trial) = self.try_inputs(options) else { continue };
            if self.rank(trial) > self.rank(base) {
                best = Some(trial);
            }
        }
        let mut primary = self.retry_with_more_steps(best?);
        let mut others: Vec<usize> = Vec::new();
        let mut covered = self.trials[primary].1.reached.clone();
        for (at, (_, trial)) in self.trials.iter().enumerate() {
            if trial.is_complete
                && reaches_new_block(&trial.reached, &covered)
                && others.len() + 1 < MAX_CHOICES
            {
                covered.iter_mut().zip(&trial.reached).for_each(|(known, now)| *known |= now);
                others.push(at);
            }
        }
        primary = self.reach_blocked(primary, &mut others, covered);
        primary = self.settle_findings(primary);
        primary = self.match_counts_to_grid(primary);
        for other in &mut others {
            *other = self.settle_findings(*other);
        }
        others.retain(|other| {
            reaches_new_block(&self.trials[*other].1.reached, &self.trials[primary].1.reached)
        });
        let mut all: Vec<usize> = std::iter::once(primary).chain(others).collect();
        let settled = all.len();
        all.extend(self.find_shared_trial(&all).filter(|_| all.len() < MAX_CHOICES));
        // The first one may have zeros only.
        for base in all.clone().into_iter().take(2) {
            all.extend(self.try_partial_workgroups(base, &all).filter(|_| all.len() < MAX_CHOICES));
            all.extend(self.try_second_rounds(base, &all).filter(|_| all.len() < MAX_CHOICES));
            all.extend(self.try_covered_sizes(base, &all).filter(|_| all.len() < MAX_CHOICES));
        }
        all.extend(self.try_distinct_elements(&all).filter(|_| all.len() < MAX_CHOICES));
        for base in all.clone() {
            let shown = self.try_coinciding_contents(base, &all);
            all.extend(shown.filter(|_| all.len() < MAX_CHOICES));
        }
        // Findings of the choices that came last are varied as well, so that it is known what they depend on.
        for at in all.iter().skip(settled) {
            self.settle_findings(*at);
        }
        Some(all)
    }

    /// Changes one input at a time to reach blocks that are not covered; returns the primary trial and adds others.
    fn reach_blocked(
        &mut self,
        mut primary: usize,
        others: &mut Vec<usize>,
        mut covered: Vec<bool>,
    ) -> usize {
        let mut tried: BTreeSet<(usize, String)> = BTreeSet::new();
        let mut shared_trial: Option<Option<usize>> = None;
        loop {
            let mut next = self.next_blocked(primary, others, &covered, &tried);
            if next.is_none() {
                // A count that one invocation alone passes reaches more, but lets no invocation wait for another.
                let all: Vec<usize> = std::iter::once(primary).chain(others.iter().copied()).collect();
                let base = *shared_trial.get_or_insert_with(|| self.find_shared_trial(&all));
                next = base.and_then(|base| self.next_blocked(base, &[], &covered, &tried));
            }
            let Some((base, input, numbers)) = next else { break };
            for candidate in self.candidates(base, input, &numbers) {
                let options = self.with_candidate(base, input, &candidate);
                if !tried.insert((input, format!("{base} {candidate:?}"))) {
                    continue;
                }
                let Some(trial) = self.try_inputs(options) else { continue };
                let reached = &self.trials[trial].1.reached;
                if !self.trials[trial].1.is_complete || !reaches_new_block(reached, &covered) {
                    continue;
                }
                // A trial that reaches all that the primary one reaches replaces it, but zeros in
                // locks and counters are not given up for coverage.
                let is_superset = !reaches_new_block(&self.trials[primary].1.reached, reached);
                covered.iter_mut().zip(reached).for_each(|(known, now)| *known |= now);
                if is_superset && (self.is_conventional(trial) || !self.is_conventional(primary)) {
                    primary = trial;
                } else if others.len() + 1 < MAX_CHOICES {
                    others.push(trial);
                }
                break;
            }
            tried.insert((input, format!("{base} done")));
            if self.is_budget_spent() {
                break;
            }
        }
        primary
    }

    /// Returns true if a trial has floats among its inputs.
    fn has_floats(&self, trial: usize) -> bool {
        self.trials[trial].0.assumed.iter().any(|input| input.kind == InputKind::Float(32))
    }

    /// Returns true if the code that several invocations reach in `trial` is no larger than in `best`.
    fn reaches_as_many(&self, best: usize, trial: usize) -> bool {
        let [best, trial] = [best, trial].map(|at| &self.trials[at].1);
        (best.coverage(), best.repeated_blocks().0) >= (trial.coverage(), trial.repeated_blocks().0)
    }

    /// Returns true if a number that no convention decides has influence on a trial.
    pub(super) fn has_influential_number(&self, trial: usize) -> bool {
        let (options, trial) = &self.trials[trial];
        let is_number = |at: &usize| options.assumed.get(*at).is_some_and(AssumedInput::is_number);
        trial.influential.iter().any(|at| is_number(at) && !self.conventions.inputs.contains(at))
    }

    /// Returns the races of some trials that vanish if loops have two rounds, with the inputs that bound these loops.
    ///
    /// See [`crate::counters`].
    pub(super) fn races_due_to_bounds(
        &mut self,
        trials: &[usize],
        function: u32,
    ) -> BTreeMap<FindingKey, Vec<usize>> {
        let mut all = BTreeMap::new();
        let mut counters = None;
        for at in trials {
            let (options, trial) = self.trials[*at].clone();
            for (key, found) in trial
                .findings
                .iter()
                .filter(|(key, found)| key.0 == FindingKind::Race && found.inputs.is_empty())
            {
                let counters = counters.get_or_insert_with(|| CounterUse::analyze(self.module, function));
                let address_counters = counters.counters_of_addresses(&key.1);
                let bounding =
                    trial.branches.iter().filter(|(site, _)| counters.compares_any(**site, address_counters));
                let inputs: BTreeSet<usize> =
                    bounding.flat_map(|(_, inputs)| inputs.iter().copied()).collect();
                if inputs.is_empty() {
                    continue;
                }
                let mut shorter = options.clone();
                for input in inputs.iter().filter_map(|input| options.assumed.get(*input)) {
                    if input.describe_value(&options).parse::<u64>().is_ok_and(|number| number > 2) {
                        set_scalar(&mut shorter, input, 2);
                    }
                }
                let Some(shorter) = self.try_inputs(shorter) else { return all };
                let trial = &self.trials[shorter].1;
                if trial.is_complete && trial.covers(key.0, &found.blocks) && !trial.has_finding_like(key) {
                    all.insert(key.clone(), inputs.into_iter().collect());
                }
            }
        }
        all
    }

    /// Returns the choice of some trials, the primary one first. `is_unchanged` if the launch is that of the options.
    pub(super) fn into_choice(self, all: &[usize], is_unchanged: bool) -> InputChoice {
        let choices = all.iter().map(|index| self.trials[*index].0.clone()).collect();
        let chosen = all.iter().map(|index| self.trials[*index].1.clone()).collect();
        // The first trial is the one with zeros.
        let has_addresses = self.trials.first().is_some_and(|(options, _)| !options.addresses.is_empty());
        let has_number = all.first().is_some_and(|first| self.has_influential_number(*first));
        InputChoice {
            choices,
            trials: self.trials,
            chosen,
            is_default: all == [0] && is_unchanged && !has_addresses && !has_number,
            conventions: self.conventions,
            ..InputChoice::default()
        }
    }

    /// Returns the merits of a trial: complete, conventional, far-reaching and unsuspicious ones are better.
    ///
    /// A race that vanishes because one invocation alone reaches its code is not refuted.
    /// A finding that no assumed value has part in outweighs suspicious ones.
    pub(super) fn rank(
        &self,
        trial_index: usize,
    ) -> (bool, bool, [usize; 4], bool, Reverse<usize>, Reverse<usize>) {
        let trial = &self.trials[trial_index].1;
        let suspicious = trial.suspicious_findings().count();
        let is_certain = trial.findings.len() > suspicious;
        let rest = (is_certain, Reverse(suspicious), Reverse(trial.exceeded.len()));
        let (shared, repeated) = trial.repeated_blocks();
        // The code of invocations that a count excludes has no effects.
        let coverage = [trial.effects, trial.coverage(), shared, repeated];
        (trial.is_complete, self.is_conventional(trial_index), coverage, rest.0, rest.1, rest.2)
    }

    /// Returns true if counters, flags and locks of a trial are zeros.
    pub(super) fn is_conventional(&self, at: usize) -> bool {
        self.conventions.is_satisfied_by(&self.trials[at].0)
    }

    pub(super) fn is_budget_spent(&self) -> bool {
        self.trials.len() >= MAX_TRIALS || self.steps >= MAX_STEPS || self.is_past_deadline()
    }

    /// Returns true if the deadline of the search has passed.
    pub(super) fn is_past_deadline(&self) -> bool {
        let deadline = self.trials.first().and_then(|(options, _)| options.deadline.as_ref());
        deadline.is_some_and(entry_point::DeadlinePredicate::has_passed)
    }

    /// Walks with inputs; returns the index of the trial.
    pub(super) fn try_inputs(&mut self, options: AnalysisOptions) -> Option<usize> {
        if self.is_budget_spent() {
            return None;
        }
        self.try_with_steps(options, MAX_TRIAL_STEPS.min(MAX_STEPS - self.steps))
    }

    /// Walks with inputs and at most `most` steps; returns the index of the trial.
    pub(super) fn try_with_steps(&mut self, options: AnalysisOptions, most: u64) -> Option<usize> {
        let mut trial = run_trial(self.module, &options, most).ok()?;
        if self.conventions.is_satisfied_by(&options) {
            for ((kind, _), found) in trial.findings.iter_mut() {
                let GridFinding { inputs, control, has_read, .. } = found;
                self.conventions.remove_settled((*kind, *has_read), inputs, control);
            }
        }
        // Even a short trial has the cost of its setup.
        self.steps += trial.steps.max(10_000);
        self.trials.push((options, trial));
        Some(self.trials.len() - 1)
    }

    /// Returns the next input that keeps lines from being reached, with the trial to start from and the numbers
    /// that the input is compared with.
    fn next_blocked(
        &self,
        primary: usize,
        others: &[usize],
        covered: &[bool],
        tried: &BTreeSet<(usize, String)>,
    ) -> Option<(usize, usize, BTreeSet<u64>)> {
        if self.is_budget_spent() {
            return None;
        }
        for base in std::iter::once(primary).chain(others.iter().copied()) {
            let trial = &self.trials[base].1;
            let blocked = trial.blocked.iter().filter(|blocked| !blocked.is_covered(covered));
            let inputs = blocked.flat_map(|blocked| &blocked.inputs);
            let untried = inputs.filter(|input| !tried.contains(&(**input, format!("{base} done"))));
            // Contents have few candidates, each of which changes many values.
            if let Some(input) = untried.min_by_key(|input| !self.is_contents(**input)) {
                let numbers = trial.compared.get(input).cloned().unwrap_or_default();
                return Some((base, *input, numbers));
            }
        }
        None
    }

    pub(super) fn is_contents(&self, input: usize) -> bool {
        let assumed = self.trials.first().and_then(|(options, _)| options.assumed.get(input));
        assumed.is_some_and(|input| input.is_contents() || matches!(input.place, InputPlace::Image(_)))
    }

    /// Binds addresses. Integers of 64 bits, and the first of two, count as addresses if the code accesses memory
    /// through them.
    fn find_integer_addresses(&mut self, start: &mut AnalysisOptions) {
        let size = |input: &AssumedInput| match input.place {
            InputPlace::Push(_, bytes) | InputPlace::Scalar(_, _, bytes)
                if input.kind == InputKind::Integer =>
            {
                bytes
            }
            _ => 0,
        };
        let is_candidate = |all: &[AssumedInput], at: usize| {
            let [this, next] = [at, at + 1].map(|at| all.get(at).map_or(0, size));
            let is_pair = |all: &[AssumedInput]| {
                let [first, second] = [at, at + 1].map(|at| all.get(at).map_or("", |one| one.name.as_str()));
                first.strip_suffix(".x").is_some_and(|name| second.strip_suffix(".y") == Some(name))
            };
            this == 8 || this == 4 && next == 4 && is_pair(all)
        };
        let count = self.invocation_counts.iter().copied().max().unwrap_or(1);
        for _ in 0..MAX_ADDRESS_TRIALS {
            self.bind_addresses(start);
            if !(0..start.assumed.len()).any(|at| is_candidate(&start.assumed, at)) {
                return;
            }
            let options = self.uniform_choice(start, (count, 1.0), false);
            let Ok(trial) = run_trial(self.module, &options, MAX_TRIAL_STEPS) else { return };
            self.steps += trial.steps.max(10_000);
            let through = trial.findings.values().filter(|found| found.cause == FindingCause::NoBuffer);
            let mut inputs: BTreeSet<usize> =
                through.flat_map(|found| found.inputs.iter().copied()).collect();
            inputs.retain(|at| is_candidate(&start.assumed, *at));
            if inputs.is_empty() {
                return;
            }
            inputs.into_iter().for_each(|at| start.assumed[at].kind = InputKind::Address);
        }
    }

    /// Binds each address that has no buffer to a separate one.
    fn bind_addresses(&self, options: &mut AnalysisOptions) {
        let addresses: Vec<AssumedInput> =
            options.assumed.iter().filter(|input| input.kind == InputKind::Address).cloned().collect();
        for (number, input) in addresses.iter().enumerate() {
            let Some(at) = input.address_target() else { continue };
            if options.addresses.iter().any(|known| known.at == at) {
                continue;
            }
            let bytes = fill_bytes("zeros", DEFAULT_BYTES).unwrap_or_default();
            let name = format!("{}{number}", input.name.rsplit('.').next().unwrap_or_default());
            options.addresses.push(AddressInput { name, at, offset: 0, bytes });
        }
    }

    /// Returns options with one number for all integers and one for all floats, and with contents of buffers and images if `contents`.
    fn uniform_choice(
        &self,
        start: &AnalysisOptions,
        (number, float): (u64, f32),
        contents: bool,
    ) -> AnalysisOptions {
        let mut options = start.clone();
        for (index, input) in start.assumed.iter().enumerate() {
            let conventions = &self.conventions;
            match &input.place {
                InputPlace::Contents(at) => {
                    let word = match input.kind {
                        _ if contents && conventions.minima.contains(&index) => "ones",
                        _ if !contents || self.atomics.contains(at) => "zeros",
                        InputKind::Float(_) => "floats",
                        _ => "iota",
                    };
                    set_contents(&mut options, *at, word);
                }
                InputPlace::Image(at) if contents => {
                    let size = default_size(self.module, *at);
                    let texels = TexelInput::Word("iota".to_owned());
                    if let Some(size) = size {
                        options.images.insert(*at, ImageInput { size, levels: 1, texels, format: None });
                    }
                }
                InputPlace::Push(..) | InputPlace::Scalar(..) if input.kind == InputKind::Address => {
                    if contents {
                        self.set_pointee(&mut options, input, "iota");
                    }
                }
                InputPlace::Scalar(..) if contents && conventions.minima.contains(&index) => {
                    set_scalar(&mut options, input, u64::MAX);
                }
                InputPlace::Scalar(..) if contents && conventions.falling.contains(&index) => {
                    set_scalar(&mut options, input, number);
                }
                InputPlace::Push(..) | InputPlace::Scalar(..) if number > 0 => {
                    if !conventions.inputs.contains(&index) {
                        set_scalar(&mut options, input, scalar_bits(input.kind, (number, float)));
                    }
                }
                InputPlace::Push(..)
                | InputPlace::Scalar(..)
                | InputPlace::Length(_)
                | InputPlace::Image(_)
                | InputPlace::Constant(_)
                | InputPlace::Override(_)
                | InputPlace::RayQueries
                | InputPlace::Launch(_) => {}
            }
        }
        options
    }

    /// Returns the options of a trial with different values of its floats, or none if it has no floats.
    fn with_mixed_floats(&self, base: usize, seed: u64) -> Option<AnalysisOptions> {
        let mut options = self.trials[base].0.clone();
        let assumed = options.assumed.clone();
        let floats = assumed.iter().filter(|input| matches!(input.kind, InputKind::Float(32)));
        let mut state = seed;
        let mut changed = false;
        for input in floats {
            // The generator of Knuth's MMIX.
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let float = FLOAT_VALUES[(state >> 60) as usize % FLOAT_VALUES.len()];
            set_scalar(&mut options, input, u64::from(float.to_bits()));
            changed |= matches!(input.place, InputPlace::Push(..) | InputPlace::Scalar(..));
        }
        changed.then_some(options)
    }

    /// Returns candidate values for an input.
    pub(super) fn candidates(&self, base: usize, input: usize, compared: &BTreeSet<u64>) -> Vec<Candidate> {
        let options = &self.trials[base].0;
        let Some(assumed) = options.assumed.get(input) else { return Vec::new() };
        let mut all: Vec<Candidate> = match (&assumed.place, assumed.kind) {
            (_, InputKind::Address) if self.has_atomic_pointees => Vec::new(),
            (InputPlace::Contents(_) | InputPlace::Image(_), _) | (_, InputKind::Address) => {
                // The mark of an empty slot, or of the end of a list.
                let all_ones = compared.contains(&u64::from(u32::MAX)).then_some("ones").into_iter();
                let words = ["iota", "small", "floats", "random", "spaced", "wide-floats", "zeros"];
                all_ones.chain(words).map(|word| Candidate::Fill(word.to_owned())).collect()
            }
            // The module has no place for another value.
            (InputPlace::Override(_) | InputPlace::RayQueries, _) => Vec::new(),
            (InputPlace::Length(_), _) => {
                [self.workgroup_size * 4, self.workgroup_size * 16, 1 << 20].map(Candidate::Bits).into()
            }
            (_, InputKind::Float(32)) => {
                let neighbours = compared.iter().flat_map(|bits| {
                    // A size that is converted is compared with integers.
                    let number = match *bits {
                        bits if bits < 1 << 20 => bits as f32,
                        bits => f32::from_bits(bits as u32),
                    };
                    [number, number + 1.0, number - 1.0]
                });
                let counts = self.invocation_counts.map(|count| count as f32);
                let typical = [1.0, 0.0, -1.0, 0.5, 2.0, 100.0];
                let neighbours: Vec<f32> = neighbours.filter(|number| number.is_finite()).collect();
                let few = neighbours.iter().rev().take(3).chain(neighbours.iter().take(3)).copied();
                let all: Vec<f32> = few.chain(typical).chain(counts).collect();
                all.into_iter().map(|number| Candidate::Bits(u64::from(number.to_bits()))).collect()
            }
            (_, InputKind::Boolean) => vec![Candidate::Bits(1), Candidate::Bits(0)],
            _ => {
                let [x, y, z] = self.invocation_counts;
                let neighbours = compared.iter().rev().take(3).chain(compared.iter().take(3));
                // A bound for all invocations of a draw.
                let bound = compared.iter().next_back().filter(|_| self.is_single);
                let bound = bound.map(|number| number.wrapping_add(x)).into_iter();
                let neighbours =
                    neighbours.flat_map(|number| [number.wrapping_add(1), *number, number.wrapping_sub(1)]);
                let is_wide = matches!(assumed.place, InputPlace::Push(_, 8) | InputPlace::Scalar(_, _, 8));
                let one = is_wide.then_some(FIXED_POINT_ONE).into_iter();
                let (row, all) = (x.saturating_mul(y), saturating_product([x, y, z]));
                let typical_values = [x, row, y, z, self.workgroup_size, all, 1, 2, 4, 16, 0, 256, 4096];
                one.chain(bound).chain(neighbours).chain(typical_values).map(Candidate::Bits).collect()
            }
        };
        let mut seen = BTreeSet::new();
        all.retain(|candidate| seen.insert(format!("{candidate:?}")));
        all.truncate(MAX_CANDIDATES);
        all
    }

    pub(super) fn with_candidate(&self, base: usize, input: usize, candidate: &Candidate) -> AnalysisOptions {
        let mut options = self.trials[base].0.clone();
        if let Some(assumed) = options.assumed.get(input).cloned() {
            self.set_input(&mut options, &assumed, candidate);
        }
        options
    }

    /// Sets an input to a candidate.
    pub(super) fn set_input(
        &self,
        options: &mut AnalysisOptions,
        assumed: &AssumedInput,
        candidate: &Candidate,
    ) {
        match (&assumed.place, candidate) {
            (InputPlace::Contents(at), Candidate::Fill(word)) => set_contents(options, *at, word),
            (InputPlace::Image(at), Candidate::Fill(word)) => {
                let known = options.images.get(at).map(|image| image.size);
                if let Some(size) = known.or_else(|| default_size(self.module, *at)) {
                    let texels = TexelInput::Word(word.clone());
                    options.images.insert(*at, ImageInput { size, levels: 1, texels, format: None });
                }
            }
            (InputPlace::Length(at), Candidate::Bits(bytes)) => {
                Arc::make_mut(options.buffers.entry(*at).or_default()).resize(*bytes as usize, 0);
            }
            (InputPlace::Constant(id), Candidate::Bits(bits)) => {
                options.specialization.insert(*id, *bits);
            }
            (_, Candidate::Fill(word)) => self.set_pointee(options, assumed, word),
            (_, Candidate::Bits(bits)) => set_scalar(options, assumed, *bits),
        }
    }

    /// Fills the buffer that an address points to, unless counters or locks may be in it.
    fn set_pointee(&self, options: &mut AnalysisOptions, input: &AssumedInput, word: &str) {
        let Some(at) = input.address_target().filter(|_| !self.has_atomic_pointees) else { return };
        for address in options.addresses.iter_mut().filter(|address| address.at == at) {
            address.bytes = fill_bytes(word, address.bytes.len() as u64).unwrap_or_default();
        }
    }
}

/// A value to try for an input.
#[derive(Clone, Debug)]
pub(super) enum Candidate {
    Bits(u64),
    Fill(String),
}

/// Returns true if a walk reached a block that is not covered.
pub(super) fn reaches_new_block(reached: &[bool], covered: &[bool]) -> bool {
    reached.iter().enumerate().any(|(at, reached)| *reached && !covered.get(at).copied().unwrap_or_default())
}

/// Returns the bits of a scalar of some kind; `float` is 1 or -1.
pub(super) fn scalar_bits(kind: InputKind, (number, float): (u64, f32)) -> u64 {
    match kind {
        InputKind::Float(32) => u64::from(float.to_bits()),
        InputKind::Float(64) => f64::from(float).to_bits(),
        // One in half precision.
        InputKind::Float(_) if float > 0.0 => 0x3c00,
        InputKind::Float(_) => 0xbc00,
        InputKind::Boolean => 1,
        InputKind::Integer | InputKind::Address | InputKind::Other => number,
    }
}

/// Shortens buffers of the default length: loops over all elements of long ones may exceed the steps of a trial.
fn shorten_buffers(options: &mut AnalysisOptions) {
    for contents in options.buffers.values_mut().filter(|contents| contents.len() as u64 == DEFAULT_BYTES) {
        Arc::make_mut(contents).truncate(SHORT_BUFFER_BYTES);
    }
}

/// Replaces a number in each integer that no option supplies.
pub(super) fn rescale(options: &mut AnalysisOptions, old: u64, new: u64) {
    let number = old.to_string();
    for input in options.assumed.clone().iter().filter(|input| input.kind == InputKind::Integer) {
        if input.describe_value(options) == number {
            set_scalar(options, input, new);
        }
    }
}

pub(crate) fn set_scalar(options: &mut AnalysisOptions, input: &AssumedInput, bits: u64) {
    // `bind_addresses` binds each address to a separate buffer.
    if input.kind == InputKind::Address {
        return;
    }
    match input.place {
        InputPlace::Push(offset, bytes) => {
            options.push.extend((offset..).zip(bits.to_le_bytes().into_iter().take(bytes as usize)));
        }
        InputPlace::Scalar(at, offset, bytes) => {
            let Some(contents) = options.buffers.get_mut(&at).map(Arc::make_mut) else { return };
            let place = (offset as usize..).zip(bits.to_le_bytes()).take(bytes as usize);
            for (at, byte) in place {
                if let Some(place) = contents.get_mut(at) {
                    *place = byte;
                }
            }
        }
        InputPlace::Contents(_)
        | InputPlace::Length(_)
        | InputPlace::Image(_)
        | InputPlace::Constant(_)
        | InputPlace::Override(_)
        | InputPlace::RayQueries
        | InputPlace::Launch(_) => {}
    }
}

/// Fills a buffer, except for the scalars that are separate inputs.
pub(crate) fn set_contents(options: &mut AnalysisOptions, at: SetBinding, word: &str) {
    let Some(known) = options.buffers.get(&at).cloned() else { return };
    let mut contents = fill_bytes(word, known.len() as u64).unwrap_or_default();
    for (offset, bytes) in separate_scalars(options, at) {
        let range = offset as usize..offset as usize + bytes as usize;
        if let (Some(place), Some(own)) = (contents.get_mut(range.clone()), known.get(range)) {
            place.copy_from_slice(own);
        }
    }
    options.buffers.insert(at, contents.into());
}

pub(super) fn default_size(module: &SpirvModule, binding: SetBinding) -> Option<[u32; 3]> {
    let (_, variable) = module.variables.iter().find(|(id, variable)| {
        variable.class == StorageClass::UniformConstant && module.descriptor_of(**id) == Some(binding)
    })?;
    let mut ty = module.element_type(variable.ty);
    if let Some(SpirvType::Handle(Op::TypeSampledImage)) = module.types.get(&ty) {
        ty = *module.handle_operands.get(&ty)?.first()?;
    }
    let handle = module.handle_operands.get(&ty)?;
    let [_, dimension, _, arrayed, ..] = handle[..] else { return None };
    Some(default_image(dimension, arrayed != 0).size)
}
