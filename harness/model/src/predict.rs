//! Computes the prediction of a test under a model.

#![deny(clippy::wildcard_enum_match_arm)]

use std::collections::{BTreeMap, BTreeSet};

use litmus::{
    InstructionKind, Observable, Outcome, PredictedOutcome, Prediction, Race, Term, Test, Thread, ThreadId,
    Undefinedness,
};

use crate::budget::BudgetTracker;
use crate::combinations::{for_each_combination, supported_paths};
use crate::combine::{ExecutionCounts, Findings, OutcomeCollector, OutcomeStatus, ValueRules};
use crate::explore::{ExplorationStrategy, explore_skeleton};
use crate::flags::Flags;
use crate::line::CounterLocations;
use crate::matrix::{Matrix8, Matrix16, Matrix32, Matrix64, Matrix128, Matrix256};
use crate::path::{Path, PathChoice, paths_observing};
use crate::prepared::Compiled;
use crate::quick::{QuickMap, QuickSet};
use crate::search::step_weight;
use crate::sequential::{SequentialMachine, Turns};
use crate::skeleton::{Semantic, skeletons};
use crate::supply::ValueSupply;
use crate::supported::check_supported;
use crate::symmetry::{ConditionOrbit, Symmetry};
use crate::valuation::ValueDomain;
use crate::wait::SpinLoopReduction;
use crate::{Budget, Model, PredictError};

/// Options of a prediction.
#[derive(Clone, Copy, Debug)]
pub struct Options<'b> {
    /// If exceeded, the answer is partial: race `Unknown`, `complete` false.
    pub budget: Budget<'b>,
    /// Limit of executions of a loop body, at least 1.
    pub unroll: u32,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Options { budget: Budget::default(), unroll: 1 }
    }
}

/// Predicts the outcomes of a test under a model.
///
/// # Errors
///
/// If the test exceeds the limits (256 events, 64 threads) or uses features that the model does not define.
pub fn predict(test: &Test, model: &Model, options: &Options) -> Result<Prediction, PredictError> {
    predict_with_strategy(test, model, options, ExplorationStrategy::FULL)
}

/// Predicts only races and the answer to the question.
///
/// As [`predict`], without a list of outcomes; faster if there are many.
///
/// # Errors
///
/// As for [`predict`].
pub fn decide(test: &Test, model: &Model, options: &Options) -> Result<Prediction, PredictError> {
    predict_with_strategy(test, model, options, ExplorationStrategy::DECIDE_ONLY)
}

/// [`predict`] with a given exploration strategy.
pub fn predict_with_strategy(
    test: &Test,
    model: &Model,
    options: &Options,
    ways: ExplorationStrategy,
) -> Result<Prediction, PredictError> {
    predict_with_tracker(test, model, options.unroll.max(1), ways, &BudgetTracker::new(options.budget))
}

/// [`predict`] with the remaining budget of a tracker.
pub(crate) fn predict_with_tracker(
    test: &Test,
    model: &Model,
    unroll: u32,
    ways: ExplorationStrategy,
    purse: &BudgetTracker<'_>,
) -> Result<Prediction, PredictError> {
    let compiled = model.compiled_for(test)?;
    let observables = test.observables();
    let mut findings = find_outcomes(test, model, &compiled, &observables, unroll, ways, purse)?;
    let exhausted = !findings.timed_out && findings.cut_combinations == 0;
    let answer = |found: bool| (found || exhausted).then_some(found);
    let (outcomes, listed) = if ways.prefers_decision && !findings.timed_out {
        // The list is secondary here, so it gets a part of the budget, and is left out if that does
        // not suffice.
        let (outcomes, listed) =
            purse.attempt(ways.listing_steps, |purse| list(test, &observables, &mut findings, unroll, purse));
        if listed { (outcomes, listed) } else { (BTreeMap::new(), listed) }
    } else {
        list(test, &observables, &mut findings, unroll, purse)
    };
    Ok(Prediction {
        model: model.name().to_owned(),
        observables,
        outcomes,
        race: race_status(&findings),
        // If the search was cut short, another race may exist.
        race_thin_air: exhausted && race_status(&findings) == Race::Racy && !findings.grounded.is_race(),
        uninitialised_read: if test.has_undefined() {
            answer(findings.raised.uninitialised)
        } else {
            Some(false)
        },
        bound: unroll,
        truncated_runs: findings.cut_combinations,
        runs: findings.path_combinations,
        level: findings.raised.undefinedness(&compiled.plan, exhausted),
        candidate_executions: findings.candidate_executions,
        consistent_executions: findings.consistent_executions,
        meets: test.question.as_ref().and_then(|_| answer(findings.has_match)),
        misses: test.question.as_ref().and_then(|_| answer(findings.has_mismatch)),
        complete: listed && findings.cut_combinations == 0,
    })
}

