//! Finds fixes for races and uninitialized reads of a walk: changes of the module, each verified by walking the changed module.
//!
//! Every candidate is walked with the same inputs and schedules. The search is greedy and bounded, so it may
//! miss a fix; a fix that it returns removed the finding and added none.

use std::collections::BTreeSet;

use spirv_reader::{CodePlace, SpirvModule};

use super::apply::apply_changes;
use super::candidates::{FoundFix, ModuleCandidates};
use super::change::KernelChange;
use entry_point::{AnalysisOptions, FindingKind};
use walk::{GridFinding, GridReport, RaceVerdict};

/// Upper bound on the changed modules.
const MAX_TRIALS: usize = 400;
/// Upper bound on the steps of all their walks, unless the first walk was longer.
const MAX_STEPS: u64 = 40_000_000;
/// Upper bound on the races that are fixed in sequence.
const MAX_ROUNDS: usize = 4;

/// The fixes for a report.
#[derive(Clone, Debug, Default)]
pub struct WalkFixes {
    /// For each finding, the changes that remove it without adding others; empty if none was found.
    pub changes: Vec<Vec<KernelChange>>,
    /// True if the walk is clean after all changes together.
    pub is_clean: bool,
    /// Number of changed modules walked.
    pub tried_modules: usize,
}

/// Searches fixes for the findings of a report, and verifies all of them together.
///
/// A race that only the model found gets none, because the walk cannot verify its fix.
pub fn fix_walk_findings(
    module: &SpirvModule,
    options: &AnalysisOptions,
    report: &GridReport,
    stop: &dyn Fn() -> bool,
) -> WalkFixes {
    let mut fixes = WalkFixes { changes: vec![Vec::new(); report.findings.len()], ..WalkFixes::default() };
    if report.model.is_some() {
        return fixes;
    }
    let options = &options_for_fixes(options, report);
    let mut search = FixSearch::new(module, options, report, stop);
    let mut remaining_indices: Vec<usize> = (0..report.findings.len()).collect();
    let mut unfixable = BTreeSet::new();
    for _ in 0..MAX_ROUNDS {
        let mut fixable = remaining_indices.iter().copied().filter(|index| !unfixable.contains(index));
        // A race may be the cause of an uninitialized read.
        let next = fixable
            .clone()
            .find(|index| report.findings[*index].kind.is_race())
            .or_else(|| fixable.find(|index| report.findings[*index].kind == FindingKind::UninitialisedRead));
        let Some(target) = next else { break };
        let remaining: Vec<&GridFinding> =
            remaining_indices.iter().map(|index| &report.findings[*index]).collect();
        let Some((changes, found)) = search.search_fix(&report.findings[target], &remaining) else {
            unfixable.insert(target);
            continue;
        };
        let is_removed =
            |index: &usize| !found.iter().any(|still| is_same_finding(still, &report.findings[*index]));
        remaining_indices
            .iter()
            .copied()
            .filter(is_removed)
            .for_each(|index| fixes.changes[index].clone_from(&changes));
        remaining_indices.retain(|index| !is_removed(index));
        search.applied.extend(changes);
    }
    fixes.tried_modules = search.tried_modules;
    // All changes together, with the requested options.
    let all: Vec<&KernelChange> = search.applied.iter().collect();
    let walk_module = |changed: SpirvModule| walk::analyze_grid_thoroughly(&changed, options).ok();
    let final_report = apply_changes(module, &all).and_then(walk_module);
    fixes.is_clean =
        !all.is_empty() && final_report.as_ref().is_some_and(|report| report.verdict == RaceVerdict::Clean);
    // A change counts only if its finding is absent with all changes together, too.
    for (finding, changes) in report.findings.iter().zip(&mut fixes.changes) {
        if final_report
            .as_ref()
            .is_none_or(|again| again.findings.iter().any(|still| is_same_finding(still, finding)))
        {
            changes.clear();
        }
    }
    fixes
}

/// Returns the changes that remove one finding of a report without adding others; empty if none was found.
///
/// The changes are those of a text, which is analysed again: no walk of all changes together follows.
pub(crate) fn fix_walk_finding(
    module: &SpirvModule,
    options: &AnalysisOptions,
    report: &GridReport,
    target: usize,
    stop: &dyn Fn() -> bool,
) -> Vec<KernelChange> {
    let Some(finding) = report.findings.get(target).filter(|_| report.model.is_none()) else {
        return Vec::new();
    };
    let options = &options_for_fixes(options, report);
    let before: Vec<&GridFinding> = report.findings.iter().collect();
    let found = FixSearch::new(module, options, report, stop).search_fix(finding, &before);
    found.map_or_else(Vec::new, |(changes, _)| changes)
}

