//! `race`: interprets whole grids of user shaders and publishes the findings.
//!
//! Limits are callbacks, because the playground has no clock and counts calls instead.

use std::fmt;
use std::sync::Arc;

use frontend::grid::{GridFinding, GridReport, GridSpot, GridVerdict, NeededInput, analyze_grid};
use frontend::{
    AnalysisOptions, DeadlinePredicate, InputChoiceReport, InputGrid, InputMode, Refusal, SourcePosition,
    SpirvModule, WiderGridFinding, fix_walk_findings,
};
use litmus::Test;
use model::{Budget, Model};
use prove::ProofReport;
use results::wire::{
    CoverageLimit, CoveredGrid, CoveredInputs, CoveredSchedules, FindingPlace, FindingRecord, NeededRecord,
    RACE_SCHEMA, RaceCoverage, RaceLine, RaceProof, RaceVerdict, RaceWitness, ScheduleReason, UnprovedPlace,
};
use results::write::race::{describe_limit, describe_need};

use crate::fix::add_fixes;
use crate::limit::StopFunction;
use crate::proof::{prove_entry, replay};
use crate::repair::{EditableSource, RepairWalks, WalkedSource, repair_source};
use crate::shader::{
    EntryOptions, entry_options, invalid_use_texts, placed_refusal_text, source_location, source_refusal_text,
};

/// A function that stores the inputs of an entry point.
pub type SaveInputs<'a> = dyn Fn(&AnalysisOptions) -> Result<(), String> + 'a;

/// A phase of the analysis with a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RacePhase {
    /// The search for missing inputs.
    InputSearch,
    /// The interpretation of the grid on every schedule.
    Walks,
    /// The prediction of the model for a small grid. It may start long after its limit was created.
    Model,
    /// The litmus test of one finding.
    SmallestTest,
    /// The search for fixes.
    Fixes,
}

/// The options for the entry points of a shader.
#[derive(Clone, Copy)]
pub struct RaceQuestion<'a> {
    /// The name of the module in answers.
    pub file: &'a str,
    /// The SPIR-V, as binary or text.
    pub module: &'a [u8],
    pub options: &'a AnalysisOptions,
    /// The source of missing inputs.
    pub inputs: InputMode,
    /// The model that decides questions that schedules leave open.
    pub model: &'a Model,
    /// Starts the limit of a phase, since this crate has no clock.
    pub start_limit: &'a dyn Fn(RacePhase) -> StopFunction,
    /// True to create a litmus test for each finding that has one.
    pub creates_tests: bool,
    /// True to prove race freedom for every input, and to report a shader without a finding or a proof as undecided.
    pub proves: bool,
    /// The source that the module was compiled from, if fixes may be edits of it.
    pub source: Option<EditableSource<'a>>,
    pub warn: &'a dyn Fn(String),
    /// Stores the inputs that were used; an error refuses the entry point.
    pub save_inputs: Option<&'a SaveInputs<'a>>,
}

impl fmt::Debug for RaceQuestion<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RaceQuestion").field("file", &self.file).field("options", self.options).finish()
    }
}

/// Analyses each entry point of a shader, or the one in the options: `race`. Each line has the litmus tests
/// of its findings.
pub fn find_races(question: RaceQuestion<'_>) -> Vec<(RaceLine, Vec<Option<Test>>)> {
    let RaceQuestion { file, options, .. } = question;
    let refused_entry = |why: String| vec![(refused_line(file, "", options, why), Vec::new())];
    let module = match frontend::read_bound_module(question.module, options) {
        Ok(module) => module,
        Err(why) => return refused_entry(placed_refusal_text(file, &why)),
    };
    let entries = match entry_options(&module, options) {
        Ok(EntryOptions { entries, unused }) => {
            unused.iter().for_each(|unused| (question.warn)(format!("{file}: unused input: {unused}")));
            entries
        }
        Err(why) => return refused_entry(placed_refusal_text(file, &why)),
    };
    invalid_use_texts(file, &module).into_iter().for_each(question.warn);
    let analyze_entry = |options: AnalysisOptions| {
        find_entry_races(question, &module, &options).unwrap_or_else(|why| {
            (refused_line(file, options.entry.as_deref().unwrap_or_default(), &options, why), Vec::new())
        })
    };
    entries.into_iter().map(analyze_entry).collect()
}

