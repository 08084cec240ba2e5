//! A scheduler that provides exactly the guarantees of a progress model, and looks for an infinite schedule.
//!
//! It takes random steps, one invocation at a time, and records the states that it visits. A repeated state
//! closes a cycle that can be executed for ever. The cycle is legal under two conditions. Each invocation
//! that the model guarantees progress has taken a step in it. Each memory operation that was in flight has
//! been performed, or belongs to an invocation without a guarantee. The scheduler then replays a legal cycle.
//! If the model rules out all infinite schedules, the dispatch ends, because the random steps continue until
//! one of both happens.
//!
//! A *step* is an access to memory that the host does not share, or the arrival at a control barrier: buffers
//! that the host shares only record results of a run. Once the host has written to such a buffer, all
//! invocations continue.
//!
//! Invocations whose selectors match no case of any switch have no role; their operations are not steps of
//! the program.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::{Machine, PhaseStatus, SchedulerWeights};
use crate::program::{Application, MemoryOp, MemoryOpKind, NONE, Op, Program, Register, Switch};
use crate::progress::{ProgressModel, Schedulability};
use crate::random::lanes;
use crate::wave::DispatchState;

/// The maximal number of steps of a search.
const MOST_STEPS: usize = 50_000;
/// Front-end runs without a step after which an invocation counts as spinning.
const LOCAL_TURNS: u32 = 256;
/// Replays of a cycle per call.
const ROUNDS: usize = 2;
/// One step in this many, on average, redraws the preferred invocations.
const FICKLE: usize = 12;
/// The number of window slots.
const SLOTS: usize = 32;

/// The scheduler state of one phase.
#[derive(Debug)]
pub(super) struct ProgressScheduler {
    promises: ProgressModel,
    who: Vec<InvocationProgress>,
    /// Queue family, workgroup, subgroup and lane of each invocation with a role, sorted.
    places: Vec<[u32; 4]>,
    /// The waves in the order of `places`.
    players: Vec<usize>,
    /// By program: registers that affect control flow or shared state.
    deciding: Vec<Vec<Register>>,
    /// By dispatch and reference: true if the host shares it.
    shared: Vec<Vec<bool>>,
    /// The step at which each state was first visited.
    seen: HashMap<u64, usize>,
    steps: Vec<SchedulerStep>,
    /// The cycle that is replayed, and the position in it.
    round: Option<(usize, usize)>,
    /// The rate, of 256, of out-of-order steps.
    disorder: u32,
    released: bool,
}

/// The scheduler state of an invocation.
#[derive(Clone, Debug)]
struct InvocationProgress {
    plays: bool,
    /// True once it has run up to its first step.
    begun: bool,
    started: bool,
    /// True if it loops without taking a step.
    spins: bool,
    /// One more than the number of its last step.
    last: usize,
    /// The weight with which it is chosen.
    weight: usize,
    /// The step at which the operation in each slot was issued; `None` for an empty slot.
    issued: [Option<usize>; SLOTS],
}

/// A choice: an invocation and one of its steps, or `None` for another iteration without a step.
#[derive(Clone, Copy, Debug)]
struct SchedulerStep {
    wave: usize,
    pick: Option<usize>,
}

impl ProgressScheduler {
    pub fn new(promises: ProgressModel, shared: Vec<Vec<bool>>, disorder: u32) -> ProgressScheduler {
        ProgressScheduler {
            promises,
            who: Vec::new(),
            places: Vec::new(),
            players: Vec::new(),
            deciding: Vec::new(),
            shared,
            seen: HashMap::new(),
            steps: Vec::new(),
            round: None,
            disorder,
            released: false,
        }
    }

    /// Returns true if an operation is a step of the program.
    fn is_step(&self, dispatch: usize, op: &MemoryOp) -> bool {
        let shared = self.shared.get(dispatch).and_then(|shared| shared.get(usize::from(op.reference)));
        match op.kind {
            MemoryOpKind::Arrive => true,
            MemoryOpKind::Leave
            | MemoryOpKind::Fence
            | MemoryOpKind::ReleasePart
            | MemoryOpKind::AcquirePart
            | MemoryOpKind::SectionBegin { .. }
            | MemoryOpKind::SectionEnd => false,
            _ => !shared.copied().unwrap_or(false),
        }
    }
}

