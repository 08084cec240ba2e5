//! The analysis of user shaders: findings over whole grids, with proofs, tests and fixes.
//!
//! Limits are callbacks, because the playground has no clock and counts calls instead.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::choose::{InputGrid, InputMode};
use crate::clean_checks::other_subgroup_sizes;
use crate::decide::InputChoiceReport;
use entry_point::{AnalysisOptions, DeadlinePredicate, FindingCause, Refusal, StopFunction, source_location};
use litmus::Test;
use model::{Budget, Model};
use prove::{ProofReport, SmtSolver};
use repair::{EditableSource, RepairWalks, WalkedSource, add_fixes, fix_walk_findings, repair_source};
use results::wire::{
    CoveredInputs, FindingRecord, LOST_ORDER, RaceLine, RaceProof, RaceVerdict, RejectedLine, UnprovedPlace,
};
use spirv_reader::{HlslExecution, HlslRules, ShaderLanguage, SpirvModule};
use walk::{GridFinding, NeededInput, analyze_grid, analyze_until};

use crate::entry_options::{
    EntryOptions, entry_options, invalid_use_texts, placed_refusal_text, refusal_record, source_refusal_text,
};
use crate::proof::{
    PROOF_STEPS, STEPS_BEFORE_WALKS, is_disproof, prove_entry, replay, walk_proof, walk_unequal_stores,
};
use crate::records::{finding_record, group_by_cause, race_line, refused_line};
use crate::refutation::{Refutation, refute_clean};

/// Upper bounds on the steps of a changed module, at least, and as a multiple of those of the unchanged one.
const MIN_STEPS_OF_CANDIDATE: u64 = 2_000_000;
const FACTOR_OF_CANDIDATE: u64 = 4;
/// Lower bound on the checks of the time that the whole analysis of a changed module may make.
const MIN_CHECKS_OF_CANDIDATE: u64 = 1_000;

/// A function that stores the inputs of an entry point.
pub type SaveInputs<'a> = dyn Fn(&AnalysisOptions) -> Result<(), String> + 'a;

/// A phase of the analysis with a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RacePhase {
    /// The choice of inputs, the walks and the proof of an entry point together.
    Entry,
    /// The part of it that the choice of inputs and the walks may take; the rest is for the proof.
    EntryWalks,
    /// The search for missing inputs.
    InputSearch,
    /// The interpretation of the grid on every schedule.
    Walks,
    /// The proof for every grid and input.
    Proof,
    /// The prediction of the model for a small grid. It may start long after its limit was created.
    Model,
    /// The litmus test of one finding.
    SmallestTest,
    /// The search for fixes.
    Fixes,
}

/// The use of proofs for every grid and input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProofMode {
    None,
    /// A clean answer holds for every input if there is a proof.
    Optional,
    /// Counterexamples are walked too; a shader without a finding or a proof is undecided.
    Required,
}

/// An analysis: the engines to use, and their limits.
#[derive(Clone, Copy)]
pub struct AnalysisRequest<'a> {
    /// The name of the module in answers.
    pub file: &'a str,
    /// The source of missing inputs.
    pub inputs: InputMode,
    /// The model that decides questions that schedules leave open.
    pub model: &'a Model,
    /// Starts the limit of a phase, since this crate has no clock.
    pub start_limit: &'a dyn Fn(RacePhase) -> StopFunction,
    /// True to create a litmus test for each finding that has one.
    pub creates_tests: bool,
    /// The use of proofs for every grid and input.
    pub proofs: ProofMode,
    /// An installed solver for what the built-in one leaves open.
    pub solver: Option<SmtSolver<'a>>,
    /// True to search for the fixes of findings.
    pub searches_fixes: bool,
    /// The source that the module was compiled from, if fixes may be edits of it.
    pub source: Option<EditableSource<'a>>,
    /// Stores the inputs that were used; an error refuses the entry point.
    pub save_inputs: Option<&'a SaveInputs<'a>>,
}

impl fmt::Debug for AnalysisRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnalysisRequest").field("file", &self.file).field("inputs", &self.inputs).finish()
    }
}

/// The answer for an entry point.
#[derive(Clone, Debug)]
pub struct EntryAnswer {
    /// The published line.
    pub line: RaceLine,
    /// The reason of an answer that is refused or undecided.
    pub refusal: Option<Refusal>,
    /// The inputs that show the findings.
    pub options: AnalysisOptions,
    /// The inputs on which the answer depends.
    pub needs: Vec<NeededInput>,
    /// The findings of the line with their instructions.
    pub findings: Vec<GridFinding>,
    /// The litmus test of each finding that has one.
    pub tests: Vec<Option<Test>>,
}

