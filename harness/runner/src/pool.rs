//! A pool of worker processes with deadlines: every job ends with a report, even after crashes and hangs.
//!
//! The pool starts processes with a command from its caller, gives each one job at a time and reads its
//! messages ([`crate::wire`]). A worker that is silent too long or exceeds its time is killed and replaced.
//! The thread that calls [`run`] starts all workers, so that they can tie their lifetime to it.
//!
//! Workers start in sequence, each after the first message of its predecessor. A driver may need a second to
//! open a GPU, and blocks every other process meanwhile. A dozen workers that start together would exceed the
//! limit on silence.

mod orphans;
mod worker;

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::process::Command;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::memory_limit;
use crate::wire::{Request, VERSION, WorkerMessage};
pub use orphans::WorkerMark;
use worker::{Worker, WorkerNotification};

/// Upper bound on the wait for a worker that gets little of a processor, in multiples of the limit on silence.
pub const MAX_WAIT_FACTOR: u32 = 12;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub workers: u32,
    /// Time for all jobs together. Each job gets its share of the remaining time minus the expected overhead,
    /// so that every job can start. After this time and `grace`, but at least a margin of a tenth (at most
    /// [`LATE_START_MARGIN`]), no job starts.
    pub time: Option<Duration>,
    /// Time after `time` during which jobs may still start, without a share.
    pub grace: Duration,
    /// Time after `time` and `grace` until all remaining workers are killed.
    pub overrun: Duration,
    /// Time that a job may exceed its share.
    pub slack: Duration,
    /// Time that a worker may be silent while it has a job.
    pub silence: Duration,
    /// True if a silent worker may use this time of a processor, on a busy machine for up to [`MAX_WAIT_FACTOR`] times as long.
    pub counts_processor_time: bool,
    /// Repetitions of a failed job.
    pub retries: u32,
    /// Runs of each job. If there are several, each has its own worker.
    pub repeats: u32,
    /// Consecutive failures after which no job starts. Four times as many once a job succeeded; one more for
    /// each additional worker, because a lost device fails all their jobs.
    pub give_up_after: u32,
    /// Resident memory of a worker with its descendants, in bytes.
    pub memory: u64,
}

impl Limits {
    /// One worker, without limits on total time and memory.
    pub const DEFAULT: Limits = Limits {
        workers: 1,
        time: None,
        grace: Duration::ZERO,
        overrun: Duration::from_secs(5),
        slack: Duration::from_secs(6),
        silence: Duration::from_secs(10),
        counts_processor_time: false,
        retries: 0,
        repeats: 1,
        give_up_after: 3,
        memory: u64::MAX,
    };
}

impl Limits {
    /// Returns the default limits with the memory limit of this process ([`memory_limit::limit`]).
    pub fn with_memory_limit() -> Limits {
        Limits { memory: memory_limit::limit(), ..Limits::DEFAULT }
    }

    /// Returns the deadline of a job with this share that starts at `since`, in a pool that started at
    /// `started`.
    fn job_deadline(&self, started: Instant, since: Instant, share: Option<Duration>) -> Option<Instant> {
        let own = since + share? + self.slack;
        Some(own.min(started + self.time? + self.grace + self.overrun))
    }
}

/// The properties of an answer that the pool needs.
pub trait PoolAnswer {
    /// Returns the evidence of the answer about device and driver.
    fn health(&self) -> Health;

    /// Returns true if the worker must not get another job.
    fn ends_worker(&self) -> bool;

    /// Describes the failure in the answer.
    fn failure(&self) -> Option<String>;

    /// Returns the time that the job worked, if it can differ from its share.
    fn work_time(&self) -> Option<Duration> {
        None
    }
}

/// The evidence about device and driver in an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// They work.
    Good,
    /// No evidence: the job did not reach them.
    Unknown,
    /// They failed; the job may be repeated.
    Bad,
}

/// One attempt to run a job.
#[derive(Clone, Debug, PartialEq)]
pub struct Attempt<P, R> {
    /// The result.
    pub end: AttemptEnd<R>,
    /// The last progress message before the end.
    pub snapshot: Option<P>,
    pub duration: Duration,
}

#[derive(Clone, Debug, PartialEq)]
pub enum AttemptEnd<R> {
    /// The worker answered.
    Answered(R),
    Failed(WorkerFailure),
    /// The job never started.
    NotRun(NotRun),
}

