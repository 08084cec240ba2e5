//! Loop iterations that are omitted from a path, because they do not change the state of the thread.
//!
//! An iteration is redundant if it changes no register whose value has an effect later, and if it only reads, writes
//! back what it read, or stores to storages that no instruction reads. A counter of attempts has an effect if a branch
//! reads it, so iterations of a loop that ends after some attempts are not redundant. Removing the events of a
//! redundant iteration from an execution leaves the values of all others. It removes order and adds none, so the rest
//! stays consistent, and what raced still races. The stores take part in no release sequence, since no
//! read-modify-write accesses their storage.
//!
//! An omitted iteration loses two uses: one of its accesses may be one of the two that race, and a store of it
//! may be the write that the final value is read from. Other threads may wait for later code of the thread, so
//! the iteration cannot end a path instead. One race needs one iteration of a thread, and so does each
//! final value. A path therefore has at most as many redundant iterations of one loop as these have uses.
//!
//! An iteration without events waits for nothing. If it changes a register that is read, the loop bound applies, even
//! if the register has no effect: lifted code ends a path at its own bound with a loop that only counts.
//!
//! Two extensions apply to the Vulkan memory model only. Iterations may replace a carried value
//! ([`carried_values`](super::carried_values)). And stores may be left out that other threads rarely read, such as
//! those to a stack's next pointer before each attempt to push. If no read-modify-write accesses the storage,
//! and the thread does not read it, such a store is removed like one that nothing reads, unless a remaining read
//! reads from it. Each read reads from one store. So an execution with the fewest events has at most as many
//! iterations for this use as the other threads have reads of the storage. The paths of these threads must be
//! complete without this extension, so that the number is known.

use litmus::{AccessKind, Comparison, Dialect, LocationId, Observable, Test, ThreadId, Value};

use super::{PartialPath, StepKind, enumerate_complete_paths};
use crate::conflict::may_race;
use crate::liveness::{live_registers, strongly_live_registers};
use crate::storage_values::{is_always_whole, stored_values};
use crate::symbolic::{ReadIndex, SymbolicValue};

/// The facts about a thread with loops that decide if an iteration is redundant.
#[derive(Default)]
pub(super) struct LoopFacts {
    /// The live registers at each instruction.
    pub(super) live: Vec<Vec<bool>>,
    /// Those of them whose values may have an effect.
    pub(super) strongly_live: Vec<Vec<bool>>,
    /// For each instruction, true if it may race with another thread or read an undefined value.
    pub(super) may_race: Vec<bool>,
    /// For each storage its values, if they are known and few.
    stored: Vec<Option<Vec<Value>>>,
    /// For each storage whose stores may be left out, the number of reads of other threads that may read from them.
    store_readers: Vec<Option<usize>>,
    /// For each storage, true if its final value is observed.
    is_observed: Vec<bool>,
    /// True if iterations may be left out that only replace carried values.
    replaces_carried_values: bool,
}

/// The loops whose iterations are redundant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoopReductions {
    /// Those that hold under every model.
    AnyModel,
    /// Those that hold under the Vulkan memory model, with stores that nothing reads.
    UnreadStores,
    /// Those that hold under the Vulkan memory model.
    All,
}

impl LoopFacts {
    /// Collects the facts about a thread whose final registers are observed as given.
    ///
    /// With the loop bound `unroll`, the paths of the other threads are enumerated if their reads must be counted.
    pub(super) fn new(
        test: &Test,
        thread: ThreadId,
        observed: &[bool],
        unroll: u32,
        reductions: LoopReductions,
    ) -> LoopFacts {
        let instructions = &test.thread(thread).instructions;
        let is_plain =
            test.dialect != Dialect::Hsa && !test.has_undefined_locations() && test.system_sync.is_empty();
        let thread_index = usize::from(thread.0);
        let storages = || (0..test.locations.len()).map(|index| LocationId(index as u16));
        let mut reads = StorageReads { test, unroll, of_threads: vec![None; test.threads.len()] };
        let observables = test.observables();
        let is_observed = |storage| {
            let is_final = |observable: &Observable| matches!(observable, Observable::Location(name, _) if test.storage_of(*name) == storage);
            observables.iter().any(is_final)
        };
        let races = instructions.iter().map(|instruction| {
            instruction
                .kind
                .access()
                .is_some_and(|access| !is_plain || may_race(test, (thread_index, access)))
        });
        LoopFacts {
            live: live_registers(instructions, observed),
            strongly_live: strongly_live_registers(instructions, observed),
            may_race: races.collect(),
            stored: storages().map(|storage| stored_values(test, storage)).collect(),
            store_readers: storages()
                .map(|storage| {
                    if is_plain { count_store_readers(&mut reads, thread, storage, reductions) } else { None }
                })
                .collect(),
            is_observed: storages().map(is_observed).collect(),
            replaces_carried_values: is_plain && reductions != LoopReductions::AnyModel,
        }
    }
}

