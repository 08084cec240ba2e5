//! The device interface on lavapipe and on SwiftShader.

use crate::support;

use std::time::Duration;

use device::{DeviceOptions, VulkanDevice};
use plan::{
    Buffer, BufferId, BufferMemory, Device, DeviceError, Kernel, Plan, PlanStep, Progress, Queue, QueueId,
    Subgroups,
};

use support::{
    Builder, QUEUE, bytes, expect_refused, finish, kernels, on_each_busy_driver, on_each_device,
    on_each_driver, report_skipped, submit_and_finish,
};

const MEMORIES: [BufferMemory; 3] = [BufferMemory::Device, BufferMemory::Readback, BufferMemory::Shared];

#[test]
fn kernel_writes_and_host_reads() {
    on_each_device("kernel_writes_and_host_reads", |device| {
        for memory in MEMORIES {
            let mut b = Builder::new();
            let buffer = b.buffer(256, memory);
            let kernel = b.kernel(kernels::linear_kernel(64));
            b.fill(buffer, u32::MAX);
            b.barrier();
            b.dispatch(kernel, 3, &[buffer], &[3, 5]);
            b.expose(buffer);
            let mut prepared = b.prepare(device);
            submit_and_finish(&mut *prepared);
            let expected: Vec<u32> = (0..256).map(|i| if i < 192 { i * 3 + 5 } else { u32::MAX }).collect();
            assert_eq!(prepared.read(buffer).unwrap(), expected, "{memory:?}");
        }
    });
}

#[test]
fn two_bindings_show_one_buffer() {
    on_each_device("two_bindings_show_one_buffer", |device| {
        let mut b = Builder::new();
        let buffer = b.buffer(64, BufferMemory::Device);
        let kernel = b.kernel(kernels::increment_kernel(64));
        b.fill(buffer, 40);
        b.barrier();
        b.dispatch(kernel, 1, &[buffer, buffer], &[]);
        b.barrier();
        b.dispatch(kernel, 1, &[buffer, buffer], &[]);
        b.expose(buffer);
        let mut prepared = b.prepare(device);
        submit_and_finish(&mut *prepared);
        assert_eq!(prepared.read(buffer).unwrap(), [42; 64]);
    });
}

#[test]
fn dispatches_change_between_submissions() {
    on_each_device("dispatches_change_between_submissions", |device| {
        let mut b = Builder::new();
        let buffer = b.buffer(4, BufferMemory::Readback);
        let kernel = b.kernel(kernels::linear_kernel(1));
        b.fill(buffer, 0);
        b.barrier();
        let step = b.dispatch(kernel, 2, &[buffer], &[1, 10]);
        b.expose(buffer);
        let mut prepared = b.prepare(device);
        submit_and_finish(&mut *prepared);
        assert_eq!(prepared.read(buffer).unwrap(), [10, 11, 0, 0]);
        prepared.set_push_constants(step, &bytes(&[2, 20])).unwrap();
        submit_and_finish(&mut *prepared);
        assert_eq!(prepared.read(buffer).unwrap(), [20, 22, 0, 0]);
        prepared.set_workgroups(step, 3).unwrap();
        submit_and_finish(&mut *prepared);
        assert_eq!(prepared.read(buffer).unwrap(), [20, 22, 24, 0]);

        assert!(matches!(prepared.set_push_constants(step, &[0; 4]), Err(DeviceError::InvalidPlan(_))));
        assert!(matches!(prepared.set_push_constants(0, &[0; 8]), Err(DeviceError::InvalidPlan(_))));
        assert!(matches!(prepared.set_workgroups(step, 0), Err(DeviceError::InvalidPlan(_))));
        assert!(matches!(prepared.set_workgroups(step, u32::MAX), Err(DeviceError::Unsupported(_))));
        submit_and_finish(&mut *prepared);
        assert_eq!(prepared.read(buffer).unwrap(), [20, 22, 24, 0]);
    });
}

