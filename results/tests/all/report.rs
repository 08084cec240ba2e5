//! Every format, from one set of records.

use crate::lines::{check_lines, rejected, run_lines};
use results::write::{Format, FormatError, Layout, check_writer, run_writer};

fn run_report(format: Format, layout: Layout) -> String {
    let mut out = Vec::new();
    {
        let mut writer = run_writer(format, &mut out, layout).unwrap();
        run_lines().iter().for_each(|line| writer.judged(line).unwrap());
        writer.finish().unwrap();
    }
    String::from_utf8(out).unwrap()
}

fn check_report(format: Format) -> String {
    let mut out = Vec::new();
    {
        let mut writer = check_writer(format, &mut out).unwrap();
        check_lines().iter().for_each(|line| writer.answered(line).unwrap());
        writer.rejected(&rejected()).unwrap();
        writer.finish().unwrap();
    }
    String::from_utf8(out).unwrap()
}

#[test]
fn run_text() {
    insta::assert_snapshot!(run_report(Format::Text, Layout::default()));
}

#[test]
fn batches_are_what_confidence_counts() {
    let mut line = run_lines().remove(0);
    let mut out = Vec::new();
    line.batches = Some(100);
    for outcome in &mut line.outcomes {
        outcome.batches = Some(if outcome.weak && outcome.count > 0 { 3 } else { 0 });
    }
    {
        let mut writer = run_writer(Format::Text, &mut out, Layout::default()).unwrap();
        writer.judged(&line).unwrap();
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
    let report = run_report(Format::Text, Layout { width: Some(72), colour: false });
    let table: Vec<&str> = report.lines().take_while(|line| !line.is_empty()).collect();
    assert!(table.len() > 9, "{report}");
    assert!(table.iter().all(|line| line.chars().count() <= 72), "{report}");
}

#[test]
fn colour_only_where_asked_for() {
    assert!(!run_report(Format::Text, Layout::default()).contains('\u{1b}'));
    assert!(run_report(Format::Text, Layout { width: None, colour: true }).contains('\u{1b}'));
}

#[test]
fn run_json() {
    insta::assert_snapshot!(run_report(Format::Json, Layout::default()));
}

#[test]
fn run_csv() {
    insta::assert_snapshot!(run_report(Format::Csv, Layout::default()));
}

#[test]
fn check_text() {
    insta::assert_snapshot!(check_report(Format::Text));
}

#[test]
fn check_json() {
    insta::assert_snapshot!(check_report(Format::Json));
}

#[test]
fn check_csv() {
    insta::assert_snapshot!(check_report(Format::Csv));
}

#[test]
fn a_table_without_rows_has_its_header() {
    let mut out = Vec::new();
    run_writer(Format::Csv, &mut out, Layout::default()).unwrap().finish().unwrap();
    assert_eq!(out.iter().filter(|byte| **byte == b'\n').count(), 1);
}

#[test]
fn what_is_not_built_is_refused_by_name() {
    for format in [Format::Gtest] {
        let refused = run_writer(format, Vec::new(), Layout::default()).err();
        assert_eq!(refused, Some(FormatError::NotAvailable(format.name())));
    }
    assert_eq!("yaml".parse::<Format>(), Err(FormatError::Unknown("yaml".into())));
}
