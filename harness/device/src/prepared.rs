//! A prepared plan: its memory, pipelines and recorded commands, and the submission in flight.
//!
//! Long because creation, changes, submission and reading share one set of Vulkan objects.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ash::vk;
use plan::{
    BufferId, BufferMemory, DependencyKind, DeviceError, Drawing, HostLayout, ImageShape, Kernel,
    MemoryProperties, Plan, PlanStep, Prepared, Progress, QueueId, StageMask,
};

use crate::clock::wait_until;
use crate::draw::RenderTarget;
use crate::error::call_error;
use crate::gpu::Gpu;
use crate::hosts::HostRun;
use crate::image::DeviceImage;
use crate::mark::StageMarks;
use crate::memory::DeviceBuffer;
use crate::pipeline::{BindingSlot, Pipeline, binding_slots, descriptor_type};
use crate::queue::{PreparedQueue, assign_queues};
use crate::record::{COPY_MARKER, Recorder, record_copy_out};
use crate::submission::{Submission, host_stage, split_into_submissions};
use crate::sync::{Semaphores, create_event};

/// The timeout of a copy to the host in nanoseconds; other work of the queue comes first.
const FETCH_TIMEOUT_NS: u64 = 10_000_000_000;

/// A plan on a device.
///
/// Poll a submission to its end before dropping this. If dropped in flight, all objects that the device may
/// still use are leaked, including the device.
pub(crate) struct VulkanPrepared<'d> {
    gpu: &'d Gpu,
    steps: Vec<PlanStep>,
    memory: Vec<BufferMemory>,
    buffers: Vec<DeviceBuffer>,
    staging: Vec<Option<DeviceBuffer>>,
    pipelines: Vec<Arc<Pipeline>>,
    kernels: Vec<Kernel>,
    images: Vec<DeviceImage>,
    image_types: Vec<vk::DescriptorType>,
    /// The samplers of all descriptors.
    samplers: Vec<vk::Sampler>,
    descriptor_pool: vk::DescriptorPool,
    /// Descriptor sets by step index.
    sets: Vec<Vec<vk::DescriptorSet>>,
    queues: Vec<PreparedQueue>,
    semaphores: Semaphores,
    /// Host threads, and the index of the host wait at which they begin.
    host_run: Option<(usize, HostRun)>,
    /// Events by step index; null for other steps.
    events: Vec<vk::Event>,
    /// Framebuffers by step index.
    render_targets: Vec<RenderTarget>,
    /// The graphics stages on each queue of the plan.
    graphics: Vec<StageMask>,
    submissions: Vec<Submission>,
    marks: StageMarks,
    /// The buffer of the last [`Prepared::fetch`], and its copy commands.
    fetch_buffer: Option<(DeviceBuffer, vk::CommandBuffer)>,
    /// The words that the host read last.
    read_words: Vec<u32>,
    state: PlanState,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum PlanState {
    NeverSubmitted,
    /// All submissions up to this host wait, counted from 0, were submitted.
    InFlight {
        stage: usize,
    },
    Finished(Option<Duration>),
}

