//! Executes a run plan: replays cached verdicts, skips unsupported tests, schedules the rest on worker
//! processes with deadlines, and reports verdicts in plan order.
//!
//! The kinds of a run ([`crate::kinds`]) create jobs and judge answers.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::{Duration, Instant};

use results::folder::{ChangedFile, ResultsFolder};
use results::wire::{RunLine, VerdictWord};
use results::write::RunWriter;
use results::{Ending, Reason};
use runner::pool::{self, AttemptEnd, Health, JobReport, Limits, NotRun, PoolCallbacks, PoolEvent};
use runner::wire::IncompleteReason;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Failure;
pub use crate::observer::RunObserver;
use crate::run_log::{EarlierVerdicts, FinishedLog, RunLog};
use crate::targets::DeviceTarget;
use crate::workers::{self, WorkerTask};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestOnDevice {
    /// Index of its device.
    pub target: usize,
    pub id: String,
    pub skip_reason: Option<String>,
}

/// The result of judging a job.
#[derive(Clone, Debug)]
pub struct JudgedJob {
    /// The verdict.
    pub line: RunLine,
    /// How the job failed.
    pub failure: Option<Reason>,
    /// Unexpected messages of the validation layers.
    pub validation: Vec<String>,
}

/// A kind of run: creates the jobs of workers and judges their answers.
pub trait RunKind: Sync {
    /// The request to a worker.
    type Job: Serialize + Clone;
    /// A progress message of a worker.
    type Snapshot: DeserializeOwned + Clone + Send;
    /// The answer of a worker.
    type Answer: DeserializeOwned + pool::PoolAnswer + Send;

    fn targets(&self) -> Vec<&DeviceTarget>;

    /// Returns every test on every device, in plan order.
    fn test_runs(&self) -> Vec<TestOnDevice>;

    /// Returns the task that workers are started for.
    fn task(&self) -> WorkerTask;

    /// Returns the limits for the workers of a device with `waiting` tests left.
    fn limits(&self, target: usize, waiting: usize) -> Limits;

    /// Returns the time during which tests of a device may start, unless the limits contain it.
    fn start_time_limit(&self) -> Option<Duration> {
        None
    }

    /// Returns the job of a test; no test of the device follows if `is_last`.
    fn create_job(&self, cell: usize, is_last: bool, share: Option<Duration>) -> Self::Job;

    /// Returns a job for its next attempt, after `earlier` ones.
    fn for_attempt(&self, job: Self::Job, _earlier: u32) -> Self::Job {
        job
    }

    /// Returns a job with smaller submissions, after `lost` attempts lost the device: a watchdog may have
    /// reset it. Kinds whose submissions the user defines return it unchanged.
    fn with_smaller_submissions(&self, job: Self::Job, _lost: u32) -> Self::Job {
        job
    }

    /// Returns a health check for a device. It must succeed after each failure that leaves a worker unusable.
    fn health_check(&self, _target: usize) -> Option<Self::Job> {
        None
    }

    /// Returns why an answer is incomplete.
    fn incomplete_reason(answer: &Self::Answer) -> Option<&IncompleteReason>;

    /// Returns the instances and the seconds of dispatches in a progress message.
    fn snapshot_progress(snapshot: &Self::Snapshot) -> (u64, f64);

    fn skipped_line(&self, cell: usize, missing: &str) -> RunLine;

    /// Returns a recorded line as it follows from its counts.
    ///
    /// # Errors
    /// The first part of the line that does not follow from them.
    fn verify_recorded(&self, _cell: usize, line: &RunLine) -> Result<RunLine, String> {
        Ok(line.clone())
    }

    /// Judges the result of a job. `before` is the failure of the last job that failed.
    fn judge(
        &self,
        cell: usize,
        report: JobReport<Self::Snapshot, Self::Answer>,
        before: Option<Reason>,
    ) -> JudgedJob;
}

/// The result of a job.
pub type ReportOf<K> = JobReport<<K as RunKind>::Snapshot, <K as RunKind>::Answer>;
/// An event of the worker pool.
pub type EventOf<'a, K> = PoolEvent<'a, <K as RunKind>::Snapshot, <K as RunKind>::Answer>;

