//! `run --suite progress`: which loops end on a device, in which placement, and which progress models that refutes.
//!
//! Never part of another suite, and on hardware only where the device is named: what hangs may cost a reset. Each job runs
//! in a worker process under a deadline; after one that had to be ended, a fresh worker must first get a store through.

mod judge;

use std::ops::ControlFlow;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime};

use device::DriverEnvironment;
use litmus::corpus::PROGRESS_SUITE;
use litmus::{Race, Test};
use model::progress::{
    Fairness, Limits as Bounds, PROMISES, ProgressModel, Promise, Termination, terminates_under,
};
use model::{Budget, Options, predict};
use rand::Rng;
use results::folder::{self, Folder};
use results::wire::{ModelRecord, PLAN_SCHEMA, PlanRecord, RunLine, TestRecord};
use results::write::{Format, RunWriter, run_writer};
use runner::pool::{self, Calls, Event, Health, Limits, Report};
use runner::progress::{Answer, Job, PLACEMENTS, Placement, Seen};
use sim::SimDevice;

use super::expect::{self, Expected};
use super::misbehave::Misbehaviour;
use super::plan::{self, Target};
use super::progress::Progress;
use super::{Done, folder_failure, interrupted, judgement_outcome};
use crate::arguments::Run;
use crate::choice::{self, Chosen};
use crate::exit::{Failure, Outcome};
use crate::inputs::{self, Loaded};
use crate::output::{Data, cannot_print, complain, layout, say};
use crate::parallel::in_order;
use crate::patience::patience;
use crate::probe;

/// Dispatches of a test in one placement.
const RUNS: u32 = 20;
/// Dispatches that did not end after which a placement has shown what it shows.
const ENOUGH: u32 = 3;
/// The longest that a dispatch is waited for, where kernels run on the host's processor.
const LONGEST_ON_CPU: Duration = Duration::from_millis(400);
/// The same on hardware, below what watchdogs allow.
const LONGEST: Duration = Duration::from_secs(2);
/// How long a worker may be silent: it speaks after each dispatch.
const SILENCE: Duration = Duration::from_secs(10);
/// The longest that a test is asked about.
const PATIENCE: Duration = Duration::from_secs(5);
/// What judges where nothing else is asked for.
const MODEL: &str = "vulkan";
/// A store that a device in order gets through.
const HEALTH: &str = "VULKAN health { x = 0; } P0@sg 0, wg 0, qf 0 ; st.atom.dv.sc0 x, 1 ; exists (x == 1)";

/// Whether tests are to be run for forward progress.
pub fn is_asked(arguments: &Run) -> bool {
    arguments.suite.as_deref() == Some(PROGRESS_SUITE) || arguments.progress.is_some()
}

/// A test with what the checker says of it.
struct Item {
    loaded: Loaded,
    hash: String,
    /// Placements that were asked for; all that suit it where none was.
    placements: Vec<Placement>,
    verdicts: Result<Verdicts, String>,
}

/// Under which progress models a test ends, by the checker.
struct Verdicts {
    race: Race,
    /// In the order of [`PROMISES`].
    ends: Vec<Option<bool>>,
}

/// A device with what is claimed of it.
struct Tested {
    target: Target,
    /// The selector of its worker.
    selector: String,
    /// What its expectation file claims.
    claim: Option<ProgressModel>,
    /// By test: whether it ends under the claim.
    ends_under_claim: Vec<Option<bool>>,
}

/// A test on a device in a placement.
struct Cell {
    item: usize,
    device: usize,
    placement: Placement,
    /// The kernel's hash, where threads part, and their parts; or what the test is skipped for.
    kernel: Result<judge::Kernel, String>,
}

