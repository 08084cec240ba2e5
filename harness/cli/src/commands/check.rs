//! `check`: the outcomes that a model allows, test by test.

mod executions;
mod page;

use campaign::check::CheckModels;
use campaign::inputs;
use campaign::parallel::process_in_order;
use campaign::shader::source::{is_shader, member_names};
use campaign::source::TestSource;
use results::wire::{CheckLine, FindingRecord};
use results::write::new_check_writer;
use vk_litmus::{CheckAnswer, CheckStatus, Checker, Error, ShaderModule, program};

use super::race::summary::{CauseTable, FileBar};
use crate::arguments::{Check, CheckFormat};
use crate::exit::{Failure, Outcome};
use crate::output::{StandardOutput, output_failure, print_message, report_rejected};

/// Runs the command.
///
/// # Errors
/// Returns the error that ended it early; a mistake in a single test is printed, and the command continues.
pub fn check(arguments: &Check, quiet: bool) -> Result<Outcome, Failure> {
    if let Some(max_executions) = arguments.instead.executions {
        return executions::print_executions(arguments, max_executions as usize);
    }
    let checker = |models: CheckModels| -> Checker {
        let progress = arguments.progress.map(|model| (model, arguments.fairness));
        program::new_checker(models, arguments.timeout, arguments.unroll, progress)
    };
    let CheckFormat::Answers(format) = arguments.format else {
        let shaders =
            !arguments.tests.is_empty() && arguments.tests.iter().all(|argument| is_shader(argument));
        if arguments.format == CheckFormat::Html && shaders && arguments.suite.is_none() {
            return page::print_page(arguments, &checker(CheckModels::load(arguments.model.as_deref())?));
        }
        return Err(Failure::input_message(
            "this format needs --executions N; without it, html is for shaders only",
        ));
    };
    let mut writer = new_check_writer(format, StandardOutput::new()).map_err(Failure::input_error)?;
    let (kernels, tests): (Vec<String>, Vec<String>) =
        arguments.tests.iter().cloned().partition(|argument| is_shader(argument));
    let mut sources = inputs::collect(&tests, arguments.suite.as_deref(), None, || {
        Ok(if kernels.is_empty() { inputs::embedded_tests() } else { Vec::new() })
    })?;
    if kernels.is_empty() && (!arguments.kernel.is_empty() || arguments.strict_compiler) {
        return Err(Failure::input_message(
            "inputs of shaders (`--grid`, `--buffer` and others) and `--strict-compiler` need a shader file",
        ));
    }
    let checker = checker(CheckModels::load(arguments.model.as_deref())?);
    // Embedded tests that were not named are skipped if the model does not apply to them.
    if let Some(named) = program::named_model(&checker).filter(|_| arguments.tests.is_empty()) {
        sources.retain(|source| source.is_judged_by(&named.model));
    }
    let mut outcome = Outcome::Success;
    let (mut answered, mut rejected) = (0_usize, 0_usize);
    let mut write_answer = |answered_or_not: Result<CheckAnswer, Error>| match answered_or_not {
        Ok(CheckAnswer { line, notes, status, .. }) => {
            answered += 1;
            let answer_outcome = answer_outcome(&line, status, arguments);
            outcome.escalate_to(answer_outcome);
            notes
                .iter()
                .filter(|_| !quiet || answer_outcome != Outcome::Success)
                .for_each(|note| print_message(note));
            writer.write_prediction(&line).map_err(output_failure)
        }
        Err(error) => {
            rejected += 1;
            let written = writer.write_rejected(error.record()).map_err(output_failure);
            report_rejected(&mut outcome, &program::into_failure(error));
            written
        }
    };
    let check = |source: &TestSource| program::check_source(&checker, source.clone());
    process_in_order(&sources, check, &mut write_answer)?;
    if !kernels.is_empty() {
        let inputs = arguments.kernel.shader_inputs(arguments.unroll)?;
        let compilation = arguments.kernel.compilation()?;
        let files: Vec<String> = kernels.iter().flat_map(|file| member_names(file, &compilation)).collect();
        let compilation = program::compile_options(compilation);
        let is_many = files.len() > kernels.len() && !quiet;
        let (bar, mut causes) = (FileBar::new(files.len(), is_many), CauseTable::default());
        let check_file = |file: &String| {
            let shaders = ShaderModule::load(file, &compilation).into_iter();
            let answers = shaders.flat_map(|shader| match shader {
                Ok(shader) => checker.check_shader(&shader, &inputs),
                Err(error) => vec![Err(error)],
            });
            let answers: Vec<Result<CheckAnswer, Error>> = answers.collect();
            bar.advance(file);
            answers
        };
        process_in_order(&files, check_file, |answers| {
            answers.into_iter().try_for_each(|answer| {
                match &answer {
                    Ok(answer) => causes.add_all(answer.line.findings.as_deref().unwrap_or_default()),
                    Err(error) => {
                        causes.add(&format!("refused: {}", error.cause().unwrap_or("not supported")))
                    }
                }
                bar.suspend(|| write_answer(answer))
            })
        })?;
        bar.finish();
        if is_many {
            print_message(&causes.to_text(&format!("{} shaders", files.len())));
        }
    }
    writer.finish().map_err(output_failure)?;
    if rejected > 0 {
        print_message(&format!("{answered} tests answered, {rejected} rejected"));
    }
    Ok(outcome)
}

/// Returns the effect of an answer on the exit code.
fn answer_outcome(line: &CheckLine, status: CheckStatus, arguments: &Check) -> Outcome {
    let mut outcome = program::outcome_of_status(status);
    if arguments.strict_compiler && line.findings.iter().flatten().any(FindingRecord::is_of_compiler) {
        outcome.escalate_to(Outcome::RuleBroken);
    }
    outcome
}
