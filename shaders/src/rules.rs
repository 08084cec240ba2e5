//! The rules that a test breaks if it has no kernel: the complete list, and the checks that need no kernel.
//!
//! Long because it is the complete list of reasons, each with its message.

#![deny(clippy::wildcard_enum_match_arm)]

use litmus::{
    Access, AccessKind, ArithmeticOperation, Compute, Dialect, Flow, Instruction, InstructionKind,
    LocationId, MemoryAccess, MemoryPlace, Observable, Operand, Performer, RegisterId, RmwOperation,
    ScalarType, Scope, Semantics, Span, SplitHalf, StorageClass, Test, Thread, ThreadPlace,
};

use crate::kernel::CompileError;
use crate::semantics::{self, Operation};
use crate::variant::Stage;

/// A reason why [`compile`](crate::compile) has no kernel for a test. Its [`Display`](std::fmt::Display) form
/// is the short skip reason in reports; the model still judges the test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Rule {
    /// A test of the HSA memory model: its synchronizing order has no counterpart in Vulkan.
    #[error("HSA")]
    Hsa,
    /// A read-modify-write that is not atomic, which no test text can express.
    #[error("plain read-modify-write")]
    PlainReadModifyWrite,
    /// An atomic access of several components, which no test text can express.
    #[error("atomic vector")]
    AtomicVector,
    /// A missing table entry: a defect of this crate.
    #[error(transparent)]
    NoEntry(#[from] litmus::NoEntry),
    /// An instruction that no segment contains: a defect of this crate.
    #[error("internal: {0} inside a segment")]
    Internal(&'static str),
    /// The test has no thread, so nothing can be dispatched.
    #[error("no threads")]
    NoThreads,
    /// A thread of the host (`@host`) runs outside of the kernel.
    #[error("host thread")]
    HostThread,
    /// Host threads can only load, store, fence, branch, flush, invalidate, submit and wait.
    #[error("computation of a host thread")]
    HostComputation,
    /// Host threads have no read-modify-writes.
    #[error("read-modify-write of a host thread")]
    HostReadModifyWrite,
    /// Host threads access whole words.
    #[error("type of a host location")]
    HostType,
    /// Host threads access only buffers.
    #[error("host thread together with images or separate memory")]
    HostElsewhere,
    /// The instructions of a host thread between two of its calls run for every instance, so they may only
    /// jump forward, and over no call.
    #[error("loop of a host thread, or branch over a call")]
    HostBranch,
    /// With host threads, system-synchronizes-with may not order a host instruction before a whole thread
    /// that no host thread submits.
    #[error("system-synchronizes-with together with host threads")]
    HostSynchronization,
    /// All memory of host threads is in one buffer.
    #[error("host memory of two kinds")]
    HostMemoryOfTwoKinds,
    /// A fence belongs to a whole submission.
    #[error("wait for part of a submission")]
    PartOfSubmission,
    /// Only queues signal and wait for binary semaphores (VUID-vkSignalSemaphore-semaphore-03257).
    #[error("binary semaphore of the host")]
    BinaryOfHost,
    /// The wait for a binary semaphore must be submitted after its signal and everything that the signal
    /// depends on: by the same host thread, or if no host thread submits the signal.
    #[error("binary semaphore whose signal may be submitted behind its wait")]
    LateSignal,
    /// A host thread waits for an event that never happens.
    #[error("wait without a signal")]
    EndlessWait,
    /// `ssw`, `avdevice` and `visdevice` take place between dispatches: the test does not fit one kernel, but
    /// a [program](crate::program()).
    #[error("separate dispatches")]
    SeparateDispatches,
    /// An `avdevice` between accesses, fences or barriers of its thread: the API makes writes available only
    /// between dispatches.
    #[error("avdevice within a thread")]
    AvailabilityAmidThread,
    /// A `visdevice` between accesses, fences or barriers of its thread: the API makes writes visible only
    /// between dispatches.
    #[error("visdevice within a thread")]
    VisibilityAmidThread,
    /// Access masks that would also cover accesses of other threads: a dependency applies to whole
    /// dispatches, with the union of all masks.
    #[error("access mask of other threads")]
    MaskOfOtherThreads,
    /// System-synchronizes-with from a thread to itself: one invocation would run in two dispatches.
    #[error("one thread in several dispatches")]
    SynchronizedWithItself,
    /// A cycle of system-synchronizes-with through parts of threads: one invocation would run in two
    /// dispatches.
    #[error("dispatches in a cycle")]
    CyclicDispatches,
    /// Threads of one workgroup in different dispatches are in different workgroups on a device, but the test
    /// relies on their being in one.
    #[error("one workgroup in several dispatches")]
    WorkgroupInSeveralDispatches,
    /// Roles are split by workgroup, and there is only one.
    #[error("one workgroup: no roles to split")]
    OneWorkgroup,
    /// One dispatch runs on one queue: the test does not fit one kernel, but a [program](crate::program()).
    #[error("several queues")]
    SeveralQueues,
    /// An access that is not aligned to its size, ends after 16 bytes, or is inside a texel.
    #[error("offset into a location")]
    Offset,
    /// Images have one 32-bit component (`R32_UINT`, `R32_SFLOAT`).
    #[error("type of an image")]
    ImageType,
    /// Final values of images can be read only if all image locations have one type.
    #[error("image together with another type")]
    ImageBeside,
    /// Workgroup memory with explicit layout in a module for Vulkan 1.1: the extension requires SPIR-V 1.4.
    #[error("explicit layout of workgroup memory in Vulkan 1.1")]
    OldWorkgroupLayout,
    /// Workgroup memory with a nonzero initial value, or with several access paths, in a variant where the
    /// driver zeroes it: the initializer must be a null constant (VUID-StandaloneSpirv-OpVariable-04734).
    #[error("workgroup memory that no driver initializes")]
    InitializedWorkgroupMemory,
    /// Private reads of unwritten workgroup memory by several threads: the thread that stores the initial
    /// value races with the others.
    #[error("private reads by several threads of unwritten workgroup memory")]
    PrivateWorkgroupMemory,
    /// A vector in an image: a texel is one number.
    #[error("vector in an image")]
    VectorImage,
    /// The final value of a workgroup vector under a name with another element size.
    #[error("workgroup vector observed as another type")]
    VectorAlias,
    /// Vulkan has no 8-bit or 16-bit atomics.
    #[error("atomic of less than 32 bits")]
    NarrowAtomic,
    /// Floating-point atomics are load, store, exchange, add, minimum and maximum.
    #[error("floating-point atomic")]
    FloatAtomic,
    /// Values of floating-point locations are integers from 0 to 2^24, which all types represent exactly.
    #[error("floating-point value")]
    FloatValue,
    /// The names of one storage have several storage classes; memory has only one.
    #[error("two classes on one location")]
    TwoClasses,
    /// Workgroup memory (`sc1`) of threads in different workgroups: each workgroup has its own.
    #[error("sc1 across workgroups")]
    WorkgroupMemoryAcrossWorkgroups,
    /// Tessellation control outputs (`sc3`) do not exist in a compute shader.
    #[error("output in compute")]
    OutputInCompute,
    /// Vertex and fragment shaders have no workgroups: neither the scope (VUID-StandaloneSpirv-None-07321 as
    /// memory scope, VUID-StandaloneSpirv-None-04637 as execution scope) nor the memory
    /// (VUID-StandaloneSpirv-None-04645).
    #[error("no workgroups in this stage: {0}")]
    NoWorkgroups(WorkgroupClause),
    /// Threads of one subgroup, or an instruction of subgroup scope, in a stage whose invocations cannot be
    /// assigned by subgroups: their subgroups are known only at run time.
    #[error("subgroups in this stage")]
    StageSubgroups,
    /// Host threads submit only dispatches.
    #[error("host thread together with graphics stages")]
    HostBesideStage,
    /// Mesh and task shaders require SPIR-V 1.4 (SPV_EXT_mesh_shader, "Dependencies").
    #[error("SPIR-V 1.3 in this stage")]
    StageTarget,
    /// One kernel for threads in different stages: a kernel has one stage.
    #[error("threads of several stages in one kernel")]
    SeveralStages,
    /// A single thread, in a variant with threads in different stages.
    #[error("a single thread where threads are in different stages")]
    SingleStage,
    /// No shader can use the CrossDevice scope (VUID-StandaloneSpirv-None-04638).
    #[error("CrossDevice scope")]
    CrossDeviceScope,
    /// A subgroup operation, or a subgroup barrier under a branch, outside of a single compute kernel, or in
    /// a progress test: only compute kernels with a whole subgroup determine which lanes execute it together.
    #[error("subgroup operation")]
    SubgroupOperation,
    /// A tangle that depends on uniform control flow in a block of subgroup operations. Kernels have idle lanes
    /// and play several instances, so that not every lane of a workgroup enters the block.
    #[error("reconvergence within a block of subgroup operations")]
    ReconvergenceInBlock,
    /// A shader call, or ShaderCall scope: there are no ray tracing pipelines here.
    #[error("shader call")]
    ShaderCall,
    /// No shader can use the FragmentInterlock scope (VUID-StandaloneSpirv-None-04638).
    #[error("FragmentInterlock scope")]
    FragmentInterlock,
    /// An interlocked section outside of fragment shaders (SPIR-V, OpBeginInvocationInterlockEXT).
    #[error("interlocked section outside of fragment shaders")]
    InterlockStage,
    /// A thread with several sections, with part of one, or with one under a branch: a fragment executes each
    /// end exactly once, the begin first (SPIR-V, "Entry point and execution model").
    #[error("interlocked section that is not executed exactly once")]
    InterlockOnce,
    /// Sections in several draws: each draw has its own render pass, and fragments of different ones do not
    /// overlap.
    #[error("interlocked sections in several draws")]
    InterlockDraws,
    /// An access to a cooperative matrix, which kernels do not support.
    #[error("cooperative matrix")]
    CooperativeMatrix,
    /// SPIR-V has no atomic multiplication and no atomic division.
    #[error("atomic {}", arithmetic_name(*.0))]
    AtomicArithmetic(ArithmeticOperation),
    /// Division by zero is undefined in SPIR-V, so kernels do not divide registers.
    #[error("division")]
    Division,
    /// A loop that does more than wait: earlier turns would have an effect (a write, or a value that a later
    /// turn uses), but the model considers only the last turn.
    #[error("loop with effects")]
    LoopWithEffects,
    /// Kernels of [forward progress](crate::progress) support only 32-bit locations in buffers with
    /// descriptors.
    #[error("progress test beyond words in buffers")]
    ProgressMemory,
    /// References to one storage, in a variant that excludes them.
    #[error("aliases under restrict")]
    AliasesUnderRestrict,
    /// A non-private access without availability or visibility: coherent variables always have both.
    #[error("non-private access without availability or visibility under GLSL450")]
    GlslNonPrivate,
    /// A private access to workgroup memory, which is always coherent.
    #[error("private access to workgroup memory under GLSL450")]
    GlslPrivate,
    /// A location with coherent and private plain accesses: GLSL450 decorates variables.
    #[error("coherent and private accesses to one location under GLSL450")]
    GlslMixed,
    /// Availability or visibility in the semantics of an operation.
    #[error("availability in semantics under GLSL450")]
    GlslDomains,
    /// Physical storage buffers in GLSL450: pointers cannot be decorated coherent.
    #[error("device address under GLSL450")]
    GlslAddress,
    /// Kernels of [forward progress](crate::progress) have no split barriers; only `check --progress` judges
    /// them.
    #[error("split barrier in a progress test")]
    ProgressSplitBarrier,
    /// Control barriers of Vulkan have no resource.
    #[error("named barrier")]
    NamedBarrier,
    /// Control barriers of Vulkan have no quorum.
    #[error("quorum barrier")]
    QuorumBarrier,
    /// Execution scopes other than Workgroup and Subgroup (VUID-StandaloneSpirv-None-04636; for split
    /// barriers VUID-RuntimeSpirv-OpControlBarrierArriveEXT-13553).
    #[error("execution scope of a control barrier")]
    ExecutionScope,
    /// A control barrier of the workgroup that a jump can skip is not in uniform control flow; nor is half of
    /// a split barrier (VUID-RuntimeSpirv-OpControlBarrierArriveEXT-13558), which is refused for subgroups
    /// too.
    #[error("control barrier under a branch")]
    GuardedBarrier,
    /// The threads of a workgroup (or of a subgroup, for that execution scope) do not execute the same
    /// control barriers in the same order, which is undefined on a device. The same holds for arrivals and
    /// waits of split barriers, except that a thread may omit the wait after its last arrival.
    #[error("control barrier not reached by every thread")]
    UnevenBarrier,
    /// A thread executes one barrier instance twice: the model has one instance, a device two.
    #[error("control barrier instance used twice")]
    RepeatedBarrier,
    /// A subgroup of the device has fewer lanes than the test has threads in a subgroup.
    #[error("more threads than lanes in a subgroup")]
    SubgroupTooSmall,
    /// A variant with a workgroup size that may give partial subgroups, so that it is unspecified which
    /// invocations share one, but the test has a subgroup operation or an instruction of subgroup scope.
    #[error("subgroups in workgroups of a given size")]
    ShapeOfSubgroups,
    /// A workgroup of the variant's size has fewer invocations than the test has threads in one.
    #[error("more threads than invocations in a workgroup of this size")]
    ShapeTooSmall,
    /// A dispatch with the variant's number of workgroups has none for some thread of the test.
    #[error("more workgroups in the test than in a dispatch of this size")]
    TooFewWorkgroups,
    /// Threads of one workgroup are assigned by subgroups, but the variant lets their size vary.
    #[error("threads placed by subgroups of varying size")]
    VaryingSubgroups,
    /// Graphics stages have no workgroups with a size or a number, and only compute pipelines can require a
    /// subgroup size.
    #[error("size or number of workgroups or subgroups in this stage")]
    StageShape,
    /// Memory semantics that Vulkan does not allow for an instruction.
    #[error("{0}")]
    Semantics(SemanticsRule),
}

/// A use of workgroups that a stage without them lacks, with the clause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum WorkgroupClause {
    /// An instruction with workgroup memory scope.
    #[error("memory scope (VUID-StandaloneSpirv-None-07321)")]
    MemoryScope,
    /// A control barrier of the workgroup.
    #[error("control barrier (VUID-StandaloneSpirv-None-04637)")]
    ExecutionScope,
    /// A location in workgroup memory.
    #[error("memory (VUID-StandaloneSpirv-None-04645)")]
    Memory,
}