/// Analyses one entry point.
///
/// # Errors
/// Returns the reason why it cannot be analysed.
fn find_entry_races(
    question: RaceQuestion<'_>,
    module: &SpirvModule,
    requested: &AnalysisOptions,
) -> Result<(RaceLine, Vec<Option<Test>>), String> {
    let RaceQuestion { file, model, start_limit, .. } = question;
    let no_limit: StopFunction = Arc::new(|| false);
    let InputChoiceReport { mut report, mut options } = walk_entry(question, module, requested, &no_limit)
        .map_err(|refusal| source_refusal_text(file, module, &refusal))?;
    let is_open = matches!(report.verdict, GridVerdict::Clean | GridVerdict::NeedsInputs);
    let proof = if is_open && question.proves { prove_entry(module, requested) } else { None };
    if let Some(proof) = &proof
        && !proof.is_proved
    {
        let limit = start_limit(RacePhase::Walks);
        let deadline = Some(DeadlinePredicate::new(move || limit()));
        if let Some(race) = replay(module, &AnalysisOptions { deadline, ..requested.clone() }, proof) {
            (report, options) = (race.report, race.options);
            let values = race.inputs.iter().map(|(name, value)| format!("{name} = {value}"));
            report.chosen_inputs = vec![values.collect()];
        }
    }
    if let Some(save) = question.save_inputs {
        save(&options)?;
    }
    let test = |(number, finding): (usize, &GridFinding)| {
        let stop = start_limit(RacePhase::SmallestTest);
        let mut test = frontend::minimize_race(module, &options, model, Budget::until(&*stop), finding)?;
        test.name = format!("{}-{}", test.name, number + 1);
        Some(test)
    };
    let tested_findings = report.findings.iter().enumerate().filter(|_| question.creates_tests);
    let tests = tested_findings.map(test).collect();
    let stop = start_limit(RacePhase::Fixes);
    let fixes = fix_walk_findings(module, &options, &report, &*stop);
    let mut line = race_line(file, module, &options, report.clone());
    if let Some(proof) = proof {
        add_proof(&mut line, module, proof);
    }
    add_fixes(&mut line, module, &fixes);
    if let Some(source) = question.source.filter(|_| !question.creates_tests && !line.findings.is_empty()) {
        let walk = |bytes: &[u8]| {
            let module = frontend::read_bound_module(bytes, requested).ok()?;
            let InputChoiceReport { report, options } =
                walk_entry(question, &module, requested, &stop).ok()?;
            let line = race_line(file, &module, &options, report.clone());
            Some(WalkedSource { module, options, report, line })
        };
        let limit = stop.clone();
        let deadline = Some(DeadlinePredicate::new(move || limit()));
        let find = |bytes: &[u8], inputs: &AnalysisOptions| {
            let options = AnalysisOptions { deadline: deadline.clone(), ..inputs.clone() };
            let module = frontend::read_bound_module(bytes, &options).ok()?;
            let report = analyze_grid(&module, &options).ok()?;
            Some(race_line(file, &module, &options, report))
        };
        let first = WalkedSource { module: module.clone(), options, report, line: line.clone() };
        repair_source(
            &mut line,
            first,
            source,
            RepairWalks { analyze: &walk, walk_with_inputs: &find },
            &stop,
        );
    }
    if !question.creates_tests {
        group_by_cause(&mut line.findings);
    }
    Ok((line, tests))
}

/// Adds a proof, or the places that it leaves open, to the line of an entry point without a finding.
fn add_proof(line: &mut RaceLine, module: &SpirvModule, proof: ProofReport) {
    line.unproved = proof
        .unproved
        .iter()
        .map(|unproved| {
            let (file, number) = source_location(&line.file, module, unproved.line, unproved.place);
            UnprovedPlace { file: Some(file), line: number, reason: unproved.reason.to_string() }
        })
        .collect();
    if line.verdict == RaceVerdict::Racy {
        return;
    }
    if !proof.is_proved {
        let reason = line.unproved.first().map(|place| {
            let file = place.file.as_deref().unwrap_or(&line.file);
            let number = place.line.map_or_else(String::new, |number| format!("{number}:"));
            format!("{file}:{number} not proved for every input: {}", place.reason)
        });
        (line.verdict, line.why) = (RaceVerdict::Undecided, reason);
        return;
    }
    let is_needed_for_lines = !line.needs.is_empty() && line.needs.iter().all(|need| !need.lines.is_empty());
    if line.verdict == RaceVerdict::NeedsInputs && is_needed_for_lines {
        line.verdict = RaceVerdict::Clean;
        line.needs.clear();
    }
    if line.verdict == RaceVerdict::Clean {
        let condition = match proof.conditions.as_slice() {
            [] => String::new(),
            conditions => format!(" if {}", conditions.join(" and ")),
        };
        let assumed = proof.assumptions.join("; ");
        let text = format!("race-free for every grid and input{condition} (assumed: {assumed})");
        line.coverage.limits.push(CoverageLimit::Note { text });
        line.inputs = CoveredInputs::Every;
        let ProofReport { conditions, assumptions, .. } = proof;
        line.proof = Some(RaceProof { conditions, assumptions, solver: "batsat".to_owned() });
    }
}

