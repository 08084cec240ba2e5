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
use crate::path::{PathChoice, StepKind, ThreadPath};
use crate::symbolic::ReadIndex;

/// A set of values of one storage: a bit for each known value, and [`UNKNOWN`].
type ValueSet = u64;

/// The bit of a value that the text does not show.
const UNKNOWN: ValueSet = 1 << 63;

/// The values that the paths of a test need and supply.
#[derive(Debug, Default)]
pub struct ValueSupply {
    /// The initial value of each tracked storage.
    initial: Vec<ValueSet>,
    /// The paths of each thread.
    threads: Vec<Vec<PathFlow>>,
}

/// The values that flow into and out of one path.
#[derive(Debug)]
struct PathFlow {
    /// For each tracked storage the values that the path writes.
    written_values: Vec<ValueSet>,
    /// The reads that accept some values only: the storage, and these values.
    needed_values: Vec<(usize, ValueSet)>,
    /// The storage of the load at which a spinning thread is, and the values that leave the loop.
    spin_exit: Option<(usize, ValueSet)>,
}

/// The tracked storages: their values, by bit.
struct ValueTable(Vec<(LocationId, Vec<Value>)>);

impl ValueTable {
    /// Collects the known values of each storage that is always accessed as a whole, through one name.
    fn new(test: &Test, paths: &[Vec<ThreadPath>]) -> ValueTable {
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
                        (memory, stored.known_value())
                    }
                    _ => continue,
                };
                if memory.extent.storage == storage {
                    is_whole &= memory.extent.is_whole && !step.cooperative && !step.is_continuation;
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

    fn storage_index(&self, storage: LocationId) -> Option<usize> {
        self.0.iter().position(|(known, _)| *known == storage)
    }

    /// Returns the set of one value of a storage.
    fn value_set(&self, index: usize, value: Option<Value>) -> ValueSet {
        let at = value.and_then(|value| self.0[index].1.iter().position(|known| *known == value));
        at.map_or(UNKNOWN, |at| 1 << at)
    }

    /// Returns the values of a storage, and [`UNKNOWN`], that a path accepts for one read.
    fn accepted_values(&self, index: usize, path: &ThreadPath, read: ReadIndex) -> ValueSet {
        let accepts = |value: Value| {
            let mut known = |other| (other == read).then_some(value);
            path.constraints.iter().all(|constraint| constraint.is_satisfied(&mut known) != Some(false))
        };
        let values = self.0[index].1.iter().enumerate();
        values.filter(|(_, value)| accepts(**value)).fold(UNKNOWN, |all, (at, _)| all | 1 << at)
    }

    /// Returns every known value of a storage, and [`UNKNOWN`].
    fn all_values(&self, index: usize) -> ValueSet {
        ((1 << self.0[index].1.len()) - 1) | UNKNOWN
    }
}

