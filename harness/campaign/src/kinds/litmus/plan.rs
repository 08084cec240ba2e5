//! The plan of a run of litmus tests: tests × devices, with model, prediction and kernel of each.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use litmus::{Dialect, Prediction, Test};
use model::{Model, PredictOptions, predict};
use plan::Capabilities;
use results::portability::{HsaComparison, compare_predictions};
use results::wire::{ModelRecord, PLAN_SCHEMA, PlanRecord, TestRecord};
use runner::RunVariant;
use shaders::variant::{MemoryModel, SpirvVersion as Version};

use super::TestBudget;
use super::planned::{DeviceTest, FromHsa, PlannedTest, mark_filtered};
use crate::choice::{self, Chosen};
use crate::parallel::map;
use crate::patience::patience;
use crate::source::Loaded;
use crate::targets::{DeviceTarget, device_record, environment};
use crate::{Failure, kinds};

/// The prefix of the models of Vulkan's guarantees.
const VULKAN: &str = "vulkan";
/// Time limit of one prediction.
const PREDICTION_PATIENCE: Duration = Duration::from_secs(5);

/// The skip reason for tests that may read an undefined initial value.
const UNINITIALISED: &str = "uninitialised read";

/// The plan of a run of litmus tests.
#[derive(Debug)]
pub struct LitmusPlan {
    /// The devices, in command-line order.
    pub targets: Vec<DeviceTarget>,
    /// The tests, in plan order.
    pub items: Vec<PlannedTest>,
    /// All test runs, sorted by device and then by test.
    pub cells: Vec<DeviceTest>,
}

impl LitmusPlan {
    /// Selects models, compiles kernels and computes predictions.
    ///
    /// `time` bounds all predictions together. `skips` returns the skip reason for a device and a test, both
    /// by name.
    ///
    /// # Errors
    /// If a model is invalid, or does not judge a test's dialect.
    pub fn new(
        targets: Vec<DeviceTarget>,
        tests: Vec<Loaded>,
        model: Option<&str>,
        time: Option<Duration>,
        skips: &dyn Fn(&str, &str) -> Option<String>,
    ) -> Result<LitmusPlan, Failure> {
        let items = told_for(&targets, tests)?
            .into_iter()
            .map(PlannedTest::new)
            .collect::<Result<Vec<PlannedTest>, Failure>>()?;
        let mut models = PlannedModels::default();
        let mut cells = Vec::new();
        for (target, device) in targets.iter().enumerate() {
            for (index, item) in items.iter().enumerate() {
                let model = models.of(&item.loaded, model, &device.listed.capabilities)?;
                let kernel = match (skips(&device.name, &item.loaded.source.id), &item.hsa) {
                    (Some(reason), _) => Err(reason),
                    (None, Some(FromHsa { lowered: Err(why), .. })) => Err(why.to_string()),
                    (None, _) => device.told(&item.loaded.test, item.variant).map(|runnable| runnable.hash()),
                };
                cells.push((index, target, model, kernel));
            }
        }
        let mut asked: BTreeMap<(usize, String), Arc<Chosen>> = BTreeMap::new();
        for (item, _, model, kernel) in &cells {
            if kernel.is_ok() {
                asked.insert((*item, model.argument.clone()), model.clone());
            }
        }
        let mut predictions = compute_predictions(&items, &asked, time);
        let besides = besides(&items, &predictions, &mut models, time)?;
        let cells = cells
            .into_iter()
            .map(|(item, target, model, kernel)| {
                let prediction = predictions.get_mut(&(item, model.argument.clone())).cloned();
                let (ready, kernel) = match (kernel, prediction) {
                    (Ok(hash), Some(Ok(prediction))) => (Ok(prediction), hash),
                    (Ok(hash), Some(Err(why))) => (Err(why), hash),
                    (Ok(hash), None) => (Err("no prediction".to_owned()), hash),
                    (Err(missing), _) => (Err(missing), String::new()),
                };
                let beside = besides.get(&(item, model.argument.clone())).cloned();
                let (mutants, expected, calibrated) = (Vec::new(), Vec::new(), Vec::new());
                DeviceTest { item, target, model, ready, beside, kernel, mutants, expected, calibrated }
            })
            .collect::<Vec<DeviceTest>>();
        let mutants = super::mutants::of(&items, &cells);
        let cells =
            cells.into_iter().zip(mutants).map(|(cell, mutants)| DeviceTest { mutants, ..cell }).collect();
        Ok(LitmusPlan { targets, items, cells })
    }

