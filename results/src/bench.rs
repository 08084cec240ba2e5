//! What `bench` publishes: rates of a device beside two baselines, with the raw counts that they come from.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The value of [`Report::schema`].
pub const BENCH_SCHEMA: &str = "vk-litmus/bench/1";

/// Three rates from one histogram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rates {
    /// Instances a second of wall clock.
    pub instances_per_second: f64,
    /// Instances a second whose outcome no serial order of whole threads produces.
    pub interleaved_per_second: f64,
    /// Instances a second that sequential consistency cannot produce.
    pub weak_sb_per_second: f64,
}

/// What one trial counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Counts {
    /// Instances accounted for.
    pub instances: u64,
    /// Those whose outcome no serial order of whole threads produces.
    pub interleaved: u64,
    /// Those that sequential consistency cannot produce.
    pub weak: u64,
    /// Those that the model forbids; of interest in race-free tests.
    pub forbidden: u64,
    /// Those that ran into the bound of a spin loop.
    pub unresolved: u64,
    /// Those that left no trace; they count nowhere else.
    pub not_executed: u64,
    /// Submissions.
    pub dispatches: u64,
    /// Wall-clock seconds from the first submission to the last count.
    pub seconds: f64,
}

impl Counts {
    /// `count` a second; 0 without time.
    pub fn per_second(&self, count: u64) -> f64 {
        if self.seconds > 0.0 { count as f64 / self.seconds } else { 0.0 }
    }

    /// The three rates.
    pub fn rates(&self) -> Rates {
        Rates {
            instances_per_second: self.per_second(self.instances),
            interleaved_per_second: self.per_second(self.interleaved),
            weak_sb_per_second: self.per_second(self.weak),
        }
    }

    /// Adds what another trial of the same test counted.
    pub fn add(&mut self, other: &Counts) {
        self.instances += other.instances;
        self.interleaved += other.interleaved;
        self.weak += other.weak;
        self.forbidden += other.forbidden;
        self.unresolved += other.unresolved;
        self.not_executed += other.not_executed;
        self.dispatches += other.dispatches;
        self.seconds += other.seconds;
    }
}

/// What a trial is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// The rates at the top of the report: store buffering under the preset of the device.
    Headline,
    /// The most instances: store buffering under the throughput preset.
    Throughput,
    /// Another test under the preset of the device.
    Shape,
    /// Ten milliseconds of store buffering: is a weak outcome among them?
    AtOnce,
}

/// One trial with its raw counts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// Test id.
    pub test: String,
    /// Name of the stress.
    pub preset: String,
    /// What it is for.
    pub purpose: Purpose,
    /// What parameters are drawn from.
    pub seed: u64,
    /// The time that was asked for.
    pub asked_seconds: f64,
    /// The counts.
    #[serde(flatten)]
    pub counts: Counts,
    /// What was seen, by outcome.
    pub outcomes: Vec<Seen>,
    /// Why there is nothing, where there is nothing.
    pub error: Option<String>,
}

/// An outcome that was seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Seen {
    /// The values, as reports write them.
    pub state: String,
    /// How often.
    pub count: u64,
    /// Sequential consistency cannot produce it.
    pub weak: bool,
    /// A serial order of whole threads produces it.
    pub serial: bool,
}

/// A run of store buffering outside the tool's own loop.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BaselineRun {
    /// Its rates.
    #[serde(flatten)]
    pub rates: Rates,
    /// Instances by outcome, 2 × r0 + r1: both reads 0 (weak), then the two serial orders, then both 1.
    pub counts: [u64; 4],
    /// Instances that showed anything else.
    pub other: u64,
    /// Wall-clock seconds.
    pub seconds: f64,
}

/// A baseline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Baseline {
    /// What it is.
    pub scheme: String,
    /// The median of its runs by interleaved instances.
    #[serde(flatten)]
    pub rates: Rates,
    /// All of them.
    pub runs: Vec<BaselineRun>,
}

impl Baseline {
    /// A baseline of runs.
    pub fn new(scheme: &str, runs: Vec<BaselineRun>) -> Baseline {
        let rates = median(runs.iter().map(|run| run.rates).collect()).unwrap_or_default();
        Baseline { scheme: scheme.to_owned(), rates, runs }
    }
}

/// The whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// [`BENCH_SCHEMA`].
    pub schema: String,
    /// Short name of the device.
    pub device: String,
    /// Its driver.
    pub driver: String,
    /// The median of the headline runs by interleaved instances.
    #[serde(flatten)]
    pub rates: Rates,
    /// The stress of the headline.
    pub preset: String,
    /// The median of the throughput runs.
    pub throughput_instances_per_second: f64,
    /// Every trial, in the order in which they were made.
    pub runs: Vec<Run>,
    /// The classic scheme of the literature on the same device: the yardstick.
    pub classic: Baseline,
    /// Two native threads on the same machine in the same minutes.
    pub calibration: Baseline,
    /// How long it all took.
    pub seconds: f64,
}

impl Report {
    /// Instances of all trials that left no trace.
    pub fn not_executed(&self) -> u64 {
        self.runs.iter().map(|run| run.counts.not_executed).sum()
    }
}

/// The run in the middle by interleaved instances, the lower of two: all its rates are from one histogram.
pub fn median(mut rates: Vec<Rates>) -> Option<Rates> {
    rates.sort_by(|left, right| left.interleaved_per_second.total_cmp(&right.interleaved_per_second));
    rates.get(rates.len().saturating_sub(1) / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_one_run() {
        let rates = |interleaved, weak| Rates {
            interleaved_per_second: interleaved,
            weak_sb_per_second: weak,
            instances_per_second: 0.0,
        };
        let middle = median(vec![rates(3.0, 0.0), rates(1.0, 9.0), rates(2.0, 5.0)]).unwrap();
        assert_eq!((middle.interleaved_per_second, middle.weak_sb_per_second), (2.0, 5.0));
        assert_eq!(median(Vec::new()), None);
        let lower = median(vec![rates(3.0, 0.0), rates(1.0, 9.0)]).unwrap();
        assert_eq!(lower.interleaved_per_second, 1.0);
    }

    #[test]
    fn rates_need_time() {
        let mut counts = Counts { instances: 10, weak: 5, ..Counts::default() };
        assert_eq!(counts.rates(), Rates::default());
        counts.add(&Counts { instances: 10, seconds: 2.0, ..Counts::default() });
        assert_eq!(counts.rates().instances_per_second, 10.0);
        assert_eq!(counts.rates().weak_sb_per_second, 2.5);
    }
}
