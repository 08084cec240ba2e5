//! Cuts threads at their control barriers and subgroup operations, so that all invocations of a workgroup
//! execute one common instruction.
//!
//! A barrier that only some lanes reach is undefined, so threads cannot each execute their own: the kernel
//! runs every thread's code up to its first barrier, then one barrier for all, then the next segment. Each
//! half of a split barrier counts as such a barrier. Only the lanes of its tangle execute a subgroup
//! operation, after all lanes have converged: between two segments. The same holds for a block with
//! operations or barriers of the subgroup that a branch skips, from the branch to its label. Interlocked
//! sections divide the code of all invocations too: before, inside and after them.

use std::ops::Range;

use litmus::{
    BlockPart, Flow, GuardedBlock, InstructionKind, InterlockEnd, Order, Scope, Semantics, SplitHalf,
    TangleInstance, Test, Thread,
};
use rspirv::spirv::Op;

use crate::placement::WorkgroupLayout;
use crate::rules::Rule;

/// A segment and the barrier that ends it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BarrierSegment {
    /// The code of the threads, in their order; threads without code are left out.
    pub parts: Vec<ThreadSegment>,
    /// The barrier after it; the last segment has none.
    pub barrier: Option<CommonBarrier>,
    /// If no barrier follows, the subgroup operation or block that does, for some lanes of a subgroup, by
    /// thread.
    pub shared: Vec<(usize, BlockPart)>,
    /// The end of the interlocked sections after it, for all invocations.
    pub interlock_end: Option<InterlockEnd>,
}

/// One thread's code in a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ThreadSegment {
    /// Index of the thread.
    pub thread: usize,
    /// A memory barrier before the code: the acquiring half of the control barrier before this segment.
    pub acquire: Option<(Scope, Semantics)>,
    pub body: Range<usize>,
    /// A memory barrier after the code: the releasing half of the control barrier after this segment.
    pub release: Option<(Scope, Semantics)>,
    /// The thread starts here.
    pub first: bool,
    /// The thread ends here.
    pub last: bool,
}

impl ThreadSegment {
    /// Creates a part with these instructions only.
    pub fn new(thread: usize, body: Range<usize>) -> ThreadSegment {
        ThreadSegment { thread, acquire: None, body, release: None, first: false, last: false }
    }

    fn is_needed(&self) -> bool {
        let orders = self.acquire.is_some() || self.release.is_some();
        orders || self.first || self.last || !self.body.is_empty()
    }
}

/// A control barrier for all invocations, or half of a split one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CommonBarrier {
    /// The half; `None` for a control barrier.
    pub half: Option<SplitHalf>,
    /// Workgroup or Subgroup.
    pub execution_scope: Scope,
    pub memory_scope: Scope,
    /// Relaxed if it is not a memory barrier.
    pub semantics: Semantics,
}

impl CommonBarrier {
    pub fn from_instruction(kind: &InstructionKind) -> Option<CommonBarrier> {
        let (half, execution, memory, semantics) = match kind {
            InstructionKind::ControlBarrier(barrier) => {
                (None, barrier.execution_scope, barrier.memory_scope, barrier.semantics)
            }
            InstructionKind::SplitBarrier(barrier) => {
                (Some(barrier.half), barrier.execution_scope, barrier.memory_scope, barrier.semantics)
            }
            _ => return None,
        };
        Some(CommonBarrier {
            half,
            execution_scope: execution,
            memory_scope: memory,
            semantics: semantics.unwrap_or(Semantics::RELAXED),
        })
    }

    /// Returns a barrier that orders no memory.
    fn without_memory(half: Option<SplitHalf>, execution: Scope) -> CommonBarrier {
        CommonBarrier {
            half,
            execution_scope: execution,
            memory_scope: Scope::Invocation,
            semantics: Semantics::RELAXED,
        }
    }

    /// Returns its instruction; split barriers have the same opcodes under both of their names.
    pub fn opcode(&self) -> Op {
        match self.half {
            None => Op::ControlBarrier,
            Some(SplitHalf::Arrive) => Op::ControlBarrierArriveINTEL,
            Some(SplitHalf::Wait) => Op::ControlBarrierWaitINTEL,
        }
    }
}

