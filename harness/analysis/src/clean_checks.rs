//! Checks of a clean answer: other subgroup sizes, barriers that invocations may miss, and loops that wait.

use spirv_reader::{SpirvInstruction, SpirvModule, annotations::Annotations};

use crate::choose::InputChoice;
use crate::dispatch::uses_subgroups;
use crate::needs::needed_inputs;
use entry_point::{AnalysisOptions, FindingCause, InvocationId};
use lint::{awaited_atomics, divergent_barriers};
use walk::{CoverageLimit, GridFinding, GridReport, GridSpot, NeededInput, RaceVerdict, line_ranges};

/// Walks a clean kernel with the other likely subgroup sizes, unless the size is given; returns the findings of the
/// first size that has any, and the size.
///
/// A scan of one subgroup of 32 lanes may race if two subgroups execute it.
pub(crate) fn find_with_other_subgroup_sizes(
    module: &SpirvModule,
    (given, chosen): (&AnalysisOptions, &AnalysisOptions),
    report: &mut GridReport,
) -> Vec<(GridFinding, u32)> {
    let is_given = given.subgroup_size.is_some() || module.annotations != Annotations::default();
    if is_given || report.verdict != RaceVerdict::Clean || !uses_subgroups(module) {
        return Vec::new();
    }
    let mut tried = Vec::new();
    for size in other_subgroup_sizes(given, report) {
        let options = AnalysisOptions { subgroup_size: Some(size), ..chosen.clone() };
        let Ok(other) = walk::analyze_grid(module, &options) else { continue };
        if !other.findings.is_empty() {
            return other.findings.into_iter().map(|found| (found, size)).collect();
        }
        tried.extend((other.verdict == RaceVerdict::Clean).then(|| size.to_string()));
    }
    if !tried.is_empty() {
        let sizes = format!("also subgroups of {}", tried.join(", "));
        report.limits.push(CoverageLimit::Note(sizes));
    }
    Vec::new()
}

/// Returns the sizes that a workgroup's subgroups are also likely to have.
pub(crate) fn other_subgroup_sizes(given: &AnalysisOptions, report: &GridReport) -> Vec<u32> {
    let invocations: u32 = report.local_size.iter().product();
    // No source language promises that a small workgroup is one subgroup; devices have none of fewer than four.
    let is_free = given.language.is_some() && given.subgroup_sizes.is_empty();
    let is_small = is_free && (5..32).contains(&invocations);
    let smaller = is_small.then(|| 1 << (invocations - 1).ilog2());
    let likely = given.likely_subgroup_sizes().iter().copied().filter(|size| *size != report.subgroup_size);
    likely.chain(smaller).filter(|size| *size <= invocations).collect()
}

/// Names the lines of a clean answer that may wait for another invocation.
pub(crate) fn note_waiting(module: &SpirvModule, options: &AnalysisOptions, report: &mut GridReport) {
    let Ok(entry) = module.find_entry(options.entry.as_deref()) else { return };
    let atomics = awaited_atomics(module, entry.function);
    if report.verdict == RaceVerdict::Clean && !atomics.is_empty() {
        let lines = line_ranges(module, &atomics.into_iter().map(SpirvInstruction::code_place).collect());
        report.limits.push(CoverageLimit::Note(format!(
            "{} may wait for another invocation, for which Vulkan guarantees no forward progress",
            lines.unwrap_or_else(|| "a loop".to_owned())
        )));
    }
}

/// Turns a clean answer into one that needs inputs if a barrier depends on a branch that differs between invocations
/// and that chosen inputs decide.
pub(crate) fn check_barriers(
    module: &SpirvModule,
    options: &AnalysisOptions,
    choice: &InputChoice,
    report: &mut GridReport,
) {
    let Ok(entry) = module.find_entry(options.entry.as_deref()) else { return };
    let code = || module.functions.values().flat_map(|function| &function.code);
    let site = |branch: &SpirvInstruction| code().position(|one| one.operands == branch.operands);
    for (barrier, branch) in divergent_barriers(module, entry.function) {
        let inputs = site(branch).map(|site| choice.inputs_of_branch(site as u32)).unwrap_or_default();
        let mut needs = needed_inputs(module, options, &[], &inputs.into_iter().collect::<Vec<_>>(), false);
        if needs.is_empty() && choice.may_choose_grid() {
            needs.push(NeededInput::missing_grid(entry.shader_stage()));
        }
        if needs.is_empty() || report.verdict != RaceVerdict::Clean {
            continue;
        }
        report.verdict = RaceVerdict::NeedsInputs;
        let spot = |one: &SpirvInstruction| GridSpot {
            line: one.line,
            place: one.place,
            invocation: InvocationId::default(),
            writes: None,
        };
        let message =
            "not every invocation of a workgroup reaches this barrier for some inputs, because of the branch";
        let at = vec![spot(barrier), spot(branch)];
        let found = GridFinding::new(FindingCause::MissedBarrier, message.to_owned(), at);
        report.needs.extend(needs.into_iter().map(|needed| needed.with_finding(&found)));
    }
}
