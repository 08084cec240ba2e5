//! Fixes of findings as edits of a source text.

use std::ops::Range;

use results::wire::MendRecord;
use similar::TextDiff;

/// Code to insert at a byte offset.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CodeInsertion {
    /// The offset.
    pub at: usize,
    /// The code, with line ends and indentation.
    pub code: String,
}

/// The edits of a fix.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FixEdits {
    /// A title in the imperative.
    pub title: String,
    /// The insertions by offset.
    pub insertions: Vec<CodeInsertion>,
}

impl FixEdits {
    /// Adds the insertions of another fix of the same text; equal ones once.
    pub fn merge(&mut self, other: FixEdits) {
        self.insertions.extend(other.insertions);
        self.insertions.sort();
        self.insertions.dedup();
    }

    /// Returns the text with all insertions.
    pub fn apply(&self, text: &str) -> String {
        let mut fixed = String::with_capacity(text.len());
        let mut done = 0;
        for insertion in &self.insertions {
            fixed.push_str(&text[done..insertion.at]);
            fixed.push_str(&insertion.code);
            done = insertion.at;
        }
        fixed.push_str(&text[done..]);
        fixed
    }

    /// Returns the insertions as a unified diff, which `patch` applies to the file.
    pub fn diff(&self, file: &str, text: &str) -> String {
        let fixed = self.apply(text);
        let diff = TextDiff::from_lines(text, &fixed);
        diff.unified_diff().header(file, file).to_string()
    }
}

/// Returns the edits of a fix, if each change inserts code before or after lines of this text. `is_here` returns
/// true for names of the text's file.
pub fn fix_edits(
    changes: &[MendRecord],
    is_here: impl Fn(&Option<String>) -> bool,
    text: &str,
) -> Option<FixEdits> {
    let mut insertions = Vec::new();
    let mut titles = Vec::new();
    for change in changes.iter().filter(|change| is_here(&change.file)) {
        let (code, side) = change.text.strip_prefix("put `")?.split_once("` ")?;
        let line = change.line? as usize;
        let range = line_range(text, line);
        let start = text[..range.start].rfind('\n').map_or(0, |end| end + 1);
        let indentation = &text[start..range.start];
        let (sides, place) = side.split_once(" this ")?;
        // The end of a loop or of a controlled statement is on another line.
        let is_on_line = matches!(place, "line" | "atomic" | "barrier" | "read" | "write");
        let is_statement = text[range.clone()].trim_end().ends_with(';');
        let (before, after) = match sides {
            "before" => (true, false),
            "after" => (false, true),
            "before and after" => (true, true),
            _ => return None,
        };
        if !is_on_line || after && !is_statement {
            return None;
        }
        let insertion = |at, code| CodeInsertion { at, code };
        insertions.extend(before.then(|| insertion(range.start, format!("{code}\n{indentation}"))));
        insertions.extend(after.then(|| insertion(range.end, format!("\n{indentation}{code}"))));
        titles.push(format!("`{code}` {sides} line {line}"));
    }
    if titles.is_empty() || titles.len() < changes.len() {
        return None;
    }
    insertions.sort_by_key(|insertion| insertion.at);
    Some(FixEdits { title: format!("Put {}", titles.join(" and ")), insertions })
}

/// Returns the bytes of a line without its indentation and end; `line` counts from 1.
///
/// A line past the end gives an empty range at the end of the text.
pub fn line_range(text: &str, line: usize) -> Range<usize> {
    let mut start = 0;
    for (number, content) in text.split_inclusive('\n').enumerate() {
        if number + 1 == line {
            let indentation = content.len() - content.trim_start().len();
            let end = start + content.trim_end().len();
            return (start + indentation).min(end)..end;
        }
        start += content.len();
    }
    text.len()..text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "void main() {\n    tile[i] = x;\n    y = tile[j];\n}\n";

    fn edits(line: u32, text: &str) -> Option<FixEdits> {
        let change = MendRecord { line: Some(line), text: text.to_owned(), file: None };
        fix_edits(&[change], |_| true, TEXT)
    }

    #[test]
    fn a_fix_is_offered_only_as_a_whole() {
        let both = edits(2, "put `barrier();` before and after this barrier").unwrap();
        assert_eq!(both.title, "Put `barrier();` before and after line 2");
        let fixed = "void main() {\n    barrier();\n    tile[i] = x;\n    barrier();\n    y = tile[j];\n}\n";
        assert_eq!(both.apply(TEXT), fixed);
        // The statement may end on another line.
        assert_eq!(edits(1, "put `barrier();` after this atomic"), None);
        assert_eq!(edits(2, "put `barrier();` after the statement that this line controls"), None);
    }
}
