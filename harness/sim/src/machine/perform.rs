//! Performs memory operations of some lanes: loads, stores, read-modify-writes, and the cache effects of
//! barriers.

use vocabulary::{StorageClass, StorageClassSet};

use super::{HalfPerformedRmw, Machine, ReusedLoad};
use crate::fault::Fault;
use crate::memory::{ALL_BYTES, CachePath};
use crate::program::{INVOCATION, MemoryOp, MemoryOpKind, Program, QUEUE_FAMILY, Rmw, SUBGROUP, WORKGROUP};
use crate::random::lanes_in_mask;
use crate::wave::DispatchState;

impl Machine {
    pub(super) fn perform_operation(
        &mut self,
        number: usize,
        slot: u8,
        mask: u64,
        program: &Program,
        dispatch: &DispatchState,
    ) {
        let Some(op) = self.waves[number].operation(slot, program).copied() else { return };
        let mask = self.mask_helper_lanes(number, slot, mask, &op);
        if mask == 0 {
            return;
        }
        let reference = dispatch.bindings.get(usize::from(op.reference)).map_or(0, |bound| bound.reference);
        let mut done = mask;
        // Before the operation: it may release stores that are still in the buffer.
        self.drain_store_buffers(number, slot, mask, &op, reference);
        match op.kind {
            _ if op.is_access() && op.bytes != 4 => {
                done = self.perform_sized(number, slot, mask, &op, reference)
            }
            MemoryOpKind::PlainLoad => self.load_nonatomic(number, slot, mask, &op, reference),
            MemoryOpKind::PlainStore => {
                let available = (op.available && self.fault != Fault::AvailableDropped)
                    .then(|| self.effective_scope(&op));
                let wave = &self.waves[number];
                for lane in lanes_in_mask(mask) {
                    let (address, value, _) = wave.word_operands(slot, lane);
                    if address != 0 {
                        let path = &wave.paths[lane];
                        self.memory.store(
                            path,
                            reference,
                            address,
                            (value, ALL_BYTES),
                            op.private,
                            available,
                        );
                    }
                }
            }
            MemoryOpKind::AtomicLoad => {
                let level = self.atomic_scope(&op);
                let (buffers, group) = (self.weights.buffered_store_rate > 0, self.store_buffer_of(number));
                let ahead = self.memory.reads_ahead();
                let wave = &mut self.waves[number];
                for lane in lanes_in_mask(mask) {
                    let (address, ..) = wave.word_operands(slot, lane);
                    let path = &wave.paths[lane];
                    // The store buffer of the group is checked first; without store buffers, a value that a
                    // cache has prefetched.
                    let early = match buffers {
                        true => self.memory.forwarded_value(group, path, reference, address, level),
                        false => self.memory.read_ahead_value(path, reference, address),
                    };
                    // Address 0 is out of bounds and reads as zero.
                    let value = match (address, early) {
                        (0, _) => 0,
                        (_, Some(value)) => value,
                        _ => self.memory.atomic_load(path, reference, address, level),
                    };
                    let value = if op.reused {
                        let (round, source) = (wave.rounds, wave.operation_index(slot));
                        let load = ReusedLoad { wave: number, lane, round, source, address };
                        *self.reused_loads.entry(load).or_insert(value)
                    } else {
                        value
                    };
                    // A prefetched value is dropped eventually, so that a polling loop does not read it for
                    // ever.
                    if ahead && (early.is_none() || self.random.chance(128)) {
                        self.memory.discard_read_ahead(path, reference, address);
                    }
                    wave.write_loaded(slot, lane, value);
                }
            }
            MemoryOpKind::AtomicStore => {
                self.idle_budget = self.limits.idle;
                let level = self.atomic_scope(&op);
                let buffered_lanes = if self.weights.buffered_store_rate > 0 {
                    self.random.mask(self.weights.buffered_store_rate)
                } else {
                    0
                };
                let group = self.store_buffer_of(number);
                let wave = &self.waves[number];
                for lane in lanes_in_mask(mask) {
                    let (address, value, _) = wave.word_operands(slot, lane);
                    if address != 0 && (buffered_lanes >> lane) & 1 != 0 {
                        self.memory.buffer_store(
                            group,
                            &wave.paths[lane],
                            reference,
                            address,
                            (level, value),
                        );
                    } else if address != 0 {
                        self.memory.discard_read_ahead(&wave.paths[lane], reference, address);
                        self.memory.atomic_store(&wave.paths[lane], reference, address, level, value);
                    }
                }
            }
            MemoryOpKind::Rmw(change) => {
                done = self.read_modify_write(number, slot, mask, &op, change, reference)
            }
            MemoryOpKind::Fence | MemoryOpKind::ReleasePart | MemoryOpKind::AcquirePart => {
                self.synchronize(number, mask, &op)
            }
            MemoryOpKind::Arrive => {
                self.synchronize(number, mask, &op);
                self.arrive_at_barrier(number, slot, mask, &op);
            }
            MemoryOpKind::Leave => self.synchronize(number, mask, &op),
            // Entering a section is progress even without a store.
            MemoryOpKind::SectionBegin { .. } => {
                self.idle_budget = self.limits.idle;
                // A section acquires after entering and releases before leaving.
                self.perform_section(number, mask, true);
                self.synchronize(number, mask, &op);
            }
            MemoryOpKind::SectionEnd => {
                self.idle_budget = self.limits.idle;
                self.synchronize(number, mask, &op);
                self.perform_section(number, mask, false);
            }
        }
        // Applies to words and to wider numbers; the other operations acquire by themselves.
        if op.kind == MemoryOpKind::AtomicLoad && op.acquire {
            self.acquire_ahead(number, mask, &op);
        }
        self.waves[number].mark_performed(slot, done);
    }

