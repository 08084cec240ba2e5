//! Parses one cell of the table: an instruction or a label.

use super::mnemonic::{AtomicParts, Mnemonic};
use super::{OPERATIONS, RELATIONS, is_condition_register, is_value_register, segment_keyword};
use crate::error::ParseError;
use crate::span::Span;
use crate::syntax::lexer::{Token, TokenKind};
use crate::syntax::parser::{Parsed, Parser};
use crate::syntax::words::lookup;
use crate::test::{
    Access, AccessKind, Compute, Flow, Instruction, InstructionKind, LabelId, MemoryAccess, MemoryPlace,
    Operand, Order, Performer, RegisterId, RmwOperation, StorageClass, ThreadId,
};

const LOAD_ORDERS: (&[Order], &str) = (&[Order::Relaxed, Order::Acquire], "`rlx` or `scacq`");
const STORE_ORDERS: (&[Order], &str) = (&[Order::Relaxed, Order::Release], "`rlx` or `screl`");
const RMW_ORDERS: (&[Order], &str) = (
    &[Order::Relaxed, Order::Acquire, Order::Release, Order::AcquireRelease],
    "`rlx`, `scacq`, `screl` or `scar`",
);
const FENCE_ORDERS: (&[Order], &str) =
    (&[Order::Acquire, Order::Release, Order::AcquireRelease], "`scacq`, `screl` or `scar`");

