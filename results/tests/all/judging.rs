//! Tests of every verdict, on a store-buffering test.

use crate::fixture::{Synchronization, observation, outcome, prediction, store_buffering};
use litmus::{Observation, Prediction, Race, Test};
use results::judge::find_contradiction;
use results::wire::{RaceWord, RunLine, ShaderRun, UnexpectedValues, VerdictWord};
use results::{Ending, Evidence, EvidenceCheck, Judgement, Reason, Twin, Verdict, judge, weigh_violation};

/// Returns the evidence of a run that ended by itself, without a twin and without a limit.
fn evidence<'a>(test: &'a Test, prediction: &'a Prediction, observation: &'a Observation) -> Evidence<'a> {
    Evidence {
        test,
        prediction,
        observation,
        ending: &Ending::Finished,
        twin: None,
        explaining_limit: None,
        is_stage_serial: false,
    }
}

fn verdict_of(test: &Test, prediction: &Prediction, observation: &Observation, ending: Ending) -> Judgement {
    judge(&Evidence { ending: &ending, ..evidence(test, prediction, observation) })
}

fn weak_allowed(race: Race) -> (Test, Prediction) {
    let test = store_buffering(Synchronization::Nothing);
    let prediction = prediction(&test, true, race);
    (test, prediction)
}

fn weak_forbidden(race: Race) -> (Test, Prediction) {
    let test = store_buffering(Synchronization::Nothing);
    let prediction = prediction(&test, false, race);
    (test, prediction)
}

#[test]
fn an_exercised_test_without_forbidden_outcomes_conforms() {
    let (test, prediction) = weak_allowed(Race::Free);
    let judgement = verdict_of(&test, &prediction, &observation([3, 500, 500, 97]), Ending::Finished);
    assert_eq!(judgement.verdict, Verdict::Conforms);
    assert!(judgement.exercised);
    assert_eq!(judgement.interleaved, 100, "both the weak and the overlapping outcome count");
    assert_eq!(judgement.instances, 1100);
}

/// A model without a consistent execution would turn every observation into a violation.
#[test]
fn a_prediction_without_an_execution_is_not_judged() {
    let (test, mut prediction) = weak_forbidden(Race::Free);
    prediction.outcomes.values_mut().for_each(|predicted| predicted.allowed = false);
    let judgement = verdict_of(&test, &prediction, &observation([0, 500, 500, 97]), Ending::Finished);
    assert_eq!(judgement.verdict, Verdict::Inconclusive(Reason::NotJudged));
    let detail = judgement.detail.unwrap();
    assert!(detail.starts_with("no execution is consistent under vulkan: run `vk-litmus check`"), "{detail}");
    prediction.outcomes.clear();
    let judgement = verdict_of(&test, &prediction, &observation([0, 500, 500, 97]), Ending::Finished);
    assert_eq!(judgement.verdict, Verdict::Inconclusive(Reason::NotJudged));
}

/// An outcome that the search did not reach is listed only if it was observed.
#[test]
fn unreached_outcomes_are_not_listed() {
    let (test, mut prediction) = weak_forbidden(Race::Unknown);
    prediction.complete = false;
    let observed = verdict_of(&test, &prediction, &observation([1, 500, 500, 97]), Ending::Finished);
    assert_eq!((observed.rows.len(), observed.verdict), (4, Verdict::Inconclusive(Reason::TimedOut)));
    let unseen = verdict_of(&test, &prediction, &observation([0, 500, 500, 97]), Ending::Finished);
    assert_eq!(unseen.rows.len(), 3);
    assert!(unseen.rows.iter().all(|row| row.outcome != outcome(0, 0)));
}

#[test]
fn one_interleaved_instance_too_few_is_not_exercised() {
    let (test, prediction) = weak_allowed(Race::Free);
    let judgement = verdict_of(&test, &prediction, &observation([3, 500, 500, 96]), Ending::Finished);
    assert_eq!(judgement.verdict, Verdict::Inconclusive(Reason::NotExercised));
    assert_eq!(judgement.detail.as_deref(), Some("99 interleaved of 1099 instances, 100 are needed"));
}

