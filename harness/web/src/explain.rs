//! The explanation of an outcome, as `explain` prints it, and the executions with the outcome.

use explanation::{ExecutionReport, Explained};
use litmus::Condition;
use model::{Budget, ExplainOptions, explain_outcome, list_witness_executions};
use results::wire::{PlaygroundAnswer, PlaygroundExplanation, PlaygroundQuestion, RejectedLine};

use crate::question::{FILE, ParsedQuestion, model_mistake, parse_mistakes};

/// The most executions of an answer.
const MAX_EXECUTIONS: usize = 20;

/// Explains an outcome, or the test's own question without one.
pub fn explain(
    question: &PlaygroundQuestion,
    outcome: Option<&str>,
) -> Result<PlaygroundAnswer, Vec<RejectedLine>> {
    let ParsedQuestion { test, model, budget } = ParsedQuestion::parse(question)?;
    let options = ExplainOptions {
        find_forbidding_fix: true,
        ..explain_options(parse_outcome(outcome, &test)?, budget)
    };
    let explanation = explain_outcome(&test, &model, &options).map_err(model_mistake)?;
    let explained = Explained { test: &test, source: &question.text, file: FILE, explanation: &explanation };
    Ok(PlaygroundAnswer::Explain(PlaygroundExplanation {
        headline: explanation::headline(explained),
        text: explanation::text(explained),
        picture: explanation::svg(explained),
    }))
}

/// Lists consistent executions with an outcome, or with that of the test's own question.
pub fn list_executions(
    question: &PlaygroundQuestion,
    outcome: Option<&str>,
) -> Result<PlaygroundAnswer, Vec<RejectedLine>> {
    let ParsedQuestion { test, model, budget } = ParsedQuestion::parse(question)?;
    let options = explain_options(parse_outcome(outcome, &test)?, budget);
    let found = list_witness_executions(&test, &model, &options, MAX_EXECUTIONS).map_err(model_mistake)?;
    let shown = ExecutionReport { test: &test, executions: &found }.render_each();
    Ok(PlaygroundAnswer::Executions { executions: shown, complete: found.complete })
}

fn parse_outcome(outcome: Option<&str>, test: &litmus::Test) -> Result<Option<Condition>, Vec<RejectedLine>> {
    let parsed = outcome.map(|text| litmus::parse_condition(text, "outcome", test)).transpose();
    parsed.map_err(|errors| parse_mistakes(&errors))
}

fn explain_options(outcome: Option<Condition>, budget: Budget<'_>) -> ExplainOptions<'_> {
    ExplainOptions { outcome, verdict_budget: budget, search_budget: budget, ..ExplainOptions::default() }
}
