//! Errors of sources and their compilers.

use std::path::PathBuf;

use spirv_reader::ShaderLanguage;

use super::stage::LanguageMark;
use crate::Failure;
use crate::shader::archive::ArchiveError;
use crate::shader::script::{ScriptError, ScriptProblem};

/// Why a shader could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// A file cannot be read or written.
    #[error("{file}: {error}")]
    File { file: String, error: std::io::Error },
    #[error(
        "{file}: unknown shader extension; expected .comp or another GLSL stage, .hlsl, .compute, .slang, .wgsl, .cl, \
         .spv, .spvasm, an archive (.foz), or a script (.amber, .shader_test, .test)"
    )]
    UnknownExtension { file: String },
    #[error(
        "{file}: no compiler makes SPIR-V from {language}; expected GLSL, HLSL, Slang, WGSL, OpenCL C or SPIR-V: pass the source \
         from which it was translated, or translate the kernel"
    )]
    Uncompiled { file: String, language: &'static str },
    /// An archive is damaged.
    #[error("{file}: {error}")]
    Archive { file: String, error: ArchiveError },
    /// A script is malformed, or has a command that is not supported.
    #[error("{file}:{}: {error}", error.place())]
    Script { file: String, error: ScriptError },
    #[error(
        "{file}: no SPIR-V modules among {entries} entries; expected an archive of Fossilize's layer, not a driver's cache of machine code"
    )]
    NoModules { file: String, entries: usize },
    #[error("{file}: no module or pipeline `{name}`; expected a hash of this archive, such as `{first}`")]
    UnknownMember { file: String, name: String, first: String },
    #[error("{file}: {count} modules; expected one: pass `{first}`")]
    SeveralModules { file: String, count: usize, first: String },
    /// The content is of another language than the extension, or of several.
    #[error(
        "{file}:{line}: `{word}` is {found}, but {expected}; expected one language, and the extension of it: \
         .comp or another GLSL stage, .hlsl, .compute, .slang or .wgsl: rename or split the file"
    )]
    WrongLanguage { file: String, line: u32, word: &'static str, found: &'static str, expected: String },
    #[error(
        "{file}:{line}:{column}: no wave has such a size; expected a power of two from 4 to 128, or a smaller and a larger one, and \
         one between them: `[WaveSize(32)]`, `[WaveSize(16, 64)]` or `[WaveSize(16, 64, 32)]`"
    )]
    WaveSize { file: String, line: u32, column: u32 },
    /// The content is binary SPIR-V.
    #[error(
        "{file}: the content is SPIR-V, but the extension is that of a source; expected .spv: rename the file"
    )]
    BinaryModule { file: String },
    /// No compiler of the language is installed, or not the one that was named.
    #[error("{file}: {what}")]
    NoCompiler { file: String, what: String },
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
    #[error("{}\n{file}: {compiler} does not compile it{others}", said.trim_end())]
    Rejected {
        file: String,
        /// Line and column, if the compiler names them.
        position: Option<(u32, u32)>,
        compiler: &'static str,
        said: String,
        others: String,
    },
}

impl SourceError {
    /// Returns the error for a source with marks of another language than that of its extension.
    pub(super) fn wrong_language(
        file: &str,
        of_extension: ShaderLanguage,
        marks: &[LanguageMark],
    ) -> SourceError {
        let wrong = marks.iter().find(|mark| mark.language != of_extension).or(marks.first());
        let (line, word, found) =
            wrong.map_or((1, "", ""), |mark| (mark.line, mark.word, mark.language.name()));
        let other = marks.iter().find(|mark| wrong.is_some_and(|wrong| wrong.language != mark.language));
        let expected = match other {
            Some(mark) => format!("`{}` in line {} is {}", mark.word, mark.line, mark.language.name()),
            None => format!("the extension is that of {}", of_extension.name()),
        };
        SourceError::WrongLanguage { file: file.to_owned(), line, word, found, expected }
    }

    /// Describes that another compiler rejects the source too, with the first line of its message.
    pub(super) fn describe_rejection(&self) -> String {
        match self {
            SourceError::Rejected { compiler, said, .. } => {
                format!(", nor does {compiler}: {}", said.lines().next().unwrap_or_default())
            }
            other => format!("; {other}"),
        }
    }

    /// Returns the line and column of the error, if it has a position.
    pub fn position(&self) -> Option<(u32, u32)> {
        match self {
            SourceError::Rejected { position, .. } => *position,
            SourceError::WaveSize { line, column, .. } => Some((*line, *column)),
            SourceError::WrongLanguage { line, .. } => Some((*line, 1)),
            SourceError::Script { error, .. } => Some((error.line, error.column)),
            SourceError::MissingInclude { file, includer, line, .. }
                if includer.as_os_str() == file.as_str() =>
            {
                Some((*line, 1))
            }
            _ => None,
        }
    }

    /// Returns the cause in a few words, for tables.
    pub fn short_cause(&self) -> &'static str {
        match self {
            SourceError::File { .. } => "file cannot be read",
            error if error.is_unknown_contents() => "contents that depend on a dispatch before",
            SourceError::Script { .. } => "script that is not supported",
            SourceError::Archive { .. } => "damaged archive",
            SourceError::NoModules { .. } => "archive without modules",
            SourceError::UnknownMember { .. } => "unknown hash in an archive",
            SourceError::SeveralModules { .. } => "file of several modules",
            SourceError::UnknownExtension { .. } => "unknown shader extension",
            SourceError::Uncompiled { .. } => "language without a compiler",
            SourceError::WrongLanguage { .. } | SourceError::BinaryModule { .. } => {
                "content of another language"
            }
            SourceError::WaveSize { .. } => "impossible size of a wave",
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

    /// Returns true if a script is valid, but the contents that a dispatch reads are not known.
    fn is_unknown_contents(&self) -> bool {
        matches!(self, SourceError::Script { error, .. } if matches!(error.problem, ScriptProblem::UnknownContents(..)))
    }

    /// Converts the error: a missing or hanging compiler is a failure of the environment, and a script whose contents are
    /// not known has no answer; any other error is wrong input.
    pub fn to_failure(&self) -> Failure {
        match self {
            error if error.is_unknown_contents() => Failure::environment_error(error),
            SourceError::NoCompiler { .. } | SourceError::CompilerFailed { .. } => {
                Failure::environment_error(self)
            }
            _ => Failure::input_error(self),
        }
    }
}
