//! `record`: runs a program with the recording layer, and judges its dispatches and the order between its commands.

mod answers;
mod barrier_code;
mod draws;
mod fix_code;
mod hazard_lines;
mod inventory;
mod judge;
mod transfer_code;

use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use ::record::journal::Event;
use ::record::layer::{self, RecordLimits};

use campaign::temporary::TemporaryFolder;

use crate::arguments::{FailureKind, RaceFormat, Record};
use crate::exit::{Failure, Outcome};
use crate::interrupt::{end_on_signals, interrupt_flag};
use crate::output::{check_empty_folder, create_folder, message_printer, write_file};

pub use answers::JudgeOptions;
pub use judge::judge_recording;

/// The file of a recording that names its contents.
pub const RECORDING_FILE: &str = "recording.json";
/// Limit on the time of a program to end after a signal.
const TIME_TO_END: Duration = Duration::from_secs(5);
/// Time between two looks at a running program.
const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// The folder of a recording with the journal of each process.
pub const PROCESS_FOLDER: &str = "processes";

/// Runs the command.
///
/// # Errors
/// If the program cannot be started, used no Vulkan instance of the loader, or the recording cannot be written.
pub fn record(arguments: &Record, quiet: bool) -> Result<Outcome, Failure> {
    if !layer::is_available() {
        return Err(Failure::environment_message(
            "this build of vk-litmus has no recording layer; it needs Linux, and a C compiler when vk-litmus is built",
        ));
    }
    let folder = arguments.out.clone().unwrap_or_else(unused_folder);
    check_empty_folder(&folder)?;
    let journals = folder.join(PROCESS_FOLDER);
    create_folder(&journals)?;
    let folder = folder.canonicalize().map_err(|error| Failure::file_error(&folder, error))?;
    // If nothing was recorded, the next attempt can use the folder.
    let remove_empty_folder = || {
        let _ = std::fs::remove_dir(folder.join(PROCESS_FOLDER)).and_then(|()| std::fs::remove_dir(&folder));
    };
    let end = run_program(arguments, &folder.join(PROCESS_FOLDER)).inspect_err(|_| remove_empty_folder())?;
    // A signal ended the program alone. A later one ends the judgement; the recording is complete without it.
    end_on_signals();
    let note = message_printer(quiet);
    note(&format!("{} ended: {}; recording in {}", arguments.program.join(" "), end.0, folder.display()));
    let processes = draws::read_processes(&folder)?;
    let is_loaded = |event: &Event| matches!(event, Event::Instance { .. });
    if !processes.iter().any(|process| process.events.iter().any(is_loaded)) {
        remove_empty_folder();
        let program = arguments.program.first().map_or("the program", String::as_str);
        return Err(Failure::environment_message(if is_32_bit(program) {
            format!(
                "nothing was recorded: {program} is a 32-bit program, and the layer of this vk-litmus has 64 bits; \
                 record a 64-bit build of it"
            )
        } else if end.1 {
            format!("nothing was recorded: {program} failed ({}) before it created a Vulkan instance", end.0)
        } else {
            format!(
                "nothing was recorded: {program} created no Vulkan instance through the loader. A program that opens \
                 its driver itself, as some do if VK_ICD_FILENAMES or VK_DRIVER_FILES is set, runs as another user or \
                 sandbox, or starts one with 32 bits, does not load the layer. VK_LOADER_DEBUG=layer prints what the loader does"
            )
        }));
    }
    let recording = inventory::write_recording(&folder, &processes, arguments.program.clone(), end)?;
    let text = results::write::json::format_document(&recording).map_err(Failure::environment_error)?;
    write_file(&folder.join(RECORDING_FILE), text.as_bytes())?;
    if arguments.no_judge {
        note(&format!("judge it with: vk-litmus race {}", folder.display()));
        let outcome = if recording.has_failed { Outcome::RuleBroken } else { Outcome::Success };
        return Ok(arguments.fail_on.outcome(FailureKind::Program, outcome));
    }
    let (format, fail_on) = (arguments.format, arguments.fail_on.clone());
    let ends = Some(Instant::now() + arguments.total_time);
    let options =
        JudgeOptions { format, fail_on, time_limit: arguments.time, ends, jobs: None, has_page: true };
    judge_recording(&folder, &options, quiet)
}

/// Returns the default folder with the first number that is free.
fn unused_folder() -> PathBuf {
    let names = std::iter::once("vk-litmus-recording".to_owned());
    let mut names = names.chain((2..).map(|number| format!("vk-litmus-recording-{number}")));
    names.find(|name| !Path::new(name).exists()).unwrap_or_default().into()
}

/// Runs the program to its end, with the layer, and returns how it ended, and true if it failed.
fn run_program(arguments: &Record, journals: &Path) -> Result<(String, bool), Failure> {
    let layer_folder = TemporaryFolder::create().map_err(Failure::environment_error)?;
    layer::install(layer_folder.path()).map_err(|error| Failure::file_error(layer_folder.path(), error))?;
    let limits = RecordLimits { cases_per_kind: arguments.keep, bytes: arguments.limit };
    let current = |name: &str| -> Option<OsString> { std::env::var_os(name) };
    let variables = layer::environment(layer_folder.path(), journals, limits, current);
    let Some((name, rest)) = arguments.program.split_first() else {
        return Err(Failure::input_message("no program; expected `vk-litmus record -- PROGRAM ARGUMENTS`"));
    };
    // A signal ends the program; what was recorded until then is judged.
    let interrupted = interrupt_flag()?;
    let mut command = Command::new(name);
    if arguments.format != RaceFormat::Text {
        // Standard output has the answers alone.
        command.stdout(std::io::stderr());
    }
    let child = command.args(rest).envs(variables).spawn();
    let mut child =
        child.map_err(|error| Failure::input_message(format!("{name} cannot be started: {error}")))?;
    let mut since = None;
    loop {
        if let Some(status) = child.try_wait().map_err(Failure::environment_error)? {
            return Ok((describe_end(status), !status.success()));
        }
        if interrupted.load(Ordering::Relaxed) {
            // A terminal signals the program, too. Ending it fails only if it has already ended.
            match since.get_or_insert_with(Instant::now).elapsed() {
                elapsed if elapsed > TIME_TO_END => _ = child.kill(),
                elapsed if elapsed > TIME_TO_END / 4 => terminate(&child),
                _ => {}
            }
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Signals the end to a program that has not received the signal of the recorder.
fn terminate(child: &Child) {
    #[cfg(unix)]
    if let Some(process) = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw) {
        let _ = rustix::process::kill_process(process, rustix::process::Signal::TERM);
    }
}

/// Returns true for an executable ELF file with the class of 32 bits, by its path or in the folders of `PATH`.
fn is_32_bit(program: &str) -> bool {
    const HEADER: [u8; 5] = [0x7f, b'E', b'L', b'F', 1];
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let found = match program.contains('/') {
        true => Some(PathBuf::from(program)),
        false => {
            std::env::split_paths(&folders).map(|folder| folder.join(program)).find(|file| file.is_file())
        }
    };
    let mut bytes = [0; HEADER.len()];
    let header = found.and_then(|file| std::fs::File::open(file).ok());
    header.is_some_and(|mut file| file.read_exact(&mut bytes).is_ok() && bytes == HEADER)
}

/// Returns `exit N` or `signal N`.
fn describe_end(status: ExitStatus) -> String {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return format!("signal {signal}");
    }
    status.code().map_or("unknown".to_owned(), |code| format!("exit {code}"))
}
