//! Trials with other numbers: loops have a second round, and extents differ.

use std::collections::BTreeSet;

use super::search::{Candidate, InputSearch, MAX_TRIAL_STEPS};
use super::{RaceOfValues, is_declared};
use entry_point::FindingKind;
use entry_point::input_place::{AssumedInput, InputKind, InputPlace};
use rspirv::spirv::StorageClass;
use spirv_reader::{GlobalVariable, SpirvConstant, SpirvModule, SpirvType};
use walk::{FindingKey, GridFinding};

/// Upper bound on the numbers that are changed one at a time.
const MAX_BOUNDS: usize = 4;
/// Upper bound on the steps of a second walk.
const MAX_RETRY_STEPS: u64 = 30_000_000;
/// Upper bounds on the elements of a tile, and on the trials with two rounds.
const MAX_TILE: u64 = 4096;
const MAX_SECOND_ROUNDS: usize = 6;
/// Small numbers that are tried for a share, and the factors of the grid's size for the other numbers.
const SHARES: [(u64, u64); 3] = [(1, 1), (2, 2), (3, 4)];
/// Extents above this number stay larger than 1.
const MIN_EXTENT: u64 = MAX_BOUNDS as u64;

/// Returns true if no assumed input has part in a finding.
fn is_certain(found: &GridFinding) -> bool {
    found.inputs.is_empty() && found.control.is_empty()
}

/// Returns the value of a specialization constant in the module.
fn declared_bits(module: &SpirvModule, number: u32) -> Option<u64> {
    let mut constants = module.constants.iter();
    constants.find_map(|(id, (_, constant))| match constant {
        SpirvConstant::Scalar(bits) if module.decorations_of(*id).specialization == Some(number) => {
            Some(*bits)
        }
        _ => None,
    })
}

/// Returns the length of the longest array in workgroup memory whose length is a constant.
fn longest_shared_array(module: &SpirvModule) -> Option<u64> {
    let shared = module.variables.values().filter(|variable| variable.class == StorageClass::Workgroup);
    let length = |variable: &GlobalVariable| match module.types.get(&variable.ty) {
        Some(SpirvType::Array { length, .. }) => match module.constants.get(length)? {
            (_, SpirvConstant::Scalar(length)) => Some(*length),
            _ => None,
        },
        _ => None,
    };
    shared.filter_map(length).max()
}

