//! Finds fixes for races and uninitialized reads of a walk: changes of the module, each verified by walking the changed module.
//!
//! Every candidate is walked with the same inputs and schedules. The search is greedy and bounded, so it may
//! miss a fix; a fix that it returns removed the finding and added none.

use std::collections::BTreeSet;
use std::convert::Infallible;

use litmus::minimize::{find_set_of_size, remove_chunks};
use litmus::{Scope, StorageClass};
use spirv_reader::{SpirvModule, read_module};

use super::SourceLanguage;
use super::candidates::ModuleCandidates;
use super::change::{KernelChange, ModuleChange};
use super::edit::ModuleEdit;
use crate::error::SourcePosition;
use crate::finding::FindingKind;
use crate::grid::{self, GridFinding, GridReport, GridVerdict};
use crate::options::AnalysisOptions;

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
    if report.decided_by_model {
        return fixes;
    }
    let most = MAX_STEPS.max(report.steps.saturating_mul(8));
    // A finding that occurs in one of many schedules is removed only if as many schedules are clean.
    let many = (report.schedules > grid::DEFAULT_SCHEDULES).then_some(report.schedules);
    let options = &AnalysisOptions { schedules: options.schedules.or(many), ..options.clone() };
    let mut search = FixSearch { module, options, stop, steps: most, tried_modules: 0, applied: Vec::new() };
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
    let walk_module = |changed: SpirvModule| grid::analyze_grid_thoroughly(&changed, options).ok();
    let final_report = apply_changes(module, &all).and_then(walk_module);
    fixes.is_clean =
        !all.is_empty() && final_report.as_ref().is_some_and(|report| report.verdict == GridVerdict::Clean);
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

/// Returns true if two findings report the same on the same lines.
fn is_same_finding(one: &GridFinding, other: &GridFinding) -> bool {
    let places = |found: &GridFinding| -> BTreeSet<(u32, SourcePosition)> {
        let place =
            // Changes move positions in the module, so lines identify a finding if they are
            // known.
            |at: &grid::GridSpot| (at.line, if at.line == 0 { at.place } else { SourcePosition::Module });
        found.at.iter().map(place).collect()
    };
    // A lockstep race counts as a race.
    (one.kind == other.kind || one.kind.is_race() && other.kind.is_race()) && places(one) == places(other)
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

type FoundFix = (Vec<KernelChange>, Vec<GridFinding>);

/// The budget of a search ended it.
struct BudgetExhausted;

/// Returns true if a finding was removed and no new one appeared.
fn has_fewer_findings(found: &[GridFinding], target: &GridFinding, before: &[&GridFinding]) -> bool {
    found
        .iter()
        .all(|now| before.iter().any(|before| is_same_finding(now, before)) && !is_same_finding(now, target))
}

impl FixSearch<'_> {
    /// Returns the cheapest changes that remove a finding without adding others, and the remaining findings.
    fn search_fix(&mut self, target: &GridFinding, before: &[&GridFinding]) -> Option<FoundFix> {
        let ModuleCandidates {
            candidates,
            last_resort: last,
            handovers: handed,
            shares_no_barrier: apart,
            ..
        } = ModuleCandidates::from_finding(self.module, target, &self.applied)?;
        // The first combination that removes the finding; another one of the same size may remove
        // all findings.
        let mut best_fix: Option<FoundFix> = None;
        for count in 1..=2 {
            // Invocations without a common barrier synchronize by atomics.
            if count == 2
                && apart
                && let Some(found) = self.search_handover(&handed, target, before)
            {
                return Some(found);
            }
            let clean = find_set_of_size(candidates.len(), count, |chosen| {
                let chosen: Vec<&KernelChange> = chosen.iter().map(|index| &candidates[*index]).collect();
                let Some(found) = self.try_changes(&chosen).ok_or(BudgetExhausted)? else { return Ok(None) };
                if found.is_empty() {
                    return Ok(Some((chosen.into_iter().cloned().collect(), found)));
                }
                if best_fix.is_none() && has_fewer_findings(&found, target, before) {
                    best_fix = Some((chosen.into_iter().cloned().collect(), found));
                }
                Ok(None)
            });
            match clean {
                Ok(Some(found)) => return Some(found),
                Err(BudgetExhausted) => break,
                Ok(None) => {}
            }
            if best_fix.is_some() {
                return best_fix;
            }
        }
        if !apart && let Some(found) = self.search_handover(&handed, target, before) {
            return Some(found);
        }
        let last = last?;
        let found = self.try_changes(&[&last])??;
        has_fewer_findings(&found, target, before).then(|| (vec![last], found))
    }

    /// Returns the first handover by atomics that removes a finding, without its unneeded changes.
    fn search_handover(
        &mut self,
        combinations: &[Vec<KernelChange>],
        target: &GridFinding,
        before: &[&GridFinding],
    ) -> Option<FoundFix> {
        for combination in combinations {
            // A change cannot be applied twice.
            let mut combination: Vec<KernelChange> = combination
                .iter()
                .filter(|change| apply_changes(self.module, &[change]).is_some())
                .cloned()
                .collect();
            let mut try_combination = |changes: &[KernelChange]| {
                let found = self.try_changes(&changes.iter().collect::<Vec<_>>())?;
                Some(found.filter(|found| has_fewer_findings(found, target, before)))
            };
            let Some(mut found) = try_combination(&combination)? else { continue };
            let Ok(_) = remove_chunks(&mut combination, 1, |fewer| {
                let now = (!fewer.is_empty()).then(|| try_combination(fewer)).flatten().flatten();
                let fewer_findings = now.filter(|now| now.len() <= found.len());
                let is_better = fewer_findings.is_some();
                found = fewer_findings.unwrap_or_else(|| found.clone());
                Ok::<_, Infallible>(is_better)
            });
            return Some((combination, found));
        }
        None
    }

    /// Returns the findings after changes; `None` once the budget is exhausted, `Some(None)` if a change is
    /// impossible.
    fn try_changes(&mut self, changes: &[&KernelChange]) -> Option<Option<Vec<GridFinding>>> {
        if self.tried_modules >= MAX_TRIALS || self.steps == 0 || (self.stop)() {
            return None;
        }
        let all: Vec<&KernelChange> = self.applied.iter().chain(changes.iter().copied()).collect();
        let Some(changed) = apply_changes(self.module, &all) else { return Some(None) };
        self.tried_modules += 1;
        let Ok(report) = grid::analyze_within_steps(&changed, self.options, self.steps) else {
            return Some(None);
        };
        self.steps = self.steps.saturating_sub(report.steps);
        // An undecided walk may have missed the finding.
        let is_complete = report.refusal.is_none() && report.verdict != GridVerdict::Undecided;
        Some(is_complete.then_some(report.findings))
    }
}

