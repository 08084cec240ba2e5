//! Branches on values that the walk does not compute: both sides are executed and joined.
//!
//! This is sound only if no other invocation can observe which side was taken. A side that accesses shared
//! memory, synchronizes or reports a finding makes the walk refuse the kernel.

use spirv_reader::{SourcePosition, SpirvOperation};

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
        // An empty list represents zeros.
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
        ctx: &mut InvocationCtx<'_>,
        [yes, no]: [u32; 2],
    ) -> Step<()> {
        for (branch_target, other) in [(yes, no), (no, yes)] {
            if self.is_discard_block(ctx, branch_target) {
                let place = self.source_position(self.current_site(&ctx.workgroup.invocations[ctx.index]));
                let note = match place {
                    SourcePosition::Line(line) => {
                        format!("no fragment is discarded at line {line}, whose condition is not evaluated")
                    }
                    _ => "no fragment is discarded by a condition that is not evaluated".to_owned(),
                };
                self.notes.insert(note);
                return self.jump_to(ctx, other);
            }
        }
        let start_state = ctx.invocation_mut().clone();
        let joined = self.try_both_branches(ctx, [yes, no], &start_state);
        if joined.is_err() {
            // The refusal is reported at the branch.
            *ctx.invocation_mut() = start_state;
        }
        joined
    }

    /// Returns true if a block only ends the invocation as a helper.
    fn is_discard_block(&self, ctx: &InvocationCtx<'_>, target: u32) -> bool {
        let Some(frame) = ctx.workgroup.invocations[ctx.index].frames.last() else { return false };
        let function = &self.program.functions[frame.function];
        let first = function.labels.get(&target).and_then(|label| function.code.get(label + 1));
        first.is_some_and(|first| matches!(first.operation, SpirvOperation::Kill { .. }))
    }

    fn try_both_branches(
        &mut self,
        ctx: &mut InvocationCtx<'_>,
        targets: [u32; 2],
        start_state: &Invocation,
    ) -> Step<()> {
        let program = self.program;
        let refusal = self.opaque_value_problem("a condition");
        let refuse = || StepInterrupt::from(refusal.clone());
        let depth = start_state.frames.len();
        let frame = start_state.frames.last().ok_or(StepInterrupt::Ended)?;
        let code = &program.functions[frame.function].code;
        let header = frame.at.checked_sub(1).and_then(|at| code.get(at)).map(|inst| inst.operation);
        // Without a merge block there is no point at which the two sides meet.
        let Some(SpirvOperation::SelectionMerge { merge }) = header else { return Err(refuse()) };
        let counts_before = (self.accesses, self.events, self.findings.len());
        let mut end_states = Vec::new();
        for target in targets {
            *ctx.invocation_mut() = start_state.clone();
            self.jump_to(ctx, target)?;
            for step in 0.. {
                let invocation = ctx.invocation_mut();
                let arrived = invocation.frames.len() == depth
                    && invocation.frames.last().is_some_and(|frame| frame.block == merge);
                if arrived {
                    break;
                }
                if step > MAX_BRANCH_STEPS || invocation.frames.len() < depth {
                    return Err(refuse());
                }
                match self.step_once(ctx) {
                    Ok(()) => {}
                    Err(StepInterrupt::Refused(problem)) => return Err(StepInterrupt::Refused(problem)),
                    Err(_) => return Err(refuse()),
                }
            }
            // Another invocation could observe which side was taken.
            if counts_before != (self.accesses, self.events, self.findings.len()) {
                self.findings.truncate(counts_before.2);
                return Err(refuse());
            }
            end_states.push(ctx.invocation_mut().clone());
        }
        let (Some(other), Some(one)) = (end_states.pop(), end_states.pop()) else { return Err(refuse()) };
        *ctx.invocation_mut() = join_invocations(&one, other).ok_or_else(refuse)?;
        Ok(())
    }
}
