//! Decides whether one given outcome is allowed, without listing the others.

use std::sync::Arc;

use litmus::{Observable, Outcome, Test};

use crate::budget::{Budget, BudgetTracker};
use crate::combinations::for_each_skeleton;
use crate::combine::{ExecutionGoal, OutcomeCollector, ValueRules};
use crate::explore::{ExecutionQueries, ExplorationStrategy};
use crate::few::BruteForce;
use crate::matrix::{Matrix, Matrix8, Matrix16, Matrix32, Matrix64, Matrix128, Matrix256};
use crate::prepared::PreparedPlan;
use crate::refute::GoalEvidence;
use crate::search::StaticBounds;
use crate::skeleton::Skeleton;
use crate::valuation::ValueDomain;
use crate::{Model, Options, PredictError};

/// Decides whether a model allows one outcome of a test; `None` if the budget ran out first.
///
/// The outcome's values are in the order of [`Test::observables`]. The test's filter is ignored. For several
/// outcomes of one test, use [`OutcomeQuestion`].
///
/// # Errors
///
/// As for [`predict`](crate::predict).
pub fn allows(
    test: &Test,
    model: &Model,
    outcome: &Outcome,
    options: &Options,
) -> Result<Option<bool>, PredictError> {
    Ok(OutcomeQuestion::new(test, model, options)?.allows(outcome, options))
}

/// A test and a model, prepared for queries about single outcomes.
#[derive(Debug)]
pub struct OutcomeQuestion<'t> {
    test: &'t Test,
    observables: Vec<Observable>,
    out_of_thin_air: bool,
    domain: ValueDomain<'t>,
    grounds: Vec<(Skeleton, Arc<PreparedPlan>, AnyGround)>,
    /// True if the loop bound ends a thread on some path.
    cut: bool,
}

/// The static bounds of an event structure, on the smallest matrix type that holds it.
#[derive(Debug)]
enum AnyGround {
    Of8(StartState<Matrix8>),
    Of16(StartState<Matrix16>),
    Of32(StartState<Matrix32>),
    Of64(StartState<Matrix64>),
    Of128(StartState<Matrix128>),
    Of256(StartState<Matrix256>),
}

/// The prepared start state of a query on one event structure.
#[derive(Debug)]
enum StartState<M: Matrix> {
    Few(BruteForce<M>),
    Many(Box<StaticBounds<M>>),
}

impl<M: Matrix> StartState<M> {
    fn new(
        skeleton: &Skeleton,
        prepared: &PreparedPlan,
        combiner: &OutcomeCollector<'_>,
    ) -> Result<StartState<M>, PredictError> {
        Ok(match BruteForce::new(skeleton, prepared, combiner)? {
            Some(few) => StartState::Few(few),
            None => StartState::Many(Box::new(StaticBounds::new(skeleton, prepared)?)),
        })
    }

    fn finds(
        &self,
        skeleton: &Skeleton,
        prepared: &PreparedPlan,
        combiner: &OutcomeCollector<'_>,
        sought: ExecutionGoal<'_>,
    ) -> Option<bool> {
        match self {
            StartState::Few(few) => Some(few.has_execution(skeleton, prepared, combiner, sought)),
            StartState::Many(ground) => {
                let alone = ExplorationStrategy::FULL.decide_steps;
                let mut questions = ExecutionQueries::new(skeleton, prepared, ground, combiner, alone);
                questions.find_match(sought, None).map(|shown| shown != GoalEvidence::Never)
            }
        }
    }
}

impl<'t> OutcomeQuestion<'t> {
    /// Computes the static bounds of the test's event structures. Only the loop bound of `options` is used.
    ///
    /// # Errors
    ///
    /// As for [`predict`](crate::predict).
    pub fn new(
        test: &'t Test,
        model: &Model,
        options: &Options,
    ) -> Result<OutcomeQuestion<'t>, PredictError> {
        let compiled = model.compiled_for(test)?;
        let semantic = model.semantic();
        let (observables, domain) = (test.observables(), ValueDomain::new(test));
        // The preparation is not charged to the budget of a query.
        let free = BudgetTracker::new(Budget::UNLIMITED);
        let (mut grounds, mut cut) = (Vec::new(), false);
        for_each_skeleton(test, semantic, options.unroll.max(1), &mut |skeleton| {
            cut |= skeleton.cut;
            // Only complete runs have outcomes.
            if skeleton.terminated {
                let prepared = compiled.prepared(&skeleton);
                let rules = ValueRules { out_of_thin_air: semantic.values_free, domain: &domain };
                let combiner = OutcomeCollector::new(test, &observables, &skeleton, rules, &free);
                let ground = match skeleton.len() {
                    0..=8 => AnyGround::Of8(StartState::new(&skeleton, &prepared, &combiner)?),
                    9..=16 => AnyGround::Of16(StartState::new(&skeleton, &prepared, &combiner)?),
                    17..=32 => AnyGround::Of32(StartState::new(&skeleton, &prepared, &combiner)?),
                    33..=64 => AnyGround::Of64(StartState::new(&skeleton, &prepared, &combiner)?),
                    65..=128 => AnyGround::Of128(StartState::new(&skeleton, &prepared, &combiner)?),
                    _ => AnyGround::Of256(StartState::new(&skeleton, &prepared, &combiner)?),
                };
                grounds.push((skeleton, prepared, ground));
            }
            Ok(true)
        })?;
        Ok(OutcomeQuestion { test, observables, out_of_thin_air: semantic.values_free, domain, grounds, cut })
    }

    /// Decides whether the outcome is allowed; `None` if unknown.
    ///
    /// The answer is unknown if the budget ran out, or if the loop bound cut some runs off and no complete
    /// run shows the outcome. An outcome whose length differs from [`Test::observables`] is not allowed.
    pub fn allows(&self, outcome: &Outcome, options: &Options) -> Option<bool> {
        self.allows_within(outcome, &BudgetTracker::new(options.budget))
    }

    /// The same out of a purse.
    pub(crate) fn allows_within(&self, outcome: &Outcome, purse: &BudgetTracker<'_>) -> Option<bool> {
        if outcome.0.len() != self.observables.len() {
            return Some(false);
        }
        let sought = ExecutionGoal::Outcome(outcome);
        // If the loop bound cut runs off, only an execution with the outcome settles the answer.
        let mut answer = (!self.cut).then_some(false);
        for (skeleton, prepared, ground) in &self.grounds {
            let rules = ValueRules { out_of_thin_air: self.out_of_thin_air, domain: &self.domain };
            let combiner = OutcomeCollector::new(self.test, &self.observables, skeleton, rules, purse);
            let shown = match ground {
                AnyGround::Of8(start) => start.finds(skeleton, prepared, &combiner, sought),
                AnyGround::Of16(start) => start.finds(skeleton, prepared, &combiner, sought),
                AnyGround::Of32(start) => start.finds(skeleton, prepared, &combiner, sought),
                AnyGround::Of64(start) => start.finds(skeleton, prepared, &combiner, sought),
                AnyGround::Of128(start) => start.finds(skeleton, prepared, &combiner, sought),
                AnyGround::Of256(start) => start.finds(skeleton, prepared, &combiner, sought),
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
