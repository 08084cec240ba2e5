//! Queries of an event structure by the search: candidate writes of each read, and the storages.

use litmus::{LocationId, Value};

use super::vocabulary::Tags;
use super::{FinalValueSource, Skeleton};
use crate::symbolic::SymbolicValue;

impl Skeleton {
    /// Returns the number of events.
    pub(crate) fn len(&self) -> usize {
        self.events.len()
    }

    /// Returns the candidate writes of a read, without the writes whose known values a
    /// constraint on this read alone excludes.
    pub(crate) fn candidate_writes(&self, read: usize) -> Vec<usize> {
        let target = &self.events[read];
        (0..self.events.len())
            .filter(|&write| {
                let event = &self.events[write];
                event.tags.has(Tags::W)
                    && event.storage == target.storage
                    && self.may_read(read, write)
                    && self.is_value_possible(
                        read,
                        event.stored_value.as_ref().and_then(SymbolicValue::known_value),
                    )
            })
            .collect()
    }

    /// Returns true if a read may read from a write to its location: never from the write of the same
    /// read-modify-write, and only from a forced source if it has one.
    pub(crate) fn may_read(&self, read: usize, write: usize) -> bool {
        let is_same_rmw = write == read || self.events[read].write_half.map(usize::from) == Some(write);
        !is_same_rmw
            && self.forced_reads_from.iter().all(|(r, w)| usize::from(*r) != read || usize::from(*w) == write)
    }

    /// Returns the read half of a read-modify-write, given its write.
    pub(crate) fn read_half(&self, write: usize) -> Option<usize> {
        let is_fused = self.events[write].tags.has(Tags::R);
        let half = || self.events.iter().position(|event| event.write_half.map(usize::from) == Some(write));
        if is_fused { Some(write) } else { half() }
    }

    fn is_value_possible(&self, read: usize, value: Option<Value>) -> bool {
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

    /// Returns the accessed storages, each once.
    pub(crate) fn storages(&self) -> Vec<LocationId> {
        let mut storages: Vec<LocationId> = self.events.iter().filter_map(|event| event.storage).collect();
        storages.sort_unstable();
        storages.dedup();
        storages
    }

    /// Returns the storages whose last write is observed.
    pub(crate) fn observed_storages(&self) -> Vec<LocationId> {
        self.final_values
            .iter()
            .filter_map(|value| match value {
                FinalValueSource::LastWrite(storage) => Some(*storage),
                FinalValueSource::Expression(_) => None,
            })
            .collect()
    }
}
