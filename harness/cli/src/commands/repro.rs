//! `repro`: writes a self-contained folder that reproduces the result of a test.

use campaign::rejudge::OtherVersionPolicy;
use campaign::repro::{self, create_amber_script, create_bundle as bundle};

use crate::arguments::{Repro, ReproFormat};
use crate::commands::report::read_all;
use crate::exit::{Failure, Outcome};
use crate::output::{check_empty_folder, create_folder, message_printer, write_file};

/// Runs the command.
///
/// # Errors
/// Returns an error if the test cannot be read or compiled, the results lack it, or the folder cannot be
/// written.
pub fn repro(arguments: &Repro, quiet: bool) -> Result<Outcome, Failure> {
    let mut outcome = Outcome::Success;
    let results = match &arguments.results {
        Some(path) => Some(read_all(std::slice::from_ref(path), OtherVersionPolicy::Dropped, &mut outcome)?),
        None => None,
    };
    let request = repro::ReproOptions {
        test: arguments.test.as_deref(),
        results: results.as_deref(),
        device: arguments.device.as_deref(),
        model: arguments.model.as_deref(),
        mesa: arguments.mesa.as_deref(),
        timeout: arguments.timeout,
    };
    if arguments.format == ReproFormat::Amber {
        let script = create_amber_script(&request, results.as_deref())?;
        return write_file(&arguments.out, script.as_bytes()).map(|()| outcome);
    }
    check_empty_folder(&arguments.out)?;
    let bundle = bundle(&request)?;
    create_folder(&arguments.out)?;
    for file in &bundle.files {
        write_file(&arguments.out.join(&file.name), &file.bytes)?;
    }
    let note = message_printer(quiet);
    bundle.missing.iter().for_each(|missing| note(missing));
    note(&format!("{} files in {}", bundle.files.len(), arguments.out.display()));
    Ok(outcome)
}
