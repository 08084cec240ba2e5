//! `--expect`: a folder of expectation files, and their comparison with verdicts.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use results::escape::escape_line as shown;
use results::expectation::{
    ALL_DEVICES, DRIVERS, ExpectationKind, ExpectationLine, Expectations, Status, Triage, device_words,
    has_driver_word, is_applicable, words_of_device,
};
use results::wire::{DeviceRecord, RunLine};

use crate::inputs::CTS_FOLDER;
use crate::similar::most_similar;
use crate::targets::MessageSink;
use crate::{Failure, cts, files, inputs};

/// The suffix of files with the progress model that a device claims.
pub const PROGRESS_SUFFIX: &str = "-progress.txt";

#[derive(Debug, Default)]
pub struct RunExpectations {
    expectations: Expectations,
    /// True if the user gave a folder, even one for other devices only.
    is_given: bool,
    /// The ids that a pattern may name: the tests of this run and every embedded test.
    ids: BTreeSet<String>,
    /// The ids of this run, including those of other shards.
    run_ids: Vec<String>,
    devices: Vec<DeviceRecord>,
}

/// Reads the expectation files of a folder that match one of `devices`.
///
/// # Errors
/// If the folder is missing or holds no expectation file, or a file is invalid or matches no known driver.
/// The failure lists every mistake.
pub fn load(folder: &Path, devices: &[DeviceRecord]) -> Result<Expectations, Failure> {
    let to_failure = |what: String| Failure::input_message(format!("--expect {}: {what}", folder.display()));
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(|error| to_failure(error.to_string()))? {
        paths.push(entry.map_err(|error| to_failure(error.to_string()))?.path());
    }
    paths.sort();
    let mut files = Vec::new();
    let mut mistakes = Vec::new();
    let mut has_any_file = false;
    for path in &paths {
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
        let suffixes = ExpectationKind::ALL.iter().map(|kind| kind.name()).chain([PROGRESS_SUFFIX]);
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
        has_any_file = true;
        if !devices.iter().any(|device| is_applicable(driver, device)) {
            mistakes.extend(unknown_driver_error(path, driver, devices));
            continue;
        }
        // The progress model of a device is read where its tests are run.
        if name.ends_with(PROGRESS_SUFFIX) {
            continue;
        }
        let bytes = files::read_file(path, files::MAX_SETTINGS_BYTES)
            .map_err(|what| to_failure(format!("{name}: {what}")))?;
        match Expectations::parse(name, &path.to_string_lossy(), &bytes) {
            Ok(file) => files.extend(file),
            Err(errors) => mistakes.extend(errors.iter().map(ToString::to_string)),
        }
    }
    if !mistakes.is_empty() {
        return Err(Failure::input_message(mistakes.join("\n")));
    }
    if !has_any_file {
        return Err(to_failure(
            "no file named DEVICE-fails.txt, DEVICE-flakes.txt, DEVICE-skips.txt or DEVICE-progress.txt"
                .to_owned(),
        ));
    }
    Ok(Expectations::new(files))
}

/// Returns the error for a file that matches no device of this run; None if it names a known driver.
fn unknown_driver_error(path: &Path, driver: &str, devices: &[DeviceRecord]) -> Option<String> {
    let words = device_words(driver);
    if has_driver_word(&words) {
        return None;
    }
    let of_devices: Vec<String> = devices.iter().flat_map(words_of_device).collect();
    let known_words = || DRIVERS.lines().chain([ALL_DEVICES]).chain(of_devices.iter().map(String::as_str));
    let suggestion = words.iter().find_map(|word| most_similar(word, known_words()));
    let suggestion = suggestion.map_or_else(String::new, |word| format!(" (did you mean `{word}`?)"));
    Some(format!(
        "{}: `{driver}`{suggestion} is neither a device of this run nor a known driver; expected `{ALL_DEVICES}`, or \
         words of the device's or driver's name",
        path.display()
    ))
}

impl RunExpectations {
    /// Creates the expectations for a run of tests with `ids` on `devices`.
    pub fn new(
        expectations: Option<Expectations>,
        ids: &[String],
        devices: Vec<DeviceRecord>,
    ) -> RunExpectations {
        let is_given = expectations.is_some();
        let expectations = expectations.unwrap_or_default();
        let mut known_ids: BTreeSet<String> = ids.iter().cloned().collect();
        if !expectations.is_empty() {
            known_ids.extend(inputs::embedded_tests().into_iter().map(|source| source.id));
        }
        let entries = expectations.files().iter().flat_map(|file| &file.entries);
        if entries.into_iter().any(|entry| entry.pattern.starts_with(CTS_FOLDER)) {
            known_ids.extend(cts::select_programs(|_| true).into_iter().map(|source| source.id));
        }
        RunExpectations { expectations, is_given, ids: known_ids, run_ids: ids.to_vec(), devices }
    }

