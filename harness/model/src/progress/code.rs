//! Compiles threads for the progress checker: steps, resolved jump targets and live registers.
//!
//! Clearing dead registers (`liveness`) keeps the state graph finite for counters that no branch tests.

#![deny(clippy::wildcard_enum_match_arm)]

use litmus::{
    AccessKind, Compute, ControlBarrier, Flow, InstructionKind, LocationId, MemoryAccess, RegisterId,
    ScalarType, Scope, Semantics, StorageClass, SystemOperation, Test, ThreadId, Value,
};

use super::ProgressError;
use super::split_barrier::{BarrierHalf, SplitBarrierRounds};
use crate::liveness::strongly_live_registers;
use crate::registers::{execute_compute, jump_target, label_position, takes_jump};

/// The program: an operation for each instruction, so that indices are those of the test.
pub(super) struct ProgressCode {
    pub(super) threads: Vec<CompiledThread>,
    /// Initial value of each storage; aliases share one storage.
    pub(super) initial: Vec<u64>,
    /// Bit t is set where thread t accesses the storage.
    pub(super) accessing_threads: Vec<u32>,
    pub(super) storage_classes: Vec<StorageClass>,
    pub(super) barriers: Vec<BarrierMembers>,
    /// Sets of threads that synchronize at split barriers.
    pub(super) split_barriers: SplitBarrierRounds,
    /// Threads whose start waits for the end of others: `(from, from's instruction, to, to's instruction)`.
    pub(super) thread_syncs: Vec<(usize, Option<u16>, usize, Option<u16>)>,
}

pub(super) struct CompiledThread {
    pub(super) operations: Vec<ProgressOperation>,
    /// Initial values of the registers.
    pub(super) registers: Vec<u64>,
    types: Vec<ScalarType>,
    /// Live registers before each instruction and at the end: bit r for register r below 64.
    live: Vec<u64>,
}

/// Threads that wait for one another.
pub(super) struct BarrierMembers {
    /// Bit t is set where thread t has such a barrier.
    pub(super) members: u32,
    /// The largest quorum of a named barrier that has one.
    pub(super) quorum: Option<u32>,
}

/// The threads in a scope of a thread, itself included: bit t for thread t.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ThreadMask(pub(super) u32);

impl ThreadMask {
    /// Returns true if a thread is among them.
    pub(super) fn has_thread(self, thread: usize) -> bool {
        self.0.checked_shr(thread as u32).is_some_and(|bits| bits & 1 != 0)
    }
}

#[derive(Clone, Debug)]
pub(super) enum ProgressOperation {
    NoOperation,
    /// A jump to an instruction, if its condition holds.
    Jump {
        flow: Flow,
        target: usize,
    },
    Compute(Compute),
    Fence {
        scope_threads: ThreadMask,
        semantics: Semantics,
    },
    Access(AccessOperation),
    Barrier {
        barrier: usize,
        quorum: Option<u32>,
        scope_threads: ThreadMask,
        semantics: Option<Semantics>,
    },
    SplitBarrier {
        half: BarrierHalf,
        scope_threads: ThreadMask,
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
    /// Destination register of the value read.
    pub(super) destination: Option<u16>,
    /// The type of that register, or of the access without one.
    pub(super) register_type: ScalarType,
    pub(super) scope_threads: ThreadMask,
    pub(super) semantics: Semantics,
    /// Semantics of a compare-exchange that fails.
    pub(super) unequal: Option<Semantics>,
}

impl AccessOperation {
    /// The accessed part of a storage's contents.
    pub(super) fn extract_part(&self, contents: u64) -> u64 {
        Value(contents.checked_shr(self.shift).unwrap_or(0)).truncate_to(self.scalar).0
    }

