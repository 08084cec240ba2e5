//! `check --certify` and `check --verify`: certificates of answers, and their verification.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use campaign::certificates::{
    Certification, VerificationError, VerifiedModels, certify_source, verify_certificate,
};
use campaign::check::CheckModels;
use campaign::inputs;
use campaign::parallel::process_in_order;
use campaign::shader::source::is_shader;
use campaign::source::TestSource;

use crate::arguments::Check;
use crate::exit::{Failure, Outcome};
use crate::output::{StandardOutput, create_folder, print_message, report_rejected, write_file};

/// The largest certificate that is read.
const MAX_BYTES: u64 = 1 << 30;

/// The reason why a file has no verified certificate.
enum Unverified {
    /// The file cannot be read, or is not a certificate.
    Unreadable(Failure),
    /// A check of the certificate failed; the text names it.
    Rejected(String),
    /// The time limit ended the verification.
    NotVerified(String),
}

impl From<Failure> for Unverified {
    fn from(failure: Failure) -> Unverified {
        Unverified::Unreadable(failure)
    }
}

/// Writes a certificate for each test.
///
/// # Errors
/// If the tests cannot be found or a file cannot be written.
pub fn certify(arguments: &Check, folder: &Path) -> Result<Outcome, Failure> {
    if arguments.tests.iter().any(|argument| is_shader(argument)) {
        return Err(Failure::input_message(
            "--certify is for litmus tests; `race` and `check` answer for shaders",
        ));
    }
    let mut sources =
        inputs::collect(&arguments.tests, arguments.suite.as_deref(), None, || Ok(inputs::embedded_tests()))?;
    let models = CheckModels::load(arguments.model.as_deref())?;
    if let Some(named) = models.requested.as_ref().filter(|_| arguments.tests.is_empty()) {
        sources.retain(|source| source.is_judged_by(&named.model));
    }
    create_folder(folder)?;
    let mut names = BTreeSet::new();
    let with_path = |source: TestSource| {
        let path = folder.join(file_name(&source.id, &mut names));
        (source, path)
    };
    let named: Vec<(TestSource, PathBuf)> = sources.into_iter().map(with_path).collect();
    let work = |(source, path): &(TestSource, PathBuf)| {
        let made = certify_source(source.clone(), &models, arguments.timeout, arguments.unroll);
        (source.id.clone(), path.clone(), made)
    };
    let (mut outcome, mut data) = (Outcome::Success, StandardOutput::new());
    let (mut certified, mut bytes, mut steps, mut structures) = (0_usize, 0_usize, 0_usize, 0_usize);
    process_in_order(&named, work, |(id, path, made)| {
        match made {
            Certification::Certified(text, verified) => {
                write_file(&path, text.as_bytes())?;
                certified += 1;
                bytes += text.len();
                steps += verified.steps;
                structures += verified.structures;
            }
            Certification::NotCertified(reason) => {
                outcome.escalate_to(Outcome::Environment);
                data.print(&format!("{id}: not certified: {reason}\n"))?;
            }
            Certification::Rejected(rejected) => report_rejected(&mut outcome, &rejected.failure),
        }
        Ok::<(), Failure>(())
    })?;
    let all = named.len();
    data.print(&format!(
        "{certified} of {all} tests certified: {structures} event structures, {steps} steps, {bytes} bytes\n"
    ))?;
    if certified < all {
        print_message("some answers have no certificate; a longer --timeout may help");
    }
    Ok(outcome)
}

/// A file name for a test: letters, digits, and `-`, `_`, `+`, `@`, `.`; unique among the names.
fn file_name(id: &str, names: &mut BTreeSet<String>) -> String {
    let is_safe = |c: &char| c.is_ascii_alphanumeric() || "-_+@.".contains(*c);
    let safe: String = id.chars().map(|c| if is_safe(&c) { c } else { '_' }).collect();
    let safe = safe.trim_start_matches('.').to_owned();
    let unique = (1..).map(|number| match number {
        1 => format!("{safe}.json"),
        number => format!("{safe}-{number}.json"),
    });
    let name = unique.into_iter().find(|name| !names.contains(name)).unwrap_or_default();
    names.insert(name.clone());
    name
}

/// Verifies a certificate, or all of a folder.
///
/// # Errors
/// If the folder has no file or cannot be read. A file that is not a certificate is reported, and the other
/// files are still verified.
pub fn verify(path: &Path, timeout: Duration) -> Result<Outcome, Failure> {
    let of_file = |path: &Path, error: std::io::Error| Failure::file_error(path, error);
    let mut files = vec![path.to_owned()];
    if path.is_dir() {
        let entries = std::fs::read_dir(path).map_err(|error| of_file(path, error))?;
        files = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        files.retain(|file| file.extension().is_some_and(|extension| extension == "json"));
        files.sort();
    }
    if files.is_empty() {
        let text = format!("{}: no certificates; `check --certify` writes them", path.display());
        return Err(Failure::input_message(text));
    }
    let models = VerifiedModels::default();
    let work = |file: &PathBuf| -> Result<(), Unverified> {
        let size = std::fs::metadata(file).map_err(|error| of_file(file, error))?.len();
        if size > MAX_BYTES {
            let text = format!("{}: larger than {MAX_BYTES} bytes", file.display());
            return Err(Failure::input_message(text).into());
        }
        let text = std::fs::read_to_string(file).map_err(|error| of_file(file, error))?;
        match verify_certificate(&text, &models, timeout) {
            Ok(_) => Ok(()),
            Err(error @ VerificationError::Format(_)) => {
                let text = format!("{}: {error}; `check --certify` writes them", file.display());
                Err(Failure::input_message(text).into())
            }
            Err(error) if error.is_time_limit() => Err(Unverified::NotVerified(error.to_string())),
            Err(error) => Err(Unverified::Rejected(error.to_string())),
        }
    };
    let (mut outcome, mut data, mut verified) = (Outcome::Success, StandardOutput::new(), 0_usize);
    let mut all = files.iter();
    process_in_order(&files, work, |result| {
        let file = all.next().map_or(path, PathBuf::as_path);
        match result {
            Ok(()) => verified += 1,
            Err(Unverified::Unreadable(failure)) => report_rejected(&mut outcome, &failure),
            Err(Unverified::Rejected(reason)) => {
                outcome.escalate_to(Outcome::RuleBroken);
                data.print(&format!("{}: rejected: {reason}\n", file.display()))?;
            }
            Err(Unverified::NotVerified(reason)) => {
                outcome.escalate_to(Outcome::Environment);
                data.print(&format!("{}: not verified: {reason}\n", file.display()))?;
            }
        }
        Ok::<(), Failure>(())
    })?;
    data.print(&format!("{verified} of {} certificates verified\n", files.len()))?;
    if outcome == Outcome::Environment {
        print_message("some certificates were not verified; a longer --timeout may help");
    }
    Ok(outcome)
}
