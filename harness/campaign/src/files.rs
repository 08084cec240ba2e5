//! Reading of input files: regular files of limited size.
//!
//! A file that a user names may be a device or a pipe, also behind a link: reading it would block, or take all
//! memory.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The largest shader, and the largest file that a shader's debug information names, in bytes.
pub const MAX_SHADER_BYTES: u64 = 64 << 20;
/// The largest file of settings in bytes.
pub const MAX_SETTINGS_BYTES: u64 = 1 << 20;

/// Opens a file.
///
/// # Errors
/// If it is a device, a pipe or a socket, or cannot be read.
pub fn open_file(path: &Path) -> io::Result<File> {
    let kind = std::fs::metadata(path)?.file_type();
    if !kind.is_file() && !kind.is_dir() {
        return Err(io::Error::other("not a regular file"));
    }
    File::open(path)
}

/// Reads a file of at most `limit` bytes.
///
/// # Errors
/// If it is a device, a pipe or a socket, is larger, or cannot be read.
pub fn read_file(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_file(path)?.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        let size =
            if limit <= 1 << 20 { format!("{} KiB", limit >> 10) } else { format!("{} MiB", limit >> 20) };
        return Err(io::Error::other(format!("larger than {size}")));
    }
    Ok(bytes)
}

/// Reads a file of at most `limit` bytes as UTF-8.
///
/// # Errors
/// As for [`read_file`], or if it is not UTF-8.
pub fn read_text(path: &Path, limit: u64) -> io::Result<String> {
    String::from_utf8(read_file(path, limit)?).map_err(|_| io::Error::other("not UTF-8"))
}
