//! Subgroup operations of a kernel, and the threads that execute them.

use std::collections::{BTreeMap, BTreeSet};

use litmus::ThreadId;
use rspirv::dr::{Block, Instruction, Operand};
use rspirv::spirv::{Op, Scope, Word};

use super::{KernelEvent, LiftError};
use crate::reader::{Reader, ids};

/// Returns true for the subgroup operations of kernels.
pub(super) fn is_operation(op: Op) -> bool {
    let number = op as u32;
    (Op::GroupNonUniformElect as u32..=Op::GroupNonUniformQuadSwap as u32).contains(&number)
        || op == Op::GroupNonUniformRotateKHR
}

/// Returns the event of a subgroup operation.
pub(super) fn lift_operation(reader: &Reader, instruction: &Instruction) -> Result<KernelEvent, LiftError> {
    let op = instruction.class.opcode;
    let (mut span, mut numbers) = (None, Vec::new());
    for (position, operand) in instruction.operands.iter().enumerate() {
        match operand {
            Operand::IdScope(id) => match reader.constant(*id) {
                Some(scope) if scope == Scope::Subgroup as u32 => {}
                Some(scope) => return Err(LiftError::Scope(scope)),
                None => return Err(LiftError::NotConstant(*id)),
            },
            Operand::GroupOperation(operation) => span = Some(*operation),
            // The operand of a lane may be computed, and so may the source lane of a shuffle.
            Operand::IdRef(id) if position > 1 && op != Op::GroupNonUniformShuffle && span.is_none() => {
                numbers.push(reader.constant(*id).ok_or(LiftError::NotConstant(*id))?);
            }
            Operand::IdRef(_) => {}
            _ => return Err(LiftError::Malformed(op)),
        }
    }
    Ok(KernelEvent::Subgroup { instruction: op, span, numbers, branches: 0 })
}

/// Returns the threads that reach each conditional block, each with the number of branches around it.
/// Conditions name the threads, possibly combined with another condition.
pub(super) fn block_members(
    reader: &Reader,
    blocks: &[Block],
) -> Result<BTreeMap<Word, BTreeMap<ThreadId, usize>>, LiftError> {
    let mut members: BTreeMap<Word, BTreeMap<ThreadId, usize>> = BTreeMap::new();
    let (selector, successors) = (thread_selector(blocks), super::successors(blocks));
    for block in blocks {
        let [.., merge, branch] = &block.instructions[..] else { continue };
        if (merge.class.opcode, branch.class.opcode) != (Op::SelectionMerge, Op::BranchConditional) {
            continue;
        }
        let end = *ids(merge).first().ok_or(LiftError::Malformed(merge.class.opcode))?;
        let [condition, yes, no] = ids(branch)[..] else { continue };
        let named = threads_in_condition(reader, selector, condition);
        if no != end || named.is_empty() {
            continue;
        }
        for label in super::blocks_until(&successors, yes, end) {
            let intersection = |known: &BTreeMap<ThreadId, usize>| {
                let both = known.iter().filter_map(|(thread, branches)| {
                    named.get(thread).map(|guarded| (*thread, branches + usize::from(*guarded)))
                });
                both.collect()
            };
            let first = || named.iter().map(|(thread, guarded)| (*thread, usize::from(*guarded))).collect();
            let of_block = members.get(&label).map_or_else(first, intersection);
            members.insert(label, of_block);
        }
    }
    Ok(members)
}

/// Returns the selector of the switches that separate threads.
fn thread_selector(blocks: &[Block]) -> Option<Word> {
    let mut last = blocks.iter().filter_map(|block| block.instructions.last());
    last.find(|last| last.class.opcode == Op::Switch).and_then(|switch| ids(switch).first().copied())
}

/// Returns the threads in a condition: comparisons of the selector with their indices, combined by "or". Each
/// comparison may be combined with another condition by "and".
fn threads_in_condition(
    reader: &Reader,
    selector: Option<Word>,
    condition: Word,
) -> BTreeMap<ThreadId, bool> {
    let number = |id: Word| {
        let made = reader.definition(id).filter(|made| made.class.opcode == Op::IEqual)?;
        match ids(made)[..] {
            [role, number] if Some(role) == selector => reader.constant(number),
            _ => None,
        }
    };
    // A foreign module may contain a cyclic condition, so each id is visited once.
    let (mut seen, mut open) = (BTreeSet::new(), vec![condition]);
    let mut found = BTreeMap::new();
    while let Some(id) = open.pop() {
        let Some(made) = reader.definition(id).filter(|_| seen.insert(id)) else { continue };
        match (made.class.opcode, &ids(made)[..]) {
            (Op::LogicalOr, [left, right]) => open.extend([*left, *right]),
            (Op::LogicalAnd, [plays, _]) => {
                found.extend(number(*plays).map(|number| (ThreadId(number as u16), true)));
            }
            _ => found.extend(number(id).map(|number| (ThreadId(number as u16), false))),
        }
    }
    found
}
