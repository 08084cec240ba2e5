//! Fixes of findings as edits of the shader's source, each verified by compiling and walking the changed
//! text.
//!
//! The search is greedy: it takes a finding, tries candidate edits, cheapest first, and keeps the first text
//! that has fewer findings and no new ones. A candidate whose new findings are barriers in divergent control
//! flow, races or uninitialized reads may be completed by a second and third edit. A few schedules with the
//! inputs of the finding refute most candidates. The others are analysed as a call for the changed file
//! would, which chooses missing inputs again. The search is bounded and may miss a fix; a fix that it returns
//! removes the finding for these inputs.

mod barriers;
mod divergence;
mod edit;
mod expression;
mod finding;
mod invocations;
mod text;
mod update;
mod wgsl_atomic;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::fix::{adds_divergent_barrier, fix_walk_finding};
use entry_point::{AnalysisOptions, StopFunction};
use results::wire::{ChangeRecord, EditRecord, FindingRecord, RaceLine, RaceVerdict, ShaderChange};
use similar::{DiffTag, TextDiff};
use spirv_reader::{ShaderLanguage, SpirvModule};
use walk::GridReport;

use crate::record::change_record;
use edit::SourceFix;
use finding::{LineKey, RepairTarget, finding_key, is_among, line_keys, variable_key};
use text::ShaderText;

/// Upper bound on the changed texts of one entry point.
const MAX_TRIALS: usize = 80;
/// Upper bound on the findings that are fixed one after another.
const MAX_ROUNDS: usize = 8;
/// Upper bound on the edits that complete a candidate.
const MAX_COMPLETIONS: usize = 2;
/// Upper bound on the candidates of one finding that are completed.
const MAX_INCOMPLETE: usize = 3;

/// The source of a shader, which fixes change.
#[derive(Clone, Copy)]
pub struct EditableSource<'a> {
    /// The text.
    pub text: &'a str,
    /// Compiles a changed text to SPIR-V; `None` if the compiler refuses it.
    pub compile: &'a dyn Fn(&str) -> Option<Vec<u8>>,
}

impl std::fmt::Debug for EditableSource<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EditableSource").field("text", &self.text).finish_non_exhaustive()
    }
}

/// The analysis of one text.
#[derive(Clone, Debug)]
pub struct WalkedSource {
    pub module: SpirvModule,
    pub options: AnalysisOptions,
    /// Other inputs that show further findings of the report.
    pub further_options: Vec<AnalysisOptions>,
    pub report: GridReport,
    pub line: RaceLine,
}

/// A walk of a module with some inputs until a finding satisfies a predicate; `None` if it has no answer in as many steps
/// as several walks of the unchanged module take.
pub type InputWalk<'a> =
    dyn Fn(&[u8], &AnalysisOptions, &dyn Fn(&FindingRecord) -> bool) -> Option<RaceLine> + 'a;

/// Walks the entry point of a module.
#[derive(Clone, Copy)]
pub struct RepairWalks<'a> {
    /// Analyses the entry point as a new call would.
    pub analyze: &'a dyn Fn(&[u8]) -> Option<WalkedSource>,
    /// Walks a few schedules with these inputs, until a finding satisfies the predicate.
    pub walk_with_inputs: &'a InputWalk<'a>,
    /// Returns the findings for the inputs of a proof's counterexamples.
    pub refute: &'a dyn Fn(&[u8]) -> Vec<FindingRecord>,
}

/// Searches edits for the findings of an entry point. Edits that are found replace the fixes of the module.
pub fn repair_source(
    line: &mut RaceLine,
    walked: WalkedSource,
    source: EditableSource<'_>,
    walks: RepairWalks<'_>,
    stop: &StopFunction,
) {
    let file = line.file.clone();
    let mut search = RepairSearch {
        file: &file,
        source,
        walks,
        stop,
        trials: 0,
        texts: BTreeSet::new(),
        is_atomic_pass: false,
    };
    let first = RepairState { text: source.text.to_owned(), walked };
    let fixes = search.fix_all_findings(first.clone());
    publish_fixes(line, &first, &fixes);
}

/// A text with its analysis.
#[derive(Clone, Debug)]
struct RepairState {
    text: String,
    walked: WalkedSource,
}

impl RepairState {
    fn language(&self) -> ShaderLanguage {
        self.walked.module.language.unwrap_or(ShaderLanguage::Glsl)
    }

