//! Finds the mutants of each test in a plan: tests that differ only in synchronization and allow what the
//! test forbids.

use std::collections::BTreeMap;

use litmus::{Access, Instruction, InstructionKind, Prediction, Test};

use super::planned::{DeviceTest, PlannedTest};

/// A test on a device with its prediction.
#[derive(Clone, Copy, Debug)]
pub struct MutantCandidate<'a, D> {
    pub device: D,
    /// The judged program.
    pub test: &'a Test,
    pub prediction: &'a Prediction,
}

/// Returns for each test run the ids of its mutants on the same device, in plan order.
pub fn find_mutants(items: &[PlannedTest], cells: &[DeviceTest]) -> Vec<Vec<String>> {
    let candidates: Vec<_> = (cells.iter())
        .map(|cell| {
            // Forms of a mutant add nothing.
            let item = items.get(cell.test_index).filter(|item| item.variant.shader.form.is_none())?;
            let (test, prediction) = (item.judged_test(), cell.known_prediction()?);
            Some(MutantCandidate { device: cell.target_index, test, prediction })
        })
        .collect();
    let id = |number: usize| Some(items.get(cells.get(number)?.test_index)?.loaded.source.id.clone());
    find_mutants_among(&candidates)
        .into_iter()
        .map(|mutants| mutants.into_iter().filter_map(id).collect())
        .collect()
}

/// Returns for each candidate the indices of its mutants on the same device.
pub fn find_mutants_among<D: Copy + Ord>(candidates: &[Option<MutantCandidate<'_, D>>]) -> Vec<Vec<usize>> {
    let mut groups: BTreeMap<(D, String), Vec<(usize, bool)>> = BTreeMap::new();
    let mut keys = Vec::with_capacity(candidates.len());
    for (number, candidate) in candidates.iter().enumerate() {
        let key = candidate.and_then(|MutantCandidate { device, test, prediction }| {
            let is_allowed = is_condition_allowed(test, prediction)?;
            Some(((device, code_without_synchronization(test)?), is_allowed))
        });
        if let Some((key, is_allowed)) = &key {
            groups.entry(key.clone()).or_default().push((number, *is_allowed));
        }
        keys.push(key);
    }
    let mutants_of = |key: Option<((D, String), bool)>| {
        let group = key.filter(|(_, allows)| !allows).and_then(|(key, _)| groups.get(&key));
        group.into_iter().flatten().filter(|(_, allows)| *allows).map(|(number, _)| *number).collect()
    };
    keys.into_iter().map(mutants_of).collect()
}

/// Returns true if the test's outcome is allowed or the program races; `None` if unknown.
pub fn is_condition_allowed(test: &Test, prediction: &Prediction) -> Option<bool> {
    let question = test.question.as_ref().filter(|_| prediction.complete)?;
    let matching = prediction
        .outcomes
        .iter()
        .filter(|(outcome, _)| outcome.meets_condition(test, &prediction.observables, &question.condition));
    Some(prediction.is_undefined() || matching.clone().any(|(_, predicted)| predicted.allowed))
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
