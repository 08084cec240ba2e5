//! Whether one given outcome is allowed, without listing the others.

use std::sync::Arc;

use litmus::{Observable, Outcome, Test};

use crate::budget::{Budget, BudgetTracker};
use crate::combine::{ExecutionGoal, OutcomeCollector, ValueRules};
use crate::explore::{ExecutionQueries, ExplorationStrategy};
use crate::few::BruteForce;
use crate::matrix::{Matrix, Matrix8, Matrix16, Matrix32, Matrix64, Matrix128, Matrix256};
use crate::prepared::Prepared;
use crate::refute::Shown;
use crate::search::StaticBounds;
use crate::skeleton::Skeleton;
use crate::valuation::ValueDomain;
use crate::{Model, Options, PredictError, predict};

/// Whether a model allows an outcome of a test, one whose values stand in the order of [`Test::observables`]; `None` when
/// the time was up before that was known. A test's filter plays no part in it.
///
/// Whoever has several outcomes of one test asks an [`OutcomeQuestion`].
///
/// # Errors
/// As for [`predict`](crate::predict).
pub fn allows(
    test: &Test,
    model: &Model,
    outcome: &Outcome,
    options: &Options,
) -> Result<Option<bool>, PredictError> {
    Ok(OutcomeQuestion::new(test, model, options)?.allows(outcome, options))
}

/// A test and a model, ready to be asked about outcomes one by one.
#[derive(Debug)]
pub struct OutcomeQuestion<'t> {
    test: &'t Test,
    observables: Vec<Observable>,
    out_of_thin_air: bool,
    domain: ValueDomain<'t>,
    grounds: Vec<(Skeleton, Arc<Prepared>, AnyGround)>,
    /// Whether the bound of loops ends a thread on some path.
    cut: bool,
}

/// What is known of a skeleton, on matrices of the smallest size that holds it.
#[derive(Debug)]
enum AnyGround {
    Of8(Start<Matrix8>),
    Of16(Start<Matrix16>),
    Of32(Start<Matrix32>),
    Of64(Start<Matrix64>),
    Of128(Start<Matrix128>),
    Of256(Start<Matrix256>),
}

/// Where the question begins.
#[derive(Debug)]
enum Start<M: Matrix> {
    Few(BruteForce<M>),
    Many(Box<StaticBounds<M>>),
}

impl<M: Matrix> Start<M> {
    fn new(
        skeleton: &Skeleton,
        prepared: &Prepared,
        combiner: &OutcomeCollector<'_>,
    ) -> Result<Start<M>, PredictError> {
        Ok(match BruteForce::new(skeleton, prepared, combiner)? {
            Some(few) => Start::Few(few),
            None => Start::Many(Box::new(StaticBounds::new(skeleton, prepared)?)),
        })
    }

    fn finds(
        &self,
        skeleton: &Skeleton,
        prepared: &Prepared,
        combiner: &OutcomeCollector<'_>,
        sought: ExecutionGoal<'_>,
    ) -> Option<bool> {
        match self {
            Start::Few(few) => Some(few.has_execution(skeleton, prepared, combiner, sought)),
            Start::Many(ground) => {
                let alone = ExplorationStrategy::FULL.decide_steps;
                let mut questions = ExecutionQueries::new(skeleton, prepared, ground, combiner, alone);
                questions.find_match(sought, None).map(|shown| shown != Shown::Never)
            }
        }
    }
}

impl<'t> OutcomeQuestion<'t> {
    /// Works out what the program alone decides. Of `options` only the unrolling of loops matters here.
    ///
    /// # Errors
    /// As for [`predict`](crate::predict).
    pub fn new(
        test: &'t Test,
        model: &Model,
        options: &Options,
    ) -> Result<OutcomeQuestion<'t>, PredictError> {
        let compiled = model.compiled_for(test)?;
        let semantic = model.semantic();
        let (observables, domain) = (test.observables(), ValueDomain::new(test));
        let free = BudgetTracker::new(Budget::UNLIMITED);
        let (mut grounds, mut cut) = (Vec::new(), false);
        predict::for_each_skeleton(test, semantic, options.unroll.max(1), &mut |skeleton| {
            cut |= skeleton.cut;
            if skeleton.terminated {
                let prepared = compiled.prepared(&skeleton);
                let rules = ValueRules { out_of_thin_air: semantic.values_free, domain: &domain };
                let combiner = OutcomeCollector::new(test, &observables, &skeleton, rules, &free);
                let ground = match skeleton.len() {
                    0..=8 => AnyGround::Of8(Start::new(&skeleton, &prepared, &combiner)?),
                    9..=16 => AnyGround::Of16(Start::new(&skeleton, &prepared, &combiner)?),
                    17..=32 => AnyGround::Of32(Start::new(&skeleton, &prepared, &combiner)?),
                    33..=64 => AnyGround::Of64(Start::new(&skeleton, &prepared, &combiner)?),
                    65..=128 => AnyGround::Of128(Start::new(&skeleton, &prepared, &combiner)?),
                    _ => AnyGround::Of256(Start::new(&skeleton, &prepared, &combiner)?),
                };
                grounds.push((skeleton, prepared, ground));
            }
            Ok(true)
        })?;
        Ok(OutcomeQuestion { test, observables, out_of_thin_air: semantic.values_free, domain, grounds, cut })
    }

    /// Whether the outcome is allowed; `None` when the budget was used up before that was known, or runs are cut off at the bound of loops and none of
    /// the others shows it. An outcome of another length than [`Test::observables`] is none of the test's.
    pub fn allows(&self, outcome: &Outcome, options: &Options) -> Option<bool> {
        self.allows_within(outcome, &BudgetTracker::new(options.budget))
    }

    /// The same out of a purse.
    pub(crate) fn allows_within(&self, outcome: &Outcome, purse: &BudgetTracker<'_>) -> Option<bool> {
        if outcome.0.len() != self.observables.len() {
            return Some(false);
        }
        let sought = ExecutionGoal::Outcome(outcome);
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