    /// Returns the record of the plan, without hash and seed.
    ///
    /// # Errors
    /// If the stress of a device cannot be serialized.
    pub fn record(&self, options: &kinds::RunOptions, budget: TestBudget) -> Result<PlanRecord, Failure> {
        let models = |item: usize| {
            self.cells
                .iter()
                .filter(|cell| cell.item == item)
                .map(|cell| ModelRecord {
                    name: cell.model.model.name().to_owned(),
                    hash: cell.model.hash.clone(),
                })
                .collect()
        };
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
                .items
                .iter()
                .enumerate()
                .map(|(index, item)| TestRecord {
                    id: item.loaded.source.id.clone(),
                    name: item.loaded.test.name.clone(),
                    file: item.loaded.source.file.clone(),
                    hash: item.hash.clone(),
                    models: models(index),
                    text: item.hsa.as_ref().map_or(&item.loaded.text, |hsa| &hsa.text).clone(),
                    clauses: item.loaded.test.metadata.clauses.clone(),
                })
                .collect(),
            environment: Some(environment(options)),
        })
    }
}

#[derive(Default)]
struct PlannedModels {
    loaded: BTreeMap<String, Arc<Chosen>>,
}

impl PlannedModels {
    /// Returns the model for a test on a device. Devices without availability chains get the variant without
    /// chains.
    fn of(
        &mut self,
        loaded: &Loaded,
        asked: Option<&str>,
        capabilities: &Capabilities,
    ) -> Result<Arc<Chosen>, Failure> {
        let wanted = match asked {
            Some(name) => name,
            // Only the Vulkan program of an HSA test is judged.
            None => Model::default_for(Dialect::Vulkan),
        };
        let chains = capabilities.availability_visibility_chains;
        let name = answers::name_without_chains(wanted).filter(|_| !chains).unwrap_or(wanted);
        let chosen = self.named(name)?;
        // The lowered program of an HSA test is judged.
        if !chosen.model.judges(Dialect::Vulkan) {
            return Err(Failure::input_message(format!(
                "{}: the model `{name}` does not support programs that devices run",
                loaded.source.file
            )));
        }
        Ok(chosen)
    }

    fn named(&mut self, name: &str) -> Result<Arc<Chosen>, Failure> {
        if let Some(chosen) = self.loaded.get(name) {
            return Ok(chosen.clone());
        }
        let chosen = Arc::new(choice::load(name)?);
        self.loaded.insert(name.to_owned(), chosen.clone());
        Ok(chosen)
    }
}

/// Selects the variants that the devices can run.
///
/// Devices without the Vulkan memory model run tests that GLSL450 can express, as SPIR-V 1.3 modules. If
/// another device has the memory model, both variants run, and each device skips unsupported tests.
pub(crate) fn told_for(targets: &[DeviceTarget], tests: Vec<Loaded>) -> Result<Vec<Loaded>, Failure> {
    let lacks = |target: &&DeviceTarget| !target.listed.capabilities.memory_model;
    let lacking = targets.iter().filter(lacks).count();
    if lacking == 0 {
        return Ok(tests);
    }
    let mut told: Vec<Loaded> = Vec::with_capacity(tests.len());
    let mut anew = Vec::new();
    for loaded in tests {
        let variant: RunVariant = loaded
            .source
            .variant
            .parse()
            .map_err(|error| Failure::input_message(format!("{}: {error}", loaded.source.argument)))?;
        let old = variant.shader.model == MemoryModel::Glsl450 && variant.shader.target == Version::Vulkan11;
        if loaded.test.dialect == Dialect::Hsa || old {
            told.push(loaded);
            continue;
        }
        let plain =
            shaders::Variant { model: MemoryModel::Glsl450, target: Version::Vulkan11, ..variant.shader };
        let source = loaded.source.clone().told_anew(&RunVariant { shader: plain, ..variant }.to_string());
        anew.push(Loaded { source, ..loaded.clone() });
        if lacking < targets.len() {
            told.push(loaded);
        }
    }
    for loaded in anew {
        if !told.iter().any(|known| known.source.id == loaded.source.id) {
            told.push(loaded);
        }
    }
    Ok(told)
}