    /// Returns the storage's value after `value` is written to the accessed part.
    pub(super) fn replace_part(&self, contents: u64, value: u64) -> u64 {
        let mask = Value(u64::MAX).truncate_to(self.scalar).0;
        contents & !(mask << self.shift) | ((value & mask) << self.shift)
    }
}

pub(super) const MAX_THREADS: usize = 32;
/// Bound on local instructions between two steps.
const MAX_LOCAL_INSTRUCTIONS: usize = 100_000;

impl ProgressCode {
    /// Compiles a test; `observes_registers` keeps their final values.
    pub(super) fn from_test(test: &Test, observes_registers: bool) -> Result<ProgressCode, ProgressError> {
        if test.threads.len() > MAX_THREADS {
            return Err(ProgressError::TooManyThreads { threads: test.threads.len(), bound: MAX_THREADS });
        }
        if test.locations.iter().any(litmus::Location::is_vector) {
            return Err(ProgressError::Unsupported { what: "vectors" });
        }
        if test.has_undefined_locations() {
            return Err(ProgressError::Unsupported { what: "undefined initial values" });
        }
        // They wait for their tangles, which are a choice of each execution.
        // Subgroup operations are refused by name, at their instruction.
        if test.has_guarded_blocks() && !test.has_subgroup_operations() {
            return Err(ProgressError::Unsupported { what: "barriers of a subgroup under branches" });
        }
        let mut builder =
            ProgressCodeBuilder { test, observes_registers, barriers: Vec::new(), keys: Vec::new() };
        let threads = (0..test.threads.len())
            .map(|thread| builder.compile_thread(ThreadId(thread as u16)))
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
        // Within one thread, program order suffices.
        let syncs = test
            .system_sync
            .iter()
            .filter(|sync| sync.from.thread != sync.to.thread && test.orders_events(sync))
            .map(|sync| {
                let (from, to) = (usize::from(sync.from.thread.0), usize::from(sync.to.thread.0));
                (from, sync.from.instruction, to, sync.to.instruction)
            })
            .collect();
        let (barriers, rounds) = (builder.barriers, SplitBarrierRounds::from_test(test));
        Ok(ProgressCode {
            threads,
            initial,
            accessing_threads: users,
            storage_classes: classes,
            barriers,
            split_barriers: rounds,
            thread_syncs: syncs,
        })
    }
}

/// Identity of a control barrier: its instance and resource, and the group of threads that execute it.
#[derive(PartialEq, Eq)]
struct BarrierKey {
    id: String,
    resource: Option<String>,
    scope: Scope,
    scope_threads: ThreadMask,
}

struct ProgressCodeBuilder<'a> {
    test: &'a Test,
    observes_registers: bool,
    barriers: Vec<BarrierMembers>,
    keys: Vec<BarrierKey>,
}

