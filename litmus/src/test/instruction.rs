//! What a thread does: its instructions.

use super::access::{Access, RmwOperation};
use super::location::ScalarType;
use super::strength::{Scope, Semantics, StorageClass};
use super::{LabelId, LocationId, RegisterId, ThreadId};
use crate::span::Span;
use crate::system::{Interlock, SystemOperation};
use crate::value::Value;

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
    /// An operation of the API: `avdevice`, `visdevice`, and what only the host does.
    System(SystemOperation),
    /// `call P1`: creates the invocations of these threads and waits for them (a shader call instruction,
    /// `#shader-call-related`). They run between the caller's earlier and its later instructions.
    ShaderCall(Vec<ThreadId>),
    /// `interlock.begin 0`, `interlock.end 0`: an end of an interlocked section of a fragment shader.
    Interlock(Interlock),
    /// Computes in registers.
    Compute(Compute),
    /// A label or a jump.
    Flow(Flow),
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
}

/// A computation in registers; it touches no memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Compute {
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
    /// HSA's `mov…`: copies a value.
    Move {
        /// The register that is assigned.
        destination: RegisterId,
        /// What it is assigned.
        value: Operand,
    },
    /// HSA's `cmp…`: 1 where the relation holds between unsigned values, else 0. Its register is only for [`BranchIf`].
    ///
    /// [`BranchIf`]: Flow::BranchIf
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
}

/// Where a thread goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Flow {
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
        match self {
            InstructionKind::Compute(_) | InstructionKind::Flow(_) => false,
            InstructionKind::Load { .. }
            | InstructionKind::Store { .. }
            | InstructionKind::Rmw { .. }
            | InstructionKind::Fence { .. }
            | InstructionKind::ControlBarrier(_)
            | InstructionKind::System(_)
            | InstructionKind::ShaderCall(_)
            | InstructionKind::Interlock(_)
            | InstructionKind::Await { .. }
            | InstructionKind::Update { .. }
            | InstructionKind::Cooperative(_)
            | InstructionKind::Vector(_)
            | InstructionKind::Addressed { .. } => true,
        }
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
            | InstructionKind::Compute(Compute::Arithmetic { destination, .. })
            | InstructionKind::Await { destination, .. }
            | InstructionKind::Compute(Compute::Move { destination, .. }) => Some(*destination),
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