#[test]
fn host_writes_are_visible_to_the_next_submission() {
    on_each_device("host_writes_are_visible_to_the_next_submission", |device| {
        for memory in [BufferMemory::Readback, BufferMemory::Shared] {
            let mut b = Builder::new();
            let (input, output) = (b.buffer(64, memory), b.buffer(64, BufferMemory::Device));
            let kernel = b.kernel(kernels::increment_kernel(64));
            b.dispatch(kernel, 1, &[input, output], &[]);
            b.expose(output);
            let mut prepared = b.prepare(device);
            for start in [7, 1000] {
                for (word, value) in prepared.write(input).unwrap().iter_mut().zip(start..) {
                    *word = value;
                }
                submit_and_finish(&mut *prepared);
                assert!(prepared.read(output).unwrap().iter().copied().eq(start + 1..start + 65));
            }
        }
    });
}

#[test]
fn buffers_are_copied() {
    on_each_device("buffers_are_copied", |device| {
        let mut b = Builder::new();
        let input = b.buffer(5, BufferMemory::Shared);
        let hidden = b.buffer(8, BufferMemory::Device);
        let output = b.buffer(8, BufferMemory::Readback);
        b.fill(hidden, 9);
        b.barrier();
        b.step(PlanStep::Copy { queue: QUEUE, from: input, to: hidden });
        b.barrier();
        b.step(PlanStep::Copy { queue: QUEUE, from: hidden, to: output });
        b.expose(output);
        let mut prepared = b.prepare(device);
        prepared.write(input).unwrap().copy_from_slice(&[1, 2, 3, 4, 5]);
        submit_and_finish(&mut *prepared);
        assert_eq!(prepared.read(output).unwrap(), [1, 2, 3, 4, 5, 9, 9, 9]);
    });
}

#[test]
fn submissions_of_a_plan_follow_each_other() {
    on_each_device("submissions_of_a_plan_follow_each_other", |device| {
        let mut b = Builder::new();
        let buffer = b.buffer(64, BufferMemory::Device);
        let kernel = b.kernel(kernels::increment_kernel(64));
        b.fill(buffer, 0);
        for _ in 0..5 {
            b.step(PlanStep::Submit { queue: QUEUE });
            // The second of two consecutive submits has no commands.
            b.step(PlanStep::Submit { queue: QUEUE });
            b.barrier();
            b.dispatch(kernel, 1, &[buffer, buffer], &[]);
            b.step(PlanStep::ExecutionBarrier { queue: QUEUE });
        }
        b.expose(buffer);
        let mut prepared = b.prepare(device);
        for _ in 0..3 {
            submit_and_finish(&mut *prepared);
            assert_eq!(prepared.read(buffer).unwrap(), [5; 64]);
        }
    });
}

#[test]
fn a_plan_prepared_twice_overlaps() {
    on_each_device("a_plan_prepared_twice_overlaps", |device| {
        let mut b = Builder::new();
        let buffer = b.buffer(64, BufferMemory::Device);
        let kernel = b.kernel(kernels::linear_kernel(64));
        let step = b.dispatch(kernel, 1, &[buffer], &[1, 100]);
        b.expose(buffer);
        let (mut first, mut second) = (b.prepare(device), b.prepare(device));
        second.set_push_constants(step, &bytes(&[1, 500])).unwrap();
        for _ in 0..10 {
            first.submit().unwrap();
            second.submit().unwrap();
            finish(&mut *second);
            finish(&mut *first);
            assert!(first.read(buffer).unwrap().iter().copied().eq(100..164));
            assert!(second.read(buffer).unwrap().iter().copied().eq(500..564));
        }
    });
}

#[test]
fn unmapped_memory_is_copied_on_request() {
    on_each_device("unmapped_memory_is_copied_on_request", |device| {
        for memory in MEMORIES {
            let mut b = Builder::new();
            let buffer = b.buffer(128, memory);
            let kernel = b.kernel(kernels::linear_kernel(64));
            let step = b.dispatch(kernel, 2, &[buffer], &[1, 100]);
            // Without a `ToHost` step.
            b.barrier();
            let mut prepared = b.prepare(device);
            for first in [100, 900] {
                prepared.set_push_constants(step, &bytes(&[1, first])).unwrap();
                submit_and_finish(&mut *prepared);
                for words in [3, 128, 0, 64] {
                    let fetched = prepared.fetch(buffer, words).unwrap();
                    assert!(fetched.iter().copied().eq(first..first + words as u32), "{memory:?}, {words}");
                }
            }
            assert!(prepared.fetch(buffer, 129).is_err(), "{memory:?}");
            assert!(prepared.fetch(BufferId(7), 1).is_err());
            // Later submissions are unaffected.
            submit_and_finish(&mut *prepared);
            assert_eq!(prepared.fetch(buffer, 1).unwrap(), [900]);
        }
        assert_eq!(device.validation_messages(), Vec::<String>::new());
    });
}

