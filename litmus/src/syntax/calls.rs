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
use crate::schedule::{DependencyScopes, StageMask};
use crate::span::Span;
use crate::system::AccessMask;
use crate::test::{LocationId, ThreadId, ThreadPlace};

/// A call.
#[derive(Clone, Debug)]
pub(super) struct ParsedCall {
    thread: ThreadId,
    /// The number of instructions of the thread before it, including labels.
    at: usize,
    kind: CallKind,
    span: Span,
}

#[derive(Clone, Debug)]
enum CallKind {
    Barrier(MemoryDependency),
    Set(String, MemoryDependency),
    Await(String),
    Signal(SemaphoreValue),
    Wait(SemaphoreValue),
    Transfer(Transfer),
}

/// The memory dependency of a barrier or an event.
#[derive(Clone, Copy, Debug)]
struct MemoryDependency {
    source: SyncScope,
    target: SyncScope,
    /// The scopes as written.
    named: DependencyScopes,
}

/// A semaphore with the value of a timeline; binary semaphores have no value.
#[derive(Clone, Debug)]
struct SemaphoreValue {
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
struct SyncScope {
    /// The execution scope: the named stages, and those that come logically before or after them.
    stages: StageSet,
    /// The access scope: accesses of the named stages only. All dispatches are compute.
    accesses: AccessMask,
}

/// One side of a dependency: its scope as a source and as a target, and the stages and accesses as written.
struct ParsedScope {
    source: SyncScope,
    target: SyncScope,
    named: (StageMask, AccessMask),
}

/// A set of stages, including those that are logically earlier in a source, or logically later in a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct StageSet(u8);

const COMPUTE: StageSet = StageSet(1);
const VERTEX: StageSet = StageSet(1 << 1);
const FRAGMENT: StageSet = StageSet(1 << 2);
const TRANSFER: StageSet = StageSet(1 << 3);
const HOST: StageSet = StageSet(1 << 4);
const NONE: StageSet = StageSet(0);
/// All stages of commands; the host is not among them.
const ALL: StageSet = StageSet(0b1111);

impl StageSet {
    fn union(self, other: StageSet) -> StageSet {
        StageSet(self.0 | other.0)
    }

