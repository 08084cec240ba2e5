//! Proofs of race freedom for the lines of `race`, and the replay of their counterexamples by walks.
//!
//! A counterexample sets only inputs that no option supplies. It is reported if a walk with these inputs finds a race.

use std::collections::BTreeMap;
use std::sync::Arc;

use entry_point::input_place::{InputPlace, constant_option_place};
use entry_point::{AnalysisOptions, DeadlinePredicate, FindingKind};
use prove::{InputMemory, ProofOptions, ProofReport, RacyInputs, SmtSolver, Unproved, UnprovedReason};
use spirv_reader::{ArgumentPlace, SpirvModule};
use walk::{CoverageLimit, GridFinding, GridReport, RaceVerdict, analyze_grid};

use crate::choose::ARGUMENT_ELEMENTS;

/// Bytes of a buffer that a counterexample sets in part.
const BUFFER_BYTES: usize = 64 * 1024;
/// Upper bounds on the steps of a proof, and of the attempt before the walks.
pub(crate) const PROOF_STEPS: u64 = 300_000;
pub(crate) const STEPS_BEFORE_WALKS: u64 = 20_000;

/// A walk with inputs that a proof chose.
#[derive(Clone, Debug)]
pub(crate) struct ProofWalk {
    pub report: GridReport,
    pub options: AnalysisOptions,
    /// The inputs that the proof sets, with their values.
    pub inputs: Vec<String>,
    /// True if it sets nothing but the grid.
    pub sets_grid_alone: bool,
    /// True if it sets contents of a buffer other than the scalars that are separate inputs.
    pub sets_contents: bool,
}

/// Attempts to prove the entry point of the options; `None` if an option contradicts what a proof assumes.
///
/// # Errors
/// Returns the reason why a given condition cannot be read.
pub(crate) fn prove_entry(
    module: &SpirvModule,
    options: &AnalysisOptions,
    solver: Option<SmtSolver<'_>>,
    steps: u64,
) -> Result<Option<ProofReport>, String> {
    // The compiler of WGSL has put these values into the module, so the proof holds for them alone.
    let overrides = options.unset_overrides.iter();
    let overrides = Vec::from_iter(overrides.map(|one| format!("{} == {}", one.name, one.value.value)));
    if !options.aliases.is_empty() || options.open.is_some() {
        return Ok(None);
    }
    let push = options.push.iter().map(|(at, byte)| (InputMemory::PushConstants, *at, vec![*byte]));
    let mut given = Vec::from_iter(push);
    for (&(set, binding), bytes) in &options.buffers {
        let whole = BTreeMap::from([(0, bytes.len() as u32)]);
        for (from, size) in options.given_members.get(&(set, binding)).unwrap_or(&whole) {
            let part = bytes.iter().skip(*from as usize).take(*size as usize);
            given.push((InputMemory::Buffer(set, binding, 0), *from, part.copied().collect()));
        }
    }
    let has_assertion = options.assertion.is_some();
    let deadline = options.deadline.clone();
    let options = ProofOptions {
        given,
        entry: options.entry.clone(),
        specialization: options.specialization.clone(),
        grid: options.grid,
        assumed: without_conditions(&options.conditions, &overrides),
        steps,
    };
    let stop = || deadline.as_ref().is_some_and(DeadlinePredicate::has_passed);
    let mut report = prove::prove(module, &options, Some(&stop), solver);
    let is_unread = |one: &&Unproved| matches!(one.reason, UnprovedReason::Condition { .. });
    if let Some(unread) = report.unproved.iter().find(is_unread) {
        return Err(unread.reason.to_string());
    }
    report.conditions.extend(overrides);
    if !options.specialization.is_empty() {
        report.assumptions.push("the given specialization constants".to_owned());
    }
    if has_assertion {
        report.assumptions.push("the assertion for inputs that did not run".to_owned());
    }
    Ok(Some(report))
}

/// Returns given conditions without some that hold.
fn without_conditions(given: &[String], known: &[String]) -> Vec<String> {
    let parts = |text: &String| {
        let parts = text.split(" and ").filter(|part| !known.iter().any(|one| one == part.trim()));
        parts.collect::<Vec<&str>>().join(" and ")
    };
    given.iter().map(parts).filter(|text| !text.is_empty()).collect()
}

