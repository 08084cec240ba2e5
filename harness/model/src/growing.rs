//! Iterative deepening of the loop bound until no run is cut off.

use litmus::{Prediction, Race, Test};

use crate::budget::BudgetTracker;
use crate::explore::ExplorationStrategy;
use crate::predict::predict_with_tracker;
use crate::{Model, Options, PredictError};

/// The largest loop bound.
const LARGEST: u32 = 8;

/// As [`predict`](crate::predict), with a growing loop bound.
///
/// The bound starts at that of `options`. It doubles, up to 8, while runs are cut off and the budget lasts.
///
/// # Errors
///
/// As for [`predict`](crate::predict). If a larger loop bound exceeds the engine's limits, the last
/// successful bound gives the answer.
pub fn predict_growing(test: &Test, model: &Model, options: &Options) -> Result<Prediction, PredictError> {
    let purse = BudgetTracker::new(options.budget);
    let predict = |unroll| predict_with_tracker(test, model, unroll, ExplorationStrategy::FULL, &purse);
    let mut prediction = predict(options.unroll.max(1))?;
    while prediction.truncated_runs > 0 && prediction.bound < LARGEST && !purse.is_exhausted() {
        let Ok(next) = predict(prediction.bound * 2) else { break };
        if purse.is_exhausted() {
            keep_found(&mut prediction, &next);
            break;
        }
        prediction = next;
    }
    Ok(prediction)
}

/// Adds the definite findings of a prediction that was cut short.
fn keep_found(prediction: &mut Prediction, partial: &Prediction) {
    if partial.race == Race::Racy {
        (prediction.race, prediction.race_thin_air) = (Race::Racy, false);
    }
    for (known, found) in [(&mut prediction.meets, partial.meets), (&mut prediction.misses, partial.misses)] {
        if found == Some(true) {
            *known = found;
        }
    }
}
