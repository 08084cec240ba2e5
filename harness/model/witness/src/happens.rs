//! Synchronizes-with, inter-thread-happens-before and happens-before.

use litmus::StorageClassSet;

use crate::operation::{OperationGraph, Relation, close_transitively, holds, members};

/// The atomic writes of each location in their modification order: for each write its position among those of its location.
pub type WritePositions = Vec<u32>;

/// Sources of reads by operation, for each of the cells that it reads; `None` is the initial value.
pub type Sources = Vec<Vec<Option<usize>>>;

impl OperationGraph<'_> {
    /// VK-SMO-01, VK-SMO-02: returns true if atomic write `a` is earlier than `b` in scoped modification order.
    pub fn is_scoped_before(&self, places: &WritePositions, a: usize, b: usize) -> bool {
        holds(&self.mutually_ordered, a, b)
            && self.operations[a].is_write()
            && self.operations[b].is_write()
            && places[a] < places[b]
    }

    /// VK-RS-01 to -05: true if `write` is in the release sequence that `head` heads, or would head if it released
    /// (VK-SW-04): from `head` on, in the order of the atomic writes that are mutually ordered with it, only
    /// read-modify-writes.
    fn is_in_release_sequence(&self, places: &WritePositions, head: usize, write: usize) -> bool {
        if head == write {
            return true;
        }
        if !self.is_scoped_before(places, head, write) {
            return false;
        }
        members(self.mutually_ordered[head]).all(|between| {
            let in_between = self.operations[between].is_write()
                && places[between] > places[head]
                && places[between] <= places[write];
            !in_between || self.is_rmw_write(between)
        })
    }

    /// Returns true if a write is the write half of a read-modify-write.
    pub fn is_rmw_write(&self, write: usize) -> bool {
        self.read_half(write).is_some()
    }

    /// The read half of the read-modify-write that a write belongs to.
    pub fn read_half(&self, write: usize) -> Option<usize> {
        let executed = self.operations[write].execution_number;
        // The halves of a read-modify-write are adjacent operations with one execution number.
        write.checked_sub(1).filter(|before| {
            self.operations[*before].is_read() && self.operations[*before].execution_number == executed
        })
    }

    /// VK-SW-01 to -16: synchronizes-with, both value-dependent and value-independent.
    pub fn synchronizes_with(&self, sources: &Sources, places: &WritePositions) -> Relation {
        let mut found = self.static_synchronization.clone();
        let operations = &self.operations;
        let atomics: Vec<usize> =
            (0..operations.len()).filter(|index| operations[*index].is_atomic()).collect();
        let (releases, acquires) = (self.barriers(true), self.barriers(false));
        for &head in atomics.iter().filter(|index| operations[**index].is_write()) {
            for &reader in atomics.iter().filter(|index| operations[**index].is_read()) {
                let mut read = sources[reader].iter().flatten();
                if !holds(&self.mutually_ordered, head, reader)
                    || !read.any(|source| self.is_in_release_sequence(places, head, *source))
                {
                    continue;
                }
                let (first, last) = (&operations[head], &operations[reader]);
                // VK-SW-08: the storage class of the linking atomics is in the barriers' semantics.
                let class = last.memory_classes;
                let has_class = |barrier: usize| operations[barrier].semantics.0 & class.0 == class.0;
                let before: Vec<usize> = releases
                    .iter()
                    .copied()
                    .filter(|barrier| holds(&self.program_order, *barrier, head) && has_class(*barrier))
                    .collect();
                let after: Vec<usize> = acquires
                    .iter()
                    .copied()
                    .filter(|barrier| holds(&self.program_order, reader, *barrier) && has_class(*barrier))
                    .collect();
                // VK-SW-01: release atomic to acquire atomic.
                if first.releases && last.acquires {
                    found[head] |= 1 << reader;
                }
                // VK-SW-03: release barrier to acquire atomic.
                for &a in before.iter().filter(|_| last.acquires) {
                    if self.instances.are_in_mutual_scope(&operations[a], last) {
                        found[a] |= 1 << reader;
                    }
                }
                // VK-SW-05: release atomic to acquire barrier.
                for &b in after.iter().filter(|_| first.releases) {
                    if self.instances.are_in_mutual_scope(first, &operations[b]) {
                        found[head] |= 1 << b;
                    }
                }
                // VK-SW-06: release barrier to acquire barrier.
                for &a in &before {
                    for &b in &after {
                        if self.instances.are_in_mutual_scope(&operations[a], &operations[b]) {
                            found[a] |= 1 << b;
                        }
                    }
                }
            }
        }
        found
    }

    /// VK-ITHB-01 to -08: inter-thread-happens-before for one non-empty set of storage classes.
    fn inter_thread_happens_before(&self, synchronizes: &Relation, classes: StorageClassSet) -> Relation {
        let count = self.operations.len();
        let has_all = |index: usize| self.operations[index].semantics.0 & classes.0 == classes.0;
        let touches = |index: usize| self.operations[index].memory_classes.0 & classes.0 != 0;
        // VK-ITHB-02: system-synchronizes-with belongs to every set.
        let mut found = self.system_sync.clone();
        for a in 0..count {
            // VK-ITHB-03: both have all of the set in their semantics.
            if has_all(a) {
                for b in members(synchronizes[a]) {
                    if has_all(b) {
                        found[a] |= 1 << b;
                    }
                }
            }
            for b in members(self.program_order[a]) {
                // VK-ITHB-04: before a release.
                let into_release = self.operations[b].releases && has_all(b) && (touches(a) || has_all(a));
                // VK-ITHB-05: after an acquire.
                let out_of_acquire = self.operations[a].acquires && has_all(a) && (touches(b) || has_all(b));
                if into_release || out_of_acquire {
                    found[a] |= 1 << b;
                }
            }
        }
        // VK-ITHB-07.
        close_transitively(&mut found);
        found
    }

    /// VK-HB-01, VK-HB-02: program order, or inter-thread order for some set of storage classes; no closure of the two.
    pub fn happens_before(&self, synchronizes: &Relation) -> Relation {
        let mut found = self.program_order.clone();
        let used = self.operations.iter().fold(0u8, |used, operation| used | operation.semantics.0);
        // Without semantics, every class set gives the same result.
        let used = if used == 0 { 1 } else { used };
        for classes in (1..16u8).filter(|classes| classes & !used == 0) {
            let ordered = self.inter_thread_happens_before(synchronizes, StorageClassSet(classes));
            for (row, more) in found.iter_mut().zip(&ordered) {
                *row |= more;
            }
        }
        found
    }
}
