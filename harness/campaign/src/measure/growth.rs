//! `bench --growth`: time and host memory of one test for growing numbers of instances.

use std::time::Duration;

use results::wire::{GrowthRecord, GrowthRow};
use runner::Stress;

use super::{MeasuredTest, run_jobs};
use crate::Failure;
use crate::targets::DeviceTarget;

/// The schema of the published object.
const SCHEMA: &str = "vk-litmus/bench-growth/1";
/// The measured test.
const TEST: &str = "sb/SB+rlx-rlx";
/// Instances of the first run.
const FIRST_INSTANCES: u64 = 1_000_000;
/// Time limit of all runs.
const RUNS_TIMEOUT: Duration = Duration::from_secs(3600);
const SEED: u64 = 5;

/// Measures up to `max_instances` instances.
///
/// # Errors
/// If `max_instances` is too small, or the test does not run on the device.
pub fn measure_growth(target: &DeviceTarget, max_instances: u64) -> Result<GrowthRecord, Failure> {
    if max_instances < FIRST_INSTANCES {
        return Err(Failure::input_message(format!("`--growth` starts at {FIRST_INSTANCES} instances")));
    }
    let stress = Stress::for_throughput(&target.listed.capabilities).map_err(Failure::input_error)?;
    let subjects = MeasuredTest::from_arguments(&[TEST], target)?;
    let Some(subject) = subjects.first() else { return Err(Failure::input_message("no such test")) };
    let instance_counts: Vec<u64> =
        std::iter::successors(Some(FIRST_INSTANCES), |count| count.checked_mul(10))
            .take_while(|count| *count <= max_instances)
            .collect();
    let job = |number: usize, _| {
        let job = subject.new_job(&target.selector, &stress, SEED);
        runner::wire::Job { instances: instance_counts.get(number).copied(), ..job }
    };
    let results = run_jobs(&target.worker_environment, instance_counts.len(), job, RUNS_TIMEOUT)?;
    let mut rows = Vec::with_capacity(results.len());
    for ended in results {
        let answer =
            ended.map_err(|why| Failure::environment_message(format!("{TEST} did not run: {why}")))?;
        let observation = &answer.observation;
        let (instances, seconds) = (observation.accounted_instances(), observation.seconds);
        let instances_per_second = if seconds > 0.0 { instances as f64 / seconds } else { 0.0 };
        rows.push(GrowthRow {
            instances,
            not_executed: observation.not_executed,
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
