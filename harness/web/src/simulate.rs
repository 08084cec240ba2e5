//! A run on the simulated GPU, judged and published as `run` does.

use results::wire::{PlaygroundAnswer, PlaygroundQuestion, RejectedLine};
use verdicts::{SimulationRequest, simulate_test};

use crate::question::{FILE, ParsedQuestion, mistake_without_position};

/// The most instances of a request: a few seconds.
const MAX_INSTANCES: u64 = 1_000_000;

/// Runs a test on the simulated GPU.
pub fn simulate(
    question: &PlaygroundQuestion,
    fault: Option<&str>,
    instances: u64,
    seed: u64,
) -> Result<PlaygroundAnswer, Vec<RejectedLine>> {
    let ParsedQuestion { test, model, budget } = &ParsedQuestion::parse(question)?;
    if instances == 0 || instances > MAX_INSTANCES {
        return Err(mistake_without_position(format!("{instances} instances: give 1 to {MAX_INSTANCES}")));
    }
    let request = SimulationRequest {
        test,
        id: &test.name,
        text: &question.text,
        file: FILE,
        model,
        budget: *budget,
        fault,
        instances,
        seed,
    };
    let line = simulate_test(&request).map_err(|error| mistake_without_position(error.to_string()))?;
    Ok(PlaygroundAnswer::Simulate { line: Box::new(line) })
}