    /// Returns true if a pattern is the id of a test, with or without a variant.
    fn is_test_id(&self, pattern: &str) -> bool {
        let is_variant = || pattern.rsplit_once('@').is_some_and(|(test, _)| self.ids.contains(test));
        self.ids.contains(pattern) || is_variant()
    }

    fn find_device(&self, name: &str) -> Option<&DeviceRecord> {
        self.devices.iter().find(|device| device.name == name)
    }

    /// Returns the position of the line that skips a test on a device.
    pub fn find_skip(&self, device: &str, id: &str) -> Option<ExpectationLine> {
        self.expectations.find_skip(self.find_device(device)?, id, &|pattern| self.is_test_id(pattern))
    }

    /// Compares a verdict with its expectation.
    pub fn triage(&self, line: &RunLine) -> Triage {
        match self.find_device(&line.device) {
            Some(device) => self.expectations.triage(line, device, &|pattern| self.is_test_id(pattern)),
            None => Triage::Unlisted,
        }
    }

    /// Returns the lines that match no known test of any shard.
    fn unmatched(&self) -> Vec<(ExpectationLine, String)> {
        self.expectations.unmatched(&self.devices, |entry| {
            let is_id = |pattern: &str| self.is_test_id(pattern);
            is_id(&entry.pattern) || self.ids.iter().any(|id| entry.matches(id, is_id))
        })
    }

    /// Counts the lines that match tests, but no test of this run.
    fn count_in_other_runs(&self, unmatched: usize) -> usize {
        let is_id = |pattern: &str| self.is_test_id(pattern);
        let unmatched_here = self
            .expectations
            .unmatched(&self.devices, |entry| self.run_ids.iter().any(|id| entry.matches(id, is_id)));
        unmatched_here.len().saturating_sub(unmatched)
    }

    /// Reports the result of every expectation; returns true if all were met.
    pub fn report(&self, lines: &[RunLine], is_quiet: bool, on_message: MessageSink<'_>) -> bool {
        if !self.is_given {
            return true;
        }
        let mut all_met = true;
        let (mut expected, mut flakes, mut skipped, mut unmet) = (0_usize, 0_usize, 0_usize, 0_usize);
        for line in lines {
            let triage = self.triage(line);
            match &triage {
                Triage::Unlisted => continue,
                Triage::Expected(_) => expected += 1,
                Triage::Flake(_) => flakes += 1,
                Triage::Skipped(_) => skipped += 1,
                Triage::ViolationListedAsFlake(_)
                | Triage::UnexpectedPass(_)
                | Triage::OtherStatus { .. } => unmet += 1,
            }
            if let Some(text) = triage.describe(line)
                && (triage.is_unmet() || !is_quiet)
                && !matches!(triage, Triage::Skipped(_))
            {
                on_message(&format!("{} on {}: {}", shown(&line.id), shown(&line.device), shown(&text)));
            }
            if triage.is_unmet() {
                all_met = false;
            }
        }
        let unmatched = self.unmatched();
        for (position, pattern) in &unmatched {
            // Test names contain `+`, which repeats the character before it.
            let has_repetition = pattern.contains('+') && !pattern.contains("\\+");
            let hint = if has_repetition { "; a `+` of a name is written `\\+`" } else { "" };
            on_message(&format!("{position}: no test matches `{}`{hint}", shown(pattern)));
            all_met = false;
        }
        let unexpected = lines
            .iter()
            .filter(|line| self.triage(line) == Triage::Unlisted && Status::from_line(line) == Status::Fail)
            .count();
        if !is_quiet || !all_met {
            on_message(&format!(
                "expectations: {expected} failed as expected, {flakes} known flakes, {skipped} not run, \
                 {unmet} not met, {} patterns unmatched, {} for tests that are not in this run; \
                 {unexpected} violations are not listed",
                unmatched.len(),
                self.count_in_other_runs(unmatched.len())
            ));
        }
        all_met
    }
}

/// Returns the skip reason that names an expectation line.
pub fn skip_reason(place: &ExpectationLine) -> String {
    format!("skip list {place}")
}
