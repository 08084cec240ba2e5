//! Steps of a plan as command buffers: how steps fall on submissions, and what each records.

use ash::vk;
use plan::{BufferId, DeviceError, Plan, Step};

use crate::error::failed;
use crate::memory::Words;
use crate::pipeline::Pipeline;
use crate::vulkan::VulkanDevice;

/// Where kernels and copies happen. Timestamps apart, nothing else is recorded.
const WORK: vk::PipelineStageFlags = vk::PipelineStageFlags::from_raw(
    vk::PipelineStageFlags::COMPUTE_SHADER.as_raw() | vk::PipelineStageFlags::TRANSFER.as_raw(),
);
const WRITES: vk::AccessFlags = vk::AccessFlags::from_raw(
    vk::AccessFlags::SHADER_WRITE.as_raw() | vk::AccessFlags::TRANSFER_WRITE.as_raw(),
);
const ACCESSES: vk::AccessFlags = vk::AccessFlags::from_raw(
    WRITES.as_raw() | vk::AccessFlags::SHADER_READ.as_raw() | vk::AccessFlags::TRANSFER_READ.as_raw(),
);

/// A submission: some steps of one queue.
pub(crate) struct Submission {
    /// Number of the queue in the plan.
    pub(crate) queue: usize,
    /// Numbers of the steps, in order.
    pub(crate) steps: Vec<usize>,
    /// The queue's first submission.
    pub(crate) first: bool,
    /// The queue's last submission.
    pub(crate) last: bool,
    pub(crate) commands: vk::CommandBuffer,
    /// To be recorded before it is submitted.
    pub(crate) stale: bool,
}

/// The submissions of a plan in the order in which they are submitted. What follows a queue's last [`Step::Submit`] is
/// submitted at the end, in the order of the queues.
pub(crate) fn submissions(plan: &Plan) -> Vec<Submission> {
    let mut open: Vec<Vec<usize>> = vec![Vec::new(); plan.queues.len()];
    let mut submissions: Vec<Submission> = Vec::new();
    let mut close = |queue: usize, steps: Vec<usize>| {
        if steps.is_empty() {
            return;
        }
        let mut first = true;
        for earlier in submissions.iter_mut().filter(|earlier| earlier.queue == queue) {
            first = false;
            earlier.last = false;
        }
        let commands = vk::CommandBuffer::null();
        submissions.push(Submission { queue, steps, first, last: true, commands, stale: true });
    };
    for (number, step) in plan.steps.iter().enumerate() {
        let queue = step.queue().0 as usize;
        let Some(steps) = open.get_mut(queue) else { continue };
        match step {
            Step::Submit { .. } => close(queue, std::mem::take(steps)),
            _ => steps.push(number),
        }
    }
    for (queue, steps) in open.into_iter().enumerate() {
        close(queue, steps);
    }
    submissions
}

/// What recording looks at.
pub(crate) struct Recorder<'a> {
    pub(crate) device: &'a VulkanDevice,
    pub(crate) steps: &'a [Step],
    pub(crate) buffers: &'a [Words],
    /// Staging copies of the buffers that need one, by the number of the buffer.
    pub(crate) staging: &'a [Option<Words>],
    pub(crate) pipelines: &'a [Pipeline],
    /// Descriptor sets by the number of the step; null where there is none.
    pub(crate) sets: &'a [vk::DescriptorSet],
}

