//! The lattice of synchronization strength: all single steps up and down.
//!
//! A step changes the scope, the storage classes, availability or visibility, the order, the unequal case of
//! a compare-exchange, or the strength of an access.

#![deny(clippy::wildcard_enum_match_arm)]

use super::access::{Access, AccessKind, MemoryAccess, RmwOperation};
use super::instruction::{ControlBarrier, SplitBarrier};
use super::{Dialect, Test};
use vocabulary::{Order, Scope, Semantics, StorageClass, StorageClassSet};

/// The change of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Change {
    /// Another scope.
    Scope(Scope),
    /// Another order.
    Order(Order),
    /// One storage class removed.
    Class(StorageClass),
    /// All storage classes of the test.
    Classes,
    /// MakeAvailable, added or removed.
    Available,
    /// MakeVisible, added or removed.
    Visible,
    /// The semantics of the unequal case.
    Unequal,
    /// A private access.
    Private,
    /// A non-private access without an availability or visibility operation.
    NonPrivate,
    /// A plain access with an availability or visibility operation.
    Coherent,
    /// An atomic access.
    Atomic,
}

/// Bounds of upward steps in one test: scopes and classes that its threads can distinguish.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reach {
    /// The common scopes of pairs of threads, narrow to wide.
    pub scopes: Vec<Scope>,
    /// The storage classes that are accessed.
    pub classes: StorageClassSet,
}

impl Reach {
    /// Returns the scopes and classes that the threads of a test can distinguish.
    pub fn of(test: &Test) -> Reach {
        let places: Vec<_> = test.threads.iter().map(|thread| thread.place.device_placement()).collect();
        let mut scopes: Vec<Scope> = Vec::new();
        for (index, first) in places.iter().enumerate() {
            for second in places.iter().skip(index + 1) {
                scopes.push(match (first, second) {
                    (Some(first), Some(second)) => first.common_scope(*second),
                    // In Vulkan, no scope that a shader can name includes the host.
                    _ if test.dialect == Dialect::Hsa => Scope::CrossDevice,
                    _ => Scope::Device,
                });
            }
        }
        scopes.sort_unstable();
        scopes.dedup();
        let instructions = test.threads.iter().flat_map(|thread| &thread.instructions);
        let accesses = instructions.filter_map(|instruction| instruction.kind.access());
        let classes = accesses.fold(StorageClassSet::EMPTY, |all, access| all.with(access.place.class));
        Reach { scopes, classes }
    }

    fn wider(&self, scope: Scope) -> impl Iterator<Item = Scope> + '_ {
        self.scopes.iter().copied().filter(move |wider| *wider > scope)
    }
}

/// Returns the next narrower scope at which shaders synchronize.
fn narrower_scope(scope: Scope, dialect: Dialect) -> Option<Scope> {
    match scope {
        // In HSA, work-groups are directly below the agent.
        Scope::Device if dialect == Dialect::Hsa => Some(Scope::Workgroup),
        Scope::CrossDevice => Some(Scope::Device),
        Scope::Device => Some(Scope::QueueFamily),
        Scope::QueueFamily => Some(Scope::Workgroup),
        Scope::Workgroup => Some(Scope::Subgroup),
        Scope::Subgroup | Scope::Invocation | Scope::ShaderCall | Scope::FragmentInterlock => None,
    }
}

/// Returns the semantics one step weaker; the weakest is relaxed.
fn weaker_semantics(of: Semantics) -> Vec<(Change, Semantics)> {
    let mut found = Vec::new();
    if of.sequential {
        found.push((Change::Order(of.order), Semantics { sequential: false, ..of }));
    }
    if of.classes.iter().count() > 1 {
        found.extend(of.classes.iter().map(|class| {
            let classes = StorageClassSet(of.classes.0 & !(1 << class.index()));
            (Change::Class(class), Semantics { classes, ..of })
        }));
    }
    if of.make_available {
        found.push((Change::Available, Semantics { make_available: false, ..of }));
    }
    if of.make_visible {
        found.push((Change::Visible, Semantics { make_visible: false, ..of }));
    }
    let order = |order| (Change::Order(order), of.with_order(order));
    match of.order {
        // The step below a sequentially consistent order is the same order without that.
        _ if of.sequential => {}
        Order::AcquireRelease => found.extend([order(Order::Acquire), order(Order::Release)]),
        Order::Acquire | Order::Release => found.push(order(Order::Relaxed)),
        Order::Relaxed => {}
    }
    found
}

/// Returns the semantics one step stronger.
///
/// `orders` are the possible orders; a new order includes all `classes`.
fn stronger_semantics(of: Semantics, orders: &[Order], classes: StorageClassSet) -> Vec<(Change, Semantics)> {
    let classes = StorageClassSet(of.classes.0 | classes.0);
    let orders = orders.iter().copied().filter(|order| order.is_stronger_than(of.order));
    let mut found: Vec<(Change, Semantics)> =
        orders.map(|order| (Change::Order(order), Semantics { order, classes, ..of })).collect();
    if of.order == Order::Relaxed {
        return found;
    }
    if classes != of.classes {
        found.push((Change::Classes, Semantics { classes, ..of }));
    }
    if of.order.releases() && !of.make_available {
        found.push((Change::Available, Semantics { make_available: true, ..of }));
    }
    if of.order.acquires() && !of.make_visible {
        found.push((Change::Visible, Semantics { make_visible: true, ..of }));
    }
    found
}