/// A rule on memory semantics (Vulkan, appendix "Vulkan Environment for SPIR-V").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum SemanticsRule {
    /// Relaxed order with storage classes (VUID-StandaloneSpirv-MemorySemantics-10871).
    #[error("relaxed order with storage classes")]
    RelaxedWithClasses,
    /// An order without a storage class (VUID-StandaloneSpirv-MemorySemantics-10870). Only Uniform,
    /// Workgroup, Image and Output memory count.
    #[error("order without a storage class")]
    OrderWithoutClass,
    /// A memory barrier without an order (VUID-StandaloneSpirv-MemorySemantics-10869).
    #[error("memory barrier without an order")]
    RelaxedBarrier,
    /// An atomic load that releases (VUID-StandaloneSpirv-MemorySemantics-10868).
    #[error("release on a load")]
    ReleaseLoad,
    /// An atomic store that acquires (VUID-StandaloneSpirv-MemorySemantics-10867).
    #[error("acquire on a store")]
    AcquireStore,
    /// An arrival that acquires (VUID-RuntimeSpirv-OpControlBarrierArriveEXT-13556).
    #[error("acquire on an arrival")]
    AcquireArrival,
    /// A wait that releases (VUID-RuntimeSpirv-OpControlBarrierWaitEXT-13557).
    #[error("release on a wait")]
    ReleaseWait,
    /// Availability without release (VUID-StandaloneSpirv-MemorySemantics-10872).
    #[error("availability without release")]
    AvailableWithoutRelease,
    /// Visibility without acquire (VUID-StandaloneSpirv-MemorySemantics-10873).
    #[error("visibility without acquire")]
    VisibleWithoutAcquire,
    /// An order other than relaxed at Invocation scope (VUID-StandaloneSpirv-None-04641).
    #[error("order at invocation scope")]
    OrderAtInvocation,
    /// A failed compare-exchange that releases (VUID-StandaloneSpirv-UnequalMemorySemantics-10875).
    #[error("release of a failed compare-exchange")]
    ReleaseUnequal,
    /// A failed compare-exchange with a stronger order (VUID-StandaloneSpirv-UnequalMemorySemantics-10876).
    #[error("failed compare-exchange ordered more strongly")]
    UnequalStronger,
    /// A failed compare-exchange with more storage classes
    /// (VUID-StandaloneSpirv-UnequalMemorySemantics-10877).
    #[error("failed compare-exchange with more storage classes")]
    UnequalClasses,
    /// A failed compare-exchange with more visibility (VUID-StandaloneSpirv-UnequalMemorySemantics-10878).
    #[error("failed compare-exchange with more visibility")]
    UnequalVisible,
    /// SubgroupMemory, CrossWorkgroupMemory or AtomicCounterMemory. Vulkan ignores them, and the latter two
    /// need capabilities that no Vulkan device has.
    #[error("ignored storage class of semantics")]
    Ignored,
    /// SequentiallyConsistent semantics (VUID-StandaloneSpirv-MemorySemantics-10866): only other memory models have them.
    #[error("sequentially consistent order")]
    Sequential,
    /// A word with several of Acquire, Release and AcquireRelease, with SequentiallyConsistent, or with bits
    /// that litmus tests lack (VUID-StandaloneSpirv-MemorySemantics-10865 and -10866). A module can contain
    /// it, a test cannot.
    #[error("memory semantics that litmus tests do not use")]
    Unknown,
}

