//! Validity checks of calls: semaphores, events, and queue family ownership.

use std::collections::BTreeMap;

use vocabulary::StageMask;

use super::super::{CallKind, SemaphoreValue, Transfer};
use super::{CallDerivation, Derived, MemoryDependency, ParsedCall, QueuePosition, TransferHalf, WorkItem};
use crate::error::CallError;
use crate::span::Span;
use crate::system::SystemOperation;
use crate::test::{InstructionKind, LocationId, ThreadId, ThreadPlace};

/// A step of a host thread that waits, or that other threads wait for.
enum HostCallStep<'c> {
    Signal(&'c SemaphoreValue),
    Wait(&'c SemaphoreValue, Span),
    Fence(&'c [ThreadId], Span),
    Submit(&'c [ThreadId]),
}

impl CallDerivation<'_> {
    /// Checks that each event is set once, after device stages, and awaited later on the same queue.
    pub(super) fn check_events(&self) -> Derived<()> {
        for (at, call) in self.calls.iter().enumerate() {
            let (CallKind::Set(event, _) | CallKind::Await(event)) = &call.kind else { continue };
            let (name, span) = (event.clone(), call.span);
            let is_repeated = self.calls.iter().take(at).any(|other| match (&call.kind, &other.kind) {
                (CallKind::Set(..), CallKind::Set(other, _))
                | (CallKind::Await(_), CallKind::Await(other)) => other == event,
                _ => false,
            });
            if is_repeated {
                return Err(CallError::RepeatedEvent { event: name, span });
            }
            if let CallKind::Set(_, MemoryDependency { source, target, .. }) = &call.kind
                && source.stages.with(target.stages).intersects(StageMask::HOST)
            {
                return Err(CallError::HostEvent { span });
            }
            if let CallKind::Await(_) = call.kind {
                let set = self.find_set_call(event).and_then(|(set, _)| self.queue_position(set));
                let (Some((queue, set)), Some((own, at))) = (set, self.queue_position(call)) else {
                    return Err(CallError::UnsetEvent { event: name, span });
                };
                if queue != own {
                    return Err(CallError::EventOnAnotherQueue { event: name, span });
                }
                if set > at {
                    return Err(CallError::UnsetEvent { event: name, span });
                }
            }
        }
        Ok(())
    }

    /// Runs all queues and hosts until they block, and refuses a test in which a wait never ends.
    pub(super) fn check_deadlock(&self) -> Derived<()> {
        let threads = || (0..self.test.threads.len()).map(|number| ThreadId(number as u16));
        let mut hosts: Vec<Vec<HostCallStep<'_>>> = threads().map(|thread| self.host_steps(thread)).collect();
        let mut submitted: Vec<ThreadId> =
            threads().filter(|thread| self.submissions(*thread).next().is_none()).collect();
        let mut reached = vec![0; self.queues.len()];
        let mut signalled: Vec<&SemaphoreValue> = Vec::new();
        let is_signalled = |own: &SemaphoreValue, signalled: &[&SemaphoreValue]| {
            signalled.iter().any(|signal| signal.name == own.name && signal.value >= own.value)
        };
        let mut has_progressed = true;
        while has_progressed {
            has_progressed = false;
            for (queue, reached) in reached.iter_mut().enumerate() {
                while let Some(item) = self.queue_items(queue).get(*reached) {
                    let is_blocked = match item {
                        WorkItem::Dispatch(thread) => !submitted.contains(thread),
                        WorkItem::Call(call) => {
                            call.awaited().is_some_and(|own| !is_signalled(own, &signalled))
                                || !submitted.contains(&call.thread)
                        }
                    };
                    if is_blocked {
                        break;
                    }
                    signalled.extend(item.call().and_then(ParsedCall::signalled));
                    *reached += 1;
                    has_progressed = true;
                }
            }
            for steps in &mut hosts {
                while let Some(step) = steps.first() {
                    match step {
                        HostCallStep::Signal(own) => signalled.push(own),
                        HostCallStep::Wait(own, _) if !is_signalled(own, &signalled) => break,
                        HostCallStep::Fence(named, _) if !self.have_finished(named, &reached) => break,
                        HostCallStep::Submit(named) => submitted.extend(named.iter()),
                        HostCallStep::Wait(..) | HostCallStep::Fence(..) => {}
                    }
                    steps.remove(0);
                    has_progressed = true;
                }
            }
        }
        let stuck_host = hosts.iter().find_map(|steps| match steps.first()? {
            HostCallStep::Wait(_, span) | HostCallStep::Fence(_, span) => Some(*span),
            HostCallStep::Signal(_) | HostCallStep::Submit(_) => None,
        });
        let stuck_queue =
            (0..).zip(&reached).find_map(|(queue, at)| Some(self.queue_items(queue).get(*at)?.call()?.span));
        stuck_host.or(stuck_queue).map_or(Ok(()), |span| Err(CallError::CircularWait { span }))
    }

    /// Returns true if the queues have passed all items of these threads.
    fn have_finished(&self, threads: &[ThreadId], reached: &[usize]) -> bool {
        reached.iter().enumerate().all(|(queue, reached)| {
            self.queue_items(queue).iter().skip(*reached).all(|item| !threads.contains(&item.column()))
        })
    }

    /// Returns the calls, submissions and fence waits of a host thread, in order.
    fn host_steps(&self, thread: ThreadId) -> Vec<HostCallStep<'_>> {
        let own = self.test.thread(thread);
        if own.place != ThreadPlace::Host {
            return Vec::new();
        }
        let mut steps = Vec::new();
        for at in 0..=own.instructions.len() {
            for call in self.calls.iter().filter(|call| call.thread == thread && call.at == at) {
                steps.extend(call.signalled().map(HostCallStep::Signal));
                steps.extend(call.awaited().map(|semaphore| HostCallStep::Wait(semaphore, call.span)));
            }
            let Some(instruction) = own.instructions.get(at) else { continue };
            match &instruction.kind {
                InstructionKind::System(SystemOperation::Submit(named)) => {
                    steps.push(HostCallStep::Submit(named))
                }
                InstructionKind::System(SystemOperation::Wait(named)) => {
                    steps.push(HostCallStep::Fence(named, instruction.span));
                }
                _ => {}
            }
        }
        steps
    }

    pub(super) fn check_semaphores(&self) -> Derived<()> {
        for call in self.calls {
            let Some(own) = call.semaphore() else { continue };
            let is_same_call = |other: &&ParsedCall| {
                other.semaphore().is_some_and(|other| other.name == own.name)
                    && other.awaited().is_some() == call.awaited().is_some()
            };
            let all = self.calls.iter().filter_map(ParsedCall::semaphore);
            let (semaphore, span) = (own.name.clone(), call.span);
            if all
                .filter(|other| other.name == own.name)
                .any(|other| other.value.is_some() != own.value.is_some())
            {
                return Err(CallError::MixedSemaphoreTypes { semaphore, span });
            }
            if own.value == Some(0) {
                return Err(CallError::ZeroSemaphoreValue { semaphore, span });
            }
            if own.value.is_none() && self.calls.iter().filter(is_same_call).count() > 1 {
                return Err(CallError::ReusedBinarySemaphore { semaphore, span });
            }
            if call.awaited().is_some() {
                self.wait_predecessors(call, own, &mut Vec::new())?;
            } else if let Some((queue, at)) = self.queue_position(call) {
                let before = self.queue_items(queue).iter().take(at).filter_map(WorkItem::call);
                let mut before = before.filter_map(ParsedCall::signalled);
                if before.any(|earlier| earlier.name == own.name && earlier.value >= own.value) {
                    return Err(CallError::NonIncreasingSemaphore { semaphore, span });
                }
            }
        }
        Ok(())
    }

    /// Checks transfers: both halves exist once, a semaphore orders them, and only the owner accesses the
    /// memory.
    pub(super) fn check_transfers(&self) -> Derived<()> {
        let transfers = || {
            self.calls.iter().filter_map(|call| match &call.kind {
                CallKind::Transfer(transfer) => Some((call, transfer)),
                _ => None,
            })
        };
        for (call, transfer) in transfers() {
            let Transfer { from, to, .. } = *transfer;
            let span = call.span;
            let Some((queue, at)) = self.queue_position(call) else { continue };
            let family = self.queues.get(queue).map_or(from, |queue| queue.family);
            if from == to || family != from && family != to {
                return Err(CallError::TransferInOtherFamily { span });
            }
            let halves = |side_family: u32| {
                transfers().filter(move |(other, same)| {
                    let own = self.queue_position(other).and_then(|(queue, _)| self.queues.get(queue));
                    *same == transfer && own.is_some_and(|queue| queue.family == side_family)
                })
            };
            let other = if family == from { to } else { from };
            if halves(family).count() != 1 || halves(other).count() != 1 {
                let half = if other == from { "it comes from" } else { "it goes to" };
                return Err(CallError::UnpairedTransfer { half, span });
            }
            if family == to {
                let release = halves(from).next().and_then(|(release, _)| self.queue_position(release));
                let mut before = self.queue_items(queue).iter().take(at).filter_map(WorkItem::call);
                if !release.is_some_and(|release| before.any(|wait| self.precedes_wait(release, wait))) {
                    return Err(CallError::UnorderedTransfer { span });
                }
            }
        }
        Ok(())
    }

    /// Checks that no thread accesses memory that another queue family owns.
    ///
    /// Exclusive memory without a transfer belongs to the family of the first thread that accesses it.
    pub(super) fn check_owners(&self) -> Derived<()> {
        let mut owners: BTreeMap<LocationId, u32> = BTreeMap::new();
        for (number, thread) in self.test.threads.iter().enumerate() {
            let ThreadPlace::Device(placement) = thread.place else { continue };
            for instruction in &thread.instructions {
                let InstructionKind::Access(access) = &instruction.kind else { continue };
                let (location, family) = (access.place.location, placement.queue_family);
                let storage = self.test.storage_of(location);
                let owned = if self.transfer_halves(location).next().is_some() {
                    self.owns_location(family, ThreadId(number as u16), location)
                } else {
                    let mut exclusive = self.exclusive.iter().map(|name| self.test.storage_of(*name));
                    !exclusive.any(|exclusive| exclusive == storage)
                        || *owners.entry(storage).or_insert(family) == family
                };
                if !owned {
                    let location = self.test.location(location).name.clone();
                    return Err(CallError::AccessWithoutOwnership { location, span: instruction.span });
                }
            }
        }
        Ok(())
    }

    /// Returns the transfer halves that cover a location.
    fn transfer_halves(&self, location: LocationId) -> impl Iterator<Item = TransferHalf> {
        self.calls.iter().filter_map(move |call| match &call.kind {
            CallKind::Transfer(transfer) if self.covers_location(transfer, location) => {
                Some((self.queue_position(call)?, transfer.to))
            }
            _ => None,
        })
    }

    pub(super) fn covers_location(&self, transfer: &Transfer, location: LocationId) -> bool {
        let storage = self.test.storage_of(location);
        let mut named = transfer.locations.iter();
        transfer.locations.is_empty() || named.any(|named| self.test.storage_of(*named) == storage)
    }

    /// Returns true if a position of a queue precedes every signal that may end the wait. The waits form no
    /// cycle at this point.
    pub(super) fn precedes_wait(&self, (queue, at): QueuePosition, wait: &ParsedCall) -> bool {
        let Some(awaited) = wait.awaited() else { return false };
        let key = ((queue, at), wait.span.offset);
        if let Some(cached) = self.precedence_cache.borrow().get(&key) {
            return *cached;
        }
        let signals = self.ending_signals(wait, awaited);
        let precedes_all = !signals.is_empty()
            && signals.into_iter().all(|signal| {
                let Some((own, behind)) = self.queue_position(signal) else { return false };
                let mut before = self.queue_items(own).iter().take(behind).filter_map(WorkItem::call);
                own == queue && behind > at || before.any(|call| self.precedes_wait((queue, at), call))
            });
        self.precedence_cache.borrow_mut().insert(key, precedes_all);
        precedes_all
    }

    /// Returns true if one position is known to precede another.
    pub(super) fn precedes(&self, from: QueuePosition, to: QueuePosition) -> bool {
        let mut waits = self.queue_items(to.0).iter().take(to.1).filter_map(WorkItem::call);
        from.0 == to.0 && from.1 < to.1 || waits.any(|wait| self.precedes_wait(from, wait))
    }

    /// Returns true if the queue family owns a location at the position of its thread.
    fn owns_location(&self, family: u32, thread: ThreadId, location: LocationId) -> bool {
        let place = (0..self.queues.len()).find_map(|queue| {
            let (at, _) = self.queue_dispatches(queue).find(|(_, own)| *own == thread)?;
            Some((queue, at))
        });
        let Some(position) = place else { return false };
        let of_family = |queue: usize| self.queues.get(queue).is_some_and(|queue| queue.family == family);
        let (mut last, mut first): (Option<TransferHalf>, Option<TransferHalf>) = (None, None);
        for (at, to) in self.transfer_halves(location).filter(|((queue, _), _)| of_family(*queue)) {
            if self.precedes(at, position) {
                if last.is_none_or(|(before, _)| self.precedes(before, at)) {
                    last = Some((at, to));
                }
            } else if !self.precedes(position, at) {
                return false;
            } else if first.is_none_or(|(behind, _)| self.precedes(at, behind)) {
                first = Some((at, to));
            }
        }
        // The last earlier half decides. Without one, the family owned it if the next half releases it.
        match last {
            Some((_, to)) => to == family,
            None => first.is_some_and(|(_, to)| to != family),
        }
    }
}
