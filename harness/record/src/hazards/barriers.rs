//! Barriers: the order between the commands around them, and layout transitions.

use std::collections::BTreeSet;

use super::HazardSearch;
use crate::hazard::{AccessSide, MissingOrder, ResourceBytes, ResourceId};
use crate::journal::{Command, DispatchResource, EXTERNAL_SUBPASS, SubpassDependency, SyncScope};
use crate::layouts::{UNDEFINED, UNKNOWN};
use crate::scopes::{
    Access, CommandSet, ImagePart, Location, PriorAccess, QueuePart, access, expand_accesses,
    second_scope_stages, stage,
};
use crate::timeline::SubpassId;

/// The barrier of a command, with the resource that it is restricted to.
pub(super) struct Barrier<'a> {
    pub(super) command: usize,
    pub(super) queue: u64,
    pub(super) subpass: Option<SubpassId>,
    /// The commands before it and those after it.
    pub(super) sets: [CommandSet; 2],
    pub(super) scopes: (SyncScope, SyncScope),
    pub(super) image: Option<(u64, [u32; 4], u32)>,
    pub(super) transition: Option<[i32; 2]>,
    pub(super) buffer: Option<(Location, u64, u64)>,
    pub(super) families: Option<[u32; 2]>,
    pub(super) events: &'a [u64],
}

