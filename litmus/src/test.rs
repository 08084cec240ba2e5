//! The syntax tree of a litmus test: locations, threads, instructions.
//!
//! One tree serves every surface syntax. It represents the text: omitted parts are not filled in here, unless
//! the format itself defines the default.

mod access;
mod instruction;
pub mod lattice;
mod location;
mod table;

use crate::condition::{Condition, Question, Term};
use crate::khronos::Khronos;
use crate::metadata::Metadata;
use crate::outcome::Observable;
use crate::schedule::ApiCalls;
use crate::span::Span;
use crate::value::Value;

pub use access::{Access, AccessKind, Components, MemoryAccess, MemoryPlace, Performer, RmwOperation};
pub use instruction::{
    ArithmeticOperation, BarrierSemantics, Compute, ControlBarrier, Flow, Instruction, InstructionKind,
    Operand, SplitBarrier, SplitHalf,
};
pub use location::{
    Location, LocationInit, MAX_COMPONENTS, MAX_VECTOR_BYTES, Reference, ScalarType, UNDEFINED_BYTE,
};
pub use table::{Id, NoEntry, Table};
pub use vocabulary::{IgnoredClass, IgnoredClasses, Order, Scope, Semantics, StorageClass, StorageClassSet};

/// Index of a thread, in the order of the columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadId(pub u16);

/// Index of a register in its thread's [`Thread::registers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RegisterId(pub u16);

/// Index of a name in [`Test::locations`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LocationId(pub u16);

/// Index of a label in its thread's [`Thread::labels`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LabelId(pub u16);

/// A litmus test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Test {
    /// The word after the dialect's keyword (`SB+rlx-rlx`).
    pub name: String,
    /// The surface syntax of its text; it selects defaults such as the model.
    pub dialect: Dialect,
    /// The rest of the header.
    pub metadata: Metadata,
    /// Every memory name, in the order of declaration, then of first use.
    pub locations: Vec<Location>,
    /// The threads, in the order of the columns.
    pub threads: Vec<Thread>,
    /// System-synchronizes-with pairs; HSA's packet fences (`pkt`).
    pub system_sync: Vec<SystemSync>,
    /// The API calls from which these pairs and API operations in threads are derived; see
    /// [`Test::schedule`].
    pub calls: ApiCalls,
    /// Names listed after `locations [ … ]`: shown in addition to those of the condition.
    pub listed_terms: Vec<Term>,
    /// Restricts the executions considered.
    pub filter: Option<Condition>,
    /// The question, if any.
    pub question: Option<Question>,
    /// Forced values and queries of a `.test` file.
    pub khronos: Option<Khronos>,
}

/// A surface syntax.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// The Vulkan dialect of herd's format, as Dartagnan reads it, with our additions.
    Vulkan,
    /// Khronos' `.test`.
    Khronos,
    /// The HSA dialect.
    Hsa,
}

/// A thread: its placement and its code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// The number after `P`.
    pub number: u32,
    /// The placement.
    pub place: ThreadPlace,
    /// Its registers: declared ones first, then in the order of first use.
    pub registers: Vec<Register>,
    /// Its labels, in the order of first mention.
    pub labels: Vec<Label>,
    /// Its instructions, labels among them.
    pub instructions: Vec<Instruction>,
    /// The source position of its header.
    pub span: Span,
}

/// The placement of a thread: on a device or on the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ThreadPlace {
    /// A shader invocation.
    Device(Placement),
    /// `@host`: a thread of the host.
    Host,
}

impl ThreadPlace {
    /// Returns its coordinates, if it is on a device.
    pub fn device_placement(self) -> Option<Placement> {
        match self {
            ThreadPlace::Device(placement) => Some(placement),
            ThreadPlace::Host => None,
        }
    }

    /// Returns true if both are on a device and share an instance of the scope ([`Placement::shares_scope`]).
    pub fn shares_scope(self, other: ThreadPlace, scope: Scope) -> bool {
        match (self, other) {
            (ThreadPlace::Device(own), ThreadPlace::Device(other)) => own.shares_scope(other, scope),
            (ThreadPlace::Host, _) | (_, ThreadPlace::Host) => false,
        }
    }
}

