//! The one place where instructions of litmus tests are made.

use litmus::{
    Access, ArithmeticOperation, BranchRelation, ControlBarrier, InstructionKind, LabelId, LocationId,
    Operand, RegisterId, RmwOperation, ScalarType, Scope, Semantics, StorageClass,
};

use crate::value::Number;

/// What an access names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub location: LocationId,
    pub class: StorageClass,
    /// The type of the access where it is not that of the location: the same width, signed.
    pub scalar: Option<ScalarType>,
}

/// A number as an operand.
pub(crate) fn operand(number: Number) -> Operand {
    match number {
        Number::Known(value) => Operand::Constant(value as i64),
        Number::Register(register) => Operand::Register(RegisterId(register)),
    }
}

pub(crate) fn load(destination: u16, target: Target, access: Access) -> InstructionKind {
    let Target { location, class, scalar } = target;
    InstructionKind::Load { destination: RegisterId(destination), location, offset: 0, scalar, class, access }
}

pub(crate) fn store(target: Target, value: Number, access: Access) -> InstructionKind {
    let Target { location, class, scalar } = target;
    InstructionKind::Store { location, offset: 0, scalar, value: operand(value), class, access }
}

/// A read-modify-write that computes with an operand, or without an operation exchanges.
pub(crate) fn read_modify_write(
    destination: u16,
    target: Target,
    operation: Option<ArithmeticOperation>,
    value: Number,
    (scope, semantics): (Scope, Semantics),
) -> InstructionKind {
    let operation = match operation {
        Some(operation) => RmwOperation::Fetch(operation, operand(value)),
        None => RmwOperation::Exchange(operand(value)),
    };
    let Target { location, class, scalar } = target;
    let destination = RegisterId(destination);
    InstructionKind::Rmw { destination, location, offset: 0, scalar, operation, class, scope, semantics }
}

pub(crate) fn compare_exchange(
    destination: u16,
    target: Target,
    (compare, value): (Number, Number),
    (scope, semantics, unequal): (Scope, Semantics, Semantics),
) -> InstructionKind {
    let operation =
        RmwOperation::CompareExchange { compare: operand(compare), value: operand(value), unequal };
    let Target { location, class, scalar } = target;
    let destination = RegisterId(destination);
    InstructionKind::Rmw { destination, location, offset: 0, scalar, operation, class, scope, semantics }
}

pub(crate) fn memory_barrier(scope: Scope, semantics: Semantics) -> InstructionKind {
    InstructionKind::Fence { scope, semantics }
}

