//! `merge`: combines the results of all shards of a run.

use std::path::PathBuf;

use campaign::rejudge::OtherVersionPolicy;
use results::merge::{MergeError, merge_into};
use results::write::number;

use crate::arguments::Merge;
use crate::commands::report::read_recomputed;
use crate::commands::run::COMMAND_FILE;
use crate::exit::{Failure, Outcome};
use crate::output::{print_message, write_file};

/// Runs the command.
///
/// # Errors
/// Returns an error if the folders are not the shards of one run, or the result cannot be written.
pub fn merge(arguments: &Merge, quiet: bool) -> Result<Outcome, Failure> {
    let mut outcome = Outcome::Success;
    let parts = arguments
        .results
        .iter()
        .map(|path| read_recomputed(path, OtherVersionPolicy::Dropped, &mut outcome))
        .collect::<Result<Vec<_>, Failure>>()?;
    let (plan, lines) = merge_into(&parts, &arguments.out).map_err(merge_failure)?;
    let out = arguments.out.display();
    // The shards share one command line except for `--shard`, which a resumed run reads from the plan.
    let mut commands = arguments.results.iter().map(|path| path.join(COMMAND_FILE));
    let command: Option<PathBuf> = commands.find(|path| path.is_file());
    if let Some(command) = &command {
        let words = std::fs::read(command).map_err(|error| Failure::file_error(command, error))?;
        write_file(&arguments.out.join(COMMAND_FILE), &words)?;
    }
    let missing = plan.tests.len() * plan.devices.len() - lines.len();
    if missing > 0 {
        let how = match command {
            Some(_) => format!("`vk-litmus run --resume {out}` runs them"),
            None => {
                format!("repeat the command of the shards with `--resume --out {out}` and without `--shard`")
            }
        };
        print_message(&format!("error: {} missing: {how}", number::plural(missing as u64, "verdict")));
        outcome.escalate_to(Outcome::Environment);
    }
    if !quiet {
        print_message(&format!("results in {out}"));
    }
    Ok(outcome)
}

fn merge_failure(error: MergeError) -> Failure {
    if error.is_input() { Failure::input_error(error) } else { Failure::environment_error(error) }
}
