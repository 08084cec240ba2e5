//! Minimizes a race to a small litmus test, by greedy delta debugging.
//!
//! Only the two racing invocations are lifted. Then instructions are removed one at a time while the model
//! still reports the race (a one-minimal variant of ddmin, Zeller and Hildebrandt, IEEE TSE 2002,
//! <https://doi.org/10.1109/32.988498>).

use std::collections::BTreeMap;

use litmus::{Access, Flow, InstructionKind, LocationId, LocationInit, Race, Test};
use model::{Budget, Model};
use spirv_reader::SpirvModule;

use crate::answer::{ModelQuery, answer_with_model};
use crate::finding::{FindingKind, Spot};
use crate::grid::GridFinding;
use crate::lift::lift;
use crate::options::AnalysisOptions;

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
    let mut test = Test { question: None, filter: None, ..case.test.clone() };
    // Keep one instruction of each access, so that it stays the same race. For an unpublished write, also
    // keep everything that could publish it.
    let published = finding.kind == FindingKind::UnpublishedRead;
    let places = [one.place, other.place];
    let named = |thread: usize, spot: &Spot| places.get(thread) == Some(&spot.place);
    let mut origins = case.origins.clone();
    let mut trials = 0;
    loop {
        let mut changed = false;
        for thread in 0..test.threads.len().min(origins.len()) {
            // From the end: indices of earlier instructions stay valid, and uses go before
            // definitions.
            for at in (0..test.threads[thread].instructions.len().min(origins[thread].len())).rev() {
                let is_last_of_access = named(thread, &origins[thread][at])
                    && origins[thread].iter().filter(|spot| named(thread, spot)).count() == 1;
                let must_stay = is_last_of_access
                    || published && synchronizes(&test.threads[thread].instructions[at].kind);
                if must_stay || trials >= MAX_TRIALS || is_jump_target(&test, thread, at) {
                    continue;
                }
                trials += 1;
                let mut smaller = test.clone();
                smaller.threads[thread].instructions.remove(at);
                if races(&smaller) {
                    test = smaller;
                    origins[thread].remove(at);
                    changed = true;
                }
            }
        }
        if !changed {
            break;
        }
    }
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

/// Returns true if an instruction is a label that its thread jumps to.
fn is_jump_target(test: &Test, thread: usize, at: usize) -> bool {
    let code = &test.threads[thread].instructions;
    let InstructionKind::Flow(Flow::Label(label)) = code[at].kind else { return false };
    code.iter().any(|instruction| match &instruction.kind {
        InstructionKind::Flow(Flow::Goto(to)) => *to == label,
        InstructionKind::Flow(Flow::Branch { target, .. }) => *target == label,
        _ => false,
    })
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
