//! The steps of the relaxation lattice: every way to make one instruction a little stronger.

#![deny(clippy::wildcard_enum_match_arm)]

use litmus::{
    Access, AccessKind, ControlBarrier, Dialect, InstructionKind, MemoryAccess, Order, Performer, Place,
    Placement, RmwOperation, Scope, Semantics, StorageClassSet, Test,
};

/// What the steps of one test may use: nothing wider than its threads can tell apart.
pub(super) struct Reach {
    /// The scopes that some pair of threads needs, narrow to wide.
    scopes: Vec<Scope>,
    /// The storage classes that are accessed.
    classes: StorageClassSet,
}

/// A stronger form of an instruction, and how much is asked for.
pub(super) struct Stronger {
    pub(super) kind: InstructionKind,
    pub(super) weight: u32,
}

const WIDER_SCOPE: u32 = 1;
const MORE_CLASSES: u32 = 1;
const NON_PRIVATE: u32 = 1;
const COHERENT: u32 = 2;
const MAKE_COHERENT: u32 = 2;
const ORDER: u32 = 3;
const ATOMIC: u32 = 5;

impl Reach {
    pub(super) fn of(test: &Test) -> Reach {
        let places: Vec<Option<Placement>> = test
            .threads
            .iter()
            .map(|thread| match thread.place {
                Place::Device(placement) => Some(placement),
                Place::Host => None,
            })
            .collect();
        let mut scopes: Vec<Scope> = Vec::new();
        for (index, first) in places.iter().enumerate() {
            for second in &places[index + 1..] {
                match (first, second) {
                    (Some(first), Some(second)) => scopes.push(first.common_scope(*second)),
                    // In Vulkan no scope that a shader can name reaches the host.
                    _ if test.dialect == Dialect::Hsa => scopes.push(Scope::CrossDevice),
                    _ => scopes.push(Scope::Device),
                }
            }
        }
        scopes.sort_unstable();
        scopes.dedup();
        let mut classes = StorageClassSet::EMPTY;
        let instructions = test.threads.iter().flat_map(|thread| &thread.instructions);
        for access in instructions.filter_map(|instruction| instruction.kind.access()) {
            classes = classes.with(access.place.class);
        }
        Reach { scopes, classes }
    }

    /// The stronger forms of an instruction, each a single step away.
    pub(super) fn steps(&self, kind: &InstructionKind) -> Vec<Stronger> {
        let mut steps = Vec::new();
        match kind {
            InstructionKind::Access(access) => self.memory_access(access, &mut steps),
            InstructionKind::Fence { scope, semantics } => {
                let orders: &[Order] = match semantics.order {
                    Order::AcquireRelease => &[],
                    Order::Relaxed | Order::Acquire | Order::Release => &[Order::AcquireRelease],
                };
                for scope in self.wider(*scope) {
                    let kind = InstructionKind::Fence { scope, semantics: *semantics };
                    steps.push(Stronger { kind, weight: WIDER_SCOPE });
                }
                for (semantics, weight) in self.semantics(*semantics, orders) {
                    steps
                        .push(Stronger { kind: InstructionKind::Fence { scope: *scope, semantics }, weight });
                }
            }
            InstructionKind::ControlBarrier(barrier) => self.barrier(barrier, &mut steps),
            InstructionKind::System(_)
            | InstructionKind::ShaderCall(_)
            | InstructionKind::Interlock(_)
            | InstructionKind::Compute(_)
            | InstructionKind::Flow(_) => {}
        }
        steps
    }

    fn memory_access(&self, access: &MemoryAccess, steps: &mut Vec<Stronger>) {
        let mut push = |changed: MemoryAccess, weight| {
            steps.push(Stronger { kind: InstructionKind::Access(changed), weight });
        };
        // Nobody else takes over what an unspecified invocation performs, and what mends a test of the HSA dialect is not
        // searched for.
        if access.performer == Performer::Cooperative || access.place.address.is_some() {
            return;
        }
        let mut orders = Vec::new();
        match access.kind {
            AccessKind::Load(_) => orders.push(Order::Acquire),
            AccessKind::Store(_) => orders.push(Order::Release),
            AccessKind::Rmw { destination: None, .. } | AccessKind::Await { .. } => return,
            AccessKind::Rmw { .. } => orders.extend([Order::Acquire, Order::Release, Order::AcquireRelease]),
        }
        for (strength, weight) in self.access(access.strength, &orders) {
            // A vector is never accessed atomically.
            if !(access.is_vector() && strength.is_atomic()) {
                push(MemoryAccess { strength, ..*access }, weight);
            }
        }
        let semantics = access.semantics();
        if let AccessKind::Rmw { destination, operation } = access.kind
            && let RmwOperation::CompareExchange { compare, value, unequal } = operation
            && unequal.order == Order::Relaxed
            && semantics.order.acquires()
        {
            let unequal = Semantics { order: Order::Acquire, make_available: false, ..semantics };
            let operation = RmwOperation::CompareExchange { compare, value, unequal };
            push(MemoryAccess { kind: AccessKind::Rmw { destination, operation }, ..*access }, ORDER);
        }
    }

