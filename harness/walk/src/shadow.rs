//! Shadow memory: the access history of every word, and the race check.
//!
//! As in FastTrack, most accesses need no history: a write that is ordered after all earlier accesses
//! replaces them. Unlike FastTrack, reads of many invocations at one site are one record with a lane mask,
//! because a grid executes the same instruction thousands of times.
//!
//! A race may be missed if a bound on the number of records drops an access.

use rustc_hash::FxHashMap;

use super::happens_before::Epoch;
use super::race_check::{
    AccessOrder, AccessRecord, AccessSite, DefinedCollisions, InvocationNumbering, MemoryAccessKind,
    RaceCheck, RaceCheckResult, classify_pair,
};

/// Bytes per word of the access history.
pub(super) const WORD_BYTES: u64 = 4;
/// If only barriers order invocations, upper bound on the workgroups with records of one kind at a word.
const MAX_WORKGROUPS_PER_KIND: usize = 3;
/// If only barriers order invocations, upper bound on records of one kind and workgroup between two barriers.
const MAX_PER_WORKGROUP: usize = 2;
/// Upper bound on the records of a word.
const MAX_RECORDS: usize = 1 << 12;

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
    fn new(invocation: u32, (time, barrier_epoch): (u32, u32), site: AccessSite) -> AccessGroup {
        let lane = invocation % GROUP_SIZE;
        AccessGroup { first_invocation: invocation - lane, lanes: 1 << lane, time, barrier_epoch, site }
    }

    /// Returns the bit of an invocation; 0 if it has no record.
    #[inline]
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
        let AccessGroup { first_invocation, time, barrier_epoch, site, mut lanes } = self;
        std::iter::from_fn(move || {
            let lane = (lanes != 0).then(|| lanes.trailing_zeros())?;
            lanes &= lanes - 1;
            Some((1 << lane, shape.record_of(first_invocation + lane, (time, barrier_epoch), site)))
        })
    }
}

/// The access history of one word.
#[derive(Clone, Debug, Default)]
pub(super) struct ShadowCell {
    groups: Vec<AccessGroup>,
    has_write: bool,
    /// The invocation that last changed the value, plus one; 0 for none.
    last_writer: u32,
}

/// An access that changes nothing about a history, whichever invocation without a record of the subgroup makes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SurplusAccess {
    subgroup_start: u32,
    time: u32,
    barrier_epoch: u32,
    kind: MemoryAccessKind,
    mask: u8,
}

impl SurplusAccess {
    fn of_record(record: &AccessRecord) -> SurplusAccess {
        let Epoch { subgroup_start, time, barrier_epoch, .. } = record.epoch;
        SurplusAccess { subgroup_start, time, barrier_epoch, kind: record.site.kind, mask: record.site.mask }
    }
}

/// Words per page, one bit each.
const WORDS_PER_PAGE: u64 = u32::BITS as u64;
/// Runs per page from which on a word without a run has a cell.
const MAX_RUNS: usize = 8;
/// The shift of a run of one invocation.
const ONE_INVOCATION: u8 = WORDS_PER_PAGE.trailing_zeros() as u8;

/// Accesses of neighbouring words that differ only in word and invocation, as lanes make them together.
///
/// A run starts with one invocation for all words (`shift` 5). The next invocation decides how many words each has.
#[derive(Clone, Copy, Debug)]
struct AccessRun {
    /// One bit for each word, and the bit number of the first word that was accessed.
    words: u32,
    start: u8,
    /// Each invocation accesses 2^`shift` words.
    shift: u8,
    /// The words whose value it changed last.
    changed: u32,
    first_invocation: u32,
    time: u32,
    barrier_epoch: u32,
    site: AccessSite,
}

impl AccessRun {
    fn from_record(word: u32, record: &AccessRecord) -> AccessRun {
        let Epoch { invocation, time, barrier_epoch, .. } = record.epoch;
        AccessRun {
            words: 1 << word,
            start: word as u8,
            shift: ONE_INVOCATION,
            changed: 0,
            first_invocation: invocation,
            time,
            barrier_epoch,
            site: record.site,
        }
    }

    #[inline]
    fn contains(&self, word: u32) -> bool {
        self.words >> word & 1 != 0
    }

    /// Returns the invocation that accesses a word at or after the start.
    #[inline]
    fn invocation_at(&self, word: u32) -> u32 {
        self.first_invocation + ((word - u32::from(self.start)) >> self.shift)
    }

    fn group_at(&self, word: u32) -> AccessGroup {
        AccessGroup::new(self.invocation_at(word), (self.time, self.barrier_epoch), self.site)
    }

