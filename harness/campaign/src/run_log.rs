//! The on-disk log of a run: its folder, its seed, the verdicts of an earlier process, and output in plan
//! order.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rand::Rng;
use results::folder::{self, ChangedFile, ResultsFolder};
use results::wire::{PlanRecord, RunLine};
use results::write::RunWriter;
use results::write::number::plural;

use crate::Failure;
use crate::observer::RunObserver;
use crate::targets::MessageSink;

/// The parent of the results folders that get a generated name.
pub const DEFAULT_OUTPUT_FOLDER: &str = "vk-litmus-out";

/// Verdicts of an earlier process, by device and test id.
pub type EarlierVerdicts = BTreeMap<(String, String), RunLine>;

#[derive(Clone, Copy, Debug)]
pub struct RunFolderOptions<'a> {
    /// The folder; if none, a new one in [`DEFAULT_OUTPUT_FOLDER`].
    pub folder: Option<&'a Path>,
    /// Continues the run that the folder holds.
    pub is_resumed: bool,
    /// The seed; if none, that of the resumed run, or a random one.
    pub seed: Option<u64>,
    /// Prints a random seed, and a description of the resumed run.
    pub is_verbose: bool,
}

impl RunFolderOptions<'_> {
    /// Checks early that the folder of a new run is empty.
    ///
    /// # Errors
    /// If it is not.
    pub fn ensure_empty_folder(&self) -> Result<(), Failure> {
        match self.folder.filter(|_| !self.is_resumed) {
            Some(path) => folder::ensure_empty(path).map_err(Failure::folder_error),
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
        on_message: MessageSink<'_>,
    ) -> Result<(ResultsFolder, u64, EarlierVerdicts), Failure> {
        let recorded_plan = match self.folder.filter(|_| self.is_resumed) {
            Some(path) => folder::read_plan(path).map_err(Failure::folder_error)?,
            None => None,
        };
        let seed = match (self.seed, &recorded_plan) {
            (Some(seed), _) => seed,
            (None, Some(planned)) => planned.seed,
            (None, None) => {
                // 32 bits, so that a reader can type it again.
                let seed = u64::from(rand::rng().next_u32());
                if self.is_verbose {
                    on_message(&format!("seed {seed}"));
                }
                seed
            }
        };
        record.plan = record.hash().map_err(Failure::environment_error)?;
        record.seed = seed;
        let path: PathBuf = match self.folder {
            Some(path) => path.to_owned(),
            None => {
                let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
                folder::create_unique(DEFAULT_OUTPUT_FOLDER.as_ref(), &now.replace(':', "-"))
                    .map_err(Failure::folder_error)?
            }
        };
        if !self.is_resumed {
            return Ok((
                ResultsFolder::start(&path, &record).map_err(Failure::folder_error)?,
                seed,
                EarlierVerdicts::new(),
            ));
        }
        let (folder, recovered) = ResultsFolder::resume(&path, &record).map_err(Failure::folder_error)?;
        if recovered.truncated_bytes > 0 {
            on_message("warning: the last line of the journal is incomplete: its test is run again");
        }
        if self.is_verbose {
            let total = folder.plan().tests.len() * folder.plan().devices.len();
            on_message(&describe_resumed_run(total, recovered.lines.len(), recovered.rerun_tests));
        }
        let lines = recovered.lines.into_iter();
        let verdicts = lines.map(|line| ((line.device.clone(), line.id.clone()), line)).collect();
        Ok((folder, seed, verdicts))
    }
}

/// Describes a resumed run: `total` test runs, of which `done` have a verdict and `repeated` had no time.
fn describe_resumed_run(total: usize, done: usize, repeated: usize) -> String {
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

/// Converts an error of standard output.
pub fn stdout_failure(error: std::io::Error) -> Failure {
    Failure::environment_message(format!("standard output: {error}"))
}

/// The log of a run in progress: journal, observer and writer.
pub(crate) struct RunLog<'w> {
    pub(crate) folder: ResultsFolder,
    writer: &'w mut dyn RunWriter,
    observer: &'w dyn RunObserver,
    /// One slot for each test run of the plan.
    pub(crate) lines: Vec<Option<RunLine>>,
    written_count: usize,
    /// The ids of the tests, in plan order.
    ids: Vec<String>,
    changed_files: Vec<ChangedFile>,
}