enum PieceEnd<'a> {
    Barrier(ThreadBarrier<'a>),
    /// A subgroup operation or a block, with the first instruction of the shader that its lanes execute
    /// together.
    Shared(BlockPart, TangleInstance<'a>),
}

/// The end of a piece between two workgroup barriers, by which the threads are aligned.
#[derive(Clone, Debug, PartialEq, Eq)]
enum AlignedPiece<'a> {
    /// The subgroup barrier with this index in its thread: different subgroups reach theirs at the same time.
    Barrier(usize),
    /// A subgroup operation, or a block with this first common instruction.
    Shared(TangleInstance<'a>),
}

struct ThreadBarrier<'a> {
    barrier: CommonBarrier,
    /// The instruction of the shader.
    id: &'a str,
}

impl<'a> ThreadBarrier<'a> {
    fn from_instruction(kind: &'a InstructionKind) -> Option<ThreadBarrier<'a>> {
        let id = match kind {
            InstructionKind::ControlBarrier(barrier) => &barrier.id,
            InstructionKind::SplitBarrier(barrier) => &barrier.id,
            _ => return None,
        };
        Some(ThreadBarrier { barrier: CommonBarrier::from_instruction(kind)?, id })
    }

    /// Returns the properties that two threads must share to execute one instruction.
    fn instance(&self) -> (Option<SplitHalf>, &'a str) {
        (self.barrier.half, self.id)
    }
}

/// One thread's code between two of its barriers or subgroup operations, and its end.
struct ThreadPiece<'a> {
    body: Range<usize>,
    end: Option<PieceEnd<'a>>,
}

impl<'a> ThreadPiece<'a> {
    fn barrier(&self) -> Option<&ThreadBarrier<'a>> {
        match &self.end {
            Some(PieceEnd::Barrier(point)) => Some(point),
            Some(PieceEnd::Shared(..)) | None => None,
        }
    }
}

/// One thread's code between two workgroup barriers: all pieces except the last end at a subgroup barrier or
/// operation.
type BarrierInterval<'a> = Vec<ThreadPiece<'a>>;

/// Returns the ends of all pieces of a thread except the last.
fn interval_ends<'a>(stretch: &BarrierInterval<'a>) -> Vec<AlignedPiece<'a>> {
    let mut barriers = 0;
    let all_but_last = stretch.iter().take(stretch.len().saturating_sub(1));
    all_but_last
        .map(|piece| match &piece.end {
            Some(PieceEnd::Shared(_, instance)) => AlignedPiece::Shared(*instance),
            Some(PieceEnd::Barrier(_)) | None => {
                barriers += 1;
                AlignedPiece::Barrier(barriers - 1)
            }
        })
        .collect()
}

/// Returns one common order of all slots in which each thread finds its own order.
fn merge_interval_ends<'a>(threads: &[Vec<AlignedPiece<'a>>]) -> Result<Vec<AlignedPiece<'a>>, Rule> {
    let mut remaining: Vec<&[AlignedPiece<'a>]> = threads.iter().map(Vec::as_slice).collect();
    let mut order = Vec::new();
    while remaining.iter().any(|slots| !slots.is_empty()) {
        let first_everywhere = |slot: &AlignedPiece<'a>| {
            remaining
                .iter()
                .all(|slots| slots.iter().position(|other| other == slot).is_none_or(|at| at == 0))
        };
        let next = remaining.iter().filter_map(|slots| slots.first()).find(|slot| first_everywhere(slot));
        let next = next.cloned().ok_or(Rule::UnevenBarrier)?;
        for slots in &mut remaining {
            if slots.first() == Some(&next) {
                *slots = slots.get(1..).unwrap_or_default();
            }
        }
        order.push(next);
    }
    Ok(order)
}

