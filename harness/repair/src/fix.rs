//! Finds fixes for races and broken claims: changes of the module, each verified by walking or lifting it.
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
    Condition, Instruction, InstructionKind, Order, Question, QuestionKind, Race, Scope, Semantics, Span,
    StorageClass, StorageClassSet,
};
use model::{Model, PredictError};
use spirv_reader::SpirvModule;

use entry_point::accessed_variable::accessed_variable;
use entry_point::{AnalysisOptions, FindingCause, InvocationId, Spot};
use symbolic::{Lifted, ModelQuery, RaceSpot, decide_with_model, emit, lift};
use walk::GridFinding;

use apply::apply_changes;
use candidates::ModuleCandidates;

pub use change::{ChangeKind, KernelChange};
pub use walk_fixes::{WalkFixes, fix_walk_findings};
pub(crate) use walk_fixes::{adds_divergent_barrier, fix_walk_finding};

/// Model steps for one candidate.
const TRIAL_STEPS: u64 = 40_000;
/// Upper bound on the candidates.
const MAX_TRIALS: usize = 600;

/// The synchronization that two racing accesses lack (Vulkan specification, Memory Model).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissingSync {
    /// An access is private, so no synchronization publishes it.
    NonPrivate,
    /// Neither access happens before the other.
    HappensBefore,
    /// The same, in different workgroups.
    BetweenWorkgroups,
    /// A barrier between the accesses does not order their storage class.
    StorageClass,
    /// A barrier between the accesses has no memory semantics.
    Semantics,
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
                "an access is private to its invocation, so that no synchronization publishes it (Private vs. Non-Private)"
            }
            MissingSync::HappensBefore => {
                "no synchronization orders the two accesses: between them is neither a barrier that both execute nor a release that an \
                 acquire observes (Synchronizes-With)"
            }
            MissingSync::BetweenWorkgroups => {
                "no synchronization orders the two accesses: a barrier is of one workgroup, and no acquire in one of the two observes a \
                 release in the other (Synchronizes-With)"
            }
            MissingSync::StorageClass => {
                "no synchronization orders the two accesses: the semantics of the barrier between them leave out their memory (Memory \
                 Semantics)"
            }
            MissingSync::Semantics => {
                "no synchronization orders the two accesses: the barrier between them has no release and acquire for both (Memory \
                 Semantics)"
            }
            MissingSync::Availability => {
                "the accesses are synchronized, but the memory is not made available and visible between them (Availability and Visibility)"
            }
            MissingSync::Scope => {
                "the scope of the synchronization between the accesses is too narrow (Scope)"
            }
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
    let ordered_by = |strengthen: fn(Semantics) -> Semantics| {
        move |kind: &InstructionKind| published(kind).or_else(|| strengthen_barrier(kind, strengthen))
    };
    Ok(if !races(&emit::make_non_private)? {
        MissingSync::NonPrivate
    } else if !races(&published)? {
        MissingSync::Availability
    } else if !races(&widen_to_queue_family)?
        || !races(&|kind| published(kind).or_else(|| widen_to_queue_family(kind)))?
    {
        MissingSync::Scope
    } else if !races(&ordered_by(of_every_class))? {
        MissingSync::StorageClass
    } else if !races(&ordered_by(in_both_directions))? {
        MissingSync::Semantics
    } else if is_between_workgroups(&lifted.invocations) {
        MissingSync::BetweenWorkgroups
    } else {
        MissingSync::HappensBefore
    })
}

/// Returns true if each invocation is of another workgroup.
fn is_between_workgroups(invocations: &[InvocationId]) -> bool {
    let workgroups: BTreeSet<u32> = invocations.iter().map(|one| one.workgroup_index).collect();
    workgroups.len() == invocations.len()
}

/// Replaces the semantics of a barrier.
fn strengthen_barrier(
    kind: &InstructionKind,
    strengthen: fn(Semantics) -> Semantics,
) -> Option<InstructionKind> {
    let mut changed = kind.clone();
    match &mut changed {
        InstructionKind::Fence { semantics, .. } => *semantics = strengthen(*semantics),
        InstructionKind::ControlBarrier(barrier) => {
            barrier.semantics = Some(strengthen(barrier.semantics.unwrap_or_default()));
        }
        _ => return None,
    }
    Some(changed)
}

fn of_every_class(semantics: Semantics) -> Semantics {
    if semantics.order == Order::Relaxed {
        return semantics;
    }
    let (make_available, make_visible) = (semantics.order.releases(), semantics.order.acquires());
    Semantics {
        classes: StorageClassSet::GLOBAL.with(StorageClass::Workgroup),
        make_available,
        make_visible,
        ..semantics
    }
}

fn in_both_directions(semantics: Semantics) -> Semantics {
    of_every_class(Semantics { order: Order::AcquireRelease, ..semantics })
}

fn instructions_mut(lifted: &mut Lifted) -> impl Iterator<Item = &mut Instruction> {
    lifted
        .cases
        .iter_mut()
        .flat_map(|case| &mut case.test.threads)
        .flat_map(|thread| &mut thread.instructions)
}

/// Returns the cheapest changes after which nothing races and the claim holds, by lifting each changed module.
///
/// `lifted` is the module with these options.
///
/// # Errors
/// Fails beyond the bounds of the engine.
pub fn fix_races(
    module: &SpirvModule,
    options: &AnalysisOptions,
    lifted: &Lifted,
    model: &Model,
    race: Option<&RaceSpot>,
    query: &ModelQuery<'_>,
) -> Result<FixResult, PredictError> {
    let defects = lifted.findings.len();
    let mut trials = ModelTrials { module, options, defects, model, query, tried: 0 };
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
    let finding = |at: &[Spot]| {
        GridFinding::from_spots(&lifted.invocations, FindingCause::Unordered, String::new(), at)
    };
    if let Some(race) = race {
        return vec![finding(&race.at)];
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
    spots.values().map(|at| finding(at)).collect()
}

/// Applies changes to a module and predicts its litmus tests.
struct ModelTrials<'a> {
    module: &'a SpirvModule,
    options: &'a AnalysisOptions,
    /// The number of defects that the lifter finds in the module.
    defects: usize,
    model: &'a Model,
    query: &'a ModelQuery<'a>,
    tried: usize,
}

impl ModelTrials<'_> {
    fn fixes_all(&mut self, changes: &[&KernelChange]) -> Result<bool, PredictError> {
        // An atomic update would leave the synchronization broken that the update was to rely on.
        let is_update =
            |kind| matches!(kind, &ChangeKind::MakeUpdate { .. } | &ChangeKind::MakeImageUpdate { .. });
        if changes.iter().any(|change| is_update(&change.kind)) {
            return Ok(false);
        }
        let Some(changed) = apply_changes(self.module, changes) else { return Ok(false) };
        self.tried += 1;
        let Ok(changed) = lift(&changed, self.options) else { return Ok(false) };
        if changed.findings.len() > self.defects {
            return Ok(false);
        }
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
