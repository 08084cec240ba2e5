//! Every method to order dispatches, and every memory type, on lavapipe and SwiftShader, without validation
//! messages.
//!
//! The validation layers include synchronization validation.

use crate::support;

use std::time::Duration;

use device::{DeviceOptions, VulkanDevice};
use plan::{
    AccessMask, BufferMemory, DependencyKind, Device, DeviceError, MemoryKind, PlanStep, Progress, Queue,
    QueueId, Semaphore, SemaphoreId, StageMask,
};

use support::{
    Builder, QUEUE, expect_refused, kernels, on_each_device, on_each_driver, report_skipped,
    submit_and_finish,
};

/// The steps between two dispatches.
type DependencySteps = fn(&mut Builder, u32);

const MECHANISMS: [(&str, DependencySteps); 6] = [
    ("barrier", |b, _| dependency(b, DependencyKind::Barrier)),
    ("event", |b, _| dependency(b, DependencyKind::Event)),
    ("submit", |b, _| {
        b.step(PlanStep::Submit { queue: QUEUE });
        dependency(b, DependencyKind::Barrier);
    }),
    ("binary semaphore", |b, number| semaphore_steps(b, number, Semaphore::Binary)),
    ("timeline semaphore", |b, number| semaphore_steps(b, number, Semaphore::Timeline)),
    ("fence", |b, _| {
        b.step(PlanStep::HostWait { queue: QUEUE });
        dependency(b, DependencyKind::Barrier);
    }),
];

fn dependency(b: &mut Builder, kind: DependencyKind) {
    dependency_with_masks(b, kind, AccessMask::SHADER_WRITE, ACCESSES);
}

/// The accesses of a kernel that reads and writes a buffer.
const ACCESSES: AccessMask = AccessMask::SHADER_READ.with(AccessMask::SHADER_WRITE);

fn dependency_with_masks(b: &mut Builder, kind: DependencyKind, available: AccessMask, visible: AccessMask) {
    b.step(PlanStep::Dependency {
        queue: QUEUE,
        kind,
        stages: (
            StageMask::COMPUTE.with(StageMask::for_accesses(available)),
            StageMask::COMPUTE.with(StageMask::for_accesses(visible)),
        ),
        available,
        visible,
    });
}

fn semaphore_steps(b: &mut Builder, number: u32, kind: Semaphore) {
    let semaphore = SemaphoreId(number);
    b.0.semaphores.push(kind);
    b.step(PlanStep::Signal { queue: QUEUE, semaphore, value: 1 });
    b.step(PlanStep::Wait { queue: QUEUE, semaphore, value: 1 });
}

/// Returns three dependent increments.
fn dependent_increments(between: impl Fn(&mut Builder, u32)) -> (Builder, plan::BufferId) {
    let mut b = Builder::new();
    let buffer = b.buffer(4096, BufferMemory::Device);
    let kernel = b.kernel(kernels::increment_kernel(64));
    b.fill(buffer, 7);
    b.barrier();
    for number in 0..3 {
        if number > 0 {
            between(&mut b, number - 1);
        }
        b.dispatch(kernel, 64, &[buffer, buffer], &[]);
    }
    b.expose(buffer);
    (b, buffer)
}

#[test]
fn every_mechanism_orders_dispatches() {
    on_each_device("every_mechanism_orders_dispatches", |device| {
        for (name, between) in MECHANISMS {
            let (b, buffer) = dependent_increments(between);
            let mut prepared = b.prepare(device);
            // Repeated: events are reset, binary semaphores are unsignalled, timelines continue.
            for _ in 0..3 {
                submit_and_finish(&mut *prepared);
                assert_eq!(prepared.read(buffer).unwrap(), [10; 4096], "{name}");
            }
        }
    });
}

