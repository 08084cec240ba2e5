//! Hazards between commands: two accesses to the same bytes, one of them a write, without the order that they need.
//!
//! For each access the algorithm keeps the stages that are ordered after it on each queue, whether its write is available, and to which
//! stages and accesses it is visible. Barriers and semaphores extend these sets: execution dependency chains, availability and visibility
//! operations (Vulkan specification, "Synchronization and Cache Control", 7.1 and 7.4 to 7.6). A read after a write needs visibility, a
//! write after a write availability and execution order, a write after a read execution order alone ("Memory Model",
//! location-ordered).
//!
//! Sound for reports: accesses of dispatches are the bytes that were executed, and every doubtful order counts as one. Waits for events
//! count as barriers after everything before, a host that waited for a fence orders all later work, and a barrier for a part of a buffer
//! orders an access that overlaps it. Missed: accesses of draws and of commands that are not recorded, layout transitions, aliases of
//! images, queue family ownership, and writes of the host. Time is linear in commands × live accesses; accesses end when the host waits.

use std::collections::{BTreeMap, HashMap};

use crate::journal::{Command, DispatchResource, Event, SemaphoreUse, SyncScope, Transfer};
use crate::timeline::{Step, Timeline};

/// Pipeline stages (`VkPipelineStageFlagBits2`).
mod stage {
    pub const TOP: u64 = 1;
    pub const DRAW_INDIRECT: u64 = 1 << 1;
    pub const COMPUTE: u64 = 1 << 11;
    pub const TRANSFER: u64 = 1 << 12;
    pub const BOTTOM: u64 = 1 << 13;
    pub const ALL_GRAPHICS: u64 = 1 << 15;
    pub const ALL: u64 = 1 << 16;
    pub const COPY: u64 = 1 << 32;
    pub const CLEAR: u64 = 1 << 35;
    /// Resolve and blit.
    pub const OTHER_TRANSFERS: u64 = 3 << 33;
    /// From vertex input to colour attachment output.
    pub const GRAPHICS: u64 = 0x7fc;
}

/// Accesses (`VkAccessFlagBits2`).
mod access {
    pub const INDIRECT_READ: u64 = 1;
    pub const UNIFORM_READ: u64 = 1 << 3;
    pub const SHADER_READ: u64 = 1 << 5;
    pub const SHADER_WRITE: u64 = 1 << 6;
    pub const TRANSFER_READ: u64 = 1 << 11;
    pub const TRANSFER_WRITE: u64 = 1 << 12;
    pub const MEMORY_READ: u64 = 1 << 15;
    pub const MEMORY_WRITE: u64 = 1 << 16;
    pub const SAMPLED_READ: u64 = 1 << 32;
    pub const STORAGE_READ: u64 = 1 << 33;
    pub const STORAGE_WRITE: u64 = 1 << 34;
}

/// Bytes of a resource: the first, and the one after the last.
pub type ByteRange = (u64, u64);

/// The bytes of a resource that a dispatch accesses, from the start of the resource's descriptor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceBytes {
    /// Ranges that are read.
    pub reads: Vec<ByteRange>,
    /// Ranges that are written.
    pub writes: Vec<ByteRange>,
}

/// The accesses of a hazard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Conflict {
    /// Two writes.
    WriteAfterWrite,
    /// A read of what a write leaves.
    ReadAfterWrite,
    /// A write to what a read needs.
    WriteAfterRead,
}

/// Part of the order that a hazard lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MissingOrder {
    /// No chain of barriers and semaphores leads from the first command's stage to the second's.
    Execution,
    /// No first access scope of the chain contains the write.
    Availability,
    /// No second access scope of the chain contains the later access.
    Visibility,
}

/// Stages and accesses of one side of a hazard, for the barrier that orders it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessSide {
    /// One stage, as `VkPipelineStageFlagBits2`.
    pub stage: u64,
    /// One access, as `VkAccessFlagBits2`.
    pub access: u64,
}

