//! Subgroup operations, from the text of SPIR-V ("Non-Uniform Instructions") and Vulkan's shaders chapter
//! ("Group Operations").
//!
//! The result of an invocation depends on the operands of the invocations in its scope-restricted tangle.
//! None of these operations is a memory operation or a memory barrier, and synchronizes-with is a closed list
//! (VK-SW), so they order nothing. Such a tangle also executes control barriers of execution scope Subgroup
//! ("OpControlBarrier": it waits for those that execute the same dynamic instance). A branch around the
//! barrier makes the tangle smaller than the subgroup.

use std::collections::BTreeMap;

use litmus::{
    ArithmeticOperation, ControlBarrier, Flow, InstructionKind, Operand, QuadDirection, ScalarType, Scope,
    SubgroupKind, SubgroupSpan, Test, Value,
};

use crate::instances::Instances;
use crate::profile::{AppendixVersion, TextProfile};
use crate::thread_path::{NodeId, ThreadPath};
use crate::values::evaluate_node;

/// The type of all values: 32 bits without a sign.
pub const WORD: ScalarType = ScalarType::U32;

pub fn operand(kind: &InstructionKind) -> Option<Operand> {
    kind.subgroup_operation().and_then(|operation| operation.value)
}

/// Returns the result of a thread's n-th operation; `None` while an operand is unknown. An undefined result
/// is 0, because the language forbids its use.
pub fn exchange_result(
    test: &Test,
    instances: &Instances,
    paths: &[&ThreadPath],
    tangles: &DynamicInstances,
    values: &[Vec<Option<Value>>],
    thread: usize,
    number: usize,
) -> Option<Value> {
    let exchange = paths[thread].exchanges.get(number)?;
    let same_subgroup =
        |left: usize, right: usize| left == right || instances.includes_thread(Scope::Subgroup, left, right);
    // SubgroupLocalInvocationId: the invocations of a subgroup are numbered as the columns are.
    let lane_index = |of: usize| (0..of).filter(|other| same_subgroup(of, *other)).count() as u32;
    let mut tangle = Vec::new();
    let name = operation_name(&exchange.name);
    let in_tangle = |other: usize| same_subgroup(thread, other) && tangles.are_together(&name, thread, other);
    for other in (0..test.threads.len()).filter(|other| in_tangle(*other)) {
        let found = paths[other].exchanges.iter().find(|found| found.name == exchange.name);
        tangle.extend(found.map(|found| (lane_index(other), other, found.operand)));
    }
    let lane_operand = |(_, other, node): &(u32, usize, Option<NodeId>)| -> Option<u32> {
        let node = (*node)?;
        Some(evaluate_node(paths[*other], node, &values[*other])?.truncate_to(WORD).0 as u32)
    };
    let own_lane = lane_index(thread);
    let operand_of_lane = |wanted: u32| match tangle.iter().find(|(id, ..)| *id == wanted) {
        Some(found) => lane_operand(found),
        None => Some(0),
    };
    let all_operands = || tangle.iter().map(lane_operand).collect::<Option<Vec<u32>>>();
    let answer = match exchange.kind {
        SubgroupKind::Elect => u32::from(tangle.iter().all(|(id, ..)| *id >= own_lane)),
        SubgroupKind::All => u32::from(!all_operands()?.contains(&0)),
        SubgroupKind::Any => u32::from(all_operands()?.iter().any(|value| *value != 0)),
        SubgroupKind::AllEqual => {
            let all = all_operands()?;
            u32::from(all.iter().all(|value| Some(value) == all.first()))
        }
        SubgroupKind::Ballot => {
            let mut bits = 0;
            for (member, value) in tangle.iter().zip(all_operands()?) {
                bits |= u32::from(value != 0) << member.0;
            }
            bits
        }
        SubgroupKind::BroadcastFirst => operand_of_lane(tangle.iter().map(|(id, ..)| *id).min()?)?,
        SubgroupKind::Broadcast(source) | SubgroupKind::Shuffle(source) => operand_of_lane(source)?,
        SubgroupKind::ShuffleXor(mask) => operand_of_lane(own_lane ^ mask)?,
        SubgroupKind::ShuffleUp(delta) => operand_of_lane(own_lane.wrapping_sub(delta))?,
        SubgroupKind::ShuffleDown(delta) => operand_of_lane(own_lane.wrapping_add(delta))?,
        SubgroupKind::Rotate { delta, cluster } => {
            operand_of_lane(own_lane / cluster * cluster + (own_lane % cluster + delta) % cluster)?
        }
        SubgroupKind::QuadBroadcast(index) => operand_of_lane(own_lane / 4 * 4 + index)?,
        SubgroupKind::QuadSwap(direction) => {
            // A quad has two rows of two.
            let (row, column) = (own_lane % 4 / 2, own_lane % 2);
            let (row, column) = match direction {
                QuadDirection::Horizontal => (row, 1 - column),
                QuadDirection::Vertical => (1 - row, column),
                QuadDirection::Diagonal => (1 - row, 1 - column),
            };
            operand_of_lane(own_lane / 4 * 4 + 2 * row + column)?
        }
        SubgroupKind::Arithmetic(span, operation) => {
            let mut counted = Vec::new();
            for member in &tangle {
                let counts = match span {
                    SubgroupSpan::Reduce => true,
                    SubgroupSpan::Inclusive => member.0 <= own_lane,
                    SubgroupSpan::Exclusive => member.0 < own_lane,
                };
                if counts {
                    counted.push(lane_operand(member)?);
                }
            }
            // An exclusive scan without earlier lanes gives the identity of the operation.
            match operation {
                ArithmeticOperation::Add => counted.iter().fold(0_u32, |sum, value| sum.wrapping_add(*value)),
                ArithmeticOperation::Minimum => counted.iter().copied().min().unwrap_or(u32::MAX),
                ArithmeticOperation::Maximum => counted.iter().copied().max().unwrap_or(0),
                ArithmeticOperation::And => counted.iter().fold(u32::MAX, |all, value| all & value),
                ArithmeticOperation::Or => counted.iter().fold(0, |all, value| all | value),
                ArithmeticOperation::Xor => counted.iter().fold(0, |all, value| all ^ value),
                _ => return None,
            }
        }
    };
    Some(Value(answer.into()))
}

