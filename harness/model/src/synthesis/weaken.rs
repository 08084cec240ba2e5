//! Single weakening steps of a test's synchronization.
//!
//! Minimality of a test is defined by these steps: a narrower scope, one semantics fewer, a weaker order, a
//! plain instead of an atomic access, or the removal of a barrier or a system synchronization. Placement,
//! storage classes, values and guards stay unchanged. All instances of one control barrier change together,
//! because they are one instruction in a shader.

#![deny(clippy::wildcard_enum_match_arm)]

use litmus::test::lattice::StrengthChange;
use litmus::{
    Access, AccessKind, AccessMask, ControlBarrier, Dialect, InstructionKind, Interlock, InterlockEnd,
    Keyword, MemoryAccess, Order, RmwOperation, SystemOperation, Test,
};

/// A test after one weakening step, with a description of the step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WeakenedTest {
    /// The thread, the instruction from 0, and the change: `P0.0: scope wg`.
    pub step: String,
    pub test: Test,
}

/// Every step down from a test.
pub fn weaken_test(test: &Test) -> Vec<WeakenedTest> {
    let mut found = Vec::new();
    let mut barriers: Vec<&str> = Vec::new();
    for (thread, column) in test.threads.iter().enumerate() {
        for (index, instruction) in column.instructions.iter().enumerate() {
            let position = format!("P{}.{index}", column.number);
            if let InstructionKind::ControlBarrier(barrier) = &instruction.kind {
                if !barriers.contains(&barrier.id.as_str()) {
                    barriers.push(&barrier.id);
                    found.extend(weaken_barrier(test, barrier, &position));
                }
                continue;
            }
            if let InstructionKind::Interlock(Interlock { end: InterlockEnd::Begin, section, .. }) =
                &instruction.kind
                && !has_instruction_sync(test, thread)
            {
                found.push(WeakenedTest {
                    step: format!("{position}: no section"),
                    test: without_section(test, thread, section),
                });
            }
            for (change, replacement) in weaker_forms(&instruction.kind, test.dialect) {
                if let Some(weaker) = replace_instruction(test, thread, index, replacement) {
                    found.push(WeakenedTest { step: format!("{position}: {change}"), test: weaker });
                }
            }
        }
    }
    for index in 0..test.system_sync.len() {
        let mut weaker = test.clone();
        let pair = weaker.system_sync.remove(index);
        let number = |point: litmus::SyncPoint| test.thread(point.thread).number;
        let step = format!("no ssw P{} P{}", number(pair.from), number(pair.to));
        found.push(WeakenedTest { step, test: weaker });
    }
    found
}

/// Replaces one instruction; `None` if a system synchronization refers to an instruction whose number would
/// change.
pub(super) fn replace_instruction(
    test: &Test,
    thread: usize,
    index: usize,
    replacement: Vec<InstructionKind>,
) -> Option<Test> {
    if replacement.len() != 1 && has_instruction_sync(test, thread) {
        return None;
    }
    let mut changed = test.clone();
    let column = changed.threads.get_mut(thread)?;
    let span = column.instructions.get(index)?.span;
    let by = replacement.into_iter().map(|kind| litmus::Instruction { kind, span });
    column.instructions.splice(index..=index, by);
    Some(changed)
}

/// The test without the ends of an interlocked section in a thread.
fn without_section(test: &Test, thread: usize, section: &str) -> Test {
    let mut weaker = test.clone();
    if let Some(column) = weaker.threads.get_mut(thread) {
        column.instructions.retain(
            |instruction| !matches!(&instruction.kind, InstructionKind::Interlock(end) if end.section == section),
        );
    }
    weaker
}

fn has_instruction_sync(test: &Test, thread: usize) -> bool {
    test.system_sync
        .iter()
        .flat_map(|pair| [pair.from, pair.to])
        .any(|point| usize::from(point.thread.0) == thread && point.instruction.is_some())
}

/// The same change of all instances of a control barrier.
fn weaken_barrier(test: &Test, barrier: &ControlBarrier, position: &str) -> Vec<WeakenedTest> {
    let mut found = Vec::new();
    let mut change = |what: &str, weaken: &dyn Fn(&mut ControlBarrier)| {
        let mut weaker = test.clone();
        // The barrier changes in all participating threads.
        for instruction in weaker.threads.iter_mut().flat_map(|thread| &mut thread.instructions) {
            if let InstructionKind::ControlBarrier(other) = &mut instruction.kind
                && other.id == barrier.id
            {
                weaken(other);
            }
        }
        found.push(WeakenedTest { step: format!("{position}: {what}"), test: weaker });
    };
    for (changed, weaker) in InstructionKind::ControlBarrier(barrier.clone()).weaker_forms(test.dialect) {
        let Some(InstructionKind::ControlBarrier(weaker)) = weaker else { continue };
        change(&describe_change(changed), &|other| {
            (other.memory_scope, other.semantics) = (weaker.memory_scope, weaker.semantics);
        });
    }
    if !(0..test.threads.len()).any(|thread| has_instruction_sync(test, thread)) {
        let mut weaker = test.clone();
        for thread in &mut weaker.threads {
            thread.instructions.retain(|instruction| {
                !matches!(&instruction.kind, InstructionKind::ControlBarrier(other) if other.id == barrier.id)
            });
        }
        found.push(WeakenedTest { step: format!("{position}: no barrier"), test: weaker });
    }
    found
}

