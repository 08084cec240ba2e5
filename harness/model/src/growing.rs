//! Loops with effects: the bound on their bodies grows until no run is cut off.

use litmus::{Prediction, Race, Test};

use crate::budget::BudgetTracker;
use crate::explore::ExplorationStrategy;
use crate::predict::predict_with_tracker;
use crate::{Model, Options, PredictError};

/// The largest bound that is tried.
const LARGEST: u32 = 8;

/// [`predict`](crate::predict) with a bound on loops that begins at that of `options` and doubles, up to 8, as long as runs
/// are cut off and the budget lasts.
///
/// # Errors
/// As for [`predict`](crate::predict). A program that is beyond the bounds of the engine at a larger bound of loops is
/// answered at the largest one that it is not beyond.
pub fn predict_growing(test: &Test, model: &Model, options: &Options) -> Result<Prediction, PredictError> {
    let purse = BudgetTracker::new(options.budget);
    let predict = |unroll| predict_with_tracker(test, model, unroll, ExplorationStrategy::FULL, &purse);
    let mut prediction = predict(options.unroll.max(1))?;
    while prediction.cut > 0 && prediction.bound < LARGEST && !purse.is_exhausted() {
        let Ok(next) = predict(prediction.bound * 2) else { break };
        if purse.is_exhausted() {
            keep_found(&mut prediction, &next);
            break;
        }
        prediction = next;
    }
    Ok(prediction)
}

/// Adds what a prediction that was cut short has found: that is definite.
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
