//! The devices whose compilers are run: those of this machine, and compile-only ones.

use plan::Feature;
use std::path::Path;
use std::process::Command;

use codegen::disassembly::{DisassemblerDialect, PLAIN};
use codegen::{FormKernel, KernelSizes};
use device::ListedDevice;
use vendor::{ChipFamily, Vendor};

use crate::Failure;
use crate::probe::{self, CompileOnlyDevice, DeviceSelector};
use crate::targets::unknown_device_error;
use crate::workers::{WorkerEnvironment, WorkerTask};

/// A device whose compiler is run.
#[derive(Clone, Debug)]
pub struct CompilerTarget {
    /// Its name in reports; unique among the targets.
    pub name: String,
    /// The device selector for the worker.
    pub selector: String,
    /// The device's identity and capabilities.
    pub listed: ListedDevice,
    /// The vendor, if known.
    pub vendor: Option<&'static Vendor>,
    /// The GPU family, if known.
    pub family: Option<&'static ChipFamily>,
    worker_environment: WorkerEnvironment,
}

impl CompilerTarget {
    pub fn from_run_target(target: &crate::targets::DeviceTarget) -> CompilerTarget {
        let (name, selector) = (target.device_argument().to_owned(), target.selector.clone());
        CompilerTarget::new(name, selector, target.listed.clone(), target.worker_environment.clone())
    }

    fn new(
        name: String,
        selector: String,
        listed: ListedDevice,
        worker_environment: WorkerEnvironment,
    ) -> CompilerTarget {
        let identity = &listed.identity;
        let vendor_family =
            vendor::find_by_identity(&identity.name, &identity.device_name, identity.driver_id);
        CompilerTarget {
            name,
            selector,
            vendor: vendor_family.map(|(vendor, _)| vendor),
            family: vendor_family.and_then(|(_, family)| family),
            listed,
            worker_environment,
        }
    }

    /// Returns the name without the driver version.
    pub fn name_without_version(&self) -> &str {
        &self.listed.identity.name
    }

    /// Returns the driver and its version.
    pub fn driver(&self) -> String {
        let identity = &self.listed.identity;
        format!("{} {}", identity.driver_name, identity.driver_info).trim().to_owned()
    }

    /// Returns the sizes that kernels are generated for.
    pub fn kernel_sizes(&self, lanes: u32) -> KernelSizes {
        let capabilities = &self.listed.capabilities;
        KernelSizes {
            subgroup_size: capabilities.subgroup_size,
            max_workgroup_invocations: capabilities.max_workgroup_invocations,
            device_scope: capabilities.device_scope,
            lanes,
            intel_split_barriers: self.has_intel_split_barriers(),
        }
    }

    /// Returns true if the device lacks split barriers but its compiler accepts `SPV_INTEL_split_barrier`.
    ///
    /// Only `codegen` uses this: a compiler may accept the instructions without implementing them.
    fn has_intel_split_barriers(&self) -> bool {
        let has_feature = self.listed.capabilities.has_feature(Feature::ShaderSplitBarrier);
        !has_feature
            && self
                .vendor
                .is_some_and(|vendor| vendor.has_intel_split_barriers(&self.listed.identity.driver_info))
    }

    /// Returns the compiler's name of the chip, or an empty string.
    pub fn compiler_target(&self) -> &'static str {
        self.family.map_or("", |family| &family.target)
    }

    /// Returns the syntax of the machine code.
    pub fn dialect(&self) -> &'static DisassemblerDialect {
        self.vendor.map_or(&PLAIN, |vendor| &vendor.dialect)
    }

    /// Returns the first feature that the device lacks for these kernels; `needs` are the features that the
    /// test lists.
    pub fn missing_feature(&self, units: &[FormKernel], needs: &[String]) -> Option<String> {
        let capabilities = &self.listed.capabilities;
        let mut required = units.iter().flat_map(|unit| &unit.kernel.requirements.features);
        let missing = required.find(|feature| !capabilities.has_feature(**feature)).map(ToString::to_string);
        let missing_named = || needs.iter().find(|name| !capabilities.has_feature_named(name)).cloned();
        missing.or_else(missing_named).or_else(|| {
            let has_required_subgroup_size =
                units.iter().any(|unit| unit.kernel.requirements.subgroup_size.is_some());
            (has_required_subgroup_size && !capabilities.full_subgroups)
                .then(|| Feature::ComputeFullSubgroups.to_string())
        })
    }

    /// Returns the `--mesa` argument for a device that comes from a Mesa build folder.
    pub fn mesa_argument(&self) -> String {
        match &self.worker_environment {
            WorkerEnvironment::CompileOnly { mesa, .. } => {
                mesa.root().map_or_else(String::new, |root| format!(" --mesa '{}'", root.display()))
            }
            WorkerEnvironment::Drivers(_) => String::new(),
        }
    }

    pub fn command(&self, program: &Path) -> Command {
        self.worker_environment.command(program, &WorkerTask::Compile)
    }
}

/// Returns the selected devices. Compile-only devices come from the Mesa in folder `mesa`, or from the
/// installed ones.
///
/// # Errors
/// If a device does not exist, or is the simulated GPU, which has no compiler.
pub fn select_targets(devices: &[String], mesa: Option<&Path>) -> Result<Vec<CompilerTarget>, Failure> {
    let selectors = probe::parse_selectors(devices)?;
    let environment = probe::driver_environment(&selectors)?;
    let (listed, driver_problems) =
        if selectors.iter().any(|meant| matches!(meant, DeviceSelector::Listed(_))) {
            probe::list_devices(&environment, &selectors)?
        } else {
            (Vec::new(), probe::DriverProblems::default())
        };
    let mesas = if selectors.iter().any(|meant| matches!(meant, DeviceSelector::CompileOnly { .. })) {
        probe::find_mesas(mesa)?
    } else {
        Vec::new()
    };
    let mut found: Vec<CompilerTarget> = Vec::new();
    for selector in &selectors {
        match selector {
            DeviceSelector::Sim => {
                return Err(Failure::input_message(
                    "the simulated GPU executes SPIR-V and has no machine code",
                ));
            }
            DeviceSelector::Listed(_) => {
                if let Some(device) = probe::compile_only_at(selector, listed.len()) {
                    add_compile_only(&mut found, device);
                    continue;
                }
                let device = selector
                    .choose_from(&listed)
                    .map_err(|error| unknown_device_error(&error, &listed, &driver_problems))?;
                let selector = probe::exact_selector(device, &listed);
                let process = WorkerEnvironment::Drivers(environment.clone());
                add_target(
                    &mut found,
                    CompilerTarget::new(device.identity.name.clone(), selector, device.clone(), process),
                );
            }
            DeviceSelector::CompileOnly { vendor, family, version } => {
                for device in probe::choose_compile_only(vendor, family, version.as_deref(), &mesas)? {
                    add_compile_only(&mut found, device);
                }
            }
        }
    }
    Ok(found)
}

fn add_compile_only(found: &mut Vec<CompilerTarget>, device: CompileOnlyDevice) {
    let selector = device.listed.identity.name.clone();
    add_target(
        found,
        CompilerTarget::new(device.name(), selector, device.listed.clone(), device.worker_environment()),
    );
}

fn add_target(found: &mut Vec<CompilerTarget>, target: CompilerTarget) {
    if !found.iter().any(|known| known.name == target.name) {
        found.push(target);
    }
}
