//! Forward progress on a device: dispatches tests whose loops may never end.
//!
//! A run is one dispatch of several copies of a test. If it exceeds its deadline, the host records which
//! threads move, requests all loops to end, and reads the final state of every thread. If the dispatch still
//! does not end, only the parent process can recover. No progress model is used here: an
//! [`UnfinishedCopy`] contains the observation.

mod serve;

use std::time::{Duration, Instant};

use litmus::Test;
use plan::{
    Buffer, BufferId, BufferMemory, Device, Feature, Kernel, KernelId, Plan, PlanStep, Prepared, Queue,
    QueueId,
};
use serde::{Deserialize, Serialize};
use shaders::progress::{
    CLOCK_WORD, CONTROL_WORDS, ENDED, OVERFLOW_WORD, Parameters, ProgressConfig, ProgressKernel,
    RECORD_FIELDS, RecordField, STOP_WORD, STORAGE_SPACING, STUCK, SeparationLevel, UNWRITTEN, compile,
};

pub use serve::{Answer, ProgressJob, serve};

use crate::error::Cause;
use crate::wire::IncompleteReason;

/// The assignment of copies of a test to the units of a dispatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UnitAssignment {
    /// One copy, its parts in the order of their ids.
    Plain,
    /// Copy by copy: unit `N × m + i` runs part `i` of copy `m`.
    RoundRobin,
    /// Part by part: unit `M × i + m` runs part `i` of copy `m`.
    Chunked,
    /// All parts except the last copy by copy, followed by the last parts.
    Mixed,
}

/// Every placement with its name.
pub const PLACEMENTS: [(&str, UnitAssignment); 4] = [
    ("plain", UnitAssignment::Plain),
    ("round-robin", UnitAssignment::RoundRobin),
    ("chunked", UnitAssignment::Chunked),
    ("mixed", UnitAssignment::Mixed),
];

impl UnitAssignment {
    /// Returns its name in test ids.
    pub fn name(self) -> &'static str {
        PLACEMENTS.iter().find(|(_, placement)| *placement == self).map_or("", |(name, _)| name)
    }

    /// Returns true if the placement differs from the others for a test with this many parts.
    pub fn applies_to(self, parts: u32) -> bool {
        match self {
            UnitAssignment::Plain => true,
            UnitAssignment::RoundRobin | UnitAssignment::Chunked => parts > 1,
            UnitAssignment::Mixed => parts > 2,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgressSettings {
    /// The assignment of copies.
    pub placement: UnitAssignment,
    /// The number of dispatches.
    pub runs: u32,
    /// Hangs after which no further dispatch is made.
    pub max_hangs: u32,
    /// Time limit of a dispatch before its loops are requested to end.
    pub dispatch_timeout: Duration,
    /// The seed of the simulated device.
    pub seed: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlacementObservations {
    pub copies: u32,
    pub runs: u32,
    /// Dispatches in which every thread of every copy ended.
    pub ended: u32,
    /// Dispatches in which a thread waited for another one.
    pub waited: u32,
    /// Dispatches that did not end by themselves.
    pub hangs: Vec<Hang>,
    /// Dispatches that did not end within a short limit, but did with a longer one. They count nowhere else.
    pub slow: u32,
    /// Dispatches that left records unwritten. They count nowhere else.
    pub not_executed: u32,
    /// The number of invocations outside the dispatch, in all of these dispatches.
    #[serde(default)]
    pub outside_grid: u64,
    pub seconds: f64,
}

/// A dispatch that did not end by itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hang {
    /// Copies that did not end, those with the longest waits first; at most a few.
    pub witnesses: Vec<UnfinishedCopy>,
    /// The lowest unfinished thread of the whole dispatch, with its position and whether it moved.
    pub lowest: Option<LowestUnfinishedThread>,
    /// Seconds until the loops were requested to end.
    pub seconds: f64,
}

/// The thread in the lowest unit of a dispatch that had not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LowestUnfinishedThread {
    pub copy: u32,
    /// Its index in the copy.
    pub thread: u32,
    /// Its state.
    pub stood: StoppedThread,
}

/// A copy that did not end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnfinishedCopy {
    /// Its index.
    pub copy: u32,
    /// Its threads at the time of the request.
    pub threads: Vec<StoppedThread>,
}

/// The state of a thread when the loops were requested to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoppedThread {
    pub began: bool,
    pub ended: bool,
    /// It still moved, as far as known.
    pub moved: bool,
    /// The position of its start in the sequence of all starts and ends.
    pub order: Option<u32>,
    /// The number of its executed basic blocks.
    pub turns: u32,
    /// Index of its last access or control barrier.
    pub place: Option<u32>,
}