/// Cuts the threads of a test that [`rules::check`](crate::rules::check) accepts.
///
/// A barrier on which all threads agree is one instruction. If scopes or semantics differ between the
/// threads, or a thread that does not take part has not ended, it is a barrier without semantics between
/// memory barriers of the participating threads. That is equivalent: a control barrier may itself be the
/// release barrier, the acquire barrier, both or neither of the pair around it (clause VK-SW-10), an arrival
/// the release barrier and a wait the acquire barrier (VK-SW-18, VK-SW-19).
///
/// A thread may omit the wait for its last arrival. Its invocation still waits, after everything that the
/// thread does before the others continue, and this orders nothing.
pub(crate) fn cut_into_segments(test: &Test, layout: &WorkgroupLayout) -> Result<Vec<BarrierSegment>, Rule> {
    if test.interlock_order().is_some() {
        return cut_at_interlocks(test);
    }
    let threads = test.threads.iter().map(cut_into_intervals).collect::<Result<Vec<_>, _>>()?;
    check_barrier_alignment(&threads, layout)?;

    // Stretch s of every thread is in the segments from starts[s] on; starts has one more entry for the end.
    let mut starts = vec![0];
    let mut orders = Vec::new();
    let mut segment_count = 0;
    for stretch in 0..threads.iter().map(Vec::len).max().unwrap_or(1) {
        let own: Vec<_> =
            threads.iter().filter_map(|thread| thread.get(stretch)).map(interval_ends).collect();
        let order = merge_interval_ends(&own)?;
        segment_count += order.len() + 1;
        starts.push(segment_count);
        orders.push(order);
    }
    let mut parts: Vec<Vec<ThreadSegment>> = (0..segment_count)
        .map(|_| (0..threads.len()).map(|thread| ThreadSegment::new(thread, 0..0)).collect())
        .collect();
    let mut arrivals: Vec<Vec<(usize, CommonBarrier)>> = vec![Vec::new(); segment_count];
    let mut shared: Vec<Vec<(usize, BlockPart)>> = vec![Vec::new(); segment_count];
    let mut ends = vec![0; threads.len()];
    for (index, thread) in threads.iter().enumerate() {
        for ((stretch, bounds), order) in thread.iter().zip(starts.windows(2)).zip(&orders) {
            let &[start, end] = bounds else { continue };
            let mut next = start;
            let ends_at = interval_ends(stretch).into_iter().map(Some).chain([None]);
            for (piece, slot) in stretch.iter().zip(ends_at) {
                // The code after the last slot of a thread follows it directly.
                let place = slot.and_then(|slot| order.iter().position(|other| *other == slot));
                let segment = place.map_or(next, |place| start + place);
                parts[segment][index].body = piece.body.clone();
                ends[index] = segment;
                match &piece.end {
                    Some(PieceEnd::Barrier(ThreadBarrier { barrier: meeting, .. })) => {
                        // A thread waits for the workgroup after the last segment of the stretch, because
                        // other subgroups may have more barriers before it.
                        let at = if meeting.execution_scope == Scope::Workgroup { end - 1 } else { segment };
                        arrivals[at].push((index, *meeting));
                    }
                    Some(PieceEnd::Shared(part, _)) => shared[segment].push((index, part.clone())),
                    None => {}
                }
                next = segment + 1;
            }
        }
        parts[0][index].first = true;
        parts[ends[index]][index].last = true;
    }

    let mut barriers = Vec::with_capacity(segment_count);
    for (segment, arrived) in arrivals.iter().enumerate() {
        let Some((_, first_barrier)) = arrived.first() else {
            barriers.push(None);
            continue;
        };
        // Threads that never wait for each other may reach barriers of different kinds at the same time.
        if arrived.iter().any(|(_, barrier)| {
            (barrier.half, barrier.execution_scope) != (first_barrier.half, first_barrier.execution_scope)
        }) {
            return Err(Rule::UnevenBarrier);
        }
        let all_equal = arrived.iter().all(|(_, barrier)| barrier == first_barrier);
        let others_ended = (0..threads.len())
            .all(|thread| ends[thread] <= segment || arrived.iter().any(|(index, _)| *index == thread));
        if all_equal && others_ended {
            barriers.push(Some(*first_barrier));
            continue;
        }
        for (thread, CommonBarrier { memory_scope: memory, semantics, .. }) in arrived {
            if semantics.order.releases() {
                let half = Semantics { order: Order::Release, make_visible: false, ..*semantics };
                parts[segment][*thread].release = Some((*memory, half));
            }
            if semantics.order.acquires()
                && let Some(after) = parts.get_mut(segment + 1)
            {
                let half = Semantics { order: Order::Acquire, make_available: false, ..*semantics };
                after[*thread].acquire = Some((*memory, half));
            }
        }
        barriers.push(Some(CommonBarrier::without_memory(first_barrier.half, first_barrier.execution_scope)));
    }
    for closing in closing_waits(&barriers)? {
        match barriers.last_mut() {
            Some(last @ None) => *last = Some(closing),
            _ => {
                parts.push(Vec::new());
                barriers.push(Some(closing));
            }
        }
    }
    Ok(parts
        .into_iter()
        .zip(barriers)
        .zip(shared.into_iter().chain(std::iter::repeat(Vec::new())))
        .map(|((parts, barrier), shared)| BarrierSegment {
            parts: parts.into_iter().filter(ThreadSegment::is_needed).collect(),
            barrier,
            shared,
            interlock_end: None,
        })
        .collect())
}

