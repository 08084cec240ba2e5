//! Runs of forward-progress tests: which loops end on a device, in which placement, and which progress models
//! that refutes.
//!
//! They are not part of other suites, and run on hardware only if the user names the device: a hang may cost
//! a device reset. Each job runs in a worker process with a deadline. After a worker was killed, the next one
//! must first complete a store.

mod judge;

use std::path::Path;
use std::time::Duration;

use litmus::corpus::PROGRESS_SUITE;
use litmus::{Race, Test};
use model::progress::{
    Fairness, PROGRESS_GUARANTEES, ProgressGuarantee, ProgressLimits as Bounds, ProgressModel, Termination,
    check_termination_under,
};
use model::{Budget, predict};
use results::Reason;
use results::wire::{
    DISPATCHES_PER_PLACEMENT_SUFFIX, DeviceRecord, ModelRecord, PLAN_SCHEMA, PlanRecord, RunLine, TestRecord,
};
use runner::pool::{JobReport, Limits};
use runner::progress::{Answer, PLACEMENTS, PlacementObservations, ProgressJob, UnitAssignment};
use runner::wire;
use sim::SimDevice;

use super::RunOptions;
use crate::fault_injection::FaultInjection;
use crate::models::{self, LoadedModel};
use crate::parallel::parallel_map;
use crate::run::{self, JudgedJob, RunKind};
use crate::shard::{Shard, select_shard};
use crate::source::LoadedTest;
use crate::targets::{self, DeviceTarget, MessageSink, PROGRESS_PREFIX, SimulatedFallback};
use crate::time_limit::stop_after;
use crate::workers::WorkerTask;
use crate::{Failure, expectations, files, inputs, probe};

/// Dispatches of a test in one placement.
const DEFAULT_DISPATCHES: u32 = 20;
/// Hangs after which a placement is not dispatched again.
const MAX_HANGS: u32 = 3;
/// Time limit of a dispatch, if kernels run on the host's processor.
const CPU_DISPATCH_TIMEOUT: Duration = Duration::from_millis(400);
/// Time limit of a dispatch on hardware, below the limits of GPU watchdogs.
const DISPATCH_TIMEOUT: Duration = Duration::from_secs(2);
/// Time limit for messages of a worker, which reports each dispatch.
const MESSAGE_TIMEOUT: Duration = Duration::from_secs(10);
/// Time limit of the model for one test.
const CHECKER_TIMEOUT: Duration = Duration::from_secs(5);
pub const DEFAULT_MODEL: &str = "vulkan";
/// The health check: a store that any working device executes.
const HEALTH_CHECK: &str =
    "VULKAN health { x = 0; } P0@sg 0, wg 0, qf 0 ; st.atom.dv.sc0 x, 1 ; exists (x == 1)";

/// Returns the devices to test: hardware only by name, and the simulated GPU if `has_scheduler`.
///
/// # Errors
/// If a device does not exist, or must not be used.
pub fn select_targets(
    devices: &[String],
    has_scheduler: bool,
    on_message: MessageSink<'_>,
) -> Result<Vec<DeviceTarget>, Failure> {
    let simulated = [SimDevice::NAME.to_owned()];
    let selectors = if has_scheduler && devices.is_empty() { &simulated[..] } else { devices };
    let targets =
        targets::select_targets(selectors, None, &SimulatedFallback::from_environment(), on_message)?;
    targets::refuse_compile_only(&targets)?;
    for target in &targets {
        let is_simulated = probe::is_simulated(&target.listed);
        if has_scheduler && !is_simulated {
            return Err(Failure::input_message("`--progress` requires `--device sim`"));
        }
        if devices.is_empty() && !is_simulated && !target.listed.capabilities.is_cpu {
            return Err(Failure::input_message(format!(
                "tests of forward progress can hang a device; to run them on {0}, name it with `--device`",
                target.name
            )));
        }
    }
    Ok(targets)
}