/// The maximum number of witnesses of a hang.
const MAX_WITNESSES: usize = 4;
/// The first time limit of a dispatch.
const FIRST_DEADLINE: Duration = Duration::from_millis(50);
/// Time limit for a dispatch to end after the request.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(2);
/// Workgroups of a dispatch if kernels run on the host's processor.
const CPU_WORKGROUPS: u32 = 256;
/// Workgroups on GPUs: several times the number of resident ones, and less than the limit of every device
/// (`maxComputeWorkGroupCount`).
const GPU_WORKGROUPS: u32 = 16_384;
/// Iterations reserved for a driver that ends loops silently.
const SPARE_ITERATIONS: u32 = 4_000;
/// Polls of the stop word per iteration if iterations are limited: they must last until other threads are
/// scheduled.
const POLLS_WITH_LOOP_BUDGET: u32 = 256;

/// The error for a plan that was abandoned.
const ABANDONED_PLAN: &str = "its plan was abandoned";

const QUEUE: QueueId = QueueId(0);
const LOCATIONS: BufferId = BufferId(0);
const INITIAL: BufferId = BufferId(1);
const RECORDS: BufferId = BufferId(2);
const CONTROL: BufferId = BufferId(3);
/// A copy of the records for the host. On GPUs, memory that is shared while a kernel runs is slow to read.
const RECORDS_BACK: BufferId = BufferId(4);

/// Returns true for the simulated GPU, which detects by itself that a submission cannot end.
fn detects_hangs(device: &dyn Device) -> bool {
    device.identity().kind == "simulated"
}

/// Returns the kernel of a test for a device.
///
/// # Errors
/// The placement rule that the test breaks, or the missing feature.
pub fn compile_kernel(
    test: &Test,
    device: &plan::Capabilities,
    placement: UnitAssignment,
) -> Result<ProgressKernel, IncompleteReason> {
    let copies = match placement {
        UnitAssignment::Plain => 1,
        _ => device.max_workgroups.min(GPU_WORKGROUPS),
    };
    let few_turns = device.loop_budget.is_some();
    let config = ProgressConfig {
        subgroup_size: device.subgroup_size.max(1),
        max_workgroup_invocations: device.max_workgroup_invocations,
        max_workgroup_subgroups: device.max_workgroup_subgroups,
        device_scope: device.device_scope,
        copies,
        fills_subgroups: few_turns,
        max_iterations: device.loop_budget.map(|budget| budget.saturating_sub(SPARE_ITERATIONS)),
        // The only driver with limited iterations synchronizes the whole workgroup at every memory barrier.
        has_final_barrier: !few_turns,
        stop_polls: if few_turns { POLLS_WITH_LOOP_BUDGET } else { 1 },
    };
    let mut kernel = compile(test, &config)?;
    if kernel.level == SeparationLevel::Workgroups {
        let most = if device.is_cpu { CPU_WORKGROUPS } else { GPU_WORKGROUPS };
        kernel.copies = kernel.copies.min(most.min(device.max_workgroups) / kernel.units).max(1);
    }
    let missing_feature = |what: &str| IncompleteReason::Lacks(what.to_owned());
    if let Some(missing) = kernel.features.iter().find(|feature| !device.has_feature(**feature)) {
        return Err(missing_feature(missing.name()));
    }
    if kernel.subgroup_size.is_some() && !device.full_subgroups {
        return Err(missing_feature(Feature::ComputeFullSubgroups.name()));
    }
    Ok(kernel)
}

/// Runs a test on a device; calls `on_run` with all observations after each dispatch.
///
/// Returns the observations, and the failure that ended the run early. After [`Cause::TimedOut`] the device
/// must not be destroyed.
pub fn run(
    device: &dyn Device,
    test: &Test,
    settings: &ProgressSettings,
    on_run: &mut dyn FnMut(&PlacementObservations),
) -> (PlacementObservations, Option<IncompleteReason>) {
    match compile_kernel(test, device.capabilities(), settings.placement) {
        Ok(kernel) => run_kernel(device, &kernel, settings, on_run),
        Err(failure) => (PlacementObservations::default(), Some(failure)),
    }
}