/// If a stage runs serially, that is the only reported reason why the test was not exercised.
#[test]
fn a_serial_stage_is_the_reported_reason() {
    let (test, prediction) = weak_forbidden(Race::Free);
    let judge_counts = |counts, serial_stage| {
        let observation = observation(counts);
        judge(&Evidence { is_stage_serial: serial_stage, ..evidence(&test, &prediction, &observation) })
    };
    let serial = judge_counts([0, 500, 500, 0], true);
    assert_eq!(serial.verdict, Verdict::Inconclusive(Reason::NotExercised));
    assert_eq!(serial.detail.as_deref(), Some("stage runs serially: 1000 instances"));
    assert_eq!(judge_counts([0, 500, 500, 100], true).verdict, Verdict::Conforms, "what was seen counts");
    assert_eq!(judge_counts([1, 500, 500, 0], true).verdict, Verdict::Violates);
}

#[test]
fn a_filter_that_excludes_every_instance_is_not_exercised() {
    let (test, mut prediction) = weak_allowed(Race::Free);
    for (outcome, says) in &mut prediction.outcomes {
        says.filtered = outcome.0[0].0 == 0;
    }
    // Enough interleaved instances, but the filter excludes all of them.
    let counts = observation([200, 500, 0, 0]);
    let unfiltered: u64 = prediction
        .outcomes
        .iter()
        .filter(|(_, says)| !says.filtered)
        .map(|(outcome, _)| counts.histogram.counts.get(outcome).copied().unwrap_or_default())
        .sum();
    assert_eq!(unfiltered, 0);
    let judgement = verdict_of(&test, &prediction, &counts, Ending::Finished);
    assert_eq!(judgement.verdict, Verdict::Inconclusive(Reason::NotExercised));
    assert_eq!(judgement.detail.as_deref(), Some("none of 700 instances met the filter"));
    let judgement = verdict_of(&test, &prediction, &observation([200, 500, 1, 0]), Ending::Finished);
    assert_eq!(judgement.verdict, Verdict::Conforms);
}

#[test]
fn one_forbidden_outcome_violates_even_unexercised() {
    let (test, prediction) = weak_forbidden(Race::Free);
    let judgement = verdict_of(&test, &prediction, &observation([1, 500, 500, 0]), Ending::Finished);
    assert_eq!(judgement.verdict, Verdict::Violates);
    assert!(!judgement.exercised);
    assert_eq!(judgement.detail.as_deref(), Some("forbidden outcome P0:r0=0 P1:r0=0 seen once"));
}

#[test]
fn a_violation_is_never_overridden() {
    let (test, prediction) = weak_forbidden(Race::Free);
    let mut observed = observation([2, 500, 500, 0]);
    observed.discarded_dispatches = 900;
    observed.not_executed = 900;
    for (ending, word) in [
        (Ending::Crashed("signal 11".into()), "crashed (signal 11)"),
        (Ending::TimedOut("after 5 s".into()), "timed out (after 5 s)"),
        (Ending::DeviceLost("submit".into()), "device lost (submit)"),
    ] {
        let judgement = verdict_of(&test, &prediction, &observed, ending);
        assert_eq!(judgement.verdict, Verdict::Violates);
        let detail = judgement.detail.unwrap();
        let weak =
            "weak evidence (900 of 1000 dispatches discarded: 900 instances were not executed as requested)";
        assert!(detail.starts_with(weak) && detail.ends_with(word), "{detail}");
    }
}

