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
use crate::rules::Rule;

#[derive(Clone, Debug)]
pub struct ProgramHosts {
    pub threads: Vec<HostThreadCode>,
    /// For each phase, which is a batch here: how it starts.
    pub submission_starts: Vec<SubmissionStart>,
    /// For each phase: the dependency after it.
    pub dependencies_after: Vec<Dependency>,
    /// True if their memory is not coherent.
    pub is_noncoherent: bool,
    /// The program with the calls of the test itself, or why that is impossible; `None` without calls.
    pub call_schedule: Option<Result<CallSchedule, Rule>>,
}

/// Host threads and batches of a test with calls.
#[derive(Clone, Debug, Default)]
pub struct CallSchedule {
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
    pub threads: Vec<ThreadId>,
    /// The queue, by its index in the schedule.
    pub queue: usize,
    pub start: SubmissionStart,
}

#[derive(Clone, Debug)]
pub struct HostThreadCode {
    pub thread: ThreadId,
    /// Its acts, in order.
    pub acts: Vec<HostThreadAct>,
}

/// An act of a host thread, once or for each instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostThreadAct {
    /// Executes these instructions for each instance.
    Execute(std::ops::Range<usize>),
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
pub enum SubmissionStart {
    /// A host thread submits it.
    Submitted,
    /// Before the host threads start.
    Early,
    /// Before the host threads start, with a wait for a signal.
    Held,
}

/// Returns the batches of a test, by their threads, and the host threads. The dependencies after batches are
/// empty.
pub(crate) fn plan_hosts(test: &Test) -> Result<(Vec<Vec<ThreadId>>, ProgramHosts), Rule> {
    let is_host = |id: ThreadId| test.thread(id).place == ThreadPlace::Host;
    let ids = || (0..test.threads.len()).map(|number| ThreadId(number as u16));
    let mut batches: Vec<(SubmissionStart, Vec<ThreadId>)> = Vec::new();
    let instructions = |id: ThreadId| &test.thread(id).instructions;
    for id in ids().filter(|id| is_host(*id)) {
        for instruction in instructions(id) {
            if let InstructionKind::System(SystemOperation::Submit(threads)) = &instruction.kind {
                batches.push((SubmissionStart::Submitted, threads.clone()));
            }
        }
    }
    let mut signals = Vec::new();
    for pair in &test.system_sync {
        let (from, to) = (pair.from.thread, pair.to.thread);
        let is_submitted = batches.iter().any(|(_, threads)| threads.contains(&to));
        let is_leading = pair.to.instruction.is_none_or(|at| {
            !instructions(to).iter().take(at.into()).any(|instruction| instruction.kind.is_event())
        });
        Rule::HostSynchronization.when(!is_host(from) || is_host(to) || is_submitted || !is_leading)?;
        let at = pair.from.instruction.map_or(instructions(from).len(), |at| usize::from(at) + 1);
        signals.push((from, at, HostThreadAct::Signal(signals.len() as u32, 1)));
        batches.push((SubmissionStart::Held, vec![to]));
    }
    let rest: Vec<ThreadId> = ids()
        .filter(|id| !is_host(*id) && !batches.iter().any(|(_, threads)| threads.contains(id)))
        .collect();
    if !rest.is_empty() {
        batches.push((SubmissionStart::Early, rest));
    }
    let mut named: Vec<ThreadId> = batches.iter().flat_map(|(_, threads)| threads.iter().copied()).collect();
    named.sort_unstable();
    Rule::SynchronizedWithItself.when(named.windows(2).any(|pair| pair.first() == pair.last()))?;
    let mut threads = Vec::new();
    for id in ids().filter(|id| is_host(*id)) {
        let own: Vec<(usize, HostThreadAct)> =
            signals.iter().filter(|(from, ..)| *from == id).map(|(_, at, act)| (*at, act.clone())).collect();
        threads.push(HostThreadCode { thread: id, acts: host_acts(test, id, &batches, &own, &[])? });
    }
    let starts: Vec<SubmissionStart> = batches.iter().map(|(start, _)| *start).collect();
    // A held batch blocks all later submissions of its queue.
    let calls = |act: &HostThreadAct| matches!(act, HostThreadAct::Submit(_) | HostThreadAct::Wait(_));
    Rule::HostSynchronization.when(
        starts.contains(&SubmissionStart::Held) && threads.iter().flat_map(|thread| &thread.acts).any(calls),
    )?;
    let held = starts.iter().filter(|start| **start == SubmissionStart::Held).enumerate();
    let mut held = held.map(|(number, _)| vec![(true, number as u32, 1)]);
    // If any batch is held, all are submitted together, and none blocks another.
    let queued = starts.iter().enumerate().map(|(number, start)| match start {
        SubmissionStart::Held => (number, held.next().unwrap_or_default()),
        SubmissionStart::Submitted | SubmissionStart::Early => (number, Vec::new()),
    });
    check_termination(&threads, &starts, &queued.collect::<Vec<_>>())?;
    let hosts = ProgramHosts {
        threads,
        dependencies_after: Vec::new(),
        is_noncoherent: is_host_memory_noncoherent(test)?,
        submission_starts: starts,
        call_schedule: None,
    };
    Ok((batches.into_iter().map(|(_, threads)| threads).collect(), hosts))
}

