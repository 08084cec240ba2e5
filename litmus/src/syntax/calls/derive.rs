//! Derives the memory-model relations of calls: system-synchronizes-with, availability, visibility and domain
//! operations.
//!
//! Long because one derivation processes the items of all queues and hosts.
//!
//! The rules are those of the synchronization chapter of the Vulkan specification; `docs/reference/calls.md` states
//! each. Programs that it does not settle are refused. Items of a queue follow the order of the columns, or
//! of the submissions. All dispatches are compute: a barrier orders earlier dispatches if its source names
//! that stage, and later ones if its target does. Barriers chain if their stages intersect. The operations of
//! a dependency are inserted at the start of the dispatches that follow, and operations for the host at the
//! position of the barrier.

mod chain;
mod check;
mod place;

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::super::declarations::DeclaredSync;
use super::super::parser::Parser;
use super::{CallKind, MemoryDependency, ParsedCall, SemaphoreValue, Transfer};
use crate::error::CallError;
use crate::schedule::{ApiCalls, FenceWait, HostCall, Schedule, ScheduledItem, ScheduledQueue};
use crate::span::Span;
use crate::system::SystemOperation;
use crate::test::{
    Flow, Instruction, InstructionKind, LocationId, Placement, SyncPoint, SystemSync, Test, Thread, ThreadId,
    ThreadPlace,
};
use place::PlacedOperation;

type Derived<T> = Result<T, CallError>;

/// The work submitted to a queue, in order.
struct QueueWork<'a> {
    family: u32,
    number: u32,
    items: Vec<WorkItem<'a>>,
}

#[derive(Clone, Copy)]
enum WorkItem<'a> {
    Dispatch(ThreadId),
    Call(&'a ParsedCall),
}

impl<'a> WorkItem<'a> {
    fn call(&self) -> Option<&'a ParsedCall> {
        match self {
            WorkItem::Call(call) => Some(call),
            WorkItem::Dispatch(_) => None,
        }
    }

    /// Returns the thread in whose column it is written.
    fn column(&self) -> ThreadId {
        match self {
            WorkItem::Dispatch(thread) => *thread,
            WorkItem::Call(call) => call.thread,
        }
    }
}

/// A position in a queue: index of the queue, index of the item.
type QueuePosition = (usize, usize);

/// Half of an ownership transfer: its position and the receiving family.
type TransferHalf = (QueuePosition, u32);

/// A set of predecessors: device dispatches and points of host threads.
#[derive(Clone, Default)]
struct Predecessors {
    dispatches: Vec<ThreadId>,
    host: Vec<SyncPoint>,
}

struct CallDerivation<'a> {
    test: &'a Test,
    /// Declared exclusive memory, in addition to that in transfers.
    exclusive: &'a [LocationId],
    calls: &'a [ParsedCall],
    queues: Vec<QueueWork<'a>>,
    /// Memoizes the predecessors of a wait's end, by text offset.
    ///
    /// Without it, the number of paths is the product of the signals of each semaphore on the path.
    predecessor_cache: RefCell<BTreeMap<u32, Predecessors>>,
    /// Memoizes for a queue position and a wait: true if the position precedes the wait's end.
    precedence_cache: RefCell<BTreeMap<(QueuePosition, u32), bool>>,
}

/// The derived additions to a test.
#[derive(Default)]
struct Derivation {
    sync: Vec<SystemSync>,
    /// For each thread, the instructions to insert at its start and at its end.
    start_and_end: Vec<(Vec<Instruction>, Vec<Instruction>)>,
    /// Waits of host threads: the thread, the instruction before which it waits, and the wait.
    waits: Vec<(ThreadId, usize, Instruction)>,
    /// Fence waits of host threads: the thread, the waiting instruction, and the threads that it waits for.
    fences: Vec<(ThreadId, usize, Vec<ThreadId>)>,
}

