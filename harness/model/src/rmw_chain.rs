//! Locations that are written only by mutually ordered atomics, and RMW chains: those among them that are written only
//! by read-modify-writes.
//!
//! Each RMW reads from its immediate predecessor in modification order, so that values flow along one chain.
//! No value depends on itself or on another location, and none passes through more writes than there are. If
//! every write increases the value, no two RMWs read the same value.
//!
//! This follows from the Vulkan memory model if each write is one atomic RMW of a device thread, through one
//! name, in scope of all the others. Let X read from W.
//!
//! - If another write Y comes between W and X: `asmo` has (W, Y), or W is the initial write, so that `fr` has
//!   (X, Y). Also `asmo` has (Y, X), which violates atomicity (VK-COH-05).
//! - If W comes after X: X's read precedes X's write in location order, and `asmo` has (X, W), a cycle of the
//!   consistency axiom.

use litmus::{
    Access, ArithmeticOperation, LocationId, LocationInit, Placement, Scope, Test, ThreadPlace, Value,
};

use crate::path::{PathChoice, StepAccess, StepKind, ThreadPath, ThreadStep};
use crate::skeleton::{Skeleton, Tags};
use crate::symbolic::{ReadIndex, SymbolicValue};
use crate::valuation::reads_of;

/// Limit of the sum of all increments of one location, for excluding combinations of paths.
const MAX_COUNTER_VALUE: u64 = 256;

/// The locations of a test that are written only by mutually ordered RMWs.
#[derive(Debug, Default)]
pub(crate) struct CounterLocations {
    pub(crate) locations: Vec<LocationId>,
    /// The locations whose writes are all mutually ordered atomics, through one name.
    pub(crate) ordered: Vec<LocationId>,
    /// The counters: every write increases them.
    counters: Vec<IncreasingLocation>,
}

/// A location that every write increases.
#[derive(Debug)]
struct IncreasingLocation {
    /// For each thread, path and RMW of that path: the values that the RMW may read, as offsets from the
    /// initial value.
    readable_values: Vec<Vec<Vec<Vec<bool>>>>,
}

/// The RMW chain of one location in an event structure.
#[derive(Clone, Debug)]
pub(crate) struct RmwChain {
    pub(crate) storage: LocationId,
    pub(crate) initial: usize,
    /// The read and write event of each RMW.
    pub(crate) rmw_events: Vec<(usize, usize)>,
}

impl RmwChain {
    /// Returns what each RMW adds, and the largest value; `None` if some RMW does not add a positive constant or may
    /// wrap around.
    pub(crate) fn increments(&self, skeleton: &Skeleton) -> Option<(Vec<u64>, u64)> {
        let mut last = skeleton.events[self.initial].stored_value.as_ref()?.known_value()?.0;
        let mut added = Vec::new();
        for (read, write) in &self.rmw_events {
            let stored = skeleton.events[*write].stored_value.as_ref()?;
            let SymbolicValue::Operation(_, scalar, _) = stored else { return None };
            let amount = added_amount(stored, *read as ReadIndex)?;
            last = last.checked_add(amount).filter(|last| last >> (scalar.bits() - 1) == 0)?;
            added.push(amount);
        }
        Some((added, last))
    }
}

impl CounterLocations {
    /// Finds the counter locations of a test whose threads have these paths.
    pub(crate) fn new(test: &Test, paths: &[Vec<ThreadPath>]) -> CounterLocations {
        let mut found = CounterLocations::default();
        let places: Option<Vec<Placement>> = test
            .threads
            .iter()
            .map(|thread| match thread.place {
                ThreadPlace::Device(place) => Some(place),
                ThreadPlace::Host => None,
            })
            .collect();
        let Some(places) = places.filter(|_| test.khronos.is_none()) else { return found };
        for name in (0..test.locations.len()).map(|index| LocationId(index as u16)) {
            let constant = matches!(test.location(name).init, LocationInit::Constant(_));
            let all = (0..test.locations.len()).map(|index| LocationId(index as u16));
            let alone = all.filter(|other| test.storage_of(*other) == name).count() == 1;
            let Some((writers, only_rmws)) = find_atomic_writers(name, paths).filter(|_| constant && alone)
            else {
                continue;
            };
            let ordered = |(one, scope): &(usize, Scope)| {
                let reaches = |(other, _): &(usize, Scope)| {
                    one == other || places[*one].shares_scope(places[*other], *scope)
                };
                writers.iter().all(reaches)
            };
            // The scope of every write must include every other writer, otherwise the two are not mutually
            // ordered.
            if !writers.iter().all(ordered) {
                continue;
            }
            found.ordered.push(name);
            if writers.len() > 1 && only_rmws {
                found.locations.push(name);
                found.counters.extend(IncreasingLocation::new(test, name, paths));
            }
        }
        found
    }

