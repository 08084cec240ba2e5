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
    AlignedWord, EventRecord, ExplorationState, IsaWave, Machine, MachineEvent, MachineStep, WaveSeats,
    in_lds,
};
use crate::opcode::Action;
use crate::placement::{RelevantCaches, all_placements};
use crate::question::{
    DispatchBarrier, Exploration, MachineQuestion, MachineVerdict, MemorySpace, MemoryWord, Trace, TraceStep,
    Unsupported,
};
use crate::wave::{self, BuildError, WaveLaunch};

/// The content of uninitialized memory, a value that no test uses.
const GARBAGE: u64 = 0xbad0_bad1_bad2_bad3;
/// The maximum number of states of one question.
pub const STATES: u64 = 2_000_000;

/// Decides whether an outcome outside of the allowed set is reachable.
///
/// Deterministic: equal questions, facts and profiles give equal verdicts.
pub fn explore(question: &MachineQuestion, profile: Profile, facts: &FactTable) -> MachineVerdict {
    explore_up_to(question, profile, facts, STATES)
}

/// As [`explore`], with an explicit limit on the number of states.
pub fn explore_up_to(
    question: &MachineQuestion,
    profile: Profile,
    facts: &FactTable,
    states: u64,
) -> MachineVerdict {
    let (machine, observed) = match prepare_machine(question, profile, facts) {
        Ok(prepared) => prepared,
        Err(BuildError::Hazard(hazard)) => return MachineVerdict::Hazard(hazard),
        Err(BuildError::Unsupported(unsupported)) => return MachineVerdict::Unsupported(unsupported),
    };
    let mut explored = Exploration {
        profile,
        assumptions: relevant_facts(question, profile, facts, &machine),
        ..Exploration::default()
    };
    let hit = |cache: usize| machine.cells.iter().any(|cell| cell.lines[cache]);
    let matter = RelevantCaches { units: hit(0) || hit(2), arrays: hit(1) };
    for placement in all_placements(question.family.generation(), &question.workgroups, matter) {
        explored.placements += 1;
        let seats = machine.seats_of(&placement);
        let mut search = StateSearch {
            machine: &machine,
            question,
            observed: &observed,
            seats,
            seen: HashSet::default(),
            records: Vec::new(),
            explored: &mut explored,
            limit: states,
        };
        let mut start = machine.initial_state(&search.seats);
        match search.visit_state(&mut start) {
            Ok(()) => {}
            Err(SearchEnd::Stuck) => {
                return unsupported_question("a wave waits at a barrier forever".to_owned());
            }
            Err(SearchEnd::Limit) => return unsupported_question(format!("more than {states} states")),
            Err(SearchEnd::Found(outcome)) => {
                let steps = search.records.iter().map(|record| trace_step(&machine, record)).collect();
                return MachineVerdict::Reachable(Box::new(Trace { outcome, placement, steps, explored }));
            }
        }
    }
    MachineVerdict::Unreachable(explored)
}

fn unsupported_question(what: String) -> MachineVerdict {
    MachineVerdict::Unsupported(Unsupported { kernel: 0, line: None, what })
}

/// An observed part of an outcome.
pub(crate) struct ObservedCell {
    pub cell: usize,
    pub place: MemoryWord,
    pub required: Option<u64>,
}

