//! The report formats, one file a format.

pub mod bench;
pub mod code;
pub mod codegen;
mod columns;
pub mod csv;
pub mod diff;
pub mod gtest;
pub mod herd;
pub mod html;
pub mod json;
pub mod junit;
pub mod markdown;
pub mod matrix;
pub mod number;
pub mod plots;
pub mod progress;
pub mod race;
pub mod sarif;
mod shader;
pub mod site;
pub mod text;

use std::io::{self, Write};
use std::str::FromStr;

use crate::read::Results;
use crate::report::Report;
use crate::wire::{CheckLine, RejectedLine, ReportRecord, RunLine};

/// A report format by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// For people.
    Text,
    /// An object a line.
    Json,
    /// A row an outcome.
    Csv,
    /// JUnit's XML.
    Junit,
    /// What herd prints.
    Herd,
    /// The protocol of Google Test.
    Gtest,
    /// Findings on their lines, for GitHub and editors.
    Sarif,
}

/// A format that there is not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// No such name.
    #[error("unknown format `{}`: expected one of {}", .0, Format::ALL.map(Format::name).join(", "))]
    Unknown(String),
    /// The format is planned and not built.
    #[error("format `{0}` is not available")]
    NotAvailable(&'static str),
}

impl Format {
    /// Every format.
    pub const ALL: [Format; Format::Sarif as usize + 1] =
        [Format::Text, Format::Json, Format::Csv, Format::Junit, Format::Herd, Format::Gtest, Format::Sarif];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Format::Text => "text",
            Format::Json => "json",
            Format::Csv => "csv",
            Format::Junit => "junit",
            Format::Herd => "herd",
            Format::Gtest => "gtest",
            Format::Sarif => "sarif",
        }
    }
}

impl FromStr for Format {
    type Err = FormatError;

    fn from_str(name: &str) -> Result<Format, FormatError> {
        let known = Format::ALL.into_iter().find(|format| format.name() == name);
        known.ok_or_else(|| FormatError::Unknown(name.to_owned()))
    }
}

/// A format of `report` by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReportFormat {
    /// One page with everything.
    Html,
    /// Markdown.
    Markdown,
    /// A row an outcome.
    Csv,
    /// One document.
    Json,
    /// JUnit's XML.
    Junit,
    /// A log as herd and litmus7 write it.
    Herd,
}

/// A format of `report` that there is not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown format `{}`: expected one of {}", .0, ReportFormat::ALL.map(ReportFormat::name).join(", "))]
pub struct ReportFormatError(String);

impl ReportFormat {
    /// Every format of `report`.
    pub const ALL: [ReportFormat; ReportFormat::Herd as usize + 1] = [
        ReportFormat::Html,
        ReportFormat::Markdown,
        ReportFormat::Csv,
        ReportFormat::Json,
        ReportFormat::Junit,
        ReportFormat::Herd,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            ReportFormat::Html => "html",
            ReportFormat::Markdown => "md",
            ReportFormat::Csv => "csv",
            ReportFormat::Json => "json",
            ReportFormat::Junit => "junit",
            ReportFormat::Herd => "herd",
        }
    }
}

impl FromStr for ReportFormat {
    type Err = ReportFormatError;

    fn from_str(name: &str) -> Result<ReportFormat, ReportFormatError> {
        let known = ReportFormat::ALL.into_iter().find(|format| format.name() == name);
        known.ok_or_else(|| ReportFormatError(name.to_owned()))
    }
}

/// Writes a report on `results`. `pictures` explain the tests of a page, in the order of the report.
///
/// # Errors
/// What the stream says.
pub fn report(
    format: ReportFormat,
    results: &[Results],
    report: &Report,
    pictures: &[Option<html::Picture>],
    mut out: impl Write,
) -> io::Result<()> {
    match format {
        ReportFormat::Html => out.write_all(html::page(report, pictures).as_bytes()),
        ReportFormat::Markdown => out.write_all(markdown::document(report).as_bytes()),
        ReportFormat::Json => out.write_all(json::document(&ReportRecord::new(results, report))?.as_bytes()),
        ReportFormat::Csv => every(report, &mut csv::Run::new(out)),
        ReportFormat::Junit => every(report, &mut junit::Run::new(out)),
        ReportFormat::Herd => every(report, &mut herd::Run::new(out)),
    }
}

fn every(report: &Report, writer: &mut dyn RunWriter) -> io::Result<()> {
    report.lines().try_for_each(|line| writer.judged(line))?;
    writer.finish()
}

/// How text is laid out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// Columns of the terminal; nothing where the text goes elsewhere.
    pub width: Option<u16>,
    /// Whether to use colours.
    pub colour: bool,
    /// Whether to leave out, of many tests, those that broke no rule: the results folder has them.
    pub brief: bool,
}

/// Writes what a model says of tests.
pub trait CheckWriter {
    /// A test and its prediction.
    ///
    /// # Errors
    /// What the stream says.
    fn answered(&mut self, line: &CheckLine) -> io::Result<()>;

    /// A file that is no test.
    ///
    /// # Errors
    /// What the stream says.
    fn rejected(&mut self, line: &RejectedLine) -> io::Result<()>;

    /// Nothing more comes.
    ///
    /// # Errors
    /// What the stream says.
    fn finish(&mut self) -> io::Result<()>;
}

/// Writes verdicts, in plan order.
pub trait RunWriter {
    /// These tests are to be run.
    ///
    /// # Errors
    /// What the stream says.
    fn begins(&mut self, _ids: &[&str]) -> io::Result<()> {
        Ok(())
    }

    /// The verdict on this test comes next.
    ///
    /// # Errors
    /// What the stream says.
    fn starts(&mut self, _id: &str) -> io::Result<()> {
        Ok(())
    }

    /// A test, a device and a verdict.
    ///
    /// # Errors
    /// What the stream says.
    fn judged(&mut self, line: &RunLine) -> io::Result<()>;

    /// Nothing more comes.
    ///
    /// # Errors
    /// What the stream says.
    fn finish(&mut self) -> io::Result<()>;
}

/// The writer of predictions in a format.
///
/// # Errors
/// When there is none.
pub fn check_writer<'a>(
    format: Format,
    out: impl Write + 'a,
) -> Result<Box<dyn CheckWriter + 'a>, FormatError> {
    match format {
        Format::Text => Ok(Box::new(text::Check::new(out))),
        Format::Json => Ok(Box::new(json::Lines::new(out))),
        Format::Csv => Ok(Box::new(csv::Check::new(out))),
        Format::Herd => Ok(Box::new(herd::Check::new(out))),
        Format::Sarif => Ok(Box::new(sarif::Check::new(out))),
        other => Err(FormatError::NotAvailable(other.name())),
    }
}

/// The writer of verdicts in a format.
///
/// # Errors
/// When there is none.
pub fn run_writer<'a>(
    format: Format,
    out: impl Write + 'a,
    layout: Layout,
) -> Result<Box<dyn RunWriter + 'a>, FormatError> {
    match format {
        Format::Text => Ok(Box::new(text::Run::new(out, layout))),
        Format::Json => Ok(Box::new(json::Lines::new(out))),
        Format::Csv => Ok(Box::new(csv::Run::new(out))),
        Format::Junit => Ok(Box::new(junit::Run::new(out))),
        Format::Herd => Ok(Box::new(herd::Run::new(out))),
        other => Err(FormatError::NotAvailable(other.name())),
    }
}
