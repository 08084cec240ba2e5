//! Finds the cheapest strengthening that removes all races, or forbids an outcome in addition.
//!
//! The search first tests the strongest program, which decides whether any fix exists. It then proceeds
//! breadth-first over the number of strengthening steps. Past its bounds, it returns an irreducible fix: the
//! strongest program, weakened greedily instruction by instruction.

use std::collections::HashSet;

use litmus::test::lattice::StrengthBounds;
use litmus::{InstructionKind, Prediction, Race, Span, Test, ThreadId};

use super::ExplainOptions;
use super::strengthen::{is_not_searched, list_stronger_forms};
use crate::explore::ExplorationStrategy;
use crate::predict::predict_with_tracker;
use crate::{Model, PredictError};
use solver::BudgetTracker;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FixGoal {
    /// Nothing races.
    NoRace,
    /// Nothing races, and the explained outcome is forbidden.
    Forbidden,
}

impl FixGoal {
    /// Returns true if a program meets the goal; `None` if unknown.
    fn is_met_by(self, prediction: &Prediction) -> Option<bool> {
        match (prediction.race, self) {
            (Race::Racy, _) => Some(false),
            (Race::Unknown, _) => None,
            (Race::Free, FixGoal::NoRace) => Some(true),
            (Race::Free, FixGoal::Forbidden) => prediction.can_meet_condition.map(|meets| !meets),
        }
    }
}

/// Proven minimality of a fix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Minimality {
    /// The fewest steps, and among these the weakest requirements.
    Cheapest,
    /// That search was incomplete; no step can be removed.
    Irreducible,
    /// The search ended before this was known.
    Unknown,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FixSearchResult {
    /// Changes that meet the goal.
    Found {
        changes: Vec<InstructionChange>,
        /// Proven minimality of the changes.
        minimality: Minimality,
        /// True if the explained outcome is then allowed; `None` if the search ended before the answer.
        allowed: Option<bool>,
    },
    /// Not even the strongest form of the program meets the goal.
    Impossible,
    /// The search reached its bounds.
    LimitReached,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstructionChange {
    /// The thread, counted from 0.
    pub thread: usize,
    /// Source location of the instruction.
    pub span: Span,
    pub before: String,
    pub after: String,
}

/// A thread and the index of one of its instructions.
type InstructionIndex = (usize, usize);

/// One combination of steps: for each instruction that has one, its stronger form.
#[derive(Clone)]
struct Strengthening {
    changes: Vec<(InstructionIndex, InstructionKind)>,
    weight: u32,
}

/// Searches for a fix: the strongest program first, then level by level by number of steps.
///
/// # Errors
/// As [`predict`].
pub(super) fn find_fix(
    goal: FixGoal,
    test: &Test,
    model: &Model,
    options: &ExplainOptions<'_>,
    unroll: u32,
    tracker: &BudgetTracker<'_>,
) -> Result<FixSearchResult, PredictError> {
    let reach = StrengthBounds::for_test(test);
    let search = StrengtheningSearch { goal, test, model, unroll, tracker };
    let positions: Vec<InstructionIndex> = test
        .threads
        .iter()
        .enumerate()
        .flat_map(|(thread, found)| (0..found.instructions.len()).map(move |index| (thread, index)))
        .collect();
    let irreducible = search.find_irreducible(&reach, &positions)?;
    if irreducible == FixSearchResult::Impossible {
        // For an instruction without stronger forms in this search, the effect of a stronger one is unknown.
        let mut kinds = positions.iter().filter_map(|place| instruction_at(test, *place));
        return Ok(if kinds.any(is_not_searched) {
            FixSearchResult::LimitReached
        } else {
            FixSearchResult::Impossible
        });
    }
    let mut level = vec![Strengthening { changes: Vec::new(), weight: 0 }];
    let mut visited: HashSet<Vec<(InstructionIndex, String)>> = HashSet::new();
    let mut programs = 0;
    for _ in 0..options.max_fix_steps {
        let mut next = Vec::new();
        let mut best: Option<(u32, Strengthening, Option<bool>)> = None;
        for base in &level {
            for place in &positions {
                let changed = base.changes.iter().find(|(at, _)| at == place).map(|(_, kind)| kind);
                let Some(original) = instruction_at(test, *place) else { continue };
                for stronger in list_stronger_forms(&reach, changed.unwrap_or(original)) {
                    let mut changes = base.changes.clone();
                    changes.retain(|(at, _)| at != place);
                    changes.push((*place, stronger.kind));
                    changes.sort_by_key(|(at, _)| *at);
                    let key = changes
                        .iter()
                        .map(|(at, kind)| (*at, kind.to_text(test, ThreadId(at.0 as u16))))
                        .collect();
                    // Steps in different orders lead to the same changes.
                    if !visited.insert(key) {
                        continue;
                    }
                    // A fix of this level has the fewest steps, but a cheaper one may not have been
                    // tried.
                    if programs >= options.max_fix_programs || tracker.spend(1) {
                        return match best {
                            Some((_, found, allowed)) => {
                                Ok(describe_fix(test, &found, allowed, Minimality::Irreducible))
                            }
                            None => Ok(irreducible),
                        };
                    }
                    programs += 1;
                    let strengthened = Strengthening { changes, weight: base.weight + stronger.weight };
                    // Nothing is lost for the next level, which is not visited once this one has a
                    // fix.
                    if best.as_ref().is_some_and(|(weight, ..)| *weight <= strengthened.weight) {
                        continue;
                    }
                    let prediction = search.predict_strengthened(&strengthened)?;
                    if goal.is_met_by(&prediction) == Some(true) {
                        best = Some((strengthened.weight, strengthened, prediction.can_meet_condition));
                    } else {
                        next.push(strengthened);
                    }
                }
            }
        }
        if let Some((_, found, allowed)) = best {
            return Ok(describe_fix(test, &found, allowed, Minimality::Cheapest));
        }
        level = next;
    }
    Ok(irreducible)
}

/// Evaluates strengthened programs under the model.
struct StrengtheningSearch<'a> {
    goal: FixGoal,
    test: &'a Test,
    model: &'a Model,
    unroll: u32,
    tracker: &'a BudgetTracker<'a>,
}

