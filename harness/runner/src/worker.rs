//! The worker process: reads jobs, compiles and runs them, and answers.
//!
//! A hidden subcommand of the binary calls [`serve`]. A worker ends with its parent: when its standard input
//! is closed, and on Linux also when the thread that started it dies.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead, Write};
use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use litmus::{Observation, Overlap, Test};
use plan::{Device, DeviceError};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use shaders::Pipelines;
use shaders::variant::CarrierStage;

use crate::error::{Cause, RunError};
use crate::exercise::ExerciseCriterion;
use crate::mechanisms::{PartialRun, RunMetadata, run_mechanisms};
use crate::overlap::{InvocationPair, OverlapEvidence};
use crate::pool::Health;
use crate::runnable::{self, compile_for_device};
use crate::settings::{RunBudget, RunSettings};
use crate::stress::Stress;
use crate::variant::RunVariant;
use crate::wire::{
    IncompleteReason, Job, JobResult, RECORD_SEPARATOR, Request, Snapshot, VERSION, WorkerMessage,
};
use crate::{affinity, canary, pool, twin};

/// The interval of progress messages.
pub const PROGRESS_INTERVAL: Duration = Duration::from_millis(200);
/// The budget of the twin, as a fraction 1/n.
const TWIN_BUDGET_DIVISOR: u32 = 3;

/// Opens the device of a selector.
pub type MakeDevice<'a> = &'a mut dyn FnMut(&str) -> Result<Box<dyn Device>, DeviceError>;

/// Serves jobs from standard input until it ends. Devices are opened on first use and stay open.
///
/// Standard output has only answers; output of drivers goes to standard error.
///
/// # Errors
/// If an answer cannot be written, or a line of the parent cannot be read.
pub fn serve(make_device: MakeDevice<'_>) -> io::Result<()> {
    serve_on(make_device, PROGRESS_INTERVAL, run_job)
}

/// Sends the progress of a job to the parent, if it is due; a break ends the job.
pub type ProgressSink<'a, P> = &'a mut dyn FnMut(&dyn Fn() -> P) -> ControlFlow<()>;

