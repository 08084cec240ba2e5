//! Parser state for the body of a test: tokens, numbers and names.

use super::header::{ForeignSyntax, Header};
use super::hsa;
use super::lexer::{Token, TokenKind};
use super::words::{is_label, is_location, is_register, is_thread};
use super::{MAX_LABELS, MAX_LOCATIONS, MAX_REGISTERS};
use crate::error::{ErrorList, ParseError};
use crate::span::Span;
use crate::test::{
    Dialect, Label, LabelId, Location, LocationId, Register, RegisterId, RegisterInit, Test, ThreadId,
};

/// The result of parsing one piece of the text.
pub(super) type Parsed<T> = Result<T, ParseError>;

/// Parses the tokens of a body into a test.
pub(super) struct Parser<'a> {
    pub(super) text: &'a str,
    pub(super) tokens: &'a [Token],
    pub(super) position: usize,
    /// The end of the current cell; later tokens are invisible.
    pub(super) limit: usize,
    pub(super) errors: &'a mut ErrorList,
    pub(super) test: Test,
    /// Labels that are already placed, by thread.
    pub(super) placed_labels: Vec<Vec<LabelId>>,
    /// Labels in code that was not parsed, which may or may not be placed there.
    pub(super) recovered_labels: Vec<(ThreadId, LabelId)>,
    /// The first mention of each label, by thread.
    pub(super) label_mentions: Vec<Vec<Span>>,
    /// The number of instructions, not counting labels.
    pub(super) instruction_count: usize,
    /// API calls, in text order.
    pub(super) calls: Vec<super::calls::ParsedCall>,
    /// Declared exclusive memory (`VK_SHARING_MODE_EXCLUSIVE`), whether a transfer names it or not.
    pub(super) exclusive: Vec<LocationId>,
    /// The syntax of the text, if it is not native.
    pub(super) foreign: Option<ForeignSyntax>,
}

