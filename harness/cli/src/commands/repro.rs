//! `repro`: writes a self-contained folder that reproduces the result of a test.

use campaign::again::OtherVersion;
use campaign::repro::{self, repro as bundle};

use crate::arguments::Repro;
use crate::commands::report::read_all;
use crate::exit::{Failure, Outcome};
use crate::output::{expect_empty, make_folder, note, write_file};

/// Runs the command.
///
/// # Errors
/// Returns an error if the test cannot be read or compiled, the results lack it, or the folder cannot be
/// written.
pub fn repro(arguments: &Repro, quiet: bool) -> Result<Outcome, Failure> {
    let mut outcome = Outcome::Success;
    let results = match &arguments.results {
        Some(path) => Some(read_all(std::slice::from_ref(path), OtherVersion::Dropped, &mut outcome)?),
        None => None,
    };
    expect_empty(&arguments.out)?;
    let bundle = bundle(&repro::Repro {
        test: arguments.test.as_deref(),
        results: results.as_deref(),
        device: arguments.device.as_deref(),
        model: arguments.model.as_deref(),
        mesa: arguments.mesa.as_deref(),
        timeout: arguments.timeout,
    })?;
    make_folder(&arguments.out)?;
    for file in &bundle.written {
        write_file(&arguments.out.join(&file.name), &file.bytes)?;
    }
    let note = note(quiet);
    bundle.lacking.iter().for_each(|lack| note(lack));
    note(&format!("{} files in {}", bundle.written.len(), arguments.out.display()));
    Ok(outcome)
}
