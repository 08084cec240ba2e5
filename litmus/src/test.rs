//! The syntax tree of a litmus test: locations, threads, instructions.
//!
//! Long because the one syntax tree of all dialects stands in one place, with the words of each item.
//!
//! One tree serves every surface syntax. It says what the text says: nothing that a syntax leaves out is filled in here,
//! except where the format itself defines the default.

use crate::condition::{Condition, Question, Term};
use crate::khronos::Khronos;
use crate::metadata::Metadata;
use crate::outcome::Observable;
use crate::span::Span;
use crate::system::{Interlock, SystemOperation};
use crate::value::Value;

/// Index of a thread, in the order of the columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadId(pub u16);

/// Index of a register in its thread's [`Thread::registers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RegisterId(pub u16);

/// Index of a name in [`Test::locations`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LocationId(pub u16);

/// Index of a label in its thread's [`Thread::labels`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LabelId(pub u16);

/// A litmus test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Test {
    /// The word after the dialect's keyword (`SB+rlx-rlx`).
    pub name: String,
    /// The surface syntax that it was written in; it decides defaults such as the model.
    pub dialect: Dialect,
    /// What the header says besides.
    pub metadata: Metadata,
    /// Every name of memory, in the order of declaration, then of first use.
    pub locations: Vec<Location>,
    /// The threads, in the order of the columns.
    pub threads: Vec<Thread>,
    /// System-synchronizes-with pairs; HSA's packet fences (`pkt`).
    pub system_sync: Vec<SystemSync>,
    /// Names listed after `locations [ … ]`: shown besides those of the condition.
    pub listed: Vec<Term>,
    /// Restricts the executions considered.
    pub filter: Option<Condition>,
    /// What is asked, if anything.
    pub question: Option<Question>,
    /// Forced values and queries of a `.test` file.
    pub khronos: Option<Khronos>,
}

/// A surface syntax.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// The Vulkan dialect of herd's format, as Dartagnan reads it, with our additions.
    Vulkan,
    /// Khronos' `.test`.
    Khronos,
    /// The HSA dialect.
    Hsa,
}

/// A name of memory. Distinct names are distinct references; they may name the same storage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// The name.
    pub name: String,
    /// Declared kind of storage and way of reaching it; without a declaration the accesses' storage class decides.
    pub reference: Option<Reference>,
    /// Declared scalar type, of a vector that of its components; `u32` without one.
    pub scalar: Option<ScalarType>,
    /// Numbers that it holds: from 2 to [`MAX_COMPONENTS`] for a vector, else 1.
    pub components: u8,
    /// What the memory holds at first.
    pub init: LocationInit,
    /// Declared `[host]`: host-visible memory.
    pub host: bool,
    /// Declared `[noncoherent]`: memory without host coherence.
    pub noncoherent: bool,
    /// False for a name that is used but never declared: it starts at 0.
    pub declared: bool,
    /// Where it is declared or first used.
    pub span: Span,
}

/// Components of a vector at most.
pub const MAX_COMPONENTS: u8 = 4;
/// Bytes of a vector at most.
pub const MAX_VECTOR_BYTES: u32 = 16;

impl Location {
    /// The declared type, of a vector that of its components; or the default.
    pub fn scalar_type(&self) -> ScalarType {
        self.scalar.unwrap_or_default()
    }

    /// Whether it is declared as a vector.
    pub fn is_vector(&self) -> bool {
        self.components > 1
    }

    /// Size of all of it in bytes.
    pub fn bytes(&self) -> u32 {
        self.scalar_type().bytes() * u32::from(self.components)
    }
}

/// What a location holds at first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocationInit {
    /// A number; of a vector each component.
    Constant(i64),
    /// `v = {1, 2, 3}`: a number for each component of a vector; what is behind them is 0.
    Components([i64; MAX_COMPONENTS as usize]),
    /// `x = y`: the initial value of another, earlier location; of a vector one with as many components, or a number for
    /// each of its own.
    CopyOf(LocationId),
    /// `x = &y`: the address of another, earlier location.
    AddressOf(LocationId),
    /// `x aliases y`: a second reference to the storage of an earlier name, with its initial value.
    AliasOf(LocationId),
}

/// How memory is declared and reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reference {
    /// A storage buffer through a descriptor of its own.
    Buffer,
    /// Workgroup memory.
    Workgroup,
    /// A storage image.
    Image,
    /// A buffer reached by its device address (physical storage buffer).
    Address,
}

