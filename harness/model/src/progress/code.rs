//! The code of each thread as the progress checker runs it: steps, jumps with their targets, and which registers matter
//! where.

#![deny(clippy::wildcard_enum_match_arm)]

use litmus::{
    ArithmeticOperation, BranchRelation, Compute, ControlBarrier, Flow, InstructionKind, LocationId,
    MemoryAccess, Operand, RegisterId, RmwOperation, ScalarType, Scope, Semantics, StorageClass,
    SystemOperation, Test, ThreadId, Value,
};

use super::ProgressError;
use super::split::{Half, Rounds};

/// The program: an operation for each instruction, so that indices are those of the test.
pub(super) struct Code {
    pub(super) threads: Vec<ThreadCode>,
    /// What each storage holds at first; aliases share one.
    pub(super) initial: Vec<u64>,
    /// Bit t is set where thread t accesses the storage.
    pub(super) users: Vec<u32>,
    /// The storage class of each storage.
    pub(super) classes: Vec<StorageClass>,
    pub(super) barriers: Vec<Barrier>,
    /// Who waits for whose arrivals at split barriers.
    pub(super) rounds: Rounds,
    /// Threads whose begin waits for the end of others; `(from, from's instruction, to, to's instruction)`.
    pub(super) syncs: Vec<(usize, Option<u16>, usize, Option<u16>)>,
}

/// A thread.
pub(super) struct ThreadCode {
    pub(super) operations: Vec<Operation>,
    /// What the registers hold at first.
    pub(super) registers: Vec<u64>,
    /// For each instruction the registers whose value may still matter there: bit r for register r below 64.
    live: Vec<u64>,
}

/// Threads that wait for one another.
pub(super) struct Barrier {
    /// Bit t is set where thread t has such a barrier.
    pub(super) members: u32,
    /// The largest quorum of a named barrier that has one.
    pub(super) quorum: Option<u32>,
}

/// The threads in a scope of a thread, itself included: bit t for thread t.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Within(pub(super) u32);

impl Within {
    /// Whether a thread is among them.
    pub(super) fn has(self, thread: usize) -> bool {
        self.0.checked_shr(thread as u32).is_some_and(|bits| bits & 1 != 0)
    }
}

/// An operand with its type settled.
#[derive(Clone, Copy, Debug)]
pub(super) enum Source {
    Constant(u64),
    Register(u16),
}

/// What an instruction does.
#[derive(Clone, Debug)]
pub(super) enum Operation {
    Nothing,
    Jump(usize),
    Branch {
        relation: BranchRelation,
        left: Source,
        right: Source,
        scalar: ScalarType,
        target: usize,
    },
    BranchIf {
        condition: u16,
        target: usize,
    },
    Compare {
        destination: u16,
        relation: BranchRelation,
        left: Source,
        right: Source,
    },
    Move {
        destination: u16,
        value: Source,
    },
    Arithmetic {
        destination: u16,
        operation: ArithmeticOperation,
        left: Source,
        right: Source,
        scalar: ScalarType,
    },
    Fence {
        within: Within,
        semantics: Semantics,
    },
    Access(AccessOperation),
    Barrier {
        barrier: usize,
        quorum: Option<u32>,
        within: Within,
        semantics: Option<Semantics>,
    },
    Split {
        half: Half,
        within: Within,
        semantics: Semantics,
    },
}

/// An access to memory.
#[derive(Clone, Debug)]
pub(super) struct AccessOperation {
    pub(super) storage: usize,
    /// Bits to the right of the accessed part.
    pub(super) shift: u32,
    pub(super) scalar: ScalarType,
    pub(super) kind: AccessKind,
    /// Where the value read goes.
    pub(super) destination: Option<u16>,
    pub(super) within: Within,
    pub(super) semantics: Semantics,
    /// Semantics where a compare-exchange fails.
    pub(super) unequal: Semantics,
}

/// What an access does to memory.
#[derive(Clone, Copy, Debug)]
pub(super) enum AccessKind {
    Load,
    /// A load that is repeated until it reads this.
    Await(Source),
    Store(Source),
    Exchange(Source),
    Fetch(ArithmeticOperation, Source),
    CompareExchange {
        compare: Source,
        value: Source,
    },
}

impl AccessOperation {
    /// The accessed part of what a storage holds.
    pub(super) fn part(&self, whole: u64) -> u64 {
        Value(whole.checked_shr(self.shift).unwrap_or(0)).truncate(self.scalar).0
    }

