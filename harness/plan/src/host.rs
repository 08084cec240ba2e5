//! Threads of the host beside a device: what they do for each instance of a test, and when they submit and wait.

use crate::{BufferId, Memory, Plan, Semaphore, SemaphoreId, Step};

/// What threads of the host do between [`Step::Hosts`] and [`Step::HostsEnd`]. They run at the same time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hosts {
    /// The threads.
    pub threads: Vec<HostThread>,
    /// The one buffer that they reach, in [`crate::Memory::Mapped`].
    pub buffer: BufferId,
    /// By batch, how it is begun: a batch is what follows a [`Step::Batch`] on its queue.
    pub batches: Vec<BatchStart>,
    /// True if each queue is given its batches in the order of their numbers.
    pub in_order: bool,
}

impl Hosts {
    /// The words that the threads reach, one after the other.
    pub fn places(&self) -> impl Iterator<Item = HostPlace> + '_ {
        let operations = self.threads.iter().flat_map(|thread| &thread.acts).flat_map(|act| match act {
            HostAct::Each(operations) => operations.as_slice(),
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

/// How a batch of commands is begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchStart {
    /// By an [`HostAct::Submit`].
    Submitted,
    /// It is submitted before the threads begin.
    Early,
}

/// A thread of the host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostThread {
    /// What it does, in order.
    pub acts: Vec<HostAct>,
    /// Registers of each instance; they hold 0 at first.
    pub registers: u32,
    /// What it reports of each instance when it has ended, a word each.
    pub reports: Vec<HostReport>,
}

/// A word that a thread reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostReport {
    /// A register.
    Register(u32),
    /// [`HostPlay::done`]: that it has ended.
    Done,
}

/// Something that a thread does once, or once for each instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostAct {
    /// These operations, for one instance after the other.
    Each(Vec<HostOperation>),
    /// Submits a batch.
    Submit(u32),
    /// Waits until a batch has ended, on its fence.
    Wait(u32),
    /// Signals a timeline semaphore.
    Signal {
        /// The semaphore.
        semaphore: SemaphoreId,
        /// The value that it rises to within the submission of the plan, from 1.
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
        /// The register that gets it.
        register: u32,
        /// The word.
        place: HostPlace,
        /// The order of an atomic load; a plain one has none.
        order: Option<HostOrder>,
    },
    /// Writes a word.
    Store {
        /// The word.
        place: HostPlace,
        /// What it gets.
        value: HostValue,
        /// The order of an atomic store; a plain one has none.
        order: Option<HostOrder>,
    },
    /// A fence of the host's language.
    Fence(HostOrder),
    /// `vkFlushMappedMemoryRanges`; nothing in coherent memory.
    Flush(Vec<HostPlace>),
    /// `vkInvalidateMappedMemoryRanges`; nothing in coherent memory.
    Invalidate(Vec<HostPlace>),
    /// Goes on behind so many operations more where the comparison of signed numbers holds.
    Skip {
        /// The comparison; always where there is none.
        condition: Option<(HostRelation, HostValue, HostValue)>,
        /// Operations that are left out.
        over: u32,
    },
}

/// A word of an instance: which [`HostPlay::word`] it is, and the name by which it is reached. Names of one word differ where
/// the test has several for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostPlace {
    /// Number of the storage.
    pub storage: u32,
    /// Number of the name.
    pub name: u32,
}

/// What an operation reads of its thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostValue {
    /// A number.
    Number(u32),
    /// A register.
    Register(u32),
}

impl HostValue {
    /// What it is, where `register` tells what registers hold.
    pub fn of(self, register: impl Fn(u32) -> u32) -> u32 {
        match self {
            HostValue::Number(number) => number,
            HostValue::Register(number) => register(number),
        }
    }
}

/// The order of an atomic operation or fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostOrder {
    /// No order but that of one location.
    Relaxed,
    /// Nothing after it moves before it.
    Acquire,
    /// Nothing before it moves after it.
    Release,
    /// Both.
    AcquireRelease,
}

