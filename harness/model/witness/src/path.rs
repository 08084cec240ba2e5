//! Control-flow paths of a thread, with symbolic values.

#![expect(clippy::wildcard_enum_match_arm, reason = "`check` refuses by name what it does not list")]

use std::collections::{BTreeMap, BTreeSet};

use litmus::{
    Access, AccessKind, AccessMask, ArithmeticOperation, Comparison, Compute, Flow, Instruction,
    InstructionKind, LabelId, LocationId, MemoryAccess, MemoryPlace, Observable, Operand, Performer,
    RegisterId, RmwOperation, ScalarType, Scope, Semantics, StorageClass, SystemOperation, Test, ThreadId,
    ThreadPlace, Value,
};

use crate::profile::TextProfile;
use crate::refusal::UnsupportedTest;
use crate::tangle;
use crate::thread_path::{
    BranchCondition, ExecutedInstruction, Footprint, InstructionEffect, LocationCell, NodeId,
    SubgroupExchange, ThreadPath, ValueOrigin,
};

/// The paths of a thread, and true if the loop bound ended one.
pub struct EnumeratedPaths {
    pub paths: Vec<ThreadPath>,
    pub is_truncated: bool,
}

/// Numbering of names that all threads of a test share.
pub struct NameTable {
    /// The number of the storage and of the reference of each name.
    locations: Vec<(u16, u16)>,
    /// The control barriers by instance and resource.
    barriers: Vec<(String, Option<String>)>,
}

impl NameTable {
    /// Numbers storages, references and control barriers; refuses unsupported instructions.
    pub fn new(test: &Test, profile: TextProfile) -> Result<NameTable, UnsupportedTest> {
        if test.khronos.is_some() {
            return Err(UnsupportedTest::Khronos);
        }
        // One class per name: the declared one, or the one that all accesses of the name agree on.
        let mut classes: Vec<Option<StorageClass>> =
            test.locations.iter().map(|location| location.reference.map(|r| r.storage_class())).collect();
        let mut barriers = Vec::new();
        for thread in &test.threads {
            for instruction in &thread.instructions {
                if thread.place == ThreadPlace::Host && !is_supported_on_host(&instruction.kind) {
                    return Err(UnsupportedTest::Host);
                }
                check_instruction(&instruction.kind)?;
                if let Some((location, class)) = accessed_name(&instruction.kind) {
                    let known = &mut classes[usize::from(location.0)];
                    if known.is_some_and(|known| known != class) {
                        return Err(UnsupportedTest::Classes);
                    }
                    *known = Some(class);
                }
                if let InstructionKind::ControlBarrier(barrier) = &instruction.kind {
                    let name = (barrier.id.clone(), barrier.resource.clone());
                    if !barriers.contains(&name) {
                        barriers.push(name);
                    }
                }
            }
        }
        let mut locations = Vec::new();
        for (index, location) in test.locations.iter().enumerate() {
            let id = LocationId(index as u16);
            let storage = test.storage_of(id);
            if location.is_vector() {
                return Err(UnsupportedTest::Vectors);
            }
            if location.bytes() > test.location(storage).bytes() {
                return Err(UnsupportedTest::Sizes);
            }
            locations.push((storage.0, reference_number(id, storage, classes[index], profile)));
        }
        if test.has_undefined_locations()
            && test.threads.iter().flat_map(|t| &t.instructions).any(|i| is_part(test, &i.kind))
        {
            return Err(UnsupportedTest::Sizes);
        }
        Ok(NameTable { locations, barriers })
    }
}

/// Returns true if an instruction accesses a part of a storage.
fn is_part(test: &Test, kind: &InstructionKind) -> bool {
    kind.access().is_some_and(|access| {
        let storage = test.location(test.storage_of(access.place.location));
        access.place.scalar_type(test).bytes() != storage.bytes()
    })
}

