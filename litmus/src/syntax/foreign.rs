//! Reads litmus tests of C11 and PTX as programs of the native dialect.
//!
//! - **C11** as herd reads it, with OpenCL's scopes, fences of work-items, and placements: herd's `scopeTree`, or those of
//!   Dartagnan (`P0@wg 0, dev 0`). The mapping is
//!   that of Khronos, "Comparing the Vulkan SPIR-V memory model to C++'s" (2018): every access is non-private, a release
//!   makes available and an acquire makes visible at its scope. The storage class of an atomic is that of its object.
//!   Without a scope it is the device.
//! - **PTX** as Dartagnan reads it. The mapping is the inverse of that of `ptx.cat`, after Lustig, Sahasrabuddhe, Giroux,
//!   "A Formal Analysis of the NVIDIA PTX Memory Consistency Model" (ASPLOS 2019), and the PTX ISA, chapter "Memory
//!   Consistency Model". Several GPUs are queue families.
//!
//! Sequentially consistent operations become `.seq_cst`, which Vulkan has not. What has no counterpart is an error at its
//! place: loops, compare-exchange of C11 (its expected value is in memory), `memory_order_consume`, proxies, other state
//! spaces and widths.

mod c11;
mod ptx;

use super::header::ForeignSyntax;
use super::lexer::{StartPosition, TokenKind, tokenize};
use super::parser::{Parsed, Parser};
use super::words::is_register;
use super::{check_size, constants, header, text_beginning};
use crate::error::{ErrorList, ParseErrors};
use crate::test::{
    Access, Dialect, IgnoredClasses, Instruction, InstructionKind, LocationInit, MemoryPlace, Order,
    Reference, Register, RegisterId, RegisterInit, Scope, Semantics, StorageClass, StorageClassSet, Test,
    ThreadId,
};

/// Reads a test of another dialect as a program of the native one.
///
/// # Errors
/// Every independent mistake or unsupported word with its position.
pub fn read_foreign(text: &str, source_name: &str, syntax: ForeignSyntax) -> Result<Test, ParseErrors> {
    let mut errors = ErrorList::default();
    if let Err(error) = check_size(text) {
        errors.push(error);
        return Err(errors.into_parse_errors(source_name, text_beginning(text)));
    }
    let blanked = blank_decoration(text, syntax);
    let Some(header) = header::parse_header(&blanked, source_name, false, Some(syntax), &mut errors) else {
        return Err(errors.into_parse_errors(source_name, text));
    };
    let StartPosition { offset, line, column } = header.body;
    let tokens = tokenize(&blanked, StartPosition { offset, line, column }, Dialect::Vulkan, &mut errors);
    let mut parser = Parser::new(&blanked, &tokens, &mut errors, header);
    parser.foreign = Some(syntax);
    match syntax {
        ForeignSyntax::C11 => parser.parse_c11_body(),
        ForeignSyntax::Ptx => parser.parse_body(),
    }
    let mut test = parser.test;
    if errors.is_empty() {
        rename_registers(&mut test);
        constants::check_constants(&test, &mut errors);
    }
    if errors.is_empty() { Ok(test) } else { Err(errors.into_parse_errors(source_name, text)) }
}

/// Replaces comments and the `%` of PTX by blanks of the same length, and the `*` of C by `?`, which is a token.
fn blank_decoration(text: &str, syntax: ForeignSyntax) -> String {
    let mut bytes = text.as_bytes().to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &text.as_bytes()[at..];
        let find = |end: &str| rest.windows(end.len()).position(|part| part == end.as_bytes());
        let length = match (syntax, rest) {
            (_, [b'/', b'/', ..]) => find("\n").unwrap_or(rest.len()),
            (_, [b'/', b'*', ..]) => find("*/").map_or(rest.len(), |end| end + 2),
            // A comment of herd; `(*x)` is C.
            (_, [b'(', b'*', next, ..]) if !next.is_ascii_alphabetic() => {
                at += find("*)").map_or(rest.len(), |end| end + 2);
                continue;
            }
            (ForeignSyntax::C11, [b'*', ..]) => {
                bytes[at] = b'?';
                at += 1;
                continue;
            }
            (ForeignSyntax::Ptx, [b'%', ..]) => 1,
            _ => 0,
        };
        bytes[at..at + length].iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
        at += length.max(1);
    }
    String::from_utf8(bytes).unwrap_or_default()
}

