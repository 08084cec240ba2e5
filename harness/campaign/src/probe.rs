//! Lists the devices of this machine in a separate process, so that a driver that crashes or hangs ends only
//! that process.

use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

use device::{COMPILERS_VARIABLE, ChipFamily, DriverEnvironment, ListedDevice, Mesa, Selector};
use plan::{Capabilities, Device, DeviceError, Identity};
use serde::{Deserialize, Serialize};
use sim::{Fault, SimDevice};
use vendor::{VENDORS, Vendor};

use crate::Failure;
use crate::parallel::parallel_map;
use crate::workers::{self, WorkerEnvironment, WorkerOutput, WorkerTask};

/// Time limit for listing.
const LISTING_TIMEOUT: Duration = Duration::from_secs(10);

/// The answer of the listing process.
#[derive(Debug, Serialize, Deserialize)]
pub struct DeviceList {
    /// The devices, or why there are none.
    pub devices: Result<Vec<FoundDevice>, String>,
    /// True if there is a Vulkan loader.
    pub loader: bool,
    /// Driver files that the loader ignores, with the reason.
    pub unusable: Vec<String>,
}

/// Problems with the drivers of a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DriverProblems {
    /// The reason why there is no Vulkan device.
    pub no_driver: Option<String>,
    /// Driver files that the loader ignores, with the reason.
    pub unusable: Vec<String>,
    /// Driver files that the loader reads without finding a device.
    pub deviceless_files: Vec<String>,
}

impl DriverProblems {
    /// Returns the problems, one per line; `None` without any.
    pub fn describe(&self) -> Option<String> {
        let lines: Vec<&str> = self.no_driver.iter().chain(&self.unusable).map(String::as_str).collect();
        (!lines.is_empty()).then(|| lines.join("\n"))
    }
}

/// A device of the list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FoundDevice {
    /// Its index in the list.
    pub index: usize,
    /// The names and versions of device and driver.
    pub identity: Identity,
    pub capabilities: Capabilities,
}

/// A parsed device selector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceSelector {
    /// A Vulkan device of this machine.
    Listed(Selector),
    /// The built-in simulated GPU.
    Sim,
    /// Compile-only devices: one family, or all families for `*`; from a Mesa with this version prefix, if
    /// given.
    CompileOnly {
        vendor: &'static Vendor,
        /// The family, or `*`.
        family: String,
        version: Option<String>,
    },
}

impl DeviceSelector {
    /// Returns the first matching device of a list. Without a selector and without Vulkan devices, that is
    /// the simulated GPU.
    ///
    /// # Errors
    /// [`DeviceError::NoSuchDevice`].
    pub fn choose_from<'a>(&self, all: &'a [ListedDevice]) -> Result<&'a ListedDevice, DeviceError> {
        let sim = all.iter().find(|listed| is_simulated(listed));
        let vulkan = all.len() - usize::from(sim.is_some());
        let no_simulated = || DeviceError::NoSuchDevice(SimDevice::NAME.to_owned());
        match self {
            DeviceSelector::Sim => sim.ok_or_else(no_simulated),
            DeviceSelector::CompileOnly { vendor, family, .. } => {
                Err(DeviceError::NoSuchDevice(format!("{}:{family}", vendor.selector_prefix)))
            }
            DeviceSelector::Listed(Selector::Best) if vulkan == 0 => sim.ok_or_else(no_simulated),
            DeviceSelector::Listed(selector @ Selector::Index(_)) => selector.choose_from(all),
            DeviceSelector::Listed(selector) => selector.choose_from(all.get(..vulkan).unwrap_or_default()),
        }
    }
}

/// Returns true for the simulated GPU.
pub fn is_simulated(listed: &ListedDevice) -> bool {
    listed.identity.kind == "simulated"
}

/// Returns the list entry of the simulated GPU.
pub fn simulated_device(index: usize, fault: Fault) -> ListedDevice {
    let device = SimDevice::new(fault);
    ListedDevice { index, identity: device.identity().clone(), capabilities: device.capabilities().clone() }
}

/// Returns the driver environment for these selectors.
///
/// # Errors
/// If an environment variable names a driver file that does not exist.
pub fn driver_environment(device_selectors: &[DeviceSelector]) -> Result<DriverEnvironment, Failure> {
    let selectors: Vec<Selector> = device_selectors
        .iter()
        .filter_map(|device_selector| match device_selector {
            DeviceSelector::Listed(selector) => Some(selector.clone()),
            DeviceSelector::Sim | DeviceSelector::CompileOnly { .. } => None,
        })
        .collect();
    if selectors.is_empty() && !device_selectors.is_empty() {
        // The simulated GPU needs no driver, so the environment variables do not matter.
        return Ok(DriverEnvironment::default());
    }
    let environment = DriverEnvironment::discover().map_err(Failure::environment_error)?;
    Ok(if selectors.is_empty() { environment } else { environment.restrict_to(&selectors) })
}

