//! Tests of every report format, on one set of records.

use crate::lines::{check_lines, rejected, run_lines, whole_plan};
use results::EvidenceCheck;
use results::expectation::Triage;
use results::read::Results;
use results::report::Report;
use results::wire::{DriftRecord, RunLine, VerdictWord};
use results::write::html::{self, ExplainedPicture};
use results::write::junit::JunitRunWriter;
use results::write::site;
use results::write::{
    self, ExitEffect, FormatError, OutputFormat, ReportFormat, RunWriter, TextLayout, new_check_writer,
    new_run_writer,
};

fn run_report(format: OutputFormat, layout: TextLayout) -> String {
    let mut out = Vec::new();
    {
        let mut writer = new_run_writer(format, &mut out, layout).unwrap();
        run_lines().iter().for_each(|line| writer.write_verdict(line).unwrap());
        writer.finish().unwrap();
    }
    String::from_utf8(out).unwrap()
}

pub fn check_report(format: OutputFormat) -> String {
    let mut out = Vec::new();
    {
        let mut writer = new_check_writer(format, &mut out).unwrap();
        check_lines().iter().for_each(|line| writer.write_prediction(line).unwrap());
        writer.write_rejected(&rejected()).unwrap();
        writer.finish().unwrap();
    }
    String::from_utf8(out).unwrap()
}

#[test]
fn run_text() {
    insta::assert_snapshot!(run_report(OutputFormat::Text, TextLayout::default()));
}

#[test]
fn confidence_is_computed_from_batches() {
    let mut line = run_lines().remove(0);
    let mut out = Vec::new();
    line.batches = Some(100);
    for outcome in &mut line.outcomes {
        outcome.batches = Some(if outcome.weak && outcome.count > 0 { 3 } else { 0 });
    }
    {
        let mut writer = new_run_writer(OutputFormat::Text, &mut out, TextLayout::default()).unwrap();
        writer.write_verdict(&line).unwrap();
        writer.finish().unwrap();
    }
    let report = String::from_utf8(out).unwrap();
    let weak: Vec<&str> = report.lines().filter(|text| text.contains("batches")).collect();
    insta::assert_snapshot!(weak.join("\n"));
    let json = serde_json::to_value(&line).unwrap();
    assert_eq!(json["batches"], 100);
    assert_eq!(serde_json::from_value::<results::wire::RunLine>(json).unwrap(), line);
    assert!(serde_json::to_value(&run_lines()[0]).unwrap().get("batches").is_none());
}

#[test]
fn run_text_fits_the_terminal() {
    let report = run_report(OutputFormat::Text, TextLayout { width: Some(72), ..TextLayout::default() });
    let table: Vec<&str> = report.lines().take_while(|line| !line.is_empty()).collect();
    assert!(table.len() > 9, "{report}");
    assert!(table.iter().all(|line| line.chars().count() <= 72), "{report}");
}

#[test]
fn colours_appear_only_on_request() {
    assert!(!run_report(OutputFormat::Text, TextLayout::default()).contains('\u{1b}'));
    assert!(
        run_report(OutputFormat::Text, TextLayout { has_colour: true, ..TextLayout::default() })
            .contains('\u{1b}')
    );
}

#[test]
fn run_json() {
    insta::assert_snapshot!(run_report(OutputFormat::Json, TextLayout::default()));
}

#[test]
fn run_csv() {
    insta::assert_snapshot!(run_report(OutputFormat::Csv, TextLayout::default()));
}

