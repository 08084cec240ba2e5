//! The lattice of synchronization strength: all single steps up and down.
//!
//! A step changes the scope, the storage classes, availability or visibility, the order, the unequal case of
//! a compare-exchange, or the strength of an access.

#![deny(clippy::wildcard_enum_match_arm)]

use super::access::{Access, AccessKind, MemoryAccess, RmwOperation};
use super::instruction::{BarrierSemantics, ControlBarrier, InstructionKind, SplitBarrier, Synchronization};
use super::{Dialect, Test};
use vocabulary::{Order, Scope, Semantics, StorageClass, StorageClassSet};

/// The change of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StrengthChange {
    /// Another scope.
    Scope(Scope),
    /// Another order.
    Order(Order),
    /// One storage class removed.
    RemovedClass(StorageClass),
    /// All storage classes of the test.
    AllClasses,
    /// MakeAvailable, added or removed.
    MakeAvailable,
    /// MakeVisible, added or removed.
    MakeVisible,
    /// The semantics of the unequal case.
    UnequalSemantics,
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
pub struct StrengthBounds {
    /// The common scopes of pairs of threads, narrow to wide.
    pub scopes: Vec<Scope>,
    /// The storage classes that are accessed.
    pub classes: StorageClassSet,
}

impl StrengthBounds {
    /// Returns the scopes and classes that the threads of a test can distinguish.
    pub fn for_test(test: &Test) -> StrengthBounds {
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
        StrengthBounds { scopes, classes }
    }

    fn wider_scopes(&self, scope: Scope) -> impl Iterator<Item = Scope> + '_ {
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

/// Returns the forms of the semantics that are one step weaker; the weakest is relaxed.
fn weaker_semantics(semantics: Semantics) -> Vec<(StrengthChange, Semantics)> {
    let mut found = Vec::new();
    if semantics.sequential {
        found.push((StrengthChange::Order(semantics.order), Semantics { sequential: false, ..semantics }));
    }
    if semantics.classes.iter().count() > 1 {
        found.extend(semantics.classes.iter().map(|class| {
            let classes = StorageClassSet(semantics.classes.0 & !(1 << class.index()));
            (StrengthChange::RemovedClass(class), Semantics { classes, ..semantics })
        }));
    }
    if semantics.make_available {
        found.push((StrengthChange::MakeAvailable, Semantics { make_available: false, ..semantics }));
    }
    if semantics.make_visible {
        found.push((StrengthChange::MakeVisible, Semantics { make_visible: false, ..semantics }));
    }
    let order = |order| (StrengthChange::Order(order), semantics.with_order(order));
    match semantics.order {
        // The step below a sequentially consistent order is the same order without sequential consistency.
        _ if semantics.sequential => {}
        Order::AcquireRelease => found.extend([order(Order::Acquire), order(Order::Release)]),
        Order::Acquire | Order::Release => found.push(order(Order::Relaxed)),
        Order::Relaxed => {}
    }
    found
}

/// Returns the forms of the semantics that are one step stronger.
///
/// `orders` are the possible orders; a new order includes all `classes`.
fn stronger_semantics(
    semantics: Semantics,
    orders: &[Order],
    classes: StorageClassSet,
) -> Vec<(StrengthChange, Semantics)> {
    let classes = StorageClassSet(semantics.classes.0 | classes.0);
    let orders = orders.iter().copied().filter(|order| order.is_stronger_than(semantics.order));
    let mut found: Vec<(StrengthChange, Semantics)> = orders
        .map(|order| (StrengthChange::Order(order), Semantics { order, classes, ..semantics }))
        .collect();
    if semantics.order == Order::Relaxed {
        return found;
    }
    if classes != semantics.classes {
        found.push((StrengthChange::AllClasses, Semantics { classes, ..semantics }));
    }
    if semantics.order.releases() && !semantics.make_available {
        found.push((StrengthChange::MakeAvailable, Semantics { make_available: true, ..semantics }));
    }
    if semantics.order.acquires() && !semantics.make_visible {
        found.push((StrengthChange::MakeVisible, Semantics { make_visible: true, ..semantics }));
    }
    found
}

impl Access {
    /// Returns the forms of the access that are one step weaker.
    ///
    /// HSA's ordinary accesses have no weaker form. HSA's atomics and read-modify-writes stay atomic.
    pub fn weaker_forms(self, dialect: Dialect, always_atomic: bool) -> Vec<(StrengthChange, Access)> {
        let is_not_hsa = dialect != Dialect::Hsa;
        match self {
            Access::Private => Vec::new(),
            Access::NonPrivate | Access::Coherent { .. } if !is_not_hsa => Vec::new(),
            Access::NonPrivate => vec![(StrengthChange::Private, Access::Private)],
            Access::Coherent { scope } => {
                let narrower = narrower_scope(scope, dialect);
                let narrower =
                    narrower.map(|scope| (StrengthChange::Scope(scope), Access::Coherent { scope }));
                narrower.into_iter().chain([(StrengthChange::NonPrivate, Access::NonPrivate)]).collect()
            }
            Access::Atomic { scope, semantics } => {
                let narrower = narrower_scope(scope, dialect);
                let narrower =
                    narrower.map(|scope| (StrengthChange::Scope(scope), Access::Atomic { scope, semantics }));
                let mut found: Vec<(StrengthChange, Access)> = narrower.into_iter().collect();
                let weaker = weaker_semantics(semantics).into_iter();
                found.extend(weaker.map(|(change, semantics)| (change, Access::Atomic { scope, semantics })));
                if semantics == Semantics::RELAXED && is_not_hsa && !always_atomic {
                    found.push((StrengthChange::Coherent, Access::Coherent { scope }));
                }
                found
            }
        }
    }

