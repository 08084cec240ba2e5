//! The thread and instance of an invocation, and the rendezvous of groups.

use rspirv::dr::Operand;
use rspirv::spirv::{self, Op, Word};

use super::{DispatchEmitter, SegmentCode};
use crate::contract::{Arithmetic, FIRST_RECEIPT, Parameter, Seat, receipt, rendezvous_spacing, seat};
use crate::loops::Loop;
use crate::rules::Rule;
use crate::variant::MemoryModel;

/// The values of an invocation before the first round.
pub(super) struct InvocationStart {
    /// Index of its thread; the number of threads if it runs none.
    pub role: Word,
    pub seat: Seat<Word>,
}

/// The receipt of a workgroup.
pub(super) struct Receipt {
    /// The lengths of the kernel's buffers.
    lengths: Vec<Word>,
    /// The number of instances of the dispatch.
    total: Word,
    /// The word to add the receipt to.
    pointer: Word,
    pub zero: Word,
    one: Word,
}

impl DispatchEmitter<'_> {
    /// Returns the places of a slot for each thread, if each invocation runs every thread.
    pub(super) fn places(
        &mut self,
        parts: &[SegmentCode],
        (group, slot): (Word, Word),
        extra: Option<Word>,
    ) -> Vec<InvocationStart> {
        let roles =
            parts.iter().filter_map(|code| Some((code, self.layout.roles.get(code.part.thread)?.class)));
        let roles: Vec<(u32, u32)> = roles.map(|(code, class)| (code.part.thread as u32, class)).collect();
        let mut places = Vec::with_capacity(roles.len());
        for (thread, class) in roles {
            let [thread, class] = [thread, class].map(|number| self.module.constant(number));
            let role = self.role_or_none(thread, extra);
            let sizes = (self.layout.lanes, self.company.first_class);
            places.push(InvocationStart { role, seat: seat(self, sizes, (class, group), slot) });
        }
        places
    }

    /// Returns the thread and the slot of a lane, if threads share workgroups.
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

    /// Returns thread and slot in a workgroup with virtual subgroups: consecutive invocations that run one
    /// role. Surplus invocations idle.
    pub(super) fn role_and_slot_by_number(&mut self, class: Word, local: Word) -> (Word, Word) {
        let lanes = self.module.constant(self.layout.lanes);
        let division = self.module.word(Op::UDiv, &[local, lanes]);
        let lane = self.module.word(Op::UMod, &[local, lanes]);
        let (role, slot) = self.role_and_slot(class, division, lane);
        let playing = self.layout.lanes.saturating_mul(self.layout.subgroups);
        if playing >= self.layout.workgroup_size {
            return (role, slot);
        }
        let [playing, none] =
            [playing, self.layout.roles.len() as u32].map(|word| self.module.constant(word));
        let idle = self.module.truth(Op::UGreaterThanEqual, &[local, playing]);
        (self.module.word(Op::Select, &[idle, none, role]), slot)
    }

    /// Leaves the receipt of a workgroup, in its first invocation.
    pub(super) fn sign(
        &mut self,
        place: &InvocationStart,
        (class, group): (Word, Word),
        local: Word,
        extra: Option<Word>,
    ) -> Result<(), Rule> {
        // Drawn invocations leave it when they claim a slot, because repeated ones must not.
        if !self.config.variant.stage.has_workgroups() {
            return Ok(());
        }
        let Some(receipt) = self.receipt(place, (class, group)) else { return Ok(()) };
        let signer = match extra {
            Some(extra) => self.module.word(Op::Select, &[extra, receipt.one, local]),
            None => local,
        };
        let signs = self.module.truth(Op::IEqual, &[signer, receipt.zero]);
        self.leave(&receipt, signs)
    }

    /// Computes the position and the parts of a workgroup's receipt that all invocations know. It must be in
    /// the first block, because it loads every parameter.
    pub(super) fn receipt(
        &mut self,
        place: &InvocationStart,
        (class, group): (Word, Word),
    ) -> Option<Receipt> {
        let buffer = self.rendezvous_buffer.filter(|_| self.signs())?;
        let buffers: Vec<Word> = self.buffers.iter().map(|own| own.variable).collect();
        let lengths: Vec<Word> = buffers.into_iter().map(|buffer| self.module.length(buffer)).collect();
        for parameter in Parameter::ALL {
            self.parameter(parameter);
        }
        let spacing = rendezvous_spacing(self.classes_that_meet());
        let [spacing, first, zero, one] = [spacing, FIRST_RECEIPT + self.company.first_class, 0, 1]
            .map(|value| self.module.constant(value));
        let area = self.module.word(Op::IMul, &[group, spacing]);
        let word = self.module.word(Op::IAdd, &[class, first]);
        let index = self.module.word(Op::IAdd, &[area, word]);
        Some(Receipt {
            lengths,
            total: place.seat.total,
            pointer: self.module.element(buffer, index),
            zero,
            one,
        })
    }

    /// Leaves a receipt if the condition holds; only then are the salts read.
    pub(super) fn leave(&mut self, own: &Receipt, signs: Word) -> Result<(), Rule> {
        let [signing, signed] = std::array::from_fn(|_| self.module.id());
        self.module.selection_merge(signed);
        self.module.branch_if(signs, signing, signed);
        self.module.begin(signing);
        let shown = [own.lengths.clone(), self.salts(own.total)?].concat();
        let identity = self.module.identity();
        let added = receipt(self, identity, &shown);
        let [scope, relaxed] = self.meets_at();
        let pointer = Operand::IdRef(own.pointer);
        let operands = [pointer.clone(), scope.clone(), relaxed.clone()];
        let before = self.module.value(Op::AtomicLoad, self.module.u32, operands);
        let sum = self.module.word(Op::IAdd, &[before, added]);
        self.module.effect(Op::AtomicStore, [pointer, scope, relaxed, Operand::IdRef(sum)]);
        self.module.branch(signed);
        self.module.begin(signed);
        Ok(())
    }

    /// Returns scope and semantics of the rendezvous and of receipts.
    pub(super) fn meets_at(&mut self) -> [Operand; 2] {
        let glsl = self.config.variant.model == MemoryModel::Glsl450;
        let scope =
            if self.config.device_scope || glsl { spirv::Scope::Device } else { spirv::Scope::QueueFamily };
        let relaxed = self.module.constant(0);
        [Operand::IdScope(self.module.constant(scope as u32)), Operand::IdMemorySemantics(relaxed)]
    }

    /// Computes the values for rendezvous, in the first block.
    pub(super) fn meeting(&mut self, buffer: Word, group: Word, extra: Option<Word>) -> RendezvousValues {
        let spacing = rendezvous_spacing(self.classes_that_meet());
        let [spacing, zero, one] = [spacing, 0, 1].map(|value| self.module.constant(value));
        let index = self.module.word(Op::IMul, &[group, spacing]);
        let interval = self.parameter(Parameter::Interval);
        RendezvousValues {
            counter: self.module.element(buffer, index),
            spin: self.patience(extra),
            zero,
            one,
            party: self.parameter(Parameter::Party),
            after_meeting: self.module.word(Op::ISub, &[interval, one]),
            hold: self.parameter(Parameter::Hold),
        }
    }

    /// Declares the loop variables between two rendezvous.
    pub(super) fn carry_meeting(
        &mut self,
        meeting: &RendezvousValues,
        due: Due,
        turns: &mut Loop,
    ) -> Carried {
        let mut carried = |first: Word| turns.carry(&mut self.module, first);
        Carried {
            patience: carried(meeting.spin),
            until: (due == Due::Counted).then(|| carried(meeting.zero)),
            expected: carried(meeting.party),
        }
    }

    /// Emits the bounded rendezvous of a group's workgroups before a round or a stretch of rounds. Every
    /// invocation waits separately, so no barrier is needed, and an invocation that reaches its bound
    /// continues.
    pub(super) fn meet(&mut self, meeting: &RendezvousValues, carried: &Carried, local: Word) {
        let RendezvousValues { counter, spin, zero, one, party, after_meeting, hold } = *meeting;
        let Carried { patience: (patience, left), until, expected: (expected, expected_next) } = *carried;
        let [scope, relaxed] = self.meets_at();
        let [arrive_if, arrive, wait] = std::array::from_fn(|_| self.module.id());
        let mut looks = Loop::new(&mut self.module);
        let mut holding = Loop::new(&mut self.module);
        let [met, before] = std::array::from_fn(|_| self.module.id());
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
        let spent = looks.count(&mut self.module, zero, one);
        looks.enter(&mut self.module, wait);
        let patient = self.module.truth(Op::ULessThan, &[spent, patience]);
        looks.goes_on_if(&mut self.module, patient);
        let load = [Operand::IdRef(counter), scope, relaxed];
        let arrived = self.module.value(Op::AtomicLoad, word, load.clone());
        let all_here = self.module.truth(Op::UGreaterThanEqual, &[arrived, expected]);
        let rest = self.module.word(Op::ISub, &[patience, spent]);
        looks.end_unless(&mut self.module, all_here);
        let kept = self.module.value(Op::Phi, word, [zero, looks.test, rest, looks.body].map(Operand::IdRef));

        // Only the last invocation to arrive succeeds with its first poll; the others detect it later.
        let at_once = self.module.truth(Op::IEqual, &[kept, patience]);
        let had_patience = self.module.truth(Op::INotEqual, &[patience, zero]);
        let last = self.module.truth(Op::LogicalAnd, &[at_once, had_patience]);
        let pause = self.module.word(Op::Select, &[last, hold, zero]);
        let looked = holding.count(&mut self.module, zero, one);
        holding.enter(&mut self.module, looks.merge);
        let holds = self.module.truth(Op::ULessThan, &[looked, pause]);
        holding.goes_on_if(&mut self.module, holds);
        self.module.value(Op::AtomicLoad, word, load);
        holding.end(&mut self.module);
        self.module.branch(met);

        self.module.begin(met);
        self.module.value_as(
            left,
            Op::Phi,
            word,
            [patience, before, kept, holding.merge].map(Operand::IdRef),
        );
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

/// Values for rendezvous, computed before the first round.
#[derive(Clone, Copy)]
pub(super) struct RendezvousValues {
    /// Pointer to the group's counter.
    pub counter: Word,
    pub spin: Word,
    pub zero: Word,
    pub one: Word,
    /// The required number of arrivals.
    pub party: Word,
    /// Rounds between two rendezvous, minus one.
    pub after_meeting: Word,
    pub hold: Word,
}

/// The loop iterations with a rendezvous.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// Iterations at the interval of the parameters.
    Counted,
    /// Every iteration.
    Always,
}

/// Values of this round and ids of those of the next.
#[derive(Clone, Copy)]
pub(super) struct Carried {
    /// The remaining failed polls.
    patience: (Word, Word),
    /// Rounds until the next rendezvous; 0 means before this round. None if each iteration has one.
    until: Option<(Word, Word)>,
    /// The counter's value when all have arrived at the next rendezvous.
    expected: (Word, Word),
}
