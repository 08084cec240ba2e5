//! Operational semantics of a program: the enabled steps of each thread in a state. Memory is a type
//! parameter.

use std::hash::Hash;

use litmus::{AccessKind, Semantics, SplitHalf, Value};

use super::ProgressError;
use super::code::{AccessOperation, LocalRunEnd, ProgressCode, ProgressOperation, ThreadMask};
use super::guarantee::ThreadStatus;
use super::split_barrier::{ArrivalCounts, BarrierHalf};
use crate::registers::operand_value;

/// Memory as a machine sees it. Without histories, only accesses change it.
pub(super) trait MemoryState: Clone + Eq + Hash {
    /// Every possible result of an access.
    fn perform_access(
        &self,
        code: &ProgressCode,
        thread: usize,
        access: &AccessOperation,
        registers: &[u64],
    ) -> Vec<AccessEffect<Self>>;

    fn perform_fence(&mut self, _: &ProgressCode, _thread: usize, _within: ThreadMask, _: Semantics) {}

    /// The arrivals that leave a control barrier together.
    fn synchronize_barrier(&mut self, _: &ProgressCode, _arrivals: &[(usize, ThreadMask, Semantics)]) {}

    /// An arrival at a split barrier.
    fn arrive_at_split(
        &mut self,
        _: &ProgressCode,
        _thread: usize,
        _: BarrierHalf,
        _within: ThreadMask,
        _: Semantics,
    ) {
    }

    /// Ends a wait. `arrived` lists the awaited threads; true marks those that have arrived once more since.
    fn wait_at_split(
        &mut self,
        _: &ProgressCode,
        _thread: usize,
        _: BarrierHalf,
        _acquires: (ThreadMask, Semantics),
        _arrived: &[(usize, bool)],
    ) {
    }

    /// Every access of `from` is before every access of `to`.
    fn order_after(&mut self, _from: usize, _to: usize) {}

    /// A thread has ended.
    fn end_thread(&mut self, _: &ProgressCode, _thread: usize) {}

    /// Returns true if a bound has removed behaviour on the path to this state.
    fn is_truncated(&self) -> bool {
        false
    }
}

/// A possible effect of an access.
pub(super) struct AccessEffect<M> {
    pub(super) memory: M,
    pub(super) read: Option<u64>,
    pub(super) written: Option<u64>,
    /// True if it reads a write that is not the newest, or writes before it.
    pub(super) is_stale: bool,
}

/// Memory under sequential consistency: a value per storage.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct FlatMemory(pub(super) Vec<u64>);

impl MemoryState for FlatMemory {
    fn perform_access(
        &self,
        _: &ProgressCode,
        _: usize,
        access: &AccessOperation,
        registers: &[u64],
    ) -> Vec<AccessEffect<FlatMemory>> {
        let contents = self.0[access.storage];
        let old = access.extract_part(contents);
        let written = written_value(access, old, registers);
        let mut memory = self.clone();
        if let Some(written) = written {
            memory.0[access.storage] = access.replace_part(contents, written);
        }
        let read = is_read(access).then_some(old);
        vec![AccessEffect { memory, read, written, is_stale: false }]
    }
}

/// Returns true if an access reads.
pub(super) fn is_read(access: &AccessOperation) -> bool {
    !matches!(access.kind, AccessKind::Store(_))
}

/// Returns the written value of an access that reads `old`.
pub(super) fn written_value(access: &AccessOperation, old: u64, registers: &[u64]) -> Option<u64> {
    crate::registers::written_value(access.kind, Value(old), registers, access.scalar).map(|value| value.0)
}

