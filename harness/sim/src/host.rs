//! Threads of the host: their caches, the host domain, and what moves between that and the memory of the device.
//!
//! Memory is the device domain. The host domain lies before it like a cache: what is dirty there is written back by a
//! submission, or by a dependency with HOST_WRITE in its source; what is clean there is dropped by a dependency with a host
//! access in its destination. Memory that is not coherent has a cache between threads and the host domain, a line for each
//! *name*, which flushes and invalidations move. Each thread has a few lines of its own, which its release and acquire
//! operations move: they are its store buffer and what it has read ahead. All of these fetch, write back and evict of their
//! own accord.

use std::collections::{BTreeMap, VecDeque};

use plan::{
    BatchStart, HostAct, HostOperation, HostOrder, HostPlace, HostPlay, HostReport, HostValue, Hosts,
    QueueId, SemaphoreId,
};

use crate::fault::Fault;
use crate::memory::Memory;
use crate::random::Random;

/// Lines of a thread.
const OWN_LINES: usize = 6;
/// How often, of 256, a thread that may go on does so where somebody else may, too: one of them is drawn for each thread, time and
/// again. Who polls while another thread waits for a queue is to meet what comes behind that wait.
const PACES: [u32; 4] = [256, 256, 48, 6];
/// How many instances a thread is at, at once: drawn with its pace. Nothing orders an instance and another one, and threads meet in
/// more of them where each is at many.
const SPREADS: [usize; 4] = [1, 8, usize::MAX, usize::MAX];
/// Steps, on average, after which pace and spread of a thread are drawn anew.
const DRAWN_ANEW: usize = 64;

/// A word in a cache of the host.
#[derive(Clone, Copy, Debug)]
struct HostLine {
    value: u32,
    dirty: bool,
}

/// A thread of the host, on its way.
#[derive(Clone, Debug, Default)]
struct HostThread {
    act: usize,
    /// The first instance that it has not done with.
    instance: u32,
    /// By instance the next of its operations.
    operations: Vec<usize>,
    /// By instance and register.
    registers: Vec<u32>,
    /// Its own lines, the oldest first.
    lines: VecDeque<ThreadLine>,
    /// Of [`PACES`].
    pace: u32,
    /// Of [`SPREADS`].
    spread: usize,
}

/// A line of a thread.
#[derive(Clone, Copy, Debug)]
struct ThreadLine {
    /// The address and the name.
    key: (u32, u32),
    /// Whose word it is: releases and acquires of other instances leave it alone.
    instance: u32,
    line: HostLine,
}

/// What an operation is of: a thread and an instance.
#[derive(Clone, Copy, Debug)]
struct OperationSite {
    thread: usize,
    instance: u32,
}

impl HostThread {
    fn draw_pace(&mut self, random: &mut Random) {
        self.pace = PACES.get(random.below(PACES.len())).copied().unwrap_or(256);
        self.spread = SPREADS.get(random.below(SPREADS.len())).copied().unwrap_or(1);
    }

    /// One of the instances that it is at, of so many, with the number of the next of their operations; none where all are done with.
    fn choose_operation(
        &mut self,
        operations: usize,
        instances: u32,
        random: &mut Random,
    ) -> Option<(u32, usize)> {
        let next = |thread: &HostThread, instance: u32| {
            let next = thread.operations.get(instance as usize).copied();
            next.filter(|next| instance < instances && *next < operations).map(|next| (instance, next))
        };
        while self.instance < instances && next(self, self.instance).is_none() {
            self.instance += 1;
        }
        let left = instances.saturating_sub(self.instance) as usize;
        let far = self.instance + random.below(self.spread.min(left)) as u32;
        next(self, far).or_else(|| next(self, self.instance))
    }
}

/// How a batch stands.
#[derive(Clone, Copy, Debug, Default)]
struct BatchState {
    begun: bool,
    ended: bool,
    /// The phase that it is at.
    phase: usize,
}

