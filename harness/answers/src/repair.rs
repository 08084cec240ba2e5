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

use frontend::grid::GridReport;
use frontend::{AnalysisOptions, SpirvModule, fix_walk_findings};
use results::wire::{EditRecord, FindingRecord, MendRecord, RaceLine, RaceVerdict};
use similar::{DiffTag, TextDiff};

use crate::fix::add_fixes;
use crate::limit::StopFunction;
use edit::SourceFix;
use finding::{RepairTarget, finding_key};
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
pub(crate) struct WalkedSource {
    pub module: SpirvModule,
    pub options: AnalysisOptions,
    pub report: GridReport,
    pub line: RaceLine,
}

/// Walks the entry point of a module.
#[derive(Clone, Copy)]
pub(crate) struct RepairWalks<'a> {
    /// Analyses the entry point as a new call would.
    pub whole: &'a dyn Fn(&[u8]) -> Option<WalkedSource>,
    /// Walks a few schedules with these inputs.
    pub with_inputs: &'a dyn Fn(&[u8], &AnalysisOptions) -> Option<RaceLine>,
}

/// Searches edits for the findings of an entry point. Edits that are found replace the fixes of the module.
pub(crate) fn repair_source(
    line: &mut RaceLine,
    walked: WalkedSource,
    source: EditableSource<'_>,
    walks: RepairWalks<'_>,
    stop: &StopFunction,
) {
    let file = line.file.clone();
    let mut search =
        RepairSearch { file: &file, source, walks, stop, trials: 0, texts: BTreeSet::new(), is_last: false };
    let first = RepairState { text: source.text.to_owned(), walked };
    let fixes = search.all_findings(first.clone());
    publish_fixes(line, &first, &fixes, !search.is_over());
}

/// A text with its analysis.
#[derive(Clone, Debug)]
struct RepairState {
    text: String,
    walked: WalkedSource,
}

impl RepairState {
    fn findings(&self) -> &[FindingRecord] {
        &self.walked.line.findings
    }

    /// Counts the findings of each kind and variable.
    fn counts(&self) -> BTreeMap<(String, String), usize> {
        let mut counts = BTreeMap::new();
        for finding in self.findings() {
            *counts.entry(finding_key(finding)).or_default() += 1;
        }
        counts
    }

    fn line_keys(&self) -> Vec<LineKey> {
        line_keys(&self.text, self.findings())
    }
}

/// The kind and variable of a finding, and the text of its lines.
type LineKey = (String, String, Vec<String>);

/// Returns keys of findings with the text of their lines, which an edit elsewhere does not change.
fn line_keys(text: &str, findings: &[FindingRecord]) -> Vec<LineKey> {
    let lines: Vec<&str> = text.lines().collect();
    let text = |line: Option<u32>| {
        let index = (line.unwrap_or(0) as usize).wrapping_sub(1);
        lines.get(index).map_or(String::new(), |text| text.trim().to_owned())
    };
    let key = |finding: &FindingRecord| {
        let (kind, variable) = finding_key(finding);
        (kind, variable, finding.at.iter().map(|place| text(place.line)).collect())
    };
    findings.iter().map(key).collect()
}

/// A change of the text.
#[derive(Clone, Debug)]
struct RepairStep {
    changes: Vec<(u32, String)>,
    before: String,
    state: RepairState,
}

/// The steps that remove a finding.
#[derive(Clone, Debug)]
enum FoundRepair {
    /// At least one edit; each changes the text after the previous one.
    Edits(Vec<RepairStep>),
    /// A fix that edits cannot express, in words.
    Words(Box<RepairStep>),
}