#[test]
fn validation_reports_nothing_for_any_mechanism() {
    on_each_driver("validation_reports_nothing_for_any_mechanism", |selector| {
        let options = DeviceOptions { validation: true, ..DeviceOptions::default() };
        let device = match VulkanDevice::open(selector, options) {
            Ok(device) => device,
            Err(DeviceError::Unsupported(what)) => return report_skipped(&format!("validation: {what}")),
            Err(error) => panic!("{error}"),
        };
        for (name, between) in MECHANISMS {
            let (b, _) = dependent_increments(between);
            let mut prepared = b.prepare(&device);
            for _ in 0..2 {
                submit_and_finish(&mut *prepared);
            }
            assert_eq!(device.validation_messages(), Vec::<String>::new(), "{name}");
        }
        // Every access type as source and as destination, with its stages.
        let shader = (AccessMask::SHADER_WRITE, ACCESSES);
        for kind in AccessMask::single_accesses().chain([AccessMask::NONE]) {
            let masks = (shader.0.with(kind), shader.1.with(kind));
            let barrier =
                |b: &mut Builder, _| dependency_with_masks(b, DependencyKind::Barrier, masks.0, masks.1);
            submit_and_finish(&mut *dependent_increments(barrier).0.prepare(&device));
            // Events are set on the device, so they have no host stage.
            if !kind.intersects(AccessMask::HOST) {
                let event =
                    |b: &mut Builder, _| dependency_with_masks(b, DependencyKind::Event, masks.0, masks.1);
                submit_and_finish(&mut *dependent_increments(event).0.prepare(&device));
            }
            assert_eq!(device.validation_messages(), Vec::<String>::new(), "{kind}");
        }
        let all = (AccessMask::MEMORY_WRITE, AccessMask::MEMORY_READ.with(AccessMask::MEMORY_WRITE));
        submit_and_finish(
            &mut *dependent_increments(|b, _| {
                dependency_with_masks(b, DependencyKind::Barrier, all.0, all.1)
            })
            .0
            .prepare(&device),
        );
        assert_eq!(device.validation_messages(), Vec::<String>::new());
        // Masks of other accesses do not make writes of kernels available.
        for (available, visible) in [
            (AccessMask::TRANSFER_WRITE, ACCESSES),
            (AccessMask::SHADER_READ, ACCESSES),
            (AccessMask::SHADER_WRITE, AccessMask::UNIFORM_READ),
        ] {
            submit_and_finish(
                &mut *dependent_increments(|b, _| {
                    dependency_with_masks(b, DependencyKind::Barrier, available, visible)
                })
                .0
                .prepare(&device),
            );
            let messages = device.validation_messages();
            assert!(messages.iter().any(|message| message.contains("SYNC-HAZARD")), "{messages:?}");
        }
        // An execution dependency makes nothing available. The reported hazard shows that validation is
        // active.
        let (b, _) = dependent_increments(|b, _| {
            let kind = DependencyKind::Barrier;
            dependency_with_masks(b, kind, AccessMask::NONE, AccessMask::NONE);
        });
        submit_and_finish(&mut *b.prepare(&device));
        let messages = device.validation_messages();
        assert!(messages.iter().any(|message| message.contains("SYNC-HAZARD")), "{messages:?}");
    });
}

/// A plan with host waits is polled like any other, and a poll with timeout 0 does not block.
#[test]
fn a_plan_in_which_the_host_waits_is_polled_to_its_end() {
    on_each_device("a_plan_in_which_the_host_waits_is_polled_to_its_end", |device| {
        let (b, buffer) = dependent_increments(|b, _| {
            b.step(PlanStep::HostWait { queue: QUEUE });
            dependency(b, DependencyKind::Barrier);
        });
        let mut prepared = b.prepare(device);
        prepared.submit().unwrap();
        let mut polls = 0;
        while prepared.poll(Duration::ZERO).unwrap() == Progress::Running {
            polls += 1;
            assert!(polls < 10_000_000, "it never ends");
            std::thread::yield_now();
        }
        assert_eq!(prepared.read(buffer).unwrap(), [10; 4096]);
    });
}

#[test]
fn command_buffers_of_one_submission_run_in_order_with_a_dependency() {
    on_each_device("command_buffers_of_one_submission_run_in_order_with_a_dependency", |device| {
        let (b, buffer) = dependent_increments(|b, _| {
            b.step(PlanStep::CommandBuffer { queue: QUEUE });
            dependency(b, DependencyKind::Barrier);
        });
        let mut prepared = b.prepare(device);
        submit_and_finish(&mut *prepared);
        assert_eq!(prepared.read(buffer).unwrap(), [10; 4096]);
    });
}

#[test]
fn memory_has_the_requested_type() {
    on_each_device("memory_has_the_requested_type", |device| {
        let types = &device.capabilities().memory_types;
        assert!(!types.is_empty());
        for (name, kind) in MemoryKind::NAMED {
            let mut b = Builder::new();
            let buffer = b.buffer(256, BufferMemory::Typed(kind));
            let readback = b.buffer(256, BufferMemory::Readback);
            let kernel = b.kernel(kernels::linear_kernel(64));
            b.dispatch(kernel, 4, &[buffer], &[3, 5]);
            b.barrier();
            b.step(PlanStep::Copy { queue: QUEUE, from: buffer, to: readback });
            b.expose(readback);
            if !types.iter().any(|properties| kind.matches_type(*properties)) {
                assert_eq!(
                    expect_refused(device, &b.0),
                    DeviceError::Unsupported(kind.to_string()),
                    "{name}"
                );
                continue;
            }
            let mut prepared = b.prepare(device);
            assert!(
                prepared.memory_properties(buffer).is_some_and(|properties| kind.matches_type(properties)),
                "{name}"
            );
            submit_and_finish(&mut *prepared);
            assert!(
                prepared.read(readback).unwrap().iter().zip(0..).all(|(word, i)| *word == i * 3 + 5),
                "{name}"
            );
            assert!(prepared.read(buffer).is_err(), "{name}: the host does not reach it");
        }
    });
}

#[test]
fn a_separate_family_is_refused_on_devices_with_one() {
    on_each_device("a_separate_family_is_refused_on_devices_with_one", |device| {
        if device.capabilities().compute_queues.len() > 1 {
            return;
        }
        let mut b = Builder::new();
        b.0.queues.push(Queue { family: 1 });
        b.step(PlanStep::Barrier { queue: QueueId(1) });
        let lack = "2 queue families with compute (it has 1)".to_owned();
        assert_eq!(expect_refused(device, &b.0), DeviceError::Unsupported(lack));
    });
}
