//! Exhaustive state-space exploration: every interleaving of a question's waves under every placement.
//!
//! Depth-first search with a set of visited states. Steps that commute with all others are taken first
//! (partial-order reduction, see `Machine::take_commuting_steps`).

use std::collections::{BTreeSet, HashSet};
use std::hash::BuildHasherDefault;

use rustc_hash::{FxHashMap, FxHasher};

use crate::code::{Access, AccessPart, MemoryUnit, WaveCode, WaveStep};
use crate::facts::{FactTable, Profile};
use crate::family::Generation;
use crate::machine::{
    ARRAY, AlignedWord, EventRecord, ExplorationState, IsaWave, Machine, MachineEvent, MachineStep,
    ResolvedPlacement, SCALAR, VECTOR, is_in_lds,
};
use crate::opcode::AccessAction;
use crate::placement::{RelevantCaches, enumerate_placements};
use crate::question::{
    DispatchBarrier, Exploration, MachineQuestion, MachineVerdict, MemorySpace, MemoryWord, Trace, TraceStep,
    Unsupported,
};
use crate::wave::{self, BuildError, WaveLaunch};

/// The content of uninitialized memory, a value that no test uses.
const UNINITIALIZED_CELL: u64 = 0xbad0_bad1_bad2_bad3;
/// The maximum number of states of one question.
pub const MAX_STATES: u64 = 2_000_000;

/// Decides whether an outcome outside of the allowed set is reachable.
///
/// Deterministic: equal questions, facts and profiles give equal verdicts.
pub fn explore(question: &MachineQuestion, profile: Profile, facts: &FactTable) -> MachineVerdict {
    explore_with_limit(question, profile, facts, MAX_STATES)
}

/// As [`explore`], with an explicit limit on the number of states.
pub fn explore_with_limit(
    question: &MachineQuestion,
    profile: Profile,
    facts: &FactTable,
    max_states: u64,
) -> MachineVerdict {
    let (mut machine, observed) = match prepare_machine(question, profile, facts) {
        Ok(prepared) => prepared,
        Err(BuildError::Hazard(hazard)) => return MachineVerdict::Hazard(hazard),
        Err(BuildError::Unsupported(unsupported)) => return MachineVerdict::Unsupported(unsupported),
    };
    let mut explored = Exploration {
        profile,
        assumptions: relevant_facts(question, profile, facts, &machine),
        ..Exploration::default()
    };
    let can_hit = |cache: usize| machine.cells.iter().any(|cell| cell.cached_in[cache]);
    let relevant_caches = RelevantCaches { units: can_hit(0) || can_hit(2), arrays: can_hit(1) };
    for placement in enumerate_placements(question.family.generation(), &question.workgroups, relevant_caches)
    {
        explored.placements += 1;
        machine.set_placement(&placement);
        let mut search = StateSearch {
            machine: &machine,
            question,
            observed: &observed,
            visited: HashSet::default(),
            events: Vec::new(),
            explored: &mut explored,
            limit: max_states,
        };
        let mut initial = machine.initial_state();
        match search.visit_state(&mut initial) {
            Ok(()) => {}
            Err(SearchStop::Deadlock) => {
                return unsupported_question("a wave waits at a barrier forever".to_owned());
            }
            Err(SearchStop::StateLimit) => {
                return unsupported_question(format!("more than {max_states} states"));
            }
            Err(SearchStop::Found(outcome)) => {
                let steps = search.events.iter().map(|record| trace_step(&machine, record)).collect();
                return MachineVerdict::Reachable(Box::new(Trace {
                    outcome,
                    placement,
                    steps,
                    exploration: explored,
                }));
            }
        }
    }
    MachineVerdict::Unreachable(explored)
}

fn unsupported_question(construct: String) -> MachineVerdict {
    MachineVerdict::Unsupported(Unsupported { kernel: 0, line: None, what: construct })
}