/// Returns the changed module; `None` if a change is impossible.
fn apply_changes(module: &SpirvModule, changes: &[&KernelChange]) -> Option<SpirvModule> {
    let mut edit = ModuleEdit::for_module(module);
    for change in changes {
        match &change.change {
            ModuleChange::InsertBarrier(at, class) => insert_barrier(&mut edit, module, *at, *class)?,
            ModuleChange::InsertSubgroupBarrier(at) => {
                let classes = [StorageClass::Buffer, StorageClass::Workgroup, StorageClass::Image];
                edit.insert_control_barrier(*at, Scope::Subgroup, &classes)?;
            }
            ModuleChange::InsertFences(at, classes) => {
                at.iter().try_for_each(|at| edit.insert_memory_barrier(*at, classes))?;
            }
            ModuleChange::MakeCoherent(id) => edit.make_coherent(*id)?,
            ModuleChange::ZeroInitialize(id) => edit.zero_initialize(*id)?,
            ModuleChange::StrengthenOrder(site, more) => {
                edit.strengthen_order(site.instruction(module)?, *more)?;
            }
            ModuleChange::WidenScope(site) => edit.widen_scope(site.instruction(module)?)?,
            ModuleChange::MakeUpdate(id, updates, class) => {
                let function = module.functions.get(id)?;
                updates.iter().try_for_each(|update| edit.make_update(function, update, *class))?;
            }
            ModuleChange::MakeImageUpdate(id, updates) => {
                let function = module.functions.get(id)?;
                updates.iter().try_for_each(|update| edit.make_image_update(function, update))?;
            }
            ModuleChange::MakeAtomic(sites, class) => {
                for site in sites {
                    let types = &module.functions.get(&site.function)?.types;
                    let ty = |id: u32| {
                        let constant = || module.constants.get(&id).map(|(ty, _)| *ty);
                        types.get(&id).copied().or_else(constant)
                    };
                    edit.make_atomic(site.instruction(module)?, ty, *class)?;
                }
            }
        }
    }
    read_module(&edit.into_bytes()).ok()
}

/// Inserts what compilers emit for the barrier of [`SourceLanguage::control_barrier`].
fn insert_barrier(
    edit: &mut ModuleEdit<'_>,
    module: &SpirvModule,
    at: usize,
    class: StorageClass,
) -> Option<()> {
    if SourceLanguage::from_module(module) != SourceLanguage::Glsl || class == StorageClass::Workgroup {
        return edit.insert_control_barrier(at, Scope::Workgroup, &[class]);
    }
    edit.insert_memory_barrier(at, &[class])?;
    edit.insert_control_barrier(at, Scope::Workgroup, &[StorageClass::Workgroup])?;
    edit.insert_memory_barrier(at, &[class])
}