/// Walks inputs that a proof chose, if they decide more than a walk with other inputs.
///
/// A counterexample counts if the walk finds a race or a divergent barrier. Under inferred conditions, a race of chosen
/// inputs that violate them is not reported if the walk with an example for the conditions is clean. A barrier that is
/// divergent without the conditions is a defect.
pub(crate) fn walk_proof(
    module: &SpirvModule,
    options: &AnalysisOptions,
    proof: &ProofReport,
    known: &GridReport,
) -> Option<ProofWalk> {
    let is_barrier = |found: &GridFinding| found.kind == FindingKind::DivergentBarrier;
    // Chosen inputs may violate given conditions.
    let has_conditions = !options.conditions.is_empty();
    let is_chosen = known.verdict == RaceVerdict::Racy
        && !known.chosen_inputs.is_empty()
        && (has_conditions || !known.findings.iter().any(is_barrier));
    let is_open = matches!(known.verdict, RaceVerdict::Clean | RaceVerdict::NeedsInputs);
    if is_open || is_chosen && has_conditions {
        let is_defect = |why: &Unproved| match why.reason {
            UnprovedReason::DivergentBarrier => true,
            UnprovedReason::Budget => false,
            _ => !proof.is_proved || is_chosen,
        };
        let found = walk_counterexamples(module, options, proof, known, is_defect);
        if found.is_some() || is_open {
            return found;
        }
    }
    let example = proof.example.as_ref().filter(|_| is_chosen && (proof.is_proved || has_conditions))?;
    let is_better = |walk: &ProofWalk| has_conditions || walk.report.verdict == RaceVerdict::Clean;
    walk_inputs(module, options, example).filter(is_better)
}

/// Walks the counterexamples of some obligations, in one workgroup if further ones would repeat the first.
pub(crate) fn walk_counterexamples(
    module: &SpirvModule,
    options: &AnalysisOptions,
    proof: &ProofReport,
    known: &GridReport,
    is_defect: impl Fn(&Unproved) -> bool,
) -> Option<ProofWalk> {
    let is_for_one = known.limits.iter().any(|limit| matches!(limit, CoverageLimit::OneWorkgroup));
    let is_replayed =
        |(why, inputs): &&(Unproved, RacyInputs)| is_defect(why) && (!is_for_one || inputs.grid == [1; 3]);
    replay(module, options, proof.counterexamples.iter().filter(is_replayed))
}

/// Walks counterexamples up to the first for which the walk finds what a proof excludes.
pub(crate) fn replay<'a>(
    module: &SpirvModule,
    options: &AnalysisOptions,
    counterexamples: impl IntoIterator<Item = &'a (Unproved, RacyInputs)>,
) -> Option<ProofWalk> {
    let walks = counterexamples.into_iter().filter_map(|(_, inputs)| walk_inputs(module, options, inputs));
    walks.into_iter().find(|walk| walk.report.findings.iter().any(is_disproof))
}

/// Returns true if the inputs of a walk lead to no access beyond an end, which the code may leave to its callers.
pub(crate) fn is_ordinary(walk: &ProofWalk) -> bool {
    !walk.report.findings.iter().any(|found| found.kind == FindingKind::OutOfBounds)
        && walk.report.exceeded.is_empty()
}

/// Walks the inputs for which a proof finds that stores of a source differ which are equal for the chosen ones.
///
/// Only the pairs of accesses that race in the module count: other inputs may be unreasonable for other pairs.
pub(crate) fn walk_unequal_stores(
    source: &SpirvModule,
    options: &AnalysisOptions,
    of_module: &GridReport,
    proof: &ProofReport,
) -> Option<ProofWalk> {
    let mut walk = replay(source, options, &proof.counterexamples).filter(|_| source.defines_collisions())?;
    let is_known = |found: &GridFinding| {
        of_module.findings.iter().any(|known| known.finding_key() == found.finding_key())
    };
    walk.report.chosen_inputs = vec![walk.inputs.clone()];
    walk.report.findings.iter().any(is_known).then_some(walk)
}

