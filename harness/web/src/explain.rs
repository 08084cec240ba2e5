//! The explanation of an outcome, as `explain` prints it.

use explanation::Explained;
use model::{ExplainOptions, explain_outcome};
use results::wire::{PlaygroundAnswer, PlaygroundExplanation, PlaygroundQuestion, RejectedLine};

use crate::question::{FILE, Question, mistakes, refused};

/// Explains an outcome, or the test's own question without one.
pub fn explain(
    asked: &PlaygroundQuestion,
    outcome: Option<&str>,
) -> Result<PlaygroundAnswer, Vec<RejectedLine>> {
    let Question { test, model, budget } = Question::read(asked)?;
    let condition = outcome
        .map(|text| litmus::parse_condition(text, "outcome", &test))
        .transpose()
        .map_err(|errors| mistakes(&errors))?;
    let options = ExplainOptions {
        outcome: condition,
        verdict: budget,
        budget,
        forbid: true,
        ..ExplainOptions::default()
    };
    let explanation = explain_outcome(&test, &model, &options).map_err(refused)?;
    let explained = Explained { test: &test, source: &asked.text, file: FILE, explanation: &explanation };
    Ok(PlaygroundAnswer::Explain(PlaygroundExplanation {
        headline: explanation::headline(explained),
        text: explanation::text(explained),
        picture: explanation::svg(explained),
    }))
}