impl Access {
    /// Returns the access one step weaker.
    ///
    /// HSA's ordinary accesses have no weaker form. HSA's atomics and read-modify-writes stay atomic.
    pub fn weaker(self, dialect: Dialect, always_atomic: bool) -> Vec<(Change, Access)> {
        let plain = dialect != Dialect::Hsa;
        match self {
            Access::Private => Vec::new(),
            Access::NonPrivate | Access::Coherent { .. } if !plain => Vec::new(),
            Access::NonPrivate => vec![(Change::Private, Access::Private)],
            Access::Coherent { scope } => {
                let narrower = narrower_scope(scope, dialect);
                let narrower = narrower.map(|scope| (Change::Scope(scope), Access::Coherent { scope }));
                narrower.into_iter().chain([(Change::NonPrivate, Access::NonPrivate)]).collect()
            }
            Access::Atomic { scope, semantics } => {
                let narrower = narrower_scope(scope, dialect);
                let narrower =
                    narrower.map(|scope| (Change::Scope(scope), Access::Atomic { scope, semantics }));
                let mut found: Vec<(Change, Access)> = narrower.into_iter().collect();
                let weaker = weaker_semantics(semantics).into_iter();
                found.extend(weaker.map(|(change, semantics)| (change, Access::Atomic { scope, semantics })));
                if semantics == Semantics::RELAXED && plain && !always_atomic {
                    found.push((Change::Coherent, Access::Coherent { scope }));
                }
                found
            }
        }
    }

    /// Returns the access one step stronger; `orders` are the possible orders of its direction.
    pub fn stronger(self, reach: &Reach, orders: &[Order]) -> Vec<(Change, Access)> {
        let coherent = || {
            let scopes = reach.scopes.iter().copied();
            scopes.map(|scope| (Change::Coherent, Access::Coherent { scope }))
        };
        // An atomic access has at least the scope that the access already has.
        let atomic = |from: Scope| {
            let mut scopes: Vec<Scope> = reach.scopes.iter().map(|scope| (*scope).max(from)).collect();
            scopes.dedup();
            let semantics = Semantics::RELAXED;
            scopes.into_iter().map(move |scope| (Change::Atomic, Access::Atomic { scope, semantics }))
        };
        match self {
            Access::Private => [(Change::NonPrivate, Access::NonPrivate)]
                .into_iter()
                .chain(coherent())
                .chain(atomic(Scope::Invocation))
                .collect(),
            Access::NonPrivate => coherent().chain(atomic(Scope::Invocation)).collect(),
            Access::Coherent { scope } => {
                let wider =
                    reach.wider(scope).map(|scope| (Change::Scope(scope), Access::Coherent { scope }));
                wider.chain(atomic(scope)).collect()
            }
            Access::Atomic { scope, semantics } => {
                let wider = reach.wider(scope);
                let wider = wider.map(|scope| (Change::Scope(scope), Access::Atomic { scope, semantics }));
                let stronger = stronger_semantics(semantics, orders, reach.classes).into_iter();
                wider
                    .chain(stronger.map(|(change, semantics)| (change, Access::Atomic { scope, semantics })))
                    .collect()
            }
        }
    }
}

impl MemoryAccess {
    /// Returns the access one step weaker.
    pub fn weaker(&self, dialect: Dialect) -> Vec<(Change, MemoryAccess)> {
        let always_atomic = match self.kind {
            AccessKind::Load(_) | AccessKind::Store(_) => false,
            AccessKind::Rmw { .. } | AccessKind::Await { .. } => true,
        };
        let weaker = self.strength.weaker(dialect, always_atomic).into_iter();
        let mut found: Vec<(Change, MemoryAccess)> = weaker
            .map(|(change, strength)| {
                let changed = MemoryAccess { strength, ..*self };
                let unequal = self.unequal().map(|unequal| match changed.semantics().order.acquires() {
                    true => unequal,
                    false => Semantics::RELAXED,
                });
                (change, unequal.map_or(changed, |unequal| changed.with_unequal(unequal)))
            })
            .collect();
        if let Some(unequal) = self.unequal() {
            let weaker = weaker_semantics(unequal).into_iter();
            found.extend(weaker.map(|(_, unequal)| (Change::Unequal, self.with_unequal(unequal))));
        }
        found
    }

    /// Returns the access one step stronger.
    pub fn stronger(&self, reach: &Reach) -> Vec<(Change, MemoryAccess)> {
        let orders: &[Order] = match self.kind {
            AccessKind::Load(_) | AccessKind::Await { .. } => &[Order::Acquire],
            AccessKind::Store(_) => &[Order::Release],
            AccessKind::Rmw { .. } => &[Order::Acquire, Order::Release, Order::AcquireRelease],
        };
        let stronger = self.strength.stronger(reach, orders).into_iter();
        // Vector accesses cannot be atomic.
        let possible = stronger.filter(|(_, strength)| !(self.is_vector() && strength.is_atomic()));
        let mut found: Vec<(Change, MemoryAccess)> =
            possible.map(|(change, strength)| (change, MemoryAccess { strength, ..*self })).collect();
        let semantics = self.semantics();
        if self.unequal().is_some_and(|unequal| unequal.order == Order::Relaxed) && semantics.order.acquires()
        {
            found.push((Change::Unequal, self.with_unequal(semantics.unequal())));
        }
        found
    }

