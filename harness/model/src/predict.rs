//! Computes the prediction of a test under a model.

#![deny(clippy::wildcard_enum_match_arm)]

use std::collections::{BTreeMap, BTreeSet};

use litmus::{
    InstructionKind, Observable, Outcome, PredictedOutcome, Prediction, Race, Term, Test, Thread, ThreadId,
    Undefinedness,
};

use crate::bounded_test::BoundedTest;
use crate::candidate::passes_filter;
use crate::combinations::{enumerate_thread_paths, for_each_combination};
use crate::explore::{ExplorationStrategy, explore_skeleton};
use crate::flags::Flags;
use crate::guarded::{decide_in_turns, decide_program};
use crate::matrix::with_smallest_matrix;
use crate::model::{SEQUENTIAL, SERIAL};
use crate::outcome_collector::{Findings, OutcomeCollector, OutcomeStatus, OutcomeTable, ValueRules};
use crate::path::{ThreadPath, enumerate_observed_paths};
use crate::quick::QuickSet;
use crate::search::step_weight;
use crate::skeleton::build_skeletons;
use crate::supported::check_supported;
use crate::valuation::ValueDomain;
use crate::{Budget, Model, PredictError};
use solver::BudgetTracker;

/// Options of a prediction.
#[derive(Clone, Copy, Debug)]
pub struct PredictOptions<'b> {
    /// If exceeded, the answer is partial: race `Unknown`, `complete` false.
    pub budget: Budget<'b>,
    /// Limit of executions of a loop body, at least 1.
    pub unroll: u32,
}

impl Default for PredictOptions<'_> {
    fn default() -> Self {
        PredictOptions { budget: Budget::default(), unroll: 1 }
    }
}

/// Predicts the outcomes of a test under a model.
///
/// # Errors
///
/// If the test exceeds the limits (256 events, 64 threads) or uses features that the model does not define.
pub fn predict(test: &Test, model: &Model, options: &PredictOptions) -> Result<Prediction, PredictError> {
    predict_with_strategy(test, model, options, ExplorationStrategy::FULL)
}

/// Predicts only races and the answer to the question.
///
/// As [`predict`], without a list of outcomes; faster if there are many.
///
/// # Errors
///
/// As for [`predict`].
pub fn predict_without_outcomes(
    test: &Test,
    model: &Model,
    options: &PredictOptions,
) -> Result<Prediction, PredictError> {
    predict_with_strategy(test, model, options, ExplorationStrategy::DECIDE_ONLY)
}

/// [`predict`] with a given exploration strategy.
pub fn predict_with_strategy(
    test: &Test,
    model: &Model,
    options: &PredictOptions,
    strategy: ExplorationStrategy,
) -> Result<Prediction, PredictError> {
    predict_with_tracker(test, model, options.unroll.max(1), strategy, &BudgetTracker::new(options.budget))
}

/// [`predict`] with the remaining budget of a tracker.
pub(crate) fn predict_with_tracker(
    test: &Test,
    model: &Model,
    unroll: u32,
    strategy: ExplorationStrategy,
    tracker: &BudgetTracker<'_>,
) -> Result<Prediction, PredictError> {
    let compiled = model.model_plans_for(test)?;
    let observables = test.observables();
    let bounded = BoundedTest::new(test, model, &compiled, &observables, unroll);
    let mut findings = bounded.find_outcomes(strategy, tracker)?;
    let is_exhaustive = !findings.timed_out && findings.truncated_combinations == 0;
    let answer = |found: bool| (found || is_exhaustive).then_some(found);
    let (outcomes, listed) = if strategy.prefers_decision && !findings.timed_out {
        // The list is secondary here, so it gets a part of the budget, and is left out if that does
        // not suffice.
        let (outcomes, listed) =
            tracker.attempt(strategy.listing_steps, |tracker| bounded.list_outcomes(&mut findings, tracker));
        if listed { (outcomes, listed) } else { (BTreeMap::new(), listed) }
    } else {
        bounded.list_outcomes(&mut findings, tracker)
    };
    Ok(Prediction {
        model: model.name().to_owned(),
        outcomes,
        race: findings.race(),
        // If the search was cut short, another race may exist.
        race_thin_air: is_exhaustive
            && findings.race() == Race::Racy
            && !findings.grounded.has_race()
            && !findings.replaces_dependencies,
        uninitialised_read: if test.has_undefined_locations() {
            answer(findings.raised.uninitialised)
        } else {
            Some(false)
        },
        bound: unroll,
        truncated_runs: findings.truncated_combinations,
        runs: findings.path_combinations,
        undefinedness: findings.raised.undefinedness(&compiled.plan, is_exhaustive),
        candidate_executions: findings.candidate_executions,
        consistent_executions: findings.consistent_executions,
        can_meet_condition: test.question.as_ref().and_then(|_| answer(findings.has_match)),
        can_miss_condition: test.question.as_ref().and_then(|_| answer(findings.has_mismatch)),
        complete: listed && findings.truncated_combinations == 0,
        observables,
    })
}