    /// Discards the stores of helper lanes, whose atomics return undefined values; returns the other lanes.
    fn mask_helper_lanes(&mut self, number: usize, slot: u8, mask: u64, op: &MemoryOp) -> u64 {
        let helpers = self.waves[number].helpers & mask;
        if helpers == 0 || !(op.is_write() || op.is_atomic()) {
            return mask;
        }
        if op.is_read() {
            for lane in lanes_in_mask(helpers) {
                let undefined = self.random.next_word();
                self.waves[number].write_loaded_wide(slot, lane, undefined, op.bytes);
            }
        }
        self.waves[number].mark_performed(slot, helpers);
        mask & !helpers
    }

    fn load_nonatomic(&mut self, number: usize, slot: u8, mask: u64, op: &MemoryOp, reference: usize) {
        let visible = (op.visible && self.fault != Fault::VisibleDropped).then(|| self.effective_scope(op));
        let bypass =
            if self.weights.bypass_rate > 0 { self.random.mask(self.weights.bypass_rate) } else { 0 };
        let wave = &mut self.waves[number];
        for lane in lanes_in_mask(mask) {
            let (address, ..) = wave.word_operands(slot, lane);
            let value = match address {
                0 => 0,
                _ if self.fault == Fault::ConstantCacheStale && op.read_only => {
                    self.memory.read_constant_cache(&wave.paths[lane], reference, address)
                }
                _ => {
                    let path = &wave.paths[lane];
                    let bypasses_cache = op.streaming || (bypass >> lane) & 1 != 0;
                    let value =
                        self.memory.load(path, reference, address, op.private, visible, bypasses_cache);
                    if op.reused {
                        let (round, source) = (wave.rounds, op.reference);
                        let load = ReusedLoad { wave: number, lane, round, source, address };
                        *self.reused_loads.entry(load).or_insert(value)
                    } else {
                        value
                    }
                }
            };
            wave.write_loaded(slot, lane, value);
        }
    }

    /// Drains the store buffer of the group as an operation requires. An access first drains older stores to
    /// its location; a release drains the buffer. If all invocations in its scope share that buffer, stores
    /// to locations that only they access may stay.
    fn drain_store_buffers(&mut self, number: usize, slot: u8, mask: u64, op: &MemoryOp, reference: usize) {
        if self.weights.buffered_store_rate == 0 {
            return;
        }
        let group = self.store_buffer_of(number);
        if op.release && self.fault != Fault::AtomicStoreSinksBelowRelease {
            let reached = self.isolation.get(number).is_some_and(|alone| op.scope <= *alone);
            self.memory.drain_group(group, reached);
        }
        let is_word_load = op.kind == MemoryOpKind::AtomicLoad && op.bytes == 4;
        if op.is_access() && !is_word_load {
            for lane in lanes_in_mask(mask) {
                let (address, ..) = self.waves[number].word_operands(slot, lane);
                self.memory.drain_location(group, reference, address);
                if op.bytes > 4 {
                    self.memory.drain_location(group, reference, address + 1);
                }
            }
        }
    }

