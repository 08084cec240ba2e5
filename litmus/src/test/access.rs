//! Memory accesses: place, operation, strength and performer.

#![deny(clippy::wildcard_enum_match_arm)]

use std::fmt;

use super::instruction::{ArithmeticOperation, Operand};
use super::location::{MAX_COMPONENTS, ScalarType};
use super::{LocationId, RegisterId, Test};
use vocabulary::{Scope, Semantics, StorageClass};

/// A memory access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MemoryAccess {
    /// The accessed place.
    pub place: MemoryPlace,
    /// The operation.
    pub kind: AccessKind,
    /// The strength of the access.
    ///
    /// A read-modify-write and an `await` are atomic. [`Semantics`] of an atomic load are relaxed or acquire,
    /// those of a store relaxed or release.
    pub strength: Access,
    /// The performer.
    pub performer: Performer,
}

/// The place of an access; for a vector access, of its first component. The other components follow it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MemoryPlace {
    /// The reference.
    pub location: LocationId,
    /// Byte offset from the start of the location; 0 unless given.
    pub offset: u32,
    /// Type of the access if it differs from the location's; always present in the components of a vector
    /// access.
    pub scalar: Option<ScalarType>,
    /// Storage class.
    pub class: StorageClass,
    /// HSA's `[x + $s3]`: a register that holds 0 and that the address depends on.
    pub address: Option<RegisterId>,
}

impl MemoryPlace {
    /// Returns the place of a whole location, with the location's type.
    pub fn whole_location(location: LocationId, class: StorageClass) -> MemoryPlace {
        MemoryPlace { location, offset: 0, scalar: None, class, address: None }
    }

    /// Returns the type of the access.
    pub fn scalar_type(&self, test: &Test) -> ScalarType {
        self.scalar.unwrap_or(test.location(self.location).scalar_type())
    }
}

/// The operation of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AccessKind {
    /// `ld…`: reads into registers, all different.
    Load(Components<RegisterId>),
    /// `st…`: writes values.
    Store(Components<Operand>),
    /// `rmw.atom…`: an atomic read-modify-write.
    Rmw {
        /// The register for the old value; `None` in HSA's `atomicnoret_…`, which drops it.
        destination: Option<RegisterId>,
        /// The computation of the new value.
        operation: RmwOperation,
    },
    /// HSA's `await_atomic_ld…`: an atomic load that is repeated until it returns `value`. Only the load that does counts.
    Await {
        /// The register that is assigned.
        destination: RegisterId,
        /// The awaited value.
        value: Operand,
    },
}

/// The performer of an access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Performer {
    /// The invocation that executes the instruction.
    #[default]
    Invocation,
    /// `.coop`: a plain load or store of a cooperative matrix (`#memory-model-cooperative-matrix`).
    ///
    /// An unspecified invocation of the thread's subgroup performs it; the same invocation executes the
    /// thread's barriers.
    Cooperative,
}

/// The components that one access moves: one value, or 2 to [`MAX_COMPONENTS`] adjacent ones (`ld.sc0 {r0,
/// r1}, v` and `st.sc0 v, {1, 2}`).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Components<T> {
    /// Slots after the last component repeat the first.
    items: [T; MAX_COMPONENTS as usize],
    count: u8,
}

impl<T: Copy + fmt::Debug> fmt::Debug for Components<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<T: Copy> Components<T> {
    /// Creates a single component.
    pub fn scalar(item: T) -> Components<T> {
        Components { items: [item; MAX_COMPONENTS as usize], count: 1 }
    }

    /// Creates components from a slice; `None` if it is empty or longer than a vector.
    pub fn from_slice(items: &[T]) -> Option<Components<T>> {
        let mut components = Components::scalar(*items.first()?);
        components.items.get_mut(..items.len())?.copy_from_slice(items);
        components.count = items.len() as u8;
        Some(components)
    }

    /// Returns the first component; the only one of a scalar access.
    pub fn first(&self) -> T {
        let [first, ..] = self.items;
        first
    }

    /// Returns the number of components, at least one.
    pub fn count(&self) -> u8 {
        self.count
    }

    /// Returns the components in order.
    pub fn iter(&self) -> impl Iterator<Item = T> + use<T> {
        self.items.into_iter().take(usize::from(self.count))
    }

    /// Returns one component as a scalar.
    fn component(&self, number: u8) -> Components<T> {
        Components::scalar(self.items.get(usize::from(number)).copied().unwrap_or(self.first()))
    }

    /// Maps every component.
    pub fn map<U: Copy>(&self, mut f: impl FnMut(T) -> U) -> Components<U> {
        let mut components =
            Components { items: [f(self.first()); MAX_COMPONENTS as usize], count: self.count };
        for (slot, item) in components.items.iter_mut().zip(self.iter()).skip(1) {
            *slot = f(item);
        }
        components
    }
}

impl MemoryAccess {
    /// Creates a scalar load by the invocation itself.
    pub fn load(destination: RegisterId, place: MemoryPlace, strength: Access) -> MemoryAccess {
        let (kind, performer) = (AccessKind::Load(Components::scalar(destination)), Performer::Invocation);
        MemoryAccess { place, kind, strength, performer }
    }

