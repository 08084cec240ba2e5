//! Parse errors: collects the errors of one text and reports them together.

/// Declares an enum of mistakes. A row has the variant, its stable code, the fields, the message, the label at its
/// position, and optionally help; those after `..` wrap an enum.
macro_rules! mistakes {
    (
        $(#[$of_enum:meta])*
        pub enum $name:ident of $family:ident {
            $(
                $(#[$of_variant:meta])*
                $variant:ident $code:ident $({ $($(#[$of_field:meta])* $field:ident: $type:ty),* })?
                    => $message:literal $(($($message_argument:tt)*))?,
                    $label:literal $(($($label_argument:tt)*))? $(, help $help:literal)?;
            )*
            $(.. $($(#[$of_wrapper:meta])* $wrapper:ident($wrapped:ident),)*)?
        }
    ) => {
        $(#[$of_enum])*
        #[derive(Clone, Debug, PartialEq, Eq, Error, Diagnostic)]
        #[expect(missing_docs, reason = "the fields are the words of the messages")]
        pub enum $name {
            $(
                $(#[$of_variant])*
                #[error($message $(, $($message_argument)*)?)]
                #[diagnostic(code(litmus::$family::$code) $(, help($help))?)]
                $variant {
                    #[label($label $(, $($label_argument)*)?)]
                    span: Span,
                    $($($(#[$of_field])* $field: $type,)*)?
                },
            )*
            $($(
                $(#[$of_wrapper])*
                #[error(transparent)]
                #[diagnostic(transparent)]
                $wrapper(#[from] $wrapped),
            )*)?
        }

        impl $name {
            /// The last words of all codes.
            pub const CODES: &[&str] = &[$(stringify!($code)),*];
        }
    };
}

mod call;
mod khronos;
mod mistake;
mod subgroup;

use std::fmt;

use miette::{Diagnostic, NamedSource, SourceSpan};
use thiserror::Error;

pub use call::CallError;
pub use khronos::KhronosError;
pub use mistake::ParseError;
pub use subgroup::{SubgroupError, TangledKind};

use crate::span::Span;

impl From<Span> for SourceSpan {
    fn from(span: Span) -> SourceSpan {
        SourceSpan::new((span.offset as usize).into(), span.length as usize)
    }
}

/// The parse errors of one text, in text order.
#[derive(Clone, Debug, Error, Diagnostic)]
#[error("parse {}: {}", .text.name(), ErrorCount(.errors.len()))]
pub struct ParseErrors {
    #[source_code]
    text: NamedSource<String>,
    #[related]
    errors: Vec<ParseError>,
}

/// "1 mistake", "2 mistakes".
struct ErrorCount(usize);

impl fmt::Display for ErrorCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} mistake{}", self.0, if self.0 == 1 { "" } else { "s" })
    }
}

/// The position and text of one error, for line-oriented reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Line, counted from 1.
    pub line: u32,
    /// Column in characters, counted from 1.
    pub column: u32,
    /// Stable code, such as `litmus::parse::unknown_scope`.
    pub code: String,
    /// The problem and what was expected.
    pub text: String,
}

impl ParseErrors {
    fn new(source_name: &str, text: &str, mut errors: Vec<ParseError>) -> ParseErrors {
        errors.sort_by_key(|error| error.span().map(|span| span.offset()));
        ParseErrors { text: NamedSource::new(source_name, text.to_owned()), errors }
    }

    /// Returns the errors in text order; never empty.
    pub fn errors(&self) -> &[ParseError] {
        &self.errors
    }

    /// Returns the name of the text, usually its file.
    pub fn source_name(&self) -> &str {
        self.text.name()
    }

    /// Returns the text; if it was too large, only its beginning.
    pub fn source_text(&self) -> &str {
        self.text.inner()
    }

    /// Returns line, column and text of each error.
    pub fn messages(&self) -> Vec<Message> {
        self.errors
            .iter()
            .map(|error| {
                let offset = error.span().map_or(0, |span| span.offset());
                let before = self.source_text().get(..offset).unwrap_or(self.source_text());
                let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
                let label = error.labels().and_then(|mut labels| labels.next());
                let label = label.as_ref().and_then(|label| label.label());
                Message {
                    line: 1 + before.bytes().filter(|byte| *byte == b'\n').count() as u32,
                    column: 1 + before[line_start..].chars().count() as u32,
                    code: error.code().map_or(String::new(), |code| code.to_string()),
                    text: match label {
                        Some(label) => format!("{error}; {label}"),
                        None => error.to_string(),
                    },
                }
            })
            .collect()
    }
}

/// Collects errors up to a limit and counts the rest.
#[derive(Debug, Default)]
pub(crate) struct ErrorList {
    errors: Vec<ParseError>,
    unlisted_count: usize,
    first_unlisted: Option<Span>,
}

impl ErrorList {
    /// The maximum number of listed errors.
    const MAX_LISTED: usize = 50;

    pub(crate) fn push(&mut self, error: ParseError) {
        if let ParseError::TooMany { what, .. } = error {
            let is_same_limit =
                |other: &ParseError| matches!(other, ParseError::TooMany { what: w, .. } if *w == what);
            // A limit that was exceeded once would be reported again by every later item.
            if self.errors.iter().any(is_same_limit) {
                return;
            }
        }
        if self.errors.len() < ErrorList::MAX_LISTED {
            self.errors.push(error);
            return;
        }
        self.unlisted_count += 1;
        if self.first_unlisted.is_none() {
            self.first_unlisted = error.span().map(|span| Span {
                offset: span.offset() as u32,
                length: span.len() as u32,
                ..Span::default()
            });
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.errors.is_empty()
    }

    pub(crate) fn into_parse_errors(mut self, source_name: &str, text: &str) -> ParseErrors {
        if let Some(span) = self.first_unlisted {
            self.errors.push(ParseError::MoreMistakes { more: self.unlisted_count, span });
        }
        ParseErrors::new(source_name, text, self.errors)
    }
}
