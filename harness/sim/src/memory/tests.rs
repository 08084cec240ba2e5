//! Tests of partially dirty lines, wide accesses and store buffers.

use super::*;
use crate::program::{DEVICE, MEMORY, QUEUE_FAMILY, WORKGROUP};

const BUFFERS: StorageClassSet = StorageClassSet::EMPTY.with(StorageClass::Buffer);

/// Creates two invocations in separate workgroups, one reference, and four words of memory from word 2.
fn memory() -> Memory {
    let mut memory = Memory { words: vec![0; 6], ..Memory::default() };
    let parents = [vec![0, 1], vec![0, 1], vec![0, 0], vec![0], Vec::new()];
    let shape = CacheShape {
        caches: [2, 2, 2, 1, 1],
        parents,
        home_levels: vec![MEMORY],
        lowest_levels: vec![0],
        classes: vec![StorageClass::Buffer],
        is_host_visible: vec![false],
        has_uniform_atomic_scope: vec![true],
        has_wide_accesses: true,
    };
    memory.reshape(shape, 2);
    memory
}

const FIRST: CachePath = [0, 0, 0, 0, 0];
const SECOND: CachePath = [1, 1, 1, 0, 0];

#[test]
fn neighbouring_bytes_survive_each_other() {
    let mut memory = memory();
    memory.words[2] = 0x0a0b_0c0d;
    memory.store(&FIRST, 0, 2, (0x11, 0b0001), false, None);
    memory.store(&SECOND, 0, 2, (0x2200, 0b0010), false, None);
    assert_eq!(memory.load(&FIRST, 0, 2, false, None, false), 0x0a0b_0c11);
    assert_eq!(memory.load(&SECOND, 0, 2, false, None, true), 0x0a0b_220d);
    memory.write_back_all();
    assert_eq!(memory.words[2], 0x0a0b_2211);
}

#[test]
fn a_release_publishes_all_dirty_bytes_of_a_word() {
    let mut memory = memory();
    // A merged line is private only if all its bytes are.
    memory.store(&FIRST, 0, 2, (0x11, 0b0001), true, None);
    memory.store(&FIRST, 0, 2, (0x2200, 0b0010), false, None);
    memory.release(&FIRST, BUFFERS, DEVICE);
    assert_eq!(memory.atomic_load(&SECOND, 0, 2, DEVICE), 0x2211);
}

#[test]
fn the_private_cache_has_both_words_of_a_wide_number() {
    let mut memory = memory();
    memory.store(&FIRST, 0, 2, (1, ALL_BYTES), false, None);
    memory.store(&FIRST, 0, 3, (2, ALL_BYTES), false, None);
    assert_eq!((memory.words[2], memory.words[3]), (0, 0));
    assert_eq!(memory.atomic_load(&SECOND, 0, 2, DEVICE), 0);
    memory.release(&FIRST, BUFFERS, DEVICE);
    assert_eq!(memory.atomic_load(&SECOND, 0, 2, DEVICE), 1);
    assert_eq!(memory.atomic_load(&SECOND, 0, 3, DEVICE), 2);
}

#[test]
fn a_buffered_store_is_seen_by_its_group_as_far_as_scopes_reach() {
    let mut memory = memory();
    memory.buffer_store(1, &FIRST, 0, 2, (DEVICE, 7));
    assert_eq!(memory.forwarded_value(1, &SECOND, 0, 2, DEVICE), Some(7));
    assert_eq!(memory.forwarded_value(1, &SECOND, 0, 2, WORKGROUP), None);
    assert_eq!(memory.forwarded_value(0, &SECOND, 0, 2, DEVICE), None);
    assert_eq!(memory.atomic_load(&SECOND, 0, 2, DEVICE), 0);
    // The next store of the group to the location drains the buffered one.
    memory.buffer_store(1, &FIRST, 0, 2, (DEVICE, 8));
    assert_eq!(memory.atomic_load(&SECOND, 0, 2, DEVICE), 7);
    memory.drain_group(0, false);
    assert_eq!(memory.atomic_load(&SECOND, 0, 2, DEVICE), 7);
    memory.drain_group(1, false);
    assert_eq!(memory.atomic_load(&SECOND, 0, 2, DEVICE), 8);
    assert_eq!(memory.forwarded_value(1, &SECOND, 0, 2, DEVICE), None);
}

#[test]
fn a_workgroup_release_may_keep_stores_to_calm_locations_buffered() {
    let mut memory = memory();
    memory.buffer_store(1, &FIRST, 0, 2, (DEVICE, 7));
    memory.drain_group(1, true);
    assert_eq!(memory.atomic_load(&SECOND, 0, 2, DEVICE), 0);
    assert_eq!(memory.forwarded_value(1, &FIRST, 0, 2, DEVICE), Some(7));
    memory.drain_group(1, false);
    assert_eq!(memory.atomic_load(&SECOND, 0, 2, DEVICE), 7);
}

#[test]
fn prefetched_values_last_until_a_wide_acquire_or_an_outside_store() {
    let mut memory = memory();
    memory.start_read_ahead(Some(WORKGROUP));
    let ahead = |memory: &mut Memory| {
        memory.record_read_ahead(&FIRST, 0, 2, DEVICE);
        memory.read_ahead_value(&FIRST, 0, 2)
    };
    assert_eq!(ahead(&mut memory), Some(0));
    assert_eq!(memory.read_ahead_value(&SECOND, 0, 2), None);
    // After a write by another workgroup, a load without an acquire may still return the cached value.
    memory.atomic_store(&SECOND, 0, 2, DEVICE, 5);
    memory.discard_read_ahead(&SECOND, 0, 2);
    memory.acquire_read_ahead(&FIRST, WORKGROUP);
    assert_eq!(memory.read_ahead_value(&FIRST, 0, 2), Some(0));
    memory.acquire_read_ahead(&FIRST, QUEUE_FAMILY);
    assert_eq!(memory.read_ahead_value(&FIRST, 0, 2), None);
    assert_eq!(ahead(&mut memory), Some(5));
    memory.discard_read_ahead(&FIRST, 0, 2);
    assert_eq!(memory.read_ahead_value(&FIRST, 0, 2), None);
    // A load that hits the cache is not prefetched.
    memory.record_read_ahead(&FIRST, 0, 2, WORKGROUP);
    assert_eq!(memory.read_ahead_value(&FIRST, 0, 2), None);
}
