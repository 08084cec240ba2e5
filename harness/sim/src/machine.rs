//! The scheduler: which wave goes on, which of its memory operations is performed in which lanes, and what the caches do
//! of their own accord. Every choice comes from one seed.

mod group;
mod perform;
mod progress_scheduler;
mod sections;

use std::collections::HashMap;

use crate::device::SUBGROUP_SIZE;
use crate::fault::Fault;
use crate::memory::Memory;
use crate::program::{
    DEVICE, INVOCATION, LANES, MemoryOp, MemoryOpKind, Program, QUEUE_FAMILY, SUBGROUP, WORKGROUP,
};
use crate::random::{Random, lanes};
use crate::store_buffer::GROUPS;
use crate::wave::{DispatchState, Wave, WaveContext};
pub(crate) use sections::InterlockQueue;

/// What waves may do at most; more where there are more of them, since chance comes to each the more seldom.
#[derive(Clone, Copy, Debug)]
struct StepLimits {
    /// Blocks that all waves together may run while nothing is stored.
    idle: u64,
    /// Blocks that all waves together may run from the start of a phase to its end.
    whole: u64,
    /// Choices in a row that may come to nothing.
    patience: u64,
}

impl StepLimits {
    /// For so many waves: all have the least up to 128 of them, and from there on each has its part.
    fn for_waves(waves: usize) -> StepLimits {
        let waves = (waves as u64).max(128);
        StepLimits { idle: waves << 11, whole: waves << 20, patience: waves << 7 }
    }
}

/// Workgroups that may meet at once; for a fault.
const BARRIER_SLOTS: u32 = 256;

/// How far a machine has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PhaseStatus {
    /// There is more to do.
    Running,
    /// Every invocation has ended.
    Ended,
    /// It would go on for ever, or waits for what cannot come.
    OutOfBudget,
}

/// What is likely for a while: a mixture of temperaments shows what none of them shows alone.
#[derive(Clone, Copy, Debug)]
struct SchedulerWeights {
    /// Cache events.
    cache_event_rate: u32,
    /// Operations taken out of order.
    reorder_rate: u32,
    /// Lines fetched as soon as their pointer is known.
    warm_up: u32,
    /// Loads that go past clean lines.
    bypass: u32,
    /// Staying with a wave.
    same_wave_rate: u32,
    /// Steps that only some lanes take.
    partial_mask_rate: u32,
    /// Atomic stores that stay in a store buffer for a while.
    buffered: u32,
    /// Groups that share a store buffer.
    groups: usize,
    /// The level whose caches read atomics ahead.
    ahead: Option<u8>,
}

impl SchedulerWeights {
    /// Nothing happens of its own accord.
    const STILL: SchedulerWeights = SchedulerWeights {
        cache_event_rate: 0,
        reorder_rate: 0,
        warm_up: 0,
        bypass: 0,
        same_wave_rate: 0,
        partial_mask_rate: 0,
        buffered: 0,
        groups: 1,
        ahead: None,
    };

    fn draw_weights(random: &mut Random) -> SchedulerWeights {
        let mut pick = |choices: [u32; 4]| choices[random.below(4)];
        let buffered = pick([0, 0, 128, 224]);
        // A store that is kept back is not in memory yet, where loads that go ahead look.
        let ahead = [INVOCATION, SUBGROUP, WORKGROUP, QUEUE_FAMILY][pick([0, 1, 2, 3]) as usize];
        let goes_ahead = buffered == 0 && pick([0, 0, 1, 1]) == 1;
        SchedulerWeights {
            cache_event_rate: pick([0, 32, 80, 140]),
            reorder_rate: pick([0, 80, 160, 256]),
            warm_up: pick([0, 64, 160, 224]),
            bypass: pick([0, 0, 32, 96]),
            same_wave_rate: pick([0, 64, 128, 200]),
            partial_mask_rate: pick([0, 128, 200, 240]),
            buffered,
            groups: pick([2, 2, 3, GROUPS as u32]) as usize,
            ahead: goes_ahead.then_some(ahead),
        }
    }
}

