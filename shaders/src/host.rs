//! Threads of the host: what of a test they do, and which batches of commands they submit and wait for.
//!
//! Threads of the device that one `submit` names are a batch. Those that no thread of the host submits are submitted before
//! the threads of the host begin; where system-synchronizes-with puts an instruction of the host before one of them, it is
//! a batch of its own, which waits until the host signals it.
//!
//! With the calls of a test as they stand a batch has the calls of its threads' columns besides. Then each thread that no host
//! submits is a batch of its own, so that its fence is.

#![deny(clippy::wildcard_enum_match_arm)]

use std::collections::BTreeMap;

use litmus::{
    AccessKind, FenceWait, Flow, Instruction, InstructionKind, Place, ScalarType, Schedule, Scheduled,
    StorageClass, SystemOperation, Test, ThreadId,
};

use crate::dependency::Dependency;
use crate::rules::{Rule, label_position};

/// The threads of the host of a program.
#[derive(Clone, Debug)]
pub struct Hosts {
    /// The threads.
    pub threads: Vec<HostThread>,
    /// By phase of the program, which is a batch then: how it is begun.
    pub starts: Vec<Start>,
    /// By phase: what stands behind it.
    pub after: Vec<Dependency>,
    /// Whether their memory is not coherent.
    pub noncoherent: bool,
    /// What they do by the calls of the test as they stand, or why they cannot; none where it has no calls.
    pub called: Option<Result<Called, Rule>>,
}

/// Threads of the host and batches, by the calls of a test as they stand.
#[derive(Clone, Debug, Default)]
pub struct Called {
    /// The threads, in the order of [`Hosts::threads`].
    pub threads: Vec<HostThread>,
    /// The batches. Those of a queue stand in the order in which it is given them, and whoever signals a binary semaphore before
    /// whoever waits for it.
    pub batches: Vec<Batch>,
    /// The semaphores by their names: the numbers that acts have.
    pub semaphores: Vec<String>,
}

/// What one submission gives a queue: its items of these threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The threads.
    pub threads: Vec<ThreadId>,
    /// The queue, by its number in the schedule.
    pub queue: usize,
    /// How it is begun.
    pub start: Start,
}

/// A thread of the host.
#[derive(Clone, Debug)]
pub struct HostThread {
    /// Which one.
    pub thread: ThreadId,
    /// What it does, in order.
    pub acts: Vec<Act>,
}

/// What a thread of the host does once, or once for each instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// These of its instructions.
    Each(std::ops::Range<usize>),
    /// Submits a batch.
    Submit(u32),
    /// Waits for the end of a batch.
    Wait(u32),
    /// Signals a timeline semaphore: a value. The semaphore of a batch that is held is that of its number among those.
    Signal(u32, u32),
    /// Waits for a value of a timeline semaphore.
    Await(u32, u32),
}

/// How a batch is begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// A thread of the host submits it.
    Submitted,
    /// Before the threads of the host begin.
    Early,
    /// Before they begin; it waits for a signal.
    Held,
}

/// The batches of a test, by their threads, and the threads of the host. What stands behind the batches is left open.
pub(crate) fn plan(test: &Test) -> Result<(Vec<Vec<ThreadId>>, Hosts), Rule> {
    let is_host = |id: ThreadId| test.thread(id).place == Place::Host;
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
        threads.push(HostThread { thread: id, acts: acts(test, id, &batches, &own, &[])? });
    }
    let starts: Vec<Start> = batches.iter().map(|(start, _)| *start).collect();
    // What is held keeps back all that its queue is given later.
    let calls = |act: &Act| matches!(act, Act::Submit(_) | Act::Wait(_));
    if starts.contains(&Start::Held) && threads.iter().flat_map(|thread| &thread.acts).any(calls) {
        return Err(Rule::HostSynchronization);
    }
    let held = starts.iter().filter(|start| **start == Start::Held).enumerate();
    let mut held = held.map(|(number, _)| vec![(true, number as u32, 1)]);
    // No batch keeps another one back: where one is held, all are submitted at once.
    let queued = starts.iter().enumerate().map(|(number, start)| match start {
        Start::Held => (number, held.next().unwrap_or_default()),
        Start::Submitted | Start::Early => (number, Vec::new()),
    });
    check_ends(&threads, &starts, &queued.collect::<Vec<_>>())?;
    let hosts = Hosts { threads, after: Vec::new(), noncoherent: memory(test)?, starts, called: None };
    Ok((batches.into_iter().map(|(_, threads)| threads).collect(), hosts))
}

/// Batches by their threads, the threads of the host, and what stands before each batch.
pub(crate) type Beside = (Vec<Vec<ThreadId>>, Hosts, Vec<Dependency>);

/// Batches and threads of the host of a test that runs by its calls alone: nothing but those stands around the batches.
pub(crate) fn as_called(test: &Test, called: &Called) -> Result<Beside, Rule> {
    let nothing = vec![Dependency::default(); called.batches.len()];
    let hosts = Hosts {
        threads: called.threads.clone(),
        starts: called.batches.iter().map(|batch| batch.start).collect(),
        after: nothing.clone(),
        noncoherent: memory(test)?,
        called: None,
    };
    Ok((called.batches.iter().map(|batch| batch.threads.clone()).collect(), hosts, nothing))
}

