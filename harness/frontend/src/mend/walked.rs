//! What mends a race that a walk over a whole grid found: changes of the module itself, each tried by walking what it makes of
//! the module, with the same inputs and orders.

use std::collections::BTreeSet;

use litmus::StorageClass;
use rspirv::spirv::{MemoryAccess, Op, Scope, StorageClass as Class};

use super::edit::Edit;
use super::{Language, choices};
use crate::error::Place;
use crate::grid::{self, GridFinding, GridReport, GridVerdict};
use crate::lift::{FindingKind, Options};
use crate::module::{Function, Instruction, Module, Type, read};

/// Changed modules that are walked at most.
const MAX_TRIALS: usize = 400;
/// Steps of all of them at most, or as many walks like the first one.
const MAX_STEPS: u64 = 40_000_000;
/// Calls from calls, where what a function does is to be ordered by its callers.
const MAX_CALLS: u32 = 4;
/// Races that are mended one after the other.
const MAX_ROUNDS: usize = 4;

/// A change of a shader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WalkedChange {
    /// Index of the source line where it is made, of a declaration one where it is accessed; 0 where there is none.
    pub line: u32,
    /// The same as a place of the module.
    pub place: Place,
    /// In the words of shaders.
    pub text: String,
    pub(super) make: Make,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Make {
    /// A barrier at which a workgroup meets, before a word of the module, for a class.
    Meet(usize, StorageClass),
    /// One at which a subgroup meets.
    MeetSubgroup(usize),
    /// Memory barriers before words.
    Fences(Vec<usize>, Vec<StorageClass>),
    Coherent(u32),
    /// More semantics for an atomic or a barrier: acquire, release.
    Ordered(Site, bool, bool, StorageClass),
    Widened(Site),
    Atomic(Vec<Site>, Class),
}

/// An instruction of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Site {
    pub function: u32,
    pub index: usize,
}

/// What was found for a report.
#[derive(Clone, Debug, Default)]
pub struct WalkedMends {
    /// For each finding the changes after which it is gone and nothing else came; none where nothing was found.
    pub of: Vec<Vec<WalkedChange>>,
    /// Whether nothing at all is found after all of them together.
    pub clean: bool,
    /// How many changed modules were walked.
    pub tried: usize,
}

/// What mends the races of a report, all changes together tried by the walk that made the report. Races that only the model shows
/// have none here: the walk finds nothing of them before a change either.
pub fn mend_walked(
    module: &Module,
    options: &Options,
    report: &GridReport,
    stop: &dyn Fn() -> bool,
) -> WalkedMends {
    let mut mends = WalkedMends { of: vec![Vec::new(); report.findings.len()], ..WalkedMends::default() };
    if report.decided_by_model {
        return mends;
    }
    let most = MAX_STEPS.max(report.steps.saturating_mul(8));
    // What one of many orders shows is gone where none of as many shows it.
    let many = (report.schedules > grid::DEFAULT_SCHEDULES).then_some(report.schedules);
    let options = &Options { schedules: options.schedules.or(many), ..options.clone() };
    let mut search = Search { module, options, stop, steps: most, tried: 0, made: Vec::new() };
    let mut left: Vec<usize> = (0..report.findings.len()).collect();
    let mut hopeless = BTreeSet::new();
    for _ in 0..MAX_ROUNDS {
        let next = left
            .iter()
            .copied()
            .find(|index| report.findings[*index].kind.is_race() && !hopeless.contains(index));
        let Some(target) = next else { break };
        let now: Vec<&GridFinding> = left.iter().map(|index| &report.findings[*index]).collect();
        let Some((changes, found)) = search.mend(&report.findings[target], &now) else {
            hopeless.insert(target);
            continue;
        };
        let gone = |index: &usize| !found.iter().any(|still| same(still, &report.findings[*index]));
        left.iter().copied().filter(gone).for_each(|index| mends.of[index].clone_from(&changes));
        left.retain(|index| !gone(index));
        search.made.extend(changes);
    }
    mends.tried = search.tried;
    // All of them together, by the walk as it was asked for.
    let all: Vec<&WalkedChange> = search.made.iter().collect();
    let walked = |changed: Module| grid::analyze_grid_thoroughly(&changed, options).ok();
    let again = made(module, &all).and_then(walked);
    mends.clean =
        !all.is_empty() && again.as_ref().is_some_and(|report| report.verdict == GridVerdict::Clean);
    for (finding, changes) in report.findings.iter().zip(&mut mends.of) {
        if again.as_ref().is_none_or(|again| again.findings.iter().any(|still| same(still, finding))) {
            changes.clear();
        }
    }
    mends
}