impl LoopFacts {
    /// Returns true if neither a read nor the final state depends on the stores of the thread to a storage.
    pub(super) fn is_unread(&self, storage: LocationId) -> bool {
        let storage = usize::from(storage.0);
        self.store_readers.get(storage).copied().flatten() == Some(0)
            && self.is_observed.get(storage) == Some(&false)
    }
}

/// Stores that more reads of other threads may read from are not left out: the paths would become too many.
const MAX_STORE_READERS: usize = 4;

/// The most reads of each thread from each storage, computed once per thread.
struct StorageReads<'t> {
    test: &'t Test,
    unroll: u32,
    /// `None` if not yet computed; then `None` if the loop bound cuts off a path.
    of_threads: Vec<Option<Option<Vec<usize>>>>,
}

impl StorageReads<'_> {
    fn of(&mut self, thread: usize, storage: LocationId) -> Option<usize> {
        let StorageReads { test, unroll, of_threads } = self;
        let most = of_threads.get_mut(thread)?.get_or_insert_with(|| {
            let paths = enumerate_complete_paths(test, ThreadId(thread as u16), *unroll)?;
            let mut most = vec![0; if paths.is_empty() { 0 } else { test.locations.len() }];
            for path in paths {
                let mut reads = vec![0; most.len()];
                for step in &path.steps {
                    if let StepKind::Read(memory) = &step.kind {
                        reads[usize::from(memory.extent.storage.0)] += 1;
                    }
                }
                most.iter_mut().zip(reads).for_each(|(most, reads)| *most = reads.max(*most));
            }
            Some(most)
        });
        most.as_ref()?.get(usize::from(storage.0)).copied()
    }
}

/// Returns the number of reads of other threads from a storage; `None` if its stores may not be left out.
fn count_store_readers(
    reads: &mut StorageReads<'_>,
    thread: ThreadId,
    storage: LocationId,
    reductions: LoopReductions,
) -> Option<usize> {
    let test = reads.test;
    if reductions == LoopReductions::AnyModel || !is_always_whole(test, storage) {
        return None;
    }
    let mut stores_here = false;
    let mut readers = Vec::new();
    for (other, code) in test.threads.iter().enumerate() {
        let accesses = code.instructions.iter().filter_map(|i| i.kind.access());
        for access in accesses.filter(|access| test.storage_of(access.place.location) == storage) {
            match access.kind {
                AccessKind::Store(_) => stores_here |= other == usize::from(thread.0),
                AccessKind::Load(_) | AccessKind::Await { .. } => readers.push(other),
                AccessKind::Rmw { .. } => return None,
            }
        }
    }
    readers.dedup();
    if readers.is_empty() || !stores_here {
        return readers.is_empty().then_some(0);
    }
    if reductions == LoopReductions::UnreadStores || readers.contains(&usize::from(thread.0)) {
        return None;
    }
    let reads: Option<usize> = readers.into_iter().map(|reader| reads.of(reader, storage)).sum();
    reads.filter(|reads| *reads <= MAX_STORE_READERS)
}

/// A use of an iteration that is otherwise redundant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IterationUse {
    /// One of its accesses may race.
    Race,
    /// The final value of a storage may be one that it stores.
    FinalValue(LocationId),
    /// A read of another thread may read from its store to this storage; the number of such reads.
    StoreReader(LocationId, usize),
}

impl IterationUse {
    /// Returns the number of iterations that have this use and no other iteration's.
    fn iteration_limit(self) -> usize {
        match self {
            IterationUse::Race | IterationUse::FinalValue(_) => 1,
            IterationUse::StoreReader(_, reads) => reads,
        }
    }
}

/// The uses of an iteration that is otherwise redundant.
pub(super) struct RedundantIteration {
    uses: Vec<IterationUse>,
    /// Number of iterations that one use keeps.
    iterations_per_use: usize,
}

impl RedundantIteration {
    /// Returns true if it replaces a carried value.
    pub(super) fn replaces_carried_value(&self) -> bool {
        self.iterations_per_use > 1
    }
}

/// The redundant iterations of one loop on a path.
#[derive(Clone)]
pub(super) struct RepeatedIterations {
    label: usize,
    count: usize,
    uses: Vec<IterationUse>,
    /// Number of iterations that one use keeps.
    iterations_per_use: usize,
}

