//! Hazards between commands: two accesses to the same bytes, one of them a write, without the order that they need.
//!
//! For each access the search keeps what is ordered after it ([`crate::scopes`]). A read after a write needs visibility, a write after a
//! write availability and execution order, a write after a read execution order alone (Vulkan specification, "Memory Model",
//! location-ordered). A layout transition is a write between the scopes of its barrier.
//!
//! Sound for reports: a hazard that is not [`CommandHazard::is_possible`](crate::hazard::CommandHazard::is_possible) is between accesses that were executed, and every doubtful order
//! counts as one. A fence that the host waited for orders all later work. Possible accesses, of draws and of dispatches whose bytes are
//! unknown, are supersets. A pair with one of them that lacks
//! order is a possible hazard, and a pair that has order has none. Missed: host writes between two calls that write nothing
//! else or that another thread makes meanwhile, and reads through mapped pointers before a wait.
//! Time is linear in commands × live accesses. Accesses end when the host waits.

mod barriers;
mod families;
mod host;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use barriers::Barrier;

use crate::bindings::MemoryBindings;
use crate::hazard::{
    AccessSide, ByteRange, CommandHazard, Conflict, MissingOrder, ResourceBytes, ResourceId, join_ranges,
};
use crate::journal::{Command, DispatchResource, DrawOutputs, Event, RecordedAccess, SemaphoreUse};
use crate::layouts::{ImageLayouts, LayoutError, PartId};
use crate::ownership::Owners;
use crate::scopes::{Access, AttachmentRole, CommandSet, ImagePart, Location, PriorAccess, access, stage};
use crate::timeline::{Step, SubpassId, Timeline};

/// Bytes of a texel in the accesses of a walk.
const TEXEL_BYTES: u64 = 16;

/// An executed command.
#[derive(Clone, Copy)]
struct Executor {
    index: usize,
    queue: u64,
    subpass: Option<SubpassId>,
}

/// The kind of an access of a command to bytes.
#[derive(Clone, Copy)]
struct AccessKind {
    side: AccessSide,
    is_write: bool,
    is_possible: bool,
    role: Option<AttachmentRole>,
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
    /// None if no resource changes its queue family.
    owners: Option<Owners>,
    /// The accesses in the first scope of each release.
    released: BTreeMap<usize, Vec<usize>>,
    /// True if a command whose accesses are unknown may still run.
    has_unknown_accesses: bool,
    pub hazards: Vec<CommandHazard>,
    /// The hazard of each pair of kinds of commands.
    known: HashMap<HazardKey<'a>, usize>,
    /// Writes to mapped memory that have ended, with what a read of the host lacks.
    unseen: Vec<(Access, MissingOrder)>,
    /// Resources that commands read after the host had waited for their contents.
    read_after_wait: BTreeSet<ResourceId>,
    /// Mapped ranges, with the next command when they were mapped.
    mapped: HashMap<u64, (ByteRange, usize)>,
    next_command: usize,
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
    search.owners = has_families(timeline, &bindings).then(Owners::default);
    for step in &timeline.steps {
        search.take_step(step);
    }
    search.report_unseen();
    remove_repeated(timeline, search.hazards)
}

/// Returns true if resources may change their queue family.
fn has_families(timeline: &Timeline<'_>, bindings: &MemoryBindings) -> bool {
    let families: BTreeSet<&u32> = bindings.families.values().collect();
    let is_transfer =
        |command: &Command| matches!(command, Command::Barrier(one) if one.transfer().is_some());
    families.len() > 1 || timeline.commands.iter().any(|executed| is_transfer(executed.command))
}

/// Removes possible hazards with draws of a subpass whose load or store operations have the same hazard.
fn remove_repeated(timeline: &Timeline<'_>, hazards: Vec<CommandHazard>) -> Vec<CommandHazard> {
    let subpass = |hazard: &CommandHazard| timeline.commands.get(hazard.first)?.subpass;
    let signature = |hazard: &CommandHazard| {
        let CommandHazard { second, resource, before, after, missing, .. } = *hazard;
        (subpass(hazard), second, resource, before, after, missing)
    };
    let certain: Vec<_> = hazards.iter().filter(|hazard| !hazard.is_possible).map(signature).collect();
    let is_repeated = |hazard: &CommandHazard| {
        hazard.is_possible && subpass(hazard).is_some() && certain.contains(&signature(hazard))
    };
    hazards.into_iter().filter(|hazard| !is_repeated(hazard)).collect()
}

