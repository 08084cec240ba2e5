//! Who was at a place of memory, and whether two of them race.

use std::collections::BTreeMap;

use litmus::Scope;
use rustc_hash::FxHashMap;

use super::access::WORD;
use super::happens_before::{Epoch, HappensBeforeView, domain_level, nearest_shared_domain, scope_includes};

/// Records of one kind at one place at most, where barriers alone order: of each of so many workgroups.
const MAX_WORKGROUPS_PER_KIND: usize = 3;
/// Records of one kind of one workgroup between two barriers at most, where barriers alone order.
const MAX_PER_WORKGROUP: usize = 2;
/// Records of a place at most.
const MAX_RECORDS: usize = 1 << 12;

/// How memory is accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MemoryAccessKind {
    pub writes: bool,
    pub atomic: bool,
    /// Whether it has more bytes than a word.
    pub wide: bool,
    /// Whether no other invocation is ordered with it.
    pub private: bool,
    /// Whether it makes itself available, or visible, to its scope.
    pub published: bool,
    pub scope: Scope,
    /// Which read-modify-write it is; equal ones give the same sum in any order. 0 for others.
    pub operation: u8,
}

/// An access.
#[derive(Clone, Copy, Debug)]
pub(super) struct AccessRecord {
    pub epoch: Epoch,
    pub subgroup: u32,
    pub site: AccessSite,
}

impl MemoryAccessKind {
    /// The level of the domain up to which it makes itself available, or from which it makes itself visible.
    fn own_domain_level(&self) -> usize {
        if self.published { domain_level(self.scope) } else { 0 }
    }
}

impl AccessRecord {
    fn domain_ids(&self) -> (u32, u32, u32) {
        (self.epoch.invocation, self.epoch.workgroup, self.subgroup)
    }
}

/// What accesses of several invocations may have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AccessSite {
    pub instruction: u32,
    /// The calls that led there, by their number.
    pub calls: u32,
    pub kind: MemoryAccessKind,
    /// Bytes of the word.
    pub mask: u8,
}

impl AccessSite {
    /// Whether what is kept of one access does for the other, wherever they stand in the shader.
    fn has_same_kind(&self, other: &AccessSite) -> bool {
        self.kind == other.kind && self.mask == other.mask
    }
}

/// How many invocations share a group: their numbers differ in the bits below.
const GROUP_SIZE: u32 = u32::BITS;

/// Accesses that differ in their invocations alone.
#[derive(Clone, Copy, Debug)]
struct AccessGroup {
    /// The first of the numbers that it has room for.
    first_invocation: u32,
    /// A bit for each that is in it.
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

    /// The bit of an invocation; 0 where it is not in it.
    fn lane_bit(&self, invocation: u32) -> u32 {
        let room = invocation.checked_sub(self.first_invocation).filter(|lane| *lane < GROUP_SIZE);
        room.map_or(0, |lane| self.lanes & 1 << lane)
    }

    fn can_merge(&self, other: &AccessGroup) -> bool {
        (self.first_invocation, self.time, self.barrier_epoch)
            == (other.first_invocation, other.time, other.barrier_epoch)
            && self.site == other.site
    }

    /// Its accesses, with the bit of each.
    fn records(self, shape: InvocationNumbering) -> impl Iterator<Item = (u32, AccessRecord)> {
        let AccessGroup { first_invocation: first, time, barrier_epoch: epoch, site: way, mut lanes } = self;
        std::iter::from_fn(move || {
            let lane = (lanes != 0).then(|| lanes.trailing_zeros())?;
            lanes &= lanes - 1;
            let invocation = first + lane;
            let workgroup = invocation / shape.workgroup_size;
            let subgroup = invocation % shape.workgroup_size / shape.subgroup_size;
            let first = invocation - invocation % shape.workgroup_size % shape.subgroup_size;
            let moment = Epoch { invocation, workgroup, time, barrier_epoch: epoch, subgroup_start: first };
            Some((1 << lane, AccessRecord { epoch: moment, subgroup, site: way }))
        })
    }
}