    /// Adds a word, if the record differs from the others only in word and invocation.
    fn extend(&mut self, word: u32, record: &AccessRecord) -> bool {
        let Epoch { invocation, time, barrier_epoch, .. } = record.epoch;
        let Some(distance) = word.checked_sub(self.start.into()) else { return false };
        if (self.time, self.barrier_epoch) != (time, barrier_epoch) || self.site != record.site {
            return false;
        }
        let is_whole = self.words >> self.start == (1 << distance) - 1;
        if invocation != self.invocation_at(word)
            && is_whole
            && self.shift == ONE_INVOCATION
            && distance.is_power_of_two()
        {
            self.shift = distance.trailing_zeros() as u8;
        }
        let fits = invocation == self.invocation_at(word);
        self.words |= u32::from(fits) << word;
        fits
    }
}

/// The access history of a range of words.
#[derive(Clone, Debug, Default)]
struct ShadowPage {
    /// The words with a history in `runs`, of at most one record per kind.
    in_runs: u32,
    /// The words with a history in `cells`.
    in_cells: u32,
    /// In the order of the records of each word.
    runs: Vec<AccessRun>,
    /// The histories of these words, in ascending order.
    cells: Vec<ShadowCell>,
    /// The last access of a word with a cell, if it conflicted with none and is not recorded, as enough others of its kind
    /// are.
    surplus: Option<(u32, SurplusAccess)>,
}

impl ShadowPage {
    /// Returns the index of a word among those with a cell.
    fn cell_index(&self, word: u32) -> usize {
        (self.in_cells & ((1 << word) - 1)).count_ones() as usize
    }

    /// Returns the history of a word as a cell, creating it if needed.
    fn cell_mut(&mut self, word: u32) -> &mut ShadowCell {
        let index = self.cell_index(word);
        if self.in_cells >> word & 1 == 0 {
            self.in_cells |= 1 << word;
            self.in_runs &= !(1 << word);
            // Neighbouring words are often accessed together.
            if self.cells.len() == self.cells.capacity() {
                self.cells.reserve_exact(1 + self.cells.len() / 2);
            }
            let mut cell = ShadowCell::default();
            for run in self.runs.iter_mut().filter(|run| run.contains(word)) {
                let group = run.group_at(word);
                cell.has_write |= group.site.kind.writes;
                if run.changed >> word & 1 != 0 {
                    cell.set_last_writer(run.invocation_at(word));
                }
                cell.push_group(group);
                run.words &= !(1 << word);
            }
            self.runs.retain(|run| run.words != 0);
            if self.runs.is_empty() {
                self.runs = Vec::new();
            }
            self.cells.insert(index, cell);
        }
        &mut self.cells[index]
    }

    /// Records an access as part of a run. Returns `None` if the history of the word needs a cell.
    fn record_in_run(
        &mut self,
        word: u32,
        new: &AccessRecord,
        changes: bool,
        race_check: &RaceCheck<'_>,
    ) -> Option<RaceCheckResult> {
        let mut result = RaceCheckResult::default();
        if self.in_cells >> word & 1 != 0 || new.site.kind.is_atomic {
            return None;
        }
        // As in `drop_covered`, a write replaces what its invocation did to the word before.
        let covers = new.site.kind.writes && !new.site.kind.is_private;
        // The first run after those with the word: its records stay in order.
        let mut next = 0;
        if self.in_runs >> word & 1 != 0 {
            for (index, run) in self.runs.iter().enumerate().filter(|(_, run)| run.contains(word)) {
                if !run.site.is_compatible_with(&new.site) {
                    let times = (run.time, run.barrier_epoch);
                    let record = race_check.numbering.record_of(run.invocation_at(word), times, run.site);
                    result.add_pair(&record, new, race_check);
                }
                next = index;
                if covers {
                    let is_own = run.invocation_at(word) == new.epoch.invocation;
                    let is_covered = !run.site.kind.is_private && run.site.mask & !new.site.mask == 0;
                    if !is_own || !is_covered {
                        return None;
                    }
                } else if run.site.has_same_kind(&new.site) {
                    let is_known = run.invocation_at(word) == new.epoch.invocation
                        && (run.time, run.barrier_epoch) == (new.epoch.time, new.epoch.barrier_epoch)
                        && run.site == new.site;
                    if !is_known {
                        return None;
                    }
                    next = usize::MAX;
                    break;
                }
            }
        }
        let bit = 1 << word;
        let mut changes = changes;
        if next < usize::MAX {
            if covers && self.in_runs & bit != 0 {
                // The invocation that changed the value last is the same.
                for run in &mut self.runs {
                    changes |= run.changed & bit != 0;
                    run.words &= !bit;
                }
                self.runs.retain(|run| run.words != 0);
                next = 0;
            }
            if !self.runs.iter_mut().skip(next).any(|run| !run.contains(word) && run.extend(word, new)) {
                if self.runs.len() >= MAX_RUNS && !covers {
                    return None;
                }
                if self.runs.len() == self.runs.capacity() {
                    self.runs.reserve_exact(1 + self.runs.len() / 2);
                }
                self.runs.push(AccessRun::from_record(word, new));
            }
            self.in_runs |= bit;
        }
        if changes {
            let is_of = |run: &AccessRun| run.site == new.site && run.contains(word);
            for run in &mut self.runs {
                run.changed = run.changed & !bit | u32::from(is_of(run)) << word;
            }
        }
        Some(result)
    }
}

