//! Scopes, memory semantics and memory operands, with the rules for modules of the GLSL450 memory model.
//!
//! Those modules are read as `spirv-opt --upgrade-memory-model` rewrites them. An access through `Coherent`
//! or `Volatile` is non-private and makes its memory available or visible to the queue family. Workgroup
//! memory is so for the workgroup, and Device scope means the queue family. Everything else is private.

use litmus::{Access, Order, Scope, Semantics, StorageClass, StorageClassSet};
use rspirv::spirv::{self, MemorySemantics};
use spirv_reader::MemoryOperands;

use crate::error::{Problem, malformed, unsupported};

/// Returns the class whose semantics order accesses to a variable; `None` for private memory.
pub(crate) fn storage_class_of(class: spirv::StorageClass) -> Option<StorageClass> {
    match class {
        spirv::StorageClass::StorageBuffer
        | spirv::StorageClass::Uniform
        | spirv::StorageClass::PhysicalStorageBuffer
        // Compute shaders have no outputs; mesh shaders share them.
        | spirv::StorageClass::Output => Some(StorageClass::Buffer),
        spirv::StorageClass::Workgroup => Some(StorageClass::Workgroup),
        spirv::StorageClass::Image => Some(StorageClass::Image),
        _ => None,
    }
}

/// Parses a scope. In GLSL450 modules, Device scope means the queue family.
pub(crate) fn scope_from_number(number: u64, vulkan: bool) -> Result<Scope, Problem> {
    match spirv_reader::scope_of(number) {
        Some(spirv::Scope::Device) if !vulkan => Ok(Scope::QueueFamily),
        Some(spirv::Scope::Device) => Ok(Scope::Device),
        Some(spirv::Scope::QueueFamily) => Ok(Scope::QueueFamily),
        Some(spirv::Scope::Workgroup) => Ok(Scope::Workgroup),
        Some(spirv::Scope::Subgroup) => Ok(Scope::Subgroup),
        Some(spirv::Scope::Invocation) => Ok(Scope::Invocation),
        Some(other) => Err(unsupported(format!("{other:?} scope"))),
        None => Err(malformed(format!("{number} is not a scope"))),
    }
}

/// Parses memory semantics.
pub(crate) fn semantics_from_number(number: u64) -> Result<Semantics, Problem> {
    let bits =
        u32::try_from(number).map_err(|_| malformed(format!("{number} is not valid memory semantics")))?;
    let bits = MemorySemantics::from_bits_retain(bits);
    let mut orders = [
        (MemorySemantics::ACQUIRE, Order::Acquire),
        (MemorySemantics::RELEASE, Order::Release),
        (MemorySemantics::ACQUIRE_RELEASE, Order::AcquireRelease),
    ]
    .into_iter()
    .filter(|(bit, _)| bits.contains(*bit));
    if bits.contains(MemorySemantics::SEQUENTIALLY_CONSISTENT) {
        return Err(unsupported(
            "SequentiallyConsistent semantics (VUID-StandaloneSpirv-MemorySemantics-10866)",
        ));
    }
    let order = match (orders.next(), orders.next()) {
        // Without an order, storage classes have no effect.
        (None, _) => return Ok(Semantics::RELAXED),
        (Some((_, order)), None) => order,
        _ => return Err(malformed("several memory orders in one operand")),
    };
    let mut classes = StorageClassSet::EMPTY;
    for (bit, class) in [
        (MemorySemantics::UNIFORM_MEMORY, StorageClass::Buffer),
        (MemorySemantics::WORKGROUP_MEMORY, StorageClass::Workgroup),
        (MemorySemantics::IMAGE_MEMORY, StorageClass::Image),
        (MemorySemantics::OUTPUT_MEMORY, StorageClass::Output),
    ] {
        if bits.contains(bit) {
            classes = classes.with(class);
        }
    }
    Ok(Semantics {
        order,
        classes,
        make_available: order.releases() && bits.contains(MemorySemantics::MAKE_AVAILABLE),
        make_visible: order.acquires() && bits.contains(MemorySemantics::MAKE_VISIBLE),
        // Ignored bits count as absent.
        ..Semantics::RELAXED
    })
}

/// Returns the strength of a plain access with these operands; `number` evaluates constants.
pub(crate) fn access_strength(
    operands: MemoryOperands,
    class: StorageClass,
    vulkan: bool,
    coherent: bool,
    store: bool,
    number: impl Fn(u32) -> Option<u64>,
) -> Result<Access, Problem> {
    if !vulkan {
        let coherent = coherent || operands.volatile;
        // Under the GLSL450 memory model, declarations decide in place of memory operands.
        return Ok(match class {
            StorageClass::Workgroup => Access::Coherent { scope: Scope::Workgroup },
            _ if coherent => Access::Coherent { scope: Scope::QueueFamily },
            _ => Access::Private,
        });
    }
    let made = if store { operands.available } else { operands.visible };
    match made {
        Some(id) => {
            let number = number(id).ok_or_else(|| unsupported("a scope that is not a constant"))?;
            Ok(Access::Coherent { scope: scope_from_number(number, vulkan)? })
        }
        None if operands.non_private => Ok(Access::NonPrivate),
        None => Ok(Access::Private),
    }
}