#[test]
fn corruption_violates() {
    let (test, prediction) = weak_allowed(Race::Free);
    let mut strange = observation([3, 500, 500, 97]);
    strange.histogram.add_count(outcome(7, 0), 2);
    let judgement = verdict_of(&test, &prediction, &strange, Ending::Finished);
    assert_eq!(judgement.verdict, Verdict::Violates);
    assert_eq!(judgement.unexpected.len(), 1);
    assert_eq!(judgement.unexpected[0].raw, [7, 0]);
    assert_eq!(judgement.interleaved, 100, "values from nowhere prove no overlap");
    assert_eq!(
        judgement.instances,
        judgement.rows.iter().map(|r| r.count).sum::<u64>() + 2,
        "unexpected instances are counted"
    );

    let mut partial = observation([3, 500, 500, 97]);
    partial.unexpected.insert(vec![1, 0xdead_beef], 1);
    let judgement = verdict_of(&test, &prediction, &partial, Ending::Finished);
    assert_eq!(judgement.verdict, Verdict::Violates);
    assert!(judgement.detail.unwrap().contains("[1, 3735928559]"));
}

#[test]
fn a_racy_program_is_recorded_and_never_judged() {
    let (test, prediction) = weak_forbidden(Race::Racy);
    let mut observed = observation([70, 500, 500, 97]);
    observed.unexpected.insert(vec![9, 9], 4);
    let judgement = verdict_of(&test, &prediction, &observed, Ending::Finished);
    assert_eq!(judgement.verdict, Verdict::Undefined);
    assert_eq!(judgement.rows[0].count, 70);
    assert_eq!(judgement.unexpected[0].count, 4);
}

#[test]
fn an_incomplete_prediction_is_not_judged() {
    for race in [Race::Unknown, Race::Free] {
        let (test, mut prediction) = weak_forbidden(race);
        prediction.complete = false;
        let judgement = verdict_of(&test, &prediction, &observation([5, 500, 500, 97]), Ending::Finished);
        assert_eq!(judgement.verdict, Verdict::Inconclusive(Reason::TimedOut), "{race:?}");
    }
    let (test, mut prediction) = weak_forbidden(Race::Racy);
    prediction.complete = false;
    let judgement = verdict_of(&test, &prediction, &observation([5, 500, 500, 97]), Ending::Finished);
    assert_eq!(judgement.verdict, Verdict::Undefined, "a race once found stays found");
}

#[test]
fn an_early_end_is_inconclusive() {
    let (test, prediction) = weak_allowed(Race::Free);
    for (ending, reason) in [
        (Ending::Crashed("signal 11".into()), Reason::Crashed),
        (Ending::TimedOut("after 5 s".into()), Reason::TimedOut),
        (Ending::NoTime("the time is over".into()), Reason::NoTime),
        (Ending::DeviceLost("submit".into()), Reason::DeviceLost),
        (Ending::NullDevice, Reason::NullDevice),
    ] {
        let judgement = verdict_of(&test, &prediction, &observation([3, 500, 500, 97]), ending);
        assert_eq!(judgement.verdict, Verdict::Inconclusive(reason));
        assert!(judgement.detail.is_some());
    }
}

#[test]
fn a_null_device_is_never_judged() {
    let (test, prediction) = weak_forbidden(Race::Free);
    let judgement = verdict_of(&test, &prediction, &observation([1000, 0, 0, 0]), Ending::NullDevice);
    assert_eq!(judgement.verdict, Verdict::Inconclusive(Reason::NullDevice));
}

#[test]
fn too_many_discarded_dispatches_are_not_executed() {
    let (test, prediction) = weak_allowed(Race::Free);
    let mut observed = observation([3, 500, 500, 97]);
    observed.not_executed = 12;
    for (discarded, verdict) in [(10, Verdict::Conforms), (11, Verdict::Inconclusive(Reason::NotExecuted))] {
        observed.discarded_dispatches = discarded;
        let bound = Some("the device ends loops");
        let (test, prediction) = (&test, &prediction);
        let judgement = judge(&Evidence { explaining_limit: bound, ..evidence(test, prediction, &observed) });
        assert_eq!(judgement.verdict, verdict);
    }
}

#[test]
fn a_run_without_instances_is_inconclusive() {
    let (test, prediction) = weak_allowed(Race::Free);
    let judgement = verdict_of(&test, &prediction, &Observation::default(), Ending::Finished);
    assert_eq!(judgement.verdict, Verdict::Inconclusive(Reason::NotExecuted));
}

