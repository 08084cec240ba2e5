//! Converts jumps to structured control flow.
//!
//! SPIR-V for shaders requires nested selections. Jumps that nest become selections. Otherwise a variable
//! contains the target of the last jump, and every block runs under the condition that the target is not
//! after it. For backward jumps, the blocks in between form a loop with a bound: an iteration runs its blocks once
//! in order, and a backward jump skips the rest of the iteration.

use std::ops::Range;

use litmus::{Flow, InstructionKind, Thread};

/// The maximum nesting of selections, so that neither this crate nor a driver's compiler overflows its stack.
/// Deeper code uses the jump variable.
const NESTING_LIMIT: usize = 32;

/// A step of structured code. Positions are those of the thread's instructions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StructuredStep {
    /// The instruction at this position, which is neither a jump nor a label.
    Execute(usize),
    /// The branch at this position.
    Select {
        /// Position of the branch.
        branch: usize,
        /// The steps if it is taken.
        taken: Vec<StructuredStep>,
        /// The steps if it is not.
        otherwise: Vec<StructuredStep>,
    },
    /// Sets the jump variable to `to` if the jump at `at` is taken.
    Jump {
        /// Position of the goto or branch.
        at: usize,
        /// Position of its label.
        to: usize,
    },
    /// Runs if the jump variable is at most `from`.
    Block {
        /// Position of the block's first instruction.
        from: usize,
        body: Vec<StructuredStep>,
    },
    /// Repeats its blocks while one of their backward jumps is taken, up to the bound.
    Loop(Vec<StructuredStep>),
}

/// Structures the code of `body`, whose jumps stay within it.
pub(crate) fn structure_control_flow(thread: &Thread, body: Range<usize>) -> Vec<StructuredStep> {
    let exit = body.end;
    if has_loop(thread) {
        return predicate_blocks(thread, body, true);
    }
    nest_selections(thread, body.clone(), exit, 0).unwrap_or_else(|| predicate_blocks(thread, body, false))
}

/// Returns true if the thread has a backward jump.
pub(crate) fn has_loop(thread: &Thread) -> bool {
    !find_loops(thread).is_empty()
}

/// Returns the loops of a thread, each from its first label to after its last backward jump. Adjacent and
/// overlapping loops are merged.
pub(crate) fn find_loops(thread: &Thread) -> Vec<Range<usize>> {
    let back = (0..thread.instructions.len())
        .filter_map(|at| jump_target(thread, at).filter(|to| *to <= at).map(|to| to..at + 1));
    let mut found: Vec<Range<usize>> = back.collect();
    found.sort_by_key(|region| region.start);
    let mut merged: Vec<Range<usize>> = Vec::new();
    for region in found {
        match merged.last_mut() {
            Some(last) if region.start < last.end => last.end = last.end.max(region.end),
            _ => merged.push(region),
        }
    }
    merged
}

/// Returns the steps before the first loop, between loops, and after the last one. Loops are outside of all
/// selections.
pub(crate) fn split_at_loops(steps: &[StructuredStep]) -> Vec<&[StructuredStep]> {
    steps.split(|step| matches!(step, StructuredStep::Loop(_))).collect()
}

/// Returns the loop after the part with this number.
pub(crate) fn loop_after(steps: &[StructuredStep], number: usize) -> Option<&[StructuredStep]> {
    let mut loops = steps.iter().filter_map(|step| match step {
        StructuredStep::Loop(blocks) => Some(blocks.as_slice()),
        _ => None,
    });
    loops.nth(number)
}

/// Returns true if the code needs the jump variable. Blocks and jumps are outside of all selections.
pub(crate) fn needs_jump_variable(steps: &[StructuredStep]) -> bool {
    steps.iter().any(|step| {
        matches!(step, StructuredStep::Block { .. } | StructuredStep::Jump { .. } | StructuredStep::Loop(_))
    })
}

/// Returns the target of the jump at `position`, if there is one.
fn jump_target(thread: &Thread, position: usize) -> Option<usize> {
    match thread.instructions.get(position).map(|instruction| &instruction.kind) {
        Some(InstructionKind::Flow(Flow::Goto(target) | Flow::Branch { target, .. })) => {
            thread.label_index(*target)
        }
        _ => None,
    }
}

