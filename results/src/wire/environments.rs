//! The record of a comparison of stress environments.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bench::Counts;

/// Version of [`BenchStressRecord`].
pub const BENCH_STRESS_SCHEMA: &str = "vk-litmus/bench-stress/1";

/// `bench --stress --format json`: environments on one device, measured in turn with the device's default.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BenchStressRecord {
    /// [`BENCH_STRESS_SCHEMA`].
    pub schema: String,
    /// Name of the device.
    pub device: String,
    /// Its driver, with the version.
    pub driver: String,
    /// Seed of the dispatch parameters.
    pub seed: u64,
    /// Number of measurements of each test in each environment.
    pub rounds: u32,
    /// Planned seconds for each measurement.
    pub trial_seconds: f64,
    /// Number of relaxed tests: those that ask about an allowed outcome.
    pub tests: usize,
    /// Number of them that are mutants of other tests of the suite.
    pub mutants: usize,
    /// The environments; the device's default first.
    pub environments: Vec<StressRecord>,
    /// One row per test.
    pub rows: Vec<StressTest>,
}

impl BenchStressRecord {
    /// Returns the number of instances without a result over all tests and environments.
    pub fn not_executed(&self) -> u64 {
        self.rows.iter().flat_map(|row| &row.environments).map(|cell| cell.counts.not_executed).sum()
    }
}

/// An environment, over all tests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StressRecord {
    /// Name of the environment.
    pub name: String,
    /// Its parameters on this device, in the format of a stress file.
    pub stress: String,
    /// Number of tests that ran in it.
    pub ran: usize,
    /// Total run time in seconds.
    pub seconds: f64,
    /// Instances per second.
    pub instances_per_second: f64,
    /// Instances per second whose outcome no serial order of whole threads produces.
    pub interleaved_per_second: f64,
    /// Instances per second whose outcome sequential consistency cannot produce.
    pub weak_per_second: f64,
    /// Weak outcomes per second, relative to the first environment; null if that shows none.
    pub weak_ratio: Option<f64>,
    /// Number of mutants whose outcome was observed (killed mutants).
    pub killed: usize,
    /// Deaths per second, averaged over all mutants including live ones.
    pub deaths_per_second: f64,
    /// The same, relative to the first environment.
    pub deaths_ratio: Option<f64>,
    /// The geometric mean over mutants of (deaths per second + 1), minus 1: frequent deaths of one mutant do
    /// not dominate.
    pub typical_deaths_per_second: f64,
    /// The same, relative to the first environment.
    pub typical_ratio: Option<f64>,
}

/// A test in all environments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StressTest {
    /// Test id.
    pub test: String,
    /// The tests of the suite of which it is a mutant: they have stronger synchronization and forbid its
    /// outcome.
    pub mutant_of: Vec<String>,
    /// Its counts, in the order of the environments.
    pub environments: Vec<StressCounts>,
}

/// A test in one environment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StressCounts {
    /// The counts.
    #[serde(flatten)]
    pub counts: Counts,
    /// Instances with the outcome that the test asks about.
    pub deaths: u64,
    /// Why a trial ended early.
    pub error: Option<String>,
}