/// Invocations that meet in control barriers.
#[derive(Clone, Copy, Debug, Default)]
struct BarrierArrivals {
    size: u32,
    /// Arrivals at all its barriers so far, those that are one instruction and split ones. Nobody is more than one ahead of
    /// another, since who arrives again has waited for all: so a sum says which round is full.
    arrived: [u32; 2],
    /// Whether it has one of the slots that barriers wait in; for a fault.
    has_slot: bool,
}

/// A read-modify-write of which only the read was done, or a store of which only the low half was; a fault.
#[derive(Clone, Copy, Debug)]
struct HalfPerformedRmw {
    wave: usize,
    slot: u8,
    lane: usize,
    /// The word, in words.
    address: u32,
    old: u64,
}

/// Dispatches that run together.
#[derive(Debug)]
pub(crate) struct Machine {
    pub memory: Memory,
    pub random: Random,
    /// Whether the caches that dispatches share have room for all that they fetch: they drop nothing of their own accord.
    pub roomy: bool,
    fault: Fault,
    waves: Vec<Wave>,
    /// Waves that have something left.
    live: Vec<usize>,
    current: usize,
    weights: SchedulerWeights,
    /// Whose turn it is where fragments overlap.
    pub sections: InterlockQueue,
    /// By wave: the group whose store buffer it uses.
    groups: Vec<u8>,
    /// By wave: the widest level at which it holds all invocations that any of its own meets.
    alone: Vec<u8>,
    last_round: u32,
    /// By level: of the subgroups and of the workgroups.
    meetings: [Vec<BarrierArrivals>; 2],
    /// Of lanes that have come together to a barrier that a branch keeps others from, each once.
    tangled: Vec<BarrierArrivals>,
    /// By wave, kind of barrier and level: the barriers that each lane has arrived at so far.
    tickets: Vec<[[[u32; LANES]; 2]; 2]>,
    ready: Vec<(u8, u64)>,
    halves: Vec<HalfPerformedRmw>,
    /// What read-modify-writes have given vertices: by dispatch, vertex, operation and address; a fault.
    vertex_rmw_results: HashMap<(usize, u32, u16, u32), u32>,
    limits: StepLimits,
    idle: u64,
    idle_budget: u64,
    budget: u64,
    /// Workgroups that may still meet beside those that do; for a fault.
    barrier_slots: u32,
    /// Whether any line can be in a cache at all.
    caches: bool,
    /// By dispatch: references that an invocation's own cache may hold.
    cached: Vec<Vec<usize>>,
    /// A wave that no longer runs; a fault.
    stuck: Option<usize>,
    /// Where a look ahead notes what it would store.
    lookahead_stored: bool,
    /// Who goes on where a progress model decides that.
    walk: Option<Box<progress_scheduler::ProgressScheduler>>,
}

impl Machine {
    pub fn new(fault: Fault) -> Machine {
        let mut random = Random::new(0);
        let mut memory = Memory::default();
        memory.fault = fault;
        let limits = StepLimits::for_waves(0);
        Machine {
            memory,
            weights: SchedulerWeights::draw_weights(&mut random),
            sections: InterlockQueue::default(),
            groups: Vec::new(),
            alone: Vec::new(),
            random,
            roomy: false,
            fault,
            waves: Vec::new(),
            live: Vec::new(),
            current: 0,
            last_round: 0,
            meetings: [Vec::new(), Vec::new()],
            tangled: Vec::new(),
            tickets: Vec::new(),
            ready: Vec::new(),
            halves: Vec::new(),
            vertex_rmw_results: HashMap::new(),
            idle: 0,
            limits,
            idle_budget: limits.idle,
            budget: limits.whole,
            barrier_slots: BARRIER_SLOTS,
            caches: false,
            cached: Vec::new(),
            stuck: None,
            lookahead_stored: false,
            walk: None,
        }
    }

