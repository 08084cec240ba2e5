//! Semaphores and events of a prepared plan.

use ash::vk;
use plan::{DeviceError, HostAct, Plan, PlanStep, Semaphore};

use crate::error::call_error;
use crate::stage_flags::pipeline_stages;
use crate::submission::Submission;

#[derive(Default)]
pub(crate) struct Semaphores {
    raw: Vec<(vk::Semaphore, Semaphore)>,
    /// The number of the current submission of the plan, from 1; timelines rise from one to the next.
    submission_count: u64,
    /// The maximum rise of a timeline in one submission.
    max_rise: u64,
}

impl Semaphores {
    /// Creates the semaphores; those created before an error are left for [`Semaphores::destroy`].
    pub(crate) fn create(&mut self, device: &ash::Device, plan: &Plan) -> Result<(), DeviceError> {
        let values = plan.steps.iter().map(|step| match step {
            PlanStep::Signal { value, .. } => u64::from(*value),
            _ => 1,
        });
        let acts = plan.hosts.iter().flat_map(|hosts| &hosts.threads).flat_map(|thread| &thread.acts);
        let of_hosts = acts.map(|act| match act {
            HostAct::Signal { value, .. } => u64::from(*value),
            _ => 1,
        });
        self.max_rise = values.chain(of_hosts).max().unwrap_or(1);
        for kind in &plan.semaphores {
            let mut timeline = vk::SemaphoreTypeCreateInfo::default()
                .semaphore_type(vk::SemaphoreType::TIMELINE)
                .initial_value(0);
            let mut info = vk::SemaphoreCreateInfo::default();
            if *kind == Semaphore::Timeline {
                info = info.push_next(&mut timeline);
            }
            // SAFETY: the device lives; plans with timeline semaphores are checked against its features.
            let made = unsafe { device.create_semaphore(&info, None) };
            self.raw.push((made.map_err(call_error("vkCreateSemaphore"))?, *kind));
        }
        Ok(())
    }

    /// Starts a submission of the plan.
    pub(crate) fn begin_submission(&mut self) {
        self.submission_count += 1;
    }

    /// Returns semaphores with their values in the current submission; binary ones ignore the values.
    pub(crate) fn with_values(&self, requested: &[(usize, u32)]) -> (Vec<vk::Semaphore>, Vec<u64>) {
        let known = requested.iter().filter_map(|(number, value)| {
            let (raw, _) = self.raw.get(*number)?;
            Some((*raw, self.submission_count.saturating_sub(1) * self.max_rise + u64::from(*value)))
        });
        known.unzip()
    }

    /// Returns true if there are timelines, whose values submissions must state.
    pub(crate) fn has_timelines(&self) -> bool {
        self.raw.iter().any(|(_, kind)| *kind == Semaphore::Timeline)
    }

    /// Submits commands with their semaphore waits and signals.
    pub(crate) fn submit(
        &self,
        device: &ash::Device,
        queue: vk::Queue,
        submission: &Submission,
        commands: &[vk::CommandBuffer],
        fence: vk::Fence,
    ) -> Result<(), vk::Result> {
        let ((waits, wait_values), (signals, signal_values)) =
            (self.with_values(&submission.waits), self.with_values(&submission.signals));
        let stages = vec![pipeline_stages(submission.shader_stages); waits.len()];
        let mut values = vk::TimelineSemaphoreSubmitInfo::default()
            .wait_semaphore_values(&wait_values)
            .signal_semaphore_values(&signal_values);
        let mut info = vk::SubmitInfo::default()
            .command_buffers(commands)
            .wait_semaphores(&waits)
            .wait_dst_stage_mask(&stages)
            .signal_semaphores(&signals);
        if self.has_timelines() {
            info = info.push_next(&mut values);
        }
        // SAFETY: the commands are recorded for this queue's family and not in flight; validation ensures
        // that every semaphore is signalled and waited for once, in this order. The caller holds the
        // submission lock.
        unsafe { device.queue_submit(queue, &[info], fence) }
    }

    /// Destroys all objects. Nothing may be in flight.
    pub(crate) fn destroy(&self, device: &ash::Device) {
        for (raw, _) in &self.raw {
            // SAFETY: the semaphore is this device's, and no submission uses it.
            unsafe { device.destroy_semaphore(*raw, None) };
        }
    }
}

/// Creates an event that the host resets.
pub(crate) fn create_event(device: &ash::Device) -> Result<vk::Event, DeviceError> {
    // SAFETY: the device lives.
    unsafe { device.create_event(&vk::EventCreateInfo::default(), None) }.map_err(call_error("vkCreateEvent"))
}
