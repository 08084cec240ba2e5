//! Hazards between commands: two accesses to the same bytes, one of them a write, without the order that they need.
//!
//! For each access the search keeps what is ordered after it ([`crate::scopes`]). A read after a write needs visibility, a write after a
//! write availability and execution order, a write after a read execution order alone (Vulkan specification, "Memory Model",
//! location-ordered). A layout transition is a write between the scopes of its barrier.
//!
//! Sound for reports: a hazard that is not [`CommandHazard::is_possible`](crate::hazard::CommandHazard::is_possible) is between accesses that were executed, and every doubtful order
//! counts as one. A fence that the host waited for orders all later work. Possible accesses, of draws and of dispatches whose bytes are
//! unknown, are supersets. A pair with one of them that lacks
//! order is a possible hazard, and a pair that has order has none. Missed: host reads, and host writes between two calls that write nothing
//! else or that another thread makes meanwhile.
//! Time is linear in commands × live accesses. Accesses end when the host waits; then of writes only the queue family is kept, which owns
//! what they left.

mod host;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::bindings::MemoryBindings;
use crate::hazard::{
    AccessSide, ByteRange, CommandHazard, Conflict, MissingOrder, ResourceBytes, ResourceId,
};
use crate::journal::{Command, DispatchResource, Event, RecordedAccess, SemaphoreUse, SyncScope};
use crate::layouts::{ImageLayouts, LayoutError, PartId, UNDEFINED, UNKNOWN};
use crate::scopes::{
    Access, ImagePart, Location, PriorAccess, access, expand_accesses, expand_stages, second_scope_stages,
    stage,
};
use crate::timeline::{Step, Timeline};

/// Bytes of a texel in the accesses of a walk.
const TEXEL_BYTES: u64 = 16;
/// The queue family of a barrier without an ownership transfer.
const IGNORED_FAMILY: u32 = u32::MAX;

/// An executed command, by its index, and its queue.
type Executor = (usize, u64);

/// The kind of an access of a command to bytes.
#[derive(Clone, Copy)]
struct AccessKind {
    side: AccessSide,
    is_write: bool,
    is_possible: bool,
}

/// The barrier of a command, with the resource that it is restricted to.
struct Barrier<'a> {
    command: usize,
    queue: u64,
    scopes: (SyncScope, SyncScope),
    image: Option<(u64, [u32; 4], u32)>,
    transition: Option<[i32; 2]>,
    buffer: Option<(Location, u64, u64)>,
    families: Option<[u32; 2]>,
    events: &'a [u64],
}

/// A signalled semaphore or fence, with the accesses that it covers.
struct Signal {
    value: u64,
    covered: Vec<usize>,
}

pub(crate) struct HazardSearch<'a, F> {
    timeline: &'a Timeline<'a>,
    bindings: &'a MemoryBindings,
    accessed_bytes: &'a F,
    /// Commands that are not executed.
    pub removed: BTreeSet<usize>,
    /// Earlier accesses that barriers looked at.
    pub work: usize,
    priors: BTreeMap<usize, PriorAccess>,
    next_prior: usize,
    by_location: BTreeMap<Location, Vec<usize>>,
    /// Number of earlier accesses that have not ended.
    live: usize,
    /// Bytes of memory that the host wrote and did not flush.
    unflushed: BTreeMap<u64, Vec<ByteRange>>,
    semaphores: HashMap<u64, Vec<Signal>>,
    fences: HashMap<u64, Vec<usize>>,
    pub events: HashMap<u64, Vec<usize>>,
    /// Events that commands wait for and that nothing has signalled, and those that the host has.
    awaited: BTreeSet<u64>,
    signalled_by_host: BTreeSet<u64>,
    /// None if the layouts are not compared.
    layouts: Option<ImageLayouts>,
    /// True if a command whose accesses are unknown may still run.
    has_unknown_accesses: bool,
    /// True if the queue family that owns what a command wrote matters after the host has waited for it.
    has_families: bool,
    pub hazards: Vec<CommandHazard>,
    /// The hazard of each pair of kinds of commands.
    known: HashMap<HazardKey<'a>, usize>,
}

