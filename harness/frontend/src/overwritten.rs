//! Variables of a function whose contents no longer matter at a block: whatever control does from there, they are written before
//! they are read.
//!
//! Compilers that do not optimise keep what a turn of a loop has read in such variables. A turn that changes nothing else waits.

use std::collections::{HashMap, HashSet};

use rspirv::spirv::Op;

use crate::module::{Function, Module};
use crate::quiet::quiet;

/// What a block does to variables, and where control goes from it.
#[derive(Default)]
struct Block {
    /// Read before it writes them.
    read: HashSet<u32>,
    written: HashSet<u32>,
    next: Vec<u32>,
}

/// The variables of a function that are written before they are read from this block on, or decide nothing. Those of which more is done than loading and
/// storing them whole are not among them.
pub(crate) fn overwritten(module: &Module, function: &Function, header: u32) -> HashSet<u32> {
    let declared = function.code.iter().filter(|one| one.op == Op::Variable);
    let mut plain: HashSet<u32> = declared.map(|variable| variable.result).collect();
    let mut blocks: HashMap<u32, Block> = HashMap::new();
    let mut label = 0;
    for instruction in &function.code {
        if instruction.op == Op::Label {
            label = instruction.result;
        }
        let block = blocks.entry(label).or_default();
        match (instruction.op, module.operands(instruction)) {
            (Op::Load, [from, ..]) if plain.contains(from) => {
                if !block.written.contains(from) {
                    block.read.insert(*from);
                }
            }
            (Op::Store, [to, value, ..]) if plain.contains(to) => {
                block.written.insert(*to);
                plain.remove(value);
            }
            (Op::Branch | Op::BranchConditional | Op::Switch, operands) => {
                block.next.extend(operands.iter().filter(|id| function.labels.contains_key(id)));
            }
            (_, operands) => operands.iter().for_each(|id| {
                plain.remove(id);
            }),
        }
    }
    // What is read from a block on, grown until nothing is added.
    let mut read: HashMap<u32, HashSet<u32>> = HashMap::new();
    loop {
        let mut changed = false;
        for (label, block) in blocks.iter().map(|(label, block)| (*label, block)) {
            let behind = block.next.iter().filter_map(|next| read.get(next)).flatten();
            let behind: Vec<u32> = behind.filter(|id| !block.written.contains(id)).copied().collect();
            let here = read.entry(label).or_default();
            let before = here.len();
            here.extend(block.read.iter().copied().chain(behind));
            changed |= here.len() > before;
        }
        if !changed {
            break;
        }
    }
    let read = read.remove(&header).unwrap_or_default();
    let quiet = quiet(module, function, true);
    plain.retain(|id| !read.contains(id) || quiet.contains(id));
    plain
}
