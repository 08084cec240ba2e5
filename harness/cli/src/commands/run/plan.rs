//! What is to be run: tests × devices, each with the model that judges, its prediction and its kernel.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use device::Listed;
use litmus::convert::guarded;
use litmus::{Dialect, Lowered, LoweringError, Prediction, Term, Test};
use model::{Budget, Model, Options, PredictError, predict};
use plan::Capabilities;
use results::portability::{Beside, beside};
use results::wire::{DeviceRecord, EnvironmentRecord, ModelRecord, PLAN_SCHEMA, PlanRecord, TestRecord};
use runner::{Stress, Variant};
use shaders::Program;

use crate::arguments::{Run, Shard};
use crate::choice::{self, Chosen};
use crate::exit::Failure;
use crate::inputs::Loaded;
use crate::output::say;
use crate::parallel::in_order;
use crate::patience::patience;
use crate::probe::{self, CompileOnly, Meant, Trouble};

/// How the names of the models begin that say what Vulkan owes.
const VULKAN: &str = "vulkan";
/// The longest that a test is asked about.
const PREDICTION_PATIENCE: Duration = Duration::from_secs(5);

/// A device of the plan.
#[derive(Debug)]
pub struct Target {
    /// The name that run lines use; unique in the plan.
    pub name: String,
    /// A selector that means this device alone.
    pub selector: String,
    /// The device.
    pub listed: Listed,
    /// How tests are spread over it.
    pub stress: Stress,
    /// The process that it lives in, where that is not one with this machine's drivers.
    pub compile_only: Option<Box<CompileOnly>>,
}

impl Target {
    /// The selector that the command line takes; a fault has a flag of its own.
    pub fn device(&self) -> &str {
        match &self.compile_only {
            Some(_) => &self.name,
            None if probe::is_sim(&self.listed) => sim::SimDevice::NAME,
            None => &self.selector,
        }
    }
}

/// A test of the plan.
#[derive(Debug)]
pub struct Item {
    /// The test and where it comes from.
    pub loaded: Loaded,
    /// BLAKE3 hash of its text.
    pub hash: String,
    /// The program that is judged: a filter cannot be imposed on a device.
    pub judged: Test,
    /// The HSA test that it was lowered from, where it was.
    pub hsa: Option<FromHsa>,
    /// How it is told to devices.
    pub variant: Variant,
}

/// An HSA test of the plan. A device is asked for the lowered program; HSA's own answer stands beside the verdict.
#[derive(Debug)]
pub struct FromHsa {
    /// The test as it was written.
    pub test: Test,
    /// Its text.
    pub text: String,
    /// The Vulkan program, or why there is none.
    pub lowered: Result<Lowered, LoweringError>,
}

/// A test on a device.
#[derive(Debug)]
pub struct Cell {
    /// Index into [`Plan::items`].
    pub item: usize,
    /// Index into [`Plan::targets`].
    pub target: usize,
    /// The model that judges.
    pub model: Rc<Chosen>,
    /// What it says, or what the test is skipped for.
    pub ready: Result<Rc<Prediction>, String>,
    /// What HSA says of the test that the program was lowered from.
    pub beside: Option<Rc<Beside>>,
    /// BLAKE3 hash of the kernel; empty where there is none.
    pub kernel: String,
}

/// Tests × devices.
#[derive(Debug)]
pub struct Plan {
    /// The devices, in the order in which they were named.
    pub targets: Vec<Target>,
    /// The tests, in order.
    pub items: Vec<Item>,
    /// Device by device, test by test.
    pub cells: Vec<Cell>,
}