/// How invocations are numbered.
#[derive(Clone, Copy, Debug)]
pub(super) struct InvocationNumbering {
    /// Invocations of a workgroup.
    pub workgroup_size: u32,
    /// Invocations of a subgroup.
    pub subgroup_size: u32,
}

/// How two accesses stand to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AccessOrder {
    Ordered,
    /// Both are atomic and in each other's scope.
    MutualAtomics,
    Race,
    /// The earlier happens before, but what it wrote is not available, or not visible.
    Unpublished,
}

/// For invocations up to which of their times what they wrote at a place is seen there.
pub(super) type SelfVisibleWrites = BTreeMap<u32, u32>;

/// What decides how accesses stand to each other.
#[derive(Clone, Copy)]
pub(super) struct RaceCheck<'v> {
    pub view: &'v HappensBeforeView,
    /// Of the place of the access.
    pub self_visible: Option<&'v SelfVisibleWrites>,
    /// Whether more than barriers of workgroups orders invocations.
    pub has_fine_ordering: bool,
    /// The time of the invocation at which it released something last.
    pub last_release: u32,
    pub numbering: InvocationNumbering,
}

/// How an access stands to an earlier one.
pub(super) fn classify_pair(
    earlier: &AccessRecord,
    later: &AccessRecord,
    sight: RaceCheck<'_>,
) -> AccessOrder {
    let view = sight.view;
    let (a, b) = (&earlier.site.kind, &later.site.kind);
    let same = earlier.epoch.invocation == later.epoch.invocation;
    if same || earlier.site.mask & later.site.mask == 0 || !a.writes && !b.writes {
        return AccessOrder::Ordered;
    }
    let (one, other) = (earlier.domain_ids(), later.domain_ids());
    let joined = scope_includes(a.scope, one, other) && scope_includes(b.scope, one, other);
    if a.atomic && b.atomic && joined && earlier.site.mask == later.site.mask && a.wide == b.wide {
        return AccessOrder::MutualAtomics;
    }
    let workgroup = later.epoch.workgroup;
    let known = view.ordering.before.includes_epoch(workgroup, &earlier.epoch);
    if !a.private && !b.private {
        let (moment, near) = (&earlier.epoch, nearest_shared_domain(one, other));
        let ordered = match (a.writes, b.writes) {
            (false, _) => known,
            (true, true) => view.is_available(workgroup, moment, known, a.own_domain_level(), near),
            (true, false) => {
                view.is_visible(workgroup, moment, known, (a.own_domain_level(), b.own_domain_level()), near)
            }
        };
        let seen = sight.self_visible.and_then(|seen| seen.get(&earlier.epoch.invocation));
        let seen = a.writes && !b.writes && seen.is_some_and(|time| *time >= earlier.epoch.time);
        if ordered || seen {
            return AccessOrder::Ordered;
        }
    }
    if known && a.writes && !b.writes { AccessOrder::Unpublished } else { AccessOrder::Race }
}

/// Who was at a word.
#[derive(Clone, Debug, Default)]
pub(super) struct ShadowCell {
    groups: Vec<AccessGroup>,
    writes: bool,
    /// One more than the number of the invocation that changed it last; 0 for nobody.
    last_writer: u32,
}

/// Words of a page: a bit each.
const WORDS_PER_PAGE: u64 = u32::BITS as u64;

/// Who was at the words of a part of an object.
#[derive(Clone, Debug, Default)]
struct ShadowPage {
    /// A bit for each word at which somebody was.
    words: u32,
    /// Of these alone, in their order.
    cells: Vec<ShadowCell>,
}

impl ShadowPage {
    /// Where the cell of a word is, or has to be.
    fn cell_index(&self, word: u64) -> (bool, usize) {
        let bit = 1 << (word % WORDS_PER_PAGE);
        (self.words & bit != 0, (self.words & (bit - 1)).count_ones() as usize)
    }

