//! `compile`: a test as SPIR-V or machine code.

use std::io::{IsTerminal, Write};

use campaign::compilers::kernels::{GenerationTarget, compile_machine_code, encode_spirv, numbered_path};
use campaign::compilers::targets;
use campaign::inputs::load_single_test;
use runner::RunVariant;
use sim::SimDevice;

use crate::arguments::{Compile, Emit};
use crate::exit::{Failure, Outcome};
use crate::output::{StandardOutput, output_failure, write_file};

/// Runs the command.
///
/// # Errors
/// Returns an error if the test cannot be read or compiled, or the output cannot be written.
pub fn compile(arguments: &Compile) -> Result<Outcome, Failure> {
    match arguments.emit {
        Emit::Spv | Emit::Spvasm => {}
        Emit::Isa if arguments.device.is_none() => {
            return Err(Failure::input_message("`--emit isa` needs a device: add `--device SEL`"));
        }
        Emit::Isa => {}
    }
    let mut loaded = load_single_test(&arguments.test)?;
    let variant = arguments.variant.as_deref().unwrap_or(&loaded.source.variant);
    let variant: RunVariant = variant.parse().map_err(Failure::input_error)?;
    loaded.test = loaded.to_device_test()?;
    let generation_target = match &arguments.device {
        Some(device) if arguments.emit == Emit::Isa || device != SimDevice::NAME => {
            GenerationTarget::for_target(
                targets::select_targets(std::slice::from_ref(device), None)?.into_iter().next(),
            )?
        }
        Some(_) => GenerationTarget::for_simulated_gpu()?,
        None => GenerationTarget::for_target(None)?,
    };
    let GenerationTarget { target, config, .. } = generation_target;
    let program = shaders::compile_program(&loaded.test, &variant.kernel_config(config), variant.pipelines)
        .map_err(|error| loaded.no_kernel_failure(variant.shader.stage, &error))?;
    let kernels = match target.filter(|_| arguments.emit == Emit::Isa) {
        Some(target) => compile_machine_code(&target, &program)?,
        None => {
            let kernels =
                program.kernels().map(|kernel| encode_spirv(&kernel.words, arguments.emit == Emit::Spvasm));
            kernels.collect::<Result<Vec<_>, Failure>>()?
        }
    };
    match &arguments.out {
        Some(path) => {
            for (number, bytes) in kernels.iter().enumerate() {
                let path = numbered_path(path, number);
                write_file(&path, bytes)?;
            }
        }
        None if arguments.emit == Emit::Spv && std::io::stdout().is_terminal() => {
            return Err(Failure::input_message(
                "SPIR-V is binary: write it to a file with `--out FILE`, or print text with `--emit spvasm`",
            ));
        }
        None if arguments.emit == Emit::Spv && kernels.len() > 1 => {
            return Err(Failure::input_message(format!(
                "the test has {} kernels: write them to files with `--out FILE`, or print text with `--emit spvasm`",
                kernels.len()
            )));
        }
        None => {
            let mut data = StandardOutput::new();
            kernels
                .iter()
                .try_for_each(|bytes| data.write_all(bytes))
                .and_then(|()| data.flush())
                .map_err(output_failure)?;
        }
    }
    Ok(Outcome::Success)
}
