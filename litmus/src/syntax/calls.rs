//! API calls in a test: `barrier`, `set` and `await`, `signal` and `wait`, and `transfer`.
//!
//! This module parses them and sorts them into queues. [`derive`] computes their meaning in terms of the
//! memory model.

mod derive;

use super::MAX_CALLS;
use super::lexer::{Token, TokenKind};
use super::parser::{Parsed, Parser};
use super::words::is_thread;
use crate::error::{CallError, ParseError};
use crate::schedule::{Scopes, StageMask};
use crate::span::Span;
use crate::system::AccessMask;
use crate::test::{LocationId, Place, ThreadId};

/// A call.
#[derive(Clone, Debug)]
pub(super) struct Call {
    thread: ThreadId,
    /// The number of instructions of the thread before it, including labels.
    at: usize,
    kind: CallKind,
    span: Span,
}

#[derive(Clone, Debug)]
enum CallKind {
    Barrier(Dependency),
    Set(String, Dependency),
    Await(String),
    Signal(Semaphore),
    Wait(Semaphore),
    Transfer(Transfer),
}

/// The memory dependency of a barrier or an event.
#[derive(Clone, Copy, Debug)]
struct Dependency {
    source: Side,
    target: Side,
    /// The scopes as written.
    named: Scopes,
}

/// A semaphore with the value of a timeline; binary semaphores have no value.
#[derive(Clone, Debug)]
struct Semaphore {
    name: String,
    value: Option<u32>,
}

/// A queue family ownership transfer of these locations; of all locations if the list is empty.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Transfer {
    locations: Vec<LocationId>,
    from: u32,
    to: u32,
}

/// A synchronization scope of a barrier (`#synchronization-dependencies-scopes`).
#[derive(Clone, Copy, Debug)]
struct Side {
    /// The execution scope: the named stages, and those that come logically before or after them.
    stages: Stages,
    /// The access scope: accesses of the named stages only. All dispatches are compute.
    accesses: AccessMask,
}

/// One side of a dependency: its scope as a source and as a target, and the stages and accesses as written.
struct ParsedSide {
    source: Side,
    target: Side,
    named: (StageMask, AccessMask),
}

/// A set of stages, including those that are logically earlier in a source, or logically later in a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stages(u8);

const COMPUTE: Stages = Stages(1);
const VERTEX: Stages = Stages(1 << 1);
const FRAGMENT: Stages = Stages(1 << 2);
const TRANSFER: Stages = Stages(1 << 3);
const HOST: Stages = Stages(1 << 4);
const NONE: Stages = Stages(0);
/// All stages of commands; the host is not among them.
const ALL: Stages = Stages(0b1111);

impl Stages {
    fn with(self, other: Stages) -> Stages {
        Stages(self.0 | other.0)
    }

    fn intersects(self, other: Stages) -> bool {
        self.0 & other.0 != 0
    }
}

/// Returns a stage by its word: alone, as a source and as a target.
fn stage(word: &str) -> Option<(Stages, Stages, Stages)> {
    let same = |stages| (stages, stages, stages);
    Some(match word {
        "compute" => same(COMPUTE),
        "vertex" => (VERTEX, VERTEX, VERTEX.with(FRAGMENT)),
        "fragment" => (FRAGMENT, FRAGMENT.with(VERTEX), FRAGMENT),
        "transfer" => same(TRANSFER),
        "host" => same(HOST),
        "all" => same(ALL),
        "top" => (NONE, NONE, ALL),
        "bottom" => (NONE, ALL, NONE),
        "none" => same(NONE),
        _ => return None,
    })
}

/// Returns true if one of the stages makes an access.
fn makes(stages: Stages, access: AccessMask) -> bool {
    let shaders = AccessMask::SHADER_READ.with(AccessMask::SHADER_WRITE).with(AccessMask::UNIFORM_READ);
    let transfers = AccessMask::TRANSFER_READ.with(AccessMask::TRANSFER_WRITE);
    let who = if access.intersects(shaders) {
        COMPUTE.with(VERTEX).with(FRAGMENT)
    } else if access.intersects(transfers) {
        TRANSFER
    } else if access.intersects(AccessMask::HOST) {
        HOST
    } else {
        ALL.with(HOST)
    };
    stages.intersects(who)
}

