//! The loads of a shader whose values are certainly needed.
//!
//! A compiler may drop a load whose value decides nothing, so only a needed one that has no line shows a merge. The
//! value is followed to a store through operations that preserve it, and at most one that is merely not constant.
//! What is not proven to be needed counts as unneeded: then the check has no answer.

use std::collections::HashSet;

use rspirv::spirv::{Op, StorageClass as Class};
use spirv_reader::{SpirvConstant, SpirvFunction, SpirvModule};

/// A load and the instructions that execute after it, unless its invocation ends.
struct ValueFlow<'a> {
    module: &'a SpirvModule,
    function: &'a SpirvFunction,
    value: u32,
    /// The block of the load, and those that follow it: after a selection, the one that merges its arms.
    blocks: Vec<u32>,
    /// The ids that depend on the load.
    dependent: HashSet<u32>,
}

/// Returns the block of a store that writes the value of a load, if one is certain to.
pub(super) fn observing_block(module: &SpirvModule, function: &SpirvFunction, load: usize) -> Option<u32> {
    let value = function.code.get(load).map(|load| load.result).filter(|value| *value != 0)?;
    let blocks = following_blocks(module, function, load);
    let dependent = dependent_ids(module, function, value)?;
    ValueFlow { module, function, value, blocks, dependent }.find_store(value, load, false)
}

/// Returns the block of an instruction.
pub(super) fn block_of(function: &SpirvFunction, at: usize) -> u32 {
    let before = function.code.get(..=at).unwrap_or_default();
    before.iter().rev().find(|one| one.op == Op::Label).map_or(0, |label| label.result)
}

fn following_blocks(module: &SpirvModule, function: &SpirvFunction, at: usize) -> Vec<u32> {
    let (mut blocks, mut start) = (vec![block_of(function, at)], at);
    loop {
        let mut rest = function.code.iter().skip(start + 1).take_while(|one| one.op != Op::Label);
        let end = rest.find(|one| matches!(one.op, Op::SelectionMerge | Op::Branch | Op::LoopMerge));
        let next = end.filter(|end| end.op != Op::LoopMerge).and_then(|end| module.operands_of(end).first());
        let Some((block, at)) = next.and_then(|block| Some((block, function.labels.get(block)?))) else {
            return blocks;
        };
        if blocks.contains(block) {
            return blocks;
        }
        blocks.push(*block);
        start = *at;
    }
}

/// Returns the ids of a function that depend on a value, unless it is given to another function.
fn dependent_ids(module: &SpirvModule, function: &SpirvFunction, value: u32) -> Option<HashSet<u32>> {
    let mut dependent = HashSet::from([value]);
    loop {
        let before = dependent.len();
        for instruction in &function.code {
            let operands = module.operands_of(instruction);
            if !operands.iter().any(|id| dependent.contains(id)) {
                continue;
            }
            match instruction.op {
                Op::FunctionCall => return None,
                Op::Store => dependent.extend(resolve_pointer(module, function, operands[0]).first()),
                _ => dependent.extend(Some(instruction.result).filter(|result| *result != 0)),
            }
        }
        if dependent.len() == before {
            return Some(dependent);
        }
    }
}

/// Returns the variable of a pointer or image, followed by its indices.
fn resolve_pointer(module: &SpirvModule, function: &SpirvFunction, id: u32) -> Vec<u32> {
    let found = function.code.iter().find(|one| one.result == id);
    match found.map(|one| (one.op, module.operands_of(one))) {
        Some((
            Op::AccessChain | Op::InBoundsAccessChain | Op::Load | Op::CopyObject,
            [base, indices @ ..],
        )) => [&resolve_pointer(module, function, *base), indices].concat(),
        _ => vec![id],
    }
}