impl Machine {
    /// Starts scheduling the phase that was just started. Each wave is one invocation.
    pub fn begin_scheduled_phase(
        &mut self,
        promises: ProgressModel,
        shared: Vec<Vec<bool>>,
        programs: &[Program],
        dispatches: &[DispatchState],
    ) {
        // Fully ordered and fully reordered schedules find cycles that mixtures rarely do.
        let disorder = [0, 128, 256][self.random.below(3)];
        let mut walk = ProgressScheduler::new(promises, shared, disorder);
        self.weights = SchedulerWeights::STILL;
        self.memory.begin_ahead(None);
        // No wave waits for the round of another one.
        self.last_round = u32::MAX;
        walk.deciding = (0..programs.len())
            .map(|program| deciding_registers(programs, program, dispatches, &walk))
            .collect();
        for wave in 0..self.waves.len() {
            let plays = self.takes_part(wave, programs, dispatches);
            walk.who.push(InvocationProgress {
                plays,
                begun: !plays,
                started: false,
                spins: false,
                last: 0,
                weight: 1,
                issued: [None; SLOTS],
            });
            if plays {
                walk.players.push(wave);
            }
        }
        let place = |wave: &usize| {
            let wave = &self.waves[*wave];
            let family = wave.paths.first().map_or(0, |path| path[3]);
            let [workgroup, _, subgroup, lane] = wave.places.first().copied().unwrap_or_default();
            let first = dispatches.get(wave.dispatch).map_or(0, |dispatch| dispatch.first_workgroup);
            [family, first + workgroup, subgroup, lane]
        };
        walk.players.sort_by_key(place);
        walk.places = walk.players.iter().map(place).collect();
        // Only invocations without a role run here; those with one run up to their first step when they are
        // scheduled.
        for wave in 0..self.waves.len() {
            if !walk.who[wave].plays {
                self.run_to_next_step(&mut walk, wave, programs, dispatches);
            }
        }
        self.walk = Some(Box::new(walk));
    }

    /// Returns true if an infinite schedule was found.
    pub fn goes_round(&self) -> bool {
        self.walk.as_ref().is_some_and(|walk| walk.round.is_some())
    }

    /// Lets all invocations continue: the host has written.
    pub fn let_go(&mut self) {
        if let Some(walk) = &mut self.walk {
            walk.released = true;
            walk.round = None;
        }
    }

    /// Returns true if an invocation has a role: a selector of its first block matches a case of its
    /// switches.
    fn takes_part(&mut self, wave: usize, programs: &[Program], dispatches: &[DispatchState]) -> bool {
        let Some(dispatch) = dispatches.get(self.waves[wave].dispatch) else { return true };
        let Some(program) = programs.get(dispatch.program) else { return true };
        if program.keys.is_empty() {
            return true;
        }
        let mut look = self.waves[wave].clone();
        let keys = look.collect_role_keys(&mut self.wave_context(program, dispatch));
        let keys = keys.first().cloned().unwrap_or_default();
        program.ops.iter().any(|op| match op {
            Op::Switch(Switch { selector, cases, .. }) => {
                let cases = program.cases.get(cases.0 as usize..cases.1 as usize).unwrap_or_default();
                let key = program.keys.iter().position(|key| key == selector);
                let value = key.and_then(|key| keys.get(key));
                value.is_some_and(|value| cases.iter().any(|(literal, _)| *literal == u64::from(*value)))
            }
            _ => false,
        })
    }

