//! Twins of tests, which measure whether a device could have shown a violation.
//!
//! One twin removes control barriers, split barriers and interlocked sections; the other adds reads before
//! and after its threads.

use litmus::{
    Access, AccessKind, Dialect, Instruction, InstructionKind, Location, LocationId, LocationInit,
    MemoryAccess, MemoryPlace, Operand, Register, RegisterId, RegisterInit, ScalarType, Scope, Semantics,
    Span, StorageClass, SyncPoint, SystemSync, Test, ThreadId, ThreadPlace,
};

/// Returns a test without its control barriers and split barriers; `None` if it has none. Interlocked
/// sections become empty and move to the start, so that fragments still overlap without order between their
/// accesses.
///
/// The verdict of the twin does not matter, and it may race. If a device shows outcomes of the twin that the
/// barrier forbids, the barrier had an effect. A system-synchronizes-with pair that refers to a barrier is
/// removed too.
pub fn without_control_barriers(test: &Test) -> Option<Test> {
    let is_barrier = |kind: &InstructionKind| {
        matches!(
            kind,
            InstructionKind::ControlBarrier(_)
                | InstructionKind::SplitBarrier(_)
                | InstructionKind::Interlock(_)
        )
    };
    let mut twin = test.clone();
    // For each thread, the new index of each remaining instruction.
    let mut moved: Vec<Vec<Option<u16>>> = Vec::with_capacity(test.threads.len());
    for thread in &mut twin.threads {
        let is_section = |kind: &InstructionKind| matches!(kind, InstructionKind::Interlock(_));
        let sections = thread.instructions.iter().filter(|instruction| is_section(&instruction.kind));
        let sections: Vec<Instruction> = sections.cloned().collect();
        // The sections are moved to the front, so that all others come after them.
        let mut next = sections.len() as u16;
        let mut new_index = |kind: &InstructionKind| {
            let index = (!is_barrier(kind)).then_some(next);
            next += u16::from(index.is_some());
            index
        };
        moved.push(thread.instructions.iter().map(|instruction| new_index(&instruction.kind)).collect());
        thread.instructions.retain(|instruction| !is_barrier(&instruction.kind));
        thread.instructions.splice(0..0, sections);
    }
    // No instruction was removed or moved.
    if moved.iter().flatten().all(Option::is_some) {
        return None;
    }
    let point = |point: SyncPoint| {
        let Some(old) = point.instruction else { return Some(point) };
        let new = moved.get(usize::from(point.thread.0))?.get(usize::from(old)).copied()??;
        Some(SyncPoint { instruction: Some(new), ..point })
    };
    twin.system_sync = test
        .system_sync
        .iter()
        .filter_map(|pair| Some(SystemSync { from: point(pair.from)?, to: point(pair.to)?, ..*pair }))
        .collect();
    Some(twin)
}

/// The maximum number of threads with early reads.
const READERS: usize = 2;

/// Returns the twin of a test whose outcomes do not show whether its threads overlapped.
///
/// In up to two threads, it reads a location that an unordered thread writes, before and after all other
/// instructions. A write between the two reads happened while the thread ran. So an outcome that no serial
/// order of whole threads produces shows that threads overlapped. If no write of other threads can be noticed,
/// they write locations that only the twin has, after their other instructions.
///
/// The reads use their own references, so that a compiler cannot merge them with those of the test. Only the
/// twin has them, so that they do not affect the test. Calls of the API stay at the start and the end of a
/// thread. `None` if no thread is unordered with a writer, an order applies to part of a thread, or the
/// dialect lacks such reads.
pub fn with_early_reads(test: &Test) -> Option<Test> {
    let refers_to_instruction = |pair: &SystemSync| pair.from.instruction.or(pair.to.instruction).is_some();
    if test.dialect != Dialect::Vulkan || test.system_sync.iter().any(refers_to_instruction) {
        return None;
    }
    let mut twin = test.clone();
    // Only registers show overlap.
    twin.question = None;
    twin.listed_terms.clear();
    twin.filter = None;
    let mut readers = 0;
    let unordered = test.unordered_pairs();
    // Threads with reads come first: the reads of such a thread may fall between the writes of others.
    let reads = |thread: &usize| {
        let read = |kind: &InstructionKind| kind.access().is_some_and(litmus::MemoryAccess::is_read);
        let instructions = test.threads.get(*thread).map(|thread| thread.instructions.as_slice());
        instructions.unwrap_or_default().iter().any(|instruction| read(&instruction.kind))
    };
    let mut order: Vec<usize> = (0..test.threads.len()).collect();
    order.sort_by_key(|thread| !reads(thread));
    let written: Vec<_> =
        order.iter().map(|thread| location_written_by_others(test, &unordered, *thread)).collect();
    let uses_markers = written.iter().all(Option::is_none);
    for (thread, written) in order.into_iter().zip(written) {
        if readers == READERS {
            break;
        }
        let target = if uses_markers { add_marker_write(&mut twin, &unordered, thread) } else { written };
        let Some((location, class)) = target else { continue };
        let references =
            ["early", "late"].map(|when| add_alias(&mut twin, location, &format!("{when}{thread}")));
        let Some(twin_thread) = twin.threads.get_mut(thread) else { continue };
        // A host thread needs the cross-device scope.
        let scope =
            if twin_thread.place == ThreadPlace::Host { Scope::CrossDevice } else { Scope::QueueFamily };
        let [early, late] = references.map(|reference| {
            let register = RegisterId(u16::try_from(twin_thread.registers.len()).unwrap_or(u16::MAX));
            let taken = |name: &String| twin_thread.registers.iter().any(|register| register.name == *name);
            let name = (0..).map(|number| format!("r{number}")).find(|name| !taken(name)).unwrap_or_default();
            twin_thread.registers.push(Register { name, init: RegisterInit::Constant(0), declared: false });
            relaxed_load(register, reference, class, scope)
        });
        let (head, end) = range_between_calls(&twin_thread.instructions);
        twin_thread.instructions.insert(end, late);
        twin_thread.instructions.insert(head, early);
        readers += 1;
    }
    twin.copy_calls_from(test);
    (readers > 0).then_some(twin)
}

