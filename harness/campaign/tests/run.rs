//! Plans, verdicts and resumed runs with scripted workers, without processes or devices.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a failure is the report")]

#[path = "run/edits.rs"]
mod edits;
#[path = "run/progress_runs.rs"]
mod progress_runs;

use std::collections::BTreeMap;
use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LazyLock, Mutex};
use std::time::{Duration, Instant};

use campaign::fault_injection::FaultInjection;
use campaign::kinds::RunOptions;
use campaign::kinds::litmus::plan::LitmusPlan;
use campaign::kinds::litmus::{LitmusKind, TestBudget, recorded};
use campaign::run::{EventOf, Run, RunKind, RunObserver, RunResult, WorkerPool};
use campaign::run_log::{EarlierVerdicts, RunFolderOptions};
use campaign::shard::{Shard, select_shard};
use campaign::source::LoadedTest;
use campaign::targets::DeviceTarget;
use campaign::workers::WorkerEnvironment;
use campaign::{Failure, inputs, models, probe};
use litmus::{Observation, Outcome, Value};
use results::wire::{PlanRecord, RunLine, VerdictWord};
use results::write::RunWriter;
use runner::pool::{self, Attempt, AttemptEnd, JobReport, Limits, PoolEvent};
use runner::wire::{self, IncompleteReason, JobResult, Snapshot};
use sim::Fault;

const MP: &str = "mp/MP+rel-acq";
const SB: &str = "sb/SB+rlx-rlx";
static NO_MISBEHAVIOUR: LazyLock<FaultInjection> = LazyLock::new(FaultInjection::default);
const BUDGET: TestBudget = TestBudget::Instances(1000);

/// Returns a device with this name and the capabilities of the simulated GPU.
fn target(name: &str) -> DeviceTarget {
    let listed = probe::simulated_device(0, Fault::None);
    let stress = runner::Stress::for_device(&listed.identity, &listed.capabilities).unwrap();
    let process = WorkerEnvironment::Drivers(device::DriverEnvironment::default());
    DeviceTarget {
        name: name.to_owned(),
        selector: "sim".to_owned(),
        listed,
        stress,
        worker_environment: process,
    }
}

fn load_tests(ids: &[&str]) -> Vec<LoadedTest> {
    let sources = ids.iter().flat_map(|id| inputs::argument_sources(id));
    sources.map(|source| source.load().unwrap_or_else(|rejected| panic!("{rejected:?}"))).collect()
}

fn plan(devices: &[&str], ids: &[&str]) -> LitmusPlan {
    let targets = devices.iter().map(|name| target(name)).collect();
    let skips = |_: &str, id: &str| (id == "coherence/CoRR+rlx").then(|| "skip list".to_owned());
    LitmusPlan::new(targets, load_tests(ids), None, None, &skips).unwrap()
}

/// The scripted end of a job.
type ScriptedEnd<K> = Result<<K as RunKind>::Answer, pool::WorkerFailure>;

/// Workers that answer from a script, one job at a time.
struct ScriptedWorkers<'a, K: RunKind> {
    answer: &'a (dyn Fn(&K::Job) -> ScriptedEnd<K> + Sync),
    received_jobs: Mutex<Vec<K::Job>>,
}