/// Runs the command.
///
/// # Errors
/// What ended it before anything was run, or kept it from going on.
pub fn run(arguments: &Run, quiet: bool) -> Result<Outcome, Failure> {
    let refused = [
        ("--fault", arguments.fault.is_some()),
        ("--stress", arguments.stress.is_some()),
        ("--cts-name", arguments.cts_name.is_some()),
        ("--save-baseline", arguments.save_baseline),
        ("--gtest_list_tests", arguments.gtest_list_tests),
        ("--gtest_filter", arguments.gtest_filter.is_some()),
        ("--gtest_output", arguments.gtest_output.is_some()),
    ];
    if let Some((flag, _)) = refused.iter().find(|(_, given)| *given) {
        return Err(Failure::not_available(format!("`{flag}` with tests of forward progress")));
    }
    let misbehaviour = Misbehaviour::parse(&arguments.misbehave)?;
    let scheduler = arguments.progress.as_deref().map(scheduler).transpose()?;
    let mut writer =
        run_writer(arguments.format, Data::coloured(), layout()).map_err(Failure::input_error)?;
    let mut outcome = Outcome::Success;
    if let Some(path) = arguments.out.as_deref().filter(|_| !arguments.resume) {
        folder::ensure_empty(path).map_err(folder_failure)?;
    }
    let chosen = choice::load(arguments.model.as_deref().unwrap_or(MODEL))?;
    let (targets, environment) = targets(arguments, scheduler.is_some())?;
    let items = items(arguments, &chosen, &mut outcome)?;
    if items.is_empty() {
        return Err(Failure::input_message("no test to run"));
    }
    let mut devices = Vec::with_capacity(targets.len());
    for target in targets {
        let claim = claim(arguments, &target)?;
        let selector = if probe::is_sim(&target.listed) {
            let model = scheduler.unwrap_or(ProgressModel::uniform(Promise::Fair));
            format!("{}:{}{model}", SimDevice::NAME, super::super::worker::SCHEDULER)
        } else {
            target.selector.clone()
        };
        let ends_under_claim = items
            .iter()
            .map(|item| {
                claim.and_then(|claim| ends(&item.loaded.test, &chosen, &[claim]).ok()?.pop()?.terminates)
            })
            .collect();
        devices.push(Tested { target, selector, claim, ends_under_claim });
    }
    let cells = cells(&items, &devices);
    let records =
        devices.iter().map(|tested| plan::device_record(&tested.target)).collect::<Result<_, _>>()?;
    let expectations = arguments.expect.as_deref().map(expect::load).transpose()?.unwrap_or_default();
    let ids: Vec<String> = cells.iter().map(|cell| id(&items, cell)).collect();
    let expected = Expected::new(expectations, &ids, records);
    let mut whole = Whole {
        items,
        devices,
        cells,
        chosen,
        scheduler,
        arguments,
        quiet,
        environment,
        misbehaviour,
        expected,
    };
    whole.skip_as_expected();
    outcome.note(whole.run(writer.as_mut())?);
    Ok(outcome)
}

/// The scheduler of the simulated GPU.
fn scheduler(text: &str) -> Result<ProgressModel, Failure> {
    text.parse().map_err(Failure::input_error)
}

/// The devices; hardware only by name.
fn targets(arguments: &Run, scheduled: bool) -> Result<(Vec<Target>, DriverEnvironment), Failure> {
    let simulated = [SimDevice::NAME.to_owned()];
    let named = if scheduled && arguments.device.is_empty() { &simulated[..] } else { &arguments.device[..] };
    let (targets, environment) = plan::targets(named, None)?;
    for target in &targets {
        let simulated = probe::is_sim(&target.listed);
        if scheduled && !simulated {
            return Err(Failure::input_message("`--progress` goes with `--device sim` alone"));
        }
        if arguments.device.is_empty() && !simulated && !target.listed.capabilities.is_cpu {
            return Err(Failure::input_message(format!(
                "tests of forward progress may hang a device: name {} with `--device` to run them on it",
                target.name
            )));
        }
    }
    Ok((targets, environment))
}

