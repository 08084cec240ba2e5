//! What calls mean: system-synchronizes-with, availability, visibility and domain operations, by the synchronization chapter.
//! Each rule is said in `docs/language.md`; what the chapter does not settle is refused.
//!
//! What a queue is given stands in the order of the columns, or of the submissions. Dispatches are compute: a barrier orders
//! those before it where its source names that stage, and those behind it where its target does; several barriers chain
//! where stages meet. What a dependency publishes is put at the head of the dispatches behind it, and what it publishes to the
//! host where it stands.

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::super::declarations::DeclaredSync;
use super::super::parser::Parser;
use super::{COMPUTE, Call, CallKind, HOST, Semaphore, Side, Transfer};
use crate::error::CallError;
use crate::span::Span;
use crate::system::{AccessMask, SystemOperation};
use crate::test::{
    Flow, Instruction, InstructionKind, LocationId, Place, SyncPoint, SystemSync, Test, Thread, ThreadId,
};

type Derived<T> = Result<T, CallError>;

/// What a queue is given, in order.
struct Queue<'a> {
    family: u32,
    items: Vec<Item<'a>>,
}

#[derive(Clone, Copy)]
enum Item<'a> {
    Dispatch(ThreadId),
    Call(&'a Call),
}

/// A place in a queue: number of the queue and of the item.
type At = (usize, usize);

/// What comes before something: dispatches of the device, and points of threads of the host.
#[derive(Clone, Default)]
struct Before {
    dispatches: Vec<ThreadId>,
    host: Vec<SyncPoint>,
}

/// What stands between two dispatches: operations in order.
type Between = Vec<SystemOperation>;

struct Calls<'a> {
    test: &'a Test,
    calls: &'a [Call],
    queues: Vec<Queue<'a>>,
    /// What is known to come before a wait has ended, by where its text stands: ways to it are as many as signals of each
    /// semaphore on the way multiplied.
    ended: RefCell<BTreeMap<u32, Before>>,
    /// Whether a place of a queue is known to come before a wait has ended.
    led: RefCell<BTreeMap<(At, u32), bool>>,
}

/// What is put into a test.
#[derive(Default)]
struct Words {
    sync: Vec<SystemSync>,
    /// By thread: what stands at its head, and behind all that it does.
    ends: Vec<(Vec<Instruction>, Vec<Instruction>)>,
    /// Threads of the host that wait: before which instruction, and for what.
    waits: Vec<(ThreadId, usize, Instruction)>,
}

impl Parser<'_> {
    /// Puts what the calls mean in their place. `sync` are the pairs that the test declares itself.
    pub(in super::super) fn derive_calls(&mut self, sync: &[DeclaredSync]) {
        let calls = std::mem::take(&mut self.calls);
        let Some(first) = calls.first() else { return };
        let relation = |instruction: &Instruction| match &instruction.kind {
            InstructionKind::System(operation) => !operation.is_of_host(),
            _ => false,
        };
        let mut instructions = self.test.threads.iter().flat_map(|thread| &thread.instructions);
        if !sync.is_empty() || instructions.any(relation) {
            self.errors.push(CallError::BesideRelations { span: first.span }.into());
            return;
        }
        match words(&self.test, &calls) {
            Ok(words) => self.put(words),
            Err(error) => self.errors.push(error.into()),
        }
    }

    fn put(&mut self, words: Words) {
        let mut waits = words.waits;
        waits.sort_by_key(|(_, at, _)| std::cmp::Reverse(*at));
        for (thread, at, wait) in waits {
            if let Some(thread) = self.test.threads.get_mut(usize::from(thread.0)) {
                thread.instructions.insert(at.min(thread.instructions.len()), wait);
            }
        }
        for (thread, (head, tail)) in self.test.threads.iter_mut().zip(words.ends) {
            thread.instructions.splice(0..0, head);
            thread.instructions.extend(tail);
        }
        self.test.system_sync = words.sync;
    }
}

