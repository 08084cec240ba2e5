//! A naive implementation of the machine, the oracle of the explorer.
//!
//! It takes one step of one unit at a time, in every order and under every placement. It shares with the
//! explorer only the translation of text to accesses, waits and barriers. It has no partial-order reduction;
//! every location has a line in every cache, every placement is tried, and queues, caches and registers are
//! separate maps. Its only reduction is a set of visited states. An index that is wrong panics.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use crate::code::{Access, MemoryUnit, WaveStep, WaveValue};
use crate::explore::{ObservedCell, prepare_machine};
use crate::facts::{self, FactTable, Profile};
use crate::family::Generation;
use crate::machine::{ARRAY, IsaWave, Machine, SCALAR, VECTOR, extract_word, insert_word};
use crate::opcode::{AccessAction, AtomicOpcode, CacheInstruction};
use crate::question::{MachineQuestion, MemoryWord};

/// The reason for a missing answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NaiveSearchError {
    /// The text cannot be executed, or a wave waits forever.
    #[error("not executed")]
    NotExecuted,
    #[error("more than {0} states")]
    TooManyStates(usize),
}

/// Returns every reachable outcome over all placements, with at most `limit` states for each.
///
/// # Errors
///
/// [`NaiveSearchError`].
pub fn naive_outcomes(
    question: &MachineQuestion,
    profile: Profile,
    facts: &FactTable,
    limit: usize,
) -> Result<BTreeSet<Vec<u64>>, NaiveSearchError> {
    let (machine, observed) =
        prepare_machine(question, profile, facts).map_err(|_| NaiveSearchError::NotExecuted)?;
    let generation = question.family.generation();
    let mut found = BTreeSet::new();
    for seats in every_placement(question, generation) {
        let mut search = NaiveSearch {
            machine: &machine,
            question,
            facts,
            observed: &observed,
            generation,
            placement: &seats,
            visited: HashSet::new(),
            outcomes: &mut found,
            limit,
        };
        search.search_from(search.initial_state())?;
    }
    Ok(found)
}

/// The compute unit and shader array of each wave of each workgroup.
type NaivePlacement = Vec<Vec<(usize, usize)>>;

/// Returns every placement.
///
/// Workgroups form blocks that share a compute unit (since GFX10, a pair of units), and blocks form shader
/// arrays. Within a pair, each wave may be on either unit.
fn every_placement(question: &MachineQuestion, generation: Generation) -> BTreeSet<NaivePlacement> {
    let count = question.workgroups.len();
    let mut all = BTreeSet::new();
    for blocks in all_numberings(count) {
        for arrays in all_numberings(count) {
            let halves = if generation.has_wgp_mode() { 2 } else { 1 };
            let waves: usize = question.workgroups.iter().map(|workgroup| workgroup.waves.len()).sum();
            for choice in 0..count_wave_choices(halves, waves) {
                let mut next = choice;
                let seats = question.workgroups.iter().zip(&blocks).map(|(workgroup, block)| {
                    // The number of a block is that of its first workgroup, which also determines the array.
                    let array = arrays.get(*block).copied().unwrap_or(0);
                    let has_several_waves = workgroup.waves.len() > 1;
                    let place_wave = |_| {
                        // A workgroup with a single wave uses one unit.
                        let half = if has_several_waves { next % halves } else { 0 };
                        next /= halves;
                        (2 * block + half, array)
                    };
                    workgroup.waves.iter().map(place_wave).collect()
                });
                all.insert(seats.collect());
            }
        }
    }
    all
}

fn count_wave_choices(halves: usize, waves: usize) -> usize {
    (0..waves).fold(1, |product, _| product * halves)
}

/// Returns every assignment of indices to `count` items in which an item has its index or that of an earlier
/// item.
fn all_numberings(count: usize) -> Vec<Vec<usize>> {
    (0..count).fold(vec![Vec::new()], |partial, next| {
        let extensions = |head: &Vec<usize>| {
            let head = head.clone();
            (0..=next).map(move |number| [head.as_slice(), &[number]].concat())
        };
        partial.iter().flat_map(extensions).collect()
    })
}

/// An issued access that is not complete.
#[derive(Clone, PartialEq, Eq, Hash)]
struct AccessInFlight {
    access: u16,
    arrived: bool,
    /// Parts that are not performed yet.
    remaining_parts: BTreeSet<usize>,
}

