//! Verdicts: each row of `judging.toml` is a store-buffering test with its prediction and observation.

use crate::fixture::{Synchronization, observation, outcome, prediction, store_buffering};
use litmus::{Observation, Prediction, Race};
use results::judge::find_contradiction;
use results::wire::{LineVerdict, RaceWord, RunContext, RunLine, ShaderRun, UnexpectedValues, VerdictWord};
use results::{Ending, Evidence, EvidenceCheck, Twin, judge, weigh_violation};
use serde::Deserialize;

#[derive(Deserialize)]
struct Table {
    case: Vec<Case>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    why: String,
    between: Option<String>,
    /// The weak outcome is forbidden.
    #[serde(default)]
    forbidden: bool,
    race: Option<String>,
    /// The difference between the prediction and that of the model.
    prediction: Option<String>,
    counts: [u64; 4],
    #[serde(default)]
    seen: Seen,
    /// Other outcomes, each observed once.
    #[serde(default)]
    strange: Vec<[u64; 2]>,
    /// Words with a wrong end mark, each observed once.
    #[serde(default)]
    partial: Vec<Vec<u32>>,
    /// The end of the run, with its text.
    ending: Option<[String; 2]>,
    twin: Option<TwinCase>,
    limit: Option<String>,
    #[serde(default)]
    serial: bool,

    verdict: String,
    reason: Option<String>,
    /// The whole detail.
    is: Option<String>,
    /// Parts of the detail, the first at its start or anywhere, the last at its end.
    detail: Option<Vec<String>>,
    exercised: Option<bool>,
    interleaved: Option<u64>,
    instances: Option<u64>,
    unresolved: Option<u64>,
    rows: Option<Vec<u64>>,
    unexpected: Option<Vec<Vec<u64>>>,
}

/// Other counts of an observation.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Seen {
    dispatches: Option<u64>,
    not_executed: u64,
    discarded_dispatches: u64,
    partially_written: u64,
    outside_grid: u64,
    misread_dispatches: u64,
    unresolved: u64,
    unrecorded_outcomes: u64,
}

