//! The scheduler: chooses which wave runs, which memory operations perform in which lanes, and spontaneous
//! cache events. All choices come from one seed.

mod group;
mod perform;
mod progress_scheduler;
mod sections;

use std::collections::HashMap;

use crate::fault::Fault;
use crate::limits::SUBGROUP_SIZE;
use crate::memory::{MAX_STORE_BUFFERS, Memory};
use crate::program::{
    DEVICE, INVOCATION, LANES, MemoryOp, MemoryOpKind, Program, QUEUE_FAMILY, SUBGROUP, WORKGROUP,
};
use crate::random::{Random, lanes_in_mask};
use crate::wave::{DispatchState, Wave, WaveContext};
pub(crate) use sections::InterlockQueue;

/// Step limits of a phase, scaled by the wave count because each wave is scheduled less often.
#[derive(Clone, Copy, Debug)]
struct StepLimits {
    /// Blocks that all waves together may run without a store.
    idle: u64,
    /// Blocks that all waves together may run in a phase.
    total: u64,
    /// Consecutive choices that may have no effect.
    max_idle_choices: u64,
}

impl StepLimits {
    /// Returns the limits for a number of waves; up to 128 waves get the minimum.
    fn for_waves(waves: usize) -> StepLimits {
        let waves = (waves as u64).max(128);
        StepLimits { idle: waves << 11, total: waves << 20, max_idle_choices: waves << 7 }
    }
}

/// The number of barrier slots for workgroups; for a fault.
const BARRIER_SLOTS: u32 = 256;

/// The progress of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PhaseStatus {
    /// There is more to do.
    Running,
    /// Every invocation has ended.
    Ended,
    /// It would never end, or waits for an event that cannot occur.
    OutOfBudget,
}

/// Random scheduling weights, constant for a while. Mixing different settings shows outcomes that no single
/// one shows.
#[derive(Clone, Copy, Debug)]
struct SchedulerWeights {
    /// Rate of spontaneous cache events.
    cache_event_rate: u32,
    /// Rate of operations that perform out of order.
    reorder_rate: u32,
    /// Rate of prefetches as soon as a pointer is known.
    prefetch_rate: u32,
    /// Rate of loads that bypass clean lines.
    bypass_rate: u32,
    /// Rate of continuing with the same wave.
    same_wave_rate: u32,
    /// Rate of steps that only some lanes take.
    partial_mask_rate: u32,
    /// Rate of atomic stores that enter a store buffer.
    buffered_store_rate: u32,
    store_buffers: usize,
    /// The level whose caches read atomics ahead.
    read_ahead_level: Option<u8>,
}

impl SchedulerWeights {
    const NO_EVENTS: SchedulerWeights = SchedulerWeights {
        cache_event_rate: 0,
        reorder_rate: 0,
        prefetch_rate: 0,
        bypass_rate: 0,
        same_wave_rate: 0,
        partial_mask_rate: 0,
        buffered_store_rate: 0,
        store_buffers: 1,
        read_ahead_level: None,
    };

    fn draw_weights(random: &mut Random) -> SchedulerWeights {
        let mut pick = |choices: [u32; 4]| choices[random.below(4)];
        let buffered = pick([0, 0, 128, 224]);
        // A buffered store is not in memory yet, but loads that are read ahead look only there.
        let ahead = [INVOCATION, SUBGROUP, WORKGROUP, QUEUE_FAMILY][pick([0, 1, 2, 3]) as usize];
        let reads_ahead = buffered == 0 && pick([0, 0, 1, 1]) == 1;
        SchedulerWeights {
            cache_event_rate: pick([0, 32, 80, 140]),
            reorder_rate: pick([0, 80, 160, 256]),
            prefetch_rate: pick([0, 64, 160, 224]),
            bypass_rate: pick([0, 0, 32, 96]),
            same_wave_rate: pick([0, 64, 128, 200]),
            partial_mask_rate: pick([0, 128, 200, 240]),
            buffered_store_rate: buffered,
            store_buffers: pick([2, 2, 3, MAX_STORE_BUFFERS as u32]) as usize,
            read_ahead_level: reads_ahead.then_some(ahead),
        }
    }
}

/// Arrivals of a group of invocations at control barriers.
#[derive(Clone, Copy, Debug, Default)]
struct BarrierArrivals {
    size: u32,
    /// Arrivals at all its barriers so far, at single-instruction barriers and at split ones. An invocation
    /// that arrives again has waited for all, so none is more than one barrier ahead and the sum identifies
    /// the barrier that is full.
    arrived: [u32; 2],
    /// True if it occupies one of the barrier slots; for a fault.
    has_slot: bool,
}

