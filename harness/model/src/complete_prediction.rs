//! Completes predictions without an outcome list, for the outcomes that a run observed.

use std::collections::BTreeSet;

use litmus::{Dialect, Outcome, PredictedOutcome, Prediction, Race, Test};

use crate::candidate::passes_filter;
use crate::model::{SEQUENTIAL, SERIAL};
use crate::predict::find_allowed_outcomes;
use crate::{Model, PredictError, PredictOptions};
use solver::BudgetTracker;

/// Completes a prediction with too many outcomes to list, for the outcomes in `observed`.
///
/// Each of them gets a row. The prediction then counts as complete, since outcomes that were not observed
/// need no row. Returns `None` if the prediction was cut short, so that races are not excluded, or if the
/// budget ran out. A complete prediction stays unchanged.
///
/// # Errors
///
/// As for [`predict`](crate::predict).
pub fn complete_prediction<'o>(
    prediction: &Prediction,
    test: &Test,
    model: &Model,
    observed: impl IntoIterator<Item = &'o Outcome>,
    options: &PredictOptions,
) -> Result<Option<Prediction>, PredictError> {
    if prediction.complete {
        return Ok(Some(prediction.clone()));
    }
    // Rows of a search that was cut short may be wrong; an unlisted search has no rows.
    let sound = prediction.race == Race::Free || prediction.outcomes.is_empty();
    if prediction.race == Race::Unknown
        || prediction.truncated_runs > 0
        || !sound
        || test.dialect == Dialect::Hsa
    {
        return Ok(None);
    }
    let tracker = BudgetTracker::new(options.budget);
    let unroll = options.unroll.max(1);
    let observed: BTreeSet<&Outcome> = observed.into_iter().collect();
    let find_allowed = |model: &Model| {
        find_allowed_outcomes(test, model, &prediction.observables, &observed, unroll, &tracker)
    };
    let (Some(sequential), Some(serial)) = (&*SEQUENTIAL, &*SERIAL) else { return Ok(None) };
    let (Some(allowed), Some(strong)) = (find_allowed(model)?, find_allowed(sequential)?) else {
        return Ok(None);
    };
    let serial = find_allowed(serial)?;
    let mut completed = prediction.clone();
    for outcome in observed {
        let filtered = !passes_filter(test, outcome);
        let serial = serial.as_ref().is_none_or(|serial| serial.contains(outcome));
        // The out-of-thin-air mark is not computed, since it decides no verdict.
        let predicted = PredictedOutcome {
            allowed: allowed.contains(outcome),
            weak: !strong.contains(outcome),
            serial,
            filtered,
            thin_air: false,
        };
        completed.outcomes.insert(outcome.clone(), predicted);
    }
    completed.complete = true;
    Ok(Some(completed))
}
