//! Tests for the validation of plans and for device capability checks.

use plan::{
    AccessMask, BatchStart, Buffer, BufferId, BufferMemory, Capabilities, DependencyKind, DeviceError,
    Drawing, HostAct, HostOperation, HostReport, HostThread, Hosts, Image, ImageAccess, ImageFormat, ImageId,
    ImageShape, Kernel, KernelId, KernelStage, MemoryKind, MemoryProperties, Plan, PlanStep, Queue, QueueId,
    Semaphore, SemaphoreId, StageMask, Subgroups,
};

const QUEUE: QueueId = QueueId(0);

/// Returns a module with a header and `OpExecutionMode %1 LocalSize` with `x` invocations.
fn kernel(x: u32) -> Kernel {
    Kernel {
        words: vec![0x0723_0203, 0x0001_0500, 0, 10, 0, 2 << 16 | 17, 1, 6 << 16 | 16, 1, 17, x, 1, 1],
        bindings: 2,
        push_constant_bytes: 8,
        ..Kernel::default()
    }
}

fn buffer(words: u64) -> Buffer {
    Buffer { words, memory: BufferMemory::Device, name: "test" }
}

fn image(shape: ImageShape) -> Image {
    let (format, access) = (ImageFormat::UNSIGNED, ImageAccess::Storage);
    Image { shape, format, access, memory: BufferMemory::Device, name: "texels" }
}

fn dispatch(workgroups: u32, bindings: &[u32], bytes: usize) -> PlanStep {
    PlanStep::Dispatch {
        queue: QUEUE,
        kernel: KernelId(0),
        workgroups,
        bindings: bindings.iter().copied().map(BufferId).collect(),
        push_constants: vec![0; bytes],
    }
}

/// A valid plan.
fn plan() -> Plan {
    let (from, to) = (BufferId(0), BufferId(1));
    Plan {
        kernels: vec![kernel(64)],
        buffers: vec![buffer(4), buffer(8)],
        queues: vec![Queue { family: 0 }],
        steps: vec![
            PlanStep::Fill { queue: QUEUE, buffer: from, value: 1 },
            PlanStep::Barrier { queue: QUEUE },
            PlanStep::Copy { queue: QUEUE, from, to },
            PlanStep::ExecutionBarrier { queue: QUEUE },
            dispatch(16, &[0, 0], 8),
            PlanStep::Submit { queue: QUEUE },
            PlanStep::ToHost { queue: QUEUE, buffer: to },
        ],
        ..Plan::default()
    }
}

/// Returns capabilities that are just sufficient for the plan.
fn capabilities() -> Capabilities {
    Capabilities {
        subgroup_size_range: (4, 32),
        full_subgroups: true,
        max_workgroup_invocations: 64,
        max_workgroups: 16,
        max_workgroup_subgroups: 8,
        max_storage_buffer_bytes: 32,
        max_storage_buffers: 2,
        max_push_constant_bytes: 8,
        ..Capabilities::default()
    }
}

#[test]
fn a_plan_that_fits_is_accepted() {
    assert_eq!(plan().validate(), Ok(()));
    assert_eq!(capabilities().check_plan(&plan()), Ok(()));
    assert_eq!(plan().kernels[0].workgroup_size(), Some([64, 1, 1]));
}

