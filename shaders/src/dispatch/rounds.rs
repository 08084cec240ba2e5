//! The rounds of a kernel: one loop for all threads, or a loop for each from one meeting to the next.

use rspirv::dr::Operand;
use rspirv::spirv::{Op, Word};

use super::place::{Due, Meeting, Place};
use super::{Code, Emitter, Parameter};
use crate::flow;
use crate::kernel::CompileError;
use crate::memory::{Path, Target};
use crate::segments;
use crate::semantics::semantics_word;
use crate::stress::Pressure;
use crate::thread::{Registers, scope_operand};

/// What surrounds the rounds: made in the first block.
pub(super) struct Rounds {
    /// The first block.
    pub entry: Word,
    pub place: Place,
    pub meeting: Option<Meeting>,
    /// The invocation's number in its workgroup.
    pub local: Word,
}

impl Emitter<'_> {
    /// Whether each thread may have a loop of rounds of its own. Lanes of one subgroup may not, since they would play one
    /// thread after the other; what is done together in each round has to stay together, and so do loops of the test: a
    /// driver has been seen to keep lanes going that never entered one.
    pub(super) fn has_thread_loops(&self, parts: &[Code]) -> bool {
        self.config.thread_loops
            && self.layout.subgroup_size.is_none()
            && self.layout.classes.len() == parts.len()
            && self.workgroup_storages.is_empty()
            && parts.iter().all(|code| flow::between_loops(&code.steps).len() == 1)
    }

    /// One loop, in whose rounds every role plays its thread.
    pub(super) fn rounds_together(
        &mut self,
        around: &Rounds,
        pressure: Option<Pressure>,
        codes: &[(Vec<Code>, Option<segments::Meeting>)],
        registers: &mut [Registers],
    ) -> Result<(), CompileError> {
        let Rounds { entry, place, .. } = around;
        let rounds = self.parameter(Parameter::Rounds);
        let [header, test, body, continuing, merge] = std::array::from_fn(|_| self.module.id());
        let (zero, one) = (self.module.constant(0), self.module.constant(1));
        self.module.branch(header);
        self.module.begin(header);
        let round_type = self.module.u32;
        let (round, next_round) = (self.module.id(), self.module.id());
        self.module.value_as(
            round,
            Op::Phi,
            round_type,
            [zero, *entry, next_round, continuing].map(Operand::IdRef),
        );
        let meeting = around.meeting.map(|meeting| {
            let carried = self.carry_meeting(&meeting, Due::Counted, *entry, continuing);
            (meeting, carried)
        });
        self.module.loop_merge(merge, continuing);
        self.module.branch(test);
        self.module.begin(test);
        let more = self.module.truth(Op::ULessThan, &[round, rounds]);
        self.module.branch_if(more, body, merge);

        self.module.begin(body);
        let (instance, targets) = self.round(place, round);
        self.initialize_workgroup(place, &targets);
        if let Some((meeting, carried)) = &meeting {
            self.meet(meeting, carried, around.local);
        }
        if let Some(pressure) = pressure {
            pressure.emit(&mut self.module, self.config.variant.model, self.config.device_scope);
        }
        for (parts, barrier) in codes {
            self.segment(parts, place, instance, &targets, registers)?;
            if let Some(barrier) = barrier {
                let scope = |scope| scope_operand(scope, self.config.variant);
                let (execution, memory) = (scope(barrier.execution)?, scope(barrier.memory)?);
                let execution = self.module.constant(execution);
                let memory = self.module.constant(memory);
                let semantics = self.module.constant(semantics_word(barrier.semantics));
                self.module.effect(
                    Op::ControlBarrier,
                    [
                        Operand::IdScope(execution),
                        Operand::IdScope(memory),
                        Operand::IdMemorySemantics(semantics),
                    ],
                );
            }
        }
        self.finish_workgroup(place, instance, &targets);
        self.module.branch(continuing);
        self.module.begin(continuing);
        self.module.value_as(next_round, Op::IAdd, round_type, [round, one].map(Operand::IdRef));
        self.module.branch(header);
        self.module.begin(merge);
        Ok(())
    }

    /// A loop over meetings, and in it, for each role, a loop over the rounds up to the next one. CPU drivers execute the
    /// code of all roles with lanes switched off, and that of the meeting too: so they do it once a meeting and not once a
    /// round. Every lane enters every loop, and leaves those of other roles at once.
    pub(super) fn rounds_by_thread(
        &mut self,
        around: &Rounds,
        parts: &[Code],
        registers: &mut [Registers],
    ) -> Result<(), CompileError> {
        let Rounds { entry, place, .. } = around;
        let rounds = self.parameter(Parameter::Rounds);
        let [header, test, body, continuing, merge] = std::array::from_fn(|_| self.module.id());
        let (zero, one) = (self.module.constant(0), self.module.constant(1));
        // Without meetings all rounds are one stretch.
        let stretch = around.meeting.map_or(rounds, |meeting| {
            let interval = self.parameter(Parameter::Interval);
            let meets = self.module.truth(Op::INotEqual, &[meeting.spin, zero]);
            self.module.word(Op::Select, &[meets, interval, rounds])
        });
        let word = self.module.u32;
        self.module.branch(header);
        self.module.begin(header);
        let (begin, end) = (self.module.id(), self.module.id());
        self.module.value_as(begin, Op::Phi, word, [zero, *entry, end, continuing].map(Operand::IdRef));
        let meeting = around.meeting.map(|meeting| {
            let carried = self.carry_meeting(&meeting, Due::Always, *entry, continuing);
            (meeting, carried)
        });
        self.module.loop_merge(merge, continuing);
        self.module.branch(test);
        self.module.begin(test);
        let more = self.module.truth(Op::ULessThan, &[begin, rounds]);
        self.module.branch_if(more, body, merge);

        self.module.begin(body);
        if let Some((meeting, carried)) = &meeting {
            self.meet(meeting, carried, around.local);
        }
        let left = self.module.word(Op::ISub, &[rounds, begin]);
        let whole = self.module.truth(Op::ULessThan, &[stretch, left]);
        let length = self.module.word(Op::Select, &[whole, stretch, left]);
        self.module.value_as(end, Op::IAdd, word, [begin, length].map(Operand::IdRef));
        for code in parts {
            let [before, header, test, body, continuing, merge] = std::array::from_fn(|_| self.module.id());
            let number = self.module.constant(code.part.thread as u32);
            let mine = self.module.truth(Op::IEqual, &[place.role, number]);
            self.module.branch(before);
            self.module.begin(before);
            self.module.branch(header);
            self.module.begin(header);
            let (round, next_round) = (self.module.id(), self.module.id());
            let sources = [begin, before, next_round, continuing].map(Operand::IdRef);
            self.module.value_as(round, Op::Phi, word, sources);
            self.module.loop_merge(merge, continuing);
            self.module.branch(test);
            self.module.begin(test);
            let more = self.module.truth(Op::ULessThan, &[round, end]);
            let plays = self.module.truth(Op::LogicalAnd, &[mine, more]);
            self.module.branch_if(plays, body, merge);
            self.module.begin(body);
            let (instance, targets) = self.round(place, round);
            self.segment(std::slice::from_ref(code), place, instance, &targets, registers)?;
            self.module.branch(continuing);
            self.module.begin(continuing);
            self.module.value_as(next_round, Op::IAdd, word, [round, one].map(Operand::IdRef));
            self.module.branch(header);
            self.module.begin(merge);
        }
        self.module.branch(continuing);
        self.module.begin(continuing);
        self.module.branch(header);
        self.module.begin(merge);
        Ok(())
    }

    /// The instance of a round, and where its memory lies.
    fn round(&mut self, place: &Place, round: Word) -> (Word, Vec<(Path, Target)>) {
        let (stride, spacing) = (self.parameter(Parameter::Stride), self.parameter(Parameter::Spacing));
        let earlier = self.module.word(Op::IMul, &[round, place.round_size]);
        let instance = self.module.word(Op::IAdd, &[earlier, place.instance]);
        let targets = self.targets(instance, stride, spacing, place);
        (instance, targets)
    }
}
