//! Parses one cell of the table: an instruction with its modifiers and operands, or a label.

#![deny(clippy::wildcard_enum_match_arm)]

use super::MAX_INSTRUCTIONS;
use super::declarations::vector_too_wide_error;
use super::lexer::{Token, TokenKind};
use super::parser::{Parsed, Parser};
use super::words::{self, AccessType, is_label, is_modifier, is_register, lookup};
use crate::comparison::Comparison;
use crate::error::ParseError;
use crate::span::Span;
use vocabulary::AccessMask;

use crate::system::{Interlock, InterlockEnd, InterlockOrder, SystemOperation};
use crate::test::{
    Access, ArithmeticOperation, Compute, ControlBarrier, Flow, IgnoredClasses, Instruction, InstructionKind,
    LabelId, LocationId, Operand, Order, Performer, RmwOperation, Scope, Semantics, SplitBarrier, SplitHalf,
    StorageClass, StorageClassSet, ThreadId, ThreadPlace,
};

/// Returns true if a word is in the form of a storage class of semantics, known or not.
fn names_class(word: &str) -> bool {
    word.starts_with("semsc") || words::is_class_of_semantics(word)
}

/// Returns true for `sc` or `semsc` and a number.
fn names_storage_class(word: &str) -> bool {
    word.trim_start_matches("sem").strip_prefix("sc").is_some_and(|rest| rest.parse::<u32>().is_ok())
}

/// An order of an instruction as written.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OrderWord {
    pub order: Order,
    /// True for `.seq_cst`; the order is then the strongest that the instruction can have.
    pub sequential: bool,
}

impl From<Order> for OrderWord {
    fn from(order: Order) -> OrderWord {
        OrderWord { order, sequential: false }
    }
}

/// The threads that an instruction may name.
enum NamableThreads {
    Any,
    Device,
    /// Device threads except these.
    NotYetSubmitted(Vec<ThreadId>),
}

/// The dotted modifiers of an instruction, consumed from left to right.
pub(super) struct Modifiers<'a> {
    list: Vec<(&'a str, Span)>,
    taken: usize,
    /// The position of the mnemonic.
    mnemonic: Span,
}

impl<'a> Modifiers<'a> {
    pub(super) fn peek(&self) -> Option<(&'a str, Span)> {
        self.list.get(self.taken).copied()
    }

    /// Consumes the next modifier if it is `word`.
    pub(super) fn take_word(&mut self, word: &str) -> Option<Span> {
        let (found, span) = self.peek()?;
        (found == word).then(|| {
            self.taken += 1;
            span
        })
    }

    /// Consumes the next modifier if it is one of `words`.
    pub(super) fn take_one_of<T: Copy>(&mut self, words: words::Words<T>) -> Option<T> {
        let meaning = lookup(words, self.peek()?.0)?;
        self.taken += 1;
        Some(meaning)
    }

    /// Returns the position of the last consumed word.
    pub(super) fn last_span(&self) -> Span {
        self.taken
            .checked_sub(1)
            .and_then(|index| self.list.get(index))
            .map_or(self.mnemonic, |(_, span)| *span)
    }

    /// Parses a required scope.
    pub(super) fn parse_scope(&mut self) -> Parsed<Scope> {
        if let Some(scope) = self.take_one_of(words::SCOPES) {
            return Ok(scope);
        }
        match self.peek() {
            Some((word, span)) if !is_modifier(word) => {
                Err(ParseError::UnknownScope { word: word.to_owned(), span })
            }
            _ => Err(ParseError::MissingScope { span: self.last_span() }),
        }
    }

    /// Parses an optional execution scope; workgroup by default.
    fn parse_execution_scope(&mut self) -> Parsed<Scope> {
        if let Some(scope) = self.take_one_of(words::EXECUTION_SCOPES) {
            return Ok(scope);
        }
        match self.peek() {
            Some((word, span)) if word.starts_with("exec") => {
                Err(ParseError::UnknownExecutionScope { word: word.to_owned(), span })
            }
            _ => Ok(Scope::Workgroup),
        }
    }

