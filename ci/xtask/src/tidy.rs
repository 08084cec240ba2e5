//! `tidy`: repository rules that no compiler checks. Each rule is a function from a text to its findings.

mod code;
mod corpus;
mod cycles;
mod document_names;
mod edges;
mod names;
mod prose;
pub mod source;
mod text;

use std::path::Path;

use walkdir::WalkDir;

use self::source::{Finding, SourceFile, SourceReadError};
use crate::error::ChoreError;

/// Reads the repository, applies every rule and prints the findings.
pub fn run(root: &Path, _: &[String]) -> Result<(), ChoreError> {
    let files = read_tree(root)?;
    let findings = check(&files);
    for finding in &findings {
        println!("{finding}");
    }
    if findings.is_empty() {
        println!("tidy: {} files, no findings", files.len());
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
            findings.extend(prose::refused_words(file));
        }
        if file.path.ends_with(".rs") {
            findings.extend(prose::refused_first_words(file));
            findings.extend(text::file_length(file));
            findings.extend(code::ash_outside_device(file));
            findings.extend(code::printing_in_libraries(file));
            findings.extend(code::serialized_types(file));
            findings.extend(code::unsafe_outside_device(file));
            findings.extend(code::ignored_tests(file));
            findings.extend(code::parsed_sentences(file));
            findings.extend(code::parsed_names(file));
        }
    }
    findings.extend(code::forgotten_tests(files));
    findings.extend(code::slow_tests(files));
    findings.extend(code::impure_crates(files, &edges::read_manifests(files)));
    findings.extend(code::catch_alls(files));
    findings.extend(cycles::check(files));
    findings.extend(edges::check(files));
    findings.extend(names::check(files));
    findings.extend(document_names::check(files));
    findings.extend(corpus::check(files));
    findings
}

/// Returns true for folders without sources: build outputs and results.
fn is_output_folder(name: &str) -> bool {
    name == "target" || name.starts_with("vk-litmus-out")
}

/// Reads every text file below `root`, sorted by path. Files that are not UTF-8 are skipped.
fn read_tree(root: &Path) -> Result<Vec<SourceFile>, SourceReadError> {
    let mut files = Vec::new();
    let walk = WalkDir::new(root).sort_by_file_name().into_iter().filter_entry(|entry| {
        // In a git worktree, `.git` is a file.
        let name = entry.file_name().to_str().unwrap_or_default();
        name != ".git" && !(entry.file_type().is_dir() && is_output_folder(name))
    });
    for entry in walk {
        let entry = entry.map_err(|error| SourceReadError {
            path: error.path().unwrap_or(root).to_path_buf(),
            source: error.into(),
        })?;
        if !entry.file_type().is_file() {
            continue;
        }
        let path = entry.path();
        let bytes =
            std::fs::read(path).map_err(|source| SourceReadError { path: path.to_path_buf(), source })?;
        let Ok(text) = String::from_utf8(bytes) else { continue };
        let relative = path.strip_prefix(root).unwrap_or(path);
        let parts: Vec<_> = relative.components().map(|part| part.as_os_str().to_string_lossy()).collect();
        files.push(SourceFile { path: parts.join("/"), text });
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::source::test_file;
    use super::*;

    /// The files of a case that has none of these paths.
    const BASE: [(&str, &str); 2] = [
        (
            "ARCHITECTURE.md",
            "- **`litmus` are pure**\n<!-- crate edges -->\nlitmus → ∅\n<!-- end of crate edges -->\n",
        ),
        ("litmus/Cargo.toml", "[package]\nname = \"litmus\"\n"),
    ];

    /// The file of cases: after `=== name` files, each after `--- path`, and the expected findings after `+++`. `¶` splits
    /// words that the rules refuse everywhere. `VK_LITMUS_BLESS=1` writes the findings; review the diff.
    #[test]
    fn cases_have_their_findings() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tidy/cases.txt");
        let cases = std::fs::read_to_string(&path).unwrap();
        let mut written = String::new();
        for case in cases.split("=== ").skip(1) {
            let input = case.split("+++\n").next().unwrap();
            let plain = input.replace('¶', "");
            let mut files: Vec<SourceFile> = plain
                .split("--- ")
                .skip(1)
                .map(|part| {
                    let (path, text) = part.split_once('\n').unwrap();
                    test_file(path, text)
                })
                .collect();
            for (path, text) in BASE {
                if files.iter().all(|file| file.path != path) {
                    files.push(test_file(path, text));
                }
            }
            let mut found = check(&files);
            // The entries for the cycles of this repository.
            found.retain(|finding| !finding.message.starts_with("is listed in ci/xtask/src/tidy/cycles.rs"));
            written += &format!("=== {input}+++\n");
            written.extend(found.iter().map(|finding| format!("{finding}\n")));
        }
        if std::env::var_os("VK_LITMUS_BLESS").is_some() {
            std::fs::write(path, written).unwrap();
            return;
        }
        let (found, expected): (Vec<&str>, Vec<&str>) = (written.lines().collect(), cases.lines().collect());
        let first = found.iter().zip(&expected).find(|(found, expected)| found != expected);
        assert_eq!((first, found.len()), (None, expected.len()));
    }

    #[test]
    fn long_files_need_a_reason() {
        let long = "//\n".repeat(701);
        assert_eq!(text::file_length(&test_file("a.rs", &long)).len(), 1);
        assert_eq!(
            text::file_length(&test_file("a.rs", &format!("//! Long because of its table.\n{long}"))),
            []
        );
        assert_eq!(text::file_length(&test_file("a.rs", &long[3..])), []);
    }

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
}
