//! Parses one cell of the table: an instruction or a label.

use super::mnemonic::{AccessParts, Mnemonic, OrderChoice};
use super::{OPERATIONS, RELATIONS, is_condition_register, is_value_register, segment_keyword};
use crate::error::ParseError;
use crate::syntax::lexer::{Token, TokenKind};
use crate::syntax::parser::{Parsed, Parser};
use crate::syntax::words::lookup;
use crate::test::{
    AccessKind, Components, Compute, Flow, Instruction, InstructionKind, MemoryPlace, Operand, Order,
    RegisterId, RmwOperation, ThreadId,
};

const LOAD_ORDERS: OrderChoice = (&[Order::Relaxed, Order::Acquire], "`rlx` or `scacq`");
const STORE_ORDERS: OrderChoice = (&[Order::Relaxed, Order::Release], "`rlx` or `screl`");
const RMW_ORDERS: OrderChoice = (
    &[Order::Relaxed, Order::Acquire, Order::Release, Order::AcquireRelease],
    "`rlx`, `scacq`, `screl` or `scar`",
);
const FENCE_ORDERS: OrderChoice =
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
                let parts = mnemonic.take_plain()?;
                self.parse_hsa_load(thread, parts)
            }
            "st" => {
                let parts = mnemonic.take_plain()?;
                self.parse_hsa_store(thread, parts)
            }
            "atomic" => self.parse_atomic(thread, &mut mnemonic, true),
            "atomicnoret" => self.parse_atomic(thread, &mut mnemonic, false),
            "memfence" => {
                let semantics = mnemonic.take_order(FENCE_ORDERS)?;
                let scope = mnemonic.take_scope()?;
                mnemonic.expect_end()?;
                Ok(InstructionKind::Fence { scope, semantics })
            }
            "await" => {
                mnemonic.take_word("atomic", "`atomic_ld`")?;
                mnemonic.take_word("ld", "`ld`")?;
                let parts = mnemonic.take_atomic(LOAD_ORDERS)?;
                let destination = self.parse_destination(thread)?;
                let place = self.parse_address(thread, &parts)?;
                self.expect_hsa_comma()?;
                let value = self.parse_hsa_operand(thread)?;
                Ok(parts.to_instruction(place, AccessKind::Await { destination, value }))
            }
            "mov" => {
                mnemonic.end_with_type()?;
                let destination = self.parse_destination(thread)?;
                let value = self.parse_hsa_operand(thread)?;
                Ok(InstructionKind::Compute(Compute::Move { destination, value }))
            }
            "cmp" => {
                let expected = "`eq`, `ne`, `lt`, `le`, `gt` or `ge`";
                let relation = mnemonic.one_of(RELATIONS, "relation", expected)?;
                mnemonic.take_word("b1", "`b1_u32`")?;
                mnemonic.take_word("u32", "`u32`")?;
                mnemonic.expect_end()?;
                let destination = self.parse_condition_register(thread)?;
                self.expect_hsa_comma()?;
                let (left, right) = self.parse_two_operands(thread)?;
                Ok(InstructionKind::Compute(Compute::Compare { destination, relation, left, right }))
            }
            "cbr" => {
                mnemonic.take_word("b1", "`b1`")?;
                mnemonic.expect_end()?;
                let condition = self.parse_condition_register(thread)?;
                self.expect_hsa_comma()?;
                let token = self.expect_label()?;
                let target = self.use_label(thread, token)?;
                Ok(InstructionKind::Flow(Flow::BranchIf { condition, target }))
            }
            part => {
                let Some(operation) = lookup(OPERATIONS, part) else {
                    let word = word.chars().take(60).collect();
                    return Err(ParseError::UnknownMnemonic { word, span: start.span });
                };
                mnemonic.end_with_type()?;
                let destination = self.parse_destination(thread)?;
                let (left, right) = self.parse_two_operands(thread)?;
                Ok(InstructionKind::Compute(Compute::Arithmetic { destination, operation, left, right }))
            }
        }
    }

    /// Parses the operands of a load.
    fn parse_hsa_load(&mut self, thread: ThreadId, parts: AccessParts) -> Parsed<InstructionKind> {
        let destination = self.parse_destination(thread)?;
        let place = self.parse_address(thread, &parts)?;
        Ok(parts.to_instruction(place, AccessKind::Load(Components::scalar(destination))))
    }

    /// Parses the operands of a store.
    fn parse_hsa_store(&mut self, thread: ThreadId, parts: AccessParts) -> Parsed<InstructionKind> {
        let value = self.parse_hsa_operand(thread)?;
        self.expect_hsa_comma()?;
        let place = self.parse_address(thread, &parts)?;
        Ok(parts.to_instruction(place, AccessKind::Store(Components::scalar(value))))
    }

    /// Parses the part after `atomic_`, or after `atomicnoret_` without a result.
    fn parse_atomic(
        &mut self,
        thread: ThreadId,
        mnemonic: &mut Mnemonic<'_>,
        has_result: bool,
    ) -> Parsed<InstructionKind> {
        match mnemonic.peek() {
            "ld" if has_result => {
                mnemonic.take_part();
                let parts = mnemonic.take_atomic(LOAD_ORDERS)?;
                self.parse_hsa_load(thread, parts)
            }
            "st" if has_result => {
                mnemonic.take_part();
                let parts = mnemonic.take_atomic(STORE_ORDERS)?;
                self.parse_hsa_store(thread, parts)
            }
            word => {
                let is_store = word == "st";
                if is_store {
                    mnemonic.take_part();
                }
                let operation = if is_store { None } else { mnemonic.take_operation(has_result)? };
                let parts = mnemonic.take_atomic(if is_store { STORE_ORDERS } else { RMW_ORDERS })?;
                let destination = if has_result { Some(self.parse_destination(thread)?) } else { None };
                let place = self.parse_address(thread, &parts)?;
                self.expect_hsa_comma()?;
                let operand = self.parse_hsa_operand(thread)?;
                let kind = match operation {
                    _ if is_store => AccessKind::Store(Components::scalar(operand)),
                    Some(operation) => {
                        AccessKind::Rmw { destination, operation: RmwOperation::Fetch(operation, operand) }
                    }
                    None => AccessKind::Rmw { destination, operation: RmwOperation::Exchange(operand) },
                };
                Ok(parts.to_instruction(place, kind))
            }
        }
    }

    // Operands.

    fn expect_hsa_comma(&mut self) -> Parsed<()> {
        self.expect(TokenKind::Comma, "`,` and the next operand").map(|_| ())
    }

    /// Parses `$s0`.
    fn parse_value_register(&mut self, thread: ThreadId) -> Parsed<RegisterId> {
        self.parse_hsa_register(thread, is_value_register, "a register such as `$s0`")
    }

    /// Parses a register that is assigned, and the comma after it.
    fn parse_destination(&mut self, thread: ThreadId) -> Parsed<RegisterId> {
        let register = self.parse_value_register(thread)?;
        self.expect_hsa_comma()?;
        Ok(register)
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

    fn parse_two_operands(&mut self, thread: ThreadId) -> Parsed<(Operand, Operand)> {
        let left = self.parse_hsa_operand(thread)?;
        self.expect_hsa_comma()?;
        Ok((left, self.parse_hsa_operand(thread)?))
    }

    /// Parses `[x]` or `[x + $s3]`; x must be in the segment that the instruction names.
    fn parse_address(&mut self, thread: ThreadId, parts: &AccessParts) -> Parsed<MemoryPlace> {
        let AccessParts { class, segment, .. } = *parts;
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
                span: segment,
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
}