    fn intersects(self, other: StageSet) -> bool {
        self.0 & other.0 != 0
    }
}

/// Returns a stage by its word: by itself, as a source and as a target.
fn stage_sets(word: &str) -> Option<(StageSet, StageSet, StageSet)> {
    let same = |stages| (stages, stages, stages);
    Some(match word {
        "compute" => same(COMPUTE),
        "vertex" => (VERTEX, VERTEX, VERTEX.union(FRAGMENT)),
        "fragment" => (FRAGMENT, FRAGMENT.union(VERTEX), FRAGMENT),
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
fn supports_access(stages: StageSet, access: AccessMask) -> bool {
    let shaders = AccessMask::SHADER_READ.with(AccessMask::SHADER_WRITE).with(AccessMask::UNIFORM_READ);
    let transfers = AccessMask::TRANSFER_READ.with(AccessMask::TRANSFER_WRITE);
    let who = if access.intersects(shaders) {
        COMPUTE.union(VERTEX).union(FRAGMENT)
    } else if access.intersects(transfers) {
        TRANSFER
    } else if access.intersects(AccessMask::HOST) {
        HOST
    } else {
        ALL.union(HOST)
    };
    stages.intersects(who)
}

impl Parser<'_> {
    /// Returns true if `word`, which was just read, begins a call.
    pub(super) fn begins_call(&self, word: &str) -> bool {
        let next = self.peek();
        match word {
            "barrier" | "set" | "await" | "signal" | "transfer" | "copy" => true,
            "wait" => next.kind == TokenKind::Word && !is_thread(self.token_text(next)),
            _ => false,
        }
    }

    /// Reads the rest of a call of `thread`.
    pub(super) fn parse_call(&mut self, thread: ThreadId, start: Token) -> Parsed<()> {
        let kind = match self.token_text(start) {
            "copy" => return Err(CallError::Copy { span: start.span }.into()),
            "barrier" => CallKind::Barrier(self.parse_dependency()?),
            "set" => CallKind::Set(self.parse_event()?, self.parse_dependency()?),
            "await" => CallKind::Await(self.parse_event()?),
            "signal" => CallKind::Signal(self.parse_semaphore()?),
            "wait" => CallKind::Wait(self.parse_semaphore()?),
            _ => CallKind::Transfer(self.parse_transfer()?),
        };
        let end = self.previous_token().span;
        let span = Span { length: end.offset + end.length - start.span.offset, ..start.span };
        let host = self.test.thread(thread).place == ThreadPlace::Host;
        if host && !matches!(kind, CallKind::Signal(_) | CallKind::Wait(_)) {
            return Err(CallError::CommandOfHost { span }.into());
        }
        if self.calls.len() == MAX_CALLS {
            return Err(ParseError::TooMany { what: "calls of the API", limit: MAX_CALLS, span });
        }
        let at = self.test.thread(thread).instructions.len();
        self.calls.push(ParsedCall { thread, at, kind, span });
        Ok(())
    }

    fn parse_arrow(&mut self) -> Parsed<()> {
        self.expect(TokenKind::Minus, "`->`")?;
        self.expect(TokenKind::Greater, "`->`").map(drop)
    }

    fn parse_event(&mut self) -> Parsed<String> {
        let token = self.expect(TokenKind::Word, "the name of an event")?;
        Ok(self.token_text(token).to_owned())
    }

    fn parse_dependency(&mut self) -> Parsed<MemoryDependency> {
        let ParsedScope { source, named: before, .. } = self.parse_sync_scope()?;
        self.parse_arrow()?;
        let ParsedScope { target, named: after, .. } = self.parse_sync_scope()?;
        Ok(MemoryDependency { source, target, named: DependencyScopes { source: before, target: after } })
    }

    /// Reads the stages and accesses of one side.
    fn parse_sync_scope(&mut self) -> Parsed<ParsedScope> {
        const EXPECTED: &str = "an access such as `shader_write`";
        let (mut named, mut source, mut target) = (NONE, NONE, NONE);
        let mut words = StageMask::NONE;
        loop {
            let token = self.expect(TokenKind::Word, "a stage such as `compute`")?;
            let Some(found) = stage_sets(self.token_text(token)) else {
                let word = self.token_text(token).to_owned();
                return Err(CallError::UnknownStage { word, span: token.span }.into());
            };
            (named, source, target) = (named.union(found.0), source.union(found.1), target.union(found.2));
            words = StageMask::from_word(self.token_text(token)).map_or(words, |word| words.with(word));
            if !self.accept(TokenKind::Dot) {
                break;
            }
        }
        let mut accesses = AccessMask::NONE;
        if self.accept(TokenKind::Colon) {
            loop {
                let token = self.peek();
                let Some(access) = AccessMask::from_word(self.token_text(token)) else {
                    return Err(self.unexpected_token(EXPECTED));
                };
                self.next();
                if !supports_access(named, access) {
                    let access = access.words().next().unwrap_or_default();
                    return Err(CallError::AccessOfAnotherStage { access, span: token.span }.into());
                }
                accesses = accesses.with(access);
                if !self.accept(TokenKind::Dot) {
                    break;
                }
            }
        }
        let own = if named.intersects(COMPUTE) { accesses } else { accesses.intersection(AccessMask::HOST) };
        let side = |stages| SyncScope { stages, accesses: own };
        Ok(ParsedScope { source: side(source), target: side(target), named: (words, accesses) })
    }

    fn parse_semaphore(&mut self) -> Parsed<SemaphoreValue> {
        let token = self.expect(TokenKind::Word, "the name of a semaphore")?;
        let name = self.token_text(token).to_owned();
        let value = match self.peek().kind {
            TokenKind::Number => Some(self.parse_small_number("a value of the semaphore")?),
            _ => None,
        };
        Ok(SemaphoreValue { name, value })
    }

    fn parse_transfer(&mut self) -> Parsed<Transfer> {
        let mut locations = Vec::new();
        while !self.at_word("qf") {
            locations.push(self.use_location()?);
            if !self.accept(TokenKind::Comma) && !self.at_word("qf") {
                return Err(self.unexpected_token("`qf`"));
            }
        }
        let from = self.parse_family()?;
        self.parse_arrow()?;
        Ok(Transfer { locations, from, to: self.parse_family()? })
    }

    fn parse_family(&mut self) -> Parsed<u32> {
        if !self.at_word("qf") {
            return Err(self.unexpected_token("`qf`"));
        }
        self.next();
        self.parse_small_number("the number of a queue family")
    }
}
