//! The record of `bench`: rates of a device compared with two baselines, and the raw counts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The value of [`BenchReport::schema`].
pub const BENCH_SCHEMA: &str = "vk-litmus/bench/1";

/// Rates computed from one histogram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rates {
    /// Instances per second of wall-clock time.
    pub instances_per_second: f64,
    /// Instances per second whose outcome no serial order of whole threads produces.
    pub interleaved_per_second: f64,
    /// Instances per second whose outcome sequential consistency cannot produce.
    pub weak_sb_per_second: f64,
}

/// The counts of one trial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Counts {
    /// Instances with a result.
    pub instances: u64,
    /// Instances whose outcome no serial order of whole threads produces.
    pub interleaved: u64,
    /// Instances whose outcome sequential consistency cannot produce.
    pub weak: u64,
    /// Instances with a forbidden outcome; meaningful for race-free tests.
    pub forbidden: u64,
    /// Instances that reached the iteration limit of a spin loop.
    pub unresolved: u64,
    /// Instances without a result; the counts of their dispatches are discarded.
    pub not_executed: u64,
    /// Number of submissions.
    pub dispatches: u64,
    /// Wall-clock seconds from the first submission to the last count.
    pub seconds: f64,
}

impl Counts {
    /// Returns `count` per second; 0 if no time passed.
    pub fn per_second(&self, count: u64) -> f64 {
        if self.seconds > 0.0 { count as f64 / self.seconds } else { 0.0 }
    }

    /// Returns the three rates.
    pub fn rates(&self) -> Rates {
        Rates {
            instances_per_second: self.per_second(self.instances),
            interleaved_per_second: self.per_second(self.interleaved),
            weak_sb_per_second: self.per_second(self.weak),
        }
    }

    /// Adds the counts of another trial of the same test.
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

/// The purpose of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// The rates at the top of the report: store buffering under the preset of the device.
    Headline,
    /// The highest rate of instances: store buffering under the throughput preset.
    Throughput,
    /// Another test under the preset of the device.
    Shape,
    /// Ten milliseconds of store buffering, to see if a weak outcome occurs.
    AtOnce,
}

/// One trial with its raw counts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BenchTrial {
    /// Test id.
    pub test: String,
    /// Name of the stress.
    pub preset: String,
    /// Purpose of the trial.
    pub purpose: Purpose,
    /// Seed of the parameters.
    pub seed: u64,
    /// Planned time in seconds.
    pub asked_seconds: f64,
    /// The counts.
    #[serde(flatten)]
    pub counts: Counts,
    /// Observed outcomes.
    pub outcomes: Vec<BenchOutcome>,
    /// The error, if the trial failed.
    pub error: Option<String>,
}

/// An observed outcome.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BenchOutcome {
    /// The values, as in reports.
    pub state: String,
    /// Number of instances with it.
    pub count: u64,
    /// Whether sequential consistency cannot produce it.
    pub weak: bool,
    /// Whether a serial order of whole threads produces it.
    pub serial: bool,
}

/// A run of store buffering outside the program's own loop.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BaselineRun {
    /// Its rates.
    #[serde(flatten)]
    pub rates: Rates,
    /// Instances by outcome, 2 × r0 + r1: both reads 0 (weak), then the two serial orders, then both 1.
    pub counts: [u64; 4],
    /// Instances with any other outcome.
    pub other: u64,
    /// Wall-clock seconds.
    pub seconds: f64,
}

/// A baseline for the rates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Baseline {
    /// Name of the scheme.
    pub scheme: String,
    /// The median of its runs by interleaved instances.
    #[serde(flatten)]
    pub rates: Rates,
    /// All runs.
    pub runs: Vec<BaselineRun>,
}

impl Baseline {
    /// Creates a baseline from its runs.
    pub fn new(scheme: &str, runs: Vec<BaselineRun>) -> Baseline {
        let rates = median(runs.iter().map(|run| run.rates).collect()).unwrap_or_default();
        Baseline { scheme: scheme.to_owned(), rates, runs }
    }
}

/// The record of `bench --format json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BenchReport {
    /// [`BENCH_SCHEMA`].
    pub schema: String,
    /// Name of the device.
    pub device: String,
    /// Its driver.
    pub driver: String,
    /// The median of the headline runs by interleaved instances.
    #[serde(flatten)]
    pub rates: Rates,
    /// The stress of the headline runs.
    pub preset: String,
    /// The median of the throughput runs.
    pub throughput_instances_per_second: f64,
    /// Every trial, in the order of execution.
    pub runs: Vec<BenchTrial>,
    /// The classic scheme of the literature on the same device, as a yardstick.
    pub classic: Baseline,
    /// Two native threads on the same machine in the same minutes.
    pub calibration: Baseline,
    /// Duration of the whole command.
    pub seconds: f64,
}

impl BenchReport {
    /// Returns the number of instances without a result over all trials.
    pub fn not_executed(&self) -> u64 {
        self.runs.iter().map(|run| run.counts.not_executed).sum()
    }
}

/// Returns the median by interleaved instances, the lower of two: all three rates are from one run.
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
