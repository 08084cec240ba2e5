//! Operational weak memory with release and acquire: a view-based machine.
//!
//! Each storage has the history of its writes in modification order. Each thread has a view: the oldest write
//! per storage that it may still read. Synchronization joins views. Cf. Kang et al., "A Promising Semantics
//! for Relaxed-Memory Concurrency" (POPL 2017), <https://doi.org/10.1145/3009837.3009850>, here without
//! promises.
//!
//! Every step is allowed by the axioms, so every hang found here is real. Termination is not implied: load
//! buffering and thin-air values have no run, and histories are bounded by [`HISTORY`].

use litmus::{AccessKind, Semantics, StorageClass};

use super::code::{AccessOperation, ProgressCode, ThreadMask};
use super::machine::{AccessEffect, MemoryState, is_read, written_value};
use super::split_barrier::BarrierHalf;

/// Bound on the writes of a history; every thread has seen the dropped ones.
pub(super) const HISTORY: usize = 6;

/// Memory with its histories.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct StoreHistories {
    storages: Vec<Vec<HistoryWrite>>,
    threads: Vec<ThreadView>,
    /// Bit t is set where thread t has ended.
    ended: u32,
    /// A history had more writes than [`HISTORY`].
    is_truncated: bool,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct HistoryWrite {
    value: u64,
    /// Written by a read-modify-write that read the write before it.
    is_attached: bool,
    /// Views that a synchronizing reader acquires.
    released: Vec<ReleasedView>,
}

/// View that a release publishes.
#[derive(Clone, PartialEq, Eq, Hash)]
struct ReleasedView {
    thread: u8,
    /// Threads within the scope of the release, as bits.
    scope_threads: u32,
    /// For each storage the oldest write that may still be read.
    oldest_readable: Vec<u8>,
}

/// Memory view of a thread.
#[derive(Clone, PartialEq, Eq, Hash)]
struct ThreadView {
    /// For each storage the oldest write that it may still read.
    oldest_readable: Vec<u8>,
    /// Views that its last release fence attaches to each later atomic write.
    fence_releases: Vec<ReleasedView>,
    /// Published views that its atomic reads and waits have found, for a later acquire fence.
    pending_views: Vec<ReleasedView>,
    /// By execution scope, the published views of its last two arrivals at split barriers, newest first: it may arrive
    /// once more before another one looks.
    split_arrivals: [[Vec<ReleasedView>; 2]; 2],
}

impl StoreHistories {
    pub(super) fn new(code: &ProgressCode) -> StoreHistories {
        let known = vec![0; code.initial.len()];
        StoreHistories {
            storages: code
                .initial
                .iter()
                .map(|value| vec![HistoryWrite { value: *value, is_attached: false, released: Vec::new() }])
                .collect(),
            threads: code
                .threads
                .iter()
                .map(|_| ThreadView {
                    oldest_readable: known.clone(),
                    fence_releases: Vec::new(),
                    pending_views: Vec::new(),
                    split_arrivals: Default::default(),
                })
                .collect(),
            ended: 0,
            is_truncated: false,
        }
    }

    /// Every list of places in histories.
    fn iter_views_mut(&mut self) -> impl Iterator<Item = &mut Vec<u8>> {
        let writes = self.storages.iter_mut().flatten().flat_map(|write| &mut write.released);
        let (mut own, mut releases) = (Vec::new(), Vec::new());
        for thread in &mut self.threads {
            own.push(&mut thread.oldest_readable);
            let arrivals = thread.split_arrivals.iter_mut().flatten().flatten();
            releases
                .extend(thread.fence_releases.iter_mut().chain(&mut thread.pending_views).chain(arrivals));
        }
        own.into_iter().chain(writes.chain(releases).map(|release| &mut release.oldest_readable))
    }

    /// Inserts a write at `position` of a history.
    fn insert_write(&mut self, storage: usize, position: usize, write: HistoryWrite) {
        // Views are positions in the history, so all at or after the place move by one.
        for known in self.iter_views_mut() {
            if usize::from(known[storage]) >= position {
                known[storage] += 1;
            }
        }
        self.storages[storage].insert(position, write);
    }

    /// Drops the first `count` writes of a history.
    fn drop_oldest(&mut self, storage: usize, count: usize) {
        self.storages[storage].drain(..count);
        // Its predecessor was removed, so no write can be inserted between them any more.
        if let Some(first) = self.storages[storage].first_mut() {
            first.is_attached = false;
        }
        for known in self.iter_views_mut() {
            known[storage] = known[storage].saturating_sub(count as u8);
        }
    }

