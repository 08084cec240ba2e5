//! Subgroup operations of a kernel, and the threads that execute them.

use std::collections::{BTreeMap, BTreeSet};

use litmus::{ArithmeticOperation, QuadDirection, SubgroupKind, SubgroupOperation, SubgroupSpan, ThreadId};
use rspirv::dr::{Block, Instruction, Operand};
use rspirv::spirv::{GroupOperation, Op, Scope, Word};

use super::{KernelEvent, LiftError};
use crate::reader::{Reader, operand_ids};

/// Returns true for the subgroup operations of kernels.
pub(super) fn is_subgroup_operation(op: Op) -> bool {
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
    let (selector, successors) = (thread_selector(blocks), super::block_successors(blocks));
    for block in blocks {
        let [.., merge, branch] = &block.instructions[..] else { continue };
        if (merge.class.opcode, branch.class.opcode) != (Op::SelectionMerge, Op::BranchConditional) {
            continue;
        }
        let end = *operand_ids(merge).first().ok_or(LiftError::Malformed(merge.class.opcode))?;
        let [condition, yes, no] = operand_ids(branch)[..] else { continue };
        let named = threads_in_condition(reader, selector, condition);
        if no != end || named.is_empty() {
            continue;
        }
        for label in super::reachable_blocks_before(&successors, yes, end) {
            let intersection = |known: &BTreeMap<ThreadId, usize>| {
                let common = known.iter().filter_map(|(thread, branches)| {
                    named.get(thread).map(|guarded| (*thread, branches + usize::from(*guarded)))
                });
                common.collect()
            };
            let first = || named.iter().map(|(thread, guarded)| (*thread, usize::from(*guarded))).collect();
            let block_threads = members.get(&label).map_or_else(first, intersection);
            members.insert(label, block_threads);
        }
    }
    Ok(members)
}

/// Returns the selector of the switches that separate threads.
fn thread_selector(blocks: &[Block]) -> Option<Word> {
    let mut last = blocks.iter().filter_map(|block| block.instructions.last());
    last.find(|last| last.class.opcode == Op::Switch).and_then(|switch| operand_ids(switch).first().copied())
}

/// Returns the threads in a condition: comparisons of the selector with their indices, combined by "or". Each
/// comparison may be combined with another condition by "and".
fn threads_in_condition(
    reader: &Reader,
    selector: Option<Word>,
    condition: Word,
) -> BTreeMap<ThreadId, bool> {
    let number = |id: Word| {
        let definition = reader.definition(id).filter(|made| made.class.opcode == Op::IEqual)?;
        match operand_ids(definition)[..] {
            [selected, number] if Some(selected) == selector => reader.constant(number),
            _ => None,
        }
    };
    // An arbitrary module may contain a cyclic condition, so each id is visited once.
    let (mut visited, mut pending) = (BTreeSet::new(), vec![condition]);
    let mut found = BTreeMap::new();
    while let Some(id) = pending.pop() {
        let Some(definition) = reader.definition(id).filter(|_| visited.insert(id)) else { continue };
        match (definition.class.opcode, &operand_ids(definition)[..]) {
            (Op::LogicalOr, [left, right]) => pending.extend([*left, *right]),
            (Op::LogicalAnd, [comparison, _]) => {
                found.extend(number(*comparison).map(|number| (ThreadId(number as u16), true)));
            }
            _ => found.extend(number(id).map(|number| (ThreadId(number as u16), false))),
        }
    }
    found
}

/// Returns the expected event of a subgroup operation that this many branches of the thread skip.
pub(super) fn subgroup_event(operation: &SubgroupOperation, branches: usize) -> KernelEvent {
    let name = match operation.kind {
        SubgroupKind::Elect => Op::GroupNonUniformElect,
        SubgroupKind::All => Op::GroupNonUniformAll,
        SubgroupKind::Any => Op::GroupNonUniformAny,
        SubgroupKind::AllEqual => Op::GroupNonUniformAllEqual,
        SubgroupKind::Ballot => Op::GroupNonUniformBallot,
        SubgroupKind::Broadcast(_) => Op::GroupNonUniformBroadcast,
        SubgroupKind::BroadcastFirst => Op::GroupNonUniformBroadcastFirst,
        SubgroupKind::Shuffle(_) => Op::GroupNonUniformShuffle,
        SubgroupKind::ShuffleXor(_) => Op::GroupNonUniformShuffleXor,
        SubgroupKind::ShuffleUp(_) => Op::GroupNonUniformShuffleUp,
        SubgroupKind::ShuffleDown(_) => Op::GroupNonUniformShuffleDown,
        SubgroupKind::Rotate { .. } => Op::GroupNonUniformRotateKHR,
        SubgroupKind::QuadBroadcast(_) => Op::GroupNonUniformQuadBroadcast,
        SubgroupKind::QuadSwap(_) => Op::GroupNonUniformQuadSwap,
        SubgroupKind::Arithmetic(_, ArithmeticOperation::Add) => Op::GroupNonUniformIAdd,
        SubgroupKind::Arithmetic(_, ArithmeticOperation::Minimum) => Op::GroupNonUniformUMin,
        SubgroupKind::Arithmetic(_, ArithmeticOperation::Maximum) => Op::GroupNonUniformUMax,
        SubgroupKind::Arithmetic(_, ArithmeticOperation::And) => Op::GroupNonUniformBitwiseAnd,
        SubgroupKind::Arithmetic(_, ArithmeticOperation::Or) => Op::GroupNonUniformBitwiseOr,
        SubgroupKind::Arithmetic(..) => Op::GroupNonUniformBitwiseXor,
    };
    let span = match operation.kind {
        SubgroupKind::Arithmetic(SubgroupSpan::Reduce, _) => Some(GroupOperation::Reduce),
        SubgroupKind::Arithmetic(SubgroupSpan::Inclusive, _) => Some(GroupOperation::InclusiveScan),
        SubgroupKind::Arithmetic(SubgroupSpan::Exclusive, _) => Some(GroupOperation::ExclusiveScan),
        _ => None,
    };
    let numbers = match operation.kind {
        SubgroupKind::QuadSwap(QuadDirection::Horizontal) => vec![0],
        SubgroupKind::QuadSwap(QuadDirection::Vertical) => vec![1],
        SubgroupKind::QuadSwap(QuadDirection::Diagonal) => vec![2],
        SubgroupKind::Shuffle(_) => Vec::new(),
        kind => kind.constant_arguments(),
    };
    KernelEvent::Subgroup { instruction: name, span, numbers, branches }
}
