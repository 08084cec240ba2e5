//! `bench --stress`: compares environments by weak outcomes and mutant kills per second, alternating with the
//! device's own environment.

use std::time::Duration;

use results::bench::Counts;
use results::wire::{BENCH_STRESS_SCHEMA, BenchStressRecord, StressCounts, StressRecord, StressTest};
use runner::Stress;

use super::{Measurement, RelaxedSubject};
use crate::kinds::litmus::plan::LitmusPlan;
use crate::source::{LoadedTest, TestSource};
use crate::targets::{self, DeviceTarget, MessageSink};
use crate::{Failure, inputs};

/// The suite if the command line names no test.
const DEFAULT_SUITE: &str = "quick";
/// The minimum duration of a trial.
const MIN_TRIAL_TIME: Duration = Duration::from_millis(30);
/// A sufficient duration of a trial. More time adds rounds instead, so that a load spike of the machine
/// affects all environments.
const SUFFICIENT_TRIAL_TIME: Duration = Duration::from_millis(100);
/// The maximum number of rounds.
const MAX_ROUNDS: u32 = 10;
/// Time limit for a round beyond its trials, for starting a worker.
const ROUND_OVERHEAD: Duration = Duration::from_secs(60);
const BUILD_OVERHEAD: Duration = Duration::from_secs(3);

#[derive(Clone, Copy, Debug)]
pub struct EnvironmentOptions<'a> {
    /// The stresses, as presets or files.
    pub stresses: &'a [String],
    /// The tests, as command-line arguments.
    pub tests: &'a [String],
    /// An embedded suite; `quick` if neither this nor a test is given.
    pub suite: Option<&'a str>,
    /// Time for all environments together.
    pub time: Duration,
    pub seed: u64,
}

/// Compares environments on a device; `on_start` gets a message before the first round.
///
/// # Errors
/// If an environment or a test does not exist, or no test can be measured.
pub fn compare_environments(
    target: DeviceTarget,
    options: &EnvironmentOptions<'_>,
    on_message: MessageSink<'_>,
    on_start: MessageSink<'_>,
) -> Result<BenchStressRecord, Failure> {
    let plan =
        &LitmusPlan::new(vec![target], load_tests(options.tests, options.suite)?, None, None, &|_, _| None)?;
    let Some(target) = plan.targets.first() else { return Err(Failure::environment_message("no device")) };
    let mut environments = vec![target.stress.clone()];
    for name in options.stresses {
        let stress =
            targets::stress_for_device(Some(&targets::load_stress(name)?), &target.listed, on_message)?;
        if !environments.iter().any(|known| known.name == stress.name) {
            environments.push(stress);
        }
    }
    let relaxed = RelaxedSubject::from_plan(plan);
    if relaxed.is_empty() {
        return Err(Failure::input_message("no test among these has an allowed outcome as its condition"));
    }
    let (rounds, time) = trial_shares(options.time, relaxed.len() * environments.len());
    on_start(&format!(
        "{} tests in {} environments on {}: {rounds} rounds of {} ms each",
        relaxed.len(),
        environments.len(),
        target.name,
        time.as_millis()
    ));

    let mut cells = vec![vec![StressCounts::default(); environments.len()]; relaxed.len()];
    for round in 0..rounds {
        // Stop measuring a pair once it has used the time of all its rounds, which happens if one dispatch is
        // long.
        let has_time_left = |(test, environment): &(usize, usize)| {
            let cell = cells.get(*test).and_then(|row| row.get(*environment));
            cell.is_some_and(|cell| cell.counts.seconds < f64::from(rounds) * time.as_secs_f64())
        };
        let order: Vec<(usize, usize)> =
            trial_order(round, relaxed.len(), environments.len()).filter(has_time_left).collect();
        let trials: Vec<Measurement<'_>> = order
            .iter()
            .filter_map(|(test, environment)| {
                let (subject, stress) = (&relaxed.get(*test)?.subject, environments.get(*environment)?);
                Some(Measurement { subject, stress, time, seed: options.seed.wrapping_add(u64::from(round)) })
            })
            .collect();
        let count = u32::try_from(trials.len()).unwrap_or(u32::MAX);
        let ended = super::run_trials(
            target,
            &trials,
            ROUND_OVERHEAD + (time + BUILD_OVERHEAD).saturating_mul(count),
        )?;
        for ((test, environment), ended) in order.iter().zip(ended) {
            let Some(cell) = cells.get_mut(*test).and_then(|row| row.get_mut(*environment)) else { continue };
            let Some(relaxed_test) = relaxed.get(*test) else { continue };
            match ended {
                Ok(observation) => {
                    cell.counts.add(&relaxed_test.subject.count_outcomes(&observation));
                    cell.deaths += relaxed_test.subject.count_kills(&observation);
                }
                Err(why) => cell.error = Some(why),
            }
        }
    }

    let mutants: Vec<bool> = relaxed.iter().map(|relaxed_test| !relaxed_test.mutant_of.is_empty()).collect();
    let mut summed: Vec<StressRecord> = Vec::with_capacity(environments.len());
    for (number, stress) in environments.iter().enumerate() {
        let column: Vec<&StressCounts> = cells.iter().filter_map(|row| row.get(number)).collect();
        let environment = sum_column(stress, &column, &mutants, summed.first())?;
        summed.push(environment);
    }
    Ok(BenchStressRecord {
        schema: BENCH_STRESS_SCHEMA.to_owned(),
        device: target.name.clone(),
        driver: format!("{} {}", target.listed.identity.driver_name, target.listed.identity.driver_info),
        seed: options.seed,
        rounds,
        trial_seconds: time.as_secs_f64(),
        tests: relaxed.len(),
        mutants: mutants.iter().filter(|mutant| **mutant).count(),
        environments: summed,
        rows: relaxed
            .into_iter()
            .zip(cells)
            .map(|(relaxed_test, environments)| StressTest {
                test: relaxed_test.subject.id,
                mutant_of: relaxed_test.mutant_of,
                environments,
            })
            .collect(),
    })
}

