//! Operations of a choice of paths, and their relations that do not depend on values.

use litmus::{
    AccessMask, InstructionKind, InterlockEnd, LocationId, Scope, SplitHalf, StorageClass, StorageClassSet,
    SystemOperation, Test, ThreadId, ThreadPlace,
};

use crate::instances::Instances;
use crate::path::split_cells;
use crate::profile::TextProfile;
use crate::refusal::UnsupportedTest;
use crate::tangle::DynamicInstances;
use crate::thread_path::{Footprint, InstructionEffect, LocationCell, ThreadPath};

/// A set of operations: bit i is operation i.
pub type Set = u64;
/// A relation between operations: row i is the set of operations that follow operation i.
pub type Relation = Vec<Set>;

pub fn members(mut set: Set) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        if set == 0 {
            return None;
        }
        let lowest = set.trailing_zeros() as usize;
        set &= set - 1;
        Some(lowest)
    })
}

/// Returns true if a relation includes a pair.
pub fn holds(relation: &Relation, from: usize, to: usize) -> bool {
    relation[from] & (1 << to) != 0
}

/// Adds the pairs that follow by transitivity.
pub fn close_transitively(relation: &mut Relation) {
    for middle in 0..relation.len() {
        let after = relation[middle];
        for row in relation.iter_mut() {
            if *row & (1 << middle) != 0 {
                *row |= after;
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub enum OperationKind {
    /// A read of memory, or the read half of a read-modify-write.
    Read(Footprint),
    /// A write of memory, or the write half of a read-modify-write.
    Write(Footprint),
    /// A memory barrier, control barriers with an order among them.
    Barrier,
    /// The availability operation of MakeAvailable (VK-AVSEM-01).
    Available,
    /// The visibility operation of MakeVisible (VK-AVSEM-03).
    Visible,
    /// The availability operation of a memory dependency (VK-VOP-03).
    DeviceAvailable(AccessMask),
    /// The visibility operation of a memory dependency (VK-VOP-04).
    DeviceVisible(AccessMask),
    /// The domain operation from the host domain to the device domain (VK-VOP-02, VK-VOP-08), or the other way (VK-VOP-05).
    Domain { to_host: bool },
    /// The availability operation of a flush (VK-VOP-06), or the visibility operation of an invalidation (VK-VOP-07), by the
    /// number of the storages passed to it.
    Mapped { available: bool, ranges: usize },
    /// A control barrier without an order, or a shader call.
    Other,
}

/// An operation of the memory model.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    pub thread: usize,
    pub instruction: u16,
    /// Executed instructions are numbered: the halves of a read-modify-write have one number.
    pub execution_number: usize,
    pub kind: OperationKind,
    pub scope: Scope,
    pub acquires: bool,
    pub releases: bool,
    /// The storage classes in its semantics.
    pub semantics: StorageClassSet,
    pub memory_classes: StorageClassSet,
}

impl Operation {
    /// Returns the footprint of a memory access.
    pub fn footprint(&self) -> Option<&Footprint> {
        match &self.kind {
            OperationKind::Read(touch) | OperationKind::Write(touch) => Some(touch),
            _ => None,
        }
    }

    pub fn is_read(&self) -> bool {
        matches!(self.kind, OperationKind::Read(_))
    }

    pub fn is_write(&self) -> bool {
        matches!(self.kind, OperationKind::Write(_))
    }

    pub fn is_atomic(&self) -> bool {
        self.footprint().is_some_and(|touch| touch.atomic)
    }
}

impl Instances {
    /// VK-PMO-03, VK-SW-07: each is in the instance of the other one's memory scope.
    pub fn are_in_mutual_scope(&self, a: &Operation, b: &Operation) -> bool {
        self.includes_thread(a.scope, a.thread, b.thread) && self.includes_thread(b.scope, b.thread, a.thread)
    }
}

/// A half of a split barrier among the operations.
struct SplitOperation {
    operation: usize,
    half: SplitHalf,
    scope: Scope,
    /// Number of earlier executions of this half and scope by the invocation.
    ordinal: usize,
    /// The instruction of the shader.
    id: String,
}

/// The operations of a choice of paths, with the facts that do not depend on the sources of reads.
pub struct OperationGraph<'a> {
    pub profile: TextProfile,
    pub cells: Vec<LocationCell>,
    pub instances: &'a Instances,
    pub operations: Vec<Operation>,
    /// Marks host threads.
    pub hosts: Vec<bool>,
    /// Storages that are not coherent with the host (VK-VOP-09).
    pub noncoherent: Vec<u16>,
    /// The storages that flushes and invalidations name; empty if they name all.
    pub ranges: Vec<Vec<u16>>,
    /// Reads in the order of threads and paths: the operation of each.
    pub reads: Vec<usize>,
    /// Writes: the operation, the thread and the node of the value.
    pub writes: Vec<(usize, usize, usize)>,
    /// VK-PO-05.
    pub program_order: Relation,
    /// VK-SSW-01, with its transitive closure.
    pub system_sync: Relation,
    /// VK-MO-01.
    pub mutually_ordered: Relation,
    /// Synchronizes-with that depends on no value: control barriers, interlocks, shader calls.
    pub static_synchronization: Relation,
}

impl<'a> OperationGraph<'a> {
    /// Lays out the operations of a path for each thread; fragments that overlap execute their sections in the order `fragments`.
    pub fn new(
        test: &Test,
        profile: TextProfile,
        instances: &'a Instances,
        paths: &[&ThreadPath],
        tangles: &DynamicInstances,
        fragments: &[usize],
    ) -> Result<OperationGraph<'a>, UnsupportedTest> {
        let mut frame = OperationGraph {
            profile,
            cells: Vec::new(),
            instances,
            operations: Vec::new(),
            hosts: test.threads.iter().map(|thread| thread.place == ThreadPlace::Host).collect(),
            noncoherent: Vec::new(),
            ranges: Vec::new(),
            reads: Vec::new(),
            writes: Vec::new(),
            program_order: Vec::new(),
            system_sync: Vec::new(),
            mutually_ordered: Vec::new(),
            static_synchronization: Vec::new(),
        };
        let mut barrier_executions = Vec::new();
        let mut halves = Vec::new();
        let mut calls = Vec::new();
        let mut interlocks = Vec::new();
        let mut executed = 0;
        for (thread, path) in paths.iter().enumerate() {
            for step in &path.steps {
                executed += 1;
                let base = Operation {
                    thread,
                    instruction: step.instruction,
                    execution_number: executed,
                    kind: OperationKind::Other,
                    scope: step.scope,
                    acquires: false,
                    releases: false,
                    semantics: StorageClassSet::EMPTY,
                    memory_classes: StorageClassSet::EMPTY,
                };
                let classes = step.semantics.classes;
                let order = step.semantics.order;
                // VK-AVSEM-02: the availability operation is before the instruction and after all preceding
                // ones. VK-AVSEM-06: Invocation scope performs none.
                let has_memory_operations = step.scope != Scope::Invocation;
                if step.semantics.make_available && has_memory_operations {
                    frame.operations.push(Operation {
                        kind: OperationKind::Available,
                        memory_classes: classes,
                        ..base
                    });
                }
                // VK-AV-07: operations of the device domain are like accesses of all that their masks name, in every class.
                let masked_classes = |mask: &AccessMask| {
                    if *mask == AccessMask::NONE { StorageClassSet::EMPTY } else { StorageClassSet(0b1111) }
                };
                match &step.effect {
                    // VK-SEM-04, VK-SEM-05: a read acquires, a write releases.
                    InstructionEffect::Read(touch) => {
                        frame.push_read(&base, touch, order.acquires(), classes)
                    }
                    InstructionEffect::Write(touch, node) => {
                        frame.push_write(&base, touch, order.releases(), classes, (thread, *node));
                    }
                    InstructionEffect::ReadWrite(touch, node) => {
                        frame.push_read(&base, touch, order.acquires(), classes);
                        frame.push_write(&base, touch, order.releases(), classes, (thread, *node));
                    }
                    InstructionEffect::Fence
                    | InstructionEffect::ControlBarrier { memory_barrier: true, .. }
                    | InstructionEffect::Split { memory_barrier: true, .. } => {
                        frame.operations.push(Operation {
                            kind: OperationKind::Barrier,
                            acquires: order.acquires(),
                            releases: order.releases(),
                            semantics: classes,
                            ..base
                        });
                    }
                    InstructionEffect::ControlBarrier { memory_barrier: false, .. }
                    | InstructionEffect::Split { memory_barrier: false, .. } => frame.operations.push(base),
                    InstructionEffect::Call(_) => frame.operations.push(base),
                    // VK-VOP-01 to -08: the operations of each instruction, in order.
                    InstructionEffect::DeviceAvailable(mask) => {
                        if mask.intersects(AccessMask::HOST_WRITE) {
                            let kind = OperationKind::Domain { to_host: false };
                            frame.operations.push(Operation {
                                kind,
                                memory_classes: masked_classes(mask),
                                ..base
                            });
                        }
                        let kind = OperationKind::DeviceAvailable(*mask);
                        frame.operations.push(Operation {
                            kind,
                            memory_classes: masked_classes(mask),
                            ..base
                        });
                    }
                    InstructionEffect::DeviceVisible(mask) => {
                        let kind = OperationKind::DeviceVisible(*mask);
                        frame.operations.push(Operation {
                            kind,
                            memory_classes: masked_classes(mask),
                            ..base
                        });
                        if mask.intersects(AccessMask::HOST_READ.with(AccessMask::HOST_WRITE)) {
                            let kind = OperationKind::Domain { to_host: true };
                            frame.operations.push(Operation {
                                kind,
                                memory_classes: masked_classes(mask),
                                ..base
                            });
                        }
                    }
                    InstructionEffect::Flush(names) | InstructionEffect::Invalidate(names) => {
                        let ranges = frame.ranges.len();
                        frame.ranges.push(names.iter().map(|name| test.storage_of(*name).0).collect());
                        let available = matches!(step.effect, InstructionEffect::Flush(_));
                        let kind = OperationKind::Mapped { available, ranges };
                        frame.operations.push(Operation {
                            kind,
                            memory_classes: StorageClassSet(0b1111),
                            ..base
                        });
                    }
                    InstructionEffect::Submit => {
                        let visible = OperationKind::DeviceVisible(AccessMask::MEMORY_READ);
                        for kind in [OperationKind::Domain { to_host: false }, visible] {
                            let memory = StorageClassSet(0b1111);
                            frame.operations.push(Operation { kind, memory_classes: memory, ..base });
                        }
                    }
                    // The first scope of the fence's signal holds every access of the device.
                    InstructionEffect::Wait => {
                        let kind = OperationKind::DeviceAvailable(AccessMask::MEMORY_WRITE);
                        frame.operations.push(Operation {
                            kind,
                            memory_classes: StorageClassSet(0b1111),
                            ..base
                        });
                    }
                    // VK-SW-12: FragmentInterlock scope, UniformMemory and ImageMemory; the end releases, the begin acquires.
                    InstructionEffect::Interlock(end) if profile.has_interlock() => {
                        let classes =
                            StorageClassSet::EMPTY.with(StorageClass::Buffer).with(StorageClass::Image);
                        frame.operations.push(Operation {
                            kind: OperationKind::Barrier,
                            scope: Scope::FragmentInterlock,
                            acquires: *end == InterlockEnd::Begin,
                            releases: *end == InterlockEnd::End,
                            semantics: classes,
                            ..base
                        });
                    }
                    InstructionEffect::Interlock(_) => frame.operations.push(base),
                }
                // The barrier, call or section end: availability comes before it, visibility after it.
                let operation = frame.operations.len() - 1;
                match &step.effect {
                    InstructionEffect::ControlBarrier { name, execution_scope, round, .. } => {
                        barrier_executions.push((operation, (*name, *round, *execution_scope)));
                    }
                    InstructionEffect::Split { half, execution_scope, ordinal, id, .. } => {
                        let (half, scope, ordinal) = (*half, *execution_scope, *ordinal);
                        halves.push(SplitOperation { operation, half, scope, ordinal, id: id.clone() });
                    }
                    InstructionEffect::Call(callees) => calls.push((operation, callees.clone())),
                    InstructionEffect::Interlock(end) => interlocks.push((operation, *end)),
                    _ => {}
                }
                // VK-AVSEM-04: the visibility operation is between the instruction and all following ones.
                if step.semantics.make_visible && has_memory_operations {
                    frame.operations.push(Operation {
                        kind: OperationKind::Visible,
                        memory_classes: classes,
                        ..base
                    });
                }
            }
        }
        if frame.operations.len() > 64 {
            return Err(UnsupportedTest::Operations);
        }
        frame.split_into_cells(test);
        frame.compute_orders(test);
        frame.compute_mutual_order();
        frame.static_synchronization = vec![0; frame.operations.len()];
        frame.synchronize_control_barriers(test, tangles, &barrier_executions);
        if profile.has_split_barriers() {
            frame.synchronize_split_barriers(&halves);
        }
        if profile.has_interlock() {
            frame.synchronize_interlocks(&interlocks, fragments);
        }
        if profile.has_shader_calls() {
            frame.synchronize_shader_calls(&calls);
        }
        Ok(frame)
    }

    fn push_read(&mut self, base: &Operation, touch: &Footprint, acquires: bool, semantics: StorageClassSet) {
        let memory = StorageClassSet::EMPTY.with(touch.class);
        self.reads.push(self.operations.len());
        let kind = OperationKind::Read(*touch);
        self.operations.push(Operation { kind, acquires, semantics, memory_classes: memory, ..*base });
    }

    fn push_write(
        &mut self,
        base: &Operation,
        touch: &Footprint,
        releases: bool,
        semantics: StorageClassSet,
        value: (usize, usize),
    ) {
        let memory = StorageClassSet::EMPTY.with(touch.class);
        self.writes.push((self.operations.len(), value.0, value.1));
        let kind = OperationKind::Write(*touch);
        self.operations.push(Operation { kind, releases, semantics, memory_classes: memory, ..*base });
    }

    /// Splits storages into the cells that the accesses distinguish.
    fn split_into_cells(&mut self, test: &Test) {
        let names = (0..test.locations.len()).filter(|index| test.locations[*index].noncoherent);
        self.noncoherent = names.map(|index| test.storage_of(LocationId(index as u16)).0).collect();
        let cells =
            split_cells(test, self.operations.iter().filter_map(|operation| operation.footprint().copied()));
        for operation in &mut self.operations {
            let (OperationKind::Read(touch) | OperationKind::Write(touch)) = &mut operation.kind else {
                continue;
            };
            let is_inside = |cell: &LocationCell| {
                cell.storage.0 == touch.storage
                    && touch.bytes.0 <= cell.bytes.0
                    && cell.bytes.1 <= touch.bytes.1
            };
            // The cells of a storage are adjacent and sorted, so that a range names them.
            let first = cells.iter().position(is_inside).unwrap_or_default();
            touch.cells = (first, first + cells.iter().filter(|cell| is_inside(cell)).count());
        }
        self.cells = cells;
    }

    /// VK-PO-01 to -05: the operations of a thread in the order of their execution. VK-SSW-01, VK-ITHB-07: every operation
    /// of one side before every operation of the other one, transitively.
    fn compute_orders(&mut self, test: &Test) {
        let count = self.operations.len();
        self.program_order = vec![0; count];
        self.system_sync = vec![0; count];
        let is_at_point = |operation: &Operation, side: litmus::SyncPoint| {
            operation.thread == usize::from(side.thread.0)
                && side.instruction.is_none_or(|instruction| instruction == operation.instruction)
        };
        // VK-SSW-03: host operations up to the submission precede the submitted work. The awaited work
        // precedes the wait's operation and all later host operations.
        let names = |thread: usize, ok: &dyn Fn(usize, &SystemOperation) -> bool| {
            let code = test.threads[thread].instructions.iter().enumerate();
            code.into_iter().any(|(index, instruction)| match &instruction.kind {
                InstructionKind::System(operation) => ok(index, operation),
                _ => false,
            })
        };
        let submitted = |left: &Operation, right: &Operation| {
            names(left.thread, &|index, operation| match operation {
                SystemOperation::Submit(threads) => {
                    usize::from(left.instruction) <= index
                        && threads.iter().any(|thread| usize::from(thread.0) == right.thread)
                }
                _ => false,
            })
        };
        let awaited = |left: &Operation, right: &Operation| {
            names(right.thread, &|index, operation| match operation {
                SystemOperation::Wait(threads) => {
                    index <= usize::from(right.instruction)
                        && threads.iter().any(|thread| usize::from(thread.0) == left.thread)
                }
                _ => false,
            })
        };
        for a in 0..count {
            for b in 0..count {
                let (left, right) = (&self.operations[a], &self.operations[b]);
                if left.thread == right.thread && a < b {
                    self.program_order[a] |= 1 << b;
                }
                if test
                    .system_sync
                    .iter()
                    .any(|sync| is_at_point(left, sync.from) && is_at_point(right, sync.to))
                    || submitted(left, right)
                    || awaited(left, right)
                {
                    self.system_sync[a] |= 1 << b;
                }
            }
        }
        close_transitively(&mut self.system_sync);
    }

    /// VK-PMO-01 to -04, VK-MO-01: the same memory locations, the same reference, each in the scope of the other one, and
    /// not the same operation.
    fn compute_mutual_order(&mut self) {
        let count = self.operations.len();
        self.mutually_ordered = vec![0; count];
        for a in 0..count {
            for b in 0..count {
                let (left, right) = (&self.operations[a], &self.operations[b]);
                let (Some(left_footprint), Some(there)) = (left.footprint(), right.footprint()) else {
                    continue;
                };
                if left_footprint.atomic
                    && there.atomic
                    && left_footprint.cells == there.cells
                    && left_footprint.reference == there.reference
                    && self.instances.are_in_mutual_scope(left, right)
                    && left.execution_number != right.execution_number
                {
                    self.mutually_ordered[a] |= 1 << b;
                }
            }
        }
    }

    pub fn accessed_cells(&self, operation: usize) -> std::ops::Range<usize> {
        self.operations[operation].footprint().map_or(0..0, |touch| touch.cells.0..touch.cells.1)
    }

    /// Returns true if an operation is program-ordered before another one or equals it.
    pub fn is_before_or_equal(&self, a: usize, b: usize) -> bool {
        a == b || holds(&self.program_order, a, b)
    }

    /// The release barriers or the acquire barriers.
    pub fn barriers(&self, releases: bool) -> Vec<usize> {
        let is_wanted = |operation: &Operation| {
            matches!(operation.kind, OperationKind::Barrier)
                && if releases { operation.releases } else { operation.acquires }
        };
        (0..self.operations.len()).filter(|index| is_wanted(&self.operations[*index])).collect()
    }

    /// VK-SW-09, -10, -11: A is program-ordered before or equals C, C before or equals B; A and B are in each
    /// other's memory scope and in C's execution scope.
    ///
    /// Barriers execute one dynamic instance if they have one name, equal execution counts, and one instance
    /// of their execution scope. In divergent control flow, they must also be in one tangle.
    fn synchronize_control_barriers(
        &mut self,
        test: &Test,
        tangles: &DynamicInstances,
        meetings: &[(usize, (usize, u32, Scope))],
    ) {
        let (releases, acquires) = (self.barriers(true), self.barriers(false));
        for (here, name) in meetings {
            for (there, other) in meetings {
                let (left, right) = (self.operations[*here].thread, self.operations[*there].thread);
                let barrier = (left, self.operations[*here].instruction);
                let share_instance = self.instances.includes_thread(name.2, left, right)
                    && tangles.share_instance(test, barrier, right);
                if name != other || !share_instance {
                    continue;
                }
                for a in &releases {
                    for b in &acquires {
                        if self.is_before_or_equal(*a, *here)
                            && self.is_before_or_equal(*there, *b)
                            && self.instances.are_in_mutual_scope(&self.operations[*a], &self.operations[*b])
                        {
                            self.static_synchronization[*a] |= 1 << *b;
                        }
                    }
                }
            }
        }
    }

    /// VK-SW-17 to -21: A is a release barrier that is program-ordered before or equals arrival C; wait D is program-ordered
    /// before or equals acquire barrier B; C and D have the same execution scope; A and B are in each other's memory scope,
    /// and in the instance of C's execution scope. VK-SW-22: and C and D are the n-th of their invocations, which in a subgroup
    /// are both in the tangles that execute C and D.
    fn synchronize_split_barriers(&mut self, halves: &[SplitOperation]) {
        let (releases, acquires) = (self.barriers(true), self.barriers(false));
        for c in halves.iter().filter(|half| half.half == SplitHalf::Arrive) {
            for d in halves.iter().filter(|half| half.half == SplitHalf::Wait) {
                let (around_c, around_d) =
                    (self.operations[c.operation].thread, self.operations[d.operation].thread);
                let in_tangle_of = |thread: usize, of: &SplitOperation| {
                    halves.iter().any(|own| {
                        self.operations[own.operation].thread == thread
                            && (own.half, own.scope, own.ordinal, &own.id)
                                == (of.half, of.scope, of.ordinal, &of.id)
                    })
                };
                let share_round = c.ordinal == d.ordinal
                    && (c.scope != Scope::Subgroup
                        || (in_tangle_of(around_d, c) && in_tangle_of(around_c, d)));
                if c.scope != d.scope || (self.profile.requires_same_round() && !share_round) {
                    continue;
                }
                let mut pairs = Vec::new();
                for a in &releases {
                    for b in &acquires {
                        let in_instance = |operation: usize| {
                            self.instances.includes_thread(
                                c.scope,
                                around_c,
                                self.operations[operation].thread,
                            )
                        };
                        if self.is_before_or_equal(*a, c.operation)
                            && self.is_before_or_equal(d.operation, *b)
                            && self.instances.are_in_mutual_scope(&self.operations[*a], &self.operations[*b])
                            && in_instance(*a)
                            && in_instance(*b)
                        {
                            pairs.push((*a, *b));
                        }
                    }
                }
                for (a, b) in pairs {
                    self.static_synchronization[a] |= 1 << b;
                }
            }
        }
    }

    /// VK-SW-12: an end synchronizes with a begin where the agent of the end comes first in F, the order of overlapping fragments.
    fn synchronize_interlocks(&mut self, interlocks: &[(usize, InterlockEnd)], fragments: &[usize]) {
        let first_of = |left, right| fragments.iter().find(|thread| [left, right].contains(*thread));
        for (a, first) in interlocks {
            for (b, second) in interlocks {
                let (left, right) = (self.operations[*a].thread, self.operations[*b].thread);
                if *first == InterlockEnd::End
                    && *second == InterlockEnd::Begin
                    && left != right
                    && first_of(left, right) == Some(&left)
                    && self.instances.includes_thread(Scope::FragmentInterlock, left, right)
                {
                    self.static_synchronization[*a] |= 1 << *b;
                }
            }
        }
    }

    /// VK-SCORD-01 to -04: shader-call order is program order, entry and exit, transitively. VK-SW-14: a release barrier
    /// synchronizes with an acquire barrier that comes after it in that order where they are in each other's scope.
    fn synchronize_shader_calls(&mut self, calls: &[(usize, Vec<ThreadId>)]) {
        let mut order = self.program_order.clone();
        // The call is before everything in its callees, and that before everything after the call.
        for (call, callees) in calls {
            for index in 0..self.operations.len() {
                if callees.iter().any(|callee| usize::from(callee.0) == self.operations[index].thread) {
                    order[*call] |= 1 << index;
                    order[index] |= self.program_order[*call];
                }
            }
        }
        close_transitively(&mut order);
        for a in self.barriers(true) {
            for b in self.barriers(false) {
                if holds(&order, a, b)
                    && self.instances.are_in_mutual_scope(&self.operations[a], &self.operations[b])
                {
                    self.static_synchronization[a] |= 1 << b;
                }
            }
        }
    }
}
