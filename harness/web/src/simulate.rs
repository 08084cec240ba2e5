//! A run on the simulated GPU, judged and published as `run` does.

use answers::{SimulationRequest, simulate_test};
use results::wire::{PlaygroundAnswer, PlaygroundQuestion, RejectedLine};

use crate::question::{FILE, Question, whole};

/// The most instances of a request: a few seconds.
const MAX_INSTANCES: u64 = 1_000_000;

/// Runs a test on the simulated GPU.
pub fn simulate(
    asked: &PlaygroundQuestion,
    fault: Option<&str>,
    instances: u64,
    seed: u64,
) -> Result<PlaygroundAnswer, Vec<RejectedLine>> {
    let Question { test, model, budget } = &Question::read(asked)?;
    if instances == 0 || instances > MAX_INSTANCES {
        return Err(whole(format!("{instances} instances: give 1 to {MAX_INSTANCES}")));
    }
    let request = SimulationRequest {
        test,
        id: &test.name,
        text: &asked.text,
        file: FILE,
        model,
        budget: *budget,
        fault,
        instances,
        seed,
    };
    let line = simulate_test(&request).map_err(|error| whole(error.to_string()))?;
    Ok(PlaygroundAnswer::Simulate { line: Box::new(line) })
}