impl Recorder<'_> {
    /// Records a submission; `clock` takes two timestamps.
    pub(crate) fn record(
        &self,
        submission: &Submission,
        clock: Option<vk::QueryPool>,
    ) -> Result<(), DeviceError> {
        let (raw, commands) = (&self.device.raw, submission.commands);
        let begin = vk::CommandBufferBeginInfo::default();
        // SAFETY: the command buffer is this device's and not in flight; its pool lets it be recorded anew.
        unsafe { raw.begin_command_buffer(commands, &begin) }.map_err(failed("vkBeginCommandBuffer"))?;
        if let (Some(pool), true) = (clock, submission.first) {
            // SAFETY: the command buffer is being recorded; the pool has two queries.
            unsafe {
                raw.cmd_reset_query_pool(commands, pool, 0, 2);
                raw.cmd_write_timestamp(commands, vk::PipelineStageFlags::TOP_OF_PIPE, pool, 0);
            }
        }
        for number in &submission.steps {
            let step = self.steps.get(*number).ok_or_else(|| nothing("step", *number))?;
            self.step(commands, *number, step)?;
        }
        if let (Some(pool), true) = (clock, submission.last) {
            // SAFETY: as above.
            unsafe { raw.cmd_write_timestamp(commands, vk::PipelineStageFlags::BOTTOM_OF_PIPE, pool, 1) };
        }
        // SAFETY: recording was begun above.
        unsafe { raw.end_command_buffer(commands) }.map_err(failed("vkEndCommandBuffer"))
    }

    fn step(&self, commands: vk::CommandBuffer, number: usize, step: &Step) -> Result<(), DeviceError> {
        let raw = &self.device.raw;
        match step {
            Step::Fill { buffer, value, .. } => {
                let buffer = self.buffer(*buffer)?;
                // SAFETY: the command buffer is being recorded; the buffer is a copy target of whole words.
                unsafe { raw.cmd_fill_buffer(commands, buffer.raw, 0, vk::WHOLE_SIZE, *value) };
            }
            Step::Copy { from, to, .. } => {
                let from = self.buffer(*from)?;
                self.copy(commands, from, self.buffer(*to)?);
            }
            Step::Dispatch { kernel, workgroups, push_constants, .. } => {
                let index = kernel.0 as usize;
                let pipeline = self.pipelines.get(index).ok_or_else(|| nothing("kernel", index))?;
                let set = self.sets.get(number).copied().unwrap_or_default();
                // SAFETY: the command buffer is being recorded, on a queue with compute; pipeline, set and push constants
                // agree in layout, as the plan was validated and all are made from the kernel's description.
                unsafe {
                    raw.cmd_bind_pipeline(commands, vk::PipelineBindPoint::COMPUTE, pipeline.raw);
                    if set != vk::DescriptorSet::null() {
                        let point = vk::PipelineBindPoint::COMPUTE;
                        raw.cmd_bind_descriptor_sets(commands, point, pipeline.layout, 0, &[set], &[]);
                    }
                    if !push_constants.is_empty() {
                        let stage = vk::ShaderStageFlags::COMPUTE;
                        raw.cmd_push_constants(commands, pipeline.layout, stage, 0, push_constants);
                    }
                    raw.cmd_dispatch(commands, *workgroups, 1, 1);
                }
            }
            Step::Barrier { .. } => self.barrier(commands, WORK, Some(ACCESSES)),
            Step::ExecutionBarrier { .. } => self.barrier(commands, WORK, None),
            Step::ToHost { buffer, .. } => self.to_host(commands, *buffer)?,
            // Submissions were told apart before.
            Step::Submit { .. } => {}
        }
        Ok(())
    }

    fn to_host(&self, commands: vk::CommandBuffer, buffer: BufferId) -> Result<(), DeviceError> {
        if let Some(Some(staging)) = self.staging.get(buffer.0 as usize) {
            let transfer = vk::PipelineStageFlags::TRANSFER;
            // A second copy to the same place comes after the first.
            let accesses = vk::AccessFlags::TRANSFER_READ | vk::AccessFlags::TRANSFER_WRITE;
            self.barrier(commands, transfer, Some(accesses));
            self.copy(commands, self.buffer(buffer)?, staging);
        }
        self.barrier(commands, vk::PipelineStageFlags::HOST, Some(vk::AccessFlags::HOST_READ));
        Ok(())
    }

    fn copy(&self, commands: vk::CommandBuffer, from: &Words, to: &Words) {
        let region = vk::BufferCopy::default().size(from.bytes());
        // SAFETY: the command buffer is being recorded; both are copy buffers, and the target is no smaller.
        unsafe { self.device.raw.cmd_copy_buffer(commands, from.raw, to.raw, &[region]) };
    }

    /// Everything recorded before on the queue happens before `after`; with `accesses`, its writes are also made
    /// available, and visible to them.
    fn barrier(
        &self,
        commands: vk::CommandBuffer,
        after: vk::PipelineStageFlags,
        accesses: Option<vk::AccessFlags>,
    ) {
        let memory = accesses
            .map(|accesses| vk::MemoryBarrier::default().src_access_mask(WRITES).dst_access_mask(accesses));
        let flags = vk::DependencyFlags::empty();
        // SAFETY: the command buffer is being recorded; stages and accesses fit each other and a queue with compute.
        unsafe {
            self.device.raw.cmd_pipeline_barrier(commands, WORK, after, flags, memory.as_slice(), &[], &[]);
        }
    }

    fn buffer(&self, id: BufferId) -> Result<&Words, DeviceError> {
        let index = id.0 as usize;
        self.buffers.get(index).ok_or_else(|| nothing("buffer", index))
    }
}

/// Validated plans never get here.
fn nothing(what: &str, number: usize) -> DeviceError {
    DeviceError::InvalidPlan(format!("no {what} {number}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use plan::{Queue, QueueId};

    #[test]
    fn steps_fall_on_submissions_by_queue() {
        let submit = |queue| Step::Submit { queue: QueueId(queue) };
        let work = |queue| Step::Barrier { queue: QueueId(queue) };
        let steps = vec![
            submit(0),
            work(1),
            work(0),
            work(1),
            submit(0),
            work(0),
            submit(1),
            submit(1),
            work(2),
            work(0),
        ];
        let plan = Plan { queues: vec![Queue { family: 0 }; 4], steps, ..Plan::default() };
        let found: Vec<_> = submissions(&plan)
            .into_iter()
            .map(|submission| (submission.queue, submission.steps, submission.first, submission.last))
            .collect();
        let expected = [
            (0, vec![2], true, false),
            (1, vec![1, 3], true, true),
            (0, vec![5, 9], false, true),
            (2, vec![8], true, true),
        ];
        assert_eq!(found, expected);
    }
}