/// Returns the name of an operation among those that tangles execute; barriers have separate names.
fn operation_name(id: &str) -> String {
    format!("operation {id}")
}

/// Returns the name of an instruction that a tangle executes.
fn shared_name(kind: &InstructionKind) -> Option<String> {
    match kind {
        InstructionKind::Subgroup(operation) => Some(operation_name(&operation.id)),
        InstructionKind::ControlBarrier(ControlBarrier {
            execution_scope: Scope::Subgroup,
            id,
            resource: None,
            ..
        }) => Some(format!("barrier {id}")),
        _ => None,
    }
}

/// Returns true if some invocations may not reach a control barrier that their tangle executes.
pub fn is_divergent_barrier(test: &Test, thread: usize, at: usize) -> bool {
    let code = &test.threads[thread].instructions;
    matches!(code[at].kind, InstructionKind::ControlBarrier(_))
        && shared_name(&code[at].kind).is_some()
        && branches_around(test, thread, at).next().is_some()
}

/// The invocations of each dynamic instance, for operations and barriers that some of them may not reach.
/// Equal numbers per operation and thread are one instance.
#[derive(Clone, Debug, Default)]
pub struct DynamicInstances(BTreeMap<(String, usize), usize>);

impl DynamicInstances {
    /// Returns true if another invocation executes a barrier together with this one.
    pub fn share_instance(&self, test: &Test, (thread, at): (usize, u16), other: usize) -> bool {
        let barrier = &test.threads[thread].instructions[usize::from(at)].kind;
        shared_name(barrier).is_none_or(|name| self.are_together(&name, thread, other))
    }

    /// In uniform control flow, all invocations are together and have no numbers.
    fn are_together(&self, name: &str, left: usize, right: usize) -> bool {
        let number = |thread: usize| self.0.get(&(name.to_owned(), thread));
        number(left) == number(right)
    }
}