impl<'d> VulkanPrepared<'d> {
    /// Creates everything; the plan is valid and within the device's capabilities.
    pub(crate) fn new(gpu: &'d Gpu, plan: &Plan) -> Result<VulkanPrepared<'d>, DeviceError> {
        // Created objects are stored in the value immediately, so that an error destroys them.
        let mut prepared = VulkanPrepared {
            gpu,
            steps: plan.steps.clone(),
            memory: plan.buffers.iter().map(|buffer| buffer.memory).collect(),
            buffers: Vec::new(),
            staging: Vec::new(),
            pipelines: Vec::new(),
            kernels: plan.kernels.clone(),
            images: Vec::new(),
            image_types: plan.images.iter().map(descriptor_type).collect(),
            samplers: Vec::new(),
            descriptor_pool: vk::DescriptorPool::null(),
            sets: vec![Vec::new(); plan.steps.len()],
            queues: Vec::new(),
            semaphores: Semaphores::default(),
            host_run: host_stage(plan).zip(plan.hosts.as_ref().map(HostRun::new)),
            events: vec![vk::Event::null(); plan.steps.len()],
            render_targets: vec![RenderTarget::default(); plan.steps.len()],
            graphics: (0..)
                .take(plan.queues.len())
                .map(|queue| plan.graphics_stages(QueueId(queue)))
                .collect(),
            submissions: split_into_submissions(plan),
            marks: StageMarks::default(),
            fetch_buffer: None,
            read_words: Vec::new(),
            state: PlanState::NeverSubmitted,
        };
        let queues = plan.queues.iter().zip(&prepared.graphics);
        let draws = queues.filter_map(|(queue, own)| (*own != StageMask::NONE).then_some(queue.family));
        let places = assign_queues(&plan.queues, &draws.collect::<Vec<u32>>(), &gpu.families)?;
        let mut families: Vec<u32> = places.iter().map(|place| place.family.index).collect();
        families.sort_unstable();
        families.dedup();
        for (index, buffer) in (0..).map(BufferId).zip(&plan.buffers) {
            let sharing = if plan.has_owner(index) { &[][..] } else { &families };
            prepared.buffers.push(gpu.heap.create_buffer(
                buffer.words,
                buffer.memory,
                sharing,
                extra_usage(plan, index),
                buffer.name,
            )?);
        }
        for image in &plan.images {
            prepared.images.push(gpu.heap.create_image(image, &prepared.buffers, &families)?);
        }
        for (index, buffer) in (0..).zip(&plan.buffers) {
            let read = plan
                .steps
                .iter()
                .any(|step| matches!(step, PlanStep::ToHost { buffer, .. } if *buffer == BufferId(index)));
            let staging = if read && buffer.memory == BufferMemory::Device && gpu.heap.needs_staging {
                Some(gpu.heap.create_buffer(
                    buffer.words,
                    BufferMemory::Readback,
                    &families,
                    vk::BufferUsageFlags::empty(),
                    buffer.name,
                )?)
            } else {
                None
            };
            prepared.staging.push(staging);
        }
        prepared.pipelines = gpu.pipelines.for_kernels(&plan.kernels, &plan.images)?;
        prepared.create_descriptor_sets()?;
        for place in places {
            // Pushed before it is complete, for the same reason.
            prepared.queues.push(PreparedQueue::new(place));
            if let Some(queue) = prepared.queues.last_mut() {
                queue.create(&gpu.raw)?;
            }
        }
        for submission in &mut prepared.submissions {
            let Some(queue) = prepared.queues.get_mut(submission.queue) else { continue };
            for recording in &mut submission.recordings {
                recording.commands = queue.allocate_commands(&gpu.raw)?;
            }
        }
        let last = prepared.last_stage();
        prepared.marks.create(gpu, &mut prepared.submissions, last, &families)?;
        prepared.semaphores.create(&gpu.raw, plan)?;
        if let Some((_, host_run)) = &mut prepared.host_run {
            host_run.create(&gpu.raw)?;
        }
        for (step, event) in plan.steps.iter().zip(&mut prepared.events) {
            if let PlanStep::Dependency { kind: DependencyKind::Event | DependencyKind::Set(_), .. } = step {
                *event = create_event(&gpu.raw)?;
            }
        }
        prepared.record_stale()?;
        Ok(prepared)
    }

    fn kernel_slots(&self, kernel: usize) -> Vec<BindingSlot> {
        let Some(kernel) = self.kernels.get(kernel) else { return Vec::new() };
        let types = kernel.images.iter().filter_map(|image| self.image_types.get(image.0 as usize));
        binding_slots(kernel, types.copied())
    }

    fn create_descriptor_sets(&mut self) -> Result<(), DeviceError> {
        let raw = &self.gpu.raw;
        let mut counts: BTreeMap<vk::DescriptorType, u32> = BTreeMap::new();
        let mut sets = 0;
        for (_, kernel, _) in kernel_uses(&self.steps) {
            let slots = self.kernel_slots(kernel);
            if slots.is_empty() {
                continue;
            }
            sets += self.pipelines.get(kernel).map_or(0, |pipeline| pipeline.set_layouts.len() as u32);
            for slot in slots {
                *counts.entry(slot.ty).or_default() += slot.count;
            }
        }
        if sets == 0 {
            return Ok(());
        }
        let sizes: Vec<_> = counts
            .into_iter()
            .map(|(ty, count)| vk::DescriptorPoolSize::default().ty(ty).descriptor_count(count))
            .collect();
        let info = vk::DescriptorPoolCreateInfo::default().max_sets(sets).pool_sizes(&sizes);
        // SAFETY: the device lives.
        self.descriptor_pool = unsafe { raw.create_descriptor_pool(&info, None) }
            .map_err(call_error("vkCreateDescriptorPool"))?;
        for (number, kernel, bindings) in kernel_uses(&self.steps) {
            let slots = self.kernel_slots(kernel);
            let Some(pipeline) = self.pipelines.get(kernel).filter(|_| !slots.is_empty()) else { continue };
            let info = vk::DescriptorSetAllocateInfo::default()
                .descriptor_pool(self.descriptor_pool)
                .set_layouts(&pipeline.set_layouts);
            // SAFETY: pool and layouts are this device's; the pool has room for every dispatch.
            let allocated = unsafe { raw.allocate_descriptor_sets(&info) }
                .map_err(call_error("vkAllocateDescriptorSets"))?;
            let mut buffers = bindings
                .iter()
                .filter_map(|buffer| self.buffers.get(buffer.0 as usize))
                .map(|buffer| vk::DescriptorBufferInfo::default().buffer(buffer.raw).range(vk::WHOLE_SIZE));
            let mut images = self
                .kernels
                .get(kernel)
                .into_iter()
                .flat_map(|kernel| &kernel.images)
                .filter_map(|image| self.images.get(image.0 as usize));
            let interface = self.kernels.get(kernel).and_then(|kernel| kernel.interface.as_ref());
            let mut samplers = interface.into_iter().flat_map(|interface| &interface.samplers);
            let mut infos = Vec::with_capacity(slots.len());
            for slot in &slots {
                infos.push(match slot.ty {
                    vk::DescriptorType::STORAGE_BUFFER | vk::DescriptorType::UNIFORM_BUFFER => {
                        DescriptorInfo::Buffers(buffers.by_ref().take(slot.count as usize).collect())
                    }
                    vk::DescriptorType::SAMPLER => {
                        let Some((_, state)) = samplers.next() else { continue };
                        let sampler = self.gpu.heap.create_sampler(*state)?;
                        self.samplers.push(sampler);
                        DescriptorInfo::Image([vk::DescriptorImageInfo::default().sampler(sampler)])
                    }
                    vk::DescriptorType::STORAGE_TEXEL_BUFFER => {
                        let Some(image) = images.next() else { continue };
                        DescriptorInfo::Texels([image.buffer_view])
                    }
                    _ => {
                        let Some(image) = images.next() else { continue };
                        let view = vk::DescriptorImageInfo::default()
                            .image_view(image.view)
                            .sampler(image.sampler)
                            .image_layout(vk::ImageLayout::GENERAL);
                        DescriptorInfo::Image([view])
                    }
                });
            }
            let writes: Vec<_> = slots
                .iter()
                .zip(&infos)
                .map(|(slot, info)| {
                    let set = allocated.get(slot.set as usize).copied().unwrap_or_default();
                    let write = vk::WriteDescriptorSet::default()
                        .dst_set(set)
                        .dst_binding(slot.binding)
                        .descriptor_type(slot.ty);
                    match info {
                        DescriptorInfo::Buffers(infos) => write.buffer_info(infos),
                        DescriptorInfo::Image(info) => write.image_info(info),
                        DescriptorInfo::Texels(view) => write.texel_buffer_view(view),
                    }
                })
                .collect();
            // SAFETY: the sets are new, so nothing uses them; their layouts have these bindings, and buffers and images live.
            unsafe { raw.update_descriptor_sets(&writes, &[]) };
            if let Some(slot) = self.sets.get_mut(number) {
                *slot = allocated;
            }
        }
        Ok(())
    }

    /// Records stale command buffers. Nothing may be in flight.
    fn record_stale(&mut self) -> Result<(), DeviceError> {
        for (step, target) in self.steps.iter().zip(&mut self.render_targets) {
            let (kernel, extent) = match step {
                PlanStep::Draw { kernel, drawing, .. } => (kernel, drawing.extent),
                // Workgroups of a graphics stage, without rasterization.
                PlanStep::Dispatch { kernel, .. } => (kernel, (1, 1)),
                _ => continue,
            };
            let pipeline = self.pipelines.get(kernel.0 as usize);
            if let Some(pipeline) = pipeline.filter(|own| own.render_pass != vk::RenderPass::null()) {
                target.resize(&self.gpu.raw, pipeline.render_pass, extent)?;
            }
        }
        let families: Vec<u32> = self.queues.iter().map(PreparedQueue::family_index).collect();
        let recorder = Recorder {
            heap: &self.gpu.heap,
            steps: &self.steps,
            buffers: &self.buffers,
            staging: &self.staging,
            pipelines: &self.pipelines,
            kernels: &self.kernels,
            images: &self.images,
            sets: &self.sets,
            events: &self.events,
            render_targets: &self.render_targets,
            graphics: &self.graphics,
            mesh: self.gpu.mesh.as_ref(),
            dependency_recorder: &self.gpu.dependency_recorder,
            marks: &self.marks,
            families: &families,
        };
        for submission in &mut self.submissions {
            let clock = self.queues.get(submission.queue).and_then(|queue| queue.clock);
            for recording in submission.recordings.iter_mut().filter(|recording| recording.is_stale) {
                recorder.record(recording, clock)?;
                recording.is_stale = false;
            }
        }
        Ok(())
    }

    /// Submits the work between two host waits. Nothing of it is in flight.
    fn submit_stage(&mut self, stage: usize) -> Result<(), DeviceError> {
        let raw = &self.gpu.raw;
        if stage == 0 {
            self.semaphores.begin_submission();
            for event in self.events.iter().filter(|event| **event != vk::Event::null()) {
                // SAFETY: the event is this device's, and no submission that uses it is in flight.
                unsafe { raw.reset_event(*event) }.map_err(call_error("vkResetEvent"))?;
            }
        }
        let fences = self.stage_fences(stage);
        if !fences.is_empty() {
            // SAFETY: no submission is in flight, so no fence is in use.
            unsafe { raw.reset_fences(&fences) }.map_err(call_error("vkResetFences"))?;
        }
        if let Some((_, host_run)) = self.host_run.as_mut().filter(|(own, _)| *own == stage) {
            let buffer =
                self.buffers.get(host_run.buffer()).and_then(|buffer| self.gpu.heap.mapped_memory(buffer));
            let memory = buffer.ok_or_else(|| {
                DeviceError::InvalidPlan("host threads with memory that they cannot access".to_owned())
            })?;
            return host_run.begin_submission(
                self.gpu,
                memory,
                &self.queues,
                &self.submissions,
                &self.semaphores,
            );
        }
        self.marks.clear(&self.submissions, stage);
        let mut submitted = stage > 0;
        for submission in self.submissions.iter().filter(|submission| submission.stage == stage) {
            let Some(queue) = self.queues.get(submission.queue) else { continue };
            let commands: Vec<_> = submission.recordings.iter().map(|recording| recording.commands).collect();
            let fence = if submission.is_fenced { queue.fence } else { vk::Fence::null() };
            let guard = self.gpu.lock_submission();
            let result = self.semaphores.submit(&self.gpu.raw, queue.raw, submission, &commands, fence);
            drop(guard);
            if let Err(result) = result {
                if submitted || result == vk::Result::ERROR_DEVICE_LOST {
                    // Part of the plan is running, and no fence will report its end.
                    self.gpu.abandon();
                }
                return Err(call_error("vkQueueSubmit")(result));
            }
            submitted = true;
        }
        Ok(())
    }

    /// Returns the fences of the queues that have work before the host wait `stage`.
    fn stage_fences(&self, stage: usize) -> Vec<vk::Fence> {
        let fenced = self.submissions.iter().filter(|s| s.is_fenced && s.stage == stage);
        fenced.filter_map(|submission| self.queues.get(submission.queue)).map(|queue| queue.fence).collect()
    }

    /// Returns the number of host waits before the last submission.
    fn last_stage(&self) -> usize {
        let hosts = self.host_run.as_ref().map_or(0, |(stage, _)| *stage);
        self.submissions.last().map_or(0, |submission| submission.stage).max(hosts)
    }

    /// Waits for the work before the host wait `stage`; returns false on timeout.
    fn wait_stage(&mut self, stage: usize, timeout: Duration) -> Result<bool, DeviceError> {
        if let Some((_, host_run)) = self.host_run.as_mut().filter(|(own, _)| *own == stage) {
            return host_run.wait(timeout).inspect_err(|_| self.gpu.abandon());
        }
        let fences = self.stage_fences(stage);
        if fences.is_empty() {
            return Ok(true);
        }
        let timeout = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        // SAFETY: the fences are this device's and were given to submissions.
        match unsafe { self.gpu.raw.wait_for_fences(&fences, true, timeout) } {
            Ok(()) => {
                self.marks.check(&self.submissions, stage).inspect_err(|_| self.gpu.abandon())?;
                Ok(true)
            }
            Err(vk::Result::TIMEOUT) => Ok(false),
            Err(result) => {
                self.gpu.abandon();
                Err(call_error("vkWaitForFences")(result))
            }
        }
    }

    /// Returns the longest time of a queue; clocks of different queues are not comparable.
    fn device_time(&self) -> Result<Option<Duration>, DeviceError> {
        let mut longest = None;
        for submission in self.submissions.iter().filter(|submission| submission.last) {
            if let Some(queue) = self.queues.get(submission.queue) {
                longest = longest.max(queue.elapsed_time(&self.gpu.raw, self.gpu.timestamp_period)?);
            }
        }
        Ok(longest)
    }

    /// Returns an error while a submission is in flight.
    fn require_idle(&mut self) -> Result<(), DeviceError> {
        if self.gpu.is_abandoned() {
            return Err(DeviceError::DeviceLost("an earlier submission"));
        }
        if matches!(self.state, PlanState::InFlight { .. }) && self.poll(Duration::ZERO)? == Progress::Running
        {
            return Err(DeviceError::Busy);
        }
        Ok(())
    }

    /// Changes a dispatch or a draw from the next submission on.
    fn change_step(
        &mut self,
        step: usize,
        change: impl FnOnce(&mut PlanStep) -> Option<Result<(), DeviceError>>,
    ) -> Result<(), DeviceError> {
        let changed = self.steps.get_mut(step).and_then(change);
        changed
            .unwrap_or_else(|| Err(DeviceError::InvalidPlan(format!("step {step} is of another kind"))))?;
        let recordings = self.submissions.iter_mut().flat_map(|submission| &mut submission.recordings);
        for recording in recordings.filter(|recording| recording.steps.contains(&step)) {
            recording.is_stale = true;
        }
        Ok(())
    }

    /// Returns the host-visible memory of a buffer.
    fn host_words(&self, buffer: BufferId) -> Result<&DeviceBuffer, DeviceError> {
        let index = buffer.0 as usize;
        match (self.staging.get(index), self.buffers.get(index)) {
            (Some(Some(staging)), _) => Ok(staging),
            (_, Some(words)) => Ok(words),
            _ => Err(DeviceError::InvalidPlan(format!("no buffer {index}"))),
        }
    }

    /// Copies the first words of a buffer to host memory, followed by a marker. Nothing of this plan is in
    /// flight.
    fn copy_out(&mut self, buffer: BufferId, words: u64) -> Result<(), DeviceError> {
        let queue = self.queues.first().ok_or_else(|| not_host_visible(buffer))?;
        let capacity = self.fetch_buffer.as_ref().map_or(0, |(room, _)| room.size_in_bytes() / 4);
        if capacity < words + 1 {
            let commands = match self.fetch_buffer.take() {
                Some((mut old, commands)) => {
                    self.gpu.heap.destroy_buffer(&mut old);
                    commands
                }
                None => queue.allocate_commands(&self.gpu.raw)?,
            };
            let none = vk::BufferUsageFlags::empty();
            let families = [queue.family_index()];
            let room = self.gpu.heap.create_buffer(
                words + 1,
                BufferMemory::Readback,
                &families,
                none,
                "words for the host",
            )?;
            self.fetch_buffer = Some((room, commands));
        }
        // Overwrites results of an earlier copy, so that they cannot be mistaken for new ones.
        let words_to_overwrite = self.fetch_buffer.as_mut().and_then(|(room, _)| room.write());
        words_to_overwrite.ok_or_else(|| not_host_visible(buffer))?.fill(!COPY_MARKER);
        let from = self.buffers.get(buffer.0 as usize).ok_or_else(|| not_host_visible(buffer))?;
        let (to, commands) = self.fetch_buffer.as_ref().ok_or_else(|| not_host_visible(buffer))?;
        let graphics = self.graphics.first().copied().unwrap_or_default();
        record_copy_out(&self.gpu.raw, *commands, from, to, words, graphics)?;
        let (raw, fences, commands) = (&self.gpu.raw, [queue.fence], [*commands]);
        let info = [vk::SubmitInfo::default().command_buffers(&commands)];
        // SAFETY: nothing of this plan is in flight, so nothing uses its fence or these commands, which were
        // recorded for the queue's family.
        let submitted = unsafe {
            raw.reset_fences(&fences).map_err(call_error("vkResetFences"))?;
            let _alone = self.gpu.lock_submission();
            raw.queue_submit(queue.raw, &info, queue.fence)
        };
        submitted.map_err(call_error("vkQueueSubmit"))?;
        // SAFETY: the fence was given to the submission.
        match unsafe { raw.wait_for_fences(&fences, true, FETCH_TIMEOUT_NS) } {
            Ok(()) => Ok(()),
            Err(result) => {
                self.gpu.abandon();
                Err(call_error("vkWaitForFences")(result))
            }
        }
    }

    fn shared_buffer(&self, buffer: BufferId) -> Result<&DeviceBuffer, DeviceError> {
        if self.gpu.is_abandoned() {
            return Err(DeviceError::DeviceLost("an earlier submission"));
        }
        let index = buffer.0 as usize;
        match (self.memory.get(index), self.buffers.get(index)) {
            (Some(BufferMemory::Shared), Some(words)) => Ok(words),
            (Some(_), _) => Err(DeviceError::InvalidPlan(format!("buffer {index} is not shared"))),
            _ => Err(DeviceError::InvalidPlan(format!("no buffer {index}"))),
        }
    }
}

impl Prepared for VulkanPrepared<'_> {
    fn submit(&mut self) -> Result<(), DeviceError> {
        self.require_idle()?;
        self.record_stale()?;
        self.submit_stage(0)?;
        self.state = PlanState::InFlight { stage: 0 };
        Ok(())
    }

