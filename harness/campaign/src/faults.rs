//! The fault campaign: runs the fault suite against every fault of the simulated GPU.
//!
//! It measures after how many instances and seconds the suite finds each fault, and checks that a device
//! without faults passes.

pub mod matrix;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use litmus::{Dialect, Observation, Prediction, Race, Test};
use model::{PredictOptions, predict};
use plan::Device;
use results::wire::{FaultSearch, FaultSearchSummary, FaultsRecord};
use results::{Ending, Evidence, Judgement, Reason, Verdict, judge};
use runner::{Cause, RunBudget, RunMetadata, RunSettings, RunVariant, Runnable, Stress};
use sim::{ExpectedEffect, FAULTS, Fault, Row, SimDevice};

use crate::choice::{self, Chosen};
use crate::parallel::{in_order, map};
use crate::source::TestSource;
use crate::{Failure, inputs};

const SCHEMA: &str = "vk-litmus/bench-faults/1";
/// The suite of tests.
const SUITE: &str = "faults";
/// The model for the verdicts.
const MODEL: &str = "vulkan";
/// Seeds of each fault.
const SEEDS: u64 = 3;
/// Limit on the instances per fault and seed. It is not a time limit, so that a busy machine finds the same
/// faults as an idle one.
const LIMIT: u64 = 20_000_000;
/// The same limit for faults that are expected to be invisible.
const INVISIBLE_LIMIT: u64 = 300_000;
/// A time limit that is never reached: the simulated GPU counts its steps and ends dispatches that hang.
const PATIENCE: Duration = Duration::from_secs(3600);
/// Instances of each test in one pass through the suite. The first passes are short, because most faults show
/// early.
const ROUNDS: [u64; 4] = [1_000, 4_000, 20_000, 200_000];
/// Instances of each test on the device without faults.
const SOUND_INSTANCES: u64 = 20_000;

/// A test of the suite.
struct SuiteCase {
    id: String,
    /// Hash of its text.
    hash: String,
    test: Test,
    prediction: Prediction,
    runnable: Runnable,
}

impl SuiteCase {
    /// Returns true if some observation of the test could be wrong.
    fn can_fail(&self) -> bool {
        self.prediction.race == Race::Free && self.prediction.outcomes.values().any(|says| !says.allowed)
    }
}

/// Runs the campaign on all processors and passes each fault's result to `sought`, in order. A search ends at
/// the first test that shows its fault.
///
/// # Errors
/// If the suite cannot be read, or `sought` fails.
pub fn faults(
    sought: &mut dyn FnMut(&FaultSearchSummary) -> Result<(), Failure>,
) -> Result<FaultsRecord, Failure> {
    let cases = cases()?;
    let searches: Vec<(&Row, u64)> =
        FAULTS.iter().flat_map(|row| (0..SEEDS).map(move |seed| (row, seed))).collect();
    let mut rows = FAULTS.iter();
    let (mut seeds, mut faults) = (Vec::new(), Vec::with_capacity(FAULTS.len()));
    in_order(
        &searches,
        |(row, seed)| {
            let limit =
                if matches!(row.expect, ExpectedEffect::Invisible(_)) { INVISIBLE_LIMIT } else { LIMIT };
            search(&cases, row.fault, *seed, limit)
        },
        |result| {
            seeds.push(result?);
            if seeds.len() as u64 == SEEDS
                && let Some(row) = rows.next()
            {
                let (expect, seeds) = (row.expect.word(), std::mem::take(&mut seeds));
                let found = seeds.iter().all(|search| search.verdict == expect);
                faults.push(FaultSearchSummary { fault: row.name, rule: row.rule, expect, found, seeds });
                faults.last().map_or(Ok(()), &mut *sought)?;
            }
            Ok::<(), Failure>(())
        },
    )?;
    let (false_alarms, sound_instances) = sound(&cases)?;
    let missed: Vec<&str> = faults.iter().filter(|fault| !fault.found).map(|fault| fault.fault).collect();
    Ok(FaultsRecord {
        schema: SCHEMA,
        suite: SUITE,
        tests: cases.len(),
        missed,
        false_alarms,
        sound_instances,
        faults,
    })
}