    fn cell_mut(&mut self, word: u64) -> &mut ShadowCell {
        let (there, index) = self.cell_index(word);
        if !there {
            self.words |= 1 << (word % WORDS_PER_PAGE);
            reserve_one(&mut self.cells);
            self.cells.insert(index, ShadowCell::default());
        }
        &mut self.cells[index]
    }
}

/// Grows by less than vectors do by themselves: there are many, and most are short.
fn reserve_one<T>(all: &mut Vec<T>) {
    if all.len() == all.capacity() {
        all.reserve_exact(1 + all.len() / 4);
    }
}

/// Who was at the words of an object.
#[derive(Clone, Debug, Default)]
pub(super) struct ShadowMemory {
    /// Where somebody was first, by its number: many objects have no other.
    first_page: (u32, ShadowPage),
    other_pages: FxHashMap<u32, ShadowPage>,
}

impl ShadowMemory {
    /// The word of that number.
    pub fn cell_mut(&mut self, word: u64) -> &mut ShadowCell {
        let number = (word / WORDS_PER_PAGE) as u32;
        if self.first_page.1.words == 0 {
            self.first_page.0 = number;
        }
        let page = match self.first_page.0 == number {
            true => &mut self.first_page.1,
            false => self.other_pages.entry(number).or_default(),
        };
        page.cell_mut(word)
    }

    /// Who changed the word of a byte last, and the instruction that did so.
    pub fn last_write(&self, offset: u64) -> Option<(u32, u32)> {
        let word = offset / WORD;
        let number = (word / WORDS_PER_PAGE) as u32;
        let page =
            if self.first_page.0 == number { &self.first_page.1 } else { self.other_pages.get(&number)? };
        let (there, index) = page.cell_index(word);
        let cell = page.cells.get(index).filter(|_| there)?;
        let who = cell.last_writer.checked_sub(1)?;
        let writes = |group: &&AccessGroup| group.site.kind.writes && group.lane_bit(who) != 0;
        let last = cell.groups.iter().filter(writes).max_by_key(|group| group.time)?;
        Some((who, last.site.instruction))
    }

    /// Bytes that were accessed, and bytes that it takes to know by whom.
    pub fn byte_counts(&self) -> (u64, u64) {
        let mut accessed = 0;
        let mut bytes = self.other_pages.capacity() * size_of::<(u32, ShadowPage)>();
        for page in std::iter::once(&self.first_page.1).chain(self.other_pages.values()) {
            bytes += page.cells.capacity() * size_of::<ShadowCell>();
            for cell in &page.cells {
                accessed += cell.groups.iter().fold(0, |all, group| all | group.site.mask).count_ones();
                bytes += cell.groups.capacity() * size_of::<AccessGroup>();
            }
        }
        (u64::from(accessed), bytes as u64)
    }
}

/// What comes of an access.
#[derive(Debug, Default)]
pub(super) struct RaceCheckResult {
    pub conflict: Option<(AccessRecord, AccessOrder)>,
    /// Whether an atomic of another kind, or one that overwrites, is not ordered with it.
    pub unordered: bool,
}

impl ShadowCell {
    /// An invocation left another value here than it found.
    pub fn set_last_writer(&mut self, invocation: u32) {
        self.last_writer = invocation + 1;
    }

    /// Looks at all who were here, and stays.
    pub fn record_access(&mut self, new: &AccessRecord, sight: RaceCheck<'_>) -> RaceCheckResult {
        let mut met = RaceCheckResult::default();
        if self.writes || new.site.kind.writes {
            for group in &self.groups {
                if group.is_compatible_with(new) {
                    continue;
                }
                for (_, record) in group.records(sight.numbering) {
                    met.add_pair(&record, new, sight);
                }
            }
        }
        self.remember(new, sight);
        met
    }