/// Returns the weaker forms of one instruction, each as its replacement.
fn weaker_forms(kind: &InstructionKind, dialect: Dialect) -> Vec<(String, Vec<InstructionKind>)> {
    let weaker = kind.weaker_forms(dialect).into_iter();
    let mut found: Vec<(String, Vec<InstructionKind>)> =
        weaker.map(|(change, weaker)| (describe_change(change), weaker.into_iter().collect())).collect();
    // Control barriers and interlocked sections are removed as a whole; the threads and their other
    // operations stay.
    if let InstructionKind::Access(access) = kind {
        found.extend(split_rmw(access).map(|parts| ("load and store".to_owned(), parts)));
    }
    if let InstructionKind::System(operation) = kind {
        let weaker = weaker_operations(operation).into_iter();
        found.extend(
            weaker.map(|(what, rest)| (what, rest.map(InstructionKind::System).into_iter().collect())),
        );
    }
    found
}

/// Returns the description of a step.
fn describe_change(change: StrengthChange) -> String {
    match change {
        StrengthChange::Scope(scope) => format!("scope {}", scope.keyword()),
        StrengthChange::Order(order) => litmus::order_keyword(order).unwrap_or("relaxed").to_owned(),
        StrengthChange::RemovedClass(class) => format!("no semsc{}", class.index()),
        StrengthChange::AllClasses => "storage classes".to_owned(),
        StrengthChange::MakeAvailable => "no semav".to_owned(),
        StrengthChange::MakeVisible => "no semvis".to_owned(),
        StrengthChange::UnequalSemantics => "unequal case".to_owned(),
        StrengthChange::Private => "private".to_owned(),
        StrengthChange::NonPrivate => "nonpriv".to_owned(),
        StrengthChange::Coherent => "plain".to_owned(),
        StrengthChange::Atomic => "atomic".to_owned(),
    }
}

/// The weaker forms of an operation of the API; the last one is none.
fn weaker_operations(operation: &SystemOperation) -> Vec<(String, Option<SystemOperation>)> {
    let without = |mask: AccessMask, form: fn(AccessMask) -> SystemOperation| {
        let fewer = |single: AccessMask| {
            let word: String = single.names().collect();
            (format!("no {word}"), Some(form(mask.without(single))))
        };
        let singles: Vec<AccessMask> =
            AccessMask::single_accesses().filter(|single| mask.intersects(*single)).collect();
        if singles.len() > 1 { singles.into_iter().map(fewer).collect() } else { Vec::new() }
    };
    let mut found = match operation {
        SystemOperation::Available(mask) => without(*mask, SystemOperation::Available),
        SystemOperation::Visible(mask) => without(*mask, SystemOperation::Visible),
        SystemOperation::AvailableToDevice
        | SystemOperation::VisibleFromDevice
        | SystemOperation::Flush(_)
        | SystemOperation::Invalidate(_) => Vec::new(),
        // Without them, threads would not run, or their readers would not wait for them.
        SystemOperation::Submit(_) | SystemOperation::Wait(_) => return Vec::new(),
    };
    found.push((format!("no {}", operation.keyword()), None));
    found
}

/// Splits a read-modify-write into a load and a store, if the written value does not depend on the read.
fn split_rmw(access: &MemoryAccess) -> Option<Vec<InstructionKind>> {
    let AccessKind::Rmw { destination: Some(destination), operation: RmwOperation::Exchange(value) } =
        access.kind
    else {
        return None;
    };
    let Access::Atomic { scope, semantics } = access.strength else { return None };
    let half = |order: Order| Access::Atomic { scope, semantics: semantics.with_order(order) };
    let read = if semantics.order.acquires() { Order::Acquire } else { Order::Relaxed };
    let write = if semantics.order.releases() { Order::Release } else { Order::Relaxed };
    let (load, store) = (half(read), half(write));
    Some(vec![
        InstructionKind::load(destination, access.place, load),
        InstructionKind::store(access.place, value, store),
    ])
}
