//! Steps of the scalar unit, the local data share and cache instructions, and the start of dispatches.

use super::{
    ARRAY, EventRecord, ExplorationState, LoadSource, Machine, MachineEvent, SCALAR, VECTOR, WaveSeats,
    apply_atomic, extract_word, insert_word,
};
use crate::code::WaveStep;
use crate::opcode::{Action, CacheInstruction};

impl Machine {
    pub(super) fn perform_scalar(
        &self,
        state: &mut ExplorationState,
        seats: &WaveSeats,
        index: usize,
        from: LoadSource,
        records: &mut Vec<EventRecord>,
    ) {
        let Some(pending) = state.pending.get(index).cloned() else { return };
        let wave = usize::from(pending.wave);
        let Some((owner, details)) = self.access_of(wave, pending.access) else { return };
        let unit = seats.unit.get(wave).copied().unwrap_or(0);
        let array = seats.array.get(wave).copied().unwrap_or(0);
        let cells = owner.cells.get(usize::from(pending.access)).map(Vec::as_slice).unwrap_or_default();
        for (part, (cell, what)) in cells.iter().zip(&details.parts).enumerate() {
            let memory = state.values.get(usize::from(*cell)).copied().unwrap_or(0);
            let cached = match from {
                LoadSource::Scalar => self.cached_value(state, seats, SCALAR, unit, *cell),
                LoadSource::Array => self.cached_value(state, seats, ARRAY, array, *cell),
                LoadSource::Memory => None,
            };
            let value = cached.unwrap_or(memory);
            if from != LoadSource::Scalar {
                self.fill_array_line(state, seats, details.skips, array, *cell, value);
                if !details.skips.scalar
                    && let Some(line) = self.line_mut(state, seats, SCALAR, unit, *cell)
                {
                    *line = Some(value);
                }
            }
            self.store_returned(state, wave, what.slot, value);
            let event = match (from, cached) {
                (LoadSource::Scalar, Some(_)) => MachineEvent::HitScalar,
                (LoadSource::Array, Some(_)) => MachineEvent::HitArray,
                _ => MachineEvent::Read,
            };
            let value = extract_word(value, what.place);
            records.push(EventRecord { wave, line: details.line, event, place: Some(what.place), value });
            self.mark_performed(state, wave, pending.access, part);
        }
    }

    pub(super) fn perform_lds(
        &self,
        state: &mut ExplorationState,
        index: usize,
        records: &mut Vec<EventRecord>,
    ) {
        let Some(pending) = state.pending.get(index).cloned() else { return };
        let wave = usize::from(pending.wave);
        let Some((owner, details)) = self.access_of(wave, pending.access) else { return };
        let cells = owner.cells.get(usize::from(pending.access)).map(Vec::as_slice).unwrap_or_default();
        for (part, (cell, what)) in cells.iter().zip(&details.parts).enumerate() {
            let memory = state.values.get(usize::from(*cell)).copied().unwrap_or(0);
            let data = self.store_data(state, owner, what.data);
            let new = match details.action {
                Action::Load { .. } => memory,
                Action::Store => insert_word(memory, what.place, data),
                Action::Atomic(operation) => {
                    let compare = self.store_data(state, owner, what.compare);
                    let new = apply_atomic(
                        operation,
                        extract_word(memory, what.place),
                        data,
                        compare,
                        what.place.bytes,
                    );
                    insert_word(memory, what.place, new)
                }
            };
            if let Some(value) = state.values.get_mut(usize::from(*cell)) {
                *value = new;
            }
            self.store_returned(state, wave, what.slot, memory);
            let load = matches!(details.action, Action::Load { .. });
            let event = if load { MachineEvent::ReadLds } else { MachineEvent::WrittenLds };
            let value = extract_word(new, what.place);
            records.push(EventRecord { wave, line: details.line, event, place: Some(what.place), value });
            self.mark_performed(state, wave, pending.access, part);
        }
    }

    pub(super) fn has_begun(&self, state: &ExplorationState, wave: usize) -> bool {
        self.waves.get(wave).is_some_and(|owner| owner.dispatch <= usize::from(state.dispatch))
    }

    /// Returns true if a dispatch other than the last has ended and all its accesses have been performed.
    pub(super) fn may_start_next(&self, state: &ExplorationState) -> bool {
        let begun = |wave: &usize| self.has_begun(state, *wave);
        let mut running = (0..self.waves.len()).filter(begun);
        state.pending.is_empty()
            && !(0..self.waves.len()).all(|wave| begun(&wave))
            && running.all(|wave| self.has_ended(state, wave))
    }

    /// Starts the next dispatch after a barrier that invalidates caches.
    pub(super) fn next_dispatch(
        &self,
        state: &mut ExplorationState,
        seats: &WaveSeats,
        records: &mut Vec<EventRecord>,
    ) {
        let emptied = self.emptied.get(usize::from(state.dispatch)).copied().unwrap_or_default();
        for cache in [VECTOR, ARRAY, SCALAR].into_iter().filter(|cache| emptied[*cache]) {
            for place in 0..seats.arrays.len() {
                for cell in 0..self.cells.len() {
                    if let Some(line) = self.line_mut(state, seats, cache, place, cell as u16) {
                        *line = None;
                    }
                }
            }
        }
        state.dispatch += 1;
        if let Some(wave) = self.waves.iter().position(|wave| wave.dispatch == usize::from(state.dispatch)) {
            records.push(EventRecord { wave, line: 0, event: MachineEvent::Begun, place: None, value: 0 });
        }
    }

    pub(super) fn drop_lines(
        &self,
        state: &mut ExplorationState,
        seats: &WaveSeats,
        wave: usize,
        records: &mut Vec<EventRecord>,
    ) {
        let Some(WaveStep::Cache { line, cache, scope }) = self.next_node(state, wave) else { return };
        let (at, cache, scope) = (*line, *cache, *scope);
        let unit = seats.unit.get(wave).copied().unwrap_or(0);
        let array = seats.array.get(wave).copied().unwrap_or(0);
        let dropped: &[(usize, usize)] = match cache {
            CacheInstruction::DropVector => &[(VECTOR, unit)],
            CacheInstruction::DropArray => &[(ARRAY, array)],
            CacheInstruction::DropByScope if scope >= 2 => &[(VECTOR, unit), (ARRAY, array)],
            CacheInstruction::DropByScope if scope == 1 => &[(VECTOR, unit)],
            CacheInstruction::DropScalar => &[(SCALAR, unit)],
            // Caches are write-through, so a write-back has no effect.
            CacheInstruction::DropByScope
            | CacheInstruction::WriteBack
            | CacheInstruction::WriteBackScalar => &[],
        };
        for (cache, place) in dropped {
            for cell in 0..self.cells.len() {
                if let Some(line) = self.line_mut(state, seats, *cache, *place, cell as u16) {
                    *line = None;
                }
            }
        }
        records.push(EventRecord { wave, line: at, event: MachineEvent::Dropped, place: None, value: 0 });
        if let Some(node) = state.nodes.get_mut(wave) {
            *node += 1;
        }
    }
}
