//! Exhaustive state-space exploration: every interleaving of a question's waves under every placement.
//!
//! Depth-first search with a set of visited states. Steps that commute with all others are taken first
//! (partial-order reduction, see `Machine::settle`).

use std::collections::{BTreeSet, HashSet};
use std::hash::BuildHasherDefault;

use rustc_hash::{FxHashMap, FxHasher};

use crate::code::{Access, Code, Node, Part, Way};
use crate::facts::{Facts, Profile};
use crate::family::Generation;
use crate::machine::{Cell, Choice, Event, Machine, Record, Seats, State, Wave, in_lds};
use crate::opcode::Action;
use crate::placement::{Matter, placements};
use crate::question::{
    DispatchBarrier, Explored, MachineQuestion, MachineVerdict, Space, Trace, TraceStep, Unsupported, Word,
};
use crate::wave::{self, Launch, Stop};

/// The content of uninitialized memory, a value that no test uses.
const GARBAGE: u64 = 0xbad0_bad1_bad2_bad3;
/// The maximum number of states of one question.
pub const STATES: u64 = 2_000_000;

/// Decides whether an outcome outside of the allowed set is reachable.
///
/// Deterministic: equal questions, facts and profiles give equal verdicts.
pub fn explore(question: &MachineQuestion, profile: Profile, facts: &Facts) -> MachineVerdict {
    explore_up_to(question, profile, facts, STATES)
}

/// As [`explore`], with an explicit limit on the number of states.
pub fn explore_up_to(
    question: &MachineQuestion,
    profile: Profile,
    facts: &Facts,
    states: u64,
) -> MachineVerdict {
    let (machine, observed) = match prepare(question, profile, facts) {
        Ok(prepared) => prepared,
        Err(Stop::Hazard(hazard)) => return MachineVerdict::Hazard(hazard),
        Err(Stop::Unsupported(unsupported)) => return MachineVerdict::Unsupported(unsupported),
    };
    let mut explored = Explored {
        profile,
        assumptions: assumptions(question, profile, facts, &machine),
        ..Explored::default()
    };
    let hit = |cache: usize| machine.cells.iter().any(|cell| cell.lines[cache]);
    let matter = Matter { units: hit(0) || hit(2), arrays: hit(1) };
    for placement in placements(question.family.generation(), &question.workgroups, matter) {
        explored.placements += 1;
        let seats = machine.seats(&placement);
        let mut search = Search {
            machine: &machine,
            question,
            observed: &observed,
            seats,
            seen: HashSet::default(),
            records: Vec::new(),
            explored: &mut explored,
            limit: states,
        };
        let mut start = machine.start(&search.seats);
        match search.visit(&mut start) {
            Ok(()) => {}
            Err(End::Stuck) => return unsupported("a wave waits for ever at a barrier".to_owned()),
            Err(End::Limit) => return unsupported(format!("more than {states} states")),
            Err(End::Found(outcome)) => {
                let steps = search.records.iter().map(|record| step(&machine, record)).collect();
                return MachineVerdict::Reachable(Box::new(Trace { outcome, placement, steps, explored }));
            }
        }
    }
    MachineVerdict::Unreachable(explored)
}

fn unsupported(what: String) -> MachineVerdict {
    MachineVerdict::Unsupported(Unsupported { kernel: 0, line: None, what })
}

/// An observed part of an outcome.
pub(crate) struct Seen {
    pub cell: usize,
    pub place: Word,
    pub required: Option<u64>,
}