    /// What a storage holds after `value` was written to the accessed part.
    pub(super) fn replaced(&self, whole: u64, value: u64) -> u64 {
        let mask = Value(u64::MAX).truncate(self.scalar).0;
        whole & !(mask << self.shift) | ((value & mask) << self.shift)
    }
}

/// Bound on threads.
pub(super) const MAX_THREADS: usize = 32;
/// Local instructions between two steps at most.
const MAX_LOCAL: usize = 100_000;

impl Code {
    pub(super) fn of(test: &Test) -> Result<Code, ProgressError> {
        if test.threads.len() > MAX_THREADS {
            return Err(ProgressError::TooManyThreads { threads: test.threads.len(), bound: MAX_THREADS });
        }
        if test.locations.iter().any(litmus::Location::is_vector) {
            return Err(ProgressError::Unsupported { what: "vectors" });
        }
        if test.has_undefined() {
            return Err(ProgressError::Unsupported { what: "undefined initial values" });
        }
        // They wait for their tangles, which are a choice of each execution.
        if test.has_blocks() && !test.has_subgroup_operations() {
            return Err(ProgressError::Unsupported { what: "barriers of a subgroup under branches" });
        }
        let mut builder = Builder { test, barriers: Vec::new(), keys: Vec::new() };
        let threads = (0..test.threads.len())
            .map(|thread| builder.thread(ThreadId(thread as u16)))
            .collect::<Result<Vec<_>, _>>()?;
        let count = test.locations.len();
        let initial = (0..count).map(|l| test.initial_value(LocationId(l as u16), 0).0).collect();
        let (mut users, mut classes) = (vec![0; count], vec![StorageClass::Buffer; count]);
        for (index, thread) in test.threads.iter().enumerate() {
            for instruction in &thread.instructions {
                if let Some(access) = instruction.kind.access() {
                    let storage = usize::from(test.storage_of(access.place.location).0);
                    users[storage] |= 1 << index;
                    classes[storage] = access.place.class;
                }
            }
        }
        let syncs = test
            .system_sync
            .iter()
            .filter(|sync| sync.from.thread != sync.to.thread && test.orders_events(sync))
            .map(|sync| {
                let (from, to) = (usize::from(sync.from.thread.0), usize::from(sync.to.thread.0));
                (from, sync.from.instruction, to, sync.to.instruction)
            })
            .collect();
        let (barriers, rounds) = (builder.barriers, Rounds::of(test));
        Ok(Code { threads, initial, users, classes, barriers, rounds, syncs })
    }
}

/// What makes two control barriers one: name or id, and for unnamed ones the group that executes them.
#[derive(PartialEq, Eq)]
enum Key {
    Named(String),
    Unnamed { id: String, scope: Scope, within: Within },
}

struct Builder<'a> {
    test: &'a Test,
    barriers: Vec<Barrier>,
    keys: Vec<Key>,
}