    /// Whose writes, and when, a read sees by itself: later ones of its invocation see them as well.
    pub fn self_visible_writes(
        &self,
        read: &AccessRecord,
        sight: RaceCheck<'_>,
    ) -> impl Iterator<Item = (u32, u32)> {
        let manner = MemoryAccessKind { writes: false, atomic: false, ..read.site.kind };
        let read = AccessRecord { site: AccessSite { kind: manner, ..read.site }, ..*read };
        let groups = self.groups.iter();
        let writes =
            groups.filter(move |group| group.site.kind.writes && group.site.mask & read.site.mask != 0);
        writes
            .flat_map(move |group| group.records(sight.numbering))
            .filter(move |(_, record)| {
                record.epoch.invocation != read.epoch.invocation
                    && classify_pair(record, &read, sight) == AccessOrder::Ordered
            })
            .map(|(_, record)| (record.epoch.invocation, record.epoch.time))
    }

    fn remember(&mut self, new: &AccessRecord, sight: RaceCheck<'_>) {
        let AccessRecord { epoch: moment, site: way, .. } = *new;
        if way.kind.writes && !way.kind.private {
            self.drop_covered(new, sight);
        }
        if way.kind.writes && way.kind.atomic {
            self.publish_earlier_writes(new, sight);
        }
        let mut mine = self.groups.iter_mut().filter(|group| group.site.has_same_kind(&way));
        if let Some(group) = mine.find(|group| group.lane_bit(moment.invocation) != 0) {
            if group.time == moment.time && group.barrier_epoch == moment.barrier_epoch && group.site == way {
                return;
            }
            group.lanes &= !group.lane_bit(moment.invocation);
            self.groups.retain(|group| group.lanes != 0);
            self.push_record(new);
            return;
        }
        if !sight.has_fine_ordering && !self.has_room_for(new, sight.numbering) {
            return;
        }
        if self.groups.iter().map(|group| group.lanes.count_ones() as usize).sum::<usize>() < MAX_RECORDS {
            self.writes |= way.kind.writes;
            self.push_record(new);
        }
    }

    /// Drops those for whom a write does as well.
    fn drop_covered(&mut self, new: &AccessRecord, sight: RaceCheck<'_>) {
        let plain = MemoryAccessKind { writes: false, atomic: false, published: false, ..new.site.kind };
        let read = AccessRecord { site: AccessSite { kind: plain, ..new.site }, ..*new };
        for group in &mut self.groups {
            let (old, by) = (group.site, new.site);
            // Whoever conflicts with the earlier is to conflict with the new one, which atomics do less, and nobody does with what is
            // its own: a read of the invocation behind it may still not see the earlier.
            let stronger = !by.kind.atomic || old.kind.atomic && old.kind.scope == by.kind.scope;
            // What comes no further by itself than the earlier.
            let further = by.kind.own_domain_level() > old.kind.own_domain_level() && old.kind.writes;
            if old.mask & !by.mask != 0 || old.kind.private || !stronger {
                continue;
            }
            for (bit, record) in group.records(sight.numbering) {
                let mine = record.epoch.invocation == new.epoch.invocation;
                if further && !mine {
                    continue;
                }
                let known =
                    mine || sight.view.ordering.before.includes_epoch(new.epoch.workgroup, &record.epoch);
                let ordered = mine
                    || known
                        && match classify_pair(&record, new, sight) {
                            AccessOrder::Ordered => true,
                            // Of atomics as well that took turns, as with a lock: who comes behind the new one comes behind both, and who
                            // does not is as little in order with the new one.
                            AccessOrder::MutualAtomics => {
                                let alike = [0, old.kind.operation].contains(&by.kind.operation);
                                alike && (old.kind.published || !old.kind.writes)
                            }
                            AccessOrder::Race | AccessOrder::Unpublished => false,
                        };
                if ordered && (mine || classify_pair(&record, &read, sight) == AccessOrder::Ordered) {
                    group.lanes &= !bit;
                }
            }
        }
        self.groups.retain(|group| group.lanes != 0);
    }

