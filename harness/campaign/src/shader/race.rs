//! `race`: interprets whole grids of user shaders and publishes the findings.

use std::path::Path;
use std::time::Duration;

use explanation::{ShaderAnswer, ShaderFinding, ShaderPlace};
use frontend::grid::{GridFinding, GridReport, GridSpot, GridVerdict, NeededInput};
use frontend::{
    AnalysisOptions, FindingKind, InputGrid, InputMode, Judged, KernelChange, Refusal, SourcePosition,
    SpirvModule, Until, WalkFixes, fix_walk_findings,
};
use litmus::Test;
use model::{Budget, Model};
use results::wire::{
    FindingPlace, FindingRecord, MendRecord, NeededRecord, RACE_SCHEMA, RaceCoverage, RaceLine, RaceVerdict,
    RaceWitness,
};

use super::source::{SourceError, SourceModule};
use super::{entries, placed, told};
use crate::patience::{patience, patience_once_asked};

/// Converts an answer to the data of an HTML page.
pub fn page_of(line: &RaceLine) -> ShaderAnswer {
    let covers = Some(&line.coverage.words).filter(|words| !words.is_empty());
    let covers = covers.map(|words| format!("For {words}."));
    let needs = line.needs.iter().map(NeededRecord::sentence);
    let order = line.order_dependent.iter().map(|element| format!("Order-dependent: {element}"));
    let notes = covers.into_iter().chain(line.why.clone()).chain(needs).chain(order).collect();
    shown(format!("{} {}", line.file, line.entry), line.headline(), notes, &line.findings, &line.file)
}

/// Converts findings to the data of an HTML page, with the source files that can be read.
pub fn shown(
    title: String,
    verdict: String,
    notes: Vec<String>,
    findings: &[FindingRecord],
    file: &str,
) -> ShaderAnswer {
    let place = |place: &FindingPlace| {
        let file = place.file.clone().unwrap_or_else(|| file.to_owned());
        ShaderPlace {
            access: place.access.clone(),
            invocation: place.invocation.clone(),
            source: std::fs::read_to_string(&file).ok(),
            file,
            line: place.line,
        }
    };
    let races =
        [FindingKind::Race, FindingKind::Lockstep, FindingKind::UnpublishedRead].map(FindingKind::name);
    let finding = |finding: &FindingRecord| ShaderFinding {
        kind: finding.kind.clone(),
        is_race: races.contains(&finding.kind.as_str()),
        message: finding.message.clone(),
        places: finding.at.iter().map(place).collect(),
        reason: None,
        mend: finding.mend.iter().map(MendRecord::placed).collect(),
        diff: None,
    };
    ShaderAnswer { title, verdict, notes, findings: findings.iter().map(finding).collect() }
}

/// The part of the time that the search for inputs may take.
const SEARCH_PART: u32 = 4;

/// The options for an entry point.
#[derive(Clone, Copy, Debug)]
pub struct RaceOptions<'a> {
    /// Time limit for interpreting the grid.
    pub walks: Duration,
    /// Time limit for the model, and again for fixes.
    pub model: Duration,
    /// How missing inputs are supplied.
    pub inputs: InputMode,
    /// The file for a case with the inputs of the first entry point.
    pub save_case: Option<&'a Path>,
    /// Also creates a litmus test for each finding that has one.
    pub smallest: bool,
}

/// Analyses each entry point of a shader, or the one in `options`. Returns each line with the litmus tests of
/// its findings.
pub fn lines(
    file: &str,
    shader: Result<SourceModule, SourceError>,
    options: &AnalysisOptions,
    model: &Model,
    asked: RaceOptions<'_>,
) -> Vec<(RaceLine, Vec<Option<Test>>)> {
    let refused = |entry: &str, why: String| vec![(refused(file, entry, options, why), Vec::new())];
    let shader = match shader {
        Ok(shader) => shader,
        Err(why) => return refused("", why.to_string()),
    };
    let module = match frontend::read_module(&shader.bytes) {
        Ok(module) => module,
        Err(why) => return refused("", told(file, &why)),
    };
    let entries = match entries(file, &module, options) {
        Ok(entries) => entries,
        Err(why) => return refused("", told(file, &why)),
    };
    if entries.is_empty() {
        return refused("", format!("{file}: {}", module.no_entry_point()));
    }
    let judged = |options: AnalysisOptions| {
        if let Err(refusal) = frontend::check_claim(&module, &options) {
            return refused(options.entry.as_deref().unwrap_or_default(), worded(file, &module, &refusal));
        }
        let within = |time: Duration| AnalysisOptions {
            deadline: Some(Until::new(patience(time))),
            ..options.clone()
        };
        let searched = within(asked.walks / SEARCH_PART);
        let choice = frontend::choose_inputs(&module, &searched, asked.inputs, InputGrid::Chosen);
        let options = within(asked.walks);
        let stop = patience_once_asked(asked.model);
        let judged = choice.and_then(|choice| {
            frontend::judge_choice(&module, &options, &choice, model, Budget::until(&stop))
        });
        let Judged { report, options, .. } = match judged {
            Ok(judged) => judged,
            Err(refusal) => {
                return refused(
                    options.entry.as_deref().unwrap_or_default(),
                    worded(file, &module, &refusal),
                );
            }
        };
        if let Some(path) = asked.save_case {
            let case = frontend::inputs::write_case_file(&options);
            if let Err(error) = std::fs::write(path, case) {
                let why = format!("{}: {error}", path.display());
                return refused(options.entry.as_deref().unwrap_or_default(), why);
            }
        }
        let test = |(number, finding): (usize, &GridFinding)| {
            let stop = patience(asked.model);
            let mut test = frontend::smallest(&module, &options, model, Budget::until(&stop), finding)?;
            test.name = format!("{}-{}", test.name, number + 1);
            Some(test)
        };
        let wanted = report.findings.iter().enumerate().filter(|_| asked.smallest);
        let tests = wanted.map(test).collect();
        let mends = fix_walk_findings(&module, &options, &report, &patience(asked.walks));
        let mut line = answered(file, &module, report);
        mend(&mut line, &module, &mends);
        if !asked.smallest {
            group_by_cause(&mut line.findings);
        }
        vec![(line, tests)]
    };
    entries.into_iter().flat_map(judged).collect()
}

