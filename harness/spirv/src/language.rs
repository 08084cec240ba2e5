//! The source languages of shaders, and their words for synchronization.

use rspirv::spirv::Op;
use vocabulary::{StorageClass, closed_enum};

closed_enum! {
    /// The source language of a shader.
    pub enum ShaderLanguage {
        /// The OpenGL shading language.
        Glsl = "GLSL",
        /// The high-level shading language of DirectX.
        Hlsl = "HLSL",
        /// Kernels of OpenCL.
        OpenClC = "OpenCL C",
        /// Slang, which has the functions of HLSL.
        Slang = "Slang",
        /// The WebGPU shading language.
        Wgsl = "WGSL",
    }
}

/// The execution model of HLSL, a candidate of proposal 0007.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HlslExecution {
    /// Lanes are independent threads.
    #[default]
    Independent,
    /// The same, with synchronization of a tangle at branches.
    Branches,
    /// The same, with synchronization of a tangle at atomics.
    Atomics,
    /// The lanes of a tangle execute in lockstep.
    Tangle,
    /// The lanes of a wave execute in lockstep.
    Lockstep,
}

/// The memory model from which that of HLSL derives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HlslMemory {
    /// The functional specification of Direct3D 11.3: accesses that collide are not ordered, but defined.
    #[default]
    Direct3d,
    /// The HSA memory model: ordinary accesses that collide are a data race.
    Hsa,
}

/// A candidate for the rules of HLSL. The default is what its documents promise today.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HlslRules {
    pub execution: HlslExecution,
    pub memory: HlslMemory,
}

impl HlslRules {
    /// The execution models by name.
    pub const EXECUTIONS: [(&'static str, HlslExecution); 5] = [
        ("independent", HlslExecution::Independent),
        ("branches", HlslExecution::Branches),
        ("atomics", HlslExecution::Atomics),
        ("tangle", HlslExecution::Tangle),
        ("lockstep", HlslExecution::Lockstep),
    ];
    /// The memory models by name.
    pub const MEMORIES: [(&'static str, HlslMemory); 2] =
        [("d3d11", HlslMemory::Direct3d), ("hsa", HlslMemory::Hsa)];

    /// Returns the name of the language, with the choices that differ from today's rules.
    pub fn describe_language(self, language: &str) -> String {
        let execution = HlslRules::EXECUTIONS.iter().skip(1).find(|(_, known)| *known == self.execution);
        let memory = HlslRules::MEMORIES.iter().skip(1).find(|(_, known)| *known == self.memory);
        let chosen: Vec<&str> =
            execution.map(|(name, _)| *name).into_iter().chain(memory.map(|(name, _)| *name)).collect();
        if chosen.is_empty() { language.to_owned() } else { format!("{language} ({})", chosen.join(", ")) }
    }
}

/// Extensions of GLSL: those of the stages, and that of all.
const GLSL_EXTENSIONS: [&str; 15] = [
    "comp", "vert", "frag", "tesc", "tese", "geom", "mesh", "task", "rgen", "rint", "rahit", "rchit",
    "rmiss", "rcall", "glsl",
];

/// The qualifiers of GLSL for memory that is coherent in the queue family. Most devices have one for compute.
const COHERENT_WORDS: [&str; 3] = ["coherent", "devicecoherent", "queuefamilycoherent"];
/// The types of HLSL for buffers that shaders write.
const UAV_TYPES: [&str; 5] = [
    "RWBuffer",
    "RWByteAddressBuffer",
    "RWStructuredBuffer",
    "AppendStructuredBuffer",
    "ConsumeStructuredBuffer",
];

impl ShaderLanguage {
    /// Returns the language of a file extension; `compute` is Unity's extension of HLSL.
    pub fn from_extension(extension: &str) -> Option<ShaderLanguage> {
        match extension {
            "hlsl" | "compute" => Some(ShaderLanguage::Hlsl),
            "cl" => Some(ShaderLanguage::OpenClC),
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
            3 => Some(ShaderLanguage::OpenClC),
            5 => Some(ShaderLanguage::Hlsl),
            10 => Some(ShaderLanguage::Wgsl),
            11 => Some(ShaderLanguage::Slang),
            _ => None,
        }
    }

    /// Returns true for HLSL and for Slang, which has its functions.
    pub fn has_hlsl_functions(self) -> bool {
        matches!(self, ShaderLanguage::Hlsl | ShaderLanguage::Slang)
    }

    /// Returns the memory barrier for some classes.
    pub fn memory_barrier(self, classes: &[StorageClass]) -> String {
        let one = match (self, classes) {
            (ShaderLanguage::OpenClC, classes) => return format!("mem_fence({});", fence_flags(classes)),
            (ShaderLanguage::Hlsl | ShaderLanguage::Slang, [StorageClass::Workgroup]) => {
                "GroupMemoryBarrier();"
            }
            (ShaderLanguage::Hlsl | ShaderLanguage::Slang, [_]) => "DeviceMemoryBarrier();",
            (ShaderLanguage::Hlsl | ShaderLanguage::Slang, _) => "AllMemoryBarrier();",
            (_, [StorageClass::Buffer | StorageClass::Output]) => "memoryBarrierBuffer();",
            (_, [StorageClass::Workgroup]) => "memoryBarrierShared();",
            (_, [StorageClass::Image]) => "memoryBarrierImage();",
            _ => "memoryBarrier();",
        };
        one.to_owned()
    }

    /// Returns the workgroup barrier for a class.
    pub fn control_barrier(self, class: StorageClass) -> String {
        let one = match (self, class) {
            (ShaderLanguage::OpenClC, class) => return format!("barrier({});", fence_flags(&[class])),
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
                let memory = self.memory_barrier(&[class]);
                return format!("{memory} barrier(); {memory}");
            }
        };
        one.to_owned()
    }

    /// Returns the functions that are workgroup barriers.
    pub fn control_barriers(self) -> &'static [&'static str] {
        match self {
            ShaderLanguage::Glsl | ShaderLanguage::OpenClC => &["barrier"],
            ShaderLanguage::Hlsl | ShaderLanguage::Slang => &[
                "GroupMemoryBarrierWithGroupSync",
                "DeviceMemoryBarrierWithGroupSync",
                "AllMemoryBarrierWithGroupSync",
            ],
            ShaderLanguage::Wgsl => {
                &["workgroupBarrier", "storageBarrier", "textureBarrier", "workgroupUniformLoad"]
            }
        }
    }

    /// Returns the word for variables in workgroup memory.
    pub fn shared_word(self) -> &'static str {
        match self {
            ShaderLanguage::Glsl => "shared",
            ShaderLanguage::Hlsl | ShaderLanguage::Slang => "groupshared",
            ShaderLanguage::OpenClC => "local",
            ShaderLanguage::Wgsl => "var<workgroup>",
        }
    }

