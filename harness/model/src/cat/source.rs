//! Source texts of a model and locations in them.

use std::sync::Arc;

/// Index of a text in the list of a model's sources: 0 is the model itself, the others are its includes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceId(pub u16);

/// One text: the model, or an included file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceText {
    /// Its name, as given by the caller or written after `include`.
    pub name: String,
    pub text: Arc<str>,
}

/// A range of one of the texts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CatSpan {
    /// The text of the span.
    pub source: SourceId,
    /// Byte offset of the first character.
    pub offset: u32,
    pub length: u32,
    /// Line, counted from 1.
    pub line: u32,
    /// Column in characters, counted from 1.
    pub column: u32,
}

impl CatSpan {
    /// Byte offset of the end.
    pub fn end_offset(self) -> u32 {
        self.offset + self.length
    }

    /// From the start of `self` to the end of `other`, which must not start before it.
    pub fn merge_with(self, other: CatSpan) -> CatSpan {
        CatSpan { length: other.end_offset().saturating_sub(self.offset), ..self }
    }
}

/// Returns the text of a range without comments, on one line.
pub(crate) fn text_of(span: CatSpan, sources: &[SourceText]) -> String {
    let source = sources.get(usize::from(span.source.0));
    let range = span.offset as usize..span.end_offset() as usize;
    let mut rest = source.and_then(|source| source.text.get(range)).unwrap_or("");
    let mut plain = String::new();
    while let Some((before, after)) = rest.split_once("(*") {
        plain.push_str(before);
        rest = after.split_once("*)").map_or("", |(_, after)| after);
    }
    plain.push_str(rest);
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}
