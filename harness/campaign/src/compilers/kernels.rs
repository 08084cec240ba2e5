//! The kernels of a test as files: SPIR-V, assembly text, or a device's machine code.

use std::path::{Path, PathBuf};
use std::time::Duration;

use device::ListedDevice;
use runner::Stress;
use shaders::{KernelConfig, Program};
use sim::Fault;

use super::engine::{CompilerEngine, KernelResult};
use super::targets::CompilerTarget;
use crate::compile_worker::KernelToCompile;
use crate::{Failure, probe};

/// The device and the settings that kernels are generated for.
#[derive(Clone, Debug)]
pub struct GenerationTarget {
    /// The device, if it has a compiler.
    pub target: Option<CompilerTarget>,
    /// Sizes and features.
    pub config: KernelConfig,
    pub stress: Stress,
}

impl GenerationTarget {
    /// Returns the settings for a device, or for a generic one.
    ///
    /// # Errors
    /// None for the presets that are shipped.
    pub fn for_target(target: Option<CompilerTarget>) -> Result<GenerationTarget, Failure> {
        let listed = target.as_ref().map(|target| target.listed.clone());
        GenerationTarget::from_device(target, listed.as_ref())
    }

    /// Returns the settings for the simulated GPU.
    ///
    /// # Errors
    /// None for the presets that are shipped.
    pub fn for_simulated_gpu() -> Result<GenerationTarget, Failure> {
        GenerationTarget::from_device(None, Some(&probe::simulated_device(0, Fault::None)))
    }

    fn from_device(
        target: Option<CompilerTarget>,
        listed: Option<&ListedDevice>,
    ) -> Result<GenerationTarget, Failure> {
        let stress = match listed {
            Some(listed) => Stress::for_device(&listed.identity, &listed.capabilities),
            None => Stress::preset(GENERIC_PRESET),
        };
        let stress = stress.map_err(Failure::environment_error)?;
        let config =
            listed.map_or(KernelConfig::MINIMAL, |listed| stress.kernel_config(&listed.capabilities));
        // The printed code is that of the test, without memory stress.
        Ok(GenerationTarget { target, config: KernelConfig { has_stress: false, ..config }, stress })
    }
}

/// The stress preset for an unknown device.
const GENERIC_PRESET: &str = "gpu";

/// Returns the machine code of each kernel, as the driver prints it.
///
/// # Errors
/// If the device lacks a feature, or the compiler crashes.
pub fn compile_machine_code(target: &CompilerTarget, program: &Program) -> Result<Vec<Vec<u8>>, Failure> {
    let engine = CompilerEngine::new(COMPILER_TIMEOUT, None)?;
    let kernels: Vec<KernelToCompile> = program.kernels().map(KernelToCompile::from).collect();
    let results = engine.compile_kernels(target, &kernels);
    results
        .into_iter()
        .map(|result| match result {
            KernelResult::Compiled(compiled) => Ok(compiled.assembly().as_bytes().to_vec()),
            KernelResult::MissingFeature(what) => {
                Err(Failure::environment_message(format!("{} lacks {what}", target.name)))
            }
            KernelResult::Crashed(how) => {
                Err(Failure::environment_message(format!("{}: {how}", target.name)))
            }
        })
        .collect()
}

/// Time limit of a compiler.
const COMPILER_TIMEOUT: Duration = Duration::from_secs(10);

/// Returns the SPIR-V of a kernel, as a binary or as text.
///
/// # Errors
/// If the words are not SPIR-V.
pub fn encode_spirv(words: &[u32], as_text: bool) -> Result<Vec<u8>, Failure> {
    if !as_text {
        return Ok(words.iter().flat_map(|word| word.to_le_bytes()).collect());
    }
    let mut text = shaders::disassemble(words).map_err(Failure::environment_error)?;
    text.push('\n');
    Ok(text.into_bytes())
}

/// Returns the path of a kernel's file: `k.spv`, then `k.1.spv` and so on.
pub fn numbered_path(path: &Path, number: usize) -> PathBuf {
    if number == 0 {
        return path.to_owned();
    }
    match path.extension() {
        Some(extension) => path.with_extension(format!("{number}.{}", extension.to_string_lossy())),
        None => path.with_extension(number.to_string()),
    }
}