impl Parser<'_> {
    /// Returns true if `word`, which was just read, begins a call.
    pub(super) fn begins_call(&self, word: &str) -> bool {
        let next = self.peek();
        match word {
            "barrier" | "set" | "await" | "signal" | "transfer" | "copy" => true,
            "wait" => next.kind == TokenKind::Word && !is_thread(self.word(next)),
            _ => false,
        }
    }

    /// Reads the rest of a call of `thread`.
    pub(super) fn call(&mut self, thread: ThreadId, start: Token) -> Parsed<()> {
        let kind = match self.word(start) {
            "copy" => return Err(CallError::Copy { span: start.span }.into()),
            "barrier" => CallKind::Barrier(self.dependency()?),
            "set" => CallKind::Set(self.event()?, self.dependency()?),
            "await" => CallKind::Await(self.event()?),
            "signal" => CallKind::Signal(self.semaphore()?),
            "wait" => CallKind::Wait(self.semaphore()?),
            _ => CallKind::Transfer(self.transfer()?),
        };
        let end = self.previous().span;
        let span = Span { length: end.offset + end.length - start.span.offset, ..start.span };
        let host = self.test.thread(thread).place == Place::Host;
        if host && !matches!(kind, CallKind::Signal(_) | CallKind::Wait(_)) {
            return Err(CallError::CommandOfHost { span }.into());
        }
        if self.calls.len() == MAX_CALLS {
            return Err(ParseError::TooMany { what: "calls of the API", limit: MAX_CALLS, span });
        }
        let at = self.test.thread(thread).instructions.len();
        self.calls.push(Call { thread, at, kind, span });
        Ok(())
    }

    fn arrow(&mut self) -> Parsed<()> {
        self.expect(TokenKind::Minus, "`->`")?;
        self.expect(TokenKind::Greater, "`->`").map(drop)
    }

    fn event(&mut self) -> Parsed<String> {
        let token = self.expect(TokenKind::Word, "the name of an event")?;
        Ok(self.word(token).to_owned())
    }

    fn dependency(&mut self) -> Parsed<Dependency> {
        let ParsedSide { source, named: before, .. } = self.side()?;
        self.arrow()?;
        let ParsedSide { target, named: after, .. } = self.side()?;
        Ok(Dependency { source, target, named: Scopes { source: before, target: after } })
    }

    /// Reads the stages and accesses of one side.
    fn side(&mut self) -> Parsed<ParsedSide> {
        const EXPECTED: &str = "an access such as `shader_write`";
        let (mut named, mut source, mut target) = (NONE, NONE, NONE);
        let mut words = StageMask::NONE;
        loop {
            let token = self.expect(TokenKind::Word, "a stage such as `compute`")?;
            let Some(found) = stage(self.word(token)) else {
                let word = self.word(token).to_owned();
                return Err(CallError::UnknownStage { word, span: token.span }.into());
            };
            (named, source, target) = (named.with(found.0), source.with(found.1), target.with(found.2));
            words = StageMask::of_word(self.word(token)).map_or(words, |word| words.with(word));
            if !self.accept(TokenKind::Dot) {
                break;
            }
        }
        let mut accesses = AccessMask::NONE;
        if self.accept(TokenKind::Colon) {
            loop {
                let token = self.peek();
                let Some(access) = AccessMask::of_word(self.word(token)) else {
                    return Err(self.unexpected(EXPECTED));
                };
                self.next();
                if !makes(named, access) {
                    let access = access.words().next().unwrap_or_default();
                    return Err(CallError::AccessOfAnotherStage { access, span: token.span }.into());
                }
                accesses = accesses.with(access);
                if !self.accept(TokenKind::Dot) {
                    break;
                }
            }
        }
        let own = if named.intersects(COMPUTE) { accesses } else { accesses.only(AccessMask::HOST) };
        let side = |stages| Side { stages, accesses: own };
        Ok(ParsedSide { source: side(source), target: side(target), named: (words, accesses) })
    }

    fn semaphore(&mut self) -> Parsed<Semaphore> {
        let token = self.expect(TokenKind::Word, "the name of a semaphore")?;
        let name = self.word(token).to_owned();
        let value = match self.peek().kind {
            TokenKind::Number => Some(self.small_number("a value of the semaphore")?),
            _ => None,
        };
        Ok(Semaphore { name, value })
    }

    fn transfer(&mut self) -> Parsed<Transfer> {
        let mut locations = Vec::new();
        while !self.at_word("qf") {
            locations.push(self.use_location()?);
            if !self.accept(TokenKind::Comma) && !self.at_word("qf") {
                return Err(self.unexpected("`qf`"));
            }
        }
        let from = self.family()?;
        self.arrow()?;
        Ok(Transfer { locations, from, to: self.family()? })
    }

    fn family(&mut self) -> Parsed<u32> {
        if !self.at_word("qf") {
            return Err(self.unexpected("`qf`"));
        }
        self.next();
        self.small_number("the number of a queue family")
    }
}
