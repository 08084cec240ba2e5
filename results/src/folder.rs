//! The results folder of a run: `plan.json`, `run.jsonl` (the journal), and at the end `outcomes.csv` and `summary.txt`; and
//! `machine-code.jsonl` where something violates.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::journal::{Journal, JournalError, Recovered};
use crate::wire::{MachineCodeLine, PLAN_SCHEMA, PlanRecord, RunLine};
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
    /// The plan's file holds something else.
    #[error("{path}: not a plan: {source}")]
    MalformedPlan {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// The plan is of another version.
    #[error("{path}: a plan of version `{found}`, this tool reads `{PLAN_SCHEMA}`")]
    PlanVersion {
        /// The file.
        path: PathBuf,
        /// The version found.
        found: String,
    },
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
            | FolderError::MalformedPlan { .. }
            | FolderError::PlanVersion { .. }
            | FolderError::Journal(
                JournalError::Malformed { .. } | JournalError::Version { .. } | JournalError::InUse { .. },
            ) => true,
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
    let file = path.join(PLAN);
    let io = |source| FolderError::Io { path: file.clone(), source };
    match fs::read(&file) {
        Ok(bytes) => {
            let plan: PlanRecord = serde_json::from_slice(&bytes)
                .map_err(|source| FolderError::MalformedPlan { path: file.clone(), source })?;
            if plan.schema != PLAN_SCHEMA {
                return Err(FolderError::PlanVersion { path: file, found: plan.schema });
            }
            Ok(Some(plan))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => match entries(path)? {
            0 => Ok(None),
            _ => Err(FolderError::NotResults { path: path.to_owned() }),
        },
        Err(source) => Err(io(source)),
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
        let mut text = serde_json::to_vec_pretty(plan)
            .map_err(|source| FolderError::Io { path: path.join(PLAN), source: source.into() })?;
        text.push(b'\n');
        replace(&path.join(PLAN), &text)?;
        let (journal, _) = Journal::open(&path.join(JOURNAL))?;
        Ok(Folder { path: path.to_owned(), journal })
    }

    /// Goes on with `plan` in the folder at `path`, which must hold the same plan; where there is no folder, starts it.
    ///
    /// # Errors
    /// When the folder holds something else, is in use, or cannot be read or written.
    pub fn resume(path: &Path, plan: &PlanRecord) -> Result<(Folder, Recovered), FolderError> {
        let Some(found) = planned(path)? else {
            return Folder::start(path, plan).map(|folder| (folder, Recovered::default()));
        };
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
        let (journal, recovered) = Journal::open(&path.join(JOURNAL))?;
        Ok((Folder { path: path.to_owned(), journal }, recovered))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a verdict to the journal, flushed.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn append(&mut self, line: &RunLine) -> Result<(), FolderError> {
        Ok(self.journal.append(line)?)
    }

    /// Writes the table of outcomes and the text report of all verdicts, in plan order.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn finish(&self, lines: &[RunLine]) -> Result<(), FolderError> {
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

/// Number of entries of a folder; 0 when there is no folder.
fn entries(path: &Path) -> Result<usize, FolderError> {
    match fs::read_dir(path) {
        Ok(entries) => Ok(entries.count()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(source) => Err(FolderError::Io { path: path.to_owned(), source }),
    }
}

/// Replaces a file as a whole: whoever reads it sees the old or the new content.
///
/// # Errors
/// When it cannot be written.
pub fn replace(path: &Path, content: &[u8]) -> Result<(), FolderError> {
    let io = |source| FolderError::Io { path: path.to_owned(), source };
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".unfinished");
    let unfinished = path.with_file_name(name);
    let mut file = fs::File::create(&unfinished).map_err(io)?;
    file.write_all(content).and_then(|()| file.sync_data()).map_err(io)?;
    fs::rename(&unfinished, path).map_err(io)
}
