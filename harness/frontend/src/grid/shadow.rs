//! Who was at a place of memory, and whether two of them race.

use std::collections::BTreeMap;

use litmus::Scope;
use rustc_hash::FxHashMap;

use super::access::WORD;
use super::clock::{Moment, View, level, nearest, reaches};

/// Records of one kind at one place at most, where barriers alone order: of each of so many workgroups.
const WORKGROUPS: usize = 3;
/// Records of one kind of one workgroup between two barriers at most, where barriers alone order.
const EACH: usize = 2;
/// Records of a place at most.
const MAX_RECORDS: usize = 1 << 12;

/// How memory is accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Manner {
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
pub(super) struct Record {
    pub moment: Moment,
    pub subgroup: u32,
    pub way: Way,
}

impl Manner {
    /// The level of the domain up to which it makes itself available, or from which it makes itself visible.
    fn level(&self) -> usize {
        if self.published { level(self.scope) } else { 0 }
    }
}

impl Record {
    fn who(&self) -> (u32, u32, u32) {
        (self.moment.invocation, self.moment.workgroup, self.subgroup)
    }
}

/// What accesses of several invocations may have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Way {
    pub site: u32,
    /// The calls that led there, by their number.
    pub calls: u32,
    pub manner: Manner,
    /// Bytes of the word.
    pub mask: u8,
}

impl Way {
    /// Whether what is kept of one access does for the other, wherever they stand in the shader.
    fn alike(&self, other: &Way) -> bool {
        self.manner == other.manner && self.mask == other.mask
    }
}

/// How many invocations share a group: their numbers differ in the bits below.
const TOGETHER: u32 = u32::BITS;

/// Accesses that differ in their invocations alone.
#[derive(Clone, Copy, Debug)]
struct Group {
    /// The first of the numbers that it has room for.
    first: u32,
    /// A bit for each that is in it.
    lanes: u32,
    time: u32,
    epoch: u32,
    way: Way,
}

impl Group {
    fn of(record: &Record) -> Group {
        let Moment { invocation, time, epoch, .. } = record.moment;
        let lane = invocation % TOGETHER;
        Group { first: invocation - lane, lanes: 1 << lane, time, epoch, way: record.way }
    }

    /// The bit of an invocation; 0 where it is not in it.
    fn bit(&self, invocation: u32) -> u32 {
        let room = invocation.checked_sub(self.first).filter(|lane| *lane < TOGETHER);
        room.map_or(0, |lane| self.lanes & 1 << lane)
    }

    fn joins(&self, other: &Group) -> bool {
        (self.first, self.time, self.epoch) == (other.first, other.time, other.epoch) && self.way == other.way
    }

    /// Its accesses, with the bit of each.
    fn members(self, shape: Shape) -> impl Iterator<Item = (u32, Record)> {
        let Group { first, time, epoch, way, mut lanes } = self;
        std::iter::from_fn(move || {
            let lane = (lanes != 0).then(|| lanes.trailing_zeros())?;
            lanes &= lanes - 1;
            let invocation = first + lane;
            let workgroup = invocation / shape.local;
            let subgroup = invocation % shape.local / shape.subgroup;
            let first = invocation - invocation % shape.local % shape.subgroup;
            let moment = Moment { invocation, workgroup, time, epoch, first };
            Some((1 << lane, Record { moment, subgroup, way }))
        })
    }
}

/// How invocations are numbered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// Invocations of a workgroup.
    pub local: u32,
    /// Invocations of a subgroup.
    pub subgroup: u32,
}

/// How two accesses stand to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    Ordered,
    /// Both are atomic and in each other's scope.
    Mutual,
    Race,
    /// The earlier happens before, but what it wrote is not available, or not visible.
    Unpublished,
}

/// For invocations up to which of their times what they wrote at a place is seen there.
pub(super) type Seen = BTreeMap<u32, u32>;

/// What decides how accesses stand to each other.
#[derive(Clone, Copy)]
pub(super) struct Sight<'v> {
    pub view: &'v View,
    /// Of the place of the access.
    pub seen: Option<&'v Seen>,
    /// Whether more than barriers of workgroups orders invocations.
    pub fine: bool,
    /// The time of the invocation at which it released something last.
    pub released: u32,
    pub shape: Shape,
}