#[test]
fn unresolved_spins_are_inconclusive() {
    let (test, prediction) = weak_allowed(Race::Free);
    let unresolved = Observation { unresolved: 40, ..observation([0; 4]) };
    let judgement = verdict_of(&test, &prediction, &unresolved, Ending::Finished);
    assert_eq!(judgement.verdict, Verdict::Inconclusive(Reason::NoResolvedInstance));
    assert_eq!(judgement.instances, 40);

    let some = Observation { unresolved: 40, ..observation([3, 500, 500, 97]) };
    let judgement = verdict_of(&test, &prediction, &some, Ending::Finished);
    assert_eq!(judgement.verdict, Verdict::Conforms, "the rest is judged");
    assert_eq!(judgement.instances, 1140);
}

/// Outcomes beyond the histogram are neither a violation nor a pass; a forbidden outcome in the histogram
/// remains a violation.
#[test]
fn outcomes_beyond_the_histogram_are_inconclusive() {
    let test = store_buffering(Synchronization::Nothing);
    let past = Observation { unrecorded_outcomes: 7, ..observation([3, 500, 500, 97]) };
    for (allowed, verdict) in [(true, Verdict::Inconclusive(Reason::TimedOut)), (false, Verdict::Violates)] {
        let prediction = prediction(&test, allowed, Race::Free);
        let judgement = verdict_of(&test, &prediction, &past, Ending::Finished);
        assert_eq!(judgement.verdict, verdict);
        assert_eq!((judgement.instances, judgement.unresolved), (1107, 7));
    }
}

#[test]
fn a_control_barrier_is_exercised_only_by_its_twin() {
    let test = store_buffering(Synchronization::ControlBarrier);
    let prediction = prediction(&test, false, Race::Free);
    let observed = observation([0, 0, 0, 5000]);
    let judge_with_twin = |twin| judge(&Evidence { twin, ..evidence(&test, &prediction, &observed) }).verdict;
    assert_eq!(
        judge_with_twin(None),
        Verdict::Inconclusive(Reason::NotExercised),
        "interleaving proves nothing here"
    );

    let dull = observation([0, 4000, 4000, 10]);
    let twin = Twin { observation: &dull, early_reads: 0 };
    assert_eq!(judge_with_twin(Some(twin)), Verdict::Inconclusive(Reason::NotExercised));

    let telling = observation([1, 4000, 4000, 10]);
    let twin = Twin { observation: &telling, early_reads: 0 };
    assert_eq!(judge_with_twin(Some(twin)), Verdict::Conforms);

    let twin = Twin { observation: &dull, early_reads: 100 };
    assert_eq!(judge_with_twin(Some(twin)), Verdict::Conforms, "early reads will do as well");
}

#[test]
fn ordered_threads_are_exercised_when_every_instance_ran() {
    let test = store_buffering(Synchronization::SystemSync);
    let prediction = prediction(&test, false, Race::Free);
    let mut observed = observation([0, 5000, 0, 0]);
    assert_eq!(verdict_of(&test, &prediction, &observed, Ending::Finished).verdict, Verdict::Conforms);
    observed.not_executed = 1;
    observed.discarded_dispatches = 1;
    assert_eq!(
        verdict_of(&test, &prediction, &observed, Ending::Finished).verdict,
        Verdict::Inconclusive(Reason::NotExecuted)
    );
}

/// If a driver executes surplus invocations, the verdict is neither `conforms` nor `violates`, for every loop
/// bound.
#[test]
fn invocations_outside_the_grid_are_inconclusive() {
    let (test, prediction) = weak_allowed(Race::Free);
    let observed = Observation {
        not_executed: 64,
        partially_written: 3,
        discarded_dispatches: 1,
        outside_grid: 8,
        ..observation([300, 50_000, 50_000, 300])
    };
    for bound in [None, Some("the device ends loops")] {
        let judgement =
            judge(&Evidence { explaining_limit: bound, ..evidence(&test, &prediction, &observed) });
        assert_eq!(judgement.verdict, Verdict::Inconclusive(Reason::NotExecuted));
        assert_eq!(
            judgement.detail.as_deref(),
            Some(
                "1 of 1000 dispatches discarded: 64 instances were not executed as requested, 3 of them were written in part; the driver executed more invocations than the dispatch has: 8 outside the grid"
            )
        );
    }
}

