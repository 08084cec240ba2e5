//! The scheduler: the order in which invocations run, and where they meet.
//!
//! The first schedules are fixed (forward, backward, round-robin). The others are random, with preemption at
//! atomics and barriers. A third of them starve a subgroup or lane after a few events, which finds bugs of
//! small depth as PCT does (Burckhardt et al., ASPLOS 2010, <https://doi.org/10.1145/1736020.1736040>),
//! without its probability bound.
//!
//! A walk ends in a deadlock report only if all running invocations repeat a loop with unchanged state
//! ([`Interpreter::find_spin`]).

use std::collections::hash_map::DefaultHasher;
use std::hash::Hasher;
use std::rc::Rc;

use litmus::Scope;
use spirv_reader::{BarrierPart, SpirvOperation};

use super::sync::{self, is_whole_barrier};
use entry_point::order::{scope_from_number, semantics_from_number};
use entry_point::{DeadlinePredicate, FindingCause, Problem, Refusal, WalkLimit, malformed, unsupported};

use super::deadlock::SpinningInvocation;
use super::program::{DecodedInstruction, DecodedProgram};
use super::state::{
    BarrierSemantics, Interpreter, Invocation, InvocationCtx, InvocationState, SiteFinding, WalkSetup,
    WorkgroupState,
};
use super::step::{Step, StepInterrupt};
use super::value::ConcreteValue;

/// Upper bound on the steps of all walks of a kernel, except the first walk of a large grid.
pub(super) const MAX_STEPS: u64 = 150_000_000;
/// The first walk has this many steps for each invocation, if these are more.
const STEPS_PER_INVOCATION: u64 = 1 << 13;
/// Steps after which an invocation is preempted.
const QUANTUM: u64 = 20_000;
/// Steps between two checks of the deadline: a clock is slow beside an invocation of few steps.
const STEPS_PER_CHECK: u64 = 1 << 13;
/// Iterations from which a loop counts as one that may be endless.
const MANY_ITERATIONS: u32 = 1_000;
/// Rounds without a change before the first deadlock check.
const IDLE_ROUNDS: u32 = 3;
/// Rounds without a change before lanes are forced past a lane whose loop does not repeat.
const FORCE_AFTER_ROUNDS: u32 = 100;
/// Steps within which a spin loop has to repeat its state.
const SPIN_STEPS: u32 = 20_000;

/// The policy of one schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SchedulePolicy {
    /// In ascending order, each as far as it can run.
    Forward,
    /// In descending order, each as far as it can run.
    Backward,
    /// In turn, each up to its next atomic or barrier.
    RoundRobin,
    /// In random order, with random preemption at atomics and barriers.
    Random(u64),
    /// Random, with a subgroup or lane starved from the start or after some events, until nothing else can
    /// run.
    Starve(u64),
}

impl SchedulePolicy {
    /// Returns the policy of the schedule with the given number.
    pub fn for_schedule(order: u64, seed: u64) -> SchedulePolicy {
        let policy_seed = order.wrapping_add(seed.wrapping_mul(0x2545_f491_4f6c_dd1d));
        match order {
            0 => SchedulePolicy::Forward,
            1 => SchedulePolicy::Backward,
            2 => SchedulePolicy::RoundRobin,
            _ if order.is_multiple_of(3) => SchedulePolicy::Starve(policy_seed),
            _ => SchedulePolicy::Random(policy_seed),
        }
    }

    fn random_seed(self) -> Option<u64> {
        match self {
            SchedulePolicy::Random(seed) | SchedulePolicy::Starve(seed) => Some(seed),
            SchedulePolicy::Forward | SchedulePolicy::Backward | SchedulePolicy::RoundRobin => None,
        }
    }
}

/// The lanes that a schedule starves.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StarvedLanes {
    /// The first invocation and the number of invocations.
    pub lanes: Option<(u32, u32)>,
    /// A lane that runs nevertheless.
    pub except: Option<u32>,
    /// Atomics and barriers that they still execute before they are starved.
    pub delay: u64,
    /// True while they may run.
    pub is_released: bool,
}

