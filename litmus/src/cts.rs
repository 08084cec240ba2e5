//! The ordering tests of the Vulkan CTS group `memory_model`: their names, each with an equivalent litmus
//! test.
//!
//! The CTS generates 8,255 names of message passing and equally many of write after read from eleven
//! parameters, 576 of transitive availability and visibility, and has three scripts. Here each name is a
//! race-free program. If the CTS reads the payload whether its guard was seen or not, that read is under a
//! branch on the guard here. An early read of the payload, which races in the CTS, becomes an early read of
//! the guard. Pairing, repetition and stress are up to the runner.
//!
//! The parts of a name that concern the program are in the text; those that concern the device (memory model
//! of the module, memory type, stage) are in the variant.

mod program;

use std::fmt;

/// Groups that are not litmus tests: name, number of tests, and the reason.
pub const EXCLUDED_GROUPS: [(&str, usize, &str); 2] = [
    (
        "shared.*",
        210,
        "a layout test of workgroup memory, not an ordering test: one invocation writes and \
         reads back",
    ),
    (
        "padding.test",
        1,
        "a layout test of blocks, not an ordering test: copies do not change the padding \
         after a structure",
    ),
];

/// The common prefix of complete CTS names.
pub const NAME_PREFIX: &str = "dEQP-VK.memory_model.";

vocabulary::closed_enum! {
    /// The shape of a test.
    pub enum Shape {
        /// Message passing: if the flag is seen, the payload must be visible.
        MessagePassing = "message_passing",
        /// Write after read: the thread that sees the flag writes, and the earlier read must not see that
        /// write.
        WriteAfterRead = "write_after_read",
    }

    /// The memory model of the shader.
    pub enum Model {
        /// GLSL450 with coherent variables.
        Core11 = "core11",
        /// The Vulkan memory model.
        Extended = "ext",
    }

    /// Type of payload and guard.
    pub enum Type {
        /// 32-bit integer.
        U32 = "u32",
        /// 64-bit integer.
        U64 = "u64",
        /// 32-bit floating point.
        F32 = "f32",
        /// 64-bit floating point.
        F64 = "f64",
    }

    /// The place of availability and visibility operations.
    pub enum Coherence {
        /// At the accesses to the payload.
        Coherent = "coherent",
        /// At the synchronizing operations.
        NonCoherent = "noncoherent",
    }

    /// The synchronization of the threads.
    pub enum Sync {
        /// Memory barriers around relaxed atomics.
        FenceFence = "fence_fence",
        /// A memory barrier releases, the atomic load acquires.
        FenceAtomic = "fence_atomic",
        /// The atomic store releases, a memory barrier acquires.
        AtomicFence = "atomic_fence",
        /// Both atomics synchronize.
        AtomicAtomic = "atomic_atomic",
        /// A control barrier, without a guard.
        ControlBarrier = "control_barrier",
        /// A control barrier without semantics between memory barriers, without a guard.
        ControlAndMemoryBarrier = "control_and_memory_barrier",
    }

    /// The kind of access to the guard.
    pub enum GuardAccess {
        /// Stored and loaded.
        Write = "atomicwrite",
        /// Exchanged.
        Exchange = "atomicrmw",
    }

    /// Scope of synchronization; it also determines the placement of the threads.
    pub enum Range {
        /// Device.
        Device = "device",
        /// Queue family.
        QueueFamily = "queuefamily",
        /// Workgroup.
        Workgroup = "workgroup",
        /// Subgroup.
        Subgroup = "subgroup",
    }

    /// The memory type of a variable.
    pub enum Locality {
        /// A memory type with DEVICE_LOCAL.
        Local = "local",
        /// A memory type without DEVICE_LOCAL.
        NonLocal = "nonlocal",
    }

    /// The kind of storage of a variable.
    pub enum Storage {
        /// In a storage buffer.
        Buffer = "buffer",
        /// A texel of a storage image.
        Image = "image",
        /// In workgroup memory.
        Workgroup = "workgroup",
        /// In a buffer that is reached by its address.
        Address = "physbuffer",
    }

    /// The shader stage.
    pub enum Stage {
        /// Compute.
        Compute = "comp",
        /// Vertex.
        Vertex = "vert",
        /// Fragment.
        Fragment = "frag",
    }

    /// The invocation that acquires at the end of a transitive test.
    pub enum Acquirer {
        /// The reading invocation itself.
        Reader = "nontransvis",
        /// Another invocation of its workgroup, which synchronizes with it by a control barrier.
        Relay = "transvis",
    }

    /// The scripts with permuted indices.
    pub enum Permuted {
        /// Memory barriers, and an atomic payload.
        Barrier = "barrier",
        /// Release and acquire, and an atomic payload.
        ReleaseAcquire = "release_acquire",
        /// Release and acquire, and a plain coherent payload, contrary to its name.
        PlainPayload = "release_acquire_atomic_payload",
    }
}

