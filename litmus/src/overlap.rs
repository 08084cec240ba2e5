//! Temporal overlap of a test's threads; decides whether a run can exercise the test.

#![expect(clippy::wildcard_enum_match_arm, reason = "each match selects the instructions of one relation")]

use crate::system::{Interlock, InterlockEnd, SystemOperation};
use crate::test::{
    AccessKind, ControlBarrier, Flow, InstructionKind, LocationId, Scope, SplitHalf, SyncPoint, Test, Thread,
    ThreadId,
};

/// The possible overlap of the threads of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Overlap {
    /// Some pair of threads is unordered: their accesses may interleave.
    Possible,
    /// Every unordered pair of threads meets in a control barrier, or accesses memory only in one interlocked
    /// section.
    ControlBarrier,
    /// There is one thread, or system-synchronizes-with orders all of them, or lanes of subgroups share no
    /// memory.
    Ordered,
}

impl Test {
    /// Returns true if two threads wait for each other's arrivals at split barriers of an execution scope.
    pub fn wait_for_each_other(&self, left: ThreadId, right: ThreadId, scope: Scope) -> bool {
        let arrivals = |thread: ThreadId| {
            self.thread(thread).instructions.iter().filter_map(move |instruction| match &instruction.kind {
                InstructionKind::SplitBarrier(half) if half.half == SplitHalf::Arrive => Some(half),
                _ => None,
            })
        };
        self.thread(left).place.shares_scope(self.thread(right).place, scope)
            && arrivals(left).any(|own| {
                own.execution_scope == scope && arrivals(right).any(|other| own.is_same_barrier(other))
            })
    }

    /// Returns true if a run of the test may hang: it has a loop, a control barrier or an `await`.
    pub fn may_hang(&self) -> bool {
        self.threads.iter().any(|thread| {
            (0..).zip(&thread.instructions).any(|(at, instruction)| match &instruction.kind {
                InstructionKind::ControlBarrier(_) | InstructionKind::SplitBarrier(_) => true,
                InstructionKind::Access(access) => matches!(access.kind, AccessKind::Await { .. }),
                InstructionKind::Flow(
                    Flow::Goto(target) | Flow::Branch { target, .. } | Flow::BranchIf { target, .. },
                ) => thread.label_index(*target).is_some_and(|place| place <= at),
                InstructionKind::Flow(Flow::Label(_))
                | InstructionKind::Fence { .. }
                | InstructionKind::Subgroup(_)
                | InstructionKind::System(_)
                | InstructionKind::ShaderCall(_)
                | InstructionKind::Interlock(_)
                | InstructionKind::Compute(_) => false,
            })
        })
    }

    /// Returns the possible overlap of the threads, derived from the text alone.
    pub fn thread_overlap(&self) -> Overlap {
        let is_serialized =
            |(left, right): (ThreadId, ThreadId)| cannot_interleave(self.thread(left), self.thread(right));
        let unordered = self.unordered_pairs();
        if unordered.is_empty() {
            Overlap::Ordered
        } else if unordered.into_iter().all(is_serialized) {
            Overlap::ControlBarrier
        } else {
            Overlap::Possible
        }
    }

    /// Returns the pairs of unordered threads; control barriers do not order threads.
    pub fn unordered_pairs(&self) -> Vec<(ThreadId, ThreadId)> {
        let order = whole_thread_order(self);
        // Lanes without shared memory cannot interleave: they exchange data only in subgroup operations.
        let share_no_memory = |left: usize, right: usize| {
            self.has_subgroup_operations()
                && !have_conflicting_accesses(self, &self.threads[left], &self.threads[right])
        };
        let ordered = |left: usize, right: usize| {
            share_no_memory(left, right)
                || order[left][right]
                || order[right][left]
                || is_idle_during(self, &order, left, right)
                || is_idle_during(self, &order, right, left)
        };
        let count = self.threads.len();
        let pairs = (0..count).flat_map(|left| (left + 1..count).map(move |right| (left, right)));
        let id = |number: usize| ThreadId(number as u16);
        pairs
            .filter(|(left, right)| !ordered(*left, *right))
            .map(|(left, right)| (id(left), id(right)))
            .collect()
    }
}

