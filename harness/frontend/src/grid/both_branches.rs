//! Branches on values that the walk does not compute: both sides are executed and joined.
//!
//! This is sound only if no other invocation can observe which side was taken. A side that accesses shared
//! memory, synchronizes or reports a finding makes the walk refuse the kernel.

use spirv_reader::SpirvOperation;

use crate::error::SourcePosition;

use super::state::{Interpreter, Invocation, InvocationCtx};
use super::step::{Step, StepInterrupt};
use super::value::{ConcretePointer, ConcreteValue, OPAQUE};

/// Upper bound on the steps of one side.
const MAX_BRANCH_STEPS: u32 = 100_000;

/// Joins the values of both sides; components that differ become opaque.
fn join_values(one: &ConcreteValue, other: &ConcreteValue) -> ConcreteValue {
    match (one, other) {
        (ConcreteValue::Bits(a, x), ConcreteValue::Bits(b, y)) => {
            // A value that differs between the branches is unknown.
            ConcreteValue::Bits(*b, x | y | if a == b { 0 } else { OPAQUE })
        }
        (ConcreteValue::Composite(a), ConcreteValue::Composite(b)) if a.len() == b.len() => {
            ConcreteValue::from_components(a.iter().zip(b.iter()).map(|(a, b)| join_values(a, b)))
        }
        (ConcreteValue::Pointer(a), ConcreteValue::Pointer(b)) => {
            let same = (a.object, a.offset, a.ty) == (b.object, b.offset, b.ty);
            let taint = a.taint | b.taint | if same { 0 } else { OPAQUE };
            ConcreteValue::Pointer(ConcretePointer { taint, ..*b })
        }
        (ConcreteValue::Image(a, x), ConcreteValue::Image(b, y)) if (a, x) == (b, y) => {
            ConcreteValue::Image(*a, *x)
        }
        _ => ConcreteValue::NoBits(one.combined_taint() | other.combined_taint() | OPAQUE),
    }
}

/// Joins the states of both sides at the merge block.
fn join_invocations(one: &Invocation, mut other: Invocation) -> Option<Invocation> {
    if one.frames.len() != other.frames.len() || one.locals.len() != other.locals.len() {
        return None;
    }
    for (a, b) in one.frames.iter().zip(&mut other.frames) {
        if (a.at, a.block, &a.loops) != (b.at, b.block, &b.loops) {
            return None;
        }
        for (a, b) in a.values.iter().zip(&mut b.values) {
            *b = join_values(a, b);
        }
    }
    for (a, b) in one.locals.iter().zip(other.locals.as_mut_slice()) {
        if a.bytes == b.bytes && a.taint == b.taint {
            continue;
        }
        // An empty list stands for zeros.
        if b.taint.is_empty() {
            b.taint = vec![0; b.bytes.len()];
        }
        for at in 0..b.bytes.len() {
            let differs = a.bytes.get(at) != b.bytes.get(at);
            b.taint[at] |= a.taint.get(at).copied().unwrap_or(0) | if differs { OPAQUE } else { 0 };
        }
    }
    Some(other)
}

impl Interpreter<'_> {
    /// Executes both sides of a branch up to the merge block. If one side discards, only the other is taken.
    pub(super) fn execute_both_branches(
        &mut self,
        here: &mut InvocationCtx<'_>,
        [yes, no]: [u32; 2],
    ) -> Step<()> {
        for (way, other) in [(yes, no), (no, yes)] {
            if self.is_discard_block(here, way) {
                let place = self.source_position(self.current_site(&here.workgroup.invocations[here.index]));
                let note = match place {
                    SourcePosition::Line(line) => {
                        format!("no fragment is discarded at line {line}, whose condition is not evaluated")
                    }
                    _ => "no fragment is discarded by a condition that is not evaluated".to_owned(),
                };
                self.notes.insert(note);
                return self.jump_to(here, other);
            }
        }
        let begun = here.invocation_mut().clone();
        let gone = self.try_both_branches(here, [yes, no], &begun);
        if gone.is_err() {
            // The refusal is reported at the branch.
            *here.invocation_mut() = begun;
        }
        gone
    }

    /// Returns true if a block only ends the invocation as a helper.
    fn is_discard_block(&self, here: &InvocationCtx<'_>, target: u32) -> bool {
        let Some(frame) = here.workgroup.invocations[here.index].frames.last() else { return false };
        let function = &self.program.functions[frame.function];
        let first = function.labels.get(&target).and_then(|label| function.code.get(label + 1));
        first.is_some_and(|first| matches!(first.operation, SpirvOperation::Kill { .. }))
    }

    fn try_both_branches(
        &mut self,
        here: &mut InvocationCtx<'_>,
        targets: [u32; 2],
        begun: &Invocation,
    ) -> Step<()> {
        let program = self.program;
        let refused = self.opaque_value_problem("a condition");
        let refuse = || StepInterrupt::Refused(refused.clone());
        let depth = begun.frames.len();
        let frame = begun.frames.last().ok_or(StepInterrupt::Ended)?;
        let code = &program.functions[frame.function].code;
        let header = frame.at.checked_sub(1).and_then(|at| code.get(at)).map(|inst| inst.operation);
        // Without a merge block there is no point at which the two sides meet.
        let Some(SpirvOperation::SelectionMerge { merge }) = header else { return Err(refuse()) };
        let seen = (self.accesses, self.events, self.findings.len());
        let mut ways = Vec::new();
        for target in targets {
            *here.invocation_mut() = begun.clone();
            self.jump_to(here, target)?;
            for step in 0.. {
                let me = here.invocation_mut();
                let arrived =
                    me.frames.len() == depth && me.frames.last().is_some_and(|frame| frame.block == merge);
                if arrived {
                    break;
                }
                if step > MAX_BRANCH_STEPS || me.frames.len() < depth {
                    return Err(refuse());
                }
                match self.step_once(here) {
                    Ok(()) => {}
                    Err(StepInterrupt::Refused(problem)) => return Err(StepInterrupt::Refused(problem)),
                    Err(_) => return Err(refuse()),
                }
            }
            // Another invocation could observe which side was taken.
            if seen != (self.accesses, self.events, self.findings.len()) {
                self.findings.truncate(seen.2);
                return Err(refuse());
            }
            ways.push(here.invocation_mut().clone());
        }
        let (Some(other), Some(one)) = (ways.pop(), ways.pop()) else { return Err(refuse()) };
        *here.invocation_mut() = join_invocations(&one, other).ok_or_else(refuse)?;
        Ok(())
    }
}