/// The threads of the host in a submission.
#[derive(Clone, Debug)]
pub(crate) struct HostMachine {
    hosts: Hosts,
    play: HostPlay,
    fault: Fault,
    coherent: bool,
    /// The address of the first word that they reach.
    first: u32,
    threads: Vec<HostThread>,
    batches: Vec<BatchState>,
    /// The queue of each batch.
    queues: Vec<QueueId>,
    /// Batches that were submitted and have not ended, in order.
    submitted: VecDeque<u32>,
    /// What semaphores have reached.
    reached: BTreeMap<SemaphoreId, u32>,
    /// The host domain.
    domain: BTreeMap<u32, HostLine>,
    /// What the device domain had when the host domain last fetched or wrote back a word.
    known: BTreeMap<u32, u32>,
    /// The cache of memory that is not coherent, by address and name.
    cache: BTreeMap<(u32, u32), HostLine>,
    places: Vec<HostPlace>,
    /// How often, of 256, something happens of its own accord.
    events: u32,
    /// What threads have reported.
    pub reported: Vec<u32>,
}

impl HostMachine {
    /// The threads before their first act.
    pub fn new(
        hosts: &Hosts,
        queues: Vec<QueueId>,
        play: HostPlay,
        (first, coherent): (u32, bool),
        fault: Fault,
    ) -> HostMachine {
        let mut places: Vec<HostPlace> = Vec::new();
        for act in hosts.threads.iter().flat_map(|thread| &thread.acts) {
            let HostAct::Each(operations) = act else { continue };
            for operation in operations {
                if let HostOperation::Load { place, .. } | HostOperation::Store { place, .. } = operation {
                    places.push(*place);
                }
            }
        }
        places.sort_unstable();
        places.dedup();
        let words = hosts.threads.iter().map(|thread| thread.reports.len()).sum::<usize>();
        HostMachine {
            play,
            fault,
            coherent,
            first,
            threads: hosts
                .threads
                .iter()
                .map(|thread| HostThread {
                    registers: vec![0; (play.instances * thread.registers) as usize],
                    operations: vec![0; play.instances as usize],
                    ..HostThread::default()
                })
                .collect(),
            batches: vec![BatchState::default(); hosts.batches.len()],
            queues,
            submitted: VecDeque::new(),
            reached: BTreeMap::new(),
            domain: BTreeMap::new(),
            known: BTreeMap::new(),
            cache: BTreeMap::new(),
            places,
            events: 0,
            reported: vec![play.poison; words * play.instances as usize],
            hosts: hosts.clone(),
        }
    }

    /// Begins: caches fetch what they like, and batches are submitted that no thread submits.
    pub fn begin_submission(&mut self, memory: &mut Memory, random: &mut Random) {
        let warm = [0, 64, 160, 256][random.below(4)];
        self.events = [0, 16, 64, 128][random.below(4)];
        self.threads.iter_mut().for_each(|thread| thread.draw_pace(random));
        for instance in 0..self.play.instances {
            for place in 0..self.places.len() {
                if random.chance(warm) {
                    self.prefetch(instance, place, memory);
                }
            }
        }
        for (number, start) in (0..).zip(&self.hosts.batches) {
            if *start == BatchStart::Early {
                self.submitted.push_back(number);
                if let Some(batch) = self.batches.get_mut(number as usize) {
                    batch.begun = true;
                }
            }
        }
    }

    /// The batches that queues may go on with: of each queue the first that has not ended, where it does not wait. `waits` says what the
    /// phase of a batch waits for.
    pub fn ready_batches(&self, waits: impl Fn(u32, usize) -> Option<(SemaphoreId, u32)>) -> Vec<u32> {
        let mut kept_back: Vec<QueueId> = Vec::new();
        let mut ready = Vec::new();
        for number in self.submitted.iter().copied() {
            let own = self.queues.get(number as usize).copied().unwrap_or(QueueId(0));
            if kept_back.contains(&own) {
                continue;
            }
            kept_back.push(own);
            if waits(number, self.phase_of(number)).is_none_or(|wanted| self.ends(wanted)) {
                ready.push(number);
            }
        }
        ready
    }

    /// The batches whose dispatches may run with those that a batch is at: the next ones, too, of queues whose batches end with what runs.
    pub fn concurrent_batches(
        &self,
        number: u32,
        runs: impl Fn(u32, usize) -> bool,
        is_last: impl Fn(u32, usize) -> bool,
    ) -> Vec<u32> {
        let mut together = vec![number];
        let mut kept_back: Vec<QueueId> = Vec::new();
        for other in self.submitted.iter().copied() {
            let Some(queue) = self.queues.get(other as usize).copied() else { continue };
            let at = self.phase_of(other);
            if !kept_back.contains(&queue) && runs(other, at) {
                if !together.contains(&other) {
                    together.push(other);
                }
                if is_last(other, at) {
                    continue;
                }
            }
            kept_back.push(queue);
        }
        together
    }

