//! Forward progress on a device: dispatches tests whose loops may never end.
//!
//! A run is one dispatch of several copies of a test. If it exceeds its deadline, the host records which
//! threads move, requests all loops to end, and reads the final state of every thread. If the dispatch still
//! does not end, only the parent process can recover. No progress model is used here: a [`Witness`] contains
//! the observation.

mod serve;

use std::time::{Duration, Instant};

use litmus::Test;
use plan::{
    Buffer, BufferId, BufferMemory, Device, Feature, Kernel, KernelId, Plan, PlanStep, Prepared, Queue,
    QueueId,
};
use serde::{Deserialize, Serialize};
use shaders::progress::{
    CLOCK, CONTROL_WORDS, ENDED, FIELDS, Field, Level, OVERFLOW, Parameters, ProgressConfig, ProgressKernel,
    SPACING, STOP, STUCK, UNWRITTEN, compile,
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
    pub fn suits(self, parts: u32) -> bool {
        match self {
            UnitAssignment::Plain => true,
            UnitAssignment::RoundRobin | UnitAssignment::Chunked => parts > 1,
            UnitAssignment::Mixed => parts > 2,
        }
    }
}

/// The settings of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgressSettings {
    /// The assignment of copies.
    pub placement: UnitAssignment,
    /// The number of dispatches.
    pub runs: u32,
    /// Hangs after which no further dispatch is made.
    pub enough: u32,
    /// Time limit of a dispatch before its loops are requested to end.
    pub longest: Duration,
    /// The seed of the simulated device.
    pub seed: u64,
}

/// The observations of a test in one placement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlacementObservations {
    /// Copies in a dispatch.
    pub copies: u32,
    /// Dispatches that count.
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
    /// Seconds of all dispatches.
    pub seconds: f64,
}

/// A dispatch that did not end by itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hang {
    /// Copies that did not end, those with the longest waits first; at most a few.
    pub witnesses: Vec<Witness>,
    /// The lowest unfinished thread of the whole dispatch, with its position and whether it moved.
    pub lowest: Option<Lowest>,
    /// Seconds until the loops were requested to end.
    pub seconds: f64,
}

/// The thread in the lowest unit of a dispatch that had not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lowest {
    /// Its copy.
    pub copy: u32,
    /// Its index in the copy.
    pub thread: u32,
    /// Its state.
    pub stood: StoppedThread,
}

/// A copy that did not end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Witness {
    /// Its index.
    pub copy: u32,
    /// Its threads at the time of the request.
    pub threads: Vec<StoppedThread>,
}

/// The state of a thread when the loops were requested to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoppedThread {
    /// It had started.
    pub began: bool,
    /// It had ended.
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
const WITNESSES: usize = 4;
/// The first time limit of a dispatch.
const FIRST_DEADLINE: Duration = Duration::from_millis(50);
/// Time limit for a dispatch to end after the request.
const RELEASE: Duration = Duration::from_secs(2);
/// Workgroups of a dispatch if kernels run on the host's processor.
const CPU_WORKGROUPS: u32 = 256;
/// Workgroups on GPUs: several times the number of resident ones, and less than the limit of every device
/// (`maxComputeWorkGroupCount`).
const GPU_WORKGROUPS: u32 = 16_384;
/// Iterations reserved for a driver that ends loops silently.
const SPARE_TURNS: u32 = 4_000;
/// Polls of the stop word per iteration if iterations are limited: they must last until other threads are
/// scheduled.
const LOOKS_WHERE_TURNS_ARE_FEW: u32 = 256;

/// The error for a plan that was abandoned.
const GIVEN_UP: &str = "its plan was abandoned";

const QUEUE: QueueId = QueueId(0);
const LOCATIONS: BufferId = BufferId(0);
const INITIAL: BufferId = BufferId(1);
const RECORDS: BufferId = BufferId(2);
const CONTROL: BufferId = BufferId(3);
/// A copy of the records for the host. On GPUs, memory that is shared while a kernel runs is slow to read.
const RECORDS_BACK: BufferId = BufferId(4);

/// Returns true for the simulated GPU, which detects by itself that a submission cannot end.
fn decides_itself(device: &dyn Device) -> bool {
    device.identity().kind == "simulated"
}

