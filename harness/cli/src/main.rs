//! The command line: a thin shell over the crates of the project, and the only one that prints or exits.

mod arguments;
mod campaign;
mod choice;
mod commands;
mod compiling;
mod cts;
mod exit;
mod explanation;
mod inputs;
mod measure;
mod output;
mod parallel;
mod probe;

use std::process::ExitCode;

use clap::Parser;
use tracing_subscriber::EnvFilter;

use crate::arguments::CommandLine;
use crate::exit::Outcome;

fn main() -> ExitCode {
    output::set_up_diagnostics();
    let line = match CommandLine::try_parse() {
        Ok(line) => line,
        Err(error) => {
            // Help and version go to standard output and are no failure.
            let _ = error.print();
            let outcome = if error.use_stderr() { Outcome::Input } else { Outcome::Success };
            return outcome.into();
        }
    };
    set_up_log(line.quiet, line.verbose);
    match commands::dispatch(line.command, line.quiet) {
        Ok(outcome) => outcome.into(),
        Err(failure) => {
            output::complain(failure.report());
            failure.outcome().into()
        }
    }
}

fn set_up_log(quiet: bool, verbose: u8) {
    let level = match (quiet, verbose) {
        (true, _) => "error",
        (false, 0) => "warn",
        (false, 1) => "info",
        (false, _) => "debug",
    };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level));
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(false).init();
}
