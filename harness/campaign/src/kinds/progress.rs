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
use model::predict;
use model::progress::{
    Fairness, PROGRESS_GUARANTEES, ProgressGuarantee, ProgressLimits as Bounds, ProgressModel, Termination,
    check_termination_under,
};
use results::Reason;
use results::wire::{
    DISPATCHES_PER_PLACEMENT_SUFFIX, DeviceRecord, ModelRecord, PLAN_SCHEMA, PlanRecord, RunLine, TestRecord,
};
use runner::pool::{JobReport, Limits};
use runner::progress::{Answer, PLACEMENTS, PlacementObservations, ProgressJob, UnitAssignment};
use runner::wire;
use sim::SimDevice;

use super::RunOptions;
use crate::choice::{self, Chosen};
use crate::misbehave::Misbehaviour;
use crate::parallel::map;
use crate::patience::patience;
use crate::run::{self, JudgedJob, RunKind};
use crate::shard::{Shard, part};
use crate::source::Loaded;
use crate::targets::{self, DeviceTarget, SCHEDULER, SimulatedFallback, Tell};
use crate::workers::Task;
use crate::{Failure, expect, inputs, probe};
use model::Budget;

/// Dispatches of a test in one placement.
const RUNS: u32 = 20;
/// Hangs after which a placement is not dispatched again.
const ENOUGH: u32 = 3;
/// Time limit of a dispatch, if kernels run on the host's processor.
const LONGEST_ON_CPU: Duration = Duration::from_millis(400);
/// Time limit of a dispatch on hardware, below the limits of GPU watchdogs.
const LONGEST: Duration = Duration::from_secs(2);
/// Time limit for messages of a worker, which reports each dispatch.
const SILENCE: Duration = Duration::from_secs(10);
/// Time limit of the model for one test.
const PATIENCE: Duration = Duration::from_secs(5);
/// The default model.
pub const MODEL: &str = "vulkan";
/// The health check: a store that any working device executes.
const HEALTH: &str = "VULKAN health { x = 0; } P0@sg 0, wg 0, qf 0 ; st.atom.dv.sc0 x, 1 ; exists (x == 1)";

/// Returns the devices to test: hardware only by name, and the simulated GPU if `scheduled`.
///
/// # Errors
/// If a device does not exist, or must not be used.
pub fn targets(devices: &[String], scheduled: bool, tell: Tell<'_>) -> Result<Vec<DeviceTarget>, Failure> {
    let simulated = [SimDevice::NAME.to_owned()];
    let named = if scheduled && devices.is_empty() { &simulated[..] } else { devices };
    let targets = targets::targets(named, None, &SimulatedFallback::from_environment(), tell)?;
    targets::refuse_compile_only(&targets)?;
    for target in &targets {
        let simulated = probe::is_sim(&target.listed);
        if scheduled && !simulated {
            return Err(Failure::input_message("`--progress` requires `--device sim`"));
        }
        if devices.is_empty() && !simulated && !target.listed.capabilities.is_cpu {
            return Err(Failure::input_message(format!(
                "tests of forward progress can hang a device; to run them on {0}, name it with `--device`",
                target.name
            )));
        }
    }
    Ok(targets)
}

/// A test with the placements to run.
pub type AskedPlacements = (Loaded, Vec<UnitAssignment>);

/// Loads the named tests, or the suite. Returns a failure for each invalid one.
///
/// # Errors
/// If the suite or the placement does not exist.
pub fn load(
    tests: &[String],
    suite: Option<&str>,
    shard: Option<Shard>,
) -> Result<(Vec<AskedPlacements>, Vec<Failure>), Failure> {
    let sources = if tests.is_empty() {
        inputs::of_suite(suite.unwrap_or(PROGRESS_SUITE))?
    } else {
        let suite = suite.filter(|suite| *suite != PROGRESS_SUITE);
        inputs::collect(tests, suite, None, || Ok(Vec::new()))?
    };
    let (mut loaded, mut rejected) = (Vec::new(), Vec::new());
    for source in part(sources, shard) {
        let placements = placements(&source.variant).ok_or_else(|| {
            Failure::input_message(format!(
                "{}: expected a placement after `@`: plain, round-robin, chunked or mixed",
                source.argument
            ))
        })?;
        match source.load() {
            Ok(test) => loaded.push((test, placements)),
            Err(no_test) => rejected.push(no_test.failure),
        }
    }
    Ok((loaded, rejected))
}