/// A variable of a test: its memory type and storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CtsVariable {
    /// The memory type.
    pub locality: Locality,
    /// The storage.
    pub storage: Storage,
}

/// A generated test of message passing or write after read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub struct GeneratedCase {
    pub shape: Shape,
    pub model: Model,
    pub scalar: Type,
    pub coherence: Coherence,
    pub sync: Sync,
    pub guard_access: GuardAccess,
    pub range: Range,
    pub payload: CtsVariable,
    pub guard: CtsVariable,
    pub stage: Stage,
}

/// A generated test of availability and visibility through a workgroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub struct TransitiveCase {
    pub coherence: Coherence,
    pub sync: Sync,
    pub payload: CtsVariable,
    pub guard: CtsVariable,
    pub acquirer: Acquirer,
}

/// A test of the CTS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CtsCase {
    /// Message passing or write after read, with eleven parameters.
    Generated(GeneratedCase),
    /// Transitive availability and visibility.
    Transitive(TransitiveCase),
    /// A script.
    Permuted(Permuted),
}

/// Returns all tests in CTS order: by group, then in the nesting order of the parameters.
pub fn all_cases() -> impl Iterator<Item = CtsCase> {
    let generated = |shape| generated_cases(shape).into_iter().map(CtsCase::Generated);
    generated(Shape::MessagePassing)
        .chain(Permuted::ALL.map(CtsCase::Permuted))
        .chain(generated(Shape::WriteAfterRead))
        .chain(transitive_cases().into_iter().map(CtsCase::Transitive))
}

fn all_variables() -> impl Iterator<Item = CtsVariable> + Clone {
    let variables_in =
        |locality| Storage::ALL.into_iter().map(move |storage| CtsVariable { locality, storage });
    Locality::ALL.into_iter().flat_map(variables_in).filter(|variable| {
        // The CTS lists workgroup memory under one locality only.
        variable.storage != Storage::Workgroup || variable.locality == Locality::NonLocal
    })
}

/// Evaluates an expression for every combination of values, the last ones first.
macro_rules! for_all {
    (=> $body:expr) => { $body };
    ($name:ident in $values:expr, $($rest:tt)*) => { for $name in $values { for_all!($($rest)*); } };
}

fn generated_cases(shape: Shape) -> Vec<GeneratedCase> {
    let mut all = Vec::new();
    for_all! {
        model in Model::ALL, scalar in Type::ALL, coherence in Coherence::ALL, sync in Sync::ALL,
        guard_access in GuardAccess::ALL, range in Range::ALL, payload in all_variables(),
        guard in all_variables(), stage in Stage::ALL,
        => all.push(GeneratedCase {
            shape, model, scalar, coherence, sync, guard_access, range, payload, guard, stage,
        })
    }
    all.retain(GeneratedCase::exists_in_cts);
    all
}

fn transitive_cases() -> Vec<TransitiveCase> {
    let syncs = || Sync::ALL.into_iter().filter(|sync| !sync.is_control_barrier());
    let buffers = || all_variables().filter(|variable| variable.storage != Storage::Workgroup);
    let mut all = Vec::new();
    for_all! {
        coherence in Coherence::ALL, sync in syncs(), payload in buffers(), guard in buffers(),
        acquirer in Acquirer::ALL,
        => all.push(TransitiveCase { coherence, sync, payload, guard, acquirer })
    }
    all
}

impl Sync {
    /// Returns true if the test has no guard.
    pub fn is_control_barrier(self) -> bool {
        matches!(self, Sync::ControlBarrier | Sync::ControlAndMemoryBarrier)
    }
}

impl GeneratedCase {
    /// Returns true if the CTS has this combination (`createTests` in `vktMemoryModelMessagePassing.cpp`).
    fn exists_in_cts(&self) -> bool {
        let uses = |storage| self.payload.storage == storage || self.guard.storage == storage;
        let both_use = |storage| self.payload.storage == storage && self.guard.storage == storage;
        let has_ordered_atomic =
            matches!(self.sync, Sync::FenceAtomic | Sync::AtomicFence | Sync::AtomicAtomic);
        let core = self.coherence == Coherence::Coherent
            && !has_ordered_atomic
            && self.scalar == Type::U32
            && self.range != Range::QueueFamily
            && !uses(Storage::Address);
        let graphics =
            self.range != Range::Workgroup && !uses(Storage::Workgroup) && !self.sync.is_control_barrier();
        let has_default_guard = matches!(self.range, Range::Workgroup | Range::Subgroup)
            && self.guard == CtsVariable { locality: Locality::NonLocal, storage: Storage::Buffer };
        let is_atomic_atomic = self.sync == Sync::AtomicAtomic;
        (self.model == Model::Extended || core)
            && (self.stage == Stage::Compute || graphics)
            && (!self.sync.is_control_barrier() || has_default_guard)
            && (is_atomic_atomic || (self.guard_access == GuardAccess::Write && self.scalar == Type::U32))
            && !(self.scalar == Type::U64 && both_use(Storage::Image))
            && !(self.scalar == Type::F64 && uses(Storage::Image))
    }
}