/// Gives every register a name of the native dialect.
fn rename_registers(test: &mut Test) {
    for thread in &mut test.threads {
        let mut free: Vec<String> =
            (0..=thread.registers.len()).rev().map(|number| format!("r{number}")).collect();
        free.retain(|name| thread.registers.iter().all(|known| known.name != *name));
        for register in thread.registers.iter_mut().filter(|register| !is_register(&register.name)) {
            register.name = free.pop().unwrap_or_default();
        }
    }
}

/// Returns semantics with the availability and visibility of the order.
fn semantics_of(order: Order, sequential: bool, classes: StorageClassSet) -> Semantics {
    if order == Order::Relaxed {
        return Semantics::RELAXED;
    }
    let (make_available, make_visible) = (order.releases(), order.acquires());
    Semantics { order, classes, ignored: IgnoredClasses::NONE, make_available, make_visible, sequential }
}

/// The class of memory without a declaration.
const BUFFER: StorageClassSet = StorageClassSet::EMPTY.with(StorageClass::Buffer);

impl Parser<'_> {
    /// Parses `[TYPE] x = 0` or `[x] = 0` of an initial state.
    pub(super) fn parse_foreign_declaration(&mut self) -> Parsed<()> {
        let is_local = self.parse_foreign_types()?;
        let place = self.parse_foreign_location()?;
        self.expect(TokenKind::Equal, "`=` and a number")?;
        let constant = self.parse_constant()?;
        if let Some(location) = self.test.locations.get_mut(usize::from(place.location.0)) {
            location.init = LocationInit::Constant(constant);
            location.declared = true;
            location.reference = is_local.then_some(Reference::Workgroup);
        }
        Ok(())
    }

    /// Parses the words of a type before a name; returns true for workgroup memory.
    fn parse_foreign_types(&mut self) -> Parsed<bool> {
        const TYPES: [&str; 7] =
            ["int", "atomic_int", "uint", "atomic_uint", "unsigned", "volatile", "global"];
        let mut is_local = false;
        while self.peek().kind == TokenKind::Word
            && matches!(self.peek_at(1).kind, TokenKind::Word | TokenKind::Question)
        {
            let word = self.token_text(self.peek());
            if word != "local" && !TYPES.contains(&word) {
                return Err(
                    self.unexpected_token("a type of 32 bits: `int`, `atomic_int`, `uint` or `atomic_uint`")
                );
            }
            is_local |= word == "local";
            self.next();
            while self.accept(TokenKind::Question) {}
        }
        Ok(is_local)
    }

    /// Parses `x` or `[x]`.
    fn parse_foreign_location(&mut self) -> Parsed<MemoryPlace> {
        let is_bracketed = self.accept(TokenKind::OpenBracket);
        let id = self.use_location()?;
        if is_bracketed {
            self.expect(TokenKind::CloseBracket, "`]`")?;
        }
        let class = self.test.location(id).reference.map_or(StorageClass::Buffer, Reference::storage_class);
        Ok(MemoryPlace::whole_location(id, class))
    }

    /// Adds a register without a name in the text.
    fn add_temporary(&mut self, thread: ThreadId) -> RegisterId {
        let registers = &mut self.test.threads[usize::from(thread.0)].registers;
        let (name, init) = (format!(" {}", registers.len()), RegisterInit::Constant(0));
        registers.push(Register { name, init, declared: false });
        RegisterId((registers.len() - 1) as u16)
    }

    /// Adds an instruction whose text begins at token `start`.
    fn emit(&mut self, thread: ThreadId, start: usize, kind: InstructionKind) {
        let first = self.tokens.get(start).map_or_else(|| self.peek().span, |token| token.span);
        let is_counted = matches!(kind, InstructionKind::Flow(crate::test::Flow::Label(_)))
            || self.count_instruction(first);
        if is_counted {
            let span = self.span_since(first);
            self.test.threads[usize::from(thread.0)].instructions.push(Instruction { kind, span });
        }
    }
}
