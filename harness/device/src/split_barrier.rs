//! The structures of `VK_EXT_shader_split_barrier` (Vulkan 1.4.351), which `ash` does not have yet.
//!
//! Some drivers accept modules with split barriers although they do not list the extension: SwiftShader
//! ignores both instructions, Mesa 26.2 synchronizes at the arrival. So only the feature counts, never
//! successful compilation.

use std::ffi::{CStr, c_void};

use ash::vk;

/// The extension.
pub(crate) const NAME: &CStr = c"VK_EXT_shader_split_barrier";

/// `VkPhysicalDeviceShaderSplitBarrierFeaturesEXT`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct SplitBarrierFeatures {
    s_type: vk::StructureType,
    pub(crate) p_next: *mut c_void,
    pub(crate) shader_split_barrier: vk::Bool32,
}

impl Default for SplitBarrierFeatures {
    fn default() -> SplitBarrierFeatures {
        SplitBarrierFeatures {
            s_type: vk::StructureType::from_raw(1_000_305_000),
            p_next: std::ptr::null_mut(),
            shader_split_barrier: vk::FALSE,
        }
    }
}

// SAFETY: it has the layout of the registry's structure, which extends this one, so `push_next` finds its
// first two members.
unsafe impl vk::ExtendsPhysicalDeviceFeatures2 for SplitBarrierFeatures {}
// SAFETY: as in `ash`: `p_next` is only dereferenced while the chain is borrowed.
unsafe impl Send for SplitBarrierFeatures {}
// SAFETY: as above.
unsafe impl Sync for SplitBarrierFeatures {}

/// `VkPhysicalDeviceShaderSplitBarrierPropertiesEXT`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct SplitBarrierProperties {
    s_type: vk::StructureType,
    p_next: *mut c_void,
    /// Bytes of workgroup memory that split barriers reserve in a kernel (VUID 13562).
    pub(crate) reserved_shared_memory: u32,
}

impl Default for SplitBarrierProperties {
    fn default() -> SplitBarrierProperties {
        SplitBarrierProperties {
            s_type: vk::StructureType::from_raw(1_000_305_001),
            p_next: std::ptr::null_mut(),
            reserved_shared_memory: 0,
        }
    }
}

// SAFETY: it has the layout of the registry's structure, which extends this one, so `push_next` finds its
// first two members.
unsafe impl vk::ExtendsPhysicalDeviceProperties2 for SplitBarrierProperties {}
