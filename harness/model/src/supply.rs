//! Combinations of paths that need no exploration, by the values that their writes can supply.
//!
//! - **No source.** Every read of an execution reads from a write of its storage, or the initial value. So a path
//!   that needs a value that no path of the combination stores has no execution, under any model.
//! - **Able to continue.** Let a thread end in a spin loop, at an atomic load that is mutually ordered with all
//!   writes of its storage. If every value that the last write may have leaves the loop, then each race of the
//!   combination occurs in one where the thread has left it. For final states all threads have ended anyway.
//!   - Removing the load leaves a consistent execution with at most the same orders. The load races with
//!     nothing.
//!   - The thread then repeats the load, which reads the last write in modification order, and goes on to its
//!     end or to its next loop. Each further read reads a write of its location that no other write follows,
//!     and each further write is the last of its location. All edges of these events end at them. So no axiom
//!     is violated, and unordered pairs of other events stay unordered.
//!   - A thread has finitely many steps, so that repeating this ends at a combination that is explored.

use litmus::{Access, LocationId, LocationInit, Test, Value};

use crate::mutual_order::is_mutually_ordered;
use crate::path::{Path, PathChoice, StepKind};
use crate::symbolic::LocalRead;

/// A set of values of one storage: a bit for each known value, and [`UNKNOWN`].
type ValueSet = u64;

/// The bit of a value that the text does not show.
const UNKNOWN: ValueSet = 1 << 63;

/// The values that the paths of a test need and supply.
#[derive(Debug, Default)]
pub(crate) struct ValueSupply {
    /// The initial value of each tracked storage.
    initial: Vec<ValueSet>,
    /// The paths of each thread.
    threads: Vec<Vec<PathFlow>>,
}

/// The values that flow into and out of one path.
#[derive(Debug)]
struct PathFlow {
    /// For each tracked storage the values that the path writes.
    writes: Vec<ValueSet>,
    /// The reads that accept some values only: the storage, and these values.
    needs: Vec<(usize, ValueSet)>,
    /// The storage of the load at which a spinning thread is, and the values that leave the loop.
    spins: Option<(usize, ValueSet)>,
}

/// The tracked storages: their values, by bit.
struct ValueTable(Vec<(LocationId, Vec<Value>)>);

impl ValueTable {
    /// Collects the known values of each storage that is always accessed as a whole, through one name.
    fn new(test: &Test, paths: &[Vec<Path>]) -> ValueTable {
        let mut table = Vec::new();
        let names = || (0..test.locations.len()).map(|index| LocationId(index as u16));
        for storage in names() {
            let is_single = names().filter(|name| test.storage_of(*name) == storage).count() == 1;
            if !is_single || !matches!(test.location(storage).init, LocationInit::Constant(_)) {
                continue;
            }
            let mut values = vec![test.initial_value(storage, 0)];
            let mut is_whole = test.location(storage).components == 1;
            for step in paths.iter().flatten().flat_map(|path| &path.steps) {
                let (memory, stored) = match &step.kind {
                    StepKind::Read(memory) | StepKind::Rmw(memory, None) => (memory, None),
                    StepKind::Write(memory, stored) | StepKind::Rmw(memory, Some(stored)) => {
                        (memory, stored.known())
                    }
                    _ => continue,
                };
                if memory.extent.storage == storage {
                    is_whole &= memory.extent.whole && !step.cooperative && !step.continues;
                    values.extend(stored);
                }
            }
            values.sort_unstable();
            values.dedup();
            if is_whole && values.len() < 63 {
                table.push((storage, values));
            }
        }
        ValueTable(table)
    }

    fn index(&self, storage: LocationId) -> Option<usize> {
        self.0.iter().position(|(known, _)| *known == storage)
    }

    /// Returns the set of one value of a storage.
    fn set_of(&self, index: usize, value: Option<Value>) -> ValueSet {
        let at = value.and_then(|value| self.0[index].1.iter().position(|known| *known == value));
        at.map_or(UNKNOWN, |at| 1 << at)
    }

    /// Returns the values of a storage, and [`UNKNOWN`], that a path accepts for one read.
    fn accepted(&self, index: usize, path: &Path, read: LocalRead) -> ValueSet {
        let accepts = |value: Value| {
            let mut known = |other| (other == read).then_some(value);
            path.constraints.iter().all(|constraint| constraint.met(&mut known) != Some(false))
        };
        let values = self.0[index].1.iter().enumerate();
        values.filter(|(_, value)| accepts(**value)).fold(UNKNOWN, |all, (at, _)| all | 1 << at)
    }

