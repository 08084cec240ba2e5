//! `compile`: a test as SPIR-V.

use std::io::{IsTerminal, Write};

use litmus::convert::guarded;
use runner::Stress;
use shaders::KernelConfig;

use crate::arguments::{Compile, Emit};
use crate::commands::convert::one;
use crate::exit::{Failure, Outcome};
use crate::output::{Data, cannot_print};
use crate::probe::{self, Meant};

/// What a kernel is made for when no device is named: sizes that every device with the Vulkan memory model has.
const PLAIN: KernelConfig =
    KernelConfig { subgroup_size: 32, lanes: 32, max_workgroup_invocations: 128, device_scope: true };

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
    if arguments.variant.is_some() {
        return Err(Failure::not_available("`--variant`"));
    }
    let mut loaded = one(&arguments.test)?;
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
    let kernel = shaders::compile(&loaded.test, &config)
        .map_err(|error| Failure::input_message(format!("{}: no kernel: {error}", loaded.source.file)))?;
    let bytes = match arguments.emit {
        Emit::Spvasm => {
            let mut text = shaders::disassemble(&kernel.words).map_err(Failure::environment_error)?;
            text.push('\n');
            text.into_bytes()
        }
        _ => kernel.words.iter().flat_map(|word| word.to_le_bytes()).collect(),
    };
    match &arguments.out {
        Some(path) => std::fs::write(path, bytes)
            .map_err(|error| Failure::environment_message(format!("{}: {error}", path.display())))?,
        None if arguments.emit == Emit::Spv && std::io::stdout().is_terminal() => {
            return Err(Failure::input_message(
                "SPIR-V words are nothing for a terminal: name a file with --out, or --emit spvasm",
            ));
        }
        None => {
            let mut data = Data::new();
            data.write_all(&bytes).and_then(|()| data.flush()).map_err(cannot_print)?;
        }
    }
    Ok(Outcome::Success)
}
