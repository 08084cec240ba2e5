//! Worker processes on lavapipe and SwiftShader, from the text of a test to its histogram. The test binary is
//! also the worker. A missing driver prints a skip.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a failure is the report")]

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use device::{DeviceOptions, DriverEnvironment, Selector, SoftwareDriver, VulkanDevice};
use litmus::{Outcome, Value};
use plan::{Capabilities, Device, DeviceError, Identity, Plan, Prepared};
use runner::pool::{self, AttemptEnd, JobReport, Limits, PoolCallbacks, PoolEvent};
use runner::wire::{IncompleteReason, Job, JobResult, Snapshot};
use runner::{CountingPlace, Join, Pairing, Stress};

const SOFTWARE: [SoftwareDriver; 2] = [SoftwareDriver::Lavapipe, SoftwareDriver::Swiftshader];

/// A driver whose memory the host cannot map, like that of a discrete GPU.
struct Discrete {
    inner: VulkanDevice,
    capabilities: Capabilities,
}

impl Device for Discrete {
    fn identity(&self) -> &Identity {
        self.inner.identity()
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn prepare(&self, plan: &Plan) -> Result<Box<dyn Prepared + '_>, DeviceError> {
        self.inner.prepare(plan)
    }

    fn validation_messages(&self) -> Vec<String> {
        self.inner.validation_messages()
    }
}

/// Opens `lavapipe`, `discrete:lavapipe`, `validated:lavapipe` and similar names.
fn make_device(selector: &str) -> Result<Box<dyn Device>, DeviceError> {
    let (kind, name) = selector.split_once(':').unwrap_or(("", selector));
    let selector: Selector = name.parse().unwrap();
    let options = DeviceOptions { validation: !kind.is_empty(), staging: kind == "discrete" };
    let inner = VulkanDevice::open(&selector, options)?;
    if kind != "discrete" {
        return Ok(Box::new(inner));
    }
    let capabilities = Capabilities { is_cpu: false, ..inner.capabilities().clone() };
    Ok(Box::new(Discrete { inner, capabilities }))
}

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../litmus/corpus")
}

fn text(path: &str) -> String {
    std::fs::read_to_string(corpus().join(path)).unwrap()
}

fn job(text: &str, device: &str, instances: u64) -> Job {
    Job {
        id: "T".into(),
        text: text.into(),
        device: device.into(),
        instances: Some(instances),
        seed: 11,
        twin: true,
        patience: 30.0,
        ..Job::default()
    }
}

/// Runs jobs until all are done or `stop` returns true.
fn run(jobs: &[Job], stop: &mut dyn FnMut(&Snapshot) -> bool) -> Vec<JobReport<Snapshot, JobResult>> {
    let environment = DriverEnvironment::discover().unwrap();
    let mut reports = Vec::new();
    pool::run(
        &Limits { silence: Duration::from_secs(120), ..Limits::DEFAULT },
        jobs.len(),
        PoolCallbacks {
            make_command: &mut || {
                let mut command = Command::new(std::env::current_exe().unwrap());
                command.arg("worker").envs(environment.loader_variables());
                command
            },
            make_job: &mut |number, _| jobs[number].clone(),
            on_event: &mut |event| match event {
                PoolEvent::Progress { snapshot, .. } if stop(snapshot) => ControlFlow::Break(()),
                PoolEvent::Progress { .. } | PoolEvent::Retried(_) => ControlFlow::Continue(()),
                PoolEvent::Finished(report) => {
                    reports.push(report);
                    ControlFlow::Continue(())
                }
            },
        },
    );
    reports
}

fn answer(report: &JobReport<Snapshot, JobResult>) -> &JobResult {
    match &report.last.end {
        AttemptEnd::Answered(answer) => answer,
        other => panic!("{other:?}"),
    }
}