/// The results that distinguish models on a test: less than a [`Prediction`], and faster to compute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PredictionSummary {
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
pub fn predict_summary(
    test: &Test,
    model: &Model,
    options: &PredictOptions,
) -> Result<PredictionSummary, PredictError> {
    let tracker = BudgetTracker::new(options.budget);
    let compiled = model.model_plans_for(test)?;
    let observables = test.observables();
    let bounded = BoundedTest::new(test, model, &compiled, &observables, options.unroll.max(1));
    let findings = bounded.find_outcomes(ExplorationStrategy::FULL, &tracker)?;
    let is_final = !findings.timed_out && !findings.unlisted && findings.truncated_combinations == 0;
    let (race, level) = (findings.race(), findings.raised.undefinedness(&compiled.plan, is_final));
    Ok(PredictionSummary {
        race: if is_final { race } else { Race::Unknown },
        level,
        allowed: findings.outcomes.into_allowed().collect(),
    })
}

/// Steps of the solver that take about as long as one step of a list of outcomes.
const SOLVER_STEPS_PER_LISTING_STEP: u64 = 8;

impl BoundedTest<'_> {
    /// Finds outcomes and races.
    ///
    /// A portfolio: outcomes are listed if few steps suffice. Otherwise races and question are decided first,
    /// which is often far cheaper, and outcomes are listed with the rest of the budget. If that fails, or if only
    /// the decision holds beyond the loop bound, no outcomes are listed.
    fn find_outcomes(
        self,
        strategy: ExplorationStrategy,
        tracker: &BudgetTracker<'_>,
    ) -> Result<Findings, PredictError> {
        if !strategy.lists_outcomes {
            return self.decide_without_list(strategy, tracker);
        }
        // A list needs paths that differ only in the final registers, which may be too many.
        let list = |tracker: &BudgetTracker<'_>| match self.find_with_strategy(
            strategy,
            OutcomeTable::default(),
            tracker,
        ) {
            Err(PredictError::TooManyPaths { .. }) => Ok(Findings { timed_out: true, ..Findings::default() }),
            found => found,
        };
        let decide = |tracker: &BudgetTracker<'_>| self.decide_without_list(strategy.without_list(), tracker);
        let weight = step_weight(self.event_count());
        let listed = tracker.attempt(strategy.first_listing_steps / weight, list)?;
        if !listed.timed_out {
            if listed.truncated_combinations == 0 || !strategy.prefers_decision {
                return Ok(listed);
            }
            // The loop bound cut the listed runs. Some reductions decide without any bound.
            let decided = tracker.attempt(strategy.first_listing_steps / weight, decide)?;
            return Ok(if decided.is_unbounded() { decided } else { listed });
        }
        let mut decided = decide(tracker)?;
        if decided.timed_out {
            // The findings of an incomplete search are definite, because it found them in executions.
            decided.add_definite(&listed);
            return Ok(decided);
        }
        let steps =
            if strategy.prefers_decision { strategy.listing_steps / weight } else { strategy.listing_steps };
        let listed = tracker.attempt(steps, list)?;
        let is_shorter = strategy.prefers_decision
            && !decided.ended_early
            && listed.truncated_combinations > decided.truncated_combinations;
        Ok(if listed.timed_out || is_shorter { decided } else { listed })
    }

    /// Decides races and the question, without a list of outcomes.
    fn decide_without_list(
        self,
        strategy: ExplorationStrategy,
        tracker: &BudgetTracker<'_>,
    ) -> Result<Findings, PredictError> {
        let find =
            |tracker: &BudgetTracker<'_>| self.find_with_strategy(strategy, OutcomeTable::default(), tracker);
        if !strategy.whole_program {
            return find(tracker);
        }
        let encode = |tracker: &BudgetTracker<'_>| decide_program(self, None, tracker);
        decide_in_turns(&find, &encode, self.event_count(), tracker)
    }

    /// Returns about how many events the longest runs have.
    fn event_count(self) -> usize {
        let events = |thread: &Thread| {
            let is_repeated = thread.instructions.iter().any(|i| matches!(i.kind, InstructionKind::Flow(_)));
            let turns = if is_repeated { self.unroll as usize } else { 1 };
            let steps = thread.instructions.iter().filter(|i| i.kind.access().is_some());
            steps.count() * turns
        };
        self.test.locations.len() + self.test.threads.iter().map(events).sum::<usize>()
    }

    /// Finds outcomes and races with one strategy; if the table is fixed, only those of its outcomes.
    fn find_with_strategy(
        self,
        strategy: ExplorationStrategy,
        outcomes: OutcomeTable,
        tracker: &BudgetTracker<'_>,
    ) -> Result<Findings, PredictError> {
        let BoundedTest { test, semantic, unroll, .. } = self;
        let paths = if strategy.lists_outcomes {
            enumerate_thread_paths(test, semantic, unroll)
        } else {
            check_supported(test, semantic)?;
            // Paths that differ only in registers that no condition names need no separate exploration.
            let is_shipped = semantic.is_shipped_vulkan;
            let threads = (0..).map(ThreadId).zip(observed_registers(test));
            let paths = threads.map(|(thread, observed)| {
                enumerate_observed_paths(test, thread, unroll, &observed, is_shipped)
            });
            paths.collect()
        };
        let mut findings = Findings { unlisted: !strategy.lists_outcomes, outcomes, ..Findings::default() };
        let is_encoded = strategy.lists_outcomes && strategy.whole_program;
        let paths = match paths {
            // The encoding of given outcomes needs no list of paths.
            Err(PredictError::TooManyPaths { .. }) if is_encoded && findings.outcomes.is_fixed => None,
            paths => Some(paths?),
        };
        let mut start = findings.clone();
        if let Some(paths) = &paths {
            findings.replaces_dependencies = paths.iter().flatten().any(|path| path.replaces_dependencies);
            start = findings.clone();
            let combinations =
                paths.iter().fold(1usize, |product, paths| product.saturating_mul(paths.len()));
            // A list needs at least one step for each combination.
            if strategy.lists_outcomes && tracker.has_less_than(combinations as u64) {
                findings.timed_out = true;
                return Ok(findings);
            }
            let search_steps = if is_encoded { strategy.search_steps } else { u64::MAX };
            self.explore_paths(paths, search_steps, tracker, &mut findings)?;
            if !findings.reached_step_limit || findings.timed_out {
                return Ok(findings);
            }
        }
        // A list needs many calls of the solver, whose steps are short.
        let listing_tracker = BudgetTracker::new(tracker.remaining().divided(SOLVER_STEPS_PER_LISTING_STEP));
        let outcomes = (!findings.unlisted).then(|| findings.outcomes.clone());
        let listed = decide_program(self, outcomes, &listing_tracker)?;
        let is_exhausted = tracker.spend(listing_tracker.spent_steps() / SOLVER_STEPS_PER_LISTING_STEP);
        if let Some(mut listed) = listed {
            // With more steps, the list may be complete.
            listed.timed_out |= is_exhausted && listed.unlisted && !findings.unlisted;
            let Findings { candidate_executions, consistent_executions, .. } = findings;
            return Ok(Findings { candidate_executions, consistent_executions, ..listed });
        }
        findings = start;
        match &paths {
            Some(paths) => self.explore_paths(paths, u64::MAX, tracker, &mut findings)?,
            None => findings.timed_out = true,
        }
        Ok(findings)
    }

    /// Adds the findings of all combinations of paths, each searched for at most this number of steps.
    fn explore_paths(
        self,
        paths: &[Vec<ThreadPath>],
        search_steps: u64,
        tracker: &BudgetTracker<'_>,
        findings: &mut Findings,
    ) -> Result<(), PredictError> {
        let domain = &ValueDomain::new(self.test);
        let explorer = PathExplorer { bounded: self, search_steps, tracker, domain };
        for_each_combination(paths, &mut |combination| {
            explorer.explore_combination(combination, findings)?;
            Ok(explorer.has_open_question(findings))
        })
    }

    /// Returns the outcomes with their status, and if the list is complete; empty if there are too many to list.
    fn list_outcomes(
        self,
        findings: &mut Findings,
        tracker: &BudgetTracker<'_>,
    ) -> (BTreeMap<Outcome, PredictedOutcome>, bool) {
        if findings.unlisted {
            return (BTreeMap::new(), false);
        }
        let found = std::mem::take(&mut findings.outcomes);
        let wanted = OutcomeTable::of_outcomes(found.iter().map(|(outcome, _)| outcome));
        let (sequential, knows_weak) = self.find_shown_outcomes(&SEQUENTIAL, wanted.clone(), tracker);
        let (serial, knows_serial) = self.find_shown_outcomes(&SERIAL, wanted, tracker);
        let outcomes = found.into_iter().map(|(outcome, status)| {
            let predicted = PredictedOutcome {
                allowed: status.is_allowed(),
                thin_air: status == OutcomeStatus::OutOfThinAir,
                // A search that was cut short marks nothing as weak or interleaved.
                weak: knows_weak && !sequential.contains(&outcome),
                serial: !knows_serial || serial.contains(&outcome),
                filtered: !passes_filter(self.test, &outcome),
            };
            (outcome, predicted)
        });
        (outcomes.collect(), !findings.timed_out)
    }

    /// Returns those of the wanted outcomes that a shipped model allows, and true if they are complete.
    fn find_shown_outcomes(
        self,
        model: &Option<Model>,
        wanted: OutcomeTable,
        tracker: &BudgetTracker<'_>,
    ) -> (QuickSet<Outcome>, bool) {
        let found = model.as_ref().and_then(|model| {
            let compiled = model.model_plans_for(self.test).ok()?;
            let semantic = model.execution_semantics();
            let bounded = BoundedTest { compiled: &compiled, semantic, ..self };
            bounded.find_with_strategy(ExplorationStrategy::FULL, wanted, tracker).ok()
        });
        let Some(findings) = found else { return (QuickSet::default(), false) };
        let complete = !findings.timed_out && !findings.unlisted;
        (findings.outcomes.into_allowed().collect(), complete)
    }
}