    /// Returns every known value of a storage, and [`UNKNOWN`].
    fn all(&self, index: usize) -> ValueSet {
        ((1 << self.0[index].1.len()) - 1) | UNKNOWN
    }
}

impl ValueSupply {
    /// Computes the values that the paths of each thread need and supply.
    ///
    /// Threads can be shown able to continue only if `knows_text` is set: the model is the Vulkan memory
    /// model.
    pub(crate) fn new(test: &Test, paths: &[Vec<Path>], knows_text: bool) -> ValueSupply {
        let branches = paths.iter().any(|paths| paths.len() > 1);
        if !branches || test.khronos.is_some() {
            return ValueSupply::default();
        }
        let table = ValueTable::new(test, paths);
        let continues = knows_text && test.filter.is_none() && is_plain(test, paths);
        let initial = table.0.iter().enumerate();
        let initial = initial
            .map(|(index, (storage, _))| table.set_of(index, Some(test.initial_value(*storage, 0))))
            .collect();
        let flow = |thread: usize, path: &Path| {
            let mut flow = PathFlow { writes: vec![0; table.0.len()], needs: Vec::new(), spins: None };
            let mut read: LocalRead = 0;
            for step in &path.steps {
                let own = read;
                read += LocalRead::from(step.kind.reads());
                let (memory, stored) = match &step.kind {
                    StepKind::Read(memory) | StepKind::Rmw(memory, None) => (memory, None),
                    StepKind::Write(memory, stored) | StepKind::Rmw(memory, Some(stored)) => {
                        (memory, Some(stored))
                    }
                    _ => continue,
                };
                let Some(index) = table.index(memory.extent.storage) else { continue };
                if let Some(stored) = stored {
                    flow.writes[index] |= table.set_of(index, stored.known());
                }
                if step.kind.reads() {
                    let accepted = table.accepted(index, path, own);
                    if accepted != table.all(index) {
                        flow.needs.push((index, accepted));
                    }
                }
            }
            if continues && !path.terminated && !path.cut {
                flow.spins = leaving_values(test, thread, path, paths, &table);
            }
            flow
        };
        let threads = paths.iter().enumerate();
        let threads =
            threads.map(|(thread, paths)| paths.iter().map(|path| flow(thread, path)).collect()).collect();
        ValueSupply { initial, threads }
    }

    /// Returns true if no combination can be excluded.
    pub(crate) fn is_empty(&self) -> bool {
        self.threads.iter().flatten().all(|flow| flow.needs.is_empty() && flow.spins.is_none())
    }

    /// Returns true if each read of the chosen paths may have a source.
    pub(crate) fn has_sources(&self, taken: &[PathChoice]) -> bool {
        let mut supplied = self.initial.clone();
        for (writes, _) in self.writes(taken) {
            supplied.iter_mut().zip(writes).for_each(|(all, set)| *all |= set);
        }
        self.chosen(taken)
            .all(|flow| flow.needs.iter().all(|(index, accepted)| supplied[*index] & accepted != 0))
    }

    /// Returns true if some chosen path ends in a spin loop that every last value leaves.
    pub(crate) fn can_continue(&self, taken: &[PathChoice]) -> bool {
        self.chosen(taken).filter_map(|flow| flow.spins).any(|(index, leaves)| {
            let (mut last, mut is_written) = (0, false);
            for (writes, is_certain) in self.writes(taken) {
                last |= writes[index];
                is_written |= is_certain && writes[index] != 0;
            }
            let last = if is_written { last } else { last | self.initial[index] };
            last & !leaves == 0
        })
    }

    /// Returns the paths that are chosen.
    fn chosen(&self, taken: &[PathChoice]) -> impl Iterator<Item = &PathFlow> {
        self.threads.iter().zip(taken).filter_map(|(paths, taken)| match taken {
            PathChoice::Path(path) => paths.get(*path),
            PathChoice::From(_) => None,
        })
    }

    /// Returns the writes of each path that is chosen or may be, with a flag if it is chosen.
    fn writes(&self, taken: &[PathChoice]) -> impl Iterator<Item = (&[ValueSet], bool)> {
        self.threads.iter().zip(taken).flat_map(|(paths, taken)| {
            let (open, is_certain) = match *taken {
                PathChoice::Path(path) => (paths.get(path..=path), true),
                PathChoice::From(first) => (paths.get(first..), false),
            };
            open.unwrap_or_default().iter().map(move |flow| (flow.writes.as_slice(), is_certain))
        })
    }
}

