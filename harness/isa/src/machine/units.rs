//! Steps of the scalar unit, the local data share and cache instructions, and the start of dispatches.

use super::{ARRAY, Event, Machine, Record, SCALAR, Seats, Source, State, VECTOR, apply, extract, insert};
use crate::code::Node;
use crate::opcode::{Action, Cache};

impl Machine {
    pub(super) fn scalar(
        &self,
        state: &mut State,
        seats: &Seats,
        index: usize,
        from: Source,
        records: &mut Vec<Record>,
    ) {
        let Some(pending) = state.pending.get(index).cloned() else { return };
        let wave = usize::from(pending.wave);
        let Some((owner, details)) = self.access(wave, pending.access) else { return };
        let unit = seats.unit.get(wave).copied().unwrap_or(0);
        let array = seats.array.get(wave).copied().unwrap_or(0);
        let cells = owner.cells.get(usize::from(pending.access)).map(Vec::as_slice).unwrap_or_default();
        for (part, (cell, what)) in cells.iter().zip(&details.parts).enumerate() {
            let memory = state.values.get(usize::from(*cell)).copied().unwrap_or(0);
            let cached = match from {
                Source::Scalar => self.cached(state, seats, SCALAR, unit, *cell),
                Source::Array => self.cached(state, seats, ARRAY, array, *cell),
                Source::Memory => None,
            };
            let value = cached.unwrap_or(memory);
            if from != Source::Scalar {
                self.fill(state, seats, details.skips, array, *cell, value);
                if !details.skips.scalar
                    && let Some(line) = self.line(state, seats, SCALAR, unit, *cell)
                {
                    *line = Some(value);
                }
            }
            self.returned(state, wave, what.slot, value);
            let event = match (from, cached) {
                (Source::Scalar, Some(_)) => Event::HitScalar,
                (Source::Array, Some(_)) => Event::HitArray,
                _ => Event::Read,
            };
            let value = extract(value, what.place);
            records.push(Record { wave, line: details.line, event, place: Some(what.place), value });
            self.performed(state, wave, pending.access, part);
        }
    }

    pub(super) fn lds(&self, state: &mut State, index: usize, records: &mut Vec<Record>) {
        let Some(pending) = state.pending.get(index).cloned() else { return };
        let wave = usize::from(pending.wave);
        let Some((owner, details)) = self.access(wave, pending.access) else { return };
        let cells = owner.cells.get(usize::from(pending.access)).map(Vec::as_slice).unwrap_or_default();
        for (part, (cell, what)) in cells.iter().zip(&details.parts).enumerate() {
            let memory = state.values.get(usize::from(*cell)).copied().unwrap_or(0);
            let data = self.data(state, owner, what.data);
            let new = match details.action {
                Action::Load { .. } => memory,
                Action::Store => insert(memory, what.place, data),
                Action::Atomic(operation) => {
                    let compare = self.data(state, owner, what.compare);
                    let new = apply(operation, extract(memory, what.place), data, compare, what.place.bytes);
                    insert(memory, what.place, new)
                }
            };
            if let Some(value) = state.values.get_mut(usize::from(*cell)) {
                *value = new;
            }
            self.returned(state, wave, what.slot, memory);
            let load = matches!(details.action, Action::Load { .. });
            let event = if load { Event::ReadLds } else { Event::WrittenLds };
            let value = extract(new, what.place);
            records.push(Record { wave, line: details.line, event, place: Some(what.place), value });
            self.performed(state, wave, pending.access, part);
        }
    }

    pub(super) fn has_begun(&self, state: &State, wave: usize) -> bool {
        self.waves.get(wave).is_some_and(|owner| owner.dispatch <= usize::from(state.dispatch))
    }

    /// Returns true if a dispatch other than the last has ended and all its accesses have been performed.
    pub(super) fn may_go_on(&self, state: &State) -> bool {
        let begun = |wave: &usize| self.has_begun(state, *wave);
        let mut running = (0..self.waves.len()).filter(begun);
        state.pending.is_empty()
            && !(0..self.waves.len()).all(|wave| begun(&wave))
            && running.all(|wave| self.has_ended(state, wave))
    }

    /// Starts the next dispatch after a barrier that invalidates caches.
    pub(super) fn next_dispatch(&self, state: &mut State, seats: &Seats, records: &mut Vec<Record>) {
        let emptied = self.emptied.get(usize::from(state.dispatch)).copied().unwrap_or_default();
        for cache in [VECTOR, ARRAY, SCALAR].into_iter().filter(|cache| emptied[*cache]) {
            for place in 0..seats.arrays.len() {
                for cell in 0..self.cells.len() {
                    if let Some(line) = self.line(state, seats, cache, place, cell as u16) {
                        *line = None;
                    }
                }
            }
        }
        state.dispatch += 1;
        if let Some(wave) = self.waves.iter().position(|wave| wave.dispatch == usize::from(state.dispatch)) {
            records.push(Record { wave, line: 0, event: Event::Begun, place: None, value: 0 });
        }
    }

    pub(super) fn drop_lines(
        &self,
        state: &mut State,
        seats: &Seats,
        wave: usize,
        records: &mut Vec<Record>,
    ) {
        let Some(Node::Cache { line, cache, scope }) = self.node(state, wave) else { return };
        let (at, cache, scope) = (*line, *cache, *scope);
        let unit = seats.unit.get(wave).copied().unwrap_or(0);
        let array = seats.array.get(wave).copied().unwrap_or(0);
        let dropped: &[(usize, usize)] = match cache {
            Cache::DropVector => &[(VECTOR, unit)],
            Cache::DropArray => &[(ARRAY, array)],
            Cache::DropByScope if scope >= 2 => &[(VECTOR, unit), (ARRAY, array)],
            Cache::DropByScope if scope == 1 => &[(VECTOR, unit)],
            Cache::DropScalar => &[(SCALAR, unit)],
            // Caches are write-through, so a write-back has no effect.
            Cache::DropByScope | Cache::WriteBack | Cache::WriteBackScalar => &[],
        };
        for (cache, place) in dropped {
            for cell in 0..self.cells.len() {
                if let Some(line) = self.line(state, seats, *cache, *place, cell as u16) {
                    *line = None;
                }
            }
        }
        records.push(Record { wave, line: at, event: Event::Dropped, place: None, value: 0 });
        if let Some(node) = state.nodes.get_mut(wave) {
            *node += 1;
        }
    }
}
