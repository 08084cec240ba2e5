//! The complete list of reasons for which a test has no kernel, each with its message.

#![deny(clippy::wildcard_enum_match_arm)]

/// Defines an enum of reasons, each with its message.
macro_rules! reasons {
    (
        $(#[$attribute:meta])*
        pub enum $enum:ident {
            $($(#[$doc:meta])* $variant:ident $(($($field:tt)*))? => $message:literal,)*
        }
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
        pub enum $enum {
            $($(#[$doc])* #[error($message)] $variant $(($($field)*))?,)*
        }
    };
}

reasons! {
    /// A reason why [`compile`](crate::compile) has no kernel for a test. Its [`Display`](std::fmt::Display) form
    /// is the short skip reason in reports; the model still judges the test.
    #[non_exhaustive]
    pub enum Rule {
        /// A test of the HSA memory model: its synchronizing order has no counterpart in Vulkan.
        Hsa => "HSA",
        /// A read-modify-write that is not atomic, which no test text can express.
        PlainReadModifyWrite => "plain read-modify-write",
        /// An atomic access of several components, which no test text can express.
        AtomicVector => "atomic vector",
        /// A missing table entry: a defect of this crate.
        NoEntry(#[from] litmus::NoEntry) => "{0}",
        /// An instruction that no segment contains: a defect of this crate.
        Internal(&'static str) => "internal: {0} inside a segment",
        /// The test has no thread, so nothing can be dispatched.
        NoThreads => "no threads",
        /// A thread of the host (`@host`) runs outside of the kernel.
        HostThread => "host thread",
        /// Host threads can only load, store, fence, branch, flush, invalidate, submit and wait.
        HostComputation => "computation of a host thread",
        /// Host threads have no read-modify-writes.
        HostReadModifyWrite => "read-modify-write of a host thread",
        /// Host threads access whole words.
        HostType => "type of a host location",
        /// Host threads access only buffers.
        HostMemoryOutsideBuffer => "host thread together with images or separate memory",
        /// The instructions of a host thread between two of its calls run for every instance, so they may only
        /// jump forward, and over no call.
        HostBranch => "loop of a host thread, or branch over a call",
        /// With host threads, system-synchronizes-with may not order a host instruction before a whole thread
        /// that no host thread submits.
        HostSynchronization => "system-synchronizes-with together with host threads",
        /// All memory of host threads is in one buffer.
        HostMemoryOfTwoKinds => "host memory of two kinds",
        /// A fence belongs to a whole submission.
        PartOfSubmission => "wait for part of a submission",
        /// Only queues signal and wait for binary semaphores (VUID-vkSignalSemaphore-semaphore-03257).
        HostBinarySemaphore => "binary semaphore of the host",
        /// The wait for a binary semaphore must be submitted after its signal and everything that the signal
        /// depends on: by the same host thread, or if no host thread submits the signal.
        LateSignal => "binary semaphore whose signal may be submitted behind its wait",
        /// A host thread waits for an event that never happens.
        EndlessWait => "wait without a signal",
        /// `ssw`, `avdevice` and `visdevice` take place between dispatches: the test does not fit one kernel, but
        /// a [program](crate::Program).
        SeparateDispatches => "separate dispatches",
        /// An `avdevice` between accesses, fences or barriers of its thread: the API makes writes available only
        /// between dispatches.
        AvailabilityWithinThread => "avdevice within a thread",
        /// A `visdevice` between accesses, fences or barriers of its thread: the API makes writes visible only
        /// between dispatches.
        VisibilityWithinThread => "visdevice within a thread",
        /// Access masks that would also cover accesses of other threads: a dependency applies to whole
        /// dispatches, with the union of all masks.
        MaskCoversOtherThreads => "access mask of other threads",
        /// System-synchronizes-with from a thread to itself: one invocation would run in two dispatches.
        SynchronizedWithItself => "one thread in several dispatches",
        /// A cycle of system-synchronizes-with through parts of threads: one invocation would run in two
        /// dispatches.
        CyclicDispatches => "dispatches in a cycle",
        /// Threads of one workgroup in different dispatches are in different workgroups on a device, but the test
        /// relies on their being in one.
        WorkgroupInSeveralDispatches => "one workgroup in several dispatches",
        /// Roles are split by workgroup, and there is only one.
        OneWorkgroup => "one workgroup: no roles to split",
        /// One dispatch runs on one queue: the test does not fit one kernel, but a [program](crate::Program).
        SeveralQueues => "several queues",
        /// An access that is not aligned to its size, ends after 16 bytes, or is inside a texel.
        Offset => "offset into a location",
        /// Images have one 32-bit component (`R32_UINT`, `R32_SFLOAT`).
        ImageType => "type of an image",
        /// Final values of images can be read only if all image locations have one type.
        MixedImageTypes => "image together with another type",
        /// Workgroup memory with explicit layout in a module for Vulkan 1.1: the extension requires SPIR-V 1.4.
        WorkgroupLayoutVersion => "explicit layout of workgroup memory in Vulkan 1.1",
        /// Workgroup memory with a nonzero initial value, or with several access paths, in a variant where the
        /// driver zeroes it: the initializer must be a null constant (VUID-StandaloneSpirv-OpVariable-04734).
        InitializedWorkgroupMemory => "workgroup memory that no driver initializes",
        /// Private reads of unwritten workgroup memory by several threads: the thread that stores the initial
        /// value races with the others.
        PrivateWorkgroupMemory => "private reads by several threads of unwritten workgroup memory",
        /// A vector in an image: a texel is one number.
        VectorImage => "vector in an image",
        /// The final value of a workgroup vector under a name with another element size.
        VectorAlias => "workgroup vector observed as another type",
        /// Vulkan has no 8-bit or 16-bit atomics.
        NarrowAtomic => "atomic of less than 32 bits",
        /// Floating-point atomics are load, store, exchange, add, minimum and maximum.
        FloatAtomic => "floating-point atomic",
        /// Values of floating-point locations are integers from 0 to 2^24, which all types represent exactly.
        FloatValue => "floating-point value",
        /// The names of one storage have several storage classes; memory has only one.
        TwoClasses => "two classes on one location",
        /// Workgroup memory (`sc1`) of threads in different workgroups: each workgroup has its own.
        WorkgroupMemoryAcrossWorkgroups => "sc1 across workgroups",
        /// Tessellation control outputs (`sc3`) do not exist in a compute shader.
        OutputInCompute => "output in compute",
        /// Vertex and fragment shaders have no workgroups: neither the scope (VUID-StandaloneSpirv-None-07321 as
        /// memory scope, VUID-StandaloneSpirv-None-04637 as execution scope) nor the memory
        /// (VUID-StandaloneSpirv-None-04645).
        NoWorkgroups(WorkgroupClause) => "no workgroups in this stage: {0}",
        /// Threads of one subgroup, or an instruction of subgroup scope, in a stage whose invocations cannot be
        /// assigned by subgroups: their subgroups are known only at run time.
        StageSubgroups => "subgroups in this stage",
        /// Split barriers are in compute shaders only (VUID-StandaloneSpirv-SplitBarrierEXT-13552).
        SplitBarrierStage => "split barrier in this stage",
        /// Host threads submit only dispatches.
        HostWithGraphicsStage => "host thread together with graphics stages",
        /// Mesh and task shaders require SPIR-V 1.4 (SPV_EXT_mesh_shader, "Dependencies").
        StageTarget => "SPIR-V 1.3 in this stage",
        /// One kernel for threads in different stages: a kernel has one stage.
        SeveralStages => "threads of several stages in one kernel",
        /// A single thread, in a variant with threads in different stages.
        SingleStage => "a single thread where threads are in different stages",
        /// No shader can use the CrossDevice scope (VUID-StandaloneSpirv-None-04638).
        CrossDeviceScope => "CrossDevice scope",
        /// A subgroup operation, or a subgroup barrier under a branch, outside of a single compute kernel, or in
        /// a progress test: only compute kernels with a whole subgroup determine which lanes execute it together.
        SubgroupOperation => "subgroup operation",
        /// A tangle that depends on uniform control flow in a block of subgroup operations. Kernels have idle lanes
        /// and run several instances, so that not every lane of a workgroup enters the block.
        ReconvergenceInBlock => "reconvergence within a block of subgroup operations",
        /// A shader call, or ShaderCall scope: ray tracing pipelines are not supported.
        ShaderCall => "shader call",
        /// No shader can use the FragmentInterlock scope (VUID-StandaloneSpirv-None-04638).
        FragmentInterlock => "FragmentInterlock scope",
        /// An interlocked section outside of fragment shaders (SPIR-V, OpBeginInvocationInterlockEXT).
        InterlockStage => "interlocked section outside of fragment shaders",
        /// A thread with several sections, with part of one, or with one under a branch: a fragment executes each
        /// end exactly once, the begin first (SPIR-V, "Entry point and execution model").
        InterlockNotOnce => "interlocked section that is not executed exactly once",
        /// Sections in several draws: each draw has its own render pass, and fragments of different ones do not
        /// overlap.
        InterlockDraws => "interlocked sections in several draws",
        /// An access to a cooperative matrix, which kernels do not support.
        CooperativeMatrix => "cooperative matrix",
        /// SPIR-V has no atomic multiplication.
        AtomicMultiply => "atomic multiply",
        /// SPIR-V has no atomic division.
        AtomicDivide => "atomic divide",
        /// Division by zero is undefined in SPIR-V, so kernels do not divide registers.
        Division => "division",
        /// A loop that does more than wait: earlier iterations would have an effect (a write, or a value that a later
        /// iteration uses), but the model considers only the last iteration.
        LoopWithEffects => "loop with effects",
        /// Kernels of [forward progress](crate::progress) support only 32-bit locations in buffers with
        /// descriptors.
        ProgressMemory => "progress test beyond words in buffers",
        /// References to one storage, in a variant that excludes them.
        AliasesUnderRestrict => "aliases under restrict",
        /// A non-private access without availability or visibility: coherent variables always have both.
        GlslNonPrivate => "non-private access without availability or visibility under GLSL450",
        /// A private access to workgroup memory, which is always coherent.
        GlslPrivate => "private access to workgroup memory under GLSL450",
        /// A location with coherent and private plain accesses: GLSL450 decorates variables.
        GlslMixed => "coherent and private accesses to one location under GLSL450",
        /// Availability or visibility in the semantics of an operation.
        GlslDomains => "availability in semantics under GLSL450",
        /// Physical storage buffers in GLSL450: pointers cannot be decorated coherent.
        GlslAddress => "device address under GLSL450",
        /// Kernels of [forward progress](crate::progress) have no split barriers; only `check --progress` judges
        /// them.
        ProgressSplitBarrier => "split barrier in a progress test",
        /// Control barriers of Vulkan have no resource.
        NamedBarrier => "named barrier",
        /// Control barriers of Vulkan have no quorum.
        QuorumBarrier => "quorum barrier",
        /// Execution scopes other than Workgroup and Subgroup (VUID-StandaloneSpirv-None-04636; for split
        /// barriers VUID-RuntimeSpirv-OpControlBarrierArriveEXT-13553).
        ExecutionScope => "execution scope of a control barrier",
        /// A control barrier of the workgroup that a jump can skip is not in uniform control flow; nor is half of
        /// a split barrier (VUID-RuntimeSpirv-OpControlBarrierArriveEXT-13558), which is refused for subgroups
        /// too.
        GuardedBarrier => "control barrier under a branch",
        /// The threads of a workgroup (or of a subgroup, for that execution scope) do not execute the same
        /// control barriers in the same order, which is undefined on a device. The same holds for arrivals and
        /// waits of split barriers, except that a thread may omit the wait after its last arrival.
        UnevenBarrier => "control barrier not reached by every thread",
        /// A thread executes one barrier instance twice: the model has one instance, a device two.
        RepeatedBarrier => "control barrier instance used twice",
        /// A subgroup of the device has fewer lanes than the test has threads in a subgroup.
        SubgroupTooSmall => "more threads than lanes in a subgroup",
        /// A variant with a workgroup size that may give partial subgroups, so that it is unspecified which
        /// invocations share one, but the test has a subgroup operation or an instruction of subgroup scope.
        SubgroupsInShapedWorkgroup => "subgroups in workgroups of a given size",
        /// A workgroup of the variant's size has fewer invocations than the test has threads in one.
        ShapeTooSmall => "more threads than invocations in a workgroup of this size",
        /// A dispatch with the variant's number of workgroups has none for some thread of the test.
        TooFewWorkgroups => "more workgroups in the test than in a dispatch of this size",
        /// Threads of one workgroup are assigned by subgroups, but the variant lets their size vary.
        VaryingSubgroups => "threads placed by subgroups of varying size",
        /// Graphics stages have no workgroups with a size or a number, and only compute pipelines can require a
        /// subgroup size.
        StageShape => "size or number of workgroups or subgroups in this stage",
        /// Memory semantics that Vulkan does not allow for an instruction.
        Semantics(#[from] SemanticsRule) => "{0}",
    }
}

reasons! {
    /// A use of workgroups that a stage without them lacks, with the clause.
    pub enum WorkgroupClause {
        /// An instruction with workgroup memory scope.
        MemoryScope => "memory scope (VUID-StandaloneSpirv-None-07321)",
        /// A control barrier of the workgroup.
        ExecutionScope => "control barrier (VUID-StandaloneSpirv-None-04637)",
        /// A location in workgroup memory.
        Memory => "memory (VUID-StandaloneSpirv-None-04645)",
    }
}

reasons! {
    /// A rule on memory semantics (Vulkan, appendix "Vulkan Environment for SPIR-V").
    #[non_exhaustive]
    pub enum SemanticsRule {
        /// Relaxed order with storage classes (VUID-StandaloneSpirv-MemorySemantics-10871).
        RelaxedWithClasses => "relaxed order with storage classes",
        /// An order without a storage class (VUID-StandaloneSpirv-MemorySemantics-10870). Only Uniform,
        /// Workgroup, Image and Output memory count.
        OrderWithoutClass => "order without a storage class",
        /// A memory barrier without an order (VUID-StandaloneSpirv-MemorySemantics-10869).
        RelaxedBarrier => "memory barrier without an order",
        /// An atomic load that releases (VUID-StandaloneSpirv-MemorySemantics-10868).
        ReleaseLoad => "release on a load",
        /// An atomic store that acquires (VUID-StandaloneSpirv-MemorySemantics-10867).
        AcquireStore => "acquire on a store",
        /// An arrival that acquires (VUID-RuntimeSpirv-OpControlBarrierArriveEXT-13556).
        AcquireArrival => "acquire on an arrival",
        /// A wait that releases (VUID-RuntimeSpirv-OpControlBarrierWaitEXT-13557).
        ReleaseWait => "release on a wait",
        /// Availability without release (VUID-StandaloneSpirv-MemorySemantics-10872).
        AvailableWithoutRelease => "availability without release",
        /// Visibility without acquire (VUID-StandaloneSpirv-MemorySemantics-10873).
        VisibleWithoutAcquire => "visibility without acquire",
        /// An order other than relaxed at Invocation scope (VUID-StandaloneSpirv-None-04641).
        OrderAtInvocation => "order at invocation scope",
        /// A failed compare-exchange that releases (VUID-StandaloneSpirv-UnequalMemorySemantics-10875).
        ReleaseUnequal => "release of a failed compare-exchange",
        /// A failed compare-exchange with a stronger order (VUID-StandaloneSpirv-UnequalMemorySemantics-10876).
        UnequalStronger => "failed compare-exchange ordered more strongly",
        /// A failed compare-exchange with more storage classes
        /// (VUID-StandaloneSpirv-UnequalMemorySemantics-10877).
        UnequalClasses => "failed compare-exchange with more storage classes",
        /// A failed compare-exchange with more visibility (VUID-StandaloneSpirv-UnequalMemorySemantics-10878).
        UnequalVisible => "failed compare-exchange with more visibility",
        /// SubgroupMemory, CrossWorkgroupMemory or AtomicCounterMemory. Vulkan ignores them, and the latter two
        /// need capabilities that no Vulkan device has.
        Ignored => "ignored storage class of semantics",
        /// SequentiallyConsistent semantics (VUID-StandaloneSpirv-MemorySemantics-10866): only other memory models
        /// have them.
        Sequential => "sequentially consistent order",
        /// A word with several of Acquire, Release and AcquireRelease, with SequentiallyConsistent, or with bits
        /// that litmus tests lack (VUID-StandaloneSpirv-MemorySemantics-10865 and -10866). A module can contain
        /// it, a test cannot.
        Unknown => "memory semantics that litmus tests do not use",
    }
}