/// Checks that every instance was executed and completely written.
fn assert_sound(context: &str, answer: &JobResult, instances: u64) {
    assert_eq!(answer.failure, None, "{context}");
    let seen = &answer.observation;
    assert!(seen.accounted_instances() >= instances, "{context}: {seen:?}");
    assert_eq!((seen.discarded_dispatches, seen.not_executed), (0, 0), "{context}");
    assert!(seen.unexpected.is_empty(), "{context}: {:?}", seen.unexpected);
    assert_eq!(answer.validation, Vec::<String>::new(), "{context}");
}

fn store_buffering_is_accounted_for(driver: &str) {
    let text = text("sb/SB+rlx-rlx.litmus");
    let mut jobs = vec![job(&text, driver, 300_000)];
    let gpu = Stress::preset("gpu").unwrap();
    jobs.push(Job { stress: Some(gpu.clone()), ..job(&text, &format!("discrete:{driver}"), 300_000) });
    jobs.push(Job {
        stress: Some(Stress { pairing: Pairing::Contiguous, in_flight: 1, ..gpu }),
        ..job(&text, &format!("validated:{driver}"), 2_000)
    });
    for (job, report) in jobs.iter().zip(run(&jobs, &mut |_| false)) {
        let answer = answer(&report);
        if let Some(IncompleteReason::Lacks(what)) = &answer.failure
            && job.device.contains(':')
        {
            println!("skipped: {} lacks {what}", job.device);
            continue;
        }
        assert_sound(&job.device, answer, job.instances.unwrap());
        let values = BTreeSet::from([Value(0), Value(1)]);
        for Outcome(outcome) in answer.observation.histogram.counts.keys() {
            assert!(outcome.len() == 2 && outcome.iter().all(|v| values.contains(v)), "{outcome:?}");
        }
        assert_eq!(answer.device.as_ref().unwrap().name, driver);
    }
}

/// Memory stress of every kind does not affect counts, causes no validation messages, and stays within the
/// loop budget.
fn memory_stress_is_accounted_for(driver: &str) {
    let everything = Stress::from_toml("everything.toml", include_str!("everything.toml")).unwrap();
    // Both drivers have one queue.
    let one_queue = Capabilities {
        max_workgroups: 65_535,
        max_workgroup_invocations: 256,
        compute_queues: vec![1],
        ..Capabilities::default()
    };
    let (stress, changes) = everything.reduced_to_limits(&one_queue);
    assert_eq!(changes, ["`memory_stress.queue_workgroups` to [0, 0] (it has one queue)"]);
    let asking = Job { stress: Some(everything), ..job(&text("sb/SB+rlx-rlx.litmus"), driver, 100) };
    let lack = IncompleteReason::Lacks("2 compute queues in one queue family".into());
    assert_eq!(answer(&run(&[asking], &mut |_| false)[0]).failure, Some(lack));
    let files = ["sb/SB+rlx-rlx", "barrier/MP+cbar", "guard/MP+rel-acq.poll"];
    let mut jobs = Vec::new();
    // A soak runs every combination. Otherwise each pair of a file, a device and a variant occurs once.
    let share = if std::env::var_os("VK_LITMUS_SOAK").is_some() { 1 } else { files.len() };
    for (index, file) in files.into_iter().enumerate() {
        let devices = [driver.to_owned(), format!("validated:{driver}"), format!("discrete:{driver}")];
        for (number, device) in devices.iter().enumerate() {
            for (place, variant) in ["", "split", "glsl450", "vertex", "fragment"].into_iter().enumerate() {
                if (index + number + place).is_multiple_of(share) {
                    let job = job(&text(&format!("{file}.litmus")), device, 2_000);
                    jobs.push(Job { stress: Some(stress.clone()), variant: variant.into(), ..job });
                }
            }
        }
    }
    for (job, report) in jobs.iter().zip(run(&jobs, &mut |_| false)) {
        let answer = answer(&report);
        let context = format!("{}@{} on {}", job.text.lines().next().unwrap(), job.variant, job.device);
        match &answer.failure {
            Some(IncompleteReason::NotPlaceable(_)) => {}
            Some(IncompleteReason::Lacks(what)) if job.device.contains(':') => {
                println!("skipped: {context} lacks {what}")
            }
            _ => assert_sound(&context, answer, 2_000),
        }
    }
}

