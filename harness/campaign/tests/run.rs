//! Plans, verdicts and resumed runs with scripted workers, without processes or devices.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a failure is the report")]

#[path = "run/edits.rs"]
mod edits;

use std::collections::BTreeMap;
use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LazyLock, Mutex};
use std::time::{Duration, Instant};

use campaign::book::{Done, RunPlace};
use campaign::kinds::litmus::plan::LitmusPlan;
use campaign::kinds::litmus::recorded;
use campaign::kinds::litmus::{Litmus, TestBudget};
use campaign::kinds::{RunOptions, progress};
use campaign::misbehave::Misbehaviour;
use campaign::run::{Ended, EventOf, Run, RunKind, Watch, Workers};
use campaign::shard::{Shard, part};
use campaign::source::Loaded;
use campaign::targets::DeviceTarget;
use campaign::workers::Process;
use campaign::{Failure, choice, inputs, probe};
use litmus::{Observation, Outcome, Value};
use results::wire::{PlanRecord, RunLine, VerdictWord};
use results::write::RunWriter;
use runner::pool::{self, Attempt, AttemptEnd, JobReport, Limits, PoolEvent};
use runner::progress::PlacementObservations;
use runner::wire::{self, IncompleteReason, JobResult, Snapshot, WireObservation};
use sim::Fault;

const MP: &str = "mp/MP+rel-acq";
const SB: &str = "sb/SB+rlx-rlx";
static NO_MISBEHAVIOUR: LazyLock<Misbehaviour> = LazyLock::new(Misbehaviour::default);
const BUDGET: TestBudget = TestBudget::Instances(1000);

/// Returns a device with this name and the capabilities of the simulated GPU.
fn target(name: &str) -> DeviceTarget {
    let listed = probe::simulated(0, Fault::None);
    let stress = runner::Stress::for_device(&listed.identity, &listed.capabilities).unwrap();
    let process = Process::Drivers(device::DriverEnvironment::default());
    DeviceTarget { name: name.to_owned(), selector: "sim".to_owned(), listed, stress, process }
}

fn loaded(ids: &[&str]) -> Vec<Loaded> {
    let sources = ids.iter().flat_map(|id| inputs::of_argument(id));
    sources.map(|source| source.load().unwrap_or_else(|rejected| panic!("{rejected:?}"))).collect()
}

fn plan(devices: &[&str], ids: &[&str]) -> LitmusPlan {
    let targets = devices.iter().map(|name| target(name)).collect();
    let skips = |_: &str, id: &str| (id == "coherence/CoRR+rlx").then(|| "skip list".to_owned());
    LitmusPlan::new(targets, loaded(ids), None, None, &skips).unwrap()
}

/// The scripted end of a job.
type Ends<K> = Result<<K as RunKind>::Answer, pool::WorkerFailure>;

/// Workers that answer from a script, one job at a time.
struct Script<'a, K: RunKind> {
    answer: &'a (dyn Fn(&K::Job) -> Ends<K> + Sync),
    /// The received jobs.
    asked: Mutex<Vec<K::Job>>,
}

impl<K: RunKind> Workers<K> for Script<'_, K>
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
            self.asked.lock().unwrap().push(job);
            let last = Attempt { end, snapshot: None, duration: Duration::ZERO };
            if event(PoolEvent::Finished(JobReport { job: number, last, earlier: Vec::new() })).is_break() {
                return;
            }
        }
    }
}

struct Nobody;

impl Watch for Nobody {
    fn shows(&self, _: &str, _: &str, _: u64, _: f64) {}
    fn advances(&self, _: &RunLine) {}
    fn says(&self, _: &str) {}
    fn ends(&self) {}
}

/// A writer that records its calls.
#[derive(Default)]
struct Written(Vec<(String, String)>);

