//! Aligns lines of machine code with instructions of the test.
//!
//! Drivers print no source lines, so lines are matched by properties of both sides: an access has an
//! operation, a path to memory and, if the kernel's parameters are known, a constant address. A thread's
//! results follow its accesses. Accesses appear in program order unless the compiler moved them; a moved
//! access is still found by its address. Removed accesses have no line, and waits are between the accesses
//! that they order.

use std::collections::BTreeMap;

use litmus::{AccessKind, LocationId, MemoryPlace, Reference, StorageClass, Term, Test, ThreadId};
use shaders::ResultSlot;

use crate::form::FormKernel;
use crate::machine::{CodeAccess, CodeOperation, CodePath, Disassembly, LineKind};

/// The source of a line of machine code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LineSource {
    /// An instruction of a thread, by its index.
    Instruction(ThreadId, usize),
    /// A stored result of a thread.
    Result(ThreadId),
}

/// The sources of the lines of machine code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alignment {
    /// The source of each line; `None` for lines without an access, and for accesses of no instruction.
    pub sources: Vec<Option<LineSource>>,
    /// Sources whose line is certain.
    certain: Vec<LineSource>,
    /// Sources whose line is certain if results are written last.
    likely: Vec<LineSource>,
    /// Loads without a line, each with the earlier load whose value they return.
    merged: Vec<(LineSource, LineSource)>,
}

impl Alignment {
    /// Returns true if the line of an access is certain: one line and one access of the test match each other
    /// only.
    ///
    /// Other matches depend on program order, which compilers may change.
    pub fn is_certain(&self, source: LineSource) -> bool {
        self.certain.contains(&source)
    }

    /// Returns the earlier load of the location whose line a load without a line shares.
    pub fn merged_into(&self, source: LineSource) -> Option<LineSource> {
        self.merged.iter().find(|(load, _)| *load == source).map(|(_, earlier)| *earlier)
    }

    /// Returns true if the line is certain, or is so if a thread's results are written after its accesses, as
    /// kernels do.
    pub fn is_likely(&self, source: LineSource) -> bool {
        self.is_certain(source) || self.likely.contains(&source)
    }
}

/// An access that some line should show.
struct ExpectedAccess {
    source: LineSource,
    /// The storage that it accesses; results follow all others.
    storage: u32,
    /// The resource number in the text, if known.
    place: Option<u64>,
    operation: CodeOperation,
    path: CodePath,
    /// The constant part of the address, if known.
    offset: Option<u64>,
    found: bool,
}

/// Returns the source of each line.
pub fn align(test: &Test, unit: &FormKernel, machine: &Disassembly) -> Alignment {
    let mut expected = expected_accesses(test, unit);
    let texts: Vec<&str> = machine.lines.iter().map(|line| line.text.as_str()).collect();
    let places = (machine.dialect.places)(&texts);
    // Such text does not distinguish buffers by address and by descriptor.
    let by_address =
        !machine.dialect.constant_addresses && expected.iter().any(|one| one.path == CodePath::Address);
    if !machine.dialect.constant_addresses {
        for one in &mut expected {
            one.offset = None;
            if one.path == CodePath::Buffer {
                one.path = CodePath::Address;
            }
        }
        if !by_address {
            match_resources(&mut expected, machine, &places);
        }
    }
    let (certain, likely) =
        if by_address { (Vec::new(), Vec::new()) } else { certain_sources(&expected, machine, &places) };
    let mut current: Option<ThreadId> = None;
    let sources: Vec<Option<LineSource>> = machine
        .lines
        .iter()
        .zip(&places)
        .map(|(line, place)| match line.kind {
            LineKind::Access(access) => {
                let at = best_match(&expected, &access, *place, current)?;
                let found = expected.get_mut(at)?;
                found.found = true;
                current = Some(thread_of(found.source));
                Some(found.source)
            }
            _ => None,
        })
        .collect();
    let merged = merged_loads(test, &expected);
    Alignment { sources, certain, likely, merged }
}