impl From<Rule> for CompileError {
    fn from(rule: Rule) -> CompileError {
        CompileError::NotPlaceable { rule: rule.to_string() }
    }
}

impl From<SemanticsRule> for Rule {
    fn from(rule: SemanticsRule) -> Rule {
        Rule::Semantics(rule)
    }
}

/// Checks the rules that do not depend on the device. Rules on control barriers and lanes are checked when
/// the code is cut into segments and lanes are assigned.
///
/// # Errors
/// The first rule that the test breaks.
pub fn check(test: &Test) -> Result<(), Rule> {
    check_but_loops(test)?;
    test.threads.iter().try_for_each(check_loops)
}

/// Checks a test whose threads may have several kernels: one for each queue family.
pub(crate) fn check_program(test: &Test) -> Result<(), Rule> {
    check_all_but_families(test)?;
    test.threads.iter().try_for_each(check_loops)
}

/// Checks as [`check`], for kernels whose loops may do more than wait.
pub(crate) fn check_but_loops(test: &Test) -> Result<(), Rule> {
    check_all_but_families(test)?;
    if crate::program::queues(test).len() > 1 { Err(Rule::SeveralQueues) } else { Ok(()) }
}

/// Checks that a stage can run the test: graphics stages have no workgroups, and no assignment of threads by
/// subgroups.
///
/// # Errors
/// The rule that the test breaks.
pub(crate) fn check_stage(test: &Test, stage: Stage) -> Result<(), Rule> {
    if test.has_tangles() && stage != Stage::Compute {
        return Err(Rule::SubgroupOperation);
    }
    let mut instructions = test.threads.iter().flat_map(|thread| &thread.instructions);
    instructions.try_for_each(|instruction| check_in_stage(&instruction.kind, stage))
}

