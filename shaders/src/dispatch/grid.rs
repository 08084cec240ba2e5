//! Detects invocations that a driver executes outside the dispatch or draw: see "Outside the grid" in
//! [`crate::contract`].

use rspirv::spirv::{Op, Word};

use super::DispatchEmitter;
use crate::contract::{Parameter, WordArithmetic, overflow_word};
use crate::stress::StressParameter;

/// The place of a workgroup in the dispatch.
pub(super) struct WorkgroupNumber {
    /// Its index among the workgroups of the test.
    pub number: Word,
    /// True if it runs memory stress and no thread; `None` in kernels without stress.
    pub is_stress: Option<Word>,
    /// True if the dispatch has no such workgroup; `None` in kernels of one fixed dispatch.
    pub is_surplus: Option<Word>,
}

impl DispatchEmitter<'_> {
    /// Computes the place of the workgroup with the device's index `workgroup`.
    pub(super) fn workgroup_number(&mut self, workgroup: Word) -> WorkgroupNumber {
        if !self.config.has_stress && !self.has_receipts() {
            return WorkgroupNumber { number: workgroup, is_stress: None, is_surplus: None };
        }
        let groups = self.parameter(Parameter::Groups);
        let per_group = if self.parallel { 1 } else { self.layout.classes.len() as u32 };
        let per_group = self.module.constant(per_group);
        let thread_workgroups = self.multiply(per_group, groups);
        let (mut number, mut stresses, mut all) = (workgroup, None, thread_workgroups);
        if self.config.has_stress {
            let block = self.stress_block();
            let [more, multiplier, offset] = [
                StressParameter::Workgroups,
                StressParameter::WorkgroupMultiplier,
                StressParameter::WorkgroupOffset,
            ]
            .map(|parameter| block.load(&mut self.module, parameter));
            all = self.add(thread_workgroups, more);
            let scaled = self.multiply(workgroup, multiplier);
            let shifted = self.add(scaled, offset);
            number = self.remainder(shifted, all);
            stresses = Some(self.module.emit_bool(Op::UGreaterThanEqual, &[number, thread_workgroups]));
        }
        let is_surplus =
            self.has_receipts().then(|| self.module.emit_bool(Op::UGreaterThanEqual, &[workgroup, all]));
        WorkgroupNumber { number, is_stress: stresses, is_surplus }
    }

    /// Emits the condition that an invocation is outside the grid.
    pub(super) fn emit_is_outside_grid(
        &mut self,
        is_surplus: Option<Word>,
        other_axes: Option<Word>,
        local: Word,
        local_is_input: bool,
    ) -> Option<Word> {
        if !self.has_receipts() {
            return None;
        }
        let in_another_axis = other_axes.map(|axes| {
            let zero = self.module.constant(0);
            self.module.emit_bool(Op::INotEqual, &[axes, zero])
        });
        // A computed local index is a remainder modulo the size.
        let past_last = local_is_input.then(|| {
            let size = self.module.constant(self.layout.workgroup_size);
            self.module.emit_bool(Op::UGreaterThanEqual, &[local, size])
        });
        self.emit_any([is_surplus, in_another_axis, past_last])
    }

    /// Combines the conditions by OR; `None` if there are none.
    pub(super) fn emit_any(&mut self, conditions: [Option<Word>; 3]) -> Option<Word> {
        let bool = self.module.bool;
        let either = |left, right| self.module.emit_on_ids(Op::LogicalOr, bool, &[left, right]);
        conditions.into_iter().flatten().reduce(either)
    }

    /// Adds 1 to the overflow word if the condition holds.
    pub(super) fn count_overflow(&mut self, condition: Word) {
        let Some(buffer) = self.rendezvous_buffer.filter(|_| self.has_receipts()) else { return };
        let [counting, counted] = std::array::from_fn(|_| self.module.id());
        self.module.begin_if(condition, counting, counted);
        let [index, one] =
            [overflow_word(self.concurrent_classes()), 1].map(|value| self.module.constant(value));
        let pointer = self.module.word_pointer(buffer, index);
        let relaxed = self.relaxed_order();
        self.module.atomic_add(pointer, relaxed, one);
        self.module.continue_at(counted);
    }

    /// Counts an invocation that left its loop of rounds after too many rounds.
    ///
    /// A compiler that compiles the loop correctly can fold the comparison to false.
    pub(super) fn count_surplus_round(&mut self, rounds: Word, round: Word) {
        if self.has_receipts() {
            let surplus = self.module.emit_bool(Op::ULessThan, &[rounds, round]);
            self.count_overflow(surplus);
        }
    }
}
