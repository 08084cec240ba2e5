//! Fault injection: rules of the memory model that the machine breaks on request, as defects of real drivers,
//! compilers and chips do.
//!
//! Each row of the table is one fault. To add one, add a row here and a check at the place in the machine
//! that implements the rule.

use std::str::FromStr;

/// The expected result of running the test suite on a device with a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpectedEffect {
    /// A forbidden outcome, or values that no execution produces.
    Violates,
    /// No result: the device hangs, is lost, or leaves instances unexecuted.
    Inconclusive,
    /// Nothing: no race-free test can distinguish it from a sound device; the text is the reason.
    Invisible(&'static str),
}

impl ExpectedEffect {
    /// Returns the word that reports print.
    pub fn word(self) -> &'static str {
        match self {
            ExpectedEffect::Violates => "violates",
            ExpectedEffect::Inconclusive => "inconclusive",
            ExpectedEffect::Invisible(_) => "invisible",
        }
    }
}

/// The description of a fault for users.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The fault that the row describes.
    pub fault: Fault,
    /// Its name on the command line.
    pub name: &'static str,
    /// The group of rules that the fault belongs to.
    pub family: &'static str,
    /// The rule that is broken, and how.
    pub rule: &'static str,
    /// A real bug of this kind, if one is known.
    pub reference: Option<&'static str>,
    /// The expected result of the suite.
    pub expect: ExpectedEffect,
}

macro_rules! faults {
    ($($family:literal: $($variant:ident $name:literal $rule:literal $reference:expr, $expect:expr;)*)*) => {
        /// A rule that the machine breaks.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        pub enum Fault {
            /// A sound machine.
            #[default]
            None,
            $($(
                #[doc = $rule]
                $variant,
            )*)*
        }

        pub const FAULTS: &[Row] = &[
            $($(Row {
                fault: Fault::$variant,
                name: $name,
                family: $family,
                rule: $rule,
                reference: $reference,
                expect: $expect,
            },)*)*
        ];
    };
}

use ExpectedEffect::{Inconclusive, Invisible, Violates};

