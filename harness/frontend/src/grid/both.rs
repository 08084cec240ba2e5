//! Branches on values that are not computed: both ways are gone, as far as nobody else sees which.

use rspirv::spirv::Op;

use crate::error::Place;

use super::machine::{Here, Invocation, Machine, Step, Stop};
use super::program::Inst;
use super::value::{OPAQUE, Pointer, Value};

/// Steps of one way at most.
const MAX_STEPS: u32 = 100_000;

/// A value that is one or the other.
fn either(one: &Value, other: &Value) -> Value {
    match (one, other) {
        (Value::Bits(a, x), Value::Bits(b, y)) => Value::Bits(*b, x | y | if a == b { 0 } else { OPAQUE }),
        (Value::Many(a), Value::Many(b)) if a.len() == b.len() => {
            Value::many(a.iter().zip(b.iter()).map(|(a, b)| either(a, b)))
        }
        (Value::Pointer(a), Value::Pointer(b)) => {
            let same = (a.object, a.offset, a.ty) == (b.object, b.offset, b.ty);
            let taint = a.taint | b.taint | if same { 0 } else { OPAQUE };
            Value::Pointer(Pointer { taint, ..*b })
        }
        (Value::Image(a, x), Value::Image(b, y)) if (a, x) == (b, y) => Value::Image(*a, *x),
        _ => Value::Nothing(one.taint() | other.taint() | OPAQUE),
    }
}

/// The state behind a branch of which the one or the other way was gone.
fn joined(one: &Invocation, mut other: Invocation) -> Option<Invocation> {
    if one.frames.len() != other.frames.len() || one.locals.len() != other.locals.len() {
        return None;
    }
    for (a, b) in one.frames.iter().zip(&mut other.frames) {
        if (a.at, a.block, &a.loops) != (b.at, b.block, &b.loops) {
            return None;
        }
        for (a, b) in a.values.iter().zip(&mut b.values) {
            *b = either(a, b);
        }
    }
    for (a, b) in one.locals.iter().zip(other.locals.live_mut()) {
        if a.bytes == b.bytes && a.taint == b.taint {
            continue;
        }
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

impl Machine<'_> {
    /// Goes both ways of a branch to where they meet; or on, where the one way discards.
    pub(super) fn both_ways(&mut self, here: &mut Here<'_>, inst: &Inst) -> Step<()> {
        for (way, other) in [(1, 2), (2, 1)] {
            if self.discards(here, self.program.module.operand(&inst.raw, way)?) {
                let place = self.place(self.site_of(&here.workgroup.invocations[here.index]));
                let note = match place {
                    Place::Line(line) => {
                        format!("nobody is discarded at line {line}, whose condition is not followed")
                    }
                    _ => "nobody is discarded by a condition that is not followed".to_owned(),
                };
                self.notes.insert(note);
                let target = self.program.module.operand(&inst.raw, other)?;
                return self.jump(here, target);
            }
        }
        let begun = here.me().clone();
        let gone = self.gone_both_ways(here, inst, &begun);
        if gone.is_err() {
            // What is wrong is told of the branch.
            *here.me() = begun;
        }
        gone
    }

    /// Whether an invocation does nothing in a block but end as a helper.
    fn discards(&self, here: &Here<'_>, target: u32) -> bool {
        let Some(frame) = here.workgroup.invocations[here.index].frames.last() else { return false };
        let function = &self.program.functions[frame.function];
        let first = function.labels.get(&target).and_then(|label| function.code.get(label + 1));
        first.is_some_and(|first| {
            matches!(first.raw.op, Op::Kill | Op::TerminateInvocation | Op::DemoteToHelperInvocation)
        })
    }

    fn gone_both_ways(&mut self, here: &mut Here<'_>, inst: &Inst, begun: &Invocation) -> Step<()> {
        let program = self.program;
        let refused = self.opaque("a condition");
        let refuse = || Stop::Refused(refused.clone());
        let depth = begun.frames.len();
        let frame = begun.frames.last().ok_or(Stop::Ended)?;
        let code = &program.functions[frame.function].code;
        let header = frame.at.checked_sub(1).and_then(|at| code.get(at));
        let header = header.filter(|inst| inst.raw.op == Op::SelectionMerge).ok_or_else(refuse)?;
        let merge = program.module.operand(&header.raw, 0)?;
        let seen = (self.accesses, self.events, self.found.len());
        let mut ways = Vec::new();
        for index in [1, 2] {
            *here.me() = begun.clone();
            let target = program.module.operand(&inst.raw, index)?;
            self.jump(here, target)?;
            for step in 0.. {
                let me = here.me();
                let arrived =
                    me.frames.len() == depth && me.frames.last().is_some_and(|frame| frame.block == merge);
                if arrived {
                    break;
                }
                if step > MAX_STEPS || me.frames.len() < depth {
                    return Err(refuse());
                }
                match self.step(here) {
                    Ok(()) => {}
                    Err(Stop::Refused(problem)) => return Err(Stop::Refused(problem)),
                    Err(_) => return Err(refuse()),
                }
            }
            // Others would see which way it was.
            if seen != (self.accesses, self.events, self.found.len()) {
                self.found.truncate(seen.2);
                return Err(refuse());
            }
            ways.push(here.me().clone());
        }
        let (Some(other), Some(one)) = (ways.pop(), ways.pop()) else { return Err(refuse()) };
        *here.me() = joined(&one, other).ok_or_else(refuse)?;
        Ok(())
    }
}