impl StarvedLanes {
    fn is_starved_lane(self, number: u32) -> bool {
        let is_in_range = self.lanes.is_some_and(|(first, count)| number.wrapping_sub(first) < count);
        is_in_range && self.except != Some(number)
    }

    fn is_held_back(self, number: u32) -> bool {
        !self.is_released && self.delay == 0 && self.is_starved_lane(number)
    }
}

/// A xorshift generator: schedules must not depend on a library version.
pub(super) struct ScheduleRng(u64);

impl ScheduleRng {
    pub fn new(seed: u64) -> ScheduleRng {
        // Odd, hence not zero: xorshift maps zero to itself.
        ScheduleRng(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn next_below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        // The low bits of xorshift are the weakest.
        (self.0 >> 11) as usize % bound.max(1)
    }

    fn shuffle_slice<T>(&mut self, all: &mut [T]) {
        // Fisher–Yates.
        for at in (1..all.len()).rev() {
            all.swap(at, self.next_below(at + 1));
        }
    }
}

impl WalkSetup {
    /// Returns the steps of a schedule, and of those before it, of at most `most` for a kernel.
    pub(super) fn step_budget(&self, order: u64, most: u64) -> u64 {
        if order > 0 || most != MAX_STEPS {
            return most;
        }
        let invocations = u64::from(self.workgroup_count()) * u64::from(self.numbering().workgroup_size);
        most.max(invocations * STEPS_PER_INVOCATION)
    }
}

impl Interpreter<'_> {
    /// Executes the whole grid under one policy, within `budget` steps.
    pub(super) fn run_schedule(&mut self, plan: SchedulePolicy, budget: u64) -> Result<(), Refusal> {
        let count = self.setup.workgroup_count();
        let mut unfinished: Vec<u32> = (0..count).collect();
        let mut random = ScheduleRng::new(plan.random_seed().unwrap_or(1));
        if plan == SchedulePolicy::Backward {
            unfinished.reverse();
        }
        let mut starved = self.choose_starved_lanes(plan, &mut random);
        let (mut idle, mut max_idle_rounds) = (0, IDLE_ROUNDS);
        while !unfinished.is_empty() {
            let before = self.changes;
            if plan.random_seed().is_some() {
                random.shuffle_slice(&mut unfinished);
            }
            // Nothing else can make progress, so the starved lanes must run. Otherwise a fair
            // program would seem to hang.
            starved.is_released = idle > 0;
            unfinished = self.run_round(unfinished, plan, &mut starved, &mut random, budget)?;
            if self.find_starved_lane(&unfinished) {
                return Ok(());
            }
            idle = if self.changes == before { idle + 1 } else { 0 };
            if idle > max_idle_rounds {
                if self.check_deadlock(max_idle_rounds > FORCE_AFTER_ROUNDS)? {
                    return Ok(());
                }
                // A check probes every running invocation, so checks become rarer the longer a walk
                // takes.
                (idle, max_idle_rounds) = (0, max_idle_rounds.saturating_mul(2));
            }
        }
        Ok(())
    }