/// If the host reads other words than the device wrote, the verdict is neither `conforms` nor `violates`, for
/// every loop bound.
#[test]
fn misread_dispatches_are_inconclusive() {
    let misread = |counts| Observation {
        not_executed: 64,
        discarded_dispatches: 1,
        misread_dispatches: 1,
        ..observation(counts)
    };
    let expected = "1 of 1000 dispatches discarded: 64 instances were not executed as requested; the host read other words than the device computed checksums over (dispatches: 1)";
    for bound in [None, Some("the device ends loops")] {
        let test = store_buffering(Synchronization::Nothing);
        let judge_observation = |prediction: &Prediction, seen: &Observation| {
            judge(&Evidence { explaining_limit: bound, ..evidence(&test, prediction, seen) })
        };
        let (_, allowed) = weak_allowed(Race::Free);
        let judgement = judge_observation(&allowed, &misread([300, 50_000, 50_000, 300]));
        assert_eq!(judgement.verdict, Verdict::Inconclusive(Reason::NotExecuted));
        assert_eq!(judgement.detail.as_deref(), Some(expected));
        let forbidden = prediction(&store_buffering(Synchronization::Nothing), false, Race::Free);
        let judgement = judge_observation(&forbidden, &misread([300, 50_000, 50_000, 300]));
        assert_eq!(judgement.verdict, Verdict::Inconclusive(Reason::NotExecuted));
        let detail = judgement.detail.unwrap();
        assert!(detail.starts_with(&format!("weak evidence ({expected})")), "{detail}");
    }
}

/// If the words change after they were counted, no instance is discarded, and the verdict is the same.
#[test]
fn words_that_change_after_the_count_are_inconclusive() {
    let seen = Observation { misread_dispatches: 1, ..observation([300, 50_000, 50_000, 300]) };
    let test = store_buffering(Synchronization::Nothing);
    for prediction in [weak_allowed(Race::Free).1, prediction(&test, false, Race::Free)] {
        let judgement = judge(&evidence(&test, &prediction, &seen));
        assert_eq!(judgement.verdict, Verdict::Inconclusive(Reason::NotExecuted));
        let cause = "the host read other words than the device computed checksums over (dispatches: 1)";
        assert!(judgement.detail.unwrap().contains(cause));
    }
}

/// A device that skips one dispatch in a thousand is at fault.
#[test]
fn one_instance_that_was_not_executed_is_enough() {
    let (test, prediction) = weak_allowed(Race::Free);
    let observed =
        Observation { not_executed: 64, discarded_dispatches: 1, ..observation([300, 50_000, 50_000, 300]) };
    let judge_with_limit =
        |bound| judge(&Evidence { explaining_limit: bound, ..evidence(&test, &prediction, &observed) });
    let judgement = judge_with_limit(None);
    assert_eq!(judgement.verdict, Verdict::Inconclusive(Reason::NotExecuted));
    assert_eq!(
        judgement.detail.as_deref(),
        Some("1 of 1000 dispatches discarded: 64 instances were not executed as requested")
    );
    let explained = judge_with_limit(Some("the device ends loops"));
    assert_eq!(explained.verdict, Verdict::Conforms);
    assert_eq!(explained.detail.as_deref(), Some("64 instances were not executed (the device ends loops)"));
    // A lost device takes precedence as the reason; violations and races remain.
    let lost = verdict_of(&test, &prediction, &observed, Ending::DeviceLost("gone".into()));
    assert_eq!(lost.verdict, Verdict::Inconclusive(Reason::DeviceLost));
    assert_eq!(lost.detail.as_deref(), Some("gone; 64 instances were not executed"));
    let (test, prediction) = weak_forbidden(Race::Free);
    let violation = verdict_of(&test, &prediction, &observed, Ending::Finished);
    assert_eq!(violation.verdict, Verdict::Violates);
    let detail = violation.detail.unwrap();
    let weak = "weak evidence (1 of 1000 dispatches discarded: 64 instances were not executed as requested): forbidden";
    assert!(detail.starts_with(weak) && detail.matches("not executed").count() == 1, "{detail}");
    let (test, prediction) = weak_allowed(Race::Racy);
    assert_eq!(verdict_of(&test, &prediction, &observed, Ending::Finished).verdict, Verdict::Undefined);
}

