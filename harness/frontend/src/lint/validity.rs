//! Validity rules of memory semantics and memory operands.
//!
//! Source: Vulkan, "Standalone SPIR-V Validation" (`VUID-StandaloneSpirv-MemorySemantics-10869` to `10871` and
//! `VUID-StandaloneSpirv-None-04638`), and SPIR-V, "Memory Operands". A module that breaks one has no defined
//! meaning, and drivers treat it differently. Semantics and scopes that are not constant are not checked.

use litmus::{Scope, StorageClassSet};
use rspirv::spirv::StorageClass;

use super::{ORDER_BITS, integer_constant, semantics_of};
use crate::finding::Spot;
use spirv_reader::{
    SpirvFunction, SpirvInstruction, SpirvModule, SpirvOperation, SpirvType, scope_from_word,
};

/// A use of memory semantics or memory operands that makes a module invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidUse {
    /// The rule that it breaks.
    pub rule: ValidityRule,
    /// The description, with the rule.
    pub message: String,
    /// The source position, without an invocation.
    pub at: Spot,
}

/// A validity rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValidityRule {
    /// `OpMemoryBarrier` has a memory order (10869).
    BarrierHasOrder,
    /// A memory order comes with a storage class of Vulkan (10870).
    OrderHasClass,
    /// A storage class of Vulkan comes with a memory order (10871).
    ClassHasOrder,
    /// No memory scope is CrossDevice (04638).
    ScopeInDevice,
    /// Memory operands for shared memory are on pointers to shared memory.
    OperandsOnMemory,
}

impl ValidityRule {
    /// Returns the name of the rule in the specification.
    pub fn name(self) -> &'static str {
        match self {
            ValidityRule::BarrierHasOrder => "VUID-StandaloneSpirv-MemorySemantics-10869",
            ValidityRule::OrderHasClass => "VUID-StandaloneSpirv-MemorySemantics-10870",
            ValidityRule::ClassHasOrder => "VUID-StandaloneSpirv-MemorySemantics-10871",
            ValidityRule::ScopeInDevice => "VUID-StandaloneSpirv-None-04638",
            ValidityRule::OperandsOnMemory => "SPIR-V, Memory Operands",
        }
    }
}

/// Returns the invalid uses of a module, in instruction order within each function.
pub fn invalid_uses(module: &SpirvModule) -> Vec<InvalidUse> {
    let mut found = Vec::new();
    let mut functions: Vec<_> = module.functions.iter().collect();
    functions.sort_unstable_by_key(|(id, _)| **id);
    for (_, function) in functions {
        for instruction in &function.code {
            for (rule, what) in invalid_uses_of(module, function, instruction) {
                let at = Spot { thread: 0, line: instruction.line, place: instruction.place, writes: None };
                found.push(InvalidUse { rule, message: format!("{what} ({})", rule.name()), at });
            }
        }
    }
    found
}

fn invalid_uses_of(
    module: &SpirvModule,
    function: &SpirvFunction,
    instruction: &SpirvInstruction,
) -> Vec<(ValidityRule, String)> {
    let name = format!("Op{:?}", instruction.op);
    let mut found = Vec::new();
    for semantics in semantics_of(module, instruction) {
        match (semantics & ORDER_BITS != 0, StorageClassSet::from_semantics(semantics)) {
            (false, _) if super::is_fence(module, instruction) => {
                found.push((ValidityRule::BarrierHasOrder, format!("{name} has no memory order")));
            }
            (true, StorageClassSet::EMPTY) => {
                let what = format!("{name} has a memory order and no storage class of Vulkan");
                found.push((ValidityRule::OrderHasClass, what));
            }
            (false, classes) if classes != StorageClassSet::EMPTY => {
                let classes = class_names(classes);
                found.push((
                    ValidityRule::ClassHasOrder,
                    format!("{name} names {classes} without a memory order"),
                ));
            }
            _ => {}
        }
    }
    let scopes = module.operation(instruction).memory_scope_ids();
    let is_cross_device =
        |word: u32| scope_from_word(word.into(), module.uses_vulkan_model) == Ok(Scope::CrossDevice);
    if scopes.into_iter().filter_map(|scope| integer_constant(module, scope)).any(is_cross_device) {
        found.push((ValidityRule::ScopeInDevice, format!("{name} has the memory scope CrossDevice")));
    }
    if is_handle_load(module, function, instruction) {
        let what =
            "the load of a descriptor has memory operands for shared memory; they belong to the image access";
        found.push((ValidityRule::OperandsOnMemory, what.to_owned()));
    }
    found
}

fn class_names(classes: StorageClassSet) -> String {
    classes.iter().map(litmus::StorageClass::name).collect::<Vec<_>>().join(" and ")
}

/// Returns true for a load or copy from `UniformConstant` that is non-private or makes its pointer visible.
fn is_handle_load(module: &SpirvModule, function: &SpirvFunction, load: &SpirvInstruction) -> bool {
    let (pointer, memory) = match module.operation(load) {
        SpirvOperation::Load { pointer, memory } => (pointer, memory),
        SpirvOperation::CopyMemory { source, memory: [_, memory], .. } => (source, memory),
        _ => return false,
    };
    if !memory.non_private && memory.visible.is_none() {
        return false;
    }
    let of_variable = module.variables.get(&pointer).map(|variable| variable.class);
    let of_type = || match function.types.get(&pointer).and_then(|ty| module.types.get(ty)) {
        Some(SpirvType::Pointer { class, .. }) => Some(*class),
        _ => None,
    };
    of_variable.or_else(of_type) == Some(StorageClass::UniformConstant)
}