/// A resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ResourceId {
    /// A buffer, by its id.
    Buffer(u64),
    /// An image, by its id.
    Image(u64),
}

/// Two commands that access the same bytes without the order that they need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandHazard {
    /// The accesses.
    pub conflict: Conflict,
    /// Index of the earlier command.
    pub first: usize,
    /// Index of the later command.
    pub second: usize,
    /// The stage and access of the earlier command.
    pub before: AccessSide,
    /// The stage and access of the later command.
    pub after: AccessSide,
    /// The resource of the later command.
    pub resource: ResourceId,
    /// The first byte of the resource that both access, and the one after; none for images.
    pub bytes: Option<ByteRange>,
    /// The part of the order that is missing.
    pub missing: MissingOrder,
    /// Number of pairs of such commands.
    pub count: u64,
}

/// Memory in which accesses are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Location {
    /// Device memory, by its id.
    Memory(u64),
    /// A buffer whose memory is unknown.
    Buffer(u64),
    /// A level and layer of an image.
    Subresource(u64, u32, u32),
}

/// An access of a command.
#[derive(Clone, Copy, Debug)]
struct Access {
    command: usize,
    queue: u64,
    location: Location,
    resource: ResourceId,
    /// Offset of the resource in its location.
    base: u64,
    range: ByteRange,
    kind: AccessSide,
    is_write: bool,
}

/// An earlier access, and what is ordered after it.
#[derive(Clone, Debug)]
struct PriorAccess {
    access: Access,
    is_available: bool,
    /// The stages of each queue that are ordered after it.
    ordered: BTreeMap<u64, u64>,
    /// Queues, stages and accesses to which the write is visible.
    visible: Vec<(u64, u64, u64)>,
}

/// Adds the stages that a combined stage stands for.
fn expand_stages(mask: u64) -> u64 {
    let mut all = mask;
    if mask & stage::ALL != 0 {
        all = !0;
    }
    if mask & stage::TRANSFER != 0 {
        all |= stage::COPY | stage::CLEAR | stage::OTHER_TRANSFERS;
    }
    if mask & stage::ALL_GRAPHICS != 0 {
        all |= stage::GRAPHICS | stage::DRAW_INDIRECT;
    }
    all
}

/// Returns the stages of a first scope: with those that are logically earlier.
fn first_scope_stages(mask: u64) -> u64 {
    let all = if mask & stage::BOTTOM != 0 { !0 } else { expand_stages(mask) };
    if all & (stage::COMPUTE | stage::GRAPHICS) != 0 { all | stage::DRAW_INDIRECT } else { all }
}

/// Returns the stages of a second scope: with those that are logically later.
fn second_scope_stages(mask: u64) -> u64 {
    let all = if mask & stage::TOP != 0 { !0 } else { expand_stages(mask) };
    if all & stage::DRAW_INDIRECT != 0 { all | stage::COMPUTE | stage::GRAPHICS } else { all }
}

/// Adds the accesses that a combined access stands for.
fn expand_accesses(mask: u64) -> u64 {
    let mut all = mask;
    if mask & access::MEMORY_READ != 0 {
        all |= access::INDIRECT_READ | access::UNIFORM_READ | access::SHADER_READ | access::TRANSFER_READ;
    }
    if mask & access::MEMORY_WRITE != 0 {
        all |= access::SHADER_WRITE | access::TRANSFER_WRITE;
    }
    if all & access::SHADER_READ != 0 {
        all |= access::SAMPLED_READ | access::STORAGE_READ | access::UNIFORM_READ;
    }
    if all & access::SHADER_WRITE != 0 {
        all |= access::STORAGE_WRITE;
    }
    all
}