impl Parser<'_> {
    /// Parses the next instruction or label into `thread`.
    pub(in crate::syntax) fn parse_hsa_instruction(&mut self, thread: ThreadId) -> Parsed<()> {
        let start = self.peek();
        let kind = if start.kind == TokenKind::At {
            let token = self.expect_label()?;
            let label = self.place_label(thread, token)?;
            self.expect(TokenKind::Colon, "`:` after a label")?;
            InstructionKind::Flow(Flow::Label(label))
        } else {
            if start.kind != TokenKind::Word {
                return Err(self.unexpected_token("an instruction, or a label such as `@skip:`"));
            }
            if !self.count_instruction(start.span) {
                self.recover_remaining_names(thread);
                return Ok(());
            }
            self.next();
            self.parse_hsa_instruction_kind(thread, start)?
        };
        let span = self.span_since(start.span);
        self.test.threads[usize::from(thread.0)].instructions.push(Instruction { kind, span });
        Ok(())
    }

    fn parse_hsa_instruction_kind(&mut self, thread: ThreadId, start: Token) -> Parsed<InstructionKind> {
        let word = self.token_text(start);
        let mut mnemonic = Mnemonic::new(word, start.span);
        match mnemonic.take_part() {
            "ld" => {
                let (class, place) = mnemonic.take_segment()?;
                mnemonic.end_with_type()?;
                let destination = self.parse_value_register(thread)?;
                self.expect_hsa_comma()?;
                let place = self.parse_address(thread, class, place)?;
                Ok(InstructionKind::load(destination, place, Access::Private))
            }
            "st" => {
                let (class, place) = mnemonic.take_segment()?;
                mnemonic.end_with_type()?;
                let value = self.parse_hsa_operand(thread)?;
                self.expect_hsa_comma()?;
                let place = self.parse_address(thread, class, place)?;
                Ok(InstructionKind::store(place, value, Access::Private))
            }
            "atomic" => self.parse_atomic(thread, &mut mnemonic),
            "atomicnoret" => self.parse_atomic_without_result(thread, &mut mnemonic),
            "memfence" => {
                let semantics = mnemonic.take_order(FENCE_ORDERS.0, FENCE_ORDERS.1)?;
                let scope = mnemonic.take_scope()?;
                mnemonic.expect_end()?;
                Ok(InstructionKind::Fence { scope, semantics })
            }
            "await" => {
                mnemonic.take_word("atomic", "`atomic_ld`")?;
                mnemonic.take_word("ld", "`ld`")?;
                let parts = mnemonic.take_atomic(LOAD_ORDERS.0, LOAD_ORDERS.1)?;
                let destination = self.parse_value_register(thread)?;
                self.expect_hsa_comma()?;
                let place = self.parse_address(thread, parts.class, parts.segment)?;
                self.expect_hsa_comma()?;
                let value = self.parse_hsa_operand(thread)?;
                Ok(InstructionKind::Access(MemoryAccess {
                    place,
                    kind: AccessKind::Await { destination, value },
                    strength: parts.access_strength(),
                    performer: Performer::Invocation,
                }))
            }
            "mov" => {
                mnemonic.end_with_type()?;
                let destination = self.parse_value_register(thread)?;
                self.expect_hsa_comma()?;
                Ok(InstructionKind::Compute(Compute::Move {
                    destination,
                    value: self.parse_hsa_operand(thread)?,
                }))
            }
            "cmp" => {
                let Some(relation) = lookup(RELATIONS, mnemonic.peek()) else {
                    return Err(mnemonic.unexpected_part("relation", "`eq`, `ne`, `lt`, `le`, `gt` or `ge`"));
                };
                mnemonic.take_part();
                mnemonic.take_word("b1", "`b1_u32`")?;
                mnemonic.take_word("u32", "`u32`")?;
                mnemonic.expect_end()?;
                let destination = self.parse_condition_register(thread)?;
                self.expect_hsa_comma()?;
                let left = self.parse_hsa_operand(thread)?;
                self.expect_hsa_comma()?;
                let right = self.parse_hsa_operand(thread)?;
                Ok(InstructionKind::Compute(Compute::Compare { destination, relation, left, right }))
            }
            "cbr" => {
                mnemonic.take_word("b1", "`b1`")?;
                mnemonic.expect_end()?;
                let condition = self.parse_condition_register(thread)?;
                self.expect_hsa_comma()?;
                Ok(InstructionKind::Flow(Flow::BranchIf {
                    condition,
                    target: self.parse_branch_target(thread)?,
                }))
            }
            part => {
                let Some(operation) = lookup(OPERATIONS, part) else {
                    let word = word.chars().take(60).collect();
                    return Err(ParseError::UnknownMnemonic { word, span: start.span });
                };
                mnemonic.end_with_type()?;
                let destination = self.parse_value_register(thread)?;
                self.expect_hsa_comma()?;
                let left = self.parse_hsa_operand(thread)?;
                self.expect_hsa_comma()?;
                let right = self.parse_hsa_operand(thread)?;
                Ok(InstructionKind::Compute(Compute::Arithmetic { destination, operation, left, right }))
            }
        }
    }

    /// Parses the part after `atomic_`.
    fn parse_atomic(&mut self, thread: ThreadId, mnemonic: &mut Mnemonic<'_>) -> Parsed<InstructionKind> {
        match mnemonic.peek() {
            "ld" => {
                mnemonic.take_part();
                let parts = mnemonic.take_atomic(LOAD_ORDERS.0, LOAD_ORDERS.1)?;
                let destination = self.parse_value_register(thread)?;
                self.expect_hsa_comma()?;
                let place = self.parse_address(thread, parts.class, parts.segment)?;
                Ok(InstructionKind::load(destination, place, parts.access_strength()))
            }
            "st" => {
                mnemonic.take_part();
                let parts = mnemonic.take_atomic(STORE_ORDERS.0, STORE_ORDERS.1)?;
                let value = self.parse_hsa_operand(thread)?;
                self.expect_hsa_comma()?;
                let place = self.parse_address(thread, parts.class, parts.segment)?;
                Ok(InstructionKind::store(place, value, parts.access_strength()))
            }
            _ => {
                let operation = mnemonic.take_operation(true)?;
                let parts = mnemonic.take_atomic(RMW_ORDERS.0, RMW_ORDERS.1)?;
                let destination = self.parse_value_register(thread)?;
                self.expect_hsa_comma()?;
                let place = self.parse_address(thread, parts.class, parts.segment)?;
                self.expect_hsa_comma()?;
                let operand = self.parse_hsa_operand(thread)?;
                let operation = match operation {
                    Some(operation) => RmwOperation::Fetch(operation, operand),
                    None => RmwOperation::Exchange(operand),
                };
                Ok(InstructionKind::rmw(destination, place, operation, parts.scope, parts.semantics))
            }
        }
    }

    /// Parses the part after `atomicnoret_`.
    fn parse_atomic_without_result(
        &mut self,
        thread: ThreadId,
        mnemonic: &mut Mnemonic<'_>,
    ) -> Parsed<InstructionKind> {
        let is_store = mnemonic.peek() == "st";
        let operation = if is_store {
            mnemonic.take_part();
            None
        } else {
            mnemonic.take_operation(false)?
        };
        let orders = if is_store { STORE_ORDERS } else { RMW_ORDERS };
        let parts = mnemonic.take_atomic(orders.0, orders.1)?;
        let place = self.parse_address(thread, parts.class, parts.segment)?;
        self.expect_hsa_comma()?;
        let operand = self.parse_hsa_operand(thread)?;
        let AtomicParts { scope, semantics, .. } = parts;
        Ok(match operation {
            Some(operation) => {
                let operation = RmwOperation::Fetch(operation, operand);
                InstructionKind::Access(MemoryAccess::rmw(None, place, operation, scope, semantics))
            }
            None => InstructionKind::store(place, operand, Access::Atomic { scope, semantics }),
        })
    }

    // Operands.

    fn expect_hsa_comma(&mut self) -> Parsed<()> {
        self.expect(TokenKind::Comma, "`,` and the next operand").map(|_| ())
    }

    /// Parses `$s0`.
    fn parse_value_register(&mut self, thread: ThreadId) -> Parsed<RegisterId> {
        self.parse_hsa_register(thread, is_value_register, "a register such as `$s0`")
    }

    /// Parses `$c0`.
    fn parse_condition_register(&mut self, thread: ThreadId) -> Parsed<RegisterId> {
        self.parse_hsa_register(thread, is_condition_register, "a register such as `$c0`")
    }

    fn parse_hsa_register(
        &mut self,
        thread: ThreadId,
        member: impl Fn(&str) -> bool,
        expected: &'static str,
    ) -> Parsed<RegisterId> {
        let token = self.peek();
        if token.kind != TokenKind::Word || !member(self.token_text(token)) {
            return Err(self.unexpected_token(expected));
        }
        self.next();
        self.use_register(thread, token)
    }

    /// Parses a register or a number.
    fn parse_hsa_operand(&mut self, thread: ThreadId) -> Parsed<Operand> {
        if self.at_constant() {
            return Ok(Operand::Constant(self.parse_hsa_constant()?));
        }
        let register =
            self.parse_hsa_register(thread, is_value_register, "a number or a register such as `$s0`")?;
        Ok(Operand::Register(register))
    }

    /// Parses `[x]` or `[x + $s3]`; x must be in the segment that the instruction names at `place`.
    fn parse_address(&mut self, thread: ThreadId, class: StorageClass, place: Span) -> Parsed<MemoryPlace> {
        self.expect(TokenKind::OpenBracket, "`[` and a location")?;
        let token = self.parse_location_name()?;
        let name = self.token_text(token);
        let Some(location) = self.find_location(name) else {
            return Err(ParseError::UndeclaredLocation { name: name.to_owned(), span: token.span });
        };
        // Names recorded by error recovery have no segment.
        if let Some(reference) = self.test.location(location).reference
            && reference.storage_class() != class
        {
            return Err(ParseError::SegmentMismatch {
                segment: segment_keyword(class),
                name: name.to_owned(),
                declared: segment_keyword(reference.storage_class()),
                span: place,
            });
        }
        let address =
            if self.accept(TokenKind::Plus) { Some(self.parse_value_register(thread)?) } else { None };
        self.expect(TokenKind::CloseBracket, "`]`, or `+` and a register")?;
        Ok(MemoryPlace { address, ..MemoryPlace::whole_location(location, class) })
    }

    /// Parses the word of `@skip`.
    fn expect_label(&mut self) -> Parsed<Token> {
        self.expect(TokenKind::At, "a label such as `@skip`")?;
        self.expect(TokenKind::Word, "the name of a label after `@`")
    }

    fn parse_branch_target(&mut self, thread: ThreadId) -> Parsed<LabelId> {
        let token = self.expect_label()?;
        self.use_label(thread, token)
    }
}
