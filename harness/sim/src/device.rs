//! Implements the device interface: executes plans as submissions of the machine.

mod bind;
mod memory_types;
mod phases;
mod rasterize;

use std::cell::Cell;
use std::sync::LazyLock;
use std::time::Duration;

use plan::{
    BufferId, BufferMemory, Capabilities, Device, DeviceError, Drawing, Feature, HostLayout, Hosts, Identity,
    MemoryProperties, Plan, PlanStep, Prepared, QueueId,
};

use crate::fault::Fault;
use crate::host::HostMachine;
use crate::instruction::LoadError;
use crate::limits::{MAX_WORKGROUP_INVOCATIONS, SUBGROUP_SIZE};
use crate::lower;
use crate::machine::{Launched, Machine, PhaseStatus};
use crate::program::{LANES, Program, ReferencePlace};
use crate::progress::ProgressModel;
use crate::random::Random;
use crate::wave::DispatchState;
use memory_types::{MEMORY_TYPES, memory_type};
use phases::{Phase, build_phases};
use spirv_reader::Stage;

/// The Vulkan features that the machine supports.
static FEATURES: LazyLock<Vec<Feature>> = LazyLock::new(|| {
    #[expect(clippy::expect_used, reason = "the list is a constant, which the tests read")]
    let feature = |name: &str| name.parse().expect("a feature of Vulkan");
    include_str!("../data/features.txt").lines().map(feature).collect()
});

/// Scheduler choices between two reads of the clock.
const CHOICES_PER_SLICE: u32 = 256;
/// Rate, of 256, at which shared caches have room for all lines of consecutive dispatches.
const ROOMY_CACHE_RATE: u32 = 96;
/// The maximal number of choices between two host accesses while a submission is in flight.
const MAX_HOST_PACE: usize = 48;
/// Rate, of 256, at which unordered dispatches of several batches run concurrently.
const OVERLAP_RATE: u32 = 128;
/// Rate, of 256, at which a host thread runs although the device could.
const HOST_THREAD_RATE: u32 = 200;

#[derive(Debug)]
pub struct SimDevice {
    identity: Identity,
    capabilities: Capabilities,
    fault: Fault,
    seed: Cell<u64>,
    /// The progress model that the scheduler honours and does not exceed, if any.
    progress: Option<ProgressModel>,
}

impl SimDevice {
    /// The name of the device in selectors and reports.
    pub const NAME: &'static str = "sim";

    /// Creates a device with a fault; [`Fault::None`] gives a sound one.
    pub fn new(fault: Fault) -> SimDevice {
        let faulty = fault.row().map_or_else(String::new, |row| format!(", fault {}", row.name));
        SimDevice {
            identity: Identity {
                name: SimDevice::NAME.into(),
                device_name: "simulated GPU with weak memory".into(),
                kind: "simulated".into(),
                driver_name: "vk-litmus".into(),
                driver_info: format!("{}{faulty}", env!("CARGO_PKG_VERSION")),
                ..Identity::default()
            },
            capabilities: plan::FeatureMask::from_environment(SimDevice::NAME).unwrap_or_default().apply_to(
                Capabilities {
                    executes: true,
                    is_cpu: true,
                    shares_choices: true,
                    host_threads: true,
                    memory_model: true,
                    device_scope: true,
                    availability_visibility_chains: true,
                    subgroup_size: SUBGROUP_SIZE,
                    subgroup_size_range: (SUBGROUP_SIZE, SUBGROUP_SIZE),
                    full_subgroups: true,
                    subgroups_in_compute: true,
                    max_workgroup_invocations: MAX_WORKGROUP_INVOCATIONS,
                    max_workgroup_size: [MAX_WORKGROUP_INVOCATIONS, MAX_WORKGROUP_INVOCATIONS, 64],
                    max_workgroups: 65_535,
                    max_workgroup_subgroups: MAX_WORKGROUP_INVOCATIONS / SUBGROUP_SIZE,
                    max_workgroup_memory_bytes: 32_768,
                    max_storage_buffer_bytes: 1 << 27,
                    max_storage_buffers: 64,
                    max_push_constant_bytes: 256,
                    compute_queues: vec![2, 2],
                    graphics_queues: vec![2, 2],
                    max_point_size: rasterize::MAX_POINT_SIZE,
                    memory_types: MEMORY_TYPES.to_vec(),
                    features: FEATURES.clone(),
                    ..Capabilities::default()
                },
            ),
            fault,
            seed: Cell::new(0),
            progress: None,
        }
    }