pub(crate) fn control_barrier(
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

pub(crate) fn arithmetic(
    destination: u16,
    operation: ArithmeticOperation,
    left: Number,
    right: Number,
) -> InstructionKind {
    let (left, right) = (operand(left), operand(right));
    InstructionKind::Arithmetic { destination: RegisterId(destination), operation, left, right }
}

/// Assigns a number.
pub(crate) fn assign(destination: u16, value: u64) -> InstructionKind {
    arithmetic(destination, ArithmeticOperation::Add, Number::Known(value), Number::Known(0))
}

pub(crate) fn branch(relation: BranchRelation, left: Number, right: Number, target: u16) -> InstructionKind {
    let (left, right) = (operand(left), operand(right));
    InstructionKind::Branch { relation, left, right, target: LabelId(target) }
}

pub(crate) fn go_to(target: u16) -> InstructionKind {
    InstructionKind::Goto(LabelId(target))
}

pub(crate) fn label(label: u16) -> InstructionKind {
    InstructionKind::Label(LabelId(label))
}

/// The labels that an instruction jumps to, and the one that it is.
pub(crate) fn labels_of(kind: &InstructionKind) -> (Option<LabelId>, Option<LabelId>) {
    match kind {
        InstructionKind::Goto(target) | InstructionKind::Branch { target, .. } => (Some(*target), None),
        InstructionKind::Label(label) => (None, Some(*label)),
        _ => (None, None),
    }
}

/// The register that an instruction computes without touching memory, and the registers that it needs.
pub(crate) fn registers_of(kind: &InstructionKind) -> (Option<RegisterId>, Vec<RegisterId>) {
    let register = |operand: &Operand| match operand {
        Operand::Register(register) => Some(*register),
        Operand::Constant(_) => None,
    };
    match kind {
        InstructionKind::Arithmetic { destination, left, right, .. } => {
            (Some(*destination), [left, right].into_iter().filter_map(register).collect())
        }
        InstructionKind::Branch { left, right, .. } => {
            (None, [left, right].into_iter().filter_map(register).collect())
        }
        InstructionKind::Store { value, .. } => (None, register(value).into_iter().collect()),
        InstructionKind::Rmw { operation, .. } => match operation {
            RmwOperation::Exchange(value) | RmwOperation::Fetch(_, value) => {
                (None, register(value).into_iter().collect())
            }
            RmwOperation::CompareExchange { compare, value, .. } => {
                (None, [compare, value].into_iter().filter_map(register).collect())
            }
        },
        _ => (None, Vec::new()),
    }
}

/// The type of a location of so many bytes.
pub(crate) fn scalar_of(bytes: u32) -> Option<ScalarType> {
    match bytes {
        1 => Some(ScalarType::U8),
        2 => Some(ScalarType::U16),
        4 => Some(ScalarType::U32),
        8 => Some(ScalarType::U64),
        _ => None,
    }
}

/// The signed type of so many bytes.
pub(crate) fn signed_scalar_of(bytes: u32) -> Option<ScalarType> {
    match bytes {
        1 => Some(ScalarType::I8),
        2 => Some(ScalarType::I16),
        4 => Some(ScalarType::I32),
        8 => Some(ScalarType::I64),
        _ => None,
    }
}

/// Renames the labels of an instruction.
pub(crate) fn relabel(kind: &mut InstructionKind, number: &impl Fn(&LabelId) -> LabelId) {
    match kind {
        InstructionKind::Goto(label)
        | InstructionKind::Label(label)
        | InstructionKind::Branch { target: label, .. } => *label = number(label),
        _ => {}
    }
}

/// The location that an instruction accesses.
pub(crate) fn location_of(kind: &InstructionKind) -> Option<LocationId> {
    match kind {
        InstructionKind::Load { location, .. }
        | InstructionKind::Store { location, .. }
        | InstructionKind::Rmw { location, .. } => Some(*location),
        _ => None,
    }
}

/// The code of a thread that never starts: others wait for it at its barriers for ever.
pub(crate) fn idle(code: &[InstructionKind]) -> (Vec<InstructionKind>, usize) {
    let barriers = code.iter().filter(|kind| matches!(kind, InstructionKind::ControlBarrier(_))).cloned();
    let mut idle = vec![go_to(0)];
    idle.extend(barriers);
    idle.push(label(0));
    (idle, 1)
}

/// What is added to semantics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ordering {
    pub acquire: bool,
    pub release: bool,
    pub class: StorageClass,
}

impl Ordering {
    fn added_to(self, semantics: Semantics) -> Semantics {
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
        }
    }
}

/// An atomic or a barrier with more order; `None` for what cannot have it, or has it.
pub(crate) fn ordered(kind: &InstructionKind, more: Ordering) -> Option<InstructionKind> {
    let mut changed = kind.clone();
    match &mut changed {
        InstructionKind::Load { access: Access::Atomic { semantics, .. }, .. } if !more.release => {
            *semantics = more.added_to(*semantics);
        }
        InstructionKind::Store { access: Access::Atomic { semantics, .. }, .. } if !more.acquire => {
            *semantics = more.added_to(*semantics);
        }
        InstructionKind::Rmw { semantics, .. } | InstructionKind::Fence { semantics, .. } => {
            *semantics = more.added_to(*semantics);
        }
        InstructionKind::ControlBarrier(barrier) => {
            barrier.semantics = Some(more.added_to(barrier.semantics.unwrap_or(Semantics::RELAXED)));
        }
        _ => return None,
    }
    (changed != *kind).then_some(changed)
}