    /// Removes unobservable details, so that equal states coincide.
    fn normalize_histories(&mut self, code: &ProgressCode) {
        for storage in 0..self.storages.len() {
            // A read-modify-write that stores the value that it read is indistinguishable from its
            // predecessor.
            let mut at = 1;
            while at < self.storages[storage].len() {
                let (before, here) = (&self.storages[storage][at - 1], &self.storages[storage][at]);
                if here.is_attached && before.value == here.value && before.released == here.released {
                    self.storages[storage].remove(at);
                    for known in self.iter_views_mut() {
                        if usize::from(known[storage]) >= at {
                            known[storage] -= 1;
                        }
                    }
                } else {
                    at += 1;
                }
            }
            // Writes that no remaining reader may read from are unobservable.
            let readers = code.accessing_threads[storage] & !self.ended;
            let oldest = (0..self.threads.len())
                .filter(|thread| readers & 1 << thread != 0)
                .map(|thread| usize::from(self.threads[thread].oldest_readable[storage]))
                .min()
                .unwrap_or(self.storages[storage].len() - 1);
            // Dropping a write that some thread may still read removes behaviour. The answer then
            // holds only within the bound.
            let surplus = self.storages[storage].len().saturating_sub(HISTORY);
            self.is_truncated |= surplus > oldest;
            let count = oldest.max(surplus);
            if count > 0 {
                self.drop_oldest(storage, count);
            }
        }
    }

    /// Returns the views that an atomic write of `thread` publishes.
    fn published_views(
        &self,
        code: &ProgressCode,
        thread: usize,
        within: ThreadMask,
        semantics: Semantics,
    ) -> Vec<ReleasedView> {
        let own = &self.threads[thread];
        let mut published = own.fence_releases.clone();
        if semantics.order.releases() {
            add_release(&mut published, self.released_view(code, thread, within, semantics));
        }
        published
    }

    fn released_view(
        &self,
        code: &ProgressCode,
        thread: usize,
        within: ThreadMask,
        semantics: Semantics,
    ) -> ReleasedView {
        let known = &self.threads[thread].oldest_readable;
        let known = mask_by_semantics(code, known, semantics);
        ReleasedView { thread: thread as u8, scope_threads: within.0, oldest_readable: known }
    }

    /// Joins published views into the thread's view, filtered by scopes and storage classes.
    fn acquire_view(
        &mut self,
        code: &ProgressCode,
        thread: usize,
        within: ThreadMask,
        semantics: Semantics,
        from: &[ReleasedView],
    ) {
        for release in from {
            // Each scope must include the other side: the release's scope the acquirer, the
            // acquire's scope the releaser (VK-SW-07).
            if release.scope_threads & 1 << thread == 0 || !within.has_thread(usize::from(release.thread)) {
                continue;
            }
            let known = mask_by_semantics(code, &release.oldest_readable, semantics);
            join_views(&mut self.threads[thread].oldest_readable, &known);
        }
    }

    fn read_at_position(
        &mut self,
        code: &ProgressCode,
        thread: usize,
        access: &AccessOperation,
        position: usize,
        semantics: Semantics,
    ) {
        let own = &mut self.threads[thread].oldest_readable[access.storage];
        *own = (*own).max(position as u8);
        let released = self.storages[access.storage][position].released.clone();
        self.receive_views(code, thread, (access.scope_threads, semantics), &released);
    }

    /// Finds published views, and acquires them if the semantics include acquire.
    fn receive_views(
        &mut self,
        code: &ProgressCode,
        thread: usize,
        (within, semantics): (ThreadMask, Semantics),
        released: &[ReleasedView],
    ) {
        if semantics.order.acquires() {
            self.acquire_view(code, thread, within, semantics, released);
        }
        for release in released {
            add_release(&mut self.threads[thread].pending_views, release.clone());
        }
    }
}

/// The later place for each storage.
fn join_views(known: &mut [u8], other: &[u8]) {
    for (known, other) in known.iter_mut().zip(other) {
        *known = (*known).max(*other);
    }
}

/// Joins a release with those of the same thread and scope.
fn add_release(releases: &mut Vec<ReleasedView>, release: ReleasedView) {
    match releases
        .iter_mut()
        .find(|known| (known.thread, known.scope_threads) == (release.thread, release.scope_threads))
    {
        Some(known) => join_views(&mut known.oldest_readable, &release.oldest_readable),
        None => {
            releases.push(release);
            releases.sort_by_key(|release| (release.thread, release.scope_threads));
        }
    }
}

/// Restricts a view to the storage classes of the semantics.
fn mask_by_semantics(code: &ProgressCode, known: &[u8], semantics: Semantics) -> Vec<u8> {
    let is_selected = |class: &StorageClass| semantics.classes.contains(*class);
    known
        .iter()
        .zip(&code.storage_classes)
        .map(|(known, class)| if is_selected(class) { *known } else { 0 })
        .collect()
}

