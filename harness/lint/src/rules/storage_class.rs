//! Control barriers that order a storage class that nothing wrote, while another class needs an order.
//!
//! A barrier is reported if workgroup memory is accessed on both of its sides and written on one, and if its
//! semantics leave out that memory and name only memory that nothing wrote before. Barriers in loops and next
//! to calls are not checked, because the code around them is not known.

use litmus::StorageClassSet;
use rspirv::spirv::StorageClass;
use spirv_reader::{
    BarrierPart, ImageOperation, SpirvFunction, SpirvInstruction, SpirvModule, SpirvOperation,
};

use super::semantics_of;
use entry_point::accessed_variable::root_variable;

/// Returns the barriers in module order, each with a variable that it leaves unordered.
pub(super) fn mismatched_barriers(module: &SpirvModule) -> Vec<(&SpirvInstruction, u32)> {
    module.functions.values().flat_map(|function| mismatched_barriers_in(module, function)).collect()
}

/// An access of a variable.
#[derive(Clone, Copy)]
struct VariableAccess {
    variable: u32,
    class: StorageClass,
    writes: bool,
}

fn mismatched_barriers_in<'m>(
    module: &'m SpirvModule,
    function: &'m SpirvFunction,
) -> Vec<(&'m SpirvInstruction, u32)> {
    let code = &function.code;
    let orders_workgroup =
        |semantics: u32| StorageClassSet::from_semantics(semantics).contains(litmus::StorageClass::Workgroup);
    let is_barrier = |instruction: &SpirvInstruction| {
        matches!(
            module.operation(instruction),
            SpirvOperation::ControlBarrier { part: BarrierPart::Whole, .. }
        )
    };
    let is_call =
        |instruction: &SpirvInstruction| matches!(module.operation(instruction), SpirvOperation::Call { .. });
    let mut found = Vec::new();
    for (at, barrier) in code.iter().enumerate().filter(|(_, one)| is_barrier(one)) {
        let semantics = semantics_of(module, barrier).first().copied().unwrap_or(0);
        if StorageClassSet::from_semantics(semantics) == StorageClassSet::EMPTY
            || orders_workgroup(semantics)
            || is_in_loop(module, function, at)
        {
            continue;
        }
        // This barrier only has to order the code between the neighbouring barriers.
        let start = code[..at].iter().rposition(is_barrier).map_or(0, |index| index + 1);
        let end = code[at + 1..].iter().position(is_barrier).map_or(code.len(), |index| at + 1 + index);
        let may_order_workgroup = |instruction: &SpirvInstruction| {
            is_call(instruction)
                || super::is_fence(module, instruction)
                    && semantics_of(module, instruction).into_iter().any(orders_workgroup)
        };
        if code[..end].iter().any(is_call) || code[start..end].iter().any(may_order_workgroup) {
            continue;
        }
        let accesses = |part: &[SpirvInstruction]| -> Vec<VariableAccess> {
            part.iter().filter_map(|one| access_of(module, function, one)).collect()
        };
        // Memory of the named class that is written before needs this barrier.
        let needed =
            accesses(&code[..at]).iter().any(|one| one.writes && one.class != StorageClass::Workgroup);
        if needed {
            continue;
        }
        let (before, after) = (accesses(&code[start..at]), accesses(&code[at + 1..end]));
        let unordered = before.iter().find(|one| {
            one.class == StorageClass::Workgroup
                && after.iter().any(|other| other.variable == one.variable && (one.writes || other.writes))
        });
        found.extend(unordered.map(|one| (barrier, one.variable)));
    }
    found
}

/// Returns true if a branch after an instruction leads to a position before it.
pub fn is_in_loop(module: &SpirvModule, function: &SpirvFunction, at: usize) -> bool {
    function.code[at..].iter().any(|one| {
        let is_backward = |label: u32| function.labels.get(&label).is_some_and(|index| *index <= at);
        module.successors(&function.types, one).any(is_backward)
    })
}

/// Returns the access of an instruction to memory that invocations share.
fn access_of(
    module: &SpirvModule,
    function: &SpirvFunction,
    instruction: &SpirvInstruction,
) -> Option<VariableAccess> {
    let (pointer, writes) = match module.operation(instruction) {
        SpirvOperation::Load { pointer, .. }
        | SpirvOperation::Image(ImageOperation::Read { image: pointer, .. }) => (pointer, false),
        SpirvOperation::Store { pointer, .. }
        | SpirvOperation::Image(ImageOperation::Write { image: pointer, .. }) => (pointer, true),
        SpirvOperation::Atomic(access) => (access.pointer, access.kind.writes()),
        _ => return None,
    };
    let variable = root_variable(module, function, pointer)?;
    let class = module.variables.get(&variable).map_or(StorageClass::PhysicalStorageBuffer, |one| one.class);
    let private = matches!(
        class,
        StorageClass::Private | StorageClass::Function | StorageClass::Input | StorageClass::Output
    );
    (!private).then_some(VariableAccess { variable, class, writes })
}
