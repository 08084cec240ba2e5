//! The kernel around the threads: bindings, rounds, segments and results.

mod carrier;
mod grid;
mod place;
mod reference;
mod results;
mod rounds;
mod salt;
mod storages;
mod stress;
mod subgroup;

use litmus::{InterlockEnd, LocationId, LocationInit, Scope, Test, ThreadId};
use rspirv::dr::Operand;
use rspirv::spirv::{self, AddressingModel, BuiltIn, Capability, LoopControl, Op, Word};
use vocabulary::Feature;

use crate::carrier::MESH_EXTENSION;
use crate::contract::{Arithmetic, Parameter, Parameters, WordOperation, class_and_group, seat};
use crate::fixed::FixedDispatch;
use crate::flow::{self, StructuredStep};
use crate::glsl;
use crate::kernel::{
    Binding, CompileError, CompiledKernel, ImageBinding, KernelConfig, Requirements, ResultSlot, Roles,
};
use crate::loops::Loop;
use crate::memory::{AccessTarget, ReferenceMemory, ReferencePath, Uses};
use crate::module::{FinishedModule, Module, Preamble};
use crate::placement::WorkgroupLayout;
use crate::rules::{self, Rule};
use crate::segments::{self, BarrierSegment};
use crate::thread::{Registers, Spin, Surroundings, ThreadEmitter};
use crate::variant::{Images, InterlockMode, Loops, MemoryModel, SpirvVersion as Version, SubgroupSize};
pub(crate) use carrier::Points;
use carrier::{Invoked, Local};
use grid::Numbered;
use place::InvocationStart;
use reference::{BoundBuffer, Declared, InitializedStorage};
use rounds::Rounds;
pub(crate) use storages::{Storages, apart, storages};
use subgroup::Shared;

/// A thread's steps in a segment.
struct SegmentCode {
    part: segments::ThreadSegment,
    steps: Vec<StructuredStep>,
}

/// A segment and the barrier after it.
struct Between {
    parts: Vec<SegmentCode>,
    barrier: Option<segments::Meeting>,
    /// As [`BarrierSegment::shared`].
    shared: Option<Shared>,
    /// As [`BarrierSegment::section`].
    section: Option<InterlockEnd>,
}

impl Between {
    /// Returns all code of threads in it, including blocks.
    fn codes(&self) -> Vec<&SegmentCode> {
        let shared = self.shared.as_ref().map(Shared::codes);
        self.parts.iter().chain(shared.into_iter().flatten()).collect()
    }
}

/// The properties of a kernel's [program](crate::program()) that affect it.
#[derive(Clone, Debug)]
pub(crate) struct ProgramContext {
    /// Workgroup classes of earlier concurrent kernels.
    pub first_class: u32,
    /// Workgroup classes of all concurrent kernels; those of this kernel if absent.
    pub classes: Option<u32>,
    /// The index of its first result among those of the program.
    pub first_slot: u32,
    /// The maximum number of slots of a workgroup.
    pub most_lanes: u32,
    /// The minimum words of a unit of location memory.
    pub storage_words: u32,
    /// The parameters of the only dispatch, if they are constants.
    pub fixed: Option<FixedDispatch>,
    /// Separate storages of the whole test.
    pub apart: Vec<u32>,
    /// The points of the fragments in the same draw as its vertices.
    pub points: Option<Points>,
}

impl ProgramContext {
    /// A kernel that is the whole program.
    pub const ALONE: ProgramContext = ProgramContext {
        first_class: 0,
        classes: None,
        first_slot: 0,
        most_lanes: u32::MAX,
        storage_words: 1,
        fixed: None,
        apart: Vec::new(),
        points: None,
    };
}

