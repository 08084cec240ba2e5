//! The race check of two accesses: whether they conflict, and what orders them.
//!
//! The check reports no false race.

use std::collections::BTreeMap;

use litmus::Scope;

use super::happens_before::{Epoch, HappensBeforeView, domain_level, nearest_shared_domain, scope_includes};

/// The properties of an access that decide how it conflicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MemoryAccessKind {
    pub writes: bool,
    pub is_atomic: bool,
    /// True if it is larger than a word.
    pub is_wide: bool,
    /// True for a private access (without `NonPrivatePointer`), which nothing orders with other invocations.
    pub is_private: bool,
    /// True if it makes itself available or visible to its scope.
    pub is_published: bool,
    pub scope: Scope,
    /// The read-modify-write operation if it commutes with itself; 0 otherwise.
    pub operation: u8,
}

/// A recorded access.
#[derive(Clone, Copy, Debug)]
pub(super) struct AccessRecord {
    pub epoch: Epoch,
    pub subgroup: u32,
    pub site: AccessSite,
}

impl MemoryAccessKind {
    /// Returns the domain level of the access's own availability or visibility operation.
    pub fn own_domain_level(&self) -> usize {
        if self.is_published { domain_level(self.scope) } else { 0 }
    }
}

impl AccessRecord {
    fn domain_ids(&self) -> (u32, u32, u32) {
        (self.epoch.invocation, self.epoch.workgroup, self.subgroup)
    }
}

/// The properties that accesses of several invocations share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AccessSite {
    pub instruction: u32,
    /// Number of the call stack that led there.
    pub calls: u32,
    pub kind: MemoryAccessKind,
    /// The accessed bytes of the word.
    pub mask: u8,
}

impl AccessSite {
    /// Returns true if a record of one can represent the other, at any position.
    #[inline]
    pub fn has_same_kind(&self, other: &AccessSite) -> bool {
        self.kind == other.kind && self.mask == other.mask
    }

    /// Returns true if no access of `new` can conflict with one of this site, whatever their invocations are.
    #[inline]
    pub fn is_compatible_with(&self, new: &AccessSite) -> bool {
        let (a, b) = (&self.kind, &new.kind);
        // Device scope includes any two invocations, so a group needs no expansion into records.
        let includes_all = |scope: Scope| scope_includes(scope, (0, 0, 0), (1, 1, 1));
        let same = a.operation == b.operation && a.operation != 0 || !a.writes;
        let mutual = a.is_atomic && b.is_atomic && self.mask == new.mask && a.is_wide == b.is_wide;
        !a.writes && !b.writes
            || self.mask & new.mask == 0
            || mutual && same && includes_all(a.scope) && includes_all(b.scope)
    }
}

/// The layout of invocation numbers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct InvocationNumbering {
    /// Invocations per workgroup.
    pub workgroup_size: u32,
    /// Invocations per subgroup.
    pub subgroup_size: u32,
}

impl InvocationNumbering {
    #[inline]
    pub fn record_of(
        self,
        invocation: u32,
        (time, barrier_epoch): (u32, u32),
        site: AccessSite,
    ) -> AccessRecord {
        let (workgroup, local) = (invocation / self.workgroup_size, invocation % self.workgroup_size);
        let (subgroup, lane) = (local / self.subgroup_size, local % self.subgroup_size);
        let epoch = Epoch { invocation, workgroup, time, barrier_epoch, subgroup_start: invocation - lane };
        AccessRecord { epoch, subgroup, site }
    }
}

/// The relation of two conflicting accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AccessOrder {
    Ordered,
    /// Both are atomic, of one size, and in each other's scope.
    MutualAtomics,
    Race,
    /// The earlier access happens before, but its write is not available or not visible.
    Unpublished,
}

/// For each invocation, the time up to which its writes to a location are visible to an acquiring atomic.
pub(super) type SelfVisibleWrites = BTreeMap<u32, u32>;

/// The context of a race check.
pub(super) struct RaceCheck<'v> {
    pub view: &'v HappensBeforeView,
    /// Writes to this location that are visible without a visibility operation.
    pub self_visible: Option<&'v SelfVisibleWrites>,
    /// True if more than workgroup barriers orders invocations.
    pub has_fine_ordering: bool,
    /// The accessing invocation's clock at its last release.
    pub last_release: u32,
    pub numbering: InvocationNumbering,
    /// The collisions that the source language defines.
    pub collisions: DefinedCollisions,
}

/// The unordered accesses of one word that are no data race by the source language.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct DefinedCollisions {
    /// An atomic and a plain load.
    pub of_loads: bool,
    /// An atomic and a plain store.
    pub of_stores: bool,
    /// Two plain stores of the value that memory holds.
    pub of_equal_stores: bool,
    /// Different instructions of lanes of one subgroup, which full lockstep orders.
    pub of_lanes: bool,
}

