//! Results of subgroup operations, which exchange values between the lanes of a tangle.
//!
//! They are not events: no model orders anything by them.

use litmus::{ScalarType, SubgroupOperation, TangledLane, Test, ThreadId, Value};

use super::Event;
use super::tangles::Tangles;
use crate::path::{StepKind, ThreadStep};
use crate::symbolic::{ReadIndex, SymbolicValue};
use crate::system::{InstructionMark, thread_events};

fn subgroup_operation_at(test: &Test, thread: ThreadId, instruction: u16) -> Option<&SubgroupOperation> {
    test.thread(thread).instructions.get(usize::from(instruction))?.kind.subgroup_operation()
}

/// A value of a thread over the events of the execution; `None` while a result that it is computed from is not known.
type PartialValue = Option<SymbolicValue<u16>>;

/// The results of subgroup operations over the events of an execution, by thread and instruction.
#[derive(Clone, Debug, Default)]
pub(super) struct SubgroupResults(Vec<(ThreadId, u16, SymbolicValue<u16>)>);

impl SubgroupResults {
    /// Returns the result of an operation for a thread; 0 if it is undefined, because the language forbids
    /// its use.
    pub(super) fn get(&self, thread: ThreadId, instruction: u16) -> SymbolicValue<u16> {
        let found = self.0.iter().find(|(owner, at, _)| (*owner, *at) == (thread, instruction));
        found.map_or(SymbolicValue::Known(Value(0)), |(_, _, value)| value.clone())
    }

    /// Computes the results of all executed operations.
    ///
    /// `reads` holds the value of each read of each thread; entries of subgroup operations are arbitrary.
    pub(super) fn compute(
        test: &Test,
        tangles: &Tangles,
        steps: &[&[ThreadStep]],
        reads: &[Vec<SymbolicValue<u16>>],
    ) -> SubgroupResults {
        let mut values: Vec<Vec<PartialValue>> =
            reads.iter().map(|reads| reads.iter().cloned().map(Some).collect()).collect();
        // Each operation as its thread, its step, and its number among the reads of the thread.
        let mut pending = Vec::new();
        for (index, steps) in steps.iter().enumerate() {
            let results = steps.iter().filter(|step| {
                matches!(step.kind, StepKind::Read(_) | StepKind::Rmw(..) | StepKind::Subgroup(_))
            });
            for (number, step) in results.enumerate() {
                if let StepKind::Subgroup(_) = step.kind {
                    values[index][number] = None;
                    pending.push((index, step, number));
                }
            }
        }
        let mut results = SubgroupResults::default();
        // A user follows its operands, and all lanes arrive before any proceeds, so each iteration resolves
        // at least one.
        loop {
            let before = pending.len();
            pending.retain(|(index, step, number)| {
                let thread = ThreadId(*index as u16);
                let Some(result) = compute_result(test, tangles, steps, &values, thread, step) else {
                    return true;
                };
                values[*index][*number] = Some(result.clone());
                results.0.push((thread, step.instruction, result));
                false
            });
            if pending.len() == before {
                return results;
            }
        }
    }
}

/// Computes the result of an operation for a thread; `None` while it is unknown.
fn compute_result(
    test: &Test,
    tangles: &Tangles,
    steps: &[&[ThreadStep]],
    values: &[Vec<PartialValue>],
    thread: ThreadId,
    step: &ThreadStep,
) -> PartialValue {
    let operation = subgroup_operation_at(test, thread, step.instruction)?;
    let mut operands = Vec::new();
    for TangledLane { lane, thread, instruction } in
        tangles.lanes_with(thread, step.instruction).iter().copied()
    {
        let index = usize::from(thread.0);
        let step = steps[index].iter().find(|step| usize::from(step.instruction) == instruction)?;
        let StepKind::Subgroup(operand) = &step.kind else { return None };
        let value = match operand {
            Some(brought) => to_event_value(brought, &values[index]),
            None => Some(SymbolicValue::Known(Value(0))),
        };
        operands.push((lane, value));
    }
    let constant = |number: u32| Some(SymbolicValue::Known(Value(number.into())));
    let compute = |operation, left: PartialValue, right: PartialValue| {
        Some(SymbolicValue::new_operation(operation, ScalarType::U32, left?, right?))
    };
    match operation.kind.result_in_lane(test.lane_index(thread), &operands, &constant, &compute) {
        Some(result) => result,
        None => Some(SymbolicValue::Known(Value(0))),
    }
}

/// Orders the events of each lane before an operation before those of the other lanes of its tangle after it.
pub(super) fn subgroup_order(
    events: &[Event],
    operations: &[InstructionMark],
    tangles: &Tangles,
) -> Vec<(u16, u16)> {
    let mut pairs = Vec::new();
    for from in operations {
        for lane in tangles.lanes_with(from.thread, from.instruction) {
            let is_other = |to: &&InstructionMark| {
                to.thread == lane.thread
                    && usize::from(to.instruction) == lane.instruction
                    && to.thread != from.thread
            };
            for to in operations.iter().filter(is_other) {
                let earlier = thread_events(events, from.thread).filter(|event| *event < from.next);
                let later = || thread_events(events, to.thread).filter(|event| *event >= to.next);
                pairs.extend(earlier.flat_map(|event| later().map(move |other| (event, other))));
            }
        }
    }
    pairs
}

/// Converts a thread's value to a value over events; `None` while a read that it needs is unknown.
fn to_event_value(value: &SymbolicValue<ReadIndex>, reads: &[PartialValue]) -> PartialValue {
    let mut is_known = true;
    value.for_each_read(&mut |read| is_known &= reads.get(usize::from(read)).is_some_and(Option::is_some));
    let event_value = |read: ReadIndex| reads.get(usize::from(read)).cloned().flatten();
    is_known.then(|| value.substitute(&|read| event_value(read).unwrap_or(SymbolicValue::Known(Value(0)))))
}
