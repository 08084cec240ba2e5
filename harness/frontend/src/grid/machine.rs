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

use super::clock::{Carried, Message, View};
use super::memory::{Locals, Object};
use super::program::{GLOBAL, Inst, Program, Slots};
use super::quick::{at, copied, gathered, spread};
use super::shadow::{Record, Seen, Shape, Standing};
use super::value::{FIRST_SITE, LOCAL, OPAQUE, OPEN, SITES, Taint, UNDEFINED, Value};

/// What is said of two lanes that only lockstep would order.
const LOCKSTEP: &str =
    "nothing orders the two: they are lanes of one subgroup, which need not go on in lockstep";
/// Calls in calls at most.
const MAX_CALLS: usize = 64;
/// Objects of each workgroup: their pointers say so and which.
pub(super) const SHARED: u32 = 1 << 30;

/// A call that is not over.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    pub function: usize,
    pub at: usize,
    pub block: u32,
    pub values: Vec<Value>,
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
pub(super) enum Doing {
    Runs,
    /// It waits at a control barrier, or with others at an operation of its subgroup: which instance.
    Waits(Rc<Vec<u32>>),
    Ended,
}

/// An invocation.
#[derive(Clone, Debug)]
pub(super) struct Invocation {
    pub identity: Identity,
    pub number: u32,
    pub subgroup: u32,
    pub lane: u32,
    pub shape: Shape,
    pub frames: Vec<Frame>,
    pub locals: Locals,
    pub views: [View; 3],
    pub doing: Doing,
    /// Releases of memory barriers, for the atomics and barriers that follow.
    pub released: Vec<Rc<Message>>,
    /// What atomics and barriers took, for memory barriers that follow; whether those of a subgroup are told as one, in the order of
    /// their subgroups.
    pub taken: Vec<Rc<Message>>,
    pub gathered: bool,
    /// What an atomic found last, which is in `taken`.
    pub received: Option<Carried>,
    /// Of places whose atomics name other classes than their own, or that others' reads see less of: up to which step of whom their
    /// writes there are seen.
    pub seen: BTreeMap<(u32, u32, u64), Seen>,
    /// How often it has arrived at split barriers and waited there, of its subgroup and of its workgroup.
    pub split: [(u32, u32); 2],
    /// Counts its releases, and where reads may see more by themselves its writes: what others know of it is up to a release, so that
    /// accesses between two of them need not be told apart.
    pub stamp: u32,
    /// What it was at its last release.
    pub last_release: u32,
    /// Where it stands to its interlocked section.
    pub section: Side,
    /// The last instruction before the end.
    pub last: u32,
    /// Whether it changed nothing when it went on last, and goes on.
    pub fruitless: bool,
}

/// A workgroup.
#[derive(Clone, Debug)]
pub(super) struct Workgroup {
    pub invocations: Vec<Invocation>,
    pub objects: Vec<Object>,
    /// Control barriers of the whole workgroup so far, for each class.
    pub epochs: [u32; 3],
    /// Rounds of split barriers, of each subgroup and of all, by number: what those release who arrive.
    pub rounds: BTreeMap<(Option<u32>, u32), Vec<Rc<Message>>>,
}

/// Something that was found.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub kind: FindingKind,
    pub message: String,
    /// Site, invocation, and whether it writes.
    pub at: Vec<(u32, Identity, Option<bool>)>,
}

/// What decides how a walk goes on.
pub(super) struct Setup {
    pub grid: [u32; 3],
    /// By variable what annotations say that it holds at first: offset, bytes and number of each scalar.
    pub said: FxHashMap<u32, Vec<(u64, u32, u64)>>,
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
    pub of_workgroup: Vec<u32>,
    pub of_invocation: Vec<u32>,
    /// Whether more than barriers of workgroups orders invocations.
    pub fine: bool,
    /// Whether reads of one class of memory see by themselves more in some places than in others.
    pub mixed: bool,
    /// Whether accesses are not looked at.
    pub blind: bool,
    /// When walking is given up.
    pub until: Option<Until>,
}

