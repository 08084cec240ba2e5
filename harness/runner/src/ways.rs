//! Runs a program with several mechanisms between its phases; each gets an equal part of the budget.
//!
//! The rates of weak outcomes differ between two runs of one stress on one machine by more than chance, down to
//! none at all. If the device has shown a weak outcome before and the first part of a run shows none, the rest of
//! its budget runs with other delays, distances and alignments.

use std::ops::ControlFlow;

use litmus::{Observation, Test};
use plan::{BufferMemory, Device, MemoryProperties};
use serde::{Deserialize, Serialize};
use shaders::Program;

use crate::error::RunError;
use crate::join::Join;
use crate::run::{RunProgress, run_program};
use crate::settings::{RunBudget, RunSettings};
use crate::stress::Stress;

/// The mechanisms and the memory of a run.
#[derive(Clone, Copy, Debug)]
pub struct RunMechanisms<'a> {
    /// The mechanisms between phases.
    pub joins: &'a [Join],
    /// The memory of its locations.
    pub memory: BufferMemory,
}

impl<'a> RunMechanisms<'a> {
    /// Returns the mechanisms that matter for a program: one is enough for a single phase.
    fn joins_of(&self, program: &Program) -> &'a [Join] {
        match self.joins {
            [] => &[Join::Barrier],
            [first, ..] if program.phases.len() == 1 && program.hosts.is_none() => {
                std::slice::from_ref(first)
            }
            all => all,
        }
    }

    /// Returns the kernels of a run, for [`Device::compile_ahead`].
    pub(crate) fn kernels(
        &self,
        device: &dyn Device,
        program: &Program,
        test: &Test,
        settings: &RunSettings,
    ) -> Vec<plan::Kernel> {
        let join = self.joins_of(program).first().copied().unwrap_or_default();
        crate::run::kernels(device, program, (join, self.memory), test, settings)
    }
}

/// Facts about a run other than its observations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// The memory types of the locations, if the device reports them.
    pub memory: Vec<MemoryProperties>,
    /// Why the host counted all outcomes instead of the device.
    pub counted_by_host: Option<String>,
    /// The second part of the run, if there was one.
    pub spread: Option<SpreadPart>,
}

/// The part of a run under another layout, after a part without an expected weak outcome.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpreadPart {
    /// Instances before it.
    pub first: u64,
    /// Its instances.
    pub second: u64,
    /// Those of its instances that show an expected outcome.
    pub weak: u64,
    /// Its stress.
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

/// Parts of the instances, and of the time, after which a run without an expected outcome changes its layout. An
/// exercised test takes half of its time.
const BARREN_INSTANCES: u64 = 2;
const BARREN_TIME: u32 = 4;

/// Difference between the seeds of both parts of a run.
const SECOND_SEED: u64 = 0x9e37_79b9_7f4a_7c15;

/// Watches for expected outcomes in the first part of a run.
struct FirstPart<'a> {
    settings: &'a RunSettings,
    is_decided: bool,
    is_barren: bool,
}

impl FirstPart<'_> {
    /// Returns true if the first part ends here: its share of the budget is used, and it shows no expected
    /// outcome.
    fn ends(&mut self, progress: &RunProgress<'_>) -> bool {
        let RunBudget { instances, time } = self.settings.budget;
        let is_over = instances.is_some_and(|all| progress.instances() >= all / BARREN_INSTANCES)
            || time.is_some_and(|all| progress.elapsed() >= all / BARREN_TIME);
        if !self.is_decided && is_over {
            self.is_decided = true;
            self.is_barren = expected_instances(self.settings, &progress.observation()) == 0;
        }
        self.is_barren
    }

    /// Returns the settings for the rest of the budget.
    fn second(&self, first: &Observation, loop_budget: Option<u32>) -> RunSettings {
        let settings = self.settings;
        let took = std::time::Duration::try_from_secs_f64(first.seconds).unwrap_or_default();
        let is_exercised =
            settings.exercise.as_ref().is_some_and(|exercise| exercise.is_seen(&first.histogram));
        // An exercised test takes a half of the time that it is given.
        let took = if is_exercised { took * 2 } else { took };
        RunSettings {
            stress: settings.stress.spread_out(loop_budget),
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
    settings.expected.iter().filter_map(|outcome| seen.histogram.counts.get(outcome)).sum()
}

/// Runs `program`, made from `test`, with each mechanism in turn, and stores facts about the run in `known`.
///
/// `on_progress` can request the observations of all mechanisms so far; a break ends the run early without an
/// error.
///
/// # Errors
/// The failure that ended the run early, with the observations of all mechanisms so far.
pub fn run_ways(
    device: &dyn Device,
    program: &Program,
    way: &RunMechanisms<'_>,
    test: &Test,
    settings: &RunSettings,
    known: &mut Known,
    on_progress: &mut dyn FnMut(&dyn Fn() -> Observation) -> ControlFlow<()>,
) -> Result<Observation, RunError> {
    let joins = way.joins_of(program);
    let part = RunSettings { budget: part_of(settings.budget, joins.len()), ..settings.clone() };
    let mut all = Observation::default();
    let mut stopped = false;
    let mut run_part = |settings: &RunSettings,
                        join: Join,
                        all: &mut Observation,
                        ends: &mut dyn FnMut(&RunProgress<'_>) -> bool| {
        let ran = run_program(device, program, (join, way.memory), test, settings, &mut |progress| {
            if known.memory.is_empty() {
                known.memory.extend_from_slice(progress.memory());
            }
            known.counted_by_host = progress.counted_by_host().map(str::to_owned);
            let flow = on_progress(&|| {
                let mut seen = all.clone();
                seen.merge_from(&progress.observation());
                seen
            });
            stopped |= flow.is_break();
            if ends(progress) { ControlFlow::Break(()) } else { flow }
        });
        match ran {
            Ok(seen) => {
                all.merge_from(&seen);
                Ok((seen, stopped))
            }
            Err(RunError { cause, seen }) => {
                all.merge_from(&seen);
                Err(RunError { cause, seen: Box::new(std::mem::take(all)) })
            }
        }
    };
    let mut spread: Option<SpreadPart> = None;
    for join in joins {
        let mut watch = FirstPart { settings: &part, is_decided: part.expected.is_empty(), is_barren: false };
        let (first, mut is_stopped) = run_part(&part, *join, &mut all, &mut |progress| watch.ends(progress))?;
        let settings = watch.second(&first, device.capabilities().loop_budget);
        // Dispatches in flight may have used the whole budget.
        if watch.is_barren && !is_stopped && settings.budget.instances != Some(0) {
            let second;
            (second, is_stopped) = run_part(&settings, *join, &mut all, &mut |_| false)?;
            spread.get_or_insert_default().merge_from(&SpreadPart {
                first: first.accounted_instances(),
                second: second.accounted_instances(),
                weak: expected_instances(&part, &second),
                stress: Some(settings.stress),
            });
        }
        if is_stopped {
            break;
        }
    }
    known.spread = spread;
    Ok(all)
}

fn part_of(budget: RunBudget, count: usize) -> RunBudget {
    let count = u32::try_from(count.max(1)).unwrap_or(u32::MAX);
    RunBudget {
        instances: budget.instances.map(|instances| instances.div_ceil(count.into())),
        time: budget.time.map(|time| time / count),
    }
}
