//! Instructions and placements of PTX.

use super::{Access, BUFFER, Order, Parsed, Parser, Scope, ThreadId, TokenKind, semantics_of};
use crate::error::ParseError;
use crate::syntax::words::{self, is_label, lookup};
use crate::test::{ControlBarrier, InstructionKind, Placement, RmwOperation, ThreadPlace};

/// Orders, and true for sequential consistency.
const ORDERS: words::Words<(Order, bool)> = &[
    ("relaxed", (Order::Relaxed, false)),
    ("acquire", (Order::Acquire, false)),
    ("release", (Order::Release, false)),
    ("acq_rel", (Order::AcquireRelease, false)),
    ("sc", (Order::AcquireRelease, true)),
];

/// Other words after the dots. 32-bit types and the memory that all tests use change nothing.
const MODIFIERS: [&str; 12] =
    ["weak", "cta", "gpu", "sys", "exch", "cas", "plus", "u32", "s32", "b32", "global", "sync"];

impl Parser<'_> {
    /// Parses `P0@cta 0, gpu 0`.
    pub(in crate::syntax) fn parse_ptx_thread_header(&mut self) -> Parsed<(u32, ThreadPlace)> {
        let (number, _) = self.parse_thread_number()?;
        self.expect(TokenKind::At, "`@` and where the thread runs")?;
        let workgroup = self.parse_coordinate("cta", "`cta` and a number")?;
        self.expect(TokenKind::Comma, "`,` and `gpu`")?;
        let queue_family = self.parse_coordinate("gpu", "`gpu` and a number")?;
        // PTX has no scope below the CTA.
        Ok((number, ThreadPlace::Device(Placement { queue_family, queue: 0, workgroup, subgroup: number })))
    }

    /// Parses the next instruction into `thread`; false if it is one that the native dialect writes alike.
    pub(in crate::syntax) fn parse_ptx_instruction(&mut self, thread: ThreadId) -> Parsed<bool> {
        let (start, first) = (self.position, self.peek());
        let word = self.token_text(first);
        let is_operation = |word: &str| lookup(words::OPERATIONS, word).is_some();
        if is_label(word) || word == "goto" || is_operation(word) || lookup(words::BRANCHES, word).is_some() {
            return Ok(false);
        }
        let any_order = [Order::Relaxed, Order::Acquire, Order::Release, Order::AcquireRelease];
        let (orders, expected) = match word {
            "ld" => (&[Order::Relaxed, Order::Acquire][..], "`.weak`, `.relaxed` or `.acquire`"),
            "st" => (&[Order::Relaxed, Order::Release][..], "`.weak`, `.relaxed` or `.release`"),
            "atom" | "red" => (&any_order[..], "`.relaxed`, `.acquire`, `.release` or `.acq_rel`"),
            "fence" => (&any_order[1..], "`.acquire`, `.release`, `.acq_rel` or `.sc`"),
            "bar" | "barrier" => (&any_order[..1], "`.sync`"),
            _ => {
                return Err(
                    self.unexpected_token("`ld`, `st`, `atom`, `red`, `fence`, `bar`, arithmetic or a jump")
                );
            }
        };
        self.next();
        let mut modifiers = Vec::new();
        while self.accept(TokenKind::Dot) {
            let word = self.token_text(self.peek());
            if lookup(ORDERS, word).is_none() && !is_operation(word) && !MODIFIERS.contains(&word) {
                return Err(self.unexpected_token("an order, a scope, an operation or a type of 32 bits"));
            }
            modifiers.push(word);
            self.next();
        }
        let span = self.span_since(first.span);
        let refuse = |parser: &Self, expected| {
            let found = format!(
                "`{}`",
                parser
                    .text
                    .get(first.span.offset as usize..(span.offset + span.length) as usize)
                    .unwrap_or(word)
            );
            Err(ParseError::Unexpected { found, expected, span })
        };
        let has = |word| modifiers.contains(&word);
        let given = modifiers.iter().find_map(|word| lookup(ORDERS, word));
        let (is_plain, is_barrier) = (matches!(word, "ld" | "st"), matches!(word, "bar" | "barrier"));
        let is_weak = is_plain && given.is_none();
        let (order, sequential) = given.unwrap_or((Order::Relaxed, false));
        let is_allowed =
            orders.contains(&order) && (!sequential || word == "fence") && (is_plain || !has("weak"));
        if !is_allowed || has("weak") && given.is_some() {
            return refuse(self, expected);
        }
        let scope = match self.ptx_scope(&modifiers) {
            Some(scope) => scope,
            None if is_weak || is_barrier || word == "atom" || word == "red" => {
                self.ptx_scope(&["gpu"]).unwrap_or(Scope::Device)
            }
            None => return refuse(self, "a scope: `.cta`, `.gpu` or `.sys`"),
        };
        let semantics = semantics_of(order, sequential, BUFFER);
        let strength = if is_weak { Access::NonPrivate } else { Access::Atomic { scope, semantics } };
        let kind = match word {
            "ld" => {
                let register = self.expect_register()?;
                let destination = self.use_register(thread, register)?;
                self.expect_comma()?;
                InstructionKind::load(destination, self.parse_foreign_location()?, strength)
            }
            "st" => {
                let place = self.parse_foreign_location()?;
                self.expect_comma()?;
                InstructionKind::store(place, self.parse_operand(thread)?, strength)
            }
            "fence" => InstructionKind::Fence { scope, semantics },
            "atom" | "red" => {
                let destination = if word == "red" {
                    self.add_temporary(thread)
                } else {
                    let register = self.expect_register()?;
                    self.expect_comma()?;
                    self.use_register(thread, register)?
                };
                let place = self.parse_foreign_location()?;
                self.expect_comma()?;
                let value = self.parse_operand(thread)?;
                let operation = modifiers.iter().find_map(|word| lookup(words::OPERATIONS, word));
                let operation =
                    match operation.or(has("plus").then_some(crate::test::ArithmeticOperation::Add)) {
                        Some(operation) => RmwOperation::Fetch(operation, value),
                        None if has("exch") => RmwOperation::Exchange(value),
                        None if has("cas") => {
                            self.expect_comma()?;
                            let unequal = if order.acquires() {
                                semantics.to_unequal_acquire()
                            } else {
                                semantics_of(Order::Relaxed, false, BUFFER)
                            };
                            RmwOperation::CompareExchange {
                                compare: value,
                                value: self.parse_operand(thread)?,
                                unequal,
                            }
                        }
                        None => return refuse(self, "an operation such as `.add`, `.exch` or `.cas`"),
                    };
                InstructionKind::rmw(destination, place, operation, scope, semantics)
            }
            _ => InstructionKind::ControlBarrier(ControlBarrier {
                execution_scope: Scope::Workgroup,
                memory_scope: Scope::Workgroup,
                semantics: Some(semantics_of(Order::AcquireRelease, false, BUFFER)),
                id: self.parse_barrier_name()?,
                resource: None,
                quorum: None,
            }),
        };
        self.emit(thread, start, kind);
        Ok(true)
    }

    /// Returns the scope among the words. Several GPUs are queue families.
    fn ptx_scope(&self, modifiers: &[&str]) -> Option<Scope> {
        let gpu =
            |thread: &crate::test::Thread| thread.place.device_placement().map(|place| place.queue_family);
        let is_single = self.test.threads.iter().all(|thread| gpu(thread) == gpu(&self.test.threads[0]));
        modifiers.iter().find_map(|word| match *word {
            "cta" => Some(Scope::Workgroup),
            "gpu" if !is_single => Some(Scope::QueueFamily),
            "gpu" | "sys" => Some(Scope::Device),
            _ => None,
        })
    }
}