/// The results that distinguish models on a test: less than a [`Prediction`], and faster to compute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Race status of the program. If it is `Unknown`, time ran out and the other results are not final.
    pub race: Race,
    /// The level of undefinedness of HSA.
    pub level: Option<Undefinedness>,
    /// The outcomes that some consistent execution shows.
    pub allowed: BTreeSet<Outcome>,
}

/// Returns the verdict of a model on a test.
///
/// # Errors
///
/// As for [`predict`].
pub fn verdict(test: &Test, model: &Model, options: &Options) -> Result<Summary, PredictError> {
    let purse = BudgetTracker::new(options.budget);
    let compiled = model.compiled_for(test)?;
    let findings = find_outcomes(
        test,
        model,
        &compiled,
        &test.observables(),
        options.unroll.max(1),
        ExplorationStrategy::FULL,
        &purse,
    )?;
    let known = !findings.timed_out && !findings.unlisted && findings.cut_combinations == 0;
    let (race, level) = (race_status(&findings), findings.raised.undefinedness(&compiled.plan, known));
    let allowed = findings.outcomes.into_iter().filter(|(_, standing)| standing.is_allowed());
    Ok(Summary {
        race: if known { race } else { Race::Unknown },
        level,
        allowed: allowed.map(|(outcome, _)| outcome).collect(),
    })
}

fn race_status(findings: &Findings) -> Race {
    match (findings.raised.is_race(), findings.timed_out || findings.cut_combinations > 0) {
        (true, _) => Race::Racy,
        (false, false) => Race::Free,
        (false, true) => Race::Unknown,
    }
}

/// Thread symmetry is computed only for tests with at least this many threads.
const MIN_SYMMETRIC_THREADS: usize = 3;

/// Outcomes are listed for at most this many combinations of paths, if a reduction applies without a list.
const MAX_LISTED_COMBINATIONS: usize = 1 << 12;
/// The same limit for tests with reducible spin loops.
const MAX_LISTED_SPIN_COMBINATIONS: usize = 1 << 6;

/// Finds the outcomes and races of a test under a model.
///
/// A portfolio: outcomes are listed if few steps suffice. Otherwise races and question are decided first,
/// which is often far cheaper, and outcomes are listed with the rest of the budget. If that fails, or if only
/// the decision holds beyond the loop bound, there is no list.
fn find_outcomes(
    test: &Test,
    model: &Model,
    compiled: &Compiled,
    observables: &[Observable],
    unroll: u32,
    ways: ExplorationStrategy,
    purse: &BudgetTracker<'_>,
) -> Result<Findings, PredictError> {
    let find = |ways, purse: &BudgetTracker<'_>| {
        find_with_strategy(test, model, compiled, observables, unroll, ways, purse)
    };
    if !ways.lists_outcomes || !ways.decides_first {
        return find(ways, purse);
    }
    let decision = ways.without_list();
    let weight = step_weight(event_count(test, unroll));
    let listed = purse.attempt(ways.first_listing_steps / weight, |purse| find(ways, purse))?;
    if !listed.timed_out {
        if listed.cut_combinations == 0 || !ways.prefers_decision {
            return Ok(listed);
        }
        // The loop bound cut the listed runs. Some reductions decide without any bound.
        let decided = purse.attempt(ways.first_listing_steps / weight, |purse| find(decision, purse))?;
        return Ok(if decided.is_unbounded() { decided } else { listed });
    }
    let mut decided = find(decision, purse)?;
    if decided.timed_out {
        // The findings of an incomplete search are definite, because it found them in executions.
        decided.add_definite(&listed);
        return Ok(decided);
    }
    let steps = if ways.prefers_decision { ways.listing_steps / weight } else { ways.listing_steps };
    let listed = purse.attempt(steps, |purse| find(ways, purse))?;
    let is_shorter =
        ways.prefers_decision && !decided.ended_early && listed.cut_combinations > decided.cut_combinations;
    Ok(if listed.timed_out || is_shorter { decided } else { listed })
}

