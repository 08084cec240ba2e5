//! The shaders that arguments name: files, the shaders below folders, and standard input.

use std::ffi::OsStr;
use std::io::Read;
use std::path::Path;

use ::record::journal::JOURNAL_FILE;
use campaign::files::MAX_SHADER_BYTES;
use campaign::shader::source::{Compilation, is_shader, member_names, name_of_contents};
use vk_litmus::{CompileOptions, Error, ShaderModule};
use walkdir::WalkDir;

use crate::commands::record::{PROCESS_FOLDER, RECORDING_FILE};
use crate::exit::Failure;

/// A shader file, or a module of an archive.
#[derive(Default)]
pub struct ShaderFile {
    /// The path, or a name for standard input.
    pub path: String,
    /// True if it was found in a folder, false if it was named.
    pub is_found: bool,
    /// The contents of standard input.
    contents: Option<Vec<u8>>,
}

impl ShaderFile {
    /// Reads standard input.
    fn from_standard_input() -> Result<ShaderFile, Failure> {
        let mut contents = Vec::new();
        let read = std::io::stdin().take(MAX_SHADER_BYTES).read_to_end(&mut contents);
        read.map_err(Failure::environment_error)?;
        let expected = "-: the language of the shader is not clear; expected SPIR-V, GLSL with `#version`, WGSL with `@compute`, HLSL with `numthreads`, or a kernel of OpenCL C: name a file";
        let name = name_of_contents(&contents).ok_or_else(|| Failure::input_message(expected))?;
        Ok(ShaderFile { path: name.to_owned(), contents: Some(contents), is_found: false })
    }

    /// Compiles it; see [`ShaderModule::load`].
    pub fn load(&self, options: &CompileOptions) -> Vec<Result<ShaderModule, Error>> {
        match &self.contents {
            Some(contents) => ShaderModule::load_contents(&self.path, contents, options),
            None => ShaderModule::load(&self.path, options),
        }
    }
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
        if argument == "-" {
            files.push(ShaderFile::from_standard_input()?);
            continue;
        }
        if !Path::new(argument).is_dir() {
            let names = member_names(argument, compilation).into_iter();
            files.extend(names.map(|path| ShaderFile { path, ..ShaderFile::default() }));
            continue;
        }
        let is_recording = Path::new(argument).join(RECORDING_FILE).exists();
        let processes = std::fs::read_dir(Path::new(argument).join(PROCESS_FOLDER));
        if !is_recording
            && processes.into_iter().flatten().flatten().any(|entry| entry.path().join(JOURNAL_FILE).exists())
        {
            return Err(Failure::input_message(format!(
                "{argument}: an incomplete recording: it has no `{RECORDING_FILE}`, which `record` writes at its end; a full disk may be \
                 the reason: run `record` again"
            )));
        }
        let before = files.len();
        // The modules of a recording are those of its kinds too.
        let is_hidden = |name: &OsStr| {
            name.as_encoded_bytes().starts_with(b".") || is_recording && name == PROCESS_FOLDER
        };
        let entries = WalkDir::new(argument).sort_by_file_name().into_iter();
        for entry in entries.filter_entry(|entry| entry.depth() == 0 || !is_hidden(entry.file_name())) {
            let entry = entry.map_err(|error| Failure::input_message(format!("{argument}: {error}")))?;
            let path = entry.path().display().to_string();
            if entry.file_type().is_file() && is_shader(&path) {
                let names = member_names(&path, compilation).into_iter();
                files.extend(names.map(|path| ShaderFile { path, is_found: true, contents: None }));
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
