//! Control barriers, at which symbolic paths join.

use std::rc::Rc;

use litmus::{InterlockEnd, Scope, Semantics, SplitHalf};

use super::{Executor, PathInterrupt, PendingPath, Step};
use crate::emit::{self, ENTRY_REGISTER};
use crate::round::{Emitted, Segment};
use crate::state::PathState;
use entry_point::interlock::InterlockExecutionMode;
use entry_point::order::{scope_from_number, semantics_from_number};
use entry_point::{FindingCause, malformed, unsupported};

impl Executor<'_> {
    /// Ends a segment. A path whose state equals an earlier one at the same barrier joins it.
    pub(super) fn execute_control_barrier(&mut self, state: &mut PathState, operands: [u32; 3]) -> Step<()> {
        let (execution, memory, semantics) = self.barrier_operands(state, operands)?;
        // The dynamic instance of the barrier: invocations meet there with equal call stacks and
        // loop iterations.
        let key: Vec<(u32, usize, Vec<u32>)> = state
            .frames
            .iter()
            .map(|frame| {
                let iterations = frame.loops.iter().map(|active| active.iteration).collect();
                (frame.function, frame.instruction_index, iterations)
            })
            .collect();
        let count = self.round.barriers.len();
        let instance = *self.round.barriers.entry((key, execution)).or_insert(count);
        state.effects += 1;
        // A loop that contains a barrier is not a spin loop.
        state.performed_rmws = Rc::default();
        self.advance(state)?;
        let index = match self.segments_by_barrier.get(&instance) {
            Some(index) => *index,
            None => {
                let ordered = (semantics.order != litmus::Order::Relaxed).then_some(semantics);
                let kind = emit::control_barrier(instance, execution, memory, ordered);
                let (line, place) = self.at;
                let barrier = Some(Emitted { kind, line, place });
                self.segments.push(Segment { barrier, instance: Some(instance), ..Segment::default() });
                self.segments_by_barrier.insert(instance, self.segments.len() - 1);
                self.segments.len() - 1
            }
        };
        self.segments[self.segment].successors.insert(index);
        // Paths that are in one state at the barrier continue as one.
        let known = self.segments[index].entries.iter().position(|(before, _)| before == state);
        let entry = match known {
            Some(entry) => entry,
            None => {
                let label = self.new_label();
                self.segments[index].entries.push((state.clone(), label));
                self.pending.push(PendingPath { segment: index, label, state: state.clone() });
                self.segments[index].entries.len() - 1
            }
        };
        self.emit_instruction(emit::assign(ENTRY_REGISTER, entry as u64))?;
        self.emit_instruction(emit::jump(self.context.segment_label(index)))?;
        self.writes = self.writes.max(state.writes);
        // The pending entry continues the path.
        Err(PathInterrupt::Ended)
    }

    /// Returns a number that selects how an instruction orders memory.
    pub(crate) fn constant_operand(&mut self, state: &mut PathState, id: u32) -> Step<u64> {
        let value = self.value_of_id(state, id)?;
        self.fork_to_known(state, &value, "a scope or semantics")
    }

    /// Returns the execution scope, the memory scope and the semantics of a control barrier.
    fn barrier_operands(
        &mut self,
        state: &mut PathState,
        [execution, memory, semantics]: [u32; 3],
    ) -> Step<(Scope, Scope, Semantics)> {
        let vulkan = self.context.module().uses_vulkan_model;
        let execution = scope_from_number(self.constant_operand(state, execution)?, true)?;
        let memory = scope_from_number(self.constant_operand(state, memory)?, vulkan)?;
        Ok((execution, memory, semantics_from_number(self.constant_operand(state, semantics)?)?))
    }

    /// Executes half of a split barrier: an arrival does not block, and the test counts the rounds.
    pub fn execute_split_barrier(
        &mut self,
        state: &mut PathState,
        half: SplitHalf,
        operands: [u32; 3],
    ) -> Step<()> {
        let (execution, memory, semantics) = self.barrier_operands(state, operands)?;
        let order = semantics.order;
        if !matches!(execution, Scope::Workgroup | Scope::Subgroup) {
            return Err(unsupported(format!("a split barrier of {execution:?} scope")).into());
        }
        if order != litmus::Order::Relaxed && order != half.strongest_order() {
            let half = half.keyword();
            return Err(malformed(format!("{order:?} semantics on the {half} of a split barrier")).into());
        }
        let ordered = (order != litmus::Order::Relaxed).then_some(semantics);
        let frame = state.frames.last().map(|frame| (frame.function, frame.instruction_index, Vec::new()));
        let count = self.round.barriers.len();
        let key = (frame.into_iter().collect(), execution);
        let instance = *self.round.barriers.entry(key).or_insert(count);
        state.effects += 1;
        Ok(self.emit_instruction(emit::split_barrier(half, instance, execution, memory, ordered))?)
    }

    /// Executes the begin or end of an interlocked section; fragments of a pixel run theirs one at a time.
    pub fn execute_interlock(&mut self, state: &mut PathState, end: InterlockEnd) -> Step<()> {
        let setting = self.context;
        let sections = InterlockExecutionMode::require_at(setting.sections, end, setting.stage)?;
        match state.interlock.advance(end) {
            Ok(next) => state.interlock = next,
            Err(what) => {
                self.report_conditionally(
                    state,
                    FindingCause::InterlockOrder,
                    what.to_owned(),
                    String::new(),
                )?;
                return self.block_forever();
            }
        }
        state.effects += 1;
        state.performed_rmws = Rc::default();
        let [x, y, _] = self.identity.workgroup;
        let pixel = y.wrapping_mul(setting.grid[0]).wrapping_add(x);
        Ok(self.emit_instruction(emit::interlock(end, sections.order, pixel))?)
    }
}
