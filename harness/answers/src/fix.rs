//! Fixes of findings as edits of a source text.

use std::ops::Range;

use frontend::{KernelChange, SpirvModule, WalkFixes};
use results::wire::{MendRecord, RaceLine};
use similar::TextDiff;

use crate::shader::source_location;

/// Code to replace a range of bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeEdit {
    /// The replaced bytes; empty for an insertion.
    pub range: Range<usize>,
    /// The code, with line ends and indentation.
    pub code: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FixEdits {
    /// A title in the imperative.
    pub title: String,
    /// The edits by offset.
    pub edits: Vec<CodeEdit>,
}

impl FixEdits {
    /// Adds the edits of another fix of the same text, without duplicates.
    pub fn merge(&mut self, other: FixEdits) {
        self.edits.extend(other.edits);
        self.sort();
    }

    fn sort(&mut self) {
        let key = |edit: &CodeEdit| (edit.range.start, edit.range.end, edit.code.clone());
        self.edits.sort_by_key(key);
        self.edits.dedup();
    }

    /// Returns true if both fixes change the same bytes in different ways.
    pub fn conflicts_with(&self, other: &FixEdits) -> bool {
        let overlap = |one: &CodeEdit, two: &CodeEdit| {
            one != two && one.range.start < two.range.end && two.range.start < one.range.end
        };
        self.edits.iter().any(|one| other.edits.iter().any(|two| overlap(one, two)))
    }

    pub fn apply(&self, text: &str) -> String {
        let mut fixed = String::with_capacity(text.len());
        let mut done = 0;
        for edit in &self.edits {
            fixed.push_str(text.get(done..edit.range.start).unwrap_or_default());
            fixed.push_str(&edit.code);
            done = edit.range.end;
        }
        fixed.push_str(text.get(done..).unwrap_or_default());
        fixed
    }

    /// Returns the edits as a unified diff, which `patch` applies to the file.
    pub fn to_unified_diff(&self, file: &str, text: &str) -> String {
        let fixed = self.apply(text);
        let diff = TextDiff::from_lines(text, &fixed);
        diff.unified_diff().header(file, file).to_string()
    }
}

/// Adds the fixes to the findings that they remove.
pub fn add_fixes(line: &mut RaceLine, module: &SpirvModule, fixes: &WalkFixes) {
    for (finding, changes) in line.findings.iter_mut().zip(&fixes.changes) {
        let change = |change: &KernelChange| {
            let (file, number) = source_location(&line.file, module, change.line, change.place);
            MendRecord { file: Some(file), line: number, text: change.text.clone(), edits: Vec::new() }
        };
        finding.mend = changes.iter().map(change).collect();
    }
}

/// Returns the edits of a fix; `None` unless each change has edits of this text or inserts code before or
/// after a line. `is_here` returns true for names of the text's file.
pub fn fix_edits(
    changes: &[MendRecord],
    is_here: impl Fn(&Option<String>) -> bool,
    text: &str,
) -> Option<FixEdits> {
    let is_edited = |change: &&MendRecord| !change.edits.is_empty();
    let (edited, described): (Vec<&MendRecord>, Vec<&MendRecord>) = changes.iter().partition(is_edited);
    if edited.iter().any(|change| !is_here(&change.file)) {
        return None;
    }
    let mut fix =
        if described.is_empty() { FixEdits::default() } else { parse_insertions(&described, is_here, text)? };
    for edit in edited.iter().flat_map(|change| &change.edits) {
        let start = line_start(text, edit.line as usize);
        let end = line_start(text, edit.line.saturating_add(edit.removed) as usize);
        fix.edits.push(CodeEdit { range: start..end, code: edit.text.clone() });
    }
    fix.sort();
    let titles = edited.iter().map(|change| match change.line {
        Some(line) if change.text.contains("this line") => {
            change.text.replace("this line", &format!("line {line}"))
        }
        Some(line) => format!("{} (line {line})", change.text),
        None => change.text.clone(),
    });
    let titles: Vec<String> =
        Some(fix.title).filter(|title| !title.is_empty()).into_iter().chain(titles).collect();
    let title = titles.join(" and ");
    let first = title.chars().next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    fix.title = first + title.get(1..).unwrap_or_default();
    Some(fix).filter(|fix| !fix.edits.is_empty())
}

/// Returns the insertions that changes describe in words.
fn parse_insertions(
    changes: &[&MendRecord],
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
        let insertion_at = |at, code| CodeEdit { range: at..at, code };
        insertions.extend(before.then(|| insertion_at(range.start, format!("{code}\n{indentation}"))));
        insertions.extend(after.then(|| insertion_at(range.end, format!("\n{indentation}{code}"))));
        titles.push(format!("`{code}` {sides} line {line}"));
    }
    if titles.is_empty() || titles.len() < changes.len() {
        return None;
    }
    insertions.sort_by_key(|insertion| insertion.range.start);
    Some(FixEdits { title: format!("Put {}", titles.join(" and ")), edits: insertions })
}

/// Returns the offset of the first byte of a line, from 1; the end of the text for a line past the end.
fn line_start(text: &str, line: usize) -> usize {
    text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum()
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
    use results::wire::EditRecord;

    use super::*;

    const TEXT: &str = "void main() {\n    tile[i] = x;\n    y = tile[j];\n}\n";

    fn edits(line: u32, text: &str) -> Option<FixEdits> {
        let change = MendRecord { line: Some(line), text: text.to_owned(), file: None, edits: Vec::new() };
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

    #[test]
    fn edits_replace_whole_lines() {
        let edit = EditRecord { line: 2, removed: 1, text: "    atomicAdd(tile[i], x);\n".to_owned() };
        let text = "use `atomicAdd`".to_owned();
        let change = MendRecord { line: Some(2), text, file: None, edits: vec![edit] };
        let fix = fix_edits(&[change], |_| true, TEXT).unwrap();
        assert_eq!(fix.title, "Use `atomicAdd` (line 2)");
        assert_eq!(fix.apply(TEXT), TEXT.replace("tile[i] = x", "atomicAdd(tile[i], x)"));
    }
}
