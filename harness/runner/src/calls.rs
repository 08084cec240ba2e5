//! Converts the host calls of a test to plan steps: each queue gets the test's submissions, with their stages
//! and accesses.

use litmus::{DependencyScopes, Schedule, ScheduledItem, ThreadId};
use plan::{BufferId, DependencyKind, PlanStep, QueueId, Semaphore, SemaphoreId};
use shaders::Program;
use shaders::host::{CallSchedule, batch_items};

/// Calls in a valid order of submission.
#[derive(Clone, Debug, Default)]
pub(crate) struct OrderedCalls {
    /// The steps in submission order.
    pub items: Vec<OrderedCall>,
    pub semaphores: Vec<Semaphore>,
}

/// A dispatch or a call.
#[derive(Clone, Debug)]
pub(crate) enum OrderedCall {
    Dispatch(ThreadId),
    Call(PlanStep),
}

/// Returns true if the test uses timeline semaphores.
pub(crate) fn uses_timeline_semaphores(schedule: &Schedule) -> bool {
    let mut items = schedule.queues.iter().flat_map(|queue| &queue.items);
    items.any(|item| matches!(item, ScheduledItem::Signal(_, Some(_)) | ScheduledItem::Wait(_, Some(_))))
        || !schedule.hosts.is_empty()
}

/// Assigns numbers to names.
#[derive(Default)]
struct NameNumbers<'a>(Vec<&'a str>);

impl<'a> NameNumbers<'a> {
    fn number(&mut self, name: &'a str) -> u32 {
        let known = self.0.iter().position(|known| *known == name);
        known.unwrap_or_else(|| {
            self.0.push(name);
            self.0.len() - 1
        }) as u32
    }
}

fn dependency_step(queue: QueueId, kind: DependencyKind, scopes: &DependencyScopes) -> PlanStep {
    let (source, target) = (scopes.source, scopes.target);
    PlanStep::Dependency { queue, kind, stages: (source.0, target.0), available: source.1, visible: target.1 }
}

/// Returns the test's submissions as steps, in the queues' order or in the batches of host threads.
///
/// # Errors
/// The rule that makes the test invalid for a device.
pub(crate) fn order_calls(
    program: &Program,
    schedule: &Schedule,
    owned_buffer: BufferId,
) -> Result<OrderedCalls, &'static str> {
    check_timeline_values(schedule)?;
    match program.hosts.as_ref().and_then(|hosts| hosts.call_schedule.as_ref()) {
        Some(Ok(called)) => order_batches(schedule, called),
        _ => merge_queues(schedule, owned_buffer),
    }
}

/// Returns the steps of batches that host threads submit.
fn order_batches(schedule: &Schedule, called: &CallSchedule) -> Result<OrderedCalls, &'static str> {
    let mut semaphores = NameNumbers(called.semaphores.iter().map(String::as_str).collect());
    let mut events = NameNumbers::default();
    let is_timeline = |name: &str| {
        let mut items = schedule.queues.iter().flat_map(|queue| &queue.items);
        // A semaphore is a timeline if any signal, wait or host call uses a value.
        let mut host = schedule.hosts.iter();
        items.any(|item| {
            matches!(item, ScheduledItem::Signal(own, Some(_)) | ScheduledItem::Wait(own, Some(_)) if own == name)
        }) || host.any(|call| call.semaphore == name)
    };
    let kind = |name: &&str| if is_timeline(name) { Semaphore::Timeline } else { Semaphore::Binary };
    let mut ordered =
        OrderedCalls { semaphores: semaphores.0.iter().map(kind).collect(), ..OrderedCalls::default() };
    for (number, batch) in (0..).zip(&called.batches) {
        let queue = QueueId(batch.queue as u32);
        ordered.items.push(OrderedCall::Call(PlanStep::Batch { queue, number }));
        for item in batch_items(schedule, batch) {
            ordered.items.push(match item {
                ScheduledItem::Dispatch(thread) => OrderedCall::Dispatch(*thread),
                ScheduledItem::Release(..) | ScheduledItem::Acquire(..) => return Err(SPLIT_OWNERSHIP),
                // A binary semaphore without a wait would still be signalled in the next submission.
                ScheduledItem::Signal(name, None) if !is_awaited(schedule, name) => continue,
                ScheduledItem::Signal(name, value) => {
                    let semaphore = SemaphoreId(semaphores.number(name));
                    OrderedCall::Call(PlanStep::Signal { queue, semaphore, value: value.unwrap_or(1) })
                }
                ScheduledItem::Wait(name, value) => {
                    let semaphore = SemaphoreId(semaphores.number(name));
                    OrderedCall::Call(PlanStep::Wait { queue, semaphore, value: value.unwrap_or(1) })
                }
                ScheduledItem::Barrier(scopes) => {
                    OrderedCall::Call(dependency_step(queue, DependencyKind::Barrier, scopes))
                }
                ScheduledItem::Set(event, scopes) => OrderedCall::Call(dependency_step(
                    queue,
                    DependencyKind::Set(events.number(event)),
                    scopes,
                )),
                ScheduledItem::Await(event, scopes) => OrderedCall::Call(dependency_step(
                    queue,
                    DependencyKind::Await(events.number(event)),
                    scopes,
                )),
            });
        }
    }
    Ok(ordered)
}

