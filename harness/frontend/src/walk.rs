//! The walk of one invocation: every path that values read may take it, as the code of a litmus thread.
//!
//! Constants are folded, calls walked in place, loops unrolled, private memory is a dictionary; what is left are accesses of
//! shared memory, barriers, and branches on what was read. Control never comes together again but at control barriers: the
//! code behind a barrier is a segment, and whoever comes to it says in a register as whom.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use arithmetic::mask;
use litmus::{ArithmeticOperation, InstructionKind, LocationId};
use rspirv::spirv::Op;

use crate::emit;
use crate::error::{Place, Problem, Refusal, malformed, unsupported};
use crate::layout::{Specialized, part};
use crate::lift::{Finding, FindingKind, Identity, Setting};
use crate::module::{Instruction, Type};
use crate::section::Side;
use crate::stage::Stage;
use crate::state::{Frame, Loop, State};
use crate::until::Until;
use crate::value::{Cell, Domain, Number, Object, Origin, Pointer, Value};

mod barrier;
mod turn;

/// Instructions that one invocation executes at most, over all of its paths.
const MAX_STEPS: usize = 4_000_000;
/// Steps after which it is looked whether the time is up.
const TICK: usize = 1 << 10;
/// Paths of an invocation at most.
const MAX_PATHS: usize = 4_096;
/// Calls in calls at most; SPIR-V has no recursion.
const MAX_CALLS: usize = 64;
/// Instructions of a litmus thread at most.
const MAX_CODE: usize = 30_000;

/// The register that says as whom a thread comes to a barrier.
pub(crate) const ENTRY: u16 = 0;
/// The register that a loop counts in which the bound ends.
pub(crate) const COUNT: u16 = 1;
/// Beyond what that register ever counts: from here on, a number that it is compared with is that of a suspicion.
pub(crate) const FIRST_SUSPICION: u64 = 1 << 16;
/// The register of reads that nobody looks at.
pub(crate) const SCRATCH: u16 = 2;
const FIRST_FREE: u16 = 3;
/// The label at the end of a thread.
pub(crate) const END: u16 = 0;
/// The label of places that nothing jumps to.
const UNNAMED: u16 = 1;

/// Who touches a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Touch {
    /// Threads that read it, as bits.
    pub readers: u32,
    pub writers: u32,
    /// Whether an access orders others.
    pub ordered: bool,
}

impl Touch {
    /// Whether accesses are events.
    pub fn is_shared(self) -> bool {
        self.ordered || self.writers != 0 && (self.readers | self.writers).count_ones() > 1
    }
}

/// What is known of shared memory from all threads.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Knowledge {
    pub domains: BTreeMap<Cell, Domain>,
    pub touched: BTreeMap<Cell, Touch>,
    /// Cells into which values are written that are not followed.
    pub opaque: BTreeSet<Cell>,
    /// For each cell how many read-modify-writes an execution has of it at most: those of each thread, by its number.
    pub updates: BTreeMap<Cell, BTreeMap<u16, u32>>,
    /// For each cell and value how many read-modify-writes of the cell it takes at least to get there.
    pub generations: BTreeMap<Cell, BTreeMap<u64, u32>>,
}

impl Knowledge {
    /// Read-modify-writes of a cell in an execution at most.
    pub fn updates_of(&self, cell: Cell) -> u32 {
        self.updates.get(&cell).map_or(0, |by_thread| by_thread.values().sum())
    }

    /// How many read-modify-writes of a cell it takes at least to a value.
    pub fn generation(&self, cell: Cell, value: u64) -> u32 {
        self.generations.get(&cell).and_then(|known| known.get(&value)).copied().unwrap_or(0)
    }
}

/// An instance of a control barrier: its instruction and those of the calls around it, with the iterations of the loops
/// that each is in; then who meets.
pub(crate) type BarrierKey = (Vec<(u32, usize, Vec<u32>)>, litmus::Scope);

/// What one round over all threads found out.
#[derive(Default)]
pub(crate) struct Round {
    pub found: Knowledge,
    pub locations: BTreeMap<Cell, LocationId>,
    pub barriers: BTreeMap<BarrierKey, usize>,
    pub findings: BTreeSet<Finding>,
    /// Findings on paths that values read decide, which perhaps no execution takes.
    pub suspicions: Vec<Finding>,
    /// Values that nobody gave and something depends on.
    pub undefined: BTreeSet<Origin>,
}

