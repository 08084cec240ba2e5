//! Re-judging: derives the verdict of a stored record from a new prediction, without running the device
//! again.
//!
//! Counts are copied unchanged. Use [`rejudge()`] after a change of a model or a fix of the checker.
//! [`verify_record`] checks a record that may have been edited, by the prediction that it claims to follow.

use std::collections::BTreeMap;

use litmus::{Observable, Outcome, Overlap, Prediction, Test, Value};

use crate::answer::has_no_allowed_outcome;
use crate::judge::{
    EXERCISED_THRESHOLD, describe_no_execution, has_invalid_results, judged_race, list_unexpected,
    weak_prefix,
};
use crate::portability::HsaComparison;
use crate::reason::Reason;
use crate::state;
use crate::state::State;
use crate::wire::{HsaRun, RaceWord, RunLine, RunOutcome, UnexpectedValues, VerdictWord};

/// Returns the listed outcomes of `line` as outcomes of `observables`; those that cannot be converted are
/// omitted.
pub fn listed_outcomes(line: &RunLine, test: &Test, observables: &[Observable]) -> Vec<Outcome> {
    line.outcomes.iter().filter_map(|row| outcome_from_state(&row.state, test, observables)).collect()
}

/// Judges `line` again by `prediction` of `test`; `model` is the hash of the model's text.
///
/// How the run ended and whether the test was exercised are copied. An observed outcome without a row in the
/// new prediction becomes an unexpected value.
pub fn rejudge(line: &RunLine, test: &Test, prediction: &Prediction, model: &str) -> RunLine {
    if line.verdict == VerdictWord::Skipped || line.progress.is_some() || line.shader.is_some() {
        return line.clone();
    }
    let mut line = line.clone();
    line.hashes.model = model.to_owned();
    // If the old prediction was incomplete, `timed out` describes the prediction and not the run.
    let was_incomplete = line.race == Some(RaceWord::Unknown) && line.has_reason(Reason::TimedOut);
    let was_unexercised = line.has_reason(Reason::NotExercised);
    let ended_early = line.verdict == VerdictWord::Inconclusive && !was_incomplete && !was_unexercised;
    line.race = Some(judged_race(prediction));
    let observables = &prediction.observables;
    let mut before: BTreeMap<String, RunOutcome> = std::mem::take(&mut line.outcomes)
        .into_iter()
        .map(|row| (state::format_state(&row.state), row))
        .collect();
    line.interleaved = 0;
    for (outcome, predicted) in &prediction.outcomes {
        let mut row = RunOutcome::new(test, observables, outcome, predicted);
        if let Some(old) = before.remove(&state::format_state(&row.state)) {
            (row.count, row.batches, row.parts, row.hsa) = (old.count, old.batches, old.parts, old.hsa);
        } else {
            row.batches = line.batches.map(|_| 0);
            row.parts = line.parts.iter().flat_map(|parts| vec![0; parts.instances.len()]).collect();
        }
        // Values that were unexpected under the old prediction and have a row now.
        line.unexpected.retain(|values| {
            let same = values.raw.iter().copied().eq(outcome.0.iter().map(|value| value.0));
            row.count += if same { values.count } else { 0 };
            !same
        });
        if !predicted.serial {
            line.interleaved += row.count;
        }
        line.outcomes.push(row);
    }
    for row in before.into_values().filter(|row| row.count > 0) {
        let raw = outcome_from_state(&row.state, test, observables);
        let raw = raw.map(|outcome| outcome.0.iter().map(|value| value.0).collect()).unwrap_or_default();
        line.unexpected.push(UnexpectedValues { raw, count: row.count });
    }
    if has_no_allowed_outcome(prediction) && !ended_early {
        line.verdict = VerdictWord::Inconclusive;
        line.reason = Some(Reason::NotJudged.name().to_owned());
        line.detail = Some(describe_no_execution(&line.model));
    } else {
        recompute_verdict(&mut line, ended_early);
    }
    line
}

