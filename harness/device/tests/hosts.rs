//! Host threads on lavapipe and SwiftShader: writes, submissions, waits, signals and reads.

#![expect(clippy::unwrap_used, reason = "tests")]

use crate::support;

use std::time::Duration;

use device::{DeviceOptions, VulkanDevice};
use plan::{
    AccessMask, BatchStart, BufferId, BufferMemory, DependencyKind, Device, DeviceError, HostAct, HostLayout,
    HostOperation, HostPlace, HostRelation, HostReport, HostThread, HostValue, Hosts, MemoryKind, Order,
    PlanStep, Progress, Semaphore, SemaphoreId, StageMask,
};

use support::{
    Builder, QUEUE, expect_refused, kernels, on_each_device, on_each_driver, report_skipped,
    submit_and_finish,
};

const INSTANCES: u32 = 32;
const SEMAPHORE: SemaphoreId = SemaphoreId(0);
const LAYOUT: HostLayout = HostLayout { instances: INSTANCES, stride: 2, spacing: 1, done: 77, poison: 66 };

fn place(storage: u32) -> HostPlace {
    HostPlace { storage, name: storage }
}

fn load(register: u32, storage: u32, order: Option<Order>) -> HostOperation {
    HostOperation::Load { register, place: place(storage), order }
}

fn store(storage: u32, value: HostValue, order: Option<Order>) -> HostOperation {
    HostOperation::Store { place: place(storage), value, order }
}

/// Returns a thread with two registers that reports both and then ends.
fn thread(acts: Vec<HostAct>) -> HostThread {
    let reports = vec![HostReport::Register(0), HostReport::Done, HostReport::Register(1)];
    HostThread { acts, registers: 2, reports }
}

fn dependency(available: AccessMask, visible: AccessMask) -> PlanStep {
    let stages = (
        StageMask::COMPUTE.with(StageMask::for_accesses(available)),
        StageMask::COMPUTE.with(StageMask::for_accesses(visible)),
    );
    PlanStep::Dependency { queue: QUEUE, kind: DependencyKind::Barrier, stages, available, visible }
}

/// Returns a plan whose batches each increment all words, which start at 0.
///
/// Held batches wait for a timeline semaphore that a thread signals.
fn incrementing_plan(threads: Vec<HostThread>, batches: &[(BatchStart, bool)]) -> Builder {
    let mut b = Builder::new();
    let buffer =
        b.buffer(2 * u64::from(INSTANCES), BufferMemory::Mapped(MemoryKind::from_name("coherent").unwrap()));
    let back = b.buffer(2 * u64::from(INSTANCES), BufferMemory::Readback);
    let kernel = b.kernel(kernels::increment_kernel(2 * INSTANCES));
    b.fill(buffer, 0);
    b.barrier();
    b.step(PlanStep::Hosts { queue: QUEUE });
    for (number, (_, held)) in (0..).zip(batches) {
        b.step(PlanStep::Batch { queue: QUEUE, number });
        if *held {
            b.0.semaphores = vec![Semaphore::Timeline];
            b.step(PlanStep::Wait { queue: QUEUE, semaphore: SEMAPHORE, value: 2 });
        }
        b.step(dependency(
            AccessMask::SHADER_WRITE.with(AccessMask::HOST_WRITE),
            AccessMask::SHADER_READ.with(AccessMask::SHADER_WRITE),
        ));
        b.dispatch(kernel, 1, &[buffer, buffer], &[]);
        b.step(dependency(AccessMask::SHADER_WRITE, AccessMask::HOST_READ.with(AccessMask::HOST_WRITE)));
    }
    b.step(PlanStep::HostsEnd { queue: QUEUE });
    b.barrier();
    b.step(PlanStep::Copy { queue: QUEUE, from: buffer, to: back });
    b.expose(back);
    let batches = batches.iter().map(|(start, _)| *start).collect();
    b.0.hosts = Some(Hosts { threads, buffer, batches, is_in_order: true });
    b
}

/// Returns the reports of threads that report the same for each instance.
fn expected_reports(threads: &[(u32, u32)]) -> Vec<u32> {
    let row = |word| std::iter::repeat_n(word, INSTANCES as usize);
    threads
        .iter()
        .flat_map(|(first, second)| row(*first).chain(row(LAYOUT.done)).chain(row(*second)))
        .collect()
}

fn write_submit_read_plan() -> Builder {
    let number = HostValue::Number;
    let first = vec![store(0, number(5), None), store(1, number(7), None)];
    let equal = Some((HostRelation::Equal, HostValue::Register(0), number(6)));
    let second = vec![
        load(0, 0, None),
        load(1, 1, None),
        HostOperation::Skip { condition: equal, count: 1 },
        store(0, number(1000), None),
        store(1, HostValue::Register(0), None),
        HostOperation::Flush(vec![place(1)]),
        HostOperation::Invalidate(vec![place(0)]),
    ];
    let acts = vec![HostAct::Execute(first), HostAct::Submit(0), HostAct::Wait(0), HostAct::Execute(second)];
    incrementing_plan(vec![thread(acts)], &[(BatchStart::Submitted, false)])
}

