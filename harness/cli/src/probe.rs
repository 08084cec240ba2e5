//! The devices of this machine, listed by a process of their own: a driver that crashes or hangs while it is looked at
//! ends that process and nothing else.

use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use device::{DriverEnvironment, Listed, Selector};
use plan::{Capabilities, Device, DeviceError, Identity};
use serde::{Deserialize, Serialize};
use sim::{Fault, SimDevice};

use crate::exit::Failure;

/// How long listing may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Begins the answer's line, so that whatever a driver prints is told apart.
pub const SEPARATOR: char = '\u{1e}';

/// What the listing process says.
#[derive(Debug, Serialize, Deserialize)]
pub enum Answer {
    /// The devices.
    Devices(Vec<Found>),
    /// Why there are none.
    Error(String),
}

/// A device of the list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Found {
    /// Its place in the list.
    pub index: usize,
    /// Who it is.
    pub identity: Identity,
    /// What it can do.
    pub capabilities: Capabilities,
}

/// What a user means by a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meant {
    /// A device of the list.
    Listed(Selector),
    /// The built-in simulated GPU.
    Sim,
}

impl Meant {
    /// The first device of a list that is meant; the simulated GPU where there is no other and nothing was asked for.
    ///
    /// # Errors
    /// [`DeviceError::NoSuchDevice`].
    pub fn choose<'a>(&self, all: &'a [Listed]) -> Result<&'a Listed, DeviceError> {
        let sim = all.iter().find(|listed| is_sim(listed));
        let vulkan = all.len() - usize::from(sim.is_some());
        let none = || DeviceError::NoSuchDevice(SimDevice::NAME.to_owned());
        match self {
            Meant::Sim => sim.ok_or_else(none),
            Meant::Listed(Selector::Best) if vulkan == 0 => sim.ok_or_else(none),
            Meant::Listed(selector @ Selector::Index(_)) => selector.choose(all),
            Meant::Listed(selector) => selector.choose(all.get(..vulkan).unwrap_or_default()),
        }
    }
}

/// Whether a device of the list is the simulated GPU.
pub fn is_sim(listed: &Listed) -> bool {
    listed.identity.kind == "simulated"
}

/// The simulated GPU as a device of the list.
pub fn simulated(index: usize, fault: Fault) -> Listed {
    let device = SimDevice::new(fault);
    Listed { index, identity: device.identity().clone(), capabilities: device.capabilities().clone() }
}

/// The drivers for what is meant.
///
/// # Errors
/// When a variable names a driver file that is not there.
pub fn environment(meant: &[Meant]) -> Result<DriverEnvironment, Failure> {
    let selectors: Vec<Selector> = meant
        .iter()
        .filter_map(|meant| match meant {
            Meant::Listed(selector) => Some(selector.clone()),
            Meant::Sim => None,
        })
        .collect();
    if selectors.is_empty() && !meant.is_empty() {
        // The simulated GPU needs no driver, whatever the variables say.
        return Ok(DriverEnvironment::default());
    }
    let environment = DriverEnvironment::discover().map_err(Failure::environment_error)?;
    Ok(if selectors.is_empty() { environment } else { environment.pinned(&selectors) })
}

/// The devices for what is meant: those that the loader finds in `environment`, the one that is taken by default first,
/// and the simulated GPU last; and why the loader finds none.
///
/// # Errors
/// When a driver crashed or hung.
pub fn list(
    environment: &DriverEnvironment,
    meant: &[Meant],
) -> Result<(Vec<Listed>, Option<String>), Failure> {
    if !meant.is_empty() && meant.iter().all(|meant| *meant == Meant::Sim) {
        return Ok((vec![simulated(0, Fault::None)], None));
    }
    let (mut all, why) = match list_vulkan(environment)? {
        Answer::Devices(found) => {
            let listed =
                |f: Found| Listed { index: f.index, identity: f.identity, capabilities: f.capabilities };
            (found.into_iter().map(listed).collect(), None)
        }
        Answer::Error(why) => (Vec::new(), Some(why)),
    };
    all.push(simulated(all.len(), Fault::None));
    Ok((all, why))
}

/// What the listing process says.
fn list_vulkan(environment: &DriverEnvironment) -> Result<Answer, Failure> {
    let program = std::env::current_exe().map_err(Failure::environment_error)?;
    let mut child = Command::new(program)
        .args(["worker", "--list"])
        .envs(environment.variables())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(Failure::environment_error)?;
    let (sender, receiver) = channel();
    let stdout = child.stdout.take();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = stdout.map(|mut stdout| stdout.read_to_end(&mut bytes));
        // Whoever waited may have given up.
        let _ = sender.send(read.map(|_| bytes));
    });
    let Ok(bytes) = receiver.recv_timeout(PATIENCE) else {
        let _ = child.kill();
        let _ = child.wait();
        return Err(Failure::environment_message(format!(
            "a Vulkan driver hung while devices were listed: no answer within {} s",
            PATIENCE.as_secs()
        )));
    };
    let status = child.wait().map_err(Failure::environment_error)?;
    let text = String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned();
    let answer =
        text.split(SEPARATOR).next_back().and_then(|line| serde_json::from_str(line.trim_end()).ok());
    answer.ok_or_else(|| {
        Failure::environment_message(format!(
            "a Vulkan driver crashed while devices were listed ({status}); VK_DRIVER_FILES chooses drivers"
        ))
    })
}

/// Reads selectors.
///
/// # Errors
/// When one is empty or names a device of a kind that is not available.
pub fn selectors(texts: &[String]) -> Result<Vec<Meant>, Failure> {
    texts
        .iter()
        .map(|text| match text.parse() {
            Ok(selector) => Ok(Meant::Listed(selector)),
            Err(device::SelectorError::NotVulkan(name)) if name == SimDevice::NAME => Ok(Meant::Sim),
            Err(device::SelectorError::NotVulkan(name)) => {
                Err(Failure::not_available(format!("device `{name}`")))
            }
            Err(error @ device::SelectorError::Empty) => Err(Failure::input_error(error)),
        })
        .collect()
}

/// A selector that means this device and no other of `all`.
pub fn exact_selector(chosen: &Listed, all: &[Listed]) -> String {
    if is_sim(chosen) {
        return SimDevice::NAME.to_owned();
    }
    let identity = &chosen.identity;
    [&identity.name, &identity.uuid]
        .into_iter()
        .filter(|text| {
            text.parse::<Selector>().is_ok_and(|selector| {
                !matches!(selector, Selector::Index(_))
                    && selector.choose(all).is_ok_and(|found| found.index == chosen.index)
            })
        })
        .map(String::clone)
        .next()
        .unwrap_or_else(|| chosen.index.to_string())
}
