//! Memory under a tree of incoherent caches.
//!
//! A line belongs to one cache and one *reference*, not to a location: accesses through two references to one
//! location meet only in memory. Levels range from the cache of an invocation to that of the device; memory
//! is above the last. A line is one word. It is either clean as a whole, or dirty in some bytes: then it
//! contains only those, and the others are above it.
//!
//! Invariant: a clean line is never newer than the next valid line above it, so dropping or bypassing clean
//! lines is always sound.

mod fault_state;
mod read_ahead;
mod store_buffer;
#[cfg(test)]
mod tests;

use vocabulary::{StorageClass, StorageClassSet};

use crate::fault::Fault;
use crate::program::{INVOCATION, LEVELS};
use fault_state::FaultState;
use read_ahead::ReadAheadTable;
pub(crate) use store_buffer::MAX_STORE_BUFFERS;
use store_buffer::StoreBuffers;

/// The cache of an invocation at each level.
pub(crate) type CachePath = [u32; LEVELS];

/// Dirty bytes, one bit each.
const DIRTY_BYTES: u32 = 0xf;
const PRIVATE_FLAG: u32 = 0x10;

/// All bytes of a word, one bit each.
pub(crate) const ALL_BYTES: u32 = 0xf;

/// Expands a byte mask to a bit mask.
#[inline]
fn expand_byte_mask(bytes: u32) -> u32 {
    // Each bit moves to the start of its byte: the product has no carries.
    ((bytes & ALL_BYTES).wrapping_mul(0x0020_4081) & 0x0101_0101) * 0xff
}

/// Takes the selected bytes from `over` and the others from `under`.
#[inline]
fn merge_bytes(under: u32, over: u32, bytes: u32) -> u32 {
    let mask = expand_byte_mask(bytes);
    under & !mask | over & mask
}

/// A cache line of one word.
#[derive(Clone, Copy, Debug, Default)]
struct CacheLine {
    /// The address in words; 0 for an empty line.
    address: u32,
    value: u32,
    /// The epoch of a clean line in a shared cache; lines of an older epoch are invalid.
    epoch: u32,
    flags: u32,
}

/// The shape of the cache tree for one submission.
#[derive(Clone, Debug, Default)]
pub(crate) struct CacheShape {
    /// The number of caches of each level.
    pub caches: [usize; LEVELS],
    /// For each cache of a level, its parent one level up.
    pub parents: [Vec<u32>; LEVELS],
    /// The level at which each reference bypasses caches: [`crate::program::MEMORY`], or less for workgroup
    /// memory.
    pub home_levels: Vec<u8>,
    /// The lowest level that may have a line of each reference.
    pub lowest_levels: Vec<u8>,
    /// The storage class bit of each reference.
    pub classes: Vec<StorageClass>,
    /// By reference: true if its memory is host-visible.
    pub is_host_visible: Vec<bool>,
    /// By reference: true if all accesses are atomic, of one word and one scope, and no other reference
    /// shares its locations.
    pub has_uniform_atomic_scope: Vec<bool>,
    /// True if some access is wider than a line: the cache of an invocation then has two lines of a
    /// reference.
    pub has_wide_accesses: bool,
}

/// Memory words and all caches.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory {
    /// Memory. Word 0 is unused: out-of-bounds addresses lead there.
    pub words: Vec<u32>,
    pub fault: Fault,
    pub store_buffers: StoreBuffers,
    /// The values that were read ahead.
    pub read_ahead_values: ReadAheadTable,
    shape: CacheShape,
    lines: [Vec<CacheLine>; LEVELS],
    /// The base-2 logarithm of the number of sets of a cache, by level.
    set_bits: [u32; LEVELS],
    epochs: [Vec<u32>; LEVELS],
    /// Dirty lines of each shared cache; some may be clean by now.
    dirty: [Vec<Vec<u32>>; LEVELS],
    /// Counts the lines that a fault loses.
    loss_state: u32,
    /// Additional state of faults.
    fault_state: FaultState,
}

