//! Coherence of single storages as clauses.
//!
//! If all writes of a storage are mutually ordered atomics through one name, its accesses of one thread agree with
//! the modification order, and no write comes between the two halves of a read-modify-write. The axioms imply
//! these clauses: a violation is a cycle of location order, reads-from, from-reads and the order of the
//! atomics, or violates atomicity (VK-COH-01 to VK-COH-05). They are few compared with the axioms, and exclude most
//! combinations of paths without them.

use litmus::LocationId;

use super::{Refuter, RelationTerm};
use crate::matrix::Matrix;
use crate::sat::Solver;
use crate::skeleton::{Owner, Tags};

impl<M: Matrix, S: Solver> Refuter<'_, M, S> {
    /// Encodes the coherence of these storages.
    pub(super) fn demand_coherence(&mut self, storages: &[LocationId]) {
        let skeleton = self.skeleton;
        for storage in storages {
            let is_access = |event: &usize| {
                let event = &skeleton.events[*event];
                event.storage == Some(*storage) && matches!(event.owner, Owner::Thread(_))
            };
            let events: Vec<usize> = (0..skeleton.len()).filter(is_access).collect();
            for (index, &first) in events.iter().enumerate() {
                let owner = skeleton.events[first].owner;
                // Events of one thread are contiguous and in program order.
                for &second in events[index + 1..].iter().take_while(|e| skeleton.events[**e].owner == owner)
                {
                    self.demand_program_order(first, second);
                }
                if let Some(write) = skeleton.events[first].write_half() {
                    self.demand_atomicity(first, write);
                }
            }
        }
    }

    /// Encodes that two accesses of one thread to one storage agree with its modification order.
    fn demand_program_order(&mut self, first: usize, second: usize) {
        // The position of an access is that of the write that it performs or reads from.
        let positions = |me: &mut Self, event: usize| {
            if me.skeleton.events[event].tags.has(Tags::W) {
                vec![(event, RelationTerm::Yes)]
            } else {
                me.sources_of(event)
            }
        };
        let both_write = [first, second].map(|event| self.skeleton.events[event].tags.has(Tags::W));
        let (earlier, later) = (positions(self, first), positions(self, second));
        for (before, is_before) in &earlier {
            for (after, is_after) in &later {
                let agrees = match before == after {
                    // A read cannot read from a later write of its thread.
                    true if both_write[1] => RelationTerm::No,
                    true => RelationTerm::Yes,
                    false => self.follows(*before, *after),
                };
                self.implies(&[*is_before, *is_after], agrees);
            }
        }
    }

    /// Encodes that no write comes between the source of a read-modify-write and its own write.
    fn demand_atomicity(&mut self, read: usize, write: usize) {
        let writes = self.writes(self.skeleton.events[write].storage);
        for (source, reads) in self.sources_of(read) {
            for &other in writes.iter().filter(|other| **other != write && **other != source) {
                let behind = self.follows(source, other);
                let after = self.ordered(write, other);
                self.implies(&[reads, behind], after);
            }
        }
    }

    /// Returns the term that orders two writes of a storage, of which the initial write is the first.
    fn follows(&mut self, before: usize, after: usize) -> RelationTerm {
        let is_initial = |event: usize| self.skeleton.events[event].tags.has(Tags::IW);
        match (is_initial(before), is_initial(after)) {
            (true, _) => RelationTerm::Yes,
            (false, true) => RelationTerm::No,
            (false, false) => self.ordered(before, after),
        }
    }
}
