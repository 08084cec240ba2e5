//! `race`: the time limits of the analysis, and findings as pages.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use analysis::{AnalysisRequest, EntryAnswer, InputMode, ProofMode, RacePhase, SmtSolver};
use entry_point::{AnalysisOptions, FindingKind, StopFunction};
use explanation::{ShaderAnswer, ShaderFinding};
use model::Model;
use repair::{EditableSource, FixEdits};
use results::wire::{ChangeRecord, FindingPlace, FindingRecord, NeededRecord, RaceLine};
use results::write::race::{
    OpenFinding, describe_coverage, describe_need, describe_proof, headline, open_findings,
};

use crate::files;
use crate::shader::smt_solver::InstalledSolver;
use crate::time_limit::{stop_after, stop_after_first_call};

/// Converts an answer to the data of an HTML page.
pub fn to_page(line: &RaceLine) -> ShaderAnswer {
    let proof = describe_proof(line);
    let covers = describe_coverage(line).map(|words| format!("For {words}."));
    let needs = line.needs.iter().filter(|needed| needed.finding.is_none()).map(describe_need);
    let order = line.order_dependent.iter().map(|element| format!("Order-dependent: {element}"));
    let notes = proof.into_iter().chain(covers).chain(line.why.clone()).chain(needs).chain(order).collect();
    let title = format!("{} {}", line.file, line.entry);
    let mut page = findings_page(title, headline(line), notes, &line.findings, &line.file);
    page.findings.extend(open_page_findings(&line.needs, &line.file));
    page
}

/// Converts the findings that inputs decide to those of an HTML page, with the options to copy.
pub fn open_page_findings(needs: &[NeededRecord], file: &str) -> Vec<ShaderFinding> {
    let page_finding = |open: &OpenFinding<'_>| {
        let options: Vec<String> = open.describe_options().collect();
        ShaderFinding {
            heading: format!("{} for some inputs", open.finding.kind),
            reason: Some(format!("{}.", options.join("; "))),
            ..page_finding(open.finding, file)
        }
    };
    open_findings(needs).iter().map(page_finding).collect()
}

/// Converts findings to the data of an HTML page, with the source files that can be read.
pub fn findings_page(
    title: String,
    verdict: String,
    notes: Vec<String>,
    findings: &[FindingRecord],
    file: &str,
) -> ShaderAnswer {
    let findings = findings.iter().map(|finding| page_finding(finding, file)).collect();
    ShaderAnswer { title, verdict, notes, findings }
}

/// Converts a finding to that of an HTML page.
fn page_finding(finding: &FindingRecord, file: &str) -> ShaderFinding {
    let source = |place: &FindingPlace| {
        let name = place.file.as_deref().unwrap_or(file);
        (name.to_owned(), files::read_named_source(name, file))
    };
    let race_kinds =
        [FindingKind::Race, FindingKind::Lockstep, FindingKind::UnpublishedRead].map(FindingKind::name);
    ShaderFinding {
        heading: finding.kind.clone(),
        is_race: race_kinds.contains(&finding.kind.as_str()),
        sources: finding.at.iter().map(source).collect(),
        reason: None,
        diff: fix_diff(finding.changes(), file),
        record: finding.clone(),
    }
}

/// Returns a fix as a unified diff, if all of its changes are edits of one file that can be read.
fn fix_diff(changes: &[ChangeRecord], input: &str) -> Option<String> {
    let mut diffs = FixDiffs::default();
    diffs.add_fix(changes, input);
    Some(diffs.text()).filter(|text| !text.is_empty())
}

/// The fixes of many findings as diffs of their files.
#[derive(Debug, Default)]
pub struct FixDiffs(BTreeMap<String, (String, FixEdits)>);

impl FixDiffs {
    /// Adds a fix of the shader `input`. Returns false if not all of its changes are edits of one file that can be
    /// read.
    pub fn add_fix(&mut self, changes: &[ChangeRecord], input: &str) -> bool {
        self.try_add(changes, input).is_some()
    }

    fn try_add(&mut self, changes: &[ChangeRecord], input: &str) -> Option<()> {
        let file = changes.first()?.file.as_deref()?;
        let text = match self.0.get(file) {
            Some((text, _)) => text.clone(),
            None => files::read_named_source(file, input)?,
        };
        let edits = repair::fix_edits(changes, |other| other.as_deref() == Some(file), &text)?;
        let (_, known) = self.0.entry(file.to_owned()).or_insert_with(|| (text, FixEdits::default()));
        // Fixes of several entry points may change the same lines in different ways.
        if known.conflicts_with(&edits) {
            return None;
        }
        known.merge(edits);
        Some(())
    }

    /// Returns the unified diffs, one for each file, for `patch -p0`.
    pub fn text(&self) -> String {
        self.0.iter().map(|(file, (text, edits))| edits.to_unified_diff(file, text)).collect()
    }
}

