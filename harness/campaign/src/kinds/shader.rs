//! Runs of user shaders: each shader is dispatched repeatedly on each device with its inputs. The final
//! buffer contents are judged if the model's allowed contents are known.
//!
//! [`analysis`](crate::shader::prepare_run) computes the facts about a shader from its file.

mod judge;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use entry_point::question::Claim;
use results::Reason;
use results::wire::{
    DEFAULT_STRESS, DeviceRecord, ModelRecord, PLAN_SCHEMA, PlanRecord, RunLine, TestRecord,
};
use runner::RunSettings;
use runner::pool::{JobReport, Limits};
use runner::shader::{Answer, ShaderObservations, UserShaderJob};
use runner::wire::IncompleteReason;

use super::RunOptions;
use super::litmus::TestBudget;
use crate::Failure;
use crate::fault_injection::FaultInjection;
use crate::models::{self, LoadedModel};
use crate::run::{self, JudgedJob, RunKind};
use crate::targets::{self, DeviceTarget};
use crate::workers::WorkerTask;

/// A number in a buffer with known final values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinalNumber {
    pub name: String,
    /// Index of the buffer among the writable ones.
    pub buffer: u32,
    pub offset: u64,
    /// Its size in bytes, at most 8.
    pub bytes: u32,
}

/// The model's answer about one content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentVerdict {
    /// Some execution produces it.
    pub allowed: bool,
    /// Sequential consistency cannot produce it.
    pub weak: bool,
}

/// The buffer contents that a shader may produce.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExpectedContents {
    /// All allowed contents are known. Words other than these numbers stay unchanged.
    Known {
        /// The numbers that some invocation writes.
        cells: Vec<FinalNumber>,
        /// The answer for each combination of their values.
        contents: BTreeMap<Vec<u64>, ContentVerdict>,
    },
    /// Every content is allowed, for this reason.
    Undefined(String),
    Unknown {
        /// The shader is known to be free of races.
        is_race_free: bool,
        why: String,
    },
}

/// Returns the names of words, each given by its writable buffer and its index.
pub type WordNamer = Arc<dyn Fn(&[(u32, u64)]) -> Vec<String> + Send + Sync>;

/// A claim about all contents.
#[derive(Clone)]
pub struct ShaderClaim {
    /// The formula of the claim.
    pub text: String,
    /// The numbers that it uses.
    pub cells: Vec<FinalNumber>,
    /// The formula.
    pub claim: Arc<Claim>,
}

/// A shader with its inputs and its analysis.
#[derive(Clone)]
pub struct AnalyzedShader {
    /// The id in results.
    pub id: String,
    /// The path of the file.
    pub file: String,
    /// Command-line words for its inputs.
    pub flags: Vec<String>,
    /// The compiler, if the file is source code.
    pub compiler: Option<String>,
    /// The part that a worker gets.
    pub shader: runner::shader::Shader,
    pub buffer_names: Vec<String>,
    /// The names of their words.
    pub word_names: WordNamer,
    /// Invocations of a workgroup.
    pub local_size: [u32; 3],
    /// Bytes of workgroup memory.
    pub workgroup_bytes: u64,
    /// Required Vulkan features. Each group needs one of its members.
    pub required_features: Vec<Vec<plan::Feature>>,
    /// Required capabilities that the harness enables on no device.
    pub unsupported_capabilities: Vec<String>,
    /// True if it has loops.
    pub has_loops: bool,
    /// The contents that it may produce.
    pub expected: ExpectedContents,
    /// True if the source is right in its language, and only the module of its compiler is undefined.
    pub is_right_in_language: bool,
    /// The claim about them.
    pub claim: Option<ShaderClaim>,
    /// Notes for the reader of a report.
    pub notes: Vec<String>,
    /// Why the shader can run on no device.
    pub unavailable_reason: Option<String>,
}

