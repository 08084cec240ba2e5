//! Finds fixes for races: changes of the litmus test, each verified by the model.
//!
//! A change applies wherever its line is executed, in every invocation. The search returns the cheapest
//! combination after which nothing races and the claim holds. It tries single changes first, then pairs and
//! triples (at most three), so a fix of more changes is missed.

mod apply;
mod candidates;
mod change;
mod edit;
mod handover;
mod walk_fixes;

use std::collections::{BTreeMap, BTreeSet};

use litmus::{
    Condition, Instruction, InstructionKind, Question, QuestionKind, Race, Scope, Semantics, Span,
    StorageClass, Test,
};
use model::{Model, PredictError};
use spirv_reader::SpirvModule;

use crate::accessed_variable::accessed_variable;
use crate::answer::{ModelQuery, RaceSpot, decide_with_model};
use crate::emit::{self, AddedSemantics};
use crate::error::SourcePosition;
use crate::finding::{FindingCause, Spot};
use crate::grid::GridFinding;
use crate::lifted::{Lifted, LiftedCase};

use candidates::ModuleCandidates;
use edit::WIDEST_SCOPE;

pub use change::{ChangeKind, InsertionAnchor, InsertionSide, KernelChange};
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

/// The result of a search for a fix.
#[derive(Clone, Debug)]
pub struct FixResult {
    /// The changes, all of them needed; empty if none was found.
    pub changes: Vec<KernelChange>,
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
    let mut trials = LitmusTrials { module, lifted, model, query, tried: 0 };
    let mut failure = None;
    let mut changes = Vec::new();
    for finding in findings_to_fix(module, lifted, race) {
        let Some(candidates) = ModuleCandidates::from_finding(module, &finding, &[]) else { continue };
        let found = candidates.search(3, |changes| {
            if trials.tried >= MAX_TRIALS {
                return None;
            }
            match trials.fixes_all(changes) {
                Ok(is_fix) => Some(is_fix.then(Vec::new)),
                Err(error) => {
                    failure = Some(error);
                    None
                }
            }
        });
        if let Some(error) = failure {
            return Err(error);
        }
        if let Some((found, _)) = found {
            changes = found;
            break;
        }
    }
    Ok(FixResult { changes, tried_candidates: trials.tried })
}

/// Returns the racing accesses as a finding; without a race, the accesses of each storage class.
fn findings_to_fix(module: &SpirvModule, lifted: &Lifted, race: Option<&RaceSpot>) -> Vec<GridFinding> {
    if let Some(race) = race {
        return vec![GridFinding::from_spots(lifted, FindingCause::Unordered, Default::default(), &race.at)];
    }
    let Some(case) = lifted.cases.first() else { return Vec::new() };
    let mut spots: BTreeMap<StorageClass, Vec<Spot>> = BTreeMap::new();
    for (thread, origins) in case.test.threads.iter().zip(&case.origins) {
        for (instruction, origin) in thread.instructions.iter().zip(origins) {
            if accessed_variable(module, origin.place).is_some()
                && let Some(class) = emit::class_of(&instruction.kind)
            {
                let known = spots.entry(class).or_default();
                if known.iter().all(|known| known.place != origin.place) {
                    known.push(*origin);
                }
            }
        }
    }
    let finding =
        |at: &Vec<Spot>| GridFinding::from_spots(lifted, FindingCause::Unordered, Default::default(), at);
    spots.values().map(finding).collect()
}

/// Applies changes to litmus tests and predicts them.
struct LitmusTrials<'a> {
    module: &'a SpirvModule,
    lifted: &'a Lifted,
    model: &'a Model,
    query: &'a ModelQuery<'a>,
    tried: usize,
}

