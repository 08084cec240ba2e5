//! Outstanding operations, their counters, and the operations that a wait completes.

use super::{CodeBuilder, HaltReason, unsupported};
use crate::code::WaveStep;
use crate::family::Generation;
use crate::opcode::{MemoryPath, WaitCounter};
use crate::text::MachineOperand;

/// An issued operation that may be incomplete.
#[derive(Clone, Debug)]
pub(super) struct OutstandingOperation {
    /// Its number on this path, from 1.
    pub number: u32,
    pub line: u32,
    /// The counters that it counts on.
    pub counters: Vec<WaitCounter>,
    /// True if operations on the same counter may return out of order.
    pub out_of_order: bool,
    /// The access, unless it reads constant data.
    pub access: Option<u16>,
}

/// Returns the counter that a generation uses in place of another one.
pub(super) fn effective_counter(generation: Generation, counter: WaitCounter) -> WaitCounter {
    match counter {
        WaitCounter::Store if !generation.has_store_counter() => WaitCounter::Vector,
        WaitCounter::Scalar if generation < Generation::Gfx12 => WaitCounter::Lds,
        other => other,
    }
}

/// Returns the counters of an operation; true if it returns out of order.
pub(super) fn operation_counters(
    generation: Generation,
    path: MemoryPath,
    returns: bool,
) -> (Vec<WaitCounter>, bool) {
    let vector = if returns { WaitCounter::Vector } else { WaitCounter::Store };
    let (counters, out_of_order) = match path {
        MemoryPath::Buffer | MemoryPath::Texel | MemoryPath::Global | MemoryPath::Image => {
            (vec![vector], false)
        }
        MemoryPath::Flat => (vec![vector, WaitCounter::Lds], true),
        MemoryPath::Lds => (vec![WaitCounter::Lds], false),
        MemoryPath::Scalar | MemoryPath::ScalarBuffer => (vec![WaitCounter::Scalar], true),
    };
    (counters.into_iter().map(|counter| effective_counter(generation, counter)).collect(), out_of_order)
}

impl CodeBuilder<'_> {
    /// Executes `s_waitcnt vmcnt(0) lgkmcnt(0)`.
    pub(super) fn execute_waitcnt(&mut self) -> Result<(), HaltReason> {
        let instruction = self.instruction;
        let mut waits = Vec::new();
        for (name, count) in &instruction.modifiers.values {
            let counter = match name.as_str() {
                "vmcnt" => WaitCounter::Vector,
                "lgkmcnt" => WaitCounter::Lds,
                "vscnt" => WaitCounter::Store,
                "expcnt" => WaitCounter::Other,
                _ => return Err(unsupported(format!("counter `{name}`"))),
            };
            let count = crate::text::parse_number(count).and_then(|count| usize::try_from(count).ok());
            waits.push((counter, count.ok_or_else(|| unsupported(format!("a wait for `{name}`")))?));
        }
        for (counter, count) in waits {
            self.complete_operations(instruction.line, counter, count);
        }
        Ok(())
    }

    /// Executes `s_wait_loadcnt 0x0` or `s_waitcnt_vscnt null, 0x0`.
    pub(super) fn execute_counter_wait(&mut self, counters: &[WaitCounter]) -> Result<(), HaltReason> {
        let instruction = self.instruction;
        let count = match instruction.operands.as_slice() {
            [MachineOperand::Number(count)] | [MachineOperand::Null, MachineOperand::Number(count)] => {
                usize::try_from(*count).ok()
            }
            _ => None,
        };
        let count = count.ok_or_else(|| unsupported("an amount that is not a number"))?;
        match counters {
            // Two counts in one number: loads or stores from bit 8 on, LDS in bits 0 to 5.
            [first, second] => {
                self.complete_operations(instruction.line, *first, (count >> 8) & 0x3f);
                self.complete_operations(instruction.line, *second, count & 0x3f);
            }
            _ => {
                for counter in counters {
                    self.complete_operations(instruction.line, *counter, count);
                }
            }
        }
        Ok(())
    }

    /// Waits until at most `count` operations are outstanding on a counter.
    fn complete_operations(&mut self, line: u32, counter: WaitCounter, count: usize) {
        let counter = effective_counter(self.generation, counter);
        let candidates: Vec<usize> = self
            .state
            .outstanding
            .iter()
            .enumerate()
            .filter(|(_, known)| known.counters.contains(&counter))
            .map(|(index, _)| index)
            .collect();
        let out_of_order = candidates
            .iter()
            .any(|index| self.state.outstanding.get(*index).is_some_and(|known| known.out_of_order));
        let completed_count = match (count, out_of_order) {
            (0, _) => candidates.len(),
            (_, true) => 0,
            (count, false) => candidates.len().saturating_sub(count),
        };
        // A flat access of memory is complete when its first counter reaches the value.
        let has_first_counter = |index: &usize| {
            self.state.outstanding.get(*index).is_some_and(|known| known.counters.first() == Some(&counter))
        };
        let completed: Vec<usize> = candidates
            .get(..completed_count)
            .unwrap_or_default()
            .iter()
            .copied()
            .filter(has_first_counter)
            .collect();
        let accesses: Vec<u16> =
            completed.iter().filter_map(|index| self.state.outstanding.get(*index)?.access).collect();
        for index in completed.iter().rev() {
            self.state.outstanding.remove(*index);
        }
        if !accesses.is_empty() {
            self.code.nodes.push(WaveStep::Wait { line, accesses });
        }
    }
}