type Predicted = Result<Arc<Prediction>, String>;

/// Computes the HSA answer for each prediction of a lowered test.
///
/// # Errors
/// If the lowering is unsound: no device may be judged by it.
fn besides(
    items: &[PlannedTest],
    predictions: &BTreeMap<(usize, String), Predicted>,
    models: &mut PlannedModels,
    time: Option<Duration>,
) -> Result<BTreeMap<(usize, String), Arc<HsaComparison>>, Failure> {
    let started = Instant::now();
    let mut found = BTreeMap::new();
    let mut answers: BTreeMap<usize, Option<Prediction>> = BTreeMap::new();
    for (key @ (index, name), answer) in predictions {
        let Some(item) = items.get(*index) else { continue };
        let (Some(FromHsa { test, lowered: Ok(lowered), .. }), Ok(vulkan)) = (&item.hsa, answer) else {
            continue;
        };
        let hsa = match answers.get(index) {
            Some(hsa) => hsa.clone(),
            None => {
                let model = models.named(Model::default_for(Dialect::Hsa))?;
                let left = time.map_or(PREDICTION_PATIENCE, |time| time.saturating_sub(started.elapsed()));
                let stop = patience(left.min(PREDICTION_PATIENCE));
                let options =
                    PredictOptions { budget: model::Budget::until(&stop), ..PredictOptions::default() };
                let hsa = predict(test, &model.model, &options).ok();
                answers.insert(*index, hsa.clone());
                hsa
            }
        };
        let Some(hsa) = hsa else { continue };
        let beside = compare_predictions(test, lowered, hsa, vulkan);
        // Models of the user need not be weaker than HSA.
        if let Some(fault) = beside.fault.as_ref().filter(|_| name.starts_with(VULKAN)) {
            return Err(Failure::environment_message(format!("{}: {fault}", item.loaded.source.file)));
        }
        found.insert(key.clone(), Arc::new(beside));
    }
    Ok(found)
}

/// Computes all predictions in parallel.
fn compute_predictions(
    items: &[PlannedTest],
    asked: &BTreeMap<(usize, String), Arc<Chosen>>,
    time: Option<Duration>,
) -> BTreeMap<(usize, String), Predicted> {
    let started = Instant::now();
    let questions: Vec<(&PlannedTest, &model::Model)> =
        asked.iter().filter_map(|((item, _), chosen)| Some((items.get(*item)?, &chosen.model))).collect();
    let answers = map(&questions, |(item, model)| {
        let left = time.map_or(PREDICTION_PATIENCE, |time| time.saturating_sub(started.elapsed()));
        let stop = patience(left.min(PREDICTION_PATIENCE));
        let options = PredictOptions { budget: model::Budget::until(&stop), ..PredictOptions::default() };
        let ask = |test: &Test| predict(test, model, &options).map_err(|error| error.to_string());
        // An uninitialised read may return anything, which no table of outcomes can list.
        if let Some(test) = &item.undefined
            && ask(test)?.uninitialised_read != Some(false)
        {
            return Err(UNINITIALISED.to_owned());
        }
        let mut prediction = ask(&item.judged)?;
        mark_filtered(&item.loaded.test, &mut prediction);
        Ok(Arc::new(prediction))
    });
    asked.keys().cloned().zip(answers).collect()
}