/// A test with the placements to run.
pub type TestWithPlacements = (LoadedTest, Vec<UnitAssignment>);

/// Loads the named tests, or the suite. Returns a failure for each invalid one.
///
/// # Errors
/// If the suite or the placement does not exist.
pub fn load_tests(
    tests: &[String],
    suite: Option<&str>,
    shard: Option<Shard>,
) -> Result<(Vec<TestWithPlacements>, Vec<Failure>), Failure> {
    let sources = if tests.is_empty() {
        inputs::suite_tests(suite.unwrap_or(PROGRESS_SUITE))?
    } else {
        let suite = suite.filter(|suite| *suite != PROGRESS_SUITE);
        inputs::collect(tests, suite, None, || Ok(Vec::new()))?
    };
    let (mut loaded, mut rejected) = (Vec::new(), Vec::new());
    for source in select_shard(sources, shard) {
        let placements = parse_placements(&source.variant).ok_or_else(|| {
            Failure::input_message(format!(
                "{}: expected a placement after `@`: plain, round-robin, chunked or mixed",
                source.argument
            ))
        })?;
        match source.load() {
            Ok(test) => loaded.push((test, placements)),
            Err(rejection) => rejected.push(rejection.failure),
        }
    }
    Ok((loaded, rejected))
}

/// A test with the answers of the progress checker.
struct ProgressTest {
    loaded: LoadedTest,
    hash: String,
    /// The placements that the user named, else all that suit the test.
    placements: Vec<UnitAssignment>,
    termination: Result<TerminationVerdicts, String>,
}

/// The progress models under which a test ends, by the checker.
struct TerminationVerdicts {
    race: Race,
    /// In the order of [`PROGRESS_GUARANTEES`].
    terminates: Vec<Option<bool>>,
}

/// A device with its claimed progress model.
struct TestedDevice {
    target: DeviceTarget,
    selector: String,
    /// The progress model of its expectation file.
    claim: Option<ProgressModel>,
    /// For each test: true if it ends under the claim.
    terminates_under_claim: Vec<Option<bool>>,
}

/// A test on a device in a placement.
struct ProgressTestRun {
    id: String,
    test_index: usize,
    device_index: usize,
    placement: UnitAssignment,
    /// The kernel's hash, its level and its units; or the skip reason.
    kernel_facts: Result<judge::KernelFacts, String>,
}

pub(crate) fn parse_placements(variant: &str) -> Option<Vec<UnitAssignment>> {
    if variant.is_empty() {
        return Some(PLACEMENTS.iter().map(|(_, placement)| *placement).collect());
    }
    PLACEMENTS.iter().find(|(name, _)| *name == variant).map(|(_, placement)| vec![*placement])
}

/// Computes the race verdict and the termination of a test.
fn predict_progress(test: &Test, chosen: &LoadedModel) -> Result<TerminationVerdicts, String> {
    let stop = stop_after(CHECKER_TIMEOUT);
    let options = model::PredictOptions { budget: Budget::until(&stop), ..model::PredictOptions::default() };
    let race = predict(test, &chosen.model, &options).map_err(|error| error.to_string())?.race;
    let uniform: Vec<ProgressModel> =
        PROGRESS_GUARANTEES.iter().map(|(_, guarantee)| ProgressModel::uniform(*guarantee)).collect();
    let answers = check_with_models(test, chosen, &uniform)?;
    Ok(TerminationVerdicts { race, terminates: answers.iter().map(|answer| answer.terminates).collect() })
}

fn check_with_models(
    test: &Test,
    chosen: &LoadedModel,
    models: &[ProgressModel],
) -> Result<Vec<Termination>, String> {
    let stop = stop_after(CHECKER_TIMEOUT);
    let bounds = Bounds::with_budget(Budget::until(&stop));
    check_termination_under(test, &chosen.model, models, Fairness::Weak, &bounds)
        .map_err(|error| error.to_string())
}

