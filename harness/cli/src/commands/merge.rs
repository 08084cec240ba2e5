//! `merge`: the results of all shards of a run as one.

use results::merge::{MergeError, merge_into};

use crate::arguments::Merge;
use crate::commands::report::read_failure;
use crate::exit::{Failure, Outcome};
use crate::output::say;

/// Runs the command.
///
/// # Errors
/// When the folders are not the shards of one run, or the whole cannot be written.
pub fn merge(arguments: &Merge, quiet: bool) -> Result<Outcome, Failure> {
    let parts = arguments
        .results
        .iter()
        .map(|path| results::read::results(path).map_err(read_failure))
        .collect::<Result<Vec<_>, Failure>>()?;
    let (plan, lines) = merge_into(&parts, &arguments.out).map_err(merge_failure)?;
    let mut outcome = Outcome::Success;
    let missing = plan.tests.len() * plan.devices.len() - lines.len();
    if missing > 0 {
        say(&format!("error: {missing} verdicts are missing: run --resume goes on"));
        outcome.note(Outcome::Environment);
    }
    if !quiet {
        say(&format!("results in {}", arguments.out.display()));
    }
    Ok(outcome)
}

fn merge_failure(error: MergeError) -> Failure {
    if error.is_input() { Failure::input_error(error) } else { Failure::environment_error(error) }
}
