//! The bytes of each object that a walk accesses.

use std::collections::BTreeMap;

use entry_point::InvocationId;
use rustc_hash::FxHashMap;

use super::value::Taint;

/// Bytes of an object, from the first to the one after the last.
pub type ByteRange = (u64, u64);

/// Disjoint ranges, by their starts.
#[derive(Clone, Debug, Default)]
struct RangeSet(BTreeMap<u64, u64>);

impl RangeSet {
    /// Adds a range and merges it with those that it overlaps or touches.
    fn insert(&mut self, mut start: u64, mut end: u64) {
        if let Some((first, last)) = self.0.range(..=start).next_back() {
            if *last >= end {
                return;
            }
            if *last >= start {
                start = *first;
            }
        }
        while let Some((first, last)) = self.0.range(start..=end).next() {
            let first = *first;
            end = end.max(*last);
            self.0.remove(&first);
        }
        self.0.insert(start, end);
    }
}

/// The accesses of a walk, by object.
#[derive(Clone, Debug, Default)]
pub(super) struct AccessRecorder {
    objects: FxHashMap<u32, (RangeSet, RangeSet)>,
    /// The inputs that decided an address.
    pub address_taint: Taint,
    /// An object and a byte of it whose first read and write are kept.
    watched: Option<(u32, u64)>,
    pub found: Vec<RecordedAccess>,
}

/// An access to an object.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecordedAccess {
    pub object: u32,
    /// The first byte.
    pub start: u64,
    pub bytes: u32,
    pub reads: bool,
    pub writes: bool,
    /// The number of the instruction.
    pub site: u32,
    pub invocation: InvocationId,
}

impl AccessRecorder {
    /// Creates a recorder that keeps the first read and write of a byte of an object.
    pub fn watching(watched: Option<(u32, u64)>) -> AccessRecorder {
        AccessRecorder { watched, ..AccessRecorder::default() }
    }

    /// Records an access to an object outside of workgroup memory.
    pub fn record(&mut self, access: RecordedAccess) {
        let RecordedAccess { object, start, bytes, reads, writes, .. } = access;
        let (read_ranges, written_ranges) = self.objects.entry(object).or_default();
        let end = start.saturating_add(u64::from(bytes));
        if self.watched.is_some_and(|(watched, byte)| watched == object && (start..end).contains(&byte)) {
            let is_new = |of: fn(&RecordedAccess) -> bool| of(&access) && !self.found.iter().any(of);
            if is_new(|access| access.reads) || is_new(|access| access.writes) {
                self.found.push(access);
            }
        }
        if reads {
            read_ranges.insert(start, end);
        }
        if writes {
            written_ranges.insert(start, end);
        }
    }

    /// Returns the ranges of an object that were read, and those that were written, in ascending order.
    pub fn ranges_of(&self, object: u32) -> Option<(Vec<ByteRange>, Vec<ByteRange>)> {
        let ranges = |set: &RangeSet| set.0.iter().map(|(start, end)| (*start, *end)).collect();
        self.objects.get(&object).map(|(reads, writes)| (ranges(reads), ranges(writes)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_merged() {
        let mut set = RangeSet::default();
        for (start, end) in [(8, 12), (0, 4), (20, 24), (4, 8), (22, 30), (9, 10)] {
            set.insert(start, end);
        }
        assert_eq!(set.0.into_iter().collect::<Vec<_>>(), [(0, 12), (20, 30)]);
    }
}
