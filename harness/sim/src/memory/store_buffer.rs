//! Store buffers: they make atomic stores visible to some invocations before others (not multi-copy atomic).
//!
//! Each round assigns waves to groups at random. An atomic store may stay in the buffer of its group for some
//! time. Atomic loads of the group whose scope and that of the store include each other read the buffered
//! value; all other loads read the older value. A buffer holds one store per location, and the next store
//! drains it, so stores of a group to a location are performed in order. Every release first drains the
//! buffer of its group, since the invocation may have observed all of it.

use super::{CachePath, Memory};

/// The maximal number of store buffers.
pub(crate) const MAX_STORE_BUFFERS: usize = 8;
const SLOTS: usize = 1 << 11;

/// A buffered atomic store that was not performed yet.
#[derive(Clone, Copy, Debug, Default)]
struct BufferedStore {
    /// The address in words; 0 for an empty slot.
    address: u32,
    reference: u32,
    value: u32,
    group: u8,
    level: u8,
    path: CachePath,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct StoreBuffers {
    slots: Vec<BufferedStore>,
    /// The slots that each group has filled. Some may be empty again, or belong to another group.
    filled: [Vec<u16>; MAX_STORE_BUFFERS],
}

impl StoreBuffers {
    fn slot_index(group: u8, reference: usize, address: u32) -> usize {
        let mixed = (address ^ (reference as u32) << 21 ^ u32::from(group) << 27).wrapping_mul(0x9e37_79b1);
        (mixed >> 21) as usize % SLOTS
    }

    fn find(&self, group: u8, reference: usize, address: u32) -> Option<(usize, &BufferedStore)> {
        if self.filled.get(usize::from(group)).is_none_or(Vec::is_empty) {
            return None;
        }
        let slot = StoreBuffers::slot_index(group, reference, address);
        let pending = self.slots.get(slot)?;
        let same = pending.address == address && pending.reference as usize == reference;
        (same && address != 0 && pending.group == group).then_some((slot, pending))
    }
}

impl Memory {
    /// Puts an atomic store into the buffer of a group.
    pub fn buffer_store(
        &mut self,
        group: u8,
        path: &CachePath,
        reference: usize,
        address: u32,
        (level, value): (u8, u32),
    ) {
        if self.store_buffers.slots.is_empty() {
            self.store_buffers.slots = vec![BufferedStore::default(); SLOTS];
        }
        let slot = StoreBuffers::slot_index(group, reference, address);
        // The slot may have an older store to the location, or to another location with the same hash.
        // Performing it early is always allowed.
        self.perform_buffered(slot);
        let pending =
            BufferedStore { address, reference: reference as u32, value, group, level, path: *path };
        let filled = self.store_buffers.filled.get_mut(usize::from(group));
        if let (Some(free), Some(filled)) = (self.store_buffers.slots.get_mut(slot), filled) {
            *free = pending;
            filled.push(slot as u16);
        }
    }

    /// Returns the value that an atomic load of a group finds in its buffer.
    #[inline]
    pub fn forwarded_value(
        &self,
        group: u8,
        path: &CachePath,
        reference: usize,
        address: u32,
        level: u8,
    ) -> Option<u32> {
        let (_, pending) = self.store_buffers.find(group, reference, address)?;
        // The first common cache: forwarding needs both scopes to reach at least there (mutually
        // inclusive scopes).
        let common_level = path.iter().zip(&pending.path).position(|(own, other)| own == other);
        let reaches = common_level.is_some_and(|together| together <= usize::from(level.min(pending.level)));
        reaches.then_some(pending.value)
    }

    /// Performs the buffered store of a group to a location.
    #[inline]
    pub fn drain_location(&mut self, group: u8, reference: usize, address: u32) {
        if let Some((slot, _)) = self.store_buffers.find(group, reference, address) {
            self.perform_buffered(slot);
        }
    }

    /// Performs the buffered stores of a group, except those to references with a uniform scope if
    /// `keeps_uniform`.
    pub fn drain_group(&mut self, group: u8, keeps_uniform: bool) {
        let Some(filled) = self.store_buffers.filled.get_mut(usize::from(group)) else { return };
        if filled.is_empty() {
            return;
        }
        let mut slots = std::mem::take(filled);
        slots.retain(|slot| {
            let pending = self.store_buffers.slots.get(usize::from(*slot)).copied().unwrap_or_default();
            // The slot was drained since it was recorded, or belongs to another group by now.
            if pending.group != group || pending.address == 0 {
                return false;
            }
            let stays = keeps_uniform && self.has_uniform_atomic_scope(pending.reference as usize);
            if !stays {
                self.perform_buffered((*slot).into());
            }
            stays
        });
        if let Some(filled) = self.store_buffers.filled.get_mut(usize::from(group)) {
            *filled = slots;
        }
    }

    /// Performs some of the stores of a group, selected by `choice`.
    pub fn drain_some(&mut self, group: u8, choice: u64) {
        let Some(filled) = self.store_buffers.filled.get_mut(usize::from(group)) else { return };
        let count = filled.len() as u64;
        for turn in 0..(choice >> 32) % 8 + 1 {
            if filled.is_empty() {
                return;
            }
            let at = ((choice & 0xffff_ffff) + turn * 7) % count;
            let slot = filled.swap_remove(at as usize % filled.len());
            if self.store_buffers.slots.get(usize::from(slot)).is_some_and(|pending| pending.group == group) {
                return self.perform_buffered(slot.into());
            }
        }
    }

    /// Performs all stores of all buffers.
    pub fn drain_all(&mut self) {
        for group in 0..MAX_STORE_BUFFERS as u8 {
            self.drain_group(group, false);
        }
    }

    fn perform_buffered(&mut self, slot: usize) {
        let Some(slot) = self.store_buffers.slots.get_mut(slot).filter(|pending| pending.address != 0) else {
            return;
        };
        let BufferedStore { address, reference, value, level, path, .. } = std::mem::take(slot);
        self.atomic_store(&path, reference as usize, address, level, value);
    }
}
