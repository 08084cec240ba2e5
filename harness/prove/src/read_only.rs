//! Entry points that write no memory which invocations share: they have no data race, whatever else they do.
//!
//! This proves vertex and fragment stages, whose invocations the prover does not execute.

use std::collections::BTreeSet;

use rspirv::spirv::StorageClass;
use spirv_reader::{MemoryEffect, SpirvFunction, SpirvModule, SpirvOperation, SpirvType};

/// Returns true if neither a function nor those that it calls write shared memory or order accesses.
pub(crate) fn writes_no_shared_memory(module: &SpirvModule, entry: u32) -> bool {
    let (mut visited, mut open) = (BTreeSet::new(), vec![entry]);
    while let Some(id) = open.pop() {
        if !visited.insert(id) {
            continue;
        }
        let Some(function) = module.functions.get(&id) else { return false };
        for instruction in &function.code {
            let operation = module.operation(instruction);
            if let SpirvOperation::Call { function: called, .. } = operation {
                open.push(called);
                continue;
            }
            let is_harmless = match operation.memory_effect() {
                MemoryEffect::None | MemoryEffect::Texel { writes: false, .. } => true,
                MemoryEffect::Access(accesses) => {
                    let mut writes = accesses.iter().flatten().filter(|access| access.writes);
                    writes.all(|access| is_private(module, function, access.pointer))
                }
                MemoryEffect::Texel { writes: true, .. }
                | MemoryEffect::Atomic(_)
                | MemoryEffect::Barrier { .. }
                | MemoryEffect::Interlock
                | MemoryEffect::Unknown => false,
            };
            if !is_harmless {
                return false;
            }
        }
    }
    true
}

/// Returns true if a pointer is into memory of one vertex or fragment.
fn is_private(module: &SpirvModule, function: &SpirvFunction, pointer: u32) -> bool {
    let ty = function.types.get(&pointer).or_else(|| module.variable_types.get(&pointer));
    let class = match ty.and_then(|ty| module.types.get(ty)) {
        Some(SpirvType::Pointer { class, .. }) => *class,
        _ => return false,
    };
    matches!(class, StorageClass::Function | StorageClass::Private | StorageClass::Output)
}
