//! Minimizes a race to a small litmus test.
//!
//! Only the two racing invocations are lifted. Then instructions are removed one at a time while the model
//! still reports the race ([`remove_chunks`]).

use std::collections::{BTreeMap, BTreeSet};

use litmus::minimize::remove_chunks;
use litmus::{Access, Flow, Instruction, InstructionKind, LocationId, LocationInit, Race, Test};
use model::{Budget, Model};
use spirv_reader::SpirvModule;

use entry_point::{AnalysisOptions, FindingKind};
use symbolic::{ModelQuery, answer_with_model, lift};
use walk::GridFinding;

/// Model steps for one candidate.
const TRIAL_STEPS: u64 = 5_000;
/// Upper bound on the candidates.
const MAX_TRIALS: usize = 2_000;

/// Returns a small litmus test that races on the same accesses.
///
/// Returns `None` if the race needs other invocations, or if the kernel cannot be lifted.
pub fn minimize_race(
    module: &SpirvModule,
    options: &AnalysisOptions,
    model: &Model,
    budget: Budget<'_>,
    finding: &GridFinding,
) -> Option<Test> {
    let [mut one, mut other] = finding.at.iter().collect::<Vec<_>>()[..] else { return None };
    // Interlocked sections follow the order of the grid.
    if one.invocation.workgroup_index > other.invocation.workgroup_index {
        std::mem::swap(&mut one, &mut other);
    }
    if !finding.kind.is_race() || one.invocation == other.invocation {
        return None;
    }
    let racing_invocations = vec![one.invocation, other.invocation];
    let lifted = lift(
        module,
        &AnalysisOptions { only_invocations: racing_invocations, assertion: None, ..options.clone() },
    )
    .ok()?;
    let query = ModelQuery { budget, decide_race: true, decide_question: false, locate_race: false };
    if answer_with_model(&lifted, model, &query).ok()?.race != Race::Racy {
        return None;
    }
    let model_options = model::PredictOptions { budget: budget.with_step_limit(TRIAL_STEPS), unroll: 1 };
    let races =
        |test: &Test| model::predict(test, model, &model_options).is_ok_and(|found| found.race == Race::Racy);
    let case = lifted.cases.iter().find(|case| races(&case.test))?;
    let whole = Test { question: None, filter: None, ..case.test.clone() };
    let mut kept: Vec<InstructionIndex> = Vec::new();
    for (thread, (code, origins)) in whole.threads.iter().zip(&case.origins).enumerate() {
        // From the end, because uses go before definitions.
        kept.extend((0..code.instructions.len().min(origins.len())).rev().map(|at| (thread, at)));
    }
    // One instruction of each access stays, so that it stays the same race. For an unpublished write, everything
    // that could publish it stays too.
    let places = [one.place, other.place];
    let essentials = |indices: &[InstructionIndex]| -> BTreeSet<(usize, Option<usize>)> {
        let parts = |&(thread, at): &InstructionIndex| {
            let is_of_access = places.get(thread) == Some(&case.origins[thread][at].place);
            let may_publish = finding.kind == FindingKind::UnpublishedRead
                && synchronizes(&whole.threads[thread].instructions[at].kind);
            [is_of_access.then_some((thread, None)), may_publish.then_some((thread, Some(at)))]
        };
        indices.iter().flat_map(parts).flatten().collect()
    };
    let all = essentials(&kept);
    let mut trials = 0;
    let mut is_same_race = |fewer: &[InstructionIndex]| {
        let smaller = with_instructions(&whole, fewer);
        if essentials(fewer) != all || lacks_label(&smaller) {
            return Ok(false);
        }
        trials += 1;
        if trials > MAX_TRIALS { Err(()) } else { Ok(races(&smaller)) }
    };
    // At the limit, the smallest test so far remains.
    while remove_chunks(&mut kept, 1, &mut is_same_race) == Ok(true) {}
    let test = with_instructions(&whole, &kept);
    let pruned = without_unused_locations(&test);
    Some(if races(&pruned) { pruned } else { test })
}

/// Returns true if an instruction may order others.
fn synchronizes(kind: &InstructionKind) -> bool {
    match kind {
        InstructionKind::Access(access) => matches!(access.strength, Access::Atomic { .. }),
        InstructionKind::Fence { .. }
        | InstructionKind::ControlBarrier(_)
        | InstructionKind::Interlock(_) => true,
        _ => false,
    }
}

/// A thread and the index of one of its instructions.
type InstructionIndex = (usize, usize);

/// Returns a test with only some of its instructions.
fn with_instructions(test: &Test, kept: &[InstructionIndex]) -> Test {
    let mut smaller = test.clone();
    for (thread, code) in smaller.threads.iter_mut().enumerate() {
        let mut index = 0..;
        code.instructions.retain(|_| index.next().is_some_and(|at| kept.contains(&(thread, at))));
    }
    smaller
}

/// Returns true if a thread jumps to a label that it does not have.
fn lacks_label(test: &Test) -> bool {
    let is_missing = |code: &[Instruction], kind: &InstructionKind| match kind {
        InstructionKind::Flow(
            Flow::Goto(target) | Flow::Branch { target, .. } | Flow::BranchIf { target, .. },
        ) => !code.iter().any(|label| label.kind == InstructionKind::Flow(Flow::Label(*target))),
        _ => false,
    };
    let mut threads = test.threads.iter().map(|thread| &thread.instructions);
    threads.any(|code| code.iter().any(|instruction| is_missing(code, &instruction.kind)))
}

/// Removes locations without accesses.
fn without_unused_locations(test: &Test) -> Test {
    let refers_to_location = |init: &LocationInit| {
        matches!(init, LocationInit::CopyOf(_) | LocationInit::AddressOf(_) | LocationInit::AliasOf(_))
    };
    // Locations that others refer to keep their numbers.
    if test.locations.iter().any(|location| refers_to_location(&location.init))
        || !test.listed_terms.is_empty()
    {
        return test.clone();
    }
    let accesses = |test: &Test| -> Vec<LocationId> {
        let code = test.threads.iter().flat_map(|thread| &thread.instructions);
        let location = |kind: &InstructionKind| match kind {
            InstructionKind::Access(access) => Some(access.place.location),
            _ => None,
        };
        code.filter_map(|instruction| location(&instruction.kind)).collect()
    };
    let mut numbers: BTreeMap<LocationId, LocationId> = accesses(test).iter().map(|id| (*id, *id)).collect();
    for (number, id) in numbers.values_mut().enumerate() {
        *id = LocationId(number as u16);
    }
    let mut pruned = test.clone();
    pruned.locations =
        numbers.keys().filter_map(|id| test.locations.get(usize::from(id.0)).cloned()).collect();
    for instruction in pruned.threads.iter_mut().flat_map(|thread| &mut thread.instructions) {
        if let InstructionKind::Access(access) = &mut instruction.kind
            && let Some(number) = numbers.get(&access.place.location)
        {
            access.place.location = *number;
        }
    }
    pruned
}
