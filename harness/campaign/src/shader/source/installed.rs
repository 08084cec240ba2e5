//! The installed compilers of shaders, and what each of them cannot compile.
//!
//! A compiler cannot compile a feature if it rejects a small source that needs it.

use std::fs;
use std::io;
use std::path::PathBuf;

use serde::Serialize;
use spirv_reader::ShaderLanguage;

use super::compilers::COMPILERS;
use super::error::SourceError;
use super::process::{find_program, program_version};
use super::{Compilation, load};
use crate::temporary::TemporaryFolder;

/// A compiler that `race` and other commands use, installed or not.
#[derive(Clone, Debug, Serialize)]
pub struct KnownCompiler {
    pub language: &'static str,
    pub program: &'static str,
    /// Where it was found in `PATH`; none if it is not installed.
    pub path: Option<PathBuf>,
    /// The last word of its version line.
    pub version: Option<String>,
    /// The features whose sources it rejects.
    pub rejects: Vec<&'static str>,
    /// The start of its message about an empty shader, if it does not compile one.
    pub problem: Option<String>,
    /// Where it comes from.
    pub install_hint: &'static str,
}

/// The smallest source that needs a feature, after its extension and the feature; the first of a language is an empty shader.
const FEATURES: &str = include_str!("features.txt");
/// The feature of an empty shader.
const ANY_SHADER: &str = "any shader";

/// Returns the compilers in the order in which they are tried for a language.
///
/// # Errors
/// If temporary files cannot be created.
pub fn known_compilers() -> io::Result<Vec<KnownCompiler>> {
    let folder = TemporaryFolder::create()?;
    let known = COMPILERS.iter().map(|compiler| {
        let (language, hint) = (compiler.language, compiler.install_hint);
        (language.name(), extension_of(language), compiler.program, hint)
    });
    let mut all = Vec::new();
    for (language, extension, program, install_hint) in known {
        let path = find_program(program);
        let version = path.as_ref().map(|path| program_version(path, folder.path()));
        let (mut rejects, mut problem) = (Vec::new(), None);
        for (feature, source) in features_of(extension).filter(|_| path.is_some()) {
            let Err(error) = compile_feature(program, extension, source, &folder)? else { continue };
            rejects.push(feature);
            // Some packages of tint write no SPIR-V.
            if feature == ANY_SHADER {
                problem = Some(start_of_message(&error));
                break;
            }
        }
        all.push(KnownCompiler { language, program, path, version, rejects, problem, install_hint });
    }
    Ok(all)
}

/// Returns the start of the message of a compiler that does not compile an empty shader.
pub(super) fn find_problem(program: &str, language: ShaderLanguage) -> Option<String> {
    let folder = TemporaryFolder::create().ok()?;
    let extension = extension_of(language);
    let (_, source) = features_of(extension).find(|(feature, _)| *feature == ANY_SHADER)?;
    compile_feature(program, extension, source, &folder).ok()?.err().map(|error| start_of_message(&error))
}

fn compile_feature(
    program: &str,
    extension: &str,
    source: &str,
    folder: &TemporaryFolder,
) -> io::Result<Result<(), SourceError>> {
    let file = folder.path().join("feature").with_extension(extension);
    fs::write(&file, source)?;
    let compiler = Some(program.to_owned());
    let compilation = Compilation { compiler, is_uncached: true, is_probe: true, ..Compilation::default() };
    Ok(load(&file.to_string_lossy(), &compilation).map(|_| ()))
}

/// Returns the features of a language with their sources.
fn features_of(extension: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let blocks = FEATURES.split("=== ").filter_map(|block| block.split_once('\n'));
    blocks.filter_map(move |(head, source)| Some((head.strip_prefix(extension)?.strip_prefix(": ")?, source)))
}

/// Returns the first lines that a compiler printed.
fn start_of_message(error: &SourceError) -> String {
    let text = match error {
        SourceError::Rejected { said, .. } => said.clone(),
        other => other.to_string(),
    };
    text.trim().lines().take(2).map(str::trim).collect::<Vec<_>>().join("; ")
}

fn extension_of(language: ShaderLanguage) -> &'static str {
    match language {
        ShaderLanguage::Glsl => "comp",
        ShaderLanguage::Hlsl => "hlsl",
        ShaderLanguage::OpenClC => "cl",
        ShaderLanguage::Slang => "slang",
        ShaderLanguage::Wgsl => "wgsl",
    }
}
