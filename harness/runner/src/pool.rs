//! Worker processes under a deadline: whatever crashes or hangs in them, every job ends with a report.
//!
//! The pool starts processes of a command that its caller names, hands each one job at a time, and reads what comes back
//! ([`crate::wire`]). A worker that says nothing for too long, or goes on past its time, is killed and replaced. The
//! thread that calls [`run`] starts all workers, so that they may tie their lives to it.
//!
//! Workers start one after another, each when the one before has first said something: opening a GPU can take a driver a
//! second in which it keeps every other process out, and a dozen that come at once wait longer than silence is suffered.

mod worker;

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::process::Command;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::wire::{Message, Request, VERSION};
pub use worker::end_group;
use worker::{Note, Worker};

/// What bounds a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Worker processes at once.
    pub workers: u32,
    /// Time for all jobs together; each gets its share of what is left when it starts, less what jobs take besides theirs, so
    /// that every job begins where that can be. Once it is over, and a tenth more or [`LATE`] for those that are late, no job
    /// starts.
    pub time: Option<Duration>,
    /// How long after `time` everything has ended, by force if it must be.
    pub overrun: Duration,
    /// How long after its share a job may still go on.
    pub slack: Duration,
    /// How long a worker may say nothing while it has a job.
    pub silence: Duration,
    /// How often a job that failed is run again.
    pub retries: u32,
    /// Failures in a row after which no job is started any more, while none ever went well. Later it takes four times
    /// as many. One more is allowed for each worker beside the first: what loses the device fails them all at once.
    pub give_up_after: u32,
}

impl Limits {
    /// One worker, without a limit on the whole.
    pub const DEFAULT: Limits = Limits {
        workers: 1,
        time: None,
        overrun: Duration::from_secs(5),
        slack: Duration::from_secs(6),
        silence: Duration::from_secs(10),
        retries: 0,
        give_up_after: 3,
    };
}

impl Limits {
    /// When a job with this share of the time is ended at the latest, if it begins at `since` in a pool that began at
    /// `started`.
    fn end(&self, started: Instant, since: Instant, share: Option<Duration>) -> Option<Instant> {
        let own = since + share? + self.slack;
        Some(own.min(started + self.time? + self.overrun))
    }
}

/// What the pool must know of an answer.
pub trait Answer {
    /// What the answer says about device and driver.
    fn health(&self) -> Health;

    /// Whether the worker must not get another job.
    fn ends_worker(&self) -> bool;

    /// What failed, in words, where something did.
    fn failure(&self) -> Option<String>;

    /// For how long the job's own work went on, where that may be less or more than its share of the time.
    fn worked(&self) -> Option<Duration> {
        None
    }
}

/// What an answer says about device and driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// They work.
    Good,
    /// Nothing: the job never came to them.
    Unknown,
    /// They failed; the job may be tried again.
    Bad,
}

/// How an attempt at a job ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Attempt<P, R> {
    /// How.
    pub end: End<R>,
    /// The last thing that the worker said before the end.
    pub snapshot: Option<P>,
    /// How long it took.
    pub took: Duration,
}

/// How an attempt at a job ended.
#[derive(Clone, Debug, PartialEq)]
pub enum End<R> {
    /// With an answer of the worker.
    Answered(R),
    /// Without one.
    Failed(Failure),
    /// It never began.
    NotRun(NotRun),
}

/// Why a worker gave no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// It was ended since its time was over, or since it said nothing for too long.
    #[error("no answer after {:.1} s", after.as_secs_f64())]
    TimedOut {
        /// Time since the job began.
        after: Duration,
    },
    /// It ended by itself.
    #[error("the worker ended with {}{}", ended(*signal, *code), said(stderr))]
    Crashed {
        /// The signal that ended it.
        signal: Option<i32>,
        /// Its exit code.
        code: Option<i32>,
        /// The end of what it printed to standard error.
        stderr: String,
    },
    /// Its answer cannot be read.
    #[error("the worker's answer cannot be read: {what}")]
    Garbled {
        /// Why.
        what: String,
    },
    /// It could not be started.
    #[error("the worker cannot be started: {why}")]
    CannotStart {
        /// Why.
        why: String,
    },
}

