//! The devices of a run, with the stress and the worker processes of each.

use std::collections::BTreeMap;
use std::time::SystemTime;

use device::ListedDevice;
use litmus::Test;
use plan::{Capabilities, Feature};
use results::wire::{DeviceRecord, EnvironmentRecord};
use runner::{RunVariant, Runnable, Stress, compile_for_device};

use crate::kinds::RunOptions;
use crate::probe::{self, CompileOnlyDevice, DeviceSelector, DriverProblems};
use crate::similar::did_you_mean;
use crate::workers::WorkerEnvironment;
use crate::{Failure, files};

/// Receives a message for the user.
pub type MessageSink<'a> = &'a dyn Fn(&str);

/// Precedes the progress model of the simulated GPU in a selector: `sim:progress=obe`.
pub const PROGRESS_PREFIX: &str = "progress=";

#[derive(Debug)]
pub struct DeviceTarget {
    /// The name in run lines; unique in the plan.
    pub name: String,
    /// A selector that matches only this device.
    pub selector: String,
    /// Its identity and capabilities.
    pub listed: ListedDevice,
    pub stress: Stress,
    /// The environment of its worker processes.
    pub worker_environment: WorkerEnvironment,
}

impl DeviceTarget {
    /// Returns the selector for a command line, without a fault, which has its own flag.
    pub fn device_argument(&self) -> &str {
        match &self.worker_environment {
            WorkerEnvironment::CompileOnly { .. } => &self.name,
            WorkerEnvironment::Drivers(_) if probe::is_simulated(&self.listed) => sim::SimDevice::NAME,
            WorkerEnvironment::Drivers(_) => &self.selector,
        }
    }

    /// Compiles a test in a variant for this device.
    ///
    /// # Errors
    /// The skip reason.
    pub fn compile_test(&self, test: &Test, variant: RunVariant) -> Result<Runnable, String> {
        compile_for_device(test, variant, &self.stress, &self.listed.capabilities)
            .map_err(|reason| reason.to_string())
    }
}

/// Returns the requested device, or the best one.
///
/// # Errors
/// If it does not exist, or is compile-only.
pub fn select_one(device: Option<&str>, on_message: MessageSink<'_>) -> Result<DeviceTarget, Failure> {
    let selectors: Vec<String> = device.map(str::to_owned).into_iter().collect();
    let mut targets = select_targets(&selectors, None, &SimulatedFallback::from_environment(), on_message)?;
    refuse_compile_only(&targets)?;
    targets.truncate(1);
    targets.pop().ok_or_else(|| Failure::environment_message("no device"))
}

/// Variables that mark a run that expects a Vulkan device: a selection of drivers, or a CI job.
const DEVICE_EXPECTING_VARIABLES: [&str; 3] = ["VK_DRIVER_FILES", "VK_ICD_FILENAMES", "CI"];

/// The behaviour of a run without `--device` if no Vulkan device exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SimulatedFallback {
    /// Tests run on the simulated GPU.
    Allowed,
    /// The run fails. The text names the flag or variable that requires a Vulkan device.
    Refused(String),
}

impl SimulatedFallback {
    /// Returns the policy of this process's environment.
    ///
    /// A CI job or a choice of drivers would otherwise pass on a machine that lost its driver.
    pub fn from_environment() -> SimulatedFallback {
        let is_set = |name: &&str| {
            std::env::var_os(name).is_some_and(|value| !value.is_empty() && value != "false" && value != "0")
        };
        match DEVICE_EXPECTING_VARIABLES.into_iter().find(is_set) {
            Some(name) => SimulatedFallback::Refused(format!("{name} is set")),
            None => SimulatedFallback::Allowed,
        }
    }

    /// Returns the policy of a run with `flag`, which requires a Vulkan device if it is given.
    #[must_use]
    pub fn refused_with(self, flag: &str, is_given: bool) -> SimulatedFallback {
        if is_given { SimulatedFallback::Refused(format!("`{flag}` is given")) } else { self }
    }
}

