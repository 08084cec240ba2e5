//! OpenCL C: kernels that clspv compiles for Vulkan.
//!
//! Names of arguments come from the reflection instructions of the module. clspv writes no source lines, and its modules
//! have what the language promises, so the answer is that of the module.

use std::path::Path;
use std::process::Command;

use super::error::SourceError;
use super::process::{
    describe_crash, find_program, message_position, program_version, remove_noise, run_to_end,
};
use super::{Compilation, SourceModule};
use crate::files;
use crate::temporary::TemporaryFolder;

/// The extension of sources.
pub(super) const EXTENSION: &str = "cl";
pub(super) const PROGRAM: &str = "clspv";
pub(super) const INSTALL_HINT: &str =
    "github.com/google/clspv, or `ci/languages/tool install DIR` of vk-litmus, and DIR/bin in PATH";

/// Compiles the kernels of a source to one module.
///
/// # Errors
/// If clspv is missing or refuses the source, or another compiler is requested.
pub(super) fn load_kernels(file: &str, compilation: &Compilation) -> Result<SourceModule, SourceError> {
    let failed =
        |what: String| SourceError::CompilerFailed { file: file.to_owned(), compiler: PROGRAM, what };
    files::open_file(file.as_ref()).map_err(|error| SourceError::File { file: file.to_owned(), error })?;
    let named = compilation.compiler.as_deref().unwrap_or(PROGRAM);
    if Path::new(named).file_stem().is_none_or(|stem| stem != PROGRAM) {
        let (program, known) = (named.to_owned(), format!("`{PROGRAM}`"));
        return Err(SourceError::NotOfLanguage { file: file.to_owned(), program, known });
    }
    let Some(program) = find_program(named) else {
        let what = format!("no compiler for it is installed: `{PROGRAM}` ({INSTALL_HINT})");
        return Err(SourceError::NoCompiler { file: file.to_owned(), what });
    };
    let folder = TemporaryFolder::create().map_err(|error| failed(error.to_string()))?;
    let out = folder.path().join("module.spv");
    let defines = compilation.defines.iter().map(|definition| format!("-D{definition}"));
    let flags: Vec<String> =
        defines.chain(compilation.includes.iter().map(|path| format!("-I{}", path.display()))).collect();
    let mut command = Command::new(&program);
    command.args(&flags).arg(file).arg("-o").arg(&out);
    let Some((status, output)) = run_to_end(command, folder.path()).map_err(failed)? else {
        return Err(failed("cannot be started".to_owned()));
    };
    if !status.success() {
        let said = describe_crash(&status, PROGRAM) + &remove_noise(&output, file);
        let position = message_position(&said, file);
        let (file, others) = (file.to_owned(), String::new());
        return Err(SourceError::Rejected { file, position, compiler: PROGRAM, said, others });
    }
    let bytes = files::read_file(&out, files::MAX_SHADER_BYTES);
    let bytes = bytes.map_err(|error| failed(format!("wrote no module: {error}")))?;
    let version = program_version(&program, folder.path());
    let compiler = format!("{PROGRAM} {version} {}", flags.join(" "));
    Ok(SourceModule { compiler: Some(compiler.trim_end().to_owned()), ..SourceModule::from_spirv(bytes) })
}
