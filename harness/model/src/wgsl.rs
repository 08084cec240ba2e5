//! Instructions without a counterpart in WGSL (WebGPU Shading Language, "Memory Model"), which its model refuses.

#![deny(clippy::wildcard_enum_match_arm)]

use litmus::{Access, ControlBarrier, InstructionKind, MemoryAccess, Order, Scope, Semantics, StorageClass};

/// Returns the text with which an instruction is refused; `None` if WGSL has it.
pub(crate) fn refusal_reason(kind: &InstructionKind) -> Option<&'static str> {
    match kind {
        InstructionKind::Access(access) => access_refusal_reason(access),
        InstructionKind::ControlBarrier(barrier) => barrier_refusal_reason(barrier),
        InstructionKind::Fence { .. } => Some(
            "memory barriers under this model: WGSL has only barriers of a workgroup (`cbar.acq_rel.wg`)",
        ),
        // Other checks refuse split barriers, shader calls, interlocked sections and hosts.
        InstructionKind::SplitBarrier(_)
        | InstructionKind::Subgroup(_)
        | InstructionKind::System(_)
        | InstructionKind::ShaderCall(_)
        | InstructionKind::Interlock(_)
        | InstructionKind::Compute(_)
        | InstructionKind::Flow(_) => None,
    }
}

fn access_refusal_reason(access: &MemoryAccess) -> Option<&'static str> {
    if access.place.class == StorageClass::Output {
        return Some("outputs under this model: WGSL shares no such memory");
    }
    match access.strength {
        Access::Private | Access::NonPrivate | Access::Coherent { .. } => None,
        Access::Atomic { .. } if access.place.class == StorageClass::Image => {
            Some("atomics of images under this model: WGSL has none")
        }
        Access::Atomic { semantics, .. } if semantics.order != Order::Relaxed => {
            Some("atomics with an order under this model: those of WGSL are relaxed")
        }
        Access::Atomic { .. } => None,
    }
}

fn barrier_refusal_reason(barrier: &ControlBarrier) -> Option<&'static str> {
    let Semantics { order, classes, .. } = barrier.semantics.unwrap_or(Semantics::RELAXED);
    let is_of_wgsl = barrier.execution_scope == Scope::Workgroup
        && barrier.memory_scope == Scope::Workgroup
        && barrier.resource.is_none()
        && order == Order::AcquireRelease
        && !classes.contains(StorageClass::Output);
    (!is_of_wgsl)
        .then_some("control barriers other than `cbar.acq_rel.wg` under this model: WGSL has no others")
}