impl Builder<'_> {
    fn thread(&mut self, thread: ThreadId) -> Result<ThreadCode, ProgressError> {
        let instructions = &self.test.thread(thread).instructions;
        let operations = instructions
            .iter()
            .map(|instruction| self.operation(thread, &instruction.kind))
            .collect::<Result<Vec<_>, _>>()?;
        let registers = (0..self.test.thread(thread).registers.len())
            .map(|r| self.test.initial_register(thread, RegisterId(r as u16)).0)
            .collect();
        let live = live(&operations);
        Ok(ThreadCode { operations, registers, live })
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "what is not listed is refused by name")]
    fn operation(&mut self, thread: ThreadId, kind: &InstructionKind) -> Result<Operation, ProgressError> {
        let position = |label| {
            let instructions = &self.test.thread(thread).instructions;
            let label = InstructionKind::Flow(Flow::Label(label));
            let internal = ProgressError::Internal { what: "a jump to a label that stands nowhere" };
            instructions.iter().position(|instruction| instruction.kind == label).ok_or(internal)
        };
        Ok(match kind {
            InstructionKind::Flow(Flow::Label(_))
            | InstructionKind::System(SystemOperation::AvailableToDevice)
            | InstructionKind::System(SystemOperation::VisibleFromDevice) => Operation::Nothing,
            InstructionKind::Fence { scope, semantics } => {
                Operation::Fence { within: self.within(thread, *scope)?, semantics: *semantics }
            }
            InstructionKind::Flow(Flow::Goto(target)) => Operation::Jump(position(*target)?),
            InstructionKind::Flow(Flow::Branch { relation, left, right, target }) => {
                let (left_type, right_type) =
                    (self.operand_type(thread, *left), self.operand_type(thread, *right));
                let scalar = if right_type.bits() > left_type.bits() { right_type } else { left_type };
                Operation::Branch {
                    relation: *relation,
                    left: source(*left, scalar),
                    right: source(*right, scalar),
                    scalar,
                    target: position(*target)?,
                }
            }
            InstructionKind::Flow(Flow::BranchIf { condition, target }) => {
                Operation::BranchIf { condition: condition.0, target: position(*target)? }
            }
            InstructionKind::Compute(Compute::Compare { destination, relation, left, right }) => {
                Operation::Compare {
                    destination: destination.0,
                    relation: *relation,
                    left: source(*left, ScalarType::default()),
                    right: source(*right, ScalarType::default()),
                }
            }
            InstructionKind::Compute(Compute::Move { destination, value }) => {
                Operation::Move { destination: destination.0, value: source(*value, ScalarType::default()) }
            }
            InstructionKind::Compute(Compute::Arithmetic { destination, operation, left, right }) => {
                let scalar = self.test.register_type(thread, *destination);
                Operation::Arithmetic {
                    destination: destination.0,
                    operation: *operation,
                    left: source(*left, scalar),
                    right: source(*right, scalar),
                    scalar,
                }
            }
            InstructionKind::ControlBarrier(barrier) => self.barrier(thread, barrier)?,
            InstructionKind::SplitBarrier(barrier) => Operation::Split {
                half: Half::of(barrier),
                within: self.within(thread, barrier.memory_scope)?,
                semantics: barrier.semantics.unwrap_or(Semantics::RELAXED),
            },
            InstructionKind::Access(access) => Operation::Access(self.access(thread, access)?),
            foreign => {
                return Err(ProgressError::Unsupported { what: foreign.name() });
            }
        })
    }

    /// The threads that share an instance of `scope` with a thread, and the thread.
    fn within(&self, thread: ThreadId, scope: Scope) -> Result<Within, ProgressError> {
        if let Scope::ShaderCall | Scope::FragmentInterlock = scope {
            let what = "scopes of shader calls and interlocked sections";
            return Err(ProgressError::Unsupported { what });
        }
        let place = self.test.thread(thread).place;
        let mut within = Within(1 << thread.0);
        for (index, other) in self.test.threads.iter().enumerate() {
            // A host is in no scope but the widest.
            if place.shares(other.place, scope) || scope == Scope::CrossDevice {
                within.0 |= 1 << index;
            }
        }
        Ok(within)
    }

    fn access(&self, thread: ThreadId, access: &MemoryAccess) -> Result<AccessOperation, ProgressError> {
        if access.is_vector() {
            return Err(ProgressError::Unsupported { what: "vectors" });
        }
        let scalar = access.place.scalar_type(self.test);
        let kind = match access.kind {
            litmus::AccessKind::Load(_) => AccessKind::Load,
            litmus::AccessKind::Await { value, .. } => AccessKind::Await(source(value, scalar)),
            litmus::AccessKind::Store(values) => AccessKind::Store(source(values.first(), scalar)),
            litmus::AccessKind::Rmw { operation, .. } => match operation {
                RmwOperation::Exchange(value) => AccessKind::Exchange(source(value, scalar)),
                RmwOperation::Fetch(operation, value) => AccessKind::Fetch(operation, source(value, scalar)),
                RmwOperation::CompareExchange { compare, value, .. } => AccessKind::CompareExchange {
                    compare: source(compare, scalar),
                    value: source(value, scalar),
                },
            },
        };
        let unequal = match access.kind {
            litmus::AccessKind::Rmw { operation: RmwOperation::CompareExchange { unequal, .. }, .. } => {
                unequal
            }
            litmus::AccessKind::Load(_)
            | litmus::AccessKind::Store(_)
            | litmus::AccessKind::Rmw { .. }
            | litmus::AccessKind::Await { .. } => Semantics::RELAXED,
        };
        Ok(AccessOperation {
            storage: usize::from(self.test.storage_of(access.place.location).0),
            shift: access.place.offset * 8,
            scalar,
            kind,
            destination: access.destinations().next().map(|register| register.0),
            // A plain access orders nothing.
            within: self.within(thread, access.strength.scope().unwrap_or(Scope::Invocation))?,
            semantics: access.semantics(),
            unequal,
        })
    }

    fn barrier(&mut self, thread: ThreadId, barrier: &ControlBarrier) -> Result<Operation, ProgressError> {
        if !barrier.id.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(ProgressError::ComputedBarrier { id: barrier.id.clone() });
        }
        let index = usize::from(thread.0);
        let own = 1_u32 << index;
        let key = match &barrier.resource {
            Some(resource) => Key::Named(resource.clone()),
            None => Key::Unnamed {
                id: barrier.id.clone(),
                scope: barrier.execution_scope,
                within: self.within(thread, barrier.execution_scope)?,
            },
        };
        let place = self.keys.iter().position(|known| *known == key).unwrap_or_else(|| {
            self.keys.push(key);
            self.barriers.push(Barrier { members: 0, quorum: None });
            self.keys.len() - 1
        });
        let found = &mut self.barriers[place];
        found.members |= own;
        found.quorum = found.quorum.max(barrier.quorum);
        Ok(Operation::Barrier {
            barrier: place,
            quorum: barrier.quorum,
            within: self.within(thread, barrier.memory_scope)?,
            semantics: barrier.semantics,
        })
    }

    fn operand_type(&self, thread: ThreadId, operand: Operand) -> ScalarType {
        match operand {
            Operand::Constant(_) => ScalarType::default(),
            Operand::Register(register) => self.test.register_type(thread, register),
        }
    }
}

