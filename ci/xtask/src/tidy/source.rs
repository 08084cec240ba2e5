//! Input and output of the rules: a text file, a violation, and the failure to read a file.

use std::fmt;
use std::path::PathBuf;

/// A violation of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The file, relative to the repository.
    pub file: String,
    /// Line number, from 1; 0 for the whole file.
    pub line: usize,
    /// The rule, and how to satisfy it.
    pub message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.file, self.message),
            line => write!(f, "{}:{line}: {}", self.file, self.message),
        }
    }
}

/// A text file of the repository.
pub struct SourceFile {
    /// Path relative to the repository, with `/` as separator.
    pub path: String,
    /// Content of the file.
    pub text: String,
}

#[cfg(test)]
pub fn test_file(path: &str, text: &str) -> SourceFile {
    SourceFile { path: path.to_owned(), text: text.to_owned() }
}

/// A file or folder that could not be read.
#[derive(Debug, thiserror::Error)]
#[error("could not read {}: {source}", path.display())]
pub struct SourceReadError {
    pub path: PathBuf,
    /// The error of the operating system.
    pub source: std::io::Error,
}
