//! The program as a machine: what each thread can do in a state. Memory is a parameter.

use std::hash::Hash;

use litmus::{Semantics, SplitHalf, Value};

use super::ProgressError;
use super::code::{AccessKind, AccessOperation, Code, Operation, Reached, Within, value};
use super::promise::Standing;
use super::split::{Arrivals, Half};

/// Memory as a machine sees it.
pub(super) trait Memory: Clone + Eq + Hash {
    /// Every way in which an access can happen.
    fn access(
        &self,
        code: &Code,
        thread: usize,
        access: &AccessOperation,
        registers: &[u64],
    ) -> Vec<Effect<Self>>;

    /// A memory barrier.
    fn fence(&mut self, code: &Code, thread: usize, within: Within, semantics: Semantics);

    /// The arrivals that leave a control barrier together.
    fn meet(&mut self, code: &Code, arrivals: &[(usize, Within, Semantics)]);

    /// An arrival at a split barrier.
    fn arrive(&mut self, code: &Code, thread: usize, half: Half, within: Within, semantics: Semantics);

    /// The end of a wait. Whom it has waited for, and whether he has arrived once more since.
    fn wait(
        &mut self,
        code: &Code,
        thread: usize,
        half: Half,
        acquires: (Within, Semantics),
        arrived: &[(usize, bool)],
    );

    /// Everything of `from` is before everything of `to`.
    fn follow(&mut self, from: usize, to: usize);

    /// A thread has ended.
    fn end(&mut self, code: &Code, thread: usize);

    /// Whether a bound has taken behaviour away on the way here.
    fn is_cut(&self) -> bool {
        false
    }
}

/// What an access may do.
pub(super) struct Effect<M> {
    pub(super) memory: M,
    /// The value read.
    pub(super) read: Option<u64>,
    /// The value written.
    pub(super) written: Option<u64>,
    /// It does not read, or write after, the newest write.
    pub(super) behind: bool,
}

/// Memory under sequential consistency: a value a storage.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Flat(pub(super) Vec<u64>);

impl Memory for Flat {
    fn access(&self, _: &Code, _: usize, access: &AccessOperation, registers: &[u64]) -> Vec<Effect<Flat>> {
        let whole = self.0[access.storage];
        let old = access.part(whole);
        let written = new_value(access, old, registers);
        let mut memory = self.clone();
        if let Some(written) = written {
            memory.0[access.storage] = access.replaced(whole, written);
        }
        let read = reads(access).then_some(old);
        vec![Effect { memory, read, written, behind: false }]
    }

    fn fence(&mut self, _: &Code, _: usize, _: Within, _: Semantics) {}

    fn meet(&mut self, _: &Code, _: &[(usize, Within, Semantics)]) {}

    fn arrive(&mut self, _: &Code, _: usize, _: Half, _: Within, _: Semantics) {}

    fn wait(&mut self, _: &Code, _: usize, _: Half, _: (Within, Semantics), _: &[(usize, bool)]) {}

    fn follow(&mut self, _: usize, _: usize) {}

    fn end(&mut self, _: &Code, _: usize) {}
}

/// Whether an access reads.
pub(super) fn reads(access: &AccessOperation) -> bool {
    !matches!(access.kind, AccessKind::Store(_))
}

