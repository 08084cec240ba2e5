//! Parses the mnemonic of an instruction, such as `atomic_ld_global_scacq_system_u32`, from left to right.

use super::{ATOMIC_OPERATIONS, ORDERS, SCOPES, SEGMENTS};
use crate::error::ParseError;
use crate::span::Span;
use crate::syntax::parser::Parsed;
use crate::syntax::words::{Words, lookup};
use crate::test::{
    Access, AccessKind, ArithmeticOperation, InstructionKind, MemoryAccess, MemoryPlace, Order, Performer,
    Scope, Semantics, StorageClass, StorageClassSet,
};

/// The possible orders of an operation, and these as text.
pub(super) type OrderChoice = (&'static [Order], &'static str);

/// A mnemonic and the current position in it.
pub(super) struct Mnemonic<'a> {
    word: &'a str,
    /// Consumed bytes, including the `_` after them.
    read: usize,
    span: Span,
}

/// The segment and the strength of an access.
pub(super) struct AccessParts {
    pub class: StorageClass,
    pub segment: Span,
    strength: Access,
}

impl AccessParts {
    pub(super) fn to_instruction(&self, place: MemoryPlace, kind: AccessKind) -> InstructionKind {
        let (strength, performer) = (self.strength, Performer::Invocation);
        InstructionKind::Access(MemoryAccess { place, kind, strength, performer })
    }
}

impl<'a> Mnemonic<'a> {
    pub(super) fn new(word: &'a str, span: Span) -> Mnemonic<'a> {
        Mnemonic { word, read: 0, span }
    }

    /// Returns the next part; empty at the end.
    pub(super) fn peek(&self) -> &'a str {
        let rest = self.word.get(self.read..).unwrap_or("");
        rest.split('_').next().unwrap_or(rest)
    }

    /// Consumes the next part.
    pub(super) fn take_part(&mut self) -> &'a str {
        let part = self.peek();
        self.read += part.len() + 1;
        part
    }

    /// Returns the position of the next part, or of the end of the word.
    fn next_span(&self) -> Span {
        let length = self.peek().len() as u32;
        let before = (self.read as u32).min(self.span.length);
        Span {
            offset: self.span.offset + before,
            length,
            line: self.span.line,
            column: self.span.column + before,
        }
    }

    /// Returns the error for an unexpected next part.
    pub(super) fn unexpected_part(&self, part: &'static str, expected: &'static str) -> ParseError {
        let found = match self.peek() {
            "" => "nothing".to_owned(),
            found => format!("`{}`", found.chars().take(40).collect::<String>()),
        };
        let read = self.word.get(..self.read.saturating_sub(1)).unwrap_or(self.word);
        ParseError::BadMnemonic {
            instruction: read.to_owned(),
            part,
            found,
            expected,
            span: self.next_span(),
        }
    }

    pub(super) fn one_of<T: Copy>(
        &mut self,
        words: Words<T>,
        part: &'static str,
        expected: &'static str,
    ) -> Parsed<T> {
        let Some(meaning) = lookup(words, self.peek()) else {
            return Err(self.unexpected_part(part, expected));
        };
        self.take_part();
        Ok(meaning)
    }

    /// Parses `global` or `group`, with its position.
    fn take_segment(&mut self) -> Parsed<(StorageClass, Span)> {
        let place = self.next_span();
        Ok((self.one_of(SEGMENTS, "segment", "`global` or `group`")?, place))
    }

    /// Parses one of the orders.
    pub(super) fn take_order(&mut self, (orders, expected): OrderChoice) -> Parsed<Semantics> {
        match lookup(ORDERS, self.peek()) {
            Some(order) if orders.contains(&order) => {
                self.take_part();
                Ok(hsa_semantics(order))
            }
            _ => Err(self.unexpected_part("order", expected)),
        }
    }

    pub(super) fn take_scope(&mut self) -> Parsed<Scope> {
        self.one_of(SCOPES, "scope", "`wi`, `wave`, `wg`, `agent` or `system`")
    }

    /// Parses `u32`, `s32` or `b32`, and the end. All of them are the same 32 bits.
    pub(super) fn end_with_type(&mut self) -> Parsed<()> {
        if !matches!(self.peek(), "u32" | "s32" | "b32") {
            return Err(self.unexpected_part("type", "`u32`, `s32` or `b32`"));
        }
        self.take_part();
        self.expect_end()
    }

    /// Parses the required word `part`.
    pub(super) fn take_word(&mut self, part: &'static str, expected: &'static str) -> Parsed<()> {
        if self.peek() != part {
            return Err(self.unexpected_part("next part", expected));
        }
        self.take_part();
        Ok(())
    }

    pub(super) fn expect_end(&self) -> Parsed<()> {
        if self.read > self.word.len() {
            Ok(())
        } else {
            Err(self.unexpected_part("next part", "the end of the word"))
        }
    }

    /// Parses segment and type of an ordinary access.
    pub(super) fn take_plain(&mut self) -> Parsed<AccessParts> {
        let (class, segment) = self.take_segment()?;
        self.end_with_type()?;
        Ok(AccessParts { class, segment, strength: Access::Private })
    }

    /// Parses segment, order, scope and type of an atomic access.
    pub(super) fn take_atomic(&mut self, orders: OrderChoice) -> Parsed<AccessParts> {
        let (class, segment) = self.take_segment()?;
        let semantics = self.take_order(orders)?;
        let scope = self.take_scope()?;
        self.end_with_type()?;
        Ok(AccessParts { class, segment, strength: Access::Atomic { scope, semantics } })
    }

    /// Parses the operation of a read-modify-write; `None` for `exch`, if `exchange` permits it.
    pub(super) fn take_operation(&mut self, exchange: bool) -> Parsed<Option<ArithmeticOperation>> {
        if exchange && self.peek() == "exch" {
            self.take_part();
            return Ok(None);
        }
        let expected = if exchange {
            "`ld`, `st`, `exch`, `add`, `sub`, `and`, `or`, `xor`, `max` or `min`"
        } else {
            "`st`, `add`, `sub`, `and`, `or`, `xor`, `max` or `min`"
        };
        self.one_of(ATOMIC_OPERATIONS, "operation", expected).map(Some)
    }
}

/// Returns the semantics of an HSA order, which applies to every segment.
fn hsa_semantics(order: Order) -> Semantics {
    let classes = match order {
        Order::Relaxed => StorageClassSet::EMPTY,
        _ => StorageClassSet::EMPTY.with(StorageClass::Buffer).with(StorageClass::Workgroup),
    };
    Semantics { order, classes, ..Semantics::RELAXED }
}