impl Parser<'_> {
    /// Inserts the derived instructions and pairs. `sync` are the pairs that the test declares itself.
    pub(in super::super) fn derive_calls(&mut self, sync: &[DeclaredSync]) {
        let calls = std::mem::take(&mut self.calls);
        // If one call was not understood, the others are not checked: they may depend on it.
        if !self.errors.is_empty() {
            return;
        }
        let Some(first) = calls.first() else {
            let owned =
                CallDerivation::new(&self.test, &[], &self.exclusive).and_then(|calls| calls.check_owners());
            if let Err(error) = owned {
                self.errors.push(error.into());
            }
            return;
        };
        let relation = |instruction: &Instruction| match &instruction.kind {
            InstructionKind::System(operation) => !operation.is_host_operation(),
            _ => false,
        };
        let mut instructions = self.test.threads.iter().flat_map(|thread| &thread.instructions);
        if !sync.is_empty() || instructions.any(relation) {
            self.errors.push(CallError::MixedWithRelations { span: first.span }.into());
            return;
        }
        match derive_and_check(&self.test, &calls, &self.exclusive) {
            Ok((derivation, schedule)) => {
                self.insert_derived(derivation);
                self.test.calls = ApiCalls::new(schedule, &self.test);
            }
            Err(error) => self.errors.push(error.into()),
        }
    }

    fn insert_derived(&mut self, derivation: Derivation) {
        let mut sync = derivation.sync;
        // Inserted waits shift the instructions after them.
        for point in sync.iter_mut().flat_map(|pair| [&mut pair.from, &mut pair.to]) {
            if let Some(instruction) = &mut point.instruction {
                let before = derivation
                    .waits
                    .iter()
                    .filter(|(thread, at, _)| *thread == point.thread && *at <= usize::from(*instruction));
                *instruction += u16::try_from(before.count()).unwrap_or(u16::MAX);
            }
        }
        for (thread, at, threads) in derivation.fences {
            let thread = self.test.threads.get_mut(usize::from(thread.0));
            if let Some(instruction) = thread.and_then(|thread| thread.instructions.get_mut(at)) {
                instruction.kind = InstructionKind::System(SystemOperation::Wait(threads));
            }
        }
        let mut waits = derivation.waits;
        waits.sort_by_key(|(_, at, wait)| std::cmp::Reverse((*at, wait.span.offset)));
        for (thread, at, wait) in waits {
            if let Some(thread) = self.test.threads.get_mut(usize::from(thread.0)) {
                thread.instructions.insert(at.min(thread.instructions.len()), wait);
            }
        }
        for (thread, (head, tail)) in self.test.threads.iter_mut().zip(derivation.start_and_end) {
            thread.instructions.splice(0..0, head);
            thread.instructions.extend(tail);
        }
        self.test.system_sync = sync;
    }
}

fn derive_and_check(
    test: &Test,
    calls: &[ParsedCall],
    exclusive: &[LocationId],
) -> Derived<(Derivation, Schedule)> {
    let derivation = CallDerivation::new(test, calls, exclusive)?;
    derivation.check_semaphores()?;
    derivation.check_deadlock()?;
    derivation.check_events()?;
    derivation.check_transfers()?;
    derivation.check_owners()?;
    Ok((derivation.derive_sync()?, derivation.build_schedule()))
}

/// Counts the instructions before an index, without labels.
fn count_instructions(thread: &Thread, before: usize) -> usize {
    let is_not_label =
        |instruction: &&Instruction| !matches!(instruction.kind, InstructionKind::Flow(Flow::Label(_)));
    thread.instructions.iter().take(before).filter(is_not_label).count()
}

