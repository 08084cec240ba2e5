//! The complete list of reasons for which a test has no kernel, each with its message.

#![deny(clippy::wildcard_enum_match_arm)]

use litmus::ArithmeticOperation;

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
    HostMemoryOutsideBuffer,
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
    HostBinarySemaphore,
    /// The wait for a binary semaphore must be submitted after its signal and everything that the signal
    /// depends on: by the same host thread, or if no host thread submits the signal.
    #[error("binary semaphore whose signal may be submitted behind its wait")]
    LateSignal,
    /// A host thread waits for an event that never happens.
    #[error("wait without a signal")]
    EndlessWait,
    /// `ssw`, `avdevice` and `visdevice` take place between dispatches: the test does not fit one kernel, but
    /// a [program](crate::Program).
    #[error("separate dispatches")]
    SeparateDispatches,
    /// An `avdevice` between accesses, fences or barriers of its thread: the API makes writes available only
    /// between dispatches.
    #[error("avdevice within a thread")]
    AvailabilityWithinThread,
    /// A `visdevice` between accesses, fences or barriers of its thread: the API makes writes visible only
    /// between dispatches.
    #[error("visdevice within a thread")]
    VisibilityWithinThread,
    /// Access masks that would also cover accesses of other threads: a dependency applies to whole
    /// dispatches, with the union of all masks.
    #[error("access mask of other threads")]
    MaskCoversOtherThreads,
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
    /// One dispatch runs on one queue: the test does not fit one kernel, but a [program](crate::Program).
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
    MixedImageTypes,
    /// Workgroup memory with explicit layout in a module for Vulkan 1.1: the extension requires SPIR-V 1.4.
    #[error("explicit layout of workgroup memory in Vulkan 1.1")]
    WorkgroupLayoutVersion,
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
    /// Split barriers are in compute shaders only (VUID-StandaloneSpirv-SplitBarrierEXT-13552).
    #[error("split barrier in this stage")]
    SplitBarrierStage,
    /// Host threads submit only dispatches.
    #[error("host thread together with graphics stages")]
    HostWithGraphicsStage,
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
    /// and run several instances, so that not every lane of a workgroup enters the block.
    #[error("reconvergence within a block of subgroup operations")]
    ReconvergenceInBlock,
    /// A shader call, or ShaderCall scope: ray tracing pipelines are not supported.
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
    InterlockNotOnce,
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
    /// A loop that does more than wait: earlier iterations would have an effect (a write, or a value that a later
    /// iteration uses), but the model considers only the last iteration.
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
    SubgroupsInShapedWorkgroup,
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
    /// SequentiallyConsistent semantics (VUID-StandaloneSpirv-MemorySemantics-10866): only other memory models
    /// have them.
    #[error("sequentially consistent order")]
    Sequential,
    /// A word with several of Acquire, Release and AcquireRelease, with SequentiallyConsistent, or with bits
    /// that litmus tests lack (VUID-StandaloneSpirv-MemorySemantics-10865 and -10866). A module can contain
    /// it, a test cannot.
    #[error("memory semantics that litmus tests do not use")]
    Unknown,
}

impl From<SemanticsRule> for Rule {
    fn from(rule: SemanticsRule) -> Rule {
        Rule::Semantics(rule)
    }
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
