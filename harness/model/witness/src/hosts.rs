//! The order of hosts and queues by their calls, derived independently by running the streams of calls.
//!
//! Two pieces of work are ordered if and only if the later one cannot start while the earlier one never ends.
//! So for each piece of work, the streams are run as far as possible without it. The rules are those of the
//! chapter on synchronization: a signal waits for all earlier work of its queue, a wait holds all later
//! commands of its queue, and a barrier holds later work of its target stages until earlier work of its source
//! stages has ended. Monotone: a run that has more signals never holds more work, so one greedy run decides
//! each pair.

use std::collections::BTreeSet;

use litmus::{
    AccessMask, Instruction, InstructionKind, Placement, ScheduledItem, StageMask, SyncPoint,
    SystemOperation, SystemSync, Test, Thread, ThreadId, ThreadPlace,
};

/// A piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ScheduledWork {
    /// The whole dispatch of a thread.
    Dispatch(u16),
    /// An instruction of a host thread.
    Host { thread: u16, instruction: u16 },
    /// A call of a queue; of an event, the set.
    Call { queue: usize, item: usize },
}

impl ScheduledWork {
    fn thread(self) -> Option<u16> {
        match self {
            ScheduledWork::Dispatch(thread) | ScheduledWork::Host { thread, .. } => Some(thread),
            ScheduledWork::Call { .. } => None,
        }
    }

    /// Returns true for an instruction of a host.
    pub fn is_host(self) -> bool {
        matches!(self, ScheduledWork::Host { .. })
    }
}

/// Stages of the device, as bits.
const COMPUTE: u8 = 1;
const VERTEX: u8 = 2;
const FRAGMENT: u8 = 4;
const TRANSFER: u8 = 8;
const COMMANDS: u8 = 15;
const HOST: u8 = 16;

/// Returns the stages of an execution scope: as a source with logically earlier stages, as a target with later ones.
fn stage_bits(mask: StageMask, is_source: bool) -> u8 {
    mask.names()
        .map(|word| match (word, is_source) {
            ("compute", _) => COMPUTE,
            ("transfer", _) => TRANSFER,
            ("host", _) => HOST,
            ("vertex", true) => VERTEX,
            ("fragment", false) => FRAGMENT,
            ("vertex" | "fragment", _) => VERTEX | FRAGMENT,
            ("all", _) | ("bottom", true) | ("top", false) => COMMANDS,
            _ => 0,
        })
        .fold(0, |all, stage| all | stage)
}

/// The progress of all streams while one piece of work never ends.
struct StreamProgress<'t> {
    test: &'t Test,
    stuck_work: ScheduledWork,
    /// Signals that have happened, with their values.
    signalled: Vec<(&'t str, Option<u32>)>,
    /// The number of executed instructions and calls of each host.
    executed_counts: Vec<usize>,
    /// Threads that hosts have submitted.
    submitted: BTreeSet<u16>,
    /// Work that has started.
    started: BTreeSet<ScheduledWork>,
    /// Columns whose work on the queue has all ended, with everything submitted before it.
    ended: BTreeSet<u16>,
}