/// One thread releases a batch that follows an earlier one; another thread waits for it and checks a flag.
fn signal_wait_plan() -> Builder {
    let first = vec![
        load(0, 0, None),
        store(0, HostValue::Number(10), None),
        HostOperation::Fence(Order::Release),
        store(1, HostValue::Number(20), Some(Order::Relaxed)),
    ];
    let one = vec![
        HostAct::Wait(0),
        HostAct::Execute(first),
        HostAct::Signal { semaphore: SEMAPHORE, value: 2 },
        HostAct::Wait(1),
        HostAct::Execute(vec![load(1, 1, Some(Order::Acquire))]),
    ];
    let other =
        vec![HostAct::Wait(1), HostAct::Execute(vec![load(1, 1, Some(Order::Acquire)), load(0, 0, None)])];
    incrementing_plan(
        vec![thread(one), thread(other)],
        &[(BatchStart::Early, false), (BatchStart::Early, true)],
    )
}

#[test]
fn host_threads_run_concurrently_with_the_device() {
    on_each_device("host_threads_run_concurrently_with_the_device", |device| {
        let back = BufferId(1);
        let words =
            |pair: [u32; 2]| std::iter::repeat_n(pair, INSTANCES as usize).flatten().collect::<Vec<u32>>();
        let b = write_submit_read_plan();
        let mut prepared = b.prepare(device);
        prepared.set_host_layout(LAYOUT).unwrap();
        for _ in 0..3 {
            submit_and_finish(&mut *prepared);
            assert_eq!(prepared.host_reports().unwrap(), expected_reports(&[(6, 8)]));
            assert_eq!(prepared.read(back).unwrap(), words([6, 6]));
        }
        let b = signal_wait_plan();
        let mut prepared = b.prepare(device);
        prepared.set_host_layout(LAYOUT).unwrap();
        for _ in 0..3 {
            submit_and_finish(&mut *prepared);
            assert_eq!(prepared.host_reports().unwrap(), expected_reports(&[(1, 21), (11, 21)]));
            assert_eq!(prepared.read(back).unwrap(), words([11, 21]));
        }
        let beyond = HostLayout { instances: INSTANCES + 1, ..LAYOUT };
        assert!(matches!(prepared.set_host_layout(beyond), Err(DeviceError::InvalidPlan(_))));
        let mut without = Builder::new().prepare(device);
        assert!(matches!(without.set_host_layout(LAYOUT), Err(DeviceError::InvalidPlan(_))));
    });
}

/// A thread that waits for a batch before it releases it.
#[test]
fn dropping_endless_host_threads_does_not_block() {
    on_each_driver("dropping_endless_host_threads_does_not_block", |selector| {
        let device = VulkanDevice::open(selector, DeviceOptions::default()).unwrap();
        let acts = vec![HostAct::Wait(0), HostAct::Signal { semaphore: SEMAPHORE, value: 2 }];
        let b = incrementing_plan(vec![thread(acts)], &[(BatchStart::Early, true)]);
        let mut prepared = b.prepare(&device);
        prepared.set_host_layout(LAYOUT).unwrap();
        prepared.submit().unwrap();
        assert_eq!(prepared.poll(Duration::from_millis(200)), Ok(Progress::Running));
        assert_eq!(prepared.host_reports(), Err(DeviceError::Busy));
        drop(prepared);
        assert_eq!(expect_refused(&device, &b.0), DeviceError::DeviceLost("an earlier submission"));
    });
}

#[test]
fn memory_that_threads_reach_is_mapped() {
    on_each_device("memory_that_threads_reach_is_mapped", |device| {
        let mut b = write_submit_read_plan();
        b.0.buffers[0].memory = BufferMemory::Device;
        assert!(matches!(expect_refused(device, &b.0), DeviceError::InvalidPlan(_)));
    });
}

#[test]
fn validation_layers_report_nothing_for_hosts() {
    on_each_driver("validation_layers_report_nothing_for_hosts", |selector| {
        let device = match VulkanDevice::open(selector, DeviceOptions { validation: true, staging: false }) {
            Ok(device) => device,
            Err(DeviceError::Unsupported(why)) => {
                return report_skipped(&format!("validation on {selector}: {why}"));
            }
            Err(error) => panic!("{error}"),
        };
        for b in [write_submit_read_plan(), signal_wait_plan()] {
            let mut prepared = b.prepare(&device);
            prepared.set_host_layout(LAYOUT).unwrap();
            submit_and_finish(&mut *prepared);
            submit_and_finish(&mut *prepared);
        }
        assert_eq!(device.validation_messages(), Vec::<String>::new());
    });
}
