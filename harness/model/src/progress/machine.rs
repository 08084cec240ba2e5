//! Operational semantics of a program: the enabled steps of each thread in a state. Memory is a type
//! parameter.

use std::hash::Hash;

use litmus::{Semantics, SplitHalf, Value};

use super::ProgressError;
use super::code::{
    AccessKind, AccessOperation, LocalRunEnd, ProgressCode, ProgressOperation, ThreadMask, evaluate_source,
};
use super::promise::ThreadStatus;
use super::split::{ArrivalCounts, BarrierHalf};

/// Memory as a machine sees it.
pub(super) trait MemoryState: Clone + Eq + Hash {
    /// Every possible result of an access.
    fn perform_access(
        &self,
        code: &ProgressCode,
        thread: usize,
        access: &AccessOperation,
        registers: &[u64],
    ) -> Vec<AccessEffect<Self>>;

    /// A memory barrier.
    fn perform_fence(&mut self, code: &ProgressCode, thread: usize, within: ThreadMask, semantics: Semantics);

    /// The arrivals that leave a control barrier together.
    fn synchronize_barrier(&mut self, code: &ProgressCode, arrivals: &[(usize, ThreadMask, Semantics)]);

    /// An arrival at a split barrier.
    fn arrive_at_split(
        &mut self,
        code: &ProgressCode,
        thread: usize,
        half: BarrierHalf,
        within: ThreadMask,
        semantics: Semantics,
    );

    /// Ends a wait. `arrived` lists the awaited threads; true marks those that have arrived once more since.
    fn wait_at_split(
        &mut self,
        code: &ProgressCode,
        thread: usize,
        half: BarrierHalf,
        acquires: (ThreadMask, Semantics),
        arrived: &[(usize, bool)],
    );

    /// Every access of `from` is before every access of `to`.
    fn order_after(&mut self, from: usize, to: usize);

    /// A thread has ended.
    fn end_thread(&mut self, code: &ProgressCode, thread: usize);

    /// Returns true if a bound has removed behaviour on the path to this state.
    fn is_truncated(&self) -> bool {
        false
    }
}

/// A possible effect of an access.
pub(super) struct AccessEffect<M> {
    pub(super) memory: M,
    /// The value read.
    pub(super) read: Option<u64>,
    /// The value written.
    pub(super) written: Option<u64>,
    /// It does not read the newest write, or writes before it.
    pub(super) behind: bool,
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
        let whole = self.0[access.storage];
        let old = access.extract_part(whole);
        let written = written_value(access, old, registers);
        let mut memory = self.clone();
        if let Some(written) = written {
            memory.0[access.storage] = access.replace_part(whole, written);
        }
        let read = is_read(access).then_some(old);
        vec![AccessEffect { memory, read, written, behind: false }]
    }

    fn perform_fence(&mut self, _: &ProgressCode, _: usize, _: ThreadMask, _: Semantics) {}

    fn synchronize_barrier(&mut self, _: &ProgressCode, _: &[(usize, ThreadMask, Semantics)]) {}

    fn arrive_at_split(&mut self, _: &ProgressCode, _: usize, _: BarrierHalf, _: ThreadMask, _: Semantics) {}

    fn wait_at_split(
        &mut self,
        _: &ProgressCode,
        _: usize,
        _: BarrierHalf,
        _: (ThreadMask, Semantics),
        _: &[(usize, bool)],
    ) {
    }

    fn order_after(&mut self, _: usize, _: usize) {}

    fn end_thread(&mut self, _: &ProgressCode, _: usize) {}
}

/// Returns true if an access reads.
pub(super) fn is_read(access: &AccessOperation) -> bool {
    !matches!(access.kind, AccessKind::Store(_))
}

/// Returns the written value of an access that reads `old`.
pub(super) fn written_value(access: &AccessOperation, old: u64, registers: &[u64]) -> Option<u64> {
    let of = |source| evaluate_source(registers, source, access.scalar);
    match access.kind {
        AccessKind::Load | AccessKind::Await(_) => None,
        AccessKind::Store(source) | AccessKind::Exchange(source) => Some(of(source)),
        AccessKind::Fetch(operation, source) => {
            Some(operation.apply(Value(old), Value(of(source)), access.scalar).0)
        }
        AccessKind::CompareExchange { compare, value } => (of(compare) == old).then(|| of(value)),
    }
}

/// A state of the machine.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct MachineState<M> {
    threads: Vec<ThreadPosition>,
    /// Arrivals at each barrier with a quorum, up to the quorum.
    arrived: Vec<u32>,
    /// Arrivals at split barriers.
    arrivals: ArrivalCounts,
    pub(super) memory: M,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct ThreadPosition {
    at: usize,
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
    /// At its end.
    Done,
}

