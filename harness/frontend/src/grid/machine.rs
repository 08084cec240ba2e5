//! The machine that walks a grid: its invocations, their frames, and control flow.

use std::collections::BTreeMap;
use std::rc::Rc;

use arithmetic::mask;
use rspirv::spirv::Op;
use rustc_hash::FxHashMap;

use crate::error::{Place, Problem, malformed, unsupported};
use crate::lacking::without_result;
use crate::lift::{FindingKind, Identity};
use crate::section::{Sections, Side};
use crate::stage::Stage;
use crate::until::Until;

use super::fast_path::{copy_slots, gather_slots, read_slot, scatter_value};
use super::happens_before::{HappensBeforeView, ReleaseMessage, ReleaseSet};
use super::memory::{MemoryObject, PrivateObjects};
use super::program::{DecodedProgram, GLOBAL, Inst, Slots};
use super::shadow::{AccessOrder, AccessRecord, InvocationNumbering, SelfVisibleWrites};
use super::value::{
    ConcreteValue, FIRST_SITE, LOCAL, OPAQUE, SCHEDULE_DEPENDENT, SITE_MASK, Taint, UNDEFINED,
};

/// What is said of two lanes that only lockstep would order.
const LOCKSTEP_REASON: &str =
    "nothing orders the two: they are lanes of one subgroup, which need not go on in lockstep";
/// Calls in calls at most.
const MAX_CALLS: usize = 64;
/// Objects of each workgroup: their pointers say so and which.
pub(super) const SHARED: u32 = 1 << 30;

/// A call that is not over.
#[derive(Clone, Debug)]
pub(super) struct CallFrame {
    pub function: usize,
    pub at: usize,
    pub block: u32,
    pub values: Vec<ConcreteValue>,
    /// Headers of the loops around, with the bodies begun.
    pub loops: Vec<(u32, u32)>,
    /// Where the result of the call goes.
    result: Slots,
    /// Objects of the invocation before the call.
    locals: usize,
    /// The calls that led here, by their number; 0 for none.
    pub calls: u32,
}

/// What an invocation does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum InvocationState {
    Running,
    /// It waits at a control barrier, or with others at an operation of its subgroup: which instance.
    Waiting(Rc<Vec<u32>>),
    Ended,
}

/// An invocation.
#[derive(Clone, Debug)]
pub(super) struct Invocation {
    pub identity: Identity,
    pub number: u32,
    pub subgroup: u32,
    pub lane: u32,
    pub numbering: InvocationNumbering,
    pub frames: Vec<CallFrame>,
    pub locals: PrivateObjects,
    pub views: [HappensBeforeView; 3],
    pub state: InvocationState,
    /// Releases of memory barriers, for the atomics and barriers that follow.
    pub pending_releases: Vec<Rc<ReleaseMessage>>,
    /// What atomics and barriers took, for memory barriers that follow; whether those of a subgroup are told as one, in the order of
    /// their subgroups.
    pub pending_acquires: Vec<Rc<ReleaseMessage>>,
    pub acquires_are_merged: bool,
    /// What an atomic found last, which is in `taken`.
    pub last_received: Option<ReleaseSet>,
    /// Of places whose atomics name other classes than their own, or that others' reads see less of: up to which step of whom their
    /// writes there are seen.
    pub self_visible: BTreeMap<(u32, u32, u64), SelfVisibleWrites>,
    /// How often it has arrived at split barriers and waited there, of its subgroup and of its workgroup.
    pub split_counts: [(u32, u32); 2],
    /// Counts its releases, and where reads may see more by themselves its writes: what others know of it is up to a release, so that
    /// accesses between two of them need not be told apart.
    pub clock: u32,
    /// What it was at its last release.
    pub last_release: u32,
    /// Where it stands to its interlocked section.
    pub interlock: Side,
    /// The last instruction before the end.
    pub last_site: u32,
    /// Whether it changed nothing when it went on last, and goes on.
    pub made_no_change: bool,
}