/// The access history of a memory object.
#[derive(Clone, Debug, Default)]
pub(super) struct ShadowMemory {
    /// The first page that was used, with its number; many objects have only this one.
    first_page: (u32, ShadowPage),
    other_pages: Vec<ShadowPage>,
    /// The index of each other page by its number.
    indices: FxHashMap<u32, u32>,
    /// The number and index of the other page that was accessed last.
    last: Option<(u32, u32)>,
}

impl ShadowMemory {
    #[inline]
    fn page_mut(&mut self, word: u64) -> &mut ShadowPage {
        let number = (word / WORDS_PER_PAGE) as u32;
        // An empty page may take any number.
        if self.first_page.1.in_runs | self.first_page.1.in_cells == 0 {
            self.first_page.0 = number;
        }
        if self.first_page.0 == number {
            return &mut self.first_page.1;
        }
        let index = match self.last {
            Some((last, index)) if last == number => index,
            _ => *self.indices.entry(number).or_insert(self.other_pages.len() as u32),
        };
        self.last = Some((number, index));
        if index as usize == self.other_pages.len() {
            if index as usize == self.other_pages.capacity() {
                self.other_pages.reserve_exact(1 + self.other_pages.len() / 4);
            }
            self.other_pages.push(ShadowPage::default());
        }
        &mut self.other_pages[index as usize]
    }

    /// Returns the history of a word, creating it if needed.
    pub fn cell_mut(&mut self, word: u64) -> &mut ShadowCell {
        self.page_mut(word).cell_mut((word % WORDS_PER_PAGE) as u32)
    }

    /// Checks an access against the history of a word and records it; `changes` if it changes the value.
    pub fn record_access(
        &mut self,
        word: u64,
        new: &AccessRecord,
        changes: bool,
        race_check: &RaceCheck<'_>,
    ) -> RaceCheckResult {
        let (page, word) = (self.page_mut(word), (word % WORDS_PER_PAGE) as u32);
        if let Some(result) = page.record_in_run(word, new, changes, race_check) {
            return result;
        }
        let mut surplus = page.surplus.take_if(|(place, _)| *place == word).map(|(_, access)| access);
        let cell = page.cell_mut(word);
        let result = cell.record_access(new, race_check, &mut surplus);
        if changes {
            cell.set_last_writer(new.epoch.invocation);
        }
        if let Some(access) = surplus {
            page.surplus = Some((word, access));
        }
        result
    }

    /// Returns the invocation and instruction that last changed the word at a byte offset.
    pub fn last_write(&mut self, offset: u64) -> Option<(u32, u32)> {
        let cell = self.cell_mut(offset / WORD_BYTES);
        let writer = cell.last_writer.checked_sub(1)?;
        let writes = |group: &&AccessGroup| group.site.kind.writes && group.lane_bit(writer) != 0;
        let last = cell.groups.iter().filter(writes).max_by_key(|group| group.time)?;
        Some((writer, last.site.instruction))
    }

    /// Returns the number of accessed bytes and the size of the history.
    pub fn byte_counts(&self) -> (u64, u64) {
        let mut accessed = 0;
        let index_bytes = size_of::<ShadowPage>() + size_of::<(u32, u32)>();
        let mut bytes = self.other_pages.capacity() * index_bytes;
        for page in std::iter::once(&self.first_page.1).chain(&self.other_pages) {
            bytes += page.cells.capacity() * size_of::<ShadowCell>();
            bytes += page.runs.capacity() * size_of::<AccessRun>();
            if let [run] = &page.runs[..] {
                accessed += run.words.count_ones() * run.site.mask.count_ones();
            } else {
                for word in 0..u32::BITS {
                    let runs = page.runs.iter().filter(|run| run.contains(word));
                    accessed += runs.fold(0, |all, run| all | run.site.mask).count_ones();
                }
            }
            for cell in &page.cells {
                accessed += cell.groups.iter().fold(0, |all, group| all | group.site.mask).count_ones();
                bytes += cell.groups.capacity() * size_of::<AccessGroup>();
            }
        }
        (u64::from(accessed), bytes as u64)
    }
}