impl PriorAccess {
    /// Extends the order by a dependency between two scopes.
    fn add_dependency(&mut self, queues: (u64, u64), from: SyncScope, to: SyncScope) {
        let (first, second) = queues;
        let first_stages = first_scope_stages(from.0);
        let is_own = self.access.queue == first && self.access.kind.stage & first_stages != 0;
        let is_chained = self.ordered.get(&first).is_some_and(|stages| stages & first_stages != 0);
        if !is_own && !is_chained {
            return;
        }
        *self.ordered.entry(second).or_default() |= second_scope_stages(to.0);
        let is_in_access_scope = self.access.queue == first
            && self.access.kind.stage & expand_stages(from.0) != 0
            && self.access.kind.access & expand_accesses(from.1) != 0;
        self.is_available |= self.access.is_write && is_in_access_scope;
        let scope = (second, expand_stages(to.0), expand_accesses(to.1));
        if self.is_available && scope.2 != 0 && !self.visible.contains(&scope) {
            self.visible.push(scope);
        }
    }

    /// Returns what a conflicting later access lacks.
    fn missing_order(&self, later: &Access) -> Option<MissingOrder> {
        let ordered = self.ordered.get(&later.queue).is_some_and(|stages| stages & later.kind.stage != 0);
        let is_visible = || {
            let covers = |(queue, stages, accesses): &(u64, u64, u64)| {
                *queue == later.queue && stages & later.kind.stage != 0 && accesses & later.kind.access != 0
            };
            self.visible.iter().any(covers)
        };
        if !ordered {
            return Some(MissingOrder::Execution);
        }
        if self.access.is_write && !self.is_available {
            return Some(MissingOrder::Availability);
        }
        let needs_visibility = self.access.is_write && !later.is_write;
        (needs_visibility && !is_visible()).then_some(MissingOrder::Visibility)
    }
}

/// The memory of buffers and images.
#[derive(Default)]
struct Bindings {
    buffers: HashMap<u64, (Location, u64)>,
    sizes: HashMap<u64, u64>,
    levels_and_layers: HashMap<u64, (u32, u32)>,
}

impl Bindings {
    fn from_events(events: &[Event]) -> Bindings {
        let mut bindings = Bindings::default();
        for event in events {
            match event {
                Event::Buffer { buffer, size } => _ = bindings.sizes.insert(*buffer, *size),
                Event::Bind { buffer: Some(buffer), memory, offset, .. } => {
                    bindings.buffers.insert(*buffer, (Location::Memory(*memory), *offset));
                }
                Event::Image { image, levels, layers, .. } => {
                    bindings.levels_and_layers.insert(*image, (*levels, *layers));
                }
                _ => {}
            }
        }
        bindings
    }

    fn buffer_location(&self, buffer: u64) -> (Location, u64) {
        self.buffers.get(&buffer).copied().unwrap_or((Location::Buffer(buffer), 0))
    }
}

/// A signalled semaphore or fence, with the accesses that it covers.
struct Signal {
    value: u64,
    covered: Vec<usize>,
}

struct HazardSearch<'a, F> {
    timeline: &'a Timeline<'a>,
    bindings: Bindings,
    accessed_bytes: F,
    priors: Vec<Option<PriorAccess>>,
    by_location: BTreeMap<Location, Vec<usize>>,
    semaphores: HashMap<u64, Vec<Signal>>,
    fences: HashMap<u64, Vec<usize>>,
    hazards: Vec<CommandHazard>,
    /// The hazard of each pair of kinds of commands.
    known: HashMap<(Conflict, String, String, ResourceId, MissingOrder), usize>,
}

/// Finds the hazards of a process.
///
/// `accessed_bytes` returns the bytes of a resource that a dispatch accesses, or none if they are not known; then the resource is left out.
pub fn find_hazards(
    timeline: &Timeline<'_>,
    events: &[Event],
    accessed_bytes: impl Fn(&Command, &DispatchResource) -> Option<ResourceBytes>,
) -> Vec<CommandHazard> {
    let mut search = HazardSearch {
        timeline,
        bindings: Bindings::from_events(events),
        accessed_bytes,
        priors: Vec::new(),
        by_location: BTreeMap::new(),
        semaphores: HashMap::new(),
        fences: HashMap::new(),
        hazards: Vec::new(),
        known: HashMap::new(),
    };
    for step in &timeline.steps {
        search.take_step(step);
    }
    search.hazards
}

