//! Queue families: transfers of ownership by barriers, and uses of what another family owns.

use std::collections::BTreeSet;

use super::HazardSearch;
use super::barriers::Barrier;
use crate::hazard::{
    AccessSide, ByteRange, CommandHazard, Conflict, MissingOrder, ResourceBytes, ResourceId,
};
use crate::journal::{Command, DispatchResource};
use crate::layouts::UNDEFINED;
use crate::ownership::{OwnedPart, OwnershipStep, TransferHalf};
use crate::scopes::{Access, CommandSet, Location, PriorAccess};

/// All bytes of a part of an image.
const WHOLE: ByteRange = (0, u64::MAX);

impl<F: Fn(usize, &Command, &DispatchResource) -> ResourceBytes> HazardSearch<'_, F> {
    /// Adds a half of a transfer, or a transition that needs the contents. Returns the accesses that are ordered before an acquire.
    pub(super) fn transfer_ownership(&mut self, barrier: &Barrier<'_>) -> BTreeSet<usize> {
        let recorded = barrier.recorded;
        let buffer = recorded.buffer.map(ResourceId::Buffer);
        let resource = buffer.or(recorded.image.map(ResourceId::Image));
        let family = resource.and_then(|resource| self.bindings.owner(resource, barrier.by.queue));
        let Some((resource, family)) = resource.zip(family) else { return BTreeSet::new() };
        let half = |families| TransferHalf { families, layouts: recorded.layouts };
        let step = match (recorded.transfer(), recorded.transition()) {
            (Some(families), _) if families[0] == family => OwnershipStep::Release(half(families)),
            (Some(families), _) if families[1] == family => OwnershipStep::Acquire(half(families)),
            (None, Some([old, _])) => {
                let needs_contents = old != UNDEFINED;
                OwnershipStep::Use { needs_contents, is_write: true, is_possible: false }
            }
            _ => return BTreeSet::new(),
        };
        let mut parts: Vec<(OwnedPart, ByteRange)> = Vec::new();
        if let Some((buffer, bytes)) = recorded.buffer.zip(barrier.bytes) {
            let (_, base) = self.bindings.buffer_location(buffer);
            parts.push(((resource, None), (bytes.1.0 - base, bytes.1.1 - base)));
        } else if let Some((_, all)) = barrier.parts(self.bindings) {
            parts.extend(all.into_iter().map(|part| ((resource, Some(part)), WHOLE)));
        }
        let side = AccessSide { stage: recorded.to.0, access: recorded.to.1 };
        let by = (barrier.by.index, barrier.by.queue);
        let mut acquired = BTreeSet::new();
        for (part, range) in parts {
            let releases = self.add_owner_step(part, range, by, step, side);
            acquired.extend(releases.iter().filter_map(|release| self.released.get(release)).flatten());
        }
        if matches!(step, OwnershipStep::Release(_)) {
            // An earlier command, which an acquire has to follow. Every signal after it covers it.
            let location = Location::Release(by.0);
            let mut release = PriorAccess::new(Access::of_barrier(barrier, location, resource));
            release.order_before(CommandSet::all_of(by.1), !0);
            self.insert(release);
        }
        acquired
    }

    /// Adds an access to what a family may own. If the commands lack an order, that is reported alone.
    pub(super) fn use_owned(&mut self, later: &Access, is_ordered: bool) {
        let (part, range) = match (later.location, later.resource) {
            (Location::Subresource(_, part), _) => (Some(part), WHOLE),
            (_, ResourceId::Buffer(_)) => (None, later.range),
            // The parts of an image have owners, not its memory.
            (_, ResourceId::Image(_)) => return,
        };
        let step = OwnershipStep::Use {
            needs_contents: !later.is_write && is_ordered,
            is_write: later.is_write || !is_ordered,
            is_possible: later.is_possible,
        };
        self.add_owner_step((later.resource, part), range, (later.command, later.queue), step, later.kind);
    }

    /// Adds a step, and reports what it lacks. Returns the releases that happen before an acquire.
    fn add_owner_step(
        &mut self,
        part: OwnedPart,
        range: ByteRange,
        (command, queue): (usize, u64),
        step: OwnershipStep,
        after: AccessSide,
    ) -> Vec<usize> {
        let mut releases = Vec::new();
        let Some((owners, family)) = self.owners.as_mut().zip(self.bindings.owner(part.0, queue)) else {
            return releases;
        };
        let is_ordered = |release: usize| {
            let at = self.by_location.get(&Location::Release(release)).into_iter().flatten();
            let is_ordered =
                at.filter_map(|index| self.priors.get(index)).all(|prior| prior.is_ordered_on(queue));
            releases.extend(is_ordered.then_some(release));
            is_ordered
        };
        let errors = owners.add_step(part, range, (command, family), step, is_ordered);
        let may_miss = matches!(step, OwnershipStep::Use { is_possible: true, .. });
        for error in errors {
            let missing = MissingOrder::Ownership(error.missing);
            self.report(CommandHazard {
                second: Some(command),
                after,
                bytes: part.1.is_none().then_some(error.range).into_iter().collect(),
                is_possible: error.is_possible || may_miss,
                ..CommandHazard::new(Conflict::Ownership, error.first, part.0, missing)
            });
        }
        releases
    }

    /// Forgets the owners of resources that the host overwrites in part.
    pub(super) fn forget_owners(&mut self, memory: u64, range: ByteRange) {
        let Some(owners) = &mut self.owners else { return };
        self.bindings.resources_in(memory, &[range]).for_each(|resource| owners.forget(resource));
    }
}
