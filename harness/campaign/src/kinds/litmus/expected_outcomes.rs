//! The weak outcomes that a run should show: those of the baselines of its devices, or those of store buffers.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use litmus::{Outcome, Prediction};
use model::{Budget, PredictOptions, predict};
use results::read::Results;
use results::wire::RunLine;
use results::{baseline, read, rejudge};

use super::plan::LitmusPlan;
use crate::targets::{MessageSink, device_record};
use crate::time_limit::stop_after;
use crate::{Failure, models};

/// The model of a processor with store buffers.
const STORE_BUFFER_MODEL: &str = "tso";

/// Time limit of its predictions for all tests of a device.
const STORE_BUFFER_TIMEOUT: Duration = Duration::from_secs(1);

impl LitmusPlan {
    /// Reads the baselines of the devices in `folder`, if it has any. A baseline that cannot be read is reported
    /// and not used. Without one, the worker calibrates the device.
    ///
    /// # Errors
    /// If the stress of a device cannot be serialized.
    pub fn with_baselines(
        mut self,
        folder: &Path,
        on_message: MessageSink<'_>,
    ) -> Result<LitmusPlan, Failure> {
        for target in 0..self.targets.len() {
            let path = folder.join(baseline::file_name(&device_record(&self.targets[target])?));
            if path.is_file() {
                match read::read_results(&path) {
                    Ok(found) => {
                        self.expect_outcomes(target, &found);
                        continue;
                    }
                    Err(error) => on_message(&format!("warning: the baseline is not used: {error}")),
                }
            }
            self.expect_store_buffering(target);
        }
        Ok(self)
    }

    /// Records the weak outcomes that the model and total store order allow. A processor that shows the weak
    /// outcome of store buffering has store buffers, which produce these too.
    fn expect_store_buffering(&mut self, target: usize) {
        let Some(tso) = models::load_shipped(STORE_BUFFER_MODEL) else { return };
        let stop = stop_after(STORE_BUFFER_TIMEOUT);
        let mut predictions: BTreeMap<usize, Option<Prediction>> = BTreeMap::new();
        for cell in self.device_tests.iter_mut().filter(|cell| cell.target_index == target) {
            let (Some(item), Some(prediction)) = (self.tests.get(cell.test_index), cell.known_prediction())
            else {
                continue;
            };
            let weak: Vec<&Outcome> = (prediction.outcomes.iter())
                .filter(|(_, predicted)| predicted.allowed && predicted.weak && !predicted.thin_air)
                .map(|(outcome, _)| outcome)
                .collect();
            if weak.is_empty() {
                continue;
            }
            let options = PredictOptions { budget: Budget::until(&stop), ..PredictOptions::default() };
            let tso_prediction = predictions
                .entry(cell.test_index)
                .or_insert_with(|| predict(item.judged_test(), &tso.model, &options).ok());
            let is_allowed_by_tso = |outcome: &&Outcome| {
                let predicted =
                    tso_prediction.as_ref().and_then(|of_buffers| of_buffers.outcomes.get(*outcome));
                predicted.is_some_and(|says| says.allowed)
            };
            cell.calibrated_outcomes = weak.into_iter().filter(is_allowed_by_tso).cloned().collect();
        }
    }

    /// Records the weak outcomes of the same tests in a baseline that the model allows.
    fn expect_outcomes(&mut self, target: usize, baseline: &Results) {
        let lines: BTreeMap<&str, &RunLine> =
            baseline.lines.iter().map(|line| (line.id.as_str(), line)).collect();
        for cell in self.device_tests.iter_mut().filter(|cell| cell.target_index == target) {
            let (Some(item), Some(prediction)) = (self.tests.get(cell.test_index), cell.known_prediction())
            else {
                continue;
            };
            let line = lines.get(item.loaded.source.id.as_str());
            let Some(line) = line.filter(|line| line.hashes.test == item.hash) else { continue };
            let is_expected = |outcome: &Outcome| {
                prediction.outcomes.get(outcome).is_some_and(|predicted| predicted.allowed && predicted.weak)
            };
            let observed_rows = line.outcomes.iter().filter(|row| row.count > 0);
            let observed = observed_rows.filter_map(|row| {
                rejudge::outcome_from_state(&row.state, item.judged_test(), &prediction.observables)
            });
            cell.expected_outcomes = observed.filter(is_expected).collect();
        }
    }
}