fn source(operand: Operand, scalar: ScalarType) -> Source {
    match operand {
        Operand::Constant(constant) => Source::Constant(Value::from_constant(constant, scalar).0),
        Operand::Register(register) => Source::Register(register.0),
    }
}

/// The value of an operand.
pub(super) fn value(registers: &[u64], source: Source, scalar: ScalarType) -> u64 {
    match source {
        Source::Constant(constant) => constant,
        Source::Register(register) => Value(registers[usize::from(register)]).truncate(scalar).0,
    }
}

fn bit(register: u16) -> u64 {
    1_u64.checked_shl(u32::from(register)).unwrap_or(0)
}

fn bits(sources: &[Source]) -> u64 {
    sources.iter().fold(0, |all, source| match source {
        Source::Constant(_) => all,
        Source::Register(register) => all | bit(*register),
    })
}

/// Backward data flow: a register matters where it may still reach a branch, memory or a barrier. A counter that nobody
/// tests would make the graph infinite.
fn live(operations: &[Operation]) -> Vec<u64> {
    let end = operations.len();
    let mut live = vec![0_u64; end + 1];
    loop {
        let mut changed = false;
        for at in (0..end).rev() {
            let next = live[at + 1];
            let now = match &operations[at] {
                Operation::Nothing
                | Operation::Fence { .. }
                | Operation::Barrier { .. }
                | Operation::Split { .. } => next,
                Operation::Jump(target) => live[*target],
                Operation::Branch { left, right, target, .. } => {
                    next | live[*target] | bits(&[*left, *right])
                }
                Operation::BranchIf { condition, target } => next | live[*target] | bit(*condition),
                Operation::Compare { destination, left, right, .. } => {
                    assigned(next, *destination, bits(&[*left, *right]))
                }
                Operation::Move { destination, value } => assigned(next, *destination, bits(&[*value])),
                Operation::Arithmetic { destination, left, right, .. } => {
                    assigned(next, *destination, bits(&[*left, *right]))
                }
                Operation::Access(access) => {
                    let after = access.destination.map_or(next, |destination| next & !bit(destination));
                    after
                        | match access.kind {
                            AccessKind::Load => 0,
                            AccessKind::Await(source)
                            | AccessKind::Store(source)
                            | AccessKind::Exchange(source)
                            | AccessKind::Fetch(_, source) => bits(&[source]),
                            AccessKind::CompareExchange { compare, value } => bits(&[compare, value]),
                        }
                }
            };
            if now != live[at] {
                live[at] = now;
                changed = true;
            }
        }
        if !changed {
            return live;
        }
    }
}

/// What is live before an assignment: its operands only where the result is.
fn assigned(next: u64, destination: u16, operands: u64) -> u64 {
    let wanted = next & bit(destination) != 0 || destination >= 64;
    next & !bit(destination) | if wanted { operands } else { 0 }
}

