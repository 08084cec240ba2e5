//! Enumerates single strengthening steps of an instruction with their costs.

#![deny(clippy::wildcard_enum_match_arm)]

use litmus::test::lattice::{StrengthBounds, StrengthChange};
use litmus::{AccessKind, InstructionKind, MemoryAccess, Performer};

/// A stronger form of an instruction and its cost.
pub(super) struct StrongerForm {
    pub(super) kind: InstructionKind,
    pub(super) weight: u32,
}

/// Returns the cost of a step.
fn step_weight(change: StrengthChange) -> u32 {
    match change {
        StrengthChange::Scope(_)
        | StrengthChange::RemovedClass(_)
        | StrengthChange::AllClasses
        | StrengthChange::Private
        | StrengthChange::NonPrivate => 1,
        StrengthChange::Coherent | StrengthChange::MakeAvailable | StrengthChange::MakeVisible => 2,
        StrengthChange::Order(_) | StrengthChange::UnequalSemantics => 3,
        StrengthChange::Atomic => 5,
    }
}

/// The stronger forms of an instruction, each a single step away.
pub(super) fn list_stronger_forms(reach: &StrengthBounds, kind: &InstructionKind) -> Vec<StrongerForm> {
    if kind.access().is_some_and(is_never_strengthened) {
        return Vec::new();
    }
    let stronger = kind.stronger_forms(reach).into_iter();
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
