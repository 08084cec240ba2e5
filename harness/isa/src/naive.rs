//! A naive implementation of the machine, the oracle of the explorer.
//!
//! It takes one step of one unit at a time, in every order and under every placement. It shares with the
//! explorer only the translation of text to accesses, waits and barriers. It has no partial-order reduction;
//! every location has a line in every cache, every placement is tried, and queues, caches and registers are
//! separate maps. Its only reduction is a set of visited states.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use crate::code::{Access, LoadedValue, MemoryUnit, WaveStep};
use crate::explore::{ObservedCell, prepare_machine};
use crate::facts::{self, FactTable, Profile};
use crate::family::Generation;
use crate::machine::{IsaWave, Machine, extract_word, insert_word};
use crate::opcode::{Action, AtomicOpcode, CacheInstruction};
use crate::question::{MachineQuestion, MemoryWord};

/// The reason for a missing answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoAnswer {
    /// The text cannot be executed, or a wave waits forever.
    #[error("not executed")]
    NotExecuted,
    /// The state limit was exceeded.
    #[error("more than {0} states")]
    TooMany(usize),
}

/// Returns every reachable outcome over all placements, with at most `limit` states for each.
///
/// # Errors
///
/// [`NoAnswer`].
pub fn naive_outcomes(
    question: &MachineQuestion,
    profile: Profile,
    facts: &FactTable,
    limit: usize,
) -> Result<BTreeSet<Vec<u64>>, NoAnswer> {
    let (machine, observed) = prepare_machine(question, profile, facts).map_err(|_| NoAnswer::NotExecuted)?;
    let generation = question.family.generation();
    let mut found = BTreeSet::new();
    for seats in every_placement(question, generation) {
        let mut walk = NaiveSearch {
            machine: &machine,
            question,
            facts,
            observed: &observed,
            generation,
            seats: &seats,
            visited: HashSet::new(),
            found: &mut found,
            limit,
        };
        walk.search_from(walk.initial_state())?;
    }
    Ok(found)
}

/// The compute unit and shader array of each wave of each workgroup.
type WaveSeats = Vec<Vec<(usize, usize)>>;

/// Returns every placement.
///
/// Workgroups form blocks that share a compute unit (since GFX10, a pair of units), and blocks form shader
/// arrays. Within a pair, each wave may be on either unit.
fn every_placement(question: &MachineQuestion, generation: Generation) -> BTreeSet<WaveSeats> {
    let count = question.workgroups.len();
    let mut all = BTreeSet::new();
    for blocks in all_numberings(count) {
        for arrays in all_numberings(count) {
            let halves = if generation.spreads_workgroups() { 2 } else { 1 };
            let waves: usize = question.workgroups.iter().map(|workgroup| workgroup.waves.len()).sum();
            for choice in 0..halves_to(halves, waves) {
                let mut next = choice;
                let seats = question.workgroups.iter().zip(&blocks).map(|(workgroup, block)| {
                    // The number of a block is that of its first workgroup, which also determines the array.
                    let array = arrays.get(*block).copied().unwrap_or(0);
                    let several = workgroup.waves.len() > 1;
                    let seat_of = |_| {
                        // A workgroup with a single wave uses one unit.
                        let half = if several { next % halves } else { 0 };
                        next /= halves;
                        (2 * block + half, array)
                    };
                    workgroup.waves.iter().map(seat_of).collect()
                });
                all.insert(seats.collect());
            }
        }
    }
    all
}

fn halves_to(halves: usize, waves: usize) -> usize {
    (0..waves).fold(1, |product, _| product * halves)
}

/// Returns every assignment of indices to `count` items in which an item has its index or that of an earlier
/// item.
fn all_numberings(count: usize) -> Vec<Vec<usize>> {
    (0..count).fold(vec![Vec::new()], |partial, next| {
        let longer = |head: &Vec<usize>| {
            let head = head.clone();
            (0..=next).map(move |number| [head.as_slice(), &[number]].concat())
        };
        partial.iter().flat_map(longer).collect()
    })
}

/// An issued access that is not complete.
#[derive(Clone, PartialEq, Eq, Hash)]
struct AccessInFlight {
    access: u16,
    arrived: bool,
    /// Parts that are not performed yet.
    left: BTreeSet<usize>,
}

/// One part of an access on its way to memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct PartInFlight {
    wave: usize,
    access: u16,
    part: usize,
}

