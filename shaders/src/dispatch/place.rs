//! The formulas of the contract: which thread of which instance an invocation plays, where it lies, when groups meet.

use rspirv::dr::Operand;
use rspirv::spirv::{self, Op, Word};

use super::{Emitter, Parameter};

/// What an invocation knows before the first round.
pub(super) struct Place {
    /// Index of the thread that it plays; the number of threads where it plays none.
    pub role: Word,
    /// Instance within a round.
    pub instance: Word,
    /// Instances of a round.
    pub round_size: Word,
    /// Instances of the dispatch.
    pub total: Word,
}

impl Emitter<'_> {
    /// Class `(w / p) mod C` and group `(w / (p × C)) × p + w mod p` of workgroup `w`.
    pub(super) fn class_and_group(&mut self, workgroup: Word) -> (Word, Word) {
        let pairing = self.parameter(Parameter::Pairing);
        let classes = self.module.constant(self.layout.classes.len() as u32);
        let run = self.module.word(Op::UDiv, &[workgroup, pairing]);
        let class = self.module.word(Op::UMod, &[run, classes]);
        let turn = self.module.word(Op::UDiv, &[run, classes]);
        let first = self.module.word(Op::IMul, &[turn, pairing]);
        let rest = self.module.word(Op::UMod, &[workgroup, pairing]);
        (class, self.module.word(Op::IAdd, &[first, rest]))
    }

    /// The thread and the slot that a lane plays where threads share workgroups.
    pub(super) fn role_and_slot(&mut self, class: Word, subgroup: Word, lane: Word) -> (Word, Word) {
        let lanes = self.module.constant(self.layout.lanes);
        let share = self.module.word(Op::UDiv, &[lane, lanes]);
        let slot = self.module.word(Op::UMod, &[lane, lanes]);
        let mut role = self.module.constant(self.layout.roles.len() as u32);
        for (index, wanted) in self.layout.roles.iter().enumerate() {
            let matches = [(class, wanted.class), (subgroup, wanted.subgroup), (share, wanted.share)].map(
                |(value, wanted)| {
                    let wanted = self.module.constant(wanted);
                    self.module.truth(Op::IEqual, &[value, wanted])
                },
            );
            let both = self.module.truth(Op::LogicalAnd, &[matches[0], matches[1]]);
            let all = self.module.truth(Op::LogicalAnd, &[both, matches[2]]);
            let index = self.module.constant(index as u32);
            role = self.module.word(Op::Select, &[all, index, role]);
        }
        (role, slot)
    }

    /// The instance of a slot: the co-prime permutation of groups and lanes.
    pub(super) fn place(&mut self, role: Word, class: Word, group: Word, slot: Word) -> Place {
        let groups = self.parameter(Parameter::Groups);
        let lanes = self.module.constant(self.layout.lanes);
        let class = match self.company.first_class {
            0 => class,
            first => {
                let first = self.module.constant(first);
                self.module.word(Op::IAdd, &[class, first])
            }
        };
        let [group, lane] = [
            (group, Parameter::GroupMultiplier, Parameter::GroupOffset, groups),
            (slot, Parameter::LaneMultiplier, Parameter::LaneOffset, lanes),
        ]
        .map(|(index, multiplier, offset, modulus)| {
            let multiplier = self.parameter(multiplier);
            let offset = self.parameter(offset);
            let scaled = self.module.word(Op::IMul, &[index, multiplier]);
            let shift = self.module.word(Op::IMul, &[class, offset]);
            let sum = self.module.word(Op::IAdd, &[scaled, shift]);
            self.module.word(Op::UMod, &[sum, modulus])
        });
        let first = self.module.word(Op::IMul, &[group, lanes]);
        let instance = self.module.word(Op::IAdd, &[first, lane]);
        let round_size = self.module.word(Op::IMul, &[groups, lanes]);
        let rounds = self.parameter(Parameter::Rounds);
        let total = self.module.word(Op::IMul, &[rounds, round_size]);
        Place { role, instance, round_size, total }
    }

    /// Pointers to the locations of an instance, by location: word `n × stride + s × spacing` through each reference.
    pub(super) fn location_pointers(
        &mut self,
        instance: Word,
        stride: Word,
        spacing: Word,
    ) -> Vec<Option<Word>> {
        let base = self.module.word(Op::IMul, &[instance, stride]);
        let mut indices: Vec<Option<Word>> = vec![None; self.storage_numbers.len()];
        let mut pointers = Vec::with_capacity(self.references.len());
        for (location, number) in self.storage_numbers.iter().enumerate() {
            let Some(buffer) = self.references.get(location).copied().flatten() else {
                pointers.push(None);
                continue;
            };
            let index = match indices.get(*number as usize).copied().flatten() {
                Some(index) => index,
                None => {
                    let storage = self.module.constant(*number);
                    let offset = self.module.word(Op::IMul, &[storage, spacing]);
                    let index = self.module.word(Op::IAdd, &[base, offset]);
                    if let Some(slot) = indices.get_mut(*number as usize) {
                        *slot = Some(index);
                    }
                    index
                }
            };
            pointers.push(Some(self.element(buffer, index)));
        }
        pointers
    }

    /// The bounded meeting of the workgroups of a group before a round. Every invocation waits for itself, so that no
    /// barrier is needed and whoever gave up goes on alone.
    pub(super) fn meet(
        &mut self,
        counter: Word,
        spin: Word,
        round: Word,
        local: Word,
        patience: Word,
        left: Word,
    ) {
        let [zero, one] = [0, 1].map(|value| self.module.constant(value));
        let scope = if self.config.device_scope { spirv::Scope::Device } else { spirv::Scope::QueueFamily };
        let scope = Operand::IdScope(self.module.constant(scope as u32));
        let relaxed = Operand::IdMemorySemantics(zero);
        let [arrive_if, arrive, wait, header, test, look, again, waited, met] =
            std::array::from_fn(|_| self.module.id());
        let before = self.module.id();
        self.module.branch(before);
        self.module.begin(before);
        let wanted = self.module.truth(Op::INotEqual, &[spin, zero]);
        self.module.selection_merge(met);
        self.module.branch_if(wanted, arrive_if, met);

        self.module.begin(arrive_if);
        let first = self.module.truth(Op::IEqual, &[local, zero]);
        self.module.selection_merge(wait);
        self.module.branch_if(first, arrive, wait);
        self.module.begin(arrive);
        let word = self.module.u32;
        self.module.value(
            Op::AtomicIAdd,
            word,
            [Operand::IdRef(counter), scope.clone(), relaxed.clone(), Operand::IdRef(one)],
        );
        self.module.branch(wait);

        self.module.begin(wait);
        let classes = self.module.constant(self.classes_that_meet());
        let meetings = self.module.word(Op::IAdd, &[round, one]);
        let expected = self.module.word(Op::IMul, &[classes, meetings]);
        self.module.branch(header);
        self.module.begin(header);
        let (spent, spent_more) = (self.module.id(), self.module.id());
        self.module.value_as(spent, Op::Phi, word, [zero, wait, spent_more, again].map(Operand::IdRef));
        self.module.loop_merge(waited, again);
        self.module.branch(test);
        self.module.begin(test);
        let patient = self.module.truth(Op::ULessThan, &[spent, patience]);
        self.module.branch_if(patient, look, waited);
        self.module.begin(look);
        let arrived = self.module.value(Op::AtomicLoad, word, [Operand::IdRef(counter), scope, relaxed]);
        let all_here = self.module.truth(Op::UGreaterThanEqual, &[arrived, expected]);
        let rest = self.module.word(Op::ISub, &[patience, spent]);
        self.module.branch_if(all_here, waited, again);
        self.module.begin(again);
        self.module.value_as(spent_more, Op::IAdd, word, [spent, one].map(Operand::IdRef));
        self.module.branch(header);
        self.module.begin(waited);
        let kept = self.module.value(Op::Phi, word, [zero, test, rest, look].map(Operand::IdRef));
        self.module.branch(met);

        self.module.begin(met);
        self.module.value_as(left, Op::Phi, word, [patience, before, kept, waited].map(Operand::IdRef));
    }
}
