//! The results folder of a run.
//!
//! `plan.json` and `run.jsonl` (the journal) exist from the start; `outcomes.csv` and `summary.txt` are
//! written at the end, `machine-code.jsonl` only if a test violates.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::difference::{PlanDifference, first_difference};
use crate::journal::{Journal, JournalError, RecoveredJournal};
use crate::read::{self, ReadError};
pub use crate::read::{JOURNAL, MACHINE_CODE, PLAN};
use crate::wire::{MachineCodeLine, PlanRecord, RunLine};
use crate::write::{RunWriter, TextLayout, csv, text};
use crate::{Reason, conclusion};

/// File name of the table of outcomes.
pub const OUTCOMES_FILE: &str = "outcomes.csv";
/// Number of verdicts up to which the text report has a table of them.
const MAX_TABLE_LINES: usize = 10_000;
/// File name of the text report.
pub const SUMMARY_FILE: &str = "summary.txt";

/// An open results folder; it holds the journal's lock.
#[derive(Debug)]
pub struct ResultsFolder {
    path: PathBuf,
    plan: PlanRecord,
    /// Hash of the plan's file.
    plan_hash: blake3::Hash,
    journal: Journal,
}

/// A file of a results folder that another process removed, replaced or truncated during the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangedFile {
    /// Its name in the folder.
    pub name: &'static str,
    /// True if it was written again; false if another run uses the folder.
    pub is_restored: bool,
}

