//! The explanation of an outcome, as `explain` prints it, and the executions with the outcome.

use explanation::{Explained, ShownExecution, ShownExecutions};
use litmus::Condition;
use model::{Budget, ExplainOptions, explain_outcome, list_witness_executions};
use results::wire::{
    PlaygroundAnswer, PlaygroundExecution, PlaygroundExplanation, PlaygroundQuestion, RejectedLine,
};

use crate::question::{FILE, Question, mistakes, refused};

/// The most executions of an answer.
const MAX_EXECUTIONS: usize = 20;

/// Explains an outcome, or the test's own question without one.
pub fn explain(
    asked: &PlaygroundQuestion,
    outcome: Option<&str>,
) -> Result<PlaygroundAnswer, Vec<RejectedLine>> {
    let Question { test, model, budget } = Question::read(asked)?;
    let options = ExplainOptions { forbid: true, ..options(condition(outcome, &test)?, budget) };
    let explanation = explain_outcome(&test, &model, &options).map_err(refused)?;
    let explained = Explained { test: &test, source: &asked.text, file: FILE, explanation: &explanation };
    Ok(PlaygroundAnswer::Explain(PlaygroundExplanation {
        headline: explanation::headline(explained),
        text: explanation::text(explained),
        picture: explanation::svg(explained),
    }))
}

/// Lists consistent executions with an outcome, or with that of the test's own question.
pub fn list_executions(
    asked: &PlaygroundQuestion,
    outcome: Option<&str>,
) -> Result<PlaygroundAnswer, Vec<RejectedLine>> {
    let Question { test, model, budget } = Question::read(asked)?;
    let options = options(condition(outcome, &test)?, budget);
    let found = list_witness_executions(&test, &model, &options, MAX_EXECUTIONS).map_err(refused)?;
    let shown = ShownExecutions { test: &test, executions: &found }.separate();
    let execution = |ShownExecution { title, text, picture }| PlaygroundExecution { title, text, picture };
    Ok(PlaygroundAnswer::Executions {
        executions: shown.into_iter().map(execution).collect(),
        complete: found.complete,
    })
}

fn condition(outcome: Option<&str>, test: &litmus::Test) -> Result<Option<Condition>, Vec<RejectedLine>> {
    let parsed = outcome.map(|text| litmus::parse_condition(text, "outcome", test)).transpose();
    parsed.map_err(|errors| mistakes(&errors))
}

fn options(outcome: Option<Condition>, budget: Budget<'_>) -> ExplainOptions<'_> {
    ExplainOptions { outcome, verdict: budget, budget, ..ExplainOptions::default() }
}
