//! What queues are given: the calls of a test as they stand, for devices. What they mean to models is derived as the test is read,
//! and lies in [`Test::system_sync`] and the threads.

use std::sync::Arc;

use crate::system::AccessMask;
use crate::test::{InstructionKind, LocationId, SystemSync, Test, ThreadId};

/// Queues with what they are given, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    /// The queues, in the order in which threads name them.
    pub queues: Vec<ScheduledQueue>,
    /// The storages that one queue family owns at a time: those that are transferred, and those declared so.
    pub owned: Vec<LocationId>,
    /// The calls of threads of the host for semaphores, thread by thread and in order. Their other calls are instructions.
    pub hosts: Vec<HostCall>,
    /// The waits of threads of the host for fences. Their instructions wait for all that such a fence comes behind.
    pub fences: Vec<FenceWait>,
}

/// A wait of a thread of the host for the fences of submissions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FenceWait {
    /// The thread.
    pub thread: ThreadId,
    /// Which of its instructions it is.
    pub at: usize,
    /// The threads of the device whose submissions it names.
    pub threads: Vec<ThreadId>,
}

/// A call of a thread of the host for a semaphore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostCall {
    /// The thread.
    pub thread: ThreadId,
    /// How many of its instructions stand before it.
    pub at: usize,
    /// The semaphore.
    pub semaphore: String,
    /// The value of a timeline.
    pub value: Option<u32>,
    /// Whether it waits, and so stands for the instruction behind it, which was derived from it; else it signals.
    pub waits: bool,
}

/// A queue with what it is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduledQueue {
    /// Its family.
    pub family: u32,
    /// Its number in the family.
    pub number: u32,
    /// What it is given, in order.
    pub items: Vec<Scheduled>,
    /// By item the thread in whose column it stands.
    pub threads: Vec<ThreadId>,
}

/// Something that a queue is given. Semaphores and events are told by their names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scheduled {
    /// The dispatch of a thread.
    Dispatch(ThreadId),
    /// A pipeline barrier.
    Barrier(Scopes),
    /// An event is set.
    Set(String, Scopes),
    /// An event is waited for, with the scopes of its [`Scheduled::Set`].
    Await(String, Scopes),
    /// The signal of a semaphore; a value makes it one of a timeline.
    Signal(String, Option<u32>),
    /// The wait for it.
    Wait(String, Option<u32>),
    /// The ownership of these storages is released to a queue family.
    Release(Vec<LocationId>, u32),
    /// It is acquired from a queue family.
    Acquire(Vec<LocationId>, u32),
}

/// The scopes of a dependency, as they were named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scopes {
    /// Stages and accesses before it.
    pub source: (StageMask, AccessMask),
    /// Stages and accesses behind it.
    pub target: (StageMask, AccessMask),
}

/// A set of stages, as calls name them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct StageMask(u16);

/// The words of [`StageMask`]: bit i is word i. `none` is no bit.
const WORDS: [&str; 8] = ["compute", "vertex", "fragment", "transfer", "host", "all", "top", "bottom"];

impl StageMask {
    /// No stage.
    pub const NONE: StageMask = StageMask(0);

    /// The stage that a word names.
    pub fn of_word(word: &str) -> Option<StageMask> {
        let bit = WORDS.iter().position(|known| *known == word).map(|bit| StageMask(1 << bit));
        bit.or((word == "none").then_some(StageMask::NONE))
    }

    /// Both sets together.
    #[must_use]
    pub fn with(self, other: StageMask) -> StageMask {
        StageMask(self.0 | other.0)
    }

    /// The words of its members.
    pub fn words(self) -> impl Iterator<Item = &'static str> {
        WORDS.into_iter().enumerate().filter(move |(bit, _)| self.0 & (1 << bit) != 0).map(|(_, word)| word)
    }
}

/// The calls of a test, with what was derived from them. Two tests that the same is derived from are one to models, so that calls
/// make no difference between tests.
#[derive(Clone, Debug, Default)]
pub struct ApiCalls(Option<Arc<Told>>);

#[derive(Debug)]
struct Told {
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

fn kinds(test: &Test) -> impl Iterator<Item = impl Iterator<Item = &InstructionKind>> {
    test.threads.iter().map(|thread| thread.instructions.iter().map(|instruction| &instruction.kind))
}

impl ApiCalls {
    /// A schedule, and what was derived from it.
    pub(crate) fn new(schedule: Schedule, test: &Test) -> ApiCalls {
        let threads = kinds(test).map(|kinds| kinds.cloned().collect()).collect();
        ApiCalls(Some(Arc::new(Told { schedule, sync: test.system_sync.clone(), threads })))
    }
}

impl Test {
    /// What queues are given, by the calls of the test. `None` where it has none, or was changed since they were read: then they say
    /// something else.
    pub fn schedule(&self) -> Option<&Schedule> {
        let told = self.calls.0.as_deref()?;
        let same = told.sync == self.system_sync
            && told.threads.len() == self.threads.len()
            && kinds(self).zip(&told.threads).all(|(now, then)| now.eq(then));
        same.then_some(&told.schedule)
    }

    /// Takes over the calls of a test that this one differs from in accesses of threads alone: they stand where they stood.
    pub fn keep_calls_of(&mut self, other: &Test) {
        let Some(mut schedule) = other.schedule().cloned() else { return };
        let hosts = schedule.hosts.iter_mut().map(|call| (call.thread, &mut call.at));
        let fences = schedule.fences.iter_mut().map(|fence| (fence.thread, &mut fence.at));
        for (thread, place) in hosts.chain(fences) {
            let (before, now) = (other.thread(thread), self.thread(thread));
            // What stands before the instruction that it stood before, or before the end.
            let mut at = 0;
            for instruction in before.instructions.iter().take(*place + 1) {
                let found = now.instructions.iter().skip(at).position(|own| own.kind == instruction.kind);
                at += found.map_or(0, |found| found + 1);
            }
            *place = if *place < before.instructions.len() {
                at.saturating_sub(1)
            } else {
                now.instructions.len()
            };
        }
        self.calls = ApiCalls::new(schedule, self);
    }
}