/// Whether two findings say the same of the same lines.
fn same(one: &GridFinding, other: &GridFinding) -> bool {
    let places = |found: &GridFinding| -> BTreeSet<(u32, Place)> {
        let place = |at: &grid::GridSpot| (at.line, if at.line == 0 { at.place } else { Place::Module });
        found.at.iter().map(place).collect()
    };
    // Lockstep is a race without others on its lines.
    (one.kind == other.kind || one.kind.is_race() && other.kind.is_race()) && places(one) == places(other)
}

struct Search<'a> {
    module: &'a Module,
    options: &'a Options,
    stop: &'a dyn Fn() -> bool,
    /// What may still be spent.
    steps: u64,
    tried: usize,
    /// What is changed already.
    made: Vec<WalkedChange>,
}

type Found = (Vec<WalkedChange>, Vec<GridFinding>);

/// Whether a finding is gone, and nothing is found that was not before.
fn fewer(found: &[GridFinding], target: &GridFinding, before: &[&GridFinding]) -> bool {
    found.iter().all(|now| before.iter().any(|before| same(now, before)) && !same(now, target))
}

impl Search<'_> {
    /// The fewest and cheapest changes after which a finding is gone and nothing is there that was not, with what is still found.
    fn mend(&mut self, target: &GridFinding, before: &[&GridFinding]) -> Option<Found> {
        let Candidates { found: candidates, last, handed, apart, .. } =
            Candidates::of(self.module, target, &self.made)?;
        let mut better: Option<Found> = None;
        for count in 1..=2 {
            // Who shares no barrier hands over by atomics.
            if count == 2
                && apart
                && let Some(found) = self.handed_on(&handed, target, before)
            {
                return Some(found);
            }
            let clean = choices(candidates.len(), count, |chosen| {
                let chosen: Vec<&WalkedChange> = chosen.iter().map(|index| &candidates[*index]).collect();
                let Some(found) = self.tried(&chosen)? else { return Some(None) };
                if found.is_empty() {
                    return Some(Some((chosen.into_iter().cloned().collect(), found)));
                }
                if better.is_none() && fewer(&found, target, before) {
                    better = Some((chosen.into_iter().cloned().collect(), found));
                }
                Some(None)
            });
            match clean {
                Some(Some(found)) => return Some(found),
                // Enough was tried.
                None => break,
                Some(None) => {}
            }
            if better.is_some() {
                return better;
            }
        }
        if !apart && let Some(found) = self.handed_on(&handed, target, before) {
            return Some(found);
        }
        let last = last?;
        let found = self.tried(&[&last])??;
        fewer(&found, target, before).then(|| (vec![last], found))
    }

    /// The first of some ways to hand memory over by atomics after which a finding is gone, without what of it is not needed.
    fn handed_on(
        &mut self,
        ways: &[Vec<WalkedChange>],
        target: &GridFinding,
        before: &[&GridFinding],
    ) -> Option<Found> {
        for way in ways {
            // What is there already cannot be made.
            let mut way: Vec<WalkedChange> =
                way.iter().filter(|change| made(self.module, &[change]).is_some()).cloned().collect();
            let mends = |search: &mut Self, way: &[WalkedChange]| {
                let found = search.tried(&way.iter().collect::<Vec<_>>())?;
                Some(found.filter(|found| fewer(found, target, before)))
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

    /// What is found after changes; `None` where enough was tried, and inside it where they cannot be made or be walked.
    fn tried(&mut self, changes: &[&WalkedChange]) -> Option<Option<Vec<GridFinding>>> {
        if self.tried >= MAX_TRIALS || self.steps == 0 || (self.stop)() {
            return None;
        }
        let all: Vec<&WalkedChange> = self.made.iter().chain(changes.iter().copied()).collect();
        let Some(changed) = made(self.module, &all) else { return Some(None) };
        self.tried += 1;
        let Ok(report) = grid::analyze_within_steps(&changed, self.options, self.steps) else {
            return Some(None);
        };
        self.steps = self.steps.saturating_sub(report.steps);
        let whole = report.refusal.is_none() && report.verdict != GridVerdict::Undecided;
        Some(whole.then_some(report.findings))
    }
}

/// The module with changes; nothing where one cannot be made.
fn made(module: &Module, changes: &[&WalkedChange]) -> Option<Module> {
    let mut edit = Edit::of(module);
    for change in changes {
        match &change.make {
            Make::Meet(at, class) => meet(&mut edit, module, *at, *class)?,
            Make::MeetSubgroup(at) => {
                let classes = [StorageClass::Buffer, StorageClass::Workgroup, StorageClass::Image];
                edit.control_barrier(*at, Scope::Subgroup, &classes)?;
            }
            Make::Fences(at, classes) => {
                at.iter().try_for_each(|at| edit.memory_barrier(*at, classes))?;
            }
            Make::Coherent(id) => edit.coherent(*id)?,
            Make::Ordered(site, acquire, release, class) => {
                edit.ordered(site.instruction(module)?, *acquire, *release, *class)?;
            }
            Make::Widened(site) => edit.widened(site.instruction(module)?)?,
            Make::Atomic(sites, class) => {
                for site in sites {
                    let types = &module.functions.get(&site.function)?.types;
                    let ty = |id: u32| {
                        let constant = || module.constants.get(&id).map(|(ty, _)| *ty);
                        types.get(&id).copied().or_else(constant)
                    };
                    edit.atomic(site.instruction(module)?, ty, *class)?;
                }
            }
        }
    }
    read(&edit.made()).ok()
}

/// What compilers make of the barrier that [`Language::control`] writes.
fn meet(edit: &mut Edit<'_>, module: &Module, at: usize, class: StorageClass) -> Option<()> {
    if Language::of(module) != Language::Glsl || class == StorageClass::Workgroup {
        return edit.control_barrier(at, Scope::Workgroup, &[class]);
    }
    edit.memory_barrier(at, &[class])?;
    edit.control_barrier(at, Scope::Workgroup, &[StorageClass::Workgroup])?;
    edit.memory_barrier(at, &[class])
}

impl Site {
    /// The instruction at a place of the module.
    fn at(module: &Module, place: Place) -> Option<Site> {
        module.functions.iter().find_map(|(function, of)| {
            let index = of.code.iter().position(|one| one.place == place)?;
            Some(Site { function: *function, index })
        })
    }

    fn instruction(self, module: &Module) -> Option<&Instruction> {
        module.functions.get(&self.function)?.code.get(self.index)
    }
}

/// The variable that a pointer or an image comes from, or the structure behind an address.
pub(super) fn root(module: &Module, function: &Function, pointer: u32) -> Option<u32> {
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
            Type::Handle(_) if made.op == Op::Load => {}
            Type::Pointer { class: Class::PhysicalStorageBuffer, to } if !chain => return Some(*to),
            _ if chain => {}
            _ => return None,
        }
        id = *module.operands(made).first()?;
    }
    None
}

