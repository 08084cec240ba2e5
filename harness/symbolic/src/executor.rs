//! Symbolic execution of one invocation: emits a litmus thread that covers every path.
//!
//! Constants are folded, calls are inlined, loops are unrolled, and private memory is a map. Accesses of
//! shared memory, barriers and branches on read values remain. A path forks on every value that a read may
//! return (see `fork.rs`). Paths join only at control barriers: the code after a barrier is a segment, and a
//! register selects the path with which a thread enters it.
//!
//! The set of values that a read may return over-approximates every execution ([`crate::lift`] iterates to a
//! fixpoint). So a lifted test has every execution of the kernel within the unrolling bound.

use std::collections::HashMap;
use std::rc::Rc;

use arithmetic::Instruction;
use litmus::{ArithmeticOperation, InstructionKind, LocationId};
use spirv_reader::{
    BarrierPart, SourcePosition, Specialized, SpirvInstruction, SpirvOperation, SpirvProblem, Stage,
    switch_cases,
};

use crate::constants::part_of_value;
use crate::context::LiftContext;
use crate::emit::{self, COUNT_REGISTER, END_LABEL};
use crate::round::{Emitted, EmittedThread, Round, Segment, SharedMemoryFacts};
use crate::state::{ActiveLoop, PathState, SymbolicFrame};
use crate::value::{NumberDomain, OrderRelation, SymbolicNumber, SymbolicTruth, SymbolicValue};
use entry_point::layout::{MemoryCell, ObjectId};
use entry_point::{
    DeadlinePredicate, FindingCause, InvocationId, LiftFinding, Problem, Refusal, malformed, undefined_result,
};

mod barrier;
mod spin_loop;

/// Upper bound on the instructions that one invocation executes, over all paths.
const MAX_STEPS: usize = 4_000_000;
/// Steps between two checks of the deadline.
const DEADLINE_CHECK_INTERVAL: usize = 1 << 10;
/// Upper bound on the paths of an invocation.
const MAX_PATHS: usize = 4_096;
/// Upper bound on nested calls; SPIR-V has no recursion.
const MAX_CALLS: usize = 64;
/// Upper bound on the instructions of a litmus thread.
const MAX_THREAD_INSTRUCTIONS: usize = 30_000;
/// The remedy for a limit of the work for one invocation.
const LOWER_UNROLL: &str = "; lower --unroll";
const FIRST_FREE_REGISTER: u16 = 3;
/// The label of positions that are not jump targets.
const UNNAMED_LABEL: u16 = 1;

/// Why an instruction was not completed.
pub(crate) enum PathInterrupt {
    Refused(Problem),
    /// The path forked on an operand: retry the instruction.
    Retry,
    /// The path has ended.
    Ended,
}

impl From<Problem> for PathInterrupt {
    fn from(problem: Problem) -> PathInterrupt {
        PathInterrupt::Refused(problem)
    }
}

impl From<SpirvProblem> for PathInterrupt {
    fn from(problem: SpirvProblem) -> PathInterrupt {
        PathInterrupt::Refused(problem.into())
    }
}

pub(crate) type Step<T> = Result<T, PathInterrupt>;

/// A path that is not executed yet.
pub(crate) struct PendingPath {
    pub segment: usize,
    pub label: u16,
    pub state: PathState,
}

pub(crate) struct Executor<'a> {
    pub context: &'a LiftContext<'a>,
    pub facts: &'a SharedMemoryFacts,
    pub round: &'a mut Round,
    pub thread: u16,
    pub identity: &'a InvocationId,
    segments: Vec<Segment>,
    pub segment: usize,
    segments_by_barrier: HashMap<usize, usize>,
    pub pending: Vec<PendingPath>,
    next_label: u16,
    registers: u16,
    writes: u32,
    paths: usize,
    steps: usize,
    emitted_count: usize,
    /// Line and position of the current instruction.
    pub at: (u32, SourcePosition),
}

