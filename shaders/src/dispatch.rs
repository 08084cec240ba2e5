//! The kernel around the threads: bindings, rounds, segments and results.

mod carrier;
mod grid;
mod reference;
mod rendezvous;
mod results;
mod rounds;
mod salts;
mod storages;
mod stress;
mod subgroup;

use litmus::{InterlockEnd, LocationId, LocationInit, Scope, Test, ThreadId};
use rspirv::spirv::{self, AddressingModel, BuiltIn, Capability, LoopControl, Op, Word};
use vocabulary::Feature;

use crate::carrier::MESH_EXTENSION;
use crate::contract::{Parameter, Parameters, WordArithmetic, WordOperation, class_and_group, instance_slot};
use crate::fixed::FixedDispatch;
use crate::flow::{self, StructuredStep};
use crate::glsl;
use crate::kernel::{
    Binding, CompileError, CompiledKernel, ImageBinding, KernelConfig, Requirements, ResultSlot, Roles,
};
use crate::loops::LoopBuilder;
use crate::memory::{AccessTarget, ReferenceMemory, ReferencePath, TestUsage};
use crate::module::{FinishedModule, ModuleBuilder, Preamble};
use crate::placement::WorkgroupLayout;
use crate::rules::{self, Rule};
use crate::segments::{self, BarrierSegment};
use crate::thread::{LoopVariables, Registers, ThreadContext, ThreadEmitter};
use crate::variant::{
    ImageForm, InterlockMode, LoopUnrolling, MemoryModel, SpirvVersion as Version, SubgroupSize,
};
pub(crate) use carrier::FragmentPoints;
use carrier::{InvocationIndex, LocalIndex};
use grid::WorkgroupNumber;
use reference::{BoundBuffer, DeclaredPath, InitializedStorage};
use rendezvous::InvocationStart;
use rounds::RoundContext;
pub(crate) use storages::{Storages, number_storages, separate_storages};
use subgroup::SharedOperation;

/// A thread's steps in a segment.
struct SegmentCode {
    part: segments::ThreadSegment,
    steps: Vec<StructuredStep>,
}

/// A segment and the barrier after it.
struct CompiledSegment {
    thread_codes: Vec<SegmentCode>,
    barrier: Option<segments::CommonBarrier>,
    /// As [`BarrierSegment::shared`].
    shared: Option<SharedOperation>,
    /// As [`BarrierSegment::interlock_end`].
    interlock_end: Option<InterlockEnd>,
}

impl CompiledSegment {
    /// Returns all code of threads in it, including blocks.
    fn all_thread_codes(&self) -> Vec<&SegmentCode> {
        let shared = self.shared.as_ref().map(SharedOperation::all_lane_codes);
        self.thread_codes.iter().chain(shared.into_iter().flatten()).collect()
    }
}

/// The properties of a kernel's [program](crate::Program) that affect it.
#[derive(Clone, Debug)]
pub(crate) struct ProgramContext {
    /// Workgroup classes of earlier concurrent kernels.
    pub first_class: u32,
    /// Workgroup classes of all concurrent kernels; those of this kernel if absent.
    pub classes: Option<u32>,
    /// The index of its first result among those of the program.
    pub first_slot: u32,
    /// The maximum number of slots of a workgroup.
    pub max_lanes: u32,
    /// The minimum words of a unit of location memory.
    pub storage_words: u32,
    /// The parameters of the only dispatch, if they are constants.
    pub fixed_dispatch: Option<FixedDispatch>,
    /// Separate storages of the whole test.
    pub separate_storages: Vec<u32>,
    /// The points of the fragments in the same draw as its vertices.
    pub points: Option<FragmentPoints>,
}

impl ProgramContext {
    /// A kernel that is the whole program.
    pub const SINGLE_KERNEL: ProgramContext = ProgramContext {
        first_class: 0,
        classes: None,
        first_slot: 0,
        max_lanes: u32::MAX,
        storage_words: 1,
        fixed_dispatch: None,
        separate_storages: Vec::new(),
        points: None,
    };
}

