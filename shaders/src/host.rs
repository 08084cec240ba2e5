//! Host threads of a test, and the batches of commands that they submit and wait for.
//!
//! Device threads of one `submit` are a batch. Threads that no host thread submits are submitted before the
//! host threads start. If system-synchronizes-with orders a host instruction before such a thread, the thread
//! is a separate batch that waits until the host signals it.
//!
//! If a test has calls, a batch also contains the calls in the columns of its threads. Then each thread that
//! no host thread submits is a separate batch with its own fence.

#![deny(clippy::wildcard_enum_match_arm)]

use std::collections::BTreeMap;

use litmus::{
    AccessKind, FenceWait, Flow, Instruction, InstructionKind, ScalarType, Schedule, ScheduledItem,
    StorageClass, SystemOperation, Test, ThreadId, ThreadPlace,
};

use crate::dependency::Dependency;
use crate::flow::label_position;
use crate::rules::Rule;

/// The host threads of a program.
#[derive(Clone, Debug)]
pub struct ProgramHosts {
    /// The threads.
    pub threads: Vec<HostThreadCode>,
    /// For each phase, which is a batch here: how it starts.
    pub starts: Vec<Start>,
    /// For each phase: the dependency after it.
    pub after: Vec<Dependency>,
    /// True if their memory is not coherent.
    pub noncoherent: bool,
    /// The program with the calls of the test itself, or why that is impossible; `None` without calls.
    pub called: Option<Result<Called, Rule>>,
}

/// Host threads and batches of a test with calls.
#[derive(Clone, Debug, Default)]
pub struct Called {
    /// The threads, in the order of [`ProgramHosts::threads`].
    pub threads: Vec<HostThreadCode>,
    /// The batches, in the order of each queue; the signal of a binary semaphore comes before its wait.
    pub batches: Vec<Batch>,
    /// The names of the semaphores, by their number in acts.
    pub semaphores: Vec<String>,
}

/// The content of one submission: the items of these threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The threads.
    pub threads: Vec<ThreadId>,
    /// The queue, by its index in the schedule.
    pub queue: usize,
    /// How it starts.
    pub start: Start,
}

/// A host thread.
#[derive(Clone, Debug)]
pub struct HostThreadCode {
    /// Its id.
    pub thread: ThreadId,
    /// Its acts, in order.
    pub acts: Vec<Act>,
}

/// An act of a host thread, once or for each instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// Executes these instructions for each instance.
    Each(std::ops::Range<usize>),
    /// Submits a batch.
    Submit(u32),
    /// Waits for the end of a batch.
    Wait(u32),
    /// Signals a value of a timeline semaphore. The semaphore of a held batch has the index of the batch
    /// among the held ones.
    Signal(u32, u32),
    /// Waits for a value of a timeline semaphore.
    Await(u32, u32),
}

/// How a batch starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// A host thread submits it.
    Submitted,
    /// Before the host threads start.
    Early,
    /// Before the host threads start, with a wait for a signal.
    Held,
}