/// Chooses the missing inputs of an entry point, and walks it.
///
/// # Errors
/// Returns the reason why it cannot be analysed.
fn walk_entry(
    question: RaceQuestion<'_>,
    module: &SpirvModule,
    options: &AnalysisOptions,
    stop: &StopFunction,
) -> Result<InputChoiceReport, Refusal> {
    let RaceQuestion { model, start_limit, .. } = question;
    frontend::check_claim(module, options)?;
    let with_limit = |phase| {
        let (limit, stop) = (start_limit(phase), stop.clone());
        AnalysisOptions {
            deadline: Some(DeadlinePredicate::new(move || limit() || stop())),
            ..options.clone()
        }
    };
    let search_options = with_limit(RacePhase::InputSearch);
    let choice = frontend::choose_inputs(module, &search_options, question.inputs, InputGrid::Chosen)?;
    let options = with_limit(RacePhase::Walks);
    let limit = start_limit(RacePhase::Model);
    let budget = || limit() || stop();
    frontend::judge_choice(module, &options, &choice, model, Budget::until(&budget))
}

/// Returns the line for an entry point that cannot be analysed, with the reason.
pub fn refused_line(file: &str, entry: &str, options: &AnalysisOptions, why: String) -> RaceLine {
    RaceLine {
        schema: RACE_SCHEMA.to_owned(),
        file: file.to_owned(),
        entry: entry.to_owned(),
        grid: options.grid.unwrap_or([1; 3]),
        workgroups: options.workgroups.clone(),
        local_size: None,
        subgroup_size: options.subgroup_size.unwrap_or_default(),
        verdict: RaceVerdict::Refused,
        why: Some(why),
        cause: None,
        language: None,
        compiler: None,
        inputs: CoveredInputs::Given,
        proof: None,
        unproved: Vec::new(),
        language_verdict: None,
        module_verdict: Some(RaceVerdict::Refused),
        findings: Vec::new(),
        coverage: RaceCoverage::default(),
        needs: Vec::new(),
        order_dependent: None,
        lints: Vec::new(),
    }
}

/// Converts a report to its published line.
pub fn race_line(
    file: &str,
    module: &SpirvModule,
    options: &AnalysisOptions,
    report: GridReport,
) -> RaceLine {
    let verdict = match report.verdict {
        GridVerdict::Racy => RaceVerdict::Racy,
        GridVerdict::Clean => RaceVerdict::Clean,
        GridVerdict::Undecided => RaceVerdict::Undecided,
        GridVerdict::NeedsInputs => RaceVerdict::NeedsInputs,
    };
    let coverage = race_coverage(&report);
    let record = |found: &GridFinding| {
        let assumed = found.inputs.iter().filter_map(|index| options.assumed.get(*index));
        let inputs = assumed.map(|input| (input.name.clone(), input.describe_value(options)));
        FindingRecord { inputs: inputs.collect(), ..finding_record(file, module, found) }
    };
    RaceLine {
        grid: report.grid,
        local_size: Some(report.local_size),
        subgroup_size: report.subgroup_size,
        verdict,
        why: report.refusal.as_ref().map(|refusal| source_refusal_text(file, module, refusal)),
        language: module.language.map(|language| language.name().to_owned()),
        inputs: if coverage.inputs.is_empty() { CoveredInputs::Given } else { CoveredInputs::Chosen },
        module_verdict: Some(verdict),
        findings: report.findings.iter().map(record).collect(),
        coverage,
        needs: report.needs.into_iter().map(|needed| needed_record(file, module, needed)).collect(),
        order_dependent: report.order_dependent_element,
        workgroups: report.workgroups,
        ..refused_line(file, &report.entry, options, String::new())
    }
}