    fn findings(&self) -> &[FindingRecord] {
        &self.walked.line.findings
    }

    /// Counts the findings of each kind and variable.
    fn count_findings(&self) -> FindingCounts {
        let mut counts = FindingCounts::new();
        for finding in self.findings() {
            *counts.entry(finding_key(finding)).or_default() += 1;
        }
        counts
    }

    /// Returns the keys of findings that chosen inputs or the assumed grid decide.
    fn open_keys(&self) -> BTreeSet<(String, String)> {
        let open = self.walked.report.open_findings.iter();
        open.map(|found| variable_key(found.kind.name(), &found.element)).collect()
    }

    /// Returns the key of the finding with two workgroups, if no grid is given.
    fn wider_grid_key(&self) -> Option<(String, String)> {
        let wider = self.walked.report.two_workgroup_finding.as_ref()?;
        Some(variable_key(wider.finding.kind.name(), &wider.finding.element))
    }

    fn line_keys(&self) -> Vec<LineKey> {
        line_keys(&self.text, self.findings())
    }
}

/// The number of findings of each kind and variable.
type FindingCounts = BTreeMap<(String, String), usize>;

/// Returns true if fewer findings have the kind and variable of the one that a change should remove.
fn has_fewer_findings(after: &FindingCounts, before: &FindingCounts, removed: &LineKey) -> bool {
    let key = (removed.0.clone(), removed.1.clone());
    after.get(&key) < before.get(&key)
}

/// A change of the text.
#[derive(Clone, Debug)]
struct RepairStep {
    changes: Vec<(u32, ShaderChange)>,
    before: String,
    state: RepairState,
}

/// The steps that remove a finding.
#[derive(Clone, Debug)]
enum FoundRepair {
    /// At least one edit; each changes the text after the previous one.
    Edits(Vec<RepairStep>),
    /// A fix that edits cannot express, in words.
    InWords(Box<RepairStep>),
}

impl FoundRepair {
    fn steps(&self) -> &[RepairStep] {
        match self {
            FoundRepair::Edits(steps) => steps,
            FoundRepair::InWords(step) => std::slice::from_ref(step),
        }
    }
}

/// A candidate that compiles and is not refuted by a few schedules with the inputs of the finding.
struct Candidate {
    fix: SourceFix,
    text: String,
    module: Vec<u8>,
    /// True if the final contents depend on the schedule without a race.
    is_order_dependent: bool,
}

/// The outcome of one candidate.
enum Trial {
    /// The candidate removes the finding and adds none.
    Improved(RepairState),
    /// The candidate removes the finding and adds others.
    Incomplete(RepairState),
    Useless,
}

struct RepairSearch<'a> {
    file: &'a str,
    source: EditableSource<'a>,
    walks: RepairWalks<'a>,
    stop: &'a StopFunction,
    trials: usize,
    /// The texts that were tried.
    texts: BTreeSet<String>,
    /// True while the candidates are those that make accesses atomic without ordering them.
    is_atomic_pass: bool,
}

