//! The device interface: plans for devices, and the results of their execution.
//!
//! A [`Plan`] has kernels, buffers and an ordered list of steps. A [`Device`] prepares it once (pipelines,
//! memory, recorded commands) and returns a [`Prepared`] plan, which can be submitted and polled repeatedly.
//! Vulkan devices, the simulated GPU and compile-only devices implement [`Device`]; nothing here assumes one
//! queue, one dispatch, a working clock, or that anything was executed. This crate does not depend on litmus
//! tests or a Vulkan loader.

#![warn(missing_docs)]

mod check;
mod clock;
mod host;
mod image;
mod interface;
mod mask;
mod memory;
mod resource;
mod stage;

use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use clock::Timestamp;
pub use host::{
    BatchStart, HostAct, HostLayout, HostOperation, HostPlace, HostRelation, HostReport, HostThread,
    HostValue, Hosts,
};
pub use image::{AddressMode, Image, ImageAccess, ImageFormat, ImageId, ImageShape, SamplerState};
pub use interface::{BufferBinding, Interface};
pub use mask::{FeatureMask, MaskError};
pub use memory::{MemoryKind, MemoryProperties};
pub use resource::{Buffer, BufferId, BufferMemory, KernelId, Queue, QueueId, Semaphore, SemaphoreId};
pub use stage::{Drawing, KernelStage};
pub use vocabulary::{AccessMask, Feature, Order, StageMask};

/// A program for a device: resources and ordered steps.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Kernels: shaders of one stage.
    pub kernels: Vec<Kernel>,
    /// Buffers, in any order.
    pub buffers: Vec<Buffer>,
    /// Images, in any order.
    pub images: Vec<Image>,
    /// Queues of the steps; at least one.
    pub queues: Vec<Queue>,
    /// Semaphores.
    ///
    /// A binary one is signalled by one step and waited for by one later step. A timeline is signalled with
    /// rising values, and each wait for it follows a signal that ends it.
    pub semaphores: Vec<Semaphore>,
    /// Host threads that run during the plan.
    pub hosts: Option<Hosts>,
    /// The steps, in order. Steps of one queue between two [`PlanStep::Submit`]s form one submission.
    pub steps: Vec<PlanStep>,
}

impl Plan {
    /// Adds a buffer and returns its number.
    pub fn add_buffer(&mut self, words: u64, memory: BufferMemory, name: &'static str) -> BufferId {
        self.buffers.push(Buffer { words, memory, name });
        BufferId(self.buffers.len() as u32 - 1)
    }

    /// Adds a kernel and returns its number.
    pub fn add_kernel(&mut self, kernel: Kernel) -> KernelId {
        self.kernels.push(kernel);
        KernelId(self.kernels.len() as u32 - 1)
    }
}

/// A kernel: a shader of one stage.
#[derive(Clone, Debug, Default)]
pub struct Kernel {
    /// SPIR-V words; the entry point is `main`, unless the interface names another one.
    pub words: Vec<u32>,
    /// Number of storage-buffer bindings, all in descriptor set 0, numbered from 0.
    pub bindings: u32,
    /// Images, in order; their bindings follow those of the storage buffers.
    pub images: Vec<ImageId>,
    /// Size of the push constants in bytes, without addresses.
    pub push_constant_bytes: u32,
    /// Buffers whose addresses the device appends to the push constants, 8 bytes each.
    pub addresses: Vec<BufferId>,
    /// The subgroup requirements of its pipeline.
    pub subgroups: Subgroups,
    /// The stage of its invocations.
    pub stage: KernelStage,
    /// The original names and numbers of a user kernel; only for compute kernels without addresses.
    pub interface: Option<Interface>,
}

/// The subgroup requirements of a pipeline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Subgroups {
    /// No requirements.
    #[default]
    Any,
    /// This subgroup size, and only full subgroups.
    Full(u32),
    /// This subgroup size.
    Required(u32),
    /// Subgroup sizes may vary.
    Varying,
}

