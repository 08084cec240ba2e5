//! Completes predictions without an outcome list, for the outcomes that a run observed.

use std::collections::BTreeSet;

use litmus::{Dialect, Outcome, PredictedOutcome, Prediction, Race, Test};

use crate::allows::OutcomeQuestion;
use crate::budget::BudgetTracker;
use crate::sequential::{SequentialMachine, Turns};
use crate::{Model, Options, PredictError};

/// Completes a prediction with too many outcomes to list, for the outcomes in `seen`.
///
/// Each of them gets a row. The prediction then counts as complete, since outcomes that were not observed
/// need no row. Returns `None` if the prediction was cut short, so that races are not excluded, or if the
/// budget ran out. A complete prediction stays unchanged.
///
/// # Errors
///
/// As for [`predict`](crate::predict).
pub fn settle<'o>(
    prediction: &Prediction,
    test: &Test,
    model: &Model,
    seen: impl IntoIterator<Item = &'o Outcome>,
    options: &Options,
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
    let purse = BudgetTracker::new(options.budget);
    let Some(Ok(sequential)) = Model::shipped("sc") else { return Ok(None) };
    let allowed = OutcomeQuestion::new(test, model, options)?;
    let strong = OutcomeQuestion::new(test, &sequential, options)?;
    let unroll = options.unroll.max(1);
    let seen: BTreeSet<&Outcome> = seen.into_iter().collect();
    let mut machine = SequentialMachine::new(test, &prediction.observables, unroll);
    let (serial, knows_serial) =
        machine.outcomes(Turns::Serial, (|outcome: &Outcome| seen.contains(outcome), seen.len()), &purse);
    let mut settled = prediction.clone();
    for outcome in seen {
        let (Some(allowed), Some(strong)) =
            (allowed.allows_within(outcome, &purse), strong.allows_within(outcome, &purse))
        else {
            return Ok(None);
        };
        let filtered = test
            .filter
            .as_ref()
            .is_some_and(|filter| !outcome.meets_condition(test, &prediction.observables, filter));
        let serial = !knows_serial || serial.contains(outcome);
        // The out-of-thin-air mark is not computed, since it decides no verdict.
        let says = PredictedOutcome { allowed, weak: !strong, serial, filtered, thin_air: false };
        settled.outcomes.insert(outcome.clone(), says);
    }
    settled.complete = true;
    Ok(Some(settled))
}