#[test]
fn contradictions_are_named() {
    let with_step = |step: PlanStep| Plan { steps: vec![step], ..plan() };
    let with_kernel = |kernel: Kernel| Plan { kernels: vec![kernel], ..plan() };
    let (b0, b1, b2) = (BufferId(0), BufferId(1), BufferId(2));
    let table = [
        Plan::default(),
        Plan { buffers: vec![buffer(4), buffer(0)], ..plan() },
        with_kernel(Kernel { words: vec![], ..kernel(1) }),
        with_kernel(Kernel { words: vec![1; 9], ..kernel(1) }),
        with_kernel(Kernel { push_constant_bytes: 6, ..kernel(1) }),
        with_kernel(Kernel { subgroups: Subgroups::Full(3), ..kernel(1) }),
        with_step(PlanStep::Barrier { queue: QueueId(1) }),
        with_step(PlanStep::Dependency {
            queue: QUEUE,
            stages: (plan::StageMask::COMPUTE, plan::StageMask::COMPUTE),
            kind: DependencyKind::Event,
            available: AccessMask::SHADER_WRITE.with(AccessMask::HOST_WRITE),
            visible: AccessMask::HOST_READ,
        }),
        with_step(PlanStep::Dependency {
            queue: QUEUE,
            stages: (plan::StageMask::COMPUTE, plan::StageMask::COMPUTE),
            kind: DependencyKind::Barrier,
            available: AccessMask::SHADER_WRITE,
            visible: AccessMask::HOST_READ,
        }),
        with_step(PlanStep::Fill { queue: QUEUE, buffer: b2, value: 0 }),
        with_step(PlanStep::ToHost { queue: QUEUE, buffer: b2 }),
        with_step(PlanStep::Copy { queue: QUEUE, from: b0, to: b2 }),
        with_step(PlanStep::Copy { queue: QUEUE, from: b2, to: b0 }),
        with_step(PlanStep::Copy { queue: QUEUE, from: b0, to: b0 }),
        with_step(PlanStep::Copy { queue: QUEUE, from: b1, to: b0 }),
        with_step(dispatch(0, &[0, 0], 8)),
        with_step(dispatch(1, &[0], 8)),
        with_step(dispatch(1, &[0, 2], 8)),
        with_step(dispatch(1, &[0, 0], 4)),
        Plan { kernels: vec![], ..with_step(dispatch(1, &[0, 0], 8)) },
        with_kernel(Kernel { images: vec![ImageId(0)], ..kernel(1) }),
        with_kernel(Kernel { addresses: vec![b2], ..kernel(1) }),
        Plan { images: vec![image(ImageShape::Texels(b2))], ..plan() },
        Plan { images: vec![image(ImageShape::TwoDimensional { width: 2, height: 0 })], ..plan() },
        with_step(PlanStep::ToImage { queue: QUEUE, from: b0, to: ImageId(0) }),
        Plan {
            images: vec![image(ImageShape::OneDimensional { width: 5 })],
            ..with_step(PlanStep::ToImage { queue: QUEUE, from: b0, to: ImageId(0) })
        },
        Plan {
            images: vec![image(ImageShape::Texels(b1))],
            ..with_step(PlanStep::FromImage { queue: QUEUE, from: ImageId(0), to: b0 })
        },
    ];
    insta::assert_snapshot!(table.map(|plan| plan.validate().unwrap_err().to_string()).join("\n"));
}

#[test]
fn missing_capabilities_are_named() {
    let table = [
        Plan { buffers: vec![buffer(4), buffer(9)], ..plan() },
        Plan { steps: vec![dispatch(17, &[0, 0], 8)], ..plan() },
        Plan { kernels: vec![kernel(65)], ..plan() },
        Plan { kernels: vec![Kernel { bindings: 3, ..kernel(1) }], ..plan() },
        Plan { kernels: vec![Kernel { push_constant_bytes: 12, ..kernel(1) }], ..plan() },
        Plan { kernels: vec![Kernel { subgroups: Subgroups::Full(64), ..kernel(64) }], ..plan() },
        Plan { kernels: vec![Kernel { subgroups: Subgroups::Full(4), ..kernel(64) }], ..plan() },
    ];
    let lacks = |plan: Plan| capabilities().check_plan(&plan).unwrap_err().to_string();
    insta::assert_snapshot!(table.map(lacks).join("\n"));
    let without = Capabilities { full_subgroups: false, ..capabilities() };
    let plan = Plan { kernels: vec![Kernel { subgroups: Subgroups::Full(32), ..kernel(64) }], ..plan() };
    assert_eq!(capabilities().check_plan(&plan), Ok(()));
    assert!(matches!(without.check_plan(&plan), Err(DeviceError::Unsupported(_))));
}

