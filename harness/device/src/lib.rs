//! Vulkan devices as implementations of the device interface of the crate `plan`.
//!
//! [`DriverEnvironment`] finds the driver files for the Vulkan loader, [`list_devices`] lists the devices of
//! this process, a [`Selector`] chooses one, and [`VulkanDevice`] runs plans on it. This is the only crate
//! that talks to a driver, and the only one with `unsafe` code. It does not depend on litmus tests.
//!
//! [`VulkanDevice::executables`] shows the code that a driver generates for a kernel. [`Mesa`] finds
//! installations whose compile-only devices do so for absent hardware.
//!
//! ```no_run
//! use device::{DeviceOptions, Selector, VulkanDevice};
//! use plan::Device;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! for listed in device::list_devices()? {
//!     println!("{}: {}", listed.index, listed.identity.name);
//! }
//! let selector: Selector = "swiftshader".parse()?;
//! let device = VulkanDevice::open(&selector, DeviceOptions::default())?;
//! println!("{}", device.capabilities().max_workgroup_invocations);
//! # Ok(())
//! # }
//! ```

#[cfg(unix)]
mod capture;
/// Standard output is not captured on this system.
#[cfg(not(unix))]
mod capture {
    /// Runs a closure; the captured output is always empty.
    pub(crate) fn capture_output<T>(act: impl FnOnce() -> T) -> (T, String) {
        (act(), String::new())
    }
}
mod clock;
mod compile_only;
mod draw;
mod environment;
mod error;
mod executable;
mod features;
mod gpu;
mod hosts;
mod image;
mod instance;
mod mark;
pub mod mask_names;
mod memory;
mod null;
mod physical;
mod pipeline;
mod pipelines;
mod prepared;
mod queue;
mod record;
mod scoped;
mod select;
mod slices;
mod split_barrier;
mod stage_flags;
mod submission;
mod sync;
mod unusable;
mod vulkan;

pub use compile_only::{COMPILERS_VARIABLE, Mesa, MesaError};
pub use environment::{DriverEnvironment, EXTRA_VARIABLE, EnvironmentError, SWIFTSHADER_VARIABLE};
pub use executable::{EXECUTABLE_EXTENSION, Executable, Representation, Statistic};
pub use select::{ListedDevice, Selector, SelectorError, SoftwareDriver};
pub use unusable::{UnusableDriver, find_unusable};
pub use vendor::ChipFamily;
pub use vulkan::{DeviceOptions, VulkanDevice, list_devices};
