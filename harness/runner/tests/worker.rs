//! A worker process from job to answer, with scripted devices. The test binary is also the worker.
#![expect(clippy::unwrap_used, clippy::panic, clippy::expect_used, reason = "a failure is the report")]

#[expect(dead_code, reason = "kernels come from the compiler here")]
mod common;

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::process::Command;
use std::time::Duration;

use common::{FakeDevice, SubmissionEnd};
use litmus::{Outcome, Value};
use plan::{Capabilities, Device, DeviceError, Identity, Plan, Prepared};
use runner::pool::{self, AttemptEnd, JobReport, Limits, PoolCallbacks, PoolEvent};
use runner::wire::{IncompleteReason, Job, JobResult, Snapshot};

const STORE_BUFFERING: &str = include_str!("../../../litmus/corpus/sb/SB+rlx-rlx.litmus");
const BARRIER: &str = include_str!("../../../litmus/corpus/barrier/MP+cbar.litmus");

/// A device that is lost, or too small, when a second program is prepared.
struct OneProgram {
    inner: FakeDevice,
    first: RefCell<Vec<u32>>,
    then: fn() -> DeviceError,
}

impl Device for OneProgram {
    fn identity(&self) -> &Identity {
        self.inner.identity()
    }

    fn capabilities(&self) -> &Capabilities {
        self.inner.capabilities()
    }

    fn prepare(&self, plan: &Plan) -> Result<Box<dyn Prepared + '_>, DeviceError> {
        let kernel = &plan.kernels[0];
        // The canary has one parameter.
        if kernel.push_constant_bytes != shaders::canary::PUSH_CONSTANT_BYTES {
            let mut first = self.first.borrow_mut();
            if first.is_empty() {
                first.clone_from(&kernel.words);
            } else if *first != kernel.words {
                return Err((self.then)());
            }
        }
        self.inner.prepare(plan)
    }
}

/// Opens a scripted device by name.
fn make_device(selector: &str) -> Result<Box<dyn Device>, DeviceError> {
    // Output of a driver must not corrupt the answers.
    println!("driver says hello");
    let executes = selector != "null";
    let name = selector.to_owned();
    let mut device = match selector {
        "missing" => return Err(DeviceError::NoSuchDevice(name)),
        "panics" => panic!("the driver found a bug in itself"),
        _ => FakeDevice::new(true, move |number, memories| {
            memories.results.fill(0);
            match name.as_str() {
                "hangs" if number >= 3 => SubmissionEnd::Hangs,
                "lost" if number >= 3 => SubmissionEnd::Lost,
                "crashes" if number >= 3 => {
                    std::thread::sleep(Duration::from_millis(300));
                    if number >= 5 {
                        std::process::abort();
                    }
                    SubmissionEnd::Ends
                }
                "deaf" => loop {
                    std::thread::sleep(Duration::from_secs(1));
                },
                _ => SubmissionEnd::Ends,
            }
        }),
    };
    device.capabilities.executes = executes;
    device.executes = selector != "idle";
    device.capabilities.memory_model = true;
    device.capabilities.device_scope = true;
    device.capabilities.availability_visibility_chains = true;
    device.capabilities.subgroups_in_compute = true;
    device.capabilities.full_subgroups = true;
    device.capabilities.subgroup_size_range = (4, 4);
    device.capabilities.max_workgroup_subgroups = 64;
    let then: fn() -> DeviceError = match selector {
        "lost with the twin" => || DeviceError::DeviceLost("vkQueueSubmit"),
        "too small for the twin" => || DeviceError::Unsupported("room".into()),
        _ => return Ok(Box::new(device)),
    };
    Ok(Box::new(OneProgram { inner: device, first: RefCell::default(), then }))
}

fn job(text: &str, device: &str) -> Job {
    Job {
        id: "family/T".into(),
        text: text.into(),
        device: device.into(),
        instances: Some(20_000),
        seed: 1,
        plausible: vec![0, 1, 2],
        twin: true,
        patience: 0.2,
        ..Job::default()
    }
}