/// Compiles a test to one kernel; see [`crate::compile`].
pub(crate) fn compile(
    test: &Test,
    config: &KernelConfig,
    company: &ProgramContext,
) -> Result<CompiledKernel, CompileError> {
    rules::check(test)?;
    let variant = config.variant;
    rules::check_stage(test, variant.stage)?;
    if variant.stage.is_mixed() {
        return Err(Rule::SeveralStages.into());
    }
    let overlaps = test.interlock_order().is_some();
    if overlaps && company.classes.is_some() {
        return Err(Rule::InterlockDraws.into());
    }
    // Stress workgroups would have to be drawn between the others, whose order matters.
    let config = &KernelConfig { stressed: config.stressed && !overlaps, ..*config };
    let aliases = test.locations.iter().any(|location| matches!(location.init, LocationInit::AliasOf(_)));
    if aliases && variant.references == crate::variant::References::Restrict {
        return Err(Rule::AliasesUnderRestrict.into());
    }
    let layout = WorkgroupLayout::new(test, config, company.most_lanes)?;
    rules::check_workgroup_vectors(test)?;
    let segments = segments::cut(test, &layout)?;
    let mut uses = Uses::of(test, variant)?;
    uses.storage_words = uses.storage_words.max(company.storage_words);
    if variant.stage.is_of_mesh() && variant.target == Version::Vulkan11 {
        return Err(Rule::StageTarget.into());
    }
    if variant.model == MemoryModel::Glsl450 {
        glsl::meaning(test)?;
        if uses.has(ReferenceMemory::Address) {
            return Err(Rule::GlslAddress.into());
        }
    }

    let storages = storages(test);
    let (preamble, features) = preamble(test, config, &layout, &uses);
    let mut emitter = DispatchEmitter {
        test,
        config,
        layout: &layout,
        company,
        storages: &storages,
        uses,
        results: Vec::new(),
        module: Module::new(preamble),
        bindings: Vec::new(),
        buffers: Vec::new(),
        images: Vec::new(),
        declared: Vec::new(),
        workgroup_storages: Vec::new(),
        results_buffer: 0,
        rendezvous_buffer: None,
        scratch_buffer: None,
        claims_buffer: None,
        output: None,
        helper: None,
        idle: None,
        parameters_block: 0,
        thread_loops: 0,
        parallel: false,
        parameters: [None; Parameters::WORDS as usize],
    };
    emitter.find_workgroup_storages()?;
    emitter.list_results()?;
    emitter.declare()?;
    emitter.main(segments)?;
    let (carrier, entry_point) = (emitter.carrier(), emitter.entry_point());
    let measured = emitter.buffers.iter().filter(|_| emitter.signs()).map(|own| (own.binding, own.stride));
    let measured = measured.collect();
    let salted = emitter.salted_paths()?.into_iter().map(|(salted, ..)| salted).collect();
    let mut in_image = Vec::new();
    for (path, kind) in &emitter.uses.paths {
        if *kind == ReferenceMemory::Image && variant.images != Images::TexelBuffer {
            in_image.push(emitter.storage_of(path.location)?);
        }
    }
    in_image.sort_unstable();
    in_image.dedup();
    let turns = |thread: &litmus::Thread| {
        (flow::loops(thread).len() as u32).saturating_mul(config.loop_bound.saturating_add(1))
    };
    let (results, workgroup_bytes) = (emitter.written(), emitter.workgroup_bytes());
    let FinishedModule { words, identity } = emitter.module.finish_as(entry_point);
    Ok(CompiledKernel {
        workgroup_size: layout.workgroup_size,
        lanes: layout.lanes,
        addresses: emitter.uses.has(ReferenceMemory::Address),
        apart: company.apart.clone(),
        thread_loops: emitter.thread_loops,
        parallel: emitter.parallel,
        variant,
        first_class: company.first_class,
        storages: storages.count(),
        storage_words: emitter.uses.storage_words,
        initial: storages.initial(test),
        first_slot: company.first_slot,
        finals: storages.finals(test, &emitter.results).map_err(Rule::from)?,
        in_image,
        loop_turns: test.threads.iter().map(turns).fold(0, u32::saturating_add),
        requirements: Requirements {
            features,
            subgroup_size: layout.subgroup_size,
            required_size: match variant.subgroups {
                SubgroupSize::Smallest | SubgroupSize::Largest if layout.subgroup_size.is_none() => {
                    Some(config.subgroup_size)
                }
                _ => None,
            },
            workgroup_bytes,
            host_visible: test.locations.iter().any(|location| location.host),
            noncoherent: test.locations.iter().any(|location| location.noncoherent),
        },
        carrier,
        roles: Roles { classes: layout.classes.clone() },
        results,
        bindings: emitter.bindings,
        images: emitter.images,
        measured,
        salted,
        identity,
        words,
    })
}