impl RepairSearch<'_> {
    fn is_exhausted(&self) -> bool {
        self.trials >= MAX_TRIALS || (self.stop)()
    }

    /// Fixes the findings one after another.
    fn fix_all_findings(&mut self, first: RepairState) -> Vec<FoundRepair> {
        let mut fixes: Vec<FoundRepair> = Vec::new();
        let mut unfixable: BTreeSet<LineKey> = BTreeSet::new();
        let mut state = first;
        for _ in 0..MAX_ROUNDS {
            let keys = state.line_keys();
            let priority = |finding: &FindingRecord| match finding.kind.as_str() {
                "divergent-barrier" => 0,
                "race" | "lockstep" | "unpublished-read" => 1,
                _ => 2,
            };
            let candidates = (0..keys.len()).filter(|index| !unfixable.contains(&keys[*index]));
            let Some(target) = candidates.min_by_key(|index| priority(&state.findings()[*index])) else {
                break;
            };
            if let Some(steps) = self.fix_finding(&state, target, &state, MAX_COMPLETIONS)
                && let Some(last) = steps.last()
            {
                state = last.state.clone();
                fixes.push(FoundRepair::Edits(steps));
                // A finding without a fix may have one in the new text.
                unfixable.clear();
            } else if let Some(step_in_words) = self.find_fix_in_words(&state, target) {
                fixes.push(FoundRepair::InWords(Box::new(step_in_words)));
                unfixable.extend(keys.into_iter().filter(|key| key.0 == "race"));
            } else {
                self.is_atomic_pass = true;
                let found = self.fix_finding(&state, target, &state, 0);
                self.is_atomic_pass = false;
                match found.and_then(|steps| Some((steps.last()?.state.clone(), steps))) {
                    Some((last, steps)) => {
                        state = last;
                        fixes.push(FoundRepair::Edits(steps));
                    }
                    None => {
                        unfixable.insert(keys[target].clone());
                    }
                }
            }
            if state.findings().is_empty() || self.is_exhausted() {
                break;
            }
        }
        fixes
    }

    /// Returns the steps that remove a finding and make the text better than `base`.
    fn fix_finding(
        &mut self,
        state: &RepairState,
        target: usize,
        base: &RepairState,
        completions: usize,
    ) -> Option<Vec<RepairStep>> {
        let parsed = ShaderText::parse(state.language(), &state.text);
        let finding = state.findings().get(target)?;
        let target_finding = RepairTarget::from_finding(self.file, finding)?;
        let removed = state.line_keys().into_iter().nth(target)?;
        let mut better: Option<RepairStep> = None;
        let mut incomplete = Vec::new();
        let step = |fix: &SourceFix, changed: RepairState| RepairStep {
            changes: fix.changes.clone(),
            before: state.text.clone(),
            state: changed,
        };
        let mut queue = VecDeque::from(self.list_candidates(&parsed, state, target, &target_finding));
        // Candidates whose final contents depend on the schedule are tried last.
        let mut postponed = VecDeque::new();
        while let Some((Candidate { fix, text, module, .. }, is_postponed)) =
            self.next_candidate(&mut queue, &mut postponed, state, &removed)
        {
            match self.try_candidate(text, &module, state, base, &removed) {
                Trial::Improved(changed) => {
                    let is_ordered = is_postponed || changed.walked.line.order_dependent.is_none();
                    if changed.findings().is_empty() && is_ordered {
                        return Some(vec![step(&fix, changed)]);
                    }
                    let is_fewer = better
                        .as_ref()
                        .is_none_or(|known| changed.findings().len() < known.state.findings().len());
                    if is_fewer {
                        better = Some(step(&fix, changed));
                    }
                }
                Trial::Incomplete(changed) if incomplete.len() < MAX_INCOMPLETE => {
                    incomplete.push((fix, changed))
                }
                Trial::Incomplete(_) | Trial::Useless => {}
            }
        }
        if let Some(better) = better {
            return Some(vec![better]);
        }
        if completions > 0 {
            for (fix, changed) in incomplete {
                let known = base.count_findings();
                let new = changed.findings().iter().position(|found| {
                    let key = finding_key(found);
                    changed.count_findings().get(&key) > known.get(&key)
                });
                let Some(new) = new else { continue };
                if let Some(rest) = self.fix_finding(&changed, new, base, completions - 1) {
                    let mut all = vec![step(&fix, changed)];
                    all.extend(rest);
                    return Some(all);
                }
            }
        }
        None
    }

    /// Returns the candidates for a finding, cheapest first.
    fn list_candidates(
        &self,
        parsed: &ShaderText,
        state: &RepairState,
        target: usize,
        finding: &RepairTarget,
    ) -> Vec<SourceFix> {
        let mut fixes = Vec::new();
        if self.is_atomic_pass {
            fixes.extend(
                invocations::make_accesses_atomic(parsed, finding).filter(|_| finding.kind == "race"),
            );
            return fixes;
        }
        if finding.kind == "divergent-barrier" {
            if let Some(line) = finding.lines.first() {
                fixes.extend(divergence::divergence_fixes(parsed, *line));
            }
            return fixes;
        }
        if finding.is_race() {
            let WalkedSource { module, options, report, line, .. } = &state.walked;
            let changes = match state.text == self.source.text {
                true => line.findings.get(target).map(|found| found.changes().to_vec()).unwrap_or_default(),
                false => {
                    let found = fix_walk_finding(module, options, report, target, &**self.stop);
                    found.iter().map(|change| change_record(self.file, module, change)).collect()
                }
            };
            fixes.extend(barriers::place_changes(parsed, finding, &changes));
            fixes.extend(barriers::separate_statements(parsed, finding));
            fixes.extend(update::update_fixes(parsed, finding));
            fixes.extend(barriers::replace_barriers(parsed, finding));
            fixes.extend(invocations::separate_rounds(parsed, finding));
            if finding.is_write_only {
                fixes.extend(invocations::restrict_to_one_writer(parsed, finding));
            }
        }
        if finding.kind == "uninitialised-read" {
            fixes.extend(invocations::initialize_shared(parsed, finding));
            fixes.extend(barriers::replace_barriers(parsed, finding));
        }
        fixes
    }

    /// Returns the next candidate that a few schedules do not refute, and true if it was postponed.
    fn next_candidate(
        &mut self,
        queue: &mut VecDeque<SourceFix>,
        postponed: &mut VecDeque<Candidate>,
        state: &RepairState,
        removed: &LineKey,
    ) -> Option<(Candidate, bool)> {
        while let Some(fix) = queue.pop_front() {
            match self.compile_candidate(fix, state, removed) {
                Some(candidate) if candidate.is_order_dependent => postponed.push_back(candidate),
                Some(candidate) => return Some((candidate, false)),
                None => {}
            }
        }
        postponed.pop_front().filter(|_| !(self.stop)()).map(|candidate| (candidate, true))
    }

    /// Compiles a change, and walks a few schedules with the inputs of the findings.
    fn compile_candidate(
        &mut self,
        fix: SourceFix,
        state: &RepairState,
        removed: &LineKey,
    ) -> Option<Candidate> {
        let text = fix.apply(&state.text).filter(|text| self.texts.insert(text.clone()))?;
        let module = self.compile_text(&text)?;
        let mut is_order_dependent = false;
        let WalkedSource { options, further_options, .. } = &state.walked;
        let is_removed = |found: &FindingRecord| {
            is_among(removed, &line_keys(&text, std::slice::from_ref(found)), &state.text)
        };
        for options in std::iter::once(options).chain(further_options) {
            let line = (self.walks.walk_with_inputs)(&module, options, &is_removed);
            // A change after which the walk does not end is refused, except if the model decided the unchanged shader.
            let is_refuted = match &line {
                Some(line) => line.findings.iter().any(is_removed),
                None => state.walked.report.model.is_none(),
            };
            if is_refuted {
                return None;
            }
            is_order_dependent |= line.is_some_and(|line| line.order_dependent.is_some());
        }
        Some(Candidate { fix, text, module, is_order_dependent })
    }

    /// Analyses a candidate.
    fn try_candidate(
        &mut self,
        text: String,
        module: &[u8],
        state: &RepairState,
        base: &RepairState,
        removed: &LineKey,
    ) -> Trial {
        let Some(changed) = self.analyze_text(text, module) else { return Trial::Useless };
        // Unreached code has no findings, so a candidate that adds unreached lines proves nothing.
        if changed.walked.report.count_unreached_lines() > state.walked.report.count_unreached_lines() {
            return Trial::Useless;
        }
        let (before, after, known) =
            (state.count_findings(), changed.count_findings(), base.count_findings());
        let variable = (removed.0.clone(), removed.1.clone());
        // Another set of inputs, or a second workgroup, may still show it.
        let known_open = base.open_keys();
        if changed.open_keys().iter().any(|key| !known_open.contains(key))
            || changed.wider_grid_key().as_ref() == Some(&variable)
        {
            return Trial::Useless;
        }
        // Atomics that leave a race on the variable would only hide a part of it.
        let is_partial = self.is_atomic_pass && after.contains_key(&variable);
        if is_partial
            || !has_fewer_findings(&after, &before, removed)
            || is_among(removed, &changed.line_keys(), &state.text)
        {
            return Trial::Useless;
        }
        let is_new =
            |(key, count): (&(String, String), &usize)| known.get(key).is_none_or(|known| known < count);
        if !after.iter().any(is_new) {
            let entry = state.walked.options.entry.as_deref();
            let is_refuted = adds_divergent_barrier(&base.walked.module, &changed.walked.module, entry)
                || is_among(removed, &line_keys(&changed.text, &(self.walks.refute)(module)), &state.text);
            return if is_refuted { Trial::Useless } else { Trial::Improved(changed) };
        }
        let completable = ["divergent-barrier", "uninitialised-read", "race"];
        let mut new_keys =
            after.iter().filter(|(key, count)| known.get(*key).is_none_or(|known| known < *count));
        if new_keys.all(|(key, _)| completable.contains(&key.0.as_str())) {
            return Trial::Incomplete(changed);
        }
        Trial::Useless
    }

    /// Compiles a text; `None` after `MAX_TRIALS` texts.
    fn compile_text(&mut self, text: &str) -> Option<Vec<u8>> {
        if self.is_exhausted() {
            return None;
        }
        self.trials += 1;
        (self.source.compile)(text)
    }

    fn analyze_text(&self, text: String, module: &[u8]) -> Option<RepairState> {
        let walked = (self.walks.analyze)(module)?;
        let is_complete =
            matches!(walked.line.verdict, RaceVerdict::Racy | RaceVerdict::Clean | RaceVerdict::NeedsInputs);
        is_complete.then_some(RepairState { text, walked })
    }

    /// Returns a fix in words, if the shader split at a barrier does not have the finding.
    fn find_fix_in_words(&mut self, state: &RepairState, target: usize) -> Option<RepairStep> {
        let finding = state.findings().get(target)?;
        let removed = finding_key(finding);
        let finding = RepairTarget::from_finding(self.file, finding)?;
        // A barrier suffices within a single workgroup.
        let grid = state.walked.report.grid.iter().fold(1_u32, |all, count| all.saturating_mul(*count));
        let parsed = ShaderText::parse(state.language(), &state.text);
        let (fix, parts) = barriers::split_dispatch(&parsed, &finding).filter(|_| grid > 1)?;
        for part in parts {
            let module = self.compile_text(&part)?;
            let changed = self.analyze_text(part, &module)?;
            if changed.count_findings().contains_key(&removed) {
                return None;
            }
        }
        Some(RepairStep { changes: fix.changes, before: state.text.clone(), state: state.clone() })
    }
}

