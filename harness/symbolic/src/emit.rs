//! Constructors and queries of litmus instructions: the only code that builds them.

#![deny(clippy::wildcard_enum_match_arm)]

use litmus::{
    Access, ArithmeticOperation, Comparison, Compute, ControlBarrier, Flow, InstructionKind, Interlock,
    InterlockEnd, InterlockOrder, LabelId, LocationId, MemoryPlace, Operand, RegisterId, RmwOperation,
    ScalarType, Scope, Semantics, SplitBarrier, SplitHalf, StorageClass,
};

use crate::value::SymbolicNumber;

/// The register that selects the path with which a thread enters a segment.
pub(crate) const ENTRY_REGISTER: u16 = 0;
/// The register that counts in the loop that a path ends in at the unrolling bound.
pub const COUNT_REGISTER: u16 = 1;
/// The first number that marks a suspicion: above every value that [`COUNT_REGISTER`] reaches.
pub(crate) const FIRST_SUSPICION: u64 = 1 << 16;
/// The register for reads whose value is unused.
pub(crate) const SCRATCH_REGISTER: u16 = 2;
pub(crate) const END_LABEL: u16 = 0;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessTarget {
    pub location: LocationId,
    pub class: StorageClass,
    /// The signed type of the same width, if the access differs from its location.
    pub scalar: Option<ScalarType>,
}

/// Converts a number to an operand.
pub(crate) fn to_operand(number: SymbolicNumber) -> Operand {
    match number {
        SymbolicNumber::Known(value) => Operand::Constant(value as i64),
        SymbolicNumber::Register(register) => Operand::Register(RegisterId(register)),
    }
}

impl AccessTarget {
    fn to_memory_place(self) -> MemoryPlace {
        MemoryPlace { scalar: self.scalar, ..MemoryPlace::whole_location(self.location, self.class) }
    }
}

pub fn load(destination: u16, target: AccessTarget, access: Access) -> InstructionKind {
    InstructionKind::load(RegisterId(destination), target.to_memory_place(), access)
}

pub fn store(target: AccessTarget, value: SymbolicNumber, access: Access) -> InstructionKind {
    InstructionKind::store(target.to_memory_place(), to_operand(value), access)
}

/// Builds a read-modify-write; without an operation it is an exchange.
pub fn read_modify_write(
    destination: u16,
    target: AccessTarget,
    operation: Option<ArithmeticOperation>,
    value: SymbolicNumber,
    scope: Scope,
    semantics: Semantics,
) -> InstructionKind {
    let operation = match operation {
        Some(operation) => RmwOperation::Fetch(operation, to_operand(value)),
        None => RmwOperation::Exchange(to_operand(value)),
    };
    InstructionKind::rmw(RegisterId(destination), target.to_memory_place(), operation, scope, semantics)
}

pub(crate) fn compare_exchange(
    destination: u16,
    target: AccessTarget,
    compare: SymbolicNumber,
    value: SymbolicNumber,
    scope: Scope,
    semantics: Semantics,
    unequal: Semantics,
) -> InstructionKind {
    let operation =
        RmwOperation::CompareExchange { compare: to_operand(compare), value: to_operand(value), unequal };
    InstructionKind::rmw(RegisterId(destination), target.to_memory_place(), operation, scope, semantics)
}

pub(crate) fn memory_barrier(scope: Scope, semantics: Semantics) -> InstructionKind {
    InstructionKind::Fence { scope, semantics }
}

pub fn control_barrier(
    instance: usize,
    execution_scope: Scope,
    memory_scope: Scope,
    semantics: Option<Semantics>,
) -> InstructionKind {
    InstructionKind::ControlBarrier(ControlBarrier {
        execution_scope,
        memory_scope,
        semantics,
        id: instance.to_string(),
        resource: None,
        quorum: None,
    })
}

pub(crate) fn split_barrier(
    half: SplitHalf,
    instance: usize,
    execution_scope: Scope,
    memory_scope: Scope,
    semantics: Option<Semantics>,
) -> InstructionKind {
    let id = instance.to_string();
    InstructionKind::SplitBarrier(SplitBarrier { half, execution_scope, memory_scope, semantics, id })
}

pub fn interlock(end: InterlockEnd, order: InterlockOrder, pixel: u32) -> InstructionKind {
    InstructionKind::Interlock(Interlock { end, order, section: pixel.to_string() })
}

pub fn arithmetic(
    destination: u16,
    operation: ArithmeticOperation,
    left: SymbolicNumber,
    right: SymbolicNumber,
) -> InstructionKind {
    let (left, right) = (to_operand(left), to_operand(right));
    let destination = RegisterId(destination);
    InstructionKind::Compute(Compute::Arithmetic { destination, operation, left, right })
}

