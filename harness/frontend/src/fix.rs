//! Finds fixes for races: changes of the litmus test, each verified by the model.
//!
//! A change applies wherever its line is executed, in every invocation. The search returns the cheapest
//! combination after which nothing races and the claim holds. It tries single changes first, then pairs and
//! triples (at most three), so a fix of more changes is missed.

mod candidates;
mod change;
mod edit;
mod handover;
mod source_language;
mod walk_fixes;

use std::collections::BTreeSet;

use litmus::minimize::find_set_of_size;
use litmus::{
    Condition, Instruction, InstructionKind, Question, QuestionKind, Race, Scope, Semantics, Span,
    StorageClass, Test,
};
use model::{Model, PredictError};
use spirv_reader::SpirvModule;

use crate::accessed_variable::{accessed_variable, is_shared_elsewhere};
use crate::answer::{ModelQuery, RaceSpot, decide_with_model};
use crate::emit::{self, AddedSemantics};
use crate::error::SourcePosition;
use crate::finding::Spot;
use crate::lifted::{Lifted, LiftedCase};

use source_language::{SourceLanguage, variable_labels};

pub use change::KernelChange;
pub use walk_fixes::{WalkFixes, fix_walk_findings};

/// Model steps for one candidate.
const TRIAL_STEPS: u64 = 40_000;
/// Upper bound on the candidates.
const MAX_TRIALS: usize = 600;

/// The synchronization that two racing accesses lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissingSync {
    /// An access is private, so no synchronization publishes it.
    NonPrivate,
    /// Neither access happens before the other.
    HappensBefore,
    /// The write happens before, but is not available or not visible.
    Availability,
    /// The synchronization has too narrow a scope.
    Scope,
}

impl MissingSync {
    /// Returns the description.
    pub fn description(self) -> &'static str {
        match self {
            MissingSync::NonPrivate => {
                "an access is private to its invocation, so that no synchronization publishes it"
            }
            MissingSync::HappensBefore => "no synchronization orders the two accesses",
            MissingSync::Availability => {
                "the accesses are synchronized, but the memory is not made available and visible between them"
            }
            MissingSync::Scope => "the scope of the synchronization between the accesses is too narrow",
        }
    }
}

/// A suggested change of a shader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SuggestedChange {
    kind: SuggestedChangeKind,
    /// The position of the change; for a declaration one of its accesses.
    pub at: Spot,
    /// The change as source text, without its position.
    pub text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SuggestedChangeKind {
    /// Stronger order for the atomics and barriers at a position.
    StrengthenOrder(SourcePosition, AddedSemantics),
    WidenScope(SourcePosition, Scope),
    /// All accesses of a variable.
    NonPrivate(u32),
    Coherent(u32, Scope),
    /// Fences around a position.
    Fence(SourcePosition, bool, Scope, Semantics),
    /// A control barrier before or after a position.
    Barrier(SourcePosition, bool, Scope, Semantics),
    Atomic(SourcePosition, SourcePosition, Scope),
}

/// The result of a search for a fix.
#[derive(Clone, Debug)]
pub struct FixResult {
    /// The changes, all of them needed; empty if none was found.
    pub changes: Vec<SuggestedChange>,
    /// Number of candidates tried.
    pub tried_candidates: usize,
}

/// Returns the synchronization that two accesses lack, by adding the others one at a time.
///
/// # Errors
/// Fails beyond the bounds of the engine.
pub fn find_missing_sync(
    lifted: &Lifted,
    model: &Model,
    query: &ModelQuery<'_>,
) -> Result<MissingSync, PredictError> {
    let races = |change: &dyn Fn(&InstructionKind) -> Option<InstructionKind>| {
        let mut changed = lifted.clone();
        for instruction in instructions_mut(&mut changed) {
            if let Some(kind) = change(&instruction.kind) {
                instruction.kind = kind;
            }
        }
        let query = ModelQuery {
            budget: query.budget.with_step_limit(TRIAL_STEPS),
            decide_race: true,
            decide_question: false,
            locate_race: false,
        };
        Ok(decide_with_model(&changed, model, &query)?.race != Race::Free)
    };
    let widen_to_queue_family = |kind: &InstructionKind| emit::widen_scope(kind, Scope::QueueFamily);
    let published = |kind: &InstructionKind| emit::make_coherent(kind, Scope::QueueFamily);
    Ok(if !races(&emit::make_non_private)? {
        MissingSync::NonPrivate
    } else if !races(&published)? {
        MissingSync::Availability
    } else if !races(&widen_to_queue_family)?
        || !races(&|kind| published(kind).or_else(|| widen_to_queue_family(kind)))?
    {
        MissingSync::Scope
    } else {
        MissingSync::HappensBefore
    })
}