    /// Advances until all invocations have ended or an infinite schedule is found; then replays that for a
    /// while.
    pub(super) fn advance_scheduler(
        &mut self,
        programs: &[Program],
        dispatches: &[DispatchState],
    ) -> PhaseStatus {
        let Some(mut walk) = self.walk.take() else { return PhaseStatus::Ended };
        let state = loop {
            if self.waves.iter().all(|wave| wave.ended && !wave.is_busy()) {
                break PhaseStatus::Ended;
            }
            if let Some((from, _)) = walk.round {
                let length = walk.steps.len() - from;
                for _ in 0..length * ROUNDS {
                    self.replay_cycle(&mut walk, programs, dispatches);
                }
                break PhaseStatus::Running;
            }
            if walk.steps.len() >= MOST_STEPS || !self.choose_step(&mut walk, programs, dispatches) {
                break PhaseStatus::OutOfBudget;
            }
        };
        self.walk = Some(walk);
        state
    }

    /// Takes one step of a random invocation; returns false if none can take one.
    fn choose_step(
        &mut self,
        walk: &mut ProgressScheduler,
        programs: &[Program],
        dispatches: &[DispatchState],
    ) -> bool {
        // After the release the program is to end, so cycles are of no interest any more.
        if !walk.released {
            self.detect_cycle(walk, programs, dispatches);
            if walk.round.is_some() {
                return true;
            }
            if self.random.below(FICKLE) == 0 {
                for who in &mut walk.who {
                    // Some invocations starve for a while, which fair choices would rarely show.
                    who.weight = [0, 1, 1, 4][self.random.below(4)];
                }
            }
        }
        let able: Vec<usize> = walk
            .players
            .iter()
            .copied()
            .filter(|wave| self.can_step(walk, *wave, programs, dispatches))
            .collect();
        let weight = |wave: &usize| if walk.released { 1 } else { walk.who[*wave].weight };
        let mut whole: usize = able.iter().map(weight).sum();
        // All eligible invocations may have weight 0; then they are equally likely.
        let all_alike = whole == 0;
        if all_alike {
            whole = able.len();
        }
        let mut at = self.random.below(whole);
        let chosen = able.iter().find(|wave| {
            let own = if all_alike { 1 } else { weight(wave) };
            let found = at < own;
            at = at.saturating_sub(own);
            found
        });
        let Some(wave) = chosen.copied() else { return false };
        if !walk.who[wave].begun {
            walk.who[wave].begun = true;
            self.run_to_next_step(walk, wave, programs, dispatches);
        }
        let ready = self.available_steps(walk, wave, programs, dispatches).len();
        let choices = ready + usize::from(walk.who[wave].spins);
        // Step 0 is the oldest one, so it keeps program order.
        let pick = if self.random.chance(walk.disorder) { self.random.below(choices) } else { 0 };
        let step = SchedulerStep { wave, pick: (pick < ready).then_some(pick) };
        self.take_step(walk, step, programs, dispatches);
        walk.steps.push(step);
        true
    }

    /// Takes the next step of the replayed cycle.
    fn replay_cycle(
        &mut self,
        walk: &mut ProgressScheduler,
        programs: &[Program],
        dispatches: &[DispatchState],
    ) {
        let Some((from, at)) = walk.round else { return };
        let length = walk.steps.len() - from;
        if let Some(step) = walk.steps.get(from + at).copied() {
            self.take_step(walk, step, programs, dispatches);
        }
        walk.round = Some((from, (at + 1) % length.max(1)));
    }

    fn take_step(
        &mut self,
        walk: &mut ProgressScheduler,
        step: SchedulerStep,
        programs: &[Program],
        dispatches: &[DispatchState],
    ) {
        let wave = step.wave;
        let now = walk.steps.len();
        if let Some(pick) = step.pick {
            let ready = self.available_steps(walk, wave, programs, dispatches);
            let Some((slot, mask)) = ready.get(pick).copied() else { return };
            walk.who[wave].issued[usize::from(slot)] = None;
            self.perform_one(wave, slot, mask, programs, dispatches);
        }
        let who = &mut walk.who[wave];
        who.started = true;
        who.last = now + 1;
        if step.pick.is_none() && !walk.released {
            self.run_front_end(wave, programs, dispatches);
            self.perform_invisible(walk, wave, programs, dispatches);
            return;
        }
        self.run_to_next_step(walk, wave, programs, dispatches);
        // The step may have completed a barrier for other invocations.
        for other in 0..self.waves.len() {
            if other != wave
                && walk.who[other].begun
                && self.perform_invisible(walk, other, programs, dispatches)
            {
                self.run_to_next_step(walk, other, programs, dispatches);
            }
        }
    }