impl ValueFlow<'_> {
    /// Returns the block of a store of a value in the instructions after `start`. `is_lossy` is true if several
    /// values of the load may be the same value.
    fn find_store(&self, value: u32, start: usize, is_lossy: bool) -> Option<u32> {
        let later = self.function.code.iter().enumerate().skip(start + 1);
        let mut later = later.filter(|(at, _)| self.blocks.contains(&block_of(self.function, *at)));
        later.find_map(|(at, instruction)| {
            let operands = self.module.operands_of(instruction);
            let depends = |id: &u32| self.dependent.contains(id);
            let is_constant = |id: &u32| self.constant(*id).is_some_and(|number| number != 0);
            match (instruction.op, operands) {
                (Op::Store, [variable, stored, ..]) if *stored == value && self.is_local(*variable) => {
                    self.find_store(*variable, at, is_lossy)
                }
                (Op::Store, [pointer, stored, ..])
                | (Op::AtomicStore, [pointer, _, _, stored])
                | (Op::ImageWrite, [pointer, _, stored, ..]) => {
                    let is_last = *stored == value && self.is_only_write(*pointer, at);
                    is_last.then(|| block_of(self.function, at))
                }
                (Op::Load | Op::CopyObject | Op::Bitcast | Op::Not | Op::SNegate, [operand, ..])
                // Images of one component store the first one.
                | (Op::CompositeConstruct, [operand, ..]) if *operand == value => {
                    self.find_store(instruction.result, at, is_lossy)
                }
                (Op::IAdd | Op::ISub | Op::BitwiseXor, [one, two])
                    if [one, two].contains(&&value) && depends(one) != depends(two) =>
                {
                    self.find_store(instruction.result, at, is_lossy)
                }
                (Op::IMul, [one, two])
                    if !is_lossy && [one, two].contains(&&value) && (is_constant(one) || is_constant(two)) =>
                {
                    self.find_store(instruction.result, at, true)
                }
                // A component of the loaded vector itself.
                (Op::CompositeExtract, [vector, _]) if *vector == self.value && value == self.value => {
                    self.find_store(instruction.result, at, is_lossy)
                }
                _ => None,
            }
        })
    }

    fn constant(&self, id: u32) -> Option<u64> {
        match self.module.constants.get(&id) {
            Some((_, SpirvConstant::Scalar(number))) => Some(*number),
            _ => None,
        }
    }

    /// Returns true for a variable of one invocation that is stored once and otherwise only loaded.
    fn is_local(&self, variable: u32) -> bool {
        let code = || self.module.functions.values().flat_map(|function| &function.code);
        let uses = code().filter(|one| self.module.operands_of(one).contains(&variable));
        let is_declared_here = code().any(|one| one.op == Op::Variable && one.result == variable)
            || self.module.variables.get(&variable).is_some_and(|global| global.class == Class::Private);
        is_declared_here && uses.filter(|one| one.op != Op::Load).count() == 1
    }

    /// Returns true if no other instruction of the module may write to the place of a store.
    fn is_only_write(&self, pointer: u32, store: usize) -> bool {
        let place = resolve_pointer(self.module, self.function, pointer);
        let variables = &self.module.variables;
        let is_elsewhere = |other: &[u32]| {
            let mut indices = place.iter().zip(other).skip(1);
            other[0] != place[0] && variables.contains_key(&other[0])
                || indices.any(|(one, two)| {
                    let numbers = (self.constant(*one), self.constant(*two));
                    matches!(numbers, (Some(one), Some(two)) if one != two)
                })
        };
        let functions = self.module.functions.values();
        let mut others = functions.flat_map(|function| function.code.iter().map(move |one| (function, one)));
        variables.contains_key(&place[0])
            && others.all(|(function, one)| {
                let is_write =
                    matches!(one.op, Op::Store | Op::AtomicStore | Op::ImageWrite | Op::CopyMemory);
                let operands = self.module.operands_of(one);
                !is_write
                    || self.function.code.get(store).is_some_and(|store| store.place == one.place)
                    || operands.first().is_some_and(|target| {
                        let is_local =
                            function.code.iter().any(|one| one.op == Op::Variable && one.result == *target);
                        is_local || is_elsewhere(&resolve_pointer(self.module, function, *target))
                    })
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The functions of the file are named by what holds for their only load of `x`.
    #[test]
    fn values_are_followed_to_stores() {
        let module = spirv_reader::read_module(include_bytes!("observed.spvasm")).unwrap();
        for (id, function) in &module.functions {
            let is_load = |one: &spirv_reader::SpirvInstruction| {
                one.op == Op::Load
                    && resolve_pointer(&module, function, one.result)[0] == module.text_names["x"]
            };
            let load = function.code.iter().position(is_load).unwrap();
            let name = &module.names[id];
            let is_needed = observing_block(&module, function, load).is_some();
            assert_eq!(is_needed, name.starts_with("needed"), "{name}");
        }
        assert_eq!(module.functions.len(), 11);
    }
}