/// Loads the tests of the suite that the device can run.
fn cases() -> Result<Vec<SuiteCase>, Failure> {
    let chosen = choice::load(MODEL)?;
    let mut cases = Vec::new();
    for source in inputs::of_suite(SUITE)? {
        cases.extend(case(source, &chosen)?);
    }
    Ok(cases)
}

/// Returns a test with its prediction, or `None` if the device cannot run it.
fn case(source: TestSource, chosen: &Chosen) -> Result<Option<SuiteCase>, Failure> {
    let variant: RunVariant = source.variant.parse().map_err(Failure::input_error)?;
    let Ok(loaded) = source.load() else { return Ok(None) };
    let whole = loaded.test.filter.is_none() && loaded.test.khronos.is_none();
    if !whole || loaded.test.dialect != Dialect::Vulkan {
        return Ok(None);
    }
    let device = SimDevice::new(Fault::None);
    let Ok(runnable) =
        runner::compile_for_device(&loaded.test, variant, &stress(&device)?, device.capabilities())
    else {
        return Ok(None);
    };
    // With GLSL450, scopes have another meaning.
    let Ok(said) = shaders::effective_test(&loaded.test, variant.shader) else { return Ok(None) };
    let prediction =
        predict(&said, &chosen.model, &PredictOptions::default()).map_err(Failure::input_error)?;
    let (id, hash) = (loaded.source.id, choice::hash(&loaded.text));
    Ok(Some(SuiteCase { id, hash, test: loaded.test, prediction, runnable }))
}

fn stress(device: &SimDevice) -> Result<Stress, Failure> {
    Stress::for_device(device.identity(), device.capabilities()).map_err(Failure::input_error)
}

/// Runs one test; returns its observation and how the run ended.
fn ran(
    case: &SuiteCase,
    device: &SimDevice,
    instances: u64,
    seed: u64,
) -> Result<(Observation, Result<Ending, String>), Failure> {
    let budget = RunBudget::instances(instances);
    let settings =
        RunSettings { submission_timeout: PATIENCE, ..RunSettings::new(stress(device)?, budget, seed) };
    let (program, way) = (&case.runnable.program, case.runnable.mechanisms());
    let go_on = &mut |_: &dyn Fn() -> runner::PartialRun| ControlFlow::Continue(());
    match runner::run_mechanisms(
        device,
        program,
        &way,
        &case.test,
        &settings,
        &mut RunMetadata::default(),
        go_on,
    ) {
        Ok(observation) => Ok((observation, Ok(Ending::Finished))),
        Err(error) => {
            let why = error.cause.to_string();
            let ending = match error.cause {
                Cause::Device(plan::DeviceError::Unsupported(_)) => Err(why),
                Cause::Device(plan::DeviceError::DeviceLost(_)) => Ok(Ending::DeviceLost(why)),
                Cause::TimedOut { .. } | Cause::Device(plan::DeviceError::StepBudget) => {
                    Ok(Ending::TimedOut(why))
                }
                Cause::Disagreement { .. } => Ok(Ending::CountsDisagree(why)),
                _ => Ok(Ending::Crashed(why)),
            };
            Ok((*error.observation, ending))
        }
    }
}

/// Runs one test and judges it.
fn judged(case: &SuiteCase, device: &SimDevice, instances: u64, seed: u64) -> Result<Judgement, Failure> {
    let (observation, ending) = ran(case, device, instances, seed)?;
    let ending = match ending {
        Ok(ending) => ending,
        Err(lacks) => return Ok(Judgement::skipped(lacks)),
    };
    Ok(judge(&Evidence {
        test: &case.test,
        prediction: &case.prediction,
        observation: &observation,
        ending: &ending,
        twin: None,
        explaining_limit: None,
        is_stage_serial: false,
    }))
}

