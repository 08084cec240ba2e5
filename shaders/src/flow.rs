//! Forward jumps as structured control flow.
//!
//! SPIR-V for shaders wants nested selections. Jumps that nest become selections. Where they do not, a variable holds
//! the place that the last jump went to, and every block runs under the condition that it lies there or later.

use std::ops::Range;

use litmus::{InstructionKind, Thread};

use crate::rules::label_position;

/// Selections nest at most this deep, so that neither this crate nor a driver's compiler runs out of stack; deeper code
/// uses the jump variable.
const NESTING_LIMIT: usize = 32;

/// A step of structured code. Positions are those of the thread's instructions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The instruction at this position, which is neither a jump nor a label.
    Do(usize),
    /// The branch at this position.
    Select {
        /// Position of the branch.
        branch: usize,
        /// What runs when it is taken.
        taken: Vec<Step>,
        /// What runs when it is not.
        otherwise: Vec<Step>,
    },
    /// Sets the jump variable to `to` where the jump at `at` is taken.
    Jump {
        /// Position of the goto or branch.
        at: usize,
        /// Position of its label.
        to: usize,
    },
    /// Runs where the jump variable is at most `from`.
    Block {
        /// Position of the block's first instruction.
        from: usize,
        /// The block.
        body: Vec<Step>,
    },
}

/// The code of `body`, whose jumps stay within it and go forward.
pub(crate) fn structure(thread: &Thread, body: Range<usize>) -> Vec<Step> {
    let exit = body.end;
    nest(thread, body.clone(), exit, 0).unwrap_or_else(|| predicate(thread, body))
}

/// Whether the code needs the jump variable. Blocks and jumps stand outside all selections.
pub(crate) fn needs_jump_variable(steps: &[Step]) -> bool {
    steps.iter().any(|step| matches!(step, Step::Block { .. } | Step::Jump { .. }))
}

/// Where the jump at `position` goes; `None` where there is no jump.
fn target_of(thread: &Thread, position: usize) -> Option<usize> {
    match thread.instructions.get(position).map(|instruction| &instruction.kind) {
        Some(InstructionKind::Goto(target) | InstructionKind::Branch { target, .. }) => {
            label_position(thread, *target)
        }
        _ => None,
    }
}

/// Nested selections for `range`, behind which execution goes on at `exit`; `None` where they do not nest.
///
/// Every jump is used up by the one pattern that it forms with its own target. A jump into the middle of a selection from
/// elsewhere therefore needs no search: its own region would end before the selection does, and the selection's jump
/// would leave that region.
fn nest(thread: &Thread, range: Range<usize>, exit: usize, depth: usize) -> Option<Vec<Step>> {
    if depth > NESTING_LIMIT {
        return None;
    }
    // Going to the exit is going to the end.
    let within = |target: usize| match target {
        target if target == exit => Some(range.end),
        target if target <= range.end => Some(target),
        _ => None,
    };
    let mut steps = Vec::new();
    let mut position = range.start;
    while position < range.end {
        match &thread.instructions.get(position)?.kind {
            InstructionKind::Label(_) => position += 1,
            // What lies between is dead.
            InstructionKind::Goto(_) => position = within(target_of(thread, position)?)?,
            InstructionKind::Branch { .. } => {
                let target = target_of(thread, position)?;
                let to = within(target)?;
                let over = position + 1..to;
                let last_goes_to =
                    over.end.checked_sub(1).filter(|last| over.contains(last)).and_then(|last| {
                        let is_goto = matches!(thread.instructions.get(last)?.kind, InstructionKind::Goto(_));
                        if is_goto && to == target { target_of(thread, last) } else { None }
                    });
                let (otherwise, taken, next) = match last_goes_to {
                    // `branch L; A; goto M; L: B; M:` runs A or B.
                    Some(after) => {
                        let end = within(after)?;
                        let otherwise = nest(thread, over.start..to - 1, after, depth + 1)?;
                        (otherwise, nest(thread, to..end, after, depth + 1)?, end)
                    }
                    None => (nest(thread, over, target, depth + 1)?, Vec::new(), to),
                };
                if !(taken.is_empty() && otherwise.is_empty()) {
                    steps.push(Step::Select { branch: position, taken, otherwise });
                }
                position = next;
            }
            _ => {
                steps.push(Step::Do(position));
                position += 1;
            }
        }
    }
    Some(steps)
}

/// Every block under its condition; blocks that nothing reaches are left out.
fn predicate(thread: &Thread, range: Range<usize>) -> Vec<Step> {
    let mut leaders = vec![range.start];
    for position in range.clone() {
        if let Some(target) = target_of(thread, position) {
            leaders.push(target);
            leaders.push(position + 1);
        }
    }
    leaders.sort_unstable();
    leaders.dedup();
    leaders.retain(|leader| *leader < range.end);
    let kind = |position: usize| thread.instructions.get(position).map(|instruction| &instruction.kind);
    let mut reached = vec![range.start];
    let mut steps = Vec::new();
    for (index, from) in leaders.iter().enumerate() {
        if !reached.contains(from) {
            continue;
        }
        let to = leaders.get(index + 1).copied().unwrap_or(range.end);
        let mut body = Vec::new();
        for position in *from..to {
            match kind(position) {
                Some(InstructionKind::Label(_)) | None => {}
                Some(InstructionKind::Goto(_) | InstructionKind::Branch { .. }) => {
                    if let Some(to) = target_of(thread, position) {
                        reached.push(to);
                        body.push(Step::Jump { at: position, to });
                    }
                }
                Some(_) => body.push(Step::Do(position)),
            }
        }
        if !matches!(to.checked_sub(1).and_then(kind), Some(InstructionKind::Goto(_))) {
            reached.push(to);
        }
        if index == 0 {
            steps.extend(body);
        } else if !body.is_empty() {
            steps.push(Step::Block { from: *from, body });
        }
    }
    steps
}
