//! Checks that a device executes kernels at all: before its first test, a kernel computes an answer from a
//! word.
//!
//! A driver with a stub kernel device signals its fences and leaves memory unchanged. Some tests would report
//! that as a violation.

use std::time::Duration;

use plan::{
    Buffer, BufferId, BufferMemory, Device, Kernel, KernelId, Plan, PlanStep, Progress, Queue, QueueId,
};
use shaders::canary::{BYTES, WORDS, answered, kernel};

use crate::error::Cause;

const STORE: BufferId = BufferId(0);
const BACK: BufferId = BufferId(1);
const QUEUE: QueueId = QueueId(0);
/// The input of the kernel, a value that a driver is unlikely to produce.
const ASKED: u32 = 0x5ca1_ab1e;

/// Runs the kernel and compares its answer.
///
/// # Errors
/// [`Cause::NullDevice`] if the answer is wrong. [`Cause::TimedOut`] if the submission does not end; the
/// device must then not be destroyed. Errors of the device.
pub fn check(device: &dyn Device, patience: Duration) -> Result<(), Cause> {
    let mut prepared = device.prepare(&plan())?;
    prepared.submit()?;
    match prepared.poll(patience)? {
        Progress::Finished { .. } => {}
        Progress::NotExecuted => return Err(Cause::NullDevice),
        Progress::Running => {
            // Destroying resources of a hanging submission would block forever.
            std::mem::forget(prepared);
            return Err(Cause::TimedOut { after: patience });
        }
    }
    if prepared.read(BACK)?.ends_with(&answered(ASKED)) { Ok(()) } else { Err(Cause::NullDevice) }
}

fn plan() -> Plan {
    let barrier = PlanStep::Barrier { queue: QUEUE };
    Plan {
        kernels: vec![Kernel {
            words: kernel(),
            bindings: 1,
            push_constant_bytes: BYTES,
            ..Kernel::default()
        }],
        buffers: vec![
            Buffer { words: WORDS, memory: BufferMemory::Device, name: "canary" },
            Buffer { words: WORDS, memory: BufferMemory::Readback, name: "canary for the host" },
        ],
        queues: vec![Queue { family: 0 }],
        steps: vec![
            PlanStep::Fill { queue: QUEUE, buffer: STORE, value: 0 },
            PlanStep::Fill { queue: QUEUE, buffer: BACK, value: 0 },
            barrier.clone(),
            PlanStep::Dispatch {
                queue: QUEUE,
                kernel: KernelId(0),
                workgroups: 1,
                bindings: vec![STORE],
                push_constants: ASKED.to_le_bytes().to_vec(),
            },
            barrier,
            PlanStep::Copy { queue: QUEUE, from: STORE, to: BACK },
            PlanStep::ToHost { queue: QUEUE, buffer: BACK },
        ],
        ..Plan::default()
    }
}
