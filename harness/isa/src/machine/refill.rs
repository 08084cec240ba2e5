//! Spontaneous cache refills: other waves may load a location at any time.

use super::{ARRAY, ExplorationState, LoadSource, Machine, MachineStep, QueueEntry, SCALAR, VECTOR};
use crate::opcode::AccessAction;

impl Machine {
    /// Adds the refills that may matter now.
    ///
    /// These are refills before memory changes, before an access of the compute unit arrives, and from an
    /// array line that differs from memory.
    pub(super) fn add_possible_refills(&self, state: &ExplorationState, steps: &mut Vec<MachineStep>) {
        let is_write = |entry: &QueueEntry| {
            self.access_of(usize::from(entry.wave), entry.access)
                .is_some_and(|(_, details)| !matches!(details.action, AccessAction::Load { .. }))
        };
        let written: Vec<u16> = self
            .queue_heads(state)
            .iter()
            .filter(|(_, head)| is_write(head))
            .map(|(_, head)| head.cell)
            .collect();
        let arriving: Vec<(usize, u16)> = (0..self.waves.len())
            .filter_map(|wave| {
                let owner = self.waves.get(wave)?;
                let cells = owner.cells_of(self.next_arrival(state, wave)?);
                let unit = self.unit_of(wave);
                Some(cells.iter().map(move |cell| (unit, *cell)))
            })
            .flatten()
            .collect();
        for (cell, aligned_word) in (0_u16..).zip(&self.cells) {
            if aligned_word.is_private || aligned_word.cached_in == [false; 3] {
                continue;
            }
            let memory = self.memory_value(state, cell);
            let changes = written.contains(&cell);
            let mut add_refill = |cache, place, from, value| {
                if self.line_index(cache, place, cell).is_some()
                    && self.cached_value(state, cache, place, cell) != Some(value)
                {
                    steps.push(MachineStep::Refill { cache, unit_or_array: place, cell, source: from });
                }
            };
            for (unit, array) in self.placement.array_of_unit.iter().enumerate() {
                let has_pending_write = state
                    .queue
                    .iter()
                    .any(|entry| (usize::from(entry.unit), entry.cell) == (unit, cell) && is_write(entry));
                let stale = self.cached_value(state, ARRAY, *array, cell).filter(|value| *value != memory);
                for cache in [VECTOR, SCALAR] {
                    // A unit whose stores are in flight does not read the older value.
                    if cache == VECTOR && has_pending_write {
                        continue;
                    }
                    if changes || cache == VECTOR && arriving.contains(&(unit, cell)) {
                        add_refill(cache, unit, LoadSource::Memory, memory);
                    }
                    if let Some(stale) = stale {
                        add_refill(cache, unit, LoadSource::Array, stale);
                    }
                }
                if changes
                    && self.placement.array_of_unit.iter().position(|known| known == array) == Some(unit)
                {
                    add_refill(ARRAY, *array, LoadSource::Memory, memory);
                }
            }
        }
    }

    /// Fills a line, also in the array's cache if the load passes through it.
    pub(super) fn refill_line(
        &self,
        state: &mut ExplorationState,
        cache: usize,
        place: usize,
        cell: u16,
        source: LoadSource,
    ) {
        let memory = self.memory_value(state, cell);
        let array = if cache == ARRAY {
            place
        } else {
            self.placement.array_of_unit.get(place).copied().unwrap_or(0)
        };
        let value = match source {
            LoadSource::Array => self.cached_value(state, ARRAY, array, cell).unwrap_or(memory),
            LoadSource::Scalar | LoadSource::Memory => memory,
        };
        for (cache, place) in [(ARRAY, array), (cache, place)] {
            if let Some(line) = self.line_mut(state, cache, place, cell) {
                *line = Some(value);
            }
        }
    }
}