impl Memory {
    /// Resets to empty caches of this shape, with room for `busy` lines of a reference on the device.
    pub fn reshape(&mut self, shape: CacheShape, busy: usize) {
        let references = shape.home_levels.len();
        for level in 0..LEVELS {
            let caches = shape.caches[level].max(1);
            // The cache of an invocation has one line of a reference, or two if an access is wider than a
            // line. A shared cache has about two for each invocation below it.
            let each = if level == 0 { 1 } else { (busy / caches).max(1) * 2 };
            let bits = if level == 0 {
                shape.has_wide_accesses.into()
            } else {
                each.next_power_of_two().trailing_zeros().clamp(1, 12)
            };
            self.set_bits[level] = bits;
            self.lines[level].clear();
            self.lines[level].resize((caches * references) << bits, CacheLine::default());
            self.epochs[level].clear();
            self.epochs[level].resize(caches, 0);
            self.dirty[level].iter_mut().for_each(Vec::clear);
            self.dirty[level].resize(caches, Vec::new());
        }
        self.shape = shape;
        self.store_buffers = StoreBuffers::default();
        self.read_ahead_values = ReadAheadTable::default();
        self.loss_state = 0;
        self.fault_state = FaultState::default();
    }

    /// Returns the number of caches of a level.
    pub fn cache_count(&self, level: u8) -> usize {
        self.shape.caches.get(usize::from(level)).copied().unwrap_or(0)
    }

    /// Returns true if only atomics of one word and one scope access the locations of a reference.
    #[inline]
    pub fn has_uniform_atomic_scope(&self, reference: usize) -> bool {
        self.shape.has_uniform_atomic_scope.get(reference).copied().unwrap_or(false)
    }

    /// Hashes the contents of the caches.
    pub fn fingerprint(&self, hasher: &mut impl std::hash::Hasher) {
        use std::hash::Hash;
        for (level, lines) in self.lines.iter().enumerate() {
            for (slot, line) in lines.iter().enumerate().filter(|(_, line)| line.address != 0) {
                let valid = self.epochs[level].get(self.cache_of(level, slot)) == Some(&line.epoch);
                (level, slot, line.address, line.value, line.flags, valid).hash(hasher);
            }
        }
    }

    #[inline]
    fn slot_index(&self, level: usize, cache: u32, reference: usize, address: u32) -> usize {
        let set = (cache as usize * self.shape.home_levels.len() + reference) << self.set_bits[level];
        let bits = self.set_bits[level];
        if bits == 0 {
            return set;
        }
        // The two halves of a wide access are adjacent words, which must not evict each other.
        if level == 0 {
            return set + (address & 1) as usize;
        }
        // Fibonacci hashing: strided addresses spread over the sets.
        set + (address.wrapping_mul(0x9e37_79b1) >> (32 - bits)) as usize
    }

    #[inline]
    fn reference_of(&self, level: usize, slot: usize) -> usize {
        (slot >> self.set_bits[level]) % self.shape.home_levels.len()
    }

    #[inline]
    fn cache_of(&self, level: usize, slot: usize) -> usize {
        (slot >> self.set_bits[level]) / self.shape.home_levels.len()
    }

    /// Returns true if the line has the whole word, or dirty bytes of it.
    #[inline]
    fn has_line(&self, level: usize, cache: u32, slot: usize, address: u32) -> bool {
        let line = &self.lines[level][slot];
        line.address == address
            // Dirty bytes survive an invalidation; a clean line is valid only in the epoch in which
            // it was filled.
            && (line.flags & DIRTY_BYTES != 0 || line.epoch == self.epochs[level][cache as usize])
    }

    /// Writes a value into a line.
    #[inline]
    fn write_line(
        &mut self,
        level: usize,
        cache: u32,
        reference: usize,
        address: u32,
        value: u32,
        flags: u32,
    ) {
        let slot = self.slot_index(level, cache, reference, address);
        let line = self.lines[level][slot];
        // The set has one line: a dirty line of another address is written back before it is replaced.
        if line.flags & DIRTY_BYTES != 0 && line.address != address {
            self.write_back_line(level, slot);
        }
        let listed = level > 0 && flags & DIRTY_BYTES != 0;
        // A line that is dirty already is in the list.
        if listed && (line.flags & DIRTY_BYTES == 0 || line.address != address) {
            self.dirty[level][cache as usize].push(slot as u32);
        }
        let (mut value, mut flags) = (value, flags);
        if flags & DIRTY_BYTES != ALL_BYTES && line.flags & DIRTY_BYTES != 0 && line.address == address {
            // A merged line is private only if all its bytes are.
            value = merge_bytes(line.value, value, flags);
            flags = (flags | line.flags) & DIRTY_BYTES | flags & line.flags & PRIVATE_FLAG;
        }
        let epoch = self.epochs[level][cache as usize];
        self.lines[level][slot] = CacheLine { address, value, epoch, flags };
    }

