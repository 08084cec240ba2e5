//! Threads of the host: what of a test they do, and which batches of commands they submit and wait for.
//!
//! Threads of the device that one `submit` names are a batch. Those that no thread of the host submits are submitted before
//! the threads of the host begin; where system-synchronizes-with puts an instruction of the host before one of them, it is
//! a batch of its own, which waits until the host signals it.

#![deny(clippy::wildcard_enum_match_arm)]

use litmus::{
    AccessKind, Flow, Instruction, InstructionKind, Place, ScalarType, StorageClass, SystemOperation, Test,
    ThreadId,
};

use crate::dependency::Dependency;
use crate::rules::{Rule, label_position};

/// The threads of the host of a program.
#[derive(Clone, Debug)]
pub struct Hosts {
    /// The threads.
    pub threads: Vec<HostThread>,
    /// By phase of the program, which is a batch then: how it is begun.
    pub starts: Vec<Start>,
    /// By phase: what stands behind it.
    pub after: Vec<Dependency>,
    /// Whether their memory is not coherent.
    pub noncoherent: bool,
}

/// A thread of the host.
#[derive(Clone, Debug)]
pub struct HostThread {
    /// Which one.
    pub thread: ThreadId,
    /// What it does, in order.
    pub acts: Vec<Act>,
}

/// What a thread of the host does once, or once for each instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// These of its instructions.
    Each(std::ops::Range<usize>),
    /// Submits a batch.
    Submit(u32),
    /// Waits for the end of a batch.
    Wait(u32),
    /// Lets a batch go on that waits for it.
    Signal(u32),
}

/// How a batch is begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// A thread of the host submits it.
    Submitted,
    /// Before the threads of the host begin.
    Early,
    /// Before they begin; it waits for a signal.
    Held,
}

/// The batches of a test, by their threads, and the threads of the host. What stands behind the batches is left open.
pub(crate) fn plan(test: &Test) -> Result<(Vec<Vec<ThreadId>>, Hosts), Rule> {
    let is_host = |id: ThreadId| test.thread(id).place == Place::Host;
    let ids = || (0..test.threads.len()).map(|number| ThreadId(number as u16));
    let mut batches: Vec<(Start, Vec<ThreadId>)> = Vec::new();
    let instructions = |id: ThreadId| &test.thread(id).instructions;
    for id in ids().filter(|id| is_host(*id)) {
        for instruction in instructions(id) {
            if let InstructionKind::System(SystemOperation::Submit(threads)) = &instruction.kind {
                batches.push((Start::Submitted, threads.clone()));
            }
        }
    }
    let mut signals = Vec::new();
    for pair in &test.system_sync {
        let (from, to) = (pair.from.thread, pair.to.thread);
        let begun = batches.iter().any(|(_, threads)| threads.contains(&to));
        let leads = pair.to.instruction.is_none_or(|at| {
            !instructions(to).iter().take(at.into()).any(|instruction| instruction.kind.is_event())
        });
        if !is_host(from) || is_host(to) || begun || !leads {
            return Err(Rule::HostSynchronization);
        }
        signals.push((from, pair.from.instruction.map(usize::from), batches.len() as u32));
        batches.push((Start::Held, vec![to]));
    }
    let rest: Vec<ThreadId> = ids()
        .filter(|id| !is_host(*id) && !batches.iter().any(|(_, threads)| threads.contains(id)))
        .collect();
    if !rest.is_empty() {
        batches.push((Start::Early, rest));
    }
    let mut named: Vec<ThreadId> = batches.iter().flat_map(|(_, threads)| threads.iter().copied()).collect();
    named.sort_unstable();
    if named.windows(2).any(|pair| pair.first() == pair.last()) {
        return Err(Rule::SynchronizedWithItself);
    }
    let mut threads = Vec::new();
    let mut submitted = 0;
    for id in ids().filter(|id| is_host(*id)) {
        let own: Vec<(Option<usize>, u32)> =
            signals.iter().filter(|(from, ..)| *from == id).map(|(_, at, batch)| (*at, *batch)).collect();
        threads.push(HostThread { thread: id, acts: acts(test, id, &batches, &own, &mut submitted)? });
    }
    let starts: Vec<Start> = batches.iter().map(|(start, _)| *start).collect();
    // What is held keeps back all that its queue is given later.
    let calls = |act: &Act| matches!(act, Act::Submit(_) | Act::Wait(_));
    if starts.contains(&Start::Held) && threads.iter().flat_map(|thread| &thread.acts).any(calls) {
        return Err(Rule::HostSynchronization);
    }
    check_ends(&threads, &starts)?;
    let hosts = Hosts { threads, after: Vec::new(), noncoherent: memory(test)?, starts };
    Ok((batches.into_iter().map(|(_, threads)| threads).collect(), hosts))
}

/// Whether the memory of the threads of the host is not coherent.
fn memory(test: &Test) -> Result<bool, Rule> {
    let host = || test.locations.iter().filter(|location| location.host);
    let noncoherent = host().filter(|location| location.noncoherent).count();
    // An alias is declared by its name alone; the memory behind it decides.
    let stored = |coherent: bool| {
        let mut homes =
            (0..test.locations.len()).map(|number| test.storage_of(litmus::LocationId(number as u16)));
        homes.any(|home| test.location(home).host && test.location(home).noncoherent != coherent)
    };
    if stored(true) && stored(false) {
        return Err(Rule::HostMemoryOfTwoKinds);
    }
    Ok(noncoherent > 0)
}