/// Loads the requested tests.
///
/// # Errors
/// If the suite does not exist, or a test is invalid.
pub(super) fn load_tests(arguments: &[String], suite: Option<&str>) -> Result<Vec<LoadedTest>, Failure> {
    let mut sources: Vec<TestSource> =
        arguments.iter().flat_map(|argument| inputs::argument_sources(argument)).collect();
    match suite {
        Some(suite) => sources.extend(inputs::suite_tests(suite)?),
        None if arguments.is_empty() => sources.extend(inputs::suite_tests(DEFAULT_SUITE)?),
        None => {}
    }
    let loaded = |source: TestSource| source.load().map_err(|rejected| rejected.failure);
    sources.into_iter().map(loaded).collect()
}

/// Returns the number of rounds and the duration of a trial for this many pairs of test and environment.
fn trial_shares(time: Duration, pairs: usize) -> (u32, Duration) {
    let pairs = u32::try_from(pairs).unwrap_or(u32::MAX).max(1);
    let each = time / pairs;
    let rounds = u32::try_from(each.as_millis() / SUFFICIENT_TRIAL_TIME.as_millis())
        .unwrap_or(u32::MAX)
        .clamp(1, MAX_ROUNDS);
    (rounds, (each / rounds).max(MIN_TRIAL_TIME))
}

/// Returns the trials of a round as pairs of test and environment. Each test runs in all environments before
/// the next test; the first environment rotates.
fn trial_order(round: u32, tests: usize, environments: usize) -> impl Iterator<Item = (usize, usize)> {
    let trials_of_test = move |test: usize| {
        (0..environments).map(move |place| (test, (place + round as usize + test) % environments))
    };
    (0..tests).flat_map(trials_of_test)
}

