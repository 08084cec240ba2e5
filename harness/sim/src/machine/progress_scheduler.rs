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

use super::{Launched, Machine, PhaseStatus, SchedulerWeights};
use crate::program::{MemoryOp, MemoryOpKind, NONE, NumberInstruction, Op, Register, Switch};
use crate::progress::{ProgressModel, Schedulability};
use crate::random::lanes_in_mask;

/// The maximal number of steps of a search.
const MAX_STEPS: usize = 50_000;
/// Front-end runs without a step after which an invocation counts as spinning.
const MAX_RUNS_WITHOUT_STEP: u32 = 256;
/// Replays of a cycle per call.
const REPLAYS_PER_CALL: usize = 2;
/// One step in this many, on average, redraws the preferred invocations.
const REDRAW_PERIOD: usize = 12;
/// The number of window slots.
const SLOTS: usize = 32;

/// The scheduler state of one phase.
#[derive(Debug)]
pub(super) struct ProgressScheduler {
    model: ProgressModel,
    invocations: Vec<InvocationProgress>,
    /// Queue family, workgroup, subgroup and lane of each invocation with a role, sorted.
    places: Vec<[u32; 4]>,
    /// The waves in the order of `places`.
    scheduled_waves: Vec<usize>,
    /// By program: registers that affect control flow or shared state.
    deciding: Vec<Vec<Register>>,
    /// By dispatch and reference: true if the host shares it.
    shared: Vec<Vec<bool>>,
    /// The step at which each state was first visited.
    first_visits: HashMap<u64, usize>,
    steps: Vec<SchedulerStep>,
    /// The cycle that is replayed, and the position in it.
    cycle: Option<(usize, usize)>,
    /// The rate, of 256, of out-of-order steps.
    reorder_rate: u32,
    released: bool,
}

