//! The code of a forward-progress kernel: the assignment of threads, and each thread as a loop over its basic
//! blocks.

use litmus::{Flow, InstructionKind, LocationInit, RegisterId, Test, ThreadId};
use rspirv::dr::Operand;
use rspirv::spirv::{self, BuiltIn, Decoration, MemorySemantics, Op, Word};
use spirv_reader::semantics_word;

use super::{
    CLOCK_WORD, CopyPlacement, ENDED, OVERFLOW_WORD, Parameter, Parameters, ProgressConfig, RECORD_FIELDS,
    RecordField, STOP_WORD, STORAGE_SPACING, STUCK, SeparationLevel, block_leaders,
};
use crate::dispatch::Storages;
use crate::kernel::CompileError;
use crate::loops::LoopBuilder;
use crate::memory::{AccessTarget, ReferenceMemory, ReferencePath};
use crate::module::{AtomicOrder, ModuleBuilder};
use crate::rules::Rule;
use crate::segments::{self, BarrierSegment};
use crate::thread::{Registers, ThreadContext, ThreadEmitter, scope_operand};
use crate::variant::Variant;

struct ThreadVariables {
    registers: Vec<Word>,
    /// Number of the next block of the segment; that of the end if there is none.
    block: Word,
    iterations: Word,
    /// 1 if the host or a bound stopped it.
    stuck: Word,
}

struct FirstBlockValues {
    role: Word,
    /// First word of the record of the copy's thread 0.
    record: Word,
    records: Word,
    control: Word,
    targets: Vec<(ReferencePath, AccessTarget)>,
}

pub(super) struct ProgressEmitter<'a> {
    pub test: &'a Test,
    pub config: &'a ProgressConfig,
    pub variant: Variant,
    pub placement: &'a CopyPlacement,
    pub storages: &'a Storages,
    pub module: ModuleBuilder,
}

