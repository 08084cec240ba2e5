//! Decides whether one given outcome is allowed, without listing the others.

use std::sync::Arc;

use litmus::{Observable, Outcome, Test};

use crate::brute_force::BruteForce;
use crate::combinations::for_each_skeleton;
use crate::explore::{ExecutionQueries, ExplorationStrategy};
use crate::guarded::GoalEvidence;
use crate::matrix::{Matrix, Matrix16, Matrix32, Matrix64, Matrix256};
use crate::outcome_collector::{ExecutionGoal, OutcomeCollector, ValueRules};
use crate::prepared::PreparedPlan;
use crate::search::StaticBounds;
use crate::skeleton::Skeleton;
use crate::valuation::ValueDomain;
use crate::{Model, PredictError, PredictOptions};
use solver::{Budget, BudgetTracker};

/// Decides whether a model allows one outcome of a test; `None` if the budget ran out first.
///
/// The outcome's values are in the order of [`Test::observables`]. The test's filter is ignored. For several
/// outcomes of one test, use [`OutcomeChecker`].
///
/// # Errors
///
/// As for [`predict`](crate::predict).
pub fn is_outcome_allowed(
    test: &Test,
    model: &Model,
    outcome: &Outcome,
    options: &PredictOptions,
) -> Result<Option<bool>, PredictError> {
    Ok(OutcomeChecker::new(test, model, options)?.is_allowed(outcome, options))
}

/// A test and a model, prepared for queries about single outcomes.
#[derive(Debug)]
pub struct OutcomeChecker<'t> {
    test: &'t Test,
    observables: Vec<Observable>,
    out_of_thin_air: bool,
    domain: ValueDomain<'t>,
    structures: Vec<(Skeleton, Arc<PreparedPlan>, AnyStartState)>,
    /// True if the loop bound ends a thread on some path.
    has_truncated_paths: bool,
}

/// The static bounds of an event structure, on the smallest matrix type that holds it.
#[derive(Debug)]
enum AnyStartState {
    Of16(StartState<Matrix16>),
    Of32(StartState<Matrix32>),
    Of64(StartState<Matrix64>),
    Of256(StartState<Matrix256>),
}

/// The prepared start state of a query on one event structure.
#[derive(Debug)]
enum StartState<M: Matrix> {
    BruteForce(BruteForce<M>),
    Search(Box<StaticBounds<M>>),
}

impl<M: Matrix> StartState<M> {
    fn new(
        skeleton: &Skeleton,
        prepared: &PreparedPlan,
        collector: &OutcomeCollector<'_>,
    ) -> Result<StartState<M>, PredictError> {
        Ok(match BruteForce::new(skeleton, prepared, collector)? {
            Some(brute_force) => StartState::BruteForce(brute_force),
            None => StartState::Search(Box::new(StaticBounds::new(skeleton, prepared)?)),
        })
    }

    fn has_execution(
        &self,
        skeleton: &Skeleton,
        prepared: &PreparedPlan,
        collector: &OutcomeCollector<'_>,
        goal: ExecutionGoal<'_>,
    ) -> Option<bool> {
        match self {
            StartState::BruteForce(brute_force) => {
                Some(brute_force.has_execution(skeleton, prepared, collector, goal))
            }
            StartState::Search(static_bounds) => {
                let search_steps = ExplorationStrategy::FULL.decide_steps;
                let mut queries =
                    ExecutionQueries::new(skeleton, prepared, static_bounds, collector, search_steps);
                queries.find_match(goal, None).map(|evidence| evidence != GoalEvidence::NoExecution)
            }
        }
    }
}

impl<'t> OutcomeChecker<'t> {
    /// Computes the static bounds of the test's event structures. Only the loop bound of `options` is used.
    ///
    /// # Errors
    ///
    /// As for [`predict`](crate::predict).
    pub fn new(
        test: &'t Test,
        model: &Model,
        options: &PredictOptions,
    ) -> Result<OutcomeChecker<'t>, PredictError> {
        let compiled = model.model_plans_for(test)?;
        let semantic = model.execution_semantics();
        let (observables, domain) = (test.observables(), ValueDomain::new(test));
        // The preparation is not charged to the budget of a query.
        let unlimited = BudgetTracker::new(Budget::UNLIMITED);
        let (mut structures, mut has_truncated_paths) = (Vec::new(), false);
        for_each_skeleton(test, semantic, options.unroll.max(1), &mut |skeleton| {
            has_truncated_paths |= skeleton.is_truncated;
            // Only complete runs have outcomes.
            if skeleton.terminated {
                let prepared = compiled.prepare_plan(&skeleton);
                let rules = ValueRules { out_of_thin_air: semantic.allows_thin_air, domain: &domain };
                let collector = OutcomeCollector::new(test, &observables, &skeleton, rules, &unlimited);
                let start = match skeleton.len() {
                    0..=16 => AnyStartState::Of16(StartState::new(&skeleton, &prepared, &collector)?),
                    17..=32 => AnyStartState::Of32(StartState::new(&skeleton, &prepared, &collector)?),
                    33..=64 => AnyStartState::Of64(StartState::new(&skeleton, &prepared, &collector)?),
                    _ => AnyStartState::Of256(StartState::new(&skeleton, &prepared, &collector)?),
                };
                structures.push((skeleton, prepared, start));
            }
            Ok(true)
        })?;
        Ok(OutcomeChecker {
            test,
            observables,
            out_of_thin_air: semantic.allows_thin_air,
            domain,
            structures,
            has_truncated_paths,
        })
    }

    /// Decides whether the outcome is allowed; `None` if unknown.
    ///
    /// The answer is unknown if the budget ran out, or if the loop bound cut some runs off and no complete
    /// run shows the outcome. An outcome whose length differs from [`Test::observables`] is not allowed.
    pub fn is_allowed(&self, outcome: &Outcome, options: &PredictOptions) -> Option<bool> {
        self.is_allowed_within(outcome, &BudgetTracker::new(options.budget))
    }

    /// As [`is_allowed`](Self::is_allowed), within the remaining budget of a tracker.
    pub(crate) fn is_allowed_within(&self, outcome: &Outcome, tracker: &BudgetTracker<'_>) -> Option<bool> {
        if outcome.0.len() != self.observables.len() {
            return Some(false);
        }
        let goal = ExecutionGoal::Outcome(outcome);
        // If the loop bound cut runs off, only an execution with the outcome settles the answer.
        let mut answer = (!self.has_truncated_paths).then_some(false);
        for (skeleton, prepared, state) in &self.structures {
            let rules = ValueRules { out_of_thin_air: self.out_of_thin_air, domain: &self.domain };
            let collector = OutcomeCollector::new(self.test, &self.observables, skeleton, rules, tracker);
            let shown = match state {
                AnyStartState::Of16(start) => start.has_execution(skeleton, prepared, &collector, goal),
                AnyStartState::Of32(start) => start.has_execution(skeleton, prepared, &collector, goal),
                AnyStartState::Of64(start) => start.has_execution(skeleton, prepared, &collector, goal),
                AnyStartState::Of256(start) => start.has_execution(skeleton, prepared, &collector, goal),
            };
            match shown {
                Some(true) => return Some(true),
                Some(false) => {}
                None => answer = None,
            }
        }
        answer
    }
}
