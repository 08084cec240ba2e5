//! Aligns lines of machine code with instructions of a test or a module.
//!
//! Drivers print no source lines, so lines are matched by properties of both sides: an access has an
//! operation, a path to memory and, if the kernel's parameters are known, a constant address. A thread's
//! results follow its accesses. Accesses appear in program order unless the compiler moved them; a moved
//! access is still found by its address. Removed accesses have no line, and waits are between the accesses
//! that they order.

use std::collections::BTreeMap;

use litmus::{AccessKind, LocationId, MemoryPlace, Reference, StorageClass, Term, Test, ThreadId};
use shaders::ResultSlot;

use crate::disassembly::{CodeAccess, CodeOperation, CodePath, Disassembly, LineKind};
use crate::form::FormKernel;

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
    certain_sources: Vec<LineSource>,
    /// Sources whose line is certain if results are written last.
    likely_sources: Vec<LineSource>,
    /// Loads without a line, each with the earlier load whose value they return.
    merged: Vec<(LineSource, LineSource)>,
    /// True for the code of a module, false for that of a test.
    pub(crate) is_module: bool,
    /// The lines that may be each source's.
    lines: Vec<(LineSource, Vec<usize>)>,
}

impl Alignment {
    /// Returns true if the line of an access is certain: one line and one access of the test match each other
    /// only.
    ///
    /// Other matches depend on program order, which compilers may change.
    pub fn is_certain(&self, source: LineSource) -> bool {
        self.certain_sources.contains(&source)
    }

    /// Returns the earlier load of the location whose line a load without a line shares.
    pub fn merged_into(&self, source: LineSource) -> Option<LineSource> {
        self.merged.iter().find(|(load, _)| *load == source).map(|(_, earlier)| *earlier)
    }

    /// Returns the lines that may be a source's.
    pub fn lines_of(&self, source: LineSource) -> &[usize] {
        self.lines.iter().find(|(known, _)| *known == source).map_or(&[], |(_, lines)| lines)
    }

    /// Returns true if the line is certain, or is so if a thread's results are written after its accesses, as
    /// kernels do.
    pub fn is_likely(&self, source: LineSource) -> bool {
        self.is_certain(source) || self.likely_sources.contains(&source)
    }
}

/// An access of the source, for which a line is expected.
#[derive(Clone, Debug)]
pub struct ExpectedAccess {
    source: LineSource,
    /// The storage that it accesses; results follow all others.
    storage: u32,
    /// The resource number in the text, if known.
    resource: Option<u64>,
    operation: CodeOperation,
    path: CodePath,
    /// The constant part of the address, if known.
    offset: Option<u64>,
    /// An id that is the same for equal addresses, if known.
    address: Option<u32>,
    /// The block of a module.
    block: u32,
    /// True if the value that it reads decides a result, unless its block is dead code.
    is_observed: bool,
    has_line: bool,
}

impl ExpectedAccess {
    /// Creates an access of a module: `storage` counts its variables in the order of their bindings, and
    /// `address` is the id of the pointer.
    pub fn of_module(
        source: LineSource,
        storage: u32,
        operation: CodeOperation,
        path: CodePath,
        address: u32,
    ) -> ExpectedAccess {
        ExpectedAccess { address: Some(address), ..ExpectedAccess::new(source, storage, operation, path) }
    }

    /// Adds the block, and whether a store in it writes the value that it reads.
    #[must_use]
    pub fn in_block(self, block: u32, is_observed: bool) -> ExpectedAccess {
        ExpectedAccess { block, is_observed, ..self }
    }

    fn new(source: LineSource, storage: u32, operation: CodeOperation, path: CodePath) -> ExpectedAccess {
        ExpectedAccess {
            source,
            storage,
            resource: None,
            operation,
            path,
            offset: None,
            address: None,
            block: 0,
            is_observed: false,
            has_line: false,
        }
    }
}

