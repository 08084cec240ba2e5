//! The variables that instructions access.

use litmus::StorageClass;
use rspirv::spirv::{MemoryAccess, Op, StorageClass as Class};
use spirv_reader::{SourcePosition, SpirvFunction, SpirvInstruction, SpirvModule, SpirvType, memory_class};

/// Upper bound on the instructions between a pointer and its variable.
const MAX_POINTER_STEPS: usize = 64;

/// An instruction of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangeSite {
    pub function: u32,
    pub index: usize,
}

impl ChangeSite {
    /// Returns the instruction at a module position.
    pub fn at_position(module: &SpirvModule, place: SourcePosition) -> Option<ChangeSite> {
        module.functions.iter().find_map(|(function, function_body)| {
            let index = function_body.code.iter().position(|one| one.place == place)?;
            Some(ChangeSite { function: *function, index })
        })
    }

    pub fn instruction(self, module: &SpirvModule) -> Option<&SpirvInstruction> {
        module.functions.get(&self.function)?.code.get(self.index)
    }
}

/// Returns the variable that a pointer or image comes from, or the structure at an address.
pub fn root_variable(module: &SpirvModule, function: &SpirvFunction, pointer: u32) -> Option<u32> {
    let mut id = pointer;
    for _ in 0..MAX_POINTER_STEPS {
        if module.variables.contains_key(&id) {
            return Some(id);
        }
        let definition = function.code.iter().find(|instruction| instruction.result == id)?;
        let chain = matches!(
            definition.op,
            Op::AccessChain
                | Op::InBoundsAccessChain
                | Op::PtrAccessChain
                | Op::ImageTexelPointer
                | Op::CopyObject
        );
        match module.types.get(&definition.ty)? {
            SpirvType::Handle(_) if definition.op == Op::Load => {}
            // A device address has no variable; the type that it points to is used instead.
            SpirvType::Pointer { class: Class::PhysicalStorageBuffer, pointee: to } if !chain => {
                return Some(*to);
            }
            _ if chain => {}
            _ => return None,
        }
        id = *module.operands_of(definition).first()?;
    }
    None
}

/// Returns the source name of a variable, or of a structure at an address.
pub fn variable_label(module: &SpirvModule, id: u32) -> String {
    module
        .variables
        .get(&id)
        .map_or_else(|| module.display_name(id), |variable| module.variable_name(id, variable.ty))
}

/// Returns the pointer or image that an instruction accesses: of a copy, the source unless it `writes`.
pub fn accessed_pointer(module: &SpirvModule, instruction: &SpirvInstruction, writes: bool) -> Option<u32> {
    let is_source = !writes && matches!(instruction.op, Op::CopyMemory | Op::CopyMemorySized);
    module.operands_of(instruction).get(usize::from(is_source)).copied()
}

/// Returns the variable that the instruction at a position accesses, or the structure at an address.
pub fn accessed_variable(module: &SpirvModule, place: SourcePosition) -> Option<u32> {
    let site = ChangeSite::at_position(module, place)?;
    root_variable(
        module,
        module.functions.get(&site.function)?,
        *module.operands_of(site.instruction(module)?).first()?,
    )
}

/// Returns whether a load or store of the Vulkan model is private.
pub fn is_private(instruction: &SpirvInstruction, module: &SpirvModule) -> Option<bool> {
    let mask = match instruction.op {
        Op::Load => 1,
        Op::Store => 2,
        _ => return None,
    };
    let mask = module.operands_of(instruction).get(mask).copied().unwrap_or(0);
    Some(mask & MemoryAccess::NON_PRIVATE_POINTER.bits() == 0)
}

/// Returns true if some access through a variable is non-private in the Vulkan model.
pub fn is_shared_elsewhere(module: &SpirvModule, variable: u32) -> bool {
    let of_it = |function: &SpirvFunction, instruction: &SpirvInstruction| {
        let pointer = module.operands_of(instruction).first();
        pointer.is_some_and(|pointer| root_variable(module, function, *pointer) == Some(variable))
    };
    let shared = |function: &SpirvFunction| {
        let shared = |instruction: &&SpirvInstruction| is_private(instruction, module) == Some(false);
        function.code.iter().filter(shared).any(|one| of_it(function, one))
    };
    module.uses_vulkan_model && module.functions.values().any(shared)
}

/// Returns the storage class of accesses through a variable or address.
pub fn accessed_class(module: &SpirvModule, root: u32) -> Option<(StorageClass, Class)> {
    let Some(variable) = module.variables.get(&root) else {
        return Some((StorageClass::Buffer, Class::PhysicalStorageBuffer));
    };
    let class = match variable.class {
        Class::UniformConstant => StorageClass::Image,
        Class::Output => return None,
        class => memory_class(class)?,
    };
    Some((class, variable.class))
}
