//! Predictions that are too long to list, completed for the outcomes that were seen.

use litmus::{Dialect, Outcome, PredictedOutcome, Prediction, Race, Test};

use crate::allows::OutcomeQuestion;
use crate::budget::BudgetTracker;
use crate::sequential::{Machine, Turns};
use crate::{Model, Options, PredictError};

/// Completes a prediction whose outcomes are too many to list, for the outcomes in `seen`: each gets its row, and the
/// prediction counts as complete, since what was not seen needs no row to be judged. `None` where that is not possible:
/// the prediction was cut short, so that races are not excluded, or the time was up.
///
/// A prediction that is complete stays as it is.
///
/// # Errors
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
    // Rows of a search that was cut short may be wrong; those of an unlisted one are not there.
    let sound = prediction.race == Race::Free || prediction.outcomes.is_empty();
    if prediction.race == Race::Unknown || prediction.cut > 0 || !sound || test.dialect == Dialect::Hsa {
        return Ok(None);
    }
    let purse = BudgetTracker::new(options.budget);
    let Some(Ok(sequential)) = Model::shipped("sc") else { return Ok(None) };
    let allowed = OutcomeQuestion::new(test, model, options)?;
    let strong = OutcomeQuestion::new(test, &sequential, options)?;
    let unroll = options.unroll.max(1);
    let (serial, all) = Machine::new(test, &prediction.observables, unroll).outcomes(Turns::Serial, &purse);
    if !all {
        return Ok(None);
    }
    let mut settled = prediction.clone();
    for outcome in seen {
        let (Some(allowed), Some(strong)) =
            (allowed.allows_within(outcome, &purse), strong.allows_within(outcome, &purse))
        else {
            return Ok(None);
        };
        let filtered =
            test.filter.as_ref().is_some_and(|filter| !outcome.meets(test, &prediction.observables, filter));
        let serial = serial.contains(outcome);
        // Whether only values out of thin air show it is not asked here: the mark decides no verdict.
        let says = PredictedOutcome { allowed, weak: !strong, serial, filtered, thin_air: false };
        settled.outcomes.insert(outcome.clone(), says);
    }
    settled.complete = true;
    Ok(Some(settled))
}
