//! Twins: a test with its control barriers taken away, which shows what the test could have seen.

use litmus::{InstructionKind, SyncPoint, SystemSync, Test};

/// The twin of a test whose threads meet in a control barrier: the same test without any. `None` where there is no
/// control barrier to take away.
///
/// The twin's verdict is of no interest, it may well race. What counts is whether a device shows outcomes of it that the
/// barrier forbids: then the barrier had something to do. A system-synchronizes-with pair that hangs on a barrier falls
/// away with it.
pub fn without_control_barriers(test: &Test) -> Option<Test> {
    let is_barrier = |kind: &InstructionKind| matches!(kind, InstructionKind::ControlBarrier(_));
    let mut twin = test.clone();
    // For each thread the new index of each instruction that stays.
    let mut moved: Vec<Vec<Option<u16>>> = Vec::with_capacity(test.threads.len());
    for thread in &mut twin.threads {
        let mut next = 0;
        let mut new_index = |kind: &InstructionKind| {
            let index = (!is_barrier(kind)).then_some(next);
            next += u16::from(index.is_some());
            index
        };
        moved.push(thread.instructions.iter().map(|instruction| new_index(&instruction.kind)).collect());
        thread.instructions.retain(|instruction| !is_barrier(&instruction.kind));
    }
    if moved.iter().flatten().all(Option::is_some) {
        return None;
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
    Some(twin)
}

#[cfg(test)]
mod tests {
    use litmus::ThreadId;

    use super::*;

    const BARRIER: &str = include_str!("../../../litmus/corpus/barrier/MP+cbar.litmus");
    const PLAIN: &str = include_str!("../../../litmus/corpus/sb/SB+rlx-rlx.litmus");

    fn parse(text: &str) -> Test {
        litmus::syntax::parse(text, "T").unwrap()
    }

    #[test]
    fn the_twin_is_the_test_without_its_barrier_lines() {
        let test = parse(BARRIER);
        let twin = without_control_barriers(&test).unwrap();
        let kept = |test: &Test| -> Vec<Vec<InstructionKind>> {
            let kinds = |thread: &litmus::Thread| {
                let kinds = thread.instructions.iter().map(|instruction| instruction.kind.clone());
                kinds.filter(|kind| !matches!(kind, InstructionKind::ControlBarrier(_))).collect()
            };
            test.threads.iter().map(kinds).collect()
        };
        assert_eq!(kept(&twin), kept(&test));
        let instructions = |test: &Test| -> usize { test.threads.iter().map(|t| t.instructions.len()).sum() };
        assert_eq!(instructions(&twin), instructions(&test) - 2);
        assert_eq!(twin.observables(), test.observables());
        assert_eq!(without_control_barriers(&twin), None);
    }

    #[test]
    fn a_test_without_a_barrier_has_no_twin() {
        assert_eq!(without_control_barriers(&parse(PLAIN)), None);
    }

    #[test]
    fn synchronization_moves_with_its_instructions_and_falls_with_a_barrier() {
        let mut test = parse(BARRIER);
        let barrier = test.threads[0]
            .instructions
            .iter()
            .position(|instruction| matches!(instruction.kind, InstructionKind::ControlBarrier(_)))
            .unwrap() as u16;
        let mut after = test.threads[0].instructions[0].clone();
        after.span = litmus::Span::default();
        test.threads[0].instructions.push(after);
        let last = test.threads[0].instructions.len() as u16 - 1;
        let point = |instruction| SyncPoint { thread: ThreadId(0), instruction };
        let whole = SyncPoint { thread: ThreadId(1), instruction: None };
        let pair = |from| SystemSync { from, to: whole, span: litmus::Span::default() };
        test.system_sync = vec![pair(point(Some(barrier))), pair(point(Some(last))), pair(point(None))];
        let twin = without_control_barriers(&test).unwrap();
        assert_eq!(twin.system_sync, [pair(point(Some(last - 1))), pair(point(None))]);
    }
}
