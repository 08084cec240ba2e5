//! `compile`: a test as SPIR-V.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use campaign::compiling::KernelToCompile;
use campaign::probe;
use device::Listed;
use litmus::convert::for_device;
use runner::{Stress, Variant};
use shaders::KernelConfig;
use sim::{Fault, SimDevice};

use crate::arguments::{Compile, Emit};
use crate::commands::codegen::engine::{self, Asking, Made};
use crate::commands::codegen::targets::{self, Target};
use crate::commands::convert::one;
use crate::exit::{Failure, Outcome};
use crate::output::{Data, cannot_print, write_file};

/// Runs the command.
///
/// # Errors
/// When the test cannot be read or placed, or the output cannot be written.
pub fn compile(arguments: &Compile) -> Result<Outcome, Failure> {
    match arguments.emit {
        Emit::Spv | Emit::Spvasm => {}
        Emit::Amber => return Err(Failure::not_available("`--emit amber`")),
        Emit::Isa if arguments.device.is_none() => {
            return Err(Failure::input_message("machine code is a device's: name one with --device"));
        }
        Emit::Isa => {}
    }
    let mut loaded = one(&arguments.test)?;
    let variant = arguments.variant.as_deref().unwrap_or(&loaded.source.variant);
    let variant: Variant = variant.parse().map_err(Failure::input_error)?;
    loaded.test = for_device(&loaded.test).map_err(|error| {
        let (file, line) = (&loaded.source.file, error.span().line);
        Failure::input_message(format!("{file}:{line}: no kernel: {error}"))
    })?;
    let meant = match &arguments.device {
        Some(device) if arguments.emit == Emit::Isa || device != SimDevice::NAME => {
            Meant::of(targets::targets(std::slice::from_ref(device), None)?.into_iter().next())?
        }
        Some(_) => Meant::simulated()?,
        None => Meant::of(None)?,
    };
    let Meant { target, config, .. } = meant;
    let program = shaders::program(&loaded.test, &variant.kernel_config(config), variant.pipelines)
        .map_err(|error| Failure::input_message(format!("{}: no kernel: {error}", loaded.source.file)))?;
    let kernels = match target.filter(|_| arguments.emit == Emit::Isa) {
        Some(target) => machine_code(&target, &program)?,
        None => {
            let kernels = program.kernels().map(|kernel| bytes(&kernel.words, arguments.emit));
            kernels.collect::<Result<Vec<_>, Failure>>()?
        }
    };
    match &arguments.out {
        Some(path) => {
            for (number, bytes) in kernels.iter().enumerate() {
                let path = numbered(path, number);
                write_file(&path, bytes)?;
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

/// What kernels are made for.
pub struct Meant {
    /// The device, where it has a compiler.
    pub target: Option<Target>,
    /// Sizes and features.
    pub config: KernelConfig,
    /// How tests are spread there.
    pub stress: Stress,
}

impl Meant {
    /// A device, or none in particular.
    ///
    /// # Errors
    /// None for the presets that are shipped.
    pub fn of(target: Option<Target>) -> Result<Meant, Failure> {
        let listed = target.as_ref().map(|target| target.listed.clone());
        Meant::made_for(target, listed.as_ref())
    }

    /// The simulated GPU.
    ///
    /// # Errors
    /// None for the presets that are shipped.
    pub fn simulated() -> Result<Meant, Failure> {
        Meant::made_for(None, Some(&probe::simulated(0, Fault::None)))
    }

    fn made_for(target: Option<Target>, listed: Option<&Listed>) -> Result<Meant, Failure> {
        let stress = match listed {
            Some(listed) => Stress::for_device(&listed.identity, &listed.capabilities),
            None => Stress::preset(ANY_DEVICE),
        };
        let stress = stress.map_err(Failure::environment_error)?;
        let config = listed.map_or(KernelConfig::PLAIN, |listed| stress.kernel_config(&listed.capabilities));
        // Who reads a kernel wants the test, not what keeps memory busy beside it.
        Ok(Meant { target, config: KernelConfig { stressed: false, ..config }, stress })
    }
}

/// The stress of a device that is not known.
const ANY_DEVICE: &str = "gpu";

/// What a device's compiler makes of the kernels, as it prints it.
fn machine_code(target: &Target, program: &shaders::Program) -> Result<Vec<Vec<u8>>, Failure> {
    let asking = Asking { forms: false, patience: PATIENCE, misbehave: None };
    let kernels: Vec<KernelToCompile> = program.kernels().map(KernelToCompile::from).collect();
    let made = asking.compile(&engine::program()?, target, &kernels);
    made.into_iter()
        .map(|made| match made {
            Made::Compiled(compiled) => Ok(compiled.assembly().as_bytes().to_vec()),
            Made::Lacks(what) => Err(Failure::environment_message(format!("{} lacks {what}", target.name))),
            Made::Crashed(how) => Err(Failure::environment_message(format!("{}: {how}", target.name))),
        })
        .collect()
}

/// How long a compiler may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// The words of a kernel, as they are or as text.
pub fn bytes(words: &[u32], emit: Emit) -> Result<Vec<u8>, Failure> {
    if emit != Emit::Spvasm {
        return Ok(words.iter().flat_map(|word| word.to_le_bytes()).collect());
    }
    let mut text = shaders::disassemble(words).map_err(Failure::environment_error)?;
    text.push('\n');
    Ok(text.into_bytes())
}

/// Where a kernel is written: `k.spv`, then `k.1.spv` and so on.
pub fn numbered(path: &Path, number: usize) -> PathBuf {
    if number == 0 {
        return path.to_owned();
    }
    match path.extension() {
        Some(extension) => path.with_extension(format!("{number}.{}", extension.to_string_lossy())),
        None => path.with_extension(number.to_string()),
    }
}