impl ShadowCell {
    /// Records that an invocation changed the value.
    pub fn set_last_writer(&mut self, invocation: u32) {
        self.last_writer = invocation + 1;
    }

    /// Checks an access against the history and records it; `surplus` is the last access if the history stays without it.
    fn record_access(
        &mut self,
        new: &AccessRecord,
        sight: &RaceCheck<'_>,
        surplus: &mut Option<SurplusAccess>,
    ) -> RaceCheckResult {
        let mut result = RaceCheckResult::default();
        let access = SurplusAccess::of_record(new);
        let has_own = self.groups.iter().any(|group| group.lane_bit(new.epoch.invocation) != 0);
        if !has_own && *surplus == Some(access) {
            return result;
        }
        // Two reads never conflict, so a word without writes needs no scan.
        if self.has_write || new.site.kind.writes {
            for group in self.groups.iter() {
                if group.site.is_compatible_with(&new.site) {
                    continue;
                }
                for (_, record) in group.records(sight.numbering) {
                    result.add_pair(&record, new, sight);
                }
            }
        }
        let is_recorded = self.insert_record(new, sight);
        // Without finer order, only barriers distinguish the views of the lanes of a subgroup.
        let is_surplus = !is_recorded
            && !has_own
            && !sight.has_fine_ordering
            && sight.collisions == DefinedCollisions::default()
            && result.conflict.is_none()
            && !result.is_unordered
            && (!new.site.kind.writes || self.groups.iter().all(|group| group.site.kind.is_atomic));
        *surplus = is_surplus.then_some(access);
        result
    }

    /// Returns the writes that a read sees through its own visibility operation, with their times.
    ///
    /// Later reads of the same invocation see them too.
    pub fn self_visible_writes(
        &self,
        read: &AccessRecord,
        race_check: &RaceCheck<'_>,
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

    /// Records an access. Returns false if the history stays without it.
    fn insert_record(&mut self, new: &AccessRecord, race_check: &RaceCheck<'_>) -> bool {
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
                return true;
            }
            group.lanes &= !group.lane_bit(moment.invocation);
            self.groups.retain(|group| group.lanes != 0);
            self.push_record(new);
            return true;
        }
        if !race_check.has_fine_ordering && !self.has_room_for(new, race_check.numbering) {
            return false;
        }
        // The bound limits the cost of a check. Beyond it races may be missed, but none is
        // invented.
        if self.groups.iter().map(|group| group.lanes.count_ones() as usize).sum::<usize>() < MAX_RECORDS {
            self.has_write |= way.kind.writes;
            self.push_record(new);
        }
        true
    }

    /// Drops earlier accesses that a new write represents.
    fn drop_covered(&mut self, new: &AccessRecord, race_check: &RaceCheck<'_>) {
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
        self.groups.retain(|group| group.lanes != 0);
    }

    /// Marks earlier plain writes of the invocation as published by its atomic.
    ///
    /// An availability operation covers the location, not just one write. This holds only without a release
    /// in between.
    fn publish_earlier_writes(&mut self, new: &AccessRecord, race_check: &RaceCheck<'_>) {
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
            self.groups.retain(|group| group.lanes != 0);
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
            self.groups[index].lanes &= !bit;
            self.groups.retain(|group| group.lanes != 0);
            return true;
        }
        !is_full && (count > 0 || workgroups.len() < MAX_WORKGROUPS_PER_KIND)
    }

    fn push_record(&mut self, new: &AccessRecord) {
        let Epoch { invocation, time, barrier_epoch, .. } = new.epoch;
        let one = AccessGroup::new(invocation, (time, barrier_epoch), new.site);
        if let Some(group) = self.groups.iter_mut().find(|group| group.can_merge(&one)) {
            group.lanes |= one.lanes;
            return;
        }
        self.push_group(one);
    }

    fn push_group(&mut self, group: AccessGroup) {
        // There are many lists, and most are short.
        if self.groups.len() == self.groups.capacity() {
            self.groups.reserve_exact(1 + self.groups.len() / 4);
        }
        self.groups.push(group);
    }
}