/// Returns the selected devices, or the best one if `devices` is empty.
///
/// # Errors
/// If a device is missing, or if none is selected, no Vulkan device exists and `fallback` refuses the simulated GPU.
pub fn select_targets(
    devices: &[String],
    stress: Option<&Stress>,
    fallback: &SimulatedFallback,
    on_message: MessageSink<'_>,
) -> Result<Vec<DeviceTarget>, Failure> {
    let mut selectors = probe::parse_selectors(devices)?;
    let environment = probe::driver_environment(&selectors)?;
    let (all, driver_problems) = probe::list_devices(&environment, &selectors)?;
    if selectors.is_empty() {
        if !all.iter().any(|device| !probe::is_simulated(device)) {
            let why = driver_problems.describe().unwrap_or_else(|| "the drivers list no device".to_owned());
            // An installed driver that finds no device is an error: the fallback would hide it with passing
            // tests.
            if !driver_problems.deviceless_files.is_empty() {
                return Err(Failure::environment_message(format!(
                    "{why}\nno Vulkan device, although there are driver files: {}\n\
                     `--device sim` runs tests on the built-in simulated GPU",
                    driver_problems.deviceless_files.join(", ")
                )));
            }
            if let SimulatedFallback::Refused(reason) = fallback {
                return Err(Failure::environment_message(format!(
                    "{why}\nno Vulkan device, and {reason}: nothing was run\n\
                     `--device sim` runs tests on the built-in simulated GPU"
                )));
            }
            on_message(&format!("{why}\nno Vulkan device: tests run on the built-in simulated GPU (sim)"));
        }
        selectors.push(DeviceSelector::Listed(device::Selector::Best));
    }
    let mut targets: Vec<DeviceTarget> = Vec::new();
    let mut mesas = None;
    for selector in &selectors {
        let mut compile_only = Vec::new();
        if let DeviceSelector::CompileOnly { vendor, family, version } = selector {
            let known = match mesas.take() {
                Some(known) => known,
                None => probe::find_mesas(None)?,
            };
            compile_only = probe::choose_compile_only(vendor, family, version.as_deref(), &known)?;
            mesas = Some(known);
        } else {
            compile_only.extend(probe::compile_only_at(selector, all.len()));
        }
        if !compile_only.is_empty() {
            for device in compile_only {
                add_compile_only(&mut targets, device, stress, on_message)?;
            }
            continue;
        }
        let listed = selector
            .choose_from(&all)
            .map_err(|error| unknown_device_error(&error, &all, &driver_problems))?;
        if targets.iter().any(|target| {
            matches!(target.worker_environment, WorkerEnvironment::Drivers(_))
                && target.listed.index == listed.index
        }) {
            continue;
        }
        let same_name = targets.iter().filter(|t| t.listed.identity.name == listed.identity.name).count();
        let name = match same_name {
            0 => listed.identity.name.clone(),
            earlier => format!("{} #{}", listed.identity.name, earlier + 1),
        };
        targets.push(DeviceTarget {
            name,
            selector: probe::exact_selector(listed, &all),
            stress: stress_for_device(stress, listed, on_message)?,
            listed: listed.clone(),
            worker_environment: WorkerEnvironment::Drivers(environment.clone()),
        });
    }
    Ok(targets)
}

/// Refuses devices that execute nothing, which can give no verdict.
///
/// # Errors
/// Names the devices and the reason.
pub fn refuse_compile_only(targets: &[DeviceTarget]) -> Result<(), Failure> {
    let null: Vec<&str> = targets
        .iter()
        .filter(|target| !target.listed.capabilities.executes)
        .map(|target| target.name.as_str())
        .collect();
    if null.is_empty() {
        return Ok(());
    }
    Err(Failure::environment_message(format!(
        "{} only compiles (a null back end, or a shim in place of the kernel's device): use `codegen` with \
         it",
        null.join(", ")
    )))
}

fn add_compile_only(
    targets: &mut Vec<DeviceTarget>,
    device: CompileOnlyDevice,
    stress: Option<&Stress>,
    on_message: MessageSink<'_>,
) -> Result<(), Failure> {
    let name = device.name();
    if !targets.iter().any(|target| target.name == name) {
        targets.push(DeviceTarget {
            selector: device.listed.identity.name.clone(),
            stress: stress_for_device(stress, &device.listed, on_message)?,
            listed: device.listed.clone(),
            worker_environment: device.worker_environment(),
            name,
        });
    }
    Ok(())
}

/// Returns the error for an unknown device, with the known ones.
pub(crate) fn unknown_device_error(
    error: &plan::DeviceError,
    all: &[ListedDevice],
    driver_problems: &DriverProblems,
) -> Failure {
    let names: Vec<String> =
        all.iter().map(|device| format!("{} ({})", device.identity.name, device.index)).collect();
    let why = driver_problems.describe().map_or_else(String::new, |why| format!("{why}\n"));
    let known = all.iter().map(|device| device.identity.name.as_str());
    let (suggestion, compilers) = match error {
        plan::DeviceError::NoSuchDevice(word)
            if word.contains(':') || vendor::VENDORS.iter().any(|vendor| vendor.selector_prefix == *word) =>
        {
            let words: Vec<String> =
                vendor::VENDORS.iter().map(|vendor| format!("{}:", vendor.selector_prefix)).collect();
            let listing = "`devices --compile-only` lists them";
            (String::new(), format!(", and compile-only ones start with {}; {listing}", words.join(", ")))
        }
        plan::DeviceError::NoSuchDevice(word) => (did_you_mean(word, known), String::new()),
        _ => (String::new(), String::new()),
    };
    Failure::environment_message(format!(
        "{why}{error}{suggestion}: there are {}{compilers}",
        names.join(", ")
    ))
}

