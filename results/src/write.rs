//! Report formats, one submodule each.

pub mod bench;
pub mod change;
pub mod code;
pub mod codegen;
mod columns;
pub mod csv;
pub mod diff;
pub mod gtest;
pub mod herd;
pub mod histograms;
pub mod html;
pub mod json;
pub mod junit;
pub mod markdown;
pub mod matrix;
pub mod plots;
pub mod progress;
pub mod race;
pub mod recording;
pub mod sarif;
mod shader;
pub mod site;
pub mod text;

pub use crate::number;

use std::io::{self, Write};
use std::str::FromStr;

use crate::read::Results;
use crate::report::Report;
use crate::wire::{CheckLine, RejectedLine, ReportRecord, RunLine};
use litmus::closed_enum;

closed_enum! {
    /// A format of run and check results.
    pub enum OutputFormat {
        /// Text for terminals.
        Text = "text",
        /// One JSON object per line.
        Json = "json",
        /// One row per outcome.
        Csv = "csv",
        /// JUnit XML.
        Junit = "junit",
        /// A log in the format of herd7.
        Herd = "herd",
        /// The protocol of Google Test.
        Gtest = "gtest",
        /// SARIF, for GitHub and editors.
        Sarif = "sarif",
    }
}

/// A format name that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe the variants and their fields")]
pub enum FormatError {
    #[error("unknown format `{}`: expected one of {}", .0, OutputFormat::ALL.map(OutputFormat::name).join(", "))]
    Unknown(String),
    /// The command has no output in this format.
    #[error("no output in the format `{format}`: expected one of {expected}")]
    NotAvailable { format: &'static str, expected: &'static str },
}

impl FromStr for OutputFormat {
    type Err = FormatError;

    fn from_str(name: &str) -> Result<OutputFormat, FormatError> {
        OutputFormat::from_name(name).ok_or_else(|| FormatError::Unknown(name.to_owned()))
    }
}

closed_enum! {
    /// A format of `report`.
    pub enum ReportFormat {
        /// One self-contained page.
        Html = "html",
        /// Markdown.
        Markdown = "md",
        /// One row per outcome.
        Csv = "csv",
        /// One JSON document.
        Json = "json",
        /// JUnit XML.
        Junit = "junit",
        /// A log in the format of herd7 and litmus7.
        Herd = "herd",
    }
}

/// An unknown format of `report`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown format `{}`: expected one of {}", .0, ReportFormat::ALL.map(ReportFormat::name).join(", "))]
pub struct ReportFormatError(String);

impl FromStr for ReportFormat {
    type Err = ReportFormatError;

    fn from_str(name: &str) -> Result<ReportFormat, ReportFormatError> {
        // Markdown is the report as text.
        let name = if name == "text" { ReportFormat::Markdown.name() } else { name };
        ReportFormat::from_name(name).ok_or_else(|| ReportFormatError(name.to_owned()))
    }
}

/// Writes a report on `results`. `pictures` explain the tests of an HTML page, in the order of the report.
///
/// # Errors
/// Returns the error of the stream.
pub fn write_report(
    format: ReportFormat,
    results: &[Results],
    report: &Report,
    pictures: &[Option<html::ExplainedPicture>],
    mut out: impl Write,
) -> io::Result<()> {
    match format {
        ReportFormat::Html => out.write_all(html::render_page(report, pictures).as_bytes()),
        ReportFormat::Markdown => out.write_all(markdown::format_report(report).as_bytes()),
        ReportFormat::Json => {
            out.write_all(json::format_document(&ReportRecord::new(results, report))?.as_bytes())
        }
        ReportFormat::Csv => write_lines(report, &mut csv::CsvWriter::for_verdicts(out)),
        ReportFormat::Junit => write_lines(report, &mut junit::JunitRunWriter::new(out)),
        ReportFormat::Herd => write_lines(report, &mut herd::HerdWriter::new(out)),
    }
}

fn write_lines(report: &Report, writer: &mut dyn RunWriter) -> io::Result<()> {
    report.lines().try_for_each(|line| writer.write_verdict(line))?;
    writer.finish()
}

/// Layout of text output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TextLayout {
    /// Width of the terminal; `None` if the output is not a terminal.
    pub width: Option<u16>,
    /// Whether to use colours.
    pub has_colour: bool,
    /// True to explain only violations, and count the others, if there are many tests; the results folder lists all.
    pub is_brief: bool,
}