    fn poll(&mut self, timeout: Duration) -> Result<Progress, DeviceError> {
        let until = Instant::now().checked_add(timeout);
        loop {
            let stage = match self.state {
                PlanState::NeverSubmitted => {
                    return Err(DeviceError::InvalidPlan("nothing was submitted".to_owned()));
                }
                PlanState::Finished(device_time) => return Ok(Progress::Finished { device_time }),
                PlanState::InFlight { stage } => stage,
            };
            if !wait_until(until, |left| self.wait_stage(stage, left))? {
                return Ok(Progress::Running);
            }
            if stage >= self.last_stage() {
                break;
            }
            // Work after a host wait may only be submitted now.
            if let Err(error) = self.submit_stage(stage + 1) {
                self.gpu.abandon();
                return Err(error);
            }
            self.state = PlanState::InFlight { stage: stage + 1 };
        }
        let device_time = self.device_time()?;
        self.state = PlanState::Finished(device_time);
        Ok(Progress::Finished { device_time })
    }

    fn drain(&mut self) -> Result<(), DeviceError> {
        let _alone = self.gpu.lock_submission();
        // SAFETY: the device lives; the lock excludes submissions of other threads.
        unsafe { self.gpu.raw.device_wait_idle() }.map_err(call_error("vkDeviceWaitIdle"))
    }

