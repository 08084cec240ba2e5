//! Speculative atomic loads: a cache reads values ahead of branches and of acquires of narrower scopes.
//!
//! In some rounds each cache of one level records the values for later atomic loads as soon as their
//! addresses are known: before an earlier branch is decided, before an earlier acquire is performed. A load
//! consumes a recorded value at most a few times. The load then has the value of an earlier point in time. No
//! race-free program can observe this:
//!
//! - All invocations below the cache read the same value. A store, a read-modify-write, or a load of a newer
//!   value below the cache discards the recorded value of that location. So values never go back in
//!   modification order.
//! - An invocation that is ordered after a write from elsewhere has performed an acquire whose scope reaches
//!   beyond the cache, or synchronizes with an invocation below the cache that has. Such an acquire discards
//!   all recorded values of the cache.
//!
//! Only locations with a *uniform atomic scope* are recorded: all accesses are atomic, of one word and of one
//! scope, through one reference. No atomic store stays in a store buffer in such a round.

use super::{CachePath, Memory};

const SLOTS: usize = 1 << 11;

/// A value that was read ahead.
#[derive(Clone, Copy, Debug, Default)]
struct ReadAheadEntry {
    /// The address in words; 0 for an empty entry.
    address: u32,
    reference: u32,
    cache: u32,
    epoch: u32,
    value: u32,
}

/// The read-ahead entries of all caches of one level.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReadAheadTable {
    /// The level of the caches that read ahead; `None` disables reading ahead.
    level: Option<u8>,
    slots: Vec<ReadAheadEntry>,
    /// The epoch of each cache; entries of an older epoch are dead.
    epochs: Vec<u32>,
}

impl ReadAheadTable {
    fn slot_index(cache: u32, reference: usize, address: u32) -> usize {
        // Fibonacci hashing spreads neighbouring addresses over the slots.
        let mixed = (address ^ (reference as u32) << 21 ^ cache << 9).wrapping_mul(0x9e37_79b1);
        (mixed >> 21) as usize % SLOTS
    }

    fn find(&mut self, path: &CachePath, reference: usize, address: u32) -> Option<&mut ReadAheadEntry> {
        let cache = path[usize::from(self.level?)];
        let epoch = self.epochs.get(cache as usize)?;
        let entry = self.slots.get_mut(ReadAheadTable::slot_index(cache, reference, address))?;
        let same = entry.address == address && entry.reference as usize == reference && entry.cache == cache;
        (same && address != 0 && entry.epoch == *epoch).then_some(entry)
    }
}

impl Memory {
    /// Forgets all entries and makes the caches of this level read ahead from now on.
    pub fn start_read_ahead(&mut self, level: Option<u8>) {
        let was_active = self.read_ahead_values.level.is_some();
        self.read_ahead_values.level = level;
        if let Some(level) = level {
            self.read_ahead_values.epochs.clear();
            self.read_ahead_values.epochs.resize(self.cache_count(level), 0);
        }
        if level.is_some() || was_active {
            self.read_ahead_values.slots.clear();
        }
        if level.is_some() {
            self.read_ahead_values.slots.resize(SLOTS, ReadAheadEntry::default());
        }
    }

    /// Returns true if some level reads ahead.
    #[inline]
    pub fn reads_ahead(&self) -> bool {
        self.read_ahead_values.level.is_some()
    }

    /// Records the value that an atomic load of this scope would read.
    pub fn record_read_ahead(&mut self, path: &CachePath, reference: usize, address: u32, scope: u8) {
        let Some(level) = self.read_ahead_values.level else { return };
        // A load whose scope ends at or below the cache may see values that the cache does not.
        if address == 0 || scope <= level || !self.has_uniform_atomic_scope(reference) {
            return;
        }
        let value = self.atomic_load(path, reference, address, scope);
        let cache = path[usize::from(level)];
        let epoch = self.read_ahead_values.epochs.get(cache as usize).copied().unwrap_or(0);
        if let Some(entry) =
            self.read_ahead_values.slots.get_mut(ReadAheadTable::slot_index(cache, reference, address))
        {
            *entry = ReadAheadEntry { address, reference: reference as u32, cache, epoch, value };
        }
    }

    /// Returns the value that was read ahead for an atomic load.
    #[inline]
    pub fn read_ahead_value(&mut self, path: &CachePath, reference: usize, address: u32) -> Option<u32> {
        self.read_ahead_values.level?;
        self.read_ahead_values.find(path, reference, address).map(|entry| entry.value)
    }

    /// Forgets the recorded value of a location.
    #[inline]
    pub fn discard_read_ahead(&mut self, path: &CachePath, reference: usize, address: u32) {
        if self.read_ahead_values.level.is_some()
            && let Some(entry) = self.read_ahead_values.find(path, reference, address)
        {
            entry.address = 0;
        }
    }

    /// Drops the entries that an acquire of this scope invalidates.
    #[inline]
    pub fn acquire_read_ahead(&mut self, path: &CachePath, scope: u8) {
        // An acquire whose scope ends below this cache orders nothing that the cache could not see.
        let Some(level) = self.read_ahead_values.level.filter(|level| scope > *level) else { return };
        if let Some(epoch) = self.read_ahead_values.epochs.get_mut(path[usize::from(level)] as usize) {
            // A new epoch invalidates all entries of the cache without a scan.
            *epoch = epoch.wrapping_add(1);
        }
    }
}
