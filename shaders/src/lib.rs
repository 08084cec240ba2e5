//! The telling: litmus tests to SPIR-V under the Vulkan memory model.
//!
//! [`compile`] is pure: the same test and configuration give the same words. The module never sees a device; what a
//! kernel needs of one is listed in [`Kernel::requirements`].

pub mod kernel;

pub use kernel::{Binding, CompileError, Kernel, KernelConfig, Parameters, Requirements, ResultSlot, Roles};

/// Compiles a test to one compute kernel that holds all its threads.
///
/// # Errors
/// [`CompileError::NotPlaceable`] names the rule for which the test cannot meet a device as one kernel.
pub fn compile(_test: &litmus::Test, _config: &KernelConfig) -> Result<Kernel, CompileError> {
    Err(CompileError::NotPlaceable { rule: "not available".into() })
}
