//! The words of shading languages for a change.

use litmus::StorageClass;
use rspirv::spirv::Op;
use spirv_reader::SpirvModule;

use super::SuggestedChangeKind;

/// The source language of a shader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SourceLanguage {
    Glsl,
    /// HLSL, and Slang with the same functions.
    Hlsl,
    Wgsl,
}

impl SourceLanguage {
    pub(super) fn from_module(module: &SpirvModule) -> SourceLanguage {
        let named = |extension: &str| module.lines.iter().any(|line| line.file.ends_with(extension));
        match () {
            () if named(".wgsl") => SourceLanguage::Wgsl,
            () if named(".hlsl") || named(".slang") => SourceLanguage::Hlsl,
            () => SourceLanguage::Glsl,
        }
    }

    /// Returns the memory barrier for a class.
    pub(super) fn memory_barrier(self, class: StorageClass) -> &'static str {
        match (self, class) {
            (SourceLanguage::Hlsl, StorageClass::Workgroup) => "GroupMemoryBarrier();",
            (SourceLanguage::Hlsl, _) => "DeviceMemoryBarrier();",
            (_, StorageClass::Buffer | StorageClass::Output) => "memoryBarrierBuffer();",
            (_, StorageClass::Workgroup) => "memoryBarrierShared();",
            (_, StorageClass::Image) => "memoryBarrierImage();",
        }
    }

    /// Returns the memory barrier for all classes.
    pub(super) fn full_memory_barrier(self) -> &'static str {
        match self {
            SourceLanguage::Hlsl => "AllMemoryBarrier();",
            SourceLanguage::Glsl | SourceLanguage::Wgsl => "memoryBarrier();",
        }
    }

    /// Returns the workgroup barrier for a class.
    pub(super) fn control_barrier(self, class: StorageClass) -> String {
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
    pub(super) fn atomic_function(self, atomic: Op) -> Option<String> {
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
    pub(super) fn image_atomic_function(self, atomic: Op) -> Option<String> {
        let name = self.atomic_function(atomic)?;
        match self {
            SourceLanguage::Glsl => Some(name.replace("atomic", "imageAtomic")),
            SourceLanguage::Hlsl => Some(name),
            SourceLanguage::Wgsl => None,
        }
    }

    pub(super) fn coherent_qualifier(self) -> &'static str {
        match self {
            SourceLanguage::Glsl => "coherent",
            SourceLanguage::Hlsl => "globallycoherent",
            // Implicit in WGSL, but naga does not emit it.
            SourceLanguage::Wgsl => "`@coherent`, which naga adds to WGSL",
        }
    }

    /// Returns the text that makes a variable coherent, or one access of it if others are already.
    pub(super) fn make_coherent_text(self, module: &SpirvModule, ids: &[u32], left_out: bool) -> String {
        let name = variable_labels(module, ids);
        match left_out {
            true => format!(
                "make this access of `{name}` coherent like the others: if it is declared coherent, write \
                 `x = x + 1` instead of `x++`, because glslang drops the qualifier on the store of `x++`"
            ),
            false => format!("declare `{name}` {}", self.coherent_qualifier()),
        }
    }

    /// Returns true if the language can express a change: WGSL atomics are relaxed, its barriers have
    /// workgroup scope.
    pub(super) fn can_express(self, change: SuggestedChangeKind) -> bool {
        let words = |change| {
            matches!(
                change,
                SuggestedChangeKind::Barrier(..)
                    | SuggestedChangeKind::Atomic(..)
                    | SuggestedChangeKind::Coherent(..)
            )
        };
        self != SourceLanguage::Wgsl || words(change)
    }
}

/// Returns the source name of a variable, or of a structure at an address.
pub(super) fn variable_label(module: &SpirvModule, id: u32) -> String {
    module
        .variables
        .get(&id)
        .map_or_else(|| module.display_name(id), |variable| module.variable_name(id, variable.ty))
}

/// Returns the names of several variables.
pub(super) fn variable_labels(module: &SpirvModule, ids: &[u32]) -> String {
    ids.iter().map(|id| variable_label(module, *id)).collect::<Vec<_>>().join("` and `")
}
