//! What the program of this package passes to the library and takes from it; no part of the surface.

use std::time::Duration;

use campaign::check::{CheckModels, CheckOptions};
use campaign::choice::Chosen;
use campaign::shader::source::Compilation;
use campaign::source::TestSource;
use campaign::{CommandOutcome, Failure};
use frontend::{AnalysisOptions, InputMode};
use model::progress::{Fairness, ProgressModel};

use super::check::{CheckStatus, Checker};
use super::error::Error;
use super::inputs::ShaderInputs;
use super::shader::CompileOptions;
use super::test::LitmusTest;

/// Creates a checker with the settings of a command line.
pub fn checker(
    models: CheckModels,
    timeout: Duration,
    unroll: Option<u32>,
    progress: Option<(ProgressModel, Fairness)>,
) -> Checker {
    Checker { models, asked: CheckOptions { inputs: InputMode::Auto, timeout, unroll, progress } }
}

/// Returns the model that was named on the command line, if one was.
pub fn named_model(checker: &Checker) -> Option<&Chosen> {
    checker.models.asked.as_ref()
}

/// Parses the test of a source.
///
/// # Errors
/// If the source has no valid test.
pub fn load_test(source: TestSource) -> Result<LitmusTest, Error> {
    LitmusTest::load(source)
}

/// Wraps the options that a command line gives.
pub fn shader_inputs(options: AnalysisOptions, mode: InputMode) -> ShaderInputs {
    ShaderInputs { options, mode }
}

/// Wraps the settings for compilers.
pub fn compile_options(compilation: Compilation) -> CompileOptions {
    CompileOptions { compilation }
}

/// Returns the effect of an answer on the exit code.
pub fn conclusion(status: CheckStatus) -> CommandOutcome {
    status.conclusion()
}

/// Returns the failure with its diagnostics.
pub fn failure(error: Error) -> Failure {
    error.into_failure()
}
