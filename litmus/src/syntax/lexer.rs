//! Splits the body of a test into words, numbers and punctuation.

use crate::error::{ErrorList, ParseError};
use crate::span::Span;
use crate::test::Dialect;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenKind {
    Word,
    Number,
    Hexadecimal,
    OpenBrace,
    CloseBrace,
    OpenParenthesis,
    CloseParenthesis,
    OpenBracket,
    CloseBracket,
    Semicolon,
    Comma,
    Dot,
    Colon,
    Bar,
    At,
    Ampersand,
    Tilde,
    Plus,
    Minus,
    Equal,
    EqualEqual,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    And,
    Or,
    Question,
    End,
}

/// A token with its position.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token {
    pub kind: TokenKind,
    pub span: Span,
}

/// A start position: byte offset, line and column.
#[derive(Clone, Copy, Debug)]
pub(super) struct StartPosition {
    pub offset: usize,
    pub line: u32,
    pub column: u32,
}

/// Returns the tokens of `text` from `start` on; the last one is [`TokenKind::End`]. Mistakes go to `errors`.
///
/// In the HSA dialect a `$` begins a word.
pub(super) fn tokenize(
    text: &str,
    start: StartPosition,
    dialect: Dialect,
    errors: &mut ErrorList,
) -> Vec<Token> {
    let mut lexer = LitmusLexer {
        bytes: text.as_bytes(),
        text,
        offset: start.offset,
        line: start.line,
        column: start.column,
        dollar_words: dialect == Dialect::Hsa,
    };
    let mut tokens = Vec::with_capacity((text.len() - start.offset) / 3);
    let mut last_line = 0;
    loop {
        match lexer.next_token() {
            Ok(token) => {
                tokens.push(token);
                if token.kind == TokenKind::End {
                    return tokens;
                }
            }
            // One report per line is enough.
            Err(ParseError::UnexpectedCharacter { span, .. }) if span.line == last_line => {}
            Err(error) => {
                last_line = lexer.line;
                errors.push(error);
            }
        }
    }
}

struct LitmusLexer<'a> {
    bytes: &'a [u8],
    text: &'a str,
    offset: usize,
    line: u32,
    column: u32,
    /// True if a `$` begins a word.
    dollar_words: bool,
}

impl LitmusLexer<'_> {
    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.offset + ahead).copied().unwrap_or(0)
    }

    fn span_ahead(&self, length: usize) -> Span {
        Span { offset: self.offset as u32, length: length as u32, line: self.line, column: self.column }
    }

    /// Advances by `length` bytes.
    fn advance(&mut self, length: usize) {
        let end = (self.offset + length).min(self.bytes.len());
        for byte in &self.bytes[self.offset..end] {
            match byte {
                b'\n' => {
                    self.line += 1;
                    self.column = 1;
                }
                // A character counts once, at its first byte.
                0x80..=0xBF => {}
                _ => self.column += 1,
            }
        }
        self.offset = end;
    }

    fn skip_comment(&mut self, open: &'static str, close: &'static str) -> Result<(), ParseError> {
        match self.text[self.offset + open.len()..].find(close) {
            Some(length) => {
                self.advance(open.len() + length + close.len());
                Ok(())
            }
            None => {
                let error = ParseError::UnclosedComment { close, span: self.span_ahead(open.len()) };
                self.advance(self.bytes.len());
                Err(error)
            }
        }
    }

    fn next_token(&mut self) -> Result<Token, ParseError> {
        loop {
            match (self.peek(0), self.peek(1)) {
                (b' ' | b'\t' | b'\r' | b'\n', _) => self.advance(1),
                (b'(', b'*') => self.skip_comment("(*", "*)")?,
                (b'<', b'<') => self.skip_comment("<<", ">>")?,
                _ => break,
            }
        }
        let (kind, length) = self.kind_and_length()?;
        let span = self.span_ahead(length);
        // Tokens contain no line break and only ASCII.
        self.offset += length;
        self.column += length as u32;
        Ok(Token { kind, span })
    }

    /// Returns the length of the run of bytes from `from` on that satisfy `member`.
    fn run_length(&self, from: usize, member: impl Fn(u8) -> bool) -> usize {
        self.bytes[(self.offset + from).min(self.bytes.len())..]
            .iter()
            .take_while(|byte| member(**byte))
            .count()
    }

    fn kind_and_length(&mut self) -> Result<(TokenKind, usize), ParseError> {
        use TokenKind::*;
        Ok(match (self.peek(0), self.peek(1)) {
            (0, _) if self.offset >= self.bytes.len() => (End, 0),
            (b'a'..=b'z' | b'A'..=b'Z', _) => (Word, self.run_length(0, is_word_byte)),
            (b'$', _) if self.dollar_words && self.run_length(1, is_word_byte) > 0 => {
                (Word, 1 + self.run_length(1, is_word_byte))
            }
            (b'_', _) if self.peek(self.run_length(0, |byte| byte == b'_')).is_ascii_alphabetic() => {
                (Word, self.run_length(0, is_word_byte))
            }
            (b'_', _) => {
                let length = self.run_length(0, |byte| byte == b'_');
                let error = ParseError::UnexpectedCharacter { character: '_', span: self.span_ahead(length) };
                self.advance(length);
                return Err(error);
            }
            (b'0', b'x') if self.peek(2).is_ascii_hexdigit() => {
                (Hexadecimal, 2 + self.run_length(2, |byte| byte.is_ascii_hexdigit()))
            }
            (b'0'..=b'9', _) => (Number, self.run_length(0, |byte| byte.is_ascii_digit())),
            (b'=', b'=') => (EqualEqual, 2),
            (b'!', b'=') => (NotEqual, 2),
            (b'<', b'=') => (LessOrEqual, 2),
            (b'>', b'=') => (GreaterOrEqual, 2),
            (b'/', b'\\') => (And, 2),
            (b'\\', b'/') => (Or, 2),
            (b'{', _) => (OpenBrace, 1),
            (b'}', _) => (CloseBrace, 1),
            (b'(', _) => (OpenParenthesis, 1),
            (b')', _) => (CloseParenthesis, 1),
            (b'[', _) => (OpenBracket, 1),
            (b']', _) => (CloseBracket, 1),
            (b';', _) => (Semicolon, 1),
            (b',', _) => (Comma, 1),
            (b'.', _) => (Dot, 1),
            (b':', _) => (Colon, 1),
            (b'|', _) => (Bar, 1),
            (b'@', _) => (At, 1),
            (b'&', _) => (Ampersand, 1),
            (b'~', _) => (Tilde, 1),
            (b'+', _) => (Plus, 1),
            (b'-', _) => (Minus, 1),
            (b'=', _) => (Equal, 1),
            (b'<', _) => (Less, 1),
            (b'>', _) => (Greater, 1),
            (b'?', _) => (Question, 1),
            _ => {
                let character = self.text[self.offset..].chars().next().unwrap_or_default();
                let error = ParseError::UnexpectedCharacter {
                    character,
                    span: self.span_ahead(character.len_utf8()),
                };
                self.advance(character.len_utf8());
                return Err(error);
            }
        })
    }
}

fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}
