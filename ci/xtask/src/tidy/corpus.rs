//! Rules on the corpus: each test has an expectation, a reason and its file's name, and each suite line
//! matches tests.

use globset::GlobBuilder;

use super::source::{Finding, SourceFile};

/// Tests from which suites select.
const CORPUS: &str = "litmus/corpus/";
/// Tests that only models can judge.
const MODEL_ONLY: &str = "litmus/model-only/";
const SUITES: &str = "litmus/suites/";

/// Checks tests and suites.
pub fn check(files: &[SourceFile]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut ids = Vec::new();
    for file in files {
        let Some(path) = file.path.strip_suffix(".litmus") else { continue };
        if let Some(id) = path.strip_prefix(CORPUS) {
            ids.push(id.to_owned());
        } else if !path.starts_with(MODEL_ONLY) {
            continue;
        }
        findings.extend(check_header(file));
    }
    for file in files.iter().filter(|file| file.path.starts_with(SUITES) && file.path.ends_with(".txt")) {
        findings.extend(check_suite(file, &ids));
    }
    findings
}

/// Checks the header of a test: dialect and name on the first line, then `expect:` and `why:` before the
/// first `{`.
fn check_header(file: &SourceFile) -> Vec<Finding> {
    let finding = |line: usize, message: String| Finding { file: file.path.clone(), line, message };
    let header = file.text.split('{').next().unwrap_or_default();
    let mut findings = Vec::new();
    let stem = file.path.rsplit('/').next().and_then(|name| name.strip_suffix(".litmus")).unwrap_or_default();
    let name = header.lines().next().unwrap_or_default().split_whitespace().nth(1).unwrap_or_default();
    if name != stem {
        findings.push(finding(1, format!("the test is named {name:?}, its file {stem:?}")));
    }
    for key in ["expect:", "why:"] {
        let has_value = |line: &str| line.strip_prefix(key).is_some_and(|rest| !rest.trim().is_empty());
        if !header.lines().any(has_value) {
            findings.push(finding(0, format!("no `{key}` line")));
        }
    }
    findings
}

/// Checks a suite: each line that is neither empty nor a `#` comment is a glob that matches tests; a leading
/// `!` excludes them.
fn check_suite(file: &SourceFile, ids: &[String]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        let pattern = line.split('#').next().unwrap_or_default().trim();
        if pattern.is_empty() {
            continue;
        }
        let pattern = pattern.strip_prefix('!').map_or(pattern, str::trim);
        // The part after `@` selects a variant, not a test.
        let pattern = pattern.rsplit_once('@').map_or(pattern, |(tests, _)| tests);
        let message = match GlobBuilder::new(pattern).literal_separator(true).build() {
            Err(error) => error.to_string(),
            Ok(glob) => {
                let matcher = glob.compile_matcher();
                if ids.iter().any(|id| matcher.is_match(id)) {
                    continue;
                }
                format!("no test matches {pattern:?}")
            }
        };
        findings.push(Finding { file: file.path.clone(), line: index + 1, message });
    }
    findings
}