impl EntryAnswer {
    /// Refuses an entry point of `module`, if the file is one.
    fn refused(
        file: &str,
        module: Option<&SpirvModule>,
        options: &AnalysisOptions,
        refusal: Refusal,
    ) -> EntryAnswer {
        let why = match module {
            Some(module) => source_refusal_text(file, module, &refusal),
            None => placed_refusal_text(file, &refusal),
        };
        let rejected = Some(refusal_record(file, module, &refusal));
        EntryAnswer { refusal: Some(refusal), ..EntryAnswer::refused_with(file, options, why, rejected) }
    }

    fn refused_with(
        file: &str,
        options: &AnalysisOptions,
        why: String,
        rejected: Option<RejectedLine>,
    ) -> EntryAnswer {
        let entry = options.entry.as_deref().unwrap_or_default();
        let line = RaceLine { rejected, ..refused_line(file, entry, options, why) };
        let (needs, findings, tests) = (Vec::new(), Vec::new(), Vec::new());
        EntryAnswer { line, refusal: None, options: options.clone(), needs, findings, tests }
    }
}

/// Analyzes each entry point of a module, as binary or text, or the one in the options.
pub fn analyze_module(
    request: &AnalysisRequest<'_>,
    module: &[u8],
    options: &AnalysisOptions,
    warn: &dyn Fn(String),
) -> Vec<EntryAnswer> {
    let file = request.file;
    let read = || {
        let module = entry_point::inputs::read_bound_module(module, options)?;
        let entries = entry_options(&module, options)?;
        Ok((module, entries))
    };
    let (module, EntryOptions { entries, unused }) = match read() {
        Ok(read) => read,
        Err(refusal) => {
            let options = AnalysisOptions { entry: None, ..options.clone() };
            return vec![EntryAnswer::refused(file, None, &options, refusal)];
        }
    };
    unused.iter().for_each(|unused| warn(format!("{file}: unused input: {unused}")));
    invalid_use_texts(file, &module).into_iter().for_each(warn);
    entries.iter().map(|options| analyze(request, &module, options)).collect()
}

