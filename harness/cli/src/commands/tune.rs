//! `tune`: searches for the stress with the most weak outcomes on a device, and writes it as a preset.

use std::path::PathBuf;

use campaign::measure::tune::{TuneOptions, tune as look};
use campaign::targets;
use rand::Rng;

use crate::arguments::Tune;
use crate::exit::{Failure, Outcome};
use crate::output::{message_printer, print_message, print_text, write_file};

/// Runs the command.
///
/// # Errors
/// Returns an error if a test or the device does not exist, the time is too short, or the preset cannot be
/// written.
pub fn tune(arguments: &Tune, quiet: bool) -> Result<Outcome, Failure> {
    let is_preset = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "toml");
    if let Some(out) = arguments.out.as_ref().filter(|out| !is_preset(out)) {
        return Err(Failure::input_message(format!("{}: a preset is a .toml file", out.display())));
    }
    let target = targets::select_one(arguments.device.as_deref(), &print_message)?;
    let request = TuneOptions {
        tests: &arguments.tests,
        suite: arguments.suite.as_deref(),
        initial_stresses: &arguments.from,
        time: arguments.time,
        seed: arguments.seed.unwrap_or_else(|| rand::rng().next_u32().into()),
    };
    let found = look(target, &request, &print_message, &message_printer(quiet))?;
    match &arguments.out {
        Some(out) => {
            write_file(out, found.preset.as_bytes())?;
            print_text(&format!("{}: {}", out.display(), found.summary))
        }
        None => {
            print_message(found.summary.trim_end());
            print_text(&found.preset)
        }
    }
}