/// Reads the claimed progress model of a device from `NAME-progress.txt` in the expectation folder.
fn read_claim(folder: Option<&Path>, target: &DeviceTarget) -> Result<Option<ProgressModel>, Failure> {
    let Some(folder) = folder else { return Ok(None) };
    let path = folder.join(format!("{}{}", target.listed.identity.name, expectations::PROGRESS_SUFFIX));
    let text = match files::read_text(&path, files::MAX_SETTINGS_BYTES) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && folder.is_dir() => return Ok(None),
        Err(error) => return Err(Failure::input_message(format!("{}: {error}", path.display()))),
    };
    let mut lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    let mut lines = lines.by_ref().filter(|line| !line.is_empty());
    let to_failure = |what: &str| Failure::input_message(format!("{}: {what}", path.display()));
    let claim = lines.next().ok_or_else(|| to_failure("expected a progress model"))?;
    if lines.next().is_some() {
        return Err(to_failure("more than one progress model"));
    }
    claim.parse().map(Some).map_err(|error| to_failure(&format!("{error}")))
}

fn list_test_runs(items: &[ProgressTest], devices: &[TestedDevice]) -> Vec<ProgressTestRun> {
    let compile = |item: &ProgressTest, tested: &TestedDevice, placement| match &item.termination {
        Err(why) => Err(why.clone()),
        Ok(_) => {
            runner::progress::compile_kernel(&item.loaded.test, &tested.target.listed.capabilities, placement)
                .map(|kernel| judge::KernelFacts::from_kernel(&kernel))
                .map_err(|failure| failure.to_string())
        }
    };
    let is_applicable = |item: &ProgressTest, tested: &TestedDevice, placement: UnitAssignment| {
        let unit_count = compile(item, tested, UnitAssignment::Plain).map_or(1, |kernel| kernel.units);
        // The scheduler of the simulated GPU depends on placement and not on numbering, so other placements
        // add nothing.
        let is_simulated = probe::is_simulated(&tested.target.listed);
        item.placements.len() == 1
            || placement.applies_to(unit_count) && (placement == UnitAssignment::Plain || !is_simulated)
    };
    let mut cells = Vec::new();
    for (device, tested) in devices.iter().enumerate() {
        for (number, item) in items.iter().enumerate() {
            for placement in item.placements.iter().copied() {
                // Every device has the same tests, so that a placement for another device is listed as
                // skipped.
                let kernel = if is_applicable(item, tested, placement) {
                    compile(item, tested, placement)
                } else if devices.iter().any(|other| is_applicable(item, other, placement)) {
                    Err("the placement has no effect here".to_owned())
                } else {
                    continue;
                };
                cells.push(ProgressTestRun {
                    id: test_run_id(item, placement),
                    test_index: number,
                    device_index: device,
                    placement,
                    kernel_facts: kernel,
                });
            }
        }
    }
    cells
}

fn test_run_id(item: &ProgressTest, placement: UnitAssignment) -> String {
    let source = &item.loaded.source;
    if source.variant.is_empty() { format!("{}@{}", source.id, placement.name()) } else { source.id.clone() }
}

/// The plan of a progress run: tests × devices × placements.
pub struct ProgressPlan {
    tests: Vec<ProgressTest>,
    devices: Vec<TestedDevice>,
    test_runs: Vec<ProgressTestRun>,
    chosen: LoadedModel,
    scheduler: Option<ProgressModel>,
}

