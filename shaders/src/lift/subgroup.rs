//! Subgroup operations of a kernel: which they are, and which threads execute them.

use std::collections::BTreeSet;

use litmus::ThreadId;
use rspirv::dr::{Block, Instruction, Operand};
use rspirv::spirv::{Op, Scope, Word};

use super::{KernelEvent, LiftError};
use crate::reader::{Reader, ids};

/// Whether an instruction is one: those that the kernels have.
pub(super) fn is_operation(op: Op) -> bool {
    let number = op as u32;
    (Op::GroupNonUniformElect as u32..=Op::GroupNonUniformQuadSwap as u32).contains(&number)
        || op == Op::GroupNonUniformRotateKHR
}

/// The event of one.
pub(super) fn event(reader: &Reader, instruction: &Instruction) -> Result<KernelEvent, LiftError> {
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
            // The value is what a lane brings, and so is the lane that it shuffles from.
            Operand::IdRef(id) if position > 1 && op != Op::GroupNonUniformShuffle && span.is_none() => {
                numbers.push(reader.constant(*id).ok_or(LiftError::NotConstant(*id))?);
            }
            Operand::IdRef(_) => {}
            _ => return Err(LiftError::Malformed(op)),
        }
    }
    Ok(KernelEvent::Subgroup { instruction: op, span, numbers })
}

/// The threads that come to a block by the branch before it: those that its condition names.
pub(super) fn members(reader: &Reader, blocks: &[Block], block: &Block) -> BTreeSet<ThreadId> {
    let mut found = BTreeSet::new();
    let Some(label) = block.label_id() else { return found };
    for before in blocks {
        let Some(branch) = before.instructions.last() else { continue };
        if branch.class.opcode != Op::BranchConditional {
            continue;
        }
        if let [condition, yes, _] = ids(branch)[..]
            && yes == label
        {
            named(reader, selector(blocks), condition, &mut found);
        }
    }
    found
}

/// What the switches look at that tell the threads apart.
fn selector(blocks: &[Block]) -> Option<Word> {
    let mut last = blocks.iter().filter_map(|block| block.instructions.last());
    last.find(|last| last.class.opcode == Op::Switch).and_then(|switch| ids(switch).first().copied())
}

/// The threads that a condition names: comparisons of the selector with their numbers, one or another.
fn named(reader: &Reader, selector: Option<Word>, condition: Word, found: &mut BTreeSet<ThreadId>) {
    // A module of others may make a condition out of itself: each is looked at once.
    let (mut seen, mut open) = (BTreeSet::new(), vec![condition]);
    while let Some(id) = open.pop() {
        let Some(made) = reader.maker(id).filter(|_| seen.insert(id)) else { continue };
        match (made.class.opcode, &ids(made)[..]) {
            (Op::LogicalOr, [left, right]) => open.extend([*left, *right]),
            (Op::IEqual, [role, number]) if Some(*role) == selector => {
                found.extend(reader.constant(*number).map(|number| ThreadId(number as u16)));
            }
            _ => {}
        }
    }
}
