//! The formulas of the contract: which thread of which instance an invocation plays, where it lies, when groups meet.

use rspirv::dr::Operand;
use rspirv::spirv::{self, Op, Word};

use super::{Emitter, Parameter};
use crate::variant::MemoryModel;

/// Words between the meeting places of two groups: a cache line each.
const RENDEZVOUS_SPACING: u32 = 16;

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
    /// The instance's place in its workgroup.
    pub lane: Word,
}

impl Emitter<'_> {
    /// Class `(w / p + t) mod C` and group `(w / (p × C)) × p + w mod p` of workgroup `w`.
    pub(super) fn class_and_group(&mut self, workgroup: Word) -> (Word, Word) {
        let pairing = self.parameter(Parameter::Pairing);
        let classes = self.module.constant(self.layout.classes.len() as u32);
        let run = self.module.word(Op::UDiv, &[workgroup, pairing]);
        let turn = self.parameter(Parameter::Turn);
        let turned = self.module.word(Op::IAdd, &[run, turn]);
        let class = self.module.word(Op::UMod, &[turned, classes]);
        let lap = self.module.word(Op::UDiv, &[run, classes]);
        let first = self.module.word(Op::IMul, &[lap, pairing]);
        let rest = self.module.word(Op::UMod, &[workgroup, pairing]);
        (class, self.module.word(Op::IAdd, &[first, rest]))
    }

    /// The thread and the slot that a lane plays where threads share workgroups.
    pub(super) fn role_and_slot(&mut self, class: Word, subgroup: Word, lane: Word) -> (Word, Word) {
        let lanes = self.module.constant(self.layout.lanes);
        let turn = self.parameter(Parameter::Turn);
        let subgroups = self.module.constant(self.layout.subgroups);
        let turned = self.module.word(Op::IAdd, &[subgroup, turn]);
        let subgroup = self.module.word(Op::UMod, &[turned, subgroups]);
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
        Place { role, instance, round_size, total, lane }
    }

    /// What meetings need, in the first block.
    pub(super) fn meeting(&mut self, buffer: Word, group: Word, extra: Option<Word>) -> Meeting {
        let [spacing, zero, one] = [RENDEZVOUS_SPACING, 0, 1].map(|value| self.module.constant(value));
        let index = self.module.word(Op::IMul, &[group, spacing]);
        let interval = self.parameter(Parameter::Interval);
        Meeting {
            counter: self.element(buffer, index),
            spin: self.patience(extra),
            zero,
            one,
            party: self.parameter(Parameter::Party),
            after_meeting: self.module.word(Op::ISub, &[interval, one]),
            hold: self.parameter(Parameter::Hold),
        }
    }

    /// What the kernel's loop carries from one meeting to the next, in the block that begins a round.
    pub(super) fn carry_meeting(
        &mut self,
        meeting: &Meeting,
        due: Due,
        entry: Word,
        continuing: Word,
    ) -> Carried {
        let word = self.module.u32;
        let mut carried = |first: Word| {
            let (now, next) = (self.module.id(), self.module.id());
            let sources = [first, entry, next, continuing].map(Operand::IdRef);
            self.module.value_as(now, Op::Phi, word, sources);
            (now, next)
        };
        Carried {
            patience: carried(meeting.spin),
            until: (due == Due::Counted).then(|| carried(meeting.zero)),
            expected: carried(meeting.party),
        }
    }

    /// The bounded meeting of the workgroups of a group before a round or a stretch of them. Every invocation waits for itself, so that no
    /// barrier is needed and whoever gave up goes on alone.
    pub(super) fn meet(&mut self, meeting: &Meeting, carried: &Carried, local: Word) {
        let Meeting { counter, spin, zero, one, party, after_meeting, hold } = *meeting;
        let Carried { patience: (patience, left), until, expected: (expected, expected_next) } = *carried;
        let glsl = self.config.variant.model == MemoryModel::Glsl450;
        let scope =
            if self.config.device_scope || glsl { spirv::Scope::Device } else { spirv::Scope::QueueFamily };
        let scope = Operand::IdScope(self.module.constant(scope as u32));
        let relaxed = Operand::IdMemorySemantics(zero);
        let [arrive_if, arrive, wait, header, test, look, again, waited] =
            std::array::from_fn(|_| self.module.id());
        let [hold_header, hold_test, hold_look, hold_again, held, met] =
            std::array::from_fn(|_| self.module.id());
        let before = self.module.id();
        self.module.branch(before);
        self.module.begin(before);
        let waits = self.module.truth(Op::INotEqual, &[spin, zero]);
        let due = until.map(|(until, _)| self.module.truth(Op::IEqual, &[until, zero]));
        let wanted = due.map_or(waits, |due| self.module.truth(Op::LogicalAnd, &[waits, due]));
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
        let load = [Operand::IdRef(counter), scope, relaxed];
        let arrived = self.module.value(Op::AtomicLoad, word, load.clone());
        let all_here = self.module.truth(Op::UGreaterThanEqual, &[arrived, expected]);
        let rest = self.module.word(Op::ISub, &[patience, spent]);
        self.module.branch_if(all_here, waited, again);
        self.module.begin(again);
        self.module.value_as(spent_more, Op::IAdd, word, [spent, one].map(Operand::IdRef));
        self.module.branch(header);
        self.module.begin(waited);
        let kept = self.module.value(Op::Phi, word, [zero, test, rest, look].map(Operand::IdRef));

        // Whoever comes last sees all at once, and the others only when the news has reached them.
        let at_once = self.module.truth(Op::IEqual, &[kept, patience]);
        let had_patience = self.module.truth(Op::INotEqual, &[patience, zero]);
        let last = self.module.truth(Op::LogicalAnd, &[at_once, had_patience]);
        let pause = self.module.word(Op::Select, &[last, hold, zero]);
        self.module.branch(hold_header);
        self.module.begin(hold_header);
        let (looked, looked_more) = (self.module.id(), self.module.id());
        let sources = [zero, waited, looked_more, hold_again].map(Operand::IdRef);
        self.module.value_as(looked, Op::Phi, word, sources);
        self.module.loop_merge(held, hold_again);
        self.module.branch(hold_test);
        self.module.begin(hold_test);
        let holds = self.module.truth(Op::ULessThan, &[looked, pause]);
        self.module.branch_if(holds, hold_look, held);
        self.module.begin(hold_look);
        self.module.value(Op::AtomicLoad, word, load);
        self.module.branch(hold_again);
        self.module.begin(hold_again);
        self.module.value_as(looked_more, Op::IAdd, word, [looked, one].map(Operand::IdRef));
        self.module.branch(hold_header);
        self.module.begin(held);
        self.module.branch(met);

        self.module.begin(met);
        self.module.value_as(left, Op::Phi, word, [patience, before, kept, held].map(Operand::IdRef));
        let Some(((until, until_next), due)) = until.zip(due) else {
            self.module.value_as(expected_next, Op::IAdd, word, [expected, party].map(Operand::IdRef));
            return;
        };
        let sooner = self.module.word(Op::ISub, &[until, one]);
        let select = |due, yes, no| [due, yes, no].map(Operand::IdRef);
        self.module.value_as(until_next, Op::Select, word, select(due, after_meeting, sooner));
        let more = self.module.word(Op::IAdd, &[expected, party]);
        self.module.value_as(expected_next, Op::Select, word, select(due, more, expected));
    }
}

/// What meetings need, known before the first round.
#[derive(Clone, Copy)]
pub(super) struct Meeting {
    /// Pointer to the group's counter.
    pub counter: Word,
    pub spin: Word,
    pub zero: Word,
    pub one: Word,
    /// Who must have arrived at each meeting.
    pub party: Word,
    /// Rounds without a meeting after each round with one.
    pub after_meeting: Word,
    pub hold: Word,
}

/// In which turns of a loop partners meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// In those that the interval says.
    Counted,
    /// In each.
    Always,
}

/// Values of this round and ids of those of the next.
#[derive(Clone, Copy)]
pub(super) struct Carried {
    /// How long to wait: what earlier rounds have left of the parameter.
    patience: (Word, Word),
    /// Rounds until the next meeting; 0: before this one. Absent where each turn of the loop has one.
    until: Option<(Word, Word)>,
    /// What the counter shows when all have arrived at the next meeting.
    expected: (Word, Word),
}