/// The devices that are asked for; the best one when none is.
///
/// # Errors
/// When one is not there.
pub fn targets(
    devices: &[String],
    stress: Option<&Stress>,
) -> Result<(Vec<Target>, device::DriverEnvironment), Failure> {
    let mut selectors = probe::selectors(devices)?;
    let environment = probe::environment(&selectors)?;
    let (all, trouble) = probe::list(&environment, &selectors)?;
    if selectors.is_empty() {
        if let (Some(_), Some(why)) = (&trouble.no_driver, trouble.text()) {
            say(&format!("{why}\nno Vulkan device: tests run on the built-in simulated GPU (sim)"));
        }
        selectors.push(Meant::Listed(device::Selector::Best));
    }
    let mut targets: Vec<Target> = Vec::new();
    let mut mesas = None;
    for selector in &selectors {
        let mut compile_only = Vec::new();
        if let Meant::CompileOnly { family, version } = selector {
            let known = match mesas.take() {
                Some(known) => known,
                None => probe::mesas(None)?,
            };
            compile_only = probe::choose_compile_only(family, version.as_deref(), &known)?;
            mesas = Some(known);
        } else {
            compile_only.extend(probe::compile_only_at(selector, all.len()));
        }
        if !compile_only.is_empty() {
            for device in compile_only {
                add_compile_only(&mut targets, device, stress)?;
            }
            continue;
        }
        let listed = selector.choose(&all).map_err(|error| no_such_device(&error, &all, &trouble))?;
        if targets.iter().any(|target| target.compile_only.is_none() && target.listed.index == listed.index) {
            continue;
        }
        let same_name = targets.iter().filter(|t| t.listed.identity.name == listed.identity.name).count();
        let name = match same_name {
            0 => listed.identity.name.clone(),
            earlier => format!("{} #{}", listed.identity.name, earlier + 1),
        };
        targets.push(Target {
            name,
            selector: probe::exact_selector(listed, &all),
            stress: stress_for(stress, listed)?,
            listed: listed.clone(),
            compile_only: None,
        });
    }
    Ok((targets, environment))
}

fn add_compile_only(
    targets: &mut Vec<Target>,
    device: CompileOnly,
    stress: Option<&Stress>,
) -> Result<(), Failure> {
    let name = device.name();
    if !targets.iter().any(|target| target.name == name) {
        targets.push(Target {
            selector: device.listed.identity.name.clone(),
            stress: stress_for(stress, &device.listed)?,
            listed: device.listed.clone(),
            compile_only: Some(Box::new(device)),
            name,
        });
    }
    Ok(())
}

fn no_such_device(error: &plan::DeviceError, all: &[Listed], trouble: &Trouble) -> Failure {
    let names: Vec<String> =
        all.iter().map(|device| format!("{} ({})", device.identity.name, device.index)).collect();
    let why = trouble.text().map_or_else(String::new, |why| format!("{why}\n"));
    Failure::environment_message(format!("{why}{error}: there are {}", names.join(", ")))
}

/// Gives a fault to the simulated GPU.
pub fn break_rule(targets: &mut [Target], fault: sim::Fault) {
    let Some(row) = fault.row() else { return };
    for target in targets {
        target.selector = format!("{}:{}", target.selector, row.name);
        target.listed = probe::simulated(target.listed.index, fault);
    }
}

/// The stress of a file or of a preset.
///
/// # Errors
/// When there is none, or it is wrong.
pub fn stress(argument: &str) -> Result<Stress, Failure> {
    if !argument.ends_with(".toml") {
        return Stress::preset(argument).map_err(Failure::input_error);
    }
    let text = std::fs::read_to_string(argument)
        .map_err(|error| Failure::input_message(format!("{argument}: {error}")))?;
    Stress::from_toml(argument, &text).map_err(Failure::input_error)
}

/// The stress asked for, or the one that suits a device, within its limits.
///
/// # Errors
/// When a file asks for more than the device has.
pub fn stress_for(asked: Option<&Stress>, device: &Listed) -> Result<Stress, Failure> {
    let capabilities = &device.capabilities;
    let stress = match asked {
        Some(stress) => stress.clone(),
        None => Stress::for_device(&device.identity, capabilities).map_err(Failure::input_error)?,
    };
    stress.check_loop_budget(capabilities.loop_budget).map_err(Failure::input_error)?;
    // A file says what its author wants; a preset is there for every device.
    if stress.name.ends_with(".toml") {
        stress.check_limits(capabilities).map_err(Failure::input_error)?;
    }
    let (reduced, changes) = stress.reduced(capabilities);
    if !changes.is_empty() {
        let (stress, device) = (&stress.name, &device.identity.name);
        say(&format!("warning: stress `{stress}` is reduced on {device}: {}", changes.join(", ")));
    }
    Ok(reduced)
}

/// Every `count`-th test from the `index`-th on: neighbours are alike, so that stripes are fairer than blocks.
pub fn part<T>(all: Vec<T>, shard: Option<Shard>) -> Vec<T> {
    match shard {
        None => all,
        Some(Shard { index, count }) => all
            .into_iter()
            .enumerate()
            .filter(|(i, _)| i % count == index - 1)
            .map(|(_, item)| item)
            .collect(),
    }
}