faults! {
    "release":
    ReleaseNoFlush "release-no-flush"
        "MakeAvailable of a release flushes nothing"
        Some("google/clspv#1638"), Violates;
    ReleaseNotCumulative "release-not-cumulative"
        "a release flushes the invocation's own lines, but not those of other invocations of its workgroup \
         that it has observed"
        Some("llvm/llvm-project#160501"), Violates;
    StoreSinksBelowRelease "store-sinks-below-release"
        "the compiler moves plain stores past a release"
        Some("google/clspv#1652"), Violates;
    LoadSinksBelowRelease "load-sinks-below-release"
        "the compiler moves plain loads past a release"
        Some("google/clspv#1652"), Violates;
    AtomicStoreSinksBelowRelease "release-does-not-drain-stores"
        "older atomic stores are performed after a release"
        Some("KhronosGroup/VK-GL-CTS#295"), Violates;
    FlagOvertakesFlush "flag-overtakes-flush"
        "a releasing store is performed before its flush has completed"
        Some("JuliaGPU/AcceleratedKernels.jl#91"), Violates;
    "acquire":
    AcquireNoInvalidate "acquire-no-invalidate"
        "MakeVisible of an acquire invalidates nothing"
        Some("google/clspv#1638"), Violates;
    AcquireOwnCacheOnly "acquire-own-cache-only"
        "an acquire invalidates the invocation's own cache, not those above it"
        Some("llvm/llvm-project#81450"), Violates;
    InvalidateOrderWrong "invalidate-order-wrong"
        "the inner cache is invalidated before the outer one, and refilled with its stale lines"
        Some("llvm/llvm-project#81450"), Violates;
    LoadHoistedOverAcquire "load-hoisted-over-acquire"
        "the compiler moves plain loads before an acquire"
        Some("gpuweb/spirv-execution-env#16"), Violates;
    AtomicLoadHoistedOverAcquire "atomic-load-hoisted-over-acquire"
        "later atomic loads are performed before an acquire"
        Some("KhronosGroup/VK-GL-CTS#295"), Violates;
    StoreHoistedOverAcquire "store-hoisted-over-acquire"
        "the compiler moves stores before an acquire"
        Some("gpuweb/spirv-execution-env#16"), Violates;
    ReadOnlyKernel "read-only-inference"
        "an acquire of a kernel that stores only its results invalidates nothing"
        Some("docs/findings F2: NIR treats memory that a shader does not write as constant"), Violates;
    ReadOnlyLoadMerged "readonly-load-merged"
        "plain loads of a NonWritable buffer are merged over an acquire"
        Some("KhronosGroup/SPIRV-Tools#6412"), Violates;
    AtomicLoadHoistedFromLoop "atomic-load-hoisted-from-loop"
        "a relaxed atomic load in a loop is performed once, before the loop"
        Some("GPUOpen-Drivers/llpc#313"), Violates;
    "memory barriers":
    FenceOrdersNothing "fence-orders-nothing"
        "memory barriers order nothing"
        Some("llvm/llvm-project#223023"), Violates;
    FenceWaitOnly "fence-waitcnt-only"
        "memory barriers wait, but neither flush nor invalidate"
        Some("GPUOpen-Drivers/llpc#144"), Violates;
    AtomicHoistedOverReleaseFence "atomic-hoisted-over-rel-fence"
        "an atomic store is performed before the releasing barrier in front of it"
        Some("llvm/llvm-project#223023"), Violates;
    AtomicSunkBelowAcquireFence "atomic-sunk-below-acq-fence"
        "an atomic load is performed after the acquiring barrier behind it"
        Some("llvm/llvm-project#223023"), Violates;
    "control barriers":
    BarrierWithoutMemory "cbar-without-memory"
        "control barriers wait, but neither flush nor invalidate"
        Some("gfx-rs/wgpu#4500"), Violates;
    BarrierOrdersNothing "cbar-orders-nothing"
        "accesses move across control barriers with semantics"
        Some("tracel-ai/cubecl#1466"), Violates;
    BarrierDoesNotWait "cbar-does-not-wait"
        "control barriers do not wait"
        Some("KhronosGroup/MoltenVK#2711"), Violates;
    BarrierOpensEarly "cbar-releases-early"
        "control barriers open when half have arrived"
        Some("KhronosGroup/MoltenVK#2711"), Violates;
    BarrierScopeDemoted "cbar-scope-demoted-sg"
        "the memory part of control barriers reaches the subgroup only"
        Some("tracel-ai/cubecl#1466"), Violates;
    BarrierLargeWorkgroup "cbar-one-subgroup-only"
        "control barriers of workgroups with several subgroups open when one subgroup has arrived"
        Some("KhronosGroup/MoltenVK#2711"), Violates;
    BarrierPartialSubgroup "cbar-partial-subgroup"
        "control barriers of workgroups with a partial subgroup open when the full subgroups have arrived"
        Some("KhronosGroup/MoltenVK#2711"), Violates;
    BarrierSlotsRunOut "cbar-slots-run-out"
        "workgroups after the first 256 of a dispatch do not wait at control barriers"
        Some("Mesa, pvr"), Violates;
    "split barriers":
    SplitArrivalForgotten "split-arrival-forgotten"
        "an arrival at a split barrier is sometimes not counted, and the waits of its round never end"
        None, Inconclusive;
    SplitWaitTooEarly "split-wait-too-early"
        "waits at split barriers end when half have arrived"
        None, Violates;
    SplitWrongRound "split-wrong-round"
        "a wait at a split barrier ends once all have arrived for the previous round"
        None, Violates;
    SplitArrivalRelaxed "split-arrival-without-release"
        "arrivals at split barriers are counted, but release nothing"
        None, Violates;
    SplitWaitRelaxed "split-wait-without-acquire"
        "waits at split barriers wait, but acquire nothing"
        None, Violates;
    SplitIgnored "split-ignored"
        "arrivals and waits at split barriers do nothing"
        Some("SwiftShader, which accepts OpControlBarrierArriveINTEL and ignores it"), Violates;
    "subgroup operations":
    SubgroupActiveLanesIgnored "subgroup-active-lanes-ignored"
        "subgroup operations include inactive lanes"
        None, Violates;
    MaximalReconvergenceIgnored "maximal-reconvergence-ignored"
        "diverged lanes may stay diverged after the merge, although the shader declares maximal \
         reconvergence"
        None, Violates;
    "scopes":
    SyncScopeDemoted "sync-scope-demoted-wg"
        "availability and visibility reach the workgroup at most"
        Some("KhronosGroup/SPIRV-Cross#2473"), Violates;
    AtomicScopeDemoted "atomic-scope-demoted-wg"
        "atomics are performed at the workgroup's cache at most"
        Some("KhronosGroup/Vulkan-Docs#2172"), Violates;
    SubgroupSyncNothing "subgroup-sync-noop"
        "synchronization at subgroup scope is lowered to nothing"
        Some("tracel-ai/cubecl#1466"), Violates;
    OneSubgroupDemoted "wg-scope-dropped-one-subgroup"
        "synchronization at workgroup scope is lowered to nothing if a workgroup is one subgroup"
        Some("llvm/llvm-project#207473"), Violates;
    QueueFamilyDemoted "qf-scope-demoted-wg"
        "queue-family scope is treated as workgroup scope"
        Some("microsoft/DirectXShaderCompiler#6848"), Violates;
    DeviceScopeIsQueueFamily "dv-scope-demoted-qf"
        "device scope is treated as queue-family scope"
        Some("microsoft/DirectXShaderCompiler#6848"), Violates;
    "availability and visibility":
    AvailableDropped "av-on-access-dropped"
        "MakePointerAvailable on a store is lost"
        Some("GPUOpen-Drivers/llpc#94"), Violates;
    VisibleDropped "vis-on-access-dropped"
        "MakePointerVisible on a load is lost"
        Some("GPUOpen-Drivers/llpc#819"), Violates;
    NonPrivateLost "nonprivate-lost"
        "NonPrivatePointer is lost"
        Some("gfx-rs/wgpu#8805"), Violates;
    "storage classes":
    BufferNotFlushed "class0-not-flushed"
        "UniformMemory is left out of the flush of a release"
        Some("GPUOpen-Drivers/llpc#144"), Violates;
    SemanticsOfFlagOnly "sem-uses-flag-class-only"
        "the storage classes of an atomic's semantics are replaced by that of the atomic itself"
        Some("shader-slang/slang#6401"), Violates;
    WorkgroupMemoryNotFlushed "class1-not-flushed"
        "WorkgroupMemory is left out of the flush of a release"
        None, Violates;
    WorkgroupMemoryNotInvalidated "class1-not-invalidated"
        "WorkgroupMemory is left out of the invalidation of an acquire"
        Some("Mesa KBL-0550"), Violates;
    ImageNotFlushed "image-not-flushed"
        "ImageMemory is left out of the flush of a release"
        Some("gfx-rs/wgpu#9185"), Violates;
    ImageNotInvalidated "image-not-invalidated"
        "ImageMemory is left out of the invalidation of an acquire"
        Some("Mesa freedreno, A6xx register stomp list"), Violates;
    "images":
    ImageAtomicsAtWorkgroup "image-atomics-at-l1"
        "atomics on texels are performed at the workgroup's cache"
        None, Violates;
    "coherence":
    AtomicLoadsReordered "corr-stale-atomic-load"
        "two atomic loads of one location are performed in either order"
        Some("reeselevine/arm-issue"), Violates;
    AtomicLoadPassesStore "cowr-atomic-load-early"
        "an atomic load is performed before an older atomic store to the same location"
        Some("llvm/offload-test-suite#226"), Violates;
    AtomicStoreHoistedOverLoad "corw-atomic-store-early"
        "an atomic store is performed before an older atomic load of the same location"
        Some("llvm/offload-test-suite#226"), Violates;
    RelaxedAtomicFromL0 "relaxed-atomic-from-l0"
        "atomic loads hit the invocation's own cache"
        Some("reeselevine/arm-issue"), Violates;
    StaleWorkgroupLine "stale-l1-survives-atomic"
        "atomic loads of wide scope are served by the workgroup's cache"
        Some("KhronosGroup/VK-GL-CTS#295"), Violates;
    AtomicStoreInL0 "atomic-store-in-l0"
        "atomic stores stay in the invocation's own cache"
        Some("gfx-rs/wgpu#9185"), Violates;
    PlainLoadsReordered "plain-same-addr-loads-reordered"
        "two plain loads of one location are performed in either order"
        Some("reeselevine/webgpu-litmus#36"),
        Invisible("no ordered write of another invocation fits between two adjacent plain loads of a race-free test");
    PlainStoresReordered "plain-same-addr-stores-reordered"
        "two plain stores to one location are performed in either order"
        Some("reeselevine/amd-issue"), Violates;
    LoadMissesOwnStore "load-misses-own-store"
        "a plain load is performed before an older plain store to the same location"
        Some("llvm/offload-test-suite#226"), Violates;
    StoreHoistedOverLoad "store-hoisted-over-load"
        "a plain store is performed before an older plain load of the same location"
        Some("llvm/offload-test-suite#226"), Violates;
    AliasStoreHoisted "alias-store-over-load"
        "a plain store is performed before an older load of the same location through another reference"
        None, Violates;
    "read-modify-writes":
    RmwNotAtomic "rmw-not-atomic"
        "the halves of a read-modify-write are performed separately"
        Some("google/amber#1055"), Violates;
    RmwAtWorkgroup "rmw-at-l1"
        "read-modify-writes are performed at the workgroup's cache"
        Some("KhronosGroup/Vulkan-Docs#2172"), Violates;
    RmwPassesStore "rmw-bypasses-store-buffer"
        "a read-modify-write is performed before an older atomic store to the same location"
        Some("llvm/offload-test-suite#226"), Violates;
    RmwResultLost "rmw-result-lost"
        "the write of a read-modify-write is sometimes lost"
        Some("google/amber#1055"), Violates;
    FloatAddNotAtomic "float-add-not-atomic"
        "read-modify-writes of floating-point numbers are a load, an addition and a store"
        None, Violates;
    RmwAmongThemselves "rmw-atomic-among-rmws"
        "read-modify-writes exclude each other, but not atomic stores"
        Some("docs/findings F6: SwiftShader, minimum and maximum"), Violates;
    RmwInHostMemory "rmw-at-l1-in-host-memory"
        "read-modify-writes of host-visible memory are performed at the workgroup's cache"
        Some("KhronosGroup/Vulkan-Docs#2172"), Violates;
    "memory and its lines":
    ZeroInitMissing "zero-init-missing"
        "some memory holds garbage instead of its initial contents"
        Some("gfx-rs/wgpu#4591"), Violates;
    WorkgroupMemoryZeroedLate "workgroup-memory-zeroed-late"
        "each invocation sets workgroup memory with an initializer to zero, and no invocation waits for the others"
        Some("gfx-rs/wgpu#4591"), Violates;
    EvictionDropsDirty "eviction-drops-dirty"
        "dirty lines are sometimes lost when they are written back"
        Some("KhronosGroup/Vulkan-Docs#2172"), Violates;
    NarrowStoreIsWord "byte-mask-missing"
        "a store of one or two bytes writes the whole word, with the old values of the other bytes"
        None, Violates;
    Tearing "wide-atomic-torn"
        "an atomic store of eight bytes is performed as two of four"
        None, Violates;
    WholeLineWrittenBack "whole-line-written-back"
        "a line of two words is written back entirely, with the old value of the unwritten word"
        None, Violates;
    ForwardingIgnoresSize "forwarding-ignores-size"
        "a load after a narrower store of the same invocation reads the other bytes as zero"
        None, Violates;
    ConstantCacheStale "constant-cache-stale"
        "memory that a kernel only reads is served by a cache of its workgroup that no acquire invalidates"
        None, Violates;
    "dispatches":
    AvailableDeviceNothing "avdevice-no-flush"
        "a barrier between dispatches writes nothing back"
        Some("gfx-rs/wgpu#9185"), Violates;
    VisibleDeviceNothing "visdevice-no-invalidate"
        "a barrier between dispatches invalidates nothing"
        Some("gfx-rs/wgpu#9185"), Violates;
    MemoryAccessIgnored "memory-access-ignored"
        "MEMORY_WRITE in the access mask of a barrier between dispatches writes nothing back"
        None, Violates;
    DependencyIgnored "dispatch-dependency-ignored"
        "a dispatch starts before the dispatch that it waits for has ended"
        Some("gfx-rs/wgpu#9185"), Violates;
    StageMaskTooNarrow "stage-mask-too-narrow"
        "the stages of a barrier leave out those of dispatches, which then do not wait for each other"
        Some("gfx-rs/wgpu#9185"), Violates;
    EventWaitTooEarly "event-wait-too-early"
        "the wait for an event ends before the event is set"
        None, Violates;
    SemaphorePublishesNothing "semaphore-publishes-nothing"
        "the signal of a semaphore makes nothing available"
        None, Violates;
    OwnershipTransferDropped "ownership-transfer-dropped"
        "memory released to another queue family stays in the caches of the first"
        None, Violates;
    "graphics stages":
    FragmentStoresKept "fragment-stores-kept"
        "stores of fragments stay in caches at a barrier before the next draw"
        None, Violates;
    HelperStores "helper-stores"
        "stores and atomics of helper invocations take effect"
        None, Violates;
    VertexShadedTwice "vertex-shaded-twice"
        "a vertex that is shaded again repeats its atomics, which return the values of the first time"
        None, Violates;
    SectionNotExclusive "section-not-exclusive"
        "an interlock section begins while another fragment of the pixel is in its section"
        None, Violates;
    SectionOrderIgnored "section-order-ignored"
        "ordered interlock sections are executed in any order, one after the other"
        None, Violates;
    SectionBeginAcquiresNothing "section-begin-acquires-nothing"
        "accesses after the begin of an interlock section are performed before it"
        None, Violates;
    SectionEndReleasesNothing "section-end-releases-nothing"
        "accesses before the end of an interlock section are performed after it"
        None, Violates;
    "host":
    HostFlushNothing "host-flush-nothing"
        "a flush of mapped memory moves nothing"
        None, Violates;
    HostInvalidateNothing "host-invalidate-nothing"
        "an invalidation of mapped memory invalidates nothing"
        None, Violates;
    SubmissionDropsHostWrites "submission-drops-host-writes"
        "a submission does not make writes of the host visible to the device"
        None, Violates;
    HostReadIgnored "host-access-ignored"
        "host accesses in the destination of a barrier move nothing to the host"
        None, Violates;
    HostWriteIgnored "host-write-ignored"
        "HOST_WRITE in the source of a barrier moves nothing to the device"
        None, Violates;
    FencePublishesNothing "fence-publishes-nothing"
        "the end of a submission makes nothing available"
        None, Violates;
    FenceWaitTooEarly "fence-wait-too-early"
        "the host's wait for a fence ends when the submission begins"
        None, Violates;
    HostSignalIgnored "host-signal-ignored"
        "a submission does not wait for the timeline semaphore that the host signals"
        None, Violates;
    "whole device":
    GarbageResults "garbage-results"
        "single bits of results are wrong"
        Some("Mesa freedreno, A6xx register stomp list"), Violates;
    LoopsStopSilently "loops-stop-silently"
        "loops silently end after a number of iterations"
        Some("Mesa lavapipe, LP_MAX_TGSI_LOOP_ITERATIONS"), Inconclusive;
    Hang "hang"
        "a wave is never scheduled again"
        Some("gfx-rs/wgpu#3181"), Inconclusive;
    DeviceLost "device-lost"
        "the device is lost during a submission"
        Some("NVIDIA/open-gpu-kernel-modules#929"), Inconclusive;
}

