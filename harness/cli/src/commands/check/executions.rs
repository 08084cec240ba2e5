//! `check --executions`: the consistent executions of tests, which the library does not return.

use campaign::check::CheckModels;
use campaign::inputs;
use campaign::patience::patience;
use campaign::shader::source::is_shader;
use explanation::ShownExecutions;
use model::{Budget, ExplainOptions, list_consistent_executions};
use results::write::Format;

use crate::arguments::{Check, CheckFormat};
use crate::exit::{Failure, Outcome};
use crate::output::{Data, complain, say};

/// Prints up to `most` executions of each test.
///
/// # Errors
/// Returns an error if the command line is invalid or the output cannot be written.
pub fn show(arguments: &Check, most: usize) -> Result<Outcome, Failure> {
    if arguments.tests.iter().any(|argument| is_shader(argument)) || !arguments.kernel.is_empty() {
        return Err(Failure::not_available("executions of shaders"));
    }
    if !matches!(
        arguments.format,
        CheckFormat::Answers(Format::Text) | CheckFormat::Dot | CheckFormat::Svg | CheckFormat::Html
    ) {
        return Err(Failure::input_message("`--executions` needs `--format text`, `dot`, `svg` or `html`"));
    }
    let sources =
        inputs::collect(&arguments.tests, arguments.suite.as_deref(), None, || Ok(inputs::all_embedded()))?;
    if sources.len() != 1 && matches!(arguments.format, CheckFormat::Svg | CheckFormat::Html) {
        return Err(Failure::input_message(format!(
            "`--format svg` and `html` take one test, not {}; use text or dot",
            sources.len()
        )));
    }
    let models = CheckModels::load(arguments.model.as_deref())?;
    let mut out = Data::new();
    let mut outcome = Outcome::Success;
    let mut reject = |failure: Failure| {
        outcome.note(Outcome::from(&failure));
        complain(failure.report());
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
        let stop = patience(arguments.timeout);
        let options = ExplainOptions {
            unroll: arguments.unroll,
            candidates: u64::MAX,
            budget: Budget::until(&stop),
            ..ExplainOptions::default()
        };
        let asked = models.of(&loaded).and_then(|chosen| {
            list_consistent_executions(&loaded.test, &chosen.model, &options, most)
                .map_err(|error| Failure::input_message(format!("{file}: {error}")))
        });
        let found = match asked {
            Ok(found) => found,
            Err(failure) => {
                reject(failure);
                continue;
            }
        };
        if let Some(bound) = found.loop_bound {
            say(&format!("{file}: warning: loops were cut off after {bound} iterations (raise --unroll)"));
        }
        if !found.complete && found.found.len() < most {
            unfinished += 1;
            say(&format!(
                "{file}: warning: the time limit was reached before all executions were found (raise --timeout)"
            ));
        }
        let shown = ShownExecutions { test: &loaded.test, executions: &found };
        let written = match arguments.format {
            CheckFormat::Dot => shown.dot(),
            CheckFormat::Svg => shown.svg(),
            CheckFormat::Html => shown.html(&loaded.text),
            CheckFormat::Answers(_) if index > 0 => format!("\n{}", shown.text()),
            CheckFormat::Answers(_) => shown.text(),
        };
        out.print(&written)?;
    }
    if unfinished > 0 {
        outcome.note(Outcome::Environment);
    }
    Ok(outcome)
}