/// Converts the scope of a report to its published record.
fn race_coverage(report: &GridReport) -> RaceCoverage {
    let workgroups = report.grid.iter().fold(1, |all: u64, count| all.saturating_mul(u64::from(*count)));
    let running = (!report.workgroups.is_empty()).then_some(report.workgroups.len() as u64);
    let workgroup_size: u64 = report.local_size.iter().map(|size| u64::from(*size)).product();
    let model = report.model.as_ref();
    let reason = match report.is_schedule_dependent {
        false if report.has_partial_subgroups => Some(ScheduleReason::PartialSubgroups),
        false => None,
        true if report.has_unordered_interlock => Some(ScheduleReason::Interlock),
        true => Some(ScheduleReason::Atomics),
    };
    RaceCoverage {
        inputs: report.chosen_inputs.clone(),
        grid: Some(CoveredGrid {
            invocations: model.map_or_else(
                || running.unwrap_or(workgroups).saturating_mul(workgroup_size),
                |model| model.invocations as u64,
            ),
            workgroups,
            running,
            workgroup_size,
            invocations_of_stage: report.stage.describe_count(report.grid),
        }),
        schedules: Some(CoveredSchedules {
            every: reason.is_none(),
            explored: report.schedules,
            steps: report.steps,
            reason,
            model: model.map(|model| model.name.clone()),
        }),
        engine: Some(if model.is_some() { RaceWitness::Model } else { RaceWitness::Walk }),
        limits: report.limits.iter().cloned().map(coverage_limit).collect(),
    }
}

/// Converts a limit of a report to its published record.
pub fn coverage_limit(limit: frontend::CoverageLimit) -> CoverageLimit {
    match limit {
        frontend::CoverageLimit::Note(text) => CoverageLimit::Note { text },
        frontend::CoverageLimit::Unreached(lines) => CoverageLimit::Unreached { lines },
        frontend::CoverageLimit::WiderGrid(WiderGridFinding { grid, message, .. }) => {
            CoverageLimit::WiderGrid { grid, message }
        }
        frontend::CoverageLimit::OneWorkgroup => CoverageLimit::OneWorkgroup,
        frontend::CoverageLimit::GridSearchCutOff => CoverageLimit::GridSearchCutOff,
    }
}

/// Describes a finding with another grid than the assumed one.
pub fn describe_wider_grid(found: WiderGridFinding) -> String {
    describe_limit(&coverage_limit(frontend::CoverageLimit::WiderGrid(found)))
}

/// Converts an input on which the answer depends to its published record.
pub fn needed_record(file: &str, module: &SpirvModule, input: NeededInput) -> NeededRecord {
    let NeededInput { name, value, option, lines, line, finding, .. } = input;
    let finding = finding.map(|found| finding_record(file, module, &found));
    let at = (line > 0).then(|| {
        let (file, line) = source_location(file, module, line, SourcePosition::Module);
        FindingPlace { file: Some(file), line, invocation: None, workgroup: None, access: None }
    });
    NeededRecord { name, value, option, lines, finding, at }
}

/// Formats an input on which an answer depends as a sentence.
pub fn needed_sentence(input: NeededInput) -> String {
    let NeededInput { name, value, option, lines, .. } = input;
    describe_need(&NeededRecord { name, value, option, lines, finding: None, at: None })
}

/// Merges findings of one kind and variable that the same fix removes.
fn group_by_cause(findings: &mut Vec<FindingRecord>) {
    let variable = |finding: &FindingRecord| {
        let element = finding.element.as_deref().unwrap_or_default();
        element.split(['[', '.']).next().unwrap_or_default().to_owned()
    };
    let mut groups: Vec<(FindingRecord, usize)> = Vec::new();
    for finding in findings.drain(..) {
        let is_same_group = |known: &FindingRecord| {
            known.kind == finding.kind
                && known.change == finding.change
                && variable(known) == variable(&finding)
        };
        match groups.iter_mut().find(|(known, _)| finding.change.is_some() && is_same_group(known)) {
            Some((_, more)) => *more += 1,
            None => groups.push((finding, 0)),
        }
    }
    findings.extend(groups.into_iter().map(|(mut finding, more)| {
        if more > 0 {
            let pairs = if more == 1 { "pair of lines has" } else { "pairs of lines have" };
            finding.message += &format!("; {more} more {pairs} the same cause and fix");
        }
        finding
    }));
}

/// Converts a finding to its published record.
pub fn finding_record(file: &str, module: &SpirvModule, finding: &GridFinding) -> FindingRecord {
    let finding_place = |spot: &GridSpot| {
        let (source, line) = source_location(file, module, spot.line, spot.place);
        FindingPlace {
            file: Some(source),
            line,
            invocation: Some(spot.invocation.to_string()),
            workgroup: Some(spot.invocation.workgroup),
            access: spot.writes.map(|writes| if writes { "write" } else { "read" }.to_owned()),
        }
    };
    let places = finding.at.iter().map(finding_place).collect();
    FindingRecord {
        cause: Some(finding.cause.name().to_owned()),
        element: Some(finding.element.clone()).filter(|element| !element.is_empty()),
        ..FindingRecord::new(finding.kind.name(), finding.message.clone(), places)
    }
}