/// The scheduler state of an invocation.
#[derive(Clone, Debug, Default)]
struct InvocationProgress {
    has_role: bool,
    /// True once it has run up to its first step.
    has_begun: bool,
    started: bool,
    /// True if it loops without taking a step.
    is_spinning: bool,
    /// One more than the number of its last step.
    last_step: usize,
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
    pub fn new(model: ProgressModel, shared: Vec<Vec<bool>>, disorder: u32) -> ProgressScheduler {
        ProgressScheduler {
            model,
            invocations: Vec::new(),
            places: Vec::new(),
            scheduled_waves: Vec::new(),
            deciding: Vec::new(),
            shared,
            first_visits: HashMap::new(),
            steps: Vec::new(),
            cycle: None,
            reorder_rate: disorder,
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
        model: ProgressModel,
        shared: Vec<Vec<bool>>,
        launched: Launched<'_>,
    ) {
        // Fully ordered and fully reordered schedules find cycles that mixtures rarely find.
        let disorder = [0, 128, 256][self.random.below(3)];
        let mut scheduler = ProgressScheduler::new(model, shared, disorder);
        self.weights = SchedulerWeights::NO_EVENTS;
        self.memory.start_read_ahead(None);
        // No wave waits for the round of another one.
        self.last_round = u32::MAX;
        scheduler.deciding = (0..launched.programs.len())
            .map(|program| deciding_registers(launched, program, &scheduler))
            .collect();
        for wave in 0..self.waves.len() {
            let has_role = self.has_role(wave, launched);
            scheduler.invocations.push(InvocationProgress {
                has_role,
                has_begun: !has_role,
                weight: 1,
                issued: [None; SLOTS],
                ..InvocationProgress::default()
            });
            if has_role {
                scheduler.scheduled_waves.push(wave);
            }
        }
        let place = |wave: &usize| {
            let wave = &self.waves[*wave];
            let family = wave.paths.first().map_or(0, |path| path[3]);
            let [workgroup, _, subgroup, lane] = wave.places.first().copied().unwrap_or_default();
            let first = launched.dispatches.get(wave.dispatch).map_or(0, |dispatch| dispatch.first_workgroup);
            [family, first + workgroup, subgroup, lane]
        };
        scheduler.scheduled_waves.sort_by_key(place);
        scheduler.places = scheduler.scheduled_waves.iter().map(place).collect();
        // Only invocations without a role run here; those with one run up to their first step when they are
        // scheduled.
        for wave in 0..self.waves.len() {
            if !scheduler.invocations[wave].has_role {
                self.run_to_next_step(&mut scheduler, wave, launched);
            }
        }
        self.progress_scheduler = Some(Box::new(scheduler));
    }

    /// Returns true if an infinite schedule was found.
    pub fn has_infinite_schedule(&self) -> bool {
        self.progress_scheduler.as_ref().is_some_and(|walk| walk.cycle.is_some())
    }

    /// Releases all invocations, because the host has written.
    pub fn release_all(&mut self) {
        if let Some(walk) = &mut self.progress_scheduler {
            walk.released = true;
            walk.cycle = None;
        }
    }

    /// Returns true if an invocation has a role: a selector of its first block matches a case of its
    /// switches.
    fn has_role(&mut self, wave: usize, launched: Launched<'_>) -> bool {
        let Some((dispatch, program)) = launched.of_wave(&self.waves[wave]) else { return true };
        if program.role_selectors.is_empty() {
            return true;
        }
        let mut lookahead = self.waves[wave].clone();
        let keys = lookahead.collect_role_keys(&mut self.wave_context(program, dispatch));
        let keys = keys.first().cloned().unwrap_or_default();
        program.ops.iter().any(|op| match op {
            Op::Switch(Switch { selector, cases, .. }) => {
                let cases = program.cases.get(cases.0 as usize..cases.1 as usize).unwrap_or_default();
                let key = program.role_selectors.iter().position(|key| key == selector);
                let value = key.and_then(|key| keys.get(key));
                value.is_some_and(|value| cases.iter().any(|(literal, _)| *literal == u64::from(*value)))
            }
            _ => false,
        })
    }

    /// Advances until all invocations have ended or an infinite schedule is found; then replays that for a
    /// while.
    pub(super) fn advance_scheduler(&mut self, launched: Launched<'_>) -> PhaseStatus {
        let Some(mut scheduler) = self.progress_scheduler.take() else { return PhaseStatus::Ended };
        let state = loop {
            if self.waves.iter().all(|wave| wave.ended && !wave.is_busy()) {
                break PhaseStatus::Ended;
            }
            if let Some((from, _)) = scheduler.cycle {
                let length = scheduler.steps.len() - from;
                for _ in 0..length * REPLAYS_PER_CALL {
                    self.replay_cycle(&mut scheduler, launched);
                }
                break PhaseStatus::Running;
            }
            if scheduler.steps.len() >= MAX_STEPS || !self.choose_step(&mut scheduler, launched) {
                break PhaseStatus::OutOfBudget;
            }
        };
        self.progress_scheduler = Some(scheduler);
        state
    }

    /// Takes one step of a random invocation; returns false if none can take one.
    fn choose_step(&mut self, scheduler: &mut ProgressScheduler, launched: Launched<'_>) -> bool {
        // After the release the program is to end, so cycles are of no interest any more.
        if !scheduler.released {
            self.detect_cycle(scheduler, launched);
            if scheduler.cycle.is_some() {
                return true;
            }
            if self.random.below(REDRAW_PERIOD) == 0 {
                for who in &mut scheduler.invocations {
                    // Some invocations starve for a while, which fair choices would rarely show.
                    who.weight = [0, 1, 1, 4][self.random.below(4)];
                }
            }
        }
        let eligible: Vec<usize> = scheduler
            .scheduled_waves
            .iter()
            .copied()
            .filter(|wave| self.can_step(scheduler, *wave, launched))
            .collect();
        let weight = |wave: &usize| if scheduler.released { 1 } else { scheduler.invocations[*wave].weight };
        let mut total_weight: usize = eligible.iter().map(weight).sum();
        // All eligible invocations may have weight 0; then they are equally likely.
        let all_alike = total_weight == 0;
        if all_alike {
            total_weight = eligible.len();
        }
        let mut at = self.random.below(total_weight);
        let chosen = eligible.iter().find(|wave| {
            let own = if all_alike { 1 } else { weight(wave) };
            let found = at < own;
            at = at.saturating_sub(own);
            found
        });
        let Some(wave) = chosen.copied() else { return false };
        if !scheduler.invocations[wave].has_begun {
            scheduler.invocations[wave].has_begun = true;
            self.run_to_next_step(scheduler, wave, launched);
        }
        let ready = self.available_steps(scheduler, wave, launched).len();
        let choices = ready + usize::from(scheduler.invocations[wave].is_spinning);
        // Step 0 is the oldest one, so it keeps program order.
        let pick = if self.random.chance(scheduler.reorder_rate) { self.random.below(choices) } else { 0 };
        let step = SchedulerStep { wave, pick: (pick < ready).then_some(pick) };
        self.take_step(scheduler, step, launched);
        scheduler.steps.push(step);
        true
    }

    /// Takes the next step of the replayed cycle.
    fn replay_cycle(&mut self, scheduler: &mut ProgressScheduler, launched: Launched<'_>) {
        let Some((from, at)) = scheduler.cycle else { return };
        let length = scheduler.steps.len() - from;
        if let Some(step) = scheduler.steps.get(from + at).copied() {
            self.take_step(scheduler, step, launched);
        }
        scheduler.cycle = Some((from, (at + 1) % length.max(1)));
    }

    fn take_step(&mut self, scheduler: &mut ProgressScheduler, step: SchedulerStep, launched: Launched<'_>) {
        let wave = step.wave;
        let now = scheduler.steps.len();
        if let Some(pick) = step.pick {
            let ready = self.available_steps(scheduler, wave, launched);
            let Some((slot, mask)) = ready.get(pick).copied() else { return };
            scheduler.invocations[wave].issued[usize::from(slot)] = None;
            self.perform_in_slot(wave, slot, mask, launched);
        }
        let who = &mut scheduler.invocations[wave];
        who.started = true;
        who.last_step = now + 1;
        if step.pick.is_none() && !scheduler.released {
            self.run_front_end(wave, launched);
            self.perform_non_steps(scheduler, wave, launched);
            return;
        }
        self.run_to_next_step(scheduler, wave, launched);
        // The step may have completed a barrier for other invocations.
        for other in 0..self.waves.len() {
            if other != wave
                && scheduler.invocations[other].has_begun
                && self.perform_non_steps(scheduler, other, launched)
            {
                self.run_to_next_step(scheduler, other, launched);
            }
        }
    }

    /// Returns true if an invocation can take a step.
    fn can_step(&mut self, scheduler: &ProgressScheduler, wave: usize, launched: Launched<'_>) -> bool {
        let who = &scheduler.invocations[wave];
        !who.has_begun || who.is_spinning || !self.available_steps(scheduler, wave, launched).is_empty()
    }

    /// Returns the steps that an invocation can take now.
    fn available_steps(
        &mut self,
        scheduler: &ProgressScheduler,
        wave: usize,
        launched: Launched<'_>,
    ) -> Vec<(u8, u64)> {
        self.collect_performable(wave, launched);
        let dispatch = self.waves[wave].dispatch;
        let Some(program) = launched.program(dispatch) else {
            return Vec::new();
        };
        let own = &self.waves[wave];
        let is_step =
            |slot: u8| own.operation(slot, program).is_some_and(|op| scheduler.is_step(dispatch, op));
        self.ready.iter().copied().filter(|(slot, _)| is_step(*slot)).collect()
    }

    fn collect_performable(&mut self, wave: usize, launched: Launched<'_>) {
        let mut ready = std::mem::take(&mut self.ready);
        self.waves[wave].collect_ready(&mut ready);
        self.ready = ready;
        let of = launched.program(self.waves[wave].dispatch);
        if let Some(program) = of {
            self.wait_at_barriers(wave, program);
            self.wait_for_sections(wave, program);
        }
    }

    fn perform_in_slot(&mut self, wave: usize, slot: u8, mask: u64, launched: Launched<'_>) {
        let Some((dispatch, program)) = launched.of_wave(&self.waves[wave]) else { return };
        self.perform_operation(wave, slot, mask, program, dispatch);
    }

    fn run_front_end(&mut self, wave: usize, launched: Launched<'_>) -> bool {
        let Some((dispatch, program)) = launched.of_wave(&self.waves[wave]) else { return false };
        // The number of steps bounds the search, so the budgets of the random scheduler do not
        // apply.
        self.idle_budget = self.limits.idle;
        self.budget = self.limits.idle;
        self.waves[wave].is_within_round(self.last_round) && self.run_wave(wave, program, dispatch)
    }

    /// Performs all pending operations that are not steps; returns true if there was any.
    fn perform_non_steps(
        &mut self,
        scheduler: &mut ProgressScheduler,
        wave: usize,
        launched: Launched<'_>,
    ) -> bool {
        let mut any = false;
        loop {
            self.collect_performable(wave, launched);
            let dispatch = self.waves[wave].dispatch;
            let Some(program) = launched.program(dispatch) else {
                return any;
            };
            let (own, has_role) = (&self.waves[wave], scheduler.invocations[wave].has_role);
            let is_eager = |slot: u8| {
                own.operation(slot, program).is_some_and(|op| !has_role || !scheduler.is_step(dispatch, op))
            };
            let Some((slot, mask)) = self.ready.iter().copied().find(|(slot, _)| is_eager(*slot)) else {
                return any;
            };
            scheduler.invocations[wave].issued[usize::from(slot)] = None;
            self.perform_in_slot(wave, slot, mask, launched);
            any = true;
        }
    }

    /// Runs an invocation until it reaches a step, waits, ends, or spins without a step.
    fn run_to_next_step(&mut self, scheduler: &mut ProgressScheduler, wave: usize, launched: Launched<'_>) {
        scheduler.invocations[wave].is_spinning = false;
        let mut turns = 0;
        let mut steps_in_flight = self.count_in_flight(scheduler, wave, launched);
        loop {
            let ran = self.run_front_end(wave, launched);
            let performed = self.perform_non_steps(scheduler, wave, launched);
            if !ran && !performed {
                break;
            }
            let now = self.count_in_flight(scheduler, wave, launched);
            // A new operation in flight is progress; only iterations without one count as spinning.
            if now != steps_in_flight {
                steps_in_flight = now;
                turns = 0;
            }
            turns += 1;
            if turns > MAX_RUNS_WITHOUT_STEP {
                scheduler.invocations[wave].is_spinning = true;
                break;
            }
        }
        let now = scheduler.steps.len();
        let slots = self.waves[wave].occupied_slots();
        // An operation keeps the step at which it was first seen in flight.
        for (slot, issued) in scheduler.invocations[wave].issued.iter_mut().enumerate() {
            *issued = match slots >> slot & 1 {
                0 => None,
                _ => issued.or(Some(now)),
            };
        }
    }

    /// Returns the number of steps that an invocation has issued but not performed.
    fn count_in_flight(&self, scheduler: &ProgressScheduler, wave: usize, launched: Launched<'_>) -> usize {
        let own = &self.waves[wave];
        let Some(program) = launched.program(own.dispatch) else {
            return 0;
        };
        let is_step = |slot: usize| {
            own.operation(slot as u8, program).is_some_and(|op| scheduler.is_step(own.dispatch, op))
        };
        lanes_in_mask(own.occupied_slots().into()).filter(|slot| is_step(*slot)).count()
    }

    /// Checks if the current state was visited before and the cycle since then is legal.
    fn detect_cycle(&mut self, scheduler: &mut ProgressScheduler, launched: Launched<'_>) {
        let now = scheduler.steps.len();
        let state = self.state_fingerprint(scheduler, launched);
        let first = *scheduler.first_visits.entry(state).or_insert(now);
        // A state that was seen before closes a cycle, which can repeat forever.
        if first == now {
            return;
        }
        let mut states = Vec::with_capacity(scheduler.scheduled_waves.len());
        for wave in scheduler.scheduled_waves.clone() {
            let ready = self.can_step(scheduler, wave, launched);
            let who = &scheduler.invocations[wave];
            let stepped = who.last_step > first;
            // Writes become visible eventually: an invocation that takes steps must not delay one for ever.
            let delays_operation = stepped && who.issued.iter().flatten().any(|issued| *issued < first);
            if delays_operation {
                return;
            }
            states.push(Schedulability { started: who.started, ready: ready || stepped, served: stepped });
        }
        if scheduler.model.is_satisfied(&scheduler.places, &states) {
            scheduler.cycle = Some((first, 0));
        }
    }

    /// Hashes everything that determines the possible continuations.
    fn state_fingerprint(&self, scheduler: &ProgressScheduler, launched: Launched<'_>) -> u64 {
        let mut hasher = DefaultHasher::new();
        for wave in &scheduler.scheduled_waves {
            let own = &self.waves[*wave];
            let Some(dispatch) = launched.dispatches.get(own.dispatch) else { continue };
            let (who, deciding) = (&scheduler.invocations[*wave], scheduler.deciding.get(dispatch.program));
            (who.has_begun, who.started, who.is_spinning).hash(&mut hasher);
            own.fingerprint(deciding.map_or(&[][..], Vec::as_slice), &mut hasher);
            if let Some(program) = launched.program(own.dispatch) {
                for (reference, bound) in dispatch.bindings.iter().enumerate() {
                    let shared = scheduler.shared.get(own.dispatch).and_then(|shared| shared.get(reference));
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
fn deciding_registers(launched: Launched<'_>, number: usize, scheduler: &ProgressScheduler) -> Vec<Register> {
    let Some(program) = launched.programs.get(number) else { return Vec::new() };
    let mut decides = vec![false; program.registers];
    let mut mark = |register: Register| match decides.get_mut(register as usize) {
        Some(known) if register != NONE => !std::mem::replace(known, true),
        _ => false,
    };
    let shared = |reference: u16| {
        let mut users =
            launched.dispatches.iter().enumerate().filter(|(_, dispatch)| dispatch.program == number);
        let is_shared = |index: usize| {
            scheduler
                .shared
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
        let mut has_changed = false;
        let known = decides.clone();
        let is_known = |register: Register| known.get(register as usize).copied().unwrap_or(false);
        let mut mark = |register: Register| {
            if let Some(place) = decides.get_mut(register as usize) {
                has_changed |= !std::mem::replace(place, true);
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
                Op::AddressOffset { to, from, .. } if is_known(to) => mark(from),
                Op::Texel { to, column, row, .. } if is_known(to) => {
                    mark(column);
                    mark(row);
                }
                Op::Apply { number } => {
                    let Some(application) = program.number_instructions.get(number as usize) else {
                        continue;
                    };
                    let words =
                        application.result.iter().map(NumberInstruction::register_count).sum::<Register>();
                    if (application.to..application.to + words).any(is_known) {
                        for (first, shape) in &application.operands {
                            (*first..first + NumberInstruction::register_count(shape)).for_each(&mut mark);
                        }
                    }
                }
                Op::ReadIndexed { to, from, index, words, .. } if is_known(to) => {
                    mark(index);
                    (from..from + words).for_each(&mut mark);
                }
                Op::WriteIndexed { to, index, from, words, .. } if (to..to + words).any(is_known) => {
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
        if !has_changed {
            break;
        }
    }
    (0..program.registers as Register).filter(|register| decides[*register as usize]).collect()
}