/// Analyzes one entry point by a schedule of engines:
///
/// 1. A proof for every grid and input, within few steps.
/// 2. For each choice of missing inputs, a walk over the whole grid, and the model if schedules decide
///    ([`crate::decide::decide_choice`], which combines their answers).
///    A race of a source is checked by the rules of its language ([`SpirvModule::by_language_rules`]).
/// 3. The proof with all of its steps, and a walk with the inputs that refute it.
/// 4. The litmus tests of findings.
/// 5. Fixes as changes of the module, then as edits of the source.
///
/// Each has the limit of its [`RacePhase`].
pub fn analyze(
    request: &AnalysisRequest<'_>,
    module: &SpirvModule,
    options: &AnalysisOptions,
) -> EntryAnswer {
    let (whole, of_walks) =
        ((request.start_limit)(RacePhase::Entry), (request.start_limit)(RacePhase::EntryWalks));
    let start_limit = |phase: RacePhase| -> StopFunction {
        let limit = (request.start_limit)(phase);
        let within = match phase {
            RacePhase::InputSearch | RacePhase::Walks => of_walks.clone(),
            RacePhase::Proof => whole.clone(),
            // These follow, and each has a separate limit.
            RacePhase::Entry
            | RacePhase::EntryWalks
            | RacePhase::Model
            | RacePhase::SmallestTest
            | RacePhase::Fixes => return limit,
        };
        Arc::new(move || within() || limit())
    };
    let no_limit: StopFunction = Arc::new(|| false);
    let request = &AnalysisRequest { start_limit: &start_limit, ..*request };
    let early =
        if request.proofs == ProofMode::None { None } else { prove_before_walks(request, module, options) };
    let mut choice = match walk_entry(request, module, options, &no_limit) {
        Ok(choice) => choice,
        Err(refusal) => return EntryAnswer::refused(request.file, Some(module), options, refusal),
    };
    let module_verdict = choice.report.verdict;
    let is_wgsl = options.language == Some(ShaderLanguage::Wgsl);
    // The module of such a source has fewer races than the source.
    let has_fewer_races = is_wgsl && (module.has_component_stores() || module.has_exchanges())
        || module.has_excess_coherence()
        || module.has_stronger_atomics();
    let walked = (module_verdict == RaceVerdict::Racy || has_fewer_races)
        .then(|| walk_by_language(request, module, options, &choice.options, &no_limit))
        .flatten();
    let mut view = match walked.transpose() {
        Err(refusal) if has_fewer_races => {
            return EntryAnswer::refused(request.file, Some(module), options, refusal);
        }
        walked => walked.unwrap_or_default(),
    };
    let is_clean =
        |view: &LanguageView| view.is_free_where_racy() && view.choice.report.verdict == RaceVerdict::Clean;
    let may_lose_order = module_verdict == RaceVerdict::Racy && view.as_ref().is_some_and(is_clean);
    let uses_proof = |view: &LanguageView| match request.proofs {
        ProofMode::Optional => view.module.defines_collisions(),
        mode => mode == ProofMode::Required,
    };
    let proof = view.as_ref().filter(|view| may_lose_order && uses_proof(view));
    let proof = proof.and_then(|view| prove_within(request, &view.module, options).ok().flatten());
    if let (Some(view), Some(proof)) = (&mut view, &proof)
        && let limited = limited_options(request, &view.options, RacePhase::Walks)
        && let Some(racing) = walk_unequal_stores(&view.module, &limited, &choice.report, proof)
    {
        view.choice = InputChoiceReport::new(racing.report, racing.options);
    }
    if let Some(view) = view.as_ref().filter(|view| view.module.defines_collisions()) {
        // The inputs for which the module races may make stores equal that the language then permits.
        if view.is_free_where_racy()
            && view.choice.report.verdict == RaceVerdict::Racy
            && let Ok(mut report) = analyze_grid(module, &view.choice.options)
        {
            report.chosen_inputs.clone_from(&view.choice.report.chosen_inputs);
            choice = InputChoiceReport::new(report, view.choice.options.clone());
            choice.put_first(view.choice.report.findings.clone());
        } else if let Some(of_source) = view.where_racy.as_ref().filter(|found| !found.is_empty()) {
            choice.put_first(of_source.clone());
        }
    }
    let loses_order = may_lose_order && view.as_ref().is_some_and(is_clean);
    // A required proof is one of the source.
    let is_unproved =
        loses_order && request.proofs == ProofMode::Required && !proof.is_some_and(|proof| proof.is_proved);
    // Only WGSL has no word for what its compilers need: in the others a fix holds in the module too.
    // In lockstep, the size of a wave decides what of the module's races the source has.
    let is_by_wave_size = |view: &LanguageView| {
        let needs = &view.choice.report.needs;
        options.hlsl.execution != HlslExecution::Independent
            && view.choice.report.verdict == RaceVerdict::NeedsInputs
            && needs.iter().all(NeededInput::is_subgroup_size_for_finding)
    };
    // What the source leaves open is not what its compiler lost.
    let is_open = |view: &LanguageView| {
        let verdict = view.choice.report.verdict;
        view.is_free_where_racy() && matches!(verdict, RaceVerdict::NeedsInputs | RaceVerdict::Undecided)
    };
    let view = view.filter(|view| {
        has_fewer_races && !loses_order
            || is_wgsl && !is_clean(view)
            || is_by_wave_size(view)
            || is_open(view)
    });
    let has_word = !loses_order || !is_wgsl;
    let request = &AnalysisRequest { source: request.source.filter(|_| has_word), ..*request };
    let answer = match &view {
        Some(view) => analyze_further(request, &view.module, &view.options, view.choice.clone(), None),
        None => analyze_further(request, module, options, choice, early),
    };
    let mut answer = answer.unwrap_or_else(|why| EntryAnswer::refused_with(request.file, options, why, None));
    let is_racy_hlsl = options.language == Some(ShaderLanguage::Hlsl)
        && !loses_order
        && answer.line.verdict == RaceVerdict::Racy
        && options.hlsl.execution == HlslExecution::Independent;
    if is_racy_hlsl {
        answer.line.race_free_executions = race_free_executions(request, module, options, &answer.options);
    }
    let line = &mut answer.line;
    line.module_verdict = Some(if view.is_some() { module_verdict } else { line.verdict });
    if loses_order && line.verdict == RaceVerdict::Racy {
        line.verdict = if is_unproved { RaceVerdict::Undecided } else { RaceVerdict::Clean };
        line.findings.iter_mut().for_each(|finding| LOST_ORDER.clone_into(&mut finding.kind));
    }
    // The languages fix no subgroup size: a race for one of them is a race of the source.
    let is_racy = line.verdict == RaceVerdict::NeedsInputs
        && answer.needs.iter().all(NeededInput::is_subgroup_size_for_finding);
    let verdict = if is_racy { RaceVerdict::Racy } else { line.verdict };
    line.language_verdict = options.language.map(|_| verdict);
    answer
}

