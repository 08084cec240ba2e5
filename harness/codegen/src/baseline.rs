//! Machine code as text files for version control: one file per target, one section per kernel.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::differ::line_diff;

/// The code of one target. Sections are sorted by name, so that a new test changes no other line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CodeBaseline {
    /// Lines by section: `TEST FORM KERNEL`.
    pub sections: BTreeMap<String, Vec<String>>,
}

/// The prefix of a section heading.
const SECTION: &str = "== ";
/// The prefix of a comment.
const COMMENT: &str = "# ";

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: expected `== TEST FORM KERNEL` before any code")]
pub struct CodeBaselineError {
    /// The line, from 1.
    pub line: usize,
}

impl CodeBaseline {
    /// Returns the text of a file; `header_lines` become comment lines at the start.
    pub fn to_text(&self, header_lines: &[String]) -> String {
        let mut text = String::new();
        for line in header_lines {
            let written = writeln!(text, "{COMMENT}{line}");
            debug_assert!(written.is_ok(), "writing to a string cannot fail");
        }
        for (name, lines) in &self.sections {
            text += &format!("\n{SECTION}{name}\n");
            for line in lines {
                text += &format!("{line}\n");
            }
        }
        text
    }

    /// Parses a file.
    ///
    /// # Errors
    ///
    /// [`CodeBaselineError`] if code precedes the first section.
    pub fn parse(text: &str) -> Result<CodeBaseline, CodeBaselineError> {
        let mut baseline = CodeBaseline::default();
        let mut section: Option<String> = None;
        for (number, line) in (1..).zip(text.lines()) {
            if line.trim().is_empty() || line.starts_with(COMMENT) {
                continue;
            }
            if let Some(name) = line.strip_prefix(SECTION) {
                baseline.sections.entry(name.to_owned()).or_default();
                section = Some(name.to_owned());
                continue;
            }
            let section_lines = section.as_ref().and_then(|name| baseline.sections.get_mut(name));
            section_lines.ok_or(CodeBaselineError { line: number })?.push(line.to_owned());
        }
        Ok(baseline)
    }

    /// Returns the sections that differ from `self`, including new and missing ones.
    pub fn changed_sections(&self, current: &CodeBaseline) -> Vec<SectionChange> {
        let names = self.sections.keys().chain(current.sections.keys());
        let mut names: Vec<&String> = names.collect();
        names.sort();
        names.dedup();
        let no_lines = Vec::new();
        let change = |name: &String| {
            let (before, after) = (self.sections.get(name), current.sections.get(name));
            (before != after).then(|| SectionChange {
                section: name.clone(),
                kind: match (before, after) {
                    (None, _) => BaselineChangeKind::Added,
                    (_, None) => BaselineChangeKind::Removed,
                    _ => BaselineChangeKind::Changed,
                },
                lines: line_diff(before.unwrap_or(&no_lines), after.unwrap_or(&no_lines)),
            })
        };
        names.into_iter().filter_map(change).collect()
    }
}

/// A section that has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SectionChange {
    /// Its name.
    pub section: String,
    pub kind: BaselineChangeKind,
    /// Its lines, as [`line_diff`] formats them.
    pub lines: Vec<String>,
}

/// The kind of a section's change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BaselineChangeKind {
    /// The section is new.
    Added,
    /// The section is missing.
    Removed,
    Changed,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn baseline(sections: &[(&str, &[&str])]) -> CodeBaseline {
        let lines = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect();
        CodeBaseline {
            sections: sections.iter().map(|(name, code)| ((*name).to_owned(), lines(code))).collect(),
        }
    }

    #[test]
    fn baseline_files_round_trip() {
        let written = baseline(&[("mp/MP merged P0,P1", &["a", "b"]), ("sb/SB merged P0,P1", &[])]);
        let text = written.to_text(&["radv:navi31".to_owned()]);
        assert!(text.starts_with("# radv:navi31\n\n== mp/MP merged P0,P1\na\nb\n"), "{text}");
        assert_eq!(CodeBaseline::parse(&text), Ok(written));
        assert_eq!(CodeBaseline::parse("# x\n\ncode\n"), Err(CodeBaselineError { line: 3 }));
    }

    #[test]
    fn changes_are_reported_by_section() {
        let old = baseline(&[("a", &["1", "2"]), ("b", &["1"]), ("c", &["1"])]);
        let new = baseline(&[("a", &["1", "3"]), ("b", &["1"]), ("d", &["1"])]);
        let changes = old.changed_sections(&new);
        let kinds: Vec<(&str, BaselineChangeKind)> =
            changes.iter().map(|c| (c.section.as_str(), c.kind)).collect();
        assert_eq!(
            kinds,
            [
                ("a", BaselineChangeKind::Changed),
                ("c", BaselineChangeKind::Removed),
                ("d", BaselineChangeKind::Added)
            ]
        );
        assert_eq!(changes[0].lines, ["  1", "- 2", "+ 3"]);
        assert_eq!(old.changed_sections(&old), []);
    }
}
