//! Parses everything before the first `{`: the dialect, the name and the metadata.

use std::borrow::Cow;

use super::lexer::StartPosition;
use crate::error::{ErrorList, ParseError};
use crate::metadata::{Expectation, Metadata, Reachability, TerminationExpectation};
use crate::outcome::Race;
use crate::span::Span;
use crate::test::Dialect;

/// A syntax that is only read, to convert its tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForeignSyntax {
    /// herd's C11, and OpenCL.
    C11,
    /// PTX.
    Ptx,
}

impl ForeignSyntax {
    /// Returns its dialect words, and these as a text.
    fn keywords(self) -> (&'static [&'static str], &'static str) {
        match self {
            ForeignSyntax::C11 => (&["C", "OPENCL", "OpenCL"], "`C` or `OPENCL`"),
            ForeignSyntax::Ptx => (&["PTX", "ptx"], "`PTX`"),
        }
    }
}

/// The header of a test, and the start of its body.
pub(super) struct Header {
    pub name: String,
    pub dialect: Dialect,
    pub metadata: Metadata,
    /// The position of the first `{`, or the end of the text.
    pub body: StartPosition,
}

/// Parses the header of `text`; `None` if the rest cannot be parsed.
pub(super) fn parse_header(
    text: &str,
    source_name: &str,
    strict_metadata: bool,
    foreign: Option<ForeignSyntax>,
    errors: &mut ErrorList,
) -> Option<Header> {
    let mut region = blank_comments(text, errors)?;
    if let Some(end) = region.find('{') {
        match &mut region {
            Cow::Borrowed(borrowed) => *borrowed = &borrowed[..end],
            Cow::Owned(owned) => owned.truncate(end),
        }
    }
    let region: &str = &region;
    let mut lines = TextLines { text: region, offset: 0, line: 0 };
    // Blank lines and comments may precede the keyword.
    let (word, first) = loop {
        let Some(line) = lines.next() else {
            let (found, expected) = ("end of the text".to_owned(), "`VULKAN`");
            errors.push(ParseError::Unexpected { found, expected, span: lines.end_position() });
            return None;
        };
        let trimmed = line.trim_with(&['\u{feff}']);
        if let Some(word) = trimmed.text.split_whitespace().next() {
            break (trimmed.sub_piece(0, word.len()), trimmed);
        }
    };
    let dialect = dialect_of(&word, foreign, errors)?;
    let rest = first.sub_piece(word.text.len(), first.text.len()).trim_with(&[]);
    let name = rest.text.split_whitespace().next().filter(|name| !name.starts_with('"')).unwrap_or("");
    let mut reader =
        MetadataReader { metadata: Metadata::default(), strict_metadata, in_quotes: false, errors };
    reader.read_line(rest.sub_piece(name.len(), rest.text.len()).trim_with(&[]));
    for line in &mut lines {
        reader.read_line(line.trim_with(&[]));
    }
    let metadata = reader.metadata;
    let name = if name.is_empty() { file_stem(source_name) } else { name.to_owned() };
    let end = lines.end_position();
    Some(Header {
        name,
        dialect,
        metadata,
        body: StartPosition { offset: end.offset as usize, line: end.line, column: end.column },
    })
}

/// Returns the possible header in `text`, with each `(* … *)` replaced by blanks of the same length.
fn blank_comments<'a>(text: &'a str, errors: &mut ErrorList) -> Option<Cow<'a, str>> {
    let mut blanked: Option<String> = None;
    let mut from = 0;
    loop {
        let brace = text[from..].find('{').map_or(text.len(), |at| from + at);
        let Some(open) = text[from..brace].find("(*").map(|at| from + at) else {
            return Some(blanked.map_or(Cow::Borrowed(text), |mut blanked| {
                blanked.push_str(&text[from..]);
                Cow::Owned(blanked)
            }));
        };
        let Some(close) = text[open + 2..].find("*)").map(|at| open + 2 + at + 2) else {
            let start = position_at(text, open);
            errors.push(ParseError::UnclosedComment { close: "*)", span: Span { length: 2, ..start } });
            return None;
        };
        let blanked = blanked.get_or_insert_with(|| String::with_capacity(text.len()));
        blanked.push_str(&text[from..open]);
        blanked.extend(text[open..close].bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }));
        from = close;
    }
}

/// Returns the position of a byte offset.
pub(super) fn position_at(text: &str, offset: usize) -> Span {
    let before = &text[..offset];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    Span {
        offset: offset as u32,
        length: 0,
        line: 1 + before.bytes().filter(|byte| *byte == b'\n').count() as u32,
        column: 1 + before[line_start..].chars().count() as u32,
    }
}

/// Returns the file name without folder and extension, made valid for a header.
pub(super) fn file_stem(source_name: &str) -> String {
    let file = source_name.rsplit(['/', '\\']).next().unwrap_or(source_name);
    let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
    let name: String =
        stem.chars().map(|c| if c.is_whitespace() || matches!(c, '{' | '"') { '_' } else { c }).collect();
    let name = name.replace("(*", "__");
    if name.is_empty() { "unnamed".to_owned() } else { name }
}

