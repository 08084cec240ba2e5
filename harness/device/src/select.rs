//! Device selection: `--device` selectors.

use std::fmt;
use std::str::FromStr;

use plan::{Capabilities, DeviceError, Identity};

/// A device of [`crate::list_devices`].
#[derive(Clone, Debug, PartialEq)]
pub struct ListedDevice {
    /// Its index in the list.
    ///
    /// The default device is first: discrete, integrated and virtual GPUs, then software drivers by name.
    pub index: usize,
    pub identity: Identity,
    pub capabilities: Capabilities,
}

/// A software driver, selected by its driver id instead of its position in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SoftwareDriver {
    /// Mesa's llvmpipe for Vulkan.
    Lavapipe,
    Swiftshader,
}

impl SoftwareDriver {
    /// Returns its name in selectors and in [`Identity::name`].
    pub fn name(self) -> &'static str {
        match self {
            SoftwareDriver::Lavapipe => "lavapipe",
            SoftwareDriver::Swiftshader => "swiftshader",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selector {
    /// The first device with the Vulkan memory model, else the first one.
    Best,
    /// A known software driver.
    Software(SoftwareDriver),
    /// `gpu`: the first hardware device: discrete, then integrated, then virtual.
    Gpu,
    /// An index of the list.
    Index(usize),
    /// A device UUID: 32 lower-case hexadecimal digits.
    Uuid(String),
    /// A part of its name, device name, driver name or driver information; case-insensitive.
    Name(String),
}

/// The reason why a text is not a Vulkan device selector.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectorError {
    #[error("an empty device selector")]
    Empty,
    /// A device of another kind: the simulated GPU (`sim`) or a compile-only one (`radv:…`).
    #[error("`{0}` is not a Vulkan device")]
    NotVulkan(String),
}

impl FromStr for Selector {
    type Err = SelectorError;

    fn from_str(text: &str) -> Result<Selector, SelectorError> {
        let lower = text.trim().to_lowercase();
        if lower == "sim" || vendor::parse_selector(&lower).is_some() {
            return Err(SelectorError::NotVulkan(lower));
        }
        let digits = lower.replace('-', "");
        Ok(match lower.as_str() {
            "" => return Err(SelectorError::Empty),
            "lavapipe" => Selector::Software(SoftwareDriver::Lavapipe),
            "swiftshader" => Selector::Software(SoftwareDriver::Swiftshader),
            "gpu" => Selector::Gpu,
            _ if digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
                Selector::Uuid(digits)
            }
            _ => match lower.parse() {
                Ok(index) => Selector::Index(index),
                Err(_) => Selector::Name(lower),
            },
        })
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Selector::Best => f.write_str("any device"),
            Selector::Software(driver) => f.write_str(driver.name()),
            Selector::Gpu => f.write_str("gpu"),
            Selector::Index(index) => write!(f, "{index}"),
            Selector::Uuid(text) | Selector::Name(text) => f.write_str(text),
        }
    }
}

impl Selector {
    /// Returns the selected software driver, if it is one.
    pub fn software_driver(&self) -> Option<SoftwareDriver> {
        match self {
            Selector::Software(driver) => Some(*driver),
            _ => None,
        }
    }

    /// Returns the first matching device of a list.
    ///
    /// # Errors
    ///
    /// [`DeviceError::NoSuchDevice`].
    pub fn choose_from<'a>(&self, devices: &'a [ListedDevice]) -> Result<&'a ListedDevice, DeviceError> {
        let found = match self {
            Selector::Best => {
                devices.iter().find(|device| device.capabilities.memory_model).or_else(|| devices.first())
            }
            _ => devices.iter().find(|device| self.matches_device(device)),
        };
        found.ok_or_else(|| DeviceError::NoSuchDevice(self.to_string()))
    }

    fn matches_device(&self, device: &ListedDevice) -> bool {
        let identity = &device.identity;
        match self {
            Selector::Best => true,
            Selector::Software(driver) => identity.name == driver.name(),
            Selector::Gpu => matches!(identity.kind.as_str(), "discrete" | "integrated" | "virtual"),
            Selector::Index(index) => device.index == *index,
            Selector::Uuid(uuid) => identity.uuid == *uuid,
            Selector::Name(part) => {
                let names =
                    [&identity.name, &identity.device_name, &identity.driver_name, &identity.driver_info];
                names.iter().any(|name| name.to_lowercase().contains(part.as_str()))
            }
        }
    }
}
