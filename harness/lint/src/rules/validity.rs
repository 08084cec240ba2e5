//! Validity rules of memory semantics, scopes, memory operands and decorations.
//!
//! Source: Vulkan, "Standalone SPIR-V Validation", and SPIR-V, "Memory Semantics", "Scope", "Memory Operands",
//! "Image Operands" and "Capability". The rules are those of `spirv-val` 2026.4 that concern the memory model. A
//! module that breaks one has no defined meaning, and drivers treat it differently. Semantics and scopes that are
//! not constant are reported as such and not checked further.

use std::collections::BTreeSet;

use litmus::StorageClassSet;
use rspirv::spirv::{Capability, ExecutionModel, ImageOperands, MemorySemantics, Op, Scope, StorageClass};

use super::{ORDER_BITS, integer_constant};
use entry_point::Spot;
use spirv_reader::{
    AtomicKind, BarrierPart, ImageOperation, MemoryOperands, ShaderLanguage, SourcePosition, SpirvFunction,
    SpirvInstruction, SpirvModule, SpirvOperation, SpirvType, TexelOperands,
};

/// A use of memory semantics or memory operands that makes a module invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidUse {
    /// The rule that it breaks.
    pub rule: ValidityRule,
    /// The description, with the rule.
    pub message: String,
    /// Advice for the author of the source; empty if there is none.
    pub hint: &'static str,
    /// The source position, without an invocation.
    pub at: Spot,
}

macro_rules! rules {
    ($($rule:ident = $name:literal, $meaning:literal;)*) => {
        /// A validity rule.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum ValidityRule {
            $(#[doc = $meaning] $rule,)*
        }

        impl ValidityRule {
            /// Returns the name of the rule in the specification.
            pub fn name(self) -> &'static str {
                match self {
                    $(ValidityRule::$rule => $name,)*
                }
            }
        }
    };
}

rules! {
    OneOrder = "VUID-StandaloneSpirv-MemorySemantics-10865", "Semantics have at most one memory order.";
    NotSequential = "VUID-StandaloneSpirv-MemorySemantics-10866", "Semantics are not SequentiallyConsistent.";
    StoreNotAcquire = "VUID-StandaloneSpirv-MemorySemantics-10867", "An atomic store does not acquire.";
    LoadNotRelease = "VUID-StandaloneSpirv-MemorySemantics-10868", "An atomic load does not release.";
    BarrierHasOrder = "VUID-StandaloneSpirv-MemorySemantics-10869", "`OpMemoryBarrier` has a memory order.";
    OrderHasClass = "VUID-StandaloneSpirv-MemorySemantics-10870",
        "A memory order comes with a storage class of Vulkan.";
    ClassHasOrder = "VUID-StandaloneSpirv-MemorySemantics-10871",
        "A storage class of Vulkan comes with a memory order.";
    AvailableReleases = "VUID-StandaloneSpirv-MemorySemantics-10872", "MakeAvailable is on a release.";
    VisibleAcquires = "VUID-StandaloneSpirv-MemorySemantics-10873", "MakeVisible is on an acquire.";
    UnequalNotRelease = "VUID-StandaloneSpirv-UnequalMemorySemantics-10875",
        "A failed comparison does not release.";
    UnequalNotStronger = "VUID-StandaloneSpirv-UnequalMemorySemantics-10876",
        "A failed comparison has no order if a successful one has none.";
    UnequalClasses = "VUID-StandaloneSpirv-UnequalMemorySemantics-10877",
        "A failed comparison names no further storage class.";
    UnequalVisible = "VUID-StandaloneSpirv-UnequalMemorySemantics-10878",
        "A failed comparison makes memory visible only if a successful one does.";
    UnequalVolatile = "VUID-StandaloneSpirv-UnequalMemorySemantics-10879",
        "Both semantics of a comparison are volatile, or neither is.";
    BarrierNotVolatile = "VUID-StandaloneSpirv-MemorySemantics-13551", "A barrier is not volatile.";
    ArriveNotAcquire = "VUID-StandaloneSpirv-OpControlBarrierArriveEXT-13556", "An arrival does not acquire.";
    WaitNotRelease = "VUID-StandaloneSpirv-OpControlBarrierWaitEXT-13557", "A wait does not release.";
    SplitInCompute = "VUID-StandaloneSpirv-SplitBarrierEXT-13552", "Split barriers are in compute shaders.";
    SplitExecution = "VUID-StandaloneSpirv-OpControlBarrierArriveEXT-13553",
        "The execution scope of a split barrier is Workgroup or Subgroup.";
    ExecutionScope = "VUID-StandaloneSpirv-None-04636", "Execution scopes are Workgroup or Subgroup.";
    WorkgroupExecution = "VUID-StandaloneSpirv-None-04637",
        "The execution scope Workgroup is in stages with workgroups.";
    ScopeInDevice = "VUID-StandaloneSpirv-None-04638", "No memory scope is CrossDevice.";
    ShaderCallScope = "VUID-StandaloneSpirv-None-04640", "The scope ShaderCall is in ray tracing stages.";
    InvocationRelaxed = "VUID-StandaloneSpirv-None-04641", "The memory scope Invocation has no memory order.";
    GroupScope = "VUID-StandaloneSpirv-None-04642", "Group operations have the scope Subgroup.";
    StageBarrier = "VUID-StandaloneSpirv-OpControlBarrier-04682",
        "A control barrier in a stage without workgroups has the execution scope Subgroup.";
    AtomicClass = "VUID-StandaloneSpirv-None-04686", "Atomics access shared memory.";
    PatchScope = "VUID-StandaloneSpirv-ExecutionModel-07320",
        "Tessellation control shaders of GLSL450 do not name the memory scope Workgroup.";
    WorkgroupMemory = "VUID-StandaloneSpirv-None-07321",
        "The memory scope Workgroup is in stages with workgroups.";
    ConstantOperand = "SPIR-V, Scope and Memory Semantics", "Scopes and semantics are constants.";
    DeviceScope = "SPIR-V, VulkanMemoryModelDeviceScope", "Device scope of the Vulkan model has its capability.";
    ModelCapability = "SPIR-V, VulkanMemoryModel", "Terms of the Vulkan model have its capability.";
    OperandsOnMemory = "SPIR-V, Memory Operands", "Memory operands for shared memory are on shared memory.";
    OperandsOfTexels = "SPIR-V, Image Operands", "Image operands fit the direction of the access.";
    ModelDecorations = "SPIR-V, Coherent and Volatile",
        "The Vulkan model has no Coherent and Volatile decorations.";
}

