//! Guard words of tests with host threads: they show that host-visible memory changed by itself.
//!
//! Host threads access mapped memory while kernels run, so that no copy of it can be verified meanwhile. A
//! driver that changes such memory or loses writes to it can look like a weak memory order. The test
//! therefore runs with additional locations in the same memory, between its own:
//!
//! - Static guards hold small numbers, as tests do, and no thread writes them.
//! - Each device thread ends by copying a static guard to a guard of its own, and each host thread does so
//!   before each call and at its end. A lost write leaves the initial value, and a value that was wrong only
//!   meanwhile arrives in the copy.
//!
//! After the submission the device computes checksums over all guards, whose values are known. If one differs,
//! the dispatch is discarded and nothing in the run proves a violation. Sound in one direction: memory order cannot
//! change a guard. Corruption that avoids every guard of every dispatch is not found. Guards follow the test's
//! accesses in each thread, so that they add no instruction between them.

use std::collections::BTreeSet;

use litmus::{
    Access, AccessKind, Dialect, Instruction, InstructionKind, Location, LocationId, LocationInit,
    MemoryPlace, Operand, Register, RegisterId, RegisterInit, Scope, Semantics, Span, StorageClass,
    SyncPoint, SystemSync, Test, Thread, ThreadPlace,
};
use plan::Capabilities;
use shaders::Program;

use crate::readback::LocationWord;
use crate::twin::{range_between_calls, relaxed_load};

/// The values of the static guards. Threads copy the first one; copies start at 0.
const STATIC_GUARDS: [u32; 3] = [1, 0, 2];

/// A test with guards.
#[derive(Clone, Debug)]
pub(crate) struct GuardedTest {
    pub test: Test,
    /// The first word of each guard, and its final value.
    pub words: Vec<(LocationWord, u32)>,
}

impl GuardedTest {
    /// Adds guards to a test with host threads; `None` without host memory, and on the simulated GPU, whose
    /// memory the host reads directly.
    pub fn new(test: &Test, capabilities: &Capabilities) -> Option<GuardedTest> {
        let is_host = |thread: &Thread| thread.place == ThreadPlace::Host;
        let mapped = test.locations.iter().find(|location| location.host)?;
        let is_testable = test.dialect == Dialect::Vulkan && test.threads.iter().any(is_host);
        if !is_testable || capabilities.shares_choices {
            return None;
        }
        let storages: BTreeSet<LocationId> =
            (0..test.locations.len()).map(|location| test.storage_of(LocationId(location as u16))).collect();
        let mut guarded = GuardedTest { test: test.clone(), words: Vec::new() };
        let first_storage = storages.len();
        let mut add_guard = |locations: &mut Vec<Location>, initial: u32, last: u32| {
            let id = LocationId(locations.len() as u16);
            let word = LocationWord { storage: (first_storage + guarded.words.len()) as u32, word: 0 };
            locations.push(Location {
                name: format!("guard{}", guarded.words.len()),
                scalar: None,
                components: 1,
                init: LocationInit::Constant(initial.into()),
                ..mapped.clone()
            });
            guarded.words.push((word, last));
            id
        };
        let Test { locations, threads, .. } = &mut guarded.test;
        let statics = STATIC_GUARDS.map(|value| add_guard(locations, value, value));
        let mut inserted: Vec<Vec<usize>> = Vec::with_capacity(threads.len());
        for thread in threads {
            let places = guard_places(thread);
            // From the end, so that earlier places stay valid.
            for place in places.iter().rev() {
                let copy = add_guard(locations, 0, STATIC_GUARDS[0]);
                thread
                    .instructions
                    .splice(place..place, copy_guard(&mut thread.registers, statics[0], copy, &thread.place));
            }
            inserted.push(places);
        }
        let moved = |point: SyncPoint| {
            let places = inserted.get(usize::from(point.thread.0)).map_or(&[][..], Vec::as_slice);
            let shift =
                |at: u16| at + 2 * places.iter().filter(|place| **place <= usize::from(at)).count() as u16;
            SyncPoint { instruction: point.instruction.map(shift), ..point }
        };
        let pairs = test.system_sync.iter();
        guarded.test.system_sync =
            pairs.map(|pair| SystemSync { from: moved(pair.from), to: moved(pair.to), ..*pair }).collect();
        guarded.test.copy_calls_from(test);
        Some(guarded)
    }