/// Compiles a test to one kernel; see [`crate::compile`].
pub(crate) fn compile(
    test: &Test,
    config: &KernelConfig,
    context: &ProgramContext,
) -> Result<CompiledKernel, CompileError> {
    rules::check(test)?;
    let variant = config.variant;
    rules::check_stage(test, variant.stage)?;
    Rule::SeveralStages.when(variant.stage.is_mixed())?;
    let overlaps = test.interlock_order().is_some();
    Rule::InterlockDraws.when(overlaps && context.classes.is_some())?;
    // Stress workgroups would have to be drawn between the others, whose order matters.
    let config = &KernelConfig { has_stress: config.has_stress && !overlaps, ..*config };
    let aliases = test.locations.iter().any(|location| matches!(location.init, LocationInit::AliasOf(_)));
    Rule::AliasesUnderRestrict
        .when(aliases && variant.reference_aliasing == crate::variant::ReferenceAliasing::Restrict)?;
    let layout = WorkgroupLayout::new(test, config, context.max_lanes)?;
    rules::check_workgroup_vectors(test)?;
    let segments = segments::cut_into_segments(test, &layout)?;
    let mut uses = TestUsage::analyze(test, variant)?;
    uses.storage_words = uses.storage_words.max(context.storage_words);
    Rule::StageTarget.when(variant.stage.is_mesh_pipeline() && variant.target == Version::Vulkan11)?;
    if variant.model == MemoryModel::Glsl450 {
        glsl::effective_test(test)?;
        Rule::GlslAddress.when(uses.has_memory(ReferenceMemory::Address))?;
    }

    let storages = number_storages(test);
    let (preamble, features) = module_preamble(test, config, &layout, &uses);
    let mut emitter = DispatchEmitter {
        test,
        config,
        layout: &layout,
        context,
        storages: &storages,
        uses,
        results: Vec::new(),
        module: ModuleBuilder::new(preamble),
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
        is_helper: None,
        is_idle: None,
        parameters_block: 0,
        thread_loops: 0,
        parallel: false,
        parameters: [None; Parameters::WORDS as usize],
    };
    emitter.module.form = variant.form;
    emitter.module.may_add_loops = layout.workgroup_size <= config.max_lanes_with_loops;
    emitter.find_workgroup_storages()?;
    emitter.list_results()?;
    emitter.declare_bindings()?;
    emitter.emit_main(segments)?;
    let (carrier, entry_point) = (emitter.carrier(), emitter.module_stage());
    let measured =
        emitter.buffers.iter().filter(|_| emitter.has_receipts()).map(|own| (own.binding, own.stride));
    let measured = measured.collect();
    let salted = emitter.salted_paths()?.into_iter().map(|(salted, ..)| salted).collect();
    let mut in_image = Vec::new();
    for (path, kind) in &emitter.uses.paths {
        if *kind == ReferenceMemory::Image && variant.image_form != ImageForm::TexelBuffer {
            in_image.push(emitter.storage_index(path.location)?);
        }
    }
    in_image.sort_unstable();
    in_image.dedup();
    let max_iterations = |thread: &litmus::Thread| {
        (flow::find_loops(thread).len() as u32).saturating_mul(config.loop_bound.saturating_add(1))
    };
    let (results, workgroup_bytes) = (emitter.written_slots(), emitter.workgroup_bytes());
    let FinishedModule { words, identity, added_iterations } = emitter.module.finish_as(entry_point);
    Ok(CompiledKernel {
        workgroup_size: layout.workgroup_size,
        lanes: layout.lanes,
        uses_addresses: emitter.uses.has_memory(ReferenceMemory::Address),
        separate_storages: context.separate_storages.clone(),
        thread_loops: emitter.thread_loops,
        is_parallel: emitter.parallel,
        variant,
        first_class: context.first_class,
        storages: storages.count(),
        storage_words: emitter.uses.storage_words,
        initial_values: storages.initial_values(test),
        first_slot: context.first_slot,
        final_values: storages.final_values(test, &emitter.results).map_err(Rule::from)?,
        image_storages: in_image,
        max_loop_iterations: test
            .threads
            .iter()
            .map(max_iterations)
            .fold(added_iterations, u32::saturating_add),
        requirements: Requirements {
            features,
            subgroup_size: layout.subgroup_size,
            required_size: match variant.subgroup_size {
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
        measured_bindings: measured,
        salted_paths: salted,
        identity,
        words,
    })
}

/// Returns the declarations of the module, and the features that it needs.
fn module_preamble(
    test: &Test,
    config: &KernelConfig,
    layout: &WorkgroupLayout,
    uses: &TestUsage,
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
    if variant.stage.is_mesh_pipeline() {
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
    let addressing = if uses.has_memory(ReferenceMemory::Address) {
        AddressingModel::PhysicalStorageBuffer64
    } else {
        AddressingModel::Logical
    };
    let loops = match variant.unrolling {
        LoopUnrolling::Unspecified => LoopControl::NONE,
        LoopUnrolling::Unrolled => LoopControl::UNROLL,
        LoopUnrolling::NotUnrolled => LoopControl::DONT_UNROLL,
    };
    let version = if later { (1, 5) } else { (1, 3) };
    (Preamble { version, capabilities, extensions, addressing, model, loops }, features)
}

impl WordArithmetic for DispatchEmitter<'_> {
    type Word = Word;

    fn constant(&mut self, value: u32) -> Word {
        self.module.constant(value)
    }

    /// Its first use must be in the first block.
    fn parameter(&mut self, parameter: Parameter) -> Word {
        if let Some(known) = self.parameters.get(parameter as usize).copied().flatten() {
            return known;
        }
        let fixed = self.context.fixed_dispatch;
        let loaded = match fixed.map(|fixed| fixed.parameters.word(parameter)) {
            Some(value) => self.module.constant(value),
            None => self.module.push_constant(self.parameters_block, parameter as u32),
        };
        if let Some(slot) = self.parameters.get_mut(parameter as usize) {
            *slot = Some(loaded);
        }
        loaded
    }

    fn apply(&mut self, operation: WordOperation, left: Word, right: Word) -> Word {
        self.module.emit_word(operation.opcode(), &[left, right])
    }
}

struct DispatchEmitter<'a> {
    test: &'a Test,
    config: &'a KernelConfig,
    layout: &'a WorkgroupLayout,
    context: &'a ProgramContext,
    storages: &'a Storages,
    uses: TestUsage,
    results: Vec<ResultSlot>,
    module: ModuleBuilder,
    bindings: Vec<Binding>,
    buffers: Vec<BoundBuffer>,
    images: Vec<ImageBinding>,
    declared: Vec<DeclaredPath>,
    workgroup_storages: Vec<InitializedStorage>,
    results_buffer: Word,
    rendezvous_buffer: Option<Word>,
    scratch_buffer: Option<Word>,
    claims_buffer: Option<Word>,
    /// The output that keeps accesses alive if results are not written to memory.
    output: Option<carrier::StageOutput>,
    /// True for helper invocations, if helpers run threads.
    is_helper: Option<Word>,
    /// True for invocations that run no thread but continue.
    is_idle: Option<Word>,
    parameters_block: Word,
    /// As [`CompiledKernel::thread_loops`].
    thread_loops: u32,
    /// As [`CompiledKernel::is_parallel`].
    parallel: bool,
    /// The loaded parameters, by position.
    parameters: [Option<Word>; Parameters::WORDS as usize],
}

impl DispatchEmitter<'_> {
    /// Returns the number of concurrent workgroup classes.
    fn concurrent_classes(&self) -> u32 {
        self.context.classes.unwrap_or(self.layout.classes.len() as u32)
    }

    /// Returns true if each workgroup leaves a receipt.
    fn has_receipts(&self) -> bool {
        self.context.fixed_dispatch.is_none()
    }

    /// Returns true if a location is separate.
    fn is_separate(&self, location: LocationId) -> Result<bool, Rule> {
        Ok(self.context.separate_storages.contains(&self.storage_index(location)?))
    }

    fn storage_index(&self, location: LocationId) -> Result<u32, Rule> {
        Ok(self.storages.number_of(location)?)
    }

    fn emit_main(&mut self, segments: Vec<BarrierSegment>) -> Result<(), CompileError> {
        let inputs = self.declare_inputs();
        let subgroup_inputs = self.layout.subgroup_size.map(|_| {
            let subgroup = self.module.built_in_word(BuiltIn::SubgroupId);
            (subgroup, self.module.built_in_word(BuiltIn::SubgroupLocalInvocationId))
        });
        let mut codes: Vec<CompiledSegment> = Vec::with_capacity(segments.len());
        for segment in segments {
            let code = |part: segments::ThreadSegment| {
                let thread = self.test.thread(ThreadId(part.thread as u16));
                SegmentCode { steps: flow::structure_control_flow(thread, part.body.clone()), part }
            };
            let parts = segment.parts.into_iter().map(code).collect();
            let shared: Vec<_> = segment.shared.iter().map(|(thread, part)| (*thread, part)).collect();
            let (barrier, section) = (segment.barrier, segment.interlock_end);
            codes.push(CompiledSegment {
                thread_codes: parts,
                barrier,
                shared: SharedOperation::new(self.test, &shared)?,
                interlock_end: section,
            });
        }

        self.parallel = matches!(&codes[..], [only] if self.is_parallel(only));
        let entry = self.module.id();
        self.module.begin_block(entry);
        let mut registers = self.declare_registers(&codes);
        let overlaps = self.test.interlock_order().is_some();
        let InvocationIndex { workgroup, other_axes, local } = self.emit_invocation_index(&inputs);
        let is_input = matches!(local, LocalIndex::BuiltIn(_));
        let local = self.emit_local_index(local);
        let WorkgroupNumber { number: workgroup, is_stress, is_surplus } = self.workgroup_number(workgroup);
        let outside = self.emit_is_outside_grid(is_surplus, other_axes, local, is_input);
        let idle = self.emit_any([is_stress, self.is_idle, outside]);
        let (class, group) = match self.parallel {
            true => (self.module.constant(0), workgroup),
            false if overlaps => self.class_and_group_in_order(workgroup),
            false => class_and_group(self, workgroup, self.layout.classes.len() as u32),
        };
        let (role, slot) = match subgroup_inputs {
            None if self.layout.has_virtual_subgroups => self.role_and_slot_by_number(class, local),
            None => (class, local),
            Some((subgroup, lane)) => {
                let subgroup = self.module.emit_word(Op::Load, &[subgroup]);
                let lane = self.module.emit_word(Op::Load, &[lane]);
                self.role_and_slot(class, subgroup, lane)
            }
        };
        let role = self.role_or_none(role, idle);
        let sizes = (self.layout.lanes, self.context.first_class);
        // Fragments of one pixel run one instance, independent of their class.
        let seated = if overlaps { self.module.constant(0) } else { class };
        let mut place = InvocationStart { role, seat: instance_slot(self, sizes, (seated, group), slot) };
        let thread_starts = match (self.parallel, codes.first()) {
            (true, Some(CompiledSegment { thread_codes: parts, .. })) => {
                self.thread_starts(parts, (group, slot), idle)
            }
            _ => Vec::new(),
        };
        if let Some(outside) = outside {
            self.count_overflow(outside);
        }
        place.role = self.emit_claim(&place, class, group, local)?;
        self.emit_receipt(&place, class, group, local, idle)?;
        // The code before the rounds may have created blocks.
        let entry = self.module.current_block();
        // Fragments of one pixel may run sequentially, so waiting would be useless.
        let meets = self.concurrent_classes() > 1 && !overlaps;
        let rendezvous = self
            .rendezvous_buffer
            .filter(|_| meets)
            .map(|buffer| self.rendezvous_values(buffer, if self.parallel { class } else { group }, idle));
        let pressure = is_stress.map(|extra| self.stress_loop(workgroup, extra, outside));
        // Loaded in the first block, which dominates everything.
        for parameter in [Parameter::Rounds, Parameter::Stride, Parameter::Spacing, Parameter::Done] {
            self.parameter(parameter);
        }
        let round_context = RoundContext { entry, place, thread_starts, rendezvous, local };
        match (pressure, codes.as_slice()) {
            _ if overlaps => self.emit_single_round(&round_context, &codes, &mut registers)?,
            (None, [CompiledSegment { thread_codes: parts, barrier: None, .. }])
                if !self.parallel && self.has_thread_loops(parts) =>
            {
                self.thread_loops = parts.len() as u32;
                self.emit_rounds_by_thread(&round_context, parts, &mut registers)?;
            }
            _ => self.emit_common_rounds(&round_context, pressure, &codes, &mut registers)?,
        }
        self.emit_end();
        Ok(())
    }

    /// Declares register variables for the threads that need them.
    fn declare_registers(&mut self, codes: &[CompiledSegment]) -> Vec<Registers> {
        let mut files = Vec::with_capacity(self.test.threads.len());
        let mut unset: Vec<Word> = Vec::new();
        for (index, thread) in self.test.threads.iter().enumerate() {
            let own = || {
                codes
                    .iter()
                    .flat_map(CompiledSegment::all_thread_codes)
                    .filter(|code| code.part.thread == index)
            };
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
                    let ty = self.module.type_int(bits);
                    self.module.function_variable(ty, &format!("P{}:{}", thread.number, register.name))
                })
                .collect();
            let mut word = |what: &str| {
                let ty = self.module.u32;
                self.module.function_variable(ty, &format!("P{}:{what}", thread.number))
            };
            let jump = jumps.then(|| word("goto"));
            let spin = (jumps && flow::has_loop(thread)).then(|| LoopVariables {
                next_start: word("again"),
                iterations: word("turns"),
                is_bound_reached: word("given up"),
            });
            unset.extend(
                spin.iter().flat_map(|spin| [spin.next_start, spin.iterations, spin.is_bound_reached]),
            );
            files.push(Registers::Variables { registers, jump, loop_variables: spin });
        }
        // Lanes of other threads read them too. Variables come before all other instructions of a function.
        let zero = self.module.constant(0);
        for variable in unset {
            self.module.store(variable, zero);
        }
        files
    }

    /// Emits one segment: each role runs its part up to its first loop, then the loops, then the code after
    /// them, and so on.
    fn emit_segment(
        &mut self,
        parts: &[SegmentCode],
        place: &InvocationStart,
        instance: Word,
        targets: &[(ReferencePath, AccessTarget)],
        registers: &mut [Registers],
    ) -> Result<(), CompileError> {
        let pieces: Vec<Vec<&[StructuredStep]>> =
            parts.iter().map(|code| flow::split_at_loops(&code.steps)).collect();
        let stages = pieces.iter().map(Vec::len).max().unwrap_or(0);
        for stage in 0..stages {
            let active: Vec<usize> =
                (0..parts.len()).filter(|part| pieces.get(*part).is_some_and(|s| s.len() > stage)).collect();
            let codes: Vec<&SegmentCode> = active.iter().filter_map(|part| parts.get(*part)).collect();
            self.emit_role_switch(&codes, place, |emitter, code| {
                let thread = ThreadId(code.part.thread as u16);
                let Some(registers) = registers.get_mut(code.part.thread) else { return Ok(()) };
                let steps = flow::split_at_loops(&code.steps);
                let context = emitter.thread_context(targets);
                let mut thread_code =
                    ThreadEmitter { module: &mut emitter.module, context, thread, registers };
                if stage == 0 {
                    if code.part.first {
                        thread_code.initialize_registers();
                    }
                    if let Some((scope, semantics)) = code.part.acquire {
                        thread_code.emit_fence(scope, semantics)?;
                    }
                    thread_code.begin_segment(&code.steps);
                } else {
                    thread_code.leave_loop();
                }
                thread_code.emit_steps(steps.get(stage).copied().unwrap_or_default())?;
                if stage + 1 < steps.len() {
                    thread_code.enter_loop();
                    return Ok(());
                }
                if let Some((scope, semantics)) = code.part.release {
                    thread_code.emit_fence(scope, semantics)?;
                }
                if code.part.last {
                    emitter.emit_results(thread, place, instance, registers)?;
                }
                Ok(())
            })?;
            for code in codes {
                if let Some(blocks) = flow::loop_after(&code.steps, stage) {
                    self.emit_thread_loop(code, blocks, place, targets, registers)?;
                }
            }
        }
        Ok(())
    }

    /// Emits code for each role among `codes`.
    fn emit_role_switch<'c>(
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
        for (code, label) in codes.iter().zip(&labels) {
            let name = format!("P{}", self.test.thread(ThreadId(code.part.thread as u16)).number);
            self.module.name(*label, &name);
        }
        let threads = codes.iter().map(|code| code.part.thread as u32);
        self.module.switch(place.role, merge, threads.zip(labels.iter().copied()));
        for (code, label) in codes.iter().zip(&labels) {
            self.module.begin_block(*label);
            code_of(self, code)?;
            self.module.branch(merge);
        }
        self.module.begin_block(merge);
        Ok(())
    }

    /// Emits a loop of one thread, with a bound.
    ///
    /// Every lane enters it, and lanes of other threads leave it immediately. lavapipe 22.3 keeps lanes that
    /// never entered a loop running until its budget is used up. The loop is left at the start of an
    /// iteration, and its results are in variables: some drivers lose values that are computed in a loop with
    /// divergent exits and used after it.
    fn emit_thread_loop(
        &mut self,
        code: &SegmentCode,
        blocks: &[StructuredStep],
        place: &InvocationStart,
        targets: &[(ReferencePath, AccessTarget)],
        registers: &mut [Registers],
    ) -> Result<(), CompileError> {
        let thread = ThreadId(code.part.thread as u16);
        let Some(own) = registers.get_mut(code.part.thread) else { return Ok(()) };
        let thread_loop = LoopBuilder::new(&mut self.module);
        let before = self.module.current_block();
        thread_loop.enter(&mut self.module, before);
        let context = self.thread_context(targets);
        let continues =
            ThreadEmitter { module: &mut self.module, context, thread, registers: own }.emit_loop_condition();
        let number = self.module.constant(thread.0.into());
        let is_role = self.module.emit_bool(Op::IEqual, &[place.role, number]);
        let continues =
            continues.map_or(is_role, |goes_on| self.module.emit_bool(Op::LogicalAnd, &[is_role, goes_on]));
        thread_loop.begin_body_if(&mut self.module, continues);
        self.emit_role_switch(&[code], place, |emitter, _| {
            let context = emitter.thread_context(targets);
            ThreadEmitter { module: &mut emitter.module, context, thread, registers: own }
                .emit_iteration(blocks)?;
            Ok(())
        })?;
        thread_loop.end_body(&mut self.module);
        Ok(())
    }

    fn thread_context<'t>(&self, targets: &'t [(ReferencePath, AccessTarget)]) -> ThreadContext<'t>
    where
        Self: 't,
    {
        ThreadContext {
            test: self.test,
            variant: self.config.variant,
            targets,
            loop_bound: self.config.loop_bound,
        }
    }
}
