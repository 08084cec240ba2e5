//! The device interface on lavapipe and on SwiftShader.

#![expect(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod support;

use std::time::Duration;

use device::{Options, VulkanDevice};
use plan::{Buffer, BufferId, Device, DeviceError, Kernel, Memory, Plan, Progress, Queue, QueueId, Step};

use support::kernels;
use support::{Builder, QUEUE, bytes, finish, on_each_device, on_each_driver, refused, run};

const MEMORIES: [Memory; 3] = [Memory::Device, Memory::Readback, Memory::Shared];

#[test]
fn kernel_writes_and_host_reads() {
    on_each_device("kernel_writes_and_host_reads", |device| {
        for memory in MEMORIES {
            let mut b = Builder::new();
            let buffer = b.buffer(256, memory);
            let kernel = b.kernel(kernels::linear(64));
            b.fill(buffer, u32::MAX);
            b.barrier();
            b.dispatch(kernel, 3, &[buffer], &[3, 5]);
            b.to_host(buffer);
            let mut prepared = b.prepare(device);
            run(&mut *prepared);
            let expected: Vec<u32> = (0..256).map(|i| if i < 192 { i * 3 + 5 } else { u32::MAX }).collect();
            assert_eq!(prepared.read(buffer).unwrap(), expected, "{memory:?}");
        }
    });
}