    fn memory_properties(&self, buffer: BufferId) -> Option<MemoryProperties> {
        self.buffers.get(buffer.0 as usize).and_then(DeviceBuffer::properties)
    }

    fn set_push_constants(&mut self, step: usize, bytes: &[u8]) -> Result<(), DeviceError> {
        let replace = |push_constants: &mut Vec<u8>| {
            if push_constants.len() != bytes.len() {
                let (new, old) = (bytes.len(), push_constants.len());
                return Err(DeviceError::InvalidPlan(format!("{new} bytes of push constants for {old}")));
            }
            push_constants.copy_from_slice(bytes);
            Ok(())
        };
        self.change_step(step, |step| match step {
            PlanStep::Dispatch { push_constants, .. } | PlanStep::Draw { push_constants, .. } => {
                Some(replace(push_constants))
            }
            _ => None,
        })
    }

    fn set_workgroups(&mut self, step: usize, new: u32) -> Result<(), DeviceError> {
        let most = self.gpu.max_workgroups;
        let replace = |workgroups: &mut u32| {
            if new == 0 {
                return Err(DeviceError::InvalidPlan("a dispatch without workgroups".to_owned()));
            }
            if new > most {
                let message = format!("{new} workgroups in a dispatch (it has {most})");
                return Err(DeviceError::Unsupported(message));
            }
            *workgroups = new;
            Ok(())
        };
        self.change_step(step, |step| match step {
            PlanStep::Dispatch { workgroups, .. } => Some(replace(workgroups)),
            _ => None,
        })
    }

