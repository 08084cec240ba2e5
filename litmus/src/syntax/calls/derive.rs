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

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::super::declarations::DeclaredSync;
use super::super::parser::Parser;
use super::{CallKind, MemoryDependency, ParsedCall, SemaphoreValue, SyncScope, Transfer};
use crate::error::CallError;
use crate::schedule::{ApiCalls, FenceWait, HostCall, Schedule, ScheduledItem, ScheduledQueue};
use crate::span::Span;
use vocabulary::{AccessMask, StageMask};

use crate::system::SystemOperation;
use crate::test::{
    Flow, Instruction, InstructionKind, LocationId, Placement, SyncPoint, SystemSync, Test, Thread, ThreadId,
    ThreadPlace,
};
use chain::{chain_operations, host_write_operations};

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

/// The operations between two dispatches, in order.
type OperationList = Vec<SystemOperation>;

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
        let thread = |item: &WorkItem<'_>| match item {
            WorkItem::Dispatch(thread) => *thread,
            WorkItem::Call(call) => call.thread,
        };
        let queue = |queue: &QueueWork<'_>| {
            let items = queue.items.iter().filter_map(|own| Some((item(queue.family, own)?, thread(own))));
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
            own.filter(|call| matches!(call.kind, CallKind::Wait(_))).count()
        };
        let named = self.fence_waits();
        named
            .map(|(thread, at, threads)| FenceWait {
                thread,
                at: at + waits(thread, at),
                threads: threads.clone(),
            })
            .collect()
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
            let (semaphore, waits) = match &call.kind {
                CallKind::Signal(semaphore) => (semaphore, false),
                CallKind::Wait(semaphore) => (semaphore, true),
                CallKind::Barrier(_) | CallKind::Set(..) | CallKind::Await(_) | CallKind::Transfer(_) => {
                    continue;
                }
            };
            let earlier = calls.iter().filter(|own| own.waits && own.thread == call.thread).count();
            let (thread, at) = (call.thread, call.at + earlier);
            calls.push(HostCall {
                thread,
                at,
                semaphore: semaphore.name.clone(),
                value: semaphore.value,
                waits,
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
            let at = queue
                .items
                .iter()
                .position(|item| matches!(item, WorkItem::Call(own) if std::ptr::eq(*own, call)));
            Some((number, at?))
        })
    }

    fn queue_dispatches<'b>(&'b self, queue: usize) -> impl Iterator<Item = (usize, ThreadId)> + use<'a, 'b> {
        self.queue_items(queue).iter().enumerate().filter_map(|(at, item)| match item {
            WorkItem::Dispatch(thread) => Some((at, *thread)),
            WorkItem::Call(_) => None,
        })
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
        let of_queue = |queue: &QueueWork<'a>| {
            let calls = queue.items.iter().filter_map(|item| match item {
                WorkItem::Call(call) => Some(*call),
                WorkItem::Dispatch(_) => None,
            });
            calls.collect::<Vec<_>>()
        };
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
                    match &call.kind {
                        CallKind::Wait(own) => {
                            call.span.offset != wait.span.offset
                                && signalled.iter().any(|(_, signal)| ends_wait(signal, own))
                        }
                        _ => true,
                    }
                };
                while let Some(call) = left.get(stream).and_then(|calls| calls.first()).copied()
                    && can_pass(call, &signalled)
                    && is_submitted(call, &left)
                {
                    if let Some(calls) = left.get_mut(stream) {
                        calls.remove(0);
                    }
                    if let CallKind::Signal(semaphore) = &call.kind {
                        signalled.push((call, semaphore));
                    }
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
            let later = self.calls.iter().any(|call| {
                matches!(&call.kind, CallKind::Signal(own) if own.name == semaphore.name && own.value >= semaphore.value)
            });
            let (semaphore, span) = (semaphore.name.clone(), wait.span);
            if later { CallError::CircularWait { span } } else { CallError::UnsignalledSemaphore { semaphore, span } }
        })?;
        self.predecessor_cache.borrow_mut().insert(wait.span.offset, common.clone());
        Ok(common)
    }

    fn signal_predecessors(&self, signal: &ParsedCall, path: &mut Vec<Span>) -> Derived<Predecessors> {
        let Some((queue, at)) = self.queue_position(signal) else {
            return self.host_signal_predecessors(signal, path);
        };
        self.queue_predecessors(queue, at, path)
    }

    /// Returns the predecessors of the fence of these threads' submissions: everything submitted up to them.
    fn fence_predecessors(&self, threads: &[ThreadId], path: &mut Vec<Span>) -> Derived<Predecessors> {
        let mut before = Predecessors::default();
        for thread in threads {
            before.add_dispatch(*thread);
            for queue in 0..self.queues.len() {
                let last = self.queue_items(queue).iter().rposition(|item| match item {
                    WorkItem::Dispatch(own) => own == thread,
                    WorkItem::Call(call) => call.thread == *thread,
                });
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
            match item {
                WorkItem::Dispatch(thread) => before.add_dispatch(*thread),
                WorkItem::Call(call) => {
                    if let CallKind::Wait(semaphore) = &call.kind {
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
            if let CallKind::Wait(semaphore) = &call.kind
                && call.span.offset < signal.span.offset
            {
                before.merge_from(self.wait_predecessors(call, semaphore, path)?);
            }
        }
        Ok(before)
    }

    fn derive_sync(&self) -> Derived<Derivation> {
        let mut derivation = Derivation {
            start_and_end: vec![Default::default(); self.test.threads.len()],
            ..Derivation::default()
        };
        for number in 0..self.queues.len() {
            for (at, thread) in self.queue_dispatches(number) {
                self.derive_dispatch_start(number, at, thread, &mut derivation)?;
            }
            self.derive_host_barriers(number, &derivation.sync.clone(), &mut derivation)?;
        }
        for (thread, at, named) in self.fence_waits() {
            let mut threads = self.fence_predecessors(named, &mut Vec::new())?.dispatches;
            // A semaphore wait of a named thread already makes its predecessors available and orders them.
            threads.retain(|other| {
                let reaches_named =
                    |pair: &SystemSync| pair.from.thread == *other && named.contains(&pair.to.thread);
                let same_queue = |name: &ThreadId| self.find_queue(*name) == self.find_queue(*other);
                named.contains(other)
                    || named.iter().any(same_queue)
                    || !derivation.sync.iter().any(reaches_named)
            });
            let hosts = self.fence_predecessors(named, &mut Vec::new())?.host;
            derivation.sync.extend(self.order_hosts(&hosts, thread, at));
            derivation.fences.push((thread, at, threads));
        }
        for call in self.calls {
            if let (CallKind::Wait(semaphore), None) = (&call.kind, self.queue_position(call)) {
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

    /// Derives the predecessors of a dispatch and the operations at its start.
    fn derive_dispatch_start(
        &self,
        queue: usize,
        at: usize,
        thread: ThreadId,
        derivation: &mut Derivation,
    ) -> Derived<()> {
        let items: Vec<WorkItem<'_>> = self.queue_items(queue).iter().take(at).copied().collect();
        let span = items.iter().rev().find_map(|item| match item {
            WorkItem::Call(call) => Some(call.span),
            WorkItem::Dispatch(_) => None,
        });
        let Some(span) = span else { return Ok(()) };
        let mut awaited = Predecessors::default();
        // Positions of the waits that add events of hosts to the earlier ones.
        let mut host_wait_positions: Vec<usize> = Vec::new();
        for (index, item) in items.iter().enumerate() {
            if let WorkItem::Call(call) = item
                && let CallKind::Wait(semaphore) = &call.kind
            {
                let before = self.wait_predecessors(call, semaphore, &mut Vec::new())?;
                if before.host.iter().any(|point| !awaited.host.contains(point)) {
                    host_wait_positions.push(index);
                }
                awaited.merge_from(before);
            }
        }
        let full_dependency = || vec![SystemOperation::AvailableToDevice, SystemOperation::VisibleFromDevice];
        let mut before: Vec<(ThreadId, OperationList)> =
            awaited.dispatches.iter().map(|earlier| (*earlier, full_dependency())).collect();
        for (index, earlier) in self.queue_dispatches(queue).take_while(|(index, _)| *index < at) {
            if !awaited.dispatches.contains(&earlier)
                && let Some(between) = chain_operations(items.get(index..).unwrap_or_default())?
            {
                before.push((earlier, between));
            }
        }
        let is_empty = |id: ThreadId| count_instructions(self.test.thread(id), usize::MAX) == 0;
        before.retain(|(earlier, _)| !is_empty(*earlier) && *earlier != thread);
        // Predecessors of another predecessor are ordered and made available transitively.
        let last = before.iter().filter(|(earlier, _)| {
            let is_predecessor = |to: &SyncPoint| before.iter().any(|(other, _)| *other == to.thread);
            !derivation.sync.iter().any(|pair| pair.from.thread == *earlier && is_predecessor(&pair.to))
        });
        let mut last = last.map(|(_, between)| between);
        let mut operations = last.next().cloned().unwrap_or_default();
        if last.any(|other| *other != operations) {
            return Err(CallError::DifferentMasks { span });
        }
        if operations.is_empty() && !awaited.host.is_empty() {
            operations.push(SystemOperation::VisibleFromDevice);
        }
        // Barriers that order no dispatch move writes of the host too. They chain with an earlier wait for the host through
        // any stage of commands. The host stage is not among these.
        let host_writes_from =
            |from: usize, held| host_write_operations(items.get(from..).unwrap_or_default(), held);
        match host_wait_positions.as_slice() {
            [] => operations.extend(host_writes_from(0, StageMask::HOST)),
            [first, later @ ..] => {
                let own = host_writes_from(*first, StageMask::ALL.to_first_scope());
                let is_covered_from = |at: usize| {
                    let later_writes = host_writes_from(at, StageMask::ALL.to_first_scope());
                    own.iter().all(|operation| later_writes.contains(operation))
                };
                if later.iter().any(|at| !is_covered_from(*at)) {
                    return Err(CallError::DifferentMasks { span });
                }
                operations.extend(own);
            }
        }
        let whole_thread = |thread| SyncPoint { thread, instruction: None };
        let earlier = before
            .iter()
            .map(|(earlier, _)| whole_thread(*earlier))
            .chain(self.merge_whole_threads(awaited.host));
        derivation.sync.extend(earlier.map(|from| SystemSync { from, to: whole_thread(thread), span }));
        if let Some((head, _)) = derivation.start_and_end.get_mut(usize::from(thread.0)) {
            head.extend(operations.into_iter().map(|operation| system_instruction(operation, span)));
        }
        Ok(())
    }

    /// Replaces the points of a host thread by the whole thread if they are all its events and no wait follows them.
    fn merge_whole_threads(&self, points: Vec<SyncPoint>) -> Vec<SyncPoint> {
        let is_whole = |thread: ThreadId| {
            let instructions = &self.test.thread(thread).instructions;
            let is_point = |index: u16| points.contains(&SyncPoint { thread, instruction: Some(index) });
            let waits = |call: &ParsedCall| {
                call.thread == thread
                    && call.at == instructions.len()
                    && matches!(call.kind, CallKind::Wait(_))
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
            let CallKind::Wait(semaphore) = &call.kind else { continue };
            if self.queue_position(call).is_none() {
                let before = self.wait_predecessors(call, semaphore, &mut Vec::new())?;
                waits.push((before, self.precedes_wait(at, call)));
            }
        }
        for (_, _, named) in self.fence_waits() {
            let mut ends = named.iter().filter_map(|thread| {
                (0..self.queues.len()).find_map(|own| {
                    let last = self.queue_items(own).iter().rposition(|item| match item {
                        WorkItem::Dispatch(other) => other == thread,
                        WorkItem::Call(call) => call.thread == *thread,
                    })?;
                    Some((own, last + 1))
                })
            });
            let leads = ends.any(|end| self.precedes(at, end));
            waits.push((self.fence_predecessors(named, &mut Vec::new())?, leads));
        }
        Ok(waits)
    }

    /// Inserts the operations of barriers to the host.
    fn derive_host_barriers(
        &self,
        queue: usize,
        sync: &[SystemSync],
        derivation: &mut Derivation,
    ) -> Derived<()> {
        for (at, item) in self.queue_items(queue).iter().enumerate() {
            let WorkItem::Call(call) = item else { continue };
            let CallKind::Barrier(MemoryDependency { source, target, .. }) = &call.kind else { continue };
            let host_accesses = target.accesses.intersection(AccessMask::HOST);
            if !target.stages.intersects(StageMask::HOST)
                || host_accesses == AccessMask::NONE
                || !source.stages.intersects(StageMask::COMPUTE)
            {
                continue;
            }
            let earlier: Vec<ThreadId> = self
                .queue_dispatches(queue)
                .take_while(|(index, _)| *index < at)
                .map(|(_, thread)| thread)
                .filter(|thread| {
                    *thread == call.thread || count_instructions(self.test.thread(*thread), usize::MAX) > 0
                })
                .collect();
            let includes_own = earlier.contains(&call.thread);
            let mut waits = self.host_waits((queue, at))?;
            waits.retain(|(before, _)| earlier.iter().any(|thread| before.dispatches.contains(thread)));
            // The operations belong to the barrier's own dispatch unless a wait needs them before it.
            let ends_before_own =
                |(before, leads): &(Predecessors, bool)| *leads && !before.dispatches.contains(&call.thread);
            let thread = match earlier.last() {
                Some(last) if !includes_own && waits.iter().any(ends_before_own) => *last,
                _ => call.thread,
            };
            let is_ordered_before = |earlier: ThreadId| {
                sync.iter().any(|pair| pair.from.thread == earlier && pair.to.thread == thread)
            };
            if earlier.iter().any(|other| *other != thread && !is_ordered_before(*other)) {
                return Err(CallError::UnorderedReadback { span: call.span });
            }
            waits.retain(|(before, _)| before.dispatches.contains(&thread));
            // It has no effect if it precedes none of the waits. The derivation cannot express that it precedes some.
            let precedes: Vec<bool> = waits.iter().map(|(_, leads)| *leads).collect();
            if precedes.contains(&false) {
                if precedes.contains(&true) {
                    return Err(CallError::UnorderedReadback { span: call.span });
                }
                continue;
            }
            let written = availability_operation(source.accesses.without(AccessMask::HOST));
            let operations = written.into_iter().chain([SystemOperation::Visible(host_accesses)]);
            let operations = operations.map(|operation| system_instruction(operation, call.span));
            if let Some((head, tail)) = derivation.start_and_end.get_mut(usize::from(thread.0)) {
                if includes_own || thread != call.thread {
                    tail.extend(operations)
                } else {
                    head.extend(operations)
                }
            }
        }
        Ok(())
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

fn system_instruction(operation: SystemOperation, span: Span) -> Instruction {
    Instruction { kind: InstructionKind::System(operation), span }
}

/// Returns the availability operation of an access mask; `None` for an empty mask.
fn availability_operation(mask: AccessMask) -> Option<SystemOperation> {
    (mask != AccessMask::NONE).then_some(SystemOperation::Available(mask))
}

/// Returns the visibility operation of a target for the device; `None` for an empty mask.
fn visibility_operation(target: SyncScope) -> Option<SystemOperation> {
    let mask = target.accesses.without(AccessMask::HOST);
    (mask != AccessMask::NONE).then_some(SystemOperation::Visible(mask))
}
