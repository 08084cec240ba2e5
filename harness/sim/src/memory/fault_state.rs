//! Additional cache state of faults: neighbours of written words, and a constant cache.

use std::collections::HashMap;

use super::{CachePath, Memory};
use crate::program::WORKGROUP;

/// The number of words in a line of the constant cache.
const CONSTANT_LINE: u32 = 16;

/// Additional cache state of faults.
#[derive(Clone, Debug, Default)]
pub(super) struct FaultState {
    /// The old value of the neighbour of each written word, by cache, reference and address.
    neighbours: HashMap<(u32, usize, u32), u32>,
    /// The constant cache: values by workgroup cache, reference and address.
    constants: HashMap<(u32, usize, u32), u32>,
}

impl Memory {
    /// Records the neighbour of a word that is about to be written.
    pub(super) fn record_neighbour(&mut self, cache: u32, reference: usize, address: u32) {
        let neighbour = self.read_word(address ^ 1);
        self.fault_state.neighbours.entry((cache, reference, address)).or_insert(neighbour);
    }

    /// Overwrites the neighbour of a written-back word with its recorded value.
    pub(super) fn overwrite_neighbour(&mut self, cache: u32, reference: usize, address: u32) {
        if let Some(value) = self.fault_state.neighbours.remove(&(cache, reference, address)) {
            self.write_word(address ^ 1, value);
        }
    }

    /// Returns a word from the constant cache; fetches its line on a miss.
    pub fn read_constant_cache(&mut self, path: &CachePath, reference: usize, address: u32) -> u32 {
        let cache = path[usize::from(WORKGROUP)];
        let first = address - address % CONSTANT_LINE;
        for word in first..first + CONSTANT_LINE {
            let value = self.read_word(word);
            self.fault_state.constants.entry((cache, reference, word)).or_insert(value);
        }
        self.fault_state.constants.get(&(cache, reference, address)).copied().unwrap_or(0)
    }
}