fn run_kernel(
    device: &dyn Device,
    kernel: &ProgressKernel,
    settings: &ProgressSettings,
    on_run: &mut dyn FnMut(&PlacementObservations),
) -> (PlacementObservations, Option<IncompleteReason>) {
    let mut observations = PlacementObservations::default();
    let copies = if settings.placement == UnitAssignment::Plain { 1 } else { kernel.copies };
    observations.copies = copies;
    // Parts below `near` are laid out copy by copy, all others part by part; see `unit` in `read_result`.
    let parameters = Parameters {
        copies,
        near: match settings.placement {
            UnitAssignment::Plain | UnitAssignment::RoundRobin => kernel.units,
            UnitAssignment::Chunked => 1,
            UnitAssignment::Mixed => kernel.units.saturating_sub(1).max(1),
        },
    };
    let plan = build_plan(kernel, &parameters);
    let ran = device.prepare(&plan).map_err(Cause::from).and_then(|prepared| {
        let mut runs = ProgressRunner {
            prepared: Some(prepared),
            kernel,
            copies,
            near: parameters.near,
            device,
            settings,
        };
        let result = runs.execute(&mut observations, on_run);
        if result.is_err() {
            // Its memory may stay in use, and destroying it would block forever.
            std::mem::forget(runs.prepared.take());
        }
        result
    });
    (observations, ran.err().map(IncompleteReason::from))
}

/// Returns the plan of a kernel: initial values, then one dispatch.
fn build_plan(kernel: &ProgressKernel, parameters: &Parameters) -> Plan {
    let words = u64::from(parameters.copies) * u64::from(kernel.storages.max(1)) * u64::from(STORAGE_SPACING);
    let records = u64::from(parameters.copies * kernel.threads * RECORD_FIELDS);
    let buffer = |words, memory, name| Buffer { words, memory, name };
    let mut bindings = vec![LOCATIONS; kernel.locations as usize];
    bindings.extend([RECORDS, CONTROL]);
    let workgroups = match kernel.level {
        SeparationLevel::Workgroups => parameters.copies * kernel.units,
        SeparationLevel::Subgroups | SeparationLevel::Invocations => 1,
    };
    Plan {
        kernels: vec![Kernel {
            words: kernel.words.clone(),
            bindings: bindings.len() as u32,
            push_constant_bytes: Parameters::BYTES,
            subgroups: kernel.subgroup_size.map_or(plan::Subgroups::Any, plan::Subgroups::Full),
            ..Kernel::default()
        }],
        buffers: vec![
            buffer(words, BufferMemory::Device, "locations"),
            buffer(words, BufferMemory::Shared, "initial values"),
            buffer(records, BufferMemory::Shared, "records"),
            buffer(CONTROL_WORDS, BufferMemory::Shared, "control"),
            buffer(records, BufferMemory::Readback, "records for the host"),
        ],
        queues: vec![Queue { family: 0 }],
        steps: vec![
            PlanStep::Copy { queue: QUEUE, from: INITIAL, to: LOCATIONS },
            PlanStep::Barrier { queue: QUEUE },
            PlanStep::Dispatch {
                queue: QUEUE,
                kernel: KernelId(0),
                workgroups,
                bindings,
                push_constants: parameters.to_bytes(),
            },
            PlanStep::Barrier { queue: QUEUE },
            PlanStep::Copy { queue: QUEUE, from: RECORDS, to: RECORDS_BACK },
            PlanStep::ToHost { queue: QUEUE, buffer: RECORDS_BACK },
        ],
        ..Plan::default()
    }
}

enum DispatchResult {
    Ended { waited: bool },
    Hung { hang: Hang, deadline: bool },
    NotExecuted { outside: u64 },
}

struct ProgressRunner<'a> {
    /// None once the plan must not be destroyed.
    prepared: Option<Box<dyn Prepared + 'a>>,
    kernel: &'a ProgressKernel,
    copies: u32,
    near: u32,
    device: &'a dyn Device,
    settings: &'a ProgressSettings,
}

