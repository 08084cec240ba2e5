//! The kernel around the threads: bindings, rounds, segments and results.

mod place;

use litmus::{InstructionKind, LocationId, Observable, RegisterId, Scope, Test, ThreadId};
use rspirv::dr::Operand;
use rspirv::spirv::{self, BuiltIn, Capability, Op, Word};

use crate::flow::{self, Step};
use crate::kernel::{
    Binding, CompileError, Kernel, KernelConfig, Parameters, Requirements, ResultSlot, Roles,
};
use crate::module::Module;
use crate::placement::Layout;
use crate::rules;
use crate::segments::{self, Segment};
use crate::semantics::{scope_word, semantics_word};
use crate::thread::{Registers, ThreadCode};
use place::{Meeting, Place};

/// Words between the meeting places of two groups: a cache line each.
const RENDEZVOUS_SPACING: u32 = 16;

const WORDS_OF_PARAMETERS: u32 = Parameters::BYTES / 4;

/// The fields of [`Parameters`] by their position among the push constants. Poison is the caller's business.
#[derive(Clone, Copy)]
enum Parameter {
    Groups,
    Rounds,
    Spin,
    Pairing,
    GroupMultiplier,
    GroupOffset,
    LaneMultiplier,
    LaneOffset,
    Stride,
    Spacing,
    Done = 11,
    Interval = 12,
    Hold = 13,
    Turn = 14,
    Party = 15,
}

/// A thread's steps in a segment.
struct Code {
    part: segments::Part,
    steps: Vec<Step>,
}

/// What a kernel knows of the others of its [program](crate::program()).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Company {
    /// Workgroup classes of the kernels before it that run at the same time.
    pub first_class: u32,
    /// Workgroup classes of all kernels that run at the same time; only its own where absent.
    pub classes: Option<u32>,
    /// The place of its first result among those of the program.
    pub first_slot: u32,
    /// Slots of a workgroup at most.
    pub most_lanes: u32,
}

impl Company {
    /// A kernel that is all there is.
    pub const ALONE: Company = Company { first_class: 0, classes: None, first_slot: 0, most_lanes: u32::MAX };
}

/// The storages of a test: distinct memory behind its locations, numbered in the order in which they are first named.
pub(crate) struct Storages {
    storages: Vec<LocationId>,
    /// Number of the storage of each location.
    numbers: Vec<u32>,
}

/// Numbers the storages of a test.
pub(crate) fn storages(test: &Test) -> Storages {
    let mut storages: Vec<LocationId> = Vec::new();
    let numbers = (0..test.locations.len())
        .map(|location| {
            let storage = test.storage_of(LocationId(location as u16));
            storages.iter().position(|known| *known == storage).unwrap_or_else(|| {
                storages.push(storage);
                storages.len() - 1
            }) as u32
        })
        .collect();
    Storages { storages, numbers }
}

impl Storages {
    /// How many there are.
    pub fn count(&self) -> u32 {
        self.storages.len() as u32
    }

    /// The value that each holds at first.
    pub fn initial(&self, test: &Test) -> Vec<litmus::Value> {
        self.storages.iter().map(|storage| test.initial_value(*storage)).collect()
    }

    /// Storages whose final value belongs to the outcome.
    pub fn finals(&self, test: &Test) -> Vec<(Observable, u32)> {
        let number = |location: LocationId| self.numbers.get(usize::from(location.0)).copied().unwrap_or(0);
        let observables = test.observables().into_iter();
        observables
            .filter_map(|observable| match observable {
                Observable::Location(location) => Some((observable, number(location))),
                Observable::Register(..) => None,
            })
            .collect()
    }
}