impl ProgressPlan {
    /// Runs the checker and compiles the kernels. The simulated GPU gives only the guarantees of `scheduler`;
    /// folder `claims` holds the claims of devices.
    ///
    /// # Errors
    /// If a claim is invalid.
    pub fn new(
        targets: Vec<DeviceTarget>,
        tests: Vec<TestWithPlacements>,
        chosen: LoadedModel,
        scheduler: Option<ProgressModel>,
        claims: Option<&Path>,
    ) -> Result<ProgressPlan, Failure> {
        let verdicts = parallel_map(&tests, |(loaded, _)| predict_progress(&loaded.test, &chosen));
        let progress_tests: Vec<ProgressTest> = tests
            .into_iter()
            .zip(verdicts)
            .map(|((loaded, placements), verdicts)| ProgressTest {
                hash: models::text_hash(&loaded.text),
                loaded,
                placements,
                termination: verdicts,
            })
            .collect();
        let mut devices = Vec::with_capacity(targets.len());
        for target in targets {
            let claim = read_claim(claims, &target)?;
            let selector = if probe::is_simulated(&target.listed) {
                let model = scheduler.unwrap_or(ProgressModel::uniform(ProgressGuarantee::Fair));
                format!("{}:{PROGRESS_PREFIX}{model}", SimDevice::NAME)
            } else {
                target.selector.clone()
            };
            let terminates_under_claim = progress_tests
                .iter()
                .map(|item| {
                    claim.and_then(|claim| {
                        check_with_models(&item.loaded.test, &chosen, &[claim]).ok()?.pop()?.terminates
                    })
                })
                .collect();
            devices.push(TestedDevice { target, selector, claim, terminates_under_claim });
        }
        let test_runs = list_test_runs(&progress_tests, &devices);
        Ok(ProgressPlan { tests: progress_tests, devices, test_runs, chosen, scheduler })
    }

    /// Returns the ids of all test runs.
    pub fn ids(&self) -> Vec<String> {
        self.test_runs.iter().map(|cell| cell.id.clone()).collect()
    }

    /// Returns the records of its devices.
    ///
    /// # Errors
    /// If a record cannot be serialized.
    pub fn device_records(&self) -> Result<Vec<DeviceRecord>, Failure> {
        self.devices.iter().map(|tested| targets::device_record(&tested.target)).collect()
    }

    /// Skips the tests for which `skip_reason_of` returns a reason, by device and id.
    pub fn skip_tests(&mut self, skip_reason_of: &dyn Fn(&str, &str) -> Option<String>) {
        for cell in &mut self.test_runs {
            if let Some(reason) = skip_reason_of(&self.devices[cell.device_index].target.name, &cell.id) {
                cell.kernel_facts = Err(reason);
            }
        }
    }

    /// Returns the stress field of a record, which names the guarantees of the simulated GPU.
    fn stress_text(&self) -> String {
        self.scheduler.map_or_else(|| "progress".to_owned(), |model| format!("progress {model}"))
    }

    /// Returns the record of the plan, without hash and seed.
    ///
    /// # Errors
    /// If a device cannot be serialized.
    pub fn to_record(&self, options: &RunOptions) -> Result<PlanRecord, Failure> {
        let model = ModelRecord { name: self.chosen.model.name().to_owned(), hash: self.chosen.hash.clone() };
        Ok(PlanRecord {
            schema: PLAN_SCHEMA.to_owned(),
            tool: env!("CARGO_PKG_VERSION").to_owned(),
            plan: String::new(),
            seed: 0,
            budget: format!("{}{DISPATCHES_PER_PLACEMENT_SUFFIX}", dispatch_count(options)),
            stress: self.stress_text(),
            shard: options.shard.map(|shard| shard.to_string()),
            devices: self.device_records()?,
            tests: self
                .test_runs
                .iter()
                .filter(|cell| cell.device_index == 0)
                .map(|cell| {
                    let item = &self.tests[cell.test_index];
                    TestRecord {
                        id: cell.id.clone(),
                        name: item.loaded.test.name.clone(),
                        file: item.loaded.source.file.clone(),
                        hash: item.hash.clone(),
                        models: vec![model.clone(); self.devices.len()],
                        text: item.loaded.text.clone(),
                        clauses: item.loaded.test.metadata.clauses.clone(),
                    }
                })
                .collect(),
            environment: Some(targets::record_environment(options)),
        })
    }
}