    /// Returns true if some combinations of paths are known to have no execution.
    pub(crate) fn can_exclude_paths(&self) -> bool {
        !self.counters.is_empty()
    }

    /// Returns true if the RMWs of each counter may read pairwise different values on these paths.
    pub(crate) fn has_distinct_reads(&self, taken: &[PathChoice]) -> bool {
        self.counters.iter().all(|counter| counter.has_distinct_reads(taken))
    }

    /// Returns the RMW chains of an event structure. A location is omitted if a stored value depends on
    /// another read.
    pub(crate) fn chains_in(&self, skeleton: &Skeleton) -> Vec<RmwChain> {
        let chain = |storage: &LocationId| {
            let (mut initial, mut rmw_events) = (None, Vec::new());
            for (event, data) in skeleton.events.iter().enumerate() {
                if data.storage != Some(*storage) {
                    continue;
                }
                if data.tags.has(Tags::IW) {
                    let first = initial.replace(event).is_none();
                    if !first {
                        return None;
                    }
                } else if data.tags.has(Tags::W) {
                    let read = skeleton.read_half(event)?;
                    let is_self_contained =
                        reads_of(data.stored_value.as_ref()?).iter().all(|from| usize::from(*from) == read);
                    rmw_events.push(is_self_contained.then_some((read, event))?);
                }
            }
            Some(RmwChain { storage: *storage, initial: initial?, rmw_events })
        };
        self.locations.iter().filter_map(chain).collect()
    }
}

/// Returns the threads that write a storage, with the scopes of their writes, and if all of these are RMWs; `None`
/// if some write is not an atomic of the whole storage.
fn find_atomic_writers(name: LocationId, paths: &[Vec<ThreadPath>]) -> Option<(Vec<(usize, Scope)>, bool)> {
    let (mut writers, mut only_rmws) = (Vec::new(), true);
    for (thread, paths) in paths.iter().enumerate() {
        for step in paths.iter().flat_map(|path| &path.steps) {
            match &step.kind {
                // If access sizes differ, each byte is a separate cell.
                StepKind::Read(memory) | StepKind::Rmw(memory, None)
                    if memory.extent.storage == name && !memory.extent.is_whole =>
                {
                    return None;
                }
                StepKind::Write(memory, _) | StepKind::Rmw(memory, Some(_))
                    if memory.extent.storage == name =>
                {
                    only_rmws &= matches!(step.kind, StepKind::Rmw(..));
                    let StepAccess { access: Access::Atomic { scope, .. }, .. } = memory else { return None };
                    if memory.location != name
                        || !memory.extent.is_whole
                        || step.cooperative
                        || step.is_continuation
                    {
                        return None;
                    }
                    if !writers.contains(&(thread, *scope)) {
                        writers.push((thread, *scope));
                    }
                }
                _ => {}
            }
        }
    }
    Some((writers, only_rmws))
}