/// Cuts the threads of a test at their interlocked sections: before, inside and after them. The code of a
/// thread without a section comes before.
fn cut_at_interlocks(test: &Test) -> Result<Vec<BarrierSegment>, Rule> {
    let mut parts: [Vec<ThreadSegment>; 3] = [const { Vec::new() }; 3];
    for (index, thread) in test.threads.iter().enumerate() {
        let ends: Vec<(usize, InterlockEnd)> = (0..)
            .zip(&thread.instructions)
            .filter_map(|(at, instruction)| match &instruction.kind {
                InstructionKind::Interlock(interlock) => Some((at, interlock.end)),
                _ => None,
            })
            .collect();
        let end = thread.instructions.len();
        let bodies = match ends[..] {
            [] => Vec::from_iter(Some(0..end)),
            [(begin, InterlockEnd::Begin), (last, InterlockEnd::End)]
                if !is_jumped_over(thread, &[begin, last])? =>
            {
                vec![0..begin, begin + 1..last, last + 1..end]
            }
            _ => return Err(Rule::InterlockNotOnce),
        };
        let last = bodies.len() - 1;
        for (number, (body, parts)) in bodies.into_iter().zip(&mut parts).enumerate() {
            let part =
                ThreadSegment { first: number == 0, last: number == last, ..ThreadSegment::new(index, body) };
            parts.extend(Some(part).filter(ThreadSegment::is_needed));
        }
    }
    let ends = [Some(InterlockEnd::Begin), Some(InterlockEnd::End), None];
    let segment = |(parts, section)| BarrierSegment {
        parts,
        barrier: None,
        shared: Vec::new(),
        interlock_end: section,
    };
    Ok(parts.into_iter().zip(ends).map(segment).collect())
}

/// Returns true if a jump skips one of these instructions, or has a target before it.
fn is_jumped_over(thread: &Thread, places: &[usize]) -> Result<bool, Rule> {
    for (from, instruction) in thread.instructions.iter().enumerate() {
        if let InstructionKind::Flow(Flow::Goto(target) | Flow::Branch { target, .. }) = &instruction.kind {
            let to = thread.label_index(*target).ok_or(Rule::Internal("a jump to an undefined label"))?;
            if places.iter().any(|place| (from.min(to)..from.max(to)).contains(place)) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Returns waits for last arrivals without one, because the next round of the kernel arrives again. Arrivals
/// and waits of each execution scope must alternate, also across threads.
fn closing_waits(barriers: &[Option<CommonBarrier>]) -> Result<Vec<CommonBarrier>, Rule> {
    let mut closing = Vec::new();
    for execution in [Scope::Workgroup, Scope::Subgroup] {
        let mut arrived = false;
        for barrier in barriers.iter().flatten().filter(|barrier| barrier.execution_scope == execution) {
            let Some(half) = barrier.half else { continue };
            let arrives = half == SplitHalf::Arrive;
            Rule::UnevenBarrier.when(arrived == arrives)?;
            arrived = arrives;
        }
        if arrived {
            closing.push(CommonBarrier::without_memory(Some(SplitHalf::Wait), execution));
        }
    }
    Ok(closing)
}

/// Cuts one thread at its control barriers, split barriers, subgroup operations and blocks with these.
fn cut_into_intervals(thread: &Thread) -> Result<Vec<BarrierInterval<'_>>, Rule> {
    let mut stretches = Vec::new();
    let mut stretch = Vec::new();
    let mut start = 0;
    let loops = crate::flow::find_loops(thread);
    let blocks = thread.guarded_blocks();
    // The farthest target of a jump so far.
    let mut reach = 0;
    let mut ids: Vec<&str> = Vec::new();
    for (position, instruction) in thread.instructions.iter().enumerate() {
        if position < start {
            // Inside a block.
            continue;
        }
        if let Some(block) = blocks.iter().find(|block| block.branch == position) {
            let first = first_common_instruction(thread, block)?;
            let part = BlockPart::Block(block.clone());
            stretch.push(ThreadPiece { body: start..position, end: Some(PieceEnd::Shared(part, first)) });
            start = block.end + 1;
            continue;
        }
        match &instruction.kind {
            InstructionKind::Flow(Flow::Goto(target) | Flow::Branch { target, .. }) => {
                let no_label = Rule::Internal("a jump to an undefined label");
                reach = reach.max(thread.label_index(*target).ok_or(no_label)?);
            }
            InstructionKind::Subgroup(operation) => {
                // The parser refuses jumps over an operation that do not form blocks.
                let end = PieceEnd::Shared(
                    BlockPart::Converged(position),
                    TangleInstance::Operation(&operation.id),
                );
                stretch.push(ThreadPiece { body: start..position, end: Some(end) });
                start = position + 1;
            }
            kind => {
                let Some(point) = ThreadBarrier::from_instruction(kind) else { continue };
                Rule::GuardedBarrier
                    .when(reach > position || loops.iter().any(|region| region.contains(&position)))?;
                // Rounds of split barriers are counted, so that one instruction may be executed in several.
                Rule::RepeatedBarrier.when(point.barrier.half.is_none() && ids.contains(&point.id))?;
                ids.push(point.id);
                let ends_stretch = point.barrier.execution_scope == Scope::Workgroup;
                stretch.push(ThreadPiece { body: start..position, end: Some(PieceEnd::Barrier(point)) });
                if ends_stretch {
                    stretches.push(std::mem::take(&mut stretch));
                }
                start = position + 1;
            }
        }
    }
    stretch.push(ThreadPiece { body: start..thread.instructions.len(), end: None });
    stretches.push(stretch);
    Ok(stretches)
}

/// Returns the first instruction that the lanes of a block execute together. It identifies the block, because
/// a lane with one of a block's instructions has all of them. A block has no other barriers.
fn first_common_instruction<'a>(
    thread: &'a Thread,
    block: &GuardedBlock,
) -> Result<TangleInstance<'a>, Rule> {
    let inside = || thread.instructions.iter().take(block.end).skip(block.branch).map(|own| &own.kind);
    Rule::GuardedBarrier
        .when(inside().any(|kind| {
            ThreadBarrier::from_instruction(kind).is_some() && kind.tangle_instance().is_none()
        }))?;
    let mut together = inside().filter_map(InstructionKind::tangle_instance);
    together.next().ok_or(Rule::Internal("a block of nothing that lanes do together"))
}