impl ProgressEmitter<'_> {
    /// Emits the entry point; returns the number of location bindings.
    pub fn emit_main(
        &mut self,
        paths: &[(ReferencePath, ReferenceMemory)],
        segments: Vec<BarrierSegment>,
    ) -> Result<u32, CompileError> {
        let word = self.module.u32;
        let block = self.module.type_array_block(word, 4, None);
        let mut buffers: Vec<(litmus::LocationId, Word)> = Vec::new();
        for (path, _) in paths {
            if buffers.iter().any(|(location, _)| *location == path.location) {
                continue;
            }
            let (number, name) = (buffers.len() as u32, self.test.location(path.location).name.clone());
            let buffer = self.module.bound_variable(spirv::StorageClass::StorageBuffer, block, number, &name);
            buffers.push((path.location, buffer));
        }
        if self.test.locations.iter().any(|location| matches!(location.init, LocationInit::AliasOf(_))) {
            for (_, buffer) in &buffers {
                self.module.decorate(*buffer, Decoration::Aliased, &[]);
            }
        }
        let locations = buffers.len() as u32;
        let records =
            self.module.bound_variable(spirv::StorageClass::StorageBuffer, block, locations, "records");
        let control =
            self.module.bound_variable(spirv::StorageClass::StorageBuffer, block, locations + 1, "control");
        let parameters = self.module.push_constants(Parameters::WORDS, 0);
        let workgroup_input = self.module.built_in_vector(BuiltIn::WorkgroupId);
        let local_input = self.module.built_in_word(BuiltIn::LocalInvocationIndex);
        let subgroup_inputs = self.placement.layout.subgroup_size.map(|_| {
            let subgroup = self.module.built_in_word(BuiltIn::SubgroupId);
            (subgroup, self.module.built_in_word(BuiltIn::SubgroupLocalInvocationId))
        });

        let entry = self.module.id();
        self.module.begin_block(entry);
        let variables: Vec<ThreadVariables> =
            (0..self.test.threads.len()).map(|thread| self.declare_variables(thread)).collect();
        let zero = self.module.constant(0);
        for own in &variables {
            for variable in [own.iterations, own.stuck] {
                self.module.store(variable, zero);
            }
        }
        let [copies, near] = [Parameter::Copies, Parameter::Near]
            .map(|parameter| self.module.push_constant(parameters, parameter as u32));
        let [workgroup, y, z] = self.module.load_components(workgroup_input);
        let local = self.module.emit_word(Op::Load, &[local_input]);
        let (subgroup, lane) = match subgroup_inputs {
            None => (zero, local),
            Some((subgroup, lane)) => {
                (self.module.emit_word(Op::Load, &[subgroup]), self.module.emit_word(Op::Load, &[lane]))
            }
        };
        let unit = match self.placement.level {
            SeparationLevel::Workgroups => workgroup,
            SeparationLevel::Subgroups => subgroup,
            SeparationLevel::Invocations => lane,
        };
        let round_robin_units = self.module.emit_word(Op::IMul, &[near, copies]);
        let is_round_robin = self.module.emit_bool(Op::ULessThan, &[unit, round_robin_units]);
        let mut pick = |op, in_turn_by: Word, else_by: Word| {
            let yes = self.module.emit_word(op, &[unit, in_turn_by]);
            let no = self.module.emit_word(op, &[unit, else_by]);
            (yes, no)
        };
        let (part_in_turn, copy_by_range) = pick(Op::UMod, near, copies);
        let (copy_in_turn, part_by_range) = pick(Op::UDiv, near, copies);
        let part = self.module.emit_word(Op::Select, &[is_round_robin, part_in_turn, part_by_range]);
        let copy = self.module.emit_word(Op::Select, &[is_round_robin, copy_in_turn, copy_by_range]);
        let role = self.emit_role(part, subgroup, lane);
        let outside = self.emit_is_outside_grid([workgroup, y, z], local, copies);
        let none = self.module.constant(self.test.threads.len() as u32);
        let role = self.module.emit_word(Op::Select, &[outside, none, role]);
        self.count_overflow(control, outside);

        let words = self.module.constant(RECORD_FIELDS * self.test.threads.len() as u32);
        let record = self.module.emit_word(Op::IMul, &[copy, words]);
        let first = self.module.constant(self.storages.count() * STORAGE_SPACING);
        let first = self.module.emit_word(Op::IMul, &[copy, first]);
        let mut targets = Vec::with_capacity(paths.len());
        for (path, _) in paths {
            let Some((_, buffer)) = buffers.iter().find(|(location, _)| *location == path.location) else {
                continue;
            };
            let offset = self
                .module
                .constant(self.storages.number_of(path.location).map_err(Rule::from)? * STORAGE_SPACING);
            let index = self.module.emit_word(Op::IAdd, &[first, offset]);
            let pointer = self.module.word_pointer(*buffer, index);
            targets.push((*path, AccessTarget::Memory { pointer, alignment: None }));
        }
        let values = FirstBlockValues { role, record, records, control, targets };

        for (number, segment) in segments.iter().enumerate() {
            for part in &segment.parts {
                let Some(own) = variables.get(part.thread) else { continue };
                self.emit_segment(part, own, &values, number == 0, segment.barrier.is_some())?;
            }
            if let Some(barrier) = segment.barrier {
                let execution = self.scope_constant(barrier.execution_scope)?;
                let memory = self.scope_constant(barrier.memory_scope)?;
                let semantics = self.module.constant(semantics_word(barrier.semantics));
                self.module.control_barrier(barrier.opcode(), execution, memory, semantics);
            }
        }
        self.module.emit_void(Op::Return, []);
        Ok(locations)
    }

    /// Emits the condition that an invocation is outside the dispatch.
    fn emit_is_outside_grid(&mut self, [workgroup, y, z]: [Word; 3], local: Word, copies: Word) -> Word {
        let [zero, one, size, units] = [0, 1, self.placement.layout.workgroup_size, self.placement.units]
            .map(|value| self.module.constant(value));
        let workgroups = match self.placement.level {
            SeparationLevel::Workgroups => self.module.emit_word(Op::IMul, &[copies, units]),
            SeparationLevel::Subgroups | SeparationLevel::Invocations => one,
        };
        let others = self.module.emit_word(Op::BitwiseOr, &[y, z]);
        let elsewhere = self.module.emit_bool(Op::INotEqual, &[others, zero]);
        let surplus = self.module.emit_bool(Op::UGreaterThanEqual, &[workgroup, workgroups]);
        let behind = self.module.emit_bool(Op::UGreaterThanEqual, &[local, size]);
        let outside = self.module.emit_bool(Op::LogicalOr, &[elsewhere, surplus]);
        self.module.emit_bool(Op::LogicalOr, &[outside, behind])
    }

    /// Adds 1 to the overflow word if the condition holds.
    fn count_overflow(&mut self, control: Word, condition: Word) {
        let [counting, counted] = std::array::from_fn(|_| self.module.id());
        self.module.begin_if(condition, counting, counted);
        let [index, one, relaxed] = [OVERFLOW_WORD as u32, 1, 0].map(|value| self.module.constant(value));
        let pointer = self.module.word_pointer(control, index);
        let order = AtomicOrder { scope: self.widest_scope(), semantics: relaxed };
        self.module.atomic_add(pointer, order, one);
        self.module.continue_at(counted);
    }

    fn declare_variables(&mut self, thread: usize) -> ThreadVariables {
        let of = self.test.thread(ThreadId(thread as u16));
        let word = self.module.u32;
        let mut local = |what: &str| self.module.function_variable(word, &format!("P{}:{what}", of.number));
        ThreadVariables {
            registers: of.registers.iter().map(|register| local(&register.name)).collect(),
            block: local("block"),
            iterations: local("turns"),
            stuck: local("stuck"),
        }
    }

    /// Returns the thread of an invocation; the number of threads if it runs none.
    fn emit_role(&mut self, part: Word, subgroup: Word, lane: Word) -> Word {
        let mut role = self.module.constant(self.test.threads.len() as u32);
        let roles = self.placement.layout.roles.clone();
        for (thread, own) in roles.iter().enumerate() {
            let mut wanted = match self.placement.level {
                SeparationLevel::Workgroups => {
                    vec![(part, own.class), (subgroup, own.subgroup), (lane, own.share)]
                }
                SeparationLevel::Subgroups => vec![(part, own.subgroup), (lane, own.share)],
                SeparationLevel::Invocations => vec![(part, own.share)],
            };
            if self.placement.layout.subgroup_size.is_none() {
                wanted.retain(|(value, _)| *value != subgroup);
            }
            let mut all = None;
            for (value, number) in wanted {
                let number = self.module.constant(number);
                let same = self.module.emit_bool(Op::IEqual, &[value, number]);
                all = Some(match all {
                    None => same,
                    Some(others) => self.module.emit_bool(Op::LogicalAnd, &[others, same]),
                });
            }
            let Some(all) = all else { continue };
            let number = self.module.constant(thread as u32);
            role = self.module.emit_word(Op::Select, &[all, number, role]);
        }
        role
    }

    fn scope_constant(&mut self, scope: litmus::Scope) -> Result<Word, Rule> {
        let word = scope_operand(scope, self.variant)?;
        Ok(self.module.constant(word))
    }

    /// Returns the widest possible scope of atomics, for memory that the host reads and writes.
    fn widest_scope(&mut self) -> Word {
        let scope = if self.config.device_scope { spirv::Scope::Device } else { spirv::Scope::QueueFamily };
        self.module.constant(scope as u32)
    }

    fn relaxed_order(&mut self) -> AtomicOrder {
        AtomicOrder { scope: self.widest_scope(), semantics: self.module.constant(0) }
    }

    /// Returns a pointer to a field of a thread's record.
    fn field_pointer(&mut self, values: &FirstBlockValues, thread: usize, field: RecordField) -> Word {
        let offset = self.module.constant(thread as u32 * RECORD_FIELDS + field as u32);
        let index = self.module.emit_word(Op::IAdd, &[values.record, offset]);
        self.module.word_pointer(values.records, index)
    }

    /// Writes a field so that the host may see it while the kernel runs.
    fn emit_record_field(
        &mut self,
        values: &FirstBlockValues,
        thread: usize,
        field: RecordField,
        value: Word,
    ) {
        let pointer = self.field_pointer(values, thread, field);
        self.emit_relaxed_store(pointer, value);
    }

    fn emit_relaxed_store(&mut self, pointer: Word, value: Word) {
        let relaxed = self.relaxed_order();
        self.module.atomic_store(pointer, relaxed, value);
    }

    /// Reads the stop word, several times if iterations should be long.
    fn emit_stop_polls(&mut self, values: &FirstBlockValues, polls: u32) -> Word {
        let index = self.module.constant(STOP_WORD as u32);
        let pointer = self.module.word_pointer(values.control, index);
        let relaxed = self.relaxed_order();
        let mut combined: Option<Word> = None;
        for _ in 0..polls.max(1) {
            let polled = self.module.atomic_load(pointer, relaxed);
            combined = Some(match combined {
                None => polled,
                Some(before) => self.module.emit_word(Op::BitwiseOr, &[before, polled]),
            });
        }
        combined.unwrap_or(values.role)
    }

    /// Returns the clock and increments it.
    fn emit_clock_tick(&mut self, values: &FirstBlockValues) -> Word {
        let index = self.module.constant(CLOCK_WORD as u32);
        let pointer = self.module.word_pointer(values.control, index);
        let (relaxed, one) = (self.relaxed_order(), self.module.constant(1));
        self.module.atomic_add(pointer, relaxed, one)
    }

    fn load_variable(&mut self, variable: Word) -> Word {
        self.module.emit_word(Op::Load, &[variable])
    }

    /// Emits code under a condition.
    fn emit_if(
        &mut self,
        condition: Word,
        code: impl FnOnce(&mut Self) -> Result<(), CompileError>,
    ) -> Result<(), CompileError> {
        let (body, merge) = (self.module.id(), self.module.id());
        self.module.begin_if(condition, body, merge);
        code(self)?;
        self.module.continue_at(merge);
        Ok(())
    }

    /// Emits code of one role in a switch, so that an interpreter of the kernel can identify the threads.
    fn emit_for_role(
        &mut self,
        thread: usize,
        values: &FirstBlockValues,
        code: impl FnOnce(&mut Self) -> Result<(), CompileError>,
    ) -> Result<(), CompileError> {
        let (body, merge) = (self.module.id(), self.module.id());
        self.module.switch(values.role, merge, [(thread as u32, body)]);
        self.module.begin_block(body);
        code(self)?;
        self.module.continue_at(merge);
        Ok(())
    }

    /// Emits the part of a segment for one thread: its first block, a loop over its blocks, and the code
    /// after it. Every lane enters the loop, and lanes of other threads leave it immediately.
    fn emit_segment(
        &mut self,
        part: &segments::ThreadSegment,
        variables: &ThreadVariables,
        values: &FirstBlockValues,
        first: bool,
        ends_at_barrier: bool,
    ) -> Result<(), CompileError> {
        let thread = self.test.thread(ThreadId(part.thread as u16));
        let starts = block_leaders(thread, part.body.clone());
        let starts = if part.body.is_empty() { Vec::new() } else { starts };
        let end = self.module.constant(starts.len() as u32);
        let [zero, one, stuck_word, ended_word] =
            [0, 1, STUCK, ENDED].map(|value| self.module.constant(value));
        self.module.store(variables.block, end);
        let acquire = part.acquire;
        self.emit_for_role(part.thread, values, |this| {
            if first && part.first {
                for (register, variable) in variables.registers.iter().enumerate() {
                    let initial =
                        this.test.initial_register(ThreadId(part.thread as u16), RegisterId(register as u16));
                    let initial = this.module.constant(initial.0 as u32);
                    this.module.store(*variable, initial);
                }
                let stop = this.emit_stop_polls(values, 1);
                let stopped = this.module.emit_bool(Op::INotEqual, &[stop, zero]);
                let stuck = this.module.emit_word(Op::Select, &[stopped, one, zero]);
                this.module.store(variables.stuck, stuck);
                let continues = this.module.emit_bool(Op::IEqual, &[stop, zero]);
                this.emit_if(continues, |this| {
                    let clock = this.emit_clock_tick(values);
                    this.emit_record_field(values, part.thread, RecordField::StartClock, clock);
                    Ok(())
                })?;
            }
            if let Some((scope, semantics)) = acquire {
                this.thread_emitter(part.thread, values, &mut Registers::empty())
                    .emit_fence(scope, semantics)?;
            }
            let stuck = this.load_variable(variables.stuck);
            let continues = this.module.emit_bool(Op::IEqual, &[stuck, zero]);
            let start = this.module.emit_word(Op::Select, &[continues, zero, end]);
            this.module.store(variables.block, start);
            Ok(())
        })?;
        if !starts.is_empty() {
            self.emit_block_loop(part, variables, values, &starts)?;
        }
        self.emit_for_role(part.thread, values, |this| {
            // A driver may have ended the loop silently.
            let block = this.load_variable(variables.block);
            let left_early = this.module.emit_bool(Op::INotEqual, &[block, end]);
            let stuck = this.load_variable(variables.stuck);
            let stuck = this.module.emit_word(Op::Select, &[left_early, one, stuck]);
            this.module.store(variables.stuck, stuck);
            if let Some((scope, semantics)) = part.release {
                this.thread_emitter(part.thread, values, &mut Registers::empty())
                    .emit_fence(scope, semantics)?;
            }
            let next_kind = thread.instructions.get(part.body.end).map(|instruction| &instruction.kind);
            if ends_at_barrier && matches!(next_kind, Some(InstructionKind::ControlBarrier(_))) {
                let continues = this.module.emit_bool(Op::IEqual, &[stuck, zero]);
                this.emit_if(continues, |this| {
                    let place = this.module.constant(part.body.end as u32);
                    this.emit_record_field(values, part.thread, RecordField::Position, place);
                    Ok(())
                })?;
            }
            if part.last {
                let turns = this.load_variable(variables.iterations);
                this.emit_record_field(values, part.thread, RecordField::Iterations, turns);
                // The thread's accesses are performed before the record of its end.
                if this.config.has_final_barrier {
                    let scope = this.widest_scope();
                    let order = MemorySemantics::ACQUIRE_RELEASE | MemorySemantics::UNIFORM_MEMORY;
                    let semantics = this.module.constant(order.bits());
                    let operands = [Operand::IdScope(scope), Operand::IdMemorySemantics(semantics)];
                    this.module.emit_void(Op::MemoryBarrier, operands);
                }
                let is_stuck = this.module.emit_bool(Op::INotEqual, &[stuck, zero]);
                let state = this.module.emit_word(Op::Select, &[is_stuck, stuck_word, ended_word]);
                let clock = this.emit_clock_tick(values);
                this.emit_record_field(values, part.thread, RecordField::EndClock, clock);
                this.emit_record_field(values, part.thread, RecordField::State, state);
            }
            Ok(())
        })
    }

    fn thread_emitter<'t>(
        &'t mut self,
        thread: usize,
        values: &'t FirstBlockValues,
        registers: &'t mut Registers,
    ) -> ThreadEmitter<'t> {
        let context =
            ThreadContext { test: self.test, variant: self.variant, targets: &values.targets, loop_bound: 0 };
        ThreadEmitter { module: &mut self.module, context, thread: ThreadId(thread as u16), registers }
    }

    /// Emits the loop over a thread's blocks.
    fn emit_block_loop(
        &mut self,
        part: &segments::ThreadSegment,
        variables: &ThreadVariables,
        values: &FirstBlockValues,
        starts: &[usize],
    ) -> Result<(), CompileError> {
        let block_loop = LoopBuilder::new(&mut self.module);
        let end = self.module.constant(starts.len() as u32);
        let [zero, one] = [0, 1].map(|value| self.module.constant(value));
        let before = self.module.current_block();
        block_loop.enter(&mut self.module, before);
        let block = self.load_variable(variables.block);
        let continues = self.module.emit_bool(Op::INotEqual, &[block, end]);
        block_loop.begin_body_if(&mut self.module, continues);
        let iterations = self.load_variable(variables.iterations);
        let iterations = self.module.emit_word(Op::IAdd, &[iterations, one]);
        self.module.store(variables.iterations, iterations);
        self.emit_record_field(values, part.thread, RecordField::Iterations, iterations);
        let mut stop = self.emit_stop_polls(values, self.config.stop_polls);
        if let Some(bound) = self.config.max_iterations {
            let bound = self.module.constant(bound);
            let over = self.module.emit_bool(Op::UGreaterThanEqual, &[iterations, bound]);
            let requested = stop;
            stop = self.module.emit_word(Op::Select, &[over, one, stop]);
            let not_requested = self.module.emit_bool(Op::IEqual, &[requested, zero]);
            let stops_others = self.module.emit_bool(Op::LogicalAnd, &[over, not_requested]);
            self.emit_if(stops_others, |this| {
                // A thread that starts or ends from now on has a later clock.
                let clock = this.emit_clock_tick(values);
                let index = this.module.constant(STOP_WORD as u32);
                let pointer = this.module.word_pointer(values.control, index);
                let clock = this.module.emit_word(Op::IAdd, &[clock, one]);
                this.emit_relaxed_store(pointer, clock);
                Ok(())
            })?;
        }
        let stopped = self.module.emit_bool(Op::INotEqual, &[stop, zero]);
        let [leave, go_on, after] = std::array::from_fn(|_| self.module.id());
        self.module.selection_merge(after);
        self.module.branch_if(stopped, leave, go_on);
        self.module.begin_block(leave);
        self.module.store(variables.stuck, one);
        self.module.store(variables.block, end);
        self.module.branch(after);
        self.module.begin_block(go_on);
        self.emit_block_switch(part, variables, values, starts)?;
        self.module.continue_at(after);
        block_loop.end_body(&mut self.module);
        Ok(())
    }

    /// Emits the dispatch to the next block.
    fn emit_block_switch(
        &mut self,
        part: &segments::ThreadSegment,
        variables: &ThreadVariables,
        values: &FirstBlockValues,
        starts: &[usize],
    ) -> Result<(), CompileError> {
        let merge = self.module.id();
        let labels: Vec<Word> = starts.iter().map(|_| self.module.id()).collect();
        let block = self.load_variable(variables.block);
        self.module.switch(block, merge, (0..).zip(labels.iter().copied()));
        for (number, label) in labels.iter().enumerate() {
            self.module.begin_block(*label);
            let to = starts.get(number + 1).copied().unwrap_or(part.body.end);
            let from = starts.get(number).copied().unwrap_or(to);
            self.emit_block(part, variables, values, starts, from..to)?;
            self.module.branch(merge);
        }
        self.module.begin_block(merge);
        Ok(())
    }

    /// Emits one block. Inside it, registers are values, so that loads do not wait for each other.
    fn emit_block(
        &mut self,
        part: &segments::ThreadSegment,
        variables: &ThreadVariables,
        values: &FirstBlockValues,
        starts: &[usize],
        range: std::ops::Range<usize>,
    ) -> Result<(), CompileError> {
        let thread = self.test.thread(ThreadId(part.thread as u16));
        let before: Vec<Option<Word>> =
            variables.registers.iter().map(|variable| Some(self.load_variable(*variable))).collect();
        let mut registers = Registers::Values(before.iter().copied().collect());
        let number_of = |position: usize| {
            starts.iter().position(|start| *start == position).unwrap_or(starts.len()) as u32
        };
        let mut next = self.module.constant(number_of(range.end));
        for position in range {
            let Some(instruction) = thread.instructions.get(position) else { continue };
            match &instruction.kind {
                InstructionKind::Flow(Flow::Label(_)) => {}
                InstructionKind::Flow(Flow::Goto(target)) => {
                    next = self.module.constant(number_of(label_target(thread, *target)?));
                }
                InstructionKind::Flow(Flow::Branch { target, .. }) => {
                    let taken = self.module.constant(number_of(label_target(thread, *target)?));
                    let condition =
                        self.thread_emitter(part.thread, values, &mut registers).condition_at(position)?;
                    if let Some(condition) = condition {
                        next = self.module.emit_word(Op::Select, &[condition, taken, next]);
                    }
                }
                kind => {
                    if kind.access().is_some() {
                        let place = self.module.constant(position as u32);
                        self.emit_record_field(values, part.thread, RecordField::Position, place);
                    }
                    self.thread_emitter(part.thread, values, &mut registers).emit_instruction(instruction)?;
                }
            }
        }
        if let Registers::Values(after) = &registers {
            for ((variable, before), after) in variables.registers.iter().zip(&before).zip(after.entries()) {
                if let Some(value) = after.filter(|_| before != after) {
                    self.module.store(*variable, value);
                }
            }
        }
        self.module.store(variables.block, next);
        Ok(())
    }
}

/// Returns the target of a jump.
fn label_target(thread: &litmus::Thread, label: litmus::LabelId) -> Result<usize, Rule> {
    thread.label_index(label).ok_or(Rule::Internal("a jump to an undefined label"))
}