impl<'a> Parser<'a> {
    /// Creates a parser of `tokens`, which end with [`TokenKind::End`].
    pub(super) fn new(
        text: &'a str,
        tokens: &'a [Token],
        errors: &'a mut ErrorList,
        header: Header,
    ) -> Parser<'a> {
        let test = Test { metadata: header.metadata, ..Test::new(header.name, header.dialect) };
        Parser::with_test(text, tokens, errors, test)
    }

    /// Creates a parser of additional text about a test.
    pub(super) fn with_test(
        text: &'a str,
        tokens: &'a [Token],
        errors: &'a mut ErrorList,
        test: Test,
    ) -> Parser<'a> {
        Parser {
            text,
            tokens,
            position: 0,
            limit: tokens.len(),
            errors,
            test,
            placed_labels: Vec::new(),
            recovered_labels: Vec::new(),
            label_mentions: Vec::new(),
            instruction_count: 0,
            calls: Vec::new(),
            exclusive: Vec::new(),
            foreign: None,
        }
    }

    /// Parses the whole body.
    pub(super) fn parse_body(&mut self) {
        let Some(registers) = self.parse_declarations() else { return };
        let sync =
            if self.peek().kind == TokenKind::OpenBrace { self.parse_sync_block() } else { Vec::new() };
        if !self.parse_header_row() {
            return;
        }
        self.attach_registers(registers);
        let cells = self.split_table();
        for (index, cells) in cells.into_iter().enumerate() {
            self.parse_thread_cells(ThreadId(index as u16), &cells);
        }
        self.limit = self.tokens.len();
        self.check_quorums();
        self.check_split_barriers();
        self.check_subgroup_operations();
        if self.is_hsa() {
            self.check_hsa();
        }
        self.derive_calls(&sync);
        self.attach_sync(sync);
        self.parse_questions();
    }

    /// Returns true if the text is in the HSA dialect.
    pub(super) fn is_hsa(&self) -> bool {
        self.test.dialect == Dialect::Hsa
    }

    // Tokens.

    /// Returns the next token; [`TokenKind::End`] at the end of the visible ones.
    pub(super) fn peek(&self) -> Token {
        self.peek_at(0)
    }

    /// Returns the token after `ahead` others.
    pub(super) fn peek_at(&self, ahead: usize) -> Token {
        let index = self.position + ahead;
        match self.tokens.get(index) {
            Some(token) if index < self.limit => *token,
            _ => {
                let span =
                    self.tokens.get(self.limit).or(self.tokens.last()).map_or(Span::default(), |t| t.span);
                Token { kind: TokenKind::End, span: Span { length: 0, ..span } }
            }
        }
    }

    /// Consumes the next token.
    pub(super) fn next(&mut self) -> Token {
        let token = self.peek();
        if self.position < self.limit {
            self.position += 1;
        }
        token
    }

    /// Returns the last consumed token.
    pub(super) fn previous_token(&self) -> Token {
        match self.position.checked_sub(1).and_then(|index| self.tokens.get(index)) {
            Some(token) => *token,
            None => self.peek(),
        }
    }

    pub(super) fn token_text(&self, token: Token) -> &'a str {
        let start = token.span.offset as usize;
        self.text.get(start..start + token.span.length as usize).unwrap_or("")
    }

    /// Consumes the next token if it is of `kind`.
    pub(super) fn accept(&mut self, kind: TokenKind) -> bool {
        let found = self.peek().kind == kind;
        if found {
            self.next();
        }
        found
    }

    /// Returns true if the next token is the word `word`.
    pub(super) fn at_word(&self, word: &str) -> bool {
        let token = self.peek();
        token.kind == TokenKind::Word && self.token_text(token) == word
    }

    /// Consumes the next token, which must be of `kind`.
    pub(super) fn expect(&mut self, kind: TokenKind, expected: &'static str) -> Parsed<Token> {
        if self.peek().kind == kind { Ok(self.next()) } else { Err(self.unexpected_token(expected)) }
    }

    /// Returns the error for an unexpected next token.
    pub(super) fn unexpected_token(&self, expected: &'static str) -> ParseError {
        let token = self.peek();
        ParseError::Unexpected { found: self.describe_token(token), expected, span: token.span }
    }

    /// Describes a token for messages.
    pub(super) fn describe_token(&self, token: Token) -> String {
        match token.kind {
            TokenKind::End if self.limit < self.tokens.len() => "end of the cell".to_owned(),
            TokenKind::End => "end of the text".to_owned(),
            _ => {
                let text = self.token_text(token);
                let mut short: String = text.chars().take(40).collect();
                if short.len() < text.len() {
                    short.push('…');
                }
                format!("`{short}`")
            }
        }
    }

    /// Returns the position of the last consumed token.
    pub(super) fn span_after_previous(&self) -> Span {
        self.previous_token().span
    }

    /// Returns the position from the start of a token to the end of the last consumed one.
    pub(super) fn span_since(&self, start: Span) -> Span {
        let end = self.previous_token().span;
        Span { length: (end.offset + end.length).saturating_sub(start.offset), ..start }
    }

    /// Skips to the next token of one of `kinds`, or to the end.
    pub(super) fn skip_to(&mut self, kinds: &[TokenKind]) {
        while self.peek().kind != TokenKind::End && !kinds.contains(&self.peek().kind) {
            self.next();
        }
    }

    // Numbers.

    /// Returns the value of a decimal or hexadecimal token; hexadecimal ones may use all 64 bits.
    pub(super) fn number_value(&self, token: Token) -> Parsed<i64> {
        let text = self.token_text(token);
        let value = match token.kind {
            TokenKind::Hexadecimal => {
                u64::from_str_radix(text.get(2..).unwrap_or(""), 16).ok().map(|bits| bits as i64)
            }
            _ => text.parse().ok(),
        };
        value.ok_or_else(|| self.number_too_large(token, 64))
    }

    pub(super) fn number_too_large(&self, token: Token, bits: u32) -> ParseError {
        let number = self.token_text(token).chars().take(40).collect();
        ParseError::NumberTooLarge { number, bits, span: token.span }
    }

    /// Parses an unsigned 32-bit decimal number.
    pub(super) fn parse_small_number(&mut self, expected: &'static str) -> Parsed<u32> {
        let token = self.expect(TokenKind::Number, expected)?;
        self.token_text(token).parse().map_err(|_| self.number_too_large(token, 32))
    }

    /// Returns true if the next tokens are a constant.
    pub(super) fn at_constant(&self) -> bool {
        matches!(self.peek().kind, TokenKind::Number | TokenKind::Hexadecimal | TokenKind::Minus)
    }

    /// Parses `["-"] digits`, or `0x` and hexadecimal digits.
    pub(super) fn parse_constant(&mut self) -> Parsed<i64> {
        let token = self.peek();
        match token.kind {
            TokenKind::Number | TokenKind::Hexadecimal => {
                self.next();
                self.number_value(token)
            }
            TokenKind::Minus => {
                self.next();
                let digits = self.expect(TokenKind::Number, "digits after `-`")?;
                // The minimum has no positive counterpart, so the sign is part of the conversion.
                let text = self.token_text(digits);
                match text.parse::<u64>() {
                    Ok(magnitude) if magnitude <= i64::MIN.unsigned_abs() => {
                        Ok(0i64.wrapping_sub_unsigned(magnitude))
                    }
                    _ => Err(self.number_too_large(digits, 64)),
                }
            }
            _ => Err(self.unexpected_token("a number")),
        }
    }

    /// Parses `P3` or `3`.
    pub(super) fn parse_thread_number(&mut self) -> Parsed<(u32, Span)> {
        let token = self.peek();
        let text = self.token_text(token);
        let digits = match token.kind {
            TokenKind::Word if is_thread(text) => &text[1..],
            TokenKind::Number if !self.is_hsa() => text,
            _ => return Err(self.unexpected_token("a thread such as `P0`")),
        };
        self.next();
        let number = digits.parse().map_err(|_| self.number_too_large(token, 32))?;
        Ok((number, token.span))
    }

    // Names.

    /// Returns the location with this name, if it exists.
    pub(super) fn find_location(&self, name: &str) -> Option<LocationId> {
        self.test
            .locations
            .iter()
            .position(|location| location.name == name)
            .map(|index| LocationId(index as u16))
    }

    pub(super) fn parse_location_name(&mut self) -> Parsed<Token> {
        let token = self.peek();
        if token.kind != TokenKind::Word {
            return Err(ParseError::LocationExpected { found: self.describe_token(token), span: token.span });
        }
        let word = self.token_text(token);
        if !self.names_location(word) {
            return Err(ParseError::ReservedName { word: word.to_owned(), span: token.span });
        }
        Ok(self.next())
    }

    pub(super) fn add_location(&mut self, location: Location) -> Parsed<LocationId> {
        check_room(self.test.locations.len(), "locations", MAX_LOCATIONS, location.span)?;
        self.test.locations.push(location);
        Ok(LocationId((self.test.locations.len() - 1) as u16))
    }

    /// Parses a location; an undeclared one is added with initial value 0.
    pub(super) fn use_location(&mut self) -> Parsed<LocationId> {
        let token = self.parse_location_name()?;
        let name = self.token_text(token);
        match self.find_location(name) {
            Some(id) => Ok(id),
            None => self.add_location(undeclared_location(name, token.span)),
        }
    }

    /// Resolves a register of `thread`; an undeclared one is added with initial value 0.
    pub(super) fn use_register(&mut self, thread: ThreadId, token: Token) -> Parsed<RegisterId> {
        let name = self.token_text(token);
        let registers = &mut self.test.threads[usize::from(thread.0)].registers;
        if let Some(index) = registers.iter().position(|register| register.name == name) {
            return Ok(RegisterId(index as u16));
        }
        check_room(registers.len(), "registers in one thread", MAX_REGISTERS, token.span)?;
        registers.push(Register { name: name.to_owned(), init: RegisterInit::Constant(0), declared: false });
        Ok(RegisterId((registers.len() - 1) as u16))
    }

    /// Resolves a label of `thread`.
    pub(super) fn use_label(&mut self, thread: ThreadId, token: Token) -> Parsed<LabelId> {
        let name = self.token_text(token);
        let index = usize::from(thread.0);
        let labels = &mut self.test.threads[index].labels;
        if let Some(found) = labels.iter().position(|label| label.name == name) {
            return Ok(LabelId(found as u16));
        }
        check_room(labels.len(), "labels in one thread", MAX_LABELS, token.span)?;
        labels.push(Label { name: name.to_owned() });
        let id = LabelId((labels.len() - 1) as u16);
        self.label_mentions[index].push(token.span);
        Ok(id)
    }

    /// Places the label that `token` names.
    pub(super) fn place_label(&mut self, thread: ThreadId, token: Token) -> Parsed<LabelId> {
        let label = self.use_label(thread, token)?;
        let placed = &mut self.placed_labels[usize::from(thread.0)];
        if placed.contains(&label) {
            return Err(ParseError::DuplicateLabel {
                name: self.token_text(token).to_owned(),
                span: token.span,
            });
        }
        placed.push(label);
        Ok(label)
    }

    /// Parses a register name.
    pub(super) fn expect_register(&mut self) -> Parsed<Token> {
        let token = self.peek();
        if token.kind == TokenKind::Word && self.names_register(self.token_text(token)) {
            return Ok(self.next());
        }
        if self.is_hsa() {
            return Err(self.unexpected_token("a register such as `$s0`"));
        }
        Err(ParseError::RegisterExpected { found: self.describe_token(token), span: token.span })
    }

    /// Returns true if `word` is a valid register in a condition.
    pub(super) fn names_register(&self, word: &str) -> bool {
        match self.foreign {
            // Any variable that is not a location.
            Some(ForeignSyntax::C11) => !is_thread(word) && self.find_location(word).is_none(),
            _ if self.is_hsa() => hsa::is_value_register(word),
            _ => is_register(word),
        }
    }

    /// Returns true if `word` is a valid location name.
    pub(super) fn names_location(&self, word: &str) -> bool {
        if self.is_hsa() { hsa::is_location(word) } else { is_location(word) }
    }

    pub(super) fn find_thread(&self, number: u32) -> Option<ThreadId> {
        self.test
            .threads
            .iter()
            .position(|thread| thread.number == number)
            .map(|index| ThreadId(index as u16))
    }

    // Error recovery: names in unparsable text.

    /// Records the names in an unparsable declaration, so that one mistake is not reported again at each use.
    /// The parse still fails.
    pub(super) fn recover_declared_names(&mut self, start: usize) {
        for token in &self.tokens[start..self.position] {
            let name = self.token_text(*token);
            let is_recorded = token.kind != TokenKind::Word
                || !self.names_location(name)
                || self.find_location(name).is_some();
            // Beyond the limit on locations, no names can be recorded, and none need to be.
            if !is_recorded && self.test.locations.len() < MAX_LOCATIONS {
                self.test.locations.push(undeclared_location(name, token.span));
            }
        }
    }

    /// Records the names in an unparsable cell, so that one mistake is not reported again at each use. The
    /// parse still fails.
    pub(super) fn recover_names(&mut self, thread: ThreadId, start: usize, end: usize) {
        (self.position, self.limit) = (start, end);
        let first = self.peek();
        if !self.is_hsa() && (first.kind != TokenKind::Word || !is_label(self.token_text(first))) {
            self.next();
        }
        self.recover_remaining_names(thread);
    }

    /// As [`Parser::recover_names`], for the rest of the current cell.
    pub(super) fn recover_remaining_names(&mut self, thread: ThreadId) {
        if self.is_hsa() {
            return self.recover_hsa_names(thread);
        }
        while self.peek().kind != TokenKind::End {
            let token = self.next();
            let word = self.token_text(token);
            let modifier = self.tokens.get(self.position.wrapping_sub(2)).map(|before| before.kind)
                == Some(TokenKind::Dot);
            if token.kind != TokenKind::Word || modifier {
                continue;
            }
            // Names beyond a limit are not recorded; the limit itself is reported where it is exceeded.
            if is_register(word) {
                self.use_register(thread, token).ok();
            } else if is_label(word) {
                if let Ok(label) = self.use_label(thread, token) {
                    self.recovered_labels.push((thread, label));
                }
            } else if is_location(word) && self.find_location(word).is_none() {
                self.add_location(undeclared_location(word, token.span)).ok();
            }
        }
    }
}

/// Returns an error if a list of this length has no room for another item.
pub(super) fn check_room(length: usize, what: &'static str, limit: usize, span: Span) -> Parsed<()> {
    if length < limit { Ok(()) } else { Err(ParseError::TooMany { what, limit, span }) }
}

/// Returns a location that is used but not declared.
fn undeclared_location(name: &str, span: Span) -> Location {
    Location { declared: false, span, ..Location::new(name) }
}
