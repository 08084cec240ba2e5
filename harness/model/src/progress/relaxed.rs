//! Operational weak memory with release and acquire: a view-based machine.
//!
//! Each storage has the history of its writes in modification order. Each thread has a view: the oldest write
//! per storage that it may still read. Synchronization joins views. Cf. Kang et al., "A Promising Semantics
//! for Relaxed-Memory Concurrency" (POPL 2017), <https://doi.org/10.1145/3009837.3009850>, here without
//! promises.
//!
//! Every step is allowed by the axioms, so every hang found here is real. Termination is not implied: load
//! buffering and thin-air values have no run, and histories are bounded by [`HISTORY`].

use litmus::{Semantics, StorageClass};

use super::code::{AccessKind, AccessOperation, ProgressCode, ThreadMask};
use super::machine::{AccessEffect, MemoryState, is_read, written_value};
use super::split::BarrierHalf;

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
    cut: bool,
}

/// A write.
#[derive(Clone, PartialEq, Eq, Hash)]
struct HistoryWrite {
    value: u64,
    /// Written by a read-modify-write that read the write before it.
    attached: bool,
    /// Views that a synchronizing reader acquires.
    released: Vec<ReleasedView>,
}

/// View that a release publishes.
#[derive(Clone, PartialEq, Eq, Hash)]
struct ReleasedView {
    thread: u8,
    /// Threads within the scope of the release, as bits.
    to: u32,
    /// For each storage the oldest write that may still be read.
    known: Vec<u8>,
}

/// Memory view of a thread.
#[derive(Clone, PartialEq, Eq, Hash)]
struct ThreadView {
    /// For each storage the oldest write that it may still read.
    known: Vec<u8>,
    /// Views that its last release fence attaches to each later atomic write.
    fence: Vec<ReleasedView>,
    /// Published views that its atomic reads and waits have found, for a later acquire fence.
    found: Vec<ReleasedView>,
    /// By execution scope, the published views of its last two arrivals at split barriers, newest first: it may arrive
    /// once more before another one looks.
    arrivals: [[Vec<ReleasedView>; 2]; 2],
}

impl StoreHistories {
    pub(super) fn new(code: &ProgressCode) -> StoreHistories {
        let known = vec![0; code.initial.len()];
        StoreHistories {
            storages: code
                .initial
                .iter()
                .map(|value| vec![HistoryWrite { value: *value, attached: false, released: Vec::new() }])
                .collect(),
            threads: code
                .threads
                .iter()
                .map(|_| ThreadView {
                    known: known.clone(),
                    fence: Vec::new(),
                    found: Vec::new(),
                    arrivals: Default::default(),
                })
                .collect(),
            ended: 0,
            cut: false,
        }
    }

    /// Every list of places in histories.
    fn iter_views_mut(&mut self) -> impl Iterator<Item = &mut Vec<u8>> {
        let writes = self.storages.iter_mut().flatten().flat_map(|write| &mut write.released);
        let (mut own, mut releases) = (Vec::new(), Vec::new());
        for thread in &mut self.threads {
            own.push(&mut thread.known);
            let arrivals = thread.arrivals.iter_mut().flatten().flatten();
            releases.extend(thread.fence.iter_mut().chain(&mut thread.found).chain(arrivals));
        }
        own.into_iter().chain(writes.chain(releases).map(|release| &mut release.known))
    }

    /// Inserts a write at `place` of a history.
    fn insert_write(&mut self, storage: usize, place: usize, write: HistoryWrite) {
        // Views are positions in the history, so all at or after the place move by one.
        for known in self.iter_views_mut() {
            if usize::from(known[storage]) >= place {
                known[storage] += 1;
            }
        }
        self.storages[storage].insert(place, write);
    }

    /// Drops the first `count` writes of a history.
    fn drop_oldest(&mut self, storage: usize, count: usize) {
        self.storages[storage].drain(..count);
        // Its predecessor was removed, so no write can be inserted between them any more.
        if let Some(first) = self.storages[storage].first_mut() {
            first.attached = false;
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
                if here.attached && before.value == here.value && before.released == here.released {
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
            let readers = code.users[storage] & !self.ended;
            let oldest = (0..self.threads.len())
                .filter(|thread| readers & 1 << thread != 0)
                .map(|thread| usize::from(self.threads[thread].known[storage]))
                .min()
                .unwrap_or(self.storages[storage].len() - 1);
            // Dropping a write that some thread may still read removes behaviour. The answer then
            // holds only within the bound.
            let surplus = self.storages[storage].len().saturating_sub(HISTORY);
            self.cut |= surplus > oldest;
            let count = oldest.max(surplus);
            if count > 0 {
                self.drop_oldest(storage, count);
            }
        }
    }

    /// Returns the views that an atomic write of `thread` publishes.
    fn releases_of(
        &self,
        code: &ProgressCode,
        thread: usize,
        within: ThreadMask,
        semantics: Semantics,
    ) -> Vec<ReleasedView> {
        let own = &self.threads[thread];
        let mut published = own.fence.clone();
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
        let known = &self.threads[thread].known;
        let known = mask_by_semantics(code, known, semantics);
        ReleasedView { thread: thread as u8, to: within.0, known }
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
            if release.to & 1 << thread == 0 || !within.has_thread(usize::from(release.thread)) {
                continue;
            }
            let known = mask_by_semantics(code, &release.known, semantics);
            join_views(&mut self.threads[thread].known, &known);
        }
    }

