//! Scripts as shaders: the shader of each dispatch, with the buffers and expectations of the script.
//!
//! `FILE.amber/N` names the N-th of several dispatches. It starts with the contents that the first schedule of the walk
//! leaves in those before it. Contents that depend on the schedule are not known; those of a racy dispatch are of one
//! execution, and its race is the answer for the script.

use std::path::Path;
use std::time::Duration;

use analysis::dispatch::uses_subgroups;
use analysis::{decide, entry_options};
use entry_point::{AnalysisOptions, DeadlinePredicate};
use model::{Budget, Model};
use spirv_reader::ShaderLanguage;

use super::includes::{FileDirective, find_file_directive};
use super::module_edit::rename_source;
use super::{Compilation, SourceError, SourceModule, declared_constants, file_extension, load_contents};
use crate::files;
use crate::shader::script::{
    Script, ScriptBuffers, ScriptError, ScriptProblem, ScriptRun, ShaderFormat, ShaderText, amber,
    decode_words, offload_test, shader_test,
};
use crate::time_limit::stop_after;

/// The subgroup size of dispatches whose contents others read, if none is given.
const ASSUMED_SUBGROUP_SIZE: u32 = 32;
/// Time limit for the contents that a dispatch leaves.
const CONTENTS_TIME: Duration = Duration::from_secs(10);

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

/// Returns the script that an argument names, and the dispatch if it names one.
pub(super) fn script_of(argument: &str) -> Option<(&str, Option<usize>)> {
    let is_script = |file: &str| FORMATS.iter().any(|(known, _)| *known == file_extension(file));
    if is_script(argument) {
        return Some((argument, None));
    }
    let (file, number) = argument.rsplit_once('/')?;
    // A folder may have such a name.
    (is_script(file) && !Path::new(file).is_dir()).then_some((file, Some(number.parse().ok()?)))
}

/// Returns true if an argument names a script, by its extension, and by its contents if litmus tests have the extension too.
pub(super) fn is_script(argument: &str) -> bool {
    let is_offload_test = |file: &str| {
        files::read_text(file.as_ref(), files::MAX_SHADER_BYTES)
            .is_ok_and(|text| offload_test::is_offload_test(&text))
    };
    script_of(argument).is_some_and(|(file, _)| file_extension(file) != OFFLOAD_TEST || is_offload_test(file))
}

/// Returns the names of the dispatches of a script, or its own if it has one, for [`load_script`]. A script that cannot be
/// read gives its error there.
pub(super) fn run_names(file: &str, compilation: &Compilation) -> Vec<String> {
    let runs = parse_script(file).map(|script| script.runs).unwrap_or_default();
    let is_chosen = |run: &ScriptRun| compilation.entry.is_none() || run.options.entry == compilation.entry;
    let numbered = (1..).zip(&runs).filter(|(_, run)| is_chosen(run));
    let names: Vec<String> = numbered.map(|(number, _)| format!("{file}/{number}")).collect();
    if runs.len() < 2 || names.is_empty() { vec![file.to_owned()] } else { names }
}

fn parse_script(file: &str) -> Result<Script, SourceError> {
    let text = files::read_text(file.as_ref(), files::MAX_SHADER_BYTES);
    let text = text.map_err(|error| SourceError::File { file: file.to_owned(), error })?;
    let unknown = || SourceError::UnknownExtension { file: file.to_owned() };
    let (_, parse) = FORMATS.iter().find(|(known, _)| *known == file_extension(file)).ok_or_else(unknown)?;
    parse(&text).map_err(|error| SourceError::Script { file: file.to_owned(), error })
}

