//! The order of hosts and queues by their calls, derived independently by running the streams of calls.
//!
//! Two pieces of work are ordered if and only if the later one cannot start while the earlier one never ends.
//! So for each piece of work, the streams are run as far as possible without it. The rules are those of the
//! chapter on synchronization: a signal waits for all earlier work of its queue, a wait holds all later work
//! of its queue, and a barrier holds later work of its target stages until earlier work of its source stages
//! has ended. Monotone: a run that has more signals never holds more work, so one greedy run decides each
//! pair.

use std::collections::BTreeSet;

use litmus::{
    InstructionKind, ScheduledItem, StageMask, SyncPoint, SystemOperation, Test, ThreadId, ThreadPlace,
};

use crate::generate::{ProgramFamily, RandomProgram, SplitMix64};

/// A work item, of a host instruction or of a whole dispatch: the thread, and the instruction of a host.
pub type ScheduledWork = (u16, Option<u16>);

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
    Wait(&'t str, Option<u32>),
    Fence(&'t [ThreadId]),
    Submit(&'t [ThreadId]),
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
                true => HostStep::Wait(&call.semaphore, call.value),
                false => HostStep::Signal(&call.semaphore, call.value),
            });
        }
        let Some(instruction) = instructions.get(at) else { continue };
        let fence = schedule.fences.iter().find(|fence| fence.thread == thread && fence.at == at);
        match (&instruction.kind, fence) {
            (_, Some(fence)) => all.push(HostStep::Fence(&fence.threads)),
            (InstructionKind::System(SystemOperation::Submit(threads)), None) => {
                all.push(HostStep::Submit(threads))
            }
            (InstructionKind::System(_), None) => {}
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
            for queue in &schedule.queues {
                // Held stages of barriers whose source work has not ended, and whether all earlier work has ended.
                let (mut barriers, mut all_ended, mut running) = (Vec::<u8>::new(), true, 0_u8);
                for (item, thread) in queue.items.iter().zip(&queue.threads) {
                    // A queue executes in submission order: nothing after an item that is not
                    // submitted yet may start.
                    if by_host.contains(&thread.0) && !self.submitted.contains(&thread.0) {
                        break;
                    }
                    match item {
                        ScheduledItem::Dispatch(thread) => {
                            let work = (thread.0, None);
                            let is_held = barriers.iter().any(|stages| stages & COMPUTE != 0);
                            if !is_held {
                                self.started.insert(work);
                            }
                            // A held dispatch never ends in this run either, so barriers and
                            // signals after it see unfinished work.
                            if is_held || work == self.stuck_work {
                                all_ended = false;
                                running |= COMPUTE;
                            }
                        }
                        ScheduledItem::Barrier(scopes) => {
                            let source = stage_bits(scopes.source.0, true);
                            // A barrier also chains: it waits for stages that an earlier barrier
                            // holds.
                            if source & running != 0 || barriers.iter().any(|held| held & source != 0) {
                                barriers.push(stage_bits(scopes.target.0, false));
                            }
                        }
                        ScheduledItem::Signal(name, value) if all_ended => self.signal(name, *value),
                        ScheduledItem::Wait(name, value) if self.is_signalled(name, *value) => {}
                        ScheduledItem::Wait(..) => break,
                        ScheduledItem::Signal(..)
                        | ScheduledItem::Set(..)
                        | ScheduledItem::Await(..)
                        | ScheduledItem::Release(..)
                        | ScheduledItem::Acquire(..) => {}
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
        while let Some(step) = steps.get(self.executed_counts[at]) {
            match step {
                HostStep::Signal(name, value) => self.signal(name, *value),
                HostStep::Wait(name, value) if !self.is_signalled(name, *value) => return,
                HostStep::Fence(threads) if !threads.iter().all(|own| self.ended.contains(&own.0)) => return,
                HostStep::Submit(threads) => self.submitted.extend(threads.iter().map(|own| own.0)),
                HostStep::Work(instruction) => {
                    let work = (id.0, Some(*instruction));
                    self.started.insert(work);
                    if work == self.stuck_work {
                        return;
                    }
                }
                HostStep::Wait(..) | HostStep::Fence(_) => {}
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
            ThreadPlace::Host => all.extend(events.map(|(at, _)| (id, Some(at)))),
            ThreadPlace::Device(_) => all.extend(events.map(|_| (id, None)).next()),
        }
    }
    all
}

/// Returns the ordered pairs of work of different threads, by running the streams of calls.
pub fn ordered_by_streams(test: &Test) -> BTreeSet<(ScheduledWork, ScheduledWork)> {
    let all = collect_work(test);
    let mut pairs = BTreeSet::new();
    for earlier in &all {
        let started = StreamProgress::new(test, *earlier).run_to_fixpoint();
        let later = all.iter().filter(|later| later.0 != earlier.0 && !started.contains(later));
        pairs.extend(later.map(|later| (*earlier, *later)));
    }
    pairs
}

/// Returns the ordered pairs of work of different threads, by the relations that the parser has derived.
pub fn ordered_by_system_sync(test: &Test) -> BTreeSet<(ScheduledWork, ScheduledWork)> {
    let work = collect_work(test);
    // Waits and submissions of hosts are events too: work before a wait precedes work of a later submission.
    let mut all = work.clone();
    for (id, thread) in (0..).zip(&test.threads).filter(|(_, thread)| thread.place == ThreadPlace::Host) {
        let calls = (0..).zip(&thread.instructions);
        let calls = calls.filter(|(_, own)| matches!(own.kind, InstructionKind::System(_)));
        all.extend(calls.map(|(at, _)| (id, Some(at))));
    }
    let covers = |point: &SyncPoint, work: &ScheduledWork| {
        point.thread.0 == work.0 && (point.instruction.is_none() || point.instruction == work.1)
    };
    // Instructions of hosts that wait or submit, as edges of the same kind.
    let is_edge = |from: &ScheduledWork, to: &ScheduledWork| {
        let is_on_side = |work: &ScheduledWork, at: usize, is_before: bool| {
            work.1.is_some_and(|own| if is_before { usize::from(own) <= at } else { usize::from(own) >= at })
        };
        let by_call = (0..).zip(&test.threads).any(|(id, thread): (u16, _)| {
            thread.instructions.iter().enumerate().any(|(at, instruction)| match &instruction.kind {
                InstructionKind::System(SystemOperation::Submit(threads)) => {
                    from.0 == id && is_on_side(from, at, true) && threads.iter().any(|own| own.0 == to.0)
                }
                InstructionKind::System(SystemOperation::Wait(threads)) => {
                    to.0 == id && is_on_side(to, at, false) && threads.iter().any(|own| own.0 == from.0)
                }
                _ => false,
            })
        });
        let is_program_order = from.0 == to.0 && from.1 < to.1;
        is_program_order
            || by_call
            || test.system_sync.iter().any(|pair| covers(&pair.from, from) && covers(&pair.to, to))
    };
    let mut reached = vec![vec![false; all.len()]; all.len()];
    for (row, from) in reached.iter_mut().zip(&all) {
        for (cell, to) in row.iter_mut().zip(&all) {
            *cell = from != to && is_edge(from, to);
        }
    }
    for middle in 0..all.len() {
        // Warshall's algorithm.
        let successors = reached[middle].clone();
        for row in reached.iter_mut().filter(|row| row[middle]) {
            row.iter_mut().zip(&successors).for_each(|(cell, further)| *cell |= further);
        }
    }
    let mut pairs = BTreeSet::new();
    for (from, row) in all.iter().zip(&reached) {
        let later = all.iter().zip(row).filter(|(to, ordered)| **ordered && to.0 != from.0);
        let later = later.filter(|(to, _)| work.contains(to) && work.contains(from));
        pairs.extend(later.map(|(to, _)| (*from, *to)));
    }
    pairs
}

const BARRIER_SIDES: [&str; 9] = [
    "compute:shader_write",
    "compute:shader_read",
    "compute",
    "all",
    "top",
    "bottom",
    "transfer",
    "vertex",
    "fragment",
];
const HOST_BARRIERS: [&str; 5] = [
    "all.host:host_write -> compute:shader_read",
    "transfer.host:host_write -> compute:shader_read",
    "compute:shader_write -> host:host_read",
    "compute:shader_write -> host:host_read.host_write",
    "all:memory_write -> all.host:host_read",
];

/// Returns the program of a seed: one or two hosts and two or three dispatches with barriers, signals and waits.
///
/// Draws again while the specification leaves the answer open.
pub fn generate_hosts_program(seed: u64) -> RandomProgram {
    let mut random = SplitMix64(seed ^ 0x0057_0515);
    loop {
        let (text, agents) = draw_program(&mut random, seed);
        if litmus::parse(&text, "random.litmus").is_ok() {
            return RandomProgram { family: ProgramFamily::Calls(agents), text, bound: 1 };
        }
    }
}

fn draw_program(random: &mut SplitMix64, seed: u64) -> (String, usize) {
    let (hosts, devices) = (random.pick(&[1, 1, 2]), random.pick(&[1, 2, 2, 3]));
    let mut number = 0;
    let mut access = |random: &mut SplitMix64| {
        number += 1;
        random
            .pick(&["st.sc0 x, {}", "st.sc0 y, {}", "ld.sc0 r{}, x", "ld.sc0 r{}, y"])
            .replace("{}", &number.to_string())
    };
    let semaphore = |random: &mut SplitMix64, word: &str| {
        let name = random.pick(&["s", "t", "u"]);
        let value = random.pick(&[1, 1, 2, 3]);
        format!("{word} {name} {value}")
    };
    let mut columns: Vec<Vec<String>> = Vec::new();
    let submits = random.chance(50);
    for agent in 0..devices {
        let place = random.pick(&["qf 0", "qf 0", "qf 0, q 1", "qf 1"]);
        let mut column = vec![format!("P{agent}@sg 0, wg {agent}, {place}")];
        for is_after_access in [false, true] {
            for _ in 0..random.pick(&[0, 1, 1, 2]) {
                column.push(match random.below(8) {
                    0 | 1 => {
                        format!("barrier {} -> {}", random.pick(&BARRIER_SIDES), random.pick(&BARRIER_SIDES))
                    }
                    2 | 3 => format!("barrier {}", random.pick(&HOST_BARRIERS)),
                    4 | 5 => semaphore(random, if is_after_access { "signal" } else { "wait" }),
                    6 => semaphore(random, "signal"),
                    _ => semaphore(random, "wait"),
                });
            }
            if !is_after_access {
                column.push(access(random));
            }
        }
        columns.push(column);
    }
    for host in devices..devices + hosts {
        let mut column = vec![format!("P{host}@host")];
        for _ in 0..2 + random.below(3) {
            column.push(match random.below(9) {
                0..=3 => access(random),
                4 | 5 => semaphore(random, "signal"),
                6 | 7 => semaphore(random, "wait"),
                _ if submits => format!("{} P{}", random.pick(&["submit", "wait"]), random.below(devices)),
                _ => format!("wait P{}", random.below(devices)),
            });
        }
        columns.push(column);
    }
    let rows = columns.iter().map(Vec::len).max().unwrap_or(0);
    let row = |row: usize| {
        let cells = columns.iter().map(|column| column.get(row).map_or("", String::as_str));
        cells.collect::<Vec<_>>().join(" | ")
    };
    let table: String = (0..rows).map(|at| row(at) + " ;\n").collect();
    let text = format!(
        "VULKAN hosts-{seed}\n{{ buffer u32 x [host] = 0; buffer u32 y [host] = 0; }}\n{table}exists (x == 1)\n"
    );
    (text, columns.len())
}