/// With two processors, both reads may miss the writes. The run continues until that happens.
fn store_buffering_shows_its_weak_outcome(driver: &str) {
    if std::thread::available_parallelism().unwrap().get() < 2 {
        println!("skipped: one processor");
        return;
    }
    let weak = Outcome(vec![Value(0); 2]);
    let mut seen = false;
    let job = Job { seconds: Some(60.0), ..job(&text("sb/SB+rlx-rlx.litmus"), driver, u64::MAX) };
    let reports = run(&[job], &mut |snapshot| {
        seen |= snapshot.observation.histogram.counts.contains_key(&weak);
        seen
    });
    assert!(seen, "{reports:?}");
}

fn a_control_barrier_holds_and_its_twin_runs(driver: &str) {
    let reports = run(&[job(&text("barrier/MP+cbar.litmus"), driver, 50_000)], &mut |_| false);
    let answer = answer(&reports[0]);
    assert_sound(driver, answer, 50_000);
    let twin = answer.twin.as_ref().unwrap();
    assert!(twin.accounted_instances() >= 12_500 && twin.unexpected.is_empty(), "{twin:?}");
}

/// System-synchronizes-with orders threads with every mechanism of the API and with copied memory: the later
/// thread reads the writes of the earlier one, and never the converse.
fn every_mechanism_orders_phases(driver: &str) {
    let cases = [
        ("ssw/MP+ssw.litmus", &[1][..]),
        ("ssw/WAR+ssw.litmus", &[0]),
        ("ssw/WAW+ssw.litmus", &[2]),
        ("ssw/MP+ssw.alias.litmus", &[1]),
    ];
    let mut jobs = Vec::new();
    let mut expected = Vec::new();
    // A soak runs every combination. Otherwise each mechanism runs with two of the tests.
    let share = if std::env::var_os("VK_LITMUS_SOAK").is_some() { 1 } else { 2 };
    for (number, (file, values)) in cases.into_iter().enumerate() {
        // None of these tests has API calls.
        let ways = Join::ALL.into_iter().filter(|join| *join != Join::Calls).map(Join::name);
        for (index, variant) in ways.chain(["", "split", "visible", "cached.fence"]).enumerate() {
            if !(number + index).is_multiple_of(share) {
                continue;
            }
            // In mapped and unmapped memory in turn.
            let kind = if (number / 2 + index).is_multiple_of(2) { "" } else { "discrete:" };
            jobs.push(Job { variant: variant.into(), ..job(&text(file), &format!("{kind}{driver}"), 1_000) });
            expected.push((file, variant, values));
        }
    }
    for ((file, variant, values), report) in expected.iter().zip(run(&jobs, &mut |_| false)) {
        let answer = answer(&report);
        let context = format!("{file}@{variant} on {driver}");
        assert_sound(&context, answer, 1_000);
        assert!(answer.memory.as_deref().is_some_and(|memory| memory.contains("DEVICE_LOCAL")), "{context}");
        let seen = &answer.observation;
        let outcomes: Vec<Vec<u64>> = seen
            .histogram
            .counts
            .keys()
            .map(|outcome| outcome.0.iter().map(|value| value.0).collect())
            .collect();
        assert_eq!(outcomes, [values.to_vec()], "{context}");
    }
}