fn run(limits: &Limits, jobs: &[Job]) -> Vec<JobReport<Snapshot, JobResult>> {
    let mut reports = Vec::new();
    pool::run(
        limits,
        jobs.len(),
        PoolCallbacks {
            make_command: &mut || {
                let mut command = Command::new(std::env::current_exe().unwrap());
                command.arg("worker");
                command
            },
            make_job: &mut |number, _| jobs[number].clone(),
            on_event: &mut |event| {
                if let PoolEvent::Finished(report) = event {
                    reports.push(report);
                }
                ControlFlow::Continue(())
            },
        },
    );
    reports
}

fn patient_limits() -> Limits {
    Limits { silence: Duration::from_secs(60), ..Limits::DEFAULT }
}

fn answer(report: &JobReport<Snapshot, JobResult>) -> &JobResult {
    match &report.last.end {
        AttemptEnd::Answered(answer) => answer,
        other => panic!("{other:?}"),
    }
}

fn a_job_is_run_and_answered() {
    let reports = run(&patient_limits(), &[job(STORE_BUFFERING, "fine")]);
    let answer = answer(&reports[0]);
    assert_eq!(answer.failure, None);
    let seen = &answer.observation;
    assert!(seen.accounted_instances() >= 20_000);
    let weak = Outcome(vec![Value(0), Value(0)]);
    assert_eq!(seen.histogram.counts.keys().collect::<Vec<_>>(), [&weak]);
    assert_eq!(answer.device.as_ref().unwrap().name, "fake");
    assert_eq!(answer.stress.as_ref().unwrap().name, "swiftshader");
    assert_eq!(answer.twin, None);
}

fn an_unplanned_kernel_is_not_run() {
    let reports = run(&patient_limits(), &[Job { kernel: "planned".into(), ..job(STORE_BUFFERING, "fine") }]);
    let answer = answer(&reports[0]);
    assert!(matches!(answer.failure, Some(IncompleteReason::Internal(_))), "{:?}", answer.failure);
    assert_eq!(answer.observation.accounted_instances(), 0);
}

fn a_test_with_a_control_barrier_brings_its_twin() {
    let reports =
        run(&patient_limits(), &[job(BARRIER, "fine"), Job { twin: false, ..job(BARRIER, "fine") }]);
    assert_eq!(answer(&reports[0]).failure, None);
    let twin = answer(&reports[0]).twin.as_ref().unwrap();
    assert!(twin.accounted_instances() >= 5_000);
    assert_eq!(answer(&reports[1]).twin, None);
}

fn a_failed_twin_is_reported() {
    let reports =
        run(&patient_limits(), &[job(BARRIER, "lost with the twin"), job(BARRIER, "too small for the twin")]);
    for report in &reports {
        assert!(answer(report).observation.accounted_instances() >= 20_000);
        assert_eq!(answer(report).twin.as_ref().unwrap().accounted_instances(), 0);
    }
    let Some(IncompleteReason::DeviceLost(message)) = &answer(&reports[0]).failure else {
        panic!("{reports:?}")
    };
    assert!(message.starts_with("with its twin: ") && message.contains("vkQueueSubmit"), "{message}");
    // A twin without outcomes is not a failure.
    assert_eq!(answer(&reports[1]).failure, None);
}

fn each_failure_has_its_kind() {
    let failure = |job: Job| {
        let reports = run(&patient_limits(), &[job]);
        answer(&reports[0]).failure.clone().expect("a failure")
    };
    assert!(matches!(failure(job("VULKAN", "fine")), IncompleteReason::Test(_)));
    assert!(matches!(failure(job(STORE_BUFFERING, "missing")), IncompleteReason::NoDevice(_)));
    assert_eq!(failure(job(STORE_BUFFERING, "null")), IncompleteReason::NullDevice);
    // The device claims to execute, but its memory shows that no test ran.
    assert_eq!(failure(job(STORE_BUFFERING, "idle")), IncompleteReason::NullDevice);
    assert!(matches!(failure(job(STORE_BUFFERING, "lost")), IncompleteReason::DeviceLost(_)));
    assert!(matches!(failure(job(STORE_BUFFERING, "hangs")), IncompleteReason::TimedOut(_)));
    let needy = STORE_BUFFERING.replace("clause:", "needs: rayQuery\nclause:");
    assert_eq!(failure(job(&needy, "fine")), IncompleteReason::Lacks("rayQuery".into()));
}

fn observations_before_a_failure_are_reported() {
    for device in ["lost", "hangs"] {
        let reports = run(&patient_limits(), &[job(STORE_BUFFERING, device), job(STORE_BUFFERING, "fine")]);
        assert_eq!(answer(&reports[0]).observation.dispatches, 3);
        assert_eq!(answer(&reports[1]).failure, None, "the next job meets a fresh worker");
    }
}