/// Checks that a stage can run an instruction.
fn check_in_stage(kind: &InstructionKind, stage: Stage) -> Result<(), Rule> {
    if matches!(kind, InstructionKind::Interlock(_)) && !stage.is_fragment() {
        return Err(Rule::InterlockStage);
    }
    if !stage.has_workgroups() {
        return check_without_workgroups(kind);
    }
    if stage == Stage::Compute { Ok(()) } else { check_without_subgroups(kind) }
}

/// Checks that a stage without workgroups can run an instruction.
fn check_without_workgroups(kind: &InstructionKind) -> Result<(), Rule> {
    if kind.execution_scope() == Some(Scope::Workgroup) {
        return Err(Rule::NoWorkgroups(WorkgroupClause::ExecutionScope));
    }
    if kind.access().is_some_and(|access| access.place.class == StorageClass::Workgroup) {
        return Err(Rule::NoWorkgroups(WorkgroupClause::Memory));
    }
    if kind.memory_scope() == Some(Scope::Workgroup) {
        return Err(Rule::NoWorkgroups(WorkgroupClause::MemoryScope));
    }
    check_without_subgroups(kind)
}

/// Checks that a stage without assignment by subgroups can run an instruction.
fn check_without_subgroups(kind: &InstructionKind) -> Result<(), Rule> {
    if [kind.execution_scope(), kind.memory_scope()].contains(&Some(Scope::Subgroup)) {
        return Err(Rule::StageSubgroups);
    }
    Ok(())
}

