//! The loads of a shader whose values are certainly needed.
//!
//! A compiler may drop a load whose value decides nothing, so only a needed one that has no line shows a merge. The
//! value is followed to a store in its block, through operations that preserve it and at most one that is merely not
//! constant. What is not proven to be needed counts as unneeded: then the check has no answer.

use std::collections::HashSet;

use rspirv::spirv::{Op, StorageClass as Class};
use spirv_reader::{SpirvConstant, SpirvFunction, SpirvInstruction, SpirvModule};

/// A load of a function.
struct ValueFlow<'a> {
    module: &'a SpirvModule,
    function: &'a SpirvFunction,
    load: u32,
    /// The ids that depend on it.
    dependent: HashSet<u32>,
}

/// Returns true if a store in the block of a load certainly writes its value.
pub(super) fn is_needed(module: &SpirvModule, function: &SpirvFunction, at: usize) -> bool {
    let load = function.code.get(at).map_or(0, |load| load.result);
    let flow = dependent_ids(module, function, load).map(|dependent| ValueFlow {
        module,
        function,
        load,
        dependent,
    });
    load != 0 && flow.is_some_and(|flow| flow.reaches_store(load, at, false))
}

/// Returns the block of an instruction.
pub(super) fn block_of(function: &SpirvFunction, at: usize) -> u32 {
    let before = function.code.get(..=at).unwrap_or_default();
    before.iter().rev().find(|one| one.op == Op::Label).map_or(0, |label| label.result)
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
    /// Returns true if a store after `start` writes a value, or the variable that holds it. `is_lossy` is true if
    /// several values of the load may be the same value.
    fn reaches_store(&self, value: u32, start: usize, is_lossy: bool) -> bool {
        let is_variable = self.is_local(value);
        // A variable holds the value until it is used otherwise.
        let holds = |one: &SpirvInstruction| {
            let is_written = one.op != Op::Load && self.module.operands_of(one).contains(&value);
            one.op != Op::Label && !(is_variable && (is_written || one.op == Op::FunctionCall))
        };
        let later = self.function.code.iter().enumerate().skip(start + 1);
        later.take_while(|(_, one)| holds(one)).any(|(at, instruction)| {
            let depends = |id: &u32| self.dependent.contains(id);
            let is_nonzero = |id: &u32| self.constant(*id).is_some_and(|number| number != 0);
            let follow = |is_lossy| self.reaches_store(instruction.result, at, is_lossy);
            match (instruction.op, self.module.operands_of(instruction)) {
                (Op::Store, [variable, stored, ..]) if *stored == value && self.is_local(*variable) => {
                    self.reaches_store(*variable, at, is_lossy)
                }
                (Op::Store, [pointer, stored, ..])
                | (Op::AtomicStore, [pointer, _, _, stored])
                | (Op::ImageWrite, [pointer, _, stored, ..]) => {
                    *stored == value && self.is_only_write(*pointer, instruction)
                }
                // Images of one component store the first one.
                (
                    Op::Load | Op::CopyObject | Op::Bitcast | Op::Not | Op::SNegate | Op::CompositeConstruct,
                    [operand, ..],
                ) => *operand == value && follow(is_lossy),
                (Op::IAdd | Op::ISub | Op::BitwiseXor, [one, two]) => {
                    [one, two].contains(&&value) && depends(one) != depends(two) && follow(is_lossy)
                }
                (Op::IMul, [one, two]) => {
                    let is_factor = [one, two].contains(&&value) && (is_nonzero(one) || is_nonzero(two));
                    is_factor && !is_lossy && follow(true)
                }
                (Op::CompositeExtract, [vector, _]) => {
                    *vector == value && value == self.load && follow(is_lossy)
                }
                _ => false,
            }
        })
    }

    fn constant(&self, id: u32) -> Option<u64> {
        match self.module.constants.get(&id) {
            Some((_, SpirvConstant::Scalar(number))) => Some(*number),
            _ => None,
        }
    }

    /// Returns true for a variable of one invocation.
    fn is_local(&self, id: u32) -> bool {
        self.module.variables.get(&id).is_some_and(|global| global.class == Class::Private)
            || self.function.code.iter().any(|one| one.op == Op::Variable && one.result == id)
    }

    /// Returns true if no other instruction of the module may write to the place of a store.
    fn is_only_write(&self, pointer: u32, store: &SpirvInstruction) -> bool {
        let variables = &self.module.variables;
        let place = resolve_pointer(self.module, self.function, pointer);
        let is_elsewhere = |other: &[u32]| {
            let mut indices = place.iter().zip(other).skip(1);
            other[0] != place[0] && variables.contains_key(&other[0])
                || indices.any(|(one, two)| {
                    let numbers = (self.constant(*one), self.constant(*two));
                    matches!(numbers, (Some(one), Some(two)) if one != two)
                })
        };
        let may_overwrite = |function: &SpirvFunction, one: &SpirvInstruction| {
            let is_write = matches!(one.op, Op::Store | Op::AtomicStore | Op::ImageWrite | Op::CopyMemory);
            is_write && one.place != store.place && {
                let target = resolve_pointer(self.module, function, self.module.operands_of(one)[0]);
                let is_local =
                    function.code.iter().any(|one| one.op == Op::Variable && one.result == target[0]);
                !is_local && !is_elsewhere(&target)
            }
        };
        let mut functions = self.module.functions.values();
        variables.contains_key(&place[0])
            && !functions.any(|function| function.code.iter().any(|one| may_overwrite(function, one)))
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
            assert_eq!(is_needed(&module, function, load), name.starts_with("needed"), "{name}");
        }
        assert_eq!(module.functions.len(), 11);
    }
}
