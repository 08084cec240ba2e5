//! Host threads: their caches, the host domain, and transfers between the host domain and device memory.
//! Long because host threads, caches and transfers share one state.
//!
//! The machine's memory is the device domain. The host domain acts as a cache in front of it (Vulkan
//! specification, "Host Access Types" and "Availability, Visibility, and Domain Operations"). A submission,
//! or a dependency with HOST_WRITE in its source, writes back its dirty words. A dependency with a host
//! access in its destination drops its clean words.
//!
//! Non-coherent memory adds a cache between threads and the host domain, with a line for each *name*; flushes
//! and invalidations of mapped ranges move these lines. Each thread has a few private lines, which its
//! release and acquire operations move: they model its store buffer and its speculative loads. All of these
//! caches fetch, write back and evict spontaneously.

use std::collections::{BTreeMap, VecDeque};

use plan::{
    BatchStart, HostAct, HostLayout, HostOperation, HostPlace, HostReport, HostValue, Hosts, Order, QueueId,
    SemaphoreId,
};

use crate::fault::Fault;
use crate::memory::Memory;
use crate::random::Random;

/// The number of private lines of a thread.
const PRIVATE_LINES: usize = 6;
/// Rates, of 256, at which a runnable thread runs while others are runnable; each thread draws one
/// repeatedly. A slow poller gets to see the state after another thread's wait for a queue.
const PACES: [u32; 4] = [256, 256, 48, 6];
/// The numbers of instances that a thread executes concurrently, drawn with its pace. Instances are
/// unordered, and threads overlap in more of them if each has many in progress.
const SPREADS: [usize; 4] = [1, 8, usize::MAX, usize::MAX];
/// The average number of steps after which a thread redraws its pace and spread.
const REDRAW_PERIOD: usize = 64;

/// A word in a host cache.
#[derive(Clone, Copy, Debug)]
struct HostLine {
    value: u32,
    dirty: bool,
}

#[derive(Clone, Debug, Default)]
struct HostThreadState {
    act: usize,
    /// The first instance that is not finished.
    instance: u32,
    /// The next operation of each instance.
    operations: Vec<usize>,
    /// The registers of each instance.
    registers: Vec<u32>,
    /// The private lines, oldest first.
    lines: VecDeque<ThreadLine>,
    /// One of [`PACES`].
    pace: u32,
    /// One of [`SPREADS`].
    spread: usize,
}

/// A private line of a thread.
#[derive(Clone, Copy, Debug)]
struct ThreadLine {
    /// The address and the name.
    key: (u32, u32),
    /// The instance of the word: releases and acquires of other instances do not affect it.
    instance: u32,
    line: HostLine,
}

/// The thread and the instance that an operation belongs to.
#[derive(Clone, Copy, Debug)]
struct OperationSite {
    thread: usize,
    instance: u32,
}

impl HostThreadState {
    fn draw_pace(&mut self, random: &mut Random) {
        self.pace = PACES.get(random.below(PACES.len())).copied().unwrap_or(256);
        self.spread = SPREADS.get(random.below(SPREADS.len())).copied().unwrap_or(1);
    }

