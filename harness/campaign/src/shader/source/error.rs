//! Errors of sources and their compilers.

use std::path::PathBuf;

use crate::Failure;

/// Why a shader could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// A file cannot be read or written.
    #[error("{file}: {error}")]
    File { file: String, error: std::io::Error },
    #[error(
        "{file}: unknown shader extension; expected .comp or another GLSL stage, .hlsl, .compute, .slang, .wgsl, .spv or .spvasm"
    )]
    UnknownExtension { file: String },
    #[error("{file}: {what}, not a shader; expected its shaders one by one: {way}")]
    Container { file: String, what: &'static str, way: &'static str },
    #[error("{file}: no compiler for it is installed: {wanted}")]
    NoCompiler { file: String, wanted: String },
    #[error("{file}: `{program}` is none of its compilers: {known}")]
    NotOfLanguage { file: String, program: String, known: String },
    /// The compiler has no preprocessor.
    #[error(
        "{file}: {program} takes no definitions and no folders of included files; expand the source with `--preprocess CMD`"
    )]
    NoPreprocessor { file: String, program: &'static str },
    /// The source has no entry point, or not the one that was named.
    #[error("{file}: {what}")]
    NoEntryPoint { file: String, what: String },
    #[error("{file}: --spec {name}: no such override; expected one of {known}")]
    UnknownOverride { file: String, name: String, known: String },
    #[error(
        "{file}: {compiler} does not find the entry point `{entry}` with these definitions; expected a function of this name: check `-D`"
    )]
    EntryNotCompiled { file: String, compiler: &'static str, entry: String },
    #[error("{}:{line}: include file `{header}` not found; searched {searched}; expected it in a folder that you name: pass `-I DIR`", includer.display())]
    MissingInclude { file: String, includer: PathBuf, line: u32, header: String, searched: String },
    /// The command of `--preprocess` failed.
    #[error("{said}{file}: `{command}` {what}; expected the source text on standard output or in {{out}}")]
    Preprocess { file: String, command: String, what: String, said: String },
    /// The compiler failed, or exceeded its time limit.
    #[error("{file}: {compiler} {what}")]
    CompilerFailed { file: String, compiler: &'static str, what: String },
    #[error("{said}\n{file}: {compiler} does not compile it{others}")]
    Rejected { file: String, line: u32, column: u32, compiler: &'static str, said: String, others: String },
}

impl SourceError {
    /// Returns the line and column of the error, or 1 if unknown.
    pub fn position(&self) -> (u32, u32) {
        match self {
            SourceError::Rejected { line, column, .. } => (*line, *column),
            SourceError::MissingInclude { file, includer, line, .. }
                if includer.as_os_str() == file.as_str() =>
            {
                (*line, 1)
            }
            _ => (1, 1),
        }
    }

    /// Returns the cause in a few words, for tables.
    pub fn short_cause(&self) -> &'static str {
        match self {
            SourceError::File { .. } => "file cannot be read",
            SourceError::Container { .. } => "file that contains shaders",
            SourceError::UnknownExtension { .. } => "unknown shader extension",
            SourceError::UnknownOverride { .. } => "unknown override",
            SourceError::NoCompiler { .. } => "no compiler installed",
            SourceError::NotOfLanguage { .. } => "compiler of another language",
            SourceError::NoPreprocessor { .. } => "compiler without preprocessor",
            SourceError::NoEntryPoint { .. } => "no entry point",
            SourceError::EntryNotCompiled { .. } => "entry point left out by definitions",
            SourceError::MissingInclude { .. } => "include file not found",
            SourceError::Preprocess { .. } => "preprocessing failed",
            SourceError::CompilerFailed { .. } => "compiler failed",
            SourceError::Rejected { .. } => "does not compile",
        }
    }

    /// Converts the error: a missing or hanging compiler is a failure of the environment, any other error is
    /// wrong input.
    pub fn to_failure(&self) -> Failure {
        match self {
            SourceError::NoCompiler { .. } | SourceError::CompilerFailed { .. } => {
                Failure::environment_error(self)
            }
            _ => Failure::input_error(self),
        }
    }
}