/// Returns the loads without a line whose value can only be that of an earlier load with one.
///
/// The test observes the value, and its address is known. The thread loads the location before, and does not
/// write it between the two.
fn merged_loads(test: &Test, expected: &[ExpectedAccess]) -> Vec<(LineSource, LineSource)> {
    let is_known = |one: &ExpectedAccess| one.offset.is_some() || one.place.is_some();
    let same_place = |one: &ExpectedAccess, other: &ExpectedAccess| {
        (one.path, one.offset, one.place, one.storage)
            == (other.path, other.offset, other.place, other.storage)
    };
    let mut merged = Vec::new();
    for (at, one) in expected.iter().enumerate() {
        let LineSource::Instruction(thread, index) = one.source else { continue };
        if one.found || one.operation != CodeOperation::Load || !is_known(one) {
            continue;
        }
        if !is_observed(test, thread, index) {
            continue;
        }
        // Those of one thread follow each other.
        let mut earlier = expected[..at].iter().rev().filter(|other| same_place(one, other));
        if let Some(earlier) = earlier.next().filter(|other| {
            thread_of(other.source) == thread && other.operation == CodeOperation::Load && other.found
        }) {
            merged.push((one.source, earlier.source));
        }
    }
    merged
}

/// Returns true if the question is about a register that an access writes.
fn is_observed(test: &Test, thread: ThreadId, index: usize) -> bool {
    let Some(question) = &test.question else { return false };
    let instruction = test.thread(thread).instructions.get(index);
    let registers: Vec<_> = instruction.into_iter().flat_map(|one| one.kind.destinations()).collect();
    let mut is_observed = false;
    question.condition.for_each_term(&mut |term| {
        is_observed |=
            matches!(term, Term::Register(of, register) if *of == thread && registers.contains(register));
    });
    is_observed
}

/// Returns the certain sources, and those that are certain if results are written last.
fn certain_sources(
    expected: &[ExpectedAccess],
    machine: &Disassembly,
    places: &[Option<u64>],
) -> (Vec<LineSource>, Vec<LineSource>) {
    let key = |one: &ExpectedAccess| (one.operation, one.path, one.offset, one.place);
    let (mut sure, mut likely) = (Vec::new(), Vec::new());
    for one in expected {
        let lines = machine.lines.iter().zip(places);
        let shown = lines
            .filter(
                |(line, place)| matches!(line.kind, LineKind::Access(access) if may_match(one, &access, **place)),
            )
            .count();
        let others: Vec<&ExpectedAccess> =
            expected.iter().filter(|other| key(other) == key(one) && other.source != one.source).collect();
        let twice = expected.iter().filter(|other| other.source == one.source).count() > 1;
        if shown != others.len() + 1 || twice {
            continue;
        }
        if others.is_empty() {
            sure.push(one.source);
        } else if others.iter().all(|other| matches!(other.source, LineSource::Result(_))) {
            likely.push(one.source);
        }
    }
    (sure, likely)
}

/// Returns true if a line may be an access of the test.
fn may_match(one: &ExpectedAccess, access: &CodeAccess, place: Option<u64>) -> bool {
    one.operation == access.operation
        && one.path == access.path
        && one.offset.is_none_or(|offset| offset == access.offset)
        && (one.place.is_none() || one.place == place)
}

/// Maps resource numbers of the text to storages.
///
/// Both are numbered in binding order, so they match if each has the expected accesses.
fn match_resources(expected: &mut [ExpectedAccess], machine: &Disassembly, places: &[Option<u64>]) {
    let mut shown: BTreeMap<u64, Vec<CodeOperation>> = BTreeMap::new();
    for (line, place) in machine.lines.iter().zip(places) {
        let LineKind::Access(access) = line.kind else { continue };
        let Some(place) = *place else { return };
        shown.entry(place).or_default().push(access.operation);
    }
    let mut meant: BTreeMap<u32, Vec<CodeOperation>> = BTreeMap::new();
    for one in expected.iter() {
        meant.entry(one.storage).or_default().push(one.operation);
    }
    let counted = |operations: &Vec<CodeOperation>| {
        [CodeOperation::Load, CodeOperation::Store, CodeOperation::Atomic]
            .map(|one| operations.iter().filter(|operation| **operation == one).count())
    };
    // A merged load has no line.
    let fits = |(shown, meant): ([usize; 3], [usize; 3])| {
        shown[1..] == meant[1..] && shown[0] <= meant[0] && (shown[0] > 0 || meant[0] == 0)
    };
    let pairs = shown.values().map(counted).zip(meant.values().map(counted));
    if shown.len() != meant.len() || !pairs.into_iter().all(fits) {
        return;
    }
    let of_storage: BTreeMap<u32, u64> = meant.keys().copied().zip(shown.keys().copied()).collect();
    for one in expected {
        one.place = of_storage.get(&one.storage).copied();
    }
}

