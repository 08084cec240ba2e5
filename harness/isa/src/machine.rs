//! The abstract machine: waves, outstanding accesses, queues to the coherence point, caches, and their steps.
//! Long because all steps change one state with private fields.
//!
//! A wave issues in order. Its vector accesses arrive at the cache of its compute unit in order: at issue, or
//! later if the generation gives no such guarantee. Then each part enters the queue of its compute unit and
//! address, and is performed at the head of the queue; different queues are independent. A load may hit a
//! valid line on the way. Lines may be refilled at any time, since other waves load as well. LDS operations
//! of a wave are performed in order, scalar loads in any order. A dispatch begins after the end of the
//! previous one, with the cache lines that the barrier between them does not invalidate.

mod memory_words;
mod refill;
mod units;

use crate::code::{Access, AccessPart, MemoryUnit, WaveCode, WaveStep};
use crate::opcode::AccessAction;
use crate::question::{MemoryWord, WavePlacement};
use memory_words::apply_atomic;
pub(crate) use memory_words::{extract_word, insert_word, is_in_lds};

/// A wave of the machine.
pub(crate) struct IsaWave {
    pub code: WaveCode,
    pub workgroup: usize,
    pub index_in_workgroup: usize,
    pub kernel: usize,
    pub dispatch: usize,
    /// The cell of each part of each access.
    pub cells: Vec<Vec<u16>>,
    /// The index of its first slot.
    pub first_slot: usize,
}

/// 8 aligned bytes of memory.
pub(crate) struct AlignedWord {
    pub initial: u64,
    /// True if no two waves can observe its access order: only one wave uses it, or it is never written.
    pub is_private: bool,
    /// Waves that access it other than by scalar loads.
    pub vector_waves: Vec<usize>,
    /// For each cache, true if some access can hit the line there.
    pub cached_in: [bool; 3],
}

/// Index of a cache in [`AlignedWord::cached_in`].
pub(crate) const VECTOR: usize = 0;
pub(crate) const ARRAY: usize = 1;
pub(crate) const SCALAR: usize = 2;

/// The constant part of an exploration.
pub(crate) struct Machine {
    pub waves: Vec<IsaWave>,
    pub cells: Vec<AlignedWord>,
    /// For each dispatch, the caches that are invalidated after it.
    pub invalidated_caches: Vec<[bool; 3]>,
    /// True if vector accesses arrive at issue.
    pub arrives_at_issue: bool,
    pub slot_count: usize,
    pub placement: ResolvedPlacement,
}

/// The placement of each wave.
#[derive(Default)]
pub(crate) struct ResolvedPlacement {
    unit_of_wave: Vec<usize>,
    array_of_wave: Vec<usize>,
    /// The shader array of each compute unit.
    array_of_unit: Vec<usize>,
    /// The index of the first line of each cache; `None` if no access can hit it.
    first_line: [Option<usize>; 3],
}

/// The state of the machine.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct ExplorationState {
    /// The running dispatch; later ones have not begun.
    dispatch: u8,
    /// The current node of each wave.
    next_nodes: Vec<u32>,
    /// The number of arrivals of each wave at its workgroup's barrier.
    barrier_arrivals: Vec<u8>,
    /// The cells of memory, followed by the returned values of loads.
    values: Vec<u64>,
    /// Incomplete accesses, sorted by wave, then by issue.
    pending: Vec<PendingAccess>,
    /// Queue entries, sorted by queue, then by arrival.
    queue: Vec<QueueEntry>,
    /// Cache lines by cache, unit and cell.
    lines: Vec<Option<u64>>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct PendingAccess {
    wave: u8,
    access: u16,
    arrived: bool,
    /// The parts that have not been performed.
    remaining_parts: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct QueueEntry {
    unit: u16,
    cell: u16,
    wave: u8,
    access: u16,
    part: u8,
}

/// A possible step of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MachineStep {
    /// The wave's next vector access arrives; the parts in `hits` hit their line.
    Arrive { wave: usize, hits: u64 },
    /// The head of a queue is performed, at the array's cache line or at L2.
    PerformQueued { entry: usize, hit: bool },
    /// One of the wave's scalar loads is performed.
    PerformScalar { pending: usize, source: LoadSource },
    /// The wave's next LDS operation is performed.
    PerformLds { pending: usize },
    /// A cache instruction acts.
    ExecuteCacheInstruction { wave: usize },
    /// The next dispatch begins.
    StartDispatch,
    /// A load of another wave refills a cache line.
    Refill { cache: usize, unit_or_array: usize, cell: u16, source: LoadSource },
}

