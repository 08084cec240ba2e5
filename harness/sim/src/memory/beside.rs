//! What faults keep beside the lines of caches: neighbours of a word that was written, and what was only ever read.

use std::collections::HashMap;

use super::{Memory, Path};
use crate::program::WORKGROUP;

/// Words of a line of the cache for what is only read.
const CONSTANT_LINE: u32 = 16;

/// What faults keep.
#[derive(Clone, Debug, Default)]
pub(super) struct Beside {
    /// By cache, reference and address of a word that was written: the word beside it as it was then.
    neighbours: HashMap<(u32, usize, u32), u32>,
    /// By cache of a workgroup, reference and address: what was found there first.
    constants: HashMap<(u32, usize, u32), u32>,
}

impl Memory {
    /// Takes note of the word beside one that is written.
    pub(super) fn find_neighbour(&mut self, cache: u32, reference: usize, address: u32) {
        let beside = self.word(address ^ 1);
        self.beside.neighbours.entry((cache, reference, address)).or_insert(beside);
    }

    /// Writes the word beside one that is written back, as it was found.
    pub(super) fn write_neighbour(&mut self, cache: u32, reference: usize, address: u32) {
        if let Some(value) = self.beside.neighbours.remove(&(cache, reference, address)) {
            self.set(address ^ 1, value);
        }
    }

    /// What the cache for what is only read holds; it fetches a line where it holds none.
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
