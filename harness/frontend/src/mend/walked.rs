//! Finds fixes for races of a walk: changes of the module, each verified by walking the changed module.
//!
//! Every candidate is walked with the same inputs and schedules. The search is greedy and bounded, so it may
//! miss a fix; a fix that it returns removed the finding and added none.

use std::collections::BTreeSet;

use litmus::StorageClass;
use rspirv::spirv::{MemoryAccess, Op, Scope, StorageClass as Class};

use super::edit::ModuleEdit;
use super::{SourceLanguage, find_combination};
use crate::error::SourcePosition;
use crate::grid::{self, GridFinding, GridReport, GridVerdict};
use crate::lift::{AnalysisOptions, FindingKind};
use crate::module::{SpirvFunction, SpirvInstruction, SpirvModule, SpirvType, read_module};

/// Upper bound on the changed modules.
const MAX_TRIALS: usize = 400;
/// Upper bound on the steps of all their walks, unless the first walk was longer.
const MAX_STEPS: u64 = 40_000_000;
/// Upper bound on the call depth at which a caller may synchronize.
const MAX_CALLS: u32 = 4;
/// Upper bound on the races that are fixed one after another.
const MAX_ROUNDS: usize = 4;

/// A change of a shader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelChange {
    /// Index of the changed source line, for a declaration of an access; 0 if unknown.
    pub line: u32,
    /// The same as a module position.
    pub place: SourcePosition,
    /// The change as source text.
    pub text: String,
    pub(super) make: ModuleChange,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ModuleChange {
    /// A workgroup barrier before a word, for a class.
    Meet(usize, StorageClass),
    /// A subgroup barrier before a word.
    MeetSubgroup(usize),
    /// Memory barriers before words.
    Fences(Vec<usize>, Vec<StorageClass>),
    Coherent(u32),
    /// Additional acquire or release semantics.
    Ordered(ChangeSite, bool, bool, StorageClass),
    Widened(ChangeSite),
    Atomic(Vec<ChangeSite>, Class),
}

/// An instruction of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ChangeSite {
    pub function: u32,
    pub index: usize,
}

/// The fixes for a report.
#[derive(Clone, Debug, Default)]
pub struct WalkFixes {
    /// For each finding, the changes that remove it without adding others; empty if none was found.
    pub of: Vec<Vec<KernelChange>>,
    /// True if the walk is clean after all changes together.
    pub clean: bool,
    /// Number of changed modules walked.
    pub tried: usize,
}

/// Searches fixes for the races of a report, and verifies all of them together.
///
/// A race that only the model found gets none, because the walk cannot verify its fix.
pub fn fix_walk_findings(
    module: &SpirvModule,
    options: &AnalysisOptions,
    report: &GridReport,
    stop: &dyn Fn() -> bool,
) -> WalkFixes {
    let mut mends = WalkFixes { of: vec![Vec::new(); report.findings.len()], ..WalkFixes::default() };
    if report.decided_by_model {
        return mends;
    }
    let most = MAX_STEPS.max(report.steps.saturating_mul(8));
    // A finding of one in many schedules counts as removed only if as many schedules are clean.
    let many = (report.schedules > grid::DEFAULT_SCHEDULES).then_some(report.schedules);
    let options = &AnalysisOptions { schedules: options.schedules.or(many), ..options.clone() };
    let mut search = FixSearch { module, options, stop, steps: most, try_changes: 0, made: Vec::new() };
    let mut left: Vec<usize> = (0..report.findings.len()).collect();
    let mut hopeless = BTreeSet::new();
    for _ in 0..MAX_ROUNDS {
        let next = left
            .iter()
            .copied()
            .find(|index| report.findings[*index].kind.is_race() && !hopeless.contains(index));
        let Some(target) = next else { break };
        let now: Vec<&GridFinding> = left.iter().map(|index| &report.findings[*index]).collect();
        let Some((changes, found)) = search.search_fix(&report.findings[target], &now) else {
            hopeless.insert(target);
            continue;
        };
        let gone =
            |index: &usize| !found.iter().any(|still| is_same_finding(still, &report.findings[*index]));
        left.iter().copied().filter(gone).for_each(|index| mends.of[index].clone_from(&changes));
        left.retain(|index| !gone(index));
        search.made.extend(changes);
    }
    mends.tried = search.try_changes;
    // All changes together, with the requested options.
    let all: Vec<&KernelChange> = search.made.iter().collect();
    let walked = |changed: SpirvModule| grid::analyze_grid_thoroughly(&changed, options).ok();
    let again = apply_changes(module, &all).and_then(walked);
    mends.clean =
        !all.is_empty() && again.as_ref().is_some_and(|report| report.verdict == GridVerdict::Clean);
    for (finding, changes) in report.findings.iter().zip(&mut mends.of) {
        if again
            .as_ref()
            .is_none_or(|again| again.findings.iter().any(|still| is_same_finding(still, finding)))
        {
            changes.clear();
        }
    }
    mends
}