/// Merges the queues into one order that keeps the order of each queue and puts waits after their signals.
///
/// Dispatches come as early as possible, so that unordered ones may overlap. Memory with queue-family
/// ownership is in buffer `owned`.
///
/// # Errors
/// The rule that makes the test invalid for a device.
fn merge_queues(schedule: &Schedule, owned: BufferId) -> Result<OrderedCalls, &'static str> {
    let queue_of = |family: u32| {
        let position = schedule.queues.iter().position(|queue| queue.family == family);
        position.map(|number| QueueId(number as u32)).ok_or(SPLIT_OWNERSHIP)
    };
    let (mut semaphores, mut events) = (NameNumbers::default(), NameNumbers::default());
    let mut ordered = OrderedCalls::default();
    // The value that each semaphore has reached.
    let mut reached: Vec<u32> = Vec::new();
    let mut remaining: Vec<std::iter::Peekable<std::slice::Iter<'_, ScheduledItem>>> =
        schedule.queues.iter().map(|queue| queue.items.iter().peekable()).collect();
    loop {
        for items in &mut remaining {
            while let Some(ScheduledItem::Dispatch(thread)) =
                items.next_if(|item| matches!(item, ScheduledItem::Dispatch(_)))
            {
                ordered.items.push(OrderedCall::Dispatch(*thread));
            }
        }
        // Only one call per turn: the dispatches that it enables come before the next call.
        let mut has_progressed = false;
        for (queue, items) in (0..).map(QueueId).zip(&mut remaining) {
            let Some(item) = items.peek() else { continue };
            let step = match item {
                ScheduledItem::Dispatch(_) => continue,
                ScheduledItem::Barrier(scopes) => dependency_step(queue, DependencyKind::Barrier, scopes),
                ScheduledItem::Set(event, scopes) => {
                    dependency_step(queue, DependencyKind::Set(events.number(event)), scopes)
                }
                ScheduledItem::Await(event, scopes) => {
                    dependency_step(queue, DependencyKind::Await(events.number(event)), scopes)
                }
                ScheduledItem::Release(storages, _) | ScheduledItem::Acquire(storages, _)
                    if *storages != schedule.owned =>
                {
                    return Err(SPLIT_OWNERSHIP);
                }
                ScheduledItem::Release(_, to) => {
                    PlanStep::Release { queue, buffer: owned, to: queue_of(*to)? }
                }
                ScheduledItem::Acquire(_, from) => {
                    PlanStep::Acquire { queue, buffer: owned, from: queue_of(*from)? }
                }
                // A binary semaphore without a wait would still be signalled the next time, so only the end
                // of the submission remains.
                ScheduledItem::Signal(name, _) if !is_awaited(schedule, name) => PlanStep::Submit { queue },
                ScheduledItem::Signal(name, value) | ScheduledItem::Wait(name, value) => {
                    let number = semaphores.number(name) as usize;
                    if number == reached.len() {
                        reached.push(0);
                        ordered.semaphores.push(match value {
                            Some(_) => Semaphore::Timeline,
                            None => Semaphore::Binary,
                        });
                    }
                    let (semaphore, value) = (SemaphoreId(number as u32), value.unwrap_or(1));
                    let reached = reached.get_mut(number).ok_or(UNORDERED_SIGNALS)?;
                    if matches!(item, ScheduledItem::Signal(..)) {
                        *reached = value;
                        PlanStep::Signal { queue, semaphore, value }
                    } else if *reached < value {
                        continue;
                    } else {
                        PlanStep::Wait { queue, semaphore, value }
                    }
                }
            };
            ordered.items.push(OrderedCall::Call(step));
            items.next();
            has_progressed = true;
            break;
        }
        if !has_progressed {
            let ended = remaining.iter_mut().all(|items| items.peek().is_none());
            return if ended { Ok(ordered) } else { Err(UNORDERED_SIGNALS) };
        }
    }
}