fn dispatch_count(options: &RunOptions) -> u32 {
    options.instances.map_or(DEFAULT_DISPATCHES, |instances| u32::try_from(instances).unwrap_or(u32::MAX))
}

/// A plan with the options of its run.
pub struct ProgressKind<'a> {
    pub plan: &'a ProgressPlan,
    pub options: &'a RunOptions,
    /// The time during which tests of a device may start.
    pub time: Option<Duration>,
    /// The seed of the whole run.
    pub seed: u64,
    /// Fault injection for tests.
    pub fault_injection: &'a FaultInjection,
}

impl RunKind for ProgressKind<'_> {
    type Job = ProgressJob;
    type Snapshot = PlacementObservations;
    type Answer = Answer;

    fn targets(&self) -> Vec<&DeviceTarget> {
        self.plan.devices.iter().map(|tested| &tested.target).collect()
    }

    fn test_runs(&self) -> Vec<run::TestOnDevice> {
        let cell = |cell: &ProgressTestRun| run::TestOnDevice {
            target: cell.device_index,
            id: cell.id.clone(),
            skip_reason: cell.kernel_facts.as_ref().err().cloned(),
        };
        self.plan.test_runs.iter().map(cell).collect()
    }

    fn task(&self) -> WorkerTask {
        WorkerTask::Progress { validate: self.options.validate }
    }

    fn limits(&self, _target: usize, _waiting: usize) -> Limits {
        Limits { workers: 1, silence: MESSAGE_TIMEOUT, ..Limits::with_memory_limit() }
    }

    fn start_time_limit(&self) -> Option<Duration> {
        self.time
    }

    fn create_job(&self, cell: usize, _is_last: bool, _share: Option<Duration>) -> ProgressJob {
        let cell = &self.plan.test_runs[cell];
        let item = &self.plan.tests[cell.test_index];
        let tested = &self.plan.devices[cell.device_index];
        let dispatch_timeout =
            if tested.target.listed.capabilities.is_cpu { CPU_DISPATCH_TIMEOUT } else { DISPATCH_TIMEOUT };
        ProgressJob {
            id: cell.id.clone(),
            text: item.loaded.text.clone(),
            kernel: cell.kernel_facts.as_ref().map(|kernel| kernel.hash.clone()).unwrap_or_default(),
            device: self.fault_injection.mark_selector(&cell.id, &tested.selector),
            placement: cell.placement,
            runs: dispatch_count(self.options),
            enough: MAX_HANGS,
            longest: dispatch_timeout.as_secs_f64(),
            seed: runner::test_seed(self.seed, &item.hash),
        }
    }

    fn health_check(&self, target: usize) -> Option<ProgressJob> {
        Some(ProgressJob {
            id: "health".to_owned(),
            text: HEALTH_CHECK.to_owned(),
            kernel: String::new(),
            device: self.plan.devices.get(target)?.selector.clone(),
            placement: UnitAssignment::Plain,
            runs: 1,
            enough: 1,
            longest: 1.0,
            seed: 0,
        })
    }

    fn incomplete_reason(answer: &Answer) -> Option<&wire::IncompleteReason> {
        answer.failure.as_ref()
    }

    fn snapshot_progress(snapshot: &PlacementObservations) -> (u64, f64) {
        (u64::from(snapshot.runs), 0.0)
    }

    fn skipped_line(&self, cell: usize, missing: &str) -> RunLine {
        judge::skipped_line(self, &self.plan.test_runs[cell], missing)
    }

    fn judge(
        &self,
        cell: usize,
        report: JobReport<PlacementObservations, Answer>,
        before: Option<Reason>,
    ) -> JudgedJob {
        judge::judge_report(self, &self.plan.test_runs[cell], report, before)
    }
}
