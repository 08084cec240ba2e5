//! Decides which `await`s may become spin loops, and which instructions a branch may skip.

use super::{effective_scope, merged_placement};
use crate::test::{
    AccessKind, ArithmeticOperation, Flow, InstructionKind, LocationId, MemoryAccess, Operand, RmwOperation,
    ScalarType, Scope, Test, Thread, ThreadId,
};
use crate::value::Value;

/// A write to a location: its thread, instruction, scope and value.
struct LocationWrite {
    thread: ThreadId,
    at: usize,
    scope: Option<Scope>,
    value: Option<Value>,
}

fn collect_writes_to(hsa: &Test, location: LocationId) -> Vec<LocationWrite> {
    let initial = hsa.initial_value(location, 0);
    let constant = |operand: Operand| match operand {
        Operand::Constant(constant) => Some(Value::from_constant(constant, ScalarType::U32)),
        Operand::Register(_) => None,
    };
    let fetched = |operation: ArithmeticOperation, operand| {
        constant(operand).map(|value| operation.apply(initial, value, ScalarType::U32))
    };
    let mut found = Vec::new();
    for (thread, code) in hsa.threads.iter().enumerate() {
        for (at, instruction) in code.instructions.iter().enumerate() {
            let Some(access) = instruction.kind.access() else { continue };
            let value = match access.kind {
                AccessKind::Store(values) => constant(values.first()),
                AccessKind::Rmw { operation, .. } => match operation {
                    RmwOperation::Exchange(value) => constant(value),
                    RmwOperation::Fetch(operation, value) => fetched(operation, value),
                    RmwOperation::CompareExchange { .. } => None,
                },
                AccessKind::Load(_) | AccessKind::Await { .. } => continue,
            };
            if access.place.location == location {
                found.push(LocationWrite {
                    thread: ThreadId(thread as u16),
                    at,
                    scope: effective_scope(&instruction.kind),
                    value,
                });
            }
        }
    }
    found
}

/// Returns true if some branch jumps over the instruction.
pub(super) fn is_skippable(thread: &Thread, at: usize) -> bool {
    thread.instructions.iter().take(at).any(|before| {
        let InstructionKind::Flow(Flow::BranchIf { target, .. }) = &before.kind else { return false };
        thread.label_index(*target).is_some_and(|end| end >= at)
    })
}

/// Returns true if a spin loop for an `await` always terminates.
///
/// The only write to its location must be an unconditional atomic of another work-group. Then early loads do
/// not race, and a device that runs both work-groups ends the loop. Within a work-group, a device gives no
/// forward-progress guarantee.
pub(super) fn always_terminates(
    hsa: &Test,
    id: ThreadId,
    at: usize,
    visited: &mut Vec<(ThreadId, usize)>,
) -> bool {
    let thread = hsa.thread(id);
    let Some(kind) = thread.instructions.get(at).map(|instruction| &instruction.kind) else { return false };
    let Some(MemoryAccess { place, kind: AccessKind::Await { value: Operand::Constant(value), .. }, .. }) =
        kind.access()
    else {
        return false;
    };
    // A cycle of waits never ends.
    if visited.contains(&(id, at)) || !hsa.system_sync.is_empty() {
        return false;
    }
    visited.push((id, at));
    let [write] = &collect_writes_to(hsa, place.location)[..] else { return false };
    let writer = hsa.thread(write.thread);
    let (own, other) = (merged_placement(hsa, thread), merged_placement(hsa, writer));
    let is_device_scoped = Some(Scope::Device) <= write.scope && Some(Scope::Device) <= effective_scope(kind);
    own.workgroup != other.workgroup
        && is_device_scoped
        && write.value == Some(Value::from_constant(*value, ScalarType::U32))
        && !is_skippable(writer, write.at)
        && (0..write.at).all(|before| {
            let earlier = writer.instructions.get(before).and_then(|instruction| instruction.kind.access());
            !earlier.is_some_and(|access| matches!(access.kind, AccessKind::Await { .. }))
                || always_terminates(hsa, write.thread, before, visited)
        })
}
