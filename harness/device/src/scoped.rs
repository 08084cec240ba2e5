//! Dependencies with explicit stages and accesses.
//!
//! They use synchronization2 if the device has it, else the functions of Vulkan 1.0, which are equivalent for
//! the stages of plans.

use ash::{khr, vk};
use plan::{AccessMask, StageMask};

use crate::stage_flags::pipeline_stages;

/// A memory dependency: both synchronization and access scopes.
pub(crate) struct ScopedDependency {
    source: (vk::PipelineStageFlags, vk::AccessFlags),
    target: (vk::PipelineStageFlags, vk::AccessFlags),
}

impl ScopedDependency {
    pub(crate) fn new(
        before: StageMask,
        after: StageMask,
        available: AccessMask,
        visible: AccessMask,
    ) -> ScopedDependency {
        ScopedDependency {
            source: (pipeline_stages(before), access_flags(available)),
            target: (pipeline_stages(after), access_flags(visible)),
        }
    }

    /// Returns the masks of Vulkan 1.0, which must not be empty
    /// (VUID-vkCmdPipelineBarrier-srcStageMask-03937).
    ///
    /// TOP_OF_PIPE in the first scope and BOTTOM_OF_PIPE in the second scope order nothing.
    fn vulkan10_stages(&self) -> (vk::PipelineStageFlags, vk::PipelineStageFlags) {
        let or = |stages: vk::PipelineStageFlags, none| if stages.is_empty() { none } else { stages };
        (
            or(self.source.0, vk::PipelineStageFlags::TOP_OF_PIPE),
            or(self.target.0, vk::PipelineStageFlags::BOTTOM_OF_PIPE),
        )
    }

    /// Returns the memory barrier; `None` for a pure execution dependency.
    fn memory_barrier(&self) -> Option<vk::MemoryBarrier<'static>> {
        let has_accesses = !(self.source.1.is_empty() && self.target.1.is_empty());
        let barrier =
            vk::MemoryBarrier::default().src_access_mask(self.source.1).dst_access_mask(self.target.1);
        has_accesses.then_some(barrier)
    }

    /// Returns the memory barrier of synchronization2, whose low flag bits equal those of Vulkan 1.0.
    fn memory_barrier2(&self) -> vk::MemoryBarrier2<'static> {
        let stages =
            |stages: vk::PipelineStageFlags| vk::PipelineStageFlags2::from_raw(stages.as_raw().into());
        let accesses = |accesses: vk::AccessFlags| vk::AccessFlags2::from_raw(accesses.as_raw().into());
        vk::MemoryBarrier2::default()
            .src_stage_mask(stages(self.source.0))
            .src_access_mask(accesses(self.source.1))
            .dst_stage_mask(stages(self.target.0))
            .dst_access_mask(accesses(self.target.1))
    }
}

/// The functions that record dependencies.
pub(crate) enum DependencyRecorder {
    /// The functions of Vulkan 1.0.
    Vulkan10,
    /// The functions of Vulkan 1.3.
    Core,
    /// The functions of the extension.
    Extension(khr::synchronization2::Device),
}

impl DependencyRecorder {
    /// Records a barrier.
    ///
    /// # Safety
    ///
    /// `commands` is being recorded, for a queue that has the stages, and the stages support the accesses.
    pub(crate) unsafe fn record_barrier(
        &self,
        raw: &ash::Device,
        commands: vk::CommandBuffer,
        dependency: &ScopedDependency,
    ) {
        let memory = [dependency.memory_barrier2()];
        let info = vk::DependencyInfo::default().memory_barriers(&memory);
        // SAFETY: the caller's contract.
        unsafe {
            match self {
                DependencyRecorder::Vulkan10 => {
                    let (source, target) = dependency.vulkan10_stages();
                    let none = vk::DependencyFlags::empty();
                    raw.cmd_pipeline_barrier(
                        commands,
                        source,
                        target,
                        none,
                        dependency.memory_barrier().as_slice(),
                        &[],
                        &[],
                    );
                }
                DependencyRecorder::Core => raw.cmd_pipeline_barrier2(commands, &info),
                DependencyRecorder::Extension(device) => device.cmd_pipeline_barrier2(commands, &info),
            }
        }
    }

    /// Records the set of an event.
    ///
    /// # Safety
    ///
    /// As for a barrier; the event belongs to the device and is not set, and the first scope has no host
    /// stage.
    pub(crate) unsafe fn record_set(
        &self,
        raw: &ash::Device,
        commands: vk::CommandBuffer,
        event: vk::Event,
        dependency: &ScopedDependency,
    ) {
        let memory = [dependency.memory_barrier2()];
        let info = vk::DependencyInfo::default().memory_barriers(&memory);
        // SAFETY: the caller's contract.
        unsafe {
            match self {
                DependencyRecorder::Vulkan10 => {
                    raw.cmd_set_event(commands, event, dependency.vulkan10_stages().0)
                }
                DependencyRecorder::Core => raw.cmd_set_event2(commands, event, &info),
                DependencyRecorder::Extension(device) => device.cmd_set_event2(commands, event, &info),
            }
        }
    }

    /// Records a wait for an event.
    ///
    /// # Safety
    ///
    /// As for a barrier; the event is set before it on the same queue, with the same scopes.
    pub(crate) unsafe fn record_wait(
        &self,
        raw: &ash::Device,
        commands: vk::CommandBuffer,
        event: vk::Event,
        dependency: &ScopedDependency,
    ) {
        let memory = [dependency.memory_barrier2()];
        let info = [vk::DependencyInfo::default().memory_barriers(&memory)];
        let events = [event];
        // SAFETY: the caller's contract.
        unsafe {
            match self {
                DependencyRecorder::Vulkan10 => {
                    let (source, target) = dependency.vulkan10_stages();
                    let memory = dependency.memory_barrier();
                    raw.cmd_wait_events(commands, &events, source, target, memory.as_slice(), &[], &[]);
                }
                DependencyRecorder::Core => raw.cmd_wait_events2(commands, &events, &info),
                DependencyRecorder::Extension(device) => device.cmd_wait_events2(commands, &events, &info),
            }
        }
    }
}

/// Access types with their flags.
const ACCESS_FLAGS: [(AccessMask, vk::AccessFlags); 9] = [
    (AccessMask::SHADER_READ, vk::AccessFlags::SHADER_READ),
    (AccessMask::SHADER_WRITE, vk::AccessFlags::SHADER_WRITE),
    (AccessMask::UNIFORM_READ, vk::AccessFlags::UNIFORM_READ),
    (AccessMask::TRANSFER_READ, vk::AccessFlags::TRANSFER_READ),
    (AccessMask::TRANSFER_WRITE, vk::AccessFlags::TRANSFER_WRITE),
    (AccessMask::HOST_READ, vk::AccessFlags::HOST_READ),
    (AccessMask::HOST_WRITE, vk::AccessFlags::HOST_WRITE),
    (AccessMask::MEMORY_READ, vk::AccessFlags::MEMORY_READ),
    (AccessMask::MEMORY_WRITE, vk::AccessFlags::MEMORY_WRITE),
];

fn access_flags(accesses: AccessMask) -> vk::AccessFlags {
    let kinds = ACCESS_FLAGS.iter().filter(|(kind, _)| accesses.intersects(*kind));
    kinds.fold(vk::AccessFlags::empty(), |all, (_, flag)| all | *flag)
}
