//! The code of a forward-progress kernel: the assignment of threads, and each thread as a loop over its basic
//! blocks.

use litmus::{Flow, InstructionKind, LocationInit, RegisterId, Test, ThreadId};
use rspirv::dr::Operand;
use rspirv::spirv::{self, BuiltIn, Decoration, MemorySemantics, Op, Word};
use spirv_reader::semantics_word;

use super::{
    CLOCK, ENDED, FIELDS, Field, Level, OVERFLOW, Parameter, Parameters, ProgressConfig, SPACING, STOP,
    STUCK, Spread, block_leaders,
};
use crate::dispatch::Storages;
use crate::flow::label_position;
use crate::kernel::CompileError;
use crate::loops::Loop;
use crate::memory::{AccessTarget, ReferenceMemory, ReferencePath};
use crate::module::Module;
use crate::rules::Rule;
use crate::segments::{self, BarrierSegment};
use crate::thread::{Registers, Surroundings, ThreadEmitter, scope_operand};
use crate::variant::Variant;

/// The variables of a thread.
struct Own {
    registers: Vec<Word>,
    /// Number of the next block of the segment; that of the end if there is none.
    block: Word,
    turns: Word,
    /// 1 if it was stopped.
    stuck: Word,
}

/// The values of the first block.
struct FirstBlockValues {
    role: Word,
    /// First word of the record of the copy's thread 0.
    record: Word,
    records: Word,
    control: Word,
    targets: Vec<(ReferencePath, AccessTarget)>,
}

pub(super) struct Emitter<'a> {
    pub test: &'a Test,
    pub config: &'a ProgressConfig,
    pub variant: Variant,
    pub spread: &'a Spread,
    pub storages: &'a Storages,
    pub module: Module,
}