/// Returns `line` with the outcomes that `prediction` lists, if its verdict and flags follow from its counts.
///
/// Counts, the end of the run, and the effect of a twin are not part of a prediction: they are copied. A
/// record with an incomplete prediction claims nothing, and is returned unchanged.
///
/// # Errors
/// The first difference between the record and what follows from its counts.
pub fn verify_record(
    line: &RunLine,
    test: &Test,
    prediction: &Prediction,
    model: &str,
) -> Result<RunLine, String> {
    let claims_nothing = line.race == Some(RaceWord::Unknown) && line.verdict == VerdictWord::Inconclusive;
    if claims_nothing || line.verdict == VerdictWord::Skipped {
        return Ok(line.clone());
    }
    let new = rejudge(line, test, prediction, model);
    if line.name != test.name {
        return Err(format!("its `name` is not `{}`", test.name));
    }
    let question = test.question.as_ref().map(|question| question.to_text(test));
    if line.question.is_some() && line.question != question {
        return Err(format!("its `question` is not `{}`", question.unwrap_or_default()));
    }
    if let Some(old) = line.race.filter(|old| Some(*old) != new.race) {
        let recorded = format!("its `race` is `{}`", race_word(old));
        return Err(format!("{recorded}, the model's is `{}`", new.race.map_or("unknown", race_word)));
    }
    let rows: BTreeMap<String, &RunOutcome> =
        new.outcomes.iter().map(|row| (state::format_state(&row.state), row)).collect();
    for old in &line.outcomes {
        let text = state::format_state(&old.state);
        let row = rows.get(&text).filter(|row| row.count == old.count);
        let Some(row) = row else {
            return Err(format!("the model does not list {text}, or counts it elsewhere"));
        };
        let flags = [
            ("allowed", old.allowed, row.allowed),
            ("weak", old.weak, row.weak),
            ("filtered", old.filtered, row.filtered),
            ("witness", old.witness == Some(true), row.witness == Some(true)),
        ];
        if let Some((flag, recorded, predicted)) = flags.into_iter().find(|(_, said, is)| said != is) {
            return Err(format!("its `{flag}` of {text} is {recorded}, the model's answer is {predicted}"));
        }
    }
    if new.unexpected.len() != line.unexpected.len() {
        return Err("its `unexpected` values are outcomes of the model".to_owned());
    }
    if new.interleaved != line.interleaved {
        return Err(format!(
            "its `interleaved` is {}, its outcomes give {}",
            line.interleaved, new.interleaved
        ));
    }
    if let Some(exercised) = exercise_from_counts(&new, test).filter(|known| *known != line.exercised) {
        return Err(format!("its `exercised` is {}, its outcomes give {exercised}", line.exercised));
    }
    if (new.verdict, &new.reason) != (line.verdict, &line.reason) {
        let (old, new) = (line.verdict.name(), new.verdict.name());
        return Err(format!("its `verdict` is `{old}`, its outcomes give `{new}`"));
    }
    // Why a run ended early, and the order of the proofs of a violation, are not part of a prediction.
    let is_explained = line.reason.is_none() && line.verdict != VerdictWord::Violates;
    if is_explained && new.detail != line.detail {
        return Err(format!("its `detail` is not `{}`", new.detail.unwrap_or_default()));
    }
    Ok(RunLine { race: new.race, question, outcomes: new.outcomes, ..line.clone() })
}

/// Returns `line` with HSA's answers about its outcomes, which are `observables` of the lowered program `test`.
pub fn compare_with_hsa(
    line: &RunLine,
    test: &Test,
    observables: &[Observable],
    comparison: &HsaComparison,
) -> RunLine {
    let allows = |row: &RunOutcome| {
        comparison.allows.get(&outcome_from_state(&row.state, test, observables)?).copied()
    };
    let outcomes = line.outcomes.iter().map(|row| RunOutcome { hsa: allows(row), ..row.clone() });
    let passed = line.outcomes.iter().filter(|row| !row.filtered).map(|row| row.count);
    let hsa = Some(HsaRun::new(test, comparison, passed.fold(0, u64::saturating_add)));
    RunLine { outcomes: outcomes.collect(), hsa, ..line.clone() }
}

