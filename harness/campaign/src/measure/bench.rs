//! `bench`: instances, interleaved and weak outcomes per second of a device, compared with a classic scheme
//! and a native loop.

use std::time::{Duration, Instant};

use litmus::Observation;
use results::bench::{
    BENCH_SCHEMA, Baseline, BaselineRun, BenchOutcome, BenchReport, BenchTrial, Counts, Purpose, median,
};
use runner::classic::StoreBuffering;
use runner::{Stress, native};

use super::{MeasuredTest, Measurement};
use crate::Failure;
use crate::targets::{DeviceTarget, MessageSink};
use crate::workers::WorkerTask;

/// The test of the main rates.
const HEADLINE_TEST: &str = "sb/SB+rlx-rlx";
/// Repetitions of the main measurement, whose median is published.
const REPETITIONS: usize = 5;
/// The other tests. Each is measured once, with the device's own preset.
const OTHER_TESTS: [&str; 6] = [
    "mp/MP+early-read",
    "mp/MP+rel-acq",
    "r/R+rlx-rlx",
    "lb/LB+rlx-rlx",
    "2+2w/2+2W+rlx-rlx",
    "iriw/IRIW+rlx",
];
/// A fixed seed, so that every bench draws the same parameters.
const SEED: u64 = 5;
/// Duration of a main run, of a throughput run, and of other runs.
const RUN_DURATIONS: [Duration; 3] =
    [Duration::from_millis(1000), Duration::from_millis(700), Duration::from_millis(400)];
/// Duration and number of the runs that measure how soon a weak outcome appears.
const FIRST_OUTCOME_RUNS: (Duration, usize) = (Duration::from_millis(10), 5);
/// Time limit of all trials.
const TRIALS_TIMEOUT: Duration = Duration::from_secs(14);
/// Duration and number of the runs of the classic scheme.
const CLASSIC_RUNS: (Duration, usize) = (Duration::from_millis(900), 3);
/// Time limit for a classic run beyond its duration.
const CLASSIC_TIMEOUT_MARGIN: Duration = Duration::from_millis(1500);
/// Duration of the native runs before and after the others.
const NATIVE_DURATION: Duration = Duration::from_millis(400);

fn baseline(scheme: &str, runs: &[StoreBuffering]) -> Baseline {
    Baseline::new(scheme, runs.iter().map(baseline_run).collect())
}

fn baseline_run(run: &StoreBuffering) -> BaselineRun {
    let counts = Counts {
        instances: run.instances(),
        interleaved: run.interleaved_instances(),
        weak: run.weak_instances(),
        seconds: run.seconds,
        ..Counts::default()
    };
    BaselineRun { rates: counts.rates(), counts: run.counts, other: run.other, seconds: run.seconds }
}