fn ended(signal: Option<i32>, code: Option<i32>) -> String {
    match (signal, code) {
        (Some(signal), _) => format!("signal {signal}"),
        (None, Some(code)) => format!("exit code {code}"),
        (None, None) => "no exit code".into(),
    }
}

fn said(stderr: &str) -> String {
    let mut lines = stderr.trim_end().lines();
    // A panic says where and, on the next line, why; behind that come a backtrace and notes.
    let panic = lines.clone().position(|line| line.contains(" panicked at "));
    let line = match panic {
        Some(place) => lines.nth(place + 1),
        None => lines.last(),
    };
    line.map_or_else(String::new, |line| format!(": {line}"))
}

/// Why a job never began.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotRun {
    /// The time for all jobs was over.
    #[error("the time was over before the test began")]
    TimeIsUp,
    /// The device was not in order any more.
    #[error("the device did not come back after a hang: {why}")]
    Gone {
        /// What it said.
        why: String,
    },
    /// Too many jobs in a row had failed.
    #[error("not tried any more after {failures} failures in a row, the last one: {last}")]
    GivenUp {
        /// How many.
        failures: u32,
        /// The last one.
        last: String,
    },
}

/// What became of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct Report<P, R> {
    /// Number of the job.
    pub job: usize,
    /// The last attempt.
    pub last: Attempt<P, R>,
    /// Those before it, all failed: what they had seen counts too.
    pub earlier: Vec<Attempt<P, R>>,
}

impl<P, R> Report<P, R> {
    /// That of a job that never began.
    pub fn not_run(job: usize, why: NotRun) -> Report<P, R> {
        let last = Attempt { end: End::NotRun(why), snapshot: None, took: Duration::ZERO };
        Report { job, last, earlier: Vec::new() }
    }
}

/// What the pool tells its caller.
#[derive(Debug)]
pub enum Event<'a, P, R> {
    /// A worker said something about its job.
    Progress {
        /// Number of the job.
        job: usize,
        /// What it said.
        snapshot: &'a P,
    },
    /// An attempt at a job failed, and the job is tried again.
    Again(&'a Attempt<P, R>),
    /// A job has ended. These come in the order of the jobs.
    Finished(Report<P, R>),
}

/// What makes a pool run.
pub struct Calls<'a, J, P, R> {
    /// The command of a worker. Its standard streams are set by the pool.
    pub command: &'a mut dyn FnMut() -> Command,
    /// The job of a number. Where there is a time for all jobs, its share is given.
    pub job: &'a mut dyn FnMut(usize, Option<Duration>) -> J,
    /// Sees what happens; a break ends all workers and the run.
    pub event: &'a mut dyn FnMut(Event<'_, P, R>) -> ControlFlow<()>,
}

/// Runs the jobs numbered from 0 below `jobs`.
pub fn run<J, P, R>(limits: &Limits, jobs: usize, calls: Calls<'_, J, P, R>)
where
    J: Serialize,
    P: DeserializeOwned,
    R: DeserializeOwned + Answer,
{
    let (notes, inbox) = sync_channel(INBOX);
    let started = Instant::now();
    let mut pool = Pool {
        limits: *limits,
        calls,
        started,
        waiting: (0..jobs).collect(),
        earlier: (0..jobs).map(|_| Vec::new()).collect(),
        done: (0..jobs).map(|_| None).collect(),
        delivered: 0,
        // Nobody beyond the last job has anything to do.
        slots: (0..(limits.workers as usize).clamp(1, jobs.max(1))).map(|_| Slot::default()).collect(),
        notes,
        inbox,
        generation: 0,
        failures: 0,
        last_failure: String::new(),
        ever_good: false,
        beside: Beside::default(),
    };
    let _ = pool.go();
    Worker::retire(pool.slots.iter_mut().filter_map(|slot| slot.worker.take()).collect());
}

/// How long after the time for all jobs one may still begin, without a share of it: a busy machine makes jobs late, and a test
/// that was never begun says nothing.
const LATE: Duration = Duration::from_secs(2);

/// How often it is looked whether a worker is gone whose output somebody else holds open.
const LOOK: Duration = Duration::from_secs(1);

/// Notes that wait for the pool at most; workers that say more wait themselves.
const INBOX: usize = 256;

struct Pool<'a, J, P, R> {
    limits: Limits,
    calls: Calls<'a, J, P, R>,
    started: Instant,
    waiting: VecDeque<usize>,
    earlier: Vec<Vec<Attempt<P, R>>>,
    done: Vec<Option<Report<P, R>>>,
    /// Jobs whose report was given to the caller.
    delivered: usize,
    slots: Vec<Slot<P>>,
    notes: SyncSender<(u64, Note)>,
    inbox: Receiver<(u64, Note)>,
    generation: u64,
    /// Failures in a row.
    failures: u32,
    last_failure: String,
    ever_good: bool,
    beside: Beside,
}

