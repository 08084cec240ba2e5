//! Shadow memory: the access history of every word, and the race check.
//!
//! As in FastTrack, most accesses need no history: a write that is ordered after all earlier accesses
//! replaces them. Unlike FastTrack, reads of many invocations at one site are one record with a lane mask,
//! because a grid executes the same instruction thousands of times.
//!
//! The check reports no false race. It may miss one if a bound on the number of records drops an access.

use std::collections::BTreeMap;
use std::iter::Chain;
use std::option::IterMut as OptionIterMut;
use std::slice::IterMut as SliceIterMut;

use litmus::Scope;
use rustc_hash::FxHashMap;

use super::happens_before::{Epoch, HappensBeforeView, domain_level, nearest_shared_domain, scope_includes};

/// Bytes per word of the access history.
pub(super) const WORD_BYTES: u64 = 4;
/// If only barriers order invocations, upper bound on the workgroups with records of one kind at a word.
const MAX_WORKGROUPS_PER_KIND: usize = 3;
/// If only barriers order invocations, upper bound on records of one kind and workgroup between two barriers.
const MAX_PER_WORKGROUP: usize = 2;
/// Upper bound on the records of a word.
const MAX_RECORDS: usize = 1 << 12;

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
    fn own_domain_level(&self) -> usize {
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
    fn has_same_kind(&self, other: &AccessSite) -> bool {
        self.kind == other.kind && self.mask == other.mask
    }
}

/// Invocations per group: their numbers differ only in the low bits.
const GROUP_SIZE: u32 = u32::BITS;

/// Accesses that differ only in their invocation.
#[derive(Clone, Copy, Debug)]
struct AccessGroup {
    /// The first invocation that the mask covers.
    first_invocation: u32,
    /// One bit for each invocation with the access.
    lanes: u32,
    time: u32,
    barrier_epoch: u32,
    site: AccessSite,
}

impl AccessGroup {
    fn from_record(record: &AccessRecord) -> AccessGroup {
        let Epoch { invocation, time, barrier_epoch: epoch, .. } = record.epoch;
        let lane = invocation % GROUP_SIZE;
        AccessGroup {
            first_invocation: invocation - lane,
            lanes: 1 << lane,
            time,
            barrier_epoch: epoch,
            site: record.site,
        }
    }

    /// Returns the bit of an invocation; 0 if it has no record.
    fn lane_bit(&self, invocation: u32) -> u32 {
        let room = invocation.checked_sub(self.first_invocation).filter(|lane| *lane < GROUP_SIZE);
        room.map_or(0, |lane| self.lanes & 1 << lane)
    }

    fn can_merge(&self, other: &AccessGroup) -> bool {
        (self.first_invocation, self.time, self.barrier_epoch)
            == (other.first_invocation, other.time, other.barrier_epoch)
            && self.site == other.site
    }

    /// Expands the group into records, each with its bit.
    fn records(self, shape: InvocationNumbering) -> impl Iterator<Item = (u32, AccessRecord)> {
        let AccessGroup { first_invocation: first, time, barrier_epoch: epoch, site: way, mut lanes } = self;
        std::iter::from_fn(move || {
            let lane = (lanes != 0).then(|| lanes.trailing_zeros())?;
            lanes &= lanes - 1;
            let invocation = first + lane;
            let workgroup = invocation / shape.workgroup_size;
            let subgroup = invocation % shape.workgroup_size / shape.subgroup_size;
            let first = invocation - invocation % shape.workgroup_size % shape.subgroup_size;
            let access_epoch =
                Epoch { invocation, workgroup, time, barrier_epoch: epoch, subgroup_start: first };
            Some((1 << lane, AccessRecord { epoch: access_epoch, subgroup, site: way }))
        })
    }
}

/// The layout of invocation numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct InvocationNumbering {
    /// Invocations per workgroup.
    pub workgroup_size: u32,
    /// Invocations per subgroup.
    pub subgroup_size: u32,
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
#[derive(Clone, Copy)]
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
#[derive(Clone, Copy, Default)]
pub(super) struct DefinedCollisions {
    /// An atomic and a plain load.
    pub of_loads: bool,
    /// An atomic and a plain store.
    pub of_stores: bool,
    /// Two plain stores of the value that memory holds.
    pub of_equal_stores: bool,
}