impl LitmusTrials<'_> {
    fn fixes_all(&mut self, changes: &[&KernelChange]) -> Result<bool, PredictError> {
        let mut changed = self.lifted.clone();
        for change in changes {
            if !change.apply_to_test(self.module, &mut changed) {
                return Ok(false);
            }
        }
        self.tried += 1;
        let budget = self.query.budget.with_step_limit(TRIAL_STEPS);
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

impl KernelChange {
    /// Applies the change to a litmus test; returns false if it has no effect or the test cannot express it.
    fn apply_to_test(&self, module: &SpirvModule, lifted: &mut Lifted) -> bool {
        let mut changed = false;
        for case in &mut lifted.cases {
            changed |= match &self.kind {
                ChangeKind::StrengthenOrder { more, .. } => {
                    replace_instructions(case, self.place, |kind| emit::strengthen_order(kind, *more))
                }
                ChangeKind::WidenScope { .. } => {
                    replace_instructions(case, self.place, |kind| emit::widen_scope(kind, WIDEST_SCOPE))
                }
                ChangeKind::MakeCoherent { root, .. } => make_variable_coherent(module, case, *root),
                ChangeKind::MakeAtomic { sites, .. } => {
                    let mut is_changed = false;
                    for site in sites {
                        let Some(instruction) = site.instruction(module) else { continue };
                        // Every access is changed, even if an earlier change already has an effect.
                        is_changed |= replace_instructions(case, instruction.place, |kind| {
                            emit::make_atomic(kind, WIDEST_SCOPE)
                        });
                    }
                    is_changed
                }
                ChangeKind::InsertFences { side, classes, .. } => {
                    let semantics = classes.iter().fold(Semantics::RELAXED, |all, class| {
                        AddedSemantics { acquire: true, release: true, class: *class }.added_to(all)
                    });
                    let fence = |_, _| emit::memory_barrier(WIDEST_SCOPE, semantics);
                    let sides: &[bool] = match side {
                        InsertionSide::Before => &[false],
                        InsertionSide::After => &[true],
                        InsertionSide::Around => &[false, true],
                    };
                    let mut is_changed = false;
                    for is_after in sides {
                        is_changed |= insert_around(case, self.place, *is_after, fence);
                    }
                    is_changed
                }
                ChangeKind::InsertBarrier {
                    anchor: InsertionAnchor::Line,
                    side,
                    scope: Scope::Workgroup,
                    class,
                    ..
                } => {
                    let is_after = *side == InsertionSide::After;
                    is_uniformly_executed(case, self.place)
                        && insert_around(case, self.place, is_after, |place, number| {
                            // No other barrier has an instance number this large.
                            let instance = 100_000 * (1 + place) + number;
                            let semantics = Some(emit::full_semantics(*class));
                            emit::control_barrier(instance, Scope::Workgroup, Scope::Workgroup, semantics)
                        })
                }
                ChangeKind::InsertBarrier { .. }
                | ChangeKind::ZeroInitialize(_)
                | ChangeKind::MakeUpdate { .. }
                | ChangeKind::MakeImageUpdate { .. } => false,
            };
        }
        changed
    }
}

/// Makes all accesses through a variable available or visible.
fn make_variable_coherent(module: &SpirvModule, case: &mut LiftedCase, root: u32) -> bool {
    let mut changed = false;
    for (thread, origins) in case.test.threads.iter_mut().zip(&case.origins) {
        for (instruction, origin) in thread.instructions.iter_mut().zip(origins) {
            if emit::location_of(&instruction.kind).is_some()
                && accessed_variable(module, origin.place) == Some(root)
                && let Some(kind) = emit::make_coherent(&instruction.kind, WIDEST_SCOPE)
            {
                instruction.kind = kind;
                changed = true;
            }
        }
    }
    changed
}

fn replace_instructions(
    case: &mut LiftedCase,
    place: SourcePosition,
    change: impl Fn(&InstructionKind) -> Option<InstructionKind>,
) -> bool {
    let mut changed = false;
    for (thread, origins) in case.test.threads.iter_mut().zip(&case.origins) {
        for (instruction, origin) in thread.instructions.iter_mut().zip(origins) {
            if origin.place == place
                && let Some(kind) = change(&instruction.kind)
            {
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
