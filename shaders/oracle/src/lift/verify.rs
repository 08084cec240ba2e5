//! Compares the events of a kernel with its test.

use std::collections::{BTreeMap, BTreeSet};

use litmus::{
    Access, AccessKind, ArithmeticOperation, Flow, InstructionKind, InterlockEnd, LocationId, Observable,
    RmwOperation, ScalarType, Scope, Semantics, SplitHalf, StorageClass, Test, Thread, ThreadId,
};
use rspirv::spirv::Op;

use super::subgroup::subgroup_event;
use super::{KernelEvent, KernelMemory, LiftError, Site, ValueOperand, lift};
use shaders::kernel::{CompiledKernel, ResultSlot};
use shaders::variant::{MemoryModel, Variant, WorkgroupInitialization};

/// Checks that the kernel contains exactly the events of the test, thread by thread and in order.
///
/// A control barrier whose semantics differ between threads may be compiled to a control barrier without
/// semantics between memory barriers with each thread's own semantics (clause VK-SW-10), and so may half of a
/// split barrier (VK-SW-18). A thread may execute control barriers of others after its last event, and
/// barriers with subgroup execution scope and without semantics right before a barrier of the workgroup. If
/// locations are in workgroup memory, each thread is between the barrier after the initialization and another
/// one after the last event.
///
/// # Errors
/// [`LiftError::Differs`] with the first difference; other errors if the kernel cannot be read.
pub fn verify(test: &Test, kernel: &CompiledKernel) -> Result<(), LiftError> {
    let effective = shaders::effective_test(test, kernel.variant)
        .map_err(|rule| LiftError::Inexpressible(rule.to_string()))?;
    let test = &effective;
    let sites = ExpectedSites::new(test, kernel);
    let lifted = lift(&kernel.words, &kernel.bindings)?;
    let zeroed = kernel.variant.workgroup_memory == WorkgroupInitialization::Zeroed;
    let initialization = |zeroed| format!("{} memory", if zeroed { "zeroed" } else { "uninitialized" });
    outside_agrees(initialization(zeroed), initialization(lifted.zeroed.unwrap_or(zeroed)))?;
    let reconvergence = |maximal| format!("{} maximal reconvergence", if maximal { "with" } else { "no" });
    let reconverges = test.metadata.maximal_reconvergence && test.has_tangles();
    outside_agrees(reconvergence(reconverges), reconvergence(lifted.maximally_reconverges))?;
    let sections = |order| format!("{order:?} as the order of sections");
    outside_agrees(sections(test.interlock_order()), sections(lifted.interlock))?;
    for (index, thread) in test.threads.iter().enumerate() {
        let id = ThreadId(index as u16);
        let mut found = lifted.threads.get(&id).map(Vec::as_slice).unwrap_or_default();
        if !sites.workgroup.is_empty() {
            found = strip_initialization_barriers(id, found, kernel.variant)?;
        }
        let report_count = kernel.results.iter().filter(|slot| slot.thread() == Some(id)).count();
        KernelComparison { thread: id, found, position: 0 }.compare_thread(
            test,
            thread,
            &sites,
            kernel,
            report_count,
        )?;
    }
    let iteration = [Op::AtomicLoad, Op::AtomicStore, Op::AtomicLoad, Op::AtomicStore];
    let stress = if kernel.is_stressed() { &iteration[..] } else { &[] };
    if lifted.stress != stress {
        return Err(LiftError::StressDiffers(lifted.stress));
    }
    if !sites.has_all_salts(&lifted.salts, kernel) {
        return Err(LiftError::WrongSalts(lifted.salts));
    }
    verify_outside_threads(test, kernel, &sites, &lifted.outside)
}

/// Returns an error unless a property outside of threads is as expected.
fn outside_agrees(expected: String, found: String) -> Result<(), LiftError> {
    if expected == found { Ok(()) } else { Err(LiftError::OutsideDiffers { expected, found }) }
}

