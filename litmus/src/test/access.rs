//! Accesses to memory: what is accessed, what is done there, how strongly, and by whom.

#![deny(clippy::wildcard_enum_match_arm)]

use std::fmt;

use super::instruction::{ArithmeticOperation, Operand};
use super::location::{MAX_COMPONENTS, ScalarType};
use super::strength::{Scope, Semantics, StorageClass};
use super::{LocationId, RegisterId, Test};

/// An access to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MemoryAccess {
    /// What is accessed.
    pub place: MemoryPlace,
    /// What is done there.
    pub kind: AccessKind,
    /// How it is accessed: a read-modify-write and an `await` are atomic. [`Semantics`] of an atomic load are relaxed or
    /// acquire, those of a store relaxed or release.
    pub strength: Access,
    /// Who performs it.
    pub performer: Performer,
}

/// What an access names. Of a vector access it is the place of the first component; the others lie behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MemoryPlace {
    /// The reference.
    pub location: LocationId,
    /// Byte offset from the start of the location; 0 unless given.
    pub offset: u32,
    /// Type of the access where it differs from the location's; always there for the components of a vector access.
    pub scalar: Option<ScalarType>,
    /// Storage class.
    pub class: StorageClass,
    /// HSA's `[x + $s3]`: a register that holds 0 and that the address depends on.
    pub address: Option<RegisterId>,
}

impl MemoryPlace {
    /// All of a location, by its own type.
    pub fn of(location: LocationId, class: StorageClass) -> MemoryPlace {
        MemoryPlace { location, offset: 0, scalar: None, class, address: None }
    }

    /// The type of the access.
    pub fn scalar_type(&self, test: &Test) -> ScalarType {
        self.scalar.unwrap_or(test.location(self.location).scalar_type())
    }
}

/// What an access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AccessKind {
    /// `ld…`: reads into registers, all different.
    Load(Lanes<RegisterId>),
    /// `st…`: writes values.
    Store(Lanes<Operand>),
    /// `rmw.atom…`: an atomic read-modify-write.
    Rmw {
        /// The register that gets the old value; none in HSA's `atomicnoret_…`, which drops it.
        destination: Option<RegisterId>,
        /// What is computed.
        operation: RmwOperation,
    },
    /// HSA's `await_atomic_ld…`: an atomic load that is repeated until it returns `value`. Only the load that does counts.
    Await {
        /// The register that is assigned.
        destination: RegisterId,
        /// What it waits for.
        value: Operand,
    },
}

/// Who performs an access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Performer {
    /// The invocation that executes the instruction.
    #[default]
    Invocation,
    /// `.coop`: a plain load or store of a cooperative matrix (`#memory-model-cooperative-matrix`). An unspecified invocation
    /// of the thread's subgroup performs it, one that executes the thread's barriers too.
    Cooperative,
}

/// The components that one access moves: one number, or from 2 to [`MAX_COMPONENTS`] that lie one behind the other
/// (`ld.sc0 {r0, r1}, v` and `st.sc0 v, {1, 2}`).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Lanes<T> {
    /// What is behind the last one repeats the first.
    items: [T; MAX_COMPONENTS as usize],
    count: u8,
}

impl<T: Copy + fmt::Debug> fmt::Debug for Lanes<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<T: Copy> Lanes<T> {
    /// One number.
    pub fn one(item: T) -> Lanes<T> {
        Lanes { items: [item; MAX_COMPONENTS as usize], count: 1 }
    }

    /// One or several; `None` where there are none, or more than a vector has.
    pub fn of(items: &[T]) -> Option<Lanes<T>> {
        let mut lanes = Lanes::one(*items.first()?);
        lanes.items.get_mut(..items.len())?.copy_from_slice(items);
        lanes.count = items.len() as u8;
        Some(lanes)
    }

    /// The first one, of a scalar access the only one.
    pub fn first(&self) -> T {
        let [first, ..] = self.items;
        first
    }

    /// How many there are, at least one.
    pub fn count(&self) -> u8 {
        self.count
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = T> + use<T> {
        self.items.into_iter().take(usize::from(self.count))
    }

    /// One of them by itself.
    fn lane(&self, number: u8) -> Lanes<T> {
        Lanes::one(self.items.get(usize::from(number)).copied().unwrap_or(self.first()))
    }

    /// As many others.
    pub fn map<U: Copy>(&self, mut other: impl FnMut(T) -> U) -> Lanes<U> {
        let mut lanes = Lanes { items: [other(self.first()); MAX_COMPONENTS as usize], count: self.count };
        for (slot, item) in lanes.items.iter_mut().zip(self.iter()).skip(1) {
            *slot = other(item);
        }
        lanes
    }
}

impl MemoryAccess {
    /// A load of one number by the invocation itself.
    pub fn load(destination: RegisterId, place: MemoryPlace, strength: Access) -> MemoryAccess {
        let (kind, performer) = (AccessKind::Load(Lanes::one(destination)), Performer::Invocation);
        MemoryAccess { place, kind, strength, performer }
    }