/// Adds each fix to the findings that it removes.
fn publish_fixes(line: &mut RaceLine, first: &RepairState, fixes: &[FoundRepair]) {
    let parsed = ShaderText::parse(first.language(), &first.text);
    let keys = first.line_keys();
    let edits = fix_edits(first, fixes);
    let mut is_fixed = vec![false; line.findings.len()];
    let mut counts = first.count_findings();
    for (fix, edits) in fixes.iter().zip(edits) {
        let Some(last) = fix.steps().last() else { continue };
        let remaining_keys = last.state.line_keys();
        let previous = std::mem::replace(&mut counts, last.state.count_findings());
        let is_removed = |index: usize| match fix {
            FoundRepair::InWords(_) => keys[index].0 == "race",
            // An edit of its line changes the key of a finding that remains, but not their number.
            FoundRepair::Edits(_) => {
                !is_among(&keys[index], &remaining_keys, &first.text)
                    && has_fewer_findings(&counts, &previous, &keys[index])
            }
        };
        let record = |step: &RepairStep, (line_number, change): &(u32, ShaderChange)| ChangeRecord {
            file: Some(line.file.clone()),
            line: OriginLines::from_texts(&first.text, &step.before).nearest_original(*line_number),
            change: change.clone(),
            edits: edits.clone(),
        };
        let mut records: Vec<ChangeRecord> = Vec::new();
        for step in fix.steps() {
            for change in &step.changes {
                let record = record(step, change);
                if !records.contains(&record) {
                    records.push(record);
                }
            }
        }
        for (index, (finding, is_fixed)) in line.findings.iter_mut().zip(&mut is_fixed).enumerate() {
            if !*is_fixed && is_removed(index) {
                *is_fixed = true;
                finding.set_changes(records.clone());
            }
        }
    }
    let WalkedSource { module, report, .. } = &first.walked;
    let has_atomic_access =
        |index: usize| report.findings.get(index).is_some_and(|found| found.has_atomic_access(module));
    // A change of the module is removed if it is an edit of the source, which was refuted or not tried.
    for (index, finding) in line.findings.iter_mut().enumerate() {
        let is_placeable = || {
            RepairTarget::from_finding(&line.file, finding).is_some_and(|target| {
                !barriers::place_changes(&parsed, &target, finding.changes()).is_empty()
            })
        };
        // Atomics would hide a missing wait.
        let is_atomic = finding.changes().iter().any(|one| one.change == ShaderChange::MakeAccessesAtomic);
        let hides_missing_wait = is_atomic && !has_atomic_access(index);
        if !is_fixed[index] && finding.change.is_some() && (hides_missing_wait || is_placeable()) {
            finding.set_changes(Vec::new());
        }
    }
}

