//! The results of threads: their slots, and the words or outputs where they are written.

use litmus::{Observable, ThreadId};
use rspirv::spirv::{Op, Word};

use super::DispatchEmitter;
use super::rendezvous::InvocationStart;
use crate::contract::{Parameter, WordArithmetic, result_word};
use crate::fixed::ResultPlacement;
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
                    let storage = self.storage_index(location)?;
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
            let has_no_result = !self.results.iter().any(|slot| slot.thread() == Some(thread));
            if has_no_result || flow::has_loop(self.test.thread(thread)) {
                self.results.push(ResultSlot::Done(thread));
            }
        }
        Ok(())
    }

    /// Returns where results are written.
    pub(super) fn result_placement(&self) -> ResultPlacement {
        self.context.fixed_dispatch.map_or(ResultPlacement::Words, |fixed| fixed.result_placement)
    }

    /// Returns the result slots that are written: all, one per thread and those of workgroup memory, or none.
    pub(super) fn written_slots(&self) -> Vec<ResultSlot> {
        let is_first = |slot: &ResultSlot| {
            let first = self.results.iter().find(|other| other.thread() == slot.thread());
            slot.thread().is_none() || first == Some(slot)
        };
        match self.result_placement() {
            ResultPlacement::Words => self.results.clone(),
            ResultPlacement::Expression => self.results.iter().copied().filter(is_first).collect(),
            ResultPlacement::Output => Vec::new(),
        }
    }

    /// Writes the results of a thread.
    pub(super) fn emit_results(
        &mut self,
        thread: ThreadId,
        place: &InvocationStart,
        instance: Word,
        registers: &mut Registers,
    ) -> Result<(), Rule> {
        let placement = self.result_placement();
        let mut all: Option<(ResultSlot, Word)> = None;
        for result in self.results.clone() {
            let (slot, value, width) = match result {
                ResultSlot::Register(Observable::Register(owner, register)) if owner == thread => {
                    let context = self.thread_context(&[]);
                    let mut code = ThreadEmitter { module: &mut self.module, context, thread, registers };
                    (result, code.register_value(register)?, code.register_width(register))
                }
                ResultSlot::Done(owner) if owner == thread && placement != ResultPlacement::Output => {
                    let context = self.thread_context(&[]);
                    let resolved = ThreadEmitter { module: &mut self.module, context, thread, registers }
                        .emit_is_resolved();
                    let mut done = self.parameter(Parameter::Done);
                    if let Some(resolved) = resolved {
                        let given_up = self.module.emit_word(Op::Not, &[done]);
                        done = self.module.emit_word(Op::Select, &[resolved, done, given_up]);
                    }
                    (result, done, 32)
                }
                _ => continue,
            };
            if placement == ResultPlacement::Words {
                self.emit_value(slot, value, width, place, instance);
            } else {
                all = Some(self.combine_results(all, slot, value, width));
            }
        }
        match (placement, all, self.output) {
            (ResultPlacement::Expression, Some((slot, word)), _) => {
                self.emit_slot(slot, word, place, instance)
            }
            (ResultPlacement::Output, Some((_, word)), Some(output)) => output.write(&mut self.module, word),
            _ => {}
        }
        Ok(())
    }

    /// Combines a value with earlier ones into one word, in the slot of the first.
    fn combine_results(
        &mut self,
        before: Option<(ResultSlot, Word)>,
        slot: ResultSlot,
        value: Word,
        width: u32,
    ) -> (ResultSlot, Word) {
        let words = match width {
            64 => vec![self.module.emit_word(Op::UConvert, &[value]), self.emit_high_word(value)],
            _ => vec![value],
        };
        let mut words = words.into_iter();
        let (slot, mut all) = before.unwrap_or_else(|| (slot, words.next().unwrap_or(value)));
        for word in words {
            let factor = self.constant(31);
            let scaled = self.multiply(all, factor);
            all = self.add(scaled, word);
        }
        (slot, all)
    }

    /// Writes a value of the outcome to its slots.
    pub(super) fn emit_value(
        &mut self,
        slot: ResultSlot,
        value: Word,
        width: u32,
        place: &InvocationStart,
        instance: Word,
    ) {
        let (ResultSlot::Register(observable), 64) = (slot, width) else {
            return self.emit_slot(slot, value, place, instance);
        };
        let low = self.module.emit_word(Op::UConvert, &[value]);
        self.emit_slot(slot, low, place, instance);
        let high = self.emit_high_word(value);
        self.emit_slot(ResultSlot::High(observable), high, place, instance);
    }

    /// Returns the upper word of a 64-bit value.
    fn emit_high_word(&mut self, value: Word) -> Word {
        let wide = self.module.type_int(64);
        let shift = self.module.constant(32);
        let high = self.module.emit_on_ids(Op::ShiftRightLogical, wide, &[value, shift]);
        self.module.emit_word(Op::UConvert, &[high])
    }

    /// Writes a result: slot `r` of instance `n` is word `(first slot + r) × total + n`.
    fn emit_slot(&mut self, slot: ResultSlot, value: Word, place: &InvocationStart, instance: Word) {
        let Some(number) = self.written_slots().iter().position(|known| *known == slot) else { return };
        let slot = self.module.constant(self.context.first_slot + number as u32);
        let index = result_word(self, slot, place.seat.total, instance);
        let pointer = self.module.word_pointer(self.results_buffer, index);
        self.module.store(pointer, value);
    }
}