impl RunWriter for Written {
    fn write_verdict(&mut self, line: &RunLine) -> io::Result<()> {
        self.0.push((line.device.clone(), line.id.clone()));
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The result of a run.
struct Came<K: RunKind> {
    ended: Ended,
    written: Vec<(String, String)>,
    asked: Vec<K::Job>,
}

fn place(folder: &Path, resume: bool, seed: Option<u64>) -> RunPlace<'_> {
    RunPlace { out: Some(folder), resume, seed, is_verbose: false }
}

/// Runs tests of a kind in a folder; `answer` may set the flag that interrupts the run.
fn execute<K: RunKind>(
    kind: &K,
    (folder, done): (results::folder::ResultsFolder, Done),
    interrupted: &AtomicBool,
    answer: &(dyn Fn(&K::Job) -> Ends<K> + Sync),
) -> Result<Came<K>, Failure>
where
    K::Job: Send,
{
    let script = Script::<K> { answer, asked: Mutex::default() };
    let mut writer = Written::default();
    let run = Run { kind, workers: &script, watch: &Nobody, interrupted, remembered: &Done::new() };
    let ended = run.go(folder, done, &mut writer)?;
    Ok(Came { ended, written: writer.0, asked: script.asked.into_inner().unwrap() })
}

fn options(jobs: u32) -> RunOptions {
    RunOptions { jobs, instances: Some(1000), ..RunOptions::default() }
}

/// Runs litmus tests in a folder.
fn run<'a>(
    plan: &'a LitmusPlan,
    options: &'a RunOptions,
    place: &RunPlace<'_>,
    interrupted: &AtomicBool,
    answer: &(dyn Fn(&wire::Job) -> Result<JobResult, pool::WorkerFailure> + Sync),
) -> Result<(Came<Litmus<'a>>, u64), Failure> {
    let (folder, seed, done) = place.open(plan.record(options, BUDGET)?, &|_| ())?;
    let (started, misbehaviour) = (Instant::now(), &*NO_MISBEHAVIOUR);
    let kind = Litmus { plan, options, budget: BUDGET, seed, started, misbehaviour };
    Ok((execute(&kind, (folder, done), interrupted, answer)?, seed))
}

fn answer(outcomes: &[(&[u64], u64)], failure: Option<IncompleteReason>) -> JobResult {
    let mut seen = Observation { dispatches: 1, ..Observation::default() };
    for (values, count) in outcomes {
        seen.histogram.add_count(Outcome(values.iter().map(|value| Value(*value)).collect()), *count);
    }
    JobResult {
        device: None,
        capabilities: None,
        stress: None,
        memory: None,
        counted_by_host: None,
        spread: None,
        serial_stage: false,
        peak_bytes: None,
        observation: WireObservation::from(&seen),
        failure,
        twin: None,
        validation: Vec::new(),
    }
}

/// Returns a result in which every instance overlapped and had an allowed outcome.
fn good(_: &wire::Job) -> Result<JobResult, pool::WorkerFailure> {
    Ok(answer(&[(&[0, 0], 500), (&[0, 1], 500)], None))
}

fn never() -> AtomicBool {
    AtomicBool::new(false)
}