impl PartialPath {
    /// Returns the uses of the iteration since control last reached the label; `None` if it is not redundant.
    pub(super) fn redundant_iteration_uses(
        &self,
        label: usize,
        facts: &LoopFacts,
    ) -> Option<RedundantIteration> {
        let head = self.loop_heads.iter().find(|head| head.label == label)?;
        let (before, since) = self.path.steps.split_at(head.position.steps);
        let live = if since.is_empty() { facts.live.get(label)? } else { facts.strongly_live.get(label)? };
        // The numbers of reads continue across iterations.
        let mut read = before.iter().filter(|step| step.kind.is_read()).count();
        let mut uses = Vec::new();
        for step in since {
            let own = read as ReadIndex;
            read += usize::from(step.kind.is_read());
            let is_redundant = match &step.kind {
                StepKind::Read(_) | StepKind::Rmw(_, None) | StepKind::Fence(..) => true,
                StepKind::Rmw(memory, Some(written)) => {
                    let known_values = facts.stored.get(usize::from(memory.extent.storage.0));
                    self.writes_back(own, written, known_values.and_then(Option::as_deref))
                }
                StepKind::Write(memory, _) => {
                    let storage = memory.extent.storage;
                    if facts.is_observed.get(usize::from(storage.0)) == Some(&true) {
                        uses.push(IterationUse::FinalValue(storage));
                    }
                    let readers = facts.store_readers.get(usize::from(storage.0)).copied().flatten();
                    if let Some(reads @ 1..) = readers {
                        uses.push(IterationUse::StoreReader(storage, reads));
                    }
                    readers.is_some()
                }
                StepKind::ControlBarrier
                | StepKind::SplitBarrier
                | StepKind::Subgroup(_)
                | StepKind::System => false,
            };
            if !is_redundant {
                return None;
            }
            if facts.may_race.get(usize::from(step.instruction)) == Some(&true) {
                uses.push(IterationUse::Race);
            }
        }
        if self.differing_registers(head, live).next().is_none() {
            return Some(RedundantIteration { uses, iterations_per_use: 1 });
        }
        let is_replaced = facts.replaces_carried_values && self.only_replaces_carried_values(head, live);
        is_replaced.then_some(RedundantIteration { uses, iterations_per_use: 2 })
    }

    /// Adds a redundant iteration to the path; false if the earlier ones of its loop suffice for all uses.
    pub(super) fn repeat_iteration(&mut self, label: usize, iteration: &RedundantIteration) -> bool {
        let at =
            self.repeated_iterations.iter().position(|turns| turns.label == label).unwrap_or_else(|| {
                self.repeated_iterations.push(RepeatedIterations {
                    label,
                    count: 0,
                    uses: Vec::new(),
                    iterations_per_use: 1,
                });
                self.repeated_iterations.len() - 1
            });
        let iterations = &mut self.repeated_iterations[at];
        for new_use in &iteration.uses {
            if !iterations.uses.contains(new_use) {
                iterations.uses.push(*new_use);
            }
        }
        iterations.iterations_per_use = iterations.iterations_per_use.max(iteration.iterations_per_use);
        // Each needed iteration has a use that no other has, so the number of iterations cannot
        // exceed the number of uses.
        let limit: usize = iterations.uses.iter().map(|known| known.iteration_limit()).sum();
        let is_needed =
            !iteration.uses.is_empty() && iterations.count < limit * iterations.iterations_per_use;
        iterations.count += usize::from(is_needed);
        is_needed
    }

    /// Returns true if the taken branches imply that the written value equals the value read, which is one of
    /// `known_values` if these are given.
    fn writes_back(
        &self,
        read: ReadIndex,
        written: &SymbolicValue<ReadIndex>,
        known_values: Option<&[Value]>,
    ) -> bool {
        let pinned = self.path.constraints.iter().find_map(|constraint| {
            let value = match (&constraint.left, &constraint.right) {
                (SymbolicValue::Read(own), SymbolicValue::Known(value))
                | (SymbolicValue::Known(value), SymbolicValue::Read(own)) => (*own == read).then_some(value),
                _ => None,
            };
            value.filter(|_| constraint.holds && constraint.relation == Comparison::Equal)
        });
        let Some(values) = pinned.map(std::slice::from_ref).or(known_values) else { return false };
        values.iter().all(|value| {
            let mut known = |own| (own == read).then_some(*value);
            self.path.constraints.iter().any(|constraint| constraint.is_satisfied(&mut known) == Some(false))
                || written.evaluate(&mut known) == Some(*value)
        })
    }
}