fn collect_queues<'a>(test: &Test, calls: &'a [ParsedCall]) -> Derived<Vec<QueueWork<'a>>> {
    let ids = || (0..test.threads.len()).map(|number| ThreadId(number as u16));
    let mut submitted: Vec<(ThreadId, ThreadId)> = Vec::new();
    for id in ids() {
        for instruction in &test.thread(id).instructions {
            if let InstructionKind::System(SystemOperation::Submit(threads)) = &instruction.kind {
                submitted.extend(threads.iter().map(|thread| (id, *thread)));
            }
        }
    }
    let never_submitted = ids().filter(|id| !submitted.iter().any(|(_, thread)| thread == id));
    // Repeated submissions are refused elsewhere. Each thread's calls are added once, so that at most
    // `MAX_CALLS` exist.
    let mut order: Vec<ThreadId> = never_submitted.collect();
    for (_, thread) in &submitted {
        if !order.contains(thread) {
            order.push(*thread);
        }
    }
    let mut queues: Vec<QueueWork<'a>> = Vec::new();
    for id in order {
        let thread = test.thread(id);
        let ThreadPlace::Device(placement) = thread.place else { continue };
        let queue_id = (placement.queue_family, placement.queue);
        let at = queues.iter().position(|queue| (queue.family, queue.number) == queue_id);
        let at = at.unwrap_or_else(|| {
            queues.push(QueueWork { family: queue_id.0, number: queue_id.1, items: Vec::new() });
            queues.len() - 1
        });
        let Some(queue) = queues.get_mut(at) else { continue };
        let total = count_instructions(thread, usize::MAX);
        let mut dispatched = false;
        for call in calls.iter().filter(|call| call.thread == id) {
            let before = count_instructions(thread, call.at);
            if before > 0 && before < total {
                return Err(CallError::CallWithinThread { span: call.span });
            }
            let follows_dispatch = match &call.kind {
                CallKind::Signal(_) => true,
                CallKind::Transfer(transfer) => transfer.from == placement.queue_family,
                CallKind::Barrier(_) | CallKind::Set(..) | CallKind::Await(_) | CallKind::Wait(_) => false,
            };
            if !dispatched && (before > 0 || total == 0 && follows_dispatch) {
                queue.items.push(WorkItem::Dispatch(id));
                dispatched = true;
            }
            queue.items.push(WorkItem::Call(call));
        }
        if !dispatched {
            queue.items.push(WorkItem::Dispatch(id));
        }
        // If several host threads submit to one queue, the order of their submissions is unknown.
        let hosts = submitted.iter().filter(|(_, thread)| {
            let queue_id_of = |other: Placement| (other.queue_family, other.queue);
            matches!(test.thread(*thread).place, ThreadPlace::Device(other) if queue_id_of(other) == queue_id)
        });
        let mut hosts: Vec<ThreadId> = hosts.map(|(host, _)| *host).collect();
        hosts.dedup();
        if let (2.., Some(call)) = (hosts.len(), calls.iter().find(|call| call.thread == id)) {
            return Err(CallError::UnknownSubmissionOrder { span: call.span });
        }
    }
    Ok(queues)
}