#[test]
fn a_plan_lists_running_and_skipped_tests() {
    let plan = plan(&["a", "b"], &[MP, "coherence/CoRR+rlx", "hsa/MP+agent-far", "mp/MP+rel-acq@split"]);
    let cells: Vec<(usize, &str, Option<&str>)> = plan
        .cells
        .iter()
        .map(|cell| (cell.target, plan.items[cell.item].loaded.source.id.as_str(), cell.ready.as_ref().err()))
        .map(|(target, id, missing)| (target, id, missing.map(String::as_str)))
        .collect();
    let on = |target| {
        [
            (target, MP, None),
            (target, "coherence/CoRR+rlx", Some("skip list")),
            (target, "hsa/MP+agent-far", Some("agent scope between agents")),
            (target, "mp/MP+rel-acq@split", None),
        ]
    };
    assert_eq!(cells, [on(0), on(1)].concat());
    for cell in &plan.cells {
        assert_eq!(cell.kernel.len(), if cell.ready.is_ok() { 64 } else { 0 });
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../cli/tests/all/cases/files/unplaceable.litmus");
    let unplaceable = self::plan(&["a"], &[path]);
    assert_eq!(unplaceable.cells[0].ready.as_ref().err().map(String::as_str), Some("CrossDevice scope"));
    assert_ne!(plan.cells[0].kernel, plan.cells[3].kernel, "kernels of their own are other kernels");
}

#[test]
fn jobs_carry_the_hash_that_is_published() {
    let folder = tempfile::tempdir().unwrap();
    let (plan, options) = (plan(&["a"], &[MP]), options(1));
    let place = place(folder.path(), false, Some(1));
    let (came, _) = run(&plan, &options, &place, &never(), &good).unwrap();
    assert_eq!(came.asked[0].kernel, came.ended.lines[0].hashes.kernel);
    assert_eq!(came.asked[0].kernel.len(), 64);
}

#[test]
fn worker_reports_become_verdicts() {
    use VerdictWord::{Conforms, Inconclusive, Skipped, Violates};
    let failed = |told: IncompleteReason| Ok(answer(&[], Some(told)));
    let text = |text: &str| text.to_owned();
    type Row = (Result<JobResult, pool::WorkerFailure>, VerdictWord, Option<&'static str>);
    let rows: Vec<Row> = vec![
        (good(&wire::Job::default()), Conforms, None),
        (Ok(answer(&[(&[1, 1], 1000)], None)), Inconclusive, Some("not exercised")),
        (Ok(answer(&[(&[1, 0], 1)], None)), Violates, None),
        // Observations count even if the run failed.
        (
            Ok(answer(&[(&[1, 0], 1)], Some(IncompleteReason::DeviceLost { message: text("lost") }))),
            Violates,
            None,
        ),
        (failed(IncompleteReason::Lacks { what: text("a feature") }), Skipped, Some("a feature")),
        (failed(IncompleteReason::NotPlaceable { rule: text("a rule") }), Skipped, Some("a rule")),
        (failed(IncompleteReason::DeviceLost { message: text("lost") }), Inconclusive, Some("device lost")),
        (failed(IncompleteReason::NoDevice { message: text("none") }), Inconclusive, Some("device lost")),
        (failed(IncompleteReason::TimedOut { message: text("late") }), Inconclusive, Some("timed out")),
        (failed(IncompleteReason::NullDevice), Inconclusive, Some("null device")),
        (
            failed(IncompleteReason::Disagreement { message: text("2, not 1") }),
            Inconclusive,
            Some("counts disagree"),
        ),
        (
            failed(IncompleteReason::Internal { message: text("another kernel") }),
            Inconclusive,
            Some("crashed"),
        ),
        (Err(pool::WorkerFailure::TimedOut { after: Duration::ZERO }), Inconclusive, Some("timed out")),
        (Err(pool::WorkerFailure::Garbled { what: text("?") }), Inconclusive, Some("crashed")),
    ];
    let (plan, options) = (plan(&["a"], &[MP]), options(1));
    for (end, verdict, reason) in rows {
        let folder = tempfile::tempdir().unwrap();
        let place = place(folder.path(), false, Some(1));
        let (came, _) = run(&plan, &options, &place, &never(), &|_| end.clone()).unwrap();
        let line = &came.ended.lines[0];
        assert_eq!((line.verdict, line.reason.as_deref()), (verdict, reason), "{end:?}: {line:?}");
    }
}

/// A timeout of the driver may have reset the device, so later submissions are smaller.
#[test]
fn submissions_are_smaller_once_a_device_was_lost() {
    let folder = tempfile::tempdir().unwrap();
    let (plan, options) = (plan(&["a", "b"], &[MP, SB, "lb/LB+rlx-rlx", "r/R+rlx-rlx"]), options(1));
    let place = place(folder.path(), false, Some(1));
    let asked = Mutex::new(0);
    let loses = |job: &wire::Job| match std::mem::replace(&mut *asked.lock().unwrap(), 1) {
        0 => Ok(answer(&[], Some(IncompleteReason::DeviceLost { message: "lost".to_owned() }))),
        _ => good(job),
    };
    let (came, _) = run(&plan, &options, &place, &never(), &loses).unwrap();
    let own = &plan.targets[0].stress;
    let sizes = |stress: &runner::Stress| {
        (stress.rounds.1, stress.groups.1, stress.groups_within.1, stress.submission_ms)
    };
    let (rounds, groups, within, time) = sizes(own);
    assert!(rounds > 1 && groups > 1 && within > 1 && time > 1, "{own:?}");
    let half = (rounds / 2, groups / 2, within / 2, time / 2);
    let whole = sizes(own);
    let found: Vec<_> = came.asked.iter().map(|job| sizes(job.stress.as_ref().unwrap())).collect();
    assert_eq!(found, [whole, half, half, half, whole, whole, whole, whole]);
    let lost: Vec<&str> = came.ended.lines.iter().filter_map(|line| line.reason.as_deref()).collect();
    assert_eq!(lost, ["device lost"], "and it cost one test");
    for halvings in [0, 1, 7, 40] {
        own.clone().halved(halvings).validate().unwrap();
    }
}

#[test]
fn lines_come_in_the_order_of_the_plan_device_by_device() {
    let folder = tempfile::tempdir().unwrap();
    let (plan, options) = (plan(&["a", "b"], &[MP, "coherence/CoRR+rlx", SB]), options(1));
    let place = place(folder.path(), false, Some(1));
    let (came, _) = run(&plan, &options, &place, &never(), &good).unwrap();
    let pair = |device: &str, id: &str| (device.to_owned(), id.to_owned());
    let expected =
        ["a", "b"].map(|device| [MP, "coherence/CoRR+rlx", SB].map(|id| pair(device, id))).concat();
    assert_eq!(came.written, expected);
    assert_eq!(came.asked.len(), 4, "what is skipped is not asked");
}

#[test]
fn an_interrupted_run_is_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let all = [MP, SB, "lb/LB+rlx-rlx"];
    let plan_of_all = plan(&["a"], &all);
    let first = options(1);
    let stop = never();
    let after_one = |job: &wire::Job| {
        stop.store(job.id == SB, Ordering::Relaxed);
        good(job)
    };
    let (came, seed) =
        run(&plan_of_all, &first, &place(folder.path(), false, Some(7)), &stop, &after_one).unwrap();
    assert!(came.ended.interrupted);
    let missing = (VerdictWord::Inconclusive, Some("missing"));
    let expected = [(MP, (VerdictWord::Conforms, None)), (SB, missing), (all[2], missing)];
    assert_eq!(by_id(&came.ended), BTreeMap::from(expected));
    assert_eq!(came.written, all.map(|id| ("a".to_owned(), id.to_owned())), "what is missing is written too");
    drop(came);
    let journal = std::fs::read_to_string(folder.path().join("run.jsonl")).unwrap();
    assert_eq!(journal.lines().count(), 1, "and is no verdict");
    let table = std::fs::read_to_string(folder.path().join("outcomes.csv")).unwrap();
    assert_eq!(table.matches("inconclusive,missing").count(), 2, "{table}");

    // Another plan, another seed or a new run must not use the folder.
    let other = plan(&["a"], &[SB]);
    for (plan, place) in [
        (&other, place(folder.path(), true, None)),
        (&plan_of_all, place(folder.path(), true, Some(8))),
        (&plan_of_all, place(folder.path(), false, None)),
    ] {
        assert!(matches!(run(plan, &first, &place, &never(), &good), Err(Failure::Input(_))));
    }
    assert!(matches!(place(folder.path(), false, None).check(), Err(Failure::Input(_))));

    // The number of workers is not part of the plan.
    let then = options(4);
    let (came, again) = run(&plan_of_all, &then, &place(folder.path(), true, None), &never(), &good).unwrap();
    assert_eq!(again, seed);
    assert!(!came.ended.interrupted);
    let asked: Vec<&str> = came.asked.iter().map(|job| job.id.as_str()).collect();
    assert_eq!(asked, all[1..]);
    let written: Vec<&str> = came.written.iter().map(|(_, id)| id.as_str()).collect();
    assert_eq!(written, all);
    let journal = std::fs::read_to_string(folder.path().join("run.jsonl")).unwrap();
    assert_eq!(journal.lines().count(), all.len());
}

#[test]
fn a_truncated_journal_is_reported_and_its_test_rerun() {
    let folder = tempfile::tempdir().unwrap();
    let (plan, options) = (plan(&["a"], &[MP]), options(1));
    drop(run(&plan, &options, &place(folder.path(), false, Some(1)), &never(), &good).unwrap());
    let journal = folder.path().join("run.jsonl");
    let text = std::fs::read_to_string(&journal).unwrap();
    std::fs::write(&journal, &text[..text.len() / 2]).unwrap();
    let told = Mutex::new(Vec::new());
    let tell = |text: &str| told.lock().unwrap().push(text.to_owned());
    let record = plan.record(&options, BUDGET).unwrap();
    let (_, seed, done) = place(folder.path(), true, None).open(record, &tell).unwrap();
    assert_eq!((seed, done.len()), (1, 0));
    assert!(told.lock().unwrap()[0].starts_with("warning: the last line of the journal is incomplete"));
}

/// The model detects a record with an edited verdict, counts and checksum.
#[test]
fn a_resumed_verdict_is_judged_again() {
    let folder = tempfile::tempdir().unwrap();
    let (plan, options) = (plan(&["a"], &[MP]), options(1));
    let violates = |_: &wire::Job| Ok(answer(&[(&[1, 0], 23), (&[0, 0], 500), (&[0, 1], 500)], None));
    drop(run(&plan, &options, &place(folder.path(), false, Some(1)), &never(), &violates).unwrap());
    let journal = folder.path().join("run.jsonl");
    let written = results::read::read_results(folder.path()).unwrap().lines.remove(0);
    let resumed = |edit: &dyn Fn(&mut RunLine)| {
        let mut line = written.clone();
        edit(&mut line);
        std::fs::write(&journal, results::journal::seal_record(&line).unwrap()).unwrap();
        run(&plan, &options, &place(folder.path(), true, None), &never(), &good).map(|(came, _)| {
            assert!(came.asked.is_empty());
            came.ended.lines[0].clone()
        })
    };
    assert_eq!(resumed(&|_| ()).unwrap(), written);
    let omits = |line: &mut RunLine| line.outcomes.retain(|outcome| outcome.count > 0);
    assert_eq!(resumed(&omits).unwrap(), written, "the model's list is used");
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
        let failure = resumed(edit).unwrap_err();
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
    let (came, _) = run(&plan, &options, &place(folder.path(), false, Some(1)), &never(), &good).unwrap();
    let (line, chosen) = (&came.ended.lines[0], choice::load("vulkan").unwrap());
    assert_eq!(line.verdict, VerdictWord::Conforms);
    let recomputed = |time: Duration| recorded::recompute_alone(line, &plan.items[0], &chosen, time).unwrap();
    assert_eq!(recomputed(recorded::RECORD_PATIENCE), *line);
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
    let parts = (1..=3).map(|index| part((0..10).collect(), Some(Shard { index, count: 3 })));
    let mut all: Vec<u32> = parts.flatten().collect();
    all.sort_unstable();
    assert_eq!(all, (0..10).collect::<Vec<u32>>());
}

fn progress_plan(ids: &[&str]) -> progress::ProgressPlan {
    let ids: Vec<String> = ids.iter().map(|id| (*id).to_owned()).collect();
    let (tests, rejected) = progress::load(&ids, None, None).unwrap();
    assert!(rejected.is_empty());
    let chosen = choice::load(progress::MODEL).unwrap();
    progress::ProgressPlan::new(vec![target("a")], tests, chosen, None, None).unwrap()
}

type ProgressEnds = Result<runner::progress::Answer, pool::WorkerFailure>;

fn progress_run<'a>(
    plan: &'a progress::ProgressPlan,
    options: &'a RunOptions,
    place: &RunPlace<'_>,
    time: Option<Duration>,
    answer: &(dyn Fn(&runner::progress::ProgressJob) -> ProgressEnds + Sync),
) -> Result<Came<progress::ProgressKind<'a>>, Failure> {
    let (folder, seed, done) = place.open(plan.record(options)?, &|_| ())?;
    let kind = progress::ProgressKind { plan, options, time, seed, misbehaviour: &NO_MISBEHAVIOUR };
    execute(&kind, (folder, done), &never(), answer)
}