    /// Returns true if an invocation can take a step.
    fn can_step(
        &mut self,
        walk: &ProgressScheduler,
        wave: usize,
        programs: &[Program],
        dispatches: &[DispatchState],
    ) -> bool {
        let who = &walk.who[wave];
        !who.begun || who.spins || !self.available_steps(walk, wave, programs, dispatches).is_empty()
    }

    /// Returns the steps that an invocation can take now.
    fn available_steps(
        &mut self,
        walk: &ProgressScheduler,
        wave: usize,
        programs: &[Program],
        dispatches: &[DispatchState],
    ) -> Vec<(u8, u64)> {
        self.collect_performable(wave, programs, dispatches);
        let dispatch = self.waves[wave].dispatch;
        let Some(program) = dispatches.get(dispatch).and_then(|d| programs.get(d.program)) else {
            return Vec::new();
        };
        let own = &self.waves[wave];
        let is_step = |slot: u8| own.operation(slot, program).is_some_and(|op| walk.is_step(dispatch, op));
        self.ready.iter().copied().filter(|(slot, _)| is_step(*slot)).collect()
    }

    fn collect_performable(&mut self, wave: usize, programs: &[Program], dispatches: &[DispatchState]) {
        let mut ready = std::mem::take(&mut self.ready);
        self.waves[wave].collect_ready(&mut ready);
        self.ready = ready;
        let of = dispatches.get(self.waves[wave].dispatch).and_then(|d| programs.get(d.program));
        if let Some(program) = of {
            self.wait_at_barriers(wave, program);
            self.wait_for_sections(wave, program);
        }
    }

    fn perform_one(
        &mut self,
        wave: usize,
        slot: u8,
        mask: u64,
        programs: &[Program],
        dispatches: &[DispatchState],
    ) {
        let Some(dispatch) = dispatches.get(self.waves[wave].dispatch) else { return };
        let Some(program) = programs.get(dispatch.program) else { return };
        self.perform_operation(wave, slot, mask, program, dispatch);
    }

    fn run_front_end(&mut self, wave: usize, programs: &[Program], dispatches: &[DispatchState]) -> bool {
        let Some(dispatch) = dispatches.get(self.waves[wave].dispatch) else { return false };
        let Some(program) = programs.get(dispatch.program) else { return false };
        // The number of steps bounds the search, so the budgets of the random scheduler do not
        // apply.
        self.idle_budget = self.limits.idle;
        self.budget = self.limits.idle;
        self.waves[wave].is_within_round(self.last_round) && self.run_wave(wave, program, dispatch)
    }

    /// Performs all pending operations that are not steps; returns true if there was any.
    fn perform_invisible(
        &mut self,
        walk: &mut ProgressScheduler,
        wave: usize,
        programs: &[Program],
        dispatches: &[DispatchState],
    ) -> bool {
        let mut any = false;
        loop {
            self.collect_performable(wave, programs, dispatches);
            let dispatch = self.waves[wave].dispatch;
            let Some(program) = dispatches.get(dispatch).and_then(|d| programs.get(d.program)) else {
                return any;
            };
            let (own, plays) = (&self.waves[wave], walk.who[wave].plays);
            let is_eager = |slot: u8| {
                own.operation(slot, program).is_some_and(|op| !plays || !walk.is_step(dispatch, op))
            };
            let Some((slot, mask)) = self.ready.iter().copied().find(|(slot, _)| is_eager(*slot)) else {
                return any;
            };
            walk.who[wave].issued[usize::from(slot)] = None;
            self.perform_one(wave, slot, mask, programs, dispatches);
            any = true;
        }
    }