/// The properties that the pairs of one hazard share.
type HazardKey<'a> = (Conflict, CommandSignature<'a>, CommandSignature<'a>, ResourceId, MissingOrder, bool);

/// Finds the hazards of a process.
///
/// `accessed_bytes` returns the bytes of a resource that an execution of a dispatch, by its index, accesses or may access.
pub fn find_hazards(
    timeline: &Timeline<'_>,
    events: &[Event],
    accessed_bytes: impl Fn(usize, &Command, &DispatchResource) -> ResourceBytes,
) -> Vec<CommandHazard> {
    let bindings = MemoryBindings::from_events(events);
    let mut search = HazardSearch::new(timeline, &bindings, &accessed_bytes);
    search.layouts = Some(ImageLayouts::default());
    for step in &timeline.steps {
        search.take_step(step);
    }
    search.hazards
}

/// The properties that two executions of a command share.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum CommandSignature<'a> {
    Dispatch(u64),
    Named(&'a str),
    Barrier,
    Host,
}

fn command_signature(command: &Command) -> CommandSignature<'_> {
    match command {
        Command::Dispatch { kind, .. } => CommandSignature::Dispatch(*kind),
        Command::Other(other) => CommandSignature::Named(&other.what),
        Command::Label { name } => CommandSignature::Named(name),
        Command::Barrier { .. } | Command::SetEvent { .. } | Command::EndLabel => CommandSignature::Barrier,
    }
}

fn conflict_of(earlier: bool, later: bool) -> Option<Conflict> {
    match (earlier, later) {
        (true, true) => Some(Conflict::WriteAfterWrite),
        (true, false) => Some(Conflict::ReadAfterWrite),
        (false, true) => Some(Conflict::WriteAfterRead),
        (false, false) => None,
    }
}

impl<'a, F: Fn(usize, &Command, &DispatchResource) -> ResourceBytes> HazardSearch<'a, F> {
    /// Creates a search before the first command.
    pub fn new(timeline: &'a Timeline<'a>, bindings: &'a MemoryBindings, accessed_bytes: &'a F) -> Self {
        HazardSearch {
            timeline,
            bindings,
            accessed_bytes,
            removed: BTreeSet::new(),
            work: 0,
            priors: BTreeMap::new(),
            next_prior: 0,
            by_location: BTreeMap::new(),
            live: 0,
            unflushed: BTreeMap::new(),
            semaphores: HashMap::new(),
            fences: HashMap::new(),
            events: HashMap::new(),
            awaited: BTreeSet::new(),
            signalled_by_host: BTreeSet::new(),
            layouts: None,
            has_unknown_accesses: false,
            has_families: bindings.has_families(),
            hazards: Vec::new(),
            known: HashMap::new(),
        }
    }

    /// Returns true if no earlier access is without order to all that follows.
    pub fn is_idle(&self) -> bool {
        self.live == 0
    }

