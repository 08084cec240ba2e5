//! `--expect`: a folder of expectation files, and their comparison with verdicts.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use results::escape::escape_line as shown;
use results::expectation::{
    ALL_DEVICES, DRIVERS, ExpectationKind, ExpectationLine, Expectations, Status, Triage, device_words,
    has_driver_word, is_applicable, words_of_device,
};
use results::wire::{DeviceRecord, RunLine};

use crate::inputs::CTS_FOLDER;
use crate::similar::most_similar;
use crate::targets::Tell;
use crate::{Failure, cts, inputs};

/// The largest file that is read.
const MAX_BYTES: u64 = 1 << 20;

/// The suffix of files with the progress model that a device claims.
pub const PROGRESS_SUFFIX: &str = "-progress.txt";

/// The expectations for a run.
#[derive(Debug, Default)]
pub struct Expected {
    expectations: Expectations,
    /// True if the user gave a folder, even one for other devices only.
    given: bool,
    /// The ids that a pattern may name: the tests of this run and every embedded test.
    ids: BTreeSet<String>,
    /// The ids of this run, including those of other shards.
    asked: Vec<String>,
    devices: Vec<DeviceRecord>,
}

/// Reads the expectation files of a folder that match one of `devices`.
///
/// # Errors
/// If the folder is missing or holds no expectation file, or a file is invalid or matches no known driver.
/// The failure lists every mistake.
pub fn load(folder: &Path, devices: &[DeviceRecord]) -> Result<Expectations, Failure> {
    let wrong = |what: String| Failure::input_message(format!("--expect {}: {what}", folder.display()));
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(|error| wrong(error.to_string()))? {
        paths.push(entry.map_err(|error| wrong(error.to_string()))?.path());
    }
    paths.sort();
    let mut files = Vec::new();
    let mut mistakes = Vec::new();
    let mut any = false;
    for path in &paths {
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
        let suffixes = ExpectationKind::ALL.iter().map(|kind| kind.suffix()).chain([PROGRESS_SUFFIX]);
        let Some(driver) = suffixes.into_iter().find_map(|suffix| name.strip_suffix(suffix)) else {
            if name.ends_with(".txt") {
                mistakes.push(format!(
                    "{}: not an expectation file; expected a name that ends in -fails.txt, -flakes.txt, \
                     -skips.txt or -progress.txt",
                    path.display()
                ));
            }
            continue;
        };
        any = true;
        if !devices.iter().any(|device| is_applicable(driver, device)) {
            mistakes.extend(unknown_device(path, driver, devices));
            continue;
        }
        // The progress model of a device is read where its tests are run.
        if name.ends_with(PROGRESS_SUFFIX) {
            continue;
        }
        let bytes = read_list(path).map_err(|what| wrong(format!("{name}: {what}")))?;
        match Expectations::parse(name, &path.to_string_lossy(), &bytes) {
            Ok(file) => files.extend(file),
            Err(errors) => mistakes.extend(errors.iter().map(ToString::to_string)),
        }
    }
    if !mistakes.is_empty() {
        return Err(Failure::input_message(mistakes.join("\n")));
    }
    if !any {
        return Err(wrong(
            "no file named DEVICE-fails.txt, DEVICE-flakes.txt, DEVICE-skips.txt or DEVICE-progress.txt"
                .to_owned(),
        ));
    }
    Ok(Expectations::new(files))
}

/// Returns the error for a file that matches no device of this run; None if it names a known driver.
fn unknown_device(path: &Path, driver: &str, devices: &[DeviceRecord]) -> Option<String> {
    let words = device_words(driver);
    if has_driver_word(&words) {
        return None;
    }
    let of_devices: Vec<String> = devices.iter().flat_map(words_of_device).collect();
    let known = || DRIVERS.into_iter().chain([ALL_DEVICES]).chain(of_devices.iter().map(String::as_str));
    let meant = words.iter().find_map(|word| most_similar(word, known()));
    let meant = meant.map_or_else(String::new, |word| format!(" (did you mean `{word}`?)"));
    Some(format!(
        "{}: `{driver}`{meant} is neither a device of this run nor a known driver; expected `{ALL_DEVICES}`, or \
         words of the device's or driver's name",
        path.display()
    ))
}

fn read_list(path: &Path) -> Result<Vec<u8>, String> {
    let metadata = fs::metadata(path).map_err(|error| error.to_string())?;
    // Opening a pipe would block until a writer opens it.
    if !metadata.is_file() {
        return Err("not a regular file".to_owned());
    }
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes))
        .map_err(|error| error.to_string())?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(format!("larger than {} KiB", MAX_BYTES / 1024));
    }
    Ok(bytes)
}