impl FoundRepair {
    fn steps(&self) -> &[RepairStep] {
        match self {
            FoundRepair::Edits(steps) => steps,
            FoundRepair::Words(step) => std::slice::from_ref(step),
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
    Better(RepairState),
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
    is_last: bool,
}

impl RepairSearch<'_> {
    fn is_over(&self) -> bool {
        self.trials >= MAX_TRIALS || (self.stop)()
    }

    /// Fixes the findings one after another.
    fn all_findings(&mut self, first: RepairState) -> Vec<FoundRepair> {
        let mut fixes: Vec<FoundRepair> = Vec::new();
        let mut hopeless: BTreeSet<LineKey> = BTreeSet::new();
        let mut state = first;
        for _ in 0..MAX_ROUNDS {
            let keys = state.line_keys();
            let order = |finding: &FindingRecord| match finding.kind.as_str() {
                "divergent-barrier" => 0,
                "race" | "lockstep" | "unpublished-read" => 1,
                _ => 2,
            };
            let open = (0..keys.len()).filter(|index| !hopeless.contains(&keys[*index]));
            let Some(target) = open.min_by_key(|index| order(&state.findings()[*index])) else { break };
            if let Some(steps) = self.one_finding(&state, target, &state, MAX_COMPLETIONS)
                && let Some(last) = steps.last()
            {
                state = last.state.clone();
                fixes.push(FoundRepair::Edits(steps));
                // A finding without a fix may have one in the new text.
                hopeless.clear();
            } else if let Some(words) = self.in_words(&state, target) {
                fixes.push(FoundRepair::Words(Box::new(words)));
                hopeless.extend(keys.into_iter().filter(|key| key.0 == "race"));
            } else {
                self.is_last = true;
                let found = self.one_finding(&state, target, &state, 0);
                self.is_last = false;
                match found.and_then(|steps| Some((steps.last()?.state.clone(), steps))) {
                    Some((last, steps)) => {
                        state = last;
                        fixes.push(FoundRepair::Edits(steps));
                    }
                    None => {
                        hopeless.insert(keys[target].clone());
                    }
                }
            }
            if state.findings().is_empty() || self.is_over() {
                break;
            }
        }
        fixes
    }

    /// Returns the steps that remove a finding and make the text better than `base`.
    fn one_finding(
        &mut self,
        state: &RepairState,
        target: usize,
        base: &RepairState,
        completions: usize,
    ) -> Option<Vec<RepairStep>> {
        let parsed = ShaderText::parse(self.file, &state.text);
        let finding = state.findings().get(target)?;
        let target_finding = RepairTarget::of_finding(self.file, finding)?;
        let removed = state.line_keys().into_iter().nth(target)?;
        let mut better: Option<RepairStep> = None;
        let mut incomplete = Vec::new();
        let step = |fix: &SourceFix, now: RepairState| RepairStep {
            changes: fix.changes.clone(),
            before: state.text.clone(),
            state: now,
        };
        let mut queue = VecDeque::from(self.candidates(&parsed, state, target, &target_finding));
        // Candidates whose final contents depend on the schedule are tried last.
        let mut postponed = VecDeque::new();
        while let Some((Candidate { fix, text, module, .. }, is_postponed)) =
            self.next_candidate(&mut queue, &mut postponed, state, &removed)
        {
            match self.tried(text, &module, state, base, &removed) {
                Trial::Better(now) => {
                    let is_ordered = is_postponed || now.walked.line.order_dependent.is_none();
                    if now.findings().is_empty() && is_ordered {
                        return Some(vec![step(&fix, now)]);
                    }
                    let is_fewer = better
                        .as_ref()
                        .is_none_or(|known| now.findings().len() < known.state.findings().len());
                    if is_fewer {
                        better = Some(step(&fix, now));
                    }
                }
                Trial::Incomplete(now) if incomplete.len() < MAX_INCOMPLETE => incomplete.push((fix, now)),
                Trial::Incomplete(_) | Trial::Useless => {}
            }
        }
        if let Some(better) = better {
            return Some(vec![better]);
        }
        if completions > 0 {
            for (fix, now) in incomplete {
                let known = base.counts();
                let new = now.findings().iter().position(|found| {
                    let key = finding_key(found);
                    now.counts().get(&key) > known.get(&key)
                });
                let Some(new) = new else { continue };
                if let Some(rest) = self.one_finding(&now, new, base, completions - 1) {
                    let mut all = vec![step(&fix, now)];
                    all.extend(rest);
                    return Some(all);
                }
            }
        }
        None
    }

    /// Returns the candidates for a finding, cheapest first.
    fn candidates(
        &self,
        parsed: &ShaderText,
        state: &RepairState,
        target: usize,
        finding: &RepairTarget,
    ) -> Vec<SourceFix> {
        let mut fixes = Vec::new();
        if self.is_last {
            fixes.extend(invocations::atomic_accesses(parsed, finding).filter(|_| finding.kind == "race"));
            return fixes;
        }
        if finding.kind == "divergent-barrier" {
            if let Some(line) = finding.lines.first() {
                fixes.extend(divergence::divergence_fixes(parsed, *line));
            }
            return fixes;
        }
        if finding.is_race() {
            let WalkedSource { module, options, report, line } = &state.walked;
            let mut line = line.clone();
            if state.text != self.source.text {
                add_fixes(&mut line, module, &fix_walk_findings(module, options, report, &**self.stop));
            }
            let changes = line.findings.get(target).map(|found| found.mend.clone()).unwrap_or_default();
            fixes.extend(barriers::placed_changes(parsed, finding, &changes));
            fixes.extend(update::update_fixes(parsed, finding));
            fixes.extend(barriers::barrier_replacements(parsed, finding));
            fixes.extend(invocations::separated_rounds(parsed, finding));
            if finding.is_write_only {
                fixes.extend(invocations::one_writer(parsed, finding));
            }
        }
        if finding.kind == "uninitialised-read" {
            fixes.extend(invocations::initializations(parsed, finding));
            fixes.extend(barriers::barrier_replacements(parsed, finding));
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
            match self.candidate(fix, state, removed) {
                Some(candidate) if candidate.is_order_dependent => postponed.push_back(candidate),
                Some(candidate) => return Some((candidate, false)),
                None => {}
            }
        }
        postponed.pop_front().filter(|_| !(self.stop)()).map(|candidate| (candidate, true))
    }

    /// Compiles a change, and walks a few schedules with the inputs of the finding.
    fn candidate(&mut self, fix: SourceFix, state: &RepairState, removed: &LineKey) -> Option<Candidate> {
        let text = fix.apply(&state.text).filter(|text| self.texts.insert(text.clone()))?;
        let module = self.compiled(&text)?;
        let line = (self.walks.with_inputs)(&module, &state.walked.options);
        if line.as_ref().is_some_and(|line| line_keys(&text, &line.findings).contains(removed)) {
            return None;
        }
        let is_order_dependent = line.is_some_and(|line| line.order_dependent.is_some());
        Some(Candidate { fix, text, module, is_order_dependent })
    }

    /// Analyses a candidate.
    fn tried(
        &mut self,
        text: String,
        module: &[u8],
        state: &RepairState,
        base: &RepairState,
        removed: &LineKey,
    ) -> Trial {
        let Some(now) = self.walked(text, module) else { return Trial::Useless };
        // Unreached code has no findings, so a candidate that adds unreached lines proves nothing.
        if now.walked.report.count_unreached_lines() > state.walked.report.count_unreached_lines() {
            return Trial::Useless;
        }
        let (before, after, known) = (state.counts(), now.counts(), base.counts());
        let variable = (removed.0.clone(), removed.1.clone());
        // Atomics that leave a race on the variable would only hide a part of it.
        let is_partial = self.is_last && after.contains_key(&variable);
        if is_partial || after.get(&variable) >= before.get(&variable) || now.line_keys().contains(removed) {
            return Trial::Useless;
        }
        let is_new =
            |(key, count): (&(String, String), &usize)| known.get(key).is_none_or(|known| known < count);
        if !after.iter().any(is_new) {
            return Trial::Better(now);
        }
        let completable = ["divergent-barrier", "uninitialised-read", "race"];
        let mut new = after.iter().filter(|(key, count)| known.get(*key).is_none_or(|known| known < *count));
        if new.all(|(key, _)| completable.contains(&key.0.as_str())) {
            return Trial::Incomplete(now);
        }
        Trial::Useless
    }

    /// Compiles a text; `None` after `MAX_TRIALS` texts.
    fn compiled(&mut self, text: &str) -> Option<Vec<u8>> {
        if self.is_over() {
            return None;
        }
        self.trials += 1;
        (self.source.compile)(text)
    }

    fn walked(&self, text: String, module: &[u8]) -> Option<RepairState> {
        let walked = (self.walks.whole)(module)?;
        let is_whole =
            matches!(walked.line.verdict, RaceVerdict::Racy | RaceVerdict::Clean | RaceVerdict::NeedsInputs);
        is_whole.then_some(RepairState { text, walked })
    }

    /// Returns a fix in words, if the shader split at a barrier does not have the finding.
    fn in_words(&mut self, state: &RepairState, target: usize) -> Option<RepairStep> {
        let finding = state.findings().get(target)?;
        let removed = finding_key(finding);
        let finding = RepairTarget::of_finding(self.file, finding)?;
        // A barrier suffices within a single workgroup.
        let grid = state.walked.report.grid.iter().fold(1_u32, |all, count| all.saturating_mul(*count));
        let parsed = ShaderText::parse(self.file, &state.text);
        let (fix, parts) = barriers::second_dispatch(&parsed, &finding).filter(|_| grid > 1)?;
        for part in parts {
            let module = self.compiled(&part)?;
            let now = self.walked(part, &module)?;
            if now.counts().contains_key(&removed) {
                return None;
            }
        }
        Some(RepairStep { changes: fix.changes, before: state.text.clone(), state: state.clone() })
    }
}

/// Adds each fix to the findings that it removes.
fn publish_fixes(line: &mut RaceLine, first: &RepairState, fixes: &[FoundRepair], is_whole: bool) {
    let parsed = ShaderText::parse(&line.file, &first.text);
    let keys = first.line_keys();
    let edits = fix_edits(first, fixes);
    let mut is_fixed = vec![false; line.findings.len()];
    for (fix, edits) in fixes.iter().zip(edits) {
        let Some(last) = fix.steps().last() else { continue };
        let now = last.state.line_keys();
        let gone = |index: usize| match fix {
            FoundRepair::Words(_) => keys[index].0 == "race",
            FoundRepair::Edits(_) => !now.contains(&keys[index]),
        };
        let record = |step: &RepairStep, (at, words): &(u32, String)| MendRecord {
            file: Some(line.file.clone()),
            line: OriginLines::between(&first.text, &step.before).nearest(*at),
            text: words.clone(),
            edits: edits.clone(),
        };
        let mut records: Vec<MendRecord> = Vec::new();
        for step in fix.steps() {
            for change in &step.changes {
                let record = record(step, change);
                if !records.contains(&record) {
                    records.push(record);
                }
            }
        }
        for (index, (finding, is_fixed)) in line.findings.iter_mut().zip(&mut is_fixed).enumerate() {
            if !*is_fixed && gone(index) {
                *is_fixed = true;
                finding.mend.clone_from(&records);
            }
        }
    }
    // A change of the module is removed if the same edit of the source was tried without success.
    for (index, finding) in line.findings.iter_mut().enumerate() {
        let is_refuted = || {
            RepairTarget::of_finding(&line.file, finding)
                .is_some_and(|target| !barriers::placed_changes(&parsed, &target, &finding.mend).is_empty())
        };
        // Atomics would hide a missing wait.
        let is_atomic = finding.mend.iter().any(|change| change.text.starts_with("make the racing accesses"));
        let hides = is_atomic && !finding.message.contains("atomically");
        if is_whole && !is_fixed[index] && !finding.mend.is_empty() && (hides || is_refuted()) {
            finding.mend.clear();
        }
    }
}

/// Returns the edits of each fix, with line numbers of the first text.
///
/// If one fix changes lines of another, every fix gets the edits of all.
fn fix_edits(first: &RepairState, fixes: &[FoundRepair]) -> Vec<Vec<EditRecord>> {
    let ends = |fix: &FoundRepair| match fix {
        FoundRepair::Edits(steps) => Some((steps.first()?.before.clone(), steps.last()?.state.text.clone())),
        FoundRepair::Words(_) => None,
    };
    let separate: Option<Vec<Vec<EditRecord>>> = fixes
        .iter()
        .map(|fix| {
            let Some((before, after)) = ends(fix) else { return Some(Vec::new()) };
            let origin = OriginLines::between(&first.text, &before);
            line_edits(&before, &after).into_iter().map(|edit| origin.original(edit)).collect()
        })
        .collect();
    if let Some(separate) = separate {
        return separate;
    }
    let last = fixes.iter().rev().find_map(ends).map_or_else(|| first.text.clone(), |(_, after)| after);
    let all = line_edits(&first.text, &last);
    fixes.iter().map(|fix| if ends(fix).is_some() { all.clone() } else { Vec::new() }).collect()
}

/// Returns the difference of two texts as replaced lines.
fn line_edits(old: &str, new: &str) -> Vec<EditRecord> {
    let diff = TextDiff::from_lines(old, new);
    let lines: Vec<&str> = new.split_inclusive('\n').collect();
    let changed = diff.ops().iter().filter(|op| op.tag() != DiffTag::Equal);
    changed
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
    of: Vec<Option<usize>>,
    count: usize,
}

impl OriginLines {
    fn between(first: &str, now: &str) -> OriginLines {
        let diff = TextDiff::from_lines(first, now);
        let mut of = vec![None; now.split_inclusive('\n').count()];
        for op in diff.ops().iter().filter(|op| op.tag() == DiffTag::Equal) {
            for (old, new) in op.old_range().zip(op.new_range()) {
                if let Some(line) = of.get_mut(new) {
                    *line = Some(old);
                }
            }
        }
        OriginLines { of, count: first.split_inclusive('\n').count() }
    }

