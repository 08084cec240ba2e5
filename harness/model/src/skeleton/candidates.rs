//! Queries of an event structure by the search: candidate writes of each read, and the storages.

use litmus::{LocationId, Value};

use super::vocabulary::Tags;
use super::{FinalValue, Skeleton};
use crate::symbolic::SymbolicValue;

impl Skeleton {
    /// Number of events.
    pub(crate) fn len(&self) -> usize {
        self.events.len()
    }

    /// The value that every read must have before it matters which write it came from; writes with known values that a
    /// constraint on this read alone excludes are not candidates.
    pub(crate) fn candidates(&self, read: usize) -> Vec<usize> {
        let target = &self.events[read];
        (0..self.events.len())
            .filter(|&write| {
                let event = &self.events[write];
                event.tags.has(Tags::W)
                    && event.storage == target.storage
                    && self.may_read(read, write)
                    && self.value_possible(read, event.stored.as_ref().and_then(SymbolicValue::known_value))
            })
            .collect()
    }

    /// Returns true if a read may read from a write to its location: never from the write of the same
    /// read-modify-write, and only from a forced source if it has one.
    pub(crate) fn may_read(&self, read: usize, write: usize) -> bool {
        let own = write == read || self.events[read].write_half.map(usize::from) == Some(write);
        !own && self.forced.iter().all(|(r, w)| usize::from(*r) != read || usize::from(*w) == write)
    }

    /// The read half of a read-modify-write, by its write.
    pub(crate) fn read_half(&self, write: usize) -> Option<usize> {
        let is_fused = self.events[write].tags.has(Tags::R);
        let half = || self.events.iter().position(|event| event.write_half.map(usize::from) == Some(write));
        if is_fused { Some(write) } else { half() }
    }

    fn value_possible(&self, read: usize, value: Option<Value>) -> bool {
        let Some(value) = value else { return true };
        self.constraints.iter().all(|constraint| {
            constraint.is_satisfied(&mut |other| (usize::from(other) == read).then_some(value)) != Some(false)
        })
    }

    /// Returns true if two writes to a storage are initial writes of one undefined value: no order is between
    /// them.
    pub(crate) fn are_alternatives(&self, one: usize, other: usize) -> bool {
        let (one, other) = (&self.events[one], &self.events[other]);
        one.tags.has(Tags::UW) && other.tags.has(Tags::UW) && one.reference == other.reference
    }

    /// The storages that are accessed, each once.
    pub(crate) fn storages(&self) -> Vec<LocationId> {
        let mut storages: Vec<LocationId> = self.events.iter().filter_map(|event| event.storage).collect();
        storages.sort_unstable();
        storages.dedup();
        storages
    }

    /// Returns the storages whose last write is observed.
    pub(crate) fn observed_storages(&self) -> Vec<LocationId> {
        self.finals
            .iter()
            .filter_map(|value| match value {
                FinalValue::LastWrite(storage) => Some(*storage),
                FinalValue::Expression(_) => None,
            })
            .collect()
    }
}
