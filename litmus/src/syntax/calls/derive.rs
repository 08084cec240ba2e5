//! Derives the memory-model relations of calls: system-synchronizes-with, availability, visibility and domain
//! operations.
//!
//! Long because one derivation processes the items of all queues and hosts.
//!
//! The rules are those of the synchronization chapter of the Vulkan specification; `docs/language.md` states
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
use super::{ALL, COMPUTE, Call, CallKind, Dependency, HOST, Semaphore, Side, Transfer};
use crate::error::CallError;
use crate::schedule::{ApiCalls, FenceWait, HostCall, Schedule, Scheduled, ScheduledQueue};
use crate::span::Span;
use crate::system::{AccessMask, SystemOperation};
use crate::test::{
    Flow, Instruction, InstructionKind, LocationId, Place, Placement, SyncPoint, SystemSync, Test, Thread,
    ThreadId,
};
use chain::{between, moved};

type Derived<T> = Result<T, CallError>;

/// The work submitted to a queue, in order.
struct Queue<'a> {
    family: u32,
    number: u32,
    items: Vec<Item<'a>>,
}

#[derive(Clone, Copy)]
enum Item<'a> {
    Dispatch(ThreadId),
    Call(&'a Call),
}

/// A position in a queue: index of the queue, index of the item.
type At = (usize, usize);

/// Half of an ownership transfer: its position and the receiving family.
type Half = (At, u32);

/// A set of predecessors: device dispatches and points of host threads.
#[derive(Clone, Default)]
struct Before {
    dispatches: Vec<ThreadId>,
    host: Vec<SyncPoint>,
}

/// The operations between two dispatches, in order.
type Between = Vec<SystemOperation>;

struct Calls<'a> {
    test: &'a Test,
    /// Declared exclusive memory, in addition to what transfers name.
    exclusive: &'a [LocationId],
    calls: &'a [Call],
    queues: Vec<Queue<'a>>,
    /// Memoizes the predecessors of a wait's end, by text offset.
    ///
    /// Without it, the number of paths is the product of the signals of each semaphore on the path.
    ended: RefCell<BTreeMap<u32, Before>>,
    /// Memoizes if a position of a queue precedes the end of a wait.
    led: RefCell<BTreeMap<(At, u32), bool>>,
}

/// The derived additions to a test.
#[derive(Default)]
struct Words {
    sync: Vec<SystemSync>,
    /// For each thread, the instructions to insert at its start and at its end.
    ends: Vec<(Vec<Instruction>, Vec<Instruction>)>,
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
            let owned = Calls::new(&self.test, &[], &self.exclusive).and_then(|calls| calls.check_owners());
            if let Err(error) = owned {
                self.errors.push(error.into());
            }
            return;
        };
        let relation = |instruction: &Instruction| match &instruction.kind {
            InstructionKind::System(operation) => !operation.is_of_host(),
            _ => false,
        };
        let mut instructions = self.test.threads.iter().flat_map(|thread| &thread.instructions);
        if !sync.is_empty() || instructions.any(relation) {
            self.errors.push(CallError::BesideRelations { span: first.span }.into());
            return;
        }
        match words(&self.test, &calls, &self.exclusive) {
            Ok((words, schedule)) => {
                self.put(words);
                self.test.calls = ApiCalls::new(schedule, &self.test);
            }
            Err(error) => self.errors.push(error.into()),
        }
    }

    fn put(&mut self, words: Words) {
        let mut sync = words.sync;
        // Inserted waits shift the instructions after them.
        for point in sync.iter_mut().flat_map(|pair| [&mut pair.from, &mut pair.to]) {
            if let Some(instruction) = &mut point.instruction {
                let before = words
                    .waits
                    .iter()
                    .filter(|(thread, at, _)| *thread == point.thread && *at <= usize::from(*instruction));
                *instruction += u16::try_from(before.count()).unwrap_or(u16::MAX);
            }
        }
        for (thread, at, threads) in words.fences {
            let thread = self.test.threads.get_mut(usize::from(thread.0));
            if let Some(instruction) = thread.and_then(|thread| thread.instructions.get_mut(at)) {
                instruction.kind = InstructionKind::System(SystemOperation::Wait(threads));
            }
        }
        let mut waits = words.waits;
        waits.sort_by_key(|(_, at, wait)| std::cmp::Reverse((*at, wait.span.offset)));
        for (thread, at, wait) in waits {
            if let Some(thread) = self.test.threads.get_mut(usize::from(thread.0)) {
                thread.instructions.insert(at.min(thread.instructions.len()), wait);
            }
        }
        for (thread, (head, tail)) in self.test.threads.iter_mut().zip(words.ends) {
            thread.instructions.splice(0..0, head);
            thread.instructions.extend(tail);
        }
        self.test.system_sync = sync;
    }
}

