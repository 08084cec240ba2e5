//! The device interface: what a runner asks of a device, and what a device answers.
//!
//! A [`Plan`] holds kernels, buffers and an ordered list of steps. A [`Device`] prepares it once (pipelines, memory,
//! recorded commands) and gives back a [`Prepared`] plan, which is submitted as often as wanted and polled. Vulkan
//! devices, the simulated GPU and compile-only devices implement [`Device`]; nothing here assumes one queue, one
//! dispatch, a working clock, or that anything was executed. This crate knows no litmus test and no Vulkan loader.

mod accesses;
mod check;
mod host;
mod image;
mod interface;
mod masked;
mod memory;
mod stage;

use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use accesses::Accesses;
pub use host::{
    BatchStart, HostAct, HostOperation, HostOrder, HostPlace, HostPlay, HostRelation, HostReport, HostThread,
    HostValue, Hosts,
};
pub use image::{Image, ImageFormat, ImageId, ImageShape};
pub use interface::{Bound, Interface};
pub use masked::{MaskError, Masked};
pub use memory::{MemoryKind, MemoryProperties};
pub use stage::{Drawing, Stage, Stages};

/// Index into [`Plan::kernels`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KernelId(pub u32);

/// Index into [`Plan::buffers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BufferId(pub u32);

/// Index into [`Plan::queues`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueueId(pub u32);

/// Index into [`Plan::semaphores`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SemaphoreId(pub u32);

/// Everything that a device needs to know to run something.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Kernels: shaders of one stage.
    pub kernels: Vec<Kernel>,
    /// Buffers, in no order.
    pub buffers: Vec<Buffer>,
    /// Images, in no order.
    pub images: Vec<Image>,
    /// Queues that the steps name; at least one.
    pub queues: Vec<Queue>,
    /// Semaphores. A binary one is signalled by one step and waited for by one later step; a timeline is signalled with values that
    /// rise, and each wait for it stands behind a signal that ends it.
    pub semaphores: Vec<Semaphore>,
    /// Threads of the host that take part.
    pub hosts: Option<Hosts>,
    /// What happens, in order. Steps of one queue between two [`Step::Submit`]s form one submission.
    pub steps: Vec<Step>,
}

/// A kernel: a shader of one stage.
#[derive(Clone, Debug, Default)]
pub struct Kernel {
    /// SPIR-V words; the entry point is `main`, unless the interface says another.
    pub words: Vec<u32>,
    /// Number of storage-buffer bindings, all in descriptor set 0, numbered from 0.
    pub bindings: u32,
    /// Images behind the bindings that follow those of storage buffers, in order.
    pub images: Vec<ImageId>,
    /// Size of the push constants in bytes, without addresses.
    pub push_constant_bytes: u32,
    /// Buffers whose addresses the device appends to the push constants, 8 bytes each.
    pub addresses: Vec<BufferId>,
    /// What its pipeline asks of subgroups.
    pub subgroups: Subgroups,
    /// What its invocations are.
    pub stage: Stage,
    /// Where a kernel that others wrote keeps its own names and numbers; of a compute kernel without addresses.
    pub interface: Option<Interface>,
}

/// What a pipeline asks of subgroups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Subgroups {
    /// Nothing.
    #[default]
    Any,
    /// This size, and that all of them are full: the kernel depends on both.
    Full(u32),
    /// This size.
    Required(u32),
    /// Each may have another size.
    Varying,
}

impl Subgroups {
    /// The size that is required.
    pub fn size(self) -> Option<u32> {
        match self {
            Subgroups::Full(size) | Subgroups::Required(size) => Some(size),
            Subgroups::Any | Subgroups::Varying => None,
        }
    }
}

/// A buffer.
#[derive(Clone, Debug)]
pub struct Buffer {
    /// Size in 32-bit words.
    pub words: u64,
    /// Where it lives.
    pub memory: Memory,
    /// The name under which debuggers and errors show it.
    pub name: &'static str,
}

/// Where a buffer lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Memory {
    /// Device-local where there is such memory; host-visible besides only where that costs nothing.
    Device,
    /// Host-visible and cached: results that the host reads.
    Readback,
    /// Host-visible and coherent: what the host writes while kernels run.
    Shared,
    /// A memory type of this kind, which the host does not reach; the device's first one.
    Of(MemoryKind),
    /// A memory type of this kind, which threads of the host reach; the device's first one.
    Mapped(MemoryKind),
}

