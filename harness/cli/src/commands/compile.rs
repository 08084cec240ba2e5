//! `compile`: a test as SPIR-V.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

use litmus::convert::guarded;
use runner::{Stress, Variant};
use shaders::KernelConfig;

use crate::arguments::{Compile, Emit};
use crate::commands::convert::one;
use crate::exit::{Failure, Outcome};
use crate::output::{Data, cannot_print};
use crate::probe::{self, Meant};

/// What a kernel is made for when no device is named: sizes that every device with the Vulkan memory model has.
const PLAIN: KernelConfig = KernelConfig {
    subgroup_size: 32,
    lanes: 32,
    max_workgroup_invocations: 128,
    device_scope: true,
    loop_bound: KernelConfig::LOOP_BOUND,
    variant: shaders::variant::DEFAULT,
};

/// Runs the command.
///
/// # Errors
/// When the test cannot be read or placed, or the output cannot be written.
pub fn compile(arguments: &Compile) -> Result<Outcome, Failure> {
    match arguments.emit {
        Emit::Spv | Emit::Spvasm => {}
        Emit::Amber => return Err(Failure::not_available("`--emit amber`")),
        Emit::Isa => return Err(Failure::not_available("`--emit isa`")),
    }
    let mut loaded = one(&arguments.test)?;
    let variant = arguments.variant.as_deref().unwrap_or(&loaded.source.variant);
    let variant: Variant = variant.parse().map_err(Failure::input_error)?;
    loaded.test = guarded(&loaded.test);
    let config = match &arguments.device {
        None => PLAIN,
        Some(text) => {
            let selectors = probe::selectors(std::slice::from_ref(text))?;
            let (devices, _) = probe::list(&probe::environment(&selectors)?, &selectors)?;
            let selector = selectors.into_iter().next().unwrap_or(Meant::Sim);
            let chosen = selector.choose(&devices).map_err(Failure::environment_error)?;
            let stress = Stress::for_device(&chosen.identity, &chosen.capabilities)
                .map_err(Failure::environment_error)?;
            stress.kernel_config(&chosen.capabilities)
        }
    };
    let program = shaders::program(&loaded.test, &variant.kernel_config(config), variant.pipelines)
        .map_err(|error| Failure::input_message(format!("{}: no kernel: {error}", loaded.source.file)))?;
    let kernels = program.kernels().map(|kernel| bytes(&kernel.words, arguments.emit));
    let kernels = kernels.collect::<Result<Vec<_>, Failure>>()?;
    match &arguments.out {
        Some(path) => {
            for (number, bytes) in kernels.iter().enumerate() {
                let path = numbered(path, number);
                std::fs::write(&path, bytes)
                    .map_err(|error| Failure::environment_message(format!("{}: {error}", path.display())))?;
            }
        }
        None if arguments.emit == Emit::Spv && std::io::stdout().is_terminal() => {
            return Err(Failure::input_message(
                "SPIR-V words are nothing for a terminal: name a file with --out, or --emit spvasm",
            ));
        }
        None if arguments.emit == Emit::Spv && kernels.len() > 1 => {
            return Err(Failure::input_message(format!(
                "the test has {} kernels: name a file with --out, or --emit spvasm",
                kernels.len()
            )));
        }
        None => {
            let mut data = Data::new();
            kernels
                .iter()
                .try_for_each(|bytes| data.write_all(bytes))
                .and_then(|()| data.flush())
                .map_err(cannot_print)?;
        }
    }
    Ok(Outcome::Success)
}

fn bytes(words: &[u32], emit: Emit) -> Result<Vec<u8>, Failure> {
    if emit != Emit::Spvasm {
        return Ok(words.iter().flat_map(|word| word.to_le_bytes()).collect());
    }
    let mut text = shaders::disassemble(words).map_err(Failure::environment_error)?;
    text.push('\n');
    Ok(text.into_bytes())
}

/// Where a kernel is written: `k.spv`, then `k.1.spv` and so on.
fn numbered(path: &Path, number: usize) -> PathBuf {
    if number == 0 {
        return path.to_owned();
    }
    match path.extension() {
        Some(extension) => path.with_extension(format!("{number}.{}", extension.to_string_lossy())),
        None => path.with_extension(number.to_string()),
    }
}