impl Subgroups {
    /// Returns the required size.
    pub fn required_size(self) -> Option<u32> {
        match self {
            Subgroups::Full(size) | Subgroups::Required(size) => Some(size),
            Subgroups::Any | Subgroups::Varying => None,
        }
    }
}

/// The command of a [`PlanStep::Dependency`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DependencyKind {
    /// A pipeline barrier.
    Barrier,
    /// An event that is set and immediately waited for.
    Event,
    /// Sets an event by its number; this is the first half of the dependency.
    Set(u32),
    /// Waits for an event with the stages and accesses of its set, on the same queue; the second half of the
    /// dependency.
    Await(u32),
}

/// A step of a plan.
#[derive(Clone, Debug)]
pub enum PlanStep {
    /// Sets every word of a buffer, on the device's timeline.
    Fill {
        /// The queue that executes it.
        queue: QueueId,
        /// The buffer.
        buffer: BufferId,
        /// The word.
        value: u32,
    },
    /// Copies all words of a buffer to the start of another, on the device's timeline: between host-visible
    /// memory and device-only memory.
    Copy {
        /// The queue that executes it.
        queue: QueueId,
        /// The source.
        from: BufferId,
        /// The destination; at least as large.
        to: BufferId,
    },
    /// Copies the first words of a buffer to all texels of an image, row by row; the previous contents are
    /// lost.
    ToImage {
        /// The queue that executes it.
        queue: QueueId,
        /// The source.
        from: BufferId,
        /// The destination; not a texel buffer.
        to: ImageId,
    },
    /// Copies all texels of an image to the first words of a buffer. An earlier [`PlanStep::ToImage`] must have
    /// filled it.
    FromImage {
        /// The queue that executes it.
        queue: QueueId,
        /// The source; not a texel buffer.
        from: ImageId,
        /// The destination.
        to: BufferId,
    },
    /// Runs a kernel with workgroups; a graphics stage runs in its own render pass without attachments.
    Dispatch {
        /// The queue that executes it.
        queue: QueueId,
        /// The kernel.
        kernel: KernelId,
        /// Workgroups in x; y and z are 1, unless the kernel's interface states more.
        workgroups: u32,
        /// The buffer of each binding, in the order of the bindings. Two bindings may name one buffer.
        bindings: Vec<BufferId>,
        /// Push constants; exactly [`Kernel::push_constant_bytes`] bytes.
        push_constants: Vec<u8>,
    },
    /// Runs a kernel of a graphics stage without workgroups, in its own render pass without attachments.
    Draw {
        /// The queue that executes it.
        queue: QueueId,
        /// The kernel.
        kernel: KernelId,
        /// The points and their extent.
        drawing: Drawing,
        /// As of a dispatch.
        bindings: Vec<BufferId>,
        /// As of a dispatch.
        push_constants: Vec<u8>,
    },
    /// A full memory barrier on one queue: everything before is complete, available and visible to everything
    /// after.
    Barrier {
        /// The queue.
        queue: QueueId,
    },
    /// An execution barrier without access masks: it orders, but makes nothing available.
    ExecutionBarrier {
        /// The queue.
        queue: QueueId,
    },
    /// A memory dependency between its stages and accesses.
    ///
    /// Dispatches and draws before it on the queue, including earlier submissions, end before those after it
    /// begin.
    Dependency {
        /// The queue.
        queue: QueueId,
        /// The command.
        kind: DependencyKind,
        /// The stages of both scopes; an empty set means the beginning or the end of the pipe.
        stages: (StageMask, StageMask),
        /// The first access scope: these writes are made available. Events are set on the device, so they
        /// never cover host accesses.
        available: AccessMask,
        /// The second access scope: available writes are made visible to these accesses.
        visible: AccessMask,
    },
    /// Releases the ownership of a buffer from this queue's family to another family, and makes its writes
    /// available.
    ///
    /// A buffer with such a step has exclusive ownership; all others are shared concurrently.
    Release {
        /// The queue.
        queue: QueueId,
        /// The buffer.
        buffer: BufferId,
        /// A queue of the acquiring family.
        to: QueueId,
    },
    /// Acquires the ownership that another family has released, and makes available writes visible.
    ///
    /// Another step must order the two halves.
    Acquire {
        /// The queue.
        queue: QueueId,
        /// The buffer.
        buffer: BufferId,
        /// A queue of the releasing family.
        from: QueueId,
    },
    /// Starts a new command buffer. It orders nothing.
    CommandBuffer {
        /// The queue.
        queue: QueueId,
    },
    /// Ends a submission of the queue; later steps are submitted after it, in order. It orders nothing else.
    Submit {
        /// The queue.
        queue: QueueId,
    },
    /// Ends a submission of the queue, which signals a semaphore and makes its writes available.
    Signal {
        /// The queue.
        queue: QueueId,
        /// The semaphore.
        semaphore: SemaphoreId,
        /// The new value of a timeline within the submission, at least 1; 1 for a binary semaphore.
        value: u32,
    },
    /// Ends a submission of the queue. The next one waits for a semaphore, and available writes become
    /// visible to it.
    Wait {
        /// The queue.
        queue: QueueId,
        /// The semaphore.
        semaphore: SemaphoreId,
        /// The awaited value of a timeline; 1 for a binary semaphore.
        value: u32,
    },
    /// Ends a submission of the queue. The host waits for fences of all queues before it submits the rest.
    HostWait {
        /// The queue.
        queue: QueueId,
    },
    /// Ends a submission of the queue. When all queues are idle and its writes are visible to the host, the
    /// threads ([`Plan::hosts`]) begin.
    Hosts {
        /// The queue.
        queue: QueueId,
    },
    /// Begins a batch: a submission whose start is given by [`Hosts::batches`]. It extends to the next batch
    /// or to [`PlanStep::HostsEnd`].
    ///
    /// Its end makes its writes available to the device. Its submission makes earlier host writes visible to
    /// it.
    Batch {
        /// The queue.
        queue: QueueId,
        /// Batches are numbered from 0 in the order of these steps.
        number: u32,
    },
    /// Waits until all host threads and batches have ended; all host writes are visible to later steps.
    HostsEnd {
        /// The queue.
        queue: QueueId,
    },
    /// Makes earlier writes visible to [`Prepared::read`].
    ToHost {
        /// The queue of the writes.
        queue: QueueId,
        /// The buffer.
        buffer: BufferId,
    },
}

