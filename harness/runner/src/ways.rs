//! A run over several ways to put the phases of a program one after another: each gets an equal part of the budget.

use std::ops::ControlFlow;

use litmus::{Observation, Test};
use plan::{Device, Memory, MemoryProperties};
use shaders::Program;

use crate::error::RunError;
use crate::join::Join;
use crate::run::{Budget, Settings, run_program};

/// How a program is run besides its kernels.
#[derive(Clone, Copy, Debug)]
pub struct Way<'a> {
    /// The ways to put its phases one after another.
    pub joins: &'a [Join],
    /// Where its locations lie.
    pub memory: Memory,
}

impl<'a> Way<'a> {
    /// The joins that matter to a program: one is enough where it has one phase.
    fn joins_of(&self, program: &Program) -> &'a [Join] {
        match self.joins {
            [] => &[Join::Barrier],
            [first, ..] if program.phases.len() == 1 && program.hosts.is_none() => {
                std::slice::from_ref(first)
            }
            all => all,
        }
    }

    /// The kernels of a run, for [`Device::compile_ahead`].
    pub(crate) fn kernels(
        &self,
        device: &dyn Device,
        program: &Program,
        test: &Test,
        settings: &Settings,
    ) -> Vec<plan::Kernel> {
        let join = self.joins_of(program).first().copied().unwrap_or_default();
        crate::run::kernels(device, program, (join, self.memory), test, settings)
    }
}

/// What a run finds out besides what it sees.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// What memory the locations came to lie in, where the device says so.
    pub memory: Vec<MemoryProperties>,
    /// Why the host counted all outcomes although the device was to.
    pub counted_by_host: Option<String>,
}

/// Runs `program`, made from `test`, with each of the joins in turn; a program with one phase needs only one. What is found
/// out on the way is told to `known`.
///
/// `on_progress` may ask what was seen in all ways up to now; a break ends the run early and without an error.
///
/// # Errors
/// Why the run ended before its time, with what was seen in all ways until then.
pub fn run_ways(
    device: &dyn Device,
    program: &Program,
    way: &Way<'_>,
    test: &Test,
    settings: &Settings,
    known: &mut Known,
    on_progress: &mut dyn FnMut(&dyn Fn() -> Observation) -> ControlFlow<()>,
) -> Result<Observation, RunError> {
    let joins = way.joins_of(program);
    let part = Settings { budget: part_of(settings.budget, joins.len()), ..settings.clone() };
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
                seen.add(&progress.observation());
                seen
            });
            stopped |= flow.is_break();
            flow
        });
        match ran {
            Ok(seen) => all.add(&seen),
            Err(RunError { cause, seen }) => {
                all.add(&seen);
                return Err(RunError { cause, seen: Box::new(all) });
            }
        }
        if stopped {
            break;
        }
    }
    Ok(all)
}

fn part_of(budget: Budget, count: usize) -> Budget {
    let count = u32::try_from(count.max(1)).unwrap_or(u32::MAX);
    Budget {
        instances: budget.instances.map(|instances| instances.div_ceil(count.into())),
        time: budget.time.map(|time| time / count),
    }
}
