//! The meaning of inputs with which a clean entry point without a proof races.
//!
//! A race is one of the shader if the inputs decide branches alone. Numbers that the addresses depend on may have to fit
//! each other in a way that no condition states, so they are needed; integers that only a search finds are named. Contents
//! that addresses depend on have invariants of the application: the answer names them.

use entry_point::input_place::{AssumedInput, InputKind};
use entry_point::{AnalysisOptions, FindingKind};
use prove::{ProofReport, Unproved, UnprovedReason};
use spirv_reader::SpirvModule;
use walk::{Blocked, GridFinding, GridReport, NeededInput};

use crate::needs::{chosen_constants, needed_inputs};
use crate::proof::{ProofWalk, is_disproof, is_ordinary, is_race_of_source, walk_counterexamples};
use crate::small_inputs::{SmallWalk, walk_one_buffer, walk_small_inputs};

/// The change that other inputs make to a clean answer.
pub(crate) enum Refutation {
    /// The answer needs inputs, because of a finding.
    Needs(Box<GridFinding>, Vec<NeededInput>),
    /// The answer is that of the walk.
    Racy(Box<ProofWalk>),
    /// The answer names the inputs.
    Named(Vec<String>),
}

/// Walks counterexamples of an attempted proof, then small inputs; `options` are the given and the chosen ones.
pub(crate) fn refute_clean(
    module: &SpirvModule,
    options: [&AnalysisOptions; 2],
    proof: &ProofReport,
    report: &GridReport,
    reached_by_equality: &[Blocked],
) -> Option<Refutation> {
    let [given, chosen] = options;
    let is_unproved = !proof.is_proved;
    let is_defect = |why: &Unproved| is_unproved || why.reason == UnprovedReason::DivergentBarrier;
    let replayed = walk_counterexamples(module, given, proof, report, is_defect);
    let is_replayed = replayed.is_some();
    let SmallWalk { walk, changed } = match replayed {
        Some(walk) => SmallWalk { walk, changed: Vec::new() },
        None if is_unproved => match walk_small_inputs(module, given, chosen) {
            Some(found) => found,
            // Applications give each address a separate buffer.
            None => {
                let walk = walk_one_buffer(module, given, chosen)?;
                let is_racy = walk.report.findings.iter().any(is_disproof);
                return is_racy.then_some(Refutation::Named(walk.inputs));
            }
        },
        None => return None,
    };
    let found = walk.report.findings.iter().find(|found| is_disproof(found))?;
    if let (true, Some([x, y, z])) = (walk.sets_grid_alone, walk.options.grid) {
        // The walks chose smaller grids.
        let needs = vec![NeededInput::grid_for_finding(format!("{x},{y},{z}"))];
        return Some(Refutation::Needs(Box::new(found.clone()), needs));
    }
    if !is_race_of_source(module, &walk.options, found) {
        return None;
    }
    // A grid may have one workgroup in an axis whose positions no address depends on.
    let is_wider = (0..3).any(|axis: usize| report.grid[axis] == 1 && walk.report.grid[axis] > 1);
    // Inputs may have to fit what atomics count.
    let is_synchronized = walk.report.is_schedule_dependent;
    // An invocation that contents choose may be the only one. A barrier has to be reached for all contents.
    let is_by_branches = is_unproved
        && !is_wider
        && !is_synchronized
        && found.inputs.is_empty()
        && (!walk.sets_contents || found.kind == FindingKind::DivergentBarrier)
        && is_ordinary(&walk);
    let is_float =
        |at: &usize| chosen.assumed.get(*at).is_some_and(|input| matches!(input.kind, InputKind::Float(_)));
    // A condition that was not found may exclude the inputs.
    let is_open = proof.counterexamples.iter().any(|(why, _)| why.reason == UnprovedReason::Budget);
    let is_number = |at: &usize| chosen.assumed.get(*at).is_some_and(AssumedInput::is_number);
    let needs = if let Some(reached) = reached_by_equality.iter().find(|reached| reached.contains(found)) {
        needed_inputs(module, chosen, &[], &reached.inputs, false)
    } else if !is_unproved || is_wider {
        Vec::new()
    } else if is_replayed {
        match found.inputs.as_slice() {
            // They may decide the size of a workgroup.
            [] => chosen_constants(module, given, &walk.options, None),
            inputs if inputs.iter().all(is_number) && !is_open => {
                needed_inputs(module, &walk.options, &[], inputs, false)
            }
            _ => Vec::new(),
        }
    } else if !is_by_branches && !changed.is_empty() && changed.iter().all(is_float) {
        // Positions and distances are floats, and sizes that have to fit rarely are.
        needed_inputs(module, &walk.options, &[], &changed, false)
    } else {
        Vec::new()
    };
    if !needs.is_empty() {
        return Some(Refutation::Needs(Box::new(found.clone()), needs));
    }
    Some(if is_by_branches { Refutation::Racy(Box::new(walk)) } else { Refutation::Named(walk.inputs) })
}