/// Returns true if two threads have conflicting accesses: to one storage, one of them a write.
fn have_conflicting_accesses(test: &Test, left: &Thread, right: &Thread) -> bool {
    let accesses = |thread: &Thread| -> Vec<(LocationId, bool)> {
        let found = thread.instructions.iter().filter_map(|instruction| instruction.kind.access());
        found.map(|access| (test.storage_of(access.place.location), access.is_write())).collect()
    };
    let others = accesses(right);
    accesses(left).iter().any(|(storage, writes)| {
        others.iter().any(|(other, also_writes)| storage == other && (*writes || *also_writes))
    })
}

/// Computes `[i][j]`: all of thread i happens before all of thread j, by a chain of system-synchronizes-with
/// pairs.
fn whole_thread_order(test: &Test) -> Vec<Vec<bool>> {
    let count = test.threads.len();
    let mut before = vec![vec![false; count]; count];
    for pair in &test.system_sync {
        let (from, to) = (thread_index(pair.from.thread), thread_index(pair.to.thread));
        if from < count
            && to < count
            && has_no_access_after(test, pair.from)
            && has_no_access_before(test, pair.to)
        {
            before[from][to] = true;
        }
    }
    // A thread that is awaited before another one is started.
    for number in 0..count {
        for (other, row) in before.iter_mut().enumerate() {
            let Some(end) = wait_index(test, number, other) else { continue };
            for (third, ordered) in row.iter_mut().enumerate() {
                *ordered |= submission_index(test, number, third).is_some_and(|start| end < start);
            }
        }
    }
    for middle in 0..count {
        for from in 0..count {
            for to in 0..count {
                before[from][to] |= before[from][middle] && before[middle][to];
            }
        }
    }
    before
}

/// Returns true if `thread` makes no access while `other` may run.
///
/// `thread` bounds the time of `other`, or of threads ordered with it, by its submissions, calls, waits and
/// system-synchronizes-with pairs. Trivially true if it makes no access at all.
fn is_idle_during(test: &Test, order: &[Vec<bool>], thread: usize, other: usize) -> bool {
    let count = test.threads.len();
    let before = |earlier: usize, later: usize| earlier == later || order[earlier][later];
    let starts = (0..count).filter(|third| before(*third, other));
    let started = starts.filter_map(|third| {
        submission_index(test, thread, third).max(last_release_index(test, thread, third))
    });
    let waits = (0..count).filter(|third| before(other, *third));
    let waited = waits.filter_map(|third| wait_index(test, thread, third));
    let (started, waited) = (started.max(), waited.min());
    let has_no_access = !has_access_between(test, thread, None, None);
    has_no_access || started.or(waited).is_some() && !has_access_between(test, thread, started, waited)
}

/// Returns the last instruction of `thread` that system-synchronizes-with orders before all of `other`.
fn last_release_index(test: &Test, thread: usize, other: usize) -> Option<usize> {
    let pairs = test.system_sync.iter().filter(|pair| {
        thread_index(pair.from.thread) == thread
            && thread_index(pair.to.thread) == other
            && has_no_access_before(test, pair.to)
    });
    pairs.filter_map(|pair| pair.from.instruction).map(usize::from).max()
}

/// Returns the instruction of `thread` that submits or calls `other`.
fn submission_index(test: &Test, thread: usize, other: usize) -> Option<usize> {
    find_instruction_naming(test, thread, other, |kind| match kind {
        InstructionKind::System(SystemOperation::Submit(threads)) | InstructionKind::ShaderCall(threads) => {
            Some(threads)
        }
        _ => None,
    })
}

/// Returns the instruction of `thread` that waits for the end of `other`.
fn wait_index(test: &Test, thread: usize, other: usize) -> Option<usize> {
    find_instruction_naming(test, thread, other, |kind| match kind {
        InstructionKind::System(SystemOperation::Wait(threads)) | InstructionKind::ShaderCall(threads) => {
            Some(threads)
        }
        _ => None,
    })
}

fn find_instruction_naming(
    test: &Test,
    thread: usize,
    other: usize,
    named: impl Fn(&InstructionKind) -> Option<&Vec<ThreadId>>,
) -> Option<usize> {
    test.threads[thread].instructions.iter().position(|instruction| {
        named(&instruction.kind).is_some_and(|threads| threads.iter().any(|id| thread_index(*id) == other))
    })
}

