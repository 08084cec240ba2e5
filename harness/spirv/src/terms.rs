//! Scopes, storage classes and memory semantics of SPIR-V as terms of the memory model, and back.
//!
//! Modules of the GLSL450 memory model count as `spirv-opt --upgrade-memory-model` rewrites them: their
//! Device scope is the queue family.

#![deny(clippy::wildcard_enum_match_arm)]

use rspirv::spirv::{self, MemorySemantics};
use vocabulary::{Order, Scope, Semantics, StorageClass, StorageClassSet};

use crate::error::{SpirvProblem, malformed, unsupported};

/// Returns the class whose semantics order accesses to memory; `None` for private and constant memory.
pub fn memory_class(class: spirv::StorageClass) -> Option<StorageClass> {
    match class {
        spirv::StorageClass::StorageBuffer
        | spirv::StorageClass::Uniform
        | spirv::StorageClass::PhysicalStorageBuffer
        // Compute shaders have no outputs; mesh shaders share them.
        | spirv::StorageClass::Output => Some(StorageClass::Buffer),
        spirv::StorageClass::Workgroup => Some(StorageClass::Workgroup),
        spirv::StorageClass::Image => Some(StorageClass::Image),
        spirv::StorageClass::UniformConstant
        | spirv::StorageClass::Input
        | spirv::StorageClass::CrossWorkgroup
        | spirv::StorageClass::Private
        | spirv::StorageClass::Function
        | spirv::StorageClass::Generic
        | spirv::StorageClass::PushConstant
        | spirv::StorageClass::AtomicCounter
        | spirv::StorageClass::TileImageEXT
        | spirv::StorageClass::TileAttachmentQCOM
        | spirv::StorageClass::NodePayloadAMDX
        | spirv::StorageClass::CallableDataKHR
        | spirv::StorageClass::IncomingCallableDataKHR
        | spirv::StorageClass::RayPayloadKHR
        | spirv::StorageClass::HitAttributeKHR
        | spirv::StorageClass::IncomingRayPayloadKHR
        | spirv::StorageClass::ShaderRecordBufferKHR
        | spirv::StorageClass::HitObjectAttributeNV
        | spirv::StorageClass::TaskPayloadWorkgroupEXT
        | spirv::StorageClass::HitObjectAttributeEXT
        | spirv::StorageClass::CodeSectionINTEL
        | spirv::StorageClass::DeviceOnlyALTERA
        | spirv::StorageClass::HostOnlyALTERA => None,
    }
}

/// Returns the scope of a word in a module of the Vulkan or the GLSL450 memory model.
///
/// # Errors
/// Ray tracing scopes and numbers that are not scopes.
pub fn scope_from_word(number: u64, vulkan: bool) -> Result<Scope, SpirvProblem> {
    let scope = u32::try_from(number).ok().and_then(spirv::Scope::from_u32);
    match scope.ok_or_else(|| malformed(format!("{number} is not a scope")))? {
        spirv::Scope::CrossDevice => Ok(Scope::CrossDevice),
        spirv::Scope::Device if vulkan => Ok(Scope::Device),
        spirv::Scope::Device | spirv::Scope::QueueFamily => Ok(Scope::QueueFamily),
        spirv::Scope::Workgroup => Ok(Scope::Workgroup),
        spirv::Scope::Subgroup => Ok(Scope::Subgroup),
        spirv::Scope::Invocation => Ok(Scope::Invocation),
        other @ spirv::Scope::ShaderCallKHR => Err(unsupported(format!("{other:?} scope"))),
    }
}

/// Returns the word of a scope, or `None` if shaders cannot name it or lack it in the supported stages.
pub fn scope_word(scope: Scope, vulkan: bool) -> Option<u32> {
    let scope = match scope {
        Scope::Invocation => spirv::Scope::Invocation,
        Scope::Subgroup => spirv::Scope::Subgroup,
        Scope::Workgroup => spirv::Scope::Workgroup,
        Scope::QueueFamily if !vulkan => spirv::Scope::Device,
        Scope::QueueFamily => spirv::Scope::QueueFamily,
        Scope::Device => spirv::Scope::Device,
        Scope::CrossDevice | Scope::ShaderCall | Scope::FragmentInterlock => return None,
    };
    Some(scope as u32)
}

/// Returns the memory semantics of a word. Without an order, storage classes have no effect.
///
/// Classes that Vulkan ignores count as absent.
///
/// # Errors
/// Several memory orders in one word.
pub fn semantics_from_word(number: u64) -> Result<Semantics, SpirvProblem> {
    let bits =
        u32::try_from(number).map_err(|_| malformed(format!("{number} is not valid memory semantics")))?;
    let bits = MemorySemantics::from_bits_retain(bits);
    let orders = MemorySemantics::ACQUIRE | MemorySemantics::RELEASE | MemorySemantics::ACQUIRE_RELEASE;
    let sequential = bits.contains(MemorySemantics::SEQUENTIALLY_CONSISTENT);
    let order = match bits & orders {
        MemorySemantics::RELAXED if sequential => Order::AcquireRelease,
        MemorySemantics::RELAXED => return Ok(Semantics::RELAXED),
        MemorySemantics::ACQUIRE => Order::Acquire,
        MemorySemantics::RELEASE => Order::Release,
        MemorySemantics::ACQUIRE_RELEASE => Order::AcquireRelease,
        _ => return Err(malformed("several memory orders in one operand")),
    };
    Ok(Semantics {
        order,
        classes: StorageClassSet::from_semantics(bits.bits()),
        make_available: order.releases() && bits.contains(MemorySemantics::MAKE_AVAILABLE),
        make_visible: order.acquires() && bits.contains(MemorySemantics::MAKE_VISIBLE),
        sequential,
        ..Semantics::RELAXED
    })
}

/// Returns the word of memory semantics.
pub fn semantics_word(semantics: Semantics) -> u32 {
    let mut word = match semantics.order {
        Order::Relaxed => MemorySemantics::RELAXED,
        Order::Acquire => MemorySemantics::ACQUIRE,
        Order::Release => MemorySemantics::RELEASE,
        Order::AcquireRelease => MemorySemantics::ACQUIRE_RELEASE,
    };
    word.set(MemorySemantics::MAKE_AVAILABLE, semantics.make_available);
    word.set(MemorySemantics::MAKE_VISIBLE, semantics.make_visible);
    semantics.classes.iter().fold(word.bits(), |word, class| word | class.bit())
}