/// A workgroup.
#[derive(Clone, Debug)]
pub(super) struct WorkgroupState {
    pub invocations: Vec<Invocation>,
    pub objects: Vec<MemoryObject>,
    /// Control barriers of the whole workgroup so far, for each class.
    pub barrier_epochs: [u32; 3],
    /// Rounds of split barriers, of each subgroup and of all, by number: what those release who arrive.
    pub split_rounds: BTreeMap<(Option<u32>, u32), Vec<Rc<ReleaseMessage>>>,
}

/// Something that was found.
#[derive(Clone, Debug)]
pub(super) struct SiteFinding {
    pub kind: FindingKind,
    pub message: String,
    /// Site, invocation, and whether it writes.
    pub at: Vec<(u32, Identity, Option<bool>)>,
}

/// What decides how a walk goes on.
pub(super) struct WalkSetup {
    pub grid: [u32; 3],
    /// By variable what annotations say that it holds at first: offset, bytes and number of each scalar.
    pub annotated_values: FxHashMap<u32, Vec<(u64, u32, u64)>>,
    pub stage: Stage,
    /// As [`Options::given`](crate::Options::given).
    pub given: BTreeMap<u32, Vec<u8>>,
    pub local_size: [u32; 3],
    /// What is said of interlocked sections.
    pub sections: Option<Sections>,
    pub subgroup_size: u32,
    /// Subgroups of a workgroup.
    pub subgroups: u32,
    pub function: usize,
    /// Variables of each workgroup and of each invocation, in the order of their objects.
    pub workgroup_variables: Vec<u32>,
    pub private_variables: Vec<u32>,
    /// Whether more than barriers of workgroups orders invocations.
    pub has_fine_ordering: bool,
    /// Whether reads of one class of memory see by themselves more in some places than in others.
    pub has_mixed_visibility: bool,
    /// Whether accesses are not looked at.
    pub skip_race_checks: bool,
    /// When walking is given up.
    pub deadline: Option<Until>,
}

impl WalkSetup {
    /// How invocations are numbered.
    pub fn numbering(&self) -> InvocationNumbering {
        InvocationNumbering {
            workgroup_size: self.local_size.iter().product(),
            subgroup_size: self.subgroup_size,
        }
    }
}

/// Everything of one walk.
#[derive(Clone)]
pub(super) struct Interpreter<'a> {
    pub setup: &'a WalkSetup,
    pub program: &'a DecodedProgram<'a>,
    pub globals: Vec<ConcreteValue>,
    pub objects: Vec<MemoryObject>,
    pub descriptors: FxHashMap<u32, super::setup::DescriptorArray>,
    /// Those that have begun and not ended, by their index.
    pub workgroups: FxHashMap<u32, Box<WorkgroupState>>,
    /// By their coordinates, those in whose sections somebody was.
    pub pixels: BTreeMap<(u32, u32), super::interlock::PixelInterlock>,
    /// What atomics stored releases, by object and offset.
    pub releases: FxHashMap<(u32, u32, u64), ReleaseSet>,
    pub findings: Vec<SiteFinding>,
    pub reported: std::collections::BTreeSet<(FindingKind, Vec<u32>)>,
    /// Whether the order of the invocations decides where control goes or what is accessed.
    pub schedule_dependent: bool,
    /// What else a reader should know.
    pub notes: std::collections::BTreeSet<String>,
    pub steps: u64,
    /// How often memory or the state of an invocation changed for others.
    pub changes: u64,
    /// Events that other invocations may come between.
    pub events: u64,
    /// Accesses of memory that others see.
    pub accesses: u64,
    /// Whether the one that is looked at stores what is there already.
    pub stores_same_value: bool,
    /// What is accessed, where that is asked for.
    pub spin_reads: Option<Vec<super::deadlock::SpinRead>>,
    /// How lanes share the elements of matrices.
    pub rotation: u32,
    /// Places that gave a value without a defined one, in the order of their bits among what is to be known of it.
    pub undefined_sources: Vec<SiteFinding>,
    /// Blocks that somebody came to, by the number of their label among the instructions of the module.
    pub reached_blocks: Vec<bool>,
    /// Whether there is one invocation only.
    pub is_single_invocation: bool,
    /// What [`shadow`](Machine::shadow) says of the largest workgroup that has ended.
    pub largest_shadow: (u64, u64),
    /// Frames of each function that were left, for others of it.
    pub spare_frames: Vec<Vec<CallFrame>>,
    /// Variables of invocations that have ended, for others.
    pub spare_objects: Vec<MemoryObject>,
    /// Calls that somebody made: the calls before each and where it is, and the number of each by these.
    pub calls: Vec<(u32, u32)>,
    pub calls_by_site: FxHashMap<(u32, u32), u32>,
    /// Variables of invocations as they are at first.
    pub private_templates: Vec<super::workgroup_start::PrivateTemplate>,
    /// Looks that are left for lanes that wait for others of their subgroup.
    pub trial_budget: super::subgroup_starvation::TrialBudget,
}

