//! The one way through a run: what is done already, what is skipped, worker processes under their deadlines, and verdicts in
//! the order of the plan. Litmus tests and tests of forward progress are two kinds of it ([`crate::kinds`]).

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use results::folder::Folder;
use results::wire::RunLine;
use results::write::RunWriter;
use results::{Ending, Reason};
use runner::pool::{self, Calls, End, Event, Health, Limits, NotRun, Report};
use runner::wire::Failure as Told;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Failure;
use crate::book::{Book, Done};
use crate::targets::Target;
use crate::workers::{self, Task};

/// What somebody who watches is told while tests run.
pub trait Watch {
    /// A test goes on: so many instances in so many seconds of dispatches.
    fn shows(&self, device: &str, id: &str, instances: u64, seconds: f64);
    /// A test has ended, with this verdict.
    fn advances(&self, line: &RunLine);
    /// A message comes.
    fn says(&self, text: &str);
    /// All tests have ended.
    fn ends(&self);
}

/// A test on a device, as the run sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Number of its device.
    pub target: usize,
    /// Its id.
    pub id: String,
    /// What it is skipped for, where it is.
    pub missing: Option<String>,
}

/// A verdict, with what else a job told.
#[derive(Clone, Debug)]
pub struct Judged {
    /// The line.
    pub line: RunLine,
    /// How the job failed, where it did.
    pub failure: Option<Reason>,
    /// Messages of the validation layers that are not excused.
    pub validation: Vec<String>,
}

/// A kind of run: what workers are asked, and how their answers are judged.
pub trait Kind: Sync {
    /// What a worker is asked.
    type Job: Serialize + Clone;
    /// What it says meanwhile.
    type Snapshot: DeserializeOwned + Clone + Send;
    /// What it answers.
    type Answer: DeserializeOwned + pool::Answer + Send;

    /// The devices.
    fn targets(&self) -> Vec<&Target>;

    /// Every test on every device, in the order of the plan.
    fn cells(&self) -> Vec<Cell>;

    /// What workers are started for.
    fn task(&self) -> Task;

    /// What bounds the workers of a device that have so many tests.
    fn limits(&self, target: usize, waiting: usize) -> Limits;

    /// How long tests of a device begin, where the limits of its workers do not say.
    fn time(&self) -> Option<Duration> {
        None
    }

    /// The job of a test, and that of the one behind it where it is likely to follow.
    fn job(&self, cell: usize, next: Option<usize>, share: Option<Duration>) -> Self::Job;

    /// A job with smaller submissions, after so many that have lost the device: a watchdog may have ended them. Kinds whose submissions
    /// are what users ask for leave it as it is.
    fn smaller(&self, job: Self::Job, _lost: u32) -> Self::Job {
        job
    }

    /// A job that a device in order does well, where one must after each failure that spoils a worker.
    fn health(&self, _target: usize) -> Option<Self::Job> {
        None
    }

    /// Why an answer is no full one.
    fn failure(answer: &Self::Answer) -> Option<&Told>;

    /// Instances, and seconds of dispatches, that a worker has told of.
    fn shown(snapshot: &Self::Snapshot) -> (u64, f64);

    /// The line of a test that is not run.
    fn skipped(&self, cell: usize, missing: &str) -> RunLine;

    /// What a verdict that is there already says unlike the model that judges, where it does.
    fn contradicts(&self, _cell: usize, _line: &RunLine) -> Option<String> {
        None
    }

    /// Judges what became of a test. `before` is how the last one failed that did.
    fn judged(
        &self,
        cell: usize,
        report: Report<Self::Snapshot, Self::Answer>,
        before: Option<Reason>,
    ) -> Judged;
}

/// What became of a job of a kind.
pub type ReportOf<K> = Report<<K as Kind>::Snapshot, <K as Kind>::Answer>;
/// What workers of a kind tell.
pub type EventOf<'a, K> = Event<'a, <K as Kind>::Snapshot, <K as Kind>::Answer>;