/// Returns the declarations of the module, and the features that it needs.
fn preamble(
    test: &Test,
    config: &KernelConfig,
    layout: &WorkgroupLayout,
    uses: &Uses,
) -> (Preamble, Vec<Feature>) {
    let variant = config.variant;
    let mut capabilities = vec![Capability::Shader];
    let mut extensions = Vec::new();
    let mut features = Vec::new();
    let later = variant.target == Version::Vulkan12;
    let model = match variant.model {
        MemoryModel::Vulkan => {
            capabilities.push(Capability::VulkanMemoryModel);
            features.push(Feature::VulkanMemoryModel);
            if config.device_scope || uses.scopes.contains(&Scope::Device) {
                capabilities.push(Capability::VulkanMemoryModelDeviceScope);
                features.push(Feature::VulkanMemoryModelDeviceScope);
            }
            if !later {
                extensions.push("SPV_KHR_vulkan_memory_model");
            }
            spirv::MemoryModel::Vulkan
        }
        MemoryModel::Glsl450 => spirv::MemoryModel::GLSL450,
    };
    if layout.subgroup_size.is_some() || uses.scopes.contains(&Scope::Subgroup) {
        capabilities.push(Capability::GroupNonUniform);
    }
    capabilities.extend(uses.capabilities());
    extensions.extend(uses.extensions(later));
    features.extend(uses.features());
    features.extend(variant.stage.feature());
    if variant.stage.is_fragment() {
        // Points of a single pixel contain no whole quad.
        features.push(Feature::LargePoints);
    }
    if variant.stage.is_of_mesh() {
        extensions.push(MESH_EXTENSION);
        capabilities.push(Capability::MeshShadingEXT);
    }
    if test.interlock_order().is_some() {
        extensions.push("SPV_EXT_fragment_shader_interlock");
        capabilities.push(match variant.interlock {
            InterlockMode::Pixel => Capability::FragmentShaderPixelInterlockEXT,
            InterlockMode::Sample => Capability::FragmentShaderSampleInterlockEXT,
            InterlockMode::ShadingRate => Capability::FragmentShaderShadingRateInterlockEXT,
        });
        features.push(variant.interlock.feature());
    }
    let addressing = if uses.has(ReferenceMemory::Address) {
        AddressingModel::PhysicalStorageBuffer64
    } else {
        AddressingModel::Logical
    };
    let loops = match variant.loops {
        Loops::Free => LoopControl::NONE,
        Loops::Unrolled => LoopControl::UNROLL,
        Loops::Looped => LoopControl::DONT_UNROLL,
    };
    let version = if later { (1, 5) } else { (1, 3) };
    (Preamble { version, capabilities, extensions, addressing, model, loops }, features)
}

impl Arithmetic for DispatchEmitter<'_> {
    type Word = Word;

    fn number(&mut self, value: u32) -> Word {
        self.module.constant(value)
    }

    /// Its first use must be in the first block.
    fn parameter(&mut self, parameter: Parameter) -> Word {
        if let Some(known) = self.parameters.get(parameter as usize).copied().flatten() {
            return known;
        }
        let fixed = self.company.fixed;
        let fixed = fixed.and_then(|fixed| fixed.parameters.words().get(parameter as usize).copied());
        let loaded = match fixed {
            Some(value) => self.module.constant(value),
            None => self.module.push_constant(self.parameters_block, parameter as u32),
        };
        if let Some(slot) = self.parameters.get_mut(parameter as usize) {
            *slot = Some(loaded);
        }
        loaded
    }

    fn apply(&mut self, operation: WordOperation, left: Word, right: Word) -> Word {
        self.module.word(operation.op(), &[left, right])
    }
}

