//! Additional cache state of faults: neighbours of written words, and a constant cache.

use std::collections::HashMap;

use super::{Memory, Path};
use crate::program::WORKGROUP;

/// The number of words in a line of the constant cache.
const CONSTANT_LINE: u32 = 16;

/// Additional cache state of faults.
#[derive(Clone, Debug, Default)]
pub(super) struct Beside {
    /// The old value of the neighbour of each written word, by cache, reference and address.
    neighbours: HashMap<(u32, usize, u32), u32>,
    /// The constant cache: values by workgroup cache, reference and address.
    constants: HashMap<(u32, usize, u32), u32>,
}

impl Memory {
    /// Records the neighbour of a word that is about to be written.
    pub(super) fn find_neighbour(&mut self, cache: u32, reference: usize, address: u32) {
        let beside = self.word(address ^ 1);
        self.beside.neighbours.entry((cache, reference, address)).or_insert(beside);
    }

    /// Overwrites the neighbour of a written-back word with its recorded value.
    pub(super) fn write_neighbour(&mut self, cache: u32, reference: usize, address: u32) {
        if let Some(value) = self.beside.neighbours.remove(&(cache, reference, address)) {
            self.set(address ^ 1, value);
        }
    }

    /// Returns a word from the constant cache; fetches its line on a miss.
    pub fn constant(&mut self, path: &Path, reference: usize, address: u32) -> u32 {
        let cache = path[usize::from(WORKGROUP)];
        let first = address - address % CONSTANT_LINE;
        for word in first..first + CONSTANT_LINE {
            let value = self.word(word);
            self.beside.constants.entry((cache, reference, word)).or_insert(value);
        }
        self.beside.constants.get(&(cache, reference, address)).copied().unwrap_or(0)
    }
}