    /// Creates a sound device whose scheduler guarantees exactly a progress model.
    ///
    /// If it finds an infinite schedule, a submission does not end until the host writes to a shared buffer.
    /// A poll ends once the outcome is known.
    pub fn with_progress_model(progress: ProgressModel) -> SimDevice {
        SimDevice { progress: Some(progress), ..SimDevice::new(Fault::None) }
    }

    /// Returns the injected fault.
    pub fn fault(&self) -> Fault {
        self.fault
    }
}

impl Device for SimDevice {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn reseed(&self, seed: u64) {
        self.seed.set(seed);
    }

    fn prepare(&self, plan: &Plan) -> Result<Box<dyn Prepared + '_>, DeviceError> {
        plan.validate()?;
        self.capabilities.check_plan(plan)?;
        Ok(Box::new(SimPrepared::new(self, plan)?))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SubmissionState {
    NeverSubmitted,
    /// Before this phase, or within it.
    InPhase {
        phase: usize,
        started: bool,
    },
    Finished,
}

/// A plan that is prepared for the simulated GPU.
struct SimPrepared<'d> {
    device: &'d SimDevice,
    programs: Vec<Program>,
    steps: Vec<PlanStep>,
    phases: Vec<Phase>,
    /// The plan, if each submission draws a new order of its queues.
    plan: Option<Plan>,
    /// The queue family of each queue.
    families: Vec<u32>,
    /// The first address and the number of words of each buffer, then of each image.
    buffers: Vec<(u32, u32)>,
    /// The memory properties of each buffer of the plan; all memory behaves the same.
    memory_types: Vec<Option<MemoryProperties>>,
    /// By buffer: true if the host shares it.
    shared_buffers: Vec<bool>,
    machine: Machine,
    dispatches: Vec<DispatchState>,
    layout: bind::SubmissionLayout,
    state: SubmissionState,
    submissions: u64,
    /// The host threads with their program and state.
    hosts: Option<Hosts>,
    host_layout: HostLayout,
    host_machine: Option<HostMachine>,
    /// The phase that runs next to the host threads, and the batches that it belongs to.
    running_batch: Option<(Vec<u32>, Phase)>,
}