/// A test with the answers of the progress checker.
struct ProgressItem {
    loaded: Loaded,
    hash: String,
    /// The placements that the user named, else all that suit the test.
    placements: Vec<UnitAssignment>,
    verdicts: Result<Verdicts, String>,
}

/// The progress models under which a test ends, by the checker.
struct Verdicts {
    race: Race,
    /// In the order of [`PROGRESS_GUARANTEES`].
    ends: Vec<Option<bool>>,
}

/// A device with its claimed progress model.
struct Tested {
    target: DeviceTarget,
    /// The selector of its worker.
    selector: String,
    /// The progress model of its expectation file.
    claim: Option<ProgressModel>,
    /// For each test: true if it ends under the claim.
    ends_under_claim: Vec<Option<bool>>,
}

/// A test on a device in a placement.
struct ProgressCell {
    id: String,
    item: usize,
    device: usize,
    placement: UnitAssignment,
    /// The kernel's hash, its level and its units; or the skip reason.
    kernel: Result<judge::KernelFacts, String>,
}

/// Returns the placements of a variant.
pub(crate) fn placements(variant: &str) -> Option<Vec<UnitAssignment>> {
    if variant.is_empty() {
        return Some(PLACEMENTS.iter().map(|(_, placement)| *placement).collect());
    }
    PLACEMENTS.iter().find(|(name, _)| *name == variant).map(|(_, placement)| vec![*placement])
}

/// Computes the race verdict and the termination of a test.
fn predict_progress(test: &Test, chosen: &Chosen) -> Result<Verdicts, String> {
    let stop = patience(PATIENCE);
    let options = model::PredictOptions { budget: Budget::until(&stop), ..model::PredictOptions::default() };
    let race = predict(test, &chosen.model, &options).map_err(|error| error.to_string())?.race;
    let uniform: Vec<ProgressModel> =
        PROGRESS_GUARANTEES.iter().map(|(_, promise)| ProgressModel::uniform(*promise)).collect();
    let answers = check_termination_of(test, chosen, &uniform)?;
    Ok(Verdicts { race, ends: answers.iter().map(|answer| answer.terminates).collect() })
}

fn check_termination_of(
    test: &Test,
    chosen: &Chosen,
    models: &[ProgressModel],
) -> Result<Vec<Termination>, String> {
    let stop = patience(PATIENCE);
    let bounds = Bounds::with_budget(Budget::until(&stop));
    check_termination_under(test, &chosen.model, models, Fairness::Weak, &bounds)
        .map_err(|error| error.to_string())
}