    /// The fault that it has.
    pub fn fault(&self) -> Fault {
        self.fault
    }

    /// Begins a submission: nobody has arrived anywhere, and the budget is full.
    pub fn begin_submission(&mut self, subgroups: usize, workgroups: usize, seed: u64) {
        self.random = Random::new(seed);
        self.waves.clear();
        self.live.clear();
        self.sections = InterlockQueue::default();
        for (meetings, count) in self.meetings.iter_mut().zip([subgroups, workgroups]) {
            meetings.clear();
            meetings.resize(count, BarrierArrivals::default());
        }
        self.budget = self.limits.whole;
        self.stuck = None;
    }

    /// Says how many invocations meet in a subgroup and in a workgroup.
    pub fn add_barrier_group(&mut self, level: u8, group: u32, size: u32) {
        let of_level = self.meetings.get_mut(usize::from(level) - 1);
        if let Some(meeting) = of_level.and_then(|meetings| meetings.get_mut(group as usize)) {
            meeting.size = size;
        }
    }

    /// Starts a phase: dispatches that nothing orders run together.
    pub fn start_phase(&mut self, waves: Vec<Wave>, cached: Vec<Vec<usize>>) {
        self.walk = None;
        self.waves = waves;
        self.cached = cached;
        self.caches = self.memory.caches_anything();
        self.live = (0..self.waves.len()).collect();
        self.tangled.clear();
        self.tickets = vec![[[[0; LANES]; 2]; 2]; self.waves.len()];
        self.current = 0;
        self.last_round = 0;
        self.idle = 0;
        self.limits = StepLimits::for_waves(self.waves.len());
        (self.idle_budget, self.budget) = (self.limits.idle, self.limits.whole);
        self.barrier_slots = BARRIER_SLOTS;
        self.halves.clear();
        self.vertex_rmw_results.clear();
        self.alone = isolation_levels(&self.waves);
        self.redraw_weights();
        self.stuck = match self.fault {
            Fault::Hang if self.random.chance(64) => Some(self.random.below(self.waves.len())),
            _ => None,
        };
    }

    /// Makes at most `choices` choices.
    pub fn advance_phase(
        &mut self,
        programs: &[Program],
        dispatches: &[DispatchState],
        choices: u32,
    ) -> PhaseStatus {
        if self.walk.is_some() {
            return self.advance_scheduler(programs, dispatches);
        }
        for _ in 0..choices {
            if self.live.is_empty() {
                self.memory.drain_all();
                return PhaseStatus::Ended;
            }
            if !self.choose_and_perform(programs, dispatches) {
                self.idle += 1;
                if self.idle > self.limits.patience {
                    return PhaseStatus::OutOfBudget;
                }
            } else {
                self.idle = 0;
            }
            if self.idle_budget == 0 || self.budget == 0 {
                return PhaseStatus::OutOfBudget;
            }
        }
        if self.live.is_empty() {
            self.memory.drain_all();
            return PhaseStatus::Ended;
        }
        PhaseStatus::Running
    }

    /// Another temperament, and other groups for store buffers, which are empty by then.
    fn redraw_weights(&mut self) {
        self.memory.drain_all();
        self.weights = SchedulerWeights::draw_weights(&mut self.random);
        self.memory.begin_ahead(self.weights.ahead);
        self.groups.clear();
        for _ in 0..self.waves.len() {
            self.groups.push(self.random.below(self.weights.groups) as u8);
        }
    }

    fn store_buffer_of(&self, number: usize) -> u8 {
        self.groups.get(number).copied().unwrap_or(0)
    }