fn words(test: &Test, calls: &[Call]) -> Derived<Words> {
    let queues = queues(test, calls)?;
    let derivation = Calls { test, calls, queues, ended: RefCell::default(), led: RefCell::default() };
    derivation.check_semaphores()?;
    derivation.check_transfers()?;
    derivation.derive()
}

/// Instructions that do something.
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
    // Whoever judges refuses what is submitted again; its calls are told once, so that there are no more than `MAX_CALLS`.
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
        let at = queues.iter().position(|queue| queue.family == placement.queue_family);
        let at = at.unwrap_or_else(|| {
            queues.push(Queue { family: placement.queue_family, items: Vec::new() });
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
                CallKind::Barrier { .. } | CallKind::Wait(_) => false,
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
        // Which of them comes first is not told where several threads of the host submit.
        let hosts = submitted.iter().filter(|(_, thread)| {
            matches!(test.thread(*thread).place, Place::Device(own) if own.queue_family == placement.queue_family)
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
    fn items(&self, queue: usize) -> &[Item<'a>] {
        self.queues.get(queue).map_or(&[], |queue| queue.items.as_slice())
    }

    /// Where a call of the device stands.
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

    fn check_semaphores(&self) -> Derived<()> {
        for call in self.calls {
            let (CallKind::Signal(own) | CallKind::Wait(own)) = &call.kind else { continue };
            let same = |other: &&Call| match (&call.kind, &other.kind) {
                (CallKind::Signal(_), CallKind::Signal(other))
                | (CallKind::Wait(_), CallKind::Wait(other)) => other.name == own.name,
                _ => false,
            };
            let all = self.calls.iter().filter_map(|call| match &call.kind {
                CallKind::Signal(semaphore) | CallKind::Wait(semaphore) => Some(semaphore),
                CallKind::Barrier { .. } | CallKind::Transfer(_) => None,
            });
            let (semaphore, span) = (own.name.clone(), call.span);
            if all
                .filter(|other| other.name == own.name)
                .any(|other| other.value.is_some() != own.value.is_some())
            {
                return Err(CallError::MixedSemaphore { semaphore, span });
            }
            if own.value.is_none() && self.calls.iter().filter(same).count() > 1 {
                return Err(CallError::BinaryTwice { semaphore, span });
            }
            if matches!(call.kind, CallKind::Wait(_)) {
                self.awaited(call, own, &mut Vec::new())?;
            }
        }
        Ok(())
    }

    /// What comes before a wait has ended: of several signals that would do, what each of them implies.
    fn awaited(&self, wait: &Call, semaphore: &Semaphore, path: &mut Vec<Span>) -> Derived<Before> {
        if path.iter().any(|span| span.offset == wait.span.offset) {
            return Err(CallError::CircularWait { span: wait.span });
        }
        if let Some(known) = self.ended.borrow().get(&wait.span.offset) {
            return Ok(known.clone());
        }
        path.push(wait.span);
        let mut common: Option<Before> = None;
        for call in self.calls {
            let CallKind::Signal(signal) = &call.kind else { continue };
            if signal.name != semaphore.name || signal.value < semaphore.value {
                continue;
            }
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
        let common = common
            .ok_or_else(|| CallError::EndlessWait { semaphore: semaphore.name.clone(), span: wait.span })?;
        self.ended.borrow_mut().insert(wait.span.offset, common.clone());
        Ok(common)
    }

    /// What comes before a signal.
    fn signalled(&self, signal: &Call, path: &mut Vec<Span>) -> Derived<Before> {
        let Some((queue, at)) = self.place(signal) else { return self.signalled_by_host(signal, path) };
        let mut before = Before::default();
        for item in self.items(queue).iter().take(at) {
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
                threads.iter().for_each(|thread| before.add(*thread));
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
        if signal.at == instructions.len() && !before.host.is_empty() {
            before.host = vec![SyncPoint { thread: signal.thread, instruction: None }];
        }
        Ok(before)
    }

    /// Both halves are there once, a semaphore stands between them, and nobody reaches what its family does not own.
    fn check_transfers(&self) -> Derived<()> {
        let transfers = || {
            self.calls.iter().filter_map(|call| match &call.kind {
                CallKind::Transfer(transfer) => Some((call, transfer)),
                _ => None,
            })
        };
        for (call, transfer) in transfers() {
            let Transfer { from, to, .. } = *transfer;
            let span = call.span;
            let Some((queue, at)) = self.place(call) else { continue };
            let family = self.queues.get(queue).map_or(from, |queue| queue.family);
            if from == to || family != from && family != to {
                return Err(CallError::ForeignTransfer { span });
            }
            let halves = |wanted: u32| {
                transfers().filter(move |(other, same)| {
                    let own = self.place(other).and_then(|(queue, _)| self.queues.get(queue));
                    *same == transfer && own.is_some_and(|queue| queue.family == wanted)
                })
            };
            let other = if family == from { to } else { from };
            if halves(family).count() != 1 || halves(other).count() != 1 {
                let half = if other == from { "it comes from" } else { "it goes to" };
                return Err(CallError::HalfTransfer { half, span });
            }
            if family == to {
                let release = halves(from).next().and_then(|(release, _)| self.place(release));
                let waits = self.items(queue).iter().take(at);
                let ordered = waits.filter_map(|item| match item {
                    Item::Call(call) => Some(*call),
                    Item::Dispatch(_) => None,
                });
                if !release.is_some_and(|release| ordered.clone().any(|wait| self.leads(release, wait))) {
                    return Err(CallError::UnorderedTransfer { span });
                }
            }
        }
        for (number, thread) in self.test.threads.iter().enumerate() {
            let Place::Device(placement) = thread.place else { continue };
            for instruction in &thread.instructions {
                let InstructionKind::Access(access) = &instruction.kind else { continue };
                let location = access.place.location;
                let mut moved =
                    transfers().filter(|(_, transfer)| self.covers(transfer, location)).peekable();
                if moved.peek().is_some()
                    && !self.owns(placement.queue_family, ThreadId(number as u16), location)
                {
                    let location = self.test.location(location).name.clone();
                    return Err(CallError::NotOwned { location, span: instruction.span });
                }
            }
        }
        Ok(())
    }

    fn covers(&self, transfer: &Transfer, location: LocationId) -> bool {
        let storage = self.test.storage_of(location);
        let mut named = transfer.locations.iter();
        transfer.locations.is_empty() || named.any(|named| self.test.storage_of(*named) == storage)
    }

    /// Whether what a place of a queue comes before is signalled for a wait. No wait waits for itself any more.
    fn leads(&self, (queue, at): At, wait: &Call) -> bool {
        let CallKind::Wait(awaited) = &wait.kind else { return false };
        let key = ((queue, at), wait.span.offset);
        if let Some(known) = self.led.borrow().get(&key) {
            return *known;
        }
        let mut signals = self
            .calls
            .iter()
            .filter(|call| match &call.kind {
                CallKind::Signal(signal) => signal.name == awaited.name && signal.value >= awaited.value,
                _ => false,
            })
            .peekable();
        let leads = signals.peek().is_some()
            && signals.all(|signal| {
                let Some((own, behind)) = self.place(signal) else { return false };
                own == queue && behind > at
                    || self
                        .items(own)
                        .iter()
                        .take(behind)
                        .any(|item| matches!(item, Item::Call(call) if self.leads((queue, at), call)))
            });
        self.led.borrow_mut().insert(key, leads);
        leads
    }

    /// Whether a queue family owns a location where a thread of it is.
    fn owns(&self, family: u32, thread: ThreadId, location: LocationId) -> bool {
        let Some((queue, _)) = self.queues.iter().enumerate().find(|(_, queue)| queue.family == family)
        else {
            return false;
        };
        let Some((at, _)) = self.dispatches(queue).find(|(_, own)| *own == thread) else { return false };
        let moved = |item: &Item<'_>| match item {
            Item::Call(Call { kind: CallKind::Transfer(transfer), .. })
                if self.covers(transfer, location) =>
            {
                Some(transfer.to == family)
            }
            _ => None,
        };
        // The last half before it, or where there is none, that the next one gives away what the family had.
        let items = self.items(queue);
        let last = items.iter().take(at).rev().find_map(moved);
        last.unwrap_or_else(|| items.iter().skip(at).find_map(moved) == Some(false))
    }

    fn derive(&self) -> Derived<Words> {
        let mut words = Words { ends: vec![Default::default(); self.test.threads.len()], ..Words::default() };
        for number in 0..self.queues.len() {
            for (at, thread) in self.dispatches(number) {
                self.head(number, at, thread, &mut words)?;
            }
            self.to_host(number, &words.sync.clone(), &mut words)?;
        }
        for call in self.calls {
            if let (CallKind::Wait(semaphore), None) = (&call.kind, self.place(call)) {
                let threads = self.awaited(call, semaphore, &mut Vec::new())?.dispatches;
                if threads.is_empty() {
                    return Err(CallError::EndlessWait {
                        semaphore: semaphore.name.clone(),
                        span: call.span,
                    });
                }
                let kind = InstructionKind::System(SystemOperation::Wait(threads));
                words.waits.push((call.thread, call.at, Instruction { kind, span: call.span }));
            }
        }
        Ok(words)
    }

    /// What comes before a dispatch, and what stands at its head.
    fn head(&self, queue: usize, at: usize, thread: ThreadId, words: &mut Words) -> Derived<()> {
        let items: Vec<Item<'_>> = self.items(queue).iter().take(at).copied().collect();
        let span = items.iter().rev().find_map(|item| match item {
            Item::Call(call) => Some(call.span),
            Item::Dispatch(_) => None,
        });
        let Some(span) = span else { return Ok(()) };
        let mut awaited = Before::default();
        for item in &items {
            if let Item::Call(call) = item
                && let CallKind::Wait(semaphore) = &call.kind
            {
                awaited.join(self.awaited(call, semaphore, &mut Vec::new())?);
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
        // What comes before another that comes before this is published on the way.
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
        // What the host wrote is moved by barriers that order no dispatch, too.
        let written = items.iter().filter_map(|item| match item {
            Item::Call(Call { kind: CallKind::Barrier { source, target }, .. })
                if source.stages.intersects(HOST)
                    && source.accesses.intersects(AccessMask::HOST_WRITE)
                    && target.stages.intersects(COMPUTE) =>
            {
                Some((published(AccessMask::HOST_WRITE), shown(*target)))
            }
            _ => None,
        });
        for (available, visible) in written {
            operations.extend(available.into_iter().chain(visible));
        }
        let whole = |thread| SyncPoint { thread, instruction: None };
        let earlier = before.iter().map(|(earlier, _)| whole(*earlier)).chain(awaited.host);
        words.sync.extend(earlier.map(|from| SystemSync { from, to: whole(thread), span }));
        if let Some((head, _)) = words.ends.get_mut(usize::from(thread.0)) {
            head.extend(operations.into_iter().map(|operation| instruction(operation, span)));
        }
        Ok(())
    }

    /// What barriers to the host publish, where they stand.
    fn to_host(&self, queue: usize, sync: &[SystemSync], words: &mut Words) -> Derived<()> {
        for (at, item) in self.items(queue).iter().enumerate() {
            let Item::Call(call) = item else { continue };
            let CallKind::Barrier { source, target } = &call.kind else { continue };
            let host = AccessMask::HOST_READ.with(AccessMask::HOST_WRITE);
            let seen = target.accesses.only(host);
            if !target.stages.intersects(HOST)
                || seen == AccessMask::NONE
                || !source.stages.intersects(COMPUTE)
            {
                continue;
            }
            let mut own = false;
            for (_, earlier) in self.dispatches(queue).take_while(|(index, _)| *index < at) {
                let comes_before =
                    |pair: &SystemSync| pair.from.thread == earlier && pair.to.thread == call.thread;
                own |= earlier == call.thread;
                let nothing = acts(self.test.thread(earlier), usize::MAX) == 0;
                if earlier != call.thread && !nothing && !sync.iter().any(comes_before) {
                    return Err(CallError::UnorderedReadback { span: call.span });
                }
            }
            let operations = published(source.accesses).into_iter().chain([SystemOperation::Visible(seen)]);
            let operations = operations.map(|operation| instruction(operation, call.span));
            if let Some((head, tail)) = words.ends.get_mut(usize::from(call.thread.0)) {
                if own { tail.extend(operations) } else { head.extend(operations) }
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

/// The availability operation of an access mask; none where it covers nothing.
fn published(mask: AccessMask) -> Option<SystemOperation> {
    (mask != AccessMask::NONE).then_some(SystemOperation::Available(mask))
}

/// The visibility operation of a target for the device; none where it covers nothing.
fn shown(target: Side) -> Option<SystemOperation> {
    let mask = target.accesses.without(AccessMask::HOST_READ.with(AccessMask::HOST_WRITE));
    (mask != AccessMask::NONE).then_some(SystemOperation::Visible(mask))
}

/// What barriers among items that follow a dispatch mean for a dispatch behind them; `None` where they do not order it.
fn between(items: &[Item<'_>]) -> Derived<Option<Between>> {
    let barriers: Vec<(Side, Side, Span)> = items
        .iter()
        .filter_map(|item| match item {
            Item::Call(Call { kind: CallKind::Barrier { source, target }, span, .. }) => {
                Some((*source, *target, *span))
            }
            _ => None,
        })
        .collect();
    // From which barriers each is reached, itself among them: a bit each, as there are no more than `MAX_CALLS`.
    let mut reached: Vec<u128> = Vec::new();
    for (at, (source, ..)) in barriers.iter().enumerate() {
        let earlier = barriers.iter().zip(&reached);
        let meets = earlier.filter(|((_, target, _), _)| target.stages.intersects(source.stages));
        reached.push(meets.fold(1 << at, |all, (_, from)| all | from));
    }
    let those = |wanted: &dyn Fn(&(Side, Side, Span)) -> bool| {
        let found = barriers.iter().enumerate().filter(|(_, barrier)| wanted(barrier));
        found.fold(0_u128, |all, (at, _)| all | 1 << at)
    };
    let starts = those(&|(source, ..)| source.stages.intersects(COMPUTE));
    let ends = those(&|(_, target, _)| target.stages.intersects(COMPUTE));
    // What leads to a barrier at which a chain ends.
    let leads = reached
        .iter()
        .enumerate()
        .filter(|(at, _)| ends & (1 << at) != 0)
        .fold(0, |all, (_, from)| all | from);
    let firsts = starts & leads;
    let on_chain: Vec<(usize, bool, bool)> = reached
        .iter()
        .enumerate()
        .map(|(at, from)| (at, firsts & (1 << at) != 0, ends & (1 << at) != 0 && from & starts != 0))
        .filter(|(_, first, last)| *first || *last)
        .collect();
    let mut between = Between::new();
    for (at, first, last) in &on_chain {
        let Some((source, target, span)) = barriers.get(*at) else { continue };
        // All of them up to here must lead to where a chain ends.
        let so_far = firsts & (u128::MAX >> (127 - at));
        if *last && reached.get(*at).is_none_or(|from| so_far & !from != 0) {
            return Err(CallError::BrokenChain { span: *span });
        }
        if *first {
            between.extend(published(source.accesses));
        }
        if *last {
            between.extend(shown(*target));
        }
    }
    Ok((!on_chain.is_empty()).then_some(between))
}
