//! Reading of input files: regular files of limited size.
//!
//! A file that a user names may be a device or a pipe, also behind a link: reading it would block, or take all
//! memory.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use spirv_reader::ShaderLanguage;

/// The largest shader, and the largest file that a shader's debug information names, in bytes.
pub const MAX_SHADER_BYTES: u64 = 64 << 20;
/// Further extensions of files that debug information names: headers, and the text of modules.
const OTHER_SOURCE_EXTENSIONS: [&str; 5] = ["h", "hpp", "hlsli", "inc", "spvasm"];
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

/// Reads a file that the debug information of the module `input` names, to show its lines.
///
/// A hostile module may name any file: only `input` itself and sources of shaders below its folder or the current
/// one are read.
pub fn read_named_source(name: &str, input: &str) -> Option<String> {
    let (name, input) = (Path::new(name), Path::new(input));
    // A dispatch of a script is below its file.
    if !input.starts_with(name) {
        let extension = name.extension()?.to_str()?;
        if ShaderLanguage::from_extension(extension).is_none()
            && !OTHER_SOURCE_EXTENSIONS.contains(&extension)
        {
            return None;
        }
        let name = name.canonicalize().ok()?;
        let folder = input.parent().filter(|folder| !folder.as_os_str().is_empty());
        let mut folders = folder.into_iter().chain([Path::new(".")]);
        if !folders.any(|folder| folder.canonicalize().is_ok_and(|folder| name.starts_with(folder))) {
            return None;
        }
    }
    read_text(name, MAX_SHADER_BYTES).ok()
}