impl ProgressRunner<'_> {
    fn execute(
        &mut self,
        observations: &mut PlacementObservations,
        on_run: &mut dyn FnMut(&PlacementObservations),
    ) -> Result<(), Cause> {
        let decides_itself = detects_hangs(self.device);
        let mut deadline = if decides_itself { Duration::from_millis(1) } else { FIRST_DEADLINE };
        let longest = if decides_itself { deadline } else { self.settings.dispatch_timeout };
        deadline = deadline.min(longest);
        let mut dispatches = 0_u64;
        // Repetitions for each increase of the time limit, and for dispatches that did not run.
        let mut spare = 16;
        while observations.runs < self.settings.runs
            && observations.hangs.len() < self.settings.max_hangs as usize
        {
            self.device.reseed(self.settings.seed.wrapping_add(dispatches));
            dispatches += 1;
            let since = Instant::now();
            let once = self.run_dispatch(deadline)?;
            observations.seconds += since.elapsed().as_secs_f64();
            match once {
                DispatchResult::Ended { waited } => {
                    observations.runs += 1;
                    observations.ended += 1;
                    observations.waited += u32::from(waited);
                }
                // It may only be slow, so it is repeated with more time and does not count.
                DispatchResult::Hung { deadline: true, .. } if deadline < longest => {
                    observations.slow += 1;
                    deadline = (deadline * 2).min(longest);
                }
                DispatchResult::Hung { hang, .. } => {
                    observations.runs += 1;
                    observations.waited += 1;
                    observations.hangs.push(hang);
                }
                DispatchResult::NotExecuted { outside } => {
                    observations.not_executed += 1;
                    observations.outside_grid += outside;
                    spare -= 1;
                    if spare == 0 {
                        break;
                    }
                }
            }
            on_run(observations);
        }
        if !observations.hangs.is_empty() {
            // These slow dispatches led to the hangs.
            observations.slow = 0;
        }
        Ok(())
    }

    fn prepared(&mut self) -> Result<&mut dyn Prepared, Cause> {
        match &mut self.prepared {
            Some(prepared) => Ok(prepared.as_mut()),
            None => Err(Cause::Kernel(ABANDONED_PLAN.to_owned())),
        }
    }

    /// Runs one dispatch; requests its loops to end at the deadline.
    fn run_dispatch(&mut self, deadline: Duration) -> Result<DispatchResult, Cause> {
        let (initial, storages) = (self.kernel.initial_values.clone(), self.kernel.storages.max(1) as usize);
        let prepared = self.prepared()?;
        for (number, chunk) in prepared.write(INITIAL)?.chunks_mut(STORAGE_SPACING as usize).enumerate() {
            if let Some(first) = chunk.first_mut() {
                *first = initial.get(number % storages).copied().unwrap_or(0);
            }
        }
        prepared.write(RECORDS)?.fill(UNWRITTEN);
        prepared.write(CONTROL)?.fill(0);
        prepared.submit()?;
        let since = Instant::now();
        let mut stop_request = None;
        // A thread moves if its number of executed blocks changes in the second half of the time.
        if !self.wait_until(since, deadline / 2)? {
            let before = self.read_turns()?;
            if !self.wait_until(since, deadline)? {
                let after = self.read_turns()?;
                let prepared = self.prepared()?;
                let clock = prepared.load(CONTROL, CLOCK_WORD)?;
                // The stop word also records the time of the request. It is the clock plus one,
                // because 0 means that there is no request.
                prepared.store(CONTROL, STOP_WORD, clock.saturating_add(1))?;
                stop_request = Some((before, after));
                if !self.wait_until(since, deadline + RELEASE_TIMEOUT)? {
                    return Err(Cause::TimedOut { after: since.elapsed() });
                }
            }
        }
        self.read_result(stop_request, since.elapsed())
    }

    /// Waits until the dispatch ends; returns false if it has not at `until`.
    fn wait_until(&mut self, since: Instant, until: Duration) -> Result<bool, Cause> {
        loop {
            let left = until.saturating_sub(since.elapsed());
            match self.prepared()?.poll(left)? {
                plan::Progress::Finished { .. } => return Ok(true),
                plan::Progress::NotExecuted => return Err(Cause::NullDevice),
                plan::Progress::Running if since.elapsed() >= until => return Ok(false),
                plan::Progress::Running => {}
            }
        }
    }

    /// Reads the number of executed blocks of every thread while the dispatch runs.
    fn read_turns(&mut self) -> Result<Vec<u32>, Cause> {
        let threads = u64::from(self.copies * self.kernel.threads);
        let prepared = self.prepared()?;
        let word = |thread| thread * u64::from(RECORD_FIELDS) + RecordField::Iterations as u64;
        (0..threads).map(|thread| Ok(prepared.load(RECORDS, word(thread))?)).collect()
    }

    /// Reads the records of a dispatch that ended.
    fn read_result(
        &mut self,
        stop_request: Option<(Vec<u32>, Vec<u32>)>,
        took: Duration,
    ) -> Result<DispatchResult, Cause> {
        let control = self.prepared()?.read(CONTROL)?;
        let [stop, outside] =
            [STOP_WORD, OVERFLOW_WORD].map(|word| control.get(word as usize).copied().unwrap_or_default());
        if outside > 0 {
            return Ok(DispatchResult::NotExecuted { outside: outside.into() });
        }
        // An earlier clock means an event before the request.
        let asked_at = stop.checked_sub(1).unwrap_or(u32::MAX);
        let (threads, blocks) = (self.kernel.threads as usize, &self.kernel.min_iterations);
        let (parts, copies, near) = (&self.kernel.parts, self.copies, self.near);
        let unit = |copy: usize, thread: usize| match parts.get(thread).copied().unwrap_or(0) {
            part if part < near => copy as u32 * near + part,
            part => part * copies + copy as u32,
        };
        let prepared = match &mut self.prepared {
            Some(prepared) => prepared,
            None => return Err(Cause::Kernel(ABANDONED_PLAN.to_owned())),
        };
        let records = prepared.read(RECORDS_BACK)?;
        let field =
            |record: &[u32], field: RecordField| record.get(field as usize).copied().unwrap_or(UNWRITTEN);
        let (mut waited, mut any_hung) = (false, false);
        let mut witnesses: Vec<(u32, UnfinishedCopy)> = Vec::new();
        let mut lowest: Option<(u32, LowestUnfinishedThread)> = None;
        for (copy, records) in records.chunks(threads * RECORD_FIELDS as usize).enumerate() {
            let mut thread_states = Vec::with_capacity(threads);
            let (mut hung, mut longest_wait) = (false, 0);
            for (number, record) in records.chunks(RECORD_FIELDS as usize).enumerate() {
                let state = field(record, RecordField::State);
                // Every thread of a dispatch that was executed leaves one of the two states.
                if !matches!(state, ENDED | STUCK) {
                    return Ok(DispatchResult::NotExecuted { outside: 0 });
                }
                let turns = match field(record, RecordField::Iterations) {
                    UNWRITTEN => 0,
                    turns => turns,
                };
                // Without a loop, a thread executes each block at most once.
                let repeats = turns > blocks.get(number).copied().unwrap_or(u32::MAX);
                waited |= repeats;
                let began = Some(field(record, RecordField::StartClock)).filter(|clock| *clock != UNWRITTEN);
                let began = began.filter(|clock| *clock < asked_at);
                let ended = state == ENDED && field(record, RecordField::EndClock) < asked_at;
                let moved = match &stop_request {
                    // If another thread reached its bound, it is unknown whether this thread moved; it counts
                    // as moving.
                    None => began.is_some() && !ended,
                    Some((before, after)) => {
                        let index = copy * threads + number;
                        before.get(index) != after.get(index)
                    }
                };
                hung |= state == STUCK;
                if state == STUCK && repeats {
                    longest_wait = longest_wait.max(turns);
                }
                let stopped_thread = StoppedThread {
                    began: began.is_some(),
                    ended,
                    moved,
                    order: began,
                    turns,
                    place: Some(field(record, RecordField::Position)).filter(|place| *place != UNWRITTEN),
                };
                let unit_number = unit(copy, number);
                // HSA's guarantee concerns only the lowest unfinished thread of the whole dispatch.
                if !ended && lowest.is_none_or(|(known, _)| unit_number < known) {
                    lowest = Some((
                        unit_number,
                        LowestUnfinishedThread {
                            copy: copy as u32,
                            thread: number as u32,
                            stood: stopped_thread,
                        },
                    ));
                }
                thread_states.push(stopped_thread);
            }
            any_hung |= hung;
            // A copy in which no thread waited may not have started yet.
            if hung && longest_wait > 0 {
                witnesses.push((longest_wait, UnfinishedCopy { copy: copy as u32, threads: thread_states }));
            }
        }
        if !any_hung {
            // It may have ended by itself at the time of the request.
            let by_itself = stop == 0 || stop_request.is_some();
            return Ok(if by_itself {
                DispatchResult::Ended { waited }
            } else {
                DispatchResult::NotExecuted { outside: 0 }
            });
        }
        witnesses.sort_by_key(|(most, witness)| (std::cmp::Reverse(*most), witness.copy));
        witnesses.truncate(MAX_WITNESSES);
        let hang = Hang {
            witnesses: witnesses.into_iter().map(|(_, witness)| witness).collect(),
            lowest: lowest.map(|(_, lowest)| lowest),
            seconds: took.as_secs_f64(),
        };
        Ok(DispatchResult::Hung { hang, deadline: stop_request.is_some() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placements_have_names_and_need_parts() {
        for (name, placement) in PLACEMENTS {
            assert_eq!(placement.name(), name);
            let text = serde_json::to_string(&placement).unwrap();
            assert_eq!(text, format!("\"{name}\""));
        }
        assert!(
            UnitAssignment::Chunked.applies_to(2)
                && !UnitAssignment::Mixed.applies_to(2)
                && UnitAssignment::Mixed.applies_to(3)
        );
        assert!(UnitAssignment::Plain.applies_to(1) && !UnitAssignment::Chunked.applies_to(1));
    }
}