/// Builds the waves and numbers the memory cells that they access.
pub(crate) fn prepare_machine(
    question: &MachineQuestion,
    profile: Profile,
    facts: &FactTable,
) -> Result<(Machine, Vec<ObservedCell>), BuildError> {
    let generation = question.family.generation();
    let missing = |what: String| BuildError::Unsupported(Unsupported { kernel: 0, line: None, what });
    let mut waves: Vec<IsaWave> = Vec::new();
    let mut slots = 0;
    let of_each = (0..=question.barriers.len())
        .all(|dispatch| question.workgroups.iter().any(|workgroup| workgroup.dispatch == dispatch));
    if !of_each || question.workgroups.iter().any(|group| group.dispatch > question.barriers.len()) {
        return Err(missing("a dispatch without workgroups, or without a barrier before it".to_owned()));
    }
    for (number, workgroup) in question.workgroups.iter().enumerate() {
        let kernel = question.kernels.get(workgroup.kernel);
        let kernel = kernel.ok_or_else(|| missing(format!("no kernel {}", workgroup.kernel)))?;
        for (wave, lanes) in workgroup.waves.iter().enumerate() {
            if lanes.is_empty() || lanes.iter().any(|lane| u32::from(*lane) >= workgroup.wave_size.min(64)) {
                return Err(missing("a wave without lanes".to_owned()));
            }
            let launch = WaveLaunch {
                kernel,
                number: workgroup.kernel,
                workgroup: workgroup.id,
                wave: wave as u32,
                wave_size: workgroup.wave_size,
                lanes,
            };
            let code = wave::build_code(&launch, generation, facts, profile)?;
            let first_slot = slots;
            slots += usize::from(code.slots);
            waves.push(IsaWave {
                code,
                workgroup: number,
                number: wave,
                kernel: workgroup.kernel,
                dispatch: workgroup.dispatch,
                cells: Vec::new(),
                first_slot,
            });
        }
    }
    if waves.len() > 64 {
        return Err(missing("more than 64 waves".to_owned()));
    }
    let mut memory = CellNumbering { cells: Vec::new(), numbers: FxHashMap::default(), question };
    for index in 0..waves.len() {
        let Some(wave) = waves.get(index) else { continue };
        let mut cells = Vec::with_capacity(wave.code.accesses.len());
        for access in &wave.code.accesses {
            let mut of_access = Vec::with_capacity(access.parts.len());
            for part in &access.parts {
                of_access.push(
                    memory
                        .cell_number(part.place, wave.workgroup)
                        .ok_or_else(|| missing("too much memory".to_owned()))?,
                );
            }
            cells.push(of_access);
        }
        if let Some(wave) = waves.get_mut(index) {
            wave.cells = cells;
        }
    }
    let mut observed = Vec::with_capacity(question.observed.len());
    for seen in &question.observed {
        let cell = memory.cell_number(seen.place, 0).ok_or_else(|| missing("too much memory".to_owned()))?;
        observed.push(ObservedCell { cell: usize::from(cell), place: seen.place, required: seen.required });
    }
    let mut cells = memory.cells;
    mark_shared(&waves, &mut cells, generation);
    let emptied = |barrier: &DispatchBarrier| {
        let mut caches = [false; 3];
        for cache in facts.barrier_rules(barrier).flat_map(|rule| &rule.drops) {
            caches[cache.index()] = true;
        }
        caches
    };
    let machine = Machine {
        waves,
        cells,
        emptied: question.barriers.iter().map(emptied).collect(),
        arrives_at_issue: facts.is_accepted("issue-is-arrival", generation, profile),
        slots,
    };
    Ok((machine, observed))
}

/// Numbers memory cells of 8 bytes.
struct CellNumbering<'q> {
    cells: Vec<AlignedWord>,
    /// MemoryCell numbers by workgroup (for LDS), space and aligned offset.
    numbers: FxHashMap<(usize, MemorySpace, u32), u16>,
    question: &'q MachineQuestion,
}

impl CellNumbering<'_> {
    fn cell_number(&mut self, place: MemoryWord, workgroup: usize) -> Option<u16> {
        let key = (if in_lds(place) { workgroup + 1 } else { 0 }, place.space, place.offset >> 3);
        if let Some(number) = self.numbers.get(&key) {
            return Some(*number);
        }
        let number = u16::try_from(self.cells.len()).ok()?;
        // The local data share is uninitialized.
        let mut initial = if in_lds(place) { GARBAGE } else { 0 };
        for known in &self.question.initial {
            if (known.place.space, known.place.offset >> 3) == (place.space, place.offset >> 3) {
                initial = crate::machine::insert_word(initial, known.place, known.value);
            }
        }
        self.cells.push(AlignedWord { initial, private: true, vector_waves: Vec::new(), lines: [false; 3] });
        self.numbers.insert(key, number);
        Some(number)
    }
}

