//! Records of lists and simple measurements: models, faults, tests, growth, fault campaigns. They are only
//! written.

use serde::Serialize;

/// A model of `models --format json`.
#[derive(Clone, Debug, Serialize)]
pub struct ModelEntry {
    /// Its name.
    pub name: &'static str,
    /// A one-line description.
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
    /// A report of such a fault in a real driver or device.
    pub reference: Option<&'static str>,
    /// The expected verdict.
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

/// The record of `bench --growth`.
#[derive(Clone, Debug, Serialize)]
pub struct GrowthRecord {
    /// Schema of the record.
    pub schema: &'static str,
    /// Name of the device.
    pub device: String,
    /// Name of the stress.
    pub preset: String,
    /// Test id.
    pub test: &'static str,
    /// The runs, from few instances to many.
    pub rows: Vec<GrowthRow>,
}

impl GrowthRecord {
    /// Returns the number of instances without a result over all runs.
    pub fn not_executed(&self) -> u64 {
        self.rows.iter().map(|row| row.not_executed).sum()
    }
}

/// One run of `bench --growth`.
#[derive(Clone, Debug, Serialize)]
pub struct GrowthRow {
    /// Instances of the run.
    pub instances: u64,
    /// Instances without a result, whose dispatches are discarded; absent if there were none.
    #[serde(skip_serializing_if = "super::is_zero")]
    pub not_executed: u64,
    /// Run time in seconds.
    pub seconds: f64,
    /// Instances per second.
    pub instances_per_second: f64,
    /// Peak host memory of the worker process up to the end of this run; absent if the platform does not
    /// report it.
    pub peak_memory_bytes: Option<u64>,
}

/// The record of `bench --faults`.
#[derive(Clone, Debug, Serialize)]
pub struct FaultsRecord {
    /// Schema of the record.
    pub schema: &'static str,
    /// Name of the suite.
    pub suite: &'static str,
    /// Number of tests in the suite.
    pub tests: usize,
    /// The result for each fault.
    pub faults: Vec<FaultSearchSummary>,
    /// Faults with another result than expected.
    pub missed: Vec<&'static str>,
    /// Verdicts against the simulated GPU without a fault.
    pub false_alarms: Vec<String>,
    /// Instances on the simulated GPU without a fault.
    pub sound_instances: u64,
}

/// The search for one fault.
#[derive(Clone, Debug, Serialize)]
pub struct FaultSearchSummary {
    /// Its name.
    pub fault: &'static str,
    /// The rule that it breaks.
    pub rule: &'static str,
    /// The expected verdict.
    pub expect: &'static str,
    /// Whether every seed gave the expected verdict.
    pub found: bool,
    /// The result of each seed.
    pub seeds: Vec<FaultSearch>,
}

/// The search for one fault with one seed.
#[derive(Clone, Debug, Serialize)]
pub struct FaultSearch {
    /// The seed.
    pub seed: u64,
    /// `violates`, `inconclusive`, or `invisible` if nothing was found.
    pub verdict: &'static str,
    /// The test that found it.
    pub test: Option<String>,
    /// Instances of all tests until it was found.
    pub instances: u64,
    /// Seconds until it was found.
    pub seconds: f64,
    /// The observed outcomes.
    pub detail: Option<String>,
}
