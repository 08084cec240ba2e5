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
use crate::patience::patience;
use crate::targets::{Tell, device_record};
use crate::{Failure, choice};

/// The model of a processor with store buffers.
const STORE_BUFFERS: &str = "tso";

/// Time limit of its predictions for all tests of a device.
const STORE_BUFFERS_PATIENCE: Duration = Duration::from_secs(1);

impl LitmusPlan {
    /// Reads the baselines of the devices in `folder`, if it has any. A baseline that cannot be read is reported
    /// and not used. Without one, the worker calibrates the device.
    ///
    /// # Errors
    /// If the stress of a device cannot be serialized.
    pub fn with_baselines(mut self, folder: &Path, tell: Tell<'_>) -> Result<LitmusPlan, Failure> {
        for target in 0..self.targets.len() {
            let path = folder.join(baseline::file_name(&device_record(&self.targets[target])?));
            if path.is_file() {
                match read::read_results(&path) {
                    Ok(found) => {
                        self.expect_outcomes(target, &found);
                        continue;
                    }
                    Err(error) => tell(&format!("warning: the baseline is not used: {error}")),
                }
            }
            self.expect_store_buffering(target);
        }
        Ok(self)
    }

    /// Records the weak outcomes that the model and total store order allow. A processor that shows the weak
    /// outcome of store buffering has store buffers, which produce these too.
    fn expect_store_buffering(&mut self, target: usize) {
        let Some(tso) = choice::load_shipped(STORE_BUFFERS) else { return };
        let stop = patience(STORE_BUFFERS_PATIENCE);
        let mut known: BTreeMap<usize, Option<Prediction>> = BTreeMap::new();
        for cell in self.cells.iter_mut().filter(|cell| cell.target == target) {
            let (Some(item), Ok(prediction)) = (self.items.get(cell.item), &cell.ready) else { continue };
            let weak: Vec<&Outcome> = (prediction.outcomes.iter())
                .filter(|(_, says)| says.allowed && says.weak && !says.thin_air)
                .map(|(outcome, _)| outcome)
                .collect();
            if weak.is_empty() {
                continue;
            }
            let options = PredictOptions { budget: Budget::until(&stop), ..PredictOptions::default() };
            let of_buffers =
                known.entry(cell.item).or_insert_with(|| predict(&item.judged, &tso.model, &options).ok());
            let allows = |outcome: &&Outcome| {
                let says = of_buffers.as_ref().and_then(|of_buffers| of_buffers.outcomes.get(*outcome));
                says.is_some_and(|says| says.allowed)
            };
            cell.calibrated = weak.into_iter().filter(allows).cloned().collect();
        }
    }

    /// Records the weak outcomes of the same tests in a baseline that the model allows.
    fn expect_outcomes(&mut self, target: usize, baseline: &Results) {
        let lines: BTreeMap<&str, &RunLine> =
            baseline.lines.iter().map(|line| (line.id.as_str(), line)).collect();
        for cell in self.cells.iter_mut().filter(|cell| cell.target == target) {
            let (Some(item), Ok(prediction)) = (self.items.get(cell.item), &cell.ready) else { continue };
            let line = lines.get(item.loaded.source.id.as_str());
            let Some(line) = line.filter(|line| line.hashes.test == item.hash) else { continue };
            let is_expected = |outcome: &Outcome| {
                prediction.outcomes.get(outcome).is_some_and(|says| says.allowed && says.weak)
            };
            let seen = line.outcomes.iter().filter(|row| row.count > 0);
            let seen = seen.filter_map(|row| {
                rejudge::outcome_from_state(&row.state, &item.judged, &prediction.observables)
            });
            cell.expected = seen.filter(is_expected).collect();
        }
    }
}