/// An instruction of a thread's code with its origin.
#[derive(Clone, Debug)]
pub(crate) struct Emitted {
    pub kind: InstructionKind,
    pub line: u32,
    pub place: Place,
}

/// Code between control barriers.
#[derive(Default)]
pub(crate) struct Segment {
    /// The barrier that it begins with.
    pub barrier: Option<Emitted>,
    pub instance: Option<usize>,
    /// For each who comes, the state and the label of its code.
    entries: Vec<(State, u16)>,
    pub code: Vec<Emitted>,
    /// Segments that it goes to.
    pub next: BTreeSet<usize>,
}

/// The code of a thread.
pub(crate) struct Walked {
    pub segments: Vec<Segment>,
    pub registers: u16,
    /// Writes on a path at most.
    pub writes: u32,
    pub paths: usize,
}

impl Segment {
    /// The labels of the code for each who comes.
    pub fn entries(&self) -> Vec<u16> {
        self.entries.iter().map(|(_, label)| *label).collect()
    }
}

/// Why an instruction was not executed to its end.
pub(crate) enum Stop {
    Refused(Problem),
    /// The path forked on what it depends on: once more.
    Again,
    /// Nothing follows on this path.
    Over,
}

impl From<Problem> for Stop {
    fn from(problem: Problem) -> Stop {
        Stop::Refused(problem)
    }
}

pub(crate) type Step<T> = Result<T, Stop>;

/// A path that is still to be walked.
pub(crate) struct Pending {
    pub segment: usize,
    pub label: u16,
    pub state: State,
}

pub(crate) struct Walk<'a> {
    pub setting: &'a Setting<'a>,
    pub knowledge: &'a Knowledge,
    pub round: &'a mut Round,
    pub thread: u16,
    pub identity: &'a Identity,
    segments: Vec<Segment>,
    pub segment: usize,
    by_barrier: HashMap<usize, usize>,
    /// For each function and header the variables that are written before they are read from there on.
    overwritten: HashMap<(u32, u32), HashSet<u32>>,
    pub pending: Vec<Pending>,
    labels: u16,
    registers: u16,
    writes: u32,
    paths: usize,
    steps: usize,
    code: usize,
    /// The instruction that is executed.
    pub at: (u32, Place),
}