/// Returns about how many events the longest runs of a test have.
fn event_count(test: &Test, unroll: u32) -> usize {
    let events = |thread: &Thread| {
        let is_repeated = thread.instructions.iter().any(|i| matches!(i.kind, InstructionKind::Flow(_)));
        let turns = if is_repeated { unroll as usize } else { 1 };
        let steps = thread.instructions.iter().filter(|i| i.kind.access().is_some());
        steps.count() * turns
    };
    test.locations.len() + test.threads.iter().map(events).sum::<usize>()
}

/// Finds the outcomes and races of a test under a model with one strategy.
fn find_with_strategy(
    test: &Test,
    model: &Model,
    compiled: &Compiled,
    observables: &[Observable],
    unroll: u32,
    ways: ExplorationStrategy,
    purse: &BudgetTracker<'_>,
) -> Result<Findings, PredictError> {
    let semantic = model.semantic();
    let domain = ValueDomain::new(test);
    let paths = if ways.lists_outcomes {
        supported_paths(test, semantic, unroll)?
    } else {
        check_supported(test, semantic)?;
        // Paths that differ only in registers that no condition names need no separate exploration.
        let observed = observed_registers(test);
        let threads = observed.iter().enumerate();
        threads
            .map(|(thread, observed)| {
                paths_observing(test, ThreadId(thread as u16), unroll, observed, semantic.knows_text)
            })
            .collect::<Result<_, _>>()?
    };
    let asked = PredictionContext { compiled, ways, purse, semantic, domain: &domain };
    let alike = PathReductions::new(test, &paths, &asked);
    let waits =
        if ways.spin_loops && semantic.knows_text { SpinLoopReduction::new(test, &paths) } else { None };
    let finder = PathExplorer::new(test, observables, &asked, &alike);
    let mut findings = Findings { unlisted: !ways.lists_outcomes, ..Findings::default() };
    let PathReductions { symmetry, lines, supply } = &alike;
    let combinations = paths.iter().fold(1usize, |product, paths| product.saturating_mul(paths.len()));
    // A list needs at least one step for each combination.
    if ways.lists_outcomes && purse.has_less_than(combinations as u64) {
        findings.timed_out = true;
        return Ok(findings);
    }
    let is_asymmetric = symmetry.is_empty() && !lines.can_exclude_paths() && waits.is_none();
    // No reduction applies: each combination once.
    if is_asymmetric && (ways.lists_outcomes || supply.is_empty()) {
        for_each_combination(&paths, &mut |chosen, combination| {
            finder.explore_combination(chosen, combination, &mut findings)?;
            Ok(finder.has_open_question(&mut findings))
        })?;
        return Ok(findings);
    }
    findings.unlisted |=
        combinations > if waits.is_some() { MAX_LISTED_SPIN_COMBINATIONS } else { MAX_LISTED_COMBINATIONS };
    if !findings.unlisted {
        // The counts of the first combination of each orbit, if it lists no outcome.
        let mut first: QuickMap<Vec<usize>, ExecutionCounts> = QuickMap::default();
        for_each_combination(&paths, &mut |chosen, combination| {
            let alike = symmetry.orbit_representative(chosen);
            if let Some(known) = first.get(&alike)
                && !known.terminated
            {
                if purse.spend(1) {
                    findings.timed_out = true;
                }
                findings.add_counts(*known, 1);
                return Ok(!findings.timed_out);
            }
            let (counts, _) = finder.explore_combination(chosen, combination, &mut findings)?;
            first.insert(alike, counts);
            Ok(!findings.timed_out && !findings.unlisted)
        })?;
        if !findings.unlisted {
            return Ok(findings);
        }
        // The outcomes became too many to list. The search starts again, with the reductions that
        // need no list.
        findings = Findings { unlisted: true, timed_out: findings.timed_out, ..Findings::default() };
    }
    let Some(waits) = waits else {
        finder.explore_representatives(&paths, &|taken| !supply.can_continue(taken), &mut findings)?;
        return Ok(findings);
    };
    // Two searches: for races, at most one thread has left its spin loop; for final states, all
    // have. See the proof in `wait`.
    let unasked = Test { question: None, ..test.clone() };
    let mut races = Findings { unlisted: true, ..Findings::default() };
    let alike = PathReductions::new(&unasked, &waits.stuck_paths, &asked);
    let before = PathExplorer::new(&unasked, &[], &asked, &alike);
    before.explore_representatives(&waits.stuck_paths, &|taken| waits.can_choose(taken), &mut races)?;
    findings.add_races(&races);
    if test.question.is_some() && !findings.timed_out {
        let alike = PathReductions::new(test, &waits.exited_paths, &asked);
        let behind = PathExplorer::new(test, observables, &asked, &alike);
        behind.explore_representatives(&waits.exited_paths, &|_| true, &mut findings)?;
    }
    Ok(findings)
}

