//! The reasons for which a task fails.

use std::path::PathBuf;

use crate::tidy::source::SourceReadError;

/// The reason why a task failed.
#[derive(Debug, thiserror::Error)]
pub enum ChoreError {
    /// The repository violates rules, which have been printed.
    #[error("{0} rule violations")]
    Untidy(usize),
    /// A file could not be read.
    #[error(transparent)]
    Read(#[from] SourceReadError),
    #[error("could not start cargo: {0}")]
    Start(std::io::Error),
    /// A command failed and has printed the reason.
    #[error("cargo ended with {0}")]
    Command(std::process::ExitStatus),
    #[error(
        "mdbook is not installed: `cargo install mdbook`, or your distribution's package, then `cargo xtask book`"
    )]
    NoMdbook,
    /// Tests failed; their output has been printed.
    #[error("{0} test binaries failed")]
    Tests(usize),
    /// A file could not be written.
    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: std::io::Error },
    /// No run has written its times.
    #[error("no times yet: run `ci/test` or `cargo xtask test` first")]
    NoTimes,
}
