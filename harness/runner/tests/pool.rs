//! The pool with workers that are small scripts. Each kind of failure has its report.
#![cfg(unix)]

use std::ops::ControlFlow;
use std::process::Command;
use std::time::Duration;

use runner::pool::{
    self, AttemptEnd, Health, JobReport, Limits, NotRun, PoolAnswer, PoolCallbacks, PoolEvent, WorkerFailure,
};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Deserialize)]
struct Word(String);

impl PoolAnswer for Word {
    fn health(&self) -> Health {
        match self.0.as_str() {
            "bad" | "bad, ends" => Health::Bad,
            "skipped" => Health::Unknown,
            _ => Health::Good,
        }
    }

    fn ends_worker(&self) -> bool {
        self.0.ends_with("ends")
    }

    fn failure(&self) -> Option<String> {
        (self.health() == Health::Bad).then(|| format!("the device says {}", self.0))
    }
}

const LIBRARY: &str = include_str!("workers/lib.sh");

/// Returns limits that are long enough for a loaded machine.
fn patient_limits() -> Limits {
    Limits { silence: Duration::from_secs(60), ..Limits::DEFAULT }
}

/// Runs jobs on workers that execute a script.
fn run_script<J: Serialize>(
    limits: &Limits,
    jobs: usize,
    script: &str,
    mut make_job: impl FnMut(usize, Option<Duration>) -> J,
    mut on_event: impl FnMut(PoolEvent<'_, Word, Word>) -> ControlFlow<()>,
) {
    let make_command = &mut || {
        let mut command = Command::new("sh");
        command.arg("-c").arg(format!("{LIBRARY}\n{script}"));
        command
    };
    pool::run(limits, jobs, PoolCallbacks { make_command, make_job: &mut make_job, on_event: &mut on_event });
}

fn run(limits: &Limits, jobs: usize, script: &str) -> Vec<JobReport<Word, Word>> {
    let mut reports = Vec::new();
    run_script(
        limits,
        jobs,
        script,
        |job, _| format!("job {job}"),
        |event| {
            if let PoolEvent::Finished(report) = event {
                reports.push(report);
            }
            ControlFlow::Continue(())
        },
    );
    let numbers: Vec<usize> = reports.iter().map(|report| report.job).collect();
    assert_eq!(numbers, (0..jobs).collect::<Vec<_>>(), "one report a job, in their order");
    reports
}

fn describe_end(end: &AttemptEnd<Word>) -> String {
    match end {
        AttemptEnd::Answered(Word(word)) => word.clone(),
        AttemptEnd::Failed(WorkerFailure::TimedOut { .. }) => "timed out".into(),
        AttemptEnd::Failed(failure) => failure.to_string(),
        AttemptEnd::NotRun(why) => why.to_string(),
    }
}

fn describe_ends(reports: &[JobReport<Word, Word>]) -> Vec<String> {
    reports.iter().map(|report| describe_end(&report.last.end)).collect()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    #[serde(default)]
    limits: CaseLimits,
    script: String,
    ends: Vec<String>,
    #[serde(default)]
    errors: Vec<JobText>,
    #[serde(default)]
    snapshots: Vec<JobText>,
    #[serde(default)]
    earlier: Vec<JobText>,
}

/// Limits other than [`patient_limits`], in milliseconds.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct CaseLimits {
    silence: Option<u64>,
    time: Option<u64>,
    slack: Option<u64>,
    workers: Option<u32>,
    retries: u32,
    give_up_after: Option<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JobText {
    job: usize,
    text: String,
    snapshot: Option<String>,
}

/// The cases of `workers/cases.toml`.
#[test]
fn scripts_have_their_ends() {
    #[derive(Deserialize)]
    struct Cases {
        case: Vec<Case>,
    }
    for case in toml::from_str::<Cases>(include_str!("workers/cases.toml")).unwrap().case {
        let name = &case.name;
        let usual = patient_limits();
        let limits = Limits {
            silence: case.limits.silence.map_or(usual.silence, Duration::from_millis),
            time: case.limits.time.map(Duration::from_millis),
            slack: case.limits.slack.map_or(usual.slack, Duration::from_millis),
            workers: case.limits.workers.unwrap_or(usual.workers),
            retries: case.limits.retries,
            give_up_after: case.limits.give_up_after.unwrap_or(usual.give_up_after),
            ..usual
        };
        let folder = tempfile::tempdir().unwrap();
        let script = case.script.replace("{mark}", folder.path().join("mark").to_str().unwrap());
        let reports = run(&limits, case.ends.len(), &script);
        for (found, expected) in describe_ends(&reports).iter().zip(&case.ends) {
            match expected.split_once('~') {
                Some((start, part)) => {
                    assert!(found.starts_with(start) && found.contains(part), "{name}: {found}")
                }
                None => assert_eq!(found, expected, "{name}"),
            }
        }
        for JobText { job, text, .. } in &case.errors {
            let AttemptEnd::Failed(WorkerFailure::Crashed { stderr, .. }) = &reports[*job].last.end else {
                panic!("{name}: {:?}", reports[*job])
            };
            assert_eq!(stderr, text, "{name}");
        }
        for JobText { job, text, .. } in &case.snapshots {
            assert_eq!(reports[*job].last.snapshot, Some(Word(text.clone())), "{name}");
        }
        for JobText { job, text, snapshot } in &case.earlier {
            let [earlier] = &reports[*job].earlier[..] else { panic!("{name}: {:?}", reports[*job]) };
            assert_eq!(&describe_end(&earlier.end), text, "{name}");
            assert_eq!(earlier.snapshot, snapshot.clone().map(Word), "{name}");
        }
    }
}

#[test]
fn one_worker_answers_all() {
    let reports = run(&patient_limits(), 4, "while next; do answer \"$job $$\"; done");
    let answers = describe_ends(&reports);
    let process = answers[0].split_once(' ').unwrap().1.to_owned();
    let expected: Vec<String> = (0..4).map(|job| format!("{job} {process}")).collect();
    assert_eq!(answers, expected);
}

#[test]
#[cfg(target_os = "linux")]
fn forked_processes_are_killed() {
    let reports = run(&patient_limits(), 1, "next; sleep 900 <&- >&- 2>&- & answer $!; next");
    let status = format!("/proc/{}/stat", describe_ends(&reports)[0]);
    // The zombie may not be collected yet.
    while std::fs::read_to_string(&status).is_ok_and(|stat| !stat.contains(") Z ")) {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A process in another session has no process group in common with the worker.
#[test]
#[cfg(target_os = "linux")]
fn processes_in_other_sessions_are_killed() {
    let script = "next; setsid -f sh -c 'sleep 900 <&- >&- 2>&- & echo $! > {}; wait' <&- >&- 2>&-; \
                  while [ ! -s {} ]; do sleep 0.01; done; answer $(cat {}); next";
    let file = std::env::temp_dir().join(format!("orphan-{}", std::process::id()));
    let reports = run(&patient_limits(), 1, &script.replace("{}", file.to_str().unwrap()));
    std::fs::remove_file(&file).unwrap();
    let status = format!("/proc/{}/stat", describe_ends(&reports)[0]);
    assert!(!std::path::Path::new(&status).exists());
}

/// The memory of descendants is included, and the next job gets a new worker.
#[cfg(target_os = "linux")]
#[test]
fn a_worker_that_uses_too_much_memory_is_ended() {
    let limits = Limits { memory: 64 << 20, ..patient_limits() };
    let reports =
        run(&limits, 2, "while next; do if [ $job = 0 ]; then tail /dev/zero; fi; answer fine; done");
    assert_eq!(describe_ends(&reports)[1], "fine");
    let AttemptEnd::Failed(WorkerFailure::OutOfMemory { used, limit }) = &reports[0].last.end else {
        panic!("{:?}", reports[0])
    };
    assert!(used > limit);
    assert_eq!(*limit, 64 << 20);
}

/// Opening a device may block every other process, so the next worker starts after the first message of the
/// previous one.
#[test]
fn workers_start_one_after_another() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let script = format!(
        "echo start >> {log}; next; sleep 0.2; echo open >> {log}; progress open; sleep 0.6; answer done; while next; do answer done; done",
        log = log.display()
    );
    let reports = run(&Limits { workers: 3, ..patient_limits() }, 3, &script);
    assert_eq!(describe_ends(&reports), ["done"; 3]);
    let log = std::fs::read_to_string(&log).unwrap();
    // Unneeded workers may be missing, but no worker starts before the previous one has opened its device.
    assert!(log.starts_with("start\nopen\nstart\nopen\n"), "{log}");
    assert!(!log.contains("start\nstart"), "{log}");
}

#[test]
fn a_worker_that_cannot_start_is_reported() {
    let mut reports = Vec::new();
    pool::run(
        &patient_limits(),
        5,
        PoolCallbacks {
            make_command: &mut || Command::new("/nonexistent/worker"),
            make_job: &mut |job, _| job,
            on_event: &mut |event: PoolEvent<'_, Word, Word>| {
                if let PoolEvent::Finished(report) = event {
                    reports.push(report);
                }
                ControlFlow::Continue(())
            },
        },
    );
    assert!(
        matches!(reports[2].last.end, AttemptEnd::Failed(WorkerFailure::CannotStart { .. })),
        "{:?}",
        reports[2]
    );
    assert!(matches!(reports[3].last.end, AttemptEnd::NotRun(NotRun::GivenUp { failures: 3, .. })));
    assert_eq!(reports.len(), 5);
}

#[test]
fn isolated_failures_do_not_end_the_run() {
    let script = "while next; do case $job in *[05]) kill -ABRT $$;; esac; answer fine; done";
    let reports = run(&patient_limits(), 20, script);
    let crashed = describe_ends(&reports).iter().filter(|end| end.contains("signal 6")).count();
    assert_eq!(crashed, 4);
    assert_eq!(describe_ends(&reports).iter().filter(|end| *end == "fine").count(), 16);
}

#[test]
fn a_worker_that_ends_itself_gets_no_other_job() {
    let reports = run(&patient_limits(), 3, "while next; do answer \"$$, ends\"; done");
    let answers = describe_ends(&reports);
    assert!(answers[0] != answers[1] && answers[1] != answers[2], "{answers:?}");
}

#[test]
fn no_job_starts_after_the_time_limit() {
    let limits = Limits { time: Some(Duration::from_millis(400)), ..patient_limits() };
    let reports = run(&limits, 50, "while next; do sleep 0.15; answer fine; done");
    let answers = describe_ends(&reports);
    assert_eq!(answers[0], "fine");
    assert_eq!(answers[49], "the time was used up before the test started");
}

#[test]
fn time_shares_follow_the_remaining_time() {
    let mut shares = Vec::new();
    let limits = Limits { time: Some(Duration::from_secs(60)), ..patient_limits() };
    run_script(
        &limits,
        4,
        "while next; do answer fine; done",
        |job, share| {
            shares.push(share.unwrap());
            job
        },
        |_| ControlFlow::Continue(()),
    );
    assert_eq!(shares.len(), 4);
    // Jobs that end early leave their time to the others.
    assert!(shares.is_sorted() && shares[3] > Duration::from_secs(15), "{shares:?}");
    assert!(shares[0] <= Duration::from_secs(15) && shares[3] <= Duration::from_secs(60));
}

/// The overhead of each job is reserved, so every job starts if the time suffices.
#[test]
fn every_job_starts_if_the_time_suffices() {
    const JOBS: usize = 30;
    const BESIDE: Duration = Duration::from_millis(100);
    const SLEEPS: &str = r#"while next; do
        time=${request#*\"payload\":\"}
        sleep "${time%%\"*}"
        answer fine
    done"#;
    let limits = Limits { time: Some(Duration::from_secs(6)), ..patient_limits() };
    let (mut shares, mut ends) = (Vec::new(), Vec::new());
    run_script(
        &limits,
        JOBS,
        SLEEPS,
        |_, share| {
            shares.push(share.unwrap());
            format!("{:.3}", (share.unwrap() + BESIDE).as_secs_f64())
        },
        |event| {
            if let PoolEvent::Finished(report) = event {
                ends.push(matches!(report.last.end, AttemptEnd::Answered(_)));
            }
            ControlFlow::Continue(())
        },
    );
    assert_eq!(ends, [true; JOBS], "{shares:?}");
    // The first job gets the share of the whole time, later ones of the remaining time.
    assert!(shares[0] >= Duration::from_millis(199), "{shares:?}");
    assert!(shares[JOBS / 2] <= BESIDE, "{shares:?}");
}

#[test]
fn many_workers_report_in_order() {
    let limits = Limits { workers: 3, ..patient_limits() };
    let reports = run(
        &limits,
        7,
        "while next; do progress on; [ $job = 0 ] && sleep 0.4; sleep 0.3; answer \"$$\"; done",
    );
    let mut processes = describe_ends(&reports);
    processes.sort();
    processes.dedup();
    assert_eq!(processes.len(), 3);
}

#[test]
fn the_callback_can_end_everything() {
    let mut finished = 0;
    run_script(
        &patient_limits(),
        9,
        "while next; do answer fine; done",
        |job, _| job,
        |event| {
            finished += usize::from(matches!(event, PoolEvent::Finished(_)));
            if finished == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        },
    );
    assert_eq!(finished, 2);
}