/// Returns nested selections for `range`, after which execution continues at `exit`; `None` if they do not
/// nest.
///
/// Every jump is used by the only pattern that it forms with its target. A jump into the middle of a
/// selection from outside needs no check: its own region would end before the selection does, so that the
/// selection's jump would leave that region.
fn nest_selections(
    thread: &Thread,
    range: Range<usize>,
    exit: usize,
    depth: usize,
) -> Option<Vec<StructuredStep>> {
    if depth > NESTING_LIMIT {
        return None;
    }
    // A jump to the exit is a jump to the end.
    let within = |target: usize| match target {
        target if target == exit => Some(range.end),
        target if target <= range.end => Some(target),
        _ => None,
    };
    let mut steps = Vec::new();
    let mut position = range.start;
    while position < range.end {
        match &thread.instructions.get(position)?.kind {
            InstructionKind::Flow(Flow::Label(_)) => position += 1,
            // The code in between is dead.
            InstructionKind::Flow(Flow::Goto(_)) => position = within(jump_target(thread, position)?)?,
            InstructionKind::Flow(Flow::Branch { .. }) => {
                let target = jump_target(thread, position)?;
                let to = within(target)?;
                let skipped = position + 1..to;
                let last_goes_to =
                    skipped.end.checked_sub(1).filter(|last| skipped.contains(last)).and_then(|last| {
                        let is_goto = matches!(
                            thread.instructions.get(last)?.kind,
                            InstructionKind::Flow(Flow::Goto(_))
                        );
                        if is_goto && to == target { jump_target(thread, last) } else { None }
                    });
                let (otherwise, taken, next) = match last_goes_to {
                    // `branch L; A; goto M; L: B; M:` runs A or B.
                    Some(after) => {
                        let end = within(after)?;
                        let otherwise = nest_selections(thread, skipped.start..to - 1, after, depth + 1)?;
                        (otherwise, nest_selections(thread, to..end, after, depth + 1)?, end)
                    }
                    None => (nest_selections(thread, skipped, target, depth + 1)?, Vec::new(), to),
                };
                if !(taken.is_empty() && otherwise.is_empty()) {
                    steps.push(StructuredStep::Select { branch: position, taken, otherwise });
                }
                position = next;
            }
            _ => {
                steps.push(StructuredStep::Execute(position));
                position += 1;
            }
        }
    }
    Some(steps)
}

/// Returns every block under its condition, without unreachable ones. With `guard_first`, the first block
/// has a condition too, because a thread that reached a loop bound runs none.
fn predicate_blocks(thread: &Thread, range: Range<usize>, guard_first: bool) -> Vec<StructuredStep> {
    let loops = find_loops(thread);
    let mut leaders = vec![range.start];
    for position in range.clone() {
        if let Some(target) = jump_target(thread, position) {
            leaders.push(target);
            leaders.push(position + 1);
        }
    }
    leaders.sort_unstable();
    leaders.dedup();
    leaders.retain(|leader| *leader < range.end);
    let kind = |position: usize| thread.instructions.get(position).map(|instruction| &instruction.kind);
    let end_of = |index: usize| leaders.get(index + 1).copied().unwrap_or(range.end);
    let is_goto = |position| matches!(kind(position), Some(InstructionKind::Flow(Flow::Goto(_))));
    let mut reached = Vec::new();
    let mut worklist = vec![range.start];
    while let Some(from) = worklist.pop() {
        let Some(index) = leaders.iter().position(|leader| *leader == from) else { continue };
        if reached.contains(&from) {
            continue;
        }
        reached.push(from);
        let to = end_of(index);
        worklist.extend((from..to).filter_map(|position| jump_target(thread, position)));
        if !to.checked_sub(1).is_some_and(is_goto) {
            worklist.push(to);
        }
    }
    let mut steps = Vec::new();
    let loop_of = |position: usize| loops.iter().position(|region| region.contains(&position));
    // The blocks of the current loop.
    let mut current_loop: Option<(usize, Vec<StructuredStep>)> = None;
    for (index, from) in leaders.iter().enumerate() {
        if current_loop.as_ref().is_some_and(|(region, _)| loop_of(*from) != Some(*region)) {
            steps.extend(current_loop.take().map(|(_, blocks)| StructuredStep::Loop(blocks)));
        }
        if !reached.contains(from) {
            continue;
        }
        let mut body = Vec::new();
        for position in *from..end_of(index) {
            match kind(position) {
                Some(InstructionKind::Flow(Flow::Label(_))) | None => {}
                Some(InstructionKind::Flow(Flow::Goto(_) | Flow::Branch { .. })) => {
                    body.extend(
                        jump_target(thread, position).map(|to| StructuredStep::Jump { at: position, to }),
                    );
                }
                Some(_) => body.push(StructuredStep::Execute(position)),
            }
        }
        if index == 0 && !guard_first {
            steps.extend(body);
        } else if !body.is_empty() {
            let block = StructuredStep::Block { from: *from, body };
            match loop_of(*from) {
                Some(region) => current_loop.get_or_insert((region, Vec::new())).1.push(block),
                None => steps.push(block),
            }
        }
    }
    steps.extend(current_loop.map(|(_, blocks)| StructuredStep::Loop(blocks)));
    steps
}