fn race_word(race: RaceWord) -> &'static str {
    match race {
        RaceWord::Free => "free",
        RaceWord::Racy => "racy",
        RaceWord::Unknown => "unknown",
        RaceWord::NeedsInputs => "needs-inputs",
        RaceWord::NotDefined => "null",
    }
}

/// Returns whether the counts of `line` show that the test was exercised; `None` if that may depend on a twin.
fn exercise_from_counts(line: &RunLine, test: &Test) -> Option<bool> {
    let has_filter = line.outcomes.iter().any(|row| row.filtered);
    if has_filter && line.outcomes.iter().all(|row| row.filtered || row.count == 0) {
        return Some(false);
    }
    match test.thread_overlap() {
        Overlap::Possible => (line.interleaved >= EXERCISED_THRESHOLD).then_some(true),
        Overlap::ControlBarrier => None,
        Overlap::Ordered => Some(line.instances > 0 && line.not_executed == 0),
    }
}

/// Returns `line` without its verdict, because no prediction confirms it.
pub fn withdraw_verdict(line: &RunLine, reason: Reason, why: &str) -> RunLine {
    match line.verdict {
        VerdictWord::Skipped | VerdictWord::Inconclusive => line.clone(),
        VerdictWord::Conforms | VerdictWord::Violates | VerdictWord::Undefined => RunLine {
            verdict: VerdictWord::Inconclusive,
            race: Some(RaceWord::Unknown),
            reason: Some(reason.name().to_owned()),
            detail: Some(format!(
                "recorded as `{}`, which no prediction confirms: {why}",
                line.verdict.name()
            )),
            ..line.clone()
        },
    }
}

/// Recomputes the verdict of `line`. `ended_early`: the run itself ended early, for the reason in the line.
fn recompute_verdict(line: &mut RunLine, ended: bool) {
    let forbidden = line.outcomes.iter().filter(|row| row.count > 0 && !row.allowed);
    let mut proofs: Vec<String> = forbidden
        .map(|row| format!("forbidden outcome {} seen {} times", state::format_state(&row.state), row.count))
        .collect();
    let unexpected = line.unexpected.iter().filter(|values| values.count > 0);
    proofs.extend(list_unexpected(unexpected.map(|values| {
        format!("values that no execution produces, {:?}, seen {} times", values.raw, values.count)
    })));
    let is_invalid = line.verdict == VerdictWord::Inconclusive && has_invalid_results(line);
    let (old_verdict, reason, detail) = (line.verdict, line.reason.take(), line.detail.take());
    let ended = reason.filter(|_| ended);
    let inconclusive =
        |reason: &str, detail: Option<String>| (VerdictWord::Inconclusive, Some(reason.to_owned()), detail);
    (line.verdict, line.reason, line.detail) = match (line.race, ended) {
        (Some(RaceWord::Free), _) if !proofs.is_empty() && !is_invalid => {
            let weak = detail.as_deref().and_then(weak_prefix).unwrap_or_default();
            (VerdictWord::Violates, None, Some(format!("{weak}{}", proofs.join("; "))))
        }
        (_, Some(reason)) => inconclusive(&reason, detail),
        (Some(RaceWord::Racy), None) => {
            (VerdictWord::Undefined, None, Some(format!("racy under {}", line.model)))
        }
        (Some(RaceWord::Free), None) if line.exercised => (VerdictWord::Conforms, None, None),
        (Some(RaceWord::Free), None) => {
            let detail = detail.filter(|_| old_verdict == VerdictWord::Inconclusive);
            inconclusive(Reason::NotExercised.name(), detail.or(Some("judged again".to_owned())))
        }
        (Some(RaceWord::Unknown | RaceWord::NeedsInputs | RaceWord::NotDefined) | None, None) => {
            inconclusive(
                Reason::TimedOut.name(),
                Some(format!("the prediction of {} was cut short", line.model)),
            )
        }
    };
}