/// Lists devices with the drivers of `environment`: the default device first, the simulated GPU last. Also
/// returns problems with the drivers.
///
/// # Errors
/// If a driver crashed or hung, or the environment variable that hides device features is invalid.
pub fn list_devices(
    environment: &DriverEnvironment,
    selectors: &[DeviceSelector],
) -> Result<(Vec<ListedDevice>, DriverProblems), Failure> {
    plan::FeatureMask::from_environment(SimDevice::NAME).map_err(Failure::input_error)?;
    if !selectors.is_empty() && !selectors.iter().any(|meant| matches!(meant, DeviceSelector::Listed(_))) {
        return Ok((vec![simulated_device(0, Fault::None)], DriverProblems::default()));
    }
    let DeviceList { devices, loader, unusable } = list_vulkan(environment)?;
    let listed =
        |f: FoundDevice| ListedDevice { index: f.index, identity: f.identity, capabilities: f.capabilities };
    let (mut all, no_driver): (Vec<ListedDevice>, _) = match devices {
        Ok(found) => (found.into_iter().map(listed).collect(), None),
        Err(why) => (Vec::new(), Some(why)),
    };
    let files = environment.files().iter().filter(|file| loader && all.is_empty() && file.is_file());
    let deviceless_files = files.map(|file| file.display().to_string()).collect();
    all.push(simulated_device(all.len(), Fault::None));
    Ok((all, DriverProblems { no_driver, unusable, deviceless_files }))
}

/// Returns the answer of the listing process.
fn list_vulkan(environment: &DriverEnvironment) -> Result<DeviceList, Failure> {
    let (answer, status) = run_listing(&WorkerEnvironment::Drivers(environment.clone()))?;
    answer.ok_or_else(|| {
        Failure::environment_message(format!(
            "a Vulkan driver crashed while devices were listed ({status}); VK_DRIVER_FILES chooses drivers"
        ))
    })
}

/// Runs a listing process. It has no answer if a driver crashed it.
fn run_listing(process: &WorkerEnvironment) -> Result<(Option<DeviceList>, ExitStatus), Failure> {
    match workers::run_single_answer_worker(process, &WorkerTask::List, LISTING_TIMEOUT)? {
        WorkerOutput::Ended(text, status) => {
            Ok((text.and_then(|text| serde_json::from_str(&text).ok()), status))
        }
        WorkerOutput::TimedOut => Err(Failure::environment_message(format!(
            "a Vulkan driver hung while devices were listed: no answer within {} s",
            LISTING_TIMEOUT.as_secs()
        ))),
    }
}

/// Parses device selectors.
///
/// # Errors
/// If one is empty or names an unknown kind of device.
pub fn parse_selectors(texts: &[String]) -> Result<Vec<DeviceSelector>, Failure> {
    texts
        .iter()
        .map(|text| match text.parse() {
            Ok(selector) => Ok(DeviceSelector::Listed(selector)),
            Err(device::SelectorError::NotVulkan(name)) if name == SimDevice::NAME => Ok(DeviceSelector::Sim),
            Err(device::SelectorError::NotVulkan(name)) => parse_compile_only(&name),
            Err(error @ device::SelectorError::Empty) => Err(Failure::input_error(error)),
        })
        .collect()
}

/// Parses `radv:FAMILY` or `radv:FAMILY@VERSION`.
fn parse_compile_only(text: &str) -> Result<DeviceSelector, Failure> {
    let Some((vendor, name)) = vendor::parse_selector(text) else {
        return Err(Failure::input_error(device::SelectorError::NotVulkan(text.to_owned())));
    };
    let (family, version) = match name.split_once('@') {
        Some((family, version)) => (family, Some(version.to_owned())),
        None => (name, None),
    };
    if family.is_empty() || version.as_deref() == Some("") {
        let word = &vendor.selector_prefix;
        return Err(Failure::input_message(format!(
            "`{text}` is incomplete: expected {word}:CHIP, or {word}:* for all of them, optionally \
             followed by `@` and the start of a Mesa version"
        )));
    }
    Ok(DeviceSelector::CompileOnly { vendor, family: family.to_owned(), version })
}

