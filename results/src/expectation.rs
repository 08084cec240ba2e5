//! Expectations: known failures, flakes and skipped tests of a driver, in the list syntax of deqp-runner.
//!
//! A folder holds files named `DRIVER-fails.txt`, `DRIVER-flakes.txt` and `DRIVER-skips.txt`. A line that
//! equals a test id matches that test; any other line is a regular expression searched in ids. A violation
//! proves a fault however rarely it occurs: only a fails file can make it expected, a flakes file cannot.

mod parse;

use std::fmt;

use litmus::closed_enum;
use regex::Regex;

use crate::wire::{DeviceRecord, RunLine, VerdictWord};

closed_enum! {
    /// The purpose of an expectation file; its name is the end of the file's name.
    pub enum ExpectationKind {
        /// Tests that fail.
        Fails = "-fails.txt",
        /// Tests that sometimes crash, hang, are not exercised, or do not fail as a fails file lists.
        Flakes = "-flakes.txt",
        /// Tests that are not run.
        Skips = "-skips.txt",
    }

    /// The result of a test, in deqp-runner's words.
    pub enum Status {
        /// It conforms, or it races and is not judged.
        Pass = "Pass",
        /// It violates.
        Fail = "Fail",
        /// Its worker crashed, or the device was lost.
        Crash = "Crash",
        /// It exceeded its time limit.
        Timeout = "Timeout",
        /// It ended without a result.
        Missing = "Missing",
        /// It was not exercised.
        Warn = "Warn",
        /// It was not run.
        Skip = "Skip",
    }
}

impl Status {
    /// The statuses that a fails file may list.
    pub const LISTED: [Status; 6] =
        [Status::Fail, Status::Crash, Status::Timeout, Status::Missing, Status::Warn, Status::Skip];

    /// The status of a verdict.
    pub fn from_line(line: &RunLine) -> Status {
        match line.verdict {
            VerdictWord::Conforms | VerdictWord::Undefined => Status::Pass,
            VerdictWord::Violates => Status::Fail,
            VerdictWord::Skipped => Status::Skip,
            VerdictWord::Inconclusive => match line.reason.as_deref() {
                Some("not exercised") => Status::Warn,
                Some("crashed" | "device lost") => Status::Crash,
                Some("timed out") => Status::Timeout,
                _ => Status::Missing,
            },
        }
    }

    /// Returns true for the statuses that a line without a status covers.
    fn is_failure(self) -> bool {
        matches!(self, Status::Fail | Status::Crash | Status::Timeout | Status::Missing)
    }
}

/// A line of an expectation file.
#[derive(Clone, Debug)]
pub struct ExpectationEntry {
    /// The pattern as written.
    pub pattern: String,
    /// Line number, from 1.
    pub line: u32,
    /// The status that a fails file lists; `None` covers every failure.
    pub status: Option<Status>,
    /// The reason, from the comment above or after the pattern; may be empty.
    pub reason: String,
    regex: Regex,
}

impl ExpectationEntry {
    /// Returns true if the pattern matches the test `id`. `is_id` tests if a text is the id of a test: such a
    /// pattern matches that test only.
    pub fn matches(&self, id: &str, is_id: impl Fn(&str) -> bool) -> bool {
        self.pattern == id || (!is_id(&self.pattern) && self.regex.is_match(id))
    }

    /// Returns the first link in the reason.
    pub fn link(&self) -> Option<&str> {
        self.reason
            .split_whitespace()
            .find(|word| word.starts_with("https://") || word.starts_with("http://"))
    }

    /// Returns true if the line covers `status`.
    fn covers_status(&self, status: Status) -> bool {
        self.status.map_or(status.is_failure(), |listed| listed == status)
    }
}

/// An expectation file.
#[derive(Clone, Debug)]
pub struct ExpectationFile {
    /// File name without folders.
    pub name: String,
    /// Its purpose.
    pub kind: ExpectationKind,
    /// Its lines.
    pub entries: Vec<ExpectationEntry>,
}

/// Words that name a driver in file names, one a line.
pub const DRIVERS: &str = include_str!("expectation/drivers.txt");
/// Words of file names that state the size of the test selection; they name no device.
const QUALIFIERS: [&str; 2] = ["slow", "full"];
/// Name of files that apply to every device.
pub const ALL_DEVICES: &str = "all";

impl ExpectationFile {
    /// The part of the file name before the suffix.
    pub fn driver(&self) -> &str {
        self.name.strip_suffix(self.kind.name()).unwrap_or(&self.name)
    }
}

/// Returns the words of a file name that select devices; `driver` is the name without its suffix.
pub fn device_words(driver: &str) -> Vec<String> {
    let mut words = split_words(driver);
    words.retain(|word| !QUALIFIERS.contains(&word.as_str()));
    words
}