/// Reads the shader of a dispatch of a script, or of each one, and compiles it if it is source code.
pub(super) fn load_script(
    file: &str,
    number: Option<usize>,
    compilation: &Compilation,
) -> Result<Vec<SourceModule>, SourceError> {
    let Script { runs, mut buffers, .. } = parse_script(file)?;
    let to_error = |error: ScriptError| SourceError::Script { file: file.to_owned(), error };
    let last = number.unwrap_or(runs.len());
    if last == 0 || last > runs.len() {
        let problem = ScriptProblem::NoRun(last, runs.len());
        return Err(to_error(ScriptError { line: 1, column: 1, problem }));
    }
    let mut modules = Vec::new();
    for (index, run) in (1..=last).zip(&runs) {
        let module = load_run(file, run, compilation)?;
        let mut options = run.to_options(&mut buffers).map_err(to_error)?;
        for (id, declared) in declared_constants(&module.bytes) {
            options.specialization.entry(id).or_insert(declared);
        }
        // All dispatches need the same.
        if runs.len() > 1 && entry_point::read_module(&module.bytes).is_ok_and(|read| uses_subgroups(&read)) {
            let size = compilation.subgroup_size.unwrap_or(ASSUMED_SUBGROUP_SIZE);
            options.subgroup_size.get_or_insert(size);
        }
        if index < last && !compilation.ignores_contents {
            update_buffers(run, &module, &options, &mut buffers);
        }
        if number.is_none() || index == last {
            modules.push(SourceModule { given: Some(Box::new(options)), ..module });
        }
    }
    Ok(modules)
}

/// Sets the contents that a dispatch leaves.
fn update_buffers(
    run: &ScriptRun,
    module: &SourceModule,
    options: &AnalysisOptions,
    buffers: &mut ScriptBuffers,
) {
    let stop = stop_after(CONTENTS_TIME);
    let options = AnalysisOptions {
        keep_final: true,
        language: module.language,
        assertion: None,
        deadline: Some(DeadlinePredicate::new(stop_after(CONTENTS_TIME))),
        ..options.clone()
    };
    let report = entry_point::inputs::read_bound_module(&module.bytes, &options).ok().and_then(|read| {
        let options = entry_options(&read, &options).ok()?.entries.pop()?;
        let model = Model::shipped("vulkan")?.ok()?;
        decide(&read, &options, &model, Budget::until(&stop))
            .ok()
            .filter(|report| !report.final_buffers.is_empty())
    });
    run.update_buffers(buffers, |(set, binding)| {
        let Some(report) = &report else { return Some(Err("`race` has no answer for a dispatch before")) };
        if report.order_dependent_element.is_some() {
            return Some(Err(
                "a dispatch before leaves contents that depend on the order of its invocations",
            ));
        }
        let found = report.final_buffers.iter().find(|buffer| buffer.at == (set, binding, 0))?;
        let undefined = "a dispatch before leaves values that are not defined";
        Some(found.first_unknown_byte.map_or(Ok(found.bytes.clone()), |_| Err(undefined)))
    });
}

/// Reads the shader of a dispatch, and compiles it if it is source code.
fn load_run(file: &str, run: &ScriptRun, compilation: &Compilation) -> Result<SourceModule, SourceError> {
    let ScriptRun { shader: ShaderText { format, text }, options, dxc_flags, .. } = run;
    let to_error = |error: ScriptError| SourceError::Script { file: file.to_owned(), error };
    if matches!(format, ShaderFormat::Glsl | ShaderFormat::Hlsl)
        && let Some(FileDirective { line, word }) = find_file_directive(text)
    {
        let problem = ScriptProblem::Unsupported(format!("#{word}"));
        return Err(to_error(ScriptError { line, column: 1, problem }));
    }
    let module = match format {
        ShaderFormat::SpirvAssembly => SourceModule::from_spirv(text.clone().into_bytes()),
        ShaderFormat::SpirvWords => {
            let line = text.len() as u32 - text.trim_start_matches('\n').len() as u32 + 1;
            let problem = ScriptProblem::Value("the shader".to_owned(), "hexadecimal words");
            let words = decode_words(text).ok_or(ScriptError { line, column: 1, problem });
            SourceModule::from_spirv(words.map_err(to_error)?)
        }
        ShaderFormat::Glsl => compile_text(file, ShaderLanguage::Glsl, text, compilation)?,
        ShaderFormat::Hlsl => {
            let entry = compilation.entry.clone().or(options.entry.clone());
            let dxc_flags = dxc_flags.clone();
            let compilation = Compilation { entry, dxc_flags, ..compilation.clone() };
            compile_text(file, ShaderLanguage::Hlsl, text, &compilation)?
        }
    };
    // A module that cannot be read is refused by its analysis.
    if let Ok(read) = entry_point::read_module(&module.bytes) {
        run.check_descriptors(&read).map_err(to_error)?;
    }
    Ok(module)
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