impl CtsCase {
    /// Returns the name after [`NAME_PREFIX`].
    pub fn cts_name(&self) -> String {
        self.to_string()
    }

    /// Returns the id of the litmus test; CTS names with the same program share it.
    pub fn test_id(&self) -> String {
        match self {
            CtsCase::Generated(case) => format!(
                "cts/{}/{}.{}.{}.{}.{}.{}.{}",
                case.shape.name(),
                case.scalar.name(),
                case.coherence.name(),
                case.sync.name(),
                case.guard_access.name(),
                case.range.name(),
                case.payload.storage.name(),
                case.guard.storage.name()
            ),
            CtsCase::Transitive(case) => format!(
                "cts/transitive/{}.{}.{}.{}.{}",
                case.coherence.name(),
                case.sync.name(),
                case.payload.storage.name(),
                case.guard.storage.name(),
                case.acquirer.name()
            ),
            CtsCase::Permuted(case) => format!("cts/message_passing/permuted_index.{}", case.name()),
        }
    }

    /// Returns the variant of the test: words joined by `.`; empty for the default.
    pub fn variant(&self) -> String {
        let mut words: Vec<&str> = Vec::new();
        let (model, payload, guard, stage) = match self {
            // A control barrier has no guard; the memory in its name is irrelevant.
            CtsCase::Generated(case) => {
                let guard = (!case.sync.is_control_barrier()).then_some(case.guard);
                (case.model, Some(case.payload), guard, case.stage)
            }
            CtsCase::Transitive(case) => {
                (Model::Extended, Some(case.payload), Some(case.guard), Stage::Compute)
            }
            CtsCase::Permuted(_) => (Model::Core11, None, None, Stage::Compute),
        };
        if model == Model::Core11 {
            words.push("glsl450");
        }
        // Memory types do not apply to workgroup memory.
        let locality = |variable: Option<CtsVariable>| {
            variable.filter(|variable| variable.storage != Storage::Workgroup).map(|v| v.locality)
        };
        match (locality(payload), locality(guard)) {
            (Some(Locality::NonLocal), Some(Locality::NonLocal) | None)
            | (None, Some(Locality::NonLocal)) => words.push("nonlocal"),
            (Some(Locality::NonLocal), Some(Locality::Local)) => words.push("nonlocal-payload"),
            (Some(Locality::Local), Some(Locality::NonLocal)) => words.push("nonlocal-guard"),
            (Some(Locality::Local) | None, Some(Locality::Local) | None) => {}
        }
        match stage {
            Stage::Compute => {}
            Stage::Vertex => words.push("vertex"),
            Stage::Fragment => words.push("fragment"),
        }
        words.join(".")
    }

    /// Returns the litmus test in the native syntax.
    pub fn litmus_text(&self) -> String {
        program::program_text(self)
    }
}

/// Writes the name after [`NAME_PREFIX`].
impl fmt::Display for CtsCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let variable = |name: &str, variable: &CtsVariable| {
            format!("{name}_{}.{}", variable.locality.name(), variable.storage.name())
        };
        match self {
            CtsCase::Generated(case) => write!(
                f,
                "{}.{}.{}.{}.{}.{}.{}.{}.{}.{}",
                case.shape.name(),
                case.model.name(),
                case.scalar.name(),
                case.coherence.name(),
                case.sync.name(),
                case.guard_access.name(),
                case.range.name(),
                variable("payload", &case.payload),
                variable("guard", &case.guard),
                case.stage.name()
            ),
            CtsCase::Transitive(case) => write!(
                f,
                "transitive.{}.{}.{}.{}.{}",
                case.coherence.name(),
                case.sync.name(),
                variable("payload", &case.payload),
                variable("guard", &case.guard),
                case.acquirer.name()
            ),
            CtsCase::Permuted(case) => write!(f, "message_passing.permuted_index.{}", case.name()),
        }
    }
}