impl DefinedCollisions {
    fn contains(self, one: &MemoryAccessKind, other: &MemoryAccessKind) -> bool {
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
            (false, true) => self.contains(other, one),
        }
    }
}

/// Classifies an access against an earlier one.
pub(super) fn classify_pair(
    earlier: &AccessRecord,
    later: &AccessRecord,
    race_check: RaceCheck<'_>,
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
    let joined = scope_includes(a.scope, one, other) && scope_includes(b.scope, one, other);
    if a.is_atomic && b.is_atomic && joined && earlier.site.mask == later.site.mask && a.is_wide == b.is_wide
    {
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
                view.is_visible(workgroup, moment, known, (a.own_domain_level(), b.own_domain_level()), near)
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

/// A list of groups. The first one needs no allocation: most words have no other.
#[derive(Clone, Debug, Default)]
struct AccessGroups {
    /// `None` only for an empty list.
    first: Option<AccessGroup>,
    others: Vec<AccessGroup>,
}

impl AccessGroups {
    #[inline]
    fn iter(&self) -> impl Iterator<Item = &AccessGroup> {
        self.first.iter().chain(&self.others)
    }

    #[inline]
    fn iter_mut(&mut self) -> Chain<OptionIterMut<'_, AccessGroup>, SliceIterMut<'_, AccessGroup>> {
        self.first.iter_mut().chain(&mut self.others)
    }

    fn push(&mut self, group: AccessGroup) {
        match self.first {
            None => self.first = Some(group),
            Some(_) => {
                // There are many lists, and most are short.
                if self.others.len() == self.others.capacity() {
                    self.others.reserve_exact(1 + self.others.len() / 4);
                }
                self.others.push(group);
            }
        }
    }

    fn remove_empty(&mut self) {
        self.others.retain(|group| group.lanes != 0);
        if self.first.take_if(|group| group.lanes == 0).is_some() && !self.others.is_empty() {
            self.first = Some(self.others.remove(0));
        }
    }
}

/// The access history of one word.
#[derive(Clone, Debug, Default)]
pub(super) struct ShadowCell {
    groups: AccessGroups,
    has_write: bool,
    /// The invocation that last changed the value, plus one; 0 for none.
    last_writer: u32,
}

/// Words per page, one bit each.
const WORDS_PER_PAGE: u64 = u32::BITS as u64;

/// The access history of a range of words.
#[derive(Clone, Debug, Default)]
struct ShadowPage {
    /// One bit for each word with a record.
    words: u32,
    /// The history of these words, in ascending order.
    cells: Vec<ShadowCell>,
}

impl ShadowPage {
    /// Returns whether a word has a history, and its index or insertion point.
    fn cell_index(&self, word: u64) -> (bool, usize) {
        let bit = 1 << (word % WORDS_PER_PAGE);
        // The rank of the word among those with a history is its index in `cells`.
        (self.words & bit != 0, (self.words & (bit - 1)).count_ones() as usize)
    }

    fn cell_mut(&mut self, word: u64) -> &mut ShadowCell {
        let (there, index) = self.cell_index(word);
        if !there {
            self.words |= 1 << (word % WORDS_PER_PAGE);
            // Neighbouring words are often accessed together.
            if self.cells.len() == self.cells.capacity() {
                self.cells.reserve_exact(self.cells.len().max(1));
            }
            self.cells.insert(index, ShadowCell::default());
        }
        &mut self.cells[index]
    }
}

/// The access history of a memory object.
#[derive(Clone, Debug, Default)]
pub(super) struct ShadowMemory {
    /// The first page that was used, with its number; many objects have only this one.
    first_page: (u32, ShadowPage),
    other_pages: FxHashMap<u32, ShadowPage>,
}

impl ShadowMemory {
    /// Returns the history of a word, creating it if needed.
    pub fn cell_mut(&mut self, word: u64) -> &mut ShadowCell {
        let number = (word / WORDS_PER_PAGE) as u32;
        // An empty page may take any number.
        if self.first_page.1.words == 0 {
            self.first_page.0 = number;
        }
        let page = match self.first_page.0 == number {
            true => &mut self.first_page.1,
            false => self.other_pages.entry(number).or_default(),
        };
        page.cell_mut(word)
    }

    /// Returns the invocation and instruction that last changed the word at a byte offset.
    pub fn last_write(&self, offset: u64) -> Option<(u32, u32)> {
        let word = offset / WORD_BYTES;
        let number = (word / WORDS_PER_PAGE) as u32;
        let page =
            if self.first_page.0 == number { &self.first_page.1 } else { self.other_pages.get(&number)? };
        let (there, index) = page.cell_index(word);
        let cell = page.cells.get(index).filter(|_| there)?;
        let writer = cell.last_writer.checked_sub(1)?;
        let writes = |group: &&AccessGroup| group.site.kind.writes && group.lane_bit(writer) != 0;
        let last = cell.groups.iter().filter(writes).max_by_key(|group| group.time)?;
        Some((writer, last.site.instruction))
    }

    /// Returns the number of accessed bytes and the size of the history.
    pub fn byte_counts(&self) -> (u64, u64) {
        let mut accessed = 0;
        let mut bytes = self.other_pages.capacity() * size_of::<(u32, ShadowPage)>();
        for page in std::iter::once(&self.first_page.1).chain(self.other_pages.values()) {
            bytes += page.cells.capacity() * size_of::<ShadowCell>();
            for cell in &page.cells {
                accessed += cell.groups.iter().fold(0, |all, group| all | group.site.mask).count_ones();
                bytes += cell.groups.others.capacity() * size_of::<AccessGroup>();
            }
        }
        (u64::from(accessed), bytes as u64)
    }
}

/// The result of recording an access.
#[derive(Debug, Default)]
pub(super) struct RaceCheckResult {
    pub conflict: Option<(AccessRecord, AccessOrder)>,
    /// True if a mutual atomic that does not commute with it is unordered with it.
    pub is_unordered: bool,
}

impl ShadowCell {
    /// Records that an invocation changed the value.
    pub fn set_last_writer(&mut self, invocation: u32) {
        self.last_writer = invocation + 1;
    }

    /// Checks an access against the history and records it.
    pub fn record_access(&mut self, new: &AccessRecord, sight: RaceCheck<'_>) -> RaceCheckResult {
        let mut result = RaceCheckResult::default();
        // Two reads never conflict, so a word without writes needs no scan.
        if self.has_write || new.site.kind.writes {
            for group in self.groups.iter() {
                if group.is_compatible_with(new) {
                    continue;
                }
                for (_, record) in group.records(sight.numbering) {
                    result.add_pair(&record, new, sight);
                }
            }
        }
        self.insert_record(new, sight);
        result
    }

    /// Returns the writes that a read sees through its own visibility operation, with their times.
    ///
    /// Later reads of the same invocation see them too.
    pub fn self_visible_writes(
        &self,
        read: &AccessRecord,
        race_check: RaceCheck<'_>,
    ) -> impl Iterator<Item = (u32, u32)> {
        // As a plain read: an atomic read would be mutually ordered with atomic writes and see no
        // order.
        let plain_kind = MemoryAccessKind { writes: false, is_atomic: false, ..read.site.kind };
        let read = AccessRecord { site: AccessSite { kind: plain_kind, ..read.site }, ..*read };
        let groups = self.groups.iter();
        let writes =
            groups.filter(move |group| group.site.kind.writes && group.site.mask & read.site.mask != 0);
        writes
            .flat_map(move |group| group.records(race_check.numbering))
            .filter(move |(_, record)| {
                record.epoch.invocation != read.epoch.invocation
                    && classify_pair(record, &read, race_check) == AccessOrder::Ordered
            })
            .map(|(_, record)| (record.epoch.invocation, record.epoch.time))
    }

    fn insert_record(&mut self, new: &AccessRecord, race_check: RaceCheck<'_>) {
        let AccessRecord { epoch: moment, site: way, .. } = *new;
        if way.kind.writes && !way.kind.is_private {
            self.drop_covered(new, race_check);
        }
        if way.kind.writes && way.kind.is_atomic {
            self.publish_earlier_writes(new, race_check);
        }
        let mut same_kind = self.groups.iter_mut().filter(|group| group.site.has_same_kind(&way));
        // The new record replaces the previous one of the same kind and invocation: accesses that are ordered
        // after the new access are ordered after both.
        if let Some(group) = same_kind.find(|group| group.lane_bit(moment.invocation) != 0) {
            if group.time == moment.time && group.barrier_epoch == moment.barrier_epoch && group.site == way {
                return;
            }
            group.lanes &= !group.lane_bit(moment.invocation);
            self.groups.remove_empty();
            self.push_record(new);
            return;
        }
        if !race_check.has_fine_ordering && !self.has_room_for(new, race_check.numbering) {
            return;
        }
        // The bound limits the cost of a check. Beyond it races may be missed, but none is
        // invented.
        if self.groups.iter().map(|group| group.lanes.count_ones() as usize).sum::<usize>() < MAX_RECORDS {
            self.has_write |= way.kind.writes;
            self.push_record(new);
        }
    }

    /// Drops earlier accesses that a new write represents.
    fn drop_covered(&mut self, new: &AccessRecord, race_check: RaceCheck<'_>) {
        let plain =
            MemoryAccessKind { writes: false, is_atomic: false, is_published: false, ..new.site.kind };
        let read = AccessRecord { site: AccessSite { kind: plain, ..new.site }, ..*new };
        for group in self.groups.iter_mut() {
            let (old, by) = (group.site, new.site);
            // Dropping is sound only if every access that conflicts with the old record also conflicts with
            // the new one. An atomic conflicts with less than a plain access. A read of the same invocation
            // may still not see the old write.
            let stronger = !by.kind.is_atomic || old.kind.is_atomic && old.kind.scope == by.kind.scope;
            // A wider availability operation would hide that the old write reaches fewer domains.
            let further = by.kind.own_domain_level() > old.kind.own_domain_level() && old.kind.writes;
            if old.mask & !by.mask != 0 || old.kind.is_private || !stronger {
                continue;
            }
            for (bit, record) in group.records(race_check.numbering) {
                let is_own = record.epoch.invocation == new.epoch.invocation;
                if further && !is_own {
                    continue;
                }
                let happens_before = is_own
                    || race_check.view.ordering.before.includes_epoch(new.epoch.workgroup, &record.epoch);
                let ordered = is_own
                    || happens_before
                        && match classify_pair(&record, new, race_check) {
                            AccessOrder::Ordered => true,
                            // Also for mutual atomics that took turns, as in a lock: an access ordered after
                            // the new one is ordered after both, and an access that is not races with the new
                            // one too.
                            AccessOrder::MutualAtomics => {
                                let is_same_operation = [0, old.kind.operation].contains(&by.kind.operation);
                                is_same_operation && (old.kind.is_published || !old.kind.writes)
                            }
                            AccessOrder::Race | AccessOrder::Unpublished => false,
                        };
                if ordered && (is_own || classify_pair(&record, &read, race_check) == AccessOrder::Ordered) {
                    group.lanes &= !bit;
                }
            }
        }
        self.groups.remove_empty();
    }

    /// Marks earlier plain writes of the invocation as published by its atomic.
    ///
    /// An availability operation covers the location, not just one write. This holds only without a release
    /// in between.
    fn publish_earlier_writes(&mut self, new: &AccessRecord, race_check: RaceCheck<'_>) {
        let mut moved = Vec::new();
        for group in self.groups.iter_mut() {
            let MemoryAccessKind {
                writes,
                is_atomic: atomic,
                is_private: private,
                is_published: published,
                ..
            } = group.site.kind;
            let covered = group.site.mask & !new.site.mask == 0 && group.time > race_check.last_release;
            let bit = group.lane_bit(new.epoch.invocation);
            if bit != 0 && covered && writes && !atomic && !private && !published {
                group.lanes &= !bit;
                let published_kind =
                    MemoryAccessKind { is_published: true, scope: new.site.kind.scope, ..group.site.kind };
                moved.push(AccessRecord { site: AccessSite { kind: published_kind, ..group.site }, ..*new });
            }
        }
        if !moved.is_empty() {
            self.groups.remove_empty();
            moved.iter().for_each(|record| self.push_record(record));
        }
    }

    /// Returns true if a record is needed although only barriers order invocations.
    ///
    /// A few records per kind and barrier epoch are enough there, and those of an earlier epoch make room.
    fn has_room_for(&mut self, new: &AccessRecord, shape: InvocationNumbering) -> bool {
        let mut workgroups: Vec<u32> = Vec::new();
        let mut count = 0;
        // The oldest write of an earlier barrier epoch: the epoch, the group and the bit in its mask.
        let mut oldest: Option<(u32, usize, u32)> = None;
        let groups = self.groups.iter().enumerate();
        for (index, group) in groups.filter(|(_, group)| group.site.has_same_kind(&new.site)) {
            for (bit, record) in group.records(shape) {
                if record.epoch.workgroup != new.epoch.workgroup {
                    if !workgroups.contains(&record.epoch.workgroup) {
                        workgroups.push(record.epoch.workgroup);
                    }
                    continue;
                }
                count += 1;
                let epoch = record.epoch.barrier_epoch;
                if epoch < new.epoch.barrier_epoch && oldest.is_none_or(|oldest| epoch < oldest.0) {
                    oldest = Some((epoch, index, bit));
                }
            }
        }
        // A read of an earlier epoch is ordered with all later accesses of its workgroup, so the newer read is
        // the more useful one. An earlier write may be unpublished for some of them, so it stays as long as
        // there is room. Nothing orders private accesses.
        let is_full = count >= MAX_PER_WORKGROUP;
        let replaced = oldest.filter(|_| !new.site.kind.is_private && (is_full || !new.site.kind.writes));
        if let Some((_, index, bit)) = replaced {
            self.groups.iter_mut().nth(index).into_iter().for_each(|group| group.lanes &= !bit);
            self.groups.remove_empty();
            return true;
        }
        !is_full && (count > 0 || workgroups.len() < MAX_WORKGROUPS_PER_KIND)
    }

    fn push_record(&mut self, new: &AccessRecord) {
        let one = AccessGroup::from_record(new);
        if let Some(group) = self.groups.iter_mut().find(|group| group.can_merge(&one)) {
            group.lanes |= one.lanes;
            return;
        }
        self.groups.push(one);
    }
}

impl AccessGroup {
    /// Returns true if no invocation's `new` access can conflict with this group.
    fn is_compatible_with(&self, new: &AccessRecord) -> bool {
        let (a, b) = (&self.site.kind, &new.site.kind);
        // Device scope includes any two invocations, so the group needs no expansion into records.
        let includes_all = |scope: Scope| scope_includes(scope, (0, 0, 0), (1, 1, 1));
        let same = a.operation == b.operation && a.operation != 0 || !a.writes;
        let mutual = a.is_atomic && b.is_atomic && self.site.mask == new.site.mask && a.is_wide == b.is_wide;
        !a.writes && !b.writes
            || self.site.mask & new.site.mask == 0
            || mutual && same && includes_all(a.scope) && includes_all(b.scope)
    }
}

impl RaceCheckResult {
    /// Adds the relation to one earlier record.
    fn add_pair(&mut self, record: &AccessRecord, new: &AccessRecord, race_check: RaceCheck<'_>) {
        match classify_pair(record, new, race_check) {
            AccessOrder::Ordered => {}
            AccessOrder::MutualAtomics => {
                let known =
                    race_check.view.ordering.before.includes_epoch(new.epoch.workgroup, &record.epoch);
                let (old, by) = (record.site.kind, new.site.kind);
                let same = old.operation == by.operation && by.operation != 0;
                self.is_unordered |= !known && !same && old.writes;
            }
            AccessOrder::Race if race_check.collisions.contains(&record.site.kind, &new.site.kind) => {}
            found => {
                // A race outweighs an unpublished read; otherwise the first conflict is reported.
                let better = match &self.conflict {
                    None => true,
                    Some((_, AccessOrder::Unpublished)) => found == AccessOrder::Race,
                    Some(_) => false,
                };
                if better {
                    self.conflict = Some((*record, found));
                }
            }
        }
    }
}
