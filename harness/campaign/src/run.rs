//! Executes a run plan: replays cached verdicts, skips unsupported tests, schedules the rest on worker
//! processes with deadlines, and reports verdicts in plan order.
//!
//! The kinds of a run ([`crate::kinds`]) provide jobs and judge answers.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use results::folder::ResultsFolder;
use results::wire::{RunLine, VerdictWord};
use results::write::RunWriter;
use results::{Ending, Reason};
use runner::pool::{self, AttemptEnd, Health, JobReport, Limits, NotRun, PoolCallbacks, PoolEvent};
use runner::wire::IncompleteReason;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Failure;
use crate::book::{Book, Done};
use crate::targets::DeviceTarget;
pub use crate::watch::Watch;
use crate::workers::{self, Task};

/// A test on a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestOnDevice {
    /// Index of its device.
    pub target: usize,
    /// The id of the test.
    pub id: String,
    /// The skip reason.
    pub missing: Option<String>,
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

    /// Returns the devices.
    fn targets(&self) -> Vec<&DeviceTarget>;

    /// Returns every test on every device, in plan order.
    fn cells(&self) -> Vec<TestOnDevice>;

    /// Returns the task that workers are started for.
    fn task(&self) -> Task;

    /// Returns the limits for the workers of a device with `waiting` tests left.
    fn limits(&self, target: usize, waiting: usize) -> Limits;

    /// Returns the time during which tests of a device may start, unless the limits contain it.
    fn time(&self) -> Option<Duration> {
        None
    }

    /// Returns the job of a test. `next` is the test that probably follows, to compile it ahead.
    fn job(&self, cell: usize, next: Option<usize>, share: Option<Duration>) -> Self::Job;

    /// Returns a job with smaller submissions, after `lost` attempts lost the device: a watchdog may have
    /// reset it. Kinds whose submissions the user defines return it unchanged.
    fn smaller(&self, job: Self::Job, _lost: u32) -> Self::Job {
        job
    }

    /// Returns a health check for a device. It must succeed after each failure that leaves a worker unusable.
    fn health(&self, _target: usize) -> Option<Self::Job> {
        None
    }

    /// Returns why an answer is incomplete.
    fn failure(answer: &Self::Answer) -> Option<&IncompleteReason>;

    /// Returns the instances and the seconds of dispatches in a progress message.
    fn shown(snapshot: &Self::Snapshot) -> (u64, f64);

    /// Returns the line of a skipped test.
    fn skipped(&self, cell: usize, missing: &str) -> RunLine;

    /// Returns a recorded line as it follows from its counts.
    ///
    /// # Errors
    /// The first part of the line that does not follow from them.
    fn recorded(&self, _cell: usize, line: &RunLine) -> Result<RunLine, String> {
        Ok(line.clone())
    }

    /// Judges the result of a job. `before` is the failure of the last job that failed.
    fn judged(
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
pub trait Workers<K: RunKind>: Sync {
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
pub struct Processes {
    program: PathBuf,
}

impl Processes {
    /// Uses the running executable for workers.
    ///
    /// # Errors
    /// If its path is unknown.
    pub fn new() -> Result<Processes, Failure> {
        Ok(Processes { program: workers::program()? })
    }
}

impl<K: RunKind> Workers<K> for Processes {
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
        let command = &mut || target.process.command(&self.program, &task);
        pool::run(limits, jobs, PoolCallbacks { make_command: command, make_job: job, on_event: event });
    }
}

/// Returns how a job ended, or the skip reason. `before` is the failure of the last job that failed.
pub(crate) fn ending<K: RunKind>(
    end: &AttemptEnd<K::Answer>,
    before: Option<Reason>,
) -> Result<Ending, String> {
    Ok(match end {
        AttemptEnd::Answered(answer) => match K::failure(answer) {
            None => Ending::Finished,
            Some(IncompleteReason::NotPlaceable { rule: what } | IncompleteReason::Lacks { what }) => {
                return Err(what.clone());
            }
            Some(IncompleteReason::NullDevice) => Ending::NullDevice,
            Some(told @ (IncompleteReason::DeviceLost { .. } | IncompleteReason::NoDevice { .. })) => {
                Ending::DeviceLost(told.to_string())
            }
            Some(told @ IncompleteReason::TimedOut { .. }) => Ending::TimedOut(told.to_string()),
            Some(told @ IncompleteReason::Disagreement { .. }) => Ending::CountsDisagree(told.to_string()),
            Some(
                told @ (IncompleteReason::Test { .. }
                | IncompleteReason::Stress { .. }
                | IncompleteReason::Driver { .. }
                | IncompleteReason::Internal { .. }),
            ) => Ending::Crashed(told.to_string()),
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
pub(crate) fn failure_of(ending: &Result<Ending, String>) -> Option<Reason> {
    match ending {
        Ok(Ending::TimedOut(_)) => Some(Reason::TimedOut),
        Ok(Ending::Crashed(_)) => Some(Reason::Crashed),
        Ok(Ending::DeviceLost(_)) => Some(Reason::DeviceLost),
        // A run that never started is not evidence about the device.
        Ok(Ending::Finished | Ending::NullDevice | Ending::NoTime(_) | Ending::CountsDisagree(_))
        | Err(_) => None,
    }
}

/// The result of a run.
#[derive(Debug)]
pub struct Ended {
    /// The results folder, with its reports.
    pub folder: ResultsFolder,
    /// The verdicts in plan order. An interrupted run has placeholder lines for missing verdicts.
    pub lines: Vec<RunLine>,
    /// The number of unexpected messages of the validation layers.
    pub validation_messages: usize,
    /// The run was interrupted.
    pub interrupted: bool,
}

/// A run of one kind.
pub struct Run<'a, K: RunKind> {
    /// Creates jobs and judges answers.
    pub kind: &'a K,
    /// Runs the jobs.
    pub workers: &'a dyn Workers<K>,
    /// Observes the run.
    pub watch: &'a dyn Watch,
    /// Set to end the run.
    pub interrupted: &'a AtomicBool,
    /// Recorded verdicts that are reported again instead of running the test.
    pub remembered: &'a Done,
}

/// An event for the judging thread.
enum Happened<K: RunKind> {
    /// Progress of a job.
    Progress(usize, K::Snapshot),
    /// The next job has ended.
    Finished(ReportOf<K>),
}

/// Totals over the jobs judged so far.
#[derive(Default)]
struct Heard {
    validation_messages: usize,
    last_failure: Option<Reason>,
}

impl<K: RunKind> Run<'_, K> {
    /// Runs everything that is not done, device by device, and finishes the folder.
    ///
    /// # Errors
    /// If the journal or the output cannot be written.
    pub fn go(
        &self,
        folder: ResultsFolder,
        mut done: Done,
        writer: &mut dyn RunWriter,
    ) -> Result<Ended, Failure> {
        let cells = self.kind.cells();
        let ids = cells.iter().map(|cell| cell.id.clone()).collect();
        let mut book = Book::new(folder, ids, &mut *writer, self.watch)?;
        let mut heard = Heard::default();
        for (number, target) in self.kind.targets().into_iter().enumerate() {
            let mut waiting = Vec::new();
            for (index, cell) in cells.iter().enumerate().filter(|(_, cell)| cell.target == number) {
                let key = (target.name.clone(), cell.id.clone());
                if let Some(line) = self.remembered.get(&key).filter(|_| !done.contains_key(&key)) {
                    book.add(index, line.clone())?;
                    continue;
                }
                match (done.remove(&key), &cell.missing) {
                    (Some(line), _) => {
                        // The line of a skipped test has a kernel hash too, except if the test had no kernel
                        // when it was recorded.
                        let (found, own) = (&line.hashes.kernel, self.kind.skipped(index, "").hashes.kernel);
                        let has_none = found.is_empty() && line.verdict == VerdictWord::Skipped;
                        let other = !has_none && !own.is_empty() && *found != own;
                        let recorded = if other {
                            Err("its `hashes.kernel` belongs to another kernel".to_owned())
                        } else {
                            self.kind.recorded(index, &line)
                        };
                        let foreign = |what: String| foreign_verdict_error(book.folder.path(), &line, &what);
                        book.know(index, recorded.map_err(foreign)?)?;
                    }
                    (None, Some(missing)) => book.add(index, self.kind.skipped(index, missing))?,
                    (None, None) => waiting.push(index),
                }
            }
            heard.last_failure = None;
            self.run_device(number, target, &cells, &waiting, &mut heard, &mut book)?;
        }
        let interrupted = self.is_interrupted() && book.lines.iter().any(Option::is_none);
        self.watch.ends();
        let (folder, lines, written) = book.close();
        folder.finish(&lines).map_err(Failure::folder)?;
        written?;
        writer.finish().map_err(crate::book::cannot_print)?;
        Ok(Ended { folder, lines, validation_messages: heard.validation_messages, interrupted })
    }

    fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// Runs tests of a device. After each failure that requires a health check, it starts a fresh worker.
    fn run_device(
        &self,
        number: usize,
        target: &DeviceTarget,
        cells: &[TestOnDevice],
        mut waiting: &[usize],
        heard: &mut Heard,
        book: &mut Book<'_>,
    ) -> Result<(), Failure> {
        let deadline = self.kind.time().map(|time| Instant::now() + time);
        let mut gone = None;
        let lost = AtomicU32::new(0);
        while !waiting.is_empty() && !self.is_interrupted() {
            let late = deadline.is_some_and(|deadline| Instant::now() >= deadline);
            if let Some(why) = gone.take().or(late.then_some(NotRun::TimeIsUp)) {
                for (job, cell) in waiting.iter().enumerate() {
                    let report = JobReport::not_run(job, why.clone());
                    book.add(*cell, self.kind.judged(*cell, report, heard.last_failure).line)?;
                }
                return Ok(());
            }
            let (judged, spoiled) =
                self.run_some((number, target, &lost), deadline, cells, waiting, heard, &mut *book)?;
            waiting = waiting.get(judged..).unwrap_or_default();
            if spoiled {
                gone = self.ill(number, target).map(|why| NotRun::DeviceGone { why });
            } else if judged == 0 {
                break;
            }
        }
        Ok(())
    }

    /// Runs tests of a device until one fails so that a health check is required. Returns the number of
    /// verdicts, and true if the last test failed so. `lost` counts the attempts that lost the device.
    fn run_some(
        &self,
        (number, target, lost): (usize, &DeviceTarget, &AtomicU32),
        deadline: Option<Instant>,
        cells: &[TestOnDevice],
        waiting: &[usize],
        heard: &mut Heard,
        book: &mut Book<'_>,
    ) -> Result<(usize, bool), Failure> {
        let limits = self.kind.limits(number, waiting.len());
        let renews = self.kind.health(number).is_some();
        let over = |report: &ReportOf<K>| {
            (renews && spoils::<K>(report)) || deadline.is_some_and(|deadline| Instant::now() >= deadline)
        };
        let (events, inbox) = channel::<Box<Happened<K>>>();
        // Judging may take seconds. In the pool's thread, it would delay killing workers that exceed their
        // deadline.
        std::thread::scope(|scope| {
            let workers = self.workers;
            let (kind, interrupted) = (self.kind, self.interrupted);
            let pool = std::thread::Builder::new().spawn_scoped(scope, move || {
                workers.run(
                    kind,
                    target,
                    &limits,
                    waiting.len(),
                    &mut |job, share| {
                        let numbered = |number: usize| waiting.get(number).copied();
                        let job = kind.job(numbered(job).unwrap_or_default(), numbered(job + 1), share);
                        kind.smaller(job, lost.load(Ordering::Relaxed))
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
                        forward_event::<K>(&events, event, &over)
                    },
                );
            });
            pool.map_err(|error| Failure::not_started(&error))?;
            let (mut judged, mut spoiled) = (0, false);
            // If a verdict cannot be recorded, the channel closes, and the pool ends.
            for happened in inbox {
                match *happened {
                    Happened::Progress(job, snapshot) => {
                        if let Some(cell) = waiting.get(job).and_then(|index| cells.get(*index)) {
                            let (instances, seconds) = K::shown(&snapshot);
                            self.watch.shows(&target.name, &cell.id, instances, seconds);
                        }
                    }
                    Happened::Finished(report) => {
                        let Some(index) = waiting.get(judged).copied() else { break };
                        judged += 1;
                        spoiled = renews && spoils::<K>(&report);
                        let JudgedJob { line, failure, validation } =
                            self.kind.judged(index, report, heard.last_failure);
                        heard.last_failure = failure.or(heard.last_failure);
                        heard.validation_messages += validation.len();
                        for message in validation {
                            self.watch.says(&format!("validation, {}: {message}", line.id));
                        }
                        book.add(index, line)?;
                    }
                }
            }
            Ok((judged, spoiled))
        })
    }

    /// Runs the health check of a device; returns why it failed, or `None`.
    fn ill(&self, number: usize, target: &DeviceTarget) -> Option<String> {
        let job = self.kind.health(number)?;
        let mut ill = Some("it does not respond".to_owned());
        let limits = self.kind.limits(number, 1);
        self.workers.run(self.kind, target, &limits, 1, &mut |_, _| job.clone(), &mut |event| {
            if let PoolEvent::Finished(report) = event {
                ill = match &report.last.end {
                    AttemptEnd::Answered(answer) if pool::PoolAnswer::health(answer) == Health::Good => None,
                    AttemptEnd::Answered(answer) => K::failure(answer).map(ToString::to_string),
                    AttemptEnd::Failed(failure) => Some(failure.to_string()),
                    AttemptEnd::NotRun(why) => Some(why.to_string()),
                };
            }
            ControlFlow::Continue(())
        });
        ill
    }
}

/// Returns the failure for a recorded verdict that does not belong to the plan of this run.
fn foreign_verdict_error(folder: &Path, line: &RunLine, what: &str) -> Failure {
    Failure::input_message(format!(
        "{}: the verdict for `{}` on `{}` does not belong to this run: {what}",
        folder.display(),
        line.id,
        line.device
    ))
}

/// Returns true if the worker, and perhaps the device, must not run another job.
fn spoils<K: RunKind>(report: &ReportOf<K>) -> bool {
    match &report.last.end {
        AttemptEnd::Answered(answer) => K::failure(answer).is_some_and(IncompleteReason::invalidates_worker),
        AttemptEnd::Failed(_) => true,
        AttemptEnd::NotRun(_) => false,
    }
}

/// Returns true if an attempt lost the device.
fn lost_device<K: RunKind>(end: &AttemptEnd<K::Answer>) -> bool {
    match end {
        AttemptEnd::Answered(answer) => {
            matches!(K::failure(answer), Some(IncompleteReason::DeviceLost { .. }))
        }
        AttemptEnd::Failed(_) | AttemptEnd::NotRun(_) => false,
    }
}

/// Forwards a pool event to the judging thread; breaks after the last event.
fn forward_event<K: RunKind>(
    events: &Sender<Box<Happened<K>>>,
    event: EventOf<'_, K>,
    is_last: &dyn Fn(&ReportOf<K>) -> bool,
) -> ControlFlow<()> {
    let (happened, last) = match event {
        PoolEvent::Retried(_) => return ControlFlow::Continue(()),
        PoolEvent::Progress { job, snapshot } => (Happened::Progress(job, snapshot.clone()), false),
        PoolEvent::Finished(report) => {
            let last = is_last(&report);
            (Happened::Finished(report), last)
        }
    };
    match events.send(Box::new(happened)) {
        Ok(()) if !last => ControlFlow::Continue(()),
        Ok(()) | Err(_) => ControlFlow::Break(()),
    }
}
