//! The results of one fixpoint iteration: the emitted code of threads, and facts about shared memory.

use std::collections::{BTreeMap, BTreeSet};

use litmus::{InstructionKind, LocationId};

use crate::state::PathState;
use crate::value::{NumberDomain, UndefOrigin};
use entry_point::LiftFinding;
use entry_point::layout::MemoryCell;
use spirv_reader::SourcePosition;

/// The results of one fixpoint iteration over all threads.
#[derive(Default)]
pub(crate) struct Round {
    pub facts: SharedMemoryFacts,
    pub locations: BTreeMap<MemoryCell, LocationId>,
    pub barriers: BTreeMap<BarrierKey, usize>,
    pub findings: BTreeSet<LiftFinding>,
    /// Findings on paths that depend on read values, so that perhaps no execution reaches them.
    pub suspicions: Vec<LiftFinding>,
    /// Unspecified values that the kernel depends on.
    pub undefined: BTreeSet<UndefOrigin>,
}

/// Facts about shared memory that all threads contribute to; one iteration's result is the next one's input.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct SharedMemoryFacts {
    pub domains: BTreeMap<MemoryCell, NumberDomain>,
    pub accesses: BTreeMap<MemoryCell, CellAccess>,
    /// Cells that store values without a symbolic representation.
    pub opaque: BTreeSet<MemoryCell>,
    /// For each cell, an upper bound on the read-modify-writes of each thread.
    pub updates: BTreeMap<MemoryCell, BTreeMap<u16, u32>>,
    /// For each cell and value, a lower bound on the read-modify-writes needed to reach the value.
    pub generations: BTreeMap<MemoryCell, BTreeMap<u64, u32>>,
}

impl SharedMemoryFacts {
    /// Adds the facts of another iteration. Returns true if a cell may hold new values; with `frozen`, none are added.
    pub fn join(&mut self, other: &SharedMemoryFacts, frozen: bool) -> bool {
        let mut has_new_values = false;
        for (cell, domain) in other.domains.iter().filter(|_| !frozen) {
            let known = self.domains.entry(*cell).or_insert_with(NumberDomain::empty);
            has_new_values |= known.union_with(domain);
        }
        for (cell, touch) in &other.accesses {
            let known = self.accesses.entry(*cell).or_default();
            *known = known.union(*touch);
        }
        self.opaque.extend(other.opaque.iter().copied());
        for (cell, by_thread) in &other.updates {
            let known = self.updates.entry(*cell).or_default();
            for (thread, count) in by_thread {
                let max_updates = known.entry(*thread).or_default();
                *max_updates = (*max_updates).max(*count);
            }
        }
        for (cell, by_value) in &other.generations {
            let known = self.generations.entry(*cell).or_default();
            for (value, generation) in by_value {
                let min_generation = known.entry(*value).or_insert(*generation);
                *min_generation = (*min_generation).min(*generation);
            }
        }
        has_new_values
    }

    /// Returns an upper bound on the read-modify-writes of a cell in one execution.
    pub fn updates_of(&self, cell: MemoryCell) -> u32 {
        self.updates.get(&cell).map_or(0, |by_thread| by_thread.values().sum())
    }

    /// Returns a lower bound on the read-modify-writes needed to reach a value.
    pub fn min_generation(&self, cell: MemoryCell, value: u64) -> u32 {
        self.generations.get(&cell).and_then(|known| known.get(&value)).copied().unwrap_or(0)
    }
}

/// The threads that access a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CellAccess {
    /// Bit mask of the reading threads.
    pub readers: u32,
    pub writers: u32,
    /// True if an access synchronizes.
    pub has_ordering_access: bool,
}

impl CellAccess {
    pub fn union(self, other: CellAccess) -> CellAccess {
        CellAccess {
            readers: self.readers | other.readers,
            writers: self.writers | other.writers,
            has_ordering_access: self.has_ordering_access || other.has_ordering_access,
        }
    }

    /// Returns true if accesses of the cell have to be events of the test.
    pub fn is_shared(self) -> bool {
        self.has_ordering_access || self.writers != 0 && (self.readers | self.writers).count_ones() > 1
    }
}

/// A dynamic instance of a control barrier: its call stack with loop iterations, and the execution scope.
pub(crate) type BarrierKey = (Vec<(u32, usize, Vec<u32>)>, litmus::Scope);

/// The emitted code of a thread.
pub(crate) struct EmittedThread {
    pub segments: Vec<Segment>,
    pub registers: u16,
    /// Upper bound on the writes of a path.
    pub writes: u32,
    pub paths: usize,
}

/// The code between two control barriers.
#[derive(Default)]
pub(crate) struct Segment {
    /// The barrier at its start.
    pub barrier: Option<Emitted>,
    pub instance: Option<usize>,
    /// The state and entry label of each path that enters it.
    pub entries: Vec<(PathState, u16)>,
    pub code: Vec<Emitted>,
    /// The segments that follow it.
    pub successors: BTreeSet<usize>,
}

impl Segment {
    /// Returns the entry label of each path that enters the segment.
    pub fn entry_labels(&self) -> Vec<u16> {
        self.entries.iter().map(|(_, label)| *label).collect()
    }
}

/// An emitted instruction with its source position.
#[derive(Clone, Debug)]
pub(crate) struct Emitted {
    pub kind: InstructionKind,
    pub line: u32,
    pub place: SourcePosition,
}