/// A trace element of an invocation in divergent control flow: "invocations will continue to execute the same
/// dynamic instances as long as they follow the same control-flow path".
#[derive(Clone, Debug, PartialEq, Eq)]
enum TraceElement {
    /// A branch around operations, by its label, and whether it was taken.
    Turn(String, bool),
    /// An instruction that a tangle executes.
    Operation(String),
    /// A private instruction of one column.
    Alone(usize, usize),
}

/// An operation in divergent control flow: its name, and the executing invocations with their traces.
type DivergentOperation = (String, Vec<(usize, Vec<TraceElement>)>);

/// Returns the branches around an instruction with their targets, the outermost first.
fn branches_around(test: &Test, thread: usize, at: usize) -> impl Iterator<Item = (usize, usize)> + '_ {
    (0..at).filter_map(move |branch| {
        Some((branch, branch_target(test, thread, branch).filter(|end| *end > at)?))
    })
}

/// Returns the outermost branch around an instruction that ends uniform control flow, and its target.
///
/// "If control flow is uniform upon entry into a header block, and all invocations leave that dynamic instance
/// of the header block's control-flow construct via the header block's declared merge block, then control flow
/// reconverges to be uniform at that merge block." A branch that every invocation of the workgroup falls
/// through leaves control flow uniform, so later branches are headers in uniform control flow.
fn outermost_branch(test: &Test, paths: &[&ThreadPath], thread: usize, at: usize) -> Option<(usize, usize)> {
    let label = |of: usize, (branch, _): (usize, usize)| match test.threads[of].instructions[branch].kind {
        InstructionKind::Flow(Flow::Branch { target, .. }) => {
            test.threads[of].labels.get(usize::from(target.0)).map(|label| label.name.as_str())
        }
        _ => None,
    };
    let place = test.threads[thread].place;
    let mut enclosing: Vec<Option<&str>> = Vec::new();
    for around in branches_around(test, thread, at) {
        let outer = enclosing.clone();
        let name = label(thread, around);
        enclosing.push(name);
        let falls_through = |of: usize| {
            let own = (0..test.threads[of].instructions.len()).find(|branch| {
                branch_target(test, of, *branch).is_some_and(|end| end > *branch)
                    && label(of, (*branch, 0)) == name
                    && branches_around(test, of, *branch)
                        .map(|inner| label(of, inner))
                        .eq(outer.iter().copied())
            });
            own.is_some_and(|branch| !paths[of].history.contains(&(branch, true)))
        };
        let mut workgroup = (0..test.threads.len())
            .filter(|of| *of == thread || test.threads[*of].place.shares_scope(place, Scope::Workgroup));
        if !workgroup.all(falls_through) {
            return Some(around);
        }
    }
    None
}

/// Returns the target of a conditional branch.
fn branch_target(test: &Test, thread: usize, branch: usize) -> Option<usize> {
    let code = &test.threads[thread];
    let InstructionKind::Flow(Flow::Branch { target, .. }) = code.instructions[branch].kind else {
        return None;
    };
    code.label_index(target)
}

/// Returns the trace of an invocation from its divergence to an operation.
///
/// `None` if it does not execute the operation, or executes it in uniform control flow.
fn invocation_trace(
    test: &Test,
    paths: &[&ThreadPath],
    thread: usize,
    at: usize,
) -> Option<Vec<TraceElement>> {
    let (begin, end) = outermost_branch(test, paths, thread, at)?;
    let code = &test.threads[thread].instructions;
    let history = &paths[thread].history;
    let position = history.iter().position(|(index, _)| *index == at)?;
    let inside_branch = history[..position].iter().filter(|(index, _)| begin < *index && *index < end);
    let trace_element = |(index, taken): &(usize, bool)| {
        if let Some(name) = shared_name(&code[*index].kind) {
            return TraceElement::Operation(name);
        }
        match (&code[*index].kind, branch_target(test, thread, *index)) {
            (InstructionKind::Flow(Flow::Branch { target: label, .. }), Some(end))
                if *index < end
                    && code[*index..end].iter().any(|other| shared_name(&other.kind).is_some()) =>
            {
                let name = test.threads[thread].labels[usize::from(label.0)].name.clone();
                TraceElement::Turn(name, *taken)
            }
            _ => TraceElement::Alone(thread, *index),
        }
    };
    Some(inside_branch.map(trace_element).collect())
}