/// A writer of predictions.
pub trait CheckWriter {
    /// Writes the prediction of a test.
    ///
    /// # Errors
    /// Returns the error of the stream.
    fn write_prediction(&mut self, line: &CheckLine) -> io::Result<()>;

    /// Writes the mistake in a file that is not a valid test, in formats that have an entry for it. The diagnostic also
    /// goes to standard error.
    ///
    /// # Errors
    /// Returns the error of the stream.
    fn write_rejected(&mut self, _line: &RejectedLine) -> io::Result<()> {
        Ok(())
    }

    /// Ends the output.
    ///
    /// # Errors
    /// Returns the error of the stream.
    fn finish(&mut self) -> io::Result<()>;
}

/// A writer of verdicts, in plan order.
pub trait RunWriter {
    /// Announces the tests of the plan.
    ///
    /// # Errors
    /// Returns the error of the stream.
    fn announce_tests(&mut self, _ids: &[&str]) -> io::Result<()> {
        Ok(())
    }

    /// Announces the test whose verdict comes next.
    ///
    /// # Errors
    /// Returns the error of the stream.
    fn announce_test(&mut self, _id: &str) -> io::Result<()> {
        Ok(())
    }

    /// Writes a verdict.
    ///
    /// # Errors
    /// Returns the error of the stream.
    fn write_verdict(&mut self, line: &RunLine) -> io::Result<()>;

    /// Writes a verdict with its effect on the exit code, for formats that have a word for it.
    ///
    /// # Errors
    /// Returns the error of the stream.
    fn write_with_effect(&mut self, line: &RunLine, _effect: ExitEffect) -> io::Result<()> {
        self.write_verdict(line)
    }

    /// Ends the output.
    ///
    /// # Errors
    /// Returns the error of the stream.
    fn finish(&mut self) -> io::Result<()>;
}

/// The effect of a verdict on the exit code of its run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitEffect {
    /// It makes the exit code nonzero.
    Fails,
    /// It passes, is accepted by a flag, or is excused by an expectation.
    Accepted,
}

/// Creates a writer of predictions.
///
/// # Errors
/// Returns an error if predictions cannot be written in this format.
pub fn new_check_writer<'a>(
    format: OutputFormat,
    out: impl Write + 'a,
) -> Result<Box<dyn CheckWriter + 'a>, FormatError> {
    match format {
        OutputFormat::Text => Ok(Box::new(text::TextCheckWriter::new(out))),
        OutputFormat::Json => Ok(Box::new(json::JsonLinesWriter::new(out))),
        OutputFormat::Csv => Ok(Box::new(csv::CsvWriter::for_predictions(out))),
        OutputFormat::Herd => Ok(Box::new(herd::HerdWriter::new(out))),
        OutputFormat::Sarif => Ok(Box::new(sarif::SarifCheckWriter::new(out))),
        OutputFormat::Junit | OutputFormat::Gtest => {
            Err(FormatError::NotAvailable { format: format.name(), expected: "text, json, csv, herd, sarif" })
        }
    }
}

/// Creates a writer of verdicts.
///
/// # Errors
/// Returns an error if verdicts cannot be written in this format.
pub fn new_run_writer<'a>(
    format: OutputFormat,
    out: impl Write + 'a,
    layout: TextLayout,
) -> Result<Box<dyn RunWriter + 'a>, FormatError> {
    match format {
        OutputFormat::Text => Ok(Box::new(text::TextRunWriter::new(out, layout))),
        OutputFormat::Json => Ok(Box::new(json::JsonLinesWriter::new(out))),
        OutputFormat::Csv => Ok(Box::new(csv::CsvWriter::for_verdicts(out))),
        OutputFormat::Junit => Ok(Box::new(junit::JunitRunWriter::new(out))),
        OutputFormat::Herd => Ok(Box::new(herd::HerdWriter::new(out))),
        // Gtest is the protocol of a runner, which writes it itself.
        OutputFormat::Gtest | OutputFormat::Sarif => Err(FormatError::NotAvailable {
            format: format.name(),
            expected: "text, json, csv, junit, herd, gtest",
        }),
    }
}
