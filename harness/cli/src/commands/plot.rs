//! `plot`: histograms of tests as a picture, with their numbers.

use std::path::{Path, PathBuf};

use campaign::rejudge::OtherVersionPolicy;
use campaign::run_log::DEFAULT_OUTPUT_FOLDER;
use results::report::{Report, TestRow};
use results::write::histograms::{draw_histograms, histogram_csv};

use super::report::read_all;
use crate::arguments::Plot;
use crate::exit::{Failure, Outcome};
use crate::output::{StandardOutput, print_message, write_file};

/// Runs the command.
///
/// # Errors
/// Returns an error if an input is not a result, no test has outcomes, or the picture cannot be written.
pub fn plot(arguments: &Plot, quiet: bool) -> Result<Outcome, Failure> {
    let mut outcome = Outcome::Success;
    let paths = match arguments.results.as_slice() {
        [] => vec![newest_results()?],
        named => named.to_vec(),
    };
    let report = Report::new(&read_all(&paths, OtherVersionPolicy::Dropped, &mut outcome)?);
    let pattern = litmus::suite::glob_set([arguments.test.as_str()]).map_err(Failure::input_error)?;
    let rows: Vec<&TestRow> =
        report.tests.iter().filter(|row| row.id == arguments.test || pattern.is_match(&row.id)).collect();
    let Some(picture) = draw_histograms(&report, &rows, arguments.size, arguments.theme) else {
        return Err(Failure::input_message(format!(
            "no outcomes of `{}` in these results: `vk-litmus run {} --out DIR` runs it",
            arguments.test, arguments.test
        )));
    };
    let name = arguments.test.replace(|c: char| !c.is_ascii_alphanumeric() && !"+-_.".contains(c), "-");
    let out = arguments.out.clone().unwrap_or_else(|| format!("{name}.svg").into());
    if out.as_os_str() == "-" {
        return StandardOutput::new().print(&picture).map(|()| outcome);
    }
    write_file(&out, picture.as_bytes())?;
    let numbers = out.with_extension("csv");
    write_file(&numbers, histogram_csv(&report, &rows).as_bytes())?;
    if !quiet {
        print_message(&format!("picture in {}, numbers in {}", out.display(), numbers.display()));
    }
    Ok(outcome)
}

/// Returns the newest results folder of runs without `--out`. Their names are the times.
fn newest_results() -> Result<PathBuf, Failure> {
    let folders = std::fs::read_dir(Path::new(DEFAULT_OUTPUT_FOLDER)).into_iter().flatten().flatten();
    folders.map(|entry| entry.path()).max().ok_or_else(|| {
        Failure::input_message(format!(
            "no results in {DEFAULT_OUTPUT_FOLDER}: name a results folder after the test"
        ))
    })
}