/// Builds an assignment of a constant.
pub(crate) fn assign(destination: u16, value: u64) -> InstructionKind {
    arithmetic(destination, ArithmeticOperation::Add, SymbolicNumber::Known(value), SymbolicNumber::Known(0))
}

pub fn branch(
    relation: Comparison,
    left: SymbolicNumber,
    right: SymbolicNumber,
    target: u16,
) -> InstructionKind {
    let (left, right) = (to_operand(left), to_operand(right));
    InstructionKind::Flow(Flow::Branch { relation, left, right, target: LabelId(target) })
}

/// Builds the mark of a suspicion: a branch that is never taken.
pub(crate) fn suspicion_mark(index: usize) -> InstructionKind {
    let number = SymbolicNumber::Known(FIRST_SUSPICION + index as u64);
    branch(Comparison::Equal, SymbolicNumber::Register(COUNT_REGISTER), number, END_LABEL)
}

/// Returns the index of the suspicion that an instruction marks.
pub fn suspicion_of(kind: &InstructionKind) -> Option<usize> {
    if let InstructionKind::Flow(Flow::Branch {
        left: Operand::Register(RegisterId(COUNT_REGISTER)),
        right,
        ..
    }) = kind
        && let Operand::Constant(number) = right
    {
        return u64::try_from(*number).ok()?.checked_sub(FIRST_SUSPICION)?.try_into().ok();
    }
    None
}

/// The first constant that represents a function of read values.
const FIRST_FUNCTION: u64 = 1 << 40;
/// The first constant that represents a position that depends on read values.
const FIRST_POSITION: u64 = 1 << 56;

/// Builds the application of a function, by its code, to a register.
pub(crate) fn function_application(destination: u16, code: u32, operand: SymbolicNumber) -> InstructionKind {
    let code = SymbolicNumber::Known(FIRST_FUNCTION + u64::from(code));
    arithmetic(destination, ArithmeticOperation::And, operand, code)
}

/// Returns the code of the function that an operand represents.
pub fn function_of(operand: Operand) -> Option<u32> {
    let Operand::Constant(number) = operand else { return None };
    u32::try_from(u64::try_from(number).ok()?.checked_sub(FIRST_FUNCTION)?).ok()
}

/// Builds the mark of the position of the next access: a branch that is never taken.
pub(crate) fn position_mark(register: u16, offset: u64) -> InstructionKind {
    let offset = SymbolicNumber::Known(FIRST_POSITION + offset);
    branch(Comparison::Equal, SymbolicNumber::Register(register), offset, END_LABEL)
}

/// Returns the register and the constant of the position that an instruction marks.
pub fn position_of(kind: &InstructionKind) -> Option<(RegisterId, u64)> {
    let InstructionKind::Flow(Flow::Branch { left: Operand::Register(register), right, .. }) = kind else {
        return None;
    };
    let Operand::Constant(number) = right else { return None };
    Some((*register, u64::try_from(*number).ok()?.checked_sub(FIRST_POSITION)?))
}

pub fn jump(target: u16) -> InstructionKind {
    InstructionKind::Flow(Flow::Goto(LabelId(target)))
}

pub fn label(label: u16) -> InstructionKind {
    InstructionKind::Flow(Flow::Label(LabelId(label)))
}

/// Returns the label that an instruction jumps to, and the label that it defines.
pub fn labels_of(kind: &InstructionKind) -> (Option<LabelId>, Option<LabelId>) {
    let InstructionKind::Flow(flow) = kind else { return (None, None) };
    match flow {
        Flow::Goto(target) | Flow::Branch { target, .. } | Flow::BranchIf { target, .. } => {
            (Some(*target), None)
        }
        Flow::Label(label) => (None, Some(*label)),
    }
}

/// Returns the target of an unconditional jump.
pub fn jump_of(kind: &InstructionKind) -> Option<LabelId> {
    labels_of(kind).0.filter(|_| matches!(kind, InstructionKind::Flow(Flow::Goto(_))))
}

/// Returns the register that a computation defines, and the registers that it uses.
pub(crate) fn registers_of(kind: &InstructionKind) -> (Option<RegisterId>, Vec<RegisterId>) {
    let computed = if let InstructionKind::Compute(compute) = kind {
        let (Compute::Arithmetic { destination, .. }
        | Compute::Compare { destination, .. }
        | Compute::Move { destination, .. }) = compute;
        Some(*destination)
    } else if let InstructionKind::Subgroup(operation) = kind {
        operation.destination
    } else {
        None
    };
    (computed, kind.registers_read().collect())
}

