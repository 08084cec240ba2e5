//! Answers the SATISFIABLE and NOSOLUTION queries of `.test` files under a model.

use litmus::Test;

use crate::budget::BudgetTracker;
use crate::combinations::all_skeletons;
use crate::matrix::{Matrix, Matrix8, Matrix16, Matrix32, Matrix64, Matrix128, Matrix256};
use crate::prepared::PreparedPlan;
use crate::search::{Search, StaticBounds};
use crate::skeleton::Skeleton;
use crate::valuation::is_plain;
use crate::{Model, Options, PredictError};

/// Checks each query of a `.test` file: SATISFIABLE if some execution meets its terms, NOSOLUTION if none
/// does.
///
/// `consistent[X]` means the axioms of the model; a query without it ranges over inconsistent executions
/// too. `#dr` counts the pairs of the model's `dr` or `race`, `#rs` those of its `rs`. `without_chains`, the
/// model without availability and visibility chains, answers lines with NOCHAINS.
///
/// The answer is `None` if the budget ran out, or if that form of the model or the relation does not exist. A
/// test without queries has no answers.
///
/// # Errors
///
/// As for [`predict`](crate::predict).
pub fn answer_queries(
    test: &Test,
    model: &Model,
    without_chains: Option<&Model>,
    options: &Options,
) -> Result<Vec<Option<bool>>, PredictError> {
    let purse = BudgetTracker::new(options.budget);
    let Some(khronos) = &test.khronos else { return Ok(Vec::new()) };
    khronos
        .queries
        .iter()
        .map(|query| {
            let Some(model) = (if query.without_chains { without_chains } else { Some(model) }) else {
                return Ok(None);
            };
            let Some(compiled) = model.compiled_for(test)?.query(&query.terms) else { return Ok(None) };
            let mut answer = Some(false);
            for skeleton in all_skeletons(test, model.semantic(), options.unroll.max(1))? {
                if !is_plain(&skeleton) || !skeleton.constraints.is_empty() {
                    let what = "queries about a program with value-dependent control flow".to_owned();
                    return Err(PredictError::NotAvailable { what });
                }
                match satisfiable(&skeleton, &compiled.prepared(&skeleton), &purse)? {
                    Some(true) => {
                        answer = Some(true);
                        break;
                    }
                    Some(false) => {}
                    None => answer = None,
                }
            }
            Ok(answer.map(|exists| query.is_correct(exists)))
        })
        .collect()
}

fn satisfiable(
    skeleton: &Skeleton,
    plan: &PreparedPlan,
    purse: &BudgetTracker<'_>,
) -> Result<Option<bool>, PredictError> {
    match skeleton.len() {
        0..=8 => search::<Matrix8>(skeleton, plan, purse),
        9..=16 => search::<Matrix16>(skeleton, plan, purse),
        17..=32 => search::<Matrix32>(skeleton, plan, purse),
        33..=64 => search::<Matrix64>(skeleton, plan, purse),
        65..=128 => search::<Matrix128>(skeleton, plan, purse),
        _ => search::<Matrix256>(skeleton, plan, purse),
    }
}

fn search<M: Matrix>(
    skeleton: &Skeleton,
    plan: &PreparedPlan,
    purse: &BudgetTracker<'_>,
) -> Result<Option<bool>, PredictError> {
    let ground = StaticBounds::<M>::new(skeleton, plan)?;
    Ok(Search::new(skeleton, plan, &ground, Vec::new(), purse).satisfiable())
}