/// A device: Vulkan, simulated or compile-only.
pub trait Device {
    /// Returns the identity.
    fn identity(&self) -> &Identity;

    /// Returns the capabilities. Check them before making a plan.
    fn capabilities(&self) -> &Capabilities;

    /// Builds pipelines and memory for a plan and records its commands.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Unsupported`] for a missing capability, or the driver's error.
    fn prepare(&self, plan: &Plan) -> Result<Box<dyn Prepared + '_>, DeviceError>;

    /// Drops cached pipelines, so that the next plan is compiled again. Devices without a cache keep the
    /// default.
    fn clear_pipeline_cache(&self) {}

    /// Seeds the device's own random choices. Devices without any keep the default.
    fn reseed(&self, seed: u64) {
        let _ = seed;
    }

    /// Returns validation messages since the last call; empty without validation.
    fn validation_messages(&self) -> Vec<String> {
        Vec::new()
    }
}

/// A plan with its pipelines and memory. At most one submission is in flight; prepare a plan twice to
/// overlap.
pub trait Prepared {
    /// Starts the steps of the plan. Returns immediately.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Busy`] while the last submission is in flight, or the driver's error.
    fn submit(&mut self) -> Result<(), DeviceError>;

    /// Waits for the submission in flight, at most `timeout`.
    ///
    /// # Errors
    ///
    /// [`DeviceError::DeviceLost`] and similar.
    fn poll(&mut self, timeout: Duration) -> Result<Progress, DeviceError>;