/// Returns the position of the first instruction that causes an error by itself. `None` if the error has
/// another cause, or the test has no text.
pub fn culprit(test: &Test, stage: Stage, error: &CompileError) -> Option<Span> {
    let CompileError::NotPlaceable { rule } = error else { return None };
    let test = crate::stage::told(test, stage);
    let mut instructions =
        test.threads.iter().flat_map(|thread| thread.instructions.iter().map(move |one| (thread, one)));
    let (_, instruction) = instructions.find(|(thread, instruction)| {
        let in_stage = || check_in_stage(&instruction.kind, stage);
        let refused = check_instruction(thread, instruction).and_then(|()| in_stage());
        refused.is_err_and(|own| own.to_string() == *rule)
    })?;
    Some(instruction.span).filter(|span| span.line > 0)
}

fn check_all_but_families(test: &Test) -> Result<(), Rule> {
    if test.dialect == Dialect::Hsa {
        return Err(Rule::Hsa);
    }
    check_threads(test)?;
    if test.reconverges_in_blocks() {
        return Err(Rule::ReconvergenceInBlock);
    }
    check_locations(test)?;
    for thread in &test.threads {
        for instruction in &thread.instructions {
            check_instruction(thread, instruction)?;
        }
    }
    Ok(())
}

fn check_threads(test: &Test) -> Result<(), Rule> {
    if test.threads.iter().any(|thread| thread.place == ThreadPlace::Host) {
        return Err(Rule::HostThread);
    }
    if test.threads.is_empty() {
        return Err(Rule::NoThreads);
    }
    if !test.system_sync.is_empty() {
        return Err(Rule::SeparateDispatches);
    }
    Ok(())
}