/// What jobs took besides their shares: kernels are compiled, and a submission goes on past its time. On a busy machine that
/// can be more than the shares.
#[derive(Clone, Copy, Debug, Default)]
struct Beside {
    time: Duration,
    jobs: u32,
}

impl Beside {
    fn note(&mut self, took: Duration, worked: Duration) {
        self.time += took.saturating_sub(worked);
        self.jobs += 1;
    }

    /// What to leave for a job besides its share: half as much again as the mean, since others may come to the machine. What
    /// it does not take goes to those that follow.
    fn each(&self) -> Duration {
        self.time * 3 / 2 / self.jobs.max(1)
    }
}

struct Slot<P> {
    worker: Option<Worker>,
    /// Whether that worker has said anything yet.
    heard: bool,
    running: Option<Running<P>>,
}

impl<P> Default for Slot<P> {
    fn default() -> Slot<P> {
        Slot { worker: None, heard: false, running: None }
    }
}

impl<P> Slot<P> {
    /// Whether its worker is on the way to its first word.
    fn is_starting(&self) -> bool {
        self.worker.is_some() && self.running.is_some() && !self.heard
    }
}

struct Running<P> {
    job: usize,
    since: Instant,
    last_sign: Instant,
    /// Its share of the time for all jobs.
    share: Option<Duration>,
    /// Whether its worker was started for it.
    first: bool,
    /// When it is ended at the latest.
    end: Option<Instant>,
    snapshot: Option<P>,
}