impl Reference {
    /// The storage class whose semantics order accesses through it.
    pub fn storage_class(self) -> StorageClass {
        match self {
            Reference::Buffer | Reference::Address => StorageClass::Buffer,
            Reference::Workgroup => StorageClass::Workgroup,
            Reference::Image => StorageClass::Image,
        }
    }
}

/// Type of a location, a register or an access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub enum ScalarType {
    U8,
    U16,
    #[default]
    U32,
    U64,
    I8,
    I16,
    I32,
    I64,
    F32,
    F64,
}

impl ScalarType {
    /// Size in bytes: 1, 2, 4 or 8.
    pub fn bytes(self) -> u32 {
        self.bits() / 8
    }

    /// Width in bits: 8, 16, 32 or 64.
    pub fn bits(self) -> u32 {
        match self {
            ScalarType::U8 | ScalarType::I8 => 8,
            ScalarType::U16 | ScalarType::I16 => 16,
            ScalarType::U32 | ScalarType::I32 | ScalarType::F32 => 32,
            ScalarType::U64 | ScalarType::I64 | ScalarType::F64 => 64,
        }
    }
}

/// A thread: where it runs and what it does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// The number after `P`.
    pub number: u32,
    /// Where it runs.
    pub place: Place,
    /// Its registers: declared ones first, then in the order of first use.
    pub registers: Vec<Register>,
    /// Its labels, in the order of first mention.
    pub labels: Vec<Label>,
    /// Its instructions, labels among them.
    pub instructions: Vec<Instruction>,
    /// Where its header stands.
    pub span: Span,
}

/// Where a thread runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// A shader invocation.
    Device(Placement),
    /// `@host`: a thread of the host.
    Host,
}

/// Coordinates of a shader invocation; of an HSA work-item its agent, work-group and wave. Numbers are local to what
/// encloses them: two invocations share a subgroup when queue family, workgroup and subgroup numbers agree, and a
/// workgroup when queue family and workgroup numbers agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Placement {
    /// Queue family; HSA's agent.
    pub queue_family: u32,
    /// Workgroup within the queue family.
    pub workgroup: u32,
    /// Subgroup within the workgroup; HSA's wave.
    pub subgroup: u32,
}

/// A register of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Register {
    /// Its name, such as `r0`.
    pub name: String,
    /// What it holds at first: 0 unless declared.
    pub init: RegisterInit,
    /// True where the init section names it.
    pub declared: bool,
}

/// What a register holds at first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegisterInit {
    /// A number.
    Constant(i64),
    /// `P0:r0 = x`: the initial value of a location.
    ValueOf(LocationId),
    /// `P0:r0 = &x`: the address of a location.
    AddressOf(LocationId),
}

/// A label of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// Its name, such as `LC00`.
    pub name: String,
}

/// An instruction and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// What it does.
    pub kind: InstructionKind,
    /// Its place in the text.
    pub span: Span,
}