/// Why a worker gave no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WorkerFailure {
    /// It was killed because it exceeded its time, or was silent too long.
    #[error("no answer after {:.1} s", after.as_secs_f64())]
    TimedOut { after: Duration },
    #[error("the worker ended with {}{}", describe_exit(*signal, *code), describe_stderr(stderr))]
    Crashed { signal: Option<i32>, code: Option<i32>, stderr: String },
    /// It was killed because it used too much memory.
    #[error("the worker used {} MiB of memory, more than the limit of {} MiB (--max-memory)", used >> 20, limit >> 20)]
    OutOfMemory { used: u64, limit: u64 },
    /// Its message is invalid.
    #[error("the worker's answer cannot be read: {what}")]
    Garbled { what: String },
    #[error("the worker cannot be started: {why}")]
    CannotStart { why: String },
}

fn describe_exit(signal: Option<i32>, code: Option<i32>) -> String {
    match (signal, code) {
        (Some(signal), _) => format!("signal {signal}"),
        (None, Some(code)) => format!("exit code {code}"),
        (None, None) => "no exit code".into(),
    }
}

fn describe_stderr(stderr: &str) -> String {
    let mut lines = stderr.trim_end().lines();
    // A panic prints its position and, on the next line, its message; a backtrace and notes follow.
    let panic = lines.clone().position(|line| line.contains(" panicked at "));
    let line = match panic {
        Some(place) => lines.nth(place + 1),
        None => lines.last(),
    };
    line.map_or_else(String::new, |line| format!(": {line}"))
}

/// Why a job never started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotRun {
    #[error("the time was used up before the test started")]
    TimeIsUp,
    #[error("the device did not recover from a hang: {why}")]
    DeviceGone {
        /// The error of the device.
        why: String,
    },
    #[error("not tried after {failures} consecutive failures, the last one: {last}")]
    GivenUp { failures: u32, last: String },
}

#[derive(Clone, Debug, PartialEq)]
pub struct JobReport<P, R> {
    pub job: usize,
    pub last: Attempt<P, R>,
    /// Earlier attempts, which failed or are repeated runs. Their observations count too.
    pub earlier: Vec<Attempt<P, R>>,
}

impl<P, R> JobReport<P, R> {
    /// Creates the report of a job that never started.
    pub fn not_run(job: usize, why: NotRun) -> JobReport<P, R> {
        let last = Attempt { end: AttemptEnd::NotRun(why), snapshot: None, duration: Duration::ZERO };
        JobReport { job, last, earlier: Vec::new() }
    }
}

/// An event for the caller of the pool.
#[derive(Debug)]
pub enum PoolEvent<'a, P, R> {
    /// A worker sent a progress message.
    Progress {
        job: usize,
        /// The message.
        snapshot: &'a P,
    },
    /// An attempt failed or is one of several runs, and the job is repeated.
    Retried(&'a Attempt<P, R>),
    /// A job ended. These events come in the order of the jobs.
    Finished(JobReport<P, R>),
}

/// The callbacks of the pool's caller.
pub struct PoolCallbacks<'a, J, P, R> {
    /// Returns the command of a worker. The pool sets its standard streams.
    pub make_command: &'a mut dyn FnMut() -> Command,
    /// Returns a job by its number. The second argument is its share of the time, if that is limited.
    pub make_job: &'a mut dyn FnMut(usize, Option<Duration>) -> J,
    /// Handles an event; a break ends all workers and the run.
    pub on_event: &'a mut dyn FnMut(PoolEvent<'_, P, R>) -> ControlFlow<()>,
}

