//! Initial values of location memory, and the salts in it that receipts depend on.
//!
//! Every memory has another salt in each submission. If a driver binds a buffer or an image of another binding or
//! of an earlier submission, the receipt of the kernel is wrong. `shaders::contract` defines the positions.

use std::sync::atomic::{AtomicU32, Ordering};

use plan::{BufferId, DeviceError, Prepared};
use shaders::contract::salt_from_bits;
use shaders::{Parameters, SaltedMemory};

/// The maximum units per storage for which memory is filled without gaps. Every cache line then contains a
/// storage, and writing a whole line is faster than a part of it.
const MAX_DENSE_UNITS: usize = 8;
/// The maximum number of salted memories of a program: two buffers, and images of two types for each.
const MAX_MEMORIES: u32 = 8;
/// Odd, so that no two of 2³² salts come from the same bits, and large, so that they differ in many.
const SALT_MULTIPLIER: u32 = 0x9e37_79b1;
/// The first salt of the next submission. All plans of the process share it, so that memory of another plan is
/// detected too.
static NEXT_SALT: AtomicU32 = AtomicU32::new(1);

/// The salts of a submission, by the number of the memory.
#[derive(Clone, Debug)]
pub(crate) struct MemorySalts {
    first: u32,
    /// The memories other than the location buffer, whose number is 0, and copies of it.
    numbered: Vec<(SaltedMemory, u32)>,
}

impl MemorySalts {
    /// Creates salts for memories with these numbers; all others have number 0.
    pub fn new(numbered: Vec<(SaltedMemory, u32)>) -> MemorySalts {
        MemorySalts { first: 0, numbered }
    }

    /// Changes all salts.
    pub fn renew(&mut self) {
        self.first = NEXT_SALT.fetch_add(MAX_MEMORIES, Ordering::Relaxed);
    }

    pub fn salt_of(&self, memory: SaltedMemory) -> u32 {
        let number = self.numbered.iter().find(|(known, _)| *known == memory);
        self.salt_of_number(number.map_or(0, |(_, number)| *number))
    }

    fn salt_of_number(&self, number: u32) -> u32 {
        salt_from_bits(self.first.wrapping_add(number).wrapping_mul(SALT_MULTIPLIER))
    }
}

/// The initial values of a program's storages.
#[derive(Clone, Debug)]
pub(crate) struct InitialValues {
    /// The value of each storage, as bits.
    pub values: Vec<u128>,
    /// Words of a unit.
    pub storage_words: usize,
}

impl InitialValues {
    /// Writes the initial values of the first instances.
    pub fn fill(&self, words: &mut [u32], parameters: &Parameters, instances: usize) {
        let stride = (parameters.stride as usize).max(1);
        if let [only] | [only, ..] = self.values[..]
            && stride <= MAX_DENSE_UNITS * self.values.len()
            && (self.storage_words == 1 || only == 0)
            && self.values.iter().all(|value| *value == only)
        {
            let used = (instances * stride * self.storage_words).min(words.len());
            return words[..used].fill(only as u32);
        }
        for (storage, value) in (0..).zip(&self.values) {
            let first = parameters.unit_index(0, storage) as usize * self.storage_words;
            for word in 0..self.storage_words {
                let first = (first + word).min(words.len());
                let cells = words[first..].iter_mut().step_by(stride * self.storage_words);
                cells.take(instances).for_each(|cell| *cell = value_word(*value, word));
            }
        }
    }

    /// Writes the salt, or without one the initial values, to the storages of an instance.
    fn write_instance(&self, words: &mut [u32], parameters: &Parameters, instance: usize, salt: Option<u32>) {
        let instance = u32::try_from(instance).unwrap_or(u32::MAX);
        for (storage, value) in (0..).zip(&self.values) {
            let first = parameters.unit_index(instance, storage) as usize * self.storage_words;
            for (word, cell) in words.iter_mut().skip(first).take(self.storage_words).enumerate() {
                *cell = salt.unwrap_or_else(|| value_word(*value, word));
            }
        }
    }
}

/// Returns a word of a storage's value, the low one first; the remaining words of a unit are zero.
pub(crate) fn value_word(value: u128, word: usize) -> u32 {
    if word < 4 { (value >> (32 * word)) as u32 } else { 0 }
}

/// A buffer with initial values from the host.
#[derive(Clone, Debug)]
pub(crate) struct InitialBuffer {
    pub buffer: BufferId,
    /// The number of the memory whose contents it has.
    pub number: u32,
    /// Kernels write to it.
    pub is_written: bool,
    /// The parameters of the current content, and the instance with the salt.
    content: Option<(Parameters, usize)>,
}

impl InitialBuffer {
    pub fn new(buffer: BufferId, number: u32, is_written: bool) -> InitialBuffer {
        InitialBuffer { buffer, number, is_written, content: None }
    }

    /// Prepares the buffer for a submission of `instances`.
    ///
    /// If kernels only read it, the initial values change only with the layout.
    ///
    /// # Errors
    /// If the device does not let the host write.
    pub fn reset(
        &mut self,
        prepared: &mut dyn Prepared,
        initial: &InitialValues,
        salts: &MemorySalts,
        parameters: &Parameters,
        instances: usize,
    ) -> Result<(), DeviceError> {
        let words = prepared.write(self.buffer)?;
        let layout = |of: &Parameters| (of.stride, of.spacing);
        match self.content {
            _ if self.is_written => initial.fill(words, parameters, instances),
            Some((earlier, salted)) if layout(&earlier) == layout(parameters) => {
                initial.write_instance(words, parameters, salted, None);
            }
            _ => {
                let unit_words = parameters.stride as usize * initial.storage_words;
                let room = words.len() / unit_words.max(1);
                initial.fill(words, parameters, room);
            }
        }
        initial.write_instance(words, parameters, instances, Some(salts.salt_of_number(self.number)));
        self.content = Some((*parameters, instances));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn salts_differ_between_memories_and_submissions() {
        let mut salts = MemorySalts::new(vec![(SaltedMemory::SeparateLocations, 1)]);
        let mut seen = BTreeSet::new();
        for _ in 0..10_000 {
            salts.renew();
            for memory in [SaltedMemory::Locations, SaltedMemory::SeparateLocations] {
                assert!(seen.insert(salts.salt_of(memory)));
                assert!(f32::from_bits(salts.salt_of(memory)).is_normal());
            }
        }
    }

    /// Earlier salts give way to initial values, and no other word changes.
    #[test]
    fn salts_are_only_in_the_instance_after_the_last() {
        let parameters = Parameters { stride: 7, spacing: 3, ..Parameters::SINGLE };
        let initial = InitialValues { values: vec![1, 5 << 32], storage_words: 2 };
        let mut filled = vec![9; 7 * 2 * 11];
        initial.fill(&mut filled, &parameters, 11);
        let mut words = filled.clone();
        initial.write_instance(&mut words, &parameters, 4, Some(77));
        let salted: Vec<usize> = (0..words.len()).filter(|word| words[*word] == 77).collect();
        assert_eq!(salted, [56, 57, 62, 63]);
        initial.write_instance(&mut words, &parameters, 4, None);
        assert_eq!(words, filled);
    }
}
