//! The journal: an append-only log of verdicts, one JSON line each, with a checksum and flushed.
//!
//! A run that is killed loses at most the verdict that it was writing. A damaged line is detected and never
//! counted.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

pub use crate::checksum::{seal_record, verify_checksum};
use crate::read::{self, ReadError};
use crate::wire::{PlanRecord, RunLine};

/// An open journal. Only the judging process writes to it; the file lock ends with the process.
#[derive(Debug)]
pub struct Journal {
    file: File,
    path: PathBuf,
    /// The file that was locked first; its lock is held, as another process may have opened it before it was replaced.
    original_file: Option<File>,
}

/// The content of a journal when it was opened.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecoveredJournal {
    /// The complete lines, in plan order.
    pub lines: Vec<RunLine>,
    /// Number of tests whose verdict was removed, because they had no time and run again.
    pub rerun_tests: usize,
    /// Size in bytes of an incomplete last line, which was removed: its writer was killed while writing.
    pub truncated_bytes: u64,
}

/// Why a journal cannot be used.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe the variants and their fields")]
pub enum JournalError {
    /// The file cannot be read or written.
    #[error("{path}: {source}")]
    Io { path: PathBuf, source: io::Error },
    #[error("{path} is in use by another run")]
    InUse { path: PathBuf },
    /// The content is not a list of verdicts of its plan.
    #[error(transparent)]
    Read(#[from] ReadError),
}

impl Journal {
    /// Opens the journal of `plan` at `path`, creates it if missing, and reads its verdicts. An incomplete
    /// last line is removed, so that the next record starts on a new line.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or written, is in use, or holds anything but unchanged
    /// verdicts of the plan, at most one for each test and device.
    pub fn open(path: &Path, plan: &PlanRecord) -> Result<(Journal, RecoveredJournal), JournalError> {
        let io = |source| JournalError::Io { path: path.to_owned(), source };
        match std::fs::symlink_metadata(path) {
            Ok(found) if !found.is_file() => return Err(ReadError::NotAFile { path: path.to_owned() }.into()),
            _ => {}
        }
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).map_err(io)?;
        file.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => JournalError::InUse { path: path.to_owned() },
            TryLockError::Error(source) => io(source),
        })?;
        let found = read::read_lines(path, BufReader::new(&file), Some(plan.clone()))?;
        let truncated_bytes = found.incomplete.map_or(0, |incomplete| incomplete.bytes as u64);
        let end = file.seek(SeekFrom::End(0)).map_err(io)?.saturating_sub(truncated_bytes);
        file.set_len(end).and_then(|()| file.seek(SeekFrom::End(0))).map_err(io)?;
        let journal = Journal { file, path: path.to_owned(), original_file: None };
        Ok((journal, RecoveredJournal { lines: found.lines, rerun_tests: 0, truncated_bytes }))
    }

    /// Replaces the content by these lines, atomically: a reader sees the old or the new content.
    ///
    /// # Errors
    /// Returns an error if the new file cannot be written or locked.
    pub fn replace(&mut self, lines: &[RunLine]) -> Result<(), JournalError> {
        let failed = |source| JournalError::Io { path: self.path.clone(), source };
        let mut text = Vec::new();
        for line in lines {
            text.extend(seal_record(line).map_err(|error| failed(error.into()))?);
        }
        let unfinished = self.path.with_extension("unfinished");
        // Left by a process that was killed here; a link in its place must not be followed.
        match std::fs::remove_file(&unfinished) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
        let mut file = File::create_new(&unfinished).map_err(failed)?;
        file.try_lock().map_err(|error| failed(error.into()))?;
        file.write_all(&text).and_then(|()| file.sync_data()).map_err(failed)?;
        std::fs::rename(&unfinished, &self.path).map_err(failed)?;
        let old = std::mem::replace(&mut self.file, file);
        self.original_file.get_or_insert(old);
        Ok(())
    }

    /// Appends a record and syncs it to disk.
    ///
    /// # Errors
    /// Returns an error if it cannot be written.
    pub fn append(&mut self, line: &RunLine) -> Result<(), JournalError> {
        let io = |source| JournalError::Io { path: self.path.clone(), source };
        let text = seal_record(line).map_err(|error| io(error.into()))?;
        self.file.write_all(&text).and_then(|()| self.file.sync_data()).map_err(io)
    }
}

impl Drop for Journal {
    /// Unlocks explicitly. Closing the file is not enough: a child process that another thread is starting
    /// holds a copy of the descriptor until it calls `exec`, and with it the lock.
    fn drop(&mut self) {
        // The operating system unlocks at process exit at the latest, so an error here has no effect.
        drop(self.file.unlock());
        drop(self.original_file.as_ref().map(File::unlock));
    }
}
