//! `bench`: rates of a device, scaling with the number of instances, stress environments, or time to find
//! faults.

use std::path::Path;

use campaign::faults::{self, matrix};
use campaign::measure::bench::run_bench as measured;
use campaign::measure::environments::{EnvironmentOptions, compare_environments};
use campaign::measure::growth::measure_growth;
use campaign::targets;
use results::power::PowerMatrix;
use results::wire::FaultSearchSummary;
use results::write;

use crate::arguments::{Bench, ListFormat};
use crate::exit::{Failure, Outcome};
use crate::output::{
    StandardOutput, message_printer, print_as, print_json, print_message, print_text, write_file,
};

/// Runs the command.
///
/// # Errors
/// Returns an error if the device does not exist or the measured test does not run on it.
pub fn bench(arguments: &Bench, quiet: bool) -> Result<Outcome, Failure> {
    if arguments.faults {
        return match &arguments.matrix {
            Some(path) => write_matrix(path),
            None => search_faults(arguments.format),
        };
    }
    let target = targets::select_one(arguments.device.as_deref(), &print_message)?;
    if !arguments.stress.is_empty() || !arguments.tests.is_empty() || arguments.suite.is_some() {
        let request = EnvironmentOptions {
            stresses: &arguments.stress,
            tests: &arguments.tests,
            suite: arguments.suite.as_deref(),
            time: arguments.time,
            seed: arguments.seed,
        };
        let record = compare_environments(target, &request, &print_message, &message_printer(quiet))?;
        let printed = print_as(arguments.format, &record, write::bench::format_environments)?;
        return Ok(note_not_executed(printed, record.not_executed()));
    }
    match arguments.growth {
        Some(max_instances) => {
            let record = measure_growth(&target, max_instances)?;
            let printed = print_as(arguments.format, &record, write::bench::format_growth)?;
            Ok(note_not_executed(printed, record.not_executed()))
        }
        None => {
            let report = measured(&target, arguments.scale, &message_printer(quiet))?;
            let printed = print_as(arguments.format, &report, write::bench::format_rates)?;
            Ok(note_not_executed(printed, report.not_executed()))
        }
    }
}

/// Returns the outcome of a measurement; a device that left instances out is a failure of the environment.
fn note_not_executed(mut outcome: Outcome, not_executed: u64) -> Outcome {
    if not_executed > 0 {
        outcome.escalate_to(Outcome::Environment);
    }
    outcome
}

/// Runs `--faults`.
fn search_faults(format: ListFormat) -> Result<Outcome, Failure> {
    let mut data = StandardOutput::new();
    let record = faults::search_faults(&mut |fault: &FaultSearchSummary| match format {
        ListFormat::Text => data.print(&write::bench::format_fault(fault)),
        ListFormat::Json => Ok(()),
    })?;
    if format == ListFormat::Json {
        print_json(&record)?;
    } else {
        data.print(&write::bench::format_fault_totals(&record))?;
        record.false_alarms.iter().for_each(|alarm| print_message(alarm));
    }
    let is_sound = record.missed.is_empty() && record.false_alarms.is_empty();
    Ok(if is_sound { Outcome::Success } else { Outcome::RuleBroken })
}

/// Runs `--faults --matrix`; results in the file for unchanged tests and faults are reused.
fn write_matrix(path: &Path) -> Result<Outcome, Failure> {
    let old = match std::fs::read_to_string(path) {
        Ok(text) => serde_json::from_str(&text).map_err(Failure::input_error)?,
        Err(_) => PowerMatrix::default(),
    };
    let (matrix, new) = matrix::update_matrix(&old, &print_message)?;
    let text = serde_json::to_string_pretty(&matrix).map_err(Failure::environment_error)?;
    write_file(path, (text + "\n").as_bytes())?;
    let found_count = matrix.faults.iter().filter(|fault| !fault.found_by.is_empty()).count();
    let visible = matrix.faults.iter().filter(|fault| fault.is_visible()).count();
    print_text(&format!(
        "{} tests, {new} of them new, find {found_count} of {visible} faults within {} instances of a test\n",
        matrix.tests.len(),
        matrix.steps.last().copied().unwrap_or(0)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unexecuted_instances_are_an_environment_failure() {
        assert_eq!(note_not_executed(Outcome::Success, 0), Outcome::Success);
        assert_eq!(note_not_executed(Outcome::Success, 1), Outcome::Environment);
    }
}