/// What an instruction does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InstructionKind {
    /// `ld…`: reads `location` into `destination`.
    Load {
        /// The register that is assigned.
        destination: RegisterId,
        /// The reference that is read.
        location: LocationId,
        /// Byte offset from the start of the location; 0 unless given.
        offset: u32,
        /// Type of the access where it differs from the location's.
        scalar: Option<ScalarType>,
        /// Storage class.
        class: StorageClass,
        /// How it is accessed. [`Semantics`] of an atomic load are relaxed or acquire.
        access: Access,
    },
    /// `st…`: writes `value` to `location`.
    Store {
        /// The reference that is written.
        location: LocationId,
        /// Byte offset from the start of the location; 0 unless given.
        offset: u32,
        /// Type of the access where it differs from the location's.
        scalar: Option<ScalarType>,
        /// What is written.
        value: Operand,
        /// Storage class.
        class: StorageClass,
        /// How it is accessed. [`Semantics`] of an atomic store are relaxed or release.
        access: Access,
    },
    /// `rmw.atom…`: an atomic read-modify-write; `destination` gets the old value.
    Rmw {
        /// The register that is assigned.
        destination: RegisterId,
        /// The reference that is accessed.
        location: LocationId,
        /// Byte offset from the start of the location; 0 unless given.
        offset: u32,
        /// Type of the access where it differs from the location's.
        scalar: Option<ScalarType>,
        /// What is computed.
        operation: RmwOperation,
        /// Storage class.
        class: StorageClass,
        /// Memory scope.
        scope: Scope,
        /// Memory semantics (`Equal` semantics of a compare-exchange).
        semantics: Semantics,
    },
    /// `membar…`: a memory barrier.
    Fence {
        /// Memory scope.
        scope: Scope,
        /// Memory semantics; the order is never relaxed.
        semantics: Semantics,
    },
    /// `cbar…`: a control barrier.
    ControlBarrier(ControlBarrier),
    /// `avdevice`: makes all writes ordered before it available to the device domain.
    AvailableToDevice,
    /// `visdevice`: makes the device domain visible to all reads ordered after it.
    VisibleFromDevice,
    /// An operation of the API besides: `avdevice` and `visdevice` with access masks, and what only the host does.
    System(SystemOperation),
    /// `call P1`: creates the invocations of these threads and waits for them (a shader call instruction,
    /// `#shader-call-related`). They run between the caller's earlier and its later instructions.
    ShaderCall(Vec<ThreadId>),
    /// `interlock.begin 0`, `interlock.end 0`: an end of an interlocked section of a fragment shader.
    Interlock(Interlock),
    /// `add r, a, b` and the like: computes in registers.
    Arithmetic {
        /// The register that is assigned.
        destination: RegisterId,
        /// What is computed.
        operation: ArithmeticOperation,
        /// First operand.
        left: Operand,
        /// Second operand.
        right: Operand,
    },
    /// `LC00:`: a place to jump to.
    Label(LabelId),
    /// `goto LC00`.
    Goto(LabelId),
    /// `beq a, b, LC00` and the like; comparisons are signed.
    Branch {
        /// When it is taken.
        relation: BranchRelation,
        /// First operand.
        left: Operand,
        /// Second operand.
        right: Operand,
        /// Where it goes.
        target: LabelId,
    },
    /// HSA's `await_atomic_ld…`: an atomic load that is repeated until it returns `value`. Only the load that does counts.
    Await {
        /// The register that is assigned.
        destination: RegisterId,
        /// The reference that is read.
        location: LocationId,
        /// What it waits for.
        value: Operand,
        /// Storage class.
        class: StorageClass,
        /// Memory scope.
        scope: Scope,
        /// Relaxed or acquire.
        semantics: Semantics,
    },
    /// HSA's `atomicnoret_…`: a read-modify-write whose old value is dropped.
    Update {
        /// The reference that is accessed.
        location: LocationId,
        /// What is computed from the old value …
        operation: ArithmeticOperation,
        /// … and this.
        operand: Operand,
        /// Storage class.
        class: StorageClass,
        /// Memory scope.
        scope: Scope,
        /// Memory semantics.
        semantics: Semantics,
    },
    /// `.coop`: a plain load or store of a cooperative matrix (`#memory-model-cooperative-matrix`). An unspecified
    /// invocation of the thread's subgroup performs it, one that executes the thread's barriers too.
    Cooperative(Box<InstructionKind>),
    /// `ld.sc0 {r0, r1}, v` and `st.sc0 v, {1, 2}`: one plain access of several components that lie one behind the other.
    /// They are its loads or its stores, from 2 to [`MAX_COMPONENTS`], each with its own offset and its type: the same
    /// name, class and access, the destinations all different.
    Vector(Vec<InstructionKind>),
    /// HSA's `[x + $s3]`: an access whose address depends on a register that holds 0.
    Addressed {
        /// The register.
        register: RegisterId,
        /// The load, store, read-modify-write or await.
        access: Box<InstructionKind>,
    },
    /// HSA's `mov…`: copies a value.
    Move {
        /// The register that is assigned.
        destination: RegisterId,
        /// What it is assigned.
        value: Operand,
    },
    /// HSA's `cmp…`: 1 where the relation holds between unsigned values, else 0. Its register is only for [`BranchIf`].
    ///
    /// [`BranchIf`]: InstructionKind::BranchIf
    Compare {
        /// The register that is assigned.
        destination: RegisterId,
        /// The relation.
        relation: BranchRelation,
        /// First operand.
        left: Operand,
        /// Second operand.
        right: Operand,
    },
    /// HSA's `cbr…`: jumps where the register is 1.
    BranchIf {
        /// The register that a comparison has assigned; 0 where none has.
        condition: RegisterId,
        /// Where it goes.
        target: LabelId,
    },
}