    /// Writes a dirty line back one level up. It stays in the cache, clean.
    fn write_back_line(&mut self, level: usize, slot: usize) {
        let reference = self.reference_of(level, slot);
        let cache = self.cache_of(level, slot);
        let line = &mut self.lines[level][slot];
        let CacheLine { address, value, flags, .. } = *line;
        let bytes = flags & DIRTY_BYTES;
        line.flags &= !DIRTY_BYTES;
        line.epoch = self.epochs[level][cache];
        // A partial line held only its dirty bytes, so nothing of it can stay as a clean line.
        if bytes != ALL_BYTES {
            line.address = 0;
        }
        if self.fault == Fault::EvictionDropsDirty {
            self.loss_state = self.loss_state.wrapping_mul(0x0019_660d).wrapping_add(0x3c6e_f35f);
            if self.loss_state >> 28 == 0 {
                return;
            }
        }
        if level == 0 && self.fault == Fault::WholeLineWrittenBack {
            self.overwrite_neighbour(cache as u32, reference, address);
        }
        if level + 1 == usize::from(self.shape.home_levels[reference]) {
            self.write_word(address, merge_bytes(self.read_word(address), value, bytes));
            return;
        }
        let parent = self.shape.parents[level][cache];
        self.write_line(level + 1, parent, reference, address, value, bytes);
    }

    fn write_word(&mut self, address: u32, value: u32) {
        if let Some(word) = self.words.get_mut(address as usize).filter(|_| address != 0) {
            *word = value;
        }
    }

    #[inline]
    fn read_word(&self, address: u32) -> u32 {
        self.words.get(address as usize).copied().unwrap_or(0)
    }

    /// Writes the dirty lines of an address back up to `level`.
    #[inline]
    fn flush(&mut self, path: &CachePath, reference: usize, address: u32, level: u8) {
        let lowest = usize::from(self.shape.lowest_levels[reference]);
        // From the lowest level upward, so that a line that moves up is included at the next level.
        for (below, cache) in path.iter().enumerate().take(level.into()).skip(lowest) {
            let slot = self.slot_index(below, *cache, reference, address);
            let line = &self.lines[below][slot];
            if line.address == address && line.flags & DIRTY_BYTES != 0 {
                self.write_back_line(below, slot);
                if below == 0 {
                    self.lines[below][slot].flags &= !PRIVATE_FLAG;
                }
            }
        }
    }

    /// Drops the clean lines of an address below `level`.
    #[inline]
    fn invalidate(&mut self, path: &CachePath, reference: usize, address: u32, level: u8) {
        let lowest = usize::from(self.shape.lowest_levels[reference]);
        for (below, cache) in path.iter().enumerate().take(level.into()).skip(lowest) {
            let slot = self.slot_index(below, *cache, reference, address);
            let line = &mut self.lines[below][slot];
            if line.address == address && line.flags & DIRTY_BYTES == 0 {
                line.address = 0;
            }
        }
    }

    /// Returns the value at `level`, fetched from above on a miss.
    #[inline]
    fn read_at(&mut self, path: &CachePath, reference: usize, address: u32, level: u8) -> u32 {
        let home = self.shape.home_levels[reference];
        if level >= home {
            return self.read_word(address);
        }
        let level_index = usize::from(level);
        let slot = self.slot_index(level_index, path[level_index], reference, address);
        if self.has_line(level_index, path[level_index], slot, address) {
            let line = self.lines[level_index][slot];
            let bytes = line.flags & DIRTY_BYTES;
            if bytes == 0 || bytes == ALL_BYTES {
                return line.value;
            }
            // Bytes that are not dirty here may be newer above.
            return merge_bytes(self.read_at(path, reference, address, level + 1), line.value, bytes);
        }
        let value = self.read_at(path, reference, address, level + 1);
        self.write_line(level_index, path[level_index], reference, address, value, 0);
        value
    }

    #[inline]
    fn write_at(&mut self, path: &CachePath, reference: usize, address: u32, level: u8, value: u32) {
        if level >= self.shape.home_levels[reference] {
            self.write_word(address, value);
        } else {
            let level_index = usize::from(level);
            self.write_line(level_index, path[level_index], reference, address, value, DIRTY_BYTES);
        }
    }