/// Returns the type of a location by its size.
pub(crate) fn scalar_of(bytes: u32) -> Option<ScalarType> {
    match bytes {
        1 => Some(ScalarType::U8),
        2 => Some(ScalarType::U16),
        4 => Some(ScalarType::U32),
        8 => Some(ScalarType::U64),
        _ => None,
    }
}

/// Returns the signed type by its size.
pub(crate) fn signed_scalar_of(bytes: u32) -> Option<ScalarType> {
    match bytes {
        1 => Some(ScalarType::I8),
        2 => Some(ScalarType::I16),
        4 => Some(ScalarType::I32),
        8 => Some(ScalarType::I64),
        _ => None,
    }
}

/// Replaces the labels of an instruction.
pub(crate) fn relabel(kind: &mut InstructionKind, renumber: &impl Fn(&LabelId) -> LabelId) {
    let InstructionKind::Flow(flow) = kind else { return };
    match flow {
        Flow::Goto(label)
        | Flow::Label(label)
        | Flow::Branch { target: label, .. }
        | Flow::BranchIf { target: label, .. } => *label = renumber(label),
    }
}

pub(crate) fn location_of(kind: &InstructionKind) -> Option<LocationId> {
    kind.access().map(|access| access.place.location)
}

/// Returns the code of a thread that never starts; others wait forever at its barriers.
pub(crate) fn never_started_code(code: &[InstructionKind]) -> (Vec<InstructionKind>, usize) {
    let barrier = |kind: &&InstructionKind| {
        matches!(kind, InstructionKind::ControlBarrier(_) | InstructionKind::SplitBarrier(_))
    };
    let barriers = code.iter().filter(barrier).cloned();
    let mut idle = vec![jump(0)];
    idle.extend(barriers);
    idle.push(label(0));
    (idle, 1)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddedSemantics {
    pub acquire: bool,
    pub release: bool,
    pub class: StorageClass,
}

impl AddedSemantics {
    /// Returns the semantics with this ordering added.
    pub fn added_to(self, semantics: Semantics) -> Semantics {
        let acquire = self.acquire || semantics.order.acquires();
        let release = self.release || semantics.order.releases();
        let order = match (acquire, release) {
            (true, true) => litmus::Order::AcquireRelease,
            (true, false) => litmus::Order::Acquire,
            (false, true) => litmus::Order::Release,
            (false, false) => litmus::Order::Relaxed,
        };
        Semantics {
            order,
            classes: semantics.classes.with(self.class),
            make_available: semantics.make_available || self.release,
            make_visible: semantics.make_visible || self.acquire,
            ..semantics
        }
    }
}

/// Widens the memory scope of an atomic or barrier; `None` if it has none, or one as wide.
pub fn widen_scope(kind: &InstructionKind, wider_scope: Scope) -> Option<InstructionKind> {
    let mut changed = kind.clone();
    let scope = changed.memory_scope_mut()?;
    if *scope >= wider_scope {
        return None;
    }
    *scope = wider_scope;
    Some(changed)
}

/// Replaces the strength of an access by the result of `change`.
fn map_strength(
    kind: &InstructionKind,
    change: impl Fn(Access) -> Option<Access>,
) -> Option<InstructionKind> {
    let mut access = *kind.access()?;
    access.strength = change(access.strength)?;
    Some(InstructionKind::Access(access))
}

/// Makes a plain access available or visible; `None` if it is already, or is atomic.
pub fn make_coherent(kind: &InstructionKind, scope: Scope) -> Option<InstructionKind> {
    map_strength(kind, |strength| match strength {
        Access::Private | Access::NonPrivate => Some(Access::Coherent { scope }),
        Access::Coherent { .. } | Access::Atomic { .. } => None,
    })
}

/// Makes a private access non-private; `None` for other accesses.
pub fn make_non_private(kind: &InstructionKind) -> Option<InstructionKind> {
    map_strength(kind, |strength| match strength {
        Access::Private => Some(Access::NonPrivate),
        Access::NonPrivate | Access::Coherent { .. } | Access::Atomic { .. } => None,
    })
}

/// Returns the storage class of an access.
pub fn class_of(kind: &InstructionKind) -> Option<StorageClass> {
    kind.access().map(|access| access.place.class)
}

/// Returns whether an access writes; `None` for other instructions.
pub fn access_writes(kind: &InstructionKind) -> Option<bool> {
    kind.access().map(|access| access.is_write())
}
