//! Parses the blocks before the table: the initial state and the `ssw` pairs.

use super::lexer::TokenKind;
use super::parser::{Parsed, Parser, check_room};
use super::words::{AccessType, is_thread};
use super::{MAX_REGISTERS, MAX_SYSTEM_SYNC, MAX_THREADS};
use crate::error::ParseError;
use crate::span::Span;
use crate::test::{
    Location, LocationId, LocationInit, MAX_COMPONENTS, Reference, Register, RegisterInit, ScalarType,
    SyncPoint, SystemSync,
};
use crate::value::Value;

/// A register of the initial state, which precedes the threads.
pub(super) struct DeclaredRegister {
    pub(super) thread: u32,
    pub(super) thread_span: Span,
    pub(super) register: Register,
}

/// An `ssw` pair whose threads are not resolved yet.
pub(super) struct DeclaredSync {
    sides: [(u32, Option<u32>, Span); 2],
    span: Span,
}

/// The bracketed properties after a name.
#[derive(Default)]
struct LocationProperties {
    host: bool,
    noncoherent: bool,
    exclusive: bool,
}

impl Parser<'_> {
    /// Parses `{ … }` with the initial state; `None` if nothing after it can be parsed.
    pub(super) fn parse_declarations(&mut self) -> Option<Vec<DeclaredRegister>> {
        let mut registers: Vec<DeclaredRegister> = Vec::new();
        if let Err(error) = self.expect(TokenKind::OpenBrace, "`{` and the initial state") {
            self.errors.push(error);
            return None;
        }
        let closed = self.parse_block(|parser| {
            let register = parser.at_register_declaration();
            if !register {
                return if parser.is_hsa() {
                    parser.parse_hsa_declaration()
                } else if parser.foreign.is_some() {
                    parser.parse_foreign_declaration()
                } else {
                    parser.parse_location_declaration()
                };
            }
            let declared = parser.parse_register_declaration()?;
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
            let count = of_thread.count();
            check_room(count, "registers in one thread", MAX_REGISTERS, declared.thread_span)?;
            registers.push(declared);
            Ok(())
        });
        closed.then_some(registers)
    }

    /// Parses the items of a block after its `{`, and its end. Returns false if the text ended first.
    pub(super) fn parse_block(&mut self, mut item: impl FnMut(&mut Self) -> Parsed<()>) -> bool {
        loop {
            match self.peek().kind {
                TokenKind::Semicolon => {
                    self.next();
                }
                // A thread header: the end of the block is missing.
                TokenKind::Word | TokenKind::Number if self.peek_at(1).kind == TokenKind::At => {
                    let error = self.unexpected_token("`}`");
                    self.errors.push(error);
                    return true;
                }
                TokenKind::CloseBrace => {
                    self.next();
                    self.accept(TokenKind::Semicolon);
                    return true;
                }
                TokenKind::End => {
                    let error = self.unexpected_token("`}`");
                    self.errors.push(error);
                    return false;
                }
                _ => {
                    let start = self.position;
                    let ends =
                        |kind| matches!(kind, TokenKind::Semicolon | TokenKind::CloseBrace | TokenKind::End);
                    let result = item(self).and_then(|()| {
                        if ends(self.peek().kind) { Ok(()) } else { Err(self.unexpected_token("`;` or `}`")) }
                    });
                    if let Err(error) = result {
                        self.errors.push(error);
                        self.skip_to(&[TokenKind::Semicolon, TokenKind::CloseBrace]);
                        self.recover_declared_names(start);
                    }
                }
            }
        }
    }

    pub(super) fn at_register_declaration(&self) -> bool {
        let token = self.peek();
        match token.kind {
            TokenKind::Number => true,
            TokenKind::Word => is_thread(self.token_text(token)),
            _ => false,
        }
    }

    /// Parses `P0:r0 = 1`, `P0:r0 = x` or `P0:r0 = &x`.
    pub(super) fn parse_register_declaration(&mut self) -> Parsed<DeclaredRegister> {
        let (thread, thread_span) = self.parse_thread_number()?;
        self.expect(TokenKind::Colon, "`:` and a register")?;
        let token = self.expect_register()?;
        let name = self.token_text(token).to_owned();
        self.expect(TokenKind::Equal, "`=`")?;
        let init = if self.is_hsa() {
            RegisterInit::Constant(self.parse_hsa_constant()?)
        } else if self.at_constant() {
            RegisterInit::Constant(self.parse_constant()?)
        } else if self.accept(TokenKind::Ampersand) {
            RegisterInit::AddressOf(self.declared_location()?)
        } else {
            let location = self.declared_location()?;
            self.check_scalar(location)?;
            if self.test.has_undefined_init(location) {
                let (name, span) = (self.test.location(location).name.clone(), self.previous_token().span);
                return Err(ParseError::UndefinedInRegister { name, span });
            }
            RegisterInit::ValueOf(location)
        };
        Ok(DeclaredRegister { thread, thread_span, register: Register { name, init, declared: true } })
    }

    /// Parses the name of an already declared location.
    pub(super) fn declared_location(&mut self) -> Parsed<LocationId> {
        let token = self.parse_location_name()?;
        let name = self.token_text(token);
        self.find_location(name)
            .ok_or_else(|| ParseError::UndeclaredTarget { name: name.to_owned(), span: token.span })
    }

    /// Parses `[kind] [type] x [properties] = value` or `[kind] [type] x [properties] aliases y`.
    pub(super) fn parse_location_declaration(&mut self) -> Parsed<()> {
        let start = self.peek();
        // A storage or type keyword is followed by a name: `buffer = 0` declares a location named `buffer`.
        let mut reference = None;
        let mut declared: Option<AccessType> = None;
        while self.at_word_before_name() {
            let token = self.peek();
            let word = self.token_text(token);
            match (Reference::from_keyword(word), AccessType::from_word(word)) {
                (Some(kind), _) if reference.is_none() && declared.is_none() => reference = Some(kind),
                (_, Some(ty)) if ty.is_too_wide() => return Err(vector_too_wide_error(word, ty, token.span)),
                (_, Some(ty)) if declared.is_none() => declared = Some(ty),
                _ => return Err(ParseError::UnknownStorage { word: word.to_owned(), span: token.span }),
            }
            self.next();
        }
        let token = self.parse_location_name()?;
        let name = self.token_text(token);
        let LocationProperties { host, noncoherent, exclusive } = self.parse_properties()?;
        let init = if self.at_word("aliases") {
            self.next();
            let target = self.declared_location()?;
            let storage = self.test.location(target);
            match declared {
                Some(own) if own.bytes() > storage.bytes() => {
                    let (name, bits) = (name.to_owned(), 8 * storage.bytes());
                    return Err(ParseError::AliasTooWide { name, bits, span: token.span });
                }
                Some(_) => {}
                // Another name for the same storage; without its own type it has the storage's type.
                None => {
                    let components = storage.components;
                    declared = storage.scalar.map(|scalar| AccessType { scalar, components });
                }
            }
            LocationInit::AliasOf(target)
        } else {
            self.expect(TokenKind::Equal, "`=` and a value, or `aliases`")?;
            self.parse_initial_value(declared)?
        };
        let (scalar, components) = (declared.map(|ty| ty.scalar), declared.map_or(1, |ty| ty.components));
        let existing = self.find_location(name);
        let name = name.to_owned();
        if existing.is_some_and(|known| self.test.location(known).declared) {
            return Err(ParseError::DuplicateLocation { name, span: token.span });
        }
        let span = self.span_since(start.span);
        let declared = true;
        let location =
            Location { name, reference, scalar, components, init, host, noncoherent, declared, span };
        let id = match existing {
            // Recorded earlier by error recovery.
            Some(known) => {
                self.test.locations[usize::from(known.0)] = location;
                known
            }
            None => self.add_location(location)?,
        };
        self.exclusive.extend(exclusive.then_some(id));
        Ok(())
    }

    /// Returns true if the next word is followed by a name, and so is not a name itself.
    pub(super) fn at_word_before_name(&self) -> bool {
        let (first, second) = (self.peek(), self.peek_at(1));
        first.kind == TokenKind::Word
            && second.kind == TokenKind::Word
            && self.token_text(second) != "aliases"
    }

    fn parse_initial_value(&mut self, declared: Option<AccessType>) -> Parsed<LocationInit> {
        if self.accept(TokenKind::Question) {
            return Ok(LocationInit::Undefined);
        }
        let components = declared.map_or(1, |ty| ty.components);
        let open = self.peek().span;
        if self.accept(TokenKind::OpenBrace) {
            let values = self.parse_component_values(declared.map(|ty| ty.scalar));
            // The rest of a list with a mistake must not end the block.
            if values.is_err() {
                self.skip_to(&[TokenKind::CloseBrace, TokenKind::Semicolon]);
                self.accept(TokenKind::CloseBrace);
            }
            let values = values?;
            if values.len() != usize::from(components) {
                let span = self.span_since(open);
                return Err(component_count_error(components, values.len(), span));
            }
            let mut padded = [0; MAX_COMPONENTS as usize];
            padded[..values.len()].copy_from_slice(&values);
            return Ok(LocationInit::Components(padded));
        }
        if self.accept(TokenKind::Ampersand) {
            let target = self.declared_location()?;
            if components > 1 {
                return Err(ParseError::AddressInVector { span: self.previous_token().span });
            }
            return Ok(LocationInit::AddressOf(target));
        }
        if !self.at_constant() {
            let target = self.declared_location()?;
            let source = self.test.location(target);
            if source.is_vector() && source.components != components {
                let found = usize::from(source.components);
                return Err(component_count_error(components, found, self.previous_token().span));
            }
            return Ok(LocationInit::CopyOf(target));
        }
        Ok(LocationInit::Constant(self.parse_value_of_type(declared.map(|ty| ty.scalar))?))
    }

    /// Parses the values of a list in braces, after its `{`.
    fn parse_component_values(&mut self, scalar: Option<ScalarType>) -> Parsed<Vec<i64>> {
        let mut values = Vec::new();
        loop {
            if !self.at_constant() {
                return Err(self.unexpected_token("a number for each component"));
            }
            values.push(self.parse_value_of_type(scalar)?);
            if !self.accept(TokenKind::Comma) {
                self.expect(TokenKind::CloseBrace, "`,` or `}`")?;
                return Ok(values);
            }
        }
    }

    /// Parses a constant that fits the declared type.
    fn parse_value_of_type(&mut self, scalar: Option<ScalarType>) -> Parsed<i64> {
        let span = self.peek().span;
        let value = self.parse_constant()?;
        if let Some(ty) = scalar
            && !Value::fits_type(value, ty)
        {
            return Err(ParseError::ValueOutOfRange { value, ty: ty.keyword(), span });
        }
        Ok(value)
    }

    /// Refuses the name of a vector, which was just read, if a scalar is required.
    pub(super) fn check_scalar(&self, id: LocationId) -> Parsed<()> {
        let location = self.test.location(id);
        if !location.is_vector() {
            return Ok(());
        }
        let (name, span) = (location.name.clone(), self.previous_token().span);
        Err(ParseError::BareVector { name, last: location.components - 1, span })
    }

    /// Parses `[host]`, `[noncoherent]`, `[exclusive]`, or several as `[host, noncoherent]`.
    fn parse_properties(&mut self) -> Parsed<LocationProperties> {
        let mut found = LocationProperties::default();
        while self.accept(TokenKind::OpenBracket) {
            loop {
                let token = self.peek();
                match self.token_text(token) {
                    "host" => found.host = true,
                    "noncoherent" => found.noncoherent = true,
                    "exclusive" => found.exclusive = true,
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
        Ok(found)
    }

    /// Moves the declared registers to their threads, which are known by now.
    pub(super) fn attach_registers(&mut self, registers: Vec<DeclaredRegister>) {
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

    // Parses system-synchronizes-with pairs.

    pub(super) fn parse_sync_block(&mut self) -> Vec<DeclaredSync> {
        self.next();
        let mut pairs = Vec::new();
        self.parse_block(|parser| {
            let start = parser.peek().span;
            let (word, expected) = if parser.is_hsa() { ("pkt", "`pkt`") } else { ("ssw", "`ssw`") };
            if !parser.at_word(word) {
                return Err(parser.unexpected_token(expected));
            }
            parser.next();
            let sides = [parser.parse_sync_side()?, parser.parse_sync_side()?];
            if parser.is_hsa() && sides[0].0 == sides[1].0 {
                return Err(ParseError::PacketAfterItself { thread: sides[1].0, span: sides[1].2 });
            }
            let end = parser.previous_token().span;
            let span = Span { length: end.offset + end.length - start.offset, ..start };
            check_room(pairs.len(), "`ssw` pairs", MAX_SYSTEM_SYNC, span)?;
            pairs.push(DeclaredSync { sides, span });
            Ok(())
        });
        pairs
    }

    /// Parses `P0`, `0` or `P0.2`.
    pub(super) fn parse_sync_side(&mut self) -> Parsed<(u32, Option<u32>, Span)> {
        let (thread, span) = self.parse_thread_number()?;
        let instruction = if !self.is_hsa() && self.accept(TokenKind::Dot) {
            Some(self.parse_small_number("an index of an instruction")?)
        } else {
            None
        };
        Ok((thread, instruction, span))
    }

    pub(super) fn attach_sync(&mut self, pairs: Vec<DeclaredSync>) {
        for pair in pairs {
            let points = pair.sides.map(|side| self.resolve_sync_point(side));
            match points {
                [Ok(from), Ok(to)] => self.test.system_sync.push(SystemSync { from, to, span: pair.span }),
                points => {
                    points.into_iter().filter_map(Result::err).for_each(|error| self.errors.push(error))
                }
            }
        }
    }

    pub(super) fn resolve_sync_point(
        &self,
        (number, instruction, span): (u32, Option<u32>, Span),
    ) -> Parsed<SyncPoint> {
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
}

/// Returns the error for a vector type that the language does not have.
pub(super) fn vector_too_wide_error(word: &str, ty: AccessType, span: Span) -> ParseError {
    ParseError::VectorTooWide { word: word.to_owned(), bytes: ty.bytes(), span }
}

/// Returns the error for a wrong number of components.
pub(super) fn component_count_error(expected: u8, found: usize, span: Span) -> ParseError {
    ParseError::ComponentCount { expected, found, span }
}