/// A queue that a plan needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Queue {
    /// Queues with different numbers here must come from different queue families.
    pub family: u32,
}

/// A kind of semaphore.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Semaphore {
    /// Signalled, then waited for.
    Binary,
    /// A counter that rises with each submission of the plan.
    Timeline,
}

/// How a [`Step::Dependency`] is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DependencyKind {
    /// A pipeline barrier.
    Barrier,
    /// An event that is set, and waited for at once.
    Event,
    /// An event by its number is set. What the dependency orders comes before this.
    Set(u32),
    /// It is waited for, with the stages and accesses of the step that sets it, on the same queue. What comes behind this is ordered.
    Await(u32),
}

/// A step of a plan.
#[derive(Clone, Debug)]
pub enum Step {
    /// Sets every word of a buffer, on the device's time line.
    Fill {
        /// The queue that does it.
        queue: QueueId,
        /// The buffer.
        buffer: BufferId,
        /// The word.
        value: u32,
    },
    /// Copies all words of a buffer to the start of another, on the device's time line: host-visible memory to and from
    /// memory that the host cannot reach.
    Copy {
        /// The queue that does it.
        queue: QueueId,
        /// The buffer that is read.
        from: BufferId,
        /// The buffer that is written; at least as large.
        to: BufferId,
    },
    /// Copies the first words of a buffer to all texels of an image, row by row; what the image held is lost.
    ToImage {
        /// The queue that does it.
        queue: QueueId,
        /// The buffer that is read.
        from: BufferId,
        /// The image that is written; no texel buffer.
        to: ImageId,
    },
    /// Copies all texels of an image to the first words of a buffer. Some [`Step::ToImage`] has filled it before.
    FromImage {
        /// The queue that does it.
        queue: QueueId,
        /// The image that is read; no texel buffer.
        from: ImageId,
        /// The buffer that is written.
        to: BufferId,
    },
    /// Runs a kernel with workgroups; one of a graphics stage in a render pass of its own without attachments.
    Dispatch {
        /// The queue that does it.
        queue: QueueId,
        /// The kernel.
        kernel: KernelId,
        /// Workgroups in x; y and z are 1, unless the kernel's interface says more.
        workgroups: u32,
        /// The buffer of each binding, in the order of the bindings. Two bindings may name one buffer.
        bindings: Vec<BufferId>,
        /// Push constants; exactly [`Kernel::push_constant_bytes`] bytes.
        push_constants: Vec<u8>,
    },
    /// Runs a kernel of a graphics stage without workgroups, in a render pass of its own without attachments.
    Draw {
        /// The queue that does it.
        queue: QueueId,
        /// The kernel.
        kernel: KernelId,
        /// How many points, and where.
        drawing: Drawing,
        /// As of a dispatch.
        bindings: Vec<BufferId>,
        /// As of a dispatch.
        push_constants: Vec<u8>,
    },
    /// A full memory barrier on one queue: everything before is finished, available and visible to everything after.
    Barrier {
        /// The queue.
        queue: QueueId,
    },
    /// An execution barrier without access masks: orders, but publishes no write.
    ExecutionBarrier {
        /// The queue.
        queue: QueueId,
    },
    /// Dispatches and draws before it on the queue, those of earlier submissions included, have ended before those after it
    /// begin: a dependency between the stages that it names, and of memory what it names alone.
    Dependency {
        /// The queue.
        queue: QueueId,
        /// How it is made.
        kind: DependencyKind,
        /// The stages before it, and those after it; none stands for the beginning of all, and for the end.
        stages: (Stages, Stages),
        /// Of what was done earlier, the writes among these are made available. The device sets an event itself, so that
        /// the host's are none of its own.
        available: Accesses,
        /// What is available is made visible to these of what is done later.
        visible: Accesses,
    },
    /// The family of the queue releases the ownership of a buffer to that of another queue. What it wrote there is made available.
    /// A buffer with such a step is used by one queue family at a time; all others are shared.
    Release {
        /// The queue.
        queue: QueueId,
        /// The buffer.
        buffer: BufferId,
        /// A queue of the other family.
        to: QueueId,
    },
    /// The family of the queue acquires what that of another queue has released to it, and what is available there is made visible.
    /// Something else orders the two.
    Acquire {
        /// The queue.
        queue: QueueId,
        /// The buffer.
        buffer: BufferId,
        /// A queue of the other family.
        from: QueueId,
    },
    /// What follows is recorded in a command buffer of its own. Nothing is ordered by that.
    CommandBuffer {
        /// The queue.
        queue: QueueId,
    },
    /// Ends a submission of the queue; what follows is submitted after it, in order. Nothing else is ordered by that.
    Submit {
        /// The queue.
        queue: QueueId,
    },
    /// Ends a submission of the queue, which signals a semaphore when it has ended: its writes are made available.
    Signal {
        /// The queue.
        queue: QueueId,
        /// The semaphore.
        semaphore: SemaphoreId,
        /// The value that a timeline rises to within the submission, from 1; 1 for a binary one.
        value: u32,
    },
    /// Ends a submission of the queue; dispatches of the next one wait for a semaphore, and what is available is made
    /// visible to them.
    Wait {
        /// The queue.
        queue: QueueId,
        /// The semaphore.
        semaphore: SemaphoreId,
        /// The value that a timeline has reached; 1 for a binary one.
        value: u32,
    },
    /// Ends a submission of the queue; the host waits on a fence until everything so far has ended, on all queues, and
    /// only then submits the rest.
    HostWait {
        /// The queue.
        queue: QueueId,
    },
    /// Ends a submission of the queue; everything so far has ended on all queues, and what this one wrote is visible to the
    /// host, before its threads ([`Plan::hosts`]) begin.
    Hosts {
        /// The queue.
        queue: QueueId,
    },
    /// What follows on the queue, up to the next of these or to [`Step::HostsEnd`], is a batch: a submission that is begun as
    /// [`Hosts::batches`] says. When it has ended, its writes are made available to the device. When it is submitted, what
    /// the host has written before is made visible to it.
    Batch {
        /// The queue.
        queue: QueueId,
        /// Batches are numbered from 0 in the order of these steps.
        number: u32,
    },
    /// All threads of the host and all batches have ended before what follows, to which all that the host wrote is visible.
    HostsEnd {
        /// The queue.
        queue: QueueId,
    },
    /// Makes what was written so far visible to [`Prepared::read`].
    ToHost {
        /// The queue that produced it.
        queue: QueueId,
        /// The buffer.
        buffer: BufferId,
    },
}

