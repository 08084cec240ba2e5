//! Records the steps of a plan into command buffers.

use std::sync::Arc;

use ash::ext::mesh_shader;
use ash::vk;
use plan::{
    BufferId, DependencyKind, DeviceError, ImageId, Kernel, KernelId, KernelStage, PlanStep, QueueId,
    StageMask,
};

use crate::draw::{DrawWork, RenderTarget};
use crate::error::call_error;
use crate::image::{DeviceImage, record_from_image, record_to_image};
use crate::mark::StageMarks;
use crate::memory::{DeviceBuffer, MemoryHeap};
use crate::pipeline::Pipeline;
use crate::scoped::{DependencyRecorder, ScopedDependency};
use crate::stage_flags::{pipeline_stages, stage_flag};
use crate::submission::Recording;

/// The stages of kernels and copies. Nothing else is recorded, except timestamps.
const WORK_STAGES: vk::PipelineStageFlags = vk::PipelineStageFlags::from_raw(
    vk::PipelineStageFlags::COMPUTE_SHADER.as_raw() | vk::PipelineStageFlags::TRANSFER.as_raw(),
);
const WRITE_ACCESSES: vk::AccessFlags = vk::AccessFlags::from_raw(
    vk::AccessFlags::SHADER_WRITE.as_raw() | vk::AccessFlags::TRANSFER_WRITE.as_raw(),
);
const ACCESSES: vk::AccessFlags = vk::AccessFlags::from_raw(
    WRITE_ACCESSES.as_raw() | vk::AccessFlags::SHADER_READ.as_raw() | vk::AccessFlags::TRANSFER_READ.as_raw(),
);

/// The inputs of recording.
pub(crate) struct Recorder<'a> {
    pub(crate) heap: &'a MemoryHeap,
    pub(crate) steps: &'a [PlanStep],
    pub(crate) buffers: &'a [DeviceBuffer],
    /// Staging copies by buffer index.
    pub(crate) staging: &'a [Option<DeviceBuffer>],
    pub(crate) pipelines: &'a [Arc<Pipeline>],
    pub(crate) kernels: &'a [Kernel],
    pub(crate) images: &'a [DeviceImage],
    /// Descriptor sets by step index; empty for other steps.
    pub(crate) sets: &'a [Vec<vk::DescriptorSet>],
    /// Events by step index; null for other steps.
    pub(crate) events: &'a [vk::Event],
    /// Framebuffers by step index.
    pub(crate) render_targets: &'a [RenderTarget],
    /// The graphics stages on each queue of the plan.
    pub(crate) graphics: &'a [StageMask],
    /// The functions that launch mesh and task shaders, if supported.
    pub(crate) mesh: Option<&'a mesh_shader::Device>,
    /// The functions that record dependencies.
    pub(crate) dependency_recorder: &'a DependencyRecorder,
    /// The marks before host waits.
    pub(crate) marks: &'a StageMarks,
    /// The queue families of the queues of the plan.
    pub(crate) families: &'a [u32],
}

