//! What is published about environments of stress side by side.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bench::Counts;

/// Version of [`BenchStressRecord`].
pub const BENCH_STRESS_SCHEMA: &str = "vk-litmus/bench-stress/1";

/// `bench --stress --format json`: environments on one device, each in turn with the device's own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BenchStressRecord {
    /// [`BENCH_STRESS_SCHEMA`].
    pub schema: String,
    /// The device.
    pub device: String,
    /// Its driver, with the version.
    pub driver: String,
    /// What the parameters of dispatches were drawn from.
    pub seed: u64,
    /// How often each test was measured in each environment.
    pub rounds: u32,
    /// For how many seconds it was to be each time.
    pub trial_seconds: f64,
    /// Relaxed tests: those that ask about an outcome that is allowed.
    pub tests: usize,
    /// Those of them that are mutants of other tests of the suite.
    pub mutants: usize,
    /// The device's own first.
    pub environments: Vec<StressRecord>,
    /// A test each.
    pub rows: Vec<StressTest>,
}

impl BenchStressRecord {
    /// Instances of all tests in all environments that left no trace.
    pub fn not_executed(&self) -> u64 {
        self.rows.iter().flat_map(|row| &row.environments).map(|cell| cell.counts.not_executed).sum()
    }
}

/// An environment, over all tests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StressRecord {
    /// Its name.
    pub name: String,
    /// What it is on this device, as a file.
    pub stress: String,
    /// Tests that ran in it.
    pub ran: usize,
    /// How long they did, in seconds.
    pub seconds: f64,
    /// Instances a second.
    pub instances_per_second: f64,
    /// Those whose outcome no serial order of whole threads produces.
    pub interleaved_per_second: f64,
    /// Those that sequential consistency cannot produce.
    pub weak_per_second: f64,
    /// Weak outcomes a second as a multiple of those in the first environment; null where that shows none.
    pub weak_ratio: Option<f64>,
    /// Mutants of which a death was seen.
    pub killed: usize,
    /// Deaths a second, as the mean over all mutants, those that live included.
    pub deaths_per_second: f64,
    /// The same as a multiple.
    pub deaths_ratio: Option<f64>,
    /// The geometric mean of one more than the deaths a second of each mutant, minus one: a mutant that dies often counts no more here
    /// than one that dies seldom.
    pub typical_deaths_per_second: f64,
    /// The same as a multiple.
    pub typical_ratio: Option<f64>,
}

/// A test in all environments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StressTest {
    /// Its id.
    pub test: String,
    /// The tests of the suite that it differs from in synchronization alone and that forbid what it asks about.
    pub mutant_of: Vec<String>,
    /// What it showed, in the order of the environments.
    pub environments: Vec<StressCounts>,
}

/// A test in one environment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StressCounts {
    /// What was counted.
    #[serde(flatten)]
    pub counts: Counts,
    /// Instances that showed the outcome that the test asks about.
    pub deaths: u64,
    /// Why a trial ended early.
    pub error: Option<String>,
}