/// An observed part of an outcome.
pub(crate) struct ObservedCell {
    pub cell: usize,
    pub word: MemoryWord,
    pub required: Option<u64>,
}

/// Builds the waves and numbers the memory cells that they access.
pub(crate) fn prepare_machine(
    question: &MachineQuestion,
    profile: Profile,
    facts: &FactTable,
) -> Result<(Machine, Vec<ObservedCell>), BuildError> {
    let generation = question.family.generation();
    let unsupported = |what: String| BuildError::Unsupported(Unsupported { kernel: 0, line: None, what });
    let mut waves: Vec<IsaWave> = Vec::new();
    let mut slots = 0;
    let all_dispatches_used = (0..=question.barriers.len())
        .all(|dispatch| question.workgroups.iter().any(|workgroup| workgroup.dispatch == dispatch));
    if !all_dispatches_used
        || question.workgroups.iter().any(|group| group.dispatch > question.barriers.len())
    {
        return Err(unsupported("a dispatch without workgroups, or without a barrier before it".to_owned()));
    }
    for (workgroup_index, workgroup) in question.workgroups.iter().enumerate() {
        let kernel = question.kernels.get(workgroup.kernel);
        let kernel = kernel.ok_or_else(|| unsupported(format!("no kernel {}", workgroup.kernel)))?;
        for (wave_index, lanes) in workgroup.waves.iter().enumerate() {
            if lanes.is_empty() || lanes.iter().any(|lane| u32::from(*lane) >= workgroup.wave_size.min(64)) {
                return Err(unsupported("a wave without lanes".to_owned()));
            }
            let launch = WaveLaunch {
                kernel,
                kernel_index: workgroup.kernel,
                workgroup: workgroup.id,
                wave: wave_index as u32,
                wave_size: workgroup.wave_size,
                lanes,
            };
            let code = wave::build_wave_code(&launch, generation, facts, profile)?;
            let first_slot = slots;
            slots += usize::from(code.slot_count);
            waves.push(IsaWave {
                code,
                workgroup: workgroup_index,
                index_in_workgroup: wave_index,
                kernel: workgroup.kernel,
                dispatch: workgroup.dispatch,
                cells: Vec::new(),
                first_slot,
            });
        }
    }
    if waves.len() > 64 {
        return Err(unsupported("more than 64 waves".to_owned()));
    }
    let mut memory = CellNumbering { cells: Vec::new(), numbers: FxHashMap::default(), question };
    for index in 0..waves.len() {
        let Some(wave) = waves.get(index) else { continue };
        let mut cells = Vec::with_capacity(wave.code.accesses.len());
        for access in &wave.code.accesses {
            let mut access_cells = Vec::with_capacity(access.parts.len());
            for part in &access.parts {
                access_cells.push(
                    memory
                        .cell_number(part.word, wave.workgroup)
                        .ok_or_else(|| unsupported("too much memory".to_owned()))?,
                );
            }
            cells.push(access_cells);
        }
        if let Some(wave) = waves.get_mut(index) {
            wave.cells = cells;
        }
    }
    let mut observed = Vec::with_capacity(question.observed.len());
    for observed_word in &question.observed {
        let cell = memory
            .cell_number(observed_word.word, 0)
            .ok_or_else(|| unsupported("too much memory".to_owned()))?;
        observed.push(ObservedCell {
            cell: usize::from(cell),
            word: observed_word.word,
            required: observed_word.required,
        });
    }
    let mut cells = memory.cells;
    mark_shared_cells(&waves, &mut cells, generation);
    let invalidated_caches = |barrier: &DispatchBarrier| {
        let mut caches = [false; 3];
        for cache in facts.barrier_rules(barrier).flat_map(|rule| &rule.drops) {
            caches[cache.index()] = true;
        }
        caches
    };
    let machine = Machine {
        waves,
        cells,
        invalidated_caches: question.barriers.iter().map(invalidated_caches).collect(),
        arrives_at_issue: facts.is_accepted("issue-is-arrival", generation, profile),
        slot_count: slots,
        placement: ResolvedPlacement::default(),
    };
    Ok((machine, observed))
}

