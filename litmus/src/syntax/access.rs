//! Parses loads, stores and memory operands.

use super::declarations::component_count_error;
use super::instruction::Modifiers;
use super::lexer::TokenKind;
use super::parser::{Parsed, Parser};
use super::words::{self, AccessType, Keyword, lookup, order_keyword};
use crate::error::ParseError;
use crate::span::Span;
use crate::test::{
    Access, AccessKind, Components, InstructionKind, MemoryAccess, MemoryPlace, Order, Performer,
    StorageClass, ThreadId,
};

/// The differences between loads and stores.
struct AccessRules {
    instruction: &'static str,
    /// The per-instruction operation that this instruction may have.
    operation: &'static str,
    /// The per-instruction operation that only other instructions may have.
    other_operation: &'static str,
    order: Order,
    expected_order: &'static str,
}

const LOAD: AccessRules = AccessRules {
    instruction: "ld",
    operation: "vis",
    other_operation: "av",
    order: Order::Acquire,
    expected_order: "`.acq` or no order",
};

const STORE: AccessRules = AccessRules {
    instruction: "st",
    operation: "av",
    other_operation: "vis",
    order: Order::Release,
    expected_order: "`.rel` or no order",
};

/// The place that a load or store accesses, with its number of components.
pub(super) struct MemoryOperand {
    pub place: MemoryPlace,
    pub components: u8,
    /// The keyword of a vector type.
    pub vector: String,
}

const END_OF_ACCESS: &str = "a type such as `.u8`, or the operands";

impl<'a> Parser<'a> {
    /// Parses the strength of a load or store and its storage class.
    fn parse_access_strength(
        &mut self,
        rules: &AccessRules,
        modifiers: &mut Modifiers<'a>,
    ) -> Parsed<(Access, StorageClass, Span)> {
        if modifiers.take_word("atom").is_some() {
            let word = modifiers.parse_order(rules.order);
            let order = word.order;
            if order != Order::Relaxed && order != rules.order {
                return Err(ParseError::OrderNotAllowed {
                    instruction: rules.instruction,
                    word: order_keyword(order).unwrap_or_default().to_owned(),
                    expected: rules.expected_order,
                    span: modifiers.last_span(),
                });
            }
            let scope = modifiers.parse_scope()?;
            let (class, place) = modifiers.parse_class()?;
            let semantics = modifiers.parse_semantics(word, rules.expected_order)?;
            return Ok((Access::Atomic { scope, semantics }, class, place));
        }
        let access = if modifiers.take_word("nonpriv").is_some() {
            Access::NonPrivate
        } else if modifiers.take_word(rules.operation).is_some() {
            Access::Coherent { scope: modifiers.parse_scope()? }
        } else {
            let instruction = rules.instruction;
            match modifiers.peek() {
                Some((word, span)) if word == rules.other_operation => {
                    return Err(ParseError::WrongCoherence { instruction, word: word.to_owned(), span });
                }
                Some((word, span)) if lookup(words::SCOPES, word).is_some() => {
                    let operation = rules.operation;
                    return Err(ParseError::ScopeOnPlain { instruction, operation, span });
                }
                Some((word, span)) if lookup(words::ORDERS, word).is_some() || word == words::SEQUENTIAL => {
                    return Err(ParseError::OrderOnPlain { instruction, span });
                }
                _ => Access::Private,
            }
        };
        let (class, place) = modifiers.parse_class()?;
        if let Some((word, span)) = modifiers.peek()
            && word.starts_with("sem")
        {
            let (word, orders) = (word.to_owned(), "`.atom` and an order");
            return Err(ParseError::SemanticsWithoutOrder { word, orders, span });
        }
        Ok((access, class, place))
    }

    pub(super) fn parse_load(
        &mut self,
        thread: ThreadId,
        modifiers: &mut Modifiers<'a>,
    ) -> Parsed<InstructionKind> {
        let cooperative = modifiers.take_word("coop");
        let (access, class, place) = self.parse_access_strength(&LOAD, modifiers)?;
        let ty = modifiers.parse_access_type()?;
        modifiers.expect_end(END_OF_ACCESS)?;
        let start = self.peek().span;
        let braces = self.peek().kind == TokenKind::OpenBrace;
        let destinations = self.parse_braced(|parser| {
            let token = parser.expect_register()?;
            Ok((parser.use_register(thread, token)?, token.span))
        })?;
        let span = self.span_since(start);
        self.expect_comma()?;
        let memory = self.parse_memory_operand(class, place, ty)?;
        let lanes = check_components(&memory, access, cooperative, braces, &destinations, span)?;
        for (index, (register, span)) in destinations.iter().enumerate() {
            if destinations[..index].iter().any(|(earlier, _)| earlier == register) {
                let name = self.test.thread(thread).registers[usize::from(register.0)].name.clone();
                return Err(ParseError::RepeatedDestination { name, span: *span });
            }
        }
        let lanes = lanes.map(|(register, _)| register);
        memory_access(memory, AccessKind::Load(lanes), access, cooperative)
    }

