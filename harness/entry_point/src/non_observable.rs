//! Data-dependence analysis: values that decide neither control flow nor accesses nor stored values.
//!
//! Spin detection ignores them: a loop that changes only such values is a spin loop, even if it counts.

use std::collections::{HashMap, HashSet};

use rspirv::spirv::{Op, StorageClass};
use spirv_reader::{
    CompositeOperation, SpirvFunction, SpirvInstruction, SpirvModule, SpirvOperation, SpirvType,
};

/// Storage classes that invocations share.
const SHARED_CLASSES: [StorageClass; 4] = [
    StorageClass::StorageBuffer,
    StorageClass::Uniform,
    StorageClass::Workgroup,
    StorageClass::PhysicalStorageBuffer,
];

/// Returns the values that an instruction only computes its result from; `None` for other instructions.
fn computed_from(operation: &SpirvOperation<'_>) -> Option<Vec<u32>> {
    Some(match operation {
        SpirvOperation::Compute { operands, .. } => operands.to_vec(),
        SpirvOperation::Composite(CompositeOperation::Construct { parts }) => parts.to_vec(),
        SpirvOperation::Bitcast { value }
        | SpirvOperation::Copy { value }
        | SpirvOperation::Composite(CompositeOperation::Extract { composite: value, .. }) => vec![*value],
        SpirvOperation::Select { condition, yes, no } => vec![*condition, *yes, *no],
        SpirvOperation::Phi { sources } => sources.iter().map(|[value, _]| *value).collect(),
        _ => return None,
    })
}

/// Returns the ids of a function whose values are not observable.
///
/// If `stores` is false, a store to shared memory outside of loops does not count: it cannot influence how a
/// loop continues.
pub fn non_observable_ids(module: &SpirvModule, function: &SpirvFunction, stores: bool) -> HashSet<u32> {
    let mut all: HashSet<u32> = HashSet::new();
    // The values from which each result or variable is computed.
    let mut made_of: HashMap<u32, Vec<u32>> = HashMap::new();
    let mut deciding: Vec<u32> = Vec::new();
    let declared: HashSet<u32> =
        function.code.iter().filter(|one| one.op == Op::Variable).map(|one| one.result).collect();
    let is_declared = |id: &u32| declared.contains(id);
    let jumps_back = |(at, one): (usize, &SpirvInstruction)| {
        let targets = module.successors(&function.types, one).filter_map(|label| function.labels.get(&label));
        targets.filter(|to| **to <= at).min().map(|to| *to..=at)
    };
    // The number of loops that begin and end at each instruction.
    let mut jump_deltas = vec![(0_u32, 0_u32); function.code.len()];
    for turn in function.code.iter().enumerate().filter_map(jumps_back) {
        jump_deltas[*turn.start()].0 += 1;
        jump_deltas[*turn.end()].1 += 1;
    }
    let mut depth = 0;
    for (at, instruction) in function.code.iter().enumerate() {
        depth += jump_deltas[at].0;
        // No backward jump spans this instruction.
        let is_outside_loops = depth == 0;
        depth -= jump_deltas[at].1;
        let operation = module.operation(instruction);
        match operation {
            SpirvOperation::Variable { .. } => {
                all.insert(instruction.result);
                continue;
            }
            SpirvOperation::Load { pointer, .. } if is_declared(&pointer) => {
                all.insert(instruction.result);
                made_of.entry(instruction.result).or_default().push(pointer);
                continue;
            }
            SpirvOperation::Store { pointer, value, .. } if is_declared(&pointer) => {
                made_of.entry(pointer).or_default().push(value);
                continue;
            }
            SpirvOperation::Store { pointer, value, .. }
                if !stores && is_outside_loops && is_shared(module, function, pointer) =>
            {
                deciding.push(pointer);
                // A stored pointer may be dereferenced elsewhere.
                deciding.extend(is_pointer(module, function, value).then_some(value));
                continue;
            }
            _ => {}
        }
        match computed_from(&operation) {
            Some(operands) => {
                all.insert(instruction.result);
                made_of.entry(instruction.result).or_default().extend(operands);
            }
            None => deciding.extend(module.operands_of(instruction)),
        }
    }
    // The operands of a deciding value decide too.
    while let Some(id) = deciding.pop() {
        if all.remove(&id) {
            deciding.extend(made_of.get(&id).into_iter().flatten());
        }
    }
    all
}

fn type_of<'m>(module: &'m SpirvModule, function: &SpirvFunction, id: u32) -> Option<&'m SpirvType> {
    let ty = function.types.get(&id).copied();
    module.types.get(&ty.or_else(|| module.variables.get(&id).map(|variable| variable.ty))?)
}

fn is_pointer(module: &SpirvModule, function: &SpirvFunction, id: u32) -> bool {
    matches!(type_of(module, function, id), Some(SpirvType::Pointer { .. }))
}

/// Returns true if a pointer leads to shared memory.
fn is_shared(module: &SpirvModule, function: &SpirvFunction, pointer: u32) -> bool {
    match type_of(module, function, pointer) {
        Some(SpirvType::Pointer { class, .. }) => SHARED_CLASSES.contains(class),
        _ => false,
    }
}