/// Returns the commands between which a barrier or a dependency orders.
pub(super) fn ordered_commands(
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
        let (from, to) = barrier.scopes;
        let family = self.bindings.families.get(&barrier.queue).copied();
        let is_release = barrier.families.is_some_and(|[first, _]| Some(first) == family);
        // The signals of events end the first scope. An event that the host signals orders everything.
        let is_open =
            |event: &&u64| !self.events.contains_key(event) && !self.signalled_by_host.contains(event);
        self.awaited.extend(barrier.events.iter().filter(is_open));
        let covered = barrier.events.iter().map(|event| self.events.get(event)).collect::<Option<Vec<_>>>();
        let covered = covered.filter(|_| !barrier.events.is_empty());
        let covered: Option<BTreeSet<usize>> =
            covered.map(|all| all.into_iter().flatten().copied().collect());
        let parts = |(image, range, aspects)| (image, self.bindings.parts_of(image, range, aspects));
        let parts = barrier.image.map(parts);
        // A transition writes all memory of the image, which other resources may share.
        let transitioned = barrier.image.filter(|_| barrier.transition.is_some() && !is_release);
        let shared = transitioned.and_then(|(image, ..)| self.bindings.aliased_images.get(&image).copied());
        let keeps_contents = barrier.transition.is_some_and(|[old, _]| old != UNDEFINED);
        let mut transition = Vec::new();
        if let Some((location, start, end)) = barrier.buffer {
            self.split_accesses(location, [start, end]);
        }
        if to.0 & stage::HOST != 0 && expand_accesses(to.1) & access::HOST_READ != 0 {
            let range = barrier.buffer;
            let is_in_range = |one: &Access| {
                range.is_none_or(|(location, start, end)| {
                    location == one.location && start < one.bytes().1 && one.bytes().0 < end
                })
            };
            self.remove_unseen(|one| barrier.image.is_none() && is_in_range(one));
        }
        self.work += self.priors.len();
        for (index, prior) in &mut self.priors {
            let (Access { location, resource, .. }, bytes) = (prior.access, prior.access.bytes());
            let is_in_resource = match (barrier.buffer, &parts) {
                (Some((at, start, end)), _) => at == location && start < bytes.1 && bytes.0 < end,
                (None, Some((image, all))) => match location {
                    Location::Subresource(of, part) => of == *image && all.contains(&part),
                    Location::Memory(_) | Location::Buffer(_) => resource == ResourceId::Image(*image),
                },
                (None, None) => true,
            };
            let is_alias = shared.is_some_and(|(memory, range)| {
                location == Location::Memory(memory) && bytes.0 < range.1 && range.0 < bytes.1
            });
            let is_covered = covered.as_ref().is_none_or(|covered| covered.contains(index));
            let is_in_scope = is_covered && prior.is_in_first_scope(barrier.sets[0], from.0);
            // The resource of a barrier restricts its access scopes, not the order of execution. A release makes nothing visible.
            let second = if is_release { SyncScope(to.0, 0) } else { to };
            let is_in_range = is_in_resource || is_alias;
            let accesses = |scope: SyncScope| if is_in_range { scope } else { SyncScope(scope.0, 0) };
            if is_covered && !prior.has_ended {
                prior.add_dependency(barrier.sets, accesses(from), accesses(second));
            }
            match barrier.families.filter(|_| is_in_resource) {
                Some([first, second]) if is_release && prior.access.family == Some(first) => {
                    prior.released_to = Some(second);
                }
                // Another API that owned it meanwhile returns it to any family.
                Some([first, second])
                    if family == Some(second)
                        && prior.released_to.is_some_and(|to| [first, second].contains(&to)) =>
                {
                    prior.access.family = Some(second);
                    prior.released_to = None;
                }
                _ => {}
            }
            if is_alias
                || (is_in_resource && transitioned.is_some() && matches!(location, Location::Subresource(..)))
            {
                let needs_contents = keeps_contents && prior.access.is_write && !is_alias;
                let is_owner = prior.access.family.is_none() || prior.access.family == family;
                let missing = match (is_in_scope || prior.has_ended, prior.is_available || prior.has_ended) {
                    (false, _) => Some(MissingOrder::Execution),
                    (true, false) if prior.access.is_write => Some(MissingOrder::Availability),
                    (true, _) => (needs_contents && !is_owner).then_some(MissingOrder::Ownership),
                };
                transition.push((*index, missing));
            }
        }
        let Some((image, all)) = parts.filter(|_| transitioned.is_some()) else { return };
        self.change_layouts(barrier, image, &all);
        let parts = all.into_iter().map(|part| (Location::Subresource(image, part), 0, u64::MAX));
        let shared = shared.map(|(memory, range)| (Location::Memory(memory), range.0, range.1 - range.0));
        let is_whole = self.bindings.has_one_part(image);
        for (location, base, size) in parts.chain(shared) {
            let write = Access {
                command: barrier.command,
                queue: barrier.queue,
                subpass: barrier.subpass,
                role: None,
                location,
                resource: ResourceId::Image(image),
                base,
                range: (0, size),
                // No stage: what follows is ordered by the second scope of the barrier alone.
                kind: AccessSide { stage: 0, access: 0 },
                is_write: true,
                is_possible: matches!(location, Location::Memory(_)) && !is_whole,
                family: self.bindings.owner(ResourceId::Image(image), barrier.queue),
            };
            let sides = AccessSide { stage: from.0, access: from.1 };
            let order = |index: usize, _: &PriorAccess| {
                transition.iter().find(|(of, _)| *of == index).and_then(|(_, missing)| *missing)
            };
            self.compare(&write, sides, order);
            let mut prior = PriorAccess::new(write);
            prior.is_available = true;
            prior.order_before(barrier.sets[1], second_scope_stages(to.0));
            prior.make_visible(barrier.sets[1], to);
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
        /// `VK_QUEUE_FAMILY_FOREIGN_EXT` and `VK_QUEUE_FAMILY_EXTERNAL`.
        const OTHER_APIS: [u32; 2] = [u32::MAX - 2, u32::MAX - 1];
        let Some(layouts) = barrier.transition else { return };
        let is_foreign = barrier.families.is_some_and(|both| both.iter().any(|one| OTHER_APIS.contains(one)));
        for part in parts {
            let (part, bindings) = ((image, *part), self.bindings);
            let Some(known) = &mut self.layouts else { return };
            if is_foreign {
                known.set(bindings, part, UNKNOWN);
            }
            let error = known.change(bindings, part, barrier.command, layouts);
            self.report_layout(barrier.command, image, error, false);
        }
    }
}