/// How an access stands to an earlier one.
pub(super) fn standing(earlier: &Record, later: &Record, sight: Sight<'_>) -> Standing {
    let view = sight.view;
    let (a, b) = (&earlier.way.manner, &later.way.manner);
    let same = earlier.moment.invocation == later.moment.invocation;
    if same || earlier.way.mask & later.way.mask == 0 || !a.writes && !b.writes {
        return Standing::Ordered;
    }
    let (one, other) = (earlier.who(), later.who());
    let joined = reaches(a.scope, one, other) && reaches(b.scope, one, other);
    if a.atomic && b.atomic && joined && earlier.way.mask == later.way.mask && a.wide == b.wide {
        return Standing::Mutual;
    }
    let workgroup = later.moment.workgroup;
    let known = view.past.before.knows(workgroup, &earlier.moment);
    if !a.private && !b.private {
        let (moment, near) = (&earlier.moment, nearest(one, other));
        let ordered = match (a.writes, b.writes) {
            (false, _) => known,
            (true, true) => view.is_available(workgroup, moment, known, a.level(), near),
            (true, false) => view.is_visible(workgroup, moment, known, (a.level(), b.level()), near),
        };
        let seen = sight.seen.and_then(|seen| seen.get(&earlier.moment.invocation));
        let seen = a.writes && !b.writes && seen.is_some_and(|time| *time >= earlier.moment.time);
        if ordered || seen {
            return Standing::Ordered;
        }
    }
    if known && a.writes && !b.writes { Standing::Unpublished } else { Standing::Race }
}

/// Who was at a word.
#[derive(Clone, Debug, Default)]
pub(super) struct Cell {
    groups: Vec<Group>,
    writes: bool,
    /// One more than the number of the invocation that changed it last; 0 for nobody.
    changed_by: u32,
}

/// Words of a page: a bit each.
const PAGE: u64 = u32::BITS as u64;

/// Who was at the words of a part of an object.
#[derive(Clone, Debug, Default)]
struct Page {
    /// A bit for each word at which somebody was.
    words: u32,
    /// Of these alone, in their order.
    cells: Vec<Cell>,
}

impl Page {
    /// Where the cell of a word is, or has to be.
    fn index(&self, word: u64) -> (bool, usize) {
        let bit = 1 << (word % PAGE);
        (self.words & bit != 0, (self.words & (bit - 1)).count_ones() as usize)
    }

    fn cell(&mut self, word: u64) -> &mut Cell {
        let (there, index) = self.index(word);
        if !there {
            self.words |= 1 << (word % PAGE);
            room_for_one(&mut self.cells);
            self.cells.insert(index, Cell::default());
        }
        &mut self.cells[index]
    }
}

/// Grows by less than vectors do by themselves: there are many, and most are short.
fn room_for_one<T>(all: &mut Vec<T>) {
    if all.len() == all.capacity() {
        all.reserve_exact(1 + all.len() / 4);
    }
}

/// Who was at the words of an object.
#[derive(Clone, Debug, Default)]
pub(super) struct Shadow {
    /// Where somebody was first, by its number: many objects have no other.
    near: (u32, Page),
    far: FxHashMap<u32, Page>,
}

impl Shadow {
    /// The word of that number.
    pub fn cell(&mut self, word: u64) -> &mut Cell {
        let number = (word / PAGE) as u32;
        if self.near.1.words == 0 {
            self.near.0 = number;
        }
        let page = match self.near.0 == number {
            true => &mut self.near.1,
            false => self.far.entry(number).or_default(),
        };
        page.cell(word)
    }

    /// Who changed the word of a byte last, and the instruction that did so.
    pub fn changed(&self, offset: u64) -> Option<(u32, u32)> {
        let word = offset / WORD;
        let number = (word / PAGE) as u32;
        let page = if self.near.0 == number { &self.near.1 } else { self.far.get(&number)? };
        let (there, index) = page.index(word);
        let cell = page.cells.get(index).filter(|_| there)?;
        let who = cell.changed_by.checked_sub(1)?;
        let writes = |group: &&Group| group.way.manner.writes && group.bit(who) != 0;
        let last = cell.groups.iter().filter(writes).max_by_key(|group| group.time)?;
        Some((who, last.way.site))
    }

