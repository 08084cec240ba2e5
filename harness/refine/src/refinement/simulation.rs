//! A simulation of one invocation of AFTER by the same invocation of BEFORE.
//!
//! Both threads are executed in lockstep: each event of AFTER has to be an event of BEFORE. A value that is
//! read is a symbol. A branch on it is decided both ways, for each value of its domain if that is finite. BEFORE may
//! be ahead by plain accesses (`pending`). The rules are those of Ševčík, *Safe optimisations for shared-memory concurrent
//! programs* (PLDI 2011), and of Morisset, Pawan and Zappa Nardelli, *Compiler testing via a theory of sound
//! optimisations in the C11/C++11 memory model* (PLDI 2013):
//!
//! - a plain load may be removed if its value does not matter, or if an earlier plain access of the cell by
//!   the same invocation determines it, and no release with a later acquire is between the two. Any write
//!   of another invocation between them needs both to be ordered; otherwise it races;
//! - a plain store may be removed if the next event of the cell is a plain store without a synchronizing
//!   event between;
//! - a private access is not ordered with other invocations by any of these events: if one of them wrote between
//!   two private accesses, it would race. So events of synchronization neither limit its order nor its removal;
//! - plain accesses of different cells, and two plain loads, may be exchanged. A plain access may move
//!   after a later acquire or before an earlier release, but not in the other direction;
//! - a plain load may be added if it repeats a plain access of the cell without a synchronizing event
//!   between the two;
//! - an event may be replaced by a stronger one, and a memory barrier may be added;
//! - an atomic store may become an exchange whose result is not used: it only has more synchronization, since a
//!   read-modify-write continues a release sequence;
//! - relaxed atomic accesses of different cells may be exchanged. A relaxed load may be removed if the preceding
//!   synchronizing event is an atomic load or store of the cell, which determines its value. Only once for each
//!   position: a loop that waits for a store of another invocation keeps its load;
//! - a volatile access is neither removed nor added, and keeps its order among volatile accesses.
//!
//! A simulation proves refinement in every context. If there is none, nothing is proved.
//!
//! Loops that depend on read values repeat states. A repeated state holds by coinduction if every cycle of states
//! has an event of AFTER that BEFORE matches, so that BEFORE is endless too if AFTER is. A cycle without one, or
//! that postpones an atomic access forever, is a new endless loop. Where the lifter unrolls a loop instead,
//! an event that AFTER adds twice at one position is taken for such a cycle.

mod cycles;
mod rules;

use std::collections::{BTreeMap, HashMap, HashSet};

use litmus::Access;

use super::condition::{Condition, ConditionFacts, substitute_facts};
use super::event::{CellKey, Event, Operation, OrderShape, describe, have_same_shape, strength_relation};
use super::expression::{Expression, Symbol};
use super::program::{Program, ProgramStep, ThreadPosition};
use cycles::CycleCheck;
use entry_point::Spot;
use rules::{
    blocking_event, eliminates_load, lost_event, may_precede, note_repeatable, perform_before, repeated_load,
};
use spirv_reader::SourcePosition;

/// Upper bound on the events of all paths.
const MAX_STEPS: usize = 400_000;
/// Upper bound on the events that BEFORE is ahead.
const MAX_PENDING: usize = 256;
/// Upper bound on the events of BEFORE between two of AFTER.
const MAX_AHEAD: usize = 4_096;
/// Upper bound on nested decisions.
const MAX_DEPTH: usize = 500;

/// The place where a simulation stops.
#[derive(Clone, Debug)]
pub(super) struct Mismatch {
    pub what: String,
    pub before: Option<Spot>,
    pub after: Option<Spot>,
    pub cells: Vec<CellKey>,
    /// Number of matched events.
    matched: usize,
}

/// The reason why no proof was found.
pub(super) enum NoProof {
    /// No rule explains an event.
    Mismatch,
    /// A loop of BEFORE reaches its bound before that of AFTER.
    LongerLoop,
    /// A bound was reached.
    Limit(String),
}