    /// Returns the forms that are one step stronger; `orders` are the possible orders of its direction.
    pub fn stronger_forms(self, bounds: &StrengthBounds, orders: &[Order]) -> Vec<(StrengthChange, Access)> {
        let coherent = || {
            let scopes = bounds.scopes.iter().copied();
            scopes.map(|scope| (StrengthChange::Coherent, Access::Coherent { scope }))
        };
        // An atomic access has at least the scope that the access already has.
        let atomic = |from: Scope| {
            let mut scopes: Vec<Scope> = bounds.scopes.iter().map(|scope| (*scope).max(from)).collect();
            scopes.dedup();
            let semantics = Semantics::RELAXED;
            scopes.into_iter().map(move |scope| (StrengthChange::Atomic, Access::Atomic { scope, semantics }))
        };
        match self {
            Access::Private => [(StrengthChange::NonPrivate, Access::NonPrivate)]
                .into_iter()
                .chain(coherent())
                .chain(atomic(Scope::Invocation))
                .collect(),
            Access::NonPrivate => coherent().chain(atomic(Scope::Invocation)).collect(),
            Access::Coherent { scope } => {
                let wider = bounds
                    .wider_scopes(scope)
                    .map(|scope| (StrengthChange::Scope(scope), Access::Coherent { scope }));
                wider.chain(atomic(scope)).collect()
            }
            Access::Atomic { scope, semantics } => {
                let wider = bounds.wider_scopes(scope);
                let wider =
                    wider.map(|scope| (StrengthChange::Scope(scope), Access::Atomic { scope, semantics }));
                let stronger = stronger_semantics(semantics, orders, bounds.classes).into_iter();
                wider
                    .chain(stronger.map(|(change, semantics)| (change, Access::Atomic { scope, semantics })))
                    .collect()
            }
        }
    }
}

impl MemoryAccess {
    /// Returns the forms of the access that are one step weaker.
    pub fn weaker_forms(&self, dialect: Dialect) -> Vec<(StrengthChange, MemoryAccess)> {
        let always_atomic = match self.kind {
            AccessKind::Load(_) | AccessKind::Store(_) => false,
            AccessKind::Rmw { .. } | AccessKind::Await { .. } => true,
        };
        let weaker = self.strength.weaker_forms(dialect, always_atomic).into_iter();
        let mut found: Vec<(StrengthChange, MemoryAccess)> = weaker
            .map(|(change, strength)| {
                let changed = MemoryAccess { strength, ..*self };
                let unequal =
                    self.unequal_semantics().map(|unequal| match changed.semantics().order.acquires() {
                        true => unequal,
                        false => Semantics::RELAXED,
                    });
                (change, unequal.map_or(changed, |unequal| changed.with_unequal_semantics(unequal)))
            })
            .collect();
        if let Some(unequal) = self.unequal_semantics() {
            let weaker = weaker_semantics(unequal).into_iter();
            found.extend(weaker.map(|(_, unequal)| {
                (StrengthChange::UnequalSemantics, self.with_unequal_semantics(unequal))
            }));
        }
        found
    }