/// Runs the jobs numbered from 0 below `jobs`.
pub fn run<J, P, R>(limits: &Limits, jobs: usize, calls: PoolCallbacks<'_, J, P, R>)
where
    J: Serialize,
    P: DeserializeOwned,
    R: DeserializeOwned + PoolAnswer,
{
    let (notes, inbox) = sync_channel(INBOX_CAPACITY);
    let started = Instant::now();
    let mut pool = Pool {
        limits: *limits,
        calls,
        started,
        pending_jobs: (0..jobs).collect(),
        earlier: (0..jobs).map(|_| Vec::new()).collect(),
        reports: (0..jobs).map(|_| None).collect(),
        delivered: 0,
        // More workers than jobs would be idle.
        slots: (0..(limits.workers as usize).clamp(1, jobs.max(1))).map(|_| WorkerSlot::default()).collect(),
        notifications: notes,
        inbox,
        generation: 0,
        failures: 0,
        last_failure: String::new(),
        has_succeeded: false,
        job_overhead: JobOverhead::default(),
        memory_checked_at: started,
    };
    let _ = pool.run_jobs();
    Worker::retire(pool.slots.iter_mut().filter_map(|slot| slot.worker.take()).collect());
}

/// Returns the failure of an attempt that ran.
fn failure_of<P, R: PoolAnswer>(attempt: &Attempt<P, R>) -> Option<String> {
    match &attempt.end {
        AttemptEnd::Answered(answer) if answer.health() == Health::Bad => {
            Some(answer.failure().unwrap_or_else(|| "the worker's answer".to_owned()))
        }
        AttemptEnd::Failed(failure) => Some(failure.to_string()),
        AttemptEnd::Answered(_) | AttemptEnd::NotRun(_) => None,
    }
}

/// The maximum time after the limit at which a job may still start, without a share. On a busy machine jobs
/// are late, and a test that never runs gives no information.
const LATE_START_MARGIN: Duration = Duration::from_secs(2);

/// The interval for checking whether a worker exited while another process keeps its output open.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The capacity of the message queue; workers block when it is full.
const INBOX_CAPACITY: usize = 256;

struct Pool<'a, J, P, R> {
    limits: Limits,
    calls: PoolCallbacks<'a, J, P, R>,
    started: Instant,
    pending_jobs: VecDeque<usize>,
    earlier: Vec<Vec<Attempt<P, R>>>,
    reports: Vec<Option<JobReport<P, R>>>,
    /// Jobs whose report the caller got.
    delivered: usize,
    slots: Vec<WorkerSlot<P>>,
    notifications: SyncSender<(u64, WorkerNotification)>,
    inbox: Receiver<(u64, WorkerNotification)>,
    generation: u64,
    failures: u32,
    last_failure: String,
    has_succeeded: bool,
    job_overhead: JobOverhead,
    /// When the memory of the workers was last read.
    memory_checked_at: Instant,
}

/// The time of jobs beyond their shares, for compiling kernels and for submissions that end late. On a busy
/// machine it can exceed the shares.
#[derive(Clone, Copy, Debug, Default)]
struct JobOverhead {
    time: Duration,
    jobs: u32,
}

impl JobOverhead {
    fn record(&mut self, took: Duration, worked: Duration) {
        self.time += took.saturating_sub(worked);
        self.jobs += 1;
    }

    /// Returns the time to reserve for a job beyond its share: 1.5 times the mean, since the load may grow.
    /// Unused time goes to later jobs.
    fn reserve_per_job(&self) -> Duration {
        self.time * 3 / 2 / self.jobs.max(1)
    }
}

struct WorkerSlot<P> {
    worker: Option<Worker>,
    /// True once the worker sent a message.
    has_responded: bool,
    running: Option<RunningJob<P>>,
}

impl<P> Default for WorkerSlot<P> {
    fn default() -> WorkerSlot<P> {
        WorkerSlot { worker: None, has_responded: false, running: None }
    }
}

impl<P> WorkerSlot<P> {
    /// Returns true if its worker has not sent its first message.
    fn is_starting(&self) -> bool {
        self.worker.is_some() && self.running.is_some() && !self.has_responded
    }
}

struct RunningJob<P> {
    job: usize,
    started_at: Instant,
    last_message_at: Instant,
    /// The processor time of the worker before the job, if it counts.
    used_before: Duration,
    /// Its share of the time for all jobs.
    share: Option<Duration>,
    /// Its worker was started for this job.
    is_first_of_worker: bool,
    deadline: Option<Instant>,
    snapshot: Option<P>,
}