impl<'d> SimPrepared<'d> {
    fn new(device: &'d SimDevice, plan: &Plan) -> Result<SimPrepared<'d>, DeviceError> {
        let mut programs = Vec::with_capacity(plan.kernels.len());
        // Vertex programs that also take part in the test follow the kernels.
        let mut vertex_programs = Vec::new();
        for (number, kernel) in plan.kernels.iter().enumerate() {
            let to_device_error = |error| match error {
                lacks @ LoadError::Unsupported(_) => DeviceError::Unsupported(lacks.to_string()),
                wrong @ LoadError::Malformed { .. } => {
                    DeviceError::InvalidPlan(format!("kernel {number}: {wrong}"))
                }
            };
            let mut program = lower::lower_module(&kernel.words, kernel.interface.as_ref(), device.fault)
                .map_err(to_device_error)?;
            let of_plan = match &kernel.stage {
                plan::KernelStage::Compute => Stage::Compute,
                plan::KernelStage::Vertex => Stage::Vertex,
                plan::KernelStage::Mesh => Stage::Mesh,
                plan::KernelStage::Task { mesh_shader: mesh } => {
                    // No step launches this mesh shader, so it never runs.
                    if lower::lower_module(mesh, None, device.fault).map_err(to_device_error)?.stage
                        != Stage::Mesh
                    {
                        let why = format!("kernel {number}: the next stage is not a mesh shader");
                        return Err(DeviceError::InvalidPlan(why));
                    }
                    Stage::Task
                }
                plan::KernelStage::Fragment { vertex_shader: positions } => {
                    let positions =
                        lower::lower_module(positions, None, device.fault).map_err(to_device_error)?;
                    if positions.stage != Stage::Vertex || !positions.memory.is_empty() {
                        let why = format!("kernel {number}: its vertex shader has another stage");
                        return Err(DeviceError::InvalidPlan(why));
                    }
                    program.positions = Some(Box::new(positions));
                    Stage::Fragment
                }
                plan::KernelStage::VertexAndFragment { vertex_shader: vertex } => {
                    let mut vertices =
                        lower::lower_module(vertex, None, device.fault).map_err(to_device_error)?;
                    if vertices.stage != Stage::Vertex {
                        let why = format!("kernel {number}: its vertex shader has another stage");
                        return Err(DeviceError::InvalidPlan(why));
                    }
                    bind::resolve_references(&mut vertices, kernel, plan)?;
                    program.vertex_program = Some(plan.kernels.len() + vertex_programs.len());
                    vertex_programs.push(vertices);
                    Stage::Fragment
                }
            };
            if program.stage != of_plan {
                let why = format!("kernel {number}: an entry point of another stage than the kernel");
                return Err(DeviceError::InvalidPlan(why));
            }
            let bytes = u64::from(program.workgroup_words) * 4;
            if bytes > device.capabilities.max_workgroup_memory_bytes.into() {
                return Err(DeviceError::Unsupported(format!("{bytes} bytes of workgroup memory")));
            }
            bind::resolve_references(&mut program, kernel, plan)?;
            programs.push(program);
        }
        programs.append(&mut vertex_programs);
        let images = plan.images.iter().map(|image| image.shape.texel_count());
        let mut buffers = Vec::with_capacity(plan.buffers.len() + plan.images.len());
        // Each buffer starts at an even word, so that eight-byte accesses are aligned as in any other buffer.
        let mut next: u32 = 2;
        for words in plan.buffers.iter().map(|buffer| buffer.words).chain(images) {
            let words = u32::try_from(words).ok();
            let after = words.and_then(|words| next.checked_add(words)?.checked_next_multiple_of(2));
            let (Some(words), Some(after)) = (words, after.filter(|after| *after < 1 << 30)) else {
                return Err(DeviceError::OutOfMemory("the buffers of a plan"));
            };
            buffers.push((next, words));
            next = after;
        }
        let mut machine = Machine::new(device.fault);
        machine.memory.words = vec![0; next as usize];
        Ok(SimPrepared {
            device,
            programs,
            phases: build_phases(plan, &buffers, device.fault, &mut Random::new(0)),
            plan: phases::has_random_order(plan).then(|| plan.clone()),
            families: plan.queues.iter().map(|queue| queue.family).collect(),
            steps: plan.steps.clone(),
            shared_buffers: plan
                .buffers
                .iter()
                .map(|buffer| matches!(buffer.memory, BufferMemory::Shared | BufferMemory::Readback))
                .collect(),
            buffers,
            memory_types: plan.buffers.iter().map(|buffer| memory_type(buffer.memory)).collect(),
            machine,
            dispatches: Vec::new(),
            layout: bind::SubmissionLayout::default(),
            state: SubmissionState::NeverSubmitted,
            submissions: 0,
            hosts: plan.hosts.clone(),
            host_layout: HostLayout::default(),
            host_machine: None,
            running_batch: None,
        })
    }

    /// Advances the submission by about `choices` scheduler choices.
    fn advance(&mut self, choices: u32) -> Result<(), DeviceError> {
        let SubmissionState::InPhase { phase, started } = self.state else { return Ok(()) };
        // Moved out, since performing a phase borrows the whole device.
        let phases = std::mem::take(&mut self.phases);
        let result = self.advance_phase(&phases, phase, started, choices);
        self.phases = phases;
        result
    }

    fn advance_phase(
        &mut self,
        phases: &[Phase],
        phase: usize,
        started: bool,
        choices: u32,
    ) -> Result<(), DeviceError> {
        let Some(current) = phases.get(phase) else {
            // The end of a submission makes all writes available and visible.
            self.machine.memory.write_back_all();
            self.machine.memory.invalidate_all();
            self.state = SubmissionState::Finished;
            return Ok(());
        };
        self.state = match self.perform_phase(current, started, choices) {
            Ok(true) => SubmissionState::InPhase { phase: phase + 1, started: false },
            Ok(false) => SubmissionState::InPhase { phase, started: true },
            Err(error) => {
                self.state = SubmissionState::Finished;
                return Err(error);
            }
        };
        Ok(())
    }

    /// Advances a phase; returns true if it has ended.
    fn perform_phase(&mut self, phase: &Phase, started: bool, choices: u32) -> Result<bool, DeviceError> {
        match phase {
            Phase::Run(steps) => {
                let launched = Launched { programs: &self.programs, dispatches: &self.dispatches };
                if !started {
                    // A progress model schedules individual invocations, so each is a separate wave.
                    let max_lanes = if self.device.progress.is_some() { 1 } else { LANES };
                    let waves = self.layout.build_waves(steps, launched, &mut self.machine, max_lanes);
                    let cached = self.layout.cached.clone();
                    self.machine.start_phase(waves, cached);
                    if let Some(progress) = self.device.progress {
                        let shared = self.shared_references();
                        self.machine.begin_scheduled_phase(progress, shared, launched);
                    }
                }
                match self.machine.advance_phase(launched, choices) {
                    PhaseStatus::Running => return Ok(false),
                    PhaseStatus::Ended => {}
                    PhaseStatus::OutOfBudget => return Err(DeviceError::StepBudget),
                }
            }
            Phase::Fill(buffer, value) => {
                let (first, words) = self.memory_range(*buffer);
                let value = *value;
                if let Some(words) = self.machine.memory.words.get_mut(first..first + words) {
                    words.fill(value);
                }
            }
            Phase::Copy { from, to, words } => {
                let ((first, _), (target, _)) =
                    (self.memory_range(BufferId(*from)), self.memory_range(BufferId(*to)));
                let words = *words as usize;
                if first.max(target) + words <= self.machine.memory.words.len() {
                    self.machine.memory.words.copy_within(first..first + words, target);
                }
            }
            Phase::Order { available, visible } => {
                if *available && self.device.fault != Fault::AvailableDeviceNothing {
                    self.machine.memory.write_back_all();
                }
                if *visible && self.device.fault != Fault::VisibleDeviceNothing {
                    self.machine.memory.invalidate_all();
                }
            }
            Phase::Domain { to_host } => {
                let Some(host) = &mut self.host_machine else { return Ok(true) };
                match (to_host, self.device.fault) {
                    (true, Fault::HostReadIgnored) | (false, Fault::HostWriteIgnored) => {}
                    (true, _) => host.invalidate_domain(),
                    (false, _) => host.write_back_domain(&mut self.machine.memory),
                }
            }
            Phase::Signal(semaphore, value) => {
                if let Some(host) = &mut self.host_machine {
                    host.signal_semaphore(*semaphore, *value);
                }
            }
            // The host loop waits before it starts this batch again.
            Phase::Await(..) => {}
            Phase::Hosts(batches) => return self.interleave_with_hosts(batches, started, choices),
        }
        Ok(true)
    }

    /// Interleaves host threads with the batches that they submit, at random.
    fn interleave_with_hosts(
        &mut self,
        batches: &[(QueueId, Vec<Phase>)],
        started: bool,
        choices: u32,
    ) -> Result<bool, DeviceError> {
        if !started {
            let Some(hosts) = &self.hosts else { return Ok(true) };
            let (first, _) = self.memory_range(hosts.buffer);
            let memory = self.memory_types.get(hosts.buffer.0 as usize).copied().flatten();
            let coherent = memory.is_none_or(|memory| memory.host_coherent);
            let queues = batches.iter().map(|(queue, _)| *queue).collect();
            let mut host =
                HostMachine::new(hosts, queues, self.host_layout, first as u32, coherent, self.device.fault);
            host.begin_submission(&mut self.machine.memory, &mut self.machine.random);
            (self.host_machine, self.running_batch) = (Some(host), None);
        }
        for _ in 0..choices {
            let Some(host) = &mut self.host_machine else { return Ok(true) };
            // A phase that has begun continues first; otherwise any queue whose next phase can begin is
            // eligible.
            let phase = |number: u32, at: usize| batches.get(number as usize)?.1.get(at);
            let ready = if self.running_batch.is_some() {
                Vec::new()
            } else {
                host.ready_batches(|number, at| match phase(number, at)? {
                    Phase::Await(semaphore, value) => Some((*semaphore, *value)),
                    _ => None,
                })
            };
            let busy = self.running_batch.is_some() || !ready.is_empty();
            if host.has_ended() && host.is_idle() {
                host.end_submission(&mut self.machine.memory);
                return Ok(true);
            }
            if !busy || !host.has_ended() && self.machine.random.chance(HOST_THREAD_RATE) {
                let moved = host.step_threads(&mut self.machine.memory, &mut self.machine.random, busy);
                if !moved && !busy {
                    // No thread and no queue can advance, so the plan never completes.
                    return Err(DeviceError::StepBudget);
                }
                continue;
            }
            let begun = self.running_batch.is_some();
            if !begun {
                let chosen = if ready.len() > 1 { self.machine.random.below(ready.len()) } else { 0 };
                let Some(number) = ready.get(chosen).copied() else { continue };
                let Some(next) = phase(number, host.phase_of(number)) else {
                    if self.device.fault != Fault::FencePublishesNothing {
                        self.machine.memory.write_back_all();
                    }
                    host.end_batch(number);
                    continue;
                };
                // Unordered dispatches run concurrently at a certain rate.
                let is_last = |number: u32, at: usize| phase(number, at + 1).is_none();
                let runs = |number: u32, at: usize| matches!(phase(number, at), Some(Phase::Run(_)));
                let mut concurrent = match next {
                    Phase::Run(_) => host.concurrent_batches(number, runs, is_last),
                    _ => vec![number],
                };
                if concurrent.len() > 1 && !self.machine.random.chance(OVERLAP_RATE) {
                    concurrent.truncate(1);
                }
                let steps =
                    concurrent.iter().filter_map(|number| match phase(*number, host.phase_of(*number)) {
                        Some(Phase::Run(steps)) => Some(steps.as_slice()),
                        _ => None,
                    });
                let steps: Vec<usize> = steps.flatten().copied().collect();
                let next = if steps.is_empty() { next.clone() } else { Phase::Run(steps) };
                self.running_batch = Some((concurrent, next));
            }
            let Some((numbers, phase)) = self.running_batch.take() else { continue };
            let pace = match phase {
                Phase::Await(..) | Phase::Signal(..) => 1,
                _ => 1 + self.machine.random.below(MAX_HOST_PACE) as u32,
            };
            if !self.perform_phase(&phase, begun, pace)? {
                self.running_batch = Some((numbers, phase));
            } else if let Some(host) = &mut self.host_machine {
                numbers.into_iter().for_each(|number| host.end_phase(number));
            }
        }
        Ok(false)
    }

    /// Returns, by dispatch and reference, whether the host shares it.
    fn shared_references(&self) -> Vec<Vec<bool>> {
        let launched = self.steps.iter().filter_map(bind::kernel_and_bindings);
        launched
            .filter_map(|(kernel, bindings)| Some((self.programs.get(kernel)?, bindings)))
            .flat_map(|(program, bindings)| {
                let vertex_program = program.vertex_program.and_then(|number| self.programs.get(number));
                std::iter::once(program).chain(vertex_program).map(move |program| (program, bindings))
            })
            .map(|(program, bindings)| {
                let is_shared = |place: ReferencePlace| match place {
                    ReferencePlace::Binding(binding) => {
                        let buffer = bindings.get(binding as usize).map(|buffer| buffer.0 as usize);
                        buffer.and_then(|buffer| self.shared_buffers.get(buffer)).copied().unwrap_or(false)
                    }
                    ReferencePlace::Fixed { memory, .. } => {
                        self.shared_buffers.get(memory as usize).copied().unwrap_or(false)
                    }
                    // The host cannot reach images, and kernels that run next to it have no addresses.
                    ReferencePlace::Image(_) | ReferencePlace::Address(_) | ReferencePlace::Workgroup(..) => {
                        false
                    }
                };
                program.references.iter().map(|reference| is_shared(reference.place)).collect()
            })
            .collect()
    }

    fn memory_range(&self, buffer: BufferId) -> (usize, usize) {
        let (first, words) = self.buffers.get(buffer.0 as usize).copied().unwrap_or((0, 0));
        (first as usize, words as usize)
    }

    fn idle_memory_range(&self, buffer: BufferId) -> Result<(usize, usize), DeviceError> {
        if matches!(self.state, SubmissionState::InPhase { .. }) {
            return Err(DeviceError::Busy);
        }
        let (first, words) = self.memory_range(buffer);
        if words == 0 {
            return Err(DeviceError::InvalidPlan(format!("no buffer {}", buffer.0)));
        }
        Ok((first, words))
    }

    /// Returns the address of a word for the host, after some concurrent device work.
    fn host_address(&mut self, buffer: BufferId, word: u64) -> Result<u32, DeviceError> {
        if matches!(self.state, SubmissionState::InPhase { .. }) {
            let pace = self.machine.random.below(MAX_HOST_PACE) as u32;
            self.advance(pace)?;
        }
        let (first, words) = self.buffers.get(buffer.0 as usize).copied().unwrap_or((0, 0));
        match u32::try_from(word) {
            Ok(word) if word < words => Ok(first + word),
            _ => Err(DeviceError::InvalidPlan(format!("buffer {} has no word {word}", buffer.0))),
        }
    }
}

impl Prepared for SimPrepared<'_> {
    fn memory_properties(&self, buffer: BufferId) -> Option<MemoryProperties> {
        self.memory_types.get(buffer.0 as usize).copied().flatten()
    }