impl<'a> Executor<'a> {
    pub fn new(
        context: &'a LiftContext<'a>,
        knowledge: &'a SharedMemoryFacts,
        round: &'a mut Round,
        thread: u16,
        identity: &'a InvocationId,
    ) -> Executor<'a> {
        Executor {
            context,
            facts: knowledge,
            round,
            thread,
            identity,
            segments: vec![Segment::default()],
            segment: 0,
            segments_by_barrier: HashMap::new(),
            pending: Vec::new(),
            next_label: UNNAMED_LABEL + 1,
            registers: FIRST_FREE_REGISTER,
            writes: 0,
            paths: 0,
            steps: 0,
            emitted_count: 0,
            at: (0, SourcePosition::Module),
        }
    }

    pub fn specialized(&self) -> &'a Specialized<'a> {
        self.context.specialized
    }

    /// Executes every path from the entry point.
    pub fn execute_all_paths(mut self, function: u32) -> Result<EmittedThread, Refusal> {
        let frame = self.new_frame(function, 0)?;
        let state = PathState {
            frames: vec![frame],
            next_register: FIRST_FREE_REGISTER,
            next_object: 1,
            ..PathState::default()
        };
        let label = self.new_label();
        self.pending.push(PendingPath { segment: 0, label, state });
        while let Some(PendingPath { segment, label, mut state }) = self.pending.pop() {
            self.segment = segment;
            self.paths += 1;
            let emitted = self.emit_instruction(emit::label(label));
            let walked = emitted.and_then(|()| self.run_path(&mut state));
            if let Err(problem) = walked {
                return Err(problem.located_at(self.source_position()));
            }
            if self.paths > MAX_PATHS {
                let bound = MAX_PATHS;
                return Err(Problem::Exhausted {
                    what: "paths of an invocation",
                    bound,
                    remedy: LOWER_UNROLL,
                }
                .located_at(self.source_position()));
            }
        }
        Ok(EmittedThread {
            segments: self.segments,
            registers: self.registers,
            writes: self.writes,
            paths: self.paths,
        })
    }

    /// Returns the position of the instruction: its source line, or else its word.
    fn source_position(&self) -> SourcePosition {
        match self.context.module().lines.get(self.at.0 as usize) {
            Some(line) if self.at.0 > 0 => SourcePosition::Line(line.line),
            _ => self.at.1,
        }
    }

    fn new_frame(&self, function: u32, result: u32) -> Result<SymbolicFrame, Problem> {
        if !self.context.module().functions.contains_key(&function) {
            return Err(malformed(format!(
                "{} is not a function",
                self.context.module().display_name(function)
            )));
        }
        let (values, loops) = (Rc::default(), Vec::new());
        Ok(SymbolicFrame { function, instruction_index: 0, block: 0, previous: 0, values, loops, result })
    }

    pub fn new_label(&mut self) -> u16 {
        self.next_label = self.next_label.saturating_add(1);
        self.next_label - 1
    }

    pub fn emit_instruction(&mut self, kind: InstructionKind) -> Result<(), Problem> {
        let (line, place) = self.at;
        self.emitted_count += 1;
        if self.emitted_count > MAX_THREAD_INSTRUCTIONS {
            let (what, remedy) = ("instructions of a thread", LOWER_UNROLL);
            return Err(Problem::Exhausted { what, bound: MAX_THREAD_INSTRUCTIONS, remedy });
        }
        self.segments[self.segment].code.push(Emitted { kind, line, place });
        Ok(())
    }

    pub fn new_register(&mut self, state: &mut PathState, domain: NumberDomain) -> Result<u16, Problem> {
        let register = state.next_register;
        if register == u16::MAX {
            let (what, remedy) = ("registers of a thread", LOWER_UNROLL);
            return Err(Problem::Exhausted { what, bound: usize::from(u16::MAX), remedy });
        }
        state.next_register += 1;
        self.registers = self.registers.max(state.next_register);
        Rc::make_mut(&mut state.ranges).insert(register, domain);
        // An abandoned path may have used the same register number.
        if state.definitions.contains_key(&register) {
            Rc::make_mut(&mut state.definitions).remove(&register);
        }
        Ok(register)
    }

    /// Executes one path to its end.
    fn run_path(&mut self, state: &mut PathState) -> Result<(), Problem> {
        loop {
            self.steps += 1;
            if self.steps > MAX_STEPS {
                let (what, remedy) = ("steps of an invocation", LOWER_UNROLL);
                return Err(Problem::Exhausted { what, bound: MAX_STEPS, remedy });
            }
            let is_late = |deadline: &DeadlinePredicate| {
                self.steps.is_multiple_of(DEADLINE_CHECK_INTERVAL) && deadline.has_passed()
            };
            if self.context.deadline.as_ref().is_some_and(is_late) {
                return Err(Problem::OutOfTime);
            }
            match self.step_once(state) {
                Ok(()) | Err(PathInterrupt::Retry) => {}
                Err(PathInterrupt::Ended) => {
                    self.writes = self.writes.max(state.writes);
                    return Ok(());
                }
                Err(PathInterrupt::Refused(problem)) => return Err(problem),
            }
        }
    }

    /// Ends a path that returns from the entry point.
    fn finish_path(&mut self, state: &mut PathState) -> Step<()> {
        // Cells that only this invocation accesses have their final value in the private map.
        let (setting, knowledge) = (self.context, self.facts);
        let all = knowledge.accesses.keys().filter(|cell| setting.keep_final && setting.is_in_buffer(**cell));
        for cell in setting.observed.iter().chain(all).filter(|_| !setting.keep_all) {
            let mine = self
                .facts
                .accesses
                .get(cell)
                .is_some_and(|touch| !touch.is_shared() && touch.writers == 1 << self.thread)
                && setting.open_memory(*cell).is_none();
            if let Some((bytes, value)) =
                state.memory.get(&(cell.object, cell.offset)).filter(|_| mine).cloned()
            {
                let number = self.resolve_number(state, &value, "a final value")?;
                if bytes == cell.bytes {
                    let target = self.access_target(*cell, litmus::StorageClass::Buffer)?;
                    let access = litmus::Access::Coherent { scope: litmus::Scope::Device };
                    self.emit_instruction(emit::store(target, number, access))?;
                }
            }
        }
        self.emit_instruction(emit::jump(END_LABEL))?;
        Err(PathInterrupt::Ended)
    }

    /// Ends a path in an endless loop whose condition cannot change.
    pub fn block_forever(&mut self) -> Step<()> {
        let label = self.new_label();
        // An iteration without any effect: the model recognizes a path that never ends.
        self.emit_instruction(emit::label(label))?;
        self.emit_instruction(emit::jump(label))?;
        Err(PathInterrupt::Ended)
    }

    /// Ends a path at the unrolling bound.
    fn cut_at_loop_bound(&mut self) -> Step<()> {
        let label = self.new_label();
        self.emit_instruction(emit::label(label))?;
        // An iteration that changes a register does not wait for memory, so the model treats the
        // path as cut and not as endless.
        self.emit_instruction(emit::arithmetic(
            COUNT_REGISTER,
            ArithmeticOperation::Add,
            SymbolicNumber::Register(COUNT_REGISTER),
            SymbolicNumber::Known(1),
        ))?;
        self.emit_instruction(emit::jump(label))?;
        Err(PathInterrupt::Ended)
    }

    pub fn report_finding(&mut self, cause: FindingCause, message: String) {
        let finding = self.new_finding(cause, message, String::new());
        self.round.findings.insert(finding);
    }

    fn new_finding(&self, cause: FindingCause, message: String, element: String) -> LiftFinding {
        let at = entry_point::Spot { thread: self.thread, line: self.at.0, place: self.at.1, writes: None };
        LiftFinding { cause, element, message, at: vec![at] }
    }

    /// Reports the instruction whose undefined result is observed.
    pub(crate) fn report_undefined_result(&mut self, state: &mut PathState, id: u32) -> Step<()> {
        let mut code = self.context.module().functions.values().flat_map(|function| &function.code);
        let undefined_instruction = code.find(|instruction| instruction.result == id);
        let undefined = undefined_instruction.and_then(|instruction| {
            Some((instruction, undefined_result(Instruction::Core(instruction.op))?))
        });
        let (instruction, (cause, message)) = undefined.ok_or_else(|| malformed("unknown instruction"))?;
        let here = std::mem::replace(&mut self.at, (instruction.line, instruction.place));
        let reported = self.report_conditionally(state, cause, message, String::new());
        self.at = here;
        reported
    }

    /// Reports a finding if the current path is feasible.
    ///
    /// If read values led here, the code gets a mark that the model checks for reachability
    /// ([`crate::suspicion`]). Only the first finding of a path counts, because nothing after it is defined.
    pub fn report_conditionally(
        &mut self,
        state: &mut PathState,
        cause: FindingCause,
        message: String,
        element: String,
    ) -> Step<()> {
        // No read value led here, so every execution reaches the finding.
        if state.forks == 0 {
            let finding = self.new_finding(cause, message, element);
            self.round.findings.insert(finding);
            return Ok(());
        }
        if std::mem::replace(&mut state.is_suspected, true) {
            return Ok(());
        }
        let finding = self.new_finding(cause, message, element);
        let known = self.round.suspicions.iter().position(|known| *known == finding);
        let index = known.unwrap_or(self.round.suspicions.len());
        if known.is_none() {
            self.round.suspicions.push(finding);
        }
        Ok(self.emit_instruction(emit::suspicion_mark(index))?)
    }

    fn step_once(&mut self, state: &mut PathState) -> Step<()> {
        let module = self.context.module();
        let Some(frame) = state.frames.last() else { return self.finish_path(state) };
        let Some(function) = module.functions.get(&frame.function) else {
            return Err(malformed("no such function").into());
        };
        let Some(instruction) = function.code.get(frame.instruction_index) else {
            return Err(malformed("control flow leaves a function without a return").into());
        };
        self.at = (instruction.line, instruction.place);
        match module.operation(instruction) {
            SpirvOperation::Label => {
                // Jumps set the block; only the first block of a function is entered without one.
                if frame.block == 0
                    && let Some(frame) = state.frames.last_mut()
                {
                    frame.block = instruction.result;
                }
                self.advance(state)
            }
            SpirvOperation::Branch { target } => self.jump_to(state, target),
            SpirvOperation::BranchConditional { condition, yes, no } => {
                let condition = self.value_of_id(state, condition)?;
                let taken = self.fork_on_truth(state, &condition, "a condition")?;
                self.jump_to(state, if taken { yes } else { no })
            }
            SpirvOperation::Switch { selector, default, cases } => {
                let value = self.value_of_id(state, selector)?;
                let bits = self.specialized().scalar_bits(self.type_of_id(state, selector)?)?;
                if let SymbolicValue::Register(register) = state.resolve_value(&value) {
                    let left = SymbolicNumber::Register(register);
                    if state.domain_of(left).finite_values().is_none() {
                        // The numbers cannot be listed, so each case is a branch.
                        for case in switch_cases(cases, bits) {
                            let (relation, right) =
                                (OrderRelation::Equal, SymbolicNumber::Known(case.literal));
                            let truth = SymbolicTruth::Compare { relation, left, right, bits };
                            let truth = SymbolicValue::Truth(Rc::new(truth));
                            if self.fork_on_truth(state, &truth, "a selector")? {
                                return self.jump_to(state, case.target);
                            }
                        }
                        return self.jump_to(state, default);
                    }
                }
                let selected = self.fork_to_known(state, &value, "a selector")?;
                let case = switch_cases(cases, bits).find(|case| case.literal == selected);
                self.jump_to(state, case.map_or(default, |case| case.target))
            }
            SpirvOperation::Return { value } => {
                let value = match value {
                    Some(value) => self.value_of_id(state, value)?,
                    None => SymbolicValue::Opaque,
                };
                let left = state.frames.pop();
                match (left, state.frames.last_mut()) {
                    (Some(left), Some(caller)) => {
                        Rc::make_mut(&mut caller.values).insert(left.result, value);
                        caller.instruction_index += 1;
                        Ok(())
                    }
                    (left, _) => {
                        // A fork among the remaining frames resumes here.
                        state.frames.extend(left);
                        self.finish_path(state)
                    }
                }
            }
            // A helper invocation has no effects.
            SpirvOperation::Kill { .. } => self.finish_path(state),
            SpirvOperation::EmitMeshTasks { .. } if self.context.stage == Stage::Task => {
                self.finish_path(state)
            }
            // The declared vertex and primitive counts do not affect memory.
            SpirvOperation::SetMeshOutputs { .. } if self.context.stage == Stage::Mesh => self.advance(state),
            SpirvOperation::Unreachable => {
                let message = "OpUnreachable is reached".to_owned();
                self.report_conditionally(state, FindingCause::Unreachable, message, String::new())?;
                self.block_forever()
            }
            SpirvOperation::Call { function, arguments } => {
                self.enter_call(state, instruction, function, arguments)
            }
            SpirvOperation::ControlBarrier { part: BarrierPart::Whole, execution, scope, semantics } => {
                self.execute_control_barrier(state, [execution, scope, semantics])
            }
            operation => {
                let value = self.execute_instruction(state, instruction, operation)?;
                // The jump to the block has set its phis.
                if instruction.result != 0 && !matches!(operation, SpirvOperation::Phi { .. }) {
                    self.set_result(state, instruction, value)
                } else {
                    self.advance(state)
                }
            }
        }
    }

    fn advance(&mut self, state: &mut PathState) -> Step<()> {
        if let Some(frame) = state.frames.last_mut() {
            frame.instruction_index += 1;
        }
        Ok(())
    }

    fn set_result(
        &mut self,
        state: &mut PathState,
        instruction: &SpirvInstruction,
        value: SymbolicValue,
    ) -> Step<()> {
        if let Some(frame) = state.frames.last_mut() {
            Rc::make_mut(&mut frame.values).insert(instruction.result, value);
        }
        self.advance(state)
    }

    fn enter_call(
        &mut self,
        state: &mut PathState,
        instruction: &SpirvInstruction,
        function: u32,
        arguments: &[u32],
    ) -> Step<()> {
        let module = self.context.module();
        if state.frames.len() >= MAX_CALLS {
            return Err(Problem::Budget { what: "nested calls", bound: MAX_CALLS }.into());
        }
        let mut frame = self.new_frame(function, instruction.result)?;
        let parameters = &module.functions[&function].parameters;
        if parameters.len() != arguments.len() {
            return Err(malformed("a call whose number of arguments differs from its function").into());
        }
        for (parameter, argument) in parameters.iter().zip(arguments) {
            let value = self.value_of_id(state, *argument)?;
            Rc::make_mut(&mut frame.values).insert(*parameter, value);
        }
        state.frames.push(frame);
        Ok(())
    }

    /// Jumps to a block: evaluates its phis, and tracks loops and their unrolling.
    fn jump_to(&mut self, state: &mut PathState, target: u32) -> Step<()> {
        let module = self.context.module();
        let Some(frame) = state.frames.last() else { return Ok(()) };
        let function = &module.functions[&frame.function];
        let Some(position) = function.labels.get(&target).copied() else {
            return Err(malformed(format!("{} is not a label", module.display_name(target))).into());
        };
        let (from, back) = (frame.block, position <= frame.instruction_index);
        let is_header = self.context.loops_of(frame.function).contains_key(&target);
        let phis = self.phi_values(state, &function.code[position + 1..], from)?;
        if back && let Some(open) = self.undecided_truth(state, target, &phis) {
            self.fork_on_truth(state, &open, "a condition")?;
        }
        let values: Vec<SymbolicValue> = phis.iter().map(|(_, value)| value.clone()).collect();
        if back {
            self.end_unchanged_iteration(state, target, &values)?;
        }
        self.update_loops(state, target, position, back, values)?;
        let Some(frame) = state.frames.last_mut() else { return Ok(()) };
        Rc::make_mut(&mut frame.values).extend(phis);
        (frame.previous, frame.block, frame.instruction_index) = (from, target, position);
        if is_header {
            let start = self.mark_loop_start();
            if let Some(active) = state.frames.last_mut().and_then(|frame| frame.loops.last_mut()) {
                active.start = start;
            }
        }
        Ok(())
    }

    /// Returns the results of the phis at the start of a block, which read their operands simultaneously.
    fn phi_values(
        &mut self,
        state: &PathState,
        code: &[SpirvInstruction],
        from: u32,
    ) -> Step<Vec<(u32, SymbolicValue)>> {
        let mut phis = Vec::new();
        for instruction in code {
            let sources = match self.context.module().operation(instruction) {
                SpirvOperation::Phi { sources } => sources,
                SpirvOperation::Nop => continue,
                _ => break,
            };
            let Some([value, _]) = sources.iter().find(|[_, predecessor]| *predecessor == from) else {
                return Err(malformed("OpPhi without a value for the predecessor block").into());
            };
            phis.push((instruction.result, self.value_of_id(state, *value)?));
        }
        Ok(phis)
    }

    /// Ends the path if an iteration of a loop changed nothing: the next one starts in the same state.
    fn end_unchanged_iteration(
        &mut self,
        state: &PathState,
        header: u32,
        phis: &[SymbolicValue],
    ) -> Step<()> {
        let loops = state.frames.last().map_or(&[][..], |frame| &frame.loops);
        let Some(began) = loops.iter().rfind(|active| active.header == header) else { return Ok(()) };
        // The read-modify-writes of this iteration, unless a barrier came between. One that stores the value it read
        // changes nothing.
        let performed = state.performed_rmws.get(began.rmw_count..);
        let restored = performed.and_then(|performed| {
            performed.iter().map(|update| state.unchanged_rmw(update)).collect::<Option<Vec<_>>>()
        });
        let Some(restored) = restored else { return Ok(()) };
        // Every effect of the iteration was a read-modify-write that wrote back what it read.
        if state.effects != began.effects + restored.len() as u32
            || !self.is_state_unchanged(state, began, phis)
        {
            return Ok(());
        }
        self.constrain_values(&restored)?;
        let label = self.loop_start_label(began.start);
        self.emit_instruction(emit::jump(label))?;
        Err(PathInterrupt::Ended)
    }

    /// Counts an iteration of the loop whose header is the target, or leaves and enters loops.
    fn update_loops(
        &mut self,
        state: &mut PathState,
        target: u32,
        position: usize,
        back: bool,
        phis: Vec<SymbolicValue>,
    ) -> Step<()> {
        let (effects, rmw_count, forks) = (state.effects, state.performed_rmws.len(), state.forks);
        let memory = state.memory.clone();
        let Some(frame) = state.frames.last_mut() else { return Ok(()) };
        let iterated = frame.loops.iter().rposition(|active| active.header == target);
        if let Some(index) = iterated.filter(|_| back) {
            frame.loops.truncate(index + 1);
            let active = &mut frame.loops[index];
            active.iteration += 1;
            // A loop that depends on no read value runs to its end.
            let open = (forks > active.forks).then_some(self.context.unroll_open_loops);
            if self.context.unroll.or(open).is_some_and(|bound| active.iteration >= bound) {
                return self.cut_at_loop_bound();
            }
            (active.effects, active.phis, active.memory) = (effects, phis, memory);
            active.rmw_count = rmw_count;
            return Ok(());
        }
        // The target may be the merge block of an outer loop, which leaves the inner ones too.
        if let Some(left) = frame.loops.iter().position(|active| {
            active.merge == target || active.merge == 0 && (position > active.end || active.header == target)
        }) {
            frame.loops.truncate(left);
        }
        // The entry block of a function may be a loop header.
        if back && self.context.unroll == Some(1) {
            return self.cut_at_loop_bound();
        }
        if let Some((merge, end)) = self.context.loops_of(frame.function).get(&target).copied() {
            let (header, iteration, start) = (target, u32::from(back), 0);
            let entered =
                ActiveLoop { header, merge, end, iteration, effects, rmw_count, phis, memory, start, forks };
            frame.loops.push(entered);
        }
        Ok(())
    }

    /// Constrains registers: the path continues only with these values.
    fn constrain_values(&mut self, values: &[(u16, u64)]) -> Result<(), Problem> {
        for (register, value) in values {
            let (go_on, nowhere) = (self.new_label(), self.new_label());
            let (left, right) = (SymbolicNumber::Register(*register), SymbolicNumber::Known(*value));
            self.emit_instruction(emit::branch(litmus::Comparison::Equal, left, right, go_on))?;
            self.emit_instruction(emit::label(nowhere))?;
            self.emit_instruction(emit::jump(nowhere))?;
            self.emit_instruction(emit::label(go_on))?;
        }
        Ok(())
    }

    /// Marks the start of an iteration in the code; returns its position.
    fn mark_loop_start(&mut self) -> usize {
        let mark = emit::label(UNNAMED_LABEL);
        let code = &mut self.segments[self.segment].code;
        if code.last().is_none_or(|last| last.kind != mark) {
            code.push(Emitted { kind: mark, line: 0, place: SourcePosition::Module });
        }
        code.len() - 1
    }

    /// Returns the label of a marked position.
    fn loop_start_label(&mut self, start: usize) -> u16 {
        let mark = &self.segments[self.segment].code[start].kind;
        if let (_, Some(known)) = emit::labels_of(mark)
            && known.0 != UNNAMED_LABEL
        {
            return known.0;
        }
        let label = self.new_label();
        self.segments[self.segment].code[start].kind = emit::label(label);
        label
    }

    /// Returns the access target of a cell.
    pub fn access_target(
        &mut self,
        cell: MemoryCell,
        class: litmus::StorageClass,
    ) -> Result<emit::AccessTarget, Problem> {
        let count = self.round.locations.len();
        let location = *self.round.locations.entry(cell).or_insert(LocationId(count as u16));
        if count >= usize::from(u16::MAX) {
            let (what, remedy) = ("locations", "; lower --grid or --unroll");
            return Err(Problem::Exhausted { what, bound: usize::from(u16::MAX), remedy });
        }
        Ok(emit::AccessTarget { location, class, scalar: None })
    }

    /// Returns the storage class of shared memory; `None` for private memory.
    pub fn storage_class(&self, object: ObjectId) -> Option<litmus::StorageClass> {
        self.context.class_of(object.variable)
    }

    pub fn extract_part(&self, value: &SymbolicValue, index: usize) -> Step<SymbolicValue> {
        part_of_value(value, index).ok_or_else(|| malformed("a value without this member").into())
    }
}
