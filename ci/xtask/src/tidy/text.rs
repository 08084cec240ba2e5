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

#[cfg(test)]
mod tests {
    use super::super::source::test_file;
    use super::*;

    #[test]
    fn machine_paths_are_found_and_others_are_not() {
        let bad = ["wo", "rk"].concat();
        let found = machine_paths(&test_file("a.md", &format!("fine\nsee /{bad}/main\n")));
        assert_eq!(found.iter().map(|f| f.line).collect::<Vec<_>>(), [2]);
        assert!(
            machine_paths(&test_file("a.md", &format!("ci/{bad}/x https://a.b/{bad}/ /usr/share/vulkan/")))
                .is_empty()
        );
        assert!(machine_paths(&test_file("Cargo.lock", &format!("/{bad}/main"))).is_empty());
    }

    #[test]
    fn unfinished_marks_are_found_as_words_only() {
        let mark = ["TO", "DO"].concat();
        assert_eq!(unfinished_marks(&test_file("a.rs", &format!("// {mark}: later"))).len(), 1);
        assert!(unfinished_marks(&test_file("a.rs", &format!("const MY_{mark}S: u8 = 1;"))).is_empty());
        // Patches of this repository count; those in other projects' sources do not.
        assert_eq!(
            unfinished_marks(&test_file("ci/mutants/a.patch", &format!("+// {mark}: later"))).len(),
            1
        );
        assert!(
            unfinished_marks(&test_file("docs/findings/F0.patch", &format!("-// {mark}: later"))).is_empty()
        );
    }

    #[test]
    fn long_files_need_a_reason() {
        let long = "//\n".repeat(MAX_LINES + 1);
        assert_eq!(file_length(&test_file("a.rs", &long)).len(), 1);
        assert!(file_length(&test_file("a.rs", &format!("//! {REASON} it is a table.\n{long}"))).is_empty());
        assert!(file_length(&test_file("a.rs", &"//\n".repeat(MAX_LINES))).is_empty());
    }
}
