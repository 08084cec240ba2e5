//! The instructions of a thread.

#![deny(clippy::wildcard_enum_match_arm)]

use super::access::{Access, AccessKind, MemoryAccess, MemoryPlace, RmwOperation};
use super::location::ScalarType;
use super::{LabelId, RegisterId, ThreadId};
use crate::comparison::Comparison;
use crate::span::Span;
use crate::subgroup::SubgroupOperation;
use crate::system::{Interlock, SystemOperation};
use crate::value::Value;
use vocabulary::{Order, Scope, Semantics};

/// An instruction with its source position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// The operation.
    pub kind: InstructionKind,
    /// The source position.
    pub span: Span,
}

/// The operation of an instruction.
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
    /// An operation of the API: `avdevice`, `visdevice`, and host-only operations.
    System(SystemOperation),
    /// `call P1`: creates the invocations of these threads and waits for them (a shader call instruction,
    /// `#shader-call-related`).
    ///
    /// They run between the caller's earlier and later instructions.
    ShaderCall(Vec<ThreadId>),
    /// `interlock.begin 0`, `interlock.end 0`, optionally `.unordered`: an end of an interlocked section of a
    /// fragment shader.
    Interlock(Interlock),
    /// Computes in registers.
    Compute(Compute),
    /// A label or a jump.
    Flow(Flow),
}

/// A computation in registers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Compute {
    /// `add r, a, b` and similar: computes in registers.
    Arithmetic {
        /// The register that is assigned.
        destination: RegisterId,
        /// The operation.
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
        /// The value.
        value: Operand,
    },
    /// HSA's `cmp…`: 1 if the relation holds between unsigned values, else 0. Only [`BranchIf`] reads its
    /// register.
    ///
    /// [`BranchIf`]: Flow::BranchIf
    Compare {
        /// The register that is assigned.
        destination: RegisterId,
        /// The relation.
        relation: Comparison,
        /// First operand.
        left: Operand,
        /// Second operand.
        right: Operand,
    },
}

/// Control flow of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Flow {
    /// `LC00:`: a jump target.
    Label(LabelId),
    /// `goto LC00`.
    Goto(LabelId),
    /// `beq a, b, LC00` and similar; comparisons are signed.
    Branch {
        /// The condition of the jump.
        relation: Comparison,
        /// First operand.
        left: Operand,
        /// Second operand.
        right: Operand,
        /// The target.
        target: LabelId,
    },
    /// HSA's `cbr…`: jumps if the register is 1.
    BranchIf {
        /// The register of a comparison; 0 before its first assignment.
        condition: RegisterId,
        /// The target.
        target: LabelId,
    },
}

/// The scopes and memory semantics of an instruction.
pub(super) struct Synchronization {
    pub(super) execution_scope: Option<Scope>,
    pub(super) memory_scope: Option<Scope>,
    pub(super) semantics: Option<Semantics>,
}

impl InstructionKind {
    /// Creates a scalar load by the invocation itself.
    pub fn load(destination: RegisterId, place: MemoryPlace, strength: Access) -> InstructionKind {
        InstructionKind::Access(MemoryAccess::load(destination, place, strength))
    }

    /// Creates a scalar store by the invocation itself.
    pub fn store(place: MemoryPlace, value: Operand, strength: Access) -> InstructionKind {
        InstructionKind::Access(MemoryAccess::store(place, value, strength))
    }

    /// Creates a read-modify-write that returns its old value.
    pub fn rmw(
        destination: RegisterId,
        place: MemoryPlace,
        operation: RmwOperation,
        scope: Scope,
        semantics: Semantics,
    ) -> InstructionKind {
        InstructionKind::Access(MemoryAccess::rmw(Some(destination), place, operation, scope, semantics))
    }

    /// Returns the memory access, if it is one.
    pub fn access(&self) -> Option<&MemoryAccess> {
        if let InstructionKind::Access(access) = self { Some(access) } else { None }
    }