/// Compiles a test to one kernel; see [`crate::compile`].
pub(crate) fn compile(test: &Test, config: &KernelConfig, company: &Company) -> Result<Kernel, CompileError> {
    rules::check(test)?;
    let layout = Layout::new(test, config, company.most_lanes)?;
    let segments = segments::cut(test, &layout)?;
    let storages = storages(test);

    let registers = test.observables().into_iter().filter(|o| matches!(o, Observable::Register(..)));
    let mut results: Vec<ResultSlot> = registers.map(ResultSlot::Register).collect();
    for thread in (0..test.threads.len()).map(|index| ThreadId(index as u16)) {
        let reported = |slot: &ResultSlot| matches!(slot, ResultSlot::Register(Observable::Register(t, _)) if *t == thread);
        if !results.iter().any(reported) {
            results.push(ResultSlot::Done(thread));
        }
    }

    let uses = Uses::of(test);
    let uses_device_scope = config.device_scope || uses.scopes.contains(&Scope::Device);
    let mut capabilities = vec![Capability::Shader, Capability::VulkanMemoryModel];
    let mut features = vec!["vulkanMemoryModel"];
    if uses_device_scope {
        capabilities.push(Capability::VulkanMemoryModelDeviceScope);
        features.push("vulkanMemoryModelDeviceScope");
    }
    if layout.subgroup_size.is_some() || uses.scopes.contains(&Scope::Subgroup) {
        capabilities.push(Capability::GroupNonUniform);
    }
    let mut emitter = Emitter {
        test,
        config,
        layout: &layout,
        storage_numbers: &storages.numbers,
        company,
        results: &results,
        module: Module::new(&capabilities),
        bindings: Vec::new(),
        references: vec![None; test.locations.len()],
        results_buffer: 0,
        rendezvous_buffer: None,
        parameters_block: 0,
        parameters: [None; WORDS_OF_PARAMETERS as usize],
    };
    emitter.declare(&uses.locations);
    emitter.main(segments)?;
    let bindings = emitter.bindings;
    let words = emitter.module.finish(layout.workgroup_size);
    Ok(Kernel {
        words,
        workgroup_size: layout.workgroup_size,
        lanes: layout.lanes,
        bindings,
        roles: Roles { classes: layout.classes },
        first_class: company.first_class,
        storages: storages.count(),
        initial: storages.initial(test),
        results,
        first_slot: company.first_slot,
        finals: storages.finals(test),
        requirements: Requirements {
            features,
            subgroup_size: layout.subgroup_size,
            host_visible: test.locations.iter().any(|location| location.host),
            noncoherent: test.locations.iter().any(|location| location.noncoherent),
        },
    })
}

/// What the instructions of a test name.
struct Uses {
    locations: Vec<LocationId>,
    scopes: Vec<Scope>,
}

impl Uses {
    fn of(test: &Test) -> Uses {
        let mut uses = Uses { locations: Vec::new(), scopes: Vec::new() };
        for instruction in test.threads.iter().flat_map(|thread| &thread.instructions) {
            match &instruction.kind {
                InstructionKind::Load { location, access, .. }
                | InstructionKind::Store { location, access, .. } => {
                    uses.locations.push(*location);
                    if let litmus::Access::Coherent { scope } | litmus::Access::Atomic { scope, .. } = access
                    {
                        uses.scopes.push(*scope);
                    }
                }
                InstructionKind::Rmw { location, scope, .. } => {
                    uses.locations.push(*location);
                    uses.scopes.push(*scope);
                }
                InstructionKind::Fence { scope, .. } => uses.scopes.push(*scope),
                InstructionKind::ControlBarrier(barrier) => {
                    uses.scopes.extend([barrier.execution_scope, barrier.memory_scope]);
                }
                _ => {}
            }
        }
        uses.locations.sort_unstable();
        uses.locations.dedup();
        uses
    }
}