    /// Returns an open instance and its next operation, or `None` if all instances are finished.
    fn choose_operation(
        &mut self,
        operations: usize,
        instances: u32,
        random: &mut Random,
    ) -> Option<(u32, usize)> {
        let next = |thread: &HostThreadState, instance: u32| {
            let next = thread.operations.get(instance as usize).copied();
            next.filter(|next| instance < instances && *next < operations).map(|next| (instance, next))
        };
        while self.instance < instances && next(self, self.instance).is_none() {
            self.instance += 1;
        }
        let left = instances.saturating_sub(self.instance) as usize;
        // The spread bounds how far a thread runs ahead of its oldest open instance.
        let far = self.instance + random.below(self.spread.min(left)) as u32;
        next(self, far).or_else(|| next(self, self.instance))
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct BatchState {
    is_submitted: bool,
    has_ended: bool,
    phase: usize,
}

/// The host threads of a submission.
#[derive(Clone, Debug)]
pub(crate) struct HostMachine {
    hosts: Hosts,
    layout: HostLayout,
    fault: Fault,
    coherent: bool,
    /// The address of the first word that the threads can access.
    first: u32,
    threads: Vec<HostThreadState>,
    batches: Vec<BatchState>,
    /// The queue of each batch.
    queues: Vec<QueueId>,
    /// Batches that were submitted and have not ended, in order.
    submitted: VecDeque<u32>,
    /// The values that semaphores have reached.
    semaphore_values: BTreeMap<SemaphoreId, u32>,
    domain: BTreeMap<u32, HostLine>,
    /// The device-domain value of each word when the host domain last fetched or wrote it back.
    fetched_values: BTreeMap<u32, u32>,
    /// The cache of non-coherent memory, by address and name.
    cache: BTreeMap<(u32, u32), HostLine>,
    places: Vec<HostPlace>,
    /// The rate, of 256, of spontaneous cache events.
    event_rate: u32,
    /// The values that threads have reported.
    pub reported: Vec<u32>,
}

impl HostMachine {
    /// Creates the threads before their first act.
    pub fn new(
        hosts: &Hosts,
        queues: Vec<QueueId>,
        layout: HostLayout,
        first: u32,
        coherent: bool,
        fault: Fault,
    ) -> HostMachine {
        let mut places: Vec<HostPlace> = Vec::new();
        for act in hosts.threads.iter().flat_map(|thread| &thread.acts) {
            let HostAct::Execute(operations) = act else { continue };
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
            layout,
            fault,
            coherent,
            first,
            threads: hosts
                .threads
                .iter()
                .map(|thread| HostThreadState {
                    registers: vec![0; (layout.instances * thread.registers) as usize],
                    operations: vec![0; layout.instances as usize],
                    ..HostThreadState::default()
                })
                .collect(),
            batches: vec![BatchState::default(); hosts.batches.len()],
            queues,
            submitted: VecDeque::new(),
            semaphore_values: BTreeMap::new(),
            domain: BTreeMap::new(),
            fetched_values: BTreeMap::new(),
            cache: BTreeMap::new(),
            places,
            event_rate: 0,
            reported: vec![layout.poison; words * layout.instances as usize],
            hosts: hosts.clone(),
        }
    }

    /// Begins a submission: caches prefetch at random, and batches that no thread submits are submitted.
    pub fn begin_submission(&mut self, memory: &mut Memory, random: &mut Random) {
        let prefetch_rate = [0, 64, 160, 256][random.below(4)];
        self.event_rate = [0, 16, 64, 128][random.below(4)];
        self.threads.iter_mut().for_each(|thread| thread.draw_pace(random));
        for instance in 0..self.layout.instances {
            for place in 0..self.places.len() {
                if random.chance(prefetch_rate) {
                    self.prefetch(instance, place, memory);
                }
            }
        }
        for (number, start) in (0..).zip(&self.hosts.batches) {
            if *start == BatchStart::Early {
                self.submitted.push_back(number);
                if let Some(batch) = self.batches.get_mut(number as usize) {
                    batch.is_submitted = true;
                }
            }
        }
    }

    /// Returns the first unfinished batch of each queue unless it waits. `waits` gives the semaphore wait of
    /// a phase of a batch.
    pub fn ready_batches(&self, waits: impl Fn(u32, usize) -> Option<(SemaphoreId, u32)>) -> Vec<u32> {
        let mut blocked_queues: Vec<QueueId> = Vec::new();
        let mut ready = Vec::new();
        // A queue executes its batches in order, so only the first one can be ready.
        for number in self.submitted.iter().copied() {
            let own = self.queues.get(number as usize).copied().unwrap_or(QueueId(0));
            if blocked_queues.contains(&own) {
                continue;
            }
            blocked_queues.push(own);
            if waits(number, self.phase_of(number)).is_none_or(|wanted| self.has_wait_ended(wanted)) {
                ready.push(number);
            }
        }
        ready
    }

    /// Returns the batches whose dispatches may run with those of the current one, including later batches of
    /// queues whose current batch ends with these dispatches.
    pub fn concurrent_batches(
        &self,
        number: u32,
        runs: impl Fn(u32, usize) -> bool,
        is_last: impl Fn(u32, usize) -> bool,
    ) -> Vec<u32> {
        let mut concurrent = vec![number];
        let mut blocked_queues: Vec<QueueId> = Vec::new();
        for other in self.submitted.iter().copied() {
            let Some(queue) = self.queues.get(other as usize).copied() else { continue };
            let at = self.phase_of(other);
            if !blocked_queues.contains(&queue) && runs(other, at) {
                if !concurrent.contains(&other) {
                    concurrent.push(other);
                }
                if is_last(other, at) {
                    continue;
                }
            }
            blocked_queues.push(queue);
        }
        concurrent
    }

    /// Returns true if the semaphore has reached the value, which ends the wait.
    fn has_wait_ended(&self, (semaphore, value): (SemaphoreId, u32)) -> bool {
        let of_host =
            |act: &HostAct| matches!(act, HostAct::Signal { semaphore: own, .. } if *own == semaphore);
        self.fault == Fault::HostSignalIgnored
            && self.hosts.threads.iter().flat_map(|thread| &thread.acts).any(of_host)
            || self.has_reached(semaphore, value)
    }

    fn has_reached(&self, semaphore: SemaphoreId, value: u32) -> bool {
        self.semaphore_values.get(&semaphore).is_some_and(|reached| *reached >= value)
    }

    /// Raises a semaphore to a value.
    pub fn signal_semaphore(&mut self, semaphore: SemaphoreId, value: u32) {
        let own = self.semaphore_values.entry(semaphore).or_default();
        *own = value.max(*own);
    }

    /// Returns the current phase of a batch.
    pub fn phase_of(&self, number: u32) -> usize {
        self.batches.get(number as usize).map_or(0, |batch| batch.phase)
    }

    /// Ends the current phase of a batch.
    pub fn end_phase(&mut self, number: u32) {
        if let Some(batch) = self.batches.get_mut(number as usize) {
            batch.phase += 1;
        }
    }

    /// Returns true if all submitted batches have ended.
    pub fn is_idle(&self) -> bool {
        self.submitted.is_empty()
    }

    pub fn end_batch(&mut self, number: u32) {
        self.submitted.retain(|queued| *queued != number);
        if let Some(batch) = self.batches.get_mut(number as usize) {
            batch.has_ended = true;
        }
    }

    /// Returns true if all threads have ended.
    pub fn has_ended(&self) -> bool {
        self.threads.iter().zip(&self.hosts.threads).all(|(thread, code)| thread.act >= code.acts.len())
    }

    /// Advances some thread, or performs a cache event. Returns false if every thread waits, or is slow while
    /// the device can advance.
    pub fn step_threads(
        &mut self,
        memory: &mut Memory,
        random: &mut Random,
        can_device_advance: bool,
    ) -> bool {
        if random.chance(self.event_rate) {
            self.perform_cache_event(memory, random);
        }
        if random.below(REDRAW_PERIOD) == 0 {
            let chosen = random.below(self.threads.len());
            self.threads.iter_mut().skip(chosen).take(1).for_each(|thread| thread.draw_pace(random));
        }
        // Prefer threads that lag: threads interact where they are at the same instance.
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
            || !can_device_advance
                && slow.into_iter().any(|number| self.advance_thread(number, memory, random))
    }

    /// Advances a thread by one step; returns false if it waits or has ended.
    fn advance_thread(&mut self, number: usize, memory: &mut Memory, random: &mut Random) -> bool {
        let Some(code) = self.hosts.threads.get(number) else { return false };
        let Some(thread) = self.threads.get_mut(number) else { return false };
        let Some(act) = code.acts.get(thread.act) else { return false };
        match act {
            HostAct::Execute(operations) => {
                let chosen = thread.choose_operation(operations.len(), self.layout.instances, random);
                let Some((instance, next)) = chosen else {
                    self.advance_act(number);
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
                // Host write ordering guarantee: a submission makes earlier host writes available
                // to the device.
                self.release_lines(number, None);
                self.make_host_writes_available(memory);
                self.submitted.push_back(batch);
                if let Some(batch) = self.batches.get_mut(batch as usize) {
                    batch.is_submitted = true;
                }
                self.advance_act(number);
            }
            HostAct::Wait(batch) => {
                let batch = self.batches.get(*batch as usize).copied().unwrap_or_default();
                if !(batch.has_ended || batch.is_submitted && self.fault == Fault::FenceWaitTooEarly) {
                    return false;
                }
                self.acquire_lines(number, None);
                self.advance_act(number);
            }
            HostAct::Signal { semaphore, value } => {
                let (semaphore, value) = (*semaphore, *value);
                // Unlike a submission, a signal writes nothing back to the device domain: that takes a
                // dependency with HOST_WRITE.
                self.release_lines(number, None);
                self.signal_semaphore(semaphore, value);
                self.advance_act(number);
            }
            HostAct::Await { semaphore, value } => {
                if !self.has_reached(*semaphore, *value) {
                    return false;
                }
                self.acquire_lines(number, None);
                self.advance_act(number);
            }
        }
        true
    }

    fn advance_act(&mut self, number: usize) {
        let Some(thread) = self.threads.get_mut(number) else { return };
        (thread.act, thread.instance) = (thread.act + 1, 0);
        thread.operations.fill(0);
        if self.hosts.threads.get(number).is_some_and(|code| thread.act == code.acts.len()) {
            self.record_report(number);
        }
    }

    /// Reports the final register values of a thread.
    fn record_report(&mut self, number: usize) {
        let instances = self.layout.instances as usize;
        let before: usize = self.hosts.threads.iter().take(number).map(|thread| thread.reports.len()).sum();
        let Some((code, thread)) = self.hosts.threads.get(number).zip(self.threads.get(number)) else {
            return;
        };
        let rows = self.reported.chunks_exact_mut(instances.max(1)).skip(before);
        for (report, row) in code.reports.iter().zip(rows) {
            for (instance, word) in row.iter_mut().enumerate() {
                *word = match report {
                    HostReport::Done => self.layout.done,
                    HostReport::Register(register) => {
                        let at = instance * code.registers as usize + *register as usize;
                        thread.registers.get(at).copied().unwrap_or(self.layout.poison)
                    }
                };
            }
        }
    }

    fn word_address(&self, instance: u32, place: HostPlace) -> u32 {
        self.first + self.layout.word_index(instance, place.storage) as u32
    }

    /// Performs one operation; returns the number of following operations to skip.
    fn perform_operation(
        &mut self,
        site: OperationSite,
        operation: &HostOperation,
        memory: &mut Memory,
    ) -> u32 {
        let OperationSite { thread: number, instance } = site;
        let registers = self.hosts.threads.get(number).map_or(0, |code| code.registers);
        let base = (instance * registers) as usize;
        let value = |host: &HostMachine, value: HostValue| {
            value.evaluate(|register| {
                let thread = host.threads.get(number);
                thread.and_then(|thread| thread.registers.get(base + register as usize)).copied().unwrap_or(0)
            })
        };
        match operation {
            HostOperation::Load { register, place, order } => {
                let key = (self.word_address(instance, *place), place.name);
                let loaded = match order {
                    None => self.load_word(site, key, memory),
                    Some(order) => {
                        // Atomics execute in the host domain, in front of which no copy may remain.
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
                    None => self.insert_line(site, key, HostLine { value: stored, dirty: true }),
                    Some(order) => {
                        if order.releases() {
                            self.release_lines(number, Some(instance));
                        }
                        self.flush_line(number, key.0);
                        self.domain.insert(key.0, HostLine { value: stored, dirty: true });
                    }
                }
            }
            HostOperation::Fence(order) => self.perform_fence(site, *order),
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
            // Jumps lead forward only, past this many operations.
            HostOperation::Skip { condition, count: over } => {
                let taken = condition
                    .is_none_or(|(how, left, right)| how.holds(value(self, left), value(self, right)));
                return if taken { *over } else { 0 };
            }
        }
        0
    }

    fn perform_fence(&mut self, at: OperationSite, order: Order) {
        if order.releases() {
            self.release_lines(at.thread, Some(at.instance));
        }
        if order.acquires() {
            self.acquire_lines(at.thread, Some(at.instance));
        }
    }

    /// Performs a non-atomic load.
    fn load_word(&mut self, at: OperationSite, key: (u32, u32), memory: &Memory) -> u32 {
        let lines = self.threads.get(at.thread).map(|thread| &thread.lines);
        if let Some(own) = lines.and_then(|lines| lines.iter().find(|own| own.key == key)) {
            return own.line.value;
        }
        let value = self.shared_load(key, memory);
        self.insert_line(at, key, HostLine { value, dirty: false });
        value
    }

    /// Inserts a private line; evicts the oldest if the buffer is full.
    fn insert_line(&mut self, at: OperationSite, key: (u32, u32), line: HostLine) {
        let Some(thread) = self.threads.get_mut(at.thread) else { return };
        if let Some(own) = thread.lines.iter_mut().find(|own| own.key == key) {
            own.line = line;
            return;
        }
        thread.lines.push_back(ThreadLine { key, instance: at.instance, line });
        if thread.lines.len() > PRIVATE_LINES {
            self.evict_oldest_line(at.thread);
        }
    }

    fn evict_oldest_line(&mut self, number: usize) {
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
        let known = &mut self.fetched_values;
        let fetch = || {
            let value = memory.peek(address);
            known.insert(address, value);
            HostLine { value, dirty: false }
        };
        self.domain.entry(address).or_insert_with(fetch).value
    }

    /// Publishes the dirty lines of a thread, of one instance or of all, to the state that threads share.
    fn release_lines(&mut self, number: usize, instance: Option<u32>) {
        self.publish_lines(number, |own| instance.is_none_or(|instance| instance == own.instance));
    }

    /// Publishes the selected dirty lines of a thread to the state that threads share.
    fn publish_lines(&mut self, number: usize, which: impl Fn(&ThreadLine) -> bool) {
        let Some(thread) = self.threads.get_mut(number) else { return };
        let mut moved = Vec::new();
        for own in thread.lines.iter_mut().filter(|own| own.line.dirty && which(own)) {
            moved.push((own.key, own.line.value));
            own.line.dirty = false;
        }
        moved.into_iter().for_each(|(key, value)| self.shared_store(key, value));
    }

    /// Drops the clean lines of a thread, of one instance or of all.
    fn acquire_lines(&mut self, number: usize, instance: Option<u32>) {
        if let Some(thread) = self.threads.get_mut(number) {
            let is_other = |own: &ThreadLine| instance.is_some_and(|instance| instance != own.instance);
            thread.lines.retain(|own| own.line.dirty || is_other(own));
        }
    }

    /// Flushes a word before an atomic, so that no private copy remains: atomics execute in the host domain.
    fn flush_line(&mut self, number: usize, address: u32) {
        self.flush_mapped_range(number, address);
        self.invalidate_mapped_range(number, address);
    }

    /// Moves the dirty lines of a word to the host domain.
    fn flush_mapped_range(&mut self, number: usize, address: u32) {
        self.publish_lines(number, |own| own.key.0 == address);
        // All names of the word.
        let names = (address, 0)..=(address, u32::MAX);
        for (_, line) in self.cache.range_mut(names).filter(|(_, line)| line.dirty) {
            line.dirty = false;
            self.domain.insert(address, HostLine { value: line.value, dirty: true });
        }
    }

    /// Drops the clean lines of a word in front of the host domain.
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

    /// Writes the host domain back to the device domain and makes it visible to the device, as a submission
    /// does.
    fn make_host_writes_available(&mut self, memory: &mut Memory) {
        if self.fault != Fault::SubmissionDropsHostWrites {
            self.write_back_domain(memory);
        }
        memory.invalidate_all();
    }

    /// Writes the dirty words of the host domain back to the device domain.
    pub fn write_back_domain(&mut self, memory: &mut Memory) {
        for (address, line) in self.domain.iter_mut().filter(|(_, line)| line.dirty) {
            memory.poke(*address, line.value);
            self.fetched_values.insert(*address, line.value);
            line.dirty = false;
        }
    }

    /// Makes the device domain visible in the host domain.
    pub fn invalidate_domain(&mut self) {
        self.domain.retain(|_, line| line.dirty);
        self.fetched_values.clear();
    }

    /// Writes everything that the host wrote to memory.
    pub fn end_submission(&mut self, memory: &mut Memory) {
        for number in 0..self.threads.len() {
            self.release_lines(number, None);
        }
        for ((address, _), line) in self.cache.iter_mut().filter(|(_, line)| line.dirty) {
            self.domain.insert(*address, HostLine { value: line.value, dirty: true });
            line.dirty = false;
        }
        // A device write that the host domain never fetched is ordered after the host's write.
        let known = &self.fetched_values;
        self.domain
            .retain(|address, _| known.get(address).is_none_or(|known| *known == memory.peek(*address)));
        self.write_back_domain(memory);
    }

    fn prefetch(&mut self, instance: u32, place: usize, memory: &Memory) {
        if let Some(place) = self.places.get(place).copied() {
            self.shared_load((self.word_address(instance, place), place.name), memory);
        }
    }

    /// Performs a spontaneous cache event.
    fn perform_cache_event(&mut self, memory: &mut Memory, random: &mut Random) {
        if self.places.is_empty() || self.threads.is_empty() || self.layout.instances == 0 {
            return;
        }
        let number = random.below(self.threads.len());
        let choice = random.next_word();
        // Pick an instance near the current one of the thread.
        let near = self.threads.get(number).map_or(0, |thread| thread.instance) + (choice >> 8) as u32 % 4;
        let instance = if choice & 0x80 == 0 {
            near.min(self.layout.instances - 1)
        } else {
            random.below(self.layout.instances as usize) as u32
        };
        let Some(place) = self.places.get(random.below(self.places.len())).copied() else { return };
        let key = (self.word_address(instance, place), place.name);
        match choice % 8 {
            // The host domain writes a word back.
            0 => {
                if let Some(line) = self.domain.get_mut(&key.0).filter(|line| line.dirty) {
                    memory.poke(key.0, line.value);
                    self.fetched_values.insert(key.0, line.value);
                    line.dirty = false;
                }
            }
            // It drops a clean word.
            1 => {
                if self.domain.get(&key.0).is_some_and(|line| !line.dirty) {
                    self.domain.remove(&key.0);
                    self.fetched_values.remove(&key.0);
                }
            }
            // A cache in front of the host domain, or the domain itself, fetches a word.
            2 => drop(self.shared_load(key, memory)),
            // It writes a word back.
            3 => {
                if let Some(line) = self.cache.get_mut(&key).filter(|line| line.dirty) {
                    line.dirty = false;
                    self.domain.insert(key.0, HostLine { value: line.value, dirty: true });
                }
            }
            // It drops a clean word.
            4 => {
                if self.cache.get(&key).is_some_and(|line| !line.dirty) {
                    self.cache.remove(&key);
                }
            }
            // A store buffer drains.
            5 => self.evict_oldest_line(number),
            // A thread loads a word speculatively.
            _ => drop(self.load_word(OperationSite { thread: number, instance }, key, memory)),
        }
    }
}