impl IncreasingLocation {
    fn new(test: &Test, name: LocationId, paths: &[Vec<ThreadPath>]) -> Option<IncreasingLocation> {
        let bits = test.location(name).scalar_type().bits();
        let first = test.initial_value(name, 0).0;
        let mut total = 0u64;
        for paths in paths {
            let mut most = 0u64;
            for path in paths {
                let mut sum = 0u64;
                for (_, step, read) in counting_steps(path, name) {
                    let StepKind::Rmw(_, Some(stored)) = &step.kind else { continue };
                    sum = sum.saturating_add(added_amount(stored, read)?);
                }
                most = most.max(sum);
            }
            total = total.saturating_add(most);
        }
        // No addition wraps around, and signed numbers keep their order.
        if total > MAX_COUNTER_VALUE || bits < 8 || first.checked_add(total)? >= 1 << (bits.min(63) - 1) {
            return None;
        }
        let readable_values = |path: &ThreadPath| -> Vec<Vec<bool>> {
            // No thread needs to pass a wait that the other threads must reach first.
            let waits = |step: &ThreadStep| {
                matches!(step.kind, StepKind::ControlBarrier | StepKind::SplitBarrier | StepKind::Subgroup(_))
            };
            let end = path.steps.iter().position(waits).unwrap_or(path.steps.len());
            let each = counting_steps(path, name).take_while(|(at, ..)| *at < end).map(|(_, _, read)| {
                let is_readable = |value: u64| {
                    path.constraints.iter().all(|constraint| {
                        constraint.is_satisfied(&mut |other| (other == read).then_some(Value(value)))
                            != Some(false)
                    })
                };
                // An RMW reads the value before its own increment, so it never reads the final one.
                (first..first + total).map(is_readable).collect()
            });
            each.collect()
        };
        let readable_values = paths.iter().map(|paths| paths.iter().map(readable_values).collect()).collect();
        Some(IncreasingLocation { readable_values })
    }

    fn has_distinct_reads(&self, taken: &[PathChoice]) -> bool {
        let mut found: Vec<Vec<bool>> = Vec::new();
        for (paths, taken) in self.readable_values.iter().zip(taken) {
            match *taken {
                PathChoice::Path(path) => found.extend(paths.get(path).into_iter().flatten().cloned()),
                // An RMW that all remaining paths share may read the union of their values.
                PathChoice::From(least) => {
                    let remaining = paths.get(least..).unwrap_or_default();
                    for at in 0..remaining.iter().map(Vec::len).min().unwrap_or(0) {
                        let mut any = remaining[0][at].clone();
                        for path in remaining {
                            any.iter_mut().zip(&path[at]).for_each(|(any, may)| *any |= may);
                        }
                        found.push(any);
                    }
                }
            }
        }
        has_distinct_assignment(&found)
    }
}

/// Returns true if each row can be assigned a value that no other row has (bipartite matching, Kuhn's
/// algorithm).
fn has_distinct_assignment(found: &[Vec<bool>]) -> bool {
    fn assign_value(
        one: usize,
        found: &[Vec<bool>],
        seen: &mut [bool],
        assigned: &mut [Option<usize>],
    ) -> bool {
        for number in 0..assigned.len() {
            if !found[one].get(number).copied().unwrap_or(false) || std::mem::replace(&mut seen[number], true)
            {
                continue;
            }
            let free = match assigned[number] {
                None => true,
                Some(other) => assign_value(other, found, seen, assigned),
            };
            // An augmenting path: the value's previous row has found another one.
            if free {
                assigned[number] = Some(one);
                return true;
            }
        }
        false
    }
    let numbers = found.first().map_or(0, Vec::len);
    let mut assigned: Vec<Option<usize>> = vec![None; numbers];
    (0..found.len()).all(|one| assign_value(one, found, &mut vec![false; numbers], &mut assigned))
}

/// Returns the RMWs of a path on a location, each with the index of its read.
fn counting_steps(
    path: &ThreadPath,
    name: LocationId,
) -> impl Iterator<Item = (usize, &ThreadStep, ReadIndex)> {
    let mut reads = 0;
    let all = path.steps.iter().enumerate().map(move |(at, step)| {
        let read = reads;
        reads += ReadIndex::from(step.kind.is_read());
        (at, step, read)
    });
    all.filter(move |(_, step, _)| {
        matches!(&step.kind, StepKind::Rmw(memory, Some(_)) if memory.extent.storage == name)
    })
}

/// Returns the constant that an RMW adds to the value that it reads, if it is positive.
fn added_amount(stored: &SymbolicValue<ReadIndex>, own: ReadIndex) -> Option<u64> {
    let SymbolicValue::Operation(ArithmeticOperation::Add, _, sides) = stored else { return None };
    match sides.as_ref() {
        (SymbolicValue::Read(read), SymbolicValue::Known(Value(number)))
        | (SymbolicValue::Known(Value(number)), SymbolicValue::Read(read))
            if *read == own && *number > 0 =>
        {
            Some(*number)
        }
        _ => None,
    }
}
