//! Coherence of single storages as clauses.
//!
//! If all writes of a storage are mutually ordered atomics through one name, its accesses of one thread agree with
//! the modification order, and no write comes between the two halves of a read-modify-write. The axioms imply
//! these clauses: a violation is a cycle of location order, reads-from, from-reads and the order of the
//! atomics, or violates atomicity (VK-COH-01 to VK-COH-05). They are few compared with the axioms, and exclude most
//! combinations of paths without them.

use litmus::LocationId;

use super::{BooleanTerm, SatEncoding};
use crate::matrix::Matrix;
use crate::skeleton::{Owner, Tags};
use solver::SatSolver;

impl<M: Matrix, S: SatSolver> SatEncoding<'_, M, S> {
    /// Encodes the coherence of these storages.
    pub(super) fn encode_coherence(&mut self, storages: &[LocationId]) {
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
                    self.encode_program_order(first, second);
                }
                if let Some(write) = skeleton.events[first].write_half() {
                    self.encode_atomicity(first, write);
                }
            }
        }
    }

    /// Encodes that two accesses of one thread to one storage agree with its modification order.
    fn encode_program_order(&mut self, first: usize, second: usize) {
        // The position of an access is that of the write that it performs or reads from.
        let positions = |me: &mut Self, event: usize| {
            if me.skeleton.events[event].tags.has(Tags::W) {
                vec![(event, BooleanTerm::True)]
            } else {
                me.source_terms(event)
            }
        };
        let are_writes = [first, second].map(|event| self.skeleton.events[event].tags.has(Tags::W));
        let (earlier, later) = (positions(self, first), positions(self, second));
        for (before, is_before) in &earlier {
            for (after, is_after) in &later {
                let agrees = match before == after {
                    // A read cannot read from a later write of its thread.
                    true if are_writes[1] => BooleanTerm::False,
                    true => BooleanTerm::True,
                    false => self.order_term_with_initial(*before, *after),
                };
                self.add_implication(&[*is_before, *is_after], agrees);
            }
        }
    }

    /// Encodes that no write comes between the source of a read-modify-write and its own write.
    fn encode_atomicity(&mut self, read: usize, write: usize) {
        let writes = self.thread_writes(self.skeleton.events[write].storage);
        for (source, reads) in self.source_terms(read) {
            for &other in writes.iter().filter(|other| **other != write && **other != source) {
                let is_after_source = self.order_term_with_initial(source, other);
                let is_after_write = self.order_term(write, other);
                self.add_implication(&[reads, is_after_source], is_after_write);
            }
        }
    }

    /// Returns the term that orders two writes of a storage, of which the initial write is the first.
    fn order_term_with_initial(&mut self, before: usize, after: usize) -> BooleanTerm {
        let is_initial = |event: usize| self.skeleton.events[event].tags.has(Tags::IW);
        match (is_initial(before), is_initial(after)) {
            (true, _) => BooleanTerm::True,
            (false, true) => BooleanTerm::False,
            (false, false) => self.order_term(before, after),
        }
    }
}