/// The error names the missing requirement of a variant.
fn missing_requirements_of_variants_are_named(driver: &str) {
    let cases = [
        ("nonlocal", "memory type without DEVICE_LOCAL"),
        ("noncoherent", "memory type HOST_VISIBLE without HOST_COHERENT"),
    ];
    let text = text("ssw/MP+ssw.litmus");
    let jobs: Vec<Job> = cases
        .iter()
        .map(|(variant, _)| Job { variant: (*variant).into(), ..job(&text, driver, 100) })
        .collect();
    for ((variant, lack), report) in cases.iter().zip(run(&jobs, &mut |_| false)) {
        let expected = Some(IncompleteReason::Lacks((*lack).into()));
        assert_eq!(answer(&report).failure, expected, "{variant} on {driver}");
    }
}

/// Producers and consumers in separate pipelines execute all instances.
fn split_roles_are_accounted_for(driver: &str) {
    let files = ["mp/MP+rel-acq.litmus", "iriw/IRIW+rlx.litmus", "barrier/ISA2+cbar-rel-acq.litmus"];
    let jobs: Vec<Job> = files
        .iter()
        .map(|file| Job { variant: "split".into(), ..job(&text(file), driver, 50_000) })
        .collect();
    for (file, report) in files.iter().zip(run(&jobs, &mut |_| false)) {
        assert_sound(&format!("{file} on {driver}"), answer(&report), 50_000);
    }
}

/// Device and host count every dispatch, with outcomes in registers, memory, images and words of several
/// sizes, in mapped and unmapped memory. Different counts fail the run.
fn device_and_host_counts_agree(driver: &str) {
    let files = [
        "sb/SB+rlx-rlx.litmus",
        "iriw/IRIW+rlx.litmus",
        "ssw/MP+ssw.litmus",
        "ssw/WAW+ssw.litmus",
        "barrier/MP+cbar.litmus",
        "storage/MP+rel-acq.u64-payload-sc2-flag.litmus",
        "storage/SB+rlx-rlx.sc2.litmus",
    ];
    let mut jobs = Vec::new();
    for (kind, preset) in [("", driver), ("discrete:", "gpu"), ("validated:", driver)] {
        let stress = Stress { classify: CountingPlace::Both, ..Stress::preset(preset).unwrap() };
        for file in files {
            let plausible = vec![0, 1, 2];
            let instances = if kind == "validated:" { 2_000 } else { 20_000 };
            let device = format!("{kind}{driver}");
            jobs.push(Job {
                stress: Some(stress.clone()),
                plausible,
                ..job(&text(file), &device, instances)
            });
        }
    }
    let mut counted = 0;
    for (job, report) in jobs.iter().zip(run(&jobs, &mut |_| false)) {
        let answer = answer(&report);
        if let Some(IncompleteReason::Lacks(_)) = &answer.failure {
            continue;
        }
        assert_sound(&format!("{} on {}", job.text, job.device), answer, job.instances.unwrap());
        assert_eq!(answer.counted_by_host, None, "{}", job.text);
        counted += 1;
    }
    println!("{driver}: {counted} of {} runs were counted by device and host", jobs.len());
    assert!(counted >= 10);
}

