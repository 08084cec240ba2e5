//! Places the operations of dependencies in threads, and orders them after the work that they follow.
//!
//! Each dispatch begins with the operations of all dependencies that lead to it, in an order that moves
//! no other writes (`chain::linear_order`). Each operation follows exactly the work that its dependency follows:
//! if that is not everything before the dispatch, the pairs name instructions. Operations are left out if an
//! earlier dispatch has them and precedes everything that they precede.
//! Operations for the host come at the end of a dispatch that the barrier follows.

use super::chain::{QueueDependency, dispatch_start, linear_order};
use super::{CallDerivation, Derived, Predecessors, WorkItem, count_instructions};
use crate::error::CallError;
use crate::span::Span;
use crate::system::SystemOperation;
use crate::test::{Flow, InstructionKind, SyncPoint, SystemSync, ThreadId};

/// An operation of a dependency in a thread.
pub(super) struct PlacedOperation {
    pub(super) operation: SystemOperation,
    pub(super) span: Span,
    before: Predecessors,
    moves_device_writes: bool,
}

/// The operations before and after the instructions of a thread.
#[derive(Default)]
pub(super) struct ThreadOperations {
    pub(super) head: Vec<PlacedOperation>,
    pub(super) tail: Vec<PlacedOperation>,
    /// The work before the thread's own instructions.
    before: Predecessors,
    /// The dependencies of its queue that lead to it, as a bit set.
    leading: u128,
    /// The last call before it.
    span: Span,
}

impl PlacedOperation {
    fn new(own: &QueueDependency, operation: SystemOperation) -> PlacedOperation {
        let is_availability = own.available.as_ref() == Some(&operation);
        PlacedOperation {
            operation,
            span: own.span,
            before: own.before.clone(),
            moves_device_writes: is_availability && own.moves_device_writes(),
        }
    }

    fn follows_all(&self, threads: &[ThreadId]) -> bool {
        threads.iter().all(|thread| self.before.dispatches.contains(thread))
    }
}

