//! Steps that commute with every later step of the other threads.
//!
//! Such a step is a persistent set of one transition (Godefroid, *Partial-Order Methods for the Verification of
//! Concurrent Systems*, 1996, section 4): a search that tries only this step reaches the same final states. The
//! step of a thread is independent if, for each location that it accesses, one of these holds:
//!
//! - the other threads do not access the location any more;
//! - the other threads only store the number that the location has already, and so does the step if it stores;
//! - the step and the other threads only store one constant.
//!
//! In doubt a step is dependent: after a jump back, all code of a thread is still to come. Tests with undefined
//! initial values, or with instructions whose order others decide other than by memory and control barriers,
//! are not reduced.

#![deny(clippy::wildcard_enum_match_arm)]

use litmus::{AccessKind, Flow, InstructionKind, MemoryAccess, Operand, Test, Thread, Value};

use super::state::PackedState;
use super::{SchedulingMode, SequentialMachine};
use crate::cells::Extent;

/// The writes of a part of a thread to a location.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum LaterWrites {
    #[default]
    Nothing,
    /// Stores of one constant to one extent.
    Constant(Extent, Value),
    Other,
}

/// The accesses of a part of a thread to a location.
#[derive(Clone, Copy, Debug, Default)]
struct LocationUse {
    reads: bool,
    writes: LaterWrites,
}

impl LocationUse {
    fn is_unused(self) -> bool {
        !self.reads && self.writes == LaterWrites::Nothing
    }

    fn add(&mut self, other: LocationUse) {
        self.reads |= other.reads;
        self.writes = match (self.writes, other.writes) {
            (known, LaterWrites::Nothing) => known,
            (LaterWrites::Nothing, new) => new,
            (known, new) if known == new => known,
            _ => LaterWrites::Other,
        };
    }
}

/// The accesses that each thread may still perform, by its position and by location.
#[derive(Debug)]
pub(super) struct LaterAccesses(Vec<Vec<Vec<LocationUse>>>);

impl LaterAccesses {
    /// Returns the table of a test; `None` if its steps depend on more than memory and control barriers.
    pub(super) fn new(test: &Test) -> Option<LaterAccesses> {
        let is_reducible = |kind: &InstructionKind| match kind {
            InstructionKind::Access(_)
            | InstructionKind::Fence { .. }
            | InstructionKind::ControlBarrier(_)
            | InstructionKind::Compute(_)
            | InstructionKind::Flow(_) => true,
            InstructionKind::SplitBarrier(_)
            | InstructionKind::System(_)
            | InstructionKind::ShaderCall(_)
            | InstructionKind::Interlock(_)
            | InstructionKind::Subgroup(_) => false,
        };
        let mut code = test.threads.iter().flat_map(|thread| &thread.instructions);
        let reducible = code.all(|instruction| is_reducible(&instruction.kind));
        (reducible && test.system_sync.is_empty() && !test.has_undefined_locations()).then(|| {
            LaterAccesses(test.threads.iter().map(|thread| uses_by_position(test, thread)).collect())
        })
    }
}

/// Returns the later accesses of a thread for each of its positions.
fn uses_by_position(test: &Test, thread: &Thread) -> Vec<Vec<LocationUse>> {
    let mut uses = vec![LocationUse::default(); test.locations.len()];
    let mut table = vec![uses.clone()];
    for instruction in thread.instructions.iter().rev() {
        if let InstructionKind::Access(access) = &instruction.kind {
            for lane in access.scalar_accesses() {
                let (location, lane_use) = location_use(test, &lane);
                uses[location].add(lane_use);
            }
        }
        table.push(uses.clone());
    }
    table.reverse();
    let has_label = |kind: &InstructionKind| matches!(kind, InstructionKind::Flow(Flow::Label(_)));
    if thread.instructions.iter().any(|instruction| has_label(&instruction.kind)) {
        table.fill(uses);
    }
    table
}

/// Returns the location of a scalar access, and its use.
fn location_use(test: &Test, access: &MemoryAccess) -> (usize, LocationUse) {
    let extent = Extent::from_place(test, &access.place);
    let lane_use = match &access.kind {
        AccessKind::Load(_) | AccessKind::Await { .. } => {
            LocationUse { reads: true, writes: LaterWrites::Nothing }
        }
        AccessKind::Store(values) => {
            let writes = match values.first() {
                Operand::Constant(constant) => LaterWrites::Constant(
                    extent,
                    Value::from_constant(constant, access.place.scalar_type(test)),
                ),
                Operand::Register(_) => LaterWrites::Other,
            };
            LocationUse { reads: false, writes }
        }
        AccessKind::Rmw { .. } => LocationUse { reads: true, writes: LaterWrites::Other },
    };
    (usize::from(extent.storage.0), lane_use)
}

impl SequentialMachine<'_> {
    /// Returns true if the next turn of a thread commutes with every later step of the other threads.
    pub(super) fn is_independent(&self, state: &PackedState, thread: usize, later: &LaterAccesses) -> bool {
        if self.is_done(state, thread) {
            return false;
        }
        let position = self.position(state, thread);
        if self.mode == SchedulingMode::Serial {
            let thread_uses = &later.0[thread][position];
            return (0..thread_uses.len())
                .all(|location| self.commutes(state, thread, (location, thread_uses[location]), later));
        }
        match self.test.threads[thread].instructions.get(position).map(|instruction| &instruction.kind) {
            Some(InstructionKind::Access(access)) => access
                .scalar_accesses()
                .all(|lane| self.commutes(state, thread, location_use(self.test, &lane), later)),
            _ => false,
        }
    }

    /// Returns true if accesses of a thread to a location commute with those that others may still perform.
    fn commutes(
        &self,
        state: &PackedState,
        thread: usize,
        (location, thread_use): (usize, LocationUse),
        later: &LaterAccesses,
    ) -> bool {
        if thread_use.is_unused() {
            return true;
        }
        let mut others = LocationUse::default();
        for other in (0..self.threads.len()).filter(|other| *other != thread && !self.is_done(state, *other))
        {
            others.add(later.0[other][self.position(state, other)][location]);
        }
        if others.is_unused() {
            return true;
        }
        let mut combined = others;
        combined.add(thread_use);
        match combined.writes {
            LaterWrites::Nothing => true,
            LaterWrites::Constant(extent, value) => {
                self.read_memory(state, extent) == value || !combined.reads
            }
            LaterWrites::Other => false,
        }
    }
}