/// Where a thread comes to after its local instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reached {
    /// A step, or the end.
    Instruction(usize),
    /// A cycle without any step, around this instruction.
    Spin(usize),
}

impl ThreadCode {
    /// Runs local instructions from `at` on; `fence` is told of memory barriers on the way.
    pub(super) fn settle(
        &self,
        mut at: usize,
        registers: &mut [u64],
        mut waits: impl FnMut(usize) -> bool,
        mut fence: impl FnMut(Within, Semantics),
    ) -> Result<Reached, ProgressError> {
        let mut seen: Vec<(usize, Vec<u64>)> = Vec::new();
        let mut count = 0;
        let reached = loop {
            let Some(operation) = self.operations.get(at) else { break Reached::Instruction(at) };
            if waits(at) {
                break Reached::Instruction(at);
            }
            let jumped_from = at;
            at += 1;
            match operation {
                Operation::Access(_) | Operation::Barrier { .. } | Operation::Split { .. } => {
                    break Reached::Instruction(at - 1);
                }
                Operation::Nothing => {}
                Operation::Fence { within, semantics } => fence(*within, *semantics),
                Operation::Jump(target) => at = *target,
                Operation::Branch { relation, left, right, scalar, target } => {
                    let signed = |source| Value(value(registers, source, *scalar)).signed(*scalar);
                    if relation.holds(signed(*left), signed(*right)) {
                        at = *target;
                    }
                }
                Operation::BranchIf { condition, target } => {
                    if registers[usize::from(*condition)] != 0 {
                        at = *target;
                    }
                }
                Operation::Compare { destination, relation, left, right } => {
                    let unsigned = |source| value(registers, source, ScalarType::default()) as i64;
                    registers[usize::from(*destination)] =
                        u64::from(relation.holds(unsigned(*left), unsigned(*right)));
                }
                Operation::Move { destination, value: moved } => {
                    registers[usize::from(*destination)] = value(registers, *moved, ScalarType::default());
                }
                Operation::Arithmetic { destination, operation, left, right, scalar } => {
                    let (left, right) = (value(registers, *left, *scalar), value(registers, *right, *scalar));
                    registers[usize::from(*destination)] =
                        operation.apply(Value(left), Value(right), *scalar).0;
                }
            }
            if at <= jumped_from {
                self.forget(at, registers);
                let here = (at, registers.to_vec());
                if seen.contains(&here) {
                    return Ok(Reached::Spin(jumped_from));
                }
                seen.push(here);
            }
            count += 1;
            if count > MAX_LOCAL {
                return Err(ProgressError::LongLocalLoop { bound: MAX_LOCAL });
            }
        };
        let Reached::Instruction(end) = reached else { return Ok(reached) };
        self.forget(end, registers);
        Ok(reached)
    }

    /// Whether the loop from `target` to the jump at `at` does the same each time as long as it reads the same: it only
    /// reads, its jumps leave it, and nothing that it assigns matters to the next iteration.
    pub(super) fn repeats_itself(&self, target: usize, at: usize) -> bool {
        let mut assigned = 0;
        for (index, operation) in self.operations.iter().enumerate().take(at + 1).skip(target) {
            match operation {
                Operation::Nothing => {}
                Operation::Jump(to)
                | Operation::Branch { target: to, .. }
                | Operation::BranchIf { target: to, .. } => {
                    if index != at && (target..=at).contains(to) {
                        return false;
                    }
                }
                Operation::Compare { destination, .. }
                | Operation::Move { destination, .. }
                | Operation::Arithmetic { destination, .. } => assigned |= bit(*destination),
                Operation::Access(access) => {
                    if !matches!(access.kind, AccessKind::Load) {
                        return false;
                    }
                    assigned |= access.destination.map_or(0, bit);
                }
                Operation::Fence { .. } | Operation::Barrier { .. } | Operation::Split { .. } => {
                    return false;
                }
            }
        }
        self.registers.len() <= 64 && self.live[target] & assigned == 0
    }

    /// Drops the registers that no longer matter.
    fn forget(&self, at: usize, registers: &mut [u64]) {
        let live = self.live.get(at).copied().unwrap_or(0);
        for (index, register) in registers.iter_mut().enumerate().take(64) {
            if live & (1 << index) == 0 {
                *register = 0;
            }
        }
    }
}