fn words(test: &Test, calls: &[Call], exclusive: &[LocationId]) -> Derived<(Words, Schedule)> {
    let derivation = Calls::new(test, calls, exclusive)?;
    derivation.check_semaphores()?;
    derivation.check_deadlock()?;
    derivation.check_events()?;
    derivation.check_transfers()?;
    derivation.check_owners()?;
    Ok((derivation.derive()?, derivation.schedule()))
}

/// Counts the instructions before an index, without labels.
fn acts(thread: &Thread, before: usize) -> usize {
    let is_act =
        |instruction: &&Instruction| !matches!(instruction.kind, InstructionKind::Flow(Flow::Label(_)));
    thread.instructions.iter().take(before).filter(is_act).count()
}

fn queues<'a>(test: &Test, calls: &'a [Call]) -> Derived<Vec<Queue<'a>>> {
    let ids = || (0..test.threads.len()).map(|number| ThreadId(number as u16));
    let mut submitted: Vec<(ThreadId, ThreadId)> = Vec::new();
    for id in ids() {
        for instruction in &test.thread(id).instructions {
            if let InstructionKind::System(SystemOperation::Submit(threads)) = &instruction.kind {
                submitted.extend(threads.iter().map(|thread| (id, *thread)));
            }
        }
    }
    let early = ids().filter(|id| !submitted.iter().any(|(_, thread)| thread == id));
    // Repeated submissions are refused elsewhere. Each thread's calls are added once, so that at most
    // `MAX_CALLS` exist.
    let mut order: Vec<ThreadId> = early.collect();
    for (_, thread) in &submitted {
        if !order.contains(thread) {
            order.push(*thread);
        }
    }
    let mut queues: Vec<Queue<'a>> = Vec::new();
    for id in order {
        let thread = test.thread(id);
        let Place::Device(placement) = thread.place else { continue };
        let own = (placement.queue_family, placement.queue);
        let at = queues.iter().position(|queue| (queue.family, queue.number) == own);
        let at = at.unwrap_or_else(|| {
            queues.push(Queue { family: own.0, number: own.1, items: Vec::new() });
            queues.len() - 1
        });
        let Some(queue) = queues.get_mut(at) else { continue };
        let all = acts(thread, usize::MAX);
        let mut dispatched = false;
        for call in calls.iter().filter(|call| call.thread == id) {
            let before = acts(thread, call.at);
            if before > 0 && before < all {
                return Err(CallError::AmidThread { span: call.span });
            }
            let behind = match &call.kind {
                CallKind::Signal(_) => true,
                CallKind::Transfer(transfer) => transfer.from == placement.queue_family,
                CallKind::Barrier(_) | CallKind::Set(..) | CallKind::Await(_) | CallKind::Wait(_) => false,
            };
            if !dispatched && (before > 0 || all == 0 && behind) {
                queue.items.push(Item::Dispatch(id));
                dispatched = true;
            }
            queue.items.push(Item::Call(call));
        }
        if !dispatched {
            queue.items.push(Item::Dispatch(id));
        }
        // If several host threads submit to one queue, the order of their submissions is unknown.
        let hosts = submitted.iter().filter(|(_, thread)| {
            let of = |other: Placement| (other.queue_family, other.queue);
            matches!(test.thread(*thread).place, Place::Device(other) if of(other) == own)
        });
        let mut hosts: Vec<ThreadId> = hosts.map(|(host, _)| *host).collect();
        hosts.dedup();
        if let (2.., Some(call)) = (hosts.len(), calls.iter().find(|call| call.thread == id)) {
            return Err(CallError::SubmissionOrder { span: call.span });
        }
    }
    Ok(queues)
}