/// Vertices and fragments execute all instances: in one draw, in several draws with each mechanism, split,
/// and counted by host, by device and by both. The validation layers report nothing.
fn stages_are_accounted_for(driver: &str) {
    let plain = [
        "mp/MP+rel-acq.litmus",
        "iriw/IRIW+rlx.litmus",
        "storage/SB+rlx-rlx.sc2.litmus",
        "spin/MP+rel-acq.spin.litmus",
    ];
    let ways = ["", "barrier", "event", "submit", "semaphore", "timeline", "fence"];
    let mut jobs = Vec::new();
    // A soak runs every combination. Otherwise each runs in one of the two stages.
    let share = if std::env::var_os("VK_LITMUS_SOAK").is_some() { 1 } else { 2 };
    for (place, stage) in ["vertex", "fragment"].into_iter().enumerate() {
        let mut add = |kind: &str, file: &str, variant: String, stress: Option<Stress>| {
            let device = format!("{kind}{driver}");
            let instances = 2_000;
            let plausible = vec![0, 1, 2];
            jobs.push(Job { variant, stress, plausible, ..job(&text(file), &device, instances) });
        };
        for (number, file) in plain.into_iter().enumerate() {
            let both = |preset| Stress { classify: CountingPlace::Both, ..Stress::preset(preset).unwrap() };
            let devices = [("", None), ("discrete:", Some(both("gpu"))), ("validated:", Some(both(driver)))];
            for (index, (kind, stress)) in devices.into_iter().enumerate() {
                if (place + number + index).is_multiple_of(share) {
                    add(kind, file, stage.into(), stress);
                }
            }
        }
        add("validated:", "mp/MP+rel-acq.litmus", format!("split.{stage}"), None);
        for way in ways.into_iter().skip(place % share).step_by(share) {
            add("validated:", "ssw/MP+ssw.litmus", format!("{way}.{stage}"), None);
        }
    }
    for (job, report) in jobs.iter().zip(run(&jobs, &mut |_| false)) {
        let context = format!("{} @{} on {}", job.text, job.variant, job.device);
        let answer = answer(&report);
        assert_sound(&context, answer, job.instances.unwrap());
        assert_eq!(
            answer.observation.repeated, 0,
            "{context}: points and their fragments are shaded once here"
        );
        // On a busy machine, invocations of other stages may also not overlap.
        let is_serial = driver == "lavapipe" && job.variant.ends_with("vertex");
        assert!(answer.serial_stage || !is_serial, "{context}");
    }
}

/// Runs every corpus test that has a program, and checks that all instances are accounted for.
fn the_corpus_is_accounted_for(driver: &str) {
    let mut files = Vec::new();
    let mut folders = vec![corpus()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "litmus") {
                files.push(path);
            }
        }
    }
    files.sort();
    // A soak runs all of them; another test runs the quick suite in full.
    let share = if std::env::var_os("VK_LITMUS_SOAK").is_some() { 1 } else { 36 };
    let files: Vec<PathBuf> = files.into_iter().step_by(share).collect();
    assert!(files.len() > 20);
    let jobs: Vec<Job> =
        files.iter().map(|file| job(&std::fs::read_to_string(file).unwrap(), driver, 2_000)).collect();
    let mut ran = 0;
    for (file, report) in files.iter().zip(run(&jobs, &mut |_| false)) {
        let answer = answer(&report);
        match &answer.failure {
            Some(IncompleteReason::NotPlaceable(_) | IncompleteReason::Lacks(_)) => {}
            _ => {
                assert_sound(&file.display().to_string(), answer, 2_000);
                ran += 1;
            }
        }
    }
    println!("{driver}: {ran} of {} tests ran", files.len());
    assert!(ran > 12);
}

/// API calls run unchanged: no forbidden outcome occurs, and the validation layers report nothing for
/// race-free tests. Missing queues are named by number, and missing memory by its properties.
fn calls_run_as_they_stand(driver: &str) {
    let mut jobs = Vec::new();
    let mut tests = Vec::new();
    let share = if std::env::var_os("VK_LITMUS_SOAK").is_some() { 1 } else { 5 };
    let is_call = |id: &str| id.starts_with("families/") || id.starts_with("transfer/");
    let entries = litmus::corpus::tests().into_iter().filter(|entry| is_call(&entry.id));
    for entry in entries.step_by(share) {
        let test = litmus::parse(entry.text, &entry.id).unwrap();
        let forbidden = entry.text.contains("expect: vulkan forbidden free");
        for kind in ["", "discrete:", "validated:"] {
            // The validation layers report the races.
            if forbidden || kind.is_empty() {
                let device = format!("{kind}{driver}");
                jobs.push(Job { variant: "calls".into(), ..job(entry.text, &device, 1_000) });
                tests.push((test.clone(), forbidden));
            }
        }
    }
    let (mut ran, mut lacks) = (0, BTreeMap::new());
    for (((test, forbidden), job), report) in tests.iter().zip(&jobs).zip(run(&jobs, &mut |_| false)) {
        let answer = answer(&report);
        let context = format!("{} on {}", test.name, job.device);
        if let Some(IncompleteReason::Lacks(what)) = &answer.failure {
            *lacks.entry(what.clone()).or_insert(0) += 1;
            continue;
        }
        assert_sound(&context, answer, 1_000);
        ran += 1;
        let condition = &test.question.as_ref().unwrap().condition;
        let seen = &answer.observation;
        let meets = |outcome: &litmus::Outcome| outcome.meets_condition(test, &test.observables(), condition);
        assert!(!forbidden || !seen.histogram.counts.keys().any(meets), "{context}");
    }
    println!("{driver}: {ran} of {} ran, {lacks:?}", jobs.len());
    let known = |what: &String| {
        [
            "2 compute queues in one queue family",
            "2 queue families",
            "memory type HOST_VISIBLE without HOST_COHERENT",
            "vulkan-validationlayers",
        ]
        .iter()
        .any(|known| what.contains(known))
    };
    assert!(ran >= 12 && lacks.keys().all(known), "{ran} ran, {lacks:?}");
}