impl Recorder<'_> {
    /// Records a command buffer; `clock` receives two timestamps.
    pub(crate) fn record(
        &self,
        recording: &Recording,
        clock: Option<vk::QueryPool>,
    ) -> Result<(), DeviceError> {
        let (raw, commands) = (&self.heap.raw, recording.commands);
        let begin = vk::CommandBufferBeginInfo::default();
        // SAFETY: the command buffer belongs to this device and is not in flight; its pool permits resetting
        // it.
        unsafe { raw.begin_command_buffer(commands, &begin) }.map_err(call_error("vkBeginCommandBuffer"))?;
        if let (Some(pool), true) = (clock, recording.first) {
            // SAFETY: the command buffer is being recorded; the pool has two queries.
            unsafe {
                raw.cmd_reset_query_pool(commands, pool, 0, 2);
                raw.cmd_write_timestamp(commands, vk::PipelineStageFlags::TOP_OF_PIPE, pool, 0);
            }
        }
        for number in &recording.steps {
            let step = self.steps.get(*number).ok_or_else(|| missing_item("step", *number))?;
            self.record_step(commands, *number, step)?;
        }
        if let (Some(pool), true) = (clock, recording.last) {
            // SAFETY: as above.
            unsafe { raw.cmd_write_timestamp(commands, vk::PipelineStageFlags::BOTTOM_OF_PIPE, pool, 1) };
        }
        if let Some(number) = recording.mark {
            self.marks.record(raw, commands, number);
        }
        // SAFETY: recording was begun above.
        unsafe { raw.end_command_buffer(commands) }.map_err(call_error("vkEndCommandBuffer"))
    }

    fn record_step(
        &self,
        commands: vk::CommandBuffer,
        number: usize,
        step: &PlanStep,
    ) -> Result<(), DeviceError> {
        let raw = &self.heap.raw;
        match step {
            PlanStep::Fill { buffer, value, .. } => {
                let buffer = self.buffer(*buffer)?;
                // SAFETY: the command buffer is being recorded; the buffer is a copy destination of whole
                // words.
                unsafe { raw.cmd_fill_buffer(commands, buffer.raw, 0, vk::WHOLE_SIZE, *value) };
            }
            PlanStep::Copy { from, to, .. } => {
                let from = self.buffer(*from)?;
                self.record_copy(commands, from, self.buffer(*to)?);
            }
            PlanStep::ToImage { from, to, .. } => {
                record_to_image(raw, commands, self.buffer(*from)?, self.image(*to)?);
            }
            PlanStep::FromImage { from, to, .. } => {
                record_from_image(raw, commands, self.image(*from)?, self.buffer(*to)?);
            }
            PlanStep::Dispatch { kernel, workgroups, push_constants, .. } => {
                self.record_dispatch(commands, number, *kernel, *workgroups, push_constants)?;
            }
            PlanStep::Draw { kernel, drawing, push_constants, .. } => {
                let pipeline = self.bind_kernel(commands, number, kernel.0 as usize, push_constants)?;
                let drawn = DrawWork::Points(drawing.points);
                self.render_target(number)?.record(raw, commands, pipeline.render_pass, &drawn);
            }
            PlanStep::Barrier { queue } => {
                let work = self.work_stages(*queue);
                self.record_barrier(commands, work, work, Some(ACCESSES));
            }
            PlanStep::ExecutionBarrier { queue } => {
                let work = self.work_stages(*queue);
                self.record_barrier(commands, work, work, None);
            }
            PlanStep::Dependency { kind, stages, available, visible, .. } => {
                let dependency = ScopedDependency::new(stages.0, stages.1, *available, *visible);
                self.record_dependency(commands, number, *kind, &dependency)?;
            }
            PlanStep::Hosts { queue } => {
                let host = vk::PipelineStageFlags::HOST;
                let accesses = vk::AccessFlags::HOST_READ | vk::AccessFlags::HOST_WRITE;
                self.record_barrier(commands, self.work_stages(*queue), host, Some(accesses));
            }
            PlanStep::Release { queue, buffer, to } => {
                self.record_transfer(commands, *buffer, *queue, *to, true)?
            }
            PlanStep::Acquire { queue, buffer, from } => {
                self.record_transfer(commands, *buffer, *from, *queue, false)?
            }
            PlanStep::ToHost { buffer, queue } => {
                self.record_to_host(commands, *buffer, self.work_stages(*queue))?
            }
            // These steps separate submissions and command buffers.
            PlanStep::CommandBuffer { .. }
            | PlanStep::Submit { .. }
            | PlanStep::Signal { .. }
            | PlanStep::Wait { .. }
            | PlanStep::HostWait { .. }
            | PlanStep::Batch { .. }
            | PlanStep::HostsEnd { .. } => {}
        }
        Ok(())
    }

    fn record_dispatch(
        &self,
        commands: vk::CommandBuffer,
        step: usize,
        kernel: KernelId,
        workgroups: u32,
        push_constants: &[u8],
    ) -> Result<(), DeviceError> {
        let raw = &self.heap.raw;
        let pipeline = self.bind_kernel(commands, step, kernel.0 as usize, push_constants)?;
        if pipeline.render_pass == vk::RenderPass::null() {
            let interface = self.kernels.get(kernel.0 as usize).and_then(|own| own.interface.as_ref());
            let [y, z] = interface.map_or([1, 1], |interface| interface.layers);
            // SAFETY: the command buffer is being recorded, on a queue with compute; the kernel's pipeline and
            // bindings are bound.
            unsafe { raw.cmd_dispatch(commands, workgroups, y, z) };
        } else {
            let calls = self.mesh.ok_or_else(|| missing_item("mesh shader for step", step))?;
            let work = DrawWork::Workgroups(calls, workgroups);
            self.render_target(step)?.record(raw, commands, pipeline.render_pass, &work);
        }
        Ok(())
    }

    fn record_dependency(
        &self,
        commands: vk::CommandBuffer,
        step: usize,
        kind: DependencyKind,
        dependency: &ScopedDependency,
    ) -> Result<(), DeviceError> {
        let (raw, recorder) = (&self.heap.raw, self.dependency_recorder);
        match kind {
            DependencyKind::Barrier => {
                // SAFETY: the command buffer is being recorded, on a queue with compute; the stages support the
                // accesses.
                unsafe { recorder.record_barrier(raw, commands, dependency) };
            }
            DependencyKind::Event => {
                let event = self.step_event(step)?;
                // SAFETY: as above; the event belongs to the device, the host resets it before each submission,
                // and valid plans have no host stages in the first scope of an event.
                unsafe {
                    recorder.record_set(raw, commands, event, dependency);
                    recorder.record_wait(raw, commands, event, dependency);
                }
            }
            DependencyKind::Set(_) => {
                let event = self.step_event(step)?;
                // SAFETY: as above.
                unsafe { recorder.record_set(raw, commands, event, dependency) };
            }
            DependencyKind::Await(event) => {
                let sets_event = |step: &PlanStep| matches!(step, PlanStep::Dependency { kind: DependencyKind::Set(own), .. } if *own == event);
                let set = self.steps.iter().position(sets_event);
                let event = self.step_event(set.ok_or_else(|| missing_item("event", step))?)?;
                // SAFETY: as above; a valid plan sets it earlier on the same queue with the same scopes.
                unsafe { recorder.record_wait(raw, commands, event, dependency) };
            }
        }
        Ok(())
    }

    /// Records half of a queue family ownership transfer, ordered with everything else on its queue.
    ///
    /// The release makes writes available, the acquire makes them visible.
    fn record_transfer(
        &self,
        commands: vk::CommandBuffer,
        buffer: BufferId,
        from: QueueId,
        to: QueueId,
        releases: bool,
    ) -> Result<(), DeviceError> {
        let family = |queue: QueueId| {
            let index = queue.0 as usize;
            self.families.get(index).copied().ok_or_else(|| missing_item("queue", index))
        };
        let none = vk::AccessFlags::empty();
        let all = vk::AccessFlags::MEMORY_READ | vk::AccessFlags::MEMORY_WRITE;
        let (available, visible) = if releases { (all, none) } else { (none, all) };
        let barrier = vk::BufferMemoryBarrier::default()
            .src_access_mask(available)
            .dst_access_mask(visible)
            .src_queue_family_index(family(from)?)
            .dst_queue_family_index(family(to)?)
            .buffer(self.buffer(buffer)?.raw)
            .size(vk::WHOLE_SIZE);
        let (work, flags) = (vk::PipelineStageFlags::ALL_COMMANDS, vk::DependencyFlags::empty());
        // SAFETY: the command buffer is being recorded, on a queue of one of the two families, since the plan
        // is valid.
        unsafe { self.heap.raw.cmd_pipeline_barrier(commands, work, work, flags, &[], &[barrier], &[]) };
        Ok(())
    }

    fn step_event(&self, step: usize) -> Result<vk::Event, DeviceError> {
        let event = self.events.get(step).copied().filter(|event| *event != vk::Event::null());
        event.ok_or_else(|| missing_item("event for step", step))
    }

    /// Returns the stages of kernels and copies on a queue.
    fn work_stages(&self, queue: QueueId) -> vk::PipelineStageFlags {
        WORK_STAGES | pipeline_stages(self.graphics.get(queue.0 as usize).copied().unwrap_or_default())
    }

    fn render_target(&self, step: usize) -> Result<&RenderTarget, DeviceError> {
        self.render_targets.get(step).ok_or_else(|| missing_item("canvas for step", step))
    }

    /// Binds the pipeline of a kernel with the arguments of a step.
    fn bind_kernel(
        &self,
        commands: vk::CommandBuffer,
        step: usize,
        index: usize,
        push_constants: &[u8],
    ) -> Result<&Pipeline, DeviceError> {
        let raw = &self.heap.raw;
        let kernel = self.kernels.get(index).ok_or_else(|| missing_item("kernel", index))?;
        let mut push_constants = push_constants.to_vec();
        for buffer in &kernel.addresses {
            let address = self.heap.buffer_address(self.buffer(*buffer)?);
            push_constants.extend_from_slice(&address.to_ne_bytes());
        }
        let pipeline = self.pipelines.get(index).ok_or_else(|| missing_item("pipeline", index))?;
        let sets = self.sets.get(step).map(Vec::as_slice).unwrap_or_default();
        let stage = stage_flag(&kernel.stage);
        let point = if kernel.stage == KernelStage::Compute {
            vk::PipelineBindPoint::COMPUTE
        } else {
            vk::PipelineBindPoint::GRAPHICS
        };
        // SAFETY: the command buffer is being recorded, on a queue with the kernel's stage; pipeline, sets
        // and push constants have one layout, since all are created from the validated kernel's description.
        unsafe {
            raw.cmd_bind_pipeline(commands, point, pipeline.raw);
            if !sets.is_empty() {
                raw.cmd_bind_descriptor_sets(commands, point, pipeline.layout, 0, sets, &[]);
            }
            if !push_constants.is_empty() {
                raw.cmd_push_constants(commands, pipeline.layout, stage, 0, &push_constants);
            }
        }
        Ok(pipeline)
    }

    fn record_to_host(
        &self,
        commands: vk::CommandBuffer,
        buffer: BufferId,
        work: vk::PipelineStageFlags,
    ) -> Result<(), DeviceError> {
        if let Some(Some(staging)) = self.staging.get(buffer.0 as usize) {
            let transfer = vk::PipelineStageFlags::TRANSFER;
            // A second copy to the same buffer must follow the first.
            let accesses = vk::AccessFlags::TRANSFER_READ | vk::AccessFlags::TRANSFER_WRITE;
            self.record_barrier(commands, work, transfer, Some(accesses));
            self.record_copy(commands, self.buffer(buffer)?, staging);
        }
        self.record_barrier(commands, work, vk::PipelineStageFlags::HOST, Some(vk::AccessFlags::HOST_READ));
        Ok(())
    }

    fn record_copy(&self, commands: vk::CommandBuffer, from: &DeviceBuffer, to: &DeviceBuffer) {
        let region = vk::BufferCopy::default().size(from.size_in_bytes());
        // SAFETY: the command buffer is being recorded; both are copy buffers, and the destination is at
        // least as large.
        unsafe { self.heap.raw.cmd_copy_buffer(commands, from.raw, to.raw, &[region]) };
    }

    /// Records a barrier from the stages `before` to `after`; with `accesses`, earlier writes become
    /// available and visible to them.
    fn record_barrier(
        &self,
        commands: vk::CommandBuffer,
        before: vk::PipelineStageFlags,
        after: vk::PipelineStageFlags,
        accesses: Option<vk::AccessFlags>,
    ) {
        let memory = accesses.map(|accesses| {
            vk::MemoryBarrier::default().src_access_mask(WRITE_ACCESSES).dst_access_mask(accesses)
        });
        let flags = vk::DependencyFlags::empty();
        // SAFETY: the command buffer is being recorded; stages and accesses match each other and a queue with
        // compute.
        unsafe {
            self.heap.raw.cmd_pipeline_barrier(commands, before, after, flags, memory.as_slice(), &[], &[]);
        }
    }

    fn image(&self, id: ImageId) -> Result<&DeviceImage, DeviceError> {
        let index = id.0 as usize;
        self.images.get(index).ok_or_else(|| missing_item("image", index))
    }

    fn buffer(&self, id: BufferId) -> Result<&DeviceBuffer, DeviceError> {
        let index = id.0 as usize;
        self.buffers.get(index).ok_or_else(|| missing_item("buffer", index))
    }
}