/// A prepared plan keeps its pipelines alive when the cache is cleared.
#[test]
fn plans_outlive_the_cache_of_pipelines() {
    on_each_device("plans_outlive_the_cache_of_pipelines", |device| {
        let mut b = Builder::new();
        let buffer = b.buffer(64, BufferMemory::Device);
        let kernel = b.kernel(kernels::linear_kernel(64));
        b.dispatch(kernel, 1, &[buffer], &[1, 7]);
        b.expose(buffer);
        for _ in 0..3 {
            let mut prepared = b.prepare(device);
            device.clear_pipeline_cache();
            submit_and_finish(&mut *prepared);
            assert!(prepared.read(buffer).unwrap().iter().copied().eq(7..71));
        }
        assert_eq!(device.validation_messages(), Vec::<String>::new());
    });
}

/// Workgroups that wait for the host. lavapipe stops each after some milliseconds, hence the large number.
const WAITING: u32 = 20_000;

/// Returns a kernel that the host releases: flag, counter and plan.
///
/// The workgroup is one full subgroup, since lavapipe's idle lanes would not leave the loop.
fn waiting_plan(device: &VulkanDevice) -> (BufferId, BufferId, Builder) {
    let mut b = Builder::new();
    let (flag, counter) = (b.buffer(1, BufferMemory::Shared), b.buffer(1, BufferMemory::Readback));
    let kernel = b.kernel(kernels::waiting_kernel(device.capabilities().subgroup_size));
    b.fill(counter, 0);
    b.barrier();
    b.dispatch(kernel, WAITING, &[flag, counter], &[]);
    b.expose(counter);
    (flag, counter, b)
}

#[test]
fn the_host_releases_a_waiting_kernel() {
    on_each_device("the_host_releases_a_waiting_kernel", |device| {
        let (flag, counter, b) = waiting_plan(device);
        let mut prepared = b.prepare(device);
        prepared.store(flag, 0, 0).unwrap();
        prepared.submit().unwrap();
        assert_eq!(prepared.poll(Duration::from_millis(20)), Ok(Progress::Running));
        assert_eq!(prepared.submit(), Err(DeviceError::Busy));
        assert_eq!(prepared.read(counter), Err(DeviceError::Busy));
        assert_eq!(prepared.write(flag), Err(DeviceError::Busy));
        assert_eq!(prepared.load(flag, 0), Ok(0));
        assert!(matches!(prepared.load(flag, 1), Err(DeviceError::InvalidPlan(_))));
        assert!(matches!(prepared.store(counter, 0, 1), Err(DeviceError::InvalidPlan(_))));
        prepared.store(flag, 0, 1).unwrap();
        finish(&mut *prepared);
        assert_eq!(prepared.load(flag, 0), Ok(1));
        let invocations = WAITING * device.capabilities().subgroup_size;
        let released = prepared.read(counter).unwrap()[0];
        match device.capabilities().loop_budget {
            Some(_) => assert!((1..=invocations).contains(&released), "{released}"),
            None => assert_eq!(released, invocations),
        }
    });
}

#[test]
fn dropping_an_endless_submission_does_not_block() {
    on_each_busy_driver("dropping_an_endless_submission_does_not_block", |selector| {
        let device = VulkanDevice::open(selector, DeviceOptions::default()).unwrap();
        let (flag, _, b) = waiting_plan(&device);
        let mut prepared = b.prepare(&device);
        prepared.store(flag, 0, 0).unwrap();
        prepared.submit().unwrap();
        drop(prepared);
        assert_eq!(expect_refused(&device, &b.0), DeviceError::DeviceLost("an earlier submission"));
        drop(device);
    });
}