impl<J, P, R> Pool<'_, J, P, R>
where
    J: Serialize,
    P: DeserializeOwned,
    R: DeserializeOwned + PoolAnswer,
{
    fn run_jobs(&mut self) -> ControlFlow<()> {
        loop {
            self.start_jobs()?;
            // No job runs. If some wait, their workers could not be started, and the next turn
            // tries again or gives up.
            let Some(deadline) = self.next_deadline() else {
                if self.pending_jobs.is_empty() && self.slots.iter().all(|slot| slot.running.is_none()) {
                    return ControlFlow::Continue(());
                }
                continue;
            };
            let wait = deadline.saturating_duration_since(Instant::now()).min(CHECK_INTERVAL);
            match self.inbox.recv_timeout(wait) {
                Ok((generation, note)) => self.handle_notification(generation, note)?,
                // The pool holds a sender itself, so the channel is never disconnected.
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
            let workers = self.slots.iter_mut().filter_map(|slot| slot.worker.as_mut());
            workers.for_each(Worker::kill_group_if_exited);
            // If this process was stopped for a while, messages of workers are handled before any deadline.
            let waiting: Vec<_> = self.inbox.try_iter().take(INBOX_CAPACITY).collect();
            for (generation, note) in waiting {
                self.handle_notification(generation, note)?;
            }
            self.kill_overdue()?;
            self.kill_oversized()?;
        }
    }

    /// Gives jobs to idle workers, or reports all remaining jobs as not run.
    fn start_jobs(&mut self) -> ControlFlow<()> {
        // `finish_job` delivers in order, so these reports follow those of the jobs that still run.
        while let Some(reason) = self.stop_reason() {
            let Some(job) = self.pending_jobs.pop_front() else { break };
            let earlier = self.earlier.get_mut(job);
            let last_run = earlier.and_then(|earlier| earlier.pop_if(|last| failure_of(last).is_none()));
            self.finish_job(job, last_run.unwrap_or_else(|| JobReport::not_run(job, reason).last))?;
        }
        for number in 0..self.slots.len() {
            // Only one worker opens the device at a time; see the module's documentation. Warm
            // workers need not wait.
            let starting = self.slots.iter().any(WorkerSlot::is_starting);
            let free = |slot: &WorkerSlot<P>| slot.running.is_none() && (slot.worker.is_some() || !starting);
            if self.slots.get(number).is_some_and(free)
                && self.stop_reason().is_none()
                && let Some(job) = self.pending_jobs.pop_front()
            {
                self.start_job(number, job)?;
            }
        }
        ControlFlow::Continue(())
    }

    fn stop_reason(&self) -> Option<NotRun> {
        let other_workers = self.limits.workers.saturating_sub(1);
        // Where no job ever succeeded, the setup is probably wrong; later, single tests may be at
        // fault.
        let enough = self.limits.give_up_after.max(1) * if self.has_succeeded { 4 } else { 1 };
        if self.failures >= enough + other_workers {
            return Some(NotRun::GivenUp { failures: self.failures, last: self.last_failure.clone() });
        }
        let is_time_up = |time: Duration| {
            self.started.elapsed() >= time + self.limits.grace.max(LATE_START_MARGIN.min(time / 10))
        };
        self.limits.time.is_some_and(is_time_up).then_some(NotRun::TimeIsUp)
    }

    fn time_left(&self) -> Option<Duration> {
        self.limits.time.map(|time| time.saturating_sub(self.started.elapsed()))
    }

    fn start_job(&mut self, number: usize, job: usize) -> ControlFlow<()> {
        let now = Instant::now();
        let earlier_runs = self.earlier.get(job).map_or(0, Vec::len);
        let waiting = self.limits.repeats as usize * (self.pending_jobs.len() + 1);
        let waiting = u32::try_from(waiting.saturating_sub(earlier_runs).max(1)).unwrap_or(u32::MAX);
        // The workers run in parallel, so the waiting runs, this one included, share `workers`
        // times the time left; no job can have more than all of it.
        let share = self.time_left().map(|left| left.min(left * self.limits.workers.max(1) / waiting));
        let share = share.map(|share| share.saturating_sub(self.job_overhead.reserve_per_job()));
        let payload = (self.calls.make_job)(job, share);
        let request = Request { version: VERSION, job: job as u64, payload };
        let Some(slot) = self.slots.get_mut(number) else { return ControlFlow::Continue(()) };
        let worker = match slot.worker.take() {
            Some(worker) => Ok(worker),
            None => {
                self.generation += 1;
                slot.has_responded = false;
                Worker::start((self.calls.make_command)(), self.generation, &self.notifications)
            }
        };
        let sent = worker.map_err(|error| error.to_string()).and_then(|worker| {
            let line = serde_json::to_string(&request).map_err(|error| error.to_string())?;
            worker.send(line);
            Ok(worker)
        });
        match sent {
            Ok(worker) => {
                let used_before = match self.limits.counts_processor_time {
                    true => worker.processor_usage().time,
                    false => Duration::ZERO,
                };
                slot.worker = Some(worker);
                let end = self.limits.job_deadline(self.started, now, share);
                let first = !slot.has_responded;
                slot.running = Some(RunningJob {
                    job,
                    started_at: now,
                    last_message_at: now,
                    used_before,
                    share,
                    is_first_of_worker: first,
                    deadline: end,
                    snapshot: None,
                });
                ControlFlow::Continue(())
            }
            Err(why) => {
                let end = AttemptEnd::Failed(WorkerFailure::CannotStart { why });
                self.record_attempt(job, Attempt { end, snapshot: None, duration: Duration::ZERO })
            }
        }
    }

    /// Returns the earliest deadline of a running job.
    fn next_deadline(&self) -> Option<Instant> {
        self.slots.iter().filter_map(|slot| slot.running.as_ref()).map(|r| self.deadline(r)).min()
    }

    fn deadline(&self, running: &RunningJob<P>) -> Instant {
        let silent = running.last_message_at + self.limits.silence;
        running.deadline.map_or(silent, |end| end.min(silent))
    }

    fn kill_overdue(&mut self) -> ControlFlow<()> {
        let now = Instant::now();
        for number in 0..self.slots.len() {
            let overdue = |running: &RunningJob<P>| self.deadline(running) <= now;
            let is_overdue =
                self.slots.get(number).and_then(|slot| slot.running.as_ref()).is_some_and(overdue);
            if is_overdue && !self.extend_silence(number, now) {
                self.fail_attempt(number, |worker, after| {
                    worker.kill();
                    WorkerFailure::TimedOut { after }
                })?;
            }
        }
        ControlFlow::Continue(())
    }

    /// Extends the limit on silence of a worker that waits for a processor. Returns false if it had its time, or waits for else.
    fn extend_silence(&mut self, number: usize, now: Instant) -> bool {
        let limit = self.limits.silence;
        let Some(WorkerSlot { worker: Some(worker), running: Some(running), .. }) =
            self.slots.get_mut(number)
        else {
            return false;
        };
        if !self.limits.counts_processor_time || running.started_at.elapsed() >= limit * MAX_WAIT_FACTOR {
            return false;
        }
        let usage = worker.processor_usage();
        let used = usage.time.saturating_sub(running.used_before);
        let is_extended = usage.is_runnable && used < limit;
        if is_extended {
            running.last_message_at = now.checked_sub(used).unwrap_or(now);
        }
        is_extended
    }

    /// Ends workers that use too much memory.
    fn kill_oversized(&mut self) -> ControlFlow<()> {
        let limit = self.limits.memory;
        if self.memory_checked_at.elapsed() < CHECK_INTERVAL {
            return ControlFlow::Continue(());
        }
        self.memory_checked_at = Instant::now();
        for number in 0..self.slots.len() {
            let worker = self.slots.get(number).and_then(|slot| slot.worker.as_ref());
            if let Some(used) = worker.and_then(|worker| worker.memory_above(limit)) {
                self.fail_attempt(number, |worker, _| {
                    worker.kill();
                    WorkerFailure::OutOfMemory { used, limit }
                })?;
            }
        }
        ControlFlow::Continue(())
    }

    /// Ends the worker and the attempt of a slot.
    fn fail_attempt(
        &mut self,
        number: usize,
        failure: impl FnOnce(Worker, Duration) -> WorkerFailure,
    ) -> ControlFlow<()> {
        let Some(slot) = self.slots.get_mut(number) else { return ControlFlow::Continue(()) };
        let running = slot.running.take();
        let took = running.as_ref().map_or(Duration::ZERO, |running| running.started_at.elapsed());
        let Some(worker) = slot.worker.take() else { return ControlFlow::Continue(()) };
        let failure = failure(worker, took);
        let Some(RunningJob { job, snapshot, .. }) = running else { return ControlFlow::Continue(()) };
        self.record_attempt(job, Attempt { end: AttemptEnd::Failed(failure), snapshot, duration: took })
    }

    fn handle_notification(&mut self, generation: u64, note: WorkerNotification) -> ControlFlow<()> {
        let has_generation =
            |slot: &WorkerSlot<P>| slot.worker.as_ref().is_some_and(|w| w.generation() == generation);
        // Messages of a replaced worker are ignored.
        let Some(number) = self.slots.iter().position(has_generation) else {
            return ControlFlow::Continue(());
        };
        match note {
            WorkerNotification::Ended => self.fail_attempt(number, |worker, _| {
                let (signal, code, stderr) = worker.wait();
                WorkerFailure::Crashed { signal, code, stderr }
            }),
            WorkerNotification::Unreadable(what) => self.fail_garbled(number, what),
            WorkerNotification::Record(text) => match serde_json::from_slice::<WorkerMessage<P, R>>(&text) {
                Ok(message) => self.handle_message(number, message),
                Err(error) => self.fail_garbled(number, error.to_string()),
            },
        }
    }

    fn fail_garbled(&mut self, number: usize, what: String) -> ControlFlow<()> {
        self.fail_attempt(number, |worker, _| {
            worker.kill();
            WorkerFailure::Garbled { what }
        })
    }

    fn handle_message(&mut self, number: usize, message: WorkerMessage<P, R>) -> ControlFlow<()> {
        let (WorkerMessage::Progress { version, job, .. } | WorkerMessage::Answer { version, job, .. }) =
            &message;
        if *version != VERSION {
            return self.fail_garbled(number, format!("its version is {version}, not {VERSION}"));
        }
        let Some(slot) = self.slots.get_mut(number) else { return ControlFlow::Continue(()) };
        let Some(running) = slot.running.as_mut().filter(|running| running.job as u64 == *job) else {
            return self.fail_garbled(number, format!("it refers to job {job}"));
        };
        if !std::mem::replace(&mut slot.has_responded, true) {
            // The deadline restarts with the first message, so that opening the device costs the test no
            // time.
            running.deadline = self.limits.job_deadline(self.started, Instant::now(), running.share);
        }
        match message {
            WorkerMessage::Progress { payload, .. } => {
                running.last_message_at = Instant::now();
                let job = running.job;
                let snapshot: &P = running.snapshot.insert(payload);
                (self.calls.on_event)(PoolEvent::Progress { job, snapshot })
            }
            WorkerMessage::Answer { payload, .. } => {
                let (job, took) = (running.job, running.started_at.elapsed());
                let has_own_worker = self.limits.repeats > 1;
                // The first job of a worker includes opening the device.
                if let Some(share) = running.share.filter(|_| !running.is_first_of_worker || has_own_worker) {
                    self.job_overhead.record(took, payload.work_time().unwrap_or(share));
                }
                let snapshot = slot.running.take().and_then(|running| running.snapshot);
                if (payload.ends_worker() || has_own_worker)
                    && let Some(worker) = slot.worker.take()
                {
                    worker.kill();
                }
                self.record_attempt(
                    job,
                    Attempt { end: AttemptEnd::Answered(payload), snapshot, duration: took },
                )
            }
        }
    }

    /// Records the end of an attempt: repeats the job or finishes it.
    fn record_attempt(&mut self, job: usize, attempt: Attempt<P, R>) -> ControlFlow<()> {
        let is_good = matches!(&attempt.end, AttemptEnd::Answered(answer) if answer.health() == Health::Good);
        let failure = failure_of(&attempt);
        let has_failed = failure.is_some();
        if is_good {
            self.failures = 0;
            self.has_succeeded = true;
        } else if let Some(failure) = failure {
            self.failures += 1;
            self.last_failure = failure;
        }
        let is_stopped = self.stop_reason().is_some();
        if let Some(earlier) = self.earlier.get_mut(job) {
            let failed = earlier.iter().filter(|attempt| failure_of(attempt).is_some()).count();
            let is_repeated = match has_failed {
                true => failed < self.limits.retries as usize,
                false => is_good && earlier.len() - failed + 1 < self.limits.repeats as usize,
            };
            if is_repeated && !is_stopped {
                let flow = (self.calls.on_event)(PoolEvent::Retried(&attempt));
                earlier.push(attempt);
                // At the front, because the reports of all later jobs wait for this one.
                self.pending_jobs.push_front(job);
                return flow;
            }
        }
        self.finish_job(job, attempt)
    }

    /// Reports a job to the caller once all earlier jobs are reported.
    fn finish_job(&mut self, job: usize, last: Attempt<P, R>) -> ControlFlow<()> {
        let earlier = self.earlier.get_mut(job).map(std::mem::take).unwrap_or_default();
        if let Some(place) = self.reports.get_mut(job) {
            *place = Some(JobReport { job, last, earlier });
        }
        while let Some(report) = self.reports.get_mut(self.delivered).and_then(Option::take) {
            self.delivered += 1;
            (self.calls.on_event)(PoolEvent::Finished(report))?;
        }
        ControlFlow::Continue(())
    }
}
