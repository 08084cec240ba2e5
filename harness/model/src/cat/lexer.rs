//! Lexer of cat. Comments form a separate list, because they hold options and clause citations.

use litmus::closed_enum;

use super::error::CatProblem;
use super::source::{CatSpan, SourceId};

/// A word or sign of the language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CatToken {
    Name(String),
    Text(String),
    Keyword(Keyword),
    /// A keyword of herd for an unsupported part of cat.
    Unsupported(String),
    Zero,
    Underscore,
    LeftParenthesis,
    RightParenthesis,
    LeftBracket,
    RightBracket,
    LeftBrace,
    RightBrace,
    Bar,
    Ampersand,
    Semicolon,
    Backslash,
    Star,
    Plus,
    Question,
    Tilde,
    Hat,
    MinusOne,
    Equals,
    Comma,
    Colon,
    End,
}

closed_enum! {
    /// A keyword of the language.
    pub enum Keyword {
        Let = "let",
        Rec = "rec",
        And = "and",
        In = "in",
        As = "as",
        Include = "include",
        Acyclic = "acyclic",
        Irreflexive = "irreflexive",
        Empty = "empty",
        Flag = "flag",
        UndefinedUnless = "undefined_unless",
        Show = "show",
        Unshow = "unshow",
        Cut = "cut",
        Procedure = "procedure",
        End = "end",
        Call = "call",
        With = "with",
        From = "from",
        If = "if",
        Else = "else",
        Try = "try",
    }
}

const UNSUPPORTED_KEYWORDS: &[&str] = &[
    "when",
    "fun",
    "begin",
    "enum",
    "debug",
    "match",
    "forall",
    "do",
    "then",
    "yield",
    "instructions",
    "default",
    "newSet",
    "newRelation",
];

impl CatToken {
    /// Returns the token's description for messages.
    pub(crate) fn describe(&self) -> String {
        let sign = match self {
            CatToken::Name(name) | CatToken::Unsupported(name) => return format!("`{name}`"),
            CatToken::Text(text) => return format!("{text:?}"),
            CatToken::Keyword(keyword) => return format!("`{keyword}`"),
            CatToken::End => return "the end of the text".into(),
            CatToken::Zero => "0",
            CatToken::Underscore => "_",
            CatToken::LeftParenthesis => "(",
            CatToken::RightParenthesis => ")",
            CatToken::LeftBracket => "[",
            CatToken::RightBracket => "]",
            CatToken::LeftBrace => "{",
            CatToken::RightBrace => "}",
            CatToken::Bar => "|",
            CatToken::Ampersand => "&",
            CatToken::Semicolon => ";",
            CatToken::Backslash => "\\",
            CatToken::Star => "*",
            CatToken::Plus => "+",
            CatToken::Question => "?",
            CatToken::Tilde => "~",
            CatToken::Hat => "^",
            CatToken::MinusOne => "-1",
            CatToken::Equals => "=",
            CatToken::Comma => ",",
            CatToken::Colon => ":",
        };
        format!("`{sign}`")
    }
}

/// A comment, without its delimiters.
#[derive(Clone, Debug)]
pub(crate) struct Comment {
    pub(crate) text: String,
    /// The whole comment, delimiters included.
    pub(crate) span: CatSpan,
    /// The line on which it ends.
    pub(crate) last_line: u32,
    /// Bytes of its opening delimiter.
    pub(crate) opening_length: u32,
}

/// The result of reading a text into tokens; the last token is [`CatToken::End`].
#[derive(Debug, Default)]
pub(crate) struct LexedText {
    pub(crate) tokens: Vec<(CatToken, CatSpan)>,
    pub(crate) comments: Vec<Comment>,
    pub(crate) problems: Vec<(CatProblem, CatSpan)>,
}

struct CatLexer<'a> {
    text: &'a str,
    source: SourceId,
    offset: usize,
    line: u32,
    column: u32,
}

/// Reads a text into tokens.
pub(crate) fn tokenize_text(text: &str, source: SourceId) -> LexedText {
    let mut lexer = CatLexer { text, source, offset: 0, line: 1, column: 1 };
    let mut lexed = LexedText::default();
    while lexer.lex_token(&mut lexed) {}
    lexed.tokens.push((CatToken::End, lexer.current_span()));
    lexed
}

