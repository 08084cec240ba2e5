//! Loads that go ahead of their place: what a cache has read for those behind it, and an acquire of a narrower scope leaves.
//!
//! In some rounds each cache of one level keeps what atomic loads behind it will find, as soon as their addresses are known:
//! before a branch in front of them is decided, before an acquire that stands there is performed. A load takes what is
//! kept, at most a few times. It is as if the load had been performed when the value was fetched, which nobody may tell:
//!
//! - Everybody behind the cache finds the same. Whatever else is done to the location from behind it, a store, a
//!   read-modify-write, a load that found more, ends what is kept of it: so values never go back.
//! - Whoever is ordered behind a write from elsewhere has performed an acquire whose scope reaches beyond the cache, or
//!   somebody behind the cache has and then let it know. Such an acquire ends all that the cache keeps.
//!
//! Only locations that are *calm* are read ahead: all accesses to them are atomic, of one word and of one scope, through one
//! reference. No atomic store is kept back in such a round.

use crate::memory::{Memory, Path};

const SLOTS: usize = 1 << 11;

/// A value that was read ahead.
#[derive(Clone, Copy, Debug, Default)]
struct ReadAheadEntry {
    /// 0 where there is none.
    address: u32,
    reference: u32,
    cache: u32,
    epoch: u32,
    value: u32,
}

/// What all caches of one level have read ahead.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ahead {
    /// The level of the caches that do; nothing is read ahead where there is none.
    level: Option<u8>,
    slots: Vec<ReadAheadEntry>,
    /// By cache: what was kept under another number is dead.
    epochs: Vec<u32>,
}

impl Ahead {
    fn slot(cache: u32, reference: usize, address: u32) -> usize {
        let mixed = (address ^ (reference as u32) << 21 ^ cache << 9).wrapping_mul(0x9e37_79b1);
        (mixed >> 21) as usize % SLOTS
    }

    fn find(&mut self, path: &Path, reference: usize, address: u32) -> Option<&mut ReadAheadEntry> {
        let cache = path[usize::from(self.level?)];
        let epoch = self.epochs.get(cache as usize)?;
        let kept = self.slots.get_mut(Ahead::slot(cache, reference, address))?;
        let same = kept.address == address && kept.reference as usize == reference && kept.cache == cache;
        (same && address != 0 && kept.epoch == *epoch).then_some(kept)
    }
}

impl Memory {
    /// From now on caches of this level read ahead; what was kept is forgotten.
    pub fn begin_ahead(&mut self, level: Option<u8>) {
        let was_active = self.ahead.level.is_some();
        self.ahead.level = level;
        if let Some(level) = level {
            self.ahead.epochs.clear();
            self.ahead.epochs.resize(self.caches_of(level), 0);
        }
        if level.is_some() || was_active {
            self.ahead.slots.clear();
        }
        if level.is_some() {
            self.ahead.slots.resize(SLOTS, ReadAheadEntry::default());
        }
    }

    /// Whether anything is read ahead.
    #[inline]
    pub fn reads_ahead(&self) -> bool {
        self.ahead.level.is_some()
    }

    /// Reads ahead what an atomic load of this scope would find.
    pub fn read_ahead(&mut self, path: &Path, reference: usize, address: u32, scope: u8) {
        let Some(level) = self.ahead.level else { return };
        if address == 0 || scope <= level || !self.is_calm(reference) {
            return;
        }
        let value = self.atomic_load(path, reference, address, scope);
        let cache = path[usize::from(level)];
        let epoch = self.ahead.epochs.get(cache as usize).copied().unwrap_or(0);
        if let Some(kept) = self.ahead.slots.get_mut(Ahead::slot(cache, reference, address)) {
            *kept = ReadAheadEntry { address, reference: reference as u32, cache, epoch, value };
        }
    }

    /// What an atomic load finds that was read ahead.
    #[inline]
    pub fn found_ahead(&mut self, path: &Path, reference: usize, address: u32) -> Option<u32> {
        self.ahead.level?;
        self.ahead.find(path, reference, address).map(|kept| kept.value)
    }

    /// Forgets what was read ahead of a location.
    #[inline]
    pub fn forget_ahead(&mut self, path: &Path, reference: usize, address: u32) {
        if self.ahead.level.is_some()
            && let Some(kept) = self.ahead.find(path, reference, address)
        {
            kept.address = 0;
        }
    }

    /// What an acquire of this scope does to what was read ahead.
    #[inline]
    pub fn acquire_ahead(&mut self, path: &Path, scope: u8) {
        let Some(level) = self.ahead.level.filter(|level| scope > *level) else { return };
        if let Some(epoch) = self.ahead.epochs.get_mut(path[usize::from(level)] as usize) {
            *epoch = epoch.wrapping_add(1);
        }
    }
}