impl<J, P, R> Pool<'_, J, P, R>
where
    J: Serialize,
    P: DeserializeOwned,
    R: DeserializeOwned + Answer,
{
    fn go(&mut self) -> ControlFlow<()> {
        loop {
            self.start_jobs()?;
            let Some(deadline) = self.next_deadline() else {
                if self.waiting.is_empty() && self.slots.iter().all(|slot| slot.running.is_none()) {
                    return ControlFlow::Continue(());
                }
                continue;
            };
            let wait = deadline.saturating_duration_since(Instant::now()).min(LOOK);
            match self.inbox.recv_timeout(wait) {
                Ok((generation, note)) => self.note(generation, note)?,
                // The pool holds a sender itself.
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
            let workers = self.slots.iter_mut().filter_map(|slot| slot.worker.as_mut());
            workers.for_each(Worker::end_the_rest_where_gone);
            // Where this process was stopped for a while, what its workers said meanwhile comes before any deadline.
            let waiting: Vec<_> = self.inbox.try_iter().take(INBOX).collect();
            for (generation, note) in waiting {
                self.note(generation, note)?;
            }
            self.end_overdue()?;
        }
    }

    /// Gives jobs to idle workers, or says why no job is started any more.
    fn start_jobs(&mut self) -> ControlFlow<()> {
        while let Some(reason) = self.reason_to_stop() {
            let Some(job) = self.waiting.pop_front() else { break };
            self.finish(job, Report::<P, R>::not_run(job, reason).last)?;
        }
        for number in 0..self.slots.len() {
            let starting = self.slots.iter().any(Slot::is_starting);
            let free = |slot: &Slot<P>| slot.running.is_none() && (slot.worker.is_some() || !starting);
            if self.slots.get(number).is_some_and(free)
                && self.reason_to_stop().is_none()
                && let Some(job) = self.waiting.pop_front()
            {
                self.start(number, job)?;
            }
        }
        ControlFlow::Continue(())
    }

    fn reason_to_stop(&self) -> Option<NotRun> {
        let beside = self.limits.workers.saturating_sub(1);
        let enough = self.limits.give_up_after.max(1) * if self.ever_good { 4 } else { 1 };
        if self.failures >= enough + beside {
            return Some(NotRun::GivenUp { failures: self.failures, last: self.last_failure.clone() });
        }
        let over = |time: Duration| self.started.elapsed() >= time + LATE.min(time / 10);
        self.limits.time.is_some_and(over).then_some(NotRun::TimeIsUp)
    }

    fn time_left(&self) -> Option<Duration> {
        self.limits.time.map(|time| time.saturating_sub(self.started.elapsed()))
    }

    fn start(&mut self, number: usize, job: usize) -> ControlFlow<()> {
        let now = Instant::now();
        let waiting = u32::try_from(self.waiting.len() + 1).unwrap_or(u32::MAX);
        let share = self.time_left().map(|left| left.min(left * self.limits.workers.max(1) / waiting));
        let share = share.map(|share| share.saturating_sub(self.beside.each()));
        let payload = (self.calls.job)(job, share);
        let request = Request { version: VERSION, job: job as u64, payload };
        let Some(slot) = self.slots.get_mut(number) else { return ControlFlow::Continue(()) };
        let worker = match slot.worker.take() {
            Some(worker) => Ok(worker),
            None => {
                self.generation += 1;
                slot.heard = false;
                Worker::start((self.calls.command)(), self.generation, &self.notes)
            }
        };
        let sent = worker.map_err(|error| error.to_string()).and_then(|worker| {
            let line = serde_json::to_string(&request).map_err(|error| error.to_string())?;
            worker.send(line);
            Ok(worker)
        });
        match sent {
            Ok(worker) => {
                slot.worker = Some(worker);
                let end = self.limits.end(self.started, now, share);
                let first = !slot.heard;
                slot.running =
                    Some(Running { job, since: now, last_sign: now, share, first, end, snapshot: None });
                ControlFlow::Continue(())
            }
            Err(why) => {
                let end = End::Failed(Failure::CannotStart { why });
                self.ended(job, Attempt { end, snapshot: None, took: Duration::ZERO })
            }
        }
    }

    /// When something must be done even if no worker says anything; none while nothing runs.
    fn next_deadline(&self) -> Option<Instant> {
        self.slots.iter().filter_map(|slot| slot.running.as_ref()).map(|r| self.deadline(r)).min()
    }

    fn deadline(&self, running: &Running<P>) -> Instant {
        let silent = running.last_sign + self.limits.silence;
        running.end.map_or(silent, |end| end.min(silent))
    }

    fn end_overdue(&mut self) -> ControlFlow<()> {
        let now = Instant::now();
        for number in 0..self.slots.len() {
            let overdue = |running: &Running<P>| self.deadline(running) <= now;
            if self.slots.get(number).and_then(|slot| slot.running.as_ref()).is_some_and(overdue) {
                self.fail(number, |worker, after| {
                    worker.kill();
                    Failure::TimedOut { after }
                })?;
            }
        }
        ControlFlow::Continue(())
    }

    /// Ends worker and attempt of a slot.
    fn fail(&mut self, number: usize, failure: impl FnOnce(Worker, Duration) -> Failure) -> ControlFlow<()> {
        let Some(slot) = self.slots.get_mut(number) else { return ControlFlow::Continue(()) };
        let running = slot.running.take();
        let took = running.as_ref().map_or(Duration::ZERO, |running| running.since.elapsed());
        let Some(worker) = slot.worker.take() else { return ControlFlow::Continue(()) };
        let failure = failure(worker, took);
        let Some(Running { job, snapshot, .. }) = running else { return ControlFlow::Continue(()) };
        self.ended(job, Attempt { end: End::Failed(failure), snapshot, took })
    }

    fn note(&mut self, generation: u64, note: Note) -> ControlFlow<()> {
        let of = |slot: &Slot<P>| slot.worker.as_ref().is_some_and(|w| w.generation() == generation);
        // What a worker said before it was replaced is of no interest.
        let Some(number) = self.slots.iter().position(of) else { return ControlFlow::Continue(()) };
        match note {
            Note::Ended => self.fail(number, |worker, _| {
                let (signal, code, stderr) = worker.wait();
                Failure::Crashed { signal, code, stderr }
            }),
            Note::Unreadable(what) => self.garbled(number, what),
            Note::Record(text) => match serde_json::from_slice::<Message<P, R>>(&text) {
                Ok(message) => self.message(number, message),
                Err(error) => self.garbled(number, error.to_string()),
            },
        }
    }

    fn garbled(&mut self, number: usize, what: String) -> ControlFlow<()> {
        self.fail(number, |worker, _| {
            worker.kill();
            Failure::Garbled { what }
        })
    }

    fn message(&mut self, number: usize, message: Message<P, R>) -> ControlFlow<()> {
        let (Message::Progress { version, job, .. } | Message::Answer { version, job, .. }) = &message;
        if *version != VERSION {
            return self.garbled(number, format!("its version is {version}, not {VERSION}"));
        }
        let Some(slot) = self.slots.get_mut(number) else { return ControlFlow::Continue(()) };
        let Some(running) = slot.running.as_mut().filter(|running| running.job as u64 == *job) else {
            return self.garbled(number, format!("it speaks of job {job}"));
        };
        if !std::mem::replace(&mut slot.heard, true) {
            // What it took to open the device is not the test's.
            running.end = self.limits.end(self.started, Instant::now(), running.share);
        }
        match message {
            Message::Progress { payload, .. } => {
                running.last_sign = Instant::now();
                let job = running.job;
                let snapshot: &P = running.snapshot.insert(payload);
                (self.calls.event)(Event::Progress { job, snapshot })
            }
            Message::Answer { payload, .. } => {
                let (job, took) = (running.job, running.since.elapsed());
                // The first one pays for the device.
                if let Some(share) = running.share.filter(|_| !running.first) {
                    self.beside.note(took, payload.worked().unwrap_or(share));
                }
                let snapshot = slot.running.take().and_then(|running| running.snapshot);
                if payload.ends_worker()
                    && let Some(worker) = slot.worker.take()
                {
                    worker.kill();
                }
                self.ended(job, Attempt { end: End::Answered(payload), snapshot, took })
            }
        }
    }

    /// Books the end of an attempt: the job is tried again, or finished.
    fn ended(&mut self, job: usize, attempt: Attempt<P, R>) -> ControlFlow<()> {
        let bad = match &attempt.end {
            End::Answered(answer) => match answer.health() {
                Health::Good => {
                    self.failures = 0;
                    self.ever_good = true;
                    None
                }
                Health::Unknown => None,
                Health::Bad => Some(answer.failure().unwrap_or_else(|| "the worker's answer".to_owned())),
            },
            End::Failed(failure) => Some(failure.to_string()),
            End::NotRun(_) => None,
        };
        if let Some(failure) = bad {
            self.failures += 1;
            self.last_failure = failure;
            let retried = self.reason_to_stop().is_none();
            if let Some(earlier) = self.earlier.get_mut(job)
                && retried
                && earlier.len() < self.limits.retries as usize
            {
                let flow = (self.calls.event)(Event::Again(&attempt));
                earlier.push(attempt);
                self.waiting.push_front(job);
                return flow;
            }
        }
        self.finish(job, attempt)
    }

    /// Gives the report to the caller as soon as all jobs before have been reported.
    fn finish(&mut self, job: usize, last: Attempt<P, R>) -> ControlFlow<()> {
        let earlier = self.earlier.get_mut(job).map(std::mem::take).unwrap_or_default();
        if let Some(place) = self.done.get_mut(job) {
            *place = Some(Report { job, last, earlier });
        }
        while let Some(report) = self.done.get_mut(self.delivered).and_then(Option::take) {
            self.delivered += 1;
            (self.calls.event)(Event::Finished(report))?;
        }
        ControlFlow::Continue(())
    }
}
