//! Steps of the scalar unit, the local data share and cache instructions, and the start of dispatches.

use super::{
    ARRAY, EventRecord, ExplorationState, LoadSource, Machine, MachineEvent, SCALAR, VECTOR, extract_word,
};
use crate::code::WaveStep;
use crate::opcode::{AccessAction, CacheInstruction};

impl Machine {
    pub(super) fn perform_scalar(
        &self,
        state: &mut ExplorationState,
        index: usize,
        source: LoadSource,
        events: &mut Vec<EventRecord>,
    ) {
        let Some(pending) = state.pending.get(index).cloned() else { return };
        let wave = usize::from(pending.wave);
        let Some((owner, details)) = self.access_of(wave, pending.access) else { return };
        let unit = self.unit_of(wave);
        let array = self.array_of(wave);
        let cells = owner.cells_of(pending.access);
        for (part, (cell, access_part)) in cells.iter().zip(&details.parts).enumerate() {
            let memory = self.memory_value(state, *cell);
            let cached = match source {
                LoadSource::Scalar => self.cached_value(state, SCALAR, unit, *cell),
                LoadSource::Array => self.cached_value(state, ARRAY, array, *cell),
                LoadSource::Memory => None,
            };
            let value = cached.unwrap_or(memory);
            if source != LoadSource::Scalar {
                self.fill_line(state, details, ARRAY, array, *cell, value);
                self.fill_line(state, details, SCALAR, unit, *cell, value);
            }
            self.record_returned_value(state, wave, access_part.slot, value);
            let event = match (source, cached) {
                (LoadSource::Scalar, Some(_)) => MachineEvent::HitScalar,
                (LoadSource::Array, Some(_)) => MachineEvent::HitArray,
                _ => MachineEvent::Read,
            };
            let value = extract_word(value, access_part.word);
            events.push(EventRecord { wave, line: details.line, event, word: Some(access_part.word), value });
            self.mark_performed(state, wave, pending.access, part);
        }
    }

    pub(super) fn perform_lds(
        &self,
        state: &mut ExplorationState,
        index: usize,
        events: &mut Vec<EventRecord>,
    ) {
        let Some(pending) = state.pending.get(index).cloned() else { return };
        let wave = usize::from(pending.wave);
        let Some((owner, details)) = self.access_of(wave, pending.access) else { return };
        let cells = owner.cells_of(pending.access);
        for (part, (cell, access_part)) in cells.iter().zip(&details.parts).enumerate() {
            let memory = self.memory_value(state, *cell);
            let new = self.cell_after(state, owner, details, access_part, memory);
            if let Some(value) = state.values.get_mut(usize::from(*cell)) {
                *value = new;
            }
            self.record_returned_value(state, wave, access_part.slot, memory);
            let is_load = matches!(details.action, AccessAction::Load { .. });
            let event = if is_load { MachineEvent::LdsRead } else { MachineEvent::LdsWrite };
            let value = extract_word(new, access_part.word);
            events.push(EventRecord { wave, line: details.line, event, word: Some(access_part.word), value });
            self.mark_performed(state, wave, pending.access, part);
        }
    }

    pub(super) fn has_begun(&self, state: &ExplorationState, wave: usize) -> bool {
        self.waves.get(wave).is_some_and(|owner| owner.dispatch <= usize::from(state.dispatch))
    }

    /// Returns true if a dispatch other than the last has ended and all its accesses have been performed.
    pub(super) fn can_start_next_dispatch(&self, state: &ExplorationState) -> bool {
        let begun = |wave: &usize| self.has_begun(state, *wave);
        let mut running = (0..self.waves.len()).filter(begun);
        state.pending.is_empty()
            && !(0..self.waves.len()).all(|wave| begun(&wave))
            && running.all(|wave| self.has_ended(state, wave))
    }

    /// Starts the next dispatch after a barrier that invalidates caches.
    pub(super) fn start_next_dispatch(&self, state: &mut ExplorationState, events: &mut Vec<EventRecord>) {
        let invalidated =
            self.invalidated_caches.get(usize::from(state.dispatch)).copied().unwrap_or_default();
        for cache in [VECTOR, ARRAY, SCALAR].into_iter().filter(|cache| invalidated[*cache]) {
            for place in 0..self.placement.array_of_unit.len() {
                for cell in 0..self.cells.len() {
                    self.drop_line(state, cache, place, cell as u16);
                }
            }
        }
        state.dispatch += 1;
        if let Some(wave) = self.waves.iter().position(|wave| wave.dispatch == usize::from(state.dispatch)) {
            events.push(EventRecord {
                wave,
                line: 0,
                event: MachineEvent::DispatchStart,
                word: None,
                value: 0,
            });
        }
    }

    pub(super) fn invalidate_lines(
        &self,
        state: &mut ExplorationState,
        wave: usize,
        events: &mut Vec<EventRecord>,
    ) {
        let Some(WaveStep::Cache { line, cache, scope }) = self.next_node(state, wave) else { return };
        let (at, cache, scope) = (*line, *cache, *scope);
        let unit = self.unit_of(wave);
        let array = self.array_of(wave);
        let invalidated: &[(usize, usize)] = match cache {
            CacheInstruction::InvalidateVector => &[(VECTOR, unit)],
            CacheInstruction::InvalidateArray => &[(ARRAY, array)],
            CacheInstruction::InvalidateByScope if scope >= 2 => &[(VECTOR, unit), (ARRAY, array)],
            CacheInstruction::InvalidateByScope if scope == 1 => &[(VECTOR, unit)],
            CacheInstruction::InvalidateScalar => &[(SCALAR, unit)],
            // Caches are write-through, so a write-back has no effect.
            CacheInstruction::InvalidateByScope
            | CacheInstruction::WriteBack
            | CacheInstruction::WriteBackScalar => &[],
        };
        for (cache, place) in invalidated {
            for cell in 0..self.cells.len() {
                self.drop_line(state, *cache, *place, cell as u16);
            }
        }
        events.push(EventRecord { wave, line: at, event: MachineEvent::Invalidate, word: None, value: 0 });
        if let Some(node) = state.next_nodes.get_mut(wave) {
            *node += 1;
        }
    }
}
