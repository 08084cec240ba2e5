//! Expectations: what a driver is known to fail, what it shows now and then, and what is not run on it, in the syntax of
//! deqp-runner's lists.
//!
//! A folder holds files named `DRIVER-fails.txt`, `DRIVER-flakes.txt` and `DRIVER-skips.txt`. A line that is the id of a
//! test means that test; any other is a regular expression that is found somewhere in ids. A violation is proof however
//! rare it is: only a line of a fails file makes it an expected one, a flakes file never does.

mod parse;

use std::fmt;

use regex::Regex;

use crate::wire::{DeviceRecord, RunLine, VerdictWord};

/// What a file of expectations is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Tests that fail.
    Fails,
    /// Tests that sometimes crash, hang, are not exercised, or do not fail as a fails file says.
    Flakes,
    /// Tests that are not run.
    Skips,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Kind; 3] = [Kind::Fails, Kind::Flakes, Kind::Skips];

    /// How the names of its files end.
    pub fn suffix(self) -> &'static str {
        match self {
            Kind::Fails => "-fails.txt",
            Kind::Flakes => "-flakes.txt",
            Kind::Skips => "-skips.txt",
        }
    }
}

/// What became of a test, in deqp-runner's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Status {
    /// It conforms, or races and is not judged.
    Pass,
    /// It violates.
    Fail,
    /// Its worker crashed, or the device was lost.
    Crash,
    /// It did not end in time.
    Timeout,
    /// It ended without a result.
    Missing,
    /// It was not exercised.
    Warn,
    /// It was not run.
    Skip,
}

impl Status {
    /// Those that a fails file may name.
    pub const LISTED: [Status; 6] =
        [Status::Fail, Status::Crash, Status::Timeout, Status::Missing, Status::Warn, Status::Skip];