    /// Runs every workgroup once; returns those that have not ended.
    pub(super) fn run_round(
        &mut self,
        pending: Vec<u32>,
        plan: SchedulePolicy,
        starved: &mut StarvedLanes,
        random: &mut ScheduleRng,
        budget: u64,
    ) -> Result<Vec<u32>, Refusal> {
        let mut unfinished = Vec::new();
        for index in pending {
            // A workgroup starts when it first runs, so that a large grid needs memory only for
            // those that have not ended.
            let mut workgroup = match self.workgroups.remove(&index) {
                Some(workgroup) => workgroup,
                None => self.start_workgroup(index)?,
            };
            self.run_workgroup(&mut workgroup, plan, starved, random, budget)?;
            if workgroup.invocations.iter().any(|invocation| invocation.state != InvocationState::Ended) {
                self.workgroups.insert(index, workgroup);
                unfinished.push(index);
            } else {
                // The next workgroup reuses the memory of an ended one; only its size is reported.
                let byte_counts = workgroup.objects.iter().map(|object| object.shadow.byte_counts());
                let byte_counts = byte_counts.fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1));
                self.largest_shadow =
                    if byte_counts.1 > self.largest_shadow.1 { byte_counts } else { self.largest_shadow };
                self.spare_workgroup = Some(workgroup);
            }
        }
        Ok(unfinished)
    }

    /// Chooses the starved subgroup or lane.
    fn choose_starved_lanes(&self, plan: SchedulePolicy, random: &mut ScheduleRng) -> StarvedLanes {
        let SchedulePolicy::Starve(_) = plan else { return StarvedLanes::default() };
        let each: u32 = self.setup.local_size.iter().product::<u32>().max(1);
        let size = self.setup.subgroup_size.clamp(1, each);
        let count = self.setup.workgroup_count();
        let workgroup = random.next_below(count as usize) as u32;
        let first = workgroup * each + random.next_below(each.div_ceil(size) as usize) as u32 * size;
        let lanes = match random.next_below(2) {
            0 => (first, size.min((workgroup + 1) * each - first)),
            _ => (workgroup * each + random.next_below(each as usize) as u32, 1),
        };
        // Small delays are preferred: most bugs need few events, wherever these occur.
        let after = 1 << random.next_below(6);
        StarvedLanes { lanes: Some(lanes), delay: random.next_below(after) as u64, ..StarvedLanes::default() }
    }

    /// Runs the invocations of a workgroup until they end or only wait for memory.
    fn run_workgroup(
        &mut self,
        workgroup: &mut WorkgroupState,
        plan: SchedulePolicy,
        starved: &mut StarvedLanes,
        random: &mut ScheduleRng,
        budget: u64,
    ) -> Result<(), Refusal> {
        loop {
            let can_run = |invocation: &Invocation| {
                invocation.state == InvocationState::Running && !starved.is_held_back(invocation.number)
            };
            let mut order: Vec<usize> = (0..workgroup.invocations.len())
                .filter(|index| can_run(&workgroup.invocations[*index]))
                .collect();
            // After this many events, the next invocation runs.
            let events = match plan {
                SchedulePolicy::Forward => u64::MAX,
                SchedulePolicy::Backward => {
                    order.reverse();
                    u64::MAX
                }
                SchedulePolicy::RoundRobin => 1,
                SchedulePolicy::Random(_) | SchedulePolicy::Starve(_) => {
                    random.shuffle_slice(&mut order);
                    1 + random.next_below(6) as u64
                }
            };
            for index in order {
                if self.steps > budget {
                    let bound = usize::try_from(budget).unwrap_or(usize::MAX);
                    let otherwise = Problem::Exhausted { what: "steps", bound, remedy: "" };
                    return Err(self.limit_refusal(workgroup, WalkLimit::Steps(budget), otherwise));
                }
                if self.steps >= self.next_check {
                    self.next_check = self.steps + STEPS_PER_CHECK;
                    if self.setup.deadline.as_ref().is_some_and(DeadlinePredicate::has_passed) {
                        return Err(self.limit_refusal(workgroup, WalkLimit::Time, Problem::OutOfTime));
                    }
                }
                let number = workgroup.invocations[index].number;
                let mut ctx = InvocationCtx { workgroup, index };
                // Lanes that will be starved first execute `delay` events; each event counts down.
                if starved.delay == 0 || !starved.is_starved_lane(number) {
                    if !starved.is_held_back(number) {
                        self.run_invocation(&mut ctx, events)?;
                    }
                    continue;
                }
                let before = self.events;
                self.run_invocation(&mut ctx, events.min(starved.delay))?;
                starved.delay = starved.delay.saturating_sub(self.events - before);
            }
            let is_waiting = |one: &Invocation| matches!(one.state, InvocationState::Waiting(_));
            if !workgroup.invocations.iter().any(is_waiting) {
                return Ok(());
            }
            // Without short-circuit: each kind of meeting may be complete.
            let has_completed_other = !self.setup.has_only_workgroup_barriers
                && self.complete_subgroup_operations(workgroup, false)?
                    | self.complete_split_waits(workgroup)?
                    | self.resume_interlock_waits(workgroup)?;
            let has_completed_wait = has_completed_other | self.complete_workgroup_barrier(workgroup)?;
            if !has_completed_wait {
                return Ok(());
            }
            // Other workgroups get a turn, so that invocations of different workgroups interleave.
            if plan == SchedulePolicy::RoundRobin || plan.random_seed().is_some() && random.next_below(3) == 0
            {
                return Ok(());
            }
        }
    }

    /// Returns the refusal of a limit: at the loop of a workgroup with the most iterations, if it may be endless.
    fn limit_refusal(&self, workgroup: &WorkgroupState, limit: WalkLimit, otherwise: Problem) -> Refusal {
        let frames = workgroup.invocations.iter().flat_map(|invocation| &invocation.frames);
        let loops = frames.flat_map(|frame| frame.loops.iter().map(|of| (frame.function, *of)));
        let most = loops.max_by_key(|(_, (_, iterations))| *iterations);
        let Some((function, (header, iterations))) = most.filter(|of| of.1.1 >= MANY_ITERATIONS) else {
            return otherwise.into();
        };
        let function = &self.program.functions[function];
        let first = function.labels.get(&header).copied().unwrap_or(0);
        // The label may have no line.
        let mut sites = (first..function.code.len()).map(|at| function.first_site + at as u32);
        let site = sites.find(|site| self.program.source_place(*site).0 > 0);
        let place = self.source_position(site.unwrap_or(function.first_site + first as u32));
        Problem::LongLoop { limit, iterations }.located_at(place)
    }

    fn run_invocation(&mut self, ctx: &mut InvocationCtx<'_>, events: u64) -> Result<(), Refusal> {
        let (steps, until) = (self.steps, self.events.saturating_add(events));
        let changes = self.changes;
        while self.steps - steps < QUANTUM && self.events < until {
            let result = match self.is_traced(ctx.workgroup.invocations[ctx.index].number) {
                true => self.run_traced_step(ctx),
                false => self.run_steps(ctx, steps + QUANTUM - self.steps),
            };
            match result {
                Ok(()) => {}
                Err(StepInterrupt::Waits) => break,
                Err(StepInterrupt::Ended) => {
                    self.end_invocation(ctx);
                    let identity = ctx.invocation_mut().identity;
                    self.leave_interlock(identity);
                    self.changes += 1;
                    break;
                }
                Err(StepInterrupt::Refused(problem)) => {
                    let site = self.current_site(&ctx.workgroup.invocations[ctx.index]);
                    return Err(problem.located_at(self.source_position(site)));
                }
            }
        }
        let unchanged = self.changes == changes;
        let invocation = ctx.invocation_mut();
        invocation.made_no_change = unchanged && invocation.state == InvocationState::Running;
        Ok(())
    }

    /// Returns the instance, operation and site at which an invocation waits.
    pub(super) fn waiting_at<'w>(
        &self,
        workgroup: &'w WorkgroupState,
        index: usize,
    ) -> Option<(&'w Rc<Vec<u32>>, SpirvOperation<'_>, u32)> {
        let invocation = &workgroup.invocations[index];
        let InvocationState::Waiting(instance) = &invocation.state else { return None };
        let site = self.current_site(invocation);
        Some((instance, self.program.instruction_at(site)?.operation, site))
    }

    /// Returns execution scope, memory scope and semantics of the control barrier at a site.
    pub(super) fn control_barrier_at(&self, site: u32) -> Result<(Scope, BarrierSemantics), Refusal> {
        if let Some(known) = self.barriers.borrow().get(&site) {
            return Ok(*known);
        }
        let program = self.program;
        let found = || {
            let operation = program.instruction_at(site).map(|inst| inst.operation);
            let Some(SpirvOperation::ControlBarrier { execution, scope, semantics, .. }) = operation else {
                return Err(malformed("no such barrier"));
            };
            let number = |id: u32| {
                program
                    .specialized
                    .constant_number(id)
                    .ok_or_else(|| unsupported("a scope that is not a constant"))
            };
            let execution_scope = scope_from_number(number(execution)?, program.module.uses_vulkan_model)?;
            if !matches!(execution_scope, Scope::Subgroup | Scope::Workgroup) {
                return Err(unsupported(format!("a control barrier of {execution_scope:?} scope")));
            }
            let barrier = BarrierSemantics {
                scope: scope_from_number(number(scope)?, program.module.uses_vulkan_model)?,
                semantics: sync::restrict_to_tracked_classes(semantics_from_number(number(semantics)?)?),
            };
            Ok((execution_scope, barrier))
        };
        let found = found().map_err(|problem: Problem| problem.located_at(self.source_position(site)))?;
        self.barriers.borrow_mut().insert(site, found);
        Ok(found)
    }

    /// Completes subgroup operations and barriers whose lanes have all arrived.
    ///
    /// If `forced`, lanes that are still running are left out.
    fn complete_subgroup_operations(
        &mut self,
        workgroup: &mut WorkgroupState,
        forced: bool,
    ) -> Result<bool, Refusal> {
        let size = self.setup.subgroup_size as usize;
        let count = workgroup.invocations.len();
        let mut has_completed = false;
        for start in (0..count).step_by(size.max(1)) {
            let lanes = start..(start + size).min(count);
            if !forced
                && lanes.clone().any(|index| workgroup.invocations[index].state == InvocationState::Running)
            {
                continue;
            }
            let mut waiting = Vec::new();
            for index in lanes.clone() {
                let Some((instance, operation, site)) = self.waiting_at(workgroup, index) else { continue };
                let is_barrier = is_whole_barrier(&operation);
                let is_subgroup_wait = match is_barrier {
                    true => self.control_barrier_at(site)?.0 == Scope::Subgroup,
                    false => matches!(operation, SpirvOperation::Subgroup(_)),
                };
                if is_subgroup_wait {
                    waiting.push((instance, index, is_barrier, site));
                }
            }
            let Some((instance, _, is_barrier, site)) = waiting.iter().min_by_key(|one| one.0).copied()
            else {
                continue;
            };
            let together: Vec<usize> =
                waiting.iter().filter(|one| one.0 == instance).map(|one| one.1).collect();
            has_completed = true;
            if is_barrier {
                // In divergent control flow the lanes that execute the barrier together meet; none waits for
                // a lane that bypasses it (VK-SW-10).
                self.release_from_barrier(workgroup, &together, self.control_barrier_at(site)?.1, false);
            } else {
                self.has_partial_subgroups |= together.len() < lanes.len();
                let result = self.execute_collective(workgroup, &together);
                into_problem(result).map_err(|problem| problem.located_at(self.source_position(site)))?;
            }
        }
        Ok(has_completed)
    }

    /// Completes a workgroup barrier if all invocations have arrived or ended.
    fn complete_workgroup_barrier(&mut self, workgroup: &mut WorkgroupState) -> Result<bool, Refusal> {
        let mut waiting: Vec<(&Rc<Vec<u32>>, usize, u32)> = Vec::with_capacity(workgroup.invocations.len());
        for (index, invocation) in workgroup.invocations.iter().enumerate() {
            let site = match (&invocation.state, waiting.last()) {
                (InvocationState::Ended, _) => continue,
                // Most lanes wait at one instance, whose site is known.
                (InvocationState::Waiting(instance), Some((known, _, site)))
                    if Rc::ptr_eq(instance, known) =>
                {
                    Some((instance, *site))
                }
                _ => match self.waiting_at(workgroup, index) {
                    Some((instance, operation, site)) if is_whole_barrier(&operation) => {
                        let scope = self.control_barrier_at(site)?.0;
                        (scope == Scope::Workgroup).then_some((instance, site))
                    }
                    _ => None,
                },
            };
            // Some invocation can still run.
            let Some((instance, site)) = site else { return Ok(false) };
            waiting.push((instance, index, site));
        }
        // Of several dynamic instances, the earliest one is completed first. The smallest dynamic instance is
        // the earliest position, so lagging lanes catch up before others continue.
        let is_earlier = |one: &Rc<Vec<u32>>, other| !Rc::ptr_eq(one, other) && one < other;
        let earliest =
            waiting.iter().reduce(|first, one| if is_earlier(one.0, first.0) { one } else { first });
        let Some((instance, _, site)) = earliest.copied() else { return Ok(false) };
        let together: Vec<usize> = waiting.iter().filter(|one| one.0 == instance).map(|one| one.1).collect();
        let all = workgroup.invocations.len();
        if together.len() < all {
            self.report_divergent_barrier(workgroup, &together);
        }
        self.release_from_barrier(
            workgroup,
            &together,
            self.control_barrier_at(site)?.1,
            together.len() == all,
        );
        Ok(true)
    }

    fn release_from_barrier(
        &mut self,
        workgroup: &mut WorkgroupState,
        together: &[usize],
        barrier: BarrierSemantics,
        is_whole_workgroup: bool,
    ) {
        let has_fine_ordering = self.setup.has_fine_ordering;
        sync::synchronize_at_barrier(workgroup, together, barrier, is_whole_workgroup, has_fine_ordering);
        for index in together {
            let invocation = &mut workgroup.invocations[*index];
            invocation.start_epoch();
            invocation.state = InvocationState::Running;
            if let Some(frame) = invocation.frames.last_mut() {
                frame.at += 1;
            }
        }
        self.changes += 1;
    }

    /// Reports a workgroup barrier that some invocations do not execute.
    fn report_divergent_barrier(&mut self, workgroup: &WorkgroupState, together: &[usize]) {
        let all = workgroup.invocations.len();
        let missing = (0..all).find(|index| !together.contains(index));
        let (Some(here), Some(other)) = (together.first(), missing) else { return };
        let (here, other) = (&workgroup.invocations[*here], &workgroup.invocations[other]);
        let what =
            if other.state == InvocationState::Ended { "has ended" } else { "waits at another barrier" };
        let message = format!(
            "control barrier in divergent control flow: {} of {all} invocations of the workgroup reach it; \
             invocation {} {what}",
            together.len(),
            other.identity
        );
        let at = vec![
            (self.current_site(here), here.identity, None),
            (self.current_site(other), other.identity, None),
        ];
        self.report_finding(SiteFinding {
            cause: FindingCause::MissedBarrier,
            element: String::new(),
            message,
            at,
            inputs: 0,
        });
    }

    /// Checks whether any invocation can still change memory, and reports a deadlock otherwise.
    ///
    /// `forces_lanes` is true after many checks: lanes are then forced past lanes that are still running.
    fn check_deadlock(&mut self, forces_lanes: bool) -> Result<bool, Refusal> {
        let mut indices: Vec<u32> = self.workgroups.keys().copied().collect();
        indices.sort_unstable();
        let (spins, all) = self.find_spinning(&indices, StarvedLanes::default());
        if !all && !forces_lanes {
            return Ok(false);
        }
        // Lanes that wait for a lane that polls memory continue without it.
        for index in &indices {
            let Some(mut workgroup) = self.workgroups.remove(index) else { continue };
            let has_completed = self.complete_subgroup_operations(&mut workgroup, true);
            self.workgroups.insert(*index, workgroup);
            if has_completed? {
                return Ok(false);
            }
        }
        self.report_missing_arrivals(&indices)?;
        if all && !spins.is_empty() && !self.setup.running_workgroups.is_empty() {
            let problem = unsupported("a loop that may wait for workgroups that `--workgroup` leaves out");
            return Err(problem.into());
        }
        if all {
            self.report_deadlock(&spins);
        }
        Ok(all)
    }

    /// Returns the spinning invocations, and whether all running ones spin.
    pub(super) fn find_spinning(
        &mut self,
        indices: &[u32],
        starved: StarvedLanes,
    ) -> (Vec<SpinningInvocation>, bool) {
        let (mut spins, mut all) = (Vec::new(), true);
        for index in indices {
            let Some(mut workgroup) = self.workgroups.remove(index) else { continue };
            for at in 0..workgroup.invocations.len() {
                let invocation = &workgroup.invocations[at];
                if invocation.state == InvocationState::Running && !starved.is_held_back(invocation.number) {
                    let spin = self.find_spin(&mut InvocationCtx { workgroup: &mut workgroup, index: at });
                    all &= spin.is_some();
                    spins.extend(spin);
                }
            }
            self.workgroups.insert(*index, workgroup);
        }
        (spins, all)
    }

    /// Detects a spin loop: runs without side effects until the state repeats.
    pub(super) fn find_spin(&mut self, ctx: &mut InvocationCtx<'_>) -> Option<SpinningInvocation> {
        // The probe executes the invocation itself and restores it afterwards. While it runs, no
        // effect becomes visible (`is_probing`).
        let saved_invocation = ctx.workgroup.invocations[ctx.index].clone();
        let before = self.changes;
        let mut fingerprints = std::collections::BTreeSet::new();
        let mut found = None;
        self.spin_reads = Some(Vec::new());
        for _ in 0..SPIN_STEPS {
            let Some(frame) = ctx.workgroup.invocations[ctx.index].frames.last() else { break };
            let at = frame.at;
            let code = self.program.functions.get(frame.function).map_or(&[][..], |function| &function.code);
            // These wait for other invocations, so a loop around them is not a spin loop.
            let waits_for_others = |inst: &DecodedInstruction<'_>| {
                let is_arrival = matches!(
                    inst.operation,
                    SpirvOperation::ControlBarrier { part: BarrierPart::Arrive, .. }
                );
                is_arrival
                    || matches!(inst.operation, SpirvOperation::BeginInterlock | SpirvOperation::EndInterlock)
            };
            if code.get(at).is_some_and(waits_for_others) {
                break;
            }
            let progress = self.step_once(ctx);
            if progress.is_err() || self.changes != before {
                break;
            }
            let invocation = &ctx.workgroup.invocations[ctx.index];
            let jumped_back = invocation.frames.last().is_some_and(|frame| frame.at < at);
            // A loop repeats if control and all values that decide it are as before at some earlier
            // back edge.
            if jumped_back && !fingerprints.insert(control_fingerprint(invocation, self.program)) {
                found = Some(self.current_site(invocation));
                break;
            }
            // Reads before the first back edge do not belong to the loop.
            if jumped_back && fingerprints.len() == 1 {
                self.spin_reads = Some(Vec::new());
            }
        }
        ctx.workgroup.invocations[ctx.index] = saved_invocation;
        let polled = self.spin_reads.take().unwrap_or_default();
        found.map(|site| self.describe_spin(ctx, site, polled))
    }
}

