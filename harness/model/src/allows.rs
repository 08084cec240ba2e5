//! Whether one given outcome is allowed, without listing the others.

use std::sync::Arc;
use std::time::Instant;

use litmus::{Observable, Outcome, Test, Value};

use crate::combine::{Combiner, ValueRules};
use crate::matrix::{Matrix, Matrix8, Matrix16, Matrix32, Matrix64, Matrix256};
use crate::prepared::Prepared;
use crate::search::{Deadline, Flags, Goal, Ground, Leaf, ReadChoice, Search};
use crate::skeleton::{FinalValue, Skeleton};
use crate::symbolic::Symbolic;
use crate::valuation::reads_of;
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
        let mut answer = Some(false);
        for (skeleton, prepared, ground) in &self.grounds {
            let rules = ValueRules { out_of_thin_air: self.out_of_thin_air, domain: &self.domain };
            let combiner = Combiner::new(self.test, &self.observables, skeleton, rules, deadline);
            let shown = match ground {
                AnyGround::Of8(ground) => search(skeleton, prepared, ground, &combiner, outcome),
                AnyGround::Of16(ground) => search(skeleton, prepared, ground, &combiner, outcome),
                AnyGround::Of32(ground) => search(skeleton, prepared, ground, &combiner, outcome),
                AnyGround::Of64(ground) => search(skeleton, prepared, ground, &combiner, outcome),
                AnyGround::Of256(ground) => search(skeleton, prepared, ground, &combiner, outcome),
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

fn search<M: Matrix>(
    skeleton: &Skeleton,
    prepared: &Prepared,
    ground: &Ground<M>,
    combiner: &Combiner<'_>,
    outcome: &Outcome,
) -> Option<bool> {
    let mut search = Search::new(skeleton, prepared, ground, skeleton.observed_storages(), combiner.deadline);
    if combiner.plain {
        let Some((reads, alike)) = sources(skeleton, ground, outcome) else { return Some(false) };
        search.restrict(reads, alike);
    }
    let mut goal = Shown { combiner, outcome, found: false, timed_out: false };
    let complete = search.run(&mut goal);
    (goal.found || complete && !goal.timed_out).then_some(goal.found)
}

/// The reads with those writes that an execution with this outcome may read from, and whether all of these show the same;
/// `None` where nothing shows the outcome. Every value that is written must be known.
fn sources<M: Matrix>(
    skeleton: &Skeleton,
    ground: &Ground<M>,
    outcome: &Outcome,
) -> Option<(Vec<ReadChoice>, bool)> {
    let mut reads = ground.reads.clone();
    let mut alike = true;
    for (observed, wanted) in skeleton.finals.iter().zip(&outcome.0) {
        let FinalValue::Expression(expression) = observed else { continue };
        match reads_of(expression).as_slice() {
            [] => {
                expression.known().filter(|value| value == wanted)?;
            }
            [read] => {
                let choice = reads.iter_mut().find(|choice| choice.read == usize::from(*read))?;
                choice.candidates.retain(|write| {
                    let stored = skeleton.events[*write].stored.as_ref().and_then(Symbolic::known);
                    expression.evaluate(&mut |_| stored) == Some(*wanted)
                });
            }
            _ => alike = false,
        }
    }
    Some((reads, alike))
}

/// The search for an execution that shows an outcome.
struct Shown<'c, 'a> {
    combiner: &'c Combiner<'a>,
    outcome: &'c Outcome,
    found: bool,
    timed_out: bool,
}

impl Goal for Shown<'_, '_> {
    fn wants(&mut self, _: Flags, reads_from: &[Option<u16>]) -> bool {
        !self.found && self.combiner.shows_so_far(self.outcome, reads_from, &[]) != Some(false)
    }

    fn take(&mut self, leaf: Leaf) {
        match self.combiner.shows(&leaf, self.outcome) {
            Some(shown) => self.found |= shown,
            None => self.timed_out = true,
        }
    }
}
