//! Conflicts between accesses that the text of a program alone decides.
//!
//! Two atomic accesses of a location are mutually ordered if the scope of each includes the invocation of the other.
//! Mutually ordered accesses do not race.

use litmus::{Access, AccessKind, Dialect, MemoryAccess, Performer, Scope, Test, ThreadPlace};

use crate::cells::Extent;

/// Returns true if the scopes of two accesses, each of a thread, include both threads.
pub(crate) fn have_mutual_scopes(test: &Test, one: (usize, Scope), other: (usize, Scope)) -> bool {
    let place = |thread: usize| match test.threads.get(thread)?.place {
        ThreadPlace::Device(place) => Some(place),
        ThreadPlace::Host => None,
    };
    match (place(one.0), place(other.0)) {
        (Some(here), Some(there)) => {
            one.0 == other.0 || here.shares_scope(there, one.1) && here.shares_scope(there, other.1)
        }
        _ => false,
    }
}

/// Returns true if the kinds of its accesses alone exclude data races, for any number of loop iterations.
///
/// All accesses of each storage that a thread writes and another uses are mutually ordered atomics. False if
/// that cannot be decided from the text of the test.
pub fn has_only_ordered_accesses(test: &Test) -> bool {
    let plain =
        test.dialect != Dialect::Hsa && !test.has_undefined_locations() && test.system_sync.is_empty();
    plain && thread_accesses(test).all(|access| !may_race(test, access))
}

/// Returns true if an access of a thread conflicts with one of another thread without mutual order.
pub(crate) fn may_race(test: &Test, one: (usize, &MemoryAccess)) -> bool {
    thread_accesses(test).filter(|other| other.0 != one.0).any(|other| {
        let both_read = [one, other].iter().all(|(_, access)| matches!(access.kind, AccessKind::Load(_)));
        !both_read && !are_mutually_ordered(test, one, other)
    })
}

/// Returns the accesses of a test, each with its thread.
fn thread_accesses(test: &Test) -> impl Iterator<Item = (usize, &MemoryAccess)> {
    test.threads.iter().enumerate().flat_map(|(thread, code)| {
        code.instructions.iter().filter_map(move |instruction| Some((thread, instruction.kind.access()?)))
    })
}

/// Returns true if two accesses of different threads use different storages or are mutually ordered.
fn are_mutually_ordered(test: &Test, one: (usize, &MemoryAccess), other: (usize, &MemoryAccess)) -> bool {
    let is_fixed =
        |access: &MemoryAccess| access.place.address.is_none() && access.performer != Performer::Cooperative;
    if !is_fixed(one.1) || !is_fixed(other.1) {
        return false;
    }
    let (here, there) = (Extent::from_place(test, &one.1.place), Extent::from_place(test, &other.1.place));
    if here.storage != there.storage {
        return true;
    }
    let is_same = one.1.place == other.1.place
        && here.is_whole
        && [one, other].iter().all(|a| a.1.scalar_accesses().count() == 1);
    match (one.1.strength, other.1.strength) {
        (Access::Atomic { scope: by_one, .. }, Access::Atomic { scope: by_other, .. }) => {
            is_same && have_mutual_scopes(test, (one.0, by_one), (other.0, by_other))
        }
        _ => false,
    }
}