impl AnalyzedShader {
    /// Creates a shader that is not analysed.
    pub(crate) fn new(id: String, file: String, entry: String) -> AnalyzedShader {
        AnalyzedShader {
            id,
            file,
            flags: Vec::new(),
            compiler: None,
            shader: runner::shader::Shader { entry, grid: [1; 3], ..runner::shader::Shader::default() },
            buffer_names: Vec::new(),
            word_names: Arc::new(|places| places.iter().map(|place| format!("{place:?}")).collect()),
            local_size: [1; 3],
            workgroup_bytes: 0,
            required_features: Vec::new(),
            unsupported_capabilities: Vec::new(),
            has_loops: false,
            expected: ExpectedContents::Unknown {
                is_race_free: false,
                why: "it was not analyzed".to_owned(),
            },
            is_right_in_language: false,
            claim: None,
            notes: Vec::new(),
            unavailable_reason: None,
        }
    }

    /// Hashes the module and its inputs.
    fn hash(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        let text = serde_json::to_vec(&self.shader).unwrap_or_default();
        hasher.update(&text);
        hasher.finalize().to_hex().to_string()
    }

    /// Returns the words that a worker reports for every content.
    fn watched_words(&self) -> Vec<(u32, u64)> {
        let known = match &self.expected {
            ExpectedContents::Known { cells, .. } => cells.as_slice(),
            ExpectedContents::Undefined(_) | ExpectedContents::Unknown { .. } => &[],
        };
        let claimed = self.claim.iter().flat_map(|claim| &claim.cells);
        let cells = known.iter().chain(claimed);
        let mut words: Vec<(u32, u64)> =
            cells.flat_map(|cell| overlapping_words(cell).map(|word| (cell.buffer, word))).collect();
        words.sort_unstable();
        words.dedup();
        words
    }

    /// Returns the first requirement that a device lacks.
    pub(crate) fn missing_requirement(
        &self,
        identity: &plan::Identity,
        capabilities: &plan::Capabilities,
    ) -> Option<String> {
        if let Some(why) = &self.unavailable_reason {
            return Some(why.clone());
        }
        let version = self.shader.words.get(1).map_or(0, |word| word >> 8 & 0xff);
        if version > NEWEST_SPIRV_MINOR
            || version == NEWEST_SPIRV_MINOR && identity.api_version.starts_with("1.2")
        {
            return Some(format!("device lacks SPIR-V 1.{version} (it has Vulkan {})", identity.api_version));
        }
        let has = |feature: &plan::Feature| capabilities.has_feature(*feature);
        if let Some(missing) = self.required_features.iter().find(|group| !group.iter().any(has)) {
            let names: Vec<&str> = missing.iter().map(|feature| feature.name()).collect();
            return Some(format!("device lacks {}", names.join(" and ")));
        }
        if let Some(unknown) = self.unsupported_capabilities.first() {
            return Some(format!("not available: vk-litmus does not enable the capability {unknown}"));
        }
        let [x, y, z] = self.local_size;
        let workgroup_invocations =
            [x, y, z].iter().fold(1_u64, |all, size| all.saturating_mul(u64::from(*size)));
        let limits = [
            (
                workgroup_invocations,
                u64::from(capabilities.max_workgroup_invocations),
                "invocations in a workgroup",
            ),
            (
                self.workgroup_bytes,
                capabilities.max_workgroup_memory_bytes.into(),
                "bytes of workgroup memory",
            ),
        ];
        if let Some((needed, available, what)) = limits.into_iter().find(|(needed, there, _)| needed > there)
        {
            return Some(format!("device lacks {needed} {what} (it has {available})"));
        }
        let plan = self.shader.plan();
        match plan.validate().and_then(|()| capabilities.check_plan(&plan)) {
            Ok(()) => None,
            Err(plan::DeviceError::Unsupported(what)) => Some(format!("device lacks {what}")),
            Err(error) => Some(error.to_string()),
        }
    }
}

/// The newest minor version of SPIR-V 1, for Vulkan 1.3 and later. Vulkan 1.2 supports one less.
const NEWEST_SPIRV_MINOR: u32 = 6;

/// Returns the words of its buffer that a number overlaps.
fn overlapping_words(cell: &FinalNumber) -> std::ops::RangeInclusive<u64> {
    cell.offset / 4..=(cell.offset + u64::from(cell.bytes.clamp(1, 8)) - 1) / 4
}