/// Returns the invalid uses of a module: of its declarations, then in instruction order within each function.
pub fn invalid_uses(module: &SpirvModule) -> Vec<InvalidUse> {
    let mut found = Vec::new();
    let capabilities: BTreeSet<u32> = module
        .declarations()
        .filter(|(_, op)| *op == Op::Capability)
        .filter_map(|(at, _)| module.words().get(at + 1).copied())
        .collect();
    let of_module = Spot { thread: 0, line: 0, place: SourcePosition::Module, writes: None };
    for (rule, what) in declared_uses(module, &capabilities) {
        found.push(InvalidUse::new(module, rule, &what, of_module));
    }
    let mut functions: Vec<_> = module.functions.iter().collect();
    functions.sort_unstable_by_key(|(id, _)| **id);
    for (id, function) in functions {
        let of_function = module.entry_points.iter().filter(|entry| entry.function == *id);
        let mut models: Vec<ExecutionModel> = of_function.map(|entry| entry.model).collect();
        if models.is_empty() {
            models.extend(module.entry_points.iter().map(|entry| entry.model));
        }
        for instruction in &function.code {
            let mut uses = InstructionUses {
                module,
                function,
                capabilities: &capabilities,
                models: &models,
                name: format!("Op{:?}", instruction.op),
                found: Vec::new(),
            };
            uses.check_instruction(instruction);
            let at = Spot { thread: 0, line: instruction.line, place: instruction.place, writes: None };
            let own = uses.found.into_iter();
            found.extend(own.map(|(rule, what)| InvalidUse::new(module, rule, &what, at)));
        }
    }
    found
}

impl InvalidUse {
    fn new(module: &SpirvModule, rule: ValidityRule, what: &str, at: Spot) -> InvalidUse {
        // An atomic of the scope QueueFamily, or `gl_SemanticsMakeVisible`, makes glslang select the Vulkan model for the module
        // alone.
        let is_half_selected = matches!(rule, ValidityRule::DeviceScope | ValidityRule::ModelDecorations);
        let hint = match is_half_selected && module.language == Some(ShaderLanguage::Glsl) {
            true => {
                "; expected `#pragma use_vulkan_memory_model` in a GLSL source that uses a part of this model"
            }
            false => "",
        };
        InvalidUse { rule, message: format!("{what} ({})", rule.name()), hint, at }
    }
}