/// Runs jobs in workers, which end before the call returns.
pub trait WorkerPool<K: RunKind>: Sync {
    /// Runs `jobs` jobs on a device.
    fn run(
        &self,
        kind: &K,
        target: &DeviceTarget,
        limits: &Limits,
        jobs: usize,
        job: &mut dyn FnMut(usize, Option<Duration>) -> K::Job,
        event: &mut dyn FnMut(EventOf<'_, K>) -> ControlFlow<()>,
    );
}

/// Workers that are processes of this program.
#[derive(Clone, Debug)]
pub struct ProcessPool {
    program: PathBuf,
}

impl ProcessPool {
    /// Uses the running executable for workers.
    ///
    /// # Errors
    /// If its path is unknown.
    pub fn new() -> Result<ProcessPool, Failure> {
        Ok(ProcessPool { program: workers::program_path()? })
    }
}

impl<K: RunKind> WorkerPool<K> for ProcessPool {
    fn run(
        &self,
        kind: &K,
        target: &DeviceTarget,
        limits: &Limits,
        jobs: usize,
        job: &mut dyn FnMut(usize, Option<Duration>) -> K::Job,
        event: &mut dyn FnMut(EventOf<'_, K>) -> ControlFlow<()>,
    ) {
        let task = kind.task();
        let command = &mut || target.worker_environment.command(&self.program, &task);
        pool::run(limits, jobs, PoolCallbacks { make_command: command, make_job: job, on_event: event });
    }
}

/// Returns how a job ended, or the skip reason. `before` is the failure of the last job that failed.
pub(crate) fn job_ending<K: RunKind>(
    end: &AttemptEnd<K::Answer>,
    before: Option<Reason>,
) -> Result<Ending, String> {
    Ok(match end {
        AttemptEnd::Answered(answer) => match K::incomplete_reason(answer) {
            None => Ending::Finished,
            Some(IncompleteReason::NotPlaceable(what) | IncompleteReason::Lacks(what)) => {
                return Err(what.clone());
            }
            Some(IncompleteReason::NullDevice) => Ending::NullDevice,
            Some(reason @ (IncompleteReason::DeviceLost(_) | IncompleteReason::NoDevice(_))) => {
                Ending::DeviceLost(reason.to_string())
            }
            Some(reason @ IncompleteReason::TimedOut(_)) => Ending::TimedOut(reason.to_string()),
            Some(reason @ IncompleteReason::Disagreement(_)) => Ending::CountsDisagree(reason.to_string()),
            Some(
                reason @ (IncompleteReason::Test(_)
                | IncompleteReason::Stress(_)
                | IncompleteReason::Driver(_)
                | IncompleteReason::Internal(_)),
            ) => Ending::Crashed(reason.to_string()),
        },
        AttemptEnd::Failed(failure @ pool::WorkerFailure::TimedOut { .. }) => {
            Ending::TimedOut(failure.to_string())
        }
        AttemptEnd::Failed(
            failure @ (pool::WorkerFailure::Crashed { .. }
            | pool::WorkerFailure::OutOfMemory { .. }
            | pool::WorkerFailure::Garbled { .. }
            | pool::WorkerFailure::CannotStart { .. }),
        ) => Ending::Crashed(failure.to_string()),
        AttemptEnd::NotRun(why @ NotRun::TimeIsUp) => Ending::NoTime(why.to_string()),
        AttemptEnd::NotRun(why @ NotRun::DeviceGone { .. }) => Ending::DeviceLost(why.to_string()),
        AttemptEnd::NotRun(why @ NotRun::GivenUp { .. }) => match before {
            Some(Reason::TimedOut) => Ending::TimedOut(why.to_string()),
            Some(Reason::DeviceLost) => Ending::DeviceLost(why.to_string()),
            _ => Ending::Crashed(why.to_string()),
        },
    })
}

/// Returns how a run failed, if the device or the worker is the cause.
pub(crate) fn device_failure(ending: &Result<Ending, String>) -> Option<Reason> {
    let (reason, _) = ending.as_ref().ok()?.failure()?;
    // A run that never started is not evidence about the device.
    Some(reason).filter(|reason| matches!(reason, Reason::TimedOut | Reason::Crashed | Reason::DeviceLost))
}

#[derive(Debug)]
pub struct RunResult {
    /// The results folder, with its reports.
    pub folder: ResultsFolder,
    /// The verdicts in plan order. An interrupted run has placeholder lines for missing verdicts.
    pub lines: Vec<RunLine>,
    /// The files of the folder that another process changed.
    pub changed_files: Vec<ChangedFile>,
    /// The number of unexpected messages of the validation layers.
    pub validation_messages: usize,
    /// The run was interrupted.
    pub is_interrupted: bool,
}

pub struct Run<'a, K: RunKind> {
    /// Creates jobs and judges answers.
    pub kind: &'a K,
    pub workers: &'a dyn WorkerPool<K>,
    pub observer: &'a dyn RunObserver,
    /// Set to end the run.
    pub interrupt_flag: &'a AtomicBool,
    /// Recorded verdicts that are reported again instead of running the test.
    pub reused_verdicts: &'a EarlierVerdicts,
}

/// An event for the judging thread.
enum WorkerEvent<K: RunKind> {
    Progress(usize, K::Snapshot),
    /// The next job has ended.
    Finished(ReportOf<K>),
}

/// Largest number of events that wait for judgement. Without time, 100,000 tests end at once.
const MAX_WAITING_EVENTS: usize = 1024;

/// Totals over the jobs judged so far.
#[derive(Default)]
struct RunTotals {
    validation_messages: usize,
    last_failure: Option<Reason>,
}

impl<K: RunKind> Run<'_, K> {
    /// Runs everything that is not done, device by device, and finishes the folder.
    ///
    /// # Errors
    /// If the journal or the output cannot be written.
    pub fn execute(
        &self,
        folder: ResultsFolder,
        mut done: EarlierVerdicts,
        writer: &mut dyn RunWriter,
    ) -> Result<RunResult, Failure> {
        let cells = self.kind.test_runs();
        let ids = cells.iter().map(|cell| cell.id.clone()).collect();
        let mut log = RunLog::new(folder, ids, &mut *writer, self.observer)?;
        let mut totals = RunTotals::default();
        for (number, target) in self.kind.targets().into_iter().enumerate() {
            let mut waiting = Vec::new();
            for (index, cell) in cells.iter().enumerate().filter(|(_, cell)| cell.target == number) {
                let key = (target.name.clone(), cell.id.clone());
                if let Some(line) = self.reused_verdicts.get(&key).filter(|_| !done.contains_key(&key)) {
                    log.record_verdict(index, line.clone())?;
                    continue;
                }
                match (done.remove(&key), &cell.skip_reason) {
                    // What the plan skips, it skips again for the reason that it finds now.
                    (Some(line), Some(missing)) if line.verdict == VerdictWord::Skipped => {
                        log.replay_verdict(index, self.kind.skipped_line(index, missing))?;
                    }
                    (Some(line), _) => {
                        // The line of a skipped test has a kernel hash too, except if the test had no kernel
                        // when it was recorded. A test that did not end may have none.
                        let (recorded_kernel, planned_kernel) =
                            (&line.hashes.kernel, self.kind.skipped_line(index, "").hashes.kernel);
                        let had_no_kernel = recorded_kernel.is_empty()
                            && matches!(line.verdict, VerdictWord::Skipped | VerdictWord::Inconclusive);
                        let is_other_kernel = !had_no_kernel
                            && !planned_kernel.is_empty()
                            && *recorded_kernel != planned_kernel;
                        let recorded = if is_other_kernel {
                            Err("its `hashes.kernel` belongs to another kernel".to_owned())
                        } else {
                            self.kind.verify_recorded(index, &line)
                        };
                        let to_error =
                            |what: String| mismatched_verdict_error(log.folder.path(), &line, &what);
                        log.replay_verdict(index, recorded.map_err(to_error)?)?;
                    }
                    (None, _) if self.is_interrupted() => {}
                    (None, Some(missing)) => {
                        log.record_verdict(index, self.kind.skipped_line(index, missing))?
                    }
                    (None, None) => waiting.push(index),
                }
            }
            totals.last_failure = None;
            self.run_device(number, target, &cells, &waiting, &mut totals, &mut log)?;
        }
        let is_interrupted = self.is_interrupted() && log.lines.iter().any(Option::is_none);
        self.observer.on_finish();
        let FinishedLog { folder, lines, changed_files, printed } = log.finish()?;
        printed?;
        writer.finish().map_err(crate::run_log::stdout_failure)?;
        let RunTotals { validation_messages, .. } = totals;
        Ok(RunResult { folder, lines, changed_files, validation_messages, is_interrupted })
    }