/// The inputs shared by all explorations of a test.
struct PredictionContext<'a> {
    compiled: &'a Compiled,
    ways: ExplorationStrategy,
    purse: &'a BudgetTracker<'a>,
    semantic: Semantic,
    domain: &'a ValueDomain<'a>,
}

/// The reductions of a test's path combinations: thread symmetry, counter locations and the supply of values.
struct PathReductions {
    symmetry: Symmetry,
    lines: CounterLocations,
    supply: ValueSupply,
}

impl PathReductions {
    fn new(test: &Test, paths: &[Vec<Path>], asked: &PredictionContext<'_>) -> PathReductions {
        let PredictionContext { ways, semantic, .. } = *asked;
        let symmetric = ways.symmetry && test.threads.len() >= MIN_SYMMETRIC_THREADS;
        let lines = ways.rmw_chains && semantic.knows_text;
        PathReductions {
            symmetry: if symmetric { Symmetry::new(test, paths, semantic) } else { Symmetry::default() },
            lines: if lines { CounterLocations::new(test, paths) } else { CounterLocations::default() },
            supply: if ways.value_supply {
                ValueSupply::new(test, paths, semantic.knows_text)
            } else {
                ValueSupply::default()
            },
        }
    }
}

/// Explores the path combinations of a test.
struct PathExplorer<'a> {
    test: &'a Test,
    compiled: &'a Compiled,
    observables: &'a [Observable],
    ways: ExplorationStrategy,
    purse: &'a BudgetTracker<'a>,
    semantic: Semantic,
    domain: &'a ValueDomain<'a>,
    symmetry: &'a Symmetry,
    lines: &'a CounterLocations,
    supply: &'a ValueSupply,
    condition_orbit: Option<ConditionOrbit>,
}

