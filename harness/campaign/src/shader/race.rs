//! `race`: interprets whole grids of user shaders and publishes the findings.

use std::time::Duration;

use explanation::{ShaderAnswer, ShaderFinding, ShaderPlace};
use frontend::grid::{GridFinding, GridReport, GridSpot, GridVerdict};
use frontend::{
    AnalysisOptions, KernelChange, Refusal, SourcePosition, SpirvModule, Until, WalkFixes, fix_walk_findings,
};
use litmus::Test;
use model::{Budget, Model};
use results::wire::{
    FindingPlace, FindingRecord, MendRecord, RACE_SCHEMA, RaceCoverage, RaceLine, RaceVerdict, RaceWitness,
};

use super::source::{SourceError, SourceModule};
use super::{entries, placed, told};
use crate::patience::{patience, patience_once_asked};

/// Converts an answer to the data of an HTML page.
pub fn page_of(line: &RaceLine) -> ShaderAnswer {
    let covers = Some(&line.coverage.words).filter(|words| !words.is_empty());
    let covers = covers.map(|words| format!("For {words}."));
    let notes = covers.into_iter().chain(line.why.clone()).collect();
    shown(
        format!("{} {}", line.file, line.entry),
        line.verdict.to_string(),
        notes,
        &line.findings,
        &line.file,
    )
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
        let who = place.invocation.as_deref().map(|who| format!(" by invocation {who}")).unwrap_or_default();
        ShaderPlace {
            what: format!("{}{who}", place.access.as_deref().unwrap_or("reached")),
            source: std::fs::read_to_string(&file).ok(),
            file,
            line: place.line,
        }
    };
    let finding = |finding: &FindingRecord| ShaderFinding {
        kind: finding.kind.clone(),
        message: finding.message.clone(),
        places: finding.at.iter().map(place).collect(),
        mend: finding.mend.iter().map(MendRecord::placed).collect(),
    };
    ShaderAnswer { title, verdict, notes, findings: findings.iter().map(finding).collect() }
}

/// The options for an entry point.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// Time limit for interpreting the grid.
    pub walks: Duration,
    /// Time limit for the model, and again for fixes.
    pub model: Duration,
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
    asked: Asked,
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
        let options = AnalysisOptions { deadline: Some(Until::new(patience(asked.walks))), ..options };
        let stop = patience_once_asked(asked.model);
        let report = match frontend::judge(&module, &options, model, Budget::until(&stop)) {
            Ok(report) => report,
            Err(refusal) => {
                return refused(
                    options.entry.as_deref().unwrap_or_default(),
                    worded(file, &module, &refusal),
                );
            }
        };
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

fn refused(file: &str, entry: &str, options: &AnalysisOptions, why: String) -> RaceLine {
    RaceLine {
        schema: RACE_SCHEMA.to_owned(),
        file: file.to_owned(),
        entry: entry.to_owned(),
        grid: options.grid.unwrap_or([1; 3]),
        local_size: None,
        subgroup_size: options.subgroup_size.unwrap_or_default(),
        verdict: RaceVerdict::Refused,
        why: Some(why),
        findings: Vec::new(),
        coverage: RaceCoverage::default(),
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
        },
        why: report.refusal.map(|refusal| worded(file, module, &refusal)),
        findings: report.findings.iter().map(|found| record(file, module, found)).collect(),
        coverage: RaceCoverage {
            words: report.coverage,
            by: Some(if report.decided_by_model { RaceWitness::Model } else { RaceWitness::Walk }),
            invocations,
            every_order: !report.is_schedule_dependent,
            orders: report.schedules,
            steps: report.steps,
        },
    }
}

/// Adds the fixes to their findings.
fn mend(line: &mut RaceLine, module: &SpirvModule, mends: &WalkFixes) {
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
