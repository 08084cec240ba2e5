//! The work submitted to queues: the API calls of a test, in order, for devices.
//!
//! The parser derives their meaning for models from them; it is in [`Test::system_sync`] and in the threads.

use std::sync::Arc;

use vocabulary::{AccessMask, StageMask};

use crate::test::{InstructionKind, LocationId, SystemSync, Test, ThreadId};

/// The queues of a test with their submitted work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    /// The queues, in the order in which threads name them.
    pub queues: Vec<ScheduledQueue>,
    /// The exclusively owned storages: those declared exclusive and those with a queue family ownership
    /// transfer.
    pub owned: Vec<LocationId>,
    /// The semaphore calls of host threads, thread by thread in order. All other host calls are instructions.
    pub hosts: Vec<HostCall>,
    /// The fence waits of host threads. The derived instructions wait for everything that precedes such a
    /// fence.
    pub fences: Vec<FenceWait>,
}

/// A wait of a host thread for the fences of submissions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FenceWait {
    /// The thread.
    pub thread: ThreadId,
    /// Index of the instruction that waits.
    pub at: usize,
    /// The threads of the device whose submissions it names.
    pub threads: Vec<ThreadId>,
}

/// A semaphore call of a host thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostCall {
    /// The thread.
    pub thread: ThreadId,
    /// The number of instructions before the call.
    pub at: usize,
    /// The semaphore.
    pub semaphore: String,
    /// The value of a timeline semaphore; `None` for a binary one.
    pub value: Option<u32>,
    /// True for a wait, which is represented by the derived instruction after it; false for a signal.
    pub waits: bool,
}

/// A queue with its submitted work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduledQueue {
    /// Its index in the family.
    pub family: u32,
    /// Its work, in submission order.
    pub number: u32,
    /// The thread in whose column each item is written.
    pub items: Vec<ScheduledItem>,
    /// The thread in whose column each item is written.
    pub threads: Vec<ThreadId>,
}

/// An item of a queue. Semaphores and events are identified by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScheduledItem {
    /// The dispatch of a thread.
    Dispatch(ThreadId),
    /// A pipeline barrier.
    Barrier(DependencyScopes),
    /// Sets an event.
    Set(String, DependencyScopes),
    /// Waits for an event, with the scopes of its [`ScheduledItem::Set`].
    Await(String, DependencyScopes),
    /// Signals a semaphore; with a value, a timeline semaphore.
    Signal(String, Option<u32>),
    /// Waits for a semaphore.
    Wait(String, Option<u32>),
    /// Releases the ownership of these storages to a queue family.
    Release(Vec<LocationId>, u32),
    /// Acquires it from a queue family.
    Acquire(Vec<LocationId>, u32),
}

/// The synchronization scopes and access scopes of a dependency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DependencyScopes {
    /// Stages and accesses of the first scope.
    pub source: (StageMask, AccessMask),
    /// Stages and accesses of the second scope.
    pub target: (StageMask, AccessMask),
}

/// The API calls of a test, with the synchronization derived from them.
///
/// All values compare equal: models see only the derived synchronization, so calls make no difference between
/// tests.
#[derive(Clone, Debug, Default)]
pub struct ApiCalls(Option<Arc<DerivedSync>>);

#[derive(Debug)]
struct DerivedSync {
    schedule: Schedule,
    sync: Vec<SystemSync>,
    threads: Vec<Vec<InstructionKind>>,
}

impl PartialEq for ApiCalls {
    fn eq(&self, _: &ApiCalls) -> bool {
        true
    }
}

impl Eq for ApiCalls {}

fn instruction_kinds(test: &Test) -> impl Iterator<Item = impl Iterator<Item = &InstructionKind>> {
    test.threads.iter().map(|thread| thread.instructions.iter().map(|instruction| &instruction.kind))
}

impl ApiCalls {
    /// Stores a schedule together with the synchronization derived from it.
    pub(crate) fn new(schedule: Schedule, test: &Test) -> ApiCalls {
        let threads = instruction_kinds(test).map(|kinds| kinds.cloned().collect()).collect();
        ApiCalls(Some(Arc::new(DerivedSync { schedule, sync: test.system_sync.clone(), threads })))
    }
}

impl Test {
    /// Returns the work submitted to queues.
    ///
    /// `None` without calls, or if the derived synchronization was changed since parsing: then the calls no
    /// longer match it.
    pub fn schedule(&self) -> Option<&Schedule> {
        let derived = self.calls.0.as_deref()?;
        let is_unchanged = derived.sync == self.system_sync
            && derived.threads.len() == self.threads.len()
            && instruction_kinds(self)
                .zip(&derived.threads)
                .all(|(current, derived_kinds)| current.eq(derived_kinds));
        is_unchanged.then_some(&derived.schedule)
    }

    /// Copies the calls of a test that differs from this one only in accesses; calls stay at the same
    /// instructions.
    pub fn copy_calls_from(&mut self, other: &Test) {
        let Some(mut schedule) = other.schedule().cloned() else { return };
        let hosts = schedule.hosts.iter_mut().map(|call| (call.thread, &mut call.at));
        let fences = schedule.fences.iter_mut().map(|fence| (fence.thread, &mut fence.at));
        for (thread, place) in hosts.chain(fences) {
            let (original, current) = (other.thread(thread), self.thread(thread));
            // The position after the last instruction that both tests share up to there.
            let mut at = 0;
            for instruction in original.instructions.iter().take(*place + 1) {
                let found = current.instructions.iter().skip(at).position(|own| own.kind == instruction.kind);
                at += found.map_or(0, |found| found + 1);
            }
            *place = if *place < original.instructions.len() {
                at.saturating_sub(1)
            } else {
                current.instructions.len()
            };
        }
        self.calls = ApiCalls::new(schedule, self);
    }
}