impl<'a> PathExplorer<'a> {
    fn new(
        test: &'a Test,
        observables: &'a [Observable],
        asked: &PredictionContext<'a>,
        alike: &'a PathReductions,
    ) -> PathExplorer<'a> {
        let PredictionContext { compiled, ways, purse, semantic, domain } = *asked;
        let PathReductions { symmetry, lines, supply } = alike;
        let tellings = if symmetry.is_empty() { None } else { symmetry.condition_orbit(test, observables) };
        PathExplorer {
            test,
            compiled,
            observables,
            ways,
            purse,
            semantic,
            domain,
            symmetry,
            lines,
            supply,
            condition_orbit: tellings,
        }
    }

    /// Returns true if the search has time, and further runs can add to the findings.
    fn has_open_question(&self, findings: &mut Findings) -> bool {
        let mut flags = Flags::default();
        self.compiled
            .plan
            .axioms
            .iter()
            .filter(|axiom| axiom.flag)
            .for_each(|axiom| flags.raise_axiom(axiom));
        let is_answered = self.test.question.is_none() || findings.has_match && findings.has_mismatch;
        findings.ended_early |= findings.unlisted && is_answered && !findings.grounded.lacks_any_of(flags);
        !findings.timed_out && !findings.ended_early
    }

    /// Explores one path combination. Returns its counts, and whether the result holds for its whole orbit.
    fn explore_combination(
        &self,
        chosen: &[usize],
        combination: &[&Path],
        findings: &mut Findings,
    ) -> Result<(ExecutionCounts, bool), PredictError> {
        let before = findings.to_counts();
        let (mut terminated, mut of_all) = (false, true);
        if self.purse.spend(1) {
            findings.timed_out = true;
            return Ok((findings.to_counts().difference_from(before, terminated), of_all));
        }
        let PathExplorer { semantic, ways, .. } = *self;
        let taken: Vec<PathChoice> = chosen.iter().map(|path| PathChoice::Path(*path)).collect();
        let may_take = self.lines.can_choose(&taken) && self.supply.has_sources(&taken);
        for skeleton in skeletons(self.test, self.observables, combination, semantic)? {
            terminated |= skeleton.terminated;
            let rules = ValueRules { out_of_thin_air: semantic.values_free, domain: self.domain };
            let alike = self.symmetry.breaking_for(chosen, &skeleton);
            let combiner = OutcomeCollector::new(self.test, self.observables, &skeleton, rules, self.purse)
                .with_symmetry(alike, self.condition_orbit.as_ref())
                .with_rmw_chains(self.lines);
            if !may_take {
                // No execution of this combination is consistent, but its outcomes count as
                // candidates.
                combiner.add_candidates(findings);
                continue;
            }
            let prepared = self.compiled.prepared(&skeleton);
            let explored = match skeleton.len() {
                // The smallest matrix that holds all events.
                0..=8 => explore_skeleton::<Matrix8>(&skeleton, &prepared, &combiner, ways, findings),
                9..=16 => explore_skeleton::<Matrix16>(&skeleton, &prepared, &combiner, ways, findings),
                17..=32 => explore_skeleton::<Matrix32>(&skeleton, &prepared, &combiner, ways, findings),
                33..=64 => explore_skeleton::<Matrix64>(&skeleton, &prepared, &combiner, ways, findings),
                65..=128 => explore_skeleton::<Matrix128>(&skeleton, &prepared, &combiner, ways, findings),
                _ => explore_skeleton::<Matrix256>(&skeleton, &prepared, &combiner, ways, findings),
            };
            let explored = explored?;
            of_all &= explored.covers_orbit || !skeleton.terminated;
            let runs = u64::from(explored.has_execution);
            findings.path_combinations = findings.path_combinations.saturating_add(runs);
            findings.cut_combinations =
                findings.cut_combinations.saturating_add(if skeleton.cut { runs } else { 0 });
            if findings.timed_out {
                break;
            }
        }
        Ok((findings.to_counts().difference_from(before, terminated), of_all))
    }

    /// Explores all path combinations, of each orbit only the first if its result holds for the whole orbit.
    ///
    /// Outcomes are not listed. Combinations for which `wanted` returns false are skipped.
    fn explore_representatives(
        &self,
        paths: &[Vec<Path>],
        wanted: &dyn Fn(&[PathChoice]) -> bool,
        findings: &mut Findings,
    ) -> Result<(), PredictError> {
        let path = |chosen: &[usize]| -> Vec<&Path> {
            paths.iter().zip(chosen).filter_map(|(paths, index)| paths.get(*index)).collect()
        };
        let many: Vec<usize> = paths.iter().map(Vec::len).collect();
        let symmetry = self.symmetry;
        let mut known: QuickMap<Vec<usize>, ExecutionCounts> = QuickMap::default();
        // Excluded combinations are not counted: there may be too many of them to visit.
        let may_take = |taken: &[PathChoice]| {
            wanted(taken) && self.lines.can_choose(taken) && self.supply.has_sources(taken)
        };
        symmetry.for_each_representative(&many, &may_take, &mut |chosen, alike| {
            if symmetry.is_empty() {
                self.explore_combination(chosen, &path(chosen), findings)?;
                return Ok(self.has_open_question(findings));
            }
            let first = symmetry.orbit_representative(chosen);
            if let Some(known) = known.get(&first) {
                findings.timed_out |= self.purse.spend(1);
                findings.add_counts(*known, alike);
                return Ok(!findings.timed_out);
            }
            let (counts, of_all) = self.explore_combination(chosen, &path(chosen), findings)?;
            // The first of the orbit has counted itself.
            findings.add_counts(counts, alike - 1);
            known.insert(first, counts);
            if of_all || !self.has_open_question(findings) {
                return Ok(self.has_open_question(findings));
            }
            // The condition distinguishes these combinations, and only one of them was checked.
            let mut others = Findings { unlisted: true, needs_full_order: true, ..Findings::default() };
            symmetry.for_each_in_orbit(chosen, &mut |other| {
                if other != chosen {
                    self.explore_combination(other, &path(other), &mut others)?;
                }
                Ok(!others.timed_out)
            })?;
            findings.has_match |= others.has_match;
            findings.has_mismatch |= others.has_mismatch;
            findings.timed_out |= others.timed_out;
            Ok(!findings.timed_out)
        })
    }
}

