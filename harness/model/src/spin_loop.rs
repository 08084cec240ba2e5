//! Spin-loop reduction: threads that wait in their last loop and then only read.
//!
//! Let a thread repeat an atomic load in its last loop and then perform only plain reads. Its load and the
//! later reads do not affect other threads: they contain no release, no write, and no semantics that extend a
//! chain. So each race occurs in an execution in which at most one such thread has left its loop, and the
//! others stop before their last load:
//!
//! - Removing these reads of a thread from a consistent execution leaves a consistent execution with the same
//!   orders between the remaining events. Two reads do not race. The load does not race either, since it is
//!   mutually ordered with all writes of its storage. So a race involves at most one of the removed reads,
//!   and the thread of that read may stay.
//! - An execution in which such a thread is stopped can continue. Its load may read the last write in
//!   modification order, and each later read a write of its location that no other write follows. All edges
//!   of these reads end at them, so no axiom is violated, and unordered pairs stay unordered. Control then
//!   takes one of the thread's paths, none of which is cut off.
//!
//! The reduction applies to races only. Final states are decided on executions in which all threads have left
//! their loops.

use litmus::{Access, Test};

use crate::mutual_order::is_mutually_ordered;
use crate::path::{PathChoice, StepAccess, StepKind, ThreadPath, ThreadStep};
use crate::symbolic::{Constraint, ReadIndex};

/// The reduced paths of a test: one set for races, one for final states.
#[derive(Debug)]
pub struct SpinLoopReduction {
    /// For each thread its paths; a spinning thread has the path that stops before its last load first.
    pub(crate) stuck_paths: Vec<Vec<ThreadPath>>,
    /// For each thread its paths that leave the loop, or all paths if it does not spin.
    pub(crate) exited_paths: Vec<Vec<ThreadPath>>,
    is_spinning: Vec<bool>,
}

impl SpinLoopReduction {
    /// Returns the reduction if at least two threads spin.
    pub fn new(test: &Test, paths: &[Vec<ThreadPath>]) -> Option<SpinLoopReduction> {
        let plain = test.filter.is_none()
            && !test.has_undefined_locations()
            && test.system_sync.is_empty()
            && test.khronos.is_none();
        let is_plain = |path: &ThreadPath| {
            let others = |step: &ThreadStep| matches!(step.kind, StepKind::System | StepKind::Subgroup(_));
            !path.truncated && !path.steps.iter().any(others)
        };
        if !plain || !paths.iter().flatten().all(is_plain) {
            return None;
        }
        let mut reduction =
            SpinLoopReduction { stuck_paths: Vec::new(), exited_paths: Vec::new(), is_spinning: Vec::new() };
        for thread in 0..paths.len() {
            let split_paths = split_at_last_load(test, thread, paths);
            let paths = &paths[thread];
            reduction.is_spinning.push(split_paths.is_some());
            match split_paths {
                Some((stopped, exited)) => {
                    reduction.stuck_paths.push([stopped].into_iter().chain(exited.iter().cloned()).collect());
                    reduction.exited_paths.push(exited);
                }
                None => {
                    reduction.stuck_paths.push(paths.clone());
                    reduction.exited_paths.push(paths.clone());
                }
            }
        }
        // With one spinning thread the reduction excludes no combination of paths.
        (reduction.is_spinning.iter().filter(|waiting| **waiting).count() > 1).then_some(reduction)
    }

    /// Returns true if at most one spinning thread has left its loop.
    pub(crate) fn needs_exploration(&self, taken: &[PathChoice]) -> bool {
        self.is_spinning
            .iter()
            .zip(taken)
            // Path 0 of a spinning thread is the one that stops before its last load.
            .filter(|(waiting, taken)| **waiting && taken.first_path() > 0)
            .count()
            <= 1
    }
}

/// Returns the path of a thread that stops before its last load, and those that leave the loop, if these only
/// read.
fn split_at_last_load(
    test: &Test,
    thread: usize,
    paths: &[Vec<ThreadPath>],
) -> Option<(ThreadPath, Vec<ThreadPath>)> {
    let (ended, stopped): (Vec<&ThreadPath>, Vec<&ThreadPath>) =
        paths.get(thread)?.iter().partition(|path| path.terminated);
    let [stopped] = stopped.as_slice() else { return None };
    let (load, before) = stopped.steps.split_last()?;
    let StepKind::Read(memory @ StepAccess { access: Access::Atomic { scope, .. }, .. }) = &load.kind else {
        return None;
    };
    // The number of the last load among the reads. Constraints and decisions on it or on later
    // reads vanish with it.
    let last: ReadIndex = before.iter().map(|step| ReadIndex::from(step.kind.is_read())).sum();
    let is_earlier = |constraint: &&Constraint<ReadIndex>| {
        let mut all = true;
        for side in [&constraint.left, &constraint.right] {
            side.for_each_read(&mut |read| all &= read < last);
        }
        all
    };
    let is_plain_read = |step: &ThreadStep| {
        let StepKind::Read(memory) = &step.kind else { return false };
        !matches!(memory.access, Access::Atomic { .. }) && !step.cooperative && !step.is_continuation
    };
    let only_reads = |path: &&ThreadPath| {
        // All paths out of the loop must begin with the steps of the stopped one, its last load
        // included.
        let same = path.steps.iter().zip(&stopped.steps).all(|(one, other)| is_same_step(one, other))
            && path.constraints.iter().filter(is_earlier).eq(stopped.constraints.iter().filter(is_earlier));
        same && path.steps.get(stopped.steps.len()..).is_some_and(|behind| behind.iter().all(is_plain_read))
    };
    let ordered = !load.cooperative && is_mutually_ordered(test, (thread, *scope), memory, paths);
    if !ordered || ended.is_empty() || !ended.iter().all(only_reads) {
        return None;
    }
    let mut stopped_path = ThreadPath { steps: before.to_vec(), ..(*stopped).clone() };
    stopped_path.constraints = stopped.constraints.iter().filter(is_earlier).cloned().collect();
    stopped_path.decisive_reads.retain(|read| *read < last);
    Some((stopped_path, ended.into_iter().cloned().collect()))
}

/// Returns true if two paths of one thread make the same step: same instruction, occurrence and stored value.
fn is_same_step(one: &ThreadStep, other: &ThreadStep) -> bool {
    let stored = |step: &ThreadStep| match &step.kind {
        StepKind::Write(_, stored) => Some(stored.clone()),
        StepKind::Rmw(_, stored) => stored.clone(),
        _ => None,
    };
    std::mem::discriminant(&one.kind) == std::mem::discriminant(&other.kind)
        && (one.instruction, one.occurrence) == (other.instruction, other.occurrence)
        && stored(one) == stored(other)
}