impl Plan {
    /// Chooses models, compiles and predicts. `time`, where there is one, bounds all predictions together; `skips` says for
    /// what a test is not to be run on a device, both by name.
    ///
    /// # Errors
    /// When a model is wrong, or does not speak of a test's dialect.
    pub fn new(
        targets: Vec<Target>,
        tests: Vec<Loaded>,
        model: Option<&str>,
        time: Option<Duration>,
        skips: &dyn Fn(&str, &str) -> Option<String>,
    ) -> Result<Plan, Failure> {
        let items = tests
            .into_iter()
            .map(|mut loaded| {
                let variant: Variant = loaded.source.variant.parse().map_err(|error| {
                    Failure::input_message(format!("{}: {error}", loaded.source.argument))
                })?;
                let hash = choice::hash(&loaded.text);
                if loaded.test.khronos.is_some() {
                    // A device cannot be forced to read a value: the program guards what follows instead.
                    loaded.test = guarded(&loaded.test);
                    loaded.text = litmus::print(&loaded.test);
                }
                let hsa = (loaded.test.dialect == Dialect::Hsa).then(|| lowered(&mut loaded));
                // What the variant says: under GLSL450 scopes mean something else. Where it cannot say the test, there is no
                // kernel either, and the test is skipped for that.
                let said =
                    shaders::meaning(&loaded.test, variant.told).unwrap_or_else(|_| loaded.test.clone());
                let named = match &hsa {
                    Some(FromHsa { test, lowered: Ok(lowered), .. }) => {
                        Lowered { test: said, meaning: lowered.meaning.clone() }.with_names_of(test)
                    }
                    _ => said,
                };
                Ok(Item { hash, judged: without_filter(&named), variant, loaded, hsa })
            })
            .collect::<Result<Vec<Item>, Failure>>()?;
        let mut models = Models::default();
        let mut cells = Vec::new();
        for (target, device) in targets.iter().enumerate() {
            for (index, item) in items.iter().enumerate() {
                let model = models.of(&item.loaded, model, &device.listed.capabilities)?;
                let kernel = match (skips(&device.name, &item.loaded.source.id), &item.hsa) {
                    (Some(reason), _) => Err(reason),
                    (None, Some(FromHsa { lowered: Err(why), .. })) => Err(why.to_string()),
                    (None, _) => kernel(&item.loaded.test, item.variant, device),
                };
                cells.push((index, target, model, kernel));
            }
        }
        let mut asked: BTreeMap<(usize, String), Rc<Chosen>> = BTreeMap::new();
        for (item, _, model, kernel) in &cells {
            if kernel.is_ok() {
                asked.insert((*item, model.argument.clone()), model.clone());
            }
        }
        let mut predictions = predictions(&items, &asked, time);
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
                Cell { item, target, model, ready, beside, kernel }
            })
            .collect();
        Ok(Plan { targets, items, cells })
    }

    /// The published form, with the hash that a resumed run must share.
    ///
    /// # Errors
    /// None that can be helped.
    pub fn record(&self, arguments: &Run, budget: &str, seed: u64) -> Result<PlanRecord, Failure> {
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
        let mut record = PlanRecord {
            schema: PLAN_SCHEMA.to_owned(),
            tool: env!("CARGO_PKG_VERSION").to_owned(),
            plan: String::new(),
            seed: 0,
            budget: budget.to_owned(),
            stress: stresses.join(","),
            shard: arguments.shard.map(|shard| shard.to_string()),
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
            environment: Some(environment(arguments)),
        };
        record.plan = record.hash().map_err(Failure::environment_error)?;
        record.seed = seed;
        Ok(record)
    }
}

/// The published form of a device.
///
/// # Errors
/// When its stress cannot be written.
pub fn device_record(target: &Target) -> Result<DeviceRecord, Failure> {
    let identity = target.listed.identity.clone();
    let capabilities = &target.listed.capabilities;
    Ok(DeviceRecord {
        name: target.name.clone(),
        device_name: identity.device_name,
        kind: identity.kind,
        driver_name: identity.driver_name,
        driver_info: identity.driver_info,
        driver_id: identity.driver_id,
        driver_version: identity.driver_version,
        api_version: identity.api_version,
        vendor_id: identity.vendor_id,
        device_id: identity.device_id,
        uuid: identity.uuid,
        features: features(capabilities),
        limits: limits(capabilities),
        memory_types: capabilities.memory_types.iter().map(ToString::to_string).collect(),
        stress: target.stress.to_toml().map_err(Failure::input_error)?,
    })
}