    /// A store of one number by the invocation itself.
    pub fn store(place: MemoryPlace, value: Operand, strength: Access) -> MemoryAccess {
        let (kind, performer) = (AccessKind::Store(Lanes::one(value)), Performer::Invocation);
        MemoryAccess { place, kind, strength, performer }
    }

    /// A read-modify-write.
    pub fn rmw(
        destination: Option<RegisterId>,
        place: MemoryPlace,
        operation: RmwOperation,
        scope: Scope,
        semantics: Semantics,
    ) -> MemoryAccess {
        let kind = AccessKind::Rmw { destination, operation };
        let strength = Access::Atomic { scope, semantics };
        MemoryAccess { place, kind, strength, performer: Performer::Invocation }
    }

    /// How many numbers it moves.
    pub fn components(&self) -> u8 {
        match &self.kind {
            AccessKind::Load(destinations) => destinations.count(),
            AccessKind::Store(values) => values.count(),
            AccessKind::Rmw { .. } | AccessKind::Await { .. } => 1,
        }
    }

    /// Whether it moves several numbers.
    pub fn is_vector(&self) -> bool {
        self.components() > 1
    }

    /// The same one number at a time, in the order of their places.
    pub fn lanes(&self) -> impl Iterator<Item = MemoryAccess> + use<> {
        let whole = *self;
        let step = self.place.scalar.map_or(0, ScalarType::bytes);
        (0..self.components()).map(move |lane| {
            let kind = match whole.kind {
                AccessKind::Load(registers) => AccessKind::Load(registers.lane(lane)),
                AccessKind::Store(values) => AccessKind::Store(values.lane(lane)),
                kind @ (AccessKind::Rmw { .. } | AccessKind::Await { .. }) => kind,
            };
            let offset = whole.place.offset + step * u32::from(lane);
            MemoryAccess { place: MemoryPlace { offset, ..whole.place }, kind, ..whole }
        })
    }

    /// The registers that it assigns.
    pub fn destinations(&self) -> impl Iterator<Item = RegisterId> + use<> {
        let (several, one) = match self.kind {
            AccessKind::Load(destinations) => (Some(destinations), None),
            AccessKind::Store(_) => (None, None),
            AccessKind::Rmw { destination, .. } => (None, destination),
            AccessKind::Await { destination, .. } => (None, Some(destination)),
        };
        several.into_iter().flat_map(|several| several.iter()).chain(one)
    }

    /// Whether it reads memory.
    pub fn reads(&self) -> bool {
        match self.kind {
            AccessKind::Load(_) | AccessKind::Rmw { .. } | AccessKind::Await { .. } => true,
            AccessKind::Store(_) => false,
        }
    }

    /// Whether it may write memory.
    pub fn writes(&self) -> bool {
        match self.kind {
            AccessKind::Store(_) | AccessKind::Rmw { .. } => true,
            AccessKind::Load(_) | AccessKind::Await { .. } => false,
        }
    }

    /// The semantics of the failing case of a compare-exchange.
    pub fn unequal(&self) -> Option<Semantics> {
        match self.kind {
            AccessKind::Rmw { operation: RmwOperation::CompareExchange { unequal, .. }, .. } => Some(unequal),
            AccessKind::Load(_)
            | AccessKind::Store(_)
            | AccessKind::Rmw { .. }
            | AccessKind::Await { .. } => None,
        }
    }

    /// Its semantics: relaxed where it is not atomic.
    pub fn semantics(&self) -> Semantics {
        match self.strength {
            Access::Atomic { semantics, .. } => semantics,
            Access::Private | Access::NonPrivate | Access::Coherent { .. } => Semantics::RELAXED,
        }
    }
}

/// How memory is accessed.
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

impl Access {
    /// The scope of an atomic access, or of the operation that a coherent one has of its own.
    pub fn scope(self) -> Option<Scope> {
        match self {
            Access::Private | Access::NonPrivate => None,
            Access::Coherent { scope } | Access::Atomic { scope, .. } => Some(scope),
        }
    }

    /// The same, to be changed.
    pub fn scope_mut(&mut self) -> Option<&mut Scope> {
        match self {
            Access::Private | Access::NonPrivate => None,
            Access::Coherent { scope } | Access::Atomic { scope, .. } => Some(scope),
        }
    }

    /// Whether it is atomic.
    pub fn is_atomic(self) -> bool {
        match self {
            Access::Atomic { .. } => true,
            Access::Private | Access::NonPrivate | Access::Coherent { .. } => false,
        }
    }
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
