//! Threads that wait for something in their last loop and then only read.
//!
//! Where a thread repeats an atomic load, and behind it only reads plainly, its load and what is behind it leave everybody
//! else as they are: no release, no write, no semantics of theirs lead on. So each race is found among executions in which at most one
//! such thread has come past its loop, and the others stand before their last load:
//!
//! - An execution without these reads of a thread is consistent where the whole one is, and has the same orders between what is left.
//!   Two reads do not race, nor does the load, which is mutually ordered with all writes of its storage, so that a race has at most one
//!   of the reads left out, and that one's thread may stay.
//! - An execution in which a thread stands there goes on: its load may read the last write in modification order, and each read behind
//!   it a write of its location that no other is ordered behind. All edges of these reads lead to them, so that no axiom breaks, and
//!   what was unordered stays so. Control takes one of the thread's paths then, none of which is cut off.
//!
//! It is said of races alone; what is asked of final states is asked of threads that have all come past their loops.

use litmus::{Access, Place, Placement, Scope, Test};

use crate::line::PathChoice;
use crate::path::{Memory, Path, Step, StepKind};
use crate::symbolic::{Constraint, LocalRead};

/// The paths of a test for races alone, and for final states alone.
#[derive(Debug)]
pub(crate) struct SpinLoopReduction {
    /// For each thread its paths, and first where it waits the one that ends before its last load.
    pub(crate) stuck_paths: Vec<Vec<Path>>,
    /// For each thread its paths that come past the loop, all where it has none.
    pub(crate) exited_paths: Vec<Vec<Path>>,
    is_spinning: Vec<bool>,
}

impl SpinLoopReduction {
    /// Where several threads wait so.
    pub(crate) fn new(test: &Test, paths: &[Vec<Path>]) -> Option<SpinLoopReduction> {
        let plain = test.filter.is_none()
            && !test.has_undefined()
            && test.system_sync.is_empty()
            && test.khronos.is_none();
        let is_plain = |path: &Path| {
            let others = |step: &Step| matches!(step.kind, StepKind::System | StepKind::Subgroup(_));
            !path.cut && !path.steps.iter().any(others)
        };
        if !plain || !paths.iter().flatten().all(is_plain) {
            return None;
        }
        let mut waits =
            SpinLoopReduction { stuck_paths: Vec::new(), exited_paths: Vec::new(), is_spinning: Vec::new() };
        for thread in 0..paths.len() {
            let stands = split_at_last_load(test, thread, paths);
            let paths = &paths[thread];
            waits.is_spinning.push(stands.is_some());
            match stands {
                Some((stands, behind)) => {
                    waits.stuck_paths.push([stands].into_iter().chain(behind.iter().cloned()).collect());
                    waits.exited_paths.push(behind);
                }
                None => {
                    waits.stuck_paths.push(paths.clone());
                    waits.exited_paths.push(paths.clone());
                }
            }
        }
        (waits.is_spinning.iter().filter(|waiting| **waiting).count() > 1).then_some(waits)
    }

    /// Whether at most one of those who wait has come past its loop.
    pub(crate) fn can_choose(&self, taken: &[PathChoice]) -> bool {
        self.is_spinning
            .iter()
            .zip(taken)
            .filter(|(waiting, taken)| **waiting && taken.first_path() > 0)
            .count()
            <= 1
    }
}

/// The path of a thread that ends before its last load, and those past the loop, where these only read.
fn split_at_last_load(test: &Test, thread: usize, paths: &[Vec<Path>]) -> Option<(Path, Vec<Path>)> {
    let (ended, stopped): (Vec<&Path>, Vec<&Path>) =
        paths.get(thread)?.iter().partition(|path| path.terminated);
    let [stopped] = stopped.as_slice() else { return None };
    let (load, before) = stopped.steps.split_last()?;
    let StepKind::Read(memory @ Memory { access: Access::Atomic { scope, .. }, .. }) = &load.kind else {
        return None;
    };
    let last: LocalRead = before.iter().map(|step| LocalRead::from(step.kind.reads())).sum();
    let known = |constraint: &&Constraint<LocalRead>| {
        let mut all = true;
        for side in [&constraint.left, &constraint.right] {
            side.for_each_read(&mut |read| all &= read < last);
        }
        all
    };
    let reads = |step: &Step| {
        let StepKind::Read(memory) = &step.kind else { return false };
        !matches!(memory.access, Access::Atomic { .. }) && !step.cooperative && !step.continues
    };
    let only_reads = |path: &&Path| {
        let same = path.steps.iter().zip(&stopped.steps).all(|(one, other)| is_same_step(one, other))
            && path.constraints.iter().filter(known).eq(stopped.constraints.iter().filter(known));
        same && path.steps.get(stopped.steps.len()..).is_some_and(|behind| behind.iter().all(reads))
    };
    let ordered = !load.cooperative && is_mutually_ordered(test, (thread, *scope), memory, paths);
    if !ordered || ended.is_empty() || !ended.iter().all(only_reads) {
        return None;
    }
    let mut stands = Path { steps: before.to_vec(), ..(*stopped).clone() };
    stands.constraints = stopped.constraints.iter().filter(known).cloned().collect();
    stands.decisive.retain(|read| *read < last);
    Some((stands, ended.into_iter().cloned().collect()))
}

/// Whether an atomic access of a thread is mutually ordered with all that writes its storage.
fn is_mutually_ordered(
    test: &Test,
    (thread, scope): (usize, Scope),
    memory: &Memory,
    paths: &[Vec<Path>],
) -> bool {
    let place = |thread: usize| -> Option<Placement> {
        match test.threads.get(thread)?.place {
            Place::Device(place) => Some(place),
            Place::Host => None,
        }
    };
    let shares = |other: usize, by: Scope| match (place(thread), place(other)) {
        (Some(one), Some(two)) => thread == other || one.shares(two, scope) && one.shares(two, by),
        _ => false,
    };
    let all = paths.iter().enumerate().flat_map(|(writer, paths)| {
        paths.iter().flat_map(move |path| path.steps.iter().map(move |step| (writer, step)))
    });
    memory.extent.whole
        && all.into_iter().all(|(writer, step)| match &step.kind {
            StepKind::Write(other, _) | StepKind::Rmw(other, Some(_))
                if other.extent.storage == memory.extent.storage =>
            {
                let whole = other.location == memory.location && other.extent.whole && !step.cooperative;
                matches!(other.access, Access::Atomic { scope: by, .. } if whole && shares(writer, by))
            }
            _ => true,
        })
}

/// Whether two paths of one thread make the same step: the same turn of the same instruction, of the same values.
fn is_same_step(one: &Step, other: &Step) -> bool {
    let stored = |step: &Step| match &step.kind {
        StepKind::Write(_, stored) => Some(stored.clone()),
        StepKind::Rmw(_, stored) => stored.clone(),
        _ => None,
    };
    std::mem::discriminant(&one.kind) == std::mem::discriminant(&other.kind)
        && (one.instruction, one.occurrence) == (other.instruction, other.occurrence)
        && stored(one) == stored(other)
}

#[cfg(test)]
mod tests;
