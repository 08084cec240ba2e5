//! The installed compilers of shaders, and what each of them cannot compile.
//!
//! A compiler cannot compile a feature if it rejects a small source that needs it.

use std::fs;
use std::io;
use std::path::PathBuf;

use serde::Serialize;
use spirv_reader::ShaderLanguage;

use super::compilers::COMPILERS;
use super::process::{find_program, program_version};
use super::{Compilation, load};
use crate::temporary::TemporaryFolder;

/// A compiler that `race` and other commands use, installed or not.
#[derive(Clone, Debug, Serialize)]
pub struct KnownCompiler {
    pub language: &'static str,
    pub program: &'static str,
    /// Where it was found in `PATH`; none if it is not installed.
    pub path: Option<PathBuf>,
    /// The last word of its version line.
    pub version: Option<String>,
    /// The features whose sources it rejects.
    pub rejects: Vec<&'static str>,
    /// Where it comes from.
    pub install_hint: &'static str,
}

/// A feature of a language: the extension of its source, the name, and the smallest source that needs it.
const FEATURES: [(&str, &str, &str); 11] = [
    (
        "comp",
        "scopes of accesses",
        "#version 450\n#pragma use_vulkan_memory_model\n#extension GL_KHR_memory_scope_semantics : require\n\
         layout(set=0, binding=0) buffer B { uint b; };\nvoid main() \
         { atomicStore(b, 1u, gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_SemanticsRelease); }\n",
    ),
    (
        "comp",
        "atomics of 64 bits",
        "#version 450\n#extension GL_EXT_shader_atomic_int64 : require\n\
         #extension GL_EXT_shader_explicit_arithmetic_types_int64 : require\n\
         layout(set=0, binding=0) buffer B { uint64_t b; };\nvoid main() { atomicAdd(b, 1ul); }\n",
    ),
    (
        "comp",
        "cooperative matrices",
        "#version 450\n#extension GL_KHR_cooperative_matrix : require\nvoid main() {}\n",
    ),
    (
        "comp",
        "maximal reconvergence",
        "#version 450\n#extension GL_EXT_maximal_reconvergence : require\nvoid main() {}\n",
    ),
    ("comp", "long vectors", "#version 450\n#extension GL_EXT_long_vector : require\nvoid main() {}\n"),
    (
        "hlsl",
        "templates of HLSL 2021",
        "RWStructuredBuffer<uint> b : register(u0);\ntemplate<typename T> T twice(T x) { return x + x; }\n\
         [numthreads(1, 1, 1)] void main() { b[0] = twice<uint>(2); }\n",
    ),
    (
        "hlsl",
        "atomics of 64 bits",
        "RWStructuredBuffer<uint64_t> b : register(u0);\n\
         [numthreads(1, 1, 1)] void main() { InterlockedAdd(b[0], (uint64_t)1); }\n",
    ),
    (
        "hlsl",
        "operations of waves",
        "RWStructuredBuffer<uint> b : register(u0);\n\
         [numthreads(1, 1, 1)] void main() { b[0] = WaveActiveSum(1u); }\n",
    ),
    // Some packages of tint write no SPIR-V.
    ("wgsl", "any shader", "@compute @workgroup_size(1) fn main() {}\n"),
    (
        "wgsl",
        "subgroups",
        "enable subgroups;\n@compute @workgroup_size(1) fn main() { _ = subgroupAdd(1u); }\n",
    ),
    ("wgsl", "f16", "enable f16;\n@compute @workgroup_size(1) fn main() { var x = 1h; }\n"),
];

/// Returns the compilers in the order in which they are tried for a language.
///
/// # Errors
/// If temporary files cannot be created.
pub fn known_compilers() -> io::Result<Vec<KnownCompiler>> {
    let folder = TemporaryFolder::create()?;
    let known = COMPILERS.iter().map(|compiler| {
        let (language, hint) = (compiler.language, compiler.install_hint);
        (language.name(), extension_of(language), compiler.program, hint)
    });
    let mut all = Vec::new();
    for (language, extension, program, install_hint) in known {
        let path = find_program(program);
        let version = path.as_ref().map(|path| program_version(path, folder.path()));
        let mut rejects = Vec::new();
        for (_, feature, source) in FEATURES.iter().filter(|(of, ..)| path.is_some() && *of == extension) {
            let file = folder.path().join("feature").with_extension(extension);
            fs::write(&file, source)?;
            let compiler = Some(program.to_owned());
            let compilation = Compilation { compiler, is_uncached: true, ..Compilation::default() };
            if load(&file.to_string_lossy(), &compilation).is_err() {
                rejects.push(*feature);
            }
        }
        all.push(KnownCompiler { language, program, path, version, rejects, install_hint });
    }
    Ok(all)
}

fn extension_of(language: ShaderLanguage) -> &'static str {
    match language {
        ShaderLanguage::Glsl => "comp",
        ShaderLanguage::Hlsl => "hlsl",
        ShaderLanguage::OpenClC => "cl",
        ShaderLanguage::Slang => "slang",
        ShaderLanguage::Wgsl => "wgsl",
    }
}