fn instructions_mut(lifted: &mut Lifted) -> impl Iterator<Item = &mut Instruction> {
    lifted
        .cases
        .iter_mut()
        .flat_map(|case| &mut case.test.threads)
        .flat_map(|thread| &mut thread.instructions)
}

/// Returns the cheapest changes after which nothing races and the claim holds.
///
/// # Errors
/// Fails beyond the bounds of the engine.
pub fn fix_races(
    module: &SpirvModule,
    lifted: &Lifted,
    model: &Model,
    race: Option<&RaceSpot>,
    query: &ModelQuery<'_>,
) -> Result<FixResult, PredictError> {
    let candidates = candidate_changes(module, lifted, race);
    let mut search = LitmusFixSearch { lifted, model, asking: query, tried: 0 };
    // Fewer changes first, then candidate order.
    for count in 1..=3 {
        if let Some(found) = search.find_of_size(&candidates, count)? {
            return Ok(FixResult { changes: found, tried_candidates: search.tried });
        }
    }
    // After all others, because it leaves the accesses unordered.
    let last = race.map(|race| make_atomic_change(module, race));
    if let Some(last) = last
        && search.fixes_all(&[&last])?
    {
        return Ok(FixResult { changes: vec![last], tried_candidates: search.tried });
    }
    Ok(FixResult { changes: Vec::new(), tried_candidates: search.tried })
}

struct LitmusFixSearch<'a> {
    lifted: &'a Lifted,
    model: &'a Model,
    asking: &'a ModelQuery<'a>,
    tried: usize,
}

impl LitmusFixSearch<'_> {
    fn find_of_size(
        &mut self,
        candidates: &[SuggestedChange],
        count: usize,
    ) -> Result<Option<Vec<SuggestedChange>>, PredictError> {
        let found = find_set_of_size(candidates.len(), count, |chosen| {
            let changes: Vec<&SuggestedChange> = chosen.iter().map(|index| &candidates[*index]).collect();
            match self.fixes_all(&changes) {
                Ok(true) => Ok(Some(changes.into_iter().cloned().collect())),
                Ok(false) if self.tried < MAX_TRIALS => Ok(None),
                Ok(false) => Err(None),
                Err(error) => Err(Some(error)),
            }
        });
        found.or_else(|error: Option<PredictError>| error.map_or(Ok(None), Err))
    }

    fn fixes_all(&mut self, changes: &[&SuggestedChange]) -> Result<bool, PredictError> {
        let mut changed = self.lifted.clone();
        for change in changes {
            if !change.kind.apply_to(&mut changed) {
                return Ok(false);
            }
        }
        self.tried += 1;
        let budget = self.asking.budget.with_step_limit(TRIAL_STEPS);
        let race = decide_with_model(
            &changed,
            self.model,
            &ModelQuery { budget, decide_race: true, decide_question: false, locate_race: false },
        )?;
        if race.race != Race::Free {
            return Ok(false);
        }
        // The changed test must still terminate: a deadlock would hide the race.
        let mut ending = changed.clone();
        for case in &mut ending.cases {
            let (kind, condition, span) = (QuestionKind::Exists, Condition::True, Span::default());
            case.test.question = Some(Question { kind, condition, span });
        }
        let ends = decide_with_model(
            &ending,
            self.model,
            &ModelQuery { budget, decide_race: false, decide_question: true, locate_race: false },
        )?;
        if ends.holds != Some(true) {
            return Ok(false);
        }
        // A claim about all executions must hold after the change. An outcome need not remain reachable.
        let claim = changed.cases.first().and_then(|case| case.test.question.as_ref()).map(|q| q.kind);
        if !matches!(claim, Some(QuestionKind::Forall | QuestionKind::NotExists)) {
            return Ok(true);
        }
        let claim_answer = decide_with_model(
            &changed,
            self.model,
            &ModelQuery { budget, decide_race: false, decide_question: true, locate_race: false },
        )?;
        Ok(claim_answer.holds == Some(true))
    }
}