/// An event that BEFORE performed and AFTER did not.
#[derive(Clone, Debug)]
struct PendingEvent {
    event: Event,
    result: Option<Expression>,
}

/// The next step of AFTER.
#[derive(Clone, Debug)]
enum NextStep {
    Event(Event),
    End,
    Hang,
    Undefined(String),
}

/// The value that the last access of a cell saw, and the synchronization that followed.
type LastAccess = (Expression, SubsequentSync);

/// The synchronization after an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct SubsequentSync {
    /// True for a private access, which no synchronization orders.
    is_private: bool,
    is_released: bool,
    /// True if an acquire followed the release.
    is_acquired: bool,
}

/// The position in AFTER of each control barrier of BEFORE, by its number in the trace and its position.
///
/// All invocations of a workgroup have to meet at one barrier of AFTER too.
pub(super) type BarrierPlaces = BTreeMap<(u32, BarrierPlace), BarrierPlace>;

/// A source line and a position in the module.
type BarrierPlace = (u32, SourcePosition);

#[derive(Clone, Debug)]
struct SimulationState {
    before: ThreadPosition,
    after: ThreadPosition,
    pending: Vec<PendingEvent>,
    next: Option<NextStep>,
    last_accesses: BTreeMap<CellKey, LastAccess>,
    /// The value of the last synchronizing event of BEFORE if that is an atomic load or store, and the positions of
    /// that event and of the loads that were removed after it.
    last_atomic: Option<(CellKey, Expression, Vec<SourcePosition>)>,
    /// The plain accesses of AFTER since its last synchronizing event, and the private ones.
    repeatable: BTreeMap<CellKey, (Expression, Access)>,
    domains: BTreeMap<Symbol, Option<Vec<u64>>>,
    /// The conditions that the branches of the path decided.
    facts: ConditionFacts,
    /// True if the facts exclude each other.
    is_infeasible: bool,
    next_symbol: Symbol,
    matched: usize,
    /// The positions of the events that AFTER added since the last match.
    added: Vec<SourcePosition>,
    /// True if two of them are equal.
    repeats_added: bool,
    /// Number of matched control barriers.
    barriers: u32,
    last_spot: Option<Spot>,
}

/// The kind of the next step of AFTER, and operation and cell of an event.
type NextStepKey = (u8, Option<(Operation, Option<CellKey>)>);

/// A state without symbol names and positions in the source.
#[derive(Clone, PartialEq, Eq, Hash)]
struct StateKey {
    before: ThreadPosition,
    after: ThreadPosition,
    pending: Vec<(Operation, Option<CellKey>, Access, Option<Expression>)>,
    next: Option<NextStepKey>,
    last_accesses: BTreeMap<CellKey, LastAccess>,
    last_atomic: Option<(CellKey, Expression, Vec<SourcePosition>)>,
    repeatable: BTreeMap<CellKey, (Expression, Access)>,
    added: Vec<SourcePosition>,
    domains: Vec<Option<Vec<u64>>>,
    facts: ConditionFacts,
}

impl SimulationState {
    /// Replaces symbols everywhere.
    fn substitute(&mut self, replace: &impl Fn(Symbol) -> Expression) {
        let change = |value: &mut Expression| *value = value.substitute(replace);
        self.before.registers.values_mut().for_each(change);
        self.after.registers.values_mut().for_each(change);
        for pending in &mut self.pending {
            pending.event.expressions_mut().for_each(change);
            pending.result.iter_mut().for_each(change);
        }
        if let Some(NextStep::Event(event)) = &mut self.next {
            event.expressions_mut().for_each(change);
        }
        substitute_cells(&mut self.last_accesses, replace);
        substitute_cells(&mut self.repeatable, replace);
        if let Some((cell, value, _)) = &mut self.last_atomic {
            change(&mut cell.offset);
            change(value);
        }
        match substitute_facts(&self.facts, replace) {
            Some(facts) => self.facts = facts,
            None => self.is_infeasible = true,
        }
    }