/// Returns the batches of a test, by their threads, and the host threads. The dependencies after batches are
/// empty.
pub(crate) fn plan(test: &Test) -> Result<(Vec<Vec<ThreadId>>, ProgramHosts), Rule> {
    let is_host = |id: ThreadId| test.thread(id).place == ThreadPlace::Host;
    let ids = || (0..test.threads.len()).map(|number| ThreadId(number as u16));
    let mut batches: Vec<(Start, Vec<ThreadId>)> = Vec::new();
    let instructions = |id: ThreadId| &test.thread(id).instructions;
    for id in ids().filter(|id| is_host(*id)) {
        for instruction in instructions(id) {
            if let InstructionKind::System(SystemOperation::Submit(threads)) = &instruction.kind {
                batches.push((Start::Submitted, threads.clone()));
            }
        }
    }
    let mut signals = Vec::new();
    for pair in &test.system_sync {
        let (from, to) = (pair.from.thread, pair.to.thread);
        let begun = batches.iter().any(|(_, threads)| threads.contains(&to));
        let leads = pair.to.instruction.is_none_or(|at| {
            !instructions(to).iter().take(at.into()).any(|instruction| instruction.kind.is_event())
        });
        if !is_host(from) || is_host(to) || begun || !leads {
            return Err(Rule::HostSynchronization);
        }
        let at = pair.from.instruction.map_or(instructions(from).len(), |at| usize::from(at) + 1);
        signals.push((from, at, Act::Signal(signals.len() as u32, 1)));
        batches.push((Start::Held, vec![to]));
    }
    let rest: Vec<ThreadId> = ids()
        .filter(|id| !is_host(*id) && !batches.iter().any(|(_, threads)| threads.contains(id)))
        .collect();
    if !rest.is_empty() {
        batches.push((Start::Early, rest));
    }
    let mut named: Vec<ThreadId> = batches.iter().flat_map(|(_, threads)| threads.iter().copied()).collect();
    named.sort_unstable();
    if named.windows(2).any(|pair| pair.first() == pair.last()) {
        return Err(Rule::SynchronizedWithItself);
    }
    let mut threads = Vec::new();
    for id in ids().filter(|id| is_host(*id)) {
        let own: Vec<(usize, Act)> =
            signals.iter().filter(|(from, ..)| *from == id).map(|(_, at, act)| (*at, act.clone())).collect();
        threads.push(HostThreadCode { thread: id, acts: host_acts(test, id, &batches, &own, &[])? });
    }
    let starts: Vec<Start> = batches.iter().map(|(start, _)| *start).collect();
    // A held batch blocks all later submissions of its queue.
    let calls = |act: &Act| matches!(act, Act::Submit(_) | Act::Wait(_));
    if starts.contains(&Start::Held) && threads.iter().flat_map(|thread| &thread.acts).any(calls) {
        return Err(Rule::HostSynchronization);
    }
    let held = starts.iter().filter(|start| **start == Start::Held).enumerate();
    let mut held = held.map(|(number, _)| vec![(true, number as u32, 1)]);
    // If any batch is held, all are submitted together, and none blocks another.
    let queued = starts.iter().enumerate().map(|(number, start)| match start {
        Start::Held => (number, held.next().unwrap_or_default()),
        Start::Submitted | Start::Early => (number, Vec::new()),
    });
    check_ends(&threads, &starts, &queued.collect::<Vec<_>>())?;
    let hosts = ProgramHosts { threads, after: Vec::new(), noncoherent: memory(test)?, starts, called: None };
    Ok((batches.into_iter().map(|(_, threads)| threads).collect(), hosts))
}

/// Batches by their threads, the host threads, and the dependency before each batch.
pub(crate) type Beside = (Vec<Vec<ThreadId>>, ProgramHosts, Vec<Dependency>);

/// Returns batches and host threads of a test that runs by its calls only, without other dependencies.
pub(crate) fn as_called(test: &Test, called: &Called) -> Result<Beside, Rule> {
    let nothing = vec![Dependency::default(); called.batches.len()];
    let hosts = ProgramHosts {
        threads: called.threads.clone(),
        starts: called.batches.iter().map(|batch| batch.start).collect(),
        after: nothing.clone(),
        noncoherent: memory(test)?,
        called: None,
    };
    Ok((called.batches.iter().map(|batch| batch.threads.clone()).collect(), hosts, nothing))
}

/// Returns true if the memory of the host threads is not coherent.
fn memory(test: &Test) -> Result<bool, Rule> {
    let host = || test.locations.iter().filter(|location| location.host);
    let noncoherent = host().filter(|location| location.noncoherent).count();
    // An alias has no declaration; the memory of its storage decides.
    let stored = |coherent: bool| {
        let mut homes =
            (0..test.locations.len()).map(|number| test.storage_of(litmus::LocationId(number as u16)));
        homes.any(|home| test.location(home).host && test.location(home).noncoherent != coherent)
    };
    if stored(true) && stored(false) {
        return Err(Rule::HostMemoryOfTwoKinds);
    }
    Ok(noncoherent > 0)
}

