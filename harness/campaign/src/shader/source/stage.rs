//! Languages of shaders, and the names that compilers use for their stages.

use std::ffi::OsStr;
use std::path::Path;

use super::scan::{directive_argument, has_call, has_word};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShaderLanguage {
    /// The OpenGL shading language.
    Glsl,
    /// The high-level shading language of DirectX.
    Hlsl,
    Slang,
    /// The WebGPU shading language.
    Wgsl,
}

#[derive(Debug, PartialEq, Eq)]
pub struct SourceStage {
    /// The file extension of GLSL, which is also the name that glslang uses.
    pub extension: &'static str,
    /// The name in `[shader("…")]`, which slangc uses.
    pub hlsl: &'static str,
    /// The name that glslc uses.
    pub glslc: &'static str,
    /// The target profile of dxc.
    pub profile: &'static str,
}

const fn new_stage(
    extension: &'static str,
    hlsl: &'static str,
    glslc: &'static str,
    profile: &'static str,
) -> SourceStage {
    SourceStage { extension, hlsl, glslc, profile }
}

pub const COMPUTE: &SourceStage = &STAGES[0];

pub static STAGES: [SourceStage; 14] = [
    new_stage("comp", "compute", "compute", "cs_6_6"),
    new_stage("vert", "vertex", "vertex", "vs_6_6"),
    new_stage("frag", "pixel", "fragment", "ps_6_6"),
    new_stage("tesc", "hull", "tesscontrol", "hs_6_6"),
    new_stage("tese", "domain", "tesseval", "ds_6_6"),
    new_stage("geom", "geometry", "geometry", "gs_6_6"),
    new_stage("mesh", "mesh", "mesh", "ms_6_6"),
    new_stage("task", "amplification", "task", "as_6_6"),
    new_stage("rgen", "raygeneration", "rgen", "lib_6_6"),
    new_stage("rint", "intersection", "rint", "lib_6_6"),
    new_stage("rahit", "anyhit", "rahit", "lib_6_6"),
    new_stage("rchit", "closesthit", "rchit", "lib_6_6"),
    new_stage("rmiss", "miss", "rmiss", "lib_6_6"),
    new_stage("rcall", "callable", "rcall", "lib_6_6"),
];

/// Extensions of GLSL other than those of the stages.
const GLSL_EXTENSIONS: [&str; 1] = ["glsl"];
/// Extensions of HLSL; `compute` is Unity's.
const HLSL_EXTENSIONS: [&str; 2] = ["hlsl", "compute"];

pub fn language_of_extension(extension: &str) -> Option<ShaderLanguage> {
    match extension {
        extension if GLSL_EXTENSIONS.contains(&extension) || stage_of_extension(extension).is_some() => {
            Some(ShaderLanguage::Glsl)
        }
        extension if HLSL_EXTENSIONS.contains(&extension) => Some(ShaderLanguage::Hlsl),
        "slang" => Some(ShaderLanguage::Slang),
        "wgsl" => Some(ShaderLanguage::Wgsl),
        _ => None,
    }
}

/// Returns true if a text without comments is HLSL, independent of the extension of its file: engines use the
/// extensions of GLSL stages for both.
pub fn is_hlsl(text: &str) -> bool {
    let has_version = text.lines().any(|line| directive_argument(line, "version").is_some());
    let is_semantic = |part: &str| {
        let part = part.trim_start();
        part.starts_with("register") || part.starts_with("SV_")
    };
    !has_version && (has_call(text, "numthreads") || text.split(':').skip(1).any(is_semantic))
}

/// Returns the stage of an extension of GLSL.
pub fn stage_of_extension(extension: &str) -> Option<&'static SourceStage> {
    STAGES.iter().find(|stage| stage.extension == extension)
}

/// Returns the stage of a name in `[shader("…")]`, `#pragma shader_stage(…)` or a section of a file.
pub fn stage_of_name(name: &str) -> Option<&'static SourceStage> {
    let name = match name {
        "fragment" => "pixel",
        "raygen" => "raygeneration",
        "tesscontrol" | "tesselation_control" | "tessellation_control" => "hull",
        "tesseval" | "tesselation_evaluation" | "tessellation_evaluation" => "domain",
        "task" => "amplification",
        name => name,
    };
    STAGES.iter().find(|stage| stage.hlsl == name).or_else(|| stage_of_extension(name))
}

/// Returns the stage of a file: from its extensions (`name.comp`, `name.comp.glsl`), from
/// `#pragma shader_stage`, or from built-ins of one stage in its text without comments.
pub fn stage_of_file(file: &str, text: &str) -> Option<&'static SourceStage> {
    let known = |name: &Path| stage_of_extension(name.extension().and_then(OsStr::to_str)?);
    let name = Path::new(file);
    let second = || known(Path::new(name.file_stem()?));
    known(name).or_else(second).or_else(|| stage_of_pragma(text)).or_else(|| stage_of_contents(text))
}

/// Returns the stage of `#pragma shader_stage(NAME)`.
fn stage_of_pragma(text: &str) -> Option<&'static SourceStage> {
    text.lines().find_map(|line| {
        let name = directive_argument(line, "pragma")?.strip_prefix("shader_stage")?.trim();
        stage_of_name(name.strip_prefix('(')?.strip_suffix(')')?.trim())
    })
}

/// Returns the stage whose built-ins a text of GLSL uses.
fn stage_of_contents(text: &str) -> Option<&'static SourceStage> {
    const MARKS: [(&str, &str); 12] = [
        ("EmitMeshTasksEXT", "task"),
        ("SetMeshOutputsEXT", "mesh"),
        ("local_size_x", "comp"),
        ("local_size_x_id", "comp"),
        ("gl_GlobalInvocationID", "comp"),
        ("hitAttributeEXT", "rchit"),
        ("traceRayEXT", "rgen"),
        ("rayPayloadInEXT", "rmiss"),
        ("EmitVertex", "geom"),
        ("gl_TessCoord", "tese"),
        ("gl_Position", "vert"),
        ("gl_FragCoord", "frag"),
    ];
    let (_, stage) = MARKS.iter().find(|(word, _)| has_word(text, word))?;
    stage_of_extension(stage)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_are_named_by_extensions_pragmas_and_contents() {
        let cases = [
            ("k.comp", "", Some("comp")),
            ("k.frag.glsl", "", Some("frag")),
            ("k.glsl", "", None),
            ("a.vert/k.glsl", "", None),
            ("k.glsl", "#pragma shader_stage(compute)", Some("comp")),
            ("k.glsl", "  # pragma shader_stage( raygen )", Some("rgen")),
            ("k.glsl", "layout(local_size_x = 8) in;", Some("comp")),
            ("k.glsl", "void main() { gl_Position = vec4(0); }", Some("vert")),
            ("k.rmiss", "", Some("rmiss")),
        ];
        for (file, text, expected) in cases {
            assert_eq!(stage_of_file(file, text).map(|stage| stage.extension), expected, "{file} {text}");
        }
    }

    #[test]
    fn hlsl_and_glsl_are_distinguished_by_contents() {
        let cases = [
            ("RWBuffer<uint> b : register(u0);", true),
            ("[numthreads(8, 8, 1)] void main() {}", true),
            ("float4 main(float4 p : SV_Position) : SV_Target { return p; }", true),
            ("#version 450\nint register(int a) { return true ? register(a) : register(a); }", false),
            ("layout(local_size_x = 4) in; void main() {}", false),
        ];
        for (text, expected) in cases {
            assert_eq!(is_hlsl(text), expected, "{text}");
        }
    }
}