    fn perform_read(
        &mut self,
        code: &ProgressCode,
        thread: usize,
        access: &AccessOperation,
        place: usize,
        semantics: Semantics,
    ) {
        let own = &mut self.threads[thread].known[access.storage];
        *own = (*own).max(place as u8);
        let released = self.storages[access.storage][place].released.clone();
        self.take_releases(code, thread, (access.within, semantics), &released);
    }

    /// Finds published views, and acquires them if the semantics include acquire.
    fn take_releases(
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
            add_release(&mut self.threads[thread].found, release.clone());
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
    match releases.iter_mut().find(|known| (known.thread, known.to) == (release.thread, release.to)) {
        Some(known) => join_views(&mut known.known, &release.known),
        None => {
            releases.push(release);
            releases.sort_by_key(|release| (release.thread, release.to));
        }
    }
}

/// Restricts a view to the storage classes of the semantics.
fn mask_by_semantics(code: &ProgressCode, known: &[u8], semantics: Semantics) -> Vec<u8> {
    let pass = |class: &StorageClass| semantics.classes.contains(*class);
    known.iter().zip(&code.classes).map(|(known, class)| if pass(class) { *known } else { 0 }).collect()
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
        let floor = usize::from(self.threads[thread].known[storage]);
        let mut effects = Vec::new();
        if let AccessKind::Store(_) = access.kind {
            // A store may have any position in modification order after the writes that its thread has seen
            // (coherence).
            for place in floor + 1..=history.len() {
                // An RMW reads its immediate predecessor, so nothing may come between the two
                // (atomicity).
                if history.get(place).is_some_and(|write| write.attached) {
                    continue;
                }
                let mut memory = self.clone();
                let written = written_value(access, 0, registers);
                let value = access.replace_part(history[place - 1].value, written.unwrap_or(0));
                let released = self.releases_of(code, thread, access.within, access.semantics);
                memory.insert_write(storage, place, HistoryWrite { value, attached: false, released });
                memory.threads[thread].known[storage] = place as u8;
                memory.normalize_histories(code);
                effects.push(AccessEffect { memory, read: None, written, behind: place < history.len() });
            }
            return effects;
        }
        for place in floor..=newest {
            let old = access.extract_part(history[place].value);
            let written = written_value(access, old, registers);
            let mut memory = self.clone();
            let semantics = match (access.kind, written) {
                (AccessKind::CompareExchange { .. }, None) => access.unequal,
                _ => access.semantics,
            };
            // The write already has an RMW as its immediate successor.
            if written.is_some() && history.get(place + 1).is_some_and(|write| write.attached) {
                continue;
            }
            memory.perform_read(code, thread, access, place, semantics);
            if let Some(written) = written {
                // A read-modify-write continues the release sequence that it read from.
                let mut released = memory.releases_of(code, thread, access.within, semantics);
                for release in &history[place].released {
                    add_release(&mut released, release.clone());
                }
                let value = access.replace_part(history[place].value, written);
                memory.insert_write(storage, place + 1, HistoryWrite { value, attached: true, released });
                memory.threads[thread].known[storage] = place as u8 + 1;
            }
            memory.normalize_histories(code);
            let read = is_read(access).then_some(old);
            effects.push(AccessEffect { memory, read, written, behind: place < newest });
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
            let found = self.threads[thread].found.clone();
            self.acquire_view(code, thread, within, semantics, &found);
        }
        if semantics.order.releases() {
            let release = self.released_view(code, thread, within, semantics);
            add_release(&mut self.threads[thread].fence, release);
        }
        self.normalize_histories(code);
    }

    fn synchronize_barrier(&mut self, code: &ProgressCode, arrivals: &[(usize, ThreadMask, Semantics)]) {
        // A fence before the barrier releases through it, and one after it acquires.
        let releases: Vec<ReleasedView> = arrivals
            .iter()
            .flat_map(|(thread, within, semantics)| self.releases_of(code, *thread, *within, *semantics))
            .collect();
        for (thread, within, semantics) in arrivals {
            self.take_releases(code, *thread, (*within, *semantics), &releases);
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
        let published = self.releases_of(code, thread, within, semantics);
        let [last, before] = &mut self.threads[thread].arrivals[half.series];
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
        for (other, again) in arrived {
            let released = self.threads[*other].arrivals[half.series][usize::from(*again)].clone();
            self.take_releases(code, thread, acquires, &released);
        }
        self.normalize_histories(code);
    }

    fn order_after(&mut self, from: usize, to: usize) {
        let known = self.threads[from].known.clone();
        join_views(&mut self.threads[to].known, &known);
    }

    fn end_thread(&mut self, code: &ProgressCode, thread: usize) {
        self.ended |= 1 << thread;
        // A dependent thread still needs this view; `order_after` runs after this.
        if !code.syncs.iter().any(|(from, ..)| *from == thread) {
            self.threads[thread].known.fill(0);
        }
        self.threads[thread].fence.clear();
        self.threads[thread].found.clear();
        self.normalize_histories(code);
    }

    fn is_truncated(&self) -> bool {
        self.cut
    }
}
