//! Re-judging: derives the verdict of a stored record from a new prediction, without running the device
//! again.
//!
//! Counts are copied unchanged. It is used when the text of a model changes or a fault of the checker is
//! fixed.

use std::collections::BTreeMap;

use litmus::{Observable, Outcome, Prediction, Race, Test, Value};

use crate::judge::{Reason, allows_nothing, first_unexpected, no_execution};
use crate::state;
use crate::state::State;
use crate::wire::{RaceWord, RunLine, RunOutcome, UnexpectedValues, VerdictWord};

/// Returns the observed outcomes of `line` as outcomes of `observables`; those that cannot be converted are
/// omitted.
pub fn seen(line: &RunLine, test: &Test, observables: &[Observable]) -> Vec<Outcome> {
    let seen = line.outcomes.iter().filter(|outcome| outcome.count > 0);
    seen.filter_map(|seen| outcome(&seen.state, test, observables)).collect()
}

/// Judges `line` again by `prediction` of `test`; `model` is the hash of the model's text.
///
/// How the run ended and whether the test was exercised are copied. An observed outcome without a row in the
/// new prediction becomes an unexpected value.
pub fn again(line: &RunLine, test: &Test, prediction: &Prediction, model: &str) -> RunLine {
    if line.verdict == VerdictWord::Skipped || line.progress.is_some() || line.shader.is_some() {
        return line.clone();
    }
    let mut line = line.clone();
    line.hashes.model = model.to_owned();
    // If the old prediction was incomplete, `timed out` describes the prediction and not the run.
    let timed_out = Reason::TimedOut.word();
    let cut = line.race == Some(RaceWord::Unknown) && line.reason.as_deref() == Some(timed_out);
    let unexercised = line.reason.as_deref() == Some(Reason::NotExercised.word());
    let ended = line.verdict == VerdictWord::Inconclusive && !cut && !unexercised;
    line.race = Some(match prediction.race {
        _ if allows_nothing(prediction) => RaceWord::Unknown,
        Race::Racy if prediction.is_undefined() => RaceWord::Racy,
        Race::Free | Race::Racy if prediction.complete => RaceWord::Free,
        Race::Free | Race::Racy | Race::Unknown => RaceWord::Unknown,
    });
    let observables = &prediction.observables;
    let mut before: BTreeMap<String, RunOutcome> =
        std::mem::take(&mut line.outcomes).into_iter().map(|row| (state::text(&row.state), row)).collect();
    line.interleaved = 0;
    for (outcome, says) in &prediction.outcomes {
        let state = state::state(test, observables, outcome);
        let old = before.remove(&state::text(&state));
        let nothing = (0, line.batches.map(|_| 0), None);
        let (mut count, batches, hsa) = old.map_or(nothing, |row| (row.count, row.batches, row.hsa));
        // Values that were unexpected under the old prediction and have a row now.
        line.unexpected.retain(|values| {
            let same = values.raw.iter().copied().eq(outcome.0.iter().map(|value| value.0));
            count += if same { values.count } else { 0 };
            !same
        });
        if !says.serial {
            line.interleaved += count;
        }
        let question = test.question.as_ref();
        line.outcomes.push(RunOutcome {
            state,
            count,
            batches,
            allowed: says.allowed,
            weak: says.weak,
            filtered: says.filtered,
            thin_air: says.thin_air,
            witness: question.map(|question| outcome.meets_condition(test, observables, &question.condition)),
            hsa,
        });
    }
    for row in before.into_values().filter(|row| row.count > 0) {
        let raw = outcome(&row.state, test, observables);
        let raw = raw.map(|outcome| outcome.0.iter().map(|value| value.0).collect()).unwrap_or_default();
        line.unexpected.push(UnexpectedValues { raw, count: row.count });
    }
    if allows_nothing(prediction) && !ended {
        line.verdict = VerdictWord::Inconclusive;
        line.reason = Some(Reason::NotJudged.word().to_owned());
        line.detail = Some(no_execution(&line.model));
    } else {
        judge(&mut line, ended);
    }
    line
}

/// Recomputes the verdict of `line`. `ended`: the run itself ended early, for the reason in the line.
fn judge(line: &mut RunLine, ended: bool) {
    let forbidden = line.outcomes.iter().filter(|row| row.count > 0 && !row.allowed);
    let mut proofs: Vec<String> = forbidden
        .map(|row| format!("forbidden outcome {} seen {} times", state::text(&row.state), row.count))
        .collect();
    let nowhere = line.unexpected.iter().filter(|values| values.count > 0);
    proofs.extend(first_unexpected(nowhere.map(|values| {
        format!("values that no execution produces, {:?}, seen {} times", values.raw, values.count)
    })));
    let (was, reason, detail) = (line.verdict, line.reason.take(), line.detail.take());
    let ended = reason.filter(|_| ended);
    let inconclusive =
        |reason: &str, detail: Option<String>| (VerdictWord::Inconclusive, Some(reason.to_owned()), detail);
    (line.verdict, line.reason, line.detail) = match (line.race, ended) {
        (Some(RaceWord::Free), _) if !proofs.is_empty() => {
            (VerdictWord::Violates, None, Some(proofs.join("; ")))
        }
        (_, Some(reason)) => inconclusive(&reason, detail),
        (Some(RaceWord::Racy), None) => {
            (VerdictWord::Undefined, None, Some(format!("racy under {}", line.model)))
        }
        (Some(RaceWord::Free), None) if line.exercised => (VerdictWord::Conforms, None, None),
        (Some(RaceWord::Free), None) => {
            let detail = detail.filter(|_| was == VerdictWord::Inconclusive);
            inconclusive(Reason::NotExercised.word(), detail.or(Some("judged again".to_owned())))
        }
        (Some(RaceWord::Unknown | RaceWord::NeedsInputs | RaceWord::NotDefined) | None, None) => {
            inconclusive(
                Reason::TimedOut.word(),
                Some(format!("the prediction of {} was cut short", line.model)),
            )
        }
    };
}

