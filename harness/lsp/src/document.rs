//! Open documents: their text, edits, and positions of the protocol.
//!
//! A position is a line and a column in UTF-16 code units, both from 0; `\n`, `\r\n` and `\r` end lines.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use editor::DocumentLanguage;
use lsp_types::{Position, TextDocumentContentChangeEvent};

/// A text with the offsets of its lines.
#[derive(Clone, Debug)]
pub struct DocumentText {
    content: Arc<str>,
    /// The byte offset of each line; never empty.
    lines: Arc<[usize]>,
}

impl DocumentText {
    /// Indexes a text.
    pub fn new(content: &str) -> DocumentText {
        let bytes = content.as_bytes();
        let is_line_end = |at: &usize| match bytes[*at] {
            b'\n' => true,
            b'\r' => bytes.get(at + 1) != Some(&b'\n'),
            _ => false,
        };
        let lines = std::iter::once(0).chain((0..bytes.len()).filter(is_line_end).map(|at| at + 1)).collect();
        DocumentText { content: content.into(), lines }
    }

    pub fn content(&self) -> &str {
        &self.content
    }

    /// Returns a line without its end; empty past the end of the text.
    fn line_content(&self, line: usize) -> &str {
        let Some(start) = self.lines.get(line) else { return "" };
        let end = self.lines.get(line + 1).copied().unwrap_or(self.content.len());
        self.content[*start..end].trim_end_matches(['\n', '\r'])
    }

    /// Returns the byte offset of a position. Positions past the end of a line or of the text are its end; one
    /// within a character is its start.
    pub fn offset_of(&self, position: Position) -> usize {
        let Some(start) = self.lines.get(position.line as usize) else { return self.content.len() };
        let mut units = 0;
        let mut bytes = 0;
        for c in self.line_content(position.line as usize).chars() {
            units += c.len_utf16();
            if units > position.character as usize {
                break;
            }
            bytes += c.len_utf8();
        }
        start + bytes
    }

    /// Returns the position of a byte offset. An offset within a character is its start.
    pub fn position_of(&self, offset: usize) -> Position {
        let offset = offset.min(self.content.len());
        let line = self.lines.partition_point(|start| *start <= offset).saturating_sub(1);
        let start = self.lines.get(line).copied().unwrap_or(0);
        let before =
            self.line_content(line).char_indices().take_while(|(at, c)| start + at + c.len_utf8() <= offset);
        let units: usize = before.map(|(_, c)| c.len_utf16()).sum();
        Position { line: line as u32, character: units as u32 }
    }

    /// Returns the range of the protocol for a range of bytes.
    pub fn range_of(&self, range: &Range<usize>) -> lsp_types::Range {
        lsp_types::Range { start: self.position_of(range.start), end: self.position_of(range.end) }
    }

    /// Returns the bytes that an edit replaces.
    pub fn replaced_range(&self, change: &TextDocumentContentChangeEvent) -> Range<usize> {
        let Some(range) = change.range else { return 0..self.content.len() };
        let start = self.offset_of(range.start);
        start..self.offset_of(range.end).max(start)
    }

    /// Returns the text after an edit.
    pub fn apply_edit(&self, change: &TextDocumentContentChangeEvent) -> DocumentText {
        let replaced = self.replaced_range(change);
        DocumentText::new(
            &[&self.content[..replaced.start], &change.text, &self.content[replaced.end..]].concat(),
        )
    }
}

#[derive(Clone, Debug)]
pub struct Document {
    /// The version that the editor counts.
    pub version: i32,
    pub text: DocumentText,
    /// The language; `None` if the server does not analyse it.
    pub language: Option<DocumentLanguage>,
    /// The path of a file; the address for documents without one.
    pub path: PathBuf,
    /// True if the document is a file of this machine.
    pub is_file: bool,
}

/// Returns the path of a `file:` address; `None` for other addresses.
pub fn file_path(address: &str) -> Option<PathBuf> {
    let rest = address.strip_prefix("file://")?;
    // An authority other than this machine has no local path.
    let path = rest.strip_prefix("localhost").unwrap_or(rest);
    let path = path.starts_with('/').then_some(path)?;
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.bytes();
    while let Some(byte) = rest.next() {
        let byte = if byte == b'%' {
            let digits = [rest.next()?, rest.next()?];
            u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
        } else {
            byte
        };
        bytes.push(byte);
    }
    let path = String::from_utf8(bytes).ok()?;
    // `/c:/x` is `c:/x` on Windows.
    let has_drive = path.get(1..3).is_some_and(|drive| drive.ends_with(':') && cfg!(windows));
    Some(PathBuf::from(if has_drive { &path[1..] } else { &path }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn position(line: u32, character: u32) -> Position {
        Position { line, character }
    }

    #[test]
    fn positions_count_utf16_units() {
        let text = DocumentText::new("a🦀b\r\nü = 1\rx\n");
        let cases =
            [(0, 0, 0), (0, 1, 1), (0, 3, 5), (0, 4, 6), (1, 0, 8), (1, 1, 10), (2, 0, 15), (3, 0, 17)];
        for (line, character, offset) in cases {
            assert_eq!(text.offset_of(position(line, character)), offset, "{line}:{character}");
            assert_eq!(text.position_of(offset), position(line, character), "{offset}");
        }
        // Within the crab, past the end of a line, and past the end of the text.
        assert_eq!(text.offset_of(position(0, 2)), 1);
        assert_eq!(text.offset_of(position(0, 99)), 6);
        assert_eq!(text.offset_of(position(99, 0)), 17);
        assert_eq!(text.position_of(3), position(0, 1));
        assert_eq!(text.position_of(99), position(3, 0));
    }

    #[test]
    fn edits_replace_ranges() {
        let change = |range, text: &str| TextDocumentContentChangeEvent {
            range,
            range_length: None,
            text: text.to_owned(),
        };
        let range = |from: (u32, u32), to: (u32, u32)| {
            Some(lsp_types::Range { start: position(from.0, from.1), end: position(to.0, to.1) })
        };
        let text = DocumentText::new("a🦀b\nc");
        assert_eq!(text.apply_edit(&change(range((0, 1), (0, 3)), "-")).content(), "a-b\nc");
        assert_eq!(text.apply_edit(&change(range((0, 4), (1, 0)), "")).content(), "a🦀bc");
        assert_eq!(text.apply_edit(&change(range((9, 0), (9, 9)), "!")).content(), "a🦀b\nc!");
        // A range that ends before it starts inserts.
        assert_eq!(text.apply_edit(&change(range((1, 0), (0, 0)), "x")).content(), "a🦀b\nxc");
        assert_eq!(text.apply_edit(&change(None, "new")).content(), "new");
    }

    #[test]
    fn paths_of_addresses() {
        let cases = [
            ("file:///a%20b/%C3%BC.comp", Some("/a b/ü.comp")),
            ("file://localhost/x", Some("/x")),
            ("file://host/x", None),
            ("untitled:Untitled-1", None),
            ("file:///bad%2", None),
            ("file:///bad%zz", None),
        ];
        for (address, expected) in cases {
            assert_eq!(file_path(address), expected.map(PathBuf::from), "{address}");
        }
    }
}
