//! The host and mapped memory: waits, writes that race with commands or are not flushed, and writes of commands that it cannot see.
//!
//! Reads through mapped pointers are not recorded. A write that the host cannot see is a possible hazard if the host invalidates or
//! unmaps the bytes, or if no command reads them and no other resource shares their memory. Else it is information.

use super::{HazardSearch, Signal};
use crate::hazard::{
    AccessSide, ByteRange, CommandHazard, Conflict, MissingOrder, ResourceBytes, ResourceId,
};
use crate::journal::{Command, DispatchResource, Event};
use crate::scopes::{Access, Location, PriorAccess, access, stage};

impl<F: Fn(usize, &Command, &DispatchResource) -> ResourceBytes> HazardSearch<'_, F> {
    /// Reports changed bytes that a command reads which may still run, and that no such command writes.
    pub(super) fn check_host_writes(&mut self, memory: u64, ranges: &[ByteRange]) {
        ranges.iter().for_each(|range| self.remove_unseen(memory, *range));
        let at = self.by_location.get(&Location::Memory(memory)).cloned().unwrap_or_default();
        let started = at.iter().filter_map(|index| self.priors.get(index));
        let started = started.filter(|prior| !prior.is_held);
        let all: Vec<Access> = started.map(|prior| prior.access).collect();
        let overlap = |access: &Access, range: &ByteRange| {
            let (from, to) = access.bytes();
            (from.max(range.0) < to.min(range.1)).then(|| (from.max(range.0), to.min(range.1)))
        };
        for range in if self.has_unknown_accesses { &[] } else { ranges } {
            let may_be_written = all.iter().any(|access| access.is_write && overlap(access, range).is_some());
            if !may_be_written {
                self.forget_owners(memory, *range);
            }
            if !may_be_written && self.bindings.is_incoherent(memory) {
                self.unflushed.entry(memory).or_default().push(*range);
            }
            // Uniform buffers of draws are read as a whole.
            let is_known =
                |access: &&Access| !access.is_possible || access.kind.access == access::UNIFORM_READ;
            for access in all.iter().filter(|_| !may_be_written).filter(is_known) {
                let Some(bytes) = overlap(access, range) else { continue };
                self.report_host(access, bytes, access::HOST_WRITE, MissingOrder::Execution);
            }
        }
    }

    fn report_host(&mut self, access: &Access, bytes: ByteRange, host_access: u64, missing: MissingOrder) {
        let hazard = host_hazard(access, bytes, host_access, missing);
        self.report(hazard);
    }

    /// Keeps ended writes to mapped memory that the host does not see yet.
    pub(super) fn keep_unseen(&mut self, ended: &[usize]) {
        /// Upper bound on the writes that are kept.
        const MAX_UNSEEN: usize = 1024;
        let priors = ended.iter().filter_map(|index| self.priors.get(index));
        let unseen = priors.filter_map(|prior| Some((prior.access, self.missing_for_host(prior)?)));
        let unseen: Vec<(Access, MissingOrder)> = unseen.collect();
        self.unseen.extend(unseen);
        self.unseen.truncate(MAX_UNSEEN);
    }

    /// Returns what a read of a written buffer in mapped memory by the host lacks.
    fn missing_for_host(&self, prior: &PriorAccess) -> Option<MissingOrder> {
        let Access { location, resource, is_write, is_possible, .. } = prior.access;
        let Location::Memory(memory) = location else { return None };
        let is_buffer = matches!(resource, ResourceId::Buffer(_));
        match prior.is_visible_to_host() {
            _ if !is_write || is_possible || !is_buffer || !self.bindings.is_mapped(memory) => None,
            false => Some(MissingOrder::Visibility),
            true => self.bindings.is_incoherent(memory).then_some(MissingOrder::Invalidation),
        }
    }

    /// Makes unseen writes visible to the host, which has to invalidate memory that is not coherent.
    pub(super) fn show_to_host(&mut self, is_shown: impl Fn(&Access) -> bool) {
        let bindings = self.bindings;
        self.unseen.retain_mut(|(access, missing)| {
            let is_incoherent =
                matches!(access.location, Location::Memory(memory) if bindings.is_incoherent(memory));
            let is_shown = is_shown(access);
            *missing = if is_shown { MissingOrder::Invalidation } else { *missing };
            !is_shown || is_incoherent
        });
    }

    /// Forgets unseen writes that a command reads or replaces. What commands read after the host has waited is theirs.
    pub(super) fn use_unseen(&mut self, later: &Access) {
        let (start, end) = later.bytes();
        let read = &mut self.read_after_wait;
        self.unseen.retain(|(earlier, _)| {
            let (from, to) = earlier.bytes();
            if earlier.location != later.location || end <= from || to <= start {
                return true;
            }
            read.extend((!later.is_write).then_some(earlier.resource));
            later.is_write && (later.is_possible || from < start || end < to)
        });
    }

    /// Reports writes to mapped memory that the host does not see. In a block of many resources, and of what commands read after a
    /// wait, nothing suggests that the host reads them.
    pub(super) fn report_unseen(&mut self) {
        for (access, missing) in std::mem::take(&mut self.unseen) {
            let is_block = match access.location {
                Location::Memory(memory) => self.bindings.resources_in(memory, &[(0, u64::MAX)]).count() > 1,
                _ => false,
            };
            let is_state = self.read_after_wait.contains(&access.resource);
            let is_information = is_state || (is_block && missing == MissingOrder::Visibility);
            let hazard = host_hazard(&access, access.bytes(), access::HOST_READ, missing);
            self.report(CommandHazard { is_information, ..hazard });
        }
    }

    /// Reports writes to a range that the host may read and cannot see: those that run, and those of the first commands that have ended.
    pub(super) fn check_host_read(&mut self, memory: u64, (from, to): ByteRange, commands: usize) {
        let is_read = |access: &Access| {
            let (start, end) = access.bytes();
            access.location == Location::Memory(memory) && start < to && from < end
        };
        let running = self.priors.values().map(|prior| prior.access);
        let running = running.filter(|access| access.is_write && is_read(access));
        let mut found: Vec<(Access, MissingOrder)> =
            running.map(|access| (access, MissingOrder::Execution)).collect();
        let is_unseen = |(access, missing): &&(Access, MissingOrder)| {
            *missing == MissingOrder::Visibility && access.command < commands && is_read(access)
        };
        found.extend(self.unseen.iter().filter(is_unseen));
        for (access, missing) in found {
            let (start, end) = access.bytes();
            // The host need not read all of the range.
            self.report_host(&access, (start.max(from), end.min(to)), access::HOST_READ, missing);
        }
    }

    /// Adds an event of the host.
    pub(super) fn take_event(&mut self, event: &Event) {
        match event {
            Event::Fence { fence } => {
                let covered = self.fences.remove(fence).unwrap_or_default();
                self.end_accesses(&covered);
            }
            Event::Semaphore { semaphore, value } => {
                let Some(signals) = self.semaphores.get_mut(semaphore) else { return };
                let (ended, rest): (Vec<Signal>, _) =
                    std::mem::take(signals).into_iter().partition(|signal| signal.value <= *value);
                *signals = rest;
                ended.iter().for_each(|signal| self.end_accesses(&signal.covered));
            }
            Event::HostEvent { event_id } => {
                let covered = self.events.get(event_id).cloned().unwrap_or_default();
                self.end_accesses(&covered);
            }
            Event::HostSetEvent { event_id } => {
                self.signalled_by_host.insert(*event_id);
                self.awaited.remove(event_id);
                let is_held = !self.awaited.is_empty();
                self.priors.values_mut().for_each(|prior| prior.is_held &= is_held);
            }
            Event::HostWrites { memory, ranges } => self.check_host_writes(*memory, ranges),
            Event::Flush { memory, range } => self.mark_flushed(*memory, *range),
            Event::Map { memory, range } => _ = self.mapped.insert(*memory, (*range, self.next_command)),
            Event::Invalidate { memory, range } => {
                self.check_host_read(*memory, *range, usize::MAX);
                self.remove_unseen(*memory, *range);
            }
            Event::Unmap { memory } => {
                let Some((range, commands)) = self.mapped.remove(memory) else { return };
                // Of a block for many resources, the host need not use all.
                if self.bindings.resources_in(*memory, &[range]).count() == 1 {
                    self.check_host_read(*memory, range, commands);
                }
            }
            Event::HostLayout { image, range, aspects, layout } => {
                for part in self.bindings.parts_of(*image, *range, *aspects) {
                    self.layouts.iter_mut().for_each(|all| all.set(self.bindings, (*image, part), *layout));
                }
            }
            // What creates, binds or names has no place in the order.
            _ => {}
        }
    }

    /// Forgets unseen writes to bytes that the host invalidates or replaces.
    fn remove_unseen(&mut self, memory: u64, (from, to): ByteRange) {
        self.unseen.retain(|(access, _)| {
            let (start, end) = access.bytes();
            access.location != Location::Memory(memory) || to <= start || end <= from
        });
    }

    /// Removes flushed bytes from those that commands may not see.
    pub(super) fn mark_flushed(&mut self, memory: u64, (from, to): ByteRange) {
        let Some(all) = self.unflushed.get_mut(&memory) else { return };
        let rest = |range: ByteRange| [(range.0, range.1.min(from)), (range.0.max(to), range.1)];
        *all = std::mem::take(all).into_iter().flat_map(rest).filter(|range| range.0 < range.1).collect();
    }

    /// Reports a read of bytes that the host wrote and did not flush; a write replaces them.
    pub(super) fn check_flush(&mut self, later: &Access) {
        let Location::Memory(memory) = later.location else { return };
        let (start, end) = later.bytes();
        let overlaps = |range: &&ByteRange| range.0 < end && start < range.1;
        let Some(range) = self.unflushed.get(&memory).and_then(|all| all.iter().find(overlaps)).copied()
        else {
            return;
        };
        if later.is_write {
            if !later.is_possible {
                self.mark_flushed(memory, (start, end));
            }
            return;
        }
        let bytes = (range.0.max(start), range.1.min(end));
        self.report_host(later, bytes, access::HOST_WRITE, MissingOrder::Flush);
    }
}

/// Returns a hazard between a command and the host. Which bytes the host reads is not known.
fn host_hazard(
    access: &Access,
    (from, to): ByteRange,
    host_access: u64,
    missing: MissingOrder,
) -> CommandHazard {
    let is_buffer = matches!(access.resource, ResourceId::Buffer(_));
    let bytes = (from.saturating_sub(access.base), to.saturating_sub(access.base));
    CommandHazard {
        before: access.kind,
        after: AccessSide { stage: stage::HOST, access: host_access },
        bytes: is_buffer.then_some(bytes).into_iter().collect(),
        is_possible: access.is_possible || host_access == access::HOST_READ,
        ..CommandHazard::new(Conflict::Host, access.command, access.resource, missing)
    }
}