impl Setup {
    /// How invocations are numbered.
    pub fn shape(&self) -> Shape {
        Shape { local: self.local_size.iter().product(), subgroup: self.subgroup_size }
    }
}

/// Everything of one walk.
#[derive(Clone)]
pub(super) struct Machine<'a> {
    pub setup: &'a Setup,
    pub program: &'a Program<'a>,
    pub globals: Vec<Value>,
    pub objects: Vec<Object>,
    pub descriptors: FxHashMap<u32, super::setup::Descriptors>,
    /// Those that have begun and not ended, by their index.
    pub workgroups: FxHashMap<u32, Box<Workgroup>>,
    /// By their coordinates, those in whose sections somebody was.
    pub pixels: BTreeMap<(u32, u32), super::section::Pixel>,
    /// What atomics stored releases, by object and offset.
    pub messages: FxHashMap<(u32, u32, u64), Carried>,
    pub found: Vec<Found>,
    pub known: std::collections::BTreeSet<(FindingKind, Vec<u32>)>,
    /// Whether the order of the invocations decides where control goes or what is accessed.
    pub open: bool,
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
    pub again: bool,
    /// What is accessed, where that is asked for.
    pub polled: Option<Vec<super::circle::Polled>>,
    /// How lanes share the elements of matrices.
    pub rotation: u32,
    /// Places that gave a value without a defined one, in the order of their bits among what is to be known of it.
    pub lacking: Vec<Found>,
    /// Blocks that somebody came to, by the number of their label among the instructions of the module.
    pub reached: Vec<bool>,
    /// Whether there is one invocation only.
    pub alone: bool,
    /// What [`shadow`](Machine::shadow) says of the largest workgroup that has ended.
    pub past: (u64, u64),
    /// Frames of each function that were left, for others of it.
    pub spare: Vec<Vec<Frame>>,
    /// Variables of invocations that have ended, for others.
    pub spare_objects: Vec<Object>,
    /// Calls that somebody made: the calls before each and where it is, and the number of each by these.
    pub calls: Vec<(u32, u32)>,
    pub calls_by_site: FxHashMap<(u32, u32), u32>,
    /// Variables of invocations as they are at first.
    pub own: Vec<super::begin::Own>,
    /// Looks that are left for lanes that wait for others of their subgroup.
    pub looks: super::starve::Looks,
}

/// Why a step did not lead to the next.
pub(super) enum Stop {
    Refused(Problem),
    Waits,
    Ended,
}

impl From<Problem> for Stop {
    fn from(problem: Problem) -> Stop {
        Stop::Refused(problem)
    }
}

pub(super) type Step<T> = Result<T, Stop>;

/// An invocation with its workgroup.
pub(super) struct Here<'w> {
    pub workgroup: &'w mut Workgroup,
    pub index: usize,
}

impl Here<'_> {
    pub fn me(&mut self) -> &mut Invocation {
        &mut self.workgroup.invocations[self.index]
    }

    pub fn frame(&mut self) -> Step<&mut Frame> {
        self.me().frames.last_mut().ok_or(Stop::Ended)
    }
}

