//! The plan of a run of litmus tests: tests × devices, with model, prediction and kernel of each.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use litmus::{Dialect, Prediction, Test};
use model::{Model, PredictOptions, predict};
use plan::Capabilities;
use results::portability::{HsaComparison, compare_predictions};
use results::wire::{ModelRecord, PLAN_SCHEMA, PlanRecord, TestRecord};
use runner::RunVariant;
use shaders::variant::{MemoryModel, SpirvVersion as Version};

use super::TestBudget;
use super::planned::{DeviceTest, HsaSource, PlannedTest, PredictionResult, mark_filtered};
use crate::models::{self, LoadedModel};
use crate::parallel::parallel_map;
use crate::source::LoadedTest;
use crate::targets::{DeviceTarget, device_record, record_environment};
use crate::time_limit::stop_after;
use crate::{Failure, kinds};

/// The prefix of the models of Vulkan's guarantees.
const VULKAN_MODEL_PREFIX: &str = "vulkan";
/// Time limit of one prediction.
const PREDICTION_TIMEOUT: Duration = Duration::from_secs(5);
/// Time limit of a prediction between two tests of a run. Meanwhile no worker is supervised.
const LATE_PREDICTION_TIMEOUT: Duration = Duration::from_millis(250);

/// The skip reason for tests that may read an undefined initial value.
const UNINITIALISED_READ: &str = "uninitialised read";

/// The plan of a run of litmus tests.
#[derive(Debug)]
pub struct LitmusPlan {
    /// The devices, in command-line order.
    pub targets: Vec<DeviceTarget>,
    /// The tests, in plan order.
    pub tests: Vec<PlannedTest>,
    /// All test runs, sorted by device and then by test.
    pub device_tests: Vec<DeviceTest>,
}

impl LitmusPlan {
    /// Selects models, compiles kernels and computes predictions.
    ///
    /// `time` bounds all predictions together; [`LitmusPlan::prediction`] computes the others. `skip_reason_of` has the reason for a device and a test,
    /// both by name.
    ///
    /// # Errors
    /// If a model is invalid, or does not judge a test's dialect.
    pub fn new(
        targets: Vec<DeviceTarget>,
        tests: Vec<LoadedTest>,
        model: Option<&str>,
        time: Option<Duration>,
        skip_reason_of: &dyn Fn(&str, &str) -> Option<String>,
    ) -> Result<LitmusPlan, Failure> {
        let planned_tests = select_variants(&targets, tests)?
            .into_iter()
            .map(PlannedTest::new)
            .collect::<Result<Vec<PlannedTest>, Failure>>()?;
        let mut models = PlannedModels::default();
        let started = Instant::now();
        let mut cells = Vec::new();
        for (target, device) in targets.iter().enumerate() {
            for (index, item) in planned_tests.iter().enumerate() {
                let model = models.model_for(&item.loaded, model, &device.listed.capabilities)?;
                let kernel = match (skip_reason_of(&device.name, &item.loaded.source.id), &item.hsa) {
                    (Some(reason), _) => Err(reason),
                    (None, Some(HsaSource { lowered: Err(why), .. })) => Err(why.to_string()),
                    // The worker compiles it, if there is time for the test at all.
                    (None, _) if time.is_some_and(|time| started.elapsed() > time) => Ok(String::new()),
                    (None, _) => {
                        device.compile_test(&item.loaded.test, item.variant).map(|runnable| runnable.hash())
                    }
                };
                cells.push((index, target, model, kernel));
            }
        }
        let mut requested: BTreeMap<(usize, String), Arc<LoadedModel>> = BTreeMap::new();
        for (item, _, model, kernel) in &cells {
            if kernel.is_ok() {
                requested.insert((*item, model.argument.clone()), model.clone());
            }
        }
        let predictions = compute_predictions(&planned_tests, &requested, time);
        let hsa_comparisons = compute_hsa_comparisons(&planned_tests, &predictions, &mut models, time)?;
        let device_tests = cells
            .into_iter()
            .map(|(test_index, target_index, model, kernel)| {
                let (prediction, kernel_hash) = match kernel {
                    Ok(hash) => (predictions.get(&(test_index, model.argument.clone())).cloned(), hash),
                    Err(missing) => (Some(Err(missing)), String::new()),
                };
                let prediction = prediction.map_or_else(OnceLock::new, OnceLock::from);
                let hsa_comparison = hsa_comparisons.get(&(test_index, model.argument.clone())).cloned();
                let (mutants, expected_outcomes, calibrated_outcomes) = (Vec::new(), Vec::new(), Vec::new());
                DeviceTest {
                    test_index,
                    target_index,
                    model,
                    prediction,
                    hsa_comparison,
                    kernel_hash,
                    mutants,
                    expected_outcomes,
                    calibrated_outcomes,
                }
            })
            .collect::<Vec<DeviceTest>>();
        let mutants = super::mutants::find_mutants(&planned_tests, &device_tests);
        let device_tests = device_tests
            .into_iter()
            .zip(mutants)
            .map(|(cell, mutants)| DeviceTest { mutants, ..cell })
            .collect();
        Ok(LitmusPlan { targets, tests: planned_tests, device_tests })
    }

