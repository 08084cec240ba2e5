//! Stores compiled modules by the content of everything that they depend on.
//!
//! The folder is `vk-litmus/modules` in the user's cache folder. A file is named by the hash of its key and
//! starts with a line of JSON, which has the hash of the module, so damaged files are ignored. If the folder
//! exceeds [`MAX_BYTES`], its oldest files are removed. Without a cache folder, nothing is stored.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::time::SystemTime;
use std::{env, fs};

use serde::{Deserialize, Serialize};

/// The size of the folder at which old modules are removed.
const MAX_BYTES: u64 = 256 << 20;
/// The size of the folder after old modules are removed.
const TARGET_BYTES: u64 = 192 << 20;

/// The first line of a stored module.
#[derive(Serialize, Deserialize)]
struct CacheHeader {
    compiler: String,
    hash: String,
}

/// A key: a hash over the parts that determine a module.
pub struct ModuleKey(blake3::Hasher);

impl ModuleKey {
    /// Creates a key for this version of the program.
    pub fn new() -> ModuleKey {
        let mut key = ModuleKey(blake3::Hasher::new());
        key.add(env!("CARGO_PKG_VERSION").as_bytes());
        key
    }

    pub fn add(&mut self, part: &[u8]) {
        self.0.update(&(part.len() as u64).to_le_bytes());
        self.0.update(part);
    }

    /// Adds the identity of an executable: its path, size and time of change.
    pub fn add_program(&mut self, path: &Path) {
        self.add(path.as_os_str().as_encoded_bytes());
        let Ok(file) = fs::metadata(path) else { return };
        self.add(&file.len().to_le_bytes());
        let changed = file.modified().ok().and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok());
        self.add(&changed.unwrap_or_default().as_nanos().to_le_bytes());
    }

    fn path(&self) -> Option<PathBuf> {
        Some(cache_folder()?.join(self.0.finalize().to_hex().as_str()))
    }
}

#[derive(Debug, PartialEq, Eq)]
pub struct StoredModule {
    pub bytes: Vec<u8>,
    /// The compiler with its version and flags.
    pub compiler: String,
}

fn cache_folder() -> Option<PathBuf> {
    let path_variable = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let caches = path_variable("XDG_CACHE_HOME").or_else(|| Some(path_variable("HOME")?.join(".cache")))?;
    Some(caches.join("vk-litmus").join("modules"))
}

pub fn read(key: &ModuleKey) -> Option<StoredModule> {
    parse(&fs::read(key.path()?).ok()?)
}

fn parse(stored: &[u8]) -> Option<StoredModule> {
    let end = stored.iter().position(|byte| *byte == b'\n')?;
    let CacheHeader { compiler, hash } = serde_json::from_slice(&stored[..end]).ok()?;
    let bytes = stored[end + 1..].to_vec();
    (blake3::hash(&bytes).to_hex().as_str() == hash).then_some(StoredModule { bytes, compiler })
}

/// Stores a module. An error is ignored, since the module can be compiled again.
pub fn write(key: &ModuleKey, module: &StoredModule) {
    static TRIM: Once = Once::new();
    let Some(file) = key.path() else { return };
    let Some(folder) = file.parent() else { return };
    let header = CacheHeader {
        compiler: module.compiler.clone(),
        hash: blake3::hash(&module.bytes).to_hex().to_string(),
    };
    let store = || -> std::io::Result<()> {
        fs::create_dir_all(folder)?;
        TRIM.call_once(|| remove_oldest(folder, MAX_BYTES, TARGET_BYTES));
        // A temporary file, so that other processes never read a part of it.
        let mut temporary = tempfile::NamedTempFile::new_in(folder)?;
        serde_json::to_writer(&mut temporary, &header)?;
        temporary.write_all(b"\n")?;
        temporary.write_all(&module.bytes)?;
        temporary.persist(&file)?;
        Ok(())
    };
    if let Err(error) = store() {
        tracing::debug!("{}: {error}", file.display());
    }
}

/// Removes the oldest files of a folder that exceeds `max_bytes` bytes, until `target_bytes` bytes are left.
fn remove_oldest(folder: &Path, max_bytes: u64, target_bytes: u64) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let mut files: Vec<(SystemTime, u64, PathBuf)> = entries
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let file = entry.metadata().ok().filter(fs::Metadata::is_file)?;
            Some((file.modified().ok()?, file.len(), entry.path()))
        })
        .collect();
    let mut bytes: u64 = files.iter().map(|(_, bytes, _)| bytes).sum();
    if bytes <= max_bytes {
        return;
    }
    files.sort();
    for (_, size, path) in files {
        if bytes <= target_bytes {
            return;
        }
        if fs::remove_file(path).is_ok() {
            bytes -= size;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_module_is_ignored() {
        let hash = blake3::hash(b"\x03\x02\x23\x07").to_hex();
        let stored = |bytes: &[u8]| {
            let mut stored = format!("{{\"compiler\":\"naga 1\",\"hash\":\"{hash}\"}}\n").into_bytes();
            stored.extend(bytes);
            stored
        };
        let good = parse(&stored(b"\x03\x02\x23\x07"));
        assert_eq!(good.map(|module| module.compiler).as_deref(), Some("naga 1"));
        for bad in [stored(b"\x03\x02\x23"), b"no header".to_vec(), b"{}\n".to_vec(), Vec::new()] {
            assert_eq!(parse(&bad), None);
        }
    }

    #[test]
    fn a_full_folder_loses_its_oldest_files() -> std::io::Result<()> {
        let folder = tempfile::tempdir()?;
        for number in 0..6_u64 {
            let path = folder.path().join(number.to_string());
            fs::write(&path, [0; 100])?;
            let time = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000 + number);
            fs::File::options().write(true).open(&path)?.set_modified(time)?;
        }
        remove_oldest(folder.path(), 600, 300);
        assert_eq!(fs::read_dir(folder.path())?.count(), 6);
        remove_oldest(folder.path(), 500, 300);
        let mut left: Vec<_> = fs::read_dir(folder.path())?
            .map(|entry| entry.map(|entry| entry.file_name()))
            .collect::<Result<_, _>>()?;
        left.sort();
        assert_eq!(left, ["3", "4", "5"]);
        Ok(())
    }
}