    /// Performs accesses of other sizes than a word; returns the lanes that are done.
    fn perform_sized(&mut self, number: usize, slot: u8, mask: u64, op: &MemoryOp, reference: usize) -> u64 {
        let level = self.atomic_scope(op);
        let visible = (op.visible && self.fault != Fault::VisibleDropped).then(|| self.effective_scope(op));
        let available =
            (op.available && self.fault != Fault::AvailableDropped).then(|| self.effective_scope(op));
        let bypass =
            if self.weights.bypass_rate > 0 { self.random.mask(self.weights.bypass_rate) } else { 0 };
        if op.is_atomic() {
            self.idle_budget = self.limits.idle;
        }
        let mut done = mask;
        for lane in lanes_in_mask(mask) {
            let (byte, value, compare) = self.waves[number].wide_operands(slot, lane);
            let path = self.waves[number].paths[lane];
            let (word, shift) = (byte >> 2, byte % 4);
            if word == 0 {
                if op.is_read() {
                    self.waves[number].write_loaded_wide(slot, lane, 0, op.bytes);
                }
                continue;
            }
            // The words of the access, each with its position in the value.
            let words = [(word, 0), (word + 1, 32)].into_iter().take(if op.bytes == 8 { 2 } else { 1 });
            let memory = &mut self.memory;
            let torn = self.fault == Fault::Tearing && op.kind == MemoryOpKind::AtomicStore;
            match op.kind {
                MemoryOpKind::PlainLoad => {
                    let bypasses_cache = op.streaming || (bypass >> lane) & 1 != 0;
                    let mut loaded = 0;
                    for (word, at) in words {
                        let part = memory.load(&path, reference, word, op.private, visible, bypasses_cache);
                        loaded |= u64::from(part) << at;
                    }
                    if op.bytes < 4 {
                        loaded = (loaded >> (8 * shift)) & ((1 << (8 * op.bytes)) - 1);
                    }
                    self.waves[number].write_loaded_wide(slot, lane, loaded, op.bytes);
                }
                MemoryOpKind::PlainStore if op.bytes < 4 => {
                    // One bit for each written byte of the word.
                    let bytes = ((1 << op.bytes) - 1) << shift;
                    let value = (value as u32) << (8 * shift);
                    memory.store(&path, reference, word, (value, bytes & ALL_BYTES), op.private, available);
                }
                MemoryOpKind::PlainStore => {
                    for (word, at) in words {
                        let part = ((value >> at) as u32, ALL_BYTES);
                        memory.store(&path, reference, word, part, op.private, available);
                    }
                }
                MemoryOpKind::AtomicStore if torn => {
                    let second = self.take_first_half(number, slot, lane).is_some();
                    let (word, at) = if second { (word + 1, 32) } else { (word, 0) };
                    self.memory.atomic_store(&path, reference, word, level, (value >> at) as u32);
                    if !second {
                        self.half_performed.push(HalfPerformedRmw {
                            wave: number,
                            slot,
                            lane,
                            address: word,
                            old: 0,
                        });
                        done &= !(1 << lane);
                    }
                }
                MemoryOpKind::AtomicStore => {
                    for (word, at) in words {
                        memory.atomic_store(&path, reference, word, level, (value >> at) as u32);
                    }
                }
                MemoryOpKind::AtomicLoad | MemoryOpKind::Rmw(_) => {
                    let MemoryOpKind::Rmw(change) = op.kind else {
                        let whole = self.atomic_load_wide(&path, reference, word, level);
                        self.waves[number].write_loaded_wide(slot, lane, whole, op.bytes);
                        continue;
                    };
                    let at_workgroup = self.fault == Fault::RmwAtWorkgroup;
                    let level = if at_workgroup { level.min(WORKGROUP) } else { level };
                    let mut read_before = None;
                    if is_split_rmw(self.fault, change) {
                        let read =
                            |machine: &mut Self| machine.atomic_load_wide(&path, reference, word, level);
                        read_before = self.take_split_read(number, slot, lane, word, read);
                        if read_before.is_none() {
                            done &= !(1 << lane);
                            continue;
                        }
                    }
                    // An atomic with semantics releases before it writes and acquires after it has
                    // read.
                    self.release_memory(&path, op);
                    let old = match read_before {
                        Some(old) => old,
                        None => self.atomic_load_wide(&path, reference, word, level),
                    };
                    let lost = self.fault == Fault::RmwResultLost && self.random.chance(8);
                    if let Some(new) = rmw_result(change, [old, value, compare], 64).filter(|_| !lost) {
                        for (word, at) in words {
                            self.memory.atomic_store(&path, reference, word, level, (new >> at) as u32);
                        }
                    }
                    self.acquire_memory(&path, op);
                    self.waves[number].write_loaded_wide(slot, lane, old, op.bytes);
                }
                _ => {}
            }
        }
        done
    }