#[test]
fn dropping_a_finished_submission_keeps_the_device() {
    on_each_device("dropping_a_finished_submission_keeps_the_device", |device| {
        let mut b = Builder::new();
        let kernel = b.kernel(kernels::empty_kernel());
        b.dispatch(kernel, 1, &[], &[]);
        let (mut unseen, mut seen) = (b.prepare(device), b.prepare(device));
        unseen.submit().unwrap();
        // It ends after the other plan, because they share a queue.
        submit_and_finish(&mut *seen);
        drop(unseen);
        submit_and_finish(&mut *b.prepare(device));
    });
}

#[test]
fn device_time_is_measured() {
    on_each_device("device_time_is_measured", |device| {
        let mut b = Builder::new();
        let buffer = b.buffer(1 << 20, BufferMemory::Device);
        let kernel = b.kernel(kernels::linear_kernel(64));
        b.dispatch(kernel, 1 << 14, &[buffer], &[1, 1]);
        let mut prepared = b.prepare(device);
        assert!(matches!(prepared.poll(Duration::ZERO), Err(DeviceError::InvalidPlan(_))));
        prepared.submit().unwrap();
        let progress = prepared.poll(Duration::from_secs(60)).unwrap();
        assert!(matches!(progress, Progress::Finished { device_time: Some(time) } if !time.is_zero()));
        assert_eq!(prepared.poll(Duration::ZERO), Ok(progress));
    });
}

#[test]
fn an_empty_plan_finishes() {
    on_each_device("an_empty_plan_finishes", |device| {
        let mut prepared = Builder::new().prepare(device);
        submit_and_finish(&mut *prepared);
        submit_and_finish(&mut *prepared);
    });
}

#[test]
fn kernels_get_the_subgroups_they_require() {
    on_each_device("kernels_get_the_subgroups_they_require", |device| {
        let capabilities = device.capabilities();
        assert!(capabilities.full_subgroups && capabilities.subgroups_in_compute);
        let size = capabilities.subgroup_size;
        let mut b = Builder::new();
        let buffer = b.buffer((4 * size).into(), BufferMemory::Readback);
        let kernel = b.kernel(kernels::lane_index_kernel(2 * size, size));
        b.dispatch(kernel, 2, &[buffer], &[]);
        b.expose(buffer);
        let mut prepared = b.prepare(device);
        submit_and_finish(&mut *prepared);
        assert!(prepared.read(buffer).unwrap().iter().copied().eq((0..4 * size).map(|i| i % size)));

        let wrong = Kernel { subgroups: Subgroups::Full(128), ..kernels::lane_index_kernel(128, 128) };
        let plan = Plan { kernels: vec![wrong], ..Builder::new().0 };
        assert_eq!(
            expect_refused(device, &plan),
            DeviceError::Unsupported("full subgroups of 128 invocations".to_owned())
        );
    });
}

#[test]
fn missing_features_are_refused() {
    on_each_device("missing_features_are_refused", |device| {
        let queues = |families: &[u32]| Plan {
            queues: families.iter().map(|family| Queue { family: *family }).collect(),
            ..Plan::default()
        };
        let many = device.capabilities().compute_queues.iter().max().unwrap() + 1;
        let cases = [
            queues(&vec![0; many as usize]),
            queues(&[0, 1, 2, 3, 4, 5, 6, 7]),
            Plan {
                buffers: vec![Buffer { words: u64::MAX / 2, memory: BufferMemory::Device, name: "huge" }],
                ..queues(&[0])
            },
            Plan { kernels: vec![kernels::linear_kernel(4096)], ..queues(&[0]) },
        ];
        for plan in cases {
            assert!(matches!(expect_refused(device, &plan), DeviceError::Unsupported(_)), "{plan:?}");
        }
        let plan = Plan {
            steps: vec![PlanStep::Fill { queue: QueueId(0), buffer: BufferId(0), value: 0 }],
            ..queues(&[0])
        };
        assert!(matches!(expect_refused(device, &plan), DeviceError::InvalidPlan(_)));
    });
}