/// Returns the events between the barrier after the initialization of workgroup memory and the one before it
/// is read. If the driver initializes it, the initialization for the next round comes after the reading.
fn strip_initialization_barriers(
    id: ThreadId,
    found: &[KernelEvent],
    variant: Variant,
) -> Result<&[KernelEvent], LiftError> {
    let is_vulkan_model = variant.model == MemoryModel::Vulkan;
    let barrier = KernelEvent::ControlBarrier {
        half: None,
        execution: Scope::Workgroup,
        memory: Scope::Workgroup,
        semantics: Semantics {
            order: litmus::Order::AcquireRelease,
            classes: litmus::StorageClassSet::EMPTY.with(StorageClass::Workgroup),
            make_available: is_vulkan_model,
            make_visible: is_vulkan_model,
            ..Semantics::RELAXED
        },
        branches: 0,
    };
    let (first, inner, last) = match (found, variant.workgroup_memory) {
        ([first, inner @ .., last], WorkgroupInitialization::Stored)
        | ([inner @ .., first, last], WorkgroupInitialization::Zeroed) => (Some(first), inner, Some(last)),
        _ => (None, found, None),
    };
    if (first, last) == (Some(&barrier), Some(&barrier)) {
        return Ok(inner);
    }
    let found = found.first().unwrap_or(&barrier);
    let expected = "barriers of the workgroup around it".to_owned();
    Err(LiftError::Differs { thread: id, position: 0, expected, found: format!("{found:?}") })
}

/// Checks that the kernel initializes its workgroup memory and reads its final values.
fn verify_outside_threads(
    test: &Test,
    kernel: &CompiledKernel,
    sites: &ExpectedSites,
    outside: &[KernelEvent],
) -> Result<(), LiftError> {
    let mut stores = Vec::new();
    let mut final_reads = Vec::new();
    let mut storages: Vec<&WorkgroupStorage> = sites.workgroup.iter().collect();
    // Each owner initializes its own memory, in the order of the storages.
    let mut owners: Vec<ThreadId> = Vec::new();
    for storage in &storages {
        if !owners.contains(&storage.owner) {
            owners.push(storage.owner);
        }
    }
    storages.sort_by_key(|storage| owners.iter().position(|owner| *owner == storage.owner));
    let access = match kernel.variant.model {
        MemoryModel::Vulkan => Access::NonPrivate,
        MemoryModel::Glsl450 => Access::Coherent { scope: Scope::Workgroup },
    };
    for storage in storages {
        let initial = |component: u32| {
            let value = test.initial_value(storage.location, component as u8);
            ValueOperand::Constant(value_bits(storage.site.element, value.0))
        };
        let values = (0..storage.site.components).map(initial).collect();
        stores.push(KernelEvent::Store { site: storage.site, volatile: false, access, values });
        let slots = kernel.results.iter().filter(|slot| {
            matches!(slot, ResultSlot::Register(Observable::Location(location, _))
                | ResultSlot::High(Observable::Location(location, _))
                if test.storage_of(*location) == storage.location)
        });
        let slots = slots.count();
        if slots > 0 {
            final_reads.push(KernelEvent::Load { site: storage.site, volatile: false, access });
            final_reads.extend(std::iter::repeat_n(KernelEvent::Report, slots));
        }
    }
    let expected = match kernel.variant.workgroup_memory {
        WorkgroupInitialization::Stored => [stores, final_reads].concat(),
        WorkgroupInitialization::Zeroed => [final_reads, stores].concat(),
    };
    let position = expected.iter().zip(outside).take_while(|(left, right)| left == right).count();
    outside_agrees(describe(expected.get(position)), describe(outside.get(position)))
}

fn describe(event: Option<&KernelEvent>) -> String {
    event.map_or("its end".to_owned(), |event| format!("{event:?}"))
}

