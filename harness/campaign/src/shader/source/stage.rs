//! Languages of shaders, and the names that compilers use for their stages.

use std::ffi::OsStr;
use std::path::Path;

use spirv_reader::ShaderLanguage;

use super::scan::{directive_argument, has_call, has_word};

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

/// A word that only one language has, with its line from 1.
#[derive(Debug, PartialEq, Eq)]
pub struct LanguageMark {
    pub language: ShaderLanguage,
    pub word: &'static str,
    pub line: u32,
}

/// Returns the first mark of each language in a text without comments.
pub fn language_marks(text: &str) -> Vec<LanguageMark> {
    let marks = |line: &str| {
        let is_kernel = directive_argument(line, "pragma").is_some_and(|rest| has_word(rest, "kernel"));
        [
            (ShaderLanguage::Glsl, "#version", directive_argument(line, "version").is_some()),
            (ShaderLanguage::Hlsl, "[numthreads(…)]", has_call(line, "numthreads")),
            (ShaderLanguage::Hlsl, "#pragma kernel", is_kernel),
            (ShaderLanguage::Wgsl, "@compute", line.contains("@compute") || line.contains("@workgroup_size")),
        ]
    };
    let mut found: Vec<LanguageMark> = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        for (language, word, _) in marks(line).into_iter().filter(|(.., is_here)| *is_here) {
            if found.iter().all(|known| known.language != language) {
                found.push(LanguageMark { language, word, line: number });
            }
        }
    }
    found
}

/// Returns a name for a shader without one, whose extension is that of its language: by its first bytes, or by words that
/// only one language has.
pub fn name_of_contents(contents: &[u8]) -> Option<&'static str> {
    if contents.starts_with(&super::SPIRV_MAGIC) {
        return Some("stdin.spv");
    }
    let text = super::blank_comments(&super::decode_text(contents).0);
    match language_marks(&text).as_slice() {
        [mark] => Some(match mark.language {
            ShaderLanguage::Glsl => "stdin.glsl",
            ShaderLanguage::Wgsl => "stdin.wgsl",
            _ => "stdin.hlsl",
        }),
        [] if has_word(&text, "OpCapability") => Some("stdin.spvasm"),
        [] if ["__kernel", "kernel"].iter().any(|word| has_word(&text, word)) => Some("stdin.cl"),
        _ => None,
    }
}

/// Returns the language of a source: that of its extension, or HLSL for the extension of a GLSL stage.
///
/// # Errors
/// Returns the marks of another language, or of several.
pub fn decide_language(
    of_extension: ShaderLanguage,
    text: &str,
) -> Result<ShaderLanguage, Vec<LanguageMark>> {
    // The preprocessor may select one of several languages.
    let has_alternatives = text.lines().any(|line| line.trim_start().starts_with("#if"));
    let marks = language_marks(text);
    let fits = |mark: &LanguageMark| match of_extension {
        ShaderLanguage::Slang => mark.language.has_hlsl_functions(),
        ShaderLanguage::Glsl => matches!(mark.language, ShaderLanguage::Glsl | ShaderLanguage::Hlsl),
        language => mark.language == language,
    };
    if !has_alternatives && (marks.len() > 1 || !marks.iter().all(fits)) {
        return Err(marks);
    }
    Ok(if of_extension == ShaderLanguage::Glsl && is_hlsl(text) {
        ShaderLanguage::Hlsl
    } else {
        of_extension
    })
}

/// Returns true if a text without comments is HLSL, independent of the extension of its file: engines use the
/// extensions of GLSL stages for both.
fn is_hlsl(text: &str) -> bool {
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
    fn languages_are_decided_by_extension_and_contents() {
        use ShaderLanguage::{Glsl, Hlsl, Slang, Wgsl};
        let (hlsl, glsl) = ("[numthreads(8, 8, 1)] void main() {}", "#version 450\nvoid main() {}");
        let cases = [
            (Glsl, "RWBuffer<uint> b : register(u0);", Some(Hlsl)),
            (Glsl, hlsl, Some(Hlsl)),
            (Glsl, "float4 main(float4 p : SV_Position) : SV_Target { return p; }", Some(Hlsl)),
            (
                Glsl,
                "#version 450\nint register(int a) { return true ? register(a) : register(a); }",
                Some(Glsl),
            ),
            (Glsl, "layout(local_size_x = 4) in; void main() {}", Some(Glsl)),
            (Slang, hlsl, Some(Slang)),
            (Wgsl, "@compute @workgroup_size(4) fn main() {}", Some(Wgsl)),
            // The content contradicts the extension.
            (Wgsl, glsl, None),
            (Hlsl, glsl, None),
            (Glsl, "@compute @workgroup_size(4) fn main() {}", None),
            (Slang, "@compute @workgroup_size(4) fn main() {}", None),
            // Two languages, unless the preprocessor selects one.
            (Hlsl, "#version 450\n#pragma kernel main\nvoid main() {}", None),
            (
                Hlsl,
                "#ifdef GL\n#version 450\n#else\n[numthreads(8, 1, 1)]\n#endif\nvoid main() {}",
                Some(Hlsl),
            ),
        ];
        for (of_extension, text, expected) in cases {
            assert_eq!(decide_language(of_extension, text).ok(), expected, "{text}");
        }
    }
}
