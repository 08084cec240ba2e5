//! `explain`: why a model allows or forbids an outcome, with machine code, and Vulkan's answer for HSA tests.

use campaign::check::kernel;
use campaign::compilers::{report_code, targets};
use campaign::inputs::load_single_test;
use campaign::kinds::litmus::planned::{mark_filtered, without_filter};
use campaign::models;
use campaign::shader::source::is_shader;
use campaign::source::LoadedTest;
use campaign::time_limit::stop_after;
use explanation::Explained;
use litmus::Dialect;
use model::{
    Budget, ExplainOptions, Explanation, ExplanationAnswer, Model, PredictOptions, explain_outcome, predict,
};
use results::portability::{self, PortabilityClass};
use results::wire::CodegenVerdict;
use results::write::codegen;
use runner::RunVariant;

use crate::arguments::{Explain, ExplainFormat};
use crate::exit::{Failure, Outcome};
use crate::output::{StandardOutput, command_line, print_message, print_text};

/// Runs the command.
///
/// # Errors
/// Returns an error if the test, model or outcome is invalid, or the explanation cannot be printed.
pub fn explain(arguments: &Explain, quiet: bool) -> Result<Outcome, Failure> {
    if is_shader(&arguments.test) {
        return explain_shader(arguments);
    }
    if !arguments.kernel.is_empty() {
        return Err(Failure::input_message(
            "inputs of shaders (`--grid`, `--buffer` and others) need a shader file",
        ));
    }
    let loaded = load_single_test(&arguments.test)?;
    let test = &loaded.test;
    let file = &loaded.source.file;
    let chosen = match &arguments.model {
        Some(model) => models::load(model)?,
        None => models::load(Model::default_for_test(test))?,
    };
    if !chosen.model.supports_dialect(test.dialect) {
        return Err(Failure::input_message(format!(
            "{file}: the model does not support this dialect; choose another with `--model`"
        )));
    }
    let condition = match &arguments.outcome {
        // Outcomes are printed without the operators between their values.
        Some(text) => {
            let printed = text.split_whitespace().collect::<Vec<_>>().join(" /\\ ");
            let condition = litmus::parse_condition(text, "--outcome", test);
            let condition = condition
                .or_else(|error| litmus::parse_condition(&printed, "--outcome", test).map_err(|_| error));
            Some(condition.map_err(Failure::input)?)
        }
        None => None,
    };
    let (codes, outcome) = machine_code(arguments, &loaded)?;
    // Half of the time is for the verdict, the rest for the executions that justify it.
    let (half, stop) = (stop_after(arguments.timeout / 2), stop_after(arguments.timeout));
    let options = ExplainOptions {
        outcome: condition,
        verdict_budget: Budget::until(&half),
        search_budget: Budget::until(&stop),
        unroll: arguments.unroll,
        find_forbidding_fix: true,
        ..ExplainOptions::default()
    };
    let explanation = explain_outcome(test, &chosen.model, &options)
        .map_err(|error| Failure::input_message(format!("{file}: {error}")))?;
    if explanation.answer == ExplanationAnswer::Unknown && !quiet {
        print_message(&format!(
            "{file}: warning: no answer under {} within the time limit",
            explanation.model
        ));
    }
    if arguments.fix {
        return print_fixed(&loaded, &explanation);
    }
    let explained = Explained { test, source: &loaded.text, file, explanation: &explanation };
    let machine_code = codes.iter().map(|(_, text)| text.as_str()).collect::<String>();
    let written = match arguments.format {
        ExplainFormat::Text => {
            explanation::text(explained) + &describe_vulkan_answer(arguments, &loaded)? + &machine_code
        }
        ExplainFormat::Dot => explanation::dot(explained),
        ExplainFormat::Svg => explanation::svg(explained),
        ExplainFormat::Html => explanation::html(explained, &codes),
    };
    StandardOutput::new().print(&written)?;
    Ok(outcome)
}

/// Prints the test with a fix applied.
fn print_fixed(loaded: &LoadedTest, explanation: &Explanation) -> Result<Outcome, Failure> {
    let Some(fixed) = explanation::apply_fix(&loaded.text, explanation) else {
        print_message(&format!(
            "{}: no fix was found; `explain` without `--fix` gives the reason",
            loaded.source.file
        ));
        return Ok(Outcome::Environment);
    };
    // The fix is written in the native syntax.
    if litmus::parse(&fixed, &loaded.source.file).is_err() {
        return Err(Failure::not_available("`--fix` for tests in another syntax"));
    }
    print_text(&fixed)
}

