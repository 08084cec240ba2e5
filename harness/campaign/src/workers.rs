//! Builds the commands of all worker processes, and reads the output of workers with a single answer.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use device::{DriverEnvironment, Mesa};
use runner::pool::WorkerMark;

use crate::Failure;

/// Separates an answer from the output of drivers before it.
pub const SEPARATOR: char = '\u{1e}';

#[derive(Clone, Debug)]
pub enum WorkerEnvironment {
    /// A process with these drivers.
    Drivers(DriverEnvironment),
    /// A process whose only Vulkan device is a compile-only one.
    CompileOnly {
        mesa: Mesa,
        /// The family, as its command line takes it.
        family: String,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub enum WorkerTask {
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
    Classic { selector: String, seconds: f64 },
}

impl WorkerTask {
    /// Returns the arguments after `worker`.
    fn to_arguments(&self) -> Vec<String> {
        let words: &[&str] = match self {
            WorkerTask::List => &["--list"],
            WorkerTask::Run { validate: false } => &[],
            WorkerTask::Run { validate: true } => &["--validate"],
            WorkerTask::Progress { validate: false } => &["--progress"],
            WorkerTask::Progress { validate: true } => &["--progress", "--validate"],
            WorkerTask::Shader { validate: false } => &["--shader"],
            WorkerTask::Shader { validate: true } => &["--shader", "--validate"],
            WorkerTask::Compile => &["--compile"],
            WorkerTask::Classic { selector, seconds } => {
                return ["--classic", selector, "--seconds", &seconds.to_string()].map(str::to_owned).into();
            }
        };
        words.iter().map(|word| (*word).to_owned()).collect()
    }
}

impl WorkerEnvironment {
    /// Returns the command of a worker. It leads its own process group, so that Ctrl-C reaches only the
    /// parent, which ends its workers.
    pub fn command(&self, program: &Path, task: &WorkerTask) -> Command {
        let mut command = match self {
            WorkerEnvironment::Drivers(environment) => {
                let mut command = Command::new(program);
                command.envs(environment.loader_variables());
                command
            }
            WorkerEnvironment::CompileOnly { mesa, family } => mesa.worker_command(program, family),
        };
        command.arg("worker").args(task.to_arguments());
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        command
    }
}

/// The program of workers, if it is not this executable.
static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// Sets the program of workers for processes of the library; only the first call has an effect.
pub fn set_program(path: PathBuf) {
    // A later path is that of the same program.
    let _ = PROGRAM.set(path);
}

/// Returns the path of the program of workers: by default this executable.
///
/// # Errors
/// If it is unknown.
pub fn program_path() -> Result<PathBuf, Failure> {
    if let Some(path) = PROGRAM.get() {
        return Ok(path.clone());
    }
    std::env::current_exe().map_err(Failure::environment_error)
}

/// The interval for checking whether a worker has exited while another process keeps its output open.
const EXIT_CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// The output of a worker with a single answer.
#[derive(Debug)]
pub enum WorkerOutput {
    /// The worker was killed after its time limit.
    TimedOut,
    /// The text after the last [`SEPARATOR`], if any, and the exit status.
    Ended(Option<String>, ExitStatus),
}

/// Runs a worker with a single answer to its end.
///
/// # Errors
/// If it cannot be started.
pub fn run_single_answer_worker(
    process: &WorkerEnvironment,
    task: &WorkerTask,
    timeout: Duration,
) -> Result<WorkerOutput, Failure> {
    let mut command = process.command(&program_path()?, task);
    let mark = WorkerMark::add_to(&mut command);
    let mut child = command
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
    let deadline = Instant::now() + timeout;
    let mut has_exited = false;
    let bytes = loop {
        let remaining = deadline.saturating_duration_since(Instant::now());
        match receiver.recv_timeout(remaining.min(EXIT_CHECK_INTERVAL)) {
            Ok(bytes) => break bytes,
            Err(_) if remaining.is_zero() => {
                let _ = child.kill();
                let _ = child.wait();
                mark.kill_remaining(&child);
                return Ok(WorkerOutput::TimedOut);
            }
            // A process that a driver forked may keep the output open.
            Err(_) if !has_exited => {
                has_exited = child.try_wait().map_err(Failure::environment_error)?.is_some();
                if has_exited {
                    mark.kill_remaining(&child);
                }
            }
            Err(_) => {}
        }
    };
    let status = child.wait().map_err(Failure::environment_error)?;
    if !has_exited {
        mark.kill_remaining(&child);
    }
    let text = String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned();
    let answer = text.rsplit_once(SEPARATOR).map(|(_, line)| line.trim_end().to_owned());
    Ok(WorkerOutput::Ended(answer, status))
}