/// A storage in workgroup memory.
struct WorkgroupStorage {
    location: LocationId,
    site: Site,
    /// The thread that initializes and reads it: the only thread with private accesses to it, or the first of
    /// its class.
    owner: ThreadId,
}

/// The expected position of each access, derived only from the test and the contract.
struct ExpectedSites {
    /// By location, type, offset and number of components.
    sites: BTreeMap<(LocationId, ScalarType, u32, u32), Site>,
    workgroup: Vec<WorkgroupStorage>,
}

impl ExpectedSites {
    fn new(test: &Test, kernel: &CompiledKernel) -> ExpectedSites {
        // By location, width, offset and number of components, in the order of the kernel's declarations.
        let mut paths: BTreeMap<PathKey, StorageClass> = BTreeMap::new();
        let mut users: BTreeMap<LocationId, usize> = BTreeMap::new();
        let mut private: BTreeMap<LocationId, BTreeSet<ThreadId>> = BTreeMap::new();
        for (index, thread) in test.threads.iter().enumerate() {
            for instruction in &thread.instructions {
                let Some((location, scalar, offset, class)) = memory_access(test, &instruction.kind) else {
                    continue;
                };
                let float = matches!(scalar, ScalarType::F32 | ScalarType::F64);
                let components = instruction.kind.access().map_or(0, |access| access.components().into());
                paths.insert((location, scalar.bits(), float, offset, components), class);
                users.entry(test.storage_of(location)).or_insert(index);
                if instruction.kind.access().is_some_and(|access| access.strength == Access::Private) {
                    private.entry(test.storage_of(location)).or_default().insert(ThreadId(index as u16));
                }
            }
        }
        let mut storages: Vec<LocationId> = Vec::new();
        for location in (0..test.locations.len()).map(|index| test.storage_of(LocationId(index as u16))) {
            if !storages.contains(&location) {
                storages.push(location);
            }
        }
        let number = |location: LocationId| {
            storages.iter().position(|known| *known == test.storage_of(location)).unwrap_or_default() as u32
        };
        // Storages in workgroup memory, in the order of the paths, with their positions.
        let mut workgroup_paths_by_storage: Vec<(LocationId, PathKey)> = Vec::new();
        for ((location, ..), class) in &paths {
            let storage = test.storage_of(*location);
            if *class == StorageClass::Workgroup
                && !workgroup_paths_by_storage.iter().any(|(known, _)| *known == storage)
            {
                let scalar = test.location(storage).scalar_type();
                let float = matches!(scalar, ScalarType::F32 | ScalarType::F64);
                let components = u32::from(test.location(storage).components);
                workgroup_paths_by_storage.push((storage, (*location, scalar.bits(), float, 0, components)));
            }
        }
        let workgroup_paths =
            paths.iter().filter(|(_, class)| **class == StorageClass::Workgroup).map(|(path, _)| *path);
        let has_explicit_layout = workgroup_paths.clone().count() != workgroup_paths_by_storage.len()
            || workgroup_paths
                .clone()
                .any(|path| !workgroup_paths_by_storage.iter().any(|(_, home)| *home == path));
        for (_, path) in &workgroup_paths_by_storage {
            paths.insert(*path, StorageClass::Workgroup);
        }
        let is_address =
            |location: LocationId| test.location(location).reference == Some(litmus::Reference::Address);
        let mut buffers: Vec<LocationId> = Vec::new();
        for ((location, ..), class) in &paths {
            let buffer = matches!(class, StorageClass::Buffer) && !is_address(*location);
            if buffer && !buffers.contains(location) {
                buffers.push(*location);
            }
        }
        let (mut images, mut variables) = (kernel.bindings.len() as u32, 0);
        let mut sites = BTreeMap::new();
        for ((location, width, float, offset, components), class) in &paths {
            let element = element_type(*width, *float);
            let storage = number(*location);
            let at = |memory: KernelMemory, storage: Option<u32>| Site {
                memory,
                storage,
                element,
                components: *components,
                offset: *offset,
            };
            let site = match class {
                _ if is_address(*location) => at(KernelMemory::Address, Some(storage)),
                StorageClass::Workgroup => {
                    variables += 1;
                    let own_storage = test.storage_of(*location);
                    let place = workgroup_paths_by_storage
                        .iter()
                        .position(|(known, _)| *known == own_storage)
                        .unwrap_or_default();
                    let storage = has_explicit_layout.then_some(place as u32 * kernel.lanes);
                    at(KernelMemory::Workgroup(variables - 1), storage)
                }
                StorageClass::Image => {
                    images += 1;
                    at(KernelMemory::Binding(images - 1), Some(storage))
                }
                StorageClass::Buffer | StorageClass::Output => {
                    let binding = buffers.iter().position(|known| known == location).unwrap_or_default();
                    at(KernelMemory::Binding(binding as u32), Some(storage))
                }
            };
            sites.insert((*location, element, *offset, *components), site);
        }
        let owner_of = |storage: LocationId| {
            let user = ThreadId(users.get(&storage).copied().unwrap_or_default() as u16);
            let class = kernel.roles.classes.iter().find(|members| members.contains(&user));
            let first = class.and_then(|members| members.first()).copied();
            let private = private.get(&storage).filter(|threads| threads.len() == 1);
            private.and_then(|threads| threads.first()).copied().or(first).unwrap_or(user)
        };
        let workgroup = workgroup_paths_by_storage
            .iter()
            .filter_map(|(storage, (location, width, float, offset, components))| {
                let site = sites.get(&(*location, element_type(*width, *float), *offset, *components))?;
                Some(WorkgroupStorage { location: *storage, site: *site, owner: owner_of(*storage) })
            })
            .collect();
        ExpectedSites { sites, workgroup }
    }

