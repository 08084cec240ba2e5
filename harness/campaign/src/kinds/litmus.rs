//! Runs of litmus tests: each test runs for its share of the time or for a number of instances, and its model
//! judges it.

mod expected_outcomes;
pub mod mutants;
pub mod plan;
pub mod planned;
pub mod recorded;
mod verdict;

use std::time::{Duration, Instant};

use litmus::{Outcome, Overlap, Prediction};
use results::Reason;
use results::wire::{INSTANCES_PER_TEST_SUFFIX, RunLine};
use runner::pool::{JobReport, Limits};
use runner::wire::{IncompleteReason, Job, JobResult, Snapshot};
use runner::{ContentionTimeShares, RunSettings};

use super::RunOptions;
use crate::fault_injection::FaultInjection;
use crate::run::{self, JudgedJob, RunKind};
use crate::targets::DeviceTarget;
use crate::workers::WorkerTask;
use plan::LitmusPlan;
use planned::DeviceTest;

/// The minimum time for the tests of a device, after long preparations.
const MIN_DEVICE_TIME: Duration = Duration::from_millis(500);
/// The minimum share of the budget for the tests of a device, as a divisor.
const MIN_DEVICE_SHARE_DIVISOR: u32 = 4;

/// The time or the instances for the tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestBudget {
    /// The time for all tests on one device together.
    Time(Duration),
    /// The instances of each test on each device.
    Instances(u64),
}

impl TestBudget {
    /// Returns the time, if the budget is one.
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
            TestBudget::Instances(instances) => write!(f, "{instances}{INSTANCES_PER_TEST_SUFFIX}"),
        }
    }
}

/// A plan with the options of its run.
pub struct LitmusKind<'a> {
    pub plan: &'a LitmusPlan,
    pub options: &'a RunOptions,
    /// The time or the instances of the tests.
    pub budget: TestBudget,
    /// The seed of the whole run.
    pub seed: u64,
    /// The start of the program. The time for predictions counts against the budget.
    pub started: Instant,
    /// Fault injection for tests.
    pub fault_injection: &'a FaultInjection,
}

impl RunKind for LitmusKind<'_> {
    type Job = Job;
    type Snapshot = Snapshot;
    type Answer = JobResult;

    fn targets(&self) -> Vec<&DeviceTarget> {
        self.plan.targets.iter().collect()
    }

    fn test_runs(&self) -> Vec<run::TestOnDevice> {
        let cell = |cell: &DeviceTest| run::TestOnDevice {
            target: cell.target_index,
            id: self.plan.tests[cell.test_index].loaded.source.id.clone(),
            skip_reason: cell.skip_reason().cloned(),
        };
        self.plan.device_tests.iter().map(cell).collect()
    }

    fn task(&self) -> WorkerTask {
        WorkerTask::Run { validate: self.options.validate }
    }

    fn limits(&self, target: usize, waiting: usize) -> Limits {
        Limits {
            workers: self.options.jobs,
            time: self.device_time(target, waiting),
            retries: self.options.retries,
            repeats: self.options.repeats.max(1),
            grace: self.options.grace,
            ..Limits::with_memory_limit()
        }
    }

    fn create_job(&self, cell: usize, is_last: bool, share: Option<Duration>) -> Job {
        let target = &self.plan.targets[self.plan.device_tests[cell].target_index];
        let parts = share
            .map_or_else(ContentionTimeShares::default, |share| self.time_shares(target, share, is_last));
        Job { parts, ..self.single_job(cell, share) }
    }

    fn for_attempt(&self, job: Job, earlier: u32) -> Job {
        let seed = if self.options.repeats > 1 { runner::repeat_seed(job.seed, earlier) } else { job.seed };
        Job { seed, ..job }
    }

    fn with_smaller_submissions(&self, job: Job, lost: u32) -> Job {
        Job { stress: job.stress.map(|stress| stress.halved(lost)), ..job }
    }

    fn incomplete_reason(answer: &JobResult) -> Option<&IncompleteReason> {
        answer.failure.as_ref()
    }

    fn snapshot_progress(snapshot: &Snapshot) -> (u64, f64) {
        (snapshot.observation.accounted_instances(), snapshot.observation.seconds)
    }

    fn skipped_line(&self, cell: usize, missing: &str) -> RunLine {
        verdict::skipped_line(self, &self.plan.device_tests[cell], missing)
    }

    fn verify_recorded(&self, cell: usize, line: &RunLine) -> Result<RunLine, String> {
        verdict::verify_recorded(self, &self.plan.device_tests[cell], line)
    }

    fn judge(
        &self,
        cell: usize,
        report: JobReport<Snapshot, JobResult>,
        before: Option<Reason>,
    ) -> JudgedJob {
        verdict::judge_report(self, &self.plan.device_tests[cell], report, before)
    }
}