    fn set_drawing(&mut self, step: usize, new: Drawing) -> Result<(), DeviceError> {
        new.validate().map_err(DeviceError::InvalidPlan)?;
        self.change_step(step, |step| match step {
            PlanStep::Draw { drawing, .. } => {
                *drawing = new;
                Some(Ok(()))
            }
            _ => None,
        })
    }

    fn set_host_layout(&mut self, layout: HostLayout) -> Result<(), DeviceError> {
        let none = || DeviceError::InvalidPlan("no host threads".to_owned());
        let (_, host_run) = self.host_run.as_mut().ok_or_else(none)?;
        let words = self.buffers.get(host_run.buffer()).map_or(0, |buffer| buffer.size_in_bytes() / 4);
        host_run.set_layout(layout, words)
    }

    fn host_reports(&mut self) -> Result<&[u32], DeviceError> {
        self.require_idle()?;
        Ok(self.host_run.as_ref().map_or(&[], |(_, players)| players.reports()))
    }

    fn read(&mut self, buffer: BufferId) -> Result<&[u32], DeviceError> {
        self.read_prefix(buffer, usize::MAX)
    }

    fn read_prefix(&mut self, buffer: BufferId, words: usize) -> Result<&[u32], DeviceError> {
        self.require_idle()?;
        let mut copy = std::mem::take(&mut self.read_words);
        let is_copied = self.host_words(buffer)?.copy_words(words, &mut copy);
        self.read_words = copy;
        is_copied.map(|()| self.read_words.as_slice()).ok_or_else(|| not_host_visible(buffer))
    }

