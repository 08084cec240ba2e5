//! From a test to what runs on a device, or to what is lacking: the one recipe of whoever plans, compiles ahead or runs.

use litmus::Test;
use plan::{Capabilities, Memory};
use shaders::Program;

use crate::join::Join;
use crate::stress::Stress;
use crate::variant::{Variant, has_feature};
use crate::ways::Way;
use crate::wire::Failure;

/// The kernels of a test for a device, and how they are run.
#[derive(Clone, Debug)]
pub struct Runnable {
    /// The kernels.
    pub program: Program,
    /// The ways to put its phases one after another.
    joins: Vec<Join>,
    /// Where its locations lie.
    memory: Memory,
}

/// What runs of a test on a device with these capabilities, told as `variant` says and spread as `stress` says.
///
/// # Errors
/// [`Failure::NotPlaceable`] with the rule, or [`Failure::Lacks`] with what the device lacks.
pub fn told(
    test: &Test,
    variant: Variant,
    stress: &Stress,
    capabilities: &Capabilities,
) -> Result<Runnable, Failure> {
    if let Some(what) = variant.refused(capabilities) {
        return Err(Failure::Lacks { what });
    }
    let config = variant.kernel_config(stress.kernel_config(capabilities));
    let program = shaders::program(test, &config, variant.pipelines)?;
    if let Some(what) = variant.lacking(&program, &test.metadata.needs, capabilities) {
        return Err(Failure::Lacks { what });
    }
    let joins = variant.joins(&program, |feature| has_feature(capabilities, feature));
    Ok(Runnable { joins, memory: variant.memory(&program), program })
}

impl Runnable {
    /// How it is run besides its kernels.
    pub fn way(&self) -> Way<'_> {
        Way { joins: &self.joins, memory: self.memory }
    }

    /// The hash of its kernels.
    pub fn hash(&self) -> String {
        hash(self.program.kernels().flat_map(|kernel| &kernel.words))
    }
}

/// BLAKE3 hash of the words of kernels, in hexadecimal digits.
pub fn hash<'a>(words: impl IntoIterator<Item = &'a u32>) -> String {
    let mut hasher = blake3::Hasher::new();
    for word in words {
        hasher.update(&word.to_le_bytes());
    }
    hasher.finalize().to_hex().to_string()
}

/// Whether the kernel that a worker compiled is the one that its parent planned, and will publish.
///
/// # Errors
/// [`Failure::Internal`] where it is another: what it shows would be told of a kernel that did not run.
pub(crate) fn check(planned: &str, compiled: &str) -> Result<(), Failure> {
    if planned.is_empty() || planned == compiled {
        return Ok(());
    }
    let message =
        format!("an error of this tool: kernel {compiled} was compiled, kernel {planned} was planned");
    Err(Failure::Internal { message })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_kernel_than_the_planned_one_is_an_error() {
        assert_eq!(check("a", "a"), Ok(()));
        assert_eq!(check("", "a"), Ok(()));
        let told = check("a", "b").unwrap_err().to_string();
        assert!(told.contains("kernel b was compiled, kernel a was planned"), "{told}");
    }
}