/// Determines which cells are shared, and which caches can hit.
fn mark_shared(waves: &[IsaWave], cells: &mut [AlignedWord], generation: Generation) {
    let mut users: Vec<Vec<(usize, MemoryUnit)>> = vec![Vec::new(); cells.len()];
    let mut written = vec![false; cells.len()];
    for (number, wave) in waves.iter().enumerate() {
        for (access, of_access) in wave.code.accesses.iter().zip(&wave.cells) {
            for cell in of_access {
                let index = usize::from(*cell);
                let (Some(cell), Some(users), Some(written)) =
                    (cells.get_mut(index), users.get_mut(index), written.get_mut(index))
                else {
                    continue;
                };
                if !users.contains(&(number, access.way)) {
                    users.push((number, access.way));
                }
                *written |= !matches!(access.action, Action::Load { .. });
                if access.way == MemoryUnit::Vector && !cell.vector_waves.contains(&number) {
                    cell.vector_waves.push(number);
                }
                if matches!(access.action, Action::Load { .. }) {
                    let array = generation >= Generation::Gfx10 && !access.skips.array;
                    match access.way {
                        MemoryUnit::Vector => {
                            cell.lines[0] |= !access.skips.vector;
                            cell.lines[1] |= array;
                        }
                        MemoryUnit::Scalar => {
                            cell.lines[2] |= !access.skips.scalar;
                            cell.lines[1] |= array;
                        }
                        MemoryUnit::Lds => {}
                    }
                }
            }
        }
    }
    for ((cell, users), written) in cells.iter_mut().zip(users).zip(written) {
        cell.private = !written || users.len() <= 1;
        if !written {
            // The cell is never written, so all cached copies are equal.
            cell.lines = [false; 3];
        }
    }
}

/// The reason for ending a search early.
enum SearchEnd {
    Found(Vec<u64>),
    Stuck,
    Limit,
}

struct StateSearch<'m> {
    machine: &'m Machine,
    question: &'m MachineQuestion,
    observed: &'m [ObservedCell],
    seats: WaveSeats,
    seen: HashSet<ExplorationState, BuildHasherDefault<FxHasher>>,
    /// The events on the path to the current state.
    records: Vec<EventRecord>,
    explored: &'m mut Exploration,
    limit: u64,
}

impl StateSearch<'_> {
    fn visit_state(&mut self, state: &mut ExplorationState) -> Result<(), SearchEnd> {
        self.machine.take_commuting_steps(state, &self.seats, &mut self.records);
        if self.seen.contains(state) {
            return Ok(());
        }
        self.explored.states += 1;
        if self.explored.states > self.limit {
            return Err(SearchEnd::Limit);
        }
        let choices: Vec<MachineStep> = self.machine.possible_steps(state, &self.seats);
        if choices.is_empty() {
            if !self.machine.is_final(state) {
                return Err(SearchEnd::Stuck);
            }
            return self.end_state(state);
        }
        let records = self.records.len();
        for choice in choices {
            let mut next = state.clone();
            self.machine.take_step(&mut next, &self.seats, choice, &mut self.records);
            self.visit_state(&mut next)?;
            self.records.truncate(records);
        }
        self.seen.insert(state.clone());
        Ok(())
    }

    fn end_state(&mut self, state: &ExplorationState) -> Result<(), SearchEnd> {
        let mut outcome = Vec::with_capacity(self.observed.len());
        for seen in self.observed {
            let value = Machine::word_value(state, seen.cell, seen.place);
            if seen.required.is_some_and(|required| required != value) {
                return Ok(());
            }
            outcome.push(value);
        }
        if !self.question.allowed.contains(&outcome) {
            self.explored.outcomes.insert(outcome.clone());
            return Err(SearchEnd::Found(outcome));
        }
        self.explored.outcomes.insert(outcome);
        Ok(())
    }
}

fn trace_step(machine: &Machine, record: &EventRecord) -> TraceStep {
    let (workgroup, wave, kernel) =
        machine.waves.get(record.wave).map_or((0, 0, 0), |wave| (wave.workgroup, wave.number, wave.kernel));
    let place =
        record.place.map(|place| format!("{}+{:#x}", name_of(place.space), place.offset)).unwrap_or_default();
    let value = record.value;
    let what = match record.event {
        MachineEvent::HitVector => format!("reads {place} = {value} from the compute unit's cache"),
        MachineEvent::HitArray => format!("reads {place} = {value} from the shader array's cache"),
        MachineEvent::HitScalar => format!("reads {place} = {value} from the scalar cache"),
        MachineEvent::Read => format!("reads {place} = {value} at L2"),
        MachineEvent::Written => format!("writes {place} = {value} at L2"),
        MachineEvent::Modified => format!("modifies {place} to {value} at L2"),
        MachineEvent::ReadLds => format!("reads {place} = {value}"),
        MachineEvent::WrittenLds => format!("writes {place} = {value}"),
        MachineEvent::Dropped => "drops cache lines".to_owned(),
        MachineEvent::Barrier => "passes the barrier".to_owned(),
        MachineEvent::Begun => "begins: the previous dispatch has ended".to_owned(),
    };
    TraceStep { workgroup, wave, kernel, line: record.line, what }
}