fn explain_shader(arguments: &Explain) -> Result<Outcome, Failure> {
    let has_unsupported_flag = arguments.outcome.is_some() || !arguments.device.is_empty() || arguments.fix;
    if arguments.format == ExplainFormat::Dot || has_unsupported_flag {
        return Err(Failure::not_available(
            "`explain SHADER` with `--format dot`, `--outcome`, `--device` or `--fix`",
        ));
    }
    let options = arguments.kernel.to_options(arguments.unroll)?;
    let chosen =
        models::load(arguments.model.as_deref().unwrap_or(Model::default_for_dialect(Dialect::Vulkan)))?;
    let explanation = kernel::explain::explain_shader(
        &arguments.test,
        &arguments.kernel.compilation()?,
        &options,
        &chosen.model,
        arguments.timeout,
        arguments.kernel.input_mode(),
    )?;
    StandardOutput::new().print(&match arguments.format {
        ExplainFormat::Text | ExplainFormat::Dot => explanation.text,
        ExplainFormat::Svg => explanation::shaders_svg(&explanation.answers),
        ExplainFormat::Html => explanation::shaders(&explanation.answers, &command_line()),
    })?;
    Ok(explanation.outcome)
}

/// Describes Vulkan's answer for the lowered program of an HSA test; empty for other tests.
fn describe_vulkan_answer(arguments: &Explain, loaded: &LoadedTest) -> Result<String, Failure> {
    let test = &loaded.test;
    if test.dialect != Dialect::Hsa {
        return Ok(String::new());
    }
    let lowered = match litmus::lower_to_vulkan(test) {
        Ok(lowered) => lowered,
        Err(error) => {
            let line = error.span().line;
            return Ok(format!("\nNo Vulkan device can run this test: {error}, line {line}.\n"));
        }
    };
    let vulkan = models::load(Model::default_for_dialect(Dialect::Vulkan))?;
    let hsa = models::load(Model::default_for_dialect(Dialect::Hsa))?;
    let stop = stop_after(arguments.timeout);
    let options = PredictOptions { budget: Budget::until(&stop), ..PredictOptions::default() };
    let to_failure = |error| Failure::input_message(format!("{}: {error}", loaded.source.file));
    let hsa = predict(test, &hsa.model, &options).map_err(to_failure)?;
    let mut vulkan_prediction =
        predict(&without_filter(&lowered.test), &vulkan.model, &options).map_err(to_failure)?;
    mark_filtered(&lowered.test, &mut vulkan_prediction);
    let (class, meaning) = match portability::compare_predictions(test, &lowered, hsa, &vulkan_prediction)
        .class
    {
        None => return Ok("\nThe answer for Vulkan timed out (raise --timeout).\n".to_owned()),
        Some(class) => (
            class.name(),
            match class {
                PortabilityClass::Portable => "Vulkan gives the same answer for the program that devices run",
                PortabilityClass::ModelOnly => {
                    "HSA forbids it, and Vulkan allows it for the program that devices run"
                }
                PortabilityClass::VulkanRace => {
                    "the program that devices run races under Vulkan and is not judged"
                }
                PortabilityClass::BothRace => {
                    "the program that devices run races under Vulkan as well and is not judged"
                }
            },
        ),
    };
    let argument = campaign::kinds::quote_for_shell(&loaded.source.argument);
    Ok(format!(
        "\nOn a Vulkan device ({class}): {meaning}.\nvk-litmus convert {argument} --to litmus shows that program.\n"
    ))
}

/// Returns the machine code of the test by device, and the outcome of compiling it.
fn machine_code(
    arguments: &Explain,
    loaded: &LoadedTest,
) -> Result<(Vec<(String, String)>, Outcome), Failure> {
    let mut outcome = Outcome::Success;
    let mut codes = Vec::new();
    if arguments.device.is_empty() {
        return Ok((codes, outcome));
    }
    if !matches!(arguments.format, ExplainFormat::Text | ExplainFormat::Html) {
        return Err(Failure::input_message("`--device` needs `--format text` or `html`"));
    }
    let source = &loaded.source;
    let variant: RunVariant = source.variant.parse().map_err(Failure::input_error)?;
    let test = loaded.to_device_test()?;
    for target in targets::select_targets(&arguments.device, arguments.mesa.as_deref())? {
        let line = report_code::compile_threads(
            &source.argument,
            &source.id,
            &test,
            variant,
            &target,
            report_code::COMPILER_TIMEOUT,
        )?;
        if line.verdict == CodegenVerdict::Crashes {
            outcome.escalate_to(Outcome::RuleBroken);
        }
        codes.push((format!("{} ({})", line.device, line.driver), codegen::format_threads(&line)));
    }
    Ok((codes, outcome))
}