/// Checks that the threads of each workgroup execute the same workgroup barriers in the same order, and
/// between these the threads of each subgroup the same subgroup barriers.
fn check_barrier_alignment(
    threads: &[Vec<BarrierInterval<'_>>],
    layout: &WorkgroupLayout,
) -> Result<(), Rule> {
    for (role, thread) in layout.roles.iter().zip(threads) {
        for (other, other_thread) in layout.roles.iter().zip(threads) {
            if role.class != other.class {
                continue;
            }
            let of_workgroup = |stretches: &[BarrierInterval<'_>]| {
                barrier_identities(stretches.iter().filter_map(|stretch| stretch.last())).collect::<Vec<_>>()
            };
            Rule::UnevenBarrier.when(!are_aligned(&of_workgroup(thread), &of_workgroup(other_thread)))?;
            let of_subgroup = |stretch: &BarrierInterval<'_>| barrier_identities(stretch).collect::<Vec<_>>();
            let is_aligned = |(left, right)| are_aligned(&of_subgroup(left), &of_subgroup(right));
            Rule::UnevenBarrier
                .when(role.subgroup == other.subgroup && !thread.iter().zip(other_thread).all(is_aligned))?;
        }
    }
    Ok(())
}

/// The identity of a barrier instruction.
type BarrierIdentity = (Option<SplitHalf>, String);

fn barrier_identities<'p, 'a: 'p>(
    pieces: impl IntoIterator<Item = &'p ThreadPiece<'a>>,
) -> impl Iterator<Item = BarrierIdentity> {
    let points = pieces.into_iter().filter_map(ThreadPiece::barrier);
    points.map(|point| {
        let (half, id) = point.instance();
        (half, id.to_owned())
    })
}

/// Returns true if two threads execute the same barriers; the one with fewer may omit the wait for its last
/// arrival.
fn are_aligned(left: &[BarrierIdentity], right: &[BarrierIdentity]) -> bool {
    let common = left.len().min(right.len());
    let surplus = &left.get(common..).unwrap_or_default();
    let surplus = if surplus.is_empty() { right.get(common..).unwrap_or_default() } else { surplus };
    left.get(..common) == right.get(..common) && matches!(surplus, [] | [(Some(SplitHalf::Wait), _)])
}