/// Returns the first and the last queue that use the owned memory.
pub(crate) fn owned_memory_users(ordered: &OrderedCalls, program: &Program) -> Option<(QueueId, QueueId)> {
    let queue_of_dispatch = |thread: &ThreadId| {
        let mut parts = program.phases.iter().flat_map(|phase| &phase.kernels);
        let part = parts.find(|part| part.threads.contains(thread))?;
        part.kernel.uses_separate_buffer().then_some(QueueId(part.queue))
    };
    let mut users = ordered.items.iter().filter_map(|item| match item {
        OrderedCall::Call(PlanStep::Release { queue, .. } | PlanStep::Acquire { queue, .. }) => Some(*queue),
        OrderedCall::Call(_) => None,
        OrderedCall::Dispatch(thread) => queue_of_dispatch(thread),
    });
    let first = users.next()?;
    Some((first, users.next_back().unwrap_or(first)))
}

fn is_awaited(schedule: &Schedule, semaphore: &str) -> bool {
    let mut items = schedule.queues.iter().flat_map(|queue| &queue.items);
    items.any(|item| matches!(item, ScheduledItem::Wait(name, _) if name == semaphore))
}

/// All owned memory is in one buffer.
const SPLIT_OWNERSHIP: &str = "parts of owned memory with several owners";
const UNORDERED_SIGNALS: &str = "unordered signals of one timeline semaphore";

/// Checks that timeline values increase in every possible order of queues and host threads.
///
/// A signal must come after a wait for every smaller value that another queue or thread signals. See
/// VUID-VkSubmitInfo-pSignalSemaphores-03242 and VUID-VkSemaphoreSignalInfo-value-03258.
fn check_timeline_values(schedule: &Schedule) -> Result<(), &'static str> {
    // For each queue and host thread: (is a wait, semaphore, value).
    let mut columns: Vec<Vec<(bool, &str, u32)>> = Vec::new();
    for queue in &schedule.queues {
        let own = queue.items.iter().filter_map(|item| match item {
            ScheduledItem::Signal(name, Some(value)) => Some((false, name.as_str(), *value)),
            ScheduledItem::Wait(name, Some(value)) => Some((true, name.as_str(), *value)),
            _ => None,
        });
        columns.push(own.collect());
    }
    let mut threads: Vec<ThreadId> = schedule.hosts.iter().map(|call| call.thread).collect();
    threads.dedup();
    for thread in threads {
        let own = schedule.hosts.iter().filter(|call| call.thread == thread);
        columns
            .push(own.filter_map(|call| Some((call.waits, call.semaphore.as_str(), call.value?))).collect());
    }
    for (column, own) in columns.iter().enumerate() {
        for (at, (_, name, value)) in own.iter().enumerate().filter(|(_, call)| !call.0) {
            let before = own.get(..at).unwrap_or_default();
            // In one column, the order is fixed, so that values must increase in it.
            let decreases = |call: &(bool, &str, u32)| !call.0 && call.1 == *name && call.2 >= *value;
            if before.iter().any(decreases) {
                return Err(UNORDERED_SIGNALS);
            }
            let others = columns.iter().enumerate().filter(|(other, _)| *other != column);
            for (_, _, earlier) in
                others.flat_map(|(_, other)| other).filter(|call| !call.0 && call.1 == *name)
            {
                let waits = before.iter().any(|call| call.0 && call.1 == *name && call.2 >= *earlier);
                if earlier == value || earlier < value && !waits {
                    return Err(UNORDERED_SIGNALS);
                }
            }
        }
    }
    Ok(())
}