/// Runs jobs in workers; they end with the call.
pub trait Workers<K: Kind>: Sync {
    /// Runs so many jobs on a device.
    fn run(
        &self,
        kind: &K,
        target: &Target,
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
    /// Those of the program that is running.
    ///
    /// # Errors
    /// When its file is not known.
    pub fn new() -> Result<Processes, Failure> {
        Ok(Processes { program: workers::program()? })
    }
}

impl<K: Kind> Workers<K> for Processes {
    fn run(
        &self,
        kind: &K,
        target: &Target,
        limits: &Limits,
        jobs: usize,
        job: &mut dyn FnMut(usize, Option<Duration>) -> K::Job,
        event: &mut dyn FnMut(EventOf<'_, K>) -> ControlFlow<()>,
    ) {
        let task = kind.task();
        let command = &mut || target.process.command(&self.program, &task);
        pool::run(limits, jobs, Calls { command, job, event });
    }
}

/// How a job ended, or what its test is skipped for. `before` is how the last one failed that did.
pub(crate) fn ending<K: Kind>(end: &End<K::Answer>, before: Option<Reason>) -> Result<Ending, String> {
    Ok(match end {
        End::Answered(answer) => match K::failure(answer) {
            None => Ending::Finished,
            Some(Told::NotPlaceable { rule: what } | Told::Lacks { what }) => return Err(what.clone()),
            Some(Told::NullDevice) => Ending::NullDevice,
            Some(told @ (Told::DeviceLost { .. } | Told::NoDevice { .. })) => {
                Ending::DeviceLost(told.to_string())
            }
            Some(told @ Told::TimedOut { .. }) => Ending::TimedOut(told.to_string()),
            Some(
                told
                @ (Told::Test { .. } | Told::Stress { .. } | Told::Driver { .. } | Told::Internal { .. }),
            ) => Ending::Crashed(told.to_string()),
        },
        End::Failed(failure @ pool::Failure::TimedOut { .. }) => Ending::TimedOut(failure.to_string()),
        End::Failed(
            failure @ (pool::Failure::Crashed { .. }
            | pool::Failure::Garbled { .. }
            | pool::Failure::CannotStart { .. }),
        ) => Ending::Crashed(failure.to_string()),
        End::NotRun(why @ NotRun::TimeIsUp) => Ending::NoTime(why.to_string()),
        End::NotRun(why @ NotRun::Gone { .. }) => Ending::DeviceLost(why.to_string()),
        End::NotRun(why @ NotRun::GivenUp { .. }) => match before {
            Some(Reason::TimedOut) => Ending::TimedOut(why.to_string()),
            Some(Reason::DeviceLost) => Ending::DeviceLost(why.to_string()),
            _ => Ending::Crashed(why.to_string()),
        },
    })
}

/// How a run failed, where it did.
pub(crate) fn failure_of(ending: &Result<Ending, String>) -> Option<Reason> {
    match ending {
        Ok(Ending::TimedOut(_)) => Some(Reason::TimedOut),
        Ok(Ending::Crashed(_)) => Some(Reason::Crashed),
        Ok(Ending::DeviceLost(_)) => Some(Reason::DeviceLost),
        // What never began says nothing of the device.
        Ok(Ending::Finished | Ending::NullDevice | Ending::NoTime(_)) | Err(_) => None,
    }
}

/// How a run ended.
#[derive(Debug)]
pub struct Ended {
    /// The results folder, with its reports.
    pub folder: Folder,
    /// The verdicts in the order of the plan; where there is none, as it was interrupted, a line that says that it is missing.
    pub lines: Vec<RunLine>,
    /// Messages of the validation layers.
    pub validation_messages: usize,
    /// Whether it was interrupted.
    pub interrupted: bool,
}

/// A run of a kind.
pub struct Run<'a, K: Kind> {
    /// What is asked and how it is judged.
    pub kind: &'a K,
    /// Where.
    pub workers: &'a dyn Workers<K>,
    /// Who watches.
    pub watch: &'a dyn Watch,
    /// Set when the run is to end.
    pub interrupted: &'a AtomicBool,
    /// Verdicts of an earlier process that are reported again instead of being looked for again.
    pub remembered: &'a Done,
}

/// What workers tell.
enum Happened<K: Kind> {
    /// A job goes on.
    Progress(usize, K::Snapshot),
    /// The next one has ended.
    Finished(ReportOf<K>),
}

/// What is told of jobs so far.
#[derive(Default)]
struct Heard {
    validation_messages: usize,
    last_failure: Option<Reason>,
}

impl<K: Kind> Run<'_, K> {
    /// Runs everything that is not done, device by device, and finishes the folder.
    ///
    /// # Errors
    /// When journal or output cannot be written.
    pub fn go(&self, folder: Folder, mut done: Done, writer: &mut dyn RunWriter) -> Result<Ended, Failure> {
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
                        // A skipped test's line says what it is compiled to as well; what was skipped then has none.
                        let (found, own) = (&line.hashes.kernel, self.kind.skipped(index, "").hashes.kernel);
                        let other = !found.is_empty() && !own.is_empty() && *found != own;
                        let other = other.then(|| "its `hashes.kernel` is of another kernel".to_owned());
                        if let Some(what) = other.or_else(|| self.kind.contradicts(index, &line)) {
                            return Err(foreign(book.folder.path(), &line, &what));
                        }
                        book.know(index, line)?;
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

    /// Runs tests of a device, with a fresh worker after each that must show that the device is in order.
    fn run_device(
        &self,
        number: usize,
        target: &Target,
        cells: &[Cell],
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
                    let report = Report::not_run(job, why.clone());
                    book.add(*cell, self.kind.judged(*cell, report, heard.last_failure).line)?;
                }
                return Ok(());
            }
            let (judged, spoiled) =
                self.run_some((number, target, &lost), deadline, cells, waiting, heard, &mut *book)?;
            waiting = waiting.get(judged..).unwrap_or_default();
            if spoiled {
                gone = self.ill(number, target).map(|why| NotRun::Gone { why });
            } else if judged == 0 {
                break;
            }
        }
        Ok(())
    }

    /// Runs tests of a device until one fails in a way after which the device must show that it is in order. Gives how many
    /// have got a verdict, and whether the last one failed so. `lost` counts the attempts that lost the device.
    fn run_some(
        &self,
        (number, target, lost): (usize, &Target, &AtomicU32),
        deadline: Option<Instant>,
        cells: &[Cell],
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
        // Judging may take seconds. It must not keep the pool from workers that are overdue, which would go on meanwhile.
        std::thread::scope(|scope| {
            let workers = self.workers;
            let (kind, interrupted) = (self.kind, self.interrupted);
            scope.spawn(move || {
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
                        // A worker that ends now may have been ended by the same signal.
                        if interrupted.load(Ordering::Relaxed) {
                            return ControlFlow::Break(());
                        }
                        let ended = match &event {
                            Event::Again(attempt) => Some(&attempt.end),
                            Event::Finished(report) => Some(&report.last.end),
                            Event::Progress { .. } => None,
                        };
                        lost.fetch_add(ended.is_some_and(lost_device::<K>).into(), Ordering::Relaxed);
                        send::<K>(&events, event, &over)
                    },
                );
            });
            let (mut judged, mut spoiled) = (0, false);
            // Where a verdict cannot be booked, nobody listens any more, and the pool ends.
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
                        let Judged { line, failure, validation } =
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

    /// Why a device does not even do its healthy job; nothing where it does.
    fn ill(&self, number: usize, target: &Target) -> Option<String> {
        let job = self.kind.health(number)?;
        let mut ill = Some("it does not answer".to_owned());
        let limits = self.kind.limits(number, 1);
        self.workers.run(self.kind, target, &limits, 1, &mut |_, _| job.clone(), &mut |event| {
            if let Event::Finished(report) = event {
                ill = match &report.last.end {
                    End::Answered(answer) if pool::Answer::health(answer) == Health::Good => None,
                    End::Answered(answer) => K::failure(answer).map(ToString::to_string),
                    End::Failed(failure) => Some(failure.to_string()),
                    End::NotRun(why) => Some(why.to_string()),
                };
            }
            ControlFlow::Continue(())
        });
        ill
    }
}

