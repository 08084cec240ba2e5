//! The smallest litmus test of a race that a walk found: the two invocations alone, with what of them the race needs.

use std::collections::BTreeMap;

use litmus::{Access, Flow, InstructionKind, LocationId, LocationInit, Race, Test};
use model::{Budget, Model};

use crate::answer::{Asking, answer};
use crate::grid::GridFinding;
use crate::lift::{FindingKind, Options, Spot, lift};
use crate::module::Module;

/// Steps for one trial.
const TRIAL_STEPS: u64 = 5_000;
/// Trials at most.
const MAX_TRIALS: usize = 2_000;

/// The smallest litmus test of a race, which the model calls racy as well. Nothing where the race is none of two invocations, or
/// needs what others do, or what no litmus test says.
pub fn smallest(
    module: &Module,
    options: &Options,
    model: &Model,
    budget: Budget<'_>,
    finding: &GridFinding,
) -> Option<Test> {
    let [mut one, mut other] = finding.at.iter().collect::<Vec<_>>()[..] else { return None };
    // In the order of the grid, which is that of interlocked sections.
    if one.invocation.workgroup_index > other.invocation.workgroup_index {
        std::mem::swap(&mut one, &mut other);
    }
    if !finding.kind.is_race() || one.invocation == other.invocation {
        return None;
    }
    let only = vec![one.invocation, other.invocation];
    let lifted = lift(module, &Options { only, assertion: None, ..options.clone() }).ok()?;
    let asking = Asking { budget, race: true, question: false, places: false };
    if answer(&lifted, model, &asking).ok()?.race != Race::Racy {
        return None;
    }
    let asked = model::Options { budget: budget.at_most(TRIAL_STEPS), unroll: 1 };
    let races = |test: &Test| model::predict(test, model, &asked).is_ok_and(|found| found.race == Race::Racy);
    let case = lifted.cases.iter().find(|case| races(&case.test))?;
    let mut test = Test { question: None, filter: None, ..case.test.clone() };
    // Something of both accesses stays in their threads: the race is to be this one; and of what is not published whatever would
    // publish it.
    let published = finding.kind == FindingKind::UnpublishedRead;
    let places = [one.place, other.place];
    let named = |thread: usize, spot: &Spot| places.get(thread) == Some(&spot.place);
    let mut origins = case.origins.clone();
    let mut trials = 0;
    loop {
        let mut changed = false;
        for thread in 0..test.threads.len().min(origins.len()) {
            for at in (0..test.threads[thread].instructions.len().min(origins[thread].len())).rev() {
                let last = named(thread, &origins[thread][at])
                    && origins[thread].iter().filter(|spot| named(thread, spot)).count() == 1;
                let kept = last || published && synchronizes(&test.threads[thread].instructions[at].kind);
                if kept || trials >= MAX_TRIALS || is_target(&test, thread, at) {
                    continue;
                }
                trials += 1;
                let mut less = test.clone();
                less.threads[thread].instructions.remove(at);
                if races(&less) {
                    test = less;
                    origins[thread].remove(at);
                    changed = true;
                }
            }
        }
        if !changed {
            break;
        }
    }
    let pruned = without_unused(&test);
    Some(if races(&pruned) { pruned } else { test })
}

/// Whether an instruction may order others.
fn synchronizes(kind: &InstructionKind) -> bool {
    match kind {
        InstructionKind::Access(access) => matches!(access.strength, Access::Atomic { .. }),
        InstructionKind::Fence { .. }
        | InstructionKind::ControlBarrier(_)
        | InstructionKind::Interlock(_) => true,
        _ => false,
    }
}

/// Whether an instruction is a label that a jump of its thread goes to.
fn is_target(test: &Test, thread: usize, at: usize) -> bool {
    let code = &test.threads[thread].instructions;
    let InstructionKind::Flow(Flow::Label(label)) = code[at].kind else { return false };
    code.iter().any(|instruction| match &instruction.kind {
        InstructionKind::Flow(Flow::Goto(to)) => *to == label,
        InstructionKind::Flow(Flow::Branch { target, .. }) => *target == label,
        _ => false,
    })
}

/// The test without the locations that nothing accesses.
fn without_unused(test: &Test) -> Test {
    let refers = |init: &LocationInit| {
        matches!(init, LocationInit::CopyOf(_) | LocationInit::AddressOf(_) | LocationInit::AliasOf(_))
    };
    if test.locations.iter().any(|location| refers(&location.init)) || !test.listed.is_empty() {
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
