//! Tests of the comparison of two runs.

use results::diff::{DiffError, diff};
use results::read::Results;
use results::wire::{ChangeKind, DiffRecord, PartUnit, RunLine, RunParts, VerdictWord};
use results::write::diff::format_diff;

use crate::lines::run_lines;

fn to_results(lines: Vec<RunLine>) -> Results {
    Results { source: "run.jsonl".into(), lines, ..Results::default() }
}

fn kinds(diff: &DiffRecord) -> Vec<(ChangeKind, &str)> {
    diff.changes.iter().map(|change| (change.kind, change.id.as_str())).collect()
}

#[test]
fn the_same_run_does_not_differ() {
    let found = diff(&to_results(run_lines()), &to_results(run_lines())).unwrap();
    assert!(found.changes.is_empty() && found.only_new.is_empty(), "{found:?}");
    assert_eq!(found.compared, run_lines().len());
    // Neither run was repeated, so only the verdicts are compared.
    assert!(format_diff(&found).ends_with("no changes of verdicts\n"));
}

/// The first lines have the broken rules.
#[test]
fn a_new_violation_comes_first() {
    let new = run_lines();
    let mut old = run_lines();
    for line in &mut old {
        if line.id == "sb/SB+forbidden" {
            line.verdict = VerdictWord::Conforms;
            line.detail = None;
            line.instances -= line.outcomes[0].count;
            line.outcomes[0].count = 0;
        }
    }
    let mut found = diff(&to_results(old.clone()), &to_results(new.clone())).unwrap();
    assert_eq!(found.changes[0].kind, ChangeKind::NewViolation);
    assert_eq!(found.changes[0].outcome.as_deref(), Some("P0:r0=0 P1:r0=0"));
    assert_eq!(found.changes[0].new_count, 3);
    found.changes[0].rules = vec!["consistency, a cycle of fr, po".into()];
    insta::assert_snapshot!(format_diff(&found));
    let gone = diff(&to_results(new), &to_results(old)).unwrap();
    assert_eq!(gone.changes[0].kind, ChangeKind::GoneViolation);
}

#[test]
fn corruption_and_new_violating_tests_are_new_violations() {
    let new = run_lines();
    let mut old = run_lines();
    old.retain(|line| line.id != "sb/SB+corrupt" && line.id != "sb/SB+forbidden");
    let found = diff(&to_results(old), &to_results(new)).unwrap();
    assert_eq!(
        kinds(&found),
        [(ChangeKind::NewViolation, "sb/SB+forbidden"), (ChangeKind::NewViolation, "sb/SB+corrupt")]
    );
    assert_eq!(found.only_new, ["sb/SB+forbidden", "sb/SB+corrupt"]);
    assert_eq!(found.changes[0].old_verdict, None);
    assert!(format_diff(&found).starts_with("NEWLY BROKEN RULE"), "{}", format_diff(&found));
    let unlike = format_diff(&DiffRecord { compared: 0, ..found });
    assert!(unlike.starts_with("BROKEN RULE in the new run") && unlike.contains("nothing is comparable"));
}

#[test]
fn a_crash_is_a_new_failure_and_other_changes_are_reported() {
    let with_verdict = |verdict, reason: Option<&str>| {
        let mut line = run_lines().remove(0);
        line.verdict = verdict;
        line.reason = reason.map(str::to_owned);
        to_results(vec![line])
    };
    let conforms = with_verdict(VerdictWord::Conforms, None);
    let crashed = with_verdict(VerdictWord::Inconclusive, Some("crashed"));
    let dull = with_verdict(VerdictWord::Inconclusive, Some("not exercised"));
    let kind =
        |old: &Results, new: &Results| diff(old, new).unwrap().changes.first().map(|change| change.kind);
    assert_eq!(kind(&conforms, &crashed), Some(ChangeKind::NewFailure));
    assert_eq!(kind(&crashed, &conforms), Some(ChangeKind::Verdict));
    assert_eq!(kind(&conforms, &dull), Some(ChangeKind::Verdict));
    assert_eq!(kind(&crashed, &crashed), None);
    for lost in ["no time", "missing"] {
        let lost = with_verdict(VerdictWord::Inconclusive, Some(lost));
        for before in [&conforms, &dull, &crashed] {
            assert_eq!(kind(before, &lost), Some(ChangeKind::LostTime));
        }
        assert_eq!(kind(&lost, &lost), None);
        assert_eq!(kind(&lost, &crashed), Some(ChangeKind::NewFailure));
        assert_eq!(kind(&lost, &conforms), Some(ChangeKind::Verdict));
    }
}