    fn fetch(&mut self, buffer: BufferId, words: u64) -> Result<&[u32], DeviceError> {
        self.require_idle()?;
        let is_in_range =
            self.buffers.get(buffer.0 as usize).is_some_and(|own| own.size_in_bytes() / 4 >= words);
        let count =
            usize::try_from(words).ok().filter(|_| is_in_range).ok_or_else(|| no_such_word(buffer, words))?;
        if count == 0 {
            return Ok(&[]);
        }
        self.copy_out(buffer, words)?;
        let fetched = self.fetch_buffer.as_ref();
        let fetched = fetched.and_then(|(own, _)| own.copy_words(count + 1, &mut self.read_words));
        match fetched.and_then(|()| self.read_words.split_at_checked(count)) {
            Some((own, [COPY_MARKER, ..])) if own.iter().any(|word| *word != !COPY_MARKER) => Ok(own),
            Some(_) => Err(DeviceError::NotExecuted("the copy of a buffer for the host")),
            None => Err(not_host_visible(buffer)),
        }
    }

    fn write(&mut self, buffer: BufferId) -> Result<&mut [u32], DeviceError> {
        self.require_idle()?;
        self.host_words(buffer)?;
        // Never the staging copy, because the device must see the writes.
        let words = self.buffers.get_mut(buffer.0 as usize);
        words.and_then(DeviceBuffer::write).ok_or_else(|| not_host_visible(buffer))
    }