/// The properties that two executions of a command share.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
        Command::Barrier { .. } | Command::SetEvent { .. } | Command::EndLabel | Command::Subpass { .. } => {
            CommandSignature::Barrier
        }
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
            unflushed: BTreeMap::new(),
            semaphores: HashMap::new(),
            fences: HashMap::new(),
            events: HashMap::new(),
            awaited: BTreeSet::new(),
            signalled_by_host: BTreeSet::new(),
            layouts: None,
            owners: None,
            released: BTreeMap::new(),
            has_unknown_accesses: false,
            hazards: Vec::new(),
            known: HashMap::new(),
            unseen: Vec::new(),
            read_after_wait: BTreeSet::new(),
            mapped: HashMap::new(),
            next_command: 0,
        }
    }

    /// Returns true if no earlier access is without order to all that follows.
    pub fn is_idle(&self) -> bool {
        self.priors.is_empty()
    }

    /// Extends the order by a step, and reports hazards.
    pub fn take_step(&mut self, step: &Step<'_>) {
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
            Step::Idle(queues) => {
                let ended = queues.iter().flat_map(|queue| self.covered_by(*queue, stage::ALL));
                let ended: Vec<usize> = ended.collect();
                self.end_accesses(&ended);
            }
            Step::Host(event) => self.take_event(event),
        }
    }

    /// Returns the accesses in the first scope of a signal.
    fn covered_by(&self, queue: u64, stages: u64) -> Vec<usize> {
        let is_covered = |prior: &PriorAccess| prior.is_in_first_scope(CommandSet::all_of(queue), stages);
        let all = self.priors.iter().filter(|(_, prior)| is_covered(prior));
        all.map(|(index, _)| *index).collect()
    }

    fn remove_accesses(&mut self, removed: &[usize]) {
        for index in removed {
            if let Some(prior) = self.priors.remove(index)
                && let Some(at) = self.by_location.get_mut(&prior.access.location)
            {
                at.retain(|other| other != index);
            }
        }
    }

    /// Removes accesses that are ordered before all work that follows.
    fn end_accesses(&mut self, ended: &[usize]) {
        self.keep_unseen(ended);
        self.remove_accesses(ended);
        if self.bindings.has_unchecked {
            self.owners = self.owners.take().map(|_| Owners::default());
        }
        if self.is_idle() {
            self.fences.clear();
            self.released.clear();
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

    /// Adds a command whose accesses may be unknown.
    fn add_unknown(&mut self, is_unknown: bool) {
        self.has_unknown_accesses |= is_unknown;
        self.unseen.retain(|_| !is_unknown);
    }

    fn execute(&mut self, index: usize) {
        let Some(executed) = self.timeline.commands.get(index) else { return };
        let (queue, subpass) = (executed.queue, executed.subpass);
        let by = Executor { index, queue, subpass };
        self.next_command = index + 1;
        match executed.command {
            Command::Dispatch { indirect, resources, missing, .. } => {
                self.add_unknown(!missing.is_empty());
                if let Some(range) = indirect {
                    let side = AccessSide { stage: stage::DRAW_INDIRECT, access: access::INDIRECT_READ };
                    let kind = AccessKind { side, is_write: false, is_possible: false, role: None };
                    let bytes = (range.offset, range.offset.saturating_add(range.size));
                    self.access_buffer(by, range.buffer, bytes, kind);
                }
                for resource in resources {
                    self.access_resource(by, resource);
                }
            }
            Command::Other(other) => {
                self.add_unknown(other.unknown.is_some());
                for access in &other.accesses {
                    self.access_recorded(by, access, other.outputs);
                }
                let drawn = other
                    .outputs
                    .iter()
                    .flat_map(|outputs| executed.outputs.iter().filter(|access| outputs.may_make(access)));
                for access in drawn {
                    self.access_recorded(by, access, other.outputs);
                }
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
            Command::Barrier(recorded) => self.add_barrier(&Barrier::new(self.bindings, by, recorded)),
            Command::Label { .. } | Command::EndLabel | Command::Subpass { .. } => {}
        }
    }

    /// Adds an access of a command; a draw has the state of its pipeline.
    fn access_recorded(&mut self, by: Executor, access: &RecordedAccess, draw: Option<DrawOutputs>) {
        let RecordedAccess { stage, access: mask, is_write, is_possible, bytes, .. } = *access;
        let is_ordered_input = draw.is_some_and(|draw| draw.is_ordered);
        let role = match mask {
            _ if access.is_operation => Some(AttachmentRole::Operation),
            _ if mask & access::ATTACHMENT != 0 => Some(AttachmentRole::Ordered),
            access::INPUT_READ if is_ordered_input => Some(AttachmentRole::Ordered),
            access::INPUT_READ => Some(AttachmentRole::Input),
            _ => None,
        };
        let kind = AccessKind { side: AccessSide { stage, access: mask }, is_write, is_possible, role };
        match (access.buffer, access.image, access.range) {
            (Some(buffer), _, _) => self.access_buffer(by, buffer, bytes, kind),
            (None, Some(image), Some(range)) => {
                for part in self.bindings.parts_of(image, range, access.aspects) {
                    self.use_layout(by.index, (image, part), access.layout, kind);
                    let location = Location::Subresource(image, part);
                    self.access(by, (location, ResourceId::Image(image), 0), bytes, kind);
                }
                self.access_aliases(by, image, kind);
            }
            (None, _, _) => {}
        }
    }

    fn access_resource(&mut self, by: Executor, resource: &DispatchResource) {
        let Some(executed) = self.timeline.commands.get(by.index) else { return };
        let bytes = (self.accessed_bytes)(by.index, executed.command, resource);
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
            let side = AccessSide { stage: stage::COMPUTE, access };
            let kind = AccessKind { side, is_write, is_possible, role: None };
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
                        self.use_layout(by.index, (image, *part), resource.layout, kind);
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

    fn use_layout(&mut self, command: usize, part: PartId, layout: Option<i32>, kind: AccessKind) {
        let bindings = self.bindings;
        let Some((known, layout)) = self.layouts.as_mut().zip(layout) else { return };
        let error = known.access(bindings, part, layout, kind.is_write);
        self.report_layout(command, part.0, error, kind.side, kind.is_possible);
    }

    fn report_layout(
        &mut self,
        command: usize,
        image: u64,
        error: Option<LayoutError>,
        after: AccessSide,
        is_possible: bool,
    ) {
        let Some((transition, missing)) = error else { return };
        let first = transition.unwrap_or(command);
        self.report(CommandHazard {
            second: transition.map(|_| command),
            after,
            is_possible,
            ..CommandHazard::new(Conflict::Layout, first, ResourceId::Image(image), missing)
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
        Executor { index: command, queue, subpass }: Executor,
        (location, resource, base): (Location, ResourceId, u64),
        range: ByteRange,
        kind: AccessKind,
    ) {
        let AccessKind { side: kind, is_write, is_possible, role } = kind;
        let later = Access {
            command,
            queue,
            subpass,
            role,
            location,
            resource,
            base,
            range,
            kind,
            is_write,
            is_possible,
        };
        self.check_flush(&later);
        self.use_unseen(&later);
        let is_ordered = self.compare(&later, kind, |_, prior| prior.missing_order(&later));
        self.use_owned(&later, is_ordered);
        let mut prior = PriorAccess::new(later);
        prior.is_held = !self.awaited.is_empty();
        self.insert(prior);
    }

    fn insert(&mut self, prior: PriorAccess) {
        self.by_location.entry(prior.access.location).or_default().push(self.next_prior);
        self.priors.insert(self.next_prior, prior);
        self.next_prior += 1;
    }

    /// Reports the earlier accesses that conflict with one without order, and removes those that it replaces.
    /// Returns true if all have order.
    fn compare(
        &mut self,
        later: &Access,
        after: AccessSide,
        missing_order: impl Fn(usize, &PriorAccess) -> Option<MissingOrder>,
    ) -> bool {
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
                second: Some(later.command),
                before: earlier.kind,
                after,
                bytes: (!is_image(later.resource)).then_some(common).into_iter().collect(),
                is_aliased: earlier.resource != later.resource,
                is_possible: earlier.is_possible || later.is_possible,
                ..CommandHazard::new(conflict, earlier.command, later.resource, missing)
            });
        }
        self.remove_accesses(&replaced);
        let is_ordered = found.iter().all(|hazard| hazard.missing != MissingOrder::Execution);
        found.into_iter().for_each(|hazard| self.report(hazard));
        is_ordered
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
        if let Some(known) = self.known.get(&key).and_then(|known| self.hazards.get_mut(*known)) {
            known.count += 1;
            // Each pair has its own bytes; the fix is about the first one.
            if (known.first, known.second) == (hazard.first, hazard.second) {
                known.bytes.extend(hazard.bytes);
                join_ranges(&mut known.bytes);
            }
            return;
        }
        self.known.insert(key, self.hazards.len());
        self.hazards.push(hazard);
    }
}