/// The features of a device that tests ask for, by their Vulkan names.
fn features(capabilities: &Capabilities) -> Vec<String> {
    let model = [
        ("vulkanMemoryModel", capabilities.memory_model),
        ("vulkanMemoryModelDeviceScope", capabilities.device_scope),
        ("vulkanMemoryModelAvailabilityVisibilityChains", capabilities.availability_visibility_chains),
        ("computeFullSubgroups", capabilities.full_subgroups),
    ];
    let mut names: Vec<String> = capabilities.features.clone();
    names.extend(model.into_iter().filter(|(_, there)| *there).map(|(name, _)| name.to_owned()));
    names.sort();
    names.dedup();
    names
}

/// The limits that decide how tests are laid out.
fn limits(capabilities: &Capabilities) -> BTreeMap<String, String> {
    let (smallest, largest) = capabilities.subgroup_size_range;
    let queues: Vec<String> = capabilities.compute_queues.iter().map(u32::to_string).collect();
    let loops = capabilities.loop_budget.map_or_else(|| "unlimited".to_owned(), |budget| budget.to_string());
    [
        ("subgroup size", capabilities.subgroup_size.to_string()),
        ("subgroup sizes", format!("{smallest} to {largest}")),
        ("workgroup invocations", capabilities.max_workgroup_invocations.to_string()),
        ("workgroups", capabilities.max_workgroups.to_string()),
        ("workgroup subgroups", capabilities.max_workgroup_subgroups.to_string()),
        ("workgroup memory in bytes", capabilities.max_workgroup_memory_bytes.to_string()),
        ("storage buffer in bytes", capabilities.max_storage_buffer_bytes.to_string()),
        ("storage buffers", capabilities.max_storage_buffers.to_string()),
        ("push constants in bytes", capabilities.max_push_constant_bytes.to_string()),
        ("queues by family with compute", queues.join(", ")),
        ("loop iterations of an invocation", loops),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect()
}

/// How the names of variables begin that change what drivers do.
const DRIVER_VARIABLES: [&str; 9] =
    ["VK_", "LP_", "GALLIUM_", "MESA_", "RADV_", "ANV_", "NVK_", "AMD_", "LIBGL_"];

pub fn environment(arguments: &Run) -> EnvironmentRecord {
    let ours = |name: &str| DRIVER_VARIABLES.iter().any(|begin| name.starts_with(begin));
    EnvironmentRecord {
        os: std::env::consts::OS.to_owned(),
        architecture: std::env::consts::ARCH.to_owned(),
        processors: std::thread::available_parallelism()
            .map_or(1, |number| u32::try_from(number.get()).unwrap_or(u32::MAX)),
        jobs: arguments.jobs.get(),
        variables: std::env::vars_os()
            .filter_map(|(name, value)| {
                Some((name.into_string().ok()?, value.to_string_lossy().into_owned()))
            })
            .filter(|(name, _)| ours(name) && !name.starts_with("VK_LITMUS_"))
            .collect(),
    }
}

/// The models loaded so far.
#[derive(Default)]
struct Models {
    loaded: BTreeMap<String, Rc<Chosen>>,
}

impl Models {
    /// The model that judges a test on a device: one without chains where the device has none.
    fn of(
        &mut self,
        loaded: &Loaded,
        asked: Option<&str>,
        capabilities: &Capabilities,
    ) -> Result<Rc<Chosen>, Failure> {
        let wanted = match asked {
            Some(name) => name,
            // An HSA test without a Vulkan program has no other model to be judged by either.
            None => Model::default_for(Dialect::Vulkan),
        };
        let chains = capabilities.availability_visibility_chains;
        let name = choice::without_chains(wanted).filter(|_| !chains).unwrap_or(wanted);
        let chosen = self.named(name)?;
        // Of an HSA test it is the lowered program that is judged.
        if !chosen.model.judges(Dialect::Vulkan) {
            return Err(Failure::input_message(format!(
                "{}: model `{name}` does not speak of the programs that devices run",
                loaded.source.file
            )));
        }
        Ok(chosen)
    }

    fn named(&mut self, name: &str) -> Result<Rc<Chosen>, Failure> {
        if let Some(chosen) = self.loaded.get(name) {
            return Ok(chosen.clone());
        }
        let chosen = Rc::new(choice::load(name)?);
        self.loaded.insert(name.to_owned(), chosen.clone());
        Ok(chosen)
    }
}

/// The hash of a test's kernels, or what it is skipped for.
pub fn kernel(test: &Test, variant: Variant, target: &Target) -> Result<String, String> {
    let capabilities = &target.listed.capabilities;
    if let Some(reason) = variant.refused(capabilities) {
        return Err(reason);
    }
    let config = variant.kernel_config(target.stress.kernel_config(capabilities));
    let program = shaders::program(test, &config, variant.pipelines).map_err(|error| error.to_string())?;
    match variant.lacking(&program, &test.metadata.needs, capabilities) {
        Some(missing) => Err(missing),
        None => Ok(hash_of(&program)),
    }
}

fn hash_of(program: &Program) -> String {
    let words = program.kernels().flat_map(|kernel| &kernel.words);
    let bytes: Vec<u8> = words.flat_map(|word| word.to_le_bytes()).collect();
    blake3::hash(&bytes).to_hex().to_string()
}

/// The test without its filter, but with the same outcomes to list.
pub fn without_filter(test: &Test) -> Test {
    let mut judged = test.clone();
    if let Some(filter) = judged.filter.take() {
        filter.for_each_term(&mut |term| {
            if matches!(term, Term::Location(..)) {
                judged.listed.push(term.clone());
            }
        });
    }
    judged
}

type Predicted = Result<Rc<Prediction>, String>;

/// Puts the Vulkan program of an HSA test in its place.
fn lowered(loaded: &mut Loaded) -> FromHsa {
    let test = loaded.test.clone();
    let text = loaded.text.clone();
    let lowered = litmus::lower(&test);
    if let Ok(lowered) = &lowered {
        loaded.test = lowered.test.clone();
        loaded.text = litmus::print(&loaded.test);
    }
    FromHsa { test, text, lowered }
}

/// What HSA says of its tests, beside each answer of a Vulkan model on their lowered programs.
///
/// # Errors
/// Where the lowering is wrong: a device must not be judged by it.
fn besides(
    items: &[Item],
    predictions: &BTreeMap<(usize, String), Predicted>,
    models: &mut Models,
    time: Option<Duration>,
) -> Result<BTreeMap<(usize, String), Rc<Beside>>, Failure> {
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
                let options = Options { budget: Budget::until(&stop), ..Options::default() };
                let hsa = predict(test, &model.model, &options).ok();
                answers.insert(*index, hsa.clone());
                hsa
            }
        };
        let Some(hsa) = hsa else { continue };
        let beside = beside(test, lowered, hsa, vulkan);
        // Other models need not be weaker than HSA.
        if let Some(fault) = beside.fault.as_ref().filter(|_| name.starts_with(VULKAN)) {
            return Err(Failure::environment_message(format!("{}: {fault}", item.loaded.source.file)));
        }
        found.insert(key.clone(), Rc::new(beside));
    }
    Ok(found)
}