    /// Returns the prediction of a test run, or why it is skipped, and computes it if it is not known.
    pub fn prediction<'p>(&self, cell: &'p DeviceTest) -> &'p PredictionResult {
        let item = &self.tests[cell.test_index];
        cell.prediction.get_or_init(|| predict_item(item, &cell.model.model, LATE_PREDICTION_TIMEOUT))
    }

    /// Returns the record of the plan, without hash and seed.
    ///
    /// # Errors
    /// If the stress of a device cannot be serialized.
    pub fn to_record(&self, options: &kinds::RunOptions, budget: TestBudget) -> Result<PlanRecord, Failure> {
        let mut models: Vec<Vec<ModelRecord>> = vec![Vec::new(); self.tests.len()];
        for cell in &self.device_tests {
            let (name, hash) = (cell.model.model.name().to_owned(), cell.model.hash.clone());
            models.iter_mut().skip(cell.test_index).take(1).for_each(|own| {
                own.push(ModelRecord { name: name.clone(), hash: hash.clone() });
            });
        }
        let stresses: Vec<&str> = self.targets.iter().map(|target| target.stress.name.as_str()).collect();
        Ok(PlanRecord {
            schema: PLAN_SCHEMA.to_owned(),
            tool: env!("CARGO_PKG_VERSION").to_owned(),
            plan: String::new(),
            seed: 0,
            budget: budget.to_string(),
            stress: stresses.join(","),
            shard: options.shard.map(|shard| shard.to_string()),
            devices: self.targets.iter().map(device_record).collect::<Result<_, _>>()?,
            tests: self
                .tests
                .iter()
                .zip(models)
                .map(|(item, models)| TestRecord {
                    id: item.loaded.source.id.clone(),
                    name: item.loaded.test.name.clone(),
                    file: item.loaded.source.file.clone(),
                    hash: item.hash.clone(),
                    models,
                    text: item.hsa.as_ref().map_or(&item.loaded.text, |hsa| &hsa.text).clone(),
                    clauses: item.loaded.test.metadata.clauses.clone(),
                })
                .collect(),
            environment: Some(record_environment(options)),
        })
    }
}

#[derive(Default)]
struct PlannedModels {
    loaded: BTreeMap<String, Arc<LoadedModel>>,
}

impl PlannedModels {
    /// Returns the model for a test on a device. Devices without availability chains get the variant without
    /// chains.
    fn model_for(
        &mut self,
        loaded: &LoadedTest,
        requested: Option<&str>,
        capabilities: &Capabilities,
    ) -> Result<Arc<LoadedModel>, Failure> {
        let requested_name = match requested {
            Some(name) => name,
            // Only the Vulkan program of an HSA test is judged.
            None => Model::default_for_dialect(Dialect::Vulkan),
        };
        let has_chains = capabilities.availability_visibility_chains;
        let name =
            verdicts::name_without_chains(requested_name).filter(|_| !has_chains).unwrap_or(requested_name);
        let chosen = self.load_once(name)?;
        // The lowered program of an HSA test is judged.
        if !chosen.model.supports_dialect(Dialect::Vulkan) {
            return Err(Failure::input_message(format!(
                "{}: the model `{name}` does not support programs that devices run",
                loaded.source.file
            )));
        }
        Ok(chosen)
    }

    fn load_once(&mut self, name: &str) -> Result<Arc<LoadedModel>, Failure> {
        if let Some(chosen) = self.loaded.get(name) {
            return Ok(chosen.clone());
        }
        let chosen = Arc::new(models::load(name)?);
        self.loaded.insert(name.to_owned(), chosen.clone());
        Ok(chosen)
    }
}

/// Selects the variants that the devices can run.
///
/// Devices without the Vulkan memory model run tests that GLSL450 can express, as SPIR-V 1.3 modules. If
/// another device has the memory model, both variants run, and each device skips unsupported tests.
pub(crate) fn select_variants(
    targets: &[DeviceTarget],
    tests: Vec<LoadedTest>,
) -> Result<Vec<LoadedTest>, Failure> {
    let lacks_memory_model = |target: &&DeviceTarget| !target.listed.capabilities.memory_model;
    let lacking_count = targets.iter().filter(lacks_memory_model).count();
    if lacking_count == 0 {
        return Ok(tests);
    }
    let mut selected: Vec<LoadedTest> = Vec::with_capacity(tests.len());
    let mut glsl_variants = Vec::new();
    for loaded in tests {
        let variant: RunVariant = loaded
            .source
            .variant
            .parse()
            .map_err(|error| Failure::input_message(format!("{}: {error}", loaded.source.argument)))?;
        let is_glsl450 =
            variant.shader.model == MemoryModel::Glsl450 && variant.shader.target == Version::Vulkan11;
        if loaded.test.dialect == Dialect::Hsa || is_glsl450 {
            selected.push(loaded);
            continue;
        }
        let glsl450 =
            shaders::Variant { model: MemoryModel::Glsl450, target: Version::Vulkan11, ..variant.shader };
        let source = loaded
            .source
            .clone()
            .with_variant_replaced(&RunVariant { shader: glsl450, ..variant }.to_string());
        glsl_variants.push(LoadedTest { source, ..loaded.clone() });
        if lacking_count < targets.len() {
            selected.push(loaded);
        }
    }
    for loaded in glsl_variants {
        if !selected.iter().any(|known| known.source.id == loaded.source.id) {
            selected.push(loaded);
        }
    }
    Ok(selected)
}