impl<'a> CallDerivation<'a> {
    fn new(
        test: &'a Test,
        calls: &'a [ParsedCall],
        exclusive: &'a [LocationId],
    ) -> Derived<CallDerivation<'a>> {
        let queues = collect_queues(test, calls)?;
        Ok(CallDerivation {
            test,
            calls,
            exclusive,
            queues,
            predecessor_cache: RefCell::default(),
            precedence_cache: RefCell::default(),
        })
    }

    /// Returns the storages that a transfer covers.
    fn transferred_storages(&self, transfer: &Transfer) -> Vec<LocationId> {
        let all = (0..self.test.locations.len()).map(|location| LocationId(location as u16));
        let storages = all.filter(|location| self.test.storage_of(*location) == *location);
        storages.filter(|location| self.covers_location(transfer, *location)).collect()
    }

    /// Returns the queues with the calls as written.
    fn build_schedule(&self) -> Schedule {
        let mut owned: Vec<LocationId> =
            self.exclusive.iter().map(|location| self.test.storage_of(*location)).collect();
        for call in self.calls {
            if let CallKind::Transfer(transfer) = &call.kind {
                owned.extend(self.transferred_storages(transfer));
            }
        }
        owned.sort_unstable();
        owned.dedup();
        let item = |family: u32, item: &WorkItem<'_>| {
            Some(match item {
                WorkItem::Dispatch(thread) => ScheduledItem::Dispatch(*thread),
                WorkItem::Call(call) => match &call.kind {
                    CallKind::Barrier(dependency) => ScheduledItem::Barrier(dependency.named),
                    CallKind::Set(event, dependency) => ScheduledItem::Set(event.clone(), dependency.named),
                    CallKind::Await(event) => {
                        let (_, set) = self.find_set_call(event)?;
                        ScheduledItem::Await(event.clone(), set.named)
                    }
                    CallKind::Signal(semaphore) => {
                        ScheduledItem::Signal(semaphore.name.clone(), semaphore.value)
                    }
                    CallKind::Wait(semaphore) => ScheduledItem::Wait(semaphore.name.clone(), semaphore.value),
                    CallKind::Transfer(transfer) if transfer.from == family => {
                        ScheduledItem::Release(self.transferred_storages(transfer), transfer.to)
                    }
                    CallKind::Transfer(transfer) => {
                        ScheduledItem::Acquire(self.transferred_storages(transfer), transfer.from)
                    }
                },
            })
        };
        let queue = |queue: &QueueWork<'_>| {
            let items = queue.items.iter().filter_map(|own| Some((item(queue.family, own)?, own.column())));
            let (items, threads) = items.unzip();
            ScheduledQueue { family: queue.family, number: queue.number, items, threads }
        };
        let queues = self.queues.iter().map(queue).collect();
        Schedule { queues, owned, hosts: self.host_calls(), fences: self.host_fence_waits() }
    }

    /// Returns the fence waits, with instruction indices after the insertion of semaphore waits.
    fn host_fence_waits(&self) -> Vec<FenceWait> {
        let waits = |thread: ThreadId, at: usize| {
            let own = self.calls.iter().filter(|call| call.thread == thread && call.at <= at);
            own.filter(|call| call.awaited().is_some()).count()
        };
        let wait = |(thread, at, threads): (ThreadId, usize, &Vec<ThreadId>)| FenceWait {
            thread,
            at: at + waits(thread, at),
            threads: threads.clone(),
        };
        self.fence_waits().map(wait).collect()
    }

    /// Returns each fence wait: the host thread, its instruction, and the threads that it names.
    fn fence_waits(&self) -> impl Iterator<Item = (ThreadId, usize, &'a Vec<ThreadId>)> {
        let test = self.test;
        (0_u16..).zip(&test.threads).flat_map(|(number, thread)| {
            thread.instructions.iter().enumerate().filter_map(move |(at, instruction)| {
                match &instruction.kind {
                    InstructionKind::System(SystemOperation::Wait(threads)) => {
                        Some((ThreadId(number), at, threads))
                    }
                    _ => None,
                }
            })
        })
    }

    /// Returns the semaphore calls of host threads; each wait has become an instruction of its thread.
    fn host_calls(&self) -> Vec<HostCall> {
        let mut calls: Vec<HostCall> = Vec::new();
        for call in self.calls.iter().filter(|call| self.test.thread(call.thread).place == ThreadPlace::Host)
        {
            let Some(semaphore) = call.semaphore() else { continue };
            let earlier = calls.iter().filter(|own| own.waits && own.thread == call.thread).count();
            calls.push(HostCall {
                thread: call.thread,
                at: call.at + earlier,
                semaphore: semaphore.name.clone(),
                value: semaphore.value,
                waits: call.awaited().is_some(),
            });
        }
        calls
    }

    fn find_set_call(&self, event: &str) -> Option<(&'a ParsedCall, &'a MemoryDependency)> {
        self.calls.iter().find_map(|call| match &call.kind {
            CallKind::Set(name, dependency) if name == event => Some((call, dependency)),
            _ => None,
        })
    }

    fn queue_items(&self, queue: usize) -> &[WorkItem<'a>] {
        self.queues.get(queue).map_or(&[], |queue| queue.items.as_slice())
    }

    fn queue_position(&self, call: &ParsedCall) -> Option<QueuePosition> {
        self.queues.iter().enumerate().find_map(|(number, queue)| {
            let is_it = |item: &WorkItem<'_>| item.call().is_some_and(|own| std::ptr::eq(own, call));
            Some((number, queue.items.iter().position(is_it)?))
        })
    }

    fn queue_dispatches<'b>(&'b self, queue: usize) -> impl Iterator<Item = (usize, ThreadId)> + use<'a, 'b> {
        let dispatch = |(at, item): (usize, &WorkItem<'a>)| match item {
            WorkItem::Dispatch(thread) => Some((at, *thread)),
            WorkItem::Call(_) => None,
        };
        self.queue_items(queue).iter().enumerate().filter_map(dispatch)
    }

    /// Returns the signals that may end a wait: those that can occur before the wait has ended.
    ///
    /// A timeline that alternates between queues has later signals that cannot.
    fn ending_signals(&self, wait: &ParsedCall, awaited: &SemaphoreValue) -> Vec<&'a ParsedCall> {
        let ends_wait = |signal: &SemaphoreValue, wait: &SemaphoreValue| {
            signal.name == wait.name && signal.value >= wait.value
        };
        let hosts = (0..self.test.threads.len()).map(|host| {
            let own = |call: &&ParsedCall| {
                usize::from(call.thread.0) == host && self.queue_position(call).is_none()
            };
            self.calls.iter().filter(own).collect::<Vec<_>>()
        });
        let of_queue = |queue: &QueueWork<'a>| queue.items.iter().filter_map(WorkItem::call).collect();
        // The remaining calls of each queue and each host thread.
        let mut left: Vec<Vec<&'a ParsedCall>> = self.queues.iter().map(of_queue).chain(hosts).collect();
        let mut signalled: Vec<(&'a ParsedCall, &'a SemaphoreValue)> = Vec::new();
        let first_host = self.queues.len();
        loop {
            let before = left.iter().map(Vec::len).sum::<usize>();
            for stream in 0..left.len() {
                // A submission that the host has not made yet is not on its queue.
                let is_submitted = |call: &ParsedCall, left: &[Vec<&'a ParsedCall>]| {
                    self.submissions(call.thread).all(|(host, at)| {
                        let remaining = left.get(first_host + usize::from(host.0)).into_iter().flatten();
                        !remaining.into_iter().any(|own| own.at <= at)
                    })
                };
                let can_pass = |call: &ParsedCall, signalled: &[(&'a ParsedCall, &'a SemaphoreValue)]| {
                    call.awaited().is_none_or(|own| {
                        call.span.offset != wait.span.offset
                            && signalled.iter().any(|(_, signal)| ends_wait(signal, own))
                    })
                };
                while let Some(call) = left.get(stream).and_then(|calls| calls.first()).copied()
                    && can_pass(call, &signalled)
                    && is_submitted(call, &left)
                {
                    if let Some(calls) = left.get_mut(stream) {
                        calls.remove(0);
                    }
                    signalled.extend(call.signalled().map(|semaphore| (call, semaphore)));
                }
            }
            if left.iter().map(Vec::len).sum::<usize>() == before {
                signalled.retain(|(_, signal)| ends_wait(signal, awaited));
                return signalled.into_iter().map(|(call, _)| call).collect();
            }
        }
    }

    /// Returns the host threads that submit a thread, each with the index of its instruction.
    fn submissions(&self, thread: ThreadId) -> impl Iterator<Item = (ThreadId, usize)> + use<'a> {
        let test = self.test;
        (0_u16..).zip(&test.threads).flat_map(move |(host, own)| {
            own.instructions.iter().enumerate().filter_map(move |(at, instruction)| match &instruction.kind {
                InstructionKind::System(SystemOperation::Submit(threads)) if threads.contains(&thread) => {
                    Some((ThreadId(host), at))
                }
                _ => None,
            })
        })
    }

    /// Returns the predecessors of a wait's end: the intersection over the signals that may end it.
    fn wait_predecessors(
        &self,
        wait: &ParsedCall,
        semaphore: &SemaphoreValue,
        path: &mut Vec<Span>,
    ) -> Derived<Predecessors> {
        if path.iter().any(|span| span.offset == wait.span.offset) {
            return Err(CallError::CircularWait { span: wait.span });
        }
        if let Some(known) = self.predecessor_cache.borrow().get(&wait.span.offset) {
            return Ok(known.clone());
        }
        path.push(wait.span);
        let mut common: Option<Predecessors> = None;
        for call in self.ending_signals(wait, semaphore) {
            let before = self.signal_predecessors(call, path)?;
            common = Some(match common {
                None => before,
                Some(mut common) => {
                    common.dispatches.retain(|thread| before.dispatches.contains(thread));
                    common.host.retain(|point| before.host.contains(point));
                    common
                }
            });
        }
        path.pop();
        let common = common.ok_or_else(|| {
            let mut signals = self.calls.iter().filter_map(ParsedCall::signalled);
            let later = signals.any(|own| own.name == semaphore.name && own.value >= semaphore.value);
            let (semaphore, span) = (semaphore.name.clone(), wait.span);
            if later {
                CallError::CircularWait { span }
            } else {
                CallError::UnsignalledSemaphore { semaphore, span }
            }
        })?;
        self.predecessor_cache.borrow_mut().insert(wait.span.offset, common.clone());
        Ok(common)
    }

    fn signal_predecessors(&self, signal: &ParsedCall, path: &mut Vec<Span>) -> Derived<Predecessors> {
        let Some((queue, at)) = self.queue_position(signal) else {
            return self.host_signal_predecessors(signal, path);
        };
        let mut before = self.queue_predecessors(queue, at, path)?;
        before.merge_from(self.submission_predecessors(signal.thread));
        Ok(before)
    }

    /// Returns the work of hosts before the submissions of a thread, which precedes everything submitted.
    fn submission_predecessors(&self, thread: ThreadId) -> Predecessors {
        let mut before = Predecessors::default();
        for (host, at) in self.submissions(thread) {
            let earlier = (0_u16..).zip(&self.test.thread(host).instructions).take(at + 1);
            let points = earlier.filter(|(_, own)| own.kind.is_event()).map(|(index, _)| index);
            let host = points.map(|index| SyncPoint { thread: host, instruction: Some(index) }).collect();
            before.merge_from(Predecessors { dispatches: Vec::new(), host });
        }
        before
    }

    /// Returns the predecessors of the fence of these threads' submissions: everything submitted up to them.
    fn fence_predecessors(&self, threads: &[ThreadId], path: &mut Vec<Span>) -> Derived<Predecessors> {
        let mut before = Predecessors::default();
        for thread in threads {
            before.add_dispatch(*thread);
            for queue in 0..self.queues.len() {
                let last = self.queue_items(queue).iter().rposition(|item| item.column() == *thread);
                if let Some(last) = last {
                    before.merge_from(self.queue_predecessors(queue, last + 1, path)?);
                }
            }
        }
        Ok(before)
    }

    /// Returns the queue of a thread's dispatch.
    fn find_queue(&self, thread: ThreadId) -> Option<usize> {
        (0..self.queues.len()).find(|queue| self.queue_dispatches(*queue).any(|(_, own)| own == thread))
    }

    /// Returns the predecessors of a signal after the first `count` items of a queue.
    fn queue_predecessors(&self, queue: usize, count: usize, path: &mut Vec<Span>) -> Derived<Predecessors> {
        let mut before = Predecessors::default();
        for item in self.queue_items(queue).iter().take(count) {
            before.merge_from(self.submission_predecessors(item.column()));
            match item {
                WorkItem::Dispatch(thread) => before.add_dispatch(*thread),
                WorkItem::Call(call) => {
                    if let Some(semaphore) = call.awaited() {
                        before.merge_from(self.wait_predecessors(call, semaphore, path)?);
                    }
                }
            }
        }
        Ok(before)
    }

    fn host_signal_predecessors(&self, signal: &ParsedCall, path: &mut Vec<Span>) -> Derived<Predecessors> {
        let mut before = Predecessors::default();
        let instructions = &self.test.thread(signal.thread).instructions;
        for (index, instruction) in (0_u16..).zip(instructions).take(signal.at) {
            if let InstructionKind::System(SystemOperation::Wait(threads)) = &instruction.kind {
                before.merge_from(self.fence_predecessors(threads, path)?);
            }
            if instruction.kind.is_event() {
                before.host.push(SyncPoint { thread: signal.thread, instruction: Some(index) });
            }
        }
        for call in self.calls.iter().filter(|call| call.thread == signal.thread && call.at <= signal.at) {
            if let Some(semaphore) = call.awaited()
                && call.span.offset < signal.span.offset
            {
                before.merge_from(self.wait_predecessors(call, semaphore, path)?);
            }
        }
        Ok(before)
    }

    fn derive_sync(&self) -> Derived<Derivation> {
        let placed = self.place_operations()?;
        let mut derivation = Derivation { sync: self.order_threads(&placed), ..Derivation::default() };
        for (thread, at, named) in self.fence_waits() {
            let mut threads = self.fence_predecessors(named, &mut Vec::new())?.dispatches;
            // A semaphore wait of a named thread already makes its predecessors available and orders them.
            threads.retain(|other| {
                let reaches_named =
                    |pair: &SystemSync| pair.from.thread == *other && named.contains(&pair.to.thread);
                let same_queue = |name: &ThreadId| self.find_queue(*name) == self.find_queue(*other);
                let has_tail = placed.get(usize::from(other.0)).is_some_and(|own| !own.tail.is_empty());
                has_tail
                    || named.contains(other)
                    || named.iter().any(same_queue)
                    || !derivation.sync.iter().any(reaches_named)
            });
            let hosts = self.fence_predecessors(named, &mut Vec::new())?.host;
            derivation.sync.extend(self.order_hosts(&hosts, thread, at));
            derivation.fences.push((thread, at, threads));
        }
        for call in self.calls {
            if let (Some(semaphore), None) = (call.awaited(), self.queue_position(call)) {
                let Predecessors { dispatches: threads, host } =
                    self.wait_predecessors(call, semaphore, &mut Vec::new())?;
                if threads.is_empty() {
                    return Err(CallError::WaitWithoutWork {
                        semaphore: semaphore.name.clone(),
                        span: call.span,
                    });
                }
                derivation.sync.extend(self.order_hosts(&host, call.thread, call.at));
                let kind = InstructionKind::System(SystemOperation::Wait(threads));
                derivation.waits.push((call.thread, call.at, Instruction { kind, span: call.span }));
            }
        }
        let instructions = |placed: Vec<PlacedOperation>| {
            let placed = placed.into_iter();
            placed
                .map(|own| Instruction { kind: InstructionKind::System(own.operation), span: own.span })
                .collect()
        };
        derivation.start_and_end =
            placed.into_iter().map(|own| (instructions(own.head), instructions(own.tail))).collect();
        Ok(derivation)
    }

    /// Orders accesses of other host threads before the accesses of a host thread that follow its wait.
    fn order_hosts(&self, before: &[SyncPoint], waiting: ThreadId, at: usize) -> Vec<SystemSync> {
        let span = self.test.thread(waiting).instructions.get(at).map_or(Span::default(), |own| own.span);
        let instructions = (0_u16..).zip(&self.test.thread(waiting).instructions);
        let later: Vec<u16> = instructions
            .skip(at)
            .filter(|(_, instruction)| instruction.kind.is_event())
            .map(|(index, _)| index)
            .collect();
        let others = before.iter().filter(|point| point.thread != waiting);
        others
            .flat_map(|from| {
                later.iter().map(|index| SystemSync {
                    from: *from,
                    to: SyncPoint { thread: waiting, instruction: Some(*index) },
                    span,
                })
            })
            .collect()
    }

    /// Replaces the points of a host thread by the whole thread if they are all its events and no wait follows them.
    fn merge_whole_threads(&self, points: Vec<SyncPoint>) -> Vec<SyncPoint> {
        let is_whole = |thread: ThreadId| {
            let instructions = &self.test.thread(thread).instructions;
            let is_point = |index: u16| points.contains(&SyncPoint { thread, instruction: Some(index) });
            let waits = |call: &ParsedCall| {
                call.thread == thread && call.at == instructions.len() && call.awaited().is_some()
            };
            let all = (0_u16..).zip(instructions);
            all.filter(|(_, instruction)| instruction.kind.is_event()).all(|(index, _)| is_point(index))
                && !self.calls.iter().any(waits)
        };
        let mut merged: Vec<SyncPoint> = Vec::new();
        for point in &points {
            let point =
                if is_whole(point.thread) { SyncPoint { instruction: None, ..*point } } else { *point };
            if !merged.contains(&point) {
                merged.push(point);
            }
        }
        merged
    }

    /// Returns for each host wait its predecessors, and true if the position of a queue precedes its end.
    fn host_waits(&self, at: QueuePosition) -> Derived<Vec<(Predecessors, bool)>> {
        let mut waits = Vec::new();
        for call in self.calls {
            let Some(semaphore) = call.awaited() else { continue };
            if self.queue_position(call).is_none() {
                let before = self.wait_predecessors(call, semaphore, &mut Vec::new())?;
                waits.push((before, self.precedes_wait(at, call)));
            }
        }
        for (_, _, named) in self.fence_waits() {
            let mut ends = named.iter().filter_map(|thread| {
                (0..self.queues.len()).find_map(|own| {
                    let last = self.queue_items(own).iter().rposition(|item| item.column() == *thread)?;
                    Some((own, last + 1))
                })
            });
            let leads = ends.any(|end| self.precedes(at, end));
            waits.push((self.fence_predecessors(named, &mut Vec::new())?, leads));
        }
        Ok(waits)
    }
}

impl Predecessors {
    fn add_dispatch(&mut self, thread: ThreadId) {
        if !self.dispatches.contains(&thread) {
            self.dispatches.push(thread);
        }
    }

    fn merge_from(&mut self, other: Predecessors) {
        other.dispatches.into_iter().for_each(|thread| self.add_dispatch(thread));
        self.host.extend(other.host);
        self.host.sort_unstable_by_key(|point| (point.thread, point.instruction));
        self.host.dedup();
    }
}
