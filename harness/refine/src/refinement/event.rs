//! Memory events of an invocation, and their strength.

use litmus::{Access, ScalarType, Semantics};

use super::expression::Expression;
use entry_point::Spot;

/// A cell with an identity that does not depend on ids and names of a module.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct CellKey {
    pub memory: MemoryKey,
    /// The offset in bytes.
    pub offset: Expression,
    pub bytes: u32,
}

/// The memory of a cell.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum MemoryKey {
    /// Descriptor set, binding, and element of an array of descriptors.
    Buffer { set: u32, binding: u32, element: u32 },
    /// The position among the workgroup variables.
    Workgroup { position: usize },
}

impl CellKey {
    /// Returns true if an access of one cell may access bytes of the other one.
    pub fn may_overlap(&self, other: &CellKey) -> bool {
        if self.memory != other.memory {
            return false;
        }
        let distance = |from: &CellKey, to: &CellKey| {
            let (from, to) = (from.offset.clone(), to.offset.clone());
            Expression::apply(litmus::ArithmeticOperation::Subtract, to, from)
        };
        // Offsets are numbers modulo 2^32.
        match (distance(self, other), distance(other, self)) {
            (Expression::Known(behind), Expression::Known(before)) => {
                behind < u64::from(self.bytes) || before < u64::from(other.bytes)
            }
            _ => true,
        }
    }
}

/// The operation of an event.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Operation {
    Load,
    Store(Expression),
    Exchange(Expression),
    Fetch(litmus::ArithmeticOperation, ScalarType, Expression),
    CompareExchange(Expression, Expression, Semantics),
    /// A memory barrier, a control barrier without its instance, or an end of an interlocked section.
    Order(OrderShape),
}

/// An event without a location.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum OrderShape {
    Fence,
    Barrier { scope: litmus::Scope },
    Interlock(String),
}

/// A memory event of an invocation.
#[derive(Clone, Debug)]
pub(super) struct Event {
    pub operation: Operation,
    pub cell: Option<CellKey>,
    pub strength: Access,
    /// The register of the value that is read.
    pub destination: Option<u16>,
    /// The values that may be read; `None` if they are unbounded.
    pub domain: Option<Vec<u64>>,
    pub is_volatile: bool,
    pub spot: Spot,
}

impl Event {
    /// Returns true for loads and stores that are not atomic.
    pub fn is_plain(&self) -> bool {
        self.cell.is_some() && !self.strength.is_atomic()
    }

    /// Returns true for plain accesses that no synchronization orders with other invocations.
    pub fn is_private(&self) -> bool {
        self.cell.is_some() && self.strength == Access::Private
    }

    pub fn is_load(&self) -> bool {
        self.operation == Operation::Load
    }

    pub fn writes(&self) -> bool {
        self.cell.is_some() && !self.is_load()
    }

    /// Returns scope and semantics if the event may synchronize.
    fn semantics(&self) -> Semantics {
        match self.strength {
            Access::Atomic { semantics, .. } => semantics,
            Access::Private | Access::NonPrivate | Access::Coherent { .. } => Semantics::RELAXED,
        }
    }

    /// Returns true for atomic accesses that order no other access.
    pub fn is_relaxed(&self) -> bool {
        self.cell.is_some() && self.strength.is_atomic() && self.semantics() == Semantics::RELAXED
    }

    /// Returns true if the event orders later accesses after others' earlier ones.
    pub fn acquires(&self) -> bool {
        self.is_full() || self.semantics().order.acquires()
    }

    /// Returns true if the event orders earlier accesses before others' later ones.
    pub fn releases(&self) -> bool {
        self.is_full() || self.semantics().order.releases()
    }

    /// Returns true for control barriers.
    pub fn is_barrier(&self) -> bool {
        matches!(self.operation, Operation::Order(OrderShape::Barrier { .. }))
    }

    /// Returns true for barriers, which count as acquire and release with any semantics.
    fn is_full(&self) -> bool {
        matches!(self.operation, Operation::Order(OrderShape::Barrier { .. } | OrderShape::Interlock(_)))
    }

    /// Returns the expressions for values and position.
    pub fn expressions_mut(&mut self) -> impl Iterator<Item = &mut Expression> {
        let position = self.cell.as_mut().map(|cell| &mut cell.offset);
        let (first, second) = match &mut self.operation {
            Operation::Load | Operation::Order(_) => (None, None),
            Operation::Store(value) | Operation::Exchange(value) | Operation::Fetch(_, _, value) => {
                (Some(value), None)
            }
            Operation::CompareExchange(compare, value, _) => (Some(compare), Some(value)),
        };
        first.into_iter().chain(second).chain(position)
    }