    /// Extends the order by a step, and reports hazards.
    pub fn take_step(&mut self, step: &Step) {
        match step {
            Step::Execute(index) if self.removed.contains(index) => {}
            Step::Execute(index) => self.execute(*index),
            Step::Wait(queue, wait) => self.wait_on_queue(*queue, *wait),
            Step::Signal(queue, signal) => {
                let covered = self.covered_by(*queue, signal.1);
                self.semaphores.entry(signal.0).or_default().push(Signal { value: signal.2, covered });
            }
            Step::SignalFence(queue, fence) => {
                let covered = self.covered_by(*queue, stage::ALL);
                self.fences.insert(*fence, covered);
            }
            Step::WaitFence(fence) => {
                let covered = self.fences.remove(fence).unwrap_or_default();
                self.end_accesses(&covered);
            }
            Step::WaitSemaphore(semaphore, value) => {
                let Some(signals) = self.semaphores.get_mut(semaphore) else { return };
                let (ended, rest) =
                    std::mem::take(signals).into_iter().partition(|signal| signal.value <= *value);
                *signals = rest;
                let ended: Vec<Signal> = ended;
                ended.iter().for_each(|signal| self.end_accesses(&signal.covered));
            }
            Step::WaitAny(is_fences, waits) => {
                let covered = waits.iter().map(|[id, value]| -> BTreeSet<usize> {
                    if *is_fences {
                        return self.fences.get(id).into_iter().flatten().copied().collect();
                    }
                    let signals = self.semaphores.get(id).into_iter().flatten();
                    let signals = signals.filter(|signal| signal.value <= *value);
                    signals.flat_map(|signal| &signal.covered).copied().collect()
                });
                // What all of them cover has ended, whichever is signalled.
                let ended = covered.reduce(|some, others| &some & &others).unwrap_or_default();
                self.end_accesses(&Vec::from_iter(ended));
            }
            Step::WaitEvent(event) => {
                let covered = self.events.get(event).cloned().unwrap_or_default();
                self.end_accesses(&covered);
            }
            Step::SetEvent(event) => {
                self.signalled_by_host.insert(*event);
                self.awaited.remove(event);
                let is_held = !self.awaited.is_empty();
                self.priors.values_mut().for_each(|prior| prior.is_held &= is_held);
            }
            Step::Idle(queues) => {
                let ended = queues.iter().flat_map(|queue| self.covered_by(*queue, stage::ALL));
                let ended: Vec<usize> = ended.collect();
                self.end_accesses(&ended);
            }
            Step::HostWrite(memory, ranges) => self.check_host_writes(*memory, ranges),
            Step::Flush(memory, range) => self.mark_flushed(*memory, *range),
            Step::HostLayout(image, range, aspects, layout) => {
                for part in self.bindings.parts_of(*image, *range, *aspects) {
                    self.layouts.iter_mut().for_each(|all| all.set(self.bindings, (*image, part), *layout));
                }
            }
        }
    }

    /// Returns the accesses in the first scope of a signal.
    fn covered_by(&self, queue: u64, stages: u64) -> Vec<usize> {
        let live = self.priors.iter().filter(|(_, prior)| !prior.has_ended);
        let all = live.filter(|(_, prior)| prior.is_in_first_scope(queue, stages));
        all.map(|(index, _)| *index).collect()
    }

    fn remove_accesses(&mut self, removed: &[usize]) {
        for index in removed {
            if let Some(prior) = self.priors.remove(index) {
                self.live -= usize::from(!prior.has_ended);
                if let Some(at) = self.by_location.get_mut(&prior.access.location) {
                    at.retain(|other| other != index);
                }
            }
        }
    }

    /// Removes accesses that are ordered before all work that follows, except for the owners of what they wrote.
    fn end_accesses(&mut self, ended: &[usize]) {
        let mut removed = Vec::new();
        for index in ended {
            match self.priors.get_mut(index) {
                Some(prior)
                    if prior.access.is_write && prior.access.family.is_some() && self.has_families =>
                {
                    self.live -= usize::from(!prior.has_ended);
                    prior.has_ended = true;
                }
                Some(_) => removed.push(*index),
                None => {}
            }
        }
        self.remove_accesses(&removed);
        if self.is_idle() {
            self.fences.clear();
            self.semaphores.values_mut().flatten().for_each(|signal| signal.covered.clear());
            self.events.values_mut().for_each(Vec::clear);
            self.has_unknown_accesses = false;
        }
    }

    fn wait_on_queue(&mut self, queue: u64, SemaphoreUse(semaphore, stages, value): SemaphoreUse) {
        let signals = self.semaphores.entry(semaphore).or_default();
        // A wait for a binary semaphore takes its signal.
        let taken = if value == 0 { std::mem::take(signals) } else { Vec::new() };
        let covering = signals.iter().filter(|signal| signal.value <= value).chain(&taken);
        for index in covering.flat_map(|signal| &signal.covered) {
            if let Some(prior) = self.priors.get_mut(index) {
                prior.add_wait(queue, stages);
            }
        }
    }

