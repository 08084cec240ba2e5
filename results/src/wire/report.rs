//! The record of a whole report.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{PlanRecord, REPORT_SCHEMA, RunLine};
use crate::mutants::Mutants;
use crate::power::{self, Power};
use crate::read::Results;
use crate::report::{Kind, Report, bars, weak_reproducibility};
use crate::statistics::Proportion;

/// `report --format json`: results side by side, with how sure one may be of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReportRecord {
    /// [`REPORT_SCHEMA`](super::REPORT_SCHEMA).
    pub schema: String,
    /// The devices as the runs below name them.
    pub devices: Vec<String>,
    /// What was to be run, one for each of the results that say.
    pub plans: Vec<PlanRecord>,
    /// The verdicts, device by device and test by test.
    pub runs: Vec<RunLine>,
    /// How sure one may be of each verdict's counts, in the order of the verdicts.
    pub confidence: Vec<ConfidenceRecord>,
    /// Which known faults each device's run could have found: those of the simulated GPU's campaign, at the counts of this run.
    /// No probability for a device. Absent for runs that the campaign knows nothing of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub power: Vec<Power>,
}

/// How sure one may be of what a verdict counted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConfidenceRecord {
    /// Test id.
    pub id: String,
    /// The device.
    pub device: String,
    /// The score 1 − e^(−n), n being how often weak outcomes were seen; null where none was.
    pub reproducibility: Option<f64>,
    /// What was never seen has a rate below this at 95 %.
    pub never_seen_below: f64,
    /// The same for who stops when he likes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub never_seen_anytime_below: Option<f64>,
    /// Of a test that conforms: what the device showed of its mutants, tests of the same run that differ from it in
    /// synchronization alone and allow what it forbids.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mutants: Vec<MutantSeen>,
    /// Weak and forbidden outcomes that were seen.
    pub rates: Vec<RateRecord>,
}

/// What a device showed of a mutant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MutantSeen {
    /// Test id.
    pub id: String,
    /// How often it showed what the test forbids.
    pub seen: u64,
    /// Its instances.
    pub instances: u64,
}

/// The rate of an outcome.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RateRecord {
    /// The outcome on one line.
    pub outcome: String,
    /// `weak`, `forbidden` or `from nowhere`.
    pub kind: String,
    /// Times seen over resolved instances.
    pub rate: f64,
    /// Lower end of the Clopper–Pearson interval at 95 %: of the rate, or where the run line has batches of the part of these
    /// that showed it.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Lower end of the anytime-valid interval at 95 %, which holds although somebody stops when he likes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anytime_low: Option<f64>,
    /// Its upper end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anytime_high: Option<f64>,
}

impl ReportRecord {
    /// The record of a report on `results`.
    pub fn new(results: &[Results], report: &Report) -> ReportRecord {
        ReportRecord {
            schema: REPORT_SCHEMA.to_owned(),
            devices: report.devices.iter().map(|device| device.label.clone()).collect(),
            plans: results.iter().filter_map(|results| results.plan.clone()).collect(),
            runs: report.lines().cloned().collect(),
            power: power::matrix().map(|matrix| power::of(matrix, report.lines())).unwrap_or_default(),
            confidence: {
                let mutants = Mutants::of(report.lines());
                report.lines().map(|line| confidence(line, &mutants)).collect()
            },
        }
    }
}

fn confidence(line: &RunLine, mutants: &Mutants<'_>) -> ConfidenceRecord {
    let trials = line.batches.unwrap_or(line.instances.saturating_sub(line.unresolved));
    let rates = bars(line).into_iter().filter(|bar| bar.kind != Kind::Ordinary);
    ConfidenceRecord {
        id: line.id.clone(),
        device: line.device.clone(),
        reproducibility: weak_reproducibility(line),
        never_seen_below: crate::statistics::never_seen_bound(trials),
        never_seen_anytime_below: Some(Proportion::new(0, trials).anytime_interval().high),
        mutants: mutants.seen(line),
        rates: rates
            .filter_map(|bar| {
                let interval = bar.interval?;
                Some(RateRecord {
                    outcome: bar.outcome,
                    kind: bar.kind.word().to_owned(),
                    rate: bar.rate,
                    low: interval.low,
                    high: interval.high,
                    anytime_low: bar.anytime.map(|anytime| anytime.low),
                    anytime_high: bar.anytime.map(|anytime| anytime.high),
                })
            })
            .collect(),
    }
}
