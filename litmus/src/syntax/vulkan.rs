//! Reads the body of a test in the native dialect: declarations, `ssw` pairs, threads and the table.

use super::lexer::{Token, TokenKind};
use super::words::{self, is_location, is_register, is_thread, lookup};
use super::{MAX_LABELS, MAX_LOCATIONS, MAX_REGISTERS, MAX_SYSTEM_SYNC, MAX_THREADS};
use crate::error::{ErrorList, ParseError};
use crate::metadata::Metadata;
use crate::span::Span;
use crate::test::{
    Dialect, Label, LabelId, Location, LocationId, LocationInit, Place, Placement, Register, RegisterId,
    RegisterInit, ScalarType, SyncPoint, SystemSync, Test, Thread, ThreadId,
};
use crate::value::Value;

/// The outcome of reading one piece of the text.
pub(super) type Parsed<T> = Result<T, ParseError>;

/// Words that end the table.
const AFTER_TABLE: [&str; 6] = ["locations", "filter", "exists", "forall", "final", "not"];

/// Reads the tokens of a body into a test.
pub(super) struct Parser<'a> {
    pub text: &'a str,
    tokens: &'a [Token],
    position: usize,
    /// Tokens from here on are out of sight: the end of the cell that is being read.
    limit: usize,
    pub errors: &'a mut ErrorList,
    pub test: Test,
    /// Labels that have their place, by thread.
    placed_labels: Vec<Vec<LabelId>>,
    /// Where each label is first mentioned, by thread.
    label_mentions: Vec<Vec<Span>>,
    /// How many instructions besides labels there are.
    pub instruction_count: usize,
}

/// A register of the initial state, which stands before the threads.
struct DeclaredRegister {
    thread: u32,
    thread_span: Span,
    register: Register,
}

/// An `ssw` pair as it stands; the threads come later.
struct DeclaredSync {
    sides: [(u32, Option<u32>, Span); 2],
    span: Span,
}