/// Returns the other execution models of HLSL by which a source has no finding with the inputs of its races.
///
/// Unless the subgroup size is given, that holds for every likely one.
fn race_free_executions(
    request: &AnalysisRequest<'_>,
    module: &SpirvModule,
    given: &AnalysisOptions,
    racing: &AnalysisOptions,
) -> Vec<String> {
    let is_free = |execution: HlslExecution| {
        let hlsl = HlslRules { execution, ..racing.hlsl };
        let limited = limited_options(request, racing, RacePhase::Walks);
        let options = AnalysisOptions { by_language_rules: true, hlsl, ..limited };
        let Some(module) = module.by_language_rules(hlsl) else { return false };
        let walk_clean = |options: &AnalysisOptions| {
            let report = analyze_grid(&module, options).ok();
            report.filter(|report| report.verdict == RaceVerdict::Clean && report.findings.is_empty())
        };
        walk_clean(&options).is_some_and(|report| {
            given.subgroup_size.is_some()
                || other_subgroup_sizes(given, &report).into_iter().all(|size| {
                    walk_clean(&AnalysisOptions { subgroup_size: Some(size), ..options.clone() }).is_some()
                })
        })
    };
    let others = HlslRules::EXECUTIONS.iter().filter(|(_, one)| *one != HlslExecution::Independent);
    others.filter(|(_, execution)| is_free(*execution)).map(|(name, _)| (*name).to_owned()).collect()
}

/// Attempts a proof within its limit.
fn prove_within(
    request: &AnalysisRequest<'_>,
    module: &SpirvModule,
    options: &AnalysisOptions,
) -> Result<Option<ProofReport>, String> {
    prove_entry(module, &limited_options(request, options, RacePhase::Proof), request.solver, PROOF_STEPS)
}

/// Attempts a proof within few steps; `None` if more steps may change the answer.
///
/// Steps limit it, and the walks have no part of its time, so the answer does not depend on the load of the machine.
fn prove_before_walks(
    request: &AnalysisRequest<'_>,
    module: &SpirvModule,
    options: &AnalysisOptions,
) -> Option<ProofReport> {
    let options = limited_options(request, options, RacePhase::Proof);
    let proof = prove_entry(module, &options, None, STEPS_BEFORE_WALKS).ok().flatten()?;
    // An installed solver may decide what is left open.
    (!proof.is_cut_off && (proof.is_proved || request.solver.is_none())).then_some(proof)
}

/// Returns options with the limit of a phase.
fn limited_options(
    request: &AnalysisRequest<'_>,
    options: &AnalysisOptions,
    phase: RacePhase,
) -> AnalysisOptions {
    let limit = (request.start_limit)(phase);
    let deadline = Some(DeadlinePredicate::new(move || limit()));
    AnalysisOptions { deadline, ..options.clone() }
}