/// The error for a name that no fault has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown fault `{name}`{}; `faults` lists all", similar_fault(name))]
pub struct UnknownFault {
    pub name: String,
}

/// Returns ` (did you mean \`NAME\`?)` if a fault's name is at most three edits away.
fn similar_fault(name: &str) -> String {
    let near = FAULTS.iter().map(|row| (strsim::damerau_levenshtein(name, row.name), row.name)).min();
    near.filter(|(distance, _)| *distance <= 3)
        .map_or_else(String::new, |(_, near)| format!(" (did you mean `{near}`?)"))
}

impl FromStr for Fault {
    type Err = UnknownFault;

    fn from_str(name: &str) -> Result<Fault, UnknownFault> {
        let row = FAULTS.iter().find(|row| row.name == name);
        row.map(|row| row.fault).ok_or_else(|| UnknownFault { name: name.to_owned() })
    }
}

impl Fault {
    /// Returns true if semaphore signals between these queues make no writes available.
    pub(crate) fn suppresses_availability(self, queues: &[plan::Queue]) -> bool {
        let several =
            || queues.iter().any(|queue| queues.first().is_some_and(|first| first.family != queue.family));
        self == Fault::SemaphorePublishesNothing || self == Fault::OwnershipTransferDropped && several()
    }

    /// Returns the row of the fault, or `None` for a sound machine.
    pub fn row(self) -> Option<&'static Row> {
        FAULTS.iter().find(|row| row.fault == self)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn fault_names_are_unique_and_parse() {
        let names: BTreeSet<&str> = FAULTS.iter().map(|row| row.name).collect();
        assert_eq!(names.len(), FAULTS.len());
        assert!(FAULTS.len() >= 40);
        for row in FAULTS {
            assert_eq!(row.name.parse(), Ok(row.fault));
            assert!(
                row.name
                    .bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
            );
        }
    }

    #[test]
    fn an_unknown_fault_names_a_similar_one() {
        let error = |name: &str| name.parse::<Fault>().unwrap_err().to_string();
        assert_eq!(error("gremlin"), "unknown fault `gremlin`; `faults` lists all");
        let similar =
            "unknown fault `release-no-flsh` (did you mean `release-no-flush`?); `faults` lists all";
        assert_eq!(error("release-no-flsh"), similar);
    }
}
