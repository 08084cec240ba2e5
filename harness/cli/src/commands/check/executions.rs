//! `check --executions`: the consistent executions of tests, which the library does not return.

use campaign::check::CheckModels;
use campaign::inputs;
use campaign::shader::source::is_shader;
use campaign::time_limit::stop_after;
use explanation::ExecutionReport;
use model::{Budget, ExplainOptions, list_consistent_executions};
use results::write::OutputFormat;

use crate::arguments::{Check, CheckFormat};
use crate::exit::{Failure, Outcome};
use crate::output::{StandardOutput, print_diagnostic, print_message};

/// Prints up to `max_executions` executions of each test.
///
/// # Errors
/// Returns an error if the command line is invalid or the output cannot be written.
pub fn print_executions(arguments: &Check, most: usize) -> Result<Outcome, Failure> {
    if arguments.tests.iter().any(|argument| is_shader(argument)) || !arguments.kernel.is_empty() {
        return Err(Failure::not_available("executions of shaders"));
    }
    if !matches!(
        arguments.format,
        CheckFormat::Answers(OutputFormat::Text) | CheckFormat::Dot | CheckFormat::Svg | CheckFormat::Html
    ) {
        return Err(Failure::input_message("`--executions` needs `--format text`, `dot`, `svg` or `html`"));
    }
    let sources =
        inputs::collect(&arguments.tests, arguments.suite.as_deref(), None, || Ok(inputs::embedded_tests()))?;
    if sources.len() != 1 && matches!(arguments.format, CheckFormat::Svg | CheckFormat::Html) {
        return Err(Failure::input_message(format!(
            "`--format svg` and `html` take one test, not {}; use text or dot",
            sources.len()
        )));
    }
    let models = CheckModels::load(arguments.model.as_deref())?;
    let mut out = StandardOutput::new();
    let mut outcome = Outcome::Success;
    let mut reject = |failure: Failure| {
        outcome.escalate_to(Outcome::from(&failure));
        print_diagnostic(failure.report());
    };
    let mut unfinished = 0_usize;
    for (index, source) in sources.into_iter().enumerate() {
        let file = source.file.clone();
        let loaded = match source.load() {
            Ok(loaded) => loaded,
            Err(rejected) => {
                reject(rejected.failure);
                continue;
            }
        };
        let stop = stop_after(arguments.timeout);
        let options = ExplainOptions {
            unroll: arguments.unroll,
            max_candidates: u64::MAX,
            search_budget: Budget::until(&stop),
            ..ExplainOptions::default()
        };
        let listed = models.model_for_test(&loaded).and_then(|chosen| {
            list_consistent_executions(&loaded.test, &chosen.model, &options, most)
                .map_err(|error| Failure::input_message(format!("{file}: {error}")))
        });
        let found = match listed {
            Ok(found) => found,
            Err(failure) => {
                reject(failure);
                continue;
            }
        };
        if let Some(bound) = found.loop_bound {
            print_message(&format!(
                "{file}: warning: loops were cut off after {bound} iterations (raise --unroll)"
            ));
        }
        if !found.complete && found.executions.len() < most {
            unfinished += 1;
            print_message(&format!(
                "{file}: warning: the time limit was reached before all executions were found (raise --timeout)"
            ));
        }
        let shown = ExecutionReport { test: &loaded.test, executions: &found };
        let written = match arguments.format {
            CheckFormat::Dot => shown.to_dot(),
            CheckFormat::Svg => shown.to_svg(),
            CheckFormat::Html => shown.to_html(&loaded.text),
            CheckFormat::Answers(_) if index > 0 => format!("\n{}", shown.to_text()),
            CheckFormat::Answers(_) => shown.to_text(),
        };
        out.print(&written)?;
    }
    if unfinished > 0 {
        outcome.escalate_to(Outcome::Environment);
    }
    Ok(outcome)
}
