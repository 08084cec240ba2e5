//! Memory dependencies of the API between the phases of a program: from the operations of a test to recorded
//! masks.
//!
//! An operation of the API comes before or after all memory accesses of its thread. The former is recorded
//! before the thread's phase, the latter before the next phase. All operations recorded at one point form one
//! dependency with the union of their masks. So a device makes at least the test's memory available and
//! visible. If the test names accesses, it makes no more either, or the test is refused: such a test checks
//! what the masks exclude.

use litmus::{AccessMask, Instruction, InstructionKind, SyncPoint, SystemOperation, Test, Thread, ThreadId};

use crate::rules::Rule;

/// The dependency before a phase: earlier work has finished, and memory is available and visible as given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Dependency {
    /// Earlier writes with these accesses are made available to the device.
    pub available: AccessMask,
    /// Available memory is made visible to later accesses of these kinds.
    pub visible: AccessMask,
}

/// The dependencies between the phases of a test.
#[derive(Clone, Debug)]
pub(crate) struct Dependencies {
    /// The dependency before each phase; empty for the first.
    pub(crate) before: Vec<Dependency>,
    /// True if dependencies of all memory would be equivalent.
    pub(crate) all_memory: bool,
}

/// Half of a memory dependency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DependencyHalf {
    Available,
    Visible,
}

#[derive(Clone, Copy, Debug)]
struct ApiOperation {
    half: DependencyHalf,
    mask: AccessMask,
    thread: usize,
    position: usize,
    /// True if it comes before all memory accesses of its thread.
    is_leading: bool,
    /// The phase that it is recorded before, which need not exist.
    boundary: usize,
}

/// Returns the half of a memory dependency and its mask; all accesses of kernels if the instruction names
/// none.
fn dependency_half(kind: &InstructionKind) -> Option<(DependencyHalf, AccessMask)> {
    match kind {
        InstructionKind::System(SystemOperation::AvailableToDevice) => {
            Some((DependencyHalf::Available, AccessMask::SHADER_WRITE))
        }
        InstructionKind::System(SystemOperation::VisibleFromDevice) => {
            Some((DependencyHalf::Visible, AccessMask::SHADER_READ))
        }
        InstructionKind::System(SystemOperation::Available(mask)) => Some((DependencyHalf::Available, *mask)),
        InstructionKind::System(SystemOperation::Visible(mask)) => Some((DependencyHalf::Visible, *mask)),
        _ => None,
    }
}

/// Returns true if the instruction is half of a memory dependency of the API.
pub(crate) fn is_dependency_half(kind: &InstructionKind) -> bool {
    dependency_half(kind).is_some()
}

/// Returns true if it names its accesses.
fn names_accesses(kind: &InstructionKind) -> bool {
    matches!(kind, InstructionKind::System(SystemOperation::Available(_) | SystemOperation::Visible(_)))
}

/// Returns true if the instruction accesses memory other than through the API.
fn is_memory_operation(instruction: &Instruction) -> bool {
    instruction.kind.is_event() && !matches!(instruction.kind, InstructionKind::System(_))
}

/// Returns the operations of a thread in a phase, in order.
fn api_operations(thread: usize, code: &Thread, phase: usize) -> Result<Vec<ApiOperation>, Rule> {
    let mut operations = Vec::new();
    for (position, instruction) in code.instructions.iter().enumerate() {
        let Some((half, mask)) = dependency_half(&instruction.kind) else { continue };
        let (before, after) = code.instructions.split_at(position);
        let leads = after.iter().any(is_memory_operation);
        if leads && before.iter().any(is_memory_operation) {
            return Err(match half {
                DependencyHalf::Available => Rule::AvailabilityWithinThread,
                DependencyHalf::Visible => Rule::VisibilityWithinThread,
            });
        }
        let boundary = if leads { phase } else { phase + 1 };
        operations.push(ApiOperation { half, mask, thread, position, is_leading: leads, boundary });
    }
    Ok(operations)
}