/// Whether the memory of the threads of the host is not coherent.
fn memory(test: &Test) -> Result<bool, Rule> {
    let host = || test.locations.iter().filter(|location| location.host);
    let noncoherent = host().filter(|location| location.noncoherent).count();
    // An alias is declared by its name alone; the memory behind it decides.
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

/// What a thread does, in order. Where it waits for fences it waits for those that are named there, else for all that its instruction says.
#[expect(clippy::wildcard_enum_match_arm, reason = "`check` refuses what a host cannot do")]
fn acts(
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

/// What a thread of the host can do to the memory of an instance.
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

/// Semaphores of a batch in order: whether it waits, which, and the value.
type Semaphores = Vec<(bool, u32, u32)>;

/// Whether all threads and batches come to their ends: nobody waits for what only comes behind a wait. `queued` has the queue of each
/// batch, and its semaphores.
fn check_ends(threads: &[HostThread], starts: &[Start], queued: &[(usize, Semaphores)]) -> Result<(), Rule> {
    let mut begun: Vec<bool> = starts.iter().map(|start| *start != Start::Submitted).collect();
    let mut ended = vec![false; starts.len()];
    let mut reached: BTreeMap<u32, u32> = BTreeMap::new();
    let mut at = vec![0; threads.len()];
    loop {
        let mut moved = false;
        // What a queue is given ends in its order.
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

/// The threads of the host and the batches of a test whose calls stand as they are.
pub(crate) fn called(test: &Test, schedule: &Schedule) -> Result<Called, Rule> {
    let batches = submitted(test, schedule)?;
    let all = schedule.queues.iter().flat_map(|queue| &queue.items);
    let awaited: Vec<&String> =
        all.filter_map(|item| if let Scheduled::Wait(name, _) = item { Some(name) } else { None }).collect();
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
            // Nobody waits for it.
            Scheduled::Signal(name, None) if !awaited.contains(&name) => None,
            Scheduled::Signal(name, value) => Some((false, number(name), value.unwrap_or(1))),
            Scheduled::Wait(name, value) => Some((true, number(name), value.unwrap_or(1))),
            Scheduled::Dispatch(_)
            | Scheduled::Barrier(_)
            | Scheduled::Set(..)
            | Scheduled::Await(..)
            | Scheduled::Release(..)
            | Scheduled::Acquire(..) => None,
        });
        queued.push((batch.queue, items.collect()));
    }
    let named: Vec<(Start, Vec<ThreadId>)> =
        batches.iter().map(|batch| (batch.start, batch.threads.clone())).collect();
    let mut threads = Vec::new();
    for thread in (0..test.threads.len()).map(|number| ThreadId(number as u16)) {
        if test.thread(thread).place != Place::Host {
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
        threads.push(HostThread { thread, acts: acts(test, thread, &named, &calls, &schedule.fences)? });
    }
    let starts: Vec<Start> = batches.iter().map(|batch| batch.start).collect();
    check_ends(&threads, &starts, &queued)?;
    Ok(Called { threads, batches, semaphores })
}

/// What a queue is given of the threads of a batch.
pub fn items<'a>(schedule: &'a Schedule, batch: &'a Batch) -> impl Iterator<Item = &'a Scheduled> {
    let queue = schedule.queues.get(batch.queue);
    let items = queue.into_iter().flat_map(|queue| queue.items.iter().zip(&queue.threads));
    items.filter(|(_, thread)| batch.threads.contains(thread)).map(|(item, _)| item)
}

/// Who submits a batch: nobody of the host, or one of its threads with one of its instructions.
type By = Option<(ThreadId, usize)>;

/// The batches, in an order in which they may be submitted. A binary semaphore is waited for by what is submitted behind its signal,
/// and behind all that this depends on (VUID-vkQueueSubmit-pWaitSemaphores-03238).
fn submitted(test: &Test, schedule: &Schedule) -> Result<Vec<Batch>, Rule> {
    let mut calls: Vec<(By, Vec<ThreadId>)> = Vec::new();
    for (number, thread) in test.threads.iter().enumerate().filter(|(_, thread)| thread.place == Place::Host)
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
                    if let Scheduled::Wait(name, None) = item { Some(name) } else { None }
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

/// What has been submitted for certain as somebody submits a batch: by nobody of the host, or by the same thread.
struct Before<'a> {
    schedule: &'a Schedule,
    by: By,
    made: &'a [(By, Batch)],
}

impl Before<'_> {
    /// Whether a signal of a semaphore, of a timeline to this value, is there with all that it depends on: the waits that its queue was
    /// given before it, for signals that are there.
    fn signals(&self, name: &str, value: Option<u32>, depth: usize) -> bool {
        let (schedule, made) = (self.schedule, self.made);
        let by_host = schedule.hosts.iter().any(|call| {
            !call.waits
                && call.semaphore == name
                && call.value >= value
                && self.by.is_some_and(|(thread, at)| thread == call.thread && call.at <= at)
        });
        // What depends on itself is never there.
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
                matches!(item, Scheduled::Signal(own, of) if signals(own, of)) && is_there(thread, number)
            });
            signal.is_some_and(|signal| {
                queue.items.iter().take(signal).all(|item| match item {
                    Scheduled::Wait(name, value) => self.signals(name, *value, depth + 1),
                    Scheduled::Signal(..)
                    | Scheduled::Dispatch(_)
                    | Scheduled::Barrier(_)
                    | Scheduled::Set(..)
                    | Scheduled::Await(..)
                    | Scheduled::Release(..)
                    | Scheduled::Acquire(..) => true,
                })
            })
        })
    }
}
