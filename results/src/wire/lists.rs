//! What lists and measurements without a report print: models, faults, tests, growth, the campaign of faults. Written and
//! never read.

use serde::Serialize;

/// A model of `models --format json`.
#[derive(Clone, Debug, Serialize)]
pub struct ModelEntry {
    /// Its name.
    pub name: &'static str,
    /// A line about it.
    pub description: &'static str,
    /// Hash of its text.
    pub hash: String,
}

/// A fault of `faults --format json`.
#[derive(Clone, Debug, Serialize)]
pub struct FaultEntry {
    /// Its name.
    pub name: &'static str,
    /// Its family.
    pub family: &'static str,
    /// The rule that it breaks.
    pub rule: &'static str,
    /// Where such a fault is known from.
    pub reference: Option<&'static str>,
    /// How it shows.
    pub expect: &'static str,
}

/// A test of `tests --format json`.
#[derive(Clone, Debug, Serialize)]
pub struct TestEntry {
    /// Its id.
    pub id: String,
    /// Its file in the repository.
    pub file: String,
}

/// A test of `tests --cts --format json`.
#[derive(Clone, Debug, Serialize)]
pub struct CtsEntry {
    /// Its name in the CTS.
    pub cts: String,
    /// Its id here.
    pub id: String,
}

/// What `bench --growth` prints.
#[derive(Clone, Debug, Serialize)]
pub struct GrowthRecord {
    /// The format.
    pub schema: &'static str,
    /// The device.
    pub device: String,
    /// The stress.
    pub preset: String,
    /// The test.
    pub test: &'static str,
    /// From few instances to many.
    pub rows: Vec<GrowthRow>,
}

impl GrowthRecord {
    /// Instances of all runs that left no trace.
    pub fn not_executed(&self) -> u64 {
        self.rows.iter().map(|row| row.not_executed).sum()
    }
}

/// One run of it.
#[derive(Clone, Debug, Serialize)]
pub struct GrowthRow {
    /// Instances that were run.
    pub instances: u64,
    /// Those that left no trace, which count nowhere else; absent where there were none.
    #[serde(skip_serializing_if = "super::is_zero")]
    pub not_executed: u64,
    /// Seconds that they took.
    pub seconds: f64,
    /// Their rate.
    pub instances_per_second: f64,
    /// Host memory of the worker process at most, up to the end of this run; absent where the platform does not say.
    pub peak_memory_bytes: Option<u64>,
}

/// What `bench --faults` prints.
#[derive(Clone, Debug, Serialize)]
pub struct FaultsRecord {
    /// The format.
    pub schema: &'static str,
    /// The suite.
    pub suite: &'static str,
    /// Tests of the suite.
    pub tests: usize,
    /// What became of each fault.
    pub faults: Vec<SoughtFault>,
    /// Faults that led to something else than expected.
    pub missed: Vec<&'static str>,
    /// What a sound device was accused of.
    pub false_alarms: Vec<String>,
    /// Instances of the sound device.
    pub sound_instances: u64,
}

/// What became of a fault.
#[derive(Clone, Debug, Serialize)]
pub struct SoughtFault {
    /// Its name.
    pub fault: &'static str,
    /// The rule that it breaks.
    pub rule: &'static str,
    /// How it shows.
    pub expect: &'static str,
    /// Whether every seed led to what is expected.
    pub found: bool,
    /// What each seed led to.
    pub seeds: Vec<FaultSearch>,
}

/// What one seed led to.
#[derive(Clone, Debug, Serialize)]
pub struct FaultSearch {
    /// The seed.
    pub seed: u64,
    /// `violates`, `inconclusive`, or `invisible` for nothing.
    pub verdict: &'static str,
    /// The test that showed it.
    pub test: Option<String>,
    /// Instances of all tests until then.
    pub instances: u64,
    /// Seconds until then.
    pub seconds: f64,
    /// What was seen.
    pub detail: Option<String>,
}