    /// Performs an atomic load at a level.
    #[inline]
    pub fn atomic_load(&mut self, path: &CachePath, reference: usize, address: u32, level: u8) -> u32 {
        let level = level.min(self.shape.home_levels[reference]);
        match self.fault {
            Fault::RelaxedAtomicFromL0 => return self.read_at(path, reference, address, INVOCATION),
            Fault::StaleWorkgroupLine => {
                let from = level.min(crate::program::WORKGROUP);
                self.flush(path, reference, address, from);
                self.invalidate(path, reference, address, from);
                return self.read_at(path, reference, address, from);
            }
            _ => {}
        }
        // Dirty bytes below the level move up first and clean lines are dropped, so the access sees the
        // newest value on its path.
        self.flush(path, reference, address, level);
        self.invalidate(path, reference, address, level);
        self.read_at(path, reference, address, level)
    }

    /// Performs an atomic store at a level.
    #[inline]
    pub fn atomic_store(&mut self, path: &CachePath, reference: usize, address: u32, level: u8, value: u32) {
        let mut level = level.min(self.shape.home_levels[reference]);
        if self.fault == Fault::AtomicStoreInL0 {
            level = INVOCATION;
        }
        self.flush(path, reference, address, level);
        self.invalidate(path, reference, address, level);
        self.write_at(path, reference, address, level, value);
    }

    /// Performs a read-modify-write at a level: writes the result of `change` and returns the old value.
    #[inline]
    pub fn rmw(
        &mut self,
        path: &CachePath,
        reference: usize,
        address: u32,
        level: u8,
        change: impl FnOnce(u32) -> Option<u32>,
    ) -> u32 {
        let mut level = level.min(self.shape.home_levels[reference]);
        let in_host_memory = self.shape.is_host_visible.get(reference) == Some(&true);
        if self.fault == Fault::RmwAtWorkgroup || self.fault == Fault::RmwInHostMemory && in_host_memory {
            level = level.min(crate::program::WORKGROUP);
        }
        self.flush(path, reference, address, level);
        self.invalidate(path, reference, address, level);
        let old = self.read_at(path, reference, address, level);
        if let Some(new) = change(old) {
            self.write_at(path, reference, address, level, new);
        }
        old
    }

    /// Performs a non-atomic store to some bytes of a word, made available up to `available`.
    #[inline]
    pub fn store(
        &mut self,
        path: &CachePath,
        reference: usize,
        address: u32,
        (value, bytes): (u32, u32),
        private: bool,
        available: Option<u8>,
    ) {
        let private = private || self.fault == Fault::NonPrivateLost;
        let (mut value, mut bytes) = (value, bytes);
        if bytes != ALL_BYTES && self.fault == Fault::NarrowStoreIsWord {
            value = merge_bytes(self.load(path, reference, address, private, None, false), value, bytes);
            bytes = ALL_BYTES;
        }
        if self.fault == Fault::WholeLineWrittenBack {
            self.record_neighbour(path[0], reference, address);
        }
        self.write_line(
            0,
            path[0],
            reference,
            address,
            value,
            bytes | if private { PRIVATE_FLAG } else { 0 },
        );
        if let Some(level) = available {
            self.flush(path, reference, address, level.min(self.shape.home_levels[reference]));
        }
    }

    /// Performs a non-atomic load, made visible from `visible`. If `bypass`, it ignores clean lines.
    #[inline]
    pub fn load(
        &mut self,
        path: &CachePath,
        reference: usize,
        address: u32,
        private: bool,
        visible: Option<u8>,
        bypass: bool,
    ) -> u32 {
        let home = usize::from(self.shape.home_levels[reference]);
        if let Some(level) = visible {
            self.invalidate(path, reference, address, level.min(self.shape.home_levels[reference]));
        }
        if bypass {
            // A dirty line has the newest value on this path, so a load never bypasses it.
            let (mut value, mut merged_bytes) = (0, 0);
            // From the lowest level upward: a byte found lower is newer on this path.
            for (level, cache) in path.iter().enumerate().take(home) {
                let line = &self.lines[level][self.slot_index(level, *cache, reference, address)];
                if line.address == address && line.flags & DIRTY_BYTES != 0 {
                    value = merge_bytes(line.value, value, merged_bytes);
                    merged_bytes |= line.flags & DIRTY_BYTES;
                    if merged_bytes == ALL_BYTES {
                        return value;
                    }
                }
            }
            return merge_bytes(self.read_word(address), value, merged_bytes);
        }
        let private = private || self.fault == Fault::NonPrivateLost;
        let slot = self.slot_index(0, path[0], reference, address);
        let line = self.lines[0][slot];
        // A private line serves private accesses only, unless it is dirty: then it is the newest value of the
        // invocation.
        if line.address == address
            && (line.flags & DIRTY_BYTES != 0 || line.flags & PRIVATE_FLAG == 0 || private)
        {
            let bytes = line.flags & DIRTY_BYTES;
            if bytes == 0 || bytes == ALL_BYTES {
                return line.value;
            }
            if self.fault == Fault::ForwardingIgnoresSize {
                return merge_bytes(0, line.value, bytes);
            }
            return merge_bytes(self.read_at(path, reference, address, 1), line.value, bytes);
        }
        let value = self.read_at(path, reference, address, 1);
        self.write_line(0, path[0], reference, address, value, if private { PRIVATE_FLAG } else { 0 });
        value
    }