/// Returns the kernel of a test for a device.
///
/// # Errors
/// The placement rule that the test breaks, or the missing feature.
pub fn kernel(
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
        whole_subgroups: few_turns,
        bound: device.loop_budget.map(|budget| budget.saturating_sub(SPARE_TURNS)),
        // The only driver with limited iterations synchronizes the whole workgroup at every memory barrier.
        settles: !few_turns,
        looks: if few_turns { LOOKS_WHERE_TURNS_ARE_FEW } else { 1 },
    };
    let mut kernel = compile(test, &config)?;
    if kernel.level == Level::Workgroups {
        let most = if device.is_cpu { CPU_WORKGROUPS } else { GPU_WORKGROUPS };
        kernel.copies = kernel.copies.min(most.min(device.max_workgroups) / kernel.units).max(1);
    }
    let lacks = |what: &str| IncompleteReason::Lacks { what: what.to_owned() };
    if let Some(missing) = kernel.features.iter().find(|feature| !device.has_feature(**feature)) {
        return Err(lacks(missing.name()));
    }
    if kernel.subgroup_size.is_some() && !device.full_subgroups {
        return Err(lacks(Feature::ComputeFullSubgroups.name()));
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
    match kernel(test, device.capabilities(), settings.placement) {
        Ok(kernel) => run_kernel(device, &kernel, settings, on_run),
        Err(failure) => (PlacementObservations::default(), Some(failure)),
    }
}

/// Runs the kernel of a test.
fn run_kernel(
    device: &dyn Device,
    kernel: &ProgressKernel,
    settings: &ProgressSettings,
    on_run: &mut dyn FnMut(&PlacementObservations),
) -> (PlacementObservations, Option<IncompleteReason>) {
    let mut seen = PlacementObservations::default();
    let copies = if settings.placement == UnitAssignment::Plain { 1 } else { kernel.copies };
    seen.copies = copies;
    // Parts below `near` are laid out copy by copy, all others part by part; see `unit` in `what_became`.
    let parameters = Parameters {
        copies,
        near: match settings.placement {
            UnitAssignment::Plain | UnitAssignment::RoundRobin => kernel.units,
            UnitAssignment::Chunked => 1,
            UnitAssignment::Mixed => kernel.units.saturating_sub(1).max(1),
        },
    };
    let plan = plan_of(kernel, &parameters);
    let ran = device.prepare(&plan).map_err(Cause::from).and_then(|prepared| {
        let mut runs =
            Runs { prepared: Some(prepared), kernel, copies, near: parameters.near, device, settings };
        let result = runs.go(&mut seen, on_run);
        if result.is_err() {
            // Its memory may stay in use, and destroying it would block forever.
            std::mem::forget(runs.prepared.take());
        }
        result
    });
    (seen, ran.err().map(IncompleteReason::from))
}