/// Returns true if two findings report the same on the same lines.
fn is_same_finding(one: &GridFinding, other: &GridFinding) -> bool {
    let places = |found: &GridFinding| -> BTreeSet<(u32, SourcePosition)> {
        let place =
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
    try_changes: usize,
    /// The changes made so far.
    made: Vec<KernelChange>,
}

type FoundFix = (Vec<KernelChange>, Vec<GridFinding>);

/// Returns true if a finding is gone and no new one appeared.
fn has_fewer_findings(found: &[GridFinding], target: &GridFinding, before: &[&GridFinding]) -> bool {
    found
        .iter()
        .all(|now| before.iter().any(|before| is_same_finding(now, before)) && !is_same_finding(now, target))
}

impl FixSearch<'_> {
    /// Returns the cheapest changes that remove a finding without adding others, and the remaining findings.
    fn search_fix(&mut self, target: &GridFinding, before: &[&GridFinding]) -> Option<FoundFix> {
        let ModuleCandidates { found: candidates, last, handed, apart, .. } =
            ModuleCandidates::from_finding(self.module, target, &self.made)?;
        let mut better: Option<FoundFix> = None;
        for count in 1..=2 {
            // Invocations without a common barrier synchronize by atomics.
            if count == 2
                && apart
                && let Some(found) = self.search_handover(&handed, target, before)
            {
                return Some(found);
            }
            let clean = find_combination(candidates.len(), count, |chosen| {
                let chosen: Vec<&KernelChange> = chosen.iter().map(|index| &candidates[*index]).collect();
                let Some(found) = self.tried(&chosen)? else { return Some(None) };
                if found.is_empty() {
                    return Some(Some((chosen.into_iter().cloned().collect(), found)));
                }
                if better.is_none() && has_fewer_findings(&found, target, before) {
                    better = Some((chosen.into_iter().cloned().collect(), found));
                }
                Some(None)
            });
            match clean {
                Some(Some(found)) => return Some(found),
                // The search budget is exhausted.
                None => break,
                Some(None) => {}
            }
            if better.is_some() {
                return better;
            }
        }
        if !apart && let Some(found) = self.search_handover(&handed, target, before) {
            return Some(found);
        }
        let last = last?;
        let found = self.tried(&[&last])??;
        has_fewer_findings(&found, target, before).then(|| (vec![last], found))
    }

    /// Returns the first handover by atomics that removes a finding, without its unneeded changes.
    fn search_handover(
        &mut self,
        ways: &[Vec<KernelChange>],
        target: &GridFinding,
        before: &[&GridFinding],
    ) -> Option<FoundFix> {
        for way in ways {
            // A change that is already made cannot be made again.
            let mut way: Vec<KernelChange> = way
                .iter()
                .filter(|change| apply_changes(self.module, &[change]).is_some())
                .cloned()
                .collect();
            let mends = |search: &mut Self, way: &[KernelChange]| {
                let found = search.tried(&way.iter().collect::<Vec<_>>())?;
                Some(found.filter(|found| has_fewer_findings(found, target, before)))
            };
            let Some(mut found) = mends(self, &way)? else { continue };
            let mut at = 0;
            while at < way.len() && way.len() > 1 {
                let mut without = way.clone();
                without.remove(at);
                match mends(self, &without).flatten().filter(|now| now.len() <= found.len()) {
                    Some(now) => (way, found) = (without, now),
                    None => at += 1,
                }
            }
            return Some((way, found));
        }
        None
    }

    /// Returns the findings after changes; `None` once the budget is exhausted, `Some(None)` if a change is
    /// impossible.
    fn tried(&mut self, changes: &[&KernelChange]) -> Option<Option<Vec<GridFinding>>> {
        if self.try_changes >= MAX_TRIALS || self.steps == 0 || (self.stop)() {
            return None;
        }
        let all: Vec<&KernelChange> = self.made.iter().chain(changes.iter().copied()).collect();
        let Some(changed) = apply_changes(self.module, &all) else { return Some(None) };
        self.try_changes += 1;
        let Ok(report) = grid::analyze_within_steps(&changed, self.options, self.steps) else {
            return Some(None);
        };
        self.steps = self.steps.saturating_sub(report.steps);
        let whole = report.refusal.is_none() && report.verdict != GridVerdict::Undecided;
        Some(whole.then_some(report.findings))
    }
}

