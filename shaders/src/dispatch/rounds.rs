//! The rounds of a kernel: one loop for all threads, or a loop for each between two rendezvous.

use litmus::InterlockEnd;
use rspirv::dr::Operand;
use rspirv::spirv::{Op, Word};
use spirv_reader::semantics_word;

use super::place::{Due, InvocationStart, RendezvousValues};
use super::{Between, DispatchEmitter, SegmentCode};
use crate::contract::{Arithmetic, Parameter, instance_of};
use crate::flow;
use crate::kernel::CompileError;
use crate::loops::Loop;
use crate::memory::{AccessTarget, ReferencePath};
use crate::rules::Rule;
use crate::segments;
use crate::stress::Pressure;
use crate::thread::{Registers, scope_operand};

/// The values around the rounds, computed in the first block.
pub(super) struct Rounds {
    /// The first block.
    pub entry: Word,
    pub place: InvocationStart,
    /// If each invocation runs every thread, its place for each, in their order; else empty.
    pub every: Vec<InvocationStart>,
    pub meeting: Option<RendezvousValues>,
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
            && parts.iter().all(|code| flow::between_loops(&code.steps).len() == 1)
    }

    /// Returns true if each invocation runs every thread; the threads of an instance still run in separate
    /// workgroups.
    pub(super) fn is_parallel(&self, only: &Between) -> bool {
        let parts = &only.parts;
        self.config.parallel
            && self.config.variant.stage.has_workgroups()
            && self.company.classes.is_none()
            && only.barrier.is_none()
            && only.shared.is_none()
            && self.layout.subgroup_size.is_none()
            && !self.layout.divided
            && parts.len() > 1
            && self.layout.classes.len() == parts.len()
            && self.workgroup_storages.is_empty()
            && parts.iter().all(|code| flow::between_loops(&code.steps).len() == 1)
    }

    /// Emits the only round of overlapping fragments, whose sections must not be in a loop or a branch.
    pub(super) fn one_round(
        &mut self,
        around: &Rounds,
        codes: &[Between],
        registers: &mut [Registers],
    ) -> Result<(), CompileError> {
        let round = self.module.constant(0);
        let (instance, targets) = self.round(&around.place, round)?;
        for Between { parts, section, .. } in codes {
            self.segment(parts, &around.place, instance, &targets, registers)?;
            match section {
                Some(InterlockEnd::Begin) => self.module.effect(Op::BeginInvocationInterlockEXT, []),
                Some(InterlockEnd::End) => self.module.effect(Op::EndInvocationInterlockEXT, []),
                None => {}
            }
        }
        Ok(())
    }

    /// Emits one loop for all roles.
    pub(super) fn rounds_together(
        &mut self,
        around: &Rounds,
        pressure: Option<Pressure>,
        codes: &[Between],
        registers: &mut [Registers],
    ) -> Result<(), CompileError> {
        let Rounds { entry, place, every, .. } = around;
        let rounds = self.parameter(Parameter::Rounds);
        let mut turns = Loop::new(&mut self.module);
        let (zero, one) = (self.module.constant(0), self.module.constant(1));
        let round = turns.count(&mut self.module, zero, one);
        let meeting =
            around.meeting.map(|meeting| (meeting, self.carry_meeting(&meeting, Due::Counted, &mut turns)));
        turns.enter(&mut self.module, *entry);
        let more = self.module.truth(Op::ULessThan, &[round, rounds]);
        turns.goes_on_if(&mut self.module, more);
        let shared = match every.is_empty() {
            true => Some(self.round(place, round)?),
            false => None,
        };
        if let Some((_, targets)) = &shared {
            self.initialize_workgroup(place, targets);
        }
        if let Some((meeting, carried)) = &meeting {
            self.meet(meeting, carried, around.local);
        }
        if let Some(pressure) = pressure {
            pressure.emit(&mut self.module, self.config.variant.model, self.config.device_scope);
        }
        let Some((instance, targets)) = shared else {
            for (code, place) in codes.iter().flat_map(|between| &between.parts).zip(every) {
                let (instance, targets) = self.round(place, round)?;
                self.segment(std::slice::from_ref(code), place, instance, &targets, registers)?;
            }
            turns.end(&mut self.module);
            self.count_surplus_round(rounds, round);
            return Ok(());
        };
        for Between { parts, barrier, shared, .. } in codes {
            self.segment(parts, place, instance, &targets, registers)?;
            if let Some(shared) = shared {
                self.shared(shared, place, instance, &targets, registers)?;
            }
            if let Some(barrier) = barrier {
                self.barrier(barrier)?;
            }
        }
        self.finish_workgroup(place, instance, &targets);
        turns.end(&mut self.module);
        self.count_surplus_round(rounds, round);
        Ok(())
    }

    /// Emits a control barrier, or half of a split one, for all invocations that reach it.
    pub(super) fn barrier(&mut self, barrier: &segments::Meeting) -> Result<(), Rule> {
        let scope = |scope| scope_operand(scope, self.config.variant);
        let (execution, memory) = (scope(barrier.execution)?, scope(barrier.memory)?);
        let execution = self.module.constant(execution);
        let memory = self.module.constant(memory);
        let semantics = self.module.constant(semantics_word(barrier.semantics));
        self.module.effect(
            barrier.op(),
            [Operand::IdScope(execution), Operand::IdScope(memory), Operand::IdMemorySemantics(semantics)],
        );
        Ok(())
    }

    /// Emits a loop over rendezvous that contains, for each role, a loop over the rounds up to the next one.
    ///
    /// CPU drivers execute the code of all roles and of the rendezvous with inactive lanes. With this
    /// structure they do so once per rendezvous instead of once per round. Every lane enters every loop, and
    /// leaves the loops of other roles immediately.
    pub(super) fn rounds_by_thread(
        &mut self,
        around: &Rounds,
        parts: &[SegmentCode],
        registers: &mut [Registers],
    ) -> Result<(), CompileError> {
        let Rounds { entry, place, .. } = around;
        let rounds = self.parameter(Parameter::Rounds);
        let mut stretches = Loop::new(&mut self.module);
        let (zero, one) = (self.module.constant(0), self.module.constant(1));
        // Without rendezvous, all rounds are one stretch.
        let stretch = around.meeting.map_or(rounds, |meeting| {
            let interval = self.parameter(Parameter::Interval);
            let meets = self.module.truth(Op::INotEqual, &[meeting.spin, zero]);
            self.module.word(Op::Select, &[meets, interval, rounds])
        });
        let (begin, end) = stretches.carry(&mut self.module, zero);
        let surplus = self.signs().then(|| stretches.carry(&mut self.module, zero));
        let mut surplus_of_stretch = surplus.map(|(before, _)| before);
        let meeting = around
            .meeting
            .map(|meeting| (meeting, self.carry_meeting(&meeting, Due::Always, &mut stretches)));
        stretches.enter(&mut self.module, *entry);
        // The last stretch ends exactly at `rounds`. With `<`, a compiler that mistakes it for `<=` would
        // create an infinite loop of empty stretches.
        let more = self.module.truth(Op::INotEqual, &[begin, rounds]);
        stretches.goes_on_if(&mut self.module, more);
        if let Some((meeting, carried)) = &meeting {
            self.meet(meeting, carried, around.local);
        }
        let left = self.module.word(Op::ISub, &[rounds, begin]);
        let whole = self.module.truth(Op::ULessThan, &[stretch, left]);
        let length = self.module.word(Op::Select, &[whole, stretch, left]);
        self.module.value_as(end, Op::IAdd, self.module.u32, [begin, length].map(Operand::IdRef));
        for code in parts {
            let before = self.module.id();
            let mut turns = Loop::new(&mut self.module);
            let number = self.module.constant(code.part.thread as u32);
            let mine = self.module.truth(Op::IEqual, &[place.role, number]);
            self.module.branch(before);
            self.module.begin(before);
            let round = turns.count(&mut self.module, begin, one);
            turns.enter(&mut self.module, before);
            let more = self.module.truth(Op::ULessThan, &[round, end]);
            let plays = self.module.truth(Op::LogicalAnd, &[mine, more]);
            turns.goes_on_if(&mut self.module, plays);
            let (instance, targets) = self.round(place, round)?;
            self.segment(std::slice::from_ref(code), place, instance, &targets, registers)?;
            turns.end(&mut self.module);
            if let Some(before) = &mut surplus_of_stretch {
                // Also if the end of the stretch was computed incorrectly.
                let past = [end, rounds].map(|last| self.module.truth(Op::ULessThan, &[last, round]));
                let past = self.module.truth(Op::LogicalOr, &past);
                let own = self.module.truth(Op::LogicalAnd, &[mine, past]);
                let more = self.module.word(Op::Select, &[own, one, zero]);
                *before = self.module.word(Op::IAdd, &[*before, more]);
            }
        }
        if let (Some((_, next)), Some(last)) = (surplus, surplus_of_stretch) {
            self.module.value_as(next, Op::IAdd, self.module.u32, [last, zero].map(Operand::IdRef));
        }
        stretches.end(&mut self.module);
        if let Some((surplus, _)) = surplus {
            self.count_surplus_round(zero, surplus);
        }
        Ok(())
    }

    /// Returns the instance of a round, and the targets of its paths.
    fn round(
        &mut self,
        place: &InvocationStart,
        round: Word,
    ) -> Result<(Word, Vec<(ReferencePath, AccessTarget)>), Rule> {
        let instance = instance_of(self, &place.seat, round);
        let targets = self.targets(instance, place)?;
        Ok((instance, targets))
    }
}