impl HostOrder {
    /// Returns true if it acquires.
    pub fn acquires(self) -> bool {
        matches!(self, HostOrder::Acquire | HostOrder::AcquireRelease)
    }

    /// Returns true if it releases.
    pub fn releases(self) -> bool {
        matches!(self, HostOrder::Release | HostOrder::AcquireRelease)
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

/// How a submission is played by the threads of the host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostPlay {
    /// Instances.
    pub instances: u32,
    /// Words from an instance to the next.
    pub stride: u32,
    /// Words from a storage of an instance to the next.
    pub spacing: u32,
    /// What [`HostReport::Done`] reports.
    pub done: u32,
    /// What is reported of instances that a thread never came to.
    pub poison: u32,
}

impl HostPlay {
    /// The word of a storage of an instance in the buffer.
    pub fn word(&self, instance: u32, storage: u32) -> u64 {
        u64::from(instance) * u64::from(self.stride) + u64::from(storage) * u64::from(self.spacing)
    }
}

impl Plan {
    /// Threads of the host stand between their two steps, and each batch behind a step of its own.
    pub(crate) fn validate_hosts(&self) -> Result<(), String> {
        let mut inside = false;
        let mut begun = 0;
        let mut next = 0;
        for step in &self.steps {
            match step {
                Step::Hosts { .. } if !inside && self.hosts.is_some() => (inside, begun) = (true, begun + 1),
                Step::HostsEnd { .. } if inside => inside = false,
                Step::Batch { number, .. } if inside && *number == next => next += 1,
                Step::Hosts { .. } | Step::HostsEnd { .. } | Step::Batch { .. } => {
                    return Err("a step of threads of the host stands where there are none".to_owned());
                }
                Step::Dispatch { .. }
                | Step::Dependency { .. }
                | Step::CommandBuffer { .. }
                | Step::Signal { .. }
                | Step::Wait { .. }
                    if inside && next == 0 =>
                {
                    return Err("commands beside threads of the host belong to no batch".to_owned());
                }
                Step::Dispatch { .. }
                | Step::Dependency { .. }
                | Step::CommandBuffer { .. }
                | Step::Signal { .. }
                | Step::Wait { .. } => {}
                _ if inside => {
                    return Err("a batch has dispatches, dependencies and semaphores alone".to_owned());
                }
                _ => {}
            }
        }
        let Some(hosts) = &self.hosts else { return Ok(()) };
        let reached = self.buffers.get(hosts.buffer.0 as usize);
        if !reached.is_some_and(|buffer| matches!(buffer.memory, Memory::Mapped(_))) {
            return Err("threads of the host beside memory that they do not reach".to_owned());
        }
        if inside || begun != 1 || next as usize != hosts.batches.len() {
            return Err("threads of the host begin and end once, with all their batches between".to_owned());
        }
        let kind = |number: u32| hosts.batches.get(number as usize).copied();
        let mut submitted = vec![0; hosts.batches.len()];
        for act in hosts.threads.iter().flat_map(|thread| &thread.acts) {
            if let HostAct::Submit(number) = act
                && let Some(count) = submitted.get_mut(*number as usize)
            {
                *count += 1;
            }
            let wrong = match act {
                HostAct::Submit(number) => kind(*number) != Some(BatchStart::Submitted),
                HostAct::Wait(number) => kind(*number).is_none(),
                HostAct::Signal { semaphore, .. } | HostAct::Await { semaphore, .. } => {
                    self.semaphores.get(semaphore.0 as usize) != Some(&Semaphore::Timeline)
                }
                HostAct::Each(_) => false,
            };
            if wrong {
                return Err("a thread of the host begins or awaits what is not so begun".to_owned());
            }
        }
        let wanted = |start: &BatchStart| u32::from(*start == BatchStart::Submitted);
        if hosts.batches.iter().map(wanted).ne(submitted) {
            return Err("each batch is begun once".to_owned());
        }
        Ok(())
    }
}