/// Returns the source of each line of a test's kernel.
pub fn align(test: &Test, form_kernel: &FormKernel, disassembly: &Disassembly) -> Alignment {
    align_accesses(list_expected_accesses(test, form_kernel), disassembly, false)
}

/// Returns the source of each line of a module's code.
///
/// Its addresses are unknown, so that accesses of one kind to one resource are matched by their order if the
/// code has as many of them.
pub fn align_module(accesses: Vec<ExpectedAccess>, disassembly: &Disassembly) -> Alignment {
    align_accesses(accesses, disassembly, true)
}

fn align_accesses(
    mut expected: Vec<ExpectedAccess>,
    disassembly: &Disassembly,
    is_module: bool,
) -> Alignment {
    let texts: Vec<&str> = disassembly.lines.iter().map(|line| line.text.as_str()).collect();
    let resources = disassembly.dialect.resource_numbers(&texts);
    // Such text does not distinguish buffers by address and by descriptor.
    let has_addresses = !disassembly.dialect.has_constant_addresses
        && expected.iter().any(|one| one.path == CodePath::Address);
    if !disassembly.dialect.has_constant_addresses {
        for one in &mut expected {
            one.offset = None;
            if one.path == CodePath::Buffer {
                one.path = CodePath::Address;
            }
        }
    }
    if !has_addresses && (is_module || !disassembly.dialect.has_constant_addresses) {
        match_resources(&mut expected, disassembly, &resources, is_module);
    }
    let (certain, likely) = if has_addresses {
        (Vec::new(), Vec::new())
    } else {
        find_certain_sources(&expected, disassembly, &resources, is_module)
    };
    let lines: Vec<(LineSource, Vec<usize>)> = (expected.iter())
        .map(|one| (one.source, matching_lines(one, disassembly, &resources).collect()))
        .collect();
    let mut current: Option<ThreadId> = None;
    // A module has many resources, and a line of another one is not that of an access.
    let has_claim = |one: &ExpectedAccess| {
        !is_module || one.resource.is_some() || certain.contains(&one.source) || likely.contains(&one.source)
    };
    let sources: Vec<Option<LineSource>> = disassembly
        .lines
        .iter()
        .zip(&resources)
        .map(|(line, resource)| match line.kind {
            LineKind::Access(access) => {
                let index = find_best_match(&expected, &access, *resource, current)?;
                let matched = expected.get_mut(index).filter(|one| has_claim(one))?;
                matched.has_line = true;
                current = Some(thread_of(matched.source));
                Some(matched.source)
            }
            _ => None,
        })
        .collect();
    let merged = find_merged_loads(&expected, &certain, is_module);
    Alignment { sources, certain_sources: certain, likely_sources: likely, merged, is_module, lines }
}