struct Emitter<'a> {
    test: &'a Test,
    config: &'a KernelConfig,
    layout: &'a Layout,
    storage_numbers: &'a [u32],
    company: &'a Company,
    results: &'a [ResultSlot],
    module: Module,
    bindings: Vec<Binding>,
    /// Buffer variables by location.
    references: Vec<Option<Word>>,
    results_buffer: Word,
    rendezvous_buffer: Option<Word>,
    parameters_block: Word,
    /// Parameters that are loaded, by position.
    parameters: [Option<Word>; WORDS_OF_PARAMETERS as usize],
}

impl Emitter<'_> {
    /// Declares the buffers: the references that are accessed in the order of the test, results, rendezvous.
    fn declare(&mut self, locations: &[LocationId]) {
        for location in locations {
            // Every reference may alias: all locations of a test lie in one buffer, and restrict is the default.
            let buffer = self.buffer(Binding::Locations, &self.test.location(*location).name, true);
            if let Some(reference) = self.references.get_mut(usize::from(location.0)) {
                *reference = Some(buffer);
            }
        }
        self.results_buffer = self.buffer(Binding::Results, "results", false);
        if self.classes_that_meet() > 1 {
            self.rendezvous_buffer = Some(self.buffer(Binding::Rendezvous, "rendezvous", false));
        }
        self.parameters_block = self.module.push_constants(WORDS_OF_PARAMETERS);
    }

    /// Workgroup classes that run at the same time.
    fn classes_that_meet(&self) -> u32 {
        self.company.classes.unwrap_or(self.layout.classes.len() as u32)
    }

    fn buffer(&mut self, binding: Binding, name: &str, aliased: bool) -> Word {
        let number = self.bindings.len() as u32;
        self.bindings.push(binding);
        self.module.buffer(number, name, aliased)
    }

    /// A parameter. Its first use must be in the first block.
    fn parameter(&mut self, parameter: Parameter) -> Word {
        if let Some(known) = self.parameters.get(parameter as usize).copied().flatten() {
            return known;
        }
        let member = self.module.constant(parameter as u32);
        let pointer = self.module.value(
            Op::AccessChain,
            self.module.pointer_to_parameter,
            [Operand::IdRef(self.parameters_block), Operand::IdRef(member)],
        );
        let loaded = self.module.word(Op::Load, &[pointer]);
        if let Some(slot) = self.parameters.get_mut(parameter as usize) {
            *slot = Some(loaded);
        }
        loaded
    }

    /// Pointer to a word of a buffer.
    fn element(&mut self, buffer: Word, index: Word) -> Word {
        let member = self.module.constant(0);
        self.module.value(
            Op::AccessChain,
            self.module.pointer_to_word,
            [buffer, member, index].map(Operand::IdRef),
        )
    }

    fn main(&mut self, segments: Vec<Segment>) -> Result<(), CompileError> {
        let workgroup_id = self.module.built_in_vector(BuiltIn::WorkgroupId);
        let local_index = self.module.built_in_word(BuiltIn::LocalInvocationIndex);
        let subgroup_inputs = self.layout.subgroup_size.map(|_| {
            let subgroup = self.module.built_in_word(BuiltIn::SubgroupId);
            (subgroup, self.module.built_in_word(BuiltIn::SubgroupLocalInvocationId))
        });
        let mut codes: Vec<(Vec<Code>, Option<segments::Meeting>)> = Vec::with_capacity(segments.len());
        for segment in segments {
            let code = |part: segments::Part| {
                let thread = self.test.thread(ThreadId(part.thread as u16));
                Code { steps: flow::structure(thread, part.body.clone()), part }
            };
            codes.push((segment.parts.into_iter().map(code).collect(), segment.barrier));
        }

        let entry = self.module.id();
        self.module.begin(entry);
        let mut registers = self.register_files(&codes);
        let workgroup = self.module.load_x(workgroup_id);
        let local = self.module.word(Op::Load, &[local_index]);
        let (class, group) = self.class_and_group(workgroup);
        let (role, slot) = match subgroup_inputs {
            None => (class, local),
            Some((subgroup, lane)) => {
                let subgroup = self.module.word(Op::Load, &[subgroup]);
                let lane = self.module.word(Op::Load, &[lane]);
                self.role_and_slot(class, subgroup, lane)
            }
        };
        let place = self.place(role, class, group, slot);
        let meeting = self.rendezvous_buffer.map(|buffer| self.meeting(buffer, group));
        let rounds = self.parameter(Parameter::Rounds);
        let stride = self.parameter(Parameter::Stride);
        let spacing = self.parameter(Parameter::Spacing);
        if self.results.iter().any(|slot| matches!(slot, ResultSlot::Done(_))) {
            self.parameter(Parameter::Done);
        }

        let (header, test, body, continuing, merge) =
            (self.module.id(), self.module.id(), self.module.id(), self.module.id(), self.module.id());
        let (zero, one) = (self.module.constant(0), self.module.constant(1));
        self.module.branch(header);
        self.module.begin(header);
        let round_type = self.module.u32;
        let (round, next_round) = (self.module.id(), self.module.id());
        self.module.value_as(
            round,
            Op::Phi,
            round_type,
            [zero, entry, next_round, continuing].map(Operand::IdRef),
        );
        let meeting = meeting.map(|meeting| {
            let carried = self.carry_meeting(&meeting, entry, continuing);
            (meeting, carried)
        });
        self.module.loop_merge(merge, continuing);
        self.module.branch(test);
        self.module.begin(test);
        let more = self.module.truth(Op::ULessThan, &[round, rounds]);
        self.module.branch_if(more, body, merge);

        self.module.begin(body);
        let earlier = self.module.word(Op::IMul, &[round, place.round_size]);
        let instance = self.module.word(Op::IAdd, &[earlier, place.instance]);
        let pointers = self.location_pointers(instance, stride, spacing);
        if let Some((meeting, carried)) = &meeting {
            self.meet(meeting, carried, local);
        }
        for (parts, barrier) in &codes {
            self.segment(parts, &place, instance, &pointers, &mut registers)?;
            if let Some(barrier) = barrier {
                let scope = |scope| scope_word(scope).ok_or(rules::Rule::CrossDeviceScope);
                let execution = self.module.constant(scope(barrier.execution)? as u32);
                let memory = self.module.constant(scope(barrier.memory)? as u32);
                let semantics = self.module.constant(semantics_word(barrier.semantics));
                self.module.effect(
                    Op::ControlBarrier,
                    [
                        Operand::IdScope(execution),
                        Operand::IdScope(memory),
                        Operand::IdMemorySemantics(semantics),
                    ],
                );
            }
        }
        self.module.branch(continuing);
        self.module.begin(continuing);
        let round_type = self.module.u32;
        self.module.value_as(next_round, Op::IAdd, round_type, [round, one].map(Operand::IdRef));
        self.module.branch(header);
        self.module.begin(merge);
        self.module.effect(Op::Return, []);
        Ok(())
    }

    /// What meetings need, in the first block.
    fn meeting(&mut self, buffer: Word, group: Word) -> Meeting {
        let [spacing, zero, one] = [RENDEZVOUS_SPACING, 0, 1].map(|value| self.module.constant(value));
        let index = self.module.word(Op::IMul, &[group, spacing]);
        let interval = self.parameter(Parameter::Interval);
        Meeting {
            counter: self.element(buffer, index),
            spin: self.parameter(Parameter::Spin),
            zero,
            one,
            party: self.parameter(Parameter::Party),
            after_meeting: self.module.word(Op::ISub, &[interval, one]),
            hold: self.parameter(Parameter::Hold),
        }
    }

    /// Declares register variables for the threads that need them.
    fn register_files(&mut self, codes: &[(Vec<Code>, Option<segments::Meeting>)]) -> Vec<Registers> {
        let mut files = Vec::with_capacity(self.test.threads.len());
        for (index, thread) in self.test.threads.iter().enumerate() {
            let own = || codes.iter().flat_map(|(parts, _)| parts).filter(|code| code.part.thread == index);
            let jumps = own().any(|code| flow::needs_jump_variable(&code.steps));
            if !jumps && own().count() == 1 {
                files.push(Registers::Values(vec![None; thread.registers.len()]));
                continue;
            }
            let registers = thread
                .registers
                .iter()
                .map(|register| self.register_variable(&format!("P{}:{}", thread.number, register.name)))
                .collect();
            let jump = jumps.then(|| self.register_variable(&format!("P{}:goto", thread.number)));
            files.push(Registers::Variables { registers, jump });
        }
        files
    }

    fn register_variable(&mut self, name: &str) -> Word {
        let class = Operand::StorageClass(spirv::StorageClass::Function);
        let variable = self.module.value(Op::Variable, self.module.pointer_to_register, [class]);
        self.module.name(variable, name);
        variable
    }

    /// One segment: each role runs its own part.
    fn segment(
        &mut self,
        parts: &[Code],
        place: &Place,
        instance: Word,
        pointers: &[Option<Word>],
        registers: &mut [Registers],
    ) -> Result<(), CompileError> {
        if parts.is_empty() {
            return Ok(());
        }
        let merge = self.module.id();
        let labels: Vec<Word> = parts.iter().map(|_| self.module.id()).collect();
        self.module.selection_merge(merge);
        let mut operands = vec![Operand::IdRef(place.role), Operand::IdRef(merge)];
        for (code, label) in parts.iter().zip(&labels) {
            operands.push(Operand::LiteralBit32(code.part.thread as u32));
            operands.push(Operand::IdRef(*label));
            let name = format!("P{}", self.test.thread(ThreadId(code.part.thread as u16)).number);
            self.module.name(*label, &name);
        }
        self.module.effect(Op::Switch, operands);
        for (code, label) in parts.iter().zip(&labels) {
            self.module.begin(*label);
            let thread = ThreadId(code.part.thread as u16);
            let Some(registers) = registers.get_mut(code.part.thread) else { continue };
            let mut thread_code =
                ThreadCode { module: &mut self.module, test: self.test, thread, pointers, registers };
            if code.part.first {
                thread_code.begin();
            }
            if let Some((scope, semantics)) = code.part.acquire {
                thread_code.fence(scope, semantics)?;
            }
            thread_code.steps(&code.steps)?;
            if let Some((scope, semantics)) = code.part.release {
                thread_code.fence(scope, semantics)?;
            }
            if code.part.last {
                self.report(thread, place, instance, pointers, registers);
            }
            self.module.branch(merge);
        }
        self.module.begin(merge);
        Ok(())
    }

    /// Writes the results of a thread: slot `r` of instance `n` is word `(first slot + r) × total + n`.
    fn report(
        &mut self,
        thread: ThreadId,
        place: &Place,
        instance: Word,
        pointers: &[Option<Word>],
        registers: &mut Registers,
    ) {
        let results = self.results;
        for (slot, result) in results.iter().enumerate() {
            let value = match result {
                ResultSlot::Register(Observable::Register(of, register)) if *of == thread => {
                    self.register(thread, *register, pointers, registers)
                }
                ResultSlot::Done(of) if *of == thread => self.parameter(Parameter::Done),
                _ => continue,
            };
            let slot = self.module.constant(self.company.first_slot + slot as u32);
            let first = self.module.word(Op::IMul, &[slot, place.total]);
            let index = self.module.word(Op::IAdd, &[first, instance]);
            let pointer = self.element(self.results_buffer, index);
            self.module.effect(Op::Store, [pointer, value].map(Operand::IdRef));
        }
    }

    fn register(
        &mut self,
        thread: ThreadId,
        register: RegisterId,
        pointers: &[Option<Word>],
        registers: &mut Registers,
    ) -> Word {
        ThreadCode { module: &mut self.module, test: self.test, thread, pointers, registers }
            .register(register)
    }
}
