//! Runs each test on every driver, in child processes.
#![allow(dead_code, reason = "each test binary uses a part")]

pub mod kernels;

use std::io::{Read, Write};
use std::panic::Location;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use device::{DeviceOptions, DriverEnvironment, Selector, SoftwareDriver, VulkanDevice};
use plan::{
    BufferId, BufferMemory, Device, DeviceError, Kernel, KernelId, Plan, PlanStep, Prepared, Progress, Queue,
    QueueId,
};

/// Set in the child process that runs a test; its value is the driver.
const DRIVER_VARIABLE: &str = "VK_LITMUS_TEST_DRIVER";
/// No test takes that long unless it hangs.
const CHILD_TIMEOUT: Duration = Duration::from_secs(120);

pub const QUEUE: QueueId = QueueId(0);

/// Runs `body` on lavapipe and SwiftShader.
///
/// `test` is the name of the calling test. Each run is a child process that runs only this test, because the
/// loader reads the environment, and because a driver may hang or crash.
#[track_caller]
pub fn on_each_driver(test: &str, body: impl Fn(&Selector)) {
    run_in_each_child(test, DriverAtExit::Idle, body);
}

/// Like [`on_each_driver`], for a test with a submission that never ends.
#[track_caller]
pub fn on_each_busy_driver(test: &str, body: impl Fn(&Selector)) {
    run_in_each_child(test, DriverAtExit::Executes, body);
}

#[track_caller]
fn run_in_each_child(test: &str, at_end: DriverAtExit, body: impl Fn(&Selector)) {
    // The module is named like the file.
    let subject = Path::new(Location::caller().file()).file_stem().unwrap().to_str().unwrap();
    let test = &format!("{subject}::{test}");
    if let Some(driver) = std::env::var_os(DRIVER_VARIABLE) {
        body(&driver.to_str().unwrap().parse().unwrap());
        return;
    }
    let environment = DriverEnvironment::discover().unwrap();
    for driver in [SoftwareDriver::Lavapipe, SoftwareDriver::Swiftshader] {
        if environment.has_driver(driver) {
            run_in_child(test, driver, at_end, &environment.restrict_to(&[Selector::Software(driver)]));
        } else {
            report_skipped(&format!("{test} on {}: driver not installed", driver.name()));
        }
    }
}

/// Reports a skipped test, bypassing the output capture of the test harness.
pub fn report_skipped(what: &str) {
    let mut stderr = std::io::stderr();
    writeln!(stderr, "\nskipped: {what}").unwrap();
}

/// The state of a driver when the process of a test ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DriverAtExit {
    Idle,
    /// A submission is still executing. The driver may crash when its library is unloaded, after the test has
    /// passed.
    Executes,
}

fn run_in_child(test: &str, driver: SoftwareDriver, at_end: DriverAtExit, environment: &DriverEnvironment) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env(DRIVER_VARIABLE, driver.name())
        .envs(environment.loader_variables())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let deadline = Instant::now() + CHILD_TIMEOUT;
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > deadline {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("{test} on {} hangs", driver.name());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let (mut output, mut errors) = (String::new(), String::new());
    child.stdout.take().unwrap().read_to_string(&mut output).unwrap();
    child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    let status = child.wait().unwrap();
    let has_ended = status.success() || at_end == DriverAtExit::Executes && status.code().is_none();
    assert!(
        has_ended && output.contains("test result: ok. 1 passed"),
        "{test} on {}: {status}\n{output}\n{errors}",
        driver.name()
    );
    for line in errors.lines() {
        if let Some(what) = line.strip_prefix("skipped: ") {
            report_skipped(what);
        }
    }
}

/// Runs `body` with the device of each driver, once with its memory types and once with those of a discrete
/// GPU.
#[track_caller]
pub fn on_each_device(test: &str, body: impl Fn(&VulkanDevice)) {
    on_each_driver(test, |selector| {
        for staging in [false, true] {
            body(
                &VulkanDevice::open(selector, DeviceOptions { staging, ..DeviceOptions::default() }).unwrap(),
            );
        }
    });
}

/// Builds a plan on one queue step by step.
#[derive(Default)]
pub struct Builder(pub Plan);

impl Builder {
    pub fn new() -> Builder {
        Builder(Plan { queues: vec![Queue { family: 0 }], ..Plan::default() })
    }

    pub fn buffer(&mut self, words: u64, memory: BufferMemory) -> BufferId {
        self.0.add_buffer(words, memory, "test")
    }

    pub fn kernel(&mut self, kernel: Kernel) -> KernelId {
        self.0.add_kernel(kernel)
    }

    /// Adds a step and returns its index.
    pub fn step(&mut self, step: PlanStep) -> usize {
        self.0.steps.push(step);
        self.0.steps.len() - 1
    }

    pub fn fill(&mut self, buffer: BufferId, value: u32) -> usize {
        self.step(PlanStep::Fill { queue: QUEUE, buffer, value })
    }

    pub fn dispatch(
        &mut self,
        kernel: KernelId,
        workgroups: u32,
        bindings: &[BufferId],
        words: &[u32],
    ) -> usize {
        self.step(PlanStep::Dispatch {
            queue: QUEUE,
            kernel,
            workgroups,
            bindings: bindings.to_vec(),
            push_constants: bytes(words),
        })
    }

    pub fn barrier(&mut self) -> usize {
        self.step(PlanStep::Barrier { queue: QUEUE })
    }

    pub fn expose(&mut self, buffer: BufferId) -> usize {
        self.step(PlanStep::ToHost { queue: QUEUE, buffer })
    }

    pub fn prepare<'d>(&self, device: &'d VulkanDevice) -> Box<dyn Prepared + 'd> {
        device.prepare(&self.0).unwrap()
    }
}

/// Returns words as push constants.
pub fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Submits and waits for the end.
pub fn submit_and_finish(prepared: &mut dyn Prepared) {
    prepared.submit().unwrap();
    finish(prepared);
}

/// Waits for the end.
pub fn finish(prepared: &mut dyn Prepared) {
    assert!(matches!(prepared.poll(CHILD_TIMEOUT), Ok(Progress::Finished { .. })));
}

/// Returns the error of preparing a plan that must be refused.
pub fn expect_refused(device: &VulkanDevice, plan: &Plan) -> DeviceError {
    match device.prepare(plan) {
        Ok(_) => panic!("the plan was accepted"),
        Err(error) => error,
    }
}
