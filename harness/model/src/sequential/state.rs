//! States of the machine: positions, registers and memory.

use litmus::{Instruction, InstructionKind, RegisterId, ScalarType, Scope, Thread, ThreadId, Value};

use super::SequentialMachine;
use crate::cells::Extent;

/// The position of a thread that has run to its end.
pub(super) const DONE: u64 = u64::MAX;

/// A program state, packed into words.
///
/// It holds a stuck flag, memory by location (two words each if one has more than eight bytes), then the
/// [`StateLayout`] of each thread. If initial values are undefined, the bytes that are still undefined follow as
/// bits, for each location.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct PackedState(pub(super) Vec<u64>);

impl PackedState {
    pub(super) fn is_stuck(&self) -> bool {
        self.0[0] != 0
    }

    pub(super) fn mark_stuck(&mut self) {
        self.0[0] = 1;
    }
}

/// The position of a thread's words in the state.
#[derive(Clone, Debug)]
pub(super) struct StateLayout {
    /// The position, [`DONE`] at the end; the registers follow it.
    pub(super) position: usize,
    /// Counts of back-jumps by instruction, where the thread has any.
    pub(super) jumps: usize,
    /// Bits of control barriers reached, where the thread has any.
    pub(super) reached: usize,
    /// Arrivals at split barriers of a workgroup and of a subgroup, where the thread has any.
    pub(super) arrived: usize,
}

/// Number of words that count a thread's arrivals: one per execution scope.
pub(super) fn arrival_word_count(thread: &Thread) -> usize {
    let has = |i: &Instruction| matches!(i.kind, InstructionKind::SplitBarrier(_));
    if thread.instructions.iter().any(has) { 2 } else { 0 }
}

/// Returns a mask of the lowest bytes of a word.
fn low_bytes(bytes: u32) -> u64 {
    if bytes < 8 { (1 << (8 * bytes)) - 1 } else { u64::MAX }
}

impl SequentialMachine<'_> {
    /// Returns the word that counts a thread's arrivals at split barriers of a scope; `None` without split
    /// barriers.
    pub(super) fn arrival_word(&self, thread: usize, scope: Scope) -> Option<usize> {
        let words = self.arrival_word_count(thread);
        (words > 0).then(|| self.threads[thread].arrived + usize::from(scope == Scope::Subgroup))
    }

    pub(super) fn arrival_word_count(&self, thread: usize) -> usize {
        arrival_word_count(&self.test.threads[thread])
    }

    /// Returns true if no other thread can still move. Then no other run reaches this state again.
    pub(super) fn is_last_running(&self, state: &PackedState, thread: usize) -> bool {
        self.threads
            .iter()
            .enumerate()
            .all(|(other, layout)| other == thread || state.0[layout.position] == DONE)
    }

    pub(super) fn position(&self, state: &PackedState, thread: usize) -> usize {
        state.0[self.threads[thread].position] as usize
    }

    pub(super) fn is_done(&self, state: &PackedState, thread: usize) -> bool {
        state.0[self.threads[thread].position] == DONE
    }

    pub(super) fn advance(&self, state: &mut PackedState, thread: usize) {
        state.0[self.threads[thread].position] += 1;
    }

    /// Returns the words of a state from the registers of a thread on.
    pub(super) fn registers<'s>(&self, state: &'s PackedState, thread: usize) -> &'s [u64] {
        &state.0[self.threads[thread].position + 1..]
    }

    pub(super) fn registers_mut<'s>(&self, state: &'s mut PackedState, thread: usize) -> &'s mut [u64] {
        &mut state.0[self.threads[thread].position + 1..]
    }

    pub(super) fn set_register(
        &self,
        state: &mut PackedState,
        thread: usize,
        register: RegisterId,
        value: Value,
    ) {
        self.registers_mut(state, thread)[usize::from(register.0)] = value.0;
    }

    /// Assigns a value read from a location of this type.
    pub(super) fn set_loaded_register(
        &self,
        state: &mut PackedState,
        thread: usize,
        register: RegisterId,
        value: Value,
        scalar: ScalarType,
    ) {
        let value = value.extend(scalar, self.register_type(thread, register));
        self.set_register(state, thread, register, value);
    }

    pub(super) fn has_reached(&self, state: &PackedState, thread: usize, instruction: usize) -> bool {
        let word = self.threads[thread].reached + instruction / 64;
        state.0[word] & (1 << (instruction % 64)) != 0
    }

    pub(super) fn register_type(&self, thread: usize, register: RegisterId) -> ScalarType {
        let types = self.register_types.get_or_init(|| {
            let thread_types = |(index, thread): (usize, &Thread)| {
                let type_of = |r| self.test.register_type(ThreadId(index as u16), RegisterId(r as u16));
                (0..thread.registers.len()).map(type_of).collect()
            };
            self.test.threads.iter().enumerate().map(thread_types).collect()
        });
        types[thread][usize::from(register.0)]
    }

    /// Returns the word that contains an extent, and the bit offset in it. No access crosses words.
    pub(super) fn locate_word(&self, extent: Extent) -> (usize, u32) {
        let first = 1 + self.words_per_location * usize::from(extent.storage.0);
        (first + (extent.offset / 8) as usize, 8 * (extent.offset % 8))
    }

    pub(super) fn read_memory(&self, state: &PackedState, extent: Extent) -> Value {
        let (word, shift) = self.locate_word(extent);
        let mut value = (state.0[word] >> shift) & low_bytes(extent.bytes);
        let undefined = self.undefined_bytes(state, extent);
        if undefined != 0 && !self.undefined_values.is_empty() {
            let size = self.test.location(extent.storage).scalar_type().bytes();
            // A part of a location reads the corresponding bytes of the chosen value.
            let chosen_value = self.undefined_values[self.choices.choose_index(self.undefined_values.len())]
                .0
                >> (8 * (extent.offset % size));
            for byte in (0..extent.bytes).filter(|byte| undefined & (1 << byte) != 0) {
                value = value & !(0xFF << (8 * byte)) | chosen_value & (0xFF << (8 * byte));
            }
        }
        Value(value)
    }

    /// Returns the bytes of an extent that still have their undefined initial value, as bits.
    pub(super) fn undefined_bytes(&self, state: &PackedState, extent: Extent) -> u64 {
        let storage_mask =
            self.first_undefined_word.map_or(0, |first| state.0[first + usize::from(extent.storage.0)]);
        (storage_mask >> extent.offset) & ((1 << extent.bytes) - 1)
    }

    pub(super) fn write_memory(&self, state: &mut PackedState, extent: Extent, value: Value) {
        let (word, shift) = self.locate_word(extent);
        let preserved = !(low_bytes(extent.bytes) << shift);
        state.0[word] = (state.0[word] & preserved) | (value.0 << shift);
        if let Some(first) = self.first_undefined_word {
            state.0[first + usize::from(extent.storage.0)] &= !(((1 << extent.bytes) - 1) << extent.offset);
        }
    }
}
