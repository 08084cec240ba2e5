//! A run on the simulated GPU, judged and published as `run` does.
//!
//! The run executes on the calling thread, ends after a number of instances and reads no clock. Its result is
//! deterministic.

use std::ops::ControlFlow;

use litmus::{Dialect, Prediction, Test};
use model::{Budget, Model, PredictError, PredictOptions, predict};
use plan::{Device, DeviceError, Identity};
use results::wire::{DriverRecord, LineVerdict, RunContext, RunLine};
use results::{Ending, Evidence, judge};
use runner::{Cause, RunError, RunMetadata, RunSettings, RunVariant, Stress};
use sim::{Fault, SimDevice};

/// A test, and the settings of its run.
#[derive(Clone, Copy, Debug)]
pub struct SimulationRequest<'a> {
    pub test: &'a Test,
    pub id: &'a str,
    /// The text that the test was parsed from, which seeds its run.
    pub text: &'a str,
    /// The file in the command that repeats the run.
    pub file: &'a str,
    /// The model that judges the outcomes.
    pub model: &'a Model,
    /// The limit of the prediction.
    pub budget: Budget<'a>,
    /// The injected fault of the machine by name [default: none].
    pub fault: Option<&'a str>,
    pub instances: u64,
    /// The seed of all random choices.
    pub seed: u64,
}

/// The reason why a test was not run on the simulated GPU.
#[derive(Debug, thiserror::Error)]
pub enum SimulationError {
    #[error(
        "the simulated GPU runs tests of the Vulkan dialect without `filter` and undefined values; \
         use `vk-litmus run --device sim` for this test"
    )]
    Unsupported,
    /// No fault has this name.
    #[error(transparent)]
    UnknownFault(#[from] sim::UnknownFault),
    /// The model has no prediction.
    #[error(transparent)]
    Predict(#[from] PredictError),
    /// The test has no program, or the machine does not support the stress.
    #[error("{0}")]
    Program(String),
}

/// Runs a test on the simulated GPU and judges its outcomes.
///
/// # Errors
/// If the fault is unknown, the model has no prediction, or the simulated GPU does not support the test.
pub fn simulate_test(request: &SimulationRequest<'_>) -> Result<RunLine, SimulationError> {
    let SimulationRequest { test, model, instances, seed, .. } = *request;
    if test.dialect != Dialect::Vulkan || test.filter.is_some() || test.has_undefined_locations() {
        return Err(SimulationError::Unsupported);
    }
    let fault = request.fault.map_or(Ok(Fault::None), str::parse)?;
    let prediction =
        predict(test, model, &PredictOptions { budget: request.budget, ..PredictOptions::default() })?;
    let device = SimDevice::new(fault);
    let (identity, capabilities) = (device.identity(), device.capabilities());
    let program_error = |error: &dyn std::error::Error| SimulationError::Program(error.to_string());
    let stress = Stress::for_device(identity, capabilities).map_err(|error| program_error(&error))?;
    let program = litmus::convert::to_device_program(test).map_err(|error| program_error(&error))?;
    let fault_flag = fault.row().map_or(String::new(), |row| format!(" --fault {}", row.name));
    let context = RunContext {
        id: request.id.to_owned(),
        device: SimDevice::NAME.to_owned(),
        model: prediction.model.clone(),
        seed,
        stress: "sim".to_owned(),
        replay: format!(
            "vk-litmus run {} --device sim --instances {instances} --seed {seed}{fault_flag}",
            request.file
        ),
        driver: Some(driver_record(identity)),
        ..RunContext::default()
    };
    let line = match runner::compile_for_device(&program, RunVariant::default(), &stress, capabilities) {
        Err(failure) => {
            RunLine::of_test(test, context).with_verdict(LineVerdict::skipped(&failure.to_string()))
        }
        Ok(runnable) => {
            let test_seed = runner::test_seed(seed, &runner::text_hash(request.text));
            let settings = RunSettings {
                plausible_words: plausible_values(&prediction),
                ..RunSettings::new(stress.clone(), runner::RunBudget::instances(instances), test_seed)
            };
            let mut on_progress = |_: &dyn Fn() -> runner::PartialRun| ControlFlow::Continue(());
            let (way, mut known) = (runnable.mechanisms(), RunMetadata::default());
            let result = runner::run_mechanisms(
                &device,
                &runnable.program,
                &way,
                &program,
                &settings,
                &mut known,
                &mut on_progress,
            );
            let (observation, ending) = match result {
                Ok(observation) => (observation, Ending::Finished),
                Err(RunError { cause, observation: seen }) => (*seen, run_ending(&cause)),
            };
            judge(&Evidence::new(&program, &prediction, &observation, &ending), context)
        }
    };
    // Seconds are omitted, so that the result is deterministic.
    Ok(RunLine { seconds: 0.0, ..line })
}

/// Returns the record of a device's driver.
pub fn driver_record(identity: &Identity) -> DriverRecord {
    DriverRecord {
        name: identity.driver_name.clone(),
        info: identity.driver_info.clone(),
        id: identity.driver_id,
        version: identity.driver_version,
    }
}

/// Returns how a failed run ended.
pub fn run_ending(cause: &Cause) -> Ending {
    let why = cause.to_string();
    match cause {
        Cause::Device(DeviceError::DeviceLost(_)) => Ending::DeviceLost(why),
        Cause::TimedOut { .. } | Cause::Device(DeviceError::StepBudget) => Ending::TimedOut(why),
        Cause::Disagreement { .. } => Ending::CountsDisagree(why),
        _ => Ending::Crashed(why),
    }
}

/// Returns the values that the prediction allows an instance to read.
fn plausible_values(prediction: &Prediction) -> Vec<u32> {
    let outcomes = prediction.outcomes.keys();
    let mut words: Vec<u32> = outcomes.flat_map(|outcome| &outcome.0).map(|value| value.0 as u32).collect();
    words.sort_unstable();
    words.dedup();
    words
}