/// Reads the claimed progress model of a device from `NAME-progress.txt` in the expectation folder.
fn read_claim(folder: Option<&Path>, target: &DeviceTarget) -> Result<Option<ProgressModel>, Failure> {
    let Some(folder) = folder else { return Ok(None) };
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

fn cells(items: &[ProgressItem], devices: &[Tested]) -> Vec<ProgressCell> {
    let kernel = |item: &ProgressItem, tested: &Tested, placement| match &item.verdicts {
        Err(why) => Err(why.clone()),
        Ok(_) => {
            runner::progress::compile_kernel(&item.loaded.test, &tested.target.listed.capabilities, placement)
                .map(|kernel| judge::KernelFacts::of(&kernel))
                .map_err(|failure| failure.to_string())
        }
    };
    let suits = |item: &ProgressItem, tested: &Tested, placement: UnitAssignment| {
        let parts = kernel(item, tested, UnitAssignment::Plain).map_or(1, |kernel| kernel.units);
        // The scheduler of the simulated GPU depends on placement and not on numbering, so other placements
        // add nothing.
        let simulated = probe::is_sim(&tested.target.listed);
        item.placements.len() == 1
            || placement.applies_to(parts) && (placement == UnitAssignment::Plain || !simulated)
    };
    let mut cells = Vec::new();
    for (device, tested) in devices.iter().enumerate() {
        for (number, item) in items.iter().enumerate() {
            for placement in item.placements.iter().copied() {
                // Every device has the same tests, so that a placement for another device is listed as
                // skipped.
                let kernel = if suits(item, tested, placement) {
                    kernel(item, tested, placement)
                } else if devices.iter().any(|other| suits(item, other, placement)) {
                    Err("the placement has no effect here".to_owned())
                } else {
                    continue;
                };
                cells.push(ProgressCell { id: id(item, placement), item: number, device, placement, kernel });
            }
        }
    }
    cells
}

/// Returns the id of a test in a placement.
fn id(item: &ProgressItem, placement: UnitAssignment) -> String {
    let source = &item.loaded.source;
    if source.variant.is_empty() { format!("{}@{}", source.id, placement.name()) } else { source.id.clone() }
}

/// The plan of a progress run: tests × devices × placements.
pub struct ProgressPlan {
    items: Vec<ProgressItem>,
    devices: Vec<Tested>,
    cells: Vec<ProgressCell>,
    chosen: Chosen,
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
        tests: Vec<AskedPlacements>,
        chosen: Chosen,
        scheduler: Option<ProgressModel>,
        claims: Option<&Path>,
    ) -> Result<ProgressPlan, Failure> {
        let verdicts = map(&tests, |(loaded, _)| predict_progress(&loaded.test, &chosen));
        let items: Vec<ProgressItem> = tests
            .into_iter()
            .zip(verdicts)
            .map(|((loaded, placements), verdicts)| ProgressItem {
                hash: choice::hash(&loaded.text),
                loaded,
                placements,
                verdicts,
            })
            .collect();
        let mut devices = Vec::with_capacity(targets.len());
        for target in targets {
            let claim = read_claim(claims, &target)?;
            let selector = if probe::is_sim(&target.listed) {
                let model = scheduler.unwrap_or(ProgressModel::uniform(ProgressGuarantee::Fair));
                format!("{}:{SCHEDULER}{model}", SimDevice::NAME)
            } else {
                target.selector.clone()
            };
            let ends_under_claim = items
                .iter()
                .map(|item| {
                    claim.and_then(|claim| {
                        check_termination_of(&item.loaded.test, &chosen, &[claim]).ok()?.pop()?.terminates
                    })
                })
                .collect();
            devices.push(Tested { target, selector, claim, ends_under_claim });
        }
        let cells = cells(&items, &devices);
        Ok(ProgressPlan { items, devices, cells, chosen, scheduler })
    }

    /// Returns the ids of all test runs.
    pub fn ids(&self) -> Vec<String> {
        self.cells.iter().map(|cell| cell.id.clone()).collect()
    }

    /// Returns the records of its devices.
    ///
    /// # Errors
    /// If a record cannot be serialized.
    pub fn devices(&self) -> Result<Vec<DeviceRecord>, Failure> {
        self.devices.iter().map(|tested| targets::device_record(&tested.target)).collect()
    }

    /// Skips the tests for which `skips` returns a reason, by device and id.
    pub fn skip(&mut self, skips: &dyn Fn(&str, &str) -> Option<String>) {
        for cell in &mut self.cells {
            if let Some(reason) = skips(&self.devices[cell.device].target.name, &cell.id) {
                cell.kernel = Err(reason);
            }
        }
    }

    /// Returns the stress field of a record, which names the guarantees of the simulated GPU.
    fn stress(&self) -> String {
        self.scheduler.map_or_else(|| "progress".to_owned(), |model| format!("progress {model}"))
    }

    /// Returns the record of the plan, without hash and seed.
    ///
    /// # Errors
    /// If a device cannot be serialized.
    pub fn record(&self, options: &RunOptions) -> Result<PlanRecord, Failure> {
        let model = ModelRecord { name: self.chosen.model.name().to_owned(), hash: self.chosen.hash.clone() };
        Ok(PlanRecord {
            schema: PLAN_SCHEMA.to_owned(),
            tool: env!("CARGO_PKG_VERSION").to_owned(),
            plan: String::new(),
            seed: 0,
            budget: format!("{}{DISPATCHES_PER_PLACEMENT_SUFFIX}", dispatch_count(options)),
            stress: self.stress(),
            shard: options.shard.map(|shard| shard.to_string()),
            devices: self.devices()?,
            tests: self
                .cells
                .iter()
                .filter(|cell| cell.device == 0)
                .map(|cell| {
                    let item = &self.items[cell.item];
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
            environment: Some(targets::environment(options)),
        })
    }
}

/// Returns the dispatches of each placement.
fn dispatch_count(options: &RunOptions) -> u32 {
    options.instances.map_or(RUNS, |instances| u32::try_from(instances).unwrap_or(u32::MAX))
}

/// A plan with the options of its run.
pub struct ProgressKind<'a> {
    /// The plan.
    pub plan: &'a ProgressPlan,
    /// The command-line options.
    pub options: &'a RunOptions,
    /// The time during which tests of a device may start.
    pub time: Option<Duration>,
    /// The seed of the whole run.
    pub seed: u64,
    /// Fault injection for tests.
    pub misbehaviour: &'a Misbehaviour,
}

impl RunKind for ProgressKind<'_> {
    type Job = ProgressJob;
    type Snapshot = PlacementObservations;
    type Answer = Answer;

    fn targets(&self) -> Vec<&DeviceTarget> {
        self.plan.devices.iter().map(|tested| &tested.target).collect()
    }

    fn cells(&self) -> Vec<run::TestOnDevice> {
        let cell = |cell: &ProgressCell| run::TestOnDevice {
            target: cell.device,
            id: cell.id.clone(),
            missing: cell.kernel.as_ref().err().cloned(),
        };
        self.plan.cells.iter().map(cell).collect()
    }

    fn task(&self) -> Task {
        Task::Progress { validate: self.options.validate }
    }

    fn limits(&self, _target: usize, _waiting: usize) -> Limits {
        Limits { workers: 1, silence: SILENCE, ..Limits::with_memory_limit() }
    }

    fn time(&self) -> Option<Duration> {
        self.time
    }

    fn job(&self, cell: usize, _next: Option<usize>, _share: Option<Duration>) -> ProgressJob {
        let cell = &self.plan.cells[cell];
        let item = &self.plan.items[cell.item];
        let tested = &self.plan.devices[cell.device];
        let longest = if tested.target.listed.capabilities.is_cpu { LONGEST_ON_CPU } else { LONGEST };
        ProgressJob {
            id: cell.id.clone(),
            text: item.loaded.text.clone(),
            kernel: cell.kernel.as_ref().map(|kernel| kernel.hash.clone()).unwrap_or_default(),
            device: self.misbehaviour.selector(&cell.id, &tested.selector),
            placement: cell.placement,
            runs: dispatch_count(self.options),
            enough: ENOUGH,
            longest: longest.as_secs_f64(),
            seed: runner::test_seed(self.seed, &item.hash),
        }
    }

    fn health(&self, target: usize) -> Option<ProgressJob> {
        Some(ProgressJob {
            id: "health".to_owned(),
            text: HEALTH.to_owned(),
            kernel: String::new(),
            device: self.plan.devices.get(target)?.selector.clone(),
            placement: UnitAssignment::Plain,
            runs: 1,
            enough: 1,
            longest: 1.0,
            seed: 0,
        })
    }

    fn failure(answer: &Answer) -> Option<&wire::IncompleteReason> {
        answer.failure.as_ref()
    }

    fn shown(snapshot: &PlacementObservations) -> (u64, f64) {
        (u64::from(snapshot.runs), 0.0)
    }

    fn skipped(&self, cell: usize, missing: &str) -> RunLine {
        judge::skipped(self, &self.plan.cells[cell], missing)
    }

    fn judged(
        &self,
        cell: usize,
        report: JobReport<PlacementObservations, Answer>,
        before: Option<Reason>,
    ) -> JudgedJob {
        judge::judged(self, &self.plan.cells[cell], report, before)
    }
}