/// Converts a published outcome; `None` if a value is missing or does not fit its type.
pub fn outcome_from_state(state: &State, test: &Test, observables: &[Observable]) -> Option<Outcome> {
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
    use litmus::{PredictedOutcome, Race};

    use super::*;

    const SIGNED: &str = "VULKAN T\n{ buffer i32 x = 0; }\n P0@sg 0, wg 0, qf 0 ;\n st.atom.dv.sc0 x, -1 ;\nexists (x == -1)\n";

    fn prediction(test: &Test, race: Race, outcomes: &[(i64, bool)]) -> Prediction {
        let row = |(value, allowed): &(i64, bool)| {
            let predicted =
                PredictedOutcome { allowed: *allowed, serial: true, ..PredictedOutcome::default() };
            (Outcome(vec![Value(value.cast_unsigned() & 0xffff_ffff)]), predicted)
        };
        Prediction {
            model: "vulkan".into(),
            observables: test.observables(),
            outcomes: outcomes.iter().map(row).collect(),
            race,
            complete: true,
            ..Prediction::default()
        }
    }

    /// Returns a line with these counts, as if all other predicted outcomes had count zero.
    fn line(test: &Test, verdict: VerdictWord, reason: Option<&str>, counts: &[(i64, u64)]) -> RunLine {
        let row = |(value, count): &(i64, u64)| RunOutcome {
            state: [("x".to_owned(), (*value).into())].into(),
            count: *count,
            allowed: true,
            ..RunOutcome::default()
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

    /// A violation next to missing results stays weak when it is judged again.
    #[test]
    fn weak_evidence_stays_weak() {
        let test = litmus::parse(SIGNED, "T").unwrap();
        let detail =
            "weak evidence (the host read other words (dispatches: 1)): forbidden outcome x=-1 seen 5 times";
        let weak = RunLine {
            detail: Some(detail.to_owned()),
            ..line(&test, VerdictWord::Violates, None, &[(0, 3), (-1, 5)])
        };
        let new = rejudge(&weak, &test, &prediction(&test, Race::Free, &[(0, true), (-1, false)]), "hash");
        assert_eq!(new.detail.as_deref(), Some(detail));
    }

    #[test]
    fn observations_are_judged_by_the_new_prediction() {
        use VerdictWord::{Conforms, Inconclusive, Undefined, Violates};
        let test = litmus::parse(SIGNED, "T").unwrap();
        let seen = [(0, 3), (-1, 5)];
        let with_unexpected = |raw: u64, line: RunLine| RunLine {
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
                with_unexpected(0xffff_ffff, line(&test, Violates, None, &[(0, 3)])),
                Race::Free,
                &both,
                Inconclusive,
                Some("not exercised"),
            ),
            (with_unexpected(7, line(&test, Violates, None, &seen)), Race::Free, &both, Violates, None),
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
        for (number, (old, race, predicted, verdict, reason)) in cases.into_iter().enumerate() {
            let total = |line: &RunLine| -> u64 {
                let rows = line.outcomes.iter().map(|row| row.count);
                rows.chain(line.unexpected.iter().map(|values| values.count)).sum()
            };
            let new = rejudge(&old, &test, &prediction(&test, race, predicted), "hash");
            assert_eq!((new.verdict, new.reason.as_deref()), (verdict, reason), "case {number}");
            assert_eq!((total(&new), new.hashes.model.as_str()), (total(&old), "hash"), "case {number}");
            assert_eq!(crate::judge::find_contradiction(&new), None, "case {number}");
        }
    }
}