/// What an access writes where it reads `old`.
pub(super) fn new_value(access: &AccessOperation, old: u64, registers: &[u64]) -> Option<u64> {
    let of = |source| value(registers, source, access.scalar);
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
pub(super) struct State<M> {
    threads: Vec<ThreadState>,
    /// Arrivals at each barrier with a quorum, up to the quorum.
    arrived: Vec<u32>,
    /// Arrivals at split barriers.
    arrivals: Arrivals,
    pub(super) memory: M,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct ThreadState {
    at: usize,
    phase: Phase,
    started: bool,
    registers: Vec<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Phase {
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
pub(super) struct Move<M> {
    pub(super) thread: usize,
    /// The instruction.
    pub(super) at: usize,
    pub(super) read: Option<u64>,
    pub(super) written: Option<u64>,
    /// The storage and whether it is behind the newest write.
    pub(super) accessed: Option<(usize, bool)>,
    pub(super) state: State<M>,
}

/// The program and how it moves.
pub(super) struct Machine<'a> {
    pub(super) code: &'a Code,
}

impl Machine<'_> {
    /// The state before anything.
    pub(super) fn initial<M: Memory>(&self, memory: M) -> Result<State<M>, ProgressError> {
        let threads = self
            .code
            .threads
            .iter()
            .map(|thread| ThreadState {
                at: 0,
                phase: Phase::Ready,
                started: false,
                registers: thread.registers.clone(),
            })
            .collect();
        let (arrived, arrivals) = (vec![0; self.code.barriers.len()], vec![[0; 2]; self.code.threads.len()]);
        let mut state = State { threads, arrived, arrivals, memory };
        for thread in 0..self.code.threads.len() {
            if !self.gated(&state, thread, None) {
                self.settle(&mut state, thread, false)?;
            }
        }
        Ok(state)
    }

    /// Whether a thread still waits for another one to end or to pass an instruction: at its begin (`None`) or before
    /// one instruction.
    fn gated<M>(&self, state: &State<M>, thread: usize, at: Option<usize>) -> bool {
        self.code.syncs.iter().any(|(from, passed, to, gate)| {
            let other = &state.threads[*from];
            *to == thread
                && gate.map(usize::from) == at
                && other.phase != Phase::Done
                && passed.is_none_or(|passed| other.at <= usize::from(passed))
        })
    }

    /// Runs a thread up to its next step. `opened` says that the instruction it stands at need not wait any more.
    fn settle<M: Memory>(
        &self,
        state: &mut State<M>,
        thread: usize,
        mut opened: bool,
    ) -> Result<(), ProgressError> {
        let code = &self.code.threads[thread];
        let gates: Vec<usize> =
            (0..code.operations.len()).filter(|at| self.gated(state, thread, Some(*at))).collect();
        let State { threads, memory, .. } = state;
        let own = &mut threads[thread];
        let from = own.at;
        let reached = code.settle(
            from,
            &mut own.registers,
            |at| {
                let first = std::mem::take(&mut opened);
                !(first && at == from) && gates.contains(&at)
            },
            |within, semantics| memory.fence(self.code, thread, within, semantics),
        )?;
        match reached {
            Reached::Instruction(at) => {
                own.at = at;
                if at >= code.operations.len() {
                    own.phase = Phase::Done;
                    own.registers.fill(0);
                    memory.end(self.code, thread);
                    for (from, _, to, gate) in &self.code.syncs {
                        if *from == thread && gate.is_none() {
                            memory.follow(thread, *to);
                        }
                    }
                }
            }
            Reached::Spin(at) => {
                own.at = at;
                own.phase = Phase::Spinning;
                own.registers.fill(0);
            }
        }
        Ok(())
    }

    /// Whether a thread stands at a wait for a round that somebody has not arrived in.
    fn waits_for_arrivals<M>(&self, state: &State<M>, thread: usize) -> bool {
        let at = state.threads[thread].at;
        match self.code.threads[thread].operations.get(at) {
            Some(Operation::Split { half, .. }) if half.half == SplitHalf::Wait => {
                !self.code.rounds.is_full(&state.arrivals, thread, *half)
            }
            _ => false,
        }
    }

    /// Where a thread stands.
    pub(super) fn standing<M>(&self, state: &State<M>, thread: usize) -> Standing {
        let own = &state.threads[thread];
        let schedulable = match own.phase {
            Phase::Ready => {
                !(self.gated(state, thread, None)
                    || self.gated(state, thread, Some(own.at))
                    || self.waits_for_arrivals(state, thread))
            }
            Phase::Spinning => true,
            Phase::Waiting | Phase::Done => false,
        };
        Standing { ended: own.phase == Phase::Done, started: own.started, schedulable }
    }

    /// Whether a thread has ended.
    pub(super) fn ended<M>(&self, state: &State<M>, thread: usize) -> bool {
        state.threads[thread].phase == Phase::Done
    }

    /// The instruction that a thread stands at.
    pub(super) fn at<M>(&self, state: &State<M>, thread: usize) -> usize {
        state.threads[thread].at
    }

    /// Every step out of a state.
    pub(super) fn moves<M: Memory>(&self, state: &State<M>) -> Result<Vec<Move<M>>, ProgressError> {
        let mut moves = Vec::new();
        for thread in 0..state.threads.len() {
            if self.standing(state, thread).schedulable {
                self.step(state, thread, &mut moves)?;
            }
        }
        Ok(moves)
    }

    fn step<M: Memory>(
        &self,
        state: &State<M>,
        thread: usize,
        moves: &mut Vec<Move<M>>,
    ) -> Result<(), ProgressError> {
        let own = &state.threads[thread];
        let at = own.at;
        let mut begun = state.clone();
        begun.threads[thread].started = true;
        let plain = |state| Move { thread, at, read: None, written: None, accessed: None, state };
        if own.phase == Phase::Spinning {
            moves.push(plain(begun));
            return Ok(());
        }
        match self.code.threads[thread].operations.get(at) {
            Some(Operation::Access(access)) => {
                for effect in state.memory.access(self.code, thread, access, &own.registers) {
                    let mut next = begun.clone();
                    next.memory = effect.memory;
                    let waits = match access.kind {
                        AccessKind::Await(wanted) => {
                            effect.read != Some(value(&own.registers, wanted, access.scalar))
                        }
                        _ => false,
                    };
                    if !waits {
                        let moved = &mut next.threads[thread];
                        moved.at += 1;
                        if let (Some(destination), Some(read)) = (access.destination, effect.read) {
                            moved.registers[usize::from(destination)] = read;
                        }
                        self.settle(&mut next, thread, false)?;
                    }
                    moves.push(Move {
                        thread,
                        at,
                        read: effect.read,
                        written: effect.written,
                        accessed: Some((access.storage, effect.behind)),
                        state: next,
                    });
                }
            }
            Some(Operation::Barrier { barrier, .. }) => {
                begun.threads[thread].phase = Phase::Waiting;
                self.arrive(&mut begun, *barrier)?;
                moves.push(plain(begun));
            }
            Some(Operation::Split { half, within, semantics }) => {
                self.split(&mut begun, thread, *half, (*within, *semantics));
                begun.threads[thread].at += 1;
                self.settle(&mut begun, thread, false)?;
                moves.push(plain(begun));
            }
            // The thread waited here, or before its first instruction, for another one.
            _ => {
                self.settle(&mut begun, thread, true)?;
                moves.push(plain(begun));
            }
        }
        Ok(())
    }

    /// An arrival at a split barrier, or the end of a wait that nothing holds any more.
    fn split<M: Memory>(
        &self,
        state: &mut State<M>,
        thread: usize,
        half: Half,
        (within, semantics): (Within, Semantics),
    ) {
        let (rounds, code) = (&self.code.rounds, self.code);
        match half.half {
            SplitHalf::Arrive => {
                rounds.arrive(&mut state.arrivals, thread, half);
                state.memory.arrive(code, thread, half, within, semantics);
            }
            SplitHalf::Wait => {
                let of = |thread: usize| state.arrivals[thread][half.series];
                let arrived: Vec<(usize, bool)> =
                    rounds.members(thread, half).map(|other| (other, of(other) > of(thread))).collect();
                state.memory.wait(code, thread, half, (within, semantics), &arrived);
            }
        }
    }

    /// Lets those through that a further arrival at `barrier` releases.
    fn arrive<M: Memory>(&self, state: &mut State<M>, barrier: usize) -> Result<(), ProgressError> {
        let group = &self.code.barriers[barrier];
        if let Some(quorum) = group.quorum {
            state.arrived[barrier] = (state.arrived[barrier] + 1).min(quorum);
        }
        let here = |state: &State<M>, thread: usize| {
            let own = &state.threads[thread];
            match self.code.threads[thread].operations.get(own.at) {
                Some(Operation::Barrier { barrier: at, quorum, within, semantics })
                    if own.phase == Phase::Waiting && *at == barrier =>
                {
                    Some((*quorum, *within, semantics.unwrap_or(Semantics::RELAXED)))
                }
                _ => None,
            }
        };
        let members = (0..state.threads.len()).filter(|thread| group.members & 1 << thread != 0);
        let complete = members.clone().all(|thread| here(state, thread).is_some());
        let released: Vec<(usize, Within, Semantics)> = members
            .filter_map(|thread| {
                let (quorum, within, semantics) = here(state, thread)?;
                let passes = quorum.map_or(complete, |quorum| state.arrived[barrier] >= quorum);
                passes.then_some((thread, within, semantics))
            })
            .collect();
        state.memory.meet(self.code, &released);
        for (thread, ..) in released {
            let own = &mut state.threads[thread];
            own.phase = Phase::Ready;
            own.at += 1;
            self.settle(state, thread, false)?;
        }
        Ok(())
    }
}