/// A device: Vulkan, simulated or compile-only.
pub trait Device {
    /// Who it is.
    fn identity(&self) -> &Identity;

    /// What it can do. Ask before making a plan.
    fn capabilities(&self) -> &Capabilities;

    /// Builds pipelines and memory for a plan and records its commands.
    ///
    /// # Errors
    /// Whatever the plan needs and the device lacks, as [`DeviceError::Unsupported`]; otherwise what the driver said.
    fn prepare(&self, plan: &Plan) -> Result<Box<dyn Prepared + '_>, DeviceError>;

    /// Compiles kernels, on a thread of its own where that helps, so that a plan with them is prepared faster later. What is
    /// wrong with one is said then. Returns at once.
    fn compile_ahead(&self, kernels: Vec<Kernel>) {
        let _ = kernels;
    }

    /// Drops what was compiled and is kept for plans to come, so that the next one is compiled anew. Devices that keep
    /// nothing need not know.
    fn forget_compiled(&self) {}

    /// Decides whatever the device itself draws from now on. Devices that draw nothing need not know.
    fn reseed(&self, seed: u64) {
        let _ = seed;
    }

    /// Validation messages since the last call; empty unless validation was asked for and is there.
    fn validation_messages(&self) -> Vec<String> {
        Vec::new()
    }
}

/// A plan with its pipelines and memory. At most one submission is in flight at a time; prepare a plan twice to overlap.
pub trait Prepared {
    /// Starts the steps of the plan. Returns at once.
    ///
    /// # Errors
    /// [`DeviceError::Busy`] while the last submission is in flight; otherwise what the driver said.
    fn submit(&mut self) -> Result<(), DeviceError>;