    /// Whether the wait of a queue for a semaphore has ended.
    fn ends(&self, (semaphore, value): (SemaphoreId, u32)) -> bool {
        let of_host =
            |act: &HostAct| matches!(act, HostAct::Signal { semaphore: own, .. } if *own == semaphore);
        self.fault == Fault::HostSignalIgnored
            && self.hosts.threads.iter().flat_map(|thread| &thread.acts).any(of_host)
            || self.has_reached(semaphore, value)
    }

    fn has_reached(&self, semaphore: SemaphoreId, value: u32) -> bool {
        self.reached.get(&semaphore).is_some_and(|reached| *reached >= value)
    }

    /// A semaphore reaches a value.
    pub fn signal_semaphore(&mut self, semaphore: SemaphoreId, value: u32) {
        let own = self.reached.entry(semaphore).or_default();
        *own = value.max(*own);
    }

    /// The phase that a batch is at.
    pub fn phase_of(&self, number: u32) -> usize {
        self.batches.get(number as usize).map_or(0, |batch| batch.phase)
    }

    /// The phase of a batch has ended.
    pub fn end_phase(&mut self, number: u32) {
        if let Some(batch) = self.batches.get_mut(number as usize) {
            batch.phase += 1;
        }
    }

    /// Whether all that was submitted has ended.
    pub fn is_idle(&self) -> bool {
        self.submitted.is_empty()
    }

    /// A batch has ended.
    pub fn end_batch(&mut self, number: u32) {
        self.submitted.retain(|queued| *queued != number);
        if let Some(batch) = self.batches.get_mut(number as usize) {
            batch.ended = true;
        }
    }

    /// Whether all threads have ended.
    pub fn has_ended(&self) -> bool {
        self.threads.iter().zip(&self.hosts.threads).all(|(thread, code)| thread.act >= code.acts.len())
    }

    /// Some thread goes on, or something happens of its own accord; false where every thread waits, or is slow and the device goes on.
    pub fn step_threads(&mut self, memory: &mut Memory, random: &mut Random, device_goes_on: bool) -> bool {
        if random.chance(self.events) {
            self.perform_cache_event(memory, random);
        }
        if random.below(DRAWN_ANEW) == 0 {
            let chosen = random.below(self.threads.len());
            self.threads.iter_mut().skip(chosen).take(1).for_each(|thread| thread.draw_pace(random));
        }
        // Mostly who is behind: threads meet where they are at one instance.
        let mut order: Vec<usize> = (0..self.threads.len()).collect();
        let count = order.len().max(1);
        order.rotate_left(random.below(count));
        if random.chance(160) {
            order.sort_by_key(|number| self.threads.get(*number).map(|thread| (thread.act, thread.instance)));
        }
        let (quick, slow): (Vec<usize>, Vec<usize>) = order
            .into_iter()
            .partition(|number| self.threads.get(*number).is_some_and(|thread| random.chance(thread.pace)));
        quick.into_iter().any(|number| self.advance_thread(number, memory, random))
            || !device_goes_on && slow.into_iter().any(|number| self.advance_thread(number, memory, random))
    }

    /// One step of a thread; false where it waits or has ended.
    fn advance_thread(&mut self, number: usize, memory: &mut Memory, random: &mut Random) -> bool {
        let Some(code) = self.hosts.threads.get(number) else { return false };
        let Some(thread) = self.threads.get_mut(number) else { return false };
        let Some(act) = code.acts.get(thread.act) else { return false };
        match act {
            HostAct::Each(operations) => {
                let chosen = thread.choose_operation(operations.len(), self.play.instances, random);
                let Some((instance, next)) = chosen else {
                    self.next_act(number);
                    return true;
                };
                let Some(operation) = operations.get(next).cloned() else { return false };
                let over =
                    self.perform_operation(OperationSite { thread: number, instance }, &operation, memory);
                let thread = self.threads.get_mut(number);
                if let Some(next) = thread.and_then(|thread| thread.operations.get_mut(instance as usize)) {
                    *next += 1 + over as usize;
                }
            }
            HostAct::Submit(batch) => {
                let batch = *batch;
                self.release_lines(number, None);
                self.make_host_writes_available(memory);
                self.submitted.push_back(batch);
                if let Some(batch) = self.batches.get_mut(batch as usize) {
                    batch.begun = true;
                }
                self.next_act(number);
            }
            HostAct::Wait(batch) => {
                let batch = self.batches.get(*batch as usize).copied().unwrap_or_default();
                if !(batch.ended || batch.begun && self.fault == Fault::FenceWaitTooEarly) {
                    return false;
                }
                self.acquire_lines(number, None);
                self.next_act(number);
            }
            HostAct::Signal { semaphore, value } => {
                let (semaphore, value) = (*semaphore, *value);
                self.release_lines(number, None);
                self.signal_semaphore(semaphore, value);
                self.next_act(number);
            }
            HostAct::Await { semaphore, value } => {
                if !self.has_reached(*semaphore, *value) {
                    return false;
                }
                self.acquire_lines(number, None);
                self.next_act(number);
            }
        }
        true
    }

