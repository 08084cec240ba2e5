//! Rules on every text: no paths of one machine, no unfinished marks, no overlong files.

use super::source::{Finding, SourceFile};

/// Largest number of lines of a source file without a stated reason.
const MAX_LINES: usize = 700;

/// The start of the line, among the first ten, that states the reason.
const REASON: &str = "Long because";

/// Returns true for texts written by others: generated files, licences, and patches for other projects.
fn is_foreign_text(path: &str) -> bool {
    let is_patch_for_others = path.starts_with("docs/findings/") && path.ends_with(".patch");
    path == "Cargo.lock" || path.starts_with("LICENSE-") || is_patch_for_others
}

/// Rejects absolute paths that exist on one machine only.
pub fn machine_paths(file: &SourceFile) -> Vec<Finding> {
    if is_foreign_text(&file.path) {
        return Vec::new();
    }
    let homes = ["work", "root", "home", "tmp"].map(|folder| format!("/{folder}/"));
    find_lines(file, "a path of one machine", |line| {
        homes.iter().any(|home| {
            line.match_indices(home.as_str()).any(|(start, _)| {
                // As part of a longer path (`harness/work/`) or a URL it is not a machine path.
                line[..start]
                    .chars()
                    .next_back()
                    .is_none_or(|before| !before.is_alphanumeric() && !".-_}".contains(before))
            })
        })
    })
}

/// Rejects marks of unfinished work.
pub fn unfinished_marks(file: &SourceFile) -> Vec<Finding> {
    if is_foreign_text(&file.path) {
        return Vec::new();
    }
    let marks = [["TO", "DO"], ["FIX", "ME"], ["XX", "X"]].map(|parts| parts.concat());
    find_lines(file, "an unfinished mark: do it, or open an issue", |line| {
        marks.iter().any(|mark| {
            line.match_indices(mark.as_str()).any(|(start, found)| {
                let before = line[..start].chars().next_back();
                let after = line[start + found.len()..].chars().next();
                [before, after].into_iter().flatten().all(|c| !c.is_alphanumeric() && c != '_')
            })
        })
    })
}

/// Rejects source files of more than 700 lines without a reason in their first lines.
pub fn file_length(file: &SourceFile) -> Vec<Finding> {
    let lines = file.text.lines().count();
    let explained = file.text.lines().take(10).any(|line| line.contains(REASON));
    if lines <= MAX_LINES || explained {
        return Vec::new();
    }
    vec![Finding {
        file: file.path.clone(),
        line: 0,
        message: format!("{lines} lines: split it, or give the reason as {REASON:?} in its first ten lines"),
    }]
}

fn find_lines(file: &SourceFile, message: &str, is_bad: impl Fn(&str) -> bool) -> Vec<Finding> {
    file.text
        .lines()
        .enumerate()
        .filter(|(_, line)| is_bad(line))
        .map(|(index, _)| Finding { file: file.path.clone(), line: index + 1, message: message.to_owned() })
        .collect()
}