struct DispatchEmitter<'a> {
    test: &'a Test,
    config: &'a KernelConfig,
    layout: &'a WorkgroupLayout,
    company: &'a ProgramContext,
    storages: &'a Storages,
    uses: Uses,
    results: Vec<ResultSlot>,
    module: Module,
    bindings: Vec<Binding>,
    buffers: Vec<BoundBuffer>,
    images: Vec<ImageBinding>,
    declared: Vec<Declared>,
    workgroup_storages: Vec<InitializedStorage>,
    results_buffer: Word,
    rendezvous_buffer: Option<Word>,
    scratch_buffer: Option<Word>,
    claims_buffer: Option<Word>,
    /// The output that keeps accesses alive if results are not written to memory.
    output: Option<carrier::Output>,
    /// True for helper invocations, if helpers run threads.
    helper: Option<Word>,
    /// True for invocations that run no thread but continue.
    idle: Option<Word>,
    parameters_block: Word,
    /// As [`CompiledKernel::thread_loops`].
    thread_loops: u32,
    /// As [`CompiledKernel::parallel`].
    parallel: bool,
    /// The loaded parameters, by position.
    parameters: [Option<Word>; Parameters::WORDS as usize],
}

impl DispatchEmitter<'_> {
    /// Returns the number of concurrent workgroup classes.
    fn classes_that_meet(&self) -> u32 {
        self.company.classes.unwrap_or(self.layout.classes.len() as u32)
    }

    /// Returns true if each workgroup leaves a receipt.
    fn signs(&self) -> bool {
        self.company.fixed.is_none()
    }

    /// Returns true if a location is separate.
    fn is_apart(&self, location: LocationId) -> Result<bool, Rule> {
        Ok(self.company.apart.contains(&self.storage_of(location)?))
    }

    fn storage_of(&self, location: LocationId) -> Result<u32, Rule> {
        Ok(self.storages.number_of(location)?)
    }

    fn main(&mut self, segments: Vec<BarrierSegment>) -> Result<(), CompileError> {
        let inputs = self.inputs();
        let subgroup_inputs = self.layout.subgroup_size.map(|_| {
            let subgroup = self.module.built_in_word(BuiltIn::SubgroupId);
            (subgroup, self.module.built_in_word(BuiltIn::SubgroupLocalInvocationId))
        });
        let mut codes: Vec<Between> = Vec::with_capacity(segments.len());
        for segment in segments {
            let code = |part: segments::ThreadSegment| {
                let thread = self.test.thread(ThreadId(part.thread as u16));
                SegmentCode { steps: flow::structure(thread, part.body.clone()), part }
            };
            let parts = segment.parts.into_iter().map(code).collect();
            let shared: Vec<_> = segment.shared.iter().map(|(thread, part)| (*thread, part)).collect();
            let (barrier, section) = (segment.barrier, segment.section);
            codes.push(Between { parts, barrier, shared: Shared::new(self.test, &shared)?, section });
        }

        self.parallel = matches!(&codes[..], [only] if self.is_parallel(only));
        let entry = self.module.id();
        self.module.begin(entry);
        let mut registers = self.register_files(&codes);
        let overlaps = self.test.interlock_order().is_some();
        let Invoked { workgroup, other_axes, local } = self.workgroup(&inputs);
        let is_input = matches!(local, Local::Input(_));
        let local = self.local(local);
        let Numbered { number: workgroup, stresses: extra, is_surplus } = self.workgroup_number(workgroup);
        let outside = self.outside_grid(is_surplus, other_axes, local, is_input);
        let idle = self.any_of([extra, self.idle, outside]);
        let (class, group) = match self.parallel {
            true => (self.module.constant(0), workgroup),
            false if overlaps => self.class_and_group_in_order(workgroup),
            false => class_and_group(self, workgroup, self.layout.classes.len() as u32),
        };
        let (role, slot) = match subgroup_inputs {
            None if self.layout.divided => self.role_and_slot_by_number(class, local),
            None => (class, local),
            Some((subgroup, lane)) => {
                let subgroup = self.module.word(Op::Load, &[subgroup]);
                let lane = self.module.word(Op::Load, &[lane]);
                self.role_and_slot(class, subgroup, lane)
            }
        };
        let role = self.role_or_none(role, idle);
        let sizes = (self.layout.lanes, self.company.first_class);
        // Fragments of one pixel run one instance, independent of their class.
        let seated = if overlaps { self.module.constant(0) } else { class };
        let mut place = InvocationStart { role, seat: seat(self, sizes, (seated, group), slot) };
        let every = match (self.parallel, codes.first()) {
            (true, Some(Between { parts, .. })) => self.places(parts, (group, slot), idle),
            _ => Vec::new(),
        };
        if let Some(outside) = outside {
            self.count_overflow(outside);
        }
        place.role = self.claim(&place, (class, group), local)?;
        self.sign(&place, (class, group), local, idle)?;
        // The code before the rounds may have created blocks.
        let entry = self.module.block();
        // Fragments of one pixel may run sequentially, so waiting would be useless.
        let meets = self.classes_that_meet() > 1 && !overlaps;
        let meeting = self
            .rendezvous_buffer
            .filter(|_| meets)
            .map(|buffer| self.meeting(buffer, if self.parallel { class } else { group }, idle));
        let pressure = extra.map(|extra| self.pressure(workgroup, extra, outside));
        // Loaded in the first block, which dominates everything.
        for parameter in [Parameter::Rounds, Parameter::Stride, Parameter::Spacing, Parameter::Done] {
            self.parameter(parameter);
        }
        let around = Rounds { entry, place, every, meeting, local };
        match (pressure, codes.as_slice()) {
            _ if overlaps => self.one_round(&around, &codes, &mut registers)?,
            (None, [Between { parts, barrier: None, .. }])
                if !self.parallel && self.has_thread_loops(parts) =>
            {
                self.thread_loops = parts.len() as u32;
                self.rounds_by_thread(&around, parts, &mut registers)?;
            }
            _ => self.rounds_together(&around, pressure, &codes, &mut registers)?,
        }
        self.end();
        Ok(())
    }

    /// Declares register variables for the threads that need them.
    fn register_files(&mut self, codes: &[Between]) -> Vec<Registers> {
        let mut files = Vec::with_capacity(self.test.threads.len());
        let mut unset: Vec<Word> = Vec::new();
        for (index, thread) in self.test.threads.iter().enumerate() {
            let own = || codes.iter().flat_map(Between::codes).filter(|code| code.part.thread == index);
            let jumps = own().any(|code| flow::needs_jump_variable(&code.steps));
            if !jumps && own().count() == 1 {
                files.push(Registers::Values(thread.registers.iter().map(|_| None).collect()));
                continue;
            }
            let id = ThreadId(index as u16);
            let registers = (0..)
                .zip(&thread.registers)
                .map(|(number, register)| {
                    let bits = self.test.register_type(id, litmus::RegisterId(number)).bits().max(32);
                    let ty = self.module.integer(bits);
                    self.module.local(ty, &format!("P{}:{}", thread.number, register.name))
                })
                .collect();
            let mut word = |what: &str| {
                let ty = self.module.u32;
                self.module.local(ty, &format!("P{}:{what}", thread.number))
            };
            let jump = jumps.then(|| word("goto"));
            let spin = (jumps && flow::has_loop(thread)).then(|| Spin {
                again: word("again"),
                turns: word("turns"),
                given_up: word("given up"),
            });
            unset.extend(spin.iter().flat_map(|spin| [spin.again, spin.turns, spin.given_up]));
            files.push(Registers::Variables { registers, jump, spin });
        }
        // Lanes of other threads read them too. Variables come before all other instructions of a function.
        let zero = self.module.constant(0);
        for variable in unset {
            self.module.effect(Op::Store, [variable, zero].map(Operand::IdRef));
        }
        files
    }

    /// Emits one segment: each role runs its part up to its first loop, then the loops, then the code after
    /// them, and so on.
    fn segment(
        &mut self,
        parts: &[SegmentCode],
        place: &InvocationStart,
        instance: Word,
        targets: &[(ReferencePath, AccessTarget)],
        registers: &mut [Registers],
    ) -> Result<(), CompileError> {
        let stretches: Vec<Vec<&[StructuredStep]>> =
            parts.iter().map(|code| flow::between_loops(&code.steps)).collect();
        let stages = stretches.iter().map(Vec::len).max().unwrap_or(0);
        for stage in 0..stages {
            let here: Vec<usize> = (0..parts.len())
                .filter(|part| stretches.get(*part).is_some_and(|s| s.len() > stage))
                .collect();
            let codes: Vec<&SegmentCode> = here.iter().filter_map(|part| parts.get(*part)).collect();
            self.roles(&codes, place, |emitter, code| {
                let thread = ThreadId(code.part.thread as u16);
                let Some(registers) = registers.get_mut(code.part.thread) else { return Ok(()) };
                let steps = flow::between_loops(&code.steps);
                let around = emitter.surroundings(targets);
                let mut thread_code =
                    ThreadEmitter { module: &mut emitter.module, around, thread, registers };
                if stage == 0 {
                    if code.part.first {
                        thread_code.begin();
                    }
                    if let Some((scope, semantics)) = code.part.acquire {
                        thread_code.fence(scope, semantics)?;
                    }
                    thread_code.begin_segment(&code.steps);
                } else {
                    thread_code.leave_loop();
                }
                thread_code.sequence(steps.get(stage).copied().unwrap_or_default())?;
                if stage + 1 < steps.len() {
                    thread_code.enter_loop();
                    return Ok(());
                }
                if let Some((scope, semantics)) = code.part.release {
                    thread_code.fence(scope, semantics)?;
                }
                if code.part.last {
                    emitter.report(thread, place, instance, registers)?;
                }
                Ok(())
            })?;
            for code in codes {
                if let Some(blocks) = flow::loop_behind(&code.steps, stage) {
                    self.turns(code, blocks, place, targets, registers)?;
                }
            }
        }
        Ok(())
    }

    /// Emits code for each role among `codes`.
    fn roles<'c>(
        &mut self,
        codes: &[&'c SegmentCode],
        place: &InvocationStart,
        mut code_of: impl FnMut(&mut Self, &'c SegmentCode) -> Result<(), CompileError>,
    ) -> Result<(), CompileError> {
        if codes.is_empty() {
            return Ok(());
        }
        let merge = self.module.id();
        let labels: Vec<Word> = codes.iter().map(|_| self.module.id()).collect();
        self.module.selection_merge(merge);
        let mut operands = vec![Operand::IdRef(place.role), Operand::IdRef(merge)];
        for (code, label) in codes.iter().zip(&labels) {
            operands.push(Operand::LiteralBit32(code.part.thread as u32));
            operands.push(Operand::IdRef(*label));
            let name = format!("P{}", self.test.thread(ThreadId(code.part.thread as u16)).number);
            self.module.name(*label, &name);
        }
        self.module.effect(Op::Switch, operands);
        for (code, label) in codes.iter().zip(&labels) {
            self.module.begin(*label);
            code_of(self, code)?;
            self.module.branch(merge);
        }
        self.module.begin(merge);
        Ok(())
    }

    /// Emits a loop of one thread, with a bound.
    ///
    /// Every lane enters it, and lanes of other threads leave it immediately. lavapipe 22.3 keeps lanes that
    /// never entered a loop running until its budget is used up. The loop is left at the start of an
    /// iteration, and its results are in variables: some drivers lose values that are computed in a loop with
    /// divergent exits and used after it.
    fn turns(
        &mut self,
        code: &SegmentCode,
        blocks: &[StructuredStep],
        place: &InvocationStart,
        targets: &[(ReferencePath, AccessTarget)],
        registers: &mut [Registers],
    ) -> Result<(), CompileError> {
        let thread = ThreadId(code.part.thread as u16);
        let Some(own) = registers.get_mut(code.part.thread) else { return Ok(()) };
        let turns = Loop::new(&mut self.module);
        let before = self.module.block();
        turns.enter(&mut self.module, before);
        let around = self.surroundings(targets);
        let goes_on = ThreadEmitter { module: &mut self.module, around, thread, registers: own }.goes_on();
        let number = self.module.constant(thread.0.into());
        let mine = self.module.truth(Op::IEqual, &[place.role, number]);
        let goes_on = goes_on.map_or(mine, |goes_on| self.module.truth(Op::LogicalAnd, &[mine, goes_on]));
        turns.goes_on_if(&mut self.module, goes_on);
        self.roles(&[code], place, |emitter, _| {
            let around = emitter.surroundings(targets);
            ThreadEmitter { module: &mut emitter.module, around, thread, registers: own }.turn(blocks)?;
            Ok(())
        })?;
        turns.end(&mut self.module);
        Ok(())
    }

    fn surroundings<'t>(&self, targets: &'t [(ReferencePath, AccessTarget)]) -> Surroundings<'t>
    where
        Self: 't,
    {
        Surroundings {
            test: self.test,
            variant: self.config.variant,
            targets,
            loop_bound: self.config.loop_bound,
        }
    }
}