/// Formats a refusal with the source file of its line.
pub(super) fn worded(file: &str, module: &SpirvModule, refusal: &Refusal) -> String {
    let source = match refusal.place {
        SourcePosition::Line(line) => module.file_of(line),
        SourcePosition::Word(_) | SourcePosition::Module => None,
    };
    told(source.unwrap_or(file), refusal)
}

/// Returns the line of an entry point that is not analysed, with the reason.
pub fn refused(file: &str, entry: &str, options: &AnalysisOptions, why: String) -> RaceLine {
    RaceLine {
        schema: RACE_SCHEMA.to_owned(),
        file: file.to_owned(),
        entry: entry.to_owned(),
        grid: options.grid.unwrap_or([1; 3]),
        local_size: None,
        subgroup_size: options.subgroup_size.unwrap_or_default(),
        verdict: RaceVerdict::Refused,
        why: Some(why),
        cause: None,
        compiler: None,
        findings: Vec::new(),
        coverage: RaceCoverage::default(),
        needs: Vec::new(),
        order_dependent: None,
        lints: Vec::new(),
    }
}

/// Converts a report to its published line.
pub fn answered(file: &str, module: &SpirvModule, report: GridReport) -> RaceLine {
    let invocations = report.grid.iter().chain(&report.local_size).map(|count| u64::from(*count)).product();
    RaceLine {
        schema: RACE_SCHEMA.to_owned(),
        file: file.to_owned(),
        entry: report.entry,
        grid: report.grid,
        local_size: Some(report.local_size),
        subgroup_size: report.subgroup_size,
        verdict: match report.verdict {
            GridVerdict::Racy => RaceVerdict::Racy,
            GridVerdict::Clean => RaceVerdict::Clean,
            GridVerdict::Undecided => RaceVerdict::Undecided,
            GridVerdict::NeedsInputs => RaceVerdict::NeedsInputs,
        },
        why: report.refusal.map(|refusal| worded(file, module, &refusal)),
        cause: None,
        compiler: None,
        findings: report.findings.iter().map(|found| record(file, module, found)).collect(),
        coverage: RaceCoverage {
            words: report.coverage,
            by: Some(if report.decided_by_model { RaceWitness::Model } else { RaceWitness::Walk }),
            invocations,
            every_order: !report.is_schedule_dependent && !report.has_partial_subgroups,
            orders: report.schedules,
            steps: report.steps,
        },
        needs: report.needs.into_iter().map(needed).collect(),
        order_dependent: report.order_dependent,
        lints: Vec::new(),
    }
}

/// Converts an input that the answer depends on to its published record.
pub fn needed(input: NeededInput) -> NeededRecord {
    let NeededInput { name, value, option, lines, .. } = input;
    NeededRecord { name, value, option, lines }
}

/// Merges findings of one kind about one variable that the same fix removes.
fn group_by_cause(findings: &mut Vec<FindingRecord>) {
    let variable = |found: &FindingRecord| {
        let name = found.message.split('`').nth(1).unwrap_or_default();
        name.split(['[', '.']).next().unwrap_or_default().to_owned()
    };
    let mut groups: Vec<(FindingRecord, usize)> = Vec::new();
    for found in findings.drain(..) {
        let same = |known: &FindingRecord| {
            known.kind == found.kind && known.mend == found.mend && variable(known) == variable(&found)
        };
        match groups.iter_mut().find(|(known, _)| !found.mend.is_empty() && same(known)) {
            Some((_, more)) => *more += 1,
            None => groups.push((found, 0)),
        }
    }
    findings.extend(groups.into_iter().map(|(mut found, more)| {
        if more > 0 {
            let pairs = if more == 1 { "pair of lines has" } else { "pairs of lines have" };
            found.message += &format!("; {more} more {pairs} the same cause and fix");
        }
        found
    }));
}

/// Adds the fixes to their findings.
pub fn mend(line: &mut RaceLine, module: &SpirvModule, mends: &WalkFixes) {
    for (finding, changes) in line.findings.iter_mut().zip(&mends.of) {
        let change = |change: &KernelChange| {
            let (file, number) = placed(&line.file, module, change.line, change.place);
            MendRecord { file: Some(file), line: number, text: change.text.clone() }
        };
        finding.mend = changes.iter().map(change).collect();
    }
}

/// Converts a finding to its published record.
pub fn record(file: &str, module: &SpirvModule, found: &GridFinding) -> FindingRecord {
    let place = |spot: &GridSpot| {
        let (source, line) = placed(file, module, spot.line, spot.place);
        FindingPlace {
            file: Some(source),
            line,
            invocation: Some(spot.invocation.to_string()),
            access: spot.access.map(|writes| if writes { "write" } else { "read" }.to_owned()),
        }
    };
    let at = found.at.iter().map(place).collect();
    FindingRecord::new(found.kind.name(), found.message.clone(), at)
}