/// Returns the edits of each fix, with line numbers of the first text.
///
/// If one fix changes lines of another, every fix gets the edits of all.
fn fix_edits(first: &RepairState, fixes: &[FoundRepair]) -> Vec<Vec<EditRecord>> {
    let texts_before_and_after = |fix: &FoundRepair| match fix {
        FoundRepair::Edits(steps) => Some((steps.first()?.before.clone(), steps.last()?.state.text.clone())),
        FoundRepair::InWords(_) => None,
    };
    let separate: Option<Vec<Vec<EditRecord>>> = fixes
        .iter()
        .map(|fix| {
            let Some((before, after)) = texts_before_and_after(fix) else { return Some(Vec::new()) };
            let origin = OriginLines::from_texts(&first.text, &before);
            line_edits(&before, &after).into_iter().map(|edit| origin.to_original(edit)).collect()
        })
        .collect();
    if let Some(separate) = separate {
        return separate;
    }
    let last = fixes
        .iter()
        .rev()
        .find_map(texts_before_and_after)
        .map_or_else(|| first.text.clone(), |(_, after)| after);
    let all = line_edits(&first.text, &last);
    fixes
        .iter()
        .map(|fix| if texts_before_and_after(fix).is_some() { all.clone() } else { Vec::new() })
        .collect()
}