impl InstructionKind {
    /// The access itself where its address depends on a register or where it is cooperative, and every other instruction as
    /// it is.
    pub fn without_address(&self) -> &InstructionKind {
        match self {
            InstructionKind::Addressed { access, .. } | InstructionKind::Cooperative(access) => {
                access.without_address()
            }
            other => other,
        }
    }

    /// Whether executing it is an event of its own: whatever touches memory or orders what does. Jumps and computations in
    /// registers are none, so that nothing is ordered with them.
    pub fn is_event(&self) -> bool {
        !matches!(
            self,
            InstructionKind::Label(_)
                | InstructionKind::Goto(_)
                | InstructionKind::Branch { .. }
                | InstructionKind::BranchIf { .. }
                | InstructionKind::Arithmetic { .. }
                | InstructionKind::Move { .. }
                | InstructionKind::Compare { .. }
        )
    }

    /// What it does one number at a time: the loads or stores of the components of a vector access, without its address any
    /// other instruction by itself.
    pub fn accesses(&self) -> &[InstructionKind] {
        match self.without_address() {
            InstructionKind::Vector(components) => components,
            other => std::slice::from_ref(other),
        }
    }

    /// The same, to be changed.
    pub fn accesses_mut(&mut self) -> &mut [InstructionKind] {
        match self {
            InstructionKind::Addressed { access, .. } | InstructionKind::Cooperative(access) => {
                access.accesses_mut()
            }
            InstructionKind::Vector(components) => components,
            other => std::slice::from_mut(other),
        }
    }

    /// The registers whose final values belong to the outcome because this instruction assigns them.
    pub fn destinations(&self) -> impl Iterator<Item = RegisterId> {
        self.accesses().iter().filter_map(|access| match access {
            InstructionKind::Load { destination, .. }
            | InstructionKind::Rmw { destination, .. }
            | InstructionKind::Arithmetic { destination, .. }
            | InstructionKind::Await { destination, .. }
            | InstructionKind::Move { destination, .. } => Some(*destination),
            _ => None,
        })
    }
}

/// A number or a register of the same thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operand {
    /// A number.
    Constant(i64),
    /// The value of a register.
    Register(RegisterId),
}

/// How a load or store accesses memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// Plain and private ([private vs. non-private]: `#memory-model-non-private`).
    Private,
    /// `.nonpriv`: plain and non-private, without an availability or visibility operation.
    NonPrivate,
    /// `.av` on a store, `.vis` on a load: plain, non-private, with a per-instruction availability or visibility
    /// operation at `scope` (`#memory-model-instruction-av-vis`).
    Coherent {
        /// Scope whose domain the operation targets or reads from.
        scope: Scope,
    },
    /// `.atom`: atomic, which implies non-private and an availability or visibility operation at its own scope.
    Atomic {
        /// Memory scope.
        scope: Scope,
        /// Memory semantics.
        semantics: Semantics,
    },
}

/// A scope (`#memory-model-scope`), from narrow to wide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// `.inv`: the invocation itself.
    Invocation,
    /// `.sg`.
    Subgroup,
    /// `.wg`.
    Workgroup,
    /// `.call`: invocations that are shader-call-related. Not nested with workgroups and subgroups in one way.
    ShaderCall,
    /// `.fi`: fragment shader invocations that overlap.
    FragmentInterlock,
    /// `.qf`.
    QueueFamily,
    /// `.dv`; HSA's agent.
    Device,
    /// `.xd`: all devices and the host; no shader can name it. HSA's system.
    CrossDevice,
}

/// A storage class as memory semantics see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StorageClass {
    /// `sc0`: uniform, storage buffer and physical storage buffer (UniformMemory).
    Buffer,
    /// `sc1`: workgroup memory (WorkgroupMemory).
    Workgroup,
    /// `sc2`: images (ImageMemory).
    Image,
    /// `sc3`: tessellation control outputs (OutputMemory).
    Output,
}

impl StorageClass {
    /// All of them, in the order of their numbers.
    pub const ALL: [StorageClass; 4] =
        [StorageClass::Buffer, StorageClass::Workgroup, StorageClass::Image, StorageClass::Output];