/// VK-LOC-01, VK-LOC-02: a memory location is a byte; bytes that all accesses and observed names share form a
/// cell.
///
/// Unexecuted accesses do not split cells. Only a race could distinguish their bytes, and its result is
/// undefined (VK-DR-02).
pub fn split_cells(test: &Test, touches: impl Iterator<Item = Footprint>) -> Vec<LocationCell> {
    let whole_location =
        |index: usize| (test.storage_of(LocationId(index as u16)).0, (0, test.locations[index].bytes()));
    let observed = test.observables().into_iter().filter_map(|observable| match observable {
        Observable::Location(location, _) => Some(whole_location(usize::from(location.0))),
        Observable::Register(..) => None,
    });
    let mut bounds: BTreeMap<u16, BTreeSet<u32>> = BTreeMap::new();
    for (storage, (first, end)) in observed.chain(touches.map(|touch| (touch.storage, touch.bytes))) {
        bounds.entry(storage).or_default().extend([first, end]);
    }
    let mut found = Vec::new();
    for (storage, bounds) in bounds {
        let bounds: Vec<u32> = bounds.into_iter().collect();
        for bytes in bounds.windows(2) {
            if let [first, end] = *bytes {
                found.push(LocationCell { storage: LocationId(storage), bytes: (first, end) });
            }
        }
    }
    found
}

/// VK-REF-02 and -06: every name is a separate descriptor or variable, and therefore a separate reference.
///
/// VK-REF-05: since 2024, block-decorated workgroup variables share one reference. An alias of workgroup
/// memory is always such a variable.
fn reference_number(
    id: LocationId,
    storage: LocationId,
    class: Option<StorageClass>,
    profile: TextProfile,
) -> u16 {
    let shared = class == Some(StorageClass::Workgroup) && profile.workgroup_blocks_share_a_reference();
    // Shared references are numbered after those of the names.
    if shared { storage.0 | 0x8000 } else { id.0 }
}

fn accessed_name(kind: &InstructionKind) -> Option<(LocationId, StorageClass)> {
    kind.access().map(|access| (access.place.location, access.place.class))
}

/// Returns true if the witness supports an instruction in a host thread.
fn is_supported_on_host(kind: &InstructionKind) -> bool {
    match kind {
        InstructionKind::Access(access) => !access.strength.is_atomic(),
        InstructionKind::System(_) | InstructionKind::Compute(_) => true,
        _ => false,
    }
}

/// Refuses an unsupported instruction. The supported ones are listed, so that new ones are refused.
fn check_instruction(kind: &InstructionKind) -> Result<(), UnsupportedTest> {
    match kind {
        InstructionKind::Access(access) => check_access(access)?,
        InstructionKind::ControlBarrier(barrier) if barrier.quorum.is_some() => {
            return Err(UnsupportedTest::Quorum);
        }
        InstructionKind::Compute(Compute::Move { .. } | Compute::Compare { .. })
        | InstructionKind::Flow(Flow::BranchIf { .. }) => return Err(UnsupportedTest::Hsa),
        kind => {
            let covered = matches!(
                kind,
                InstructionKind::Fence { .. }
                    | InstructionKind::ControlBarrier(_)
                    | InstructionKind::SplitBarrier(_)
                    | InstructionKind::Subgroup(_)
                    | InstructionKind::System(_)
                    | InstructionKind::ShaderCall(_)
                    | InstructionKind::Interlock(_)
                    | InstructionKind::Compute(_)
                    | InstructionKind::Flow(_)
            );
            if !covered {
                return Err(UnsupportedTest::Instruction(kind.name()));
            }
        }
    }
    let mut scopes = kind.memory_scope().into_iter().chain(kind.execution_scope());
    if scopes.any(|scope| scope == Scope::CrossDevice) { Err(UnsupportedTest::CrossDevice) } else { Ok(()) }
}

fn check_access(access: &MemoryAccess) -> Result<(), UnsupportedTest> {
    if access.performer == Performer::Cooperative {
        return Err(UnsupportedTest::Cooperative);
    }
    if access.is_vector() {
        return Err(UnsupportedTest::Vectors);
    }
    let dropped = matches!(access.kind, AccessKind::Await { .. } | AccessKind::Rmw { destination: None, .. });
    if dropped || access.place.address.is_some() {
        return Err(UnsupportedTest::Hsa);
    }
    Ok(())
}