    /// Waits for the submission in flight, at most `timeout`.
    ///
    /// # Errors
    /// [`DeviceError::DeviceLost`] and the like.
    fn poll(&mut self, timeout: Duration) -> Result<Progress, DeviceError>;

    /// What the memory of a buffer is, where the device says so.
    fn memory(&self, buffer: BufferId) -> Option<MemoryProperties> {
        let _ = buffer;
        None
    }

    /// Replaces the push constants of the dispatch or draw that is step number `step`, from the next submission on.
    ///
    /// # Errors
    /// When the step is neither or the size differs.
    fn set_push_constants(&mut self, step: usize, bytes: &[u8]) -> Result<(), DeviceError>;

    /// Replaces the number of workgroups of the dispatch that is step number `step`, from the next submission on.
    ///
    /// # Errors
    /// When the step is no dispatch, the number is more than the device allows, or the device cannot change it.
    fn set_workgroups(&mut self, step: usize, workgroups: u32) -> Result<(), DeviceError> {
        let _ = (step, workgroups);
        Err(DeviceError::Unsupported("changing the number of workgroups of a prepared plan".into()))
    }

    /// Replaces what the draw that is step number `step` draws, from the next submission on.
    ///
    /// # Errors
    /// When the step is no draw, the device is too small, or it cannot change it.
    fn set_drawing(&mut self, step: usize, drawing: Drawing) -> Result<(), DeviceError> {
        let _ = (step, drawing);
        Err(DeviceError::Unsupported("changing what a prepared plan draws".into()))
    }

    /// Says how the threads of the host play the next submissions.
    ///
    /// # Errors
    /// Where the plan has none, the device runs none, or their words lie outside of their buffer.
    fn set_hosts(&mut self, play: HostPlay) -> Result<(), DeviceError> {
        let _ = play;
        Err(DeviceError::Unsupported("threads of the host".into()))
    }

    /// What the threads of the host have reported in the last submission: thread by thread and word by word, each for all
    /// instances. Call it only while nothing is in flight.
    ///
    /// # Errors
    /// As for [`Prepared::set_hosts`].
    fn reported(&mut self) -> Result<&[u32], DeviceError> {
        Err(DeviceError::Unsupported("threads of the host".into()))
    }

    /// The words of a host-visible buffer ([`Memory::Readback`] or [`Memory::Shared`], or any that the device keeps
    /// host-visible). Call it only while nothing is in flight.
    ///
    /// # Errors
    /// When the buffer is not host-visible.
    fn read(&mut self, buffer: BufferId) -> Result<&[u32], DeviceError>;

    /// The same, to write to. What is written is there for the next submission.
    ///
    /// # Errors
    /// When the buffer is not host-visible.
    fn write(&mut self, buffer: BufferId) -> Result<&mut [u32], DeviceError>;

    /// The first `words` words of any buffer, as they are now: copied for this where the host does not reach them. Call it
    /// only while nothing is in flight.
    ///
    /// # Errors
    /// When the buffer has fewer words, or the device cannot give them.
    fn fetch(&mut self, buffer: BufferId, words: u64) -> Result<&[u32], DeviceError> {
        let all = self.read(buffer)?;
        usize::try_from(words)
            .ok()
            .and_then(|count| all.get(..count))
            .ok_or_else(|| no_such_word(buffer, words))
    }

    /// Reads one word of a [`Memory::Shared`] buffer, also while a submission is in flight: a relaxed atomic load of
    /// the host. Devices whose host memory is not shared with running kernels keep the default, which answers
    /// [`DeviceError::Busy`] then.
    ///
    /// # Errors
    /// When the buffer is not shared or has no such word.
    fn load(&mut self, buffer: BufferId, word: u64) -> Result<u32, DeviceError> {
        let words = self.read(buffer)?;
        let found = usize::try_from(word).ok().and_then(|index| words.get(index));
        found.copied().ok_or_else(|| no_such_word(buffer, word))
    }