/// Returns the changed module; `None` if a change is impossible.
fn apply_changes(module: &SpirvModule, changes: &[&KernelChange]) -> Option<SpirvModule> {
    let mut edit = ModuleEdit::for_module(module);
    for change in changes {
        match &change.make {
            ModuleChange::Meet(at, class) => insert_barrier(&mut edit, module, *at, *class)?,
            ModuleChange::MeetSubgroup(at) => {
                let classes = [StorageClass::Buffer, StorageClass::Workgroup, StorageClass::Image];
                edit.insert_control_barrier(*at, Scope::Subgroup, &classes)?;
            }
            ModuleChange::Fences(at, classes) => {
                at.iter().try_for_each(|at| edit.insert_memory_barrier(*at, classes))?;
            }
            ModuleChange::Coherent(id) => edit.make_coherent(*id)?,
            ModuleChange::Ordered(site, acquire, release, class) => {
                edit.strengthen_order(site.instruction(module)?, *acquire, *release, *class)?;
            }
            ModuleChange::Widened(site) => edit.widen_scope(site.instruction(module)?)?,
            ModuleChange::Atomic(sites, class) => {
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
    if SourceLanguage::of_module(module) != SourceLanguage::Glsl || class == StorageClass::Workgroup {
        return edit.insert_control_barrier(at, Scope::Workgroup, &[class]);
    }
    edit.insert_memory_barrier(at, &[class])?;
    edit.insert_control_barrier(at, Scope::Workgroup, &[StorageClass::Workgroup])?;
    edit.insert_memory_barrier(at, &[class])
}

impl ChangeSite {
    /// Returns the instruction at a module position.
    fn at(module: &SpirvModule, place: SourcePosition) -> Option<ChangeSite> {
        module.functions.iter().find_map(|(function, of)| {
            let index = of.code.iter().position(|one| one.place == place)?;
            Some(ChangeSite { function: *function, index })
        })
    }

    fn instruction(self, module: &SpirvModule) -> Option<&SpirvInstruction> {
        module.functions.get(&self.function)?.code.get(self.index)
    }
}

/// Returns the variable that a pointer or image comes from, or the structure at an address.
pub(super) fn root_variable(module: &SpirvModule, function: &SpirvFunction, pointer: u32) -> Option<u32> {
    let mut id = pointer;
    for _ in 0..MAX_WAY {
        if module.variables.contains_key(&id) {
            return Some(id);
        }
        let made = function.code.iter().find(|one| one.result == id)?;
        let chain = matches!(
            made.op,
            Op::AccessChain
                | Op::InBoundsAccessChain
                | Op::PtrAccessChain
                | Op::ImageTexelPointer
                | Op::CopyObject
        );
        match module.types.get(&made.ty)? {
            SpirvType::Handle(_) if made.op == Op::Load => {}
            SpirvType::Pointer { class: Class::PhysicalStorageBuffer, to } if !chain => return Some(*to),
            _ if chain => {}
            _ => return None,
        }
        id = *module.operands_of(made).first()?;
    }
    None
}

/// Returns the variable that the instruction at a position accesses, or the structure at an address.
pub(crate) fn accessed_variable(module: &SpirvModule, place: SourcePosition) -> Option<u32> {
    let site = ChangeSite::at(module, place)?;
    root_variable(
        module,
        module.functions.get(&site.function)?,
        *module.operands_of(site.instruction(module)?).first()?,
    )
}

/// Upper bound on the instructions between a pointer and its variable.
const MAX_WAY: usize = 64;

/// Returns whether a load or store of the Vulkan model is private.
fn is_private(one: &SpirvInstruction, module: &SpirvModule) -> Option<bool> {
    let mask = match one.op {
        Op::Load => 1,
        Op::Store => 2,
        _ => return None,
    };
    let mask = module.operands_of(one).get(mask).copied().unwrap_or(0);
    Some(mask & MemoryAccess::NON_PRIVATE_POINTER.bits() == 0)
}

/// Returns true if some access through a variable is non-private in the Vulkan model.
pub(super) fn is_shared_elsewhere(module: &SpirvModule, variable: u32) -> bool {
    let of_it = |function: &SpirvFunction, one: &SpirvInstruction| {
        let pointer = module.operands_of(one).first();
        pointer.is_some_and(|pointer| root_variable(module, function, *pointer) == Some(variable))
    };
    let shared = |function: &SpirvFunction| {
        let shared = |one: &&SpirvInstruction| is_private(one, module) == Some(false);
        function.code.iter().filter(shared).any(|one| of_it(function, one))
    };
    module.vulkan && module.functions.values().any(shared)
}

/// Returns the storage class of accesses through a variable or address.
pub(super) fn accessed_class(module: &SpirvModule, root: u32) -> Option<(StorageClass, Class)> {
    let Some(variable) = module.variables.get(&root) else {
        return Some((StorageClass::Buffer, Class::PhysicalStorageBuffer));
    };
    let class = match variable.class {
        Class::Workgroup => StorageClass::Workgroup,
        Class::UniformConstant | Class::Image => StorageClass::Image,
        Class::StorageBuffer | Class::Uniform => StorageClass::Buffer,
        _ => return None,
    };
    Some((class, variable.class))
}

/// Returns true if nothing can be inserted before an instruction, or if it ends its block.
fn is_terminator(op: Op) -> bool {
    matches!(
        op,
        Op::Branch
            | Op::BranchConditional
            | Op::Switch
            | Op::Return
            | Op::ReturnValue
            | Op::Kill
            | Op::EmitMeshTasksEXT
            | Op::Unreachable
    )
}

fn begins_block(op: Op) -> bool {
    matches!(op, Op::Label | Op::Phi | Op::Variable)
}

fn is_merge(op: Op) -> bool {
    matches!(op, Op::SelectionMerge | Op::LoopMerge)
}

/// The candidate changes for a race.
pub(super) struct ModuleCandidates<'m> {
    pub module: &'m SpirvModule,
    pub language: SourceLanguage,
    /// Cheapest first.
    pub found: Vec<KernelChange>,
    /// Combinations of changes that hand memory over by atomics.
    pub handed: Vec<Vec<KernelChange>>,
    /// The last resort.
    pub last: Option<KernelChange>,
    /// True if the invocations share no barrier.
    pub apart: bool,
}

/// Returns true for atomic instructions.
pub(super) fn is_atomic(op: Op) -> bool {
    format!("{op:?}").starts_with("Atomic")
}

impl<'m> ModuleCandidates<'m> {
    fn from_finding(
        module: &'m SpirvModule,
        finding: &GridFinding,
        made: &[KernelChange],
    ) -> Option<ModuleCandidates<'m>> {
        let sites: Vec<ChangeSite> =
            finding.at.iter().filter_map(|at| ChangeSite::at(module, at.place)).collect();
        let roots = |site: &ChangeSite| {
            let function = module.functions.get(&site.function)?;
            let one = function.code.get(site.index)?;
            root_variable(module, function, *module.operands_of(one).first()?)
        };
        let known: BTreeSet<u32> = sites.iter().filter_map(roots).collect();
        let first = *known.iter().next()?;
        let (class, of) = accessed_class(module, first)?;
        let one_workgroup =
            finding.at.iter().all(|at| at.invocation.workgroup == finding.at[0].invocation.workgroup);
        let language = SourceLanguage::of_module(module);
        let apart = !one_workgroup;
        let mut all =
            ModuleCandidates { module, language, found: Vec::new(), handed: Vec::new(), last: None, apart };
        if one_workgroup && class == StorageClass::Workgroup {
            all.add_barriers(&sites, class, finding.kind);
        }
        if class != StorageClass::Workgroup {
            known.iter().for_each(|root| all.add_coherent(*root, &sites));
        }
        if language != SourceLanguage::Wgsl {
            all.add_stronger_order(class);
        }
        if one_workgroup && class != StorageClass::Workgroup {
            all.add_barriers(&sites, class, finding.kind);
        }
        if language != SourceLanguage::Wgsl {
            all.handover_changes(&sites, class, &known, made);
        }
        all.last = all.atomic_change(&sites, of);
        Some(all)
    }

    fn push_candidate(&mut self, site: ChangeSite, text: String, make: ModuleChange) {
        let Some(change) = self.new_change(site, text, make) else { return };
        if self.found.iter().all(|known| known.make != change.make) {
            self.found.push(change);
        }
    }

    pub(super) fn new_change(
        &self,
        site: ChangeSite,
        text: String,
        make: ModuleChange,
    ) -> Option<KernelChange> {
        let one = site.instruction(self.module)?;
        Some(KernelChange { line: one.line, place: one.place, text, make })
    }

    pub(super) fn add_coherent(&mut self, root: u32, sites: &[ChangeSite]) {
        let module = self.module;
        let left_out = |site: &&ChangeSite| {
            site.instruction(module).and_then(|one| is_private(one, module)) == Some(true)
        };
        let left_out = sites.iter().find(left_out).filter(|_| is_shared_elsewhere(module, root));
        let Some(site) = left_out.or(sites.first()) else { return };
        let text = self.language.make_coherent_text(module, &[root], left_out.is_some());
        self.push_candidate(*site, text, ModuleChange::Coherent(root));
    }

    /// Adds stronger semantics for existing atomics and barriers.
    fn add_stronger_order(&mut self, class: StorageClass) {
        let module = self.module;
        let memory = self.language.memory_barrier(class);
        for (id, function) in &module.functions {
            for (index, one) in function.code.iter().enumerate() {
                let site = ChangeSite { function: *id, index };
                let word = match one.op {
                    Op::ControlBarrier | Op::MemoryBarrier => "barrier",
                    op if is_atomic(op) => "atomic",
                    _ => continue,
                };
                let at = module.first_word(one);
                let behind = function.code.get(index + 1).map(|next| module.first_word(next));
                if module.vulkan {
                    // A barrier gets both acquire and release semantics.
                    let orders = [(true, false), (false, true), (true, true)];
                    for (acquire, release) in orders.into_iter().skip(if word == "barrier" { 2 } else { 0 }) {
                        let order = super::order_words(acquire, release);
                        let text =
                            format!("give this {word} {order} semantics on {}", super::class_words(class));
                        self.push_candidate(site, text, ModuleChange::Ordered(site, acquire, release, class));
                    }
                    let text = format!(
                        "widen the scope of this {word} to {}",
                        super::scope_words(litmus::Scope::QueueFamily)
                    );
                    self.push_candidate(site, text, ModuleChange::Widened(site));
                    continue;
                }
                if one.op == Op::MemoryBarrier {
                    continue;
                }
                let Some(behind) = behind else { continue };
                let here = if word == "barrier" { "this barrier" } else { "this atomic" };
                let fences = |at: &[usize]| ModuleChange::Fences(at.to_vec(), vec![class]);
                self.push_candidate(site, format!("put `{memory}` before {here}"), fences(&[at]));
                self.push_candidate(site, format!("put `{memory}` behind {here}"), fences(&[behind]));
                let both = format!("put `{memory}` before and behind {here}");
                self.push_candidate(site, both, fences(&[at, behind]));
            }
        }
    }

    /// Adds workgroup barriers around the accesses and their enclosing constructs.
    fn add_barriers(&mut self, sites: &[ChangeSite], class: StorageClass, kind: FindingKind) {
        let mut positions = Vec::new();
        for site in sites {
            self.barrier_positions(*site, 0, &mut positions);
        }
        let function = self.language.control_barrier(class);
        for (site, at, side) in &positions {
            self.push_candidate(*site, format!("put `{function}` {side}"), ModuleChange::Meet(*at, class));
        }
        if kind == FindingKind::Lockstep && self.language == SourceLanguage::Glsl {
            for (site, at, side) in &positions {
                self.push_candidate(
                    *site,
                    format!("put `subgroupBarrier();` {side}"),
                    ModuleChange::MeetSubgroup(*at),
                );
            }
        }
    }

    /// Returns the insertion positions around an instruction: the naming instruction, the word, and the side.
    fn barrier_positions(
        &self,
        site: ChangeSite,
        depth: u32,
        positions: &mut Vec<(ChangeSite, usize, &'static str)>,
    ) {
        let Some(function) = self.module.functions.get(&site.function) else { return };
        let code = &function.code;
        let word = |index: usize| code.get(index).map(|one| self.module.first_word(one));
        let mut put = |named: usize, before: usize, side: &'static str| {
            if let Some(at) = word(before) {
                positions.push((ChangeSite { index: named, ..site }, at, side));
            }
        };
        put(site.index, statement_start(code, site.index), "before this line");
        if let Some(end) = position_after(code, site.index) {
            put(site.index, end, "behind this line");
        }
        for at in (0..site.index).rev() {
            let one = &code[at];
            let label = |operand: usize| {
                let id = self.module.operands_of(one).get(operand)?;
                let label = *function.labels.get(id)?;
                Some((label, code[label + 1..].iter().position(|one| !begins_block(one.op))? + label + 1))
            };
            // Skips a construct whose merge block follows.
            let Some((_, after)) = label(0).filter(|(merge, _)| is_merge(one.op) && *merge > site.index)
            else {
                continue;
            };
            if one.op == Op::SelectionMerge {
                put(at + 1, statement_start(code, at + 1), "before this line");
                put(at + 1, after, "behind what this line decides about");
                continue;
            }
            if let Some((_, next)) = label(1) {
                put(at, next, "at the end of the body of the loop in this line");
            }
            let header = code[..at].iter().rposition(|one| one.op == Op::Label);
            if let Some(header) = header.filter(|header| *header > 0) {
                put(at, header - 1, "before the loop in this line");
            }
            put(at, after, "behind the loop in this line");
        }
        if depth < MAX_CALLS {
            for (id, caller) in &self.module.functions {
                for (index, one) in caller.code.iter().enumerate() {
                    if one.op == Op::FunctionCall
                        && self.module.operands_of(one).first() == Some(&site.function)
                    {
                        self.barrier_positions(ChangeSite { function: *id, index }, depth + 1, positions);
                    }
                }
            }
        }
    }

    /// Returns the last resort: atomic accesses.
    ///
    /// They order nothing else, and a read followed by a write does not become one atomic operation.
    fn atomic_change(&self, sites: &[ChangeSite], class: Class) -> Option<KernelChange> {
        let plain = |site: &ChangeSite| {
            matches!(site.instruction(self.module).map(|one| one.op), Some(Op::Load | Op::Store))
        };
        let mut changed: Vec<ChangeSite> = sites.iter().copied().filter(plain).collect();
        changed.dedup();
        let site = *changed.first()?;
        let one = site.instruction(self.module)?;
        let function = self.module.functions.get(&site.function)?;
        let line = |of: &ChangeSite| of.instruction(self.module).map(|one| one.line);
        let reads = function.code.iter().any(|other| {
            let same = other.op == Op::Load && changed.iter().any(|site| Some(other.line) == line(site));
            let root = |one: &SpirvInstruction| {
                root_variable(self.module, function, *self.module.operands_of(one).first()?)
            };
            same && root(other) == root(one)
        });
        let stores =
            changed.iter().any(|site| site.instruction(self.module).is_some_and(|one| one.op == Op::Store));
        if reads && stores && changed.iter().all(|site| line(site) == line(&changed[0])) {
            return None;
        }
        let text = "make the racing accesses atomic, which leaves them without an order".to_owned();
        Some(KernelChange {
            line: one.line,
            place: one.place,
            text,
            make: ModuleChange::Atomic(changed, class),
        })
    }
}

/// Returns the first instruction of a statement in its block.
fn statement_start(code: &[SpirvInstruction], index: usize) -> usize {
    let line = code[index].line;
    let mut at = index;
    while at > 0 {
        let before = &code[at - 1];
        let joined = is_merge(before.op) || line != 0 && before.line == line;
        if begins_block(before.op) || is_terminator(before.op) || !joined {
            break;
        }
        at -= 1;
    }
    at
}

/// Returns the position after a statement; `None` if it decides control flow.
fn position_after(code: &[SpirvInstruction], index: usize) -> Option<usize> {
    let line = code[index].line;
    let same = |one: &&SpirvInstruction| {
        !is_terminator(one.op) && !is_merge(one.op) && line != 0 && one.line == line
    };
    let end = index + 1 + code[index + 1..].iter().take_while(same).count();
    let next = code.get(end)?;
    let decides = is_merge(next.op) || matches!(next.op, Op::BranchConditional | Op::Switch);
    (!decides || next.line != line).then_some(end)
}