fn every_thread_progressed(_: &runner::progress::ProgressJob) -> ProgressEnds {
    let seen =
        PlacementObservations { copies: 1, runs: 2, ended: 2, waited: 2, ..PlacementObservations::default() };
    Ok(runner::progress::Answer { seen, failure: None, validation: Vec::new() })
}

fn by_id(ended: &Ended) -> BTreeMap<&str, (VerdictWord, Option<&str>)> {
    ended.lines.iter().map(|line| (line.id.as_str(), (line.verdict, line.reason.as_deref()))).collect()
}

/// Every device has the same tests, including placements for other devices.
#[test]
fn progress_plans_have_every_test_for_every_device() {
    let folder = tempfile::tempdir().unwrap();
    let mut cpu = target("b");
    cpu.listed.identity.kind = "cpu".to_owned();
    let (tests, _) = progress::load(&["progress/handoff-down".to_owned()], None, None).unwrap();
    let chosen = choice::load(progress::MODEL).unwrap();
    let plan = progress::ProgressPlan::new(vec![target("a"), cpu], tests, chosen, None, None).unwrap();
    let (options, place) = (options(1), place(folder.path(), false, Some(1)));
    let came = progress_run(&plan, &options, &place, None, &every_thread_progressed).unwrap();
    assert!(came.written.len() > 2, "{:?}", came.written);
    assert_eq!(came.ended.lines.len(), came.written.len());
    let found = results::read::read_results(folder.path()).unwrap();
    assert_eq!((found.count_missing(), found.lines.len()), (0, came.written.len()));
}

