//! Spontaneous cache refills: other waves may load a location at any time.

use super::{
    ARRAY, ExplorationState, LoadSource, Machine, MachineStep, QueueEntry, SCALAR, VECTOR, WaveSeats,
};
use crate::opcode::Action;

impl Machine {
    /// Adds the refills that may matter now.
    ///
    /// These are refills before memory changes, before an access of the compute unit arrives, and from an
    /// array line that differs from memory.
    pub(super) fn possible_refills(
        &self,
        state: &ExplorationState,
        seats: &WaveSeats,
        all: &mut Vec<MachineStep>,
    ) {
        let is_write = |entry: &QueueEntry| {
            self.access_of(usize::from(entry.wave), entry.access)
                .is_some_and(|(_, details)| !matches!(details.action, Action::Load { .. }))
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
                let cells = owner.cells.get(usize::from(self.next_arrival(state, wave)?))?;
                let unit = *seats.unit.get(wave)?;
                Some(cells.iter().map(move |cell| (unit, *cell)))
            })
            .flatten()
            .collect();
        for (cell, of_cell) in (0_u16..).zip(&self.cells) {
            if of_cell.private || of_cell.lines == [false; 3] {
                continue;
            }
            let memory = state.values.get(usize::from(cell)).copied().unwrap_or(0);
            let changes = written.contains(&cell);
            let mut add = |cache, place, from, value| {
                if self.line_index(seats, cache, place, cell).is_some()
                    && self.cached_value(state, seats, cache, place, cell) != Some(value)
                {
                    all.push(MachineStep::Refill { cache, place, cell, from });
                }
            };
            for (unit, array) in seats.arrays.iter().enumerate() {
                let stored = state
                    .queue
                    .iter()
                    .any(|entry| (usize::from(entry.unit), entry.cell) == (unit, cell) && is_write(entry));
                let stale =
                    self.cached_value(state, seats, ARRAY, *array, cell).filter(|value| *value != memory);
                for cache in [VECTOR, SCALAR] {
                    // A unit whose stores are in flight does not read the older value.
                    if cache == VECTOR && stored {
                        continue;
                    }
                    if changes || cache == VECTOR && arriving.contains(&(unit, cell)) {
                        add(cache, unit, LoadSource::Memory, memory);
                    }
                    if let Some(stale) = stale {
                        add(cache, unit, LoadSource::Array, stale);
                    }
                }
                if changes && seats.arrays.iter().position(|known| known == array) == Some(unit) {
                    add(ARRAY, *array, LoadSource::Memory, memory);
                }
            }
        }
    }

    /// Fills a line, also in the array's cache if the load passes through it.
    pub(super) fn refill_line(
        &self,
        state: &mut ExplorationState,
        seats: &WaveSeats,
        (cache, place): (usize, usize),
        cell: u16,
        from: LoadSource,
    ) {
        let memory = state.values.get(usize::from(cell)).copied().unwrap_or(0);
        let array = if cache == ARRAY { place } else { seats.arrays.get(place).copied().unwrap_or(0) };
        let value = match from {
            LoadSource::Array => self.cached_value(state, seats, ARRAY, array, cell).unwrap_or(memory),
            LoadSource::Scalar | LoadSource::Memory => memory,
        };
        for (cache, place) in [(ARRAY, array), (cache, place)] {
            if let Some(line) = self.line_mut(state, seats, cache, place, cell) {
                *line = Some(value);
            }
        }
    }
}