#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct MachineState<M> {
    threads: Vec<MachineThread>,
    /// Arrivals at each barrier with a quorum, up to the quorum.
    quorum_arrivals: Vec<u32>,
    /// Arrivals at split barriers.
    split_arrivals: ArrivalCounts,
    pub(super) memory: M,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct MachineThread {
    instruction: usize,
    phase: ThreadPhase,
    started: bool,
    registers: Vec<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum ThreadPhase {
    /// Before a step.
    Ready,
    /// In a control barrier.
    Waiting,
    /// In a cycle that has no step.
    Spinning,
    Done,
}

/// A step from one state to another.
pub(super) struct EnabledStep<M> {
    pub(super) thread: usize,
    pub(super) instruction: usize,
    pub(super) read: Option<u64>,
    pub(super) written: Option<u64>,
    /// The accessed storage, and true if the access is not to its newest write.
    pub(super) accessed: Option<(usize, bool)>,
    pub(super) state: MachineState<M>,
}

/// The transition system of a program.
pub(super) struct ProgressMachine<'a> {
    pub(super) code: &'a ProgressCode,
}

impl ProgressMachine<'_> {
    pub(super) fn initial_state<M: MemoryState>(&self, memory: M) -> Result<MachineState<M>, ProgressError> {
        let threads = self
            .code
            .threads
            .iter()
            .map(|thread| MachineThread {
                instruction: 0,
                phase: ThreadPhase::Ready,
                started: false,
                registers: thread.registers.clone(),
            })
            .collect();
        let (arrived, arrivals) = (vec![0; self.code.barriers.len()], vec![[0; 2]; self.code.threads.len()]);
        let mut state = MachineState { threads, quorum_arrivals: arrived, split_arrivals: arrivals, memory };
        for thread in 0..self.code.threads.len() {
            if !self.is_gated(&state, thread, None) {
                self.run_to_next_step(&mut state, thread, false)?;
            }
        }
        Ok(state)
    }

    /// Returns true if a thread still waits for another one to end or to pass an instruction: at its begin
    /// (`None`) or before one instruction.
    fn is_gated<M>(&self, state: &MachineState<M>, thread: usize, at: Option<usize>) -> bool {
        self.code.thread_syncs.iter().any(|(from, passed, to, gate)| {
            let other = &state.threads[*from];
            *to == thread
                && gate.map(usize::from) == at
                && other.phase != ThreadPhase::Done
                && passed.is_none_or(|passed| other.instruction <= usize::from(passed))
        })
    }

    /// Runs a thread up to its next step. If `is_gate_open`, the gate at its current instruction is already
    /// satisfied.
    fn run_to_next_step<M: MemoryState>(
        &self,
        state: &mut MachineState<M>,
        thread: usize,
        mut is_gate_open: bool,
    ) -> Result<(), ProgressError> {
        let code = &self.code.threads[thread];
        // Gates depend on other threads, which do not move while this one executes local
        // instructions.
        let gates: Vec<usize> =
            (0..code.operations.len()).filter(|at| self.is_gated(state, thread, Some(*at))).collect();
        let MachineState { threads, memory, .. } = state;
        let thread_state = &mut threads[thread];
        let from = thread_state.instruction;
        let end = code.run_local_instructions(
            from,
            &mut thread_state.registers,
            |at| {
                let first = std::mem::take(&mut is_gate_open);
                !(first && at == from) && gates.contains(&at)
            },
            |within, semantics| memory.perform_fence(self.code, thread, within, semantics),
        )?;
        match end {
            LocalRunEnd::Instruction(at) => {
                thread_state.instruction = at;
                if at >= code.operations.len() {
                    thread_state.phase = ThreadPhase::Done;
                    memory.end_thread(self.code, thread);
                    for (from, _, to, gate) in &self.code.thread_syncs {
                        if *from == thread && gate.is_none() {
                            memory.order_after(thread, *to);
                        }
                    }
                }
            }
            LocalRunEnd::Spin(at) => {
                thread_state.instruction = at;
                thread_state.phase = ThreadPhase::Spinning;
                thread_state.registers.fill(0);
            }
        }
        Ok(())
    }

    /// Returns true if a thread is at a wait whose round is incomplete.
    fn waits_for_arrivals<M>(&self, state: &MachineState<M>, thread: usize) -> bool {
        let instruction = state.threads[thread].instruction;
        match self.code.threads[thread].operations.get(instruction) {
            Some(ProgressOperation::SplitBarrier { half, .. }) if half.half == SplitHalf::Wait => {
                !self.code.split_barriers.have_all_arrived(&state.split_arrivals, thread, *half)
            }
            _ => false,
        }
    }

    pub(super) fn thread_status<M>(&self, state: &MachineState<M>, thread: usize) -> ThreadStatus {
        let thread_state = &state.threads[thread];
        let schedulable = match thread_state.phase {
            ThreadPhase::Ready => {
                !(self.is_gated(state, thread, None)
                    || self.is_gated(state, thread, Some(thread_state.instruction))
                    || self.waits_for_arrivals(state, thread))
            }
            ThreadPhase::Spinning => true,
            ThreadPhase::Waiting | ThreadPhase::Done => false,
        };
        ThreadStatus {
            ended: thread_state.phase == ThreadPhase::Done,
            started: thread_state.started,
            schedulable,
        }
    }

    /// Returns true if a thread has ended.
    pub(super) fn has_ended<M>(&self, state: &MachineState<M>, thread: usize) -> bool {
        state.threads[thread].phase == ThreadPhase::Done
    }

    /// Returns the value of a register, or of the storage of a name.
    #[cfg(feature = "testing")]
    pub(super) fn observed_value(
        &self,
        test: &litmus::Test,
        state: &MachineState<FlatMemory>,
        observable: litmus::Observable,
    ) -> Value {
        Value(match observable {
            litmus::Observable::Register(thread, register) => {
                state.threads[usize::from(thread.0)].registers[usize::from(register.0)]
            }
            litmus::Observable::Location(name, _) => state.memory.0[usize::from(test.storage_of(name).0)],
        })
    }

    pub(super) fn program_counter<M>(&self, state: &MachineState<M>, thread: usize) -> usize {
        state.threads[thread].instruction
    }

    pub(super) fn enabled_steps<M: MemoryState>(
        &self,
        state: &MachineState<M>,
    ) -> Result<Vec<EnabledStep<M>>, ProgressError> {
        let mut steps = Vec::new();
        for thread in 0..state.threads.len() {
            if self.thread_status(state, thread).schedulable {
                self.execute_step(state, thread, &mut steps)?;
            }
        }
        Ok(steps)
    }

    fn execute_step<M: MemoryState>(
        &self,
        state: &MachineState<M>,
        thread: usize,
        steps: &mut Vec<EnabledStep<M>>,
    ) -> Result<(), ProgressError> {
        let thread_state = &state.threads[thread];
        let instruction = thread_state.instruction;
        let mut started_state = state.clone();
        started_state.threads[thread].started = true;
        let step_without_access =
            |state| EnabledStep { thread, instruction, read: None, written: None, accessed: None, state };
        // A thread in a loop without memory accesses is schedulable for ever: a step from the state
        // to itself.
        if thread_state.phase == ThreadPhase::Spinning {
            steps.push(step_without_access(started_state));
            return Ok(());
        }
        match self.code.threads[thread].operations.get(instruction) {
            Some(ProgressOperation::Access(access)) => {
                for effect in state.memory.perform_access(self.code, thread, access, &thread_state.registers)
                {
                    let mut next = started_state.clone();
                    next.memory = effect.memory;
                    // A failed attempt of an await is a step that leaves the thread where it is.
                    // Under weak memory its view may advance.
                    let must_wait = match access.kind {
                        AccessKind::Await { value, .. } => {
                            let expected = operand_value(&thread_state.registers, value, access.scalar);
                            effect.read != Some(expected.0)
                        }
                        _ => false,
                    };
                    if !must_wait {
                        let moved = &mut next.threads[thread];
                        moved.instruction += 1;
                        if let (Some(destination), Some(read)) = (access.destination, effect.read) {
                            let read = Value(read).extend(access.scalar, access.register_type);
                            moved.registers[usize::from(destination)] = read.0;
                        }
                        self.run_to_next_step(&mut next, thread, false)?;
                    }
                    steps.push(EnabledStep {
                        thread,
                        instruction,
                        read: effect.read,
                        written: effect.written,
                        accessed: Some((access.storage, effect.is_stale)),
                        state: next,
                    });
                }
            }
            Some(ProgressOperation::Barrier { barrier, .. }) => {
                started_state.threads[thread].phase = ThreadPhase::Waiting;
                self.arrive_at_barrier(&mut started_state, *barrier)?;
                steps.push(step_without_access(started_state));
            }
            Some(ProgressOperation::SplitBarrier { half, scope_threads: within, semantics }) => {
                self.execute_split_barrier(&mut started_state, thread, *half, *within, *semantics);
                started_state.threads[thread].instruction += 1;
                self.run_to_next_step(&mut started_state, thread, false)?;
                steps.push(step_without_access(started_state));
            }
            // The thread waited here, or before its first instruction, for another one.
            _ => {
                self.run_to_next_step(&mut started_state, thread, true)?;
                steps.push(step_without_access(started_state));
            }
        }
        Ok(())
    }

    /// An arrival at a split barrier, or the end of a wait whose arrivals are complete.
    fn execute_split_barrier<M: MemoryState>(
        &self,
        state: &mut MachineState<M>,
        thread: usize,
        half: BarrierHalf,
        within: ThreadMask,
        semantics: Semantics,
    ) {
        let (rounds, code) = (&self.code.split_barriers, self.code);
        match half.half {
            SplitHalf::Arrive => {
                rounds.record_arrival(&mut state.split_arrivals, thread, half);
                state.memory.arrive_at_split(code, thread, half, within, semantics);
            }
            SplitHalf::Wait => {
                let arrival_count = |thread: usize| state.split_arrivals[thread][half.scope_index];
                let arrived: Vec<(usize, bool)> =
                    // A thread that has arrived once more is one round ahead, so its previous
                    // arrival belongs to this wait.
                    rounds.members(thread, half).map(|other| (other, arrival_count(other) > arrival_count(thread))).collect();
                state.memory.wait_at_split(code, thread, half, (within, semantics), &arrived);
            }
        }
    }

    /// Releases the threads that a further arrival at `barrier` completes.
    fn arrive_at_barrier<M: MemoryState>(
        &self,
        state: &mut MachineState<M>,
        barrier: usize,
    ) -> Result<(), ProgressError> {
        let group = &self.code.barriers[barrier];
        if let Some(quorum) = group.quorum {
            // Counts saturate at the quorum, so that the state space stays finite.
            state.quorum_arrivals[barrier] = (state.quorum_arrivals[barrier] + 1).min(quorum);
        }
        let waiting_at_barrier = |state: &MachineState<M>, thread: usize| {
            let thread_state = &state.threads[thread];
            match self.code.threads[thread].operations.get(thread_state.instruction) {
                Some(ProgressOperation::Barrier {
                    barrier: at,
                    quorum,
                    scope_threads: within,
                    semantics,
                }) if thread_state.phase == ThreadPhase::Waiting && *at == barrier => {
                    Some((*quorum, *within, semantics.unwrap_or(Semantics::RELAXED)))
                }
                _ => None,
            }
        };
        let members = (0..state.threads.len()).filter(|thread| group.members & 1 << thread != 0);
        let complete = members.clone().all(|thread| waiting_at_barrier(state, thread).is_some());
        let released: Vec<(usize, ThreadMask, Semantics)> = members
            .filter_map(|thread| {
                let (quorum, within, semantics) = waiting_at_barrier(state, thread)?;
                // With a quorum, a thread does not wait for all members.
                let can_pass = quorum.map_or(complete, |quorum| state.quorum_arrivals[barrier] >= quorum);
                can_pass.then_some((thread, within, semantics))
            })
            .collect();
        state.memory.synchronize_barrier(self.code, &released);
        for (thread, ..) in released {
            let thread_state = &mut state.threads[thread];
            thread_state.phase = ThreadPhase::Ready;
            thread_state.instruction += 1;
            self.run_to_next_step(state, thread, false)?;
        }
        Ok(())
    }
}
