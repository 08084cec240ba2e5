//! `bench --growth`: time and host memory of one test for growing numbers of instances.

use std::time::Duration;

use litmus::Observation;
use results::wire::{GrowthRecord, GrowthRow};
use runner::Stress;

use super::{Subject, run_jobs};
use crate::Failure;
use crate::targets::DeviceTarget;

/// The schema of the published object.
const SCHEMA: &str = "vk-litmus/bench-growth/1";
/// The measured test.
const TEST: &str = "sb/SB+rlx-rlx";
/// Instances of the first run.
const FIRST: u64 = 1_000_000;
/// Time limit of all runs.
const LIMIT: Duration = Duration::from_secs(3600);
const SEED: u64 = 5;

/// Measures up to `most` instances.
///
/// # Errors
/// If `most` is too small, or the test does not run on the device.
pub fn growth(target: &DeviceTarget, most: u64) -> Result<GrowthRecord, Failure> {
    if most < FIRST {
        return Err(Failure::input_message(format!("`--growth` starts at {FIRST} instances")));
    }
    let stress = Stress::for_throughput(&target.listed.capabilities).map_err(Failure::input_error)?;
    let subjects = Subject::of_arguments(&[TEST], target)?;
    let Some(subject) = subjects.first() else { return Err(Failure::input_message("no such test")) };
    let wanted: Vec<u64> = std::iter::successors(Some(FIRST), |count| count.checked_mul(10))
        .take_while(|count| *count <= most)
        .collect();
    let job = |number: usize, _| {
        let job = subject.job(&target.selector, &stress, SEED);
        runner::wire::Job { instances: wanted.get(number).copied(), ..job }
    };
    let ended = run_jobs(&target.process, wanted.len(), job, LIMIT)?;
    let mut rows = Vec::with_capacity(ended.len());
    for ended in ended {
        let answer =
            ended.map_err(|why| Failure::environment_message(format!("{TEST} did not run: {why}")))?;
        let seen = Observation::from(&answer.observation);
        let (instances, seconds) = (seen.accounted_instances(), seen.seconds);
        let instances_per_second = if seconds > 0.0 { instances as f64 / seconds } else { 0.0 };
        rows.push(GrowthRow {
            instances,
            not_executed: seen.not_executed,
            seconds,
            instances_per_second,
            peak_memory_bytes: answer.peak_bytes,
        });
    }
    Ok(GrowthRecord {
        schema: SCHEMA,
        device: target.name.clone(),
        preset: stress.name.clone(),
        test: TEST,
        rows,
    })
}