impl<K: RunKind> WorkerPool<K> for ScriptedWorkers<'_, K>
where
    K::Job: Send,
{
    fn run(
        &self,
        _kind: &K,
        _target: &DeviceTarget,
        _limits: &Limits,
        jobs: usize,
        job: &mut dyn FnMut(usize, Option<Duration>) -> K::Job,
        event: &mut dyn FnMut(EventOf<'_, K>) -> ControlFlow<()>,
    ) {
        for number in 0..jobs {
            let job = job(number, None);
            let end = (self.answer)(&job).map_or_else(AttemptEnd::Failed, AttemptEnd::Answered);
            self.received_jobs.lock().unwrap().push(job);
            let last = Attempt { end, snapshot: None, duration: Duration::ZERO };
            if event(PoolEvent::Finished(JobReport { job: number, last, earlier: Vec::new() })).is_break() {
                return;
            }
        }
    }
}

struct SilentObserver;

impl RunObserver for SilentObserver {
    fn on_progress(&self, _: &str, _: &str, _: u64, _: f64) {}
    fn on_verdict(&self, _: &RunLine) {}
    fn on_message(&self, _: &str) {}
    fn on_finish(&self) {}
}

/// A writer that records its calls.
#[derive(Default)]
struct CapturingWriter(Vec<(String, String)>);

impl RunWriter for CapturingWriter {
    fn write_verdict(&mut self, line: &RunLine) -> io::Result<()> {
        self.0.push((line.device.clone(), line.id.clone()));
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct RunTrace<K: RunKind> {
    result: RunResult,
    written_lines: Vec<(String, String)>,
    received_jobs: Vec<K::Job>,
}

fn folder_options(folder: &Path, resume: bool, seed: Option<u64>) -> RunFolderOptions<'_> {
    RunFolderOptions { folder: Some(folder), is_resumed: resume, seed, is_verbose: false }
}

/// Runs tests of a kind in a folder; `answer` may set the flag that interrupts the run.
fn execute<K: RunKind>(
    kind: &K,
    folder: results::folder::ResultsFolder,
    done: EarlierVerdicts,
    interrupted: &AtomicBool,
    answer: &(dyn Fn(&K::Job) -> ScriptedEnd<K> + Sync),
) -> Result<RunTrace<K>, Failure>
where
    K::Job: Send,
{
    let script = ScriptedWorkers::<K> { answer, received_jobs: Mutex::default() };
    let mut writer = CapturingWriter::default();
    let run = Run {
        kind,
        workers: &script,
        observer: &SilentObserver,
        interrupt_flag: interrupted,
        reused_verdicts: &EarlierVerdicts::new(),
    };
    let result = run.execute(folder, done, &mut writer)?;
    Ok(RunTrace {
        result,
        written_lines: writer.0,
        received_jobs: script.received_jobs.into_inner().unwrap(),
    })
}

fn options(jobs: u32) -> RunOptions {
    RunOptions { jobs, instances: Some(1000), ..RunOptions::default() }
}

/// Runs litmus tests in a folder.
fn run<'a>(
    plan: &'a LitmusPlan,
    options: &'a RunOptions,
    place: &RunFolderOptions<'_>,
    interrupted: &AtomicBool,
    answer: &(dyn Fn(&wire::Job) -> Result<JobResult, pool::WorkerFailure> + Sync),
) -> Result<(RunTrace<LitmusKind<'a>>, u64), Failure> {
    let (folder, seed, done) = place.open(plan.to_record(options, BUDGET)?, &|_| ())?;
    let (started, misbehaviour) = (Instant::now(), &*NO_MISBEHAVIOUR);
    let kind = LitmusKind { plan, options, budget: BUDGET, seed, started, fault_injection: misbehaviour };
    Ok((execute(&kind, folder, done, interrupted, answer)?, seed))
}

fn job_result(outcomes: &[(&[u64], u64)], failure: Option<IncompleteReason>) -> JobResult {
    let mut observation = Observation { dispatches: 1, ..Observation::default() };
    for (values, count) in outcomes {
        observation.histogram.add_count(Outcome(values.iter().map(|value| Value(*value)).collect()), *count);
    }
    JobResult { observation, failure, ..JobResult::default() }
}

/// Returns a result in which every instance overlapped and had an allowed outcome.
fn allowed_answer(_: &wire::Job) -> Result<JobResult, pool::WorkerFailure> {
    Ok(job_result(&[(&[0, 0], 500), (&[0, 1], 500)], None))
}

fn not_interrupted() -> AtomicBool {
    AtomicBool::new(false)
}

/// A test that the time for the plan does not reach gets its prediction when it runs.
#[test]
fn late_predictions_equal_those_of_the_plan() {
    let plan_within = |time| {
        let tests = load_tests(&[MP, "hsa/MP+agent-far"]);
        LitmusPlan::new(vec![target("a")], tests, None, time, &|_, _| None).unwrap()
    };
    let (late, known) = (plan_within(Some(Duration::ZERO)), plan_within(None));
    assert!(late.device_tests[0].prediction.get().is_none());
    for (cell, expected) in late.device_tests.iter().zip(&known.device_tests) {
        assert_eq!(late.prediction(cell), known.prediction(expected));
    }
}

#[test]
fn a_plan_lists_running_and_skipped_tests() {
    let plan = plan(&["a", "b"], &[MP, "coherence/CoRR+rlx", "hsa/MP+agent-far", "mp/MP+rel-acq@split"]);
    let cells: Vec<(usize, &str, Option<&str>)> = plan
        .device_tests
        .iter()
        .map(|cell| {
            (cell.target_index, plan.tests[cell.test_index].loaded.source.id.as_str(), cell.skip_reason())
        })
        .map(|(target, id, missing)| (target, id, missing.map(String::as_str)))
        .collect();
    let cells_on = |target| {
        [
            (target, MP, None),
            (target, "coherence/CoRR+rlx", Some("skip list")),
            (target, "hsa/MP+agent-far", Some("agent scope between agents")),
            (target, "mp/MP+rel-acq@split", None),
        ]
    };
    assert_eq!(cells, [cells_on(0), cells_on(1)].concat());
    for cell in &plan.device_tests {
        assert_eq!(cell.kernel_hash.len(), if cell.skip_reason().is_none() { 64 } else { 0 });
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../cli/tests/all/cases/files/unplaceable.litmus");
    let unplaceable = self::plan(&["a"], &[path]);
    assert_eq!(unplaceable.device_tests[0].skip_reason().map(String::as_str), Some("CrossDevice scope"));
    assert_ne!(
        plan.device_tests[0].kernel_hash, plan.device_tests[3].kernel_hash,
        "split kernels differ from merged ones"
    );
}

#[test]
fn jobs_carry_the_hash_that_is_published() {
    let folder = tempfile::tempdir().unwrap();
    let (plan, options) = (plan(&["a"], &[MP]), options(1));
    let place = folder_options(folder.path(), false, Some(1));
    let (trace, _) = run(&plan, &options, &place, &not_interrupted(), &allowed_answer).unwrap();
    assert_eq!(trace.received_jobs[0].kernel, trace.result.lines[0].hashes.kernel);
    assert_eq!(trace.received_jobs[0].kernel.len(), 64);
}

#[test]
fn worker_reports_become_verdicts() {
    use VerdictWord::{Conforms, Inconclusive, Skipped, Violates};
    let failed = |reason: IncompleteReason| Ok(job_result(&[], Some(reason)));
    let text = |text: &str| text.to_owned();
    type Row = (Result<JobResult, pool::WorkerFailure>, VerdictWord, Option<&'static str>);
    let rows: Vec<Row> = vec![
        (allowed_answer(&wire::Job::default()), Conforms, None),
        (Ok(job_result(&[(&[1, 1], 1000)], None)), Inconclusive, Some("not exercised")),
        (Ok(job_result(&[(&[1, 0], 1)], None)), Violates, None),
        // Observations count even if the run failed.
        (Ok(job_result(&[(&[1, 0], 1)], Some(IncompleteReason::DeviceLost(text("lost"))))), Violates, None),
        (failed(IncompleteReason::Lacks(text("a feature"))), Skipped, Some("a feature")),
        (failed(IncompleteReason::NotPlaceable(text("a rule"))), Skipped, Some("a rule")),
        (failed(IncompleteReason::DeviceLost(text("lost"))), Inconclusive, Some("device lost")),
        (failed(IncompleteReason::NoDevice(text("none"))), Inconclusive, Some("device lost")),
        (failed(IncompleteReason::TimedOut(text("late"))), Inconclusive, Some("timed out")),
        (failed(IncompleteReason::NullDevice), Inconclusive, Some("null device")),
        (failed(IncompleteReason::Disagreement(text("2, not 1"))), Inconclusive, Some("counts disagree")),
        (failed(IncompleteReason::Internal(text("another kernel"))), Inconclusive, Some("crashed")),
        (Err(pool::WorkerFailure::TimedOut { after: Duration::ZERO }), Inconclusive, Some("timed out")),
        (Err(pool::WorkerFailure::Garbled { what: text("?") }), Inconclusive, Some("crashed")),
    ];
    let (plan, options) = (plan(&["a"], &[MP]), options(1));
    for (end, verdict, reason) in rows {
        let folder = tempfile::tempdir().unwrap();
        let place = folder_options(folder.path(), false, Some(1));
        let (trace, _) = run(&plan, &options, &place, &not_interrupted(), &|_| end.clone()).unwrap();
        let line = &trace.result.lines[0];
        assert_eq!((line.verdict, line.reason.as_deref()), (verdict, reason), "{end:?}: {line:?}");
    }
}

/// A timeout of the driver may have reset the device; later submissions are smaller.
#[test]
fn submissions_are_smaller_once_a_device_was_lost() {
    let folder = tempfile::tempdir().unwrap();
    let (plan, options) = (plan(&["a", "b"], &[MP, SB, "lb/LB+rlx-rlx", "r/R+rlx-rlx"]), options(1));
    let place = folder_options(folder.path(), false, Some(1));
    let attempts = Mutex::new(0);
    let lose_device_once = |job: &wire::Job| match std::mem::replace(&mut *attempts.lock().unwrap(), 1) {
        0 => Ok(job_result(&[], Some(IncompleteReason::DeviceLost("lost".to_owned())))),
        _ => allowed_answer(job),
    };
    let (trace, _) = run(&plan, &options, &place, &not_interrupted(), &lose_device_once).unwrap();
    let own_stress = &plan.targets[0].stress;
    let sizes = |stress: &runner::Stress| {
        (stress.rounds.1, stress.groups.1, stress.groups_within.1, stress.submission_ms)
    };
    let (rounds, groups, within, time) = sizes(own_stress);
    assert!(rounds > 1 && groups > 1 && within > 1 && time > 1, "{own_stress:?}");
    let half = (rounds / 2, groups / 2, within / 2, time / 2);
    let whole = sizes(own_stress);
    let found: Vec<_> = trace.received_jobs.iter().map(|job| sizes(job.stress.as_ref().unwrap())).collect();
    assert_eq!(found, [whole, half, half, half, whole, whole, whole, whole]);
    let lost: Vec<&str> = trace.result.lines.iter().filter_map(|line| line.reason.as_deref()).collect();
    assert_eq!(lost, ["device lost"], "only one test is lost");
    for halvings in [0, 1, 7, 40] {
        own_stress.clone().halved(halvings).validate().unwrap();
    }
}

#[test]
fn lines_come_in_the_order_of_the_plan_device_by_device() {
    let folder = tempfile::tempdir().unwrap();
    let (plan, options) = (plan(&["a", "b"], &[MP, "coherence/CoRR+rlx", SB]), options(1));
    let place = folder_options(folder.path(), false, Some(1));
    let (trace, _) = run(&plan, &options, &place, &not_interrupted(), &allowed_answer).unwrap();
    let pair = |device: &str, id: &str| (device.to_owned(), id.to_owned());
    let expected =
        ["a", "b"].map(|device| [MP, "coherence/CoRR+rlx", SB].map(|id| pair(device, id))).concat();
    assert_eq!(trace.written_lines, expected);
    assert_eq!(trace.received_jobs.len(), 4, "skipped tests start no job");
}

#[test]
fn an_interrupted_run_is_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let all = [MP, SB, "lb/LB+rlx-rlx"];
    let plan_of_all = plan(&["a"], &all);
    let first = options(1);
    let stop = not_interrupted();
    let after_one = |job: &wire::Job| {
        stop.store(job.id == SB, Ordering::Relaxed);
        allowed_answer(job)
    };
    let (trace, seed) =
        run(&plan_of_all, &first, &folder_options(folder.path(), false, Some(7)), &stop, &after_one).unwrap();
    assert!(trace.result.is_interrupted);
    let missing = (VerdictWord::Inconclusive, Some("missing"));
    let expected = [(MP, (VerdictWord::Conforms, None)), (SB, missing), (all[2], missing)];
    assert_eq!(verdicts_by_id(&trace.result), BTreeMap::from(expected));
    assert_eq!(
        trace.written_lines,
        all.map(|id| ("a".to_owned(), id.to_owned())),
        "missing verdicts are written"
    );
    drop(trace);
    let journal = std::fs::read_to_string(folder.path().join("run.jsonl")).unwrap();
    assert_eq!(journal.lines().count(), 1, "a missing verdict is not in the journal");
    let table = std::fs::read_to_string(folder.path().join("outcomes.csv")).unwrap();
    assert_eq!(table.matches("inconclusive,missing").count(), 2, "{table}");

    // Another plan, another seed or a new run must not use the folder.
    let other_plan = plan(&["a"], &[SB]);
    for (plan, place) in [
        (&other_plan, folder_options(folder.path(), true, None)),
        (&plan_of_all, folder_options(folder.path(), true, Some(8))),
        (&plan_of_all, folder_options(folder.path(), false, None)),
    ] {
        assert!(matches!(
            run(plan, &first, &place, &not_interrupted(), &allowed_answer),
            Err(Failure::Input(_))
        ));
    }
    assert!(matches!(
        folder_options(folder.path(), false, None).ensure_empty_folder(),
        Err(Failure::Input(_))
    ));

    // The number of workers is not part of the plan.
    let later_options = options(4);
    let (trace, resumed_seed) = run(
        &plan_of_all,
        &later_options,
        &folder_options(folder.path(), true, None),
        &not_interrupted(),
        &allowed_answer,
    )
    .unwrap();
    assert_eq!(resumed_seed, seed);
    assert!(!trace.result.is_interrupted);
    let executed_ids: Vec<&str> = trace.received_jobs.iter().map(|job| job.id.as_str()).collect();
    assert_eq!(executed_ids, all[1..]);
    let written: Vec<&str> = trace.written_lines.iter().map(|(_, id)| id.as_str()).collect();
    assert_eq!(written, all);
    let journal = std::fs::read_to_string(folder.path().join("run.jsonl")).unwrap();
    assert_eq!(journal.lines().count(), all.len());
}

#[test]
fn a_truncated_journal_is_reported_and_its_test_rerun() {
    let folder = tempfile::tempdir().unwrap();
    let (plan, options) = (plan(&["a"], &[MP]), options(1));
    drop(
        run(
            &plan,
            &options,
            &folder_options(folder.path(), false, Some(1)),
            &not_interrupted(),
            &allowed_answer,
        )
        .unwrap(),
    );
    let journal = folder.path().join("run.jsonl");
    let text = std::fs::read_to_string(&journal).unwrap();
    std::fs::write(&journal, &text[..text.len() / 2]).unwrap();
    let messages = Mutex::new(Vec::new());
    let on_message = |text: &str| messages.lock().unwrap().push(text.to_owned());
    let record = plan.to_record(&options, BUDGET).unwrap();
    let (_, seed, done) = folder_options(folder.path(), true, None).open(record, &on_message).unwrap();
    assert_eq!((seed, done.len()), (1, 0));
    assert!(messages.lock().unwrap()[0].starts_with("warning: the last line of the journal is incomplete"));
}

/// The model detects a record with an edited verdict, counts and checksum.
#[test]
fn a_resumed_verdict_is_judged_again() {
    let folder = tempfile::tempdir().unwrap();
    let (plan, options) = (plan(&["a"], &[MP]), options(1));
    let violates = |_: &wire::Job| Ok(job_result(&[(&[1, 0], 23), (&[0, 0], 500), (&[0, 1], 500)], None));
    drop(
        run(&plan, &options, &folder_options(folder.path(), false, Some(1)), &not_interrupted(), &violates)
            .unwrap(),
    );
    let journal = folder.path().join("run.jsonl");
    let written = results::read::read_results(folder.path()).unwrap().lines.remove(0);
    let resume_edited = |edit: &dyn Fn(&mut RunLine)| {
        let mut line = written.clone();
        edit(&mut line);
        std::fs::write(&journal, results::journal::seal_record(&line).unwrap()).unwrap();
        run(&plan, &options, &folder_options(folder.path(), true, None), &not_interrupted(), &allowed_answer)
            .map(|(trace, _)| {
                assert!(trace.received_jobs.is_empty());
                trace.result.lines[0].clone()
            })
    };
    assert_eq!(resume_edited(&|_| ()).unwrap(), written);
    let omits = |line: &mut RunLine| line.outcomes.retain(|outcome| outcome.count > 0);
    assert_eq!(resume_edited(&omits).unwrap(), written, "the model's list is used");
    let conforms = |line: &mut RunLine| (line.verdict, line.detail) = (VerdictWord::Conforms, None);
    let allowed = |line: &mut RunLine| line.outcomes.iter_mut().for_each(|outcome| outcome.allowed = true);
    let racy = |line: &mut RunLine| {
        (line.verdict, line.race) = (VerdictWord::Undefined, Some(results::wire::RaceWord::Racy));
    };
    type Edit<'a> = &'a dyn Fn(&mut RunLine);
    let edits: [(Edit<'_>, &str); 12] = [
        (&|line| line.hashes.kernel = "0".repeat(64), "its `hashes.kernel` belongs to another kernel"),
        (&|line| line.hashes.kernel.clear(), "its `hashes.kernel` belongs to another kernel"),
        (&|line| line.hashes.test.clear(), "whose text differs from the plan's"),
        (
            &|line| line.outcomes[1].weak = true,
            "its `weak` of P1:r0=0 P1:r1=1 is true, the model's answer is false",
        ),
        (&|line| line.outcomes[2].filtered = true, "its `filtered` of P1:r0=1 P1:r1=0 is true"),
        (&|line| line.interleaved = 700, "its `interleaved` is 700, its outcomes give 523"),
        (&|line| line.exercised = false, "its `exercised` is false, its outcomes give true"),
        (
            &|line| {
                line.outcomes[0].count += 1 << 40;
                line.instances += 1 << 40;
            },
            "the plan's is `1000 instances a test`",
        ),
        (&conforms, "does not follow from the counts"),
        (
            &|line| {
                conforms(line);
                allowed(line);
            },
            "its `allowed` of P1:r0=1 P1:r1=0 is true, the model's answer is false",
        ),
        (&racy, "its `race` is `racy`, the model's is `free`"),
        (&|line| line.verdict = VerdictWord::Undefined, "a program that does not race"),
    ];
    for (edit, expected) in edits {
        let failure = resume_edited(edit).unwrap_err();
        assert!(matches!(failure, Failure::Input(_)));
        let text = failure.report().to_string();
        assert!(text.contains(expected), "{text}");
    }
}

/// A verdict that no prediction confirms is dropped.
#[test]
fn a_record_that_no_prediction_confirms_loses_its_verdict() {
    let folder = tempfile::tempdir().unwrap();
    let (plan, options) = (plan(&["a"], &[MP]), options(1));
    let (trace, _) = run(
        &plan,
        &options,
        &folder_options(folder.path(), false, Some(1)),
        &not_interrupted(),
        &allowed_answer,
    )
    .unwrap();
    let (line, chosen) = (&trace.result.lines[0], models::load("vulkan").unwrap());
    assert_eq!(line.verdict, VerdictWord::Conforms);
    let recomputed = |time: Duration| recorded::recompute_line(line, &plan.tests[0], &chosen, time).unwrap();
    assert_eq!(recomputed(recorded::RECORD_TIMEOUT), *line);
    let dropped = recomputed(Duration::ZERO);
    assert_eq!((dropped.verdict, dropped.reason.as_deref()), (VerdictWord::Inconclusive, Some("timed out")));
    assert!(dropped.detail.unwrap().starts_with("recorded as `conforms`, which no prediction confirms"));
}

/// Folders of earlier versions can be read: the hash of a plan does not depend on the environment of the run.
#[test]
fn the_hash_of_a_plan_is_pinned() {
    let plan = |jobs: u32| -> PlanRecord {
        serde_json::from_value(serde_json::json!({
            "schema": "vk-litmus/plan/1", "tool": "0.1.0", "plan": "", "seed": jobs, "budget": "1000 instances a test",
            "stress": "sim", "shard": null, "devices": [], "tests": [{
                "id": "a/T", "name": "T", "file": "a/T.litmus", "hash": "0", "models": [{"name": "sc", "hash": "1"}],
                "text": "VULKAN T", "clauses": ["c"],
            }],
            "environment": {"os": "o", "architecture": "a", "processors": 1, "jobs": jobs},
        }))
        .unwrap()
    };
    assert_eq!(plan(1).hash().unwrap(), "b674e2b4abccd7520c890ea6c728465432ba0eba5c389364446fd100cdfa3fb5");
    assert_eq!(plan(1).hash().unwrap(), plan(2).hash().unwrap());
}

#[test]
fn parts_are_the_whole_without_overlap() {
    let parts = (1..=3).map(|index| select_shard((0..10).collect(), Some(Shard { index, count: 3 })));
    let mut all: Vec<u32> = parts.flatten().collect();
    all.sort_unstable();
    assert_eq!(all, (0..10).collect::<Vec<u32>>());
}

fn verdicts_by_id(ended: &RunResult) -> BTreeMap<&str, (VerdictWord, Option<&str>)> {
    ended.lines.iter().map(|line| (line.id.as_str(), (line.verdict, line.reason.as_deref()))).collect()
}

/// A snapshot is shown as its instances and seconds.
#[test]
fn snapshots_have_instances_and_seconds() {
    let observation = job_result(&[(&[0, 0], 3)], None).observation;
    let snapshot =
        Snapshot { observation: Observation { seconds: 0.5, ..observation }, twin: None, spread: None };
    assert_eq!(<LitmusKind<'_> as RunKind>::snapshot_progress(&snapshot), (3, 0.5));
}