    /// Returns the atomic function with a name as in GLSL without `atomic`: `Add` or `CompSwap`.
    pub fn atomic_named(self, name: &str) -> String {
        match (self, name) {
            (ShaderLanguage::Hlsl | ShaderLanguage::Slang, "CompSwap") => {
                "InterlockedCompareExchange".to_owned()
            }
            (ShaderLanguage::Hlsl | ShaderLanguage::Slang, _) => format!("Interlocked{name}"),
            (ShaderLanguage::OpenClC, "CompSwap") => "atomic_cmpxchg".to_owned(),
            (ShaderLanguage::OpenClC, "Exchange") => "atomic_xchg".to_owned(),
            (ShaderLanguage::OpenClC, _) => format!("atomic_{}", name.to_lowercase()),
            (ShaderLanguage::Wgsl, "CompSwap") => "atomicCompareExchangeWeak".to_owned(),
            (ShaderLanguage::Glsl | ShaderLanguage::Wgsl, _) => format!("atomic{name}"),
        }
    }

    /// Returns an element as an argument of an atomic function.
    pub fn atomic_argument(self, element: &str) -> String {
        match self {
            ShaderLanguage::OpenClC | ShaderLanguage::Wgsl => format!("&{element}"),
            ShaderLanguage::Glsl | ShaderLanguage::Hlsl | ShaderLanguage::Slang => element.to_owned(),
        }
    }

    /// Returns the zero of a type.
    pub fn zero_of(self, ty: &str) -> String {
        match self {
            ShaderLanguage::Hlsl | ShaderLanguage::OpenClC | ShaderLanguage::Slang => format!("({ty})0"),
            ShaderLanguage::Glsl | ShaderLanguage::Wgsl => format!("{ty}(0)"),
        }
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
        Some(self.atomic_named(name))
    }

    /// Returns the function for a texel; WGSL and OpenCL C have none.
    pub fn image_atomic_function(self, atomic: Op) -> Option<String> {
        let name = self.atomic_function(atomic)?;
        match self {
            ShaderLanguage::Glsl => Some(name.replace("atomic", "imageAtomic")),
            ShaderLanguage::Hlsl | ShaderLanguage::Slang => Some(name),
            ShaderLanguage::OpenClC | ShaderLanguage::Wgsl => None,
        }
    }
}

