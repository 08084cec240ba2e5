//! `tidy`: repository rules that no compiler checks. Each rule is a function from a text to its findings.

mod code;
mod corpus;
mod edges;
mod map;
mod names;
mod prose;
mod text;

use std::fmt;
use std::path::{Path, PathBuf};

use walkdir::WalkDir;

use crate::ChoreError;

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

/// A file or folder that could not be read.
#[derive(Debug, thiserror::Error)]
#[error("could not read {}: {source}", path.display())]
pub struct ReadError {
    /// The path.
    pub path: PathBuf,
    /// The error of the operating system.
    pub source: std::io::Error,
}

/// A text file of the repository.
pub struct SourceFile {
    /// Path relative to the repository, with `/` as separator.
    pub path: String,
    /// Content of the file.
    pub text: String,
}

/// Reads the repository, applies every rule and prints the findings.
pub fn run(root: &Path, _: &[String]) -> Result<(), ChoreError> {
    let files = read_tree(root)?;
    let findings = check(&files);
    for finding in &findings {
        println!("{finding}");
    }
    if findings.is_empty() {
        println!("tidy: {} files, nothing to complain about", files.len());
        Ok(())
    } else {
        Err(ChoreError::Untidy(findings.len()))
    }
}

/// Applies every rule to every file.
pub fn check(files: &[SourceFile]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files {
        findings.extend(text::machine_paths(file));
        findings.extend(text::unfinished_marks(file));
        if file.path.ends_with(".rs") || file.path.ends_with(".md") {
            findings.extend(prose::words(file));
        }
        if file.path.ends_with(".rs") {
            findings.extend(prose::first_words(file));
            findings.extend(text::length(file));
            findings.extend(code::ash_outside_device(file));
            findings.extend(code::printing_in_libraries(file));
            findings.extend(code::written_types(file));
            findings.extend(code::unsafe_outside_device(file));
            findings.extend(code::ignored_tests(file));
        }
    }
    findings.extend(code::forgotten_tests(files));
    findings.extend(code::slow_tests(files));
    findings.extend(code::impure_crates(files, &edges::manifests(files)));
    findings.extend(code::catch_alls(files));
    findings.extend(edges::check(files));
    findings.extend(names::check(files));
    findings.extend(map::check(files));
    findings.extend(corpus::check(files));
    findings
}

/// Returns true for folders without sources: build outputs and results.
fn is_foreign(name: &str) -> bool {
    name == "target" || name.starts_with("vk-litmus-out")
}

/// Reads every text file below `root`, sorted by path. Files that are not UTF-8 are skipped.
fn read_tree(root: &Path) -> Result<Vec<SourceFile>, ReadError> {
    let mut files = Vec::new();
    let walk = WalkDir::new(root).sort_by_file_name().into_iter().filter_entry(|entry| {
        // In a git worktree, `.git` is a file.
        let name = entry.file_name().to_str().unwrap_or_default();
        name != ".git" && !(entry.file_type().is_dir() && is_foreign(name))
    });
    for entry in walk {
        let entry = entry.map_err(|error| ReadError {
            path: error.path().unwrap_or(root).to_path_buf(),
            source: error.into(),
        })?;
        if !entry.file_type().is_file() {
            continue;
        }
        let path = entry.path();
        let bytes = std::fs::read(path).map_err(|source| ReadError { path: path.to_path_buf(), source })?;
        let Ok(text) = String::from_utf8(bytes) else { continue };
        let relative = path.strip_prefix(root).unwrap_or(path);
        let parts: Vec<_> = relative.components().map(|part| part.as_os_str().to_string_lossy()).collect();
        files.push(SourceFile { path: parts.join("/"), text });
    }
    Ok(files)
}

#[cfg(test)]
fn file(path: &str, text: &str) -> SourceFile {
    SourceFile { path: path.to_owned(), text: text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_is_read_without_build_outputs_and_binaries() {
        let folder = tempfile::tempdir().unwrap();
        for (path, bytes) in [
            ("a/b.rs", b"fn main() {}".as_slice()),
            ("target/c.rs", b""),
            (".git/d", b""),
            ("vk-litmus-out/e", b""),
            ("f.spv", &[0xff, 0xfe, 0x00]),
        ] {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
        }
        let paths: Vec<_> = read_tree(folder.path()).unwrap().into_iter().map(|f| f.path).collect();
        assert_eq!(paths, ["a/b.rs"]);
    }

    #[test]
    fn a_missing_root_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        assert!(read_tree(&folder.path().join("none")).is_err());
    }

    #[test]
    fn findings_name_file_and_line() {
        let finding = Finding { file: "a.rs".to_owned(), line: 3, message: "too long".to_owned() };
        assert_eq!(finding.to_string(), "a.rs:3: too long");
        assert_eq!(Finding { line: 0, ..finding }.to_string(), "a.rs: too long");
    }
}
