//! Cuts the threads at their control barriers, so that all invocations of a workgroup meet in one instruction.
//!
//! A barrier that only some lanes reach is undefined, so threads cannot each execute their own: the kernel runs every
//! thread's code up to its first barrier, then one barrier for all, then the next segment.

use std::ops::Range;

use litmus::{ControlBarrier, Flow, InstructionKind, Order, Scope, Semantics, Test, Thread};

use crate::placement::Layout;
use crate::rules::{Rule, label_position};

/// A segment and the barrier that ends it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    /// What the threads do, in their order; threads with nothing to do are left out.
    pub parts: Vec<Part>,
    /// The barrier behind it; the last segment has none.
    pub barrier: Option<Meeting>,
}

/// What one thread does in a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// Index of the thread.
    pub thread: usize,
    /// A memory barrier before the code: the acquiring half of the control barrier before this segment.
    pub acquire: Option<(Scope, Semantics)>,
    /// Its instructions.
    pub body: Range<usize>,
    /// A memory barrier behind the code: the releasing half of the control barrier behind this segment.
    pub release: Option<(Scope, Semantics)>,
    /// The thread begins here.
    pub first: bool,
    /// The thread ends here.
    pub last: bool,
}

impl Part {
    fn new(thread: usize) -> Part {
        Part { thread, acquire: None, body: 0..0, release: None, first: false, last: false }
    }

    fn does_something(&self) -> bool {
        self.acquire.is_some() || self.release.is_some() || self.first || self.last || !self.body.is_empty()
    }
}

/// A control barrier for all invocations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Meeting {
    /// Workgroup or Subgroup.
    pub execution: Scope,
    /// Memory scope.
    pub memory: Scope,
    /// Relaxed where the barrier is no memory barrier.
    pub semantics: Semantics,
}

/// What a thread does between two of its barriers, and the barrier that ends it.
struct Piece<'a> {
    body: Range<usize>,
    end: Option<&'a ControlBarrier>,
}

/// A thread between two workgroup barriers: all pieces but the last end at a subgroup barrier.
type Stretch<'a> = Vec<Piece<'a>>;

/// Cuts the threads of a test that [`rules::check`](crate::rules::check) accepts.
///
/// A control barrier on which all threads agree is one instruction. Where scopes or semantics differ between the
/// threads, or where a thread that does not take part has not ended, it is a control barrier without semantics between
/// the memory barriers of the threads that meet: a control barrier may itself be the release barrier, the acquire
/// barrier, both or neither of the pair around it (clause VK-SW-10).
pub(crate) fn cut(test: &Test, layout: &Layout) -> Result<Vec<Segment>, Rule> {
    let threads = test.threads.iter().map(stretches).collect::<Result<Vec<_>, _>>()?;
    check_even(&threads, layout)?;

    // Stretch s of every thread lies in the segments from starts[s] on; starts has one more entry for the end.
    let mut starts = vec![0];
    let mut segment_count = 0;
    for stretch in 0..threads.iter().map(Vec::len).max().unwrap_or(1) {
        segment_count +=
            threads.iter().filter_map(|thread| thread.get(stretch)).map(Vec::len).max().unwrap_or(1);
        starts.push(segment_count);
    }
    let mut parts: Vec<Vec<Part>> =
        (0..segment_count).map(|_| (0..threads.len()).map(Part::new).collect()).collect();
    let mut arrivals: Vec<Vec<(usize, &ControlBarrier)>> = vec![Vec::new(); segment_count];
    let mut ends = vec![0; threads.len()];
    for (index, thread) in threads.iter().enumerate() {
        for (stretch, bounds) in thread.iter().zip(starts.windows(2)) {
            let &[start, end] = bounds else { continue };
            for (piece, segment) in stretch.iter().zip(start..) {
                parts[segment][index].body = piece.body.clone();
                ends[index] = segment;
                if let Some(barrier) = piece.end {
                    // A thread waits for the workgroup behind the last segment of the stretch: other subgroups may
                    // meet more often before it.
                    let at = if barrier.execution_scope == Scope::Workgroup { end - 1 } else { segment };
                    arrivals[at].push((index, barrier));
                }
            }
        }
        parts[0][index].first = true;
        parts[ends[index]][index].last = true;
    }

    let mut barriers = Vec::with_capacity(segment_count);
    for (segment, arrived) in arrivals.iter().enumerate() {
        let Some((_, model)) = arrived.first() else {
            barriers.push(None);
            continue;
        };
        let agree = arrived.iter().all(|(_, barrier)| {
            barrier.memory_scope == model.memory_scope && barrier.semantics == model.semantics
        });
        let others_ended = (0..threads.len())
            .all(|thread| ends[thread] <= segment || arrived.iter().any(|(index, _)| *index == thread));
        let execution = model.execution_scope;
        if agree && others_ended {
            let semantics = model.semantics.unwrap_or(Semantics::RELAXED);
            barriers.push(Some(Meeting { execution, memory: model.memory_scope, semantics }));
            continue;
        }
        for (thread, barrier) in arrived {
            let semantics = barrier.semantics.unwrap_or(Semantics::RELAXED);
            if semantics.order.releases() {
                let half = Semantics { order: Order::Release, make_visible: false, ..semantics };
                parts[segment][*thread].release = Some((barrier.memory_scope, half));
            }
            if semantics.order.acquires()
                && let Some(after) = parts.get_mut(segment + 1)
            {
                let half = Semantics { order: Order::Acquire, make_available: false, ..semantics };
                after[*thread].acquire = Some((barrier.memory_scope, half));
            }
        }
        barriers.push(Some(Meeting { execution, memory: Scope::Invocation, semantics: Semantics::RELAXED }));
    }
    Ok(parts
        .into_iter()
        .zip(barriers)
        .map(|(parts, barrier)| Segment {
            parts: parts.into_iter().filter(Part::does_something).collect(),
            barrier,
        })
        .collect())
}