/// The variable that the instruction at a place accesses, or the structure behind an address.
pub(crate) fn accessed(module: &Module, place: Place) -> Option<u32> {
    let site = Site::at(module, place)?;
    root(module, module.functions.get(&site.function)?, *module.operands(site.instruction(module)?).first()?)
}

/// Links from a pointer to its variable.
const MAX_WAY: usize = 64;

/// Whether a load or a store of the Vulkan model is private.
fn is_private(one: &Instruction, module: &Module) -> Option<bool> {
    let mask = match one.op {
        Op::Load => 1,
        Op::Store => 2,
        _ => return None,
    };
    let mask = module.operands(one).get(mask).copied().unwrap_or(0);
    Some(mask & MemoryAccess::NON_PRIVATE_POINTER.bits() == 0)
}

/// Whether accesses of the Vulkan model through a variable say that they are not private.
pub(super) fn is_shared_elsewhere(module: &Module, variable: u32) -> bool {
    let of_it = |function: &Function, one: &Instruction| {
        let pointer = module.operands(one).first();
        pointer.is_some_and(|pointer| root(module, function, *pointer) == Some(variable))
    };
    let shared = |function: &Function| {
        let shared = |one: &&Instruction| is_private(one, module) == Some(false);
        function.code.iter().filter(shared).any(|one| of_it(function, one))
    };
    module.vulkan && module.functions.values().any(shared)
}

