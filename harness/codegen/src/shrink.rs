//! Test case reduction: finds a small test that still has a property.
//!
//! It removes threads, instructions and strengths one at a time ([`descend`]). It is used for tests on which a
//! compiler crashes. The predicate may be slow (it starts a compiler), so large pieces are tried first. Every
//! candidate is a test that survives printing and parsing.

use litmus::minimize::descend;
use litmus::{LocationId, LocationInit, SyncPoint, SystemSync, Test, ThreadId};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reduction {
    pub test: Test,
    /// The number of evaluations of the predicate.
    pub evaluations: u32,
    /// True if no smaller candidate has the property; false if the limit was reached.
    pub is_minimal: bool,
}

/// Removes pieces as long as `holds` is true, with at most `max_evaluations` evaluations.
///
/// `weaker` returns forms of a test with one strength less.
pub fn shrink(
    test: &Test,
    max_evaluations: u32,
    weaker: &dyn Fn(&Test) -> Vec<Test>,
    holds: &mut dyn FnMut(&Test) -> bool,
) -> Reduction {
    let mut best = test.clone();
    let mut evaluations = 0;
    let candidates = |best: &Test| list_smaller_tests(best).into_iter().chain(weaker(best)).collect();
    let ended = descend(&mut best, candidates, |candidate, best| {
        let is_smaller = |candidate: &Test| candidate != best && test_size(candidate) <= test_size(best);
        let Some(candidate) = reparse(&candidate).filter(is_smaller) else { return Ok(None) };
        if evaluations == max_evaluations {
            return Err(());
        }
        evaluations += 1;
        Ok(holds(&candidate).then_some(candidate))
    });
    Reduction { test: best, evaluations, is_minimal: ended.is_ok() }
}

/// Returns the printed test, parsed again; `None` if it does not parse.
fn reparse(test: &Test) -> Option<Test> {
    litmus::parse(&litmus::print(test), &test.name).ok()
}

/// Returns the size to minimize: threads, then instructions, locations and length of the text.
fn test_size(test: &Test) -> (usize, usize, usize, usize) {
    let instructions = test.threads.iter().map(|thread| thread.instructions.len()).sum();
    (test.threads.len(), instructions, test.locations.len(), litmus::print(test).len())
}

/// Returns every test with one piece removed.
fn list_smaller_tests(test: &Test) -> Vec<Test> {
    let mut candidates = Vec::new();
    // The question is irrelevant to a compiler, and names registers that may become unused.
    if test.question.is_some()
        || test.filter.is_some()
        || !test.listed_terms.is_empty()
        || test.metadata != Default::default()
    {
        candidates.push(without_questions(test));
    }
    if test.threads.len() > 1 {
        candidates.extend((0..test.threads.len()).map(|thread| without_thread(test, thread)));
    }
    for (thread, column) in test.threads.iter().enumerate() {
        candidates.extend(
            (0..column.instructions.len()).rev().map(|index| without_instruction(test, thread, index)),
        );
    }
    candidates.extend((0..test.system_sync.len()).map(|index| {
        let mut smaller = test.clone();
        smaller.system_sync.remove(index);
        smaller
    }));
    candidates
        .extend((0..test.locations.len()).rev().filter_map(|location| without_location(test, location)));
    candidates
}

fn without_questions(test: &Test) -> Test {
    Test {
        question: None,
        filter: None,
        listed_terms: Vec::new(),
        metadata: litmus::Metadata { needs: test.metadata.needs.clone(), ..litmus::Metadata::default() },
        ..test.clone()
    }
}

fn without_thread(test: &Test, thread: usize) -> Test {
    let mut smaller = without_questions(test);
    smaller.threads.remove(thread);
    smaller.system_sync = move_points(test, |point| {
        Some(SyncPoint { thread: ThreadId(number_without(point.thread.0, thread)?), ..point })
    });
    smaller
}

fn without_instruction(test: &Test, thread: usize, index: usize) -> Test {
    let mut smaller = without_questions(test);
    if let Some(column) = smaller.threads.get_mut(thread) {
        column.instructions.remove(index);
    }
    smaller.system_sync = move_points(test, |point| match point.instruction {
        Some(old) if usize::from(point.thread.0) == thread => {
            Some(SyncPoint { instruction: Some(number_without(old, index)?), ..point })
        }
        _ => Some(point),
    });
    smaller
}