    fn next_act(&mut self, number: usize) {
        let Some(thread) = self.threads.get_mut(number) else { return };
        (thread.act, thread.instance) = (thread.act + 1, 0);
        thread.operations.fill(0);
        if self.hosts.threads.get(number).is_some_and(|code| thread.act == code.acts.len()) {
            self.record_report(number);
        }
    }

    /// What a thread has in its registers at its end.
    fn record_report(&mut self, number: usize) {
        let instances = self.play.instances as usize;
        let before: usize = self.hosts.threads.iter().take(number).map(|thread| thread.reports.len()).sum();
        let Some((code, thread)) = self.hosts.threads.get(number).zip(self.threads.get(number)) else {
            return;
        };
        let rows = self.reported.chunks_exact_mut(instances.max(1)).skip(before);
        for (report, row) in code.reports.iter().zip(rows) {
            for (instance, word) in row.iter_mut().enumerate() {
                *word = match report {
                    HostReport::Done => self.play.done,
                    HostReport::Register(register) => {
                        let at = instance * code.registers as usize + *register as usize;
                        thread.registers.get(at).copied().unwrap_or(self.play.poison)
                    }
                };
            }
        }
    }

    fn word_address(&self, instance: u32, place: HostPlace) -> u32 {
        self.first + self.play.word(instance, place.storage) as u32
    }

    /// One operation; the answer is how many are left out behind it.
    fn perform_operation(
        &mut self,
        at: OperationSite,
        operation: &HostOperation,
        memory: &mut Memory,
    ) -> u32 {
        let OperationSite { thread: number, instance } = at;
        let registers = self.hosts.threads.get(number).map_or(0, |code| code.registers);
        let base = (instance * registers) as usize;
        let value = |host: &HostMachine, value: HostValue| {
            value.of(|register| {
                let thread = host.threads.get(number);
                thread.and_then(|thread| thread.registers.get(base + register as usize)).copied().unwrap_or(0)
            })
        };
        match operation {
            HostOperation::Load { register, place, order } => {
                let key = (self.word_address(instance, *place), place.name);
                let loaded = match order {
                    None => self.load_word(at, key, memory),
                    Some(order) => {
                        self.flush_line(number, key.0);
                        let loaded = self.domain_load(key.0, memory);
                        if order.acquires() {
                            self.acquire_lines(number, Some(instance));
                        }
                        loaded
                    }
                };
                let thread = self.threads.get_mut(number);
                if let Some(slot) =
                    thread.and_then(|thread| thread.registers.get_mut(base + *register as usize))
                {
                    *slot = loaded;
                }
            }
            HostOperation::Store { place, value: stored, order } => {
                let key = (self.word_address(instance, *place), place.name);
                let stored = value(self, *stored);
                match order {
                    None => self.insert_line(at, key, HostLine { value: stored, dirty: true }),
                    Some(order) => {
                        if order.releases() {
                            self.release_lines(number, Some(instance));
                        }
                        self.flush_line(number, key.0);
                        self.domain.insert(key.0, HostLine { value: stored, dirty: true });
                    }
                }
            }
            HostOperation::Fence(order) => self.perform_fence(at, *order),
            HostOperation::Flush(places) => {
                if !self.coherent && self.fault != Fault::HostFlushNothing {
                    places.iter().for_each(|place| {
                        self.flush_mapped_range(number, self.word_address(instance, *place))
                    });
                }
            }
            HostOperation::Invalidate(places) => {
                if !self.coherent && self.fault != Fault::HostInvalidateNothing {
                    places.iter().for_each(|place| {
                        self.invalidate_mapped_range(number, self.word_address(instance, *place))
                    });
                }
            }
            HostOperation::Skip { condition, over } => {
                let taken = condition
                    .is_none_or(|(how, left, right)| how.holds(value(self, left), value(self, right)));
                return if taken { *over } else { 0 };
            }
        }
        0
    }