    /// One choice; false when it came to nothing.
    fn choose_and_perform(&mut self, programs: &[Program], dispatches: &[DispatchState]) -> bool {
        if !(self.live.contains(&self.current) && self.random.chance(self.weights.same_wave_rate)) {
            self.current = self.live[self.random.below(self.live.len())];
        }
        let number = self.current;
        if self.stuck == Some(number) {
            return false;
        }
        let Some(dispatch) = dispatches.get(self.waves[number].dispatch) else { return false };
        let Some(program) = programs.get(dispatch.program) else { return false };
        let mut moved = false;
        if self.waves[number].is_within_round(self.last_round) {
            moved = self.run_wave(number, program, dispatch) | self.execute_subgroup_op(number, program);
        }
        self.waves[number].collect_ready(&mut self.ready);
        self.wait_at_barriers(number, program);
        self.wait_for_sections(number, program);
        if !self.ready.is_empty() {
            let out_of_order = self.ready.len() > 1 && self.random.chance(self.weights.reorder_rate);
            let pick = if out_of_order { self.random.below(self.ready.len()) } else { 0 };
            let (slot, mut mask) = self.ready[pick];
            let begins = |op: &MemoryOp| matches!(op.kind, MemoryOpKind::SectionBegin { .. });
            let together = self.waves[number].operation(slot, program).is_some_and(begins);
            if self.random.chance(self.weights.partial_mask_rate) && !together {
                mask &= self.random.word();
            }
            if mask != 0 {
                self.perform_operation(number, slot, mask, program, dispatch);
                moved = true;
            }
        }
        if self.weights.buffered > 0 && self.random.chance(48) {
            let choice = self.random.word();
            self.memory.drain_some((choice >> 40) as u8 % GROUPS as u8, choice);
        }
        if self.weights.cache_event_rate > 0 && self.random.chance(self.weights.cache_event_rate) {
            self.perform_cache_event(number, program, dispatch);
        }
        let wave = &self.waves[number];
        if wave.ended && !wave.is_busy() {
            self.live.retain(|live| *live != number);
            moved = true;
        }
        // Nobody else's round has ended by what this wave did.
        let wave = &self.waves[number];
        if moved && (wave.ended || wave.rounds > self.last_round) {
            self.next_round();
        }
        moved
    }

    /// Lets waves begin another round when all have ended theirs.
    fn next_round(&mut self) {
        let waves = self.live.iter().map(|number| &self.waves[*number]).filter(|wave| !wave.ended);
        let lowest = waves.map(|wave| wave.rounds).min().unwrap_or(self.last_round);
        if lowest > self.last_round {
            self.last_round = lowest;
            self.redraw_weights();
        }
    }

    fn run_wave(&mut self, number: usize, program: &Program, dispatch: &DispatchState) -> bool {
        let loop_limit = if self.fault == Fault::LoopsStopSilently { 3 } else { u32::MAX };
        let mut stored = false;
        let before = self.idle_budget;
        let left = (&mut self.idle_budget, &mut stored);
        let mut surroundings = WaveContext {
            warm_up: self.weights.warm_up,
            last_round: self.last_round,
            loop_limit,
            garbage: self.fault == Fault::GarbageResults,
            ..WaveContext::new((program, dispatch), (&mut self.memory, &mut self.random), left)
        };
        let moved = self.waves[number].run_front_end(&mut surroundings);
        self.budget = self.budget.saturating_sub(before - self.idle_budget);
        if stored {
            self.idle_budget = self.limits.idle;
        }
        moved
    }