/// Continues after the walks of every choice.
///
/// # Errors
/// Returns the reason why the inputs cannot be stored.
fn analyze_further(
    request: &AnalysisRequest<'_>,
    module: &SpirvModule,
    requested: &AnalysisOptions,
    choice: InputChoiceReport,
    early_proof: Option<ProofReport>,
) -> Result<EntryAnswer, String> {
    let AnalysisRequest { file, model, start_limit, .. } = *request;
    let InputChoiceReport {
        mut report,
        mut options,
        mut further_options,
        time_checks,
        reached_by_equality,
        undefined_findings,
    } = choice;
    let proof = match (request.proofs, early_proof) {
        (ProofMode::None, _) => None,
        (_, None) => prove_within(request, module, requested)?,
        (_, early) => early,
    };
    // By default, a proof only extends a clean answer: other inputs than those that the walks chose may be unreasonable.
    // Given conditions that need further ones are not what decides: the inputs of a race may satisfy them.
    let is_given = !requested.conditions.is_empty()
        && !proof.as_ref().is_some_and(|proof| proof.is_proved && !proof.counterexamples.is_empty());
    // The inputs of a race may violate given conditions.
    let is_racy_beside_conditions = report.verdict == RaceVerdict::Racy && !requested.conditions.is_empty();
    let is_exact = request.proofs == ProofMode::Required || is_given || is_racy_beside_conditions;
    let with_limit = |phase| limited_options(request, requested, phase);
    let mut counterexample = Vec::new();
    if let Some(proof) = proof.as_ref().filter(|_| is_exact)
        && let Some(walk) = walk_proof(module, &with_limit(RacePhase::Walks), proof, &report)
    {
        (report, options) = (walk.report, walk.options);
        further_options.clear();
        report.chosen_inputs = vec![walk.inputs];
    } else if let Some(proof) = proof.as_ref().filter(|_| report.verdict == RaceVerdict::Clean) {
        let assumed = options.assumed.clone();
        let limited = AnalysisOptions { assumed, ..with_limit(RacePhase::Walks) };
        let deadline = limited.deadline.clone();
        let chosen = AnalysisOptions { deadline, ..options.clone() };
        match refute_clean(module, [&limited, &chosen], proof, &report, &reached_by_equality) {
            Some(Refutation::Needs(found, needs)) => {
                report.verdict = RaceVerdict::NeedsInputs;
                report.needs.extend(needs.into_iter().map(|needed| needed.with_finding(&found)));
                report.open_findings.push(*found);
            }
            Some(Refutation::Racy(walk)) => {
                (report, options) = (walk.report, walk.options);
                further_options.clear();
                report.chosen_inputs = vec![walk.inputs];
            }
            Some(Refutation::Named(inputs)) => counterexample = inputs,
            None => {}
        }
    }
    if let Some(save) = request.save_inputs {
        let mut saved = options.clone();
        if let Some(proof) = proof.as_ref().filter(|proof| proof.is_proved) {
            saved.conditions.clone_from(&proof.assumable);
        }
        // The saved inputs may violate inferred conditions.
        save(if prove_within(request, module, &saved).is_ok() { &saved } else { &options })?;
    }
    let test = |(number, finding): (usize, &GridFinding)| {
        let stop = start_limit(RacePhase::SmallestTest);
        let mut test =
            crate::minimize::minimize_race(module, &options, model, Budget::until(&*stop), finding)?;
        test.name = format!("{}-{}", test.name, number + 1);
        Some(test)
    };
    let tested_findings = report.findings.iter().enumerate().filter(|_| request.creates_tests);
    let mut tests: Vec<Option<Test>> = tested_findings.map(test).collect();
    let mut findings = report.findings.clone();
    let is_proved = proof.as_ref().is_some_and(|proof| proof.is_proved);
    // Inferred conditions may exclude what the unreached lines are for, and these may be for more workgroups than a proof
    // assumes.
    let is_for_every_input = request.proofs == ProofMode::Required;
    // A proof answers what unreached lines and divergent branches leave open; its conditions exclude a race by share.
    let is_answered = |need: &NeededInput| match &need.finding {
        Some(found) => is_disproof(found) || found.cause == FindingCause::BeyondAssumedSize,
        None => is_for_every_input && !need.lines.is_empty(),
    };
    let is_answered = report.verdict == RaceVerdict::NeedsInputs
        // Inputs that show an open race violate the given conditions, if these are all that a proof needs.
        && (is_given || !report.open_findings.iter().any(is_disproof))
        && !report.needs.is_empty()
        && report.needs.iter().all(is_answered)
        // A proof for the assumed grid does not exclude a finding of a wider one.
        && !report.limits.iter().any(|limit| matches!(limit, walk::CoverageLimit::WiderGrid(_)));
    let is_stopped = report.verdict == RaceVerdict::Undecided && request.proofs == ProofMode::Required;
    if is_proved && (report.is_open_by_share || is_answered || is_stopped) {
        report.verdict = RaceVerdict::Clean;
        report.needs.clear();
    }
    // The line still names the limit that ended the walk.
    let refusal = report.refusal.clone().filter(|_| !(is_proved && is_stopped));
    let needs = report.needs.clone();
    let mut line = race_line(file, module, &options, report.clone());
    if let Some(proof) = proof.filter(|_| !report.findings.iter().any(is_disproof)) {
        add_proof(&mut line, module, &proof, request.proofs);
        if line.proof.is_none() && line.verdict == RaceVerdict::Clean {
            line.counterexample = counterexample;
        }
        if let Some(published) = line.proof.as_mut().filter(|_| !proof.counterexamples.is_empty()) {
            let walk = replay(module, &with_limit(RacePhase::Walks), &proof.counterexamples);
            published.counterexample = walk.map_or_else(Vec::new, |walk| walk.inputs);
        }
    }
    if request.searches_fixes {
        let walked = WalkedSource {
            module: module.clone(),
            options: options.clone(),
            further_options,
            report,
            line: line.clone(),
        };
        add_all_fixes(request, requested, walked, time_checks, &mut line);
    }
    if let Some(count) = undefined_findings {
        line.findings.truncate(count);
        findings.truncate(count);
        tests.truncate(count);
    }
    if !request.creates_tests {
        group_by_cause(&mut line.findings, &mut findings);
    }
    Ok(EntryAnswer { line, refusal, options, needs, findings, tests })
}

