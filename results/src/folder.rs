//! The results folder of a run: `plan.json`, `run.jsonl` (the journal), and at the end `outcomes.csv` and `summary.txt`; and
//! `machine-code.jsonl` where something violates.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::journal::{Journal, JournalError, Recovered};
use crate::read::{self, ReadError};
use crate::wire::{MachineCodeLine, PlanRecord, RunLine};
use crate::write::{Layout, RunWriter, csv, text};

/// The plan's file.
pub const PLAN: &str = "plan.json";
/// The journal's file.
pub const JOURNAL: &str = "run.jsonl";
/// The table of outcomes.
pub const OUTCOMES: &str = "outcomes.csv";
/// The text report.
pub const SUMMARY: &str = "summary.txt";
/// The machine code of tests that violate.
pub const MACHINE_CODE: &str = "machine-code.jsonl";

/// An open results folder.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    plan: PlanRecord,
    journal: Journal,
}

/// Why a results folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// Something is in the way.
    #[error("{path} is not empty: choose another folder, or resume the run in it")]
    NotEmpty {
        /// The folder.
        path: PathBuf,
    },
    /// It is no results folder.
    #[error("{path} is not a results folder: it holds no {PLAN}")]
    NotResults {
        /// The folder.
        path: PathBuf,
    },
    /// It belongs to another plan.
    #[error(
        "{path} holds another plan ({found}, not {wanted}): tests, devices, models, budget, stress or tool differ"
    )]
    OtherPlan {
        /// The folder.
        path: PathBuf,
        /// The hash of its plan.
        found: String,
        /// The hash of the plan that was to be resumed.
        wanted: String,
    },
    /// Its plan was drawn from another seed.
    #[error("{path} was run with seed {found}, not {wanted}")]
    OtherSeed {
        /// The folder.
        path: PathBuf,
        /// Its seed.
        found: u64,
        /// The seed asked for.
        wanted: u64,
    },
    /// The plan is of an older version, whose journals are read, and not gone on with.
    #[error("{path} holds a run of version `{found}`, whose verdicts have no checksums: it is not resumed")]
    OlderPlan {
        /// The folder.
        path: PathBuf,
        /// The version found.
        found: String,
    },
    /// The plan cannot be used.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The journal cannot be used.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A file cannot be read or written.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

impl FolderError {
    /// Whether the fault lies in what was asked for, not in the system.
    pub fn is_input(&self) -> bool {
        match self {
            FolderError::NotEmpty { .. }
            | FolderError::NotResults { .. }
            | FolderError::OtherPlan { .. }
            | FolderError::OtherSeed { .. }
            | FolderError::OlderPlan { .. }
            | FolderError::Journal(JournalError::InUse { .. }) => true,
            FolderError::Read(error) | FolderError::Journal(JournalError::Read(error)) => error.is_input(),
            FolderError::Journal(JournalError::Io { .. }) | FolderError::Io { .. } => false,
        }
    }
}

/// Makes a fresh folder `parent/stamp`, or `parent/stamp-2` and so on when the name is taken: two runs never share one.
///
/// # Errors
/// When it cannot be made.
pub fn fresh(parent: &Path, stamp: &str) -> Result<PathBuf, FolderError> {
    let failed = |path: &Path, source| FolderError::Io { path: path.to_owned(), source };
    fs::create_dir_all(parent).map_err(|source| failed(parent, source))?;
    let mut number = 1_u32;
    loop {
        let name = if number == 1 { stamp.to_owned() } else { format!("{stamp}-{number}") };
        let path = parent.join(name);
        match fs::create_dir(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < 10_000 => number += 1,
            Err(source) => return Err(failed(&path, source)),
        }
    }
}

/// The plan of the folder at `path`; nothing when there is no folder, or an empty one.
///
/// # Errors
/// When there is something, and it is no results folder.
pub fn planned(path: &Path) -> Result<Option<PlanRecord>, FolderError> {
    match read::planned(path)? {
        Some(plan) => Ok(Some(plan)),
        None if entries(path)? == 0 => Ok(None),
        None => Err(FolderError::NotResults { path: path.to_owned() }),
    }
}

/// Sees to it that a run may start in the folder at `path`: there is none, or an empty one.
///
/// # Errors
/// When there is something in it, or it cannot be read.
pub fn ensure_empty(path: &Path) -> Result<(), FolderError> {
    match entries(path)? {
        0 => Ok(()),
        _ => Err(FolderError::NotEmpty { path: path.to_owned() }),
    }
}