impl<'a> Calls<'a> {
    fn new(test: &'a Test, calls: &'a [Call], exclusive: &'a [LocationId]) -> Derived<Calls<'a>> {
        let queues = queues(test, calls)?;
        Ok(Calls { test, calls, exclusive, queues, ended: RefCell::default(), led: RefCell::default() })
    }

    /// Returns the storages that a transfer covers.
    fn transferred(&self, transfer: &Transfer) -> Vec<LocationId> {
        let all = (0..self.test.locations.len()).map(|location| LocationId(location as u16));
        let storages = all.filter(|location| self.test.storage_of(*location) == *location);
        storages.filter(|location| self.covers(transfer, *location)).collect()
    }

    /// Returns the queues with the calls as written.
    fn schedule(&self) -> Schedule {
        let mut owned: Vec<LocationId> =
            self.exclusive.iter().map(|location| self.test.storage_of(*location)).collect();
        for call in self.calls {
            if let CallKind::Transfer(transfer) = &call.kind {
                owned.extend(self.transferred(transfer));
            }
        }
        owned.sort_unstable();
        owned.dedup();
        let item = |family: u32, item: &Item<'_>| {
            Some(match item {
                Item::Dispatch(thread) => Scheduled::Dispatch(*thread),
                Item::Call(call) => match &call.kind {
                    CallKind::Barrier(dependency) => Scheduled::Barrier(dependency.named),
                    CallKind::Set(event, dependency) => Scheduled::Set(event.clone(), dependency.named),
                    CallKind::Await(event) => {
                        let (_, set) = self.set_of(event)?;
                        Scheduled::Await(event.clone(), set.named)
                    }
                    CallKind::Signal(semaphore) => Scheduled::Signal(semaphore.name.clone(), semaphore.value),
                    CallKind::Wait(semaphore) => Scheduled::Wait(semaphore.name.clone(), semaphore.value),
                    CallKind::Transfer(transfer) if transfer.from == family => {
                        Scheduled::Release(self.transferred(transfer), transfer.to)
                    }
                    CallKind::Transfer(transfer) => {
                        Scheduled::Acquire(self.transferred(transfer), transfer.from)
                    }
                },
            })
        };
        let thread = |item: &Item<'_>| match item {
            Item::Dispatch(thread) => *thread,
            Item::Call(call) => call.thread,
        };
        let queue = |queue: &Queue<'_>| {
            let items = queue.items.iter().filter_map(|own| Some((item(queue.family, own)?, thread(own))));
            let (items, threads) = items.unzip();
            ScheduledQueue { family: queue.family, number: queue.number, items, threads }
        };
        let queues = self.queues.iter().map(queue).collect();
        Schedule { queues, owned, hosts: self.host_calls(), fences: self.fences() }
    }

    /// Returns the fence waits, with instruction indices after the insertion of semaphore waits.
    fn fences(&self) -> Vec<FenceWait> {
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
        for call in self.calls.iter().filter(|call| self.test.thread(call.thread).place == Place::Host) {
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

    /// Returns the call that sets an event.
    fn set_of(&self, event: &str) -> Option<(&'a Call, &'a Dependency)> {
        self.calls.iter().find_map(|call| match &call.kind {
            CallKind::Set(name, dependency) if name == event => Some((call, dependency)),
            _ => None,
        })
    }

    fn items(&self, queue: usize) -> &[Item<'a>] {
        self.queues.get(queue).map_or(&[], |queue| queue.items.as_slice())
    }

    /// Returns the position of a device call.
    fn place(&self, call: &Call) -> Option<At> {
        self.queues.iter().enumerate().find_map(|(number, queue)| {
            let at = queue
                .items
                .iter()
                .position(|item| matches!(item, Item::Call(own) if std::ptr::eq(*own, call)));
            Some((number, at?))
        })
    }

    fn dispatches<'b>(&'b self, queue: usize) -> impl Iterator<Item = (usize, ThreadId)> + use<'a, 'b> {
        self.items(queue).iter().enumerate().filter_map(|(at, item)| match item {
            Item::Dispatch(thread) => Some((at, *thread)),
            Item::Call(_) => None,
        })
    }

    /// Returns the signals that may end a wait: those that can occur before the wait has ended.
    ///
    /// A timeline that alternates between queues has later signals that cannot.
    fn ends(&self, wait: &Call, awaited: &Semaphore) -> Vec<&'a Call> {
        let ends =
            |signal: &Semaphore, wait: &Semaphore| signal.name == wait.name && signal.value >= wait.value;
        let hosts = (0..self.test.threads.len()).map(|host| {
            let own = |call: &&Call| usize::from(call.thread.0) == host && self.place(call).is_none();
            self.calls.iter().filter(own).collect::<Vec<_>>()
        });
        let of_queue = |queue: &Queue<'a>| {
            let calls = queue.items.iter().filter_map(|item| match item {
                Item::Call(call) => Some(*call),
                Item::Dispatch(_) => None,
            });
            calls.collect::<Vec<_>>()
        };
        // The remaining calls of each queue and each host thread.
        let mut left: Vec<Vec<&'a Call>> = self.queues.iter().map(of_queue).chain(hosts).collect();
        let mut signalled: Vec<(&'a Call, &'a Semaphore)> = Vec::new();
        let first_host = self.queues.len();
        loop {
            let before = left.iter().map(Vec::len).sum::<usize>();
            for stream in 0..left.len() {
                // A queue does not have what its host has yet to submit.
                let submits = |call: &Call, left: &[Vec<&'a Call>]| {
                    self.submissions(call.thread).all(|(host, at)| {
                        let remaining = left.get(first_host + usize::from(host.0)).into_iter().flatten();
                        !remaining.into_iter().any(|own| own.at <= at)
                    })
                };
                let passes = |call: &Call, signalled: &[(&'a Call, &'a Semaphore)]| match &call.kind {
                    CallKind::Wait(own) => {
                        call.span.offset != wait.span.offset
                            && signalled.iter().any(|(_, signal)| ends(signal, own))
                    }
                    _ => true,
                };
                while let Some(call) = left.get(stream).and_then(|calls| calls.first()).copied()
                    && passes(call, &signalled)
                    && submits(call, &left)
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
                signalled.retain(|(_, signal)| ends(signal, awaited));
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
    fn awaited(&self, wait: &Call, semaphore: &Semaphore, path: &mut Vec<Span>) -> Derived<Before> {
        if path.iter().any(|span| span.offset == wait.span.offset) {
            return Err(CallError::CircularWait { span: wait.span });
        }
        if let Some(known) = self.ended.borrow().get(&wait.span.offset) {
            return Ok(known.clone());
        }
        path.push(wait.span);
        let mut common: Option<Before> = None;
        for call in self.ends(wait, semaphore) {
            let before = self.signalled(call, path)?;
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
            if later { CallError::CircularWait { span } } else { CallError::EndlessWait { semaphore, span } }
        })?;
        self.ended.borrow_mut().insert(wait.span.offset, common.clone());
        Ok(common)
    }

    /// Returns the predecessors of a signal.
    fn signalled(&self, signal: &Call, path: &mut Vec<Span>) -> Derived<Before> {
        let Some((queue, at)) = self.place(signal) else { return self.signalled_by_host(signal, path) };
        self.given(queue, at, path)
    }

    /// Returns the predecessors of the fence of these threads' submissions: everything submitted up to them.
    fn fenced(&self, threads: &[ThreadId], path: &mut Vec<Span>) -> Derived<Before> {
        let mut before = Before::default();
        for thread in threads {
            before.add(*thread);
            for queue in 0..self.queues.len() {
                let last = self.items(queue).iter().rposition(|item| match item {
                    Item::Dispatch(own) => own == thread,
                    Item::Call(call) => call.thread == *thread,
                });
                if let Some(last) = last {
                    before.join(self.given(queue, last + 1, path)?);
                }
            }
        }
        Ok(before)
    }

    /// Returns the queue of a thread's dispatch.
    fn queue_of(&self, thread: ThreadId) -> Option<usize> {
        (0..self.queues.len()).find(|queue| self.dispatches(*queue).any(|(_, own)| own == thread))
    }

    /// Returns the predecessors of a signal after the first `count` items of a queue.
    fn given(&self, queue: usize, count: usize, path: &mut Vec<Span>) -> Derived<Before> {
        let mut before = Before::default();
        for item in self.items(queue).iter().take(count) {
            match item {
                Item::Dispatch(thread) => before.add(*thread),
                Item::Call(call) => {
                    if let CallKind::Wait(semaphore) = &call.kind {
                        before.join(self.awaited(call, semaphore, path)?);
                    }
                }
            }
        }
        Ok(before)
    }

    fn signalled_by_host(&self, signal: &Call, path: &mut Vec<Span>) -> Derived<Before> {
        let mut before = Before::default();
        let instructions = &self.test.thread(signal.thread).instructions;
        for (index, instruction) in (0_u16..).zip(instructions).take(signal.at) {
            if let InstructionKind::System(SystemOperation::Wait(threads)) = &instruction.kind {
                before.join(self.fenced(threads, path)?);
            }
            if instruction.kind.is_event() {
                before.host.push(SyncPoint { thread: signal.thread, instruction: Some(index) });
            }
        }
        for call in self.calls.iter().filter(|call| call.thread == signal.thread && call.at <= signal.at) {
            if let CallKind::Wait(semaphore) = &call.kind
                && call.span.offset < signal.span.offset
            {
                before.join(self.awaited(call, semaphore, path)?);
            }
        }
        Ok(before)
    }

    fn derive(&self) -> Derived<Words> {
        let mut words = Words { ends: vec![Default::default(); self.test.threads.len()], ..Words::default() };
        for number in 0..self.queues.len() {
            for (at, thread) in self.dispatches(number) {
                self.head(number, at, thread, &mut words)?;
            }
            self.to_host(number, &words.sync.clone(), &mut words)?;
        }
        for (thread, at, named) in self.fence_waits() {
            let mut threads = self.fenced(named, &mut Vec::new())?.dispatches;
            // A semaphore wait of a named thread already makes its predecessors available and orders them.
            threads.retain(|other| {
                let on_the_way =
                    |pair: &SystemSync| pair.from.thread == *other && named.contains(&pair.to.thread);
                let same_queue = |name: &ThreadId| self.queue_of(*name) == self.queue_of(*other);
                named.contains(other) || named.iter().any(same_queue) || !words.sync.iter().any(on_the_way)
            });
            let hosts = self.fenced(named, &mut Vec::new())?.host;
            words.sync.extend(self.between_hosts(&hosts, thread, at));
            words.fences.push((thread, at, threads));
        }
        for call in self.calls {
            if let (CallKind::Wait(semaphore), None) = (&call.kind, self.place(call)) {
                let Before { dispatches: threads, host } = self.awaited(call, semaphore, &mut Vec::new())?;
                if threads.is_empty() {
                    return Err(CallError::IdleWait { semaphore: semaphore.name.clone(), span: call.span });
                }
                words.sync.extend(self.between_hosts(&host, call.thread, call.at));
                let kind = InstructionKind::System(SystemOperation::Wait(threads));
                words.waits.push((call.thread, call.at, Instruction { kind, span: call.span }));
            }
        }
        Ok(words)
    }

    /// Orders accesses of other host threads before the accesses of a host thread that follow its wait.
    fn between_hosts(&self, before: &[SyncPoint], waiting: ThreadId, at: usize) -> Vec<SystemSync> {
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
    fn head(&self, queue: usize, at: usize, thread: ThreadId, words: &mut Words) -> Derived<()> {
        let items: Vec<Item<'_>> = self.items(queue).iter().take(at).copied().collect();
        let span = items.iter().rev().find_map(|item| match item {
            Item::Call(call) => Some(call.span),
            Item::Dispatch(_) => None,
        });
        let Some(span) = span else { return Ok(()) };
        let mut awaited = Before::default();
        // Positions of the waits that add events of hosts to what comes before.
        let mut arrivals: Vec<usize> = Vec::new();
        for (index, item) in items.iter().enumerate() {
            if let Item::Call(call) = item
                && let CallKind::Wait(semaphore) = &call.kind
            {
                let before = self.awaited(call, semaphore, &mut Vec::new())?;
                if before.host.iter().any(|point| !awaited.host.contains(point)) {
                    arrivals.push(index);
                }
                awaited.join(before);
            }
        }
        let all = || vec![SystemOperation::AvailableToDevice, SystemOperation::VisibleFromDevice];
        let mut before: Vec<(ThreadId, Between)> =
            awaited.dispatches.iter().map(|earlier| (*earlier, all())).collect();
        for (index, earlier) in self.dispatches(queue).take_while(|(index, _)| *index < at) {
            if !awaited.dispatches.contains(&earlier)
                && let Some(between) = between(items.get(index..).unwrap_or_default())?
            {
                before.push((earlier, between));
            }
        }
        let is_empty = |id: ThreadId| acts(self.test.thread(id), usize::MAX) == 0;
        before.retain(|(earlier, _)| !is_empty(*earlier) && *earlier != thread);
        // Predecessors of another predecessor are ordered and made available transitively.
        let last = before.iter().filter(|(earlier, _)| {
            let behind = |to: &SyncPoint| before.iter().any(|(other, _)| *other == to.thread);
            !words.sync.iter().any(|pair| pair.from.thread == *earlier && behind(&pair.to))
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
        let behind = |from: usize, held| moved(items.get(from..).unwrap_or_default(), held);
        match arrivals.as_slice() {
            [] => operations.extend(behind(0, HOST)),
            [first, later @ ..] => {
                let own = behind(*first, ALL);
                let is_moved_too = |at: usize| {
                    let moved = behind(at, ALL);
                    own.iter().all(|operation| moved.contains(operation))
                };
                if later.iter().any(|at| !is_moved_too(*at)) {
                    return Err(CallError::DifferentMasks { span });
                }
                operations.extend(own);
            }
        }
        let whole = |thread| SyncPoint { thread, instruction: None };
        let earlier = before.iter().map(|(earlier, _)| whole(*earlier)).chain(self.in_short(awaited.host));
        words.sync.extend(earlier.map(|from| SystemSync { from, to: whole(thread), span }));
        if let Some((head, _)) = words.ends.get_mut(usize::from(thread.0)) {
            head.extend(operations.into_iter().map(|operation| instruction(operation, span)));
        }
        Ok(())
    }

    /// Replaces the points of a host thread by the whole thread if they are all its events and no wait follows them.
    fn in_short(&self, points: Vec<SyncPoint>) -> Vec<SyncPoint> {
        let is_whole = |thread: ThreadId| {
            let instructions = &self.test.thread(thread).instructions;
            let own = |index: u16| points.contains(&SyncPoint { thread, instruction: Some(index) });
            let waits = |call: &Call| {
                call.thread == thread
                    && call.at == instructions.len()
                    && matches!(call.kind, CallKind::Wait(_))
            };
            let all = (0_u16..).zip(instructions);
            all.filter(|(_, instruction)| instruction.kind.is_event()).all(|(index, _)| own(index))
                && !self.calls.iter().any(waits)
        };
        let mut short: Vec<SyncPoint> = Vec::new();
        for point in &points {
            let point =
                if is_whole(point.thread) { SyncPoint { instruction: None, ..*point } } else { *point };
            if !short.contains(&point) {
                short.push(point);
            }
        }
        short
    }

    /// Returns for each wait of a host thread its predecessors, and whether a place of a queue precedes its end.
    fn host_waits(&self, at: At) -> Derived<Vec<(Before, bool)>> {
        let mut waits = Vec::new();
        for call in self.calls {
            let CallKind::Wait(semaphore) = &call.kind else { continue };
            if self.place(call).is_none() {
                let before = self.awaited(call, semaphore, &mut Vec::new())?;
                waits.push((before, self.leads(at, call)));
            }
        }
        for (_, _, named) in self.fence_waits() {
            let mut ends = named.iter().filter_map(|thread| {
                (0..self.queues.len()).find_map(|own| {
                    let last = self.items(own).iter().rposition(|item| match item {
                        Item::Dispatch(other) => other == thread,
                        Item::Call(call) => call.thread == *thread,
                    })?;
                    Some((own, last + 1))
                })
            });
            let leads = ends.any(|end| self.comes_before(at, end));
            waits.push((self.fenced(named, &mut Vec::new())?, leads));
        }
        Ok(waits)
    }

    /// Inserts the operations of barriers to the host.
    fn to_host(&self, queue: usize, sync: &[SystemSync], words: &mut Words) -> Derived<()> {
        for (at, item) in self.items(queue).iter().enumerate() {
            let Item::Call(call) = item else { continue };
            let CallKind::Barrier(Dependency { source, target, .. }) = &call.kind else { continue };
            let seen = target.accesses.only(AccessMask::HOST);
            if !target.stages.intersects(HOST)
                || seen == AccessMask::NONE
                || !source.stages.intersects(COMPUTE)
            {
                continue;
            }
            let earlier: Vec<ThreadId> = self
                .dispatches(queue)
                .take_while(|(index, _)| *index < at)
                .map(|(_, thread)| thread)
                .filter(|thread| *thread == call.thread || acts(self.test.thread(*thread), usize::MAX) > 0)
                .collect();
            let own = earlier.contains(&call.thread);
            let mut waits = self.host_waits((queue, at))?;
            waits.retain(|(before, _)| earlier.iter().any(|thread| before.dispatches.contains(thread)));
            // The operations belong to the barrier's own dispatch unless a wait needs them before it.
            let ends_before =
                |(before, leads): &(Before, bool)| *leads && !before.dispatches.contains(&call.thread);
            let thread = match earlier.last() {
                Some(last) if !own && waits.iter().any(ends_before) => *last,
                _ => call.thread,
            };
            let comes_before = |earlier: ThreadId| {
                sync.iter().any(|pair| pair.from.thread == earlier && pair.to.thread == thread)
            };
            if earlier.iter().any(|other| *other != thread && !comes_before(*other)) {
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
            let written = published(source.accesses.without(AccessMask::HOST));
            let operations = written.into_iter().chain([SystemOperation::Visible(seen)]);
            let operations = operations.map(|operation| instruction(operation, call.span));
            if let Some((head, tail)) = words.ends.get_mut(usize::from(thread.0)) {
                if own || thread != call.thread { tail.extend(operations) } else { head.extend(operations) }
            }
        }
        Ok(())
    }
}

impl Before {
    fn add(&mut self, thread: ThreadId) {
        if !self.dispatches.contains(&thread) {
            self.dispatches.push(thread);
        }
    }

    fn join(&mut self, other: Before) {
        other.dispatches.into_iter().for_each(|thread| self.add(thread));
        self.host.extend(other.host);
        self.host.sort_unstable_by_key(|point| (point.thread, point.instruction));
        self.host.dedup();
    }
}

fn instruction(operation: SystemOperation, span: Span) -> Instruction {
    Instruction { kind: InstructionKind::System(operation), span }
}

/// Returns the availability operation of an access mask; `None` for an empty mask.
fn published(mask: AccessMask) -> Option<SystemOperation> {
    (mask != AccessMask::NONE).then_some(SystemOperation::Available(mask))
}

/// Returns the visibility operation of a target for the device; `None` for an empty mask.
fn shown(target: Side) -> Option<SystemOperation> {
    let mask = target.accesses.without(AccessMask::HOST);
    (mask != AccessMask::NONE).then_some(SystemOperation::Visible(mask))
}