/// Batches by their threads, the host threads, and the dependency before each batch.
pub(crate) type HostedProgram = (Vec<Vec<ThreadId>>, ProgramHosts, Vec<Dependency>);

/// Returns batches and host threads of a test that runs by its calls only, without other dependencies.
pub(crate) fn hosts_from_calls(test: &Test, calls: &CallSchedule) -> Result<HostedProgram, Rule> {
    let no_dependencies = vec![Dependency::default(); calls.batches.len()];
    let hosts = ProgramHosts {
        threads: calls.threads.clone(),
        submission_starts: calls.batches.iter().map(|batch| batch.start).collect(),
        dependencies_after: no_dependencies.clone(),
        is_noncoherent: is_host_memory_noncoherent(test)?,
        call_schedule: None,
    };
    Ok((calls.batches.iter().map(|batch| batch.threads.clone()).collect(), hosts, no_dependencies))
}

/// Returns true if the memory of the host threads is not coherent.
fn is_host_memory_noncoherent(test: &Test) -> Result<bool, Rule> {
    let host = || test.locations.iter().filter(|location| location.host);
    let noncoherent = host().filter(|location| location.noncoherent).count();
    // An alias has no declaration; the memory of its storage decides.
    let has_memory = |coherent: bool| {
        let mut homes =
            (0..test.locations.len()).map(|number| test.storage_of(litmus::LocationId(number as u16)));
        homes.any(|home| test.location(home).host && test.location(home).noncoherent != coherent)
    };
    Rule::HostMemoryOfTwoKinds.when(has_memory(true) && has_memory(false))?;
    Ok(noncoherent > 0)
}

/// Returns the acts of a thread, in order. A wait for fences waits for the named ones, else for all batches
/// of the instruction.
#[expect(clippy::wildcard_enum_match_arm, reason = "`check` refuses what a host cannot do")]
fn host_acts(
    test: &Test,
    id: ThreadId,
    batches: &[(SubmissionStart, Vec<ThreadId>)],
    calls: &[(usize, HostThreadAct)],
    fences: &[FenceWait],
) -> Result<Vec<HostThreadAct>, Rule> {
    let thread = test.thread(id);
    let mut acts = Vec::new();
    let mut first = 0;
    let mut close_range = |acts: &mut Vec<HostThreadAct>, end: usize, next: usize| {
        if first < end {
            acts.push(HostThreadAct::Execute(first..end));
        }
        first = next;
    };
    for (at, instruction) in thread.instructions.iter().enumerate() {
        let mut stands_for_call = false;
        for (_, call) in calls.iter().filter(|(before, _)| *before == at) {
            close_range(&mut acts, at, at);
            acts.push(call.clone());
            stands_for_call |= matches!(call, HostThreadAct::Await(..));
        }
        match &instruction.kind {
            _ if stands_for_call => close_range(&mut acts, at, at + 1),
            InstructionKind::System(SystemOperation::Submit(threads)) => {
                close_range(&mut acts, at, at + 1);
                let named = |(_, batch): &(_, &(SubmissionStart, Vec<ThreadId>))| {
                    batch.0 == SubmissionStart::Submitted
                        && batch.1.iter().any(|thread| threads.contains(thread))
                };
                acts.extend(
                    (0..).zip(batches).filter(named).map(|(number, _)| HostThreadAct::Submit(number)),
                );
            }
            InstructionKind::System(SystemOperation::Wait(threads)) => {
                close_range(&mut acts, at, at + 1);
                let fence = fences.iter().find(|fence| fence.thread == id && fence.at == at);
                let threads = fence.map_or(threads, |fence| &fence.threads);
                let mut unfenced = threads.clone();
                for (number, (_, all)) in (0..).zip(batches) {
                    if all.iter().any(|thread| threads.contains(thread)) {
                        Rule::PartOfSubmission.when(!all.iter().all(|thread| threads.contains(thread)))?;
                        unfenced.retain(|thread| !all.contains(thread));
                        acts.push(HostThreadAct::Wait(number));
                    }
                }
                Rule::EndlessWait.when(!unfenced.is_empty())?;
            }
            _ => check_host_instruction(test, instruction)?,
        }
    }
    let end = thread.instructions.len();
    close_range(&mut acts, end, end);
    acts.extend(calls.iter().filter(|(before, _)| *before >= end).map(|(_, call)| call.clone()));
    for range in
        acts.iter().filter_map(|act| if let HostThreadAct::Execute(range) = act { Some(range) } else { None })
    {
        let jumps = thread.instructions.iter().enumerate().skip(range.start).take(range.len());
        for (at, instruction) in jumps {
            if let InstructionKind::Flow(Flow::Goto(target) | Flow::Branch { target, .. }) = &instruction.kind
            {
                let to = thread.label_index(*target);
                Rule::HostBranch.when(!to.is_some_and(|to| at < to && range.contains(&to)))?;
            }
        }
    }
    Ok(acts)
}

