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
use results::wire::{LineVerdict, RunContext, RunLine, VerdictWord};
use results::{Ending, Evidence, Reason, judge};
use runner::{Cause, RunBudget, RunMetadata, RunSettings, RunVariant, Runnable, Stress};
use sim::{ExpectedEffect, FAULTS, Fault, Row, SimDevice};

use crate::models::{self, LoadedModel};
use crate::parallel::{parallel_map, process_in_order};
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
const MAX_INSTANCES: u64 = 20_000_000;
/// The same limit for faults that are expected to be invisible.
const MAX_INVISIBLE_INSTANCES: u64 = 300_000;
/// A time limit that is never reached: the simulated GPU counts its steps and ends dispatches that hang.
const UNREACHED_TIMEOUT: Duration = Duration::from_secs(3600);
/// Instances of each test in one pass through the suite. The first passes are short, because most faults show
/// early.
const ROUND_INSTANCES: [u64; 4] = [1_000, 4_000, 20_000, 200_000];
/// Instances of each test on the device without faults.
const SOUND_INSTANCES: u64 = 20_000;

struct SuiteCase {
    id: String,
    hash: String,
    test: Test,
    prediction: Prediction,
    runnable: Runnable,
}

impl SuiteCase {
    /// Returns true if some observation of the test could be wrong.
    fn can_fail(&self) -> bool {
        self.prediction.race == Race::Free
            && self.prediction.outcomes.values().any(|predicted| !predicted.allowed)
    }
}

/// Runs the campaign on all processors and passes each result to `on_fault`, in order. A search ends at
/// the first test that shows its fault.
///
/// # Errors
/// If the suite cannot be read, or `on_fault` fails.
pub fn search_faults(
    on_fault: &mut dyn FnMut(&FaultSearchSummary) -> Result<(), Failure>,
) -> Result<FaultsRecord, Failure> {
    let cases = load_suite_cases()?;
    let searches: Vec<(&Row, u64)> =
        FAULTS.iter().flat_map(|row| (0..SEEDS).map(move |seed| (row, seed))).collect();
    let mut rows = FAULTS.iter();
    let (mut seeds, mut faults) = (Vec::new(), Vec::with_capacity(FAULTS.len()));
    process_in_order(
        &searches,
        |(row, seed)| {
            let limit = if matches!(row.expect, ExpectedEffect::Invisible(_)) {
                MAX_INVISIBLE_INSTANCES
            } else {
                MAX_INSTANCES
            };
            search_fault(&cases, row.fault, *seed, limit)
        },
        |result| {
            seeds.push(result?);
            if seeds.len() as u64 == SEEDS
                && let Some(row) = rows.next()
            {
                let (expect, seeds) = (row.expect.word(), std::mem::take(&mut seeds));
                let found = seeds.iter().all(|search| search.verdict == expect);
                faults.push(FaultSearchSummary { fault: row.name, rule: row.rule, expect, found, seeds });
                faults.last().map_or(Ok(()), &mut *on_fault)?;
            }
            Ok::<(), Failure>(())
        },
    )?;
    let (false_alarms, sound_instances) = run_without_faults(&cases)?;
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
fn load_suite_cases() -> Result<Vec<SuiteCase>, Failure> {
    let chosen = models::load(MODEL)?;
    let mut cases = Vec::new();
    for source in inputs::suite_tests(SUITE)? {
        cases.extend(load_case(source, &chosen)?);
    }
    Ok(cases)
}

/// Returns a test with its prediction, or `None` if the device cannot run it.
fn load_case(source: TestSource, chosen: &LoadedModel) -> Result<Option<SuiteCase>, Failure> {
    let variant: RunVariant = source.variant.parse().map_err(Failure::input_error)?;
    let Ok(loaded) = source.load() else { return Ok(None) };
    let is_complete = loaded.test.filter.is_none() && loaded.test.khronos.is_none();
    if !is_complete || loaded.test.dialect != Dialect::Vulkan {
        return Ok(None);
    }
    let device = SimDevice::new(Fault::None);
    let Ok(runnable) =
        runner::compile_for_device(&loaded.test, variant, &device_stress(&device)?, device.capabilities())
    else {
        return Ok(None);
    };
    // With GLSL450, scopes have another meaning.
    let Ok(effective_test) = shaders::effective_test(&loaded.test, variant.shader) else { return Ok(None) };
    let prediction =
        predict(&effective_test, &chosen.model, &PredictOptions::default()).map_err(Failure::input_error)?;
    let (id, hash) = (loaded.source.id, models::text_hash(&loaded.text));
    Ok(Some(SuiteCase { id, hash, test: loaded.test, prediction, runnable }))
}

fn device_stress(device: &SimDevice) -> Result<Stress, Failure> {
    Stress::for_device(device.identity(), device.capabilities()).map_err(Failure::input_error)
}

/// Runs one test; returns its observation and how the run ended.
fn run_case(
    case: &SuiteCase,
    device: &SimDevice,
    instances: u64,
    seed: u64,
) -> Result<(Observation, Result<Ending, String>), Failure> {
    let budget = RunBudget::instances(instances);
    let settings = RunSettings {
        submission_timeout: UNREACHED_TIMEOUT,
        ..RunSettings::new(device_stress(device)?, budget, seed)
    };
    let (program, mechanisms) = (&case.runnable.program, case.runnable.mechanisms());
    let on_progress = &mut |_: &dyn Fn() -> runner::PartialRun| ControlFlow::Continue(());
    match runner::run_mechanisms(
        device,
        program,
        &mechanisms,
        &case.test,
        &settings,
        &mut RunMetadata::default(),
        on_progress,
    ) {
        Ok(observation) => Ok((observation, Ok(Ending::Finished))),
        Err(error) => {
            let ending = match &error.cause {
                cause @ Cause::Device(plan::DeviceError::Unsupported(_)) => Err(cause.to_string()),
                cause => Ok(verdicts::run_ending(cause)),
            };
            Ok((*error.observation, ending))
        }
    }
}

/// Runs one test and judges it.
fn judge_case(case: &SuiteCase, device: &SimDevice, instances: u64, seed: u64) -> Result<RunLine, Failure> {
    let (observation, ending) = run_case(case, device, instances, seed)?;
    let ending = match ending {
        Ok(ending) => ending,
        Err(reason) => return Ok(RunLine::default().with_verdict(LineVerdict::skipped(&reason))),
    };
    let evidence = Evidence::new(&case.test, &case.prediction, &observation, &ending);
    Ok(judge(&evidence, RunContext::default()))
}

/// Returns the word of [`sim::ExpectedEffect::word`] for a line that shows a fault.
fn fault_verdict(line: &RunLine) -> Option<&'static str> {
    match line.verdict {
        VerdictWord::Violates => Some("violates"),
        VerdictWord::Inconclusive if !line.has_reason(Reason::NotExercised) => Some("inconclusive"),
        _ => None,
    }
}

