//! Twins: a test with its control barriers taken away, which shows what the test could have seen.

use litmus::{InstructionKind, SyncPoint, SystemSync, Test};

/// The twin of a test whose threads meet in a control barrier: the same test without any. `None` where there is no
/// control barrier to take away.
///
/// The twin's verdict is of no interest, it may well race. What counts is whether a device shows outcomes of it that the
/// barrier forbids: then the barrier had something to do. A system-synchronizes-with pair that hangs on a barrier falls
/// away with it.
pub fn without_control_barriers(test: &Test) -> Option<Test> {
    let mut twin = test.clone();
    // For each thread, the new index of each instruction that stays.
    let mut moved: Vec<Vec<Option<u16>>> = Vec::with_capacity(test.threads.len());
    for thread in &mut twin.threads {
        let mut next = 0;
        let new_index = |instruction: &litmus::Instruction| {
            let stays = !matches!(instruction.kind, InstructionKind::ControlBarrier(_));
            let index = stays.then_some(next);
            next += u16::from(stays);
            index
        };
        moved.push(thread.instructions.iter().map(new_index).collect());
        thread.instructions.retain(|i| !matches!(i.kind, InstructionKind::ControlBarrier(_)));
    }
    let point = |point: SyncPoint| {
        let Some(old) = point.instruction else { return Some(point) };
        let new = moved.get(usize::from(point.thread.0))?.get(usize::from(old)).copied()??;
        Some(SyncPoint { instruction: Some(new), ..point })
    };
    twin.system_sync = test
        .system_sync
        .iter()
        .filter_map(|pair| Some(SystemSync { from: point(pair.from)?, to: point(pair.to)?, ..*pair }))
        .collect();
    let lost = |kind: &InstructionKind| matches!(kind, InstructionKind::ControlBarrier(_));
    let any = test.threads.iter().flat_map(|thread| &thread.instructions).any(|i| lost(&i.kind));
    any.then_some(twin)
}
