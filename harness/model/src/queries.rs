//! Answers the SATISFIABLE and NOSOLUTION queries of `.test` files under a model.

use litmus::Test;

use crate::combinations::collect_skeletons;
use crate::matrix::with_smallest_matrix;
use crate::prepared::PreparedPlan;
use crate::search::{SkeletonSearch, StaticBounds};
use crate::skeleton::Skeleton;
use crate::valuation::has_independent_values;
use crate::{Model, PredictError, PredictOptions};
use solver::BudgetTracker;

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
    options: &PredictOptions,
) -> Result<Vec<Option<bool>>, PredictError> {
    let tracker = BudgetTracker::new(options.budget);
    let Some(khronos) = &test.khronos else { return Ok(Vec::new()) };
    khronos
        .queries
        .iter()
        .map(|query| {
            let Some(model) = (if query.without_chains { without_chains } else { Some(model) }) else {
                return Ok(None);
            };
            let Some(compiled) = model.model_plans_for(test)?.plans_for_query(&query.terms) else {
                return Ok(None);
            };
            let mut answer = Some(false);
            for skeleton in collect_skeletons(test, model.execution_semantics(), options.unroll.max(1))? {
                if !has_independent_values(&skeleton) || !skeleton.constraints.is_empty() {
                    let what = "queries about a program with value-dependent control flow".to_owned();
                    return Err(PredictError::NotAvailable { what });
                }
                match is_satisfiable(&skeleton, &compiled.prepare_plan(&skeleton), &tracker)? {
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

fn is_satisfiable(
    skeleton: &Skeleton,
    plan: &PreparedPlan,
    tracker: &BudgetTracker<'_>,
) -> Result<Option<bool>, PredictError> {
    with_smallest_matrix!(skeleton.len(), M => {
        let static_bounds = StaticBounds::<M>::new(skeleton, plan, None)?;
        Ok(SkeletonSearch::new(skeleton, plan, &static_bounds, tracker).is_satisfiable())
    })
}
