//! Barriers: the order between the commands around them, and layout transitions.

use std::collections::BTreeSet;

use super::{Executor, HazardSearch};
use crate::bindings::MemoryBindings;
use crate::hazard::{AccessSide, ByteRange, MissingOrder, ResourceBytes, ResourceId};
use crate::journal::{
    Command, DispatchResource, EXTERNAL_SUBPASS, RecordedBarrier, SubpassDependency, SyncScope,
};
use crate::layouts::UNKNOWN;
use crate::ownership::has_other_api;
use crate::scopes::{
    Access, CommandSet, ImagePart, Location, PriorAccess, QueuePart, access, expand_accesses,
    second_scope_stages, stage,
};
use crate::timeline::SubpassId;

/// An executed barrier.
pub(super) struct Barrier<'a> {
    pub(super) by: Executor,
    pub(super) recorded: &'a RecordedBarrier,
    /// The memory of the buffer that it is restricted to, and the bytes there.
    pub(super) bytes: Option<(Location, ByteRange)>,
}

impl<'a> Barrier<'a> {
    pub(super) fn new(bindings: &MemoryBindings, by: Executor, recorded: &'a RecordedBarrier) -> Barrier<'a> {
        let bytes = recorded.buffer.map(|buffer| {
            let (location, base) = bindings.buffer_location(buffer);
            let start = recorded.offset.unwrap_or(0);
            let rest = bindings.sizes.get(&buffer).map_or(u64::MAX, |size| size.saturating_sub(start));
            let from = base.saturating_add(start);
            (location, (from, from.saturating_add(rest.min(recorded.size.unwrap_or(rest)))))
        });
        Barrier { by, recorded, bytes }
    }

    /// Returns the image that it is restricted to, and the parts.
    pub(super) fn parts(&self, bindings: &MemoryBindings) -> Option<(u64, Vec<ImagePart>)> {
        let RecordedBarrier { image, range, aspects, .. } = self.recorded;
        let range = range.unwrap_or([0, u32::MAX, 0, u32::MAX]);
        image.map(|image| (image, bindings.parts_of(image, range, *aspects)))
    }
}

impl Access {
    /// Returns an access to no bytes by a barrier. It has no stage: the second scope alone orders what follows.
    pub(super) fn of_barrier(barrier: &Barrier<'_>, location: Location, resource: ResourceId) -> Access {
        Access {
            command: barrier.by.index,
            queue: barrier.by.queue,
            subpass: barrier.by.subpass,
            role: None,
            location,
            resource,
            base: 0,
            range: (0, 0),
            kind: AccessSide { stage: 0, access: 0 },
            is_write: false,
            is_possible: false,
        }
    }
}

/// Returns the commands between which a barrier or a dependency orders.
fn ordered_commands(
    queue: u64,
    subpass: Option<SubpassId>,
    dependency: Option<SubpassDependency>,
    events: &[u64],
) -> [CommandSet; 2] {
    let Some(subpass) = subpass else { return [CommandSet::all_of(queue); 2] };
    let part = |number: u32, outside: QueuePart| match number {
        EXTERNAL_SUBPASS => outside,
        number => QueuePart::Subpass(SubpassId { number, ..subpass }),
    };
    // A barrier in a subpass orders its commands alone.
    let (from, to) = dependency.map_or((subpass.number, subpass.number), |both| (both.from, both.to));
    // The signals of events may be outside of the render pass.
    let first = if events.is_empty() { part(from, QueuePart::Outside(subpass.pass)) } else { QueuePart::All };
    [first, part(to, QueuePart::All)].map(|part| CommandSet { queue, part })
}

impl<F: Fn(usize, &Command, &DispatchResource) -> ResourceBytes> HazardSearch<'_, F> {
    /// Extends the order by a barrier, and adds the write of its layout transition.
    pub(super) fn add_barrier(&mut self, barrier: &Barrier<'_>) {
        let Executor { index: command, queue, subpass } = barrier.by;
        let RecordedBarrier { from, to, subpasses, events, .. } = barrier.recorded;
        let (from, to) = (*from, *to);
        let sets = ordered_commands(queue, subpass, *subpasses, events);
        let family = self.bindings.families.get(&queue).copied();
        let transfer = barrier.recorded.transfer();
        let is_release = transfer.is_some_and(|[first, _]| Some(first) == family);
        let acquired = self.transfer_ownership(barrier);
        let mut released = Vec::new();
        // The signals of events end the first scope. An event that the host signals orders everything.
        let is_open =
            |event: &&u64| !self.events.contains_key(event) && !self.signalled_by_host.contains(event);
        self.awaited.extend(events.iter().filter(is_open));
        let covered = events.iter().map(|event| self.events.get(event)).collect::<Option<Vec<_>>>();
        let covered = covered.filter(|_| !events.is_empty());
        let covered: Option<BTreeSet<usize>> =
            covered.map(|all| all.into_iter().flatten().copied().collect());
        let parts = barrier.parts(self.bindings);
        // A transition writes all memory of the image, which other resources may share.
        let transitioned = barrier.recorded.transition().filter(|_| !is_release).and(barrier.recorded.image);
        let shared = transitioned.and_then(|image| self.bindings.aliased_images.get(&image).copied());
        let mut transition = Vec::new();
        let bytes = barrier.bytes;
        if let Some((location, (start, end))) = bytes {
            self.split_accesses(location, [start, end]);
        }
        if to.0 & stage::HOST != 0 && expand_accesses(to.1) & access::HOST_READ != 0 {
            let is_in_range = |one: &Access| {
                bytes.is_none_or(|(location, (start, end))| {
                    location == one.location && start < one.bytes().1 && one.bytes().0 < end
                })
            };
            self.show_to_host(|one| parts.is_none() && is_in_range(one));
        }
        self.work += self.priors.len();
        for (index, prior) in &mut self.priors {
            let Access { location, resource, .. } = prior.access;
            let (first, last) = prior.access.bytes();
            let is_in_resource = match (bytes, &parts) {
                (Some((at, (start, end))), _) => at == location && start < last && first < end,
                (None, Some((image, all))) => match location {
                    Location::Subresource(of, part) => of == *image && all.contains(&part),
                    Location::Memory(_) | Location::Buffer(_) => resource == ResourceId::Image(*image),
                    Location::Release(_) => false,
                },
                (None, None) => true,
            };
            let is_alias = shared.is_some_and(|(memory, range)| {
                location == Location::Memory(memory) && first < range.1 && range.0 < last
            });
            let is_covered = covered.as_ref().is_none_or(|covered| covered.contains(index));
            let is_in_scope = is_covered && prior.is_in_first_scope(sets[0], from.0);
            // The resource of a barrier restricts its access scopes, not the order of execution. A release makes nothing visible.
            let second = if is_release { SyncScope(to.0, 0) } else { to };
            let is_in_range = is_in_resource || is_alias;
            let accesses = |scope: SyncScope| if is_in_range { scope } else { SyncScope(scope.0, 0) };
            if is_covered {
                prior.add_dependency(sets, accesses(from), accesses(second));
            }
            if is_in_scope && is_in_resource {
                released.push(*index);
            }
            if is_alias
                || (is_in_resource && transitioned.is_some() && matches!(location, Location::Subresource(..)))
            {
                // The transition of a transfer happens after the release.
                let is_in_scope = is_in_scope || acquired.contains(index);
                let needs_availability = prior.access.is_write && !prior.is_available;
                let missing = match is_in_scope {
                    false => Some(MissingOrder::Execution),
                    true => needs_availability.then_some(MissingOrder::Availability),
                };
                transition.push((*index, missing));
            }
        }
        if is_release {
            self.released.insert(command, released);
        }
        let Some((image, all)) = parts.filter(|_| transitioned.is_some()) else { return };
        self.change_layouts(barrier, image, &all);
        let parts = all.into_iter().map(|part| (Location::Subresource(image, part), 0, u64::MAX));
        let shared = shared.map(|(memory, range)| (Location::Memory(memory), range.0, range.1 - range.0));
        let is_whole = self.bindings.has_one_part(image);
        for (location, base, size) in parts.chain(shared) {
            let write = Access {
                base,
                range: (0, size),
                is_write: true,
                is_possible: matches!(location, Location::Memory(_)) && !is_whole,
                ..Access::of_barrier(barrier, location, ResourceId::Image(image))
            };
            let sides = AccessSide { stage: from.0, access: from.1 };
            let order = |index: usize, _: &PriorAccess| {
                transition.iter().find(|(of, _)| *of == index).and_then(|(_, missing)| *missing)
            };
            self.compare(&write, sides, order);
            let mut prior = PriorAccess::new(write);
            prior.is_available = true;
            prior.order_before(sets[1], second_scope_stages(to.0));
            prior.make_visible(sets[1], to);
            self.insert(prior);
        }
    }

