//! The command line: a thin layer over the library of this package and the other crates. Only this layer
//! prints or exits. `check`, `race` and `lint` are calls of the library; the other commands have no
//! counterpart there.

mod arguments;
mod commands;
mod completion;
mod environment;
mod exit;
mod help;
mod interrupt;
#[cfg(unix)]
mod limits;
mod output;
mod patterns;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::{FromArgMatches, Subcommand};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use crate::arguments::CommandLine;
use crate::exit::Outcome;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    #[cfg(unix)]
    if let Err(message) = limits::prepare_process() {
        output::print_message(&message);
        return exit::exit_code(Outcome::Environment).into();
    }
    completion::answer_request();
    // With a handler, a write beyond the limit of file sizes fails with an error and does not end the process.
    #[cfg(unix)]
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, std::sync::Arc::default());
    output::set_up_diagnostics();
    let matches = help::command().try_get_matches_from(with_implied_command(std::env::args_os().collect()));
    let line = match matches.and_then(|matches| CommandLine::from_arg_matches(&matches)) {
        Ok(line) => line,
        Err(error) => {
            // Help and version are printed to standard output, and exit with 0.
            output::print_command_line_error(&error);
            let outcome = if error.use_stderr() { Outcome::Input } else { Outcome::Success };
            return exit::exit_code(outcome).into();
        }
    };
    set_up_log(line.quiet, line.verbose);
    if let Some(bytes) = line.max_memory {
        runner::memory_limit::set_limit(bytes);
    }
    #[cfg(unix)]
    interrupt::remove_folders_on_signals();
    match commands::dispatch(line.command, line.quiet, line.verbose > 0) {
        Ok(outcome) => exit::exit_code(outcome).into(),
        Err(failure) => {
            output::print_diagnostic(failure.report());
            exit::exit_code(Outcome::from(&failure)).into()
        }
    }
}

/// Returns the arguments of the process, with the implied command if they name none.
///
/// A Google Test runner starts the program with only `--gtest_*` flags, which implies `run`. A litmus test implies
/// `check`, and a shader or another file `race --lint`, which refuses files that are not shaders.
fn with_implied_command(mut words: Vec<OsString>) -> Vec<OsString> {
    let is_flag = |word: &OsString, start: &str| word.to_str().is_some_and(|word| word.starts_with(start));
    let rest = words.get(1..).unwrap_or_default();
    if rest.first().is_some_and(|first| is_flag(first, "-"))
        && rest.iter().any(|word| is_flag(word, "--gtest_"))
    {
        words.insert(1, "run".into());
    }
    let is_value = |index: usize| words.get(index - 1).is_some_and(|word| word == "--max-memory");
    let first = (1..words.len()).find(|index| !is_flag(&words[*index], "-") && !is_value(*index));
    let name = first.and_then(|index| words.get(index)).and_then(|word| word.to_str()).unwrap_or_default();
    let implied: &[&str] = if arguments::Command::has_subcommand(name) {
        &[]
    } else if name.ends_with(".litmus") {
        &["check"]
    } else if campaign::shader::source::is_shader(name) || Path::new(name).is_file() {
        &["race", "--lint"]
    } else {
        &[]
    };
    words.splice(1..1, implied.iter().map(|word| (*word).into()));
    words
}

fn set_up_log(quiet: bool, verbose: u8) {
    let level = match (quiet, verbose) {
        (true, _) => "error",
        (false, 0) => "warn",
        (false, 1) => "info",
        (false, _) => "debug",
    };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level));
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(false);
    log.event_format(MessageFormat).init();
}

/// Formats events of the log as messages of the program.
struct MessageFormat;

impl<S, N> FormatEvent<S, N> for MessageFormat
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> std::fmt::Result {
        let mut text = match *event.metadata().level() {
            Level::ERROR => "error: ".to_owned(),
            Level::WARN => "warning: ".to_owned(),
            level => format!("{} {}: ", level.as_str().to_lowercase(), event.metadata().target()),
        };
        context.format_fields(Writer::new(&mut text), event)?;
        writeln!(writer, "{}", results::escape::escape_block(&text))
    }
}