/// The part of the time that the search for inputs may take.
const SEARCH_TIME_DIVISOR: u32 = 4;

/// The part of the time that walks leave to the proof.
const PROOF_TIME_DIVISOR: u32 = 8;

/// The options of an analysis.
#[derive(Clone, Copy, Debug)]
pub struct RaceOptions<'a> {
    /// Time limit for the choice of inputs, the walks and the proof together, and again for fixes.
    pub walk_timeout: Duration,
    /// Time limit for the model.
    pub model_timeout: Duration,
    /// The end of every phase.
    pub ends: Option<Instant>,
    /// How missing inputs are supplied.
    pub inputs: InputMode,
    /// The file for a case with the inputs of the first entry point.
    pub case_file: Option<&'a Path>,
    /// Also creates a litmus test for each finding that has one.
    pub with_smallest_tests: bool,
    /// The use of proofs for every grid and input.
    pub proofs: ProofMode,
    /// An installed solver for what the built-in one leaves open.
    pub solver: Option<&'a InstalledSolver>,
    /// Searches for the fixes of findings.
    pub with_fixes: bool,
    /// The source of the module, which fixes may change.
    pub source: Option<EditableSource<'a>>,
}

impl<'a> RaceOptions<'a> {
    /// Returns the options of an analysis without tests, proofs and fixes, within a time limit.
    pub fn new(timeout: Duration, inputs: InputMode) -> RaceOptions<'a> {
        RaceOptions {
            walk_timeout: timeout,
            model_timeout: timeout,
            ends: None,
            inputs,
            case_file: None,
            with_smallest_tests: false,
            proofs: ProofMode::None,
            solver: None,
            with_fixes: false,
            source: None,
        }
    }

    /// Calls a function with the request of these options.
    pub(crate) fn with_request<T>(
        &self,
        file: &str,
        model: &Model,
        analyze: impl FnOnce(&AnalysisRequest<'_>) -> T,
    ) -> T {
        let start_limit = |phase: RacePhase| -> StopFunction {
            let stop: StopFunction = match phase {
                RacePhase::InputSearch => Arc::new(stop_after(self.walk_timeout / SEARCH_TIME_DIVISOR)),
                RacePhase::EntryWalks => Arc::new(stop_after(
                    self.walk_timeout.saturating_sub(self.walk_timeout / PROOF_TIME_DIVISOR),
                )),
                RacePhase::Entry | RacePhase::Walks | RacePhase::Proof | RacePhase::Fixes => {
                    Arc::new(stop_after(self.walk_timeout))
                }
                RacePhase::Model => Arc::new(stop_after_first_call(self.model_timeout)),
                RacePhase::SmallestTest => Arc::new(stop_after(self.model_timeout)),
            };
            match self.ends {
                Some(ends) => Arc::new(move || Instant::now() >= ends || stop()),
                None => stop,
            }
        };
        let save = |path: &Path, options: &AnalysisOptions| {
            let case = entry_point::inputs::write_case_file(options);
            std::fs::write(path, case).map_err(|error| format!("{}: {error}", path.display()))
        };
        let save = self.case_file.map(|path| move |options: &AnalysisOptions| save(path, options));
        let solver = self.solver;
        let run = |script: &str| solver.map_or_else(|| Ok(String::new()), |solver| solver.run(script));
        analyze(&AnalysisRequest {
            file,
            inputs: self.inputs,
            model,
            start_limit: &start_limit,
            creates_tests: self.with_smallest_tests,
            proofs: self.proofs,
            solver: solver.map(|solver| SmtSolver { name: &solver.name, run: &run }),
            searches_fixes: self.with_fixes,
            source: self.source,
            save_inputs: save.as_ref().map(|save| save as &dyn Fn(&AnalysisOptions) -> Result<(), String>),
        })
    }
}

/// Analyzes each entry point of a module, or the one in `options`.
pub fn analyze_module(
    file: &str,
    module: &[u8],
    options: &AnalysisOptions,
    model: &Model,
    race_options: RaceOptions<'_>,
) -> Vec<EntryAnswer> {
    race_options.with_request(file, model, |request| {
        analysis::analyze_module(request, module, options, &|warning| tracing::warn!("{warning}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_ends_every_phase() -> Result<(), Box<dyn std::error::Error>> {
        let model = Model::shipped("vulkan").ok_or("no such model")??;
        let options = RaceOptions::new(Duration::from_secs(3600), InputMode::Auto);
        for (ends, expected) in [(None, false), (Some(Instant::now()), true)] {
            let options = RaceOptions { ends, ..options };
            let is_over = |phase| options.with_request("", &model, |request| (request.start_limit)(phase)());
            assert_eq!([RacePhase::Walks, RacePhase::Model].map(is_over), [expected; 2]);
        }
        Ok(())
    }
}
