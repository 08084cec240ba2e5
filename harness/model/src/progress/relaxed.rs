//! Weak memory as a machine: each storage keeps the history of its writes in modification order, each thread knows up to
//! where it has seen each history, and synchronization joins what threads know.
//!
//! Every step is one that the axioms allow, so that a hang found here is a hang. Load buffering and values out of thin
//! air have no run here, and histories are bounded; so that it ends here does not by itself say that it ends.

use litmus::{Semantics, StorageClass};

use super::code::{AccessKind, AccessOperation, Code, Within};
use super::machine::{Effect, Memory, new_value, reads};
use super::split::Half;

/// Writes that a history holds at most; older ones are taken to have been seen by everyone.
pub(super) const HISTORY: usize = 6;

/// Memory with its histories.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Histories {
    storages: Vec<Vec<Write>>,
    threads: Vec<Knowledge>,
    /// Bit t is set where thread t has ended.
    ended: u32,
    /// A history had more writes than [`HISTORY`].
    cut: bool,
}

/// A write.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Write {
    value: u64,
    /// Written by a read-modify-write that read the write before it.
    attached: bool,
    /// What those know who synchronize with it.
    released: Vec<Release>,
}

/// What a release publishes.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Release {
    thread: u8,
    /// Threads within the scope of the release, as bits.
    to: u32,
    /// For each storage the oldest write that may still be read.
    known: Vec<u8>,
}

/// What a thread knows.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Knowledge {
    /// For each storage the oldest write that it may still read.
    known: Vec<u8>,
    /// What its last release fence publishes with each atomic write after it.
    fence: Vec<Release>,
    /// What its atomic reads and its waits have found published: an acquire fence takes it over.
    found: Vec<Release>,
    /// By execution scope, what its last two arrivals at split barriers have published, the last one first: it may arrive
    /// once more before another one looks.
    arrivals: [[Vec<Release>; 2]; 2],
}

