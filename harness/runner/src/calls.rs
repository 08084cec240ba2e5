//! The calls of a test as steps of a plan: each queue is given what the test gives it, with the stages and accesses that it names.

use litmus::{Schedule, Scheduled, Scopes, StageMask, ThreadId};
use plan::{BufferId, DependencyKind, QueueId, Semaphore, SemaphoreId, Stages, Step};
use shaders::Program;

use crate::join::accesses;

/// Calls in an order in which they can be submitted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ordered {
    /// What happens.
    pub items: Vec<Ordering>,
    /// The semaphores that steps name.
    pub semaphores: Vec<Semaphore>,
}

/// A dispatch or a call.
#[derive(Clone, Debug)]
pub(crate) enum Ordering {
    /// The dispatch of a thread.
    Dispatch(ThreadId),
    /// A call.
    Call(Step),
}

/// Whether semaphores have values.
pub(crate) fn counts(schedule: &Schedule) -> bool {
    let mut items = schedule.queues.iter().flat_map(|queue| &queue.items);
    items.any(|item| matches!(item, Scheduled::Signal(_, Some(_)) | Scheduled::Wait(_, Some(_))))
}

/// Names of a kind, numbered.
#[derive(Default)]
struct Names<'a>(Vec<&'a str>);

impl<'a> Names<'a> {
    fn number(&mut self, name: &'a str) -> u32 {
        let known = self.0.iter().position(|known| *known == name);
        known.unwrap_or_else(|| {
            self.0.push(name);
            self.0.len() - 1
        }) as u32
    }
}

/// The stages of a dependency of a plan.
fn stages(mask: StageMask) -> Stages {
    mask.words().fold(Stages::NONE, |all, word| {
        all.with(match word {
            "compute" => Stages::COMPUTE,
            "vertex" => Stages::VERTEX,
            "fragment" => Stages::FRAGMENT,
            "transfer" => Stages::TRANSFER,
            "host" => Stages::HOST,
            "top" => Stages::TOP,
            "bottom" => Stages::BOTTOM,
            _ => Stages::ALL,
        })
    })
}

fn dependency(queue: QueueId, kind: DependencyKind, scopes: &Scopes) -> Step {
    let (source, target) = (scopes.source, scopes.target);
    Step::Dependency {
        queue,
        kind,
        stages: (stages(source.0), stages(target.0)),
        available: accesses(source.1),
        visible: accesses(target.1),
    }
}

/// What queues are given, in one order: that of each queue, waits behind the signals that end them, and otherwise dispatches as early as
/// can be, so that what is not ordered may overlap. What one queue family owns at a time lies in the buffer given.
///
/// # Errors
/// The rule by which a device is not given it.
pub(crate) fn steps(schedule: &Schedule, owned: BufferId) -> Result<Ordered, &'static str> {
    check_values(schedule)?;
    let queue_of = |family: u32| {
        let position = schedule.queues.iter().position(|queue| queue.family == family);
        position.map(|number| QueueId(number as u32)).ok_or(PARTS_OWNED)
    };
    let (mut semaphores, mut events) = (Names::default(), Names::default());
    let mut ordered = Ordered::default();
    // Of each semaphore the value that it has reached.
    let mut reached: Vec<u32> = Vec::new();
    let mut left: Vec<std::iter::Peekable<std::slice::Iter<'_, Scheduled>>> =
        schedule.queues.iter().map(|queue| queue.items.iter().peekable()).collect();
    loop {
        for items in &mut left {
            while let Some(Scheduled::Dispatch(thread)) =
                items.next_if(|item| matches!(item, Scheduled::Dispatch(_)))
            {
                ordered.items.push(Ordering::Dispatch(*thread));
            }
        }
        // One call of the first queue that can go on; what it lets begin comes before the next.
        let mut gone = false;
        for (queue, items) in (0..).map(QueueId).zip(&mut left) {
            let Some(item) = items.peek() else { continue };
            let step = match item {
                Scheduled::Dispatch(_) => continue,
                Scheduled::Barrier(scopes) => dependency(queue, DependencyKind::Barrier, scopes),
                Scheduled::Set(event, scopes) => {
                    dependency(queue, DependencyKind::Set(events.number(event)), scopes)
                }
                Scheduled::Await(event, scopes) => {
                    dependency(queue, DependencyKind::Await(events.number(event)), scopes)
                }
                Scheduled::Release(storages, _) | Scheduled::Acquire(storages, _)
                    if *storages != schedule.owned =>
                {
                    return Err(PARTS_OWNED);
                }
                Scheduled::Release(_, to) => Step::Release { queue, buffer: owned, to: queue_of(*to)? },
                Scheduled::Acquire(_, from) => Step::Acquire { queue, buffer: owned, from: queue_of(*from)? },
                // A binary semaphore would still be signalled the next time: what is left is the end of a submission.
                Scheduled::Signal(name, _) if !is_awaited(schedule, name) => Step::Submit { queue },
                Scheduled::Signal(name, value) | Scheduled::Wait(name, value) => {
                    let number = semaphores.number(name) as usize;
                    if number == reached.len() {
                        reached.push(0);
                        ordered.semaphores.push(match value {
                            Some(_) => Semaphore::Timeline,
                            None => Semaphore::Binary,
                        });
                    }
                    let (semaphore, value) = (SemaphoreId(number as u32), value.unwrap_or(1));
                    let reached = reached.get_mut(number).ok_or(UNORDERED)?;
                    if matches!(item, Scheduled::Signal(..)) {
                        *reached = value;
                        Step::Signal { queue, semaphore, value }
                    } else if *reached < value {
                        continue;
                    } else {
                        Step::Wait { queue, semaphore, value }
                    }
                }
            };
            ordered.items.push(Ordering::Call(step));
            items.next();
            gone = true;
            break;
        }
        if !gone {
            let ended = left.iter_mut().all(|items| items.peek().is_none());
            return if ended { Ok(ordered) } else { Err(UNORDERED) };
        }
    }
}