    fn load(&mut self, buffer: BufferId, word: u64) -> Result<u32, DeviceError> {
        self.shared_buffer(buffer)?.load(word).ok_or_else(|| no_such_word(buffer, word))
    }

    fn store(&mut self, buffer: BufferId, word: u64, value: u32) -> Result<(), DeviceError> {
        self.shared_buffer(buffer)?.store(word, value).ok_or_else(|| no_such_word(buffer, word))
    }
}

impl Drop for VulkanPrepared<'_> {
    fn drop(&mut self) {
        // A poll without waiting: it detects a submission that has already ended.
        if matches!(self.state, PlanState::InFlight { .. })
            && !matches!(self.poll(Duration::ZERO), Ok(Progress::Finished { .. }))
        {
            self.gpu.abandon();
        }
        if self.gpu.is_abandoned() {
            return;
        }
        // SAFETY: nothing is in flight, so nothing uses these objects; all are this device's or null.
        unsafe { self.gpu.raw.destroy_descriptor_pool(self.descriptor_pool, None) };
        self.semaphores.destroy(&self.gpu.raw);
        self.marks.destroy(&self.gpu.heap);
        if let Some((_, host_run)) = &self.host_run {
            host_run.destroy(&self.gpu.raw);
        }
        for event in &self.events {
            // SAFETY: as above.
            unsafe { self.gpu.raw.destroy_event(*event, None) };
        }
        for target in &mut self.render_targets {
            target.destroy(&self.gpu.raw);
        }
        for queue in &self.queues {
            queue.destroy(&self.gpu.raw);
        }
        self.gpu.pipelines.release(std::mem::take(&mut self.pipelines));
        for image in &mut self.images {
            self.gpu.heap.destroy_image(image);
        }
        for sampler in &self.samplers {
            // SAFETY: as above.
            unsafe { self.gpu.raw.destroy_sampler(*sampler, None) };
        }
        let fetched = self.fetch_buffer.iter_mut().map(|(buffer, _)| buffer);
        for buffer in self.buffers.iter_mut().chain(self.staging.iter_mut().flatten()).chain(fetched) {
            self.gpu.heap.destroy_buffer(buffer);
        }
    }
}

