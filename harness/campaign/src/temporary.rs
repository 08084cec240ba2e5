//! Temporary folders, which are removed even if a signal ends the program.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use tempfile::TempDir;

/// The existing folders.
static FOLDERS: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// A temporary folder, removed when it is dropped or by [`remove_all`].
#[derive(Debug)]
pub struct TemporaryFolder {
    folder: Option<TempDir>,
    path: PathBuf,
}

impl TemporaryFolder {
    /// Creates an empty folder.
    ///
    /// # Errors
    /// If the system has no place for it.
    pub fn create() -> io::Result<TemporaryFolder> {
        // Locked before it exists, so that a signal in between does not leave it.
        let mut folders = FOLDERS.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = tempfile::Builder::new().prefix("vk-litmus-").tempdir()?;
        let path = folder.path().to_owned();
        folders.insert(path.clone());
        Ok(TemporaryFolder { folder: Some(folder), path })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        drop(self.folder.take());
        FOLDERS.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.path);
    }
}

/// Removes all temporary folders before the process ends. No other can be created afterwards.
pub fn remove_all() {
    let folders = FOLDERS.lock().unwrap_or_else(PoisonError::into_inner);
    for folder in folders.iter() {
        // A process that still writes there may keep it, which the end of this process does not wait for.
        let _ = std::fs::remove_dir_all(folder);
    }
    std::mem::forget(folders);
}