    /// Returns the forms of the access that are one step stronger.
    pub fn stronger_forms(&self, bounds: &StrengthBounds) -> Vec<(StrengthChange, MemoryAccess)> {
        let orders: &[Order] = match self.kind {
            AccessKind::Load(_) | AccessKind::Await { .. } => &[Order::Acquire],
            AccessKind::Store(_) => &[Order::Release],
            AccessKind::Rmw { .. } => &[Order::Acquire, Order::Release, Order::AcquireRelease],
        };
        let stronger = self.strength.stronger_forms(bounds, orders).into_iter();
        // Vector accesses cannot be atomic.
        let possible = stronger.filter(|(_, strength)| !(self.is_vector() && strength.is_atomic()));
        let mut found: Vec<(StrengthChange, MemoryAccess)> =
            possible.map(|(change, strength)| (change, MemoryAccess { strength, ..*self })).collect();
        let semantics = self.semantics();
        if self.unequal_semantics().is_some_and(|unequal| unequal.order == Order::Relaxed)
            && semantics.order.acquires()
        {
            found.push((
                StrengthChange::UnequalSemantics,
                self.with_unequal_semantics(semantics.to_unequal_acquire()),
            ));
        }
        found
    }

    fn with_unequal_semantics(&self, unequal: Semantics) -> MemoryAccess {
        let mut changed = *self;
        if let AccessKind::Rmw { operation: RmwOperation::CompareExchange { unequal: old, .. }, .. } =
            &mut changed.kind
        {
            *old = unequal;
        }
        changed
    }
}

impl InstructionKind {
    /// Returns its forms that are one step weaker; `None` for a memory barrier that is removed.
    pub fn weaker_forms(&self, dialect: Dialect) -> Vec<(StrengthChange, Option<InstructionKind>)> {
        if let InstructionKind::Access(access) = self {
            let weaker = access.weaker_forms(dialect).into_iter();
            return weaker.map(|(change, access)| (change, Some(InstructionKind::Access(access)))).collect();
        }
        // Without semantics it is not a memory barrier.
        let Synchronization { memory_scope: Some(scope), semantics: Some(semantics), .. } =
            self.synchronization()
        else {
            return Vec::new();
        };
        let narrower = narrower_scope(scope, dialect).into_iter();
        let narrower =
            narrower.map(|scope| (StrengthChange::Scope(scope), self.with_strength(scope, Some(semantics))));
        let weaker = weaker_semantics(semantics).into_iter().map(|(change, weaker)| {
            let semantics = (weaker.order != Order::Relaxed).then_some(weaker);
            (change, self.with_strength(scope, semantics))
        });
        narrower.chain(weaker).collect()
    }

    /// Returns its forms that are one step stronger; without memory semantics the memory scope is irrelevant.
    pub fn stronger_forms(&self, bounds: &StrengthBounds) -> Vec<(StrengthChange, InstructionKind)> {
        let order = match self {
            InstructionKind::Access(access) => {
                let stronger = access.stronger_forms(bounds).into_iter();
                return stronger.map(|(change, access)| (change, InstructionKind::Access(access))).collect();
            }
            InstructionKind::SplitBarrier(barrier) => barrier.half.strongest_order(),
            InstructionKind::Fence { .. } | InstructionKind::ControlBarrier(_) => Order::AcquireRelease,
            InstructionKind::System(_)
            | InstructionKind::ShaderCall(_)
            | InstructionKind::Interlock(_)
            | InstructionKind::Subgroup(_)
            | InstructionKind::Compute(_)
            | InstructionKind::Flow(_) => return Vec::new(),
        };
        let Synchronization { memory_scope, semantics: own, .. } = self.synchronization();
        let scope = memory_scope.unwrap_or(Scope::Invocation);
        let wider = bounds.wider_scopes(scope).filter(|_| own.is_some());
        let wider = wider.map(|wider| (StrengthChange::Scope(wider), self.with_strength(wider, own)));
        let semantics = own.unwrap_or(Semantics::RELAXED);
        let stronger = stronger_semantics(semantics, &[order], bounds.classes).into_iter();
        let stronger =
            stronger.map(|(change, semantics)| (change, self.with_strength(scope, Some(semantics))));
        wider.chain(stronger).filter_map(|(change, kind)| Some((change, kind?))).collect()
    }

    /// Returns a barrier with another memory scope and semantics; `None` for a memory barrier without semantics.
    fn with_strength(&self, scope: Scope, semantics: BarrierSemantics) -> Option<InstructionKind> {
        let mut changed = self.clone();
        *changed.memory_scope_mut()? = scope;
        if let InstructionKind::Fence { semantics: own, .. } = &mut changed {
            *own = semantics?;
        } else if let InstructionKind::ControlBarrier(ControlBarrier { semantics: own, .. })
        | InstructionKind::SplitBarrier(SplitBarrier { semantics: own, .. }) = &mut changed
        {
            *own = semantics;
        }
        Some(changed)
    }
}
