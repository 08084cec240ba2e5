//! Checks that a device executes kernels at all: before its first test, a kernel computes an answer from a
//! word.
//!
//! A driver with a stub kernel device signals its fences and leaves memory unchanged. Some tests would report
//! that as a violation.

use std::time::{Duration, Instant};

use plan::{
    Buffer, BufferId, BufferMemory, Device, Kernel, KernelId, Plan, PlanStep, Prepared, Progress, Queue,
    QueueId,
};
use shaders::canary::{PUSH_CONSTANT_BYTES, WORDS, expected_answer, kernel};

use crate::error::Cause;

const STORE: BufferId = BufferId(0);
const READBACK: BufferId = BufferId(1);
const QUEUE: QueueId = QueueId(0);
/// The input of the kernel, a value that a driver is unlikely to produce.
const INPUT: u32 = 0x5ca1_ab1e;

/// Returns an error unless the device computes the answer of the kernel.
///
/// # Errors
/// [`Cause::NullDevice`] if the answer is wrong. [`Cause::TimedOut`] if the submission does not end; the
/// device must then not be destroyed. Errors of the device.
pub fn check(device: &dyn Device, timeout: Duration) -> Result<(), Cause> {
    let mut prepared = submit_once(device, &build_plan(), timeout)?;
    if prepared.read(READBACK)?.ends_with(&expected_answer(INPUT)) { Ok(()) } else { Err(Cause::NullDevice) }
}

/// Prepares a plan, submits it and waits for its end.
///
/// # Errors
/// As [`submit_and_wait`]. A submission that may still execute is never destroyed: that would block forever.
pub(crate) fn submit_once<'d>(
    device: &'d dyn Device,
    plan: &Plan,
    timeout: Duration,
) -> Result<Box<dyn Prepared + 'd>, Cause> {
    let mut prepared = device.prepare(plan)?;
    match submit_and_wait(prepared.as_mut(), timeout) {
        Ok(()) => Ok(prepared),
        Err(cause) => {
            if matches!(cause, Cause::TimedOut { .. }) {
                std::mem::forget(prepared);
            }
            Err(cause)
        }
    }
}

/// Submits a prepared plan and waits for its end.
///
/// # Errors
/// [`Cause::NullDevice`] if the device executes nothing, [`Cause::TimedOut`] if the submission does not end,
/// errors of the device.
pub(crate) fn submit_and_wait(prepared: &mut dyn Prepared, timeout: Duration) -> Result<(), Cause> {
    prepared.submit()?;
    let since = Instant::now();
    loop {
        match prepared.poll(timeout.saturating_sub(since.elapsed()))? {
            Progress::Finished { .. } => return Ok(()),
            Progress::NotExecuted => return Err(Cause::NullDevice),
            Progress::Running if since.elapsed() >= timeout => {
                return Err(Cause::TimedOut { after: since.elapsed() });
            }
            Progress::Running => {}
        }
    }
}

fn build_plan() -> Plan {
    let barrier = PlanStep::Barrier { queue: QUEUE };
    Plan {
        kernels: vec![Kernel {
            words: kernel(),
            bindings: 1,
            push_constant_bytes: PUSH_CONSTANT_BYTES,
            ..Kernel::default()
        }],
        buffers: vec![
            Buffer { words: WORDS, memory: BufferMemory::Device, name: "canary" },
            Buffer { words: WORDS, memory: BufferMemory::Readback, name: "canary for the host" },
        ],
        queues: vec![Queue { family: 0 }],
        steps: vec![
            PlanStep::Fill { queue: QUEUE, buffer: STORE, value: 0 },
            PlanStep::Fill { queue: QUEUE, buffer: READBACK, value: 0 },
            barrier.clone(),
            PlanStep::Dispatch {
                queue: QUEUE,
                kernel: KernelId(0),
                workgroups: 1,
                bindings: vec![STORE],
                push_constants: INPUT.to_le_bytes().to_vec(),
            },
            barrier,
            PlanStep::Copy { queue: QUEUE, from: STORE, to: READBACK },
            PlanStep::ToHost { queue: QUEUE, buffer: READBACK },
        ],
        ..Plan::default()
    }
}