    /// Returns the expressions for values and position.
    pub fn expressions(&self) -> impl Iterator<Item = &Expression> {
        self.values().into_iter().chain(self.cell.as_ref().map(|cell| &cell.offset))
    }

    /// Returns the values that the event writes or compares.
    pub fn values(&self) -> Vec<&Expression> {
        match &self.operation {
            Operation::Load | Operation::Order(_) => Vec::new(),
            Operation::Store(value) | Operation::Exchange(value) | Operation::Fetch(_, _, value) => {
                vec![value]
            }
            Operation::CompareExchange(compare, value, _) => vec![compare, value],
        }
    }
}

impl std::fmt::Display for CellKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.memory {
            MemoryKey::Buffer { set, binding, element: 0 } => write!(f, "{set}.{binding}")?,
            MemoryKey::Buffer { set, binding, element } => write!(f, "{set}.{binding}[{element}]")?,
            MemoryKey::Workgroup { position } => write!(f, "workgroup variable {position}")?,
        }
        match self.offset {
            Expression::Known(offset) => write!(f, " at byte {offset}"),
            _ => f.write_str(" at a variable position"),
        }
    }
}

/// Returns true if both events have the same kind of operation.
pub(super) fn have_same_shape(left: &Event, right: &Event) -> bool {
    match (&left.operation, &right.operation) {
        (Operation::Fetch(left, first, _), Operation::Fetch(right, second, _)) => {
            left == right && first == second
        }
        (Operation::Order(left), Operation::Order(right)) => left == right,
        (left, right) => std::mem::discriminant(left) == std::mem::discriminant(right),
    }
}

/// Returns true if an event of AFTER is stronger than that of BEFORE, false if it is as strong, and `None`
/// if it is weaker or another one.
pub(super) fn strength_relation(after: &Event, before: &Event) -> Option<bool> {
    if !have_same_shape(after, before) || before.is_volatile && !after.is_volatile {
        return None;
    }
    let is_more_volatile = after.is_volatile && !before.is_volatile;
    let rank = |access: Access| match access {
        Access::Private => (0, None),
        Access::NonPrivate => (1, None),
        Access::Coherent { scope } => (2, Some(scope)),
        Access::Atomic { .. } => (3, None),
    };
    match (after.strength, before.strength) {
        (Access::Atomic { scope, semantics }, Access::Atomic { scope: least, semantics: required }) => {
            (scope >= least && includes_semantics(semantics, required))
                .then_some(is_more_volatile || scope != least || semantics != required)
        }
        (Access::Atomic { .. }, _) | (_, Access::Atomic { .. }) => None,
        (after, before) => {
            (rank(after) >= rank(before)).then_some(is_more_volatile || rank(after) != rank(before))
        }
    }
}

/// Returns true if semantics order and publish at least what others do.
fn includes_semantics(semantics: Semantics, required: Semantics) -> bool {
    (semantics.order.acquires() || !required.order.acquires())
        && (semantics.order.releases() || !required.order.releases())
        && semantics.classes.0 & required.classes.0 == required.classes.0
        && (semantics.make_available || !required.make_available)
        && (semantics.make_visible || !required.make_visible)
}

/// Describes an event in a few words.
pub(super) fn describe(event: &Event) -> String {
    let plain = match (event.is_volatile, event.strength.is_atomic()) {
        (true, true) => "a volatile atomic",
        (true, false) => "a volatile",
        (false, true) => "an atomic",
        (false, false) => "a",
    };
    let what = match &event.operation {
        Operation::Load => format!("{plain} load"),
        Operation::Store(_) => format!("{plain} store"),
        Operation::Exchange(_) | Operation::Fetch(..) | Operation::CompareExchange(..) => {
            "a read-modify-write".to_owned()
        }
        Operation::Order(OrderShape::Fence) => "a memory barrier".to_owned(),
        Operation::Order(OrderShape::Barrier { .. }) => "a control barrier".to_owned(),
        Operation::Order(OrderShape::Interlock(_)) => "an end of an interlocked section".to_owned(),
    };
    let order = match event.strength {
        Access::Atomic { semantics, .. } => match semantics.order {
            litmus::Order::Relaxed => "",
            litmus::Order::Acquire => " (acquire)",
            litmus::Order::Release => " (release)",
            litmus::Order::AcquireRelease => " (acquire and release)",
        },
        Access::Private | Access::NonPrivate | Access::Coherent { .. } => "",
    };
    match &event.cell {
        Some(cell) => format!("{what}{order} of {cell}"),
        None => format!("{what}{order}"),
    }
}
