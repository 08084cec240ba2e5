//! The journal: an append-only log of verdicts, one JSON line each, with a checksum and flushed.
//!
//! A run that is killed loses at most the verdict that it was writing. A damaged line is detected and never
//! counted. If another process removes, replaces or truncates the file during the run, [`Journal::is_intact`] is
//! false at its end.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
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
    /// Size of the content in bytes, and its hash.
    length: u64,
    hasher: blake3::Hasher,
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
        let mut file = OpenOptions::new().read(true).append(true).create(true).open(path).map_err(io)?;
        file.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => JournalError::InUse { path: path.to_owned() },
            TryLockError::Error(source) => io(source),
        })?;
        let mut recovered = RecoveredJournal::default();
        // A new journal needs no index of its plan, which may have 100,000 tests.
        if file.metadata().map_err(io)?.len() > 0 {
            let found = read::read_lines(path, BufReader::new(&file), Some(plan.clone()))?;
            recovered.truncated_bytes = found.incomplete.map_or(0, |incomplete| incomplete.bytes as u64);
            recovered.lines = found.lines;
        }
        let truncated_bytes = recovered.truncated_bytes;
        let end = file.seek(SeekFrom::End(0)).map_err(io)?.saturating_sub(truncated_bytes);
        file.set_len(end).and_then(|()| file.rewind()).map_err(io)?;
        let mut hasher = blake3::Hasher::new();
        io::copy(&mut (&file).take(end), &mut hasher).map_err(io)?;
        let journal = Journal { file, path: path.to_owned(), original_file: None, length: end, hasher };
        Ok((journal, recovered))
    }

    /// Replaces the content by these lines, atomically: a reader sees the old or the new content.
    ///
    /// # Errors
    /// Returns an error if the new file cannot be written or locked.
    pub fn replace<'l>(&mut self, lines: impl IntoIterator<Item = &'l RunLine>) -> Result<(), JournalError> {
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
        let mut options = OpenOptions::new();
        let mut file = options.read(true).append(true).create_new(true).open(&unfinished).map_err(failed)?;
        file.try_lock().map_err(|error| failed(error.into()))?;
        file.write_all(&text).and_then(|()| file.sync_data()).map_err(failed)?;
        std::fs::rename(&unfinished, &self.path).map_err(failed)?;
        let old = std::mem::replace(&mut self.file, file);
        self.original_file.get_or_insert(old);
        self.length = text.len() as u64;
        self.hasher.reset().update(&text);
        Ok(())
    }

    /// Appends a record and syncs it to disk.
    ///
    /// # Errors
    /// Returns an error if it cannot be written.
    pub fn append(&mut self, line: &RunLine) -> Result<(), JournalError> {
        self.append_unsynced(line)?;
        self.file.sync_data().map_err(|source| JournalError::Io { path: self.path.clone(), source })
    }

    /// Appends a record that may be lost with the power of the machine. If another process truncated the file within
    /// a line, the rest of that line is removed first.
    ///
    /// # Errors
    /// Returns an error if it cannot be written.
    pub fn append_unsynced(&mut self, line: &RunLine) -> Result<(), JournalError> {
        let io = |source| JournalError::Io { path: self.path.clone(), source };
        let text = seal_record(line).map_err(|error| io(error.into()))?;
        if self.file.metadata().map_err(io)?.len() < self.length {
            remove_incomplete_line(&mut self.file).map_err(io)?;
        }
        self.file.write_all(&text).map_err(io)?;
        self.length += text.len() as u64;
        self.hasher.update(&text);
        Ok(())
    }

    /// Returns true if the journal's path still is the open file, with the size that was written.
    pub fn is_in_place(&self) -> bool {
        let found =
            std::fs::symlink_metadata(&self.path).and_then(|found| Ok((found, self.file.metadata()?)));
        found.is_ok_and(|(found, own)| same_file(&found, &own) && found.len() == self.length)
    }

    /// Returns true if the file at the journal's path has exactly the content that was read and written.
    pub fn is_intact(&self) -> bool {
        let is_file = std::fs::symlink_metadata(&self.path).is_ok_and(|found| found.is_file());
        let mut found = blake3::Hasher::new();
        is_file
            && File::open(&self.path).and_then(|mut file| io::copy(&mut file, &mut found)).is_ok()
            && found.finalize() == self.hasher.finalize()
    }

    /// Returns true if another process has locked the file at the journal's path, after it replaced it.
    pub fn is_taken_over(&self) -> bool {
        let is_locked = |file: File| matches!(file.try_lock(), Err(TryLockError::WouldBlock));
        let is_ours = match (std::fs::metadata(&self.path), self.file.metadata()) {
            (Ok(found), Ok(own)) => same_file(&found, &own),
            _ => true,
        };
        !is_ours && File::open(&self.path).is_ok_and(is_locked)
    }
}

#[cfg(unix)]
fn same_file(one: &std::fs::Metadata, other: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

/// An open file cannot be replaced on other systems.
#[cfg(not(unix))]
fn same_file(_: &std::fs::Metadata, _: &std::fs::Metadata) -> bool {
    true
}

/// Removes what follows the last line end of a file.
fn remove_incomplete_line(file: &mut File) -> io::Result<()> {
    let mut content = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut content)?;
    let end = content.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
    file.set_len(end as u64)
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
