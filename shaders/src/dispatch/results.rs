//! The results of threads: their slots, and the words or outputs where they are written.

use litmus::{Observable, ThreadId};
use rspirv::dr::Operand;
use rspirv::spirv::{Op, Word};

use super::DispatchEmitter;
use super::place::InvocationStart;
use crate::contract::{Arithmetic, Parameter, result_word};
use crate::fixed::Leaving;
use crate::flow;
use crate::kernel::ResultSlot;
use crate::rules::Rule;
use crate::thread::{Registers, ThreadEmitter};

impl DispatchEmitter<'_> {
    /// Determines the result slots: observables in their order, then end markers of threads without any or
    /// with loops.
    pub(super) fn list_results(&mut self) -> Result<(), Rule> {
        for observable in self.test.observables() {
            let wide = match observable {
                Observable::Register(thread, register) => {
                    self.test.register_type(thread, register).bits() == 64
                }
                Observable::Location(location, _) => {
                    let storage = self.storage_of(location)?;
                    let Some(known) = self.workgroup_storages.iter().find(|known| known.storage == storage)
                    else {
                        continue;
                    };
                    known.path.element.bytes() == 8
                }
            };
            self.results.push(ResultSlot::Register(observable));
            if wide {
                self.results.push(ResultSlot::High(observable));
            }
        }
        for thread in (0..self.test.threads.len()).map(|index| ThreadId(index as u16)) {
            let silent = !self.results.iter().any(|slot| slot.thread() == Some(thread));
            if silent || flow::has_loop(self.test.thread(thread)) {
                self.results.push(ResultSlot::Done(thread));
            }
        }
        Ok(())
    }

    /// Returns where results are written.
    pub(super) fn leaves(&self) -> Leaving {
        self.company.fixed.map_or(Leaving::Words, |fixed| fixed.results)
    }

    /// Returns the result slots that are written: all, one per thread and those of workgroup memory, or none.
    pub(super) fn written(&self) -> Vec<ResultSlot> {
        let is_first = |slot: &ResultSlot| {
            let first = self.results.iter().find(|other| other.thread() == slot.thread());
            slot.thread().is_none() || first == Some(slot)
        };
        match self.leaves() {
            Leaving::Words => self.results.clone(),
            Leaving::Expression => self.results.iter().copied().filter(is_first).collect(),
            Leaving::Output => Vec::new(),
        }
    }

    /// Writes the results of a thread.
    pub(super) fn report(
        &mut self,
        thread: ThreadId,
        place: &InvocationStart,
        instance: Word,
        registers: &mut Registers,
    ) -> Result<(), Rule> {
        let leaves = self.leaves();
        let mut all: Option<(ResultSlot, Word)> = None;
        for result in self.results.clone() {
            let (slot, value, width) = match result {
                ResultSlot::Register(Observable::Register(of, register)) if of == thread => {
                    let around = self.surroundings(&[]);
                    let mut code = ThreadEmitter { module: &mut self.module, around, thread, registers };
                    (result, code.register(register)?, code.width(register))
                }
                ResultSlot::Done(of) if of == thread && leaves != Leaving::Output => {
                    let around = self.surroundings(&[]);
                    let resolved =
                        ThreadEmitter { module: &mut self.module, around, thread, registers }.resolved();
                    let mut done = self.parameter(Parameter::Done);
                    if let Some(resolved) = resolved {
                        let given_up = self.module.word(Op::Not, &[done]);
                        done = self.module.word(Op::Select, &[resolved, done, given_up]);
                    }
                    (result, done, 32)
                }
                _ => continue,
            };
            if leaves == Leaving::Words {
                self.write_down(slot, value, width, place, instance);
            } else {
                all = Some(self.with(all, slot, value, width));
            }
        }
        match (leaves, all, self.output) {
            (Leaving::Expression, Some((slot, word)), _) => self.write_slot(slot, word, place, instance),
            (Leaving::Output, Some((_, word)), Some(output)) => output.write(&mut self.module, word),
            _ => {}
        }
        Ok(())
    }

    /// Combines a value with earlier ones into one word, in the slot of the first.
    fn with(
        &mut self,
        before: Option<(ResultSlot, Word)>,
        slot: ResultSlot,
        value: Word,
        width: u32,
    ) -> (ResultSlot, Word) {
        let words = match width {
            64 => vec![self.module.word(Op::UConvert, &[value]), self.high(value)],
            _ => vec![value],
        };
        let mut words = words.into_iter();
        let (slot, mut all) = before.unwrap_or_else(|| (slot, words.next().unwrap_or(value)));
        for word in words {
            let factor = self.number(31);
            let scaled = self.multiply(all, factor);
            all = self.add(scaled, word);
        }
        (slot, all)
    }

    /// Writes a value of the outcome to its slots.
    pub(super) fn write_down(
        &mut self,
        slot: ResultSlot,
        value: Word,
        width: u32,
        place: &InvocationStart,
        instance: Word,
    ) {
        let (ResultSlot::Register(observable), 64) = (slot, width) else {
            return self.write_slot(slot, value, place, instance);
        };
        let low = self.module.word(Op::UConvert, &[value]);
        self.write_slot(slot, low, place, instance);
        let high = self.high(value);
        self.write_slot(ResultSlot::High(observable), high, place, instance);
    }

    /// Returns the upper word of a 64-bit value.
    fn high(&mut self, value: Word) -> Word {
        let wide = self.module.integer(64);
        let shift = self.module.constant(32);
        let high = self.module.on_ids(Op::ShiftRightLogical, wide, &[value, shift]);
        self.module.word(Op::UConvert, &[high])
    }

    /// Writes a result: slot `r` of instance `n` is word `(first slot + r) × total + n`.
    fn write_slot(&mut self, slot: ResultSlot, value: Word, place: &InvocationStart, instance: Word) {
        let Some(number) = self.written().iter().position(|known| *known == slot) else { return };
        let slot = self.module.constant(self.company.first_slot + number as u32);
        let index = result_word(self, slot, place.seat.total, instance);
        let pointer = self.module.element(self.results_buffer, index);
        self.module.effect(Op::Store, [pointer, value].map(Operand::IdRef));
    }
}