fn dialect_of(
    word: &TextPiece<'_>,
    foreign: Option<ForeignSyntax>,
    errors: &mut ErrorList,
) -> Option<Dialect> {
    let span = word.span();
    if let Some((words, expected)) = foreign.map(ForeignSyntax::keywords) {
        if words.contains(&word.text) {
            return Some(Dialect::Vulkan);
        }
        let found = format!("`{}`", word.text.chars().take(40).collect::<String>());
        errors.push(ParseError::Unexpected { found, expected, span });
        return None;
    }
    match word.text {
        "VULKAN" | "Vulkan" | "vulkan" => return Some(Dialect::Vulkan),
        "HSA" => return Some(Dialect::Hsa),
        other => {
            let word: String = other.chars().take(40).collect();
            let help = match word.starts_with('"') {
                true => "a cat model starts with its name: pass it with `--model FILE`",
                false => {
                    "`vk-litmus convert --from c11` or `--from ptx` reads herd's C and PTX tests: `help port-tests`"
                }
            };
            errors.push(ParseError::UnknownDialect { word, help, span });
        }
    }
    None
}

/// A piece of one line with its position.
#[derive(Clone, Copy)]
struct TextPiece<'a> {
    text: &'a str,
    offset: usize,
    line: u32,
    column: u32,
}

impl<'a> TextPiece<'a> {
    fn span(&self) -> Span {
        Span {
            offset: self.offset as u32,
            length: self.text.len() as u32,
            line: self.line,
            column: self.column,
        }
    }

    /// Returns the bytes from `start` to `end`, which must be character boundaries.
    fn sub_piece(&self, start: usize, end: usize) -> TextPiece<'a> {
        TextPiece {
            text: &self.text[start..end],
            offset: self.offset + start,
            line: self.line,
            column: self.column + self.text[..start].chars().count() as u32,
        }
    }

    /// Trims blanks and the given characters.
    fn trim_with(&self, more: &[char]) -> TextPiece<'a> {
        let blank = |c: char| c.is_whitespace() || more.contains(&c);
        let start = self.text.len() - self.text.trim_start_matches(blank).len();
        let length = self.text[start..].trim_end_matches(blank).len();
        self.sub_piece(start, start + length)
    }

    /// Returns the words with their positions.
    fn split_words(self) -> impl Iterator<Item = TextPiece<'a>> {
        let mut rest = self;
        std::iter::from_fn(move || {
            rest = rest.trim_with(&[]);
            let length = rest.text.find(char::is_whitespace).unwrap_or(rest.text.len());
            let word = rest.sub_piece(0, length);
            rest = rest.sub_piece(length, rest.text.len());
            (length > 0).then_some(word)
        })
    }
}

/// The lines of a text with their positions.
struct TextLines<'a> {
    text: &'a str,
    offset: usize,
    /// The number of the previous line.
    line: u32,
}

impl<'a> Iterator for TextLines<'a> {
    type Item = TextPiece<'a>;

    fn next(&mut self) -> Option<TextPiece<'a>> {
        let rest = self.text.get(self.offset..)?;
        let length = rest.find('\n').unwrap_or(rest.len());
        let offset = self.offset;
        self.line += 1;
        self.offset += length + 1;
        Some(TextPiece { text: &rest[..length], offset, line: self.line, column: 1 })
    }
}

impl TextLines<'_> {
    fn end_position(&self) -> Span {
        position_at(self.text, self.text.len())
    }
}

/// Sorts header lines into metadata and comments.
struct MetadataReader<'e> {
    metadata: Metadata,
    strict_metadata: bool,
    /// True inside a quoted comment that spans lines; nothing there is metadata.
    in_quotes: bool,
    errors: &'e mut ErrorList,
}

