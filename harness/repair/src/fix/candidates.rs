//! Candidate changes for a race: barriers, qualifiers, stronger semantics and atomics; and the search among them.
//!
//! The search takes the trial of a change as a parameter: a walk over the changed module, or the model on the
//! changed litmus test. It tries single changes, then pairs, then message passing through atomics, in the order
//! of the candidates, and returns the first that removes every finding, else the first that adds none.

use std::collections::BTreeSet;
use std::convert::Infallible;

use litmus::minimize::{find_set_of_size, remove_chunks};
use litmus::{Scope, StorageClass};
use rspirv::spirv::{Op, StorageClass as Class};
use spirv_reader::{ShaderLanguage, SpirvFunction, SpirvInstruction, SpirvModule, SpirvOperation};

use super::apply::apply_changes;
use super::change::{ChangeKind, KernelChange};
use entry_point::FindingKind;
use entry_point::accessed_variable::{
    ChangeSite, accessed_class, accessed_pointer, is_private, is_shared_elsewhere, root_variable,
};
use entry_point::update::{ImageUpdate, PlainUpdate, image_updates, plain_updates};
use results::wire::{InsertionAnchor, InsertionSide};
use symbolic::emit::AddedSemantics;
use walk::{GridFinding, GridSpot};

/// Upper bound on the call depth at which a caller may synchronize.
const MAX_CALLS: u32 = 4;

fn begins_block(op: Op) -> bool {
    matches!(op, Op::Label | Op::Phi | Op::Variable)
}

fn is_merge(op: Op) -> bool {
    matches!(op, Op::SelectionMerge | Op::LoopMerge)
}

/// Changes that remove a finding without adding others, with the remaining findings.
pub(super) type FoundFix = (Vec<KernelChange>, Vec<GridFinding>);
/// The remaining findings after changes that remove one without adding others; `None` for other changes.
pub(super) type TrialResult = Option<Vec<GridFinding>>;

/// The budget of a search ended it.
struct BudgetExhausted;

/// The candidate changes for a race.
pub(super) struct ModuleCandidates<'m> {
    pub module: &'m SpirvModule,
    pub language: ShaderLanguage,
    /// Cheapest first.
    pub candidates: Vec<KernelChange>,
    /// Combinations of changes for message passing through atomics.
    pub handovers: Vec<Vec<KernelChange>>,
    /// The last resort.
    pub last_resort: Option<KernelChange>,
    /// True if the invocations share no barrier.
    pub shares_no_barrier: bool,
}

impl<'m> ModuleCandidates<'m> {
    pub(super) fn new(module: &'m SpirvModule, shares_no_barrier: bool) -> ModuleCandidates<'m> {
        ModuleCandidates {
            module,
            language: module.language.unwrap_or(ShaderLanguage::Glsl),
            candidates: Vec::new(),
            handovers: Vec::new(),
            last_resort: None,
            shares_no_barrier,
        }
    }

    pub(super) fn from_finding(
        module: &'m SpirvModule,
        finding: &GridFinding,
        applied: &[KernelChange],
    ) -> Option<ModuleCandidates<'m>> {
        if finding.kind == FindingKind::UninitialisedRead {
            return ModuleCandidates::for_uninitialized(module, finding);
        }
        let sites: Vec<ChangeSite> =
            finding.at.iter().filter_map(|at| ChangeSite::at_position(module, at.place)).collect();
        let accessed = |at: &GridSpot| {
            let site = ChangeSite::at_position(module, at.place)?;
            let function = module.functions.get(&site.function)?;
            let instruction = function.code.get(site.index)?;
            root_variable(module, function, accessed_pointer(module, instruction, at.writes != Some(false))?)
        };
        let known: BTreeSet<u32> = finding.at.iter().filter_map(accessed).collect();
        let first = *known.iter().next()?;
        let (class, of) = accessed_class(module, first)?;
        let one_workgroup =
            finding.at.iter().all(|at| at.invocation.workgroup == finding.at[0].invocation.workgroup);
        let mut all = ModuleCandidates::new(module, !one_workgroup);
        let language = all.language;
        // In the order in which they are tried: for workgroup memory, a barrier is the usual fix;
        // for other memory, qualifiers and orders come first.
        if one_workgroup && class == StorageClass::Workgroup {
            all.add_barriers(&sites, class, finding.kind);
        }
        if class != StorageClass::Workgroup {
            known.iter().for_each(|root| all.add_coherent(*root, &sites));
        }
        if language != ShaderLanguage::Wgsl {
            all.add_stronger_order(class);
        }
        if one_workgroup && class != StorageClass::Workgroup {
            all.add_barriers(&sites, class, finding.kind);
        }
        if language != ShaderLanguage::Wgsl {
            all.handover_changes(&sites, class, &known, applied);
        }
        if let Some(change) = all.update_change(&sites, of).or_else(|| all.image_update_change(&sites)) {
            // Last, since a lock that is only not published needs no atomic.
            all.candidates.push(change);
        }
        all.last_resort = all.atomic_change(&sites, of);
        Some(all)
    }