/// The plan of a shader run: shaders × devices.
pub struct ShaderPlan {
    shaders: Vec<AnalyzedShader>,
    hashes: Vec<String>,
    targets: Vec<DeviceTarget>,
    /// The skip reason of each shader on each device.
    skip_reasons: Vec<Option<String>>,
    chosen: LoadedModel,
}

impl ShaderPlan {
    /// Checks each shader against each device.
    pub fn new(targets: Vec<DeviceTarget>, shaders: Vec<AnalyzedShader>, chosen: LoadedModel) -> ShaderPlan {
        let missing_of = |target: &DeviceTarget, shader: &AnalyzedShader| {
            shader.missing_requirement(&target.listed.identity, &target.listed.capabilities)
        };
        let skip_reasons = targets
            .iter()
            .flat_map(|target| shaders.iter().map(move |shader| missing_of(target, shader)))
            .collect();
        let hashes = shaders.iter().map(AnalyzedShader::hash).collect();
        ShaderPlan { shaders, hashes, targets, skip_reasons, chosen }
    }

    pub fn ids(&self) -> Vec<String> {
        self.shaders.iter().map(|shader| shader.id.clone()).collect()
    }

    /// Returns the number of shader runs.
    pub fn len(&self) -> usize {
        self.skip_reasons.len()
    }

    /// Returns true if the plan has no shader runs.
    pub fn is_empty(&self) -> bool {
        self.skip_reasons.is_empty()
    }

    /// Returns the records of its devices.
    ///
    /// # Errors
    /// If a record cannot be serialized.
    pub fn device_records(&self) -> Result<Vec<DeviceRecord>, Failure> {
        self.targets.iter().map(targets::device_record).collect()
    }

    /// Skips the shaders for which `skip_reason_of` returns a reason, by device and id.
    pub fn skip_shaders(&mut self, skip_reason_of: &dyn Fn(&str, &str) -> Option<String>) {
        let count = self.shaders.len().max(1);
        for (index, skip_reason) in self.skip_reasons.iter_mut().enumerate() {
            let (Some(target), Some(shader)) =
                (self.targets.get(index / count), self.shaders.get(index % count))
            else {
                continue;
            };
            if let Some(reason) = skip_reason_of(&target.name, &shader.id) {
                *skip_reason = Some(reason);
            }
        }
    }

    /// Returns the record of the plan, without hash and seed.
    ///
    /// # Errors
    /// If a device cannot be serialized.
    pub fn to_record(&self, options: &RunOptions, budget: TestBudget) -> Result<PlanRecord, Failure> {
        let model = ModelRecord { name: self.chosen.model.name().to_owned(), hash: self.chosen.hash.clone() };
        let test = |(shader, hash): (&AnalyzedShader, &String)| TestRecord {
            id: shader.id.clone(),
            name: shader.shader.entry.clone(),
            file: shader.file.clone(),
            hash: hash.clone(),
            models: vec![model.clone(); self.targets.len()],
            text: String::new(),
            clauses: Vec::new(),
        };
        Ok(PlanRecord {
            schema: PLAN_SCHEMA.to_owned(),
            tool: env!("CARGO_PKG_VERSION").to_owned(),
            plan: String::new(),
            seed: 0,
            budget: budget.to_string(),
            stress: options.stress.clone().unwrap_or_else(|| DEFAULT_STRESS.to_owned()),
            shard: options.shard.map(|shard| shard.to_string()),
            devices: self.device_records()?,
            tests: self.shaders.iter().zip(&self.hashes).map(test).collect(),
            environment: Some(targets::record_environment(options)),
        })
    }

    fn shader_run(&self, cell: usize) -> (&DeviceTarget, &AnalyzedShader, &str) {
        let count = self.shaders.len().max(1);
        let number = cell % count;
        (&self.targets[cell / count], &self.shaders[number], &self.hashes[number])
    }
}