    fn submit(&mut self) -> Result<(), DeviceError> {
        if matches!(self.state, SubmissionState::InPhase { .. }) {
            return Err(DeviceError::Busy);
        }
        let mut random = Random::new(self.device.seed.get());
        // Submissions of one plan differ, but reproducibly.
        let seed = random.next_word() ^ self.submissions.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.submissions += 1;
        if let Some(plan) = &self.plan {
            self.phases = build_phases(plan, &self.buffers, self.device.fault, &mut Random::new(seed));
        }
        let is_visible = |memory: &Option<MemoryProperties>| memory.is_some_and(|memory| memory.host_visible);
        let host_visible: Vec<bool> = self.memory_types.iter().map(is_visible).collect();
        let buffers = (self.buffers.as_slice(), host_visible.as_slice());
        let bound = bind::bind_submission(
            &self.steps,
            &self.families,
            &self.programs,
            buffers,
            &mut self.machine,
            seed,
        )?;
        (self.dispatches, self.layout) = bound;
        // A later dispatch finds stale lines of an earlier one only if they are still cached.
        let mut steps = self.steps.iter();
        let is_ordering = |step: &PlanStep| {
            matches!(step, PlanStep::Dependency { .. } | PlanStep::Signal { .. } | PlanStep::Hosts { .. })
        };
        let in_order = steps.any(is_ordering);
        self.machine.roomy = in_order && Random::new(!seed).chance(ROOMY_CACHE_RATE);
        if self.device.fault == Fault::ZeroInitMissing {
            self.layout.corrupt_memory(&self.dispatches, &mut self.machine);
        }
        self.state = SubmissionState::InPhase { phase: 0, started: false };
        Ok(())
    }

