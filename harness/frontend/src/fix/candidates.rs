//! Candidate changes for a race of a walk: barriers, qualifiers, stronger semantics and atomics.

use std::collections::BTreeSet;

use litmus::StorageClass;
use rspirv::spirv::{Op, StorageClass as Class};
use spirv_reader::{SpirvInstruction, SpirvModule, SpirvOperation};

use super::SourceLanguage;
use super::change::{KernelChange, ModuleChange};
use crate::accessed_variable::{
    ChangeSite, accessed_class, accessed_pointer, is_private, is_shared_elsewhere, root_variable,
};
use crate::emit::AddedSemantics;
use crate::finding::FindingKind;
use crate::grid::{GridFinding, GridSpot};
use crate::update::{ImageUpdate, PlainUpdate, image_updates, plain_updates};

/// Upper bound on the call depth at which a caller may synchronize.
const MAX_CALLS: u32 = 4;

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
    pub candidates: Vec<KernelChange>,
    /// Combinations of changes for message passing through atomics.
    pub handovers: Vec<Vec<KernelChange>>,
    /// The last resort.
    pub last_resort: Option<KernelChange>,
    /// True if the invocations share no barrier.
    pub shares_no_barrier: bool,
}

impl<'m> ModuleCandidates<'m> {
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
        let language = SourceLanguage::from_module(module);
        let shares_no_barrier = !one_workgroup;
        let mut all = ModuleCandidates {
            module,
            language,
            candidates: Vec::new(),
            handovers: Vec::new(),
            last_resort: None,
            shares_no_barrier,
        };
        // In the order in which they are tried: for workgroup memory, a barrier is the usual fix;
        // for other memory, qualifiers and orders come first.
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
        let language = SourceLanguage::from_module(module);
        let mut all = ModuleCandidates {
            module,
            language,
            candidates: Vec::new(),
            handovers: Vec::new(),
            last_resort: None,
            shares_no_barrier: false,
        };
        let shared = module.variables.iter().filter(|(_, variable)| variable.class == Class::Workgroup);
        for (id, _) in shared.filter(|_| language == SourceLanguage::Glsl) {
            let text = format!(
                "initialize `{}` with `= {{}}` (GL_EXT_null_initializer), or store to each element before it is read",
                module.display_name(*id)
            );
            all.push_candidate(site, text, ModuleChange::ZeroInitialize(*id));
        }
        Some(all)
    }

    /// Returns the change of plain read-modify-writes to atomics, if all accesses belong to some.
    fn update_change(&self, sites: &[ChangeSite], class: Class) -> Option<KernelChange> {
        let site = *sites.first()?;
        let function = self.module.functions.get(&site.function)?;
        let updates = plain_updates(self.module, function);
        let mut changed: Vec<PlainUpdate> = Vec::new();
        for one in sites {
            let of_site = |update: &&PlainUpdate| [update.load, update.store].contains(&one.index);
            let update = updates.iter().find(of_site).filter(|_| one.function == site.function)?;
            if !changed.contains(update) {
                changed.push(*update);
            }
        }
        let call = self.language.atomic_function(changed.first()?.atomic)?;
        let text = match self.language {
            SourceLanguage::Wgsl => {
                format!("declare the element `atomic` and use `{call}` instead of this load and store")
            }
            SourceLanguage::Glsl | SourceLanguage::Hlsl => {
                format!("use `{call}` instead of this load and store")
            }
        };
        self.new_change(site, text, ModuleChange::MakeUpdate(site.function, changed, class))
    }

    /// Returns the change of reads and writes of texels to image atomics, if all accesses belong to some.
    fn image_update_change(&self, sites: &[ChangeSite]) -> Option<KernelChange> {
        let site = *sites.first()?;
        let function = self.module.functions.get(&site.function)?;
        let updates = image_updates(self.module, function);
        let mut changed: Vec<ImageUpdate> = Vec::new();
        for one in sites {
            let of_site = |update: &&ImageUpdate| [update.read, update.write].contains(&one.index);
            let update = updates.iter().find(of_site).filter(|_| one.function == site.function)?;
            if !changed.contains(update) {
                changed.push(*update);
            }
        }
        let call = self.language.image_atomic_function(changed.first()?.atomic)?;
        let text = format!("use `{call}` instead of this load and store");
        self.new_change(site, text, ModuleChange::MakeImageUpdate(site.function, changed))
    }

    fn push_candidate(&mut self, site: ChangeSite, text: String, make: ModuleChange) {
        let Some(change) = self.new_change(site, text, make) else { return };
        if self.candidates.iter().all(|known| known.change != change.change) {
            self.candidates.push(change);
        }
    }

    pub(super) fn new_change(
        &self,
        site: ChangeSite,
        text: String,
        make: ModuleChange,
    ) -> Option<KernelChange> {
        let instruction = site.instruction(self.module)?;
        Some(KernelChange { line: instruction.line, place: instruction.place, text, change: make })
    }

    pub(super) fn add_coherent(&mut self, root: u32, sites: &[ChangeSite]) {
        let module = self.module;
        let left_out = |site: &&ChangeSite| {
            site.instruction(module).and_then(|one| is_private(one, module)) == Some(true)
        };
        let left_out = sites.iter().find(left_out).filter(|_| is_shared_elsewhere(module, root));
        let Some(site) = left_out.or(sites.first()) else { return };
        let text = self.language.make_coherent_text(module, &[root], left_out.is_some());
        self.push_candidate(*site, text, ModuleChange::MakeCoherent(root));
    }

    /// Adds stronger semantics for existing atomics and barriers.
    fn add_stronger_order(&mut self, class: StorageClass) {
        let module = self.module;
        let memory = self.language.memory_barrier(class);
        for (id, function) in &module.functions {
            for (index, instruction) in function.code.iter().enumerate() {
                let site = ChangeSite { function: *id, index };
                let word = match instruction.op {
                    Op::ControlBarrier | Op::MemoryBarrier => "barrier",
                    _ if matches!(module.operation(instruction), SpirvOperation::Atomic(_)) => "atomic",
                    _ => continue,
                };
                let at = module.first_word(instruction);
                let next_word = function.code.get(index + 1).map(|next| module.first_word(next));
                if module.uses_vulkan_model {
                    // A barrier gets both acquire and release semantics.
                    let orders = [(true, false), (false, true), (true, true)];
                    for (acquire, release) in orders.into_iter().skip(if word == "barrier" { 2 } else { 0 }) {
                        let order = super::order_words(acquire, release);
                        let text =
                            format!("give this {word} {order} semantics on {}", super::class_words(class));
                        let more = AddedSemantics { acquire, release, class };
                        self.push_candidate(site, text, ModuleChange::StrengthenOrder(site, more));
                    }
                    let text = format!(
                        "widen the scope of this {word} to {}",
                        super::scope_words(litmus::Scope::QueueFamily)
                    );
                    self.push_candidate(site, text, ModuleChange::WidenScope(site));
                    continue;
                }
                if instruction.op == Op::MemoryBarrier {
                    continue;
                }
                let Some(behind) = next_word else { continue };
                let here = if word == "barrier" { "this barrier" } else { "this atomic" };
                let fences = |at: &[usize]| ModuleChange::InsertFences(at.to_vec(), vec![class]);
                self.push_candidate(site, format!("put `{memory}` before {here}"), fences(&[at]));
                self.push_candidate(site, format!("put `{memory}` after {here}"), fences(&[behind]));
                let both = format!("put `{memory}` before and after {here}");
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
            self.push_candidate(
                *site,
                format!("put `{function}` {side}"),
                ModuleChange::InsertBarrier(*at, class),
            );
        }
        if kind == FindingKind::Lockstep && self.language == SourceLanguage::Glsl {
            for (site, at, side) in &positions {
                self.push_candidate(
                    *site,
                    format!("put `subgroupBarrier();` {side}"),
                    ModuleChange::InsertSubgroupBarrier(*at),
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
        let mut add_position = |named: usize, before: usize, side: &'static str| {
            if let Some(at) = word(before) {
                positions.push((ChangeSite { index: named, ..site }, at, side));
            }
        };
        add_position(site.index, statement_start(self.module, code, site.index), "before this line");
        if let Some(end) = position_after(self.module, code, site.index) {
            add_position(site.index, end, "after this line");
        }
        // Outwards through the constructs around the access: their headers precede it, and their
        // merge blocks follow.
        for at in (0..site.index).rev() {
            let instruction = &code[at];
            let label = |operand: usize| {
                let id = self.module.operands_of(instruction).get(operand)?;
                let label = *function.labels.get(id)?;
                Some((
                    label,
                    code[label + 1..].iter().position(|instruction| !begins_block(instruction.op))?
                        + label
                        + 1,
                ))
            };
            // Skips a construct whose merge block follows.
            let Some((_, after)) =
                label(0).filter(|(merge, _)| is_merge(instruction.op) && *merge > site.index)
            else {
                continue;
            };
            if instruction.op == Op::SelectionMerge {
                add_position(at + 1, statement_start(self.module, code, at + 1), "before this line");
                add_position(at + 1, after, "after the statement that this line controls");
                continue;
            }
            // The second operand of a loop header is the continue block, which every turn passes
            // last.
            if let Some((_, next)) = label(1) {
                add_position(at, next, "at the end of the body of the loop in this line");
            }
            let header = code[..at].iter().rposition(|instruction| instruction.op == Op::Label);
            if let Some(header) = header.filter(|header| *header > 0) {
                // In front of the branch that ends the preceding block.
                add_position(at, header - 1, "before the loop in this line");
            }
            add_position(at, after, "after the loop in this line");
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
        let text = "make the racing accesses atomic (they remain unordered)".to_owned();
        Some(KernelChange {
            line: instruction.line,
            place: instruction.place,
            text,
            change: ModuleChange::MakeAtomic(changed, class),
        })
    }
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
    (!is_control_flow || next.line != line).then_some(end)
}