impl ProgressCodeBuilder<'_> {
    fn compile_thread(&mut self, thread: ThreadId) -> Result<CompiledThread, ProgressError> {
        let instructions = &self.test.thread(thread).instructions;
        let operations = instructions
            .iter()
            .map(|instruction| self.compile_operation(thread, &instruction.kind))
            .collect::<Result<Vec<_>, _>>()?;
        let ids = || (0..self.test.thread(thread).registers.len()).map(|r| RegisterId(r as u16));
        let registers = ids().map(|register| self.test.initial_register(thread, register).0).collect();
        let types = ids().map(|register| self.test.register_type(thread, register)).collect();
        let observed = vec![self.observes_registers; self.test.thread(thread).registers.len()];
        let to_bits = |live: Vec<bool>| {
            let numbers = (0..).zip(live).filter(|(_, is_live)| *is_live);
            numbers.fold(0, |bits, (register, _)| bits | register_bit(register))
        };
        let live = strongly_live_registers(instructions, &observed);
        let live = live.into_iter().chain([observed]).map(to_bits).collect();
        Ok(CompiledThread { operations, registers, types, live })
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "what is not listed is refused by name")]
    fn compile_operation(
        &mut self,
        thread: ThreadId,
        kind: &InstructionKind,
    ) -> Result<ProgressOperation, ProgressError> {
        Ok(match kind {
            InstructionKind::System(
                SystemOperation::AvailableToDevice | SystemOperation::VisibleFromDevice,
            ) => ProgressOperation::NoOperation,
            InstructionKind::Fence { scope, semantics } => ProgressOperation::Fence {
                scope_threads: self.scope_members(thread, *scope)?,
                semantics: *semantics,
            },
            InstructionKind::Flow(flow) => match jump_target(flow) {
                None => ProgressOperation::NoOperation,
                Some(label) => {
                    let target = label_position(&self.test.thread(thread).instructions, label);
                    let internal = ProgressError::Internal { what: "a jump to an undefined label" };
                    ProgressOperation::Jump { flow: flow.clone(), target: target.ok_or(internal)? }
                }
            },
            InstructionKind::Compute(compute) => ProgressOperation::Compute(compute.clone()),
            InstructionKind::ControlBarrier(barrier) => self.compile_barrier(thread, barrier)?,
            InstructionKind::SplitBarrier(barrier) => ProgressOperation::SplitBarrier {
                half: BarrierHalf::from_barrier(barrier),
                scope_threads: self.scope_members(thread, barrier.memory_scope)?,
                semantics: barrier.semantics.unwrap_or(Semantics::RELAXED),
            },
            InstructionKind::Access(access) => {
                ProgressOperation::Access(self.compile_access(thread, access)?)
            }
            unsupported => {
                return Err(ProgressError::Unsupported { what: unsupported.name() });
            }
        })
    }

    /// The threads that share an instance of `scope` with a thread, and the thread.
    fn scope_members(&self, thread: ThreadId, scope: Scope) -> Result<ThreadMask, ProgressError> {
        if let Scope::ShaderCall | Scope::FragmentInterlock = scope {
            let what = "scopes of shader calls and interlocked sections";
            return Err(ProgressError::Unsupported { what });
        }
        let place = self.test.thread(thread).place;
        let mut members = ThreadMask(1 << thread.0);
        for (index, other) in self.test.threads.iter().enumerate() {
            // A host is only in the widest scope.
            if place.shares_scope(other.place, scope) || scope == Scope::CrossDevice {
                members.0 |= 1 << index;
            }
        }
        Ok(members)
    }

    fn compile_access(
        &self,
        thread: ThreadId,
        access: &MemoryAccess,
    ) -> Result<AccessOperation, ProgressError> {
        if access.is_vector() {
            return Err(ProgressError::Unsupported { what: "vectors" });
        }
        let scalar = access.place.scalar_type(self.test);
        Ok(AccessOperation {
            storage: usize::from(self.test.storage_of(access.place.location).0),
            shift: access.place.offset * 8,
            scalar,
            kind: access.kind,
            destination: access.destinations().next().map(|register| register.0),
            register_type: access
                .destinations()
                .next()
                .map_or(scalar, |register| self.test.register_type(thread, register)),
            // A plain access orders nothing.
            scope_threads: self
                .scope_members(thread, access.strength.scope().unwrap_or(Scope::Invocation))?,
            semantics: access.semantics(),
            unequal: access.unequal_semantics(),
        })
    }

    fn compile_barrier(
        &mut self,
        thread: ThreadId,
        barrier: &ControlBarrier,
    ) -> Result<ProgressOperation, ProgressError> {
        if !barrier.id.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(ProgressError::ComputedBarrier { id: barrier.id.clone() });
        }
        let index = usize::from(thread.0);
        let thread_bit = 1_u32 << index;
        let key = BarrierKey {
            id: barrier.id.clone(),
            resource: barrier.resource.clone(),
            scope: barrier.execution_scope,
            scope_threads: self.scope_members(thread, barrier.execution_scope)?,
        };
        // Instructions of several threads that name one barrier share an entry.
        let key_index = self.keys.iter().position(|known| *known == key).unwrap_or_else(|| {
            self.keys.push(key);
            self.barriers.push(BarrierMembers { members: 0, quorum: None });
            self.keys.len() - 1
        });
        let found = &mut self.barriers[key_index];
        found.members |= thread_bit;
        found.quorum = found.quorum.max(barrier.quorum);
        Ok(ProgressOperation::Barrier {
            barrier: key_index,
            quorum: barrier.quorum,
            scope_threads: self.scope_members(thread, barrier.memory_scope)?,
            semantics: barrier.semantics,
        })
    }
}

fn register_bit(register: u16) -> u64 {
    1_u64.checked_shl(u32::from(register)).unwrap_or(0)
}

