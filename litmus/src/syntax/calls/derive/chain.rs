//! Dependency chains of barriers, events and semaphore waits on one queue
//! (`#synchronization-dependencies-chains`).
//!
//! Two dependencies chain if the target of the first and the source of the second have a stage in common.

use super::super::{CallKind, SyncScope};
use super::{CallDerivation, Derived, Predecessors, WorkItem};
use crate::span::Span;
use crate::system::SystemOperation;
use vocabulary::{AccessMask, StageMask};

/// A dependency of a queue, from its first scope to its second.
///
/// For a barrier both meet at one item. For an event, the first ends at the set and the second begins at the
/// await; items in between belong to neither. A semaphore wait has no first scope on its queue.
pub(super) struct QueueDependency {
    /// The index of the item at which its second scope begins.
    pub(super) closes: usize,
    /// The stages of the second scope.
    target: StageMask,
    /// The work that its operations follow.
    pub(super) before: Predecessors,
    /// Its own bit among the dependencies of the queue.
    pub(super) bit: u128,
    /// The bit set of dependencies that chain to it, including itself; at most `MAX_CALLS` bits.
    pub(super) chained: u128,
    /// The availability operation, unless nothing precedes it.
    pub(super) available: Option<SystemOperation>,
    /// The visibility operation for the device, unless nothing precedes it.
    pub(super) visible: Option<SystemOperation>,
    /// The accesses of the host that it makes memory visible to.
    pub(super) host_accesses: AccessMask,
    pub(super) span: Span,
}

/// The dependencies that lead to a dispatch, as a bit set, and the work that they order before it.
pub(super) struct DispatchStart {
    pub(super) leading: u128,
    pub(super) before: Predecessors,
}

/// Returns the operation of an access mask; `None` for an empty mask.
fn masked(mask: AccessMask, operation: fn(AccessMask) -> SystemOperation) -> Option<SystemOperation> {
    (mask != AccessMask::NONE).then(|| operation(mask))
}

impl QueueDependency {
    pub(super) fn operations(&self) -> impl Iterator<Item = SystemOperation> {
        self.available.iter().chain(&self.visible).cloned()
    }

    /// Returns true if its availability operation moves writes of the device.
    pub(super) fn moves_device_writes(&self) -> bool {
        match &self.available {
            Some(SystemOperation::Available(mask)) => mask.covers_access(false, true),
            own => own.is_some(),
        }
    }
}

impl CallDerivation<'_> {
    /// Returns the dependencies of a queue in the order of their second scopes.
    pub(super) fn queue_dependencies(&self, queue: usize) -> Derived<Vec<QueueDependency>> {
        let items = self.queue_items(queue);
        let all_commands = StageMask::ALL.to_second_scope();
        let mut found: Vec<QueueDependency> = Vec::new();
        for (closes, item) in items.iter().enumerate() {
            let WorkItem::Call(call) = item else { continue };
            let nothing = SyncScope { stages: StageMask::NONE, accesses: AccessMask::NONE };
            let mut before = Predecessors::default();
            let (opens, source, target) = match &call.kind {
                CallKind::Barrier(dependency) => (closes, dependency.source, dependency.target),
                CallKind::Await(event) => {
                    let set = self.find_set_call(event);
                    let opens = set.and_then(|(set, _)| self.queue_position(set));
                    let (Some((_, dependency)), Some((_, opens))) = (set, opens) else { continue };
                    (opens, dependency.source, dependency.target)
                }
                CallKind::Wait(semaphore) => {
                    before = self.wait_predecessors(call, semaphore, &mut Vec::new())?;
                    (closes, nothing, SyncScope { stages: all_commands, ..nothing })
                }
                CallKind::Set(..) | CallKind::Signal(_) | CallKind::Transfer(_) => continue,
            };
            let is_semaphore = matches!(call.kind, CallKind::Wait(_));
            let bit = 1 << found.len();
            let mut chained = bit;
            if source.stages.intersects(StageMask::COMPUTE) {
                let earlier = self.queue_dispatches(queue).take_while(|(index, _)| *index < opens);
                earlier.for_each(|(_, thread)| before.add_dispatch(thread));
            }
            for other in &found {
                if other.closes < opens && other.target.intersects(source.stages) {
                    chained |= other.chained;
                    before.merge_from(other.before.clone());
                }
            }
            let (mut available, mut visible) = (None, None);
            if is_semaphore && !before.dispatches.is_empty() {
                // The signal makes everything before it available. A signal of a host makes nothing available.
                available = Some(SystemOperation::AvailableToDevice);
                visible = Some(SystemOperation::VisibleFromDevice);
            } else if !before.dispatches.is_empty() || !before.host.is_empty() {
                // A submission already makes earlier writes of its host visible.
                let unmoved = if before.host.is_empty() { AccessMask::HOST } else { AccessMask::HOST_READ };
                available = masked(source.accesses.without(unmoved), SystemOperation::Available);
                visible = masked(target.accesses.without(AccessMask::HOST), SystemOperation::Visible);
            }
            let is_to_host = target.stages.intersects(StageMask::HOST);
            let host_accesses = target.accesses.intersection(AccessMask::HOST);
            found.push(QueueDependency {
                closes,
                target: target.stages,
                before,
                bit,
                chained,
                available,
                visible,
                host_accesses: if is_to_host { host_accesses } else { AccessMask::NONE },
                span: call.span,
            });
        }
        Ok(found)
    }
}

/// Returns the dependencies that lead to a dispatch, the item `at` of its queue.
pub(super) fn dispatch_start(dependencies: &[QueueDependency], at: usize) -> DispatchStart {
    let mut start = DispatchStart { leading: 0, before: Predecessors::default() };
    let direct = |own: &&QueueDependency| own.closes < at && own.target.intersects(StageMask::COMPUTE);
    for own in dependencies.iter().filter(direct) {
        start.leading |= own.chained;
        start.before.merge_from(own.before.clone());
    }
    start
}

/// Returns an order of dependencies in which their operations move no writes that they do not.
///
/// Instructions of a thread are in program order, dependencies only in that of their chains. So those come
/// first that make memory visible or chain to one that does: all writes that they make available are made
/// visible. No visibility operation follows the others.
pub(super) fn linear_order(dependencies: &[QueueDependency], members: u128) -> Vec<&QueueDependency> {
    let members = || (0..).zip(dependencies).filter(|(at, _)| members & (1_u128 << *at) != 0);
    let covers = |own: &QueueDependency| match &own.visible {
        Some(SystemOperation::Visible(mask)) => mask.covers_access(false, false),
        own => own.is_some(),
    };
    let shown = members().filter(|(_, own)| covers(own)).fold(0, |all, (_, own)| all | own.chained);
    let of = |first: bool| members().filter(move |(at, _)| (shown & (1 << at) != 0) == first);
    of(true).chain(of(false)).map(|(_, own)| own).collect()
}