/// Returns the allowed ones of these outcomes; `None` if the budget ran out, or if the loop bound cut runs off.
///
/// The test's filter is ignored.
pub fn find_allowed_outcomes(
    test: &Test,
    model: &Model,
    observables: &[Observable],
    outcomes: &BTreeSet<&Outcome>,
    unroll: u32,
    tracker: &BudgetTracker<'_>,
) -> Result<Option<BTreeSet<Outcome>>, PredictError> {
    let compiled = model.model_plans_for(test)?;
    let bounded = BoundedTest::new(test, model, &compiled, observables, unroll);
    let table = OutcomeTable::of_outcomes(outcomes.iter().copied());
    let findings = bounded.find_with_strategy(ExplorationStrategy::FULL, table, tracker)?;
    let is_known = !findings.timed_out && !findings.unlisted && findings.truncated_combinations == 0;
    Ok(is_known.then(|| findings.outcomes.into_allowed().collect()))
}

/// Explores the path combinations of a test.
struct PathExplorer<'a> {
    bounded: BoundedTest<'a>,
    /// Step limit of the search of each event structure.
    search_steps: u64,
    tracker: &'a BudgetTracker<'a>,
    domain: &'a ValueDomain<'a>,
}

impl PathExplorer<'_> {
    /// Returns true if the search has time, and further runs can add to the findings.
    fn has_open_question(&self, findings: &mut Findings) -> bool {
        let mut flags = Flags::default();
        let axioms = &self.bounded.compiled.plan.axioms;
        axioms.iter().filter(|axiom| axiom.is_flag).for_each(|axiom| flags.raise_axiom(axiom));
        let is_answered = self.bounded.test.question.is_none() || findings.has_match && findings.has_mismatch;
        let is_decided = findings.unlisted && is_answered && !findings.grounded.lacks_any_of(flags);
        findings.ended_early |= is_decided || findings.outcomes.is_settled();
        !findings.timed_out && !findings.ended_early
    }

    /// Explores one path combination.
    fn explore_combination(
        &self,
        combination: &[&ThreadPath],
        findings: &mut Findings,
    ) -> Result<(), PredictError> {
        if self.tracker.spend(1) {
            findings.timed_out = true;
            return Ok(());
        }
        let BoundedTest { test, compiled, observables, semantic, .. } = self.bounded;
        for skeleton in build_skeletons(test, observables, combination, semantic)? {
            let rules = ValueRules { out_of_thin_air: semantic.allows_thin_air, domain: self.domain };
            let collector = OutcomeCollector::new(test, observables, &skeleton, rules, self.tracker);
            let prepared = compiled.prepare_plan(&skeleton);
            let has_execution = with_smallest_matrix!(skeleton.len(), M =>
                explore_skeleton::<M>(&skeleton, &prepared, &collector, self.search_steps, findings))?;
            let runs = u64::from(has_execution);
            findings.path_combinations = findings.path_combinations.saturating_add(runs);
            findings.truncated_combinations =
                findings.truncated_combinations.saturating_add(if skeleton.is_truncated { runs } else { 0 });
            if findings.timed_out {
                break;
            }
        }
        Ok(())
    }
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