    /// Waits until nothing of the last submission runs, although it was reported as finished.
    ///
    /// A driver may signal a fence too early. The memory of such a submission must not be reset while it runs.
    ///
    /// # Errors
    ///
    /// The driver's error.
    fn drain(&mut self) -> Result<(), DeviceError> {
        Ok(())
    }

    /// Returns the properties of a buffer's memory, if the device reports them.
    fn memory_properties(&self, buffer: BufferId) -> Option<MemoryProperties> {
        let _ = buffer;
        None
    }

    /// Replaces the push constants of the dispatch or draw at index `step`, from the next submission on.
    ///
    /// # Errors
    ///
    /// If the step is neither, or the size differs.
    fn set_push_constants(&mut self, step: usize, bytes: &[u8]) -> Result<(), DeviceError>;

    /// Replaces the number of workgroups of the dispatch at index `step`, from the next submission on.
    ///
    /// # Errors
    ///
    /// If the step is not a dispatch, the number exceeds the device's limit, or the device cannot change it.
    fn set_workgroups(&mut self, step: usize, workgroups: u32) -> Result<(), DeviceError> {
        let _ = (step, workgroups);
        Err(DeviceError::Unsupported("changing the number of workgroups of a prepared plan".into()))
    }

    /// Replaces the drawing of the draw at index `step`, from the next submission on.
    ///
    /// # Errors
    ///
    /// If the step is not a draw, the device is too small, or it cannot change it.
    fn set_drawing(&mut self, step: usize, drawing: Drawing) -> Result<(), DeviceError> {
        let _ = (step, drawing);
        Err(DeviceError::Unsupported("changing what a prepared plan draws".into()))
    }

    /// Sets the instance layout of host threads for the next submissions.
    ///
    /// # Errors
    ///
    /// If the plan has no host threads, the device runs none, or their words exceed the buffer.
    fn set_host_layout(&mut self, layout: HostLayout) -> Result<(), DeviceError> {
        let _ = layout;
        Err(DeviceError::Unsupported("host threads".into()))
    }

    /// Returns the reports of host threads in the last submission: by thread, then by word, each for all
    /// instances.
    ///
    /// Call it only while no submission is in flight.
    ///
    /// # Errors
    ///
    /// As for [`Prepared::set_host_layout`].
    fn host_reports(&mut self) -> Result<&[u32], DeviceError> {
        Err(DeviceError::Unsupported("host threads".into()))
    }

    /// Returns the words of a host-visible buffer: [`BufferMemory::Readback`], [`BufferMemory::Shared`], or one that the
    /// device made host-visible.
    ///
    /// Call it only while no submission is in flight.
    ///
    /// # Errors
    ///
    /// If the buffer is not host-visible.
    fn read(&mut self, buffer: BufferId) -> Result<&[u32], DeviceError>;

    /// Returns the first `words` words of a host-visible buffer, or all if it has fewer.
    ///
    /// Call it only while no submission is in flight.
    ///
    /// # Errors
    ///
    /// If the buffer is not host-visible.
    fn read_prefix(&mut self, buffer: BufferId, words: usize) -> Result<&[u32], DeviceError> {
        let all = self.read(buffer)?;
        Ok(all.get(..words).unwrap_or(all))
    }

    /// Returns the words of a host-visible buffer for writing; the next submission sees the changes.
    ///
    /// # Errors
    ///
    /// If the buffer is not host-visible.
    fn write(&mut self, buffer: BufferId) -> Result<&mut [u32], DeviceError>;

    /// Returns the current first `words` words of any buffer; copies them if the buffer is not host-visible.
    ///
    /// Call it only while no submission is in flight.
    ///
    /// # Errors
    ///
    /// If the buffer has fewer words, or the device cannot read them.
    fn fetch(&mut self, buffer: BufferId, words: u64) -> Result<&[u32], DeviceError> {
        let all = self.read(buffer)?;
        usize::try_from(words)
            .ok()
            .and_then(|count| all.get(..count))
            .ok_or_else(|| no_such_word(buffer, words))
    }