/// Hashes the state that decides control flow: positions, observable values and private memory.
fn control_fingerprint(invocation: &Invocation, program: &DecodedProgram<'_>) -> u64 {
    fn hash_value(hasher: &mut DefaultHasher, value: &ConcreteValue) {
        match value {
            ConcreteValue::Bits(bits, _) => hasher.write_u64(*bits),
            ConcreteValue::Composite(parts) => parts.iter().for_each(|part| hash_value(hasher, part)),
            ConcreteValue::Pointer(pointer) => {
                hasher.write_u32(pointer.object);
                hasher.write_u64(pointer.offset);
            }
            ConcreteValue::Image(object, _) => hasher.write_u32(*object),
            ConcreteValue::Sampler(_) => {}
            ConcreteValue::NoBits(_) => hasher.write_u8(0),
        }
    }
    let mut hasher = DefaultHasher::new();
    for frame in &invocation.frames {
        hasher.write_usize(frame.function);
        hasher.write_usize(frame.at);
        let non_observable =
            program.functions.get(frame.function).map_or(&[][..], |function| &function.non_observable);
        let is_observable = |slot: usize| !non_observable.get(slot).copied().unwrap_or(false);
        let observable_values = frame.values.iter().enumerate().filter(|(slot, _)| is_observable(*slot));
        observable_values.for_each(|(_, value)| hash_value(&mut hasher, value));
    }
    for object in invocation.locals.iter().filter(|object| !program.non_observable.contains(&object.variable))
    {
        hasher.write(&object.bytes);
    }
    hasher.finish()
}

fn into_problem(step: Step<()>) -> Result<(), Problem> {
    match step {
        Err(StepInterrupt::Refused(problem)) => Err(*problem),
        _ => Ok(()),
    }
}
