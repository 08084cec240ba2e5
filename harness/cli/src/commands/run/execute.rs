//! The execution of a plan: worker processes, the journal, and lines in the order of the plan.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use device::DriverEnvironment;
use litmus::{Observation, Overlap};
use results::Reason;
use results::folder::Folder;
use results::wire::RunLine;
use results::write::RunWriter;
use runner::Settings;
use runner::pool::{self, Calls, Event, Limits};
use runner::wire::{Answer, Job, Snapshot};

use super::misbehave::Misbehaviour;
use super::plan::{Cell, Plan};
use super::progress::Progress;
use super::verdict::{LineContext, Ran, failure_of};
use super::{Budget, Done};
use crate::exit::Failure;
use crate::output::cannot_print;

/// The least time for the tests of a device, however long the predictions took.
const LEAST_TIME: Duration = Duration::from_millis(500);

/// How the ids of messages of synchronization validation begin.
const SYNCHRONIZATION_HAZARD: &str = "SYNC-HAZARD-";

/// How a plan is executed.
pub struct Execution<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// What lines are made of besides.
    pub context: LineContext,
    /// How long.
    pub budget: Budget,
    /// When the program started: predictions count against the time.
    pub started: Instant,
    /// Worker processes at once.
    pub jobs: u32,
    /// How often a failed test is tried again.
    pub retries: u32,
    /// Whether the validation layers are on.
    pub validate: bool,
    /// Where workers find drivers.
    pub environment: &'a DriverEnvironment,
    /// A hook for tests.
    pub misbehaviour: &'a Misbehaviour,
    /// Set when the run is to end.
    pub interrupted: Arc<AtomicBool>,
    /// Whether to show progress to whoever watches.
    pub progress: bool,
    /// Verdicts of an earlier process that are reported again instead of being looked for again.
    pub remembered: &'a Done,
}

/// How an execution ended.
pub struct Ended {
    /// The results folder.
    pub folder: Folder,
    /// The verdicts in the order of the plan; all of them unless it was interrupted.
    pub lines: Vec<RunLine>,
    /// Messages of the validation layers.
    pub validation_messages: usize,
    /// Whether it was interrupted.
    pub interrupted: bool,
}

/// What grows while tests end.
struct Book<'w> {
    folder: Folder,
    writer: &'w mut dyn RunWriter,
    /// A place for each cell of the plan.
    lines: Vec<Option<RunLine>>,
    written: usize,
    validation_messages: usize,
    last_failure: Option<Reason>,
    progress: Progress,
    /// The tests' ids, in the order of the plan.
    ids: Vec<&'w str>,
}

impl Book<'_> {
    /// Tells the writer which verdict comes next.
    fn announce(&mut self) -> Result<(), Failure> {
        match self.ids.get(self.written) {
            Some(id) => self.writer.starts(id).map_err(cannot_print),
            None => Ok(()),
        }
    }

    /// Books a new verdict: first into the journal.
    fn add(&mut self, cell: usize, line: RunLine) -> Result<(), Failure> {
        self.folder.append(&line).map_err(super::folder_failure)?;
        self.know(cell, line)
    }

    /// Books a verdict that is in the journal already.
    fn know(&mut self, cell: usize, line: RunLine) -> Result<(), Failure> {
        if let Some(place) = self.lines.get_mut(cell) {
            *place = Some(line);
        }
        self.progress.advance();
        while let Some(Some(line)) = self.lines.get(self.written) {
            self.writer.judged(line).map_err(cannot_print)?;
            self.written += 1;
        }
        self.announce()
    }
}