/// A draw has points within the viewport, and a kernel of its stage.
#[test]
fn draws_are_checked() {
    let draw = |points, extent, bytes| PlanStep::Draw {
        queue: QUEUE,
        kernel: KernelId(0),
        drawing: Drawing { points, extent },
        bindings: vec![BufferId(0), BufferId(0)],
        push_constants: vec![0; bytes],
    };
    let of = |stage: KernelStage, step: PlanStep| Plan {
        kernels: vec![Kernel { stage, ..kernel(64) }],
        steps: vec![step],
        ..plan()
    };
    let fragment = |words: &[u32]| KernelStage::Fragment { vertex_shader: words.to_vec() };
    let good = of(KernelStage::Vertex, draw(5, (1, 1), 8));
    assert_eq!(good.validate(), Ok(()));
    assert_eq!(of(fragment(&kernel(1).words), draw(5, (4096, 2), 8)).validate(), Ok(()));
    assert_eq!(
        (good.graphics_stages(QUEUE), plan().graphics_stages(QUEUE)),
        (StageMask::VERTEX, StageMask::NONE)
    );
    let table = [
        of(KernelStage::Compute, draw(5, (1, 1), 8)),
        of(KernelStage::Vertex, dispatch(1, &[0, 0], 8)),
        of(KernelStage::Vertex, draw(0, (1, 1), 8)),
        of(KernelStage::Vertex, draw(1, (0, 1), 8)),
        of(KernelStage::Vertex, draw(1, (1, 4097), 8)),
        of(KernelStage::Vertex, draw(1, (1, 1), 4)),
        of(fragment(&[1]), draw(1, (1, 1), 8)),
    ];
    insta::assert_snapshot!(table.map(|plan| plan.validate().unwrap_err().to_string()).join("\n"));
    let lacks = |capabilities: &Capabilities| capabilities.check_plan(&good).unwrap_err().to_string();
    let stores =
        Capabilities { features: vec![plan::Feature::VertexPipelineStoresAndAtomics], ..capabilities() };
    assert_eq!(lacks(&capabilities()), "the device lacks vertexPipelineStoresAndAtomics");
    assert_eq!(lacks(&stores), "the device lacks a queue with graphics and compute");
    assert_eq!(Capabilities { graphics_queues: vec![1], ..stores }.check_plan(&good), Ok(()));
}

#[test]
fn a_workgroup_of_full_subgroups_is_a_multiple_of_them() {
    let plan = Plan { kernels: vec![Kernel { subgroups: Subgroups::Full(32), ..kernel(48) }], ..plan() };
    assert!(matches!(capabilities().check_plan(&plan), Err(DeviceError::InvalidPlan(_))));
}

#[test]
fn malformed_words_have_no_workgroup_size() {
    let cut = |words: &[u32]| Kernel { words: words.to_vec(), ..kernel(1) }.workgroup_size();
    let whole = kernel(1).words;
    assert_eq!(cut(&whole[..12]), None);
    assert_eq!(cut(&[]), None);
    // An instruction of length 0, and one that exceeds the module.
    assert_eq!(cut(&[0, 0, 0, 0, 0, 0, 0]), None);
    assert_eq!(cut(&[0, 0, 0, 0, 0, 100 << 16 | 16]), None);
}

/// A prepared plan that keeps the defaults for shared words.
struct Idle(Vec<u32>);

impl plan::Prepared for Idle {
    fn submit(&mut self) -> Result<(), DeviceError> {
        Ok(())
    }

    fn poll(&mut self, _: std::time::Duration) -> Result<plan::Progress, DeviceError> {
        Ok(plan::Progress::NotExecuted)
    }

    fn set_push_constants(&mut self, _: usize, _: &[u8]) -> Result<(), DeviceError> {
        Ok(())
    }

    fn read(&mut self, _: BufferId) -> Result<&[u32], DeviceError> {
        Ok(&self.0)
    }

    fn write(&mut self, _: BufferId) -> Result<&mut [u32], DeviceError> {
        Ok(&mut self.0)
    }
}

#[test]
fn shared_words_default_to_the_buffer() {
    use plan::Prepared;
    let mut idle = Idle(vec![1, 2]);
    idle.store(BufferId(0), 1, 7).unwrap();
    assert_eq!(idle.load(BufferId(0), 1), Ok(7));
    let missing = DeviceError::InvalidPlan("buffer 0 has no word 2".to_owned());
    assert_eq!(idle.load(BufferId(0), 2), Err(missing.clone()));
    assert_eq!(idle.store(BufferId(0), 2, 0), Err(missing));
}

#[test]
fn a_semaphore_is_signalled_once_and_then_waited_for_once() {
    let semaphore = SemaphoreId(0);
    let signal = || PlanStep::Signal { queue: QUEUE, semaphore, value: 1 };
    let wait = || PlanStep::Wait { queue: QUEUE, semaphore, value: 1 };
    let with =
        |steps: Vec<PlanStep>| Plan { semaphores: vec![Semaphore::Binary], steps, ..plan() }.validate();
    assert_eq!(with(vec![signal(), wait()]), Ok(()));
    let wrong = DeviceError::InvalidPlan("semaphore 0: needs one signal, then one wait".to_owned());
    for steps in [
        vec![],
        vec![signal()],
        vec![wait(), signal()],
        vec![signal(), wait(), wait()],
        vec![signal(), signal(), wait()],
    ] {
        assert_eq!(with(steps), Err(wrong.clone()));
    }
    let none = Plan { steps: vec![signal()], ..plan() }.validate();
    assert_eq!(none, Err(DeviceError::InvalidPlan("step 0: no semaphore 0".to_owned())));
}