    fn is_interrupted(&self) -> bool {
        self.interrupt_flag.load(Ordering::Relaxed)
    }

    /// Runs tests of a device. After each failure that requires a health check, it starts a fresh worker.
    fn run_device(
        &self,
        number: usize,
        target: &DeviceTarget,
        cells: &[TestOnDevice],
        mut waiting: &[usize],
        totals: &mut RunTotals,
        log: &mut RunLog<'_>,
    ) -> Result<(), Failure> {
        let deadline = self.kind.start_time_limit().map(|time| Instant::now() + time);
        let mut not_run = None;
        let lost = AtomicU32::new(0);
        while !waiting.is_empty() && !self.is_interrupted() {
            let is_late = deadline.is_some_and(|deadline| Instant::now() >= deadline);
            if let Some(why) = not_run.take().or(is_late.then_some(NotRun::TimeIsUp)) {
                for (job, cell) in waiting.iter().enumerate().take_while(|_| !self.is_interrupted()) {
                    let report = JobReport::not_run(job, why.clone());
                    log.record_verdict(*cell, self.kind.judge(*cell, report, totals.last_failure).line)?;
                }
                return Ok(());
            }
            let (judged_count, is_spoiled) = self.run_until_health_check(
                (number, target, &lost),
                deadline,
                cells,
                waiting,
                totals,
                &mut *log,
            )?;
            waiting = waiting.get(judged_count..).unwrap_or_default();
            if is_spoiled {
                not_run = self.failed_health_check(number, target).map(|why| NotRun::DeviceGone { why });
            } else if judged_count == 0 {
                break;
            }
        }
        Ok(())
    }