/// The class that accesses through a variable, or behind an address, are in.
pub(super) fn class_of(module: &Module, root: u32) -> Option<(StorageClass, Class)> {
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

/// Whether nothing may stand before an instruction but what is there, or it ends its block.
fn ends(op: Op) -> bool {
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

fn begins(op: Op) -> bool {
    matches!(op, Op::Label | Op::Phi | Op::Variable)
}

fn merges(op: Op) -> bool {
    matches!(op, Op::SelectionMerge | Op::LoopMerge)
}

/// Everything that may mend a race, as far as it is found.
pub(super) struct Candidates<'m> {
    pub module: &'m Module,
    pub language: Language,
    /// From cheap to dear.
    pub found: Vec<WalkedChange>,
    /// Changes that together hand memory over from one invocation to another by atomics.
    pub handed: Vec<Vec<WalkedChange>>,
    /// The last resort.
    pub last: Option<WalkedChange>,
    /// Whether the two invocations share no barrier.
    pub apart: bool,
}

/// Whether it is an atomic instruction.
pub(super) fn is_atomic(op: Op) -> bool {
    format!("{op:?}").starts_with("Atomic")
}

impl<'m> Candidates<'m> {
    fn of(module: &'m Module, finding: &GridFinding, made: &[WalkedChange]) -> Option<Candidates<'m>> {
        let sites: Vec<Site> = finding.at.iter().filter_map(|at| Site::at(module, at.place)).collect();
        let roots = |site: &Site| {
            let function = module.functions.get(&site.function)?;
            let one = function.code.get(site.index)?;
            root(module, function, *module.operands(one).first()?)
        };
        let known: BTreeSet<u32> = sites.iter().filter_map(roots).collect();
        let first = *known.iter().next()?;
        let (class, of) = class_of(module, first)?;
        let one_workgroup =
            finding.at.iter().all(|at| at.invocation.workgroup == finding.at[0].invocation.workgroup);
        let language = Language::of(module);
        let apart = !one_workgroup;
        let mut all =
            Candidates { module, language, found: Vec::new(), handed: Vec::new(), last: None, apart };
        if one_workgroup && class == StorageClass::Workgroup {
            all.meetings(&sites, class, finding.kind);
        }
        if class != StorageClass::Workgroup {
            known.iter().for_each(|root| all.coherent(*root, &sites));
        }
        if language != Language::Wgsl {
            all.more_order(class);
        }
        if one_workgroup && class != StorageClass::Workgroup {
            all.meetings(&sites, class, finding.kind);
        }
        if language != Language::Wgsl {
            all.handovers(&sites, class, &known, made);
        }
        all.last = all.atomic(&sites, of);
        Some(all)
    }

    fn add(&mut self, site: Site, text: String, make: Make) {
        let Some(change) = self.change(site, text, make) else { return };
        if self.found.iter().all(|known| known.make != change.make) {
            self.found.push(change);
        }
    }

    pub(super) fn change(&self, site: Site, text: String, make: Make) -> Option<WalkedChange> {
        let one = site.instruction(self.module)?;
        Some(WalkedChange { line: one.line, place: one.place, text, make })
    }

    pub(super) fn coherent(&mut self, root: u32, sites: &[Site]) {
        let module = self.module;
        let left_out =
            |site: &&Site| site.instruction(module).and_then(|one| is_private(one, module)) == Some(true);
        let left_out = sites.iter().find(left_out).filter(|_| is_shared_elsewhere(module, root));
        let Some(site) = left_out.or(sites.first()) else { return };
        let text = self.language.made_coherent(module, &[root], left_out.is_some());
        self.add(*site, text, Make::Coherent(root));
    }

    /// More order for the atomics and barriers that are there.
    fn more_order(&mut self, class: StorageClass) {
        let module = self.module;
        let memory = self.language.memory(class);
        for (id, function) in &module.functions {
            for (index, one) in function.code.iter().enumerate() {
                let site = Site { function: *id, index };
                let word = match one.op {
                    Op::ControlBarrier | Op::MemoryBarrier => "barrier",
                    op if is_atomic(op) => "atomic",
                    _ => continue,
                };
                let at = module.first_word(one);
                let behind = function.code.get(index + 1).map(|next| module.first_word(next));
                if module.vulkan {
                    // What is a barrier already is to be one both ways.
                    let orders = [(true, false), (false, true), (true, true)];
                    for (acquire, release) in orders.into_iter().skip(if word == "barrier" { 2 } else { 0 }) {
                        let order = super::order_words(acquire, release);
                        let text =
                            format!("give this {word} {order} semantics on {}", super::class_words(class));
                        self.add(site, text, Make::Ordered(site, acquire, release, class));
                    }
                    let text = format!(
                        "widen the scope of this {word} to {}",
                        super::scope_words(litmus::Scope::QueueFamily)
                    );
                    self.add(site, text, Make::Widened(site));
                    continue;
                }
                if one.op == Op::MemoryBarrier {
                    continue;
                }
                let Some(behind) = behind else { continue };
                let here = if word == "barrier" { "this barrier" } else { "this atomic" };
                let fences = |at: &[usize]| Make::Fences(at.to_vec(), vec![class]);
                self.add(site, format!("put `{memory}` before {here}"), fences(&[at]));
                self.add(site, format!("put `{memory}` behind {here}"), fences(&[behind]));
                let both = format!("put `{memory}` before and behind {here}");
                self.add(site, both, fences(&[at, behind]));
            }
        }
    }

    /// Barriers at which the workgroup meets, around the accesses and whatever they stand in.
    fn meetings(&mut self, sites: &[Site], class: StorageClass, kind: FindingKind) {
        let mut positions = Vec::new();
        for site in sites {
            self.around(*site, 0, &mut positions);
        }
        let function = self.language.control(class);
        for (site, at, side) in &positions {
            self.add(*site, format!("put `{function}` {side}"), Make::Meet(*at, class));
        }
        if kind == FindingKind::Lockstep && self.language == Language::Glsl {
            for (site, at, side) in &positions {
                self.add(*site, format!("put `subgroupBarrier();` {side}"), Make::MeetSubgroup(*at));
            }
        }
    }

    /// Places around an instruction: the instruction that names the line, the word before which something is put, and which side
    /// of the line that is.
    fn around(&self, site: Site, depth: u32, positions: &mut Vec<(Site, usize, &'static str)>) {
        let Some(function) = self.module.functions.get(&site.function) else { return };
        let code = &function.code;
        let word = |index: usize| code.get(index).map(|one| self.module.first_word(one));
        let mut put = |named: usize, before: usize, side: &'static str| {
            if let Some(at) = word(before) {
                positions.push((Site { index: named, ..site }, at, side));
            }
        };
        put(site.index, statement(code, site.index), "before this line");
        if let Some(end) = behind(code, site.index) {
            put(site.index, end, "behind this line");
        }
        for at in (0..site.index).rev() {
            let one = &code[at];
            let label = |operand: usize| {
                let id = self.module.operands(one).get(operand)?;
                let label = *function.labels.get(id)?;
                Some((label, code[label + 1..].iter().position(|one| !begins(one.op))? + label + 1))
            };
            // What of the merge instructions before it has its end behind it.
            let Some((_, after)) = label(0).filter(|(merge, _)| merges(one.op) && *merge > site.index) else {
                continue;
            };
            if one.op == Op::SelectionMerge {
                put(at + 1, statement(code, at + 1), "before this line");
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
                    if one.op == Op::FunctionCall && self.module.operands(one).first() == Some(&site.function)
                    {
                        self.around(Site { function: *id, index }, depth + 1, positions);
                    }
                }
            }
        }
    }

    /// The last resort: it orders nothing else, and does not make one step of a read and the write that follows it.
    fn atomic(&self, sites: &[Site], class: Class) -> Option<WalkedChange> {
        let plain = |site: &Site| {
            matches!(site.instruction(self.module).map(|one| one.op), Some(Op::Load | Op::Store))
        };
        let mut changed: Vec<Site> = sites.iter().copied().filter(plain).collect();
        changed.dedup();
        let site = *changed.first()?;
        let one = site.instruction(self.module)?;
        let function = self.module.functions.get(&site.function)?;
        let line = |of: &Site| of.instruction(self.module).map(|one| one.line);
        let reads = function.code.iter().any(|other| {
            let same = other.op == Op::Load && changed.iter().any(|site| Some(other.line) == line(site));
            let root = |one: &Instruction| root(self.module, function, *self.module.operands(one).first()?);
            same && root(other) == root(one)
        });
        let stores =
            changed.iter().any(|site| site.instruction(self.module).is_some_and(|one| one.op == Op::Store));
        if reads && stores && changed.iter().all(|site| line(site) == line(&changed[0])) {
            return None;
        }
        let text = "make the racing accesses atomic, which leaves them without an order".to_owned();
        Some(WalkedChange { line: one.line, place: one.place, text, make: Make::Atomic(changed, class) })
    }
}

/// Where the statement of an instruction begins in its block.
fn statement(code: &[Instruction], index: usize) -> usize {
    let line = code[index].line;
    let mut at = index;
    while at > 0 {
        let before = &code[at - 1];
        let joined = merges(before.op) || line != 0 && before.line == line;
        if begins(before.op) || ends(before.op) || !joined {
            break;
        }
        at -= 1;
    }
    at
}

/// Behind its statement; nothing where that decides where to go.
fn behind(code: &[Instruction], index: usize) -> Option<usize> {
    let line = code[index].line;
    let same = |one: &&Instruction| !ends(one.op) && !merges(one.op) && line != 0 && one.line == line;
    let end = index + 1 + code[index + 1..].iter().take_while(same).count();
    let next = code.get(end)?;
    let decides = merges(next.op) || matches!(next.op, Op::BranchConditional | Op::Switch);
    (!decides || next.line != line).then_some(end)
}
