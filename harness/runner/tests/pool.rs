//! The pool with workers that are small scripts. Each kind of failure has its report.
#![cfg(unix)]

use std::ops::ControlFlow;
use std::process::Command;
use std::time::Duration;

use runner::pool::{
    self, AttemptEnd, Health, JobReport, Limits, NotRun, PoolAnswer, PoolCallbacks, PoolEvent, WorkerFailure,
};
use serde::Deserialize;

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

fn run(limits: &Limits, jobs: usize, script: &str) -> Vec<JobReport<Word, Word>> {
    let mut reports = Vec::new();
    pool::run(
        limits,
        jobs,
        PoolCallbacks {
            make_command: &mut || {
                let mut command = Command::new("sh");
                command.arg("-c").arg(format!("{LIBRARY}\n{script}"));
                command
            },
            make_job: &mut |job, _| format!("job {job}"),
            on_event: &mut |event| {
                if let PoolEvent::Finished(report) = event {
                    reports.push(report);
                }
                ControlFlow::Continue(())
            },
        },
    );
    let numbers: Vec<usize> = reports.iter().map(|report| report.job).collect();
    assert_eq!(numbers, (0..jobs).collect::<Vec<_>>(), "one report a job, in their order");
    reports
}

fn describe_ends(reports: &[JobReport<Word, Word>]) -> Vec<String> {
    reports
        .iter()
        .map(|report| match &report.last.end {
            AttemptEnd::Answered(Word(word)) => word.clone(),
            AttemptEnd::Failed(WorkerFailure::TimedOut { .. }) => "timed out".into(),
            AttemptEnd::Failed(failure) => failure.to_string(),
            AttemptEnd::NotRun(why) => why.to_string(),
        })
        .collect()
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
fn jobs_arrive_as_json() {
    let reports = run(&patient_limits(), 1, r#"next; answer "$(printf %s "$request" | tr -d '"')""#);
    assert_eq!(describe_ends(&reports), ["{version:1,job:0,payload:job 0}"]);
}

#[test]
fn a_crash_has_its_signal_and_last_output() {
    let script = "next; [ $job = 1 ] && { echo first >&2; echo last words >&2; kill -SEGV $$; }; answer fine";
    let reports = run(&patient_limits(), 3, &format!("while :; do {script}; done"));
    assert_eq!(describe_ends(&reports), ["fine", "the worker ended with signal 11: last words", "fine"]);
    let AttemptEnd::Failed(WorkerFailure::Crashed { signal: Some(11), code: None, stderr }) =
        &reports[1].last.end
    else {
        panic!("{:?}", reports[1])
    };
    assert_eq!(stderr, "first\nlast words\n");
}

#[test]
fn an_exit_without_an_answer_is_a_crash() {
    for code in [0, 3] {
        let reports = run(&patient_limits(), 1, &format!("next; exit {code}"));
        assert_eq!(describe_ends(&reports), [format!("the worker ended with exit code {code}")]);
    }
}

/// A process that the driver forked keeps the output of the worker open.
#[test]
fn a_crash_is_reported_while_a_forked_process_lives() {
    let reports = run(&patient_limits(), 2, "sleep 900 & next; [ $job = 0 ] && kill -SEGV $$; answer fine");
    assert_eq!(describe_ends(&reports), ["the worker ended with signal 11", "fine"]);
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

#[test]
fn a_panic_has_its_message() {
    let script =
        "next; printf \"thread 'main' panicked at a.rs:1:2:\\nwhy\\nnote: run with more\\n\" >&2; exit 101";
    assert_eq!(
        describe_ends(&run(&patient_limits(), 1, script)),
        ["the worker ended with exit code 101: why"]
    );
}

#[test]
fn output_before_a_crash_is_reported() {
    let reports = run(&patient_limits(), 1, "next; progress one; progress two; kill -KILL $$");
    assert_eq!(describe_ends(&reports), ["the worker ended with signal 9"]);
    assert_eq!(reports[0].last.snapshot, Some(Word("two".into())));
}

#[test]
fn a_silent_worker_is_killed_and_replaced() {
    let limits = Limits { silence: Duration::from_millis(1500), ..Limits::DEFAULT };
    let reports = run(
        &limits,
        3,
        "while next; do if [ $job = 1 ]; then progress seen; while :; do sleep 9; done; fi; answer fine; done",
    );
    assert_eq!(describe_ends(&reports), ["fine", "timed out", "fine"]);
    assert_eq!(reports[1].last.snapshot, Some(Word("seen".into())));
}

#[test]
fn a_worker_that_ignores_signals_is_ended() {
    let limits = Limits { silence: Duration::from_millis(300), ..Limits::DEFAULT };
    let reports = run(&limits, 1, "trap '' TERM INT HUP; next; while :; do sleep 9; done");
    assert_eq!(describe_ends(&reports), ["timed out"]);
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

#[test]
fn heartbeats_do_not_extend_the_time_limit() {
    let limits = Limits {
        time: Some(Duration::from_millis(300)),
        slack: Duration::from_millis(100),
        ..patient_limits()
    };
    let reports = run(&limits, 1, "next; while :; do progress more; sleep 0.02; done");
    assert_eq!(describe_ends(&reports), ["timed out"]);
    assert_eq!(reports[0].last.snapshot, Some(Word("more".into())));
}

#[test]
fn a_slow_worker_with_heartbeats_is_not_killed() {
    let limits = Limits { silence: Duration::from_secs(2), ..Limits::DEFAULT };
    let script = "next; for i in 1 2 3 4 5 6 7 8 9 10 11 12; do progress $i; sleep 0.25; done; answer slow";
    let reports = run(&limits, 1, script);
    assert_eq!(describe_ends(&reports), ["slow"]);
}

#[test]
fn noise_on_standard_output_is_ignored() {
    let script =
        "echo MESA: warning; next; printf 'half a line '; progress on; printf '\\377\\n{}\\n'; answer heard";
    let reports = run(&patient_limits(), 1, script);
    assert_eq!(describe_ends(&reports), ["heard"]);
    assert_eq!(reports[0].last.snapshot, Some(Word("on".into())));
}

#[test]
fn unreadable_answers_are_failures() {
    for (script, why) in [
        ("printf '%s{\\n' \"$RS\"", "EOF while parsing"),
        ("printf '%s{\"answer\":{\"version\":1,\"job\":0}}\\n' \"$RS\"", "missing field `payload`"),
        (
            "printf '%s{\"answer\":{\"version\":9,\"job\":0,\"payload\":\"\"}}\\n' \"$RS\"",
            "its version is 9, not 1",
        ),
        ("job=7; answer fine", "it refers to job 7"),
        ("job=7; progress fine", "it refers to job 7"),
    ] {
        let reports = run(&patient_limits(), 1, &format!("next; {script}; sleep 60"));
        let end = describe_ends(&reports).remove(0);
        assert!(end.starts_with("the worker's answer cannot be read: ") && end.contains(why), "{end}");
    }
}

#[test]
fn a_fault_that_hits_every_worker_stops_being_retried() {
    let limits = Limits { retries: 1, ..patient_limits() };
    let reports = run(&limits, 6, "next; echo no device >&2; exit 1");
    assert_eq!(reports[0].earlier.len(), 1, "tried twice");
    let crash = "the worker ended with exit code 1: no device";
    let given_up = format!("not tried after 3 consecutive failures, the last one: {crash}");
    assert_eq!(describe_ends(&reports), [crash, crash, &given_up, &given_up, &given_up, &given_up]);
    let reports = run(&patient_limits(), 4, "while next; do answer bad; done");
    let given_up = "not tried after 3 consecutive failures, the last one: the device says bad";
    assert_eq!(describe_ends(&reports), ["bad", "bad", "bad", given_up]);
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
fn simultaneous_failures_do_not_end_the_run() {
    let limits = Limits { workers: 4, give_up_after: 1, ..patient_limits() };
    // The first job of each of four workers crashes; later ones succeed.
    let reports =
        run(&limits, 8, "next; [ $job -lt 4 ] && exit 1; answer fine; while next; do answer fine; done");
    let mut expected = vec!["the worker ended with exit code 1"; 4];
    expected.extend(
        ["not tried after 4 consecutive failures, the last one: the worker ended with exit code 1"; 4],
    );
    assert_eq!(describe_ends(&reports), expected);
    let reports =
        run(&limits, 8, "next; [ $job -lt 3 ] && exit 1; answer fine; while next; do answer fine; done");
    assert_eq!(describe_ends(&reports)[3..], ["fine"; 5]);
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
fn a_retry_keeps_the_observations_of_the_first_attempt() {
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("tried").display().to_string();
    let script = format!(
        "next; [ -e {mark} ] && {{ answer second; exit; }}; touch {mark}; progress violation; kill -SEGV $$"
    );
    let reports = run(&Limits { retries: 2, ..patient_limits() }, 1, &script);
    assert_eq!(describe_ends(&reports), ["second"]);
    assert_eq!(reports[0].earlier.len(), 1);
    assert_eq!(reports[0].earlier[0].snapshot, Some(Word("violation".into())));
}

#[test]
fn invalid_answers_are_retried_and_reported() {
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("tried").display().to_string();
    let script = format!(
        "while next; do if [ -e {mark} ]; then answer fine; else touch {mark}; answer 'bad, ends'; fi; done"
    );
    let reports = run(&Limits { retries: 1, ..patient_limits() }, 1, &script);
    assert_eq!(describe_ends(&reports), ["fine"]);
    assert_eq!(reports[0].earlier[0].end, AttemptEnd::Answered(Word("bad, ends".into())));
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
    pool::run(
        &limits,
        4,
        PoolCallbacks {
            make_command: &mut || {
                let mut command = Command::new("sh");
                command.arg("-c").arg(format!("{LIBRARY}\nwhile next; do answer fine; done"));
                command
            },
            make_job: &mut |job, share| {
                shares.push(share.unwrap());
                job
            },
            on_event: &mut |_: PoolEvent<'_, Word, Word>| ControlFlow::Continue(()),
        },
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
    pool::run(
        &limits,
        JOBS,
        PoolCallbacks {
            make_command: &mut || {
                let mut command = Command::new("sh");
                command.arg("-c").arg(format!("{LIBRARY}\n{SLEEPS}"));
                command
            },
            make_job: &mut |_, share: Option<Duration>| {
                shares.push(share.unwrap());
                format!("{:.3}", (share.unwrap() + BESIDE).as_secs_f64())
            },
            on_event: &mut |event: PoolEvent<'_, Word, Word>| {
                if let PoolEvent::Finished(report) = event {
                    ends.push(matches!(report.last.end, AttemptEnd::Answered(_)));
                }
                ControlFlow::Continue(())
            },
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
    pool::run(
        &patient_limits(),
        9,
        PoolCallbacks {
            make_command: &mut || {
                let mut command = Command::new("sh");
                command.arg("-c").arg(format!("{LIBRARY}\nwhile next; do answer fine; done"));
                command
            },
            make_job: &mut |job, _| job,
            on_event: &mut |event: PoolEvent<'_, Word, Word>| {
                finished += usize::from(matches!(event, PoolEvent::Finished(_)));
                if finished == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            },
        },
    );
    assert_eq!(finished, 2);
}

#[test]
fn without_jobs_no_worker_starts() {
    assert_eq!(run(&patient_limits(), 0, "exit 1"), []);
}