impl InputSearch<'_> {
    /// Walks the trial that a limit ended and that reached the most again with more steps, if it reached more than
    /// `best`; returns the better one.
    ///
    /// Loops over tiles of large workgroups exceed the steps of a trial even for one tile.
    pub(super) fn retry_with_more_steps(&mut self, best: usize) -> usize {
        let coverage = |at: usize| self.trials[at].1.coverage();
        let cut_off = (0..self.trials.len()).filter(|at| !self.trials[*at].1.is_complete);
        let further = cut_off.filter(|at| coverage(*at) > coverage(best));
        // Of equal ones, the one with the smallest numbers was tried last.
        let Some(further) = further.max_by_key(|at| coverage(*at)) else { return best };
        let options = self.trials[further].0.clone();
        match self.try_with_steps(options, MAX_RETRY_STEPS) {
            Some(at) if self.rank(at) > self.rank(best) => at,
            _ => best,
        }
    }

    /// Tries the inputs of a trial with other numbers; returns the index of the new trial.
    pub(super) fn try_numbers(
        &mut self,
        base: usize,
        numbers: impl IntoIterator<Item = (usize, u64)>,
        most_steps: u64,
    ) -> Option<usize> {
        let mut options = self.trials[base].0.clone();
        for (at, number) in numbers {
            if let Some(input) = options.assumed.get(at).cloned() {
                self.set_input(&mut options, &input, &Candidate::Bits(number));
            }
        }
        if self.is_budget_spent() {
            return None;
        }
        self.try_with_steps(options, most_steps)
    }

    /// Returns the first race of a complete and ordinary trial that a predicate accepts and that no other trial has.
    fn new_race(
        &self,
        at: usize,
        others: &[usize],
        accepts: impl Fn(&GridFinding) -> bool,
    ) -> Option<(FindingKey, GridFinding)> {
        let trial = &self.trials[at].1;
        let is_known = |key: &FindingKey| others.iter().any(|at| self.trials[*at].1.has_finding_like(key));
        let mut races = trial
            .findings
            .iter()
            .filter(|(key, found)| key.0 == FindingKind::Race && accepts(found) && !is_known(key));
        let race = races.next().filter(|_| trial.is_complete && self.is_conventional(at))?;
        Some((race.0.clone(), race.1.clone()))
    }

    fn race_of_trial(&self, at: usize, inputs: Vec<usize>, found: GridFinding) -> RaceOfValues {
        RaceOfValues { inputs, found, options: self.trials[at].0.clone() }
    }

    /// Returns a trial with a race that needs two rounds of a loop, if no other trial has it.
    ///
    /// A small bound reaches all code of a loop over tiles, but a tile that is reused too early races with the next one.
    /// The counter that ends the loop is the largest number that its bound is compared with; a tile has an element for
    /// each invocation of the workgroup, or is as long as an array in workgroup memory. A race that an input has part in
    /// does not count: a width of 2 makes rows overlap.
    pub(super) fn try_second_rounds(&mut self, base: usize, others: &[usize]) -> Option<usize> {
        let (options, trial) = self.trials[base].clone();
        let bounds = self.deciding_numbers(base, &|number| number > 0);
        let number = |at: &usize| options.assumed.get(*at)?.describe_value(&options).parse::<u64>().ok();
        let mut tiles = vec![self.workgroup_size];
        tiles.extend(longest_shared_array(self.module).filter(|length| *length > self.workgroup_size));
        tiles.retain(|tile| *tile <= MAX_TILE);
        let mut trials: Vec<Vec<(usize, u64)>> = Vec::new();
        for tile in &tiles {
            let short = bounds.iter().filter(|at| number(at).is_some_and(|number| number <= *tile));
            trials.push(short.map(|at| (*at, 2 * tile)).collect());
        }
        for at in &bounds {
            let last = trial.compared.get(at).and_then(|all| all.iter().next_back().copied());
            let further = last.filter(|last| *last <= 2 * MAX_TILE).map(|last| last + 1);
            let more = further.into_iter().chain(tiles.iter().map(|tile| 2 * tile));
            trials.extend(more.filter(|more| Some(*more) > number(at)).map(|more| vec![(*at, more)]));
        }
        let has_race = trial.findings.keys().any(|key| key.0.is_race());
        trials.retain(|numbers| self.synchronizes && !has_race && !numbers.is_empty());
        for (count, numbers) in trials.into_iter().take(MAX_SECOND_ROUNDS).enumerate() {
            // Loops over tiles of large workgroups exceed the steps of a trial.
            let steps = if count == 0 { MAX_RETRY_STEPS } else { MAX_TRIAL_STEPS };
            let at = self.try_numbers(base, numbers, steps)?;
            let is_known =
                |key: &FindingKey| others.iter().any(|at| self.trials[*at].1.has_finding_like(key));
            let mut findings = self.trials[at].1.findings.iter();
            let is_new = findings.any(|(key, found)| key.0.is_race() && is_certain(found) && !is_known(key));
            if is_new && self.is_conventional(at) {
                return Some(at);
            }
        }
        None
    }

    /// Returns a race of the elements of extents that differ, if no other trial has it.
    ///
    /// Equal extents hide an index that multiplies by the wrong one. A number that the code does not compare may be a
    /// stride, with which rows overlap unless it is large enough.
    pub(super) fn race_of_unequal_extents(&mut self, others: &[usize]) -> Option<RaceOfValues> {
        if let Some(race) = self.race_of_distance(*others.first()?) {
            return Some(race);
        }
        let extents_of = |at: &usize| {
            let extents = self.deciding_numbers(*at, &|number| number > MIN_EXTENT);
            (extents.len() > 1).then_some((*at, extents))
        };
        let (base, mut extents) = others.iter().find_map(extents_of)?;
        for _ in 0..2 {
            let start = &self.trials[base].0;
            let number = |at: usize| start.assumed.get(at)?.describe_value(start).parse::<u64>().ok();
            let smaller = extents.iter().enumerate().map(|(decrement, extent)| {
                (*extent, number(*extent).unwrap_or_default().saturating_sub(decrement as u64))
            });
            let smaller: Vec<(usize, u64)> = smaller.collect();
            let at = self.try_numbers(base, smaller, MAX_TRIAL_STEPS)?;
            let is_of_extents = |found: &GridFinding| {
                !found.inputs.is_empty() && found.inputs.iter().all(|input| extents.contains(input))
            };
            if let Some((_, race)) = self.new_race(at, others, is_of_extents) {
                return Some(self.race_of_trial(at, race.inputs.clone(), race.without_inputs()));
            }
            extents.reverse();
        }
        None
    }

    /// Returns a race of a small number with numbers as large as the grid or larger, if no other trial has it.
    ///
    /// A share as large as the count lets one invocation access every element, and a count that the grid's shares exceed
    /// hides the elements at their ends. Numbers that a counter is compared with fit the grid and stay.
    pub(super) fn race_of_small_share(&mut self, others: &[usize]) -> Option<RaceOfValues> {
        let base = *others.first()?;
        let mut numbers = self.deciding_numbers(base, &|number| number > 1);
        numbers.retain(|number| !self.trials[base].1.synchronizing.contains(number));
        let count = self.invocation_counts.iter().copied().max().unwrap_or(1);
        for share in numbers.iter().filter(|_| numbers.len() > 1) {
            for (small, factor) in SHARES {
                let shares = numbers.iter().map(|at| (*at, if at == share { small } else { factor * count }));
                let at = self.try_numbers(base, shares, MAX_TRIAL_STEPS)?;
                let is_of_numbers = |found: &GridFinding| found.inputs.iter().all(|at| numbers.contains(at));
                if let Some((_, race)) = self.new_race(at, others, is_of_numbers) {
                    let mut race = race.without_inputs();
                    let options = &self.trials[at].0;
                    let inputs = numbers.iter().filter_map(|at| options.assumed.get(*at));
                    let values: Vec<String> = inputs
                        .map(|input| format!("{} = {}", input.name, input.describe_value(options)))
                        .collect();
                    race.message += &format!("; with {}", values.join(", "));
                    return Some(self.race_of_trial(at, numbers, race));
                }
            }
        }
        None
    }

    /// Returns a race of the elements at a distance of one, and the inputs that it depends on, if the distance is zero.
    ///
    /// A distance of zero lets each invocation access its own elements only, and races with none.
    fn race_of_distance(&mut self, base: usize) -> Option<RaceOfValues> {
        let (options, trial) = &self.trials[base];
        let is_zero = |input: &AssumedInput| {
            input.is_number() && input.kind == InputKind::Integer && input.describe_value(options) == "0"
        };
        let influential = trial.influential.iter().filter(|at| !self.conventions.inputs.contains(at));
        let distances: Vec<usize> =
            influential.copied().filter(|at| options.assumed.get(*at).is_some_and(is_zero)).collect();
        for distance in distances.into_iter().take(MAX_BOUNDS) {
            let at = self.try_numbers(base, [(distance, 1)], MAX_TRIAL_STEPS)?;
            let is_of_distance = |found: &GridFinding| found.inputs.contains(&distance);
            let Some((key, race)) = self.new_race(at, &[base], is_of_distance) else { continue };
            // The width of rows, with zero as a mark, lets rows overlap if it is less than that of the grid.
            if self.invocation_counts.iter().filter(|count| **count > 1).count() > 1 {
                let at = self.try_numbers(base, [(distance, self.invocation_counts[0])], MAX_TRIAL_STEPS)?;
                let wide = &self.trials[at].1;
                let covers = wide.is_complete && wide.covers(key.0, &race.blocks);
                if covers && !wide.has_finding_like(&key) {
                    continue;
                }
            }
            return Some(self.race_of_trial(at, race.inputs.clone(), race.without_inputs()));
        }
        None
    }

    /// Returns the last trial with a race that no trial of `others` has, if the declared specialization constants alone
    /// give its places.
    pub(super) fn find_declared_race(&self, others: &[usize]) -> Option<usize> {
        self.races_of_trials(others)
            .find(|(at, race)| race.inputs.iter().all(|input| is_declared(&self.trials[*at].0, *input)))
            .map(|(at, _)| at)
    }

    /// Returns a race that no trial of `others` has, at places that numbers give.
    ///
    /// These numbers were tried and not chosen, because such a race may be one of strides that overlap.
    pub(super) fn race_of_rejected_numbers(&self, others: &[usize]) -> Option<RaceOfValues> {
        let (at, race) = self.races_of_trials(others).find(|(at, race)| {
            let assumed = &self.trials[*at].0.assumed;
            let is_size = |input: &AssumedInput| {
                input.is_number() || matches!(input.place, InputPlace::Length(_) | InputPlace::Image(_))
            };
            race.inputs.iter().all(|at| assumed.get(*at).is_some_and(is_size))
        })?;
        Some(self.race_of_trial(at, race.inputs.clone(), race.without_inputs()))
    }

    /// Returns the races at places that inputs give, of complete trials, that no trial of `others` has; those of the last
    /// trial come first.
    fn races_of_trials<'s>(
        &'s self,
        others: &'s [usize],
    ) -> impl Iterator<Item = (usize, &'s GridFinding)> + 's {
        let is_known = |key: &FindingKey| others.iter().any(|at| self.trials[*at].1.has_finding_like(key));
        let complete = (0..self.trials.len())
            .rev()
            .filter(|at| self.trials[*at].1.is_complete && self.is_conventional(*at));
        // An undefined value, such as that of a shift by too many bits, decides what follows from it.
        let is_undefined = |key: &FindingKey| key.0 == FindingKind::UndefinedBehaviour;
        let complete = complete.filter(move |at| !self.trials[*at].1.findings.keys().any(is_undefined));
        complete.flat_map(move |at| {
            let findings = self.trials[at].1.findings.iter();
            findings
                .filter(move |(key, race)| key.0.is_race() && !race.inputs.is_empty() && !is_known(key))
                .map(move |(_, race)| (at, race))
        })
    }

    /// Returns the first integers of a trial that decide branches and that `keep` accepts.
    fn deciding_numbers(&self, base: usize, keep: &dyn Fn(u64) -> bool) -> Vec<usize> {
        let (options, trial) = &self.trials[base];
        let deciding: BTreeSet<usize> = trial.branches.values().flatten().copied().collect();
        let is_kept = |input: &AssumedInput| {
            let number = match input.place {
                InputPlace::Push(..) | InputPlace::Scalar(..) => input.describe_value(options).parse().ok(),
                // A larger one may be the size of an array.
                InputPlace::Constant(id) if !options.specialization.contains_key(&id) => {
                    declared_bits(self.module, id).filter(|bits| *bits == 1)
                }
                _ => None,
            };
            input.kind == InputKind::Integer && number.is_some_and(keep)
        };
        deciding
            .into_iter()
            .filter(|at| !self.conventions.inputs.contains(at))
            .filter(|at| options.assumed.get(*at).is_some_and(is_kept))
            .take(MAX_BOUNDS)
            .collect()
    }
}
