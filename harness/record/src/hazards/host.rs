//! The host and mapped memory: writes that race with commands, writes that it did not flush, and those of commands that it cannot see.

use super::HazardSearch;
use crate::hazard::{
    AccessSide, ByteRange, CommandHazard, Conflict, MissingOrder, ResourceBytes, ResourceId,
};
use crate::journal::{Command, DispatchResource};
use crate::scopes::{Access, Location, PriorAccess, access, stage};

impl<F: Fn(usize, &Command, &DispatchResource) -> ResourceBytes> HazardSearch<'_, F> {
    /// Reports changed bytes that a command reads which may still run, and that no such command writes.
    pub(super) fn check_host_writes(&mut self, memory: u64, ranges: &[ByteRange]) {
        self.replace_owned(Location::Memory(memory), ranges);
        self.remove_unseen(|access| {
            let (start, end) = access.bytes();
            access.location == Location::Memory(memory)
                && ranges.iter().any(|range| range.0 < end && start < range.1)
        });
        let at = self.by_location.get(&Location::Memory(memory)).cloned().unwrap_or_default();
        let started = at.iter().filter_map(|index| self.priors.get(index));
        let started = started.filter(|prior| !prior.is_held && !prior.has_ended);
        let all: Vec<Access> = started.map(|prior| prior.access).collect();
        let overlap = |access: &Access, range: &ByteRange| {
            let (from, to) = access.bytes();
            (from.max(range.0) < to.min(range.1)).then(|| (from.max(range.0), to.min(range.1)))
        };
        for range in if self.has_unknown_accesses { &[] } else { ranges } {
            let may_be_written = all.iter().any(|access| access.is_write && overlap(access, range).is_some());
            if !may_be_written && self.bindings.is_incoherent(memory) {
                self.unflushed.entry(memory).or_default().push(*range);
            }
            for access in all.iter().filter(|access| !may_be_written && !access.is_possible) {
                let Some((from, to)) = overlap(access, range) else { continue };
                self.report(CommandHazard {
                    conflict: Conflict::Host,
                    first: access.command,
                    second: None,
                    before: access.kind,
                    after: AccessSide { stage: stage::HOST, access: access::HOST_WRITE },
                    resource: access.resource,
                    bytes: vec![(from - access.base, to - access.base)],
                    is_aliased: false,
                    missing: MissingOrder::Execution,
                    is_possible: false,
                    count: 1,
                });
            }
        }
    }

    /// Keeps ended writes to mapped memory that no barrier makes visible to the host.
    pub(super) fn keep_unseen(&mut self, ended: &[usize]) {
        /// Upper bound on the writes that are kept.
        const MAX_UNSEEN: usize = 1024;
        let priors = ended.iter().filter_map(|index| self.priors.get(index));
        let unseen = priors.filter(|prior| !prior.has_ended && self.is_unseen(prior));
        let unseen: Vec<Access> = unseen.map(|prior| prior.access).collect();
        self.unseen.extend(unseen);
        self.unseen.truncate(MAX_UNSEEN);
    }

    /// Returns true for a write to a buffer in mapped memory that is not visible to the host.
    fn is_unseen(&self, prior: &PriorAccess) -> bool {
        let Access { location, resource, is_write, is_possible, .. } = prior.access;
        let is_mapped = matches!(location, Location::Memory(memory) if self.bindings.is_mapped(memory));
        let is_buffer = matches!(resource, ResourceId::Buffer(_));
        is_write && !is_possible && is_mapped && is_buffer && !prior.is_visible_to_host()
    }

    /// Forgets unseen writes that commands or the host use, or a barrier makes visible.
    pub(super) fn remove_unseen(&mut self, is_removed: impl Fn(&Access) -> bool) {
        self.unseen.retain(|access| !is_removed(access));
    }

    /// Reports writes to a range that the host invalidates, to read it, and that it cannot see.
    pub(super) fn check_host_read(&mut self, memory: u64, (from, to): ByteRange) {
        let is_read = |access: &Access| {
            let (start, end) = access.bytes();
            access.location == Location::Memory(memory) && start < to && from < end
        };
        let running = self.priors.values().filter(|prior| !prior.has_ended && is_read(&prior.access));
        let running = running.filter(|prior| prior.access.is_write);
        let mut found: Vec<(Access, MissingOrder)> =
            running.map(|prior| (prior.access, MissingOrder::Execution)).collect();
        let ended = self.unseen.iter().filter(|access| is_read(access));
        found.extend(ended.map(|access| (*access, MissingOrder::Visibility)));
        self.remove_unseen(is_read);
        for (access, missing) in found {
            let (start, end) = access.bytes();
            let is_buffer = matches!(access.resource, ResourceId::Buffer(_));
            let bytes = (start.max(from) - access.base, end.min(to) - access.base);
            self.report(CommandHazard {
                conflict: Conflict::Host,
                first: access.command,
                second: None,
                before: access.kind,
                after: AccessSide { stage: stage::HOST, access: access::HOST_READ },
                resource: access.resource,
                bytes: is_buffer.then_some(bytes).into_iter().collect(),
                is_aliased: false,
                missing,
                // The host need not read all that it invalidates.
                is_possible: true,
                count: 1,
            });
        }
    }

    /// Forgets the queue families that own what the host overwrites. Bytes that it does not change may be among those that it wrote.
    fn replace_owned(&mut self, location: Location, ranges: &[ByteRange]) {
        let at = self.by_location.get(&location).into_iter().flatten();
        let is_replaced = |index: &&usize| {
            self.priors.get(index).is_some_and(|PriorAccess { access, has_ended, .. }| {
                let (start, end) = access.bytes();
                *has_ended && ranges.iter().any(|range| range.0 < end && start < range.1)
            })
        };
        let replaced: Vec<usize> = at.filter(is_replaced).copied().collect();
        self.remove_accesses(&replaced);
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
        let is_buffer = matches!(later.resource, ResourceId::Buffer(_));
        self.report(CommandHazard {
            conflict: Conflict::Host,
            first: later.command,
            second: None,
            before: later.kind,
            after: AccessSide { stage: stage::HOST, access: access::HOST_WRITE },
            resource: later.resource,
            bytes: is_buffer
                .then(|| (range.0.max(start) - later.base, range.1.min(end) - later.base))
                .into_iter()
                .collect(),
            is_aliased: false,
            missing: MissingOrder::Flush,
            is_possible: later.is_possible,
            count: 1,
        });
    }
}