impl Execution<'_> {
    /// Runs everything that is not done, device by device.
    ///
    /// # Errors
    /// When journal or output cannot be written.
    pub fn go(&self, folder: Folder, mut done: Done, writer: &mut dyn RunWriter) -> Result<Ended, Failure> {
        let id = |cell: &Cell| self.plan.items[cell.item].loaded.source.id.as_str();
        let mut book = Book {
            ids: self.plan.cells.iter().map(id).collect(),
            folder,
            writer,
            lines: self.plan.cells.iter().map(|_| None).collect(),
            written: 0,
            validation_messages: 0,
            last_failure: None,
            progress: Progress::new(self.plan.cells.len(), self.progress, self.whole_time()),
        };
        book.writer.begins(&book.ids).map_err(cannot_print)?;
        book.announce()?;
        for target in 0..self.plan.targets.len() {
            let mut waiting = Vec::new();
            for (index, cell) in self.plan.cells.iter().enumerate().filter(|(_, cell)| cell.target == target)
            {
                let item = &self.plan.items[cell.item];
                let key = (self.plan.targets[target].name.clone(), item.loaded.source.id.clone());
                if let Some(line) = self.remembered.get(&key).filter(|_| !done.contains_key(&key)) {
                    book.add(index, line.clone())?;
                    continue;
                }
                match (done.remove(&key), &cell.ready) {
                    (Some(line), _) => book.know(index, line)?,
                    (None, Err(missing)) => {
                        let line = self.context.skipped(self.plan, cell, missing);
                        book.add(index, line)?;
                    }
                    (None, Ok(_)) => waiting.push(index),
                }
            }
            if !self.is_interrupted() {
                self.run_device(target, &waiting, &mut book)?;
            }
        }
        book.progress.end();
        Ok(Ended {
            interrupted: self.is_interrupted() && book.lines.iter().any(Option::is_none),
            folder: book.folder,
            lines: book.lines.into_iter().flatten().collect(),
            validation_messages: book.validation_messages,
        })
    }

    fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// The time for all devices, where it is bounded.
    fn whole_time(&self) -> Option<Duration> {
        match self.budget {
            Budget::Time(time) => Some(time * u32::try_from(self.plan.targets.len()).unwrap_or(u32::MAX)),
            Budget::Instances(_) => None,
        }
    }

    /// The time for `waiting` of the tests of one device. The first device pays for the predictions.
    fn time(&self, target: usize, waiting: usize) -> Option<Duration> {
        let Budget::Time(time) = self.budget else { return None };
        let time = if target == 0 { time.saturating_sub(self.started.elapsed()) } else { time };
        let runnable = self.plan.cells.iter().filter(|c| c.target == target && c.ready.is_ok()).count();
        let share = waiting as f64 / runnable.max(1) as f64;
        Some(time.mul_f64(share.clamp(0.0, 1.0)).max(LEAST_TIME))
    }

    fn run_device(&self, target: usize, waiting: &[usize], book: &mut Book<'_>) -> Result<(), Failure> {
        let program = std::env::current_exe().map_err(Failure::environment_error)?;
        let limits = Limits {
            workers: self.jobs,
            time: self.time(target, waiting.len()),
            retries: self.retries,
            ..Limits::DEFAULT
        };
        book.last_failure = None;
        let mut broken = None;
        let mut finished: VecDeque<usize> = waiting.iter().copied().collect();
        pool::run(
            &limits,
            waiting.len(),
            Calls::<Job, Snapshot, Answer> {
                command: &mut || self.worker(&program, target),
                job: &mut |job, share| {
                    let numbered = |number: usize| waiting.get(number).copied();
                    // With several workers, nobody knows which of them gets the next one; and CPU drivers have no time to
                    // spare for it.
                    let ahead = self.jobs == 1 && !self.plan.targets[target].listed.capabilities.is_cpu;
                    let next = numbered(job + 1).filter(|_| ahead);
                    let next = next.map(|next| Box::new(Job { serial: Vec::new(), ..self.job(next, None) }));
                    Job { next, ..self.job(numbered(job).unwrap_or_default(), share) }
                },
                event: &mut |event| {
                    // A worker that ends now may have been ended by the same signal.
                    if self.is_interrupted() {
                        return ControlFlow::Break(());
                    }
                    match event {
                        Event::Progress { job, snapshot } => {
                            if let Some(cell) = waiting.get(job).and_then(|index| self.plan.cells.get(*index))
                            {
                                self.show(cell, snapshot, &book.progress);
                            }
                            ControlFlow::Continue(())
                        }
                        Event::Finished(report) => {
                            let Some(index) = finished.pop_front() else { return ControlFlow::Break(()) };
                            let ran = Ran::new(report, book.last_failure);
                            match self.book(index, &ran, book) {
                                Ok(()) => ControlFlow::Continue(()),
                                Err(failure) => {
                                    broken = Some(failure);
                                    ControlFlow::Break(())
                                }
                            }
                        }
                    }
                },
            },
        );
        broken.map_or(Ok(()), Err)
    }

    /// Judges a test and books the verdict.
    fn book(&self, index: usize, ran: &Ran, book: &mut Book<'_>) -> Result<(), Failure> {
        let Some(cell) = self.plan.cells.get(index) else { return Ok(()) };
        if let Some(reason) = failure_of(&ran.ending) {
            book.last_failure = Some(reason);
        }
        let item = &self.plan.items[cell.item];
        // Where the model finds a race, synchronization validation finds a hazard: that is no mistake of the run.
        let racy = matches!(&cell.ready, Ok(prediction) if prediction.is_undefined());
        let is_race = |message: &&String| racy && message.contains(SYNCHRONIZATION_HAZARD);
        for message in ran.validation.iter().filter(|message| !is_race(message)) {
            book.validation_messages += 1;
            book.progress.say(&format!("validation, {}: {message}", item.loaded.source.id));
        }
        book.add(index, self.context.judged(self.plan, cell, ran))
    }

    fn show(&self, cell: &Cell, snapshot: &Snapshot, progress: &Progress) {
        let item = &self.plan.items[cell.item];
        let seen = Observation::from(&snapshot.observation);
        let device = &self.plan.targets[cell.target].name;
        progress.shows(device, &item.loaded.source.id, seen.instances(), seen.seconds);
    }

    /// The command of a worker. It leads a process group of its own: an interrupt from the keyboard is for the parent,
    /// which ends its workers itself.
    fn worker(&self, program: &std::path::Path, target: usize) -> Command {
        let compile_only = self.plan.targets.get(target).and_then(|target| target.compile_only.as_ref());
        let mut command = match compile_only {
            Some(device) => device.command(program),
            None => {
                let mut command = Command::new(program);
                command.envs(self.environment.variables());
                command
            }
        };
        command.arg("worker");
        if self.validate {
            command.arg("--validate");
        }
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        command
    }

    fn job(&self, index: usize, share: Option<Duration>) -> Job {
        let cell = &self.plan.cells[index];
        let item = &self.plan.items[cell.item];
        let target = &self.plan.targets[cell.target];
        let instances = match self.budget {
            Budget::Instances(instances) => Some(instances),
            Budget::Time(_) => None,
        };
        Job {
            id: item.loaded.source.id.clone(),
            text: item.loaded.text.clone(),
            variant: item.variant.to_string(),
            device: self.misbehaviour.selector(&item.loaded.source.id, &target.selector),
            stress: Some(target.stress.clone()),
            instances,
            seconds: share.map(|share| share.as_secs_f64()),
            seed: seed_of(self.context.seed, &item.hash),
            plausible: plausible(cell),
            twin: item.judged.overlap() != Overlap::Ordered,
            serial: serial(cell),
            enough: results::judge::EXERCISED_THRESHOLD,
            patience: Settings::PATIENCE.as_secs_f64(),
            next: None,
        }
    }
}

/// The seed of one test: the same alone as among others.
pub fn seed_of(seed: u64, test: &str) -> u64 {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&seed.to_le_bytes());
    hasher.update(test.as_bytes());
    let mut bytes = [0; 8];
    hasher.finalize_xof().fill(&mut bytes);
    u64::from_le_bytes(bytes)
}

/// The outcomes that a serial order of whole threads produces.
fn serial(cell: &Cell) -> Vec<Vec<u64>> {
    let Ok(prediction) = &cell.ready else { return Vec::new() };
    let serial = prediction.outcomes.iter().filter(|(_, says)| says.serial);
    serial.map(|(outcome, _)| outcome.0.iter().map(|value| value.0).collect()).collect()
}

/// The words that an instance may show by the prediction.
fn plausible(cell: &Cell) -> Vec<u32> {
    let Ok(prediction) = &cell.ready else { return Vec::new() };
    let mut words: Vec<u32> =
        prediction.outcomes.keys().flat_map(|outcome| &outcome.0).map(|value| value.0 as u32).collect();
    words.sort_unstable();
    words.dedup();
    words
}