    fn perform_fence(&mut self, at: OperationSite, order: HostOrder) {
        if order.releases() {
            self.release_lines(at.thread, Some(at.instance));
        }
        if order.acquires() {
            self.acquire_lines(at.thread, Some(at.instance));
        }
    }

    /// A plain load.
    fn load_word(&mut self, at: OperationSite, key: (u32, u32), memory: &Memory) -> u32 {
        let lines = self.threads.get(at.thread).map(|thread| &thread.lines);
        if let Some(own) = lines.and_then(|lines| lines.iter().find(|own| own.key == key)) {
            return own.line.value;
        }
        let value = self.shared_load(key, memory);
        self.insert_line(at, key, HostLine { value, dirty: false });
        value
    }

    /// Puts a line into those of a thread; the oldest makes room.
    fn insert_line(&mut self, at: OperationSite, key: (u32, u32), line: HostLine) {
        let Some(thread) = self.threads.get_mut(at.thread) else { return };
        if let Some(own) = thread.lines.iter_mut().find(|own| own.key == key) {
            own.line = line;
            return;
        }
        thread.lines.push_back(ThreadLine { key, instance: at.instance, line });
        if thread.lines.len() > OWN_LINES {
            self.drop_oldest(at.thread);
        }
    }

    fn drop_oldest(&mut self, number: usize) {
        let oldest = self.threads.get_mut(number).and_then(|thread| thread.lines.pop_front());
        if let Some(own) = oldest.filter(|own| own.line.dirty) {
            self.shared_store(own.key, own.line.value);
        }
    }

    fn shared_store(&mut self, key: (u32, u32), value: u32) {
        let line = HostLine { value, dirty: true };
        if self.coherent {
            self.domain.insert(key.0, line);
        } else {
            self.cache.insert(key, line);
        }
    }

    fn shared_load(&mut self, key: (u32, u32), memory: &Memory) -> u32 {
        if self.coherent {
            return self.domain_load(key.0, memory);
        }
        if let Some(line) = self.cache.get(&key) {
            return line.value;
        }
        let value = self.domain_load(key.0, memory);
        self.cache.insert(key, HostLine { value, dirty: false });
        value
    }

    fn domain_load(&mut self, address: u32, memory: &Memory) -> u32 {
        let known = &mut self.known;
        let fetch = || {
            let value = memory.peek(address);
            known.insert(address, value);
            HostLine { value, dirty: false }
        };
        self.domain.entry(address).or_insert_with(fetch).value
    }

    /// Moves what is dirty of a thread to what all threads share, of one instance or of all.
    fn release_lines(&mut self, number: usize, instance: Option<u32>) {
        self.move_lines(number, |own| instance.is_none_or(|instance| instance == own.instance));
    }

    /// Moves those dirty lines of a thread to what all threads share.
    fn move_lines(&mut self, number: usize, which: impl Fn(&ThreadLine) -> bool) {
        let Some(thread) = self.threads.get_mut(number) else { return };
        let mut moved = Vec::new();
        for own in thread.lines.iter_mut().filter(|own| own.line.dirty && which(own)) {
            moved.push((own.key, own.line.value));
            own.line.dirty = false;
        }
        moved.into_iter().for_each(|(key, value)| self.shared_store(key, value));
    }

    /// Drops what is clean of a thread, of one instance or of all.
    fn acquire_lines(&mut self, number: usize, instance: Option<u32>) {
        if let Some(thread) = self.threads.get_mut(number) {
            let is_other = |own: &ThreadLine| instance.is_some_and(|instance| instance != own.instance);
            thread.lines.retain(|own| own.line.dirty || is_other(own));
        }
    }

    /// Before an atomic: nothing of the word stays before the host domain, where atomics are performed.
    fn flush_line(&mut self, number: usize, address: u32) {
        self.flush_mapped_range(number, address);
        self.invalidate_mapped_range(number, address);
    }