impl Expected {
    /// Creates the expectations for a run of tests with `ids` on `devices`.
    pub fn new(expectations: Option<Expectations>, ids: &[String], devices: Vec<DeviceRecord>) -> Expected {
        let given = expectations.is_some();
        let expectations = expectations.unwrap_or_default();
        let mut known: BTreeSet<String> = ids.iter().cloned().collect();
        if !expectations.is_empty() {
            known.extend(inputs::all_embedded().into_iter().map(|source| source.id));
        }
        let entries = expectations.files().iter().flat_map(|file| &file.entries);
        if entries.into_iter().any(|entry| entry.pattern.starts_with(CTS_FOLDER)) {
            known.extend(cts::chosen(|_| true).into_iter().map(|source| source.id));
        }
        Expected { expectations, given, ids: known, asked: ids.to_vec(), devices }
    }

    /// Returns true if a pattern is the id of a test, with or without a variant.
    fn is_id(&self, pattern: &str) -> bool {
        let told = || pattern.rsplit_once('@').is_some_and(|(test, _)| self.ids.contains(test));
        self.ids.contains(pattern) || told()
    }

    fn device(&self, name: &str) -> Option<&DeviceRecord> {
        self.devices.iter().find(|device| device.name == name)
    }

    /// Returns the position of the line that skips a test on a device.
    pub fn skips(&self, device: &str, id: &str) -> Option<ExpectationLine> {
        self.expectations.find_skip(self.device(device)?, id, &|pattern| self.is_id(pattern))
    }

    /// Compares a verdict with its expectation.
    pub fn standing(&self, line: &RunLine) -> Triage {
        match self.device(&line.device) {
            Some(device) => self.expectations.triage(line, device, &|pattern| self.is_id(pattern)),
            None => Triage::Unlisted,
        }
    }

    /// Returns the lines that match no known test of any shard.
    fn unmatched(&self) -> Vec<(ExpectationLine, String)> {
        self.expectations.unmatched(&self.devices, |entry| {
            let is_id = |pattern: &str| self.is_id(pattern);
            is_id(&entry.pattern) || self.ids.iter().any(|id| entry.matches(id, is_id))
        })
    }

    /// Counts the lines that match tests, but no test of this run.
    fn elsewhere(&self, unmatched: usize) -> usize {
        let is_id = |pattern: &str| self.is_id(pattern);
        let not_here = self
            .expectations
            .unmatched(&self.devices, |entry| self.asked.iter().any(|id| entry.matches(id, is_id)));
        not_here.len().saturating_sub(unmatched)
    }

    /// Prints the result of every expectation; returns true if all were met.
    pub fn report(&self, lines: &[RunLine], quiet: bool, say: Tell<'_>) -> bool {
        if !self.given {
            return true;
        }
        let mut met = true;
        let (mut expected, mut flakes, mut skipped, mut unmet) = (0_usize, 0_usize, 0_usize, 0_usize);
        for line in lines {
            let standing = self.standing(line);
            match &standing {
                Triage::Unlisted => continue,
                Triage::Expected(_) => expected += 1,
                Triage::Flake(_) => flakes += 1,
                Triage::Skipped(_) => skipped += 1,
                Triage::ViolationListedAsFlake(_)
                | Triage::UnexpectedPass(_)
                | Triage::OtherStatus { .. } => unmet += 1,
            }
            if let Some(text) = standing.describe(line)
                && (standing.is_unmet() || !quiet)
                && !matches!(standing, Triage::Skipped(_))
            {
                say(&format!("{} on {}: {}", shown(&line.id), shown(&line.device), shown(&text)));
            }
            if standing.is_unmet() {
                met = false;
            }
        }
        let unmatched = self.unmatched();
        for (place, pattern) in &unmatched {
            say(&format!("{place}: no test matches `{}`", shown(pattern)));
            met = false;
        }
        let unexpected = lines
            .iter()
            .filter(|line| self.standing(line) == Triage::Unlisted && Status::from_line(line) == Status::Fail)
            .count();
        if !quiet || !met {
            say(&format!(
                "expectations: {expected} failed as expected, {flakes} known flakes, {skipped} not run, \
                 {unmet} not met, {} patterns unmatched, {} for tests that are not in this run; \
                 {unexpected} violations are not listed",
                unmatched.len(),
                self.elsewhere(unmatched.len())
            ));
        }
        met
    }
}

/// Returns the skip reason that names an expectation line.
pub fn reason(place: &ExpectationLine) -> String {
    format!("skip list {place}")
}