    /// Returns true if the kernel reads one salt through each binding of the test's memory, and one by address
    /// if it uses addresses. Kernels of one fixed dispatch read none.
    fn has_all_salts(&self, salts: &[Site], kernel: &CompiledKernel) -> bool {
        let memories = |sites: &mut dyn Iterator<Item = &Site>| {
            let memories = sites.map(|site| site.memory);
            memories.filter(|memory| !matches!(memory, KernelMemory::Workgroup(_))).collect::<BTreeSet<_>>()
        };
        let found = memories(&mut salts.iter());
        let bindings = salts.iter().filter(|site| matches!(site.memory, KernelMemory::Binding(_)));
        let bound_memories = found.iter().filter(|memory| matches!(memory, KernelMemory::Binding(_)));
        if kernel.identity == 0 {
            return salts.is_empty();
        }
        found == memories(&mut self.sites.values())
            && bindings.count() == bound_memories.count()
            && salts.iter().all(|salt| self.sites.values().any(|site| site == salt))
    }

    fn find_site(
        &self,
        location: LocationId,
        scalar: ScalarType,
        offset: u32,
        components: u32,
    ) -> Option<Site> {
        let float = matches!(scalar, ScalarType::F32 | ScalarType::F64);
        self.sites.get(&(location, element_type(scalar.bits(), float), offset, components)).copied()
    }
}

/// A path of a kernel: location, width, whether it is floating-point, offset, number of components.
type PathKey = (LocationId, u32, bool, u32, u32);

/// Returns location, type, offset and class of an access; for a vector, those of its first component.
fn memory_access(test: &Test, kind: &InstructionKind) -> Option<(LocationId, ScalarType, u32, StorageClass)> {
    let place = kind.access()?.place;
    Some((place.location, place.scalar_type(test), place.offset, place.class))
}

fn element_type(width: u32, float: bool) -> ScalarType {
    match (width, float) {
        (8, _) => ScalarType::U8,
        (16, _) => ScalarType::U16,
        (32, false) => ScalarType::U32,
        (32, true) => ScalarType::F32,
        (_, false) => ScalarType::U64,
        (_, true) => ScalarType::F64,
    }
}