    /// Divides the earlier accesses in a memory at the ends of a barrier's range, which orders the bytes between them alone.
    fn split_accesses(&mut self, location: Location, ends: [u64; 2]) {
        for at in ends {
            for index in self.by_location.get(&location).cloned().unwrap_or_default() {
                let Some(prior) = self.priors.get_mut(&index) else { continue };
                let (Access { base, resource, .. }, (from, to)) = (prior.access, prior.access.bytes());
                let is_inside = from < at && at < to;
                if !is_inside || matches!(resource, ResourceId::Image(_)) {
                    continue;
                }
                let mut rest = prior.clone();
                (prior.access.range.1, rest.access.range.0) = (at - base, at - base);
                let added = self.next_prior;
                self.insert(rest);
                let signals = self.semaphores.values_mut().flatten().map(|signal| &mut signal.covered);
                let all = signals.chain(self.fences.values_mut()).chain(self.events.values_mut());
                all.filter(|covered| covered.contains(&index)).for_each(|covered| covered.push(added));
            }
        }
    }

    /// Changes the layouts of the parts of an image.
    fn change_layouts(&mut self, barrier: &Barrier<'_>, image: u64, parts: &[ImagePart]) {
        let Some(layouts) = barrier.recorded.transition() else { return };
        let is_foreign = barrier.recorded.transfer().is_some_and(has_other_api);
        for part in parts {
            let (part, bindings) = ((image, *part), self.bindings);
            let Some(known) = &mut self.layouts else { return };
            if is_foreign {
                known.set(bindings, part, UNKNOWN);
            }
            let error = known.change(bindings, part, barrier.by.index, layouts);
            let side = AccessSide { stage: 0, access: 0 };
            self.report_layout(barrier.by.index, image, error, side, false);
        }
    }
}
