//! The HSA dialect: its vocabulary, and its differences from the native dialect outside of instructions.
#![doc = include_str!("hsa/grammar.md")]

mod check;
mod instruction;
mod mnemonic;
mod print;

pub(crate) use print::instruction_text;

use super::lexer::TokenKind;
use super::parser::{Parsed, Parser};
use super::words::{Words, is_numbered, is_thread};
use crate::comparison::Comparison;
use crate::error::ParseError;
use crate::test::{
    ArithmeticOperation, Location, LocationInit, Order, Placement, Reference, Scope, StorageClass, ThreadId,
    ThreadPlace,
};

/// Words that end the table.
pub(super) const AFTER_TABLE: [&str; 2] = ["exists", "forall"];

const SEGMENTS: Words<StorageClass> = &[("global", StorageClass::Buffer), ("group", StorageClass::Workgroup)];

const SCOPES: Words<Scope> = &[
    ("wi", Scope::Invocation),
    ("wave", Scope::Subgroup),
    ("wg", Scope::Workgroup),
    ("agent", Scope::Device),
    ("system", Scope::CrossDevice),
];

const ORDERS: Words<Order> = &[
    ("rlx", Order::Relaxed),
    ("scacq", Order::Acquire),
    ("screl", Order::Release),
    ("scar", Order::AcquireRelease),
];

/// The operations on registers; read-modify-writes have [`ATOMIC_OPERATIONS`] and `exch`.
const OPERATIONS: Words<ArithmeticOperation> = &[
    ("add", ArithmeticOperation::Add),
    ("sub", ArithmeticOperation::Subtract),
    ("mul", ArithmeticOperation::Multiply),
    ("and", ArithmeticOperation::And),
    ("or", ArithmeticOperation::Or),
    ("xor", ArithmeticOperation::Xor),
];

const ATOMIC_OPERATIONS: Words<ArithmeticOperation> = &[
    ("add", ArithmeticOperation::Add),
    ("sub", ArithmeticOperation::Subtract),
    ("and", ArithmeticOperation::And),
    ("or", ArithmeticOperation::Or),
    ("xor", ArithmeticOperation::Xor),
    ("max", ArithmeticOperation::Maximum),
    ("min", ArithmeticOperation::Minimum),
];

const RELATIONS: Words<Comparison> = &[
    ("eq", Comparison::Equal),
    ("ne", Comparison::NotEqual),
    ("lt", Comparison::Less),
    ("le", Comparison::LessOrEqual),
    ("gt", Comparison::Greater),
    ("ge", Comparison::GreaterOrEqual),
];

/// Returns true for `$s0`, `$s1`, ….
pub(super) fn is_value_register(word: &str) -> bool {
    is_numbered(word, "$s")
}

/// Returns true for `$c0`, `$c1`, ….
fn is_condition_register(word: &str) -> bool {
    is_numbered(word, "$c")
}

/// Returns true if `word` is a valid location name.
pub(super) fn is_location(word: &str) -> bool {
    !is_thread(word) && !word.starts_with('$') && !AFTER_TABLE.contains(&word)
}

/// Returns the dialect's word for a storage class.
fn segment_keyword(class: StorageClass) -> &'static str {
    super::words::find_word(SEGMENTS, class)
}

impl Parser<'_> {
    /// Parses `["global" | "group"] x = value`.
    pub(super) fn parse_hsa_declaration(&mut self) -> Parsed<()> {
        let start = self.peek();
        let mut reference = Reference::Buffer;
        // A segment keyword is followed by a name: `group = 0` declares a location named `group`.
        if self.peek_at(1).kind == TokenKind::Word {
            reference = match self.token_text(start) {
                "global" => Reference::Buffer,
                "group" => Reference::Workgroup,
                _ => return Err(self.unexpected_token("`global`, `group` or the name of a location")),
            };
            self.next();
        }
        let token = self.parse_location_name()?;
        let name = self.token_text(token).to_owned();
        self.expect(TokenKind::Equal, "`=` and a number")?;
        let init = LocationInit::Constant(self.parse_hsa_constant()?);
        let existing = self.find_location(&name);
        if existing.is_some_and(|known| self.test.location(known).declared) {
            return Err(ParseError::DuplicateLocation { name, span: token.span });
        }
        let span = self.span_since(start.span);
        let location = Location { reference: Some(reference), init, span, ..Location::new(name) };
        match existing {
            // Recorded earlier by error recovery.
            Some(known) => self.test.locations[usize::from(known.0)] = location,
            None => {
                self.add_location(location)?;
            }
        }
        Ok(())
    }

    /// Parses a signed or unsigned 32-bit number.
    pub(super) fn parse_hsa_constant(&mut self) -> Parsed<i64> {
        let start = self.position;
        let value = self.parse_constant()?;
        if (i64::from(i32::MIN)..=i64::from(u32::MAX)).contains(&value) {
            return Ok(value);
        }
        Err(self.number_too_large(self.tokens.get(start).copied().unwrap_or(self.previous_token()), 32))
    }

    /// Parses `P0@wave 0, wg 0, agent 0`.
    pub(super) fn parse_hsa_thread_header(&mut self) -> Parsed<(u32, ThreadPlace)> {
        let (number, _) = self.parse_thread_number()?;
        self.expect(TokenKind::At, "`@` and where the work-item runs")?;
        let subgroup = self.parse_coordinate("wave", "`wave` and a number")?;
        self.expect(TokenKind::Comma, "`,` and `wg`")?;
        let workgroup = self.parse_coordinate("wg", "`wg` and a number")?;
        self.expect(TokenKind::Comma, "`,` and `agent`")?;
        let queue_family = self.parse_coordinate("agent", "`agent` and a number")?;
        Ok((number, ThreadPlace::Device(Placement { queue_family, queue: 0, workgroup, subgroup })))
    }

    /// Error recovery: records the registers and labels of an unparsable cell, so that one error is not
    /// reported again at each use.
    pub(super) fn recover_hsa_names(&mut self, thread: ThreadId) {
        while self.peek().kind != TokenKind::End {
            let token = self.next();
            let label = self.peek();
            // Names beyond a limit are not recorded; the limit itself is reported where it is exceeded.
            if token.kind == TokenKind::Word && is_value_register(self.token_text(token)) {
                self.use_register(thread, token).ok();
            } else if token.kind == TokenKind::At
                && label.kind == TokenKind::Word
                && let Ok(label) = self.use_label(thread, label)
            {
                self.recovered_labels.push((thread, label));
            }
        }
    }
}
