//! Liveness analysis: the variables of an invocation that are dead at a block.
//!
//! A variable is dead if every path writes it before reading it. Compilers without optimization keep the
//! values of a loop iteration in variables. If only dead variables changed, the iteration left the state
//! unchanged, and the loop is a spin loop.

use std::collections::{HashMap, HashSet};

use rspirv::spirv::{Op, StorageClass};
use spirv_reader::{SpirvFunction, SpirvModule, SpirvOperation};

use entry_point::non_observable_ids;

/// The uses of variables in a basic block, and its successors.
#[derive(Default)]
struct BlockLiveness {
    /// Variables that are read before they are written here.
    used_before_write: HashSet<u32>,
    written: HashSet<u32>,
    successors: Vec<u32>,
}

/// Returns the variables that are dead at `header` or whose values are not observable.
///
/// Variables with uses other than whole loads and stores are never included.
pub(crate) fn dead_variables(module: &SpirvModule, function: &SpirvFunction, header: u32) -> HashSet<u32> {
    let declared = function.code.iter().filter(|one| one.op == Op::Variable);
    let mut plain: HashSet<u32> = declared.map(|variable| variable.result).collect();
    plain.extend(private_variables(module, function));
    let mut blocks: HashMap<u32, BlockLiveness> = HashMap::new();
    let mut label = 0;
    for instruction in &function.code {
        if instruction.op == Op::Label {
            label = instruction.result;
        }
        let block = blocks.entry(label).or_default();
        let operation = module.operation(instruction);
        match operation {
            SpirvOperation::Load { pointer, .. } if plain.contains(&pointer) => {
                // A read after a write of its block sees that write, independent of the previous block.
                if !block.written.contains(&pointer) {
                    block.used_before_write.insert(pointer);
                }
            }
            SpirvOperation::Store { pointer, value, .. } if plain.contains(&pointer) => {
                block.written.insert(pointer);
                plain.remove(&value);
            }
            _ if operation.is_branch() => {
                block.successors.extend(module.successors(&function.types, instruction));
            }
            _ => module.operands_of(instruction).iter().for_each(|id| {
                plain.remove(id);
            }),
        }
    }
    // Backward data-flow analysis to a fixpoint.
    let mut read: HashMap<u32, HashSet<u32>> = HashMap::new();
    loop {
        let mut changed = false;
        for (label, block) in blocks.iter().map(|(label, block)| (*label, block)) {
            let live_out = block.successors.iter().filter_map(|next| read.get(next)).flatten();
            let live_out: Vec<u32> = live_out.filter(|id| !block.written.contains(id)).copied().collect();
            let here = read.entry(label).or_default();
            let before = here.len();
            here.extend(block.used_before_write.iter().copied().chain(live_out));
            changed |= here.len() > before;
        }
        if !changed {
            break;
        }
    }
    let read = read.remove(&header).unwrap_or_default();
    let quiet = non_observable_ids(module, function, true);
    plain.retain(|id| !read.contains(id) || quiet.contains(id));
    plain
}

/// Returns the private variables of the module that end with `function`: an entry point that no code calls
/// and that alone uses them.
fn private_variables(module: &SpirvModule, function: &SpirvFunction) -> Vec<u32> {
    let is_private = |class: StorageClass| class == StorageClass::Private;
    let variables = module.variables.iter().filter(|(_, variable)| is_private(variable.class));
    let mut private: Vec<u32> = variables.map(|(id, _)| *id).collect();
    let is_own = |other: &&SpirvFunction| std::ptr::eq::<SpirvFunction>(*other, function);
    let others = module.functions.values().filter(|other| !is_own(other));
    let used: HashSet<u32> = others
        .flat_map(|other| &other.code)
        .flat_map(|instruction| module.operands_of(instruction))
        .copied()
        .collect();
    let Some((id, _)) = module.functions.iter().find(|(_, other)| is_own(other)) else { return Vec::new() };
    let calls_itself =
        || function.code.iter().any(|instruction| module.operands_of(instruction).contains(id));
    if used.contains(id) || calls_itself() {
        return Vec::new();
    }
    private.retain(|id| !used.contains(id));
    private
}