    fn note_match(&mut self) {
        self.matched += 1;
        self.added.clear();
        self.repeats_added = false;
    }

    /// Notes an event of AFTER that BEFORE does not have.
    fn note_added(&mut self, place: SourcePosition) {
        match self.added.contains(&place) {
            true => self.repeats_added = true,
            false => self.added.push(place),
        }
    }

    fn to_key(&self, before: &Program<'_>, after: &Program<'_>) -> StateKey {
        let mut state = self.clone();
        before.drop_dead_registers(&mut state.before);
        after.drop_dead_registers(&mut state.after);
        let mut symbols = Vec::new();
        let values = state.before.registers.values().chain(state.after.registers.values());
        values.for_each(|value| value.collect_symbols(&mut symbols));
        for pending in &state.pending {
            pending.event.expressions().for_each(|value| value.collect_symbols(&mut symbols));
            pending.result.iter().for_each(|value| value.collect_symbols(&mut symbols));
        }
        if let Some(NextStep::Event(event)) = &state.next {
            event.expressions().for_each(|value| value.collect_symbols(&mut symbols));
        }
        let known = state.last_accesses.iter().map(|(cell, (value, _))| (cell, value));
        for (cell, value) in known.chain(state.repeatable.iter().map(|(cell, (value, _))| (cell, value))) {
            cell.offset.collect_symbols(&mut symbols);
            value.collect_symbols(&mut symbols);
        }
        if let Some((cell, value, _)) = &state.last_atomic {
            cell.offset.collect_symbols(&mut symbols);
            value.collect_symbols(&mut symbols);
        }
        // Renamed in the order of their first use, so that states that differ only in names have
        // one key.
        // A fact about a value without further reads decides no branch.
        state.facts.retain(|condition, _| condition.symbols().iter().all(|one| symbols.contains(one)));
        let numbers: HashMap<Symbol, Symbol> =
            symbols.iter().enumerate().map(|(number, symbol)| (*symbol, number as Symbol)).collect();
        state.substitute(&|symbol| Expression::Symbol(numbers.get(&symbol).copied().unwrap_or(symbol)));
        let pending = state.pending.into_iter();
        StateKey {
            before: state.before,
            after: state.after,
            pending: pending
                .map(|one| (one.event.operation, one.event.cell, one.event.strength, one.result))
                .collect(),
            next: state.next.map(|wanted| match wanted {
                NextStep::Event(event) => (0, Some((event.operation, event.cell))),
                NextStep::End => (1, None),
                NextStep::Hang => (2, None),
                NextStep::Undefined(_) => (3, None),
            }),
            last_accesses: state.last_accesses,
            last_atomic: state.last_atomic,
            repeatable: state.repeatable,
            added: state.added,
            domains: symbols.iter().map(|symbol| self.domains.get(symbol).cloned().flatten()).collect(),
            facts: state.facts,
        }
    }
}

/// The result of looking for an event among the pending ones.
enum PendingMatch {
    Matched,
    /// AFTER cannot read this value, so that the path does not exist.
    Vacuous,
    Nothing,
}

/// The simulation of one invocation.
pub(super) struct Simulation<'a> {
    before: &'a Program<'a>,
    after: &'a Program<'a>,
    barriers: &'a mut BarrierPlaces,
    proven: HashSet<StateKey>,
    in_progress: HashSet<StateKey>,
    assumed: HashSet<StateKey>,
    cycles: CycleCheck<StateKey>,
    steps: usize,
    stop: &'a dyn Fn() -> bool,
    /// True if an event of AFTER is stronger.
    pub is_stronger: bool,
    /// True if a loop was longer than the bound.
    pub is_cut: bool,
    /// The mismatch that most events precede.
    pub mismatch: Option<Mismatch>,
}