    /// Runs an invocation until it reaches a step, waits, ends, or spins without a step.
    fn run_to_next_step(
        &mut self,
        walk: &mut ProgressScheduler,
        wave: usize,
        programs: &[Program],
        dispatches: &[DispatchState],
    ) {
        walk.who[wave].spins = false;
        let mut turns = 0;
        let mut steps_under_way = self.count_in_flight(walk, wave, programs, dispatches);
        loop {
            let ran = self.run_front_end(wave, programs, dispatches);
            let performed = self.perform_invisible(walk, wave, programs, dispatches);
            if !ran && !performed {
                break;
            }
            let now = self.count_in_flight(walk, wave, programs, dispatches);
            // A new operation in flight is progress; only iterations without one count as spinning.
            if now != steps_under_way {
                steps_under_way = now;
                turns = 0;
            }
            turns += 1;
            if turns > LOCAL_TURNS {
                walk.who[wave].spins = true;
                break;
            }
        }
        let now = walk.steps.len();
        let slots = self.waves[wave].occupied_slots();
        // An operation keeps the step at which it was first seen in flight.
        for (slot, issued) in walk.who[wave].issued.iter_mut().enumerate() {
            *issued = match slots >> slot & 1 {
                0 => None,
                _ => issued.or(Some(now)),
            };
        }
    }

    /// Returns the number of steps that an invocation has issued but not performed.
    fn count_in_flight(
        &self,
        walk: &ProgressScheduler,
        wave: usize,
        programs: &[Program],
        dispatches: &[DispatchState],
    ) -> usize {
        let own = &self.waves[wave];
        let Some(program) = dispatches.get(own.dispatch).and_then(|d| programs.get(d.program)) else {
            return 0;
        };
        let is_step =
            |slot: usize| own.operation(slot as u8, program).is_some_and(|op| walk.is_step(own.dispatch, op));
        lanes(own.occupied_slots().into()).filter(|slot| is_step(*slot)).count()
    }

    /// Checks if the current state was visited before and the cycle since then is legal.
    fn detect_cycle(
        &mut self,
        walk: &mut ProgressScheduler,
        programs: &[Program],
        dispatches: &[DispatchState],
    ) {
        let now = walk.steps.len();
        let state = self.state_fingerprint(walk, programs, dispatches);
        let first = *walk.seen.entry(state).or_insert(now);
        // A state that was seen before closes a cycle, which can repeat forever.
        if first == now {
            return;
        }
        let mut standings = Vec::with_capacity(walk.players.len());
        for wave in walk.players.clone() {
            let ready = self.can_step(walk, wave, programs, dispatches);
            let who = &walk.who[wave];
            let stepped = who.last > first;
            // Writes become visible eventually: an invocation that takes steps must not delay one for ever.
            let kept_back = stepped && who.issued.iter().flatten().any(|issued| *issued < first);
            if kept_back {
                return;
            }
            standings.push(Schedulability { started: who.started, ready: ready || stepped, served: stepped });
        }
        if walk.promises.is_satisfied(&walk.places, &standings) {
            walk.round = Some((first, 0));
        }
    }

    /// Hashes everything that determines the possible continuations.
    fn state_fingerprint(
        &self,
        walk: &ProgressScheduler,
        programs: &[Program],
        dispatches: &[DispatchState],
    ) -> u64 {
        let mut hasher = DefaultHasher::new();
        for wave in &walk.players {
            let own = &self.waves[*wave];
            let Some(dispatch) = dispatches.get(own.dispatch) else { continue };
            let (who, deciding) = (&walk.who[*wave], walk.deciding.get(dispatch.program));
            (who.begun, who.started, who.spins).hash(&mut hasher);
            own.fingerprint(deciding.map_or(&[][..], Vec::as_slice), &mut hasher);
            if let Some(program) = programs.get(dispatch.program) {
                for (reference, bound) in dispatch.bindings.iter().enumerate() {
                    let shared = walk.shared.get(own.dispatch).and_then(|shared| shared.get(reference));
                    // Memory that only records results would make every state new.
                    if shared.copied().unwrap_or(false) || program.references.get(reference).is_none() {
                        continue;
                    }
                    let words =
                        self.memory.words.get(bound.base as usize..(bound.base + bound.words) as usize);
                    words.hash(&mut hasher);
                }
            }
        }
        self.memory.fingerprint(&mut hasher);
        hasher.finish()
    }
}