    /// Takes away the lanes whose control barrier is not full yet.
    fn wait_at_barriers(&mut self, number: usize, program: &Program) {
        let wave = &self.waves[number];
        let (meetings, tangled, tickets) = (&self.meetings, &self.tangled, &self.tickets[number]);
        for (slot, mask) in &mut self.ready {
            let Some(op) = wave.operation(*slot, program).filter(|op| op.kind == MemoryOpKind::Leave) else {
                continue;
            };
            let no_wait = if op.split { Fault::SplitIgnored } else { Fault::BarrierDoesNotWait };
            if self.fault == no_wait {
                continue;
            }
            let (level, series) = (usize::from(op.execution), usize::from(op.split));
            let half_opens = if op.split { Fault::SplitWaitTooEarly } else { Fault::BarrierOpensEarly };
            let full = |size: u32| match self.fault {
                Fault::SplitWrongRound if op.split => 0,
                Fault::BarrierLargeWorkgroup if !op.split => size.min(SUBGROUP_SIZE),
                Fault::BarrierPartialSubgroup if !op.split && size > SUBGROUP_SIZE => {
                    size - size % SUBGROUP_SIZE
                }
                fault if fault == half_opens => size.div_ceil(2),
                _ => size,
            };
            let runs_out = self.fault == Fault::BarrierSlotsRunOut && op.execution == WORKGROUP && !op.split;
            for lane in lanes(*mask).filter(|_| op.tangled) {
                let meeting = tangled.get(wave.participant_mask(*slot, lane) as usize);
                if meeting.is_some_and(|meeting| meeting.arrived[0] < full(meeting.size)) {
                    *mask &= !(1 << lane);
                }
            }
            for lane in lanes(*mask).filter(|_| !op.tangled) {
                let group = wave.paths.get(lane).map_or(0, |path| path[level]);
                let meeting = meetings.get(level - 1).and_then(|meetings| meetings.get(group as usize));
                let without_slot = |meeting: &BarrierArrivals| runs_out && !meeting.has_slot;
                let open = meeting.is_none_or(|meeting| {
                    let before = tickets[series][level - 1][lane].saturating_sub(1);
                    without_slot(meeting)
                        || meeting.arrived[series]
                            >= before.wrapping_mul(meeting.size).wrapping_add(full(meeting.size))
                });
                if !open {
                    *mask &= !(1 << lane);
                }
            }
        }
        self.ready.retain(|(_, mask)| *mask != 0);
    }

    fn arrive_at_barrier(&mut self, number: usize, slot: u8, mask: u64, op: &MemoryOp) {
        self.idle_budget = self.limits.idle;
        let (level, series) = (usize::from(op.execution), usize::from(op.split));
        let (wave, tickets) = (&self.waves[number], &mut self.tickets[number]);
        for lane in lanes(mask) {
            if op.tangled {
                let meeting = self.tangled.get_mut(wave.participant_mask(slot, lane) as usize);
                meeting.into_iter().for_each(|meeting| meeting.arrived[0] += 1);
                continue;
            }
            let group = wave.paths.get(lane).map_or(0, |path| path[level]) as usize;
            let of_level = self.meetings.get_mut(level - 1);
            let Some(meeting) = of_level.and_then(|meetings| meetings.get_mut(group)) else { continue };
            tickets[series][level - 1][lane] += 1;
            if op.execution == WORKGROUP && !meeting.has_slot && self.barrier_slots > 0 {
                meeting.has_slot = true;
                self.barrier_slots -= 1;
            }
            let forgotten = self.fault == Fault::SplitArrivalForgotten && op.split && self.random.chance(8);
            meeting.arrived[series] += u32::from(!forgotten);
        }
    }