    /// What an atomic makes available is its place: what its invocation wrote there before as well. Whoever knows of one then knows of
    /// the other, where nothing was released between.
    fn publish_earlier_writes(&mut self, new: &AccessRecord, sight: RaceCheck<'_>) {
        let mut moved = Vec::new();
        for group in &mut self.groups {
            let MemoryAccessKind { writes, atomic, private, published, .. } = group.site.kind;
            let covered = group.site.mask & !new.site.mask == 0 && group.time > sight.last_release;
            let bit = group.lane_bit(new.epoch.invocation);
            if bit != 0 && covered && writes && !atomic && !private && !published {
                group.lanes &= !bit;
                let manner =
                    MemoryAccessKind { published: true, scope: new.site.kind.scope, ..group.site.kind };
                moved.push(AccessRecord { site: AccessSite { kind: manner, ..group.site }, ..*new });
            }
        }
        if !moved.is_empty() {
            self.groups.retain(|group| group.lanes != 0);
            moved.iter().for_each(|record| self.push_record(record));
        }
    }

    /// Whether a record is kept where barriers of workgroups alone order, by how many there are of its kind; those of an earlier barrier
    /// make room.
    fn has_room_for(&mut self, new: &AccessRecord, shape: InvocationNumbering) -> bool {
        let mut workgroups: Vec<u32> = Vec::new();
        let mut each = 0;
        for group in self.groups.iter_mut().filter(|group| group.site.has_same_kind(&new.site)) {
            for (bit, record) in group.records(shape) {
                if record.epoch.workgroup != new.epoch.workgroup {
                    if !workgroups.contains(&record.epoch.workgroup) {
                        workgroups.push(record.epoch.workgroup);
                    }
                    continue;
                }
                if record.epoch.barrier_epoch < new.epoch.barrier_epoch
                    && !new.site.kind.private
                    && !new.site.kind.writes
                {
                    group.lanes &= !bit;
                    self.groups.retain(|group| group.lanes != 0);
                    return true;
                }
                each += 1;
            }
        }
        each < MAX_PER_WORKGROUP && (each > 0 || workgroups.len() < MAX_WORKGROUPS_PER_KIND)
    }

    fn push_record(&mut self, new: &AccessRecord) {
        let one = AccessGroup::from_record(new);
        if let Some(group) = self.groups.iter_mut().find(|group| group.can_merge(&one)) {
            group.lanes |= one.lanes;
            return;
        }
        reserve_one(&mut self.groups);
        self.groups.push(one);
    }
}

impl AccessGroup {
    /// Whether nothing comes of an access, whoever the invocations are.
    fn is_compatible_with(&self, new: &AccessRecord) -> bool {
        let (a, b) = (&self.site.kind, &new.site.kind);
        let everywhere = |scope: Scope| scope_includes(scope, (0, 0, 0), (1, 1, 1));
        let same = a.operation == b.operation && a.operation != 0 || !a.writes;
        let mutual = a.atomic && b.atomic && self.site.mask == new.site.mask && a.wide == b.wide;
        !a.writes && !b.writes
            || self.site.mask & new.site.mask == 0
            || mutual && same && everywhere(a.scope) && everywhere(b.scope)
    }
}

impl RaceCheckResult {
    /// Looks at one who was there.
    fn add_pair(&mut self, record: &AccessRecord, new: &AccessRecord, sight: RaceCheck<'_>) {
        match classify_pair(record, new, sight) {
            AccessOrder::Ordered => {}
            AccessOrder::MutualAtomics => {
                let known = sight.view.ordering.before.includes_epoch(new.epoch.workgroup, &record.epoch);
                let (old, by) = (record.site.kind, new.site.kind);
                let same = old.operation == by.operation && by.operation != 0;
                self.unordered |= !known && !same && old.writes;
            }
            found => {
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
