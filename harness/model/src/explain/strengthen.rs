//! Enumerates single strengthening steps of an instruction with their costs.

#![deny(clippy::wildcard_enum_match_arm)]

use litmus::test::lattice::{Change, Reach};
use litmus::{AccessKind, InstructionKind, MemoryAccess, Performer};

/// A stronger form of an instruction and its cost.
pub(super) struct StrongerForm {
    pub(super) kind: InstructionKind,
    pub(super) weight: u32,
}

/// Returns the cost of a step.
fn step_weight(change: Change) -> u32 {
    match change {
        Change::Scope(_) | Change::Class(_) | Change::Classes | Change::Private | Change::NonPrivate => 1,
        Change::Coherent | Change::Available | Change::Visible => 2,
        Change::Order(_) | Change::Unequal => 3,
        Change::Atomic => 5,
    }
}

/// The stronger forms of an instruction, each a single step away.
pub(super) fn list_stronger_forms(reach: &Reach, kind: &InstructionKind) -> Vec<StrongerForm> {
    if kind.access().is_some_and(is_never_strengthened) {
        return Vec::new();
    }
    let stronger = kind.stronger(reach).into_iter();
    stronger.map(|(change, kind)| StrongerForm { kind, weight: step_weight(change) }).collect()
}

/// Returns true if an access is never strengthened. A cooperative access stays plain; stronger forms of
/// HSA-only accesses are not searched.
fn is_never_strengthened(access: &MemoryAccess) -> bool {
    is_hsa_only(access) || access.performer == Performer::Cooperative
}

/// Returns true if an instruction may have stronger forms that are not searched for.
pub(super) fn is_not_searched(kind: &InstructionKind) -> bool {
    kind.access().is_some_and(is_hsa_only)
}

fn is_hsa_only(access: &MemoryAccess) -> bool {
    match access.kind {
        AccessKind::Rmw { destination: None, .. } | AccessKind::Await { .. } => true,
        AccessKind::Load(_) | AccessKind::Store(_) | AccessKind::Rmw { .. } => access.place.address.is_some(),
    }
}
