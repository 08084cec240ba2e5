//! Runs a program with several mechanisms between its phases; each gets an equal part of the budget.

use std::ops::ControlFlow;

use litmus::{Observation, Test};
use plan::{BufferMemory, Device, MemoryProperties};
use shaders::Program;

use crate::error::RunError;
use crate::join::Join;
use crate::run::{RunBudget, RunSettings, run_program};

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
    for join in joins {
        let ran = run_program(device, program, (*join, way.memory), test, &part, &mut |progress| {
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
            flow
        });
        match ran {
            Ok(seen) => all.merge_from(&seen),
            Err(RunError { cause, seen }) => {
                all.merge_from(&seen);
                return Err(RunError { cause, seen: Box::new(all) });
            }
        }
        if stopped {
            break;
        }
    }
    Ok(all)
}

fn part_of(budget: RunBudget, count: usize) -> RunBudget {
    let count = u32::try_from(count.max(1)).unwrap_or(u32::MAX);
    RunBudget {
        instances: budget.instances.map(|instances| instances.div_ceil(count.into())),
        time: budget.time.map(|time| time / count),
    }
}
