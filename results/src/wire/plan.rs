//! The records of what was to be run: plan, devices, tests, environment.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Hashes, RUN_SCHEMA, RunLine, VerdictWord};
use crate::judge::Reason;

/// `plan.json` of a results folder: what was to be run, and on what.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlanRecord {
    /// [`PLAN_SCHEMA`](super::PLAN_SCHEMA).
    pub schema: String,
    /// Version of the tool.
    pub tool: String,
    /// [Hash](PlanRecord::hash()) of everything but the seed and the environment: a run may only be resumed under the same
    /// plan, and a plan whose hash is another was changed.
    pub plan: String,
    /// The seed that everything random is drawn from.
    pub seed: u64,
    /// How long or how often each test is run.
    pub budget: String,
    /// The stress, by name.
    pub stress: String,
    /// The part of the whole plan that this is, such as `1/4`.
    pub shard: Option<String>,
    /// The devices, in order.
    pub devices: Vec<DeviceRecord>,
    /// The tests, in order.
    pub tests: Vec<TestRecord>,
    /// What surrounded the run; absent in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<EnvironmentRecord>,
}

/// The stress of a plan each of whose devices has the one that suits it, where their names are not written.
pub const DEFAULT_STRESS: &str = "default";

/// How a budget ends that is a number of instances of each test.
pub const INSTANCES_A_TEST: &str = " instances a test";
/// How a budget ends that is a number of dispatches of each placement.
pub const DISPATCHES_A_PLACEMENT: &str = " dispatches a placement";

impl PlanRecord {
    /// The number that the budget is; nothing where it is a time.
    pub fn instances(&self) -> Option<u64> {
        let ends = [INSTANCES_A_TEST, DISPATCHES_A_PLACEMENT];
        ends.into_iter().find_map(|end| self.budget.strip_suffix(end)?.parse().ok())
    }

    /// The BLAKE3 hash of everything but the seed and the environment, in hexadecimal digits.
    ///
    /// # Errors
    /// None that can be helped.
    pub fn hash(&self) -> Result<String, serde_json::Error> {
        let plain = PlanRecord { plan: String::new(), seed: 0, environment: None, ..self.clone() };
        Ok(blake3::hash(&serde_json::to_vec(&plain)?).to_hex().to_string())
    }

    /// A line for each device and test, in order: that of `lines`, or where there is none one that says that it is missing.
    pub fn completed(&self, lines: &[RunLine]) -> Vec<RunLine> {
        let mut known: BTreeMap<(&str, &str), &RunLine> =
            lines.iter().map(|line| ((line.device.as_str(), line.id.as_str()), line)).collect();
        let mut all = Vec::with_capacity(self.devices.len() * self.tests.len());
        for (index, device) in self.devices.iter().enumerate() {
            for test in &self.tests {
                all.push(match known.remove(&(device.name.as_str(), test.id.as_str())) {
                    Some(line) => line.clone(),
                    None => self.missing(index, device, test),
                });
            }
        }
        // Nothing that was seen is left out.
        all.extend(known.into_values().cloned());
        all
    }

    /// The line of a test that was to be run on a device and has no verdict.
    fn missing(&self, index: usize, device: &DeviceRecord, test: &TestRecord) -> RunLine {
        let model = test.models.get(index);
        RunLine {
            schema: RUN_SCHEMA.to_owned(),
            id: test.id.clone(),
            name: test.name.clone(),
            device: device.name.clone(),
            model: model.map(|model| model.name.clone()).unwrap_or_default(),
            verdict: VerdictWord::Inconclusive,
            reason: Some(Reason::Missing.word().to_owned()),
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

/// What surrounded a run. No host name: records are published.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EnvironmentRecord {
    /// Operating system.
    pub os: String,
    /// Processor architecture.
    pub architecture: String,
    /// Processors that the run could use.
    pub processors: u32,
    /// Worker processes at once for one device.
    pub jobs: u32,
    /// Variables that change what drivers do, where they were set.
    #[serde(default)]
    pub variables: BTreeMap<String, String>,
}

/// The first line of a baseline; its run lines follow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BaselineRecord {
    /// [`BASELINE_SCHEMA`](super::BASELINE_SCHEMA).
    pub schema: String,
    /// What was run, on this one device.
    pub plan: PlanRecord,
}

/// A device of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceRecord {
    /// The name that run lines use.
    pub name: String,
    /// The name that the driver reports.
    pub device_name: String,
    /// `discrete`, `integrated`, `virtual`, `cpu`, `simulated`, `compile-only` or `other`.
    pub kind: String,
    /// Driver name.
    pub driver_name: String,
    /// Driver information.
    pub driver_info: String,
    /// `VkDriverId`; 0 for none.
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
    /// Limits and properties that decide how tests are laid out, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<String, String>,
    /// Memory types that buffers can lie in, by the names of their properties.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub memory_types: Vec<String>,
    /// The parameters of the stress, as its TOML file has them.
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
    /// The file that it was read from.
    pub file: String,
    /// BLAKE3 hash of its text.
    pub hash: String,
    /// The models that judge it: one for each device, in their order.
    pub models: Vec<ModelRecord>,
    /// The test as it was run, in the native syntax; empty in older records.
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
