//! Host threads of a plan: the operations of a test's host side, and their submissions and waits.

use vocabulary::Order;

use crate::resource::{BufferId, SemaphoreId};

/// The host threads that run between the steps [`Hosts`](crate::PlanStep::Hosts) and
/// [`HostsEnd`](crate::PlanStep::HostsEnd), concurrently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hosts {
    /// The threads.
    pub threads: Vec<HostThread>,
    /// The only buffer that they access, in [`crate::BufferMemory::Mapped`].
    pub buffer: BufferId,
    /// The start of each batch. A batch is the work after a step [`Batch`](crate::PlanStep::Batch) on its queue.
    pub batches: Vec<BatchStart>,
    /// True if each queue receives its batches in the order of their numbers.
    pub is_in_order: bool,
}

impl Hosts {
    /// Returns the words that the threads access, in program order.
    pub fn accessed_places(&self) -> impl Iterator<Item = HostPlace> + '_ {
        let operations = self.threads.iter().flat_map(|thread| &thread.acts).flat_map(|act| match act {
            HostAct::Execute(operations) => operations.as_slice(),
            HostAct::Submit(_) | HostAct::Wait(_) | HostAct::Signal { .. } | HostAct::Await { .. } => &[],
        });
        operations
            .flat_map(|operation| match operation {
                HostOperation::Load { place, .. } | HostOperation::Store { place, .. } => {
                    std::slice::from_ref(place)
                }
                HostOperation::Flush(places) | HostOperation::Invalidate(places) => places.as_slice(),
                HostOperation::Fence(_) | HostOperation::Skip { .. } => &[],
            })
            .copied()
    }
}

/// The start of a batch of commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchStart {
    /// An [`HostAct::Submit`] submits it.
    Submitted,
    /// It is submitted before the threads start.
    Early,
}

/// A thread of the host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostThread {
    /// Its acts, in order.
    pub acts: Vec<HostAct>,
    /// The number of registers per instance; they start at 0.
    pub registers: u32,
    /// The words that it reports for each instance after it has ended.
    pub reports: Vec<HostReport>,
}

/// A word that a thread reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostReport {
    /// A register.
    Register(u32),
    /// [`HostLayout::done`]: the thread has ended.
    Done,
}

/// An act of a thread, done once or once for each instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostAct {
    /// Runs these operations for one instance after the other.
    Execute(Vec<HostOperation>),
    /// Submits a batch.
    Submit(u32),
    /// Waits for the fence of a batch.
    Wait(u32),
    /// Signals a timeline semaphore.
    Signal {
        /// The semaphore.
        semaphore: SemaphoreId,
        /// The new value within the submission of the plan, at least 1.
        value: u32,
    },
    /// Waits until a timeline semaphore has reached a value.
    Await {
        /// The semaphore.
        semaphore: SemaphoreId,
        /// The value.
        value: u32,
    },
}

/// An operation of a thread for an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostOperation {
    /// Reads a word.
    Load {
        /// The destination register.
        register: u32,
        /// The word.
        place: HostPlace,
        /// The order of an atomic load; `None` for a plain one.
        order: Option<Order>,
    },
    /// Writes a word.
    Store {
        /// The word.
        place: HostPlace,
        /// The new value.
        value: HostValue,
        /// The order of an atomic store; `None` for a plain one.
        order: Option<Order>,
    },
    /// A fence of the host language.
    Fence(Order),
    /// `vkFlushMappedMemoryRanges`; no effect on coherent memory.
    Flush(Vec<HostPlace>),
    /// `vkInvalidateMappedMemoryRanges`; no effect on coherent memory.
    Invalidate(Vec<HostPlace>),
    /// Skips the next operations if the comparison of signed numbers holds.
    Skip {
        /// The comparison; `None` means always.
        condition: Option<(HostRelation, HostValue, HostValue)>,
        /// The number of skipped operations.
        count: u32,
    },
}

/// A word of an instance: its storage (see [`HostLayout::word_index`]) and the name by which it is accessed.
///
/// Several names of a test may refer to one storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostPlace {
    /// Index of the storage.
    pub storage: u32,
    /// Index of the name.
    pub name: u32,
}

/// An operand of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostValue {
    /// A number.
    Number(u32),
    /// A register.
    Register(u32),
}

impl HostValue {
    /// Returns the value, given the contents of the registers.
    pub fn evaluate(self, register: impl Fn(u32) -> u32) -> u32 {
        match self {
            HostValue::Number(number) => number,
            HostValue::Register(number) => register(number),
        }
    }
}

/// A comparison of signed numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostRelation {
    /// Equal.
    Equal,
    /// Not equal.
    NotEqual,
    /// Greater than.
    Greater,
    /// Greater than or equal.
    GreaterOrEqual,
    /// Less than.
    Less,
    /// Less than or equal.
    LessOrEqual,
}

impl HostRelation {
    /// Returns true if it holds.
    pub fn holds(self, left: u32, right: u32) -> bool {
        let (left, right) = (left as i32, right as i32);
        match self {
            HostRelation::Equal => left == right,
            HostRelation::NotEqual => left != right,
            HostRelation::Greater => left > right,
            HostRelation::GreaterOrEqual => left >= right,
            HostRelation::Less => left < right,
            HostRelation::LessOrEqual => left <= right,
        }
    }
}

/// The instance layout that host threads use in a submission.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostLayout {
    /// The number of instances.
    pub instances: u32,
    /// Words between consecutive instances.
    pub stride: u32,
    /// Words between consecutive storages of an instance.
    pub spacing: u32,
    /// The word that [`HostReport::Done`] reports.
    pub done: u32,
    /// The word that is reported for instances that a thread did not reach.
    pub poison: u32,
}

impl HostLayout {
    /// Returns the word index of a storage of an instance.
    pub fn word_index(&self, instance: u32, storage: u32) -> u64 {
        u64::from(instance) * u64::from(self.stride) + u64::from(storage) * u64::from(self.spacing)
    }
}