/// Returns options with which changed modules are walked.
fn options_for_fixes(options: &AnalysisOptions, report: &GridReport) -> AnalysisOptions {
    // A finding that occurs in one of many schedules is removed only if as many schedules are clean.
    let many = (report.schedules > walk::DEFAULT_SCHEDULES).then_some(report.schedules);
    AnalysisOptions { schedules: options.schedules.or(many), ..options.clone() }
}

/// Returns true if two findings report the same on the same lines.
fn is_same_finding(one: &GridFinding, other: &GridFinding) -> bool {
    // Changes move positions in the module, so lines identify a finding if they are known.
    let places = |found: &GridFinding| -> BTreeSet<CodePlace> {
        found.at.iter().map(|at| CodePlace::new(at.line, at.place)).collect()
    };
    // A lockstep race counts as a race.
    (one.kind == other.kind || one.kind.is_race() && other.kind.is_race()) && places(one) == places(other)
}

/// Returns true if more barriers of a changed module are ones that not every invocation reaches for some inputs.
///
/// The inputs of a walk may let every invocation take the same branches.
pub(crate) fn adds_divergent_barrier(
    module: &SpirvModule,
    changed: &SpirvModule,
    entry: Option<&str>,
) -> bool {
    let count = |module: &SpirvModule| {
        let function = module.find_entry(entry).map_or(0, |entry| entry.function);
        lint::divergent_barriers(module, function).count()
    };
    count(changed) > count(module)
}

struct FixSearch<'a> {
    module: &'a SpirvModule,
    options: &'a AnalysisOptions,
    stop: &'a dyn Fn() -> bool,
    /// The remaining steps.
    steps: u64,
    tried_modules: usize,
    /// The changes made so far.
    applied: Vec<KernelChange>,
}

/// Returns true if a finding was removed and no new one appeared.
fn has_fewer_findings(found: &[GridFinding], target: &GridFinding, before: &[&GridFinding]) -> bool {
    found
        .iter()
        .all(|now| before.iter().any(|before| is_same_finding(now, before)) && !is_same_finding(now, target))
}

impl<'a> FixSearch<'a> {
    fn new(
        module: &'a SpirvModule,
        options: &'a AnalysisOptions,
        report: &GridReport,
        stop: &'a dyn Fn() -> bool,
    ) -> FixSearch<'a> {
        let steps = MAX_STEPS.max(report.steps.saturating_mul(8));
        FixSearch { module, options, stop, steps, tried_modules: 0, applied: Vec::new() }
    }

    /// Returns the cheapest changes that remove a finding without adding others, and the remaining findings.
    fn search_fix(&mut self, target: &GridFinding, before: &[&GridFinding]) -> Option<FoundFix> {
        let candidates = ModuleCandidates::from_finding(self.module, target, &self.applied)?;
        // The first schedule with a race that remains or is new refutes a change.
        let is_refuting = |now: &GridFinding| {
            let is_new = || !before.iter().any(|before| is_same_finding(now, before));
            is_same_finding(now, target) || now.kind.is_race() && is_new()
        };
        candidates.search(2, |changes| {
            let found = self.try_changes(changes, &is_refuting)?;
            Some(found.filter(|found| has_fewer_findings(found, target, before)))
        })
    }

    /// Returns the findings after changes, at most up to a refuting one; `None` once the budget is exhausted,
    /// `Some(None)` if a change is impossible.
    fn try_changes(
        &mut self,
        changes: &[&KernelChange],
        is_refuting: &dyn Fn(&GridFinding) -> bool,
    ) -> Option<Option<Vec<GridFinding>>> {
        if self.tried_modules >= MAX_TRIALS || self.steps == 0 || (self.stop)() {
            return None;
        }
        let all: Vec<&KernelChange> = self.applied.iter().chain(changes.iter().copied()).collect();
        let Some(changed) = apply_changes(self.module, &all) else { return Some(None) };
        if adds_divergent_barrier(self.module, &changed, self.options.entry.as_deref()) {
            return Some(None);
        }
        self.tried_modules += 1;
        let Ok(report) = walk::analyze_until(&changed, self.options, self.steps, is_refuting) else {
            return Some(None);
        };
        self.steps = self.steps.saturating_sub(report.steps);
        // An undecided walk may have missed the finding.
        let is_complete = report.refusal.is_none() && report.verdict != RaceVerdict::Undecided;
        Some(is_complete.then_some(report.findings))
    }
}