    /// What a front end needs that looks ahead and stores nothing.
    pub fn wave_context<'a>(
        &'a mut self,
        program: &'a Program,
        dispatch: &'a DispatchState,
    ) -> WaveContext<'a> {
        let left = (&mut self.budget, &mut self.lookahead_stored);
        WaveContext::new((program, dispatch), (&mut self.memory, &mut self.random), left)
    }

    /// Something that a shared cache does of its own accord.
    fn perform_shared_cache_event(&mut self, number: usize) {
        let choice = self.random.word();
        let level = (choice >> 8) as usize % 4 + 1;
        let levels = (choice >> 16) as u8 % 4 + 1;
        let drops = (choice >> 24).is_multiple_of(4);
        let mask = self.random.mask(64);
        for lane in lanes(mask & self.waves[number].lanes) {
            let cache = self.waves[number].paths[lane][level];
            if drops && self.roomy && level >= usize::from(QUEUE_FAMILY) {
                continue;
            }
            if drops {
                self.memory.evict_shared(level, cache);
            } else {
                self.memory.write_back_shared(level, cache, (choice >> 32) as usize, levels);
            }
        }
    }

    /// Something that caches do of their own accord, for some lanes of a wave.
    fn perform_cache_event(&mut self, number: usize, program: &Program, dispatch: &DispatchState) {
        let cached = &self.cached[self.waves[number].dispatch];
        if !self.caches {
            if self.memory.reads_ahead() {
                let (mask, level) = (self.random.mask(64), self.random.below(4) as u8);
                self.prefetch_lanes(number, mask, level, program, dispatch);
            }
            return;
        }
        if cached.is_empty() || self.random.chance(80) {
            return self.perform_shared_cache_event(number);
        }
        let choice = self.random.word();
        let mask = self.random.mask(64 << (choice & 1));
        let reference = cached[self.random.below(cached.len())];
        let deep = ((choice >> 8) % 5) as u8 + 1;
        match (choice >> 16) % 8 {
            0..4 => {
                for lane in lanes(mask & self.waves[number].lanes) {
                    let path = self.waves[number].paths[lane];
                    let address = self.memory.own_line(path[0], reference, (choice >> 24) as u32);
                    if address != 0 {
                        self.memory.write_back(&path, reference, address, deep);
                    }
                }
            }
            4 => {
                for lane in lanes(mask & self.waves[number].lanes) {
                    let path = self.waves[number].paths[lane];
                    let address = self.memory.own_line(path[0], reference, (choice >> 24) as u32);
                    if address != 0 {
                        self.memory.evict(&path, reference, address, (deep - 1).min(DEVICE));
                    }
                }
            }
            _ => self.prefetch_lanes(number, mask, deep.saturating_sub(3), program, dispatch),
        }
    }

    /// Fetches what some load reads, wherever the wave is.
    fn prefetch_lanes(
        &mut self,
        number: usize,
        mask: u64,
        level: u8,
        program: &Program,
        dispatch: &DispatchState,
    ) {
        let ahead = self.memory.reads_ahead();
        let is_atomic =
            |memory: u16| program.memory.get(usize::from(memory)).is_some_and(MemoryOp::is_atomic);
        let reads = || program.reads.iter().filter(|(_, memory)| ahead || !is_atomic(*memory));
        let pick = self.random.below(reads().count());
        let Some((pointer, memory)) = reads().nth(pick).copied() else { return };
        let left = (&mut self.budget, &mut self.lookahead_stored);
        let mut surroundings =
            WaveContext::new((program, dispatch), (&mut self.memory, &mut self.random), left);
        self.waves[number].prefetch_slot(pointer, memory, mask, level, &mut surroundings);
    }
}

/// By wave: the widest of subgroup and workgroup all of whose invocations are in the wave, for every invocation of it.
fn isolation_levels(waves: &[Wave]) -> Vec<u8> {
    let within = |level: u8| {
        let level = usize::from(level);
        let mut owners: Vec<u32> = Vec::new();
        let mut alone = vec![true; waves.len()];
        for (number, wave) in waves.iter().enumerate() {
            for path in &wave.paths {
                let cache = path[level] as usize;
                if owners.len() <= cache {
                    owners.resize(cache + 1, u32::MAX);
                }
                let owner = owners[cache];
                if owner == u32::MAX {
                    owners[cache] = number as u32;
                } else if owner != number as u32 {
                    alone[number] = false;
                    alone[owner as usize] = false;
                }
            }
        }
        alone
    };
    let (subgroups, workgroups) = (within(SUBGROUP), within(WORKGROUP));
    let widest = |(subgroup, workgroup): (&bool, &bool)| match (subgroup, workgroup) {
        (_, true) => WORKGROUP,
        (true, false) => SUBGROUP,
        (false, false) => INVOCATION,
    };
    subgroups.iter().zip(&workgroups).map(widest).collect()
}
