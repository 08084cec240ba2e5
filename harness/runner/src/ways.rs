//! A run over several ways to put the phases of a program one after another: each gets an equal part of the budget.

use std::ops::ControlFlow;

use litmus::{Observation, Test};
use plan::Device;
use shaders::Program;

use crate::error::RunError;
use crate::join::Join;
use crate::run::{Budget, Settings, run_program};

/// Runs `program`, made from `test`, in each of the `ways` in turn; a program with one phase has only one way.
///
/// `on_progress` may ask what was seen in all ways up to now; a break ends the run early and without an error.
///
/// # Errors
/// Why the run ended before its time, with what was seen in all ways until then.
pub fn run_ways(
    device: &dyn Device,
    program: &Program,
    ways: &[Join],
    test: &Test,
    settings: &Settings,
    on_progress: &mut dyn FnMut(&dyn Fn() -> Observation) -> ControlFlow<()>,
) -> Result<Observation, RunError> {
    let only = [ways.first().copied().unwrap_or_default()];
    let ways = if program.phases.len() == 1 { &only } else { ways };
    let part = Settings { budget: part_of(settings.budget, ways.len()), ..settings.clone() };
    let mut all = Observation::default();
    let mut stopped = false;
    for join in ways {
        let ran = run_program(device, program, *join, test, &part, &mut |progress| {
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