    /// Reads two words in one atomic step.
    fn atomic_load_wide(&mut self, path: &CachePath, reference: usize, word: u32, level: u8) -> u64 {
        let low = self.memory.atomic_load(path, reference, word, level);
        let high = self.memory.atomic_load(path, reference, word + 1, level);
        u64::from(high) << 32 | u64::from(low)
    }

    /// Removes and returns the first half of a lane's operation, if it was performed; for a fault.
    fn take_first_half(&mut self, wave: usize, slot: u8, lane: usize) -> Option<HalfPerformedRmw> {
        let mine = |half: &HalfPerformedRmw| half.wave == wave && half.slot == slot && half.lane == lane;
        self.half_performed.iter().position(mine).map(|position| self.half_performed.swap_remove(position))
    }

    /// Performs a half of a split read-modify-write of a lane; for a fault.
    ///
    /// The first half only reads, and returns `None`: the lane performs the operation again to write. The second
    /// half returns what the first one has read.
    fn take_split_read(
        &mut self,
        wave: usize,
        slot: u8,
        lane: usize,
        address: u32,
        read: impl FnOnce(&mut Self) -> u64,
    ) -> Option<u64> {
        if let Some(half) = self.take_first_half(wave, slot, lane) {
            return Some(half.old);
        }
        // With this fault, only read-modify-writes exclude each other; stores may still come between the halves.
        let excludes = self.fault == Fault::RmwAmongThemselves;
        if !(excludes && self.half_performed.iter().any(|half| half.address == address)) {
            let old = read(self);
            self.half_performed.push(HalfPerformedRmw { wave, slot, lane, address, old });
        }
        None
    }

    /// Performs read-modify-writes; returns the lanes that are done.
    fn read_modify_write(
        &mut self,
        number: usize,
        slot: u8,
        mask: u64,
        op: &MemoryOp,
        change: Rmw,
        reference: usize,
    ) -> u64 {
        self.idle_budget = self.limits.idle;
        let level = self.atomic_scope(op);
        let mut done = mask;
        for lane in lanes_in_mask(mask) {
            let (address, value, compare) = self.waves[number].word_operands(slot, lane);
            if address == 0 {
                self.waves[number].write_loaded(slot, lane, 0);
                continue;
            }
            let stored = |old: u32| {
                let numbers = [old, value, compare].map(u64::from);
                rmw_result(change, numbers, 32).map(|new| new as u32)
            };
            let path = self.waves[number].paths[lane];
            self.memory.discard_read_ahead(&path, reference, address);
            if is_split_rmw(self.fault, change) {
                let read =
                    |machine: &mut Self| machine.memory.atomic_load(&path, reference, address, level).into();
                let Some(old) = self.take_split_read(number, slot, lane, address, read) else {
                    done &= !(1 << lane);
                    continue;
                };
                // The fault: a write of another invocation between the halves is lost. The semantics stay.
                self.release_memory(&path, op);
                if let Some(new) = stored(old as u32) {
                    self.memory.atomic_store(&path, reference, address, level, new);
                }
                self.acquire_memory(&path, op);
                self.waves[number].write_loaded(slot, lane, old as u32);
                continue;
            }
            self.release_memory(&path, op);
            let lost = self.fault == Fault::RmwResultLost && self.random.chance(8);
            let found =
                self.memory.rmw(&path, reference, address, level, |old| stored(old).filter(|_| !lost));
            let old = self.replay_vertex_rmw(number, slot, lane, address, found);
            self.acquire_memory(&path, op);
            self.waves[number].write_loaded(slot, lane, old);
        }
        done
    }

    /// Returns the same read-modify-write result each time a vertex is shaded; for a fault.
    fn replay_vertex_rmw(&mut self, number: usize, slot: u8, lane: usize, address: u32, found: u32) -> u32 {
        let wave = &self.waves[number];
        if self.fault != Fault::VertexShadedTwice || !wave.is_vertex_wave {
            return found;
        }
        let vertex = wave.places.get(lane).map_or(0, |place| place[0]);
        let key = (wave.dispatch, vertex, wave.operation_index(slot), address);
        *self.vertex_rmw_results.entry(key).or_insert(found)
    }

    /// Performs the release and acquire of a barrier, or of an atomic with semantics.
    fn synchronize(&mut self, number: usize, mask: u64, op: &MemoryOp) {
        for lane in lanes_in_mask(mask) {
            let path = self.waves[number].paths[lane];
            self.release_memory(&path, op);
            self.acquire_memory(&path, op);
        }
    }