/// A state of the machine. Locations are cells of 8 bytes.
#[derive(Clone, PartialEq, Eq, Hash)]
struct NaiveState {
    /// The number of completed dispatches.
    ended: usize,
    at: Vec<usize>,
    arrivals: Vec<usize>,
    memory: Vec<u64>,
    /// The values that the loads of each wave have found.
    registers: Vec<Vec<u64>>,
    flights: Vec<Vec<AccessInFlight>>,
    /// Queues by compute unit and location, first in, first out.
    queues: BTreeMap<(usize, u16), Vec<PartInFlight>>,
    /// Valid lines of the compute units' vector caches.
    vector: BTreeMap<(usize, u16), u64>,
    /// Valid lines of the shader arrays' caches.
    array: BTreeMap<(usize, u16), u64>,
    /// Valid lines of the scalar caches.
    scalar: BTreeMap<(usize, u16), u64>,
}

struct NaiveSearch<'m> {
    machine: &'m Machine,
    question: &'m MachineQuestion,
    facts: &'m FactTable,
    observed: &'m [ObservedCell],
    generation: Generation,
    seats: &'m WaveSeats,
    visited: HashSet<NaiveState>,
    found: &'m mut BTreeSet<Vec<u64>>,
    limit: usize,
}

impl NaiveSearch<'_> {
    fn initial_state(&self) -> NaiveState {
        let memory: Vec<u64> = self.machine.cells.iter().map(|cell| cell.initial).collect();
        let warm = |places: &dyn Fn((usize, usize)) -> usize| {
            let places: BTreeSet<usize> = self.seats.iter().flatten().map(|seat| places(*seat)).collect();
            let lines = places
                .into_iter()
                .flat_map(|place| (0_u16..).zip(&memory).map(move |(cell, value)| ((place, cell), *value)));
            lines.collect::<BTreeMap<(usize, u16), u64>>()
        };
        let units = warm(&|(unit, _)| unit);
        NaiveState {
            ended: 0,
            at: vec![0; self.machine.waves.len()],
            arrivals: vec![0; self.machine.waves.len()],
            registers: self.machine.waves.iter().map(|wave| vec![0; usize::from(wave.code.slots)]).collect(),
            flights: vec![Vec::new(); self.machine.waves.len()],
            queues: BTreeMap::new(),
            vector: units.clone(),
            array: if self.has_arrays() { warm(&|(_, array)| array) } else { BTreeMap::new() },
            scalar: units,
            memory,
        }
    }

    fn has_arrays(&self) -> bool {
        self.generation >= Generation::Gfx10
    }

    fn seat_of(&self, wave: usize) -> (usize, usize) {
        let of = |wave: &IsaWave| self.seats.get(wave.workgroup)?.get(wave.number).copied();
        self.machine.waves.get(wave).and_then(of).unwrap_or_default()
    }

    fn search_from(&mut self, start: NaiveState) -> Result<(), NoAnswer> {
        let mut open = vec![start];
        while let Some(now) = open.pop() {
            if self.visited.contains(&now) {
                continue;
            }
            if self.visited.len() >= self.limit {
                return Err(NoAnswer::TooMany(self.limit));
            }
            let mut next = Vec::new();
            for wave in 0..self.machine.waves.len() {
                self.program_steps(&now, wave, &mut next);
                self.memory_steps(&now, wave, &mut next);
            }
            self.queue_steps(&now, &mut next);
            self.next_dispatch(&now, &mut next);
            if next.is_empty() {
                self.end_state(&now)?;
            }
            self.refill_steps(&now, &mut next);
            open.append(&mut next);
            self.visited.insert(now);
        }
        Ok(())
    }

    fn end_state(&mut self, now: &NaiveState) -> Result<(), NoAnswer> {
        let ended = (0..self.machine.waves.len()).all(|wave| self.has_ended(now, wave));
        if !ended || now.flights.iter().any(|flights| !flights.is_empty()) {
            return Err(NoAnswer::NotExecuted);
        }
        let mut outcome = Vec::new();
        for seen in self.observed {
            let value = extract_word(now.memory.get(seen.cell).copied().unwrap_or(0), seen.place);
            if seen.required.is_some_and(|required| required != value) {
                return Ok(());
            }
            outcome.push(value);
        }
        self.found.insert(outcome);
        Ok(())
    }

    /// After a dispatch has completed, invalidates caches as the barrier requires, and starts the next
    /// dispatch.
    fn next_dispatch(&self, now: &NaiveState, next: &mut Vec<NaiveState>) {
        let mut runs = (0..self.machine.waves.len()).filter(|wave| self.has_begun(now, *wave));
        let idle = now.flights.iter().all(Vec::is_empty);
        if idle
            && runs.all(|wave| self.has_ended(now, wave))
            && let Some(barrier) = self.question.barriers.get(now.ended)
        {
            let mut on = now.clone();
            on.ended += 1;
            for rule in self.facts.barrier_rules(barrier) {
                for cache in &rule.drops {
                    match cache {
                        facts::CacheName::Vector => on.vector.clear(),
                        facts::CacheName::Array => on.array.clear(),
                        facts::CacheName::Scalar => on.scalar.clear(),
                    }
                }
            }
            next.push(on);
        }
    }

    fn has_begun(&self, now: &NaiveState, wave: usize) -> bool {
        let place =
            self.machine.waves.get(wave).and_then(|wave| self.question.workgroups.get(wave.workgroup));
        place.is_some_and(|workgroup| workgroup.dispatch <= now.ended)
    }

    fn next_node(&self, now: &NaiveState, wave: usize) -> Option<&WaveStep> {
        self.machine.waves.get(wave)?.code.nodes.get(*now.at.get(wave)?)
    }

    fn has_ended(&self, now: &NaiveState, wave: usize) -> bool {
        self.has_begun(now, wave) && matches!(self.next_node(now, wave), Some(WaveStep::End) | None)
    }

    fn access_of(&self, wave: usize, access: u16) -> Option<(&IsaWave, &Access)> {
        let wave = self.machine.waves.get(wave)?;
        Some((wave, wave.code.accesses.get(usize::from(access))?))
    }

    /// Advances a wave by one step of its program.
    fn program_steps(&self, now: &NaiveState, wave: usize, next: &mut Vec<NaiveState>) {
        let (Some(owner), Some(node)) = (self.machine.waves.get(wave), self.next_node(now, wave)) else {
            return;
        };
        if !self.has_begun(now, wave) {
            return;
        }
        let mut on = now.clone();
        let Some(at) = on.at.get_mut(wave) else { return };
        *at += 1;
        let flights = now.flights.get(wave).map(Vec::as_slice).unwrap_or_default();
        match node {
            WaveStep::End => {}
            WaveStep::Access(access) => {
                let Some((_, details)) = self.access_of(wave, *access) else { return };
                if details.parts.is_empty() {
                    next.push(on);
                    return;
                }
                let flight = AccessInFlight {
                    access: *access,
                    arrived: details.way != MemoryUnit::Vector,
                    left: (0..details.parts.len()).collect(),
                };
                if let Some(flights) = on.flights.get_mut(wave) {
                    flights.push(flight);
                }
                if details.way == MemoryUnit::Vector && self.machine.arrives_at_issue {
                    // Accesses arrive at issue.
                    self.arrival_steps(&on, wave, next);
                } else {
                    next.push(on);
                }
            }
            WaveStep::Wait { accesses, .. } => {
                let outstanding = |access: &u16| {
                    let waited = self.access_of(wave, *access).is_some_and(|(_, details)| details.waited);
                    waited && flights.iter().any(|flight| flight.access == *access)
                };
                if !accesses.iter().any(outstanding) {
                    next.push(on);
                }
            }
            WaveStep::Signal { .. } => {
                if let Some(arrivals) = on.arrivals.get_mut(wave) {
                    *arrivals += 1;
                }
                next.push(on);
            }
            WaveStep::Join { .. } => {
                let own = now.arrivals.get(wave).copied().unwrap_or(0);
                let late = |other: &usize| {
                    self.machine.waves.get(*other).is_some_and(|with| with.workgroup == owner.workgroup)
                        && !self.has_ended(now, *other)
                        && now.arrivals.get(*other).is_some_and(|arrivals| *arrivals < own)
                };
                if !(0..self.machine.waves.len()).any(|other| late(&other)) {
                    next.push(on);
                }
            }
            WaveStep::Cache { cache, scope, .. } => {
                // In the order of the wave's arrivals.
                if flights.iter().all(|flight| flight.arrived) {
                    self.drop_lines(&mut on, wave, *cache, *scope);
                    next.push(on);
                }
            }
            WaveStep::Decide { value, other } => {
                let registers = now.registers.get(wave).map(Vec::as_slice).unwrap_or_default();
                if owner.code.evaluate(LoadedValue::Loaded(*value), registers) == 0
                    && let Some(at) = on.at.get_mut(wave)
                {
                    *at = *other as usize;
                }
                next.push(on);
            }
        }
    }

    fn drop_lines(&self, now: &mut NaiveState, wave: usize, cache: CacheInstruction, scope: u8) {
        let (unit, array) = self.seat_of(wave);
        let vector = matches!(cache, CacheInstruction::DropVector)
            || (cache == CacheInstruction::DropByScope && scope >= 1);
        let arrays = matches!(cache, CacheInstruction::DropArray)
            || (cache == CacheInstruction::DropByScope && scope >= 2);
        if vector {
            now.vector.retain(|(place, _), _| *place != unit);
        }
        if arrays {
            now.array.retain(|(place, _), _| *place != array);
        }
        if cache == CacheInstruction::DropScalar {
            now.scalar.retain(|(place, _), _| *place != unit);
        }
    }

    /// Adds the steps of the memory system for a wave outside of queues: arrivals, scalar loads, LDS.
    fn memory_steps(&self, now: &NaiveState, wave: usize, next: &mut Vec<NaiveState>) {
        if !self.machine.arrives_at_issue {
            self.arrival_steps(now, wave, next);
        }
        let flights = now.flights.get(wave).map(Vec::as_slice).unwrap_or_default();
        let way =
            |flight: &AccessInFlight| self.access_of(wave, flight.access).map(|(_, details)| details.way);
        for flight in flights.iter().filter(|flight| way(flight) == Some(MemoryUnit::Scalar)) {
            self.scalar_load(now, wave, flight.access, next);
        }
        if let Some(first) = flights.iter().find(|flight| way(flight) == Some(MemoryUnit::Lds)) {
            let mut on = now.clone();
            for part in first.left.clone() {
                self.at_memory(&mut on, PartInFlight { wave, access: first.access, part });
            }
            next.push(on);
        }
    }

    /// The oldest vector access of the wave arrives: each of its parts hits a line or enters its queue.
    fn arrival_steps(&self, now: &NaiveState, wave: usize, next: &mut Vec<NaiveState>) {
        let flights = now.flights.get(wave).map(Vec::as_slice).unwrap_or_default();
        let Some(index) = flights.iter().position(|flight| !flight.arrived) else { return };
        let Some(access) = flights.get(index).map(|flight| flight.access) else { return };
        let mut all = vec![now.clone()];
        for now in &mut all {
            if let Some(flight) = now.flights.get_mut(wave).and_then(|flights| flights.get_mut(index)) {
                flight.arrived = true;
            }
        }
        let Some((owner, details)) = self.access_of(wave, access) else { return };
        let cells = owner.cells.get(usize::from(access)).cloned().unwrap_or_default();
        let (unit, _) = self.seat_of(wave);
        for (part, (cell, what)) in cells.into_iter().zip(&details.parts).enumerate() {
            let traveller = PartInFlight { wave, access, part };
            let mut after = Vec::new();
            for mut now in all {
                let line = now.vector.get(&(unit, cell)).copied();
                let load = matches!(details.action, Action::Load { .. });
                if let Some(value) = line.filter(|_| load && !details.skips.vector) {
                    let mut hit = now.clone();
                    self.complete_part(&mut hit, traveller, value);
                    after.push(hit);
                }
                match (details.action, details.skips.vector) {
                    // The load missed, so no valid line remains.
                    (Action::Load { .. }, false) => drop(now.vector.remove(&(unit, cell))),
                    (Action::Load { .. }, true) => {}
                    (Action::Store, false) => {
                        let data = self.store_data(&now, wave, what.data);
                        if let Some(line) = now.vector.get_mut(&(unit, cell)) {
                            *line = insert_word(*line, what.place, data);
                        }
                    }
                    (Action::Store, true) | (Action::Atomic(_), _) => drop(now.vector.remove(&(unit, cell))),
                }
                now.queues.entry((unit, cell)).or_default().push(traveller);
                after.push(now);
            }
            all = after;
        }
        next.append(&mut all);
    }

    /// Performs the head of each queue.
    fn queue_steps(&self, now: &NaiveState, next: &mut Vec<NaiveState>) {
        for (key, queue) in &now.queues {
            let Some(first) = queue.first().copied() else { continue };
            let Some((_, details)) = self.access_of(first.wave, first.access) else { continue };
            let (unit, array) = self.seat_of(first.wave);
            let cell = key.1;
            let mut waiting = now.clone();
            if let Some(queue) = waiting.queues.get_mut(key) {
                queue.remove(0);
                if queue.is_empty() {
                    waiting.queues.remove(key);
                }
            }
            if !matches!(details.action, Action::Load { .. }) {
                waiting.array.remove(&(array, cell));
                self.at_memory(&mut waiting, first);
                next.push(waiting);
                continue;
            }
            let hit = waiting.array.get(&(array, cell)).copied().filter(|_| !details.skips.array);
            let memory = waiting.memory.get(usize::from(cell)).copied();
            for value in hit.into_iter().chain(memory) {
                let mut on = waiting.clone();
                if self.has_arrays() && !details.skips.array {
                    on.array.insert((array, cell), value);
                }
                // A later store of this compute unit in the queue has already updated the line.
                let stores = |other: &PartInFlight| {
                    self.access_of(other.wave, other.access)
                        .is_some_and(|(_, details)| details.action == Action::Store)
                };
                let newer = on.queues.get(key).is_some_and(|queue| queue.iter().any(stores));
                if !details.skips.vector && !newer {
                    on.vector.insert((unit, cell), value);
                }
                self.complete_part(&mut on, first, value);
                next.push(on);
            }
        }
    }

    /// Another wave loads a location and refills lines that some load of these waves may hit, from the array
    /// or from memory.
    fn refill_steps(&self, now: &NaiveState, next: &mut Vec<NaiveState>) {
        for (cell, memory) in (0_u16..).zip(&now.memory) {
            let found = |way: MemoryUnit, skips: fn(&Access) -> bool| {
                let finds = |(access, cells): (&Access, &Vec<u16>)| {
                    let is_load = access.way == way && matches!(access.action, Action::Load { .. });
                    is_load && !skips(access) && cells.contains(&cell)
                };
                self.machine.waves.iter().any(|wave| wave.code.accesses.iter().zip(&wave.cells).any(finds))
            };
            let in_vector = found(MemoryUnit::Vector, |access| access.skips.vector);
            let in_scalar = found(MemoryUnit::Scalar, |access| access.skips.scalar);
            let in_array =
                [MemoryUnit::Vector, MemoryUnit::Scalar].map(|way| found(way, |access| access.skips.array));
            let in_array = self.has_arrays() && in_array.contains(&true);
            for (unit, array) in self.seats.iter().flatten().copied().collect::<BTreeSet<_>>() {
                let own = now.queues.get(&(unit, cell)).map(Vec::as_slice).unwrap_or_default();
                let stored = own.iter().any(|other| {
                    self.access_of(other.wave, other.access)
                        .is_some_and(|(_, details)| !matches!(details.action, Action::Load { .. }))
                });
                let hit = now.array.get(&(array, cell)).copied();
                for value in hit.into_iter().chain([*memory]) {
                    let mut filled = now.clone();
                    if in_array {
                        filled.array.insert((array, cell), value);
                    }
                    if in_scalar {
                        let mut scalar = filled.clone();
                        scalar.scalar.insert((unit, cell), value);
                        next.push(scalar);
                    }
                    if in_vector && !stored {
                        let mut vector = filled.clone();
                        vector.vector.insert((unit, cell), value);
                        next.push(vector);
                    }
                    next.push(filled);
                }
            }
        }
    }

    /// Performs a scalar load: from its cache, from the array's cache, or from memory.
    fn scalar_load(&self, now: &NaiveState, wave: usize, access: u16, next: &mut Vec<NaiveState>) {
        let Some((owner, details)) = self.access_of(wave, access) else { return };
        let cells = owner.cells.get(usize::from(access)).cloned().unwrap_or_default();
        let (unit, array) = self.seat_of(wave);
        for source in 0..3 {
            let mut on = now.clone();
            let mut any = source == 0;
            for (part, cell) in cells.iter().enumerate() {
                let own = on.scalar.get(&(unit, *cell)).copied().filter(|_| !details.skips.scalar);
                let arrays = on.array.get(&(array, *cell)).copied().filter(|_| !details.skips.array);
                let memory = on.memory.get(usize::from(*cell)).copied().unwrap_or(0);
                let hit = [None, own, arrays].get(source).copied().flatten();
                any |= hit.is_some();
                let value = hit.unwrap_or(memory);
                if source != 1 {
                    if self.has_arrays() && !details.skips.array {
                        on.array.insert((array, *cell), value);
                    }
                    if !details.skips.scalar {
                        on.scalar.insert((unit, *cell), value);
                    }
                }
                self.complete_part(&mut on, PartInFlight { wave, access, part }, value);
            }
            if any {
                next.push(on);
            }
        }
    }

    /// Reads, writes or modifies memory, or the local data share.
    fn at_memory(&self, now: &mut NaiveState, who: PartInFlight) {
        let Some((owner, details)) = self.access_of(who.wave, who.access) else { return };
        let cell = owner.cells.get(usize::from(who.access)).and_then(|cells| cells.get(who.part)).copied();
        let (Some(cell), Some(part)) = (cell, details.parts.get(who.part)) else { return };
        let old = now.memory.get(usize::from(cell)).copied().unwrap_or(0);
        let data = self.store_data(now, who.wave, part.data);
        let new = match details.action {
            Action::Load { .. } => old,
            Action::Store => insert_word(old, part.place, data),
            Action::Atomic(operation) => {
                let compare = self.store_data(now, who.wave, part.compare);
                insert_word(
                    old,
                    part.place,
                    atomic_result(operation, extract_word(old, part.place), data, compare, part.place),
                )
            }
        };
        if let Some(memory) = now.memory.get_mut(usize::from(cell)) {
            *memory = new;
        }
        self.complete_part(now, who, old);
    }

    /// Completes a part of an access; a load or atomic has found `value`.
    fn complete_part(&self, now: &mut NaiveState, who: PartInFlight, value: u64) {
        let slot =
            self.access_of(who.wave, who.access).and_then(|(_, details)| details.parts.get(who.part)?.slot);
        if let Some(slot) = slot
            && let Some(register) =
                now.registers.get_mut(who.wave).and_then(|registers| registers.get_mut(usize::from(slot)))
        {
            *register = value;
        }
        if let Some(flights) = now.flights.get_mut(who.wave) {
            for flight in flights.iter_mut().filter(|flight| flight.access == who.access) {
                flight.left.remove(&who.part);
            }
            flights.retain(|flight| !flight.left.is_empty());
        }
    }

    fn store_data(&self, now: &NaiveState, wave: usize, data: [LoadedValue; 2]) -> u64 {
        let registers = now.registers.get(wave).map(Vec::as_slice).unwrap_or_default();
        let word = |value| {
            self.machine.waves.get(wave).map_or(0, |wave| u64::from(wave.code.evaluate(value, registers)))
        };
        let [low, high] = data;
        word(low) | word(high) << 32
    }
}