/// Why a results folder cannot be used.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe the variants and their fields")]
pub enum FolderError {
    #[error("{path} is not empty: choose another --out, or resume the run in it with --resume")]
    NotEmpty { path: PathBuf },
    /// The folder has no plan.
    #[error("{path} is not a results folder: it holds no {PLAN}")]
    NotResults { path: PathBuf },
    #[error("{path} holds another run: {difference}; use another --out, or the same options")]
    OtherPlan { path: PathBuf, difference: PlanDifference },
    /// The folder's plan has another seed.
    #[error("{path} was run with seed {found}, not {wanted}")]
    OtherSeed { path: PathBuf, found: u64, wanted: u64 },
    /// The plan has an older schema: its journal can be read, but not continued.
    #[error("{path} holds a run of version `{found}`, whose verdicts have no checksums: it is not resumed")]
    OlderPlan { path: PathBuf, found: String },
    /// The plan cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The journal cannot be used.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The folder cannot be created.
    #[error("cannot create the results folder {path}: {source}; choose another one with --out DIR")]
    Create {
        /// The folder.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A file cannot be read or written.
    #[error("{path}: {source}")]
    Io { path: PathBuf, source: io::Error },
}

impl FolderError {
    /// Returns true if the user's input caused the error, rather than the system.
    pub fn is_input(&self) -> bool {
        match self {
            FolderError::NotEmpty { .. }
            | FolderError::NotResults { .. }
            | FolderError::OtherPlan { .. }
            | FolderError::OtherSeed { .. }
            | FolderError::OlderPlan { .. }
            | FolderError::Journal(JournalError::InUse { .. }) => true,
            FolderError::Read(error) | FolderError::Journal(JournalError::Read(error)) => error.is_input(),
            FolderError::Journal(JournalError::Io { .. })
            | FolderError::Create { .. }
            | FolderError::Io { .. } => false,
        }
    }
}

/// Creates the folder `parent/stamp`, or `parent/stamp-2` and so on if the name exists: two runs never share
/// one.
///
/// # Errors
/// Returns an error if it cannot be created.
pub fn create_unique(parent: &Path, stamp: &str) -> Result<PathBuf, FolderError> {
    let failed = |path: &Path, source| FolderError::Create { path: path.to_owned(), source };
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

/// Returns the plan of the folder at `path`; `None` if the folder does not exist or is empty.
///
/// # Errors
/// Returns an error if the folder has files and no valid plan.
pub fn read_plan(path: &Path) -> Result<Option<PlanRecord>, FolderError> {
    match read::read_plan(path)? {
        Some(plan) => Ok(Some(plan)),
        None if count_entries(path)? == 0 => Ok(None),
        None => Err(FolderError::NotResults { path: path.to_owned() }),
    }
}

/// Checks that a run can start in the folder at `path`: it does not exist or is empty.
///
/// # Errors
/// Returns an error if it has files or cannot be read.
pub fn ensure_empty(path: &Path) -> Result<(), FolderError> {
    match count_entries(path)? {
        0 => Ok(()),
        _ => Err(FolderError::NotEmpty { path: path.to_owned() }),
    }
}

impl ResultsFolder {
    /// Starts `plan` in the folder at `path`, which is created if missing and must be empty.
    ///
    /// # Errors
    /// Returns an error if it is not empty or cannot be written.
    pub fn start(path: &Path, plan: &PlanRecord) -> Result<ResultsFolder, FolderError> {
        ensure_empty(path)?;
        fs::create_dir_all(path).map_err(|source| FolderError::Create { path: path.to_owned(), source })?;
        // The lock on the journal is the lock on the folder. Another run may have started and ended here
        // before we got it.
        let (journal, _) = Journal::open(&path.join(JOURNAL), plan)?;
        ensure_empty(path)?;
        let plan_hash = write_plan(path, plan)?;
        Ok(ResultsFolder { path: path.to_owned(), plan: plan.clone(), plan_hash, journal })
    }

    /// Resumes `plan` in the folder at `path`, which must hold the same plan; without a folder, starts it.
    ///
    /// Two plans with a time as budget may have different times: the folder's plan then lists both. Tests that had no
    /// time lose their verdict, so that they run again.
    ///
    /// # Errors
    /// Returns an error if the folder holds another plan, is in use, or cannot be read or written.
    pub fn resume(path: &Path, plan: &PlanRecord) -> Result<(ResultsFolder, RecoveredJournal), FolderError> {
        let Some(recorded) = read_plan(path)? else {
            return ResultsFolder::start(path, plan).map(|folder| (folder, RecoveredJournal::default()));
        };
        if recorded.schema != plan.schema {
            return Err(FolderError::OlderPlan { path: path.to_owned(), found: recorded.schema });
        }
        let resumed = extend_budget(&recorded, plan)?;
        if resumed.plan != recorded.plan && resumed.plan == plan.plan {
            let hashes = || PlanDifference {
                field: "the plan".into(),
                recorded: recorded.plan.clone(),
                requested: plan.plan.clone(),
            };
            let difference = first_difference(&recorded, plan).unwrap_or_else(hashes);
            return Err(FolderError::OtherPlan { path: path.to_owned(), difference });
        }
        if recorded.seed != plan.seed {
            return Err(FolderError::OtherSeed {
                path: path.to_owned(),
                found: recorded.seed,
                wanted: plan.seed,
            });
        }
        let (mut journal, mut recovered) = Journal::open(&path.join(JOURNAL), &recorded)?;
        let plan_hash = match resumed.budget == recorded.budget {
            true => hash_plan(path).map_err(|source| FolderError::Io { path: path.join(PLAN), source })?,
            false => write_plan(path, &resumed)?,
        };
        let has_time = |line: &RunLine| !line.has_reason(Reason::NoTime);
        let (lines, repeated): (Vec<RunLine>, Vec<RunLine>) = recovered.lines.into_iter().partition(has_time);
        if !repeated.is_empty() {
            journal.replace(&lines)?;
        }
        recovered.rerun_tests = repeated.len();
        recovered.lines = lines;
        Ok((ResultsFolder { path: path.to_owned(), plan: resumed, plan_hash, journal }, recovered))
    }

    /// Writes the plan and the journal again if another process changed them during the run, and returns
    /// those files. `lines` are all verdicts of the journal. What it finds in their place gets another name.
    ///
    /// Nothing is written if another run uses the folder now.
    ///
    /// # Errors
    /// Returns an error if a file cannot be written.
    pub fn restore<'l>(
        &mut self,
        lines: impl IntoIterator<Item = &'l RunLine>,
    ) -> Result<Vec<ChangedFile>, FolderError> {
        let is_plan_intact = hash_plan(&self.path).is_ok_and(|hash| hash == self.plan_hash);
        let changed = [(PLAN, is_plan_intact), (JOURNAL, self.journal.is_intact())];
        let changed = changed.into_iter().filter(|(_, is_intact)| !is_intact).map(|(name, _)| name);
        let is_restored = !self.journal.is_taken_over();
        let changed: Vec<ChangedFile> = changed.map(|name| ChangedFile { name, is_restored }).collect();
        if is_restored && !changed.is_empty() {
            let failed = |source| FolderError::Create { path: self.path.clone(), source };
            fs::create_dir_all(&self.path).map_err(failed)?;
        }
        let mut lines = Some(lines);
        for file in changed.iter().filter(|file| file.is_restored) {
            let path = self.path.join(file.name);
            if fs::metadata(&path).is_ok_and(|found| found.len() > 0) {
                // The content may be precious elsewhere.
                let kept = self.path.join(format!("{}{CHANGED}", file.name));
                fs::rename(&path, kept).map_err(|source| FolderError::Io { path, source })?;
            }
            match file.name {
                PLAN => self.plan_hash = write_plan(&self.path, &self.plan)?,
                _ => self.journal.replace(lines.take().into_iter().flatten())?,
            }
        }
        Ok(changed)
    }

    /// Returns the folder's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the plan of the run.
    pub fn plan(&self) -> &PlanRecord {
        &self.plan
    }

    /// Appends a verdict to the journal, and syncs it to disk if the test ran.
    ///
    /// # Errors
    /// Returns an error if it cannot be written.
    pub fn append(&mut self, line: &RunLine) -> Result<(), FolderError> {
        // A test that did not run is repeated at no cost, and there may be 100,000 of them.
        match line.instances {
            0 => Ok(self.journal.append_unsynced(line)?),
            _ => Ok(self.journal.append(line)?),
        }
    }

    /// Returns true if nothing shows so far that another process changed the journal.
    pub fn is_journal_in_place(&self) -> bool {
        self.journal.is_in_place()
    }

    /// Writes the table of outcomes and the text report of the complete lines of the plan.
    ///
    /// # Errors
    /// Returns an error if a file cannot be written.
    pub fn finish(&self, lines: &[RunLine]) -> Result<(), FolderError> {
        let outcomes = self.path.join(OUTCOMES_FILE);
        let mut bytes = Vec::new();
        {
            let mut writer = csv::CsvWriter::for_verdicts(&mut bytes);
            lines
                .iter()
                .try_for_each(|line| writer.write_verdict(line))
                .and_then(|()| writer.finish())
                .map_err(|source| FolderError::Io { path: outcomes.clone(), source })?;
        }
        replace_file(&outcomes, &bytes)?;
        let layout = TextLayout { is_brief: lines.len() > MAX_TABLE_LINES, ..TextLayout::default() };
        let summary = conclusion::format_conclusions(&self.plan, lines) + &text::format_report(lines, layout);
        replace_file(&self.path.join(SUMMARY_FILE), summary.as_bytes())
    }

    /// Writes the machine code of violating tests and replaces the previous file; without lines, writes none.
    ///
    /// # Errors
    /// Returns an error if it cannot be written.
    pub fn write_machine_code(&self, lines: &[MachineCodeLine]) -> Result<(), FolderError> {
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
        replace_file(&path, &bytes)
    }
}

/// Returns the hash of the file with the plan in the folder at `path`.
fn hash_plan(path: &Path) -> io::Result<blake3::Hash> {
    let mut hasher = blake3::Hasher::new();
    io::copy(&mut fs::File::open(path.join(PLAN))?, &mut hasher)?;
    Ok(hasher.finalize())
}

/// Writes the plan of the folder at `path`, and returns the hash of its file.
fn write_plan(path: &Path, plan: &PlanRecord) -> Result<blake3::Hash, FolderError> {
    let mut text = serde_json::to_vec_pretty(plan)
        .map_err(|source| FolderError::Io { path: path.join(PLAN), source: source.into() })?;
    text.push(b'\n');
    replace_file(&path.join(PLAN), &text)?;
    Ok(blake3::hash(&text))
}

/// Returns the plan of a run that `requested` resumes: that of `found`, with the further time if both have a time as
/// budget, else `requested`.
fn extend_budget(found: &PlanRecord, requested: &PlanRecord) -> Result<PlanRecord, FolderError> {
    let hash = |plan: &PlanRecord| {
        plan.hash().map_err(|source| FolderError::Io { path: PLAN.into(), source: source.into() })
    };
    let is_time = |plan: &PlanRecord| plan.instance_budget().is_none();
    let last_time = found.budget.rsplit(BUDGET_SEPARATOR).next().unwrap_or_default();
    let same = PlanRecord { budget: found.budget.clone(), ..requested.clone() };
    if !is_time(found) || !is_time(requested) || hash(&same)? != found.plan {
        return Ok(requested.clone());
    }
    if last_time == requested.budget {
        return Ok(found.clone());
    }
    let budget = format!("{}{BUDGET_SEPARATOR}{}", found.budget, requested.budget);
    let mut resumed = PlanRecord { budget, ..found.clone() };
    resumed.plan = hash(&resumed)?;
    Ok(resumed)
}

/// Separator of the times of a run that was resumed with another one.
const BUDGET_SEPARATOR: &str = ", then ";

/// Counts the entries of a folder; 0 if it does not exist. An empty journal and an unfinished plan do not
/// count: a run that was killed before it wrote its plan leaves them.
fn count_entries(path: &Path) -> Result<usize, FolderError> {
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
        let is_leftover = entry.metadata().is_ok_and(|found| {
            found.is_file() && (is(JOURNAL) && found.len() == 0 || is(&format!("{PLAN}{UNFINISHED}")))
        });
        number += usize::from(!is_leftover);
    }
    Ok(number)
}

/// Suffix of files that another process wrote in place of those of a run.
const CHANGED: &str = ".changed";

/// Suffix of files that are being written.
const UNFINISHED: &str = ".unfinished";

/// Replaces a file atomically: a reader sees the old or the new content. A symbolic link is replaced, and its
/// target stays unchanged.
///
/// # Errors
/// Returns an error if it cannot be written.
pub fn replace_file(path: &Path, content: &[u8]) -> Result<(), FolderError> {
    let io = |source| FolderError::Io { path: path.to_owned(), source };
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(UNFINISHED);
    let unfinished = path.with_file_name(name);
    // Left by a process that was killed while it wrote.
    match fs::remove_file(&unfinished) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(io(error)),
        _ => {}
    }
    let mut file = fs::File::create_new(&unfinished).map_err(io)?;
    file.write_all(content).and_then(|()| file.sync_data()).map_err(io)?;
    fs::rename(&unfinished, path).map_err(io)
}
