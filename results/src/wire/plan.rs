//! Records of planned runs: plan, devices, tests, environment.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Hashes, RUN_SCHEMA, RunLine, VerdictWord};
use crate::reason::Reason;

/// `plan.json` of a results folder: tests, devices and settings of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlanRecord {
    /// [`PLAN_SCHEMA`](super::PLAN_SCHEMA).
    pub schema: String,
    /// Version of the tool.
    pub tool: String,
    /// [Hash](PlanRecord::hash()) of everything except the seed and the environment. A run resumes only under
    /// the same hash; a plan that does not match its hash was edited.
    pub plan: String,
    /// Seed of all random choices.
    pub seed: u64,
    /// Time for all tests of a device, or instances of each test. A run resumed with another time lists both.
    pub budget: String,
    /// Name of the stress.
    pub stress: String,
    /// The shard of the whole plan, such as `1/4`.
    pub shard: Option<String>,
    /// The devices, in order.
    pub devices: Vec<DeviceRecord>,
    /// The tests, in order.
    pub tests: Vec<TestRecord>,
    /// Environment of the run; absent in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<EnvironmentRecord>,
}

/// Value of [`PlanRecord::stress`] when each device uses its default.
pub const DEFAULT_STRESS: &str = "default";

/// Suffix of a budget that is a number of instances per test.
pub const INSTANCES_PER_TEST_SUFFIX: &str = " instances a test";
/// Suffix of a budget that is a number of dispatches per placement.
pub const DISPATCHES_PER_PLACEMENT_SUFFIX: &str = " dispatches a placement";

impl PlanRecord {
    /// Returns the number in the budget; `None` if the budget is a time.
    pub fn instance_budget(&self) -> Option<u64> {
        let ends = [INSTANCES_PER_TEST_SUFFIX, DISPATCHES_PER_PLACEMENT_SUFFIX];
        ends.into_iter().find_map(|end| self.budget.strip_suffix(end)?.parse().ok())
    }

    /// Returns the BLAKE3 hash of everything except the seed and the environment, in hexadecimal digits.
    ///
    /// # Errors
    /// Returns an error if the record cannot be written as JSON.
    pub fn hash(&self) -> Result<String, serde_json::Error> {
        let plain = PlanRecord { plan: String::new(), seed: 0, environment: None, ..self.clone() };
        let mut hasher = blake3::Hasher::new();
        serde_json::to_writer(std::io::BufWriter::new(&mut hasher), &plain)?;
        Ok(hasher.finalize().to_hex().to_string())
    }

    /// Returns one line for each device and test, in plan order, with the reason `missing` for those not in
    /// `lines`.
    pub fn complete_lines(&self, lines: Vec<RunLine>) -> Vec<RunLine> {
        let key = |line: &RunLine| (line.device.clone(), line.id.clone());
        let mut lines_by_test: BTreeMap<(String, String), Box<RunLine>> =
            lines.into_iter().map(|line| (key(&line), Box::new(line))).collect();
        let mut all = Vec::with_capacity(self.devices.len() * self.tests.len());
        for (index, device) in self.devices.iter().enumerate() {
            for test in &self.tests {
                all.push(match lines_by_test.remove(&(device.name.clone(), test.id.clone())) {
                    Some(line) => *line,
                    None => self.missing_line(index, device, test),
                });
            }
        }
        // Lines that are not in the plan come last, so that no observation is lost.
        all.extend(lines_by_test.into_values().map(|line| *line));
        all
    }

    /// Builds the line of a test without a verdict on a device.
    fn missing_line(&self, index: usize, device: &DeviceRecord, test: &TestRecord) -> RunLine {
        let model = test.models.get(index);
        RunLine {
            schema: RUN_SCHEMA.to_owned(),
            id: test.id.clone(),
            name: test.name.clone(),
            device: device.name.clone(),
            model: model.map(|model| model.name.clone()).unwrap_or_default(),
            verdict: VerdictWord::Inconclusive,
            reason: Some(Reason::Missing.name().to_owned()),
            detail: Some("no verdict: the run ended before it, or the record is lost".to_owned()),
            seed: self.seed,
            stress: self.stress.clone(),
            hashes: Hashes {
                test: test.hash.clone(),
                model: model.map(|model| model.hash.clone()).unwrap_or_default(),
                kernel: String::new(),
            },
            tool: self.tool.clone(),
            ..RunLine::default()
        }
    }
}

/// Environment of a run. The host name is omitted, as records are published.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EnvironmentRecord {
    /// Operating system.
    pub os: String,
    /// Processor architecture.
    pub architecture: String,
    /// Number of processors available to the run.
    pub processors: u32,
    /// Number of parallel worker processes per device.
    pub jobs: u32,
    /// Environment variables that affect drivers, if set.
    #[serde(default)]
    pub variables: BTreeMap<String, String>,
    /// Start of the run, as in RFC 3339; empty in older records.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub started: String,
    /// The suite; empty if tests were named instead.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub suite: String,
}

/// The first line of a baseline; its run lines follow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BaselineRecord {
    /// [`BASELINE_SCHEMA`](super::BASELINE_SCHEMA).
    pub schema: String,
    /// The plan, with exactly one device.
    pub plan: PlanRecord,
}

/// A device of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceRecord {
    /// Name of the device, as in run lines.
    pub name: String,
    /// Name that the driver reports.
    pub device_name: String,
    /// `discrete`, `integrated`, `virtual`, `cpu`, `simulated`, `compile-only` or `other`.
    pub kind: String,
    /// Driver name.
    pub driver_name: String,
    /// Driver information.
    pub driver_info: String,
    /// `VkDriverId`; 0 if unknown.
    pub driver_id: i32,
    /// Driver version, as the driver encodes it.
    pub driver_version: u32,
    /// Vulkan version.
    pub api_version: String,
    /// Vendor id.
    pub vendor_id: u32,
    /// Device id.
    pub device_id: u32,
    /// Device UUID.
    pub uuid: String,
    /// Features by their Vulkan names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub features: Vec<String>,
    /// Limits and properties that affect the layout of tests, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<String, String>,
    /// Memory types usable for buffers, by the names of their properties.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub memory_types: Vec<String>,
    /// The parameters of the stress, in the format of its TOML file.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stress: String,
}

/// A test of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TestRecord {
    /// Test id.
    pub id: String,
    /// The name in its header.
    pub name: String,
    /// The source file.
    pub file: String,
    /// BLAKE3 hash of its text.
    pub hash: String,
    /// The models that judge it: one for each device, in device order.
    pub models: Vec<ModelRecord>,
    /// The test as it ran, in the native syntax; empty in older records.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// The clauses that it names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clauses: Vec<String>,
}

/// A model of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ModelRecord {
    /// Its name.
    pub name: String,
    /// BLAKE3 hash of its text.
    pub hash: String,
}
