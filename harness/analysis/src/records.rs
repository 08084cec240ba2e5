//! Reports of walks as published lines.

use entry_point::{AnalysisOptions, source_location};
use results::wire::{
    CoverageLimit, CoveredGrid, CoveredInputs, CoveredSchedules, FindingPlace, FindingRecord, NeededRecord,
    RACE_SCHEMA, RaceCoverage, RaceLine, RaceVerdict, RaceWitness, ScheduleReason,
};
use results::write::race::describe_need;
use spirv_reader::{CodePlace, ShaderLanguage, SourcePosition, SpirvModule};
use walk::{GridFinding, GridReport, GridSpot, NeededInput, WiderGridFinding, variable_of_element};

use crate::contents::all_contents;
use crate::entry_options::{refusal_record, source_refusal_text};

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
        rejected: None,
        cause: None,
        language: None,
        compiler: None,
        inputs: CoveredInputs::Given,
        proof: None,
        unproved: Vec::new(),
        counterexample: Vec::new(),
        language_verdict: None,
        race_free_executions: Vec::new(),
        module_verdict: Some(RaceVerdict::Refused),
        findings: Vec::new(),
        coverage: RaceCoverage::default(),
        needs: Vec::new(),
        order_dependent: None,
        contents: Vec::new(),
        trace: None,
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
    let verdict = report.verdict;
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
        rejected: report.refusal.as_ref().map(|refusal| refusal_record(file, Some(module), refusal)),
        language: module.language.map(|language| match language {
            ShaderLanguage::Hlsl => options.hlsl.describe_language(language.name()),
            _ => language.name().to_owned(),
        }),
        inputs: if coverage.inputs.is_empty() { CoveredInputs::Given } else { CoveredInputs::Chosen },
        module_verdict: Some(verdict),
        findings: report.findings.iter().map(record).collect(),
        coverage,
        needs: report.needs.into_iter().map(|needed| needed_record(file, module, needed)).collect(),
        order_dependent: report.order_dependent_element,
        contents: all_contents(module, options, &report.final_buffers),
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
        _ if report.verdict == RaceVerdict::Undecided && report.refusal.is_some() => {
            Some(ScheduleReason::Limit)
        }
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
            finding: report.finding_schedule,
            steps: report.steps,
            reason,
            model: model.map(|model| model.name.clone()),
            executions: model.map(|model| model.executions).filter(|count| *count > 0),
        }),
        engine: Some(if model.is_some() { RaceWitness::Model } else { RaceWitness::Walk }),
        limits: report.limits.iter().cloned().map(coverage_limit).collect(),
    }
}

/// Converts a limit of a report to its published record.
fn coverage_limit(limit: walk::CoverageLimit) -> CoverageLimit {
    match limit {
        walk::CoverageLimit::Note(text) => CoverageLimit::Note { text },
        walk::CoverageLimit::Unreached(lines) => CoverageLimit::Unreached { lines },
        walk::CoverageLimit::WiderGrid(WiderGridFinding { grid, finding }) => {
            CoverageLimit::WiderGrid { grid, message: finding.message }
        }
        walk::CoverageLimit::OneWorkgroup => CoverageLimit::OneWorkgroup,
        walk::CoverageLimit::GridSearchCutOff => CoverageLimit::GridSearchCutOff,
    }
}

/// Converts an input on which the answer depends to its published record.
pub fn needed_record(file: &str, module: &SpirvModule, input: NeededInput) -> NeededRecord {
    let NeededInput { name, value, option, lines, place, finding, .. } = input;
    let finding = finding.map(|found| finding_record(file, module, &found));
    let at = place.map(|place| {
        let (line, place) = match place {
            CodePlace::Source(line) => (line, SourcePosition::Module),
            CodePlace::Module(place) => (0, place),
        };
        let (file, line) = source_location(file, module, line, place);
        FindingPlace {
            file: Some(file),
            line,
            instruction: None,
            invocation: None,
            workgroup: None,
            access: None,
        }
    });
    NeededRecord { name, value, option, lines, finding, at }
}

/// Formats an input on which an answer depends as a sentence.
pub fn needed_sentence(input: NeededInput) -> String {
    let NeededInput { name, value, option, lines, .. } = input;
    describe_need(&NeededRecord { name, value, option, lines, finding: None, at: None })
}

/// Merges findings of one kind and variable that the same fix removes.
pub(crate) fn group_by_cause(findings: &mut Vec<FindingRecord>, placed: &mut Vec<GridFinding>) {
    let variable = |finding: &FindingRecord| {
        variable_of_element(finding.element.as_deref().unwrap_or_default()).to_owned()
    };
    let mut groups: Vec<(FindingRecord, usize)> = Vec::new();
    let mut kept = Vec::new();
    for (finding, place) in findings.drain(..).zip(placed.drain(..)) {
        let is_same_group = |known: &FindingRecord| {
            known.kind == finding.kind
                && known.change == finding.change
                && variable(known) == variable(&finding)
        };
        match groups.iter_mut().find(|(known, _)| finding.change.is_some() && is_same_group(known)) {
            Some((_, more)) => *more += 1,
            None => {
                groups.push((finding, 0));
                kept.push(place);
            }
        }
    }
    *placed = kept;
    findings.extend(groups.into_iter().map(|(mut finding, more)| {
        if more > 0 {
            let pairs = if more == 1 { "pair of lines has" } else { "pairs of lines have" };
            finding.message += &format!("; {more} more {pairs} the same cause and fix");
        }
        finding
    }));
}

/// Converts a position to its published record.
pub fn finding_place(file: &str, module: &SpirvModule, spot: &GridSpot) -> FindingPlace {
    let (source, line) = source_location(file, module, spot.line, spot.place);
    FindingPlace {
        file: Some(source),
        line,
        instruction: line.is_none().then(|| module.describe_instruction(spot.place)).flatten(),
        invocation: Some(spot.invocation.to_string()),
        workgroup: Some(spot.invocation.workgroup),
        access: spot.writes.map(|writes| if writes { "write" } else { "read" }.to_owned()),
    }
}

/// Converts a finding to its published record.
pub(crate) fn finding_record(file: &str, module: &SpirvModule, finding: &GridFinding) -> FindingRecord {
    let places = finding.at.iter().map(|spot| finding_place(file, module, spot)).collect();
    FindingRecord {
        cause: Some(finding.cause.name().to_owned()),
        element: Some(finding.element.clone()).filter(|element| !element.is_empty()),
        ..FindingRecord::new(finding.kind.name(), finding.message.clone(), places)
    }
}