/// Returns the range of instructions between the leading and the trailing calls of the API, which stay at
/// their position.
pub(crate) fn range_between_calls(instructions: &[Instruction]) -> (usize, usize) {
    let is_call = |instruction: &&Instruction| match &instruction.kind {
        InstructionKind::System(operation) => !operation.is_host_operation(),
        _ => false,
    };
    let head = instructions.iter().take_while(is_call).count();
    let tail = instructions.iter().skip(head).rev().take_while(is_call).count();
    (head, instructions.len() - tail)
}

/// Returns a location that an unordered thread visibly writes, with its storage class; preferably one that this
/// thread does not write.
fn location_written_by_others(
    test: &Test,
    unordered: &[(ThreadId, ThreadId)],
    thread: usize,
) -> Option<(LocationId, StorageClass)> {
    let threads = |wanted: &dyn Fn(usize) -> bool| -> Vec<&litmus::Thread> {
        let threads = test.threads.iter().enumerate().filter(|(index, _)| wanted(*index));
        threads.map(|(_, thread)| thread).collect()
    };
    let place = |access: &MemoryAccess| (test.storage_of(access.place.location), access.place.class);
    let own = threads(&|index| index == thread);
    let own = own.iter().flat_map(|thread| &thread.instructions).filter_map(|one| one.kind.access());
    let own: Vec<_> = own.filter(|access| access.is_write()).map(place).collect();
    let others = threads(&|index| are_unordered(unordered, thread, index));
    let others = others.into_iter().flat_map(unconditional_accesses);
    let others: Vec<_> = others.filter(|access| changes_initial_value(test, access)).map(place).collect();
    let is_own = |location: LocationId| own.iter().any(|(known, _)| *known == location);
    // Preferably one that only others write.
    others.iter().find(|(location, _)| !is_own(*location)).or(others.first()).copied()
}

/// Returns the accesses that no branch skips.
fn unconditional_accesses(thread: &litmus::Thread) -> impl Iterator<Item = &MemoryAccess> {
    let straight = |one: &&Instruction| !matches!(one.kind, InstructionKind::Flow(_));
    thread.instructions.iter().take_while(straight).filter_map(|one| one.kind.access())
}

fn are_unordered(unordered: &[(ThreadId, ThreadId)], one: usize, other: usize) -> bool {
    let pair = [one.min(other), one.max(other)];
    unordered.iter().any(|(left, right)| [usize::from(left.0), usize::from(right.0)] == pair)
}

/// Returns true if an access changes the initial value of its location, which an atomic load of 32 bits or more
/// can read.
fn changes_initial_value(test: &Test, access: &MemoryAccess) -> bool {
    let location = test.location(test.storage_of(access.place.location));
    let initial = match location.init {
        LocationInit::Constant(value) => Some(value),
        _ => None,
    };
    let new = |value: Operand| match (value, initial) {
        (Operand::Constant(value), Some(initial)) => value != initial,
        (Operand::Constant(_), None) => true,
        (Operand::Register(_), _) => false,
    };
    location.bytes() >= 4
        && match &access.kind {
            AccessKind::Store(values) => new(values.first()),
            AccessKind::Rmw { .. } => true,
            AccessKind::Load(_) | AccessKind::Await { .. } => false,
        }
}

