//! Synchronization strength: scopes, storage classes, orders and semantics.
//!
//! Comments give the keywords of litmus tests.

#![deny(clippy::wildcard_enum_match_arm)]

use crate::closed_enum;

closed_enum! {
    /// A scope (`#memory-model-scope`), from narrow to wide.
    pub enum Scope {
        /// `.inv`: the invocation itself.
        Invocation,
        /// `.sg`.
        Subgroup,
        /// `.wg`.
        Workgroup,
        /// `.call`: shader-call-related invocations. It neither contains nor is contained in workgroups and
        /// subgroups.
        ShaderCall,
        /// `.fi`: fragment shader invocations that overlap.
        FragmentInterlock,
        /// `.qf`.
        QueueFamily,
        /// `.dv`; HSA's agent.
        Device,
        /// `.xd`: all devices and the host; no shader can name it. HSA's system.
        CrossDevice,
    }
}

impl Scope {
    /// Returns true if an instance of the scope is part of one workgroup.
    pub fn is_within_workgroup(self) -> bool {
        match self {
            Scope::Invocation | Scope::Subgroup | Scope::Workgroup => true,
            Scope::ShaderCall
            | Scope::FragmentInterlock
            | Scope::QueueFamily
            | Scope::Device
            | Scope::CrossDevice => false,
        }
    }
}

closed_enum! {
    /// A storage class in memory semantics; its name is that in SPIR-V.
    pub enum StorageClass {
        /// `sc0`: uniform, storage buffer and physical storage buffer (UniformMemory).
        Buffer = "UniformMemory",
        /// `sc1`: workgroup memory (WorkgroupMemory).
        Workgroup = "WorkgroupMemory",
        /// `sc2`: images (ImageMemory).
        Image = "ImageMemory",
        /// `sc3`: tessellation control outputs (OutputMemory).
        Output = "OutputMemory",
    }
}

impl StorageClass {
    /// The number in `sc0` … `sc3`.
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Its bit among SPIR-V's memory semantics.
    pub const fn bit(self) -> u32 {
        match self {
            StorageClass::Buffer => 0x40,
            StorageClass::Workgroup => 0x100,
            StorageClass::Image => 0x800,
            StorageClass::Output => 0x1000,
        }
    }
}

/// A set of storage classes: bit i is `sc`i.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StorageClassSet(pub u8);

impl StorageClassSet {
    /// The set without members.
    pub const EMPTY: StorageClassSet = StorageClassSet(0);
    /// The memory that workgroups share.
    pub const GLOBAL: StorageClassSet =
        StorageClassSet::EMPTY.with(StorageClass::Buffer).with(StorageClass::Image);

    /// Returns the classes whose bits a word of SPIR-V's memory semantics has.
    pub fn from_semantics(word: u32) -> StorageClassSet {
        let named = StorageClass::ALL.into_iter().filter(|class| word & class.bit() != 0);
        named.fold(StorageClassSet::EMPTY, StorageClassSet::with)
    }

    /// Returns true if `class` is a member.
    pub const fn contains(self, class: StorageClass) -> bool {
        self.0 & (1 << class.index()) != 0
    }

    /// The set with `class` added.
    #[must_use]
    pub const fn with(self, class: StorageClass) -> StorageClassSet {
        StorageClassSet(self.0 | (1 << class.index()))
    }

    /// The set without `class`.
    #[must_use]
    pub const fn without(self, class: StorageClass) -> StorageClassSet {
        StorageClassSet(self.0 & !(1 << class.index()))
    }

    /// The members of either set.
    #[must_use]
    pub const fn union(self, other: StorageClassSet) -> StorageClassSet {
        StorageClassSet(self.0 | other.0)
    }

    /// Returns true if the sets have a common member.
    pub const fn intersects(self, other: StorageClassSet) -> bool {
        self.0 & other.0 != 0
    }

    /// The members of both sets.
    #[must_use]
    pub const fn intersection(self, other: StorageClassSet) -> StorageClassSet {
        StorageClassSet(self.0 & other.0)
    }

