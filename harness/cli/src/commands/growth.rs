//! `bench --growth`: time and host memory of one test as its instances grow.

use std::time::Duration;

use campaign::measure::{self, Subject};
use campaign::targets;
use litmus::Observation;
use results::wire::{GrowthRecord, GrowthRow};
use runner::Stress;

use crate::arguments::{Bench, ListFormat};
use crate::exit::{Failure, Outcome};
use crate::output::print_json;
use crate::output::{Data, say};

/// The format of the published object.
const SCHEMA: &str = "vk-litmus/bench-growth/1";
/// The test.
const TEST: &str = "sb/SB+rlx-rlx";
/// Instances of the first run.
const FIRST: u64 = 1_000_000;
/// Everything has ended by then.
const LIMIT: Duration = Duration::from_secs(3600);
const SEED: u64 = 5;

/// Runs the command.
///
/// # Errors
/// When there is no such device, or the test does not run on it.
pub fn growth(arguments: &Bench, most: u64) -> Result<Outcome, Failure> {
    if most < FIRST {
        return Err(Failure::input_message(format!("`--growth` begins at {FIRST} instances")));
    }
    let devices: Vec<String> = arguments.device.iter().cloned().collect();
    let targets = targets::targets(&devices, None, &say)?;
    targets::refuse_compile_only(&targets)?;
    let Some(target) = targets.first() else { return Err(Failure::environment_message("no device")) };
    let stress = Stress::for_throughput(&target.listed.capabilities).map_err(Failure::input_error)?;
    let subjects = Subject::of_arguments(&[TEST])?;
    let Some(subject) = subjects.first() else { return Err(Failure::input_message("no such test")) };
    let wanted: Vec<u64> = std::iter::successors(Some(FIRST), |count| count.checked_mul(10))
        .take_while(|count| *count <= most)
        .collect();
    let job = |number: usize, _| {
        let job = subject.job(&target.selector, &stress, SEED);
        runner::wire::Job { instances: wanted.get(number).copied(), ..job }
    };
    let ended = measure::run_jobs(&target.process, wanted.len(), job, LIMIT)?;
    let mut rows = Vec::with_capacity(ended.len());
    for ended in ended {
        let answer =
            ended.map_err(|why| Failure::environment_message(format!("{TEST} did not run: {why}")))?;
        let seen = Observation::from(&answer.observation);
        let (instances, seconds) = (seen.instances(), seen.seconds);
        let instances_per_second = if seconds > 0.0 { instances as f64 / seconds } else { 0.0 };
        rows.push(GrowthRow {
            instances,
            seconds,
            instances_per_second,
            peak_memory_bytes: answer.peak_bytes,
        });
    }
    let growth = GrowthRecord {
        schema: SCHEMA,
        device: target.name.clone(),
        preset: stress.name.clone(),
        test: TEST,
        rows,
    };
    match arguments.format {
        ListFormat::Json => print_json(&growth),
        ListFormat::Text => print_text(&growth),
    }
}

fn print_text(growth: &GrowthRecord) -> Result<Outcome, Failure> {
    let GrowthRecord { device, preset, test, rows, .. } = growth;
    let mut text = format!("{test} on {device}, preset {preset}\n\n");
    text += &format!("{:>16}{:>12}{:>16}{:>16}\n", "instances", "seconds", "millions a s", "peak memory");
    for row in rows {
        let peak = row.peak_memory_bytes.map_or_else(String::new, |bytes| format!("{} MiB", bytes >> 20));
        let rate = row.instances_per_second / 1e6;
        text += &format!("{:>16}{:>12.3}{rate:>16.2}{peak:>16}\n", row.instances, row.seconds);
    }
    Data::new().print(&text)?;
    Ok(Outcome::Success)
}