/// Returns the acts of a thread, in order. A wait for fences waits for the named ones, else for all batches
/// of the instruction.
#[expect(clippy::wildcard_enum_match_arm, reason = "`check` refuses what a host cannot do")]
fn host_acts(
    test: &Test,
    id: ThreadId,
    batches: &[(Start, Vec<ThreadId>)],
    calls: &[(usize, Act)],
    fences: &[FenceWait],
) -> Result<Vec<Act>, Rule> {
    let thread = test.thread(id);
    let mut acts = Vec::new();
    let mut first = 0;
    let mut close = |acts: &mut Vec<Act>, end: usize, next: usize| {
        if first < end {
            acts.push(Act::Each(first..end));
        }
        first = next;
    };
    for (at, instruction) in thread.instructions.iter().enumerate() {
        let mut stands_for_call = false;
        for (_, call) in calls.iter().filter(|(before, _)| *before == at) {
            close(&mut acts, at, at);
            acts.push(call.clone());
            stands_for_call |= matches!(call, Act::Await(..));
        }
        match &instruction.kind {
            _ if stands_for_call => close(&mut acts, at, at + 1),
            InstructionKind::System(SystemOperation::Submit(threads)) => {
                close(&mut acts, at, at + 1);
                let named = |(_, batch): &(_, &(Start, Vec<ThreadId>))| {
                    batch.0 == Start::Submitted && batch.1.iter().any(|thread| threads.contains(thread))
                };
                acts.extend((0..).zip(batches).filter(named).map(|(number, _)| Act::Submit(number)));
            }
            InstructionKind::System(SystemOperation::Wait(threads)) => {
                close(&mut acts, at, at + 1);
                let fence = fences.iter().find(|fence| fence.thread == id && fence.at == at);
                let threads = fence.map_or(threads, |fence| &fence.threads);
                let mut left = threads.clone();
                for (number, (_, all)) in (0..).zip(batches) {
                    if all.iter().any(|thread| threads.contains(thread)) {
                        if !all.iter().all(|thread| threads.contains(thread)) {
                            return Err(Rule::PartOfSubmission);
                        }
                        left.retain(|thread| !all.contains(thread));
                        acts.push(Act::Wait(number));
                    }
                }
                if !left.is_empty() {
                    return Err(Rule::EndlessWait);
                }
            }
            _ => check(test, instruction)?,
        }
    }
    let end = thread.instructions.len();
    close(&mut acts, end, end);
    acts.extend(calls.iter().filter(|(before, _)| *before >= end).map(|(_, call)| call.clone()));
    for range in acts.iter().filter_map(|act| if let Act::Each(range) = act { Some(range) } else { None }) {
        let jumps = thread.instructions.iter().enumerate().skip(range.start).take(range.len());
        for (at, instruction) in jumps {
            if let InstructionKind::Flow(Flow::Goto(target) | Flow::Branch { target, .. }) = &instruction.kind
            {
                let to = label_position(thread, *target);
                if !to.is_some_and(|to| at < to && range.contains(&to)) {
                    return Err(Rule::HostBranch);
                }
            }
        }
    }
    Ok(acts)
}

/// Checks that a host thread can execute an instruction on the memory of an instance.
#[expect(clippy::wildcard_enum_match_arm, reason = "what is not listed is refused")]
fn check(test: &Test, instruction: &Instruction) -> Result<(), Rule> {
    match &instruction.kind {
        InstructionKind::Access(access) => {
            let location = test.location(access.place.location);
            let word = matches!(location.scalar_type(), ScalarType::U32 | ScalarType::I32);
            if !word || location.is_vector() || access.place.offset > 0 || access.place.scalar.is_some() {
                return Err(Rule::HostType);
            }
            if access.place.class != StorageClass::Buffer {
                return Err(Rule::HostElsewhere);
            }
            match access.kind {
                AccessKind::Load(_) | AccessKind::Store(_) => Ok(()),
                AccessKind::Rmw { .. } | AccessKind::Await { .. } => Err(Rule::HostReadModifyWrite),
            }
        }
        InstructionKind::Compute(_) => Err(Rule::HostComputation),
        InstructionKind::Flow(Flow::BranchIf { .. }) => Err(Rule::Hsa),
        InstructionKind::Fence { .. }
        | InstructionKind::Flow(Flow::Label(_) | Flow::Goto(_) | Flow::Branch { .. })
        | InstructionKind::System(_) => Ok(()),
        _ => Err(Rule::HostThread),
    }
}

/// The semaphore operations of a batch in order: true for a wait, the semaphore, and the value.
type Semaphores = Vec<(bool, u32, u32)>;