impl ValueSupply {
    /// Computes the values that the paths of each thread need and supply.
    ///
    /// Threads can be shown able to continue only if `knows_text` is set: the model is the Vulkan memory
    /// model.
    pub fn new(test: &Test, paths: &[Vec<ThreadPath>], knows_text: bool) -> ValueSupply {
        let branches = paths.iter().any(|paths| paths.len() > 1);
        if !branches || test.khronos.is_some() {
            return ValueSupply::default();
        }
        let table = ValueTable::new(test, paths);
        let finds_spin_exits = knows_text && test.filter.is_none() && can_append_events(test, paths);
        let initial = table.0.iter().enumerate();
        let initial = initial
            .map(|(index, (storage, _))| table.value_set(index, Some(test.initial_value(*storage, 0))))
            .collect();
        let flow = |thread: usize, path: &ThreadPath| {
            let mut flow = PathFlow {
                written_values: vec![0; table.0.len()],
                needed_values: Vec::new(),
                spin_exit: None,
            };
            let mut read: ReadIndex = 0;
            for step in &path.steps {
                let own = read;
                read += ReadIndex::from(step.kind.is_read());
                let (memory, stored) = match &step.kind {
                    StepKind::Read(memory) | StepKind::Rmw(memory, None) => (memory, None),
                    StepKind::Write(memory, stored) | StepKind::Rmw(memory, Some(stored)) => {
                        (memory, Some(stored))
                    }
                    _ => continue,
                };
                let Some(index) = table.storage_index(memory.extent.storage) else { continue };
                if let Some(stored) = stored {
                    flow.written_values[index] |= table.value_set(index, stored.known_value());
                }
                if step.kind.is_read() {
                    let accepted = table.accepted_values(index, path, own);
                    if accepted != table.all_values(index) {
                        flow.needed_values.push((index, accepted));
                    }
                }
            }
            if finds_spin_exits && !path.terminated && !path.truncated {
                flow.spin_exit = loop_exit_values(test, thread, path, paths, &table);
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
        self.threads.iter().flatten().all(|flow| flow.needed_values.is_empty() && flow.spin_exit.is_none())
    }

    /// Returns true if each read of the chosen paths may have a source.
    pub fn has_sources(&self, taken: &[PathChoice]) -> bool {
        let mut supplied = self.initial.clone();
        for (writes, _) in self.possible_writes(taken) {
            supplied.iter_mut().zip(writes).for_each(|(all, set)| *all |= set);
        }
        self.chosen_paths(taken)
            .all(|flow| flow.needed_values.iter().all(|(index, accepted)| supplied[*index] & accepted != 0))
    }

    /// Returns true if some chosen path ends in a spin loop that every last value leaves.
    pub fn can_continue(&self, taken: &[PathChoice]) -> bool {
        self.chosen_paths(taken).filter_map(|flow| flow.spin_exit).any(|(index, leaves)| {
            let (mut last, mut is_written) = (0, false);
            for (writes, is_certain) in self.possible_writes(taken) {
                last |= writes[index];
                is_written |= is_certain && writes[index] != 0;
            }
            let last = if is_written { last } else { last | self.initial[index] };
            last & !leaves == 0
        })
    }

    /// Returns the paths that are chosen.
    fn chosen_paths(&self, taken: &[PathChoice]) -> impl Iterator<Item = &PathFlow> {
        self.threads.iter().zip(taken).filter_map(|(paths, taken)| match taken {
            PathChoice::Path(path) => paths.get(*path),
            PathChoice::From(_) => None,
        })
    }

    /// Returns the writes of each path that is chosen or may be, with a flag if it is chosen.
    fn possible_writes(&self, taken: &[PathChoice]) -> impl Iterator<Item = (&[ValueSet], bool)> {
        self.threads.iter().zip(taken).flat_map(|(paths, taken)| {
            let (open, is_certain) = match *taken {
                PathChoice::Path(path) => (paths.get(path..=path), true),
                PathChoice::From(first) => (paths.get(first..), false),
            };
            open.unwrap_or_default().iter().map(move |flow| (flow.written_values.as_slice(), is_certain))
        })
    }
}

/// Returns true if appending events at the end of a thread affects no other event.
fn can_append_events(test: &Test, paths: &[Vec<ThreadPath>]) -> bool {
    let is_plain = |kind: &StepKind| {
        matches!(kind, StepKind::Read(_) | StepKind::Write(..) | StepKind::Rmw(..) | StepKind::Fence(..))
    };
    let mut steps = paths.iter().flatten().flat_map(|path| &path.steps);
    !test.has_undefined_locations()
        && test.system_sync.is_empty()
        && steps.all(|step| is_plain(&step.kind) && !step.cooperative)
}

/// Returns the storage of the load at which a spinning thread is, and the values with which it leaves the loop.
fn loop_exit_values(
    test: &Test,
    thread: usize,
    path: &ThreadPath,
    paths: &[Vec<ThreadPath>],
    table: &ValueTable,
) -> Option<(usize, ValueSet)> {
    let (load, before) = path.steps.split_last()?;
    let StepKind::Read(memory) = &load.kind else { return None };
    let Access::Atomic { scope, .. } = memory.access else { return None };
    let index = table.storage_index(memory.extent.storage)?;
    if !is_mutually_ordered(test, (thread, scope), memory, paths) {
        return None;
    }
    let last: ReadIndex = before.iter().map(|step| ReadIndex::from(step.kind.is_read())).sum();
    // A constraint that reads other values too may permit to stay in the loop.
    let is_decided_by_load = path.constraints.iter().all(|constraint| {
        let (mut of_last, mut of_others) = (false, false);
        for side in [&constraint.left, &constraint.right] {
            side.for_each_read(&mut |read| {
                *(if read == last { &mut of_last } else { &mut of_others }) = true
            });
        }
        !(of_last && of_others)
    });
    is_decided_by_load.then(|| (index, table.all_values(index) & !table.accepted_values(index, path, last)))
}