    /// Copies the value that is found from `level` upward into the lines below that are not dirty.
    pub fn prefetch(&mut self, path: &CachePath, reference: usize, address: u32, private: bool, level: u8) {
        let home = self.shape.home_levels[reference];
        if address == 0 || level >= home || level < self.shape.lowest_levels[reference] {
            return;
        }
        let level_index = usize::from(level);
        let slot = self.slot_index(level_index, path[level_index], reference, address);
        if !self.has_line(level_index, path[level_index], slot, address) {
            let value = self.read_at(path, reference, address, level + 1);
            let flags = if level_index == 0 && private { PRIVATE_FLAG } else { 0 };
            self.write_line(level_index, path[level_index], reference, address, value, flags);
        }
    }

    /// Writes a dirty line of the cache of an invocation back through `levels` levels.
    pub fn write_back(&mut self, path: &CachePath, reference: usize, address: u32, levels: u8) {
        let home = usize::from(self.shape.home_levels[reference]);
        for (level, cache) in path.iter().enumerate().take(usize::from(levels).min(home)) {
            let slot = self.slot_index(level, *cache, reference, address);
            let line = &self.lines[level][slot];
            if line.address == address && line.flags & DIRTY_BYTES != 0 {
                self.write_back_line(level, slot);
            }
        }
    }

    /// Drops a clean line.
    pub fn evict(&mut self, path: &CachePath, reference: usize, address: u32, level: u8) {
        let level_index = usize::from(level);
        if level >= self.shape.home_levels[reference] {
            return;
        }
        let slot = self.slot_index(level_index, path[level_index], reference, address);
        let line = &mut self.lines[level_index][slot];
        if line.address == address && line.flags & DIRTY_BYTES == 0 {
            line.address = 0;
        }
    }

    /// Makes dirty lines below `level` available there. The cache of the invocation contributes its
    /// non-private lines of `classes`. The caches between contribute all lines, since they may
    /// contain data of other accesses.
    pub fn release(&mut self, path: &CachePath, classes: StorageClassSet, level: u8) {
        let level = usize::from(level);
        if level > 0 {
            for slot in self.invocation_slots(path[0]) {
                let line = self.lines[0][slot];
                let reference = self.reference_of(0, slot);
                if line.flags & DIRTY_BYTES != 0
                    && line.flags & PRIVATE_FLAG == 0
                    && classes.contains(self.shape.classes[reference])
                {
                    self.write_back_line(0, slot);
                    if self.fault == Fault::ReleaseNotCumulative {
                        let top = (level as u8).min(self.shape.home_levels[reference]);
                        self.flush(path, reference, line.address, top);
                    }
                }
            }
        }
        if self.fault == Fault::ReleaseNotCumulative {
            return;
        }
        for (below, cache) in path.iter().enumerate().take(level).skip(1) {
            self.write_back_cache(below, *cache);
        }
    }

    /// Writes a dirty line of a shared cache, selected by `choice`, back through `levels` levels.
    pub fn write_back_shared(&mut self, level: usize, cache: u32, choice: usize, levels: u8) {
        let list = &mut self.dirty[level][cache as usize];
        if list.is_empty() {
            return;
        }
        let mut slot = list.swap_remove(choice % list.len()) as usize;
        let address = self.lines[level][slot].address;
        let (mut current_level, mut cache) = (level, cache);
        for _ in 0..levels {
            let line = self.lines[current_level][slot];
            // The list may name lines that have been cleaned or replaced since.
            if line.address != address || line.flags & DIRTY_BYTES == 0 {
                return;
            }
            let reference = self.reference_of(current_level, slot);
            self.write_back_line(current_level, slot);
            if current_level + 1 >= usize::from(self.shape.home_levels[reference]) {
                return;
            }
            cache = self.shape.parents[current_level][cache as usize];
            current_level += 1;
            slot = self.slot_index(current_level, cache, reference, address);
        }
    }