/// Checks that all threads and batches end without a deadlock. `queued` has the queue of each batch and its
/// semaphore operations.
fn check_ends(
    threads: &[HostThreadCode],
    starts: &[Start],
    queued: &[(usize, Semaphores)],
) -> Result<(), Rule> {
    let mut begun: Vec<bool> = starts.iter().map(|start| *start != Start::Submitted).collect();
    let mut ended = vec![false; starts.len()];
    let mut reached: BTreeMap<u32, u32> = BTreeMap::new();
    let mut at = vec![0; threads.len()];
    loop {
        let mut moved = false;
        // The batches of a queue end in order.
        let mut kept_back: Vec<usize> = Vec::new();
        for (number, (queue, semaphores)) in queued.iter().enumerate() {
            let done = ended.get(number).copied().unwrap_or(true);
            if done || kept_back.contains(queue) {
                continue;
            }
            let mut own = reached.clone();
            let passes = begun.get(number).copied().unwrap_or(false)
                && semaphores.iter().all(|(waits, semaphore, value)| {
                    let reached = own.entry(*semaphore).or_default();
                    if !*waits {
                        *reached = (*reached).max(*value);
                    }
                    *reached >= *value
                });
            if passes {
                reached = own;
                ended.iter_mut().skip(number).take(1).for_each(|ended| *ended = true);
                moved = true;
            } else {
                kept_back.push(*queue);
            }
        }
        for (thread, at) in threads.iter().zip(&mut at) {
            while let Some(act) = thread.acts.get(*at) {
                match act {
                    Act::Wait(batch) if !ended.get(*batch as usize).copied().unwrap_or(false) => break,
                    Act::Await(semaphore, value) if reached.get(semaphore).is_none_or(|own| own < value) => {
                        break;
                    }
                    Act::Submit(batch) => {
                        if let Some(begun) = begun.get_mut(*batch as usize) {
                            *begun = true;
                        }
                    }
                    Act::Signal(semaphore, value) => {
                        let own = reached.entry(*semaphore).or_default();
                        *own = (*own).max(*value);
                    }
                    Act::Wait(_) | Act::Await(..) | Act::Each(_) => {}
                }
                (*at, moved) = (*at + 1, true);
            }
        }
        if threads.iter().zip(&at).all(|(thread, at)| *at == thread.acts.len()) && !ended.contains(&false) {
            return Ok(());
        }
        if !moved {
            return Err(Rule::EndlessWait);
        }
    }
}

/// Returns host threads and batches of a test with calls.
pub(crate) fn called(test: &Test, schedule: &Schedule) -> Result<Called, Rule> {
    let batches = submission_order(test, schedule)?;
    let all = schedule.queues.iter().flat_map(|queue| &queue.items);
    let awaited: Vec<&String> = all
        .filter_map(|item| if let ScheduledItem::Wait(name, _) = item { Some(name) } else { None })
        .collect();
    let mut semaphores: Vec<String> = Vec::new();
    let mut number = |name: &String| {
        let known = semaphores.iter().position(|known| known == name);
        known.unwrap_or_else(|| {
            semaphores.push(name.clone());
            semaphores.len() - 1
        }) as u32
    };
    let mut queued: Vec<(usize, Semaphores)> = Vec::new();
    for batch in &batches {
        let items = items(schedule, batch).filter_map(|item| match item {
            // No call waits for it.
            ScheduledItem::Signal(name, None) if !awaited.contains(&name) => None,
            ScheduledItem::Signal(name, value) => Some((false, number(name), value.unwrap_or(1))),
            ScheduledItem::Wait(name, value) => Some((true, number(name), value.unwrap_or(1))),
            ScheduledItem::Dispatch(_)
            | ScheduledItem::Barrier(_)
            | ScheduledItem::Set(..)
            | ScheduledItem::Await(..)
            | ScheduledItem::Release(..)
            | ScheduledItem::Acquire(..) => None,
        });
        queued.push((batch.queue, items.collect()));
    }
    let named: Vec<(Start, Vec<ThreadId>)> =
        batches.iter().map(|batch| (batch.start, batch.threads.clone())).collect();
    let mut threads = Vec::new();
    for thread in (0..test.threads.len()).map(|number| ThreadId(number as u16)) {
        if test.thread(thread).place != ThreadPlace::Host {
            continue;
        }
        let own = schedule.hosts.iter().filter(|call| call.thread == thread);
        let calls = own.map(|call| {
            // The host has no calls for binary semaphores.
            let value = call.value.ok_or(Rule::BinaryOfHost)?;
            let semaphore = number(&call.semaphore);
            Ok((
                call.at,
                if call.waits { Act::Await(semaphore, value) } else { Act::Signal(semaphore, value) },
            ))
        });
        let calls = calls.collect::<Result<Vec<_>, Rule>>()?;
        threads.push(HostThreadCode {
            thread,
            acts: host_acts(test, thread, &named, &calls, &schedule.fences)?,
        });
    }
    let starts: Vec<Start> = batches.iter().map(|batch| batch.start).collect();
    check_ends(&threads, &starts, &queued)?;
    Ok(Called { threads, batches, semaphores })
}

/// Returns the items of a queue that belong to the threads of a batch.
pub fn items<'a>(schedule: &'a Schedule, batch: &'a Batch) -> impl Iterator<Item = &'a ScheduledItem> {
    let queue = schedule.queues.get(batch.queue);
    let items = queue.into_iter().flat_map(|queue| queue.items.iter().zip(&queue.threads));
    items.filter(|(_, thread)| batch.threads.contains(thread)).map(|(item, _)| item)
}

/// The origin of a batch: `None` if no host thread submits it, else thread and instruction.
type By = Option<(ThreadId, usize)>;

