//! Loops with effects: the bound on their bodies grows until no run is cut off.

use litmus::{Prediction, Race, Test};

use crate::search::Deadline;
use crate::{Model, Options, PredictError, predict};

/// The largest bound that is tried.
const LARGEST: u32 = 8;

/// [`predict`] with a bound on loops that begins at that of `options` and doubles, up to 8, as long as runs are cut off
/// and time is left.
///
/// # Errors
/// As for [`predict`]. A program that is beyond the bounds of the engine at a larger bound of loops is answered at the
/// largest one that it is not beyond.
pub fn predict_growing(test: &Test, model: &Model, options: &Options) -> Result<Prediction, PredictError> {
    let deadline = Deadline::after(options.timeout);
    let mut prediction = predict(test, model, options)?;
    while prediction.cut > 0 && prediction.bound < LARGEST && !deadline.passed() {
        let unroll = prediction.bound * 2;
        let Ok(next) = predict(test, model, &Options { timeout: deadline.left(), unroll }) else { break };
        if deadline.passed() {
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
        prediction.race_thin_air =
            partial.race_thin_air && (prediction.race_thin_air || prediction.race != Race::Racy);
        prediction.race = Race::Racy;
    }
    for (known, found) in [(&mut prediction.meets, partial.meets), (&mut prediction.misses, partial.misses)] {
        if found == Some(true) {
            *known = found;
        }
    }
}
