//! The book of a run: its folder, its seed, what an earlier process came to, and lines in the order of the plan.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rand::Rng;
use results::folder::{self, Folder};
use results::wire::{PlanRecord, RunLine};
use results::write::RunWriter;

use crate::Failure;
use crate::run::Watch;
use crate::targets::Tell;

/// Where results folders are made when no other place is named.
pub const DEFAULT_OUT: &str = "vk-litmus-out";

/// Verdicts that are there already, by device and test id.
pub type Done = BTreeMap<(String, String), RunLine>;

/// Where a run is kept, and how it begins.
#[derive(Clone, Copy, Debug)]
pub struct RunPlace<'a> {
    /// Its folder; a fresh one in [`DEFAULT_OUT`] where none is named.
    pub out: Option<&'a Path>,
    /// Whether it goes on with the run that is there.
    pub resume: bool,
    /// Its seed; that of the run that goes on, or a drawn one, where none is given.
    pub seed: Option<u64>,
    /// Whether a seed that was drawn is told.
    pub tells_seed: bool,
}

impl RunPlace<'_> {
    /// Sees to it early that a run which does not go on finds nothing in its folder.
    ///
    /// # Errors
    /// When there is something in it.
    pub fn check(&self) -> Result<(), Failure> {
        match self.out.filter(|_| !self.resume) {
            Some(path) => folder::ensure_empty(path).map_err(Failure::folder),
            None => Ok(()),
        }
    }

    /// Opens the folder for a plan, whose hash and seed are filled in. Gives the seed and the verdicts that are there already.
    ///
    /// # Errors
    /// When it holds something else, or cannot be read or written.
    pub fn open(&self, mut record: PlanRecord, tell: Tell<'_>) -> Result<(Folder, u64, Done), Failure> {
        let planned = match self.out.filter(|_| self.resume) {
            Some(path) => folder::planned(path).map_err(Failure::folder)?,
            None => None,
        };
        let seed = match (self.seed, &planned) {
            (Some(seed), _) => seed,
            (None, Some(planned)) => planned.seed,
            (None, None) => {
                // Short enough to be typed again.
                let seed = u64::from(rand::rng().next_u32());
                if self.tells_seed {
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
                folder::fresh(DEFAULT_OUT.as_ref(), &now.replace(':', "-")).map_err(Failure::folder)?
            }
        };
        if !self.resume {
            return Ok((Folder::start(&path, &record).map_err(Failure::folder)?, seed, Done::new()));
        }
        let (folder, recovered) = Folder::resume(&path, &record).map_err(Failure::folder)?;
        if recovered.truncated_bytes > 0 {
            tell("warning: the journal ended in the middle of a line: that test is run again");
        }
        let lines = recovered.lines.into_iter();
        let done = lines.map(|line| ((line.device.clone(), line.id.clone()), line)).collect();
        Ok((folder, seed, done))
    }
}

/// What to make of an error of standard output.
pub fn cannot_print(error: std::io::Error) -> Failure {
    Failure::environment_message(format!("standard output: {error}"))
}

/// What grows while tests end.
pub(crate) struct Book<'w> {
    pub(crate) folder: Folder,
    writer: &'w mut dyn RunWriter,
    watch: &'w dyn Watch,
    /// A place for each cell of the plan.
    pub(crate) lines: Vec<Option<RunLine>>,
    written: usize,
    /// The tests' ids, in the order of the plan.
    ids: Vec<String>,
}

impl<'w> Book<'w> {
    /// Opens it for the cells with these ids.
    pub fn new(
        folder: Folder,
        ids: Vec<String>,
        writer: &'w mut dyn RunWriter,
        watch: &'w dyn Watch,
    ) -> Result<Book<'w>, Failure> {
        let all: Vec<&str> = ids.iter().map(String::as_str).collect();
        writer.begins(&all).map_err(cannot_print)?;
        let lines = ids.iter().map(|_| None).collect();
        let mut book = Book { folder, writer, watch, lines, written: 0, ids };
        book.announce()?;
        Ok(book)
    }

    /// Tells the writer which verdict comes next.
    fn announce(&mut self) -> Result<(), Failure> {
        match self.ids.get(self.written) {
            Some(id) => self.writer.starts(id).map_err(cannot_print),
            None => Ok(()),
        }
    }

    /// Books a new verdict: first into the journal.
    pub fn add(&mut self, cell: usize, line: RunLine) -> Result<(), Failure> {
        self.folder.append(&line).map_err(Failure::folder)?;
        self.know(cell, line)
    }

    /// Writes a line for each verdict that is missing, and gives the folder with all lines, and whether they could be written: the
    /// terminal may be gone, and the folder is finished all the same.
    pub fn close(self) -> (Folder, Vec<RunLine>, Result<(), Failure>) {
        let known: Vec<RunLine> = self.lines.iter().flatten().cloned().collect();
        let all = self.folder.plan().completed(&known);
        let left = if known.len() < all.len() { all.get(self.written..) } else { None };
        let mut left = left.unwrap_or_default().iter();
        let written = left.try_for_each(|line| self.writer.judged(line)).map_err(cannot_print);
        (self.folder, all, written)
    }

    /// Books a verdict that is in the journal already.
    pub fn know(&mut self, cell: usize, line: RunLine) -> Result<(), Failure> {
        self.watch.advances(&line);
        if let Some(place) = self.lines.get_mut(cell) {
            *place = Some(line);
        }
        while let Some(Some(line)) = self.lines.get(self.written) {
            self.writer.judged(line).map_err(cannot_print)?;
            self.written += 1;
        }
        self.announce()
    }
}