/// Returns false if the language defines the collision that a finding of the module is.
pub(crate) fn is_race_of_source(
    module: &SpirvModule,
    options: &AnalysisOptions,
    found: &GridFinding,
) -> bool {
    let source = module.by_language_rules(options.hlsl).filter(SpirvModule::defines_collisions);
    let is_same = |other: &GridFinding| other.finding_key() == found.finding_key();
    source.is_none_or(|source| {
        analyze_grid(&source, options).is_ok_and(|report| report.findings.iter().any(is_same))
    })
}

fn walk_inputs(module: &SpirvModule, options: &AnalysisOptions, inputs: &RacyInputs) -> Option<ProofWalk> {
    let sets_grid = options.grid.is_none();
    let is_scalar = |at: (u32, u32), offset: u64| {
        let mut assumed = options.assumed.iter();
        assumed.any(|input| matches!(input.place, InputPlace::Scalar(place, from, _) if (place, from) == (at, offset)))
    };
    let sets_contents = inputs.inputs.iter().any(|input| match input.memory {
        InputMemory::Buffer(set, binding, _) => !is_scalar((set, binding), input.offset),
        InputMemory::PushConstants => false,
    });
    let (mut options, mut inputs) = inputs_of(options, inputs)?;
    // A proof holds for arrays of every length.
    let function = module.find_entry(options.entry.as_deref()).ok()?.function;
    for argument in module.kernel_arguments.iter().filter(|argument| argument.function == function) {
        if let ArgumentPlace::Workgroup(number) = argument.place
            && !options.specialization.contains_key(&number)
        {
            options.specialization.insert(number, ARGUMENT_ELEMENTS);
            inputs.push(format!("--spec {number}={ARGUMENT_ELEMENTS}"));
        }
    }
    let mut report = analyze_grid(module, &options).ok()?;
    // Contents that a race decides are no answer.
    if report.verdict != RaceVerdict::Clean {
        report.order_dependent_element = None;
    }
    let sets_grid_alone = sets_grid && inputs.len() == 1;
    Some(ProofWalk { report, options, inputs, sets_grid_alone, sets_contents })
}

/// Returns true for a finding that a proof excludes.
pub(crate) fn is_disproof(finding: &GridFinding) -> bool {
    finding.kind.is_race() || finding.kind == FindingKind::DivergentBarrier
}

/// Returns the options with the inputs of a counterexample, and these inputs; `None` if it needs an input that options set.
fn inputs_of(given: &AnalysisOptions, counterexample: &RacyInputs) -> Option<(AnalysisOptions, Vec<String>)> {
    let mut options = given.clone();
    let mut inputs = Vec::new();
    if given.grid.is_none() {
        let [x, y, z] = counterexample.grid;
        options.grid = Some(counterexample.grid);
        inputs.push(format!("--grid {x},{y},{z}"));
    }
    for (number, value) in &counterexample.specialization {
        options.specialization.insert(*number, *value);
        inputs.push(format!("--spec {}={value}", constant_option_place(*number, &given.assumed)));
    }
    for input in &counterexample.inputs {
        let bytes = &input.bytes;
        match input.memory {
            InputMemory::PushConstants => {
                for (at, byte) in (input.offset..=u64::MAX).zip(bytes) {
                    if given.push.get(&at).is_some_and(|known| known != byte) {
                        return None;
                    }
                    options.push.insert(at, *byte);
                }
            }
            InputMemory::Buffer(set, binding, 0) if !given.buffers.contains_key(&(set, binding)) => {
                let contents = Arc::make_mut(options.buffers.entry((set, binding)).or_default());
                contents.resize(contents.len().max(BUFFER_BYTES), 0);
                // The element before the first one has the largest offsets.
                let start = usize::try_from(input.offset).ok()?;
                let end = start.checked_add(bytes.len()).filter(|end| *end <= BUFFER_BYTES)?;
                contents.get_mut(start..end)?.copy_from_slice(bytes);
            }
            InputMemory::Buffer(..) => return None,
        }
        inputs.push(input.text.clone());
    }
    Some((options, inputs))
}
