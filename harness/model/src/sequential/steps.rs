//! Execution of instructions.

#![deny(clippy::wildcard_enum_match_arm)]

use litmus::{
    AccessKind, ArithmeticOperation, Flow, InstructionKind, Interlock, InterlockEnd, InterlockOrder, LabelId,
    MemoryAccess, ScalarType, SplitHalf, SubgroupOperation, TangleInstance, ThreadId, Value,
};

use super::state::{DONE, PackedState};
use super::{SchedulingMode, SequentialMachine};
use crate::cells::Extent;
use crate::registers::{
    execute_compute, jump_target, label_position, operand_value, takes_jump, written_value,
};

impl SequentialMachine<'_> {
    /// Executes one step of a thread, or its whole run, into `next`; false if the thread is blocked.
    pub(super) fn run_turn(&self, state: &PackedState, thread: usize, next: &mut PackedState) -> bool {
        if self.is_done(state, thread) || !self.may_start(state, thread) {
            return false;
        }
        next.0.copy_from_slice(&state.0);
        self.commit_to_skips(next, thread);
        let mut has_moved = false;
        while !self.is_done(next, thread) && !next.is_stuck() {
            if !self.execute_instruction(next, thread) {
                // It continues when the awaited step is done.
                return has_moved;
            }
            has_moved = true;
            self.run_local_instructions(next, thread);
            // The last running thread cannot be interleaved, so its steps need no intermediate states.
            if self.mode == SchedulingMode::Interleaved && !self.is_last_running(next, thread) {
                break;
            }
        }
        has_moved
    }

    /// Executes instructions that do not access memory: labels, jumps, arithmetic, memory barriers.
    pub(super) fn run_local_instructions(&self, state: &mut PackedState, thread: usize) {
        loop {
            // An earlier step relied on this instruction being skipped.
            if self.skippable.iter().any(|(sync, word)| state.0[*word] != 0 && self.is_at_first(state, sync))
            {
                state.mark_stuck();
                return;
            }
            let instructions = &self.test.threads[thread].instructions;
            let position = self.position(state, thread);
            let Some(instruction) = instructions.get(position) else {
                state.0[self.threads[thread].position] = DONE;
                return;
            };
            let type_of = |register| self.register_type(thread, register);
            match &instruction.kind {
                InstructionKind::Access(_) => return,
                InstructionKind::Compute(compute) => {
                    execute_compute(compute, self.registers_mut(state, thread), type_of);
                    self.advance(state, thread);
                }
                // Subgroup operations execute together with the other lanes of the tangle.
                InstructionKind::Subgroup(_) => return,
                InstructionKind::ControlBarrier(_) => {
                    // The arrival is recorded here, so that other threads pass the barrier while
                    // this one still stays at it.
                    state.0[self.threads[thread].reached + position / 64] |= 1 << (position % 64);
                    if self.mode == SchedulingMode::Interleaved {
                        return;
                    }
                    self.advance(state, thread);
                }
                InstructionKind::SplitBarrier(barrier) => {
                    if self.is_gated(thread, position) && self.mode == SchedulingMode::Interleaved {
                        return;
                    }
                    match barrier.half {
                        SplitHalf::Arrive => {
                            if let Some(word) = self.arrival_word(thread, barrier.execution_scope) {
                                state.0[word] += 1;
                            }
                        }
                        SplitHalf::Wait if self.mode == SchedulingMode::Interleaved => return,
                        SplitHalf::Wait => {}
                    }
                    self.advance(state, thread);
                }
                // The first thread to enter excludes the others, so this is a scheduling choice.
                InstructionKind::Interlock(Interlock {
                    end: InterlockEnd::Begin,
                    order: InterlockOrder::Unordered,
                    ..
                }) if self.mode == SchedulingMode::Interleaved => return,
                InstructionKind::Fence { .. }
                | InstructionKind::System(_)
                | InstructionKind::ShaderCall(_)
                | InstructionKind::Interlock(_)
                | InstructionKind::Flow(Flow::Label(_)) => {
                    if self.must_wait(state, thread, position) {
                        return;
                    }
                    // An instruction that is ordered after another thread's waits for it.
                    if self.is_gated(thread, position) && self.mode == SchedulingMode::Interleaved {
                        return;
                    }
                    self.advance(state, thread);
                }
                InstructionKind::Flow(flow) => {
                    let is_taken = takes_jump(flow, self.registers(state, thread), type_of);
                    match jump_target(flow).filter(|_| is_taken) {
                        Some(target) => self.jump(state, thread, target),
                        None => self.advance(state, thread),
                    }
                }
            }
            if state.is_stuck() {
                return;
            }
        }
    }

    /// Executes the thread's next memory access or control barrier; false if it must wait.
    pub(super) fn execute_instruction(&self, state: &mut PackedState, thread: usize) -> bool {
        let position = self.position(state, thread);
        let Some(instruction) = self.test.threads[thread].instructions.get(position) else { return false };
        let completes = match &instruction.kind {
            InstructionKind::Access(access) if !access.is_vector() => {
                self.perform_access(state, thread, access)
            }
            // Sequential consistency orders instructions, so all components of a vector are accessed
            // together.
            InstructionKind::Access(access) => {
                access.scalar_accesses().all(|lane| self.perform_access(state, thread, &lane))
            }
            InstructionKind::ControlBarrier(barrier) => {
                !self.must_wait(state, thread, position) && self.try_pass_barrier(state, thread, barrier)
            }
            InstructionKind::Subgroup(operation) => {
                return !self.must_wait(state, thread, position)
                    && self.execute_subgroup_operation(state, thread, operation);
            }
            InstructionKind::SplitBarrier(barrier) => match barrier.half {
                // An arrival that had to wait for another thread's instruction is not counted yet.
                SplitHalf::Arrive => {
                    if let Some(word) = self.arrival_word(thread, barrier.execution_scope) {
                        state.0[word] += 1;
                    }
                    true
                }
                SplitHalf::Wait => self.have_all_arrived(state, thread, barrier.execution_scope),
            },
            InstructionKind::Fence { .. }
            | InstructionKind::System(_)
            | InstructionKind::ShaderCall(_)
            | InstructionKind::Interlock(_)
            | InstructionKind::Compute(_)
            | InstructionKind::Flow(_) => !self.must_wait(state, thread, position),
        };
        if !completes {
            return false;
        }
        self.advance(state, thread);
        true
    }

    pub(super) fn jump(&self, state: &mut PackedState, thread: usize, target: LabelId) {
        let current = self.position(state, thread);
        let Some(position) = label_position(&self.test.threads[thread].instructions, target) else {
            state.mark_stuck();
            return;
        };
        // Only backward jumps close a loop. Each has its own bound.
        if position <= current {
            let jumps = &mut state.0[self.threads[thread].jumps + current];
            *jumps += 1;
            if *jumps >= u64::from(self.unroll) {
                state.mark_stuck();
                return;
            }
        }
        state.0[self.threads[thread].position] = position as u64;
    }

    /// Executes a subgroup operation for all participating lanes; false if one has not arrived.
    pub(super) fn execute_subgroup_operation(
        &self,
        state: &mut PackedState,
        thread: usize,
        operation: &SubgroupOperation,
    ) -> bool {
        let mut tangle =
            self.test.tangle_lanes(ThreadId(thread as u16), TangleInstance::Operation(&operation.id));
        // A lane past the operation has skipped it.
        tangle.retain(|lane| self.position(state, usize::from(lane.thread.0)) <= lane.instruction);
        let lanes: Vec<(usize, &SubgroupOperation)> = tangle
            .iter()
            .filter_map(|lane| {
                let index = usize::from(lane.thread.0);
                let is_here = self.position(state, index) == lane.instruction
                    && (index == thread || self.may_start(state, index));
                let found = self.test.thread(lane.thread).instructions.get(lane.instruction)?;
                found.kind.subgroup_operation().filter(|_| is_here).map(|operation| (index, operation))
            })
            .collect();
        // Some lane has not arrived yet.
        if lanes.len() < tangle.len() {
            return false;
        }
        let scalar = ScalarType::U32;
        let lane_operands = tangle.iter().zip(&lanes).map(|(lane, (index, operation))| {
            let value = |operand| operand_value(self.registers(state, *index), operand, scalar);
            (lane.lane, operation.value.map_or(Value(0), value))
        });
        let operands: Vec<(u32, Value)> = lane_operands.collect();
        for (index, _) in &lanes {
            self.commit_to_skips(state, *index);
        }
        for (lane, (index, operation)) in tangle.iter().zip(&lanes) {
            let constant = |number: u32| Value(number.into());
            let compute = |operation: ArithmeticOperation, left, right| operation.apply(left, right, scalar);
            let result = operation.kind.result_in_lane(lane.lane, &operands, &constant, &compute);
            if let (Some(destination), Some(result)) = (operation.destination, result) {
                self.set_register(state, *index, destination, result);
            }
            self.advance(state, *index);
        }
        for (index, _) in lanes.iter().filter(|(index, _)| *index != thread) {
            self.run_local_instructions(state, *index);
        }
        true
    }

    /// Performs a scalar access; false if it must wait.
    pub(super) fn perform_access(
        &self,
        state: &mut PackedState,
        thread: usize,
        access: &MemoryAccess,
    ) -> bool {
        let extent = Extent::from_place(self.test, &access.place);
        let scalar = access.place.scalar_type(self.test);
        let old = match access.kind {
            AccessKind::Store(_) => Value(0),
            AccessKind::Load(_) | AccessKind::Rmw { .. } | AccessKind::Await { .. } => {
                self.read_memory(state, extent)
            }
        };
        let registers = self.registers(state, thread);
        if let AccessKind::Await { value, .. } = access.kind
            && old != operand_value(registers, value, scalar)
        {
            return false;
        }
        if let Some(new) = written_value(access.kind, old, registers, scalar) {
            self.write_memory(state, extent, new);
        }
        if let Some(destination) = access.destinations().next() {
            self.set_loaded_register(state, thread, destination, old, scalar);
        }
        true
    }
}