impl MetadataReader<'_> {
    fn add_comment(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.in_quotes ^= text.bytes().filter(|byte| *byte == b'"').count() % 2 == 1;
        self.metadata.comments.push(text.to_owned());
    }

    fn read_line(&mut self, line: TextPiece<'_>) {
        let key = match line.text.split_once(':') {
            Some((key, rest))
                if !self.in_quotes
                    && is_key(key)
                    && (rest.is_empty() || rest.starts_with(char::is_whitespace)) =>
            {
                key
            }
            _ => return self.add_comment(line.text),
        };
        let value = line.sub_piece(key.len() + 1, line.text.len()).trim_with(&[]);
        let key_piece = line.sub_piece(0, key.len());
        match key {
            "expect" => self.parse_expectation(key_piece, value),
            "terminates" => self.parse_termination(key_piece, value),
            "clause" => {
                self.check_present("clause", key_piece, value);
                for word in value.split_words() {
                    if word.text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
                    {
                        self.metadata.clauses.push(word.text.to_owned());
                    } else {
                        let error = ParseError::BadClause { word: word.text.to_owned(), span: word.span() };
                        self.errors.push(error);
                    }
                }
            }
            "needs" => {
                self.check_present("needs", key_piece, value);
                self.metadata.needs.extend(value.split_words().map(|word| word.text.to_owned()));
            }
            "reconvergence" => match value.text {
                "maximal" => self.metadata.maximal_reconvergence = true,
                _ => self.errors.push(ParseError::BadReconvergence { span: value.span() }),
            },
            "origin" if self.metadata.origin.is_some() => {
                let error =
                    ParseError::DuplicateMetadata { key: "origin".to_owned(), span: key_piece.span() };
                self.errors.push(error);
            }
            "origin" => {
                if self.check_present("origin", key_piece, value) {
                    self.metadata.origin = Some(value.text.to_owned());
                }
            }
            "why" => {
                if self.check_present("why", key_piece, value) {
                    self.metadata.why.push(value.text.to_owned());
                }
            }
            unknown => {
                if self.strict_metadata {
                    let error = ParseError::UnknownKey { key: unknown.to_owned(), span: key_piece.span() };
                    self.errors.push(error);
                }
                self.metadata.unknown_keys.push((unknown.to_owned(), key_piece.span()));
                self.add_comment(line.text);
            }
        }
    }

    /// Reports a missing value.
    fn check_present(&mut self, key: &'static str, place: TextPiece<'_>, value: TextPiece<'_>) -> bool {
        if value.text.is_empty() {
            self.errors.push(ParseError::EmptyMetadata { key, span: place.span() });
        }
        !value.text.is_empty()
    }

    /// Parses `MODEL allowed|forbidden [free|racy [uninitialised]]`.
    fn parse_expectation(&mut self, key: TextPiece<'_>, value: TextPiece<'_>) {
        let mut words = value.split_words();
        let Some(model) = words.next() else {
            self.check_present("expect", key, value);
            return;
        };
        if self.metadata.expectations.iter().any(|known| known.model == model.text) {
            let key = format!("expect: {}", model.text);
            self.errors.push(ParseError::DuplicateMetadata { key, span: model.span() });
            return;
        }
        let mut wrong = |expected, piece: TextPiece<'_>| {
            self.errors.push(ParseError::BadExpectation { expected, span: piece.span() });
        };
        let reachability = match words.next() {
            Some(TextPiece { text: "allowed", .. }) => Reachability::Allowed,
            Some(TextPiece { text: "forbidden", .. }) => Reachability::Forbidden,
            other => return wrong("`allowed` or `forbidden` after the model", other.unwrap_or(model)),
        };
        let race = match words.next() {
            None => None,
            Some(TextPiece { text: "free", .. }) => Some(Race::Free),
            Some(TextPiece { text: "racy", .. }) => Some(Race::Racy),
            Some(other) => return wrong("`free`, `racy` or the end of the line", other),
        };
        let mut rest = words.peekable();
        let uninitialised = rest.next_if(|word| word.text == "uninitialised").is_some();
        if let Some(more) = rest.next() {
            return wrong("the end of the line", more);
        }
        let (model, span) = (model.text.to_owned(), value.span());
        self.metadata.expectations.push(Expectation { model, reachability, race, uninitialised, span });
    }
}

impl MetadataReader<'_> {
    /// Parses `weak|strong MODEL… | none`.
    fn parse_termination(&mut self, key: TextPiece<'_>, value: TextPiece<'_>) {
        let mut words = value.split_words();
        let Some(fairness) = words.next() else {
            self.check_present("terminates", key, value);
            return;
        };
        let mut wrong = |expected, piece: TextPiece<'_>| {
            self.errors.push(ParseError::BadTermination { expected, span: piece.span() });
        };
        let strong = match fairness.text {
            "weak" => false,
            "strong" => true,
            _ => return wrong("`weak` or `strong`", fairness),
        };
        let mut models = Vec::new();
        for word in words {
            if models.iter().any(|known| known == word.text || word.text == "none") {
                return wrong("progress models, each once, or `none`", word);
            }
            models.push(word.text.to_owned());
        }
        match models.first().map(String::as_str) {
            None => return wrong("progress models or `none` after the fairness", fairness),
            Some("none") if models.len() > 1 => return wrong("the end of the line after `none`", value),
            Some("none") => models.clear(),
            Some(_) => {}
        }
        if self.metadata.terminations.iter().any(|known| known.strong == strong) {
            let key = format!("terminates: {}", fairness.text);
            self.errors.push(ParseError::DuplicateMetadata { key, span: fairness.span() });
            return;
        }
        self.metadata.terminations.push(TerminationExpectation { strong, models, span: value.span() });
    }
}

/// Returns true if a line beginning with this word and `:` is metadata.
fn is_key(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphabetic() || matches!(byte, b'-' | b'_'))
}