    /// Parses a required storage class.
    pub(super) fn parse_class(&mut self) -> Parsed<(StorageClass, Span)> {
        if let Some(class) = self.take_one_of(words::CLASSES) {
            return Ok((class, self.last_span()));
        }
        match self.peek() {
            Some((word, span)) if word.starts_with("sc") => {
                Err(ParseError::UnknownStorageClass { word: word.to_owned(), span })
            }
            Some((word, span)) if !is_modifier(word) => {
                let expected = "`.sc0`, `.sc1`, `.sc2` or `.sc3`";
                Err(ParseError::UnknownModifier { word: word.to_owned(), expected, span })
            }
            _ => Err(ParseError::MissingStorageClass { span: self.last_span() }),
        }
    }

    /// Parses an optional order; relaxed without one.
    pub(super) fn parse_order(&mut self, strongest: Order) -> OrderWord {
        if self.take_word(words::SEQUENTIAL).is_some() {
            return OrderWord { order: strongest, sequential: true };
        }
        OrderWord::from(self.take_one_of(words::ORDERS).unwrap_or_default())
    }

    /// Parses `semsc+ [semav] [semvis]` after an order; nothing without one.
    pub(super) fn parse_semantics(&mut self, order: OrderWord, orders: &'static str) -> Parsed<Semantics> {
        let OrderWord { order, sequential } = order;
        if order == Order::Relaxed {
            return match self.peek() {
                Some((word, span)) if word.starts_with("sem") => {
                    Err(ParseError::SemanticsWithoutOrder { word: word.to_owned(), orders, span })
                }
                _ => Ok(Semantics::RELAXED),
            };
        }
        let (mut classes, mut ignored) = (StorageClassSet::EMPTY, IgnoredClasses::NONE);
        loop {
            if let Some(class) = self.take_one_of(words::SEMANTICS_CLASSES) {
                classes = classes.with(class);
            } else if let Some(class) = self.take_one_of(words::IGNORED_CLASSES) {
                ignored = ignored.with(class);
            } else {
                break;
            }
        }
        if let Some((word, span)) = self.peek()
            && word.starts_with("semsc")
        {
            return Err(ParseError::UnknownStorageClass { word: word.to_owned(), span });
        }
        if classes == StorageClassSet::EMPTY && ignored == IgnoredClasses::NONE {
            let rest = self.list.get(self.taken + 1..).unwrap_or_default();
            if let Some((word, span)) = self.peek()
                && rest.iter().any(|(word, _)| word.starts_with("semsc"))
            {
                let expected = "storage classes of the semantics";
                return Err(ParseError::MisplacedModifier { word: word.to_owned(), expected, span });
            }
            return Err(ParseError::MissingSemantics { span: self.last_span() });
        }
        let available = self.take_word("semav");
        if let Some(span) = available
            && !order.releases()
        {
            return Err(ParseError::AvailableWithoutRelease { span });
        }
        let visible = self.take_word("semvis");
        if let Some(span) = visible
            && !order.acquires()
        {
            return Err(ParseError::VisibleWithoutAcquire { span });
        }
        let (make_available, make_visible) = (available.is_some(), visible.is_some());
        Ok(Semantics { order, classes, ignored, make_available, make_visible, sequential })
    }

    /// Parses an optional type of the access.
    pub(super) fn parse_access_type(&mut self) -> Parsed<Option<AccessType>> {
        let Some((word, span)) = self.peek() else { return Ok(None) };
        let Some(found) = AccessType::from_word(word) else { return Ok(None) };
        if found.is_too_wide() {
            return Err(vector_too_wide_error(word, found, span));
        }
        self.taken += 1;
        Ok(Some(found))
    }

    /// Checks that no modifiers are left.
    pub(super) fn expect_end(&self, expected: &'static str) -> Parsed<()> {
        match self.peek() {
            None => Ok(()),
            Some((word, span)) if is_modifier(word) => {
                Err(ParseError::MisplacedModifier { word: word.to_owned(), expected, span })
            }
            Some((word, span)) => Err(ParseError::UnknownModifier { word: word.to_owned(), expected, span }),
        }
    }
}