impl Machine<'_> {
    /// The value of an operand.
    pub fn operand(&self, here: &Here<'_>, inst: &Inst, index: usize) -> Step<Value> {
        let id = self.program.module.operand(&inst.raw, index)?;
        self.value(here, id)
    }

    /// The value of an id.
    pub fn value(&self, here: &Here<'_>, id: u32) -> Step<Value> {
        let slots = self.program.slots(id);
        if slots.count == 0 {
            return self.value_of(here, id).cloned();
        }
        gathered(self.values(here), &self.globals, slots).ok_or_else(|| self.no_value(id))
    }

    fn values<'v>(&self, here: &'v Here<'_>) -> &'v [Value] {
        here.workgroup.invocations[here.index].frames.last().map_or(&[], |frame| &frame.values)
    }

    fn no_value(&self, id: u32) -> Stop {
        malformed(format!("{} has no value", self.program.module.name(id))).into()
    }

    /// The value of an id that is no vector, where it is.
    #[inline]
    pub fn value_of<'v>(&'v self, here: &'v Here<'_>, id: u32) -> Step<&'v Value> {
        let slots = self.program.slots(id);
        if slots.count > 0 {
            return Err(malformed(format!("{} is a vector", self.program.module.name(id))).into());
        }
        slots.one().and_then(|slot| self.in_slot(here, slot)).ok_or_else(|| self.no_value(id))
    }

    /// What is in a slot.
    pub fn in_slot<'v>(&'v self, here: &'v Here<'_>, slot: u32) -> Option<&'v Value> {
        at(self.values(here), &self.globals, slot)
    }

    /// A number that decides something.
    pub fn number(&mut self, here: &mut Here<'_>, inst: &Inst, index: usize, what: &str) -> Step<u64> {
        let id = self.program.module.operand(&inst.raw, index)?;
        let (bits, taint) = match self.value_of(here, id)? {
            Value::Bits(bits, taint) => (*bits, *taint),
            Value::Nothing(taint) => (0, *taint),
            _ => return Err(malformed(format!("Op{:?} with other operands", inst.raw.op)).into()),
        };
        self.decides(here, taint, what)?;
        Ok(bits)
    }

    /// A value decides where control goes or what is accessed.
    pub fn decides(&mut self, here: &mut Here<'_>, taint: Taint, what: &str) -> Step<()> {
        if taint == 0 {
            return Ok(());
        }
        if taint & OPAQUE != 0 {
            return Err(self.opaque(what).into());
        }
        self.looked_at(taint);
        if taint & UNDEFINED != 0 {
            let message = format!("{what} depends on {}", super::value::source(taint));
            self.finding(here, FindingKind::UninitialisedRead, message);
        }
        self.open |= taint & OPEN != 0;
        Ok(())
    }

    /// What has no defined value, such as a read beyond an end, which is told once somebody looks at what it gave: the bit for that.
    pub fn lacks(
        &mut self,
        here: &Here<'_>,
        (kind, message): (FindingKind, String),
        access: Option<bool>,
    ) -> Taint {
        if let Some(known) = self.known_site(here) {
            return known;
        }
        let me = &here.workgroup.invocations[here.index];
        let at = vec![(self.site_of(me), me.identity, access)];
        self.lacking.push(Found { kind, message, at });
        self.known_site(here).unwrap_or(SITES)
    }

    /// The same of an instruction without a defined result.
    pub fn lacks_result(&mut self, here: &Here<'_>, op: Op) -> Step<Taint> {
        let told = without_result(op).ok_or_else(|| unsupported(format!("Op{op:?} of this type")))?;
        Ok(self.lacks(here, told, None))
    }

    /// The bit for what has no defined value where an invocation stands, where there was such a thing.
    pub fn known_site(&self, here: &Here<'_>) -> Option<Taint> {
        let site = self.site_of(&here.workgroup.invocations[here.index]);
        let at = self.lacking.iter().position(|found| found.at.first().is_some_and(|at| at.0 == site))?;
        Some(1 << (FIRST_SITE + at as u32).min(31))
    }

    /// Tells where a value comes from that is not defined.
    pub fn looked_at(&mut self, taint: Taint) {
        if taint & SITES == 0 {
            return;
        }
        for at in 0..self.lacking.len() {
            if taint >> (FIRST_SITE + at as u32).min(31) & 1 != 0 {
                self.found(self.lacking[at].clone());
            }
        }
    }

    /// Whether it is only looked whether a loop comes round: what others would see of it is not done.
    pub fn probes(&self) -> bool {
        self.polled.is_some()
    }

    /// The number of the instruction where an invocation stands.
    pub fn site_of(&self, invocation: &Invocation) -> u32 {
        let Some(frame) = invocation.frames.last() else { return invocation.last };
        let function = self.program.functions.get(frame.function);
        function.map_or(0, |function| function.first_site) + frame.at as u32
    }

    /// Notes something about the invocation where it stands.
    pub fn finding(&mut self, here: &mut Here<'_>, kind: FindingKind, message: String) {
        let me = &here.workgroup.invocations[here.index];
        let at = vec![(self.site_of(me), me.identity, None)];
        self.found(Found { kind, message, at });
    }

    /// Notes something, once for each set of places.
    pub fn found(&mut self, found: Found) {
        let mut sites: Vec<u32> = found
            .at
            .iter()
            .map(|(site, ..)| match self.program.place(*site) {
                (0, _) => *site | GLOBAL,
                (line, _) => line,
            })
            .collect();
        sites.sort_unstable();
        if self.known.insert((found.kind, sites)) {
            self.found.push(found);
        }
    }

    /// Two accesses that nothing orders.
    pub fn race(
        &mut self,
        name: &str,
        earlier: (&Record, Identity),
        later: (&Record, Identity),
        standing: Standing,
    ) {
        let does = |record: &Record| match (record.way.manner.atomic, record.way.manner.writes) {
            (true, true) => "atomically writes",
            (true, false) => "atomically reads",
            (false, true) => "writes",
            (false, false) => "reads",
        };
        let (kind, why) = match standing {
            Standing::Unpublished => (
                FindingKind::UnpublishedRead,
                "the write happens before, but is not made available and visible to the read",
            ),
            _ if earlier.0.way.manner.atomic && later.0.way.manner.atomic => {
                (FindingKind::Race, "both are atomic, but not in each other's scope or of one size")
            }
            _ if (earlier.0.moment.workgroup, earlier.0.subgroup)
                == (later.0.moment.workgroup, later.0.subgroup) =>
            {
                // What one instruction does for all lanes at once has no order in lockstep either.
                let lockstep = earlier.0.way.site != later.0.way.site && self.setup.subgroups > 1;
                match lockstep {
                    true => (FindingKind::Lockstep, LOCKSTEP),
                    false => (FindingKind::Race, "nothing orders the two, lanes of one subgroup as they are"),
                }
            }
            _ => (FindingKind::Race, "nothing orders the two"),
        };
        let writes = |record: &Record| record.way.manner.writes && !record.way.manner.atomic;
        let same = match self.again && writes(earlier.0) && writes(later.0) {
            true => "; it is the value that is there already, which makes it no less a race",
            false => "",
        };
        let message = format!(
            "data race on `{name}`: invocation {} {} it{}, invocation {} {} it{}, and {why}{same}",
            earlier.1,
            does(earlier.0),
            self.called(earlier.0.way.calls),
            later.1,
            does(later.0),
            self.called(later.0.way.calls)
        );
        let spot = |(record, identity): (&Record, Identity)| {
            (record.way.site, identity, Some(record.way.manner.writes))
        };
        self.found(Found { kind, message, at: vec![spot(earlier), spot(later)] });
    }

    /// The calls that led to an access, the innermost first, in words.
    fn called(&self, mut calls: u32) -> String {
        let mut lines = Vec::new();
        while let Some((before, site)) = calls.checked_sub(1).and_then(|at| self.calls.get(at as usize)) {
            if let Place::Line(line) = self.place(*site) {
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

    pub fn set(&self, here: &mut Here<'_>, inst: &Inst, value: Value) -> Step<()> {
        let frame = here.frame()?;
        spread(&mut frame.values, inst.result, value)?;
        frame.at += 1;
        Ok(())
    }

    /// A frame for a function, with nothing in it.
    pub fn enter(&mut self, function: usize, result: Slots, locals: usize) -> Option<Frame> {
        let ready = self.program.functions.get(function)?;
        // What another left in it is no matter: no result is looked at before there is one.
        let left = self.spare.get_mut(function).and_then(Vec::pop);
        let (values, loops) = left.map_or_else(
            || (vec![Value::Bits(0, UNDEFINED); ready.slots as usize], Vec::new()),
            |left| (left.values, left.loops),
        );
        Some(Frame { function, at: 0, block: 0, values, loops, result, locals, calls: 0 })
    }

    /// Keeps a frame that was left.
    fn left(&mut self, mut frame: Frame) {
        if frame.function >= self.spare.len() {
            self.spare.resize_with(frame.function + 1, Vec::new);
        }
        frame.loops.clear();
        self.spare[frame.function].push(frame);
    }

    /// An invocation has ended where it stands.
    pub fn ends(&mut self, here: &mut Here<'_>) {
        let site = self.site_of(&here.workgroup.invocations[here.index]);
        let me = here.me();
        me.last = site;
        me.doing = Doing::Ended;
        me.locals.end(&mut self.spare_objects);
        me.frames.drain(..).for_each(|frame| self.left(frame));
    }

    /// Begins a call.
    fn call(&mut self, here: &mut Here<'_>, inst: &Inst, site: u32) -> Step<()> {
        let program = self.program;
        let (callee, arguments) =
            program.module.operands(&inst.raw).split_first().ok_or_else(|| malformed("a call of nothing"))?;
        let Some(function) = program.by_id.get(callee) else {
            return Err(malformed("a call of what is no function").into());
        };
        if here.me().frames.iter().any(|frame| frame.function == *function) {
            return Err(malformed("recursion, which SPIR-V does not have").into());
        }
        if here.me().frames.len() >= MAX_CALLS {
            return Err(Problem::Budget { what: "calls in calls", bound: MAX_CALLS }.into());
        }
        let locals = here.me().locals.len();
        let calls = (here.frame()?.calls, site);
        let next = self.calls.len() as u32 + 1;
        let number = *self.calls_by_site.entry(calls).or_insert(next);
        if number == next {
            self.calls.push(calls);
        }
        let frame = self.enter(*function, inst.result, locals);
        let mut frame = frame.ok_or_else(|| malformed("no such function"))?;
        frame.calls = number;
        let caller = here.frame()?;
        for (to, id) in program.functions[*function].parameters.iter().zip(arguments) {
            copied(&self.globals, &caller.values, program.slots(*id), &mut frame.values, *to)
                .ok_or_else(|| self.no_value(*id))?;
        }
        here.me().frames.push(frame);
        Ok(())
    }

    /// The instance of where an invocation stands: calls and loops with their bodies, in an order in which what comes
    /// first in the program is less.
    pub fn instance(&self, invocation: &Invocation) -> Rc<Vec<u32>> {
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
    pub fn step(&mut self, here: &mut Here<'_>) -> Step<()> {
        self.steps(here, 1)
    }

    /// Goes on by some instructions, `most` at most.
    pub fn steps(&mut self, here: &mut Here<'_>, most: u64) -> Step<()> {
        if self.quickly(here, most)? >= most {
            return Ok(());
        }
        let program = self.program;
        let frame = here.workgroup.invocations[here.index].frames.last().ok_or(Stop::Ended)?;
        let function = &program.functions[frame.function];
        let Some(inst) = function.code.get(frame.at) else {
            return Err(malformed("control leaves a function at its end").into());
        };
        let site = function.first_site as usize + frame.at;
        self.steps += 1;
        match inst.raw.op {
            Op::Label => {
                let frame = here.frame()?;
                if frame.block == 0 {
                    frame.block = inst.raw.result;
                }
                frame.at += 1;
                if let Some(reached) = self.reached.get_mut(site) {
                    *reached = true;
                }
                Ok(())
            }
            Op::Branch => {
                let target = program.module.operand(&inst.raw, 0)?;
                self.jump(here, target)
            }
            Op::BranchConditional => {
                let operands = program.module.operands(&inst.raw);
                // Which way is no matter where both are one.
                let taken = match operands {
                    [_, yes, no, ..] if yes == no => 1,
                    _ if self.operand(here, inst, 0)?.taint() & OPAQUE != 0 => {
                        return self.both_ways(here, inst);
                    }
                    _ => self.number(here, inst, 0, "a condition")?,
                };
                let target = program.module.operand(&inst.raw, if taken != 0 { 1 } else { 2 })?;
                self.jump(here, target)
            }
            Op::Switch => self.switch(here, inst),
            Op::Return | Op::ReturnValue => self.leave(here, inst),
            Op::FunctionCall => self.call(here, inst, site as u32),
            Op::Unreachable => {
                self.finding(here, FindingKind::UndefinedBehaviour, "OpUnreachable is reached".to_owned());
                Err(Stop::Ended)
            }
            // Nothing that a helper does has an effect.
            Op::Kill | Op::TerminateInvocation | Op::DemoteToHelperInvocation => Err(Stop::Ended),
            Op::EmitMeshTasksEXT if self.setup.stage == Stage::Task => Err(Stop::Ended),
            // How many vertices and primitives are used is nothing of memory.
            Op::SetMeshOutputsEXT if self.setup.stage == Stage::Mesh => {
                here.frame()?.at += 1;
                Ok(())
            }
            _ => self.execute(here, inst),
        }
    }

    fn switch(&mut self, here: &mut Here<'_>, inst: &Inst) -> Step<()> {
        let program = self.program;
        let selected = self.number(here, inst, 0, "a selector")?;
        let operands = program.module.operands(&inst.raw);
        let bits =
            operands.first().and_then(|id| program.numbers(program.type_of(*id))).map_or(32, |of| of.1);
        let mut target = *operands.get(1).ok_or_else(|| malformed("OpSwitch without a default"))?;
        for case in operands[2..].chunks_exact(if bits > 32 { 3 } else { 2 }) {
            let literal = u64::from(case[0]) | if bits > 32 { u64::from(case[1]) << 32 } else { 0 };
            if literal & mask(bits) == selected {
                target = case[case.len() - 1];
                break;
            }
        }
        self.jump(here, target)
    }

    fn leave(&mut self, here: &mut Here<'_>, inst: &Inst) -> Step<()> {
        let me = here.me();
        if me.frames.len() < 2 {
            return Err(Stop::Ended);
        }
        let (Some(left), Some(frame)) = (me.frames.pop(), me.frames.last_mut()) else {
            return Err(Stop::Ended);
        };
        if inst.raw.op == Op::ReturnValue {
            let id = self.program.module.operand(&inst.raw, 0)?;
            let slots = self.program.slots(id);
            copied(&self.globals, &left.values, slots, &mut frame.values, left.result)
                .ok_or_else(|| self.no_value(id))?;
        }
        frame.at += 1;
        me.locals.leave(left.locals);
        self.left(left);
        Ok(())
    }

    /// The place of the instruction where an invocation stands.
    pub fn place(&self, site: u32) -> Place {
        let (line, place) = self.program.place(site);
        match self.program.module.lines.get(line as usize) {
            Some(source) if line > 0 => Place::Line(source.line),
            _ => place,
        }
    }

    /// Bytes that accesses were looked at of, and bytes that this took.
    pub fn shadow(&self) -> (u64, u64) {
        let objects = self.objects.iter().chain(self.workgroups.values().flat_map(|one| &one.objects));
        objects.map(|object| object.shadow.taken()).fold(self.past, |all, one| (all.0 + one.0, all.1 + one.1))
    }

    /// The object that a pointer is to.
    pub fn object<'m>(&'m mut self, here: &'m mut Here<'_>, number: u32) -> Option<&'m mut Object> {
        if number & LOCAL != 0 {
            here.me().locals.live_mut().get_mut((number & !LOCAL) as usize)
        } else if number & SHARED != 0 {
            here.workgroup.objects.get_mut((number & !SHARED) as usize)
        } else {
            self.objects.get_mut(number as usize)
        }
    }
}