/// A plan with the options of its run.
pub struct ShaderKind<'a> {
    pub plan: &'a ShaderPlan,
    pub options: &'a RunOptions,
    /// The time or the dispatches of each shader.
    pub budget: TestBudget,
    /// The seed of the whole run.
    pub seed: u64,
    /// Fault injection for tests.
    pub fault_injection: &'a FaultInjection,
}

impl RunKind for ShaderKind<'_> {
    type Job = UserShaderJob;
    type Snapshot = ShaderObservations;
    type Answer = Answer;

    fn targets(&self) -> Vec<&DeviceTarget> {
        self.plan.targets.iter().collect()
    }

    fn test_runs(&self) -> Vec<run::TestOnDevice> {
        let cell = |(index, missing): (usize, &Option<String>)| run::TestOnDevice {
            target: index / self.plan.shaders.len().max(1),
            id: self.plan.shader_run(index).1.id.clone(),
            skip_reason: missing.clone(),
        };
        self.plan.skip_reasons.iter().enumerate().map(cell).collect()
    }

    fn task(&self) -> WorkerTask {
        WorkerTask::Shader { validate: self.options.validate }
    }

    fn limits(&self, target: usize, waiting: usize) -> Limits {
        let time = match self.budget {
            TestBudget::Time(time) => {
                let count = self.plan.shaders.len();
                let device_runs = self.plan.skip_reasons.iter().skip(target * count).take(count);
                let runnable = device_runs.filter(|missing| missing.is_none()).count().max(1);
                Some(time.mul_f64((waiting as f64 / runnable as f64).clamp(0.0, 1.0)))
            }
            TestBudget::Instances(_) => None,
        };
        Limits {
            workers: self.options.jobs,
            time,
            retries: self.options.retries,
            ..Limits::with_memory_limit()
        }
    }

    fn create_job(&self, cell: usize, _is_last: bool, share: Option<Duration>) -> UserShaderJob {
        let (target, shader, hash) = self.plan.shader_run(cell);
        UserShaderJob {
            id: shader.id.clone(),
            device: self.fault_injection.mark_selector(&shader.id, &target.selector),
            shader: shader.shader.clone(),
            watched: shader.watched_words(),
            instances: match self.budget {
                TestBudget::Instances(instances) => Some(instances),
                TestBudget::Time(_) => None,
            },
            seconds: share.map(|share| share.as_secs_f64()),
            seed: runner::test_seed(self.seed, hash),
            stress: Some(target.stress.clone()),
            patience: RunSettings::SUBMISSION_TIMEOUT.as_secs_f64(),
        }
    }

    fn incomplete_reason(answer: &Answer) -> Option<&IncompleteReason> {
        answer.failure.as_ref()
    }

    fn snapshot_progress(snapshot: &ShaderObservations) -> (u64, f64) {
        (snapshot.dispatches, snapshot.seconds)
    }

    fn skipped_line(&self, cell: usize, missing: &str) -> RunLine {
        judge::skipped_line(self, cell, missing)
    }

    fn judge(
        &self,
        cell: usize,
        report: JobReport<ShaderObservations, Answer>,
        before: Option<Reason>,
    ) -> JudgedJob {
        judge::judge_report(self, cell, report, before)
    }
}

/// Loads the named model, or the default for shaders.
///
/// # Errors
/// If the model does not exist.
pub fn load_model(name: Option<&str>) -> Result<LoadedModel, Failure> {
    models::load(name.unwrap_or(model::Model::default_for_dialect(litmus::Dialect::Vulkan)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number_at(offset: u64, bytes: u32) -> FinalNumber {
        FinalNumber { name: "x".to_owned(), buffer: 0, offset, bytes }
    }

    #[test]
    fn values_map_to_the_words_that_they_overlap() {
        let cases = [(0, 4, vec![0]), (4, 8, vec![1, 2]), (6, 2, vec![1]), (3, 1, vec![0]), (8, 4, vec![2])];
        for (offset, bytes, expected) in cases {
            assert_eq!(
                overlapping_words(&number_at(offset, bytes)).collect::<Vec<_>>(),
                expected,
                "{offset} {bytes}"
            );
        }
    }
}
