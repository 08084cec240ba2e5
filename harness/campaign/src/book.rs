//! The on-disk log of a run: its folder, its seed, the verdicts of an earlier process, and output in plan
//! order.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rand::Rng;
use results::folder::{self, ResultsFolder};
use results::wire::{PlanRecord, RunLine};
use results::write::RunWriter;
use results::write::number::plural;

use crate::Failure;
use crate::targets::Tell;
use crate::watch::Watch;

/// The parent of the results folders that get a generated name.
pub const DEFAULT_OUT: &str = "vk-litmus-out";

/// Verdicts of an earlier process, by device and test id.
pub type Done = BTreeMap<(String, String), RunLine>;

/// Options for the results folder of a run.
#[derive(Clone, Copy, Debug)]
pub struct RunPlace<'a> {
    /// The folder; if none, a new one in [`DEFAULT_OUT`].
    pub out: Option<&'a Path>,
    /// Continues the run that the folder holds.
    pub resume: bool,
    /// The seed; if none, that of the resumed run, or a random one.
    pub seed: Option<u64>,
    /// Prints a random seed, and a description of the resumed run.
    pub is_verbose: bool,
}

impl RunPlace<'_> {
    /// Checks early that the folder of a new run is empty.
    ///
    /// # Errors
    /// If it is not.
    pub fn check(&self) -> Result<(), Failure> {
        match self.out.filter(|_| !self.resume) {
            Some(path) => folder::ensure_empty(path).map_err(Failure::folder),
            None => Ok(()),
        }
    }

    /// Opens the folder for a plan, after filling in its hash and its seed. Returns the seed and the verdicts
    /// that the folder already holds.
    ///
    /// # Errors
    /// If the folder holds another plan, or cannot be read or written.
    pub fn open(
        &self,
        mut record: PlanRecord,
        tell: Tell<'_>,
    ) -> Result<(ResultsFolder, u64, Done), Failure> {
        let planned = match self.out.filter(|_| self.resume) {
            Some(path) => folder::read_plan(path).map_err(Failure::folder)?,
            None => None,
        };
        let seed = match (self.seed, &planned) {
            (Some(seed), _) => seed,
            (None, Some(planned)) => planned.seed,
            (None, None) => {
                // 32 bits, so that a reader can type it again.
                let seed = u64::from(rand::rng().next_u32());
                if self.is_verbose {
                    tell(&format!("seed {seed}"));
                }
                seed
            }
        };
        record.plan = record.hash().map_err(Failure::environment_error)?;
        record.seed = seed;
        let path: PathBuf = match self.out {
            Some(path) => path.to_owned(),
            None => {
                let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
                folder::create_unique(DEFAULT_OUT.as_ref(), &now.replace(':', "-"))
                    .map_err(Failure::folder)?
            }
        };
        if !self.resume {
            return Ok((ResultsFolder::start(&path, &record).map_err(Failure::folder)?, seed, Done::new()));
        }
        let (folder, recovered) = ResultsFolder::resume(&path, &record).map_err(Failure::folder)?;
        if recovered.truncated_bytes > 0 {
            tell("warning: the last line of the journal is incomplete: its test is run again");
        }
        if self.is_verbose {
            let total = folder.plan().tests.len() * folder.plan().devices.len();
            tell(&resumed_note(total, recovered.lines.len(), recovered.rerun_tests));
        }
        let lines = recovered.lines.into_iter();
        let done = lines.map(|line| ((line.device.clone(), line.id.clone()), line)).collect();
        Ok((folder, seed, done))
    }
}

/// Describes a resumed run: `total` test runs, of which `done` have a verdict and `repeated` had no time.
fn resumed_note(total: usize, done: usize, repeated: usize) -> String {
    let left = total.saturating_sub(done + repeated);
    let tests = |number: usize| plural(number as u64, "test");
    match (repeated, left) {
        (0, 0) => format!("resumed: all of {} have a verdict", tests(total)),
        (0, left) => format!("resumed: {done} of {} have a verdict; running the other {left}", tests(total)),
        (again, 0) => format!(
            "resumed: {done} of {} have a verdict; running {again} again that had too little time",
            tests(total)
        ),
        (again, left) => format!(
            "resumed: {done} of {} have a verdict; running {again} again that had too little time, and \
             {left} for the first time",
            tests(total)
        ),
    }
}

/// Returns the failure for an error of standard output.
pub fn cannot_print(error: std::io::Error) -> Failure {
    Failure::environment_message(format!("standard output: {error}"))
}

/// The log of a run in progress: journal, observer and writer.
pub(crate) struct Book<'w> {
    pub(crate) folder: ResultsFolder,
    writer: &'w mut dyn RunWriter,
    watch: &'w dyn Watch,
    /// One slot for each test run of the plan.
    pub(crate) lines: Vec<Option<RunLine>>,
    written: usize,
    /// The ids of the tests, in plan order.
    ids: Vec<String>,
}

impl<'w> Book<'w> {
    /// Creates the log of the test runs with these ids and prints the header.
    pub fn new(
        folder: ResultsFolder,
        ids: Vec<String>,
        writer: &'w mut dyn RunWriter,
        watch: &'w dyn Watch,
    ) -> Result<Book<'w>, Failure> {
        let all: Vec<&str> = ids.iter().map(String::as_str).collect();
        writer.announce_tests(&all).map_err(cannot_print)?;
        let lines = ids.iter().map(|_| None).collect();
        let mut book = Book { folder, writer, watch, lines, written: 0, ids };
        book.announce()?;
        Ok(book)
    }

    /// Names the next verdict to the writer.
    fn announce(&mut self) -> Result<(), Failure> {
        match self.ids.get(self.written) {
            Some(id) => self.writer.announce_test(id).map_err(cannot_print),
            None => Ok(()),
        }
    }

    /// Records a new verdict. The journal comes first, so that a crash loses no verdict that was printed.
    pub fn add(&mut self, cell: usize, line: RunLine) -> Result<(), Failure> {
        self.folder.append(&line).map_err(Failure::folder)?;
        self.know(cell, line)
    }

    /// Ends the log and returns the folder, all lines, and the result of printing those that were missing.
    ///
    /// A failed print is part of the result: the terminal may be closed, and the folder is completed
    /// nevertheless.
    pub fn close(self) -> (ResultsFolder, Vec<RunLine>, Result<(), Failure>) {
        let known: Vec<RunLine> = self.lines.iter().flatten().cloned().collect();
        let all = self.folder.plan().complete_lines(&known);
        let left = if known.len() < all.len() { all.get(self.written..) } else { None };
        let mut left = left.unwrap_or_default().iter();
        let written = left.try_for_each(|line| self.writer.write_verdict(line)).map_err(cannot_print);
        (self.folder, all, written)
    }

    /// Replays a verdict that is in the journal already, and prints every line that is complete in plan
    /// order.
    pub fn know(&mut self, cell: usize, line: RunLine) -> Result<(), Failure> {
        self.watch.advances(&line);
        if let Some(place) = self.lines.get_mut(cell) {
            *place = Some(line);
        }
        while let Some(Some(line)) = self.lines.get(self.written) {
            self.writer.write_verdict(line).map_err(cannot_print)?;
            self.written += 1;
        }
        self.announce()
    }
}