impl SuggestedChangeKind {
    /// Applies the change; returns false if it has no effect or is impossible.
    fn apply_to(self, lifted: &mut Lifted) -> bool {
        let mut changed = false;
        for case in &mut lifted.cases {
            changed |= match self {
                SuggestedChangeKind::StrengthenOrder(place, more) => {
                    replace_instructions(case, Some(place), |_, kind| emit::strengthen_order(kind, more))
                }
                SuggestedChangeKind::WidenScope(place, wide) => {
                    replace_instructions(case, Some(place), |_, kind| emit::widen_scope(kind, wide))
                }
                SuggestedChangeKind::NonPrivate(variable) => {
                    change_accesses(case, variable, &emit::make_non_private)
                }
                SuggestedChangeKind::Coherent(variable, scope) => {
                    change_accesses(case, variable, &|kind| emit::make_coherent(kind, scope))
                }
                SuggestedChangeKind::Atomic(first, second, scope) => {
                    // Both accesses are changed, even if the first change already has an effect.
                    let one =
                        replace_instructions(case, Some(first), |_, kind| emit::make_atomic(kind, scope));
                    replace_instructions(case, Some(second), |_, kind| emit::make_atomic(kind, scope)) || one
                }
                SuggestedChangeKind::Fence(place, behind, scope, semantics) => {
                    insert_around(case, place, behind, |_, _| emit::memory_barrier(scope, semantics))
                }
                SuggestedChangeKind::Barrier(place, behind, scope, semantics) => {
                    is_uniformly_executed(case, place)
                        && insert_around(case, place, behind, |place, number| {
                            // No other barrier has an instance number this large.
                            let instance = 100_000 * (1 + place) + number;
                            emit::control_barrier(instance, Scope::Workgroup, scope, Some(semantics))
                        })
                }
            };
        }
        changed
    }
}

/// Changes all accesses of a variable.
fn change_accesses(
    case: &mut LiftedCase,
    variable: u32,
    change: &dyn Fn(&InstructionKind) -> Option<InstructionKind>,
) -> bool {
    let variables: Vec<u32> = case.cells.iter().map(|cell| cell.object.variable).collect();
    replace_instructions(case, None, |_, kind| {
        let location = emit::location_of(kind)?;
        let is_of_variable = variables.get(usize::from(location.0)) == Some(&variable);
        change(kind).filter(|_| is_of_variable)
    })
}

fn replace_instructions(
    case: &mut LiftedCase,
    place: Option<SourcePosition>,
    change: impl Fn(usize, &InstructionKind) -> Option<InstructionKind>,
) -> bool {
    let mut changed = false;
    for (thread, origins) in case.test.threads.iter_mut().zip(&case.origins) {
        for (index, (instruction, origin)) in thread.instructions.iter_mut().zip(origins).enumerate() {
            if place.is_some_and(|place| origin.place != place) {
                continue;
            }
            if let Some(kind) = change(index, &instruction.kind) {
                instruction.kind = kind;
                changed = true;
            }
        }
    }
    changed
}

/// Inserts instructions before or after the accesses of a position.
fn insert_around(
    case: &mut LiftedCase,
    place: SourcePosition,
    is_after: bool,
    make: impl Fn(usize, usize) -> InstructionKind,
) -> bool {
    let number = match place {
        SourcePosition::Line(number) | SourcePosition::Word(number) => number as usize,
        SourcePosition::Module => return false,
    };
    let mut changed = false;
    for (thread, origins) in case.test.threads.iter_mut().zip(&mut case.origins) {
        let mut count = 0;
        let mut at = 0;
        while at < thread.instructions.len() {
            if origins[at].place == place && thread.instructions[at].kind.is_event() {
                let inserted = Instruction {
                    kind: make(number * 2 + usize::from(is_after), count),
                    span: Span::default(),
                };
                let position = at + usize::from(is_after);
                let origin = Spot { writes: None, ..origins[at] };
                thread.instructions.insert(position, inserted);
                // An inserted instruction has no position, so that it is not mistaken for the original one.
                origins.insert(position, Spot { place: SourcePosition::Module, ..origin });
                // Past the inserted and the original instruction.
                (count, at, changed) = (count + 1, at + 1, true);
            }
            at += 1;
        }
    }
    changed
}