impl StrengtheningSearch<'_> {
    fn predict_strengthened(&self, strengthened: &Strengthening) -> Result<Prediction, PredictError> {
        let changed = apply_strengthening(self.test, strengthened);
        predict_with_tracker(
            &changed,
            self.model,
            self.unroll,
            ExplorationStrategy::DECIDE_ONLY,
            self.tracker,
        )
    }

    /// Strengthens every instruction to its strongest form, then weakens each as far as possible.
    fn find_irreducible(
        &self,
        reach: &StrengthBounds,
        positions: &[InstructionIndex],
    ) -> Result<FixSearchResult, PredictError> {
        let forms: Vec<(InstructionIndex, Vec<(u32, InstructionKind)>)> = positions
            .iter()
            .filter_map(|place| Some((*place, all_stronger_forms(reach, instruction_at(self.test, *place)?))))
            .collect();
        let mut strongest = Strengthening { changes: Vec::new(), weight: 0 };
        for (place, forms) in &forms {
            // The form of the greatest weight is the strongest.
            if let Some((weight, kind)) = forms.last() {
                strongest.changes.push((*place, kind.clone()));
                strongest.weight += weight;
            }
        }
        let mut prediction = self.predict_strengthened(&strongest)?;
        match self.goal.is_met_by(&prediction) {
            Some(true) => {}
            Some(false) => return Ok(FixSearchResult::Impossible),
            None => return Ok(FixSearchResult::LimitReached),
        }
        let mut minimality = Minimality::Irreducible;
        for (place, forms) in &forms {
            let others: Vec<_> = strongest.changes.iter().filter(|(at, _)| at != place).cloned().collect();
            // From no change to the strongest form: the first that suffices stays.
            let candidate_forms = std::iter::once(None).chain(forms.iter().map(|(_, kind)| Some(kind)));
            for kind in candidate_forms {
                let mut changes = others.clone();
                changes.extend(kind.map(|kind| (*place, kind.clone())));
                changes.sort_by_key(|(at, _)| *at);
                let weaker = Strengthening { changes, weight: 0 };
                let weaker_prediction = self.predict_strengthened(&weaker)?;
                match self.goal.is_met_by(&weaker_prediction) {
                    Some(true) => {
                        (strongest, prediction) = (weaker, weaker_prediction);
                        break;
                    }
                    Some(false) => {}
                    None => minimality = Minimality::Unknown,
                }
            }
        }
        Ok(describe_fix(self.test, &strongest, prediction.can_meet_condition, minimality))
    }
}

/// Returns the stronger forms of an instruction, weakest requirement first.
fn all_stronger_forms(reach: &StrengthBounds, kind: &InstructionKind) -> Vec<(u32, InstructionKind)> {
    let mut found: Vec<(u32, InstructionKind)> = Vec::new();
    let mut worklist = vec![(0, kind.clone())];
    while let Some((weight, kind)) = worklist.pop() {
        for stronger in list_stronger_forms(reach, &kind) {
            if !found.iter().any(|(_, known)| *known == stronger.kind) {
                found.push((weight + stronger.weight, stronger.kind.clone()));
                worklist.push((weight + stronger.weight, stronger.kind));
            }
        }
    }
    found.sort_by_key(|(weight, _)| *weight);
    found
}

fn instruction_at(test: &Test, (thread, index): InstructionIndex) -> Option<&InstructionKind> {
    test.threads.get(thread)?.instructions.get(index).map(|instruction| &instruction.kind)
}

fn apply_strengthening(test: &Test, strengthened: &Strengthening) -> Test {
    let mut changed = test.clone();
    for ((thread, index), kind) in &strengthened.changes {
        let instructions = changed.threads.get_mut(*thread).map(|thread| &mut thread.instructions);
        if let Some(instruction) = instructions.and_then(|list| list.get_mut(*index)) {
            instruction.kind = kind.clone();
        }
    }
    changed
}

fn describe_fix(
    test: &Test,
    strengthened: &Strengthening,
    allowed: Option<bool>,
    minimality: Minimality,
) -> FixSearchResult {
    let changes = strengthened.changes.iter().filter_map(|((thread, index), kind)| {
        let original = test.threads.get(*thread)?.instructions.get(*index)?;
        let id = ThreadId(u16::try_from(*thread).ok()?);
        Some(InstructionChange {
            thread: *thread,
            span: original.span,
            before: original.kind.to_text(test, id),
            after: kind.to_text(test, id),
        })
    });
    FixSearchResult::Found { changes: changes.collect(), minimality, allowed }
}