    /// Runs tests of a device until one fails so that a health check is required. Returns the number of
    /// verdicts, and true if the last test failed so. `lost` counts the attempts that lost the device.
    fn run_until_health_check(
        &self,
        (number, target, lost): (usize, &DeviceTarget, &AtomicU32),
        deadline: Option<Instant>,
        cells: &[TestOnDevice],
        waiting: &[usize],
        totals: &mut RunTotals,
        log: &mut RunLog<'_>,
    ) -> Result<(usize, bool), Failure> {
        let limits = self.kind.limits(number, waiting.len());
        let needs_health_check = self.kind.health_check(number).is_some();
        let is_last = |report: &ReportOf<K>| {
            (needs_health_check && spoils_worker::<K>(report))
                || deadline.is_some_and(|deadline| Instant::now() >= deadline)
        };
        let (events, inbox) = sync_channel::<Box<WorkerEvent<K>>>(MAX_WAITING_EVENTS);
        // Judging may take seconds. In the pool's thread, it would delay killing workers that exceed their
        // deadline.
        std::thread::scope(|scope| {
            let workers = self.workers;
            let (kind, interrupted) = (self.kind, self.interrupt_flag);
            let pool = std::thread::Builder::new().spawn_scoped(scope, move || {
                let mut attempts = vec![0; waiting.len()];
                workers.run(
                    kind,
                    target,
                    &limits,
                    waiting.len(),
                    &mut |number, share| {
                        let cell_at = |index: usize| waiting.get(index).copied();
                        let cell = cell_at(number).unwrap_or_default();
                        let job = kind.create_job(cell, cell_at(number + 1).is_none(), share);
                        let earlier =
                            attempts.get_mut(number).map_or(0, |made| std::mem::replace(made, *made + 1));
                        let job = kind.for_attempt(job, earlier);
                        kind.with_smaller_submissions(job, lost.load(Ordering::Relaxed))
                    },
                    &mut |event| {
                        // The same signal may have killed the worker, so that its end is not a verdict.
                        if interrupted.load(Ordering::Relaxed) {
                            return ControlFlow::Break(());
                        }
                        let ended = match &event {
                            PoolEvent::Retried(attempt) => Some(&attempt.end),
                            PoolEvent::Finished(report) => Some(&report.last.end),
                            PoolEvent::Progress { .. } => None,
                        };
                        lost.fetch_add(ended.is_some_and(lost_device::<K>).into(), Ordering::Relaxed);
                        forward_event::<K>(&events, event, &is_last)
                    },
                );
            });
            pool.map_err(|error| Failure::not_started(&error))?;
            let (mut judged_count, mut is_spoiled) = (0, false);
            // If a verdict cannot be recorded, the channel closes, and the pool ends.
            for event in inbox {
                match *event {
                    WorkerEvent::Progress(job, snapshot) => {
                        if let Some(cell) = waiting.get(job).and_then(|index| cells.get(*index)) {
                            let (instances, seconds) = K::snapshot_progress(&snapshot);
                            self.observer.on_progress(&target.name, &cell.id, instances, seconds);
                        }
                    }
                    WorkerEvent::Finished(report) => {
                        let Some(index) = waiting.get(judged_count).copied() else { break };
                        judged_count += 1;
                        is_spoiled = needs_health_check && spoils_worker::<K>(&report);
                        let JudgedJob { line, failure, validation } =
                            self.kind.judge(index, report, totals.last_failure);
                        totals.last_failure = failure.or(totals.last_failure);
                        totals.validation_messages += validation.len();
                        for message in validation {
                            self.observer.on_message(&format!("validation, {}: {message}", line.id));
                        }
                        log.record_verdict(index, line)?;
                    }
                }
            }
            Ok((judged_count, is_spoiled))
        })
    }

