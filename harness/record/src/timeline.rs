//! The commands of a process in the order in which they take effect on the memory model.
//!
//! Submissions of one queue stay in order. A submission that waits for a value of a timeline semaphore that is signalled later follows
//! the signal. Waits that no recorded submission satisfies (a presentation engine, another process) delay nothing.

use std::collections::{BTreeMap, HashMap, VecDeque};

use crate::journal::{Command, Event, RecordedAccess, SemaphoreUse};

/// A subpass of an executed render pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SubpassId {
    /// Number of the render pass among those that are executed.
    pub pass: usize,
    /// Number of the subpass.
    pub number: u32,
    /// True if the render pass has no subpasses.
    pub is_dynamic: bool,
}

/// An executed command.
#[derive(Clone, Debug)]
pub struct ExecutedCommand<'a> {
    /// Id of the queue.
    pub queue: u64,
    /// Number of the submission in the process.
    pub submission: u64,
    /// The innermost label around it.
    pub label: Option<&'a str>,
    /// The subpass that it is part of.
    pub subpass: Option<SubpassId>,
    /// The accesses to attachments that draws of the subpass may make.
    pub outputs: &'a [RecordedAccess],
    /// The command.
    pub command: &'a Command,
}

/// A step of the order between commands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// A queue waits for a semaphore before later commands.
    Wait(u64, SemaphoreUse),
    /// A command, by its index in [`Timeline::commands`].
    Execute(usize),
    /// A queue signals a semaphore after earlier commands.
    Signal(u64, SemaphoreUse),
    /// A queue signals a fence after earlier commands.
    SignalFence(u64, u64),
    /// The host waited for one of several fences, or values of semaphores, without knowledge of which.
    WaitAny(bool, Vec<[u64; 2]>),
    /// The host waited until the queues had ended all work.
    Idle(Vec<u64>),
    /// Another event of the host.
    Host(&'a Event),
}

/// The commands and the order of a process.
#[derive(Clone, Debug, Default)]
pub struct Timeline<'a> {
    /// Executed commands, except labels and begins of subpasses.
    pub commands: Vec<ExecutedCommand<'a>>,
    /// The steps, in order.
    pub steps: Vec<Step<'a>>,
}

/// A batch of a submission that is not yet in order.
struct Batch<'a> {
    number: u64,
    waits: &'a [SemaphoreUse],
    commands: &'a [u64],
    signals: &'a [SemaphoreUse],
    fence: u64,
}

struct Builder<'a> {
    timeline: Timeline<'a>,
    lists: HashMap<u64, &'a [Command]>,
    queued: BTreeMap<u64, VecDeque<Batch<'a>>>,
    /// The largest signalled value of each timeline semaphore.
    values: HashMap<u64, u64>,
    /// Number of executed render passes.
    passes: usize,
}

/// Puts the events of a process in order.
pub fn build_timeline(events: &[Event]) -> Timeline<'_> {
    let mut builder = Builder {
        timeline: Timeline::default(),
        lists: HashMap::new(),
        queued: BTreeMap::new(),
        values: HashMap::new(),
        passes: 0,
    };
    let mut queues: Vec<(u64, u64)> = Vec::new();
    let mut submissions = 0;
    for event in events {
        match event {
            Event::Queue { queue, device, .. } => queues.push((*queue, *device)),
            Event::Commands { commands, list, updated: _ } => _ = builder.lists.insert(*commands, list),
            Event::Submit { queue, waits, commands, signals, fence } => {
                let batch = Batch { number: submissions, waits, commands, signals, fence: *fence };
                submissions += 1;
                builder.queued.entry(*queue).or_default().push_back(batch);
                builder.execute_ready(false);
            }
            Event::HostSignal { semaphore, value } => {
                builder.raise_value(*semaphore, *value);
                builder.execute_ready(false);
            }
            Event::Fence { fence } => {
                builder.execute_ended(|_, batch| batch.fence == *fence);
                builder.timeline.steps.push(Step::Host(event));
            }
            Event::Semaphore { semaphore, value } => {
                builder.raise_value(*semaphore, *value);
                builder.execute_ready(false);
                builder.timeline.steps.push(Step::Host(event));
            }
            Event::WaitAny { is_fences, waits } => {
                // What nothing has signalled yet is not the one.
                let signalled = |wait: &&[u64; 2]| {
                    *is_fences || builder.values.get(&wait[0]).is_some_and(|value| *value >= wait[1])
                };
                let waits = waits.iter().filter(signalled).copied().collect();
                builder.timeline.steps.push(Step::WaitAny(*is_fences, waits));
            }
            Event::Idle { queue, device } => {
                let is_idle = |(id, of): &&(u64, u64)| *queue == Some(*id) || *device == Some(*of);
                let idle: Vec<u64> = queues.iter().filter(is_idle).map(|(id, _)| *id).collect();
                builder.execute_ended(|queue, _| idle.contains(&queue));
                builder.timeline.steps.push(Step::Idle(idle));
            }
            Event::HostSetEvent { .. }
            | Event::HostEvent { .. }
            | Event::HostWrites { .. }
            | Event::HostLayout { .. }
            | Event::Flush { .. }
            | Event::Invalidate { .. }
            | Event::Map { .. }
            | Event::Unmap { .. } => builder.timeline.steps.push(Step::Host(event)),
            // What creates, binds or names has no place in the order.
            _ => {}
        }
    }
    builder.execute_ready(true);
    builder.timeline
}

