//! Runs a program with several mechanisms between its phases; each gets an equal part of the budget.
//!
//! The rates of weak outcomes differ between two runs of one stress on one machine by more than chance, down to
//! none at all. If the device has shown a weak outcome before, or shows store buffering in a calibration, and the
//! first part of a run shows none, the rest of its budget runs with other delays, distances and alignments.

use std::ops::ControlFlow;

use litmus::{Histogram, Observation, Test};
use plan::{BufferMemory, Device, MemoryProperties};
use serde::{Deserialize, Serialize};
use shaders::Program;

use crate::error::RunError;
use crate::join::Join;
use crate::run::{RunProgress, run_program};
use crate::settings::{RunBudget, RunSettings};
use crate::store_buffering;
use crate::stress::Stress;

/// The mechanisms and the memory of a run.
#[derive(Clone, Copy, Debug)]
pub struct RunMechanisms<'a> {
    /// The mechanisms between phases.
    pub joins: &'a [Join],
    pub memory: BufferMemory,
}

impl<'a> RunMechanisms<'a> {
    /// Returns the mechanisms that matter for a program: one is enough for a single phase.
    fn relevant_joins(&self, program: &Program) -> &'a [Join] {
        match self.joins {
            [] => &[Join::Barrier],
            [first, ..] if program.phases.len() == 1 && program.hosts.is_none() => {
                std::slice::from_ref(first)
            }
            all => all,
        }
    }
}

/// Facts about a run other than its observations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunMetadata {
    /// The memory types of the locations, if the device reports them.
    pub memory: Vec<MemoryProperties>,
    /// Why the host counted all outcomes instead of the device.
    pub counted_by_host: Option<String>,
    /// The second part of the run, if there was one.
    pub spread: Option<SpreadPart>,
    /// True if the device shows store buffering. A run that needs the answer measures it.
    pub store_buffering: Option<bool>,
}

impl RunMetadata {
    /// Returns true if the device is known to show an outcome of the settings.
    fn expects_weak_outcome(&mut self, device: &dyn Device, settings: &RunSettings) -> bool {
        let mut measure = || store_buffering::shows_store_buffering(device, settings.submission_timeout);
        !settings.expected.is_empty() || *self.store_buffering.get_or_insert_with(&mut measure)
    }
}

/// The part of a run under another layout, after a part without an expected weak outcome.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpreadPart {
    /// Instances before it.
    pub first: u64,
    pub second: u64,
    /// Those of its instances that show an expected outcome.
    pub weak: u64,
    pub stress: Option<Stress>,
}

impl SpreadPart {
    /// Adds the part of another attempt or mechanism.
    pub fn merge_from(&mut self, more: &SpreadPart) {
        self.first += more.first;
        self.second += more.second;
        self.weak += more.weak;
        self.stress.clone_from(&more.stress);
    }
}

/// The state of a run in progress: all mechanisms so far.
#[derive(Clone, Debug, Default)]
pub struct PartialRun {
    pub observation: Observation,
    /// As [`RunMetadata::spread`].
    pub spread: Option<SpreadPart>,
}

/// Parts of the instances, and of the time, after which a run without an expected outcome changes its layout. An
/// exercised test takes half of its time.
const FIRST_PART_INSTANCES: u64 = 2;
const FIRST_PART_TIME: u32 = 4;

/// Difference between the seeds of both parts of a run.
const SECOND_SEED: u64 = 0x9e37_79b9_7f4a_7c15;

/// The search for expected outcomes in the first part of a run.
struct FirstPart<'a> {
    settings: &'a RunSettings,
    is_decided: bool,
    lacks_expected_outcome: bool,
}

impl FirstPart<'_> {
    /// Returns true if the first part ends here: its share of the budget is used, and it shows no expected
    /// outcome.
    fn should_end(&mut self, progress: &RunProgress<'_>) -> bool {
        let RunBudget { instances, time } = self.settings.budget;
        let is_over = instances.is_some_and(|all| progress.instances() >= all / FIRST_PART_INSTANCES)
            || time.is_some_and(|all| progress.elapsed() >= all / FIRST_PART_TIME);
        if !self.is_decided && is_over {
            self.is_decided = true;
            self.lacks_expected_outcome = expected_instances(self.settings, &progress.observation()) == 0;
        }
        self.lacks_expected_outcome
    }

    /// Returns the settings for the rest of the budget.
    fn second_settings(&self, first: &Observation, stress: Stress) -> RunSettings {
        let settings = self.settings;
        let elapsed = std::time::Duration::try_from_secs_f64(first.seconds).unwrap_or_default();
        let is_exercised =
            settings.exercise.as_ref().is_some_and(|exercise| exercise.is_met_by(&first.histogram));
        // An exercised test takes a half of the time that it is given.
        let took = if is_exercised { elapsed * 2 } else { elapsed };
        RunSettings {
            stress,
            budget: RunBudget {
                instances: settings.budget.instances.map(|all| all - all.min(first.accounted_instances())),
                time: settings.budget.time.map(|all| all.saturating_sub(took)),
            },
            seed: settings.seed ^ SECOND_SEED,
            ..settings.clone()
        }
    }
}