/// An atomic or a barrier of a wider memory scope; `None` for what has none, or one as wide.
pub(crate) fn widened(kind: &InstructionKind, wide: Scope) -> Option<InstructionKind> {
    let mut changed = kind.clone();
    let scope = match &mut changed {
        InstructionKind::Load {
            access: Access::Atomic { scope, .. } | Access::Coherent { scope }, ..
        }
        | InstructionKind::Store {
            access: Access::Atomic { scope, .. } | Access::Coherent { scope }, ..
        }
        | InstructionKind::Rmw { scope, .. }
        | InstructionKind::Fence { scope, .. } => scope,
        InstructionKind::ControlBarrier(barrier) => &mut barrier.memory_scope,
        _ => return None,
    };
    if *scope >= wide {
        return None;
    }
    *scope = wide;
    Some(changed)
}

/// A plain access that makes its memory available or visible; `None` for what does, and for atomics.
pub(crate) fn coherent(kind: &InstructionKind, scope: Scope) -> Option<InstructionKind> {
    let mut changed = kind.clone();
    match &mut changed {
        InstructionKind::Load { access: access @ (Access::Private | Access::NonPrivate), .. }
        | InstructionKind::Store { access: access @ (Access::Private | Access::NonPrivate), .. } => {
            *access = Access::Coherent { scope };
        }
        _ => return None,
    }
    Some(changed)
}

/// A plain access that is not private to its invocation; `None` for what is none.
pub(crate) fn non_private(kind: &InstructionKind) -> Option<InstructionKind> {
    let mut changed = kind.clone();
    match &mut changed {
        InstructionKind::Load { access: access @ Access::Private, .. }
        | InstructionKind::Store { access: access @ Access::Private, .. } => *access = Access::NonPrivate,
        _ => return None,
    }
    Some(changed)
}

/// A plain access as a relaxed atomic.
pub(crate) fn atomic(kind: &InstructionKind, scope: Scope) -> Option<InstructionKind> {
    let mut changed = kind.clone();
    match &mut changed {
        InstructionKind::Load { access, .. } | InstructionKind::Store { access, .. }
            if !matches!(access, Access::Atomic { .. }) =>
        {
            *access = Access::Atomic { scope, semantics: Semantics::RELAXED };
        }
        _ => return None,
    }
    Some(changed)
}

/// A barrier that orders and publishes everything of a class.
pub(crate) fn full_semantics(class: StorageClass) -> Semantics {
    Ordering { acquire: true, release: true, class }.added_to(Semantics::RELAXED)
}

/// The class that an instruction accesses memory through.
pub(crate) fn class_of(kind: &InstructionKind) -> Option<StorageClass> {
    match kind {
        InstructionKind::Load { class, .. }
        | InstructionKind::Store { class, .. }
        | InstructionKind::Rmw { class, .. } => Some(*class),
        _ => None,
    }
}

/// What an instruction is, in the words of shaders; `None` for what is no event.
pub(crate) fn word_of(kind: &InstructionKind) -> Option<&'static str> {
    Some(match kind {
        InstructionKind::Load { access: Access::Atomic { .. }, .. } => "atomic load",
        InstructionKind::Store { access: Access::Atomic { .. }, .. } => "atomic store",
        InstructionKind::Rmw { .. } => "atomic",
        InstructionKind::Load { .. } => "read",
        InstructionKind::Store { .. } => "write",
        InstructionKind::Fence { .. } => "memory barrier",
        InstructionKind::ControlBarrier(_) => "barrier",
        _ => return None,
    })
}