/// Adds the fixes of findings: changes of the module, or edits of the source if there is one.
fn add_all_fixes(
    request: &AnalysisRequest<'_>,
    requested: &AnalysisOptions,
    mut walked: WalkedSource,
    time_checks: u64,
    line: &mut RaceLine,
) {
    let file = request.file;
    let stop = (request.start_limit)(RacePhase::Fixes);
    let fixes = fix_walk_findings(&walked.module, &walked.options, &walked.report, &*stop);
    add_fixes(line, &walked.module, &fixes);
    let Some(source) = request.source.filter(|_| !request.creates_tests && !line.findings.is_empty()) else {
        return;
    };
    walked.line = line.clone();
    let most_checks = MIN_CHECKS_OF_CANDIDATE + time_checks.saturating_mul(2);
    // A report that replaced the one of the walks has no count.
    let is_limited = walked.report.model.is_none() && time_checks > 0;
    let walk = |bytes: &[u8]| {
        let module = entry_point::inputs::read_bound_module(bytes, requested).ok()?;
        // With other inputs, too, a change may let invocations wait for each other without end.
        let (stop, checks) = (stop.clone(), AtomicU64::new(0));
        let stop: StopFunction =
            Arc::new(move || is_limited && checks.fetch_add(1, Ordering::Relaxed) > most_checks || stop());
        let InputChoiceReport { report, options, further_options, .. } =
            walk_entry(request, &module, requested, &stop).ok()?;
        let line = race_line(file, &module, &options, report.clone());
        Some(WalkedSource { module, options, further_options, report, line })
    };
    let most = walked.report.steps.saturating_mul(FACTOR_OF_CANDIDATE).max(MIN_STEPS_OF_CANDIDATE);
    let limit = stop.clone();
    let deadline = Some(DeadlinePredicate::new(move || limit()));
    let find = |bytes: &[u8], inputs: &AnalysisOptions, is_decisive: &dyn Fn(&FindingRecord) -> bool| {
        let schedules = inputs.schedules.or(Some(walk::DEFAULT_SCHEDULES));
        let options = AnalysisOptions { deadline: deadline.clone(), schedules, ..inputs.clone() };
        let module = entry_point::inputs::read_bound_module(bytes, &options).ok()?;
        let is_decisive = |found: &GridFinding| is_decisive(&finding_record(file, &module, found));
        let report = analyze_until(&module, &options, most, &is_decisive).ok()?;
        let is_limit = report.refusal.as_ref().is_some_and(|refusal| refusal.what.is_limit());
        if report.findings.is_empty() && is_limit && report.schedules <= 1 {
            return None;
        }
        Some(race_line(file, &module, &options, report))
    };
    let refute = |bytes: &[u8]| {
        let module = entry_point::inputs::read_bound_module(bytes, requested).ok();
        let module = module.filter(|_| request.proofs != ProofMode::None)?;
        let proof = prove_before_walks(request, &module, requested)?;
        let limited = limited_options(request, requested, RacePhase::Fixes);
        let walk = replay(&module, &limited, proof.counterexamples.iter().filter(|_| !proof.is_proved))?;
        Some(walk.report.findings.iter().map(|found| finding_record(file, &module, found)).collect())
    };
    let refute = |bytes: &[u8]| refute(bytes).unwrap_or_default();
    let walks = RepairWalks { analyze: &walk, walk_with_inputs: &find, refute: &refute };
    repair_source(line, walked, source, walks, &stop);
}