/// Returns true if every invocation executes a position equally often, independent of read values.
fn is_uniformly_executed(case: &LiftedCase, place: SourcePosition) -> bool {
    let is_straight_line = |test: &Test| {
        test.threads
            .iter()
            .all(|thread| thread.instructions.iter().all(|i| !emit::is_conditional_branch(&i.kind)))
    };
    let counts: BTreeSet<usize> = case
        .test
        .threads
        .iter()
        .zip(&case.origins)
        .map(|(thread, origins)| {
            let here = thread.instructions.iter().zip(origins);
            here.filter(|(instruction, origin)| origin.place == place && instruction.kind.is_event()).count()
        })
        .collect();
    is_straight_line(&case.test) && counts.len() == 1 && !counts.contains(&0)
}

/// Returns the candidate changes, cheapest first.
fn candidate_changes(module: &SpirvModule, lifted: &Lifted, race: Option<&RaceSpot>) -> Vec<SuggestedChange> {
    let Some(case) = lifted.cases.first() else { return Vec::new() };
    // The narrowest scope that the racing invocations, or else all, share.
    let workgroup = |spot: &Spot| lifted.invocations.get(usize::from(spot.thread)).map(|one| one.workgroup);
    let one_workgroup = match race {
        Some(race) => workgroup(&race.at[0]) == workgroup(&race.at[1]),
        None => lifted.invocations.iter().all(|one| one.workgroup == lifted.invocations[0].workgroup),
    };
    let scope = match (one_workgroup, module.uses_vulkan_model) {
        (true, _) => Scope::Workgroup,
        (false, true) => Scope::Device,
        (false, false) => Scope::QueueFamily,
    };
    let mut places: Vec<(Spot, InstructionKind)> = Vec::new();
    let mut raced_objects: BTreeSet<(StorageClass, u32)> = BTreeSet::new();
    for (thread, origins) in case.test.threads.iter().zip(&case.origins) {
        for (instruction, origin) in thread.instructions.iter().zip(origins) {
            if emit::event_keyword(&instruction.kind).is_none() || origin.place == SourcePosition::Module {
                continue;
            }
            if let (Some(class), Some(location)) =
                (emit::class_of(&instruction.kind), emit::location_of(&instruction.kind))
                && let Some(variable) =
                    case.cells.get(usize::from(location.0)).map(|cell| &cell.object.variable)
                && race.is_none_or(|race| race.at.iter().any(|at| at.place == origin.place))
            {
                raced_objects.insert((class, *variable));
            }
            if places.iter().all(|(known, _)| known.place != origin.place) {
                places.push((*origin, instruction.kind.clone()));
            }
        }
    }
    let mut found = Vec::new();
    let language = SourceLanguage::from_module(module);
    let mut add = |kind: SuggestedChangeKind, at: Spot, text: String| {
        if language.can_express(kind) {
            found.push(SuggestedChange { kind, at, text });
        }
    };
    // Stronger semantics of existing atomics and barriers, for each class that races.
    for (class, _) in &raced_objects {
        let class = *class;
        let words = class_words(class);
        for (spot, kind) in &places {
            let Some(word) = emit::event_keyword(kind) else { continue };
            let is_barrier =
                matches!(kind, InstructionKind::ControlBarrier(_) | InstructionKind::Fence { .. });
            let orders: &[(bool, bool)] =
                if is_barrier { &[(true, true)] } else { &[(true, false), (false, true), (true, true)] };
            for (acquire, release) in orders {
                let more = AddedSemantics { acquire: *acquire, release: *release, class };
                if !(module.uses_vulkan_model || is_barrier) || emit::strengthen_order(kind, more).is_none() {
                    continue;
                }
                let text = if is_barrier && !module.uses_vulkan_model {
                    format!("put `{}` before and after this `{word}`", language.memory_barrier(class))
                } else {
                    format!("give the {word} {} semantics on {words}", order_words(*acquire, *release))
                };
                add(SuggestedChangeKind::StrengthenOrder(spot.place, more), *spot, text);
            }
        }
        // Without the Vulkan memory model, the source gives an atomic no semantics; a memory
        // barrier next to it has the same effect.
        if !module.uses_vulkan_model {
            let semantics = emit::full_semantics(class);
            for (spot, kind) in &places {
                let Some(word) = emit::event_keyword(kind).filter(|word| word.starts_with("atomic")) else {
                    continue;
                };
                for is_after in [true, false] {
                    let side = if is_after { "after" } else { "before" };
                    let text = format!("put `{}` {side} the {word}", language.memory_barrier(class));
                    add(SuggestedChangeKind::Fence(spot.place, is_after, scope, semantics), *spot, text);
                }
            }
        }
    }
    // Wider scopes.
    for (spot, kind) in &places {
        if emit::widen_scope(kind, scope).is_some()
            && let Some(word) = emit::event_keyword(kind)
        {
            let text = format!("widen the scope of the {word} to {}", scope_words(scope));
            add(SuggestedChangeKind::WidenScope(spot.place, scope), *spot, text);
        }
    }
    // Qualifiers on the racing variables.
    for (class, variable) in &raced_objects {
        let mut accesses = places.iter().filter(|(_, kind)| {
            emit::make_coherent(kind, scope).is_some()
                && emit::location_of(kind)
                    .and_then(|l| case.cells.get(usize::from(l.0)).map(|cell| &cell.object.variable))
                    == Some(variable)
        });
        // Several blocks may share a binding: only the accessed ones change.
        let blocks: BTreeSet<u32> =
            accesses.clone().filter_map(|(spot, _)| accessed_variable(module, spot.place)).collect();
        let mut blocks: Vec<u32> = blocks.into_iter().collect();
        if blocks.is_empty() {
            blocks.push(*variable);
        }
        let first = accesses.next().filter(|_| *class != StorageClass::Workgroup || module.uses_vulkan_model);
        if let Some((spot, _)) = first {
            let left_out = blocks.iter().any(|block| is_shared_elsewhere(module, *block));
            let text = language.make_coherent_text(module, &blocks, left_out);
            if module.uses_vulkan_model && !left_out {
                let name = variable_labels(module, &blocks);
                add(
                    SuggestedChangeKind::NonPrivate(*variable),
                    *spot,
                    format!("declare `{name}` nonprivate"),
                );
            }
            add(SuggestedChangeKind::Coherent(*variable, scope), *spot, text);
        }
    }
    // Control barriers, which only invocations of one workgroup share.
    if one_workgroup {
        for (class, _) in &raced_objects {
            for (spot, kind) in &places {
                if matches!(kind, InstructionKind::ControlBarrier(_))
                    || !is_uniformly_executed(case, spot.place)
                {
                    continue;
                }
                for is_after in [true, false] {
                    let side = if is_after { "after" } else { "before" };
                    let function = language.control_barrier(*class);
                    let semantics = emit::full_semantics(*class);
                    let text = format!("put `{function}` {side} this line");
                    add(
                        SuggestedChangeKind::Barrier(spot.place, is_after, Scope::Workgroup, semantics),
                        *spot,
                        text,
                    );
                }
            }
        }
    }
    found
}