/// One part of an access on its way to memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct PartInFlight {
    wave: usize,
    access: u16,
    part: usize,
}

/// A state of the naive search. Locations are cells of 8 bytes.
#[derive(Clone, PartialEq, Eq, Hash)]
struct NaiveState {
    completed_dispatches: usize,
    next_nodes: Vec<usize>,
    barrier_arrivals: Vec<usize>,
    memory: Vec<u64>,
    /// The values that the loads of each wave have found.
    registers: Vec<Vec<u64>>,
    in_flight: Vec<Vec<AccessInFlight>>,
    /// Queues by compute unit and location, first in, first out.
    queues: BTreeMap<(usize, u16), Vec<PartInFlight>>,
    /// Valid lines of the compute units' vector caches.
    vector_lines: BTreeMap<(usize, u16), u64>,
    /// Valid lines of the shader arrays' caches.
    array_lines: BTreeMap<(usize, u16), u64>,
    /// Valid lines of the scalar caches.
    scalar_lines: BTreeMap<(usize, u16), u64>,
}

struct NaiveSearch<'m> {
    machine: &'m Machine,
    question: &'m MachineQuestion,
    facts: &'m FactTable,
    observed: &'m [ObservedCell],
    generation: Generation,
    placement: &'m NaivePlacement,
    visited: HashSet<NaiveState>,
    outcomes: &'m mut BTreeSet<Vec<u64>>,
    limit: usize,
}

