//! The main loop of a run: dispatches a kernel until the budget is used, and counts outcomes.

mod in_flight_plan;

use std::ops::ControlFlow;
use std::time::Duration;

use in_flight_plan::{InFlightDispatch, InFlightPlan};
use litmus::{Histogram, Observation, Test};
use plan::{BufferMemory, Capabilities, Device, DeviceError, Hosts, MemoryProperties, Timestamp};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use shaders::{CompiledKernel, Parameters, Program};

use crate::calibration::Calibration;
use crate::classify::{
    COMPARISON_INTERVAL, Classifier, DONE, build_classifier, choose_poison, expected_values,
};
use crate::contention::{DispatchDecision, DispatchTimes};
use crate::count::{Counter, Unwritten};
use crate::dispatch::{Execution, Workgroups};
use crate::error::{Cause, RunError};
use crate::guards::GuardedTest;
use crate::host_copy::HostCopy;
use crate::interval_counts::{IntervalCounts, subtract_predecessors};
use crate::join::Join;
use crate::memory::{LOCATIONS, MemorySharing, PlanRequest, ProgramPlan};
use crate::readback::LocationWord;
use crate::sampling::{self, KernelLimits, ParameterSampler};
use crate::settings::{RunBudget, RunSettings};
use crate::{host, processor};

/// The state of a run in progress.
#[derive(Clone, Copy, Debug)]
pub struct RunProgress<'a> {
    tally: &'a RunTally,
}

impl RunProgress<'_> {
    /// Returns the number of instances so far.
    pub fn instances(&self) -> u64 {
        self.tally.counter.instances()
    }

    /// Returns the time since the first submission.
    pub fn elapsed(&self) -> Duration {
        self.tally.elapsed()
    }

    /// Returns the memory types of the locations, if the device reports them; those of separate locations
    /// last.
    pub fn memory(&self) -> &[MemoryProperties] {
        &self.tally.memory
    }

    /// Returns why the host counts all outcomes instead of the device.
    pub fn counted_by_host(&self) -> Option<&str> {
        self.tally.counted_by_host.as_deref()
    }

    /// Returns the observation so far.
    pub fn observation(&self) -> Observation {
        self.tally.observation()
    }
}