    /// Returns a mutable reference to the memory access, if it is one.
    pub fn access_mut(&mut self) -> Option<&mut MemoryAccess> {
        if let InstructionKind::Access(access) = self { Some(access) } else { None }
    }

    /// Returns its memory access split into scalar accesses.
    pub fn scalar_accesses(&self) -> impl Iterator<Item = MemoryAccess> + use<> {
        self.access().copied().into_iter().flat_map(|access| access.scalar_accesses())
    }

    /// Returns the name of such instructions in a refusal.
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

    /// Returns its scopes and memory semantics.
    pub(super) fn synchronization(&self) -> Synchronization {
        let (execution_scope, memory_scope, semantics) = match self {
            InstructionKind::Access(access) => (None, access.strength.scope(), Some(access.semantics())),
            InstructionKind::Fence { scope, semantics } => (None, Some(*scope), Some(*semantics)),
            InstructionKind::ControlBarrier(barrier) => {
                (Some(barrier.execution_scope), Some(barrier.memory_scope), barrier.semantics)
            }
            InstructionKind::SplitBarrier(barrier) => {
                (Some(barrier.execution_scope), Some(barrier.memory_scope), barrier.semantics)
            }
            InstructionKind::System(_)
            | InstructionKind::ShaderCall(_)
            | InstructionKind::Interlock(_)
            | InstructionKind::Subgroup(_)
            | InstructionKind::Compute(_)
            | InstructionKind::Flow(_) => (None, None, None),
        };
        Synchronization { execution_scope, memory_scope, semantics }
    }

    /// Returns the scope of its synchronization, availability or visibility.
    pub fn memory_scope(&self) -> Option<Scope> {
        self.synchronization().memory_scope
    }

    /// Returns a mutable reference to that scope.
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

    /// Returns the scope of the invocations that it waits for.
    pub fn execution_scope(&self) -> Option<Scope> {
        self.synchronization().execution_scope
    }

    /// Returns its memory semantics; both cases of a compare-exchange.
    pub fn semantics(&self) -> impl Iterator<Item = Semantics> + use<> {
        let unequal = self.access().and_then(MemoryAccess::unequal_semantics);
        self.synchronization().semantics.into_iter().chain(unequal)
    }

    /// Returns the label that it may jump to.
    pub fn jump_target(&self) -> Option<LabelId> {
        if let InstructionKind::Flow(
            Flow::Goto(target) | Flow::Branch { target, .. } | Flow::BranchIf { target, .. },
        ) = self
        {
            Some(*target)
        } else {
            None
        }
    }