/// Returns true if appending events at the end of a thread affects no other event.
fn is_plain(test: &Test, paths: &[Vec<Path>]) -> bool {
    let is_plain = |kind: &StepKind| {
        matches!(kind, StepKind::Read(_) | StepKind::Write(..) | StepKind::Rmw(..) | StepKind::Fence(..))
    };
    let mut steps = paths.iter().flatten().flat_map(|path| &path.steps);
    !test.has_undefined()
        && test.system_sync.is_empty()
        && steps.all(|step| is_plain(&step.kind) && !step.cooperative)
}

/// Returns the storage of the load at which a spinning thread is, and the values with which it leaves the loop.
fn leaving_values(
    test: &Test,
    thread: usize,
    path: &Path,
    paths: &[Vec<Path>],
    table: &ValueTable,
) -> Option<(usize, ValueSet)> {
    let (load, before) = path.steps.split_last()?;
    let StepKind::Read(memory) = &load.kind else { return None };
    let Access::Atomic { scope, .. } = memory.access else { return None };
    let index = table.index(memory.extent.storage)?;
    if !is_mutually_ordered(test, (thread, scope), memory, paths) {
        return None;
    }
    let last: LocalRead = before.iter().map(|step| LocalRead::from(step.kind.reads())).sum();
    // A constraint that reads other values too may permit to stay in the loop.
    let decides = path.constraints.iter().all(|constraint| {
        let (mut of_last, mut of_others) = (false, false);
        for side in [&constraint.left, &constraint.right] {
            side.for_each_read(&mut |read| {
                *(if read == last { &mut of_last } else { &mut of_others }) = true
            });
        }
        !(of_last && of_others)
    });
    decides.then(|| (index, table.all(index) & !table.accepted(index, path, last)))
}

#[cfg(test)]
mod tests {
    use litmus::{Test, ThreadId};

    use super::ValueSupply;
    use crate::path::{Path, PathChoice, paths};

    const WAIT: &str = "ld.atom.acq.dv.sc0.semsc0.semvis r0, ";

    /// Two threads that wait, the second for a flag of the first, and one that sets the first flag.
    fn supply(awaited: u32) -> (ValueSupply, Vec<Vec<Path>>) {
        let text = format!(
            "VULKAN chain\n{{ f = 0; g = 0; }}\nP0@sg 0, wg 0, qf 0 | P1@sg 0, wg 1, qf 0 | P2@sg 0, wg 2, qf 0 ;\n\
             st.atom.dv.sc0 f, 1 | LC00: | LC00: ;\n\
             st.atom.dv.sc0 f, 2 | {WAIT}f | {WAIT}g ;\n\
             | blt r0, {awaited}, LC00 | bne r0, 1, LC00 ;\n\
             | st.atom.dv.sc0 g, 1 | ;\n"
        );
        let test: Test = litmus::parse(&text, "chain").unwrap();
        let paths: Vec<Vec<Path>> =
            (0..3).map(|thread| paths(&test, ThreadId(thread), 1, true).unwrap()).collect();
        (ValueSupply::new(&test, &paths, true), paths)
    }

    /// The paths on which each thread has left its loop, or not.
    fn taken(paths: &[Vec<Path>], left: [bool; 3]) -> Vec<PathChoice> {
        let path = |(paths, left): (&Vec<Path>, &bool)| {
            PathChoice::Path(paths.iter().position(|path| path.terminated == *left).unwrap())
        };
        paths.iter().zip(&left).map(path).collect()
    }

    #[test]
    fn value_that_no_path_writes_has_no_source() {
        let (supply, paths) = supply(1);
        assert!(supply.has_sources(&taken(&paths, [true, true, true])));
        assert!(supply.has_sources(&taken(&paths, [true, true, false])));
        assert!(!supply.has_sources(&taken(&paths, [true, false, true])));
    }

    #[test]
    fn thread_continues_if_every_last_value_leaves_its_loop() {
        let (of_one, paths) = supply(1);
        assert!(of_one.can_continue(&taken(&paths, [true, false, false])));
        assert!(of_one.can_continue(&taken(&paths, [true, true, false])));
        assert!(!of_one.can_continue(&taken(&paths, [true, true, true])));
        // The last value may be 1, which does not leave the loop.
        let (of_two, paths) = supply(2);
        assert!(!of_two.can_continue(&taken(&paths, [true, false, false])));
    }
}