impl CallDerivation<'_> {
    /// Returns the operations of each thread.
    pub(super) fn place_operations(&self) -> Derived<Vec<ThreadOperations>> {
        let mut placed: Vec<ThreadOperations> = Vec::new();
        placed.resize_with(self.test.threads.len(), ThreadOperations::default);
        let mut of_queues = Vec::new();
        for queue in 0..self.queues.len() {
            let dependencies = self.queue_dependencies(queue)?;
            for (at, thread) in self.queue_dispatches(queue) {
                let operations = self.place_start(queue, &dependencies, at, thread, &placed);
                if let Some(own) = placed.get_mut(usize::from(thread.0)) {
                    *own = operations;
                }
            }
            of_queues.push(dependencies);
        }
        for (queue, dependencies) in of_queues.iter().enumerate() {
            for own in dependencies.iter().filter(|own| !own.host_accesses.is_empty()) {
                self.place_readback(queue, dependencies, own, &mut placed)?;
            }
        }
        Ok(placed)
    }

    /// Returns the operations at the start of a dispatch.
    fn place_start(
        &self,
        queue: usize,
        dependencies: &[QueueDependency],
        at: usize,
        thread: ThreadId,
        placed: &[ThreadOperations],
    ) -> ThreadOperations {
        let start = dispatch_start(dependencies, at);
        let order = linear_order(dependencies, start.leading);
        let has_events =
            |id: ThreadId| self.test.thread(id).instructions.iter().any(|own| own.kind.is_event());
        let is_performed = |member: &QueueDependency| {
            let earlier = self.queue_dispatches(queue).take_while(|(index, _)| *index < at);
            earlier.map(|(_, other)| other).any(|other| {
                let precedes = |own: &Predecessors| own.dispatches.contains(&other);
                let mut later =
                    order.iter().filter(|next| next.chained & member.bit != 0 && next.bit != member.bit);
                placed.get(usize::from(other.0)).is_some_and(|own| own.leading & member.bit != 0)
                    && has_events(other)
                    && precedes(&start.before)
                    && later.all(|own| precedes(&own.before))
            })
        };
        let members = order.iter().filter(|member| !is_performed(member));
        let span = self.queue_items(queue).iter().take(at).rev().find_map(|item| match item {
            WorkItem::Call(call) => Some(call.span),
            WorkItem::Dispatch(_) => None,
        });
        let mut before = start.before.clone();
        before.dispatches.retain(|earlier| *earlier != thread);
        let mut head: Vec<PlacedOperation> = Vec::new();
        for own in members {
            for operation in own.operations() {
                let placed = PlacedOperation::new(own, operation);
                // Two semaphore waits act as one: each makes all that it moves visible.
                let same = head
                    .iter_mut()
                    .find(|known| known.operation.is_unmasked() && known.operation == placed.operation);
                match same {
                    Some(known) => known.before.merge_from(placed.before),
                    None => head.push(placed),
                }
            }
        }
        ThreadOperations {
            head,
            tail: Vec::new(),
            before,
            leading: start.leading,
            span: span.unwrap_or_default(),
        }
    }

    /// Places the operations of a barrier to the host.
    ///
    /// A host sees them if its wait ends after the barrier. So they need a thread that the barrier follows and
    /// that precedes exactly the ends of such waits.
    fn place_readback(
        &self,
        queue: usize,
        dependencies: &[QueueDependency],
        own: &QueueDependency,
        placed: &mut [ThreadOperations],
    ) -> Derived<()> {
        let waits = self.host_waits((queue, own.closes))?;
        if own.before.dispatches.is_empty() || !waits.iter().any(|(_, leads)| *leads) {
            return Ok(());
        }
        let chained = || dependencies.iter().filter(|other| own.chained & other.bit != 0);
        let ends_with_waits = |thread: ThreadId| {
            waits.iter().all(|(before, leads)| before.dispatches.contains(&thread) == *leads)
        };
        let column = self.queue_items(queue).get(own.closes).and_then(|item| match item {
            WorkItem::Call(call) => Some(call.thread),
            WorkItem::Dispatch(_) => None,
        });
        let earlier: Vec<ThreadId> =
            self.queue_dispatches(queue).take_while(|(at, _)| *at < own.closes).map(|(_, id)| id).collect();
        let leading = |thread: ThreadId| match placed.get(usize::from(thread.0)) {
            Some(placed) if earlier.contains(&thread) => placed.leading,
            _ => 0,
        };
        let ends_before = |thread: &ThreadId| {
            let is_before = |other: &QueueDependency| other.before.dispatches.contains(thread);
            let mut added = chained().filter(|other| leading(*thread) & other.bit == 0);
            ends_with_waits(*thread)
                && is_before(own)
                && added.all(|other| !other.moves_device_writes() || is_before(other))
        };
        let mut candidates: Vec<ThreadId> = column.into_iter().filter(|own| earlier.contains(own)).collect();
        candidates.extend(earlier.iter().rev());
        candidates.extend(&own.before.dispatches);
        let is_idle = |thread: &ThreadId| count_instructions(self.test.thread(*thread), usize::MAX) == 0;
        // In its own column ahead of the dispatch, it must not move more than the dependencies before it.
        let starts_column = |thread: &ThreadId| {
            let mut head = placed.get(usize::from(thread.0)).into_iter().flat_map(|placed| &placed.head);
            let covers = |first: &PlacedOperation| {
                first.moves_device_writes && first.follows_all(&own.before.dispatches)
            };
            ends_with_waits(*thread) && (is_idle(thread) || head.any(covers))
        };
        let last = candidates.into_iter().find(ends_before);
        let carrier = last.or(column.filter(starts_column));
        let Some(thread) = carrier else { return Err(CallError::UnorderedReadback { span: own.span }) };
        let performed = leading(thread);
        let mut operations: Vec<PlacedOperation> = Vec::new();
        for other in chained().filter(|other| other.bit == own.bit || performed & other.bit == 0) {
            let available = other.available.clone();
            operations.extend(available.map(|available| PlacedOperation::new(other, available)));
        }
        operations.push(PlacedOperation::new(own, SystemOperation::Visible(own.host_accesses)));
        if let Some(placed) = placed.get_mut(usize::from(thread.0)) {
            let place = if last.is_some() { &mut placed.tail } else { &mut placed.head };
            place.extend(operations);
        }
        Ok(())
    }

    /// Returns the pairs that order each thread with its operations after earlier work.
    pub(super) fn order_threads(&self, placed: &[ThreadOperations]) -> Vec<SystemSync> {
        let mut sync = Vec::new();
        for (thread, own) in (0..).map(ThreadId).zip(placed) {
            let mut before = own.before.clone();
            own.head.iter().chain(&own.tail).for_each(|placed| before.merge_from(placed.before.clone()));
            let submission: Vec<(ThreadId, usize)> = self.submissions(thread).collect();
            // The submission itself orders everything before it.
            before.host.retain(|point| {
                let is_before = |at: usize| point.instruction.is_some_and(|own| usize::from(own) <= at);
                !submission.iter().any(|(host, at)| *host == point.thread && is_before(*at))
            });
            let body = self.test.thread(thread).instructions.len();
            let length = own.head.len() + body + own.tail.len();
            let positions = |follows: &dyn Fn(&Predecessors) -> bool| -> Vec<usize> {
                let is_after = |at: &usize| match own.head.get(*at) {
                    Some(placed) => follows(&placed.before),
                    None => {
                        let tail = at.checked_sub(own.head.len() + body).and_then(|at| own.tail.get(at));
                        follows(&own.before) || tail.is_some_and(|placed| follows(&placed.before))
                    }
                };
                (0..length).filter(is_after).collect()
            };
            let mut groups: Vec<(Vec<usize>, Vec<SyncPoint>)> = Vec::new();
            for point in before.host {
                let after = positions(&|own| own.host.contains(&point));
                match groups.iter_mut().find(|(other, _)| *other == after) {
                    Some((_, points)) => points.push(point),
                    None => groups.push((after, vec![point])),
                }
            }
            let is_idle = |id: ThreadId| count_instructions(self.test.thread(id), usize::MAX) == 0;
            let dispatches =
                before.dispatches.iter().filter(|earlier| **earlier != thread && !is_idle(**earlier));
            let mut ordered: Vec<(Vec<usize>, Vec<SyncPoint>)> = dispatches
                .map(|earlier| {
                    let after = positions(&|own| own.dispatches.contains(earlier));
                    let first = after.first().and_then(|first| own.head.get(*first));
                    let points = self.points_before_tail(*earlier, placed, first);
                    (after, points)
                })
                .collect();
            ordered
                .extend(groups.into_iter().map(|(after, points)| (after, self.merge_whole_threads(points))));
            for (after, points) in ordered {
                let to: Vec<SyncPoint> = if after.len() == length {
                    vec![SyncPoint { thread, instruction: None }]
                } else {
                    self.instruction_points(thread, own, after.into_iter())
                };
                let pairs = points.iter().flat_map(|from| to.iter().map(|to| (*from, *to)));
                sync.extend(pairs.map(|(from, to)| SystemSync { from, to, span: own.span }));
            }
        }
        sync
    }

    /// Returns the points of a dispatch without its operations for the host, which precede no other dispatch.
    ///
    /// It is the whole thread if the first operation after it moves everything that they would move.
    fn points_before_tail(
        &self,
        thread: ThreadId,
        placed: &[ThreadOperations],
        first: Option<&PlacedOperation>,
    ) -> Vec<SyncPoint> {
        let whole = vec![SyncPoint { thread, instruction: None }];
        let Some(own) = placed.get(usize::from(thread.0)) else { return whole };
        let is_moved = |first: &PlacedOperation| {
            first.moves_device_writes
                && own.tail.iter().all(|tail| first.follows_all(&tail.before.dispatches))
        };
        if own.tail.is_empty() || first.is_some_and(is_moved) {
            return whole;
        }
        let body = self.test.thread(thread).instructions.len();
        self.instruction_points(thread, own, 0..own.head.len() + body)
    }

    /// Returns the points of instructions by their positions in a thread with its operations, without labels.
    fn instruction_points(
        &self,
        thread: ThreadId,
        own: &ThreadOperations,
        positions: impl Iterator<Item = usize>,
    ) -> Vec<SyncPoint> {
        let instructions = &self.test.thread(thread).instructions;
        let is_label = |at: usize| {
            let body = at.checked_sub(own.head.len()).and_then(|at| instructions.get(at));
            body.is_some_and(|own| matches!(own.kind, InstructionKind::Flow(Flow::Label(_))))
        };
        let points = positions.filter(|at| !is_label(*at));
        points
            .filter_map(|at| Some(SyncPoint { thread, instruction: Some(u16::try_from(at).ok()?) }))
            .collect()
    }
}