/// Returns true if one of the words names a driver.
pub fn has_driver_word(words: &[String]) -> bool {
    words.iter().any(|word| DRIVERS.lines().any(|driver| driver == word))
}

/// Returns true if a file named `driver` applies to the device: it applies to all, or each of its words is in
/// the device's or the driver's name.
pub fn is_applicable(driver: &str, device: &DeviceRecord) -> bool {
    let words_of_file = device_words(driver);
    if words_of_file.first().is_some_and(|word| word == ALL_DEVICES) {
        return true;
    }
    let device_words = words_of_device(device);
    !words_of_file.is_empty() && words_of_file.iter().all(|word| device_words.contains(word))
}

/// Returns the words of the device's and the driver's names.
pub fn words_of_device(device: &DeviceRecord) -> Vec<String> {
    let mut names = split_words(&device.name);
    names.extend(split_words(&device.device_name));
    names.extend(split_words(&device.driver_name));
    if names.iter().any(|word| word == "lavapipe" || word == "llvmpipe") {
        names.extend(["lavapipe", "llvmpipe", "lvp"].map(str::to_owned));
    }
    names
}

/// Splits a name into lower-case words.
fn split_words(name: &str) -> Vec<String> {
    let lower = name.to_lowercase();
    lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// A mistake in an expectation file, with its position.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {mistake}")]
pub struct ExpectationError {
    /// File name.
    pub file: String,
    /// Line number, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// The mistake.
    pub mistake: ExpectationMistake,
}

/// A mistake in a line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe the variants and their fields")]
pub enum ExpectationMistake {
    /// The file is not UTF-8.
    #[error("not UTF-8")]
    NotText,
    #[error("unknown status `{0}`: expected Fail, Crash, Timeout, Missing, Warn or Skip")]
    UnknownStatus(String),
    #[error("`{0}` is not a failure: expected Fail, Crash, Timeout, Missing, Warn or Skip")]
    NotAFailure(String),
    #[error("expected a test before the comma")]
    NoPattern,
    /// A status in a file of flakes or skips, whose lines have none.
    #[error("`,{0}` is only for `-fails.txt` files; here a line is a pattern")]
    MisplacedStatus(&'static str),
    #[error("`{pattern}` is listed already in line {line}")]
    Duplicate { pattern: String, line: u32 },
    #[error("not a regular expression: {0}")]
    InvalidPattern(String),
}

/// Reference to a line of an expectation file, as messages print it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ExpectationLine {
    /// File name.
    pub file: String,
    /// Line number, from 1.
    pub line: u32,
    /// The reason that the line gives; may be empty.
    pub reason: String,
}

impl fmt::Display for ExpectationLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)?;
        if self.reason.is_empty() { Ok(()) } else { write!(f, ": {}", self.reason) }
    }
}

/// A verdict compared with the expectations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Triage {
    /// No line covers it.
    Unlisted,
    /// It failed as a fails file lists.
    Expected(ExpectationLine),
    /// A flakes file covers it: it ended badly, or it did not fail as a fails file lists.
    Flake(ExpectationLine),
    /// It was not run, as a skips file lists.
    Skipped(ExpectationLine),
    /// It violates, and only a flakes file covers it, which does not excuse a violation.
    ViolationListedAsFlake(ExpectationLine),
    /// It passes, and a fails file lists it.
    UnexpectedPass(ExpectationLine),
    /// It fails with another status than a fails file lists.
    OtherStatus {
        /// The line of the fails file.
        place: ExpectationLine,
        /// The listed status; `None` covers every failure.
        expected: Option<Status>,
    },
}

impl Triage {
    /// Returns true if an expectation excuses the verdict.
    pub fn is_excused(&self) -> bool {
        matches!(self, Triage::Expected(_) | Triage::Flake(_) | Triage::Skipped(_))
    }

    /// Returns true if an expectation was not met.
    pub fn is_unmet(&self) -> bool {
        matches!(
            self,
            Triage::ViolationListedAsFlake(_) | Triage::UnexpectedPass(_) | Triage::OtherStatus { .. }
        )
    }

    /// Describes the triage in one line; `None` if no line covers the test.
    pub fn describe(&self, line: &RunLine) -> Option<String> {
        let status = Status::from_line(line);
        Some(match self {
            Triage::Unlisted => return None,
            Triage::Expected(place) => format!("expected {status} ({place})"),
            Triage::Flake(place) => format!("known flake, this time {status} ({place})"),
            Triage::Skipped(place) => format!("not run ({place})"),
            Triage::ViolationListedAsFlake(place) => {
                format!("a violation is never a flake: list it in a `-fails.txt` file to expect it ({place})")
            }
            Triage::UnexpectedPass(place) => format!("unexpected pass ({place})"),
            Triage::OtherStatus { place, expected } => {
                let expected = expected.map_or("a failure", Status::name);
                format!("expected {expected}, was {status} ({place})")
            }
        })
    }
}

