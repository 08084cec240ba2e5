//! Checks barriers: a named barrier has one quorum, and the halves of split barriers alternate.
//!
//! In each thread and for each execution scope, arrivals and waits alternate: a forward data-flow analysis over the control-flow graph of the thread.

use super::parser::Parser;
use crate::error::ParseError;
use crate::span::Span;
use crate::test::{ControlBarrier, Flow, InstructionKind, Scope, SplitHalf, Thread};

/// A set of possible last events of one scope, as bits.
type LastEvents = u8;
/// Neither an arrival nor a wait yet.
const NO_EVENT: LastEvents = 1;
/// An arrival.
const ARRIVED: LastEvents = 2;
const WAITED: LastEvents = 4;

impl Parser<'_> {
    /// Reports barriers whose quorum differs from that of the first barrier with their instance and resource.
    pub(super) fn check_quorums(&mut self) {
        let mut first_barriers: Vec<(&ControlBarrier, Span)> = Vec::new();
        for instruction in self.test.threads.iter().flat_map(|thread| &thread.instructions) {
            let InstructionKind::ControlBarrier(barrier) = &instruction.kind else { continue };
            match first_barriers.iter().find(|(first, _)| first.is_same_barrier(barrier)) {
                None => first_barriers.push((barrier, instruction.span)),
                Some((first, _)) if first.quorum == barrier.quorum => {}
                Some((_, first)) => {
                    self.errors.push(ParseError::QuorumsDiffer { span: instruction.span, first: *first });
                }
            }
        }
    }

    /// Reports waits without a preceding arrival, and consecutive arrivals or waits, on any path.
    pub(super) fn check_split_barriers(&mut self) {
        let mut errors = Vec::new();
        for thread in &self.test.threads {
            for scope in [Scope::Workgroup, Scope::Subgroup] {
                check_alternation(thread, scope, &mut errors);
            }
        }
        errors.into_iter().for_each(|error| self.errors.push(error));
    }
}

fn check_alternation(thread: &Thread, scope: Scope, errors: &mut Vec<ParseError>) {
    let code = &thread.instructions;
    let half = |kind: &InstructionKind| match kind {
        InstructionKind::SplitBarrier(barrier) if barrier.execution_scope == scope => Some(barrier.half),
        _ => None,
    };
    if !code.iter().any(|instruction| half(&instruction.kind).is_some()) {
        return;
    }
    // The possible last events before each instruction.
    let mut before: Vec<LastEvents> = vec![0; code.len() + 1];
    before[0] = NO_EVENT;
    let mut open = vec![0];
    while let Some(at) = open.pop() {
        let Some(instruction) = code.get(at) else { continue };
        let after = match half(&instruction.kind) {
            Some(SplitHalf::Arrive) => ARRIVED,
            Some(SplitHalf::Wait) => WAITED,
            None => before[at],
        };
        let next = match &instruction.kind {
            InstructionKind::Flow(Flow::Goto(target)) => [thread.label_index(*target), None],
            kind => [kind.jump_target().and_then(|target| thread.label_index(target)), Some(at + 1)],
        };
        for next in next.into_iter().flatten() {
            if before[next] | after != before[next] {
                before[next] |= after;
                open.push(next);
            }
        }
    }
    for (instruction, last_events) in code.iter().zip(before) {
        let span = instruction.span;
        match half(&instruction.kind) {
            Some(SplitHalf::Wait) if last_events & NO_EVENT != 0 => {
                errors.push(ParseError::WaitWithoutArrival { span })
            }
            Some(SplitHalf::Wait) if last_events & WAITED != 0 => {
                errors.push(ParseError::SecondWait { span })
            }
            Some(SplitHalf::Arrive) if last_events & ARRIVED != 0 => {
                errors.push(ParseError::SecondArrival { span })
            }
            _ => {}
        }
    }
}