/// Host threads run concurrently with the device, or the missing memory is named. The validation layers
/// report nothing.
fn hosts_are_accounted_for(driver: &str) {
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(corpus().join("host")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut jobs = Vec::new();
    // A soak runs all of them.
    let share = if std::env::var_os("VK_LITMUS_SOAK").is_some() { 1 } else { 2 };
    for file in files.iter().step_by(share) {
        let text = std::fs::read_to_string(file).unwrap();
        for device in [driver.to_owned(), format!("validated:{driver}")] {
            jobs.push(job(&text, &device, 2_000));
        }
    }
    let mut lacks = BTreeMap::new();
    for (job, report) in jobs.iter().zip(run(&jobs, &mut |_| false)) {
        let answer = answer(&report);
        let context = format!("{} on {}", job.text.lines().next().unwrap(), job.device);
        match &answer.failure {
            Some(IncompleteReason::Lacks(what)) => *lacks.entry(what.clone()).or_insert(0) += 1,
            _ => assert_sound(&context, answer, 2_000),
        }
    }
    println!("{driver}: {} of {} ran, {lacks:?}", jobs.len() - lacks.values().sum::<usize>(), jobs.len());
    lacks.retain(|what, _| !what.contains("vulkan-validationlayers"));
    let memory = "memory type HOST_VISIBLE without HOST_COHERENT";
    assert!(lacks.keys().all(|what| what == memory), "{lacks:?}");
}

fn main() {
    if std::env::args().nth(1).as_deref() == Some("worker") {
        runner::worker::serve(&mut make_device).unwrap();
        return;
    }
    macro_rules! tests {
        ($($name:ident),* $(,)?) => { [$((stringify!($name), $name as fn(&str))),*] };
    }
    let environment = DriverEnvironment::discover().unwrap();
    let wanted = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let mut passed = 0;
    for (name, test) in tests![
        store_buffering_is_accounted_for,
        store_buffering_shows_its_weak_outcome,
        a_control_barrier_holds_and_its_twin_runs,
        memory_stress_is_accounted_for,
        every_mechanism_orders_phases,
        missing_requirements_of_variants_are_named,
        split_roles_are_accounted_for,
        device_and_host_counts_agree,
        stages_are_accounted_for,
        hosts_are_accounted_for,
        calls_run_as_they_stand,
        the_corpus_is_accounted_for,
    ] {
        for driver in SOFTWARE {
            if wanted.as_ref().is_some_and(|wanted| !name.contains(wanted.as_str())) {
                continue;
            }
            if environment.has_driver(driver) {
                println!("test {name} on {} ...", driver.name());
                test(driver.name());
                passed += 1;
            } else {
                println!("test {name} on {} ... skipped: not installed", driver.name());
            }
        }
    }
    // If a test fails it panics, and this line is not printed.
    println!("test result: ok. {passed} passed; 0 failed");
}