/// Returns the loads without a line whose value can only be that of an earlier load with one.
///
/// The value is observed, and its address is known. The thread loads the location before, and does not write
/// it between the two.
fn find_merged_loads(
    expected: &[ExpectedAccess],
    certain: &[LineSource],
    is_module: bool,
) -> Vec<(LineSource, LineSource)> {
    let has_known_address = |one: &ExpectedAccess| one.offset.is_some() || one.resource.is_some();
    let same_place = |one: &ExpectedAccess, other: &ExpectedAccess| {
        (one.path, one.offset, one.resource, one.storage, one.address)
            == (other.path, other.offset, other.resource, other.storage, other.address)
    };
    let mut merged = Vec::new();
    for (position, one) in expected.iter().enumerate() {
        let LineSource::Instruction(thread, _) = one.source else { continue };
        if one.has_line || one.operation != CodeOperation::Load || !has_known_address(one) {
            continue;
        }
        // With several addresses, a line may be a wider load.
        let is_other_address = |other: &ExpectedAccess| {
            (other.path, other.resource) == (one.path, one.resource) && other.address != one.address
        };
        // A certain line shows that the compiler did not remove the block.
        let is_in_block =
            |other: &ExpectedAccess| other.block == one.block && certain.contains(&other.source);
        let is_executed = !is_module || expected.iter().any(is_in_block);
        if !one.is_observed || !is_executed || expected.iter().any(is_other_address) {
            continue;
        }
        // Those of one thread follow each other.
        let mut earlier = expected[..position].iter().rev().filter(|other| same_place(one, other));
        if let Some(earlier) = earlier.next().filter(|other| {
            thread_of(other.source) == thread && other.operation == CodeOperation::Load && other.has_line
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
fn find_certain_sources(
    expected: &[ExpectedAccess],
    disassembly: &Disassembly,
    resources: &[Option<u64>],
    is_module: bool,
) -> (Vec<LineSource>, Vec<LineSource>) {
    let key = |one: &ExpectedAccess| (one.operation, one.path, one.offset, one.resource);
    let (mut certain, mut likely) = (Vec::new(), Vec::new());
    for one in expected {
        let line_count = matching_lines(one, disassembly, resources).count();
        let same_key: Vec<&ExpectedAccess> =
            expected.iter().filter(|other| key(other) == key(one) && other.source != one.source).collect();
        let is_repeated = expected.iter().filter(|other| other.source == one.source).count() > 1;
        if line_count != same_key.len() + 1 || is_repeated {
            continue;
        }
        if same_key.is_empty() {
            certain.push(one.source);
        } else if same_key.iter().all(|other| match is_module {
            true => one.resource.is_some() || other.storage == one.storage,
            false => matches!(other.source, LineSource::Result(_)),
        }) {
            likely.push(one.source);
        }
    }
    (certain, likely)
}

/// Returns the lines that may be an access.
fn matching_lines<'a>(
    one: &'a ExpectedAccess,
    disassembly: &'a Disassembly,
    resources: &'a [Option<u64>],
) -> impl Iterator<Item = usize> + 'a {
    let lines = disassembly.lines.iter().zip(resources).enumerate();
    lines.filter_map(|(at, (line, resource))| {
        matches!(line.kind, LineKind::Access(access) if may_match(one, &access, *resource)).then_some(at)
    })
}

/// Returns true if a line may be an access of the source.
fn may_match(one: &ExpectedAccess, access: &CodeAccess, resource: Option<u64>) -> bool {
    one.operation == access.operation
        && one.path == access.path
        && one.offset.is_none_or(|offset| offset == access.offset)
        && (one.resource.is_none() || one.resource == resource)
}

/// Maps resource numbers of the text to storages.
///
/// Both are numbered in binding order, so they match if each has the expected accesses. Compilers repeat the
/// accesses of a module in unrolled loops, so there only their kinds count.
fn match_resources(
    expected: &mut [ExpectedAccess],
    disassembly: &Disassembly,
    resources: &[Option<u64>],
    is_module: bool,
) {
    let mut operations_by_resource: BTreeMap<u64, Vec<CodeOperation>> = BTreeMap::new();
    // Workgroup memory has no number, nor have the images of some dialects.
    let mut unnumbered = vec![CodePath::Workgroup];
    let lines = || disassembly.lines.iter().zip(resources);
    let is_image = |kind| matches!(kind, LineKind::Access(CodeAccess { path: CodePath::Image, .. }));
    if is_module && lines().any(|(line, resource)| is_image(line.kind) && resource.is_none()) {
        unnumbered.push(CodePath::Image);
    }
    for (line, resource) in lines() {
        let LineKind::Access(access) = line.kind else { continue };
        if unnumbered.contains(&access.path) {
            continue;
        }
        let Some(place) = *resource else { return };
        operations_by_resource.entry(place).or_default().push(access.operation);
    }
    let mut operations_by_storage: BTreeMap<u32, Vec<CodeOperation>> = BTreeMap::new();
    for one in expected.iter().filter(|one| !unnumbered.contains(&one.path)) {
        operations_by_storage.entry(one.storage).or_default().push(one.operation);
    }
    let count_operations = |operations: &Vec<CodeOperation>| {
        [CodeOperation::Load, CodeOperation::Store, CodeOperation::Atomic]
            .map(|one| operations.iter().filter(|operation| **operation == one).count())
            .map(|count| if is_module { count.min(1) } else { count })
    };
    // A merged load has no line.
    let is_compatible = |(shown, meant): ([usize; 3], [usize; 3])| {
        shown[1..] == meant[1..] && shown[0] <= meant[0] && (shown[0] > 0 || meant[0] == 0)
    };
    let pairs = operations_by_resource
        .values()
        .map(count_operations)
        .zip(operations_by_storage.values().map(count_operations));
    if operations_by_resource.len() != operations_by_storage.len() || !pairs.into_iter().all(is_compatible) {
        return;
    }
    let resource_of_storage: BTreeMap<u32, u64> =
        operations_by_storage.keys().copied().zip(operations_by_resource.keys().copied()).collect();
    for one in expected.iter_mut().filter(|one| !unnumbered.contains(&one.path)) {
        one.resource = resource_of_storage.get(&one.storage).copied();
    }
}

fn thread_of(source: LineSource) -> ThreadId {
    match source {
        LineSource::Instruction(thread, _) | LineSource::Result(thread) => thread,
    }
}

/// Returns the most likely access: of the current thread, if it has one.
fn find_best_match(
    expected: &[ExpectedAccess],
    access: &CodeAccess,
    resource: Option<u64>,
    current: Option<ThreadId>,
) -> Option<usize> {
    let is_compatible = |one: &ExpectedAccess| !one.has_line && may_match(one, access, resource);
    let mut candidates =
        expected.iter().enumerate().filter(|(_, one)| is_compatible(one)).map(|(index, _)| index);
    let is_in_current_thread = |index: &usize| {
        expected.get(*index).is_some_and(|one| current.is_none_or(|current| thread_of(one.source) == current))
    };
    candidates.clone().find(is_in_current_thread).or_else(|| candidates.next())
}

fn list_expected_accesses(test: &Test, form_kernel: &FormKernel) -> Vec<ExpectedAccess> {
    let mut all = Vec::new();
    for thread in &form_kernel.threads {
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
            let (source, storage) = (LineSource::Instruction(*thread, index), storage_number(test, location));
            all.push(ExpectedAccess {
                offset: (path == CodePath::Buffer)
                    .then(|| location_address(test, form_kernel, location) + u64::from(offset)),
                is_observed: is_observed(test, *thread, index),
                ..ExpectedAccess::new(source, storage, operation, path)
            });
        }
        for (number, slot) in (0..).zip(&form_kernel.kernel.results) {
            if slot_thread(slot, form_kernel) == Some(*thread) {
                let (slot, lanes) = (form_kernel.kernel.first_slot + number, form_kernel.kernel.lanes);
                let (source, storage) = (LineSource::Result(*thread), u32::MAX);
                all.push(ExpectedAccess {
                    offset: Some(4 * u64::from(form_kernel.parameters.result_word(lanes, slot, 0))),
                    ..ExpectedAccess::new(source, storage, CodeOperation::Store, CodePath::Buffer)
                });
            }
        }
    }
    all
}

/// Returns the thread of the test that writes a slot of the kernel.
fn slot_thread(slot: &ResultSlot, form_kernel: &FormKernel) -> Option<ThreadId> {
    let local_thread = slot.thread()?;
    form_kernel.threads.get(usize::from(local_thread.0)).copied()
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
fn location_address(test: &Test, form_kernel: &FormKernel, location: LocationId) -> u64 {
    let number = storage_number(test, location);
    4 * u64::from(form_kernel.parameters.unit_index(0, number)) * u64::from(form_kernel.kernel.storage_words)
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