impl<'a> Parser<'a> {
    /// Parses the next instruction into `thread`.
    pub(super) fn parse_instruction(&mut self, thread: ThreadId) -> Parsed<()> {
        if self.is_hsa() {
            return self.parse_hsa_instruction(thread);
        }
        if self.foreign.is_some() && self.parse_ptx_instruction(thread)? {
            return Ok(());
        }
        let start = self.peek();
        if start.kind != TokenKind::Word {
            return Err(self.unexpected_token("an instruction"));
        }
        let word = self.token_text(start);
        self.next();
        let kind = if is_label(word) {
            let label = self.place_label(thread, start)?;
            self.expect(TokenKind::Colon, "`:` after a label")?;
            InstructionKind::Flow(Flow::Label(label))
        } else {
            if !self.count_instruction(start.span) {
                self.recover_remaining_names(thread);
                return Ok(());
            }
            if self.begins_call(word) {
                return self.parse_call(thread, start);
            }
            let mut modifiers = self.parse_modifiers(start)?;
            let kind = self.parse_instruction_kind(thread, start, &mut modifiers)?;
            self.check_place(thread, &kind, start.span)?;
            kind
        };
        let span = self.span_since(start.span);
        self.test.threads[usize::from(thread.0)].instructions.push(Instruction { kind, span });
        Ok(())
    }

    /// Counts one more instruction; returns false if the limit is exceeded. Labels do not count.
    pub(super) fn count_instruction(&mut self, span: Span) -> bool {
        if self.instruction_count < MAX_INSTRUCTIONS {
            self.instruction_count += 1;
            return true;
        }
        // Report it only once.
        if self.instruction_count == MAX_INSTRUCTIONS {
            self.instruction_count += 1;
            let (what, limit) = ("instructions besides labels", MAX_INSTRUCTIONS);
            self.errors.push(ParseError::TooMany { what, limit, span });
        }
        false
    }