    /// Writes one word of a [`Memory::Shared`] buffer, also while a submission is in flight: a relaxed atomic store of
    /// the host. The default is as for [`Prepared::load`].
    ///
    /// # Errors
    /// When the buffer is not shared or has no such word.
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

/// How far a submission is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Still going when the time was up.
    Running,
    /// Finished: every step was executed.
    Finished {
        /// Time that the device measured for it, where it has a clock.
        device_time: Option<Duration>,
    },
    /// The device answered, but executes nothing (compile-only devices).
    NotExecuted,
}

/// Who a device is. Goes into records as it stands.
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

/// What a device can do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capabilities {
    /// False for compile-only devices: they answer, but never execute.
    pub executes: bool,
    /// Kernels run on the host's processor: presets for CPU drivers apply.
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
    /// The instances of one round of a dispatch share choices that the device draws: what is independent is a round.
    #[serde(default)]
    pub shares_choices: bool,
    /// It plays the threads of the host of a plan ([`Plan::hosts`]).
    #[serde(default)]
    pub host_threads: bool,
    /// Subgroup operations in compute (the basic ones suffice).
    pub subgroups_in_compute: bool,
    /// Invocations of a workgroup at most.
    pub max_workgroup_invocations: u32,
    /// The same in x, y and z; 0 where the device does not say.
    #[serde(default)]
    pub max_workgroup_size: [u32; 3],
    /// Workgroups of a dispatch at most, in x.
    pub max_workgroups: u32,
    /// Subgroups of a workgroup at most where a kernel requires its subgroup size: such a workgroup has at most
    /// this many times that size invocations.
    pub max_workgroup_subgroups: u32,
    /// Workgroup memory in bytes.
    pub max_workgroup_memory_bytes: u32,
    /// Bytes of one storage buffer at most.
    pub max_storage_buffer_bytes: u64,
    /// Storage buffers of a stage at most.
    pub max_storage_buffers: u32,
    /// Push constants in bytes at most.
    pub max_push_constant_bytes: u32,
    /// Number of queue families with compute, and queues in each.
    pub compute_queues: Vec<u32>,
    /// Of the queue families with compute those with graphics as well: the queues of each. Draws need one.
    #[serde(default)]
    pub graphics_queues: Vec<u32>,
    /// Pixels of a point in each direction at most; 0 where the device does not say.
    #[serde(default)]
    pub max_point_size: u32,
    /// Loop iterations that an invocation may make in all, over all its loops, before the driver ends them without a word;
    /// `None` where there is no such limit. lavapipe has one. There (seen with Mesa 22.3, not with 25.0) the lanes that fill
    /// up the last subgroup of a workgroup run along in loops and read 0: unless the workgroup is made of full subgroups, a
    /// loop that waits for another value uses its budget up every time.
    pub loop_budget: Option<u32>,
    /// Memory types that buffers can lie in, in the order of the device; empty where it does not say.
    #[serde(default)]
    pub memory_types: Vec<MemoryProperties>,
    /// Features by the names that `needs:` lines use (Vulkan's feature names).
    pub features: Vec<String>,
}

/// Why a device did not do something.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeviceError {
    /// There is no Vulkan loader.
    #[error("no Vulkan loader: {0}")]
    NoLoader(String),
    /// The Vulkan loader has no driver, or no driver a device.
    #[error("no Vulkan driver: {0}")]
    NoDriver(String),
    /// No device meets the selection.
    #[error("no device matches `{0}`")]
    NoSuchDevice(String),
    /// The device lacks something by name.
    #[error("the device lacks {0}")]
    Unsupported(String),
    /// The driver gave up the device.
    #[error("the device was lost during {0}")]
    DeviceLost(&'static str),
    /// Memory ran out.
    #[error("out of memory during {0}")]
    OutOfMemory(&'static str),
    /// A submission is still in flight.
    #[error("a submission is still in flight")]
    Busy,
    /// A device that counts its steps made as many as it makes at most: a kernel spins for ever, or a barrier never fills.
    #[error("step budget")]
    StepBudget,
    /// A submission came to its end, and left nothing of what it was to do.
    #[error("the device did not execute {0}")]
    NotExecuted(&'static str),
    /// The plan contradicts itself.
    #[error("invalid plan: {0}")]
    InvalidPlan(String),
    /// Another error of the driver.
    #[error("the driver failed in {call}: {code}")]
    Driver {
        /// The call.
        call: &'static str,
        /// The result code's name.
        code: String,
    },
}