/// Serves jobs on devices that are opened on first use and stay open. `min_interval` is the time between
/// progress messages.
pub(crate) fn serve_on<J, P, R>(
    make_device: MakeDevice<'_>,
    min_interval: Duration,
    answer: impl Fn(&J, &mut Devices<'_>, ProgressSink<'_, P>) -> R,
) -> io::Result<()>
where
    J: DeserializeOwned,
    P: Serialize,
    R: Serialize + pool::PoolAnswer,
{
    let mut devices = Devices::new(make_device);
    if serve_jobs(min_interval, &mut |job: &J, say: ProgressSink<'_, P>| answer(job, &mut devices, say))?
        .is_break()
    {
        // Destroying a device that hangs or was lost may block forever.
        devices.leak();
    }
    Ok(())
}

/// Serves jobs of any kind from standard input until it ends, or until an answer ends the worker, which
/// returns a break. `min_interval` is the time between progress messages.
///
/// # Errors
/// As for [`serve`].
pub fn serve_jobs<J, P, R>(
    min_interval: Duration,
    answer: &mut dyn FnMut(&J, ProgressSink<'_, P>) -> R,
) -> io::Result<ControlFlow<()>>
where
    J: DeserializeOwned,
    P: Serialize,
    R: Serialize + pool::PoolAnswer,
{
    let mut output = prepare_process()?;
    for line in read_requests() {
        let request: Request<J> = serde_json::from_str(&line?).map_err(io::Error::other)?;
        if request.version != VERSION {
            return Err(io::Error::other(format!("version {} of a request", request.version)));
        }
        let job = request.job;
        // The first message is sent immediately, because it reports that the device is open.
        let mut sent: Option<Instant> = None;
        let mut broken = None;
        let answer = answer(&request.payload, &mut |snapshot| {
            if sent.is_some_and(|sent| sent.elapsed() < min_interval) {
                return ControlFlow::Continue(());
            }
            sent = Some(Instant::now());
            let message = WorkerMessage::Progress { version: VERSION, job, payload: snapshot() };
            match send_message::<P, R>(&mut output, &message) {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => {
                    broken = Some(error);
                    ControlFlow::Break(())
                }
            }
        });
        if let Some(error) = broken {
            return Err(error);
        }
        let ends_worker = answer.ends_worker();
        send_message::<P, R>(&mut output, &WorkerMessage::Answer { version: VERSION, job, payload: answer })?;
        if ends_worker {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// A result that may contain no observation.
pub trait HasObservations {
    /// Returns true if the run observed anything.
    fn has_observations(&self) -> bool;
}

/// The result of a job whose outcomes are not counted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkerAnswer<S> {
    pub seen: S,
    /// Why it ended early.
    pub failure: Option<IncompleteReason>,
    /// Messages of the validation layers.
    pub validation: Vec<String>,
}

impl<S: Default> WorkerAnswer<S> {
    /// Creates an answer and lets `fill` complete it, as far as it gets.
    pub(crate) fn build_with(
        fill: impl FnOnce(&mut WorkerAnswer<S>) -> Result<(), IncompleteReason>,
    ) -> WorkerAnswer<S> {
        let mut answer = WorkerAnswer::default();
        answer.failure = fill(&mut answer).err();
        answer
    }
}

impl<S: HasObservations> pool::PoolAnswer for WorkerAnswer<S> {
    fn health(&self) -> Health {
        match &self.failure {
            Some(failure) if failure.invalidates_worker() => Health::Bad,
            _ if self.seen.has_observations() => Health::Good,
            _ => Health::Unknown,
        }
    }

    fn ends_worker(&self) -> bool {
        self.health() == Health::Bad
    }

    fn failure(&self) -> Option<String> {
        self.failure.as_ref().map(ToString::to_string)
    }
}

fn send_message<P: Serialize, R: Serialize>(
    output: &mut dyn Write,
    message: &WorkerMessage<P, R>,
) -> io::Result<()> {
    let mut line = vec![RECORD_SEPARATOR];
    serde_json::to_writer(&mut line, message)?;
    line.push(b'\n');
    // A driver may have printed to this line already; the separator marks the start of the message.
    output.write_all(&line)?;
    output.flush()
}

/// Ties the process to its parent, and reserves standard output for answers.
#[cfg(unix)]
fn prepare_process() -> io::Result<std::fs::File> {
    #[cfg(target_os = "linux")]
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    // Linux divides processor time between sessions first. In its own session, a worker does not compete with
    // other processes of its parent's session.
    let own = rustix::process::setsid();
    tracing::debug!(own = own.is_ok(), "a session");
    let output = std::os::fd::AsFd::as_fd(&io::stdout()).try_clone_to_owned()?;
    rustix::stdio::dup2_stdout(io::stderr())?;
    Ok(output.into())
}

#[cfg(not(unix))]
fn prepare_process() -> io::Result<io::Stdout> {
    Ok(io::stdout())
}

/// Returns the lines of standard input. When it ends, the process exits immediately.
fn read_requests() -> Receiver<io::Result<String>> {
    let (lines, requests) = channel();
    let failures = lines.clone();
    let reader = std::thread::Builder::new().spawn(move || {
        for line in io::stdin().lock().lines() {
            let failed = line.is_err();
            if lines.send(line).is_err() || failed {
                return;
            }
        }
        // The parent has ended or has no more jobs, and a hanging driver would keep the process alive.
        std::process::exit(0);
    });
    if let Err(error) = reader {
        // The receiver is the local `requests`.
        let _ = failures.send(Err(error));
    }
    requests
}

/// An open device with the result of its canary.
struct OpenDevice {
    device: Box<dyn Device>,
    canary: Result<(), Cause>,
    /// The threads that existed before it was opened; later ones belong to its driver.
    threads_before: BTreeSet<i32>,
}

pub(crate) struct Devices<'a> {
    open: BTreeMap<String, OpenDevice>,
    /// As [`RunMetadata::store_buffering`].
    store_buffering: BTreeMap<String, bool>,
    /// The evidence whether stages of a device run their invocations sequentially.
    overlap_evidence: BTreeMap<(String, InvocationPair), OverlapEvidence>,
    make_device: MakeDevice<'a>,
}

impl<'a> Devices<'a> {
    /// Creates an empty set.
    pub fn new(make: MakeDevice<'a>) -> Devices<'a> {
        Devices {
            open: BTreeMap::new(),
            store_buffering: BTreeMap::new(),
            overlap_evidence: BTreeMap::new(),
            make_device: make,
        }
    }

    /// Leaks all devices: destroying one that hangs or was lost may block forever.
    pub fn leak(&mut self) {
        std::mem::take(&mut self.open).into_values().for_each(|open| std::mem::forget(open.device));
    }

    /// Returns true if a stage of a device is known never to run two invocations concurrently.
    ///
    /// Compute is not checked, because its tests show that themselves. For threads in different stages, those
    /// stages are checked, in one draw or in separate draws. For overlapping fragments, such fragments are
    /// checked.
    fn runs_serially(
        &mut self,
        selector: &str,
        test: &Test,
        variant: &RunVariant,
        stress: &Stress,
    ) -> Result<bool, Cause> {
        let stage = variant.shader.stage;
        if stage == CarrierStage::Compute {
            return Ok(false);
        }
        let pipelines = if stage.is_mixed() { variant.pipelines } else { Pipelines::Merged };
        let interlock = test.interlock_order().map(|_| variant.shader.interlock);
        let pair = InvocationPair { stage, pipelines, interlock };
        let key = (selector.to_owned(), pair);
        let before = self.overlap_evidence.get(&key).copied().unwrap_or(OverlapEvidence::NONE);
        let evidence = before.with_more(self.get(selector)?, pair, stress);
        self.overlap_evidence.insert(key, evidence);
        Ok(evidence.is_serial())
    }

    /// Returns the device of a selector, after its canary showed that it executes.
    pub fn get(&mut self, selector: &str) -> Result<&dyn Device, Cause> {
        if !self.open.contains_key(selector) {
            let before = affinity::threads();
            let device = (self.make_device)(selector)?;
            let executes = device.capabilities().executes;
            let canary = if executes {
                canary::check(device.as_ref(), RunSettings::SUBMISSION_TIMEOUT)
            } else {
                Ok(())
            };
            self.open.insert(selector.to_owned(), OpenDevice { device, canary, threads_before: before });
        }
        match self.open.get(selector) {
            Some(OpenDevice { device, canary: Ok(()), threads_before: before }) => {
                // Repeated for every job, because a driver thread that starts late may undo it, as
                // SwiftShader's do.
                if device.capabilities().is_cpu {
                    affinity::spread_new_threads(before);
                }
                Ok(device.as_ref())
            }
            Some(OpenDevice { canary: Err(cause), .. }) => Err(cause.clone()),
            None => Err(DeviceError::NoSuchDevice(selector.to_owned()).into()),
        }
    }
}

/// A callback that may send the observations so far.
type OnSnapshot<'a> = ProgressSink<'a, Snapshot>;

/// Runs a job. The answer contains the observations even if it failed.
fn run_job(job: &Job, devices: &mut Devices<'_>, on_snapshot: OnSnapshot<'_>) -> JobResult {
    let mut answer = JobResult::default();
    if let Err(failure) = fill_answer(&mut answer, job, devices, on_snapshot) {
        answer.failure = Some(failure);
    }
    answer.peak_bytes = peak_bytes();
    answer
}

/// Returns the peak host memory of this process in bytes (Linux).
fn peak_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kibibytes| 1024 * kibibytes)
}

/// Parses the test of a job. The text determines its syntax; dots in the id are replaced, because an
/// extension would override it.
pub(crate) fn parse_test(text: &str, id: &str) -> Result<Test, IncompleteReason> {
    litmus::syntax::parse(text, &id.replace('.', "-"))
        .map_err(|errors| IncompleteReason::Test(errors.to_string()))
}

fn fill_answer(
    answer: &mut JobResult,
    job: &Job,
    devices: &mut Devices<'_>,
    on_snapshot: OnSnapshot<'_>,
) -> Result<(), IncompleteReason> {
    let test = parse_test(&job.text, &job.id)?;
    let variant: RunVariant =
        job.variant.parse().map_err(|error| IncompleteReason::Test(format!("{error}")))?;
    let device = devices.get(&job.device)?;
    // The first message reports that the device is open: the pool then starts the next worker and
    // the clock of this job.
    let _ = on_snapshot(&Snapshot::default);
    answer.device = Some(device.identity().clone());
    answer.capabilities = Some(device.capabilities().clone());
    let stress = match &job.stress {
        Some(stress) => Ok(stress.clone()),
        None => Stress::for_device(device.identity(), device.capabilities()),
    };
    let mut stress = stress.map_err(Cause::from)?;
    answer.stress = Some(stress.clone());
    answer.serial_stage = devices.runs_serially(&job.device, &test, &variant, &stress)?;
    if answer.serial_stage {
        // No partner can arrive.
        stress.spin = (0, 0);
    }
    let store_buffering = devices.store_buffering.get(&job.device).copied();
    let device = devices.get(&job.device)?;

    let overlap = test.thread_overlap();
    let twin = match overlap {
        Overlap::ControlBarrier if job.twin => twin::without_control_barriers(&test),
        Overlap::Possible if job.twin => twin::with_early_reads(&test),
        _ => None,
    };
    let settings = |part: u32| RunSettings {
        stress: stress.clone(),
        budget: RunBudget {
            instances: job.instances.map(|instances| instances.div_ceil(part.into())),
            time: job.seconds.map(|seconds| seconds_to_duration(seconds) / part),
        },
        seed: job.seed,
        plausible_words: job.plausible.clone(),
        submission_timeout: seconds_to_duration(job.patience),
        exercise: None,
        expected: Vec::new(),
        calibrated: Vec::new(),
    };

    let criterion = ExerciseCriterion {
        serial_outcomes: job.serial.clone(),
        required_count: job.enough,
        time_shares: job.parts,
    };
    let mut test_settings = settings(1);
    // With a control barrier between threads, only the twin shows whether the test is exercised.
    test_settings.exercise = (overlap == Overlap::Possible).then(|| criterion.clone());
    test_settings.expected.clone_from(&job.expected);
    test_settings.calibrated.clone_from(&job.calibrated);
    if twin.is_some() {
        test_settings.budget.time = test_settings.budget.time.map(|time| time - time / TWIN_BUDGET_DIVISOR);
    }
    let metadata = RunMetadata { store_buffering, ..RunMetadata::default() };
    let attempt = run_test(device, &test, variant, &job.kernel, &test_settings, metadata, &mut |seen| {
        on_snapshot(&|| {
            let PartialRun { observation, spread } = seen();
            Snapshot { observation, twin: None, spread }
        })
    });
    answer.validation = device.validation_messages();
    if let Some(weak) = attempt.metadata.store_buffering {
        devices.store_buffering.insert(job.device.clone(), weak);
    }
    let memory: Vec<String> = attempt.metadata.memory.iter().map(ToString::to_string).collect();
    answer.memory = (!memory.is_empty()).then(|| memory.join(" and "));
    answer.counted_by_host = attempt.metadata.counted_by_host;
    answer.spread = attempt.metadata.spread;
    answer.observation = attempt.observation;
    attempt.failure.map_or(Ok(()), Err)?;

    // The test's own outcomes already show that its threads overlapped.
    let is_twin_needless = overlap == Overlap::Possible && criterion.is_met_by(&answer.observation.histogram);
    if let Some(twin) = twin.filter(|_| !is_twin_needless) {
        let first =
            Snapshot { observation: answer.observation.clone(), twin: None, spread: answer.spread.clone() };
        let device = devices.get(&job.device)?;
        let metadata = RunMetadata::default();
        // Overlap depends on the placement. All forms of a test have one twin, which is compiled once.
        let variant = RunVariant { shader: shaders::Variant { form: None, ..variant.shader }, ..variant };
        let attempt =
            run_test(device, &twin, variant, "", &settings(TWIN_BUDGET_DIVISOR), metadata, &mut |seen| {
                on_snapshot(&|| Snapshot { twin: Some(seen().observation), ..first.clone() })
            });
        answer.twin = Some(attempt.observation);
        answer.validation.extend(device.validation_messages());
        match attempt.failure {
            // A twin that does not fit the device shows nothing, like one whose threads did not overlap.
            None | Some(IncompleteReason::NotPlaceable(_) | IncompleteReason::Lacks(_)) => {}
            Some(failure) => return Err(failure.attributed_to_twin()),
        }
    }
    Ok(())
}

/// The result of running one test.
#[derive(Default)]
struct TestAttempt {
    metadata: RunMetadata,
    observation: Observation,
    failure: Option<IncompleteReason>,
}

fn run_test(
    device: &dyn Device,
    test: &Test,
    variant: RunVariant,
    planned: &str,
    settings: &RunSettings,
    metadata: RunMetadata,
    on_snapshot: &mut dyn FnMut(&dyn Fn() -> PartialRun) -> ControlFlow<()>,
) -> TestAttempt {
    let mut ran = TestAttempt { metadata, ..TestAttempt::default() };
    let runnable = compile_for_device(test, variant, &settings.stress, device.capabilities())
        .and_then(|runnable| runnable::check_planned_kernel(planned, &runnable.hash()).map(|()| runnable));
    let runnable = match runnable {
        Ok(runnable) => runnable,
        Err(failure) => return TestAttempt { failure: Some(failure), ..ran },
    };
    match run_mechanisms(
        device,
        &runnable.program,
        &runnable.mechanisms(),
        test,
        settings,
        &mut ran.metadata,
        on_snapshot,
    ) {
        Ok(seen) => TestAttempt { observation: seen, ..ran },
        Err(RunError { cause, observation: seen }) => {
            TestAttempt { observation: *seen, failure: Some(cause.into()), ..ran }
        }
    }
}

/// Converts seconds of a job to a duration; an invalid number counts as zero.
fn seconds_to_duration(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}

impl pool::PoolAnswer for JobResult {
    fn health(&self) -> Health {
        if self.failure.as_ref().is_some_and(IncompleteReason::invalidates_worker) {
            Health::Bad
        } else if self.observation.dispatches > 0 {
            Health::Good
        } else {
            Health::Unknown
        }
    }

    fn ends_worker(&self) -> bool {
        self.health() == Health::Bad
    }

    fn failure(&self) -> Option<String> {
        self.failure.as_ref().map(ToString::to_string)
    }

    fn work_time(&self) -> Option<Duration> {
        let twin = self.twin.as_ref().map_or(0.0, |twin| twin.seconds);
        Some(seconds_to_duration(self.observation.seconds + twin))
    }
}