/// Why a step did not lead to the next.
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

pub(super) type Step<T> = Result<T, StepInterrupt>;

/// An invocation with its workgroup.
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
    /// The value of an operand.
    pub fn operand_value(&self, here: &InvocationCtx<'_>, inst: &Inst, index: usize) -> Step<ConcreteValue> {
        let id = self.program.module.operand(&inst.raw, index)?;
        self.value_of_id(here, id)
    }

    /// The value of an id.
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
        malformed(format!("{} has no value", self.program.module.name(id))).into()
    }

    /// The value of an id that is no vector, where it is.
    #[inline]
    pub fn single_slot_value<'v>(&'v self, here: &'v InvocationCtx<'_>, id: u32) -> Step<&'v ConcreteValue> {
        let slots = self.program.slots_of(id);
        if slots.count > 0 {
            return Err(malformed(format!("{} is a vector", self.program.module.name(id))).into());
        }
        slots.single_slot().and_then(|slot| self.slot_value(here, slot)).ok_or_else(|| self.missing_value(id))
    }

    /// What is in a slot.
    pub fn slot_value<'v>(&'v self, here: &'v InvocationCtx<'_>, slot: u32) -> Option<&'v ConcreteValue> {
        read_slot(self.frame_values(here), &self.globals, slot)
    }

    /// A number that decides something.
    pub fn control_number(
        &mut self,
        here: &mut InvocationCtx<'_>,
        inst: &Inst,
        index: usize,
        what: &str,
    ) -> Step<u64> {
        let id = self.program.module.operand(&inst.raw, index)?;
        let (bits, taint) = match self.single_slot_value(here, id)? {
            ConcreteValue::Bits(bits, taint) => (*bits, *taint),
            ConcreteValue::NoBits(taint) => (0, *taint),
            _ => return Err(malformed(format!("Op{:?} with other operands", inst.raw.op)).into()),
        };
        self.check_control_dependence(here, taint, what)?;
        Ok(bits)
    }

    /// A value decides where control goes or what is accessed.
    pub fn check_control_dependence(
        &mut self,
        here: &mut InvocationCtx<'_>,
        taint: Taint,
        what: &str,
    ) -> Step<()> {
        if taint == 0 {
            return Ok(());
        }
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

    /// What has no defined value, such as a read beyond an end, which is told once somebody looks at what it gave: the bit for that.
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
        self.undefined_sources.push(SiteFinding { kind, message, at });
        self.undefined_site_taint(here).unwrap_or(SITE_MASK)
    }

    /// The same of an instruction without a defined result.
    pub fn undefined_instruction_result(&mut self, here: &InvocationCtx<'_>, op: Op) -> Step<Taint> {
        let told = without_result(op).ok_or_else(|| unsupported(format!("Op{op:?} of this type")))?;
        Ok(self.undefined_result(here, told, None))
    }

    /// The bit for what has no defined value where an invocation stands, where there was such a thing.
    pub fn undefined_site_taint(&self, here: &InvocationCtx<'_>) -> Option<Taint> {
        let site = self.current_site(&here.workgroup.invocations[here.index]);
        let at = self
            .undefined_sources
            .iter()
            .position(|found| found.at.first().is_some_and(|at| at.0 == site))?;
        Some(1 << (FIRST_SITE + at as u32).min(31))
    }

    /// Tells where a value comes from that is not defined.
    pub fn observe_undefined(&mut self, taint: Taint) {
        if taint & SITE_MASK == 0 {
            return;
        }
        for at in 0..self.undefined_sources.len() {
            if taint >> (FIRST_SITE + at as u32).min(31) & 1 != 0 {
                self.report(self.undefined_sources[at].clone());
            }
        }
    }

    /// Whether it is only looked whether a loop comes round: what others would see of it is not done.
    pub fn is_probing(&self) -> bool {
        self.spin_reads.is_some()
    }

    /// The number of the instruction where an invocation stands.
    pub fn current_site(&self, invocation: &Invocation) -> u32 {
        let Some(frame) = invocation.frames.last() else { return invocation.last_site };
        let function = self.program.functions.get(frame.function);
        function.map_or(0, |function| function.first_site) + frame.at as u32
    }

    /// Notes something about the invocation where it stands.
    pub fn report_here(&mut self, here: &mut InvocationCtx<'_>, kind: FindingKind, message: String) {
        let me = &here.workgroup.invocations[here.index];
        let at = vec![(self.current_site(me), me.identity, None)];
        self.report(SiteFinding { kind, message, at });
    }

    /// Notes something, once for each set of places.
    pub fn report(&mut self, found: SiteFinding) {
        let mut sites: Vec<u32> = found
            .at
            .iter()
            .map(|(site, ..)| match self.program.source_place(*site) {
                (0, _) => *site | GLOBAL,
                (line, _) => line,
            })
            .collect();
        sites.sort_unstable();
        if self.reported.insert((found.kind, sites)) {
            self.findings.push(found);
        }
    }

    /// Two accesses that nothing orders.
    pub fn report_race(
        &mut self,
        name: &str,
        earlier: (&AccessRecord, Identity),
        later: (&AccessRecord, Identity),
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
                (FindingKind::Race, "both are atomic, but not in each other's scope or of one size")
            }
            _ if (earlier.0.epoch.workgroup, earlier.0.subgroup)
                == (later.0.epoch.workgroup, later.0.subgroup) =>
            {
                // What one instruction does for all lanes at once has no order in lockstep either.
                let lockstep =
                    earlier.0.site.instruction != later.0.site.instruction && self.setup.subgroups > 1;
                match lockstep {
                    true => (FindingKind::Lockstep, LOCKSTEP_REASON),
                    false => (FindingKind::Race, "nothing orders the two, lanes of one subgroup as they are"),
                }
            }
            _ => (FindingKind::Race, "nothing orders the two"),
        };
        let writes = |record: &AccessRecord| record.site.kind.writes && !record.site.kind.atomic;
        let same = match self.stores_same_value && writes(earlier.0) && writes(later.0) {
            true => "; it is the value that is there already, which makes it no less a race",
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
        let spot = |(record, identity): (&AccessRecord, Identity)| {
            (record.site.instruction, identity, Some(record.site.kind.writes))
        };
        self.report(SiteFinding { kind, message, at: vec![spot(earlier), spot(later)] });
    }

    /// The calls that led to an access, the innermost first, in words.
    fn describe_calls(&self, mut calls: u32) -> String {
        let mut lines = Vec::new();
        while let Some((before, site)) = calls.checked_sub(1).and_then(|at| self.calls.get(at as usize)) {
            if let Place::Line(line) = self.source_position(*site) {
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

    pub fn set_result(&self, here: &mut InvocationCtx<'_>, inst: &Inst, value: ConcreteValue) -> Step<()> {
        let frame = here.frame_mut()?;
        scatter_value(&mut frame.values, inst.result, value)?;
        frame.at += 1;
        Ok(())
    }

    /// A frame for a function, with nothing in it.
    pub fn new_frame(&mut self, function: usize, result: Slots, locals: usize) -> Option<CallFrame> {
        let ready = self.program.functions.get(function)?;
        // What another left in it is no matter: no result is looked at before there is one.
        let left = self.spare_frames.get_mut(function).and_then(Vec::pop);
        let (values, loops) = left.map_or_else(
            || (vec![ConcreteValue::Bits(0, UNDEFINED); ready.slots as usize], Vec::new()),
            |left| (left.values, left.loops),
        );
        Some(CallFrame { function, at: 0, block: 0, values, loops, result, locals, calls: 0 })
    }

    /// Keeps a frame that was left.
    fn recycle_frame(&mut self, mut frame: CallFrame) {
        if frame.function >= self.spare_frames.len() {
            self.spare_frames.resize_with(frame.function + 1, Vec::new);
        }
        frame.loops.clear();
        self.spare_frames[frame.function].push(frame);
    }

    /// An invocation has ended where it stands.
    pub fn end_invocation(&mut self, here: &mut InvocationCtx<'_>) {
        let site = self.current_site(&here.workgroup.invocations[here.index]);
        let me = here.invocation_mut();
        me.last_site = site;
        me.state = InvocationState::Ended;
        me.locals.recycle_into(&mut self.spare_objects);
        me.frames.drain(..).for_each(|frame| self.recycle_frame(frame));
    }

    /// Begins a call.
    fn call_function(&mut self, here: &mut InvocationCtx<'_>, inst: &Inst, site: u32) -> Step<()> {
        let program = self.program;
        let (callee, arguments) =
            program.module.operands(&inst.raw).split_first().ok_or_else(|| malformed("a call of nothing"))?;
        let Some(function) = program.by_id.get(callee) else {
            return Err(malformed("a call of what is no function").into());
        };
        if here.invocation_mut().frames.iter().any(|frame| frame.function == *function) {
            return Err(malformed("recursion, which SPIR-V does not have").into());
        }
        if here.invocation_mut().frames.len() >= MAX_CALLS {
            return Err(Problem::Budget { what: "calls in calls", bound: MAX_CALLS }.into());
        }
        let locals = here.invocation_mut().locals.len();
        let calls = (here.frame_mut()?.calls, site);
        let next = self.calls.len() as u32 + 1;
        let number = *self.calls_by_site.entry(calls).or_insert(next);
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

    /// The instance of where an invocation stands: calls and loops with their bodies, in an order in which what comes
    /// first in the program is less.
    pub fn dynamic_instance(&self, invocation: &Invocation) -> Rc<Vec<u32>> {
        let mut all = Vec::new();
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

    /// Goes on by one instruction.
    pub fn step_once(&mut self, here: &mut InvocationCtx<'_>) -> Step<()> {
        self.run_steps(here, 1)
    }

    /// Goes on by some instructions, `most` at most.
    pub fn run_steps(&mut self, here: &mut InvocationCtx<'_>, most: u64) -> Step<()> {
        if self.run_fast_path(here, most)? >= most {
            return Ok(());
        }
        let program = self.program;
        let frame = here.workgroup.invocations[here.index].frames.last().ok_or(StepInterrupt::Ended)?;
        let function = &program.functions[frame.function];
        let Some(inst) = function.code.get(frame.at) else {
            return Err(malformed("control leaves a function at its end").into());
        };
        let site = function.first_site as usize + frame.at;
        self.steps += 1;
        match inst.raw.op {
            Op::Label => {
                let frame = here.frame_mut()?;
                if frame.block == 0 {
                    frame.block = inst.raw.result;
                }
                frame.at += 1;
                if let Some(reached) = self.reached_blocks.get_mut(site) {
                    *reached = true;
                }
                Ok(())
            }
            Op::Branch => {
                let target = program.module.operand(&inst.raw, 0)?;
                self.jump_to(here, target)
            }
            Op::BranchConditional => {
                let operands = program.module.operands(&inst.raw);
                // Which way is no matter where both are one.
                let taken = match operands {
                    [_, yes, no, ..] if yes == no => 1,
                    _ if self.operand_value(here, inst, 0)?.combined_taint() & OPAQUE != 0 => {
                        return self.execute_both_branches(here, inst);
                    }
                    _ => self.control_number(here, inst, 0, "a condition")?,
                };
                let target = program.module.operand(&inst.raw, if taken != 0 { 1 } else { 2 })?;
                self.jump_to(here, target)
            }
            Op::Switch => self.execute_switch(here, inst),
            Op::Return | Op::ReturnValue => self.return_from_function(here, inst),
            Op::FunctionCall => self.call_function(here, inst, site as u32),
            Op::Unreachable => {
                self.report_here(
                    here,
                    FindingKind::UndefinedBehaviour,
                    "OpUnreachable is reached".to_owned(),
                );
                Err(StepInterrupt::Ended)
            }
            // Nothing that a helper does has an effect.
            Op::Kill | Op::TerminateInvocation | Op::DemoteToHelperInvocation => Err(StepInterrupt::Ended),
            Op::EmitMeshTasksEXT if self.setup.stage == Stage::Task => Err(StepInterrupt::Ended),
            // How many vertices and primitives are used is nothing of memory.
            Op::SetMeshOutputsEXT if self.setup.stage == Stage::Mesh => {
                here.frame_mut()?.at += 1;
                Ok(())
            }
            _ => self.execute_instruction(here, inst),
        }
    }

    fn execute_switch(&mut self, here: &mut InvocationCtx<'_>, inst: &Inst) -> Step<()> {
        let program = self.program;
        let selected = self.control_number(here, inst, 0, "a selector")?;
        let operands = program.module.operands(&inst.raw);
        let bits =
            operands.first().and_then(|id| program.number_layout(program.type_of(*id))).map_or(32, |of| of.1);
        let mut target = *operands.get(1).ok_or_else(|| malformed("OpSwitch without a default"))?;
        for case in operands[2..].chunks_exact(if bits > 32 { 3 } else { 2 }) {
            let literal = u64::from(case[0]) | if bits > 32 { u64::from(case[1]) << 32 } else { 0 };
            if literal & mask(bits) == selected {
                target = case[case.len() - 1];
                break;
            }
        }
        self.jump_to(here, target)
    }

    fn return_from_function(&mut self, here: &mut InvocationCtx<'_>, inst: &Inst) -> Step<()> {
        let me = here.invocation_mut();
        if me.frames.len() < 2 {
            return Err(StepInterrupt::Ended);
        }
        let (Some(left), Some(frame)) = (me.frames.pop(), me.frames.last_mut()) else {
            return Err(StepInterrupt::Ended);
        };
        if inst.raw.op == Op::ReturnValue {
            let id = self.program.module.operand(&inst.raw, 0)?;
            let slots = self.program.slots_of(id);
            copy_slots(&self.globals, &left.values, slots, &mut frame.values, left.result)
                .ok_or_else(|| self.missing_value(id))?;
        }
        frame.at += 1;
        me.locals.truncate_to(left.locals);
        self.recycle_frame(left);
        Ok(())
    }

    /// The place of the instruction where an invocation stands.
    pub fn source_position(&self, site: u32) -> Place {
        let (line, place) = self.program.source_place(site);
        match self.program.module.lines.get(line as usize) {
            Some(source) if line > 0 => Place::Line(source.line),
            _ => place,
        }
    }

    /// Bytes that accesses were looked at of, and bytes that this took.
    pub fn shadow_bytes(&self) -> (u64, u64) {
        let objects = self.objects.iter().chain(self.workgroups.values().flat_map(|one| &one.objects));
        objects
            .map(|object| object.shadow.byte_counts())
            .fold(self.largest_shadow, |all, one| (all.0 + one.0, all.1 + one.1))
    }

    /// The object that a pointer is to.
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
