//! Worker processes: the one place that builds their commands, and reads what those say that answer once.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use device::{DriverEnvironment, Mesa};
use runner::pool;

use crate::Failure;

/// Begins the line of an answer, so that whatever a driver prints is told apart.
pub const SEPARATOR: char = '\u{1e}';

/// What a device lives in.
#[derive(Clone, Debug)]
pub enum Process {
    /// A process with these drivers.
    Drivers(DriverEnvironment),
    /// A process whose only Vulkan device is a compile-only one.
    CompileOnly {
        /// The Mesa that makes it.
        mesa: Mesa,
        /// The family, as its command takes it.
        family: String,
    },
}

/// What a worker is to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Task {
    /// Tell its devices, and end.
    List,
    /// Jobs of litmus tests.
    Run {
        /// With the validation layers.
        validate: bool,
    },
    /// Jobs of forward progress.
    Progress {
        /// With the validation layers.
        validate: bool,
    },
    /// Jobs of users' shaders.
    Shader {
        /// With the validation layers.
        validate: bool,
    },
    /// Jobs for a compiler.
    Compile,
    /// The classic scheme on a device, once.
    Classic {
        /// Selector of the device.
        selector: String,
        /// For so long.
        seconds: f64,
    },
}

impl Task {
    /// The words of the command line behind `worker`.
    fn words(&self) -> Vec<String> {
        let words: &[&str] = match self {
            Task::List => &["--list"],
            Task::Run { validate: false } => &[],
            Task::Run { validate: true } => &["--validate"],
            Task::Progress { validate: false } => &["--progress"],
            Task::Progress { validate: true } => &["--progress", "--validate"],
            Task::Shader { validate: false } => &["--shader"],
            Task::Shader { validate: true } => &["--shader", "--validate"],
            Task::Compile => &["--compile"],
            Task::Classic { selector, seconds } => {
                return ["--classic", selector, "--seconds", &seconds.to_string()].map(str::to_owned).into();
            }
        };
        words.iter().map(|word| (*word).to_owned()).collect()
    }
}

impl Process {
    /// The command of a worker. It leads a process group of its own: an interrupt from the keyboard is for the parent, which
    /// ends its workers itself.
    pub fn command(&self, program: &Path, task: &Task) -> Command {
        let mut command = match self {
            Process::Drivers(environment) => {
                let mut command = Command::new(program);
                command.envs(environment.variables());
                command
            }
            Process::CompileOnly { mesa, family } => mesa.command(program, family),
        };
        command.arg("worker").args(task.words());
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        command
    }
}

/// This program's file, which workers are started from.
///
/// # Errors
/// When it is not known.
pub fn program() -> Result<PathBuf, Failure> {
    std::env::current_exe().map_err(Failure::environment_error)
}

/// How often it is looked whether a worker has ended whose output somebody else holds open.
const LOOK: Duration = Duration::from_millis(100);

/// What a worker said that answers once.
#[derive(Debug)]
pub enum Said {
    /// Nothing within the time that it had: it was ended.
    Nothing,
    /// What stood behind its last [`SEPARATOR`], where there was one; and how it ended.
    Ended(Option<String>, ExitStatus),
}

/// Starts a worker that answers once, and waits for its end.
///
/// # Errors
/// When it cannot be started.
pub fn ask(process: &Process, task: &Task, patience: Duration) -> Result<Said, Failure> {
    let mut child = process
        .command(&program()?, task)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(Failure::environment_error)?;
    let (sender, receiver) = channel();
    let stdout = child.stdout.take();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = stdout.map(|mut stdout| stdout.read_to_end(&mut bytes));
        // Whoever waited may have given up.
        let _ = sender.send(read.map(|_| bytes));
    });
    let deadline = Instant::now() + patience;
    let mut ended = false;
    let bytes = loop {
        let left = deadline.saturating_duration_since(Instant::now());
        match receiver.recv_timeout(left.min(LOOK)) {
            Ok(bytes) => break bytes,
            Err(_) if left.is_zero() => {
                let _ = child.kill();
                let _ = child.wait();
                pool::end_group(&child);
                return Ok(Said::Nothing);
            }
            // What a driver forked has the output open too, and does not end by itself.
            Err(_) if !ended => {
                ended = child.try_wait().map_err(Failure::environment_error)?.is_some();
                if ended {
                    pool::end_group(&child);
                }
            }
            Err(_) => {}
        }
    };
    let status = child.wait().map_err(Failure::environment_error)?;
    if !ended {
        pool::end_group(&child);
    }
    let text = String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned();
    let answer = text.rsplit_once(SEPARATOR).map(|(_, line)| line.trim_end().to_owned());
    Ok(Said::Ended(answer, status))
}