/// Returns the invalid uses outside of functions.
fn declared_uses(module: &SpirvModule, capabilities: &BTreeSet<u32>) -> Vec<(ValidityRule, String)> {
    let mut found = Vec::new();
    let has_capability = capabilities.contains(&(Capability::VulkanMemoryModel as u32));
    if module.uses_vulkan_model != has_capability {
        let what = if has_capability {
            "the capability VulkanMemoryModel is declared, but another memory model"
        } else {
            "the Vulkan memory model is declared without its capability"
        };
        found.push((ValidityRule::ModelCapability, what.to_owned()));
    }
    let mut decorated: Vec<(u32, &'static str)> = Vec::new();
    let ids = module.decorations.iter().map(|(id, own)| (*id, own));
    for (id, own) in ids.chain(module.member_decorations.iter().map(|((id, _), own)| (*id, own))) {
        decorated.extend(own.coherent.then_some((id, "Coherent")));
        decorated.extend(own.volatile.then_some((id, "Volatile")));
    }
    decorated.sort_unstable();
    decorated.dedup();
    for (id, word) in decorated.into_iter().filter(|_| module.uses_vulkan_model) {
        let what = format!("`{}` is decorated {word} under the Vulkan memory model", module.display_name(id));
        found.push((ValidityRule::ModelDecorations, what));
    }
    found
}

/// The invalid uses of an instruction.
struct InstructionUses<'m> {
    module: &'m SpirvModule,
    function: &'m SpirvFunction,
    capabilities: &'m BTreeSet<u32>,
    /// The execution models of the entry points that may execute it.
    models: &'m [ExecutionModel],
    name: String,
    found: Vec<(ValidityRule, String)>,
}

/// The memory semantics of an instruction.
#[derive(Clone, Copy)]
struct InstructionSemantics(MemorySemantics);

impl InstructionSemantics {
    fn acquires(self) -> bool {
        self.0.intersects(MemorySemantics::ACQUIRE | MemorySemantics::ACQUIRE_RELEASE)
    }

    fn releases(self) -> bool {
        self.0.intersects(MemorySemantics::RELEASE | MemorySemantics::ACQUIRE_RELEASE)
    }

    fn is_ordered(self) -> bool {
        self.0.bits() & ORDER_BITS != 0
    }

    fn classes(self) -> StorageClassSet {
        StorageClassSet::from_semantics(self.0.bits())
    }
}