/// Returns a store-buffering line of six runs with these counts of the weak and of another outcome.
fn line_with_counts(id: &str, weak: u64, strong: u64) -> RunLine {
    let mut line = run_lines().remove(0);
    line.id = id.into();
    line.outcomes.iter_mut().for_each(|outcome| outcome.count = 0);
    line.outcomes[0].count = weak;
    line.outcomes[3].count = strong;
    line.unresolved = 0;
    line.instances = weak + strong;
    let split = |count: u64| (0..6).map(|run| count / 6 + u64::from(run < count % 6)).collect::<Vec<u64>>();
    line.outcomes.iter_mut().for_each(|outcome| outcome.parts = split(outcome.count));
    line.parts = Some(RunParts { unit: PartUnit::Run, instances: split(line.instances) });
    line
}

#[test]
fn rate_changes_are_distinguished_from_chance() {
    let old = to_results(vec![
        line_with_counts("a", 0, 100_000),
        line_with_counts("b", 400, 99_600),
        line_with_counts("c", 500, 99_500),
        line_with_counts("d", 1, 99_999),
    ]);
    let new = to_results(vec![
        line_with_counts("a", 60, 99_940),
        line_with_counts("b", 0, 100_000),
        line_with_counts("c", 510, 99_490),
        line_with_counts("d", 0, 100_000),
    ]);
    let found = diff(&old, &new).unwrap();
    let of_id = |id: &str| -> Vec<(ChangeKind, bool)> {
        found
            .changes
            .iter()
            .filter(|change| change.id == id)
            .map(|change| (change.kind, change.significant))
            .collect()
    };
    assert_eq!(of_id("a"), [(ChangeKind::NewOutcome, true)]);
    assert_eq!(of_id("b"), [(ChangeKind::VanishedOutcome, true)]);
    assert_eq!(of_id("c"), [], "ten more of five hundred is chance");
    assert_eq!(of_id("d"), [(ChangeKind::VanishedOutcome, false)], "one sighting is chance");
    assert_eq!((found.scatter, found.not_comparable), (None, 0), "too few to say");

    // Without repeated runs, the same counts prove nothing.
    let once = |results: &Results| Results {
        lines: results.lines.iter().map(|line| RunLine { parts: None, ..line.clone() }).collect(),
        ..results.clone()
    };
    let found = diff(&once(&old), &new).unwrap();
    assert!((found.rates, found.not_comparable) == (0, 8), "{found:?}");
    assert!(found.changes.iter().all(|change| !change.significant && change.p.is_none()), "{found:?}");
    let text = format_diff(&found);
    assert!(text.contains("8 rates not comparable") && text.contains(", 1 not comparable\n"), "{text}");
    assert!(!text.contains("of 100,000"), "an outcome that proves nothing is only counted\n{text}");
}

#[test]
fn another_test_text_is_not_compared() {
    let old = to_results(vec![line_with_counts("a", 0, 1000)]);
    let mut line = line_with_counts("a", 1000, 0);
    line.hashes.test = "zz".into();
    let found = diff(&old, &to_results(vec![line])).unwrap();
    assert_eq!(kinds(&found), [(ChangeKind::OtherTest, "a")]);
    assert_eq!(found.rates, 0);
}

#[test]
fn one_device_is_compared_with_one_and_several_by_name() {
    let on = |device: &str, id: &str| RunLine { device: device.into(), ..line_with_counts(id, 5, 5) };
    let one =
        diff(&to_results(vec![on("lavapipe", "a")]), &to_results(vec![on("swiftshader", "a")])).unwrap();
    assert_eq!(one.compared, 1);
    let several = to_results(vec![on("x", "a"), on("y", "a")]);
    let found = diff(&several, &to_results(vec![on("y", "a"), on("z", "a")])).unwrap();
    assert_eq!((found.compared, found.new.devices.as_slice()), (1, ["y".to_owned()].as_slice()));
    let error = diff(&several, &to_results(vec![on("v", "a"), on("w", "a")])).unwrap_err();
    assert!(matches!(error, DiffError::NoDevice { .. }));
}
