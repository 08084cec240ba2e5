//! Consistency checks of control barriers with one instance.

use crate::error::KhronosError;
use crate::span::Span;
use crate::test::{ControlBarrier, InstructionKind, Test, Thread};

/// A control barrier of a thread.
struct BarrierMember<'a> {
    instance: i64,
    barrier: &'a ControlBarrier,
    span: Span,
}

/// Returns the errors in the control barriers of a test.
pub(super) fn check_barriers(test: &Test) -> Vec<KhronosError> {
    let threads: Vec<Vec<BarrierMember<'_>>> = test.threads.iter().map(barrier_members).collect();
    let mut errors = Vec::new();
    for (index, thread) in threads.iter().enumerate() {
        for (position, member) in thread.iter().enumerate() {
            if thread[..position].iter().any(|earlier| earlier.instance == member.instance) {
                let BarrierMember { instance, span, .. } = *member;
                errors.push(KhronosError::RepeatedBarrier { instance, span });
            }
        }
        let earlier = threads.iter().take(index).flatten();
        for member in thread {
            let BarrierMember { instance, span, .. } = *member;
            let first = earlier.clone().chain(thread).find(|other| other.instance == instance);
            if first.is_some_and(|first| !are_consistent(first.barrier, member.barrier)) {
                errors.push(KhronosError::UnequalBarriers { instance, span });
            }
        }
        for other in threads.iter().take(index) {
            errors.extend(find_crossing(other, thread));
        }
    }
    errors
}

fn barrier_members(thread: &Thread) -> Vec<BarrierMember<'_>> {
    thread
        .instructions
        .iter()
        .filter_map(|instruction| match &instruction.kind {
            InstructionKind::ControlBarrier(barrier) => {
                Some(BarrierMember { instance: barrier.id.parse().ok()?, barrier, span: instruction.span })
            }
            _ => None,
        })
        .collect()
}

/// Returns true if two members have the same scope, order and storage classes; availability and visibility may differ.
fn are_consistent(left: &ControlBarrier, right: &ControlBarrier) -> bool {
    let order = |barrier: &ControlBarrier| barrier.semantics.map(|s| (s.order, s.classes));
    left.memory_scope == right.memory_scope && order(left) == order(right)
}

/// Returns an error if two instances occur in opposite orders in two threads.
fn find_crossing(earlier: &[BarrierMember<'_>], later: &[BarrierMember<'_>]) -> Option<KhronosError> {
    let position = |instance| earlier.iter().position(|member| member.instance == instance);
    for (index, first) in later.iter().enumerate() {
        for second in &later[index + 1..] {
            if first.instance != second.instance
                && let (Some(of_first), Some(of_second)) =
                    (position(first.instance), position(second.instance))
                && of_second < of_first
            {
                let (instance, other) = (second.instance, first.instance);
                return Some(KhronosError::CrossedBarriers { instance, other, span: second.span });
            }
        }
    }
    None
}