    /// Drops the clean lines of a shared cache.
    pub fn evict_shared(&mut self, level: usize, cache: u32) {
        // A new epoch invalidates all clean lines without a scan.
        let epoch = &mut self.epochs[level][cache as usize];
        *epoch = epoch.wrapping_add(1);
    }

    /// Writes every dirty line of a shared cache back one level up.
    fn write_back_cache(&mut self, level: usize, cache: u32) {
        if self.dirty[level][cache as usize].is_empty() {
            return;
        }
        let mut list = std::mem::take(&mut self.dirty[level][cache as usize]);
        for slot in list.drain(..) {
            if self.lines[level][slot as usize].flags & DIRTY_BYTES != 0 {
                self.write_back_line(level, slot as usize);
            }
        }
        self.dirty[level][cache as usize] = list;
    }

    /// Makes available values at `level` visible: drops clean lines below it. In the cache of the invocation
    /// it drops only the non-private lines of `classes`.
    pub fn acquire(&mut self, path: &CachePath, classes: StorageClassSet, level: u8) {
        let level = usize::from(level);
        if level > 0 {
            for slot in self.invocation_slots(path[0]) {
                let reference = self.reference_of(0, slot);
                let line = &mut self.lines[0][slot];
                let address = line.address;
                if address != 0
                    && line.flags & (DIRTY_BYTES | PRIVATE_FLAG) == 0
                    && classes.contains(self.shape.classes[reference])
                {
                    line.address = 0;
                    if self.fault == Fault::InvalidateOrderWrong {
                        // Refilled from the next cache, which is invalidated after this one.
                        self.prefetch(path, reference, address, false, INVOCATION);
                    }
                }
            }
        }
        if self.fault != Fault::AcquireOwnCacheOnly {
            for (below, cache) in path.iter().enumerate().take(level).skip(1) {
                let epoch = &mut self.epochs[below][*cache as usize];
                *epoch = epoch.wrapping_add(1);
            }
        }
    }

    /// Writes all lines back to memory: the availability operation of a domain, or the end of a submission.
    pub fn write_back_all(&mut self) {
        // In ascending order, so that lines written back from one level continue from the next.
        for level in 0..LEVELS {
            if level == 0 {
                for slot in 0..self.lines[0].len() {
                    if self.lines[0][slot].flags & DIRTY_BYTES != 0 {
                        self.write_back_line(0, slot);
                    }
                }
            } else {
                for cache in 0..self.shape.caches[level] {
                    self.write_back_cache(level, cache as u32);
                }
            }
        }
    }

    /// Drops every clean line: the visibility operation of a domain.
    pub fn invalidate_all(&mut self) {
        for line in &mut self.lines[0] {
            if line.flags & DIRTY_BYTES == 0 {
                line.address = 0;
            }
        }
        for epoch in self.epochs.iter_mut().flatten() {
            *epoch = epoch.wrapping_add(1);
        }
    }

    /// Returns true if any reference can have lines.
    pub fn caches_anything(&self) -> bool {
        self.shape.home_levels.iter().zip(&self.shape.lowest_levels).any(|(home, lowest)| lowest < home)
    }

    /// Reads a word from memory, ignoring caches.
    pub fn peek(&self, address: u32) -> u32 {
        self.read_word(address)
    }

    /// Writes a word in memory, ignoring caches.
    pub fn poke(&mut self, address: u32, value: u32) {
        self.write_word(address, value);
    }

    /// Returns the address of a reference's line in the cache of an invocation; `choice` selects one of
    /// several.
    pub fn invocation_line(&self, invocation: u32, reference: usize, choice: u32) -> u32 {
        self.lines[0][self.slot_index(0, invocation, reference, choice)].address
    }

    /// Returns the slots of the cache of an invocation.
    #[inline]
    fn invocation_slots(&self, invocation: u32) -> std::ops::Range<usize> {
        let each = self.shape.home_levels.len() << self.set_bits[0];
        let first = invocation as usize * each;
        first..first + each
    }
}