impl<'a> Parser<'a> {
    /// A parser of `tokens`, which end with [`TokenKind::End`].
    pub fn new(
        text: &'a str,
        tokens: &'a [Token],
        errors: &'a mut ErrorList,
        name: String,
        metadata: Metadata,
    ) -> Parser<'a> {
        let test = Test {
            name,
            dialect: Dialect::Vulkan,
            metadata,
            locations: Vec::new(),
            threads: Vec::new(),
            system_sync: Vec::new(),
            listed: Vec::new(),
            filter: None,
            question: None,
        };
        Parser::with_test(text, tokens, errors, test)
    }

    /// A parser of more text about a test.
    pub fn with_test(
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
            label_mentions: Vec::new(),
            instruction_count: 0,
        }
    }

    /// Reads the whole body.
    pub fn body(&mut self) {
        let Some(registers) = self.declarations() else { return };
        let sync = if self.peek().kind == TokenKind::OpenBrace { self.sync_block() } else { Vec::new() };
        if !self.header_row() {
            return;
        }
        self.attach_registers(registers);
        let cells = self.table();
        for (index, cells) in cells.into_iter().enumerate() {
            self.thread_cells(ThreadId(index as u16), &cells);
        }
        self.limit = self.tokens.len();
        self.attach_sync(sync);
        self.questions();
    }

    // Tokens.

    /// The next token; [`TokenKind::End`] at the end of what is in sight.
    pub fn peek(&self) -> Token {
        self.peek_at(0)
    }

    /// The token after `ahead` others.
    pub fn peek_at(&self, ahead: usize) -> Token {
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

    /// Moves over the next token.
    pub fn next(&mut self) -> Token {
        let token = self.peek();
        if self.position < self.limit {
            self.position += 1;
        }
        token
    }

    /// The token before the next one.
    pub fn previous(&self) -> Token {
        match self.position.checked_sub(1).and_then(|index| self.tokens.get(index)) {
            Some(token) => *token,
            None => self.peek(),
        }
    }

    /// The text of a token.
    pub fn word(&self, token: Token) -> &'a str {
        let start = token.span.offset as usize;
        self.text.get(start..start + token.span.length as usize).unwrap_or("")
    }

    /// Moves over the next token if it is of `kind`.
    pub fn accept(&mut self, kind: TokenKind) -> bool {
        let found = self.peek().kind == kind;
        if found {
            self.next();
        }
        found
    }

    /// Whether the next token is the word `word`.
    pub fn at_word(&self, word: &str) -> bool {
        let token = self.peek();
        token.kind == TokenKind::Word && self.word(token) == word
    }

    /// Moves over the next token, which must be of `kind`.
    pub fn expect(&mut self, kind: TokenKind, expected: &'static str) -> Parsed<Token> {
        if self.peek().kind == kind { Ok(self.next()) } else { Err(self.unexpected(expected)) }
    }

    /// The next token is not what was expected.
    pub fn unexpected(&self, expected: &'static str) -> ParseError {
        let token = self.peek();
        ParseError::Unexpected { found: self.describe(token), expected, span: token.span }
    }

    /// A token in words.
    pub fn describe(&self, token: Token) -> String {
        match token.kind {
            TokenKind::End if self.limit < self.tokens.len() => "end of the cell".to_owned(),
            TokenKind::End => "end of the text".to_owned(),
            _ => {
                let text = self.word(token);
                let mut short: String = text.chars().take(40).collect();
                if short.len() < text.len() {
                    short.push('…');
                }
                format!("`{short}`")
            }
        }
    }

    /// The place just after the token before the next one.
    pub fn after_previous(&self) -> Span {
        self.previous().span
    }

    /// Moves on to the next token of one of `kinds`, without crossing the end of the text.
    fn skip_to(&mut self, kinds: &[TokenKind]) {
        while self.peek().kind != TokenKind::End && !kinds.contains(&self.peek().kind) {
            self.next();
        }
    }

    // Numbers.

    /// The value of a decimal or hexadecimal number token; hexadecimal ones may use all 64 bits.
    fn number(&self, token: Token) -> Parsed<i64> {
        let text = self.word(token);
        let value = match token.kind {
            TokenKind::Hexadecimal => {
                u64::from_str_radix(text.get(2..).unwrap_or(""), 16).ok().map(|bits| bits as i64)
            }
            _ => text.parse().ok(),
        };
        value.ok_or_else(|| self.too_large(token, 64))
    }

    fn too_large(&self, token: Token, bits: u32) -> ParseError {
        let number = self.word(token).chars().take(40).collect();
        ParseError::NumberTooLarge { number, bits, span: token.span }
    }

    /// An unsigned number of 32 bits in decimal digits.
    pub fn small_number(&mut self, expected: &'static str) -> Parsed<u32> {
        let token = self.expect(TokenKind::Number, expected)?;
        self.word(token).parse().map_err(|_| self.too_large(token, 32))
    }

    /// Whether the next tokens are a constant.
    pub fn at_constant(&self) -> bool {
        matches!(self.peek().kind, TokenKind::Number | TokenKind::Hexadecimal | TokenKind::Minus)
    }

    /// `["-"] digits` or `0x` and hexadecimal digits.
    pub fn constant(&mut self) -> Parsed<i64> {
        let token = self.peek();
        match token.kind {
            TokenKind::Number | TokenKind::Hexadecimal => {
                self.next();
                self.number(token)
            }
            TokenKind::Minus => {
                self.next();
                let digits = self.expect(TokenKind::Number, "digits after `-`")?;
                // The least number has no positive counterpart, so the sign must be part of what is converted.
                let text = self.word(digits);
                match text.parse::<u64>() {
                    Ok(magnitude) if magnitude <= i64::MIN.unsigned_abs() => {
                        Ok(0i64.wrapping_sub_unsigned(magnitude))
                    }
                    _ => Err(self.too_large(digits, 64)),
                }
            }
            _ => Err(self.unexpected("a number")),
        }
    }

    /// `P3` or `3`.
    pub fn thread_number(&mut self) -> Parsed<(u32, Span)> {
        let token = self.peek();
        let text = self.word(token);
        let digits = match token.kind {
            TokenKind::Word if is_thread(text) => &text[1..],
            TokenKind::Number => text,
            _ => return Err(self.unexpected("a thread such as `P0`")),
        };
        self.next();
        let number = digits.parse().map_err(|_| self.too_large(token, 32))?;
        Ok((number, token.span))
    }

    // Names.

    /// The location of a name, if there is one.
    pub fn find_location(&self, name: &str) -> Option<LocationId> {
        self.test
            .locations
            .iter()
            .position(|location| location.name == name)
            .map(|index| LocationId(index as u16))
    }

    /// The name of a location.
    pub fn location_name(&mut self) -> Parsed<Token> {
        let token = self.peek();
        if token.kind != TokenKind::Word {
            return Err(ParseError::LocationExpected { found: self.describe(token), span: token.span });
        }
        let word = self.word(token);
        if !is_location(word) {
            return Err(ParseError::ReservedName { word: word.to_owned(), span: token.span });
        }
        Ok(self.next())
    }

    fn add_location(&mut self, location: Location) -> Parsed<LocationId> {
        if self.test.locations.len() >= MAX_LOCATIONS {
            return Err(ParseError::TooMany { what: "locations", limit: MAX_LOCATIONS, span: location.span });
        }
        self.test.locations.push(location);
        Ok(LocationId((self.test.locations.len() - 1) as u16))
    }

    /// The location that an instruction names; a new one that starts at 0 where it is not declared.
    pub fn use_location(&mut self) -> Parsed<LocationId> {
        let token = self.location_name()?;
        let name = self.word(token);
        match self.find_location(name) {
            Some(id) => Ok(id),
            None => self.add_location(Location {
                name: name.to_owned(),
                reference: None,
                scalar: None,
                init: LocationInit::Constant(0),
                host: false,
                noncoherent: false,
                declared: false,
                span: token.span,
            }),
        }
    }

    /// The register that an instruction of `thread` names; a new one that starts at 0 where it is not declared.
    pub fn use_register(&mut self, thread: ThreadId, token: Token) -> Parsed<RegisterId> {
        let name = self.word(token);
        let registers = &mut self.test.threads[usize::from(thread.0)].registers;
        if let Some(index) = registers.iter().position(|register| register.name == name) {
            return Ok(RegisterId(index as u16));
        }
        if registers.len() >= MAX_REGISTERS {
            return Err(ParseError::TooMany {
                what: "registers in one thread",
                limit: MAX_REGISTERS,
                span: token.span,
            });
        }
        registers.push(Register { name: name.to_owned(), init: RegisterInit::Constant(0), declared: false });
        Ok(RegisterId((registers.len() - 1) as u16))
    }

    /// The label of `thread` that `token` names.
    pub fn use_label(&mut self, thread: ThreadId, token: Token) -> Parsed<LabelId> {
        let name = self.word(token);
        let index = usize::from(thread.0);
        let labels = &mut self.test.threads[index].labels;
        if let Some(found) = labels.iter().position(|label| label.name == name) {
            return Ok(LabelId(found as u16));
        }
        if labels.len() >= MAX_LABELS {
            return Err(ParseError::TooMany {
                what: "labels in one thread",
                limit: MAX_LABELS,
                span: token.span,
            });
        }
        labels.push(Label { name: name.to_owned() });
        let id = LabelId((labels.len() - 1) as u16);
        self.label_mentions[index].push(token.span);
        Ok(id)
    }

    /// Gives the label that `token` names its place.
    pub fn place_label(&mut self, thread: ThreadId, token: Token) -> Parsed<LabelId> {
        let label = self.use_label(thread, token)?;
        let placed = &mut self.placed_labels[usize::from(thread.0)];
        if placed.contains(&label) {
            return Err(ParseError::DuplicateLabel { name: self.word(token).to_owned(), span: token.span });
        }
        placed.push(label);
        Ok(label)
    }

    // Declarations.

    /// `{ … }` with the initial state; `None` where nothing after it can be read.
    fn declarations(&mut self) -> Option<Vec<DeclaredRegister>> {
        let mut registers: Vec<DeclaredRegister> = Vec::new();
        if let Err(error) = self.expect(TokenKind::OpenBrace, "`{` and the initial state") {
            self.errors.push(error);
            return None;
        }
        let closed = self.block(|parser| {
            let register = parser.at_register_declaration();
            if !register {
                return parser.location_declaration();
            }
            let declared = parser.register_declaration()?;
            if declared.thread as usize >= MAX_THREADS {
                return Err(ParseError::UnknownThread {
                    number: declared.thread,
                    span: declared.thread_span,
                });
            }
            let of_thread = registers.iter().filter(|other| other.thread == declared.thread);
            if of_thread.clone().any(|other| other.register.name == declared.register.name) {
                let name = format!("P{}:{}", declared.thread, declared.register.name);
                return Err(ParseError::DuplicateRegister { name, span: declared.thread_span });
            }
            if of_thread.count() >= MAX_REGISTERS {
                let span = declared.thread_span;
                return Err(ParseError::TooMany {
                    what: "registers in one thread",
                    limit: MAX_REGISTERS,
                    span,
                });
            }
            registers.push(declared);
            Ok(())
        });
        closed.then_some(registers)
    }

    /// The items of a block after its `{`, and its end. False where the text ended first.
    fn block(&mut self, mut item: impl FnMut(&mut Self) -> Parsed<()>) -> bool {
        loop {
            match self.peek().kind {
                TokenKind::Semicolon => {
                    self.next();
                }
                TokenKind::CloseBrace => {
                    self.next();
                    self.accept(TokenKind::Semicolon);
                    return true;
                }
                TokenKind::End => {
                    let error = self.unexpected("`}`");
                    self.errors.push(error);
                    return false;
                }
                _ => {
                    let start = self.position;
                    let ends =
                        |kind| matches!(kind, TokenKind::Semicolon | TokenKind::CloseBrace | TokenKind::End);
                    let result = item(self).and_then(|()| {
                        if ends(self.peek().kind) { Ok(()) } else { Err(self.unexpected("`;` or `}`")) }
                    });
                    if let Err(error) = result {
                        self.errors.push(error);
                        self.skip_to(&[TokenKind::Semicolon, TokenKind::CloseBrace]);
                        self.note_declared_names(start);
                    }
                }
            }
        }
    }

    /// Takes the names in a declaration that cannot be read as declared, so that one mistake is not reported again
    /// wherever the names are used. No test comes of it.
    fn note_declared_names(&mut self, start: usize) {
        for token in &self.tokens[start..self.position] {
            let name = self.word(*token);
            if token.kind == TokenKind::Word && is_location(name) && self.find_location(name).is_none() {
                let noted = self.add_location(Location {
                    name: name.to_owned(),
                    reference: None,
                    scalar: None,
                    init: LocationInit::Constant(0),
                    host: false,
                    noncoherent: false,
                    declared: true,
                    span: token.span,
                });
                if noted.is_err() {
                    return;
                }
            }
        }
    }

    fn at_register_declaration(&self) -> bool {
        let token = self.peek();
        match token.kind {
            TokenKind::Number => true,
            TokenKind::Word => is_thread(self.word(token)),
            _ => false,
        }
    }

    /// `P0:r0 = 1`, `P0:r0 = x` or `P0:r0 = &x`.
    fn register_declaration(&mut self) -> Parsed<DeclaredRegister> {
        let (thread, thread_span) = self.thread_number()?;
        self.expect(TokenKind::Colon, "`:` and a register")?;
        let token = self.register_token()?;
        let name = self.word(token).to_owned();
        self.expect(TokenKind::Equal, "`=`")?;
        let init = if self.at_constant() {
            RegisterInit::Constant(self.constant()?)
        } else if self.accept(TokenKind::Ampersand) {
            RegisterInit::AddressOf(self.declared_location()?)
        } else {
            RegisterInit::ValueOf(self.declared_location()?)
        };
        Ok(DeclaredRegister { thread, thread_span, register: Register { name, init, declared: true } })
    }

    /// The name of a register.
    pub fn register_token(&mut self) -> Parsed<Token> {
        let token = self.peek();
        if token.kind == TokenKind::Word && is_register(self.word(token)) {
            return Ok(self.next());
        }
        Err(ParseError::RegisterExpected { found: self.describe(token), span: token.span })
    }

    /// The name of a location that is declared before.
    fn declared_location(&mut self) -> Parsed<LocationId> {
        let token = self.location_name()?;
        let name = self.word(token);
        self.find_location(name)
            .ok_or_else(|| ParseError::UndeclaredTarget { name: name.to_owned(), span: token.span })
    }

    /// `[kind] [type] x [properties] = value` or `[kind] [type] x [properties] aliases y`.
    fn location_declaration(&mut self) -> Parsed<()> {
        let start = self.peek();
        // Storage and type are known by the name that follows them: `buffer = 0` declares a location named `buffer`.
        let mut reference = None;
        let mut scalar = None;
        while self.at_word_before_name() {
            let token = self.peek();
            let word = self.word(token);
            match (lookup(words::KINDS, word), lookup(words::TYPES, word)) {
                (Some(kind), _) if reference.is_none() && scalar.is_none() => reference = Some(kind),
                (_, Some(ty)) if scalar.is_none() => scalar = Some(ty),
                _ => return Err(ParseError::UnknownStorage { word: word.to_owned(), span: token.span }),
            }
            self.next();
        }
        let token = self.location_name()?;
        let name = self.word(token);
        let (host, noncoherent) = self.properties()?;
        let init = if self.at_word("aliases") {
            self.next();
            let target = self.declared_location()?;
            let target_type = self.test.location(target).scalar;
            match (scalar, target_type.unwrap_or_default()) {
                (Some(own), storage) if own.bits() > storage.bits() => {
                    let (name, bits) = (name.to_owned(), storage.bits());
                    return Err(ParseError::AliasTooWide { name, bits, span: token.span });
                }
                (Some(_), _) => {}
                // Another name for the same storage: without a type of its own it has that of the storage.
                (None, _) => scalar = target_type,
            }
            LocationInit::AliasOf(target)
        } else {
            self.expect(TokenKind::Equal, "`=` and a value, or `aliases`")?;
            self.initial_value(scalar)?
        };
        if self.find_location(name).is_some() {
            return Err(ParseError::DuplicateLocation { name: name.to_owned(), span: token.span });
        }
        let name = name.to_owned();
        let span = Span {
            length: self.previous().span.offset + self.previous().span.length - start.span.offset,
            ..start.span
        };
        self.add_location(Location {
            name,
            reference,
            scalar,
            init,
            host,
            noncoherent,
            declared: true,
            span,
        })?;
        Ok(())
    }

    /// Whether the next word is followed by a name, and so is none itself.
    fn at_word_before_name(&self) -> bool {
        let (first, second) = (self.peek(), self.peek_at(1));
        first.kind == TokenKind::Word && second.kind == TokenKind::Word && self.word(second) != "aliases"
    }

    fn initial_value(&mut self, scalar: Option<ScalarType>) -> Parsed<LocationInit> {
        if self.accept(TokenKind::Ampersand) {
            return Ok(LocationInit::AddressOf(self.declared_location()?));
        }
        if !self.at_constant() {
            return Ok(LocationInit::CopyOf(self.declared_location()?));
        }
        let span = self.peek().span;
        let value = self.constant()?;
        if let Some(ty) = scalar {
            let cut = Value::from_constant(value, ty);
            if cut.signed(ty) != value && cut.0 as i64 != value {
                return Err(ParseError::ValueOutOfRange { value, ty: ty.keyword(), span });
            }
        }
        Ok(LocationInit::Constant(value))
    }

    /// `[host]`, `[noncoherent]` or both, also as `[host, noncoherent]`.
    fn properties(&mut self) -> Parsed<(bool, bool)> {
        let (mut host, mut noncoherent) = (false, false);
        while self.accept(TokenKind::OpenBracket) {
            loop {
                let token = self.peek();
                match self.word(token) {
                    "host" => host = true,
                    "noncoherent" => noncoherent = true,
                    word => {
                        let word = word.chars().take(40).collect();
                        return Err(ParseError::UnknownProperty { word, span: token.span });
                    }
                }
                self.next();
                if !self.accept(TokenKind::Comma) {
                    break;
                }
            }
            self.expect(TokenKind::CloseBracket, "`]`")?;
        }
        Ok((host, noncoherent))
    }

    // System-synchronizes-with pairs.

    fn sync_block(&mut self) -> Vec<DeclaredSync> {
        self.next();
        let mut pairs = Vec::new();
        self.block(|parser| {
            let start = parser.peek().span;
            if !parser.at_word("ssw") {
                return Err(parser.unexpected("`ssw`"));
            }
            parser.next();
            let sides = [parser.sync_side()?, parser.sync_side()?];
            let end = parser.previous().span;
            let span = Span { length: end.offset + end.length - start.offset, ..start };
            if pairs.len() >= MAX_SYSTEM_SYNC {
                return Err(ParseError::TooMany { what: "`ssw` pairs", limit: MAX_SYSTEM_SYNC, span });
            }
            pairs.push(DeclaredSync { sides, span });
            Ok(())
        });
        pairs
    }

    /// `P0`, `0` or `P0.2`.
    fn sync_side(&mut self) -> Parsed<(u32, Option<u32>, Span)> {
        let (thread, span) = self.thread_number()?;
        let instruction = if self.accept(TokenKind::Dot) {
            Some(self.small_number("an index of an instruction")?)
        } else {
            None
        };
        Ok((thread, instruction, span))
    }

    fn attach_sync(&mut self, pairs: Vec<DeclaredSync>) {
        for pair in pairs {
            let points = pair.sides.map(|side| self.sync_point(side));
            match points {
                [Ok(from), Ok(to)] => self.test.system_sync.push(SystemSync { from, to, span: pair.span }),
                points => {
                    points.into_iter().filter_map(Result::err).for_each(|error| self.errors.push(error))
                }
            }
        }
    }

    fn sync_point(&self, (number, instruction, span): (u32, Option<u32>, Span)) -> Parsed<SyncPoint> {
        let Some(thread) = self.find_thread(number) else {
            return Err(ParseError::UnknownThread { number, span });
        };
        let length = self.test.thread(thread).instructions.len();
        match instruction {
            Some(index) if index as usize >= length => {
                Err(ParseError::UnknownInstructionIndex { thread: number, instruction: index, length, span })
            }
            index => Ok(SyncPoint { thread, instruction: index.map(|index| index as u16) }),
        }
    }

    // Threads.

    /// The thread of a number.
    pub fn find_thread(&self, number: u32) -> Option<ThreadId> {
        self.test
            .threads
            .iter()
            .position(|thread| thread.number == number)
            .map(|index| ThreadId(index as u16))
    }

    /// The row that declares the threads. False where nothing after it can be read.
    fn header_row(&mut self) -> bool {
        loop {
            let column = self.test.threads.len();
            let start = self.peek().span;
            if column >= MAX_THREADS {
                self.errors.push(ParseError::TooMany { what: "threads", limit: MAX_THREADS, span: start });
                return false;
            }
            let thread = self.thread_header().unwrap_or_else(|error| {
                self.errors.push(error);
                // A stand-in keeps the columns in step, so that the cells can still be checked.
                let placement = Placement { queue_family: 0, workgroup: 0, subgroup: 0 };
                self.skip_to(&[TokenKind::Bar, TokenKind::Semicolon]);
                (column as u32, Place::Device(placement))
            });
            let (number, place) = thread;
            if self.find_thread(number).is_some() {
                self.errors.push(ParseError::DuplicateThread { number, span: start });
            } else if number as usize != column {
                self.errors.push(ParseError::ThreadOrder { found: number, column, span: start });
            }
            self.test.threads.push(Thread {
                number,
                place,
                registers: Vec::new(),
                labels: Vec::new(),
                instructions: Vec::new(),
                span: start,
            });
            self.placed_labels.push(Vec::new());
            self.label_mentions.push(Vec::new());
            match self.peek().kind {
                TokenKind::Bar => {
                    self.next();
                }
                TokenKind::Semicolon => {
                    self.next();
                    return true;
                }
                TokenKind::End => {
                    let error = self.unexpected("`;` after the threads");
                    self.errors.push(error);
                    return false;
                }
                _ => {
                    let error = self.unexpected("`|` or `;`");
                    self.errors.push(error);
                    self.skip_to(&[TokenKind::Bar, TokenKind::Semicolon]);
                    if !self.accept(TokenKind::Bar) {
                        return self.accept(TokenKind::Semicolon);
                    }
                }
            }
        }
    }

    /// `P0@sg 0, wg 0, qf 0` or `P0@host`.
    fn thread_header(&mut self) -> Parsed<(u32, Place)> {
        let (number, _) = self.thread_number()?;
        self.expect(TokenKind::At, "`@` and where the thread runs")?;
        if self.at_word("host") {
            self.next();
            return Ok((number, Place::Host));
        }
        let subgroup = self.coordinate("sg", "`sg` and a number, or `host`")?;
        self.expect(TokenKind::Comma, "`,` and `wg`")?;
        let workgroup = self.coordinate("wg", "`wg` and a number")?;
        self.expect(TokenKind::Comma, "`,` and `qf`")?;
        let queue_family = self.coordinate("qf", "`qf` and a number")?;
        Ok((number, Place::Device(Placement { queue_family, workgroup, subgroup })))
    }

    fn coordinate(&mut self, word: &str, expected: &'static str) -> Parsed<u32> {
        if !self.at_word(word) {
            return Err(self.unexpected(expected));
        }
        self.next();
        self.small_number("a number")
    }

    fn attach_registers(&mut self, registers: Vec<DeclaredRegister>) {
        for declared in registers {
            match self.find_thread(declared.thread) {
                Some(thread) => {
                    self.test.threads[usize::from(thread.0)].registers.push(declared.register);
                }
                None => self
                    .errors
                    .push(ParseError::UnknownThread { number: declared.thread, span: declared.thread_span }),
            }
        }
    }

    // The table.

    /// Cuts the table into cells: token ranges by thread, empty ones left out.
    fn table(&mut self) -> Vec<Vec<(usize, usize)>> {
        let threads = self.test.threads.len();
        let mut columns = vec![Vec::new(); threads];
        if self.after_table() {
            let error = self.unexpected("a row of instructions");
            self.errors.push(error);
        }
        while !self.after_table() {
            let row_start = self.position;
            let cells = self.row();
            let too_many = cells.len() > threads && cells[threads..].iter().any(|(start, end)| start < end);
            let Some(cells) = too_many.then(|| self.shortened_row(row_start, &cells)).unwrap_or(Some(cells))
            else {
                continue;
            };
            for (column, (start, end)) in columns.iter_mut().zip(cells) {
                if start < end {
                    column.push((start, end));
                }
            }
        }
        columns
    }

    /// Whether the table has ended.
    fn after_table(&self) -> bool {
        let token = self.peek();
        match token.kind {
            TokenKind::End | TokenKind::Tilde => true,
            TokenKind::Word => AFTER_TABLE.contains(&self.word(token)),
            _ => false,
        }
    }

    /// The cells of one row, up to and over its `;`.
    fn row(&mut self) -> Vec<(usize, usize)> {
        let mut cells = Vec::new();
        let mut start = self.position;
        loop {
            if self.after_table() {
                self.errors.push(ParseError::MissingSemicolon { span: self.after_previous() });
                cells.push((start, self.position));
                return cells;
            }
            let token = self.next();
            match token.kind {
                TokenKind::Bar => {
                    cells.push((start, self.position - 1));
                    start = self.position;
                }
                TokenKind::Semicolon => {
                    cells.push((start, self.position - 1));
                    return cells;
                }
                _ => {}
            }
        }
    }

    /// Reports a row with too many cells. If a line ends inside one of them, its `;` was forgotten: the cells up to there
    /// are returned and reading goes on after them.
    fn shortened_row(&mut self, row_start: usize, cells: &[(usize, usize)]) -> Option<Vec<(usize, usize)>> {
        let threads = self.test.threads.len();
        let broken = cells.iter().enumerate().find_map(|(index, (start, end))| {
            (start + 1..*end)
                .find(|at| self.tokens[*at].span.line > self.tokens[at - 1].span.line)
                .map(|at| (index, at))
        });
        match broken {
            Some((index, at)) if index < threads => {
                self.errors.push(ParseError::MissingSemicolon { span: self.tokens[at - 1].span });
                self.position = at;
                let mut shortened = cells[..index].to_vec();
                shortened.push((cells[index].0, at));
                Some(shortened)
            }
            _ => {
                let span = cells
                    .get(threads)
                    .and_then(|(start, _)| self.tokens.get(start.saturating_sub(1)))
                    .or(self.tokens.get(row_start))
                    .map_or(Span::default(), |token| token.span);
                self.errors.push(ParseError::TooManyCells { found: cells.len(), threads, span });
                None
            }
        }
    }

    /// Takes the names in a cell that cannot be read as known, so that one mistake is not reported again wherever
    /// the names are used. No test comes of it.
    fn note_names(&mut self, thread: ThreadId, start: usize, end: usize) {
        self.position = start;
        self.limit = end;
        while self.peek().kind != TokenKind::End {
            let token = self.peek();
            let word = self.word(token);
            let modifier = self.position > start && self.previous().kind == TokenKind::Dot;
            let noted = if token.kind != TokenKind::Word
                || modifier
                || self.position == start && !words::is_label(word)
            {
                Ok(())
            } else if is_register(word) {
                self.use_register(thread, token).map(|_| ())
            } else if words::is_label(word) {
                self.use_label(thread, token).map(|label| {
                    self.placed_labels[usize::from(thread.0)].push(label);
                })
            } else {
                let position = self.position;
                let noted = self.use_location().map(|_| ());
                self.position = position;
                noted
            };
            // What cannot be noted was no name, or past a bound that is reported where it matters.
            drop(noted);
            self.next();
        }
    }

    /// Reads the cells of one thread.
    fn thread_cells(&mut self, thread: ThreadId, cells: &[(usize, usize)]) {
        let after = self.position;
        for (start, end) in cells {
            (self.position, self.limit) = (*start, *end);
            // A cell that holds several lines has lost the ends of their rows.
            loop {
                let result = self.instruction(thread).and_then(|()| {
                    let next = self.peek();
                    if next.kind == TokenKind::End {
                        return Ok(false);
                    }
                    if next.span.line > self.previous().span.line {
                        self.errors.push(ParseError::MissingSemicolon { span: self.after_previous() });
                        return Ok(true);
                    }
                    Err(self.unexpected("`|` or `;`"))
                });
                match result {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(error) => {
                        self.errors.push(error);
                        self.note_names(thread, *start, *end);
                        break;
                    }
                }
            }
        }
        self.position = after;
        self.limit = self.tokens.len();
        let index = usize::from(thread.0);
        let number = self.test.threads[index].number;
        for (label, mention) in
            self.test.threads[index].labels.iter().enumerate().zip(&self.label_mentions[index])
        {
            if !self.placed_labels[index].contains(&LabelId(label.0 as u16)) {
                let name = label.1.name.clone();
                self.errors.push(ParseError::UndeclaredLabel { thread: number, name, span: *mention });
            }
        }
    }
}