/// Returns the registers whose values reach a branch, an address, or memory that the host does not share. A
/// counter that is only recorded for the host does not make a new state.
fn deciding_registers(
    programs: &[Program],
    number: usize,
    dispatches: &[DispatchState],
    walk: &ProgressScheduler,
) -> Vec<Register> {
    let Some(program) = programs.get(number) else { return Vec::new() };
    let mut decides = vec![false; program.registers];
    let mut mark = |register: Register| match decides.get_mut(register as usize) {
        Some(known) if register != NONE => !std::mem::replace(known, true),
        _ => false,
    };
    let shared = |reference: u16| {
        let mut users = dispatches.iter().enumerate().filter(|(_, dispatch)| dispatch.program == number);
        let is_shared = |index: usize| {
            walk.shared
                .get(index)
                .and_then(|shared| shared.get(usize::from(reference)))
                .copied()
                .unwrap_or(false)
        };
        users.all(|(index, _)| is_shared(index))
    };
    for op in &program.ops {
        match op {
            Op::Branch { condition, .. } => {
                mark(*condition);
            }
            Op::Switch(Switch { selector, is_wide, .. }) => {
                mark(*selector);
                if *is_wide {
                    mark(selector.saturating_add(1));
                }
            }
            Op::Memory(access) => {
                let hidden = program
                    .memory
                    .get(usize::from(access.memory))
                    .is_some_and(|op| op.is_access() && shared(op.reference));
                if !hidden {
                    for register in [access.address, access.value, access.compare] {
                        mark(register);
                    }
                    let memory = program.memory.get(usize::from(access.memory));
                    // Eight bytes occupy two adjacent registers.
                    if memory.is_some_and(|op| op.bytes > 4) {
                        for register in [access.value, access.compare] {
                            mark(register.saturating_add(1));
                        }
                    }
                }
            }
            _ => {}
        }
    }
    // Backward data flow to a fixpoint: an operand decides if its result does.
    loop {
        let mut more = false;
        let known = decides.clone();
        let is_known = |register: Register| known.get(register as usize).copied().unwrap_or(false);
        let mut mark = |register: Register| {
            if let Some(place) = decides.get_mut(register as usize) {
                more |= !std::mem::replace(place, true);
            }
        };
        for op in &program.ops {
            match *op {
                Op::Binary { to, left, right, .. } if is_known(to) => {
                    mark(left);
                    mark(right);
                }
                Op::Select { to, condition, yes, no } if is_known(to) => {
                    mark(condition);
                    mark(yes);
                    mark(no);
                }
                Op::Assign { to, from } | Op::Copy { to, from } if is_known(to) => mark(from),
                Op::Address { to, index, .. } if is_known(to) => mark(index),
                Op::Behind { to, from, .. } if is_known(to) => mark(from),
                Op::Texel { to, column, row, .. } if is_known(to) => {
                    mark(column);
                    mark(row);
                }
                Op::Apply { number } => {
                    let Some(application) = program.applications.get(number as usize) else { continue };
                    let words = application.result.iter().map(Application::words).sum::<Register>();
                    if (application.to..application.to + words).any(is_known) {
                        for (first, shape) in &application.operands {
                            (*first..first + Application::words(shape)).for_each(&mut mark);
                        }
                    }
                }
                Op::Pick { to, from, index, words, .. } if is_known(to) => {
                    mark(index);
                    (from..from + words).for_each(&mut mark);
                }
                Op::Put { to, index, from, words, .. } if (to..to + words).any(is_known) => {
                    mark(index);
                    mark(from);
                }
                Op::Parameter { to, index, .. } if is_known(to) => mark(index),
                Op::Ballot { to, ballot, argument, .. } if is_known(to) => {
                    mark(ballot);
                    mark(argument);
                }
                _ => {}
            }
        }
        // Phis are copies on edges.
        for (to, from) in &program.copies {
            if is_known(*to) {
                mark(*from);
            }
        }
        if !more {
            break;
        }
    }
    (0..program.registers as Register).filter(|register| decides[*register as usize]).collect()
}
