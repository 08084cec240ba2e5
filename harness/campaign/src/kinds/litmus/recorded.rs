//! Recomputes recorded lines of litmus tests from a new prediction.

use std::collections::BTreeSet;
use std::time::Duration;

use litmus::{Dialect, Outcome, Prediction};
use model::{Budget, Model, PredictOptions, complete_prediction, predict};
use results::portability::{self, HsaComparison};
use results::wire::RunLine;
use results::{Reason, rejudge};

use super::planned::{HsaSource, PlannedTest, mark_filtered};
use crate::models::{self, LoadedModel};
use crate::time_limit::stop_after;

/// Time limit of the model for one test: several times that of a run, so that another machine confirms it too.
pub const RECORD_TIMEOUT: Duration = Duration::from_secs(20);

/// Returns the model's prediction for a test, complete enough to judge the outcomes in `lines`.
///
/// # Errors
/// The reason that there is none.
pub fn predict_for_records(
    planned: &PlannedTest,
    chosen: &LoadedModel,
    lines: &[&RunLine],
    time: Duration,
) -> Result<Prediction, String> {
    let test = planned.judged_test();
    let stop = stop_after(time);
    let options = PredictOptions { budget: Budget::until(&stop), ..PredictOptions::default() };
    let mut prediction = predict(test, &chosen.model, &options).map_err(|error| error.to_string())?;
    if !prediction.complete {
        let outcomes_of = |line: &&RunLine| rejudge::listed_outcomes(line, test, &prediction.observables);
        let listed: BTreeSet<Outcome> = lines.iter().flat_map(outcomes_of).collect();
        let stop = stop_after(time);
        let options = PredictOptions { budget: Budget::until(&stop), ..PredictOptions::default() };
        let settled = complete_prediction(&prediction, test, &chosen.model, listed.iter(), &options);
        // A prediction that was cut short proves nothing: a missing outcome may still be allowed.
        prediction = settled
            .map_err(|error| error.to_string())?
            .ok_or_else(|| format!("no answer within the time limit for {}", chosen.model.name()))?;
    }
    mark_filtered(&planned.loaded.test, &mut prediction);
    Ok(prediction)
}

/// Returns HSA's answers for a test that was lowered from HSA; `None` for other tests.
pub fn compare_with_hsa(
    planned: &PlannedTest,
    prediction: &Prediction,
    time: Duration,
) -> Option<HsaComparison> {
    let Some(HsaSource { test, lowered: Ok(lowered), .. }) = &planned.hsa else { return None };
    let chosen = models::load_shipped(Model::default_for_dialect(Dialect::Hsa))?;
    let stop = stop_after(time);
    let options = PredictOptions { budget: Budget::until(&stop), ..PredictOptions::default() };
    Some(portability::compare_predictions(
        test,
        lowered,
        predict(test, &chosen.model, &options).ok()?,
        prediction,
    ))
}

/// Recomputes one recorded line. Without an answer of the model within `time`, its verdict is dropped.
///
/// # Errors
/// The first difference from the record.
pub fn recompute_line(
    line: &RunLine,
    planned: &PlannedTest,
    chosen: &LoadedModel,
    time: Duration,
) -> Result<RunLine, String> {
    match predict_for_records(planned, chosen, &[line], time) {
        Ok(prediction) => rejudge::verify_record(line, planned.judged_test(), &prediction, &chosen.hash),
        Err(why) => Ok(rejudge::withdraw_verdict(line, Reason::TimedOut, &why)),
    }
}
