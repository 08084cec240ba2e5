//! An HSA test under two models: what HSA says of it beside what Vulkan says of its lowered program.
//!
//! Only the Vulkan prediction judges a device. An outcome that HSA forbids and Vulkan allows is no mistake of a Vulkan
//! device; it says where code written for HSA cannot be carried over.

use std::collections::BTreeMap;

use litmus::{Lowered, Outcome, Prediction, QuestionKind, Race, Test};
use thiserror::Error;

use crate::wire::{RunLine, RunOutcome, VerdictWord};

/// How the two answers compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Both allow or both forbid what the test asks for; without a question, the same outcomes.
    Portable,
    /// HSA forbids it and Vulkan allows it.
    ModelOnly,
    /// The lowered program races, and the HSA test does not.
    VulkanRace,
    /// Both race.
    BothRace,
}

impl Class {
    /// The published word.
    pub fn word(self) -> &'static str {
        match self {
            Class::Portable => "portable",
            Class::ModelOnly => "model-only",
            Class::VulkanRace => "vulkan-race",
            Class::BothRace => "both-race",
        }
    }
}

/// A lowering that took something away: the lowered program must allow at least what HSA allows, and race at least where
/// HSA's does. It is a mistake of this program, never of a device or a test.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LoweringFault {
    /// HSA allows an outcome that Vulkan forbids.
    #[error("the lowering is wrong: HSA allows {outcome}, and Vulkan forbids it of the lowered program")]
    Forbidden {
        /// The outcome.
        outcome: String,
    },
    /// HSA's program races, and the lowered one does not.
    #[error("the lowering is wrong: the HSA test races, and its lowered program does not")]
    RaceLost,
}

/// What HSA says of a test whose lowered program is judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beside {
    /// HSA's own prediction.
    pub hsa: Prediction,
    /// How it compares; nothing where an answer is not complete.
    pub class: Option<Class>,
    /// By outcome of the lowered program, whether HSA allows it; outcomes outside the filter, in which an `await` has not
    /// read what it waits for, are no outcomes of the HSA test.
    pub allows: BTreeMap<Outcome, bool>,
    /// Where the lowering is wrong.
    pub fault: Option<LoweringFault>,
}

/// Compares HSA's prediction of a test with Vulkan's of its lowered program, whose outcomes are marked where the filter
/// excludes them.
pub fn beside(test: &Test, lowered: &Lowered, hsa: Prediction, vulkan: &Prediction) -> Beside {
    let mut allows = BTreeMap::new();
    let mut vulkan_allows: BTreeMap<Outcome, bool> = BTreeMap::new();
    for (outcome, says) in vulkan.outcomes.iter().filter(|(_, says)| !says.filtered) {
        let original = lowered.outcome_of(test, &hsa.observables, outcome);
        let allowed = hsa.outcomes.get(&original).is_some_and(|says| says.allowed);
        // HSA's list may end early; then nothing follows from an outcome's absence.
        if allowed || hsa.complete {
            allows.insert(outcome.clone(), allowed);
        }
        *vulkan_allows.entry(original).or_default() |= says.allowed;
    }
    let known = hsa.complete && vulkan.complete && hsa.race != Race::Unknown && vulkan.race != Race::Unknown;
    let lost = hsa
        .outcomes
        .iter()
        .find(|(outcome, says)| says.allowed && !vulkan_allows.get(*outcome).copied().unwrap_or_default());
    let fault = match lost {
        Some((outcome, _)) if known => {
            Some(LoweringFault::Forbidden { outcome: crate::state::line(test, &hsa.observables, outcome) })
        }
        _ if known && hsa.race == Race::Racy && !vulkan.is_undefined() => Some(LoweringFault::RaceLost),
        _ => None,
    };
    let class = match (hsa.race, vulkan.race) {
        _ if !known || fault.is_some() => None,
        // A race by values out of thin air alone is judged as none.
        _ if !vulkan.is_undefined() => {
            let wanted = |outcome: &Outcome| match &test.question {
                None => true,
                Some(question) => {
                    let meets = outcome.meets(test, &hsa.observables, &question.condition);
                    meets != (question.kind == QuestionKind::Forall)
                }
            };
            let reached = vulkan_allows.iter().filter(|(outcome, allowed)| **allowed && wanted(outcome));
            let in_hsa = |outcome: &Outcome| hsa.outcomes.get(outcome).is_some_and(|says| says.allowed);
            let mut reached = reached.map(|(outcome, _)| in_hsa(outcome));
            // One answer is enough for a question; without one every outcome counts.
            let portable = match &test.question {
                None => reached.all(|allowed| allowed),
                Some(_) => {
                    let all: Vec<bool> = reached.collect();
                    all.is_empty() || all.contains(&true)
                }
            };
            Some(if portable { Class::Portable } else { Class::ModelOnly })
        }
        (Race::Free, _) => Some(Class::VulkanRace),
        (Race::Racy | Race::Unknown, _) => Some(Class::BothRace),
    };
    Beside { hsa, class, allows, fault }
}

/// How HSA's answer and Vulkan's compare, on a line of an HSA test.
pub fn class_beside_hsa(line: &RunLine) -> Option<&str> {
    line.hsa.as_ref()?.class.as_deref()
}

/// What was seen, and HSA alone forbids: for people who carry code over from HSA.
pub fn seen_beyond_hsa(line: &RunLine) -> impl Iterator<Item = &RunOutcome> {
    // A racy program allows nothing and forbids nothing.
    let judged = line.verdict != VerdictWord::Undefined;
    line.outcomes
        .iter()
        .filter(move |outcome| judged && outcome.count > 0 && outcome.allowed && outcome.hsa == Some(false))
}