/// Checks that a host thread can execute an instruction on the memory of an instance.
#[expect(clippy::wildcard_enum_match_arm, reason = "what is not listed is refused")]
fn check_host_instruction(test: &Test, instruction: &Instruction) -> Result<(), Rule> {
    match &instruction.kind {
        InstructionKind::Access(access) => {
            let location = test.location(access.place.location);
            let word = matches!(location.scalar_type(), ScalarType::U32 | ScalarType::I32);
            Rule::HostType.when(
                !word || location.is_vector() || access.place.offset > 0 || access.place.scalar.is_some(),
            )?;
            Rule::HostMemoryOutsideBuffer.when(access.place.class != StorageClass::Buffer)?;
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
type SemaphoreOperations = Vec<(bool, u32, u32)>;

/// Checks that all threads and batches end without a deadlock. `queued` has the queue of each batch and its
/// semaphore operations.
fn check_termination(
    threads: &[HostThreadCode],
    starts: &[SubmissionStart],
    queued: &[(usize, SemaphoreOperations)],
) -> Result<(), Rule> {
    let mut begun: Vec<bool> = starts.iter().map(|start| *start != SubmissionStart::Submitted).collect();
    let mut ended = vec![false; starts.len()];
    let mut reached: BTreeMap<u32, u32> = BTreeMap::new();
    let mut at = vec![0; threads.len()];
    loop {
        let mut has_progress = false;
        // The batches of a queue end in order.
        let mut blocked_queues: Vec<usize> = Vec::new();
        for (number, (queue, semaphores)) in queued.iter().enumerate() {
            let done = ended.get(number).copied().unwrap_or(true);
            if done || blocked_queues.contains(queue) {
                continue;
            }
            let mut own = reached.clone();
            let has_ended = begun.get(number).copied().unwrap_or(false)
                && semaphores.iter().all(|(waits, semaphore, value)| {
                    let reached = own.entry(*semaphore).or_default();
                    if !*waits {
                        *reached = (*reached).max(*value);
                    }
                    *reached >= *value
                });
            if has_ended {
                reached = own;
                ended.iter_mut().skip(number).take(1).for_each(|ended| *ended = true);
                has_progress = true;
            } else {
                blocked_queues.push(*queue);
            }
        }
        for (thread, at) in threads.iter().zip(&mut at) {
            while let Some(act) = thread.acts.get(*at) {
                match act {
                    HostThreadAct::Wait(batch) if !ended.get(*batch as usize).copied().unwrap_or(false) => {
                        break;
                    }
                    HostThreadAct::Await(semaphore, value)
                        if reached.get(semaphore).is_none_or(|own| own < value) =>
                    {
                        break;
                    }
                    HostThreadAct::Submit(batch) => {
                        if let Some(begun) = begun.get_mut(*batch as usize) {
                            *begun = true;
                        }
                    }
                    HostThreadAct::Signal(semaphore, value) => {
                        let own = reached.entry(*semaphore).or_default();
                        *own = (*own).max(*value);
                    }
                    HostThreadAct::Wait(_) | HostThreadAct::Await(..) | HostThreadAct::Execute(_) => {}
                }
                (*at, has_progress) = (*at + 1, true);
            }
        }
        if threads.iter().zip(&at).all(|(thread, at)| *at == thread.acts.len()) && !ended.contains(&false) {
            return Ok(());
        }
        Rule::EndlessWait.when(!has_progress)?;
    }
}

/// Returns host threads and batches of a test with calls.
pub(crate) fn schedule_calls(test: &Test, schedule: &Schedule) -> Result<CallSchedule, Rule> {
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
    let mut queued: Vec<(usize, SemaphoreOperations)> = Vec::new();
    for batch in &batches {
        let items = batch_items(schedule, batch).filter_map(|item| match item {
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
    let named: Vec<(SubmissionStart, Vec<ThreadId>)> =
        batches.iter().map(|batch| (batch.start, batch.threads.clone())).collect();
    let mut threads = Vec::new();
    for thread in (0..test.threads.len()).map(|number| ThreadId(number as u16)) {
        if test.thread(thread).place != ThreadPlace::Host {
            continue;
        }
        let own = schedule.hosts.iter().filter(|call| call.thread == thread);
        let calls = own.map(|call| {
            // The host has no calls for binary semaphores.
            let value = call.value.ok_or(Rule::HostBinarySemaphore)?;
            let semaphore = number(&call.semaphore);
            Ok((
                call.at,
                if call.waits {
                    HostThreadAct::Await(semaphore, value)
                } else {
                    HostThreadAct::Signal(semaphore, value)
                },
            ))
        });
        let calls = calls.collect::<Result<Vec<_>, Rule>>()?;
        threads.push(HostThreadCode {
            thread,
            acts: host_acts(test, thread, &named, &calls, &schedule.fences)?,
        });
    }
    let starts: Vec<SubmissionStart> = batches.iter().map(|batch| batch.start).collect();
    check_termination(&threads, &starts, &queued)?;
    Ok(CallSchedule { threads, batches, semaphores })
}

/// Returns the items of a queue that belong to the threads of a batch.
pub fn batch_items<'a>(schedule: &'a Schedule, batch: &'a Batch) -> impl Iterator<Item = &'a ScheduledItem> {
    let queue = schedule.queues.get(batch.queue);
    let items = queue.into_iter().flat_map(|queue| queue.items.iter().zip(&queue.threads));
    items.filter(|(_, thread)| batch.threads.contains(thread)).map(|(item, _)| item)
}

/// The origin of a submission: thread and instruction; `None` if no host thread submits it.
type SubmissionOrigin = Option<(ThreadId, usize)>;

/// Returns the batches in a valid order of submission. The wait for a binary semaphore comes after its
/// signal, and after everything that the signal depends on (VUID-vkQueueSubmit-pWaitSemaphores-03238).
fn submission_order(test: &Test, schedule: &Schedule) -> Result<Vec<Batch>, Rule> {
    let mut calls: Vec<(SubmissionOrigin, Vec<ThreadId>)> = Vec::new();
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
            early.push(Batch { threads: vec![thread], queue, start: SubmissionStart::Early });
        }
    }
    let mut batches: Vec<(SubmissionOrigin, Batch)> = Vec::new();
    let mut add = |by: SubmissionOrigin, mut left: Vec<Batch>| -> Result<(), Rule> {
        while !left.is_empty() {
            let is_submittable = |(at, batch): &(usize, &Batch)| {
                let before = EarlierSubmissions { schedule, origin: by, submitted: &batches };
                let mut binary = batch_items(schedule, batch).filter_map(|item| {
                    if let ScheduledItem::Wait(name, None) = item { Some(name) } else { None }
                });
                binary.all(|name| before.is_signal_submitted(name, None, 0))
                    && !left.iter().take(*at).any(|other| other.queue == batch.queue)
            };
            let next =
                left.iter().enumerate().find(is_submittable).map(|(at, _)| at).ok_or(Rule::LateSignal)?;
            let batch = left.remove(next);
            batches.push((by, batch));
        }
        Ok(())
    };
    add(None, early)?;
    for (by, threads) in calls {
        let of_queue = |queue: usize| {
            let own = schedule.queues.get(queue).map(|own| own.threads.as_slice()).unwrap_or_default();
            let threads: Vec<ThreadId> =
                threads.iter().copied().filter(|thread| own.contains(thread)).collect();
            (!threads.is_empty()).then_some(Batch { threads, queue, start: SubmissionStart::Submitted })
        };
        add(by, (0..schedule.queues.len()).filter_map(of_queue).collect())?;
    }
    Ok(batches.into_iter().map(|(_, batch)| batch).collect())
}

/// The submissions that certainly precede one of this origin: early ones, and those of the same thread.
struct EarlierSubmissions<'a> {
    schedule: &'a Schedule,
    origin: SubmissionOrigin,
    submitted: &'a [(SubmissionOrigin, Batch)],
}

impl EarlierSubmissions<'_> {
    /// Returns true if a signal of a semaphore (for timelines, of this value) is submitted, with all earlier
    /// waits of its queue and their signals.
    fn is_signal_submitted(&self, name: &str, value: Option<u32>, depth: usize) -> bool {
        let (schedule, made) = (self.schedule, self.submitted);
        let by_host = schedule.hosts.iter().any(|call| {
            !call.waits
                && call.semaphore == name
                && call.value >= value
                && self.origin.is_some_and(|(thread, at)| thread == call.thread && call.at <= at)
        });
        // A signal that depends on itself is never reached.
        if by_host || depth > made.len() {
            return by_host;
        }
        let is_there = |thread: &ThreadId, queue: usize| {
            made.iter().any(|(by, batch)| {
                let known = by.is_none() || by.map(|by| by.0) == self.origin.map(|by| by.0);
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
                    ScheduledItem::Wait(name, value) => self.is_signal_submitted(name, *value, depth + 1),
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