/// Returns the word of [`sim::ExpectedEffect::word`] for a judgement that shows a fault.
fn found(judgement: &Judgement) -> Option<&'static str> {
    match judgement.verdict {
        Verdict::Violates => Some("violates"),
        Verdict::Inconclusive(reason) if reason != Reason::NotExercised => Some("inconclusive"),
        _ => None,
    }
}

/// Runs the suite with more and more instances until a judgement shows the fault.
fn search(cases: &[SuiteCase], fault: Fault, seed: u64, limit: u64) -> Result<FaultSearch, Failure> {
    let device = SimDevice::new(fault);
    let since = Instant::now();
    let mut instances = 0;
    for (round, each) in ROUNDS.into_iter().enumerate() {
        for case in cases {
            let judgement = judged(case, &device, each, seed * ROUNDS.len() as u64 + round as u64)?;
            instances += judgement.instances;
            let verdict = match found(&judgement) {
                Some(verdict) => verdict,
                None if instances < limit => continue,
                None => return Ok(nothing(seed, instances, since)),
            };
            return Ok(FaultSearch {
                seed,
                verdict,
                test: Some(case.id.clone()),
                instances,
                seconds: since.elapsed().as_secs_f64(),
                detail: judgement.detail,
            });
        }
    }
    Ok(nothing(seed, instances, since))
}

fn nothing(seed: u64, instances: u64, since: Instant) -> FaultSearch {
    let seconds = since.elapsed().as_secs_f64();
    FaultSearch { seed, verdict: "invisible", test: None, instances, seconds, detail: None }
}

/// Returns the violations on a device without faults, and the number of instances.
fn sound(cases: &[SuiteCase]) -> Result<(Vec<String>, u64), Failure> {
    let mut alarms: BTreeMap<String, String> = BTreeMap::new();
    let mut instances = 0;
    let judgements = map(cases, |case| judged(case, &SimDevice::new(Fault::None), SOUND_INSTANCES, SEEDS));
    for (case, judgement) in cases.iter().zip(judgements) {
        let judgement = judgement?;
        instances += judgement.instances;
        if judgement.verdict == Verdict::Violates {
            alarms.insert(case.id.clone(), judgement.detail.unwrap_or_default());
        }
    }
    Ok((alarms.into_iter().map(|(id, detail)| format!("{id}: {detail}")).collect(), instances))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    /// Runs a search and returns its result without the time.
    fn told(
        cases: &[SuiteCase],
        fault: Fault,
        limit: u64,
    ) -> (&'static str, Option<String>, u64, Option<String>) {
        let FaultSearch { verdict, test, instances, detail, .. } = search(cases, fault, 1, limit).unwrap();
        (verdict, test, instances, detail)
    }

    #[test]
    fn detection_does_not_depend_on_load() {
        let cases = cases().unwrap();
        let rows: Vec<_> = FAULTS.iter().filter(|row| row.name.ends_with("reordered")).collect();
        assert!(rows.iter().any(|row| matches!(row.expect, ExpectedEffect::Invisible(_))));
        let all = || -> Vec<_> { rows.iter().map(|row| told(&cases, row.fault, INVISIBLE_LIMIT)).collect() };
        let by_itself = all();
        let over = AtomicBool::new(false);
        let beside_others = std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    while !over.load(Ordering::Relaxed) {
                        std::hint::spin_loop();
                    }
                });
            }
            let found = all();
            over.store(true, Ordering::Relaxed);
            found
        });
        assert_eq!(by_itself, beside_others);
        let verdicts: BTreeMap<_, usize> =
            by_itself.iter().fold(BTreeMap::new(), |mut all, (verdict, ..)| {
                *all.entry(*verdict).or_default() += 1;
                all
            });
        assert!(verdicts.len() > 1, "{by_itself:?}");
    }
}