fn name_of(space: MemorySpace) -> String {
    if space == crate::code::LDS { "LDS".to_owned() } else { format!("memory {}", space.0) }
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
    let nodes = |wanted: fn(&WaveStep) -> bool| codes().flat_map(|code: &WaveCode| &code.nodes).any(wanted);
    let way = |way: MemoryUnit| accesses().any(|access| access.way == way);
    let hit = |cache: usize| machine.cells.iter().any(|cell| cell.lines[cache]);
    let stores = accesses().any(|access| access.action == Action::Store && access.way == MemoryUnit::Vector);
    let generation = question.family.generation();
    let parts = |wanted: fn(&AccessPart) -> bool| accesses().flat_map(|access| &access.parts).any(wanted);
    let matters = |id: &str| match id {
        "independent-channels" | "device-is-one-l2" | "vmcnt-in-order" | "memory-is-ordered" => {
            way(MemoryUnit::Vector)
        }
        "store-complete-at-l2" => stores,
        "vscnt" | "cu-scope-store-stays" => stores,
        "vector-cache-write-through" | "line-is-cell" => hit(0),
        "warm-caches" | "lines-come-back" => hit(0) || hit(1) || hit(2),
        "array-cache-read-only" | "array-cache-on-gfx12" => hit(1),
        "atomics-at-l2" | "atomic-drops-line" => accesses()
            .any(|access| matches!(access.action, Action::Atomic(_)) && access.way == MemoryUnit::Vector),
        "issue-is-arrival" | "arrival-lags-issue" | "arrival-lags-issue-everywhere" => {
            way(MemoryUnit::Vector)
        }
        "scalar-cache-apart" | "scalar-out-of-order" => way(MemoryUnit::Scalar),
        "lds-in-order" | "lds-at-once" => way(MemoryUnit::Lds),
        "eight-bytes-at-once" => parts(|part| part.place.bytes == 8),
        "words-apart" => accesses().any(|access| access.way != MemoryUnit::Lds && is_wide(access)),
        "dispatch-ends-at-l2" | "barrier-alone" => !question.barriers.is_empty(),
        "barrier-empties-caches" => machine.emptied.iter().flatten().any(|emptied| *emptied),
        "split-counters" => way(MemoryUnit::Lds) || way(MemoryUnit::Scalar),
        "flat-both-counters" => {
            generation <= Generation::Gfx8 && parts(|part| part.place.space.0 != u16::MAX)
        }
        "barrier-waits-for-waves" => nodes(|node| matches!(node, WaveStep::Join { .. })),
        "wgp-spreads-waves" => question.workgroups.iter().any(|workgroup| workgroup.waves.len() > 1),
        "invalidate-in-order" => nodes(|node| matches!(node, WaveStep::Cache { .. })),
        "program-order-issue" | "registers-wait-for-loads" => true,
        rule => codes().any(|code| code.facts.iter().any(|known| known == rule)),
    };
    let believed = facts
        .facts
        .iter()
        .filter(|fact| facts.is_accepted(&fact.id, generation, profile) && matters(&fact.id));
    believed.map(|fact| fact.id.clone()).collect()
}

/// Returns true if an access of some lane has several adjacent words, which may be performed separately.
fn is_wide(access: &Access) -> bool {
    access.parts.windows(2).any(|pair| {
        matches!(pair, [first, second] if first.place.bytes == 4
            && (second.place.space, second.place.offset) == (first.place.space, first.place.offset + 4))
    })
}

/// Returns all reachable outcomes over all placements; `None` if the question has no answer.
pub fn reachable_outcomes(
    question: &MachineQuestion,
    profile: Profile,
    facts: &FactTable,
) -> Option<BTreeSet<Vec<u64>>> {
    let mut open = question.clone();
    let mut seen = BTreeSet::new();
    loop {
        match explore(&open, profile, facts) {
            MachineVerdict::Unreachable(explored) => {
                seen.extend(explored.outcomes);
                return Some(seen);
            }
            MachineVerdict::Reachable(witness) => {
                seen.insert(witness.outcome.clone());
                open.allowed.insert(witness.outcome);
            }
            MachineVerdict::Hazard(_) | MachineVerdict::Unsupported(_) => return None,
        }
    }
}