/// The run ends in its second part, after a first part without the expected outcome.
fn a_failure_keeps_the_part_with_another_layout() {
    let (seconds, expected) = (Some(0.001), vec![Outcome(vec![Value(7); 2])]);
    let reports =
        run(&patient_limits(), &[Job { instances: None, seconds, expected, ..job(STORE_BUFFERING, "lost") }]);
    let answer = answer(&reports[0]);
    assert!(matches!(answer.failure, Some(IncompleteReason::DeviceLost(_))), "{answer:?}");
    let spread = answer.spread.as_ref().expect("a second part");
    let seen = answer.observation.accounted_instances();
    assert!(spread.first > 0 && spread.first + spread.second == seen, "{spread:?} of {seen}");
}

fn a_crash_keeps_the_last_snapshot() {
    let job = Job { instances: Some(u64::MAX), ..job(STORE_BUFFERING, "crashes") };
    let reports = run(&patient_limits(), &[job]);
    assert!(
        matches!(reports[0].last.end, AttemptEnd::Failed(pool::WorkerFailure::Crashed { .. })),
        "{reports:?}"
    );
    let snapshot = reports[0].last.snapshot.as_ref().expect("a snapshot");
    assert!(snapshot.observation.accounted_instances() > 0);
}

fn a_panic_is_a_crash_with_a_reason() {
    let reports = run(&patient_limits(), &[job(STORE_BUFFERING, "panics")]);
    let AttemptEnd::Failed(pool::WorkerFailure::Crashed { stderr, .. }) = &reports[0].last.end else {
        panic!("{:?}", reports[0])
    };
    assert!(stderr.contains("the driver found a bug in itself"), "{stderr}");
}

fn a_worker_that_hangs_in_the_driver_is_ended() {
    let limits = Limits { silence: Duration::from_millis(500), ..Limits::DEFAULT };
    let reports = run(&limits, &[job(STORE_BUFFERING, "deaf")]);
    assert!(
        matches!(reports[0].last.end, AttemptEnd::Failed(pool::WorkerFailure::TimedOut { .. })),
        "{reports:?}"
    );
}

/// A worker exits when its input ends, even if its driver hangs.
#[cfg(unix)]
fn a_worker_dies_with_its_parent() {
    use std::io::{Read, Write};
    use std::process::Stdio;

    let mut child = Command::new(std::env::current_exe().unwrap())
        .arg("worker")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let request = runner::wire::Request {
        version: runner::wire::VERSION,
        job: 0,
        payload: job(STORE_BUFFERING, "deaf"),
    };
    let mut stdin = child.stdin.take().unwrap();
    writeln!(stdin, "{}", serde_json::to_string(&request).unwrap()).unwrap();
    drop(stdin);
    // If it does not exit, this blocks until the test run is killed.
    let mut rest = Vec::new();
    child.stdout.take().unwrap().read_to_end(&mut rest).unwrap();
    assert!(child.wait().unwrap().success());
}

fn main() {
    if std::env::args().nth(1).as_deref() == Some("worker") {
        runner::worker::serve(&mut make_device).unwrap();
        return;
    }
    macro_rules! tests {
        ($($name:ident),* $(,)?) => { [$((stringify!($name), $name as fn())),*] };
    }
    let wanted = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let mut passed = 0;
    for (name, test) in tests![
        a_job_is_run_and_answered,
        an_unplanned_kernel_is_not_run,
        a_test_with_a_control_barrier_brings_its_twin,
        a_failed_twin_is_reported,
        each_failure_has_its_kind,
        observations_before_a_failure_are_reported,
        a_failure_keeps_the_part_with_another_layout,
        a_crash_keeps_the_last_snapshot,
        a_panic_is_a_crash_with_a_reason,
        a_worker_that_hangs_in_the_driver_is_ended,
        a_worker_dies_with_its_parent,
    ] {
        if wanted.as_ref().is_none_or(|wanted| name.contains(wanted.as_str())) {
            println!("test {name} ...");
            test();
            passed += 1;
        }
    }
    // If a test fails it panics, and this line is not printed.
    println!("test result: ok. {passed} passed; 0 failed");
}