    /// Returns the guards of a program made from `test`; `None` if it was compiled without.
    pub fn of_program(test: &Test, program: &Program, capabilities: &Capabilities) -> Option<GuardedTest> {
        let has_guards = |guarded: &GuardedTest| {
            let last = guarded.words.last();
            last.is_some_and(|(word, _)| word.storage + 1 == program.storages)
        };
        program.hosts.as_ref().and_then(|_| GuardedTest::new(test, capabilities)).filter(has_guards)
    }
}

/// Returns the positions of a thread at which it copies a guard, in order.
fn guard_places(thread: &Thread) -> Vec<usize> {
    let is_access = |instruction: &Instruction| instruction.kind.access().is_some();
    let (head, end) = range_between_calls(&thread.instructions);
    let own = thread.instructions.get(head..end).unwrap_or_default();
    if thread.place != ThreadPlace::Host {
        // A loop that reaches its bound skips the rest of the thread.
        let may_end_early = own.iter().any(|instruction| {
            let is_await = |access: &litmus::MemoryAccess| matches!(access.kind, AccessKind::Await { .. });
            matches!(instruction.kind, InstructionKind::Flow(_))
                || instruction.kind.access().is_some_and(is_await)
        });
        return if own.iter().any(is_access) {
            vec![if may_end_early { head } else { end }]
        } else {
            Vec::new()
        };
    }
    let is_call = |instruction: &Instruction| match &instruction.kind {
        InstructionKind::System(operation) => !operation.is_host_operation(),
        _ => false,
    };
    let ends = (0..thread.instructions.len()).filter(|at| thread.instructions.get(*at).is_some_and(is_call));
    let mut start = 0;
    let ends = ends.chain([thread.instructions.len()]).filter(|end| {
        let own = thread.instructions.get(start..*end).unwrap_or_default();
        start = *end;
        own.iter().any(is_access)
    });
    ends.collect()
}

/// Returns the instructions that copy one guard to another.
fn copy_guard(
    registers: &mut Vec<Register>,
    from: LocationId,
    to: LocationId,
    place: &ThreadPlace,
) -> [Instruction; 2] {
    let register = RegisterId(registers.len() as u16);
    let name = format!("guard{}", registers.len());
    registers.push(Register { name, init: RegisterInit::Constant(0), declared: false });
    let scope = if *place == ThreadPlace::Host { Scope::CrossDevice } else { Scope::QueueFamily };
    let access = Access::Atomic { scope, semantics: Semantics::default() };
    let target = MemoryPlace::whole_location(to, StorageClass::Buffer);
    let kind = InstructionKind::store(target, Operand::Register(register), access);
    [relaxed_load(register, from, StorageClass::Buffer, scope), Instruction { kind, span: Span::default() }]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Test {
        litmus::syntax::parse(text, "T").unwrap()
    }

    /// The host copies a guard before its call and at its end, the device after its accesses; calls and
    /// synchronization stay at their instructions.
    #[test]
    fn every_thread_copies_a_guard() {
        let late = include_str!("../../../litmus/corpus/families/Late+barrier.litmus");
        let wait = include_str!("../../../litmus/corpus/host/Readback+wait.litmus");
        for (text, copies) in [(late, vec![1, 1]), (wait, vec![1, 1])] {
            let test = parse(text);
            let guarded = GuardedTest::new(&test, &Capabilities::default()).unwrap();
            let added: Vec<usize> = guarded
                .test
                .threads
                .iter()
                .zip(&test.threads)
                .map(|(guarded, plain)| (guarded.instructions.len() - plain.instructions.len()) / 2)
                .collect();
            assert_eq!(added, copies);
            assert_eq!(guarded.words.len(), STATIC_GUARDS.len() + copies.iter().sum::<usize>());
            assert_eq!(guarded.test.schedule().is_some(), test.schedule().is_some());
            let kind = |test: &Test, point: SyncPoint| {
                point
                    .instruction
                    .map(|at| test.thread(point.thread).instructions[usize::from(at)].kind.clone())
            };
            for (new, old) in guarded.test.system_sync.iter().zip(&test.system_sync) {
                assert_eq!(kind(&guarded.test, new.from), kind(&test, old.from));
                assert_eq!(kind(&guarded.test, new.to), kind(&test, old.to));
            }
        }
    }
}