/// Returns the possible dynamic instances under a profile.
///
/// "Invocations that have taken different control flow paths **may** resume executing the same dynamic
/// instances if their execution reaches the same static instruction": any grouping, unless the profile
/// restricts it.
pub fn enumerate_instances(
    test: &Test,
    profile: TextProfile,
    paths: &[&ThreadPath],
) -> Vec<DynamicInstances> {
    let mut operations: Vec<DivergentOperation> = Vec::new();
    for (thread, code) in test.threads.iter().enumerate() {
        for (at, instruction) in code.instructions.iter().enumerate() {
            let Some(name) = shared_name(&instruction.kind) else { continue };
            let Some(trace) = invocation_trace(test, paths, thread, at) else { continue };
            match operations.iter_mut().find(|(known, _)| *known == name) {
                Some((_, those)) => those.push((thread, trace)),
                None => operations.push((name, vec![(thread, trace)])),
            }
        }
    }
    // If an operation precedes another one in some column, it does so in all of them.
    let is_before = |left: &str, right: &str| {
        test.threads.iter().any(|code| {
            let place = |name: &str| {
                let mut code = code.instructions.iter();
                code.position(|instruction| shared_name(&instruction.kind).as_deref() == Some(name))
            };
            matches!((place(left), place(right)), (Some(left), Some(right)) if left < right)
        })
    };
    let mut ordered: Vec<DivergentOperation> = Vec::new();
    for operation in operations {
        let at = ordered.iter().position(|other| is_before(&operation.0, &other.0)).unwrap_or(ordered.len());
        ordered.insert(at, operation);
    }
    let mut found = vec![DynamicInstances::default()];
    for (name, those) in &ordered {
        let mut next = Vec::new();
        for known in &found {
            for numbers in set_partitions(those.len()) {
                let mut tangles = known.clone();
                let pairs = those.iter().zip(&numbers);
                tangles.0.extend(pairs.map(|((thread, _), number)| ((name.clone(), *thread), *number)));
                if is_allowed(test, profile, &tangles, name, those, &ordered) {
                    next.push(tangles);
                }
            }
        }
        found = next;
    }
    found
}

/// Returns all set partitions of `count` invocations.
fn set_partitions(count: usize) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    for _ in 0..count {
        all = all
            .iter()
            .flat_map(|before: &Vec<usize>| {
                // Restricted growth strings: each invocation joins a known set or opens the next
                // one.
                let new = before.iter().max().map_or(0, |most| most + 1);
                (0..=new).map(move |number| before.iter().copied().chain([number]).collect())
            })
            .collect();
    }
    all
}

/// Returns true if the profile allows the instance numbers of one operation after those of earlier operations.
fn is_allowed(
    test: &Test,
    profile: TextProfile,
    tangles: &DynamicInstances,
    name: &str,
    those: &[(usize, Vec<TraceElement>)],
    all: &[DivergentOperation],
) -> bool {
    those.iter().all(|(left, left_marks)| {
        those.iter().all(|(right, right_marks)| {
            let together = tangles.are_together(name, *left, *right);
            if test.metadata.maximal_reconvergence || profile.text == AppendixVersion::Together {
                return together;
            }
            let share_path = left_marks == right_marks;
            if profile.text == AppendixVersion::Apart {
                return together == share_path;
            }
            // One path from where they were together last.
            let is_after_operation = |marks: &[TraceElement], operation: &str| {
                let at =
                    marks.iter().position(|mark| *mark == TraceElement::Operation(operation.to_owned()))?;
                Some(marks[at..].to_vec())
            };
            let separated_since = all.iter().any(|(earlier, executing)| {
                let executes = |thread: usize| executing.iter().any(|(other, _)| *other == thread);
                executes(*left)
                    && executes(*right)
                    && tangles.are_together(earlier, *left, *right)
                    && is_after_operation(left_marks, earlier)
                        .is_some_and(|l| Some(l) == is_after_operation(right_marks, earlier))
            });
            together || !(share_path || separated_since)
        })
    })
}