const HANDOFFS: [&str; 3] = ["progress/handoff-down", "progress/handoff-up", "progress/mutex"];

#[test]
fn progress_resumes_with_another_number_of_workers() {
    let folder = tempfile::tempdir().unwrap();
    let plan = progress_plan(&HANDOFFS[..2]);
    let (one, four) = (options(1), options(4));
    drop(
        progress_run(&plan, &one, &place(folder.path(), false, Some(1)), None, &every_thread_progressed)
            .unwrap(),
    );
    let journal = folder.path().join("run.jsonl");
    let text = std::fs::read_to_string(&journal).unwrap();
    std::fs::write(&journal, format!("{}\n", text.lines().next().unwrap())).unwrap();
    let came = progress_run(&plan, &four, &place(folder.path(), true, None), None, &every_thread_progressed)
        .unwrap();
    let asked: Vec<&str> = came.asked.iter().map(|job| job.id.as_str()).collect();
    assert_eq!(asked, ["progress/handoff-up@plain"]);
    let conforms = (VerdictWord::Conforms, None);
    assert!(by_id(&came.ended).values().all(|verdict| *verdict == conforms), "{:?}", came.ended.lines);
    assert_eq!(came.asked[0].kernel, came.ended.lines[1].hashes.kernel);
}

#[test]
fn progress_skips_a_test_without_a_kernel_by_rule() {
    let folder = tempfile::tempdir().unwrap();
    let (plan, options) = (progress_plan(&["progress/barrier-in-loop"]), options(1));
    let came =
        progress_run(&plan, &options, &place(folder.path(), false, Some(1)), None, &every_thread_progressed)
            .unwrap();
    assert!(came.asked.is_empty());
    let skipped = (VerdictWord::Skipped, Some("control barrier under a branch"));
    assert!(by_id(&came.ended).values().all(|verdict| *verdict == skipped), "{:?}", came.ended.lines);
}