    fn execute(&mut self, index: usize) {
        let Some(executed) = self.timeline.commands.get(index) else { return };
        let queue = executed.queue;
        match executed.command {
            Command::Dispatch { indirect, resources, missing, .. } => {
                self.has_unknown_accesses |= !missing.is_empty();
                if let Some(range) = indirect {
                    let side = AccessSide { stage: stage::DRAW_INDIRECT, access: access::INDIRECT_READ };
                    let kind = AccessKind { side, is_write: false, is_possible: false };
                    let bytes = (range.offset, range.offset.saturating_add(range.size));
                    self.access_buffer((index, queue), range.buffer, bytes, kind);
                }
                for resource in resources {
                    self.access_resource((index, queue), resource);
                }
            }
            Command::Other(other) => {
                self.has_unknown_accesses |= other.unknown.is_some();
                other.accesses.iter().for_each(|access| self.access_recorded((index, queue), access));
                if other.is_external {
                    let own = self.priors.iter().filter(|(_, prior)| prior.access.command == index);
                    let own: Vec<usize> = own.map(|(index, _)| *index).collect();
                    self.remove_accesses(&own);
                }
            }
            Command::SetEvent { event, stages } => {
                let covered = self.covered_by(queue, *stages);
                self.events.insert(*event, covered);
            }
            Command::Barrier {
                from,
                to,
                buffer,
                offset,
                size,
                image,
                range,
                aspects,
                families,
                layouts,
                events,
                is_subpass: _,
            } => {
                let buffer = buffer.map(|buffer| {
                    let (location, base) = self.bindings.buffer_location(buffer);
                    let start = offset.unwrap_or(0);
                    let rest =
                        self.bindings.sizes.get(&buffer).map_or(u64::MAX, |size| size.saturating_sub(start));
                    let from = base.saturating_add(start);
                    (location, from, from.saturating_add(rest.min(size.unwrap_or(rest))))
                });
                let all = [0, u32::MAX, 0, u32::MAX];
                self.add_barrier(&Barrier {
                    command: index,
                    queue,
                    scopes: (*from, *to),
                    image: image.map(|image| (image, range.unwrap_or(all), *aspects)),
                    transition: layouts.filter(|[old, new]| old != new),
                    buffer,
                    families: families.filter(|[a, b]| a != b && ![*a, *b].contains(&IGNORED_FAMILY)),
                    events,
                });
            }
            Command::Label { .. } | Command::EndLabel => {}
        }
    }