#[test]
fn timeline_values_rise_and_waits_follow_their_signals() {
    let semaphore = SemaphoreId(0);
    let signal = |value| PlanStep::Signal { queue: QUEUE, semaphore, value };
    let wait = |value| PlanStep::Wait { queue: QUEUE, semaphore, value };
    let with = |steps: Vec<PlanStep>| {
        let found = Plan { semaphores: vec![Semaphore::Timeline], steps, ..plan() }.validate();
        found.map_err(|error| error.to_string())
    };
    assert_eq!(with(vec![signal(1), wait(1), signal(4), wait(2), wait(4)]), Ok(()));
    assert_eq!(with(vec![signal(2)]), Ok(()));
    let early = "invalid plan: semaphore 0: a wait before its signal";
    for steps in [vec![wait(1), signal(1)], vec![signal(1), wait(2), signal(2)], vec![signal(1), wait(0)]] {
        assert_eq!(with(steps), Err(early.to_owned()));
    }
    for steps in [vec![signal(0)], vec![signal(2), signal(2)], vec![signal(2), signal(1)]] {
        assert_eq!(with(steps), Err("invalid plan: semaphore 0: its values do not increase".to_owned()));
    }
}

#[test]
fn an_event_is_set_once_and_awaited_with_the_same_masks() {
    let step = |kind, queue, stages| PlanStep::Dependency {
        queue: QueueId(queue),
        kind,
        stages: (stages, StageMask::COMPUTE),
        available: AccessMask::SHADER_WRITE,
        visible: AccessMask::SHADER_READ,
    };
    let (set, end) = (DependencyKind::Set(7), DependencyKind::Await(7));
    let with = |steps: &[(DependencyKind, u32, StageMask)]| {
        let steps = steps.iter().map(|(kind, queue, stages)| step(*kind, *queue, *stages)).collect();
        let queues = vec![Queue { family: 0 }; 2];
        Plan { queues, steps, ..plan() }.validate().map_err(|error| error.to_string())
    };
    let compute = StageMask::COMPUTE;
    assert_eq!(with(&[(set, 0, compute), (end, 0, compute)]), Ok(()));
    assert_eq!(with(&[(set, 0, compute)]), Ok(()));
    let wrong = "invalid plan: event 7 is not set before, on this queue and for this";
    for steps in [
        [(end, 0, compute), (set, 0, compute)],
        [(set, 0, compute), (end, 1, compute)],
        [(set, 0, compute), (end, 0, StageMask::ALL)],
    ] {
        assert_eq!(with(&steps), Err(wrong.to_owned()));
    }
    let twice = with(&[(set, 0, compute), (set, 0, compute)]);
    assert_eq!(twice, Err("invalid plan: event 7 is set twice".to_owned()));
    let host = "invalid plan: step 0: an event that the device sets after host accesses";
    assert_eq!(with(&[(set, 0, StageMask::HOST)]), Err(host.to_owned()));
}

#[test]
fn missing_semaphores_and_memory_are_named() {
    let semaphore = SemaphoreId(0);
    let timeline = Plan {
        semaphores: vec![Semaphore::Timeline],
        steps: vec![
            PlanStep::Signal { queue: QUEUE, semaphore, value: 1 },
            PlanStep::Wait { queue: QUEUE, semaphore, value: 1 },
        ],
        ..plan()
    };
    let feature = plan::Feature::TimelineSemaphore;
    assert_eq!(capabilities().check_plan(&timeline), Err(DeviceError::Unsupported(feature.to_string())));
    assert_eq!(Capabilities { features: vec![feature], ..capabilities() }.check_plan(&timeline), Ok(()));

    let kind = MemoryKind::from_name("nonlocal").unwrap();
    let separate = Plan {
        buffers: vec![buffer(4), Buffer { memory: BufferMemory::Typed(kind), ..buffer(8) }],
        ..plan()
    };
    let lack = DeviceError::Unsupported("memory type without DEVICE_LOCAL".to_owned());
    assert_eq!(capabilities().check_plan(&separate), Err(lack.clone()));
    let shape = ImageShape::OneDimensional { width: 4 };
    let texels = Plan { images: vec![Image { memory: BufferMemory::Typed(kind), ..image(shape) }], ..plan() };
    assert_eq!(capabilities().check_plan(&texels), Err(lack));
    let host = MemoryProperties { host_visible: true, ..MemoryProperties::default() };
    assert_eq!(Capabilities { memory_types: vec![host], ..capabilities() }.check_plan(&separate), Ok(()));
}