/// Litmus tests and user shaders share one rule: if results are missing, only outcomes that were checked
/// individually are violations.
#[test]
fn missing_results_weaken_a_violation() {
    let weak = "weak evidence (2 dispatches wrote nothing): x=7 seen";
    for (missing, checked, verdict, detail) in [
        (None, EvidenceCheck::OwnReceipt, Verdict::Violates, "x=7 seen"),
        (None, EvidenceCheck::NeighbourReceipts, Verdict::Violates, "x=7 seen"),
        (Some("2 dispatches wrote nothing"), EvidenceCheck::OwnReceipt, Verdict::Violates, weak),
        (
            Some("2 dispatches wrote nothing"),
            EvidenceCheck::NeighbourReceipts,
            Verdict::Inconclusive(Reason::NotExecuted),
            weak,
        ),
    ] {
        assert_eq!(weigh_violation("x=7 seen", missing, checked), (verdict, detail.to_owned()));
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

#[test]
fn rows_have_every_predicted_outcome() {
    let (test, prediction) = weak_allowed(Race::Free);
    let judgement = verdict_of(&test, &prediction, &observation([0, 500, 0, 100]), Ending::Finished);
    let counts: Vec<u64> = judgement.rows.iter().map(|row| row.count).collect();
    assert_eq!(counts, [0, 500, 0, 100]);
}

/// A failure of the twin counts as a failure of the test.
#[test]
fn an_unexecuted_twin_is_reported() {
    let judge_twin = |between, counts, twin: &Observation, bound| {
        let test = store_buffering(between);
        let prediction = prediction(&test, true, Race::Free);
        let observation = observation(counts);
        let twin = Some(Twin { observation: twin, early_reads: 0 });
        judge(&Evidence { twin, explaining_limit: bound, ..evidence(&test, &prediction, &observation) })
    };
    let gone = |counts, discarded_dispatches, not_executed| Observation {
        discarded_dispatches,
        not_executed,
        ..observation(counts)
    };
    let verdict_and_detail = |judgement: Judgement| (judgement.verdict, judgement.detail.unwrap_or_default());
    let not_executed = |dispatches: u64, instances: u64| {
        let detail = format!(
            "of the twin, {dispatches} of 1000 dispatches discarded: {instances} instances were not executed as requested"
        );
        (Verdict::Inconclusive(Reason::NotExecuted), detail)
    };
    let nothing = gone([0; 4], 1000, 64_000);
    let some = gone([1, 500, 500, 0], 3, 96);
    for between in [Synchronization::ControlBarrier, Synchronization::Nothing] {
        for counts in [[0, 500, 500, 0], [0, 500, 500, 200]] {
            assert_eq!(
                verdict_and_detail(judge_twin(between, counts, &nothing, None)),
                not_executed(1000, 64_000)
            );
            assert_eq!(verdict_and_detail(judge_twin(between, counts, &some, None)), not_executed(3, 96));
            let explained = judge_twin(between, counts, &some, Some("a bound"));
            assert_ne!(explained.verdict, Verdict::Inconclusive(Reason::NotExecuted));
        }
        // The twin did not run.
        let none = judge_twin(between, [0, 500, 500, 0], &Observation::default(), None);
        assert_eq!(none.verdict, Verdict::Inconclusive(Reason::NotExercised));
    }
}