/// The source of a load's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoadSource {
    Scalar,
    /// The shader array's cache.
    Array,
    /// L2.
    Memory,
}

/// An event of a witness.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EventRecord {
    pub wave: usize,
    pub line: u32,
    pub event: MachineEvent,
    /// The accessed word, if any; `value` is the value read or written.
    pub word: Option<MemoryWord>,
    pub value: u64,
}

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MachineEvent {
    HitVector,
    HitArray,
    HitScalar,
    Read,
    Write,
    Modify,
    LdsRead,
    LdsWrite,
    Invalidate,
    Barrier,
    DispatchStart,
}

impl IsaWave {
    /// Returns the cells of the parts of an access.
    pub fn cells_of(&self, access: u16) -> &[u16] {
        self.cells.get(usize::from(access)).map(Vec::as_slice).unwrap_or_default()
    }
}

impl Machine {
    /// Assigns units, arrays and cache lines under a placement.
    pub fn set_placement(&mut self, placement: &WavePlacement) {
        let unit_of = |wave: &IsaWave| {
            let units =
                placement.units.get(wave.workgroup).and_then(|units| units.get(wave.index_in_workgroup));
            units.copied().map_or(0, usize::from)
        };
        let unit: Vec<usize> = self.waves.iter().map(unit_of).collect();
        let array_of = |unit: &usize| placement.arrays.get(*unit).copied().map_or(0, usize::from);
        let arrays: Vec<usize> = (0..placement.arrays.len()).map(|unit| array_of(&unit)).collect();
        let mut next = 0;
        let lines = std::array::from_fn(|cache| {
            let first = next;
            let has_lines = self.cells.iter().any(|cell| cell.cached_in[cache]);
            next += if has_lines { arrays.len() * self.cells.len() } else { 0 };
            has_lines.then_some(first)
        });
        self.placement = ResolvedPlacement {
            array_of_wave: unit.iter().map(array_of).collect(),
            unit_of_wave: unit,
            array_of_unit: arrays,
            first_line: lines,
        };
    }

    fn unit_of(&self, wave: usize) -> usize {
        self.placement.unit_of_wave.get(wave).copied().unwrap_or(0)
    }

    fn array_of(&self, wave: usize) -> usize {
        self.placement.array_of_wave.get(wave).copied().unwrap_or(0)
    }

    pub fn initial_state(&self) -> ExplorationState {
        let mut values: Vec<u64> = self.cells.iter().map(|cell| cell.initial).collect();
        values.resize(self.cells.len() + self.slot_count, 0);
        let initial_lines = |cache: usize| {
            let units = if self.placement.first_line[cache].is_some() {
                self.placement.array_of_unit.len()
            } else {
                0
            };
            (0..units).flat_map(move |_| {
                self.cells.iter().map(move |cell| cell.cached_in[cache].then_some(cell.initial))
            })
        };
        // Caches that no access can hit have no lines.
        let lines = (VECTOR..=SCALAR).flat_map(initial_lines).collect();
        ExplorationState {
            dispatch: 0,
            next_nodes: vec![0; self.waves.len()],
            barrier_arrivals: vec![0; self.waves.len()],
            values,
            pending: Vec::new(),
            queue: Vec::new(),
            lines,
        }
    }

    fn line_index(&self, cache: usize, unit_or_array: usize, cell: u16) -> Option<usize> {
        let cell = usize::from(cell);
        let first = self.placement.first_line[cache]
            .filter(|_| self.cells.get(cell).is_some_and(|cell| cell.cached_in[cache]))?;
        Some(first + unit_or_array * self.cells.len() + cell)
    }