/// Runs `kernel`, made from `test`, on `device`.
///
/// `on_progress` is called after each dispatch and while waiting for one; a break ends the run early without
/// an error.
///
/// # Errors
/// The failure that ended the run early, with the observation so far. After [`Cause::TimedOut`] the device
/// must not be destroyed.
pub fn run(
    device: &dyn Device,
    kernel: &CompiledKernel,
    test: &Test,
    settings: &RunSettings,
    on_progress: &mut dyn FnMut(&RunProgress<'_>) -> ControlFlow<()>,
) -> Result<Observation, RunError> {
    run_program(
        device,
        &kernel.clone().into(),
        Join::Barrier,
        BufferMemory::Device,
        test,
        settings,
        on_progress,
    )
}

/// Runs `program`, made from `test`, on `device`, with one mechanism between its phases and one kind of
/// memory for its locations.
///
/// # Errors
/// As for [`run`].
pub fn run_program(
    device: &dyn Device,
    program: &Program,
    join: Join,
    memory: BufferMemory,
    test: &Test,
    settings: &RunSettings,
    on_progress: &mut dyn FnMut(&RunProgress<'_>) -> ControlFlow<()>,
) -> Result<Observation, RunError> {
    let fail_early = |cause| RunError { cause, observation: Box::default() };
    let shares_choices = device.capabilities().shares_choices;
    let counter = Counter::new(test, program, shares_choices).map_err(fail_early)?;
    let mut tally = RunTally::new(counter);
    let settings = &sampling::adapt_settings(program, settings);
    let guarded = GuardedTest::of_program(test, program, device.capabilities());
    let planned_test = guarded.as_ref().map_or(test, |guarded| &guarded.test);
    let hosts = host::plan_hosts(program, planned_test, LOCATIONS, join);
    let guards = guarded.as_ref().map_or(&[][..], |guarded| &guarded.words);
    match TestRun::new(device, program, hosts, guards, (join, memory), settings, &mut tally)
        .and_then(|mut run| run.execute(&mut tally, on_progress))
    {
        Ok(()) => Ok(tally.observation()),
        Err(cause) => Err(RunError { cause, observation: Box::new(tally.observation()) }),
    }
}

/// The counts of a run.
#[derive(Debug)]
struct RunTally {
    counter: Counter,
    not_executed: u64,
    written_in_part: u64,
    repeated: u64,
    outside_grid: u64,
    misread: u64,
    dispatches: u64,
    discarded: u64,
    interval_counts: IntervalCounts,
    /// The counts at the end of each part but the last.
    part_ends: Vec<Histogram>,
    /// The memory types of the locations.
    memory: Vec<MemoryProperties>,
    /// Why the host counts all outcomes instead of the device.
    counted_by_host: Option<String>,
    started: Timestamp,
    /// Duration of the first dispatch, if a driver may compile the kernel during it. It extends the time
    /// budget, by at most half of the budget.
    warm_up_time: Duration,
    /// Set after the last submission.
    duration: Option<Duration>,
}

impl RunTally {
    fn new(counter: Counter) -> RunTally {
        RunTally {
            counter,
            not_executed: 0,
            written_in_part: 0,
            repeated: 0,
            outside_grid: 0,
            misread: 0,
            dispatches: 0,
            discarded: 0,
            interval_counts: IntervalCounts::new(),
            part_ends: Vec::new(),
            memory: Vec::new(),
            counted_by_host: None,
            started: Timestamp::now(),
            warm_up_time: Duration::ZERO,
            duration: None,
        }
    }

    /// Discards a dispatch of `instances` that was not executed as requested.
    fn discard(&mut self, execution: Execution, instances: u64) {
        match execution {
            Execution::AsRequested | Execution::Incomplete => {}
            Execution::Excessive { outside } => self.outside_grid += outside,
            Execution::Misread => self.misread += 1,
        }
        self.record_dispatch(Unwritten::whole_dispatch(instances));
    }

    /// Records a counted dispatch whose words have changed since.
    fn record_late_change(&mut self) {
        self.misread += 1;
    }

    /// Records a dispatch that was counted, or discarded because of its `unwritten` instances.
    fn record_dispatch(&mut self, unwritten: Unwritten) {
        self.dispatches += 1;
        self.not_executed += unwritten.instances;
        self.written_in_part += unwritten.partly_written;
        self.discarded += u64::from(unwritten.instances > 0);
        self.interval_counts.record(self.dispatches - self.discarded, &self.counter);
    }

    fn elapsed(&self) -> Duration {
        self.duration.unwrap_or_else(|| self.started.elapsed())
    }

    fn observation(&self) -> Observation {
        let (histogram, batches) = (self.counter.histogram(), self.counter.batches());
        let mut part_ends = self.part_ends.clone();
        if batches.is_none() && part_ends.last() != Some(&histogram) {
            part_ends.push(histogram.clone());
        }
        Observation {
            histogram,
            unexpected: self.counter.unexpected().clone(),
            unresolved: self.counter.unresolved(),
            unrecorded_outcomes: self.counter.unrecorded_instances(),
            not_executed: self.not_executed,
            partially_written: self.written_in_part,
            repeated: self.repeated,
            outside_grid: self.outside_grid,
            misread_dispatches: self.misread,
            dispatches: self.dispatches,
            discarded_dispatches: self.discarded,
            seconds: self.elapsed().as_secs_f64(),
            batches,
            stretches: self.interval_counts.histograms(),
            parts: subtract_predecessors(&part_ends),
        }
    }
}

/// Parts of a run. Memory, stress and the state of the processors vary more between runs than instances do within
/// one, so confidence figures count parts.
const MAX_PARTS: u64 = 12;
const MIN_PART_INSTANCES: u64 = 1000;
const MIN_PART_TIME: Duration = Duration::from_millis(10);
/// Discarded dispatches after which a run without any counted one gives up.
const MAX_DISCARDED: u64 = 20;
/// The minimum of a run with a time budget: this many instances, or this long.
const MIN_INSTANCES: u64 = 10_000;
const MIN_TIME: Duration = Duration::from_millis(20);
/// The minimum time of a run while every instance reached the bound of a loop.
const MIN_UNRESOLVED_TIME: Duration = Duration::from_millis(500);
/// The target duration of a short dispatch.
const SHORT_DISPATCH_TIME: Duration = Duration::from_millis(1);
/// The interval of progress callbacks while waiting.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(50);

type OnProgress<'a> = &'a mut dyn FnMut(&RunProgress<'_>) -> ControlFlow<()>;

struct TestRun<'d> {
    device: &'d dyn Device,
    program: &'d Program,
    hosts: Option<Hosts>,
    /// As [`GuardedTest::words`].
    guards: &'d [(LocationWord, u32)],
    mechanism: (Join, BufferMemory),
    settings: &'d RunSettings,
    bounds: KernelLimits,
    sampler: ParameterSampler,
    poison: u32,
    calibration: Calibration,
    /// The calibration of short dispatches.
    short_calibration: Calibration,
    dispatch_times: DispatchTimes,
    /// The counting kernels, if the device counts.
    classifier: Option<Classifier>,
    /// Selects the dispatches that the host counts as well.
    comparison_random: Xoshiro256PlusPlus,
    plans_in_flight: Vec<InFlightPlan<'d>>,
    /// A prepared plan can change its number of workgroups.
    can_resize: bool,
    /// The maximum number of groups, which is halved if one round takes too long.
    max_groups: u32,
}

impl<'d> TestRun<'d> {
    fn new(
        device: &'d dyn Device,
        program: &'d Program,
        hosts: Option<Hosts>,
        guards: &'d [(LocationWord, u32)],
        mechanism: (Join, BufferMemory),
        settings: &'d RunSettings,
        tally: &mut RunTally,
    ) -> Result<TestRun<'d>, Cause> {
        device.reseed(settings.seed);
        let capabilities = device.capabilities();
        if !capabilities.executes {
            return Err(Cause::NullDevice);
        }
        settings.stress.validate()?;
        settings.stress.check_loop_budget(capabilities.loop_budget)?;
        let bounds = KernelLimits::new(program, capabilities, &settings.stress)?;
        let poison = choose_poison(program, &expected_values(program, &settings.plausible_words));
        let classifier = match build_classifier(&tally.counter, program, capabilities, &bounds, settings) {
            Ok(classifier) => classifier,
            Err(reason) => {
                tally.counted_by_host = Some(reason);
                None
            }
        };
        let draw = ParameterSampler::new(settings.seed, settings.stress.clone(), bounds, poison, DONE);
        Ok(TestRun {
            device,
            program,
            hosts,
            guards,
            mechanism,
            settings,
            bounds,
            sampler: draw,
            poison,
            calibration: Calibration::new(&settings.stress),
            short_calibration: Calibration::for_short_dispatches(&settings.stress, SHORT_DISPATCH_TIME),
            dispatch_times: DispatchTimes::new(
                settings.exercise.as_ref().map(|exercise| exercise.time_shares),
            ),
            classifier,
            // A separate generator, so that comparing does not change the drawn parameters.
            comparison_random: Xoshiro256PlusPlus::seed_from_u64(!settings.seed),
            plans_in_flight: Vec::new(),
            can_resize: true,
            max_groups: bounds.groups.1,
        })
    }

    fn execute(&mut self, tally: &mut RunTally, on_progress: OnProgress<'_>) -> Result<(), Cause> {
        for _ in 0..self.plans_needed() {
            let place = self.prepare(tally)?;
            self.plans_in_flight.push(place);
        }
        tally.started = Timestamp::now();
        let mut stop = false;
        // The plans alternate: while the host counts the dispatch of one, the device executes
        // those of the others.
        for next in (0..self.plans_in_flight.len()).cycle() {
            stop |= self.collect_dispatch(next, tally, on_progress)?.is_break();
            stop |= executes_nothing(tally) || self.is_time_up(tally);
            let missing = self.missing_instances(tally);
            let planned = self.plans_in_flight.iter().filter_map(|place| place.in_flight);
            // Instances in flight count as present here. If such a dispatch is discarded, they are
            // missing again in a later turn.
            let planned: u64 = planned.map(|dispatch| self.instance_count(&dispatch.parameters)).sum();
            let part_left = self.part_instances_left(tally);
            if !stop && missing > planned && part_left > planned {
                self.submit(next, missing.min(part_left) - planned, tally)?;
            } else if planned == 0 && (stop || missing == 0) {
                break;
            } else if planned == 0 && part_left == 0 {
                self.start_part(tally)?;
            }
        }
        tally.duration = Some(tally.started.elapsed());
        self.plans_in_flight.iter_mut().try_for_each(|place| place.check_late_changes(tally))
    }

    /// Returns the instances until the next part; `u64::MAX` if the current part is the last or ends by time.
    fn part_instances_left(&self, tally: &RunTally) -> u64 {
        let RunBudget { instances, time } = self.settings.budget;
        let parts = match (instances, time) {
            _ if self.device.capabilities().shares_choices => 1,
            (Some(all), _) => (all / MIN_PART_INSTANCES).min(MAX_PARTS),
            (None, time) => {
                let parts = time.unwrap_or_default().as_millis() / MIN_PART_TIME.as_millis();
                u64::try_from(parts).unwrap_or(MAX_PARTS).min(MAX_PARTS)
            }
        };
        let part = tally.part_ends.len() as u64 + 1;
        if part >= parts {
            return u64::MAX;
        }
        let counted = tally.counter.instances();
        let is_empty = tally.part_ends.last().map_or(0, Histogram::total_count) >= counted;
        let is_over = |time: Duration| {
            tally.elapsed() >= self.dispatch_times.usable_time(time) * part as u32 / parts as u32
        };
        match instances {
            _ if !is_empty && time.is_some_and(is_over) => 0,
            Some(all) => (all / parts * part).saturating_sub(counted).max(is_empty.into()),
            None => u64::MAX,
        }
    }

    /// Ends the current part, and continues with another seed and other memory.
    fn start_part(&mut self, tally: &mut RunTally) -> Result<(), Cause> {
        tally.part_ends.push(tally.counter.histogram());
        self.plans_in_flight.iter_mut().try_for_each(|place| place.check_late_changes(tally))?;
        let seed = self.settings.seed.wrapping_add(tally.part_ends.len() as u64);
        self.sampler =
            ParameterSampler::new(seed, self.settings.stress.clone(), self.bounds, self.poison, DONE);
        for number in 0..self.plans_in_flight.len() {
            // Memory of the old plan is freed afterwards, or the new plan would get the same.
            let place = match self.prepare(tally) {
                Err(Cause::Device(DeviceError::OutOfMemory(_))) => continue,
                prepared => prepared?,
            };
            self.plans_in_flight.splice(number..=number, [place]);
        }
        Ok(())
    }

    /// Returns the number of concurrent submissions; one if a single dispatch can run all requested
    /// instances.
    fn plans_needed(&self) -> u32 {
        let rounds = self.settings.stress.rounds.1;
        let largest = u64::from(self.bounds.groups.1) * u64::from(self.bounds.lanes) * u64::from(rounds);
        match self.settings.budget.instances {
            Some(wanted) if wanted <= largest => 1,
            _ => self.settings.stress.in_flight,
        }
    }

    fn is_time_up(&self, tally: &RunTally) -> bool {
        let RunBudget { instances, time } = self.settings.budget;
        // The first dispatch may include compiling the kernel; its duration extends the time, by at
        // most a half.
        let is_over = |time: Duration| tally.elapsed() >= time + tally.warm_up_time.min(time / 2);
        let has_minimum = tally.counter.instances() >= MIN_INSTANCES || tally.elapsed() >= MIN_TIME;
        let time = time.map(|time| self.dispatch_times.usable_time(time));
        // On a busy machine, no partner of a loop may have run next to it so far.
        let unresolved = tally.counter.unresolved();
        let is_unresolved = unresolved > 0 && unresolved == tally.counter.instances();
        let time = time.map(|time| if is_unresolved { time.max(MIN_UNRESOLVED_TIME) } else { time });
        tally.dispatches > 0 && time.map_or(instances.is_none(), |time| is_over(time) && has_minimum)
    }

    /// Returns the number of instances left in the budget.
    fn missing_instances(&self, tally: &RunTally) -> u64 {
        let budget = self.settings.budget.instances.unwrap_or(u64::MAX);
        budget.saturating_sub(tally.counter.instances())
    }

    fn instance_count(&self, parameters: &Parameters) -> u64 {
        u64::from(parameters.groups) * u64::from(parameters.rounds) * u64::from(self.bounds.lanes)
    }

    fn prepare(&mut self, tally: &mut RunTally) -> Result<InFlightPlan<'d>, Cause> {
        let workgroups = self.sample_workgroups();
        let classifier = self.classifier.as_ref();
        let sharing = MemorySharing::for_device(
            self.device.capabilities(),
            self.mechanism.1,
            self.program,
            classifier.is_some(),
        );
        let location_words = tally.counter.location_words();
        let verified = needs_readback_check(self.device.capabilities());
        let (join, memory) = self.mechanism;
        let mut layout = ProgramPlan::new(PlanRequest {
            program: self.program,
            hosts: self.hosts.clone(),
            join,
            memory,
            bounds: &self.bounds,
            workgroups,
            sharing,
            classifier,
            location_words: &location_words,
            verified,
            guards: self.guards,
            poison: self.poison,
        });
        let stress = &self.settings.stress;
        // A test with several queues uses the other queues itself.
        let has_queue_stress = self.program.queues.len() <= 1
            && self.hosts.is_none()
            && stress.memory_stress.as_ref().is_some_and(|memory| memory.queue_workgroups.1 > 0);
        if has_queue_stress && self.bounds.scratch_words > 0 {
            let capabilities = self.device.capabilities();
            let config = stress.kernel_config(capabilities);
            let kernel = shaders::stress::stress_kernel(&config, config.lanes);
            layout.add_queue_stress(&kernel, capabilities, self.bounds.scratch_words);
        }
        let prepared = self.device.prepare(&layout.plan)?;
        tally.memory =
            layout.location_buffers().filter_map(|buffer| prepared.memory_properties(buffer)).collect();
        Ok(InFlightPlan {
            prepared,
            layout,
            workgroups,
            in_flight: None,
            phase_parameters: Vec::new(),
            copied: HostCopy::default(),
            is_copy_counted: false,
            results: Vec::new(),
            locations: Vec::new(),
        })
    }

    /// Draws parameters, resets memory and submits.
    fn submit(&mut self, number: usize, max_instances: u64, tally: &mut RunTally) -> Result<(), Cause> {
        let begun = Timestamp::now();
        self.resize_dispatch(number, tally)?;
        let Some(workgroups) = self.plans_in_flight.get(number).map(|place| place.workgroups) else {
            return Ok(());
        };
        let stress = self.sampler.sample_stress(workgroups.groups, workgroups.stress);
        let shared = self.device.capabilities().is_cpu;
        let has_rendezvous = self.bounds.party > 1 && self.settings.stress.spin.1 > 0;
        // Contention matters only if the device's threads compete for the host's processors and
        // wait for each other. Without calibration, nothing may depend on time.
        let decision = if shared && has_rendezvous && self.calibration.is_enabled {
            self.dispatch_times.next_decision()
        } else {
            DispatchDecision::DRAWN
        };
        let scale = if decision.is_short { self.short_calibration.scale } else { self.calibration.scale };
        let parameters = self.sampler.sample_parameters(
            workgroups.groups,
            scale,
            max_instances,
            decision.max_polls,
            stress.as_ref(),
        );
        let queue_stress = self.sampler.sample_queue_stress(parameters.rounds);
        let later: Vec<Parameters> =
            (1..self.program.phases.len()).map(|_| self.sampler.sample_reassignment(&parameters)).collect();
        let instances = self.instance_count(&parameters) as usize;
        let Some(place) = self.plans_in_flight.get_mut(number) else { return Ok(()) };
        let slots = self.bounds.slots as usize;
        place.check_late_changes(tally)?;
        place.layout.reset(place.prepared.as_mut(), &parameters, instances, slots)?;
        if self.hosts.is_some() {
            let layout = host::host_layout(&parameters, instances, self.bounds.storage_words as usize);
            place.prepared.set_host_layout(layout)?;
        }
        place.layout.set_parameters(place.prepared.as_mut(), &parameters, &later, stress.as_ref())?;
        place.phase_parameters = std::iter::once(parameters).chain(later).collect();
        if let Some((workgroups, stress)) = queue_stress {
            place.layout.set_queue_stress(place.prepared.as_mut(), workgroups, &stress)?;
        }
        // Sleeping panics on targets without threads, which never rest.
        if !decision.rest.is_zero() {
            std::thread::sleep(decision.rest);
        }
        let used = if shared { processor::used() } else { None };
        place.prepared.submit()?;
        place.in_flight = Some(InFlightDispatch {
            parameters,
            started_at: begun,
            submitted_at: Timestamp::now(),
            processor_time_before: used,
            decision,
        });
        Ok(())
    }

    /// Draws the number of workgroups of a dispatch.
    fn sample_workgroups(&mut self) -> Workgroups {
        let groups = self.sampler.sample_groups().min(self.max_groups);
        Workgroups { groups, stress: self.sampler.sample_stress_workgroups(groups) }
    }

    /// Draws the number of groups of the next dispatch, if the device can change it.
    fn resize_dispatch(&mut self, number: usize, tally: &mut RunTally) -> Result<(), Cause> {
        if self.can_resize {
            let workgroups = self.sample_workgroups();
            let Some(place) = self.plans_in_flight.get_mut(number) else { return Ok(()) };
            if workgroups == place.workgroups {
                return Ok(());
            }
            match place.layout.set_workgroups(place.prepared.as_mut(), workgroups) {
                Ok(()) => place.workgroups = workgroups,
                Err(DeviceError::Unsupported(_)) => self.can_resize = false,
                Err(error) => return Err(error.into()),
            }
        }
        // A plan whose size is fixed is replaced only if its dispatches became too large for the
        // intended duration.
        if let Some(place) = self.plans_in_flight.get_mut(number)
            && place.workgroups.groups > self.max_groups
        {
            place.check_late_changes(tally)?;
            let place = self.prepare(tally)?;
            self.plans_in_flight.splice(number..=number, [place]);
        }
        Ok(())
    }

    /// Waits for the submission of a plan in flight, and counts it.
    fn collect_dispatch(
        &mut self,
        number: usize,
        tally: &mut RunTally,
        on_progress: OnProgress<'_>,
    ) -> Result<ControlFlow<()>, Cause> {
        let Some(place) = self.plans_in_flight.get_mut(number) else { return Ok(ControlFlow::Continue(())) };
        let Some(dispatch) = place.in_flight else { return Ok(ControlFlow::Continue(())) };
        let waited = place.wait(dispatch, self.settings.submission_timeout, tally, on_progress);
        if matches!(waited, Err(Cause::TimedOut { .. })) {
            // Destroying resources of a hanging submission would block forever.
            self.plans_in_flight.drain(..).for_each(std::mem::forget);
        }
        let (took, ended) = waited?;
        let cost = dispatch.processor_time(took);
        // The duration without the time that other processes used the processors.
        let uncontended = took.min(cost);
        let instances = self.instance_count(&dispatch.parameters) as usize;
        let Some(place) = self.plans_in_flight.get_mut(number) else { return Ok(ControlFlow::Continue(())) };
        place.in_flight = None;
        let classifier = self.classifier.as_ref();
        let compared = classifier.is_some_and(|classifier| {
            let drawn = self.comparison_random.random_range(0..COMPARISON_INTERVAL) == 0;
            drawn || tally.dispatches == 0 || classifier.always_compared
        });
        match place.count_dispatch(classifier, compared, &dispatch.parameters, instances, tally) {
            // No instance of it was counted.
            Err(Cause::Device(DeviceError::NotExecuted(_))) => {
                tally.discard(Execution::Incomplete, instances as u64)
            }
            accounted => accounted?,
        }
        if self.calibration.is_round_too_long(dispatch.parameters.rounds, uncontended) {
            // With one round left, only fewer groups shorten a dispatch.
            self.max_groups = (self.max_groups / 2).max(self.bounds.min_dispatch_groups);
        }
        if tally.dispatches == 1 && self.calibration.is_enabled {
            tally.warm_up_time = tally.elapsed();
        }
        // Short dispatches have another target duration, and therefore a separate scale.
        if dispatch.decision.is_short { &mut self.short_calibration } else { &mut self.calibration }
            .adapt_scale(uncontended);
        self.dispatch_times.record_dispatch(dispatch.decision, cost, took, dispatch.started_at.elapsed());
        if let Some(exercise) = self.settings.exercise.as_ref().filter(|_| !self.dispatch_times.is_exercised)
        {
            self.dispatch_times.is_exercised = exercise.is_met_by(&tally.counter.histogram());
        }
        let seen = on_progress(&RunProgress { tally });
        Ok(if seen.is_break() { seen } else { ended })
    }
}

/// Returns true if a device executes nothing or almost nothing, so that the run gives up.
fn executes_nothing(tally: &RunTally) -> bool {
    let counted = tally.dispatches - tally.discarded;
    // Nine of ten dispatches were discarded.
    tally.discarded >= MAX_DISCARDED.max(9 * counted)
}

/// Returns true if reading from the device could go wrong: the simulated GPU shares the memory of the host.
pub(crate) fn needs_readback_check(capabilities: &Capabilities) -> bool {
    !capabilities.shares_choices
}