impl Emitter<'_> {
    /// Emits the entry point; returns the number of location bindings.
    pub fn main(
        &mut self,
        paths: &[(ReferencePath, ReferenceMemory)],
        segments: Vec<BarrierSegment>,
    ) -> Result<u32, CompileError> {
        let word = self.module.u32;
        let block = self.module.block_of(word, 4, None);
        let mut buffers: Vec<(litmus::LocationId, Word)> = Vec::new();
        for (path, _) in paths {
            if buffers.iter().any(|(location, _)| *location == path.location) {
                continue;
            }
            let (number, name) = (buffers.len() as u32, self.test.location(path.location).name.clone());
            let buffer = self.module.bound(spirv::StorageClass::StorageBuffer, block, number, &name);
            buffers.push((path.location, buffer));
        }
        if self.test.locations.iter().any(|location| matches!(location.init, LocationInit::AliasOf(_))) {
            for (_, buffer) in &buffers {
                self.module.decorate(*buffer, Decoration::Aliased, &[]);
            }
        }
        let locations = buffers.len() as u32;
        let records = self.module.bound(spirv::StorageClass::StorageBuffer, block, locations, "records");
        let control = self.module.bound(spirv::StorageClass::StorageBuffer, block, locations + 1, "control");
        let parameters = self.module.push_constants(Parameters::WORDS, 0);
        let workgroup_input = self.module.built_in_vector(BuiltIn::WorkgroupId);
        let local_input = self.module.built_in_word(BuiltIn::LocalInvocationIndex);
        let subgroup_inputs = self.spread.layout.subgroup_size.map(|_| {
            let subgroup = self.module.built_in_word(BuiltIn::SubgroupId);
            (subgroup, self.module.built_in_word(BuiltIn::SubgroupLocalInvocationId))
        });

        let entry = self.module.id();
        self.module.begin(entry);
        let owns: Vec<Own> = (0..self.test.threads.len()).map(|thread| self.variables(thread)).collect();
        let zero = self.module.constant(0);
        for own in &owns {
            for variable in [own.turns, own.stuck] {
                self.module.effect(Op::Store, [variable, zero].map(Operand::IdRef));
            }
        }
        let [copies, near] = [Parameter::Copies, Parameter::Near]
            .map(|parameter| self.module.push_constant(parameters, parameter as u32));
        let [workgroup, y, z] = self.module.load_components(workgroup_input);
        let local = self.module.word(Op::Load, &[local_input]);
        let (subgroup, lane) = match subgroup_inputs {
            None => (zero, local),
            Some((subgroup, lane)) => {
                (self.module.word(Op::Load, &[subgroup]), self.module.word(Op::Load, &[lane]))
            }
        };
        let unit = match self.spread.level {
            Level::Workgroups => workgroup,
            Level::Subgroups => subgroup,
            Level::Invocations => lane,
        };
        let dealt = self.module.word(Op::IMul, &[near, copies]);
        let in_turn = self.module.truth(Op::ULessThan, &[unit, dealt]);
        let mut pick = |op, in_turn_by: Word, else_by: Word| {
            let yes = self.module.word(op, &[unit, in_turn_by]);
            let no = self.module.word(op, &[unit, else_by]);
            (yes, no)
        };
        let (part_in_turn, copy_by_range) = pick(Op::UMod, near, copies);
        let (copy_in_turn, part_by_range) = pick(Op::UDiv, near, copies);
        let part = self.module.word(Op::Select, &[in_turn, part_in_turn, part_by_range]);
        let copy = self.module.word(Op::Select, &[in_turn, copy_in_turn, copy_by_range]);
        let role = self.role(part, subgroup, lane);
        let outside = self.outside([workgroup, y, z], local, copies);
        let none = self.module.constant(self.test.threads.len() as u32);
        let role = self.module.word(Op::Select, &[outside, none, role]);
        self.count_overflow(control, outside);

        let words = self.module.constant(FIELDS * self.test.threads.len() as u32);
        let record = self.module.word(Op::IMul, &[copy, words]);
        let first = self.module.constant(self.storages.count() * SPACING);
        let first = self.module.word(Op::IMul, &[copy, first]);
        let mut targets = Vec::with_capacity(paths.len());
        for (path, _) in paths {
            let Some((_, buffer)) = buffers.iter().find(|(location, _)| *location == path.location) else {
                continue;
            };
            let offset =
                self.module.constant(self.storages.number_of(path.location).map_err(Rule::from)? * SPACING);
            let index = self.module.word(Op::IAdd, &[first, offset]);
            let pointer = self.module.element(*buffer, index);
            targets.push((*path, AccessTarget::Memory { pointer, alignment: None }));
        }
        let here = FirstBlockValues { role, record, records, control, targets };

        for (number, segment) in segments.iter().enumerate() {
            for part in &segment.parts {
                let Some(own) = owns.get(part.thread) else { continue };
                self.part(part, own, &here, number == 0, segment.barrier.is_some())?;
            }
            if let Some(barrier) = segment.barrier {
                let execution = self.scope(barrier.execution)?;
                let memory = self.scope(barrier.memory)?;
                let semantics = self.module.constant(semantics_word(barrier.semantics));
                self.module.effect(
                    barrier.op(),
                    [
                        Operand::IdScope(execution),
                        Operand::IdScope(memory),
                        Operand::IdMemorySemantics(semantics),
                    ],
                );
            }
        }
        self.module.effect(Op::Return, []);
        Ok(locations)
    }

    /// Returns true for an invocation that the dispatch does not have.
    fn outside(&mut self, [workgroup, y, z]: [Word; 3], local: Word, copies: Word) -> Word {
        let [zero, one, size, units] = [0, 1, self.spread.layout.workgroup_size, self.spread.units]
            .map(|value| self.module.constant(value));
        let workgroups = match self.spread.level {
            Level::Workgroups => self.module.word(Op::IMul, &[copies, units]),
            Level::Subgroups | Level::Invocations => one,
        };
        let others = self.module.word(Op::BitwiseOr, &[y, z]);
        let elsewhere = self.module.truth(Op::INotEqual, &[others, zero]);
        let surplus = self.module.truth(Op::UGreaterThanEqual, &[workgroup, workgroups]);
        let behind = self.module.truth(Op::UGreaterThanEqual, &[local, size]);
        let outside = self.module.truth(Op::LogicalOr, &[elsewhere, surplus]);
        self.module.truth(Op::LogicalOr, &[outside, behind])
    }

    /// Adds 1 to the overflow word if the condition holds.
    fn count_overflow(&mut self, control: Word, condition: Word) {
        let [counting, counted] = std::array::from_fn(|_| self.module.id());
        self.module.selection_merge(counted);
        self.module.branch_if(condition, counting, counted);
        self.module.begin(counting);
        let [index, one, relaxed] = [OVERFLOW as u32, 1, 0].map(|value| self.module.constant(value));
        let pointer = self.module.element(control, index);
        let scope = self.widest();
        self.module.value(
            Op::AtomicIAdd,
            self.module.u32,
            [
                Operand::IdRef(pointer),
                Operand::IdScope(scope),
                Operand::IdMemorySemantics(relaxed),
                Operand::IdRef(one),
            ],
        );
        self.module.branch(counted);
        self.module.begin(counted);
    }

    fn variables(&mut self, thread: usize) -> Own {
        let of = self.test.thread(ThreadId(thread as u16));
        let word = self.module.u32;
        let mut local = |what: &str| self.module.local(word, &format!("P{}:{what}", of.number));
        Own {
            registers: of.registers.iter().map(|register| local(&register.name)).collect(),
            block: local("block"),
            turns: local("turns"),
            stuck: local("stuck"),
        }
    }

    /// Returns the thread of an invocation; the number of threads if it runs none.
    fn role(&mut self, part: Word, subgroup: Word, lane: Word) -> Word {
        let mut role = self.module.constant(self.test.threads.len() as u32);
        let roles = self.spread.layout.roles.clone();
        for (thread, own) in roles.iter().enumerate() {
            let mut wanted = match self.spread.level {
                Level::Workgroups => vec![(part, own.class), (subgroup, own.subgroup), (lane, own.share)],
                Level::Subgroups => vec![(part, own.subgroup), (lane, own.share)],
                Level::Invocations => vec![(part, own.share)],
            };
            if self.spread.layout.subgroup_size.is_none() {
                wanted.retain(|(value, _)| *value != subgroup);
            }
            let mut all = None;
            for (value, number) in wanted {
                let number = self.module.constant(number);
                let same = self.module.truth(Op::IEqual, &[value, number]);
                all = Some(match all {
                    None => same,
                    Some(others) => self.module.truth(Op::LogicalAnd, &[others, same]),
                });
            }
            let Some(all) = all else { continue };
            let number = self.module.constant(thread as u32);
            role = self.module.word(Op::Select, &[all, number, role]);
        }
        role
    }

    fn scope(&mut self, scope: litmus::Scope) -> Result<Word, Rule> {
        let word = scope_operand(scope, self.variant)?;
        Ok(self.module.constant(word))
    }

    /// Returns the widest possible scope of atomics, for memory that the host reads and writes.
    fn widest(&mut self) -> Word {
        let scope = if self.config.device_scope { spirv::Scope::Device } else { spirv::Scope::QueueFamily };
        self.module.constant(scope as u32)
    }

    /// Returns a pointer to a field of a thread's record.
    fn field(&mut self, here: &FirstBlockValues, thread: usize, field: Field) -> Word {
        let offset = self.module.constant(thread as u32 * FIELDS + field as u32);
        let index = self.module.word(Op::IAdd, &[here.record, offset]);
        self.module.element(here.records, index)
    }

    /// Writes a field so that the host may see it while the kernel runs.
    fn note(&mut self, here: &FirstBlockValues, thread: usize, field: Field, value: Word) {
        let pointer = self.field(here, thread, field);
        self.store_relaxed(pointer, value);
    }

    fn store_relaxed(&mut self, pointer: Word, value: Word) {
        let (scope, relaxed) = (self.widest(), self.module.constant(0));
        self.module.effect(
            Op::AtomicStore,
            [
                Operand::IdRef(pointer),
                Operand::IdScope(scope),
                Operand::IdMemorySemantics(relaxed),
                Operand::IdRef(value),
            ],
        );
    }

    /// Reads the stop word, several times if iterations should be long.
    fn stop(&mut self, here: &FirstBlockValues, looks: u32) -> Word {
        let index = self.module.constant(STOP as u32);
        let pointer = self.module.element(here.control, index);
        let (scope, relaxed) = (self.widest(), self.module.constant(0));
        let word = self.module.u32;
        let mut seen: Option<Word> = None;
        for _ in 0..looks.max(1) {
            let look = self.module.value(
                Op::AtomicLoad,
                word,
                [Operand::IdRef(pointer), Operand::IdScope(scope), Operand::IdMemorySemantics(relaxed)],
            );
            seen = Some(match seen {
                None => look,
                Some(before) => self.module.word(Op::BitwiseOr, &[before, look]),
            });
        }
        seen.unwrap_or(here.role)
    }

    /// Returns the clock and increments it.
    fn tick(&mut self, here: &FirstBlockValues) -> Word {
        let index = self.module.constant(CLOCK as u32);
        let pointer = self.module.element(here.control, index);
        let (scope, relaxed, one) = (self.widest(), self.module.constant(0), self.module.constant(1));
        let word = self.module.u32;
        self.module.value(
            Op::AtomicIAdd,
            word,
            [
                Operand::IdRef(pointer),
                Operand::IdScope(scope),
                Operand::IdMemorySemantics(relaxed),
                Operand::IdRef(one),
            ],
        )
    }

    fn load(&mut self, variable: Word) -> Word {
        self.module.word(Op::Load, &[variable])
    }

    fn set(&mut self, variable: Word, value: Word) {
        self.module.effect(Op::Store, [variable, value].map(Operand::IdRef));
    }

    /// Emits code under a condition.
    fn when(
        &mut self,
        condition: Word,
        code: impl FnOnce(&mut Self) -> Result<(), CompileError>,
    ) -> Result<(), CompileError> {
        let (body, merge) = (self.module.id(), self.module.id());
        self.module.selection_merge(merge);
        self.module.branch_if(condition, body, merge);
        self.module.begin(body);
        code(self)?;
        self.module.branch(merge);
        self.module.begin(merge);
        Ok(())
    }

    /// Emits code of one role in a switch, so that an interpreter of the kernel can identify the threads.
    fn as_role(
        &mut self,
        thread: usize,
        here: &FirstBlockValues,
        code: impl FnOnce(&mut Self) -> Result<(), CompileError>,
    ) -> Result<(), CompileError> {
        let (body, merge) = (self.module.id(), self.module.id());
        self.module.selection_merge(merge);
        self.module.effect(
            Op::Switch,
            [
                Operand::IdRef(here.role),
                Operand::IdRef(merge),
                Operand::LiteralBit32(thread as u32),
                Operand::IdRef(body),
            ],
        );
        self.module.begin(body);
        code(self)?;
        self.module.branch(merge);
        self.module.begin(merge);
        Ok(())
    }

    /// Emits the part of a segment for one thread: its first block, a loop over its blocks, and the code
    /// after it. Every lane enters the loop, and lanes of other threads leave it immediately.
    fn part(
        &mut self,
        part: &segments::ThreadSegment,
        own: &Own,
        here: &FirstBlockValues,
        first: bool,
        meets: bool,
    ) -> Result<(), CompileError> {
        let thread = self.test.thread(ThreadId(part.thread as u16));
        let starts = block_leaders(thread, part.body.clone());
        let starts = if part.body.is_empty() { Vec::new() } else { starts };
        let end = self.module.constant(starts.len() as u32);
        let [zero, one, stuck_word, ended_word] =
            [0, 1, STUCK, ENDED].map(|value| self.module.constant(value));
        self.set(own.block, end);
        let acquire = part.acquire;
        self.as_role(part.thread, here, |this| {
            if first && part.first {
                for (register, variable) in own.registers.iter().enumerate() {
                    let initial =
                        this.test.initial_register(ThreadId(part.thread as u16), RegisterId(register as u16));
                    let initial = this.module.constant(initial.0 as u32);
                    this.set(*variable, initial);
                }
                let stop = this.stop(here, 1);
                let stopped = this.module.truth(Op::INotEqual, &[stop, zero]);
                let stuck = this.module.word(Op::Select, &[stopped, one, zero]);
                this.set(own.stuck, stuck);
                let goes_on = this.module.truth(Op::IEqual, &[stop, zero]);
                this.when(goes_on, |this| {
                    let clock = this.tick(here);
                    this.note(here, part.thread, Field::Began, clock);
                    Ok(())
                })?;
            }
            if let Some((scope, semantics)) = acquire {
                this.thread_code(part.thread, here, &mut Registers::none()).fence(scope, semantics)?;
            }
            let stuck = this.load(own.stuck);
            let goes_on = this.module.truth(Op::IEqual, &[stuck, zero]);
            let start = this.module.word(Op::Select, &[goes_on, zero, end]);
            this.set(own.block, start);
            Ok(())
        })?;
        if !starts.is_empty() {
            self.turns(part, own, here, &starts)?;
        }
        self.as_role(part.thread, here, |this| {
            // A driver may have ended the loop silently.
            let block = this.load(own.block);
            let left_early = this.module.truth(Op::INotEqual, &[block, end]);
            let stuck = this.load(own.stuck);
            let stuck = this.module.word(Op::Select, &[left_early, one, stuck]);
            this.set(own.stuck, stuck);
            if let Some((scope, semantics)) = part.release {
                this.thread_code(part.thread, here, &mut Registers::none()).fence(scope, semantics)?;
            }
            let waits = thread.instructions.get(part.body.end).map(|instruction| &instruction.kind);
            if meets && matches!(waits, Some(InstructionKind::ControlBarrier(_))) {
                let goes_on = this.module.truth(Op::IEqual, &[stuck, zero]);
                this.when(goes_on, |this| {
                    let place = this.module.constant(part.body.end as u32);
                    this.note(here, part.thread, Field::Place, place);
                    Ok(())
                })?;
            }
            if part.last {
                let turns = this.load(own.turns);
                this.note(here, part.thread, Field::Turns, turns);
                // The thread's accesses are performed before the record of its end.
                if this.config.settles {
                    let scope = this.widest();
                    let order = MemorySemantics::ACQUIRE_RELEASE | MemorySemantics::UNIFORM_MEMORY;
                    let semantics = this.module.constant(order.bits());
                    let operands = [Operand::IdScope(scope), Operand::IdMemorySemantics(semantics)];
                    this.module.effect(Op::MemoryBarrier, operands);
                }
                let is_stuck = this.module.truth(Op::INotEqual, &[stuck, zero]);
                let state = this.module.word(Op::Select, &[is_stuck, stuck_word, ended_word]);
                let clock = this.tick(here);
                this.note(here, part.thread, Field::Over, clock);
                this.note(here, part.thread, Field::State, state);
            }
            Ok(())
        })
    }

    fn thread_code<'t>(
        &'t mut self,
        thread: usize,
        here: &'t FirstBlockValues,
        registers: &'t mut Registers,
    ) -> ThreadEmitter<'t> {
        let around =
            Surroundings { test: self.test, variant: self.variant, targets: &here.targets, loop_bound: 0 };
        ThreadEmitter { module: &mut self.module, around, thread: ThreadId(thread as u16), registers }
    }

    /// Emits the loop over a thread's blocks.
    fn turns(
        &mut self,
        part: &segments::ThreadSegment,
        own: &Own,
        here: &FirstBlockValues,
        starts: &[usize],
    ) -> Result<(), CompileError> {
        let turns = Loop::new(&mut self.module);
        let end = self.module.constant(starts.len() as u32);
        let [zero, one] = [0, 1].map(|value| self.module.constant(value));
        let before = self.module.block();
        turns.enter(&mut self.module, before);
        let block = self.load(own.block);
        let goes_on = self.module.truth(Op::INotEqual, &[block, end]);
        turns.goes_on_if(&mut self.module, goes_on);
        let made = self.load(own.turns);
        let made = self.module.word(Op::IAdd, &[made, one]);
        self.set(own.turns, made);
        self.note(here, part.thread, Field::Turns, made);
        let mut stop = self.stop(here, self.config.looks);
        if let Some(bound) = self.config.bound {
            let bound = self.module.constant(bound);
            let over = self.module.truth(Op::UGreaterThanEqual, &[made, bound]);
            let asked = stop;
            stop = self.module.word(Op::Select, &[over, one, stop]);
            let unasked = self.module.truth(Op::IEqual, &[asked, zero]);
            let gives_up = self.module.truth(Op::LogicalAnd, &[over, unasked]);
            self.when(gives_up, |this| {
                // A thread that starts or ends from now on has a later clock.
                let clock = this.tick(here);
                let index = this.module.constant(STOP as u32);
                let pointer = this.module.element(here.control, index);
                let clock = this.module.word(Op::IAdd, &[clock, one]);
                this.store_relaxed(pointer, clock);
                Ok(())
            })?;
        }
        let stopped = self.module.truth(Op::INotEqual, &[stop, zero]);
        let [leave, go_on, after] = std::array::from_fn(|_| self.module.id());
        self.module.selection_merge(after);
        self.module.branch_if(stopped, leave, go_on);
        self.module.begin(leave);
        self.set(own.stuck, one);
        self.set(own.block, end);
        self.module.branch(after);
        self.module.begin(go_on);
        self.blocks(part, own, here, starts)?;
        self.module.branch(after);
        self.module.begin(after);
        turns.end(&mut self.module);
        Ok(())
    }

    /// Emits the dispatch to the next block.
    fn blocks(
        &mut self,
        part: &segments::ThreadSegment,
        own: &Own,
        here: &FirstBlockValues,
        starts: &[usize],
    ) -> Result<(), CompileError> {
        let merge = self.module.id();
        let labels: Vec<Word> = starts.iter().map(|_| self.module.id()).collect();
        let block = self.load(own.block);
        self.module.selection_merge(merge);
        let mut operands = vec![Operand::IdRef(block), Operand::IdRef(merge)];
        for (number, label) in labels.iter().enumerate() {
            operands.extend([Operand::LiteralBit32(number as u32), Operand::IdRef(*label)]);
        }
        self.module.effect(Op::Switch, operands);
        for (number, label) in labels.iter().enumerate() {
            self.module.begin(*label);
            let to = starts.get(number + 1).copied().unwrap_or(part.body.end);
            let from = starts.get(number).copied().unwrap_or(to);
            self.block(part, own, here, starts, from..to)?;
            self.module.branch(merge);
        }
        self.module.begin(merge);
        Ok(())
    }

    /// Emits one block. Inside it, registers are values, so that loads do not wait for each other.
    fn block(
        &mut self,
        part: &segments::ThreadSegment,
        own: &Own,
        here: &FirstBlockValues,
        starts: &[usize],
        range: std::ops::Range<usize>,
    ) -> Result<(), CompileError> {
        let thread = self.test.thread(ThreadId(part.thread as u16));
        let before: Vec<Option<Word>> =
            own.registers.iter().map(|variable| Some(self.load(*variable))).collect();
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
                    next = self.module.constant(number_of(place_of(thread, *target)?));
                }
                InstructionKind::Flow(Flow::Branch { target, .. }) => {
                    let taken = self.module.constant(number_of(place_of(thread, *target)?));
                    let condition =
                        self.thread_code(part.thread, here, &mut registers).condition_at(position)?;
                    if let Some(condition) = condition {
                        next = self.module.word(Op::Select, &[condition, taken, next]);
                    }
                }
                kind => {
                    if kind.access().is_some() {
                        let place = self.module.constant(position as u32);
                        self.note(here, part.thread, Field::Place, place);
                    }
                    self.thread_code(part.thread, here, &mut registers).instruction(instruction)?;
                }
            }
        }
        if let Registers::Values(after) = &registers {
            for ((variable, before), after) in own.registers.iter().zip(&before).zip(after.entries()) {
                if let Some(value) = after.filter(|_| before != after) {
                    self.module.effect(Op::Store, [*variable, value].map(Operand::IdRef));
                }
            }
        }
        self.set(own.block, next);
        Ok(())
    }
}

/// Returns the target of a jump.
fn place_of(thread: &litmus::Thread, label: litmus::LabelId) -> Result<usize, Rule> {
    label_position(thread, label).ok_or(Rule::Internal("a jump to an undefined label"))
}