/// JUnit agrees with the exit code: what a flag or an expectation accepts is skipped, and what makes the exit
/// code nonzero is a failure, or an error without a verdict.
#[test]
fn junit_statuses_follow_the_exit_code() {
    let line = |verdict, reason: Option<&str>| RunLine {
        verdict,
        reason: reason.map(str::to_owned),
        ..run_lines().remove(0)
    };
    let (no_time, dull) = (Some("no time"), Some("not exercised"));
    let cases = [
        (line(VerdictWord::Conforms, None), ExitEffect::Accepted, [0, 0, 0]),
        (line(VerdictWord::Conforms, None), ExitEffect::Fails, [0, 1, 0]),
        (line(VerdictWord::Violates, None), ExitEffect::Accepted, [0, 0, 1]),
        (line(VerdictWord::Violates, None), ExitEffect::Fails, [0, 1, 0]),
        (line(VerdictWord::Inconclusive, no_time), ExitEffect::Accepted, [0, 0, 1]),
        (line(VerdictWord::Inconclusive, no_time), ExitEffect::Fails, [1, 0, 0]),
        (line(VerdictWord::Inconclusive, dull), ExitEffect::Accepted, [0, 0, 1]),
        (line(VerdictWord::Inconclusive, dull), ExitEffect::Fails, [0, 1, 0]),
    ];
    for (line, effect, counts) in cases {
        let mut bytes = Vec::new();
        let mut writer = JunitRunWriter::new(&mut bytes);
        writer.write_with_effect(&line, effect).unwrap();
        writer.finish().unwrap();
        drop(writer);
        let text = String::from_utf8(bytes).unwrap();
        let read = quick_junit::Report::deserialize_from_str(&text).unwrap();
        assert_eq!([read.errors, read.failures, read.skipped], counts, "{text}");
        let reason = line.reason.as_deref().unwrap_or_default();
        assert!(text.contains(reason), "{text}");
    }
}

#[test]
fn run_junit() {
    let text = run_report(OutputFormat::Junit, TextLayout::default());
    insta::assert_snapshot!(text);
    let read = quick_junit::Report::deserialize_from_str(&text).unwrap();
    assert_eq!((read.tests, read.failures, read.errors), (9, 2, 3));
    let suite = &read.test_suites[0];
    assert_eq!((suite.name.as_str(), suite.test_cases.len()), ("lavapipe", 9));
}