impl DefinedCollisions {
    fn contains(self, first: &AccessRecord, second: &AccessRecord) -> bool {
        let is_of_lanes = first.domain_ids().1 == second.domain_ids().1
            && first.subgroup == second.subgroup
            && first.site.instruction != second.site.instruction;
        self.of_lanes && is_of_lanes || self.contains_kinds(&first.site.kind, &second.site.kind)
    }

    fn contains_kinds(self, one: &MemoryAccessKind, other: &MemoryAccessKind) -> bool {
        match (one.is_atomic, other.is_atomic) {
            (true, true) => false,
            (false, false) => self.of_equal_stores && one.writes && other.writes,
            (true, false) => {
                if other.writes {
                    self.of_stores
                } else {
                    self.of_loads
                }
            }
            (false, true) => self.contains_kinds(other, one),
        }
    }
}

/// Classifies an access against an earlier one.
pub(super) fn classify_pair(
    earlier: &AccessRecord,
    later: &AccessRecord,
    race_check: &RaceCheck<'_>,
) -> AccessOrder {
    let view = race_check.view;
    let (a, b) = (&earlier.site.kind, &later.site.kind);
    let same = earlier.epoch.invocation == later.epoch.invocation;
    // One invocation's accesses are in program order, disjoint bytes do not overlap, and two reads
    // do not conflict.
    if same || earlier.site.mask & later.site.mask == 0 || !a.writes && !b.writes {
        return AccessOrder::Ordered;
    }
    let (one, other) = (earlier.domain_ids(), later.domain_ids());
    let are_atomics_of_one_size =
        a.is_atomic && b.is_atomic && earlier.site.mask == later.site.mask && a.is_wide == b.is_wide;
    if are_atomics_of_one_size && scope_includes(a.scope, one, other) && scope_includes(b.scope, one, other) {
        return AccessOrder::MutualAtomics;
    }
    let workgroup = later.epoch.workgroup;
    let known = view.ordering.before.includes_epoch(workgroup, &earlier.epoch);
    if !a.is_private && !b.is_private {
        let (moment, near) = (&earlier.epoch, nearest_shared_domain(one, other));
        let ordered = match (a.writes, b.writes) {
            // A read before a write needs neither availability nor visibility, only happens-before
            // (VK-LO-02).
            (false, _) => known,
            (true, true) => view.is_available(workgroup, moment, known, a.own_domain_level(), near),
            (true, false) => {
                view.is_visible(workgroup, moment, known, a.own_domain_level(), b.own_domain_level(), near)
            }
        };
        let self_visible_time = race_check.self_visible.and_then(|seen| seen.get(&earlier.epoch.invocation));
        let is_self_visible =
            a.writes && !b.writes && self_visible_time.is_some_and(|time| *time >= earlier.epoch.time);
        if ordered || is_self_visible {
            return AccessOrder::Ordered;
        }
    }
    // Both are races of the model, which requires location order. A read that happens after a write
    // but cannot see it has another cause and another fix, so it is reported as unpublished.
    if known && a.writes && !b.writes { AccessOrder::Unpublished } else { AccessOrder::Race }
}

/// The result of recording an access.
#[derive(Debug, Default)]
pub(super) struct RaceCheckResult {
    /// Boxed: conflicts are rare.
    pub conflict: Option<Box<(AccessRecord, AccessOrder)>>,
    /// True if a mutual atomic that does not commute with it is unordered with it.
    pub is_unordered: bool,
}

impl RaceCheckResult {
    /// Adds the relation to one earlier record.
    pub fn add_pair(&mut self, record: &AccessRecord, new: &AccessRecord, race_check: &RaceCheck<'_>) {
        match classify_pair(record, new, race_check) {
            AccessOrder::Ordered => {}
            AccessOrder::MutualAtomics => {
                let known =
                    race_check.view.ordering.before.includes_epoch(new.epoch.workgroup, &record.epoch);
                let (old, by) = (record.site.kind, new.site.kind);
                let same = old.operation == by.operation && by.operation != 0;
                self.is_unordered |= !known && !same && old.writes;
            }
            AccessOrder::Race | AccessOrder::Unpublished if race_check.collisions.contains(record, new) => {}
            found => {
                // A race outweighs an unpublished read; otherwise the first conflict is reported.
                let better = match self.conflict.as_ref().map(|conflict| conflict.1) {
                    None => true,
                    Some(AccessOrder::Unpublished) => found == AccessOrder::Race,
                    Some(_) => false,
                };
                if better {
                    self.conflict = Some(Box::new((*record, found)));
                }
            }
        }
    }
}
