//! The cheapest strengthening of a program after which nothing races.

use std::collections::HashSet;
use std::time::Instant;

use litmus::{InstructionKind, Race, Span, Test, ThreadId};

use super::ExplainOptions;
use super::strengthen::Reach;
use crate::search::Deadline;
use crate::{Model, Options, PredictError, predict};

/// What the search for a mend found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mend {
    /// The fewest changes that mend the program; of several such, the ones that ask for least.
    Found {
        /// The changed lines.
        changes: Vec<Change>,
        /// Whether the explained outcome is then allowed; `None` when that was not found out in time.
        allowed: Option<bool>,
    },
    /// No combination of up to so many changes mends it.
    None {
        /// Up to how many changes.
        steps: usize,
    },
    /// The search was cut short by its bounds.
    Cut {
        /// Combinations of up to so many changes were all tried.
        steps: usize,
        /// How many programs were tried.
        programs: usize,
    },
}

/// A changed line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The thread, counted from 0.
    pub thread: usize,
    /// Where the instruction stands.
    pub span: Span,
    /// The instruction as it is.
    pub before: String,
    /// The instruction as it should be.
    pub after: String,
}

/// One combination of steps: for each instruction that has one, its stronger form.
#[derive(Clone)]
struct Strengthened {
    changes: Vec<((usize, usize), InstructionKind)>,
    weight: u32,
}

/// Searches level by level: all programs that are one step stronger, then two, …
///
/// # Errors
/// As [`predict`].
pub(super) fn mend(
    test: &Test,
    model: &Model,
    options: &ExplainOptions,
    deadline: Deadline,
) -> Result<Mend, PredictError> {
    let reach = Reach::of(test);
    let places: Vec<(usize, usize)> = test
        .threads
        .iter()
        .enumerate()
        .flat_map(|(thread, found)| (0..found.instructions.len()).map(move |index| (thread, index)))
        .collect();
    let mut level = vec![Strengthened { changes: Vec::new(), weight: 0 }];
    let mut seen: HashSet<Vec<((usize, usize), String)>> = HashSet::new();
    let mut programs = 0;
    for step in 1..=options.mend_steps {
        let mut next = Vec::new();
        let mut best: Option<(u32, Strengthened, Option<bool>)> = None;
        for base in &level {
            for place in &places {
                let changed = base.changes.iter().find(|(at, _)| at == place).map(|(_, kind)| kind);
                let Some(original) = instruction(test, *place) else { continue };
                for stronger in reach.steps(changed.unwrap_or(original)) {
                    let mut changes = base.changes.clone();
                    changes.retain(|(at, _)| at != place);
                    changes.push((*place, stronger.kind));
                    changes.sort_by_key(|(at, _)| *at);
                    let key = changes
                        .iter()
                        .map(|(at, kind)| (*at, kind.text(test, ThreadId(at.0 as u16))))
                        .collect();
                    if !seen.insert(key) {
                        continue;
                    }
                    if programs >= options.mend_programs || deadline.passed() {
                        return Ok(match best {
                            Some((_, found, allowed)) => describe(test, &found, allowed),
                            None => Mend::Cut { steps: step - 1, programs },
                        });
                    }
                    programs += 1;
                    let made = Strengthened { changes, weight: base.weight + stronger.weight };
                    if best.as_ref().is_some_and(|(weight, ..)| *weight <= made.weight) {
                        continue;
                    }
                    let timeout = deadline.0.map(|end| end.saturating_duration_since(Instant::now()));
                    let asked = Options { timeout, unroll: options.unroll.max(1) };
                    let prediction = predict(&apply(test, &made), model, &asked)?;
                    if prediction.race == Race::Free {
                        best = Some((made.weight, made, prediction.meets));
                    } else {
                        next.push(made);
                    }
                }
            }
        }
        if let Some((_, found, allowed)) = best {
            return Ok(describe(test, &found, allowed));
        }
        level = next;
    }
    Ok(Mend::None { steps: options.mend_steps })
}

fn instruction(test: &Test, (thread, index): (usize, usize)) -> Option<&InstructionKind> {
    test.threads.get(thread)?.instructions.get(index).map(|instruction| &instruction.kind)
}

fn apply(test: &Test, strengthened: &Strengthened) -> Test {
    let mut changed = test.clone();
    for ((thread, index), kind) in &strengthened.changes {
        let instructions = changed.threads.get_mut(*thread).map(|thread| &mut thread.instructions);
        if let Some(instruction) = instructions.and_then(|list| list.get_mut(*index)) {
            instruction.kind = kind.clone();
        }
    }
    changed
}

fn describe(test: &Test, strengthened: &Strengthened, allowed: Option<bool>) -> Mend {
    let changes = strengthened.changes.iter().filter_map(|((thread, index), kind)| {
        let original = test.threads.get(*thread)?.instructions.get(*index)?;
        let id = ThreadId(u16::try_from(*thread).ok()?);
        Some(Change {
            thread: *thread,
            span: original.span,
            before: original.kind.text(test, id),
            after: kind.text(test, id),
        })
    });
    Mend::Found { changes: changes.collect(), allowed }
}