/// Injects a fault into the simulated GPU.
pub fn inject_fault(targets: &mut [DeviceTarget], fault: sim::Fault) {
    let Some(row) = fault.row() else { return };
    for target in targets {
        target.selector = format!("{}:{}", target.selector, row.name);
        target.listed = probe::simulated_device(target.listed.index, fault);
    }
}

/// Loads a stress from a file or a preset.
///
/// # Errors
/// If it does not exist or is invalid.
pub fn load_stress(argument: &str) -> Result<Stress, Failure> {
    if !argument.ends_with(".toml") {
        return Stress::preset(argument).map_err(Failure::input_error);
    }
    let text = files::read_text(argument.as_ref(), files::MAX_SETTINGS_BYTES)
        .map_err(|error| Failure::input_message(format!("{argument}: {error}")))?;
    Stress::from_toml(argument, &text).map_err(Failure::input_error)
}

/// Returns the requested stress, or the device's preset, reduced to the device's limits.
///
/// # Errors
/// If a stress file exceeds the limits of the device.
pub fn stress_for_device(
    requested: Option<&Stress>,
    device: &ListedDevice,
    on_message: MessageSink<'_>,
) -> Result<Stress, Failure> {
    let capabilities = &device.capabilities;
    let stress = match requested {
        Some(stress) => stress.clone(),
        None => Stress::for_device(&device.identity, capabilities).map_err(Failure::input_error)?,
    };
    stress.check_loop_budget(capabilities.loop_budget).map_err(Failure::input_error)?;
    // A file is an explicit request, so it is not reduced silently; a preset serves every device.
    if stress.name.ends_with(".toml") {
        stress.check_limits(capabilities).map_err(Failure::input_error)?;
    }
    let (reduced, changes) = stress.reduced_to_limits(capabilities);
    if !changes.is_empty() {
        let (stress, device) = (&stress.name, &device.identity.name);
        on_message(&format!("warning: stress `{stress}` is reduced on {device}: {}", changes.join(", ")));
    }
    Ok(reduced)
}

/// Returns the record of a device.
///
/// # Errors
/// If its stress cannot be serialized.
pub fn device_record(target: &DeviceTarget) -> Result<DeviceRecord, Failure> {
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
        features: feature_names(capabilities),
        limits: layout_limits(capabilities),
        memory_types: capabilities.memory_types.iter().map(ToString::to_string).collect(),
        stress: target.stress.to_toml().map_err(Failure::input_error)?,
    })
}

/// Returns the Vulkan names of the features that tests may need.
fn feature_names(capabilities: &Capabilities) -> Vec<String> {
    let has = |feature: &Feature| {
        capabilities.has_feature(*feature)
            || *feature == Feature::ComputeFullSubgroups && capabilities.full_subgroups
    };
    Feature::ALL.iter().filter(|feature| has(feature)).map(ToString::to_string).collect()
}

/// Returns the limits that affect the layout of tests.
fn layout_limits(capabilities: &Capabilities) -> BTreeMap<String, String> {
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

/// Prefixes of environment variables that change the behaviour of drivers.
const DRIVER_VARIABLE_PREFIXES: [&str; 9] =
    ["VK_", "LP_", "GALLIUM_", "MESA_", "RADV_", "ANV_", "NVK_", "AMD_", "LIBGL_"];

/// Records the environment of a run that starts now with these options.
pub fn record_environment(options: &RunOptions) -> EnvironmentRecord {
    // Of the variables of this program, only the one that hides device features affects results.
    let affects_drivers = |name: &str| {
        !name.starts_with("VK_LITMUS_")
            && DRIVER_VARIABLE_PREFIXES.iter().any(|begin| name.starts_with(begin))
    };
    EnvironmentRecord {
        os: std::env::consts::OS.to_owned(),
        architecture: std::env::consts::ARCH.to_owned(),
        processors: std::thread::available_parallelism()
            .map_or(1, |number| u32::try_from(number.get()).unwrap_or(u32::MAX)),
        jobs: options.jobs,
        variables: std::env::vars_os()
            .filter_map(|(name, value)| {
                Some((name.into_string().ok()?, value.to_string_lossy().into_owned()))
            })
            .filter(|(name, _)| name == plan::FeatureMask::VARIABLE || affects_drivers(name))
            .collect(),
        started: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
        suite: options.suite.clone(),
    }
}
