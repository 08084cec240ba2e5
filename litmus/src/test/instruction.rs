//! What a thread does: its instructions.

#![deny(clippy::wildcard_enum_match_arm)]

use super::access::{Access, AccessKind, MemoryAccess, MemoryPlace, RmwOperation};
use super::lattice::{Change, Reach, stronger_fence, weaker_fence};
use super::location::ScalarType;
use super::strength::{Order, Scope, Semantics};
use super::{Dialect, LabelId, RegisterId, ThreadId};
use crate::span::Span;
use crate::subgroup::SubgroupOperation;
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
    /// Reads or writes memory.
    Access(MemoryAccess),
    /// `membar…`: a memory barrier.
    Fence {
        /// Memory scope.
        scope: Scope,
        /// Memory semantics; the order is never relaxed.
        semantics: Semantics,
    },
    /// `cbar…`: a control barrier.
    ControlBarrier(ControlBarrier),
    /// `cbar.arrive…`, `cbar.wait…`: a half of a split barrier.
    SplitBarrier(SplitBarrier),
    /// `sg.…`: an operation of the lanes of a subgroup.
    Subgroup(SubgroupOperation),
    /// An operation of the API: `avdevice`, `visdevice`, and what only the host does.
    System(SystemOperation),
    /// `call P1`: creates the invocations of these threads and waits for them (a shader call instruction,
    /// `#shader-call-related`). They run between the caller's earlier and its later instructions.
    ShaderCall(Vec<ThreadId>),
    /// `interlock.begin 0`, `interlock.end 0`, with `.unordered` behind it or not: an end of an interlocked section of a fragment shader.
    Interlock(Interlock),
    /// Computes in registers.
    Compute(Compute),
    /// A label or a jump.
    Flow(Flow),
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
    /// A load of one number by the invocation itself.
    pub fn load(destination: RegisterId, place: MemoryPlace, strength: Access) -> InstructionKind {
        InstructionKind::Access(MemoryAccess::load(destination, place, strength))
    }

    /// A store of one number by the invocation itself.
    pub fn store(place: MemoryPlace, value: Operand, strength: Access) -> InstructionKind {
        InstructionKind::Access(MemoryAccess::store(place, value, strength))
    }

    /// A read-modify-write whose old value is kept.
    pub fn rmw(
        destination: RegisterId,
        place: MemoryPlace,
        operation: RmwOperation,
        scope: Scope,
        semantics: Semantics,
    ) -> InstructionKind {
        InstructionKind::Access(MemoryAccess::rmw(Some(destination), place, operation, scope, semantics))
    }

    /// The access to memory, where it is one.
    pub fn access(&self) -> Option<&MemoryAccess> {
        match self {
            InstructionKind::Access(access) => Some(access),
            InstructionKind::Fence { .. }
            | InstructionKind::ControlBarrier(_)
            | InstructionKind::SplitBarrier(_)
            | InstructionKind::System(_)
            | InstructionKind::ShaderCall(_)
            | InstructionKind::Interlock(_)
            | InstructionKind::Subgroup(_)
            | InstructionKind::Compute(_)
            | InstructionKind::Flow(_) => None,
        }
    }

    /// The same, to be changed.
    pub fn access_mut(&mut self) -> Option<&mut MemoryAccess> {
        match self {
            InstructionKind::Access(access) => Some(access),
            InstructionKind::Fence { .. }
            | InstructionKind::ControlBarrier(_)
            | InstructionKind::SplitBarrier(_)
            | InstructionKind::System(_)
            | InstructionKind::ShaderCall(_)
            | InstructionKind::Interlock(_)
            | InstructionKind::Subgroup(_)
            | InstructionKind::Compute(_)
            | InstructionKind::Flow(_) => None,
        }
    }

    /// Its accesses to memory one number at a time.
    pub fn lanes(&self) -> impl Iterator<Item = MemoryAccess> + use<> {
        self.access().copied().into_iter().flat_map(|access| access.lanes())
    }

    /// What such instructions are called where one of them is refused.
    pub fn name(&self) -> &'static str {
        match self {
            InstructionKind::Access(_) => "accesses to memory",
            InstructionKind::Fence { .. } => "memory barriers",
            InstructionKind::ControlBarrier(_) => "control barriers",
            InstructionKind::SplitBarrier(_) => "split barriers",
            InstructionKind::Subgroup(_) => "subgroup operations",
            InstructionKind::System(_) => "operations of the API",
            InstructionKind::ShaderCall(_) => "shader calls",
            InstructionKind::Interlock(_) => "interlocked sections",
            InstructionKind::Compute(_) => "computations in registers",
            InstructionKind::Flow(_) => "labels and jumps",
        }
    }

    /// The scope within which it synchronizes, or makes memory available or visible.
    pub fn memory_scope(&self) -> Option<Scope> {
        match self {
            InstructionKind::Access(access) => access.strength.scope(),
            InstructionKind::Fence { scope, .. } => Some(*scope),
            InstructionKind::ControlBarrier(barrier) => Some(barrier.memory_scope),
            InstructionKind::SplitBarrier(barrier) => Some(barrier.memory_scope),
            InstructionKind::System(_)
            | InstructionKind::ShaderCall(_)
            | InstructionKind::Interlock(_)
            | InstructionKind::Subgroup(_)
            | InstructionKind::Compute(_)
            | InstructionKind::Flow(_) => None,
        }
    }

    /// The same, to be changed.
    pub fn memory_scope_mut(&mut self) -> Option<&mut Scope> {
        match self {
            InstructionKind::Access(access) => access.strength.scope_mut(),
            InstructionKind::Fence { scope, .. } => Some(scope),
            InstructionKind::ControlBarrier(barrier) => Some(&mut barrier.memory_scope),
            InstructionKind::SplitBarrier(barrier) => Some(&mut barrier.memory_scope),
            InstructionKind::System(_)
            | InstructionKind::ShaderCall(_)
            | InstructionKind::Interlock(_)
            | InstructionKind::Subgroup(_)
            | InstructionKind::Compute(_)
            | InstructionKind::Flow(_) => None,
        }
    }

    /// The scope of those whom it waits for.
    pub fn execution_scope(&self) -> Option<Scope> {
        match self {
            InstructionKind::ControlBarrier(barrier) => Some(barrier.execution_scope),
            InstructionKind::SplitBarrier(barrier) => Some(barrier.execution_scope),
            InstructionKind::Access(_)
            | InstructionKind::Fence { .. }
            | InstructionKind::System(_)
            | InstructionKind::ShaderCall(_)
            | InstructionKind::Interlock(_)
            | InstructionKind::Subgroup(_)
            | InstructionKind::Compute(_)
            | InstructionKind::Flow(_) => None,
        }
    }

    /// The memory semantics that it names; of a compare-exchange those of both its cases.
    pub fn semantics(&self) -> impl Iterator<Item = Semantics> + use<> {
        let (own, unequal) = match self {
            InstructionKind::Access(access) => (Some(access.semantics()), access.unequal()),
            InstructionKind::Fence { semantics, .. } => (Some(*semantics), None),
            InstructionKind::ControlBarrier(barrier) => (barrier.semantics, None),
            InstructionKind::SplitBarrier(barrier) => (barrier.semantics, None),
            InstructionKind::System(_)
            | InstructionKind::ShaderCall(_)
            | InstructionKind::Interlock(_)
            | InstructionKind::Subgroup(_)
            | InstructionKind::Compute(_)
            | InstructionKind::Flow(_) => (None, None),
        };
        own.into_iter().chain(unequal)
    }

    /// The registers that it looks at: its operands, what its address depends on, and the condition of a branch.
    pub fn registers_read(&self) -> impl Iterator<Item = RegisterId> + use<> {
        let besides = match self {
            InstructionKind::Access(access) => access.place.address,
            InstructionKind::Flow(flow) => match flow {
                Flow::BranchIf { condition, .. } => Some(*condition),
                Flow::Label(_) | Flow::Goto(_) | Flow::Branch { .. } => None,
            },
            InstructionKind::Fence { .. }
            | InstructionKind::ControlBarrier(_)
            | InstructionKind::SplitBarrier(_)
            | InstructionKind::System(_)
            | InstructionKind::ShaderCall(_)
            | InstructionKind::Interlock(_)
            | InstructionKind::Subgroup(_)
            | InstructionKind::Compute(_) => None,
        };
        let operands = self.operands().into_iter().filter_map(|operand| match operand {
            Operand::Register(register) => Some(register),
            Operand::Constant(_) => None,
        });
        operands.chain(besides)
    }

    /// Whether executing it is an event of its own: whatever touches memory or orders what does. Jumps, subgroup operations
    /// and computations in registers are none, so that nothing is ordered with them.
    pub fn is_event(&self) -> bool {
        match self {
            InstructionKind::Subgroup(_) | InstructionKind::Compute(_) | InstructionKind::Flow(_) => false,
            InstructionKind::Access(_)
            | InstructionKind::Fence { .. }
            | InstructionKind::ControlBarrier(_)
            | InstructionKind::SplitBarrier(_)
            | InstructionKind::System(_)
            | InstructionKind::ShaderCall(_)
            | InstructionKind::Interlock(_) => true,
        }
    }

    /// The values that it computes with, stores or compares, in the order of the text.
    pub fn operands(&self) -> Vec<Operand> {
        match self {
            InstructionKind::Access(access) => match access.kind {
                AccessKind::Load(_) => Vec::new(),
                AccessKind::Store(values) => values.iter().collect(),
                AccessKind::Await { value, .. } => vec![value],
                AccessKind::Rmw { operation, .. } => match operation {
                    RmwOperation::Exchange(value) | RmwOperation::Fetch(_, value) => vec![value],
                    RmwOperation::CompareExchange { compare, value, .. } => vec![compare, value],
                },
            },
            InstructionKind::Compute(compute) => match compute {
                Compute::Move { value, .. } => vec![*value],
                Compute::Arithmetic { left, right, .. } | Compute::Compare { left, right, .. } => {
                    vec![*left, *right]
                }
            },
            InstructionKind::Subgroup(operation) => operation.value.into_iter().collect(),
            InstructionKind::Flow(flow) => match flow {
                Flow::Branch { left, right, .. } => vec![*left, *right],
                Flow::Label(_) | Flow::Goto(_) | Flow::BranchIf { .. } => Vec::new(),
            },
            InstructionKind::Fence { .. }
            | InstructionKind::ControlBarrier(_)
            | InstructionKind::SplitBarrier(_)
            | InstructionKind::System(_)
            | InstructionKind::ShaderCall(_)
            | InstructionKind::Interlock(_) => Vec::new(),
        }
    }

    /// The registers whose final values belong to the outcome because this instruction assigns them.
    pub fn destinations(&self) -> impl Iterator<Item = RegisterId> + use<> {
        let computed = match self {
            InstructionKind::Compute(compute) => match compute {
                Compute::Arithmetic { destination, .. } | Compute::Move { destination, .. } => {
                    Some(*destination)
                }
                // Branches alone see what a comparison has found.
                Compute::Compare { .. } => None,
            },
            InstructionKind::Subgroup(operation) => operation.destination,
            InstructionKind::Access(_)
            | InstructionKind::Fence { .. }
            | InstructionKind::ControlBarrier(_)
            | InstructionKind::SplitBarrier(_)
            | InstructionKind::System(_)
            | InstructionKind::ShaderCall(_)
            | InstructionKind::Interlock(_)
            | InstructionKind::Flow(_) => None,
        };
        self.access().copied().into_iter().flat_map(|access| access.destinations()).chain(computed)
    }

    /// The forms of it that ask for one step less; `None` where a memory barrier is left out.
    pub fn weaker(&self, dialect: Dialect) -> Vec<(Change, Option<InstructionKind>)> {
        match self {
            InstructionKind::Access(access) => {
                let weaker = access.weaker(dialect).into_iter();
                weaker.map(|(change, access)| (change, Some(InstructionKind::Access(access)))).collect()
            }
            InstructionKind::Fence { scope, semantics } => {
                let weaker = weaker_fence(*scope, *semantics, dialect).into_iter();
                let form = |scope, semantics: Semantics| {
                    (semantics.order != Order::Relaxed).then_some(InstructionKind::Fence { scope, semantics })
                };
                weaker.map(|(change, scope, semantics)| (change, form(scope, semantics))).collect()
            }
            InstructionKind::ControlBarrier(barrier) => {
                let weaker = barrier.weaker(dialect).into_iter();
                weaker
                    .map(|(change, barrier)| (change, Some(InstructionKind::ControlBarrier(barrier))))
                    .collect()
            }
            InstructionKind::SplitBarrier(barrier) => {
                let weaker = barrier.weaker(dialect).into_iter();
                weaker
                    .map(|(change, barrier)| (change, Some(InstructionKind::SplitBarrier(barrier))))
                    .collect()
            }
            InstructionKind::System(_)
            | InstructionKind::ShaderCall(_)
            | InstructionKind::Interlock(_)
            | InstructionKind::Subgroup(_)
            | InstructionKind::Compute(_)
            | InstructionKind::Flow(_) => Vec::new(),
        }
    }

    /// The forms of it that ask for one step more.
    pub fn stronger(&self, reach: &Reach) -> Vec<(Change, InstructionKind)> {
        match self {
            InstructionKind::Access(access) => {
                let stronger = access.stronger(reach).into_iter();
                stronger.map(|(change, access)| (change, InstructionKind::Access(access))).collect()
            }
            InstructionKind::Fence { scope, semantics } => {
                let stronger = stronger_fence(*scope, *semantics, reach).into_iter();
                let fence = |scope, semantics| InstructionKind::Fence { scope, semantics };
                stronger.map(|(change, scope, semantics)| (change, fence(scope, semantics))).collect()
            }
            InstructionKind::ControlBarrier(barrier) => {
                let stronger = barrier.stronger(reach).into_iter();
                stronger.map(|(change, barrier)| (change, InstructionKind::ControlBarrier(barrier))).collect()
            }
            InstructionKind::SplitBarrier(barrier) => {
                let stronger = barrier.stronger(reach).into_iter();
                stronger.map(|(change, barrier)| (change, InstructionKind::SplitBarrier(barrier))).collect()
            }
            InstructionKind::System(_)
            | InstructionKind::ShaderCall(_)
            | InstructionKind::Interlock(_)
            | InstructionKind::Subgroup(_)
            | InstructionKind::Compute(_)
            | InstructionKind::Flow(_) => Vec::new(),
        }
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

    /// The relation that holds where this one does not.
    pub fn opposite(self) -> BranchRelation {
        match self {
            BranchRelation::Equal => BranchRelation::NotEqual,
            BranchRelation::NotEqual => BranchRelation::Equal,
            BranchRelation::GreaterOrEqual => BranchRelation::Less,
            BranchRelation::LessOrEqual => BranchRelation::Greater,
            BranchRelation::Greater => BranchRelation::LessOrEqual,
            BranchRelation::Less => BranchRelation::GreaterOrEqual,
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

/// A half of a split barrier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitBarrier {
    /// Which half it is.
    pub half: SplitHalf,
    /// Who arrives and is waited for: Workgroup or Subgroup. Rounds are counted for each of the two apart.
    pub execution_scope: Scope,
    /// Memory scope.
    pub memory_scope: Scope,
    /// Memory semantics: an arrival may release and a wait acquire; `None` for one without an order.
    pub semantics: BarrierSemantics,
    /// Which instruction of the shader it is: columns with the same half and text execute one instruction. No rule of the
    /// memory model looks at it.
    pub id: String,
}

impl SplitBarrier {
    /// Whether another half in some thread waits or is waited for with this one, where both threads share the instance of the
    /// execution scope: all of a workgroup that have split barriers of it; in a subgroup those with the same instruction,
    /// since others have diverged from them.
    pub fn joins(&self, other: &SplitBarrier) -> bool {
        let together = self.execution_scope != Scope::Subgroup || self.id == other.id;
        self.execution_scope == other.execution_scope && self.half == other.half && together
    }
}

/// The halves of a split barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SplitHalf {
    /// `cbar.arrive`: OpControlBarrierArriveEXT, which waits for nobody.
    Arrive,
    /// `cbar.wait`: OpControlBarrierWaitEXT, which waits until all have arrived as often as its invocation has waited.
    Wait,
}

impl SplitHalf {
    /// The word after `cbar.`.
    pub fn keyword(self) -> &'static str {
        match self {
            SplitHalf::Arrive => "arrive",
            SplitHalf::Wait => "wait",
        }
    }

    /// The order that it may have.
    pub fn order(self) -> Order {
        match self {
            SplitHalf::Arrive => Order::Release,
            SplitHalf::Wait => Order::Acquire,
        }
    }
}

/// Semantics of a control barrier: absent or present.
pub type BarrierSemantics = Option<Semantics>;