/// Returns the outcomes with their status, and if the list is complete; empty if there are too many to list.
fn list(
    test: &Test,
    observables: &[Observable],
    findings: &mut Findings,
    unroll: u32,
    purse: &BudgetTracker<'_>,
) -> (BTreeMap<Outcome, PredictedOutcome>, bool) {
    if findings.unlisted {
        return (BTreeMap::new(), false);
    }
    let mut machine = SequentialMachine::new(test, observables, unroll);
    let found = std::mem::take(&mut findings.outcomes);
    let wanted = (|outcome: &Outcome| found.contains(outcome), found.len());
    let (sequential, knows_weak) = if test.has_blocks() {
        sequentially_consistent(test, observables, unroll, purse)
    } else {
        machine.outcomes(Turns::Interleaved, wanted, purse)
    };
    let (serial, knows_serial) = machine.outcomes(Turns::Serial, wanted, purse);
    let outcomes = found.into_iter().map(|(outcome, standing)| {
        let says = PredictedOutcome {
            allowed: standing.is_allowed(),
            thin_air: standing == OutcomeStatus::OutOfThinAir,
            // A search that was cut short marks nothing as weak or interleaved.
            weak: knows_weak && !sequential.contains(&outcome),
            serial: !knows_serial || serial.contains(&outcome),
            filtered: test
                .filter
                .as_ref()
                .is_some_and(|filter| !outcome.meets_condition(test, observables, filter)),
        };
        (outcome, says)
    });
    (outcomes.collect(), !findings.timed_out)
}

/// Returns the sequentially consistent outcomes, and if they are complete.
///
/// Used if lanes may reconverge in several ways, since the sequential machine reconverges them immediately.
fn sequentially_consistent(
    test: &Test,
    observables: &[Observable],
    unroll: u32,
    purse: &BudgetTracker<'_>,
) -> (QuickSet<Outcome>, bool) {
    let found = Model::shipped("sc").and_then(Result::ok).and_then(|model| {
        let compiled = model.compiled_for(test).ok()?;
        find_outcomes(test, &model, &compiled, observables, unroll, ExplorationStrategy::FULL, purse).ok()
    });
    let Some(findings) = found else { return (QuickSet::default(), false) };
    let complete = !findings.timed_out && !findings.unlisted;
    let allowed = findings.outcomes.into_iter().filter(|(_, standing)| standing.is_allowed());
    (allowed.map(|(outcome, _)| outcome).collect(), complete)
}

/// Returns for each thread the registers that the question and the filter name.
fn observed_registers(test: &Test) -> Vec<Vec<bool>> {
    let mut observed: Vec<Vec<bool>> =
        test.threads.iter().map(|thread| vec![false; thread.registers.len()]).collect();
    let conditions = test.question.iter().map(|question| &question.condition).chain(&test.filter);
    for condition in conditions {
        condition.for_each_term(&mut |term| {
            if let Term::Register(thread, register) = term
                && let Some(named) = observed
                    .get_mut(usize::from(thread.0))
                    .and_then(|thread| thread.get_mut(usize::from(register.0)))
            {
                *named = true;
            }
        });
    }
    observed
}
