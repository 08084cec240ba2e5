//! The weak outcomes that a run should show again: those of the baselines of its devices.

use std::collections::BTreeMap;
use std::path::Path;

use litmus::Outcome;
use results::read::Results;
use results::wire::RunLine;
use results::{again, baseline, read};

use super::plan::LitmusPlan;
use crate::Failure;
use crate::targets::{Tell, device_record};

impl LitmusPlan {
    /// Reads the baselines of the devices in `folder`, if it has any. A baseline that cannot be read is reported
    /// and not used.
    ///
    /// # Errors
    /// If the stress of a device cannot be serialized.
    pub fn with_baselines(mut self, folder: &Path, tell: Tell<'_>) -> Result<LitmusPlan, Failure> {
        for target in 0..self.targets.len() {
            let path = folder.join(baseline::file_name(&device_record(&self.targets[target])?));
            if !path.is_file() {
                continue;
            }
            match read::results(&path) {
                Ok(found) => self.expect_outcomes(target, &found),
                Err(error) => tell(&format!("warning: the baseline is not used: {error}")),
            }
        }
        Ok(self)
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
            let seen =
                seen.filter_map(|row| again::outcome(&row.state, &item.judged, &prediction.observables));
            cell.expected = seen.filter(is_expected).collect();
        }
    }
}