impl<'a> Simulation<'a> {
    pub fn new(
        before: &'a Program<'a>,
        after: &'a Program<'a>,
        barriers: &'a mut BarrierPlaces,
        stop: &'a dyn Fn() -> bool,
    ) -> Simulation<'a> {
        Simulation {
            before,
            after,
            barriers,
            proven: HashSet::new(),
            in_progress: HashSet::new(),
            assumed: HashSet::new(),
            cycles: CycleCheck::default(),
            steps: 0,
            stop,
            is_stronger: false,
            is_cut: false,
            mismatch: None,
        }
    }

    /// Proves the whole thread.
    pub fn prove_thread(&mut self) -> Result<(), NoProof> {
        let start = || ThreadPosition { position: 0, registers: BTreeMap::new() };
        let state = SimulationState {
            before: start(),
            after: start(),
            pending: Vec::new(),
            next: None,
            last_accesses: BTreeMap::new(),
            last_atomic: None,
            repeatable: BTreeMap::new(),
            domains: BTreeMap::new(),
            facts: ConditionFacts::new(),
            is_infeasible: false,
            next_symbol: 0,
            matched: 0,
            added: Vec::new(),
            repeats_added: false,
            barriers: 0,
            last_spot: None,
        };
        self.prove(state, 0)?;
        if self.after.has_loop && self.cycles.has_silent_cycle() {
            let what = "AFTER has an endless loop, which BEFORE does not have".to_owned();
            let (before, after, cells) = (None, None, Vec::new());
            self.mismatch = Some(Mismatch { what, before, after, cells, matched: 0 });
            return Err(NoProof::Mismatch);
        }
        Ok(())
    }

    fn prove(&mut self, state: SimulationState, depth: usize) -> Result<(), NoProof> {
        if state.is_infeasible {
            return Ok(());
        }
        if depth > MAX_DEPTH {
            return Err(NoProof::Limit(format!("more than {MAX_DEPTH} nested branches on read values")));
        }
        let key = state.to_key(self.before, self.after);
        let postpones = state.pending.iter().any(|pending| !pending.event.is_plain());
        if !self.after.has_loop {
            return self.prove_state(state, key, depth);
        }
        self.cycles.enter(&key, state.matched, postpones);
        let proof = self.prove_state(state, key, depth);
        self.cycles.leave();
        proof
    }

    fn prove_state(&mut self, state: SimulationState, key: StateKey, depth: usize) -> Result<(), NoProof> {
        if self.proven.contains(&key) {
            return Ok(());
        }
        // The state is on the current path, so that it repeats: it holds by coinduction.
        if !self.in_progress.insert(key.clone()) {
            self.assumed.insert(key);
            return Ok(());
        }
        let proof = self.follow_path(state, depth);
        self.in_progress.remove(&key);
        if proof.is_ok() {
            // This proof may rest on states that are still in progress. If one of them fails, it is
            // forgotten.
            self.proven.insert(key);
        } else if self.assumed.remove(&key) {
            // Proofs that rest on this state are void.
            self.proven.clear();
        }
        proof
    }

    /// Follows a path up to a decision.
    fn follow_path(&mut self, mut state: SimulationState, depth: usize) -> Result<(), NoProof> {
        let mut events_ahead = 0;
        loop {
            self.steps += 1;
            if self.steps > MAX_STEPS || self.steps.is_multiple_of(64) && (self.stop)() {
                return Err(NoProof::Limit("the traces are too many for the limits".to_owned()));
            }
            if state.next.is_none() {
                let from = state.after.position;
                state.next = Some(match self.after.advance(&mut state.after, &state.facts) {
                    ProgramStep::Event(event) => NextStep::Event(event),
                    ProgramStep::End => NextStep::End,
                    ProgramStep::Hang => NextStep::Hang,
                    ProgramStep::Undefined(what) => NextStep::Undefined(what),
                    ProgramStep::Split(condition) => return self.decide_condition(&state, condition, depth),
                    // A body of the loop has no event of BEFORE, or postpones one.
                    ProgramStep::Cut
                        if state.repeats_added || state.pending.iter().any(|one| !one.event.is_plain()) =>
                    {
                        NextStep::Hang
                    }
                    ProgramStep::Cut => {
                        self.is_cut = true;
                        return Ok(());
                    }
                    ProgramStep::Unsupported(what) => return Err(NoProof::Limit(what)),
                });
                events_ahead = 0;
                // Every cycle has a backward jump, so comparing states only there finds each repetition.
                if self.after.has_loop && state.after.position <= from {
                    return self.prove(state, depth + 1);
                }
            }
            match self.find_pending(&mut state)? {
                PendingMatch::Matched => {
                    state.next = None;
                    state.note_match();
                    continue;
                }
                PendingMatch::Vacuous => return Ok(()),
                PendingMatch::Nothing => {}
            }
            if let Some(load) = repeated_load(&mut state) {
                self.match_eliminated_load(&mut state, &load);
                state.next = None;
                continue;
            }
            // Nothing that follows an unmatched synchronizing event can match.
            if let Some(blocked) = blocking_event(&state) {
                return self.record_mismatch(state, Some(blocked), depth);
            }
            events_ahead += 1;
            if events_ahead > MAX_AHEAD || state.pending.len() > MAX_PENDING {
                return self.record_mismatch(state, None, depth);
            }
            match self.before.advance(&mut state.before, &state.facts) {
                ProgramStep::Event(event) => {
                    let is_requested = matches!(&state.next, Some(NextStep::Event(wanted))
                        if wanted.is_load() && wanted.cell == event.cell && strength_relation(wanted, &event).is_some());
                    if is_requested || !eliminates_load(&mut state, &event) {
                        perform_before(&mut state, event);
                    }
                }
                ProgramStep::Split(condition) => return self.decide_condition(&state, condition, depth),
                // Everything is allowed.
                ProgramStep::Undefined(_) => return Ok(()),
                ProgramStep::Unsupported(what) => return Err(NoProof::Limit(what)),
                ProgramStep::Cut => return Err(NoProof::LongerLoop),
                // AFTER has removed the events that are pending at the end: allowed only for plain loads.
                ProgramStep::End => match &state.next {
                    Some(NextStep::End) if lost_event(&state).is_none() => return Ok(()),
                    _ => {
                        let lost = lost_event(&state);
                        return self.record_mismatch(state, lost, depth);
                    }
                },
                ProgramStep::Hang => match &state.next {
                    Some(NextStep::Hang) if lost_event(&state).is_none() => return Ok(()),
                    _ => {
                        let lost = lost_event(&state);
                        return self.record_mismatch(state, lost, depth);
                    }
                },
            }
        }
    }

    /// Matches a load that AFTER repeats with one that BEFORE repeats, if that is its next event.
    fn match_eliminated_load(&self, state: &mut SimulationState, load: &Event) {
        let mut ahead = state.before.clone();
        if let ProgramStep::Event(event) = self.before.advance(&mut ahead, &state.facts)
            && event.cell == load.cell
            && event.is_plain()
        {
            let position = std::mem::replace(&mut state.before, ahead);
            if eliminates_load(state, &event) {
                return state.note_match();
            }
            state.before = position;
        }
        state.note_added(load.spot.place);
    }

    /// Continues for each value of a condition.
    ///
    /// The facts of a path over-approximate: they may allow values that exclude each other.
    fn decide_condition(
        &mut self,
        state: &SimulationState,
        condition: Condition,
        depth: usize,
    ) -> Result<(), NoProof> {
        let is_finite = |symbol: &Symbol| state.domains.get(symbol).is_some_and(Option::is_some);
        if let Some(symbol) = condition.symbols().into_iter().find(is_finite) {
            return self.decide_symbol(state, symbol, depth);
        }
        for holds in [true, false] {
            let mut successor = state.clone();
            match condition.implied_value().filter(|_| holds) {
                Some((symbol, value)) => successor.substitute(&|other| {
                    if other == symbol { value.clone() } else { Expression::Symbol(other) }
                }),
                None => _ = successor.facts.insert(condition.clone(), holds),
            }
            self.prove(successor, depth + 1)?;
        }
        Ok(())
    }

    /// Continues for each value of a symbol.
    fn decide_symbol(
        &mut self,
        state: &SimulationState,
        symbol: Symbol,
        depth: usize,
    ) -> Result<(), NoProof> {
        let Some(values) = state.domains.get(&symbol).cloned().flatten() else {
            return Err(NoProof::Limit("an event depends on a value that may be any number".to_owned()));
        };
        for value in values {
            let mut successor = state.clone();
            successor.substitute(&|other| {
                if other == symbol { Expression::Known(value) } else { Expression::Symbol(other) }
            });
            self.prove(successor, depth + 1)?;
        }
        Ok(())
    }

    /// Records a mismatch. If values keep an event from matching, they are decided first.
    fn record_mismatch(
        &mut self,
        mut state: SimulationState,
        blocked: Option<Event>,
        depth: usize,
    ) -> Result<(), NoProof> {
        if let Some(NextStep::Event(event)) = &state.next {
            let same = |pending: &&PendingEvent| {
                pending.event.cell == event.cell && have_same_shape(&pending.event, event)
            };
            let values = state.pending.iter().filter(same).flat_map(|pending| pending.event.values());
            let symbol = values.chain(event.values()).find_map(Expression::first_symbol);
            if let Some(symbol) = symbol.filter(|_| state.pending.iter().any(|pending| same(&pending))) {
                return self.decide_symbol(&state, symbol, depth);
            }
            // BEFORE has no such barrier here, so AFTER added it.
            if event.operation == Operation::Order(OrderShape::Fence) {
                self.is_stronger = true;
                state.note_added(event.spot.place);
                state.next = None;
                return self.prove(state, depth + 1);
            }
        }
        let is_volatile = |event: &Event| event.is_volatile;
        let has_volatile = blocked.as_ref().is_some_and(is_volatile)
            || matches!(&state.next, Some(NextStep::Event(event)) if event.is_volatile);
        let (what, after, mut cells) = match &state.next {
            Some(NextStep::Event(event)) => {
                (describe(event), Some(event.spot), event.cell.iter().cloned().collect::<Vec<_>>())
            }
            Some(NextStep::Hang) => ("an endless loop".to_owned(), None, Vec::new()),
            Some(NextStep::Undefined(what)) => (what.clone(), None, Vec::new()),
            Some(NextStep::End) | None => ("the end".to_owned(), None, Vec::new()),
        };
        let what = match &blocked {
            Some(event) => format!("AFTER has {what} where BEFORE has {}", describe(event)),
            None => format!("AFTER has {what}, which BEFORE does not have there"),
        };
        let rule = if has_volatile { " (volatile: not eliminated, duplicated or combined)" } else { "" };
        let what = format!("{what}{rule}");
        cells.extend(blocked.iter().filter_map(|event| event.cell.clone()));
        let before = blocked.map(|event| event.spot).or(state.last_spot);
        let mismatch = Mismatch { what, before, after, cells, matched: state.matched };
        // Of several mismatches, the one after the longest common part is shown.
        if self.mismatch.as_ref().is_none_or(|known| known.matched < mismatch.matched) {
            self.mismatch = Some(mismatch);
        }
        Err(NoProof::Mismatch)
    }

    /// Returns an exchange of AFTER as the atomic store of BEFORE that it replaces: the old number is not used.
    fn as_store(&self, state: &SimulationState, event: &Event, before: &Event) -> Option<Event> {
        let (Operation::Exchange(number), Operation::Store(_)) = (&event.operation, &before.operation) else {
            return None;
        };
        let is_used = event.destination.is_some_and(|old| self.after.reads_later(&state.after, old));
        let operation = Operation::Store(number.clone());
        (!is_used).then(|| Event { operation, destination: None, ..event.clone() })
    }

    /// Looks for the event of AFTER among the pending ones of BEFORE.
    fn find_pending(&mut self, state: &mut SimulationState) -> Result<PendingMatch, NoProof> {
        let Some(NextStep::Event(event)) = &state.next else { return Ok(PendingMatch::Nothing) };
        for (index, pending) in state.pending.iter().enumerate() {
            let stored = self.as_store(state, event, &pending.event);
            let is_exchange = stored.is_some();
            let event = stored.as_ref().unwrap_or(event);
            let Some(is_stronger) = strength_relation(event, &pending.event) else { continue };
            let is_stronger = is_stronger || is_exchange;
            let is_same = pending.event.cell == event.cell && pending.event.operation == event.operation;
            let earlier = &state.pending[..index];
            // A store is only overwritten if no synchronizing event is between.
            let is_overwritten = |one: &PendingEvent| one.event.writes() && one.event.cell == event.cell;
            let synchronizes = earlier.iter().any(|one| !one.event.is_plain());
            if !is_same
                || !earlier.iter().all(|one| may_precede(event, &one.event))
                || synchronizes && earlier.iter().any(is_overwritten)
            {
                continue;
            }
            if event.is_barrier() {
                let place = |event: &Event| (event.spot.line, event.spot.place);
                let instance = (state.barriers, place(&pending.event));
                let known = self.barriers.entry(instance).or_insert_with(|| place(event));
                if *known != place(event) {
                    let what = "one control barrier of BEFORE is several of AFTER";
                    return Err(NoProof::Limit(what.to_owned()));
                }
                state.barriers += 1;
            }
            self.is_stronger |= is_stronger;
            let (event, pending) = (event.clone(), pending.clone());
            // AFTER reads what BEFORE reads, so both values have one symbol.
            if let (Some(register), Some(result)) = (event.destination, &pending.result) {
                match (result, &event.domain) {
                    (Expression::Known(value), Some(domain)) if !domain.contains(value) => {
                        return Ok(PendingMatch::Vacuous);
                    }
                    (Expression::Symbol(symbol), domain) => {
                        let allowed = state.domains.get(symbol).cloned().flatten();
                        // `None` is the set of all numbers.
                        let is_within = match (&allowed, domain) {
                            (None, _) => true,
                            (Some(_), None) => false,
                            (Some(allowed), Some(domain)) => {
                                domain.iter().all(|value| allowed.contains(value))
                            }
                        };
                        if !is_within {
                            return Err(NoProof::Limit(
                                "AFTER may read values that BEFORE does not store".to_owned(),
                            ));
                        }
                        if domain.is_some() {
                            state.domains.insert(*symbol, domain.clone());
                        }
                    }
                    _ => {}
                }
                state.after.registers.insert(register, result.clone());
            }
            note_repeatable(state, &event);
            // The pending events that AFTER can no longer perform disappear with the match.
            let mut position = 0;
            state.pending.retain(|one| {
                position += 1;
                let is_earlier = position <= index;
                let is_match = position == index + 1;
                // A store that the matched one overwrites, and a load whose value does not matter.
                let is_overwritten =
                    one.event.is_plain() && one.event.writes() && one.event.cell == event.cell;
                let is_irrelevant = one.event.is_load() && event.releases();
                !(is_match || is_earlier && !one.event.is_volatile && (is_overwritten || is_irrelevant))
            });
            return Ok(PendingMatch::Matched);
        }
        Ok(PendingMatch::Nothing)
    }
}

/// Replaces symbols in the cells and values of a map. Two cells that become one are removed.
fn substitute_cells<T>(
    cells: &mut BTreeMap<CellKey, (Expression, T)>,
    replace: &impl Fn(Symbol) -> Expression,
) {
    let mut repeated = Vec::new();
    for (mut cell, (value, other)) in std::mem::take(cells) {
        cell.offset = cell.offset.substitute(replace);
        if cells.insert(cell.clone(), (value.substitute(replace), other)).is_some() {
            repeated.push(cell);
        }
    }
    cells.retain(|cell, _| !repeated.contains(cell));
}