    fn with_unequal(&self, unequal: Semantics) -> MemoryAccess {
        let mut changed = *self;
        if let AccessKind::Rmw { operation: RmwOperation::CompareExchange { unequal: old, .. }, .. } =
            &mut changed.kind
        {
            *old = unequal;
        }
        changed
    }
}

impl ControlBarrier {
    /// Returns the barrier with memory semantics one step weaker; without semantics it is not a memory
    /// barrier.
    pub fn weaker(&self, dialect: Dialect) -> Vec<(Change, ControlBarrier)> {
        let Some(semantics) = self.semantics else { return Vec::new() };
        let narrower = narrower_scope(self.memory_scope, dialect).into_iter();
        let narrower = narrower.map(|memory_scope| {
            (Change::Scope(memory_scope), ControlBarrier { memory_scope, ..self.clone() })
        });
        let weaker = weaker_semantics(semantics).into_iter().map(|(change, weaker)| {
            let semantics = (weaker.order != Order::Relaxed).then_some(weaker);
            (change, ControlBarrier { semantics, ..self.clone() })
        });
        narrower.chain(weaker).collect()
    }

    /// Returns the barrier one step stronger; without memory semantics its memory scope is irrelevant.
    pub fn stronger(&self, reach: &Reach) -> Vec<(Change, ControlBarrier)> {
        let wider = reach.wider(self.memory_scope).filter(|_| self.semantics.is_some());
        let wider = wider.map(|memory_scope| {
            (Change::Scope(memory_scope), ControlBarrier { memory_scope, ..self.clone() })
        });
        let semantics = self.semantics.unwrap_or(Semantics::RELAXED);
        let stronger = stronger_semantics(semantics, &[Order::AcquireRelease], reach.classes).into_iter();
        let stronger = stronger.map(|(change, semantics)| {
            (change, ControlBarrier { semantics: Some(semantics), ..self.clone() })
        });
        wider.chain(stronger).collect()
    }
}

impl SplitBarrier {
    /// Returns the barrier with memory semantics one step weaker; without semantics it is not a memory
    /// barrier.
    pub fn weaker(&self, dialect: Dialect) -> Vec<(Change, SplitBarrier)> {
        let Some(semantics) = self.semantics else { return Vec::new() };
        let narrower = narrower_scope(self.memory_scope, dialect).into_iter();
        let narrower = narrower
            .map(|memory_scope| (Change::Scope(memory_scope), SplitBarrier { memory_scope, ..self.clone() }));
        let weaker = weaker_semantics(semantics).into_iter().map(|(change, weaker)| {
            let semantics = (weaker.order != Order::Relaxed).then_some(weaker);
            (change, SplitBarrier { semantics, ..self.clone() })
        });
        narrower.chain(weaker).collect()
    }

    /// Returns the barrier one step stronger; an arrival may only release, a wait only acquire.
    pub fn stronger(&self, reach: &Reach) -> Vec<(Change, SplitBarrier)> {
        let wider = reach.wider(self.memory_scope).filter(|_| self.semantics.is_some());
        let wider = wider
            .map(|memory_scope| (Change::Scope(memory_scope), SplitBarrier { memory_scope, ..self.clone() }));
        let semantics = self.semantics.unwrap_or(Semantics::RELAXED);
        let stronger = stronger_semantics(semantics, &[self.half.order()], reach.classes).into_iter();
        let stronger = stronger
            .map(|(change, semantics)| (change, SplitBarrier { semantics: Some(semantics), ..self.clone() }));
        wider.chain(stronger).collect()
    }
}

/// Returns the forms of a memory barrier that are one step weaker.
pub(super) fn weaker_fence(
    scope: Scope,
    semantics: Semantics,
    dialect: Dialect,
) -> Vec<(Change, Scope, Semantics)> {
    let narrower =
        narrower_scope(scope, dialect).into_iter().map(|scope| (Change::Scope(scope), scope, semantics));
    let weaker =
        weaker_semantics(semantics).into_iter().map(|(change, semantics)| (change, scope, semantics));
    narrower.chain(weaker).collect()
}

/// Returns the forms of a memory barrier that are one step stronger.
pub(super) fn stronger_fence(
    scope: Scope,
    semantics: Semantics,
    reach: &Reach,
) -> Vec<(Change, Scope, Semantics)> {
    let wider = reach.wider(scope).map(|scope| (Change::Scope(scope), scope, semantics));
    let stronger = stronger_semantics(semantics, &[Order::AcquireRelease], reach.classes).into_iter();
    wider.chain(stronger.map(|(change, semantics)| (change, scope, semantics))).collect()
}