    /// Returns the initializers of workgroup variables, which only GLSL can express.
    fn for_uninitialized(module: &'m SpirvModule, finding: &GridFinding) -> Option<ModuleCandidates<'m>> {
        let site = ChangeSite::at_position(module, finding.at.first()?.place)?;
        let mut all = ModuleCandidates::new(module, false);
        let language = all.language;
        let shared = module.variables.iter().filter(|(_, variable)| variable.class == Class::Workgroup);
        for (id, _) in shared.filter(|_| language == ShaderLanguage::Glsl) {
            all.push_candidate(site, ChangeKind::ZeroInitialize(*id));
        }
        Some(all)
    }

    /// Returns the change of plain read-modify-writes to atomics, if all accesses belong to some.
    fn update_change(&self, sites: &[ChangeSite], class: Class) -> Option<KernelChange> {
        let site = *sites.first()?;
        let function = self.module.functions.get(&site.function)?;
        let accesses = |update: &PlainUpdate| [update.load, update.store];
        let updates = updates_at(sites, plain_updates(self.module, function), accesses)?;
        let atomic = updates.first()?.atomic;
        self.language.atomic_function(atomic)?;
        self.new_change(site, ChangeKind::MakeUpdate { function: site.function, updates, class, atomic })
    }

    /// Returns the change of reads and writes of texels to image atomics, if all accesses belong to some.
    fn image_update_change(&self, sites: &[ChangeSite]) -> Option<KernelChange> {
        let site = *sites.first()?;
        let function = self.module.functions.get(&site.function)?;
        let accesses = |update: &ImageUpdate| [update.read, update.write];
        let updates = updates_at(sites, image_updates(self.module, function), accesses)?;
        let atomic = updates.first()?.atomic;
        self.language.image_atomic_function(atomic)?;
        self.new_change(site, ChangeKind::MakeImageUpdate { function: site.function, updates, atomic })
    }

    fn push_candidate(&mut self, site: ChangeSite, kind: ChangeKind) {
        let Some(change) = self.new_change(site, kind) else { return };
        if self.candidates.iter().all(|known| !known.kind.is_same_edit(&change.kind)) {
            self.candidates.push(change);
        }
    }

    pub(super) fn new_change(&self, site: ChangeSite, kind: ChangeKind) -> Option<KernelChange> {
        let instruction = site.instruction(self.module)?;
        Some(KernelChange { line: instruction.line, place: instruction.place, kind })
    }

    pub(super) fn add_coherent(&mut self, root: u32, sites: &[ChangeSite]) {
        let module = self.module;
        // By the rules of WGSL and OpenCL C all shared memory is as coherent as the language allows.
        let is_by_wgsl = module.plain_access_scope.is_some() && self.language == ShaderLanguage::Wgsl;
        if is_by_wgsl || self.language == ShaderLanguage::OpenClC {
            return;
        }
        let left_out = |site: &&ChangeSite| {
            site.instruction(module).and_then(|one| is_private(one, module)) == Some(true)
        };
        let left_out = sites.iter().find(left_out).filter(|_| is_shared_elsewhere(module, root));
        let Some(site) = left_out.or(sites.first()) else { return };
        let is_left_out = left_out.is_some();
        self.push_candidate(*site, ChangeKind::MakeCoherent { root, is_left_out });
    }

    /// Adds stronger semantics for existing atomics and barriers.
    fn add_stronger_order(&mut self, class: StorageClass) {
        let module = self.module;
        for (id, function) in &module.functions {
            for (index, instruction) in function.code.iter().enumerate() {
                let site = ChangeSite { function: *id, index };
                let anchor = match instruction.op {
                    Op::ControlBarrier | Op::MemoryBarrier => InsertionAnchor::Barrier,
                    _ if matches!(module.operation(instruction), SpirvOperation::Atomic(_)) => {
                        InsertionAnchor::Atomic
                    }
                    _ => continue,
                };
                if module.uses_vulkan_model {
                    // A barrier gets both acquire and release semantics.
                    let orders = [(true, false), (false, true), (true, true)];
                    let skipped = if anchor == InsertionAnchor::Barrier { 2 } else { 0 };
                    for (acquire, release) in orders.into_iter().skip(skipped) {
                        let more = AddedSemantics { acquire, release, class };
                        self.push_candidate(site, ChangeKind::StrengthenOrder { site, anchor, more });
                    }
                    self.push_candidate(site, ChangeKind::WidenScope { site, anchor });
                    continue;
                }
                if instruction.op == Op::MemoryBarrier {
                    continue;
                }
                let at = module.first_word(instruction);
                let Some(next) = function.code.get(index + 1).map(|next| module.first_word(next)) else {
                    continue;
                };
                let sides = [
                    (InsertionSide::Before, vec![at]),
                    (InsertionSide::After, vec![next]),
                    (InsertionSide::Around, vec![at, next]),
                ];
                for (side, words) in sides {
                    self.push_candidate(
                        site,
                        ChangeKind::InsertFences { words, side, anchor, classes: vec![class] },
                    );
                }
            }
        }
    }

    /// Adds workgroup barriers around the accesses and their enclosing constructs.
    fn add_barriers(&mut self, sites: &[ChangeSite], class: StorageClass, kind: FindingKind) {
        let mut positions = Vec::new();
        for site in sites {
            self.barrier_positions(*site, 0, &mut positions);
        }
        // Where the fewest loops repeat it, a barrier costs least.
        positions.sort_by_key(|position| position.loops);
        let has_subgroup_barrier = kind == FindingKind::Lockstep && self.language == ShaderLanguage::Glsl;
        let scopes = [Some(Scope::Workgroup), has_subgroup_barrier.then_some(Scope::Subgroup)];
        for scope in scopes.into_iter().flatten() {
            for BarrierPosition { site, word, side, anchor, .. } in positions.iter().copied() {
                self.push_candidate(site, ChangeKind::InsertBarrier { word, side, anchor, scope, class });
            }
        }
    }

    /// Adds the insertion positions around an instruction.
    fn barrier_positions(&self, site: ChangeSite, depth: u32, positions: &mut Vec<BarrierPosition>) {
        use InsertionAnchor::{ControlledStatement, Line, Loop, LoopBody};
        use InsertionSide::{After, Before};
        let Some(function) = self.module.functions.get(&site.function) else { return };
        let code = &function.code;
        let outer_loops = self.loops_around_calls(site.function, MAX_CALLS);
        let mut add_position = |named: usize, before: usize, side: InsertionSide, anchor: InsertionAnchor| {
            if let Some(next) = code.get(before) {
                let (site, word) = (ChangeSite { index: named, ..site }, self.module.first_word(next));
                let loops =
                    outer_loops + count_loops(self.module, function, named) + usize::from(anchor == LoopBody);
                positions.push(BarrierPosition { site, word, side, anchor, loops });
            }
        };
        add_position(site.index, statement_start(self.module, code, site.index), Before, Line);
        if let Some(end) = position_after(self.module, code, site.index) {
            add_position(site.index, end, After, Line);
        }
        // Outwards through the constructs around the access: their headers precede it, and their
        // merge blocks follow.
        for at in (0..site.index).rev() {
            let instruction = &code[at];
            let label = |operand: usize| {
                let id = self.module.operands_of(instruction).get(operand)?;
                let label = *function.labels.get(id)?;
                let first = code[label + 1..].iter().position(|next| !begins_block(next.op))?;
                Some((label, first + label + 1))
            };
            // Skips a construct whose merge block follows.
            let Some((_, after)) =
                label(0).filter(|(merge, _)| is_merge(instruction.op) && *merge > site.index)
            else {
                continue;
            };
            if instruction.op == Op::SelectionMerge {
                add_position(at + 1, statement_start(self.module, code, at + 1), Before, Line);
                add_position(at + 1, after, After, ControlledStatement);
                continue;
            }
            // The second operand of a loop header is the continue block, which every turn passes
            // last.
            if let Some((_, next)) = label(1) {
                add_position(at, next, After, LoopBody);
            }
            let header = code[..at].iter().rposition(|instruction| instruction.op == Op::Label);
            if let Some(header) = header.filter(|header| *header > 0) {
                // In front of the branch that ends the preceding block.
                add_position(at, header - 1, Before, Loop);
            }
            add_position(at, after, After, Loop);
        }
        if depth < MAX_CALLS {
            // A caller may synchronize around the call instead.
            for (id, caller) in &self.module.functions {
                for (index, instruction) in caller.code.iter().enumerate() {
                    if instruction.op == Op::FunctionCall
                        && self.module.operands_of(instruction).first() == Some(&site.function)
                    {
                        self.barrier_positions(ChangeSite { function: *id, index }, depth + 1, positions);
                    }
                }
            }
        }
    }

    /// Returns the number of loops around the calls of a function, over at most `depth` calls.
    fn loops_around_calls(&self, called: u32, depth: u32) -> usize {
        let Some(depth) = depth.checked_sub(1) else { return 0 };
        let mut most = 0;
        for (id, function) in &self.module.functions {
            for (index, instruction) in function.code.iter().enumerate() {
                if instruction.op == Op::FunctionCall
                    && self.module.operands_of(instruction).first() == Some(&called)
                {
                    let loops = count_loops(self.module, function, index);
                    most = most.max(loops + self.loops_around_calls(*id, depth));
                }
            }
        }
        most
    }

    /// Returns the last resort: atomic accesses.
    ///
    /// They order nothing else, and a read followed by a write does not become one atomic operation.
    fn atomic_change(&self, sites: &[ChangeSite], class: Class) -> Option<KernelChange> {
        let plain = |site: &ChangeSite| {
            matches!(
                site.instruction(self.module).map(|instruction| instruction.op),
                Some(Op::Load | Op::Store)
            )
        };
        let mut changed: Vec<ChangeSite> = sites.iter().copied().filter(plain).collect();
        changed.dedup();
        let site = *changed.first()?;
        let instruction = site.instruction(self.module)?;
        let function = self.module.functions.get(&site.function)?;
        let line = |change_site: &ChangeSite| change_site.instruction(self.module).map(|one| one.line);
        let reads = function.code.iter().any(|other| {
            let same = other.op == Op::Load && changed.iter().any(|site| Some(other.line) == line(site));
            let root = |instruction: &SpirvInstruction| {
                root_variable(self.module, function, *self.module.operands_of(instruction).first()?)
            };
            same && root(other) == root(instruction)
        });
        let stores =
            changed.iter().any(|site| site.instruction(self.module).is_some_and(|one| one.op == Op::Store));
        // Two atomic accesses would not make one atomic update of this statement.
        if reads && stores && changed.iter().all(|site| line(site) == line(&changed[0])) {
            return None;
        }
        let kind = ChangeKind::MakeAtomic { sites: changed, class };
        Some(KernelChange { line: instruction.line, place: instruction.place, kind })
    }

    /// Returns the cheapest changes, at most `most` together, that remove a finding without adding others.
    ///
    /// `try_changes` returns `None` once its budget is exhausted.
    pub(super) fn search(
        &self,
        most: usize,
        mut try_changes: impl FnMut(&[&KernelChange]) -> Option<TrialResult>,
    ) -> Option<FoundFix> {
        let all = &self.candidates;
        // The first combination that removes the finding; another one of the same size may remove
        // all findings.
        let mut best: Option<FoundFix> = None;
        for count in 1..=most {
            // Invocations without a common barrier synchronize by atomics.
            if count == 2
                && self.shares_no_barrier
                && let Some(found) = self.search_handover(&mut try_changes)
            {
                return Some(found);
            }
            let clean = find_set_of_size(all.len(), count, |chosen| {
                let chosen: Vec<&KernelChange> = chosen.iter().map(|index| &all[*index]).collect();
                let Some(found) = try_changes(&chosen).ok_or(BudgetExhausted)? else { return Ok(None) };
                let (is_clean, fix) = (found.is_empty(), (chosen.into_iter().cloned().collect(), found));
                if is_clean {
                    return Ok(Some(fix));
                }
                best.get_or_insert(fix);
                Ok(None)
            });
            match clean {
                Ok(Some(found)) => return Some(found),
                Err(BudgetExhausted) => break,
                Ok(None) => {}
            }
            if best.is_some() {
                return best;
            }
        }
        if !self.shares_no_barrier
            && let Some(found) = self.search_handover(&mut try_changes)
        {
            return Some(found);
        }
        let last = self.last_resort.as_ref()?;
        Some((vec![last.clone()], try_changes(&[last])??))
    }

    /// Returns the first handover by atomics that removes a finding, without its unneeded changes.
    fn search_handover(
        &self,
        try_changes: &mut impl FnMut(&[&KernelChange]) -> Option<TrialResult>,
    ) -> Option<FoundFix> {
        let mut try_all = |changes: &[KernelChange]| try_changes(&changes.iter().collect::<Vec<_>>());
        for combination in &self.handovers {
            // A change cannot be applied twice.
            let mut combination = combination.clone();
            combination.retain(|change| apply_changes(self.module, &[change]).is_some());
            let Some(mut found) = try_all(&combination)? else { continue };
            let Ok(_) = remove_chunks(&mut combination, 1, |fewer| {
                let now = (!fewer.is_empty()).then(|| try_all(fewer)).flatten().flatten();
                let fewer_findings = now.filter(|now| now.len() <= found.len());
                let is_better = fewer_findings.is_some();
                found = fewer_findings.unwrap_or_else(|| found.clone());
                Ok::<_, Infallible>(is_better)
            });
            return Some((combination, found));
        }
        None
    }
}

/// Returns the updates to which the accesses at all sites belong, which are in one function.
fn updates_at<T: Clone + PartialEq>(
    sites: &[ChangeSite],
    updates: Vec<T>,
    accesses: impl Fn(&T) -> [usize; 2],
) -> Option<Vec<T>> {
    let mut found: Vec<T> = Vec::new();
    for site in sites.iter().map(|site| (site.function == sites[0].function).then_some(site.index)) {
        let update = updates.iter().find(|update| site.is_some_and(|at| accesses(update).contains(&at)))?;
        if !found.contains(update) {
            found.push(update.clone());
        }
    }
    Some(found)
}

/// A position at which a barrier may be inserted.
#[derive(Clone, Copy)]
struct BarrierPosition {
    /// The instruction that names it.
    site: ChangeSite,
    word: usize,
    side: InsertionSide,
    anchor: InsertionAnchor,
    /// Number of loops that repeat it.
    loops: usize,
}

/// Returns the number of loops around an instruction of a function.
fn count_loops(module: &SpirvModule, function: &SpirvFunction, index: usize) -> usize {
    let is_around = |(at, instruction): &(usize, &SpirvInstruction)| {
        let merge = module.operands_of(instruction).first().and_then(|label| function.labels.get(label));
        *at < index && instruction.op == Op::LoopMerge && merge.is_some_and(|merge| *merge > index)
    };
    function.code.iter().enumerate().filter(is_around).count()
}

/// Returns the first instruction of a statement in its block.
fn statement_start(module: &SpirvModule, code: &[SpirvInstruction], index: usize) -> usize {
    let line = code[index].line;
    let mut at = index;
    while at > 0 {
        let before = &code[at - 1];
        let joined = is_merge(before.op) || line != 0 && before.line == line;
        if begins_block(before.op) || module.operation(before).is_terminator() || !joined {
            break;
        }
        at -= 1;
    }
    at
}

/// Returns the position after a statement; `None` if it decides control flow.
fn position_after(module: &SpirvModule, code: &[SpirvInstruction], index: usize) -> Option<usize> {
    let line = code[index].line;
    let same = |instruction: &&SpirvInstruction| {
        !module.operation(instruction).is_terminator()
            && !is_merge(instruction.op)
            && line != 0
            && instruction.line == line
    };
    let end = index + 1 + code[index + 1..].iter().take_while(same).count();
    let next = code.get(end)?;
    let is_control_flow = is_merge(next.op) || matches!(next.op, Op::BranchConditional | Op::Switch);
    // No condition is a store; optimizers give the branch after it its line.
    (!is_control_flow || next.line != line || code[index].op == Op::Store).then_some(end)
}