/// Checks storage class, type and properties of every location, by declaration and by use.
fn check_locations(test: &Test) -> Result<(), Rule> {
    let mut class_of_storage: Vec<Option<StorageClass>> = vec![None; test.locations.len()];
    let mut classify = |location: LocationId, class: StorageClass| {
        let storage = test.storage_of(location);
        let known = class_of_storage.get_mut(usize::from(storage.0)).map(|slot| *slot.get_or_insert(class));
        if known.is_some_and(|known| known != class) { Err(Rule::TwoClasses) } else { Ok(()) }
    };
    for (index, location) in test.locations.iter().enumerate() {
        if let Some(reference) = location.reference {
            classify(LocationId(index as u16), reference.storage_class())?;
        }
    }
    let mut workgroup_of_storage: Vec<Option<u32>> = vec![None; test.locations.len()];
    for thread in &test.threads {
        let ThreadPlace::Device(placement) = thread.place else { continue };
        for access in thread.instructions.iter().filter_map(|instruction| instruction.kind.access()) {
            let MemoryPlace { location, class, .. } = access.place;
            classify(location, class)?;
            if class == StorageClass::Workgroup
                && let Some(slot) = workgroup_of_storage.get_mut(usize::from(test.storage_of(location).0))
                && *slot.get_or_insert(placement.workgroup) != placement.workgroup
            {
                return Err(Rule::WorkgroupMemoryAcrossWorkgroups);
            }
        }
    }
    if class_of_storage.contains(&Some(StorageClass::Output)) {
        return Err(Rule::OutputInCompute);
    }
    check_floats(test)
}

/// Checks that final values of workgroup vectors are observed under names with the same type.
pub(crate) fn check_workgroup_vectors(test: &Test) -> Result<(), Rule> {
    let in_workgroup = |storage: LocationId| {
        let instructions = test.threads.iter().flat_map(|thread| &thread.instructions);
        instructions.filter_map(|instruction| instruction.kind.access()).any(|access| {
            access.place.class == StorageClass::Workgroup && test.storage_of(access.place.location) == storage
        })
    };
    for observable in test.observables() {
        let Observable::Location(location, _) = observable else { continue };
        let storage = test.storage_of(location);
        let (own, home) = (test.location(location), test.location(storage));
        if home.is_vector() && own.scalar_type() != home.scalar_type() && in_workgroup(storage) {
            return Err(Rule::VectorAlias);
        }
    }
    Ok(())
}

/// Checks that floating-point locations represent all their values exactly.
fn check_floats(test: &Test) -> Result<(), Rule> {
    let is_float = |scalar: ScalarType| matches!(scalar, ScalarType::F32 | ScalarType::F64);
    let fits = |value: i64| (0..=1 << 24).contains(&value);
    let locations = (0..test.locations.len()).map(|index| LocationId(index as u16));
    for location in locations {
        let scalar = test.location(location).scalar_type();
        let number = |component| test.initial_value(location, component).to_signed(scalar);
        if is_float(scalar) && !(0..test.location(location).components).map(number).all(fits) {
            return Err(Rule::FloatValue);
        }
    }
    let instructions = test.threads.iter().flat_map(|thread| &thread.instructions);
    for instruction in instructions {
        let Some(access) = instruction.kind.access() else { continue };
        // A comparator is never stored.
        let is_stored = |operand: &Operand| match access.kind {
            AccessKind::Rmw { operation: RmwOperation::CompareExchange { .. }, .. } => false,
            AccessKind::Load(_)
            | AccessKind::Store(_)
            | AccessKind::Rmw { .. }
            | AccessKind::Await { .. } => {
                matches!(operand, Operand::Constant(constant) if !fits(*constant))
            }
        };
        if is_float(access.place.scalar_type(test)) && instruction.kind.operands().iter().any(is_stored) {
            return Err(Rule::FloatValue);
        }
    }
    Ok(())
}