/// Returns a plan whose host thread submits a batch, waits for it and reads its result.
fn plan_with_hosts() -> Plan {
    let place = plan::HostPlace { storage: 0, name: 0 };
    let read = HostOperation::Load { register: 0, place, order: None };
    let thread = HostThread {
        acts: vec![HostAct::Submit(0), HostAct::Wait(0), HostAct::Execute(vec![read])],
        registers: 1,
        reports: vec![HostReport::Register(0)],
    };
    let batch = |number| PlanStep::Batch { queue: QUEUE, number };
    Plan {
        buffers: vec![
            buffer(4),
            buffer(4),
            Buffer { memory: BufferMemory::Mapped(MemoryKind::default()), ..buffer(4) },
        ],
        hosts: Some(Hosts {
            threads: vec![thread],
            buffer: BufferId(2),
            batches: vec![BatchStart::Submitted, BatchStart::Early],
            is_in_order: false,
        }),
        steps: vec![
            PlanStep::Hosts { queue: QUEUE },
            batch(0),
            dispatch(1, &[0, 0], 8),
            batch(1),
            dispatch(1, &[0, 0], 8),
            PlanStep::HostsEnd { queue: QUEUE },
        ],
        ..plan()
    }
}

#[test]
fn host_threads_refer_to_their_batches() {
    assert_eq!(plan_with_hosts().validate(), Ok(()));
    let change = |change: &dyn Fn(&mut Plan)| {
        let mut plan = plan_with_hosts();
        change(&mut plan);
        plan
    };
    let acts = |acts: Vec<HostAct>| {
        change(&|plan| {
            if let Some(hosts) = &mut plan.hosts {
                hosts.threads[0].acts = acts.clone();
            }
        })
    };
    let cases = [
        change(&|plan| plan.hosts = None),
        change(&|plan| drop(plan.steps.pop())),
        change(&|plan| drop(plan.steps.drain(3..5))),
        change(&|plan| drop(plan.steps.remove(1))),
        change(&|plan| plan.steps.insert(2, PlanStep::Submit { queue: QUEUE })),
        change(&|plan| plan.buffers[2].memory = BufferMemory::Device),
        acts(vec![]),
        acts(vec![HostAct::Submit(0), HostAct::Submit(0)]),
        acts(vec![HostAct::Submit(0), HostAct::Signal { semaphore: SemaphoreId(0), value: 1 }]),
        change(&|plan| {
            plan.semaphores = vec![Semaphore::Timeline];
            let wait = PlanStep::Wait { queue: QUEUE, semaphore: SemaphoreId(0), value: 1 };
            plan.steps.insert(2, wait);
        }),
        acts(vec![HostAct::Submit(1)]),
        acts(vec![HostAct::Submit(0), HostAct::Wait(7)]),
    ];
    insta::assert_snapshot!(cases.map(|plan| plan.validate().unwrap_err().to_string()).join("\n"));
}

/// Two families transfer a buffer to each other: only its owner uses it, and the first owner gets it back.
#[test]
fn a_buffer_with_an_owner_is_used_only_by_the_owner() {
    let (near, far, buffer) = (QueueId(0), QueueId(1), BufferId(0));
    let fill = |queue| PlanStep::Fill { queue, buffer, value: 1 };
    let release = |queue, to| PlanStep::Release { queue, buffer, to };
    let acquire = |queue, from| PlanStep::Acquire { queue, buffer, from };
    let validate = |steps: &[PlanStep]| {
        let queues = vec![Queue { family: 0 }, Queue { family: 1 }, Queue { family: 1 }];
        let plan = Plan { queues, steps: steps.to_vec(), ..plan() };
        plan.validate().map_err(|error| error.to_string())
    };
    let sound = [
        fill(near),
        release(near, far),
        acquire(far, near),
        fill(far),
        release(far, near),
        acquire(near, far),
    ];
    assert_eq!(validate(&sound), Ok(()));
    assert_eq!(validate(&[fill(near), fill(far)]), Ok(()), "it is shared");
    let without = |number: usize| {
        let mut steps = sound.to_vec();
        steps.remove(number);
        steps
    };
    let cases = [
        without(1),
        without(2),
        without(4),
        without(5),
        sound[..3].to_vec(),
        vec![acquire(far, near)],
        vec![fill(near), release(near, far), fill(near)],
        vec![release(far, QueueId(2))],
        vec![release(near, QueueId(9))],
    ];
    insta::assert_snapshot!(cases.map(|steps| validate(&steps).unwrap_err()).join("\n"));
}
