//! Locations that are written only by mutually ordered atomics, and RMW chains: those among them that are written only
//! by read-modify-writes.
//!
//! Each RMW reads from its immediate predecessor in modification order, so that values flow along one chain.
//! No value depends on itself or on another location, and none passes through more writes than there are.
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

use crate::path::{StepAccess, StepKind, ThreadPath};
use crate::skeleton::{Skeleton, Tags};
use crate::symbolic::{ReadIndex, SymbolicValue};
use crate::valuation::reads_of;

/// The locations of a test that are written only by mutually ordered RMWs.
#[derive(Debug, Default)]
pub(crate) struct CounterLocations {
    pub(crate) locations: Vec<LocationId>,
    /// The locations whose writes are all mutually ordered atomics, through one name.
    pub(crate) ordered: Vec<LocationId>,
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
            }
        }
        found
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
