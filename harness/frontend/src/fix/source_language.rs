//! The words of shading languages for a change.

use litmus::StorageClass;
use rspirv::spirv::Op;
use spirv_reader::SpirvModule;

/// The source language of a shader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceLanguage {
    Glsl,
    /// HLSL, and Slang with the same functions.
    Hlsl,
    Wgsl,
}

impl SourceLanguage {
    pub fn from_module(module: &SpirvModule) -> SourceLanguage {
        let named = |extension: &str| module.lines.iter().any(|line| line.file.ends_with(extension));
        match () {
            () if named(".wgsl") => SourceLanguage::Wgsl,
            () if named(".hlsl") || named(".slang") => SourceLanguage::Hlsl,
            () => SourceLanguage::Glsl,
        }
    }

    /// Returns the memory barrier for a class.
    pub fn memory_barrier(self, class: StorageClass) -> &'static str {
        match (self, class) {
            (SourceLanguage::Hlsl, StorageClass::Workgroup) => "GroupMemoryBarrier();",
            (SourceLanguage::Hlsl, _) => "DeviceMemoryBarrier();",
            (_, StorageClass::Buffer | StorageClass::Output) => "memoryBarrierBuffer();",
            (_, StorageClass::Workgroup) => "memoryBarrierShared();",
            (_, StorageClass::Image) => "memoryBarrierImage();",
        }
    }

    /// Returns the memory barrier for all classes.
    pub fn full_memory_barrier(self) -> &'static str {
        match self {
            SourceLanguage::Hlsl => "AllMemoryBarrier();",
            SourceLanguage::Glsl | SourceLanguage::Wgsl => "memoryBarrier();",
        }
    }

    /// Returns the workgroup barrier for a class.
    pub fn control_barrier(self, class: StorageClass) -> String {
        let one = match (self, class) {
            (SourceLanguage::Wgsl, StorageClass::Workgroup) => "workgroupBarrier();",
            (SourceLanguage::Wgsl, StorageClass::Image) => "textureBarrier();",
            (SourceLanguage::Wgsl, _) => "storageBarrier();",
            (SourceLanguage::Hlsl, StorageClass::Workgroup) => "GroupMemoryBarrierWithGroupSync();",
            (SourceLanguage::Hlsl, _) => "DeviceMemoryBarrierWithGroupSync();",
            (SourceLanguage::Glsl, StorageClass::Workgroup) => "barrier();",
            // GLSL's `barrier()` orders shared memory only; other classes need a memory barrier on both
            // sides.
            (SourceLanguage::Glsl, class) => {
                let memory = self.memory_barrier(class);
                return format!("{memory} barrier(); {memory}");
            }
        };
        one.to_owned()
    }

    /// Returns the function for an atomic instruction.
    pub fn atomic_function(self, atomic: Op) -> Option<String> {
        let name = match atomic {
            Op::AtomicIAdd | Op::AtomicISub => "Add",
            Op::AtomicAnd => "And",
            Op::AtomicOr => "Or",
            Op::AtomicXor => "Xor",
            Op::AtomicUMin | Op::AtomicSMin => "Min",
            Op::AtomicUMax | Op::AtomicSMax => "Max",
            _ => return None,
        };
        Some(match self {
            SourceLanguage::Hlsl => format!("Interlocked{name}"),
            SourceLanguage::Glsl | SourceLanguage::Wgsl => format!("atomic{name}"),
        })
    }

    /// Returns the function for a texel; WGSL has none.
    pub fn image_atomic_function(self, atomic: Op) -> Option<String> {
        let name = self.atomic_function(atomic)?;
        match self {
            SourceLanguage::Glsl => Some(name.replace("atomic", "imageAtomic")),
            SourceLanguage::Hlsl => Some(name),
            SourceLanguage::Wgsl => None,
        }
    }
}

/// Returns the source name of a variable, or of a structure at an address.
pub fn variable_label(module: &SpirvModule, id: u32) -> String {
    module
        .variables
        .get(&id)
        .map_or_else(|| module.display_name(id), |variable| module.variable_name(id, variable.ty))
}
