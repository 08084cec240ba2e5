//! Helpers that run tests on the simulated GPU and query the model.

use std::ops::ControlFlow;
use std::sync::LazyLock;
use std::time::Duration;

use litmus::{Observation, Prediction, Race, Test};
use model::{Model, PredictOptions, predict};
use plan::{Device, DeviceError};
use runner::{Cause, Join, RunBudget, RunError, RunMetadata, RunSettings, RunVariant, Runnable, Stress};
use shaders::{KernelConfig, Pipelines, Variant};
use sim::SimDevice;

pub static VULKAN: LazyLock<Model> = LazyLock::new(|| Model::shipped("vulkan").unwrap().unwrap());

/// Returns a number of cases: small by default, larger if the environment requests a soak.
pub fn case_count(usual: u64) -> u64 {
    match std::env::var("VK_LITMUS_SOAK_CASES").ok().and_then(|cases| cases.parse::<u64>().ok()) {
        Some(cases) => cases.max(usual),
        None => usual,
    }
}

/// Returns the number of instances of each test; a soak has more.
pub fn instance_count(usual: u64) -> u64 {
    if std::env::var_os("VK_LITMUS_SOAK").is_some() { usual * 40 } else { usual }
}

/// Returns small dispatches, so that a few instances cover many schedules.
pub fn stress(device: &SimDevice) -> Stress {
    let stress = Stress::for_device(device.identity(), device.capabilities()).unwrap();
    Stress { rounds: (8, 16), groups: (1, 4), groups_within: (1, 8), ..stress }
}

/// Runs a test; `None` if it has no kernel. All features are supported, but a kernel may be too large for the
/// device.
pub fn run(
    device: &SimDevice,
    test: &Test,
    instances: u64,
    seed: u64,
) -> Option<Result<Observation, RunError>> {
    run_variant(device, test, instances, seed, Variant::default())
}

pub fn run_variant(
    device: &SimDevice,
    test: &Test,
    instances: u64,
    seed: u64,
    variant: Variant,
) -> Option<Result<Observation, RunError>> {
    run_under(device, test, instances, seed, variant, stress(device), Join::Barrier)
}

/// Runs a test in a variant and a layout.
pub fn run_under(
    device: &SimDevice,
    test: &Test,
    instances: u64,
    seed: u64,
    variant: Variant,
    stress: Stress,
    join: Join,
) -> Option<Result<Observation, RunError>> {
    let config = KernelConfig { variant, ..stress.kernel_config(device.capabilities()) };
    let program = shaders::compile_program(test, &config, Pipelines::Merged).ok()?;
    let needs = &test.metadata.needs;
    let lacking = runner::RunVariant::default().missing_capability(&program, needs, device.capabilities());
    assert!(lacking.is_none(), "{}: {lacking:?}", test.name);
    // The step budget of the device ends hangs, independent of the load of this host.
    let submission_timeout = Duration::from_secs(3600);
    let settings =
        RunSettings { submission_timeout, ..RunSettings::new(stress, RunBudget::instances(instances), seed) };
    // If a barrier cannot order the dispatches, as between queues, the first join that can is used.
    let join = match join {
        Join::Barrier if join.refusal_reason(&program).is_some() => {
            Join::ALL.into_iter().find(|way| way.refusal_reason(&program).is_none()).unwrap_or(join)
        }
        join => join,
    };
    if join != Join::Barrier && join.refusal_reason(&program).is_some() {
        return None;
    }
    // Memory types that the host cannot map behave the same.
    let memory = match runner::RunVariant::default().location_memory(&program) {
        memory @ plan::BufferMemory::Mapped(_) => memory,
        _ => plan::BufferMemory::Device,
    };
    let ran = runner::run_program(device, &program, join, memory, test, &settings, &mut |_| {
        ControlFlow::Continue(())
    });
    let lacks = |error: &RunError| matches!(error.cause, Cause::Device(DeviceError::Unsupported(_)));
    assert!(!ran.as_ref().is_err_and(lacks), "{}: {ran:?}", test.name);
    Some(ran)
}

pub fn corpus_test(id: &str) -> Test {
    let entry = litmus::corpus::tests().into_iter().find(|entry| entry.id == id).unwrap();
    litmus::parse(entry.text, &entry.path).unwrap()
}

/// Compiles a test in a variant; the error is the reason why it has no kernels.
pub fn compile(device: &SimDevice, test: &Test, variant: RunVariant) -> Result<Runnable, String> {
    let runnable = runner::compile_for_device(test, variant, &stress(device), device.capabilities());
    runnable.map_err(|reason| reason.to_string())
}

/// Runs a compiled test with each of its mechanisms.
pub fn run_mechanisms(
    device: &SimDevice,
    runnable: &Runnable,
    test: &Test,
    settings: &RunSettings,
    metadata: &mut RunMetadata,
) -> Result<Observation, RunError> {
    let on_progress = &mut |_: &dyn Fn() -> runner::PartialRun| ControlFlow::Continue(());
    let (program, mechanisms) = (&runnable.program, runnable.mechanisms());
    runner::run_mechanisms(device, program, &mechanisms, test, settings, metadata, on_progress)
}

/// Runs a compiled test for a number of instances.
pub fn run_instances(
    device: &SimDevice,
    runnable: &Runnable,
    test: &Test,
    instances: u64,
    seed: u64,
) -> Result<Observation, RunError> {
    let settings = RunSettings::new(stress(device), RunBudget::instances(instances), seed);
    run_mechanisms(device, runnable, test, &settings, &mut RunMetadata::default())
}

/// Returns the model's prediction; `None` if it is incomplete.
pub fn complete_prediction(test: &Test) -> Option<Prediction> {
    let prediction = predict(
        test,
        &VULKAN,
        &PredictOptions { budget: model::Budget::UNLIMITED, ..PredictOptions::default() },
    )
    .ok()?;
    prediction.complete.then_some(prediction)
}

/// Returns the forbidden outcomes of a race-free test, and raw values that no execution produces.
pub fn disallowed_outcomes(test: &Test, prediction: &Prediction, seen: &Observation) -> Vec<String> {
    if prediction.race != Race::Free {
        return Vec::new();
    }
    let forbidden = seen
        .histogram
        .counts
        .iter()
        .filter(|(outcome, _)| !prediction.outcomes.get(*outcome).is_some_and(|says| says.allowed));
    let mut wrong: Vec<String> =
        forbidden.map(|(outcome, count)| format!("{}: {outcome:?} {count} times", test.name)).collect();
    wrong.extend(
        seen.unexpected.iter().map(|(raw, count)| format!("{}: raw {raw:?} {count} times", test.name)),
    );
    if seen.not_executed > 0 {
        wrong.push(format!("{}: {} not executed", test.name, seen.not_executed));
    }
    wrong
}