/// Converts a published outcome; `None` if a value is missing or does not fit its type.
pub fn outcome(state: &State, test: &Test, observables: &[Observable]) -> Option<Outcome> {
    let value = |observable: &Observable| {
        let number = state.get(&test.observable_name(*observable))?;
        let bits = number.as_u64().or_else(|| number.as_i64().map(i64::cast_unsigned))?;
        let width = test.observable_type(*observable).bits();
        Some(Value(if width < 64 { bits & ((1 << width) - 1) } else { bits }))
    };
    observables.iter().map(value).collect::<Option<Vec<Value>>>().map(Outcome)
}

#[cfg(test)]
mod tests {
    use litmus::PredictedOutcome;

    use super::*;

    const SIGNED: &str = "VULKAN T\n{ buffer i32 x = 0; }\n P0@sg 0, wg 0, qf 0 ;\n st.atom.dv.sc0 x, -1 ;\nexists (x == -1)\n";

    fn prediction(test: &Test, race: Race, outcomes: &[(i64, bool)]) -> Prediction {
        let row = |(value, allowed): &(i64, bool)| {
            let says = PredictedOutcome {
                allowed: *allowed,
                weak: false,
                serial: true,
                filtered: false,
                thin_air: false,
            };
            (Outcome(vec![Value(value.cast_unsigned() & 0xffff_ffff)]), says)
        };
        Prediction {
            model: "vulkan".into(),
            observables: test.observables(),
            outcomes: outcomes.iter().map(row).collect(),
            race,
            level: None,
            race_thin_air: false,
            uninitialised_read: Some(false),
            bound: 1,
            truncated_runs: 0,
            runs: 1,
            candidate_executions: 1,
            consistent_executions: 1,
            meets: None,
            misses: None,
            complete: true,
        }
    }

    /// Returns a line with these counts, as if all other predicted outcomes had count zero.
    fn line(test: &Test, verdict: VerdictWord, reason: Option<&str>, counts: &[(i64, u64)]) -> RunLine {
        let row = |(value, count): &(i64, u64)| RunOutcome {
            state: [("x".to_owned(), (*value).into())].into(),
            count: *count,
            batches: None,
            allowed: true,
            weak: false,
            filtered: false,
            thin_air: false,
            witness: None,
            hsa: None,
        };
        RunLine {
            name: test.name.clone(),
            verdict,
            reason: reason.map(str::to_owned),
            detail: reason.map(|_| "how".to_owned()),
            race: Some(RaceWord::Free),
            exercised: verdict == VerdictWord::Conforms,
            instances: 8,
            outcomes: counts.iter().map(row).collect(),
            ..RunLine::default()
        }
    }

    #[test]
    fn what_was_seen_is_judged_by_what_is_said_now() {
        use VerdictWord::{Conforms, Inconclusive, Undefined, Violates};
        let test = litmus::parse(SIGNED, "T").unwrap();
        let seen = [(0, 3), (-1, 5)];
        let nowhere = |raw: u64, line: RunLine| RunLine {
            unexpected: vec![UnexpectedValues { raw: vec![raw], count: 2 }],
            ..line
        };
        let both = [(0, true), (-1, true)];
        let cases = [
            (line(&test, Conforms, None, &seen), Race::Free, &both[..], Conforms, None),
            (line(&test, Conforms, None, &seen), Race::Free, &[(0, true), (-1, false)], Violates, None),
            // An observed outcome without a row becomes unexpected, and an unexpected one with a row becomes
            // an outcome.
            (line(&test, Conforms, None, &seen), Race::Free, &[(0, true)], Violates, None),
            (
                nowhere(0xffff_ffff, line(&test, Violates, None, &[(0, 3)])),
                Race::Free,
                &both,
                Inconclusive,
                Some("not exercised"),
            ),
            (nowhere(7, line(&test, Violates, None, &seen)), Race::Free, &both, Violates, None),
            (line(&test, Conforms, None, &seen), Race::Racy, &both, Undefined, None),
            (line(&test, Conforms, None, &seen), Race::Unknown, &both, Inconclusive, Some("timed out")),
            // The end of a run is copied, except when an observed outcome proves a violation.
            (
                line(&test, Inconclusive, Some("crashed"), &seen),
                Race::Free,
                &both,
                Inconclusive,
                Some("crashed"),
            ),
            (
                line(&test, Inconclusive, Some("timed out"), &seen),
                Race::Racy,
                &both,
                Inconclusive,
                Some("timed out"),
            ),
            (
                line(&test, Inconclusive, Some("crashed"), &seen),
                Race::Free,
                &[(0, true), (-1, false)],
                Violates,
                None,
            ),
            (line(&test, Inconclusive, Some("not exercised"), &seen), Race::Racy, &both, Undefined, None),
        ];
        for (number, (old, race, says, verdict, reason)) in cases.into_iter().enumerate() {
            let total = |line: &RunLine| -> u64 {
                let rows = line.outcomes.iter().map(|row| row.count);
                rows.chain(line.unexpected.iter().map(|values| values.count)).sum()
            };
            let new = again(&old, &test, &prediction(&test, race, says), "hash");
            assert_eq!((new.verdict, new.reason.as_deref()), (verdict, reason), "case {number}");
            assert_eq!((total(&new), new.hashes.model.as_str()), (total(&old), "hash"), "case {number}");
            assert_eq!(crate::judge::find_contradiction(&new), None, "case {number}");
        }
    }
}