    /// Bytes that were accessed, and bytes that it takes to know by whom.
    pub fn taken(&self) -> (u64, u64) {
        let mut accessed = 0;
        let mut bytes = self.far.capacity() * size_of::<(u32, Page)>();
        for page in std::iter::once(&self.near.1).chain(self.far.values()) {
            bytes += page.cells.capacity() * size_of::<Cell>();
            for cell in &page.cells {
                accessed += cell.groups.iter().fold(0, |all, group| all | group.way.mask).count_ones();
                bytes += cell.groups.capacity() * size_of::<Group>();
            }
        }
        (u64::from(accessed), bytes as u64)
    }
}

/// What comes of an access.
#[derive(Debug, Default)]
pub(super) struct Met {
    pub conflict: Option<(Record, Standing)>,
    /// Whether an atomic of another kind, or one that overwrites, is not ordered with it.
    pub unordered: bool,
}

impl Cell {
    /// An invocation left another value here than it found.
    pub fn changed_by(&mut self, invocation: u32) {
        self.changed_by = invocation + 1;
    }

    /// Looks at all who were here, and stays.
    pub fn meet(&mut self, new: &Record, sight: Sight<'_>) -> Met {
        let mut met = Met::default();
        if self.writes || new.way.manner.writes {
            for group in &self.groups {
                if group.ignores(new) {
                    continue;
                }
                for (_, record) in group.members(sight.shape) {
                    met.with(&record, new, sight);
                }
            }
        }
        self.keep(new, sight);
        met
    }

    /// Whose writes, and when, a read sees by itself: later ones of its invocation see them as well.
    pub fn seen_by(&self, read: &Record, sight: Sight<'_>) -> impl Iterator<Item = (u32, u32)> {
        let manner = Manner { writes: false, atomic: false, ..read.way.manner };
        let read = Record { way: Way { manner, ..read.way }, ..*read };
        let groups = self.groups.iter();
        let writes =
            groups.filter(move |group| group.way.manner.writes && group.way.mask & read.way.mask != 0);
        writes
            .flat_map(move |group| group.members(sight.shape))
            .filter(move |(_, record)| {
                record.moment.invocation != read.moment.invocation
                    && standing(record, &read, sight) == Standing::Ordered
            })
            .map(|(_, record)| (record.moment.invocation, record.moment.time))
    }

    fn keep(&mut self, new: &Record, sight: Sight<'_>) {
        let Record { moment, way, .. } = *new;
        if way.manner.writes && !way.manner.private {
            self.cover(new, sight);
        }
        if way.manner.writes && way.manner.atomic {
            self.publish(new, sight);
        }
        let mut mine = self.groups.iter_mut().filter(|group| group.way.alike(&way));
        if let Some(group) = mine.find(|group| group.bit(moment.invocation) != 0) {
            if group.time == moment.time && group.epoch == moment.epoch && group.way == way {
                return;
            }
            group.lanes &= !group.bit(moment.invocation);
            self.groups.retain(|group| group.lanes != 0);
            self.add(new);
            return;
        }
        if !sight.fine && !self.wanted(new, sight.shape) {
            return;
        }
        if self.groups.iter().map(|group| group.lanes.count_ones() as usize).sum::<usize>() < MAX_RECORDS {
            self.writes |= way.manner.writes;
            self.add(new);
        }
    }

    /// Drops those for whom a write does as well.
    fn cover(&mut self, new: &Record, sight: Sight<'_>) {
        let plain = Manner { writes: false, atomic: false, published: false, ..new.way.manner };
        let read = Record { way: Way { manner: plain, ..new.way }, ..*new };
        for group in &mut self.groups {
            let (old, by) = (group.way, new.way);
            // Whoever conflicts with the earlier is to conflict with the new one, which atomics do less, and nobody does with what is
            // its own: a read of the invocation behind it may still not see the earlier.
            let stronger = !by.manner.atomic || old.manner.atomic && old.manner.scope == by.manner.scope;
            // What comes no further by itself than the earlier.
            let further = by.manner.level() > old.manner.level() && old.manner.writes;
            if old.mask & !by.mask != 0 || old.manner.private || !stronger {
                continue;
            }
            for (bit, record) in group.members(sight.shape) {
                let mine = record.moment.invocation == new.moment.invocation;
                if further && !mine {
                    continue;
                }
                let known = mine || sight.view.past.before.knows(new.moment.workgroup, &record.moment);
                let ordered = mine
                    || known
                        && match standing(&record, new, sight) {
                            Standing::Ordered => true,
                            // Of atomics as well that took turns, as with a lock: who comes behind the new one comes behind both, and who
                            // does not is as little in order with the new one.
                            Standing::Mutual => {
                                let alike = [0, old.manner.operation].contains(&by.manner.operation);
                                alike && (old.manner.published || !old.manner.writes)
                            }
                            Standing::Race | Standing::Unpublished => false,
                        };
                if ordered && (mine || standing(&record, &read, sight) == Standing::Ordered) {
                    group.lanes &= !bit;
                }
            }
        }
        self.groups.retain(|group| group.lanes != 0);
    }