/// Returns the bits of a number in memory.
fn value_bits(element: ScalarType, number: u64) -> u64 {
    match element {
        ScalarType::F32 => (number as f32).to_bits().into(),
        ScalarType::F64 => (number as f64).to_bits(),
        integer => litmus::Value(number).truncate_to(integer).0,
    }
}

/// Returns for each instruction true if it is reachable.
fn reachable_instructions(thread: &Thread) -> Vec<bool> {
    let mut reached = vec![false; thread.instructions.len()];
    let mut open = vec![0];
    while let Some(position) = open.pop() {
        match reached.get_mut(position) {
            Some(seen) if !*seen => *seen = true,
            _ => continue,
        }
        match thread.instructions.get(position).map(|instruction| &instruction.kind) {
            Some(InstructionKind::Flow(Flow::Goto(target))) => open.extend(thread.label_index(*target)),
            Some(InstructionKind::Flow(Flow::Branch { target, .. })) => {
                open.extend(thread.label_index(*target));
                open.push(position + 1);
            }
            _ => open.push(position + 1),
        }
    }
    reached
}

struct KernelComparison<'a> {
    thread: ThreadId,
    found: &'a [KernelEvent],
    position: usize,
}

impl KernelComparison<'_> {
    fn compare_thread(
        &mut self,
        test: &Test,
        thread: &Thread,
        sites: &ExpectedSites,
        kernel: &CompiledKernel,
        report_count: usize,
    ) -> Result<(), LiftError> {
        let places = (0..).zip(&thread.instructions);
        for ((place, instruction), reached) in places.zip(reachable_instructions(thread)) {
            if !reached {
                continue;
            }
            let branches = count_skipping_branches(thread, place);
            match &instruction.kind {
                InstructionKind::ControlBarrier(barrier) => {
                    self.compare_barrier(&KernelEvent::ControlBarrier {
                        half: None,
                        execution: barrier.execution_scope,
                        memory: barrier.memory_scope,
                        semantics: barrier.semantics.unwrap_or(Semantics::RELAXED),
                        branches,
                    })?
                }
                InstructionKind::SplitBarrier(barrier) => {
                    self.compare_barrier(&KernelEvent::ControlBarrier {
                        half: Some(barrier.half),
                        execution: barrier.execution_scope,
                        memory: barrier.memory_scope,
                        semantics: barrier.semantics.unwrap_or(Semantics::RELAXED),
                        branches: 0,
                    })?
                }
                InstructionKind::Interlock(interlock) => {
                    self.expect_event(&KernelEvent::Interlock(interlock.end))?;
                }
                InstructionKind::Subgroup(operation) => {
                    self.expect_event(&subgroup_event(operation, branches))?;
                }
                kind => {
                    if let Some(expected) = expected_event(test, sites, kernel, kind) {
                        match self.found.get(self.position) {
                            Some(found) if events_agree(&expected, found) => self.position += 1,
                            _ => return Err(self.current_difference(format!("{expected:?}"))),
                        }
                    }
                }
            }
        }
        for _ in 0..report_count {
            if self.found.get(self.position) != Some(&KernelEvent::Report) {
                return Err(self.current_difference("a result".to_owned()));
            }
            self.position += 1;
        }
        // A thread without a section executes the ends of the others' section.
        let has_section =
            thread.instructions.iter().any(|one| matches!(one.kind, InstructionKind::Interlock(_)));
        if !has_section && test.interlock_order().is_some() {
            [InterlockEnd::Begin, InterlockEnd::End]
                .into_iter()
                .try_for_each(|end| self.expect_event(&KernelEvent::Interlock(end)))?;
        }
        while self.found.get(self.position).and_then(unguarded_barrier).is_some() {
            self.position += 1;
        }
        if self.position < self.found.len() {
            return Err(self.current_difference("its end".to_owned()));
        }
        Ok(())
    }

    fn current_difference(&self, expected: String) -> LiftError {
        let found = describe(self.found.get(self.position));
        LiftError::Differs { thread: self.thread, position: self.position, expected, found }
    }

    /// Compares a control barrier or half of a split one: as in the test, or bare between memory barriers.
    fn compare_barrier(&mut self, whole: &KernelEvent) -> Result<(), LiftError> {
        // Under a branch, it must be as in the test.
        let Some((half, execution, memory, semantics)) = unguarded_barrier(whole) else {
            return self.expect_event(whole);
        };
        if self.expect_event(whole).is_ok() {
            return Ok(());
        }
        if execution == Scope::Workgroup {
            self.skip_foreign_subgroup_barriers();
            if self.expect_event(whole).is_ok() {
                return Ok(());
            }
        }
        let fence = |semantics| KernelEvent::Fence { scope: memory, semantics };
        if semantics.order.releases() {
            let release = Semantics { order: litmus::Order::Release, make_visible: false, ..semantics };
            self.expect_event(&fence(release))?;
        }
        if execution == Scope::Workgroup {
            self.skip_foreign_subgroup_barriers();
        }
        match self.found.get(self.position).and_then(unguarded_barrier) {
            Some((found, of, _, Semantics::RELAXED)) if (found, of) == (half, execution) => {
                self.position += 1;
            }
            _ => return Err(self.current_difference(format!("{whole:?}"))),
        }
        if semantics.order.acquires() {
            let acquire = Semantics { order: litmus::Order::Acquire, make_available: false, ..semantics };
            self.expect_event(&fence(acquire))?;
        }
        Ok(())
    }

    fn expect_event(&mut self, expected: &KernelEvent) -> Result<(), LiftError> {
        if self.found.get(self.position) != Some(expected) {
            return Err(self.current_difference(format!("{expected:?}")));
        }
        self.position += 1;
        Ok(())
    }

    fn skip_foreign_subgroup_barriers(&mut self) {
        while let Some((_, Scope::Subgroup, _, Semantics::RELAXED)) =
            self.found.get(self.position).and_then(unguarded_barrier)
        {
            self.position += 1;
        }
    }
}