    pub(super) fn parse_store(
        &mut self,
        thread: ThreadId,
        modifiers: &mut Modifiers<'a>,
    ) -> Parsed<InstructionKind> {
        let cooperative = modifiers.take_word("coop");
        let (access, class, place) = self.parse_access_strength(&STORE, modifiers)?;
        let ty = modifiers.parse_access_type()?;
        modifiers.expect_end(END_OF_ACCESS)?;
        let memory = self.parse_memory_operand(class, place, ty)?;
        self.expect_comma()?;
        let start = self.peek().span;
        let braces = self.peek().kind == TokenKind::OpenBrace;
        let values = self.parse_braced(|parser| parser.parse_operand(thread))?;
        let span = self.span_since(start);
        let lanes = check_components(&memory, access, cooperative, braces, &values, span)?;
        memory_access(memory, AccessKind::Store(lanes), access, cooperative)
    }

    /// Parses one item, or several in braces.
    fn parse_braced<T>(&mut self, mut item: impl FnMut(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        if !self.accept(TokenKind::OpenBrace) {
            return Ok(vec![item(self)?]);
        }
        let mut items = Vec::new();
        loop {
            items.push(item(self)?);
            if !self.accept(TokenKind::Comma) {
                self.expect(TokenKind::CloseBrace, "`,` or `}`")?;
                return Ok(items);
            }
        }
    }

    /// Parses `x` or `x+2` and checks it against the declaration of `x`.
    ///
    /// `class_place` is the position of the storage class.
    pub(super) fn parse_memory_operand(
        &mut self,
        class: StorageClass,
        class_place: Span,
        given: Option<AccessType>,
    ) -> Parsed<MemoryOperand> {
        let token = self.peek();
        let id = self.use_location()?;
        let offset =
            if self.accept(TokenKind::Plus) { self.parse_small_number("an offset in bytes")? } else { 0 };
        let location = self.test.location(id);
        if let Some(kind) = location.reference
            && kind.storage_class() != class
        {
            return Err(ParseError::StorageMismatch {
                class: class.keyword(),
                name: location.name.clone(),
                kind: kind.keyword(),
                expected: kind.storage_class().keyword(),
                span: class_place,
            });
        }
        let span = self.span_since(token.span);
        let own = AccessType { scalar: location.scalar_type(), components: location.components };
        let ty = given.unwrap_or(own);
        let bytes = location.bytes();
        if u64::from(offset) + u64::from(ty.bytes()) > u64::from(bytes) {
            return Err(ParseError::OutOfBounds { name: location.name.clone(), bytes, span });
        }
        // Vectors need only the alignment of their components.
        let size = ty.scalar.bytes();
        if !offset.is_multiple_of(size) {
            return Err(ParseError::Misaligned { name: location.name.clone(), bytes: size, span });
        }
        let scalar = if ty.components > 1 { Some(ty.scalar) } else { given.map(|given| given.scalar) };
        let (components, vector) = (ty.components, ty.keyword());
        let place = MemoryPlace { location: id, offset, scalar, class, address: None };
        Ok(MemoryOperand { place, components, vector })
    }
}

/// Checks the components of the operands at `span` against the type of an access.
fn check_components<T: Copy>(
    memory: &MemoryOperand,
    access: Access,
    cooperative: Option<Span>,
    braces: bool,
    items: &[T],
    span: Span,
) -> Parsed<Components<T>> {
    let (expected, vector) = (memory.components, memory.vector.clone());
    let plain = match access {
        Access::Atomic { .. } => Err("an atomic access"),
        _ if cooperative.is_some() => Err("a cooperative access"),
        Access::Private | Access::NonPrivate | Access::Coherent { .. } => Ok(()),
    };
    match (expected, plain) {
        (1, _) if braces => Err(ParseError::ScalarInBraces { ty: vector, span }),
        (2.., Err(what)) => Err(ParseError::VectorNotPlain { what, vector, span }),
        (2.., Ok(())) if !braces => Err(ParseError::BracesExpected { vector, expected, span }),
        _ => Components::from_slice(items)
            .filter(|lanes| lanes.count() == expected)
            .ok_or_else(|| component_count_error(expected, items.len(), span)),
    }
}

/// Creates the access; a cooperative one if `coop` precedes it. Atomics are never cooperative.
fn memory_access(
    memory: MemoryOperand,
    kind: AccessKind,
    strength: Access,
    coop: Option<Span>,
) -> Parsed<InstructionKind> {
    let performer = match (coop, strength) {
        (Some(span), Access::Atomic { .. }) => {
            let (word, expected) = ("coop".to_owned(), "a plain access");
            return Err(ParseError::MisplacedModifier { word, expected, span });
        }
        (Some(_), _) => Performer::Cooperative,
        (None, _) => Performer::Invocation,
    };
    Ok(InstructionKind::Access(MemoryAccess { place: memory.place, kind, strength, performer }))
}