/// The log of a run that ended.
pub(crate) struct FinishedLog {
    pub(crate) folder: ResultsFolder,
    /// The verdicts in plan order, with placeholders for missing ones.
    pub(crate) lines: Vec<RunLine>,
    pub(crate) changed_files: Vec<ChangedFile>,
    /// The result of printing the missing lines.
    pub(crate) printed: Result<(), Failure>,
}

impl<'w> RunLog<'w> {
    /// Creates the log of the test runs with these ids and prints the header.
    pub fn new(
        folder: ResultsFolder,
        ids: Vec<String>,
        writer: &'w mut dyn RunWriter,
        observer: &'w dyn RunObserver,
    ) -> Result<RunLog<'w>, Failure> {
        let all: Vec<&str> = ids.iter().map(String::as_str).collect();
        writer.announce_tests(&all).map_err(stdout_failure)?;
        let lines = ids.iter().map(|_| None).collect();
        let mut book =
            RunLog { folder, writer, observer, lines, written_count: 0, ids, changed_files: Vec::new() };
        book.announce_next()?;
        Ok(book)
    }

    /// Names the next verdict to the writer.
    fn announce_next(&mut self) -> Result<(), Failure> {
        match self.ids.get(self.written_count) {
            Some(id) => self.writer.announce_test(id).map_err(stdout_failure),
            None => Ok(()),
        }
    }

    /// Records a new verdict. The journal comes first, so that a crash loses no verdict that was printed.
    pub fn record_verdict(&mut self, index: usize, line: RunLine) -> Result<(), Failure> {
        self.folder.append(&line).map_err(Failure::folder_error)?;
        self.replay_verdict(index, line)?;
        // A killed process restores nothing later.
        if self.folder.is_journal_in_place() { Ok(()) } else { self.restore_folder() }
    }

    fn restore_folder(&mut self) -> Result<(), Failure> {
        for file in self.folder.restore(self.lines.iter().flatten()).map_err(Failure::folder_error)? {
            self.changed_files.retain(|known| known.name != file.name);
            self.changed_files.push(file);
        }
        Ok(())
    }

    /// Ends the log, restores and completes its folder, and prints the lines that were missing.
    ///
    /// A failed print is part of the result: the terminal may be closed, and the folder is completed
    /// nevertheless.
    ///
    /// # Errors
    /// If the folder cannot be written.
    pub fn finish(mut self) -> Result<FinishedLog, Failure> {
        self.restore_folder()?;
        let verdicts: Vec<RunLine> = std::mem::take(&mut self.lines).into_iter().flatten().collect();
        let is_complete = verdicts.len() == self.ids.len();
        let all = if is_complete { verdicts } else { self.folder.plan().complete_lines(verdicts) };
        let mut missing = all.get(self.written_count..).unwrap_or_default().iter();
        let printed = missing.try_for_each(|line| self.writer.write_verdict(line)).map_err(stdout_failure);
        if self.changed_files.iter().all(|file| file.is_restored) {
            self.folder.finish(&all).map_err(Failure::folder_error)?;
        }
        Ok(FinishedLog { folder: self.folder, lines: all, changed_files: self.changed_files, printed })
    }

    /// Replays a verdict that is in the journal already, and prints every line that is complete in plan
    /// order.
    pub fn replay_verdict(&mut self, index: usize, line: RunLine) -> Result<(), Failure> {
        self.observer.on_verdict(&line);
        if let Some(slot) = self.lines.get_mut(index) {
            *slot = Some(line);
        }
        while let Some(Some(line)) = self.lines.get(self.written_count) {
            self.writer.write_verdict(line).map_err(stdout_failure)?;
            self.written_count += 1;
        }
        self.announce_next()
    }
}