/// Cuts one thread at its control barriers.
fn stretches(thread: &Thread) -> Result<Vec<Stretch<'_>>, Rule> {
    let mut stretches = Vec::new();
    let mut stretch = Vec::new();
    let mut start = 0;
    let loops = crate::flow::loops(thread);
    // The farthest place that a jump so far goes to.
    let mut reach = 0;
    let mut seen: Vec<&str> = Vec::new();
    for (position, instruction) in thread.instructions.iter().enumerate() {
        match &instruction.kind {
            InstructionKind::Flow(Flow::Goto(target) | Flow::Branch { target, .. }) => {
                let nowhere = Rule::Internal("a jump to a label that stands nowhere");
                reach = reach.max(label_position(thread, *target).ok_or(nowhere)?);
            }
            InstructionKind::ControlBarrier(barrier) => {
                if reach > position || loops.iter().any(|region| region.contains(&position)) {
                    return Err(Rule::GuardedBarrier);
                }
                if seen.contains(&barrier.id.as_str()) {
                    return Err(Rule::RepeatedBarrier);
                }
                seen.push(&barrier.id);
                stretch.push(Piece { body: start..position, end: Some(barrier) });
                if barrier.execution_scope == Scope::Workgroup {
                    stretches.push(std::mem::take(&mut stretch));
                }
                start = position + 1;
            }
            _ => {}
        }
    }
    stretch.push(Piece { body: start..thread.instructions.len(), end: None });
    stretches.push(stretch);
    Ok(stretches)
}

/// Whether the threads of each workgroup meet in the same workgroup barriers in the same order, and between those the
/// threads of each subgroup in the same subgroup barriers.
fn check_even(threads: &[Vec<Stretch<'_>>], layout: &Layout) -> Result<(), Rule> {
    for (role, thread) in layout.roles.iter().zip(threads) {
        for (other, with) in layout.roles.iter().zip(threads) {
            if role.class != other.class {
                continue;
            }
            let workgroup_barriers = |stretches: &[Stretch<'_>]| -> Vec<Option<String>> {
                stretches.iter().map(|stretch| instance(stretch.last())).collect()
            };
            if workgroup_barriers(thread) != workgroup_barriers(with) {
                return Err(Rule::UnevenBarrier);
            }
            let same_instances = |left: &Stretch<'_>, right: &Stretch<'_>| {
                left.len() == right.len()
                    && left.iter().zip(right).all(|(l, r)| instance(Some(l)) == instance(Some(r)))
            };
            if role.subgroup == other.subgroup
                && !thread.iter().zip(with).all(|(left, right)| same_instances(left, right))
            {
                return Err(Rule::UnevenBarrier);
            }
        }
    }
    Ok(())
}

fn instance(piece: Option<&Piece<'_>>) -> Option<String> {
    piece.and_then(|piece| piece.end).map(|barrier| barrier.id.clone())
}
