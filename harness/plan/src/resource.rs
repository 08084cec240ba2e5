//! Resources of a plan: buffers, queues and semaphores, and the indices of all resources.

use crate::memory::MemoryKind;

/// Index into [`crate::Plan::kernels`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KernelId(pub u32);

/// Index into [`crate::Plan::buffers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BufferId(pub u32);

/// Index into [`crate::Plan::queues`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueueId(pub u32);

/// Index into [`crate::Plan::semaphores`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SemaphoreId(pub u32);

/// A buffer.
#[derive(Clone, Debug)]
pub struct Buffer {
    /// Size in 32-bit words.
    pub words: u64,
    /// The memory of the buffer.
    pub memory: BufferMemory,
    /// The name in debuggers and errors.
    pub name: &'static str,
}

/// The memory of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BufferMemory {
    /// Device-local if possible; also host-visible only on unified memory.
    Device,
    /// Device-local if possible, and never mapped: a driver cannot confuse it with memory of the host.
    Private,
    /// Host-visible and cached: results that the host reads.
    Readback,
    /// Host-visible and coherent: the host accesses it while kernels run.
    Shared,
    /// The device's first memory type of this kind; the host does not access it.
    Typed(MemoryKind),
    /// The device's first memory type of this kind; host threads access it.
    Mapped(MemoryKind),
}

/// A queue that a plan needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Queue {
    /// Queues with different numbers must come from different queue families.
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
