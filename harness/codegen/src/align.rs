//! Which instruction of a test a line of machine code comes from.
//!
//! Drivers print no source lines, so lines are matched by what is known of both sides: an access of the machine goes to
//! some memory by some path, with a constant address where the kernel's parameters are known; so does an instruction of a
//! thread, and a thread's results follow it. A thread's accesses appear in the order of the program where the compiler
//! kept it; an access that it moved is still found, by its address. What compilers remove has no line, and waits stand
//! between the accesses that they order.

use litmus::{AccessKind, LocationId, MemoryPlace, Reference, StorageClass, Test, ThreadId};
use shaders::ResultSlot;

use crate::form::Unit;
use crate::machine::{Access, LineKind, Machine, Operation, Path};

/// What a line of machine code comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// An instruction of a thread of the test, by its index.
    Instruction(ThreadId, usize),
    /// The result of a thread that is written down.
    Result(ThreadId),
}

/// An access that some line should show.
struct Expected {
    source: Source,
    operation: Operation,
    path: Path,
    /// Constant part of the address, where it is known.
    offset: Option<u64>,
    found: bool,
}

/// What each line comes from, in the order of the lines; `None` for what is no access, and for accesses that belong to no
/// instruction.
pub fn align(test: &Test, unit: &Unit, machine: &Machine) -> Vec<Option<Source>> {
    let mut expected = expected(test, unit);
    if !machine.dialect.constant_addresses {
        for one in &mut expected {
            one.offset = None;
            if one.path == Path::Buffer {
                one.path = Path::Address;
            }
        }
    }
    let mut current: Option<ThreadId> = None;
    machine
        .lines
        .iter()
        .map(|line| match line.kind {
            LineKind::Access(access) => {
                let at = best(&expected, &access, current)?;
                let found = expected.get_mut(at)?;
                found.found = true;
                current = Some(thread_of(found.source));
                Some(found.source)
            }
            _ => None,
        })
        .collect()
}

fn thread_of(source: Source) -> ThreadId {
    match source {
        Source::Instruction(thread, _) | Source::Result(thread) => thread,
    }
}

/// The expected access that is most likely meant: of the thread at hand, if it has one.
fn best(expected: &[Expected], access: &Access, current: Option<ThreadId>) -> Option<usize> {
    let fits = |one: &Expected| {
        !one.found
            && one.operation == access.operation
            && one.path == access.path
            && one.offset.is_none_or(|offset| offset == access.offset)
    };
    let mut candidates = expected.iter().enumerate().filter(|(_, one)| fits(one)).map(|(index, _)| index);
    let of_thread = |index: &usize| {
        expected.get(*index).is_some_and(|one| current.is_none_or(|current| thread_of(one.source) == current))
    };
    candidates.clone().find(of_thread).or_else(|| candidates.next())
}

fn expected(test: &Test, unit: &Unit) -> Vec<Expected> {
    let mut all = Vec::new();
    for thread in &unit.threads {
        for (index, instruction) in test.thread(*thread).instructions.iter().enumerate() {
            // A vector is one access, which begins with its first component.
            let Some(access) = instruction.kind.access() else { continue };
            let MemoryPlace { location, offset, class, .. } = access.place;
            let operation = match access.kind {
                AccessKind::Load(_) => Operation::Load,
                AccessKind::Store(_) => Operation::Store,
                AccessKind::Rmw { .. } => Operation::Atomic,
                // No kernel holds one.
                AccessKind::Await { .. } => continue,
            };
            let path = path(test, location, class);
            all.push(Expected {
                source: Source::Instruction(*thread, index),
                operation,
                path,
                offset: (path == Path::Buffer).then(|| address(test, unit, location) + u64::from(offset)),
                found: false,
            });
        }
        for (number, slot) in (0..).zip(&unit.kernel.results) {
            if slot_thread(slot, unit) == Some(*thread) {
                let slot = unit.kernel.first_slot + number;
                all.push(Expected {
                    source: Source::Result(*thread),
                    operation: Operation::Store,
                    path: Path::Buffer,
                    offset: Some(4 * u64::from(unit.parameters.result_word(unit.kernel.lanes, slot, 0))),
                    found: false,
                });
            }
        }
    }
    all
}

/// The thread of the test that writes a slot of the kernel.
fn slot_thread(slot: &ResultSlot, unit: &Unit) -> Option<ThreadId> {
    let local = slot.thread()?;
    unit.threads.get(usize::from(local.0)).copied()
}

fn path(test: &Test, location: LocationId, class: StorageClass) -> Path {
    match (class, test.location(location).reference) {
        (_, Some(Reference::Address)) => Path::Address,
        (StorageClass::Workgroup, _) => Path::Workgroup,
        (StorageClass::Image, _) => Path::Image,
        (StorageClass::Buffer | StorageClass::Output, _) => Path::Buffer,
    }
}

/// Byte offset of a location in the buffer, for the instance of slot 0.
fn address(test: &Test, unit: &Unit, location: LocationId) -> u64 {
    let mut storages: Vec<LocationId> = Vec::new();
    for number in 0..test.locations.len() {
        let storage = test.storage_of(LocationId(number as u16));
        if !storages.contains(&storage) {
            storages.push(storage);
        }
    }
    let storage = test.storage_of(location);
    let number = storages.iter().position(|known| *known == storage).unwrap_or(0) as u32;
    4 * u64::from(unit.parameters.unit(0, number)) * u64::from(unit.kernel.storage_words)
}