    /// Reads one word of a [`BufferMemory::Shared`] buffer with a relaxed atomic load, even while a submission is
    /// in flight.
    ///
    /// Devices whose host memory is not shared with running kernels keep the default, which then returns
    /// [`DeviceError::Busy`].
    ///
    /// # Errors
    ///
    /// If the buffer is not shared or has no such word.
    fn load(&mut self, buffer: BufferId, word: u64) -> Result<u32, DeviceError> {
        let words = self.read(buffer)?;
        let found = usize::try_from(word).ok().and_then(|index| words.get(index));
        found.copied().ok_or_else(|| no_such_word(buffer, word))
    }

    /// Writes one word of a [`BufferMemory::Shared`] buffer with a relaxed atomic store, even while a submission is
    /// in flight.
    ///
    /// The default is as for [`Prepared::load`].
    ///
    /// # Errors
    ///
    /// If the buffer is not shared or has no such word.
    fn store(&mut self, buffer: BufferId, word: u64, value: u32) -> Result<(), DeviceError> {
        let words = self.write(buffer)?;
        let found = usize::try_from(word).ok().and_then(|index| words.get_mut(index));
        *found.ok_or_else(|| no_such_word(buffer, word))? = value;
        Ok(())
    }
}

fn no_such_word(buffer: BufferId, word: u64) -> DeviceError {
    DeviceError::InvalidPlan(format!("buffer {} has no word {word}", buffer.0))
}

/// The progress of a submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Still running at the timeout.
    Running,
    /// Finished: every step was executed.
    Finished {
        /// The time that the device measured, if it has a clock.
        device_time: Option<Duration>,
    },
    /// The device is compile-only and executed nothing.
    NotExecuted,
}

/// The identity of a device, stored in records unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Short name for people and reports: `lavapipe`, `swiftshader`, `sim`, or the device name of hardware.
    pub name: String,
    /// The device name that the driver reports.
    pub device_name: String,
    /// `discrete`, `integrated`, `virtual`, `cpu`, `simulated`, `compile-only` or `other`.
    pub kind: String,
    /// Driver name (`VkPhysicalDeviceDriverProperties::driverName`).
    pub driver_name: String,
    /// Driver information string.
    pub driver_info: String,
    /// `VkDriverId` as a number; 0 for none.
    pub driver_id: i32,
    /// Driver version, as the driver encodes it.
    pub driver_version: u32,
    /// Vulkan version, `major.minor.patch`; empty for none.
    pub api_version: String,
    /// Vendor id.
    pub vendor_id: u32,
    /// Device id.
    pub device_id: u32,
    /// Device UUID, 32 hexadecimal digits.
    pub uuid: String,
}