/// A thread that is being walked.
struct ThreadPathSearch<'a> {
    test: &'a Test,
    names: &'a NameTable,
    thread: ThreadId,
    bound: u32,
    paths: Vec<ThreadPath>,
    is_truncated: bool,
}

/// State of a partial walk.
#[derive(Clone)]
struct PartialThreadPath {
    path: ThreadPath,
    next: usize,
    /// Number of backward jumps per jump instruction.
    backward_jumps: Vec<u32>,
    /// Number of executions of each control barrier.
    barrier_executions: Vec<u32>,
}

/// Returns all paths of a thread on which no jump goes backward `bound` times.
pub fn enumerate_paths(test: &Test, names: &NameTable, thread: ThreadId, bound: u32) -> EnumeratedPaths {
    let code = test.thread(thread);
    let mut path = ThreadPath::default();
    // Node `i` is the initial value of register `i`.
    for register in 0..code.registers.len() {
        path.nodes.push(ValueOrigin::Constant(test.initial_register(thread, RegisterId(register as u16))));
        path.registers.push(register);
    }
    let mut search = ThreadPathSearch { test, names, thread, bound, paths: Vec::new(), is_truncated: false };
    search.enumerate_from(PartialThreadPath {
        path,
        next: 0,
        backward_jumps: vec![0; code.instructions.len()],
        barrier_executions: vec![0; names.barriers.len()],
    });
    EnumeratedPaths { paths: search.paths, is_truncated: search.is_truncated }
}

