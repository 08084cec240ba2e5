//! API calls in a test: `barrier`, `set` and `await`, `signal` and `wait`, and `transfer`.
//!
//! This module parses them and sorts them into queues. [`derive`] computes their meaning in terms of the
//! memory model.

mod derive;

use super::MAX_CALLS;
use super::lexer::{Token, TokenKind};
use super::parser::{Parsed, Parser, check_room};
use super::words::is_thread;
use crate::error::CallError;
use vocabulary::{AccessMask, StageMask};

use crate::schedule::DependencyScopes;
use crate::span::Span;
use crate::test::{LocationId, ThreadId, ThreadPlace};

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

impl ParsedCall {
    /// Returns the semaphore that it signals.
    fn signalled(&self) -> Option<&SemaphoreValue> {
        if let CallKind::Signal(semaphore) = &self.kind { Some(semaphore) } else { None }
    }

    /// Returns the semaphore that it waits for.
    fn awaited(&self) -> Option<&SemaphoreValue> {
        if let CallKind::Wait(semaphore) = &self.kind { Some(semaphore) } else { None }
    }

    /// Returns the semaphore that it signals or waits for.
    fn semaphore(&self) -> Option<&SemaphoreValue> {
        self.signalled().or(self.awaited())
    }
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
    stages: StageMask,
    /// The access scope: accesses of the named stages only. All dispatches are compute.
    accesses: AccessMask,
}

/// One side of a dependency: its scope as a source and as a target, and the stages and accesses as written.
struct ParsedScope {
    source: SyncScope,
    target: SyncScope,
    named: (StageMask, AccessMask),
}

/// The stages that a call may name. The language has no draws of mesh shaders.
const CALL_STAGES: StageMask = StageMask::COMPUTE
    .with(StageMask::VERTEX)
    .with(StageMask::FRAGMENT)
    .with(StageMask::TRANSFER)
    .with(StageMask::HOST)
    .with(StageMask::ALL)
    .with(StageMask::TOP)
    .with(StageMask::BOTTOM);

fn stage_of(word: &str) -> Option<StageMask> {
    let stage = StageMask::from_name(word)?;
    (stage == StageMask::NONE || stage.intersects(CALL_STAGES)).then_some(stage)
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
            "copy" => return Err(CallError::QueueWithoutShaders { span: start.span }.into()),
            "barrier" => CallKind::Barrier(self.parse_dependency()?),
            "set" => CallKind::Set(self.parse_event()?, self.parse_dependency()?),
            "await" => CallKind::Await(self.parse_event()?),
            "signal" => CallKind::Signal(self.parse_semaphore()?),
            "wait" => CallKind::Wait(self.parse_semaphore()?),
            _ => CallKind::Transfer(self.parse_transfer()?),
        };
        let span = self.span_since(start.span);
        let host = self.test.thread(thread).place == ThreadPlace::Host;
        if host && !matches!(kind, CallKind::Signal(_) | CallKind::Wait(_)) {
            return Err(CallError::HostCommand { span }.into());
        }
        check_room(self.calls.len(), "calls of the API", MAX_CALLS, span)?;
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
        let mut stages = StageMask::NONE;
        loop {
            let token = self.expect(TokenKind::Word, "a stage such as `compute`")?;
            let Some(stage) = stage_of(self.token_text(token)) else {
                let word = self.token_text(token).to_owned();
                return Err(CallError::UnknownStage { word, span: token.span }.into());
            };
            stages = stages.with(stage);
            if !self.accept(TokenKind::Dot) {
                break;
            }
        }
        let mut accesses = AccessMask::NONE;
        if self.accept(TokenKind::Colon) {
            loop {
                let token = self.peek();
                let Some(access) = AccessMask::from_name(self.token_text(token)) else {
                    return Err(self.unexpected_token(EXPECTED));
                };
                self.next();
                // Every stage except for these makes some access.
                let has_accesses = stages != StageMask::NONE
                    && stages.intersection(StageMask::TOP.with(StageMask::BOTTOM)) != stages;
                if !has_accesses || !stages.supports_accesses(access) {
                    let access = access.names().next().unwrap_or_default();
                    return Err(CallError::AccessOfAnotherStage { access, span: token.span }.into());
                }
                accesses = accesses.with(access);
                if !self.accept(TokenKind::Dot) {
                    break;
                }
            }
        }
        let includes_dispatches = stages.intersects(StageMask::COMPUTE.with(StageMask::ALL));
        let own = if includes_dispatches { accesses } else { accesses.intersection(AccessMask::HOST) };
        let side = |stages| SyncScope { stages, accesses: own };
        Ok(ParsedScope {
            source: side(stages.to_first_scope()),
            target: side(stages.to_second_scope()),
            named: (stages, accesses),
        })
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