/// Returns the plan of a kernel: initial values, then one dispatch.
fn plan_of(kernel: &ProgressKernel, parameters: &Parameters) -> Plan {
    let words = u64::from(parameters.copies) * u64::from(kernel.storages.max(1)) * u64::from(SPACING);
    let records = u64::from(parameters.copies * kernel.threads * FIELDS);
    let buffer = |words, memory, name| Buffer { words, memory, name };
    let mut bindings = vec![LOCATIONS; kernel.locations as usize];
    bindings.extend([RECORDS, CONTROL]);
    let workgroups = match kernel.level {
        Level::Workgroups => parameters.copies * kernel.units,
        Level::Subgroups | Level::Invocations => 1,
    };
    Plan {
        kernels: vec![Kernel {
            words: kernel.words.clone(),
            bindings: bindings.len() as u32,
            images: Vec::new(),
            push_constant_bytes: Parameters::BYTES,
            addresses: Vec::new(),
            subgroups: kernel.subgroup_size.map_or(plan::Subgroups::Any, plan::Subgroups::Full),
            stage: plan::KernelStage::Compute,
            interface: None,
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

/// The result of one dispatch.
enum Once {
    Ended { waited: bool },
    Hung { hang: Hang, deadline: bool },
    NotExecuted { outside: u64 },
}

struct Runs<'a> {
    /// None once the plan must not be destroyed.
    prepared: Option<Box<dyn Prepared + 'a>>,
    kernel: &'a ProgressKernel,
    copies: u32,
    near: u32,
    device: &'a dyn Device,
    settings: &'a ProgressSettings,
}

impl Runs<'_> {
    fn go(
        &mut self,
        seen: &mut PlacementObservations,
        on_run: &mut dyn FnMut(&PlacementObservations),
    ) -> Result<(), Cause> {
        let decides_itself = decides_itself(self.device);
        let mut deadline = if decides_itself { Duration::from_millis(1) } else { FIRST_DEADLINE };
        let longest = if decides_itself { deadline } else { self.settings.longest };
        deadline = deadline.min(longest);
        let mut dispatches = 0_u64;
        // Repetitions for each increase of the time limit, and for dispatches that did not run.
        let mut spare = 16;
        while seen.runs < self.settings.runs && seen.hangs.len() < self.settings.enough as usize {
            self.device.reseed(self.settings.seed.wrapping_add(dispatches));
            dispatches += 1;
            let since = Instant::now();
            let once = self.once(deadline)?;
            seen.seconds += since.elapsed().as_secs_f64();
            match once {
                Once::Ended { waited } => {
                    seen.runs += 1;
                    seen.ended += 1;
                    seen.waited += u32::from(waited);
                }
                // It may only be slow, so it is repeated with more time and does not count.
                Once::Hung { deadline: true, .. } if deadline < longest => {
                    seen.slow += 1;
                    deadline = (deadline * 2).min(longest);
                }
                Once::Hung { hang, .. } => {
                    seen.runs += 1;
                    seen.waited += 1;
                    seen.hangs.push(hang);
                }
                Once::NotExecuted { outside } => {
                    seen.not_executed += 1;
                    seen.outside_grid += outside;
                    spare -= 1;
                    if spare == 0 {
                        break;
                    }
                }
            }
            on_run(seen);
        }
        if !seen.hangs.is_empty() {
            // These slow dispatches led to the hangs.
            seen.slow = 0;
        }
        Ok(())
    }

    fn prepared(&mut self) -> Result<&mut dyn Prepared, Cause> {
        match &mut self.prepared {
            Some(prepared) => Ok(prepared.as_mut()),
            None => Err(Cause::Kernel(GIVEN_UP.to_owned())),
        }
    }

    /// Runs one dispatch; requests its loops to end at the deadline.
    fn once(&mut self, deadline: Duration) -> Result<Once, Cause> {
        let (initial, storages) = (self.kernel.initial.clone(), self.kernel.storages.max(1) as usize);
        let prepared = self.prepared()?;
        for (number, chunk) in prepared.write(INITIAL)?.chunks_mut(SPACING as usize).enumerate() {
            if let Some(first) = chunk.first_mut() {
                *first = initial.get(number % storages).copied().unwrap_or(0);
            }
        }
        prepared.write(RECORDS)?.fill(UNWRITTEN);
        prepared.write(CONTROL)?.fill(0);
        prepared.submit()?;
        let since = Instant::now();
        let mut asked = None;
        // A thread moves if its number of executed blocks changes in the second half of the time.
        if !self.wait(since, deadline / 2)? {
            let before = self.turns()?;
            if !self.wait(since, deadline)? {
                let after = self.turns()?;
                let prepared = self.prepared()?;
                let clock = prepared.load(CONTROL, CLOCK)?;
                // The stop word also records the time of the request. It is the clock plus one,
                // because 0 means that there is no request.
                prepared.store(CONTROL, STOP, clock.saturating_add(1))?;
                asked = Some((before, after));
                if !self.wait(since, deadline + RELEASE)? {
                    return Err(Cause::TimedOut { after: since.elapsed() });
                }
            }
        }
        self.what_became(asked, since.elapsed())
    }

    /// Waits until the dispatch ends; returns false if it has not at `until`.
    fn wait(&mut self, since: Instant, until: Duration) -> Result<bool, Cause> {
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
    fn turns(&mut self) -> Result<Vec<u32>, Cause> {
        let threads = u64::from(self.copies * self.kernel.threads);
        let prepared = self.prepared()?;
        let word = |thread| thread * u64::from(FIELDS) + Field::Turns as u64;
        (0..threads).map(|thread| Ok(prepared.load(RECORDS, word(thread))?)).collect()
    }

    /// Reads the records of a dispatch that ended.
    fn what_became(&mut self, asked: Option<(Vec<u32>, Vec<u32>)>, took: Duration) -> Result<Once, Cause> {
        let control = self.prepared()?.read(CONTROL)?;
        let [stop, outside] =
            [STOP, OVERFLOW].map(|word| control.get(word as usize).copied().unwrap_or_default());
        if outside > 0 {
            return Ok(Once::NotExecuted { outside: outside.into() });
        }
        // An earlier clock means an event before the request.
        let asked_at = stop.checked_sub(1).unwrap_or(u32::MAX);
        let (threads, blocks) = (self.kernel.threads as usize, &self.kernel.blocks);
        let (parts, copies, near) = (&self.kernel.parts, self.copies, self.near);
        let unit = |copy: usize, thread: usize| match parts.get(thread).copied().unwrap_or(0) {
            part if part < near => copy as u32 * near + part,
            part => part * copies + copy as u32,
        };
        let prepared = match &mut self.prepared {
            Some(prepared) => prepared,
            None => return Err(Cause::Kernel(GIVEN_UP.to_owned())),
        };
        let records = prepared.read(RECORDS_BACK)?;
        let field = |record: &[u32], field: Field| record.get(field as usize).copied().unwrap_or(UNWRITTEN);
        let (mut waited, mut any_hung) = (false, false);
        let mut witnesses: Vec<(u32, Witness)> = Vec::new();
        let mut lowest: Option<(u32, Lowest)> = None;
        for (copy, records) in records.chunks(threads * FIELDS as usize).enumerate() {
            let mut own = Vec::with_capacity(threads);
            let (mut hung, mut most) = (false, 0);
            for (number, record) in records.chunks(FIELDS as usize).enumerate() {
                let state = field(record, Field::State);
                // Every thread of a dispatch that was executed leaves one of the two states.
                if !matches!(state, ENDED | STUCK) {
                    return Ok(Once::NotExecuted { outside: 0 });
                }
                let turns = match field(record, Field::Turns) {
                    UNWRITTEN => 0,
                    turns => turns,
                };
                // Without a loop, a thread executes each block at most once.
                let repeats = turns > blocks.get(number).copied().unwrap_or(u32::MAX);
                waited |= repeats;
                let began = Some(field(record, Field::Began)).filter(|clock| *clock != UNWRITTEN);
                let began = began.filter(|clock| *clock < asked_at);
                let ended = state == ENDED && field(record, Field::Over) < asked_at;
                let moved = match &asked {
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
                    most = most.max(turns);
                }
                let stood = StoppedThread {
                    began: began.is_some(),
                    ended,
                    moved,
                    order: began,
                    turns,
                    place: Some(field(record, Field::Place)).filter(|place| *place != UNWRITTEN),
                };
                let here = unit(copy, number);
                // HSA's guarantee concerns only the lowest unfinished thread of the whole dispatch.
                if !ended && lowest.is_none_or(|(known, _)| here < known) {
                    lowest = Some((here, Lowest { copy: copy as u32, thread: number as u32, stood }));
                }
                own.push(stood);
            }
            any_hung |= hung;
            // A copy in which no thread waited may not have started yet.
            if hung && most > 0 {
                witnesses.push((most, Witness { copy: copy as u32, threads: own }));
            }
        }
        if !any_hung {
            // It may have ended by itself at the time of the request.
            let by_itself = stop == 0 || asked.is_some();
            return Ok(if by_itself { Once::Ended { waited } } else { Once::NotExecuted { outside: 0 } });
        }
        witnesses.sort_by_key(|(most, witness)| (std::cmp::Reverse(*most), witness.copy));
        witnesses.truncate(WITNESSES);
        let hang = Hang {
            witnesses: witnesses.into_iter().map(|(_, witness)| witness).collect(),
            lowest: lowest.map(|(_, lowest)| lowest),
            seconds: took.as_secs_f64(),
        };
        Ok(Once::Hung { hang, deadline: asked.is_some() })
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
            UnitAssignment::Chunked.suits(2)
                && !UnitAssignment::Mixed.suits(2)
                && UnitAssignment::Mixed.suits(3)
        );
        assert!(UnitAssignment::Plain.suits(1) && !UnitAssignment::Chunked.suits(1));
    }
}