    /// The members in the order of their numbers.
    pub fn iter(self) -> impl Iterator<Item = StorageClass> {
        StorageClass::ALL.into_iter().filter(move |class| self.contains(*class))
    }
}

closed_enum! {
    /// A storage class of SPIR-V's semantics that the Vulkan memory model ignores (VK-SEM-19): it orders nothing.
    pub enum IgnoredClass {
        /// `.semsubgroup`: SubgroupMemory.
        Subgroup = "SubgroupMemory",
        /// `.semcrossworkgroup`: CrossWorkgroupMemory.
        CrossWorkgroup = "CrossWorkgroupMemory",
        /// `.sematomiccounter`: AtomicCounterMemory.
        AtomicCounter = "AtomicCounterMemory",
    }
}

impl IgnoredClass {
    /// Its bit among SPIR-V's memory semantics.
    pub fn bit(self) -> u32 {
        match self {
            IgnoredClass::Subgroup => 0x80,
            IgnoredClass::CrossWorkgroup => 0x200,
            IgnoredClass::AtomicCounter => 0x400,
        }
    }
}

/// The ignored storage classes that semantics name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct IgnoredClasses(u32);

impl IgnoredClasses {
    /// None.
    pub const NONE: IgnoredClasses = IgnoredClasses(0);

    /// The set with `class` added.
    pub fn with(self, class: IgnoredClass) -> IgnoredClasses {
        IgnoredClasses(self.0 | class.bit())
    }

    /// The members in the order of their bits.
    pub fn iter(self) -> impl Iterator<Item = IgnoredClass> {
        IgnoredClass::ALL.into_iter().filter(move |class| self.0 & class.bit() != 0)
    }
}

/// Memory order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Order {
    /// No order on other accesses.
    #[default]
    Relaxed,
    /// `.acq`; HSA's scacq.
    Acquire,
    /// `.rel`; HSA's screl.
    Release,
    /// `.acq_rel`; HSA's scar.
    AcquireRelease,
}

impl Order {
    /// Acquire or acquire-release.
    pub fn acquires(self) -> bool {
        matches!(self, Order::Acquire | Order::AcquireRelease)
    }

    /// Release or acquire-release.
    pub fn releases(self) -> bool {
        matches!(self, Order::Release | Order::AcquireRelease)
    }

    /// Returns true if it is strictly stronger than the other order.
    pub fn is_stronger_than(self, other: Order) -> bool {
        self != other && (self.acquires() || !other.acquires()) && (self.releases() || !other.releases())
    }
}

/// Memory semantics (`#memory-model-memory-semantics`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Semantics {
    /// The order. `Relaxed` has no classes, availability or visibility.
    pub order: Order,
    /// `.semsc0` …: the storage classes that are ordered.
    pub classes: StorageClassSet,
    /// `.semsubgroup` …: additional storage classes that the memory model ignores.
    pub ignored: IgnoredClasses,
    /// `.semav` (MakeAvailable); needs a releasing order.
    pub make_available: bool,
    /// `.semvis` (MakeVisible); needs an acquiring order.
    pub make_visible: bool,
    /// `.seq_cst`: sequentially consistent, which SPIR-V for Vulkan has not. The order is then the strongest one that
    /// the instruction can have.
    pub sequential: bool,
}

impl Semantics {
    /// Returns the meaning of `.uneq_acq` without classes: an acquire with the classes of these semantics.
    pub fn to_unequal_acquire(self) -> Semantics {
        Semantics { order: Order::Acquire, make_available: false, sequential: false, ..self }
    }

    /// Returns the semantics with another order, without the flags that it cannot have.
    pub fn with_order(self, order: Order) -> Semantics {
        if order == Order::Relaxed {
            return Semantics::RELAXED;
        }
        Semantics {
            order,
            make_available: self.make_available && order.releases(),
            make_visible: self.make_visible && order.acquires(),
            ..self
        }
    }

    /// Relaxed: nothing is ordered.
    pub const RELAXED: Semantics = Semantics {
        order: Order::Relaxed,
        classes: StorageClassSet::EMPTY,
        ignored: IgnoredClasses::NONE,
        make_available: false,
        make_visible: false,
        sequential: false,
    };
}