/// Runs the suite with more and more instances until a judgement shows the fault.
fn search_fault(cases: &[SuiteCase], fault: Fault, seed: u64, limit: u64) -> Result<FaultSearch, Failure> {
    let device = SimDevice::new(fault);
    let started = Instant::now();
    let mut instances = 0;
    for (round, round_instances) in ROUND_INSTANCES.into_iter().enumerate() {
        for case in cases {
            let line = judge_case(
                case,
                &device,
                round_instances,
                seed * ROUND_INSTANCES.len() as u64 + round as u64,
            )?;
            instances += line.instances;
            let verdict = match fault_verdict(&line) {
                Some(verdict) => verdict,
                None if instances < limit => continue,
                None => return Ok(undetected(seed, instances, started)),
            };
            return Ok(FaultSearch {
                seed,
                verdict,
                test: Some(case.id.clone()),
                instances,
                seconds: started.elapsed().as_secs_f64(),
                detail: line.detail,
            });
        }
    }
    Ok(undetected(seed, instances, started))
}

fn undetected(seed: u64, instances: u64, started: Instant) -> FaultSearch {
    let seconds = started.elapsed().as_secs_f64();
    FaultSearch { seed, verdict: "invisible", test: None, instances, seconds, detail: None }
}

/// Returns the violations on a device without faults, and the number of instances.
fn run_without_faults(cases: &[SuiteCase]) -> Result<(Vec<String>, u64), Failure> {
    let mut alarms: BTreeMap<String, String> = BTreeMap::new();
    let mut instances = 0;
    let lines =
        parallel_map(cases, |case| judge_case(case, &SimDevice::new(Fault::None), SOUND_INSTANCES, SEEDS));
    for (case, line) in cases.iter().zip(lines) {
        let line = line?;
        instances += line.instances;
        if line.verdict == VerdictWord::Violates {
            alarms.insert(case.id.clone(), line.detail.unwrap_or_default());
        }
    }
    Ok((alarms.into_iter().map(|(id, detail)| format!("{id}: {detail}")).collect(), instances))
}

#[cfg(test)]
mod tests {

    use super::*;

    /// Runs a search and returns its result without the time.
    fn search_without_time(
        cases: &[SuiteCase],
        fault: Fault,
        limit: u64,
    ) -> (&'static str, Option<String>, u64, Option<String>) {
        let FaultSearch { verdict, test, instances, detail, .. } =
            search_fault(cases, fault, 1, limit).unwrap();
        (verdict, test, instances, detail)
    }

    #[test]
    fn detection_does_not_depend_on_load() {
        let cases = load_suite_cases().unwrap();
        let rows: Vec<_> = FAULTS.iter().filter(|row| row.name.ends_with("reordered")).collect();
        assert!(rows.iter().any(|row| matches!(row.expect, ExpectedEffect::Invisible(_))));
        let search_all = || -> Vec<_> {
            rows.iter().map(|row| search_without_time(&cases, row.fault, MAX_INVISIBLE_INSTANCES)).collect()
        };
        // Each search is the load of the other.
        let (one, other) = std::thread::scope(|scope| {
            let other = scope.spawn(search_all);
            (search_all(), other.join().unwrap())
        });
        assert_eq!(one, other);
        let verdicts: BTreeMap<_, usize> = one.iter().fold(BTreeMap::new(), |mut all, (verdict, ..)| {
            *all.entry(*verdict).or_default() += 1;
            all
        });
        assert!(verdicts.len() > 1, "{one:?}");
    }
}
