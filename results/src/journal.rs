//! The journal: verdicts as they come, one line each, flushed, so that nothing is lost when the run ends early.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::wire::{RUN_SCHEMA, RunLine};

/// An open journal. Only the process that decides on verdicts writes to it; it holds a lock that ends with the process.
#[derive(Debug)]
pub struct Journal {
    file: File,
    path: PathBuf,
}

/// What a journal held when it was opened.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recovered {
    /// The complete lines, in order.
    pub lines: Vec<RunLine>,
    /// Bytes of an incomplete last line that were cut off: the writer was ended in the middle of it.
    pub truncated_bytes: u64,
}

/// Why a journal cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The file cannot be read or written.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Another process writes to it.
    #[error("{path} is in use by another run")]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// A line before the last is no record.
    #[error("{path}:{line}: not a run record: {source}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// A record of another version.
    #[error("{path}:{line}: a record of version `{found}`, this tool reads `{RUN_SCHEMA}`")]
    Version {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The version found.
        found: String,
    },
}

impl Journal {
    /// Opens the journal at `path`, made new where there is none, and reads what it holds. An incomplete last line is
    /// cut off, so that the next record starts on a line of its own.
    ///
    /// # Errors
    /// When the file cannot be read or written, is in use, or holds something else than records.
    pub fn open(path: &Path) -> Result<(Journal, Recovered), JournalError> {
        let io = |source| JournalError::Io { path: path.to_owned(), source };
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).map_err(io)?;
        file.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => JournalError::InUse { path: path.to_owned() },
            TryLockError::Error(source) => io(source),
        })?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(io)?;
        let complete = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let truncated_bytes = (bytes.len() - complete) as u64;
        let lines = parse(path, &bytes[..complete])?;
        if truncated_bytes > 0 {
            file.set_len(complete as u64).map_err(io)?;
        }
        file.seek(SeekFrom::End(0)).map_err(io)?;
        Ok((Journal { file, path: path.to_owned() }, Recovered { lines, truncated_bytes }))
    }

    /// Appends a record and sees to it that it is on disk.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn append(&mut self, line: &RunLine) -> Result<(), JournalError> {
        let io = |source| JournalError::Io { path: self.path.clone(), source };
        let mut text = serde_json::to_vec(line).map_err(|error| io(error.into()))?;
        text.push(b'\n');
        self.file.write_all(&text).and_then(|()| self.file.sync_data()).map_err(io)
    }
}

impl Drop for Journal {
    /// Unlocks. Closing alone does not: a process that another thread is starting right now holds a copy of the
    /// descriptor until it executes its program, and with it the lock.
    fn drop(&mut self) {
        // The system unlocks at the end of the process at the latest; nobody is there to be told.
        drop(self.file.unlock());
    }
}

fn parse(path: &Path, bytes: &[u8]) -> Result<Vec<RunLine>, JournalError> {
    let mut lines = Vec::new();
    for (index, bytes) in bytes.split(|byte| *byte == b'\n').enumerate() {
        if bytes.is_empty() {
            continue;
        }
        let line: RunLine = serde_json::from_slice(bytes).map_err(|source| JournalError::Malformed {
            path: path.to_owned(),
            line: index + 1,
            source,
        })?;
        if line.schema != RUN_SCHEMA {
            return Err(JournalError::Version { path: path.to_owned(), line: index + 1, found: line.schema });
        }
        lines.push(line);
    }
    Ok(lines)
}
