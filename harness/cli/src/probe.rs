//! The devices of this machine, listed by a process of their own: a driver that crashes or hangs while it is looked at
//! ends that process and nothing else.

use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use device::{DriverEnvironment, Listed, Selector};
use plan::{Capabilities, Identity};
use serde::{Deserialize, Serialize};

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

/// The drivers for `selectors`.
///
/// # Errors
/// When a variable names a driver file that is not there.
pub fn environment(selectors: &[Selector]) -> Result<DriverEnvironment, Failure> {
    let environment = DriverEnvironment::discover().map_err(Failure::environment_error)?;
    Ok(if selectors.is_empty() { environment } else { environment.pinned(selectors) })
}

/// The devices that the loader finds in `environment`, the one that is taken by default first.
///
/// # Errors
/// When there is none, or a driver crashed or hung.
pub fn list(environment: &DriverEnvironment) -> Result<Vec<Listed>, Failure> {
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
    match answer {
        Some(Answer::Devices(found)) => Ok(found
            .into_iter()
            .map(|f| Listed { index: f.index, identity: f.identity, capabilities: f.capabilities })
            .collect()),
        Some(Answer::Error(why)) => Err(Failure::environment_message(format!(
            "{why}\nthe built-in simulated GPU, which needs no driver, is not available in this version"
        ))),
        None => Err(Failure::environment_message(format!(
            "a Vulkan driver crashed while devices were listed ({status}); VK_DRIVER_FILES chooses drivers"
        ))),
    }
}

/// Reads selectors.
///
/// # Errors
/// When one is empty or names a device of a kind that is not available.
pub fn selectors(texts: &[String]) -> Result<Vec<Selector>, Failure> {
    texts
        .iter()
        .map(|text| {
            text.parse().map_err(|error| match error {
                device::SelectorError::NotVulkan(name) => Failure::not_available(format!("device `{name}`")),
                device::SelectorError::Empty => Failure::input_error(error),
            })
        })
        .collect()
}

/// A selector that means this device and no other of `all`.
pub fn exact_selector(chosen: &Listed, all: &[Listed]) -> String {
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