    fn poll(&mut self, timeout: Duration) -> Result<plan::Progress, DeviceError> {
        if self.state == SubmissionState::NeverSubmitted {
            return Err(DeviceError::InvalidPlan("nothing was submitted".to_owned()));
        }
        if self.device.fault == Fault::DeviceLost && self.submissions.is_multiple_of(4) {
            self.state = SubmissionState::Finished;
            return Err(DeviceError::DeviceLost("a submission"));
        }
        let since = plan::Timestamp::now();
        loop {
            if self.state == SubmissionState::Finished {
                return Ok(plan::Progress::Finished { device_time: None });
            }
            self.advance(CHOICES_PER_SLICE)?;
            // A timeout proves nothing under a progress model: its scheduler recognizes infinite schedules.
            let may_be_infinite = self.device.progress.is_some() && !self.machine.has_infinite_schedule();
            if self.state != SubmissionState::Finished && !may_be_infinite && since.elapsed() >= timeout {
                return Ok(plan::Progress::Running);
            }
        }
    }

    fn set_push_constants(&mut self, step: usize, bytes: &[u8]) -> Result<(), DeviceError> {
        match self.steps.get_mut(step) {
            Some(PlanStep::Dispatch { push_constants, .. } | PlanStep::Draw { push_constants, .. })
                if push_constants.len() == bytes.len() =>
            {
                push_constants.copy_from_slice(bytes);
                Ok(())
            }
            Some(PlanStep::Dispatch { push_constants, .. } | PlanStep::Draw { push_constants, .. }) => {
                let (given, taken) = (bytes.len(), push_constants.len());
                Err(DeviceError::InvalidPlan(format!("{given} bytes of push constants for {taken}")))
            }
            _ => Err(DeviceError::InvalidPlan(format!("step {step} is neither a dispatch nor a draw"))),
        }
    }

