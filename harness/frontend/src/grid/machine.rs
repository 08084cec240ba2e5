//! The interpreter of a grid walk: invocations, call frames and control flow.
//!
//! Long because the state and the control flow of all invocations belong together.
//!
//! One [`Interpreter`] executes one schedule. The other modules of the walk extend it: memory accesses,
//! atomics, subgroup operations, synchronization and the scheduler.

use std::collections::BTreeMap;
use std::rc::Rc;

use rspirv::spirv::Op;
use rustc_hash::FxHashMap;
use spirv_reader::{SpirvOperation, SpirvProblem, Stage, switch_cases};

use crate::error::{Problem, SourcePosition, malformed, unsupported};
use crate::lacking::undefined_result;
use crate::lift::{FindingKind, InvocationId};
use crate::section::{Sections, Side};
use crate::until::Until;

use super::fast_path::{copy_slots, gather_slots, read_slot, scatter_value};
use super::happens_before::{HappensBeforeView, ReleaseMessage, ReleaseSet};
use super::influence::InputInfluence;
use super::memory::{MemoryObject, PrivateObjects};
use super::program::{DecodedProgram, GLOBAL, Inst, Slots};
use super::shadow::{AccessOrder, AccessRecord, InvocationNumbering, SelfVisibleWrites};
use super::value::{
    ConcreteValue, FIRST_SITE, LAST_SITE, LOCAL, OPAQUE, SCHEDULE_DEPENDENT, SITE_MASK, Taint, UNDEFINED,
};

/// The reason that a lockstep finding gives.
const LOCKSTEP_REASON: &str =
    "the accesses are not ordered: they are lanes of one subgroup, which need not execute in lockstep";
/// Upper bound on nested calls.
const MAX_CALLS: usize = 64;
/// Tag of object numbers in workgroup memory.
pub(super) const SHARED: u32 = 1 << 30;

/// An active call.
#[derive(Clone, Debug)]
pub(super) struct CallFrame {
    pub function: usize,
    pub at: usize,
    pub block: u32,
    pub values: Vec<ConcreteValue>,
    /// Headers of the enclosing loops, with the number of their current iteration.
    pub loops: Vec<(u32, u32)>,
    /// The caller's slots for the result.
    result: Slots,
    /// Number of private objects before the call.
    locals: usize,
    /// Number of the call stack; 0 in the entry point.
    pub calls: u32,
}

/// The execution state of an invocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum InvocationState {
    Running,
    /// Waits at a control barrier or subgroup operation, identified by its dynamic instance.
    Waiting(Rc<Vec<u32>>),
    Ended,
}

/// An invocation, with its registers, private memory and view of shared memory.
#[derive(Clone, Debug)]
pub(super) struct Invocation {
    pub identity: InvocationId,
    pub number: u32,
    pub subgroup: u32,
    pub lane: u32,
    pub numbering: InvocationNumbering,
    pub frames: Vec<CallFrame>,
    pub locals: PrivateObjects,
    pub views: [HappensBeforeView; 3],
    pub state: InvocationState,
    /// Releases of fences, which later atomics and barriers carry.
    pub pending_releases: Vec<Rc<ReleaseMessage>>,
    /// Releases that atomics and barriers read, which later acquire fences take.
    pub pending_acquires: Vec<Rc<ReleaseMessage>>,
    pub acquires_are_merged: bool,
    /// The release set that an atomic read last; it is part of `pending_acquires`.
    pub last_received: Option<ReleaseSet>,
    /// For each location whose atomics order only itself, the writes that are visible there.
    pub self_visible: BTreeMap<(u32, u32, u64), SelfVisibleWrites>,
    /// Arrivals and completed waits at split barriers, of the subgroup and of the workgroup.
    pub split_counts: [(u32, u32); 2],
    /// The clock: counts releases, and writes where reads have mixed visibility.
    ///
    /// Other invocations learn of accesses only through a release, so accesses between two releases need no
    /// distinct times.
    pub clock: u32,
    /// The clock at the last release.
    pub last_release: u32,
    /// The position relative to the interlocked section.
    pub interlock: Side,
    /// The last instruction of an ended invocation.
    pub last_site: u32,
    /// True if it changed nothing when it last ran and is still running.
    pub made_no_change: bool,
}

