//! Judging of counts that another program collected.

use litmus::{Observation, Test};
use model::{Budget, Model, PredictError, predict_with_growing_bound};
use results::rejudge::outcome_from_state;
use results::state::{self, State};
use results::wire::{RunContext, RunLine};
use results::{Ending, Evidence, judge};

/// A test with the counts of a device.
#[derive(Clone, Copy, Debug)]
pub struct JudgeRequest<'a> {
    pub test: &'a Test,
    pub id: &'a str,
    /// The model that judges the outcomes.
    pub model: &'a Model,
    /// The limit of the prediction.
    pub budget: Budget<'a>,
    /// The name of the device.
    pub device: &'a str,
    /// Final values by name, each with its number of instances.
    pub counts: &'a [(State, u64)],
    pub dispatches: u64,
    /// The number of instances that left results unwritten; they are not among the counts.
    pub not_executed: u64,
}

/// The reason why counts cannot be judged.
#[derive(Debug, thiserror::Error)]
pub enum JudgeError {
    /// A state has no value for an observable of the test.
    #[error("the state `{}` does not give {expected}", state::format_state(state))]
    MissingValue { state: State, expected: String },
    /// The model has no prediction.
    #[error(transparent)]
    Predict(#[from] PredictError),
}

/// Judges the counts of a device. The run is assumed to be complete.
///
/// # Errors
/// If a state lacks a value, or the model has no prediction for the test.
pub fn judge_test(request: &JudgeRequest<'_>) -> Result<RunLine, JudgeError> {
    let JudgeRequest { test, model, budget, .. } = *request;
    let prediction = predict_with_growing_bound(test, model, &model::PredictOptions { budget, unroll: 1 })?;
    let observables = &prediction.observables;
    let mut observation = Observation {
        dispatches: request.dispatches,
        not_executed: request.not_executed,
        // The counts do not show in which dispatches these instances were, so all are discarded.
        discarded_dispatches: if request.not_executed > 0 { request.dispatches } else { 0 },
        ..Observation::default()
    };
    for (state, count) in request.counts {
        let outcome =
            outcome_from_state(state, test, observables).ok_or_else(|| JudgeError::MissingValue {
                state: state.clone(),
                expected: observables
                    .iter()
                    .map(|observable| format!("`{}`", test.observable_name(*observable)))
                    .collect::<Vec<_>>()
                    .join(", "),
            })?;
        observation.histogram.add_count(outcome, *count);
    }
    let evidence = Evidence::new(test, &prediction, &observation, &Ending::Finished);
    let context = RunContext {
        id: request.id.to_owned(),
        device: request.device.to_owned(),
        model: prediction.model.clone(),
        ..RunContext::default()
    };
    Ok(judge(&evidence, context))
}