/// Returns true if the thread accesses memory strictly between two of its instructions; `None` leaves a side
/// open.
fn has_access_between(test: &Test, thread: usize, after: Option<usize>, before: Option<usize>) -> bool {
    let instructions = &test.threads[thread].instructions;
    let start = after.map_or(0, |at| at + 1);
    let end = before.unwrap_or(instructions.len());
    instructions.iter().take(end).skip(start).any(|instruction| is_access(&instruction.kind))
}

fn thread_index(thread: ThreadId) -> usize {
    usize::from(thread.0)
}

/// Returns true if the thread accesses no memory after the point.
fn has_no_access_after(test: &Test, point: SyncPoint) -> bool {
    point.instruction.is_none_or(|last| {
        let instructions = &test.thread(point.thread).instructions;
        !instructions.iter().skip(usize::from(last) + 1).any(|instruction| is_access(&instruction.kind))
    })
}

/// Returns true if the thread accesses no memory before the point.
fn has_no_access_before(test: &Test, point: SyncPoint) -> bool {
    point.instruction.is_none_or(|first| {
        let instructions = &test.thread(point.thread).instructions;
        !instructions.iter().take(usize::from(first)).any(|instruction| is_access(&instruction.kind))
    })
}

fn is_access(kind: &InstructionKind) -> bool {
    kind.access().is_some()
}

/// Returns the control barriers of a thread, except subgroup barriers that a branch may skip.
fn unskipped_barriers(thread: &Thread) -> impl Iterator<Item = &ControlBarrier> {
    let blocks = thread.guarded_blocks();
    thread.instructions.iter().enumerate().filter_map(move |(at, instruction)| match &instruction.kind {
        InstructionKind::ControlBarrier(barrier)
            if instruction.kind.tangle_instance().is_none() || !blocks.iter().any(|b| b.contains(at)) =>
        {
            Some(barrier)
        }
        _ => None,
    })
}

/// Returns true if the thread waits for arrivals of a scope, without an access between its own arrival and
/// the wait.
fn waits_without_access(thread: &Thread, scope: Scope) -> bool {
    let mut arrived = false;
    let mut waits = false;
    for instruction in &thread.instructions {
        match &instruction.kind {
            InstructionKind::SplitBarrier(barrier) if barrier.execution_scope == scope => {
                arrived = barrier.half == SplitHalf::Arrive;
                waits |= !arrived;
            }
            kind if arrived && is_access(kind) => return false,
            _ => {}
        }
    }
    waits
}

/// Returns the only interlocked section of a thread; `None` if it accesses memory outside of it.
fn single_interlock_section(thread: &Thread) -> Option<&str> {
    let mut only = None;
    let mut inside = false;
    for instruction in &thread.instructions {
        match &instruction.kind {
            InstructionKind::Interlock(Interlock { end, section, .. }) => {
                inside = *end == InterlockEnd::Begin;
                if only.is_some_and(|known| known != section.as_str()) {
                    return None;
                }
                only = Some(section.as_str());
            }
            kind if !inside && is_access(kind) => return None,
            _ => {}
        }
    }
    // A section without an end excludes others only while it is entered.
    if inside { None } else { only }
}

/// Returns true if two threads cannot interleave.
///
/// They reach the same control barrier whose execution scope contains both, or they wait for each other's
/// arrivals without an access in between, or they access memory only in one interlocked section.
fn cannot_interleave(left: &Thread, right: &Thread) -> bool {
    let by_split_barriers = [Scope::Workgroup, Scope::Subgroup].into_iter().any(|scope| {
        left.place.shares_scope(right.place, scope)
            && waits_without_access(left, scope)
            && waits_without_access(right, scope)
    });
    by_split_barriers
        || single_interlock_section(left)
            .is_some_and(|section| single_interlock_section(right) == Some(section))
        || unskipped_barriers(left).any(|barrier| {
            left.place.shares_scope(right.place, barrier.execution_scope)
                && unskipped_barriers(right)
                    .any(|other| other.id == barrier.id && other.execution_scope == barrier.execution_scope)
        })
}
