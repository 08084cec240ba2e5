//! A problem in a text: its byte range, and the edits that correct it.

use std::ops::Range;

/// The severity of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The text is invalid, or the shader is undefined.
    Error,
    /// The text is valid and probably wrong.
    Warning,
    Information,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextProblem {
    /// The bytes of the text that it is about.
    pub range: Range<usize>,
    pub severity: Severity,
    /// A stable code, such as `litmus::parse::unknown_scope`.
    pub code: String,
    pub message: String,
    /// Further byte ranges of the same text, each with its meaning.
    pub related: Vec<(Range<usize>, String)>,
    /// Alternative corrections.
    pub corrections: Vec<Correction>,
    /// A file next to the document that settles the problem.
    pub new_file: Option<NewFile>,
}

/// A file to create, with the inputs of a shader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewFile {
    /// The extension, after the whole name of the document.
    pub extension: String,
    pub text: String,
}

/// A change of a text that removes a problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Correction {
    /// The title in the editor's menu.
    pub title: String,
    /// Byte ranges and their replacements, in text order and disjoint.
    pub edits: Vec<(Range<usize>, String)>,
}

impl TextProblem {
    /// Creates a problem without related ranges and corrections.
    pub fn new(range: Range<usize>, severity: Severity, code: &str, message: String) -> TextProblem {
        TextProblem {
            range,
            severity,
            code: code.to_owned(),
            message,
            related: Vec::new(),
            corrections: Vec::new(),
            new_file: None,
        }
    }

    /// Adds the correction that replaces the range by `text`.
    #[must_use]
    pub fn with_replacement(mut self, text: &str) -> TextProblem {
        let edits = vec![(self.range.clone(), text.to_owned())];
        self.corrections.push(Correction { title: format!("Replace by `{text}`"), edits });
        self
    }

    /// Moves the ranges as an edit does that replaces `edit` by `length` bytes.
    pub fn shift(&mut self, edit: &Range<usize>, length: usize) {
        let moved = |at: usize| if at >= edit.end { at - edit.len() + length } else { at.min(edit.start) };
        for range in std::iter::once(&mut self.range).chain(self.related.iter_mut().map(|(range, _)| range)) {
            let start = moved(range.start);
            *range = start..moved(range.end).max(start);
        }
    }
}

/// Returns the byte offset of a column in a line, both counted from 1, the column in characters.
pub fn offset_at(text: &str, line: usize, column: usize) -> usize {
    let start: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    let content = text.get(start..).unwrap_or_default().lines().next().unwrap_or_default();
    let within = content.char_indices().nth(column.saturating_sub(1)).map_or(content.len(), |(at, _)| at);
    start + within
}

/// Returns the bytes of the word at an offset: letters, digits, `_` and the characters of `more`.
pub fn word_range(text: &str, offset: usize, more: &str) -> Range<usize> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || more.contains(c);
    let (before, after) = text.split_at_checked(offset).unwrap_or((text, ""));
    let start = before.trim_end_matches(is_part).len();
    start..before.len() + (after.len() - after.trim_start_matches(is_part).len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_move_with_edits() {
        let moved = |edit: Range<usize>, length| {
            let mut problem = TextProblem::new(10..20, Severity::Error, "", String::new());
            problem.shift(&edit, length);
            problem.range
        };
        // Before the range, at its start, within it, and after it.
        assert_eq!(moved(2..4, 5), 13..23);
        assert_eq!(moved(10..10, 3), 13..23);
        assert_eq!(moved(12..14, 0), 10..18);
        assert_eq!(moved(20..25, 1), 10..20);
        // Across its start, and all of it.
        assert_eq!(moved(5..15, 0), 5..10);
        assert_eq!(moved(5..30, 2), 5..5);
    }

    #[test]
    fn positions_of_words() {
        let text = "one\n  zwei 🦀x = 1\r\n\nlast";
        assert_eq!(&text[offset_at(text, 2, 9)..][..1], "x");
        assert_eq!(offset_at(text, 1, 99), 3);
        assert_eq!(&text[word_range(text, 8, "")], "zwei");
        assert_eq!(&text[word_range(text, 5, "")], "");
        assert_eq!(&"a VK-SW-01, b"[word_range("a VK-SW-01, b", 4, "-")], "VK-SW-01");
    }
}