/// The marker that [`record_copy_out`] writes after the copied words.
pub(crate) const COPY_MARKER: u32 = 0x7b1d_c0e9;

/// Records commands that copy the first words of a buffer to a host-visible one, then write [`COPY_MARKER`]
/// after them.
pub(crate) fn record_copy_out(
    raw: &ash::Device,
    commands: vk::CommandBuffer,
    from: &DeviceBuffer,
    to: &DeviceBuffer,
    words: u64,
    graphics: StageMask,
) -> Result<(), DeviceError> {
    let drawn = pipeline_stages(graphics);
    let begin = vk::CommandBufferBeginInfo::default();
    let none = vk::DependencyFlags::empty();
    let barrier =
        |accesses| [vk::MemoryBarrier::default().src_access_mask(WRITE_ACCESSES).dst_access_mask(accesses)];
    let transfer = vk::PipelineStageFlags::TRANSFER;
    let before = barrier(vk::AccessFlags::TRANSFER_READ | vk::AccessFlags::TRANSFER_WRITE);
    let copied = |accesses| {
        [vk::MemoryBarrier::default()
            .src_access_mask(vk::AccessFlags::TRANSFER_WRITE)
            .dst_access_mask(accesses)]
    };
    let (between, after) = (copied(vk::AccessFlags::TRANSFER_WRITE), copied(vk::AccessFlags::HOST_READ));
    let region = [vk::BufferCopy::default().size(4 * words)];
    // SAFETY: the command buffer belongs to this device and is not in flight; its pool permits resetting it.
    // Both buffers permit copies and have enough words, the second one more.
    unsafe {
        raw.begin_command_buffer(commands, &begin).map_err(call_error("vkBeginCommandBuffer"))?;
        raw.cmd_pipeline_barrier(commands, WORK_STAGES | drawn, transfer, none, &before, &[], &[]);
        raw.cmd_copy_buffer(commands, from.raw, to.raw, &region);
        raw.cmd_pipeline_barrier(commands, transfer, transfer, none, &between, &[], &[]);
        raw.cmd_fill_buffer(commands, to.raw, 4 * words, 4, COPY_MARKER);
        raw.cmd_pipeline_barrier(commands, transfer, vk::PipelineStageFlags::HOST, none, &after, &[], &[]);
        raw.end_command_buffer(commands).map_err(call_error("vkEndCommandBuffer"))
    }
}

/// Returns the error for an invalid index; validated plans never cause it.
fn missing_item(what: &str, number: usize) -> DeviceError {
    DeviceError::InvalidPlan(format!("no {what} {number}"))
}