/// Returns the difference of two texts as replaced lines.
fn line_edits(old: &str, new: &str) -> Vec<EditRecord> {
    let diff = TextDiff::from_lines(old, new);
    let lines: Vec<&str> = new.split_inclusive('\n').collect();
    let changed_ops = diff.ops().iter().filter(|op| op.tag() != DiffTag::Equal);
    changed_ops
        .map(|op| EditRecord {
            line: op.old_range().start as u32 + 1,
            removed: op.old_range().len() as u32,
            text: lines.get(op.new_range()).map(<[&str]>::concat).unwrap_or_default(),
        })
        .collect()
}

/// The line in the first text for each line of a changed text.
struct OriginLines {
    /// The index in the first text, for unchanged lines.
    origin_lines: Vec<Option<usize>>,
    count: usize,
}

impl OriginLines {
    fn from_texts(first: &str, changed: &str) -> OriginLines {
        let diff = TextDiff::from_lines(first, changed);
        let mut origin_lines = vec![None; changed.split_inclusive('\n').count()];
        for op in diff.ops().iter().filter(|op| op.tag() == DiffTag::Equal) {
            for (old, new) in op.old_range().zip(op.new_range()) {
                if let Some(line) = origin_lines.get_mut(new) {
                    *line = Some(old);
                }
            }
        }
        OriginLines { origin_lines, count: first.split_inclusive('\n').count() }
    }

    /// Returns the line of the first text at or before a line, from 1.
    fn nearest_original(&self, line: u32) -> Option<u32> {
        let end = (line as usize).min(self.origin_lines.len());
        self.origin_lines[..end].iter().rev().flatten().next().map(|line| *line as u32 + 1)
    }

    /// Returns an edit with line numbers of the first text; `None` if it touches changed lines.
    fn to_original(&self, edit: EditRecord) -> Option<EditRecord> {
        let start = (edit.line as usize).checked_sub(1)?;
        let origin_of = |index: usize| self.origin_lines.get(index).copied().flatten();
        let first = match start == self.origin_lines.len() {
            true => self.count,
            false => origin_of(start)?,
        };
        // The line before an insertion must also be unchanged, so that the order of insertions does not
        // matter.
        if start > 0 && origin_of(start - 1).is_none_or(|before| before + 1 != first) {
            return None;
        }
        let removed = edit.removed as usize;
        let is_complete = (0..removed).all(|index| origin_of(start + index) == Some(first + index));
        is_complete.then_some(EditRecord { line: first as u32 + 1, ..edit })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_of_later_texts_have_the_lines_of_the_first() {
        let (first, second) = ("a\nb\nc\nd\n", "a\nx\nb\nc\nd\n");
        let origin = OriginLines::from_texts(first, second);
        let edit = |line, removed| EditRecord { line, removed, text: "y\n".to_owned() };
        assert_eq!(origin.to_original(edit(4, 1)), Some(edit(3, 1)));
        assert_eq!(origin.to_original(edit(6, 0)), Some(edit(5, 0)));
        // The order of two insertions at one place would be undefined.
        assert_eq!(origin.to_original(edit(3, 0)), None);
        assert_eq!(origin.to_original(edit(2, 1)), None);
        assert_eq!(line_edits(first, second), [EditRecord { line: 2, removed: 0, text: "x\n".to_owned() }]);
    }
}
