//! `explain`: why a model allows or forbids an outcome.

use model::{Answer, ExplainOptions, Model, explain as ask};

use crate::arguments::{Explain, ExplainFormat};
use crate::choice;
use crate::commands::convert::one;
use crate::exit::{Failure, Outcome};
use crate::explanation::{self, Explained};
use crate::output::{Data, say};

/// Runs the command.
///
/// # Errors
/// When the test, the model or the outcome is wrong, or the explanation cannot be printed.
pub fn explain(arguments: &Explain, quiet: bool) -> Result<Outcome, Failure> {
    let loaded = one(&arguments.test)?;
    let test = &loaded.test;
    let file = &loaded.source.file;
    let chosen = match &arguments.model {
        Some(model) => choice::load(model)?,
        None => choice::load(Model::default_for(test.dialect))?,
    };
    if !chosen.model.judges(test.dialect) {
        return Err(Failure::input_message(format!("{file}: the model does not speak of this dialect")));
    }
    let condition = match &arguments.outcome {
        Some(text) => Some(litmus::parse_condition(text, "--outcome", test).map_err(Failure::input)?),
        None => None,
    };
    let options = ExplainOptions {
        outcome: condition,
        timeout: Some(arguments.timeout),
        unroll: arguments.unroll.get(),
        ..ExplainOptions::default()
    };
    let explanation = ask(test, &chosen.model, &options)
        .map_err(|error| Failure::input_message(format!("{file}: {error}")))?;
    if explanation.answer == Answer::Unknown && !quiet {
        say(&format!("{file}: warning: no answer under {} in time", explanation.model));
    }
    let explained = Explained { test, source: &loaded.text, file, explanation: &explanation };
    let written = match arguments.format {
        ExplainFormat::Text => explanation::text(explained),
        ExplainFormat::Dot => explanation::dot(explained),
        ExplainFormat::Svg => explanation::svg(explained),
        ExplainFormat::Html => explanation::html(explained),
    };
    Data::new().print(&written)?;
    Ok(Outcome::Success)
}