    /// The number in `sc0` … `sc3`.
    pub fn index(self) -> usize {
        self as usize
    }
}

/// A set of storage classes: bit i stands for `sc`i.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StorageClassSet(pub u8);

impl StorageClassSet {
    /// The set without members.
    pub const EMPTY: StorageClassSet = StorageClassSet(0);

    /// Whether `class` is a member.
    pub fn contains(self, class: StorageClass) -> bool {
        self.0 & (1 << class.index()) != 0
    }

    /// The set with `class` added.
    pub fn with(self, class: StorageClass) -> StorageClassSet {
        StorageClassSet(self.0 | (1 << class.index()))
    }

    /// The members in the order of their numbers.
    pub fn iter(self) -> impl Iterator<Item = StorageClass> {
        StorageClass::ALL.into_iter().filter(move |class| self.contains(*class))
    }
}

/// Memory order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Order {
    /// No order on other accesses.
    #[default]
    Relaxed,
    /// `.acq`; HSA's scacq.
    Acquire,
    /// `.rel`; HSA's screl.
    Release,
    /// `.acq_rel`; HSA's scar.
    AcquireRelease,
}

impl Order {
    /// Acquire or acquire-release.
    pub fn acquires(self) -> bool {
        matches!(self, Order::Acquire | Order::AcquireRelease)
    }

    /// Release or acquire-release.
    pub fn releases(self) -> bool {
        matches!(self, Order::Release | Order::AcquireRelease)
    }
}

/// Memory semantics (`#memory-model-memory-semantics`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Semantics {
    /// The order. Relaxed goes with no classes and no availability or visibility.
    pub order: Order,
    /// `.semsc0` …: the storage classes that are ordered.
    pub classes: StorageClassSet,
    /// `.semav` (MakeAvailable); needs a releasing order.
    pub make_available: bool,
    /// `.semvis` (MakeVisible); needs an acquiring order.
    pub make_visible: bool,
}

impl Semantics {
    /// What `.uneq_acq` without classes of its own stands for: an acquire with the classes of the equal case.
    pub(crate) fn unequal(self) -> Semantics {
        Semantics { order: Order::Acquire, make_available: false, ..self }
    }

    /// Relaxed: nothing is ordered.
    pub const RELAXED: Semantics = Semantics {
        order: Order::Relaxed,
        classes: StorageClassSet::EMPTY,
        make_available: false,
        make_visible: false,
    };
}

/// What a read-modify-write computes from the old value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RmwOperation {
    /// Writes the operand.
    Exchange(Operand),
    /// Writes old `operation` operand.
    Fetch(ArithmeticOperation, Operand),
    /// `.cas`: writes `value` if the old value equals `compare`; otherwise it is an atomic read with `unequal` semantics.
    CompareExchange {
        /// What the old value is compared with.
        compare: Operand,
        /// What is written when they are equal.
        value: Operand,
        /// Semantics of the failing case.
        unequal: Semantics,
    },
}

/// An operation on two values, modulo the width of the type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ArithmeticOperation {
    /// Sum.
    Add,
    /// Difference.
    Subtract,
    /// Product.
    Multiply,
    /// Quotient (signed); by zero it is 0 for the model, and no device is asked.
    Divide,
    /// Bitwise and.
    And,
    /// Bitwise or.
    Or,
    /// Bitwise exclusive or.
    Xor,
    /// The smaller one: signed for signed types.
    Minimum,
    /// The larger one: signed for signed types.
    Maximum,
}

impl ArithmeticOperation {
    /// The result for two values of type `ty`.
    pub fn apply(self, left: Value, right: Value, ty: ScalarType) -> Value {
        let signed_type = matches!(ty, ScalarType::I8 | ScalarType::I16 | ScalarType::I32 | ScalarType::I64);
        let (l, r) = (left.0, right.0);
        let (signed_left, signed_right) = (left.signed(ty), right.signed(ty));
        let left_is_less = if signed_type { signed_left < signed_right } else { l < r };
        let result = match self {
            ArithmeticOperation::Add => l.wrapping_add(r),
            ArithmeticOperation::Subtract => l.wrapping_sub(r),
            ArithmeticOperation::Multiply => l.wrapping_mul(r),
            ArithmeticOperation::Divide if r == 0 => 0,
            ArithmeticOperation::Divide => signed_left.wrapping_div(signed_right) as u64,
            ArithmeticOperation::And => l & r,
            ArithmeticOperation::Or => l | r,
            ArithmeticOperation::Xor => l ^ r,
            ArithmeticOperation::Minimum => {
                if left_is_less {
                    l
                } else {
                    r
                }
            }
            ArithmeticOperation::Maximum => {
                if left_is_less {
                    r
                } else {
                    l
                }
            }
        };
        Value(result).truncate(ty)
    }
}

