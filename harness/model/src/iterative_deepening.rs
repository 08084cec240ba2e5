//! Iterative deepening of the loop bound until no run is cut off.

use litmus::{Prediction, QuestionKind, Race, Test};

use crate::conflict::has_only_ordered_accesses;
use crate::explore::ExplorationStrategy;
use crate::predict::predict_with_tracker;
use crate::{Model, PredictError, PredictOptions};
use solver::BudgetTracker;

/// The largest loop bound.
const MAX_BOUND: u32 = 8;

/// The largest loop bound while each takes few steps.
const MAX_CHEAP_BOUND: u32 = 32;

/// Number of steps that a further loop bound may take to count as cheap.
const CHEAP_STEPS: u64 = 1_000_000;

/// As [`predict`](crate::predict), with a growing loop bound.
///
/// The bound starts at that of `options`. It doubles, up to 8, while runs are cut off and the budget lasts, and
/// up to 32 while that is cheap. It
/// stays if longer runs can change neither races nor the answer to the question. With a
/// question, outcomes are listed only if that costs about as much as the answer.
///
/// # Errors
///
/// As for [`predict`](crate::predict). If a larger loop bound exceeds the engine's limits, the last
/// successful bound gives the answer.
pub fn predict_with_growing_bound(
    test: &Test,
    model: &Model,
    options: &PredictOptions,
) -> Result<Prediction, PredictError> {
    let tracker = BudgetTracker::new(options.budget);
    let strategy = match test.question {
        Some(_) => ExplorationStrategy::DECIDE_THEN_LIST,
        None => ExplorationStrategy::FULL,
    };
    let is_race_free = model.execution_semantics().is_shipped_vulkan && has_only_ordered_accesses(test);
    let predict = |unroll| {
        let mut prediction = predict_with_tracker(test, model, unroll, strategy, &tracker)?;
        // Longer runs repeat the same accesses. A search without a loop bound that ran out of time stays unknown.
        if prediction.race == Race::Unknown && prediction.truncated_runs > 0 && is_race_free {
            prediction.race = Race::Free;
        }
        Ok::<Prediction, PredictError>(prediction)
    };
    let mut prediction = predict(options.unroll.max(1))?;
    let mut max_bound = MAX_BOUND;
    while prediction.truncated_runs > 0
        && !is_answered(test, &prediction)
        && prediction.bound < max_bound
        && !tracker.is_exhausted()
    {
        let before = tracker.spent_steps();
        let Ok(next) = predict(prediction.bound * 2) else { break };
        let is_cheap = tracker.spent_steps().saturating_sub(before) <= CHEAP_STEPS;
        max_bound = if is_cheap { MAX_CHEAP_BOUND } else { MAX_BOUND };
        // A search that was stopped early may have fewer findings than the last complete one.
        if tracker.is_exhausted() {
            add_definite_findings(&mut prediction, &next);
            break;
        }
        prediction = next;
    }
    Ok(prediction)
}

/// Returns true if the race and the answer to the question hold for all longer runs.
fn is_answered(test: &Test, prediction: &Prediction) -> bool {
    let is_question_answered = test.question.as_ref().is_some_and(|question| match question.kind {
        QuestionKind::Exists | QuestionKind::NotExists | QuestionKind::Final => {
            prediction.can_meet_condition == Some(true)
        }
        QuestionKind::Forall => prediction.can_miss_condition == Some(true),
    });
    prediction.race != Race::Unknown && is_question_answered
}

/// Adds the definite findings of a prediction that was cut short.
fn add_definite_findings(prediction: &mut Prediction, partial: &Prediction) {
    if partial.race == Race::Racy {
        (prediction.race, prediction.race_thin_air) = (Race::Racy, false);
    }
    for (known, found) in [
        (&mut prediction.can_meet_condition, partial.can_meet_condition),
        (&mut prediction.can_miss_condition, partial.can_miss_condition),
    ] {
        if found == Some(true) {
            *known = found;
        }
    }
}