    fn parse_modifiers(&mut self, mnemonic: Token) -> Parsed<Modifiers<'a>> {
        let mut list = Vec::new();
        while self.accept(TokenKind::Dot) {
            let token = self.expect(TokenKind::Word, "a modifier after `.`")?;
            list.push((self.token_text(token), token.span));
        }
        if matches!(self.token_text(mnemonic), "ld" | "st" | "rmw" | "membar" | "cbar") {
            // Words in the form of a storage class have their own error.
            let unknown = list.iter().find(|(word, _)| !is_modifier(word) && !names_storage_class(word));
            if let Some((word, span)) = unknown
                && let Some(similar) = words::similar_modifier(word)
            {
                return Err(ParseError::MisspeltModifier { word: (*word).to_owned(), similar, span: *span });
            }
        }
        // The words after `.uneq_acq` belong to it, except the type, which ends all modifiers.
        let unequal =
            list.split_off(list.iter().position(|(word, _)| *word == "uneq_acq").unwrap_or(list.len()));
        let ranks: Option<Vec<usize>> = list.iter().map(|(word, _)| words::modifier_rank(word)).collect();
        // Modifiers may be written in any order; distinct ones are sorted into the order of the language.
        if let Some(ranks) = ranks
            && (1..list.len()).all(|index| list[..index].iter().all(|(word, _)| *word != list[index].0))
        {
            let mut placed: Vec<_> = ranks.into_iter().zip(list).collect();
            placed.sort_by_key(|(rank, _)| *rank);
            list = placed.into_iter().map(|(_, modifier)| modifier).collect();
        }
        let ty = list.pop_if(|(word, _)| !unequal.is_empty() && AccessType::from_word(word).is_some());
        list.extend(unequal);
        list.extend(ty);
        Ok(Modifiers { list, taken: 0, mnemonic: mnemonic.span })
    }

    fn parse_instruction_kind(
        &mut self,
        thread: ThreadId,
        start: Token,
        modifiers: &mut Modifiers<'a>,
    ) -> Parsed<InstructionKind> {
        let word = self.token_text(start);
        match word {
            "ld" => self.parse_load(thread, modifiers),
            "st" => self.parse_store(thread, modifiers),
            "rmw" => self.parse_rmw(thread, modifiers),
            "membar" => self.parse_fence(modifiers),
            "cbar" => self.parse_control_barrier(modifiers),
            "avdevice" => Ok(match self.parse_access_mask(modifiers)? {
                None => InstructionKind::System(SystemOperation::AvailableToDevice),
                Some(mask) => InstructionKind::System(SystemOperation::Available(mask)),
            }),
            "visdevice" => Ok(match self.parse_access_mask(modifiers)? {
                None => InstructionKind::System(SystemOperation::VisibleFromDevice),
                Some(mask) => InstructionKind::System(SystemOperation::Visible(mask)),
            }),
            "interlock" => self.parse_interlock(modifiers),
            "sg" => self.parse_subgroup_operation(thread, modifiers),
            _ => {
                let kind = match word {
                    "flush" => InstructionKind::System(SystemOperation::Flush(self.parse_ranges()?)),
                    "invalidate" => {
                        InstructionKind::System(SystemOperation::Invalidate(self.parse_ranges()?))
                    }
                    "submit" => InstructionKind::System(SystemOperation::Submit(
                        self.parse_submitted_threads(thread)?,
                    )),
                    "wait" => InstructionKind::System(SystemOperation::Wait(
                        self.parse_threads(thread, NamableThreads::Device)?,
                    )),
                    "call" => InstructionKind::ShaderCall(self.parse_threads(thread, NamableThreads::Any)?),
                    "goto" => {
                        modifiers.expect_end("a label")?;
                        InstructionKind::Flow(Flow::Goto(self.parse_label_operand(thread)?))
                    }
                    _ if lookup(words::OPERATIONS, word).is_some() => {
                        modifiers.expect_end("a register")?;
                        self.parse_arithmetic(thread, word)?
                    }
                    _ if lookup(words::BRANCHES, word).is_some() => {
                        modifiers.expect_end("a value")?;
                        self.parse_branch(thread, word)?
                    }
                    _ => {
                        let word = word.chars().take(40).collect();
                        return Err(ParseError::UnknownInstruction { word, span: start.span });
                    }
                };
                modifiers.expect_end("no modifier")?;
                Ok(kind)
            }
        }
    }

    fn parse_rmw(&mut self, thread: ThreadId, modifiers: &mut Modifiers<'a>) -> Parsed<InstructionKind> {
        if modifiers.take_word("atom").is_none() {
            return Err(ParseError::RmwNotAtomic { span: modifiers.last_span() });
        }
        let order = modifiers.parse_order(Order::AcquireRelease);
        let scope = modifiers.parse_scope()?;
        let (class, place) = modifiers.parse_class()?;
        let semantics = modifiers.parse_semantics(order, "`.acq`, `.rel`, `.acq_rel` or `.seq_cst`")?;
        let compare_exchange = modifiers.take_word("cas").is_some();
        let fetch = if compare_exchange { None } else { modifiers.take_one_of(words::OPERATIONS) };
        let unequal = match modifiers.take_word("uneq_acq") {
            Some(span) if !compare_exchange => {
                let (word, expected) = ("uneq_acq".to_owned(), "`.cas` before it");
                return Err(ParseError::MisplacedModifier { word, expected, span });
            }
            Some(span) if !semantics.order.acquires() => return Err(ParseError::UnequalTooStrong { span }),
            Some(_) if modifiers.peek().is_some_and(|(word, _)| names_class(word)) => {
                modifiers.parse_semantics(Order::Acquire.into(), "`.uneq_acq`")?
            }
            Some(_) => semantics.to_unequal_acquire(),
            None => Semantics::RELAXED,
        };
        let ty = modifiers.parse_access_type()?;
        modifiers.expect_end("an operation such as `.add`, a type such as `.u8`, or the operands")?;
        let destination = self.expect_register()?;
        let destination = self.use_register(thread, destination)?;
        self.expect_comma()?;
        let memory = self.parse_memory_operand(class, place, ty)?;
        if memory.components > 1 {
            let (what, vector, span) = ("an atomic access", memory.vector, self.previous_token().span);
            return Err(ParseError::VectorNotPlain { what, vector, span });
        }
        self.expect_comma()?;
        let first = self.parse_operand(thread)?;
        let operation = match fetch {
            Some(operation) => RmwOperation::Fetch(operation, first),
            None if compare_exchange => {
                self.expect_comma()?;
                RmwOperation::CompareExchange { compare: first, value: self.parse_operand(thread)?, unequal }
            }
            None => RmwOperation::Exchange(first),
        };
        Ok(InstructionKind::rmw(destination, memory.place, operation, scope, semantics))
    }

    fn parse_fence(&mut self, modifiers: &mut Modifiers<'a>) -> Parsed<InstructionKind> {
        let order = modifiers.parse_order(Order::AcquireRelease);
        if order.order == Order::Relaxed {
            return Err(ParseError::MissingOrder { span: modifiers.last_span() });
        }
        let scope = modifiers.parse_scope()?;
        let semantics = modifiers.parse_semantics(order, "an order")?;
        modifiers.expect_end("no more modifiers")?;
        Ok(InstructionKind::Fence { scope, semantics })
    }

    fn parse_control_barrier(&mut self, modifiers: &mut Modifiers<'a>) -> Parsed<InstructionKind> {
        for half in [SplitHalf::Arrive, SplitHalf::Wait] {
            if modifiers.take_word(half.keyword()).is_some() {
                return self.parse_split_barrier(half, modifiers);
            }
        }
        let execution_scope = modifiers.parse_execution_scope()?;
        let order = modifiers.take_one_of(words::ORDERS).unwrap_or_default();
        let memory_scope = modifiers.parse_scope()?;
        let semantics = modifiers.parse_semantics(order.into(), "`.acq`, `.rel` or `.acq_rel`")?;
        modifiers.expect_end("the instance of the barrier")?;
        let id = self.parse_barrier_name()?;
        let resource = if self.accept(TokenKind::Comma) { Some(self.parse_barrier_name()?) } else { None };
        let quorum = if resource.is_some() && self.accept(TokenKind::Comma) {
            Some(self.parse_small_number("the quorum of the barrier")?)
        } else {
            None
        };
        let semantics = (order != Order::Relaxed).then_some(semantics);
        Ok(InstructionKind::ControlBarrier(ControlBarrier {
            execution_scope,
            memory_scope,
            semantics,
            id,
            resource,
            quorum,
        }))
    }

    fn parse_split_barrier(
        &mut self,
        half: SplitHalf,
        modifiers: &mut Modifiers<'a>,
    ) -> Parsed<InstructionKind> {
        let execution_scope = modifiers.parse_execution_scope()?;
        if !matches!(execution_scope, Scope::Workgroup | Scope::Subgroup) {
            return Err(ParseError::ScopeOfSplitBarrier {
                half: half.keyword(),
                span: modifiers.last_span(),
            });
        }
        let word = modifiers.peek().map_or("", |(word, _)| word);
        let order = modifiers.take_one_of(words::ORDERS).unwrap_or_default();
        let (expected, rule) = match half {
            SplitHalf::Arrive => ("`.rel`", 13556),
            SplitHalf::Wait => ("`.acq`", 13557),
        };
        if order != Order::Relaxed && order != half.strongest_order() {
            let (half, word, span) = (half.keyword(), word.to_owned(), modifiers.last_span());
            return Err(ParseError::OrderOfSplitBarrier { half, word, expected, rule, span });
        }
        let memory_scope = modifiers.parse_scope()?;
        let semantics = modifiers.parse_semantics(order.into(), expected)?;
        modifiers.expect_end("the instance of the barrier")?;
        let id = self.parse_barrier_name()?;
        let semantics = (order != Order::Relaxed).then_some(semantics);
        Ok(InstructionKind::SplitBarrier(SplitBarrier { half, execution_scope, memory_scope, semantics, id }))
    }

    /// Parses the instance or the resource of a control barrier: a number or a word, stored as text.
    pub(super) fn parse_barrier_name(&mut self) -> Parsed<String> {
        let token = self.peek();
        if !matches!(token.kind, TokenKind::Number | TokenKind::Hexadecimal | TokenKind::Word) {
            return Err(ParseError::MissingBarrierId { span: self.span_after_previous() });
        }
        self.next();
        Ok(self.token_text(token).to_owned())
    }

    /// Parses the accesses after `avdevice` and `visdevice`; `None` without any, which means the whole
    /// device.
    fn parse_access_mask(&mut self, modifiers: &mut Modifiers<'a>) -> Parsed<Option<AccessMask>> {
        const EXPECTED: &str = "an access such as `.shader_write`, or `.none`";
        if modifiers.peek().is_none() {
            return Ok(None);
        }
        let mut mask = AccessMask::NONE;
        if modifiers.take_word("none").is_none() {
            while let Some((word, span)) = modifiers.peek() {
                let Some(access) = AccessMask::from_name(word) else {
                    let word = word.to_owned();
                    return Err(ParseError::UnknownModifier { word, expected: EXPECTED, span });
                };
                mask = mask.with(access);
                modifiers.taken += 1;
            }
        }
        modifiers.expect_end(EXPECTED)?;
        Ok(Some(mask))
    }

    fn parse_interlock(&mut self, modifiers: &mut Modifiers<'a>) -> Parsed<InstructionKind> {
        const EXPECTED: &str = "`.begin` or `.end`";
        let end = match modifiers.peek() {
            Some(("begin", _)) => InterlockEnd::Begin,
            Some(("end", _)) => InterlockEnd::End,
            Some((word, span)) => {
                return Err(ParseError::UnknownModifier { word: word.to_owned(), expected: EXPECTED, span });
            }
            None => return Err(ParseError::MissingInterlockEnd { span: modifiers.last_span() }),
        };
        modifiers.taken += 1;
        let order = match modifiers.take_word("unordered") {
            Some(_) => InterlockOrder::Unordered,
            None => InterlockOrder::Ordered,
        };
        let span = modifiers.last_span();
        modifiers.expect_end("the section")?;
        if self.test.interlock_order().is_some_and(|earlier| earlier != order) {
            return Err(ParseError::MixedInterlockOrders { span });
        }
        Ok(InstructionKind::Interlock(Interlock { end, order, section: self.parse_barrier_name()? }))
    }

    /// Parses the names that `flush` and `invalidate` cover; empty means everything.
    fn parse_ranges(&mut self) -> Parsed<Vec<LocationId>> {
        let mut ranges = Vec::new();
        if self.peek().kind != TokenKind::Word {
            return Ok(ranges);
        }
        loop {
            ranges.push(self.use_location()?);
            if !self.accept(TokenKind::Comma) {
                return Ok(ranges);
            }
        }
    }

    /// Parses device threads that were not submitted before.
    fn parse_submitted_threads(&mut self, own: ThreadId) -> Parsed<Vec<ThreadId>> {
        let instructions = self.test.threads.iter().flat_map(|thread| &thread.instructions);
        let mut earlier = Vec::new();
        for instruction in instructions {
            if let InstructionKind::System(SystemOperation::Submit(threads)) = &instruction.kind {
                earlier.extend_from_slice(threads);
            }
        }
        self.parse_threads(own, NamableThreads::NotYetSubmitted(earlier))
    }

    /// Parses one or more other threads.
    fn parse_threads(&mut self, own: ThreadId, allowed: NamableThreads) -> Parsed<Vec<ThreadId>> {
        let mut threads = Vec::new();
        loop {
            let (number, span) = self.parse_thread_number()?;
            let Some(found) = self.find_thread(number) else {
                return Err(ParseError::UnknownThread { number, span });
            };
            if found == own || threads.contains(&found) {
                return Err(ParseError::OtherThreadExpected { number, span });
            }
            let is_host = |thread: ThreadId| self.test.thread(thread).place == ThreadPlace::Host;
            if !matches!(allowed, NamableThreads::Any) && is_host(own) && is_host(found) {
                return Err(ParseError::DeviceThreadExpected { number, span });
            }
            if matches!(&allowed, NamableThreads::NotYetSubmitted(earlier) if earlier.contains(&found)) {
                return Err(ParseError::SubmittedTwice { number, span });
            }
            threads.push(found);
            if !self.accept(TokenKind::Comma) {
                return Ok(threads);
            }
        }
    }

    /// Checks that an instruction is allowed in its thread: on the host or on a device.
    fn check_place(&self, thread: ThreadId, kind: &InstructionKind, span: Span) -> Parsed<()> {
        let host = self.test.thread(thread).place == ThreadPlace::Host;
        let refuse = |what: &'static str, place: &'static str| {
            Err(ParseError::WrongPlace { what, place, number: self.test.thread(thread).number, span })
        };
        let is_shader_scope = |scope: &Scope| *scope != Scope::CrossDevice;
        match kind {
            InstructionKind::System(operation) if operation.is_host_operation() => match host {
                true => Ok(()),
                false => refuse(operation.quoted_keyword(), "host"),
            },
            _ if !host => Ok(()),
            InstructionKind::Access(access) if access.performer == Performer::Cooperative => {
                refuse("a cooperative access", "device")
            }
            InstructionKind::Access(access) if access.is_vector() => refuse("a vector access", "device"),
            InstructionKind::Access(access) => match access.strength {
                Access::Private => Ok(()),
                Access::NonPrivate | Access::Coherent { .. } => {
                    refuse("a non-private access or its own availability or visibility", "device")
                }
                Access::Atomic { scope, .. } if is_shader_scope(&scope) => {
                    refuse("a scope other than `.xd`", "device")
                }
                Access::Atomic { .. } => Ok(()),
            },
            InstructionKind::Fence { scope, .. } if is_shader_scope(scope) => {
                refuse("a scope other than `.xd`", "device")
            }
            InstructionKind::ControlBarrier(_) => refuse("a control barrier", "device"),
            InstructionKind::SplitBarrier(_) => refuse("a split barrier", "device"),
            InstructionKind::Subgroup(_) => refuse("a subgroup operation", "device"),
            InstructionKind::ShaderCall(_) => refuse("a shader call", "device"),
            InstructionKind::Interlock(_) => refuse("an interlocked section", "device"),
            InstructionKind::System(_) => refuse("a recorded memory dependency", "device"),
            InstructionKind::Fence { .. } | InstructionKind::Compute(_) | InstructionKind::Flow(_) => Ok(()),
        }
    }

    fn parse_arithmetic(&mut self, thread: ThreadId, word: &str) -> Parsed<InstructionKind> {
        let destination = self.expect_register()?;
        let destination = self.use_register(thread, destination)?;
        self.expect_comma()?;
        let left = self.parse_operand(thread)?;
        self.expect_comma()?;
        let right = self.parse_operand(thread)?;
        let operation = lookup(words::OPERATIONS, word).unwrap_or(ArithmeticOperation::Add);
        Ok(InstructionKind::Compute(Compute::Arithmetic { destination, operation, left, right }))
    }

    fn parse_branch(&mut self, thread: ThreadId, word: &str) -> Parsed<InstructionKind> {
        let left = self.parse_operand(thread)?;
        self.expect_comma()?;
        let right = self.parse_operand(thread)?;
        self.expect_comma()?;
        let target = self.parse_label_operand(thread)?;
        let relation = lookup(words::BRANCHES, word).unwrap_or(Comparison::Equal);
        Ok(InstructionKind::Flow(Flow::Branch { relation, left, right, target }))
    }

    pub(super) fn expect_comma(&mut self) -> Parsed<()> {
        self.expect(TokenKind::Comma, "`,`").map(|_| ())
    }

    pub(super) fn parse_operand(&mut self, thread: ThreadId) -> Parsed<Operand> {
        if self.at_constant() {
            return Ok(Operand::Constant(self.parse_constant()?));
        }
        let token = self.peek();
        if token.kind == TokenKind::Word && is_register(self.token_text(token)) {
            self.next();
            return Ok(Operand::Register(self.use_register(thread, token)?));
        }
        Err(ParseError::ValueExpected { found: self.describe_token(token), span: token.span })
    }

    fn parse_label_operand(&mut self, thread: ThreadId) -> Parsed<LabelId> {
        let token = self.peek();
        if token.kind == TokenKind::Word && is_label(self.token_text(token)) {
            self.next();
            return self.use_label(thread, token);
        }
        Err(ParseError::LabelExpected { found: self.describe_token(token), span: token.span })
    }
}