    /// Returns the registers that it reads: operands, address dependency and branch condition.
    pub fn registers_read(&self) -> impl Iterator<Item = RegisterId> + use<> {
        let other_registers = match self {
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
        operands.chain(other_registers)
    }

    /// Returns true if its execution is an event: it accesses memory or orders accesses.
    ///
    /// Jumps, subgroup operations and computations in registers are not events, so nothing is ordered with
    /// them.
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

    /// Returns its operands that are values (computed with, stored or compared), in text order.
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

    /// Returns the registers whose final values belong to the outcome because this instruction assigns them.
    pub fn destinations(&self) -> impl Iterator<Item = RegisterId> + use<> {
        let computed = match self {
            InstructionKind::Compute(compute) => match compute {
                Compute::Arithmetic { destination, .. } | Compute::Move { destination, .. } => {
                    Some(*destination)
                }
                // The result of a comparison is only visible to branches.
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
    /// Quotient (signed). Division by zero is 0 in the model; no device runs such a test.
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
    /// Computes the result for two values of type `ty`.
    pub fn apply(self, left: Value, right: Value, ty: ScalarType) -> Value {
        let (l, r) = (left.0, right.0);
        let (signed_left, signed_right) = (left.to_signed(ty), right.to_signed(ty));
        let left_is_less = if ty.is_signed() { signed_left < signed_right } else { l < r };
        let (lesser, greater) = if left_is_less { (l, r) } else { (r, l) };
        let result = match self {
            ArithmeticOperation::Add => l.wrapping_add(r),
            ArithmeticOperation::Subtract => l.wrapping_sub(r),
            ArithmeticOperation::Multiply => l.wrapping_mul(r),
            ArithmeticOperation::Divide if r == 0 => 0,
            ArithmeticOperation::Divide => signed_left.wrapping_div(signed_right) as u64,
            ArithmeticOperation::And => l & r,
            ArithmeticOperation::Or => l | r,
            ArithmeticOperation::Xor => l ^ r,
            ArithmeticOperation::Minimum => lesser,
            ArithmeticOperation::Maximum => greater,
        };
        Value(result).truncate_to(ty)
    }
}

/// A control barrier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlBarrier {
    /// The scope of the participants: workgroup unless `.execsg`, `.execwg` … is given.
    pub execution_scope: Scope,
    /// Memory scope: the `.wg` or similar after `cbar`.
    pub memory_scope: Scope,
    /// Memory semantics; `None` for a barrier without an order, which is not a memory barrier.
    pub semantics: BarrierSemantics,
    /// The instance, compared as text: `0` and `00` are different barriers.
    pub id: String,
    /// Resource of a named barrier. Instances that name one resource are still different barriers.
    pub resource: Option<String>,
    /// The number of arrivals that releases a named barrier.
    pub quorum: Option<u32>,
}

impl ControlBarrier {
    /// Returns true if both have one instance, resource and execution scope, so that threads of one instance of
    /// that scope wait for each other at them.
    pub fn is_same_barrier(&self, other: &ControlBarrier) -> bool {
        self.id == other.id
            && self.resource == other.resource
            && self.execution_scope == other.execution_scope
    }
}

/// A half of a split barrier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitBarrier {
    /// The half.
    pub half: SplitHalf,
    /// The scope of the participants: workgroup or subgroup. Phases are counted separately for the two
    /// scopes.
    pub execution_scope: Scope,
    /// Memory scope.
    pub memory_scope: Scope,
    /// Memory semantics: an arrival may release, a wait may acquire; `None` without an order.
    pub semantics: BarrierSemantics,
    /// Identity of the shader instruction: columns with equal half and text execute one instruction. The
    /// memory model ignores it.
    pub id: String,
}

impl SplitBarrier {
    /// Returns true if two halves belong to the same split barrier, if their threads share an instance of the
    /// execution scope.
    ///
    /// At workgroup scope these are all split barriers of the workgroup. At subgroup scope they must be the
    /// same instruction, since lanes at other ones have diverged.
    pub fn is_same_barrier(&self, other: &SplitBarrier) -> bool {
        let is_same_instruction = self.execution_scope != Scope::Subgroup || self.id == other.id;
        self.execution_scope == other.execution_scope && self.half == other.half && is_same_instruction
    }
}

/// The halves of a split barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SplitHalf {
    /// `cbar.arrive`: OpControlBarrierArriveEXT, which does not wait.
    Arrive,
    /// `cbar.wait`: OpControlBarrierWaitEXT; waits until every participant has arrived once for each wait of
    /// its invocation.
    Wait,
}

impl SplitHalf {
    /// Returns the word after `cbar.`.
    pub fn keyword(self) -> &'static str {
        match self {
            SplitHalf::Arrive => "arrive",
            SplitHalf::Wait => "wait",
        }
    }

    /// Returns the strongest order that it may have.
    pub fn strongest_order(self) -> Order {
        match self {
            SplitHalf::Arrive => Order::Release,
            SplitHalf::Wait => Order::Acquire,
        }
    }
}

/// Semantics of a control barrier: absent or present.
pub type BarrierSemantics = Option<Semantics>;