/// A compile-only device and its Mesa installation.
#[derive(Clone, Debug)]
pub struct CompileOnlyDevice {
    pub mesa: Mesa,
    /// The family, as its command line takes it.
    pub family: String,
    /// The device, whose index has no meaning.
    pub listed: ListedDevice,
}

impl CompileOnlyDevice {
    /// Returns a process whose only Vulkan device is this one.
    pub fn worker_environment(&self) -> WorkerEnvironment {
        WorkerEnvironment::CompileOnly { mesa: self.mesa.clone(), family: self.family.clone() }
    }

    /// Returns the name, such as `radv:navi31@25.0.7`.
    pub fn name(&self) -> String {
        format!("{}@{}", self.listed.identity.name, self.version())
    }

    /// Returns the version of its Mesa, such as `25.0.7`.
    pub fn version(&self) -> &str {
        mesa_version(&self.listed)
    }
}

/// Extracts the version from `Mesa 25.0.7-2+deb13u1`.
fn mesa_version(listed: &ListedDevice) -> &str {
    let info = listed.identity.driver_info.trim_start_matches("Mesa ");
    info.split(['-', ' ', '+']).next().unwrap_or(info)
}

/// Returns the Mesa installations of a folder, or the installed ones.
///
/// # Errors
/// If the folder has none, or an environment variable names a file that does not exist.
pub fn find_mesas(folder: Option<&Path>) -> Result<Vec<Mesa>, Failure> {
    match folder {
        Some(folder) => Mesa::find_in_folder(folder, "--mesa").map_err(Failure::input_error),
        None => Mesa::find_installed().map_err(Failure::environment_error),
    }
}

/// Returns every compile-only device of some installations, without those that do not start.
pub fn list_compile_only(mesas: &[Mesa]) -> Vec<CompileOnlyDevice> {
    let families = |mesa: &Mesa| mesa.known_families().unwrap_or_default();
    let candidates: Vec<(&Mesa, &ChipFamily)> =
        mesas.iter().flat_map(|mesa| families(mesa).into_iter().map(move |family| (mesa, family))).collect();
    let found = parallel_map(&candidates, |(mesa, family)| probe_compile_only(mesa, &family.name).ok());
    found.into_iter().flatten().collect()
}

/// Describes the missing prerequisites for each vendor without compile-only devices.
pub fn describe_missing_vendors(mesas: &[Mesa], found: &[CompileOnlyDevice]) -> Vec<String> {
    let mut lines = Vec::new();
    for vendor in VENDORS.iter() {
        let of_vendor = |mesa: &&Mesa| mesa.vendor().selector_prefix == vendor.selector_prefix;
        let mut is_covered = found.iter().any(|device| of_vendor(&&device.mesa));
        for mesa in mesas.iter().filter(of_vendor) {
            if let Err(error) = mesa.known_families() {
                lines.push(format!("{}: {error}", vendor.selector_prefix));
                is_covered = true;
            }
        }
        if !is_covered {
            lines.push(no_driver_message(vendor, mesas.iter().any(|mesa| of_vendor(&mesa))));
        }
    }
    lines
}

/// Returns the message for a vendor without an installation, or whose installations do not start.
fn no_driver_message(vendor: &Vendor, is_installed: bool) -> String {
    let Vendor {
        selector_prefix: word, display_name: driver, driver_file_prefix: driver_file, install, ..
    } = vendor;
    if is_installed {
        return format!("{word}: no chip of {driver} starts; {install}");
    }
    format!(
        "{word}: no {driver}: no driver file {driver_file}*.json here or in the folders that {COMPILERS_VARIABLE} or \
         --mesa name; {install}"
    )
}

