//! The outcomes of sequential consistency and of serial orders, by running the program step by step.
//!
//! This shares nothing with the axiomatic engine: what is *weak* and what is *interleaved* is measured against it, and the
//! cat file `sc` is tested against it.

use std::collections::HashSet;

use litmus::{
    ArithmeticOperation, InstructionKind, InterlockEnd, LabelId, LocationId, Observable, Operand, Outcome,
    Place, RegisterId, RmwOperation, ScalarType, Scope, SystemOperation, Test, ThreadId, Value,
};

use crate::cells::Extent;

use crate::search::Deadline;

/// How threads take turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turns {
    /// Any thread, one memory access at a time; control barriers block until all have arrived.
    Interleaved,
    /// Whole threads one after the other; control barriers are passed at once.
    Serial,
}

/// The outcomes of all runs that end, and whether all runs were tried.
pub(crate) fn outcomes(
    test: &Test,
    turns: Turns,
    unroll: u32,
    deadline: Deadline,
) -> (HashSet<Outcome>, bool) {
    let machine = Machine::new(test, turns, unroll);
    let mut outcomes = HashSet::new();
    let mut seen = HashSet::new();
    let mut open = vec![machine.initial()];
    let mut complete = true;
    while let Some(state) = open.pop() {
        if seen.len() % 1024 == 0 && deadline.passed() || seen.len() > MAX_STATES {
            complete = false;
            break;
        }
        let mut moved = false;
        for thread in 0..test.threads.len() {
            if let Some(next) = machine.turn(&state, thread) {
                moved = true;
                // A path that takes a back-jump once too often never ends.
                if !next.stuck && seen.insert(next.clone()) {
                    open.push(next);
                }
            }
        }
        if !moved && state.threads.iter().all(|thread| thread.done) {
            outcomes.insert(machine.outcome(&state));
        }
    }
    (outcomes, complete)
}

/// Bound on the states visited.
const MAX_STATES: usize = 1_000_000;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    threads: Vec<ThreadState>,
    memory: Vec<Value>,
    stuck: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct ThreadState {
    at: usize,
    registers: Vec<Value>,
    jumps: Vec<u8>,
    /// Control barriers reached so far, by instruction.
    reached: Vec<u16>,
    done: bool,
}

/// The lowest bytes of a word.
fn low_bytes(bytes: u32) -> u64 {
    if bytes < 8 { (1 << (8 * bytes)) - 1 } else { u64::MAX }
}

struct Machine<'a> {
    test: &'a Test,
    turns: Turns,
    unroll: u32,
    observables: Vec<Observable>,
}