impl InstructionUses<'_> {
    fn add(&mut self, is_broken: bool, rule: ValidityRule, what: &str) {
        if is_broken {
            self.found.push((rule, format!("{} {what}", self.name)));
        }
    }

    fn check_instruction(&mut self, instruction: &SpirvInstruction) {
        let operation = self.module.operation(instruction);
        match operation {
            SpirvOperation::MemoryBarrier { scope, semantics } => {
                let semantics = self.check_semantics(semantics, true);
                let is_relaxed = semantics.is_some_and(|own| !own.is_ordered());
                self.add(is_relaxed, ValidityRule::BarrierHasOrder, "has no memory order");
                self.check_barrier(semantics);
                self.check_memory_scope(scope, semantics);
            }
            SpirvOperation::ControlBarrier { part, execution, scope, semantics } => {
                self.check_execution_scope(part, execution);
                let semantics = self.check_semantics(semantics, false);
                let acquires = semantics.is_some_and(|own| own.acquires());
                let releases = semantics.is_some_and(|own| own.releases());
                let arrives = part == BarrierPart::Arrive;
                self.add(arrives && acquires, ValidityRule::ArriveNotAcquire, "acquires");
                let waits = part == BarrierPart::Wait;
                self.add(waits && releases, ValidityRule::WaitNotRelease, "releases");
                self.check_barrier(semantics);
                self.check_memory_scope(scope, semantics);
            }
            SpirvOperation::Atomic(access) => {
                let semantics = self.check_semantics(access.semantics, false);
                let acquires = semantics.is_some_and(|own| own.acquires());
                let releases = semantics.is_some_and(|own| own.releases());
                match access.kind {
                    AtomicKind::Load => self.add(releases, ValidityRule::LoadNotRelease, "releases"),
                    AtomicKind::Store { .. } => self.add(acquires, ValidityRule::StoreNotAcquire, "acquires"),
                    AtomicKind::CompareExchange { unequal, .. } => {
                        let unequal = self.check_semantics(unequal, false);
                        if let (Some(equal), Some(unequal)) = (semantics, unequal) {
                            self.check_unequal(equal, unequal);
                        }
                    }
                    AtomicKind::Exchange { .. } | AtomicKind::Update { .. } => {}
                }
                self.check_memory_scope(access.scope, semantics);
                let class = self.pointer_class(access.pointer);
                let is_shared = class.is_none_or(is_atomic_class);
                self.add(!is_shared, ValidityRule::AtomicClass, "accesses memory that is not shared");
            }
            SpirvOperation::Load { pointer, memory } => self.check_operands(pointer, memory, false),
            SpirvOperation::Store { pointer, memory, .. } => self.check_operands(pointer, memory, true),
            SpirvOperation::CopyMemory { target, source, memory: [store, load] } => {
                // One set of operands is for both accesses, so each half may have the other's operation.
                if store == load {
                    let (available, visible) = (store.available, load.visible);
                    self.check_operands(target, MemoryOperands { visible: None, available, ..store }, true);
                    self.check_operands(source, MemoryOperands { available: None, visible, ..load }, false);
                } else {
                    self.check_operands(target, store, true);
                    self.check_operands(source, load, false);
                }
            }
            SpirvOperation::Image(ImageOperation::Read { operands, .. }) => self.check_texel(operands, false),
            SpirvOperation::Image(ImageOperation::Write { operands, .. }) => self.check_texel(operands, true),
            SpirvOperation::Image(ImageOperation::Fetch { operands, .. })
            | SpirvOperation::Image(ImageOperation::Sample { operands, .. }) => {
                self.check_texel(operands, false);
            }
            SpirvOperation::Subgroup(subgroup) => {
                let scope = subgroup.scope.and_then(|scope| self.check_constant(scope));
                let is_other = scope.is_some_and(|scope| scope != Scope::Subgroup as u32);
                self.add(is_other, ValidityRule::GroupScope, "has another scope than Subgroup");
            }
            _ => {}
        }
    }

    /// Returns a constant scope or semantics, and reports one that is not constant.
    fn check_constant(&mut self, id: u32) -> Option<u32> {
        let is_specialized = self.module.decorations.get(&id).is_some_and(|own| own.specialization.is_some());
        let number = integer_constant(self.module, id).filter(|_| !is_specialized);
        self.add(
            number.is_none(),
            ValidityRule::ConstantOperand,
            "has a scope or semantics that is no constant",
        );
        number
    }

    /// Checks semantics by themselves, and returns them if they are constant.
    ///
    /// A memory barrier without an order breaks its own rule.
    fn check_semantics(&mut self, id: u32, is_fence: bool) -> Option<InstructionSemantics> {
        let bits = MemorySemantics::from_bits_retain(self.check_constant(id)?);
        let semantics = InstructionSemantics(bits);
        let orders = (bits.bits() & ORDER_BITS).count_ones();
        self.add(orders > 1, ValidityRule::OneOrder, "has several memory orders");
        let sequential = bits.contains(MemorySemantics::SEQUENTIALLY_CONSISTENT);
        self.add(sequential, ValidityRule::NotSequential, "is sequentially consistent");
        let classes = semantics.classes();
        let is_ordered = semantics.is_ordered();
        let lacks_class = is_ordered && classes == StorageClassSet::EMPTY;
        self.add(
            lacks_class,
            ValidityRule::OrderHasClass,
            "has a memory order and no storage class of Vulkan",
        );
        let lacks_order = !is_ordered && !is_fence && classes != StorageClassSet::EMPTY;
        let what = format!("names {} without a memory order", class_names(classes));
        self.add(lacks_order, ValidityRule::ClassHasOrder, &what);
        let available = bits.contains(MemorySemantics::MAKE_AVAILABLE) && !semantics.releases();
        self.add(available, ValidityRule::AvailableReleases, "has MakeAvailable without a release");
        let visible = bits.contains(MemorySemantics::MAKE_VISIBLE) && !semantics.acquires();
        self.add(visible, ValidityRule::VisibleAcquires, "has MakeVisible without an acquire");
        let of_model = MemorySemantics::MAKE_AVAILABLE
            | MemorySemantics::MAKE_VISIBLE
            | MemorySemantics::OUTPUT_MEMORY
            | MemorySemantics::VOLATILE;
        self.check_model(bits.intersects(of_model), "has semantics of the Vulkan memory model");
        Some(semantics)
    }

    fn check_model(&mut self, is_used: bool, what: &str) {
        let has_capability = self.capabilities.contains(&(Capability::VulkanMemoryModel as u32));
        self.add(is_used && !has_capability, ValidityRule::ModelCapability, what);
    }

    fn check_barrier(&mut self, semantics: Option<InstructionSemantics>) {
        let is_volatile = semantics.is_some_and(|own| own.0.contains(MemorySemantics::VOLATILE));
        self.add(is_volatile, ValidityRule::BarrierNotVolatile, "is volatile");
    }

    /// Checks the semantics of a failed comparison against those of a successful one.
    fn check_unequal(&mut self, equal: InstructionSemantics, unequal: InstructionSemantics) {
        self.add(unequal.releases(), ValidityRule::UnequalNotRelease, "releases if the comparison fails");
        let is_stronger = unequal.acquires() && !unequal.releases() && !equal.is_ordered();
        self.add(is_stronger, ValidityRule::UnequalNotStronger, "acquires only if the comparison fails");
        let has_more = unequal.classes().union(equal.classes()) != equal.classes();
        self.add(
            has_more,
            ValidityRule::UnequalClasses,
            "names more storage classes if the comparison fails",
        );
        let differs = |bit: MemorySemantics| {
            (unequal.0.contains(bit), unequal.0.contains(bit) != equal.0.contains(bit))
        };
        let (visible, is_other) = differs(MemorySemantics::MAKE_VISIBLE);
        let what = "makes memory visible only if the comparison fails";
        self.add(visible && is_other, ValidityRule::UnequalVisible, what);
        let (_, is_other) = differs(MemorySemantics::VOLATILE);
        self.add(is_other, ValidityRule::UnequalVolatile, "is volatile in one of its semantics");
    }

    /// Returns true if no entry point that may execute the instruction has one of these models.
    fn is_outside(&self, models: &[ExecutionModel]) -> bool {
        !self.models.is_empty() && !self.models.iter().any(|own| models.contains(own))
    }

    fn check_execution_scope(&mut self, part: BarrierPart, id: u32) {
        let Some(scope) = self.check_constant(id) else { return };
        let is_workgroup = scope == Scope::Workgroup as u32;
        let is_subgroup = scope == Scope::Subgroup as u32;
        let is_split = part != BarrierPart::Whole;
        let rule = if is_split { ValidityRule::SplitExecution } else { ValidityRule::ExecutionScope };
        let what = "has another execution scope than Workgroup and Subgroup";
        self.add(!is_workgroup && !is_subgroup, rule, what);
        if is_split {
            let is_outside = self.is_outside(&[ExecutionModel::GLCompute]);
            self.add(is_outside, ValidityRule::SplitInCompute, "is not in a compute shader");
        } else if !is_subgroup {
            let is_outside = self.is_outside(&STAGES_WITH_WORKGROUPS);
            let what = "has the execution scope Workgroup in a stage without workgroups";
            self.add(is_outside, ValidityRule::StageBarrier, what);
            self.add(is_outside && is_workgroup, ValidityRule::WorkgroupExecution, what);
        }
    }

    fn check_memory_scope(&mut self, id: u32, semantics: Option<InstructionSemantics>) {
        let Some(scope) = self.check_constant(id) else { return };
        let is = |other: Scope| scope == other as u32;
        let is_foreign = is(Scope::CrossDevice) || Scope::from_u32(scope).is_none();
        self.add(is_foreign, ValidityRule::ScopeInDevice, "has the memory scope CrossDevice");
        let is_ordered = semantics.is_some_and(|own| own.0 != MemorySemantics::RELAXED);
        let what = "has the memory scope Invocation and semantics";
        self.add(is(Scope::Invocation) && is_ordered, ValidityRule::InvocationRelaxed, what);
        let is_outside = self.is_outside(&STAGES_WITH_WORKGROUPS);
        let what = "has the memory scope Workgroup in a stage without workgroups";
        self.add(is(Scope::Workgroup) && is_outside, ValidityRule::WorkgroupMemory, what);
        let is_patch = self.models.iter().all(|model| *model == ExecutionModel::TessellationControl);
        let is_patch = is_patch && !self.models.is_empty() && !self.module.uses_vulkan_model;
        let what = "has the memory scope Workgroup in a tessellation control shader";
        self.add(is(Scope::Workgroup) && is_patch, ValidityRule::PatchScope, what);
        let is_outside = self.is_outside(&RAY_TRACING_STAGES);
        let what = "has the memory scope ShaderCall outside of ray tracing";
        self.add(is(Scope::ShaderCallKHR) && is_outside, ValidityRule::ShaderCallScope, what);
        let has_device_scope = self.capabilities.contains(&(Capability::VulkanMemoryModelDeviceScope as u32));
        let lacks_device = self.module.uses_vulkan_model && !has_device_scope;
        let what = "has the memory scope Device without the capability VulkanMemoryModelDeviceScope";
        self.add(is(Scope::Device) && lacks_device, ValidityRule::DeviceScope, what);
        self.check_model(is(Scope::QueueFamily), "has the memory scope QueueFamily");
    }

    /// Checks the operands of a load or store.
    fn check_operands(&mut self, pointer: u32, memory: MemoryOperands, writes: bool) {
        let rule = ValidityRule::OperandsOnMemory;
        self.check_direction(memory, writes, "Pointer", rule);
        self.check_model(memory.non_private, "has memory operands of the Vulkan memory model");
        let is_shared = memory.non_private || memory.available.is_some() || memory.visible.is_some();
        match self.pointer_class(pointer).filter(|class| is_shared && !is_shared_class(*class)) {
            Some(StorageClass::UniformConstant) => {
                let what = "the load of a descriptor has memory operands for shared memory; they belong to the \
                            image access";
                self.found.push((rule, what.to_owned()));
            }
            Some(class) => {
                self.add(true, rule, &format!("has memory operands for shared memory on {class:?}"))
            }
            None => {}
        }
    }

    /// Checks the memory operands of an image access.
    fn check_texel(&mut self, operands: TexelOperands, writes: bool) {
        self.check_direction(operands.memory, writes, "Texel", ValidityRule::OperandsOfTexels);
        let of_model = ImageOperands::NON_PRIVATE_TEXEL | ImageOperands::VOLATILE_TEXEL;
        let is_used = operands.mask.intersects(of_model);
        self.check_model(is_used, "has image operands of the Vulkan memory model");
    }

    /// Checks that availability is on writes and visibility on reads, of non-private accesses.
    fn check_direction(&mut self, memory: MemoryOperands, writes: bool, kind: &str, rule: ValidityRule) {
        for (scope, word, is_other) in
            [(memory.available, "Available", !writes), (memory.visible, "Visible", writes)]
        {
            let Some(scope) = scope else { continue };
            let direction = if writes { "writes" } else { "reads" };
            self.add(is_other, rule, &format!("{direction} with Make{kind}{word}"));
            self.add(!memory.non_private, rule, &format!("has Make{kind}{word} without NonPrivate{kind}"));
            self.check_memory_scope(scope, None);
        }
    }

    /// Returns the declared storage class of a pointer, if it is known.
    fn pointer_class(&self, pointer: u32) -> Option<StorageClass> {
        let of_variable = self.module.variables.get(&pointer).map(|variable| variable.declared_class);
        let of_type = || match self.function.types.get(&pointer).and_then(|ty| self.module.types.get(ty)) {
            Some(SpirvType::Pointer { class, .. }) => Some(*class),
            _ => None,
        };
        of_variable.or_else(of_type)
    }
}

