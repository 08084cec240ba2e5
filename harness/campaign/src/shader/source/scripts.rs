//! Scripts as shaders: the shader of the dispatch, with the buffers and expectations of the script.

use shader_source::scan::blank_comments;
use spirv_reader::ShaderLanguage;

use super::module_edit::rename_source;
use super::{Compilation, SourceError, SourceModule, file_extension, load_contents};
use crate::files;
use crate::shader::script::{
    Script, ScriptError, ScriptProblem, ShaderFormat, ShaderText, amber, decode_words, offload_test,
    shader_test,
};

/// A parser of scripts.
type ParseScript = fn(&str) -> Result<Script, ScriptError>;

/// Extensions of scripts.
const FORMATS: [(&str, ParseScript); 4] = [
    ("amber", amber::parse),
    ("shader_test", shader_test::parse),
    ("vkscript", shader_test::parse),
    (OFFLOAD_TEST, offload_test::parse),
];

/// The extension of LLVM's offload test suite, and of litmus tests.
const OFFLOAD_TEST: &str = "test";

/// Returns true if a file is a script, by its extension, and by its contents if litmus tests have the extension too.
pub(super) fn is_script(file: &str) -> bool {
    let extension = file_extension(file);
    let is_offload_test = || {
        files::read_text(file.as_ref(), files::MAX_SHADER_BYTES)
            .is_ok_and(|text| offload_test::is_offload_test(&text))
    };
    is_extension(extension) && (extension != OFFLOAD_TEST || is_offload_test())
}

/// Returns true for the extension of a script.
pub(super) fn is_extension(extension: &str) -> bool {
    FORMATS.iter().any(|(known, _)| *known == extension)
}

/// Reads the shader of a script, and compiles it if it is source code.
pub(super) fn load_script(file: &str, compilation: &Compilation) -> Result<SourceModule, SourceError> {
    let extension = file_extension(file);
    let text = files::read_text(file.as_ref(), files::MAX_SHADER_BYTES);
    let text = text.map_err(|error| SourceError::File { file: file.to_owned(), error })?;
    let unknown = || SourceError::UnknownExtension { file: file.to_owned() };
    let (_, parse) = FORMATS.iter().find(|(known, _)| *known == extension).ok_or_else(unknown)?;
    let to_error = |error: ScriptError| SourceError::Script { file: file.to_owned(), error };
    let Script { shader: ShaderText { format, text }, options, dxc_flags, resources } =
        parse(&text).map_err(to_error)?;
    if matches!(format, ShaderFormat::Glsl | ShaderFormat::Hlsl)
        && let Some(line) = include_line(&text)
    {
        let problem = ScriptProblem::Unsupported("#include".to_owned());
        return Err(to_error(ScriptError { line, column: 1, problem }));
    }
    let module = match format {
        ShaderFormat::SpirvAssembly => SourceModule::from_spirv(text.into_bytes()),
        ShaderFormat::SpirvWords => {
            let line = text.len() as u32 - text.trim_start_matches('\n').len() as u32 + 1;
            let problem = ScriptProblem::Value("the shader".to_owned(), "hexadecimal words");
            let words = decode_words(&text).ok_or(ScriptError { line, column: 1, problem });
            SourceModule::from_spirv(words.map_err(to_error)?)
        }
        ShaderFormat::Glsl => compile_text(file, ShaderLanguage::Glsl, &text, compilation)?,
        ShaderFormat::Hlsl => {
            let entry = compilation.entry.clone().or(options.entry.clone());
            let compilation = Compilation { entry, dxc_flags, ..compilation.clone() };
            compile_text(file, ShaderLanguage::Hlsl, &text, &compilation)?
        }
    };
    // A module that cannot be read is refused by its analysis.
    if let Ok(read) = entry_point::read_module(&module.bytes) {
        resources.iter().try_for_each(|resource| resource.check(&read)).map_err(to_error)?;
    }
    Ok(SourceModule { given: Some(Box::new(options)), ..module })
}

/// Returns the first line with a directive that includes a file, which a script may not read.
fn include_line(text: &str) -> Option<u32> {
    // A directive may go on in the next line.
    let plain = blank_comments(&text.replace("\r", "")).replace("\\\n", "");
    let is_include = |line: &str| {
        let marks = ["#", "%:", "??="].iter();
        let directive =
            marks.filter_map(|mark| line.trim_start().strip_prefix(mark)).next().unwrap_or_default();
        ["include", "import"].iter().any(|name| directive.trim_start().starts_with(name))
    };
    plain.lines().position(is_include).map(|index| index as u32 + 1)
}

/// Compiles a text, and gives its lines the name of the script.
fn compile_text(
    file: &str,
    language: ShaderLanguage,
    text: &str,
    compilation: &Compilation,
) -> Result<SourceModule, SourceError> {
    let extension = if language == ShaderLanguage::Hlsl { "hlsl" } else { "comp" };
    let name = format!("{file}.{extension}");
    let mut all = load_contents(&name, text.as_bytes(), compilation);
    let module = all.pop().unwrap_or_else(|| Err(SourceError::UnknownExtension { file: file.to_owned() }))?;
    Ok(SourceModule { bytes: rename_source(module.bytes, &name, file), ..module })
}
