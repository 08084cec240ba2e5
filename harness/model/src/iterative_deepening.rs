//! Iterative deepening of the loop bound until no run is cut off.

use litmus::{Prediction, QuestionKind, Race, Test};

use crate::conflict::has_only_ordered_accesses;
use crate::explore::ExplorationStrategy;
use crate::model::SEQUENTIAL;
use crate::predict::predict_with_tracker;
use crate::progress::{Fairness, ProgressGuarantee, ProgressLimits, ProgressModel, check_termination};
use crate::{Model, PredictError, PredictOptions};
use solver::BudgetTracker;

/// The largest loop bound.
const MAX_BOUND: u32 = 8;

/// The largest loop bound while each takes few steps.
const MAX_CHEAP_BOUND: u32 = 256;

/// Number of steps that a further loop bound may take to count as cheap.
const CHEAP_STEPS: u64 = 1_000_000;

/// As [`predict`](crate::predict), with a growing loop bound.
///
/// The bound starts at that of `options`. It doubles, up to 8, while runs are cut off and the budget lasts, and
/// up to 256 while that is cheap and no run is infinite. It
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
    Ok(GrowingPrediction::start(test, model, options)?.deepen())
}

/// A prediction at the first loop bound, which may grow.
///
/// Other questions about the test can be answered before it grows, which may take the rest of the budget.
pub struct GrowingPrediction<'a> {
    test: &'a Test,
    model: &'a Model,
    tracker: BudgetTracker<'a>,
    /// True if the kinds of the test's accesses exclude races.
    is_ordered: bool,
    prediction: Prediction,
}

impl<'a> GrowingPrediction<'a> {
    /// Predicts a test with the loop bound of `options`.
    ///
    /// # Errors
    ///
    /// As for [`predict`](crate::predict).
    pub fn start(
        test: &'a Test,
        model: &'a Model,
        options: &PredictOptions<'a>,
    ) -> Result<GrowingPrediction<'a>, PredictError> {
        let tracker = BudgetTracker::new(options.budget);
        let is_ordered = has_only_ordered_accesses(test);
        let prediction = predict_bounded(test, model, options.unroll.max(1), is_ordered, &tracker)?;
        Ok(GrowingPrediction { test, model, tracker, is_ordered, prediction })
    }

    /// Returns the prediction at the present bound.
    pub fn prediction(&self) -> &Prediction {
        &self.prediction
    }

    /// Lets the bound grow as [`predict_with_growing_bound`] describes, with the rest of the budget.
    pub fn deepen(self) -> Prediction {
        let GrowingPrediction { test, model, tracker, is_ordered, mut prediction } = self;
        let mut max_bound = MAX_BOUND;
        while prediction.truncated_runs > 0
            && !is_answered(test, &prediction, is_ordered)
            && prediction.bound < max_bound
            && !tracker.is_exhausted()
        {
            let before = tracker.spent_steps();
            let Ok(next) = predict_bounded(test, model, prediction.bound * 2, is_ordered, &tracker) else {
                break;
            };
            let is_cheap = tracker.spent_steps().saturating_sub(before) <= CHEAP_STEPS;
            // Every bound cuts an infinite run, so a larger one than usual hardly answers more.
            let may_end = is_cheap && (next.bound < MAX_BOUND || !has_infinite_run(test, &tracker));
            max_bound = if may_end { MAX_CHEAP_BOUND } else { MAX_BOUND };
            // A search that was stopped early may have fewer findings than the last complete one.
            if tracker.is_exhausted() {
                add_definite_findings(&mut prediction, &next);
                break;
            }
            prediction = next;
        }
        prediction
    }
}

/// Limit of states for the search for an infinite run.
const MAX_STATES: usize = 1_000;

/// Returns true if some interleaving is known never to end although every thread goes on: it does more than wait.
fn has_infinite_run(test: &Test, tracker: &BudgetTracker<'_>) -> bool {
    let limits = ProgressLimits { max_states: MAX_STATES, budget: tracker.remaining() };
    let fair = ProgressModel::uniform(ProgressGuarantee::Fair);
    let Some(interleavings) = &*SEQUENTIAL else { return false };
    check_termination(test, interleavings, &fair, Fairness::Weak, &limits)
        .is_ok_and(|answer| answer.terminates == Some(false))
}

/// Predicts a test with one loop bound. `is_ordered`: the kinds of its accesses exclude races.
fn predict_bounded(
    test: &Test,
    model: &Model,
    unroll: u32,
    is_ordered: bool,
    tracker: &BudgetTracker<'_>,
) -> Result<Prediction, PredictError> {
    let strategy = match test.question {
        Some(_) => ExplorationStrategy::DECIDE_THEN_LIST,
        None => ExplorationStrategy::FULL,
    };
    let mut prediction = predict_with_tracker(test, model, unroll, strategy, tracker)?;
    // Longer runs repeat the same accesses. A search without a loop bound that ran out of time stays unknown.
    if prediction.race == Race::Unknown
        && prediction.truncated_runs > 0
        && is_ordered
        && model.execution_semantics().is_shipped_vulkan
    {
        prediction.race = Race::Free;
    }
    Ok(prediction)
}

/// Returns true if longer runs would change neither the race nor the answer to the question.
///
/// If all accesses are mutually ordered atomics, longer runs add no access that could race.
fn is_answered(test: &Test, prediction: &Prediction, is_ordered: bool) -> bool {
    let is_question_answered = test.question.as_ref().is_some_and(|question| match question.kind {
        QuestionKind::Exists | QuestionKind::NotExists | QuestionKind::Final => {
            prediction.can_meet_condition == Some(true)
        }
        QuestionKind::Forall => prediction.can_miss_condition == Some(true),
    });
    (prediction.race != Race::Unknown || is_ordered) && is_question_answered
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