/// A workgroup, with its invocations and shared variables.
#[derive(Clone, Debug)]
pub(super) struct WorkgroupState {
    pub invocations: Vec<Invocation>,
    pub objects: Vec<MemoryObject>,
    /// Barriers of the whole workgroup so far, for each class.
    pub barrier_epochs: [u32; 3],
    /// Releases of the arrivals at split barriers, by owner and round.
    pub split_rounds: BTreeMap<(Option<u32>, u32), Vec<Rc<ReleaseMessage>>>,
}

/// A defect, with sites that are not yet resolved to source lines.
#[derive(Clone, Debug)]
pub(super) struct SiteFinding {
    pub kind: FindingKind,
    pub message: String,
    /// Site, invocation, and for an access whether it writes.
    pub at: Vec<(u32, InvocationId, Option<bool>)>,
    /// The assumed inputs that the reported values or addresses depend on.
    pub inputs: Taint,
}

/// The immutable configuration of a walk.
pub(super) struct WalkSetup {
    pub grid: [u32; 3],
    /// Annotated initial values by variable: offset, bytes and number of each scalar.
    pub annotated_values: FxHashMap<u32, Vec<(u64, u32, u64)>>,
    pub stage: Stage,
    /// See [`AnalysisOptions::stage_inputs`](crate::AnalysisOptions::stage_inputs).
    pub given: BTreeMap<u32, Vec<u8>>,
    pub local_size: [u32; 3],
    /// The interlock mode of the entry point.
    pub sections: Option<Sections>,
    pub subgroup_size: u32,
    /// Subgroups per workgroup.
    pub subgroups: u32,
    pub function: usize,
    /// Variables of each workgroup and of each invocation, in the order of their objects.
    pub workgroup_variables: Vec<u32>,
    pub private_variables: Vec<u32>,
    /// True if more than barriers of whole workgroups orders invocations.
    pub has_fine_ordering: bool,
    /// True if reads of one class differ in how far their own visibility operation reaches.
    pub has_mixed_visibility: bool,
    /// The taint of positions in the grid and in the workgroup.
    pub launch_taint: super::launch_taint::LaunchTaint,
    /// True to execute without checking accesses.
    pub skip_race_checks: bool,
    /// When to give up.
    pub deadline: Option<Until>,
}

impl WalkSetup {
    /// Returns the layout of invocation numbers.
    pub fn numbering(&self) -> InvocationNumbering {
        InvocationNumbering {
            workgroup_size: self.local_size.iter().product(),
            subgroup_size: self.subgroup_size,
        }
    }
}

/// The state of one walk.
#[derive(Clone)]
pub(super) struct Interpreter<'a> {
    pub setup: &'a WalkSetup,
    pub program: &'a DecodedProgram<'a>,
    pub globals: Vec<ConcreteValue>,
    pub objects: Vec<MemoryObject>,
    pub descriptors: FxHashMap<u32, super::setup::DescriptorArray>,
    /// The workgroups that have started and not ended, by index.
    pub workgroups: FxHashMap<u32, Box<WorkgroupState>>,
    /// The state of interlocked sections, by pixel.
    pub pixels: BTreeMap<(u32, u32), super::interlock::PixelInterlock>,
    /// The releases that atomics stored, by object and offset.
    pub releases: FxHashMap<(u32, u32, u64), ReleaseSet>,
    pub findings: Vec<SiteFinding>,
    pub reported: std::collections::BTreeSet<(FindingKind, Vec<u32>)>,
    /// True if the schedule decided control flow or an address.
    pub schedule_dependent: bool,
    /// True if a subgroup operation was executed without some lanes, running or ended.
    pub has_partial_subgroups: bool,
    /// The first atomic write whose order with another decides the final value, as a sentence.
    pub unordered_write: Option<String>,
    /// How the inputs that no option supplies influence the walk.
    pub influence: InputInfluence,
    /// Assumptions to mention in the coverage.
    pub notes: std::collections::BTreeSet<String>,
    pub steps: u64,
    /// Number of changes of memory or state that other invocations can observe.
    pub changes: u64,
    /// Number of preemption points passed.
    pub events: u64,
    /// Number of shared memory accesses.
    pub accesses: u64,
    /// True if the current store writes the value that is already there.
    pub stores_same_value: bool,
    /// The reads of a loop body; `Some` while probing for a spin loop.
    pub spin_reads: Option<Vec<super::deadlock::SpinRead>>,
    /// Which lane accesses which element of a cooperative matrix.
    pub rotation: u32,
    /// Sites that produced undefined values, in the order of their taint bits.
    pub undefined_sources: Vec<SiteFinding>,
    /// Entries of each block, by the number of its label instruction; 255 and more are one.
    pub block_entries: Vec<u8>,
    /// True if the grid has one invocation.
    pub is_single_invocation: bool,
    /// The result of [`shadow_bytes`](Interpreter::shadow_bytes) for the largest ended workgroup.
    pub largest_shadow: (u64, u64),
    /// Frames to reuse, by function.
    pub spare_frames: Vec<Vec<CallFrame>>,
    /// Private objects of ended invocations, to reuse.
    pub spare_objects: Vec<MemoryObject>,
    /// Call stacks: the number of the caller's stack, and the site of the call.
    pub calls: Vec<(u32, u32)>,
    pub calls_by_site: FxHashMap<(u32, u32), u32>,
    /// The initial contents of private variables.
    pub private_templates: Vec<super::workgroup_start::PrivateTemplate>,
    /// The remaining checks for starved lanes.
    pub trial_budget: super::subgroup_starvation::TrialBudget,
}