/// Numbers memory cells of 8 bytes.
struct CellNumbering<'q> {
    cells: Vec<AlignedWord>,
    /// Cell numbers by workgroup (for LDS), space and aligned offset.
    numbers: FxHashMap<(usize, MemorySpace, u32), u16>,
    question: &'q MachineQuestion,
}

impl CellNumbering<'_> {
    fn cell_number(&mut self, word: MemoryWord, workgroup: usize) -> Option<u16> {
        let key = (if is_in_lds(word) { workgroup + 1 } else { 0 }, word.space, word.offset >> 3);
        if let Some(number) = self.numbers.get(&key) {
            return Some(*number);
        }
        let cell_index = u16::try_from(self.cells.len()).ok()?;
        // The local data share is uninitialized.
        let mut initial = if is_in_lds(word) { UNINITIALIZED_CELL } else { 0 };
        for initial_value in &self.question.initial_memory {
            if (initial_value.word.space, initial_value.word.offset >> 3) == (word.space, word.offset >> 3) {
                initial = crate::machine::insert_word(initial, initial_value.word, initial_value.value);
            }
        }
        self.cells.push(AlignedWord {
            initial,
            is_private: true,
            vector_waves: Vec::new(),
            cached_in: [false; 3],
        });
        self.numbers.insert(key, cell_index);
        Some(cell_index)
    }
}

/// Determines which cells are shared, and which caches can hit.
fn mark_shared_cells(waves: &[IsaWave], cells: &mut [AlignedWord], generation: Generation) {
    let mut users: Vec<Vec<(usize, MemoryUnit)>> = vec![Vec::new(); cells.len()];
    let mut written = vec![false; cells.len()];
    for (wave_index, wave) in waves.iter().enumerate() {
        for (access, access_cells) in wave.code.accesses.iter().zip(&wave.cells) {
            for cell in access_cells {
                let index = usize::from(*cell);
                let (Some(cell), Some(users), Some(written)) =
                    (cells.get_mut(index), users.get_mut(index), written.get_mut(index))
                else {
                    continue;
                };
                if !users.contains(&(wave_index, access.unit)) {
                    users.push((wave_index, access.unit));
                }
                *written |= !matches!(access.action, AccessAction::Load { .. });
                if access.unit == MemoryUnit::Vector && !cell.vector_waves.contains(&wave_index) {
                    cell.vector_waves.push(wave_index);
                }
                if matches!(access.action, AccessAction::Load { .. }) {
                    let own = match access.unit {
                        MemoryUnit::Vector => VECTOR,
                        MemoryUnit::Scalar => SCALAR,
                        MemoryUnit::Lds => continue,
                    };
                    cell.cached_in[own] |= !access.bypassed[own];
                    cell.cached_in[ARRAY] |= generation >= Generation::Gfx10 && !access.bypassed[ARRAY];
                }
            }
        }
    }
    for ((cell, users), written) in cells.iter_mut().zip(users).zip(written) {
        cell.is_private = !written || users.len() <= 1;
        if !written {
            // The cell is never written, so all cached copies are equal.
            cell.cached_in = [false; 3];
        }
    }
}

/// The reason for ending a search early.
enum SearchStop {
    Found(Vec<u64>),
    Deadlock,
    StateLimit,
}

struct StateSearch<'m> {
    machine: &'m Machine,
    question: &'m MachineQuestion,
    observed: &'m [ObservedCell],
    visited: HashSet<ExplorationState, BuildHasherDefault<FxHasher>>,
    /// The events on the path to the current state.
    events: Vec<EventRecord>,
    explored: &'m mut Exploration,
    limit: u64,
}