/// Names a command by what two executions of it share.
fn command_signature(command: &Command) -> String {
    match command {
        Command::Dispatch { kind, .. } => format!("dispatch {kind}"),
        Command::Copy(_) => "copy".to_owned(),
        Command::Fill(_) => "fill".to_owned(),
        Command::Update(_) => "update".to_owned(),
        Command::ImageCopy { to_image, .. } => format!("image copy {to_image}"),
        Command::Barrier { .. } => "barrier".to_owned(),
        Command::Label { name } => name.clone(),
        Command::EndLabel => String::new(),
        Command::Unrecorded { what } => what.clone(),
    }
}

impl<F: Fn(&Command, &DispatchResource) -> Option<ResourceBytes>> HazardSearch<'_, F> {
    fn take_step(&mut self, step: &Step) {
        match step {
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
                let signals = self.semaphores.get(semaphore).into_iter().flatten();
                let covered = signals.filter(|signal| signal.value <= *value);
                let covered: Vec<usize> = covered.flat_map(|signal| signal.covered.iter().copied()).collect();
                self.end_accesses(&covered);
            }
            Step::Idle(queues) => {
                let on_queue = |prior: &Option<PriorAccess>| {
                    prior.as_ref().is_some_and(|prior| queues.contains(&prior.access.queue))
                };
                let idle = self.priors.iter().enumerate().filter(|(_, prior)| on_queue(prior));
                let idle: Vec<usize> = idle.map(|(index, _)| index).collect();
                self.end_accesses(&idle);
            }
        }
    }

    /// Returns the accesses in the first scope of a signal.
    fn covered_by(&self, queue: u64, stages: u64) -> Vec<usize> {
        let stages = first_scope_stages(stages);
        let is_covered = |prior: &PriorAccess| {
            (prior.access.queue == queue && prior.access.kind.stage & stages != 0)
                || prior.ordered.get(&queue).is_some_and(|ordered| ordered & stages != 0)
        };
        let all = self.priors.iter().enumerate();
        all.filter(|(_, prior)| prior.as_ref().is_some_and(is_covered)).map(|(index, _)| index).collect()
    }

    /// Removes accesses that are ordered before all work that follows.
    fn end_accesses(&mut self, ended: &[usize]) {
        for index in ended {
            if let Some(prior) = self.priors.get_mut(*index).and_then(Option::take)
                && let Some(at) = self.by_location.get_mut(&prior.access.location)
            {
                at.retain(|other| other != index);
            }
        }
        if self.by_location.values().all(Vec::is_empty) {
            self.priors.clear();
            self.by_location.clear();
            self.fences.clear();
            self.semaphores.values_mut().flatten().for_each(|signal| signal.covered.clear());
        }
    }

    fn wait_on_queue(&mut self, queue: u64, wait: SemaphoreUse) {
        let SemaphoreUse(semaphore, stages, value) = wait;
        let signals = self.semaphores.entry(semaphore).or_default();
        // A wait for a binary semaphore takes its signal.
        let taken = if value == 0 { std::mem::take(signals) } else { Vec::new() };
        let covering = signals.iter().filter(|signal| signal.value <= value).chain(&taken);
        let covered: Vec<usize> = covering.flat_map(|signal| signal.covered.iter().copied()).collect();
        for index in covered {
            let Some(prior) = self.priors.get_mut(index).and_then(Option::as_mut) else { continue };
            // A signal makes all writes available, a wait makes them visible.
            prior.is_available |= prior.access.is_write;
            *prior.ordered.entry(queue).or_default() |= second_scope_stages(stages);
            prior.visible.push((queue, expand_stages(stages), !0));
        }
    }

    fn execute(&mut self, index: usize) {
        let Some(executed) = self.timeline.commands.get(index) else { return };
        let queue = executed.queue;
        match executed.command {
            Command::Dispatch { indirect, resources, .. } => {
                if let Some(range) = indirect {
                    let kind = AccessSide { stage: stage::DRAW_INDIRECT, access: access::INDIRECT_READ };
                    self.access_buffer(
                        index,
                        queue,
                        range.buffer,
                        (range.offset, range.offset + range.size),
                        kind,
                        false,
                    );
                }
                for resource in resources {
                    let Some(bytes) = (self.accessed_bytes)(executed.command, resource) else { continue };
                    self.access_resource(index, queue, resource, &bytes);
                }
            }
            Command::Copy(transfer) => self.transfer(index, queue, transfer, stage::COPY),
            // Old masks have one bit for every transfer. The specification puts fills and updates under clears.
            Command::Fill(transfer) | Command::Update(transfer) => {
                self.transfer(index, queue, transfer, stage::CLEAR | stage::COPY);
            }
            Command::ImageCopy { to_image, image, range, .. } => {
                let kind = AccessSide {
                    stage: stage::COPY,
                    access: if *to_image { access::TRANSFER_WRITE } else { access::TRANSFER_READ },
                };
                self.access_image(index, queue, *image, *range, kind, *to_image);
            }
            Command::Barrier { from, to, buffer, offset, size, image, .. } => {
                let range = buffer.map(|buffer| {
                    let (location, base) = self.bindings.buffer_location(buffer);
                    let start = offset.unwrap_or(0);
                    let rest =
                        self.bindings.sizes.get(&buffer).map_or(u64::MAX, |size| size.saturating_sub(start));
                    (location, base + start, (base + start).saturating_add(rest.min(size.unwrap_or(rest))))
                });
                for prior in self.priors.iter_mut().flatten() {
                    let Access { location, range: bytes, resource, base, .. } = prior.access;
                    let is_in_resource = match (range, image) {
                        (Some((at, start, end)), _) => {
                            at == location && start < base + bytes.1 && base + bytes.0 < end
                        }
                        (None, Some(image)) => resource == ResourceId::Image(*image),
                        (None, None) => true,
                    };
                    // The resource of a barrier restricts its access scopes, not the order of execution.
                    let accesses =
                        |scope: &SyncScope| if is_in_resource { *scope } else { SyncScope(scope.0, 0) };
                    prior.add_dependency((queue, queue), accesses(from), accesses(to));
                }
            }
            Command::Label { .. } | Command::EndLabel | Command::Unrecorded { .. } => {}
        }
    }

    fn transfer(&mut self, index: usize, queue: u64, transfer: &Transfer, stage: u64) {
        let Transfer { from, to, region: [source, destination, size] } = *transfer;
        if from != 0 {
            let kind = AccessSide { stage, access: access::TRANSFER_READ };
            self.access_buffer(index, queue, from, (source, source + size), kind, false);
        }
        let kind = AccessSide { stage, access: access::TRANSFER_WRITE };
        self.access_buffer(index, queue, to, (destination, destination + size), kind, true);
    }

    fn access_resource(
        &mut self,
        index: usize,
        queue: u64,
        resource: &DispatchResource,
        bytes: &ResourceBytes,
    ) {
        let read = if resource.is_uniform { access::UNIFORM_READ } else { access::STORAGE_READ };
        let read = AccessSide { stage: stage::COMPUTE, access: read };
        let write = AccessSide { stage: stage::COMPUTE, access: access::STORAGE_WRITE };
        let all = bytes.reads.iter().map(|range| (range, read, false));
        let all = all.chain(bytes.writes.iter().map(|range| (range, write, true)));
        if let Some(buffer) = resource.buffer {
            for (range, kind, is_write) in all {
                let range = (resource.offset + range.0, resource.offset + range.1);
                self.access_buffer(index, queue, buffer, range, kind, is_write);
            }
        } else if let (Some(image), Some(range)) = (resource.image, resource.range) {
            if !bytes.reads.is_empty() {
                let sampled =
                    AccessSide { stage: stage::COMPUTE, access: access::STORAGE_READ | access::SAMPLED_READ };
                self.access_image(index, queue, image, range, sampled, false);
            }
            if !bytes.writes.is_empty() {
                self.access_image(index, queue, image, range, write, true);
            }
        }
    }

    fn access_buffer(
        &mut self,
        command: usize,
        queue: u64,
        buffer: u64,
        range: ByteRange,
        kind: AccessSide,
        is_write: bool,
    ) {
        let (location, base) = self.bindings.buffer_location(buffer);
        let resource = ResourceId::Buffer(buffer);
        self.add_access(Access { command, queue, location, resource, base, range, kind, is_write });
    }

    fn access_image(
        &mut self,
        command: usize,
        queue: u64,
        image: u64,
        range: [u32; 4],
        kind: AccessSide,
        is_write: bool,
    ) {
        let (levels, layers) = self.bindings.levels_and_layers.get(&image).copied().unwrap_or((1, 1));
        let [level, level_count, layer, layer_count] = range;
        let resource = ResourceId::Image(image);
        for level in (level..levels).take(level_count as usize) {
            for layer in (layer..layers).take(layer_count as usize) {
                let location = Location::Subresource(image, level, layer);
                self.add_access(Access {
                    command,
                    queue,
                    location,
                    resource,
                    base: 0,
                    range: (0, 1),
                    kind,
                    is_write,
                });
            }
        }
    }

    /// Compares an access with the earlier ones, and adds it.
    fn add_access(&mut self, later: Access) {
        let (start, end) = (later.base + later.range.0, later.base + later.range.1);
        let mut replaced = Vec::new();
        for index in self.by_location.get(&later.location).into_iter().flatten() {
            let Some(prior) = self.priors.get(*index).and_then(Option::as_ref) else { continue };
            let earlier = prior.access;
            let (from, to) = (earlier.base + earlier.range.0, earlier.base + earlier.range.1);
            if from >= end || start >= to || earlier.command == later.command {
                continue;
            }
            let missing = prior.missing_order(&later);
            // An access that conflicts with the earlier one conflicts with this one too.
            if later.is_write && missing.is_none() && start <= from && to <= end {
                replaced.push(*index);
            }
            let conflict = match (earlier.is_write, later.is_write) {
                (true, true) => Conflict::WriteAfterWrite,
                (true, false) => Conflict::ReadAfterWrite,
                (false, true) => Conflict::WriteAfterRead,
                (false, false) => continue,
            };
            let Some(missing) = missing else { continue };
            let signature = |command: usize| {
                self.timeline
                    .commands
                    .get(command)
                    .map_or(String::new(), |executed| command_signature(executed.command))
            };
            let key =
                (conflict, signature(earlier.command), signature(later.command), later.resource, missing);
            if let Some(hazard) = self.known.get(&key).and_then(|known| self.hazards.get_mut(*known)) {
                hazard.count += 1;
                continue;
            }
            self.known.insert(key, self.hazards.len());
            let common = (from.max(start) - later.base, to.min(end) - later.base);
            self.hazards.push(CommandHazard {
                conflict,
                first: earlier.command,
                second: later.command,
                before: earlier.kind,
                after: later.kind,
                resource: later.resource,
                bytes: matches!(later.resource, ResourceId::Buffer(_)).then_some(common),
                missing,
                count: 1,
            });
        }
        let index = self.priors.len();
        self.priors.push(Some(PriorAccess {
            access: later,
            is_available: false,
            ordered: BTreeMap::new(),
            visible: Vec::new(),
        }));
        let at = self.by_location.entry(later.location).or_default();
        at.retain(|other| !replaced.contains(other));
        at.push(index);
        for index in replaced {
            self.priors[index] = None;
        }
    }
}