impl MemoryState for StoreHistories {
    fn perform_access(
        &self,
        code: &ProgressCode,
        thread: usize,
        access: &AccessOperation,
        registers: &[u64],
    ) -> Vec<AccessEffect<StoreHistories>> {
        let storage = access.storage;
        let history = &self.storages[storage];
        let newest = history.len() - 1;
        let floor = usize::from(self.threads[thread].oldest_readable[storage]);
        let mut effects = Vec::new();
        if let AccessKind::Store(_) = access.kind {
            // A store may have any position in modification order after the writes that its thread has seen
            // (coherence).
            for position in floor + 1..=history.len() {
                // An RMW reads its immediate predecessor, so nothing may come between the two
                // (atomicity).
                if history.get(position).is_some_and(|write| write.is_attached) {
                    continue;
                }
                let mut memory = self.clone();
                let written = written_value(access, 0, registers);
                let value = access.replace_part(history[position - 1].value, written.unwrap_or(0));
                let released = self.published_views(code, thread, access.scope_threads, access.semantics);
                memory.insert_write(storage, position, HistoryWrite { value, is_attached: false, released });
                memory.threads[thread].oldest_readable[storage] = position as u8;
                memory.normalize_histories(code);
                effects.push(AccessEffect {
                    memory,
                    read: None,
                    written,
                    is_stale: position < history.len(),
                });
            }
            return effects;
        }
        for position in floor..=newest {
            let old = access.extract_part(history[position].value);
            let written = written_value(access, old, registers);
            let mut memory = self.clone();
            let semantics = access.unequal.filter(|_| written.is_none()).unwrap_or(access.semantics);
            // The write already has an RMW as its immediate successor.
            if written.is_some() && history.get(position + 1).is_some_and(|write| write.is_attached) {
                continue;
            }
            memory.read_at_position(code, thread, access, position, semantics);
            if let Some(written) = written {
                // A read-modify-write continues the release sequence that it read from.
                let mut released = memory.published_views(code, thread, access.scope_threads, semantics);
                for release in &history[position].released {
                    add_release(&mut released, release.clone());
                }
                let value = access.replace_part(history[position].value, written);
                memory.insert_write(
                    storage,
                    position + 1,
                    HistoryWrite { value, is_attached: true, released },
                );
                memory.threads[thread].oldest_readable[storage] = position as u8 + 1;
            }
            memory.normalize_histories(code);
            let read = is_read(access).then_some(old);
            effects.push(AccessEffect { memory, read, written, is_stale: position < newest });
        }
        effects
    }

    fn perform_fence(
        &mut self,
        code: &ProgressCode,
        thread: usize,
        within: ThreadMask,
        semantics: Semantics,
    ) {
        // An acquire fence acquires the views that earlier atomic reads of the thread have found.
        if semantics.order.acquires() {
            let found = self.threads[thread].pending_views.clone();
            self.acquire_view(code, thread, within, semantics, &found);
        }
        if semantics.order.releases() {
            let release = self.released_view(code, thread, within, semantics);
            add_release(&mut self.threads[thread].fence_releases, release);
        }
        self.normalize_histories(code);
    }

    fn synchronize_barrier(&mut self, code: &ProgressCode, arrivals: &[(usize, ThreadMask, Semantics)]) {
        // A fence before the barrier releases through it, and one after it acquires.
        let releases: Vec<ReleasedView> = arrivals
            .iter()
            .flat_map(|(thread, within, semantics)| self.published_views(code, *thread, *within, *semantics))
            .collect();
        for (thread, within, semantics) in arrivals {
            self.receive_views(code, *thread, (*within, *semantics), &releases);
        }
        self.normalize_histories(code);
    }

    fn arrive_at_split(
        &mut self,
        code: &ProgressCode,
        thread: usize,
        half: BarrierHalf,
        within: ThreadMask,
        semantics: Semantics,
    ) {
        let published = self.published_views(code, thread, within, semantics);
        let [last, before] = &mut self.threads[thread].split_arrivals[half.scope_index];
        *before = std::mem::replace(last, published);
        self.normalize_histories(code);
    }

    fn wait_at_split(
        &mut self,
        code: &ProgressCode,
        thread: usize,
        half: BarrierHalf,
        acquires: (ThreadMask, Semantics),
        arrived: &[(usize, bool)],
    ) {
        for (other, has_arrived_again) in arrived {
            let released = self.threads[*other].split_arrivals[half.scope_index]
                [usize::from(*has_arrived_again)]
            .clone();
            self.receive_views(code, thread, acquires, &released);
        }
        self.normalize_histories(code);
    }

    fn order_after(&mut self, from: usize, to: usize) {
        let known = self.threads[from].oldest_readable.clone();
        join_views(&mut self.threads[to].oldest_readable, &known);
    }

    fn end_thread(&mut self, code: &ProgressCode, thread: usize) {
        self.ended |= 1 << thread;
        // A dependent thread still needs this view; `order_after` runs after this.
        if !code.thread_syncs.iter().any(|(from, ..)| *from == thread) {
            self.threads[thread].oldest_readable.fill(0);
        }
        self.threads[thread].fence_releases.clear();
        self.threads[thread].pending_views.clear();
        self.normalize_histories(code);
    }

    fn is_truncated(&self) -> bool {
        self.is_truncated
    }
}