impl NaiveSearch<'_> {
    fn initial_state(&self) -> NaiveState {
        let memory: Vec<u64> = self.machine.cells.iter().map(|cell| cell.initial).collect();
        let initial_lines = |places: &dyn Fn((usize, usize)) -> usize| {
            let places: BTreeSet<usize> = self.placement.iter().flatten().map(|seat| places(*seat)).collect();
            let lines = places
                .into_iter()
                .flat_map(|place| (0_u16..).zip(&memory).map(move |(cell, value)| ((place, cell), *value)));
            lines.collect::<BTreeMap<(usize, u16), u64>>()
        };
        let units = initial_lines(&|(unit, _)| unit);
        NaiveState {
            completed_dispatches: 0,
            next_nodes: vec![0; self.machine.waves.len()],
            barrier_arrivals: vec![0; self.machine.waves.len()],
            registers: self
                .machine
                .waves
                .iter()
                .map(|wave| vec![0; usize::from(wave.code.slot_count)])
                .collect(),
            in_flight: vec![Vec::new(); self.machine.waves.len()],
            queues: BTreeMap::new(),
            vector_lines: units.clone(),
            array_lines: if self.has_array_caches() {
                initial_lines(&|(_, array)| array)
            } else {
                BTreeMap::new()
            },
            scalar_lines: units,
            memory,
        }
    }

    fn has_array_caches(&self) -> bool {
        self.generation >= Generation::Gfx10
    }

    fn unit_and_array(&self, wave: usize) -> (usize, usize) {
        let wave = &self.machine.waves[wave];
        self.placement[wave.workgroup][wave.index_in_workgroup]
    }

    fn search_from(&mut self, start: NaiveState) -> Result<(), NaiveSearchError> {
        let mut worklist = vec![start];
        while let Some(state) = worklist.pop() {
            if self.visited.contains(&state) {
                continue;
            }
            if self.visited.len() >= self.limit {
                return Err(NaiveSearchError::TooManyStates(self.limit));
            }
            let mut successors = Vec::new();
            for wave in 0..self.machine.waves.len() {
                self.add_program_steps(&state, wave, &mut successors);
                self.add_memory_steps(&state, wave, &mut successors);
            }
            self.add_queue_steps(&state, &mut successors);
            self.add_next_dispatch(&state, &mut successors);
            if successors.is_empty() {
                self.record_final_state(&state)?;
            }
            self.add_refill_steps(&state, &mut successors);
            worklist.append(&mut successors);
            self.visited.insert(state);
        }
        Ok(())
    }

    fn record_final_state(&mut self, state: &NaiveState) -> Result<(), NaiveSearchError> {
        let ended = (0..self.machine.waves.len()).all(|wave| self.has_ended(state, wave));
        if !ended || state.in_flight.iter().any(|flights| !flights.is_empty()) {
            return Err(NaiveSearchError::NotExecuted);
        }
        let mut outcome = Vec::new();
        for observed_cell in self.observed {
            let value = extract_word(state.memory[observed_cell.cell], observed_cell.word);
            if observed_cell.required.is_some_and(|required| required != value) {
                return Ok(());
            }
            outcome.push(value);
        }
        self.outcomes.insert(outcome);
        Ok(())
    }

    /// After a dispatch has completed, invalidates caches as the barrier requires, and starts the next
    /// dispatch.
    fn add_next_dispatch(&self, state: &NaiveState, successors: &mut Vec<NaiveState>) {
        let mut running = (0..self.machine.waves.len()).filter(|wave| self.has_begun(state, *wave));
        let idle = state.in_flight.iter().all(Vec::is_empty);
        if idle
            && running.all(|wave| self.has_ended(state, wave))
            && let Some(barrier) = self.question.barriers.get(state.completed_dispatches)
        {
            let mut successor = state.clone();
            successor.completed_dispatches += 1;
            for rule in self.facts.barrier_rules(barrier) {
                for cache in &rule.drops {
                    match cache {
                        facts::CacheName::Vector => successor.vector_lines.clear(),
                        facts::CacheName::Array => successor.array_lines.clear(),
                        facts::CacheName::Scalar => successor.scalar_lines.clear(),
                    }
                }
            }
            successors.push(successor);
        }
    }

    fn has_begun(&self, state: &NaiveState, wave: usize) -> bool {
        let workgroup = &self.question.workgroups[self.machine.waves[wave].workgroup];
        workgroup.dispatch <= state.completed_dispatches
    }

    fn next_node(&self, state: &NaiveState, wave: usize) -> Option<&WaveStep> {
        self.machine.waves[wave].code.nodes.get(state.next_nodes[wave])
    }

    fn has_ended(&self, state: &NaiveState, wave: usize) -> bool {
        self.has_begun(state, wave) && matches!(self.next_node(state, wave), Some(WaveStep::End) | None)
    }

    fn access_of(&self, wave: usize, access: u16) -> (&IsaWave, &Access) {
        let wave = &self.machine.waves[wave];
        (wave, &wave.code.accesses[usize::from(access)])
    }

    fn is_load(&self, entry: &PartInFlight) -> bool {
        matches!(self.access_of(entry.wave, entry.access).1.action, AccessAction::Load { .. })
    }

    /// Advances a wave by one step of its program.
    fn add_program_steps(&self, state: &NaiveState, wave: usize, successors: &mut Vec<NaiveState>) {
        let Some(node) = self.next_node(state, wave) else { return };
        let owner = &self.machine.waves[wave];
        if !self.has_begun(state, wave) {
            return;
        }
        let mut successor = state.clone();
        successor.next_nodes[wave] += 1;
        let flights = &state.in_flight[wave];
        match node {
            WaveStep::End => {}
            WaveStep::Access(access) => {
                let (_, details) = self.access_of(wave, *access);
                if details.parts.is_empty() {
                    successors.push(successor);
                    return;
                }
                let flight = AccessInFlight {
                    access: *access,
                    arrived: details.unit != MemoryUnit::Vector,
                    remaining_parts: (0..details.parts.len()).collect(),
                };
                successor.in_flight[wave].push(flight);
                if details.unit == MemoryUnit::Vector && self.machine.arrives_at_issue {
                    // Accesses arrive at issue.
                    self.add_arrival_steps(&successor, wave, successors);
                } else {
                    successors.push(successor);
                }
            }
            WaveStep::Wait { accesses, .. } => {
                let outstanding = |access: &u16| {
                    self.access_of(wave, *access).1.waits_for_memory
                        && flights.iter().any(|flight| flight.access == *access)
                };
                if !accesses.iter().any(outstanding) {
                    successors.push(successor);
                }
            }
            WaveStep::BarrierSignal { .. } => {
                successor.barrier_arrivals[wave] += 1;
                successors.push(successor);
            }
            WaveStep::BarrierWait { .. } => {
                let is_late = |other: usize| {
                    self.machine.waves[other].workgroup == owner.workgroup
                        && !self.has_ended(state, other)
                        && state.barrier_arrivals[other] < state.barrier_arrivals[wave]
                };
                if !(0..self.machine.waves.len()).any(is_late) {
                    successors.push(successor);
                }
            }
            WaveStep::Cache { cache, scope, .. } => {
                // In the order of the wave's arrivals.
                if flights.iter().all(|flight| flight.arrived) {
                    self.invalidate_lines(&mut successor, wave, *cache, *scope);
                    successors.push(successor);
                }
            }
            WaveStep::BranchIfZero { value, target: other } => {
                if owner.code.evaluate(WaveValue::Expression(*value), &state.registers[wave]) == 0 {
                    successor.next_nodes[wave] = *other as usize;
                }
                successors.push(successor);
            }
        }
    }

    fn invalidate_lines(&self, state: &mut NaiveState, wave: usize, cache: CacheInstruction, scope: u8) {
        let (unit, array) = self.unit_and_array(wave);
        let drops_vector_lines = matches!(cache, CacheInstruction::InvalidateVector)
            || (cache == CacheInstruction::InvalidateByScope && scope >= 1);
        let drops_array_lines = matches!(cache, CacheInstruction::InvalidateArray)
            || (cache == CacheInstruction::InvalidateByScope && scope >= 2);
        if drops_vector_lines {
            state.vector_lines.retain(|(place, _), _| *place != unit);
        }
        if drops_array_lines {
            state.array_lines.retain(|(place, _), _| *place != array);
        }
        if cache == CacheInstruction::InvalidateScalar {
            state.scalar_lines.retain(|(place, _), _| *place != unit);
        }
    }

    /// Adds the steps of the memory system for a wave outside of queues: arrivals, scalar loads, LDS.
    fn add_memory_steps(&self, state: &NaiveState, wave: usize, successors: &mut Vec<NaiveState>) {
        if !self.machine.arrives_at_issue {
            self.add_arrival_steps(state, wave, successors);
        }
        let flights = &state.in_flight[wave];
        let unit_of = |flight: &AccessInFlight| self.access_of(wave, flight.access).1.unit;
        for flight in flights.iter().filter(|flight| unit_of(flight) == MemoryUnit::Scalar) {
            self.add_scalar_load_steps(state, wave, flight.access, successors);
        }
        if let Some(first) = flights.iter().find(|flight| unit_of(flight) == MemoryUnit::Lds) {
            let mut successor = state.clone();
            for part in first.remaining_parts.clone() {
                self.perform_at_memory(&mut successor, PartInFlight { wave, access: first.access, part });
            }
            successors.push(successor);
        }
    }

    /// The oldest vector access of the wave arrives: each of its parts hits a line or enters its queue.
    fn add_arrival_steps(&self, state: &NaiveState, wave: usize, successors: &mut Vec<NaiveState>) {
        let flights = &state.in_flight[wave];
        let Some(index) = flights.iter().position(|flight| !flight.arrived) else { return };
        let access = flights[index].access;
        let mut arrived = state.clone();
        arrived.in_flight[wave][index].arrived = true;
        let mut all = vec![arrived];
        let (owner, details) = self.access_of(wave, access);
        let (unit, _) = self.unit_and_array(wave);
        for (part, (cell, access_part)) in owner.cells_of(access).iter().zip(&details.parts).enumerate() {
            let part_in_flight = PartInFlight { wave, access, part };
            let mut after = Vec::new();
            for mut successor in all {
                let line = successor.vector_lines.get(&(unit, *cell)).copied();
                let is_load = matches!(details.action, AccessAction::Load { .. });
                if let Some(value) = line.filter(|_| is_load && !details.bypassed[VECTOR]) {
                    let mut hit = successor.clone();
                    self.complete_part(&mut hit, part_in_flight, value);
                    after.push(hit);
                }
                match (details.action, details.bypassed[VECTOR]) {
                    // The load missed, so no valid line remains.
                    (AccessAction::Load { .. }, false) => drop(successor.vector_lines.remove(&(unit, *cell))),
                    (AccessAction::Load { .. }, true) => {}
                    (AccessAction::Store, false) => {
                        let data = self.data_to_store(&successor, wave, access_part.data);
                        if let Some(line) = successor.vector_lines.get_mut(&(unit, *cell)) {
                            *line = insert_word(*line, access_part.word, data);
                        }
                    }
                    (AccessAction::Store, true) | (AccessAction::Atomic(_), _) => {
                        successor.vector_lines.remove(&(unit, *cell));
                    }
                }
                successor.queues.entry((unit, *cell)).or_default().push(part_in_flight);
                after.push(successor);
            }
            all = after;
        }
        successors.append(&mut all);
    }

    /// Performs the head of each queue.
    fn add_queue_steps(&self, state: &NaiveState, successors: &mut Vec<NaiveState>) {
        for (key, queue) in &state.queues {
            let Some(first) = queue.first().copied() else { continue };
            let (_, details) = self.access_of(first.wave, first.access);
            let (unit, array) = self.unit_and_array(first.wave);
            let cell = key.1;
            let mut waiting = state.clone();
            if let Some(queue) = waiting.queues.get_mut(key) {
                queue.remove(0);
                if queue.is_empty() {
                    waiting.queues.remove(key);
                }
            }
            if !self.is_load(&first) {
                waiting.array_lines.remove(&(array, cell));
                self.perform_at_memory(&mut waiting, first);
                successors.push(waiting);
                continue;
            }
            let hit = waiting.array_lines.get(&(array, cell)).copied().filter(|_| !details.bypassed[ARRAY]);
            for value in hit.into_iter().chain([waiting.memory[usize::from(cell)]]) {
                let mut successor = waiting.clone();
                if self.has_array_caches() && !details.bypassed[ARRAY] {
                    successor.array_lines.insert((array, cell), value);
                }
                // A later store of this compute unit in the queue has already updated the line.
                let stores = |other: &PartInFlight| {
                    self.access_of(other.wave, other.access).1.action == AccessAction::Store
                };
                let has_later_store = successor.queues.get(key).is_some_and(|queue| queue.iter().any(stores));
                if !details.bypassed[VECTOR] && !has_later_store {
                    successor.vector_lines.insert((unit, cell), value);
                }
                self.complete_part(&mut successor, first, value);
                successors.push(successor);
            }
        }
    }

    /// Another wave loads a location and refills lines that some load of these waves may hit, from the array
    /// or from memory.
    fn add_refill_steps(&self, state: &NaiveState, successors: &mut Vec<NaiveState>) {
        for (cell, memory) in (0_u16..).zip(&state.memory) {
            let can_be_cached = |way: MemoryUnit, skips: fn(&Access) -> bool| {
                let is_cached_load = |(access, cells): (&Access, &Vec<u16>)| {
                    let is_load = access.unit == way && matches!(access.action, AccessAction::Load { .. });
                    is_load && !skips(access) && cells.contains(&cell)
                };
                self.machine
                    .waves
                    .iter()
                    .any(|wave| wave.code.accesses.iter().zip(&wave.cells).any(is_cached_load))
            };
            let in_vector = can_be_cached(MemoryUnit::Vector, |access| access.bypassed[VECTOR]);
            let in_scalar = can_be_cached(MemoryUnit::Scalar, |access| access.bypassed[SCALAR]);
            let in_array = [MemoryUnit::Vector, MemoryUnit::Scalar]
                .map(|way| can_be_cached(way, |access| access.bypassed[ARRAY]));
            let in_array = self.has_array_caches() && in_array.contains(&true);
            for (unit, array) in self.placement.iter().flatten().copied().collect::<BTreeSet<_>>() {
                let unit_queue = state.queues.get(&(unit, cell)).map(Vec::as_slice).unwrap_or_default();
                let has_pending_write = unit_queue.iter().any(|other| !self.is_load(other));
                let hit = state.array_lines.get(&(array, cell)).copied();
                for value in hit.into_iter().chain([*memory]) {
                    let mut filled = state.clone();
                    if in_array {
                        filled.array_lines.insert((array, cell), value);
                    }
                    if in_scalar {
                        let mut scalar = filled.clone();
                        scalar.scalar_lines.insert((unit, cell), value);
                        successors.push(scalar);
                    }
                    if in_vector && !has_pending_write {
                        let mut vector = filled.clone();
                        vector.vector_lines.insert((unit, cell), value);
                        successors.push(vector);
                    }
                    successors.push(filled);
                }
            }
        }
    }

    /// Performs a scalar load: from its cache, from the array's cache, or from memory.
    fn add_scalar_load_steps(
        &self,
        state: &NaiveState,
        wave: usize,
        access: u16,
        successors: &mut Vec<NaiveState>,
    ) {
        let (owner, details) = self.access_of(wave, access);
        let (unit, array) = self.unit_and_array(wave);
        for source in 0..3 {
            let mut successor = state.clone();
            let mut is_possible = source == 0;
            for (part, cell) in owner.cells_of(access).iter().enumerate() {
                let scalar_line =
                    successor.scalar_lines.get(&(unit, *cell)).copied().filter(|_| !details.bypassed[SCALAR]);
                let array_line =
                    successor.array_lines.get(&(array, *cell)).copied().filter(|_| !details.bypassed[ARRAY]);
                let memory = successor.memory[usize::from(*cell)];
                let hit = [None, scalar_line, array_line].get(source).copied().flatten();
                is_possible |= hit.is_some();
                let value = hit.unwrap_or(memory);
                if source != 1 {
                    if self.has_array_caches() && !details.bypassed[ARRAY] {
                        successor.array_lines.insert((array, *cell), value);
                    }
                    if !details.bypassed[SCALAR] {
                        successor.scalar_lines.insert((unit, *cell), value);
                    }
                }
                self.complete_part(&mut successor, PartInFlight { wave, access, part }, value);
            }
            if is_possible {
                successors.push(successor);
            }
        }
    }

    /// Reads, writes or modifies memory, or the local data share.
    fn perform_at_memory(&self, state: &mut NaiveState, part_in_flight: PartInFlight) {
        let PartInFlight { wave, access, part } = part_in_flight;
        let (owner, details) = self.access_of(wave, access);
        let (cell, part) = (usize::from(owner.cells_of(access)[part]), &details.parts[part]);
        let old = state.memory[cell];
        let data = self.data_to_store(state, wave, part.data);
        let new = match details.action {
            AccessAction::Load { .. } => old,
            AccessAction::Store => insert_word(old, part.word, data),
            AccessAction::Atomic(operation) => {
                let compare = self.data_to_store(state, wave, part.compare);
                insert_word(
                    old,
                    part.word,
                    atomic_result(operation, extract_word(old, part.word), data, compare, part.word),
                )
            }
        };
        state.memory[cell] = new;
        self.complete_part(state, part_in_flight, old);
    }

    /// Completes a part of an access; a load or atomic has found `value`.
    fn complete_part(&self, state: &mut NaiveState, part_in_flight: PartInFlight, value: u64) {
        let PartInFlight { wave, access, part } = part_in_flight;
        if let Some(slot) = self.access_of(wave, access).1.parts[part].slot {
            state.registers[wave][usize::from(slot)] = value;
        }
        let flights = &mut state.in_flight[wave];
        for flight in flights.iter_mut().filter(|flight| flight.access == access) {
            flight.remaining_parts.remove(&part);
        }
        flights.retain(|flight| !flight.remaining_parts.is_empty());
    }

    fn data_to_store(&self, now: &NaiveState, wave: usize, data: [WaveValue; 2]) -> u64 {
        let code = &self.machine.waves[wave].code;
        let [low, high] = data.map(|value| u64::from(code.evaluate(value, &now.registers[wave])));
        low | high << 32
    }
}

