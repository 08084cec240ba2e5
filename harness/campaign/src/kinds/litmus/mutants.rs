//! Finds the mutants of each test in a plan: tests that differ only in synchronization and allow what the
//! test forbids.

use std::collections::BTreeMap;

use litmus::{Access, Instruction, InstructionKind, Prediction, Test};

use super::planned::{DeviceTest, PlannedTest};

/// Returns for each test run the ids of its mutants on the same device, in plan order.
pub fn of(items: &[PlannedTest], cells: &[DeviceTest]) -> Vec<Vec<String>> {
    let codes: Vec<Option<String>> =
        items.iter().map(|item| code_without_synchronization(&item.judged)).collect();
    let code_of = |cell: &DeviceTest| codes.get(cell.item)?.as_deref();
    let mut alike: BTreeMap<(usize, &str), Vec<usize>> = BTreeMap::new();
    for (number, cell) in cells.iter().enumerate() {
        if let Some(code) = code_of(cell) {
            alike.entry((cell.target, code)).or_default().push(number);
        }
    }
    let judged = |number: &usize| {
        let cell = cells.get(*number)?;
        let item = items.get(cell.item)?;
        Some((item, cell, allows(&item.judged, cell.ready.as_ref().ok()?)?))
    };
    let of = |cell: &DeviceTest, number: usize| {
        let group = code_of(cell).and_then(|code| alike.get(&(cell.target, code)));
        let forbids = judged(&number).is_some_and(|(.., allows)| !allows);
        let others = group.into_iter().flatten().filter(|_| forbids).filter_map(judged);
        others.filter(|(.., allows)| *allows).map(|(item, ..)| item.loaded.source.id.clone()).collect()
    };
    cells.iter().enumerate().map(|(number, cell)| of(cell, number)).collect()
}

/// Returns true if the test's outcome is allowed or the program races; `None` if unknown.
pub fn allows(test: &Test, prediction: &Prediction) -> Option<bool> {
    let question = test.question.as_ref().filter(|_| prediction.complete)?;
    let asked = prediction
        .outcomes
        .iter()
        .filter(|(outcome, _)| outcome.meets_condition(test, &prediction.observables, &question.condition));
    Some(prediction.is_undefined() || asked.clone().any(|(_, says)| says.allowed))
}

/// Formats a test without its synchronization, so that a test and its mutants compare equal. `None` without a
/// question.
fn code_without_synchronization(test: &Test) -> Option<String> {
    let question = test.question.as_ref()?;
    let line = |instruction: &Instruction| match &instruction.kind {
        InstructionKind::Fence { .. }
        | InstructionKind::ControlBarrier(_)
        | InstructionKind::SplitBarrier(_)
        | InstructionKind::System(_) => None,
        InstructionKind::Access(access) => {
            let mut access = *access;
            access.strength = Access::Private;
            Some(format!("{access:?}"))
        }
        other => Some(format!("{other:?}")),
    };
    let threads: Vec<_> = test
        .threads
        .iter()
        .map(|thread| (thread.place, thread.instructions.iter().filter_map(line).collect::<Vec<_>>()))
        .collect();
    let locations: Vec<_> =
        test.locations.iter().map(|location| (&location.name, location.scalar, &location.init)).collect();
    Some(format!("{threads:?} {locations:?} {}", question.to_text(test)))
}
