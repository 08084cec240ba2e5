//! Plain read-modify-writes that every invocation of a workgroup executes on one word.
//!
//! The rule reports only certain cases: the address is constant, and the statement is in a block that every
//! invocation reaches. An address that depends on data may be different for all invocations.

use std::collections::HashSet;

use rspirv::spirv::StorageClass;
use spirv_reader::{SpirvFunction, SpirvInstruction, SpirvModule, SpirvOperation};

use entry_point::update::plain_updates;

/// Returns the stores of the updates in module order, with their variables.
pub(super) fn find_shared_updates(module: &SpirvModule) -> Vec<(&SpirvInstruction, u32)> {
    let mut found = Vec::new();
    let mut known = HashSet::new();
    for entry in &module.entry_points {
        let size = module.declared_local_size(entry.function);
        let has_several_invocations =
            size.is_some_and(|size| super::smallest_local_size(module, size).iter().any(|size| *size > 1));
        let Some(function) = module.functions.get(&entry.function).filter(|_| has_several_invocations) else {
            continue;
        };
        if !known.insert(entry.function) {
            continue;
        }
        let reached = unconditional_code(module, function);
        for update in plain_updates(module, function) {
            let store = &function.code[update.store];
            let SpirvOperation::Store { pointer, .. } = module.operation(store) else { continue };
            if reached.contains(&update.store)
                && let Some(variable) = constant_address(module, function, pointer)
            {
                found.push((store, variable));
            }
        }
    }
    found
}

/// Returns the variable of a pointer whose indices are constants, if invocations share it.
fn constant_address(module: &SpirvModule, function: &SpirvFunction, pointer: u32) -> Option<u32> {
    let mut id = pointer;
    for _ in 0..module.id_bound() {
        if let Some(variable) = module.variables.get(&id) {
            let shared = [StorageClass::StorageBuffer, StorageClass::Uniform, StorageClass::Workgroup];
            return shared.contains(&variable.class).then_some(id);
        }
        let chain = function.code.iter().find(|instruction| instruction.result == id)?;
        let SpirvOperation::AccessChain { base, element: None, indices } = module.operation(chain) else {
            return None;
        };
        // With only constant indices, all invocations have the same address.
        if !indices.iter().all(|index| module.constants.contains_key(index)) {
            return None;
        }
        id = base;
    }
    None
}

/// Returns the indices of instructions in blocks that every invocation reaches.
///
/// Bodies of selections and loops are skipped. A function that may end early has no such block.
fn unconditional_code(module: &SpirvModule, function: &SpirvFunction) -> HashSet<usize> {
    let ends_block = |instruction: &&SpirvInstruction| {
        let operation = module.operation(instruction);
        operation.is_terminator() && !operation.is_branch()
    };
    let mut reached = HashSet::new();
    // With an early return, the code after it is conditional.
    if function.code.iter().filter(ends_block).count() != 1 {
        return reached;
    }
    let mut at = 0;
    let mut merge = None;
    while let Some(one) = function.code.get(at) {
        if !reached.insert(at) {
            break;
        }
        let target = match module.operation(one) {
            SpirvOperation::SelectionMerge { merge: to } | SpirvOperation::LoopMerge { merge: to, .. } => {
                merge = Some(to);
                at += 1;
                continue;
            }
            SpirvOperation::Branch { target } => merge.take().unwrap_or(target),
            SpirvOperation::BranchConditional { .. } | SpirvOperation::Switch { .. } => match merge.take() {
                Some(to) => to,
                None => break,
            },
            _ => {
                at += 1;
                continue;
            }
        };
        let Some(next) = function.labels.get(&target) else { break };
        at = *next;
    }
    reached
}
