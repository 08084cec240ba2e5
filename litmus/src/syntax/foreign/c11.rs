//! Threads and statements of C11.

use super::{
    Access, BUFFER, InstructionKind, MemoryPlace, Order, Parsed, Parser, Reference, RegisterId, Scope,
    StorageClass, StorageClassSet, ThreadId, TokenKind, semantics_of,
};
use crate::comparison::Comparison;
use crate::error::ParseError;
use crate::syntax::condition::comparison_of;
use crate::syntax::declarations::DeclaredRegister;
use crate::syntax::words::{self, lookup};
use crate::syntax::{MAX_NESTING, MAX_THREADS};
use crate::test::{
    ArithmeticOperation, Compute, Flow, Label, LabelId, Operand, Placement, RmwOperation, Thread, ThreadPlace,
};

/// Orders, and true for sequential consistency.
const ORDERS: words::Words<(Order, bool)> = &[
    ("memory_order_relaxed", (Order::Relaxed, false)),
    ("memory_order_acquire", (Order::Acquire, false)),
    ("memory_order_release", (Order::Release, false)),
    ("memory_order_acq_rel", (Order::AcquireRelease, false)),
    ("memory_order_seq_cst", (Order::AcquireRelease, true)),
];

const SCOPES: words::Words<Scope> = &[
    ("memory_scope_work_item", Scope::Invocation),
    ("memory_scope_sub_group", Scope::Subgroup),
    ("memory_scope_work_group", Scope::Workgroup),
    ("memory_scope_device", Scope::Device),
    // All threads are on one device.
    ("memory_scope_all_svm_devices", Scope::Device),
];

/// The memory that a fence of OpenCL orders.
const FENCE_FLAGS: words::Words<StorageClass> =
    &[("CLK_GLOBAL_MEM_FENCE", StorageClass::Buffer), ("CLK_LOCAL_MEM_FENCE", StorageClass::Workgroup)];

/// The work-group and the sub-group of a part of a scope tree, with the numbers that are given out.
#[derive(Clone, Copy, Default)]
struct ScopeNode {
    workgroup: Option<u32>,
    subgroup: Option<u32>,
}

/// A thread whose statements are read.
struct C11Thread {
    id: ThreadId,
    parameters: Vec<String>,
    depth: usize,
}