/// A plan whose violating verdict is missing.
#[test]
fn a_missing_verdict_is_reported_in_every_format() {
    let mut lines = run_lines();
    lines.retain(|line| line.id != "sb/SB+forbidden");
    let results = [Results {
        source: "lost".into(),
        plan: Some(whole_plan()),
        lines: lines.clone(),
        ..Results::default()
    }];
    assert_eq!((results[0].count_missing(), results[0].complete_lines().len()), (1, 9));
    let laid = Report::new(&results);
    assert_eq!(
        (laid.devices[0].unfinished, laid.totals()[0].verdict_count(VerdictWord::Inconclusive)),
        (1, 5)
    );
    for format in results::write::ReportFormat::ALL {
        let mut out = Vec::new();
        write::write_report(format, &results, &laid, &[], &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        match format {
            ReportFormat::Junit => {
                let read = quick_junit::Report::deserialize_from_str(&text).unwrap();
                assert_eq!((read.tests, read.failures, read.errors), (9, 1, 4));
                assert!(text.contains("<error message=\"inconclusive: missing: no verdict"), "{text}");
            }
            ReportFormat::Herd => assert!(text.contains("missing"), "{text}"),
            _ => {
                let row = text.lines().find(|line| line.contains("SB+forbidden")).unwrap();
                assert!(text.contains("missing"), "{format:?}: {row}");
            }
        }
    }
    let every = results[0].complete_lines();
    let text = write::text::format_report(&every, TextLayout::default());
    assert!(text.contains("inconclusive: missing"), "{text}");
    assert!(text.contains("8 verdicts: 1 conforms, 1 violates"), "{text}");
    assert!(text.contains("(1 not exercised, 1 MISSING)"), "{text}");
    let mut out = Vec::new();
    let mut gtest = write::gtest::GtestWriter::new(&mut out, Box::new(|_| Triage::Unlisted), false);
    every.iter().for_each(|line| gtest.write_verdict(line).unwrap());
    let text = String::from_utf8(out).unwrap();
    assert!(text.contains("[  FAILED  ] litmus.sb/SB+forbidden"), "{text}");
}

/// Every format reports instances without a result, for every verdict.
#[test]
fn unexecuted_instances_are_reported_in_every_format() {
    let mut lines = run_lines();
    lines.retain(|line| matches!(line.verdict, VerdictWord::Conforms | VerdictWord::Undefined));
    for line in &mut lines {
        line.not_executed = 77;
        line.detail = Some("77 instances were not executed (a bound)".into());
    }
    let results = [Results { lines: lines.clone(), ..Results::default() }];
    let laid = Report::new(&results);
    for format in results::write::ReportFormat::ALL {
        let mut out = Vec::new();
        write::write_report(format, &results, &laid, &[], &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.matches("77").count() >= lines.len(), "{format:?}: {text}");
    }
    let text = write::text::format_report(&lines, TextLayout::default());
    assert_eq!(text.matches("77 instances were not executed").count(), lines.len(), "{text}");
    let mut out = Vec::new();
    let mut gtest = write::gtest::GtestWriter::new(&mut out, Box::new(|_| Triage::Unlisted), false);
    lines.iter().for_each(|line| gtest.write_verdict(line).unwrap());
    assert_eq!(String::from_utf8(out).unwrap().matches("77 instances").count(), lines.len());
}

/// Two results, one of them with a plan.
fn side_by_side() -> Vec<Results> {
    let mut other = run_lines();
    other.retain(|line| line.id != "sb/SB+lost");
    other.iter_mut().filter(|line| line.id == "sb/SB+rlx-rlx").for_each(|line| {
        line.outcomes[0].count = 0;
        line.instances = line.outcomes.iter().map(|outcome| outcome.count).sum::<u64>() + line.unresolved;
    });
    vec![
        Results {
            source: "one".into(),
            plan: Some(whole_plan()),
            lines: run_lines(),
            incomplete: None,
            ..Results::default()
        },
        Results { source: "two".into(), plan: None, lines: other, incomplete: None, ..Results::default() },
    ]
}

fn write_report_text(format: ReportFormat, pictures: &[Option<ExplainedPicture>]) -> String {
    let results = side_by_side();
    let mut out = Vec::new();
    write::write_report(format, &results, &Report::new(&results), pictures, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn report_markdown() {
    insta::assert_snapshot!(write_report_text(ReportFormat::Markdown, &[]));
}

#[test]
fn report_json_is_valid() {
    let value: serde_json::Value = serde_json::from_str(&write_report_text(ReportFormat::Json, &[])).unwrap();
    let schema = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/schema/report.schema.json"));
    let schema = jsonschema::validator_for(&serde_json::from_str(&schema.unwrap()).unwrap()).unwrap();
    assert!(schema.is_valid(&value));
    assert_eq!(value["runs"].as_array().unwrap().len(), 17);
    assert_eq!(value["devices"][0], "lavapipe (Mesa 22.3.6)");
    assert_eq!(value["devices"][1], "lavapipe");
}

#[test]
fn report_csv_equals_that_of_the_run() {
    let results = [side_by_side().remove(0)];
    let mut out = Vec::new();
    write::write_report(ReportFormat::Csv, &results, &Report::new(&results), &[], &mut out).unwrap();
    assert_eq!(String::from_utf8(out).unwrap(), run_report(OutputFormat::Csv, TextLayout::default()));
}

#[test]
fn a_page_is_self_contained() {
    let picture = ExplainedPicture {
        headline: "SB under vulkan".into(),
        svg: "<svg xmlns=\"http://www.w3.org/2000/svg\"><title>#1 100% \u{e9}</title></svg>".into(),
        text: "(a) --[fr]--> (b)".into(),
    };
    let page = write_report_text(ReportFormat::Html, &[Some(picture)]);
    assert_eq!(page.matches("<script").count(), 1);
    assert_eq!(page.matches("<details class=\"test\"").count(), 9);
    for outside in ["src=\"http", "href=\"http", "url(http", "@import", "<link"] {
        assert!(!page.contains(outside), "{outside}");
    }
    let uri = "data:image/svg+xml;charset=utf-8,%3Csvg xmlns='http://www.w3.org/2000/svg'%3E%3Ctitle%3E%231 100%25 \
               %C3%A9%3C/title%3E%3C/svg%3E";
    assert!(page.contains(uri), "the picture is an image");
    assert!(page.contains("(a) --[fr]--&gt; (b)"));
    assert!(page.contains("SB+forbidden</a> on lavapipe"), "a broken rule stands at the top");
}

#[test]
fn rates_that_drifted_are_listed() {
    let with_drift = |p: f64| {
        let mut results = side_by_side();
        let line = results[0].lines.iter_mut().find(|line| line.id == "sb/SB+rlx-rlx").unwrap();
        let state = line.outcomes[0].state.clone();
        line.drift = Some(DriftRecord { state, earlier: 0.25, later: 0.125, p });
        [ReportFormat::Html, ReportFormat::Markdown].map(|format| {
            let mut out = Vec::new();
            write::write_report(format, &results, &Report::new(&results), &[], &mut out).unwrap();
            String::from_utf8(out).unwrap()
        })
    };
    let [page, document] = with_drift(1e-6);
    assert!(page.contains("sb/SB+rlx-rlx</a> on lavapipe (Mesa 22.3.6): P0:r0=0 P1:r0=0 from"), "{page}");
    assert!(document.contains("## Rates that drifted\n\n- sb/SB+rlx-rlx on lavapipe"), "{document}");
    for text in with_drift(0.5) {
        assert!(!text.contains("Rates that drifted"), "chance is no drift");
    }
}

/// The policies allow exactly these scripts.
#[test]
fn the_policies_name_the_scripts() {
    use base64::Engine;
    use sha2::Digest;
    for (script, named, file) in
        [(html::SCRIPT, html::SCRIPT_HASH, "html.rs"), (site::SCRIPT, site::SCRIPT_HASH, "site.rs")]
    {
        let hash = sha2::Sha256::digest(script);
        let hash = format!("sha256-{}", base64::engine::general_purpose::STANDARD.encode(hash));
        assert_eq!(named, hash, "results/src/write/{file} has the hash of an older script");
    }
}

#[test]
fn check_text() {
    insta::assert_snapshot!(check_report(OutputFormat::Text));
}

#[test]
fn check_json() {
    insta::assert_snapshot!(check_report(OutputFormat::Json));
}

#[test]
fn check_csv() {
    insta::assert_snapshot!(check_report(OutputFormat::Csv));
}

#[test]
fn a_table_without_rows_has_its_header() {
    let mut out = Vec::new();
    new_run_writer(OutputFormat::Csv, &mut out, TextLayout::default()).unwrap().finish().unwrap();
    assert_eq!(out.iter().filter(|byte| **byte == b'\n').count(), 1);
}

#[test]
fn unavailable_formats_are_refused_by_name() {
    let refused = new_run_writer(OutputFormat::Sarif, Vec::new(), TextLayout::default()).err();
    let expected = "text, json, csv, junit, herd, gtest";
    assert_eq!(refused, Some(FormatError::NotAvailable { format: "sarif", expected }));
    assert_eq!("yaml".parse::<OutputFormat>(), Err(FormatError::Unknown("yaml".into())));
}

/// The first line reports a driver failure in addition to the violation.
#[test]
fn the_conclusion_marks_weak_evidence() {
    let first_line = |weak: usize| {
        let mut lines = run_lines();
        let violating = lines.iter_mut().filter(|line| line.verdict == VerdictWord::Violates);
        for line in violating.take(weak) {
            let missing = Some("1 of 9 dispatches discarded");
            line.detail = results::weigh_violation("forbidden", missing, EvidenceCheck::OwnReceipt).detail;
        }
        let text = results::conclusion::format_conclusions(&whole_plan(), &lines);
        let first = text.lines().next().unwrap().to_owned();
        first.split_once(" broke a rule ").unwrap().1.split(", 4 inconclusive").next().unwrap().to_owned()
    };
    let note = "with weak evidence: the driver did not execute everything as requested";
    assert_eq!(first_line(0), "in 2 of 9 tests");
    assert_eq!(first_line(1), format!("in 2 of 9 tests (1 {note})"));
    assert_eq!(first_line(2), format!("in 2 of 9 tests ({note})"));
}
