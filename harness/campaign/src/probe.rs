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
use crate::parallel::map;
use crate::workers::{self, Process, Task, WorkerOutput};

/// Time limit for listing.
const PATIENCE: Duration = Duration::from_secs(10);

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
pub struct Trouble {
    /// The reason why there is no Vulkan device.
    pub no_driver: Option<String>,
    /// Driver files that the loader ignores, with the reason.
    pub unusable: Vec<String>,
    /// Driver files that the loader reads without finding a device.
    pub in_vain: Vec<String>,
}

impl Trouble {
    /// Returns the problems, one per line; `None` without any.
    pub fn text(&self) -> Option<String> {
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
    /// Features and limits.
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
        /// The vendor.
        vendor: &'static Vendor,
        /// The family, or `*`.
        family: String,
        /// The version prefix.
        version: Option<String>,
    },
}

impl DeviceSelector {
    /// Returns the first matching device of a list. Without a selector and without Vulkan devices, that is
    /// the simulated GPU.
    ///
    /// # Errors
    /// [`DeviceError::NoSuchDevice`].
    pub fn choose<'a>(&self, all: &'a [ListedDevice]) -> Result<&'a ListedDevice, DeviceError> {
        let sim = all.iter().find(|listed| is_sim(listed));
        let vulkan = all.len() - usize::from(sim.is_some());
        let none = || DeviceError::NoSuchDevice(SimDevice::NAME.to_owned());
        match self {
            DeviceSelector::Sim => sim.ok_or_else(none),
            DeviceSelector::CompileOnly { vendor, family, .. } => {
                Err(DeviceError::NoSuchDevice(format!("{}:{family}", vendor.selector_prefix)))
            }
            DeviceSelector::Listed(Selector::Best) if vulkan == 0 => sim.ok_or_else(none),
            DeviceSelector::Listed(selector @ Selector::Index(_)) => selector.choose_from(all),
            DeviceSelector::Listed(selector) => selector.choose_from(all.get(..vulkan).unwrap_or_default()),
        }
    }
}

/// Returns true for the simulated GPU.
pub fn is_sim(listed: &ListedDevice) -> bool {
    listed.identity.kind == "simulated"
}

/// Returns the list entry of the simulated GPU.
pub fn simulated(index: usize, fault: Fault) -> ListedDevice {
    let device = SimDevice::new(fault);
    ListedDevice { index, identity: device.identity().clone(), capabilities: device.capabilities().clone() }
}