impl<'a> Builder<'a> {
    fn raise_value(&mut self, semaphore: u64, value: u64) {
        let known = self.values.entry(semaphore).or_default();
        *known = value.max(*known);
    }

    /// Puts batches in order that the host saw the end of: those before the last one of a queue that fulfils a condition. A signal that
    /// is not recorded, of another process, started them.
    fn execute_ended(&mut self, has_ended: impl Fn(u64, &Batch<'a>) -> bool) {
        let queues: Vec<u64> = self.queued.keys().copied().collect();
        for queue in queues {
            let batches = self.queued.entry(queue).or_default();
            let count = batches.iter().rposition(|batch| has_ended(queue, batch)).map_or(0, |last| last + 1);
            let ended: Vec<Batch<'a>> = batches.drain(..count).collect();
            ended.iter().for_each(|batch| self.execute(queue, batch));
        }
        self.execute_ready(false);
    }

    /// Puts the batches whose waits are satisfied in order; at the end of the journal all of them.
    fn execute_ready(&mut self, is_end: bool) {
        loop {
            let is_ready = |batch: &Batch<'_>| {
                let is_signalled =
                    |wait: &SemaphoreUse| self.values.get(&wait.0).is_some_and(|value| *value >= wait.2);
                is_end || batch.waits.iter().all(|wait| wait.2 == 0 || is_signalled(wait))
            };
            let ready = self.queued.iter().find(|(_, batches)| batches.front().is_some_and(is_ready));
            let Some(queue) = ready.map(|(queue, _)| *queue) else { return };
            let Some(batch) = self.queued.get_mut(&queue).and_then(VecDeque::pop_front) else { return };
            self.execute(queue, &batch);
        }
    }

    fn execute(&mut self, queue: u64, batch: &Batch<'a>) {
        let Builder { timeline, lists, passes, .. } = self;
        timeline.steps.extend(batch.waits.iter().map(|wait| Step::Wait(queue, *wait)));
        // A label may span command buffers of a batch.
        let mut labels: Vec<&str> = Vec::new();
        let (mut subpass, mut outputs): (Option<SubpassId>, &[RecordedAccess]) = (None, &[]);
        for command in batch.commands.iter().filter_map(|id| lists.get(id)).copied().flatten() {
            match command {
                Command::Label { name } => labels.push(name),
                Command::EndLabel => _ = labels.pop(),
                Command::Subpass { number, is_dynamic, outputs: all } => {
                    *passes += usize::from(*number == Some(0));
                    let id = |number| SubpassId { pass: *passes, number, is_dynamic: *is_dynamic };
                    (subpass, outputs) = (number.map(id), all);
                }
                Command::Dispatch { .. }
                | Command::Other(_)
                | Command::SetEvent { .. }
                | Command::Barrier { .. } => {
                    timeline.steps.push(Step::Execute(timeline.commands.len()));
                    let label = labels.last().copied();
                    timeline.commands.push(ExecutedCommand {
                        queue,
                        submission: batch.number,
                        label,
                        subpass,
                        outputs,
                        command,
                    });
                }
            }
        }
        timeline.steps.extend(batch.signals.iter().map(|signal| Step::Signal(queue, *signal)));
        if batch.fence != 0 {
            timeline.steps.push(Step::SignalFence(queue, batch.fence));
        }
        for signal in batch.signals {
            self.raise_value(signal.0, signal.2);
        }
    }
}
