//! Builds the commands of all worker processes, and reads the output of workers with a single answer.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use device::{DriverEnvironment, Mesa};
use runner::pool;

use crate::Failure;

/// Precedes an answer, to separate it from the output of drivers.
pub const SEPARATOR: char = '\u{1e}';

/// The environment of a worker process.
#[derive(Clone, Debug)]
pub enum Process {
    /// A process with these drivers.
    Drivers(DriverEnvironment),
    /// A process whose only Vulkan device is a compile-only one.
    CompileOnly {
        /// The Mesa installation.
        mesa: Mesa,
        /// The family, as its command line takes it.
        family: String,
    },
}

/// The task of a worker.
#[derive(Clone, Debug, PartialEq)]
pub enum Task {
    /// List the devices and exit.
    List,
    /// Serve litmus jobs.
    Run {
        /// Enables the validation layers.
        validate: bool,
    },
    /// Serve forward-progress jobs.
    Progress {
        /// Enables the validation layers.
        validate: bool,
    },
    /// Serve jobs of user shaders.
    Shader {
        /// Enables the validation layers.
        validate: bool,
    },
    /// Serve compile jobs.
    Compile,
    /// Run the classic scheme once.
    Classic {
        /// The device selector.
        selector: String,
        /// The duration.
        seconds: f64,
    },
}

impl Task {
    /// Returns the arguments after `worker`.
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
    /// Returns the command of a worker. It leads its own process group, so that Ctrl-C reaches only the
    /// parent, which ends its workers.
    pub fn command(&self, program: &Path, task: &Task) -> Command {
        let mut command = match self {
            Process::Drivers(environment) => {
                let mut command = Command::new(program);
                command.envs(environment.loader_variables());
                command
            }
            Process::CompileOnly { mesa, family } => mesa.worker_command(program, family),
        };
        command.arg("worker").args(task.words());
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        command
    }
}

/// Returns the path of this executable.
///
/// # Errors
/// If it is unknown.
pub fn program() -> Result<PathBuf, Failure> {
    std::env::current_exe().map_err(Failure::environment_error)
}

/// The interval for checking whether a worker has exited while another process keeps its output open.
const LOOK: Duration = Duration::from_millis(100);

/// The output of a worker with a single answer.
#[derive(Debug)]
pub enum WorkerOutput {
    /// The worker was killed after its time limit.
    Nothing,
    /// The text after the last [`SEPARATOR`], if any, and the exit status.
    Ended(Option<String>, ExitStatus),
}

/// Runs a worker with a single answer to its end.
///
/// # Errors
/// If it cannot be started.
pub fn ask(process: &Process, task: &Task, patience: Duration) -> Result<WorkerOutput, Failure> {
    let mut child = process
        .command(&program()?, task)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| Failure::not_started(&error))?;
    let (sender, receiver) = channel();
    let stdout = child.stdout.take();
    let reader = std::thread::Builder::new().spawn(move || {
        let mut bytes = Vec::new();
        let read = stdout.map(|mut stdout| stdout.read_to_end(&mut bytes));
        // The receiver may have timed out.
        let _ = sender.send(read.map(|_| bytes));
    });
    if let Err(error) = reader {
        let _ = child.kill();
        let _ = child.wait();
        return Err(Failure::not_started(&error));
    }
    let deadline = Instant::now() + patience;
    let mut ended = false;
    let bytes = loop {
        let left = deadline.saturating_duration_since(Instant::now());
        match receiver.recv_timeout(left.min(LOOK)) {
            Ok(bytes) => break bytes,
            Err(_) if left.is_zero() => {
                let _ = child.kill();
                let _ = child.wait();
                pool::kill_process_group(&child);
                return Ok(WorkerOutput::Nothing);
            }
            // A process that a driver forked may keep the output open.
            Err(_) if !ended => {
                ended = child.try_wait().map_err(Failure::environment_error)?.is_some();
                if ended {
                    pool::kill_process_group(&child);
                }
            }
            Err(_) => {}
        }
    };
    let status = child.wait().map_err(Failure::environment_error)?;
    if !ended {
        pool::kill_process_group(&child);
    }
    let text = String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned();
    let answer = text.rsplit_once(SEPARATOR).map(|(_, line)| line.trim_end().to_owned());
    Ok(WorkerOutput::Ended(answer, status))
}