/// Counts the branches that skip an instruction.
fn count_skipping_branches(thread: &Thread, place: usize) -> usize {
    let before = thread.instructions.iter().take(place).filter_map(|instruction| match instruction.kind {
        InstructionKind::Flow(Flow::Branch { target, .. }) => thread.label_index(target),
        _ => None,
    });
    before.filter(|to| *to > place).count()
}

/// Returns half, execution scope, memory scope and semantics of a barrier that is not under a branch.
fn unguarded_barrier(event: &KernelEvent) -> Option<(Option<SplitHalf>, Scope, Scope, Semantics)> {
    match event {
        KernelEvent::ControlBarrier { half, execution, memory, semantics, branches: 0 } => {
            Some((*half, *execution, *memory, *semantics))
        }
        _ => None,
    }
}

/// Returns the event of an instruction of the test. A computed value may be a constant in the kernel.
fn expected_event(
    test: &Test,
    sites: &ExpectedSites,
    kernel: &CompiledKernel,
    kind: &InstructionKind,
) -> Option<KernelEvent> {
    if let InstructionKind::Fence { scope, semantics } = kind {
        return Some(KernelEvent::Fence { scope: *scope, semantics: *semantics });
    }
    let (location, scalar, offset, class) = memory_access(test, kind)?;
    let access = kind.access()?;
    let site = sites.find_site(location, scalar, offset, access.components().into())?;
    let value_operand = |operand: &litmus::Operand| match operand {
        litmus::Operand::Constant(constant) => {
            ValueOperand::Constant(value_bits(site.element, *constant as u64))
        }
        litmus::Operand::Register(_) => ValueOperand::Computed,
    };
    // Variants with volatile accesses: all except private ones, and atomics only without the Vulkan memory
    // model.
    let vulkan = kernel.variant.model == MemoryModel::Vulkan;
    let is_variant_volatile = kernel.variant.volatile;
    let is_volatile = |access: &Access| match access {
        Access::Private => false,
        Access::Atomic { .. } => is_variant_volatile && vulkan,
        Access::NonPrivate | Access::Coherent { .. } => {
            is_variant_volatile && (vulkan || class != StorageClass::Image)
        }
    };
    let (volatile, strength) = (is_volatile(&access.strength), access.strength);
    Some(match &access.kind {
        AccessKind::Load(_) => KernelEvent::Load { site, volatile, access: strength },
        AccessKind::Store(values) => {
            let values = values.iter().map(|value| value_operand(&value)).collect();
            KernelEvent::Store { site, volatile, access: strength, values }
        }
        AccessKind::Rmw { operation, .. } => {
            let Access::Atomic { scope, semantics } = strength else { return None };
            let (instruction, unequal, values) = match operation {
                RmwOperation::Exchange(value) => (Op::AtomicExchange, None, vec![value_operand(value)]),
                RmwOperation::Fetch(arithmetic, value) => {
                    (rmw_opcode(*arithmetic, scalar)?, None, vec![value_operand(value)])
                }
                RmwOperation::CompareExchange { compare, value, unequal } => (
                    Op::AtomicCompareExchange,
                    Some(*unequal),
                    vec![value_operand(value), value_operand(compare)],
                ),
            };
            KernelEvent::Rmw {
                site,
                volatile: is_variant_volatile && vulkan,
                instruction,
                scope,
                semantics,
                unequal,
                values,
            }
        }
        AccessKind::Await { .. } => return None,
    })
}