    /// Returns the line of the first text at or before a line, from 1.
    fn nearest(&self, line: u32) -> Option<u32> {
        let end = (line as usize).min(self.of.len());
        self.of[..end].iter().rev().flatten().next().map(|line| *line as u32 + 1)
    }

    /// Returns an edit with line numbers of the first text; `None` if it touches changed lines.
    fn original(&self, edit: EditRecord) -> Option<EditRecord> {
        let start = (edit.line as usize).checked_sub(1)?;
        let at = |index: usize| self.of.get(index).copied().flatten();
        let first = match start == self.of.len() {
            true => self.count,
            false => at(start)?,
        };
        // The line before an insertion must also be unchanged, so that the order of insertions does not
        // matter.
        if start > 0 && at(start - 1).is_none_or(|before| before + 1 != first) {
            return None;
        }
        let removed = edit.removed as usize;
        let is_whole = (0..removed).all(|index| at(start + index) == Some(first + index));
        is_whole.then_some(EditRecord { line: first as u32 + 1, ..edit })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_of_later_texts_have_the_lines_of_the_first() {
        let (first, second) = ("a\nb\nc\nd\n", "a\nx\nb\nc\nd\n");
        let origin = OriginLines::between(first, second);
        let edit = |line, removed| EditRecord { line, removed, text: "y\n".to_owned() };
        assert_eq!(origin.original(edit(4, 1)), Some(edit(3, 1)));
        assert_eq!(origin.original(edit(6, 0)), Some(edit(5, 0)));
        // The order of two insertions at one place would be undefined.
        assert_eq!(origin.original(edit(3, 0)), None);
        assert_eq!(origin.original(edit(2, 1)), None);
        assert_eq!(line_edits(first, second), [EditRecord { line: 2, removed: 0, text: "x\n".to_owned() }]);
    }
}