/// The queues on which the owned memory is used first and last.
pub(crate) fn users(ordered: &Ordered, program: &Program) -> Option<(QueueId, QueueId)> {
    let of_dispatch = |thread: &ThreadId| {
        let mut parts = program.phases.iter().flat_map(|phase| &phase.parts);
        let part = parts.find(|part| part.threads.contains(thread))?;
        part.kernel.uses_apart().then_some(QueueId(part.queue))
    };
    let mut users = ordered.items.iter().filter_map(|item| match item {
        Ordering::Call(Step::Release { queue, .. } | Step::Acquire { queue, .. }) => Some(*queue),
        Ordering::Call(_) => None,
        Ordering::Dispatch(thread) => of_dispatch(thread),
    });
    let first = users.next()?;
    Some((first, users.next_back().unwrap_or(first)))
}

fn is_awaited(schedule: &Schedule, semaphore: &str) -> bool {
    let mut items = schedule.queues.iter().flat_map(|queue| &queue.items);
    items.any(|item| matches!(item, Scheduled::Wait(name, _) if name == semaphore))
}

/// One buffer has all that is owned.
const PARTS_OWNED: &str = "parts of the owned memory with owners of their own";
const UNORDERED: &str = "signals of one timeline semaphore in no order";

/// The values of a timeline rise in every order in which queues may go on: a queue signals behind a wait for what another one has
/// signalled before. VUID-VkSubmitInfo-pSignalSemaphores-03242.
fn check_values(schedule: &Schedule) -> Result<(), &'static str> {
    let signals = |queue: usize| {
        let items = schedule.queues.get(queue).map(|queue| queue.items.as_slice()).unwrap_or_default();
        items.iter().enumerate().filter_map(move |(at, item)| match item {
            Scheduled::Signal(name, Some(value)) => Some((at, name, *value, items)),
            _ => None,
        })
    };
    for queue in 0..schedule.queues.len() {
        for (at, name, value, items) in signals(queue) {
            for other in (0..schedule.queues.len()).filter(|other| *other != queue) {
                for (_, _, earlier, _) in signals(other).filter(|(_, own, ..)| *own == name) {
                    let waits = items.iter().take(at).any(|item| {
                        matches!(item, Scheduled::Wait(own, Some(awaited)) if own == name && *awaited >= earlier)
                    });
                    if earlier == value || earlier < value && !waits {
                        return Err(UNORDERED);
                    }
                }
            }
        }
    }
    Ok(())
}