    fn set_workgroups(&mut self, step: usize, workgroups: u32) -> Result<(), DeviceError> {
        let most = self.device.capabilities.max_workgroups;
        let Some(PlanStep::Dispatch { workgroups: old, .. }) = self.steps.get_mut(step) else {
            return Err(DeviceError::InvalidPlan(format!("step {step} is not a dispatch")));
        };
        match workgroups {
            0 => Err(DeviceError::InvalidPlan("a dispatch without workgroups".to_owned())),
            more if more > most => {
                Err(DeviceError::Unsupported(format!("{more} workgroups in a dispatch (it has {most})")))
            }
            new => {
                *old = new;
                Ok(())
            }
        }
    }

    fn set_drawing(&mut self, step: usize, drawing: Drawing) -> Result<(), DeviceError> {
        let Some(PlanStep::Draw { drawing: old, .. }) = self.steps.get_mut(step) else {
            return Err(DeviceError::InvalidPlan(format!("step {step} is not a draw")));
        };
        drawing.validate().map_err(DeviceError::InvalidPlan)?;
        *old = drawing;
        Ok(())
    }

    fn set_host_layout(&mut self, layout: HostLayout) -> Result<(), DeviceError> {
        let Some(hosts) = &self.hosts else {
            return Err(DeviceError::InvalidPlan("no host threads".to_owned()));
        };
        let (_, words) = self.memory_range(hosts.buffer);
        if layout.word_index(layout.instances, 0) > words as u64 {
            return Err(DeviceError::InvalidPlan(
                "host threads access memory outside their buffer".to_owned(),
            ));
        }
        self.host_layout = layout;
        Ok(())
    }

