//! Parsing and printing of [`Test`]s.
#![doc = include_str!("syntax/grammar.md")]
#![doc = include_str!("syntax/khronos/grammar.md")]

mod access;
mod calls;
mod condition;
mod constants;
mod declarations;
mod foreign;
mod header;
pub mod hsa;
mod ignored;
mod instruction;
pub(crate) mod khronos;
mod layout;
mod lexer;
mod parser;
mod print;
mod split_barriers;
mod subgroup;
mod table;
mod words;

pub use foreign::read_foreign;
pub use header::ForeignSyntax;
pub use ignored::{IgnoredWord, ignored_words};
pub use print::print;
pub use words::{Keyword, keywords_by_category, order_keyword};

use crate::condition::Condition;
use crate::error::{ErrorList, ParseError, ParseErrors};
use crate::span::Span;
use crate::test::Test;

/// The maximum length of a text, in bytes.
pub const MAX_TEXT_BYTES: usize = 1 << 20;
/// The maximum number of threads of a test.
pub const MAX_THREADS: usize = 64;
/// The maximum number of instructions of a test, not counting labels.
pub const MAX_INSTRUCTIONS: usize = 4096;
/// The maximum number of labels of a thread.
pub const MAX_LABELS: usize = 256;
/// The maximum number of registers of a thread.
pub const MAX_REGISTERS: usize = 256;
/// The maximum number of locations of a test.
pub const MAX_LOCATIONS: usize = 256;
/// The maximum number of `ssw` pairs of a test.
pub const MAX_SYSTEM_SYNC: usize = 256;
/// The maximum number of API calls of a test.
pub const MAX_CALLS: usize = 128;
/// The maximum number of comparisons in one condition.
pub const MAX_COMPARISONS: usize = 256;
/// The maximum nesting of parentheses and negations around one comparison.
pub const MAX_NESTING: usize = 64;

/// Parser options.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ParseOptions {
    /// True if an unknown metadata key is an error. Otherwise it is stored in
    /// [`Metadata::unknown_keys`](crate::metadata::Metadata::unknown_keys).
    pub strict_metadata: bool,
}

/// Parses a test.
///
/// `source_name` is the file's name in messages and the name of a test that has none. Its extension
/// distinguishes Khronos' `.test` from the native dialect; without an extension, the first word of the text
/// does.
///
/// # Errors
///
/// Every independent error with its position.
pub fn parse(text: &str, source_name: &str) -> Result<Test, ParseErrors> {
    parse_with(text, source_name, ParseOptions::default())
}

/// Parses a test as [`parse`] does, with options.
///
/// # Errors
///
/// As [`parse`].
pub fn parse_with(text: &str, source_name: &str, options: ParseOptions) -> Result<Test, ParseErrors> {
    let mut errors = ErrorList::default();
    if let Err(error) = check_size(text) {
        errors.push(error);
        return Err(errors.into_parse_errors(source_name, text_beginning(text)));
    }
    if khronos::is_khronos(text, source_name) {
        let test = khronos::parse(text, header::file_stem(source_name), &mut errors);
        if errors.is_empty() {
            constants::check_constants(&test, &mut errors);
        }
        return if errors.is_empty() { Ok(test) } else { Err(errors.into_parse_errors(source_name, text)) };
    }
    let Some(header) = header::parse_header(text, source_name, options.strict_metadata, None, &mut errors)
    else {
        return Err(errors.into_parse_errors(source_name, text));
    };
    let tokens = lexer::tokenize(text, header.body, header.dialect, &mut errors);
    let mut parser = parser::Parser::new(text, &tokens, &mut errors, header);
    parser.parse_body();
    let test = parser.test;
    if errors.is_empty() {
        constants::check_constants(&test, &mut errors);
    }
    if errors.is_empty() { Ok(test) } else { Err(errors.into_parse_errors(source_name, text)) }
}

/// Parses a condition about `test`, such as `P0:r0 == 1 /\ x == 2`.
///
/// # Errors
///
/// The first error; conditions are too short for error recovery.
pub fn parse_condition(text: &str, source_name: &str, test: &Test) -> Result<Condition, ParseErrors> {
    let mut errors = ErrorList::default();
    if let Err(error) = check_size(text) {
        errors.push(error);
        return Err(errors.into_parse_errors(source_name, text_beginning(text)));
    }
    let start = lexer::StartPosition { offset: 0, line: 1, column: 1 };
    let tokens = lexer::tokenize(text, start, test.dialect, &mut errors);
    if !errors.is_empty() {
        return Err(errors.into_parse_errors(source_name, text));
    }
    let mut parser = parser::Parser::with_test(text, &tokens, &mut errors, test.clone());
    let condition = parser.parse_condition().and_then(|condition| {
        let next = parser.peek();
        match next.kind {
            lexer::TokenKind::End => Ok(condition),
            _ => Err(ParseError::TrailingText { span: next.span }),
        }
    });
    let condition = match condition {
        Ok(condition) => condition,
        Err(error) => {
            errors.push(error);
            return Err(errors.into_parse_errors(source_name, text));
        }
    };
    let whole = Span { offset: 0, length: text.len() as u32, line: 1, column: 1 };
    constants::check_condition(test, &condition, whole, &mut errors);
    if errors.is_empty() { Ok(condition) } else { Err(errors.into_parse_errors(source_name, text)) }
}

fn check_size(text: &str) -> Result<(), ParseError> {
    if text.len() <= MAX_TEXT_BYTES {
        return Ok(());
    }
    let span = Span { offset: 0, length: 0, line: 1, column: 1 };
    Err(ParseError::TooLarge { bytes: text.len(), limit: MAX_TEXT_BYTES, span })
}

/// Returns the beginning of a text that is too large, for messages.
fn text_beginning(text: &str) -> &str {
    let end =
        text.char_indices().map(|(index, _)| index).take_while(|index| *index <= 256).last().unwrap_or(0);
    text.get(..end).unwrap_or("")
}

/// Returns true if `word` is a valid location name in the native dialect.
pub(crate) fn is_native_location(word: &str) -> bool {
    words::is_location(word)
}
