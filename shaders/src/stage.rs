//! The effective test in a stage without workgroups: fences of workgroup scope change.
//!
//! A fence of workgroup scope between two loads of one location prevents compilers from merging the loads,
//! and has no effect if its thread is alone in its workgroup. A stage without workgroups has no
//! such fence, so it becomes one of queue-family scope, and the model evaluates the test with that fence.

use litmus::{Instruction, InstructionKind, Scope, Test};

use crate::variant::CarrierStage;

/// Returns the test that the kernels of a stage execute.
pub(crate) fn effective_test(test: &Test, stage: CarrierStage) -> Test {
    let mut effective = test.clone();
    if stage.has_workgroups() {
        return effective;
    }
    let is_alone = |number: usize| {
        let place = |thread: &litmus::Thread| thread.place;
        let own = test.threads.get(number).map(place);
        own.is_some_and(|own| {
            test.threads.iter().filter(|thread| own.shares_scope(thread.place, Scope::Workgroup)).count() == 1
        })
    };
    for (number, thread) in effective.threads.iter_mut().enumerate() {
        if !is_alone(number) {
            continue;
        }
        let between: Vec<usize> = (1..thread.instructions.len().saturating_sub(1))
            .filter(|at| match thread.instructions.get(at - 1..at + 2) {
                Some([before, fence, after]) => is_between_loads(before, fence, after),
                _ => false,
            })
            .collect();
        for at in between {
            if let Some(scope) =
                thread.instructions.get_mut(at).and_then(|fence| fence.kind.memory_scope_mut())
            {
                *scope = Scope::QueueFamily;
            }
        }
    }
    effective
}

fn is_between_loads(before: &Instruction, fence: &Instruction, after: &Instruction) -> bool {
    let loaded_location = |instruction: &Instruction| {
        let access = instruction.kind.access().filter(|access| access.is_read());
        access.map(|access| access.place.location)
    };
    matches!(fence.kind, InstructionKind::Fence { scope: Scope::Workgroup, .. })
        && loaded_location(before).is_some()
        && loaded_location(before) == loaded_location(after)
}