impl Folder {
    /// Starts `plan` in the folder at `path`, which is made where there is none and must be empty.
    ///
    /// # Errors
    /// When it is not empty or cannot be written.
    pub fn start(path: &Path, plan: &PlanRecord) -> Result<Folder, FolderError> {
        ensure_empty(path)?;
        fs::create_dir_all(path).map_err(|source| FolderError::Io { path: path.to_owned(), source })?;
        // Whoever has the journal's lock has the folder; another run may have begun and ended in it meanwhile.
        let (journal, _) = Journal::open(&path.join(JOURNAL), plan)?;
        ensure_empty(path)?;
        let mut text = serde_json::to_vec_pretty(plan)
            .map_err(|source| FolderError::Io { path: path.join(PLAN), source: source.into() })?;
        text.push(b'\n');
        replace(&path.join(PLAN), &text)?;
        Ok(Folder { path: path.to_owned(), plan: plan.clone(), journal })
    }

    /// Goes on with `plan` in the folder at `path`, which must hold the same plan; where there is no folder, starts it.
    ///
    /// # Errors
    /// When the folder holds something else, is in use, or cannot be read or written.
    pub fn resume(path: &Path, plan: &PlanRecord) -> Result<(Folder, Recovered), FolderError> {
        let Some(found) = planned(path)? else {
            return Folder::start(path, plan).map(|folder| (folder, Recovered::default()));
        };
        if found.schema != plan.schema {
            return Err(FolderError::OlderPlan { path: path.to_owned(), found: found.schema });
        }
        if found.plan != plan.plan {
            return Err(FolderError::OtherPlan {
                path: path.to_owned(),
                found: found.plan,
                wanted: plan.plan.clone(),
            });
        }
        if found.seed != plan.seed {
            return Err(FolderError::OtherSeed {
                path: path.to_owned(),
                found: found.seed,
                wanted: plan.seed,
            });
        }
        let (journal, recovered) = Journal::open(&path.join(JOURNAL), &found)?;
        Ok((Folder { path: path.to_owned(), plan: found, journal }, recovered))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What is to be run in it.
    pub fn plan(&self) -> &PlanRecord {
        &self.plan
    }

    /// Adds a verdict to the journal, flushed.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn append(&mut self, line: &RunLine) -> Result<(), FolderError> {
        Ok(self.journal.append(line)?)
    }

    /// Writes the table of outcomes and the text report of all verdicts, in plan order; those that are missing are told there.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn finish(&self, lines: &[RunLine]) -> Result<(), FolderError> {
        let lines = &self.plan.completed(lines);
        let outcomes = self.path.join(OUTCOMES);
        let mut bytes = Vec::new();
        {
            let mut writer = csv::Run::new(&mut bytes);
            lines
                .iter()
                .try_for_each(|line| writer.judged(line))
                .and_then(|()| writer.finish())
                .map_err(|source| FolderError::Io { path: outcomes.clone(), source })?;
        }
        replace(&outcomes, &bytes)?;
        replace(&self.path.join(SUMMARY), text::report(lines, Layout::default()).as_bytes())
    }

    /// Writes the machine code of tests that violate, in place of what was there; no file where there is none.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn keep_machine_code(&self, lines: &[MachineCodeLine]) -> Result<(), FolderError> {
        if lines.is_empty() {
            return Ok(());
        }
        let path = self.path.join(MACHINE_CODE);
        let mut bytes = Vec::new();
        for line in lines {
            serde_json::to_writer(&mut bytes, line)
                .map_err(|source| FolderError::Io { path: path.clone(), source: source.into() })?;
            bytes.push(b'\n');
        }
        replace(&path, &bytes)
    }
}

/// Number of entries of a folder, but for what a run leaves that was ended before its plan was written: an empty journal and
/// a plan that is not finished. 0 when there is no folder.
fn entries(path: &Path) -> Result<usize, FolderError> {
    let io = |source| FolderError::Io { path: path.to_owned(), source };
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(source) => return Err(io(source)),
    };
    let mut number = 0;
    for entry in entries {
        let entry = entry.map_err(io)?;
        let is = |name: &str| entry.file_name() == name;
        let left = entry.metadata().is_ok_and(|found| {
            found.is_file() && (is(JOURNAL) && found.len() == 0 || is(&format!("{PLAN}{UNFINISHED}")))
        });
        number += usize::from(!left);
    }
    Ok(number)
}

/// How the names of files end that are being written.
const UNFINISHED: &str = ".unfinished";

/// Replaces a file as a whole: whoever reads it sees the old or the new content. It is made anew: what a link of its name
/// points at stays as it is.
///
/// # Errors
/// When it cannot be written.
pub fn replace(path: &Path, content: &[u8]) -> Result<(), FolderError> {
    let io = |source| FolderError::Io { path: path.to_owned(), source };
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(UNFINISHED);
    let unfinished = path.with_file_name(name);
    // What an earlier process left.
    match fs::remove_file(&unfinished) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(io(error)),
        _ => {}
    }
    let mut file = fs::File::create_new(&unfinished).map_err(io)?;
    file.write_all(content).and_then(|()| file.sync_data()).map_err(io)?;
    fs::rename(&unfinished, path).map_err(io)
}