/// Returns the number of an element after the removal of another one; `None` for that one.
fn number_without(number: u16, removed: usize) -> Option<u16> {
    (usize::from(number) != removed).then(|| number - u16::from(usize::from(number) > removed))
}

/// Returns the synchronization between points that are still there.
fn move_points(test: &Test, moved: impl Fn(SyncPoint) -> Option<SyncPoint>) -> Vec<SystemSync> {
    let pair = |pair: &SystemSync| Some(SystemSync { from: moved(pair.from)?, to: moved(pair.to)?, ..*pair });
    test.system_sync.iter().filter_map(pair).collect()
}

/// Returns the test without a location that nothing names.
fn without_location(test: &Test, location: usize) -> Option<Test> {
    let id = LocationId(location as u16);
    let is_used = test
        .threads
        .iter()
        .flat_map(|thread| &thread.instructions)
        .filter_map(|instruction| instruction.kind.access())
        .any(|access| access.place.location == id);
    let is_referenced = test.locations.iter().any(|other| match other.init {
        LocationInit::Constant(_) | LocationInit::Components(_) | LocationInit::Undefined => false,
        LocationInit::AddressOf(of) | LocationInit::CopyOf(of) | LocationInit::AliasOf(of) => of == id,
    });
    // Only the last location can be removed without changing other ids.
    if is_used || is_referenced || location + 1 != test.locations.len() {
        return None;
    }
    let mut smaller = without_questions(test);
    smaller.locations.pop();
    Some(smaller)
}

#[cfg(test)]
mod tests {
    use litmus::{AccessKind, MemoryAccess};

    use super::*;

    const ISA2: &str = include_str!("../../../litmus/corpus/isa2/ISA2+rel-acqrel-acq.litmus");
    const RMW: &str = include_str!("../../../litmus/corpus/rmw/RMW+addadd-addadd.litmus");

    fn parse(text: &str) -> Test {
        litmus::parse(text, "T").unwrap()
    }

    fn no_weakening(_: &Test) -> Vec<Test> {
        Vec::new()
    }

    #[test]
    fn irrelevant_parts_are_removed() {
        let has_release = |test: &Test| {
            test.threads.iter().flat_map(|thread| &thread.instructions).any(|instruction| {
                instruction.kind.access().is_some_and(|access| {
                    matches!(access.kind, AccessKind::Store(_)) && access.semantics().order.releases()
                })
            })
        };
        let shrunk = shrink(&parse(ISA2), 1000, &no_weakening, &mut |test| has_release(test));
        assert!(shrunk.is_minimal);
        assert_eq!(shrunk.test.threads.len(), 1);
        assert_eq!(shrunk.test.threads[0].instructions.len(), 1);
        assert!(has_release(&shrunk.test));
        // It is still a valid test.
        assert_eq!(parse(&litmus::print(&shrunk.test)), shrunk.test);
    }

    #[test]
    fn a_whole_test_may_matter() {
        let test = parse(RMW);
        let shrunk = shrink(&test, 1000, &no_weakening, &mut |smaller| *smaller == test);
        assert_eq!(shrunk.test, test);
        assert!(shrunk.is_minimal);
    }

    #[test]
    fn tries_are_bounded() {
        let mut evaluations = 0;
        let shrunk = shrink(&parse(ISA2), 3, &no_weakening, &mut |_| {
            evaluations += 1;
            false
        });
        assert_eq!((evaluations, shrunk.evaluations, shrunk.is_minimal), (3, 3, false));
    }

    #[test]
    fn semantics_are_also_weakened() {
        let weaker = |test: &Test| -> Vec<Test> {
            let mut weaker = test.clone();
            for instruction in weaker.threads.iter_mut().flat_map(|thread| &mut thread.instructions) {
                if let Some(MemoryAccess {
                    kind: AccessKind::Store(_),
                    strength: litmus::Access::Atomic { semantics, .. },
                    ..
                }) = instruction.kind.access_mut()
                {
                    *semantics = litmus::Semantics::RELAXED;
                }
            }
            vec![weaker]
        };
        let any_store = |test: &Test| {
            test.threads
                .iter()
                .flat_map(|thread| &thread.instructions)
                .filter_map(|instruction| instruction.kind.access())
                .any(|access| matches!(access.kind, AccessKind::Store(_)))
        };
        let shrunk = shrink(&parse(ISA2), 1000, &weaker, &mut |test| any_store(test));
        assert!(!litmus::print(&shrunk.test).contains(".rel"), "{}", litmus::print(&shrunk.test));
    }
}
