//! Stored verdicts that do not follow from their counts.

use super::{Reason, weak_prefix};
use crate::wire::{RaceWord, RunLine, VerdictWord};

/// Compares a record with its counts: returns the reason why its verdict does not follow from them.
///
/// Counts alone cannot show that a test was not exercised or that its run failed; only the absence of a
/// forbidden outcome is checked for such records.
pub fn find_contradiction(line: &RunLine) -> Option<String> {
    let forbidden_outcomes = line.outcomes.iter().filter(|outcome| outcome.count > 0 && !outcome.allowed);
    let forbidden_count = forbidden_outcomes.map(|outcome| outcome.count).sum::<u64>();
    let unexpected_count = line.unexpected.iter().map(|values| values.count).sum::<u64>();
    let has_proof = forbidden_count > 0 || unexpected_count > 0;
    // Records of the first schema version do not state whether the program races.
    let race = line.race;
    // A violation of forward progress is a hang, which has no outcome.
    let is_progress_test = line.progress.is_some();
    let contradiction = match line.verdict {
        VerdictWord::Conforms if has_proof => {
            format!(
                "although {forbidden_count} instances are forbidden and {unexpected_count} have values that no \
                 execution produces"
            )
        }
        VerdictWord::Conforms if !line.exercised => "although it was not exercised".to_owned(),
        // A limit that explains missing instances is named in `detail`.
        VerdictWord::Conforms if line.not_executed > 0 && race.is_some() && line.detail.is_none() => {
            format!("although {} instances were not executed", line.not_executed)
        }
        VerdictWord::Conforms if line.instances == line.unresolved => "of no resolved instance".to_owned(),
        VerdictWord::Conforms | VerdictWord::Violates if race.is_some_and(|race| race != RaceWord::Free) => {
            "of a program that may race".to_owned()
        }
        VerdictWord::Violates if !has_proof && !is_progress_test => {
            "although no forbidden outcome was seen".to_owned()
        }
        VerdictWord::Undefined if race.is_some_and(|race| race != RaceWord::Racy) => {
            "of a program that does not race".to_owned()
        }
        VerdictWord::Inconclusive
            if has_proof && race == Some(RaceWord::Free) && !has_invalid_results(line) =>
        {
            format!(
                "although {forbidden_count} instances are forbidden and {unexpected_count} have values that no \
                 execution produces"
            )
        }
        VerdictWord::Inconclusive if line.reason.is_none() => "without a reason".to_owned(),
        VerdictWord::Skipped if line.instances > 0 => {
            format!("although {} instances were run", line.instances)
        }
        _ => return None,
    };
    Some(format!("the verdict does not follow from the counts: `{}` {contradiction}", line.verdict.name()))
}

/// Returns true if the forbidden results of an inconclusive record are not evidence: those of a device that
/// executes nothing, those of corrupt memory, and those next to dispatches that were not executed.
pub(crate) fn has_invalid_results(line: &RunLine) -> bool {
    let is_weak = line.detail.as_deref().and_then(weak_prefix).is_some();
    line.has_reason(Reason::NullDevice)
        || line.has_reason(Reason::CorruptMemory)
        || line.has_reason(Reason::NotExecuted) && (line.shader.is_some() || is_weak)
}