/// Coordinates of a shader invocation; of an HSA work-item its agent, work-group and wave.
///
/// Numbers are local to the enclosing group: two invocations share a workgroup if their queue family and
/// workgroup numbers agree, and a subgroup if also their subgroup numbers agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Placement {
    /// Queue family; HSA's agent.
    pub queue_family: u32,
    /// Queue of that family that executes its dispatch. No scope ends at a queue, so it is irrelevant to
    /// models. Threads of one workgroup are on one queue.
    pub queue: u32,
    /// Workgroup within the queue family.
    pub workgroup: u32,
    /// Subgroup within the workgroup; HSA's wave.
    pub subgroup: u32,
}

impl Placement {
    /// Returns the coordinates of its instance of the scope, with the irrelevant numbers set to 0.
    ///
    /// `None` if placement does not determine the instance: an invocation shares its own scope with no other
    /// one, and shader calls and overlapping fragments are declared by other means.
    pub fn scope_instance(self, scope: Scope) -> Option<Placement> {
        let Placement { queue_family, workgroup, subgroup, .. } = self;
        let queue = 0;
        match scope {
            Scope::Invocation | Scope::ShaderCall | Scope::FragmentInterlock => None,
            Scope::Subgroup => Some(Placement { queue_family, queue, workgroup, subgroup }),
            Scope::Workgroup => Some(Placement { queue_family, queue, workgroup, subgroup: 0 }),
            Scope::QueueFamily => Some(Placement { queue_family, queue, workgroup: 0, subgroup: 0 }),
            Scope::Device | Scope::CrossDevice => {
                Some(Placement { queue_family: 0, queue, workgroup: 0, subgroup: 0 })
            }
        }
    }

    /// Returns true if both share an instance of the scope, as far as placement determines it.
    pub fn shares_scope(self, other: Placement, scope: Scope) -> bool {
        self.scope_instance(scope).is_some_and(|instance| other.scope_instance(scope) == Some(instance))
    }

    /// Returns the narrowest scope in which both threads are in one instance.
    pub fn common_scope(self, other: Placement) -> Scope {
        let narrow = [Scope::Subgroup, Scope::Workgroup, Scope::QueueFamily];
        narrow.into_iter().find(|scope| self.shares_scope(other, *scope)).unwrap_or(Scope::Device)
    }
}

/// A register of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Register {
    /// Its name, such as `r0`.
    pub name: String,
    /// Its initial value: 0 unless declared.
    pub init: RegisterInit,
    /// True if the init section names it.
    pub declared: bool,
}

/// The initial value of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegisterInit {
    /// A number.
    Constant(i64),
    /// `P0:r0 = x`: the initial value of a location.
    ValueOf(LocationId),
    /// `P0:r0 = &x`: the address of a location.
    AddressOf(LocationId),
}

/// A label of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// Its name, such as `LC00`.
    pub name: String,
}

/// A system-synchronizes-with pair: everything at `from` before everything at `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SystemSync {
    /// The earlier side.
    pub from: SyncPoint,
    /// The later side.
    pub to: SyncPoint,
    /// The source position.
    pub span: Span,
}

/// A side of a [`SystemSync`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SyncPoint {
    /// The thread.
    pub thread: ThreadId,
    /// One instruction of it, an index into [`Thread::instructions`] (`P0.2` in the text); `None` for all.
    pub instruction: Option<u16>,
}

impl Test {
    /// Creates a test without threads, memory and question.
    pub fn new(name: impl Into<String>, dialect: Dialect) -> Test {
        Test {
            name: name.into(),
            dialect,
            metadata: Metadata::default(),
            locations: Vec::new(),
            threads: Vec::new(),
            system_sync: Vec::new(),
            calls: ApiCalls::default(),
            listed_terms: Vec::new(),
            filter: None,
            question: None,
            khronos: None,
        }
    }

    /// Returns true if both sides of a system-synchronizes-with pair have events that it orders.
    pub fn orders_events(&self, sync: &SystemSync) -> bool {
        [sync.from, sync.to].iter().all(|side| {
            side.instruction.is_none_or(|index| {
                let instruction = self.thread(side.thread).instructions.get(usize::from(index));
                instruction.is_some_and(|instruction| instruction.kind.is_event())
            })
        })
    }

    /// Returns the location of an id.
    ///
    /// The parser creates ids together with the list that they index, so they are in range.
    pub fn location(&self, id: LocationId) -> &Location {
        &self.locations[usize::from(id.0)]
    }

    /// Returns the thread of an id.
    pub fn thread(&self, id: ThreadId) -> &Thread {
        &self.threads[usize::from(id.0)]
    }