    /// The word.
    pub fn word(self) -> &'static str {
        match self {
            Status::Pass => "Pass",
            Status::Fail => "Fail",
            Status::Crash => "Crash",
            Status::Timeout => "Timeout",
            Status::Missing => "Missing",
            Status::Warn => "Warn",
            Status::Skip => "Skip",
        }
    }

    /// What became of a line's test.
    pub fn of(line: &RunLine) -> Status {
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

    /// Whether it is one that a line without a status speaks of.
    fn is_failure(self) -> bool {
        matches!(self, Status::Fail | Status::Crash | Status::Timeout | Status::Missing)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// A line of a file.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The pattern as it is written.
    pub pattern: String,
    /// The line, from 1.
    pub line: u32,
    /// What a fails file says that becomes of the test; nothing for any failure.
    pub status: Option<Status>,
    /// Why, from the comment above or behind the pattern; empty where nothing is said.
    pub reason: String,
    regex: Regex,
}

impl Entry {
    /// Whether the pattern means the test with this id. `is_id` says whether a text is the id of a test: such a pattern
    /// means that test alone.
    pub fn matches(&self, id: &str, is_id: impl Fn(&str) -> bool) -> bool {
        self.pattern == id || (!is_id(&self.pattern) && self.regex.is_match(id))
    }

    /// The first link of the reason.
    pub fn link(&self) -> Option<&str> {
        self.reason
            .split_whitespace()
            .find(|word| word.starts_with("https://") || word.starts_with("http://"))
    }

    /// Whether it speaks of `status`.
    fn speaks_of(&self, status: Status) -> bool {
        self.status.map_or(status.is_failure(), |listed| listed == status)
    }
}

/// A file of expectations.
#[derive(Clone, Debug)]
pub struct File {
    /// Its name, without folders.
    pub name: String,
    /// What it is for.
    pub kind: Kind,
    /// Its lines.
    pub entries: Vec<Entry>,
}

/// Words by which the files of drivers are named.
pub const DRIVERS: [&str; 28] = [
    "amdvlk",
    "anv",
    "asahi",
    "dozen",
    "dzn",
    "freedreno",
    "gfxstream",
    "hasvk",
    "honeykrisp",
    "kosmickrisp",
    "lavapipe",
    "llvmpipe",
    "lvp",
    "mali",
    "moltenvk",
    "nvidia",
    "nvk",
    "panvk",
    "powervr",
    "radv",
    "sim",
    "swiftshader",
    "tu",
    "turnip",
    "v3dv",
    "venus",
    "virtio",
    "zink",
];
/// Words of file names that say how many tests are listed, and nothing of the device.
const QUALIFIERS: [&str; 2] = ["slow", "full"];
/// What files for every device are named.
pub const EVERY: &str = "all";

impl File {
    /// What stands before the kind in its name.
    pub fn driver(&self) -> &str {
        self.name.strip_suffix(self.kind.suffix()).unwrap_or(&self.name)
    }
}

/// The words of what stands before the kind in the name of a file that say of which device it speaks.
pub fn device_words(driver: &str) -> Vec<String> {
    let mut words = words(driver);
    words.retain(|word| !QUALIFIERS.contains(&word.as_str()));
    words
}

/// Whether one of these words is that of a driver.
pub fn names_a_driver(words: &[String]) -> bool {
    words.iter().any(|word| DRIVERS.contains(&word.as_str()))
}

/// Whether a file that is named so speaks of this device: of every one, or each of its words is one of the device's or
/// driver's name.
pub fn is_for(driver: &str, device: &DeviceRecord) -> bool {
    let words_of_file = device_words(driver);
    if words_of_file.first().is_some_and(|word| word == EVERY) {
        return true;
    }
    let known = words_of_device(device);
    !words_of_file.is_empty() && words_of_file.iter().all(|word| known.contains(word))
}

/// The words of a device's and its driver's names.
pub fn words_of_device(device: &DeviceRecord) -> Vec<String> {
    let mut known = words(&device.name);
    known.extend(words(&device.device_name));
    known.extend(words(&device.driver_name));
    if known.iter().any(|word| word == "lavapipe" || word == "llvmpipe") {
        known.extend(["lavapipe", "llvmpipe", "lvp"].map(str::to_owned));
    }
    known
}

/// The words of a name, in lower case.
fn words(name: &str) -> Vec<String> {
    let lower = name.to_lowercase();
    lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// Where something is wrong in a file of expectations, and what.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {mistake}")]
pub struct ExpectationError {
    /// The file.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// What is wrong.
    pub mistake: Mistake,
}

/// What can be wrong with a line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Mistake {
    /// The file is not text.
    #[error("not UTF-8")]
    NotText,
    /// A status that there is not.
    #[error("unknown status `{0}`: expected Fail, Crash, Timeout, Missing, Warn or Skip")]
    UnknownStatus(String),
    /// A status that is no failure.
    #[error("`{0}` is nothing that a test can be known to fail by")]
    NoFailure(String),
    /// Nothing stands before the comma.
    #[error("expected a test before the comma")]
    NoPattern,
    /// A status in a file that has none.
    #[error("`,{0}` belongs into a file of fails: here a line is a pattern alone")]
    MisplacedStatus(&'static str),
    /// The test was listed before.
    #[error("`{pattern}` is listed already in line {line}")]
    Twice {
        /// The pattern.
        pattern: String,
        /// Where it was listed first.
        line: u32,
    },
    /// No regular expression.
    #[error("not a regular expression: {0}")]
    Pattern(String),
}

/// A line of an expectation file, as messages name it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The file's name.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// What it gives as its reason.
    pub reason: String,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)?;
        if self.reason.is_empty() { Ok(()) } else { write!(f, ": {}", self.reason) }
    }
}

/// How a verdict stands to what was expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// No line speaks of it.
    Unlisted,
    /// It failed, as a fails file says.
    Expected(Place),
    /// A flakes file excuses it: it did not end well, or did not fail where a fails file says so.
    Flake(Place),
    /// It was not run, as a skips file says.
    Skipped(Place),
    /// It violates, and nothing but a flakes file lists it: that excuses nothing.
    NoFlake(Place),
    /// It passes, and a fails file says that it fails.
    UnexpectedPass(Place),
    /// It fails in another way than a fails file says.
    Other {
        /// The line.
        place: Place,
        /// What was expected; nothing for any failure.
        expected: Option<Status>,
    },
}

impl Standing {
    /// Whether what was seen is nothing that anybody must look at.
    pub fn is_excused(&self) -> bool {
        matches!(self, Standing::Expected(_) | Standing::Flake(_) | Standing::Skipped(_))
    }

    /// Whether an expectation was not met.
    pub fn is_unmet(&self) -> bool {
        matches!(self, Standing::NoFlake(_) | Standing::UnexpectedPass(_) | Standing::Other { .. })
    }

    /// Says it of a test, on one line; nothing where no line speaks of it.
    pub fn describe(&self, line: &RunLine) -> Option<String> {
        let status = Status::of(line);
        Some(match self {
            Standing::Unlisted => return None,
            Standing::Expected(place) => format!("expected {status} ({place})"),
            Standing::Flake(place) => format!("known flake, this time {status} ({place})"),
            Standing::Skipped(place) => format!("not run ({place})"),
            Standing::NoFlake(place) => format!(
                "a violation is no flake, however rare: list it in a file of fails to expect it ({place})"
            ),
            Standing::UnexpectedPass(place) => format!("unexpected pass ({place})"),
            Standing::Other { place, expected } => {
                let expected = expected.map_or("a failure", Status::word);
                format!("expected {expected}, was {status} ({place})")
            }
        })
    }
}