/// The tests: those that are named, else the suite; each with what the checker says.
fn items(arguments: &Run, chosen: &Chosen, outcome: &mut Outcome) -> Result<Vec<Item>, Failure> {
    let sources = if arguments.tests.is_empty() {
        let suite = arguments.suite.as_deref().unwrap_or(PROGRESS_SUITE);
        inputs::of_suite(suite)?
    } else {
        let suite = arguments.suite.as_deref().filter(|suite| *suite != PROGRESS_SUITE);
        inputs::collect(&arguments.tests, suite, None, || Ok(Vec::new()))?
    };
    let mut loaded: Vec<(Loaded, Vec<Placement>)> = Vec::new();
    for source in plan::part(sources, arguments.shard) {
        let placements = placements(&source.variant).ok_or_else(|| {
            Failure::input_message(format!(
                "{}: expected a placement behind `@`: plain, round-robin, chunked or mixed",
                source.argument
            ))
        })?;
        match source.load() {
            Ok(test) => loaded.push((test, placements)),
            Err(rejected) => {
                let (source, rejection) = *rejected;
                let failure = rejection.failure(&source.file);
                outcome.note(failure.outcome());
                complain(failure.report());
            }
        }
    }
    let mut verdicts = Vec::with_capacity(loaded.len());
    let done: Result<(), std::convert::Infallible> = in_order(
        &loaded,
        |(loaded, _)| ask(&loaded.test, chosen),
        |answer| {
            verdicts.push(answer);
            Ok(())
        },
    );
    match done {
        Ok(()) => {}
    }
    Ok(loaded
        .into_iter()
        .zip(verdicts)
        .map(|((loaded, placements), verdicts)| Item {
            hash: choice::hash(&loaded.text),
            loaded,
            placements,
            verdicts,
        })
        .collect())
}

/// The placements that the words behind an `@` name.
fn placements(variant: &str) -> Option<Vec<Placement>> {
    if variant.is_empty() {
        return Some(PLACEMENTS.iter().map(|(_, placement)| *placement).collect());
    }
    PLACEMENTS.iter().find(|(name, _)| *name == variant).map(|(_, placement)| vec![*placement])
}

/// Asks the models about a test.
fn ask(test: &Test, chosen: &Chosen) -> Result<Verdicts, String> {
    let stop = patience(PATIENCE);
    let options = Options { budget: Budget::until(&stop), ..Options::default() };
    let race = predict(test, &chosen.model, &options).map_err(|error| error.to_string())?.race;
    let uniform: Vec<ProgressModel> =
        PROMISES.iter().map(|(_, promise)| ProgressModel::uniform(*promise)).collect();
    let answers = ends(test, chosen, &uniform)?;
    Ok(Verdicts { race, ends: answers.iter().map(|answer| answer.terminates).collect() })
}

fn ends(test: &Test, chosen: &Chosen, models: &[ProgressModel]) -> Result<Vec<Termination>, String> {
    let stop = patience(PATIENCE);
    let bounds = Bounds::within(Budget::until(&stop));
    terminates_under(test, &chosen.model, models, Fairness::Weak, &bounds).map_err(|error| error.to_string())
}

/// What the expectation folder claims of a device: a progress model in `NAME-progress.txt`.
fn claim(arguments: &Run, target: &Target) -> Result<Option<ProgressModel>, Failure> {
    let Some(folder) = &arguments.expect else { return Ok(None) };
    let path = folder.join(format!("{}{}", target.listed.identity.name, expect::PROGRESS_SUFFIX));
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && folder.is_dir() => return Ok(None),
        Err(error) => return Err(Failure::input_message(format!("{}: {error}", path.display()))),
    };
    let mut lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    let mut lines = lines.by_ref().filter(|line| !line.is_empty());
    let wrong = |what: &str| Failure::input_message(format!("{}: {what}", path.display()));
    let claim = lines.next().ok_or_else(|| wrong("expected a progress model"))?;
    if lines.next().is_some() {
        return Err(wrong("more than one progress model"));
    }
    claim.parse().map(Some).map_err(|error| wrong(&format!("{error}")))
}

fn cells(items: &[Item], devices: &[Tested]) -> Vec<Cell> {
    let mut cells = Vec::new();
    for (device, tested) in devices.iter().enumerate() {
        let capabilities = &tested.target.listed.capabilities;
        let simulated = probe::is_sim(&tested.target.listed);
        for (number, item) in items.iter().enumerate() {
            let kernel = |placement| match &item.verdicts {
                Err(why) => Err(why.clone()),
                Ok(_) => runner::progress::kernel(&item.loaded.test, capabilities, placement)
                    .map(|kernel| judge::Kernel::of(&kernel))
                    .map_err(|failure| failure.to_string()),
            };
            let parts = kernel(Placement::Plain).map_or(1, |kernel| kernel.units);
            for placement in item.placements.iter().copied() {
                // The scheduler of the simulated GPU looks at who is where, not at numbers: copies would add nothing.
                let suits = placement.suits(parts) && (placement == Placement::Plain || !simulated);
                if suits || item.placements.len() == 1 {
                    cells.push(Cell { item: number, device, placement, kernel: kernel(placement) });
                }
            }
        }
    }
    cells
}