/// Returns the storages that a thread reads or writes.
fn accessed_storages(test: &Test, thread: usize, writes: bool) -> Vec<usize> {
    let Some(thread) = test.threads.get(thread) else { return Vec::new() };
    let accesses = thread.instructions.iter().filter_map(|instruction| instruction.kind.access());
    let accessed = accesses.filter(|access| if writes { access.is_write() } else { access.is_read() });
    accessed.map(|access| usize::from(test.storage_of(access.place.location).0)).collect()
}

/// For each pair of threads, true if the closure of system-synchronizes-with orders them.
fn thread_order(test: &Test) -> Vec<Vec<bool>> {
    let count = test.threads.len();
    let mut before = vec![vec![false; count]; count];
    for pair in &test.system_sync {
        let (from, to) = (usize::from(pair.from.thread.0), usize::from(pair.to.thread.0));
        if let Some(cell) = before.get_mut(from).and_then(|row| row.get_mut(to)) {
            *cell = true;
        }
    }
    for middle in 0..count {
        let through = before.get(middle).cloned().unwrap_or_default();
        for row in &mut before {
            if row.get(middle).copied().unwrap_or(false) {
                row.iter_mut().zip(&through).for_each(|(cell, further)| *cell |= *further);
            }
        }
    }
    before
}

/// The kinds of later accesses that are synchronized: a write if the earlier write is available, a read if it
/// is also visible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SynchronizedAccesses {
    write: bool,
    read: bool,
}

impl SynchronizedAccesses {
    /// By the operations that make writes available and the pairs of those with ones that make them visible.
    fn from_operations(
        operations: &[ApiOperation],
        first: impl Fn(&ApiOperation) -> bool,
        last: impl Fn(&ApiOperation) -> bool,
        chain: impl Fn(&ApiOperation, &ApiOperation) -> bool,
    ) -> SynchronizedAccesses {
        let available: Vec<&ApiOperation> = operations
            .iter()
            .filter(|operation| {
                operation.half == DependencyHalf::Available && operation.mask.covers_access(false, true)
            })
            .filter(|operation| first(operation))
            .collect();
        let mut visible = operations
            .iter()
            .filter(|operation| {
                operation.half == DependencyHalf::Visible && operation.mask.covers_access(false, false)
            })
            .filter(|operation| last(operation));
        SynchronizedAccesses {
            write: available.iter().any(|operation| last(operation)),
            read: visible.any(|to| available.iter().any(|from| chain(from, to))),
        }
    }
}

/// Returns the dependencies before and after a batch of threads that a host thread submits.
///
/// # Errors
/// As for [`phase_dependencies`]; in a batch of several threads, none may name accesses: masks apply to all
/// threads.
pub(crate) fn batch_dependencies(
    test: &Test,
    threads: &[ThreadId],
) -> Result<(Dependency, Dependency), Rule> {
    let mut operations = Vec::new();
    for id in threads {
        operations.extend(api_operations(usize::from(id.0), test.thread(*id), 0)?);
    }
    Rule::MaskCoversOtherThreads.when(threads.len() > 1 && !operations.is_empty())?;
    let of = |leads: bool| {
        let masks = |half: DependencyHalf| {
            let own = operations.iter().filter(|own| own.half == half && own.is_leading == leads);
            own.fold(AccessMask::NONE, |all, own| all.with(own.mask))
        };
        Dependency { available: masks(DependencyHalf::Available), visible: masks(DependencyHalf::Visible) }
    };
    Ok((of(true), of(false)))
}