    fn add_barrier(&mut self, barrier: &Barrier<'_>) {
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
            let is_in_scope = is_covered && prior.is_in_first_scope(barrier.queue, from.0);
            // The resource of a barrier restricts its access scopes, not the order of execution. A release makes nothing visible.
            let second = if is_release { SyncScope(to.0, 0) } else { to };
            let is_in_range = is_in_resource || is_alias;
            let accesses = |scope: SyncScope| if is_in_range { scope } else { SyncScope(scope.0, 0) };
            if is_covered && !prior.has_ended {
                prior.add_dependency(barrier.queue, accesses(from), accesses(second));
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
            prior.ordered.insert(barrier.queue, second_scope_stages(to.0));
            prior.visible.push((barrier.queue, expand_stages(to.0), expand_accesses(to.1)));
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

    fn access_recorded(&mut self, by: Executor, access: &RecordedAccess) {
        let RecordedAccess { stage, access: mask, is_write, is_possible, bytes, .. } = *access;
        let kind = AccessKind { side: AccessSide { stage, access: mask }, is_write, is_possible };
        match (access.buffer, access.image, access.range) {
            (Some(buffer), _, _) => self.access_buffer(by, buffer, bytes, kind),
            (None, Some(image), Some(range)) => {
                for part in self.bindings.parts_of(image, range, access.aspects) {
                    self.use_layout(by.0, (image, part), access.layout, kind);
                    let location = Location::Subresource(image, part);
                    self.access(by, (location, ResourceId::Image(image), 0), bytes, kind);
                }
                self.access_aliases(by, image, kind);
            }
            (None, _, _) => {}
        }
    }

    fn access_resource(&mut self, by: Executor, resource: &DispatchResource) {
        let Some(executed) = self.timeline.commands.get(by.0) else { return };
        let bytes = (self.accessed_bytes)(by.0, executed.command, resource);
        let mut is_possible = bytes.is_possible;
        let image = resource.image.zip(resource.range);
        let parts = image.map(|(image, range)| self.bindings.parts_of(image, range, resource.aspects));
        let parts = parts.unwrap_or_default();
        let texels_of = |part: &ImagePart| self.bindings.texels_of_level(resource.image?, part.level);
        let texels = parts.iter().map(texels_of).collect::<Option<Vec<u64>>>();
        is_possible |= texels.is_none();
        for (ranges, access, is_write) in
            [(&bytes.reads, resource.reads, false), (&bytes.writes, access::STORAGE_WRITE, true)]
        {
            let kind =
                AccessKind { side: AccessSide { stage: stage::COMPUTE, access }, is_write, is_possible };
            for range in ranges.iter().filter(|_| resource.buffer.is_some()) {
                let end = range.1.min(resource.size);
                let range = (resource.offset.saturating_add(range.0), resource.offset.saturating_add(end));
                self.access_buffer(by, resource.buffer.unwrap_or_default(), range, kind);
            }
            let Some((image, _)) = image.filter(|_| !ranges.is_empty()) else { continue };
            let mut start = 0;
            for (number, part) in parts.iter().enumerate() {
                let place = (Location::Subresource(image, *part), ResourceId::Image(image), 0);
                let count = texels.as_ref().and_then(|all| all.get(number)).copied().unwrap_or(u64::MAX);
                for (from, to) in ranges {
                    let texels = match is_possible {
                        true => (0, u64::MAX),
                        false => (
                            (from / TEXEL_BYTES).max(start) - start,
                            to.div_ceil(TEXEL_BYTES).min(start.saturating_add(count)).saturating_sub(start),
                        ),
                    };
                    if texels.0 < texels.1 {
                        self.use_layout(by.0, (image, *part), resource.layout, kind);
                        self.access(by, place, texels, kind);
                    }
                }
                // The aspects of a texel are one in a walk.
                let is_last_aspect = parts
                    .get(number + 1)
                    .is_none_or(|next| (next.level, next.layer) != (part.level, part.layer));
                start = start.saturating_add(if is_last_aspect { count } else { 0 });
            }
            self.access_aliases(by, image, kind);
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

    fn use_layout(&mut self, command: usize, part: PartId, layout: Option<i32>, kind: AccessKind) {
        let bindings = self.bindings;
        let Some((known, layout)) = self.layouts.as_mut().zip(layout) else { return };
        let error = known.access(bindings, part, layout, kind.is_write);
        self.report_layout(command, part.0, error, kind.is_possible);
    }

    fn report_layout(&mut self, command: usize, image: u64, error: Option<LayoutError>, is_possible: bool) {
        let Some((transition, missing)) = error else { return };
        let side = AccessSide { stage: 0, access: 0 };
        self.report(CommandHazard {
            conflict: Conflict::Layout,
            first: transition.unwrap_or(command),
            second: transition.map(|_| command),
            before: side,
            after: side,
            resource: ResourceId::Image(image),
            bytes: None,
            missing,
            is_possible,
            count: 1,
        });
    }

    fn access_buffer(&mut self, by: Executor, buffer: u64, range: ByteRange, kind: AccessKind) {
        let (location, base) = self.bindings.buffer_location(buffer);
        self.access(by, (location, ResourceId::Buffer(buffer), base), range, kind);
    }

    /// Adds an access to the memory of an image that another resource shares. An image with parts has no known bytes of each.
    fn access_aliases(&mut self, by: Executor, image: u64, kind: AccessKind) {
        let Some((memory, range)) = self.bindings.aliased_images.get(&image).copied() else { return };
        let is_whole = self.bindings.has_one_part(image);
        let place = (Location::Memory(memory), ResourceId::Image(image), range.0);
        let kind = AccessKind { is_possible: kind.is_possible || !is_whole, ..kind };
        self.access(by, place, (0, range.1 - range.0), kind);
    }

    /// Compares an access with the earlier ones, and adds it.
    fn access(
        &mut self,
        (command, queue): Executor,
        (location, resource, base): (Location, ResourceId, u64),
        range: ByteRange,
        kind: AccessKind,
    ) {
        let family = self.bindings.owner(resource, queue);
        let AccessKind { side: kind, is_write, is_possible } = kind;
        let later =
            Access { command, queue, location, resource, base, range, kind, is_write, is_possible, family };
        self.check_flush(&later);
        self.compare(&later, kind, |_, prior| prior.missing_order(&later));
        self.insert(PriorAccess { is_held: !self.awaited.is_empty(), ..PriorAccess::new(later) });
    }

    fn insert(&mut self, prior: PriorAccess) {
        self.live += usize::from(!prior.has_ended);
        self.by_location.entry(prior.access.location).or_default().push(self.next_prior);
        self.priors.insert(self.next_prior, prior);
        self.next_prior += 1;
    }

    /// Reports the earlier accesses that conflict with one without order, and removes those that it replaces.
    fn compare(
        &mut self,
        later: &Access,
        after: AccessSide,
        missing_order: impl Fn(usize, &PriorAccess) -> Option<MissingOrder>,
    ) {
        let (start, end) = later.bytes();
        let is_image = |id: ResourceId| matches!(id, ResourceId::Image(_));
        let in_memory = matches!(later.location, Location::Memory(_));
        let (mut replaced, mut found) = (Vec::new(), Vec::new());
        for index in self.by_location.get(&later.location).into_iter().flatten() {
            let Some(prior) = self.priors.get(index) else { continue };
            let earlier = prior.access;
            let (from, to) = earlier.bytes();
            // The parts of an image are compared as subresources.
            let is_same_image = in_memory && is_image(later.resource) && earlier.resource == later.resource;
            if from >= end || start >= to || earlier.command == later.command || is_same_image {
                continue;
            }
            let missing = missing_order(*index, prior);
            // An access that conflicts with the earlier one conflicts with this one too. If these two lack order, what follows this one
            // lacks no other.
            let is_certain = !later.is_possible || earlier.is_possible;
            if later.is_write && is_certain && start <= from && to <= end {
                replaced.push(*index);
            }
            let Some((conflict, missing)) = conflict_of(earlier.is_write, later.is_write).zip(missing) else {
                continue;
            };
            let common = (from.max(start) - later.base, to.min(end) - later.base);
            found.push(CommandHazard {
                conflict,
                first: earlier.command,
                second: Some(later.command),
                before: earlier.kind,
                after,
                resource: later.resource,
                bytes: (!is_image(later.resource)).then_some(common),
                missing,
                is_possible: earlier.is_possible || later.is_possible,
                count: 1,
            });
        }
        self.remove_accesses(&replaced);
        found.into_iter().for_each(|hazard| self.report(hazard));
    }

    fn report(&mut self, hazard: CommandHazard) {
        let timeline = self.timeline;
        let signature = |command: usize| {
            let executed = timeline.commands.get(command);
            executed.map_or(CommandSignature::Host, |executed| command_signature(executed.command))
        };
        let later = hazard.second.map_or(CommandSignature::Host, signature);
        let CommandHazard { conflict, first, resource, missing, is_possible, .. } = hazard;
        let key = |is_possible| (conflict, signature(first), later, resource, missing, is_possible);
        if is_possible && self.known.contains_key(&key(false)) {
            return;
        }
        let key = key(is_possible);
        if let Some(hazard) = self.known.get(&key).and_then(|known| self.hazards.get_mut(*known)) {
            hazard.count += 1;
            return;
        }
        self.known.insert(key, self.hazards.len());
        self.hazards.push(hazard);
    }
}
