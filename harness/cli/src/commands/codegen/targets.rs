//! The devices whose compilers are asked: those of this machine, and compile-only ones.

use std::path::Path;
use std::process::Command;

use device::{DriverEnvironment, Generation, Listed};

use crate::arguments::Codegen;
use crate::exit::Failure;
use crate::probe::{self, CompileOnly, Meant};

/// A device whose compiler is asked.
#[derive(Clone, Debug)]
pub struct Target {
    /// Its name in reports; unique among the targets.
    pub name: String,
    /// The selector that its worker takes.
    pub selector: String,
    /// The device.
    pub listed: Listed,
    /// Its generation, where it is AMD's.
    pub generation: Option<Generation>,
    process: Process,
}

/// What its worker is started as.
#[derive(Clone, Debug)]
enum Process {
    Drivers(DriverEnvironment),
    CompileOnly(Box<CompileOnly>),
}

impl Target {
    /// The command of a worker, which leads a process group of its own.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = match &self.process {
            Process::Drivers(environment) => {
                let mut command = Command::new(program);
                command.envs(environment.variables());
                command
            }
            Process::CompileOnly(device) => device.command(program),
        };
        command.args(["worker", "--compile"]);
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        command
    }
}

/// The devices that are asked for.
///
/// # Errors
/// When one is not there, or is the simulated GPU, which has no compiler.
pub fn targets(arguments: &Codegen) -> Result<Vec<Target>, Failure> {
    let meant = probe::selectors(&arguments.device)?;
    let environment = probe::environment(&meant)?;
    let listed = if meant.iter().any(|meant| matches!(meant, Meant::Listed(_))) {
        probe::list(&environment, &meant)?.0
    } else {
        Vec::new()
    };
    let mesas = if meant.iter().any(|meant| matches!(meant, Meant::CompileOnly { .. })) {
        probe::mesas(arguments.mesa.as_deref())?
    } else {
        Vec::new()
    };
    let mut found: Vec<Target> = Vec::new();
    for meant in &meant {
        match meant {
            Meant::Sim => {
                return Err(Failure::input_message(
                    "the simulated GPU executes SPIR-V: it has no machine code",
                ));
            }
            Meant::Listed(_) => {
                let device = meant.choose(&listed).map_err(Failure::environment_error)?;
                add(
                    &mut found,
                    Target {
                        name: device.identity.name.clone(),
                        selector: probe::exact_selector(device, &listed),
                        generation: device::generation_of(&device.identity.device_name),
                        listed: device.clone(),
                        process: Process::Drivers(environment.clone()),
                    },
                );
            }
            Meant::CompileOnly { family, version } => {
                for device in probe::choose_compile_only(family, version.as_deref(), &mesas)? {
                    add(
                        &mut found,
                        Target {
                            name: format!("{}@{}", device.listed.identity.name, device.version()),
                            selector: device.listed.identity.name.clone(),
                            generation: device::generation_of(&device.listed.identity.device_name),
                            listed: device.listed.clone(),
                            process: Process::CompileOnly(Box::new(device)),
                        },
                    );
                }
            }
        }
    }
    Ok(found)
}

fn add(found: &mut Vec<Target>, target: Target) {
    if !found.iter().any(|known| known.name == target.name) {
        found.push(target);
    }
}