enum HostStep<'t> {
    Signal(&'t str, Option<u32>),
    Wait(&'t str, Option<u32>, u16),
    Fence(&'t [ThreadId], u16),
    Submit(&'t [ThreadId], u16),
    Work(u16),
}

/// Returns the steps of a host thread in order.
fn host_steps(test: &Test, thread: ThreadId) -> Vec<HostStep<'_>> {
    let Some(schedule) = test.schedule() else { return Vec::new() };
    let mut all = Vec::new();
    let instructions = &test.threads[usize::from(thread.0)].instructions;
    // One past the end: calls may follow the last instruction.
    for at in 0..=instructions.len() {
        let calls = schedule.hosts.iter().filter(|call| call.thread == thread && call.at == at);
        let mut is_wait = false;
        for call in calls {
            is_wait |= call.waits;
            all.push(match call.waits {
                true => HostStep::Wait(&call.semaphore, call.value, at as u16),
                false => HostStep::Signal(&call.semaphore, call.value),
            });
        }
        let Some(instruction) = instructions.get(at) else { continue };
        let fence = schedule.fences.iter().find(|fence| fence.thread == thread && fence.at == at);
        match (&instruction.kind, fence) {
            (_, Some(fence)) => all.push(HostStep::Fence(&fence.threads, at as u16)),
            (InstructionKind::System(SystemOperation::Submit(threads)), None) => {
                all.push(HostStep::Submit(threads, at as u16));
            }
            // The instruction represents the wait that was added above.
            _ if is_wait => {}
            _ => all.push(HostStep::Work(at as u16)),
        }
    }
    all
}

impl<'t> StreamProgress<'t> {
    fn new(test: &'t Test, stuck: ScheduledWork) -> StreamProgress<'t> {
        StreamProgress {
            test,
            stuck_work: stuck,
            signalled: Vec::new(),
            executed_counts: vec![0; test.threads.len()],
            submitted: BTreeSet::new(),
            started: BTreeSet::new(),
            ended: BTreeSet::new(),
        }
    }

    fn progress_count(&self) -> usize {
        self.signalled.len()
            + self.executed_counts.iter().sum::<usize>()
            + self.submitted.len()
            + self.started.len()
            + self.ended.len()
    }

    fn is_signalled(&self, name: &str, value: Option<u32>) -> bool {
        self.signalled.iter().any(|(known_name, reached)| *known_name == name && *reached >= value)
    }

    fn signal(&mut self, name: &'t str, value: Option<u32>) {
        if !self.signalled.contains(&(name, value)) {
            self.signalled.push((name, value));
        }
    }

    /// Starts a piece of work, and returns true if it ends.
    fn execute(&mut self, work: ScheduledWork) -> bool {
        self.started.insert(work);
        work != self.stuck_work
    }

    /// Runs all streams until nothing changes, and returns the started work.
    fn run_to_fixpoint(mut self) -> BTreeSet<ScheduledWork> {
        let test = self.test;
        let Some(schedule) = test.schedule() else { return self.started };
        let by_host: BTreeSet<u16> = (test.threads.iter().flat_map(|thread| &thread.instructions))
            .filter_map(|instruction| match &instruction.kind {
                InstructionKind::System(SystemOperation::Submit(threads)) => Some(threads),
                _ => None,
            })
            .flatten()
            .map(|thread| thread.0)
            .collect();
        loop {
            // All sets only grow, so their total size shows whether a round changed anything.
            let before = self.progress_count();
            for id in 0..test.threads.len() as u16 {
                if test.threads[usize::from(id)].place == ThreadPlace::Host {
                    self.run_host(ThreadId(id));
                }
            }
            for (number, queue) in schedule.queues.iter().enumerate() {
                // Held stages of dependencies whose source work has not ended, whether all earlier work has
                // ended, and the target stages of events that are not set yet.
                let (mut held, mut all_ended, mut running) = (Vec::<u8>::new(), true, 0_u8);
                let mut unset: Vec<(&str, u8)> = Vec::new();
                for (at, (item, thread)) in queue.items.iter().zip(&queue.threads).enumerate() {
                    // A queue executes in submission order: nothing after an item that is not
                    // submitted yet may start.
                    if by_host.contains(&thread.0) && !self.submitted.contains(&thread.0) {
                        break;
                    }
                    let call = ScheduledWork::Call { queue: number, item: at };
                    // A dependency waits for its source stages, and chains with those that are held.
                    let is_blocked = |source: u8, running: u8, held: &[u8]| {
                        held.iter().any(|own| own & source != 0) || source & running != 0
                    };
                    match item {
                        ScheduledItem::Dispatch(thread) => {
                            // A held dispatch never ends in this run either, so barriers and
                            // signals after it see unfinished work.
                            if is_blocked(COMPUTE, 0, &held)
                                || !self.execute(ScheduledWork::Dispatch(thread.0))
                            {
                                all_ended = false;
                                running |= COMPUTE;
                            }
                        }
                        ScheduledItem::Barrier(scopes) => {
                            let source = stage_bits(scopes.source.0, true);
                            if is_blocked(source, running, &held) || !self.execute(call) {
                                held.push(stage_bits(scopes.target.0, false));
                                all_ended = false;
                            }
                        }
                        ScheduledItem::Set(event, scopes) => {
                            let source = stage_bits(scopes.source.0, true);
                            if is_blocked(source, running, &held) || !self.execute(call) {
                                unset.push((event, stage_bits(scopes.target.0, false)));
                            }
                        }
                        ScheduledItem::Await(event, _) => {
                            if let Some((_, target)) = unset.iter().find(|(name, _)| name == event) {
                                held.push(*target);
                                all_ended = false;
                            }
                        }
                        ScheduledItem::Signal(name, value) => {
                            if all_ended && self.execute(call) {
                                self.signal(name, *value);
                            }
                        }
                        ScheduledItem::Wait(name, value) => {
                            if !self.is_signalled(name, *value) || !self.execute(call) {
                                held.push(COMMANDS);
                                all_ended = false;
                            }
                        }
                        ScheduledItem::Release(..) | ScheduledItem::Acquire(..) => {}
                    }
                    let last = queue.threads.iter().zip(&queue.items).rfind(|(own, _)| *own == thread);
                    if all_ended && last.is_some_and(|(_, last)| std::ptr::eq(last, item)) {
                        self.ended.insert(thread.0);
                    }
                }
            }
            if self.progress_count() == before {
                return self.started;
            }
        }
    }

    fn run_host(&mut self, id: ThreadId) {
        let at = usize::from(id.0);
        let steps = host_steps(self.test, id);
        let work = |instruction: &u16| ScheduledWork::Host { thread: id.0, instruction: *instruction };
        while let Some(step) = steps.get(self.executed_counts[at]) {
            let has_ended = match step {
                HostStep::Signal(name, value) => {
                    self.signal(name, *value);
                    true
                }
                HostStep::Wait(name, value, own) => {
                    self.is_signalled(name, *value) && self.execute(work(own))
                }
                HostStep::Fence(threads, own) => {
                    threads.iter().all(|thread| self.ended.contains(&thread.0)) && self.execute(work(own))
                }
                HostStep::Submit(threads, own) => {
                    let has_ended = self.execute(work(own));
                    if has_ended {
                        self.submitted.extend(threads.iter().map(|own| own.0));
                    }
                    has_ended
                }
                HostStep::Work(own) => self.execute(work(own)),
            };
            if !has_ended {
                return;
            }
            self.executed_counts[at] += 1;
        }
    }
}

/// Returns all accesses of hosts and all dispatches that do something.
fn collect_work(test: &Test) -> Vec<ScheduledWork> {
    let mut all = Vec::new();
    for (id, thread) in (0..).zip(&test.threads) {
        let events = (0..).zip(&thread.instructions).filter(|(_, own)| own.kind.access().is_some());
        match thread.place {
            ThreadPlace::Host => {
                all.extend(events.map(|(at, _)| ScheduledWork::Host { thread: id, instruction: at }));
            }
            ThreadPlace::Device(_) => all.extend(events.map(|_| ScheduledWork::Dispatch(id)).next()),
        }
    }
    all
}

/// Returns the ordered pairs among these pieces of work, without those of one thread.
fn ordered_pairs(test: &Test, all: &[ScheduledWork]) -> BTreeSet<(ScheduledWork, ScheduledWork)> {
    let mut pairs = BTreeSet::new();
    for earlier in all {
        let started = StreamProgress::new(test, *earlier).run_to_fixpoint();
        let is_of_other =
            |later: &ScheduledWork| later.thread().is_none() || later.thread() != earlier.thread();
        let later =
            all.iter().filter(|later| earlier != *later && is_of_other(later) && !started.contains(later));
        pairs.extend(later.map(|later| (*earlier, *later)));
    }
    pairs
}

/// Returns the ordered pairs of work of different threads, by running the streams of calls.
pub fn ordered_by_streams(test: &Test) -> BTreeSet<(ScheduledWork, ScheduledWork)> {
    ordered_pairs(test, &collect_work(test))
}

/// Returns the operations of a call in order.
fn call_operations(item: &ScheduledItem) -> Vec<SystemOperation> {
    match item {
        ScheduledItem::Barrier(scopes) | ScheduledItem::Set(_, scopes) => {
            // Dispatches are compute; a mask covers accesses of the named stages only.
            let own = |(stages, accesses): (StageMask, AccessMask)| {
                let is_compute = stages.names().any(|word| ["compute", "all"].contains(&word));
                if is_compute { accesses } else { accesses.intersection(AccessMask::HOST) }
            };
            let (available, visible) = (own(scopes.source), own(scopes.target));
            let available = (!available.is_empty()).then_some(SystemOperation::Available(available));
            let visible = (!visible.is_empty()).then_some(SystemOperation::Visible(visible));
            available.into_iter().chain(visible).collect()
        }
        // Whichever signal ends the wait makes available what precedes all of them.
        ScheduledItem::Wait(..) => {
            vec![SystemOperation::AvailableToDevice, SystemOperation::VisibleFromDevice]
        }
        ScheduledItem::Signal(..)
        | ScheduledItem::Dispatch(_)
        | ScheduledItem::Await(..)
        | ScheduledItem::Release(..)
        | ScheduledItem::Acquire(..) => Vec::new(),
    }
}

/// Returns the test in which each call is an agent with its operations, ordered by running the streams.
///
/// It has no derived relation. `None` without calls.
pub fn with_calls_as_agents(test: &Test) -> Option<Test> {
    let schedule = test.schedule()?;
    let mut explicit = test.clone();
    let mut work = Vec::new();
    for (id, thread) in (0..).zip(&mut explicit.threads) {
        if thread.place == ThreadPlace::Host {
            for instruction in &mut thread.instructions {
                if let InstructionKind::System(SystemOperation::Wait(threads)) = &mut instruction.kind {
                    threads.clear();
                }
            }
            let all = 0..thread.instructions.len() as u16;
            work.extend(all.map(|instruction| (ScheduledWork::Host { thread: id, instruction }, id)));
        } else {
            thread.instructions.retain(|own| !matches!(own.kind, InstructionKind::System(_)));
            work.push((ScheduledWork::Dispatch(id), id));
        }
    }
    for (number, queue) in schedule.queues.iter().enumerate() {
        for (item, (call, column)) in queue.items.iter().zip(&queue.threads).enumerate() {
            let operations = call_operations(call);
            if operations.is_empty() {
                continue;
            }
            let agent = explicit.threads.len() as u16;
            let span = test.thread(*column).span;
            let instruction = |operation| Instruction { kind: InstructionKind::System(operation), span };
            let place = Placement {
                queue_family: queue.family,
                queue: queue.number,
                workgroup: 100 + u32::from(agent),
                subgroup: 0,
            };
            explicit.threads.push(Thread {
                number: 100 + u32::from(agent),
                place: ThreadPlace::Device(place),
                registers: Vec::new(),
                labels: Vec::new(),
                instructions: operations.into_iter().map(instruction).collect(),
                span,
            });
            work.push((ScheduledWork::Call { queue: number, item }, agent));
        }
    }
    let all: Vec<ScheduledWork> = work.iter().map(|(own, _)| *own).collect();
    let point = |own: ScheduledWork| {
        let agent = work.iter().find(|(other, _)| *other == own).map_or(0, |(_, agent)| *agent);
        let instruction = match own {
            ScheduledWork::Host { instruction, .. } => Some(instruction),
            ScheduledWork::Dispatch(_) | ScheduledWork::Call { .. } => None,
        };
        SyncPoint { thread: ThreadId(agent), instruction }
    };
    let pairs = ordered_pairs(test, &all).into_iter();
    let span = test.threads.first()?.span;
    explicit.system_sync =
        pairs.map(|(from, to)| SystemSync { from: point(from), to: point(to), span }).collect();
    Some(explicit)
}

/// Returns the ordered pairs of work of different threads, by the relations that the parser has derived.
pub fn ordered_by_system_sync(test: &Test) -> BTreeSet<(ScheduledWork, ScheduledWork)> {
    let work = collect_work(test);
    // Instructions of all threads, as thread and instruction.
    let numbered = |(id, thread): (u16, &Thread)| {
        (0..thread.instructions.len() as u16).map(move |at| (id, at)).collect::<Vec<_>>()
    };
    let all: Vec<(u16, u16)> = (0..).zip(&test.threads).flat_map(numbered).collect();
    let covers = |point: &SyncPoint, own: &(u16, u16)| {
        point.thread.0 == own.0 && point.instruction.is_none_or(|at| at == own.1)
    };
    // Submissions and waits, as edges of the same kind.
    let is_edge = |from: &(u16, u16), to: &(u16, u16)| {
        let calls = (0..).zip(&test.threads).flat_map(|(id, thread): (u16, _)| {
            (0..).zip(&thread.instructions).map(move |(at, own): (u16, _)| (id, at, &own.kind))
        });
        let mut calls = calls.filter_map(|(id, at, kind)| match kind {
            InstructionKind::System(operation) => Some((id, at, operation)),
            _ => None,
        });
        let names = |threads: &[ThreadId], id: u16| threads.iter().any(|own| own.0 == id);
        let is_host = test.threads[usize::from(from.0)].place == ThreadPlace::Host;
        is_host && from.0 == to.0 && from.1 < to.1
            || test.system_sync.iter().any(|pair| covers(&pair.from, from) && covers(&pair.to, to))
            || calls.any(|(id, at, operation)| match operation {
                SystemOperation::Submit(threads) => from.0 == id && from.1 <= at && names(threads, to.0),
                SystemOperation::Wait(threads) => to.0 == id && to.1 >= at && names(threads, from.0),
                _ => false,
            })
    };
    let mut reached: Vec<Vec<bool>> =
        all.iter().map(|from| all.iter().map(|to| from != to && is_edge(from, to)).collect()).collect();
    for middle in 0..all.len() {
        // Warshall's algorithm.
        let successors = reached[middle].clone();
        for row in reached.iter_mut().filter(|row| row[middle]) {
            row.iter_mut().zip(&successors).for_each(|(cell, further)| *cell |= further);
        }
    }
    let of_instruction = |(thread, at): (u16, u16)| {
        let is_access =
            test.threads[usize::from(thread)].instructions[usize::from(at)].kind.access().is_some();
        let own = match test.threads[usize::from(thread)].place {
            ThreadPlace::Host => ScheduledWork::Host { thread, instruction: at },
            ThreadPlace::Device(_) => ScheduledWork::Dispatch(thread),
        };
        (is_access && work.contains(&own)).then_some(own)
    };
    let mut pairs = BTreeSet::new();
    for (from, row) in all.iter().zip(&reached) {
        let later = all.iter().zip(row).filter(|(to, ordered)| **ordered && to.0 != from.0);
        pairs.extend(later.filter_map(|(to, _)| Some((of_instruction(*from)?, of_instruction(*to)?))));
    }
    pairs
}