/// The descriptors of a binding.
enum DescriptorInfo {
    Buffers(Vec<vk::DescriptorBufferInfo>),
    Image([vk::DescriptorImageInfo; 1]),
    Texels([vk::BufferView; 1]),
}

/// Returns the usage of a buffer in addition to storage and copies.
fn extra_usage(plan: &Plan, buffer: BufferId) -> vk::BufferUsageFlags {
    let mut usage = vk::BufferUsageFlags::empty();
    if plan.kernels.iter().any(|kernel| kernel.addresses.contains(&buffer)) {
        usage |= vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS;
    }
    let bound = plan.steps.iter().filter_map(|step| match step {
        PlanStep::Dispatch { kernel, bindings, .. } => {
            Some((plan.kernels.get(kernel.0 as usize)?.interface.as_ref()?, bindings))
        }
        _ => None,
    });
    let mut bound = bound.flat_map(|(interface, buffers)| interface.bindings.iter().zip(buffers));
    if bound.any(|(bound, own)| bound.uniform && *own == buffer) {
        usage |= vk::BufferUsageFlags::UNIFORM_BUFFER;
    }
    if plan.images.iter().any(|image| image.shape == ImageShape::Texels(buffer)) {
        usage |= vk::BufferUsageFlags::STORAGE_TEXEL_BUFFER;
    }
    usage
}

/// Returns dispatches and draws: step index, kernel index, buffers.
fn kernel_uses(steps: &[PlanStep]) -> impl Iterator<Item = (usize, usize, &[BufferId])> {
    steps.iter().enumerate().filter_map(|(number, step)| match step {
        PlanStep::Dispatch { kernel, bindings, .. } | PlanStep::Draw { kernel, bindings, .. } => {
            Some((number, kernel.0 as usize, bindings.as_slice()))
        }
        _ => None,
    })
}

fn not_host_visible(buffer: BufferId) -> DeviceError {
    DeviceError::InvalidPlan(format!("buffer {} is not host-visible", buffer.0))
}

fn no_such_word(buffer: BufferId, word: u64) -> DeviceError {
    DeviceError::InvalidPlan(format!("buffer {} has no word {word}", buffer.0))
}
