//! Compiles a test for a device. Planning and running share this code.

use litmus::Test;
use plan::{BufferMemory, Capabilities};
use shaders::Program;

use crate::guards::GuardedTest;
use crate::join::Join;
use crate::mechanisms::RunMechanisms;
use crate::stress::Stress;
use crate::variant::RunVariant;
use crate::wire::IncompleteReason;

/// The kernels of a test for a device, and how they are run.
#[derive(Clone, Debug)]
pub struct Runnable {
    pub program: Program,
    /// The mechanisms to test between its phases.
    joins: Vec<Join>,
    memory: BufferMemory,
}

/// Compiles `test` in `variant` for a device with `capabilities`, laid out by `stress`.
///
/// # Errors
/// [`IncompleteReason::NotPlaceable`] with the rule, or [`IncompleteReason::Lacks`] with the missing feature.
pub fn compile_for_device(
    test: &Test,
    variant: RunVariant,
    stress: &Stress,
    capabilities: &Capabilities,
) -> Result<Runnable, IncompleteReason> {
    if let Some(what) = variant.refusal_reason(capabilities) {
        return Err(IncompleteReason::Lacks(what));
    }
    let config = variant.kernel_config(stress.kernel_config(capabilities));
    // A test whose guards do not fit runs without them.
    let guarded = GuardedTest::new(test, capabilities)
        .and_then(|guarded| shaders::compile_program(&guarded.test, &config, variant.pipelines).ok());
    let program = match guarded {
        Some(program) => program,
        None => shaders::compile_program(test, &config, variant.pipelines)?,
    };
    if let Some(what) = variant.missing_capability(&program, &test.metadata.needs, capabilities) {
        return Err(IncompleteReason::Lacks(what));
    }
    let joins = variant.joins(&program, |feature| capabilities.has_feature(feature));
    Ok(Runnable { joins, memory: variant.location_memory(&program), program })
}

impl Runnable {
    /// Returns the mechanisms and the memory of its runs.
    pub fn mechanisms(&self) -> RunMechanisms<'_> {
        RunMechanisms { joins: &self.joins, memory: self.memory }
    }

    pub fn hash(&self) -> String {
        hash_kernels(self.program.kernels().flat_map(|kernel| &kernel.words))
    }
}

/// Returns the BLAKE3 hash of the words of kernels, in hexadecimal digits.
pub fn hash_kernels<'a>(words: impl IntoIterator<Item = &'a u32>) -> String {
    let mut hasher = blake3::Hasher::new();
    for word in words {
        hasher.update(&word.to_le_bytes());
    }
    hasher.finalize().to_hex().to_string()
}

/// Checks that a worker compiled the kernel that its parent planned and will publish.
///
/// # Errors
/// [`IncompleteReason::Internal`] if not: the results would be attributed to a kernel that did not run.
pub(crate) fn check_planned_kernel(planned: &str, compiled: &str) -> Result<(), IncompleteReason> {
    if planned.is_empty() || planned == compiled {
        return Ok(());
    }
    let message =
        format!("an error of this tool: kernel {compiled} was compiled, kernel {planned} was planned");
    Err(IncompleteReason::Internal(message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_kernel_than_the_planned_one_is_an_error() {
        assert_eq!(check_planned_kernel("a", "a"), Ok(()));
        assert_eq!(check_planned_kernel("", "a"), Ok(()));
        let message = check_planned_kernel("a", "b").unwrap_err().to_string();
        assert!(message.contains("kernel b was compiled, kernel a was planned"), "{message}");
    }
}
