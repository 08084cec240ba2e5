//! The thread and instance of an invocation, and the rendezvous of groups.

use rspirv::dr::Operand;
use rspirv::spirv::{self, Op, Word};

use super::{DispatchEmitter, SegmentCode};
use crate::contract::{
    FIRST_RECEIPT, InstanceSlot, Parameter, WordArithmetic, instance_slot, receipt_hash, rendezvous_spacing,
};
use crate::loops::LoopBuilder;
use crate::module::AtomicOrder;
use crate::rules::Rule;
use crate::variant::MemoryModel;

/// The values of an invocation before the first round.
pub(super) struct InvocationStart {
    /// Index of its thread; the number of threads if it runs none.
    pub role: Word,
    pub seat: InstanceSlot<Word>,
}

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
    /// Returns the start of a slot for each thread, if each invocation runs every thread.
    pub(super) fn thread_starts(
        &mut self,
        parts: &[SegmentCode],
        (group, slot): (Word, Word),
        is_stress: Option<Word>,
    ) -> Vec<InvocationStart> {
        let roles =
            parts.iter().filter_map(|code| Some((code, self.layout.roles.get(code.part.thread)?.class)));
        let roles: Vec<(u32, u32)> = roles.map(|(code, class)| (code.part.thread as u32, class)).collect();
        let mut places = Vec::with_capacity(roles.len());
        for (thread, class) in roles {
            let [thread, class] = [thread, class].map(|number| self.module.constant(number));
            let role = self.role_or_none(thread, is_stress);
            let sizes = (self.layout.lanes, self.context.first_class);
            places.push(InvocationStart { role, seat: instance_slot(self, sizes, (class, group), slot) });
        }
        places
    }

    /// Returns the thread and the slot of a lane, if threads share workgroups.
    pub(super) fn role_and_slot(&mut self, class: Word, subgroup: Word, lane: Word) -> (Word, Word) {
        let lanes = self.module.constant(self.layout.lanes);
        let turn = self.parameter(Parameter::Turn);
        let subgroups = self.module.constant(self.layout.subgroups);
        let rotated = self.module.emit_word(Op::IAdd, &[subgroup, turn]);
        let subgroup = self.module.emit_word(Op::UMod, &[rotated, subgroups]);
        let share = self.module.emit_word(Op::UDiv, &[lane, lanes]);
        let slot = self.module.emit_word(Op::UMod, &[lane, lanes]);
        let mut role = self.module.constant(self.layout.roles.len() as u32);
        for (index, wanted) in self.layout.roles.iter().enumerate() {
            let matches = [(class, wanted.class), (subgroup, wanted.subgroup), (share, wanted.share)].map(
                |(value, wanted)| {
                    let wanted = self.module.constant(wanted);
                    self.module.emit_bool(Op::IEqual, &[value, wanted])
                },
            );
            let both = self.module.emit_bool(Op::LogicalAnd, &[matches[0], matches[1]]);
            let all = self.module.emit_bool(Op::LogicalAnd, &[both, matches[2]]);
            let index = self.module.constant(index as u32);
            role = self.module.emit_word(Op::Select, &[all, index, role]);
        }
        (role, slot)
    }

    /// Returns thread and slot in a workgroup with virtual subgroups: consecutive invocations that run one
    /// role. Surplus invocations idle.
    pub(super) fn role_and_slot_by_number(&mut self, class: Word, local: Word) -> (Word, Word) {
        let lanes = self.module.constant(self.layout.lanes);
        let division = self.module.emit_word(Op::UDiv, &[local, lanes]);
        let lane = self.module.emit_word(Op::UMod, &[local, lanes]);
        let (role, slot) = self.role_and_slot(class, division, lane);
        let playing = self.layout.lanes.saturating_mul(self.layout.subgroups);
        if playing >= self.layout.workgroup_size {
            return (role, slot);
        }
        let [playing, none] =
            [playing, self.layout.roles.len() as u32].map(|word| self.module.constant(word));
        let idle = self.module.emit_bool(Op::UGreaterThanEqual, &[local, playing]);
        (self.module.emit_word(Op::Select, &[idle, none, role]), slot)
    }

    /// Emits the receipt of a workgroup, in its first invocation.
    pub(super) fn emit_receipt(
        &mut self,
        place: &InvocationStart,
        class: Word,
        group: Word,
        local: Word,
        is_stress: Option<Word>,
    ) -> Result<(), Rule> {
        // Drawn invocations leave it when they claim a slot, because repeated ones must not.
        if !self.config.variant.stage.has_workgroups() {
            return Ok(());
        }
        let Some(receipt) = self.prepare_receipt(place, class, group) else { return Ok(()) };
        let receipt_index = match is_stress {
            Some(extra) => self.module.emit_word(Op::Select, &[extra, receipt.one, local]),
            None => local,
        };
        let is_first = self.module.emit_bool(Op::IEqual, &[receipt_index, receipt.zero]);
        self.emit_receipt_if(&receipt, is_first)
    }

    /// Computes the position and the parts of a workgroup's receipt that all invocations know. It must be in
    /// the first block, because it loads every parameter.
    pub(super) fn prepare_receipt(
        &mut self,
        place: &InvocationStart,
        class: Word,
        group: Word,
    ) -> Option<Receipt> {
        let buffer = self.rendezvous_buffer.filter(|_| self.has_receipts())?;
        let buffers: Vec<Word> = self.buffers.iter().map(|own| own.variable).collect();
        let lengths: Vec<Word> = buffers.into_iter().map(|buffer| self.module.array_length(buffer)).collect();
        for parameter in Parameter::ALL {
            self.parameter(parameter);
        }
        let spacing = rendezvous_spacing(self.concurrent_classes());
        let [spacing, first, zero, one] = [spacing, FIRST_RECEIPT + self.context.first_class, 0, 1]
            .map(|value| self.module.constant(value));
        let area = self.module.emit_word(Op::IMul, &[group, spacing]);
        let word = self.module.emit_word(Op::IAdd, &[class, first]);
        let index = self.module.emit_word(Op::IAdd, &[area, word]);
        Some(Receipt {
            lengths,
            total: place.seat.total,
            pointer: self.module.word_pointer(buffer, index),
            zero,
            one,
        })
    }

    /// Emits a receipt if the condition holds; only then are the salts read.
    pub(super) fn emit_receipt_if(&mut self, prepared: &Receipt, is_first: Word) -> Result<(), Rule> {
        let [signing, signed] = std::array::from_fn(|_| self.module.id());
        self.module.begin_if(is_first, signing, signed);
        let memory_words = [prepared.lengths.clone(), self.load_salts(prepared.total)?].concat();
        let identity = self.module.identity_constant();
        let added = receipt_hash(self, identity, &memory_words);
        let relaxed = self.relaxed_order();
        let before = self.module.atomic_load(prepared.pointer, relaxed);
        let sum = self.module.emit_word(Op::IAdd, &[before, added]);
        self.module.atomic_store(prepared.pointer, relaxed, sum);
        self.module.continue_at(signed);
        Ok(())
    }

    /// Returns scope and semantics of the rendezvous and of receipts.
    pub(super) fn relaxed_order(&mut self) -> AtomicOrder {
        let glsl = self.config.variant.model == MemoryModel::Glsl450;
        let scope =
            if self.config.device_scope || glsl { spirv::Scope::Device } else { spirv::Scope::QueueFamily };
        let semantics = self.module.constant(0);
        AtomicOrder { scope: self.module.constant(scope as u32), semantics }
    }

    /// Computes the values for rendezvous, in the first block.
    pub(super) fn rendezvous_values(
        &mut self,
        buffer: Word,
        group: Word,
        is_stress: Option<Word>,
    ) -> RendezvousValues {
        let spacing = rendezvous_spacing(self.concurrent_classes());
        let [spacing, zero, one] = [spacing, 0, 1].map(|value| self.module.constant(value));
        let index = self.module.emit_word(Op::IMul, &[group, spacing]);
        let interval = self.parameter(Parameter::Interval);
        RendezvousValues {
            counter: self.module.word_pointer(buffer, index),
            spin: self.max_polls(is_stress),
            zero,
            one,
            party: self.parameter(Parameter::Party),
            rounds_after: self.module.emit_word(Op::ISub, &[interval, one]),
            hold: self.parameter(Parameter::Hold),
        }
    }

    /// Declares the loop variables between two rendezvous.
    pub(super) fn carry_rendezvous(
        &mut self,
        rendezvous: &RendezvousValues,
        due: RendezvousSchedule,
        turns: &mut LoopBuilder,
    ) -> RendezvousState {
        let mut carried = |first: Word| turns.carry_word(&mut self.module, first);
        RendezvousState {
            remaining_polls: carried(rendezvous.spin),
            rounds_until_next: (due == RendezvousSchedule::Interval).then(|| carried(rendezvous.zero)),
            expected_arrivals: carried(rendezvous.party),
        }
    }

    /// Emits the bounded rendezvous of a group's workgroups before a round or a stretch of rounds. Every
    /// invocation waits separately, so no barrier is needed, and an invocation that reaches its bound
    /// continues.
    pub(super) fn emit_rendezvous(
        &mut self,
        rendezvous: &RendezvousValues,
        carried: &RendezvousState,
        local: Word,
    ) {
        let RendezvousValues { counter, spin, zero, one, party, rounds_after: after_meeting, hold } =
            *rendezvous;
        let RendezvousState {
            remaining_polls: (patience, left),
            rounds_until_next: until,
            expected_arrivals: (expected, expected_next),
        } = *carried;
        let relaxed = self.relaxed_order();
        let [arrive_if, arrive, wait] = std::array::from_fn(|_| self.module.id());
        let mut poll_loop = LoopBuilder::new(&mut self.module);
        let mut holding = LoopBuilder::new(&mut self.module);
        let [merge, before] = std::array::from_fn(|_| self.module.id());
        self.module.continue_at(before);
        let waits = self.module.emit_bool(Op::INotEqual, &[spin, zero]);
        let due = until.map(|(until, _)| self.module.emit_bool(Op::IEqual, &[until, zero]));
        let takes_part = due.map_or(waits, |due| self.module.emit_bool(Op::LogicalAnd, &[waits, due]));
        self.module.begin_if(takes_part, arrive_if, merge);
        let first = self.module.emit_bool(Op::IEqual, &[local, zero]);
        self.module.begin_if(first, arrive, wait);
        self.module.atomic_add(counter, relaxed, one);
        self.module.continue_at(wait);
        let spent = poll_loop.carry_counter(&mut self.module, zero, one);
        poll_loop.enter(&mut self.module, wait);
        let may_poll = self.module.emit_bool(Op::ULessThan, &[spent, patience]);
        poll_loop.begin_body_if(&mut self.module, may_poll);
        let arrived = self.module.atomic_load(counter, relaxed);
        let all_here = self.module.emit_bool(Op::UGreaterThanEqual, &[arrived, expected]);
        let rest = self.module.emit_word(Op::ISub, &[patience, spent]);
        poll_loop.end_body_unless(&mut self.module, all_here);
        let left_polls = self.module.phi([zero, poll_loop.condition_block, rest, poll_loop.body_block]);

        // Only the last invocation to arrive succeeds with its first poll; the others detect it later.
        let at_once = self.module.emit_bool(Op::IEqual, &[left_polls, patience]);
        let had_patience = self.module.emit_bool(Op::INotEqual, &[patience, zero]);
        let last = self.module.emit_bool(Op::LogicalAnd, &[at_once, had_patience]);
        let pause = self.module.emit_word(Op::Select, &[last, hold, zero]);
        let hold_count = holding.carry_counter(&mut self.module, zero, one);
        holding.enter(&mut self.module, poll_loop.merge_block);
        let holds = self.module.emit_bool(Op::ULessThan, &[hold_count, pause]);
        holding.begin_body_if(&mut self.module, holds);
        self.module.atomic_load(counter, relaxed);
        holding.end_body(&mut self.module);
        self.module.continue_at(merge);
        let word = self.module.u32;
        let sources = [patience, before, left_polls, holding.merge_block].map(Operand::IdRef);
        self.module.emit_value_as(left, Op::Phi, word, sources);
        let Some(((until, until_next), due)) = until.zip(due) else {
            self.module.emit_value_as(expected_next, Op::IAdd, word, [expected, party].map(Operand::IdRef));
            return;
        };
        let sooner = self.module.emit_word(Op::ISub, &[until, one]);
        let select = |due, yes, no| [due, yes, no].map(Operand::IdRef);
        self.module.emit_value_as(until_next, Op::Select, word, select(due, after_meeting, sooner));
        let more = self.module.emit_word(Op::IAdd, &[expected, party]);
        self.module.emit_value_as(expected_next, Op::Select, word, select(due, more, expected));
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
    pub rounds_after: Word,
    pub hold: Word,
}

/// The loop iterations with a rendezvous.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RendezvousSchedule {
    /// Iterations at the interval of the parameters.
    Interval,
    EveryIteration,
}

/// Values of this round and ids of those of the next.
#[derive(Clone, Copy)]
pub(super) struct RendezvousState {
    /// The remaining failed polls.
    remaining_polls: (Word, Word),
    /// Rounds until the next rendezvous; 0 means before this round. None if each iteration has one.
    rounds_until_next: Option<(Word, Word)>,
    /// The counter's value when all have arrived at the next rendezvous.
    expected_arrivals: (Word, Word),
}