/// Checks that every loop of a thread only waits, so that its last turn represents all of them.
///
/// A turn may load, compare-exchange (if only failure goes back), compute and jump. Leaving out the reads of
/// earlier turns removes order and adds none, so outcomes that the model allows for the last turn alone are
/// allowed for all turns.
fn check_loops(thread: &Thread) -> Result<(), Rule> {
    let kind = |at: usize| thread.instructions.get(at).map(|instruction| &instruction.kind);
    for region in crate::flow::loops(thread) {
        // Registers that this turn has certainly assigned; none after the first branch.
        let mut assigned: Vec<RegisterId> = Vec::new();
        let mut certain = true;
        let in_loop: Vec<RegisterId> =
            region.clone().filter_map(kind).flat_map(InstructionKind::destinations).collect();
        for at in region.clone() {
            let Some(kind) = kind(at) else { continue };
            let fresh = |operand: &Operand| match operand {
                Operand::Constant(_) => true,
                Operand::Register(register) => !in_loop.contains(register) || assigned.contains(register),
            };
            let waits = match kind {
                InstructionKind::Access(access) => match access.kind {
                    AccessKind::Load(_) => true,
                    AccessKind::Rmw {
                        destination: Some(destination),
                        operation: RmwOperation::CompareExchange { compare, value, .. },
                    } => {
                        fresh(&compare)
                            && fresh(&value)
                            && only_failure_goes_back(thread, &region, at, destination, compare)
                    }
                    AccessKind::Store(_) | AccessKind::Rmw { .. } | AccessKind::Await { .. } => false,
                },
                InstructionKind::Fence { .. } => true,
                InstructionKind::Compute(Compute::Arithmetic { left, right, .. }) => {
                    fresh(left) && fresh(right)
                }
                InstructionKind::Flow(Flow::Branch { left, right, .. }) => fresh(left) && fresh(right),
                InstructionKind::Flow(Flow::Label(_)) => true,
                // An unconditional backward jump would never end.
                InstructionKind::Flow(Flow::Goto(target)) => {
                    label_position(thread, *target).is_some_and(|to| to > at)
                }
                InstructionKind::ControlBarrier(_)
                | InstructionKind::SplitBarrier(_)
                | InstructionKind::Subgroup(_)
                | InstructionKind::System(_)
                | InstructionKind::ShaderCall(_)
                | InstructionKind::Interlock(_)
                | InstructionKind::Compute(Compute::Move { .. } | Compute::Compare { .. })
                | InstructionKind::Flow(Flow::BranchIf { .. }) => false,
            };
            if !waits {
                return Err(Rule::LoopWithEffects);
            }
            if matches!(kind, InstructionKind::Flow(Flow::Branch { .. } | Flow::Goto(_))) {
                certain = false;
            }
            for register in kind.destinations() {
                if !certain {
                    return Err(Rule::LoopWithEffects);
                }
                assigned.push(register);
            }
        }
    }
    Ok(())
}

/// Returns true if a successful compare-exchange leaves the loop: the next instruction goes back if the old
/// value differs from the comparator, and no later one goes back.
fn only_failure_goes_back(
    thread: &Thread,
    region: &std::ops::Range<usize>,
    at: usize,
    destination: RegisterId,
    compare: Operand,
) -> bool {
    let next = thread.instructions.get(at + 1).map(|instruction| &instruction.kind);
    let goes_back_on_failure = matches!(next,
        Some(InstructionKind::Flow(Flow::Branch { relation: litmus::BranchRelation::NotEqual, left, right, target }))
            if *left == Operand::Register(destination) && *right == compare
                && label_position(thread, *target).is_some_and(|to| to <= at));
    goes_back_on_failure && region.end == at + 2
}

fn check_scope(scope: Scope) -> Result<(), Rule> {
    match scope {
        Scope::CrossDevice => Err(Rule::CrossDeviceScope),
        Scope::ShaderCall => Err(Rule::ShaderCall),
        Scope::FragmentInterlock => Err(Rule::FragmentInterlock),
        Scope::Invocation | Scope::Subgroup | Scope::Workgroup | Scope::QueueFamily | Scope::Device => Ok(()),
    }
}

fn check_ordered(operation: Operation, scope: Scope, semantics: Semantics) -> Result<(), Rule> {
    check_scope(scope)?;
    Ok(semantics::check(operation, scope, semantics)?)
}