/// Returns the instances that show an expected outcome.
fn expected_instances(settings: &RunSettings, seen: &Observation) -> u64 {
    let expected = settings.expected.iter().chain(&settings.calibrated);
    expected.filter_map(|outcome| seen.histogram.counts.get(outcome)).sum()
}

/// Runs `program`, made from `test`, with each mechanism, and stores facts about the run in `metadata`.
///
/// `on_progress` can request the state of all mechanisms so far; a break ends the run early without an
/// error.
///
/// # Errors
/// The failure that ended the run early, with the observations of all mechanisms so far.
pub fn run_mechanisms(
    device: &dyn Device,
    program: &Program,
    mechanisms: &RunMechanisms<'_>,
    test: &Test,
    settings: &RunSettings,
    metadata: &mut RunMetadata,
    on_progress: &mut dyn FnMut(&dyn Fn() -> PartialRun) -> ControlFlow<()>,
) -> Result<Observation, RunError> {
    let joins = mechanisms.relevant_joins(program);
    let settings_per_join =
        RunSettings { budget: divide_budget(settings.budget, joins.len()), ..settings.clone() };
    let mut all = PartialRun::default();
    let is_decided = settings_per_join.expected.is_empty() && settings_per_join.calibrated.is_empty();
    let mut stopped = false;
    let mut failed = None;
    let mut first_parts = Vec::new();
    'joins: for join in joins {
        first_parts.push(all.observation.parts.len());
        let mut first_part =
            FirstPart { settings: &settings_per_join, is_decided, lacks_expected_outcome: false };
        let mut first: Option<Observation> = None;
        let mut is_spread = false;
        loop {
            let settings = match &first {
                Some(first) if is_spread => first_part.second_settings(
                    first,
                    settings_per_join.stress.with_wider_layout(device.capabilities().loop_budget),
                ),
                Some(first) => first_part.second_settings(first, settings_per_join.stress.clone()),
                None => settings_per_join.clone(),
            };
            // Dispatches in flight may have used the whole budget.
            if first.is_some() && settings.budget.instances == Some(0) {
                break;
            }
            // The state after this part, or in the middle of it.
            let merged_with = |all: &PartialRun, seen: &Observation| {
                let mut so_far = all.clone();
                so_far.observation.merge_from(seen);
                if let Some(first) = first.as_ref().filter(|_| is_spread) {
                    so_far.spread.get_or_insert_default().merge_from(&SpreadPart {
                        first: first.accounted_instances(),
                        second: seen.accounted_instances(),
                        weak: expected_instances(&settings_per_join, seen),
                        stress: Some(settings.stress.clone()),
                    });
                }
                so_far
            };
            let ran =
                run_program(device, program, *join, mechanisms.memory, test, &settings, &mut |progress| {
                    if metadata.memory.is_empty() {
                        metadata.memory.extend_from_slice(progress.memory());
                    }
                    metadata.counted_by_host = progress.counted_by_host().map(str::to_owned);
                    let flow = on_progress(&|| merged_with(&all, &progress.observation()));
                    stopped |= flow.is_break();
                    if first.is_none() && first_part.should_end(progress) {
                        ControlFlow::Break(())
                    } else {
                        flow
                    }
                });
            let seen = match ran {
                Ok(seen) => seen,
                Err(RunError { cause, observation: seen }) => {
                    failed = Some(cause);
                    *seen
                }
            };
            all = merged_with(&all, &seen);
            if failed.is_some() || stopped {
                break 'joins;
            }
            if first.is_some() || !first_part.lacks_expected_outcome {
                break;
            }
            is_spread = metadata.expects_weak_outcome(device, &settings_per_join);
            first = Some(seen);
        }
    }
    metadata.spread = all.spread;
    all.observation.parts = align_parts(&all.observation.parts, &first_parts);
    match failed {
        None => Ok(all.observation),
        Some(cause) => Err(RunError { cause, observation: Box::new(all.observation) }),
    }
}

/// Merges the parts with the same number of all mechanisms, whose first parts are at these indices: mechanisms
/// have different rates, which are no scatter.
fn align_parts(parts: &[Histogram], first_parts: &[usize]) -> Vec<Histogram> {
    let mut merged: Vec<Histogram> = Vec::new();
    for (start, end) in first_parts.iter().zip(first_parts.iter().skip(1).chain([&parts.len()])) {
        for (number, part) in parts.get(*start..*end).unwrap_or_default().iter().enumerate() {
            if merged.len() == number {
                merged.push(Histogram::default());
            }
            if let Some(all) = merged.get_mut(number) {
                part.counts.iter().for_each(|(outcome, count)| all.add_count(outcome.clone(), *count));
            }
        }
    }
    merged
}

fn divide_budget(budget: RunBudget, count: usize) -> RunBudget {
    let count = u32::try_from(count.max(1)).unwrap_or(u32::MAX);
    RunBudget {
        instances: budget.instances.map(|instances| instances.div_ceil(count.into())),
        time: budget.time.map(|time| time / count),
    }
}