    /// Returns the system-synchronizes-with pairs of existing threads.
    ///
    /// A pair of a thread that was removed orders nothing.
    pub fn attached_sync(&self) -> impl Iterator<Item = &SystemSync> {
        let exists = |point: SyncPoint| usize::from(point.thread.0) < self.threads.len();
        self.system_sync.iter().filter(move |pair| exists(pair.from) && exists(pair.to))
    }

    /// Returns the name whose storage `id` refers to: itself, or the last of its chain of aliases.
    pub fn storage_of(&self, id: LocationId) -> LocationId {
        let mut current = id;
        while let LocationInit::AliasOf(next) = self.location(current).init {
            current = next;
        }
        current
    }

    /// Returns the number that represents the address of a location in comparisons.
    ///
    /// Names of one storage share it. It is negative, so that no small constant equals it.
    pub fn address_of(&self, id: LocationId) -> i64 {
        -(1 + i64::from(self.storage_of(id).0))
    }

    /// Returns true if the initial value of a location is undefined: its own, its storage's, or that of the
    /// location that it copies.
    pub fn has_undefined_init(&self, id: LocationId) -> bool {
        match self.location(id).init {
            LocationInit::Undefined => true,
            LocationInit::CopyOf(next) | LocationInit::AliasOf(next) => self.has_undefined_init(next),
            LocationInit::Constant(_) | LocationInit::Components(_) | LocationInit::AddressOf(_) => false,
        }
    }

    /// Returns true if the initial value of some location is undefined.
    pub fn has_undefined_locations(&self) -> bool {
        self.locations.iter().any(|location| location.init == LocationInit::Undefined)
    }

    /// Returns true if some operation is sequentially consistent (`.seq_cst`), which Vulkan does not have.
    pub fn has_sequential_operations(&self) -> bool {
        let mut code = self.threads.iter().flat_map(|thread| &thread.instructions);
        code.any(|instruction| instruction.kind.semantics().any(|semantics| semantics.sequential))
    }

    /// Returns the test with kernels' actual contents for undefined initial values ([`UNDEFINED_BYTE`]).
    pub fn with_defined_values(&self) -> Test {
        let mut test = self.clone();
        for index in 0..test.locations.len() {
            if self.locations[index].init == LocationInit::Undefined {
                let scalar = self.locations[index].scalar_type();
                let value = self.initial_value(LocationId(index as u16), 0).to_signed(scalar);
                test.locations[index].init = LocationInit::Constant(value);
            }
        }
        test
    }

    /// Returns the initial value of a component of a location; component 0 of a scalar.
    ///
    /// Undefined locations have the contents that kernels write there ([`UNDEFINED_BYTE`]).
    pub fn initial_value(&self, id: LocationId, component: u8) -> Value {
        let scalar = self.location(id).scalar_type();
        let mut current = id;
        loop {
            match self.location(current).init {
                LocationInit::Constant(constant) => return Value::from_constant(constant, scalar),
                LocationInit::Components(constants) => {
                    let constant = constants.get(usize::from(component)).copied().unwrap_or_default();
                    return Value::from_constant(constant, scalar);
                }
                LocationInit::AddressOf(location) => {
                    return Value::from_constant(self.address_of(location), scalar);
                }
                LocationInit::Undefined => {
                    return Value(u64::from_ne_bytes([UNDEFINED_BYTE; 8])).truncate_to(scalar);
                }
                LocationInit::AliasOf(next)
                    if self.location(current).is_vector() || self.location(next).is_vector() =>
                {
                    // A vector and its aliases share bytes, not components.
                    let bits = self.initial_bits(next) >> (scalar.bits() * u32::from(component));
                    return Value(bits as u64).truncate_to(scalar);
                }
                LocationInit::CopyOf(next) | LocationInit::AliasOf(next) => current = next,
            }
        }
    }

    /// Returns the initial bits of a whole location; the first component is the lowest.
    pub fn initial_bits(&self, id: LocationId) -> u128 {
        let location = self.location(id);
        let bits = location.scalar_type().bits();
        (0..location.components).fold(0, |all, component| {
            all | (u128::from(self.initial_value(id, component).0) << (bits * u32::from(component)))
        })
    }