/// Asks the models, on all processors.
fn predictions(
    items: &[Item],
    asked: &BTreeMap<(usize, String), Rc<Chosen>>,
    time: Option<Duration>,
) -> BTreeMap<(usize, String), Predicted> {
    let started = Instant::now();
    let questions: Vec<(&Item, &model::Model)> =
        asked.iter().filter_map(|((item, _), chosen)| Some((items.get(*item)?, &chosen.model))).collect();
    let mut answers = Vec::new();
    let done: Result<(), std::convert::Infallible> = in_order(
        &questions,
        |(item, model)| {
            let left = time.map_or(PREDICTION_PATIENCE, |time| time.saturating_sub(started.elapsed()));
            let stop = patience(left.min(PREDICTION_PATIENCE));
            let options = Options { budget: Budget::until(&stop), ..Options::default() };
            predict(&item.judged, model, &options).map(|mut prediction| {
                mark_filtered(&item.loaded.test, &mut prediction);
                prediction
            })
        },
        |answer: Result<Prediction, PredictError>| {
            answers.push(answer);
            Ok(())
        },
    );
    match done {
        Ok(()) => {}
    }
    asked
        .keys()
        .cloned()
        .zip(answers.into_iter().map(|answer| answer.map(Rc::new).map_err(|error| error.to_string())))
        .collect()
}

/// Marks the outcomes that the test's filter excludes.
pub fn mark_filtered(test: &Test, prediction: &mut Prediction) {
    let Some(filter) = &test.filter else { return };
    for (outcome, says) in &mut prediction.outcomes {
        says.filtered = !outcome.meets(test, &prediction.observables, filter);
    }
}