impl<'a> Walk<'a> {
    pub fn new(
        setting: &'a Setting<'a>,
        knowledge: &'a Knowledge,
        round: &'a mut Round,
        thread: u16,
        identity: &'a Identity,
    ) -> Walk<'a> {
        Walk {
            setting,
            knowledge,
            round,
            thread,
            identity,
            segments: vec![Segment::default()],
            segment: 0,
            by_barrier: HashMap::new(),
            overwritten: HashMap::new(),
            pending: Vec::new(),
            labels: UNNAMED + 1,
            registers: FIRST_FREE,
            writes: 0,
            paths: 0,
            steps: 0,
            code: 0,
            at: (0, Place::Module),
        }
    }

    pub fn spec(&self) -> &'a Specialized<'a> {
        self.setting.specialized
    }

    /// Walks every path from the entry point.
    pub fn all(mut self, function: u32) -> Result<Walked, Refusal> {
        let frame = self.frame(function, 0).map_err(|problem| problem.at(Place::Module))?;
        let state = State {
            frames: vec![frame],
            memory: Rc::default(),
            ranges: Rc::default(),
            definitions: Rc::default(),
            assumed: Rc::default(),
            next_register: FIRST_FREE,
            next_object: 1,
            effects: 0,
            writes: 0,
            updates: Rc::default(),
            performed: Rc::default(),
            forks: 0,
            suspected: false,
            section: Side::Before,
        };
        let label = self.label();
        self.pending.push(Pending { segment: 0, label, state });
        while let Some(Pending { segment, label, mut state }) = self.pending.pop() {
            self.segment = segment;
            self.paths += 1;
            let emitted = self.emit(emit::label(label));
            let walked = emitted.and_then(|()| self.path(&mut state));
            if let Err(problem) = walked {
                return Err(problem.at(self.place()));
            }
            if self.paths > MAX_PATHS {
                let bound = MAX_PATHS;
                return Err(Problem::Budget { what: "paths of an invocation", bound }.at(self.place()));
            }
        }
        Ok(Walked {
            segments: self.segments,
            registers: self.registers,
            writes: self.writes,
            paths: self.paths,
        })
    }

    /// The place of the instruction: its source line where there is one.
    fn place(&self) -> Place {
        match self.setting.module().lines.get(self.at.0 as usize) {
            Some(line) if self.at.0 > 0 => Place::Line(line.line),
            _ => self.at.1,
        }
    }

    fn frame(&self, function: u32, result: u32) -> Result<Frame, Problem> {
        if !self.setting.module().functions.contains_key(&function) {
            return Err(malformed(format!("{} is no function", self.setting.module().name(function))));
        }
        let (values, loops) = (Rc::default(), Vec::new());
        Ok(Frame { function, at: 0, block: 0, previous: 0, values, loops, result })
    }

    pub fn label(&mut self) -> u16 {
        self.labels = self.labels.saturating_add(1);
        self.labels - 1
    }

    pub fn emit(&mut self, kind: InstructionKind) -> Result<(), Problem> {
        let (line, place) = self.at;
        self.code += 1;
        if self.code > MAX_CODE {
            return Err(Problem::Budget { what: "instructions of a thread", bound: MAX_CODE });
        }
        self.segments[self.segment].code.push(Emitted { kind, line, place });
        Ok(())
    }

    pub fn register(&mut self, state: &mut State, domain: Domain) -> Result<u16, Problem> {
        let register = state.next_register;
        if register == u16::MAX {
            return Err(Problem::Budget { what: "registers of a thread", bound: usize::from(u16::MAX) });
        }
        state.next_register += 1;
        self.registers = self.registers.max(state.next_register);
        Rc::make_mut(&mut state.ranges).insert(register, domain);
        // A register of a path that ended may have had the same number.
        if state.definitions.contains_key(&register) {
            Rc::make_mut(&mut state.definitions).remove(&register);
        }
        Ok(register)
    }

    /// Walks one path to its end.
    fn path(&mut self, state: &mut State) -> Result<(), Problem> {
        loop {
            self.steps += 1;
            if self.steps > MAX_STEPS {
                return Err(Problem::Budget { what: "steps of an invocation", bound: MAX_STEPS });
            }
            let late = |until: &Until| self.steps.is_multiple_of(TICK) && until.is_over();
            if self.setting.until.as_ref().is_some_and(late) {
                return Err(Problem::OutOfTime);
            }
            match self.step(state) {
                Ok(()) | Err(Stop::Again) => {}
                Err(Stop::Over) => {
                    self.writes = self.writes.max(state.writes);
                    return Ok(());
                }
                Err(Stop::Refused(problem)) => return Err(problem),
            }
        }
    }

    /// The path ends here for good.
    fn finish(&mut self, state: &mut State) -> Step<()> {
        // What this invocation alone has touched has its final value in the dictionary.
        let (setting, knowledge) = (self.setting, self.knowledge);
        let all = knowledge.touched.keys().filter(|cell| setting.keep_final && setting.in_buffer(**cell));
        for cell in setting.observed.iter().chain(all).filter(|_| !setting.keep_all) {
            let mine = self
                .knowledge
                .touched
                .get(cell)
                .is_some_and(|touch| !touch.is_shared() && touch.writers == 1 << self.thread);
            if let Some((bytes, value)) =
                state.memory.get(&(cell.object, cell.offset)).filter(|_| mine).cloned()
            {
                let number = self.number(state, &value, "a final value")?;
                if bytes == cell.bytes {
                    let target = self.target(*cell, litmus::StorageClass::Buffer)?;
                    let access = litmus::Access::Coherent { scope: litmus::Scope::Device };
                    self.emit(emit::store(target, number, access))?;
                }
            }
        }
        self.emit(emit::go_to(END))?;
        Err(Stop::Over)
    }

    /// The path never ends: nothing can change any more.
    pub fn block(&mut self) -> Step<()> {
        let label = self.label();
        self.emit(emit::label(label))?;
        self.emit(emit::go_to(label))?;
        Err(Stop::Over)
    }

    /// The bound of loops ends the path.
    fn cut(&mut self) -> Step<()> {
        let label = self.label();
        self.emit(emit::label(label))?;
        self.emit(emit::arithmetic(
            COUNT,
            ArithmeticOperation::Add,
            Number::Register(COUNT),
            Number::Known(1),
        ))?;
        self.emit(emit::go_to(label))?;
        Err(Stop::Over)
    }

    pub fn finding(&mut self, kind: FindingKind, message: String) {
        let finding = self.found_here(kind, message);
        self.round.findings.insert(finding);
    }

    fn found_here(&self, kind: FindingKind, message: String) -> Finding {
        let at = crate::lift::Spot { thread: self.thread, line: self.at.0, place: self.at.1, access: None };
        Finding { kind, message, at: vec![at] }
    }

    /// A finding on this path. Where values read led here, the first of the path is marked in the code by a branch that nobody takes: the
    /// model says whether some execution comes here ([`crate::suspicion`]), and nothing behind it is defined.
    pub fn suspect(&mut self, state: &mut State, kind: FindingKind, message: String) -> Step<()> {
        if state.forks == 0 {
            self.finding(kind, message);
            return Ok(());
        }
        if std::mem::replace(&mut state.suspected, true) {
            return Ok(());
        }
        let finding = self.found_here(kind, message);
        let known = self.round.suspicions.iter().position(|known| *known == finding);
        let index = known.unwrap_or(self.round.suspicions.len());
        if known.is_none() {
            self.round.suspicions.push(finding);
        }
        Ok(self.emit(emit::suspicion(index))?)
    }

    fn step(&mut self, state: &mut State) -> Step<()> {
        let module = self.setting.module();
        let Some(frame) = state.frames.last() else { return self.finish(state) };
        let Some(function) = module.functions.get(&frame.function) else {
            return Err(malformed("no such function").into());
        };
        let Some(instruction) = function.code.get(frame.at) else {
            return Err(malformed("control leaves a function at its end").into());
        };
        self.at = (instruction.line, instruction.place);
        match instruction.op {
            Op::Label => {
                if frame.block == 0
                    && let Some(frame) = state.frames.last_mut()
                {
                    frame.block = instruction.result;
                }
                self.next(state)
            }
            Op::SelectionMerge | Op::LoopMerge | Op::Nop | Op::Phi => self.next(state),
            Op::Branch => {
                let target = module.operand(instruction, 0)?;
                self.jump(state, target)
            }
            Op::BranchConditional => {
                let condition = self.operand(state, instruction, 0)?;
                let taken = self.truth(state, &condition, "a condition")?;
                let target = module.operand(instruction, if taken { 1 } else { 2 })?;
                self.jump(state, target)
            }
            Op::Switch => {
                let selector = self.operand(state, instruction, 0)?;
                let selected = self.known(state, &selector, "a selector")?;
                let ty = self.type_of_operand(state, instruction, 0)?;
                let wide = self.spec().bits(ty)? > 32;
                let operands = module.operands(instruction);
                let mut target = *operands.get(1).ok_or_else(|| malformed("OpSwitch without a default"))?;
                for case in operands[2..].chunks_exact(if wide { 3 } else { 2 }) {
                    let literal = u64::from(case[0]) | if wide { u64::from(case[1]) << 32 } else { 0 };
                    if literal & mask(self.spec().bits(ty)?) == selected {
                        target = case[case.len() - 1];
                        break;
                    }
                }
                self.jump(state, target)
            }
            Op::Return | Op::ReturnValue => {
                let value = match instruction.op {
                    Op::ReturnValue => self.operand(state, instruction, 0)?,
                    _ => Value::Opaque,
                };
                let left = state.frames.pop();
                match (left, state.frames.last_mut()) {
                    (Some(left), Some(caller)) => {
                        Rc::make_mut(&mut caller.values).insert(left.result, value);
                        caller.at += 1;
                        Ok(())
                    }
                    (left, _) => {
                        // A fork in what is left to do comes back here.
                        state.frames.extend(left);
                        self.finish(state)
                    }
                }
            }
            // Nothing that a helper does has an effect.
            Op::Kill | Op::TerminateInvocation | Op::DemoteToHelperInvocation => self.finish(state),
            Op::EmitMeshTasksEXT if self.setting.stage == Stage::Task => self.finish(state),
            // How many vertices and primitives are used is nothing of memory.
            Op::SetMeshOutputsEXT if self.setting.stage == Stage::Mesh => self.next(state),
            Op::Unreachable => {
                let message = "OpUnreachable is reached".to_owned();
                self.suspect(state, FindingKind::UndefinedBehaviour, message)?;
                self.block()
            }
            Op::FunctionCall => self.call(state, instruction),
            Op::Variable => {
                let instance = state.next_object;
                state.next_object += 1;
                let Type::Pointer { to, .. } = *module.ty(instruction.ty)? else {
                    return Err(malformed("a variable whose type is no pointer").into());
                };
                let object = Object { variable: instruction.result, instance };
                let pointer = Pointer { object, offset: 0, ty: to, stride: None, coherent: false };
                if let Some(initializer) = module.operands(instruction).get(1).copied() {
                    let value = self.value(state, initializer)?;
                    self.store_private(state, pointer, to, &value)?;
                }
                self.result(state, instruction, Value::Pointer(pointer))
            }
            Op::ControlBarrier => self.control_barrier(state, instruction),
            _ => {
                let value = self.execute(state, instruction)?;
                if instruction.result != 0 {
                    self.result(state, instruction, value)
                } else {
                    self.next(state)
                }
            }
        }
    }

    fn next(&mut self, state: &mut State) -> Step<()> {
        if let Some(frame) = state.frames.last_mut() {
            frame.at += 1;
        }
        Ok(())
    }

    fn result(&mut self, state: &mut State, instruction: &Instruction, value: Value) -> Step<()> {
        if let Some(frame) = state.frames.last_mut() {
            Rc::make_mut(&mut frame.values).insert(instruction.result, value);
        }
        self.next(state)
    }

    fn call(&mut self, state: &mut State, instruction: &Instruction) -> Step<()> {
        let module = self.setting.module();
        let function = module.operand(instruction, 0)?;
        if state.frames.len() >= MAX_CALLS || state.frames.iter().any(|frame| frame.function == function) {
            return Err(unsupported("recursion, or calls too deep").into());
        }
        let mut frame = self.frame(function, instruction.result)?;
        let parameters = &module.functions[&function].parameters;
        let arguments = module.operands(instruction).get(1..).unwrap_or_default();
        if parameters.len() != arguments.len() {
            return Err(malformed("a call with another number of arguments than its function has").into());
        }
        for (parameter, argument) in parameters.iter().zip(arguments) {
            let value = self.value(state, *argument)?;
            Rc::make_mut(&mut frame.values).insert(*parameter, value);
        }
        state.frames.push(frame);
        Ok(())
    }

    /// Goes to a block.
    fn jump(&mut self, state: &mut State, target: u32) -> Step<()> {
        let module = self.setting.module();
        let Some(frame) = state.frames.last() else { return Ok(()) };
        let function = &module.functions[&frame.function];
        let Some(position) = function.labels.get(&target).copied() else {
            return Err(malformed(format!("{} is no label", module.name(target))).into());
        };
        let (from, back) = (frame.block, position <= frame.at);
        // All phis take their values at once.
        let mut phis = Vec::new();
        for instruction in
            function.code[position + 1..].iter().take_while(|i| matches!(i.op, Op::Phi | Op::Nop))
        {
            if instruction.op == Op::Nop {
                continue;
            }
            let pairs = module.operands(instruction).chunks_exact(2);
            let Some(pair) = pairs.into_iter().find(|pair| pair[1] == from) else {
                return Err(malformed("a phi without a value for the block before").into());
            };
            phis.push((instruction.result, self.value(state, pair[0])?));
        }
        let function = frame.function;
        if back && let Some(open) = self.undecided(state, target, &phis) {
            self.truth(state, &open, "a condition")?;
        }
        let loops = self.setting.loops(function);
        let (known, effects, memory) = (loops.get(&target).copied(), state.effects, state.memory.clone());
        let performed = state.performed.len();
        // The loop that begins anew, and what was performed in this turn, as far as no barrier has come between.
        let again = state.frames.last().filter(|_| back).and_then(|frame| {
            let index = frame.loops.iter().rposition(|active| active.header == target)?;
            Some((index, state.performed.get(frame.loops[index].performed..)))
        });
        let put_back = again.and_then(|(_, since)| since?.iter().map(|update| state.kept(update)).collect());
        let again = again.map(|(index, _)| index);
        let values: Vec<Value> = phis.iter().map(|(_, value)| value.clone()).collect();
        let began = again.and_then(|index| Some(state.frames.last()?.loops.get(index)?.clone()));
        // Read-modify-writes that put back what they read change nothing.
        if let (Some(began), Some(put_back)) = (&began, put_back as Option<Vec<_>>)
            && effects == began.effects + put_back.len() as u32
            && self.is_as_it_was(state, began, &values)
        {
            self.only_where(&put_back)?;
            let label = self.start_label(began.start);
            self.emit(emit::go_to(label))?;
            return Err(Stop::Over);
        }
        let Some(frame) = state.frames.last_mut() else { return Ok(()) };
        if let Some(index) = again {
            frame.loops.truncate(index + 1);
            let active = &mut frame.loops[index];
            active.iteration += 1;
            // What depends on nothing that is read is walked to its end.
            let open = (state.forks > active.forks).then_some(self.setting.unroll_open);
            if self.setting.unroll.or(open).is_some_and(|bound| active.iteration >= bound) {
                return self.cut();
            }
            (active.effects, active.phis, active.memory) = (effects, values, memory);
            active.performed = performed;
        } else {
            if let Some(left) = frame.loops.iter().position(|active| {
                active.merge == target
                    || active.merge == 0 && (position > active.end || active.header == target)
            }) {
                frame.loops.truncate(left);
            }
            // The block that a function begins with may be a header.
            if back && self.setting.unroll == Some(1) {
                return self.cut();
            }
            if let Some((merge, end)) = known {
                let (header, iteration, phis) = (target, u32::from(back), values);
                let (start, forks) = (0, state.forks);
                let entered =
                    Loop { header, merge, end, iteration, effects, performed, phis, memory, start, forks };
                frame.loops.push(entered);
            }
        }
        let values = Rc::make_mut(&mut frame.values);
        for (id, value) in phis {
            values.insert(id, value);
        }
        (frame.previous, frame.block, frame.at) = (from, target, position);
        if known.is_some() {
            let start = self.mark_start();
            if let Some(active) = state.frames.last_mut().and_then(|frame| frame.loops.last_mut()) {
                active.start = start;
            }
        }
        Ok(())
    }

    /// The path goes on only where registers hold these values.
    fn only_where(&mut self, values: &[(u16, u64)]) -> Result<(), Problem> {
        for (register, value) in values {
            let (go_on, nowhere) = (self.label(), self.label());
            let (left, right) = (Number::Register(*register), Number::Known(*value));
            self.emit(emit::branch(litmus::BranchRelation::Equal, left, right, go_on))?;
            self.emit(emit::label(nowhere))?;
            self.emit(emit::go_to(nowhere))?;
            self.emit(emit::label(go_on))?;
        }
        Ok(())
    }

    /// Marks the place where an iteration begins; gives back where in the segment's code that is.
    fn mark_start(&mut self) -> usize {
        let mark = emit::label(UNNAMED);
        let code = &mut self.segments[self.segment].code;
        if code.last().is_none_or(|last| last.kind != mark) {
            code.push(Emitted { kind: mark, line: 0, place: Place::Module });
        }
        code.len() - 1
    }

    /// The label of a marked place.
    fn start_label(&mut self, start: usize) -> u16 {
        let mark = &self.segments[self.segment].code[start].kind;
        if let (_, Some(known)) = emit::labels_of(mark)
            && known.0 != UNNAMED
        {
            return known.0;
        }
        let label = self.label();
        self.segments[self.segment].code[start].kind = emit::label(label);
        label
    }

    /// Where accesses to a cell go.
    pub fn target(&mut self, cell: Cell, class: litmus::StorageClass) -> Result<emit::Target, Problem> {
        let count = self.round.locations.len();
        let location = *self.round.locations.entry(cell).or_insert(LocationId(count as u16));
        if count >= usize::from(u16::MAX) {
            return Err(Problem::Budget { what: "locations", bound: usize::from(u16::MAX) });
        }
        Ok(emit::Target { location, class, scalar: None })
    }

    /// The storage class of a pointer's memory, where other invocations reach it.
    pub fn class(&self, object: Object) -> Option<litmus::StorageClass> {
        self.setting.class_of(object.variable)
    }

    pub fn part(&self, value: &Value, index: usize) -> Step<Value> {
        part(value, index).ok_or_else(|| malformed("a value without such a part").into())
    }
}
