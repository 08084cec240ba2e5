//! The rounds of a kernel: one loop for all threads, or a loop for each between two rendezvous.

use litmus::InterlockEnd;
use rspirv::dr::Operand;
use rspirv::spirv::{Op, Word};
use spirv_reader::semantics_word;

use super::rendezvous::{InvocationStart, RendezvousSchedule, RendezvousValues};
use super::{CompiledSegment, DispatchEmitter, SegmentCode};
use crate::contract::{Parameter, WordArithmetic, instance_index};
use crate::flow;
use crate::kernel::CompileError;
use crate::loops::LoopBuilder;
use crate::memory::{AccessTarget, ReferencePath};
use crate::rules::Rule;
use crate::segments;
use crate::stress::StressLoop;
use crate::thread::{Registers, scope_operand};

/// The values around the rounds, computed in the first block.
pub(super) struct RoundContext {
    pub entry: Word,
    pub place: InvocationStart,
    /// If each invocation runs every thread, its start for each, in their order; else empty.
    pub thread_starts: Vec<InvocationStart>,
    pub rendezvous: Option<RendezvousValues>,
    /// The index of the invocation in its workgroup.
    pub local: Word,
}

impl DispatchEmitter<'_> {
    /// Returns true if each thread may have its own loop of rounds.
    ///
    /// Not for lanes of one subgroup, which would run threads one after another, nor with common operations
    /// in each round or loops of the test: lavapipe 22.3 keeps lanes running that never entered a loop.
    pub(super) fn has_thread_loops(&self, parts: &[SegmentCode]) -> bool {
        self.config.thread_loops
            && self.layout.subgroup_size.is_none()
            && self.layout.classes.len() == parts.len()
            && self.workgroup_storages.is_empty()
            && parts.iter().all(|code| flow::split_at_loops(&code.steps).len() == 1)
    }

    /// Returns true if each invocation runs every thread; the threads of an instance still run in separate
    /// workgroups.
    pub(super) fn is_parallel(&self, only: &CompiledSegment) -> bool {
        let parts = &only.thread_codes;
        self.config.parallel
            && self.config.variant.stage.has_workgroups()
            && self.context.classes.is_none()
            && only.barrier.is_none()
            && only.shared.is_none()
            && self.layout.subgroup_size.is_none()
            && !self.layout.has_virtual_subgroups
            && parts.len() > 1
            && self.layout.classes.len() == parts.len()
            && self.workgroup_storages.is_empty()
            && parts.iter().all(|code| flow::split_at_loops(&code.steps).len() == 1)
    }

    /// Emits the only round of overlapping fragments, whose sections must not be in a loop or a branch.
    pub(super) fn emit_single_round(
        &mut self,
        context: &RoundContext,
        codes: &[CompiledSegment],
        registers: &mut [Registers],
    ) -> Result<(), CompileError> {
        let round = self.module.constant(0);
        let (instance, targets) = self.instance_and_targets(&context.place, round)?;
        for CompiledSegment { thread_codes: parts, interlock_end: section, .. } in codes {
            self.emit_segment(parts, &context.place, instance, &targets, registers)?;
            match section {
                Some(InterlockEnd::Begin) => self.module.emit_void(Op::BeginInvocationInterlockEXT, []),
                Some(InterlockEnd::End) => self.module.emit_void(Op::EndInvocationInterlockEXT, []),
                None => {}
            }
        }
        Ok(())
    }

    /// Emits one loop for all roles.
    pub(super) fn emit_common_rounds(
        &mut self,
        context: &RoundContext,
        pressure: Option<StressLoop>,
        codes: &[CompiledSegment],
        registers: &mut [Registers],
    ) -> Result<(), CompileError> {
        let RoundContext { entry, place, thread_starts: every, .. } = context;
        let rounds = self.parameter(Parameter::Rounds);
        let mut round_loop = LoopBuilder::new(&mut self.module);
        let (zero, one) = (self.module.constant(0), self.module.constant(1));
        let round = round_loop.carry_counter(&mut self.module, zero, one);
        let rendezvous = context.rendezvous.map(|meeting| {
            (meeting, self.carry_rendezvous(&meeting, RendezvousSchedule::Interval, &mut round_loop))
        });
        round_loop.enter(&mut self.module, *entry);
        let more = self.module.emit_bool(Op::ULessThan, &[round, rounds]);
        round_loop.begin_body_if(&mut self.module, more);
        let shared = match every.is_empty() {
            true => Some(self.instance_and_targets(place, round)?),
            false => None,
        };
        if let Some((_, targets)) = &shared {
            self.emit_workgroup_init(place, targets);
        }
        if let Some((meeting, carried)) = &rendezvous {
            self.emit_rendezvous(meeting, carried, context.local);
        }
        if let Some(pressure) = pressure {
            pressure.emit(&mut self.module, self.config.variant.model, self.config.device_scope);
        }
        let Some((instance, targets)) = shared else {
            for (code, place) in codes.iter().flat_map(|between| &between.thread_codes).zip(every) {
                let (instance, targets) = self.instance_and_targets(place, round)?;
                self.emit_segment(std::slice::from_ref(code), place, instance, &targets, registers)?;
            }
            round_loop.end_body(&mut self.module);
            self.count_surplus_round(rounds, round);
            return Ok(());
        };
        for CompiledSegment { thread_codes: parts, barrier, shared, .. } in codes {
            self.emit_segment(parts, place, instance, &targets, registers)?;
            if let Some(shared) = shared {
                self.emit_shared(shared, place, instance, &targets, registers)?;
            }
            if let Some(barrier) = barrier {
                self.emit_barrier(barrier)?;
            }
        }
        self.emit_workgroup_results(place, instance, &targets);
        round_loop.end_body(&mut self.module);
        self.count_surplus_round(rounds, round);
        Ok(())
    }

    /// Emits a control barrier, or half of a split one, for all invocations that reach it.
    pub(super) fn emit_barrier(&mut self, barrier: &segments::CommonBarrier) -> Result<(), Rule> {
        let scope = |scope| scope_operand(scope, self.config.variant);
        let (execution, memory) = (scope(barrier.execution_scope)?, scope(barrier.memory_scope)?);
        let execution = self.module.constant(execution);
        let memory = self.module.constant(memory);
        let semantics = self.module.constant(semantics_word(barrier.semantics));
        self.module.emit_void(
            barrier.opcode(),
            [Operand::IdScope(execution), Operand::IdScope(memory), Operand::IdMemorySemantics(semantics)],
        );
        Ok(())
    }

    /// Emits a loop over rendezvous that contains, for each role, a loop over the rounds up to the next one.
    ///
    /// CPU drivers execute the code of all roles and of the rendezvous with inactive lanes. With this
    /// structure they do so once per rendezvous instead of once per round. Every lane enters every loop, and
    /// leaves the loops of other roles immediately.
    pub(super) fn emit_rounds_by_thread(
        &mut self,
        context: &RoundContext,
        parts: &[SegmentCode],
        registers: &mut [Registers],
    ) -> Result<(), CompileError> {
        let RoundContext { entry, place, .. } = context;
        let rounds = self.parameter(Parameter::Rounds);
        let mut stretch_loop = LoopBuilder::new(&mut self.module);
        let (zero, one) = (self.module.constant(0), self.module.constant(1));
        // Without rendezvous, all rounds are one stretch.
        let stretch = context.rendezvous.map_or(rounds, |meeting| {
            let interval = self.parameter(Parameter::Interval);
            let meets = self.module.emit_bool(Op::INotEqual, &[meeting.spin, zero]);
            self.module.emit_word(Op::Select, &[meets, interval, rounds])
        });
        let (begin, end) = stretch_loop.carry_word(&mut self.module, zero);
        let surplus = self.has_receipts().then(|| stretch_loop.carry_word(&mut self.module, zero));
        let mut surplus_of_stretch = surplus.map(|(before, _)| before);
        let rendezvous = context.rendezvous.map(|meeting| {
            (meeting, self.carry_rendezvous(&meeting, RendezvousSchedule::EveryIteration, &mut stretch_loop))
        });
        stretch_loop.enter(&mut self.module, *entry);
        // The last stretch ends exactly at `rounds`. With `<`, a compiler that mistakes it for `<=` would
        // create an infinite loop of empty stretches.
        let more = self.module.emit_bool(Op::INotEqual, &[begin, rounds]);
        stretch_loop.begin_body_if(&mut self.module, more);
        if let Some((meeting, carried)) = &rendezvous {
            self.emit_rendezvous(meeting, carried, context.local);
        }
        let left = self.module.emit_word(Op::ISub, &[rounds, begin]);
        let whole = self.module.emit_bool(Op::ULessThan, &[stretch, left]);
        let length = self.module.emit_word(Op::Select, &[whole, stretch, left]);
        self.module.emit_value_as(end, Op::IAdd, self.module.u32, [begin, length].map(Operand::IdRef));
        for code in parts {
            let before = self.module.id();
            let mut round_loop = LoopBuilder::new(&mut self.module);
            let number = self.module.constant(code.part.thread as u32);
            let is_role = self.module.emit_bool(Op::IEqual, &[place.role, number]);
            self.module.continue_at(before);
            let round = round_loop.carry_counter(&mut self.module, begin, one);
            round_loop.enter(&mut self.module, before);
            let more = self.module.emit_bool(Op::ULessThan, &[round, end]);
            let runs = self.module.emit_bool(Op::LogicalAnd, &[is_role, more]);
            round_loop.begin_body_if(&mut self.module, runs);
            let (instance, targets) = self.instance_and_targets(place, round)?;
            self.emit_segment(std::slice::from_ref(code), place, instance, &targets, registers)?;
            round_loop.end_body(&mut self.module);
            if let Some(before) = &mut surplus_of_stretch {
                // Also if the end of the stretch was computed incorrectly.
                let past = [end, rounds].map(|last| self.module.emit_bool(Op::ULessThan, &[last, round]));
                let past = self.module.emit_bool(Op::LogicalOr, &past);
                let is_surplus = self.module.emit_bool(Op::LogicalAnd, &[is_role, past]);
                let more = self.module.emit_word(Op::Select, &[is_surplus, one, zero]);
                *before = self.module.emit_word(Op::IAdd, &[*before, more]);
            }
        }
        if let (Some((_, next)), Some(last)) = (surplus, surplus_of_stretch) {
            self.module.emit_value_as(next, Op::IAdd, self.module.u32, [last, zero].map(Operand::IdRef));
        }
        stretch_loop.end_body(&mut self.module);
        if let Some((surplus, _)) = surplus {
            self.count_surplus_round(zero, surplus);
        }
        Ok(())
    }

    /// Returns the instance of a round, and the targets of its paths.
    fn instance_and_targets(
        &mut self,
        place: &InvocationStart,
        round: Word,
    ) -> Result<(Word, Vec<(ReferencePath, AccessTarget)>), Rule> {
        let instance = instance_index(self, &place.seat, round);
        let targets = self.access_targets(instance, place)?;
        Ok((instance, targets))
    }
}