/// After a killed worker, the device must complete a store; otherwise no more tests run.
#[test]
fn progress_checks_the_device_after_a_killed_worker() {
    let plan = progress_plan(&HANDOFFS);
    let options = options(1);
    for healthy in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let answer = |job: &runner::progress::ProgressJob| match job.id.as_str() {
            "progress/handoff-up@plain" => Err(pool::WorkerFailure::TimedOut { after: Duration::ZERO }),
            "health" if !healthy => Err(pool::WorkerFailure::Garbled { what: "noise".to_owned() }),
            _ => every_thread_progressed(job),
        };
        let place = place(folder.path(), false, Some(1));
        let came = progress_run(&plan, &options, &place, None, &answer).unwrap();
        let last = if healthy {
            (VerdictWord::Conforms, None)
        } else {
            (VerdictWord::Inconclusive, Some("device lost"))
        };
        let expected = [
            ("progress/handoff-down@plain", (VerdictWord::Conforms, None)),
            ("progress/handoff-up@plain", (VerdictWord::Inconclusive, Some("timed out"))),
            ("progress/mutex@plain", last),
        ];
        assert_eq!(by_id(&came.ended), BTreeMap::from(expected), "{healthy}");
    }
}

#[test]
fn progress_starts_no_test_after_the_time_limit() {
    let folder = tempfile::tempdir().unwrap();
    let (plan, options) = (progress_plan(&HANDOFFS), options(1));
    let place = place(folder.path(), false, Some(1));
    let came = progress_run(&plan, &options, &place, Some(Duration::ZERO), &every_thread_progressed).unwrap();
    assert!(came.asked.is_empty());
    let late = (VerdictWord::Inconclusive, Some("no time"));
    assert!(by_id(&came.ended).values().all(|verdict| *verdict == late));
}

