//! Conversions between the command line and the library. The public interface excludes them.

use std::time::Duration;

use analysis::{InputMode, refused_line};
use campaign::check::{self, CheckModels, CheckOptions};
use campaign::models::LoadedModel;
use campaign::shader::source::Compilation;
use campaign::source::TestSource;
use campaign::{CommandOutcome, Failure};
use entry_point::AnalysisOptions;
use model::progress::{Fairness, ProgressModel};
use results::wire::{RaceLine, RaceVerdict};

use super::check::{CheckAnswer, CheckStatus, Checker, to_answer};
use super::error::Error;
use super::inputs::ShaderInputs;
use super::race::RaceAnswer;
use super::shader::CompileOptions;

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

/// Returns the effect of an answer on the exit code.
pub fn outcome_of_status(status: CheckStatus) -> CommandOutcome {
    status.to_outcome()
}

/// Returns the failure with its diagnostics.
pub fn into_failure(error: Error) -> Failure {
    error.into_failure()
}