impl Histories {
    pub(super) fn new(code: &Code) -> Histories {
        let known = vec![0; code.initial.len()];
        Histories {
            storages: code
                .initial
                .iter()
                .map(|value| vec![Write { value: *value, attached: false, released: Vec::new() }])
                .collect(),
            threads: code
                .threads
                .iter()
                .map(|_| Knowledge {
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
    fn all_known(&mut self) -> impl Iterator<Item = &mut Vec<u8>> {
        let writes = self.storages.iter_mut().flatten().flat_map(|write| &mut write.released);
        let (mut own, mut releases) = (Vec::new(), Vec::new());
        for thread in &mut self.threads {
            own.push(&mut thread.known);
            let arrivals = thread.arrivals.iter_mut().flatten().flatten();
            releases.extend(thread.fence.iter_mut().chain(&mut thread.found).chain(arrivals));
        }
        own.into_iter().chain(writes.chain(releases).map(|release| &mut release.known))
    }

    /// Puts a write into a history, so that it stands at `place`.
    fn insert(&mut self, storage: usize, place: usize, write: Write) {
        for known in self.all_known() {
            if usize::from(known[storage]) >= place {
                known[storage] += 1;
            }
        }
        self.storages[storage].insert(place, write);
    }

    /// Drops the first `count` writes of a history.
    fn drop_oldest(&mut self, storage: usize, count: usize) {
        self.storages[storage].drain(..count);
        if let Some(first) = self.storages[storage].first_mut() {
            first.attached = false;
        }
        for known in self.all_known() {
            known[storage] = known[storage].saturating_sub(count as u8);
        }
    }

    /// Forgets what nobody can tell any more, so that states recur.
    fn tidy(&mut self, code: &Code) {
        for storage in 0..self.storages.len() {
            // A read-modify-write that repeats what it read leaves nothing to be told apart from it.
            let mut at = 1;
            while at < self.storages[storage].len() {
                let (before, here) = (&self.storages[storage][at - 1], &self.storages[storage][at]);
                if here.attached && before.value == here.value && before.released == here.released {
                    self.storages[storage].remove(at);
                    for known in self.all_known() {
                        if usize::from(known[storage]) >= at {
                            known[storage] -= 1;
                        }
                    }
                } else {
                    at += 1;
                }
            }
            let readers = code.users[storage] & !self.ended;
            let oldest = (0..self.threads.len())
                .filter(|thread| readers & 1 << thread != 0)
                .map(|thread| usize::from(self.threads[thread].known[storage]))
                .min()
                .unwrap_or(self.storages[storage].len() - 1);
            let surplus = self.storages[storage].len().saturating_sub(HISTORY);
            self.cut |= surplus > oldest;
            let count = oldest.max(surplus);
            if count > 0 {
                self.drop_oldest(storage, count);
            }
        }
    }

    /// What an atomic write of `thread` publishes.
    fn published(&self, code: &Code, thread: usize, within: Within, semantics: Semantics) -> Vec<Release> {
        let own = &self.threads[thread];
        let mut published = own.fence.clone();
        if semantics.order.releases() {
            add(&mut published, self.release(code, thread, within, semantics));
        }
        published
    }

    fn release(&self, code: &Code, thread: usize, within: Within, semantics: Semantics) -> Release {
        let known = &self.threads[thread].known;
        let known = masked(code, known, semantics);
        Release { thread: thread as u8, to: within.0, known }
    }

    /// Takes over what was published, as far as scopes and storage classes let it through.
    fn acquire(
        &mut self,
        code: &Code,
        thread: usize,
        within: Within,
        semantics: Semantics,
        from: &[Release],
    ) {
        for release in from {
            if release.to & 1 << thread == 0 || !within.has(usize::from(release.thread)) {
                continue;
            }
            let known = masked(code, &release.known, semantics);
            join(&mut self.threads[thread].known, &known);
        }
    }

    fn read(
        &mut self,
        code: &Code,
        thread: usize,
        access: &AccessOperation,
        place: usize,
        semantics: Semantics,
    ) {
        let own = &mut self.threads[thread].known[access.storage];
        *own = (*own).max(place as u8);
        let released = self.storages[access.storage][place].released.clone();
        self.take(code, thread, (access.within, semantics), &released);
    }

    /// Finds what was published, and takes it over where semantics acquire.
    fn take(
        &mut self,
        code: &Code,
        thread: usize,
        (within, semantics): (Within, Semantics),
        released: &[Release],
    ) {
        if semantics.order.acquires() {
            self.acquire(code, thread, within, semantics, released);
        }
        for release in released {
            add(&mut self.threads[thread].found, release.clone());
        }
    }
}

/// The later place for each storage.
fn join(known: &mut [u8], other: &[u8]) {
    for (known, other) in known.iter_mut().zip(other) {
        *known = (*known).max(*other);
    }
}

/// Joins a release with those of the same thread and scope.
fn add(releases: &mut Vec<Release>, release: Release) {
    match releases.iter_mut().find(|known| (known.thread, known.to) == (release.thread, release.to)) {
        Some(known) => join(&mut known.known, &release.known),
        None => {
            releases.push(release);
            releases.sort_by_key(|release| (release.thread, release.to));
        }
    }
}

/// What semantics pass on: the storages of their classes.
fn masked(code: &Code, known: &[u8], semantics: Semantics) -> Vec<u8> {
    let pass = |class: &StorageClass| semantics.classes.contains(*class);
    known.iter().zip(&code.classes).map(|(known, class)| if pass(class) { *known } else { 0 }).collect()
}

impl Memory for Histories {
    fn access(
        &self,
        code: &Code,
        thread: usize,
        access: &AccessOperation,
        registers: &[u64],
    ) -> Vec<Effect<Histories>> {
        let storage = access.storage;
        let history = &self.storages[storage];
        let newest = history.len() - 1;
        let floor = usize::from(self.threads[thread].known[storage]);
        let mut effects = Vec::new();
        if let AccessKind::Store(_) = access.kind {
            for place in floor + 1..=history.len() {
                if history.get(place).is_some_and(|write| write.attached) {
                    continue;
                }
                let mut memory = self.clone();
                let written = new_value(access, 0, registers);
                let value = access.replaced(history[place - 1].value, written.unwrap_or(0));
                let released = self.published(code, thread, access.within, access.semantics);
                memory.insert(storage, place, Write { value, attached: false, released });
                memory.threads[thread].known[storage] = place as u8;
                memory.tidy(code);
                effects.push(Effect { memory, read: None, written, behind: place < history.len() });
            }
            return effects;
        }
        for place in floor..=newest {
            let old = access.part(history[place].value);
            let written = new_value(access, old, registers);
            let mut memory = self.clone();
            let semantics = match (access.kind, written) {
                (AccessKind::CompareExchange { .. }, None) => access.unequal,
                _ => access.semantics,
            };
            if written.is_some() && history.get(place + 1).is_some_and(|write| write.attached) {
                continue;
            }
            memory.read(code, thread, access, place, semantics);
            if let Some(written) = written {
                // A read-modify-write goes on with the release sequence that it read from.
                let mut released = memory.published(code, thread, access.within, semantics);
                for release in &history[place].released {
                    add(&mut released, release.clone());
                }
                let value = access.replaced(history[place].value, written);
                memory.insert(storage, place + 1, Write { value, attached: true, released });
                memory.threads[thread].known[storage] = place as u8 + 1;
            }
            memory.tidy(code);
            let read = reads(access).then_some(old);
            effects.push(Effect { memory, read, written, behind: place < newest });
        }
        effects
    }

    fn fence(&mut self, code: &Code, thread: usize, within: Within, semantics: Semantics) {
        if semantics.order.acquires() {
            let found = self.threads[thread].found.clone();
            self.acquire(code, thread, within, semantics, &found);
        }
        if semantics.order.releases() {
            let release = self.release(code, thread, within, semantics);
            add(&mut self.threads[thread].fence, release);
        }
        self.tidy(code);
    }

    fn meet(&mut self, code: &Code, arrivals: &[(usize, Within, Semantics)]) {
        // A fence before the barrier releases through it, and one behind it acquires.
        let releases: Vec<Release> = arrivals
            .iter()
            .flat_map(|(thread, within, semantics)| self.published(code, *thread, *within, *semantics))
            .collect();
        for (thread, within, semantics) in arrivals {
            self.take(code, *thread, (*within, *semantics), &releases);
        }
        self.tidy(code);
    }

    fn arrive(&mut self, code: &Code, thread: usize, half: Half, within: Within, semantics: Semantics) {
        let published = self.published(code, thread, within, semantics);
        let [last, before] = &mut self.threads[thread].arrivals[half.series];
        *before = std::mem::replace(last, published);
        self.tidy(code);
    }

    fn wait(
        &mut self,
        code: &Code,
        thread: usize,
        half: Half,
        acquires: (Within, Semantics),
        arrived: &[(usize, bool)],
    ) {
        for (other, again) in arrived {
            let released = self.threads[*other].arrivals[half.series][usize::from(*again)].clone();
            self.take(code, thread, acquires, &released);
        }
        self.tidy(code);
    }

    fn follow(&mut self, from: usize, to: usize) {
        let known = self.threads[from].known.clone();
        join(&mut self.threads[to].known, &known);
    }

    fn end(&mut self, code: &Code, thread: usize) {
        self.ended |= 1 << thread;
        // Whoever follows takes the knowledge over; see `follow`, which comes after this.
        if !code.syncs.iter().any(|(from, ..)| *from == thread) {
            self.threads[thread].known.fill(0);
        }
        self.threads[thread].fence.clear();
        self.threads[thread].found.clear();
        self.tidy(code);
    }

    fn is_cut(&self) -> bool {
        self.cut
    }
}
