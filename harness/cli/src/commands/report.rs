//! `report`: results of one or several devices in one report.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, Instant};

use campaign::explain_records::{self, ShippedModels};
use campaign::parallel::parallel_map;
use campaign::rejudge::{self, OtherVersionPolicy};
use explanation::Explained;
use results::escape;
use results::folder::JOURNAL;
use results::read::{self, ReadError, Results};
use results::report::{Report, TestRow, count_weak};
use results::wire::{RunLine, VerdictWord};
use results::write::html::ExplainedPicture;
use results::write::{self, ReportFormat, histograms, number, plots, site};

use crate::arguments;
use crate::exit::{Failure, Outcome};
use crate::output::{StandardOutput, create_folder, output_failure, print_message, write_file};

/// File of an HTML report without `--out`.
const DEFAULT_PAGE: &str = "report.html";
/// Largest number of explained tests on a page.
const MAX_PICTURES: usize = 150;
/// Largest total size of the diagrams, in bytes.
const MAX_PICTURE_BYTES: usize = 1_000_000;
/// Largest total size of the diagrams on a page with many verdicts, in bytes.
const MAX_PICTURE_BYTES_ON_LARGE_PAGE: usize = 300_000;
/// Number of verdicts from which a page counts as large.
const MANY_VERDICTS: usize = 3000;
/// Time limit for all diagrams.
const PICTURE_TIME: Duration = Duration::from_millis(2500);

/// Runs the command.
///
/// # Errors
/// Returns an error if an input is not a result or the report cannot be written.
pub fn report(arguments: &arguments::Report, quiet: bool) -> Result<Outcome, Failure> {
    let mut outcome = Outcome::Success;
    let extension =
        arguments.out.as_deref().and_then(Path::extension).and_then(|extension| extension.to_str());
    if let Some(extension @ ("pdf" | "png" | "svg" | "docx")) = extension {
        let problem = format!("`report` writes no .{extension}: use --format, or `plot` for pictures");
        return Err(Failure::input_message(problem));
    }
    let places = arguments.results.iter().map(|path| path.canonicalize().unwrap_or_else(|_| path.clone()));
    let mut known = BTreeSet::new();
    if let Some((twice, _)) =
        arguments.results.iter().zip(places).find(|(_, place)| !known.insert(place.clone()))
    {
        let problem = format!("{} is named twice; expected each result once", twice.display());
        return Err(Failure::input_message(problem));
    }
    let results = read_all(&arguments.results, OtherVersionPolicy::Dropped, &mut outcome)?;
    let mut report = Report::new(&results);
    for device in report.devices.iter().filter(|device| device.unfinished > 0) {
        let label = escape::escape_line(&device.label);
        let tests = number::plural(device.unfinished as u64, "test");
        print_message(&format!("error: {tests} of the plan without a verdict on {label}"));
    }
    if let Some(folder) = &arguments.plots {
        let mut plots =
            plots::draw_plots(&report, &site::device_files(&report)).map_err(Failure::environment_error)?;
        plots.extend(histograms::family_pictures(&report));
        write_files(folder, &plots)?;
        if !quiet {
            print_message(&format!("plots in {}", folder.display()));
        }
        if arguments.out.is_none() && arguments.format.is_none() {
            return Ok(outcome);
        }
    }
    if let Some(folder) = &arguments.site {
        // Baselines omit the texts of tests.
        for row in report.tests.iter_mut().filter(|row| row.text.is_empty()) {
            row.text = explain_records::recorded_test_with_filter(&row.id, &row.hash, "")
                .map_or_else(String::new, |(_, text)| text);
        }
        let pictures = explain_outcomes(&report);
        let files = site::build_files(&results, &report, &pictures).map_err(Failure::environment_error)?;
        write_site(folder, &files)?;
        if !quiet {
            print_message(&format!("site in {}", folder.join("index.html").display()));
        }
        return Ok(outcome);
    }
    let format = arguments.format.unwrap_or(ReportFormat::Html);
    let pictures = match format {
        ReportFormat::Html => explain_outcomes(&report),
        _ => Vec::new(),
    };
    let page = (format == ReportFormat::Html).then(unused_page);
    let out = arguments.out.clone().or(page).filter(|path| path.as_os_str() != "-");
    match &out {
        None => {
            let mut out = StandardOutput::new();
            write::write_report(format, &results, &report, &pictures, &mut out).map_err(output_failure)?;
            out.flush().map_err(output_failure)?;
        }
        Some(path) => {
            let mut bytes = Vec::new();
            write::write_report(format, &results, &report, &pictures, &mut bytes)
                .map_err(Failure::environment_error)?;
            let replaced = if path.is_file() { ", which replaces an earlier file" } else { "" };
            write_file(path, &bytes)?;
            if (arguments.out.is_none() || !replaced.is_empty()) && !quiet {
                print_message(&format!("report in {}{replaced}", path.display()));
            }
        }
    }
    Ok(outcome)
}

/// Returns the file of a page without `--out`, which replaces no earlier one.
fn unused_page() -> PathBuf {
    let numbered = (2..).map(|number| PathBuf::from(format!("report-{number}.html")));
    let mut names = std::iter::once(PathBuf::from(DEFAULT_PAGE)).chain(numbered);
    names.find(|path| !path.exists()).unwrap_or_else(|| DEFAULT_PAGE.into())
}