/// Adds a location that one device thread, unordered with `thread`, writes at its end; `None` if the thread has
/// no such partner, or runs on the host.
fn add_marker_write(
    twin: &mut Test,
    unordered: &[(ThreadId, ThreadId)],
    thread: usize,
) -> Option<(LocationId, StorageClass)> {
    let on_device = |twin: &Test, index: usize| {
        twin.threads.get(index).is_some_and(|thread| thread.place.device_placement().is_some())
    };
    let partner = |index: &usize| are_unordered(unordered, thread, *index) && on_device(twin, *index);
    let writer = (0..twin.threads.len()).filter(|_| on_device(twin, thread)).find(partner)?;
    let marker_location = LocationId(u16::try_from(twin.locations.len()).ok()?);
    twin.locations.push(Location::new(format!("mark{thread}")));
    let place = MemoryPlace::whole_location(marker_location, StorageClass::Buffer);
    let access = Access::Atomic { scope: Scope::QueueFamily, semantics: Semantics::default() };
    let kind = InstructionKind::store(place, Operand::Constant(1), access);
    let instructions = &mut twin.threads.get_mut(writer)?.instructions;
    let (_, end) = range_between_calls(instructions);
    instructions.insert(end, Instruction { kind, span: Span::default() });
    Some((marker_location, StorageClass::Buffer))
}

/// Adds a reference to a location.
fn add_alias(test: &mut Test, location: LocationId, name: &str) -> LocationId {
    let number = LocationId(u16::try_from(test.locations.len()).unwrap_or(u16::MAX));
    let original = test.location(location);
    // An early read loads one number: the first of a vector, or its first word if its components are too
    // narrow for atomics.
    let narrow = original.is_vector() && original.scalar_type().bytes() < 4 && original.bytes() >= 4;
    let alias = Location {
        name: format!("{}_{name}", original.name),
        init: LocationInit::AliasOf(location),
        scalar: if narrow { Some(ScalarType::U32) } else { original.scalar },
        components: 1,
        declared: true,
        ..original.clone()
    };
    test.locations.push(alias);
    number
}

pub(crate) fn relaxed_load(
    destination: RegisterId,
    location: LocationId,
    class: StorageClass,
    scope: Scope,
) -> Instruction {
    let access = Access::Atomic { scope, semantics: Semantics::default() };
    let kind = InstructionKind::load(destination, MemoryPlace::whole_location(location, class), access);
    Instruction { kind, span: Span::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn corpus_test(id: &str) -> Test {
        let entry = litmus::corpus::tests().into_iter().find(|entry| entry.id == id).unwrap();
        litmus::parse(entry.text, id).unwrap()
    }

    /// The tests of `tests/twins.txt` have the twins there. `VK_LITMUS_BLESS=1` writes them; review the diff.
    #[test]
    fn twins_have_their_texts() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/twins.txt");
        let known = std::fs::read_to_string(&path).unwrap();
        let mut found = String::new();
        for id in known.lines().filter_map(|line| line.strip_prefix("=== ")) {
            let test = Test { metadata: litmus::Metadata::default(), ..corpus_test(id) };
            found += &format!("=== {id}\n");
            let twins = [("barriers", without_control_barriers(&test)), ("reads", with_early_reads(&test))];
            for (name, twin) in twins {
                let text = twin.map_or_else(|| "none".to_owned(), |twin| litmus::print(&twin));
                let printed = litmus::parse(&text, id).map(|twin| twin.observables().len());
                assert!(
                    text == "none" || printed.is_ok_and(|count| count >= test.observables().len()),
                    "{text}"
                );
                found += &format!("--- {name}\n{}\n", text.trim_end());
            }
        }
        if std::env::var_os("VK_LITMUS_BLESS").is_some() {
            return std::fs::write(path, found).unwrap();
        }
        assert_eq!(found, known);
    }

    /// Fragments of one pixel whose accesses are outside of their sections may overlap, and calls stay.
    #[test]
    fn threads_of_twins_overlap() {
        let twin = without_control_barriers(&corpus_test("interlock/MP+interlock.qf")).unwrap();
        assert_eq!(twin.thread_overlap(), litmus::Overlap::Possible);
        let test = corpus_test("families/MP+signal.behind");
        assert_eq!(test.thread_overlap(), litmus::Overlap::Possible);
        let twin = with_early_reads(&test).unwrap();
        assert!(twin.schedule().is_some() && twin.schedule() == test.schedule());
    }

    #[test]
    fn synchronization_follows_its_instructions() {
        let mut test = corpus_test("barrier/MP+cbar");
        let barrier = test.threads[0]
            .instructions
            .iter()
            .position(|instruction| matches!(instruction.kind, InstructionKind::ControlBarrier(_)))
            .unwrap() as u16;
        let mut after = test.threads[0].instructions[0].clone();
        after.span = litmus::Span::default();
        test.threads[0].instructions.push(after);
        let last = test.threads[0].instructions.len() as u16 - 1;
        let point = |instruction| SyncPoint { thread: ThreadId(0), instruction };
        let whole = SyncPoint { thread: ThreadId(1), instruction: None };
        let pair = |from| SystemSync { from, to: whole, span: litmus::Span::default() };
        test.system_sync = vec![pair(point(Some(barrier))), pair(point(Some(last))), pair(point(None))];
        let twin = without_control_barriers(&test).unwrap();
        assert_eq!(twin.system_sync, [pair(point(Some(last - 1))), pair(point(None))]);
    }
}
