//! Drift over all tests of a report: rates that changed while a test ran.

use crate::statistics::holm;
use crate::wire::{DriftRecord, RunLine};

/// Family-wise error rate: the probability of any false report among all tests.
pub const FAMILY_WISE_ERROR_RATE: f64 = 0.01;

/// Returns the runs with a significant rate change, with p-values after [Holm's correction](holm()).
pub fn significant_drifts<'a>(
    lines: impl Iterator<Item = &'a RunLine>,
) -> Vec<(&'a RunLine, &'a DriftRecord, f64)> {
    let tested: Vec<(&RunLine, &DriftRecord)> =
        lines.filter_map(|line| Some((line, line.drift.as_ref()?))).collect();
    let corrected = holm(&tested.iter().map(|(_, drift)| drift.p).collect::<Vec<f64>>());
    let rows = tested.into_iter().zip(corrected);
    rows.filter(|(_, p)| *p < FAMILY_WISE_ERROR_RATE).map(|((line, drift), p)| (line, drift, p)).collect()
}