    /// Returns the initial value of a register. An address is a number that no other location has.
    pub fn initial_register(&self, thread: ThreadId, register: RegisterId) -> Value {
        let typed = |constant| Value::from_constant(constant, self.register_type(thread, register));
        match self.thread(thread).registers.get(usize::from(register.0)).map(|r| r.init) {
            Some(RegisterInit::Constant(0)) | None => Value(0),
            Some(RegisterInit::Constant(constant)) => typed(constant),
            Some(RegisterInit::ValueOf(location)) => self.initial_value(location, 0),
            Some(RegisterInit::AddressOf(location)) => typed(self.address_of(location)),
        }
    }

    /// Returns the type of a register: the widest type of a location that is loaded into it, else `u32`.
    pub fn register_type(&self, thread: ThreadId, register: RegisterId) -> ScalarType {
        let mut found: Option<ScalarType> = None;
        for instruction in &self.thread(thread).instructions {
            let InstructionKind::Access(access) = &instruction.kind else { continue };
            // An HSA await has the default type.
            let waits = matches!(access.kind, AccessKind::Await { .. });
            if !waits && access.destinations().any(|destination| destination == register) {
                let ty = access.place.scalar_type(self).widen_to_register();
                if found.is_none_or(|f| ty.bits() > f.bits()) {
                    found = Some(ty);
                }
            }
        }
        found.unwrap_or_default()
    }

    /// Returns the accesses to workgroup memory from a second workgroup, with the location, one per location.
    ///
    /// A model has one location there, but each workgroup has its own memory.
    pub fn foreign_workgroup_accesses(&self) -> Vec<(LocationId, Span)> {
        let mut users: Vec<(LocationId, ThreadPlace)> = Vec::new();
        let mut found: Vec<(LocationId, Span)> = Vec::new();
        for thread in &self.threads {
            for instruction in &thread.instructions {
                let Some(access) = instruction.kind.access() else { continue };
                if access.place.class != StorageClass::Workgroup {
                    continue;
                }
                let storage = self.storage_of(access.place.location);
                match users.iter().find(|(known, _)| *known == storage) {
                    None => users.push((storage, thread.place)),
                    Some((_, place)) => {
                        let is_same =
                            *place == thread.place || place.shares_scope(thread.place, Scope::Workgroup);
                        if !is_same && !found.iter().any(|(known, _)| self.storage_of(*known) == storage) {
                            found.push((access.place.location, instruction.span));
                        }
                    }
                }
            }
        }
        found
    }

    /// Returns the parts of an outcome, in canonical order.
    ///
    /// First the registers that the code assigns, by thread and register; then the locations that the
    /// condition, the filter or the `locations` section names, by location and component.
    pub fn observables(&self) -> Vec<Observable> {
        let mut registers = Vec::new();
        for (index, thread) in self.threads.iter().enumerate() {
            let mut assigned: Vec<RegisterId> =
                thread.instructions.iter().flat_map(|instruction| instruction.kind.destinations()).collect();
            assigned.sort_unstable();
            assigned.dedup();
            registers.extend(assigned.into_iter().map(|r| Observable::Register(ThreadId(index as u16), r)));
        }
        let mut locations = Vec::new();
        let mut add = |term: &Term| {
            if let Term::Location(location, component) = term {
                locations.push((*location, *component));
            }
        };
        if let Some(filter) = &self.filter {
            filter.for_each_term(&mut add);
        }
        if let Some(question) = &self.question {
            question.condition.for_each_term(&mut add);
        }
        self.listed_terms.iter().for_each(&mut add);
        locations.sort_unstable();
        locations.dedup();
        registers.extend(
            locations.into_iter().map(|(location, component)| Observable::Location(location, component)),
        );
        registers
    }

    /// Returns the type of an observed value.
    pub fn observable_type(&self, observable: Observable) -> ScalarType {
        match observable {
            Observable::Register(thread, register) => self.register_type(thread, register),
            Observable::Location(location, _) => self.location(location).scalar_type(),
        }
    }

    /// Returns the name of an observable as in conditions and reports: `P1:r0`, `x`, `v[2]`.
    pub fn observable_name(&self, observable: Observable) -> String {
        match observable {
            Observable::Register(thread, register) => {
                let thread = self.thread(thread);
                let register = thread.registers.get(usize::from(register.0)).map_or("?", |r| r.name.as_str());
                format!("P{}:{register}", thread.number)
            }
            Observable::Location(location, component) => {
                let location = self.location(location);
                if location.is_vector() {
                    format!("{}[{component}]", location.name)
                } else {
                    location.name.clone()
                }
            }
        }
    }
}