    /// What an atomic makes available is its place: what its invocation wrote there before as well. Whoever knows of one then knows of
    /// the other, where nothing was released between.
    fn publish(&mut self, new: &Record, sight: Sight<'_>) {
        let mut moved = Vec::new();
        for group in &mut self.groups {
            let Manner { writes, atomic, private, published, .. } = group.way.manner;
            let covered = group.way.mask & !new.way.mask == 0 && group.time > sight.released;
            let bit = group.bit(new.moment.invocation);
            if bit != 0 && covered && writes && !atomic && !private && !published {
                group.lanes &= !bit;
                let manner = Manner { published: true, scope: new.way.manner.scope, ..group.way.manner };
                moved.push(Record { way: Way { manner, ..group.way }, ..*new });
            }
        }
        if !moved.is_empty() {
            self.groups.retain(|group| group.lanes != 0);
            moved.iter().for_each(|record| self.add(record));
        }
    }

    /// Whether a record is kept where barriers of workgroups alone order, by how many there are of its kind; those of an earlier barrier
    /// make room.
    fn wanted(&mut self, new: &Record, shape: Shape) -> bool {
        let mut workgroups: Vec<u32> = Vec::new();
        let mut each = 0;
        for group in self.groups.iter_mut().filter(|group| group.way.alike(&new.way)) {
            for (bit, record) in group.members(shape) {
                if record.moment.workgroup != new.moment.workgroup {
                    if !workgroups.contains(&record.moment.workgroup) {
                        workgroups.push(record.moment.workgroup);
                    }
                    continue;
                }
                if record.moment.epoch < new.moment.epoch && !new.way.manner.private && !new.way.manner.writes
                {
                    group.lanes &= !bit;
                    self.groups.retain(|group| group.lanes != 0);
                    return true;
                }
                each += 1;
            }
        }
        each < EACH && (each > 0 || workgroups.len() < WORKGROUPS)
    }

    fn add(&mut self, new: &Record) {
        let one = Group::of(new);
        if let Some(group) = self.groups.iter_mut().find(|group| group.joins(&one)) {
            group.lanes |= one.lanes;
            return;
        }
        room_for_one(&mut self.groups);
        self.groups.push(one);
    }
}

impl Group {
    /// Whether nothing comes of an access, whoever the invocations are.
    fn ignores(&self, new: &Record) -> bool {
        let (a, b) = (&self.way.manner, &new.way.manner);
        let everywhere = |scope: Scope| reaches(scope, (0, 0, 0), (1, 1, 1));
        let same = a.operation == b.operation && a.operation != 0 || !a.writes;
        let mutual = a.atomic && b.atomic && self.way.mask == new.way.mask && a.wide == b.wide;
        !a.writes && !b.writes
            || self.way.mask & new.way.mask == 0
            || mutual && same && everywhere(a.scope) && everywhere(b.scope)
    }
}

impl Met {
    /// Looks at one who was there.
    fn with(&mut self, record: &Record, new: &Record, sight: Sight<'_>) {
        match standing(record, new, sight) {
            Standing::Ordered => {}
            Standing::Mutual => {
                let known = sight.view.past.before.knows(new.moment.workgroup, &record.moment);
                let (old, by) = (record.way.manner, new.way.manner);
                let same = old.operation == by.operation && by.operation != 0;
                self.unordered |= !known && !same && old.writes;
            }
            found => {
                let better = match &self.conflict {
                    None => true,
                    Some((_, Standing::Unpublished)) => found == Standing::Race,
                    Some(_) => false,
                };
                if better {
                    self.conflict = Some((*record, found));
                }
            }
        }
    }
}
