//! Litmus tests as a kind of run: each is run for its share of the time, or so many instances, and judged by its model.

pub mod mutants;
pub mod plan;
mod verdict;

use std::time::{Duration, Instant};

use litmus::{Observation, Overlap};
use results::Reason;
use results::wire::RunLine;
use runner::Settings;
use runner::pool::{Limits, Report};
use runner::wire::{Answer, Failure, Job, Snapshot};

use super::{RunOptions, seed_of};
use crate::misbehave::Misbehaviour;
use crate::run::{self, Judged, Kind};
use crate::targets::Target;
use crate::workers::Task;
use plan::{Cell, LitmusPlan};

/// The least time for the tests of a device, however long the predictions took.
const LEAST_TIME: Duration = Duration::from_millis(500);

/// How long each test is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestBudget {
    /// All tests on one device together.
    Time(Duration),
    /// Each test on each device.
    Instances(u64),
}

impl TestBudget {
    /// The time, where it is one.
    pub fn time(self) -> Option<Duration> {
        match self {
            TestBudget::Time(time) => Some(time),
            TestBudget::Instances(_) => None,
        }
    }
}

impl std::fmt::Display for TestBudget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            TestBudget::Time(time) => write!(f, "{} a device", humantime::format_duration(*time)),
            TestBudget::Instances(instances) => write!(f, "{instances} instances a test"),
        }
    }
}

/// A plan that is run.
pub struct Litmus<'a> {
    /// The plan.
    pub plan: &'a LitmusPlan,
    /// What was asked for.
    pub options: &'a RunOptions,
    /// How long.
    pub budget: TestBudget,
    /// The seed of the whole run.
    pub seed: u64,
    /// When the program started: predictions count against the time.
    pub started: Instant,
    /// A hook for tests.
    pub misbehaviour: &'a Misbehaviour,
}

impl Kind for Litmus<'_> {
    type Job = Job;
    type Snapshot = Snapshot;
    type Answer = Answer;

    fn targets(&self) -> Vec<&Target> {
        self.plan.targets.iter().collect()
    }

    fn cells(&self) -> Vec<run::Cell> {
        let cell = |cell: &Cell| run::Cell {
            target: cell.target,
            id: self.plan.items[cell.item].loaded.source.id.clone(),
            missing: cell.ready.as_ref().err().cloned(),
        };
        self.plan.cells.iter().map(cell).collect()
    }

    fn task(&self) -> Task {
        Task::Run { validate: self.options.validate }
    }

    fn limits(&self, target: usize, waiting: usize) -> Limits {
        Limits {
            workers: self.options.jobs,
            time: self.share_of(target, waiting),
            retries: self.options.retries,
            ..Limits::DEFAULT
        }
    }

    fn job(&self, cell: usize, next: Option<usize>, share: Option<Duration>) -> Job {
        // With several workers, nobody knows which of them gets the next one; and CPU drivers have no time to spare for it.
        let target = &self.plan.targets[self.plan.cells[cell].target];
        let ahead = self.options.jobs == 1 && !target.listed.capabilities.is_cpu;
        let next = next.filter(|_| ahead);
        let next = next.map(|next| Box::new(Job { serial: Vec::new(), ..self.alone(next, None) }));
        Job { next, ..self.alone(cell, share) }
    }

    fn smaller(&self, job: Job, lost: u32) -> Job {
        Job { stress: job.stress.map(|stress| stress.smaller(lost)), ..job }
    }

    fn failure(answer: &Answer) -> Option<&Failure> {
        answer.failure.as_ref()
    }

    fn shown(snapshot: &Snapshot) -> (u64, f64) {
        let seen = Observation::from(&snapshot.observation);
        (seen.instances(), seen.seconds)
    }

    fn skipped(&self, cell: usize, missing: &str) -> RunLine {
        verdict::skipped(self, &self.plan.cells[cell], missing)
    }

    fn contradicts(&self, cell: usize, line: &RunLine) -> Option<String> {
        verdict::contradicts(self, &self.plan.cells[cell], line)
    }

    fn judged(&self, cell: usize, report: Report<Snapshot, Answer>, before: Option<Reason>) -> Judged {
        verdict::judged(self, &self.plan.cells[cell], report, before)
    }
}

impl Litmus<'_> {
    /// The time for all devices, where it is bounded.
    pub fn whole_time(&self) -> Option<Duration> {
        let devices = u32::try_from(self.plan.targets.len()).unwrap_or(u32::MAX);
        self.budget.time().map(|time| time * devices)
    }

    /// The time for `waiting` of the tests of one device. The first device pays for the predictions.
    fn share_of(&self, target: usize, waiting: usize) -> Option<Duration> {
        let TestBudget::Time(time) = self.budget else { return None };
        let time = if target == 0 { time.saturating_sub(self.started.elapsed()) } else { time };
        let runnable = self.plan.cells.iter().filter(|c| c.target == target && c.ready.is_ok()).count();
        let share = waiting as f64 / runnable.max(1) as f64;
        Some(time.mul_f64(share.clamp(0.0, 1.0)).max(LEAST_TIME))
    }

    fn alone(&self, index: usize, share: Option<Duration>) -> Job {
        let cell = &self.plan.cells[index];
        let item = &self.plan.items[cell.item];
        let target = &self.plan.targets[cell.target];
        let instances = match self.budget {
            TestBudget::Instances(instances) => Some(instances),
            TestBudget::Time(_) => None,
        };
        Job {
            id: item.loaded.source.id.clone(),
            text: item.loaded.text.clone(),
            variant: item.variant.to_string(),
            kernel: cell.kernel.clone(),
            device: self.misbehaviour.selector(&item.loaded.source.id, &target.selector),
            stress: Some(target.stress.clone()),
            instances,
            seconds: share.map(|share| share.as_secs_f64()),
            seed: seed_of(self.seed, &item.hash),
            plausible: cell.ready.as_ref().map(|prediction| plausible(prediction)).unwrap_or_default(),
            twin: item.judged.overlap() != Overlap::Ordered,
            serial: serial(cell),
            enough: results::judge::EXERCISED_THRESHOLD,
            patience: Settings::PATIENCE.as_secs_f64(),
            next: None,
        }
    }
}

/// The outcomes that a serial order of whole threads produces.
fn serial(cell: &Cell) -> Vec<Vec<u64>> {
    let Ok(prediction) = &cell.ready else { return Vec::new() };
    let serial = prediction.outcomes.iter().filter(|(_, says)| says.serial);
    serial.map(|(outcome, _)| outcome.0.iter().map(|value| value.0).collect()).collect()
}

/// The words that an instance may show by a prediction.
pub(crate) fn plausible(prediction: &litmus::Prediction) -> Vec<u32> {
    let outcomes = prediction.outcomes.keys();
    let mut words: Vec<u32> = outcomes.flat_map(|outcome| &outcome.0).map(|value| value.0 as u32).collect();
    words.sort_unstable();
    words.dedup();
    words
}