/// Returns the last resort, which adds no order to other accesses.
fn make_atomic_change(module: &SpirvModule, race: &RaceSpot) -> SuggestedChange {
    let [first, second] = race.at;
    let scope = if module.uses_vulkan_model { Scope::Device } else { Scope::QueueFamily };
    let text = "make the racing accesses atomic".to_owned();
    SuggestedChange { kind: SuggestedChangeKind::Atomic(first.place, second.place, scope), at: first, text }
}

fn class_words(class: StorageClass) -> &'static str {
    match class {
        StorageClass::Buffer => "buffer memory",
        StorageClass::Workgroup => "shared memory",
        StorageClass::Image => "images",
        StorageClass::Output => "outputs",
    }
}

fn order_words(acquire: bool, release: bool) -> &'static str {
    match (acquire, release) {
        (true, false) => "Acquire and MakeVisible",
        (false, true) => "Release and MakeAvailable",
        _ => "AcquireRelease, MakeAvailable and MakeVisible",
    }
}

fn scope_words(scope: Scope) -> &'static str {
    match scope {
        Scope::Invocation | Scope::Subgroup | Scope::Workgroup => "the workgroup",
        Scope::ShaderCall | Scope::FragmentInterlock | Scope::QueueFamily => "the queue family",
        Scope::Device | Scope::CrossDevice => "the device",
    }
}