/// When a branch is taken; comparisons are signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BranchRelation {
    /// `beq`.
    Equal,
    /// `bne`.
    NotEqual,
    /// `bge`.
    GreaterOrEqual,
    /// `ble`.
    LessOrEqual,
    /// `bgt`.
    Greater,
    /// `blt`.
    Less,
}

impl BranchRelation {
    /// Whether the branch is taken.
    pub fn holds(self, left: i64, right: i64) -> bool {
        match self {
            BranchRelation::Equal => left == right,
            BranchRelation::NotEqual => left != right,
            BranchRelation::GreaterOrEqual => left >= right,
            BranchRelation::LessOrEqual => left <= right,
            BranchRelation::Greater => left > right,
            BranchRelation::Less => left < right,
        }
    }
}

/// A control barrier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlBarrier {
    /// Who meets: Workgroup unless `.execsg`, `.execwg` … says otherwise.
    pub execution_scope: Scope,
    /// Memory scope: what `.wg` and the like after `cbar` mean.
    pub memory_scope: Scope,
    /// Memory semantics; `None` for a barrier without an order, which is no memory barrier.
    pub semantics: BarrierSemantics,
    /// The instance, compared as text: `0` and `00` are different barriers.
    pub id: String,
    /// Resource of a named barrier.
    pub resource: Option<String>,
    /// How many arrivals release a named barrier.
    pub quorum: Option<u32>,
}

/// Semantics of a control barrier: absent or present.
pub type BarrierSemantics = Option<Semantics>;

/// A system-synchronizes-with pair: everything at `from` before everything at `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SystemSync {
    /// The earlier side.
    pub from: SyncPoint,
    /// The later side.
    pub to: SyncPoint,
    /// Where it stands.
    pub span: Span,
}

/// A side of a [`SystemSync`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SyncPoint {
    /// The thread.
    pub thread: ThreadId,
    /// One instruction of it, an index into [`Thread::instructions`] (`P0.2` in the text); all of them where absent.
    pub instruction: Option<u16>,
}

impl Test {
    /// Whether both sides of a system-synchronizes-with pair have events that it orders.
    pub fn orders_events(&self, sync: &SystemSync) -> bool {
        [sync.from, sync.to].iter().all(|side| {
            side.instruction.is_none_or(|index| {
                let instruction = self.thread(side.thread).instructions.get(usize::from(index));
                instruction.is_some_and(|instruction| instruction.kind.is_event())
            })
        })
    }

    /// The location of an id.
    ///
    /// Ids are made by the parser together with the list they index, so they are always in range.
    pub fn location(&self, id: LocationId) -> &Location {
        &self.locations[usize::from(id.0)]
    }

    /// The thread of an id.
    pub fn thread(&self, id: ThreadId) -> &Thread {
        &self.threads[usize::from(id.0)]
    }

    /// The name whose storage `id` refers to: itself, or the last of its chain of aliases.
    pub fn storage_of(&self, id: LocationId) -> LocationId {
        let mut current = id;
        while let LocationInit::AliasOf(next) = self.location(current).init {
            current = next;
        }
        current
    }

    /// The number that stands for the address of a location where a program or a condition compares addresses:
    /// names of one storage share it, and it is negative, so that no small constant equals it.
    pub fn address_of(&self, id: LocationId) -> i64 {
        -(1 + i64::from(self.storage_of(id).0))
    }

    /// The value that a component of a location holds at first; 0 is the only one of a location that is no vector.
    pub fn initial_value(&self, id: LocationId, component: u8) -> Value {
        let scalar = self.location(id).scalar_type();
        let mut current = id;
        loop {
            match self.location(current).init {
                LocationInit::Constant(constant) => return Value::from_constant(constant, scalar),
                LocationInit::Components(constants) => {
                    let constant = constants.get(usize::from(component)).copied().unwrap_or_default();
                    return Value::from_constant(constant, scalar);
                }
                LocationInit::AddressOf(location) => {
                    return Value::from_constant(self.address_of(location), scalar);
                }
                LocationInit::AliasOf(next)
                    if self.location(current).is_vector() || self.location(next).is_vector() =>
                {
                    // A vector and what shares its storage have bytes in common, not numbers.
                    let bits = self.initial_bits(next) >> (scalar.bits() * u32::from(component));
                    return Value(bits as u64).truncate(scalar);
                }
                LocationInit::CopyOf(next) | LocationInit::AliasOf(next) => current = next,
            }
        }
    }

