//! What a test means in a stage without workgroups.
//!
//! A fence of workgroup scope between two looks at one location keeps compilers from making one of both, and reaches nobody where
//! its thread is alone in its workgroup. Such a stage has no name for that: there the fence is one of the queue family's, and
//! the model is asked about the test with that fence.

use litmus::{Instruction, InstructionKind, Scope, Test};

use crate::variant::Stage;

/// The test that the kernels of a stage say.
pub(crate) fn told(test: &Test, stage: Stage) -> Test {
    let mut told = test.clone();
    if stage.has_workgroups() {
        return told;
    }
    let alone = |number: usize| {
        let place = |thread: &litmus::Thread| thread.place;
        let own = test.threads.get(number).map(place);
        own.is_some_and(|own| {
            test.threads.iter().filter(|thread| own.shares(thread.place, Scope::Workgroup)).count() == 1
        })
    };
    for (number, thread) in told.threads.iter_mut().enumerate() {
        if !alone(number) {
            continue;
        }
        let between: Vec<usize> = (1..thread.instructions.len().saturating_sub(1))
            .filter(|at| match thread.instructions.get(at - 1..at + 2) {
                Some([before, fence, after]) => is_between_looks(before, fence, after),
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
    told
}

fn is_between_looks(before: &Instruction, fence: &Instruction, after: &Instruction) -> bool {
    let looks_at = |instruction: &Instruction| {
        let access = instruction.kind.access().filter(|access| access.reads());
        access.map(|access| access.place.location)
    };
    matches!(fence.kind, InstructionKind::Fence { scope: Scope::Workgroup, .. })
        && looks_at(before).is_some()
        && looks_at(before) == looks_at(after)
}