/// Computes the HSA answer for each prediction of a lowered test.
///
/// # Errors
/// If the lowering is unsound: no device may be judged by it.
fn compute_hsa_comparisons(
    items: &[PlannedTest],
    predictions: &BTreeMap<(usize, String), PredictionResult>,
    models: &mut PlannedModels,
    time: Option<Duration>,
) -> Result<BTreeMap<(usize, String), Arc<HsaComparison>>, Failure> {
    let started = Instant::now();
    let mut found = BTreeMap::new();
    let mut answers: BTreeMap<usize, Option<Prediction>> = BTreeMap::new();
    for (key @ (index, name), answer) in predictions {
        let Some(item) = items.get(*index) else { continue };
        let (Some(HsaSource { test, lowered: Ok(lowered), .. }), Ok(vulkan)) = (&item.hsa, answer) else {
            continue;
        };
        let hsa = match answers.get(index) {
            Some(hsa) => hsa.clone(),
            None => {
                let model = models.load_once(Model::default_for_dialect(Dialect::Hsa))?;
                let remaining =
                    time.map_or(PREDICTION_TIMEOUT, |time| time.saturating_sub(started.elapsed()));
                let stop = stop_after(remaining.min(PREDICTION_TIMEOUT));
                let options =
                    PredictOptions { budget: model::Budget::until(&stop), ..PredictOptions::default() };
                let hsa = predict(test, &model.model, &options).ok();
                answers.insert(*index, hsa.clone());
                hsa
            }
        };
        let Some(hsa) = hsa else { continue };
        let comparison = compare_predictions(test, lowered, hsa, vulkan);
        // Models of the user need not be weaker than HSA.
        if let Some(fault) = comparison.fault.as_ref().filter(|_| name.starts_with(VULKAN_MODEL_PREFIX)) {
            return Err(Failure::environment_message(format!("{}: {fault}", item.loaded.source.file)));
        }
        found.insert(key.clone(), Arc::new(comparison));
    }
    Ok(found)
}

/// Computes predictions in parallel until the time is up, one for all variants of a test with the same program.
fn compute_predictions(
    items: &[PlannedTest],
    requested: &BTreeMap<(usize, String), Arc<LoadedModel>>,
    time: Option<Duration>,
) -> BTreeMap<(usize, String), PredictionResult> {
    let started = Instant::now();
    let mut questions: Vec<(&PlannedTest, &model::Model)> = Vec::new();
    let mut known: BTreeMap<(&str, &str), Vec<usize>> = BTreeMap::new();
    let mut numbers = Vec::with_capacity(requested.len());
    for ((index, name), chosen) in requested {
        let item = &items[*index];
        let known = known.entry((&item.hash, name)).or_default();
        let is_same = |number: &&usize| questions[**number].0.judged_test() == item.judged_test();
        let number = known.iter().find(is_same).copied().unwrap_or(questions.len());
        if number == questions.len() {
            known.push(number);
            questions.push((item, &chosen.model));
        }
        numbers.push(number);
    }
    let answers = parallel_map(&questions, |(item, model)| {
        let remaining = time.map_or(PREDICTION_TIMEOUT, |time| time.saturating_sub(started.elapsed()));
        let is_left_out = remaining.is_zero() && item.hsa.is_none();
        (!is_left_out).then(|| predict_item(item, model, remaining.min(PREDICTION_TIMEOUT)))
    });
    let known = requested.keys().cloned().zip(numbers);
    known.filter_map(|(key, number)| Some((key, answers[number].clone()?))).collect()
}

/// Predicts the outcomes of a planned test within a time.
fn predict_item(item: &PlannedTest, model: &Model, time: Duration) -> PredictionResult {
    let stop = stop_after(time);
    let options = PredictOptions { budget: model::Budget::until(&stop), ..PredictOptions::default() };
    let predict_test = |test: &Test| predict(test, model, &options).map_err(|error| error.to_string());
    // An uninitialised read may return anything, which no table of outcomes can list.
    if let Some(test) = &item.test_with_undefined
        && predict_test(test)?.uninitialised_read != Some(false)
    {
        return Err(UNINITIALISED_READ.to_owned());
    }
    let mut prediction = predict_test(item.judged_test())?;
    mark_filtered(&item.loaded.test, &mut prediction);
    Ok(Arc::new(prediction))
}