/// This test does not need snapshots, but the type does.
#[test]
fn snapshots_have_instances_and_seconds() {
    let seen = answer(&[(&[0, 0], 3)], None).observation;
    let snapshot =
        Snapshot { observation: WireObservation { seconds: 0.5, ..seen }, twin: None, spread: None };
    assert_eq!(<Litmus<'_> as RunKind>::shown(&snapshot), (3, 0.5));
}

/// Proofs that a model forbids an observed outcome.
#[test]
fn only_forbidden_outcomes_of_race_free_tests_are_proved_in_time() {
    let model = model::Model::shipped("vulkan").unwrap().unwrap();
    let prove = |id: &str, values: &[u64], seconds: u64| {
        let entry = litmus::corpus::tests().into_iter().find(|entry| entry.id == id).unwrap();
        let test = litmus::parse(entry.text, &entry.id).unwrap();
        let outcome = Outcome(values.iter().copied().map(Value).collect());
        campaign::certificates::prove_forbidden(&test, &model, &[&outcome], Duration::from_secs(seconds))
    };
    assert_eq!(prove("mp/MP+rel-acq", &[1, 0], 60), Ok(()));
    let allowed = prove("mp/MP+rel-acq", &[1, 1], 60).unwrap_err();
    assert_eq!(allowed, "the certificate allows each outcome that was observed");
    assert_eq!(prove("mp/MP+plain", &[1, 0], 60).unwrap_err(), "the certified program has a race");
    assert_eq!(prove("mp/MP+rel-acq", &[1, 0], 0).unwrap_err(), "the time limit was reached");
}
