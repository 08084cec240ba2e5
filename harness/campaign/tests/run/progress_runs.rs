//! Runs of progress tests.

use campaign::kinds::progress;
use runner::progress::PlacementObservations;

use super::*;

fn progress_plan(ids: &[&str]) -> progress::ProgressPlan {
    let ids: Vec<String> = ids.iter().map(|id| (*id).to_owned()).collect();
    let (tests, rejected) = progress::load_tests(&ids, None, None).unwrap();
    assert!(rejected.is_empty());
    let chosen = models::load(progress::DEFAULT_MODEL).unwrap();
    progress::ProgressPlan::new(vec![target("a")], tests, chosen, None, None).unwrap()
}

type ScriptedProgressEnd = Result<runner::progress::Answer, pool::WorkerFailure>;

fn run_progress<'a>(
    plan: &'a progress::ProgressPlan,
    options: &'a RunOptions,
    place: &RunFolderOptions<'_>,
    time: Option<Duration>,
    answer: &(dyn Fn(&runner::progress::ProgressJob) -> ScriptedProgressEnd + Sync),
) -> Result<RunTrace<progress::ProgressKind<'a>>, Failure> {
    let (folder, seed, done) = place.open(plan.to_record(options)?, &|_| ())?;
    let kind = progress::ProgressKind { plan, options, time, seed, fault_injection: &NO_MISBEHAVIOUR };
    execute(&kind, folder, done, &not_interrupted(), answer)
}

fn every_thread_progressed(_: &runner::progress::ProgressJob) -> ScriptedProgressEnd {
    let observations =
        PlacementObservations { copies: 1, runs: 2, ended: 2, waited: 2, ..PlacementObservations::default() };
    Ok(runner::progress::Answer { seen: observations, failure: None, validation: Vec::new() })
}

/// Every device has the same tests, including placements for other devices.
#[test]
fn progress_plans_have_every_test_for_every_device() {
    let folder = tempfile::tempdir().unwrap();
    let mut cpu = target("b");
    cpu.listed.identity.kind = "cpu".to_owned();
    let (tests, _) = progress::load_tests(&["progress/handoff-down".to_owned()], None, None).unwrap();
    let chosen = models::load(progress::DEFAULT_MODEL).unwrap();
    let plan = progress::ProgressPlan::new(vec![target("a"), cpu], tests, chosen, None, None).unwrap();
    let (options, place) = (options(1), folder_options(folder.path(), false, Some(1)));
    let trace = run_progress(&plan, &options, &place, None, &every_thread_progressed).unwrap();
    assert!(trace.written_lines.len() > 2, "{:?}", trace.written_lines);
    assert_eq!(trace.result.lines.len(), trace.written_lines.len());
    let found = results::read::read_results(folder.path()).unwrap();
    assert_eq!((found.count_missing(), found.lines.len()), (0, trace.written_lines.len()));
}

const HANDOFFS: [&str; 3] = ["progress/handoff-down", "progress/handoff-up", "progress/mutex"];

#[test]
fn progress_resumes_with_another_number_of_workers() {
    let folder = tempfile::tempdir().unwrap();
    let plan = progress_plan(&HANDOFFS[..2]);
    let (one, four) = (options(1), options(4));
    drop(
        run_progress(
            &plan,
            &one,
            &folder_options(folder.path(), false, Some(1)),
            None,
            &every_thread_progressed,
        )
        .unwrap(),
    );
    let journal = folder.path().join("run.jsonl");
    let text = std::fs::read_to_string(&journal).unwrap();
    std::fs::write(&journal, format!("{}\n", text.lines().next().unwrap())).unwrap();
    let trace = run_progress(
        &plan,
        &four,
        &folder_options(folder.path(), true, None),
        None,
        &every_thread_progressed,
    )
    .unwrap();
    let executed_ids: Vec<&str> = trace.received_jobs.iter().map(|job| job.id.as_str()).collect();
    assert_eq!(executed_ids, ["progress/handoff-up@plain"]);
    let conforms = (VerdictWord::Conforms, None);
    assert!(
        verdicts_by_id(&trace.result).values().all(|verdict| *verdict == conforms),
        "{:?}",
        trace.result.lines
    );
    assert_eq!(trace.received_jobs[0].kernel, trace.result.lines[1].hashes.kernel);
}

#[test]
fn progress_skips_a_test_without_a_kernel_by_rule() {
    let folder = tempfile::tempdir().unwrap();
    let (plan, options) = (progress_plan(&["progress/barrier-in-loop"]), options(1));
    let trace = run_progress(
        &plan,
        &options,
        &folder_options(folder.path(), false, Some(1)),
        None,
        &every_thread_progressed,
    )
    .unwrap();
    assert!(trace.received_jobs.is_empty());
    let skipped = (VerdictWord::Skipped, Some("control barrier under a branch"));
    assert!(
        verdicts_by_id(&trace.result).values().all(|verdict| *verdict == skipped),
        "{:?}",
        trace.result.lines
    );
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
        let place = folder_options(folder.path(), false, Some(1));
        let trace = run_progress(&plan, &options, &place, None, &answer).unwrap();
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
        assert_eq!(verdicts_by_id(&trace.result), BTreeMap::from(expected), "{healthy}");
    }
}

#[test]
fn progress_starts_no_test_after_the_time_limit() {
    let folder = tempfile::tempdir().unwrap();
    let (plan, options) = (progress_plan(&HANDOFFS), options(1));
    let place = folder_options(folder.path(), false, Some(1));
    let trace =
        run_progress(&plan, &options, &place, Some(Duration::ZERO), &every_thread_progressed).unwrap();
    assert!(trace.received_jobs.is_empty());
    let late = (VerdictWord::Inconclusive, Some("no time"));
    assert!(verdicts_by_id(&trace.result).values().all(|verdict| *verdict == late));
}