/// A read-modify-write of which only the read was performed, or a store of which only the low half was; for a fault.
#[derive(Clone, Copy, Debug)]
struct HalfPerformedRmw {
    wave: usize,
    slot: u8,
    lane: usize,
    /// The address in words.
    address: u32,
    old: u64,
}

/// Loads that one lane performs once in a round; for a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct ReusedLoad {
    wave: usize,
    lane: usize,
    round: u32,
    /// The operation, or the reference if its loads are merged.
    source: u16,
    /// The address in words.
    address: u32,
}

/// The programs of a plan, and the dispatches of a submission.
#[derive(Clone, Copy)]
pub(crate) struct Launched<'a> {
    pub programs: &'a [Program],
    pub dispatches: &'a [DispatchState],
}

impl<'a> Launched<'a> {
    /// Returns the program of a dispatch.
    pub fn program(self, dispatch: usize) -> Option<&'a Program> {
        self.programs.get(self.dispatches.get(dispatch)?.program)
    }

    /// Returns the dispatch of a wave and its program.
    fn of_wave(self, wave: &Wave) -> Option<(&'a DispatchState, &'a Program)> {
        Some((self.dispatches.get(wave.dispatch)?, self.program(wave.dispatch)?))
    }
}

/// The state of the simulated GPU while dispatches run together.
#[derive(Debug)]
pub(crate) struct Machine {
    pub memory: Memory,
    pub random: Random,
    /// True if shared caches have room for all lines and never evict spontaneously.
    pub roomy: bool,
    fault: Fault,
    waves: Vec<Wave>,
    /// Waves with work left.
    live: Vec<usize>,
    current: usize,
    weights: SchedulerWeights,
    /// The turn order of overlapping fragments.
    pub sections: InterlockQueue,
    /// By wave: the group whose store buffer it uses.
    store_buffer_groups: Vec<u8>,
    /// By wave: the widest level at which it contains all peers of its invocations.
    isolation: Vec<u8>,
    last_round: u32,
    /// By level: barrier arrivals of the subgroups and of the workgroups.
    barrier_arrivals: [Vec<BarrierArrivals>; 2],
    /// Barrier arrivals of reconverged lanes at a barrier in divergent control flow, each used once.
    tangle_arrivals: Vec<BarrierArrivals>,
    /// By wave, kind of barrier and level: the number of barriers that each lane has arrived at.
    tickets: Vec<[[[u32; LANES]; 2]; 2]>,
    ready: Vec<(u8, u64)>,
    half_performed: Vec<HalfPerformedRmw>,
    /// Results of read-modify-writes of vertices, by dispatch, vertex, operation and address; for a fault.
    vertex_rmw_results: HashMap<(usize, u32, u16, u32), u32>,
    /// Values of loads that are performed once; for a fault.
    reused_loads: HashMap<ReusedLoad, u32>,
    limits: StepLimits,
    idle: u64,
    idle_budget: u64,
    budget: u64,
    /// Free barrier slots; for a fault.
    barrier_slots: u32,
    /// True if any reference can have cache lines.
    has_cache_lines: bool,
    /// By dispatch: references that the cache of an invocation may contain.
    cached: Vec<Vec<usize>>,
    /// A wave that no longer runs; for a fault.
    stuck_wave: Option<usize>,
    /// Scratch flag for a look-ahead front end, whose stores do not count.
    lookahead_stored: bool,
    /// The scheduler of a progress model, if one decides which invocation runs.
    progress_scheduler: Option<Box<progress_scheduler::ProgressScheduler>>,
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
            store_buffer_groups: Vec::new(),
            isolation: Vec::new(),
            random,
            roomy: false,
            fault,
            waves: Vec::new(),
            live: Vec::new(),
            current: 0,
            last_round: 0,
            barrier_arrivals: [Vec::new(), Vec::new()],
            tangle_arrivals: Vec::new(),
            tickets: Vec::new(),
            ready: Vec::new(),
            half_performed: Vec::new(),
            vertex_rmw_results: HashMap::new(),
            reused_loads: HashMap::new(),
            idle: 0,
            limits,
            idle_budget: limits.idle,
            budget: limits.total,
            barrier_slots: BARRIER_SLOTS,
            has_cache_lines: false,
            cached: Vec::new(),
            stuck_wave: None,
            lookahead_stored: false,
            progress_scheduler: None,
        }
    }

    pub fn fault(&self) -> Fault {
        self.fault
    }

    /// Begins a submission: clears all barrier arrivals and restores the budget.
    pub fn begin_submission(&mut self, subgroups: usize, workgroups: usize, seed: u64) {
        self.random = Random::new(seed);
        self.waves.clear();
        self.live.clear();
        self.sections = InterlockQueue::default();
        for (meetings, count) in self.barrier_arrivals.iter_mut().zip([subgroups, workgroups]) {
            meetings.clear();
            meetings.resize(count, BarrierArrivals::default());
        }
        self.budget = self.limits.total;
        self.stuck_wave = None;
    }

    /// Sets the number of invocations that a barrier of a subgroup or workgroup waits for.
    pub fn add_barrier_group(&mut self, level: u8, group: u32, size: u32) {
        let of_level = self.barrier_arrivals.get_mut(usize::from(level) - 1);
        if let Some(meeting) = of_level.and_then(|meetings| meetings.get_mut(group as usize)) {
            meeting.size = size;
        }
    }

    /// Starts a phase whose dispatches run together, unordered.
    pub fn start_phase(&mut self, waves: Vec<Wave>, cached: Vec<Vec<usize>>) {
        self.progress_scheduler = None;
        self.waves = waves;
        self.cached = cached;
        self.has_cache_lines = self.memory.caches_anything();
        self.live = (0..self.waves.len()).collect();
        self.tangle_arrivals.clear();
        self.tickets = vec![[[[0; LANES]; 2]; 2]; self.waves.len()];
        self.current = 0;
        self.last_round = 0;
        self.idle = 0;
        self.limits = StepLimits::for_waves(self.waves.len());
        (self.idle_budget, self.budget) = (self.limits.idle, self.limits.total);
        self.barrier_slots = BARRIER_SLOTS;
        self.half_performed.clear();
        self.vertex_rmw_results.clear();
        self.reused_loads.clear();
        self.isolation = isolation_levels(&self.waves);
        self.redraw_weights();
        self.stuck_wave = match self.fault {
            Fault::Hang if self.random.chance(64) => Some(self.random.below(self.waves.len())),
            _ => None,
        };
    }

    /// Makes at most `choices` choices.
    pub fn advance_phase(&mut self, launched: Launched<'_>, choices: u32) -> PhaseStatus {
        if self.progress_scheduler.is_some() {
            return self.advance_scheduler(launched);
        }
        for _ in 0..choices {
            if self.live.is_empty() {
                self.memory.drain_all();
                return PhaseStatus::Ended;
            }
            // Bounds the choices in a row that have no effect, as in a deadlock.
            if !self.choose_and_perform(launched) {
                self.idle += 1;
                if self.idle > self.limits.max_idle_choices {
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

    /// Draws new weights and store-buffer groups; all store buffers are empty here.
    fn redraw_weights(&mut self) {
        self.memory.drain_all();
        self.weights = SchedulerWeights::draw_weights(&mut self.random);
        self.memory.start_read_ahead(self.weights.read_ahead_level);
        self.store_buffer_groups.clear();
        for _ in 0..self.waves.len() {
            self.store_buffer_groups.push(self.random.below(self.weights.store_buffers) as u8);
        }
    }

    fn store_buffer_of(&self, number: usize) -> u8 {
        self.store_buffer_groups.get(number).copied().unwrap_or(0)
    }

    /// Makes one choice; returns false if it had no effect.
    fn choose_and_perform(&mut self, launched: Launched<'_>) -> bool {
        if !(self.live.contains(&self.current) && self.random.chance(self.weights.same_wave_rate)) {
            self.current = self.live[self.random.below(self.live.len())];
        }
        let number = self.current;
        if self.stuck_wave == Some(number) {
            return false;
        }
        let Some((dispatch, program)) = launched.of_wave(&self.waves[number]) else { return false };
        let mut moved = false;
        if self.waves[number].is_within_round(self.last_round) {
            // Without short-circuit: a front end that does not move may wait at a subgroup
            // operation.
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
            let needs_all_lanes = self.waves[number].operation(slot, program).is_some_and(begins);
            if self.random.chance(self.weights.partial_mask_rate) && !needs_all_lanes {
                // Lanes of one operation need not perform together.
                mask &= self.random.next_word();
            }
            if mask != 0 {
                self.perform_operation(number, slot, mask, program, dispatch);
                moved = true;
            }
        }
        if self.weights.buffered_store_rate > 0 && self.random.chance(48) {
            let choice = self.random.next_word();
            self.memory.drain_some((choice >> 40) as u8 % MAX_STORE_BUFFERS as u8, choice);
        }
        if self.weights.cache_event_rate > 0 && self.random.chance(self.weights.cache_event_rate) {
            self.perform_cache_event(number, program, dispatch);
        }
        let wave = &self.waves[number];
        if wave.ended && !wave.is_busy() {
            self.live.retain(|live| *live != number);
            moved = true;
        }
        // This wave's progress cannot have ended the round of another wave.
        let wave = &self.waves[number];
        if moved && (wave.ended || wave.rounds > self.last_round) {
            self.next_round();
        }
        moved
    }

    /// Lets waves begin the next round once all have ended theirs.
    fn next_round(&mut self) {
        let waves = self.live.iter().map(|number| &self.waves[*number]).filter(|wave| !wave.ended);
        let lowest = waves.map(|wave| wave.rounds).min().unwrap_or(self.last_round);
        if lowest > self.last_round {
            self.last_round = lowest;
            // Weights change only between rounds, and after all store buffers have been emptied.
            self.redraw_weights();
        }
    }

    fn run_wave(&mut self, number: usize, program: &Program, dispatch: &DispatchState) -> bool {
        let loop_limit = if self.fault == Fault::LoopsStopSilently { 3 } else { u32::MAX };
        let mut stored = false;
        let before = self.idle_budget;
        let budget_and_stored = (&mut self.idle_budget, &mut stored);
        let mut context = WaveContext {
            prefetch_rate: self.weights.prefetch_rate,
            last_round: self.last_round,
            loop_limit,
            corrupts_results: self.fault == Fault::GarbageResults,
            ..WaveContext::new((program, dispatch), (&mut self.memory, &mut self.random), budget_and_stored)
        };
        let moved = self.waves[number].run_front_end(&mut context);
        // The front end spends the idle budget, which counts for the whole phase too.
        self.budget = self.budget.saturating_sub(before - self.idle_budget);
        if stored {
            // A store may let another invocation leave its loop, so waiting starts again.
            self.idle_budget = self.limits.idle;
        }
        moved
    }

    /// Removes the lanes whose control barrier is not full yet.
    fn wait_at_barriers(&mut self, number: usize, program: &Program) {
        let wave = &self.waves[number];
        let (meetings, tangled, tickets) =
            (&self.barrier_arrivals, &self.tangle_arrivals, &self.tickets[number]);
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
            let required_arrivals = |size: u32| match self.fault {
                Fault::SplitWrongRound if op.split => 0,
                Fault::BarrierLargeWorkgroup if !op.split => size.min(SUBGROUP_SIZE),
                Fault::BarrierPartialSubgroup if !op.split && size > SUBGROUP_SIZE => {
                    size - size % SUBGROUP_SIZE
                }
                fault if fault == half_opens => size.div_ceil(2),
                _ => size,
            };
            let runs_out = self.fault == Fault::BarrierSlotsRunOut && op.execution == WORKGROUP && !op.split;
            for lane in lanes_in_mask(*mask).filter(|_| op.tangled) {
                let meeting = tangled.get(wave.barrier_group_id(*slot, lane) as usize);
                if meeting.is_some_and(|meeting| meeting.arrived[0] < required_arrivals(meeting.size)) {
                    *mask &= !(1 << lane);
                }
            }
            for lane in lanes_in_mask(*mask).filter(|_| !op.tangled) {
                let group = wave.paths.get(lane).map_or(0, |path| path[level]);
                let meeting = meetings.get(level - 1).and_then(|meetings| meetings.get(group as usize));
                let without_slot = |meeting: &BarrierArrivals| runs_out && !meeting.has_slot;
                let open = meeting.is_none_or(|meeting| {
                    // Arrival counters are never reset: all earlier barriers are full, plus the current one.
                    let before = tickets[series][level - 1][lane].saturating_sub(1);
                    without_slot(meeting)
                        || meeting.arrived[series]
                            >= before.wrapping_mul(meeting.size).wrapping_add(required_arrivals(meeting.size))
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
        for lane in lanes_in_mask(mask) {
            if op.tangled {
                let meeting = self.tangle_arrivals.get_mut(wave.barrier_group_id(slot, lane) as usize);
                meeting.into_iter().for_each(|meeting| meeting.arrived[0] += 1);
                continue;
            }
            let group = wave.paths.get(lane).map_or(0, |path| path[level]) as usize;
            let of_level = self.barrier_arrivals.get_mut(level - 1);
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

    /// Returns the context of a front end that looks ahead and stores nothing.
    pub fn wave_context<'a>(
        &'a mut self,
        program: &'a Program,
        dispatch: &'a DispatchState,
    ) -> WaveContext<'a> {
        let budget_and_stored = (&mut self.budget, &mut self.lookahead_stored);
        WaveContext::new((program, dispatch), (&mut self.memory, &mut self.random), budget_and_stored)
    }

    /// Performs a spontaneous event of a shared cache.
    fn perform_shared_cache_event(&mut self, number: usize) {
        let choice = self.random.next_word();
        let level = (choice >> 8) as usize % 4 + 1;
        let levels = (choice >> 16) as u8 % 4 + 1;
        let drops = (choice >> 24).is_multiple_of(4);
        let mask = self.random.mask(64);
        for lane in lanes_in_mask(mask & self.waves[number].lanes) {
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

    /// Performs a spontaneous cache event for some lanes of a wave.
    fn perform_cache_event(&mut self, number: usize, program: &Program, dispatch: &DispatchState) {
        let cached = &self.cached[self.waves[number].dispatch];
        if !self.has_cache_lines {
            if self.memory.reads_ahead() {
                let (mask, level) = (self.random.mask(64), self.random.below(4) as u8);
                self.prefetch_lanes(number, mask, level, program, dispatch);
            }
            return;
        }
        if cached.is_empty() || self.random.chance(80) {
            return self.perform_shared_cache_event(number);
        }
        let choice = self.random.next_word();
        let mask = self.random.mask(64 << (choice & 1));
        let reference = cached[self.random.below(cached.len())];
        let levels = ((choice >> 8) % 5) as u8 + 1;
        match (choice >> 16) % 8 {
            // Lines of an invocation are written back towards a random level.
            0..4 => {
                for lane in lanes_in_mask(mask & self.waves[number].lanes) {
                    let path = self.waves[number].paths[lane];
                    let address = self.memory.invocation_line(path[0], reference, (choice >> 24) as u32);
                    if address != 0 {
                        self.memory.write_back(&path, reference, address, levels);
                    }
                }
            }
            // Clean ones are evicted.
            4 => {
                for lane in lanes_in_mask(mask & self.waves[number].lanes) {
                    let path = self.waves[number].paths[lane];
                    let address = self.memory.invocation_line(path[0], reference, (choice >> 24) as u32);
                    if address != 0 {
                        self.memory.evict(&path, reference, address, (levels - 1).min(DEVICE));
                    }
                }
            }
            _ => self.prefetch_lanes(number, mask, levels.saturating_sub(3), program, dispatch),
        }
    }

    /// Prefetches the line of some load, regardless of the wave's position.
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
        let reads = || program.load_pointers.iter().filter(|(_, memory)| ahead || !is_atomic(*memory));
        let pick = self.random.below(reads().count());
        let Some((pointer, memory)) = reads().nth(pick).copied() else { return };
        let budget_and_stored = (&mut self.budget, &mut self.lookahead_stored);
        let mut context =
            WaveContext::new((program, dispatch), (&mut self.memory, &mut self.random), budget_and_stored);
        self.waves[number].prefetch_slot(pointer, memory, mask, level, &mut context);
    }
}

/// Returns, by wave, the widest of subgroup and workgroup whose invocations are all in the wave.
fn isolation_levels(waves: &[Wave]) -> Vec<u8> {
    let within = |level: u8| {
        let level = usize::from(level);
        let mut owners: Vec<u32> = Vec::new();
        let mut is_isolated = vec![true; waves.len()];
        for (number, wave) in waves.iter().enumerate() {
            for path in &wave.paths {
                let cache = path[level] as usize;
                if owners.len() <= cache {
                    owners.resize(cache + 1, u32::MAX);
                }
                // If two waves have invocations below one cache, neither has it exclusively.
                let owner = owners[cache];
                if owner == u32::MAX {
                    owners[cache] = number as u32;
                } else if owner != number as u32 {
                    is_isolated[number] = false;
                    is_isolated[owner as usize] = false;
                }
            }
        }
        is_isolated
    };
    let (subgroups, workgroups) = (within(SUBGROUP), within(WORKGROUP));
    let widest = |(subgroup, workgroup): (&bool, &bool)| match (subgroup, workgroup) {
        (_, true) => WORKGROUP,
        (true, false) => SUBGROUP,
        (false, false) => INVOCATION,
    };
    subgroups.iter().zip(&workgroups).map(widest).collect()
}