    fn host_reports(&mut self) -> Result<&[u32], DeviceError> {
        if matches!(self.state, SubmissionState::InPhase { .. }) {
            return Err(DeviceError::Busy);
        }
        Ok(self.host_machine.as_ref().map_or(&[], |host| host.reported.as_slice()))
    }

    fn read(&mut self, buffer: BufferId) -> Result<&[u32], DeviceError> {
        let (first, words) = self.idle_memory_range(buffer)?;
        let words = self.machine.memory.words.get(first..first + words);
        words.ok_or_else(|| DeviceError::InvalidPlan(format!("no buffer {}", buffer.0)))
    }

    fn write(&mut self, buffer: BufferId) -> Result<&mut [u32], DeviceError> {
        let (first, words) = self.idle_memory_range(buffer)?;
        let words = self.machine.memory.words.get_mut(first..first + words);
        words.ok_or_else(|| DeviceError::InvalidPlan(format!("no buffer {}", buffer.0)))
    }

    fn load(&mut self, buffer: BufferId, word: u64) -> Result<u32, DeviceError> {
        let address = self.host_address(buffer, word)?;
        Ok(self.machine.memory.peek(address))
    }

    fn store(&mut self, buffer: BufferId, word: u64, value: u32) -> Result<(), DeviceError> {
        let address = self.host_address(buffer, word)?;
        self.machine.memory.poke(address, value);
        self.machine.release_all();
        Ok(())
    }
}