#[test]
fn unmapped_memory_cannot_be_read_without_a_copy() {
    on_each_driver("unmapped_memory_cannot_be_read_without_a_copy", |selector| {
        for staging in [false, true] {
            let device = VulkanDevice::open(selector, DeviceOptions { staging, validation: false }).unwrap();
            let mut b = Builder::new();
            let (copied, hidden) = (b.buffer(1, BufferMemory::Device), b.buffer(1, BufferMemory::Device));
            let private = b.buffer(1, BufferMemory::Private);
            b.expose(copied);
            let mut prepared = b.prepare(&device);
            assert!(prepared.read(copied).is_ok());
            assert!(prepared.read(private).is_err() && prepared.write(private).is_err());
            assert!(prepared.read(BufferId(3)).is_err());
            // On unified memory, all memory is host-visible.
            let mapped = prepared.read(hidden).is_ok();
            assert_eq!(prepared.write(hidden).is_ok(), mapped);
            assert!(mapped || staging);
        }
    });
}

#[test]
fn capabilities_agree_with_the_drivers_documentation() {
    on_each_device("capabilities_agree_with_the_drivers_documentation", |device| {
        let (identity, capabilities) = (device.identity(), device.capabilities());
        assert!(capabilities.executes && capabilities.is_cpu && identity.kind == "cpu");
        assert!(capabilities.memory_model && capabilities.device_scope);
        assert!(capabilities.has_feature(plan::Feature::VulkanMemoryModel));
        assert_eq!(identity.uuid.len(), 32);
        assert!(identity.api_version.starts_with("1."));
        let int64 = capabilities.has_feature(plan::Feature::ShaderInt64);
        match identity.name.as_str() {
            "lavapipe" => assert!(int64 && capabilities.loop_budget == Some(65_535)),
            "swiftshader" => assert!(!int64 && capabilities.loop_budget.is_none()),
            other => panic!("{other}"),
        }
    });
}

#[test]
fn validation_layers_report_nothing() {
    on_each_driver("validation_layers_report_nothing", |selector| {
        for staging in [false, true] {
            let device = match VulkanDevice::open(selector, DeviceOptions { validation: true, staging }) {
                Ok(device) => device,
                Err(DeviceError::Unsupported(why)) => {
                    assert!(why.contains("vulkan-validationlayers"), "{why}");
                    return report_skipped(&format!("validation on {selector}: layers not installed"));
                }
                Err(error) => panic!("{error}"),
            };
            let mut b = Builder::new();
            let (one, other) = (b.buffer(64, BufferMemory::Device), b.buffer(64, BufferMemory::Shared));
            let (linear, increment) =
                (b.kernel(kernels::linear_kernel(64)), b.kernel(kernels::increment_kernel(64)));
            b.fill(one, 0);
            b.barrier();
            b.dispatch(linear, 1, &[one], &[1, 1]);
            b.barrier();
            b.dispatch(increment, 1, &[one, other], &[]);
            b.step(PlanStep::Submit { queue: QUEUE });
            b.barrier();
            b.step(PlanStep::Copy { queue: QUEUE, from: other, to: one });
            b.expose(one);
            b.expose(other);
            let mut prepared = b.prepare(&device);
            submit_and_finish(&mut *prepared);
            assert!(prepared.read(one).unwrap().iter().copied().eq(2..66));
            submit_and_finish(&mut *prepared);
            drop(prepared);
            assert_eq!(device.validation_messages(), Vec::<String>::new());

            // The layers are active: they report two writes without a barrier between them.
            let mut b = Builder::new();
            let buffer = b.buffer(64, BufferMemory::Device);
            let kernel = b.kernel(kernels::linear_kernel(64));
            b.fill(buffer, 0);
            b.dispatch(kernel, 1, &[buffer], &[1, 1]);
            submit_and_finish(&mut *b.prepare(&device));
            let messages = device.validation_messages();
            assert!(messages.iter().any(|message| message.contains("SYNC-HAZARD")), "{messages:?}");
            assert!(messages.iter().any(|message| message.contains("[test]")), "{messages:?}");
            assert_eq!(device.validation_messages(), Vec::<String>::new());
        }
    });
}