/// Builds the waves and numbers the memory cells that they access.
pub(crate) fn prepare(
    question: &MachineQuestion,
    profile: Profile,
    facts: &Facts,
) -> Result<(Machine, Vec<Seen>), Stop> {
    let generation = question.family.generation();
    let missing = |what: String| Stop::Unsupported(Unsupported { kernel: 0, line: None, what });
    let mut waves: Vec<Wave> = Vec::new();
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
            let launch = Launch {
                kernel,
                number: workgroup.kernel,
                workgroup: workgroup.id,
                wave: wave as u32,
                wave_size: workgroup.wave_size,
                lanes,
            };
            let code = wave::build(&launch, generation, facts, profile)?;
            let first_slot = slots;
            slots += usize::from(code.slots);
            waves.push(Wave {
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
    let mut memory = Memory { cells: Vec::new(), numbers: FxHashMap::default(), question };
    for index in 0..waves.len() {
        let Some(wave) = waves.get(index) else { continue };
        let mut cells = Vec::with_capacity(wave.code.accesses.len());
        for access in &wave.code.accesses {
            let mut of_access = Vec::with_capacity(access.parts.len());
            for part in &access.parts {
                of_access.push(
                    memory
                        .cell(part.place, wave.workgroup)
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
        let cell = memory.cell(seen.place, 0).ok_or_else(|| missing("too much memory".to_owned()))?;
        observed.push(Seen { cell: usize::from(cell), place: seen.place, required: seen.required });
    }
    let mut cells = memory.cells;
    share(&waves, &mut cells, generation);
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
        arrives_at_issue: facts.holds("issue-is-arrival", generation, profile),
        slots,
    };
    Ok((machine, observed))
}

/// Numbers memory cells of 8 bytes.
struct Memory<'q> {
    cells: Vec<Cell>,
    /// Cell numbers by workgroup (for LDS), space and aligned offset.
    numbers: FxHashMap<(usize, Space, u32), u16>,
    question: &'q MachineQuestion,
}

impl Memory<'_> {
    fn cell(&mut self, place: Word, workgroup: usize) -> Option<u16> {
        let key = (if in_lds(place) { workgroup + 1 } else { 0 }, place.space, place.offset >> 3);
        if let Some(number) = self.numbers.get(&key) {
            return Some(*number);
        }
        let number = u16::try_from(self.cells.len()).ok()?;
        // The local data share is uninitialized.
        let mut initial = if in_lds(place) { GARBAGE } else { 0 };
        for known in &self.question.initial {
            if (known.place.space, known.place.offset >> 3) == (place.space, place.offset >> 3) {
                initial = crate::machine::insert(initial, known.place, known.value);
            }
        }
        self.cells.push(Cell { initial, private: true, vector_waves: Vec::new(), lines: [false; 3] });
        self.numbers.insert(key, number);
        Some(number)
    }
}

/// Determines which cells are shared, and which caches can hit.
fn share(waves: &[Wave], cells: &mut [Cell], generation: Generation) {
    let mut users: Vec<Vec<(usize, Way)>> = vec![Vec::new(); cells.len()];
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
                if access.way == Way::Vector && !cell.vector_waves.contains(&number) {
                    cell.vector_waves.push(number);
                }
                if matches!(access.action, Action::Load { .. }) {
                    let array = generation >= Generation::Gfx10 && !access.skips.array;
                    match access.way {
                        Way::Vector => {
                            cell.lines[0] |= !access.skips.vector;
                            cell.lines[1] |= array;
                        }
                        Way::Scalar => {
                            cell.lines[2] |= !access.skips.scalar;
                            cell.lines[1] |= array;
                        }
                        Way::Lds => {}
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
enum End {
    Found(Vec<u64>),
    Stuck,
    Limit,
}

struct Search<'m> {
    machine: &'m Machine,
    question: &'m MachineQuestion,
    observed: &'m [Seen],
    seats: Seats,
    seen: HashSet<State, BuildHasherDefault<FxHasher>>,
    /// The events on the path to the current state.
    records: Vec<Record>,
    explored: &'m mut Explored,
    limit: u64,
}

impl Search<'_> {
    fn visit(&mut self, state: &mut State) -> Result<(), End> {
        self.machine.settle(state, &self.seats, &mut self.records);
        if self.seen.contains(state) {
            return Ok(());
        }
        self.explored.states += 1;
        if self.explored.states > self.limit {
            return Err(End::Limit);
        }
        let choices: Vec<Choice> = self.machine.choices(state, &self.seats);
        if choices.is_empty() {
            if !self.machine.is_final(state) {
                return Err(End::Stuck);
            }
            return self.end(state);
        }
        let records = self.records.len();
        for choice in choices {
            let mut next = state.clone();
            self.machine.take(&mut next, &self.seats, choice, &mut self.records);
            self.visit(&mut next)?;
            self.records.truncate(records);
        }
        self.seen.insert(state.clone());
        Ok(())
    }

    fn end(&mut self, state: &State) -> Result<(), End> {
        let mut outcome = Vec::with_capacity(self.observed.len());
        for seen in self.observed {
            let value = Machine::value(state, seen.cell, seen.place);
            if seen.required.is_some_and(|required| required != value) {
                return Ok(());
            }
            outcome.push(value);
        }
        if !self.question.allowed.contains(&outcome) {
            self.explored.outcomes.insert(outcome.clone());
            return Err(End::Found(outcome));
        }
        self.explored.outcomes.insert(outcome);
        Ok(())
    }
}

fn step(machine: &Machine, record: &Record) -> TraceStep {
    let (workgroup, wave, kernel) =
        machine.waves.get(record.wave).map_or((0, 0, 0), |wave| (wave.workgroup, wave.number, wave.kernel));
    let place =
        record.place.map(|place| format!("{}+{:#x}", name_of(place.space), place.offset)).unwrap_or_default();
    let value = record.value;
    let what = match record.event {
        Event::HitVector => format!("reads {place} = {value} from the compute unit's cache"),
        Event::HitArray => format!("reads {place} = {value} from the shader array's cache"),
        Event::HitScalar => format!("reads {place} = {value} from the scalar cache"),
        Event::Read => format!("reads {place} = {value} at L2"),
        Event::Written => format!("writes {place} = {value} at L2"),
        Event::Modified => format!("modifies {place} to {value} at L2"),
        Event::ReadLds => format!("reads {place} = {value}"),
        Event::WrittenLds => format!("writes {place} = {value}"),
        Event::Dropped => "drops cache lines".to_owned(),
        Event::Barrier => "passes the barrier".to_owned(),
        Event::Begun => "begins: the dispatch before has ended".to_owned(),
    };
    TraceStep { workgroup, wave, kernel, line: record.line, what }
}

fn name_of(space: Space) -> String {
    if space == crate::code::LDS { "LDS".to_owned() } else { format!("memory {}", space.0) }
}

/// Returns the facts that are relevant to the waves' instructions.
fn assumptions(
    question: &MachineQuestion,
    profile: Profile,
    facts: &Facts,
    machine: &Machine,
) -> Vec<String> {
    let codes = || machine.waves.iter().map(|wave| &wave.code);
    let accesses = || codes().flat_map(|code| &code.accesses);
    let nodes = |wanted: fn(&Node) -> bool| codes().flat_map(|code: &Code| &code.nodes).any(wanted);
    let way = |way: Way| accesses().any(|access| access.way == way);
    let hit = |cache: usize| machine.cells.iter().any(|cell| cell.lines[cache]);
    let stores = accesses().any(|access| access.action == Action::Store && access.way == Way::Vector);
    let generation = question.family.generation();
    let parts = |wanted: fn(&Part) -> bool| accesses().flat_map(|access| &access.parts).any(wanted);
    let matters = |id: &str| match id {
        "independent-channels" | "device-is-one-l2" | "vmcnt-in-order" | "memory-is-ordered" => {
            way(Way::Vector)
        }
        "store-complete-at-l2" => stores,
        "vscnt" | "cu-scope-store-stays" => stores,
        "vector-cache-write-through" | "line-is-cell" => hit(0),
        "warm-caches" | "lines-come-back" => hit(0) || hit(1) || hit(2),
        "array-cache-read-only" | "array-cache-on-gfx12" => hit(1),
        "atomics-at-l2" | "atomic-drops-line" => {
            accesses().any(|access| matches!(access.action, Action::Atomic(_)) && access.way == Way::Vector)
        }
        "issue-is-arrival" | "arrival-lags-issue" | "arrival-lags-issue-everywhere" => way(Way::Vector),
        "scalar-cache-apart" | "scalar-out-of-order" => way(Way::Scalar),
        "lds-in-order" | "lds-at-once" => way(Way::Lds),
        "eight-bytes-at-once" => parts(|part| part.place.bytes == 8),
        "words-apart" => accesses().any(|access| access.way != Way::Lds && is_wide(access)),
        "dispatch-ends-at-l2" | "barrier-alone" => !question.barriers.is_empty(),
        "barrier-empties-caches" => machine.emptied.iter().flatten().any(|emptied| *emptied),
        "split-counters" => way(Way::Lds) || way(Way::Scalar),
        "flat-both-counters" => {
            generation <= Generation::Gfx8 && parts(|part| part.place.space.0 != u16::MAX)
        }
        "barrier-waits-for-waves" => nodes(|node| matches!(node, Node::Join { .. })),
        "wgp-spreads-waves" => question.workgroups.iter().any(|workgroup| workgroup.waves.len() > 1),
        "invalidate-in-order" => nodes(|node| matches!(node, Node::Cache { .. })),
        "program-order-issue" | "registers-wait-for-loads" => true,
        rule => codes().any(|code| code.facts.iter().any(|known| known == rule)),
    };
    let believed =
        facts.facts.iter().filter(|fact| facts.holds(&fact.id, generation, profile) && matters(&fact.id));
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
pub fn outcomes(question: &MachineQuestion, profile: Profile, facts: &Facts) -> Option<BTreeSet<Vec<u64>>> {
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