fn rmw_opcode(arithmetic: ArithmeticOperation, scalar: ScalarType) -> Option<Op> {
    let signed = matches!(scalar, ScalarType::I8 | ScalarType::I16 | ScalarType::I32 | ScalarType::I64);
    if matches!(scalar, ScalarType::F32 | ScalarType::F64) {
        return match arithmetic {
            ArithmeticOperation::Add => Some(Op::AtomicFAddEXT),
            ArithmeticOperation::Minimum => Some(Op::AtomicFMinEXT),
            ArithmeticOperation::Maximum => Some(Op::AtomicFMaxEXT),
            _ => None,
        };
    }
    Some(match arithmetic {
        ArithmeticOperation::Add => Op::AtomicIAdd,
        ArithmeticOperation::Subtract => Op::AtomicISub,
        ArithmeticOperation::And => Op::AtomicAnd,
        ArithmeticOperation::Or => Op::AtomicOr,
        ArithmeticOperation::Xor => Op::AtomicXor,
        ArithmeticOperation::Minimum if signed => Op::AtomicSMin,
        ArithmeticOperation::Minimum => Op::AtomicUMin,
        ArithmeticOperation::Maximum if signed => Op::AtomicSMax,
        ArithmeticOperation::Maximum => Op::AtomicUMax,
        ArithmeticOperation::Multiply | ArithmeticOperation::Divide => return None,
    })
}

/// Returns true if the events match. A register with its initial value is a constant in the kernel.
fn events_agree(expected: &KernelEvent, found: &KernelEvent) -> bool {
    fn values(event: &mut KernelEvent) -> Vec<ValueOperand> {
        match event {
            KernelEvent::Store { values, .. } | KernelEvent::Rmw { values, .. } => std::mem::take(values),
            _ => Vec::new(),
        }
    }
    let (mut expected, mut found) = (expected.clone(), found.clone());
    let (wanted, written) = (values(&mut expected), values(&mut found));
    let same_value =
        |left: &ValueOperand, right: &ValueOperand| *left == ValueOperand::Computed || left == right;
    expected == found
        && wanted.len() == written.len()
        && wanted.iter().zip(&written).all(|(left, right)| same_value(left, right))
}