/// An entry point by the rules of its source language.
struct LanguageView {
    module: SpirvModule,
    options: AnalysisOptions,
    choice: InputChoiceReport,
    /// The findings with the inputs for which the module races; `None` if it cannot be analysed.
    where_racy: Option<Vec<GridFinding>>,
}

impl LanguageView {
    /// Returns true if nothing is found with the inputs for which the module races.
    fn is_free_where_racy(&self) -> bool {
        self.where_racy.as_ref().is_some_and(Vec::is_empty)
    }
}

/// Walks an entry point by the rules of its source language, if they change the module.
///
/// # Errors
/// Returns the reason why it cannot be analysed.
fn walk_by_language(
    request: &AnalysisRequest<'_>,
    module: &SpirvModule,
    requested: &AnalysisOptions,
    racing: &AnalysisOptions,
    stop: &StopFunction,
) -> Option<Result<LanguageView, Refusal>> {
    requested.language?;
    let module = module.by_language_rules(requested.hlsl)?;
    let options = AnalysisOptions { by_language_rules: true, ..requested.clone() };
    let racing = AnalysisOptions { by_language_rules: true, ..racing.clone() };
    let where_racy = analyze_grid(&module, &racing).ok().map(|report| report.findings);
    let choice = walk_entry(request, &module, &options, stop);
    Some(choice.map(|choice| LanguageView { module, options, choice, where_racy }))
}

/// Adds a proof, or the places that it leaves open, to the line of an entry point without a finding.
fn add_proof(line: &mut RaceLine, module: &SpirvModule, proof: &ProofReport, mode: ProofMode) {
    let is_open = matches!(line.verdict, RaceVerdict::Clean | RaceVerdict::NeedsInputs);
    if line.verdict == RaceVerdict::Racy && !proof.is_proved || !is_open && mode != ProofMode::Required {
        return;
    }
    line.unproved = proof
        .unproved
        .iter()
        .map(|unproved| {
            let (file, number) = source_location(&line.file, module, unproved.line, unproved.place);
            UnprovedPlace { file: Some(file), line: number, reason: unproved.reason.to_string() }
        })
        .collect();
    if !proof.is_proved {
        if mode == ProofMode::Required
            && matches!(line.verdict, RaceVerdict::Clean | RaceVerdict::NeedsInputs)
        {
            line.verdict = RaceVerdict::Undecided;
        }
        return;
    }
    // Other findings do not contradict that there is no race.
    if matches!(line.verdict, RaceVerdict::Clean | RaceVerdict::Racy) {
        if line.verdict == RaceVerdict::Clean {
            line.inputs = CoveredInputs::Every;
        }
        let ProofReport { grid, conditions, assumptions, solver, .. } = proof.clone();
        let counterexample = Vec::new();
        line.proof = Some(RaceProof { grid, conditions, counterexample, assumptions, solver });
    }
}

/// Chooses the missing inputs of an entry point, and walks it.
///
/// # Errors
/// Returns the reason why it cannot be analysed.
fn walk_entry(
    request: &AnalysisRequest<'_>,
    module: &SpirvModule,
    options: &AnalysisOptions,
    stop: &StopFunction,
) -> Result<InputChoiceReport, Refusal> {
    let AnalysisRequest { model, start_limit, .. } = *request;
    entry_point::question::check_claim(module, options)?;
    let time_checks = Arc::new(AtomicU64::new(0));
    let with_limit = |phase| {
        let (limit, stop, checks) = (start_limit(phase), stop.clone(), time_checks.clone());
        AnalysisOptions {
            deadline: Some(DeadlinePredicate::new(move || {
                checks.fetch_add(1, Ordering::Relaxed);
                limit() || stop()
            })),
            ..options.clone()
        }
    };
    let search_options = with_limit(RacePhase::InputSearch);
    let mut choice =
        crate::choose::choose_inputs(module, &search_options, request.inputs, InputGrid::Chosen)?;
    if !options.conditions.is_empty() {
        // The proof refuses values that contradict its conditions.
        choice.retain_choices(|chosen| prove_entry(module, chosen, None, PROOF_STEPS).is_ok());
    }
    let options = with_limit(RacePhase::Walks);
    let limit = start_limit(RacePhase::Model);
    let budget = || limit() || stop();
    let report = crate::decide::decide_choice(module, &options, &choice, model, Budget::until(&budget))?;
    Ok(InputChoiceReport { time_checks: time_checks.load(Ordering::Relaxed), ..report })
}