    fn line_mut<'s>(
        &self,
        state: &'s mut ExplorationState,
        cache: usize,
        unit_or_array: usize,
        cell: u16,
    ) -> Option<&'s mut Option<u64>> {
        state.lines.get_mut(self.line_index(cache, unit_or_array, cell)?)
    }

    fn cached_value(
        &self,
        state: &ExplorationState,
        cache: usize,
        unit_or_array: usize,
        cell: u16,
    ) -> Option<u64> {
        *state.lines.get(self.line_index(cache, unit_or_array, cell)?)?
    }

    fn access_of(&self, wave: usize, access: u16) -> Option<(&IsaWave, &Access)> {
        let wave = self.waves.get(wave)?;
        Some((wave, wave.code.accesses.get(usize::from(access))?))
    }

    fn memory_value(&self, state: &ExplorationState, cell: u16) -> u64 {
        state.values.get(usize::from(cell)).copied().unwrap_or(0)
    }

    /// Returns true if every wave has ended and everything has been performed.
    pub fn is_final(&self, state: &ExplorationState) -> bool {
        state.pending.is_empty() && (0..self.waves.len()).all(|wave| self.has_ended(state, wave))
    }

    fn has_ended(&self, state: &ExplorationState, wave: usize) -> bool {
        self.has_begun(state, wave) && matches!(self.next_node(state, wave), Some(WaveStep::End) | None)
    }

    /// Returns the next node of a wave; `None` before its dispatch has begun.
    fn next_node(&self, state: &ExplorationState, wave: usize) -> Option<&WaveStep> {
        let owner = self.waves.get(wave).filter(|_| self.has_begun(state, wave))?;
        owner.code.nodes.get(*state.next_nodes.get(wave)? as usize)
    }

    pub fn word_value(state: &ExplorationState, cell: usize, word: MemoryWord) -> u64 {
        extract_word(state.values.get(cell).copied().unwrap_or(0), word)
    }

    /// Takes all steps that commute with every other step. This is the partial-order reduction of the search.
    pub fn take_commuting_steps(&self, state: &mut ExplorationState, events: &mut Vec<EventRecord>) {
        loop {
            let mut has_progressed = false;
            for wave in 0..self.waves.len() {
                while self.advance_wave(state, wave, events) {
                    has_progressed = true;
                }
            }
            // Steps that no other wave can observe need no choice, unless a line could be hit.
            while let Some(step) = self.commuting_step(state) {
                self.take_step(state, step, events);
                has_progressed = true;
            }
            if !has_progressed {
                return;
            }
        }
    }

    /// Advances a wave by one node if that needs no choice.
    fn advance_wave(&self, state: &mut ExplorationState, wave: usize, events: &mut Vec<EventRecord>) -> bool {
        let (Some(owner), Some(node)) = (self.waves.get(wave), self.next_node(state, wave)) else {
            return false;
        };
        let pending_of = |state: &ExplorationState, access: &u16| {
            state.pending.iter().any(|known| usize::from(known.wave) == wave && known.access == *access)
        };
        let mut next = None;
        match node {
            WaveStep::Access(access) => {
                let Some(details) = owner.code.accesses.get(usize::from(*access)) else { return false };
                if details.parts.is_empty() {
                    // No lane is active.
                } else if details.unit == MemoryUnit::Vector && self.arrives_at_issue {
                    return false;
                } else {
                    self.issue_access(state, wave, *access, details);
                }
            }
            WaveStep::Wait { accesses, .. } => {
                let waits = |access: &&u16| {
                    owner
                        .code
                        .accesses
                        .get(usize::from(**access))
                        .is_some_and(|details| details.waits_for_memory)
                };
                if accesses.iter().filter(waits).any(|access| pending_of(state, access)) {
                    return false;
                }
            }
            WaveStep::BarrierSignal { .. } => {
                if let Some(count) = state.barrier_arrivals.get_mut(wave) {
                    *count = count.saturating_add(1);
                }
            }
            WaveStep::BarrierWait { line } => {
                let arrivals = state.barrier_arrivals.get(wave).copied().unwrap_or(0);
                let all_arrived = self.waves.iter().enumerate().all(|(other, other_wave)| {
                    other_wave.workgroup != owner.workgroup
                        || self.has_ended(state, other)
                        || state.barrier_arrivals.get(other).is_some_and(|count| *count >= arrivals)
                });
                if !all_arrived {
                    return false;
                }
                events.push(EventRecord {
                    wave,
                    line: *line,
                    event: MachineEvent::Barrier,
                    word: None,
                    value: 0,
                });
            }
            WaveStep::Cache { .. } | WaveStep::End => return false,
            WaveStep::BranchIfZero { value, target: other } => {
                let slots = state.values.get(self.cells.len() + owner.first_slot..).unwrap_or_default();
                if owner.code.evaluate(crate::code::WaveValue::Expression(*value), slots) == 0 {
                    next = Some(*other);
                }
            }
        }
        if let Some(node_index) = state.next_nodes.get_mut(wave) {
            *node_index = next.unwrap_or(*node_index + 1);
        }
        true
    }

    fn issue_access(&self, state: &mut ExplorationState, wave: usize, access: u16, details: &Access) {
        let remaining_parts =
            if details.parts.len() >= 64 { u64::MAX } else { (1_u64 << details.parts.len()) - 1 };
        let at = state.pending.partition_point(|known| usize::from(known.wave) <= wave);
        state.pending.insert(
            at,
            PendingAccess {
                wave: wave as u8,
                access,
                arrived: details.unit != MemoryUnit::Vector,
                remaining_parts,
            },
        );
    }

    /// Returns the next vector access of a wave to arrive.
    fn next_arrival(&self, state: &ExplorationState, wave: usize) -> Option<u16> {
        if self.arrives_at_issue {
            return match self.next_node(state, wave)? {
                WaveStep::Access(access) => {
                    let is_vector_access = |(_, details): &(&IsaWave, &Access)| {
                        details.unit == MemoryUnit::Vector && !details.parts.is_empty()
                    };
                    self.access_of(wave, *access).filter(is_vector_access).map(|_| *access)
                }
                _ => None,
            };
        }
        state
            .pending
            .iter()
            .find(|known| usize::from(known.wave) == wave && !known.arrived)
            .map(|known| known.access)
    }

    /// Returns true if no other wave of the compute unit accesses a cell, and its line there cannot change.
    fn is_local(&self, wave: usize, cell: u16) -> bool {
        let unit = self.unit_of(wave);
        self.cells.get(usize::from(cell)).is_some_and(|cell| {
            (cell.is_private || !cell.cached_in[VECTOR])
                && cell.vector_waves.iter().all(|other| *other == wave || self.unit_of(*other) != unit)
        })
    }

    fn is_private(&self, cell: u16) -> bool {
        self.cells.get(usize::from(cell)).is_some_and(|cell| cell.is_private)
    }

    /// Returns a step that has no alternative and commutes with all others.
    fn commuting_step(&self, state: &ExplorationState) -> Option<MachineStep> {
        for wave in 0..self.waves.len() {
            if let Some(access) = self.next_arrival(state, wave) {
                let (owner, details) = self.access_of(wave, access)?;
                let cells = owner.cells_of(access);
                let unit = self.unit_of(wave);
                let is_unobservable = cells.iter().all(|cell| {
                    self.is_local(wave, *cell) && !self.can_hit(state, VECTOR, unit, *cell, details)
                });
                if is_unobservable {
                    return Some(MachineStep::Arrive { wave, hits: 0 });
                }
            }
        }
        for (index, entry) in self.queue_heads(state) {
            if !self.is_private(entry.cell) {
                continue;
            }
            let (_, details) = self.access_of(usize::from(entry.wave), entry.access)?;
            let array = self.array_of(usize::from(entry.wave));
            if !self.can_hit(state, ARRAY, array, entry.cell, details) {
                return Some(MachineStep::PerformQueued { entry: index, hit: false });
            }
        }
        None
    }

    /// Returns true if a load can hit a line in a cache.
    fn can_hit(
        &self,
        state: &ExplorationState,
        cache: usize,
        unit_or_array: usize,
        cell: u16,
        access: &Access,
    ) -> bool {
        matches!(access.action, AccessAction::Load { .. })
            && !access.bypassed[cache]
            && self.cached_value(state, cache, unit_or_array, cell).is_some()
    }

    fn queue_heads(&self, state: &ExplorationState) -> Vec<(usize, QueueEntry)> {
        let mut heads: Vec<(usize, QueueEntry)> = Vec::new();
        for (index, entry) in state.queue.iter().enumerate() {
            // Entries of one queue are adjacent.
            if heads.last().is_none_or(|(_, last)| (last.unit, last.cell) != (entry.unit, entry.cell)) {
                heads.push((index, *entry));
            }
        }
        heads
    }

    /// Returns the possible next steps. If some commute with all others, only those of one actor.
    pub fn possible_steps(&self, state: &ExplorationState) -> Vec<MachineStep> {
        let mut all = Vec::new();
        for wave in 0..self.waves.len() {
            if let Some(access) = self.next_arrival(state, wave)
                && let Some((owner, details)) = self.access_of(wave, access)
            {
                let cells = owner.cells_of(access);
                let unit = self.unit_of(wave);
                let mut hit_mask = 0_u64;
                for (part, cell) in cells.iter().enumerate() {
                    if self.can_hit(state, VECTOR, unit, *cell, details) {
                        hit_mask |= 1 << part;
                    }
                }
                let steps: Vec<MachineStep> =
                    mask_subsets(hit_mask).map(|hits| MachineStep::Arrive { wave, hits }).collect();
                if cells.iter().all(|cell| self.is_local(wave, *cell)) {
                    return steps;
                }
                all.extend(steps);
            }
            if matches!(self.next_node(state, wave), Some(WaveStep::Cache { .. }))
                && !state.pending.iter().any(|known| usize::from(known.wave) == wave && !known.arrived)
            {
                all.push(MachineStep::ExecuteCacheInstruction { wave });
            }
        }
        for (index, entry) in self.queue_heads(state) {
            let Some((_, details)) = self.access_of(usize::from(entry.wave), entry.access) else { continue };
            let array = self.array_of(usize::from(entry.wave));
            let mut steps = vec![MachineStep::PerformQueued { entry: index, hit: false }];
            if self.can_hit(state, ARRAY, array, entry.cell, details) {
                steps.push(MachineStep::PerformQueued { entry: index, hit: true });
            }
            if self.is_private(entry.cell) {
                return steps;
            }
            all.extend(steps);
        }
        let mut in_lds: Vec<u8> = Vec::new();
        for index in 0..state.pending.len() {
            let Some(pending) = state.pending.get(index).cloned() else { continue };
            let wave = usize::from(pending.wave);
            let Some((owner, details)) = self.access_of(wave, pending.access) else { continue };
            let cells = owner.cells_of(pending.access);
            let private = cells.iter().all(|cell| self.is_private(*cell));
            let steps = match details.unit {
                MemoryUnit::Vector => continue,
                MemoryUnit::Lds if in_lds.contains(&pending.wave) => continue,
                MemoryUnit::Lds => {
                    in_lds.push(pending.wave);
                    vec![MachineStep::PerformLds { pending: index }]
                }
                MemoryUnit::Scalar => {
                    let unit = self.unit_of(wave);
                    let array = self.array_of(wave);
                    let mut scalar_steps =
                        vec![MachineStep::PerformScalar { pending: index, source: LoadSource::Memory }];
                    let hits = |cache, place| {
                        cells.iter().any(|cell| self.can_hit(state, cache, place, *cell, details))
                    };
                    if hits(SCALAR, unit) {
                        scalar_steps
                            .push(MachineStep::PerformScalar { pending: index, source: LoadSource::Scalar });
                    }
                    if hits(ARRAY, array) {
                        scalar_steps
                            .push(MachineStep::PerformScalar { pending: index, source: LoadSource::Array });
                    }
                    scalar_steps
                }
            };
            if private {
                return steps;
            }
            all.extend(steps);
        }
        if self.can_start_next_dispatch(state) {
            all.push(MachineStep::StartDispatch);
        }
        self.add_possible_refills(state, &mut all);
        all
    }

    pub fn take_step(&self, state: &mut ExplorationState, step: MachineStep, events: &mut Vec<EventRecord>) {
        match step {
            MachineStep::Arrive { wave, hits } => self.arrive_access(state, wave, hits, events),
            MachineStep::PerformQueued { entry, hit } => self.perform_entry(state, entry, hit, events),
            MachineStep::PerformScalar { pending, source: from } => {
                self.perform_scalar(state, pending, from, events)
            }
            MachineStep::PerformLds { pending } => self.perform_lds(state, pending, events),
            MachineStep::ExecuteCacheInstruction { wave } => self.invalidate_lines(state, wave, events),
            MachineStep::StartDispatch => self.start_next_dispatch(state, events),
            MachineStep::Refill { cache, unit_or_array: place, cell, source: from } => {
                self.refill_line(state, cache, place, cell, from);
            }
        }
    }

    fn arrive_access(
        &self,
        state: &mut ExplorationState,
        wave: usize,
        hits: u64,
        events: &mut Vec<EventRecord>,
    ) {
        let Some(number) = self.next_arrival(state, wave) else { return };
        let Some((owner, details)) = self.access_of(wave, number) else { return };
        if self.arrives_at_issue {
            self.issue_access(state, wave, number, details);
            if let Some(node_index) = state.next_nodes.get_mut(wave) {
                *node_index += 1;
            }
        }
        let unit = self.unit_of(wave);
        let arriving = state
            .pending
            .iter_mut()
            .find(|known| usize::from(known.wave) == wave && known.access == number && !known.arrived);
        if let Some(waiting) = arriving {
            waiting.arrived = true;
        }
        let cells = owner.cells_of(number);
        for (part, (cell, access_part)) in cells.iter().zip(&details.parts).enumerate() {
            // The access may have removed the line in an earlier part.
            let line = self.cached_value(state, VECTOR, unit, *cell);
            if let Some(value) = line.filter(|_| hits >> part & 1 == 1) {
                self.record_returned_value(state, wave, access_part.slot, value);
                events.push(EventRecord {
                    wave,
                    line: details.line,
                    event: MachineEvent::HitVector,
                    word: Some(access_part.word),
                    value: extract_word(value, access_part.word),
                });
                self.mark_performed(state, wave, number, part);
                continue;
            }
            let data = self.data_to_store(state, owner, access_part.data);
            if let Some(line) = self.line_mut(state, VECTOR, unit, *cell) {
                match details.action {
                    // A missing load implies an invalid line.
                    AccessAction::Load { .. } if !details.bypassed[VECTOR] => *line = None,
                    AccessAction::Store if details.bypassed[VECTOR] => *line = None,
                    AccessAction::Store => *line = line.map(|old| insert_word(old, access_part.word, data)),
                    AccessAction::Atomic(_) => *line = None,
                    AccessAction::Load { .. } => {}
                }
            }
            let entry = QueueEntry {
                unit: unit as u16,
                cell: *cell,
                wave: wave as u8,
                access: number,
                part: part as u8,
            };
            let at =
                state.queue.partition_point(|known| (known.unit, known.cell) <= (entry.unit, entry.cell));
            state.queue.insert(at, entry);
        }
    }

    fn data_to_store(
        &self,
        state: &ExplorationState,
        owner: &IsaWave,
        data: [crate::code::WaveValue; 2],
    ) -> u64 {
        let slots = state.values.get(self.cells.len() + owner.first_slot..).unwrap_or_default();
        let [low, high] = data.map(|value| u64::from(owner.code.evaluate(value, slots)));
        low | high << 32
    }

    /// Stores the value that a load or atomic has found.
    fn record_returned_value(
        &self,
        state: &mut ExplorationState,
        wave: usize,
        slot: Option<u16>,
        value: u64,
    ) {
        let first = self.waves.get(wave).map_or(0, |owner| owner.first_slot);
        if let Some(slot) = slot
            && let Some(result) = state.values.get_mut(self.cells.len() + first + usize::from(slot))
        {
            *result = value;
        }
    }

    /// Records that a part of an access has been performed.
    fn mark_performed(&self, state: &mut ExplorationState, wave: usize, access: u16, part: usize) {
        let found = state.pending.iter().position(|known| {
            usize::from(known.wave) == wave
                && known.access == access
                && known.arrived
                && known.remaining_parts >> part & 1 == 1
        });
        if let Some(index) = found {
            if let Some(pending) = state.pending.get_mut(index) {
                pending.remaining_parts &= !(1 << part);
            }
            if state.pending.get(index).is_some_and(|pending| pending.remaining_parts == 0) {
                state.pending.remove(index);
            }
        }
    }

    fn perform_entry(
        &self,
        state: &mut ExplorationState,
        index: usize,
        hit: bool,
        events: &mut Vec<EventRecord>,
    ) {
        if index >= state.queue.len() {
            return;
        }
        let entry = state.queue.remove(index);
        let wave = usize::from(entry.wave);
        let Some((owner, details)) = self.access_of(wave, entry.access) else { return };
        let Some(part) = details.parts.get(usize::from(entry.part)) else { return };
        let (unit, array) = (usize::from(entry.unit), self.array_of(wave));
        let memory = self.memory_value(state, entry.cell);
        let (event, value) = if let AccessAction::Load { .. } = details.action {
            let cached = self.cached_value(state, ARRAY, array, entry.cell).filter(|_| hit);
            let value = cached.unwrap_or(memory);
            self.fill_line(state, details, ARRAY, array, entry.cell, value);
            // A later store of the same unit in the queue has already updated the line.
            let has_later_store = state.queue.iter().any(|other| {
                (other.unit, other.cell) == (entry.unit, entry.cell)
                    && self
                        .access_of(usize::from(other.wave), other.access)
                        .is_some_and(|(_, later)| later.action == AccessAction::Store)
            });
            if !has_later_store {
                self.fill_line(state, details, VECTOR, unit, entry.cell, value);
            }
            self.record_returned_value(state, wave, part.slot, value);
            (if hit { MachineEvent::HitArray } else { MachineEvent::Read }, value)
        } else {
            let value = self.cell_after(state, owner, details, part, memory);
            if let Some(cell) = state.values.get_mut(usize::from(entry.cell)) {
                *cell = value;
            }
            self.drop_line(state, ARRAY, array, entry.cell);
            self.record_returned_value(state, wave, part.slot, memory);
            let is_store = details.action == AccessAction::Store;
            (if is_store { MachineEvent::Write } else { MachineEvent::Modify }, value)
        };
        self.mark_performed(state, wave, entry.access, usize::from(entry.part));
        if !self.is_private(entry.cell) {
            let value = extract_word(value, part.word);
            events.push(EventRecord { wave, line: details.line, event, word: Some(part.word), value });
        }
    }

    /// A load fills the line of a cache, unless it bypasses the cache.
    fn fill_line(
        &self,
        state: &mut ExplorationState,
        access: &Access,
        cache: usize,
        place: usize,
        cell: u16,
        value: u64,
    ) {
        if !access.bypassed[cache]
            && let Some(line) = self.line_mut(state, cache, place, cell)
        {
            *line = Some(value);
        }
    }

    fn drop_line(&self, state: &mut ExplorationState, cache: usize, place: usize, cell: u16) {
        if let Some(line) = self.line_mut(state, cache, place, cell) {
            *line = None;
        }
    }

    /// Returns the cell after an access: that of a load is unchanged.
    fn cell_after(
        &self,
        state: &ExplorationState,
        owner: &IsaWave,
        access: &Access,
        part: &AccessPart,
        memory: u64,
    ) -> u64 {
        let data = || self.data_to_store(state, owner, part.data);
        match access.action {
            AccessAction::Load { .. } => memory,
            AccessAction::Store => insert_word(memory, part.word, data()),
            AccessAction::Atomic(operation) => {
                let compare = self.data_to_store(state, owner, part.compare);
                let old = extract_word(memory, part.word);
                insert_word(memory, part.word, apply_atomic(operation, old, data(), compare, part.word.bytes))
            }
        }
    }
}

/// Returns all subsets of a mask, beginning with the empty one.
fn mask_subsets(mask: u64) -> impl Iterator<Item = u64> {
    let mut next = Some(0_u64);
    std::iter::from_fn(move || {
        let current = next?;
        let next_subset = current.wrapping_sub(mask) & mask;
        next = (next_subset != 0).then_some(next_subset);
        Some(current)
    })
}