/// Returns the selected compile-only devices. Without a version, a family comes from the first Mesa that
/// supports it, and `*` is every family of the first Mesa.
///
/// # Errors
/// If no Mesa matches or supports the family. The error describes how its process ended and lists the
/// supported families.
pub fn choose_compile_only(
    vendor: &'static Vendor,
    family: &str,
    version: Option<&str>,
    mesas: &[Mesa],
) -> Result<Vec<CompileOnlyDevice>, Failure> {
    let mesas: Vec<&Mesa> =
        mesas.iter().filter(|mesa| mesa.vendor().selector_prefix == vendor.selector_prefix).collect();
    if mesas.is_empty() {
        return Err(Failure::environment_message(no_driver_message(vendor, false)));
    }
    let mut found = Vec::new();
    let mut notes = Vec::new();
    let mut probe_errors: Vec<String> = Vec::new();
    for mesa in mesas {
        let families = match mesa.known_families() {
            Ok(families) => families,
            Err(error) => {
                probe_errors.push(error.to_string());
                continue;
            }
        };
        let place = mesa.driver_file().display();
        if let Some(version) = version {
            // This version may not support every chip of the list.
            let any_device =
                families.iter().rev().find_map(|family| probe_compile_only(mesa, &family.name).ok());
            match any_device {
                Some(device) if device.version().starts_with(version) || version == "*" => {}
                Some(device) => {
                    notes.push(format!("{place} is of Mesa {}", device.version()));
                    continue;
                }
                None => {
                    notes.push(format!("{place}: no chip starts"));
                    continue;
                }
            }
        }
        let names: Vec<&str> = families.iter().map(|family| family.name.as_str()).collect();
        notes.push(format!("{place} knows {}", names.join(", ")));
        let is_known_family = families.iter().any(|known| vendor.find_family(family) == Some(known));
        if family == "*" {
            found.extend(list_compile_only(std::slice::from_ref(mesa)));
        } else if is_known_family || (vendor.find_family(family).is_none() && mesa.refuses_unknown()) {
            match probe_compile_only(mesa, family) {
                Ok(device) => found.push(device),
                Err(probe_error) => probe_errors.push(probe_error),
            }
        }
        if version.is_none() && !found.is_empty() {
            break;
        }
    }
    if !found.is_empty() {
        return Ok(found);
    }
    let at = version.map_or_else(String::new, |version| format!("@{version}"));
    let mut text = format!("no compile-only device `{}:{family}{at}`", vendor.selector_prefix);
    probe_errors.dedup();
    for line in probe_errors.iter().chain(&notes) {
        text += &format!("\n{line}");
    }
    if !notes.is_empty() {
        // The family may need a newer or an older Mesa.
        let advice = if family == "*" || vendor.find_family(family).is_some() {
            "may have it"
        } else {
            "may know more"
        };
        text += &format!(
            "\nanother Mesa {advice}: --mesa, {COMPILERS_VARIABLE} and VK_LITMUS_EXTRA_ICDS name them; {}",
            vendor.install
        );
    }
    Err(Failure::environment_message(text))
}

/// Returns the compile-only device at an index of `devices`, where `listed_count` other devices come first.
pub fn compile_only_at(selector: &DeviceSelector, listed_count: usize) -> Option<CompileOnlyDevice> {
    let DeviceSelector::Listed(Selector::Index(index)) = selector else { return None };
    let position = index.checked_sub(listed_count)?;
    list_compile_only(&find_mesas(None).ok()?).into_iter().nth(position)
}

/// Lists a family's device in a process that exits if Mesa does not support it.
fn probe_compile_only(mesa: &Mesa, family: &str) -> Result<CompileOnlyDevice, String> {
    let process = WorkerEnvironment::CompileOnly { mesa: mesa.clone(), family: family.to_owned() };
    let (answer, status) = run_listing(&process).map_err(|failure| failure.report().to_string())?;
    let place = mesa.driver_file().display();
    match answer.map(|answer| answer.devices) {
        Some(Ok(found)) => found
            .into_iter()
            .find(|found| !found.capabilities.executes)
            .map(|found| CompileOnlyDevice {
                mesa: mesa.clone(),
                family: family.to_owned(),
                listed: ListedDevice {
                    index: found.index,
                    identity: found.identity,
                    capabilities: found.capabilities,
                },
            })
            .ok_or_else(|| format!("{place}: family `{family}`: no null device")),
        Some(Err(why)) => Err(format!("{place}: family `{family}`: {why}")),
        None => Err(format!("{place}: its process ended with {status} for the family `{family}`")),
    }
}

/// Returns a selector that matches this device and no other of `all`.
pub fn exact_selector(chosen: &ListedDevice, all: &[ListedDevice]) -> String {
    if is_simulated(chosen) {
        return SimDevice::NAME.to_owned();
    }
    let identity = &chosen.identity;
    [&identity.name, &identity.uuid]
        .into_iter()
        .filter(|text| {
            text.parse::<Selector>().is_ok_and(|selector| {
                !matches!(selector, Selector::Index(_))
                    && selector.choose_from(all).is_ok_and(|found| found.index == chosen.index)
            })
        })
        .map(String::clone)
        .next()
        .unwrap_or_else(|| chosen.index.to_string())
}