    /// Moves what is dirty of a word to the host domain.
    fn flush_mapped_range(&mut self, number: usize, address: u32) {
        self.move_lines(number, |own| own.key.0 == address);
        let names = (address, 0)..=(address, u32::MAX);
        for (_, line) in self.cache.range_mut(names).filter(|(_, line)| line.dirty) {
            line.dirty = false;
            self.domain.insert(address, HostLine { value: line.value, dirty: true });
        }
    }

    /// Drops what is clean of a word before the host domain.
    fn invalidate_mapped_range(&mut self, number: usize, address: u32) {
        if let Some(thread) = self.threads.get_mut(number) {
            thread.lines.retain(|own| own.key.0 != address || own.line.dirty);
        }
        let names: Vec<(u32, u32)> = self
            .cache
            .range((address, 0)..=(address, u32::MAX))
            .filter(|(_, line)| !line.dirty)
            .map(|(key, _)| *key)
            .collect();
        for key in names {
            self.cache.remove(&key);
        }
    }

    /// A submission: the host domain goes to the device domain, and that becomes visible to the device.
    fn make_host_writes_available(&mut self, memory: &mut Memory) {
        if self.fault != Fault::SubmissionDropsHostWrites {
            self.write_back_domain(memory);
        }
        memory.invalidate_all();
    }

    /// Moves what is dirty in the host domain to the device domain.
    pub fn write_back_domain(&mut self, memory: &mut Memory) {
        for (address, line) in self.domain.iter_mut().filter(|(_, line)| line.dirty) {
            memory.poke(*address, line.value);
            self.known.insert(*address, line.value);
            line.dirty = false;
        }
    }

    /// Makes the device domain visible in the host domain.
    pub fn drop_domain(&mut self) {
        self.domain.retain(|_, line| line.dirty);
        self.known.clear();
    }

    /// All that the host wrote goes to memory.
    pub fn end_submission(&mut self, memory: &mut Memory) {
        for number in 0..self.threads.len() {
            self.release_lines(number, None);
        }
        for ((address, _), line) in self.cache.iter_mut().filter(|(_, line)| line.dirty) {
            self.domain.insert(*address, HostLine { value: line.value, dirty: true });
            line.dirty = false;
        }
        // A write of the device that the host domain never came to know arrives behind that of the host.
        let known = &self.known;
        self.domain
            .retain(|address, _| known.get(address).is_none_or(|known| *known == memory.peek(*address)));
        self.write_back_domain(memory);
    }

    fn prefetch(&mut self, instance: u32, place: usize, memory: &Memory) {
        if let Some(place) = self.places.get(place).copied() {
            self.shared_load((self.word_address(instance, place), place.name), memory);
        }
    }

    /// Something that a cache does of its own accord.
    fn perform_cache_event(&mut self, memory: &mut Memory, random: &mut Random) {
        if self.places.is_empty() || self.threads.is_empty() || self.play.instances == 0 {
            return;
        }
        let number = random.below(self.threads.len());
        let choice = random.word();
        // About where a thread is.
        let near = self.threads.get(number).map_or(0, |thread| thread.instance) + (choice >> 8) as u32 % 4;
        let instance = if choice & 0x80 == 0 {
            near.min(self.play.instances - 1)
        } else {
            random.below(self.play.instances as usize) as u32
        };
        let Some(place) = self.places.get(random.below(self.places.len())).copied() else { return };
        let key = (self.word_address(instance, place), place.name);
        match choice % 8 {
            0 => {
                if let Some(line) = self.domain.get_mut(&key.0).filter(|line| line.dirty) {
                    memory.poke(key.0, line.value);
                    self.known.insert(key.0, line.value);
                    line.dirty = false;
                }
            }
            1 => {
                if self.domain.get(&key.0).is_some_and(|line| !line.dirty) {
                    self.domain.remove(&key.0);
                    self.known.remove(&key.0);
                }
            }
            2 => drop(self.shared_load(key, memory)),
            3 => {
                if let Some(line) = self.cache.get_mut(&key).filter(|line| line.dirty) {
                    line.dirty = false;
                    self.domain.insert(key.0, HostLine { value: line.value, dirty: true });
                }
            }
            4 => {
                if self.cache.get(&key).is_some_and(|line| !line.dirty) {
                    self.cache.remove(&key);
                }
            }
            5 => self.drop_oldest(number),
            _ => drop(self.load_word(OperationSite { thread: number, instance }, key, memory)),
        }
    }
}