/// Why a step did not complete.
pub(super) enum StepInterrupt {
    Refused(Problem),
    Waits,
    Ended,
}

impl From<Problem> for StepInterrupt {
    fn from(problem: Problem) -> StepInterrupt {
        StepInterrupt::Refused(problem)
    }
}

impl From<SpirvProblem> for StepInterrupt {
    fn from(problem: SpirvProblem) -> StepInterrupt {
        StepInterrupt::Refused(problem.into())
    }
}

pub(super) type Step<T> = Result<T, StepInterrupt>;

/// An invocation together with its workgroup.
pub(super) struct InvocationCtx<'w> {
    pub workgroup: &'w mut WorkgroupState,
    pub index: usize,
}

impl InvocationCtx<'_> {
    pub fn invocation_mut(&mut self) -> &mut Invocation {
        &mut self.workgroup.invocations[self.index]
    }

    pub fn frame_mut(&mut self) -> Step<&mut CallFrame> {
        self.invocation_mut().frames.last_mut().ok_or(StepInterrupt::Ended)
    }
}

impl Interpreter<'_> {
    /// Returns the value of an id.
    pub fn value_of_id(&self, here: &InvocationCtx<'_>, id: u32) -> Step<ConcreteValue> {
        let slots = self.program.slots_of(id);
        if slots.count == 0 {
            return self.single_slot_value(here, id).cloned();
        }
        gather_slots(self.frame_values(here), &self.globals, slots).ok_or_else(|| self.missing_value(id))
    }

    fn frame_values<'v>(&self, here: &'v InvocationCtx<'_>) -> &'v [ConcreteValue] {
        here.workgroup.invocations[here.index].frames.last().map_or(&[], |frame| &frame.values)
    }

    fn missing_value(&self, id: u32) -> StepInterrupt {
        malformed(format!("{} has no value", self.program.module.display_name(id))).into()
    }

    /// Returns the value of an id that occupies one slot.
    #[inline]
    pub fn single_slot_value<'v>(&'v self, here: &'v InvocationCtx<'_>, id: u32) -> Step<&'v ConcreteValue> {
        let slots = self.program.slots_of(id);
        if slots.count > 0 {
            return Err(malformed(format!("{} is a vector", self.program.module.display_name(id))).into());
        }
        slots.single_slot().and_then(|slot| self.slot_value(here, slot)).ok_or_else(|| self.missing_value(id))
    }

    /// Returns the value in a slot.
    pub fn slot_value<'v>(&'v self, here: &'v InvocationCtx<'_>, slot: u32) -> Option<&'v ConcreteValue> {
        read_slot(self.frame_values(here), &self.globals, slot)
    }

    /// Returns an operand that decides control flow, an address or a parameter of an operation.
    pub fn control_number(&mut self, here: &mut InvocationCtx<'_>, id: u32, what: &str) -> Step<u64> {
        let (bits, taint) = match self.single_slot_value(here, id)? {
            ConcreteValue::Bits(bits, taint) => (*bits, *taint),
            ConcreteValue::NoBits(taint) => (0, *taint),
            _ => return Err(malformed(format!("{what} that is not a number")).into()),
        };
        self.check_control_dependence(here, taint, what)?;
        Ok(bits)
    }

    /// Records that a value with this taint decides control flow or an address.
    ///
    /// An opaque value refuses the walk, an undefined one is a finding, a schedule-dependent one limits the
    /// coverage.
    pub fn check_control_dependence(
        &mut self,
        here: &mut InvocationCtx<'_>,
        taint: Taint,
        what: &str,
    ) -> Step<()> {
        if taint == 0 {
            return Ok(());
        }
        self.note_inputs(here, taint);
        if taint & OPAQUE != 0 {
            return Err(self.opaque_value_problem(what).into());
        }
        self.observe_undefined(taint);
        if taint & UNDEFINED != 0 {
            let message = format!("{what} depends on {}", super::value::undefined_source(taint));
            self.report_here(here, FindingKind::UninitialisedRead, message);
        }
        self.schedule_dependent |= taint & SCHEDULE_DEPENDENT != 0;
        Ok(())
    }

    /// Records undefined behaviour of this site lazily; returns the taint bit of its result.
    ///
    /// The finding is reported only if the value is observed.
    pub fn undefined_result(
        &mut self,
        here: &InvocationCtx<'_>,
        (kind, message): (FindingKind, String),
        access: Option<bool>,
    ) -> Taint {
        if let Some(known) = self.undefined_site_taint(here) {
            return known;
        }
        let me = &here.workgroup.invocations[here.index];
        let at = vec![(self.current_site(me), me.identity, access)];
        self.undefined_sources.push(SiteFinding { kind, message, at, inputs: 0 });
        self.undefined_site_taint(here).unwrap_or(SITE_MASK)
    }

    /// Does the same for an instruction whose result is undefined for its operands.
    ///
    /// `operands` is the taint of its operands.
    pub fn undefined_instruction_result(
        &mut self,
        here: &InvocationCtx<'_>,
        op: Op,
        operands: Taint,
    ) -> Step<Taint> {
        let told = undefined_result(op).ok_or_else(|| unsupported(format!("Op{op:?} of this type")))?;
        self.note_inputs(here, operands);
        Ok(self.undefined_result(here, told, None))
    }

    /// Returns the taint bit of the current site, if it produced an undefined value before.
    pub fn undefined_site_taint(&self, here: &InvocationCtx<'_>) -> Option<Taint> {
        let site = self.current_site(&here.workgroup.invocations[here.index]);
        let at = self
            .undefined_sources
            .iter()
            .position(|found| found.at.first().is_some_and(|at| at.0 == site))?;
        // Sites beyond the last bit share it: a value from one of them is attributed to all.
        Some(1 << (FIRST_SITE + at as u32).min(LAST_SITE))
    }

    /// Reports the sites that a tainted value comes from.
    pub fn observe_undefined(&mut self, taint: Taint) {
        if taint & SITE_MASK == 0 {
            return;
        }
        for at in 0..self.undefined_sources.len() {
            if taint >> (FIRST_SITE + at as u32).min(LAST_SITE) & 1 != 0 {
                self.report(self.undefined_sources[at].clone());
            }
        }
    }

    /// Returns true while probing for a spin loop: no effect may become visible.
    pub fn is_probing(&self) -> bool {
        self.spin_reads.is_some()
    }

    /// Returns the number of the current instruction.
    pub fn current_site(&self, invocation: &Invocation) -> u32 {
        let Some(frame) = invocation.frames.last() else { return invocation.last_site };
        let function = self.program.functions.get(frame.function);
        function.map_or(0, |function| function.first_site) + frame.at as u32
    }

    /// Reports a defect at the current instruction.
    pub fn report_here(&mut self, here: &mut InvocationCtx<'_>, kind: FindingKind, message: String) {
        let me = &here.workgroup.invocations[here.index];
        let at = vec![(self.current_site(me), me.identity, None)];
        self.report(SiteFinding { kind, message, at, inputs: 0 });
    }

    /// Reports a defect once for each set of source lines.
    pub fn report(&mut self, mut found: SiteFinding) {
        let mut sites: Vec<u32> = found
            .at
            .iter()
            .map(|(site, ..)| match self.program.source_place(*site) {
                // Sites without a line are distinguished by their number; the tag distinguishes them from
                // lines.
                (0, _) => *site | GLOBAL,
                (line, _) => line,
            })
            .collect();
        sites.sort_unstable();
        if self.reported.insert((found.kind, sites)) {
            found.inputs |= found.at.iter().fold(0, |all, at| all | self.influence.of_site(at.0));
            if found.kind == FindingKind::Hang {
                found.inputs |= self.influence.control;
            }
            self.findings.push(found);
        }
    }

    /// Reports a race of two accesses.
    pub fn report_race(
        &mut self,
        name: &str,
        earlier: (&AccessRecord, InvocationId),
        later: (&AccessRecord, InvocationId),
        standing: AccessOrder,
    ) {
        let does = |record: &AccessRecord| match (record.site.kind.atomic, record.site.kind.writes) {
            (true, true) => "atomically writes",
            (true, false) => "atomically reads",
            (false, true) => "writes",
            (false, false) => "reads",
        };
        let (kind, why) = match standing {
            AccessOrder::Unpublished => (
                FindingKind::UnpublishedRead,
                "the write happens before, but is not made available and visible to the read",
            ),
            _ if earlier.0.site.kind.atomic && later.0.site.kind.atomic => {
                (FindingKind::Race, "both are atomic, but outside each other's scope or of different sizes")
            }
            _ if (earlier.0.epoch.workgroup, earlier.0.subgroup)
                == (later.0.epoch.workgroup, later.0.subgroup) =>
            {
                // One instruction executed by all lanes together is unordered even in lockstep.
                let lockstep =
                    earlier.0.site.instruction != later.0.site.instruction && self.setup.subgroups > 1;
                match lockstep {
                    true => (FindingKind::Lockstep, LOCKSTEP_REASON),
                    false => (
                        FindingKind::Race,
                        "the accesses are not ordered, although both invocations are lanes of one subgroup",
                    ),
                }
            }
            _ => (FindingKind::Race, "the accesses are not ordered"),
        };
        let writes = |record: &AccessRecord| record.site.kind.writes && !record.site.kind.atomic;
        let same = match self.stores_same_value && writes(earlier.0) && writes(later.0) {
            true => "; the write stores the value that memory already holds, which is still a race",
            false => "",
        };
        let message = format!(
            "data race on `{name}`: invocation {} {} it{}, invocation {} {} it{}, and {why}{same}",
            earlier.1,
            does(earlier.0),
            self.describe_calls(earlier.0.site.calls),
            later.1,
            does(later.0),
            self.describe_calls(later.0.site.calls)
        );
        let spot = |(record, identity): (&AccessRecord, InvocationId)| {
            (record.site.instruction, identity, Some(record.site.kind.writes))
        };
        self.report(SiteFinding { kind, message, at: vec![spot(earlier), spot(later)], inputs: 0 });
    }

    /// Describes the calls that led to an access, innermost first.
    fn describe_calls(&self, mut calls: u32) -> String {
        let mut lines = Vec::new();
        // Call stacks are numbered from 1; 0 is that of the entry point.
        while let Some((before, site)) = calls.checked_sub(1).and_then(|at| self.calls.get(at as usize)) {
            if let SourcePosition::Line(line) = self.source_position(*site) {
                lines.push(line.to_string());
            }
            calls = *before;
        }
        match &lines[..] {
            [] => String::new(),
            [line] => format!(" in the call of line {line}"),
            lines => format!(" in the calls of lines {}", lines.join(", ")),
        }
    }

    pub fn set_result(
        &self,
        here: &mut InvocationCtx<'_>,
        inst: &Inst<'_>,
        value: ConcreteValue,
    ) -> Step<()> {
        let frame = here.frame_mut()?;
        scatter_value(&mut frame.values, inst.result, value)?;
        frame.at += 1;
        Ok(())
    }

    /// Returns a frame for a function, reusing an old one.
    pub fn new_frame(&mut self, function: usize, result: Slots, locals: usize) -> Option<CallFrame> {
        let ready = self.program.functions.get(function)?;
        // Stale values are harmless: every result is written before it is read.
        let left = self.spare_frames.get_mut(function).and_then(Vec::pop);
        let (values, loops) = left.map_or_else(
            || (vec![ConcreteValue::Bits(0, UNDEFINED); ready.slots as usize], Vec::new()),
            |left| (left.values, left.loops),
        );
        Some(CallFrame { function, at: 0, block: 0, values, loops, result, locals, calls: 0 })
    }

    /// Stores a frame for reuse.
    fn recycle_frame(&mut self, mut frame: CallFrame) {
        if frame.function >= self.spare_frames.len() {
            self.spare_frames.resize_with(frame.function + 1, Vec::new);
        }
        frame.loops.clear();
        self.spare_frames[frame.function].push(frame);
    }

    /// Ends an invocation at its current instruction.
    pub fn end_invocation(&mut self, here: &mut InvocationCtx<'_>) {
        let site = self.current_site(&here.workgroup.invocations[here.index]);
        let me = here.invocation_mut();
        me.last_site = site;
        me.state = InvocationState::Ended;
        me.locals.recycle_into(&mut self.spare_objects);
        me.frames.drain(..).for_each(|frame| self.recycle_frame(frame));
    }

    /// Enters a called function.
    fn call_function(
        &mut self,
        here: &mut InvocationCtx<'_>,
        inst: &Inst<'_>,
        (callee, arguments): (u32, &[u32]),
        site: u32,
    ) -> Step<()> {
        let program = self.program;
        let Some(function) = program.by_id.get(&callee) else {
            return Err(malformed("a call of an id that is not a function").into());
        };
        if here.invocation_mut().frames.len() >= MAX_CALLS {
            return Err(Problem::Budget { what: "nested calls", bound: MAX_CALLS }.into());
        }
        let locals = here.invocation_mut().locals.len();
        let calls = (here.frame_mut()?.calls, site);
        let next = self.calls.len() as u32 + 1;
        let number = *self.calls_by_site.entry(calls).or_insert(next);
        // The pair of caller and site was new.
        if number == next {
            self.calls.push(calls);
        }
        let frame = self.new_frame(*function, inst.result, locals);
        let mut frame = frame.ok_or_else(|| malformed("no such function"))?;
        frame.calls = number;
        let caller = here.frame_mut()?;
        for (to, id) in program.functions[*function].parameters.iter().zip(arguments) {
            copy_slots(&self.globals, &caller.values, program.slots_of(*id), &mut frame.values, *to)
                .ok_or_else(|| self.missing_value(*id))?;
        }
        here.invocation_mut().frames.push(frame);
        Ok(())
    }

    /// Returns the dynamic instance of the current instruction.
    ///
    /// It consists of the calls and loop iterations around it, in an order that puts earlier positions first.
    pub fn dynamic_instance(&self, invocation: &Invocation) -> Rc<Vec<u32>> {
        let mut all = Vec::new();
        // Lexicographic order: outer calls and loops first, so that a smaller list is an earlier
        // position in structured control flow.
        for frame in &invocation.frames {
            let function = &self.program.functions[frame.function];
            for (header, bodies) in &frame.loops {
                all.push(function.labels.get(header).copied().unwrap_or(0) as u32);
                all.push(*bodies);
            }
            all.push(frame.at as u32);
        }
        Rc::new(all)
    }

    /// Executes one instruction.
    pub fn step_once(&mut self, here: &mut InvocationCtx<'_>) -> Step<()> {
        self.run_steps(here, 1)
    }

    /// Executes at most `most` instructions.
    pub fn run_steps(&mut self, here: &mut InvocationCtx<'_>, most: u64) -> Step<()> {
        // The fast path stops at the first instruction that it does not handle, which is executed
        // below.
        if self.run_fast_path(here, most)? >= most {
            return Ok(());
        }
        let program = self.program;
        let frame = here.workgroup.invocations[here.index].frames.last().ok_or(StepInterrupt::Ended)?;
        let function = &program.functions[frame.function];
        let Some(inst) = function.code.get(frame.at) else {
            return Err(malformed("control flow leaves a function without a return").into());
        };
        let site = function.first_site as usize + frame.at;
        self.steps += 1;
        match inst.operation {
            SpirvOperation::Label => {
                let frame = here.frame_mut()?;
                if frame.block == 0 {
                    frame.block = inst.raw.result;
                }
                frame.at += 1;
                if let Some(entries) = self.block_entries.get_mut(site) {
                    *entries = entries.saturating_add(1);
                }
                Ok(())
            }
            SpirvOperation::Branch { target } => self.jump_to(here, target),
            SpirvOperation::BranchConditional { condition, yes, no } => {
                // The condition does not matter if both targets are the same.
                if yes == no {
                    return self.jump_to(here, yes);
                }
                if self.value_of_id(here, condition)?.combined_taint() & OPAQUE != 0 {
                    return self.execute_both_branches(here, [yes, no]);
                }
                let taken = self.control_number(here, condition, "a condition")?;
                self.note_branch(here, condition, &[])?;
                self.jump_to(here, if taken != 0 { yes } else { no })
            }
            SpirvOperation::Switch { selector, default, cases } => {
                let selected = self.control_number(here, selector, "a selector")?;
                self.note_branch(here, selector, cases)?;
                let mut cases = switch_cases(cases, program.number_bits(selector));
                let case = cases.find(|case| case.literal == selected);
                self.jump_to(here, case.map_or(default, |case| case.target))
            }
            SpirvOperation::Return { value } => self.return_from_function(here, value),
            SpirvOperation::Call { function, arguments } => {
                self.call_function(here, inst, (function, arguments), site as u32)
            }
            SpirvOperation::Unreachable => {
                self.report_here(
                    here,
                    FindingKind::UndefinedBehaviour,
                    "OpUnreachable is reached".to_owned(),
                );
                Err(StepInterrupt::Ended)
            }
            // A helper invocation has no effects.
            SpirvOperation::Kill { .. } => Err(StepInterrupt::Ended),
            SpirvOperation::EmitMeshTasks { .. } if self.setup.stage == Stage::Task => {
                Err(StepInterrupt::Ended)
            }
            // The declared vertex and primitive counts do not affect memory.
            SpirvOperation::SetMeshOutputs { .. } if self.setup.stage == Stage::Mesh => {
                here.frame_mut()?.at += 1;
                Ok(())
            }
            _ => self.execute_instruction(here, inst),
        }
    }

    fn return_from_function(&mut self, here: &mut InvocationCtx<'_>, value: Option<u32>) -> Step<()> {
        let me = here.invocation_mut();
        if me.frames.len() < 2 {
            return Err(StepInterrupt::Ended);
        }
        let (Some(left), Some(frame)) = (me.frames.pop(), me.frames.last_mut()) else {
            return Err(StepInterrupt::Ended);
        };
        if let Some(id) = value {
            let slots = self.program.slots_of(id);
            copy_slots(&self.globals, &left.values, slots, &mut frame.values, left.result)
                .ok_or_else(|| self.missing_value(id))?;
        }
        frame.at += 1;
        me.locals.truncate_to(left.locals);
        self.recycle_frame(left);
        Ok(())
    }

    /// Returns the source position of an instruction.
    pub fn source_position(&self, site: u32) -> SourcePosition {
        let (line, place) = self.program.source_place(site);
        match self.program.module.lines.get(line as usize) {
            Some(source) if line > 0 => SourcePosition::Line(source.line),
            _ => place,
        }
    }

    /// Returns the blocks that were entered at least `count` times.
    pub fn blocks_entered(&self, count: u8) -> Vec<bool> {
        self.block_entries.iter().map(|entries| *entries >= count).collect()
    }

    /// Returns the accessed bytes and the size of their shadow memory.
    pub fn shadow_bytes(&self) -> (u64, u64) {
        let objects = self.objects.iter().chain(self.workgroups.values().flat_map(|one| &one.objects));
        objects
            .map(|object| object.shadow.byte_counts())
            .fold(self.largest_shadow, |all, one| (all.0 + one.0, all.1 + one.1))
    }

    /// Returns the object that a pointer refers to.
    pub fn object_mut<'m>(
        &'m mut self,
        here: &'m mut InvocationCtx<'_>,
        number: u32,
    ) -> Option<&'m mut MemoryObject> {
        if number & LOCAL != 0 {
            here.invocation_mut().locals.as_mut_slice().get_mut((number & !LOCAL) as usize)
        } else if number & SHARED != 0 {
            here.workgroup.objects.get_mut((number & !SHARED) as usize)
        } else {
            self.objects.get_mut(number as usize)
        }
    }
}