    /// Creates a scalar store by the invocation itself.
    pub fn store(place: MemoryPlace, value: Operand, strength: Access) -> MemoryAccess {
        let (kind, performer) = (AccessKind::Store(Components::scalar(value)), Performer::Invocation);
        MemoryAccess { place, kind, strength, performer }
    }

    /// Creates a read-modify-write.
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

    /// Returns the number of components that it moves.
    pub fn components(&self) -> u8 {
        match &self.kind {
            AccessKind::Load(destinations) => destinations.count(),
            AccessKind::Store(values) => values.count(),
            AccessKind::Rmw { .. } | AccessKind::Await { .. } => 1,
        }
    }

    /// Returns true if it moves several components.
    pub fn is_vector(&self) -> bool {
        self.components() > 1
    }

    /// Returns the access split into scalar accesses, in address order.
    pub fn scalar_accesses(&self) -> impl Iterator<Item = MemoryAccess> + use<> {
        let whole = *self;
        let step = self.place.scalar.map_or(0, ScalarType::bytes);
        (0..self.components()).map(move |lane| {
            let kind = match whole.kind {
                AccessKind::Load(registers) => AccessKind::Load(registers.component(lane)),
                AccessKind::Store(values) => AccessKind::Store(values.component(lane)),
                kind @ (AccessKind::Rmw { .. } | AccessKind::Await { .. }) => kind,
            };
            let offset = whole.place.offset + step * u32::from(lane);
            MemoryAccess { place: MemoryPlace { offset, ..whole.place }, kind, ..whole }
        })
    }

    /// Returns the registers that it assigns.
    pub fn destinations(&self) -> impl Iterator<Item = RegisterId> + use<> {
        let (loaded, single) = match self.kind {
            AccessKind::Load(destinations) => (Some(destinations), None),
            AccessKind::Store(_) => (None, None),
            AccessKind::Rmw { destination, .. } => (None, destination),
            AccessKind::Await { destination, .. } => (None, Some(destination)),
        };
        loaded.into_iter().flat_map(|several| several.iter()).chain(single)
    }

    /// Returns true for a read, including a read-modify-write.
    pub fn is_read(&self) -> bool {
        match self.kind {
            AccessKind::Load(_) | AccessKind::Rmw { .. } | AccessKind::Await { .. } => true,
            AccessKind::Store(_) => false,
        }
    }

    /// Returns true for a write, including a read-modify-write.
    pub fn is_write(&self) -> bool {
        match self.kind {
            AccessKind::Store(_) | AccessKind::Rmw { .. } => true,
            AccessKind::Load(_) | AccessKind::Await { .. } => false,
        }
    }

    /// Returns the semantics of the failing case of a compare-exchange.
    pub fn unequal_semantics(&self) -> Option<Semantics> {
        match self.kind {
            AccessKind::Rmw { operation: RmwOperation::CompareExchange { unequal, .. }, .. } => Some(unequal),
            AccessKind::Load(_)
            | AccessKind::Store(_)
            | AccessKind::Rmw { .. }
            | AccessKind::Await { .. } => None,
        }
    }

    /// Returns its semantics: relaxed if it is not atomic.
    pub fn semantics(&self) -> Semantics {
        match self.strength {
            Access::Atomic { semantics, .. } => semantics,
            Access::Private | Access::NonPrivate | Access::Coherent { .. } => Semantics::RELAXED,
        }
    }
}

/// The strength of an access.
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
    /// `.atom`: atomic, which implies non-private and availability or visibility at its scope.
    Atomic {
        /// Memory scope.
        scope: Scope,
        /// Memory semantics.
        semantics: Semantics,
    },
}

impl Access {
    /// Returns the scope of an atomic access, or of a coherent access's availability or visibility operation.
    pub fn scope(self) -> Option<Scope> {
        match self {
            Access::Private | Access::NonPrivate => None,
            Access::Coherent { scope } | Access::Atomic { scope, .. } => Some(scope),
        }
    }

    /// Returns a mutable reference to the scope.
    pub fn scope_mut(&mut self) -> Option<&mut Scope> {
        match self {
            Access::Private | Access::NonPrivate => None,
            Access::Coherent { scope } | Access::Atomic { scope, .. } => Some(scope),
        }
    }

    /// Returns true if it is atomic.
    pub fn is_atomic(self) -> bool {
        match self {
            Access::Atomic { .. } => true,
            Access::Private | Access::NonPrivate | Access::Coherent { .. } => false,
        }
    }
}

/// The function that a read-modify-write applies to the old value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RmwOperation {
    /// Writes the operand.
    Exchange(Operand),
    /// Writes the result of `operation` on the old value and the operand.
    Fetch(ArithmeticOperation, Operand),
    /// `.cas`: writes `value` if the old value equals `compare`; otherwise it is an atomic read with `unequal` semantics.
    CompareExchange {
        /// The value to compare the old value with.
        compare: Operand,
        /// The value to write if they are equal.
        value: Operand,
        /// Semantics of the failing case.
        unequal: Semantics,
    },
}