    /// What all of a location holds at first: the bits of its components, the first one lowest.
    pub fn initial_bits(&self, id: LocationId) -> u128 {
        let location = self.location(id);
        let bits = location.scalar_type().bits();
        (0..location.components).fold(0, |all, component| {
            all | (u128::from(self.initial_value(id, component).0) << (bits * u32::from(component)))
        })
    }

    /// The value that a register holds at first. An address is a number that no other location has.
    pub fn initial_register(&self, thread: ThreadId, register: RegisterId) -> Value {
        let ty = self.register_type(thread, register);
        match self.thread(thread).registers.get(usize::from(register.0)).map(|r| r.init) {
            Some(RegisterInit::Constant(constant)) => Value::from_constant(constant, ty),
            Some(RegisterInit::ValueOf(location)) => self.initial_value(location, 0),
            Some(RegisterInit::AddressOf(location)) => Value::from_constant(self.address_of(location), ty),
            None => Value(0),
        }
    }

    /// The type of a register: the widest type of a location that is loaded into it, `u32` where there is none.
    pub fn register_type(&self, thread: ThreadId, register: RegisterId) -> ScalarType {
        let mut found: Option<ScalarType> = None;
        for instruction in &self.thread(thread).instructions {
            for access in instruction.kind.accesses() {
                if let InstructionKind::Load { destination, location, scalar, .. }
                | InstructionKind::Rmw { destination, location, scalar, .. } = access
                    && *destination == register
                {
                    let ty = scalar.unwrap_or(self.location(*location).scalar_type());
                    if found.is_none_or(|f| ty.bits() > f.bits()) {
                        found = Some(ty);
                    }
                }
            }
        }
        found.unwrap_or_default()
    }

    /// What belongs to an outcome, in its canonical order: the registers that the code assigns, by thread and register,
    /// then the locations that the condition, the filter or the `locations` section names, by location and component.
    pub fn observables(&self) -> Vec<Observable> {
        let mut registers = Vec::new();
        for (index, thread) in self.threads.iter().enumerate() {
            let mut assigned: Vec<RegisterId> =
                thread.instructions.iter().flat_map(|instruction| instruction.kind.destinations()).collect();
            assigned.sort_unstable();
            assigned.dedup();
            registers.extend(assigned.into_iter().map(|r| Observable::Register(ThreadId(index as u16), r)));
        }
        let mut locations = Vec::new();
        let mut add = |term: &Term| {
            if let Term::Location(location, component) = term {
                locations.push((*location, *component));
            }
        };
        if let Some(filter) = &self.filter {
            filter.for_each_term(&mut add);
        }
        if let Some(question) = &self.question {
            question.condition.for_each_term(&mut add);
        }
        self.listed.iter().for_each(&mut add);
        locations.sort_unstable();
        locations.dedup();
        registers.extend(
            locations.into_iter().map(|(location, component)| Observable::Location(location, component)),
        );
        registers
    }

    /// The type of a number that an outcome holds.
    pub fn observable_type(&self, observable: Observable) -> ScalarType {
        match observable {
            Observable::Register(thread, register) => self.register_type(thread, register),
            Observable::Location(location, _) => self.location(location).scalar_type(),
        }
    }

    /// The name of an observable as conditions and reports write it: `P1:r0`, `x`, `v[2]`.
    pub fn observable_name(&self, observable: Observable) -> String {
        match observable {
            Observable::Register(thread, register) => {
                let thread = self.thread(thread);
                let register = thread.registers.get(usize::from(register.0)).map_or("?", |r| r.name.as_str());
                format!("P{}:{register}", thread.number)
            }
            Observable::Location(location, component) => {
                let location = self.location(location);
                if location.is_vector() {
                    format!("{}[{component}]", location.name)
                } else {
                    location.name.clone()
                }
            }
        }
    }
}