impl Seen {
    fn observation(&self, counts: [u64; 4]) -> Observation {
        let observation = observation(counts);
        Observation {
            dispatches: self.dispatches.unwrap_or(observation.dispatches),
            not_executed: self.not_executed,
            discarded_dispatches: self.discarded_dispatches,
            partially_written: self.partially_written,
            outside_grid: self.outside_grid,
            misread_dispatches: self.misread_dispatches,
            unresolved: self.unresolved,
            unrecorded_outcomes: self.unrecorded_outcomes,
            ..observation
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TwinCase {
    counts: [u64; 4],
    #[serde(default)]
    seen: Seen,
    #[serde(default)]
    early_reads: u64,
}

/// Changes a prediction as a row requires.
fn change(prediction: &mut Prediction, how: &str) {
    match how {
        "inconsistent" => prediction.outcomes.values_mut().for_each(|predicted| predicted.allowed = false),
        "empty" => prediction.outcomes.clear(),
        "incomplete" => prediction.complete = false,
        // Outcomes in which the first thread read 0 do not count.
        other => {
            assert_eq!(other, "filtered");
            prediction.outcomes.iter_mut().for_each(|(outcome, says)| says.filtered = outcome.0[0].0 == 0);
        }
    }
}

#[test]
fn each_case_has_its_verdict() {
    let Table { case: cases } = toml::from_str(include_str!("judging.toml")).unwrap();
    assert!(cases.len() > 50);
    for case in cases {
        let test = store_buffering(match case.between.as_deref() {
            None => Synchronization::Nothing,
            Some("ControlBarrier") => Synchronization::ControlBarrier,
            other => {
                assert_eq!(other, Some("SystemSync"));
                Synchronization::SystemSync
            }
        });
        let race = match case.race.as_deref() {
            None => Race::Free,
            Some("Racy") => Race::Racy,
            other => {
                assert_eq!(other, Some("Unknown"));
                Race::Unknown
            }
        };
        let mut prediction = prediction(&test, !case.forbidden, race);
        case.prediction.iter().for_each(|how| change(&mut prediction, how));
        let mut observed = case.seen.observation(case.counts);
        for [left, right] in &case.strange {
            observed.histogram.add_count(outcome(*left, *right), 1);
        }
        observed.unexpected.extend(case.partial.iter().map(|words| (words.clone(), 1)));
        let ending = case.ending.as_ref().map_or(Ending::Finished, |[how, text]| match how.as_str() {
            "crashed" => Ending::Crashed(text.clone()),
            "timed out" => Ending::TimedOut(text.clone()),
            "no time" => Ending::NoTime(text.clone()),
            "device lost" => Ending::DeviceLost(text.clone()),
            other => {
                assert_eq!(other, "null device");
                Ending::NullDevice
            }
        });
        let twin = case.twin.as_ref().map(|twin| (twin.seen.observation(twin.counts), twin.early_reads));
        let evidence = Evidence {
            test: &test,
            prediction: &prediction,
            observation: &observed,
            ending: &ending,
            twin: twin
                .as_ref()
                .map(|(observation, early_reads)| Twin { observation, early_reads: *early_reads }),
            explaining_limit: case.limit.as_deref(),
            is_stage_serial: case.serial,
        };
        let line = judge(&evidence, RunContext::default());
        let why = &case.why;
        assert_eq!(line.verdict.name(), case.verdict, "{why}: {line:?}");
        assert_eq!(line.reason, case.reason, "{why}: {line:?}");
        if case.is.is_some() {
            assert_eq!(line.detail, case.is, "{why}");
        }
        if let Some(parts) = &case.detail {
            let detail = line.detail.as_ref().unwrap_or_else(|| panic!("{why}: no detail"));
            assert!(parts.iter().all(|part| detail.contains(part)), "{why}: {detail}");
            assert!(
                parts.len() < 2 || detail.starts_with(&parts[0]) && detail.ends_with(&parts[1]),
                "{detail}"
            );
        }
        let rows: Vec<u64> = line.outcomes.iter().map(|row| row.count).collect();
        let raw: Vec<Vec<u64>> = line.unexpected.iter().map(|values| values.raw.clone()).collect();
        assert_eq!(case.rows.as_ref().unwrap_or(&rows), &rows, "{why}");
        assert_eq!(case.unexpected.as_ref().unwrap_or(&raw), &raw, "{why}");
        assert_eq!(case.exercised.unwrap_or(line.exercised), line.exercised, "{why}");
        for (expected, found) in [
            (case.interleaved, line.interleaved),
            (case.instances, line.instances),
            (case.unresolved, line.unresolved),
        ] {
            assert_eq!(expected.unwrap_or(found), found, "{why}");
        }
    }
}

/// Litmus tests and user shaders share one rule: if results are missing, only outcomes that were checked
/// individually are violations.
#[test]
fn missing_results_weaken_a_violation() {
    let weak = "weak evidence (2 dispatches wrote nothing): x=7 seen";
    for (missing, checked, verdict, detail) in [
        (None, EvidenceCheck::OwnReceipt, VerdictWord::Violates, "x=7 seen"),
        (None, EvidenceCheck::NeighbourReceipts, VerdictWord::Violates, "x=7 seen"),
        (Some("2 dispatches wrote nothing"), EvidenceCheck::OwnReceipt, VerdictWord::Violates, weak),
        (
            Some("2 dispatches wrote nothing"),
            EvidenceCheck::NeighbourReceipts,
            VerdictWord::Inconclusive,
            weak,
        ),
    ] {
        let weighed = weigh_violation("x=7 seen", missing, checked);
        let reason = (verdict == VerdictWord::Inconclusive).then(|| "not executed".to_owned());
        assert_eq!(weighed, LineVerdict { reason, ..LineVerdict::new(verdict, detail.to_owned()) });
    }
    // A record of such a shader can be read again; a record of a litmus test would hide a violation.
    let record = |shader| RunLine {
        verdict: VerdictWord::Inconclusive,
        reason: Some("not executed".into()),
        race: Some(RaceWord::Free),
        instances: 1,
        unexpected: vec![UnexpectedValues { raw: vec![7], count: 1 }],
        shader,
        ..RunLine::default()
    };
    assert_eq!(find_contradiction(&record(Some(ShaderRun::default()))), None);
    assert!(find_contradiction(&record(None)).is_some());
}