impl CatLexer<'_> {
    fn remaining_text(&self) -> &str {
        self.text.get(self.offset..).unwrap_or("")
    }

    fn current_span(&self) -> CatSpan {
        CatSpan {
            source: self.source,
            offset: u32::try_from(self.offset).unwrap_or(u32::MAX),
            length: 0,
            line: self.line,
            column: self.column,
        }
    }

    /// Advances by `bytes` bytes, which must end at a character boundary.
    fn advance_by(&mut self, bytes: usize) -> CatSpan {
        let start = self.current_span();
        let skipped = self.text.get(self.offset..self.offset + bytes).unwrap_or("");
        for character in skipped.chars() {
            if character == '\n' {
                self.line += 1;
                self.column = 1;
            } else {
                self.column += 1;
            }
        }
        self.offset += skipped.len();
        CatSpan { length: u32::try_from(skipped.len()).unwrap_or(u32::MAX), ..start }
    }

    /// Reads one token or comment; false at the end of the text.
    fn lex_token(&mut self, lexed: &mut LexedText) -> bool {
        let rest = self.remaining_text();
        let Some(first) = rest.chars().next() else {
            return false;
        };
        let sign = match first {
            _ if first.is_whitespace() => {
                let blank = rest.len() - rest.trim_start().len();
                self.advance_by(blank);
                return true;
            }
            '(' if rest.starts_with("(*") => {
                self.lex_block_comment(lexed, "(*", "*)");
                return true;
            }
            '/' if rest.starts_with("/*") => {
                self.lex_block_comment(lexed, "/*", "*/");
                return true;
            }
            '/' if rest.starts_with("//") => {
                self.lex_line_comment(lexed, 2);
                return true;
            }
            '#' => {
                self.lex_line_comment(lexed, 1);
                return true;
            }
            '"' => {
                self.lex_string(lexed);
                return true;
            }
            '-' if rest.starts_with("-1") => {
                let span = self.advance_by(2);
                lexed.tokens.push((CatToken::MinusOne, span));
                return true;
            }
            '-' if rest.starts_with("->") => {
                let span = self.advance_by(2);
                lexed.tokens.push((CatToken::Unsupported("->".into()), span));
                return true;
            }
            '\'' => {
                // A tag, as `'acquire`.
                let length = 1 + word_length(rest.get(1..).unwrap_or(""));
                let tag = rest.get(..length).unwrap_or("").to_owned();
                let span = self.advance_by(length);
                lexed.tokens.push((CatToken::Unsupported(tag), span));
                return true;
            }
            '_' | '0'..='9' | 'a'..='z' | 'A'..='Z' => {
                self.lex_word(lexed);
                return true;
            }
            '(' => CatToken::LeftParenthesis,
            ')' => CatToken::RightParenthesis,
            '[' => CatToken::LeftBracket,
            ']' => CatToken::RightBracket,
            '{' => CatToken::LeftBrace,
            '}' => CatToken::RightBrace,
            '|' => CatToken::Bar,
            '&' => CatToken::Ampersand,
            ';' => CatToken::Semicolon,
            '\\' => CatToken::Backslash,
            '*' => CatToken::Star,
            '+' => CatToken::Plus,
            '?' => CatToken::Question,
            '~' => CatToken::Tilde,
            '^' => CatToken::Hat,
            '=' => CatToken::Equals,
            ',' => CatToken::Comma,
            ':' => CatToken::Colon,
            character => {
                let span = self.advance_by(character.len_utf8());
                lexed.problems.push((CatProblem::UnexpectedCharacter { character }, span));
                return true;
            }
        };
        let span = self.advance_by(1);
        lexed.tokens.push((sign, span));
        true
    }

    fn lex_word(&mut self, lexed: &mut LexedText) {
        let rest = self.remaining_text();
        let mut length = word_length(rest);
        // A name may end with a prime.
        if rest.get(length..).is_some_and(|after| after.starts_with('\'')) {
            length += 1;
        }
        let word = rest.get(..length).unwrap_or("").to_owned();
        let span = self.advance_by(length);
        let token = if let Some(keyword) = Keyword::from_name(&word) {
            CatToken::Keyword(keyword)
        } else if UNSUPPORTED_KEYWORDS.contains(&word.as_str()) {
            CatToken::Unsupported(word)
        } else {
            match word.as_str() {
                "0" => CatToken::Zero,
                "_" => CatToken::Underscore,
                _ => CatToken::Name(word),
            }
        };
        lexed.tokens.push((token, span));
    }

    fn lex_string(&mut self, lexed: &mut LexedText) {
        let rest = self.remaining_text();
        let Some(length) = rest.get(1..).and_then(|inner| inner.find('"')) else {
            let span = self.advance_by(1);
            // The string is open, so the rest of the text belongs to it.
            self.advance_by(self.remaining_text().len());
            lexed.problems.push((CatProblem::UnterminatedString, span));
            return;
        };
        let text = rest.get(1..=length).unwrap_or("").to_owned();
        let span = self.advance_by(length + 2);
        lexed.tokens.push((CatToken::Text(text), span));
    }

    fn lex_line_comment(&mut self, lexed: &mut LexedText, opening_length: usize) {
        let rest = self.remaining_text();
        let length = rest.find('\n').unwrap_or(rest.len());
        let text = rest.get(opening_length..length).unwrap_or("").to_owned();
        let span = self.advance_by(length);
        lexed.comments.push(Comment {
            text,
            span,
            last_line: self.line,
            opening_length: opening_length as u32,
        });
    }

    /// Comments nest, as in herd.
    fn lex_block_comment(&mut self, lexed: &mut LexedText, open: &str, close: &str) {
        let rest = self.remaining_text();
        let mut depth = 0_usize;
        let mut at = 0;
        while at < rest.len() {
            let ahead = rest.get(at..).unwrap_or("");
            if ahead.starts_with(open) {
                depth += 1;
                at += open.len();
            } else if ahead.starts_with(close) {
                depth -= 1;
                at += close.len();
                if depth == 0 {
                    let text = rest.get(open.len()..at - close.len()).unwrap_or("").to_owned();
                    let span = self.advance_by(at);
                    let opening = open.len() as u32;
                    lexed.comments.push(Comment {
                        text,
                        span,
                        last_line: self.line,
                        opening_length: opening,
                    });
                    return;
                }
            } else {
                at += ahead.chars().next().map_or(1, char::len_utf8);
            }
        }
        let span = self.advance_by(open.len());
        self.advance_by(self.remaining_text().len());
        lexed.problems.push((CatProblem::UnterminatedComment, span));
    }
}

/// Bytes of the word that a text starts with.
fn word_length(text: &str) -> usize {
    text.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'))).unwrap_or(text.len())
}