/// The expectations of a folder.
#[derive(Clone, Debug, Default)]
pub struct Expectations {
    files: Vec<File>,
}

impl Expectations {
    /// Those of some files, in their order.
    pub fn new(files: Vec<File>) -> Expectations {
        Expectations { files }
    }

    /// Reads a file; nothing where its name is not that of a file of expectations.
    ///
    /// # Errors
    /// Everything that is wrong with it, with its place. `shown` is how messages name the file.
    pub fn parse(name: &str, shown: &str, bytes: &[u8]) -> Result<Option<File>, Vec<ExpectationError>> {
        let Some(kind) = Kind::ALL.into_iter().find(|kind| name.ends_with(kind.suffix())) else {
            return Ok(None);
        };
        parse::parse(name, shown, kind, bytes).map(Some)
    }

    /// The files.
    pub fn files(&self) -> &[File] {
        &self.files
    }

    /// Whether there is nothing to read.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// The files that speak of a device: those named for it and for all.
    pub fn of_device<'a>(&'a self, device: &'a DeviceRecord) -> impl Iterator<Item = &'a File> {
        self.files.iter().filter(move |file| is_for(file.driver(), device))
    }

    fn entry<'a>(
        &'a self,
        kind: Kind,
        device: &'a DeviceRecord,
        id: &str,
        is_id: &dyn Fn(&str) -> bool,
    ) -> Option<(&'a Entry, Place)> {
        self.of_device(device).filter(|file| file.kind == kind).find_map(|file| {
            let matching = |entry: &&Entry| entry.matches(id, is_id);
            // The test itself weighs more than a pattern that it is among.
            let exact = file.entries.iter().find(|entry| entry.pattern == id);
            let entry = exact.or_else(|| file.entries.iter().find(matching))?;
            let place = Place { file: file.name.clone(), line: entry.line, reason: entry.reason.clone() };
            Some((entry, place))
        })
    }

    /// The line for which a test is not run on a device.
    pub fn skips(&self, device: &DeviceRecord, id: &str, is_id: &dyn Fn(&str) -> bool) -> Option<Place> {
        self.entry(Kind::Skips, device, id, is_id).map(|(_, place)| place)
    }

    /// How a verdict stands to what was expected of the test on the device.
    pub fn standing(&self, line: &RunLine, device: &DeviceRecord, is_id: &dyn Fn(&str) -> bool) -> Standing {
        let status = Status::of(line);
        if status == Status::Skip
            && let Some(place) = self.skips(device, &line.id, is_id)
        {
            return Standing::Skipped(place);
        }
        let fails = self.entry(Kind::Fails, device, &line.id, is_id);
        let flakes = self.entry(Kind::Flakes, device, &line.id, is_id);
        match (fails, flakes) {
            (None, None) => Standing::Unlisted,
            (Some((entry, place)), _) if entry.speaks_of(status) => Standing::Expected(place),
            // It may fail, and it may not: all but a violation of another kind than the listed failure is known.
            (Some(_), Some((_, place))) if status != Status::Fail => Standing::Flake(place),
            (None, Some((_, place))) => match status {
                Status::Fail => Standing::NoFlake(place),
                Status::Pass | Status::Skip => Standing::Unlisted,
                Status::Crash | Status::Timeout | Status::Missing | Status::Warn => Standing::Flake(place),
            },
            (Some((_, place)), _) if status == Status::Pass => Standing::UnexpectedPass(place),
            (Some((entry, place)), _) => Standing::Other { place, expected: entry.status },
        }
    }

    /// The lines that match no id: `known` says whether a pattern has a match. Files for devices that are not among
    /// `devices` are left out.
    pub fn unmatched(
        &self,
        devices: &[DeviceRecord],
        mut known: impl FnMut(&Entry) -> bool,
    ) -> Vec<(Place, String)> {
        let mut unmatched = Vec::new();
        for file in &self.files {
            let is_used =
                devices.iter().any(|device| self.of_device(device).any(|used| std::ptr::eq(used, file)));
            if !is_used {
                continue;
            }
            for entry in file.entries.iter().filter(|entry| !known(entry)) {
                let place = Place { file: file.name.clone(), line: entry.line, reason: String::new() };
                unmatched.push((place, entry.pattern.clone()));
            }
        }
        unmatched
    }
}
