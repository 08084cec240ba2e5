//! `race`: the time limits of the analysis, and findings as pages.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use answers::{EditableSource, FixEdits, RacePhase, RaceQuestion, StopFunction, find_races};
use explanation::{ShaderAnswer, ShaderFinding, ShaderPlace};
use frontend::{AnalysisOptions, FindingKind, InputMode};
use litmus::Test;
use model::Model;
use results::wire::{FindingPlace, FindingRecord, MendRecord, NeededRecord, RaceLine};

use crate::patience::{patience, patience_once_asked};

/// Converts an answer to the data of an HTML page.
pub fn page_of(line: &RaceLine) -> ShaderAnswer {
    let covers = Some(&line.coverage.words).filter(|words| !words.is_empty());
    let covers = covers.map(|words| format!("For {words}."));
    let needs = line.needs.iter().map(NeededRecord::to_sentence);
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
        fixes: finding.mend.iter().map(MendRecord::format_with_position).collect(),
        diff: diff_of(&finding.mend),
    };
    ShaderAnswer { title, verdict, notes, findings: findings.iter().map(finding).collect() }
}

/// Returns a fix as a unified diff, if all of its changes are edits of one file that can be read.
fn diff_of(changes: &[MendRecord]) -> Option<String> {
    let mut diffs = FixDiffs::default();
    diffs.add(changes);
    Some(diffs.text()).filter(|text| !text.is_empty())
}

/// The fixes of many findings as diffs of their files.
#[derive(Debug, Default)]
pub struct FixDiffs(BTreeMap<String, (String, FixEdits)>);

impl FixDiffs {
    /// Adds a fix. Returns false if not all of its changes are edits of one file that can be read.
    pub fn add(&mut self, changes: &[MendRecord]) -> bool {
        self.try_add(changes).is_some()
    }

    fn try_add(&mut self, changes: &[MendRecord]) -> Option<()> {
        let file = changes.first()?.file.as_deref()?;
        let text = match self.0.get(file) {
            Some((text, _)) => text.clone(),
            None => std::fs::read_to_string(file).ok()?,
        };
        let edits = answers::fix_edits(changes, |other| other.as_deref() == Some(file), &text)?;
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
    /// The source of the module, which fixes may change.
    pub source: Option<EditableSource<'a>>,
}

/// Analyses each entry point of a module, or the one in `options`. Returns each line with the litmus tests of
/// its findings.
pub fn lines(
    file: &str,
    module: &[u8],
    options: &AnalysisOptions,
    model: &Model,
    asked: RaceOptions<'_>,
) -> Vec<(RaceLine, Vec<Option<Test>>)> {
    let start_limit = |phase: RacePhase| -> StopFunction {
        match phase {
            RacePhase::InputSearch => Arc::new(patience(asked.walks / SEARCH_PART)),
            RacePhase::Walks | RacePhase::Fixes => Arc::new(patience(asked.walks)),
            RacePhase::Model => Arc::new(patience_once_asked(asked.model)),
            RacePhase::SmallestTest => Arc::new(patience(asked.model)),
        }
    };
    let save = |path: &Path, options: &AnalysisOptions| {
        let case = frontend::inputs::write_case_file(options);
        std::fs::write(path, case).map_err(|error| format!("{}: {error}", path.display()))
    };
    let save = asked.save_case.map(|path| move |options: &AnalysisOptions| save(path, options));
    find_races(RaceQuestion {
        file,
        module,
        options,
        inputs: asked.inputs,
        model,
        start_limit: &start_limit,
        creates_tests: asked.smallest,
        source: asked.source,
        warn: &|warning| tracing::warn!("{warning}"),
        save_inputs: save.as_ref().map(|save| save as &dyn Fn(&AnalysisOptions) -> Result<(), String>),
    })
}