    fn release_memory(&mut self, path: &CachePath, op: &MemoryOp) {
        if !(op.release && op.make_available) || self.skips_memory(op) || self.fault == Fault::ReleaseNoFlush
        {
            return;
        }
        let classes = match self.fault {
            Fault::SemanticsOfFlagOnly if !op.is_fence() => {
                op.classes.intersection(StorageClassSet::EMPTY.with(op.class))
            }
            Fault::BufferNotFlushed => op.classes.without(StorageClass::Buffer),
            Fault::WorkgroupMemoryNotFlushed => op.classes.without(StorageClass::Workgroup),
            Fault::ImageNotFlushed => op.classes.without(StorageClass::Image),
            _ => op.classes,
        };
        let level = self.effective_scope(op);
        self.memory.release(path, classes, level);
    }

    /// Drops values that an acquire makes stale: those that caches read ahead for these lanes.
    fn acquire_ahead(&mut self, number: usize, mask: u64, op: &MemoryOp) {
        if self.memory.reads_ahead() {
            let level = self.effective_scope(op);
            for lane in lanes_in_mask(mask) {
                self.memory.acquire_read_ahead(&self.waves[number].paths[lane], level);
            }
        }
    }

    fn acquire_memory(&mut self, path: &CachePath, op: &MemoryOp) {
        if op.acquire {
            self.memory.acquire_read_ahead(path, self.effective_scope(op));
        }
        if !(op.acquire && op.make_visible)
            || self.skips_memory(op)
            || self.fault == Fault::AcquireNoInvalidate
        {
            return;
        }
        let classes = match self.fault {
            Fault::SemanticsOfFlagOnly if !op.is_fence() => {
                op.classes.intersection(StorageClassSet::EMPTY.with(op.class))
            }
            Fault::WorkgroupMemoryNotInvalidated => op.classes.without(StorageClass::Workgroup),
            Fault::ImageNotInvalidated => op.classes.without(StorageClass::Image),
            _ => op.classes,
        };
        let level = self.effective_scope(op);
        self.memory.acquire(path, classes, level);
    }

    fn skips_memory(&self, op: &MemoryOp) -> bool {
        match self.fault {
            Fault::FenceWaitOnly => op.kind == MemoryOpKind::Fence,
            Fault::BarrierWithoutMemory => op.is_unsplit_barrier(),
            _ => false,
        }
    }

    /// Returns the level of an operation's semantics, with the fault applied.
    fn effective_scope(&self, op: &MemoryOp) -> u8 {
        let control = op.is_unsplit_barrier();
        match (self.fault, op.scope) {
            (Fault::SyncScopeDemoted, scope) => scope.min(WORKGROUP),
            (Fault::DeviceScopeIsQueueFamily, scope) => scope.min(QUEUE_FAMILY),
            (Fault::SubgroupSyncNothing, SUBGROUP) => INVOCATION,
            (Fault::QueueFamilyDemoted, QUEUE_FAMILY) => WORKGROUP,
            (Fault::BarrierScopeDemoted, scope) if control => scope.min(SUBGROUP),
            (_, scope) => scope,
        }
    }

    /// Returns the level at which an atomic executes, with the fault applied.
    fn atomic_scope(&self, op: &MemoryOp) -> u8 {
        match (self.fault, op.scope) {
            (Fault::AtomicScopeDemoted, scope) => scope.min(WORKGROUP),
            (Fault::ImageAtomicsAtWorkgroup, scope) if op.class == StorageClass::Image => {
                scope.min(WORKGROUP)
            }
            (Fault::DeviceScopeIsQueueFamily, scope) => scope.min(QUEUE_FAMILY),
            (Fault::QueueFamilyDemoted, QUEUE_FAMILY) => WORKGROUP,
            (_, scope) => scope,
        }
    }
}

/// Returns true if a fault splits a read-modify-write into two steps.
fn is_split_rmw(fault: Fault, change: Rmw) -> bool {
    let float = matches!(change, Rmw::Update(function) if function.is_float());
    matches!(fault, Fault::RmwNotAtomic | Fault::RmwAmongThemselves)
        || float && fault == Fault::FloatAddNotAtomic
}

/// Returns the number of `bits` bits that a read-modify-write stores, or `None` if it stores nothing.
fn rmw_result(change: Rmw, [old, value, compare]: [u64; 3], bits: u32) -> Option<u64> {
    match change {
        Rmw::Exchange => Some(value),
        Rmw::CompareExchange => (old == compare).then_some(value),
        Rmw::Update(function) => Some(function.apply(old, value, bits)),
    }
}
