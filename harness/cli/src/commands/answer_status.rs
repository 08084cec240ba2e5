//! Outcomes of answers about shaders, and their status in JUnit.

use results::wire::RaceVerdict;
use results::write::junit::AnswerStatus;

use crate::arguments::FailureKind;
use crate::exit::Outcome;

/// Returns the kind of a verdict, and its outcome.
pub fn verdict_outcome(verdict: RaceVerdict) -> (FailureKind, Outcome) {
    match verdict {
        RaceVerdict::Racy => (FailureKind::Finding, Outcome::RuleBroken),
        RaceVerdict::Clean => (FailureKind::Finding, Outcome::Success),
        RaceVerdict::Refused | RaceVerdict::Undecided | RaceVerdict::NeedsInputs => {
            (FailureKind::Unjudged, Outcome::Environment)
        }
    }
}

/// Returns the status of an answer with its outcome and the one that counts.
pub fn answer_status(outcome: Outcome, effect: Outcome) -> AnswerStatus {
    match (outcome, effect) {
        (Outcome::Success, _) => AnswerStatus::Success,
        (_, Outcome::Success) => AnswerStatus::Accepted,
        (_, Outcome::RuleBroken) => AnswerStatus::Finding,
        (_, Outcome::Input | Outcome::Environment | Outcome::Untested) => AnswerStatus::NoAnswer,
    }
}
