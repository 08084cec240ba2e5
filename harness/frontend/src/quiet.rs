//! Data-dependence analysis: values that decide neither control flow nor accesses nor stored values.
//!
//! Spin detection ignores them. A loop that changes only such values waits, however far it counts.

use std::collections::{HashMap, HashSet};

use rspirv::spirv::{Op, StorageClass};
use spirv_reader::{SpirvFunction, SpirvInstruction, SpirvModule, SpirvType};

/// Storage classes that invocations share.
const SHARED: [StorageClass; 4] = [
    StorageClass::StorageBuffer,
    StorageClass::Uniform,
    StorageClass::Workgroup,
    StorageClass::PhysicalStorageBuffer,
];

/// Returns true if an instruction only computes its result from its operands.
fn is_pure(op: Op) -> bool {
    matches!(
        op,
        Op::IAdd
            | Op::ISub
            | Op::IMul
            | Op::UDiv
            | Op::SDiv
            | Op::UMod
            | Op::SRem
            | Op::SMod
            | Op::SNegate
            | Op::Not
            | Op::FAdd
            | Op::FSub
            | Op::FMul
            | Op::FDiv
            | Op::FNegate
            | Op::BitwiseAnd
            | Op::BitwiseOr
            | Op::BitwiseXor
            | Op::ShiftLeftLogical
            | Op::ShiftRightLogical
            | Op::ShiftRightArithmetic
            | Op::ConvertUToF
            | Op::ConvertSToF
            | Op::ConvertFToU
            | Op::ConvertFToS
            | Op::Bitcast
            | Op::CopyObject
            | Op::CompositeConstruct
            | Op::CompositeExtract
            | Op::Select
            | Op::Phi
    )
}

/// Returns the ids of a function that decide nothing.
///
/// If `stores` is false, a store to shared memory outside of loops does not count: it cannot influence how a
/// loop continues.
pub(crate) fn quiet(module: &SpirvModule, function: &SpirvFunction, stores: bool) -> HashSet<u32> {
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
    let mut turns = vec![(0_u32, 0_u32); function.code.len()];
    for turn in function.code.iter().enumerate().filter_map(jumps_back) {
        turns[*turn.start()].0 += 1;
        turns[*turn.end()].1 += 1;
    }
    let mut depth = 0;
    for (at, instruction) in function.code.iter().enumerate() {
        let operands = module.operands_of(instruction);
        depth += turns[at].0;
        // No backward jump spans this instruction.
        let once = depth == 0;
        depth -= turns[at].1;
        match (instruction.op, operands) {
            (Op::Variable, _) => {
                all.insert(instruction.result);
            }
            (Op::Load, [from, ..]) if is_declared(from) => {
                all.insert(instruction.result);
                made_of.entry(instruction.result).or_default().push(*from);
            }
            (Op::Store, [to, value, ..]) if is_declared(to) => made_of.entry(*to).or_default().push(*value),
            (Op::Store, [to, value, ..]) if !stores && once && is_shared(module, function, *to) => {
                deciding.push(*to);
                // A stored pointer may be dereferenced elsewhere.
                deciding.extend(is_pointer(module, function, *value).then_some(*value));
            }
            (op, operands) if is_pure(op) => {
                all.insert(instruction.result);
                made_of.entry(instruction.result).or_default().extend(operands);
            }
            // Accesses, branches, calls, and whatever this analysis does not know.
            (_, operands) => deciding.extend(operands),
        }
    }
    // What a deciding value is computed from decides too.
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
        Some(SpirvType::Pointer { class, .. }) => SHARED.contains(class),
        _ => false,
    }
}