/// Writes a site into a new or empty folder, or replaces the site in it.
fn write_site(folder: &Path, files: &[site::SiteFile]) -> Result<(), Failure> {
    let to_failure = |error: std::io::Error| Failure::file_error(folder, error);
    create_folder(folder)?;
    match std::fs::read_to_string(folder.join(site::FILE_LIST)) {
        Ok(list) => {
            let is_inside =
                |path: &&str| Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
            for path in list.lines().filter(is_inside) {
                match std::fs::remove_file(folder.join(path)) {
                    Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                        return Err(to_failure(error));
                    }
                    _ => {}
                }
            }
        }
        Err(_) if std::fs::read_dir(folder).map_err(to_failure)?.next().is_some() => {
            return Err(Failure::input_message(format!(
                "{} is not empty and is not a site: name a new folder",
                escape::escape_line(&folder.to_string_lossy())
            )));
        }
        Err(_) => {}
    }
    write_files(folder, files)
}

/// Writes files below a folder, and creates folders as needed.
fn write_files(folder: &Path, files: &[site::SiteFile]) -> Result<(), Failure> {
    for file in files {
        let path = folder.join(&file.path);
        if let Some(parent) = path.parent() {
            create_folder(parent)?;
        }
        write_file(&path, &file.bytes)?;
    }
    Ok(())
}

/// Reads several results. An incomplete last line is reported and skipped; missing verdicts change the exit
/// code.
pub fn read_all(
    paths: &[PathBuf],
    other: OtherVersionPolicy,
    outcome: &mut Outcome,
) -> Result<Vec<Results>, Failure> {
    let mut all = Vec::new();
    for path in paths {
        let results = read_recomputed(path, other, outcome)?;
        if let Some(incomplete) = results.incomplete {
            let file = if path.is_dir() { path.join(JOURNAL) } else { path.clone() };
            print_message(&format!(
                "error: {}:{}: the last line is incomplete ({} bytes) and was ignored: its writer was killed",
                escape::escape_line(&file.to_string_lossy()),
                incomplete.line,
                incomplete.bytes
            ));
            // With a plan, the lost verdict is known to be missing; without one, the input itself is damaged.
            outcome.escalate_to(if results.plan.is_some() { Outcome::Environment } else { Outcome::Input });
        }
        if results.count_missing() > 0 {
            outcome.escalate_to(Outcome::Environment);
        }
        all.push(results);
    }
    Ok(all)
}

/// Reads results and recomputes the verdicts of their litmus tests.
pub fn read_recomputed(
    path: &Path,
    other: OtherVersionPolicy,
    outcome: &mut Outcome,
) -> Result<Results, Failure> {
    let found = rejudge::recompute_results(read::read_results(path).map_err(read_failure)?, other)?;
    found.notes.iter().for_each(|note| print_message(note));
    if found.dropped_count > 0 {
        outcome.escalate_to(Outcome::Environment);
    }
    Ok(found.results)
}

/// Converts a read error.
pub fn read_failure(error: ReadError) -> Failure {
    if error.is_input() { Failure::input_error(error) } else { Failure::environment_error(error) }
}

/// Explains the most interesting outcome of each test: violations first, then weak outcomes, within the
/// limits.
fn explain_outcomes(report: &Report) -> Vec<Option<ExplainedPicture>> {
    let deadline = Instant::now() + PICTURE_TIME;
    let models = ShippedModels::for_lines(report.lines());
    let weight = |row: &TestRow| {
        row.cells.iter().flatten().fold((false, false), |(violates, weak), line| {
            (violates || line.verdict == VerdictWord::Violates, weak || count_weak(line) > 0)
        })
    };
    let mut order: Vec<usize> = (0..report.tests.len()).collect();
    order.sort_by_key(|index| report.tests.get(*index).map(|row| std::cmp::Reverse(weight(row))));
    order.truncate(MAX_PICTURES);
    let drawn: Vec<Option<ExplainedPicture>> = parallel_map(&order, |index| {
        report.tests.get(*index).and_then(|row| explain_outcome(row, &models, deadline))
    });
    let mut pictures = vec![None; report.tests.len()];
    let is_large = report.tests.len().saturating_mul(report.devices.len()) >= MANY_VERDICTS;
    let max_bytes = if is_large { MAX_PICTURE_BYTES_ON_LARGE_PAGE } else { MAX_PICTURE_BYTES };
    let mut bytes = 0;
    for (index, picture) in order.into_iter().zip(drawn) {
        let Some(picture) = picture else { continue };
        bytes += picture.svg.len() + picture.text.len();
        if bytes > max_bytes {
            break;
        }
        if let Some(slot) = pictures.get_mut(index) {
            *slot = Some(picture);
        }
    }
    pictures
}

fn explain_outcome(row: &TestRow, models: &ShippedModels, deadline: Instant) -> Option<ExplainedPicture> {
    let (test, text) = explain_records::recorded_test(&row.id, &row.hash, &row.text)?;
    let run = || row.cells.iter().flatten().filter(|line| line.verdict != VerdictWord::Skipped);
    let importance = |line: &&RunLine| {
        (line.verdict == VerdictWord::Violates, explain_records::most_notable_outcome(line).is_some())
    };
    // `rev`: of equally informative lines, `max_by_key` returns the last, and the first device is wanted.
    let line = run().rev().max_by_key(importance)?;
    let outcome = explain_records::most_notable_outcome(line);
    let explanation = explain_records::explain_line(&test, line, outcome.as_deref(), models, deadline)?;
    let explained = Explained { test: &test, source: &text, file: &row.id, explanation: &explanation };
    Some(ExplainedPicture {
        headline: explanation::headline(explained),
        svg: explanation::svg(explained),
        text: explanation::text(explained),
    })
}