impl StateSearch<'_> {
    fn visit_state(&mut self, state: &mut ExplorationState) -> Result<(), SearchStop> {
        self.machine.take_commuting_steps(state, &mut self.events);
        if self.visited.contains(state) {
            return Ok(());
        }
        self.explored.states += 1;
        if self.explored.states > self.limit {
            return Err(SearchStop::StateLimit);
        }
        let steps: Vec<MachineStep> = self.machine.possible_steps(state);
        if steps.is_empty() {
            if !self.machine.is_final(state) {
                return Err(SearchStop::Deadlock);
            }
            return self.check_final_state(state);
        }
        let event_count = self.events.len();
        for step in steps {
            let mut next = state.clone();
            self.machine.take_step(&mut next, step, &mut self.events);
            self.visit_state(&mut next)?;
            self.events.truncate(event_count);
        }
        self.visited.insert(state.clone());
        Ok(())
    }

    fn check_final_state(&mut self, state: &ExplorationState) -> Result<(), SearchStop> {
        let mut outcome = Vec::with_capacity(self.observed.len());
        for observed_cell in self.observed {
            let value = Machine::word_value(state, observed_cell.cell, observed_cell.word);
            if observed_cell.required.is_some_and(|required| required != value) {
                return Ok(());
            }
            outcome.push(value);
        }
        if !self.question.allowed_outcomes.contains(&outcome) {
            self.explored.outcomes.insert(outcome.clone());
            return Err(SearchStop::Found(outcome));
        }
        self.explored.outcomes.insert(outcome);
        Ok(())
    }
}

fn trace_step(machine: &Machine, record: &EventRecord) -> TraceStep {
    let (workgroup, wave, kernel) = machine
        .waves
        .get(record.wave)
        .map_or((0, 0, 0), |wave| (wave.workgroup, wave.index_in_workgroup, wave.kernel));
    let place = record
        .word
        .map(|place| format!("{}+{:#x}", space_name(place.space), place.offset))
        .unwrap_or_default();
    let value = record.value;
    let description = match record.event {
        MachineEvent::HitVector => format!("reads {place} = {value} from the compute unit's cache"),
        MachineEvent::HitArray => format!("reads {place} = {value} from the shader array's cache"),
        MachineEvent::HitScalar => format!("reads {place} = {value} from the scalar cache"),
        MachineEvent::Read => format!("reads {place} = {value} at L2"),
        MachineEvent::Write => format!("writes {place} = {value} at L2"),
        MachineEvent::Modify => format!("modifies {place} to {value} at L2"),
        MachineEvent::LdsRead => format!("reads {place} = {value}"),
        MachineEvent::LdsWrite => format!("writes {place} = {value}"),
        MachineEvent::Invalidate => "drops cache lines".to_owned(),
        MachineEvent::Barrier => "passes the barrier".to_owned(),
        MachineEvent::DispatchStart => "begins: the previous dispatch has ended".to_owned(),
    };
    TraceStep { workgroup, wave, kernel, line: record.line, description }
}

fn space_name(space: MemorySpace) -> String {
    if space == crate::code::LDS_SPACE { "LDS".to_owned() } else { format!("memory {}", space.0) }
}