fn thread_of(source: LineSource) -> ThreadId {
    match source {
        LineSource::Instruction(thread, _) | LineSource::Result(thread) => thread,
    }
}

/// Returns the most likely access: of the current thread, if it has one.
fn best_match(
    expected: &[ExpectedAccess],
    access: &CodeAccess,
    place: Option<u64>,
    current: Option<ThreadId>,
) -> Option<usize> {
    let fits = |one: &ExpectedAccess| !one.found && may_match(one, access, place);
    let mut candidates = expected.iter().enumerate().filter(|(_, one)| fits(one)).map(|(index, _)| index);
    let of_thread = |index: &usize| {
        expected.get(*index).is_some_and(|one| current.is_none_or(|current| thread_of(one.source) == current))
    };
    candidates.clone().find(of_thread).or_else(|| candidates.next())
}

fn expected_accesses(test: &Test, unit: &FormKernel) -> Vec<ExpectedAccess> {
    let mut all = Vec::new();
    for thread in &unit.threads {
        for (index, instruction) in test.thread(*thread).instructions.iter().enumerate() {
            // A vector is one access, which begins with its first component.
            let Some(access) = instruction.kind.access() else { continue };
            let MemoryPlace { location, offset, class, .. } = access.place;
            let operation = match access.kind {
                AccessKind::Load(_) => CodeOperation::Load,
                AccessKind::Store(_) => CodeOperation::Store,
                AccessKind::Rmw { .. } => CodeOperation::Atomic,
                // Kernels contain no awaits.
                AccessKind::Await { .. } => continue,
            };
            let path = access_path(test, location, class);
            all.push(ExpectedAccess {
                source: LineSource::Instruction(*thread, index),
                storage: storage_number(test, location),
                place: None,
                operation,
                path,
                offset: (path == CodePath::Buffer)
                    .then(|| location_address(test, unit, location) + u64::from(offset)),
                found: false,
            });
        }
        for (number, slot) in (0..).zip(&unit.kernel.results) {
            if slot_thread(slot, unit) == Some(*thread) {
                let slot = unit.kernel.first_slot + number;
                all.push(ExpectedAccess {
                    source: LineSource::Result(*thread),
                    storage: u32::MAX,
                    place: None,
                    operation: CodeOperation::Store,
                    path: CodePath::Buffer,
                    offset: Some(4 * u64::from(unit.parameters.result_word(unit.kernel.lanes, slot, 0))),
                    found: false,
                });
            }
        }
    }
    all
}

/// Returns the thread of the test that writes a slot of the kernel.
fn slot_thread(slot: &ResultSlot, unit: &FormKernel) -> Option<ThreadId> {
    let local = slot.thread()?;
    unit.threads.get(usize::from(local.0)).copied()
}

fn access_path(test: &Test, location: LocationId, class: StorageClass) -> CodePath {
    match (class, test.location(location).reference) {
        (_, Some(Reference::Address)) => CodePath::Address,
        (StorageClass::Workgroup, _) => CodePath::Workgroup,
        (StorageClass::Image, _) => CodePath::Image,
        (StorageClass::Buffer | StorageClass::Output, _) => CodePath::Buffer,
    }
}

/// Returns the byte offset of a location in the buffer, for the instance of slot 0.
fn location_address(test: &Test, unit: &FormKernel, location: LocationId) -> u64 {
    let number = storage_number(test, location);
    4 * u64::from(unit.parameters.unit(0, number)) * u64::from(unit.kernel.storage_words)
}

/// Returns the index of a location's storage.
fn storage_number(test: &Test, location: LocationId) -> u32 {
    let mut storages: Vec<LocationId> = Vec::new();
    for number in 0..test.locations.len() {
        let storage = test.storage_of(LocationId(number as u16));
        if !storages.contains(&storage) {
            storages.push(storage);
        }
    }
    let storage = test.storage_of(location);
    storages.iter().position(|known| *known == storage).unwrap_or(0) as u32
}
