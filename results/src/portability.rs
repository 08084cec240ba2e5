//! An HSA test under two models: HSA's own prediction compared with Vulkan's of the lowered program.
//!
//! Only the Vulkan prediction judges a device. An outcome that HSA forbids and Vulkan allows is not a device
//! fault: it marks HSA code that is not portable to Vulkan.

use std::collections::BTreeMap;

use litmus::{LoweredTest, Outcome, Prediction, QuestionKind, Race, Test, closed_enum};
use thiserror::Error;

use crate::wire::{RunLine, RunOutcome, VerdictWord};

closed_enum! {
    /// The comparison of the two answers.
    pub enum PortabilityClass {
        /// Both models give the same answer to the question; without a question, they allow the same outcomes.
        Portable = "portable",
        /// HSA forbids the outcome and Vulkan allows it.
        ModelOnly = "model-only",
        /// The lowered program races, and the HSA test does not.
        VulkanRace = "vulkan-race",
        /// Both race.
        BothRace = "both-race",
    }
}

/// An unsound lowering. The lowered program must allow every outcome that HSA allows, and race whenever the
/// HSA program does. It is a fault of this program, never of a device or a test.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[expect(missing_docs, reason = "the messages describe the variants and their fields")]
pub enum LoweringFault {
    /// HSA allows an outcome that Vulkan forbids.
    #[error("the lowering is wrong: HSA allows {outcome}, and Vulkan forbids it of the lowered program")]
    Forbidden { outcome: String },
    /// The HSA program races, and the lowered one does not.
    #[error("the lowering is wrong: the HSA test races, and its lowered program does not")]
    RaceLost,
}

/// HSA's prediction of a test whose lowered program is judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HsaComparison {
    /// HSA's own prediction.
    pub hsa: Prediction,
    /// How the answers compare; `None` if one of them is incomplete.
    pub class: Option<PortabilityClass>,
    /// Maps each outcome of the lowered program to whether HSA allows it. Outcomes outside the filter are
    /// omitted: an `await` has not read its value in them, so the HSA test has no such outcome.
    pub allows: BTreeMap<Outcome, bool>,
    /// The unsoundness that was found in the lowering.
    pub fault: Option<LoweringFault>,
}

/// Compares HSA's prediction of a test with Vulkan's prediction of its lowered program.
///
/// In `vulkan`, the outcomes that the filter excludes must be marked.
pub fn compare_predictions(
    test: &Test,
    lowered: &LoweredTest,
    hsa: Prediction,
    vulkan: &Prediction,
) -> HsaComparison {
    let mut allows = BTreeMap::new();
    let mut vulkan_allows: BTreeMap<Outcome, bool> = BTreeMap::new();
    for (outcome, predicted) in vulkan.outcomes.iter().filter(|(_, says)| !says.filtered) {
        let original = lowered.to_hsa_outcome(test, &hsa.observables, outcome);
        let allowed = hsa.outcomes.get(&original).is_some_and(|says| says.allowed);
        // If HSA's list is incomplete, a missing outcome proves nothing.
        if allowed || hsa.complete {
            allows.insert(outcome.clone(), allowed);
        }
        *vulkan_allows.entry(original).or_default() |= predicted.allowed;
    }
    let is_complete =
        hsa.complete && vulkan.complete && hsa.race != Race::Unknown && vulkan.race != Race::Unknown;
    let lost = hsa
        .outcomes
        .iter()
        .find(|(outcome, says)| says.allowed && !vulkan_allows.get(*outcome).copied().unwrap_or_default());
    let fault = match lost {
        Some((outcome, _)) if is_complete => Some(LoweringFault::Forbidden {
            outcome: crate::state::format_outcome(test, &hsa.observables, outcome),
        }),
        _ if is_complete && hsa.race == Race::Racy && !vulkan.is_undefined() => Some(LoweringFault::RaceLost),
        _ => None,
    };
    let class = match (hsa.race, vulkan.race) {
        _ if !is_complete || fault.is_some() => None,
        // A race that occurs only in executions with out-of-thin-air values is judged as race-free.
        _ if !vulkan.is_undefined() => {
            let is_decisive = |outcome: &Outcome| match &test.question {
                None => true,
                Some(question) => {
                    let meets = outcome.meets_condition(test, &hsa.observables, &question.condition);
                    meets != (question.kind == QuestionKind::Forall)
                }
            };
            let reached = vulkan_allows.iter().filter(|(outcome, allowed)| **allowed && is_decisive(outcome));
            let in_hsa = |outcome: &Outcome| hsa.outcomes.get(outcome).is_some_and(|says| says.allowed);
            let mut reached = reached.map(|(outcome, _)| in_hsa(outcome));
            // A question is decided by one reachable outcome; without a question every outcome counts.
            let portable = match &test.question {
                None => reached.all(|allowed| allowed),
                Some(_) => {
                    let all: Vec<bool> = reached.collect();
                    all.is_empty() || all.contains(&true)
                }
            };
            Some(if portable { PortabilityClass::Portable } else { PortabilityClass::ModelOnly })
        }
        (Race::Free, _) => Some(PortabilityClass::VulkanRace),
        (Race::Racy | Race::Unknown, _) => Some(PortabilityClass::BothRace),
    };
    HsaComparison { hsa, class, allows, fault }
}

/// Returns the published word for how HSA's and Vulkan's answers compare, on the line of an HSA test.
pub fn portability_class(line: &RunLine) -> Option<&str> {
    line.hsa.as_ref()?.class.as_deref()
}

/// Returns the observed outcomes that Vulkan allows and HSA forbids: code relying on HSA breaks on them.
pub fn non_portable_outcomes(line: &RunLine) -> impl Iterator<Item = &RunOutcome> {
    // In a racy program no outcome is allowed or forbidden.
    let judged = line.verdict != VerdictWord::Undefined;
    line.outcomes
        .iter()
        .filter(move |outcome| judged && outcome.count > 0 && outcome.allowed && outcome.hsa == Some(false))
}