/// Returns the driver environment for these selectors.
///
/// # Errors
/// If an environment variable names a driver file that does not exist.
pub fn environment(meant: &[DeviceSelector]) -> Result<DriverEnvironment, Failure> {
    let selectors: Vec<Selector> = meant
        .iter()
        .filter_map(|meant| match meant {
            DeviceSelector::Listed(selector) => Some(selector.clone()),
            DeviceSelector::Sim | DeviceSelector::CompileOnly { .. } => None,
        })
        .collect();
    if selectors.is_empty() && !meant.is_empty() {
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
pub fn list(
    environment: &DriverEnvironment,
    meant: &[DeviceSelector],
) -> Result<(Vec<ListedDevice>, Trouble), Failure> {
    plan::FeatureMask::from_environment(SimDevice::NAME).map_err(Failure::input_error)?;
    if !meant.is_empty() && !meant.iter().any(|meant| matches!(meant, DeviceSelector::Listed(_))) {
        return Ok((vec![simulated(0, Fault::None)], Trouble::default()));
    }
    let DeviceList { devices, loader, unusable } = list_vulkan(environment)?;
    let listed =
        |f: FoundDevice| ListedDevice { index: f.index, identity: f.identity, capabilities: f.capabilities };
    let (mut all, no_driver): (Vec<ListedDevice>, _) = match devices {
        Ok(found) => (found.into_iter().map(listed).collect(), None),
        Err(why) => (Vec::new(), Some(why)),
    };
    let files = environment.files().iter().filter(|file| loader && all.is_empty() && file.is_file());
    let in_vain = files.map(|file| file.display().to_string()).collect();
    all.push(simulated(all.len(), Fault::None));
    Ok((all, Trouble { no_driver, unusable, in_vain }))
}

/// Returns the answer of the listing process.
fn list_vulkan(environment: &DriverEnvironment) -> Result<DeviceList, Failure> {
    let (answer, status) = run_listing(&Process::Drivers(environment.clone()))?;
    answer.ok_or_else(|| {
        Failure::environment_message(format!(
            "a Vulkan driver crashed while devices were listed ({status}); VK_DRIVER_FILES chooses drivers"
        ))
    })
}

/// Runs a listing process. It has no answer if a driver crashed it.
fn run_listing(process: &Process) -> Result<(Option<DeviceList>, ExitStatus), Failure> {
    match workers::ask(process, &Task::List, PATIENCE)? {
        WorkerOutput::Ended(text, status) => {
            Ok((text.and_then(|text| serde_json::from_str(&text).ok()), status))
        }
        WorkerOutput::Nothing => Err(Failure::environment_message(format!(
            "a Vulkan driver hung while devices were listed: no answer within {} s",
            PATIENCE.as_secs()
        ))),
    }
}

/// Parses device selectors.
///
/// # Errors
/// If one is empty or names an unknown kind of device.
pub fn selectors(texts: &[String]) -> Result<Vec<DeviceSelector>, Failure> {
    texts
        .iter()
        .map(|text| match text.parse() {
            Ok(selector) => Ok(DeviceSelector::Listed(selector)),
            Err(device::SelectorError::NotVulkan(name)) if name == SimDevice::NAME => Ok(DeviceSelector::Sim),
            Err(device::SelectorError::NotVulkan(name)) => compile_only(&name),
            Err(error @ device::SelectorError::Empty) => Err(Failure::input_error(error)),
        })
        .collect()
}

/// Parses `radv:FAMILY` or `radv:FAMILY@VERSION`.
fn compile_only(text: &str) -> Result<DeviceSelector, Failure> {
    let Some((vendor, name)) = vendor::parse_selector(text) else {
        return Err(Failure::input_error(device::SelectorError::NotVulkan(text.to_owned())));
    };
    let (family, version) = match name.split_once('@') {
        Some((family, version)) => (family, Some(version.to_owned())),
        None => (name, None),
    };
    if family.is_empty() || version.as_deref() == Some("") {
        let word = vendor.selector_prefix;
        return Err(Failure::input_message(format!(
            "`{text}` is incomplete: expected {word}:CHIP, or {word}:* for all of them, optionally \
             followed by `@` and the start of a Mesa version"
        )));
    }
    Ok(DeviceSelector::CompileOnly { vendor, family: family.to_owned(), version })
}

/// A compile-only device and its Mesa installation.
#[derive(Clone, Debug)]
pub struct CompileOnly {
    /// The installation.
    pub mesa: Mesa,
    /// The family, as its command line takes it.
    pub family: String,
    /// The device, whose index has no meaning.
    pub listed: ListedDevice,
}

impl CompileOnly {
    /// Returns a process whose only Vulkan device is this one.
    pub fn process(&self) -> Process {
        Process::CompileOnly { mesa: self.mesa.clone(), family: self.family.clone() }
    }

    /// Returns the name, such as `radv:navi31@25.0.7`.
    pub fn name(&self) -> String {
        format!("{}@{}", self.listed.identity.name, self.version())
    }

    /// Returns the version of its Mesa, such as `25.0.7`.
    pub fn version(&self) -> &str {
        version_of(&self.listed)
    }
}

/// Extracts the version from `Mesa 25.0.7-2+deb13u1`.
fn version_of(listed: &ListedDevice) -> &str {
    let info = listed.identity.driver_info.trim_start_matches("Mesa ");
    info.split(['-', ' ', '+']).next().unwrap_or(info)
}

/// Returns the Mesa installations of a folder, or the installed ones.
///
/// # Errors
/// If the folder has none, or an environment variable names a file that does not exist.
pub fn mesas(folder: Option<&Path>) -> Result<Vec<Mesa>, Failure> {
    match folder {
        Some(folder) => Mesa::find_in_folder(folder, "--mesa").map_err(Failure::input_error),
        None => Mesa::find_installed().map_err(Failure::environment_error),
    }
}

/// Returns every compile-only device of some installations, without those that do not start.
pub fn all_compile_only(mesas: &[Mesa]) -> Vec<CompileOnly> {
    let families = |mesa: &Mesa| mesa.known_families().unwrap_or_default();
    let asked: Vec<(&Mesa, &ChipFamily)> =
        mesas.iter().flat_map(|mesa| families(mesa).into_iter().map(move |family| (mesa, family))).collect();
    let found = map(&asked, |(mesa, family)| probe_compile_only(mesa, family.name).ok());
    found.into_iter().flatten().collect()
}

/// Describes the missing prerequisites for each vendor without compile-only devices.
pub fn missing_compile_only(mesas: &[Mesa], found: &[CompileOnly]) -> Vec<String> {
    let mut lines = Vec::new();
    for vendor in VENDORS {
        let of_vendor = |mesa: &&Mesa| mesa.vendor().selector_prefix == vendor.selector_prefix;
        let mut has = found.iter().any(|device| of_vendor(&&device.mesa));
        for mesa in mesas.iter().filter(of_vendor) {
            if let Err(error) = mesa.known_families() {
                lines.push(format!("{}: {error}", vendor.selector_prefix));
                has = true;
            }
        }
        if !has {
            lines.push(no_driver(vendor, mesas.iter().any(|mesa| of_vendor(&mesa))));
        }
    }
    lines
}

/// Returns the message for a vendor without an installation, or whose installations do not start.
fn no_driver(vendor: &Vendor, is_there: bool) -> String {
    let Vendor {
        selector_prefix: word, display_name: driver, driver_file_prefix: driver_file, install, ..
    } = vendor;
    if is_there {
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
    vendor: &Vendor,
    family: &str,
    version: Option<&str>,
    mesas: &[Mesa],
) -> Result<Vec<CompileOnly>, Failure> {
    let mesas: Vec<&Mesa> =
        mesas.iter().filter(|mesa| mesa.vendor().selector_prefix == vendor.selector_prefix).collect();
    if mesas.is_empty() {
        return Err(Failure::environment_message(no_driver(vendor, false)));
    }
    let mut found = Vec::new();
    let mut known = Vec::new();
    let mut deaths: Vec<String> = Vec::new();
    for mesa in mesas {
        let families = match mesa.known_families() {
            Ok(families) => families,
            Err(error) => {
                deaths.push(error.to_string());
                continue;
            }
        };
        let place = mesa.driver_file().display();
        if let Some(version) = version {
            // This version may not support every chip of the list.
            let any = families.iter().rev().find_map(|family| probe_compile_only(mesa, family.name).ok());
            match any {
                Some(device) if device.version().starts_with(version) || version == "*" => {}
                Some(device) => {
                    known.push(format!("{place} is of Mesa {}", device.version()));
                    continue;
                }
                None => {
                    known.push(format!("{place}: no chip starts"));
                    continue;
                }
            }
        }
        let names: Vec<&str> = families.iter().map(|family| family.name).collect();
        known.push(format!("{place} knows {}", names.join(", ")));
        let knows = families.iter().any(|known| vendor.find_family(family) == Some(known));
        if family == "*" {
            found.extend(all_compile_only(std::slice::from_ref(mesa)));
        } else if knows || (vendor.find_family(family).is_none() && mesa.refuses_unknown()) {
            match probe_compile_only(mesa, family) {
                Ok(device) => found.push(device),
                Err(death) => deaths.push(death),
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
    deaths.dedup();
    for line in deaths.iter().chain(&known) {
        text += &format!("\n{line}");
    }
    if !known.is_empty() {
        // The family may need a newer or an older Mesa.
        let may = if family == "*" || vendor.find_family(family).is_some() {
            "may have it"
        } else {
            "may know more"
        };
        text += &format!(
            "\nanother Mesa {may}: --mesa, {COMPILERS_VARIABLE} and VK_LITMUS_EXTRA_ICDS name them; {}",
            vendor.install
        );
    }
    Err(Failure::environment_message(text))
}

/// Returns the compile-only device at an index of `devices`, where `before` other devices come first.
pub fn compile_only_at(meant: &DeviceSelector, before: usize) -> Option<CompileOnly> {
    let DeviceSelector::Listed(Selector::Index(index)) = meant else { return None };
    let place = index.checked_sub(before)?;
    all_compile_only(&mesas(None).ok()?).into_iter().nth(place)
}

/// Lists a family's device in a process that exits if Mesa does not support it.
fn probe_compile_only(mesa: &Mesa, family: &str) -> Result<CompileOnly, String> {
    let process = Process::CompileOnly { mesa: mesa.clone(), family: family.to_owned() };
    let (answer, status) = run_listing(&process).map_err(|failure| failure.report().to_string())?;
    let place = mesa.driver_file().display();
    match answer.map(|answer| answer.devices) {
        Some(Ok(found)) => found
            .into_iter()
            .find(|found| !found.capabilities.executes)
            .map(|found| CompileOnly {
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
    if is_sim(chosen) {
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