/// End of a run of local instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LocalRunEnd {
    /// A step, or the end.
    Instruction(usize),
    /// A cycle without any step, around this instruction.
    Spin(usize),
}

impl CompiledThread {
    fn type_of(&self, register: RegisterId) -> ScalarType {
        self.types[usize::from(register.0)]
    }

    /// Runs local instructions from `at`; `fence` receives their memory barriers.
    pub(super) fn run_local_instructions(
        &self,
        mut at: usize,
        registers: &mut [u64],
        mut is_gated: impl FnMut(usize) -> bool,
        mut fence: impl FnMut(ThreadMask, Semantics),
    ) -> Result<LocalRunEnd, ProgressError> {
        let mut visited: Vec<(usize, Vec<u64>)> = Vec::new();
        let mut count = 0;
        let run_end = loop {
            let Some(operation) = self.operations.get(at) else { break LocalRunEnd::Instruction(at) };
            if is_gated(at) {
                break LocalRunEnd::Instruction(at);
            }
            let jumped_from = at;
            at += 1;
            match operation {
                ProgressOperation::Access(_)
                | ProgressOperation::Barrier { .. }
                | ProgressOperation::SplitBarrier { .. } => {
                    break LocalRunEnd::Instruction(at - 1);
                }
                ProgressOperation::NoOperation => {}
                ProgressOperation::Fence { scope_threads: within, semantics } => fence(*within, *semantics),
                ProgressOperation::Jump { flow, target } => {
                    if takes_jump(flow, registers, |register| self.type_of(register)) {
                        at = *target;
                    }
                }
                ProgressOperation::Compute(compute) => {
                    execute_compute(compute, registers, |register| self.type_of(register));
                }
            }
            // Every cycle of local instructions contains a backward jump, so states are compared
            // there alone.
            if at <= jumped_from {
                // A counter that nothing tests must not make two iterations differ.
                self.clear_dead_registers(at, registers);
                let state = (at, registers.to_vec());
                if visited.contains(&state) {
                    return Ok(LocalRunEnd::Spin(jumped_from));
                }
                visited.push(state);
            }
            count += 1;
            if count > MAX_LOCAL_INSTRUCTIONS {
                return Err(ProgressError::LongLocalLoop { bound: MAX_LOCAL_INSTRUCTIONS });
            }
        };
        let LocalRunEnd::Instruction(end) = run_end else { return Ok(run_end) };
        self.clear_dead_registers(end, registers);
        Ok(run_end)
    }

    /// Returns true if the loop from `target` to the jump at `at` does the same each time as long as it reads
    /// the same: it only reads, its jumps leave it, and nothing that it assigns matters to the next
    /// iteration.
    pub(super) fn is_idempotent_loop(&self, target: usize, at: usize) -> bool {
        let mut assigned = 0;
        for (index, operation) in self.operations.iter().enumerate().take(at + 1).skip(target) {
            match operation {
                ProgressOperation::NoOperation => {}
                ProgressOperation::Jump { target: to, .. } => {
                    if index != at && (target..=at).contains(to) {
                        return false;
                    }
                }
                ProgressOperation::Compute(
                    Compute::Compare { destination, .. }
                    | Compute::Move { destination, .. }
                    | Compute::Arithmetic { destination, .. },
                ) => assigned |= register_bit(destination.0),
                ProgressOperation::Access(access) => {
                    if !matches!(access.kind, AccessKind::Load(_)) {
                        return false;
                    }
                    assigned |= access.destination.map_or(0, register_bit);
                }
                ProgressOperation::Fence { .. }
                | ProgressOperation::Barrier { .. }
                | ProgressOperation::SplitBarrier { .. } => {
                    return false;
                }
            }
        }
        self.registers.len() <= 64 && self.live[target] & assigned == 0
    }

    /// Drops the registers that no longer matter.
    fn clear_dead_registers(&self, at: usize, registers: &mut [u64]) {
        let live = self.live.get(at).copied().unwrap_or(0);
        for (index, register) in registers.iter_mut().enumerate().take(64) {
            if live & (1 << index) == 0 {
                *register = 0;
            }
        }
    }
}