    /// Runs the health check of a device; returns the reason if it fails.
    fn failed_health_check(&self, number: usize, target: &DeviceTarget) -> Option<String> {
        let job = self.kind.health_check(number)?;
        let mut failure = Some("it does not respond".to_owned());
        let limits = self.kind.limits(number, 1);
        self.workers.run(self.kind, target, &limits, 1, &mut |_, _| job.clone(), &mut |event| {
            if let PoolEvent::Finished(report) = event {
                failure = match &report.last.end {
                    AttemptEnd::Answered(answer) if pool::PoolAnswer::health(answer) == Health::Good => None,
                    AttemptEnd::Answered(answer) => K::incomplete_reason(answer).map(ToString::to_string),
                    AttemptEnd::Failed(failure) => Some(failure.to_string()),
                    AttemptEnd::NotRun(why) => Some(why.to_string()),
                };
            }
            ControlFlow::Continue(())
        });
        failure
    }
}

/// Returns the failure for a recorded verdict that does not belong to the plan of this run.
fn mismatched_verdict_error(folder: &Path, line: &RunLine, what: &str) -> Failure {
    Failure::input_message(format!(
        "{}: the verdict for `{}` on `{}` does not belong to this run: {what}",
        folder.display(),
        line.id,
        line.device
    ))
}

/// Returns true if the worker must not run another job.
fn spoils_worker<K: RunKind>(report: &ReportOf<K>) -> bool {
    match &report.last.end {
        AttemptEnd::Answered(answer) => {
            K::incomplete_reason(answer).is_some_and(IncompleteReason::invalidates_worker)
        }
        AttemptEnd::Failed(_) => true,
        AttemptEnd::NotRun(_) => false,
    }
}

/// Returns true if an attempt lost the device.
fn lost_device<K: RunKind>(end: &AttemptEnd<K::Answer>) -> bool {
    match end {
        AttemptEnd::Answered(answer) => {
            matches!(K::incomplete_reason(answer), Some(IncompleteReason::DeviceLost(_)))
        }
        AttemptEnd::Failed(_) | AttemptEnd::NotRun(_) => false,
    }
}

/// Forwards a pool event to the judging thread; breaks after the last event.
fn forward_event<K: RunKind>(
    events: &SyncSender<Box<WorkerEvent<K>>>,
    event: EventOf<'_, K>,
    is_last: &dyn Fn(&ReportOf<K>) -> bool,
) -> ControlFlow<()> {
    let (worker_event, is_end) = match event {
        PoolEvent::Retried(_) => return ControlFlow::Continue(()),
        PoolEvent::Progress { job, snapshot } => (WorkerEvent::Progress(job, snapshot.clone()), false),
        PoolEvent::Finished(report) => {
            let is_end = is_last(&report);
            (WorkerEvent::Finished(report), is_end)
        }
    };
    match events.send(Box::new(worker_event)) {
        Ok(()) if !is_end => ControlFlow::Continue(()),
        Ok(()) | Err(_) => ControlFlow::Break(()),
    }
}
