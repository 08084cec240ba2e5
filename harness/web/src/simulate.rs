//! A run on the simulated GPU, judged and published as `run` does.

use std::ops::ControlFlow;

use litmus::{Dialect, Observation, Prediction};
use model::{Options, predict};
use plan::{Device, DeviceError};
use results::wire::{
    DriverRecord, Hashes, PlaygroundAnswer, PlaygroundQuestion, RejectedLine, RunContext, RunLine,
};
use results::{Ending, Evidence, Judgement, judge};
use runner::{Cause, Known, RunBudget, RunError, RunSettings, RunVariant, Stress};
use sim::{Fault, SimDevice};

use crate::question::{Question, refused, whole};

/// The most instances of a request: a few seconds.
const MAX_INSTANCES: u64 = 1_000_000;

/// Runs a test on the simulated GPU.
pub fn simulate(
    asked: &PlaygroundQuestion,
    fault: Option<&str>,
    instances: u64,
    seed: u64,
) -> Result<PlaygroundAnswer, Vec<RejectedLine>> {
    let question = Question::read(asked)?;
    let Question { test, model, budget } = &question;
    if test.dialect != Dialect::Vulkan || test.filter.is_some() || test.has_undefined() {
        let what = "the simulated GPU runs tests of the Vulkan dialect without `filter` and undefined values";
        return Err(whole(format!("{what}; use `vk-litmus run --device sim` for this test")));
    }
    if instances == 0 || instances > MAX_INSTANCES {
        return Err(whole(format!("{instances} instances: give 1 to {MAX_INSTANCES}")));
    }
    let fault = fault
        .map_or(Ok(Fault::None), str::parse)
        .map_err(|error: sim::UnknownFault| whole(error.to_string()))?;
    let options = Options { budget: *budget, ..Options::default() };
    let prediction = predict(test, model, &options).map_err(refused)?;
    let device = SimDevice::new(fault);
    let (identity, capabilities) = (device.identity(), device.capabilities());
    let stress = Stress::for_device(identity, capabilities).map_err(|error| whole(error.to_string()))?;
    let program = litmus::convert::for_device(test).map_err(|error| whole(error.to_string()))?;
    let judgement = match runner::told(&program, RunVariant::default(), &stress, capabilities) {
        Err(failure) => Judgement::skipped(failure.to_string()),
        Ok(runnable) => {
            let own_seed = runner::test_seed(seed, &runner::text_hash(&asked.text));
            let settings = RunSettings {
                plausible: plausible(&prediction),
                ..RunSettings::new(stress.clone(), RunBudget::instances(instances), own_seed)
            };
            let mut go_on = |_: &dyn Fn() -> Observation| ControlFlow::Continue(());
            let (way, mut known) = (runnable.way(), Known::default());
            let ran = runner::run_ways(
                &device,
                &runnable.program,
                &way,
                &program,
                &settings,
                &mut known,
                &mut go_on,
            );
            let (observation, ending) = match ran {
                Ok(observation) => (observation, Ending::Finished),
                Err(RunError { cause, seen }) => (*seen, ending(&cause)),
            };
            judge(&Evidence {
                test: &program,
                prediction: &prediction,
                observation: &observation,
                ending: &ending,
                twin: None,
                bound: None,
                serial_stage: false,
            })
        }
    };
    // The same request has the same answer, however long it took.
    let judgement = Judgement { seconds: 0.0, ..judgement };
    let faulty = if fault == Fault::None { String::new() } else { format!(" --fault {}", name_of(fault)) };
    let context = RunContext {
        id: test.name.clone(),
        device: SimDevice::NAME.to_owned(),
        model: prediction.model.clone(),
        seed,
        stress: "sim".to_owned(),
        replay: format!(
            "vk-litmus run {} --device sim --instances {instances} --seed {seed}{faulty}",
            crate::question::FILE
        ),
        memory: None,
        counted_by_host: None,
        hashes: Hashes::default(),
        tool: env!("CARGO_PKG_VERSION").to_owned(),
        driver: Some(DriverRecord {
            name: identity.driver_name.clone(),
            info: identity.driver_info.clone(),
            id: identity.driver_id,
            version: identity.driver_version,
        }),
        beside: None,
        mutants: Vec::new(),
    };
    let line = RunLine::new(test, &prediction.observables, &judgement, context);
    Ok(PlaygroundAnswer::Simulate { line: Box::new(line) })
}

/// Returns how a failed run ended.
fn ending(cause: &Cause) -> Ending {
    let why = cause.to_string();
    match cause {
        Cause::Device(DeviceError::DeviceLost(_)) => Ending::DeviceLost(why),
        Cause::TimedOut { .. } | Cause::Device(DeviceError::StepBudget) => Ending::TimedOut(why),
        Cause::Disagreement { .. } => Ending::CountsDisagree(why),
        _ => Ending::Crashed(why),
    }
}

fn name_of(fault: Fault) -> &'static str {
    fault.row().map_or("", |row| row.name)
}

/// Returns the values that an instance may show by the prediction.
fn plausible(prediction: &Prediction) -> Vec<u32> {
    let outcomes = prediction.outcomes.keys();
    let mut words: Vec<u32> = outcomes.flat_map(|outcome| &outcome.0).map(|value| value.0 as u32).collect();
    words.sort_unstable();
    words.dedup();
    words
}