impl ThreadPathSearch<'_> {
    fn enumerate_from(&mut self, mut walk: PartialThreadPath) {
        let test = self.test;
        let instructions = &test.thread(self.thread).instructions;
        while let Some(instruction) = instructions.get(walk.next) {
            let index = walk.next;
            walk.next += 1;
            if !matches!(instruction.kind, InstructionKind::Flow(Flow::Label(_))) {
                walk.path.history.push((index, false));
            }
            match &instruction.kind {
                InstructionKind::Flow(Flow::Label(_)) => {}
                InstructionKind::Flow(Flow::Goto(label)) => {
                    if !self.jump(&mut walk, index, *label) {
                        return;
                    }
                }
                InstructionKind::Flow(Flow::Branch { relation, left, right, target }) => {
                    // Both sides are followed; each requires its value of the condition.
                    let demand = self.branch_condition(&mut walk.path, *relation, *left, *right);
                    let mut taken = walk.clone();
                    if let Some(path) = with_condition(&taken.path, demand, true) {
                        taken.path = path;
                        // The last step of the history is this branch.
                        if let Some((_, was_taken)) = taken.path.history.last_mut() {
                            *was_taken = true;
                        }
                        if self.jump(&mut taken, index, *target) {
                            self.enumerate_from(taken);
                        }
                    }
                    match with_condition(&walk.path, demand, false) {
                        Some(path) => walk.path = path,
                        None => return,
                    }
                }
                InstructionKind::Access(MemoryAccess {
                    place,
                    kind:
                        AccessKind::Rmw {
                            destination: Some(destination),
                            operation: RmwOperation::CompareExchange { compare, unequal, .. },
                        },
                    strength: Access::Atomic { scope, .. },
                    ..
                }) => {
                    // VK-X-06: a compare-exchange that fails is an atomic read with its Unequal semantics.
                    let ty = place.scalar_type(test);
                    let number = walk.path.reads.len();
                    let compared = operand_value(&mut walk.path, *compare, ty);
                    // The next node of both continuations is the value that the access reads.
                    let demand = BranchCondition {
                        relation: Comparison::Equal,
                        left: (walk.path.nodes.len(), ty),
                        right: (compared, ty),
                        holds: true,
                    };
                    let mut failed = walk.clone();
                    failed.path.nodes.push(ValueOrigin::Read(number));
                    if let Some(mut path) = with_condition(&failed.path, demand, false) {
                        let touch = self.new_footprint(place, true, true, Some(*scope));
                        path.reads.push((touch.storage, ty));
                        path.registers[usize::from(destination.0)] =
                            self.extend_read(&mut path, demand.left.0, ty, *destination);
                        path.steps.push(ExecutedInstruction {
                            instruction: index as u16,
                            scope: *scope,
                            semantics: *unequal,
                            effect: InstructionEffect::Read(touch),
                        });
                        failed.path = path;
                        self.enumerate_from(failed);
                    }
                    walk.path.nodes.push(ValueOrigin::Read(number));
                    match with_condition(&walk.path, demand, true) {
                        Some(path) => walk.path = path,
                        None => return,
                    }
                    self.execute_instruction(&mut walk, index, instruction, Some(demand.left.0));
                }
                _ => self.execute_instruction(&mut walk, index, instruction, None),
            }
        }
        self.paths.push(walk.path);
    }

    /// Jumps; returns false if the loop bound is reached.
    fn jump(&mut self, walk: &mut PartialThreadPath, from: usize, label: LabelId) -> bool {
        let thread = self.test.thread(self.thread);
        let target = thread.label_index(label).unwrap_or(thread.instructions.len());
        if target <= from {
            walk.backward_jumps[from] += 1;
            if walk.backward_jumps[from] >= self.bound {
                self.is_truncated = true;
                return false;
            }
        }
        walk.next = target;
        true
    }

    fn branch_condition(
        &self,
        path: &mut ThreadPath,
        relation: Comparison,
        left: Operand,
        right: Operand,
    ) -> BranchCondition {
        let type_of = |operand: Operand| match operand {
            Operand::Register(register) => Some(self.test.register_type(self.thread, register)),
            Operand::Constant(_) => None,
        };
        let (left_type, right_type) = (type_of(left), type_of(right));
        // A constant has the type of the register that it is compared with.
        let left_type_used = left_type.or(right_type).unwrap_or(ScalarType::I64);
        let right_type_used = right_type.or(left_type).unwrap_or(ScalarType::I64);
        BranchCondition {
            relation,
            left: (operand_value(path, left, left_type_used), left_type_used),
            right: (operand_value(path, right, right_type_used), right_type_used),
            holds: true,
        }
    }

    fn new_footprint(
        &self,
        place: &MemoryPlace,
        atomic: bool,
        non_private: bool,
        own: Option<Scope>,
    ) -> Footprint {
        let (storage, reference) = self.names.locations[usize::from(place.location.0)];
        let bytes = (place.offset, place.offset + place.scalar_type(self.test).bytes());
        Footprint {
            storage,
            bytes,
            cells: (0, 0),
            reference,
            class: place.class,
            non_private,
            atomic,
            operation_scope: own,
        }
    }

    /// Returns the content of a register after a value of type `ty` was read into it.
    fn extend_read(
        &self,
        path: &mut ThreadPath,
        read: NodeId,
        ty: ScalarType,
        register: RegisterId,
    ) -> NodeId {
        let to = self.test.register_type(self.thread, register);
        // Only signed types that are shorter than the register are sign-extended.
        if !matches!(ty, ScalarType::I8 | ScalarType::I16 | ScalarType::I32) || to.bits() <= ty.bits() {
            return read;
        }
        // Values of at least 2^(n−1) are negative: subtract 2^n, once for each set sign bit.
        let node = |path: &mut ThreadPath, node| {
            path.nodes.push(node);
            path.nodes.len() - 1
        };
        let sign = node(path, ValueOrigin::Constant(Value(1 << (ty.bits() - 1))));
        let two = node(path, ValueOrigin::Constant(Value(2)));
        let is_set = node(path, ValueOrigin::Compute(ArithmeticOperation::And, read, sign, to));
        let excess = node(path, ValueOrigin::Compute(ArithmeticOperation::Multiply, is_set, two, to));
        node(path, ValueOrigin::Compute(ArithmeticOperation::Subtract, read, excess, to))
    }

    /// Executes an instruction that does not jump. `old` is the value that a successful compare-exchange has read.
    fn execute_instruction(
        &self,
        walk: &mut PartialThreadPath,
        index: usize,
        instruction: &Instruction,
        old: Option<NodeId>,
    ) {
        let path = &mut walk.path;
        let mut scope = Scope::Invocation;
        let mut semantics = Semantics::RELAXED;
        let access_operations = |access: &Access| match access {
            Access::Private => (false, false, None, Semantics::RELAXED),
            Access::NonPrivate => (false, true, None, Semantics::RELAXED),
            Access::Coherent { scope } => (false, true, Some(*scope), Semantics::RELAXED),
            Access::Atomic { scope, semantics } => (true, true, Some(*scope), *semantics),
        };
        let effect = match &instruction.kind {
            InstructionKind::Access(access) => {
                let (atomic, mut non_private, own, its_semantics) = access_operations(&access.strength);
                // Private and non-private are words of shaders.
                non_private |= self.test.thread(self.thread).place == ThreadPlace::Host;
                (scope, semantics) = (own.unwrap_or(scope), its_semantics);
                let touch = self.new_footprint(&access.place, atomic, non_private, own);
                let ty = access.place.scalar_type(self.test);
                match access.kind {
                    AccessKind::Load(destinations) => {
                        path.nodes.push(ValueOrigin::Read(path.reads.len()));
                        path.reads.push((touch.storage, ty));
                        let register = destinations.first();
                        let read = path.nodes.len() - 1;
                        path.registers[usize::from(register.0)] = self.extend_read(path, read, ty, register);
                        InstructionEffect::Read(touch)
                    }
                    AccessKind::Store(values) => {
                        let node = operand_value(path, values.first(), ty);
                        InstructionEffect::Write(touch, node)
                    }
                    AccessKind::Rmw { destination, operation } => {
                        // A compare-exchange that succeeds already has the node of its read.
                        let read = match old {
                            Some(node) => node,
                            None => {
                                path.nodes.push(ValueOrigin::Read(path.reads.len()));
                                path.nodes.len() - 1
                            }
                        };
                        path.reads.push((touch.storage, ty));
                        let written = match operation {
                            RmwOperation::Exchange(value) | RmwOperation::CompareExchange { value, .. } => {
                                operand_value(path, value, ty)
                            }
                            RmwOperation::Fetch(arithmetic, value) => {
                                let right = operand_value(path, value, ty);
                                path.nodes.push(ValueOrigin::Compute(arithmetic, read, right, ty));
                                path.nodes.len() - 1
                            }
                        };
                        if let Some(destination) = destination {
                            path.registers[usize::from(destination.0)] =
                                self.extend_read(path, read, ty, destination);
                        }
                        InstructionEffect::ReadWrite(touch, written)
                    }
                    // Refused before.
                    AccessKind::Await { .. } => return,
                }
            }
            InstructionKind::Fence { scope: its_scope, semantics: its_semantics } => {
                (scope, semantics) = (*its_scope, *its_semantics);
                InstructionEffect::Fence
            }
            InstructionKind::ControlBarrier(barrier) => {
                scope = barrier.memory_scope;
                semantics = barrier.semantics.unwrap_or(Semantics::RELAXED);
                let name = (barrier.id.clone(), barrier.resource.clone());
                let name = self.names.barriers.iter().position(|known| *known == name).unwrap_or_default();
                // The n-th execution of a barrier meets the n-th of the other threads.
                let round = walk.barrier_executions[name];
                walk.barrier_executions[name] += 1;
                InstructionEffect::ControlBarrier {
                    name,
                    execution_scope: barrier.execution_scope,
                    memory_barrier: barrier.semantics.is_some(),
                    round,
                }
            }
            InstructionKind::SplitBarrier(barrier) => {
                scope = barrier.memory_scope;
                semantics = barrier.semantics.unwrap_or(Semantics::RELAXED);
                let (half, execution_scope) = (barrier.half, barrier.execution_scope);
                let is_same_half = |step: &ExecutedInstruction| {
                    matches!(&step.effect, InstructionEffect::Split { half: other, execution_scope: scope, .. }
                        if (*other, *scope) == (half, execution_scope))
                };
                let ordinal = path.steps.iter().filter(|step| is_same_half(step)).count();
                let memory_barrier = barrier.semantics.is_some();
                InstructionEffect::Split {
                    half,
                    execution_scope,
                    memory_barrier,
                    ordinal,
                    id: barrier.id.clone(),
                }
            }
            InstructionKind::Subgroup(operation) => {
                let operand_node =
                    tangle::operand(&instruction.kind).map(|value| operand_value(path, value, tangle::WORD));
                path.nodes.push(ValueOrigin::ExchangeResult(path.exchanges.len()));
                if let Some(destination) = operation.destination {
                    path.registers[usize::from(destination.0)] = path.nodes.len() - 1;
                }
                let name = operation.id.clone();
                path.exchanges.push(SubgroupExchange { name, kind: operation.kind, operand: operand_node });
                return;
            }
            InstructionKind::System(SystemOperation::AvailableToDevice) => {
                InstructionEffect::DeviceAvailable(AccessMask::MEMORY_WRITE)
            }
            InstructionKind::System(SystemOperation::VisibleFromDevice) => {
                InstructionEffect::DeviceVisible(AccessMask::MEMORY_READ)
            }
            InstructionKind::System(SystemOperation::Available(mask)) => {
                InstructionEffect::DeviceAvailable(*mask)
            }
            InstructionKind::System(SystemOperation::Visible(mask)) => {
                InstructionEffect::DeviceVisible(*mask)
            }
            InstructionKind::System(SystemOperation::Flush(names)) => InstructionEffect::Flush(names.clone()),
            InstructionKind::System(SystemOperation::Invalidate(names)) => {
                InstructionEffect::Invalidate(names.clone())
            }
            InstructionKind::System(SystemOperation::Submit(_)) => InstructionEffect::Submit,
            InstructionKind::System(SystemOperation::Wait(_)) => InstructionEffect::Wait,
            InstructionKind::ShaderCall(threads) => InstructionEffect::Call(threads.clone()),
            InstructionKind::Interlock(interlock) => InstructionEffect::Interlock(interlock.end),
            InstructionKind::Compute(Compute::Arithmetic { destination, operation, left, right }) => {
                let ty = self.test.register_type(self.thread, *destination);
                let (left, right) = (operand_value(path, *left, ty), operand_value(path, *right, ty));
                path.nodes.push(ValueOrigin::Compute(*operation, left, right, ty));
                path.registers[usize::from(destination.0)] = path.nodes.len() - 1;
                return;
            }
            // Refused before, or handled by the caller.
            _ => return,
        };
        path.steps.push(ExecutedInstruction { instruction: index as u16, scope, semantics, effect });
    }
}

/// The value of an operand that is used as a value of type `ty`.
fn operand_value(path: &mut ThreadPath, operand: Operand, ty: ScalarType) -> NodeId {
    let node = match operand {
        Operand::Constant(constant) => ValueOrigin::Constant(Value::from_constant(constant, ty)),
        Operand::Register(register) => ValueOrigin::Truncate(path.registers[usize::from(register.0)], ty),
    };
    path.nodes.push(node);
    path.nodes.len() - 1
}

/// Returns the path with an additional condition; `None` if known values contradict it.
fn with_condition(path: &ThreadPath, demand: BranchCondition, holds: bool) -> Option<ThreadPath> {
    let demand = BranchCondition { holds, ..demand };
    if crate::values::is_condition_met(path, &demand, &[]) == Some(false) {
        return None;
    }
    let mut path = path.clone();
    path.conditions.push(demand);
    Some(path)
}
