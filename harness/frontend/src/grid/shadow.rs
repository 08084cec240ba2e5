//! Who was at a place of memory, and whether two of them race.

use std::collections::BTreeMap;

use litmus::Scope;

use super::access::WORD;
use super::clock::{Moment, View, reaches};

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
    pub site: u32,
    /// The calls that led there, by their number.
    pub calls: u32,
    pub manner: Manner,
    /// Bytes of the word.
    pub mask: u8,
}

impl Record {
    fn who(&self) -> (u32, u32, u32) {
        (self.moment.invocation, self.moment.workgroup, self.subgroup)
    }
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

/// For invocations up to which of their steps what they wrote at a place is seen there.
pub(super) type Seen = BTreeMap<u32, u32>;

/// What decides how accesses stand to each other.
#[derive(Clone, Copy)]
pub(super) struct Sight<'v> {
    pub view: &'v View,
    /// Of the place of the access.
    pub seen: Option<&'v Seen>,
    /// Whether more than barriers of workgroups orders invocations.
    pub fine: bool,
    /// The step of the invocation at which it released something last.
    pub released: u32,
}

/// How an access stands to an earlier one.
pub(super) fn standing(earlier: &Record, later: &Record, sight: Sight<'_>) -> Standing {
    let view = sight.view;
    let (a, b) = (&earlier.manner, &later.manner);
    let same = earlier.moment.invocation == later.moment.invocation;
    if same || earlier.mask & later.mask == 0 || !a.writes && !b.writes {
        return Standing::Ordered;
    }
    let (one, other) = (earlier.who(), later.who());
    let joined = reaches(a.scope, one, other) && reaches(b.scope, one, other);
    if a.atomic && b.atomic && joined && earlier.mask == later.mask && a.wide == b.wide {
        return Standing::Mutual;
    }
    let workgroup = later.moment.workgroup;
    let known = view.before.knows(workgroup, &earlier.moment);
    if !a.private && !b.private {
        let (from, to) =
            (a.published && reaches(a.scope, one, other), b.published && reaches(b.scope, one, other));
        let ordered = match (a.writes, b.writes) {
            (false, _) => known,
            (true, true) => from && known || view.available.knows(workgroup, &earlier.moment),
            (true, false) => match (from, to) {
                (true, true) => known,
                (true, false) => view.visible.knows(workgroup, &earlier.moment),
                (false, true) => view.available.knows(workgroup, &earlier.moment),
                (false, false) => view.published.knows(workgroup, &earlier.moment),
            },
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
    records: Vec<Record>,
    writes: bool,
    /// One more than the number of the invocation that changed it last; 0 for nobody.
    changed_by: u32,
}

/// Words of a page.
const PAGE: usize = 32;

/// Who was at the words of an object.
#[derive(Clone, Debug, Default)]
pub(super) struct Shadow {
    /// Empty where nobody was.
    pages: Vec<Vec<Cell>>,
}

impl Shadow {
    /// The word of that number.
    pub fn cell(&mut self, word: u64) -> &mut Cell {
        let (page, at) = (word as usize / PAGE, word as usize % PAGE);
        if page >= self.pages.len() {
            self.pages.resize_with(page + 1, Vec::new);
        }
        let page = &mut self.pages[page];
        if page.is_empty() {
            page.resize_with(PAGE, Cell::default);
        }
        &mut page[at]
    }

    /// Who changed the word of a byte last, and the instruction that did so.
    pub fn changed(&self, offset: u64) -> Option<(u32, u32)> {
        let word = (offset / WORD) as usize;
        let cell = self.pages.get(word / PAGE)?.get(word % PAGE)?;
        let who = cell.changed_by.checked_sub(1)?;
        let writes = |record: &&Record| record.manner.writes && record.moment.invocation == who;
        let last = cell.records.iter().filter(writes).max_by_key(|record| record.moment.time)?;
        Some((who, last.site))
    }

    /// Bytes that were accessed, and bytes that it takes to know by whom.
    pub fn taken(&self) -> (u64, u64) {
        let mut accessed = 0;
        let mut bytes = self.pages.capacity() * size_of::<Vec<Cell>>();
        for cell in self.pages.iter().flatten() {
            accessed += cell.records.iter().fold(0, |all, record| all | record.mask).count_ones();
            bytes += size_of::<Cell>() + cell.records.capacity() * size_of::<Record>();
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
        if self.writes || new.manner.writes {
            for record in &self.records {
                match standing(record, new, sight) {
                    Standing::Ordered => {}
                    Standing::Mutual => {
                        let known = sight.view.before.knows(new.moment.workgroup, &record.moment);
                        let same =
                            record.manner.operation == new.manner.operation && new.manner.operation != 0;
                        met.unordered |= !known && !same && record.manner.writes;
                    }
                    found => {
                        let better = match &met.conflict {
                            None => true,
                            Some((_, Standing::Unpublished)) => found == Standing::Race,
                            Some(_) => false,
                        };
                        if better {
                            met.conflict = Some((*record, found));
                        }
                    }
                }
            }
        }
        self.keep(new, sight);
        met
    }

    /// Whose writes, of which step, a read sees by itself: later ones of its invocation see them as well.
    pub fn seen_by(&self, read: &Record, sight: Sight<'_>) -> impl Iterator<Item = (u32, u32)> {
        let read = Record { manner: Manner { writes: false, atomic: false, ..read.manner }, ..*read };
        let others = self
            .records
            .iter()
            .filter(move |record| record.manner.writes && record.moment.invocation != read.moment.invocation);
        others
            .filter(move |record| {
                standing(record, &read, sight) == Standing::Ordered && record.mask & read.mask != 0
            })
            .map(|record| (record.moment.invocation, record.moment.time))
    }

    fn keep(&mut self, new: &Record, sight: Sight<'_>) {
        let (view, fine) = (sight.view, sight.fine);
        let workgroup = new.moment.workgroup;
        if new.manner.writes && !new.manner.private {
            let plain = Manner { writes: false, atomic: false, published: false, ..new.manner };
            let read = Record { manner: plain, ..*new };
            self.records.retain(|record| {
                let covered = record.mask & !new.mask == 0 && !record.manner.private;
                let mine = record.moment.invocation == new.moment.invocation;
                let known = mine || view.before.knows(workgroup, &record.moment);
                let ordered = mine
                    || match standing(record, new, sight) {
                        Standing::Ordered => true,
                        // Of atomics as well that took turns, as with a lock: who comes behind the new one comes behind both, and who
                        // does not is as little in order with the new one.
                        Standing::Mutual => {
                            let alike = [0, record.manner.operation].contains(&new.manner.operation);
                            alike && (record.manner.published || !record.manner.writes)
                        }
                        Standing::Race | Standing::Unpublished => false,
                    };
                // Whoever conflicts with the earlier is to conflict with the new one, which atomics do less, and nobody does with what is
                // its own: a read of the invocation behind it may still not see the earlier.
                let stronger =
                    !new.manner.atomic || record.manner.atomic && record.manner.scope == new.manner.scope;
                let seen = mine || standing(record, &read, sight) == Standing::Ordered;
                !(covered && known && ordered && stronger && seen)
            });
        }
        // What an atomic makes available is its place: what its invocation wrote there before as well. Whoever knows of one then knows of
        // the other, where nothing was released between.
        if new.manner.writes && new.manner.atomic {
            for record in &mut self.records {
                let mine = record.moment.invocation == new.moment.invocation;
                let plain = !record.manner.atomic && !record.manner.private && !record.manner.published;
                let covered = record.mask & !new.mask == 0 && record.moment.time > sight.released;
                if mine && plain && covered && record.manner.writes {
                    let manner = Manner { published: true, scope: new.manner.scope, ..record.manner };
                    *record = Record { moment: new.moment, manner, ..*record };
                }
            }
        }
        let alike = |record: &Record| record.manner == new.manner && record.mask == new.mask;
        let mut workgroups: Vec<u32> = Vec::new();
        let mut each = 0;
        for record in &mut self.records {
            if !alike(record) {
                continue;
            }
            if record.moment.invocation == new.moment.invocation {
                *record = *new;
                return;
            }
            if fine {
                continue;
            }
            if record.moment.workgroup == workgroup {
                if record.moment.epoch < new.moment.epoch && !new.manner.private && !new.manner.writes {
                    *record = *new;
                    return;
                }
                each += 1;
            } else if !workgroups.contains(&record.moment.workgroup) {
                workgroups.push(record.moment.workgroup);
            }
        }
        if !fine && (each >= EACH || each == 0 && workgroups.len() >= WORKGROUPS) {
            return;
        }
        if self.records.len() < MAX_RECORDS {
            self.writes |= new.manner.writes;
            // Most words have one record or two.
            if self.records.len() == self.records.capacity() && self.records.len() < 4 {
                self.records.reserve_exact(1);
            }
            self.records.push(*new);
        }
    }
}