/// Measures a device for about 20 seconds; `scale` shortens each run. `on_start` gets a message before the
/// first run.
///
/// # Errors
/// If `scale` is outside 0 to 1, or the main test does not run on the device.
pub fn run_bench(
    target: &DeviceTarget,
    scale: f64,
    on_start: MessageSink<'_>,
) -> Result<BenchReport, Failure> {
    if !(0.0..=1.0).contains(&scale) {
        return Err(Failure::input_message("`--scale` is from 0 to 1"));
    }
    let scaled = |time: Duration| time.mul_f64(scale);
    let started = Instant::now();
    let throughput = Stress::for_throughput(&target.listed.capabilities).map_err(Failure::input_error)?;
    let headline = MeasuredTest::from_arguments(&[HEADLINE_TEST], target)?;
    let others = MeasuredTest::from_arguments(&OTHER_TESTS, target)?;
    let Some(headline) = headline.first() else { return Err(Failure::input_message("no headline test")) };
    on_start(&format!("measuring {} for about 20 s", target.name));

    let trial_plan = plan_trials(target, headline, &others, &throughput, scale);
    let trials: Vec<Measurement<'_>> = trial_plan.iter().map(|(_, trial)| *trial).collect();
    let mut calibration = vec![native::run(scaled(NATIVE_DURATION))];
    let ended = super::run_trials(target, &trials, TRIALS_TIMEOUT)?;
    let classic = (0..CLASSIC_RUNS.1)
        .map(|_| {
            let seconds = scaled(CLASSIC_RUNS.0).as_secs_f64();
            let task = WorkerTask::Classic { selector: target.selector.clone(), seconds };
            let text = super::ask_worker(
                &target.worker_environment,
                &task,
                CLASSIC_RUNS.0 + CLASSIC_TIMEOUT_MARGIN,
            )?;
            serde_json::from_str(&text)
                .map_err(|_| Failure::environment_message(format!("the classic scheme: {text}")))
        })
        .collect::<Result<Vec<StoreBuffering>, Failure>>()?;
    calibration.push(native::run(scaled(NATIVE_DURATION)));

    let runs: Vec<BenchTrial> = trial_plan
        .iter()
        .zip(ended)
        .map(|((purpose, trial), ended)| match ended {
            Ok(observation) => bench_trial(*purpose, trial, &observation, None),
            Err(why) => bench_trial(*purpose, trial, &Observation::default(), Some(why)),
        })
        .collect();
    let median_rates = |purpose: Purpose| {
        let purpose_runs = runs.iter().filter(|run| run.purpose == purpose && run.error.is_none());
        median(purpose_runs.map(|run| run.counts.rates()).collect())
    };
    let Some(best) = median_rates(Purpose::Headline) else {
        let why = runs.iter().find_map(|run| run.error.clone()).unwrap_or_default();
        return Err(Failure::environment_message(format!("{HEADLINE_TEST} did not run: {why}")));
    };
    Ok(BenchReport {
        schema: BENCH_SCHEMA.to_owned(),
        device: target.name.clone(),
        driver: format!("{} {}", target.listed.identity.driver_name, target.listed.identity.driver_info),
        rates: best,
        preset: target.stress.name.clone(),
        throughput_instances_per_second: median_rates(Purpose::Throughput)
            .unwrap_or_default()
            .instances_per_second,
        runs,
        classic: baseline("64 workgroups of 256, stride 2, both threads an invocation", &classic),
        calibration: baseline("two native threads, a meeting for each 8 instances", &calibration),
        seconds: started.elapsed().as_secs_f64(),
    })
}

type PlannedTrial<'a> = (Purpose, Measurement<'a>);

/// Returns every trial of a bench. Repetitions are spread over the whole time, so that a load spike of the
/// machine affects few of them.
fn plan_trials<'a>(
    target: &'a DeviceTarget,
    headline: &'a MeasuredTest,
    others: &'a [MeasuredTest],
    throughput: &'a Stress,
    scale: f64,
) -> Vec<PlannedTrial<'a>> {
    let [long, middle, short] = RUN_DURATIONS;
    let trial = |subject, stress, time: Duration, seed| Measurement {
        subject,
        stress,
        time: time.mul_f64(scale),
        seed,
    };
    let mut planned = Vec::new();
    let mut others = others.iter();
    for repetition in 0..REPETITIONS {
        let seed = SEED + repetition as u64;
        planned.push((Purpose::Headline, trial(headline, &target.stress, long, seed)));
        if repetition % 2 == 0 {
            planned.push((Purpose::Throughput, trial(headline, throughput, middle, seed)));
        }
        for subject in others.by_ref().take(2) {
            planned.push((Purpose::Shape, trial(subject, &target.stress, short, seed)));
        }
    }
    for repetition in 0..FIRST_OUTCOME_RUNS.1 {
        planned.push((
            Purpose::AtOnce,
            trial(headline, &target.stress, FIRST_OUTCOME_RUNS.0, SEED + 100 + repetition as u64),
        ));
    }
    planned
}

fn bench_trial(
    purpose: Purpose,
    trial: &Measurement<'_>,
    observation: &Observation,
    error: Option<String>,
) -> BenchTrial {
    let subject = trial.subject;
    let outcomes = observation.histogram.counts.iter().map(|(outcome, count)| {
        let predicted = subject.prediction.outcomes.get(outcome);
        BenchOutcome {
            state: results::state::format_outcome(&subject.test, &subject.prediction.observables, outcome),
            count: *count,
            weak: predicted.is_none_or(|says| says.weak),
            serial: predicted.is_some_and(|says| says.serial),
        }
    });
    BenchTrial {
        test: subject.id.clone(),
        preset: trial.stress.name.clone(),
        purpose,
        seed: trial.seed,
        asked_seconds: trial.time.as_secs_f64(),
        counts: subject.count_outcomes(observation),
        outcomes: outcomes.collect(),
        error,
    }
}