impl LitmusKind<'_> {
    /// Returns the time for all devices, if it is bounded.
    pub fn total_time(&self) -> Option<Duration> {
        let devices = u32::try_from(self.plan.targets.len()).unwrap_or(u32::MAX);
        self.budget.time().map(|time| time * devices)
    }

    /// Returns the time for `waiting` of the tests of one device. The time of the first device includes the
    /// predictions.
    fn device_time(&self, target: usize, waiting: usize) -> Option<Duration> {
        let TestBudget::Time(time) = self.budget else { return None };
        let prepared = if target == 0 { self.started.elapsed() } else { Duration::ZERO };
        let time = time.saturating_sub(prepared).max(time / MIN_DEVICE_SHARE_DIVISOR);
        let runnable = self
            .plan
            .device_tests
            .iter()
            .filter(|c| c.target_index == target && c.skip_reason().is_none())
            .count();
        let share = waiting as f64 / runnable.max(1) as f64;
        Some(time.mul_f64(share.clamp(0.0, 1.0)).max(MIN_DEVICE_TIME))
    }

    /// Returns the parts of its share of the time that a test may use. An exercised test leaves half of its
    /// share to later tests. One that is not exercised may use more, unless earlier tests took an amount such that
    /// later ones would get too little.
    fn time_shares(&self, target: &DeviceTarget, share: Duration, is_last: bool) -> ContentionTimeShares {
        let is_on_target = |cell: &&DeviceTest| {
            self.plan
                .targets
                .get(cell.target_index)
                .is_some_and(|test_target| test_target.name == target.name)
        };
        let runnable = self
            .plan
            .device_tests
            .iter()
            .filter(is_on_target)
            .filter(|cell| cell.skip_reason().is_none())
            .count();
        let runs = runnable.max(1) as f64 * f64::from(self.options.repeats.max(1));
        let even_share = self.budget.time().unwrap_or_default().div_f64(runs);
        split_share(share, even_share, is_last)
    }

    fn single_job(&self, index: usize, share: Option<Duration>) -> Job {
        let cell = &self.plan.device_tests[index];
        let item = &self.plan.tests[cell.test_index];
        let target = &self.plan.targets[cell.target_index];
        let prediction = self.plan.prediction(cell).as_deref().ok();
        let instances = match self.budget {
            TestBudget::Instances(instances) => Some(instances.div_ceil(self.options.repeats.max(1).into())),
            TestBudget::Time(_) => None,
        };
        Job {
            id: item.loaded.source.id.clone(),
            text: item.loaded.text.clone(),
            variant: item.variant.to_string(),
            kernel: cell.kernel_hash.clone(),
            device: self.fault_injection.mark_selector(&item.loaded.source.id, &target.selector),
            stress: Some(target.stress.clone()),
            instances,
            seconds: share.map(|share| share.as_secs_f64()),
            seed: runner::test_seed(self.seed, &item.hash),
            plausible: prediction.map(plausible_values).unwrap_or_default(),
            twin: item.judged_test().thread_overlap() != Overlap::Ordered,
            serial: prediction.map(serial_outcomes).unwrap_or_default(),
            enough: results::judge::EXERCISED_THRESHOLD,
            parts: ContentionTimeShares::default(),
            expected: cell.expected_outcomes.clone(),
            calibrated: cell.calibrated_outcomes.clone(),
            patience: RunSettings::SUBMISSION_TIMEOUT.as_secs_f64(),
        }
    }
}

/// Computes the parts for a `share` of the time. `even_share` is the share of each test if none took more.
fn split_share(share: Duration, even_share: Duration, is_last: bool) -> ContentionTimeShares {
    ContentionTimeShares {
        exercised: if is_last { 100 } else { 50 },
        // Overhead between tests reduces the shares by about a quarter.
        seeking: if share * 5 >= even_share * 3 { 250 } else { 100 },
    }
}

/// Returns the outcomes of executing whole threads in sequence.
fn serial_outcomes(prediction: &Prediction) -> Vec<Outcome> {
    let serial = prediction.outcomes.iter().filter(|(_, predicted)| predicted.serial);
    serial.map(|(outcome, _)| outcome.clone()).collect()
}

/// Returns the values that an instance may show by the prediction.
pub(crate) fn plausible_values(prediction: &Prediction) -> Vec<u32> {
    let outcomes = prediction.outcomes.keys();
    let mut words: Vec<u32> = outcomes.flat_map(|outcome| &outcome.0).map(|value| value.0 as u32).collect();
    words.sort_unstable();
    words.dedup();
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the times of `count` tests in sequence; tests that `is_exercised` rejects use their whole
    /// part.
    fn times(count: u32, is_exercised: impl Fn(u32) -> bool) -> Vec<Duration> {
        let total = Duration::from_secs(15);
        let mut remaining = total;
        let mut times = Vec::new();
        for test in 0..count {
            let share = remaining / (count - test);
            let parts = split_share(share, total / count, test + 1 == count);
            let percent = if is_exercised(test) { parts.exercised } else { parts.seeking };
            let used = (share * percent / 100).min(remaining);
            remaining -= used;
            times.push(used);
        }
        times
    }

    #[test]
    fn long_searches_leave_time_for_later_tests() {
        let even = Duration::from_secs(15) / 120;
        let longest = times(120, |test| test != 7)[7];
        assert!(longest > even * 2, "{longest:?}");
        // Also if no test is ever exercised.
        for times in [times(120, |_| false), times(120, |test| test >= 60), times(120, |test| test < 60)] {
            assert!(times.iter().all(|time| *time * 5 > even), "{times:?}");
        }
    }
}
