//! Whether one given outcome is allowed, without listing the others.

use std::sync::Arc;
use std::time::Instant;

use litmus::{Observable, Outcome, Test, Value};

use crate::combine::{Combiner, Sought, ValueRules};
use crate::explore::find;
use crate::matrix::{Matrix8, Matrix16, Matrix32, Matrix64, Matrix256};
use crate::prepared::Prepared;
use crate::search::{Deadline, Ground};
use crate::skeleton::Skeleton;
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
    domain: Vec<Value>,
    grounds: Vec<(Skeleton, Arc<Prepared>, AnyGround)>,
}

/// A ground on matrices of the smallest size that holds it.
#[derive(Debug)]
enum AnyGround {
    Of8(Ground<Matrix8>),
    Of16(Ground<Matrix16>),
    Of32(Ground<Matrix32>),
    Of64(Ground<Matrix64>),
    Of256(Ground<Matrix256>),
}

impl<'t> OutcomeQuestion<'t> {
    /// Works out what the program alone decides. Of `options` only the unrolling of loops matters here.
    ///
    /// # Errors
    /// As for [`predict`](crate::predict).
    pub fn new(test: &'t Test, model: &Model, options: &Options) -> Result<OutcomeQuestion<'t>, PredictError> {
        let compiled = model.compiled_for(test)?;
        let semantic = model.semantic();
        let mut grounds = Vec::new();
        predict::for_each_skeleton(test, semantic, options.unroll.max(1), &mut |skeleton| {
            if skeleton.terminated {
                let prepared = compiled.prepared(&skeleton);
                let ground = match skeleton.len() {
                    0..=8 => AnyGround::Of8(Ground::new(&skeleton, &prepared)?),
                    9..=16 => AnyGround::Of16(Ground::new(&skeleton, &prepared)?),
                    17..=32 => AnyGround::Of32(Ground::new(&skeleton, &prepared)?),
                    33..=64 => AnyGround::Of64(Ground::new(&skeleton, &prepared)?),
                    _ => AnyGround::Of256(Ground::new(&skeleton, &prepared)?),
                };
                grounds.push((skeleton, prepared, ground));
            }
            Ok(true)
        })?;
        Ok(OutcomeQuestion {
            test,
            observables: test.observables(),
            out_of_thin_air: semantic.values_free,
            domain: predict::value_domain(test),
            grounds,
        })
    }

    /// Whether the outcome is allowed; `None` when the time was up before that was known. An outcome of another length
    /// than [`Test::observables`] is none of the test's.
    pub fn allows(&self, outcome: &Outcome, options: &Options) -> Option<bool> {
        if outcome.0.len() != self.observables.len() {
            return Some(false);
        }
        let deadline = Deadline(options.timeout.map(|timeout| Instant::now() + timeout));
        let sought = Sought::Outcome(outcome);
        let mut answer = Some(false);
        for (skeleton, prepared, ground) in &self.grounds {
            let rules = ValueRules { out_of_thin_air: self.out_of_thin_air, domain: &self.domain };
            let combiner = Combiner::new(self.test, &self.observables, skeleton, rules, deadline);
            let shown = match ground {
                AnyGround::Of8(ground) => find(skeleton, prepared, ground, &combiner, sought, None),
                AnyGround::Of16(ground) => find(skeleton, prepared, ground, &combiner, sought, None),
                AnyGround::Of32(ground) => find(skeleton, prepared, ground, &combiner, sought, None),
                AnyGround::Of64(ground) => find(skeleton, prepared, ground, &combiner, sought, None),
                AnyGround::Of256(ground) => find(skeleton, prepared, ground, &combiner, sought, None),
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