/// What to make of a verdict of a folder that is none of the plan that is to go on there.
fn foreign(folder: &Path, line: &RunLine, what: &str) -> Failure {
    Failure::input_message(format!(
        "{}: the verdict on `{}` on `{}` is none of this run: {what}",
        folder.display(),
        line.id,
        line.device
    ))
}

/// Whether the worker and perhaps the device are in a state that no further job should meet.
fn spoils<K: Kind>(report: &ReportOf<K>) -> bool {
    match &report.last.end {
        End::Answered(answer) => K::failure(answer).is_some_and(Told::spoils_worker),
        End::Failed(_) => true,
        End::NotRun(_) => false,
    }
}

/// Whether an attempt lost the device.
fn lost_device<K: Kind>(end: &End<K::Answer>) -> bool {
    match end {
        End::Answered(answer) => matches!(K::failure(answer), Some(Told::DeviceLost { .. })),
        End::Failed(_) | End::NotRun(_) => false,
    }
}

/// Hands an event over to whoever judges; a break where that is the last one.
fn send<K: Kind>(
    events: &Sender<Box<Happened<K>>>,
    event: EventOf<'_, K>,
    is_last: &dyn Fn(&ReportOf<K>) -> bool,
) -> ControlFlow<()> {
    let (happened, last) = match event {
        Event::Again(_) => return ControlFlow::Continue(()),
        Event::Progress { job, snapshot } => (Happened::Progress(job, snapshot.clone()), false),
        Event::Finished(report) => {
            let last = is_last(&report);
            (Happened::Finished(report), last)
        }
    };
    match events.send(Box::new(happened)) {
        Ok(()) if !last => ControlFlow::Continue(()),
        Ok(()) | Err(_) => ControlFlow::Break(()),
    }
}