/// Returns the facts that are relevant to the waves' instructions.
fn relevant_facts(
    question: &MachineQuestion,
    profile: Profile,
    facts: &FactTable,
    machine: &Machine,
) -> Vec<String> {
    let codes = || machine.waves.iter().map(|wave| &wave.code);
    let accesses = || codes().flat_map(|code| &code.accesses);
    let any_node =
        |predicate: fn(&WaveStep) -> bool| codes().flat_map(|code: &WaveCode| &code.nodes).any(predicate);
    let any_access_by = |way: MemoryUnit| accesses().any(|access| access.unit == way);
    let can_hit = |cache: usize| machine.cells.iter().any(|cell| cell.cached_in[cache]);
    let stores =
        accesses().any(|access| access.action == AccessAction::Store && access.unit == MemoryUnit::Vector);
    let generation = question.family.generation();
    let any_part = |wanted: fn(&AccessPart) -> bool| accesses().flat_map(|access| &access.parts).any(wanted);
    let is_relevant = |id: &str| match id {
        "independent-channels" | "device-is-one-l2" | "vmcnt-in-order" | "memory-is-ordered" => {
            any_access_by(MemoryUnit::Vector)
        }
        "store-complete-at-l2" => stores,
        "vscnt" | "cu-scope-store-stays" => stores,
        "vector-cache-write-through" | "line-is-cell" => can_hit(0),
        "warm-caches" | "lines-come-back" => can_hit(0) || can_hit(1) || can_hit(2),
        "array-cache-read-only" | "array-cache-on-gfx12" => can_hit(1),
        "atomics-at-l2" | "atomic-drops-line" => accesses().any(|access| {
            matches!(access.action, AccessAction::Atomic(_)) && access.unit == MemoryUnit::Vector
        }),
        "issue-is-arrival" | "arrival-lags-issue" | "arrival-lags-issue-everywhere" => {
            any_access_by(MemoryUnit::Vector)
        }
        "scalar-cache-apart" | "scalar-out-of-order" => any_access_by(MemoryUnit::Scalar),
        "lds-in-order" | "lds-at-once" => any_access_by(MemoryUnit::Lds),
        "eight-bytes-at-once" => any_part(|part| part.word.bytes == 8),
        "words-apart" => accesses().any(|access| access.unit != MemoryUnit::Lds && is_wide(access)),
        "dispatch-ends-at-l2" | "barrier-alone" => !question.barriers.is_empty(),
        "barrier-empties-caches" => machine.invalidated_caches.iter().flatten().any(|emptied| *emptied),
        "split-counters" => any_access_by(MemoryUnit::Lds) || any_access_by(MemoryUnit::Scalar),
        "flat-both-counters" => {
            generation <= Generation::Gfx8 && any_part(|part| part.word.space.0 != u16::MAX)
        }
        "barrier-waits-for-waves" => any_node(|node| matches!(node, WaveStep::BarrierWait { .. })),
        "wgp-spreads-waves" => question.workgroups.iter().any(|workgroup| workgroup.waves.len() > 1),
        "invalidate-in-order" => any_node(|node| matches!(node, WaveStep::Cache { .. })),
        "program-order-issue" | "registers-wait-for-loads" => true,
        rule => codes().any(|code| code.applied_facts.iter().any(|known| known == rule)),
    };
    let accepted = facts
        .facts
        .iter()
        .filter(|fact| facts.is_accepted(&fact.id, generation, profile) && is_relevant(&fact.id));
    accepted.map(|fact| fact.id.clone()).collect()
}

/// Returns true if an access of some lane has several adjacent words, which may be performed separately.
fn is_wide(access: &Access) -> bool {
    access.parts.windows(2).any(|pair| {
        matches!(pair, [first, second] if first.word.bytes == 4
            && (second.word.space, second.word.offset) == (first.word.space, first.word.offset + 4))
    })
}

/// Returns all reachable outcomes over all placements; `None` if the question has no answer.
pub fn reachable_outcomes(
    question: &MachineQuestion,
    profile: Profile,
    facts: &FactTable,
) -> Option<BTreeSet<Vec<u64>>> {
    let mut remaining = question.clone();
    let mut outcomes = BTreeSet::new();
    loop {
        match explore(&remaining, profile, facts) {
            MachineVerdict::Unreachable(explored) => {
                outcomes.extend(explored.outcomes);
                return Some(outcomes);
            }
            MachineVerdict::Reachable(trace) => {
                outcomes.insert(trace.outcome.clone());
                remaining.allowed_outcomes.insert(trace.outcome);
            }
            MachineVerdict::Hazard(_) | MachineVerdict::Unsupported(_) => return None,
        }
    }
}