/// The capabilities of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capabilities {
    /// False for compile-only devices, which never execute.
    pub executes: bool,
    /// True if kernels run on the host's processor, so that presets for CPU drivers apply.
    pub is_cpu: bool,
    /// `vulkanMemoryModel`.
    pub memory_model: bool,
    /// `vulkanMemoryModelDeviceScope`.
    pub device_scope: bool,
    /// `vulkanMemoryModelAvailabilityVisibilityChains`.
    pub availability_visibility_chains: bool,
    /// Invocations of a subgroup.
    pub subgroup_size: u32,
    /// Smallest and largest subgroup size that a kernel may require ([`Kernel::subgroups`]).
    pub subgroup_size_range: (u32, u32),
    /// `computeFullSubgroups` and `subgroupSizeControl`: kernels may rely on lanes of a subgroup.
    pub full_subgroups: bool,
    /// True if the instances of one round of a dispatch share random choices of the device, so that rounds
    /// are the independent samples.
    #[serde(default)]
    pub shares_choices: bool,
    /// True if it runs the host threads of a plan ([`Plan::hosts`]).
    #[serde(default)]
    pub host_threads: bool,
    /// Subgroup operations in compute (the basic ones suffice).
    pub subgroups_in_compute: bool,
    /// The maximum number of invocations of a workgroup.
    pub max_workgroup_invocations: u32,
    /// The maximum size of a workgroup in x, y and z; 0 if unknown.
    #[serde(default)]
    pub max_workgroup_size: [u32; 3],
    /// The maximum number of workgroups of a dispatch in x.
    pub max_workgroups: u32,
    /// The maximum number of subgroups of a workgroup whose kernel requires a subgroup size.
    ///
    /// Such a workgroup has at most this many times that size invocations.
    pub max_workgroup_subgroups: u32,
    /// Workgroup memory in bytes.
    pub max_workgroup_memory_bytes: u32,
    /// The maximum size of a storage buffer in bytes.
    pub max_storage_buffer_bytes: u64,
    /// The maximum number of storage buffers of a stage.
    pub max_storage_buffers: u32,
    /// The maximum size of push constants in bytes.
    pub max_push_constant_bytes: u32,
    /// The queue families with compute: the number of queues of each.
    pub compute_queues: Vec<u32>,
    /// The queue families with compute and graphics: the number of queues of each. Draws need one.
    #[serde(default)]
    pub graphics_queues: Vec<u32>,
    /// The maximum size of a point in pixels; 0 if unknown.
    #[serde(default)]
    pub max_point_size: u32,
    /// The total number of loop iterations of an invocation after which the driver silently ends all its
    /// loops; `None` without a limit.
    ///
    /// lavapipe has such a limit. In Mesa 22.3 (not in 25.0), the unused lanes of the last subgroup of a
    /// workgroup also execute loops and read 0. Unless the workgroup consists of full subgroups, a loop that
    /// waits for another value always uses up its budget there.
    pub loop_budget: Option<u32>,
    /// Memory types for buffers, in the order of the device; empty if unknown.
    #[serde(default)]
    pub memory_types: Vec<MemoryProperties>,
    /// The features that kernels may use.
    pub features: Vec<Feature>,
}

impl Capabilities {
    /// Returns true if kernels may use a feature.
    pub fn has_feature(&self, feature: Feature) -> bool {
        self.features.contains(&feature)
            || match feature {
                Feature::VulkanMemoryModel => self.memory_model,
                Feature::VulkanMemoryModelDeviceScope => self.device_scope,
                Feature::VulkanMemoryModelAvailabilityVisibilityChains => self.availability_visibility_chains,
                _ => false,
            }
    }

    /// Returns true if kernels may use the feature of this name.
    pub fn has_feature_named(&self, name: &str) -> bool {
        name.parse().is_ok_and(|feature| self.has_feature(feature))
    }
}

/// The reason why a device failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages describe the variants and their fields")]
pub enum DeviceError {
    #[error("no Vulkan loader: {0}")]
    NoLoader(String),
    /// The Vulkan loader found no driver, or no driver has a device.
    #[error("no Vulkan driver: {0}")]
    NoDriver(String),
    #[error("no device matches `{0}`")]
    NoSuchDevice(String),
    #[error("the device lacks {0}")]
    Unsupported(String),
    #[error("the device was lost during {0}")]
    DeviceLost(&'static str),
    /// Memory ran out.
    #[error("out of memory during {0}")]
    OutOfMemory(&'static str),
    #[error("a submission is still in flight")]
    Busy,
    /// A simulated device reached its step limit: a kernel spins forever, or a barrier never fills.
    #[error("step budget")]
    StepBudget,
    #[error("the device did not execute {0}")]
    NotExecuted(&'static str),
    /// The plan contradicts itself.
    #[error("invalid plan: {0}")]
    InvalidPlan(String),
    #[error("the driver failed in {call}: {code}")]
    Driver { call: &'static str, code: String },
}