fn check_instruction(thread: &Thread, instruction: &Instruction) -> Result<(), Rule> {
    match &instruction.kind {
        InstructionKind::Access(access) => check_access(access),
        InstructionKind::Fence { scope, semantics } => {
            check_ordered(Operation::MemoryBarrier, *scope, *semantics)
        }
        InstructionKind::ControlBarrier(barrier) => {
            if barrier.quorum.is_some() {
                return Err(Rule::QuorumBarrier);
            }
            if barrier.resource.is_some() {
                return Err(Rule::NamedBarrier);
            }
            if !matches!(barrier.execution_scope, Scope::Workgroup | Scope::Subgroup) {
                return Err(Rule::ExecutionScope);
            }
            check_ordered(
                Operation::ControlBarrier,
                barrier.memory_scope,
                barrier.semantics.unwrap_or(Semantics::RELAXED),
            )
        }
        InstructionKind::SplitBarrier(barrier) => {
            if !matches!(barrier.execution_scope, Scope::Workgroup | Scope::Subgroup) {
                return Err(Rule::ExecutionScope);
            }
            let operation = match barrier.half {
                SplitHalf::Arrive => Operation::Arrival,
                SplitHalf::Wait => Operation::Wait,
            };
            check_ordered(operation, barrier.memory_scope, barrier.semantics.unwrap_or(Semantics::RELAXED))
        }
        InstructionKind::System(operation) if operation.is_of_host() => Err(Rule::HostThread),
        InstructionKind::System(_) => Err(Rule::SeparateDispatches),
        InstructionKind::ShaderCall(_) => Err(Rule::ShaderCall),
        InstructionKind::Compute(Compute::Arithmetic { operation: ArithmeticOperation::Divide, .. }) => {
            Err(Rule::Division)
        }
        InstructionKind::Compute(Compute::Move { .. } | Compute::Compare { .. })
        | InstructionKind::Flow(Flow::BranchIf { .. }) => Err(Rule::Hsa),
        InstructionKind::Subgroup(_)
        | InstructionKind::Interlock(_)
        | InstructionKind::Compute(Compute::Arithmetic { .. })
        | InstructionKind::Flow(Flow::Label(_)) => Ok(()),
        InstructionKind::Flow(Flow::Goto(target) | Flow::Branch { target, .. }) => {
            // A parsed test has a position for every label.
            label_position(thread, *target).map_or(Err(Rule::LoopWithEffects), |_| Ok(()))
        }
    }
}

fn check_access(access: &MemoryAccess) -> Result<(), Rule> {
    if access.performer == Performer::Cooperative {
        return Err(Rule::CooperativeMatrix);
    }
    if access.place.address.is_some() {
        return Err(Rule::Hsa);
    }
    let (operation, is_rmw) = match access.kind {
        AccessKind::Load(_) => (Operation::Load, false),
        AccessKind::Store(_) => (Operation::Store, false),
        AccessKind::Rmw { destination: Some(_), .. } => (Operation::Rmw, true),
        AccessKind::Rmw { destination: None, .. } | AccessKind::Await { .. } => return Err(Rule::Hsa),
    };
    match access.strength {
        Access::Private | Access::NonPrivate | Access::Coherent { .. } if is_rmw => {
            return Err(Rule::PlainReadModifyWrite);
        }
        Access::Private | Access::NonPrivate => {}
        Access::Coherent { scope } => check_scope(scope)?,
        Access::Atomic { .. } if access.is_vector() => return Err(Rule::AtomicVector),
        Access::Atomic { scope, semantics } => check_ordered(operation, scope, semantics)?,
    }
    match (access.kind, access.strength) {
        (AccessKind::Rmw { operation: RmwOperation::Fetch(arithmetic, _), .. }, _)
            if matches!(arithmetic, ArithmeticOperation::Multiply | ArithmeticOperation::Divide) =>
        {
            Err(Rule::AtomicArithmetic(arithmetic))
        }
        (
            AccessKind::Rmw { operation: RmwOperation::CompareExchange { unequal, .. }, .. },
            Access::Atomic { scope, semantics },
        ) => Ok(semantics::check_unequal(scope, semantics, unequal)?),
        _ => Ok(()),
    }
}

/// Returns the position of a label in its thread.
pub(crate) fn label_position(thread: &Thread, label: litmus::LabelId) -> Option<usize> {
    thread.instructions.iter().position(
        |instruction| matches!(instruction.kind, InstructionKind::Flow(Flow::Label(here)) if here == label),
    )
}

fn arithmetic_name(operation: ArithmeticOperation) -> &'static str {
    match operation {
        ArithmeticOperation::Add => "add",
        ArithmeticOperation::Subtract => "subtract",
        ArithmeticOperation::Multiply => "multiply",
        ArithmeticOperation::Divide => "divide",
        ArithmeticOperation::And => "and",
        ArithmeticOperation::Or => "or",
        ArithmeticOperation::Xor => "xor",
        ArithmeticOperation::Minimum => "minimum",
        ArithmeticOperation::Maximum => "maximum",
    }
}
