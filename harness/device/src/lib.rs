//! Vulkan devices behind the device interface of the crate `plan`.
//!
//! [`DriverEnvironment`] says which driver files the Vulkan loader is to read, [`list`] shows the devices of this
//! process, a [`Selector`] says which one is meant, and [`VulkanDevice`] runs plans on it. This is the only crate that
//! talks to a driver, and the only one with `unsafe` code. It knows no litmus test.

mod environment;
mod error;
mod features;
mod instance;
mod memory;
mod physical;
mod pipeline;
mod prepared;
mod queue;
mod record;
mod select;
mod vulkan;

pub use environment::{DriverEnvironment, EXTRA_VARIABLE, EnvironmentError, SWIFTSHADER_VARIABLE};
pub use select::{Listed, Selector, SelectorError, SoftwareDriver};
pub use vulkan::{Options, VulkanDevice, list};
