//! Conversions between the command line and the library. The public interface excludes them.

use std::time::Duration;

use analysis::dispatch::plan_dispatch;
use analysis::{InputMode, entry_options, placed_refusal_text, refused_line};
use campaign::check::{self, CheckModels, CheckOptions};
use campaign::models::LoadedModel;
use campaign::shader::device_contents::ContentsDevice;
use campaign::shader::source::Compilation;
use campaign::source::TestSource;
use campaign::{CommandOutcome, Failure};
use entry_point::AnalysisOptions;
use entry_point::inputs::read_bound_module;
use model::progress::{Fairness, ProgressModel};
use results::wire::{BufferContents, RaceLine, RaceVerdict};

use super::check::{CheckAnswer, CheckStatus, Checker, to_answer};
use super::error::Error;
use super::inputs::ShaderInputs;
use super::race::RaceAnswer;
use super::shader::{CompileOptions, ShaderModule};

/// Creates a checker with the settings of the command line.
pub fn new_checker(
    models: CheckModels,
    timeout: Duration,
    unroll: Option<u32>,
    progress: Option<(ProgressModel, Fairness)>,
) -> Checker {
    Checker { models, options: CheckOptions { inputs: InputMode::Auto, timeout, unroll, progress } }
}

/// Returns the model that the command line names, if any.
pub fn named_model(checker: &Checker) -> Option<&LoadedModel> {
    checker.models.requested.as_ref()
}

/// Parses and checks a test within one time limit.
///
/// # Errors
/// If the source has no valid test, or the model does not support it.
pub fn check_source(checker: &Checker, source: TestSource) -> Result<CheckAnswer, Error> {
    to_answer(check::check_source(source, &checker.models, checker.options))
}

/// Wraps the options of a command line.
pub fn shader_inputs(options: AnalysisOptions, mode: InputMode) -> ShaderInputs {
    ShaderInputs { options, mode }
}

/// Wraps the settings for compilers.
pub fn compile_options(compilation: Compilation) -> CompileOptions {
    CompileOptions { compilation }
}

/// Returns the answer about a file that the time did not suffice for.
pub fn unanswered(file: &str) -> RaceAnswer {
    let why = "the time of `--total-time` was over".to_owned();
    let line = refused_line(file, "", &AnalysisOptions::default(), why);
    RaceAnswer { line: RaceLine { verdict: RaceVerdict::Undecided, ..line }, tests: Vec::new() }
}

/// Sets the subgroup size of inputs to that of a device if a shader depends on it.
///
/// # Errors
/// If the shader is malformed, or the inputs have another size.
pub fn fit_to_device(
    inputs: &ShaderInputs,
    shader: &ShaderModule,
    device: &ContentsDevice,
) -> Result<ShaderInputs, Error> {
    let mut fitted = inputs.clone();
    let module = shader.read()?;
    device
        .fit_subgroup_size(&module, &mut fitted.options)
        .map_err(|failure| Error::for_file(&shader.file, failure))?;
    Ok(fitted)
}

/// Adds the contents that a device leaves to those of an answer.
///
/// # Errors
/// If the answer chose inputs, or the device does not complete the dispatch.
pub fn add_device_contents(
    line: &mut RaceLine,
    shader: &ShaderModule,
    inputs: &ShaderInputs,
    device: &ContentsDevice,
) -> Result<(), Error> {
    let failed = |failure| Error::for_file(&shader.file, failure);
    if let Some(chosen) = line.coverage.inputs.first() {
        return Err(failed(Failure::input_message(format!(
            "{}: --device compares one dispatch, whose inputs you give; the tool chose {}: set them by `--grid`, `--push`, `--buffer` and `--spec`, or pass `--inputs zeros`",
            shader.file,
            chosen.join(", ")
        ))));
    }
    let refused = |refusal| failed(Failure::input_message(placed_refusal_text(&shader.file, &refusal)));
    let mut options = shader.source.with_given_inputs(&inputs.options);
    (options.entry, options.grid) = (Some(line.entry.clone()), Some(line.grid));
    let module = read_bound_module(&shader.source.bytes, &options).map_err(refused)?;
    let entries = entry_options(&module, &options).map_err(refused)?.entries;
    for options in &entries {
        let plan = plan_dispatch(&module, options).map_err(refused)?;
        for buffer in device.dispatch(plan).map_err(failed)? {
            let mut contents = line.contents.iter_mut();
            let same = contents.find(|known| [known.set, known.binding, known.element] == buffer.at);
            if let Some(known) = same {
                known.device = Some(BufferContents::to_hexadecimal(&buffer.bytes));
            }
        }
    }
    Ok(())
}

/// Returns the effect of an answer on the exit code.
pub fn outcome_of_status(status: CheckStatus) -> CommandOutcome {
    status.to_outcome()
}

/// Returns the failure with its diagnostics.
pub fn into_failure(error: Error) -> Failure {
    error.into_failure()
}