/// Returns the batches in a valid order of submission. The wait for a binary semaphore comes after its
/// signal, and after everything that the signal depends on (VUID-vkQueueSubmit-pWaitSemaphores-03238).
fn submission_order(test: &Test, schedule: &Schedule) -> Result<Vec<Batch>, Rule> {
    let mut calls: Vec<(By, Vec<ThreadId>)> = Vec::new();
    for (number, thread) in
        test.threads.iter().enumerate().filter(|(_, thread)| thread.place == ThreadPlace::Host)
    {
        for (at, instruction) in thread.instructions.iter().enumerate() {
            if let InstructionKind::System(SystemOperation::Submit(threads)) = &instruction.kind {
                calls.push((Some((ThreadId(number as u16), at)), threads.clone()));
            }
        }
    }
    let by_host: Vec<ThreadId> = calls.iter().flat_map(|(_, threads)| threads.iter().copied()).collect();
    let mut early = Vec::new();
    for (queue, own) in schedule.queues.iter().enumerate() {
        let mut threads = own.threads.clone();
        threads.dedup();
        for thread in threads.into_iter().filter(|thread| !by_host.contains(thread)) {
            early.push(Batch { threads: vec![thread], queue, start: Start::Early });
        }
    }
    let mut made: Vec<(By, Batch)> = Vec::new();
    let mut add = |by: By, mut left: Vec<Batch>| -> Result<(), Rule> {
        while !left.is_empty() {
            let may = |(at, batch): &(usize, &Batch)| {
                let before = Before { schedule, by, made: &made };
                let mut binary = items(schedule, batch).filter_map(|item| {
                    if let ScheduledItem::Wait(name, None) = item { Some(name) } else { None }
                });
                binary.all(|name| before.signals(name, None, 0))
                    && !left.iter().take(*at).any(|other| other.queue == batch.queue)
            };
            let next = left.iter().enumerate().find(may).map(|(at, _)| at).ok_or(Rule::LateSignal)?;
            let batch = left.remove(next);
            made.push((by, batch));
        }
        Ok(())
    };
    add(None, early)?;
    for (by, threads) in calls {
        let of_queue = |queue: usize| {
            let own = schedule.queues.get(queue).map(|own| own.threads.as_slice()).unwrap_or_default();
            let threads: Vec<ThreadId> =
                threads.iter().copied().filter(|thread| own.contains(thread)).collect();
            (!threads.is_empty()).then_some(Batch { threads, queue, start: Start::Submitted })
        };
        add(by, (0..schedule.queues.len()).filter_map(of_queue).collect())?;
    }
    Ok(made.into_iter().map(|(_, batch)| batch).collect())
}

/// The submissions that certainly precede one of this origin: early ones, and those of the same thread.
struct Before<'a> {
    schedule: &'a Schedule,
    by: By,
    made: &'a [(By, Batch)],
}

impl Before<'_> {
    /// Returns true if a signal of a semaphore (for timelines, of this value) is submitted, with all earlier
    /// waits of its queue and their signals.
    fn signals(&self, name: &str, value: Option<u32>, depth: usize) -> bool {
        let (schedule, made) = (self.schedule, self.made);
        let by_host = schedule.hosts.iter().any(|call| {
            !call.waits
                && call.semaphore == name
                && call.value >= value
                && self.by.is_some_and(|(thread, at)| thread == call.thread && call.at <= at)
        });
        // A signal that depends on itself is never reached.
        if by_host || depth > made.len() {
            return by_host;
        }
        let is_there = |thread: &ThreadId, queue: usize| {
            made.iter().any(|(by, batch)| {
                let known = by.is_none() || by.map(|by| by.0) == self.by.map(|by| by.0);
                known && batch.queue == queue && batch.threads.contains(thread)
            })
        };
        schedule.queues.iter().enumerate().any(|(number, queue)| {
            let signal = queue.items.iter().zip(&queue.threads).position(|(item, thread)| {
                let signals = |own: &String, of: &Option<u32>| own == name && *of >= value;
                matches!(item, ScheduledItem::Signal(own, of) if signals(own, of)) && is_there(thread, number)
            });
            signal.is_some_and(|signal| {
                queue.items.iter().take(signal).all(|item| match item {
                    ScheduledItem::Wait(name, value) => self.signals(name, *value, depth + 1),
                    ScheduledItem::Signal(..)
                    | ScheduledItem::Dispatch(_)
                    | ScheduledItem::Barrier(_)
                    | ScheduledItem::Set(..)
                    | ScheduledItem::Await(..)
                    | ScheduledItem::Release(..)
                    | ScheduledItem::Acquire(..) => true,
                })
            })
        })
    }
}
