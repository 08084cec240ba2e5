//! Marks at the end of the work before a host wait.
//!
//! A driver may signal a fence before its work has ended. What the host does next would then run next to that work,
//! and a host thread would lose its writes to a late initialization. So the last command before a host wait writes a
//! word that the host has overwritten. If the word is missing after the wait, the plan ends with an error. The end
//! of a whole plan needs no mark here: callers verify what they read.
//!
//! The mark follows the work by an execution dependency only. Memory dependencies are left to the fence.

use ash::vk;
use plan::{BufferMemory, DeviceError};

use crate::gpu::Gpu;
use crate::memory::{DeviceBuffer, MemoryHeap};
use crate::submission::Submission;

const MARK_VALUE: u32 = 0x5e7d_a10c;

/// The words of all marks of a plan.
#[derive(Default)]
pub(crate) struct StageMarks {
    words: Option<DeviceBuffer>,
}

impl StageMarks {
    /// Gives a mark to each submission before a host wait; `last` is the number of host waits.
    pub(crate) fn create(
        &mut self,
        gpu: &Gpu,
        submissions: &mut [Submission],
        last: usize,
        families: &[u32],
    ) -> Result<(), DeviceError> {
        let fenced =
            submissions.iter_mut().filter(|own| own.is_fenced && own.batch.is_none() && own.stage < last);
        let recordings = fenced.filter_map(|own| own.recordings.last_mut());
        let mut count = 0;
        for (number, recording) in (0..).zip(recordings) {
            recording.mark = Some(number);
            count = number + 1;
        }
        if count > 0 {
            let none = vk::BufferUsageFlags::empty();
            let name = "marks of host waits";
            self.words = Some(gpu.heap.create_buffer(
                u64::from(count),
                BufferMemory::Readback,
                families,
                none,
                name,
            )?);
        }
        Ok(())
    }

    /// Records a mark after all other commands.
    pub(crate) fn record(&self, raw: &ash::Device, commands: vk::CommandBuffer, number: u32) {
        let Some(words) = &self.words else { return };
        let (transfer, host) = (vk::PipelineStageFlags::TRANSFER, vk::PipelineStageFlags::HOST);
        let written = vk::MemoryBarrier::default()
            .src_access_mask(vk::AccessFlags::TRANSFER_WRITE)
            .dst_access_mask(vk::AccessFlags::HOST_READ);
        let (all, flags) = (vk::PipelineStageFlags::ALL_COMMANDS, vk::DependencyFlags::empty());
        // SAFETY: the command buffer is being recorded; the buffer is a copy destination with this word.
        unsafe {
            raw.cmd_pipeline_barrier(commands, all, transfer, flags, &[], &[], &[]);
            raw.cmd_fill_buffer(commands, words.raw, 4 * u64::from(number), 4, MARK_VALUE);
            raw.cmd_pipeline_barrier(commands, transfer, host, flags, &[written], &[], &[]);
        }
    }

    /// Overwrites the marks of a stage, before it is submitted.
    pub(crate) fn clear(&mut self, submissions: &[Submission], stage: usize) {
        let Some(words) = self.words.as_mut().and_then(DeviceBuffer::write) else { return };
        for number in stage_marks(submissions, stage) {
            if let Some(word) = words.get_mut(number) {
                *word = !MARK_VALUE;
            }
        }
    }

    /// Checks the marks of a stage, after a wait for its fences.
    ///
    /// # Errors
    /// [`DeviceError::NotExecuted`] if one is missing.
    pub(crate) fn check(&self, submissions: &[Submission], stage: usize) -> Result<(), DeviceError> {
        let word = |number: usize| self.words.as_ref()?.load(number as u64);
        match stage_marks(submissions, stage).all(|number| word(number) == Some(MARK_VALUE)) {
            true => Ok(()),
            false => Err(DeviceError::NotExecuted("the work before a fence that was signalled")),
        }
    }

    /// Destroys the buffer. Nothing may be in flight.
    pub(crate) fn destroy(&mut self, heap: &MemoryHeap) {
        if let Some(mut words) = self.words.take() {
            heap.destroy_buffer(&mut words);
        }
    }
}

fn stage_marks(submissions: &[Submission], stage: usize) -> impl Iterator<Item = usize> + '_ {
    let own = submissions.iter().filter(move |submission| submission.stage == stage);
    own.flat_map(|submission| &submission.recordings)
        .filter_map(|recording| recording.mark)
        .map(|n| n as usize)
}