/// Computes the value that an atomic of 4 or 8 bytes writes.
fn atomic_result(operation: AtomicOpcode, old: u64, operand: u64, compare: u64, place: MemoryWord) -> u64 {
    use AtomicOpcode as A;
    let narrow = |value: u64| if place.bytes == 8 { value } else { value & 0xffff_ffff };
    let signed = |value: u64| if place.bytes == 8 { value as i64 } else { i64::from(value as u32 as i32) };
    let float = |value: u64| f32::from_bits(value as u32);
    let (operand, compare) = (narrow(operand), narrow(compare));
    narrow(match operation {
        A::Swap => operand,
        A::CompareSwap => {
            if old == compare {
                operand
            } else {
                old
            }
        }
        A::Add => old.wrapping_add(operand),
        A::Sub => old.wrapping_sub(operand),
        A::And => old & operand,
        A::Or => old | operand,
        A::Xor => old ^ operand,
        A::MinUnsigned => old.min(operand),
        A::MaxUnsigned => old.max(operand),
        A::MinSigned => {
            if signed(old) <= signed(operand) {
                old
            } else {
                operand
            }
        }
        A::MaxSigned => {
            if signed(old) >= signed(operand) {
                old
            } else {
                operand
            }
        }
        A::FloatAdd => u64::from((float(old) + float(operand)).to_bits()),
        A::FloatMin => u64::from(float(old).min(float(operand)).to_bits()),
        A::FloatMax => u64::from(float(old).max(float(operand)).to_bits()),
    })
}