/// Sums a column; ratios are relative to `first`.
fn sum_column(
    stress: &Stress,
    column: &[&StressCounts],
    mutants: &[bool],
    first: Option<&StressRecord>,
) -> Result<StressRecord, Failure> {
    let mut counts = Counts::default();
    column.iter().for_each(|cell| counts.add(&cell.counts));
    let rates: Vec<f64> = column
        .iter()
        .zip(mutants)
        .filter(|(_, mutant)| **mutant)
        .map(|(cell, _)| cell.counts.per_second(cell.deaths))
        .collect();
    let mean = |transform: &dyn Fn(f64) -> f64| {
        rates.iter().map(|rate| transform(*rate)).sum::<f64>() / (rates.len().max(1) as f64)
    };
    let weak = counts.per_second(counts.weak);
    let (deaths, typical) = (mean(&|rate| rate), mean(&f64::ln_1p).exp_m1());
    // The first environment is compared with itself.
    let ratio = |rate: f64, first_rate: Option<f64>| {
        let other = first_rate.unwrap_or(rate);
        (other > 0.0).then_some(rate / other)
    };
    Ok(StressRecord {
        name: stress.name.clone(),
        stress: stress.to_toml().map_err(Failure::environment_error)?,
        ran: column.iter().filter(|cell| cell.counts.instances > 0).count(),
        seconds: counts.seconds,
        instances_per_second: counts.per_second(counts.instances),
        interleaved_per_second: counts.per_second(counts.interleaved),
        weak_per_second: weak,
        weak_ratio: ratio(weak, first.map(|first| first.weak_per_second)),
        killed: rates.iter().filter(|rate| **rate > 0.0).count(),
        deaths_per_second: deaths,
        deaths_ratio: ratio(deaths, first.map(|first| first.deaths_per_second)),
        typical_deaths_per_second: typical,
        typical_ratio: ratio(typical, first.map(|first| first.typical_deaths_per_second)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn environments_take_turns_and_have_equal_shares() {
        let mut first = [0; 3];
        for round in 0..3 {
            let order: Vec<(usize, usize)> = trial_order(round, 4, 3).collect();
            for (test, trials) in order.chunks(3).enumerate() {
                let mut seen: Vec<usize> = trials.iter().map(|trial| trial.1).collect();
                first[seen[0]] += 1;
                seen.sort_unstable();
                assert_eq!(seen, [0, 1, 2]);
                assert!(trials.iter().all(|trial| trial.0 == test));
            }
        }
        // No environment is always first after a change of test.
        assert_eq!(first, [4, 4, 4]);
    }

    #[test]
    fn time_is_divided_among_environments() {
        assert_eq!(trial_shares(Duration::from_secs(60), 100), (6, Duration::from_millis(100)));
        assert_eq!(trial_shares(Duration::from_secs(60), 10_000), (1, MIN_TRIAL_TIME));
        assert_eq!(trial_shares(Duration::from_secs(600), 10), (10, Duration::from_secs(6)));
    }

    #[test]
    fn ratios_are_relative_to_the_first_environment() {
        let stress = Stress::preset("sim").unwrap();
        let cell = |weak, deaths| StressCounts {
            counts: Counts { instances: 100, weak, seconds: 2.0, ..Counts::default() },
            deaths,
            error: None,
        };
        let (own, other) =
            ([cell(10, 20), cell(30, 40), cell(0, 0)], [cell(20, 0), cell(60, 160), cell(0, 4)]);
        let mutants = [false, true, true];
        let own = sum_column(&stress, &own.each_ref(), &mutants, None).unwrap();
        let other = sum_column(&stress, &other.each_ref(), &mutants, Some(&own)).unwrap();
        assert_eq!((own.killed, other.killed), (1, 2));
        assert_eq!((own.deaths_per_second, other.deaths_per_second), (10.0, 41.0));
        assert_eq!((own.deaths_ratio, other.deaths_ratio), (Some(1.0), Some(4.1)));
        assert_eq!((own.weak_ratio, other.weak_ratio), (Some(1.0), Some(2.0)));
        // (1 + 20) × (1 + 0) and (1 + 80) × (1 + 2).
        assert!((own.typical_deaths_per_second - (21f64.sqrt() - 1.0)).abs() < 1e-9);
        assert!((other.typical_deaths_per_second - (243f64.sqrt() - 1.0)).abs() < 1e-9);
    }
}
