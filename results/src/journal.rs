//! The journal: verdicts as they come, one line each with a checksum, flushed, so that nothing is lost when the run ends
//! early and nothing that was damaged counts.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::read::{self, ReadError};
use crate::wire::{PlanRecord, RunLine};

/// An open journal. Only the process that decides on verdicts writes to it; it holds a lock that ends with the process.
#[derive(Debug)]
pub struct Journal {
    file: File,
    path: PathBuf,
}

/// What a journal held when it was opened.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recovered {
    /// The complete lines, in the order of the plan.
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
    /// It holds something else than verdicts of its plan.
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// What stands between a record and its checksum.
const SUM: &[u8] = b",\"sum\":\"";
/// Hexadecimal digits of a checksum.
const SUM_DIGITS: usize = 16;
/// What stands behind it.
const SUM_END: &[u8] = b"\"}";

/// A record as a line of the journal: its JSON, whose last field `sum` is the beginning of the BLAKE3 hash of what stands
/// before that field; with its line end.
///
/// # Errors
/// None that can be helped.
pub fn sealed(line: &RunLine) -> Result<Vec<u8>, serde_json::Error> {
    let mut text = serde_json::to_vec(line)?;
    text.pop();
    let sum = sum_of(&text);
    text.extend_from_slice(SUM);
    text.extend_from_slice(sum.as_bytes());
    text.extend_from_slice(SUM_END);
    text.push(b'\n');
    Ok(text)
}

fn sum_of(record: &[u8]) -> String {
    blake3::hash(record).to_hex().chars().take(SUM_DIGITS).collect()
}

/// Whether the checksum of a line, which has lost its end, is right; nothing where it has none.
pub fn is_whole(line: &[u8]) -> Option<bool> {
    let line = line.strip_suffix(SUM_END)?;
    let (rest, sum) = line.split_at_checked(line.len().checked_sub(SUM_DIGITS)?)?;
    let record = rest.strip_suffix(SUM)?;
    Some(sum_of(record).as_bytes() == sum)
}

impl Journal {
    /// Opens the journal of `plan` at `path`, made new where there is none, and reads what it holds. An incomplete last line
    /// is cut off, so that the next record starts on a line of its own.
    ///
    /// # Errors
    /// When the file cannot be read or written, is in use, or holds something else than verdicts of the plan, each once and
    /// each as it was written.
    pub fn open(path: &Path, plan: &PlanRecord) -> Result<(Journal, Recovered), JournalError> {
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
        let found = read::lines(path, BufReader::new(&file), Some(plan.clone()))?;
        let truncated_bytes = found.incomplete.map_or(0, |incomplete| incomplete.bytes as u64);
        let end = file.seek(SeekFrom::End(0)).map_err(io)?.saturating_sub(truncated_bytes);
        file.set_len(end).and_then(|()| file.seek(SeekFrom::End(0))).map_err(io)?;
        Ok((Journal { file, path: path.to_owned() }, Recovered { lines: found.lines, truncated_bytes }))
    }

    /// Appends a record and sees to it that it is on disk.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn append(&mut self, line: &RunLine) -> Result<(), JournalError> {
        let io = |source| JournalError::Io { path: self.path.clone(), source };
        let text = sealed(line).map_err(|error| io(error.into()))?;
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
