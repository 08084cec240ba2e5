//! The rules of elimination and of reordering, on the state of a simulation.

use litmus::Access;

use super::{NextStep, PendingEvent, SimulationState, SubsequentSync};
use crate::refinement::event::{CellKey, Event, Operation};
use crate::refinement::expression::Expression;
use spirv_reader::SourcePosition;

/// Records the value of an access of AFTER.
pub(super) fn note_repeatable(state: &mut SimulationState, event: &Event) {
    let Some(cell) = event.cell.clone().filter(|_| event.is_plain() && !event.is_volatile) else {
        let overlaps = |other: &CellKey| {
            event.writes() && event.cell.as_ref().is_some_and(|cell| cell.may_overlap(other))
        };
        // No synchronization orders private accesses.
        let is_kept = |other: &CellKey, strength| strength == Access::Private && !overlaps(other);
        return state.repeatable.retain(|other, (_, strength)| is_kept(other, *strength));
    };
    let loaded = event.destination.and_then(|register| state.after.registers.get(&register));
    let value = match &event.operation {
        Operation::Store(value) => Some(value),
        _ => loaded,
    };
    if event.writes() {
        state.repeatable.retain(|other, _| !other.may_overlap(&cell));
    }
    match value.cloned() {
        Some(value) => _ = state.repeatable.insert(cell, (value, event.strength)),
        None => _ = state.repeatable.remove(&cell),
    }
}

/// Performs the next event if it is a load that repeats an access of AFTER, and returns it.
pub(super) fn repeated_load(state: &mut SimulationState) -> Option<Event> {
    let Some(NextStep::Event(event)) = &state.next else { return None };
    let (cell, register) = (event.cell.as_ref()?, event.destination?);
    let is_eligible = event.is_plain() && event.is_load() && !event.is_volatile;
    let known = state.repeatable.get(cell).filter(|_| is_eligible);
    let (value, _) = known.filter(|(_, strength)| *strength == event.strength).cloned()?;
    // The added load needs no event of BEFORE: no synchronizing event is between the two
    // accesses, so no other invocation can write between them without a race.
    state.after.registers.insert(register, value);
    Some(event.clone())
}

/// Performs an event of BEFORE if it is a load that AFTER may lack.
///
/// BEFORE reads the value that its last access determines, which is one of the allowed values. AFTER gets no
/// event to match.
pub(super) fn eliminates_load(state: &mut SimulationState, event: &Event) -> bool {
    let (Some(cell), Some(register)) = (&event.cell, event.destination) else { return false };
    if !event.is_load() || event.is_volatile {
        return false;
    }
    let value = if event.is_plain() {
        let known = state.last_accesses.get(cell).cloned();
        known.filter(|(_, elapsed)| !elapsed.is_acquired || event.is_private()).map(|(value, _)| value)
    } else {
        let is_eliminated = |(known, _, places): &&mut (CellKey, Expression, Vec<SourcePosition>)| {
            event.is_relaxed() && known == cell && !places.contains(&event.spot.place)
        };
        state.last_atomic.as_mut().filter(is_eliminated).map(|(_, value, places)| {
            places.push(event.spot.place);
            value.clone()
        })
    };
    let Some(value) = value else { return false };
    state.last_spot = Some(event.spot);
    state.before.registers.insert(register, value);
    true
}

/// Performs an event of BEFORE.
pub(super) fn perform_before(state: &mut SimulationState, event: Event) {
    state.last_spot = Some(event.spot);
    let result = event.destination.map(|register| {
        let symbol = state.next_symbol;
        state.next_symbol += 1;
        state.domains.insert(symbol, event.domain.clone());
        state.before.registers.insert(register, Expression::Symbol(symbol));
        Expression::Symbol(symbol)
    });
    // In this order, an event that both releases and acquires forgets every value.
    if event.releases() {
        state.last_accesses.values_mut().for_each(|(_, elapsed)| elapsed.is_released = true);
    }
    if event.acquires() {
        state.last_accesses.retain(|_, (_, elapsed)| !elapsed.is_released || elapsed.is_private);
        state.last_accesses.values_mut().for_each(|(_, elapsed)| elapsed.is_acquired |= elapsed.is_released);
    }
    if let Some(cell) = &event.cell {
        if event.writes() || !event.is_plain() {
            state.last_accesses.retain(|other, _| !other.may_overlap(cell));
        }
        let elapsed =
            SubsequentSync { is_private: event.is_private(), is_released: false, is_acquired: false };
        let value = match (&event.operation, &result) {
            (Operation::Load, Some(value)) | (Operation::Store(value), _) if !event.is_volatile => {
                Some(value.clone())
            }
            _ => None,
        };
        match value {
            Some(value) if event.is_plain() => {
                _ = state.last_accesses.insert(cell.clone(), (value, elapsed));
            }
            other => {
                state.last_accesses.remove(cell);
                if !event.is_plain() {
                    let place = event.spot.place;
                    state.last_atomic = other.map(|value| (cell.clone(), value, vec![place]));
                }
            }
        }
        // A mixed access of the cell ends the life of the known value.
        state
            .last_atomic
            .take_if(|(atomic, ..)| event.is_plain() && event.writes() && atomic.may_overlap(cell));
    } else {
        state.last_atomic = None;
    }
    state.pending.push(PendingEvent { event, result });
}

/// Returns the pending event that the next one cannot pass.
pub(super) fn blocking_event(state: &SimulationState) -> Option<Event> {
    let mut synchronizing = state.pending.iter().map(|pending| &pending.event).filter(|one| !one.is_plain());
    match &state.next {
        Some(NextStep::Event(event)) => synchronizing.find(|one| !may_precede(event, one)).cloned(),
        Some(NextStep::End | NextStep::Hang | NextStep::Undefined(_)) => synchronizing.next().cloned(),
        None => None,
    }
}

/// Returns a pending event that may not be removed at the end.
pub(super) fn lost_event(state: &SimulationState) -> Option<Event> {
    let mut pending = state.pending.iter().map(|pending| &pending.event);
    pending.find(|one| !one.is_plain() || one.writes() || one.is_volatile).cloned()
}

/// Returns true if AFTER may perform `event` before `pending`, which precedes it in BEFORE.
///
/// Also true if `pending` disappears by that: a store that is overwritten, or a load before a release.
pub(super) fn may_precede(event: &Event, pending: &Event) -> bool {
    if event.is_volatile && pending.is_volatile {
        return false;
    }
    let is_same_cell = event.cell == pending.cell;
    let cells = event.cell.as_ref().zip(pending.cell.as_ref());
    let may_overlap = cells.is_some_and(|(one, other)| one.may_overlap(other));
    match (pending.is_plain(), event.is_plain()) {
        (true, true) => {
            let overwrites = is_same_cell && event.writes() && pending.writes() && !pending.is_volatile;
            !may_overlap || event.is_load() && pending.is_load() || overwrites
        }
        // A plain access moves after a synchronizing one, unless that releases; a load before a
        // release disappears instead.
        (true, false) => {
            let disappears = pending.is_load() && !pending.is_volatile;
            !may_overlap && (disappears || !event.releases() || pending.is_private())
        }
        // A plain access moves before a synchronizing one, unless that acquires.
        (false, true) => !may_overlap && (!pending.acquires() || event.is_private()),
        // Synchronizing events keep their order. Relaxed accesses of different cells have none.
        (false, false) => event.is_relaxed() && pending.is_relaxed() && !may_overlap,
    }
}