    fn barrier(&self, barrier: &ControlBarrier, steps: &mut Vec<Stronger>) {
        let mut push = |barrier: ControlBarrier, weight: u32| {
            steps.push(Stronger { kind: InstructionKind::ControlBarrier(barrier), weight });
        };
        for memory_scope in self.wider(barrier.memory_scope) {
            push(ControlBarrier { memory_scope, ..barrier.clone() }, WIDER_SCOPE);
        }
        let semantics = barrier.semantics.unwrap_or(Semantics::RELAXED);
        let orders: &[Order] = match semantics.order {
            Order::AcquireRelease => &[],
            Order::Relaxed | Order::Acquire | Order::Release => &[Order::AcquireRelease],
        };
        for (stronger, weight) in self.semantics(semantics, orders) {
            push(ControlBarrier { semantics: Some(stronger), ..barrier.clone() }, weight);
        }
    }

    /// Stronger ways to access memory. `orders` are what an access of this direction can have.
    fn access(&self, access: Access, orders: &[Order]) -> Vec<(Access, u32)> {
        let mut found = Vec::new();
        let to_coherent = |found: &mut Vec<(Access, u32)>| {
            found.extend(self.scopes.iter().map(|scope| (Access::Coherent { scope: *scope }, COHERENT)));
        };
        // No atomic is narrower than what the access reaches already.
        let to_atomic = |found: &mut Vec<(Access, u32)>, from: Scope| {
            let mut scopes: Vec<Scope> = self.scopes.iter().map(|scope| (*scope).max(from)).collect();
            scopes.dedup();
            let semantics = Semantics::RELAXED;
            found.extend(scopes.into_iter().map(|scope| (Access::Atomic { scope, semantics }, ATOMIC)));
        };
        match access {
            Access::Private => {
                found.push((Access::NonPrivate, NON_PRIVATE));
                to_coherent(&mut found);
                to_atomic(&mut found, Scope::Invocation);
            }
            Access::NonPrivate => {
                to_coherent(&mut found);
                to_atomic(&mut found, Scope::Invocation);
            }
            Access::Coherent { scope } => {
                found.extend(self.wider(scope).map(|scope| (Access::Coherent { scope }, WIDER_SCOPE)));
                to_atomic(&mut found, scope);
            }
            Access::Atomic { scope, semantics } => {
                found.extend(
                    self.wider(scope).map(|scope| (Access::Atomic { scope, semantics }, WIDER_SCOPE)),
                );
                let orders: Vec<Order> =
                    orders.iter().copied().filter(|order| order.is_stronger_than(semantics.order)).collect();
                let stronger = self.semantics(semantics, &orders);
                found.extend(
                    stronger
                        .into_iter()
                        .map(|(semantics, weight)| (Access::Atomic { scope, semantics }, weight)),
                );
            }
        }
        found
    }

    fn wider(&self, scope: Scope) -> impl Iterator<Item = Scope> + '_ {
        self.scopes.iter().copied().filter(move |wider| *wider > scope)
    }

    /// Stronger semantics; `orders` are the stronger orders that are possible.
    fn semantics(&self, semantics: Semantics, orders: &[Order]) -> Vec<(Semantics, u32)> {
        let classes = StorageClassSet(semantics.classes.0 | self.classes.0);
        let mut found: Vec<(Semantics, u32)> =
            orders.iter().map(|order| (Semantics { order: *order, classes, ..semantics }, ORDER)).collect();
        if semantics.order == Order::Relaxed {
            return found;
        }
        if classes != semantics.classes {
            found.push((Semantics { classes, ..semantics }, MORE_CLASSES));
        }
        if semantics.order.releases() && !semantics.make_available {
            found.push((Semantics { make_available: true, ..semantics }, MAKE_COHERENT));
        }
        if semantics.order.acquires() && !semantics.make_visible {
            found.push((Semantics { make_visible: true, ..semantics }, MAKE_COHERENT));
        }
        found
    }
}