/// The expectation files of a folder.
#[derive(Clone, Debug, Default)]
pub struct Expectations {
    files: Vec<ExpectationFile>,
}

impl Expectations {
    /// Collects files; earlier files take precedence.
    pub fn new(files: Vec<ExpectationFile>) -> Expectations {
        Expectations { files }
    }

    /// Reads a file; `None` if its name has no suffix of an expectation file. `display_name` is in
    /// messages.
    ///
    /// # Errors
    /// Returns every mistake in the file, with its position.
    pub fn parse(
        name: &str,
        display_name: &str,
        bytes: &[u8],
    ) -> Result<Option<ExpectationFile>, Vec<ExpectationError>> {
        let Some(kind) = ExpectationKind::ALL.into_iter().find(|kind| name.ends_with(kind.name())) else {
            return Ok(None);
        };
        parse::parse(name, display_name, kind, bytes).map(Some)
    }

    /// The files in order of precedence.
    pub fn files(&self) -> &[ExpectationFile] {
        &self.files
    }

    /// Returns true if it contains no files.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Returns the files that apply to a device: those named for it and those for all.
    pub fn of_device<'a>(&'a self, device: &'a DeviceRecord) -> impl Iterator<Item = &'a ExpectationFile> {
        self.files.iter().filter(move |file| is_applicable(file.driver(), device))
    }

    fn find_entry<'a>(
        &'a self,
        kind: ExpectationKind,
        device: &'a DeviceRecord,
        id: &str,
        is_id: &dyn Fn(&str) -> bool,
    ) -> Option<(&'a ExpectationEntry, ExpectationLine)> {
        self.of_device(device).filter(|file| file.kind == kind).find_map(|file| {
            let matching = |entry: &&ExpectationEntry| entry.matches(id, is_id);
            // A line with exactly this id takes precedence over a regular expression.
            let exact = file.entries.iter().find(|entry| entry.pattern == id);
            let entry = exact.or_else(|| file.entries.iter().find(matching))?;
            let place =
                ExpectationLine { file: file.name.clone(), line: entry.line, reason: entry.reason.clone() };
            Some((entry, place))
        })
    }

    /// Returns the line of a skips file that matches the test, if any.
    pub fn find_skip(
        &self,
        device: &DeviceRecord,
        id: &str,
        is_id: &dyn Fn(&str) -> bool,
    ) -> Option<ExpectationLine> {
        self.find_entry(ExpectationKind::Skips, device, id, is_id).map(|(_, place)| place)
    }

    /// Compares a verdict with the expectations for its test and device.
    pub fn triage(&self, line: &RunLine, device: &DeviceRecord, is_id: &dyn Fn(&str) -> bool) -> Triage {
        let status = Status::from_line(line);
        if status == Status::Skip
            && let Some(place) = self.find_skip(device, &line.id, is_id)
        {
            return Triage::Skipped(place);
        }
        let fails = self.find_entry(ExpectationKind::Fails, device, &line.id, is_id);
        let flakes = self.find_entry(ExpectationKind::Flakes, device, &line.id, is_id);
        match (fails, flakes) {
            (None, None) => Triage::Unlisted,
            (Some((entry, place)), _) if entry.covers_status(status) => Triage::Expected(place),
            // The test is listed as failing and as flaky: every result but an unlisted violation is expected.
            (Some(_), Some((_, place))) if status != Status::Fail => Triage::Flake(place),
            (None, Some((_, place))) => match status {
                Status::Fail => Triage::ViolationListedAsFlake(place),
                Status::Pass | Status::Skip => Triage::Unlisted,
                Status::Crash | Status::Timeout | Status::Missing | Status::Warn => Triage::Flake(place),
            },
            (Some((_, place)), _) if status == Status::Pass => Triage::UnexpectedPass(place),
            (Some((entry, place)), _) => Triage::OtherStatus { place, expected: entry.status },
        }
    }

    /// Returns the lines that match no id; `is_matched` tests an entry. Files for devices that are
    /// not among `devices` are omitted.
    pub fn unmatched(
        &self,
        devices: &[DeviceRecord],
        mut is_matched: impl FnMut(&ExpectationEntry) -> bool,
    ) -> Vec<(ExpectationLine, String)> {
        let mut unmatched = Vec::new();
        for file in &self.files {
            let is_used =
                devices.iter().any(|device| self.of_device(device).any(|used| std::ptr::eq(used, file)));
            if !is_used {
                continue;
            }
            for entry in file.entries.iter().filter(|entry| !is_matched(entry)) {
                let place =
                    ExpectationLine { file: file.name.clone(), line: entry.line, reason: String::new() };
                unmatched.push((place, entry.pattern.clone()));
            }
        }
        unmatched
    }
}