/// Returns the flags of a fence of OpenCL C.
fn fence_flags(classes: &[StorageClass]) -> String {
    let flag = |class: &StorageClass| match class {
        StorageClass::Workgroup => "CLK_LOCAL_MEM_FENCE",
        StorageClass::Image => "CLK_IMAGE_MEM_FENCE",
        StorageClass::Buffer | StorageClass::Output => "CLK_GLOBAL_MEM_FENCE",
    };
    classes.iter().map(flag).collect::<Vec<_>>().join(" | ")
}

/// A variable, block or member that a source declares, as `block.member` in a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CoherenceDeclaration {
    pub name: String,
    /// True if a qualifier makes it coherent for the device or wider.
    pub is_coherent: bool,
}

/// Returns what a source declares: in GLSL with a coherence qualifier, in HLSL every UAV.
pub(crate) fn coherence_declarations(language: ShaderLanguage, text: &str) -> Vec<CoherenceDeclaration> {
    let plain = remove_comments(text);
    match language {
        ShaderLanguage::Glsl => coherent_names(&plain),
        ShaderLanguage::Hlsl => plain_uavs(&plain),
        ShaderLanguage::OpenClC | ShaderLanguage::Slang | ShaderLanguage::Wgsl => Vec::new(),
    }
}

fn remove_comments(text: &str) -> String {
    let (mut plain, mut rest) = (String::with_capacity(text.len()), text);
    while let Some((before, after)) = rest.split_once('/') {
        plain.push_str(before);
        rest = if after.starts_with('/') {
            after.find('\n').map_or("", |end| &after[end..])
        } else if let Some(comment) = after.strip_prefix('*') {
            plain.push(' ');
            comment.split_once("*/").map_or("", |(_, after)| after)
        } else {
            plain.push('/');
            after
        };
    }
    plain + rest
}

fn coherent_names(plain: &str) -> Vec<CoherenceDeclaration> {
    let is_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let (mut names, mut block) = (Vec::new(), None);
    for statement in plain.split_inclusive([';', '{', '}']) {
        let declared = statement.split(['[', ';', '{']).next().unwrap_or_default();
        let words = |text: &str| -> Vec<String> {
            text.split(|letter| !is_word(letter)).filter(|word| !word.is_empty()).map(str::to_owned).collect()
        };
        let name = words(declared).pop();
        if words(statement).iter().any(|word| COHERENT_WORDS.contains(&word.as_str())) {
            names.extend(name.iter().map(|name| match &block {
                Some(block) => format!("{block}.{name}"),
                None => name.clone(),
            }));
        }
        match statement.chars().last() {
            Some('{') => block = name,
            Some('}') => block = None,
            _ => {}
        }
    }
    names.into_iter().map(|name| CoherenceDeclaration { name, is_coherent: true }).collect()
}

/// Returns the UAVs whose declarations begin with their type or `globallycoherent`: with other words, which may be macros, the
/// text leaves open what they are.
fn plain_uavs(plain: &str) -> Vec<CoherenceDeclaration> {
    let mut found = Vec::new();
    let lines = plain.lines().filter(|line| !line.trim_start().starts_with('#'));
    for statement in lines.collect::<Vec<_>>().join("\n").split([';', '{', '}']) {
        let mut depth = 0_i32;
        let outside = statement.chars().map(|letter| {
            depth +=
                i32::from(matches!(letter, '[' | '<' | '(')) - i32::from(matches!(letter, ']' | '>' | ')'));
            if depth == 0 && !matches!(letter, ']' | '>' | ')') { letter } else { ' ' }
        });
        let outside: String = outside.collect();
        let declared = outside.trim_start();
        let coherent = declared.strip_prefix("globallycoherent ");
        let (ty, names) = coherent.unwrap_or(declared).trim_start().split_once(' ').unwrap_or_default();
        if UAV_TYPES.contains(&ty) || ty.starts_with("RWTexture") || ty.starts_with("RasterizerOrdered") {
            let names = names.split(',').map(|name| name.split(':').next().unwrap_or_default().trim());
            let is_coherent = coherent.is_some();
            found.extend(names.map(|name| CoherenceDeclaration { name: name.to_owned(), is_coherent }));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_of_uavs_begin_with_their_type() {
        let text = "#define GC globallycoherent\nGC RWBuffer<uint> a; // RWBuffer<uint> b;\n\
            [[vk::binding(1)]] globallycoherent RWStructuredBuffer<vector<int, 4> > c[2] : register(u1), d;\n\
            /* globallycoherent */ RWTexture2D<float> e; void f(RWBuffer<uint> g) { RWByteAddressBuffer h = i; }";
        let found = coherence_declarations(ShaderLanguage::Hlsl, text);
        let found: Vec<String> =
            found.iter().map(|one| format!("{} {}", one.name.replace(' ', ""), one.is_coherent)).collect();
        assert_eq!(found, ["c true", "d true", "e false", "h=i false"]);
    }
}