impl Parser<'_> {
    pub(super) fn parse_c11_body(&mut self) {
        let Some(mut registers) = self.parse_declarations() else { return };
        let mut counts = ScopeNode { workgroup: Some(0), subgroup: Some(0) };
        while !self.is_after_table() {
            let parsed = match self.at_word("scopeTree") {
                true => {
                    self.next();
                    self.parse_scope_tree(ScopeNode::default(), &mut counts, 0)
                }
                false => self.parse_c11_thread(&mut registers),
            };
            if let Err(error) = parsed {
                self.errors.push(error);
                return;
            }
        }
        self.attach_registers(registers);
        self.parse_questions();
    }

    /// Parses `P0 [@ wg 0, dev 0] (int* x, …) { … }`.
    fn parse_c11_thread(&mut self, declared: &mut Vec<DeclaredRegister>) -> Parsed<()> {
        let span = self.peek().span;
        let (number, _) = self.parse_thread_number()?;
        let column = self.test.threads.len();
        if number as usize != column || column >= MAX_THREADS {
            return Err(ParseError::ThreadOrder { found: number, column, span });
        }
        let mut place = Placement { queue_family: 0, queue: 0, workgroup: number, subgroup: number };
        if self.accept(TokenKind::At) {
            place.workgroup = self.parse_coordinate("wg", "`wg` and a number")?;
            self.expect(TokenKind::Comma, "`,` and `dev`")?;
            if self.parse_coordinate("dev", "`dev` and a number")? != 0 {
                let (found, expected) = ("another device".to_owned(), "`dev 0` for all threads");
                return Err(ParseError::Unexpected { found, expected, span: self.previous_token().span });
            }
        }
        let (registers, labels, instructions) = (Vec::new(), Vec::new(), Vec::new());
        let place = ThreadPlace::Device(place);
        self.test.threads.push(Thread { number, place, registers, labels, instructions, span });
        let (own, others) =
            std::mem::take(declared).into_iter().partition(|register| register.thread == number);
        *declared = others;
        self.attach_registers(own);
        let mut thread = C11Thread { id: ThreadId(column as u16), parameters: Vec::new(), depth: 0 };
        self.expect(TokenKind::OpenParenthesis, "`(` and the parameters")?;
        while !self.accept(TokenKind::CloseParenthesis) {
            let is_local = self.parse_foreign_types()?;
            thread.parameters.push(self.token_text(self.peek()).to_owned());
            let place = self.parse_foreign_location()?;
            if is_local && let Some(location) = self.test.locations.get_mut(usize::from(place.location.0)) {
                location.reference = Some(Reference::Workgroup);
            }
            if !self.accept(TokenKind::Comma) && self.peek().kind != TokenKind::CloseParenthesis {
                return Err(self.unexpected_token("`,` or `)`"));
            }
        }
        match self.peek().kind {
            TokenKind::OpenBrace => self.parse_c11_statement(&mut thread),
            _ => Err(self.unexpected_token("`{` and statements")),
        }
    }

    /// Parses `(device (work_group P0 P1) (work_group P2))`, after the threads. Threads outside of a sub-group have one
    /// each.
    fn parse_scope_tree(&mut self, outer: ScopeNode, counts: &mut ScopeNode, depth: usize) -> Parsed<()> {
        self.expect(TokenKind::OpenParenthesis, "`(` and a scope such as `device`")?;
        let mut node = outer;
        let draw = |count: &mut Option<u32>| count.replace(count.unwrap_or_default() + 1);
        match self.token_text(self.peek()) {
            "device" if depth == 0 => {}
            "work_group" if outer.workgroup.is_none() => node.workgroup = draw(&mut counts.workgroup),
            "sub_group" if outer.subgroup.is_none() => node.subgroup = draw(&mut counts.subgroup),
            _ => return Err(self.unexpected_token("one `device`, and in it `work_group` and `sub_group`")),
        }
        self.next();
        while !self.accept(TokenKind::CloseParenthesis) {
            if self.peek().kind == TokenKind::OpenParenthesis {
                self.parse_scope_tree(node, counts, depth + 1)?;
                continue;
            }
            let token = self.peek();
            let (number, _) = self.parse_thread_number()?;
            let own = ScopeNode {
                workgroup: node.workgroup.or_else(|| draw(&mut counts.workgroup)),
                subgroup: node.subgroup.or_else(|| draw(&mut counts.subgroup)),
            };
            let thread = self.test.threads.iter_mut().find(|thread| thread.number == number);
            match (thread.map(|thread| &mut thread.place), own) {
                (
                    Some(ThreadPlace::Device(place)),
                    ScopeNode { workgroup: Some(workgroup), subgroup: Some(subgroup) },
                ) => (place.workgroup, place.subgroup) = (workgroup, subgroup),
                _ => {
                    let (found, expected) = (format!("`P{number}`"), "a thread of the test");
                    return Err(ParseError::Unexpected { found, expected, span: token.span });
                }
            }
        }
        Ok(())
    }

    fn parse_c11_statement(&mut self, thread: &mut C11Thread) -> Parsed<()> {
        let (start, first) = (self.position, self.peek());
        thread.depth += 1;
        if thread.depth > MAX_NESTING {
            return Err(ParseError::NestedTooDeep { limit: MAX_NESTING, span: first.span });
        }
        let word = self.token_text(first);
        let mut is_simple = false;
        if self.accept(TokenKind::OpenBrace) {
            while !self.accept(TokenKind::CloseBrace) {
                self.parse_c11_statement(thread)?;
            }
        } else if word == "if" {
            self.parse_c11_if(thread, start)?;
        } else {
            is_simple = true;
            self.parse_c11_simple_statement(thread, start)?;
        }
        thread.depth -= 1;
        if is_simple { self.expect(TokenKind::Semicolon, "`;`").map(|_| ()) } else { Ok(()) }
    }

    fn parse_c11_simple_statement(&mut self, thread: &C11Thread, start: usize) -> Parsed<()> {
        let (first, second) = (self.peek(), self.peek_at(1).kind);
        let is_pointer = self.accept(TokenKind::Question);
        if first.kind == TokenKind::Semicolon {
            return Ok(());
        }
        if is_pointer {
            let place = self.parse_c11_parameter(thread)?;
            self.expect(TokenKind::Equal, "`=` and a value")?;
            let value = self.parse_c11_value(thread, None)?;
            self.emit(thread.id, start, InstructionKind::store(place, value, Access::NonPrivate));
            return Ok(());
        }
        let refused = ["while", "do", "for", "goto", "return", "else", "switch"];
        if first.kind != TokenKind::Word || refused.contains(&self.token_text(first)) {
            return Err(self.unexpected_token("a store, a load, a fence or `if`"));
        }
        if second == TokenKind::OpenParenthesis {
            return self.parse_c11_call(thread, None);
        }
        self.parse_foreign_types()?;
        let register = self.parse_c11_variable(thread)?;
        self.expect(TokenKind::Equal, "`=` and a value")?;
        let value = self.parse_c11_value(thread, Some(register))?;
        if value != Operand::Register(register) {
            self.emit_arithmetic(
                thread,
                start,
                register,
                ArithmeticOperation::Add,
                value,
                Operand::Constant(0),
            );
        }
        Ok(())
    }

    /// Parses the name of memory.
    fn parse_c11_parameter(&mut self, thread: &C11Thread) -> Parsed<MemoryPlace> {
        let name = self.token_text(self.peek());
        if !thread.parameters.iter().any(|known| known == name) {
            return Err(self.unexpected_token("a parameter of the thread"));
        }
        self.parse_foreign_location()
    }

    fn parse_c11_variable(&mut self, thread: &C11Thread) -> Parsed<RegisterId> {
        let token = self.peek();
        if token.kind != TokenKind::Word || self.find_location(self.token_text(token)).is_some() {
            return Err(self.unexpected_token("a local variable, or `*` before a parameter of the thread"));
        }
        self.next();
        self.use_register(thread.id, token)
    }

    fn emit_arithmetic(
        &mut self,
        thread: &C11Thread,
        start: usize,
        destination: RegisterId,
        operation: ArithmeticOperation,
        left: Operand,
        right: Operand,
    ) {
        let computed = Compute::Arithmetic { destination, operation, left, right };
        self.emit(thread.id, start, InstructionKind::Compute(computed));
    }

    /// Parses `VALUE`, `VALUE + VALUE` or `VALUE - VALUE`. A single value that needs an instruction is assigned to
    /// `destination`.
    fn parse_c11_value(&mut self, thread: &C11Thread, destination: Option<RegisterId>) -> Parsed<Operand> {
        let start = self.position;
        // An operation may read the register that it assigns.
        let is_operation = |parser: &Self| {
            let ends = [TokenKind::Semicolon, TokenKind::Comma];
            let rest = parser.tokens[parser.position..]
                .iter()
                .skip(1)
                .take_while(|token| !ends.contains(&token.kind));
            rest.into_iter().any(|token| matches!(token.kind, TokenKind::Plus | TokenKind::Minus))
        };
        let left = self.parse_c11_term(thread, destination.filter(|_| !is_operation(self)))?;
        let operation = match self.peek().kind {
            TokenKind::Plus => ArithmeticOperation::Add,
            TokenKind::Minus => ArithmeticOperation::Subtract,
            TokenKind::Question => {
                let (found, expected) = ("`*`".to_owned(), "`+`, `-`, or the end of the value");
                return Err(ParseError::Unexpected { found, expected, span: self.peek().span });
            }
            _ => return Ok(left),
        };
        self.next();
        let right = self.parse_c11_term(thread, None)?;
        let destination = destination.unwrap_or_else(|| self.add_temporary(thread.id));
        self.emit_arithmetic(thread, start, destination, operation, left, right);
        Ok(Operand::Register(destination))
    }

    fn parse_c11_term(&mut self, thread: &C11Thread, destination: Option<RegisterId>) -> Parsed<Operand> {
        let start = self.position;
        if self.at_constant() {
            return Ok(Operand::Constant(self.parse_constant()?));
        }
        if self.peek().kind == TokenKind::Word && self.peek_at(1).kind == TokenKind::OpenParenthesis {
            let destination = destination.unwrap_or_else(|| self.add_temporary(thread.id));
            self.parse_c11_call(thread, Some(destination))?;
            return Ok(Operand::Register(destination));
        }
        if self.accept(TokenKind::Question) {
            let place = self.parse_c11_parameter(thread)?;
            let destination = destination.unwrap_or_else(|| self.add_temporary(thread.id));
            self.emit(thread.id, start, InstructionKind::load(destination, place, Access::NonPrivate));
            return Ok(Operand::Register(destination));
        }
        Ok(Operand::Register(self.parse_c11_variable(thread)?))
    }

    fn parse_c11_if(&mut self, thread: &mut C11Thread, start: usize) -> Parsed<()> {
        self.next();
        self.expect(TokenKind::OpenParenthesis, "`(` and a condition")?;
        let left = self.parse_c11_value(thread, None)?;
        let relation = comparison_of(self.peek()).filter(|_| self.peek().kind != TokenKind::Equal);
        let right = match relation {
            Some(_) => {
                self.next();
                self.parse_c11_value(thread, None)?
            }
            None => Operand::Constant(0),
        };
        self.expect(TokenKind::CloseParenthesis, "a comparison or `)`")?;
        let relation = relation.unwrap_or(Comparison::NotEqual).opposite();
        let mut target = self.add_c11_label(thread);
        self.emit(thread.id, start, InstructionKind::Flow(Flow::Branch { relation, left, right, target }));
        self.parse_c11_statement(thread)?;
        if self.at_word("else") {
            self.next();
            let end = self.add_c11_label(thread);
            self.emit(thread.id, start, InstructionKind::Flow(Flow::Goto(end)));
            self.emit(thread.id, start, InstructionKind::Flow(Flow::Label(target)));
            self.parse_c11_statement(thread)?;
            target = end;
        }
        self.emit(thread.id, start, InstructionKind::Flow(Flow::Label(target)));
        Ok(())
    }

    fn add_c11_label(&mut self, thread: &C11Thread) -> LabelId {
        let labels = &mut self.test.threads[usize::from(thread.id.0)].labels;
        labels.push(Label { name: format!("LC{:02}", labels.len()) });
        LabelId((labels.len() - 1) as u16)
    }

    /// Parses a call of an atomic operation or a fence.
    fn parse_c11_call(&mut self, thread: &C11Thread, destination: Option<RegisterId>) -> Parsed<()> {
        let (start, word) = (self.position, self.token_text(self.peek()));
        let name = word.strip_suffix("_explicit").unwrap_or(word);
        let fetch =
            name.strip_prefix("atomic_fetch_").and_then(|operation| lookup(words::OPERATIONS, operation));
        let update = "`memory_order_` and `relaxed`, `acquire`, `release`, `acq_rel` or `seq_cst`";
        let (strongest, expected) = match name {
            "atomic_load" => (Order::Acquire, "`memory_order_` and `relaxed`, `acquire` or `seq_cst`"),
            "atomic_store" => (Order::Release, "`memory_order_` and `relaxed`, `release` or `seq_cst`"),
            "atomic_thread_fence" | "atomic_work_item_fence" | "atomic_exchange" => {
                (Order::AcquireRelease, update)
            }
            _ if fetch.is_some() => (Order::AcquireRelease, update),
            _ => {
                return Err(self.unexpected_token(
                    "`atomic_load`, `atomic_store`, `atomic_exchange`, `atomic_fetch_add` or similar, `atomic_thread_fence`, or `atomic_work_item_fence`",
                ));
            }
        };
        let (is_fence, is_store) = (name.ends_with("_fence"), name == "atomic_store");
        if destination.is_some() && (is_fence || is_store) {
            return Err(self.unexpected_token("a value"));
        }
        self.next();
        self.expect(TokenKind::OpenParenthesis, "`(`")?;
        let (mut place, mut value, mut fenced) = (None, Operand::Constant(0), StorageClassSet::EMPTY);
        if name == "atomic_work_item_fence" {
            loop {
                let class = lookup(FENCE_FLAGS, self.token_text(self.peek()));
                fenced = fenced.with(class.ok_or_else(|| {
                    self.unexpected_token("`CLK_GLOBAL_MEM_FENCE`, `CLK_LOCAL_MEM_FENCE` or both, with `|`")
                })?);
                self.next();
                if !self.accept(TokenKind::Bar) {
                    break;
                }
            }
            self.expect_comma()?;
        } else if !is_fence {
            self.accept(TokenKind::Ampersand);
            place = Some(self.parse_c11_parameter(thread)?);
            if name != "atomic_load" {
                self.expect_comma()?;
                value = self.parse_c11_value(thread, None)?;
            }
        }
        let (mut order, mut sequential, mut scope) = (strongest, true, Scope::Device);
        if is_fence || name != word {
            if !is_fence {
                self.expect_comma()?;
            }
            let known = lookup(ORDERS, self.token_text(self.peek()));
            let known =
                known.map(|(order, sequential)| (if sequential { strongest } else { order }, sequential));
            let weaker = |order: Order| {
                (strongest.acquires() || !order.acquires()) && (strongest.releases() || !order.releases())
            };
            (order, sequential) =
                known.filter(|(order, _)| weaker(*order)).ok_or_else(|| self.unexpected_token(expected))?;
            self.next();
            if self.accept(TokenKind::Comma) {
                let known = lookup(SCOPES, self.token_text(self.peek()));
                scope =
                    known.ok_or_else(|| self.unexpected_token("a scope such as `memory_scope_device`"))?;
                self.next();
            }
        }
        self.expect(TokenKind::CloseParenthesis, "`)`")?;
        let is_local = |location: &crate::test::Location| location.reference == Some(Reference::Workgroup);
        let classes = match place {
            Some(place) => StorageClassSet::EMPTY.with(place.class),
            None if fenced != StorageClassSet::EMPTY => fenced,
            None if self.test.locations.iter().any(is_local) => BUFFER.with(StorageClass::Workgroup),
            None => BUFFER,
        };
        let semantics = semantics_of(order, sequential, classes);
        let strength = Access::Atomic { scope, semantics };
        let kind = match place {
            // A relaxed fence has no effect.
            None if order == Order::Relaxed => return Ok(()),
            None => InstructionKind::Fence { scope, semantics },
            Some(place) if is_store => InstructionKind::store(place, value, strength),
            Some(place) => {
                let destination = destination.unwrap_or_else(|| self.add_temporary(thread.id));
                match (name, fetch) {
                    ("atomic_load", _) => InstructionKind::load(destination, place, strength),
                    (_, fetch) => {
                        let exchange = RmwOperation::Exchange(value);
                        let operation =
                            fetch.map_or(exchange, |operation| RmwOperation::Fetch(operation, value));
                        InstructionKind::rmw(destination, place, operation, scope, semantics)
                    }
                }
            }
        };
        self.emit(thread.id, start, kind);
        Ok(())
    }
}