/// The id of a test in a placement.
fn id(items: &[Item], cell: &Cell) -> String {
    let source = &items[cell.item].loaded.source;
    if source.variant.is_empty() {
        format!("{}@{}", source.id, cell.placement.name())
    } else {
        source.id.clone()
    }
}

/// Everything that is to be run.
struct Whole<'a> {
    items: Vec<Item>,
    devices: Vec<Tested>,
    cells: Vec<Cell>,
    chosen: Chosen,
    scheduler: Option<ProgressModel>,
    arguments: &'a Run,
    quiet: bool,
    environment: DriverEnvironment,
    misbehaviour: Misbehaviour,
    expected: Expected,
}

/// What grows while tests end.
struct Book<'w> {
    folder: Folder,
    writer: &'w mut dyn RunWriter,
    lines: Vec<RunLine>,
    progress: Progress,
    validation_messages: usize,
}

impl Book<'_> {
    fn add(&mut self, line: RunLine, is_new: bool) -> Result<(), Failure> {
        if is_new {
            self.folder.append(&line).map_err(folder_failure)?;
        }
        self.writer.judged(&line).map_err(cannot_print)?;
        self.progress.advance();
        self.lines.push(line);
        Ok(())
    }
}

impl Whole<'_> {
    fn runs(&self) -> u32 {
        self.arguments.instances.map_or(RUNS, |instances| u32::try_from(instances).unwrap_or(u32::MAX))
    }

    fn id(&self, cell: &Cell) -> String {
        id(&self.items, cell)
    }

    /// Leaves out what the expectations say to skip.
    fn skip_as_expected(&mut self) {
        for index in 0..self.cells.len() {
            let cell = &self.cells[index];
            let device = &self.devices[cell.device].target.name;
            if let Some(place) = self.expected.skips(device, &self.id(cell)) {
                self.cells[index].kernel = Err(expect::reason(&place));
            }
        }
    }

    fn run(&self, writer: &mut dyn RunWriter) -> Result<Outcome, Failure> {
        let stopped = interrupted()?;
        let (folder, seed, mut done) = self.open_folder()?;
        let show = !self.quiet
            && (self.arguments.format == Format::Text
                || !std::io::IsTerminal::is_terminal(&std::io::stdout()));
        let mut book = Book {
            folder,
            writer,
            lines: Vec::new(),
            progress: Progress::new(self.cells.len(), show, None),
            validation_messages: 0,
        };
        let is_stopped = || stopped.load(std::sync::atomic::Ordering::Relaxed);
        let started = Instant::now();
        for device in 0..self.devices.len() {
            let mut state =
                State { gone: None, deadline: self.arguments.time.map(|time| Instant::now() + time) };
            let own: Vec<&Cell> = self.cells.iter().filter(|cell| cell.device == device).collect();
            let mut next = 0;
            while let Some(cell) = own.get(next).filter(|_| !is_stopped()) {
                let key = (self.devices[device].target.name.clone(), self.id(cell));
                if let Some(line) = done.remove(&key) {
                    book.add(line, false)?;
                    next += 1;
                    continue;
                }
                if let Err(why) = &cell.kernel {
                    book.add(judge::skipped(self, cell, seed, why), true)?;
                    next += 1;
                    continue;
                }
                // Jobs up to the next one that needs none share a worker.
                let ready = own[next..]
                    .iter()
                    .take_while(|cell| {
                        let key = (self.devices[device].target.name.clone(), self.id(cell));
                        cell.kernel.is_ok() && !done.contains_key(&key)
                    })
                    .count();
                next += self.run_some(&own[next..next + ready], seed, &mut state, &mut book, &is_stopped)?;
            }
        }
        book.progress.end();
        book.writer.finish().map_err(cannot_print)?;
        let mut outcome = Outcome::Success;
        book.folder.finish(&book.lines).map_err(folder_failure)?;
        if !self.quiet {
            let seconds = results::write::number::seconds(started.elapsed().as_secs_f64());
            say(&format!("{seconds}, results in {}", book.folder.path().display()));
        }
        if book.validation_messages > 0 {
            say(&format!("error: {} messages of the validation layers", book.validation_messages));
            outcome.note(Outcome::Environment);
        }
        if book.lines.len() < self.cells.len() {
            say(&format!("interrupted: go on with --resume --out {}", book.folder.path().display()));
            outcome.note(Outcome::Environment);
        }
        outcome.note(judgement_outcome(&book.lines, self.arguments, &self.expected, self.quiet));
        outcome.note(self.expected.report(&book.lines, self.quiet));
        Ok(outcome)
    }

    /// Runs cells of one device until one fails in a way that spoils its worker, which is then replaced by a healthy one.
    /// Gives how many have got a verdict.
    fn run_some(
        &self,
        cells: &[&Cell],
        seed: u64,
        state: &mut State,
        book: &mut Book<'_>,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<usize, Failure> {
        if let Some(why) = state.reason_to_stop() {
            for cell in cells {
                book.add(judge::not_run(self, cell, seed, &why), true)?;
            }
            return Ok(cells.len());
        }
        let mut broken = Ok(());
        let mut judged = 0;
        let mut spoiled = false;
        let jobs: Vec<Job> = cells.iter().map(|cell| self.job(cell, seed)).collect();
        self.pool(&jobs, &mut |event| {
            if is_stopped() {
                return ControlFlow::Break(());
            }
            match event {
                Event::Progress { job, snapshot } => {
                    if let Some(cell) = cells.get(job) {
                        let device = &self.devices[cell.device].target.name;
                        book.progress.shows(device, &self.id(cell), u64::from(snapshot.runs), 0.0);
                    }
                    ControlFlow::Continue(())
                }
                Event::Finished(report) => {
                    let Some(cell) = cells.get(judged) else { return ControlFlow::Break(()) };
                    judged += 1;
                    spoiled = judge::spoils(&report);
                    if let pool::End::Answered(answer) = &report.last.end {
                        for message in &answer.validation {
                            book.validation_messages += 1;
                            book.progress.say(&format!("validation, {}: {message}", self.id(cell)));
                        }
                    }
                    broken = book.add(judge::judged(self, cell, seed, &report), true);
                    let over = broken.is_err() || spoiled || state.reason_to_stop().is_some();
                    if over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                }
            }
        });
        broken?;
        if spoiled && let Some(cell) = cells.first() {
            state.gone = self.ill(cell.device).map(Stopped::Gone);
        }
        Ok(judged)
    }

    /// Why a device does not even get a store through; nothing where it does.
    fn ill(&self, device: usize) -> Option<String> {
        let job = Job {
            id: "health".to_owned(),
            text: HEALTH.to_owned(),
            device: self.devices[device].selector.clone(),
            placement: Placement::Plain,
            runs: 1,
            enough: 1,
            longest: 1.0,
            seed: 0,
        };
        let mut ill = Some("it does not answer".to_owned());
        self.pool(&[job], &mut |event| {
            if let Event::Finished(report) = event {
                ill = match &report.last.end {
                    pool::End::Answered(answer) if pool::Answer::health(answer) == Health::Good => None,
                    pool::End::Answered(answer) => answer.failure.as_ref().map(ToString::to_string),
                    pool::End::Failed(failure) => Some(failure.to_string()),
                    pool::End::NotRun(why) => Some(why.to_string()),
                };
            }
            ControlFlow::Continue(())
        });
        ill
    }

    fn pool(&self, jobs: &[Job], event: &mut dyn FnMut(Event<'_, Seen, Answer>) -> ControlFlow<()>) {
        let program = std::env::current_exe();
        let limits = Limits { workers: 1, silence: SILENCE, ..Limits::DEFAULT };
        pool::run(
            &limits,
            jobs.len(),
            Calls::<Job, Seen, Answer> {
                command: &mut || {
                    let mut command = Command::new(program.as_deref().unwrap_or("vk-litmus".as_ref()));
                    command.args(["worker", "--progress"]).envs(self.environment.variables());
                    if self.arguments.validate {
                        command.arg("--validate");
                    }
                    #[cfg(unix)]
                    std::os::unix::process::CommandExt::process_group(&mut command, 0);
                    command
                },
                job: &mut |job, _| jobs.get(job).cloned().unwrap_or_else(|| jobs[0].clone()),
                event,
            },
        );
    }

    fn job(&self, cell: &Cell, seed: u64) -> Job {
        let item = &self.items[cell.item];
        let tested = &self.devices[cell.device];
        let longest = if tested.target.listed.capabilities.is_cpu { LONGEST_ON_CPU } else { LONGEST };
        Job {
            id: self.id(cell),
            text: item.loaded.text.clone(),
            device: self.misbehaviour.selector(&self.id(cell), &tested.selector),
            placement: cell.placement,
            runs: self.runs(),
            enough: ENOUGH,
            longest: longest.as_secs_f64(),
            seed: super::execute::seed_of(seed, &item.hash),
        }
    }

    fn open_folder(&self) -> Result<(Folder, u64, Done), Failure> {
        let arguments = self.arguments;
        let planned = match &arguments.out {
            Some(path) if arguments.resume => folder::planned(path).map_err(folder_failure)?,
            _ => None,
        };
        let seed = match (arguments.seed, &planned) {
            (Some(seed), _) => seed,
            (None, Some(planned)) => planned.seed,
            (None, None) => u64::from(rand::rng().next_u32()),
        };
        let record = self.record(seed)?;
        let path = match &arguments.out {
            Some(path) => path.clone(),
            None => {
                let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
                folder::fresh(super::DEFAULT_OUT.as_ref(), &now.replace(':', "-")).map_err(folder_failure)?
            }
        };
        if !arguments.resume {
            return Ok((Folder::start(&path, &record).map_err(folder_failure)?, seed, Done::new()));
        }
        let (folder, recovered) = Folder::resume(&path, &record).map_err(folder_failure)?;
        let done =
            recovered.lines.into_iter().map(|line| ((line.device.clone(), line.id.clone()), line)).collect();
        Ok((folder, seed, done))
    }

    fn record(&self, seed: u64) -> Result<PlanRecord, Failure> {
        let model = ModelRecord { name: self.chosen.model.name().to_owned(), hash: self.chosen.hash.clone() };
        let mut record = PlanRecord {
            schema: PLAN_SCHEMA.to_owned(),
            tool: env!("CARGO_PKG_VERSION").to_owned(),
            plan: String::new(),
            seed: 0,
            budget: format!("{} dispatches a placement", self.runs()),
            stress: self.scheduler.map_or_else(|| "progress".to_owned(), |model| format!("progress {model}")),
            shard: self.arguments.shard.map(|shard| shard.to_string()),
            devices: self
                .devices
                .iter()
                .map(|tested| plan::device_record(&tested.target))
                .collect::<Result<_, _>>()?,
            tests: self
                .cells
                .iter()
                .filter(|cell| cell.device == 0)
                .map(|cell| {
                    let item = &self.items[cell.item];
                    TestRecord {
                        id: self.id(cell),
                        name: item.loaded.test.name.clone(),
                        file: item.loaded.source.file.clone(),
                        hash: item.hash.clone(),
                        models: vec![model.clone(); self.devices.len()],
                        text: item.loaded.text.clone(),
                        clauses: item.loaded.test.metadata.clauses.clone(),
                    }
                })
                .collect(),
            environment: Some(plan::environment(self.arguments)),
        };
        let text = serde_json::to_string(&record).map_err(Failure::environment_error)?;
        record.plan = choice::hash(&text);
        record.seed = seed;
        Ok(record)
    }
}

/// Why no further test is run on a device.
#[derive(Clone, Debug)]
enum Stopped {
    /// It did not come back after a hang.
    Gone(String),
    /// The time was over.
    TimeIsUp,
}

/// What is known of a device while its tests run.
struct State {
    gone: Option<Stopped>,
    deadline: Option<Instant>,
}

impl State {
    fn reason_to_stop(&self) -> Option<Stopped> {
        let late = self.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        self.gone.clone().or(late.then_some(Stopped::TimeIsUp))
    }
}

type Ended = Report<Seen, Answer>;
