//! The record of a whole report.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{MutantSeen, PlanRecord, REPORT_SCHEMA, RunLine};
use crate::mutants::MutantVerdicts;
use crate::power::{self, Power};
use crate::read::Results;
use crate::report::{OutcomeClass, Report, histogram_bars, never_seen_bound, weak_reproducibility};

/// `report --format json`: results of several runs with confidence figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReportRecord {
    /// [`REPORT_SCHEMA`](super::REPORT_SCHEMA).
    pub schema: String,
    /// Names of the devices, as in `runs`.
    pub devices: Vec<String>,
    /// The plans of those results that have one.
    pub plans: Vec<PlanRecord>,
    /// The verdicts, by device and then by test.
    pub runs: Vec<RunLine>,
    /// Confidence figures of each verdict, in the order of `runs`.
    pub confidence: Vec<ConfidenceRecord>,
    /// The known faults that each device's run could have found, by the simulated GPU's campaign at the
    /// counts of this run. It is not a probability that a device is correct. Absent if the campaign has none
    /// of the tests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub power: Vec<Power>,
}

/// Confidence figures of one verdict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConfidenceRecord {
    /// Test id.
    pub id: String,
    /// Name of the device.
    pub device: String,
    /// The probability to observe a weak outcome again in a run of the same length; null if there was none, or
    /// without parts and batches.
    pub reproducibility: Option<f64>,
    /// Upper bound at 95 % on the rate of an outcome with count zero; if the run line has batches, on the share of
    /// batches that show it. Null without parts and batches.
    pub never_seen_below: Option<f64>,
    /// Observations of the test's mutants on the same device: tests of the same run with weaker
    /// synchronization that allow the outcome it forbids. Only for a test that conforms.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mutants: Vec<MutantSeen>,
    /// Rates of observed weak and forbidden outcomes.
    pub rates: Vec<RateRecord>,
}

/// The rate of an outcome.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RateRecord {
    /// The outcome on one line.
    pub outcome: String,
    /// `weak`, `forbidden` or `from nowhere`.
    pub kind: String,
    /// Observations divided by resolved instances.
    pub rate: f64,
    /// Lower end of the interval at 95 % of the rate; if the run line has batches, of the share of batches that
    /// show the outcome.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl ReportRecord {
    /// Builds the record of a report on `results`.
    pub fn new(results: &[Results], report: &Report) -> ReportRecord {
        ReportRecord {
            schema: REPORT_SCHEMA.to_owned(),
            devices: report.devices.iter().map(|device| device.label.clone()).collect(),
            plans: results.iter().filter_map(|results| results.plan.clone()).collect(),
            runs: report.lines().cloned().collect(),
            power: power::embedded_matrix()
                .map(|matrix| power::compute_powers(matrix, report.lines()))
                .unwrap_or_default(),
            confidence: {
                let mutants = MutantVerdicts::from_lines(report.lines());
                report.lines().map(|line| confidence_record(line, &mutants)).collect()
            },
        }
    }
}

fn confidence_record(line: &RunLine, mutants: &MutantVerdicts<'_>) -> ConfidenceRecord {
    let rates = histogram_bars(line).into_iter().filter(|bar| bar.kind != OutcomeClass::Ordinary);
    ConfidenceRecord {
        id: line.id.clone(),
        device: line.device.clone(),
        reproducibility: weak_reproducibility(line),
        never_seen_below: never_seen_bound(line),
        mutants: mutants.mutant_counts(line),
        rates: rates
            .filter_map(|bar| {
                let interval = bar.interval?;
                Some(RateRecord {
                    outcome: bar.outcome,
                    kind: bar.kind.name().to_owned(),
                    rate: bar.rate,
                    low: interval.low,
                    high: interval.high,
                })
            })
            .collect(),
    }
}