/// Computes the value that an atomic of 4 or 8 bytes writes.
fn atomic_result(operation: AtomicOpcode, old: u64, operand: u64, compare: u64, word: MemoryWord) -> u64 {
    use AtomicOpcode as A;
    let narrow = |value: u64| if word.bytes == 8 { value } else { value & 0xffff_ffff };
    let signed = |value: u64| if word.bytes == 8 { value as i64 } else { i64::from(value as u32 as i32) };
    let float = |value: u64| f32::from_bits(value as u32);
    let (operand, compare) = (narrow(operand), narrow(compare));
    narrow(match operation {
        A::Swap => operand,
        A::CompareSwap if old == compare => operand,
        A::CompareSwap => old,
        A::Add => old.wrapping_add(operand),
        A::Sub => old.wrapping_sub(operand),
        A::And => old & operand,
        A::Or => old | operand,
        A::Xor => old ^ operand,
        A::MinUnsigned => old.min(operand),
        A::MaxUnsigned => old.max(operand),
        A::MinSigned => signed(old).min(signed(operand)) as u64,
        A::MaxSigned => signed(old).max(signed(operand)) as u64,
        A::FloatAdd => u64::from((float(old) + float(operand)).to_bits()),
        A::FloatMin => u64::from(float(old).min(float(operand)).to_bits()),
        A::FloatMax => u64::from(float(old).max(float(operand)).to_bits()),
    })
}
