//! The shaders that arguments name: files, and the shaders below folders.

use std::ffi::OsStr;
use std::path::Path;

use campaign::shader::source::{Compilation, is_shader, member_names};
use walkdir::WalkDir;

use crate::exit::Failure;

/// A shader file, or a module of an archive.
pub struct ShaderFile {
    /// The path.
    pub path: String,
    /// True if it was found in a folder, false if it was named.
    pub is_found: bool,
}

/// Returns the files and modules of archives that arguments name. A folder selects every shader below it, except in folders whose
/// name starts with a dot.
///
/// # Errors
/// If a folder has no shaders or cannot be read.
pub fn collect_shader_files(
    arguments: &[String],
    compilation: &Compilation,
) -> Result<Vec<ShaderFile>, Failure> {
    let mut files = Vec::new();
    for argument in arguments {
        if !Path::new(argument).is_dir() {
            let names = member_names(argument, compilation).into_iter();
            files.extend(names.map(|path| ShaderFile { path, is_found: false }));
            continue;
        }
        let before = files.len();
        let is_hidden = |name: &OsStr| name.as_encoded_bytes().starts_with(b".");
        let entries = WalkDir::new(argument).sort_by_file_name().into_iter();
        for entry in entries.filter_entry(|entry| entry.depth() == 0 || !is_hidden(entry.file_name())) {
            let entry = entry.map_err(|error| Failure::input_message(format!("{argument}: {error}")))?;
            let path = entry.path().display().to_string();
            if entry.file_type().is_file() && is_shader(&path) {
                let names = member_names(&path, compilation).into_iter();
                files.extend(names.map(|path| ShaderFile { path, is_found: true }));
            }
        }
        if files.len() == before {
            return Err(Failure::input_message(format!(
                "{argument}: no shaders below this folder, and no recording: expected files such as NAME.comp, NAME.hlsl or NAME.wgsl, or the `recording.json` that a completed `record` writes"
            )));
        }
    }
    Ok(files)
}