impl<'a> Machine<'a> {
    fn new(test: &'a Test, turns: Turns, unroll: u32) -> Machine<'a> {
        Machine { test, turns, unroll, observables: test.observables() }
    }

    fn initial(&self) -> State {
        let threads = self
            .test
            .threads
            .iter()
            .enumerate()
            .map(|(index, thread)| ThreadState {
                at: 0,
                registers: (0..thread.registers.len())
                    .map(|r| self.test.initial_register(ThreadId(index as u16), RegisterId(r as u16)))
                    .collect(),
                jumps: vec![0; thread.instructions.len()],
                reached: Vec::new(),
                done: false,
            })
            .collect();
        let memory = (0..self.test.locations.len())
            .map(|location| self.test.initial_value(LocationId(location as u16)))
            .collect();
        let mut state = State { threads, memory, stuck: false };
        for thread in 0..state.threads.len() {
            self.settle(&mut state, thread);
        }
        state
    }

    /// One move of a thread, or a whole thread's run; `None` where it cannot move.
    fn turn(&self, state: &State, thread: usize) -> Option<State> {
        if state.threads[thread].done || !self.may_start(state, thread) {
            return None;
        }
        let mut next = state.clone();
        match self.turns {
            Turns::Interleaved => {
                self.step(&mut next, thread).then_some(())?;
                self.settle(&mut next, thread);
            }
            Turns::Serial => {
                let mut moved = false;
                while !next.threads[thread].done && !next.stuck {
                    if !self.step(&mut next, thread) {
                        // It goes on when what it waits for is done.
                        return moved.then_some(next);
                    }
                    moved = true;
                    self.settle(&mut next, thread);
                }
            }
        }
        Some(next)
    }

    /// Whether everything that must come before the thread's next instruction is done.
    fn may_start(&self, state: &State, thread: usize) -> bool {
        self.is_started(state, thread)
            && self.test.system_sync.iter().all(|sync| {
                let here = usize::from(sync.to.thread.0) == thread
                    && sync.from.thread != sync.to.thread
                    && sync.to.instruction.is_none_or(|i| {
                        usize::from(i) == state.threads[thread].at || self.turns == Turns::Serial
                    });
                let other = &state.threads[usize::from(sync.from.thread.0)];
                !here || other.done || sync.from.instruction.is_some_and(|i| other.at > usize::from(i))
            })
    }

    /// Whether the submission or shader call of the thread has come, where it has one.
    fn is_started(&self, state: &State, thread: usize) -> bool {
        let names = |threads: &[ThreadId]| threads.iter().any(|other| usize::from(other.0) == thread);
        self.test.threads.iter().zip(&state.threads).all(|(other, progress)| {
            other.instructions.iter().enumerate().all(|(index, instruction)| match &instruction.kind {
                InstructionKind::System(SystemOperation::Submit(threads)) if names(threads) => {
                    progress.done || progress.at > index
                }
                InstructionKind::ShaderCall(threads) if names(threads) => {
                    progress.done || progress.at >= index
                }
                _ => true,
            })
        })
    }

    /// Runs what touches no memory: labels, jumps, arithmetic, memory barriers.
    fn settle(&self, state: &mut State, thread: usize) {
        loop {
            let instructions = &self.test.threads[thread].instructions;
            let at = state.threads[thread].at;
            let Some(instruction) = instructions.get(at) else {
                state.threads[thread].done = true;
                return;
            };
            match &instruction.kind {
                InstructionKind::Load { .. }
                | InstructionKind::Store { .. }
                | InstructionKind::Rmw { .. }
                | InstructionKind::Update { .. }
                | InstructionKind::Await { .. }
                | InstructionKind::Addressed { .. } => return,
                InstructionKind::Move { destination, value } => {
                    let value = self.value(state, thread, *value, ScalarType::default());
                    state.threads[thread].registers[usize::from(destination.0)] = value;
                    state.threads[thread].at += 1;
                }
                InstructionKind::Compare { destination, relation, left, right } => {
                    let scalar = ScalarType::default();
                    let unsigned = |operand| self.value(state, thread, operand, scalar).0 as i64;
                    let holds = relation.holds(unsigned(*left), unsigned(*right));
                    state.threads[thread].registers[usize::from(destination.0)] = Value(u64::from(holds));
                    state.threads[thread].at += 1;
                }
                InstructionKind::BranchIf { condition, target } => {
                    if state.threads[thread].registers[usize::from(condition.0)] != Value(0) {
                        self.jump(state, thread, *target);
                    } else {
                        state.threads[thread].at += 1;
                    }
                }
                InstructionKind::ControlBarrier(_) => {
                    let reached = &mut state.threads[thread].reached;
                    if !reached.contains(&(at as u16)) {
                        reached.push(at as u16);
                    }
                    if self.turns == Turns::Interleaved {
                        return;
                    }
                    state.threads[thread].at += 1;
                }
                InstructionKind::Fence { .. }
                | InstructionKind::AvailableToDevice
                | InstructionKind::VisibleFromDevice
                | InstructionKind::System(_)
                | InstructionKind::ShaderCall(_)
                | InstructionKind::Interlock(_)
                | InstructionKind::Label(_) => {
                    if self.waits(state, thread, at) {
                        return;
                    }
                    // What is ordered after another thread's instruction waits for it.
                    if self.gated(thread, at) && self.turns == Turns::Interleaved {
                        return;
                    }
                    state.threads[thread].at += 1;
                }
                InstructionKind::Arithmetic { destination, operation, left, right } => {
                    let scalar = self.test.register_type(ThreadId(thread as u16), *destination);
                    let left = self.value(state, thread, *left, scalar);
                    let right = self.value(state, thread, *right, scalar);
                    state.threads[thread].registers[usize::from(destination.0)] =
                        operation.apply(left, right, scalar);
                    state.threads[thread].at += 1;
                }
                InstructionKind::Goto(target) => self.jump(state, thread, *target),
                InstructionKind::Branch { relation, left, right, target } => {
                    let scalar = self.comparison_type(thread, *left, *right);
                    let left = self.value(state, thread, *left, scalar).signed(scalar);
                    let right = self.value(state, thread, *right, scalar).signed(scalar);
                    if relation.holds(left, right) {
                        self.jump(state, thread, *target);
                    } else {
                        state.threads[thread].at += 1;
                    }
                }
            }
            if state.stuck {
                return;
            }
        }
    }

    fn gated(&self, thread: usize, at: usize) -> bool {
        self.test
            .system_sync
            .iter()
            .any(|sync| usize::from(sync.to.thread.0) == thread && sync.to.instruction == Some(at as u16))
    }

    fn comparison_type(&self, thread: usize, left: Operand, right: Operand) -> ScalarType {
        let ty = |operand| match operand {
            Operand::Constant(_) => ScalarType::default(),
            Operand::Register(register) => self.test.register_type(ThreadId(thread as u16), register),
        };
        let (left, right) = (ty(left), ty(right));
        if right.bits() > left.bits() { right } else { left }
    }

    fn jump(&self, state: &mut State, thread: usize, target: LabelId) {
        let instructions = &self.test.threads[thread].instructions;
        let position = instructions.iter().position(|i| i.kind == InstructionKind::Label(target));
        let state_of = &mut state.threads[thread];
        let at = state_of.at;
        let Some(position) = position else {
            state.stuck = true;
            return;
        };
        if position <= at {
            state_of.jumps[at] = state_of.jumps[at].saturating_add(1);
            if u32::from(state_of.jumps[at]) >= self.unroll {
                state.stuck = true;
                return;
            }
        }
        state_of.at = position;
    }

    /// Executes the memory access or control barrier that the thread stands at; false where it must wait.
    fn step(&self, state: &mut State, thread: usize) -> bool {
        let at = state.threads[thread].at;
        let Some(instruction) = self.test.threads[thread].instructions.get(at) else { return false };
        match instruction.kind.without_address() {
            InstructionKind::Await { destination, location, value, .. } => {
                let seen = state.memory[self.storage(*location)];
                if seen != self.value(state, thread, *value, self.test.location(*location).scalar_type()) {
                    return false;
                }
                state.threads[thread].registers[usize::from(destination.0)] = seen;
            }
            InstructionKind::Update { location, operation, operand, .. } => {
                let scalar = self.test.location(*location).scalar_type();
                let operand = self.value(state, thread, *operand, scalar);
                let storage = self.storage(*location);
                state.memory[storage] = operation.apply(state.memory[storage], operand, scalar);
            }
            InstructionKind::Load { destination, location, offset, scalar, .. } => {
                let extent = Extent::new(self.test, *location, *offset, *scalar);
                state.threads[thread].registers[usize::from(destination.0)] = self.read(state, extent);
            }
            InstructionKind::Store { location, offset, scalar, value, .. } => {
                let extent = Extent::new(self.test, *location, *offset, *scalar);
                let scalar = scalar.unwrap_or(self.test.location(*location).scalar_type());
                let value = self.value(state, thread, *value, scalar);
                self.write(state, extent, value);
            }
            InstructionKind::Rmw { destination, location, offset, scalar, operation, .. } => {
                let extent = Extent::new(self.test, *location, *offset, *scalar);
                let scalar = scalar.unwrap_or(self.test.location(*location).scalar_type());
                let old = self.read(state, extent);
                let new = match operation {
                    RmwOperation::Exchange(operand) => Some(self.value(state, thread, *operand, scalar)),
                    RmwOperation::Fetch(operation, operand) => {
                        let operand = self.value(state, thread, *operand, scalar);
                        Some(ArithmeticOperation::apply(*operation, old, operand, scalar))
                    }
                    RmwOperation::CompareExchange { compare, value, .. } => {
                        let compare = self.value(state, thread, *compare, scalar);
                        (compare == old).then(|| self.value(state, thread, *value, scalar))
                    }
                };
                if let Some(new) = new {
                    self.write(state, extent, new);
                }
                state.threads[thread].registers[usize::from(destination.0)] = old;
            }
            InstructionKind::ControlBarrier(_) if !self.passes(state, thread, at) => return false,
            _ if self.waits(state, thread, at) => return false,
            _ => {}
        }
        state.threads[thread].at += 1;
        true
    }

    /// Whether everyone whom a control barrier waits for has arrived.
    fn passes(&self, state: &State, thread: usize, at: usize) -> bool {
        let InstructionKind::ControlBarrier(barrier) = &self.test.threads[thread].instructions[at].kind
        else {
            return true;
        };
        let mut arrived = 0;
        let mut missing = false;
        for (other, other_thread) in self.test.threads.iter().enumerate() {
            for (index, instruction) in other_thread.instructions.iter().enumerate() {
                let InstructionKind::ControlBarrier(candidate) = &instruction.kind else { continue };
                let same = match (&barrier.resource, &candidate.resource) {
                    (None, None) => barrier.id == candidate.id,
                    (Some(left), Some(right)) => left == right,
                    _ => false,
                };
                if same
                    && barrier.execution_scope == candidate.execution_scope
                    && self.together(thread, other, barrier.execution_scope)
                {
                    if state.threads[other].reached.contains(&(index as u16)) {
                        arrived += 1;
                    } else {
                        missing = true;
                    }
                }
            }
        }
        match barrier.quorum {
            Some(quorum) => arrived >= quorum,
            None => !missing,
        }
    }

    fn together(&self, left: usize, right: usize, scope: Scope) -> bool {
        let (Place::Device(left), Place::Device(right)) =
            (self.test.threads[left].place, self.test.threads[right].place)
        else {
            return false;
        };
        match scope {
            Scope::Invocation => false,
            Scope::Subgroup => left == right,
            Scope::Workgroup => left.queue_family == right.queue_family && left.workgroup == right.workgroup,
            Scope::QueueFamily => left.queue_family == right.queue_family,
            // No control barrier has such an execution scope.
            Scope::ShaderCall | Scope::FragmentInterlock => false,
            Scope::Device | Scope::CrossDevice => true,
        }
    }

    fn read(&self, state: &State, extent: Extent) -> Value {
        let word = state.memory[usize::from(extent.storage.0)].0 >> (8 * extent.offset);
        Value(word & low_bytes(extent.bytes))
    }

    fn write(&self, state: &mut State, extent: Extent, value: Value) {
        let word = &mut state.memory[usize::from(extent.storage.0)].0;
        let kept = !(low_bytes(extent.bytes) << (8 * extent.offset));
        *word = (*word & kept) | (value.0 << (8 * extent.offset));
    }

    /// Whether a wait, a shader call or an interlocked section has to wait for other threads.
    fn waits(&self, state: &State, thread: usize, at: usize) -> bool {
        let done = |other: &ThreadId| state.threads[usize::from(other.0)].done;
        match &self.test.threads[thread].instructions[at].kind {
            InstructionKind::System(SystemOperation::Wait(threads))
            | InstructionKind::ShaderCall(threads) => !threads.iter().all(done),
            InstructionKind::Interlock(interlock) if interlock.end == InterlockEnd::Begin => {
                // Sections of earlier columns come first.
                self.test.threads[..thread].iter().zip(&state.threads).any(|(other, progress)| {
                    let last = other.instructions.iter().rposition(|instruction| {
                        matches!(&instruction.kind, InstructionKind::Interlock(end)
                            if end.end == InterlockEnd::End && end.section == interlock.section)
                    });
                    last.is_some_and(|last| !progress.done && progress.at <= last)
                })
            }
            _ => false,
        }
    }

    fn storage(&self, location: LocationId) -> usize {
        usize::from(self.test.storage_of(location).0)
    }

    fn value(&self, state: &State, thread: usize, operand: Operand, scalar: ScalarType) -> Value {
        match operand {
            Operand::Constant(constant) => Value::from_constant(constant, scalar),
            Operand::Register(register) => {
                state.threads[thread].registers[usize::from(register.0)].truncate(scalar)
            }
        }
    }

    fn outcome(&self, state: &State) -> Outcome {
        Outcome(
            self.observables
                .iter()
                .map(|observable| match observable {
                    Observable::Register(thread, register) => {
                        state.threads[usize::from(thread.0)].registers[usize::from(register.0)]
                    }
                    Observable::Location(location) => {
                        self.read(state, Extent::new(self.test, *location, 0, None))
                    }
                })
                .collect(),
        )
    }
}