/// Returns the dependencies between the phases of a test.
///
/// # Errors
/// If the API cannot record an operation at its position, or if a device would make more memory available or
/// visible than a test with named accesses allows.
pub(crate) fn phase_dependencies(test: &Test, phases: &[Vec<ThreadId>]) -> Result<Dependencies, Rule> {
    let mut phase_of = vec![0; test.threads.len()];
    for (number, threads) in phases.iter().enumerate() {
        for thread in threads {
            if let Some(phase) = phase_of.get_mut(usize::from(thread.0)) {
                *phase = number;
            }
        }
    }
    let mut operations = Vec::new();
    for (thread, (code, phase)) in test.threads.iter().zip(&phase_of).enumerate() {
        operations.extend(api_operations(thread, code, *phase)?);
    }
    let instructions = || test.threads.iter().flat_map(|thread| &thread.instructions);
    let exactly = instructions().any(|instruction| names_accesses(&instruction.kind));
    let order = thread_order(test);
    let is_before =
        |from: usize, to: usize| order.get(from).and_then(|row| row.get(to)).copied().unwrap_or(false);
    // Pairs may name instructions: an operation is after a thread if a pair with that operation or with its whole
    // thread begins there or after it, and before a thread likewise.
    let covers = |point: &SyncPoint, own: &ApiOperation| {
        usize::from(point.thread.0) == own.thread
            && point.instruction.is_none_or(|at| usize::from(at) == own.position)
    };
    let is_after = |own: &ApiOperation, thread: usize| {
        let mut pairs = test.system_sync.iter().filter(|pair| covers(&pair.to, own));
        pairs.any(|pair| {
            usize::from(pair.from.thread.0) == thread || is_before(thread, pair.from.thread.0.into())
        })
    };
    let leads_to = |own: &ApiOperation, thread: usize| {
        let mut pairs = test.system_sync.iter().filter(|pair| covers(&pair.from, own));
        pairs
            .any(|pair| usize::from(pair.to.thread.0) == thread || is_before(pair.to.thread.0.into(), thread))
    };
    let mut all_memory = true;
    for (earlier, from) in phase_of.iter().enumerate() {
        let written = accessed_storages(test, earlier, true);
        for (later, to) in phase_of.iter().enumerate().filter(|(_, to)| from < to) {
            let shared = |writes| {
                accessed_storages(test, later, writes).iter().any(|storage| written.contains(storage))
            };
            let (writes, reads) = (shared(true), shared(false));
            let required = SynchronizedAccesses::from_operations(
                &operations,
                |own| (own.thread == earlier && !own.is_leading) || is_after(own, earlier),
                |own| (own.thread == later && own.is_leading) || leads_to(own, later),
                |own, other| {
                    (own.thread == other.thread && own.position < other.position)
                        || leads_to(own, other.thread) && is_after(other, own.thread)
                },
            );
            let recorded = SynchronizedAccesses::from_operations(
                &operations,
                |own| *from < own.boundary && own.boundary <= *to,
                |own| own.boundary <= *to,
                |own, other| own.boundary <= other.boundary,
            );
            let differs =
                (writes && required.write != recorded.write) || (reads && required.read != recorded.read);
            Rule::MaskCoversOtherThreads.when(exactly && differs)?;
            all_memory &= (!writes || recorded.write) && (!reads || recorded.read);
        }
    }
    let before =
        (0..phases.len()).map(|phase| dependency_before(test, &operations, &phase_of, phase)).collect();
    Ok(Dependencies { before, all_memory })
}

/// Returns the dependency before a phase. A write needs no visibility, but the API has no other way to order
/// it after another write.
fn dependency_before(
    test: &Test,
    operations: &[ApiOperation],
    phase_of: &[usize],
    phase: usize,
) -> Dependency {
    if phase == 0 {
        return Dependency::default();
    }
    let masks = |half: DependencyHalf| {
        let own = operations.iter().filter(|own| own.half == half && own.boundary == phase);
        own.fold(AccessMask::NONE, |all, own| all.with(own.mask))
    };
    let dependency =
        Dependency { available: masks(DependencyHalf::Available), visible: masks(DependencyHalf::Visible) };
    let available = operations.iter().any(|own| {
        own.half == DependencyHalf::Available && own.boundary <= phase && own.mask.covers_access(false, true)
    });
    let writes = phase_of
        .iter()
        .enumerate()
        .any(|(thread, own)| *own == phase && !accessed_storages(test, thread, true).is_empty());
    if available && writes && !dependency.visible.covers_access(false, true) {
        return Dependency { visible: dependency.visible.with(AccessMask::SHADER_WRITE), ..dependency };
    }
    dependency
}