/// What a thread does, in order.
#[expect(clippy::wildcard_enum_match_arm, reason = "`check` refuses what a host cannot do")]
fn acts(
    test: &Test,
    id: ThreadId,
    batches: &[(Start, Vec<ThreadId>)],
    signals: &[(Option<usize>, u32)],
    submitted: &mut u32,
) -> Result<Vec<Act>, Rule> {
    let thread = test.thread(id);
    let mut acts = Vec::new();
    let mut first = 0;
    let mut close = |acts: &mut Vec<Act>, end: usize, next: usize| {
        if first < end {
            acts.push(Act::Each(first..end));
        }
        first = next;
    };
    for (at, instruction) in thread.instructions.iter().enumerate() {
        match &instruction.kind {
            InstructionKind::System(SystemOperation::Submit(_)) => {
                close(&mut acts, at, at + 1);
                acts.push(Act::Submit(*submitted));
                *submitted += 1;
            }
            InstructionKind::System(SystemOperation::Wait(threads)) => {
                close(&mut acts, at, at + 1);
                let mut left = threads.clone();
                for (number, (_, all)) in (0..).zip(batches) {
                    if all.iter().any(|thread| threads.contains(thread)) {
                        if !all.iter().all(|thread| threads.contains(thread)) {
                            return Err(Rule::PartOfSubmission);
                        }
                        left.retain(|thread| !all.contains(thread));
                        acts.push(Act::Wait(number));
                    }
                }
                if !left.is_empty() {
                    return Err(Rule::EndlessWait);
                }
            }
            _ => check(test, instruction)?,
        }
        for (_, batch) in signals.iter().filter(|(after, _)| *after == Some(at)) {
            close(&mut acts, at + 1, at + 1);
            acts.push(Act::Signal(*batch));
        }
    }
    close(&mut acts, thread.instructions.len(), 0);
    acts.extend(signals.iter().filter(|(after, _)| after.is_none()).map(|(_, batch)| Act::Signal(*batch)));
    for range in acts.iter().filter_map(|act| if let Act::Each(range) = act { Some(range) } else { None }) {
        let jumps = thread.instructions.iter().enumerate().skip(range.start).take(range.len());
        for (at, instruction) in jumps {
            if let InstructionKind::Flow(Flow::Goto(target) | Flow::Branch { target, .. }) = &instruction.kind
            {
                let to = label_position(thread, *target);
                if !to.is_some_and(|to| at < to && range.contains(&to)) {
                    return Err(Rule::HostBranch);
                }
            }
        }
    }
    Ok(acts)
}

/// What a thread of the host can do to the memory of an instance.
#[expect(clippy::wildcard_enum_match_arm, reason = "what is not listed is refused")]
fn check(test: &Test, instruction: &Instruction) -> Result<(), Rule> {
    match &instruction.kind {
        InstructionKind::Access(access) => {
            let location = test.location(access.place.location);
            let word = matches!(location.scalar_type(), ScalarType::U32 | ScalarType::I32);
            if !word || location.is_vector() || access.place.offset > 0 || access.place.scalar.is_some() {
                return Err(Rule::HostType);
            }
            if access.place.class != StorageClass::Buffer {
                return Err(Rule::HostElsewhere);
            }
            match access.kind {
                AccessKind::Load(_) | AccessKind::Store(_) => Ok(()),
                AccessKind::Rmw { .. } | AccessKind::Await { .. } => Err(Rule::HostReadModifyWrite),
            }
        }
        InstructionKind::Compute(_) => Err(Rule::HostComputation),
        InstructionKind::Flow(Flow::BranchIf { .. }) => Err(Rule::Hsa),
        InstructionKind::Fence { .. }
        | InstructionKind::Flow(Flow::Label(_) | Flow::Goto(_) | Flow::Branch { .. })
        | InstructionKind::System(_) => Ok(()),
        _ => Err(Rule::HostThread),
    }
}

/// Whether all threads come to their ends: nobody waits for what only comes behind a wait.
fn check_ends(threads: &[HostThread], starts: &[Start]) -> Result<(), Rule> {
    let mut begun: Vec<bool> = starts.iter().map(|start| *start == Start::Early).collect();
    let mut at = vec![0; threads.len()];
    loop {
        let mut moved = false;
        for (thread, at) in threads.iter().zip(&mut at) {
            while let Some(act) = thread.acts.get(*at) {
                match act {
                    Act::Wait(batch) if !begun.get(*batch as usize).copied().unwrap_or(false) => break,
                    Act::Submit(batch) | Act::Signal(batch) => {
                        if let Some(begun) = begun.get_mut(*batch as usize) {
                            *begun = true;
                        }
                    }
                    Act::Wait(_) | Act::Each(_) => {}
                }
                (*at, moved) = (*at + 1, true);
            }
        }
        if threads.iter().zip(&at).all(|(thread, at)| *at == thread.acts.len()) {
            return Ok(());
        }
        if !moved {
            return Err(Rule::EndlessWait);
        }
    }
}
