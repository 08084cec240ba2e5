//! The source languages of shaders, and their words for synchronization.

use rspirv::spirv::Op;
use vocabulary::StorageClass;

/// The source language of a shader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShaderLanguage {
    /// The OpenGL shading language.
    Glsl,
    /// The high-level shading language of DirectX.
    Hlsl,
    /// Slang, which has the functions of HLSL.
    Slang,
    /// The WebGPU shading language.
    Wgsl,
}

/// Extensions of GLSL: those of the stages, and that of all.
const GLSL_EXTENSIONS: [&str; 15] = [
    "comp", "vert", "frag", "tesc", "tese", "geom", "mesh", "task", "rgen", "rint", "rahit", "rchit",
    "rmiss", "rcall", "glsl",
];

impl ShaderLanguage {
    /// Returns the language of a file extension; `compute` is Unity's extension of HLSL.
    pub fn from_extension(extension: &str) -> Option<ShaderLanguage> {
        match extension {
            "hlsl" | "compute" => Some(ShaderLanguage::Hlsl),
            "slang" => Some(ShaderLanguage::Slang),
            "wgsl" => Some(ShaderLanguage::Wgsl),
            extension if GLSL_EXTENSIONS.contains(&extension) => Some(ShaderLanguage::Glsl),
            _ => None,
        }
    }

    /// Returns the language of an `OpSource` instruction.
    pub(crate) fn from_source_number(number: u32) -> Option<ShaderLanguage> {
        match number {
            1 | 2 => Some(ShaderLanguage::Glsl),
            5 => Some(ShaderLanguage::Hlsl),
            10 => Some(ShaderLanguage::Wgsl),
            11 => Some(ShaderLanguage::Slang),
            _ => None,
        }
    }

    /// Returns the name.
    pub fn name(self) -> &'static str {
        match self {
            ShaderLanguage::Glsl => "GLSL",
            ShaderLanguage::Hlsl => "HLSL",
            ShaderLanguage::Slang => "Slang",
            ShaderLanguage::Wgsl => "WGSL",
        }
    }

    /// Returns true for HLSL and for Slang, which has its functions.
    pub fn has_hlsl_functions(self) -> bool {
        matches!(self, ShaderLanguage::Hlsl | ShaderLanguage::Slang)
    }

    /// Returns the memory barrier for a class.
    pub fn memory_barrier(self, class: StorageClass) -> &'static str {
        match (self, class) {
            (ShaderLanguage::Hlsl | ShaderLanguage::Slang, StorageClass::Workgroup) => {
                "GroupMemoryBarrier();"
            }
            (ShaderLanguage::Hlsl | ShaderLanguage::Slang, _) => "DeviceMemoryBarrier();",
            (_, StorageClass::Buffer | StorageClass::Output) => "memoryBarrierBuffer();",
            (_, StorageClass::Workgroup) => "memoryBarrierShared();",
            (_, StorageClass::Image) => "memoryBarrierImage();",
        }
    }

    /// Returns the memory barrier for all classes.
    pub fn full_memory_barrier(self) -> &'static str {
        match self {
            ShaderLanguage::Hlsl | ShaderLanguage::Slang => "AllMemoryBarrier();",
            ShaderLanguage::Glsl | ShaderLanguage::Wgsl => "memoryBarrier();",
        }
    }

    /// Returns the workgroup barrier for a class.
    pub fn control_barrier(self, class: StorageClass) -> String {
        let one = match (self, class) {
            (ShaderLanguage::Wgsl, StorageClass::Workgroup) => "workgroupBarrier();",
            (ShaderLanguage::Wgsl, StorageClass::Image) => "textureBarrier();",
            (ShaderLanguage::Wgsl, _) => "storageBarrier();",
            (ShaderLanguage::Hlsl | ShaderLanguage::Slang, StorageClass::Workgroup) => {
                "GroupMemoryBarrierWithGroupSync();"
            }
            (ShaderLanguage::Hlsl | ShaderLanguage::Slang, _) => "DeviceMemoryBarrierWithGroupSync();",
            (ShaderLanguage::Glsl, StorageClass::Workgroup) => "barrier();",
            // GLSL's `barrier()` orders shared memory only; other classes need a memory barrier on both
            // sides.
            (ShaderLanguage::Glsl, class) => {
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
            ShaderLanguage::Hlsl | ShaderLanguage::Slang => format!("Interlocked{name}"),
            ShaderLanguage::Glsl | ShaderLanguage::Wgsl => format!("atomic{name}"),
        })
    }

    /// Returns the function for a texel; WGSL has none.
    pub fn image_atomic_function(self, atomic: Op) -> Option<String> {
        let name = self.atomic_function(atomic)?;
        match self {
            ShaderLanguage::Glsl => Some(name.replace("atomic", "imageAtomic")),
            ShaderLanguage::Hlsl | ShaderLanguage::Slang => Some(name),
            ShaderLanguage::Wgsl => None,
        }
    }
}