/// A step from one state to another.
pub(super) struct EnabledStep<M> {
    pub(super) thread: usize,
    /// The instruction.
    pub(super) at: usize,
    pub(super) read: Option<u64>,
    pub(super) written: Option<u64>,
    /// The accessed storage, and true if the access is not to its newest write.
    pub(super) accessed: Option<(usize, bool)>,
    pub(super) state: MachineState<M>,
}

/// The program and how it moves.
pub(super) struct ProgressMachine<'a> {
    pub(super) code: &'a ProgressCode,
}

impl ProgressMachine<'_> {
    /// The state before anything.
    pub(super) fn initial_state<M: MemoryState>(&self, memory: M) -> Result<MachineState<M>, ProgressError> {
        let threads = self
            .code
            .threads
            .iter()
            .map(|thread| ThreadPosition {
                at: 0,
                phase: ThreadPhase::Ready,
                started: false,
                registers: thread.registers.clone(),
            })
            .collect();
        let (arrived, arrivals) = (vec![0; self.code.barriers.len()], vec![[0; 2]; self.code.threads.len()]);
        let mut state = MachineState { threads, arrived, arrivals, memory };
        for thread in 0..self.code.threads.len() {
            if !self.is_gated(&state, thread, None) {
                self.settle_thread(&mut state, thread, false)?;
            }
        }
        Ok(state)
    }

    /// Returns true if a thread still waits for another one to end or to pass an instruction: at its begin
    /// (`None`) or before one instruction.
    fn is_gated<M>(&self, state: &MachineState<M>, thread: usize, at: Option<usize>) -> bool {
        self.code.syncs.iter().any(|(from, passed, to, gate)| {
            let other = &state.threads[*from];
            *to == thread
                && gate.map(usize::from) == at
                && other.phase != ThreadPhase::Done
                && passed.is_none_or(|passed| other.at <= usize::from(passed))
        })
    }

    /// Runs a thread up to its next step. If `opened`, the gate at its current instruction is already
    /// satisfied.
    fn settle_thread<M: MemoryState>(
        &self,
        state: &mut MachineState<M>,
        thread: usize,
        mut opened: bool,
    ) -> Result<(), ProgressError> {
        let code = &self.code.threads[thread];
        // Gates depend on other threads, which do not move while this one executes local
        // instructions.
        let gates: Vec<usize> =
            (0..code.operations.len()).filter(|at| self.is_gated(state, thread, Some(*at))).collect();
        let MachineState { threads, memory, .. } = state;
        let own = &mut threads[thread];
        let from = own.at;
        let reached = code.run_local_instructions(
            from,
            &mut own.registers,
            |at| {
                let first = std::mem::take(&mut opened);
                !(first && at == from) && gates.contains(&at)
            },
            |within, semantics| memory.perform_fence(self.code, thread, within, semantics),
        )?;
        match reached {
            LocalRunEnd::Instruction(at) => {
                own.at = at;
                if at >= code.operations.len() {
                    own.phase = ThreadPhase::Done;
                    // Registers cannot be observed any more, so states that differ only in them
                    // coincide.
                    own.registers.fill(0);
                    memory.end_thread(self.code, thread);
                    for (from, _, to, gate) in &self.code.syncs {
                        if *from == thread && gate.is_none() {
                            memory.order_after(thread, *to);
                        }
                    }
                }
            }
            LocalRunEnd::Spin(at) => {
                own.at = at;
                own.phase = ThreadPhase::Spinning;
                own.registers.fill(0);
            }
        }
        Ok(())
    }

    /// Returns true if a thread is at a wait whose round is incomplete.
    fn waits_for_arrivals<M>(&self, state: &MachineState<M>, thread: usize) -> bool {
        let at = state.threads[thread].at;
        match self.code.threads[thread].operations.get(at) {
            Some(ProgressOperation::Split { half, .. }) if half.half == SplitHalf::Wait => {
                !self.code.rounds.is_full(&state.arrivals, thread, *half)
            }
            _ => false,
        }
    }

    /// Returns the progress status of a thread.
    pub(super) fn thread_status<M>(&self, state: &MachineState<M>, thread: usize) -> ThreadStatus {
        let own = &state.threads[thread];
        let schedulable = match own.phase {
            ThreadPhase::Ready => {
                !(self.is_gated(state, thread, None)
                    || self.is_gated(state, thread, Some(own.at))
                    || self.waits_for_arrivals(state, thread))
            }
            ThreadPhase::Spinning => true,
            ThreadPhase::Waiting | ThreadPhase::Done => false,
        };
        ThreadStatus { ended: own.phase == ThreadPhase::Done, started: own.started, schedulable }
    }

    /// Returns true if a thread has ended.
    pub(super) fn has_ended<M>(&self, state: &MachineState<M>, thread: usize) -> bool {
        state.threads[thread].phase == ThreadPhase::Done
    }

    /// Returns the program counter of a thread.
    pub(super) fn program_counter<M>(&self, state: &MachineState<M>, thread: usize) -> usize {
        state.threads[thread].at
    }

    /// Every step out of a state.
    pub(super) fn enabled_steps<M: MemoryState>(
        &self,
        state: &MachineState<M>,
    ) -> Result<Vec<EnabledStep<M>>, ProgressError> {
        let mut moves = Vec::new();
        for thread in 0..state.threads.len() {
            if self.thread_status(state, thread).schedulable {
                self.execute_step(state, thread, &mut moves)?;
            }
        }
        Ok(moves)
    }

    fn execute_step<M: MemoryState>(
        &self,
        state: &MachineState<M>,
        thread: usize,
        moves: &mut Vec<EnabledStep<M>>,
    ) -> Result<(), ProgressError> {
        let own = &state.threads[thread];
        let at = own.at;
        let mut begun = state.clone();
        begun.threads[thread].started = true;
        let plain = |state| EnabledStep { thread, at, read: None, written: None, accessed: None, state };
        // A thread in a loop without memory accesses is schedulable for ever: a step from the state
        // to itself.
        if own.phase == ThreadPhase::Spinning {
            moves.push(plain(begun));
            return Ok(());
        }
        match self.code.threads[thread].operations.get(at) {
            Some(ProgressOperation::Access(access)) => {
                for effect in state.memory.perform_access(self.code, thread, access, &own.registers) {
                    let mut next = begun.clone();
                    next.memory = effect.memory;
                    // A failed attempt of an await is a step that leaves the thread where it is.
                    // Under weak memory its view may advance.
                    let waits = match access.kind {
                        AccessKind::Await(wanted) => {
                            effect.read != Some(evaluate_source(&own.registers, wanted, access.scalar))
                        }
                        _ => false,
                    };
                    if !waits {
                        let moved = &mut next.threads[thread];
                        moved.at += 1;
                        if let (Some(destination), Some(read)) = (access.destination, effect.read) {
                            let read = Value(read).extend(access.scalar, access.register_type);
                            moved.registers[usize::from(destination)] = read.0;
                        }
                        self.settle_thread(&mut next, thread, false)?;
                    }
                    moves.push(EnabledStep {
                        thread,
                        at,
                        read: effect.read,
                        written: effect.written,
                        accessed: Some((access.storage, effect.behind)),
                        state: next,
                    });
                }
            }
            Some(ProgressOperation::Barrier { barrier, .. }) => {
                begun.threads[thread].phase = ThreadPhase::Waiting;
                self.arrive_at_barrier(&mut begun, *barrier)?;
                moves.push(plain(begun));
            }
            Some(ProgressOperation::Split { half, within, semantics }) => {
                self.execute_split_barrier(&mut begun, thread, *half, (*within, *semantics));
                begun.threads[thread].at += 1;
                self.settle_thread(&mut begun, thread, false)?;
                moves.push(plain(begun));
            }
            // The thread waited here, or before its first instruction, for another one.
            _ => {
                self.settle_thread(&mut begun, thread, true)?;
                moves.push(plain(begun));
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
        (within, semantics): (ThreadMask, Semantics),
    ) {
        let (rounds, code) = (&self.code.rounds, self.code);
        match half.half {
            SplitHalf::Arrive => {
                rounds.record_arrival(&mut state.arrivals, thread, half);
                state.memory.arrive_at_split(code, thread, half, within, semantics);
            }
            SplitHalf::Wait => {
                let of = |thread: usize| state.arrivals[thread][half.series];
                let arrived: Vec<(usize, bool)> =
                    // A thread that has arrived once more is one round ahead, so its previous
                    // arrival belongs to this wait.
                    rounds.members(thread, half).map(|other| (other, of(other) > of(thread))).collect();
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
            state.arrived[barrier] = (state.arrived[barrier] + 1).min(quorum);
        }
        let here = |state: &MachineState<M>, thread: usize| {
            let own = &state.threads[thread];
            match self.code.threads[thread].operations.get(own.at) {
                Some(ProgressOperation::Barrier { barrier: at, quorum, within, semantics })
                    if own.phase == ThreadPhase::Waiting && *at == barrier =>
                {
                    Some((*quorum, *within, semantics.unwrap_or(Semantics::RELAXED)))
                }
                _ => None,
            }
        };
        let members = (0..state.threads.len()).filter(|thread| group.members & 1 << thread != 0);
        let complete = members.clone().all(|thread| here(state, thread).is_some());
        let released: Vec<(usize, ThreadMask, Semantics)> = members
            .filter_map(|thread| {
                let (quorum, within, semantics) = here(state, thread)?;
                // With a quorum, a thread does not wait for all members.
                let passes = quorum.map_or(complete, |quorum| state.arrived[barrier] >= quorum);
                passes.then_some((thread, within, semantics))
            })
            .collect();
        state.memory.synchronize_barrier(self.code, &released);
        for (thread, ..) in released {
            let own = &mut state.threads[thread];
            own.phase = ThreadPhase::Ready;
            own.at += 1;
            self.settle_thread(state, thread, false)?;
        }
        Ok(())
    }
}