const STAGES_WITH_WORKGROUPS: [ExecutionModel; 7] = [
    ExecutionModel::GLCompute,
    ExecutionModel::Kernel,
    ExecutionModel::TessellationControl,
    ExecutionModel::TaskEXT,
    ExecutionModel::MeshEXT,
    ExecutionModel::TaskNV,
    ExecutionModel::MeshNV,
];

const RAY_TRACING_STAGES: [ExecutionModel; 6] = [
    ExecutionModel::RayGenerationKHR,
    ExecutionModel::IntersectionKHR,
    ExecutionModel::AnyHitKHR,
    ExecutionModel::ClosestHitKHR,
    ExecutionModel::MissKHR,
    ExecutionModel::CallableKHR,
];

/// Returns true if accesses to a class may be non-private.
fn is_shared_class(class: StorageClass) -> bool {
    is_atomic_class(class) || matches!(class, StorageClass::CrossWorkgroup | StorageClass::Generic)
}

/// Returns true if a class may hold atomics.
fn is_atomic_class(class: StorageClass) -> bool {
    matches!(
        class,
        StorageClass::Uniform
            | StorageClass::Workgroup
            | StorageClass::Image
            | StorageClass::StorageBuffer
            | StorageClass::PhysicalStorageBuffer
            | StorageClass::TaskPayloadWorkgroupEXT
    )
}

fn class_names(classes: StorageClassSet) -> String {
    classes.iter().map(litmus::StorageClass::name).collect::<Vec<_>>().join(" and ")
}
